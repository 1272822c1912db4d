"""A task made from a plain one: whatever it does not change is that of the plain task.

Tasks whose weights are drawn (:mod:`rlbench_suite.core.preferences`) and tasks whose reward is
shown as several objectives (:mod:`rlbench_suite.core.objectives`) are such tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import numpy as np

from rlbench_suite.core.component import Components, KeyFigure
from rlbench_suite.core.task import Observation, Task
from rlbench_suite.core.task_card import TaskCard

Params = TypeVar("Params")


class DerivedTask(Task[Params, Any]):
    """A task around a plain one, whose states are those of that one.

    Attributes:
        plain: the plain task.
    """

    def __init__(
        self, card: TaskCard, plain_card: TaskCard, *, difficulty: float | None, dtype: str
    ) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        plain: Task[Any, Any] = plain_card.build(difficulty=difficulty, dtype=dtype)
        self.plain = plain
        self.observation_space = plain.observation_space
        self.action_space = plain.action_space
        self.reward_space = plain.reward_space
        self.privileged_space = plain.privileged_space
        self.global_state_space = plain.global_state_space
        self.action_features = plain.action_features
        self.period = plain.period
        self.memoryless_ceiling = plain.memoryless_ceiling
        for name in ("measures", "errors", "ends_in_failure", "counts_turns", "picture_shape"):
            setattr(self, name, getattr(plain, name))

    def plain_params(self, params: Params) -> Any:
        """Return the context of the plain task, which is this one unless a subclass adds to it."""
        return params

    def defines(self, function: str) -> bool:
        """Tell whether the plain task has an optional function of its own."""
        return self.plain.defines(function)

    @property
    def success_meaning(self) -> str:
        """The sentence of the plain task."""
        return self.plain.success_meaning

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the context of the plain task."""
        params: Params = self.plain.sample_params(key, split)
        return params

    def initial(self, key: jax.Array, params: Params) -> Any:
        """Return the first state of the plain task."""
        return self.plain.initial(key, self.plain_params(params))

    def transition(self, state: Any, action: jax.Array, key: jax.Array, params: Params) -> Any:
        """Return the next state of the plain task."""
        return self.plain.transition(state, action, key, self.plain_params(params))

    def observation(self, state: Any, key: jax.Array, params: Params) -> Observation:
        """Return the observation of the plain task."""
        return self.plain.observation(state, key, self.plain_params(params))

    def reward(
        self, state: Any, action: jax.Array, next_state: Any, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of the plain task."""
        return self.plain.reward(state, action, next_state, key, self.plain_params(params))

    def terminal(self, state: Any, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the plain task is over."""
        return self.plain.terminal(state, key, self.plain_params(params))

    def info(self, state: Any, params: Params) -> dict[str, jax.Array]:
        """Return success and measures of the plain task."""
        return self.plain.info(state, self.plain_params(params))

    def action_mask(self, state: Any, params: Params) -> jax.Array | None:
        """Return the legal actions of the plain task."""
        return self.plain.action_mask(state, self.plain_params(params))

    def after_illegal_action(self, state: Any, params: Params) -> Any:
        """Return what the plain task makes of an illegal action."""
        return self.plain.after_illegal_action(state, self.plain_params(params))

    def alive(self, state: Any, params: Params) -> jax.Array | None:
        """Return which agents of the plain task act."""
        return self.plain.alive(state, self.plain_params(params))

    def acting(self, state: Any, params: Params) -> jax.Array | None:
        """Return which agents of the plain task move now."""
        return self.plain.acting(state, self.plain_params(params))

    def privileged(self, state: Any, params: Params) -> jax.Array | None:
        """Return what a critic of the plain task may see."""
        return self.plain.privileged(state, self.plain_params(params))

    def global_state(self, state: Any, params: Params) -> jax.Array | None:
        """Return the global state of the plain task."""
        return self.plain.global_state(state, self.plain_params(params))

    def cost(
        self, state: Any, action: jax.Array, next_state: Any, params: Params
    ) -> jax.Array | None:
        """Return the constraint cost of the plain task."""
        return self.plain.cost(state, action, next_state, self.plain_params(params))

    # -- text and pixels ---------------------------------------------------------------------------

    def observation_components(self) -> Components:
        """Name the entries of an observation of the plain task."""
        return self.plain.observation_components()

    def action_components(self) -> Components:
        """Name the entries of an action of the plain task."""
        return self.plain.action_components()

    def key_figures(self) -> tuple[KeyFigure, ...]:
        """Return those of the plain task."""
        return self.plain.key_figures()

    def energy(self, quantities: Mapping[str, np.ndarray]) -> float | None:
        """Return the energy of an episode of the plain task."""
        return self.plain.energy(quantities)

    def describe(self, state: Any, params: Params) -> str:
        """Describe the plain task."""
        return self.plain.describe(state, self.plain_params(params))

    def describe_turn(self, known_state: Any | None, state: Any, params: Params) -> str:
        """Describe the turn of the plain task."""
        return self.plain.describe_turn(known_state, state, self.plain_params(params))

    def rules(self) -> str:
        """Return the rules of the plain task."""
        return self.plain.rules()

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools of the plain task."""
        return self.plain.tools()

    def draw(self, state: Any, params: Params) -> np.ndarray:
        """Draw the plain task."""
        return self.plain.draw(state, self.plain_params(params))

    def draw_next(self, state: Any, params: Params, trail: list[Any]) -> np.ndarray:
        """Draw the plain task as the next picture of an episode."""
        return self.plain.draw_next(state, self.plain_params(params), trail)

    def parse(self, text: str, state: Any, params: Params) -> np.ndarray:
        """Read an action of the plain task.

        Raises:
            ValueError: the text is no action.
        """
        return self.plain.parse(text, state, self.plain_params(params))

    def spell(self, action: np.ndarray, state: Any, params: Params) -> str:
        """Return the reply that plays an action of the plain task."""
        return self.plain.spell(action, state, self.plain_params(params))

    def how_to_act(self) -> str:
        """Tell what an action of the plain task looks like."""
        return self.plain.how_to_act()

    def why_over(self, state: Any, params: Params, info: dict[str, Any]) -> str:
        """Say why the plain task is over."""
        return self.plain.why_over(state, self.plain_params(params), info)

    def why_illegal(self, action: np.ndarray, state: Any, params: Params) -> str:
        """Say why the plain task forbids an action."""
        return self.plain.why_illegal(action, state, self.plain_params(params))

    def noop_action(self) -> np.ndarray:
        """Return the action of the plain task that does nothing."""
        return self.plain.noop_action()

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard


class Wind(NamedTuple):
    gust: jax.Array


class Line(NamedTuple):
    x: jax.Array


class Walk(Task[Wind, Line]):
    measures: ClassVar[dict[str, str]] = {"x": "place reached"}

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box([-12.0], [12.0])
        self.action_space = spaces.Discrete(3)
        self.reward_space = self.box(-1, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Wind:
        gust = jnp.floor(self.uniform(key, 1)[0] * 2**20)
        # Every other gust is of the other split.
        return Wind((2 * gust + split) / 2**21 * self.difficulty)

    def initial(self, key: jax.Array, params: Wind) -> Line:
        return Line(jnp.int32(0))

    def transition(self, state: Line, action: jax.Array, key: jax.Array, params: Wind) -> Line:
        blown = self.uniform(key, 1)[0] < params.gust
        return Line(jnp.clip(state.x + jnp.where(blown, -1, action - 1), -12, 12))

    def observation(self, state: Line, key: jax.Array, params: Wind) -> jax.Array:
        return self.stack(state.x)

    def reward(
        self, state: Line, action: jax.Array, next_state: Line, key: jax.Array, params: Wind
    ) -> jax.Array:
        return (next_state.x - state.x).astype(self.dtype)

    def terminal(self, state: Line, key: jax.Array, params: Wind) -> jax.Array:
        return state.x >= 6

    def info(self, state: Line, params: Wind) -> dict[str, jax.Array]:
        return {"success": state.x >= 6, "x": state.x}

    def action_mask(self, state: Line, params: Wind) -> jax.Array:
        return jnp.stack([jnp.bool_(True), state.x != 0, jnp.bool_(True)])

    def describe(self, state: Line, params: Wind) -> str:
        return f"You stand at {int(state.x)}."

    def draw(self, state: Line, params: Wind) -> np.ndarray:
        return np.full(self.picture_shape, 10 * (12 + int(state.x)), np.uint8)


class Rightwards(NamedTuple):
    @classmethod
    def for_task(cls, task: Walk) -> "Rightwards":
        return cls()

    def initial(self, params: Wind) -> Any:
        return ()

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        return jnp.int32(2), memory


class Nothing(NamedTuple):
    pass


class Point(NamedTuple):
    x: jax.Array
    v: jax.Array


class Drift(Task[Nothing, Point]):
    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box([-100.0] * 2, [100.0] * 2)
        self.action_space = self.box([-1.0], [1.0])
        self.reward_space = self.box([-100.0, -1.0], [0.0, 0.0])

    def sample_params(self, key: jax.Array, split: jax.Array) -> Nothing:
        return Nothing()

    def initial(self, key: jax.Array, params: Nothing) -> Point:
        x, v = self.uniform(key, 2)
        return Point(2 * x - 1, 0.2 * v - 0.1)

    def transition(self, state: Point, action: jax.Array, key: jax.Array, params: Nothing) -> Point:
        speed_factor = {"none": 1.0, "air": 0.5}[self.card.settings["friction"]]
        push = {"weak": 0.1, "strong": 0.2}[self.card.settings["push"]]
        v = speed_factor * state.v + push * action[0]
        return Point(state.x + 0.1 * v, v)

    def observation(self, state: Point, key: jax.Array, params: Nothing) -> jax.Array:
        return self.stack(*state)

    def reward(
        self, state: Point, action: jax.Array, next_state: Point, key: jax.Array, params: Nothing
    ) -> jax.Array:
        return self.stack(-jnp.abs(next_state.x), -0.1 * jnp.abs(action[0]))

    def terminal(self, state: Point, key: jax.Array, params: Nothing) -> jax.Array:
        return jnp.abs(state.x) > 10

    def info(self, state: Point, params: Nothing) -> dict[str, jax.Array]:
        return {"success": jnp.abs(state.x) < 0.5}

    def cost(
        self, state: Point, action: jax.Array, next_state: Point, params: Nothing
    ) -> jax.Array:
        return (jnp.abs(next_state.v) > 0.2).astype(self.dtype)

    def describe(self, state: Point, params: Nothing) -> str:
        return f"x = {state.x:.2f}, v = {state.v:.2f}"

    def draw(self, state: Point, params: Nothing) -> np.ndarray:
        return np.zeros(self.picture_shape, np.uint8)


class Towards(NamedTuple):
    @classmethod
    def for_task(cls, task: Drift) -> "Towards":
        return cls()

    def initial(self, params: Nothing) -> Any:
        return ()

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        return jnp.clip(-view.observation[:1] - view.observation[1:], -1.0, 1.0), memory

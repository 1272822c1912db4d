"""One episode at a time as a ``gymnasium.Env``: NumPy in and out, plain Python floats and bools."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cached_property, lru_cache, partial
from typing import Any, SupportsFloat

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.action_check import ActionCheck
from rlbench_suite.adapters.packing import Layout, Place
from rlbench_suite.adapters.program import program
from rlbench_suite.adapters.reward_space import shown_reward_space
from rlbench_suite.card import TaskCard, unknown
from rlbench_suite.contract import check_spaces
from rlbench_suite.episode import (
    NO_LIMIT,
    Draw,
    Episode,
    Step,
    advance,
    begin,
    check_weights,
    scalar_return,
    seed_key,
    weighted_sum,
)
from rlbench_suite.lanes import apart, in_lanes, in_one_kernel
from rlbench_suite.policy import Policy, reference_player
from rlbench_suite.process import KEPT, precision, refuse_after_fork
from rlbench_suite.task import Task

RENDER_MODES = ("rgb_array", "ansi")
_MADE_AGAIN = {"_programs", "_advance", "_words", "_read", "_action", "_following"}
"""Attributes of an env that no copy takes along."""


class Programs:
    """The two compiled programs of a single env, to words of (episode, step).

    ``advance`` gives the next ones; ``begin`` a row of the ordered episode and a row of the one after it. Lanes are two
    in any case.

    Raises:
        ContractError: a function of the task gives another shape or dtype than it should.
    """

    def __init__(self, task: Task[Any, Any]) -> None:
        self.task = task
        self._two = apart(jax.vmap(partial(begin, task), in_axes=(0, 0, None)))
        """Two first episodes. One function for the shapes and the program, so that it is traced once."""
        seeds, indices = np.zeros((2, 2), np.uint32), np.zeros(2, np.int32)
        with precision(task):
            pairs = jax.eval_shape(self._two, seeds, indices, Draw(np.int32(0), np.int32(-1)))
        shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), pairs)
        self.layout = Layout(shapes, np.uint64 if task.dtype == np.float64 else np.uint32)
        shape = task.action_space.shape or ()
        words = slice(self.layout.size, self.layout.size + math.prod(shape))
        self.action = Place(words, shape, ActionCheck(task.action_space).dtype)
        """Where an action lies, behind the episode."""
        self.places: tuple[Episode, Step] = self.layout.treedef.unflatten(self.layout.places)
        self.begin = program(self._begin, task, np.zeros(5, np.uint32))
        """From an :func:`order`."""
        self.advance = program(self._advance, task, np.zeros(self.action.words.stop, self.layout.word))
        """From the words of an episode with those of an action behind them."""

    @cached_property
    def action_mask(self) -> Callable[[Any, Any], jax.Array]:
        """From a state and its params; for episodes that were put in by hand, whose step shows another's mask."""
        return jax.jit(self.task.action_mask)

    def _begin(self, order: jax.Array) -> jax.Array:
        seed, (index, *draw_words) = order[:2], order[2:].astype(np.int32)
        draw = Draw(*draw_words)
        seeds, indices = jnp.stack([seed, seed]), jnp.stack([index, index + 1])
        return in_one_kernel(self.layout.pack)(self._two(seeds, indices, draw))

    def _advance(self, memory: jax.Array) -> jax.Array:
        return in_one_kernel(self.layout.pack_first)(in_lanes(self._step, *in_one_kernel(self._unpack)(memory)))

    def _unpack(self, memory: jax.Array) -> tuple[Episode, jax.Array]:
        """The episode and the action, each in two lanes."""
        (episode, _), action = self.layout.unpack(memory), self.layout.part(memory, self.action)
        return jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (episode, action))

    def _step(self, episode: Episode, action: jax.Array) -> tuple[Episode, Step]:
        return advance(self.task, episode, action, NO_LIMIT)

    def reader(self, words: np.ndarray) -> Callable[[], tuple[Any, Any, bool, bool, dict[str, Any]]]:
        """Make a function that tells what the step in these words shows: Python's own scalars, copies of arrays."""

        def copies(place: Place, dtype: Any = None) -> Callable[[], np.ndarray]:
            return self.layout.reader(words, place, dtype or place.dtype)

        shown, rewarded, terminated, truncated, told = self.places[1]
        masks = {"action_mask": np.int8}  # what Space.sample(mask) asks for
        arrays = {name: copies(place, masks.get(name)) for name, place in told.items() if place.shape != ()}
        rewards = copies(rewarded) if rewarded.shape else None
        parts = jax.tree.map(copies, shown, is_leaf=lambda part: isinstance(part, Place))
        observe = (lambda: {name: copy() for name, copy in parts.items()}) if isinstance(shown, dict) else parts
        names = [name for name in told if name not in arrays]
        names.sort(key=lambda name: told[name].words.start)
        # One call for each is faster than one for all and taking the reward and the ends out of it.
        scalars, reward_alone, ends = (
            self.layout.scalars(places)
            for places in ([told[name] for name in names], [] if rewards else [rewarded], [terminated, truncated])
        )

        def read() -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            info: dict[str, Any] = dict(zip(names, scalars(words)))  # noqa: B905  # checking lengths takes its time
            for name, copy in arrays.items():
                info[name] = copy()
            reward = reward_alone(words)[0] if rewards is None else rewards()
            return observe(), reward, *ends(words), info

        return read


def order(seed: np.ndarray, index: int, draw: Draw) -> np.ndarray:
    """The episode to begin: uint32 ``(5,)``."""
    return np.array([*seed, index, *draw], np.int64).astype(np.uint32)


programs = lru_cache(KEPT)(Programs)


class TaskEnv(gymnasium.Env[Any, Any]):
    """A task as a Gymnasium environment (structured view).

    ``env.unwrapped`` has the ``card``, the ``task``, ``params``, ``state`` (assign a saved one to branch) and
    :meth:`reference`. Time limits are Gymnasium's ``TimeLimit`` wrapper, which ``gymnasium.make`` adds.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 30}  # noqa: RUF012

    def __init__(
        self,
        task: Task[Any, Any],
        split: str | int = "train",
        render_mode: str | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(unknown("render_mode", render_mode, RENDER_MODES))
        check_spaces(task)
        self.task = task
        self.render_mode = render_mode
        # Spaces hold the generator of their samples: each env has its own.
        self.observation_space = deepcopy(task.observation_space)
        self.action_space = deepcopy(task.action_space)
        self.weights = check_weights(task, weights)
        self.reward_space = shown_reward_space(task, self.weights)
        if self.reward_space.shape and self.card.objectives:
            self.reward_dim = len(self.card.objectives)
        self._shown_whole = task.card.agents == 1 and weights is None
        """Whether rewards are shown as the task gives them."""
        self._draw = Draw.parse(split, task)
        self._check_action = ActionCheck(task.action_space)
        self._seed: np.ndarray | None = None
        self._index = 0
        self._memory: np.ndarray | None = None
        """Words of the running episode, and behind them those of an action."""
        self._following: np.ndarray | None = None
        """Words of the next episode, where it was begun with the last one."""
        self._trail: list[Any] = []

    @property
    def card(self) -> TaskCard:
        """What is known of the task."""
        return self.task.card

    # -- Gymnasium's interface ---------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: with a seed its first one, without the next one of the last seed.

        Raises:
            ValueError: the seed is negative or too large, or options are given (there are none).
        """
        refuse_after_fork()
        self._turn(seed, options)
        assert self._seed is not None
        if self._memory is None:
            self._open()
        if self._following is None:
            begun = self._programs.begin(order(self._seed, self._index, self._draw))
            self._words[:], self._following = np.asarray(begun)
        else:
            self._words[:], self._following = self._following, None
        observation, *_, info = self._show()
        return observation, info

    def _open(self) -> np.ndarray:
        """Make room for an episode and an action, which is returned."""
        self._programs = programs(self.task)
        self._advance = self._programs.advance
        layout, action = self._programs.layout, self._programs.action
        self._memory = np.zeros(action.words.stop, layout.word)
        self._words = self._memory[: layout.size]
        self._read = self._programs.reader(self._words)
        numbers = layout.float if action.dtype.kind == "f" else layout.signed
        self._action = self._memory[action.words].view(numbers).reshape(action.shape)
        return self._memory

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: compiled programs and views into memory are found and made again."""
        state = {name: value for name, value in self.__dict__.items() if name not in _MADE_AGAIN}
        return state | {"_memory": None if self._memory is None else self._memory.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become the copy, which goes on to the bit.

        Raises:
            RuntimeError: an episode is running, and JAX would hang in this process (:func:`refuse_after_fork`).
        """
        self.__dict__.update(state, _following=None)
        if state["_memory"] is not None:
            refuse_after_fork()
            self._open()[:] = state["_memory"]

    def _turn(self, seed: int | None, options: dict[str, Any] | None) -> int | None:
        """Count episodes: to the first of a new seed, which is returned, or to the next of the last seed."""
        self._trail = []
        if options:
            raise ValueError(f"{self.card.id} takes no reset options, got {options!r}.")
        if seed is None and self._seed is not None:
            self._index += 1
            return None
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._seed, self._index, self._following = seed_key(seed), 0, None
        super().reset(seed=int(seed) % 2**63)
        return int(seed)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step. An action the mask forbids leaves the state as it is; ``info["invalid_reason"]`` says why.

        Raises:
            ValueError, TypeError: the action is not in the action space.
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        refuse_after_fork()
        if self._memory is None:
            raise gymnasium.error.ResetNeeded("Call reset() before step().")
        checked = self._check_action(action)
        self._action[...] = checked
        self._words[:] = self._advance(self._memory)
        observation, reward, terminated, truncated, info = self._show()
        if info.get("invalid_action"):
            episode = self.episode
            info["invalid_reason"] = self.task.why_illegal(checked, episode.state, episode.params)
        if terminated:
            episode = self.episode
            info["end_reason"] = self.task.why_over(episode.state, episode.params, info)
        return observation, reward, terminated, truncated, info

    def _show(self) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self._shown_whole:
            return self._read()
        observation, reward, terminated, truncated, info = self._read()
        if self.weights is not None:
            info["vector_reward"] = reward
        return observation, self._reward(reward), terminated, truncated, info

    def _reward(self, reward: Any) -> Any:
        """Return what Gymnasium gets of several agents' rewards, the mean, or of weighted objectives, their sum."""
        if self.weights is not None:
            return float(weighted_sum(reward, self.weights, self.task.dtype))
        return float(scalar_return(self.task, reward))

    def render(self) -> Any:
        """A picture (``rgb_array``) or a description (``ansi``) of the current state.

        Pictures of one episode may show what earlier ones showed, as the trail of a vehicle.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if self.render_mode == "ansi":
            return self.task.describe(self.state, self.params)
        return self.task.draw_next(self.state, self.params, self._trail) if self.render_mode == "rgb_array" else None

    # -- what planning, masking agents and curious people need ---------------------------------------------------

    @property
    def episode(self) -> Episode:
        """The running episode as NumPy values: save it, restore it, branch from it.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if self._memory is None:
            raise gymnasium.error.ResetNeeded("Call reset() first: there is no running episode yet.")
        return self._programs.layout.unpack_numpy(self._words.copy())[0]

    @episode.setter
    def episode(self, episode: Episode) -> None:
        refuse_after_fork()
        if self._memory is None:
            raise gymnasium.error.ResetNeeded("Call reset() before restoring an episode.")
        self._seed, self._index = np.asarray(episode.seed, np.uint32), int(episode.index)
        self._following, self._trail = None, []
        _, step = self._programs.layout.unpack_numpy(self._words)
        if "action_mask" in step.info:
            with precision(self.task):
                step.info["action_mask"] = self._programs.action_mask(episode.state, episode.params)
        self._words[:] = self._programs.layout.pack_numpy((episode, step))

    @property
    def state(self) -> Any:
        """The task's state, NumPy scalars and arrays."""
        return self.episode.state

    @state.setter
    def state(self, state: Any) -> None:
        self.episode = self.episode._replace(state=state)

    @property
    def params(self) -> Any:
        """The context of the episode."""
        return self.episode.params

    def action_masks(self) -> np.ndarray:
        """Legal actions now, bool ``(n,)``; what maskable agents of the ecosystem call.

        Raises:
            AttributeError: the task has no masks.
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if self._memory is None:
            raise gymnasium.error.ResetNeeded("Call reset() first: the mask is that of a running episode.")
        place = self._programs.places[1].info.get("action_mask")
        if place is None:
            raise AttributeError(f"{self.card.id} has no action mask: every action is legal.")
        return self._programs.layout.read(self._words, place).copy()

    def pareto_front(self, gamma: float) -> list[np.ndarray]:
        """The exact front of discounted returns, as MO-Gymnasium's environments give theirs.

        Raises:
            AttributeError: the task's front is not known.
        """
        known = getattr(self.task, "pareto_front", None)
        if known is None:
            raise AttributeError(f"{self.card.id} has no known Pareto front.")
        return list(known(gamma))

    def reference(self) -> Policy:
        """The family's own player (controller, solver, scripted player)."""
        return reference_player(self.task)


class PixelEnv(TaskEnv):
    """The same episode seen as an image."""

    def __init__(self, task: Task[Any, Any], *args: Any, **keywords: Any) -> None:
        super().__init__(task, *args, **keywords)
        self.observation_space = spaces.Box(0, 255, task.picture_shape, np.uint8)

    def _show(self) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        _, *rest = super()._show()
        return self.task.draw(self.state, self.params), *rest

"""Put a task on trial for the checks of ``checks.py``.

All checks share its environment and two recorded plays.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.host import HostEnv, HostTextEnv
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.adapters.text import TextEnv
from rlbench_suite.core.contract import check_spaces
from rlbench_suite.core.episode import action_sizes
from rlbench_suite.core.host import HostTask

SEEDS = (7, 2**40)
STEPS = 160
RESET_AFTER = 48
"""Steps after which the first play resets an episode that has not ended.

It so holds several episodes. The other play goes on, because some faults come late.
"""


class Moment(NamedTuple):
    """One step of a play.

    ``restart`` has the first observation and info of the next episode if this one is over.
    """

    action: Any
    observation: Any
    reward: Any
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    restart: tuple[Any, dict[str, Any]] | None


class Play(NamedTuple):
    """Several episodes in a row, from one seed."""

    seed: int
    observation: Any
    info: dict[str, Any]
    moments: list[Moment]

    def first_actions(self, limit: int) -> list[Any]:
        """Return the actions of the first episode, ``limit`` at most."""
        actions = []
        for moment in self.moments[:limit]:
            actions.append(moment.action)
            if moment.restart:
                break
        return actions

    def at(self, t: int) -> str:
        """Return the beginning of a sentence on a step."""
        return f"At step {t} of seed {self.seed}"


class Bench:
    """A task, its environment and two plays, shared by all checks."""

    def __init__(self, task: Any) -> None:
        check_spaces(task)
        self.task = task
        self.host = isinstance(task, HostTask)
        self.env = self.make()

    def make(self, split: str | int = "train") -> TaskEnv:
        """Make another environment of the task."""
        return HostEnv(self.task, split) if self.host else TaskEnv(self.task, split)

    def make_text(self) -> TextEnv:
        """Make its text view."""
        return HostTextEnv(self.task) if self.host else TextEnv(self.task)

    @cached_property
    def plays(self) -> list[Play]:
        """Plays by random legal actions, one from each seed."""
        return [self.play(self.env, seed) for seed in SEEDS]

    def play(self, env: TaskEnv, seed: int, actions: list[Any] | None = None) -> Play:
        """Play several episodes by the given actions, or by random legal ones.

        Half of the random actions are at the bounds of a Box.
        """
        rng = np.random.default_rng(seed)
        first = observation, info = env.reset(seed=seed)
        moments = []
        age = 0
        for t in range(STEPS):
            action = (
                random_action(rng, self.task.action_space, info.get("action_mask"))
                if not actions
                else actions[t]
            )
            observation, reward, terminated, truncated, info = env.step(action)
            age += 1
            restart = (
                env.reset()
                if terminated or truncated or (age == RESET_AFTER and seed == SEEDS[0])
                else None
            )
            moments.append(
                Moment(action, observation, reward, terminated, truncated, info, restart)
            )
            if restart:
                age = 0
                info = restart[1]
        return Play(seed, *first, moments)


def random_action(rng: np.random.Generator, space: Any, mask: np.ndarray | None) -> Any:
    """Sample an action that the mask allows. Half of the actions of a Box lie at its bounds."""
    if isinstance(space, spaces.Box):
        low = np.maximum(space.low, -1e6)
        high = np.minimum(space.high, 1e6)
        share = rng.random(space.shape)
        inside = np.where(rng.random() < 0.5, share, share > 0.5)
        return np.clip(low + inside * (high.astype(float) - low), space.low, space.high).astype(
            space.dtype
        )
    sizes = action_sizes(space)
    masks = (
        [np.ones(size) for size in sizes] if mask is None else np.split(mask, np.cumsum(sizes)[:-1])
    )
    allowed = [np.flatnonzero(mask_of_choice) for mask_of_choice in masks]
    choices = np.array([rng.choice(legal) if legal.size else 0 for legal in allowed]).reshape(
        space.shape
    )
    action = space.start + choices
    return action.astype(space.dtype) if space.shape else int(action)


def bits(value: Any) -> bytes:
    """Spell any value of an environment as bytes, so that equal means equal to the bit."""
    if isinstance(value, dict):
        return b"".join(name.encode() + bits(value[name]) for name in sorted(value))
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int):  # a generator's state has more bits than NumPy's integers
        return str(value).encode()
    array = np.asarray(value)
    return str(array.shape).encode() + array.tobytes()


def leaves(tree: Any) -> bytes:
    """Spell the leaves of a state, params or episode as bytes."""
    return b"".join(bits(leaf) for leaf in jax.tree.leaves(tree))

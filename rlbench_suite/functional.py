"""Run tasks as pure functions in gymnax's form.

They are for the user's own ``jit``, ``vmap``, ``scan`` and ``grad``.

::

    env, params = rlbench_suite.functional.make("PMSMCurrent-v0")
    observation, state = env.reset(key, params)
    observation, state, reward, done, info = env.step(key, state, action, params)

Functions take and return one episode; ``jax.vmap`` makes batches. An episode is that of
``gymnasium.make(id)``: ``env.reset(jax.random.key(7), params)`` begins the one that
``reset(seed=7)`` begins there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.contract import wrong_shape
from rlbench_suite.core.episode import (
    VECTORS,
    ContextSource,
    Episode,
    advance,
    average_agents,
    begin,
    scalar_return,
)
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task import Task
from rlbench_suite.foundation.unknown_names import unexpected

__all__ = ["EnvParams", "FunctionalEnv", "make"]


class EnvParams(NamedTuple):
    """Settings that may vary between calls of one compiled program; ``_replace`` changes them."""

    max_steps_in_episode: Any
    """Time limit in steps, int32 ``()``."""
    contexts: ContextSource
    """Source of the contexts of episodes.

    ``ContextSource.parse("test", env.task)`` gives those of the test split.
    """


class FunctionalEnv:
    """A task as pure functions of a key, a state and an action.

    The state is a pytree: save it, branch from it.

    ``params`` may be left out everywhere; they are then ``default_params``.

    Attributes:
        task: the task.
        default_params: time limit of the card, contexts of the split.
    """

    def __init__(self, task: Task[Any, Any], split: str | int = "train") -> None:
        self.task = task
        self.default_params = EnvParams(task.card.horizon, ContextSource.parse(split, task))

    def reset(self, key: jax.Array, params: EnvParams | None = None) -> tuple[Any, Episode]:
        """Begin an episode.

        Args:
            key: random key; ``jax.random.key(s)`` begins the first episode of seed ``s``.
            params: time limit and source of contexts.

        Returns:
            The first observation, shaped like the observation space, and the state.

        Raises:
            ValueError: the key is not one of JAX's default kind, threefry.
        """
        seed = jax.random.key_data(key)
        if seed.shape != (2,):
            raise ValueError(
                "reset takes one threefry key, whose data are uint32 (2,); this key's are "
                f"{seed.shape}."
            )
        episode, first = begin(self.task, seed, 0, (params or self.default_params).contexts)
        return first.observation, episode

    def step(
        self, key: jax.Array, state: Episode, action: jax.Array, params: EnvParams | None = None
    ) -> tuple[Any, Episode, jax.Array, jax.Array, dict[str, Any]]:
        """Step once, and begin the next episode at once if this one has ended.

        Args:
            key: random key of the next episode. The step itself samples from the key of its own
                episode.
            state: the running episode.
            action: an action of the action space; numbers outside the bounds of a Box are clipped
                to them. An action that the mask forbids, a discrete one out of range and one with
                NaN change nothing but the time: the state stays, and ``invalid_action`` is true.
            params: time limit and source of contexts.

        Returns:
            Observation and state, those of the next episode where this one has ended; then of the
            step just made: the reward ``()`` (objectives weighted as the card says, agents
            averaged), ``done`` bool ``()``, and ``info`` with scalars: ``terminated``,
            ``truncated``, ``success``, ``invalid_action``, the score so far, and the measures of
            the task. If the task has objectives, ``vector_reward`` has the reward of each,
            ``(n_objectives,)``.

        Raises:
            ValueError: the action has another shape than the action space.
        """
        last_observation, last_state, reward, done, info = self.step_env(key, state, action, params)
        last = last_observation, last_state
        first = self.reset(key, params)
        observation, state = jax.tree.map(lambda new, old: jnp.where(done, new, old), first, last)
        return observation, state, reward, done, info

    def step_env(
        self, key: jax.Array, state: Episode, action: jax.Array, params: EnvParams | None = None
    ) -> tuple[Any, Episode, jax.Array, jax.Array, dict[str, Any]]:
        """Step once and begin no other episode.

        This is :meth:`step` with the last observation and state of this episode.

        An algorithm that estimates the value of what follows a time limit needs this observation.
        """
        del key
        limit = (params or self.default_params).max_steps_in_episode
        action, is_valid = self._as_action(action)
        episode, result = advance(self.task, state, action, limit, is_valid=is_valid)
        info = {name: value for name, value in result.info.items() if name not in VECTORS}
        info.setdefault("invalid_action", ~is_valid)
        info |= {"terminated": result.terminated, "truncated": result.truncated}
        if self.task.card.objectives:
            info["vector_reward"] = average_agents(self.task, result.reward)
        reward = scalar_return(self.task, result.reward)
        return result.observation, episode, reward, result.terminated | result.truncated, info

    def _as_action(self, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return an action of the space, and whether it is the given one, bool ``()``.

        A number beyond a bound becomes the bound, a choice out of range the first one, and NaN 0.
        Clipped actions count as given.

        Raises:
            ValueError: the action has another shape than the space.
        """
        space: Any = self.task.action_space
        action = jnp.asarray(action)
        if action.shape != space.shape:
            raise ValueError(f"{wrong_shape(space, space.shape, action.shape)}.")
        dtype = jax.dtypes.canonicalize_dtype(space.dtype)
        if isinstance(space, spaces.Box):
            is_number = ~jnp.isnan(action)
            number = jnp.where(is_number, action, 0).astype(dtype)
            return jnp.clip(number, space.low, space.high), jnp.all(is_number)
        first = np.asarray(space.start, np.int32)
        choices = space.nvec if isinstance(space, spaces.MultiDiscrete) else space.n
        last = np.asarray(first + choices - 1, np.int32)
        is_choice = (first <= action) & (action <= last)  # before the cast, which wraps and rounds
        return jnp.where(is_choice, action, first).astype(dtype), jnp.all(is_choice)

    def action_mask(self, state: Episode) -> jax.Array | None:
        """Return which actions are legal now, bool ``(n_actions,)``.

        Return None if every action always is.

        A step with an action that is not legal changes nothing but the time.
        """
        return self.task.action_mask(state.state, state.params)

    def observation_space(self, params: EnvParams | None = None) -> spaces.Space[Any]:
        """Return the space of observations, as Gymnasium has it."""
        return self.task.observation_space

    def action_space(self, params: EnvParams | None = None) -> spaces.Space[Any]:
        """Return the space of actions, as Gymnasium has it."""
        return self.task.action_space


def make(
    task_id: str,
    *,
    split: str | int = "train",
    difficulty: str | float | None = None,
    dtype: str = "float32",
    **settings: Any,
) -> tuple[FunctionalEnv, EnvParams]:
    """Return a task as pure functions, and its default params, as ``gymnax.make`` does.

    Args:
        task_id: id of a card; ``rlsuite/`` may be left out.
        split: ``"train"``, ``"test"``, or the number of one training context.
        difficulty: a tier's name or the number that defines it.
        dtype: ``"float32"``, or ``"float64"`` inside of ``jax.enable_x64(True)``.
        settings: settings of the card, as ``gymnasium.make`` takes them, and ``context``.

    Raises:
        ValueError: a value is unknown or has no meaning here, or a simulator of the host computes
            the task.
    """
    card = find_card(task_id)
    allowed = [*card.settings, "context"]
    for name in settings:
        if name not in allowed:
            raise unexpected(card.id, name, ["split", "difficulty", "dtype", *allowed])
    if card.host:
        raise ValueError(
            f"{card.id} is computed by a simulator of the host, which has no pure functions. Use "
            "rlbench_suite.make or rlbench_suite.make_vec."
        )
    env = FunctionalEnv(
        find_card(task_id, **settings).build(difficulty=difficulty, dtype=dtype), split
    )
    return env, env.default_params

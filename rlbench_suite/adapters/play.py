"""Whole episodes of a named player, through the environment that a user has made."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core import registry
from rlbench_suite.core.contract import check_action, check_memory
from rlbench_suite.core.episode import Episode, Role, draw_key, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.numerics.bit_exact import exact_vmap
from rlbench_suite.numerics.process import CACHED_TASKS, on_the_cpu, precision

PLAYERS = ("reference", "random", "noop")


class EpisodeResults(NamedTuple):
    """Results of whole episodes, in the order in which they were played."""

    seeds: np.ndarray
    """Seed of each environment reset, ``(n,)``."""
    returns: np.ndarray
    """Undiscounted sum of the rewards, float64 ``(n,)``.

    It is ``(n, n_objectives)`` where rewards are vectors.
    """
    lengths: np.ndarray
    """Steps, int ``(n,)``."""
    scores: np.ndarray
    """Normalised score, float64 ``(n,)``; NaN for a task without measured scores."""
    successes: np.ndarray
    """Whether each episode counts as solved, bool ``(n,)``."""
    infos: list[dict[str, Any]]
    """Last ``info`` of each episode: measures of the task, cost, why the episode ended."""


def play(
    env: gymnasium.Env[Any, Any], player: str = "reference", *, seed: int = 0, episodes: int = 1
) -> EpisodeResults:
    """Play whole episodes with a player that every task has, and return what came of them.

    Episode ``i`` is the first one of seed ``seed + i``, as in evaluations. Every step goes through
    the environment, so wrappers that record or show episodes see them all.

    Args:
        env: one environment of the suite in its structured view, in any wrappers that leave
            observations and actions as they are.
        player: ``"reference"``, the family's own player; ``"random"``, legal actions sampled
            uniformly; or ``"noop"``.
        seed: seed of the first episode.
        episodes: number of episodes, at least one.

    Raises:
        TypeError: the environment is not one of the suite, or is a batch.
        ValueError: no such player, no episode, a seed or number of episodes that is no integer, the
            task has no such player, or observations or actions are not those of the structured
            view.
    """
    if player not in PLAYERS:
        raise ValueError(unknown("player", player, PLAYERS))
    is_integer = isinstance(episodes, (int, np.integer)) and not isinstance(episodes, bool)
    if not is_integer or episodes < 1:
        raise ValueError(f"The number of episodes is an integer of at least 1, got {episodes!r}.")
    seed_key(seed)  # refuses what is no seed, as a reset does
    seed = int(seed)
    core = env.unwrapped
    if not isinstance(core, TaskEnv):
        raise TypeError(
            "play takes one environment of the suite, as rlbench_suite.make returns it, got "
            f"{env!r}."
        )
    task = core.task
    for kind in ("observation_space", "action_space"):
        if getattr(env, kind) != getattr(task, kind):
            raise ValueError(
                f"play takes the structured view of {task.card.id}, in wrappers that leave its "
                f"{kind} as it is; this one is {getattr(env, kind)}, and the task's is "
                f"{getattr(task, kind)}."
            )
    compiled = _compiled_player(task, player)
    seeds = np.arange(seed, seed + episodes)
    returns = []
    lengths = []
    infos = []
    for episode_seed in seeds:
        observation, info = env.reset(seed=int(episode_seed))
        with on_the_cpu(), precision(task):
            memory = compiled.initial(core.episode)
        total: Any = 0.0
        over = False
        while not over:
            with on_the_cpu(), precision(task):
                action, memory = compiled.act(
                    memory, core.episode, observation, info.get("action_mask")
                )
            observation, reward, terminated, truncated, info = env.step(
                np.asarray(action, task.action_space.dtype)
            )
            total = total + np.asarray(reward, np.float64)
            over = terminated or truncated
        returns.append(total)
        lengths.append(core.steps)
        infos.append(info)
    return EpisodeResults(
        seeds,
        np.array(returns),
        np.array(lengths),
        np.array([info.get("score", np.nan) for info in infos]),
        np.array([info["success"] for info in infos]),
        infos,
    )


class _CompiledPlayer:
    """The two functions of a player, compiled for one episode.

    They give the same bits as in batches.

    Raises:
        ValueError: the task has no such player.
    """

    def __init__(self, task: Task[Any, Any], name: str) -> None:
        agent = registry.agent(name)
        agent.check(task)
        policy: Any  # one with pure functions: none of these players runs on the host
        (policy,) = agent.train(task, seed=0, budget="smoke")

        def act(
            memory: Any, episode: Episode, observation: Any, mask: Any
        ) -> tuple[jax.Array, Any]:
            legal = None if mask is None else mask.astype(bool)
            view = View(observation, legal, episode.state, episode.params)
            key = draw_key(episode.seed, episode.index, episode.t, Role.POLICY)
            action, next_memory = policy.act(memory, view, key)
            return check_action(policy, action, task.action_space), check_memory(
                policy, next_memory, memory
            )

        self.initial = jax.jit(
            lambda episode: _as_in_a_batch(lambda episode: policy.initial(episode.params), episode)
        )
        """Function from an episode to the first memory."""
        self.act = jax.jit(partial(_as_in_a_batch, act))
        """Function that returns the action and the next memory.

        Its arguments are memory, episode, observation and action mask (or None).
        """


def _as_in_a_batch(function: Callable[..., Any], *args: Any) -> Any:
    """Return the function of these arguments, computed for two equal episodes.

    One episode alone rounds differently.
    """
    pair = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), args)
    return jax.tree.map(lambda leaf: leaf[0], exact_vmap(function, *pair))


_compiled_player = lru_cache(CACHED_TASKS)(_CompiledPlayer)

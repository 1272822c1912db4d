"""Multi-agent PPO: all agents share one actor, and one critic that reads the global state.

The algorithm is that of Yu et al. 2022 (arXiv:2103.01955). Training is central, acting is not: the
actor reads what its agent observes. The critic reads that and the global state side by side, as the
paper's agent-specific global state does. All agents learn from the reward of the team, which is the
mean over agents, as the score of an episode is.

That is PPO on the same task with another view: the global state is privileged, and every agent
earns the mean. Networks, losses and memories are therefore those of ``ppo/``, which this file does
not change. Two details of the paper are left out. Rewards are scaled by the spread of returns, not
values by their moments, and the value loss is neither clipped nor Huber's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.task import Task

from ..flat_task import FlatTask
from ..ppo.agent import PPO, Programs
from ..training import get_compiled


class CentralTask(FlatTask):
    """A task as PPO sees it, whose critic reads the global state behind the observation."""

    def __init__(self, task: Task[Any, Any]) -> None:
        super().__init__(task, MAPPO.name)
        self.privileged = self.global_features

    def observe_step(self, step: Any) -> tuple[jax.Array, jax.Array | None]:
        """Return the features for training, ``(A, features + global features)``, and the mask."""
        x, mask = self.observe(step.observation, step.info.get("action_mask"))
        state = self.observe_globally(step)
        rows = jnp.broadcast_to(state, (self.agents, *state.shape))
        return jnp.concatenate([x, rows], -1), mask

    def agent_rewards(self, reward: jax.Array) -> jax.Array:
        """Return the reward of the team for each agent, ``(A,)``."""
        rewards = super().agent_rewards(reward)
        return jnp.full_like(rewards, rewards.mean())


see_centrally = cache(CentralTask)


@cache
def programs(task: Any, config: Any) -> Programs:
    """Compile PPO's programs for the central view of a task."""
    return Programs(see_centrally(task), config)


class MAPPO(PPO):
    """The agent ``mappo``, for tasks of several agents."""

    name = "mappo"

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the task has one agent, mortal ones, or a simulator."""
        card = task.card
        if card.agents == 1:
            raise CannotPlay(
                f"{self.name} trains several agents together; {card.id} has one. Use ppo."
            )
        if card.host:
            raise CannotPlay(f"{self.name} trains in one program, but {card.id} runs on the host.")
        if task.defines("alive"):
            raise CannotPlay(
                f"{self.name} learns from the team's reward, which goes on after an agent of "
                f"{card.id} has died. Use ppo."
            )
        super().check(task)

    def flatten(self, task: Task[Any, Any]) -> FlatTask:
        """Return the task with the global state for the critic."""
        return see_centrally(task)

    def compile(self, task: Task[Any, Any], config: Any) -> tuple[Any, float]:
        """Return the programs for a task, and the seconds it took to compile them."""
        return get_compiled(programs, task, config)

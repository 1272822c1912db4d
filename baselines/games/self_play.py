"""Train by self-play: PPO on all sides of a game at once, which share one policy.

The joint game of the card (``TaskCard.joint``) is a task for several agents, so ``ppo.py`` trains
on it as on any other: each side is an agent with its own observations and rewards, all share the
networks, and only moves that were played are learnt from. The trained policy then plays the one
seat of the card's task, against opponents that it never met.

In games with hidden information the best policy is mixed, so the policy is sampled, and a bonus on
the entropy keeps it from cycling through best responses (Sokota et al. 2023, arXiv:2206.05825, give
the reason; Rudolph et al. 2025, arXiv:2502.08938, measure it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.task import Task

from ..ppo.agent import PPO, algorithm, flatten_for_ppo
from ..ppo.ppo import Config


class SelfPlay(PPO):
    """The agent ``self-play``."""

    name = "self-play"

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the task is no seat of a game, or PPO cannot play it."""
        if task.card.game is None:
            raise CannotPlay(
                f"self-play trains on all sides of a game, and {task.card.id} has no other side."
            )
        flatten_for_ppo(all_sides(task))

    def compile(self, task: Task[Any, Any], config: Config) -> tuple[Any, float]:
        """Return the programs for the game of all sides, and the seconds it took to compile them.

        The seconds are 0 if the programs were cached.
        """
        return super().compile(all_sides(task), config)

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Progress | Any]:
        """Train on all sides of the game; the policy at the end plays one seat.

        What sides of a zero-sum game earn cancels, so that returns in training are about zero.
        Errors as for other agents that learn.
        """
        for report in super().train(
            task, seed=seed, budget=budget, hyperparameters=hyperparameters
        ):
            if isinstance(report, Progress):
                yield report
            else:
                seat = flatten_for_ppo(task)
                yield algorithm(report.config).Policy(
                    report.actor, report.moments, seat, report.config
                )


def all_sides(task: Task[Any, Any]) -> Task[Any, Any]:
    """Return the game in which all sides are agents."""
    game: Task[Any, Any] = task.card.joint().build(dtype=task.dtype.name)
    return game

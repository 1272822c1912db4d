"""A task whose reward is shown as several objectives: what it earns, and what that takes.

The same actions give the same episodes as in the plain task, and the card's weights are 1 for the
first objective and 0 for the others, so that scores are those of the plain task. Other weights give
other answers to how much an owner minds the rest (constrained and multi-objective views of one
problem: Hayes et al. 2022, doi:10.1007/s10458-022-09552-y, section 3).

=============  ====================================================================================
observation    that of the plain task
action         that of the plain task
reward         ``(k,)``, or ``(agents, k)``:
               ``reward``, that of the plain task;
               ``cost``, where it has a constraint: its cost, negative;
               ``effort``, where actions are continuous: the mean square of the distance from the
               action that does nothing, in halves of the range, negative;
               ``time``, where it has neither: -1 a step
termination    that of the plain task
success        that of the plain task
context        that of the plain task
=============  ====================================================================================

``card.with_objectives()`` gives its card; ``gymnasium.make(..., objectives="several")`` makes it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.derived_task import DerivedTask
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.reductions import sum_in_order

MAX_EFFORT = 4.0
"""Largest effort: from one end of the range to the other."""


class SeveralObjectives(DerivedTask[Any]):
    """The task of this file's docstring around the plain task."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        if card.without_objectives is None:
            raise ValueError(f"{card.id} has no plain task; make its card by with_objectives().")
        super().__init__(card, card.without_objectives, difficulty=difficulty, dtype=dtype)
        earned = self.plain.reward_space
        lowest = {"cost": -np.inf, "effort": -MAX_EFFORT, "time": -1.0}
        bounds = [(lowest[name], -1.0 if name == "time" else 0.0) for name in card.objectives[1:]]
        self.reward_space = self.box(
            np.stack([earned.low, *(np.full_like(earned.low, low) for low, _ in bounds)], -1),
            np.stack([earned.high, *(np.full_like(earned.high, high) for _, high in bounds)], -1),
        )
        space = self.action_space
        if isinstance(space, spaces.Box):
            #: Action that does nothing, and what makes a distance from it one in halves of ranges.
            self._idle = self.plain.noop_action().astype(self.dtype)
            self._per_half_range = (2 / (space.high - space.low)).astype(self.dtype)

    @property
    def task_of_players(self) -> Any:
        """The plain task, whose observations and actions are the same."""
        return self.plain

    def reward(
        self, state: Any, action: jax.Array, next_state: Any, key: jax.Array, params: Any
    ) -> jax.Array:
        """Return the objectives of the table, ``(k,)`` or ``(agents, k)``."""
        earned = self.plain.reward(state, action, next_state, key, params)
        prices = {
            "cost": lambda: self.plain.cost(state, action, next_state, params),
            "effort": lambda: self._effort(action),
            "time": lambda: 1.0,
        }
        paid = [-jnp.asarray(prices[name](), self.dtype) for name in self.card.objectives[1:]]
        return jnp.stack([earned, *(jnp.broadcast_to(price, earned.shape) for price in paid)], -1)

    def _effort(self, action: jax.Array) -> jax.Array:
        """Return the effort of an action, ``()`` or ``(agents,)``."""
        distance = (action.astype(self.dtype) - self._idle) * self._per_half_range
        by_agent = distance.reshape(*self.plain.reward_space.shape, -1)
        squares = by_agent * by_agent
        return sum_in_order(squares, -1) * np.asarray(1 / squares.shape[-1], self.dtype)

    def rules(self) -> str:
        """Return the rules of the plain task, and what else counts."""
        prices = ", ".join(self.card.objectives[1:])
        return f"{self.plain.rules()}\n\nBesides the reward count: {prices}."

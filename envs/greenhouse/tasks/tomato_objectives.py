"""Grow tomatoes with three objectives: profit, little heat and little carbon dioxide.

The task is ``tomato.py`` except for this table; the same actions give the same seasons.

======================  ============================================================================
reward ``(3,)``         profit of the step, EUR/m2: the reward of ``tomato.py``. Heat into the
                        pipes, kWh/m2, and carbon dioxide dosed, kg/m2: both negative
======================  ============================================================================

The card's weights are 1, 0 and 0, which make the return the profit. Others add levies: a weight on
heat is EUR/kWh on top of the price, one on carbon dioxide EUR/kg.
"""

from __future__ import annotations

import jax

from rlbench_suite.core.task_card import TaskCard

from ..weather.records import STEP
from .lettuce import KWH
from .tomato import Params, State, Tomato, actuators


class TomatoObjectives(Tomato):
    """The task of this file's docstring."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        worst, best = self._reward_range()
        heat, co2 = STEP / KWH * self.limits.heating, 1e-6 * STEP * self.limits.co2
        self.reward_space = self.box([worst, -heat, -co2], [best, 0, 0])

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return (profit, heat, carbon dioxide), ``(3,)``; see the table."""
        used = actuators(next_state.applied, self.limits)
        profit = super().reward(state, action, next_state, key, params)
        return self.stack(profit, -(STEP / KWH) * used.heating, -(1e-6 * STEP) * used.co2)

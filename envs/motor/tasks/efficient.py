"""Control the torque of a permanent-magnet machine with little loss.

Tracking and efficiency are two objectives.

The drive is that of ``real.py`` except for this table: saturated, aged, with losses in copper and
iron. It turns up to twice as fast. There the least copper losses are not the least losses, because
weakening the flux costs current and saves iron losses. Heat flows at the machine's own pace, so
temperatures hardly change in an episode.

======================  ============================================================================
reward ``(2,)``         tracking: as for any drive, in (0, 1]. Efficiency: losses of copper and iron
                        at the end of the step in parts of 4 kW, negative, -3 at most
set point               within +-60 N m
speed (context)         -300 to 300 rad/s, train and test in alternating bands
======================  ============================================================================
"""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from rlbench_suite.core.task_card import TaskCard

from ..machines.frames import DQ, Scalar
from ..setpoints.goals import Goal
from .drive import Params, State
from .real import RealDrive

LOSS_SCALE = 4000.0
"""W, that count as much as all of tracking."""
MAX_LOSS_RATIO = 3.0
"""Times ``LOSS_SCALE`` that are counted."""


class EfficientDrive(RealDrive):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = RealDrive.measures | {"losses": "of copper and iron, W"}
    heating: ClassVar[float] = 1.0

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.reward_space = self.box([0, -MAX_LOSS_RATIO], [1, 0])

    def chosen_goal(self, goal: Goal) -> Goal:
        """Ask for less torque at higher speeds."""
        return goal._replace(low=(-60.0,), high=(60.0,), speeds=(-300.0, 300.0))

    def losses(self, state: State, params: Params) -> Scalar:
        """Return the losses, W."""
        machine, electrical = params.machine, state.electrical
        iron = machine.iron_torque(electrical.flux, state.speed) * state.speed
        return machine.copper_losses(DQ(electrical.d, electrical.q), electrical.winding) + iron

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return (tracking, efficiency), ``(2,)``."""
        tracking = super().reward(state, action, next_state, key, params)
        return self.stack(
            tracking,
            -jnp.minimum(self.losses(next_state, params) * (1 / LOSS_SCALE), MAX_LOSS_RATIO),
        )

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return super().info(state, params) | {"losses": self.losses(state, params)}

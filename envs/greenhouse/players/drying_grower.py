"""The reference player where mould may come: a grower who dries the air while mould is seen."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View

from ..tasks.tomato import Params, Tomato
from ..tasks.tomato_disease import INFECTED_POSITION
from .tomato_grower import TomatoGrower


class DryingGrower(NamedTuple):
    """Set points and gains, and how much drier the air is to be."""

    grower: TomatoGrower = TomatoGrower()
    drier: Float = 12.0
    """%: the vents open at a relative humidity so much lower where mould is seen"""
    warmer: Float = 3.0
    """K: heating targets are so much higher there"""

    @classmethod
    def for_task(cls, task: Tomato) -> DryingGrower:
        """Make the player for the actuators, prices and bounds of a glasshouse."""
        return cls(TomatoGrower.for_task(task))

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the setting, shape ``(3,)``."""
        mould, usual = view.observation[INFECTED_POSITION] > 0, self.grower
        drier, warmer = jnp.where(mould, self.drier, 0.0), jnp.where(mould, self.warmer, 0.0)
        today = usual._replace(
            damp=usual.damp - drier,
            warm_day=usual.warm_day + warmer,
            warm_night=usual.warm_night + warmer,
        )
        return today.act(memory, view, key)

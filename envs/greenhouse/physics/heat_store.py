"""A tank of hot water between boiler and pipes: it charges, discharges and cools, in closed form.

The heat obeys ``d heat/dt = charge - discharge - heat / COOLING``, so a period of constant flows
has an exact end. A boiler does not charge beyond the capacity, and pipes take no more than there
is: flows are cut to what a period allows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from rlbench_suite.core.arrays import Float

CAPACITY = 4e6
"""J/m2: 190 m3 of water a hectare over 50 K; chosen"""
COOLING = 50 * 86_400.0
"""s: time in which a tank left alone keeps 1/e of its heat; chosen, 2 % a day"""


class Stored(NamedTuple):
    """Result of a period."""

    heat: Float
    """J/m2"""
    charged: Float
    discharged: Float
    """W/m2: what flowed, after the cuts"""


def pass_time(heat: Any, charge: Any, discharge: Any, duration: float) -> Stored:
    """Return the heat after ``duration`` seconds, and what flowed after the cuts.

    Boiler and pipes ask for constant flows, W/m2.
    """
    persistence = math.exp(-duration / COOLING)
    # Worth of a constant flow of 1 W/m2 at the end, J.
    seconds = -math.expm1(-duration / COOLING) * COOLING
    discharged = jnp.minimum(discharge, charge + heat * (persistence / seconds))
    charged = jnp.minimum(
        charge, discharged + jnp.maximum(0.0, CAPACITY - persistence * heat) * (1 / seconds)
    )
    end = jnp.clip(persistence * heat + seconds * (charged - discharged), 0.0, CAPACITY)
    return Stored(end, charged, discharged)

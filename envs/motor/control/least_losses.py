"""The reference player of efficient torque.

It is the cascade of ``real_cascade.py`` with the currents of least losses.

For each inner torque and speed it chooses, among all currents that make the torque on the data
sheet's flux map, those with the least sum of copper and iron losses. They come from a table for a
winding at 110 degrees Celsius.

Source: Morimoto, Tong, Takeda & Hirasa 1994, Loss minimization control of PMSM drives, IEEE
Transactions on Industrial Electronics 41(5); here on a saturated machine, by search.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.ndimage import map_coordinates

from ..machines.frames import DQ, Scalar, Values
from ..machines.iron_losses import IronLosses
from ..plants.real_pmsm import RealPMSM
from ..tasks.drive import State
from .real_cascade import RealCascade

TORQUE_STEP = 2.0
"""N m, between entries of the table."""
SPEED_STEP = 25.0
"""rad/s, between entries of the table."""
TORQUES = np.arange(0, 111, TORQUE_STEP)
"""N m"""
SPEEDS = np.arange(0, 326, SPEED_STEP)
"""rad/s"""
WINDING_TEMPERATURE = 110.0
"""Degrees Celsius."""
WEAKENING_CURRENTS = np.arange(-300.0, 1.0, 2.0)
"""A, of i_d."""


@cache
def least_losses() -> DQ:
    """Return i_d and i_q, A, shape ``(torques, speeds)``, for non-negative torques and speeds.

    It is computed on the host.
    """
    plant = RealPMSM()
    machine, flux_map = plant.nominal, plant.nominal_map
    across = np.arange(0.0, 401.0, 1.0)
    grid = DQ(*np.meshgrid(WEAKENING_CURRENTS, across, indexing="ij"))
    torques = machine.inner_torque(flux_map.flux(grid), grid)
    # (weakening, torques)
    i_q = np.array([np.interp(TORQUES, torque, across) for torque in torques])
    current = DQ(np.broadcast_to(WEAKENING_CURRENTS[:, None], i_q.shape), i_q)
    flux = flux_map.flux(current)
    copper = machine.copper_losses(current, WINDING_TEMPERATURE)[..., None]
    electrical = machine.pole_pairs * SPEEDS
    iron = (
        (flux.d**2 + flux.q**2)[..., None]
        * (IronLosses().hysteresis + IronLosses().eddy * electrical)
        * electrical
    )
    losses = copper + iron  # (weakening, torques, speeds)
    best = losses.argmin(0).clip(1, WEAKENING_CURRENTS.size - 2)
    lower, middle, upper = (np.take_along_axis(losses, best[None] + k, 0)[0] for k in (-1, 0, 1))
    # The lowest point of the parabola through the best entry and its neighbours, which lie 2 A
    # apart.
    i_d = np.minimum(WEAKENING_CURRENTS[best] + (lower - upper) / (lower - 2 * middle + upper), 0)
    rows = np.arange(TORQUES.size)
    columns = [
        [np.interp(i_d[row, k], WEAKENING_CURRENTS, i_q[:, row]) for k in range(SPEEDS.size)]
        for row in rows
    ]
    return DQ(i_d, np.array(columns))


class LeastLosses(RealCascade):
    """The player."""

    def _for_torque(self, torque: Scalar, state: State) -> Values:
        """Look up the currents of least losses, A."""
        table: Any = least_losses()
        coordinates = [jnp.abs(torque) * (1 / TORQUE_STEP), jnp.abs(state.speed) * (1 / SPEED_STEP)]
        d, q = (
            map_coordinates(jnp.asarray(axis), coordinates, order=1, mode="nearest")
            for axis in table
        )
        return d, jnp.sign(torque) * q

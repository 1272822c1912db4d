"""Players of WaterReservoir: a dynamic programme, two rules of thumb, and a constant share."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float, FloatArray, Int
from rlbench_suite.core.policy import View, no_memory, privileged_player

from .water_reservoir import (
    CAPACITY,
    FLOOD_LEVEL,
    INFLOW_DEVIATION,
    SAFE_RELEASE,
    WATER_DEMAND,
    Params,
    WaterReservoir,
    costs_of,
    expected_inflow,
    missing_energy,
    possible_release,
    share_of,
)

GRID = 2.5
"""Distance of two levels of the programme, m."""
STORED_LEVELS = np.arange(0, CAPACITY + GRID / 2, GRID)
"""Levels that a release may leave, m."""
LEVELS = np.arange(0, 220 + GRID / 2, GRID)
"""Levels before a release, m."""
CASES = 8
"""Cases of inflow, of equal probability."""
DEVIATIONS = tuple(NormalDist().inv_cdf((case + 0.5) / CASES) for case in range(CASES))
"""Quantiles of inflow, in standard deviations."""
MARGIN = 8
"""Cells below level 0 that negative inflow may reach."""
SHARES = {
    "seasonal": {2: 1.0, 3: 0.8, 4: 0.7},
    "published": {2: 1.0, 3: 1.0, 4: 1.0},
}
"""Best constant actions in steps of 0.1, by inflow and number of aims."""


def costs_to_come(task: WaterReservoir, params: Params) -> FloatArray:
    """Return the least expected cost of all to come but release and energy of the month.

    It is ``(months, 41)``, by month and by the level that the release leaves.
    """
    stored = jnp.asarray(STORED_LEVELS, task.dtype)
    release = (LEVELS[:, None] - STORED_LEVELS).astype(task.dtype)

    def step_back(costs: FloatArray, month: Int) -> tuple[FloatArray, FloatArray]:
        below = jnp.broadcast_to(costs[0], (MARGIN,))
        padded = jnp.concatenate([below, costs])
        expected = expected_inflow(month, params)
        future, missing = jnp.zeros_like(stored), jnp.zeros_like(release)
        for deviation in DEVIATIONS:
            inflow = expected + INFLOW_DEVIATION * deviation
            cells = jnp.floor(inflow * (1 / GRID))
            first = cells.astype(jnp.int32) + MARGIN
            lower = jax.lax.dynamic_slice(padded, (first,), stored.shape)
            upper = jax.lax.dynamic_slice(padded, (first + 1,), stored.shape)
            level = jnp.maximum(stored + inflow, 0)
            flood = params.flood_weight * jnp.maximum(level - FLOOD_LEVEL, 0)
            future += flood + lower + (inflow * (1 / GRID) - cells) * (upper - lower)
            if task.aims > 2:
                missing += missing_energy(release, level)
        future *= 1 / CASES
        total = immediate_costs(task, release, missing * (1 / CASES), params) + future
        return jnp.where(release >= 0, total, jnp.inf).min(1), future

    months = jnp.arange(task.card.horizon)
    end = jnp.zeros(len(LEVELS), task.dtype)
    return jax.lax.scan(step_back, end, months, reverse=True)[1]


def immediate_costs(
    task: WaterReservoir, release: Float, missing: Float, params: Params
) -> FloatArray:
    """Return the weighted costs of releases and of missing energy."""
    _, shortage, _, excess = costs_of(release, release)
    costs = [shortage, params.energy_weight * missing, params.downstream_weight * excess]
    return sum(costs[1 : task.aims - 1], costs[0])


@privileged_player
class ReservoirProgramme(eqx.Module):
    """Releases what stochastic dynamic programming on a grid of levels says.

    It reads from the params only what is observed. This is how reservoirs are operated in practice
    (Yeh 1985, doi:10.1029/WR021i012p01797).
    """

    task: WaterReservoir = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: WaterReservoir) -> ReservoirProgramme:
        """Make the player of a task."""
        return cls(task)

    def initial(self, params: Params) -> FloatArray:
        """Return the costs to come, ``(months, 41)``."""
        return costs_to_come(self.task, params)

    def act(self, memory: FloatArray, view: View, key: jax.Array) -> tuple[jax.Array, FloatArray]:
        """Return the best release as an action, ``(1,)``, and the costs."""
        params, months = view.params, view.state.months
        level = view.state.reservoir.level
        # Costs have kinks at the demand and at the safe release.
        releases = jnp.concatenate(
            [level - STORED_LEVELS, jnp.asarray([WATER_DEMAND, SAFE_RELEASE], level.dtype)]
        )
        releases = possible_release(releases, level)
        stored = level - releases
        missing = jnp.zeros_like(releases)
        if self.task.aims > 2:
            expected = expected_inflow(months, params)
            for deviation in DEVIATIONS:
                inflow = expected + INFLOW_DEVIATION * deviation
                missing += missing_energy(releases, jnp.maximum(stored + inflow, 0))
        costs = memory[jnp.minimum(months, self.task.card.horizon - 1)]
        place = jnp.clip(stored * (1 / GRID), 0, len(STORED_LEVELS) - 1)
        cell = jnp.minimum(place.astype(jnp.int32), len(STORED_LEVELS) - 2)
        future = costs[cell] + (place - cell) * (costs[cell + 1] - costs[cell])
        total = immediate_costs(self.task, releases, missing * (1 / CASES), params) + future
        best = releases[jnp.argmin(total)]
        return share_of(best, level)[None], memory


@privileged_player
class DemandRelease(eqx.Module):
    """Releases the demand of irrigation each month, as far as possible."""

    @classmethod
    def for_task(cls, task: WaterReservoir) -> Self:
        """Make the player."""
        return cls()

    initial = no_memory

    def monthly_release(self, params: Params) -> Float | float:
        """Return the release of each month, m^3."""
        return WATER_DEMAND

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the release as an action, ``(1,)``."""
        level = view.state.reservoir.level
        return share_of(self.monthly_release(view.params), level)[None], memory


@privileged_player
class SteadyRelease(DemandRelease):
    """Releases the demand each month, or the mean inflow if that is more.

    It reads from the params only what is observed.
    """

    def monthly_release(self, params: Params) -> Float:
        """Return the release of each month, m^3."""
        return jnp.maximum(params.mean_inflow, WATER_DEMAND)


class SteadySluice(eqx.Module):
    """Takes the best constant action of training contexts, a share of what can be released."""

    share: FloatArray

    @classmethod
    def for_task(cls, task: WaterReservoir) -> SteadySluice:
        """Return the player with the share for the settings of a task."""
        share = SHARES[task.card.settings["inflow"]][task.aims]
        return cls(np.array([share], task.dtype))

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the share."""
        return jnp.asarray(self.share), memory

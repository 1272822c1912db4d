"""The reference player of ``TemporalLogic``: goes from region to region by short simulations over maps of distances.

At the start of an episode it orders the regions of the specification and finds, for each, the length of the shortest
way from everywhere around the hazards (dynamic programming on a grid, Dijkstra 1959). At each step it simulates some
settings of pedals and wheel for 1.6 s and takes the one that ends nearest along that way without a collision: the
dynamic window approach of Fox, Burgard & Thrun 1997, doi:10.1109/100.580977.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.policy import View

from .temporal_logic import (
    CELL,
    HARDEST,
    HAZARDS,
    RADIUS,
    SHARPEST,
    SIDE,
    STEP,
    Params,
    Pose,
    TemporalLogic,
    drive,
    predicates,
)

SPACING = 0.5
"""m between points of the map."""
POINTS = int(SIDE / SPACING)
SWEEPS = 80
FAR = 100.0
"""m: length of a way that is not found or not free."""
ORDERS = np.array([[0, 0, 0], [0, 0, 0], [0, 1, 1], [0, 1, 2], [0, 1, 1], [0, 0, 0], [0, 1, 1]])
"""Regions of each specification, one after another."""
FREE_TO_CHOOSE = np.array([False, True, True, False, False, False, False])
"""Whether A and B may change places: then the nearer one comes first."""
LENGTHS = np.array([1, 1, 2, 3, 2, 1, 2])
STAYS, KEEPS_OUT = 5, 4
"""Specifications of a stay in A, and of B forbidden before A."""
SETTINGS = np.array(list(itertools.product((1.0, 0.35, -0.35), np.linspace(-1, 1, 9))))
"""Speed as a part of the wanted one, and steering, ``(27, 2)``."""
LOOK = 8
"""Steps of a simulation."""


class Memory(NamedTuple):
    """Plan and progress."""

    order: jax.Array
    """int32 ``(3,)``"""
    ways: jax.Array
    """``(3, 40, 40)`` m to each of them, [y, x]."""
    stage: jax.Array
    """int32: regions that are done."""


class SpecificationDriver(NamedTuple):
    """Distances that it keeps, and its speed."""

    margin: Any = 0.15
    """m from hazards in simulations"""
    inside: Any = 0.15
    """m within a region that counts as there"""
    fastest: Any = 2.6
    """m/s"""

    @classmethod
    def for_task(cls, task: TemporalLogic) -> SpecificationDriver:
        """Make the player."""
        return cls()

    def initial(self, params: Params) -> Memory:
        """Return the plan."""
        at = SPACING * (np.arange(POINTS) + 0.5)
        grid_y, grid_x = (jnp.asarray(axis, params.start.x.dtype) for axis in np.meshgrid(at, at, indexing="ij"))
        blocked = jnp.zeros_like(grid_x, bool)
        for i in range(HAZARDS):
            room = params.hazard_radius[i] + 0.25
            blocked |= (grid_x - params.hazard_x[i]) ** 2 + (grid_y - params.hazard_y[i]) ** 2 < room**2
        order = jnp.asarray(ORDERS, jnp.int32)[params.specification]
        first, second = (
            (params.region_x[i] - params.start.x) ** 2 + (params.region_y[i] - params.start.y) ** 2 for i in (0, 1)
        )
        swap = jnp.asarray(FREE_TO_CHOOSE)[params.specification] & (second < first)
        order = jnp.where(swap, 1 - order, order)
        ways = []
        for stage in range(3):
            x, y = params.region_x[order[stage]], params.region_y[order[stage]]
            away = jnp.sqrt((grid_x - x) ** 2 + (grid_y - y) ** 2)
            out = (grid_x - params.region_x[1]) ** 2 + (grid_y - params.region_y[1]) ** 2 < (RADIUS + 0.25) ** 2
            shut = blocked | (out & (params.specification == KEEPS_OUT) & (stage == 0))
            ways.append(lengths(jnp.where(away < RADIUS / 2, away, FAR), shut))
        return Memory(order, jnp.stack(ways), jnp.int32(0))

    def act(self, memory: Memory, view: View, key: jax.Array) -> tuple[jax.Array, Memory]:
        """Return acceleration and steering, shape ``(2,)``."""
        params: Params = view.params
        car: Pose = view.state.car
        last = jnp.asarray(LENGTHS)[params.specification]

        def depth(stage: jax.Array) -> jax.Array:
            goal = memory.order[jnp.minimum(stage, 2)]
            x, y = params.region_x[goal], params.region_y[goal]
            return RADIUS - jnp.sqrt((car.x - x) ** 2 + (car.y - y) ** 2)

        stays = params.specification == STAYS
        done = (depth(memory.stage) > self.inside) & (memory.stage < last) & ~stays
        stage = memory.stage + done
        way = memory.ways[jnp.minimum(stage, 2)]
        near = jnp.maximum(RADIUS - depth(stage), 0.0)
        wanted = jnp.where(stays, jnp.minimum(self.fastest, jnp.maximum(1.5 * (near - 0.3), 0.0)), self.fastest)
        wanted = jnp.where(stage >= last, 0.0, wanted)

        share, wheel = jnp.asarray(SETTINGS.T, car.x.dtype)
        now = Pose(*(jnp.broadcast_to(value, share.shape) for value in car))
        cost = jnp.zeros_like(share)
        free = jnp.ones_like(share, bool)
        keeps_out = (params.specification == KEEPS_OUT) & (stage == 0)
        first = jnp.clip((share * wanted - now.v) / STEP, -HARDEST, HARDEST)
        for step in range(LOOK):
            push = jnp.clip((share * wanted - now.v) / STEP, -HARDEST, HARDEST)
            now = drive(now, push, SHARPEST * wheel)
            values = jax.vmap(predicates, (0, None))(now, params)
            room = jnp.where(keeps_out, jnp.minimum(values["free"], -values["B"]), values["free"])
            crashed = free & (room < self.margin)
            cost = cost + jnp.where(crashed, FAR * (LOOK - step), 0.0)
            free = free & ~crashed
        ahead = interpolated(way, now.x + 0.5 * jnp.cos(now.theta), now.y + 0.5 * jnp.sin(now.theta))
        here = interpolated(way, now.x, now.y)
        best = jnp.argmin(cost + 0.7 * here + 0.3 * ahead)
        resting = (wanted == 0) & (jnp.abs(car.v) < HARDEST * STEP)
        push = jnp.where(resting, -car.v / STEP, first[best])
        return jnp.stack([push / HARDEST, wheel[best]]), memory._replace(stage=stage)


def lengths(seeds: jax.Array, blocked: jax.Array) -> jax.Array:
    """Return the lengths of shortest ways on the map, m, by steps to eight neighbours.

    Args:
        seeds: m, ``(40, 40)``: lengths that are known, FAR elsewhere.
        blocked: bool ``(40, 40)``: points that no way may cross.
    """

    def sweep(_: int, now: jax.Array) -> jax.Array:
        padded = jnp.pad(jnp.where(blocked, FAR, now), 1, constant_values=FAR)
        for dy, dx in itertools.product((-1, 0, 1), repeat=2):
            step = SPACING * math.hypot(dx, dy)
            now = jnp.minimum(now, padded[1 + dy : 1 + dy + POINTS, 1 + dx : 1 + dx + POINTS] + step)
        return now

    found = jax.lax.fori_loop(0, SWEEPS, sweep, seeds)
    return jnp.where(blocked, found + CELL, found)


def interpolated(way: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the length at places between the points of a map, bilinear."""
    column, row = (jnp.clip(value / SPACING - 0.5, 0.0, POINTS - 1.001) for value in (x, y))
    i, j = jnp.floor(column).astype(jnp.int32), jnp.floor(row).astype(jnp.int32)
    u, v = column - i, row - j
    lower = (1 - u) * way[j, i] + u * way[j, i + 1]
    upper = (1 - u) * way[j + 1, i] + u * way[j + 1, i + 1]
    return (1 - v) * lower + v * upper

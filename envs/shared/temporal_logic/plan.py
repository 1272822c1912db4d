"""Plans for the specifications of ``specifications.py``.

A plan is an order of regions, and a map of shortest ways to each.

The length of the shortest way from everywhere around the hazards comes from dynamic programming on
a grid (Dijkstra 1959), by sweeps of steps to eight neighbours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .specifications import REGIONS, SPECS

POINTS = 40  # Points of a map along each side
SWEEPS = 80
UNREACHABLE = 100.0  # m: length of a way that does not exist or is not free
# Regions of each specification in the order of the visits, ``(specifications, 3)``; the last one
# again at the end.
ORDERS = np.array(
    [
        ["ABC".index(region) for region in spec.visit.ljust(REGIONS, spec.visit[-1])]
        for spec in SPECS
    ]
)
LENGTHS = np.array([len(spec.visit) for spec in SPECS])
# Specifications in which A and B may change places: then the nearer one comes first.
EITHER_ORDER = np.array([spec.either_order for spec in SPECS])
STAYS = np.array([spec.stay for spec in SPECS])
# Number of first stages in which each specification forbids A, B, C.
FORBIDDEN_STAGES = np.array([[spec.avoid.get(region, 0) for region in "ABC"] for spec in SPECS])


class Plan(NamedTuple):
    """Plan and progress."""

    order: jax.Array  # int32 ``(3,)``
    ways: jax.Array  # ``(3, 40, 40)`` m to each of them, [y, x]
    stage: jax.Array  # int32: regions that are done


def map_spacing(side: float) -> float:
    """Return the distance of neighbours on the map of an arena (m)."""
    return side / POINTS


def make_plan(
    specification: jax.Array,
    start: tuple[jax.Array, jax.Array],
    regions: tuple[jax.Array, jax.Array],
    hazards: tuple[jax.Array, jax.Array, jax.Array],
    *,
    side: float,
    radius: float,
    room: float,
) -> Plan:
    """Make a plan at the start.

    Args:
        specification: its index.
        start: x and y (m).
        regions: x and y, ``(3,)`` each (m).
        hazards: x, y and radius, ``(n,)`` each (m).
        side: of the arena (m).
        radius: of regions (m).
        room: distance that ways keep from hazards and from forbidden regions (m).
    """
    start_x, start_y = start
    region_x, region_y = regions
    hazard_x, hazard_y, hazard_radius = hazards
    axis = map_spacing(side) * (np.arange(POINTS) + 0.5)
    grid_y, grid_x = (
        jnp.asarray(grid, start_x.dtype) for grid in np.meshgrid(axis, axis, indexing="ij")
    )
    blocked = jnp.zeros_like(grid_x, bool)
    for i in range(hazard_x.shape[0]):
        wide = hazard_radius[i] + room
        blocked |= (grid_x - hazard_x[i]) ** 2 + (grid_y - hazard_y[i]) ** 2 < wide**2
    order = jnp.asarray(ORDERS, jnp.int32)[specification]
    first, second = ((region_x[i] - start_x) ** 2 + (region_y[i] - start_y) ** 2 for i in (0, 1))
    swap = jnp.asarray(EITHER_ORDER)[specification] & (second < first)
    order = jnp.where(swap, 1 - order, order)
    ways = []
    for stage in range(3):
        x, y = region_x[order[stage]], region_y[order[stage]]
        distance = jnp.sqrt((grid_x - x) ** 2 + (grid_y - y) ** 2)
        closed = blocked
        for i, forbids in enumerate(forbidden_regions(specification, jnp.int32(stage))):
            in_region = (grid_x - region_x[i]) ** 2 + (grid_y - region_y[i]) ** 2 < (
                radius + room
            ) ** 2
            closed = closed | (in_region & forbids)
        ways.append(
            way_lengths(
                jnp.where(distance < radius / 2, distance, UNREACHABLE), closed, map_spacing(side)
            )
        )
    return Plan(order, jnp.stack(ways), jnp.int32(0))


def forbidden_regions(specification: jax.Array, stage: jax.Array) -> jax.Array:
    """Say of A, B and C whether a specification forbids them at a stage, bool ``(3,)``."""
    return stage < jnp.asarray(FORBIDDEN_STAGES, jnp.int32)[specification]


def clearance(values: Mapping[str, Any], specification: jax.Array, stage: jax.Array) -> jax.Array:
    """Return the distance (m) to hazards, walls and regions that are forbidden at a stage.

    ``values`` are those of the predicates.
    """
    distance = values["free"]
    for name, forbids in zip("ABC", forbidden_regions(specification, stage), strict=True):
        distance = jnp.where(forbids, jnp.minimum(distance, -values[name]), distance)
    return distance


def way_lengths(seeds: jax.Array, blocked: jax.Array, spacing: float) -> jax.Array:
    """Return the lengths of shortest ways on the map, m, by steps to eight neighbours.

    Args:
        seeds: m, ``(40, 40)``: lengths where the way ends, UNREACHABLE elsewhere.
        blocked: bool ``(40, 40)``: points that no way may cross.
        spacing: of the points (m).
    """

    def sweep(_: int, length: jax.Array) -> jax.Array:
        padded = jnp.pad(jnp.where(blocked, UNREACHABLE, length), 1, constant_values=UNREACHABLE)
        for dy, dx in itertools.product((-1, 0, 1), repeat=2):
            step = spacing * math.hypot(dx, dy)
            length = jnp.minimum(
                length, padded[1 + dy : 1 + dy + POINTS, 1 + dx : 1 + dx + POINTS] + step
            )
        return length

    length = jax.lax.fori_loop(0, SWEEPS, sweep, seeds)
    return jnp.where(blocked, length + 10 * spacing, length)


def interpolate(lengths: jax.Array, x: jax.Array, y: jax.Array, spacing: float) -> jax.Array:
    """Interpolate a map of lengths bilinearly between its points."""
    column, row = (jnp.clip(value / spacing - 0.5, 0.0, POINTS - 1.001) for value in (x, y))
    i, j = jnp.floor(column).astype(jnp.int32), jnp.floor(row).astype(jnp.int32)
    u, v = column - i, row - j
    lower = (1 - u) * lengths[j, i] + u * lengths[j, i + 1]
    upper = (1 - u) * lengths[j + 1, i] + u * lengths[j + 1, i + 1]
    return (1 - v) * lower + v * upper

"""The reference player of ``TemporalLogic``: short simulations over maps of distances to regions.

At the start of an episode it plans the order of regions and the ways to them
(``shared/temporal_logic/plan.py``). At each step it simulates some settings of pedals and wheel for
1.6 s and takes the one that ends nearest along that way without a collision: the dynamic window
approach of Fox, Burgard & Thrun 1997, doi:10.1109/100.580977.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View, privileged_player

from ..shared.temporal_logic.plan import (
    LENGTHS,
    STAYS,
    UNREACHABLE,
    Plan,
    clearance,
    interpolate,
    make_plan,
    map_spacing,
)
from .temporal_logic import (
    MAX_ACCELERATION,
    MAX_STEERING,
    REGION_RADIUS,
    SIDE,
    STEP,
    Params,
    Pose,
    TemporalLogic,
    drive,
    predicates,
)

SPACING = map_spacing(SIDE)
"""m between points of the map."""
SETTINGS = np.array(list(itertools.product((1.0, 0.35, -0.35), np.linspace(-1, 1, 9))))
"""Speed as a part of the wanted one, and steering, ``(27, 2)``."""
LOOK_AHEAD_STEPS = 8
"""Steps of a simulation."""


@privileged_player
class SpecificationDriver(NamedTuple):
    """Distances that it keeps, and its speed."""

    margin: Float = 0.15
    """m from hazards in simulations"""
    inside: Float = 0.15
    """m within a region that counts as there"""
    fastest: Float = 2.6
    """m/s"""

    @classmethod
    def for_task(cls, task: TemporalLogic) -> SpecificationDriver:
        """Make the player."""
        return cls()

    def initial(self, params: Params) -> Plan:
        """Return the plan."""
        return make_plan(
            params.specification,
            (params.start.x, params.start.y),
            (params.region_x, params.region_y),
            (params.hazard_x, params.hazard_y, params.hazard_radius),
            side=SIDE,
            radius=REGION_RADIUS,
            room=0.25,
        )

    def act(self, memory: Plan, view: View, key: jax.Array) -> tuple[jax.Array, Plan]:
        """Return acceleration and steering, shape ``(2,)``."""
        params: Params = view.params
        car: Pose = view.state.car
        last = jnp.asarray(LENGTHS)[params.specification]

        def depth(stage: jax.Array) -> jax.Array:
            goal = memory.order[jnp.minimum(stage, 2)]
            x, y = params.region_x[goal], params.region_y[goal]
            return REGION_RADIUS - jnp.sqrt((car.x - x) ** 2 + (car.y - y) ** 2)

        stays = jnp.asarray(STAYS)[params.specification]
        arrived = (depth(memory.stage) > self.inside) & (memory.stage < last) & ~stays
        stage = memory.stage + arrived
        lengths = memory.ways[jnp.minimum(stage, 2)]
        centre_distance = jnp.maximum(REGION_RADIUS - depth(stage), 0.0)
        speed_goal = jnp.where(
            stays,
            jnp.minimum(self.fastest, jnp.maximum(1.5 * (centre_distance - 0.3), 0.0)),
            self.fastest,
        )
        speed_goal = jnp.where(stage >= last, 0.0, speed_goal)

        share, wheel = jnp.asarray(SETTINGS.T, car.x.dtype)
        poses = Pose(*(jnp.broadcast_to(value, share.shape) for value in car))
        cost = jnp.zeros_like(share)
        free = jnp.ones_like(share, bool)
        first = jnp.clip((share * speed_goal - poses.v) / STEP, -MAX_ACCELERATION, MAX_ACCELERATION)
        for step in range(LOOK_AHEAD_STEPS):
            push = jnp.clip(
                (share * speed_goal - poses.v) / STEP, -MAX_ACCELERATION, MAX_ACCELERATION
            )
            poses = drive(poses, push, MAX_STEERING * wheel)
            values = jax.vmap(predicates, (0, None))(poses, params)
            crashed = free & (clearance(values, params.specification, stage) < self.margin)
            cost = cost + jnp.where(crashed, UNREACHABLE * (LOOK_AHEAD_STEPS - step), 0.0)
            free = free & ~crashed
        way_length_ahead = interpolate(
            lengths,
            poses.x + 0.5 * jnp.cos(poses.theta),
            poses.y + 0.5 * jnp.sin(poses.theta),
            SPACING,
        )
        way_length = interpolate(lengths, poses.x, poses.y, SPACING)
        best = jnp.argmin(cost + 0.7 * way_length + 0.3 * way_length_ahead)
        resting = (speed_goal == 0) & (jnp.abs(car.v) < MAX_ACCELERATION * STEP)
        push = jnp.where(resting, -car.v / STEP, first[best])
        return jnp.stack([push / MAX_ACCELERATION, wheel[best]]), memory._replace(stage=stage)

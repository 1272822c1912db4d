"""The reference player of ``TemporalLogicQuadcopter``.

It flies from region to region by maps of shortest ways.

At the start of an episode it plans the order of regions and the level ways to them
(``shared/temporal_logic/plan.py``), round all hazards as if they were pillars. At each step it
looks at level velocities in sixteen directions, takes a response of first order to each for a
second, and chooses the one that ends nearest along the way without a collision: the dynamic window
approach of Fox, Burgard & Thrun 1997, doi:10.1109/100.580977. The height follows that of the
region. The outer loops of the family's flight controller turn the velocity into thrust and body
rates, with gains for ten commands a second.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View, privileged_player

from ...shared.temporal_logic.plan import (
    LENGTHS,
    STAYS,
    UNREACHABLE,
    Plan,
    clearance,
    interpolate,
    make_plan,
    map_spacing,
)
from ..control import flight_controller
from ..control.flight_controller import Velocity
from ..physics.rigid_body import GRAVITY, RigidBody, rotation_matrix
from .commands.by_command import TILT_RATE, TURN_RATE
from .temporal_logic import REGION_RADIUS, SIDE, Params, TemporalLogicQuadcopter, predicates

SPACING = map_spacing(SIDE)
"""m between points of the map."""
DIRECTIONS = np.linspace(0, 2 * math.pi, 16, endpoint=False)
VELOCITIES = np.concatenate([np.zeros((2, 1)), *(
    share * np.stack([np.cos(DIRECTIONS), np.sin(DIRECTIONS)]) for share in (1.0, 0.4)
)], axis=1)  # fmt: skip
"""``(2, 33)``: velocities along x and y, by the highest."""
LOOK_AHEAD_TIMES = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
"""s: times at which it looks ahead."""
MAX_CLIMB_RATE = 1.5
"""m/s upward or downward"""


@privileged_player
class SpecificationPilot(NamedTuple):
    """Distances that it keeps, its speed, and gains."""

    margin: Float = 0.12
    """m from hazards in simulations"""
    inside: Float = 0.1
    """m within a region that counts as there"""
    fastest: Float = 2.5
    """m/s"""
    climbing: Float = 1.5
    """1/s: vertical velocity by height that is missing"""
    velocity: Float = 2.2
    """1/s: acceleration by error in velocity"""
    tilt: Float = 6.0
    """1/s: body rate by angle of tilt"""

    @classmethod
    def for_task(cls, task: TemporalLogicQuadcopter) -> SpecificationPilot:
        """Make the player."""
        return cls()

    def initial(self, params: Params) -> Plan:
        """Return the plan."""
        return make_plan(
            params.specification,
            (params.start_x, params.start_y),
            (params.region_x, params.region_y),
            (params.hazard_x, params.hazard_y, params.hazard_radius),
            side=SIDE,
            radius=REGION_RADIUS,
            room=0.15,
        )

    def act(self, memory: Plan, view: View, key: jax.Array) -> tuple[jax.Array, Plan]:
        """Return thrust and body rates, shape ``(4,)``."""
        params: Params = view.params
        body: RigidBody = view.state.vehicle.body
        last = jnp.asarray(LENGTHS)[params.specification]
        values = predicates(body.x, body.y, body.z, params)
        depths = jnp.stack([values[name] for name in "ABC"])

        stays = jnp.asarray(STAYS)[params.specification]
        goal = memory.order[jnp.minimum(memory.stage, 2)]
        stage = memory.stage + ((depths[goal] > self.inside) & (memory.stage < last) & ~stays)
        goal = memory.order[jnp.minimum(stage, 2)]
        finished = stage >= last
        distance = REGION_RADIUS - depths[goal]
        speed = jnp.where(
            stays, jnp.minimum(self.fastest, 1.5 * jnp.maximum(distance - 0.1, 0.0)), self.fastest
        )
        rise = jnp.where(finished, 0.0, self.climbing * (params.region_z[goal] - body.z))
        rise = jnp.clip(rise, -MAX_CLIMB_RATE, MAX_CLIMB_RATE)

        vx, vy = speed * jnp.asarray(VELOCITIES, body.x.dtype)
        cost = jnp.where(finished, jnp.sqrt(vx * vx + vy * vy), 0.0)
        clear = jnp.ones_like(cost, bool)
        x, y = body.x, body.y
        for number, time in enumerate(LOOK_AHEAD_TIMES):
            slip = (1 - jnp.exp(-self.velocity * time)) / self.velocity
            x = body.x + vx * time + (body.vx - vx) * slip
            y = body.y + vy * time + (body.vy - vy) * slip
            z = body.z + rise * time + (body.vz - rise) * slip
            values_there = predicates(x, y, z, params)
            crashed = clear & (clearance(values_there, params.specification, stage) < self.margin)
            cost = cost + jnp.where(crashed, UNREACHABLE * (len(LOOK_AHEAD_TIMES) - number), 0.0)
            clear = clear & ~crashed
        lengths = memory.ways[jnp.minimum(stage, 2)]
        best = jnp.argmin(cost + jnp.where(finished, 0.0, interpolate(lengths, x, y, SPACING)))

        rotation = rotation_matrix(body)
        turn = -flight_controller.YAW_GAIN * jnp.arctan2(rotation[3], rotation[0])
        goal_velocity = Velocity(vx[best], vy[best], rise, turn)
        rates = flight_controller.towards_velocity(body, goal_velocity, self.velocity, self.tilt)
        action = [
            rates.thrust / GRAVITY - 1,
            rates.wx / TILT_RATE,
            rates.wy / TILT_RATE,
            rates.wz / TURN_RATE,
        ]
        return jnp.clip(jnp.stack(action), -1, 1), memory._replace(stage=stage)

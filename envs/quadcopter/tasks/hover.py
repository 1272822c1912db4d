"""Reach and hold a hover at the origin, with four rotor commands.

Attitude and velocity are random at the start.

Dynamics: ``physics/dynamics.py``, one Runge-Kutta step of 10 ms a step of the episode. Nothing is
random after the start. Source of the task: Eschmann, Albani & Loianno 2024 (Learning to Fly in
Seconds), arXiv:2311.13081.

======================  ============================================================================
action ``(4,)``         commanded speed of rotor 1..4: -1 is standstill, +1 is 21,702 RPM, linear
                        between
observation ``(22,)``   position (3, m), rotation matrix body to world (9, row by row), velocity in
                        the world frame (3, m/s), angular velocity in the body frame (3, rad/s),
                        rotor speeds (4, on the action's scale). The context is not shown
reward                  exp(-cost) in (0, 1], cost = 5 |position|^2 + 5 (1 - q_w^2) + 0.01
                        |velocity|^2 + 0.01 |action - 0.334|^2: the paper's cost. The reward is
                        positive, so ending early never pays. A context may weigh its terms
                        otherwise
terminated              a crash: more than 0.6 m from the origin along an axis, or an angular
                        velocity that a Crazyflie's gyroscope cannot measure (2,000 deg/s about an
                        axis)
success                 within 0.1 m of the origin, slower than 0.1 m/s
start                   position within 0.2 m and velocity within 1 m/s along each axis, attitude
                        turned by up to 90 degrees about any axis, angular velocity within 1 rad/s
                        about each axis, rotors at the speed that would carry the weight
context                 mass +-20 %, inertia +-20 %, thrust coefficient +-10 %, torque coefficient
                        +-20 %, motor time constant +-25 %. Train and test masses lie in alternating
                        bands of 1 % of the nominal mass, so a test asks for interpolation
======================  ============================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import weights
from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from ..physics import dynamics
from ..physics.data_sheet import SHIPPED, DataSheet
from ..physics.dynamics import Airframe, Quadcopter
from ..physics.rigid_body import RigidBody, leaves_cube, speed_of, squared_length
from ..physics.sampling import random_attitude, sample_airframe
from ..rendering import picture
from ..rendering.picture import Shot
from ..sensing import motion
from .flight import FreeFlight
from .with_latency import with_latency

ARENA = 0.6
"""m along each axis"""

# Bounds of the observation hold for every context and action. The lightest and strongest vehicle
# accelerates by at most 31 m/s^2 (41 with gravity), which gives less than 10 m/s over the arena's
# 1.2 m. The last step of an episode leads at most 0.11 m beyond the limits.
POSITION_BOUND = 0.75
VELOCITY_BOUND = 11.0


class QuadcopterHover(FreeFlight[Airframe, Quadcopter]):
    """The task of this file's docstring. State: :class:`Quadcopter`. Context: :class:`Airframe`."""

    measures: ClassVar[dict[str, str]] = {
        "distance": "from the origin, m",
        "speed": "m/s",
    }
    errors = ("position",)
    terms = weights(
        position=(5.0, "of the cost: squared distance from the goal, m^2"),
        attitude=(5.0, "of the cost: squared sine of half the angle from level and ahead"),
        velocity=(0.01, "of the cost: squared speed, m^2/s^2"),
        effort=(0.01, "of the cost: squared distance of the four commands from hovering"),
    )

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.reach = arena(self.sheet)
        overshoot = self.speed_ratio * (POSITION_BOUND - ARENA)
        speed = VELOCITY_BOUND * (self.reach / ARENA) ** 0.5
        bound = np.array([self.reach + overshoot] * 3 + self.body_observation_bound(speed))
        self.observation_space = self.box(-bound, bound)
        self.reward_space = self.box(0, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Airframe:
        """Sample a vehicle.

        Every constant is uniform in its range; the mass is in the split's bands.
        """
        return sample_airframe(self.uniform(key, 5), split, self.sheet)

    def initial(self, key: jax.Array, params: Airframe) -> Quadcopter:
        """Sample a start from the ranges of the table."""
        u = self.uniform(key, 12)
        x, y, z = (0.2 * (2 * unit - 1) for unit in u[0:3])
        vx, vy, vz, wx, wy, wz = (2 * unit - 1 for unit in u[3:9])
        turn = random_attitude(u[9:12], 0.5 * math.pi)
        return Quadcopter(
            RigidBody(x, y, z, *turn, vx, vy, vz, wx, wy, wz), dynamics.hovering_rotors(params)
        )

    def transition(
        self, state: Quadcopter, action: jax.Array, key: jax.Array, params: Airframe
    ) -> Quadcopter:
        """Make one Runge-Kutta step under constant commands."""
        return self.step_vehicle(state, action, params)

    def vehicle(self, state: Quadcopter) -> Quadcopter:
        """Return the state itself."""
        return state

    def airframe(self, params: Airframe) -> Airframe:
        """Return the context itself."""
        return params

    def with_vehicle(self, state: Quadcopter, vehicle: Quadcopter) -> Quadcopter:
        """Return the vehicle, which is the whole state."""
        return vehicle

    def with_airframe(self, params: Airframe, airframe: Airframe) -> Airframe:
        """Return the vehicle, which is the whole context."""
        return airframe

    def next_state(self, state: Quadcopter, vehicle: Quadcopter, params: Airframe) -> Quadcopter:
        """Return the vehicle, which is the whole state."""
        return vehicle

    def observation(self, state: Quadcopter, key: jax.Array, params: Airframe) -> jax.Array:
        """Return shape ``(22,)``; see the table."""
        body = state.body
        return self.stack(body.x, body.y, body.z, *self.body_observation(state))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return motion.offset("position", "from the goal to the vehicle"), *motion.ATTITUDE_AND_RATES

    def reward(
        self,
        state: Quadcopter,
        action: jax.Array,
        next_state: Quadcopter,
        key: jax.Array,
        params: Airframe,
    ) -> jax.Array:
        """Return exp(-cost) of the state after the step."""
        body = next_state.body
        effort = [action[rotor] - self.sheet.hover_action for rotor in range(4)]
        weight = self.context_values.weight
        cost = (
            weight("position") * squared_length(body.x, body.y, body.z)
            + weight("attitude")
            * squared_length(body.qx, body.qy, body.qz)  # 1 - q_w^2 of a unit quaternion
            + weight("velocity") * squared_length(body.vx, body.vy, body.vz)
            + weight("effort") * (squared_length(*effort[:3]) + effort[3] * effort[3])
        )
        return jnp.exp(-cost)

    def terminal(self, state: Quadcopter, key: jax.Array, params: Airframe) -> jax.Array:
        """Say whether it left the arena or spins faster than its gyroscope measures."""
        body = state.body
        return leaves_cube(body.x, body.y, body.z, self.reach) | motion.spins_too_fast(body)

    def info(self, state: Quadcopter, params: Airframe) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return hover_info(state.body)

    def why_over(self, state: Quadcopter, params: Airframe, info: dict[str, Any]) -> str:
        """Say which of the two limits was passed."""
        if bool(motion.spins_too_fast(state.body)):
            return motion.SPINS
        return f"crash: it is more than {self.reach:.3g} m from the origin along an axis"

    def describe(self, state: Quadcopter, params: Airframe) -> str:
        """Describe position, attitude, velocities and rotor speeds, with units."""
        x, y, z = (float(value) for value in state.body[:3])
        return (
            f"Position x {x:+.3f}, y {y:+.3f}, z {z:+.3f} m; hover at the origin. "
            f"{self.describe_vehicle(state)}"
        )

    def shot(self, state: Quadcopter, params: Airframe) -> Shot:
        """Show the vehicle over the lower face of the arena, and the origin (green)."""
        return Shot(state, self.reach, [picture.goal((0.0, 0.0, 0.0), 0.025)])


# The task that a card builds.
make = with_latency(QuadcopterHover)


def arena(sheet: DataSheet) -> float:
    """Return the arena's half edge (m).

    It grows by the height that a vehicle falls while it turns upright.
    """
    return ARENA * max(1.0, (sheet.righting_time / SHIPPED.righting_time) ** 2)


def hover_info(body: RigidBody) -> dict[str, jax.Array]:
    """Return ``success``, distance from the origin (m) and speed (m/s) of a hovering vehicle."""
    distance, speed = jnp.sqrt(squared_length(body.x, body.y, body.z)), speed_of(body)
    return {"success": (distance < 0.1) & (speed < 0.1), "distance": distance, "speed": speed}

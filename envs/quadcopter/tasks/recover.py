"""Recover from a throw: get level and stop.

The start has any attitude up to upside down, and the vehicle spins and has speed.

Dynamics: ``physics/dynamics.py`` with rotor drag, one Runge-Kutta step of 10 ms a step of the
episode. Nothing is random after the start. The problem: Faessler, Fontana, Forster & Scaramuzza
2015 (Automatic re-initialization and failure recovery for aggressive flight with a monocular
vision-based quadrotor), doi:10.1109/ICRA.2015.7139420.

======================  ============================================================================
action ``(4,)``         commanded speed of rotor 1..4: -1 is standstill, +1 is 21,702 RPM, linear
                        between
observation ``(20,)``   height (m), rotation matrix body to world (9, row by row), velocity in the
                        world frame (3, m/s), angular velocity in the body frame (3, rad/s), rotor
                        speeds (4, on the action's scale). The context is not shown
reward                  exp(-cost) in (0, 1], cost = 2 (1 - cos tilt) + 0.2 |velocity|^2 + 0.01
                        |angular velocity|^2 of the state after the step. Never negative, so ending
                        early never pays. A context may weigh its terms otherwise
terminated              a crash: below the ground (height 0), further than 12 m from its start along
                        x or y, or higher than 12 m; or an angular velocity beyond 2,000 deg/s about
                        an axis
success                 tilted by less than 5 degrees, slower than 0.2 m/s and 0.5 rad/s
start                   6 m high; attitude turned by up to 180 degrees about any axis; velocity
                        within 2 m/s along each axis, angular velocity within 10 rad/s about each;
                        rotors at the speed of hovering
context                 the vehicle, as in hover: mass +-20 % (train and test in alternating bands
                        of 1 %), inertia +-20 %, thrust coefficient +-10 %, torque coefficient +-20
                        %, motor time constant +-25 %
======================  ============================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import weights
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.core.task_card import TaskCard

from ..control.geometric import MIN_GAIN_RATIO, attitude_gains, make_pilot, rotor_commands
from ..physics import dynamics
from ..physics.data_sheet import SHIPPED, DataSheet
from ..physics.dynamics import Airframe, Quadcopter
from ..physics.rigid_body import GRAVITY, RigidBody, rotation_matrix, speed_of, squared_length
from ..physics.sampling import random_attitude, sample_airframe
from ..rendering.picture import Shot
from ..sensing import motion
from .flight import Flight
from .with_latency import with_latency

START_HEIGHT = 6.0
"""m"""
CEILING = 12.0
"""m"""
REACH = 12.0
"""m from the start along x and y"""
SPEED = 2.0
"""m/s along each axis, at the start"""
RATE = 10.0
"""rad/s about each axis, at the start"""
MIN_UPRIGHT = math.cos(math.radians(5))
"""Cosine of the largest tilt that counts as success."""
MAX_FINAL_SPEED = 0.2
"""m/s"""
MAX_FINAL_RATE = 0.5
"""rad/s"""
VELOCITY_BOUND = 50.0
"""m/s: 41 m/s^2 at most over a diagonal of the arena would end at 49."""
POSITION_BOUND = 13.0


class QuadcopterRecover(Flight[Airframe, Quadcopter]):
    """The task of this file's docstring. State: :class:`Quadcopter`. Context: :class:`Airframe`."""

    measures: ClassVar[dict[str, str]] = {
        "tilt": "angle between the body's z axis and the vertical, rad",
        "speed": "m/s",
        "height": "above the ground, m",
    }
    terms = weights(
        tilt=(2.0, "of the cost: 1 - cosine of the tilt"),
        velocity=(0.2, "of the cost: squared speed, m^2/s^2"),
        angular_velocity=(0.01, "of the cost: squared angular velocity, rad^2/s^2"),
    )

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        bound = np.array(
            [self.speed_ratio * POSITION_BOUND, *self.body_observation_bound(VELOCITY_BOUND)]
        )
        self.observation_space = self.box(-bound, bound)
        self.reward_space = self.box(0, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Airframe:
        """Sample a vehicle."""
        return sample_airframe(self.uniform(key, 5), split, self.sheet)

    def initial(self, key: jax.Array, params: Airframe) -> Quadcopter:
        """Throw the vehicle into the air."""
        u = self.uniform(key, 9)
        vx, vy, vz = (SPEED * (2 * unit - 1) for unit in u[0:3])
        wx, wy, wz = (RATE * (2 * unit - 1) for unit in u[3:6])
        zero = jnp.zeros((), self.dtype)
        body = RigidBody(
            zero,
            zero,
            zero + START_HEIGHT,
            *random_attitude(u[6:9], math.pi),
            vx,
            vy,
            vz,
            wx,
            wy,
            wz,
        )
        return Quadcopter(body, dynamics.hovering_rotors(params))

    def transition(
        self, state: Quadcopter, action: jax.Array, key: jax.Array, params: Airframe
    ) -> Quadcopter:
        """Make one Runge-Kutta step under constant commands."""
        return self.step_vehicle(state, action, params, air=self.sheet.air)

    def vehicle(self, state: Quadcopter) -> Quadcopter:
        """Return the state itself."""
        return state

    def airframe(self, params: Airframe) -> Airframe:
        """Return the context itself."""
        return params

    def observation(self, state: Quadcopter, key: jax.Array, params: Airframe) -> jax.Array:
        """Return shape ``(20,)``; see the table."""
        return self.stack(state.body.z, *self.body_observation(state))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return Component("height", "height over the ground", "m"), *motion.ATTITUDE_AND_RATES

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
        weight = self.context_values.weight
        cost = (
            weight("tilt") * (1 - rotation_matrix(body)[8])
            + weight("velocity") * squared_length(body.vx, body.vy, body.vz)
            + weight("angular_velocity") * squared_length(body.wx, body.wy, body.wz)
        )
        return jnp.exp(-cost)

    def terminal(self, state: Quadcopter, key: jax.Array, params: Airframe) -> jax.Array:
        """Say whether it is down, left the arena or spins faster than its gyroscope measures."""
        body = state.body
        outside = (jnp.abs(body.x) > REACH) | (jnp.abs(body.y) > REACH) | (body.z > CEILING)
        return (body.z < 0) | outside | motion.spins_too_fast(body)

    def info(self, state: Quadcopter, params: Airframe) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        body = state.body
        upright = rotation_matrix(body)[8]
        speed = speed_of(body)
        steady = squared_length(body.wx, body.wy, body.wz) < MAX_FINAL_RATE**2
        return {
            "success": (upright > MIN_UPRIGHT) & (speed < MAX_FINAL_SPEED) & steady,
            "tilt": jnp.arccos(jnp.clip(upright, -1, 1)),
            "speed": speed,
            "height": body.z,
        }

    def why_over(self, state: Quadcopter, params: Airframe, info: dict[str, Any]) -> str:
        """Say which of the limits was passed."""
        if bool(motion.spins_too_fast(state.body)):
            return motion.SPINS
        if bool(state.body.z < 0):
            return "crash: it hit the ground"
        return (
            f"crash: it is more than {REACH:.0f} m from the start along x or y, or above "
            f"{CEILING:.0f} m"
        )

    def describe(self, state: Quadcopter, params: Airframe) -> str:
        """Describe height, attitude, velocities and rotor speeds, with units."""
        return (
            f"Height {float(state.body.z):+.3f} m; get level and stop. "
            f"{self.describe_vehicle(state)}"
        )

    def shot(self, state: Quadcopter, params: Airframe) -> Shot:
        """Show the vehicle in the lower 12 m over the ground."""
        return Shot(state, CEILING / 2, centre=(0.0, 0.0, CEILING / 2), larger=13.0)


# The task that a card builds.
make = with_latency(QuadcopterRecover)


@privileged_player
class RecoveryControl(eqx.Module):
    """The reference player: it controls tilt first and yaw not at all.

    Its force follows from velocity alone.

    A force that stops the vehicle in a moderate time gives the thrust and the direction of the
    body's z axis. The torque turns that axis there the short way, with the full gain beyond a right
    angle, where an error on SO(3) would fade. About the axis itself the torque only damps. Source:
    Brescianini & D'Andrea 2018, Tilt-prioritized quadrocopter attitude control,
    doi:10.1109/TCST.2018.2873224 (reduced attitude).
    """

    velocity: Any = 3.5
    """1/s"""
    tilt: Any = 30.0
    """rad/s"""
    yaw: Any = 10.0
    """1/s"""
    lean: Any = 1.0
    """Tangent of the largest tilt that it asks for."""
    least_thrust: Any = 0.4
    """Least thrust, relative to the weight: rotors that turn slowly cannot turn the vehicle."""
    sheet: DataSheet = eqx.field(static=True, default=SHIPPED)

    @classmethod
    def for_task(cls, task: Any) -> Any:
        """Make the player of the task's vehicle."""

        def make(flight: Any) -> RecoveryControl:
            usual = cls()
            tilt, yaw = attitude_gains(flight.sheet)
            gains = (
                min(usual.velocity, tilt / MIN_GAIN_RATIO),
                min(usual.tilt, tilt),
                min(usual.yaw, yaw),
            )
            return cls(*gains, sheet=flight.sheet)

        return make_pilot(task, make)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        state: Quadcopter = view.state
        airframe: Airframe = view.params
        body = state.body
        mass, jx, jy, jz = airframe.inertia
        r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_matrix(body)

        # The desired force, height first, within the limits of rotors and tilt.
        full = 4 * airframe.thrust_coefficient * self.sheet.speed_limit**2
        fz = jnp.clip(mass * (GRAVITY - self.velocity * body.vz), 0.4 * mass * GRAVITY, 0.9 * full)
        fx, fy = -mass * self.velocity * body.vx, -mass * self.velocity * body.vy
        side = jnp.sqrt(fx * fx + fy * fy)
        max_side = jnp.minimum(self.lean * fz, jnp.sqrt(full * full - fz * fz))
        share = jnp.minimum(1, max_side / (side + 1e-9))
        fx, fy = share * fx, share * fy
        thrust = jnp.maximum(fx * r13 + fy * r23 + fz * r33, self.least_thrust * mass * GRAVITY)

        # Its direction in the body's frame; the axis to turn about is z x direction.
        norm = jnp.sqrt(fx * fx + fy * fy + fz * fz)
        bx = (fx * r11 + fy * r21 + fz * r31) / norm
        by = (fx * r12 + fy * r22 + fz * r32) / norm
        bz = (fx * r13 + fy * r23 + fz * r33) / norm
        sine = jnp.maximum(jnp.sqrt(bx * bx + by * by), 1e-3)
        size = jnp.where(bz < 0, 1 / sine, 1)
        wx, wy, wz = body.wx, body.wy, body.wz
        tx = jx * self.tilt * (-self.tilt * size * by - 2 * wx) + (jz - jy) * wy * wz
        ty = jy * self.tilt * (self.tilt * size * bx - 2 * wy) + (jx - jz) * wz * wx
        tz = -jz * self.yaw * wz + (jy - jx) * wx * wy
        return rotor_commands(
            state, airframe, thrust, tx, ty, tz, self.sheet.speed_limit, self.sheet.arm
        ), memory

"""Geometric tracking control on SE(3), the reference player of the quadcopter tasks.

It compensates the motors' lag.

Position and velocity errors give a force, and the force gives the thrust and the direction of the
body's z axis. The attitude error on SO(3) gives a torque that turns the axis there. Thrust and
torques give rotor speeds. The controller knows the motors' lag: its commands overshoot, so that
rotors reach these speeds within one step as far as they can.

Source: Lee, Leok & McClamroch 2010, Geometric tracking control of a quadrotor UAV on SE(3),
doi:10.1109/CDC.2010.5717652 (z points up here; the set point's acceleration is fed forward, its
angular velocity not).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View, no_memory, privileged_player

from ..physics import dynamics
from ..physics.data_sheet import SHIPPED, DataSheet
from ..physics.dynamics import STEP, Airframe, Quadcopter, Rotors, rotor_action
from ..physics.rigid_body import GRAVITY, Scalar, rotation_matrix

MIN_GAIN_RATIO = 3.0
"""Least ratio of the gains of attitude and position."""


def make_pilot(task: Any, make: Callable[[Any], Any]) -> Any:
    """Return the pilot that ``make`` makes for a task.

    A task with conditions of its own gives the pilot what it needs under them.
    """
    return task.make_pilot(make) if hasattr(task, "make_pilot") else make(task)


def attitude_gains(sheet: DataSheet) -> tuple[float, float]:
    """Return the highest gains (rad/s) of attitude about x and y, and about z.

    Those of the shipped vehicle, lower for one whose rotors turn it more weakly (by the root of the
    angular acceleration) or follow more slowly (by their lag).
    """
    lag = lag_ratio(sheet)
    return (
        GeometricControl.tilt
        * min(1.0, lag, (sheet.tilt_acceleration() / SHIPPED.tilt_acceleration()) ** 0.5),
        GeometricControl.yaw
        * min(1.0, lag, (sheet.yaw_acceleration() / SHIPPED.yaw_acceleration()) ** 0.5),
    )


def lag_ratio(sheet: DataSheet) -> float:
    """Return how fast the rotors follow, by those of the shipped vehicle."""
    return float(SHIPPED.nominal.motor_time_constant / sheet.nominal.motor_time_constant)


class SetPoint(NamedTuple):
    """Desired position, velocity and acceleration, in the world frame and SI units.

    By default it is rest at the origin.
    """

    x: Scalar = 0.0
    y: Scalar = 0.0
    z: Scalar = 0.0
    vx: Scalar = 0.0
    vy: Scalar = 0.0
    vz: Scalar = 0.0
    ax: Scalar = 0.0
    ay: Scalar = 0.0
    az: Scalar = 0.0


@privileged_player
class GeometricControl(eqx.Module):
    """Hover at the origin with the body's x axis along the world's.

    Knows the vehicle's constants and state.

    Gains are natural frequencies (rad/s) of critically damped error dynamics: two for translation,
    two for attitude. Other players fly to other set points with :meth:`command`.
    """

    position: Any = 5.0
    """rad/s"""
    tilt: Any = 40.0
    """rad/s: about body x and y"""
    yaw: Any = 15.0
    """rad/s: about body z"""
    lean: Any = 0.6
    """Tangent of the largest tilt that it asks for."""
    least_thrust: Any = 0.8
    """Least thrust, relative to the weight: rotors that turn slowly cannot turn the vehicle."""
    height: Any = None
    """Gain of the height, rad/s; None for that of the position.

    The height does not wait for the attitude.
    """
    sheet: DataSheet = eqx.field(static=True, default=SHIPPED)

    @classmethod
    def for_task(cls, task: Any) -> Any:
        """Make the player of the task's vehicle."""
        return make_pilot(task, cls.for_vehicle)

    @classmethod
    def for_vehicle(cls, task: Any, **gains: Any) -> Self:
        """Make control of the task's vehicle.

        ``gains`` are those for the shipped vehicle, where they are not the defaults.

        Attitude follows no faster than rotors turn the vehicle, and position at least
        ``MIN_GAIN_RATIO`` times more slowly.
        """
        sheet: DataSheet = getattr(task, "sheet", SHIPPED)
        usual = cls(**gains)
        tilt, yaw = attitude_gains(sheet)
        tilt = min(usual.tilt, tilt)
        height = usual.height and usual.height * min(1.0, lag_ratio(sheet))
        position, yaw = min(usual.position, tilt / MIN_GAIN_RATIO), min(usual.yaw, yaw)
        return cls(position, tilt, yaw, usual.lean, usual.least_thrust, height, sheet)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        return self.command(*self.aim(view.state, view.params)), memory

    @property
    def control(self) -> GeometricControl:
        """Return itself; players with set points of their own hold one of these as ``control``."""
        return self

    def aim(self, state: Quadcopter, params: Airframe) -> tuple[Quadcopter, Airframe, SetPoint]:
        """Return the vehicle, its constants, and the set point: at rest at the origin."""
        return state, params, SetPoint()

    def command(self, state: Quadcopter, airframe: Airframe, goal: SetPoint) -> jax.Array:
        """Return rotor commands ``(4,)`` in [-1, 1] towards a set point."""
        return self.rotors(state, airframe, *self.thrust_and_torques(state, airframe, goal))

    def rotors(
        self,
        state: Quadcopter,
        airframe: Airframe,
        thrust: Scalar,
        tx: Scalar,
        ty: Scalar,
        tz: Scalar,
    ) -> jax.Array:
        """Return rotor commands ``(4,)`` that give this thrust (N) and torque (N m)."""
        return rotor_commands(
            state, airframe, thrust, tx, ty, tz, self.sheet.speed_limit, self.sheet.arm
        )

    def thrust_and_torques(
        self, state: Quadcopter, airframe: Airframe, goal: SetPoint
    ) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """Return the thrust (N) and the torques (N m) that lead to a set point.

        The thrust is along body z, the torques are about body x, y and z.
        """
        body = state.body
        mass, jx, jy, jz = airframe.inertia
        r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_matrix(body)

        # The force towards the set point, height first, within the limits of rotors and tilt; then
        # the thrust along the z axis as it points now.
        stiffness, damping = self.position**2, 2 * self.position
        full = 4 * airframe.thrust_coefficient * self.sheet.speed_limit**2
        height = self.position if self.height is None else self.height
        fz = mass * (
            -(height**2) * (body.z - goal.z)
            - 2 * height * (body.vz - goal.vz)
            + (goal.az + GRAVITY)
        )
        fz = jnp.clip(fz, 0.3 * mass * GRAVITY, 0.9 * full)
        fx = mass * (-stiffness * (body.x - goal.x) - damping * (body.vx - goal.vx) + goal.ax)
        fy = mass * (-stiffness * (body.y - goal.y) - damping * (body.vy - goal.vy) + goal.ay)
        side = jnp.minimum(self.lean * fz, jnp.sqrt(full * full - fz * fz))
        share = jnp.minimum(1, side / (jnp.sqrt(fx * fx + fy * fy) + 1e-9))
        fx, fy = share * fx, share * fy
        thrust = jnp.maximum(fx * r13 + fy * r23 + fz * r33, self.least_thrust * mass * GRAVITY)

        # The desired attitude: z along the force, x as near to the world's x as that allows.
        norm = jnp.sqrt(fx * fx + fy * fy + fz * fz)
        c13, c23, c33 = fx / norm, fy / norm, fz / norm
        across = jnp.sqrt(c33 * c33 + c23 * c23)
        c12, c22, c32 = 0.0, c33 / across, -c23 / across  # y = z x e_x
        # X = y x z.
        c11, c21, c31 = (c22 * c33 - c32 * c23, c32 * c13 - c12 * c33, c12 * c23 - c22 * c13)

        # Attitude error, the vee of (C'R - R'C) / 2 and the torque.
        ex = 0.5 * (c13 * r12 + c23 * r22 + c33 * r32 - (c12 * r13 + c22 * r23 + c32 * r33))
        ey = 0.5 * (c11 * r13 + c21 * r23 + c31 * r33 - (c13 * r11 + c23 * r21 + c33 * r31))
        ez = 0.5 * (c12 * r11 + c22 * r21 + c32 * r31 - (c11 * r12 + c21 * r22 + c31 * r32))
        wx, wy, wz = body.wx, body.wy, body.wz
        tx = -jx * self.tilt * (self.tilt * ex + 2 * wx) + (jz - jy) * wy * wz
        ty = -jy * self.tilt * (self.tilt * ey + 2 * wy) + (jx - jz) * wz * wx
        tz = -jz * self.yaw * (self.yaw * ez + 2 * wz) + (jy - jx) * wx * wy
        return thrust, tx, ty, tz


def rotor_commands(
    state: Quadcopter,
    airframe: Airframe,
    thrust: Scalar,
    tx: Scalar,
    ty: Scalar,
    tz: Scalar,
    limit: Scalar = dynamics.ROTOR_SPEED_LIMIT,
    arm: float = dynamics.ROTOR_ARM,
) -> jax.Array:
    """Return commands ``(4,)`` in [-1, 1] that give this thrust (N) and torque (N m) in one step.

    ``limit`` (rad/s) is the rotor speed that the highest command gives, ``arm`` (m) that of
    ``dynamics.allocate``.
    """
    return compensate_lag(
        state, airframe, dynamics.allocate(thrust, tx, ty, tz, airframe, arm), limit
    )


def compensate_lag(
    state: Quadcopter,
    airframe: Airframe,
    forces: Rotors,
    limit: Scalar = dynamics.ROTOR_SPEED_LIMIT,
) -> jax.Array:
    """Return commands ``(4,)`` in [-1, 1] by which rotors reach these thrusts (N) in one step.

    They compensate the rotors' lag.

    ``limit`` (rad/s) is the rotor speed that the highest command gives.
    """
    decay = jnp.exp(-STEP / airframe.motor_time_constant)

    def command(force: jax.Array, speed: jax.Array) -> jax.Array:
        goal = jnp.sqrt(jnp.maximum(force, 0) / airframe.thrust_coefficient)
        return rotor_action((goal - speed * decay) / (1 - decay), limit)

    commands = jnp.stack(
        [command(force, speed) for force, speed in zip(forces, state.rotors, strict=True)]
    )
    return jnp.clip(commands, -1, 1)

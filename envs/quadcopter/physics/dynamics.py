"""A quadcopter: a rigid body under four rotors that follow their commands with a first-order lag.

Rotors seen from above, x forward, y left (Crazyflie 2.x, X configuration)::

        4   x   1          rotor  position      reaction torque
          \\ ^ /             1    (+l, -l)      -z
       y <-+              2    (-l, -l)      +z
          / \\             3    (-l, +l)      -z
        3       2            4    (+l, +l)      +z

Each rotor gives the thrust ``k n^2`` along body z and the reaction torque ``c k n^2``, with ``n``
in rad/s. Its speed follows ``T dn/dt = n_command - n``. Commands are constant over a step, so rotor
speeds are known in closed form, and Runge-Kutta integrates the body under them: order four,
whatever the lag.

Rotors may slow down more slowly than they speed up. Where the air matters (fast flight, near the
ground), its forces come from ``aerodynamics.py`` at every stage, in still air or in a wind.
``payload.py`` has the equations for a payload.

Source of equations and constants: Eschmann, Albani & Loianno 2024, arXiv:2311.13081, code
arplaboratory/learning-to-fly@d07592d (mass, inertia, rotors); thrust coefficient and rotor
positions also in gym-pybullet-drones, arXiv:2103.02142. The lag: rl-tools' newer identification of
the same vehicle (rising speed).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .aerodynamics import add_ground_effect, rotor_drag
from .payload import Payload, combine, loaded_derivative
from .rigid_body import (
    GRAVITY,
    Inertia,
    RigidBody,
    Scalar,
    Wrench,
    body_z,
    derivative,
    integrate,
    normalise,
)
from .vehicles import RPM, Air, Four

STEP = 0.01
"""s: an episode's step, over which commands are constant."""
MASS = 0.027
"""kg"""
INERTIA = (3.85e-6, 3.85e-6, 5.9675e-6)
"""kg m^2"""
THRUST_COEFFICIENT = 3.16e-10 / RPM**2
"""N s^2: thrust of a rotor by its squared speed."""
TORQUE_COEFFICIENT = 0.005964552
"""m: reaction torque of a rotor by its thrust."""
MOTOR_TIME_CONSTANT = 0.05545
"""s"""
ROTOR_SPEED_LIMIT = 21702 * RPM
"""rad/s: full speed; four rotors at full speed carry 2.25 times the weight."""
ROTOR_ARM = 0.028
"""m: distance of a rotor from the body's x axis, and from its y axis."""
ROTOR_NAMES = ("front right", "rear right", "rear left", "front left")
"""Places of rotors 1 to 4."""


def rotor_places(arm: float) -> tuple[Four, Four]:
    """Return x and y of the four rotors (m).

    Each is ``arm`` (m) away from the body's x axis and from its y axis.
    """
    return (arm, -arm, -arm, arm), (-arm, -arm, arm, arm)


ROTOR_X, ROTOR_Y = rotor_places(ROTOR_ARM)


class Rotors(NamedTuple):
    """One number a rotor: speeds or commanded speeds (rad/s), or thrusts (N)."""

    r1: Scalar
    r2: Scalar
    r3: Scalar
    r4: Scalar


class Airframe(NamedTuple):
    """The physical constants of one vehicle."""

    inertia: Inertia
    thrust_coefficient: Scalar
    """N s^2"""
    torque_coefficient: Scalar
    """m"""
    motor_time_constant: Scalar
    """s"""
    motor_falling_time_constant: Scalar | None = None
    """s: time constant of a rotor that slows down; None if it is the same."""


NOMINAL = Airframe(
    Inertia(MASS, *INERTIA),
    THRUST_COEFFICIENT,
    TORQUE_COEFFICIENT,
    MOTOR_TIME_CONSTANT,
)
HOVER_ACTION = 0.334
"""Command at which the nominal vehicle hovers, rounded as in the paper's cost."""


class Quadcopter(NamedTuple):
    """The state of one vehicle."""

    body: RigidBody
    rotors: Rotors
    """Speeds, rad/s"""


def step(
    vehicle: Quadcopter,
    command: Rotors,
    airframe: Airframe,
    duration: float,
    air: Air | None = None,
    ground: bool = False,
    push: Scalar | None = None,
    wind: tuple[Scalar, Scalar, Scalar] | None = None,
    payload: Payload | None = None,
    disturbance: Wrench | None = None,
    arm: float = ROTOR_ARM,
) -> Quadcopter:
    """Return the vehicle ``duration`` seconds later under constant commanded rotor speeds (rad/s).

    With ``air``, rotors drag; with ``ground`` as well, they feel the ground at z = 0. ``push`` is a
    further force along world z (N), ``wind`` the velocity of the air (m/s, world frame), both
    constant over the step. With a ``payload`` the state is that of the common centre of mass. A
    ``disturbance`` (force in the world frame, torque in the body frame) adds to what rotors do,
    constant over the step. Rotors are ``arm`` (m) away from the body's x and y axes.
    """
    decay = jnp.exp(-0.5 * duration / airframe.motor_time_constant)
    falling = airframe.motor_falling_time_constant
    falling_decay = decay if falling is None else jnp.exp(-0.5 * duration / falling)
    middle = lag(vehicle.rotors, command, decay, falling_decay)
    end = lag(middle, command, decay, falling_decay)
    speeds = {0.0: vehicle.rotors, 0.5: middle, 1.0: end}
    forces = {passed: rotor_forces(rotors, airframe) for passed, rotors in speeds.items()}
    loads = {
        passed: thrust_and_torques(pushing, airframe, arm) for passed, pushing in forces.items()
    }
    combined = None if payload is None else combine(airframe.inertia, payload)

    def motion(passed: float, body: RigidBody) -> RigidBody:
        thrust, tx, ty, tz = loads[passed]
        if air is not None and ground:
            thrust, tx, ty, tz = thrust_and_torques(
                Rotors(*add_ground_effect(forces[passed], body, *rotor_places(arm), air)),
                airframe,
                arm,
            )
        zx, zy, zz = body_z(body)
        fx, fy, fz = thrust * zx, thrust * zy, thrust * zz
        if air is not None:
            dx, dy, dz = rotor_drag(body, speeds[passed], air, wind)
            fx, fy, fz = fx + dx, fy + dy, fz + dz
        if push is not None:
            fz = fz + push
        if disturbance is not None:
            dx, dy, dz, dtx, dty, dtz = disturbance
            fx, fy, fz, tx, ty, tz = fx + dx, fy + dy, fz + dz, tx + dtx, ty + dty, tz + dtz
        wrench = Wrench(fx, fy, fz, tx, ty, tz)
        if combined is None:
            return derivative(body, wrench, airframe.inertia)
        return loaded_derivative(body, wrench, combined)

    return Quadcopter(normalise(integrate(motion, vehicle.body, duration)), end)


def lag(speeds: Rotors, command: Rotors, decay: Scalar, falling_decay: Scalar) -> Rotors:
    """Return rotor speeds (rad/s) after some time under a command.

    In this time the distance of a rotor from its command shrinks by ``decay`` if it rises, and by
    ``falling_decay`` if it falls.
    """

    def approach(speed: Scalar, goal: Scalar) -> Scalar:
        factor = decay if decay is falling_decay else jnp.where(goal > speed, decay, falling_decay)
        return goal + (speed - goal) * factor

    return jax.tree.map(approach, speeds, command)


def rotor_forces(rotors: Rotors, airframe: Airframe) -> Rotors:
    """Return the thrust (N) of each rotor at these speeds (rad/s)."""
    return Rotors(*(airframe.thrust_coefficient * speed * speed for speed in rotors))


def thrust_and_torques(
    forces: Rotors, airframe: Airframe, arm: float = ROTOR_ARM
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the thrust (N) and the torques (N m) of rotors with these forces (N).

    The thrust is along body z, the torques are about body x, y and z.

    Rotors are ``arm`` (m) away from the body's x axis and from its y axis.
    """
    f1, f2, f3, f4 = forces
    return (
        (f1 + f2) + (f3 + f4),
        arm * ((f3 + f4) - (f1 + f2)),
        arm * ((f2 + f3) - (f1 + f4)),
        airframe.torque_coefficient * ((f2 + f4) - (f1 + f3)),
    )


def allocate(
    thrust: Scalar, tx: Scalar, ty: Scalar, tz: Scalar, airframe: Airframe, arm: float = ROTOR_ARM
) -> Rotors:
    """Return rotor thrusts (N, of any sign) that give this thrust (N) and these torques (N m).

    The function is the inverse of :func:`thrust_and_torques`: control allocation.
    """
    x, y, z = tx / arm, ty / arm, tz / airframe.torque_coefficient
    return Rotors(
        r1=0.25 * (thrust - x - y - z),
        r2=0.25 * (thrust - x + y + z),
        r3=0.25 * (thrust + x + y - z),
        r4=0.25 * (thrust + x - y + z),
    )


def hover_speed(airframe: Airframe) -> Scalar:
    """Return the rotor speed (rad/s) at which four rotors carry the weight."""
    return jnp.sqrt(airframe.inertia.mass * GRAVITY / (4 * airframe.thrust_coefficient))


def hovering_rotors(airframe: Airframe) -> Rotors:
    """Return rotors at the speed (rad/s) that carries the weight."""
    hover = hover_speed(airframe)
    return Rotors(hover, hover, hover, hover)


def rotor_speed(action: Scalar, limit: Scalar = ROTOR_SPEED_LIMIT) -> Scalar:
    """Return the rotor speed (rad/s) that an action in [-1, 1] commands.

    ``limit`` (rad/s) is full speed.
    """
    return 0.5 * limit * (action + 1)


def rotor_action(speed: Scalar, limit: Scalar = ROTOR_SPEED_LIMIT) -> Scalar:
    """Return the action that commands a rotor speed (rad/s): the inverse of :func:`rotor_speed`."""
    return 2 / limit * speed - 1


def commanded_speeds(action: Any, limit: Scalar = ROTOR_SPEED_LIMIT) -> Rotors:
    """Return the rotor speeds (rad/s) that an action ``(4,)`` commands."""
    return Rotors(*(rotor_speed(action[rotor], limit) for rotor in range(4)))

"""The cascaded PID controller that most users of gym-pybullet-drones fly Crazyflie 2.x with.

A PID law on position gives a force. Its part along the body's z axis is the thrust; its direction
is the desired attitude. A PID law on attitude gives torques in units of the firmware's pulse width,
which are mixed onto four motors. The units are the firmware's: pulse width from 20,000 to 65,535,
motor speed 0.2685 times that plus 4,070.3 RPM.

Source: ``DSLPIDControl`` of gym-pybullet-drones@90b178a (gains; Panerati et al. 2021,
arXiv:2103.02142), after Luis & Le Ny 2016, Design of a trajectory tracking controller for a
nanoquadcopter, arXiv:1608.05786. This version is written in scalars. The peer converts the desired
attitude to Euler angles and back; here the matrix is used directly.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from rlbench_suite.core.arrays import Float

from ..physics.rigid_body import RigidBody, Scalar, rotation_matrix
from ..physics.vehicles import RPM, Four, Vehicle

FORCE_P = (0.4, 0.4, 1.25)
"""N/m along x, y, z: force by position error."""
FORCE_I = (0.05, 0.05, 0.05)
"""N/(m s) along x, y, z: force by the integral of the position error."""
FORCE_D = (0.2, 0.2, 0.5)
"""N s/m along x, y, z: force by velocity."""
TORQUE_P = (7e4, 7e4, 6e4)
"""Pulse width about x, y, z by attitude error."""
TORQUE_I = (0.0, 0.0, 500.0)
"""Pulse width about x, y, z by the integral of the attitude error (s)."""
TORQUE_D = (2e4, 2e4, 1.2e4)
"""Pulse width about x, y, z by the rate of the attitude error (1/s)."""
PULSE_SLOPE = 0.2685
"""RPM of a rotor for a unit of pulse width."""
PULSE_OFFSET = 4070.3
"""RPM of a rotor at pulse width zero."""
PULSE_RANGE = (20_000.0, 65_535.0)
TORQUE_LIMIT = 3200.0
MIXER = ((-0.5, -0.5, -1.0), (-0.5, 0.5, 1.0), (0.5, 0.5, -1.0), (0.5, -0.5, 1.0))
"""Pulse width of each of CF2X's motors, by the pulse width about x, y, z."""


class Memory(NamedTuple):
    """State of the controller between commands."""

    ix: Float
    """m s: integral of the position error, within 2, height within 0.15."""
    iy: Float
    iz: Float
    jx: Float
    """s: integral of the attitude error, within 1 about x and y, 1500 about z."""
    jy: Float
    jz: Float
    roll: Float
    """rad: Euler angles at the last command."""
    pitch: Float
    yaw: Float


def initial_memory() -> Memory:
    """Return the memory of a controller that starts."""
    return Memory(*(0.0,) * 9)


def command(
    memory: Memory,
    body: RigidBody,
    goal: tuple[Scalar, Scalar, Scalar],
    vehicle: Vehicle,
    period: float,
    gravity: float,
) -> tuple[Four, Memory]:
    """Return rotor speeds (rad/s) that bring the body to rest at ``goal`` (m), nose along x.

    It is called every ``period`` s.
    """
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_matrix(body)

    # Position: the desired force, and the thrust along the body's z axis, as a pulse width.
    ex, ey, ez = goal[0] - body.x, goal[1] - body.y, goal[2] - body.z
    ix = jnp.clip(memory.ix + period * ex, -2, 2)
    iy = jnp.clip(memory.iy + period * ey, -2, 2)
    iz = jnp.clip(memory.iz + period * ez, -0.15, 0.15)
    fx = FORCE_P[0] * ex + FORCE_I[0] * ix - FORCE_D[0] * body.vx
    fy = FORCE_P[1] * ey + FORCE_I[1] * iy - FORCE_D[1] * body.vy
    fz = FORCE_P[2] * ez + FORCE_I[2] * iz - FORCE_D[2] * body.vz + vehicle.inertia.mass * gravity
    thrust = jnp.maximum(fx * r13 + fy * r23 + fz * r33, 0)
    speed = jnp.sqrt(thrust / (4 * vehicle.thrust[2])) / RPM
    pulse = (speed - PULSE_OFFSET) / PULSE_SLOPE

    # The desired attitude: z along the force, y = z x e_x, x = y x z.
    norm = jnp.maximum(jnp.sqrt(fx * fx + fy * fy + fz * fz), 1e-9)
    c13, c23, c33 = fx / norm, fy / norm, fz / norm
    across = jnp.maximum(jnp.sqrt(c33 * c33 + c23 * c23), 1e-9)
    c22, c32 = c33 / across, -c23 / across
    c11, c21, c31 = c22 * c33 - c32 * c23, c32 * c13, -c22 * c13

    # Its error, the vee of C'R - R'C, and the rate of Euler angles by difference.
    ax = c13 * r12 + c23 * r22 + c33 * r32 - (c22 * r23 + c32 * r33)
    ay = c11 * r13 + c21 * r23 + c31 * r33 - (c13 * r11 + c23 * r21 + c33 * r31)
    az = c22 * r21 + c32 * r31 - (c11 * r12 + c21 * r22 + c31 * r32)
    roll = jnp.arctan2(r32, r33)
    pitch = jnp.arcsin(jnp.clip(-r31, -1, 1))
    yaw = jnp.arctan2(r21, r11)
    rates = [
        (previous - angle) / period
        for previous, angle in zip(memory[6:], (roll, pitch, yaw), strict=True)
    ]
    jx = jnp.clip(memory.jx - period * ax, -1, 1)
    jy = jnp.clip(memory.jy - period * ay, -1, 1)
    jz = jnp.clip(memory.jz - period * az, -1500, 1500)
    torques = [
        jnp.clip(
            -TORQUE_P[i] * error + TORQUE_D[i] * rates[i] + TORQUE_I[i] * total,
            -TORQUE_LIMIT,
            TORQUE_LIMIT,
        )
        for i, (error, total) in enumerate(((ax, jx), (ay, jy), (az, jz)))
    ]

    def motor(row: tuple[float, float, float]) -> Scalar:
        mixed = pulse + (row[0] * torques[0] + row[1] * torques[1] + row[2] * torques[2])
        return RPM * (PULSE_SLOPE * jnp.clip(mixed, *PULSE_RANGE) + PULSE_OFFSET)

    m1, m2, m3, m4 = (motor(row) for row in MIXER)
    return (m1, m2, m3, m4), Memory(ix, iy, iz, jx, jy, jz, roll, pitch, yaw)

"""Forces of the air besides thrust.

They are the ground effect of each rotor, rotor drag, and downwash from a vehicle above.

Coefficients are a vehicle's :class:`~.vehicles.Air`. The forms are those of gym-pybullet-drones
(Panerati et al. 2021, arXiv:2103.02142, section III-C, eqs. 5 to 7).
"""

from __future__ import annotations

import jax.numpy as jnp

from .rigid_body import RigidBody, Scalar, rotation_matrix
from .vehicles import Air, Four

MAX_GROUND_EFFECT = 4 / 15
"""Largest ground effect, as a fraction of a rotor's thrust.

Nearer to the ground it grows no more, as in the peer's code.
"""

NEGLIGIBLE_DISTANCE = 10.0
"""m: a vehicle farther away horizontally feels no downwash."""


def rotor_heights(body: RigidBody, rotor_x: Four, rotor_y: Four) -> Four:
    """Return the height of each rotor (m) above the ground z = 0.

    ``rotor_x`` and ``rotor_y`` are the places of the rotors on the body (m).
    """
    rotation = rotation_matrix(body)
    r31, r32 = rotation[6], rotation[7]
    return tuple(body.z + r31 * x + r32 * y for x, y in zip(rotor_x, rotor_y, strict=True))


def ground_effect(height: Scalar, air: Air) -> Scalar:
    """Return the relative thrust that a rotor gains at this height (m) over level ground.

    The ground's influence follows a paraboloid as in Shi et al. 2019 (Neural Lander,
    arXiv:1811.08027): coefficient times (radius / (4 height))^2, and never more than 4 / 15.
    """
    lowest = 0.25 * air.propeller_radius * jnp.sqrt(air.ground / MAX_GROUND_EFFECT)
    ratio = 0.25 * air.propeller_radius / jnp.maximum(height, jnp.maximum(lowest, 1e-6))
    return air.ground * ratio * ratio


def add_ground_effect(
    forces: Four, body: RigidBody, rotor_x: Four, rotor_y: Four, air: Air
) -> Four:
    """Return the thrust of each rotor (N) with ground effect.

    A vehicle on its side or upside down gains nothing.
    """
    upright = rotation_matrix(body)[8] > 0
    return tuple(
        force * (1 + jnp.where(upright, ground_effect(height, air), 0))
        for force, height in zip(forces, rotor_heights(body, rotor_x, rotor_y), strict=True)
    )


def rotor_drag(
    body: RigidBody, speeds: Four, air: Air, wind: tuple[Scalar, Scalar, Scalar] | None = None
) -> tuple[Scalar, Scalar, Scalar]:
    """Return the drag (N, world frame) of rotors that turn at ``speeds`` (rad/s).

    The wind is the velocity of the air in the world frame (m/s). The force is linear in airspeed
    and in the sum of rotor speeds, with one coefficient across the rotors' plane and one along
    their axis (Forster 2015, sec. 3.1; Faessler, Franchi & Scaramuzza 2018,
    doi:10.1109/LRA.2017.2776353, eq. 2). The peer applies the coefficients along the world's axes
    instead of the body's; upright they are the same.
    """
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_matrix(body)
    s1, s2, s3, s4 = speeds
    total = (s1 + s2) + (s3 + s4)
    vx, vy, vz = body.vx, body.vy, body.vz
    if wind is not None:
        vx, vy, vz = vx - wind[0], vy - wind[1], vz - wind[2]
    bx = -air.drag_xy * total * (r11 * vx + r21 * vy + r31 * vz)
    by = -air.drag_xy * total * (r12 * vx + r22 * vy + r32 * vz)
    bz = -air.drag_z * total * (r13 * vx + r23 * vy + r33 * vz)
    return (
        r11 * bx + r12 * by + r13 * bz,
        r21 * bx + r22 * by + r23 * bz,
        r31 * bx + r32 * by + r33 * bz,
    )


def downwash(dx: Scalar, dy: Scalar, dz: Scalar, air: Air) -> Scalar:
    """Return the downwash (N) on a vehicle from another that is (dx, dy, dz) m away.

    The force is along world z and never positive.

    Only a vehicle above (dz > 0) pushes. The force is Gaussian across its axis; it widens and
    weakens downwards.
    """
    strength, spread, width = air.downwash
    above = jnp.maximum(dz, 1e-3)
    ratio = 0.25 * air.propeller_radius / above
    across = spread * above + width
    # The width passes through zero at a short distance (0.69 m for the Crazyflie). There the
    # formula would push only a vehicle exactly below; here it pushes none.
    squared = jnp.maximum(across * across, 1e-12)
    distance = dx * dx + dy * dy
    force = -strength * ratio * ratio * jnp.exp(-0.5 * distance / squared)
    return jnp.where((dz > 0) & (distance < NEGLIGIBLE_DISTANCE**2), force, 0)

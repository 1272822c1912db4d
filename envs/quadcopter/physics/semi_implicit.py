"""Explicit physics of gym-pybullet-drones.

It is semi-implicit Euler at 240 Hz with an exact attitude step, of order one.

Accelerations at the start of a step change velocities; the new velocities move the body. The
quaternion turns by the exact rotation of the new angular velocity held over the step, so it stays
at length one without being normalised. That is the peer's ``Physics.DYN``. Its ``Physics.PYB`` is
Bullet, which also damps every body a little, undocumented: see :func:`bullet_damping`.

Source: Panerati et al. 2021, arXiv:2103.02142; code gym-pybullet-drones@90b178a. The peer's gravity
is 9.8 m/s^2.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from . import aerodynamics, vehicles
from .rigid_body import RigidBody, Scalar, Wrench, body_z, derivative
from .vehicles import Four, Vehicle

STEP = 1 / 240
"""s"""
BULLET_DAMPING = 0.04
"""1/s: linear and angular damping that Bullet gives a multibody by default, also s/m and s/rad."""


class Effects(NamedTuple):
    """Forces besides thrust and gravity that act; each is compiled in or not."""

    bullet_damping: bool = False
    ground: bool = False
    drag: bool = False


DYN = Effects()
"""The peer's ``Physics.DYN``."""
PYB = Effects(bullet_damping=True)
"""The peer's ``Physics.PYB``, without contacts."""


def step(
    body: RigidBody, speeds: Four, vehicle: Vehicle, gravity: float, effects: Effects = DYN
) -> RigidBody:
    """Return the body 1/240 s later, with its rotors turning at ``speeds`` (rad/s)."""
    forces = vehicles.thrusts(speeds, vehicle)
    if effects.ground:
        forces = aerodynamics.add_ground_effect(
            forces, body, vehicle.rotor_x, vehicle.rotor_y, vehicle.air
        )
    thrust, tx, ty, tz = vehicles.thrust_and_torques(forces, vehicle)
    zx, zy, zz = body_z(body)
    fx, fy, fz = thrust * zx, thrust * zy, thrust * zz
    if effects.drag:
        dx, dy, dz = aerodynamics.rotor_drag(body, speeds, vehicle.air)
        fx, fy, fz = fx + dx, fy + dy, fz + dz
    rate = derivative(body, Wrench(fx, fy, fz, tx, ty, tz), vehicle.inertia, gravity)
    if effects.bullet_damping:
        rate = bullet_damping(body, rate)
    return move_body(body, rate, STEP)


def bullet_damping(body: RigidBody, rate: RigidBody) -> RigidBody:
    """Add Bullet's damping of multibodies to accelerations, -0.04 v (1 + |v|).

    It is the same for angular velocity.

    The formula was found by experiment on the peer (and in Bullet's ``btMultiBody``). It is exact
    for motion along a line.
    """
    linear = BULLET_DAMPING * (1 + _length(body.vx, body.vy, body.vz))
    angular = BULLET_DAMPING * (1 + _length(body.wx, body.wy, body.wz))
    return rate._replace(
        vx=rate.vx - linear * body.vx,
        vy=rate.vy - linear * body.vy,
        vz=rate.vz - linear * body.vz,
        wx=rate.wx - angular * body.wx,
        wy=rate.wy - angular * body.wy,
        wz=rate.wz - angular * body.wz,
    )


def move_body(body: RigidBody, rate: RigidBody, duration: float) -> RigidBody:
    """Return the body after a step of semi-implicit Euler, given its accelerations."""
    vx = body.vx + duration * rate.vx
    vy = body.vy + duration * rate.vy
    vz = body.vz + duration * rate.vz
    wx = body.wx + duration * rate.wx
    wy = body.wy + duration * rate.wy
    wz = body.wz + duration * rate.wz
    # cos and sin(a) / a of half the angle turned, by their series. Without a root, gradients exist
    # at rest. The terms fall below double precision for any rate a gyroscope measures (35 rad/s an
    # axis, half an angle of 0.13).
    half = (0.5 * duration) ** 2 * (wx * wx + wy * wy + wz * wz)
    cosine = 1 - half / 2 * (1 - half / 12 * (1 - half / 30 * (1 - half / 56 * (1 - half / 90))))
    sine = (
        0.5
        * duration
        * (1 - half / 6 * (1 - half / 20 * (1 - half / 42 * (1 - half / 72 * (1 - half / 110)))))
    )
    sx, sy, sz = sine * wx, sine * wy, sine * wz
    qw, qx, qy, qz = body.qw, body.qx, body.qy, body.qz
    return RigidBody(
        x=body.x + duration * vx,
        y=body.y + duration * vy,
        z=body.z + duration * vz,
        qw=qw * cosine - qx * sx - qy * sy - qz * sz,
        qx=qx * cosine + qw * sx + qy * sz - qz * sy,
        qy=qy * cosine + qw * sy + qz * sx - qx * sz,
        qz=qz * cosine + qw * sz + qx * sy - qy * sx,
        vx=vx,
        vy=vy,
        vz=vz,
        wx=wx,
        wy=wy,
        wz=wz,
    )


def _length(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    return jnp.sqrt(jnp.maximum(x * x + y * y + z * z, 1e-30))  # a gradient at rest, too

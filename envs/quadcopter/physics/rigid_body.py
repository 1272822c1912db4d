"""A rigid body in three dimensions: Newton-Euler equations with a unit quaternion.

World frame: x, y horizontal, z up. Body frame: fixed to the body, at its centre of mass, along its
principal axes. Every quantity is a scalar field, so that a batch of bodies is one contiguous array
a field.

Source: Goldstein, Classical Mechanics, ch. 5 (Euler's equations); Diebel 2006, Representing
Attitude, sec. 6 (quaternion kinematics).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from rlbench_suite.numerics.bit_exact import computed_once

Scalar = Any
"""A scalar array; on the host, where a state is described or drawn, a float."""

GRAVITY = 9.81
"""m/s^2."""


class RigidBody(NamedTuple):
    """Position, velocity, attitude and angular velocity of a rigid body.

    Position and velocity are in the world frame, the attitude turns body to world, and the angular
    velocity is in the body frame.
    """

    x: Scalar
    """m"""
    y: Scalar
    z: Scalar
    qw: Scalar
    """Unit quaternion, Hamilton convention: rotates body vectors into the world."""
    qx: Scalar
    qy: Scalar
    qz: Scalar
    vx: Scalar
    """m/s, world frame"""
    vy: Scalar
    vz: Scalar
    wx: Scalar
    """rad/s, body frame"""
    wy: Scalar
    wz: Scalar


class Wrench(NamedTuple):
    """Load on a body besides gravity: a force in the world frame and a torque in the body frame."""

    fx: Scalar
    """N, world frame"""
    fy: Scalar
    fz: Scalar
    tx: Scalar
    """N m, body frame"""
    ty: Scalar
    tz: Scalar


class Inertia(NamedTuple):
    """Mass and principal moments of inertia."""

    mass: Scalar
    """kg"""
    jx: Scalar
    """kg m^2"""
    jy: Scalar
    jz: Scalar


def derivative(
    body: RigidBody, wrench: Wrench, inertia: Inertia, gravity: Scalar = GRAVITY
) -> RigidBody:
    """Return the time derivative of the state.

    The equations are m dv/dt = f - m g e_z, J dw/dt = t - w x J w, dq/dt = q w / 2.
    """
    _, _, _, qw, qx, qy, qz, vx, vy, vz, wx, wy, wz = body
    fx, fy, fz, tx, ty, tz = wrench
    mass, jx, jy, jz = inertia
    # Divisions are expensive. These four are the same at every stage of an integrator, so the
    # compiler computes them once.
    per_mass, per_jx, per_jy, per_jz = 1 / mass, 1 / jx, 1 / jy, 1 / jz
    return RigidBody(
        x=vx,
        y=vy,
        z=vz,
        qw=-0.5 * (qx * wx + qy * wy + qz * wz),
        qx=0.5 * (qw * wx + qy * wz - qz * wy),
        qy=0.5 * (qw * wy + qz * wx - qx * wz),
        qz=0.5 * (qw * wz + qx * wy - qy * wx),
        vx=fx * per_mass,
        vy=fy * per_mass,
        vz=fz * per_mass - gravity,
        wx=(tx - (jz - jy) * wy * wz) * per_jx,
        wy=(ty - (jx - jz) * wz * wx) * per_jy,
        wz=(tz - (jy - jx) * wx * wy) * per_jz,
    )


def integrate(
    motion: Callable[[float, RigidBody], RigidBody], body: RigidBody, duration: float
) -> RigidBody:
    """Return the body ``duration`` seconds later, by the classical Runge-Kutta method.

    The quaternion may drift a little from length one.

    ``motion`` is the time derivative as a function of the fraction of the step that has passed (0,
    0.5 or 1) and of the body. The result is that of :func:`~..runge_kutta.rk4` to rounding.
    Velocities and attitudes of the stages are stored; otherwise each of the thirteen results would
    compute all stages anew. Slopes are differences of stored values: in stage one, ``h k = 2 (y1 -
    y)``. Positions are the integral of velocities.
    """

    def stage(passed: float, state: RigidBody, time: float) -> RigidBody:
        def next_values() -> tuple[Scalar, ...]:
            return tuple(
                value + time * rate
                for value, rate in zip(body[3:], motion(passed, state)[3:], strict=True)
            )

        position = body.x + time * state.vx, body.y + time * state.vy, body.z + time * state.vz
        return RigidBody(*position, *computed_once(next_values)())

    first = stage(0.0, body, 0.5 * duration)
    second = stage(0.5, first, 0.5 * duration)
    third = stage(0.5, second, duration)

    def end() -> RigidBody:
        velocities = zip(body[7:10], first[7:10], second[7:10], third[7:10], strict=True)
        travelled = (duration / 6 * (a + 2 * (b + c) + d) for a, b, c, d in velocities)
        stages = zip(
            body[3:], first[3:], second[3:], third[3:], motion(1.0, third)[3:], strict=True
        )
        return RigidBody(
            *(value + change for value, change in zip(body[:3], travelled, strict=True)),
            *(
                a + ((b - a) + 2 * (c - a) + (d - a)) / 3 + duration / 6 * rate
                for a, b, c, d, rate in stages
            ),
        )

    return computed_once(end)()


def normalise(body: RigidBody) -> RigidBody:
    """Return the same body with its quaternion at length one.

    A step of integration lets it drift a little.

    The function takes one Newton step for ``1 / sqrt``: a squared length of 1 + d becomes 1 - 3/4
    d^2, and d is 1e-6 even in a fast spin. XLA computes the reciprocal root itself with an x86
    instruction whose last bits differ between makers of processors.
    """
    scale = 1.5 - 0.5 * (
        body.qw * body.qw + body.qx * body.qx + body.qy * body.qy + body.qz * body.qz
    )
    return body._replace(
        qw=body.qw * scale, qx=body.qx * scale, qy=body.qy * scale, qz=body.qz * scale
    )


def rotation_matrix(body: RigidBody) -> tuple[Scalar, ...]:
    """Return the nine entries of the body-to-world rotation, row by row."""
    w, x, y, z = body.qw, body.qx, body.qy, body.qz
    return (
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    )


def body_z(body: RigidBody) -> tuple[Scalar, Scalar, Scalar]:
    """Return the body's z axis in the world frame: the last column of the rotation matrix."""
    w, x, y, z = body.qw, body.qx, body.qy, body.qz
    return 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)


def squared_length(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """Return the squared length of a vector."""
    return x * x + y * y + z * z


def speed_of(body: RigidBody) -> Scalar:
    """Return the speed (m/s)."""
    return jnp.sqrt(squared_length(body.vx, body.vy, body.vz))


def leaves_cube(x: Scalar, y: Scalar, z: Scalar, half_edge: float) -> Scalar:
    """Say whether a point lies beyond the cube about the origin with this half edge."""
    return (jnp.abs(x) > half_edge) | (jnp.abs(y) > half_edge) | (jnp.abs(z) > half_edge)


def quaternion_of(matrix: list[Scalar]) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the unit quaternion of a rotation matrix, given row by row.

    Of the four formulas the one with the largest divisor is used (Diebel 2006, Representing
    Attitude, eq. 145).
    """
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = matrix
    candidates = (
        (1 + r11 + r22 + r33, r32 - r23, r13 - r31, r21 - r12),
        (r32 - r23, 1 + r11 - r22 - r33, r12 + r21, r13 + r31),
        (r13 - r31, r12 + r21, 1 - r11 + r22 - r33, r23 + r32),
        (r21 - r12, r13 + r31, r23 + r32, 1 - r11 - r22 + r33),
    )
    quaternion: tuple[Scalar, ...] = candidates[0]
    divisor = quaternion[0]
    for number, candidate in enumerate(candidates[1:], 1):
        larger = candidate[number] > divisor
        quaternion = tuple(
            jnp.where(larger, new, old) for new, old in zip(candidate, quaternion, strict=True)
        )
        divisor = jnp.where(larger, candidate[number], divisor)
    qw, qx, qy, qz = quaternion
    length = jnp.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
    return qw / length, qx / length, qy / length, qz / length

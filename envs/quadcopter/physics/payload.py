"""A rigid payload under or beside a vehicle.

It changes mass, centre of mass and moments of inertia.

Vehicle and payload are one rigid body. Its state is that of the common centre of mass, along the
vehicle's axes. These are no longer principal axes: the tensor of inertia has products, and Euler's
equations need its inverse. Forces act at the vehicle's own centre, so they turn the body about the
common one.

Source: Goldstein, Classical Mechanics, secs. 5.3 (parallel axes) and 5.5 (Euler's equations).
"""

from __future__ import annotations

from typing import NamedTuple

from .rigid_body import Inertia, RigidBody, Scalar, Wrench, derivative, rotation_matrix


class Payload(NamedTuple):
    """A small body fixed to the vehicle.

    Its moments of inertia about its own centre are neglected.
    """

    mass: Scalar
    """kg"""
    x: Scalar
    """m, body frame: offset from the vehicle's own centre of mass."""
    y: Scalar
    z: Scalar


class LoadedInertia(NamedTuple):
    """Vehicle and payload as one body."""

    mass: Scalar
    """kg"""
    x: Scalar
    """m, body frame: offset of the common centre of mass from the vehicle's own."""
    y: Scalar
    z: Scalar
    jxx: Scalar
    """kg m^2: the tensor of inertia about the common centre of mass."""
    jyy: Scalar
    jzz: Scalar
    jxy: Scalar
    jxz: Scalar
    jyz: Scalar


def combine(inertia: Inertia, payload: Payload) -> LoadedInertia:
    """Combine the vehicle with its payload, by parallel axes with the reduced mass of the two."""
    mass = inertia.mass + payload.mass
    share = payload.mass / mass
    reduced = inertia.mass * share
    x, y, z = payload.x, payload.y, payload.z
    return LoadedInertia(
        mass=mass,
        x=share * x,
        y=share * y,
        z=share * z,
        jxx=inertia.jx + reduced * (y * y + z * z),
        jyy=inertia.jy + reduced * (x * x + z * z),
        jzz=inertia.jz + reduced * (x * x + y * y),
        jxy=-reduced * x * y,
        jxz=-reduced * x * z,
        jyz=-reduced * y * z,
    )


def loaded_derivative(body: RigidBody, wrench: Wrench, inertia: LoadedInertia) -> RigidBody:
    """Return the time derivative of the state of the common centre of mass.

    The force of ``wrench`` acts at the vehicle's own centre.
    """
    _, x, y, z, jxx, jyy, jzz, jxy, jxz, jyz = inertia
    fx, fy, fz, tx, ty, tz = wrench
    wx, wy, wz = body.wx, body.wy, body.wz
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_matrix(body)
    bx = r11 * fx + r21 * fy + r31 * fz
    by = r12 * fx + r22 * fy + r32 * fz
    bz = r13 * fx + r23 * fy + r33 * fz
    # The angular momentum, and the torque that is left to change the spin: t - c x F - w x J w.
    lx = jxx * wx + jxy * wy + jxz * wz
    ly = jxy * wx + jyy * wy + jyz * wz
    lz = jxz * wx + jyz * wy + jzz * wz
    ux = tx - (y * bz - z * by) - (wy * lz - wz * ly)
    uy = ty - (z * bx - x * bz) - (wz * lx - wx * lz)
    uz = tz - (x * by - y * bx) - (wx * ly - wy * lx)
    # The inverse of the tensor, by cofactors.
    a, b, c = jyy * jzz - jyz * jyz, jxz * jyz - jxy * jzz, jxy * jyz - jxz * jyy
    d, e, f = jxx * jzz - jxz * jxz, jxy * jxz - jxx * jyz, jxx * jyy - jxy * jxy
    per_determinant = 1 / (jxx * a + jxy * b + jxz * c)
    moved = derivative(body, wrench, Inertia(inertia.mass, jxx, jyy, jzz))
    return moved._replace(
        wx=(a * ux + b * uy + c * uz) * per_determinant,
        wy=(b * ux + d * uy + e * uz) * per_determinant,
        wz=(c * ux + e * uy + f * uz) * per_determinant,
    )

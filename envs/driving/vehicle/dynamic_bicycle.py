"""The dynamic bicycle on linear tyres, on a winding lane.

The lane's centre has the curvature kappa(s) in closed form, so that the car's place is given along
the lane (s), across it (d, to the left) and by its angle to it (e). The lateral speed v and the yaw
rate r are states:

    m (dv/dt + u r) = F_f + F_r,   I dr/dt = a F_f - b F_r
    F_f = C_f (delta - (v + a r) / u),   F_r = -C_r (v - b r) / u
    ds/dt = (u cos e - v sin e) / (1 - d kappa),   dd/dt = u sin e + v cos e,
    de/dt = r - kappa ds/dt
    kappa = K sin(2 pi s / W + phase)

Source: Rajamani, Vehicle Dynamics and Control (2012), sections 2.3 and 2.5 (model and parameters of
a passenger car).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp

from ..arrays import Scalar

FRONT = 1.1  # m: a, from the centre of gravity to the front axle
REAR = 1.58  # m: b, from the centre of gravity to the rear axle
MASS = 1573.0  # kg, of the data sheet
INERTIA = 2873.0  # kg m^2, of the data sheet; it grows with the mass
STIFFNESS = 160_000.0  # N/rad: C_f and C_r, of the two tyres of an axle each, at friction 1
GRAVITY = 9.81  # m/s^2


class Params(NamedTuple):
    """A car and its lane, constant during an episode."""

    speed: Scalar  # u, m/s
    mass: Scalar  # kg
    friction: Scalar
    sharpness: Scalar  # K, 1/m
    wavelength: Scalar  # W, m
    phase: Scalar  # rad


class Car(NamedTuple):
    """The car on the lane."""

    s: Scalar  # m
    d: Scalar  # m
    e: Scalar  # rad
    v: Scalar  # m/s
    r: Scalar  # rad/s


def curvature(s: Scalar, params: Params) -> Scalar:
    """Return kappa, 1/m, to the left."""
    return params.sharpness * jnp.sin(2 * math.pi * s / params.wavelength + params.phase)


def slopes(car: Car, wheel: Scalar, params: Params, slides: bool = False) -> Car:
    """Return the time derivatives of the docstring's equations.

    With ``slides``, the force of an axle is at most the friction times its load: tyres that are
    asked for more slide.
    """
    u = params.speed
    stiffness = STIFFNESS * params.friction
    front = stiffness * (wheel - (car.v + FRONT * car.r) / u)
    rear = -stiffness * (car.v - REAR * car.r) / u
    if slides:
        axle_limit = params.friction * params.mass * (GRAVITY / (FRONT + REAR))
        front = jnp.clip(front, -axle_limit * REAR, axle_limit * REAR)
        rear = jnp.clip(rear, -axle_limit * FRONT, axle_limit * FRONT)
    kappa = curvature(car.s, params)
    cosine, sine = jnp.cos(car.e), jnp.sin(car.e)
    along = (u * cosine - car.v * sine) / (1 - car.d * kappa)
    return Car(
        along,
        u * sine + car.v * cosine,
        car.r - kappa * along,
        (front + rear) / params.mass - u * car.r,
        (FRONT * front - REAR * rear) / (params.mass * (INERTIA / MASS)),
    )

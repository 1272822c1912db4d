"""A disturbance observer: what pushes and turns a vehicle beside its own rotors.

Velocity and angular velocity change by what the rotors give, which a model knows from their speeds, and by the rest:
wind, weight that the model has not, a centre of mass elsewhere. That rest, by the step, passes a low-pass filter; a
controller subtracts it from what it wants.

Source: Ohnishi, Shibata & Murakami 1996, Motion control for advanced mechatronics, doi:10.1109/3516.491410 (observer of
a disturbance by the inverse of a nominal plant and a low-pass filter). In place of a filtered derivative stands the
difference of two measured velocities, as an accelerometer and a gyroscope give it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..physics import dynamics
from ..physics.dynamics import STEP, Airframe, Quadcopter
from ..physics.rigid_body import Scalar, Wrench, body_z, derivative


class Rates(NamedTuple):
    """One number a degree of freedom: velocities, accelerations or filter constants."""

    x: Scalar
    """World frame: m/s, or m/s^2."""
    y: Scalar
    z: Scalar
    roll: Scalar
    """Body frame: rad/s, or rad/s^2."""
    pitch: Scalar
    yaw: Scalar


class Observed(NamedTuple):
    """What the observer remembers from one step to the next."""

    begun: Scalar
    """0 before the first step, then 1."""
    velocity: Rates
    """At the last step."""
    expected: Rates
    """Acceleration by the model at the last step."""
    disturbance: Rates
    """The estimate: acceleration by what the model has not."""


def nothing_seen() -> Observed:
    """The memory before the first step."""
    still = Rates(*jnp.zeros(6))
    return Observed(jnp.zeros(()), still, still, still)


def observe(observed: Observed, vehicle: Quadcopter, airframe: Airframe, share: Rates) -> Observed:
    """The estimate one step later, nearer to what was seen by a ``share`` in (0, 1] of the way."""
    thrust, tx, ty, tz = dynamics.load(dynamics.rotor_forces(vehicle.rotors, airframe), airframe)
    zx, zy, zz = body_z(vehicle.body)
    wrench = Wrench(thrust * zx, thrust * zy, thrust * zz, tx, ty, tz)
    expected = Rates(*derivative(vehicle.body, wrench, airframe.inertia)[7:])
    velocity = Rates(*vehicle.body[7:])

    def nearer(estimate: Scalar, share: Scalar, now: Scalar, before: Scalar, model: Scalar, earlier: Scalar) -> Scalar:
        seen = (now - before) / STEP - 0.5 * (model + earlier)
        return estimate + observed.begun * share * (seen - estimate)

    disturbance = jax.tree.map(
        nearer, observed.disturbance, share, velocity, observed.velocity, expected, observed.expected
    )
    return Observed(jnp.ones_like(observed.begun), velocity, expected, disturbance)

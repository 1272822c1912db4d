"""A disturbance observer for the forces and torques that do not come from a vehicle's own rotors.

Velocity and angular velocity change by the rotors' forces, which a model computes from their
speeds, and by everything else: wind, a weight that the model does not have, a centre of mass
elsewhere. The observer divides that remainder by the step and passes it through a low-pass filter.
A controller subtracts the result from the acceleration it asks for.

Source: Ohnishi, Shibata & Murakami 1996, Motion control for advanced mechatronics,
doi:10.1109/3516.491410 (observer of a disturbance by the inverse of a nominal plant and a low-pass
filter). The difference of two measured velocities, as an accelerometer and a gyroscope give it,
replaces their filtered derivative.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..physics import dynamics
from ..physics.dynamics import STEP, Airframe, Quadcopter
from ..physics.rigid_body import Scalar, Wrench, body_z, derivative


class Rates(NamedTuple):
    """One number for each degree of freedom: velocities, accelerations or filter constants."""

    x: Scalar
    """World frame: m/s, or m/s^2."""
    y: Scalar
    z: Scalar
    roll: Scalar
    """Body frame: rad/s, or rad/s^2."""
    pitch: Scalar
    yaw: Scalar


class Observed(NamedTuple):
    """The observer's memory between steps."""

    has_started: Scalar
    """0 before the first step, then 1."""
    velocity: Rates
    """Velocity at the last step."""
    expected: Rates
    """Acceleration that the model expected at the last step."""
    disturbance: Rates
    """Estimate: the acceleration that the model does not explain."""


def initial_estimate() -> Observed:
    """Return the memory before the first step."""
    still = Rates(*jnp.zeros(6))
    return Observed(jnp.zeros(()), still, still, still)


def observe(observed: Observed, vehicle: Quadcopter, airframe: Airframe, share: Rates) -> Observed:
    """Return the next estimate, moved towards the measurement by a ``share`` in (0, 1]."""
    thrust, tx, ty, tz = dynamics.thrust_and_torques(
        dynamics.rotor_forces(vehicle.rotors, airframe), airframe
    )
    zx, zy, zz = body_z(vehicle.body)
    wrench = Wrench(thrust * zx, thrust * zy, thrust * zz, tx, ty, tz)
    expected = Rates(*derivative(vehicle.body, wrench, airframe.inertia)[7:])
    velocity = Rates(*vehicle.body[7:])

    def correct(
        estimate: Scalar,
        share: Scalar,
        value: Scalar,
        previous: Scalar,
        model: Scalar,
        previous_model: Scalar,
    ) -> Scalar:
        unexplained = (value - previous) / STEP - 0.5 * (model + previous_model)
        return estimate + observed.has_started * share * (unexplained - estimate)

    disturbance = jax.tree.map(
        correct,
        observed.disturbance,
        share,
        velocity,
        observed.velocity,
        expected,
        observed.expected,
    )
    return Observed(jnp.ones_like(observed.has_started), velocity, expected, disturbance)

"""Flight by commands that arrive late.

It is a Smith predictor that learns the vehicle's constants in flight.

The pilot of the flight without latency acts on the state that the model predicts for the moment at
which its command arrives: the commands under way are known. Where sensors are noisy, vehicle and
constants come from observations alone: two least-squares estimates say how much acceleration the
vehicle gets for the thrust, and how much angular acceleration for the torques, that its data sheet
predicts.

Sources: Smith 1957, Closer control of loops with dead time; Astrom & Wittenmark 1995, Adaptive
Control, ch. 2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View, privileged_player

from ..physics import dynamics
from ..physics.data_sheet import DataSheet
from ..physics.dynamics import STEP, Airframe, Quadcopter
from ..physics.rigid_body import GRAVITY, Inertia, Scalar, body_z

CONFIDENCE = (50 * GRAVITY**2, 1e5, 1e3)
"""Weights of the data sheet against measurements, as sums of squares.

They are those of acceleration ((m/s^2)^2), of angular acceleration about x and y together, and of
angular acceleration about z ((rad/s^2)^2).
"""


class Sums(NamedTuple):
    """Sums of a least-squares estimate of ``measured = share * model``."""

    products: Scalar
    squares: Scalar

    def add(self, model: tuple[Scalar, ...], measured: tuple[Scalar, ...], weight: Scalar) -> Sums:
        """Add one measurement."""
        products, squares = self
        for predicted, observed in zip(model, measured, strict=True):
            products = products + weight * predicted * observed
            squares = squares + weight * predicted * predicted
        return Sums(products, squares)

    @property
    def share(self) -> Scalar:
        """The estimate, within a factor of four of the data sheet."""
        return jnp.clip(self.products / self.squares, 0.25, 4.0)


class Motion(NamedTuple):
    """Velocities at a step, and the accelerations that the data sheet predicts there."""

    velocity: tuple[Scalar, Scalar, Scalar]
    rates: tuple[Scalar, Scalar, Scalar]
    pushed: tuple[Scalar, Scalar, Scalar]
    """m/s^2, world frame: by thrust"""
    turned: tuple[Scalar, Scalar, Scalar]
    """rad/s^2, body frame: by torques"""


class Learned(NamedTuple):
    """Knowledge of the vehicle's constants."""

    has_started: Scalar
    """0 before the first step, then 1"""
    previous: Motion
    thrust: Sums
    tilting: Sums
    yawing: Sums

    @classmethod
    def initial(cls) -> Learned:
        """Return the data sheet's constants."""
        still = (jnp.zeros(()),) * 3
        sums = (Sums(jnp.full((), weight), jnp.full((), weight)) for weight in CONFIDENCE)
        return cls(jnp.zeros(()), Motion(still, still, still, still), *sums)

    def update(self, vehicle: Quadcopter, sheet: DataSheet) -> Learned:
        """Return the estimates after a step that ends with this vehicle."""
        current, previous = predicted_motion(vehicle, sheet), self.previous
        accelerated = tuple(
            (a - b) / STEP for a, b in zip(current.velocity, previous.velocity, strict=True)
        )
        spun = tuple((a - b) / STEP for a, b in zip(current.rates, previous.rates, strict=True))
        pushed = tuple(0.5 * (a + b) for a, b in zip(current.pushed, previous.pushed, strict=True))
        turned = tuple(0.5 * (a + b) for a, b in zip(current.turned, previous.turned, strict=True))
        ax, ay, az = accelerated
        return Learned(
            jnp.ones_like(self.has_started),
            current,
            self.thrust.add(pushed, (ax, ay, az + GRAVITY), self.has_started),
            self.tilting.add(turned[:2], spun[:2], self.has_started),
            self.yawing.add(turned[2:], spun[2:], self.has_started),
        )

    def airframe(self, sheet: DataSheet) -> Airframe:
        """Return the vehicle's constants as far as they are known."""
        mass, jx, jy, jz = sheet.nominal.inertia
        tilting = self.tilting.share
        return sheet.nominal._replace(
            inertia=Inertia(
                mass / self.thrust.share, jx / tilting, jy / tilting, jz / self.yawing.share
            )
        )


def predicted_motion(vehicle: Quadcopter, sheet: DataSheet) -> Motion:
    """Return a vehicle's velocities and predicted accelerations.

    The data sheet predicts the accelerations at the vehicle's rotor speeds.
    """
    body, airframe = vehicle.body, sheet.nominal
    mass, jx, jy, jz = airframe.inertia
    thrust, tx, ty, tz = dynamics.thrust_and_torques(
        dynamics.rotor_forces(vehicle.rotors, airframe), airframe, sheet.arm
    )
    zx, zy, zz = body_z(body)
    push = thrust / mass
    return Motion(
        (body.vx, body.vy, body.vz),
        (body.wx, body.wy, body.wz),
        (push * zx, push * zy, push * zz),
        (tx / jx, ty / jy, tz / jz),
    )


@privileged_player
class Predictor(eqx.Module):
    """The reference player of flights with latency.

    It is the pilot of the flight without latency, on the predicted state.
    """

    task: Any = eqx.field(static=True)
    pilot: Any

    def initial(self, params: Any) -> tuple[Learned, Any]:
        """Return the data sheet's constants, and the pilot's memory."""
        return Learned.initial(), self.pilot.initial(params)

    def act(
        self, memory: tuple[Learned, Any], view: View, key: jax.Array
    ) -> tuple[jax.Array, tuple[Learned, Any]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        learned, pilot_memory = memory
        state, params, flight = view.state.inner, view.params, self.task.inner
        if self.task.noisy:
            vehicle = self.task.observed_vehicle(view.observation, state, params)
            learned = learned.update(vehicle, flight.sheet)
            state = flight.with_vehicle(state, vehicle)
            params = flight.with_airframe(params, learned.airframe(flight.sheet))
        for command in view.state.commands:
            state = flight.transition(state, jnp.stack(command), key, params)
        action, pilot_memory = self.pilot.act(
            pilot_memory, view._replace(state=state, params=params), key
        )
        return action, (learned, pilot_memory)

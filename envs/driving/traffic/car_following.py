"""Car following by the Intelligent Driver Model.

    dv/dt = a [1 - (v / v0)^4 - (s* / s)^2],   s* = s0 + max(0, v T + v dv / (2 sqrt(a b)))

Here ``s`` is the gap from bumper to bumper and ``dv`` the speed of approach (own speed minus the
leader's). Every function works on scalars or on arrays with one entry a driver.

Source: Treiber, Hennecke & Helbing 2000, doi:10.1103/PhysRevE.62.1805, eqs. 2 and 3 with s1 = 0 and
exponent 4; the maximum is that of Treiber & Kesting, Traffic Flow Dynamics (2013), eq. 11.15.
Without it, a leader that draws away fast enough would make the desired gap negative, and its square
would brake.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..arrays import Scalar

# m: shorter gaps, and bodies that overlap, count as this one, so that braking stays finite.
MIN_GAP = 0.1


class Driver(NamedTuple):
    """The five parameters of the model."""

    desired_speed: Scalar  # v0, m/s
    time_gap: Scalar  # T, s
    jam_gap: Scalar  # s0, m: gap of standing vehicles
    acceleration: Scalar  # a, m/s^2: the largest one
    deceleration: Scalar  # b, m/s^2: the comfortable one, positive


def desired_gap(driver: Driver, speed: Scalar, leader_speed: Scalar) -> Scalar:
    """Return the desired gap s*, m."""
    root = jnp.sqrt(driver.acceleration * driver.deceleration)
    return driver.jam_gap + jnp.maximum(
        0, speed * (driver.time_gap + (speed - leader_speed) / (2 * root))
    )


def gap_ratio(driver: Driver, speed: Scalar, gap: Scalar, leader_speed: Scalar) -> Scalar:
    """Return s* / s, the desired gap relative to the real one.

    Of several leaders the one with the largest ratio counts.
    """
    return desired_gap(driver, speed, leader_speed) / jnp.maximum(gap, MIN_GAP)


def acceleration_at_ratio(driver: Driver, speed: Scalar, crowded: Scalar) -> Scalar:
    """Return dv/dt in m/s^2, unlimited, given s* / s."""
    share = speed / driver.desired_speed
    square = share * share
    return driver.acceleration * (1 - square * square - crowded * crowded)


def acceleration(driver: Driver, speed: Scalar, gap: Scalar, leader_speed: Scalar) -> Scalar:
    """Return dv/dt in m/s^2, unlimited."""
    return acceleration_at_ratio(driver, speed, gap_ratio(driver, speed, gap, leader_speed))


def safe_speed(speed: Scalar, room: Scalar, braking: float, duration: float) -> Scalar:
    """Return the largest speed (m/s) from which braking B stops within the room S after a step.

    The result is negative if there is no such speed.

    For steps in which the place grows by dt (v + v') / 2, from Krauss, Wagner & Gawron 1997,
    doi:10.1103/PhysRevE.55.5597:

        v' <= sqrt(B^2 dt^2 / 4 - B dt v + 2 B S) - B dt / 2

    Behind a leader who brakes as hard, S = gap + v_leader^2 / (2 B).
    """
    lost = braking * duration
    square = 0.25 * lost * lost - lost * speed + 2 * braking * room
    return jnp.sqrt(jnp.maximum(square, 0)) - 0.5 * lost

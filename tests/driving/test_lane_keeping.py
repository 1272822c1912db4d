"""Lane keeping against an integrator of high order, closed forms and cheap players.

The integrator moves the car in the plane. Cornering has a closed form.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.tasks.lane_keeping import State
from rlbench_suite.envs.driving.vehicle.dynamic_bicycle import (
    FRONT,
    INERTIA,
    MASS,
    REAR,
    STIFFNESS,
    Car,
    Params,
)
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants
LANE = Params(15.0, 1700.0, 0.8, 0.015, 100.0, 0.7)


@cache
def task(dtype: str = "float32") -> Any:
    return card("LaneKeeping-v0").build(dtype=dtype)


def drive_car(wheels: list[float], params: Params) -> list[Car]:
    """Return the cars after each step, at float64, from 0.3 m to the left of the centre."""
    which = task("float64")
    with precision(which):
        numbers = jax.tree.map(jnp.float64, params)
        zero = jnp.float64(0)
        state = State(Car(zero, jnp.float64(0.3), zero, zero, zero), zero, zero, zero, jnp.int32(0))
        step = jax.jit(which.transition)
        cars = []
        for wheel in wheels:
            state = step(state, jnp.array([wheel / 0.35]), None, numbers)
            cars.append(Car(*(float(value) for value in state.car)))
    return cars


def centre(s: float) -> list[float]:
    """Return x, y and heading of the lane's centre, integrated from its curvature."""
    _, _, _, sharp, wave, phase = LANE

    def heading(z: float) -> float:
        return (
            sharp
            * wave
            / (2 * math.pi)
            * (math.cos(phase) - math.cos(2 * math.pi * z / wave + phase))
        )

    line = solve_ivp(
        lambda z, _: [math.cos(heading(z)), math.sin(heading(z))],
        (0, s),
        [0, 0],
        rtol=1e-11,
        atol=1e-12,
    )
    return [*line.y[:, -1], heading(s)]


def test_the_car_on_the_lane_is_the_car_in_the_plane() -> None:
    """Integrate x, y and heading of the car in the plane.

    s, d and e of the task give the same place.
    """
    u, mass, friction, *_ = LANE
    stiff, inertia = STIFFNESS * friction, mass * INERTIA / MASS
    wheels = [0.03 * math.sin(0.4 * k) for k in range(30)]
    cars = drive_car(wheels, LANE)
    y = np.array([0.0, 0.3, 0.0, 0.0, 0.0])
    for k, wheel in enumerate(wheels):

        def slopes(_: float, state: np.ndarray, wheel: float = wheel) -> list[float]:
            _, _, psi, v, r = state
            front, rear = stiff * (wheel - (v + FRONT * r) / u), -stiff * (v - REAR * r) / u
            return [
                *(u * math.cos(psi) - v * math.sin(psi), u * math.sin(psi) + v * math.cos(psi), r),
                *((front + rear) / mass - u * r, (FRONT * front - REAR * rear) / inertia),
            ]

        y = solve_ivp(slopes, (0, 0.1), y, rtol=1e-10, atol=1e-12).y[:, -1]
        if k % 10 == 9:
            x0, y0, angle = centre(cars[k].s)
            place = [
                x0 - cars[k].d * math.sin(angle),
                y0 + cars[k].d * math.cos(angle),
                angle + cars[k].e,
            ]
            np.testing.assert_allclose(place, y[:3], atol=2e-5)  # Runge-Kutta steps of 25 ms
            np.testing.assert_allclose((cars[k].v, cars[k].r), y[3:], atol=2e-5)


def test_steady_cornering_is_that_of_the_understeer_gradient() -> None:
    """Compare r = u delta / (L + K u^2) with K = m (b C_r - a C_f) / (L C_f C_r)."""
    u, mass, friction, *_ = LANE
    stiff, length = STIFFNESS * friction, FRONT + REAR
    gradient = mass * (REAR - FRONT) / (length * stiff)
    rate = drive_car([0.01] * 40, LANE)[-1].r
    assert rate == pytest.approx(u * 0.01 / (length + gradient * u * u), rel=1e-6)


def test_the_reference_keeps_the_lane_and_no_held_wheel_does() -> None:
    """Check that Stanley stays within centimetres with mass and friction unknown.

    Held wheels leave the lane and earn nothing.
    """
    best = play(task(), reference_player(task()), range(200), split="test")
    assert best.info["success"].all()
    assert best.info["mean_distance"].mean() < 0.1
    assert not best.cost.any()
    for wheel in (-1, -0.1, 0, 0.05, 1):
        record = play(task(), Constant(jnp.array([wheel], jnp.float32)), range(60), split="test")
        assert record.terminated.all()
        assert not record.info["success"].any()
        np.testing.assert_allclose(record.total, 0, atol=1e-3)

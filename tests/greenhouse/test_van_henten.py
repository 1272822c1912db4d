"""The crop and climate model against published equations, a stiff solver, and closed forms."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.envs.greenhouse.physics import van_henten
from rlbench_suite.envs.greenhouse.physics.exponential_runge_kutta import (
    exponential_rk4,
    phi_functions,
)
from rlbench_suite.envs.greenhouse.physics.van_henten import Climate, Control, Greenhouse, Weather

STEP = 1800.0
PLANTED = Climate(0.0035, 0.001, 15.0, 0.008)
NIGHT = Weather(0.0, 8.80726208e-4, 6.0, 5.11515426e-3)
CLIMATES = (PLANTED, Climate(0.1, 0.0012, 18.0, 0.009), Climate(0.6, 0.003, 35.0, 0.03))
WEATHERS = (NIGHT, Weather(300.0, 8e-4, -10.0, 0.002), Weather(900.0, 7e-4, 30.0, 0.015))
CONTROLS = tuple(
    Control(*u) for u in itertools.product((0.0, 1.2e-6), (0.0, 1.5e-3, 7.5e-3), (0.0, 150.0))
)


def equations(climate: Any, control: Control, weather: Weather, leakage: float) -> np.ndarray:
    """van Henten 2003, written out again in NumPy from the paper's symbols and numbers."""
    x_d, x_c, x_t, x_h = climate
    closure = 1 - np.exp(-53 * x_d)
    conductance = -5.11e-6 * x_t**2 + 2.3e-4 * x_t - 6.29e-4
    phi = max(conductance, 0) * max(x_c - 5.2e-5, 0)
    light = 3.55e-9 * weather.radiation
    g = closure * light * phi / (light + phi) if light + phi > 0 else 0.0
    q = 2 ** (0.1 * x_t - 2.5)
    exchange = control.ventilation + leakage
    vapour = 9348 / (8314 * (x_t + 273.15)) * np.exp(17.4 * x_t / (x_t + 239)) - x_h
    return np.array(
        [
            0.544 * g - 2.65e-7 * x_d * q,
            (-g + 4.87e-7 * x_d * q + control.co2 - exchange * (x_c - weather.co2)) / 4.1,
            (
                control.heating
                - (1290 * control.ventilation + 6.1) * (x_t - weather.temperature)
                + 0.2 * weather.radiation
            )
            / 3e4,
            (closure * 3.6e-3 * vapour - exchange * (x_h - weather.humidity)) / 4.1,
        ]
    )


def step(climate: Any, control: Any, weather: Any, house: Greenhouse, substeps: int) -> np.ndarray:
    """The four states after half an hour, ``(4, ...)``, in float64."""
    with jax.enable_x64():
        arguments = jax.tree.map(np.float64, (climate, control, weather, house))
        return np.array(van_henten.step(*arguments, STEP, substeps))


@cache
def truths() -> list[tuple[Climate, Control, Weather, np.ndarray]]:
    """Half an hour by an implicit method at tight tolerance, over the whole range of actions."""
    cases = []
    for climate, weather, control in itertools.product(CLIMATES, WEATHERS, CONTROLS):
        solved = solve_ivp(
            lambda _, x, u=control, v=weather: equations(x, u, v, 0.75e-4),
            (0, STEP),
            np.array(climate),
            method="LSODA",
            rtol=1e-11,
            atol=1e-15,
        )
        assert solved.success
        cases.append((climate, control, weather, solved.y[:, -1]))
    return cases


@cache
def errors(substeps: int, *, kinks: bool = False) -> np.ndarray:
    """Return the largest relative error of each state.

    Without ``kinks`` only cases without light or with a temperature in 3..42 degC count.
    """
    selected = [
        case
        for case in truths()
        if kinks or case[2].radiation == 0 or max(3 - case[3][2], case[3][2] - 42) < 0
    ]
    x, u, v, truth = (np.array(column).T for column in zip(*selected, strict=True))
    return np.abs(
        step(Climate(*x), Control(*u), Weather(*v), Greenhouse(), substeps) / truth - 1
    ).max(-1)


def test_derivative_equals_the_paper_s_equations() -> None:
    for climate, control, weather in itertools.product(CLIMATES, CONTROLS, WEATHERS):
        with jax.enable_x64():
            ours = np.array(
                van_henten.derivative(climate, control, weather, Greenhouse(leakage=0.75e-5))
            )
        np.testing.assert_allclose(
            ours, equations(climate, control, weather, 0.75e-5), rtol=1e-11, atol=1e-18
        )


@pytest.mark.parametrize(
    ("control", "published"),
    [
        (
            Control(0.0, 0.0, 50.0),
            [0.0034991728598738787, 0.0009999780511955418, 14.753797460662646, 0.00865103886940698],
        ),
        (
            Control(1.2e-6, 0.0, 150.0),
            [0.00349900054, 0.00152601808, 19.77833907979231, 0.00912244368],
        ),
    ],
)
def test_golden_steps_of_a_peer(control: Control, published: list[float]) -> None:
    """Compare one step of 30 min with lettuce-greenhouse-gym 0.1.3 (Apache-2.0).

    Its leakage is 0.75e-5 m/s.

    It takes four steps of the classical Runge-Kutta method: the same method on our equations gives
    its digits, and what that method itself is off by (checked here too) is all that our integrator
    differs by.
    """
    house = Greenhouse(leakage=0.75e-5)
    state = np.array(PLANTED)
    for _ in range(4):
        k1 = equations(state, control, NIGHT, 0.75e-5)
        k2 = equations(state + 225 * k1, control, NIGHT, 0.75e-5)
        k3 = equations(state + 225 * k2, control, NIGHT, 0.75e-5)
        k4 = equations(state + 450 * k3, control, NIGHT, 0.75e-5)
        state = state + 75 * (k1 + 2 * k2 + 2 * k3 + k4)
    np.testing.assert_allclose(state, published, rtol=3e-9)  # as many digits as were published
    np.testing.assert_allclose(
        step(PLANTED, control, NIGHT, house, van_henten.SUBSTEPS), published, rtol=1e-6
    )


def test_stiff_steps_agree_with_an_implicit_solver_over_the_whole_range() -> None:
    """Dry weight, carbon dioxide, temperature, vapour: relative, after half an hour."""
    smooth, all_of_them = errors(van_henten.SUBSTEPS), errors(van_henten.SUBSTEPS, kinks=True)
    assert (smooth < [1e-5, 1e-4, 1e-10, 2e-4]).all(), smooth
    assert (all_of_them < [1e-4, 2e-3, 1e-10, 2e-4]).all(), all_of_them


def test_order_of_convergence_is_four() -> None:
    worst = np.array([errors(n)[[0, 1, 3]] for n in (4, 8, 16)])
    orders = np.log2(worst[:-1] / worst[1:])
    assert (np.abs(orders - 4) < 0.5).all(), orders


def test_classical_method_is_less_accurate_where_the_vents_are_open() -> None:
    """The decay is integrated exactly for this reason.

    With the same number of evaluations the classical method is worse.
    """
    control, weather = Control(0.0, 7.5e-3, 150.0), WEATHERS[2]
    truth = next(t for x, u, v, t in truths() if (x, u, v) == (PLANTED, control, weather))
    zero = Climate(0.0, 0.0, 0.0, 0.0)
    with jax.enable_x64():
        classical = exponential_rk4(
            lambda x: van_henten.derivative(x, control, weather, Greenhouse()),
            zero,
            PLANTED,
            STEP / 4,
            4,
        )
    ours = np.abs(step(PLANTED, control, weather, Greenhouse(), 4) / truth - 1)
    assert np.abs(np.array(classical) / truth - 1).max() > 20 * ours.max()


def test_phi_functions_against_their_definition() -> None:
    z = np.array([-1.5, -1.0, -0.3, -0.05])
    with jax.enable_x64():
        e, p1, p2, p3 = map(np.asarray, phi_functions(z))
    np.testing.assert_allclose(e, np.exp(z), rtol=1e-14)
    np.testing.assert_allclose(p1, np.expm1(z) / z, rtol=1e-14)
    np.testing.assert_allclose(p2, (np.exp(z) - 1 - z) / z**2, rtol=1e-10)  # the definition cancels
    np.testing.assert_allclose(p3, (np.exp(z) - 1 - z - z**2 / 2) / z**3, rtol=1e-9)
    assert [float(v) for v in phi_functions(0.0)] == [1, 1, 0.5, pytest.approx(1 / 6)]


def test_constant_input_with_decay_is_exact() -> None:
    rate, gain = 2.7e-3, 0.4
    with jax.enable_x64():
        (ours,) = exponential_rk4(lambda y: (gain + 0.0 * y[0],), (rate,), (3.0,), 450.0, 4)
    assert float(ours) == pytest.approx(
        gain / rate + (3.0 - gain / rate) * np.exp(-rate * 1800), rel=1e-14
    )


def test_measured_quantities() -> None:
    """Check 400 ppm of an ideal gas at 20 degC, and saturated air, which holds 17.3 g/m3 there.

    Source: steam tables.
    """
    assert van_henten.co2_ppm(
        400e-6 * 101325 * 0.04401 / (8.3144598 * 293.15), 20.0
    ) == pytest.approx(400)
    assert van_henten.co2_density(van_henten.co2_ppm(1e-3, 12.0), 12.0) == pytest.approx(1e-3)
    assert float(van_henten.saturation_density(20.0)) == pytest.approx(17.3e-3, rel=0.01)
    assert float(van_henten.relative_humidity(0.02, 20.0)) == 100
    assert float(
        van_henten.relative_humidity(0.5 * van_henten.saturation_density(20.0), 20.0)
    ) == pytest.approx(50, rel=1e-6)

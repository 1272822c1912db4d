"""Tomato crop and glasshouse against published definitions, an implicit solver, and balances.

Balances are those of a whole season.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.envs.greenhouse.physics import glasshouse, tomato_crop
from rlbench_suite.envs.greenhouse.physics.exponential_runge_kutta import exponential_rk4
from rlbench_suite.envs.greenhouse.physics.glasshouse import (
    Air,
    Control,
    Glasshouse,
    House,
    Outside,
    co2_density,
    saturation_pressure,
)
from rlbench_suite.envs.greenhouse.physics.tomato_crop import DRY_MATTER, PLANTED, Crop, Variety

STEP = 1800.0
HOUSE = Glasshouse()
VARIETY = Variety()
GREENLIGHT = [
    (
        (Crop(15e3, 150e3, 90e3, 60e3, 1500.0, 20.0), 21.0, 700.0, 500.0),
        (
            0.20777380492211844,
            0.3138659928657417,
            0.07237433699781677,
            0.06739852655791191,
            0.9701850259269016,
        ),
    ),
    (
        (Crop(2e3, 290e3, 112e3, 80e3, 2000.0, 17.0), 12.0, 420.0, 0.0),
        (
            -0.44431036003104385,
            -4.802167385876505,
            -32734.687237599774,
            0.05072261169702109,
            -0.2123527443129209,
        ),
    ),
    (
        (Crop(19e3, 20e3, 30e3, 20e3, 700.0, 24.0), 33.0, 350.0, 900.0),
        (
            -0.06183610595339941,
            0.11050610616902846,
            0.06557824621648878,
            0.055903769118264154,
            0.2495562894738936,
        ),
    ),
]
"""Crop, temperature, ppm, light; slopes of the four stores and uptake of carbon dioxide, mg/(m2 s).

They were computed once from the definitions of GreenLight (Katzin et al., Clear BSD), file
``crop_vanthoor_2011_chapter_9_simplified.json``, evaluated as they stand.
"""


def s(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def equations(y: np.ndarray, u: Control, v: Outside) -> np.ndarray:
    """The eleven equations, written out again in NumPy from the papers' symbols and numbers."""
    t, c, vp, tp, buf, fruit, leaf, stem, tsum, t24, _ = y
    lai, k = 2.66e-5 * leaf, t + 273.15
    sat = lambda x: 610.78 * np.exp(17.2694 * x / (x + 238.3))  # noqa: E731
    ppm = 8.3144598e6 * k * c * 1e-6 / (101325 * 0.04401)
    par = 4.6 * 0.5 * 0.9 * 0.78 * 0.93 * v.radiation * (1 - np.exp(-0.7 * lai))

    j = 210 * lai * np.exp(37e3 * (k - 298.15) / (8.314 * k * 298.15))
    j *= (1 + np.exp((710 * 298.15 - 22e4) / (8.314 * 298.15))) / (
        1 + np.exp((710 * k - 22e4) / (8.314 * k))
    )
    a = 0.385 * par
    j = (j + a - np.sqrt((j + a) ** 2 - 2.8 * j * a)) / 1.4
    stomata, gamma = 0.67 * ppm, 1.7 * t / lai + 34 * (1 - 1 / lai)
    p = j * (stomata - gamma) / (4 * (stomata + 2 * gamma))
    ab = 0.03 * (p - p * gamma / stomata) * s(-5e-4 * (buf - 2e4))
    h = (
        s(5e-3 * (buf - 1e3))
        * (0.047 * t24 + 0.06)
        * s(1.1587 * (t24 - 15))
        * s(-1.3904 * (t24 - 24.5))
    )
    z = tsum / 1035
    h_sum = 0.5 * (z + np.sqrt(z * z + 1e-4)) - 0.5 * (z - 1 + np.sqrt((z - 1) ** 2 + 1e-4))
    bf = 0.328 * h * s(0.869 * (t - 10)) * s(-0.5793 * (t - 34)) * h_sum
    bl, bs = 0.095 * h, 0.074 * h
    ba = 0.27 * bf + 0.28 * bl + 0.30 * bs
    m = (1 - np.exp(-2.85e6 * 3e-6)) * 2 ** (0.1 * (t24 - 25))
    fa, la, sa = m * 1.16e-7 * fruit, m * 3.47e-7 * leaf, m * 1.47e-7 * stem
    picked = 5e4 * s((fruit - 3e5) * 2 * np.log(100) / 1e4)
    pruned = 1e5 * s((leaf - 3 / 2.66e-5) * 2 * np.log(100) / 1e4)

    to_k, dt = v.temperature + 273.15, t - v.temperature
    fv = u.vents * 0.1 * 0.375 * np.sqrt(9.81 * 0.68 * abs(dt) / (k + to_k) + 0.09 * v.wind**2)
    fv += 1e-4 * max(v.wind, 0.25)
    rc, d = 0.9 * 0.78 * v.radiation, sat(t) - vp
    day = s(rc - 5)
    rs = (
        82
        * (rc + 4.3)
        / (rc + 0.54)
        * min(1.5, 1 + (6.1e-7 * day + 1.1e-11 * (1 - day)) * (ppm - 200) ** 2)
    )
    rs *= min(5.8, 1 + (4.3e-6 * day + 5.2e-6 * (1 - day)) * max(d, 0) ** 2)
    e = 2400 * lai / (2.45e6 * 65.8) * (max(d, 0) / (275 + rs) - max(-d, 0) / 275)
    h_in, h_out = 1.86 * abs(dt) ** 0.33 + 4.5, 2.8 + 1.2 * v.wind
    glass = (v.temperature * h_out + t * h_in) / (h_in + h_out)
    dew = 6.4e-9 * 1.86 * 1.286 * abs(t - glass) ** 0.33 * max(0, vp - sat(glass))
    pipe = 1.99 * abs(tp - t) ** 0.32 * (tp - t) + 0.88 * 5.67e-8 * ((tp + 273.15) ** 4 - k**4)
    pipe *= 0.3
    capacity = 0.25 * np.pi * 1.875 * ((0.051**2 - 0.047**2) * 7850 * 640 + 0.047**2 * 1000 * 4180)
    loss = 1.286 / (1 / h_in + 1 / h_out) + 1200 * fv
    heat = pipe + 0.85 * rc - loss * dt - 2.45e6 * e
    vapour = e - dew - 18 / 8314 * fv * (vp / k - v.vapour / to_k)
    return np.array(
        [
            heat / (4560 + 1200 * lai + 40480),
            (u.co2 - 44 / 30 * (ab - ba - fa - la - sa) - fv * (c - v.co2)) / 3.8,
            vapour / (18 * 3.8 / (8314 * k)),
            (u.heating - pipe) / capacity,
            ab - bf - bl - bs - ba,
            bf - fa - picked,
            bl - la - pruned,
            bs - sa,
            t / 86400,
            (t - t24) / 86400,
            picked,
        ]
    )


def flatten(state: Any) -> np.ndarray:
    return np.array([np.asarray(leaf) for leaf in jax.tree.leaves(state)])


def random_case(rng: np.random.Generator) -> tuple[House, Control, Outside]:
    """Draw a state and its conditions from the whole range of the task."""
    t, outside = rng.uniform(8, 34), rng.uniform(-10, 28)
    crop = Crop(*rng.uniform([2e3, 300, 4e4, 2e3, 0, 15], [2e4, 2.8e5, 9.8e4, 1e5, 2500, 25]))
    damp = rng.uniform(0.4, 1.02)
    air = Air(
        t, rng.uniform(500, 3000), damp * float(saturation_pressure(t)), t + rng.uniform(0, 40)
    )
    control = Control(
        rng.choice([0.0, 75.0, 150.0]), rng.choice([0.0, 0.05, 0.3, 1.0]), rng.choice([0.0, 5.0])
    )
    vapour = rng.uniform(0.5, 1) * float(saturation_pressure(outside))
    weather = Outside(rng.choice([0.0, 300.0, 800.0]), outside, vapour, rng.uniform(0.5, 15), 750.0)
    return jax.tree.map(np.float64, (House(air, crop, 0.0), control, weather))


@cache
def truths() -> tuple[Any, np.ndarray]:
    """Return cases, and their states after half an hour.

    The states come from an implicit method at tight tolerance.
    """
    rng, cases, ends = np.random.default_rng(1), [], []
    for _ in range(8):
        state, control, weather = random_case(rng)
        solved = solve_ivp(
            lambda _, y, u=control, v=weather: equations(y, u, v),
            (0, STEP),
            flatten(state),
            method="Radau",
            rtol=1e-8,
            atol=1e-6,
        )
        assert solved.success
        cases.append((state, control, weather))
        ends.append(solved.y[:, -1])
    return stack_cases(cases), np.array(ends)


@jax.jit
def step_states(state: House, control: Control, weather: Outside, substeps: Any) -> House:
    """Step all cases; one program for any number of steps."""
    return glasshouse.step(state, control, weather, HOUSE, VARIETY, STEP, substeps)


@cache
def errors(substeps: int) -> np.ndarray:
    """Return the absolute errors of all cases and states, ``(cases, 11)``."""
    cases, truth = truths()
    with jax.enable_x64():
        return flatten(step_states(*cases, substeps)).T - truth


def stack_cases(cases: Any) -> Any:
    return jax.tree.map(lambda *leaves: np.array(leaves, np.float64), *cases)


def test_crop_equals_greenlight() -> None:
    crop, temperature, ppm, light = stack_cases([inputs for inputs, _ in GREENLIGHT])

    @jax.jit
    def ours(crop: Crop, temperature: Any, ppm: Any, light: Any) -> Any:
        flow = tomato_crop.flows(crop, temperature, ppm, light, VARIETY)
        return *tomato_crop.derivative(crop, flow, temperature)[:4], tomato_crop.uptake(flow)

    with jax.enable_x64():
        computed = np.array(ours(crop, temperature, ppm, light)).T
    np.testing.assert_allclose(computed, [published for _, published in GREENLIGHT], rtol=1e-10)


def test_derivative_equals_the_papers_equations() -> None:
    rng = np.random.default_rng(0)
    cases = [random_case(rng) for _ in range(30)]
    with jax.enable_x64():
        ours = flatten(
            jax.jit(lambda *c: glasshouse.derivative(*c, HOUSE, VARIETY))(*stack_cases(cases))
        ).T
    truth = [equations(flatten(state), control, weather) for state, control, weather in cases]
    np.testing.assert_allclose(ours, truth, rtol=1e-8, atol=1e-11)


def test_stiff_steps_agree_with_an_implicit_solver() -> None:
    """Steps of half an hour are accurate anywhere in the task's range.

    The units are degC, mg/m3, Pa, degC, mg/m2 (four), degC day, degC and mg/m2.
    """
    worst = np.abs(errors(round(STEP / glasshouse.SUBSTEP))).max(0)
    assert (worst < [0.02, 0.1, 1, 0.01, 10, 10, 0.1, 0.1, 1e-3, 1e-3, 0.1]).all(), worst


def test_order_of_convergence_is_four() -> None:
    """Take a night without kinks.

    The sign of condensation and the limits of the stomata do not change in it.
    """
    crop = Crop(15e3, 150e3, 90e3, 60e3, 1500.0, 20.0)
    air = Air(20.0, 1100.0, 1700.0, 45.0)
    control = Control(100.0, 0.03, 0.0)
    night = Outside(0.0, 12.0, 1e3, 4.0, 750.0)
    case = House(air, crop, 0.0), control, night
    solved = solve_ivp(
        lambda _, y: equations(y, control, night),
        (0, STEP),
        flatten(case[0]),
        method="DOP853",
        rtol=1e-13,
        atol=1e-11,
    )
    with jax.enable_x64():
        ours = [flatten(step_states(*stack_cases([case] * 8), n))[:, 0] for n in (6, 12, 24)]
    worst = np.abs(np.array(ours) - solved.y[:, -1])[:, :6]
    orders = np.log2(worst[:-1] / worst[1:])
    assert (np.abs(orders - 4) < 0.7).all(), orders


def test_below_the_compensation_point_nothing_is_assimilated() -> None:
    """The published formula gains there, because two of its terms are negative together.

    They are its numerator and its photorespiration.
    """
    for ppm in (0.0, 20.0, 45.0):
        crop = Crop(1e4, 1e5, 9e4, 5e4, 1500.0, 20.0)
        assert float(tomato_crop.assimilation(crop, 20.0, ppm, 500.0, VARIETY)) == 0
    young = Crop(1e4, 312.0, 4368.0, 1560.0, 0.0, 8.0)
    assert np.isfinite(float(tomato_crop.assimilation(young, 5.0, 400.0, 300.0, VARIETY)))


# -- a season --------------------------------------------------------------------------------------


@cache
def season() -> tuple[House, House, dict[str, np.ndarray]]:
    """Return the states before and after 200 days from 11 December, and what flowed between.

    The set points are 20/18 degC, 20/18 degC without carbon dioxide, and 17/15 degC.
    """
    warm = np.array([20.0, 20.0, 17.0])
    cold = np.array([18.0, 18.0, 15.0])
    dosing = np.array([5.0, 0.0, 5.0])

    def weather(time: Any) -> Outside:
        day, hour = 345 + jnp.floor(time / 86400), jnp.mod(time, 86400.0) / 3600
        peak = 420 + 330 * jnp.sin(2 * np.pi * (day - 80) / 365)
        half = 0.5 * (12 + 4.2 * jnp.sin(2 * np.pi * (day - 80) / 365))
        sun = peak * jnp.maximum(0, 1 - ((hour - 12) / half) ** 2)
        t = (
            10.5
            - 7.5 * jnp.cos(2 * np.pi * (day - 20) / 365)
            + 3.5 * jnp.cos(2 * np.pi * (hour - 15) / 24)
        )
        return Outside(sun, t, 0.8 * saturation_pressure(t), 3.5, 700.0)

    def flow_rates(state: House, control: Control, outside: Outside) -> dict[str, Any]:
        flow = glasshouse.crop_flows(state.air, state.crop, outside, HOUSE, VARIETY)
        flux = glasshouse.fluxes(state.air, state.crop, control, outside, HOUSE)
        fed = {"heat": control.heating, "dosed": control.co2, "uptake": tomato_crop.uptake(flow)}
        return fed | flow._asdict() | flux._asdict()

    def five_minutes(state: House, total: Any, time: Any, day: Any, night: Any, dose: Any) -> Any:
        outside = weather(time)
        light = outside.radiation > 0
        target, air = jnp.where(light, day, night), state.air
        damp = air.vapour / saturation_pressure(air.temperature)
        vents = jnp.clip(jnp.maximum((air.temperature - target - 3) / 4, damp - 0.85), 0, 1)
        ppm = glasshouse.co2_ppm(air.co2, air.temperature)
        co2 = jnp.where(light & (vents < 0.3), dose * jnp.clip((1000 - ppm) / 100, 0, 1), 0)
        control = Control(150 * jnp.clip((target + 1 - air.temperature) / 2, 0, 1), vents, co2)
        rates = glasshouse.decay_rates(state, control, outside, HOUSE)

        def remainder(house_and_total: Any) -> Any:
            slope = glasshouse.derivative(house_and_total[0], control, outside, HOUSE, VARIETY)
            slope = jax.tree.map(lambda d, rate, y: d + rate * y, slope, rates, house_and_total[0])
            return slope, flow_rates(house_and_total[0], control, outside)

        return exponential_rk4(
            remainder, (rates, jax.tree.map(lambda _: 0.0, total)), (state, total), 300.0, 1, 4
        )

    def run_season(day: Any, night: Any, dose: Any) -> Any:
        start = jax.tree.map(jnp.float64, House(Air(18.0, 700.0, 1500.0, 30.0), PLANTED, 0.0))
        total = jax.tree.map(
            lambda _: jnp.float64(0), flow_rates(start, Control(0.0, 0.0, 0.0), weather(0.0))
        )

        def advance(i: Any, house_and_total: Any) -> Any:
            return five_minutes(*house_and_total, 300.0 * i, day, night, dose)

        return start, jax.lax.fori_loop(0, 200 * 288, advance, (start, total))

    with jax.enable_x64():
        start, (end, total) = jax.device_get(jax.jit(jax.vmap(run_season))(warm, cold, dosing))
    return start, end, total


def test_season_of_another_implementation() -> None:
    """Compare fresh tomatoes (kg/m2), heat (MJ/m2) and carbon dioxide (kg/m2).

    The other implementation is a midpoint method of 60 s in NumPy.

    How it started and when it switched between day and night was not recorded; hence the
    tolerances.
    """
    _, end, total = season()
    np.testing.assert_allclose(end.harvest * 1e-6 / DRY_MATTER, [33.1, 21.4, 33.3], rtol=0.025)
    np.testing.assert_allclose(total["heat"] * 1e-6, [896, 845, 708], rtol=0.025)
    np.testing.assert_allclose(total["dosed"] * 1e-6, [17.5, 0, 15.9], rtol=0.04)


def test_carbohydrates_close_over_a_season() -> None:
    start, end, total = season()
    stored = sum(end.crop[i] - start.crop[i] for i in range(4))
    grown = total["to_fruit"] + total["to_leaves"] + total["to_stem"]
    respired = (
        total["growing"] + total["fruit_upkeep"] + total["leaf_upkeep"] + total["stem_upkeep"]
    )
    taken_out = total["picked"] + total["pruned"]
    np.testing.assert_allclose(total["assimilated"] - respired - taken_out, stored, rtol=1e-9)
    np.testing.assert_allclose(total["uptake"] * 30 / 44, stored + taken_out, rtol=1e-9)
    np.testing.assert_allclose(total["picked"], end.harvest, rtol=1e-9)
    buffer = total["assimilated"] - grown - total["growing"]
    np.testing.assert_allclose(buffer, end.crop.buffer - start.crop.buffer, rtol=1e-6)


def test_heat_vapour_and_carbon_dioxide_close_over_a_season() -> None:
    """Inflow minus outflow is what the glasshouse stores, which is little beside what flows."""
    start, end, total = season()
    pipes = total["heat"] - total["pipe"]
    np.testing.assert_allclose(
        pipes, glasshouse.PIPE_CAPACITY * (end.air.pipe - start.air.pipe), rtol=1e-6, atol=1
    )
    latent = glasshouse.LATENT_HEAT * total["transpired"]
    heat = total["pipe"] + total["sun"] - total["cover"] - total["vented"] - latent
    assert (np.abs(heat) < 50_000 * 15).all()  # J/(m2 K) of air, floor and leaves, times K
    assert (np.abs(heat) < 5e-4 * total["sun"]).all()
    water = total["transpired"] - total["condensed"] - total["vented_vapour"]
    assert (np.abs(water) < 3.8 * 0.03).all()  # kg/m3 in saturated air of 30 degC
    assert (total["transpired"] > 100).all()
    carbon = total["dosed"] - total["uptake"] - total["vented_co2"]
    np.testing.assert_allclose(
        carbon, glasshouse.AIR_HEIGHT * (end.air.co2 - start.air.co2), atol=100
    )  # of 1e7 mg


def test_constant_climates_of_another_implementation() -> None:
    """Compare fresh tomatoes of 180 days, kg/m2.

    They depend on temperature, ppm, and W/m2 of absorbed light in the hours of light.
    """
    cases = np.array(
        [[20.0, 800, 100, 16], [20.0, 400, 100, 16], [24.0, 800, 100, 16], [18.0, 800, 60, 12]]
    ).T

    def grow(t: Any, ppm: Any, watt: Any, hours: Any) -> Any:
        def ten_minutes(i: Any, state: Any) -> Any:
            lit = jnp.mod(i, 144) < 6 * hours

            def slope(y: Any) -> Any:
                light = (
                    4.6
                    * 0.93
                    * jnp.where(lit, watt, 0.0)
                    * (1 - jnp.exp(-0.7 * tomato_crop.leaf_area_index(y[0])))
                )
                flow = tomato_crop.flows(y[0], t, ppm, light, VARIETY)
                return tomato_crop.derivative(y[0], flow, t), flow.picked

            zero = jax.tree.map(lambda _: 0.0, state)
            return exponential_rk4(slope, zero, state, 600.0, 1)

        start = jax.tree.map(jnp.float64, (PLANTED, 0.0))
        return jax.lax.fori_loop(0, 180 * 144, ten_minutes, start)[1]

    with jax.enable_x64():
        picked = np.asarray(jax.jit(jax.vmap(grow))(*cases))
    np.testing.assert_allclose(picked * 1e-6 / DRY_MATTER, [46.7, 34.8, 44.7, 17.5], atol=0.3)


def test_conversions() -> None:
    """Saturated air at 20 degC: 2339 Pa (steam tables); 400 ppm at 20 degC is 732 mg/m3."""
    assert float(saturation_pressure(20.0)) == pytest.approx(2339, rel=0.006)
    assert co2_density(400.0, 20.0) == pytest.approx(732, rel=1e-3)
    assert glasshouse.co2_ppm(co2_density(640.0, 12.0), 12.0) == pytest.approx(640)

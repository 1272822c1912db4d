"""High-tech glasshouse against published definitions, a stiff solver and balances.

Money is computed by hand, and nothing cheap pays.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.greenhouse.physics import glasshouse, heat_store, root_zone, tomato_crop
from rlbench_suite.envs.greenhouse.physics import high_tech_glasshouse as model
from rlbench_suite.envs.greenhouse.physics.glasshouse import (
    Air,
    Glasshouse,
    Outside,
    saturation_pressure,
)
from rlbench_suite.envs.greenhouse.physics.high_tech_glasshouse import Climate, Nodes, Setting
from rlbench_suite.envs.greenhouse.physics.tomato_crop import Crop, Variety
from rlbench_suite.envs.greenhouse.players.high_tech_grower import HighTechGrower
from rlbench_suite.envs.greenhouse.tasks.tomato_high_tech import ENTRIES, FLUE_CO2, POSITION

pytestmark = pytest.mark.of_variants
STEP = 1800.0
"""s"""
DEEP = 10.0
"""degC: temperature of the deep soil"""
DAY = 48
PUBLISHED = Glasshouse(transmission=0.85)
NIGHT = (
    Climate(
        Air(19.0, 1500.0, 1700.0, 45.0),
        Nodes(20.5, 17.0, 15.0, 14.0, 13.0, 12.0, 11.0, 12.0, 3.0, 30.0, 8.0, 1000.0, 900.0),
        Crop(15e3, 150e3, 9e4, 6e4, 1500.0, 20.0),
        0.0,
        root_zone.CAPACITY,
    ),
    Setting(100.0, 0.1, 3.0, 0.8, 60.0, 1e-4),
    Outside(30.0, 0.0, 500.0, 4.0, 750.0),
)
NOON = (
    Climate(
        Air(27.0, 800.0, 2300.0, 28.0),
        Nodes(26.0, 29.0, 22.0, 20.0, 18.0, 16.0, 13.0, 27.0, 20.0, 27.0, 24.0, 750.0, 2000.0),
        Crop(8e3, 280e3, 3e4, 3e4, 700.0, 23.0),
        0.0,
        root_zone.CAPACITY,
    ),
    Setting(0.0, 0.7, 5.0, 0.0, 0.0, 0.0),
    Outside(700.0, 18.0, 1400.0, 2.0, 730.0),
)
GREENLIGHT = (
    (
        (-0.09434785998852402, -4.451437997409802, -6.648411531750497, 0.0007175252608834074),
        (
            -0.04724973738624277,
            -0.000584996484105382,
            0.0007779383429672447,
            5.1180154142581885e-05,
            1.2795038535645471e-05,
            3.198759633911368e-06,
            7.99689908477842e-07,
            0.21331061529925976,
            -0.0066328811076373645,
            -0.21939117447849102,
            0.9472706169675849,
            45.60078128343248,
            65.69695817651947,
        ),
        (-0.2725628609416686, 0.31389743524236946),
    ),
    (
        (-0.16556703059119596, -1.754844753268552, -15.7729230706561, -0.00018567100953671985),
        (
            0.16360778173964327,
            -0.002379827660958216,
            0.0030298651252408477,
            0.00010236030828516377,
            2.5590077071290943e-05,
            3.1987596339113674e-06,
            2.399069725437526e-06,
            0.0,
            0.009640126314871236,
            -0.05823190783737475,
            1.3643045838627545,
            26.84987925955407,
            128.1157935174882,
        ),
        (0.030442694301103038, 0.1941742799),
    ),
)
"""Slopes a second of air, parts, and buffer and fruit of the two cases.

They were computed once from the definitions of GreenLight (Katzin et al., Clear BSD), files
``greenhouse_vanthoor_2011_chapter_8.json``, ``crop_vanthoor_2011_chapter_9_simplified.json`` and
``extension_greenhouse_katzin_2021_vanthoor_2011.json``, with the dimensions of Vanthoor's table
8.2, the sky of ``high_tech_glasshouse.sky_temperature``, and the mean of the cover's two sides.
"""


def in_float64(tree: Any) -> Any:
    return jax.tree.map(np.float64, tree)


def flatten(tree: Any) -> np.ndarray:
    return np.array([np.asarray(leaf) for leaf in jax.tree.leaves(tree)])


@cache
def slopes() -> Any:
    """Return the slopes of a flat state, and their Jacobian, compiled in float64."""
    kind = jax.tree.structure(NIGHT[0])

    def slope(y: Any, setting: Setting, outside: Outside, house: Glasshouse) -> Any:
        state = jax.tree.unflatten(kind, list(y))
        return jnp.stack(
            jax.tree.leaves(model.derivative(state, setting, outside, house, Variety(), DEEP))
        )

    return jax.jit(slope), jax.jit(jax.jacfwd(slope))


@jax.jit
def step_states(state: Climate, setting: Setting, outside: Outside, substeps: Any) -> Climate:
    return model.step(state, setting, outside, Glasshouse(), Variety(), DEEP, STEP, substeps)


def after_half_an_hour(case: Any, tolerance: float) -> np.ndarray:
    """Return the state by Radau's method."""
    state, *inputs = in_float64(case)
    slope, jacobian = slopes()
    house = in_float64(Glasshouse())
    solved = solve_ivp(
        lambda _, y: np.asarray(slope(y, *inputs, house)),
        (0, STEP),
        flatten(state),
        method="Radau",
        rtol=tolerance,
        atol=tolerance,
        jac=lambda _, y: np.asarray(jacobian(y, *inputs, house)),
    )
    assert solved.success
    return np.asarray(solved.y[:, -1])


def random_case(rng: np.random.Generator) -> Any:
    """Sample a state and its conditions from the whole range of the task.

    Screen and lamps have just switched.
    """
    t, outside = rng.uniform(8, 34), rng.uniform(-10, 28)
    crop = Crop(*rng.uniform([2e3, 300, 5e3, 2e3, 0, 15], [2e4, 2.8e5, 9.8e4, 1e5, 2500, 25]))
    top = t + 0.8 * rng.uniform() * (outside - t)
    cover = outside + 0.5 * rng.uniform() * (t - outside)
    damp = rng.uniform(0.4, 1) * float(saturation_pressure(t))
    damp_top = rng.uniform(0.5, 1) * float(saturation_pressure(top))
    nodes = Nodes(
        t + rng.uniform(-3, 3), t + rng.uniform(-5, 5), *rng.uniform(8, 20, 5), 0.5 * (t + top),
        cover, t + rng.uniform(0, 15), top, rng.uniform(400, 2000), damp_top,
    )  # fmt: skip
    air = Air(t, rng.uniform(500, 3000), damp, t + rng.uniform(0, 40))
    setting = Setting(
        rng.choice([0, 75.0, 150.0]), rng.choice([0, 0.05, 0.3, 1.0]), rng.choice([0, 5.0]),
        rng.choice([0, 0.5, 0.97, 1.0]), rng.choice([0, 66.7]), rng.choice([0, 5e-4]),
    )  # fmt: skip
    humid = rng.uniform(0.5, 1) * float(saturation_pressure(outside))
    weather = Outside(rng.choice([0, 300.0, 800.0]), outside, humid, rng.uniform(0.5, 15), 750.0)
    return Climate(air, nodes, crop, 0.0, rng.uniform(0.5, 8)), setting, weather


@pytest.mark.parametrize(
    ("case", "published"), list(zip((NIGHT, NOON), GREENLIGHT, strict=True)), ids=["night", "noon"]
)
def test_slopes_are_those_of_greenlight(case: Any, published: Any) -> None:
    """Within what the finite slope of mixing at equal temperatures changes."""
    with jax.enable_x64():
        state, *inputs = in_float64(case)
        computed = np.asarray(slopes()[0](flatten(state), *inputs, in_float64(PUBLISHED)))
    np.testing.assert_allclose(computed[:19], sum(published, ()), rtol=5e-5, atol=1e-12)


def test_steps_agree_with_radau() -> None:
    """Half an hour after a jump of all devices is accurate, anywhere in the task's range.

    The units are degC, mg/m3, Pa and kg/m2.
    """
    rng = np.random.default_rng(1)
    worst = np.zeros(25)
    with jax.enable_x64():
        for _ in range(3):
            case = random_case(rng)
            reached = flatten(step_states(*in_float64(case), model.SUBSTEPS))
            worst = np.maximum(worst, np.abs(reached - after_half_an_hour(case, 1e-6)))
    names = [*Air._fields, *Nodes._fields]
    limits = {"co2": 2.0, "top_co2": 10.0, "vapour": 30.0, "top_vapour": 30.0}
    for name, error in zip(names, worst, strict=False):
        assert error < limits.get(name, 0.2), (name, error)
    assert (worst[17:21] < 5).all()  # mg/m2 of carbohydrates
    assert worst[-1] < 0.002


@pytest.mark.parametrize(
    ("screen", "counts", "order"), [(1.0, (320, 640, 1280), 4), (0.0, (20, 40, 80), 2)]
)
def test_order_of_convergence(screen: float, counts: tuple[int, ...], order: int) -> None:
    """The order is four while a step is short beside the fastest decay, as under a closed screen.

    It is two where air mixes faster.
    """
    state, setting, outside = NIGHT
    setting = setting._replace(screen=screen, vents=0.0, lamps=0.0)
    nodes = state.nodes._replace(lamps=19.0, cover=5.0)
    case = state._replace(nodes=nodes), setting, outside._replace(radiation=0.0)
    with jax.enable_x64():
        truth = after_half_an_hour(case, 1e-11)
        worst = [
            np.abs(flatten(step_states(*in_float64(case), n)) - truth)[[0, 4]].max() for n in counts
        ]
    orders = np.log2(np.array(worst[:-1]) / worst[1:])
    assert (orders > order - 0.8).all(), (orders, worst)


def heat_content(state: Climate) -> Any:
    """Return the heat of all parts over 0 degC, J/m2."""
    air, nodes = state.air, state.nodes
    heat = 1200 * (3.8 * air.temperature + model.TOP_HEIGHT * nodes.top)
    heat += glasshouse.PIPE_CAPACITY * air.pipe + glasshouse.FLOOR_CAPACITY * nodes.floor
    heat += model.SCREEN_CAPACITY * nodes.screen + model.COVER_CAPACITY * nodes.cover
    heat += model.LAMP_CAPACITY * nodes.lamps
    heat += glasshouse.LEAF_CAPACITY * tomato_crop.leaf_area_index(state.crop) * nodes.canopy
    soil = zip(model.SOIL_THICKNESSES, nodes[2:7], strict=False)
    return heat + model.SOIL_CAPACITY * sum(thickness * t for thickness, t in soil)


@pytest.mark.parametrize("case", [NIGHT, NOON], ids=["night", "noon"])
def test_heat_water_and_carbon_dioxide_close(case: Any) -> None:
    """Stores change in a second by what enters minus what leaves."""
    with jax.enable_x64():
        state, setting, outside = in_float64(case)

        @jax.jit
        def rates(state: Climate) -> Any:
            flux = model.fluxes(state, setting, outside, PUBLISHED, DEEP)
            slope = model.derivative(state, setting, outside, PUBLISHED, Variety(), DEEP)
            # Leaves that grow bring their heat with them: their number stays, and their temperature
            # moves.
            heat = heat_content(slope._replace(crop=state.crop))
            return (
                slope,
                flux,
                tomato_crop.uptake(model.crop_flows(state, flux.driving.light, Variety())),
                heat,
            )

        slope, flux, uptake, heat = jax.device_get(rates(state))
    latent = 2.45e6 * (flux.driving.transpired - flux.condensed)
    entered = setting.heating + setting.lamps + flux.sun - flux.outward - latent
    np.testing.assert_allclose(heat, entered, atol=1e-9 * (200 + abs(entered)))
    vapour = sum(
        height * change / (t + 273.15) * 18 / 8314
        for height, change, t in (
            (3.8, slope.air.vapour, state.air.temperature),
            (0.4, slope.nodes.top_vapour, state.nodes.top),
        )
    )
    np.testing.assert_allclose(
        vapour, flux.driving.transpired - flux.condensed - flux.vented_vapour, rtol=1e-9
    )
    carbon = 3.8 * slope.air.co2 + 0.4 * slope.nodes.top_co2
    np.testing.assert_allclose(carbon, setting.co2 - uptake - flux.vented_co2, rtol=1e-9)
    np.testing.assert_allclose(slope.water, setting.irrigation - flux.driving.transpired, rtol=1e-9)


def test_screen_keeps_heat_and_takes_light() -> None:
    state, setting, outside = NIGHT
    fluxes = jax.jit(
        lambda screen: model.fluxes(
            state, setting._replace(screen=screen), outside, PUBLISHED, DEEP
        )
    )
    closed, opened = fluxes(1.0), fluxes(0.0)
    assert closed.rates.mixed < 0.01 * opened.rates.mixed
    closed, opened = closed.driving, opened.driving
    assert closed.air.temperature > opened.air.temperature
    # Layers of 0.85 and 0.6 that reflect 0.13 and 0.35, by the sum of all reflections between them.
    lamps = 5.4 * 0.55 * 60 * 0.93 * (1 - np.exp(-0.7 * 2.394)) * (1 + 0.65 * np.exp(-0.7 * 2.394))
    assert (closed.light - lamps) / (opened.light - lamps) == pytest.approx(
        0.6 / (1 - 0.13 * 0.35), rel=1e-4
    )


def test_dry_root_zone_stops_transpiration_and_growth() -> None:
    """Equation 84 of FAO 56: no stress down to 60 % of the water, then in proportion."""
    np.testing.assert_allclose(
        root_zone.stress(np.array([0, 1.2, 2.4, 4.8, 8.0])), [0, 0.25, 0.5, 1, 1], rtol=1e-6
    )
    state, setting, outside = NOON

    def transpired_water(water: float) -> float:
        dried = state._replace(water=water)
        return float(
            jax.jit(model.fluxes)(dried, setting, outside, PUBLISHED, DEEP).driving.transpired
        )

    assert transpired_water(2.4) == pytest.approx(0.5 * transpired_water(8.0), rel=1e-5)
    assert transpired_water(0.0) == 0
    assert root_zone.drain(8.5) == (8.0, 0.5)


def test_store_obeys_its_equation_and_its_limits() -> None:
    solved = solve_ivp(
        lambda _, q: 40.0 - 90.0 - q / heat_store.COOLING, (0, STEP), [2e6], rtol=1e-10, atol=1e-3
    )
    heat, *flows = heat_store.pass_time(2e6, 40.0, 90.0, STEP)
    assert float(heat) == pytest.approx(solved.y[0, -1], rel=1e-6)
    assert list(map(float, flows)) == [40, 90]
    heat, charged, _ = heat_store.pass_time(heat_store.CAPACITY, 150.0, 0.0, STEP)
    assert float(heat) == pytest.approx(heat_store.CAPACITY)
    # What has cooled.
    assert float(charged) == pytest.approx(heat_store.CAPACITY / heat_store.COOLING, rel=1e-3)
    heat, _, discharged = heat_store.pass_time(18e3, 0.0, 150.0, STEP)
    assert (float(heat), float(discharged)) == (
        pytest.approx(0, abs=1),
        pytest.approx(10, rel=1e-3),
    )


# -- the task --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task() -> Any:
    return card("TomatoHighTech-v0").build()


@pytest.fixture(scope="module")
def start(task: Any) -> Any:
    """Return the episode of a seed at its begin, with prices of 1, 0.05, 0.2, 0.1 and 1."""
    episode = jax.jit(lambda key: begin(task, key, 0, ContextSource(np.int32(1), np.int32(-1)))[0])(
        seed_key(2)
    )
    params = episode.params
    prices = params.prices._replace(tomato=1.0, heat=0.05, co2=0.2)
    return episode.state, params._replace(
        prices=prices, utilities=params.utilities._replace(electricity=0.1, water=1.0)
    )


def test_reward_by_hand(task: Any, start: Any) -> None:
    """Compute a reward with boiler, dosing, lamps and irrigation by hand.

    60 W/m2 of boiler give 3.42 mg/(m2 s) of carbon dioxide, of 5 dosed. Lamps are at one half, and
    0.5 kg/m2 of water flow.
    """
    state, params = start
    devices = state.equipment.applied._replace(lamps=0.5, boiler=0.4, irrigation=0.5)
    # 108 kJ/m2 of the boiler and 36 of the store went to the pipes: 0.04 kWh.
    heat = state.equipment.heat - 36e3
    crop = state.house.crop._replace(fruit=state.house.crop.fruit + 600.0)  # 10 g of fresh tomatoes
    next_state = state._replace(
        house=state.house._replace(crop=crop),
        applied=state.applied._replace(co2=1.0),
        equipment=state.equipment._replace(applied=devices, heat=heat),
    )
    bought_co2 = (5 - 60 * FLUE_CO2) * STEP * 1e-6
    profit = 0.01 - 0.04 * 0.05 - bought_co2 * 0.2 - 0.5 * 200 / 3 * 0.5e-3 * 0.1 - 0.5e-3
    assert float(task.reward(state, None, next_state, None, params)) == pytest.approx(
        profit, rel=1e-3
    )


def test_stored_heat_counts_in_full(task: Any, start: Any) -> None:
    """Charging costs nothing until the heat is used.

    Emptying the store costs as much as burning.
    """
    state, params = start

    @jax.jit
    def profit_of(action: Any) -> Any:
        next_state = task.transition(state, action, jax.random.key(1), params)
        reward = task.reward(state, None, next_state, None, params)
        value = (next_state.house.crop.fruit - state.house.crop.fruit) * tomato_crop.FRESH
        return reward - value, next_state.equipment.heat

    def setting(**levels: float) -> np.ndarray:
        names = [component.name for component in task.action_components()]
        return np.array([levels.get(name, 0.0) for name in names], np.float32)

    idle, charge, drain, burn = (
        profit_of(setting(**levels))
        for levels in ({}, {"boiler": 1.0}, {"heating": 1.0}, {"heating": 1.0, "boiler": 1.0})
    )
    assert charge[1] > state.equipment.heat > drain[1]
    assert float(charge[0]) == pytest.approx(float(idle[0]), abs=2e-6)  # but for what has cooled
    assert float(drain[0]) == pytest.approx(float(burn[0]), abs=2e-6)
    assert float(drain[0]) == pytest.approx(-0.05 * 0.075, rel=0.02)


@pytest.fixture(scope="module")
def step(task: Any) -> Any:
    return jax.jit(task.transition)


def test_what_is_used_is_counted(task: Any, start: Any, step: Any) -> None:
    """Count half an hour with the devices on, and one without, in which the tank cools.

    The boiler gives 60 W/m2, the pipes 30, and the rest is at one half.
    """
    state, params = start
    levels = {"heating": 0.2, "dosing": 1.0, "lamps": 0.5, "boiler": 0.4, "irrigation": 0.5}
    setting = np.array(
        [levels.get(component.name, 0.0) for component in task.action_components()], np.float32
    )
    used = []
    for action in (setting, np.zeros(7, np.float32)):
        state = step(state, action, jax.random.key(1), params)
        used.append({name: float(value) for name, value in task.info(state, params).items()})

    def rate(_: float, y: Any, boiler: float, pipes: float) -> list[float]:
        return [boiler - pipes - y[0] / heat_store.COOLING, pipes + y[0] / heat_store.COOLING]

    stored_and_left = [0.5 * heat_store.CAPACITY, 0.0]
    electricity = 0.5 * 200 / 3 * 0.5e-3
    dosed_co2 = (5 - 60 * FLUE_CO2) * STEP * 1e-6
    for counts, flows in zip(used, ((60.0, 30.0), (0.0, 0.0)), strict=True):
        stored_and_left = solve_ivp(rate, (0, STEP), stored_and_left, args=flows, rtol=1e-9).y[
            :, -1
        ]
        assert counts["heat_used"] == pytest.approx(stored_and_left[1] / 3.6e6, rel=1e-4)
        assert counts["electricity_used"] == pytest.approx(electricity, rel=1e-5)
        assert counts["water_used"] == pytest.approx(0.5, rel=1e-5)
        assert counts["co2_bought"] == pytest.approx(dosed_co2, rel=1e-5)


HOURS = np.arange(330 * 24 + 1.0)
DAY_AHEAD = np.random.default_rng(4).uniform(-0.2, 0.5, len(HOURS))
"""EUR/kWh: some hours are paid for using electricity"""
FIRST = 3 * DAY
"""Row of the records at which a season begins"""


def task_with_price(electricity: Any) -> Any:
    """Build the task with a record of hourly prices of electricity."""
    prices = {"time": 3600 * HOURS, "electricity": np.broadcast_to(electricity, len(HOURS))}
    return card("TomatoHighTech-v0", context={"prices": prices}).build()


@pytest.fixture(scope="module")
def lit_days(task: Any, start: Any, step: Any) -> Any:
    """Return the states of a day with random settings, and the lamps' kWh/m2 of each step.

    The first state is included.
    """
    states, params = [start[0]], start[1]
    actions = np.random.default_rng(0).uniform(0, 1, (DAY, 7)).astype(np.float32)
    for action in actions:
        states.append(step(states[-1], action, jax.random.key(1), params))
    lamps = np.float64(actions[:, 4]) * 200 / 3 / 2000  # W/m2 for half an hour
    used = float(task.info(states[-1], params)["electricity_used"])
    assert used == pytest.approx(lamps.sum(), rel=1e-5)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states), lamps


def profits_of_steps(task: Any, states: Any, params: Any) -> np.ndarray:
    state, next_state = (
        jax.tree.map(lambda leaf, rows=rows: leaf[rows], states)
        for rows in (slice(-1), slice(1, None))
    )
    rewards = jax.jit(jax.vmap(task.reward, (0, None, 0, None, None)))(
        state, None, next_state, None, params
    )
    assert (rewards <= task.reward_space.high).all()
    return np.asarray(rewards, np.float64)


def test_entries_are_those_of_the_components(task: Any) -> None:
    assert tuple(component.name for component in task.observation_components()) == ENTRIES


def test_electricity_costs_what_the_record_says(start: Any, lit_days: Any, task: Any) -> None:
    """An hour's price holds for two steps, and below 0 the grower is paid.

    Twice the price is twice the cost.
    """
    (states, used), params = lit_days, start[1]._replace(row=np.int32(FIRST))
    hourly, twice = task_with_price(DAY_AHEAD), task_with_price(2 * DAY_AHEAD)
    free, fixed, shipped = (
        profits_of_steps(priced_task, states, params)
        for priced_task in (task_with_price(0), task_with_price(0.1), task)
    )
    cost = used * np.repeat(DAY_AHEAD[72:96], 2)
    assert cost.min() < -1e-4
    np.testing.assert_allclose(free - profits_of_steps(hourly, states, params), cost, atol=1e-7)
    np.testing.assert_allclose(free - profits_of_steps(twice, states, params), 2 * cost, atol=1e-7)
    np.testing.assert_allclose(fixed, shipped, atol=1e-8)  # its context has 0.1 EUR/kWh, too
    observations = jax.jit(jax.vmap(hourly.observation, (0, None, None)))(states, None, params)[:-1]
    prices = hourly.named(observations)["electricity_price"] * hourly.utility_scales[0]
    np.testing.assert_allclose(prices, np.repeat(DAY_AHEAD[72:96], 2), rtol=1e-5)
    assert hourly.observation_space.low[POSITION["electricity_price"]] == -2
    cheapest = jax.tree.map(lambda leaf: leaf[cost.argmin()], states)
    assert "Prices: electricity -0." in hourly.describe(cheapest, params)
    assert hourly.reward_space.high - task.reward_space.high >= -DAY_AHEAD.min() * 200 / 3 / 2000


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"electricity": 1000 * DAY_AHEAD},
         "electricity must be from -1 to 5 EUR/kWh, got .* in row 1"),
        ({"electricity": 100 * DAY_AHEAD}, "electricity must be from -1 to 5 EUR/kWh"),
        ({"electricity": np.where(HOURS == 6, np.nan, DAY_AHEAD)},
         "electricity is not finite in row 7"),
        ({"electricity": DAY_AHEAD[1:]}, "its columns must be of equal length"),
        ({"time": 3600 * (HOURS + (HOURS > 6))},
         "at most 3600 s from row to row, and goes up by 7200 in row 8"),
        ({"time": 3600 * (HOURS + 1)}, "time must begin at a midnight"),
    ],
    ids=["EUR/MWh", "ct/kWh", "empty hour", "shorter column", "missing hour", "from one o'clock"],
)  # fmt: skip
def test_bad_prices_cost_one_sentence(changed: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^.*prices: .*{message}"):
        card(
            "TomatoHighTech-v0",
            context={"prices": {"time": 3600 * HOURS, "electricity": DAY_AHEAD} | changed},
        )


def test_a_price_is_given_once() -> None:
    prices = {"time": 3600 * HOURS, "electricity": DAY_AHEAD}
    with pytest.raises(
        ValueError, match="electricity_price follows from the record of prices; leave it out"
    ):
        card("TomatoHighTech-v0", context={"prices": prices, "electricity_price": 0.2}).build()
    with pytest.raises(
        ValueError, match="it has none of the columns tomato, heat, co2"
    ):  # no lamps
        card("Tomato-v0", context={"prices": prices})


def test_without_the_devices_it_is_nearly_the_house_of_tomato(task: Any) -> None:
    """Over ten days of the same weather, heat and vents, only sky and soil make it colder.

    The screen is open.
    """
    plain = card("Tomato-v0").build()

    def days(task: Any, action: Any, key: Any) -> Any:
        episode = begin(task, key, 0, ContextSource(np.int32(1), np.int32(-1)))[0]

        def step(state: Any, number: Any) -> Any:
            next_state = task.transition(
                state, action, jax.random.fold_in(jax.random.key(1), number), episode.params
            )
            return next_state, (
                task.readings(next_state, episode.params),
                next_state.outside.temperature,
            )

        return jax.lax.scan(step, episode.state, jnp.arange(480))[1]

    plain_action = jnp.array([0.3, 0.02, 0.0])
    high_tech_action = jnp.array([0.3, 0.02, 0.0, 0.0, 0.0, 0.3, 0.1])
    (here, outside), (there, plain_outside) = jax.jit(
        lambda key: (days(task, high_tech_action, key), days(plain, plain_action, key))
    )(seed_key(2))
    np.testing.assert_array_equal(outside, plain_outside)
    warmth, ppm, damp = (float(np.mean(a - b)) for a, b in zip(here, there, strict=True))
    # Colder: the cover radiates to a sky colder than the air, and the soil takes heat. Tomato has
    # neither.
    assert warmth == pytest.approx(-4.2, abs=0.2)
    assert abs(ppm) < 50
    assert abs(damp) < 10
    assert np.corrcoef(here.temperature, there.temperature)[0, 1] > 0.9


class Overruled(NamedTuple):
    """A grower without a say in what is fixed."""

    grower: HighTechGrower
    fixed: Any
    """``(7,)``: the setting, not a number where the grower sets it"""

    def act(self, view: View, key: Any) -> jax.Array:
        setting, _ = self.grower.act((), view, key)
        return jnp.where(jnp.isnan(self.fixed), setting, self.fixed)


def profits(task: Any, players: list[Overruled], seeds: list[int], steps: int) -> np.ndarray:
    """Return the mean profit of each player, all side by side in one program.

    A lost crop earns nothing more.
    """

    def season(player: Overruled, key: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            episode, last = carry
            action = player.act(View(last.observation, None, episode.state, episode.params), key)
            advanced = advance(task, episode, action, steps)
            return jax.tree.map(
                lambda old, new: jnp.where(last.terminated, old, new), carry, advanced
            ), None

        start = begin(task, key, 0, ContextSource(np.int32(1), np.int32(-1)))
        return jax.lax.scan(step, start, None, steps)[0][0].total

    stacked = jax.tree.map(
        lambda *leaves: jnp.stack([jnp.float32(leaf) for leaf in leaves]), *players
    )
    keys = np.stack([seed_key(seed) for seed in seeds])
    totals = jax.jit(jax.vmap(jax.vmap(season, (None, 0)), (0, None)))(stacked, keys)
    return np.asarray(totals).mean(1)


def test_grower_beats_constants_and_every_device_pays(task: Any) -> None:
    grower = HighTechGrower.for_task(task)

    def player(setting: tuple[float, ...] = (), **changed: float) -> Overruled:
        return Overruled(grower._replace(**changed), np.array(setting or [np.nan] * 7))

    players = {
        "best": player(),
        "no lamps": player(worth=0.0),
        "no screen": player(cold_night=-99.0, cold_day=-99.0),
        "always shut": player(cold_night=99.0, cold_day=99.0, gap=0.0),
        "lamps day and night": player(worth=99.0, weak=9999.0, dark=0.0),
        "no water": player(watering=0.0),
        "empty store": player((np.nan, np.nan, np.nan, np.nan, np.nan, 0.0, np.nan)),
        "constant": player((0.3, 0.05, 0.2, 0.0, 0.0, 0.3, 0.15)),
        "constant with lamps": player((0.3, 0.1, 0.2, 0.3, 0.3, 0.3, 0.15)),
    }
    mean_profits = dict(
        zip(players, profits(task, list(players.values()), [0, 2], 100 * DAY), strict=True)
    )
    best = mean_profits.pop("best")
    assert all(profit < best - 1 for profit in mean_profits.values()), (best, mean_profits)
    assert max(mean_profits["constant"], mean_profits["constant with lamps"]) < 0.6 * best
    assert mean_profits["no water"] < 0.2 * best


def test_words_and_picture(task: Any, start: Any) -> None:
    state, params = start
    assert "Heat store 50 % full, root zone 100 %" in task.describe(state, params)
    assert task.draw(state, params).shape == task.picture_shape
    assert task.action_space.contains(task.parse("0.1, 0.2, 0, 1, 1, 0.5, 0.1", state, params))

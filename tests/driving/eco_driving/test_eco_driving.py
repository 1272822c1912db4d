"""EcoDriving against a plain simulation and closed forms, and against cheap play.

The closed forms are those of emissions, gaps and delays.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episode_checks import check_emissions, check_end, delay_of_second, episode_programs
from plain_signals import Junction, check_places, colour
from scipy.integrate import quad

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.roads import signal_plan
from rlbench_suite.envs.driving.roads.signal_plan import TICK, Lights, Plan
from rlbench_suite.envs.driving.tasks.eco_driving import eco_driving
from rlbench_suite.envs.driving.traffic import approach
from rlbench_suite.envs.driving.traffic.approach import LENGTH, Traffic
from rlbench_suite.envs.driving.traffic.car_following import Driver
from rlbench_suite.envs.driving.vehicle import emissions
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants
SEEDS = range(32)
AGENTS = eco_driving.LANES * eco_driving.SLOTS


@cache
def task(penetration: float = 0.5, dtype: str = "float32") -> Any:
    return card("EcoDriving-v0").build(difficulty=penetration, dtype=dtype)


# -- emissions -------------------------------------------------------------------------------------


def test_emissions_of_idling_and_cruising_are_those_published() -> None:
    """Compare HBEFA's PC_G_EU4 in g/s and g/km, and VT-CPFM in L/km.

    The latter is computed from its equations in SI units.
    """
    assert float(emissions.co2(0.0, 0.0)) == pytest.approx(2624.7, abs=0.1)
    for speed, grams in ((5, 434), (10, 211), (15, 163), (20, 158)):
        assert float(emissions.co2(speed, 0.0)) / speed == pytest.approx(grams, abs=0.5)
    assert float(emissions.co2(15.0, -3.0)) == 0.0
    for speed, litres in ((10, 0.0843), (15, 0.0641), (20, 0.0624), (25, 0.0760)):
        assert 1000 * float(emissions.fuel(speed, 0.0)) / speed == pytest.approx(litres, abs=6e-5)
    assert float(emissions.fuel(15.0, -3.0)) == pytest.approx(7.8e-4)


def test_a_change_of_speed_emits_the_same_at_any_acceleration() -> None:
    """Compare integrals, so that a car that leaves too slowly can be charged for the rest."""
    for a in (0.3, 1.0, 2.0):
        emission, _ = quad(lambda t, a=a: float(emissions.co2(5 + a * t, a)), 0, 10 / a)
        cruise, _ = quad(lambda t, a=a: float(emissions.co2(5 + a * t, 0.0)), 0, 10 / a)
        assert emission - cruise == pytest.approx(938.4 / 3.6 * (15**2 - 5**2) / 2, rel=1e-4)


# -- lights and roads ------------------------------------------------------------------------------


def test_lights_follow_their_plan() -> None:
    """Compare every tick of several plans with a list of what is shown when."""
    for first, second, offset in ((30, 70, 0), (53, 31, 41), (70, 30, 119)):
        plan, ticks = Plan(*np.int32([first, second, offset])), np.arange(300)
        shown_lights = jax.tree.map(
            np.asarray, jax.vmap(lambda tick, plan=plan: signal_plan.lights(plan, tick))(ticks)
        )
        for tick in ticks:
            for phase in (0, 1):
                light, to_green, to_amber = colour((first, second, offset), phase, int(tick))
                assert shown_lights.green[tick, phase] == (light == "green")
                assert shown_lights.amber[tick, phase] == (light == "amber")
                assert (shown_lights.to_green[tick, phase], shown_lights.to_amber[tick, phase]) == (
                    to_green,
                    to_amber,
                )


def drivers(count: int, desired: Any = 14.0) -> Driver:
    return Driver(np.broadcast_to(np.float64(desired), (1, count)), 1.0, 2.0, 1.0, 1.5)


def shines(green: Any, amber: Any = False) -> Lights:
    return Lights(jnp.full((1, 1), green), jnp.full((1, 1), amber), None, None)


@jax.jit
def drive(traffic: Traffic, driver: Driver, green: np.ndarray, line: float) -> Traffic:
    """Return the traffic after each tick."""

    def tick(traffic: Traffic, green: Any) -> tuple[Traffic, Traffic]:
        traffic = traffic._replace(stops_at_light=approach.holds(traffic, shines(green), line))
        ahead = approach.leaders(traffic.x, traffic.v, traffic.x)
        traffic = approach.move(
            traffic, ahead, approach.intention(traffic, ahead, driver, line), line
        )
        return traffic, traffic

    return jax.lax.scan(tick, traffic, green)[1]


def test_platoons_settle_at_the_gap_in_closed_form() -> None:
    """Compare s = (s0 + v T) / sqrt(1 - (v / v0)^4) behind a leader who drives 8 m/s."""
    with jax.enable_x64(True):
        desired = np.array([[8.0, *[14.0] * 11]])
        start = Traffic(
            jnp.arange(12.0)[::-1][None] * 20, jnp.full((1, 12), 5.0), jnp.zeros((1, 12), bool)
        )
        end = drive(start, drivers(12, desired), np.ones(4000, bool), 1e6)
        gaps = np.asarray(-np.diff(end.x[-1, 0]) - LENGTH)
    np.testing.assert_allclose(gaps, (2 + 8 * 1.0) / np.sqrt(1 - (8 / 14) ** 4), rtol=1e-6)


def crossings(x: np.ndarray, line: float) -> np.ndarray:
    """Return when each car crosses the line, s."""
    ticks = (x < line).sum(0)
    x_before, x_after = (np.take_along_axis(x, ticks[None] - k, 0)[0] for k in (1, 0))
    return TICK * (ticks + (line - x_before) / (x_after - x_before))


def test_delay_at_a_light_is_that_of_the_deterministic_queue() -> None:
    """Let cars come every 6 s to a red of 40 s.

    A queue discharges one car each headway after a lost time (D/D/1, the uniform delay of Webster
    1958). Both constants come from a standing queue, without its first car.
    """
    with jax.enable_x64(True):
        count, line, red = 12, 1300.0, 80
        cars, still = jnp.arange(float(count))[None], jnp.zeros((1, count))
        queue = Traffic(line - 2 - 7 * cars, still, still > 0)
        # They drive 13 m/s, the first as red begins.
        coming = Traffic(line - 13 - 78 * cars, still + 13, still > 0)
        crossed, stopped, free = (
            crossings(
                np.asarray(drive(cars, drivers(count), np.arange(400) >= begins, line).x[:, 0]),
                line,
            )
            for cars, begins in ((queue, 0), (coming, red), (coming, 0))
        )
    headway = np.diff(crossed)[1:7].mean()
    served, delay = red * TICK + crossed[1] - headway, 0.0
    for comes in free:
        leaves = max(comes, served)
        delay += leaves - comes
        served = leaves + headway
    assert 2 < headway < 3
    assert (stopped - free).sum() == pytest.approx(delay, rel=0.1)


def test_bodies_never_overlap_whatever_drivers_want() -> None:
    """Sample accelerations of -9 to 5 m/s^2 that last for seconds.

    Lights change at random.
    """
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        lanes, count, line = 64, 12, 200.0
        traffic = Traffic(
            jnp.broadcast_to(-20.0 * jnp.arange(count) + 240.0, (lanes, count)),
            jnp.full((lanes, count), 10.0),
            jnp.zeros((lanes, count), bool),
        )

        @jax.jit
        def tick(traffic: Traffic, a: Any, green: Any, amber: Any) -> Traffic:
            traffic = traffic._replace(
                stops_at_light=approach.holds(
                    traffic, Lights(green, amber & ~green, None, None), line
                )
            )
            return approach.move(
                traffic, approach.leaders(traffic.x, traffic.v, traffic.x), a, line
            )

        close, stopped = np.inf, 0
        for _ in range(100):
            a = rng.uniform(-9, 5, (lanes, count))
            green = rng.random((lanes, 1)) < 0.5
            amber = rng.random((lanes, 1))
            for half in (True, False):
                for _ in range(3):
                    last_traffic, traffic = traffic, tick(traffic, a, green, (amber < 0.5) & half)
                    gaps = np.asarray(-np.diff(traffic.x) - LENGTH)
                    assert gaps.min() > -1e-9
                    close = min(close, gaps.min())
                    waiting = np.asarray(traffic.stops_at_light)
                    assert (np.asarray(traffic.x)[waiting] <= line + 1e-9).all()
                    brakes = np.asarray(last_traffic.v - traffic.v) / TICK
                    assert brakes.max() <= 9 + 1e-6
                    stopped += (waiting & (np.asarray(traffic.v) == 0)).sum()
        assert close < 1
        assert stopped > 1000


# -- the whole task --------------------------------------------------------------------------------


def test_whole_episodes_agree_with_a_plain_simulation() -> None:
    """Compare every car to 1e-9 under random actions at float64.

    Milligrams are whole, and delays, observations and rewards agree too. In the second episode cars
    jam.
    """
    which = task(0.5, "float64")
    rng = np.random.default_rng(0)
    waited = 0
    with precision(which):
        first, go_on = episode_programs(which)
        for seed in (0, 1):
            episode, step = first(seed_key(seed), np.int32(seed))
            if seed == 1:  # a car every 2 s on each lane, so that cars wait at the entry
                arrival = np.broadcast_to(4 * np.arange(1, 13, dtype=np.int32), (4, 12))
                episode = episode._replace(
                    params=episode.params._replace(arrival=arrival, cars=np.float64(AGENTS))
                )
            params = jax.tree.map(np.asarray, episode.params)
            fleet, twin = Junction(params), Junction(params)
            delay, saved = 0, 0
            while not step.terminated and not step.truncated:
                action = np.clip(rng.normal((-0.2, 0.9)[seed], 0.5, (AGENTS, 1)), -1, 1)
                episode, step = go_on(episode, action)
                fleet.step(action)
                twin.step(None)
                delay += delay_of_second(fleet, twin)
                check_places(episode.state.traffic, (twin, fleet))
                check_emissions(episode.state, (twin, fleet), within=1)
                waited += sum(len(lane.waiting) for lane in fleet.lanes)
                np.testing.assert_allclose(step.observation, fleet.observations(0.5), atol=1e-9)
                saved += float(step.reward[0])
                assert int(episode.state.delay) == delay
            check_end(step, saved, fleet, twin)
            assert float(step.info["delay"]) == pytest.approx(delay / len(fleet.cars))
    assert waited > 0


def test_without_actions_or_agents_the_fleet_is_its_twin_to_the_bit() -> None:
    record = play(task(1.0), eases(0.0), SEEDS)
    assert (np.asarray(record.total) == 0).all()
    assert (record.info["saving"] == 0).all()
    assert (record.info["delay"] == 0).all()
    assert record.terminated.all()
    for penetration, num_agents in ((0.0, 0), (1.0, AGENTS)):
        params = task(penetration).sample_params(jax.random.key(0), jnp.int32(0))
        assert int(params.controlled.sum()) == num_agents


@pytest.mark.parametrize(("gap_to_line", "equal"), [(20.0, True), (-20.0, False), (100.0, False)])
def test_who_passes_at_amber_may_not_ease_off(gap_to_line: float, equal: bool) -> None:
    """Let agents ease off except where the driver decides to pass.

    20 m before the line at 14 m/s it decides to pass. Behind the line and far before it agents are
    free.
    """
    params = task(1.0).sample_params(jax.random.key(0), jnp.int32(0))
    state = task(1.0).initial(jax.random.key(0), params)
    x = state.traffic.x.at[:, :2, 0].set(params.approach - gap_to_line)
    amber = (params.plan.first + 1 - params.plan.offset) % params.plan.cycle
    state = state._replace(traffic=Traffic(x, jnp.full_like(x, 14.0), x > 1e9), tick=amber)
    twin, fleet = task(1.0).drive(state, jnp.full(x.shape[1:], 1.5), params).traffic.v[:, 0, 0]
    assert (twin == fleet) == equal
    assert fleet <= twin


def eases(by: float) -> Any:
    return Constant(np.full((AGENTS, 1), by, np.float32))


def test_players_rank_sensibly_and_no_constant_pays() -> None:
    records = [play(task(1.0), eases(ease), SEEDS) for ease in (0.1, 0.3, 1.0)]
    assert 0 > records[0].total.mean() > records[1].total.mean() > records[2].total.mean()
    assert not any(record.info["success"].any() for record in records)
    record = play(task(1.0), reference_player(task(1.0)), SEEDS)
    assert record.terminated.all()
    assert record.info["success"].mean() > 0.9
    assert record.info["delay"].mean() < 0.2
    assert record.info["saving"].mean() > 8
    assert record.info["fuel_saving"].mean() > 4


def test_success_asks_for_the_share_of_the_controlled_cars() -> None:
    """Count by hand 3 % of what a car of the twin emits for each controlled car.

    Nobody succeeds without a controlled car.

    Advice that counts the queue succeeds where a fifth of the cars follow it, too. Random and idle
    play never do.
    """
    which, seeds = task(0.2), range(200)
    reference, idle, random = (
        play(which, player, seeds)
        for player in (reference_player(which), eases(0.0), Uniform(which.action_space))
    )
    assert reference.info["success"].mean() > 0.8
    assert not idle.info["success"].any()
    assert not random.info["success"].any()
    source = ContextSource.parse("test", which)
    for seed in seeds[:40]:
        params = begin(which, seed_key(seed), np.int32(0), source)[0].params
        comes = np.asarray(params.arrival) < eco_driving.NEVER
        controlled = int((np.asarray(params.controlled) & comes).sum())
        saving_per_car = reference.info["saving"][seed] * comes.sum() / max(controlled, 1)
        saves = controlled > 0 and saving_per_car >= 3 and reference.info["delay"][seed] <= 1
        assert abs(saving_per_car - 3) < 1e-3 or saves == bool(reference.info["success"][seed]), (
            seed
        )
    assert not play(task(0.0), eases(1.0), SEEDS).info["success"].any()


def test_words_and_picture() -> None:
    which = task()
    env = TaskEnv(which)
    env.reset(seed=3)
    for _ in range(40):
        env.step(which.noop_action())
    state, params = env.episode.state, env.params
    text = which.describe(state, params)
    assert "agent_" in text
    assert "green begins in" in text
    assert which.draw(state, params).shape == which.picture_shape
    with pytest.raises(ValueError, match="penetration of 0 to 1"):
        card("EcoDriving-v0").build(difficulty=1.5)

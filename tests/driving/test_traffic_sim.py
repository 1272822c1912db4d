"""TrafficSim against closed forms, SciPy's distances and a plain simulation.

Players that look real in one way only are tested too.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.tasks import traffic_sim
from rlbench_suite.envs.driving.tasks.traffic_sim import AGENTS, CARS, GRIDS
from rlbench_suite.envs.driving.traffic import ring_road
from rlbench_suite.envs.driving.traffic.car_following import Driver
from rlbench_suite.envs.driving.traffic.ring_road import BRAKING, TICK, Ring
from rlbench_suite.envs.driving.traffic.sampled_distribution import (
    Grid,
    count_below,
    distance,
    spread,
)
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants


@cache
def task(heterogeneity: float = 0.4, dtype: str = "float32") -> Any:
    return card("TrafficSim-v0").build(difficulty=heterogeneity, dtype=dtype)


# -- the road --------------------------------------------------------------------------------------


def test_different_drivers_settle_at_the_gaps_in_closed_form() -> None:
    """Compare s = (s0 + v T) / sqrt(1 - (v / v0)^4) for each driver at one speed.

    The ring keeps its length.
    """
    rng = np.random.default_rng(0)
    low, high = np.array([[20, 0.9, 1.5, 1.0, 1.2], [30, 2, 3, 1.6, 2]])
    driver = Driver(*rng.uniform(low, high, (16, 5)).T)
    with jax.enable_x64(True):
        start = Ring(jnp.full(16, 25.0), jnp.full(16, 8.0))
        tick = lambda _, ring: ring_road.move(ring, ring_road.human_acceleration(ring, driver, 0.0))  # noqa: E731
        gap, v = jax.tree.map(
            np.asarray, jax.jit(lambda ring: jax.lax.fori_loop(0, 6000, tick, ring))(start)
        )
    np.testing.assert_allclose(v, v[0], rtol=1e-9)
    expected = (driver.jam_gap + v * driver.time_gap) / np.sqrt(1 - (v / driver.desired_speed) ** 4)
    np.testing.assert_allclose(gap, expected, rtol=1e-8)
    assert gap.sum() == pytest.approx(16 * 25, abs=1e-9)


def gaps_within(ring: Ring, pedal: Any, moments: int) -> Any:
    """Return the gaps at moments of a tick, ``(moments, ...)``.

    Cars stay where they stop.
    """
    time = jnp.linspace(0, TICK, moments).reshape(-1, *[1] * pedal.ndim)
    stop = jnp.where(pedal < 0, jnp.minimum(time, ring.v / jnp.maximum(-pedal, 1e-12)), time)
    distance = ring.v * stop + 0.5 * pedal * stop * stop
    return ring.gap + jnp.roll(distance, 1, -1) - distance


def test_a_tick_is_that_of_held_accelerations() -> None:
    """Compare gaps and speeds with positions in closed form.

    Many of the cars stop on the way.
    """
    rng = np.random.default_rng(1)
    count = 4000
    gap, v = rng.uniform(0, 1.5, count), rng.uniform(0, 4, count) * (rng.random(count) < 0.9)
    a = rng.uniform(-BRAKING, BRAKING, count)
    with jax.enable_x64(True):
        end = jax.tree.map(np.asarray, ring_road.move(Ring(gap, v), jnp.asarray(a)))
        gaps = np.asarray(gaps_within(Ring(gap, v), jnp.asarray(a), 2))
    assert ((v + TICK * a < 0) & (v > 0)).sum() > 100
    np.testing.assert_allclose(end.gap, gaps[-1], atol=1e-12)
    np.testing.assert_allclose(end.v, np.maximum(v + TICK * a, 0), atol=1e-12)


def test_humans_never_collide_behind_anybody() -> None:
    """Disturb drivers, who want no gap and 50 m/s, by 2 m/s^2.

    They follow a car that accelerates at random.
    """
    rng = np.random.default_rng(2)
    driver = Driver(*(jnp.full(8, value) for value in (50.0, 0.0, 0.01, 4.0, 50.0)))
    pedals = np.repeat(rng.uniform(-BRAKING, BRAKING, (500, 64)), 3, 0)
    disturbances = rng.normal(0, 2, (1500, 64, 8))
    with jax.enable_x64(True):

        def tick(ring: Ring, sampled: Any) -> Any:
            pedal, disturbance = sampled
            accelerations = ring_road.human_acceleration(ring, driver, disturbance)
            accelerations = accelerations.at[:, 0].set(jnp.minimum(pedal, accelerations[:, 0]))
            return ring_road.move(ring, accelerations), gaps_within(ring, accelerations, 51).min()

        start = Ring(jnp.full((64, 8), 20.0), jnp.full((64, 8), 10.0))
        _, min_gaps = jax.lax.scan(tick, start, (pedals, disturbances))
    assert -1e-9 < np.asarray(min_gaps).min() < 0.05


# -- distances -------------------------------------------------------------------------------------


def bin_values(values: np.ndarray, grid: Grid) -> np.ndarray:
    return grid.low + grid.width * np.clip(np.floor((values - grid.low) / grid.width), 0, 63)


def test_distances_are_those_of_scipy() -> None:
    """Compare values moved to the beginnings of their bins exactly.

    Compare the values themselves to the width of a bin.
    """
    rng, grid = np.random.default_rng(3), Grid(-4.0, 0.125)
    for scale in (0.5, 2.0, 4.0):
        samples, other_samples = rng.normal(0, scale, 500), scale * rng.exponential(1, 500) - 2
        with jax.enable_x64(True):
            counts = [np.asarray(count_below(values, grid)) for values in (samples, other_samples)]
        width = grid.width / 500
        moved = bin_values(samples, grid), bin_values(other_samples, grid)
        measured = width * int(distance(*counts))
        assert measured == pytest.approx(wasserstein_distance(*moved), abs=1e-12)
        inside = [np.clip(values, -4, 4 - 1e-9) for values in (samples, other_samples)]
        assert measured == pytest.approx(wasserstein_distance(*inside), abs=grid.width)
        constants = [wasserstein_distance(moved[0], [constant]) for constant in np.unique(moved[0])]
        assert width * int(spread(counts[0], 500)) == pytest.approx(min(constants), abs=1e-12)


# -- the whole task --------------------------------------------------------------------------------


def bound(gap: float, v: float, leader: float) -> float:
    """Return the largest acceleration after which there is room to stop."""
    room = gap + leader**2 / (2 * BRAKING)
    # Drive on at v' for a tick, then brake with B: (v + v') dt / 2 + v'^2 / 2B = room.
    half = BRAKING * TICK / 2
    root = half * half - BRAKING * (v * TICK - 2 * room)
    max_pedal = math.sqrt(root) - half if root >= half * half else None
    return (max_pedal - v) / TICK if max_pedal is not None else -v * v / (2 * room)


def pedal(gap: float, v: float, leader: float, driver: tuple[float, ...]) -> float:
    """Return the acceleration of a human without randomness, by the published equations."""
    v0, headway, s0, a, b = driver
    desired_gap = s0 + max(0.0, v * headway + v * (v - leader) / (2 * math.sqrt(a * b)))
    free = a * (1 - (v / v0) ** 4 - (desired_gap / gap) ** 2)
    return min(max(min(free, bound(gap, v, leader)), -BRAKING), BRAKING)


def drive_tick(cars: list[list[float]], a: list[float]) -> tuple[list[float], list[float]]:
    """Return the way of each car in a tick, and its speed after it."""
    stop = [-v / x if v + TICK * x < 0 else TICK for (_, v), x in zip(cars, a, strict=True)]
    distances = [v * t + x * t * t / 2 for (_, v), x, t in zip(cars, a, stop, strict=True)]
    return distances, [max(v + TICK * x, 0.0) for (_, v), x in zip(cars, a, strict=True)]


def test_whole_episodes_agree_with_a_plain_simulation() -> None:  # noqa: PLR0915
    """Compare cars to 1e-9, observations, realism by SciPy's distances, obedience and return.

    Humans drive without randomness.
    """
    which = task(0.6, "float64")
    rng = np.random.default_rng(0)
    with precision(which):
        go_on = jax.jit(lambda episode, action: advance(which, episode, action, np.int32(120)))
        episode, step = jax.jit(
            lambda key: begin(which, key, 0, ContextSource(np.int32(1), np.int32(-1)))
        )(seed_key(4))
        episode = episode._replace(params=episode.params._replace(random=np.float64(0)))
        params, state = jax.tree.map(np.asarray, (episode.params, episode.state))
        commanded = params.command > 0
        assert not commanded[0]
        drivers = [
            (
                1.3 * params.limit,
                params.command[i],
                2.0,
                *(float(values[i]) for values in params.driver[3:]),
            )
            if commanded[i]
            else tuple(float(values[i]) for values in params.driver)
            for i in range(CARS)
        ]
        roads = [
            [list(pair) for pair in zip(*(values[k] for values in state.ring), strict=True)]
            for k in (0, 1)
        ]
        histories: list[list[list[float]]] = [[[], [], []], [[], [], []]]
        errors, total, overruled = [], 0.0, 0
        for k in range(120):
            action = np.clip(rng.normal(0, 0.02, (AGENTS, 1)), -1, 1)
            action[5] += 2 * (k >= 100)  # a car that would ram the next one
            for world, cars in enumerate(roads):
                wish = float(params.wishes[(120 + k) // 20])
                a = [pedal(gap, v, cars[i - 1][1], drivers[i]) for i, (gap, v) in enumerate(cars)]
                a[0] = min(a[0], max(-2.0, min(1.2, 0.5 * (wish - cars[0][1]))))
                if world:  # the agents' cars: humans who are a little disturbed
                    action[:, 0] = np.clip(action[:, 0] + np.array(a[1:]) / BRAKING, -1, 1)
                    a[1:] = BRAKING * action[:, 0]
                    bounds = [bound(gap, v, cars[i - 1][1]) for i, (gap, v) in enumerate(cars)]
                    overruled += sum(a[i] > bounds[i] + 0.1 for i in range(1, CARS))
                    a[1:] = np.minimum(a[1:], bounds[1:])
                distances, new = drive_tick(cars, a)
                for i in range(CARS):
                    gap = cars[i][0] + distances[i - 1] - distances[i]
                    if i:
                        for history, value in zip(
                            histories[world],
                            (new[i], gap, (new[i] - cars[i][1]) / TICK),
                            strict=True,
                        ):
                            history.append(value)
                    cars[i][:] = gap, new[i]
                    if world and commanded[i] and k >= 40:
                        goal = 2 + new[i] * params.command[i]
                        errors.append(min(abs(gap - goal) / goal, 1))
            episode, step = go_on(episode, action)
            total += float(step.reward[0])
            np.testing.assert_allclose(
                episode.state.ring.gap, [[c[0] for c in cars] for cars in roads], atol=1e-8
            )
            np.testing.assert_allclose(
                episode.state.ring.v, [[c[1] for c in cars] for cars in roads], atol=1e-8
            )
            entries = [
                [c[1] / 40, min(c[0] / 100, 1), roads[1][i - 1][1] / 40]
                for i, c in enumerate(roads[1])
            ][1:]
            np.testing.assert_allclose(np.asarray(step.observation)[:, :3], entries, atol=1e-9)
    realism = []
    for name, twin_values, fleet_values in zip(GRIDS, *histories, strict=True):
        twin, fleet = (
            bin_values(np.array(values), GRIDS[name]) for values in (twin_values, fleet_values)
        )
        distance = wasserstein_distance(twin, fleet)
        wide = wasserstein_distance(twin, [np.median(twin)])
        realism.append(max(0, 1 - 2 * distance / wide))
        assert float(step.info[f"{name}_distance"]) == pytest.approx(distance, abs=1e-9)
        assert float(step.info[f"{name}_realism"]) == pytest.approx(realism[-1], abs=1e-9)
    obedience = max(1 - 2.5 * float(np.mean(errors)), 0)
    # Errors in thousandths.
    assert float(step.info["obedience"]) == pytest.approx(obedience, abs=2e-3)
    assert 0 < obedience < 1
    assert step.info["overruled"] == overruled > 0
    assert total == pytest.approx(25 * (sum(realism) + float(step.info["obedience"])), abs=1e-3)


class Impostor(eqx.Module):
    """A player that looks real in one way only, the population itself, or the reference."""

    manner: Any
    which: Any = eqx.field(static=True)

    def initial(self, params: Any) -> Any:
        return params

    def act(self, memory: Any, view: Any, key: jax.Array) -> Any:
        params, state = memory, view.state
        ring = Ring(*(values[1] for values in state.ring))
        random = params.random * jax.random.normal(key, (CARS,))
        unit = jnp.ones(CARS)
        typical = params._replace(
            driver=Driver(unit * params.limit, unit * 1.4, unit * 2.25, unit * 1.2, unit * 1.6)
        )
        drive = lambda driver, random: (  # noqa: E731
            ring_road.human_acceleration(ring, driver, random)[1:] / BRAKING
        )  # fmt: skip
        real = drive(traffic_sim.obedient_drivers(params), random)
        mean = (state.record.speed.mean() - ring.v[1:]) / (TICK * BRAKING)
        rammed = (jnp.arange(AGENTS) == 5) & (state.steps >= 100)
        ways = {
            "the population": real,
            "it, without randomness": drive(traffic_sim.obedient_drivers(params), 0.0),
            "it, deaf to commands": drive(params.driver, random),
            "it, with a car that would ram another at the end": jnp.where(rammed, 1, real),
            "an average driver in every car": drive(traffic_sim.obedient_drivers(typical), random),
            "everyone at the mean speed": jnp.clip(mean, -1, 1),
            "everyone brakes to a stop": -0.25 * unit[1:],
            "random accelerations alone": random[1:] / BRAKING,
            "no acceleration": 0 * real,
            "the reference": reference_player(self.which).act((), view, key)[0][:, 0],
        }
        return jnp.stack(list(ways.values()))[self.manner][:, None].astype(self.which.dtype), memory


def test_only_who_drives_as_the_population_does_is_taken_for_it() -> None:
    """Compare the returns of 64 test episodes.

    The first line is the noise floor: the population under other random numbers.
    """
    which, seeds = task(), range(64)
    records = [play(which, Impostor(jnp.int32(number), which), seeds) for number in range(10)]
    returns = [float(record.total.mean()) for record in records]
    for record, total in zip(records, returns, strict=True):
        measures = [*(f"{name}_realism" for name in GRIDS), "obedience"]
        print(f"{total:.1f}", *(f"{record.info[measure].mean():.2f}" for measure in measures))
    population, silent, deaf, ramming, average, uniform, frozen, random, idle, good = returns
    real = {name: records[0].info[f"{name}_realism"].mean() for name in GRIDS}
    assert min(real.values()) > 0.87, real
    assert records[0].info["obedience"].mean() > 0.8
    assert population - 10 < good < population
    # Nor do humans ever need to be overruled.
    assert records[0].cost.sum() == records[9].cost.sum() == 0
    assert silent < population - 8  # it knows all drivers, which the reference does not
    assert records[1].info["acceleration_realism"].mean() < 0.6
    assert deaf < good - 15
    assert records[2].info["obedience"].mean() < 0.1
    assert average < good - 15
    assert ramming < population
    assert records[3].cost.min() > 1
    assert max(uniform, frozen, random, idle) < 5
    succeeds = [float(record.info["success"].mean()) for record in records]
    assert succeeds[0] > 0.9
    assert succeeds[9] > 0.75
    assert succeeds[4] < 0.25
    assert not any(records[number].info["success"].any() for number in (2, 5, 6, 7, 8))


def test_nobody_collides_whatever_agents_ask_for() -> None:
    """Ask for full throttle, hardest braking, both in turns, and random accelerations.

    Each car keeps to one of these. Gaps are compared at every step.
    """
    which = task(0.4, "float64")
    rng = np.random.default_rng(5)
    styles = rng.permutation(np.arange(AGENTS) % 4)
    with precision(which):
        start = jax.jit(lambda key: begin(which, key, 0, ContextSource(np.int32(1), np.int32(-1))))
        go_on = jax.jit(lambda episode, action: advance(which, episode, action, np.int32(120)))
        for seed in range(4):
            episode, _ = start(seed_key(seed))
            length = float(episode.state.ring.gap[1].sum())
            for k in range(120):
                ways = np.stack(
                    [
                        np.ones(AGENTS),
                        -np.ones(AGENTS),
                        np.full(AGENTS, (-1) ** k),
                        rng.choice([-1, 1], AGENTS),
                    ]
                )
                turned = (styles + k // 30) % 4
                episode, step = go_on(episode, ways[turned, np.arange(AGENTS)][:, None])
                assert float(episode.state.ring.gap[1].min()) > -1e-9
                assert float(episode.state.ring.gap[1].sum()) == pytest.approx(length, abs=1e-8)
            assert not step.terminated
            assert step.info["overruled"] > 100


def test_train_and_test_populations_differ() -> None:
    for split in (0, 1):
        params = jax.vmap(lambda key, split=split: task(0.0).sample_params(key, jnp.int32(split)))(
            jax.random.split(jax.random.key(split), 200)
        )
        mean = np.asarray(params.driver.time_gap)[:, 1:]
        assert (mean == mean[:, :1]).all()
        assert (np.floor((mean - 1) / 0.1) % 2 == split).all()
        assert ((np.asarray(params.command) > 0).sum(1) >= 3).all()


def test_words_and_picture() -> None:
    which = task()
    env = TaskEnv(which)
    env.reset(seed=3)
    for _ in range(60):
        env.step(which.noop_action())
    state, params = env.episode.state, env.params
    assert np.asarray(state.ring.gap).sum(-1) == pytest.approx(CARS * float(params.gap), abs=0.01)
    assert "keep a time gap of" in which.describe(state, params)
    assert which.draw(state, params).shape == which.picture_shape
    with pytest.raises(ValueError, match="heterogeneity of 0 to"):
        card("TrafficSim-v0").build(difficulty=1.5)

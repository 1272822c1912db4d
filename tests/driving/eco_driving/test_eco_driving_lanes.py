"""EcoDrivingLanes against a plain simulation, what holds in every trajectory, and cheap play."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episode_checks import check_emissions, check_end, delay_of_second, episode_programs
from plain_lanes import LaneCar, Road, Roads
from plain_signals import check_places

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.core.episode import seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.players.speed_advice import SpeedAdvice
from rlbench_suite.envs.driving.tasks.eco_driving.eco_driving_lanes import LanesAdvice
from rlbench_suite.envs.driving.traffic import approach_lanes
from rlbench_suite.envs.driving.traffic.approach_lanes import LaneTraffic
from rlbench_suite.envs.driving.traffic.car_following import Driver
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants
SEEDS = range(32)
RIGHT, STRAIGHT, LEFT = 0, 1, 2


@cache
def task(penetration: float = 1.0, dtype: str = "float32") -> Any:
    return card("EcoDrivingLanes-v0").build(difficulty=penetration, dtype=dtype)


# -- against a plain simulation --------------------------------------------------------------------


def test_whole_episodes_agree_with_a_plain_simulation() -> None:
    """Compare every car to 1e-7 and its lane under random actions at float64.

    Milligrams are whole, and delays, observations and rewards agree too. In the second episode cars
    jam.
    """
    which = task(0.5, "float64")
    rng = np.random.default_rng(0)
    waited = changes = missed = 0
    with precision(which):
        first, go_on = episode_programs(which)
        for seed in (0, 1):
            episode, step = first(seed_key(seed), np.int32(seed))
            if seed == 1:  # a car every second on each lane, and two of three want to turn
                arrival = np.tile(2 * np.arange(1, 13, dtype=np.int32), (2, 2))
                turns = rng.choice(3, (2, 24)).astype(np.int32)
                crowd = episode.params._replace(arrival=arrival, turn=turns, cars=np.float64(48))
                episode = episode._replace(params=crowd)
            params = jax.tree.map(np.asarray, episode.params)
            fleet, twin = Roads(params), Roads(params)
            delay, saved = 0, 0.0
            while not step.terminated and not step.truncated:
                action = np.clip(rng.normal((0.2, 0.6)[seed], 0.5, (48, 1)), -1, 1)
                episode, step = go_on(episode, action)
                fleet.step(action)
                twin.step(None)
                delay += delay_of_second(fleet, twin)
                check_places(episode.state.traffic, (twin, fleet), within=1e-7)
                check_emissions(episode.state, (twin, fleet), within=2)
                for world, plain in enumerate((twin, fleet)):
                    in_left = np.asarray(episode.state.traffic.left)[world].reshape(-1)
                    assert all(in_left[number] == car.left for number, car in plain.cars.items())
                    assert int(episode.state.changes[world]) == sum(
                        road.changes for road in plain.lanes
                    )
                waited += sum(len(road.waiting) for road in fleet.lanes)
                np.testing.assert_allclose(
                    step.observation, fleet.observations(0.5), rtol=0, atol=1e-7
                )
                saved += float(step.reward[0])
                assert int(episode.state.delay) == delay
            check_end(step, saved, fleet, twin)
            wrong = sum(
                car.goes != car.wants and car.x >= road.line
                for road in fleet.lanes
                for car in road.road
            )
            assert float(step.info["missed"]) == pytest.approx(wrong / len(fleet.cars))
            missed += wrong
            changes += sum(road.changes for road in fleet.lanes)
    assert min(waited, changes, missed) > 0


def test_lane_changes_are_those_of_mobil_on_drawn_roads() -> None:
    """Fill some hundred roads with cars, which need not be states of the task."""
    rng = np.random.default_rng(1)
    line, count, roads = 200.0, 24, 200
    x = rng.uniform(0, line + 60, (roads, count))
    in_left = rng.random((roads, count)) < 0.5
    for road in range(roads):  # cars of one lane stand 6 m apart or more
        for lane in (False, True):
            inside = np.flatnonzero(in_left[road] == lane)
            x[road, inside] = np.sort(x[road, inside]) + 6 * np.arange(len(inside))
    v = rng.uniform(0, 16, x.shape)
    turns = rng.choice(3, x.shape, p=(0.2, 0.6, 0.2)).astype(np.int32)
    waiting = (rng.random((roads, 1)) < 0.5) & (x < line)
    low, high = (11, 0.8, 1.6, 0.8, 1.2), (17, 1.2, 2.4, 1.2, 1.8)
    driver = [rng.uniform(*ends, x.shape) for ends in zip(low, high, strict=True)]
    moves = stays = musts = 0
    with jax.enable_x64(True):
        traffic = LaneTraffic(*map(jnp.asarray, (x, v, waiting, in_left)))
        decide = jax.jit(
            lambda to_left: approach_lanes.changes_lane(
                traffic, turns, Driver(*driver), line, to_left
            )
        )
        for to_left in (True, False):
            decided = np.asarray(decide(to_left))
            for k in range(roads):
                road = Road([], line, (30, 30, 0), 0)
                road.road = [
                    LaneCar(i, tuple(values[k, i] for values in driver), 0, False,
                            left=in_left[k, i], wants=turns[k, i], x=x[k, i], v=v[k, i],
                            is_held=waiting[k, i])
                    for i in range(count)
                ]  # fmt: skip
                for car in road.road:
                    wants = car.left != to_left and road.wants_to_change(car)
                    assert decided[k, car.number] == wants
                    moves, stays = moves + wants, stays + (car.left != to_left and not wants)
                    musts += wants and car.wants != STRAIGHT
    assert min(moves - musts, musts, stays) > 50


def test_whoever_mobil_lets_change_can_stop_behind_its_leader() -> None:
    """Take the least gap at which IDM brakes by 4 m/s^2.

    All corners of the drivers and all speeds of the task are tried.
    """
    v, leader_v = np.meshgrid(np.linspace(0, 17, 69), np.linspace(0, 17, 69))
    for v0, headway, s0, a, b in itertools.product(
        (9.3, 17), (0.8, 1.2), (1.6, 2.4), (0.8, 1.2), (1.2, 1.8)
    ):
        desired_gap = s0 + np.maximum(0, v * headway + v * (v - leader_v) / (2 * math.sqrt(a * b)))
        min_gap = desired_gap / np.sqrt(np.maximum((4 + a) / a - (v / v0) ** 4, 1e-9))
        assert min_gap.min() > 0.6
        assert (v**2 < leader_v**2 + 2 * 9 * min_gap)[v <= v0].all()


# -- what holds in every trajectory ----------------------------------------------------------------


def bursts(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Return agents that ease off fully for 5 s or not at all."""
    return np.repeat(rng.integers(0, 2, (steps // 5, 48, 1)), 5, 0).astype(np.float32)


HOSTILE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "random": lambda rng, steps: rng.uniform(-1, 1, (steps, 48, 1)).astype(np.float32),
    "bursts": bursts,
    "all the way": lambda rng, steps: np.ones((steps, 48, 1), np.float32),
    "one lane": lambda rng, steps: np.tile(
        (np.arange(48) % 24 < 12).astype(np.float32)[:, None], (steps, 1, 1)
    ),
    "nobody": lambda rng, steps: np.zeros((steps, 48, 1), np.float32),
}


@cache
def trajectories() -> dict[str, Any]:
    """Return contexts, and traffic second by second, of 24 episodes of each player.

    The traffic has the shape ``(episodes, steps, ...)``.

    In the first 12 episodes the roads are crowded, and two of three cars want to turn.
    """
    which, rng, steps = task(), np.random.default_rng(2), 160
    # A car of each lane in 2 s.
    crowd = 4 * np.arange(1, 13, dtype=np.int32) + np.array([[0], [1]], np.int32)

    def drive(key: jax.Array, crowded: jax.Array, actions: jax.Array) -> Any:
        params = which.sample_params(key, jnp.int32(0))
        arrival = jnp.where(crowded, np.tile(crowd.reshape(-1), (2, 1)), params.arrival)
        turns = jnp.where(
            crowded, jax.random.randint(key, params.turn.shape, 0, 3, jnp.int32), params.turn
        )
        params = params._replace(arrival=arrival, turn=turns)
        state = which.initial(key, params)

        def second(state: Any, action: jax.Array) -> Any:
            state = which.transition(state, action, key, params)
            return state, (state.traffic, state.tick)

        return params, jax.lax.scan(second, state, actions)[1]

    run = jax.jit(jax.vmap(drive))
    keys = jax.random.split(jax.random.key(3), 24)
    return {
        name: jax.tree.map(
            np.asarray, run(keys, np.arange(24) < 12, np.stack([player(rng, steps) for _ in keys]))
        )
        for name, player in HOSTILE.items()
    }


@pytest.mark.parametrize("player", HOSTILE)
def test_bodies_never_overlap_and_lanes_lead_where_cars_go(player: str) -> None:
    params, (traffic, _) = trajectories()[player]
    x, v, _, in_left = traffic
    line, turns = params.approach[:, None, None, None, None], params.turn[:, None, None]
    on, pair = x >= 0, np.triu(np.ones((24, 24), bool), 1)
    goes = np.where(turns == np.where(in_left, RIGHT, LEFT), STRAIGHT, turns)
    a, b = x[..., None], x[..., None, :]
    parted = np.maximum(a, b) - 5 >= line[..., None] + 10
    meet = (in_left[..., None] == in_left[..., None, :]) & (
        ~parted | (goes[..., None] == goes[..., None, :])
    )
    meet &= on[..., None] & on[..., None, :] & pair
    assert np.where(meet, np.abs(a - b), np.inf).min() > 5 - 1e-3
    assert meet.sum() > 1000
    # Nobody changes lanes at the solid line or drives backwards, and whoever turns is slow in its
    # bend.
    fixed = (x[:, :-1] >= line - 30) & on[:, :-1]
    assert (in_left[:, 1:] == in_left[:, :-1])[fixed].all()
    assert (np.diff(x, axis=1) >= 0).all()
    for turn, radius in ((RIGHT, 9), (LEFT, 13)):
        bent = (goes == turn) & (x >= line) & (x < line + math.pi / 2 * radius)
        assert v[bent].max(initial=0) <= math.sqrt(3 * radius) + 1e-3
        assert player == "all the way" or bent.sum() > 50


def test_cars_overtake_change_lanes_and_mostly_turn_as_they_want() -> None:
    params, (traffic, _) = jax.tree.map(lambda values: values[12:], trajectories()["nobody"])
    x, _, _, in_left = traffic
    fleet, twin = (
        jax.tree.map(lambda values, world=world: values[:, :, world], traffic) for world in (1, 0)
    )
    assert all((a == b).all() for a, b in zip(fleet, twin, strict=True))
    passed = x[:, -1, 0] >= params.approach[:, None, None]
    assert passed.sum() > 0.95 * (params.arrival < 1_000_000).sum()
    turns = passed & (params.turn != STRAIGHT)
    wrong = turns & (in_left[:, -1, 0] != (params.turn == LEFT))
    assert 0 < wrong.sum() < 0.15 * turns.sum()
    assert (in_left[:, 1:, 0] != in_left[:, :-1, 0]).sum() > 0.3 * passed.sum()


# -- players ---------------------------------------------------------------------------------------


def test_without_actions_or_agents_the_fleet_is_its_twin_to_the_bit() -> None:
    for penetration, action in ((1.0, 0.0), (0.0, 1.0)):
        record = play(task(penetration), Constant(np.full((48, 1), action, np.float32)), SEEDS)
        assert (np.asarray(record.total) == 0).all()
        assert (record.info["saving"] == 0).all()
        assert (record.info["delay"] == 0).all()
        assert record.terminated.all()
        assert not record.info["success"].any()


def test_players_rank_sensibly_and_no_constant_pays() -> None:
    """Compare advice that counts the queue, advice that does not, and none.

    Easing off for no reason is tried too.
    """
    players = [
        reference_player(task()),
        LanesAdvice(SpeedAdvice(headway=0.1, start=0.0, reserve=0.0)),
        *(Constant(np.full((48, 1), ease, np.float32)) for ease in (0.1, 0.3)),
        Uniform(task().action_space),
    ]
    records = [play(task(), player, SEEDS) for player in players]
    advised, blind, slight, gentle, random = (record.total.mean() for record in records)
    assert advised > 1.1 * blind > 0 > slight > gentle
    assert random < slight
    assert records[0].info["success"].mean() > 0.8
    assert records[0].info["delay"].mean() < 0.5
    assert not any(record.info["success"].any() for record in records[2:])


def test_words_and_picture() -> None:
    which = task(0.5)
    env = TaskEnv(which)
    env.reset(seed=3)
    for _ in range(40):
        env.step(which.noop_action())
    state, params = env.episode.state, env.params
    text = which.describe(state, params)
    assert "agent_" in text
    assert "in the left lane, straight on" in text
    assert which.draw(state, params).shape == which.picture_shape

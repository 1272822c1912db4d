"""Merge, exit and country road, with whole steps against plain NumPy.

Ends have closed forms, and there is no cheap way to a reward.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import plain_traffic
import pytest
from plain_traffic import PlainTraffic

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.tasks import merge, motorway_exit, two_way
from rlbench_suite.envs.driving.tasks.highway import (
    ACTIONS,
    FASTER,
    IDLE,
    LANE_LEFT,
    LANE_RIGHT,
    SLOWER,
)
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants
ROADS = "Merge-v0", "Exit-v0", "TwoWay-v0"
TEST = ContextSource(np.int32(1), np.int32(-1))


@cache
def task(name: str, dtype: str = "float32") -> Any:
    return card(name).build(dtype=dtype)


def hostile_episodes(which: Any, count: int, steps: int) -> Any:
    """Return params, states before, actions and states after of episodes under random actions."""

    def step(episode: Any, key: Any) -> Any:
        actions = jax.random.randint(key, (count,), 0, len(ACTIONS))
        next_episode = jax.vmap(lambda e, a: advance(which, e, a, np.int32(steps))[0])(
            episode, actions
        )
        return next_episode, (episode.state, actions, next_episode.state)

    with precision(which):
        seeds = np.stack([seed_key(seed) for seed in range(count)])
        start = jax.jit(jax.vmap(lambda seed: begin(which, seed, 0, TEST)[0]))(seeds)
        keys = jax.random.split(jax.random.key(3), steps)
        _, run = jax.jit(lambda episode: jax.lax.scan(step, episode, keys))(start)
        return jax.tree.map(np.asarray, (start.params, *run))


def plain_step(name: str, params: Any, state: Any, action: np.ndarray) -> PlainTraffic:
    """Make one step of the task's docstring in plain NumPy."""
    lane, target = state.traffic.lane.copy(), state.traffic.target.copy()
    lanes, lowest, steady = {"Merge-v0": (3, 1, [1]), "TwoWay-v0": (2, 9, list(range(12, 17)))}[
        name
    ]
    road = PlainTraffic(
        params,
        *state.traffic.pose,
        lane,
        target,
        state.travelled,
        lanes=lanes,
        lowest=lowest,
        steady=steady,
    )
    aside = np.select([action == LANE_LEFT, action == LANE_RIGHT], [1, -1], 0)
    target_lane, in_target_lane = target[:, 0] + aside, lane[:, 0] == target[:, 0]
    allowed = (target_lane >= 0) & (target_lane < lanes) & in_target_lane
    if name == "Merge-v0":
        at = state.travelled
        allowed &= (target_lane > 0) & ((target[:, 0] > 0) | ((at >= 150) & (at < 400)))
    back = (aside != 0) & ~in_target_lane & (target_lane == lane[:, 0])
    lane[back, 0], target[back, 0] = target[back, 0], lane[back, 0]
    target[:, 0] += np.where(allowed, aside, 0)
    speed = 10 + 5 * np.clip(state.level + (action == FASTER) - (action == SLOWER), 0, 4)
    y = 4 * target[:, 0] + 2

    def ego(_: Any, at: Any, heading: Any, v: Any) -> Any:
        return np.clip((speed - v) / 0.6, -6, 3), plain_traffic.steer(at, heading, v, y, 5.0)

    for direction, substeps in ((1, 8), (-1, 7)):
        road.weigh_lanes(np.full(len(action), direction))
        road.choose_leaders()
        for _ in range(substeps):
            road.substep(ego)
        road.settle()
    return road


@pytest.mark.parametrize("name", ["Merge-v0", "TwoWay-v0"])
def test_every_step_is_that_of_a_plain_simulation(name: str) -> None:
    """Compare positions to a nanometre and lanes exactly with brute force in NumPy at float64.

    No crash is missed.
    """
    steps = 14
    params, states, actions, next_states = hostile_episodes(task(name, "float64"), 24, steps)
    at = lambda tree, index: jax.tree.map(lambda leaf: leaf[index], tree)  # noqa: E731
    compared = 0
    for t in range(steps):
        running = np.flatnonzero(~states.crashed[t])
        road = plain_step(
            name, at(params, running), at(at(states, t), running), actions[t, running]
        )
        simulated = at(at(next_states, t), running)
        assert not (road.touched & ~simulated.crashed).any()
        unbroken = ~simulated.crashed
        close = partial(np.testing.assert_allclose, rtol=0, atol=1e-9)
        for field in ("x", "y", "heading", "speed"):
            close(getattr(simulated.traffic.pose, field)[unbroken], getattr(road, field)[unbroken])
        np.testing.assert_array_equal(simulated.traffic.lane[unbroken], road.lane[unbroken])
        np.testing.assert_array_equal(simulated.traffic.target[unbroken], road.target[unbroken])
        compared += unbroken.sum()
    assert compared > 100


def test_an_ego_that_stays_on_the_ramp_meets_the_barrier_and_nobody_joins_it() -> None:
    """Drive at 20 m/s, so that the front of the ego reaches 400 m after 19.9 s.

    Lane changes before 150 m do nothing.
    """
    record = play(task("Merge-v0"), Constant(jnp.int32(IDLE)), range(20), split="test")
    assert (record.length == 20).all()
    assert record.terminated.all()
    env = gymnasium.make("rlsuite/Merge-v0").unwrapped
    env.reset(seed=0)
    for _ in range(7):
        env.step(LANE_LEFT)
    assert env.episode.state.travelled < merge.MERGING_BEGIN
    assert env.episode.state.traffic.pose.y[0] == 2
    while not env.step(IDLE)[2]:
        assert (env.episode.state.traffic.target[2:] > 0).all()
    length = env.params.length
    gap = env.episode.state.traffic.pose.x[1] - (length[0] + length[1]) / 2
    # M, from bumper to barrier; a sub-step takes a fifteenth of a second.
    assert -20 / 15 <= gap <= 0.1


def test_a_missed_exit_takes_back_all_and_ends_the_episode() -> None:
    """420 m at 20 m/s take 21 s.

    Only a fast ego in the exit lane succeeds, and an edge lies on either side of it.
    """
    record = play(task("Exit-v0"), Constant(jnp.int32(FASTER)), range(40), split="test")
    missed = ~record.info["collision"]
    assert not record.info["success"].any()
    assert record.terminated.all()
    np.testing.assert_allclose(record.total, 0, atol=1e-4)
    assert missed.sum() >= 1
    env = gymnasium.make("rlsuite/Exit-v0").unwrapped
    env.reset(seed=1)
    for _ in range(30):
        *_, terminated, _, info = env.step(IDLE)
        if terminated:
            break
    assert env.episode.state.steps == 22
    assert info["end_reason"] == "the ego missed the exit"
    exit_task = task("Exit-v0")
    state = env.episode.state._replace(overtaken=np.int32(1))
    y = state.traffic.pose.y.copy()
    for place, has_left in ((2.0, True), (6.0, False)):
        y[0] = place
        state_at_exit = state._replace(
            traffic=state.traffic._replace(pose=state.traffic.pose._replace(y=y))
        )
        assert bool(exit_task.info(state_at_exit, env.params)["success"]) == has_left
        assert not exit_task.info(state_at_exit._replace(overtaken=np.int32(0)), env.params)[
            "success"
        ]
        right, end = motorway_exit.rules_of(state_at_exit).edges(np.float32(0), np.float32(place))
        assert (float(right), float(end)) == ((0, 4) if has_left else (4, 16))


def test_oncoming_vehicles_keep_one_speed_and_overtaking_counts_only_its_own_lane() -> None:
    """Check that each of the five is where a uniform motion takes it.

    The ego passes none of them in the count.
    """
    env = gymnasium.make("rlsuite/TwoWay-v0").unwrapped
    env.reset(seed=2)
    first, ring = env.episode.state, float(env.params.circumference)
    speed = first.traffic.pose.speed[two_way.NUM_SAME_WAY :]
    assert len(set(speed.tolist())) == 1
    assert 18 <= speed[0] <= 22
    for step in range(1, 16):
        env.step(SLOWER)
        pose = env.episode.state.traffic.pose
        moved = (
            pose.x[two_way.NUM_SAME_WAY :]
            + env.episode.state.travelled
            - first.traffic.pose.x[two_way.NUM_SAME_WAY :]
            + speed * step
        )
        np.testing.assert_allclose((moved + ring / 2) % ring - ring / 2, 0, atol=2e-2)
        assert (pose.speed[two_way.NUM_SAME_WAY :] == speed).all()
    assert env.episode.state.overtaken <= 0


@pytest.mark.parametrize(
    "name", ["LaneKeeping-v0", "LaneKeepingObstacles-v0", "Parking-v0", "Racetrack-v0"]
)
def test_more_time_than_the_horizon_keeps_the_spaces(name: str) -> None:
    """A crash takes back at most the horizon, and the observation shows no more."""
    env = gymnasium.make(f"rlsuite/{name}", max_episode_steps=10**6).unwrapped
    env.reset(seed=0)
    horizon = card(name).horizon
    env.episode = env.episode._replace(state=env.episode.state._replace(earned=np.float32(horizon)))
    observation, reward, *_ = env.step(np.zeros(env.action_space.shape, np.float32))
    assert reward > 0
    assert env.episode.state.earned == horizon
    assert env.observation_space.contains(observation)


@pytest.mark.parametrize("name", ROADS)
def test_no_constant_action_pays(name: str) -> None:
    """Compare waiting, cutting in, racing and braking with the reference.

    They earn next to nothing, and never succeed.
    """
    best = card(name).scores()["reference"].mean
    for action in range(len(ACTIONS)):
        record = play(task(name), Constant(jnp.int32(action)), range(40), split="test")
        assert record.total.mean() < 0.1 * best, ACTIONS[action]
        assert record.info["success"].mean() < 0.2, ACTIONS[action]

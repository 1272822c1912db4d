"""The highway tasks, with whole episodes against a plain simulation.

No crash is missed. Rewards, contexts and players are tested too.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import plain_traffic
import pytest
from plain_traffic import PlainTraffic

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import agent, card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.driving.tasks import highway
from rlbench_suite.envs.driving.tasks.highway import (
    ACTIONS,
    IDLE,
    LANE_LEFT,
    LANE_RIGHT,
    SLOWER,
    State,
)
from rlbench_suite.envs.driving.traffic import traffic
from rlbench_suite.envs.driving.traffic.traffic import VEHICLES, Fleet, Traffic
from rlbench_suite.envs.driving.vehicle.bicycle import Pose
from rlbench_suite.numerics.process import precision

DISCRETE, CONTINUOUS = "Highway-v0", "HighwayContinuous-v0"
TRAIN = ContextSource(np.int32(0), np.int32(-1))


@cache
def task(name: str, difficulty: str = "medium", dtype: str = "float32") -> Any:
    return card(name).build(difficulty=difficulty, dtype=dtype)


@cache
def starter(which: Any) -> Any:
    return jax.jit(jax.vmap(lambda seed: begin(which, seed, 0, TRAIN)[0]))


def first_episodes(which: Any, count: int) -> Any:
    with precision(which):
        return jax.tree.map(
            np.asarray, starter(which)(np.stack([seed_key(seed) for seed in range(count)]))
        )


# -- whole episodes, step by step, against the plain simulation ------------------------------------


@cache
def recorder(which: Any, steps: int) -> Any:
    """Return a program that plays hostile actions and records what happened.

    It gives the states before each step, the actions, and the states after it.
    """
    limit = np.int32(which.card.horizon)

    def choose(episode: Any, key: Any) -> Any:
        if which.card.name == DISCRETE:
            return jax.random.randint(key, (), 0, len(ACTIONS))
        # Pushes held for a while, weak and full steering, so that episodes last long enough to meet
        # others.
        u = jax.random.uniform(jax.random.fold_in(key, 0), (4,), which.dtype)
        steer = jnp.where(
            u[2] < 0.2,
            2 * u[1] - 1,
            0.1 * (2 * u[1] - 1) - 0.5 * episode.state.traffic.pose.heading[0],
        )
        return jnp.stack([jnp.where(u[3] < 0.5, 2 * u[0] - 1, 0.5), jnp.clip(steer, -1, 1)])

    def step(episode: Any, key: Any) -> Any:
        keys = jax.random.split(key, episode.t.shape[0])
        actions = jax.vmap(choose)(episode, keys)
        next_episode = jax.vmap(lambda e, a: advance(which, e, a, limit)[0])(episode, actions)
        return next_episode, (episode.state, actions, next_episode.state)

    return jax.jit(lambda episode, keys: jax.lax.scan(step, episode, keys))


def hostile_episodes(
    name: str, difficulty: str, count: int, steps: int
) -> tuple[Fleet, State, np.ndarray, State]:
    which = task(name, difficulty, "float64")
    start = first_episodes(which, count)
    with precision(which):
        _, (states, actions, next_states) = recorder(which, steps)(
            start, jax.random.split(jax.random.key(7), steps)
        )
    to_numpy = partial(jax.tree.map, np.asarray)
    return to_numpy(start.params), to_numpy(states), np.asarray(actions), to_numpy(next_states)


def plain_step(name: str, params: Fleet, state: State, action: np.ndarray) -> PlainTraffic:
    """Make one step of the task's docstring in plain NumPy, from the task's state before it."""
    pose, lane, target = state.traffic.pose, state.traffic.lane.copy(), state.traffic.target.copy()
    road = PlainTraffic(params, *pose, lane, target, state.travelled)
    if name == DISCRETE:
        aside = np.select([action == LANE_LEFT, action == LANE_RIGHT], [1, -1], 0)
        target_lane = target[:, 0] + aside
        settled_or_back = (lane[:, 0] == target[:, 0]) | (target_lane == lane[:, 0])
        aside = np.where((target_lane >= 0) & (target_lane <= 3) & settled_or_back, aside, 0)
        back = (aside != 0) & (target[:, 0] + aside == lane[:, 0])
        lane[back, 0], target[back, 0] = target[back, 0], lane[back, 0]
        target[~back, 0] += aside[~back]
        speed = 10 + 5 * np.clip(state.level + (action == 3) - (action == 4), 0, 4)
        y = 4 * target[:, 0] + 2

        def ego(_: Any, at: Any, heading: Any, v: Any) -> Any:
            return np.clip((speed - v) / 0.6, -6, 3), plain_traffic.steer(at, heading, v, y, 5.0)

        halves = ((np.ones(len(action), int), 8), (-np.ones(len(action), int), 7))
    else:
        heading, at = pose.heading[:, 0], pose.y[:, 0]
        half = np.minimum((5 * np.abs(np.sin(heading)) + 2 * np.abs(np.cos(heading))) / 2, 1.96)
        lane[:, 0], target[:, 0] = (np.clip((at + sign * half) // 4, 0, 3) for sign in (-1, 1))
        push = np.where(action[:, 0] > 0, 3, 6) * action[:, 0]

        def ego(_: Any, at: Any, heading: Any, v: Any) -> Any:
            return np.minimum(push, (40 - v) * 15), action[:, 1] * plain_traffic.slip_bound(v, 5.0)

        halves = ((np.select([state.steps % 5 == 0, state.steps % 5 == 2], [1, -1], 0), 3),)
    for direction, substeps in halves:
        road.weigh_lanes(direction)
        road.choose_leaders()
        for _ in range(substeps):
            road.substep(ego)
        road.settle()
    return road


def at(tree: Any, index: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)


@pytest.mark.parametrize(
    ("name", "difficulty", "count", "steps"),
    [(DISCRETE, "hard", 40, 16), (CONTINUOUS, "easy", 40, 60)],
)
def test_every_step_is_that_of_a_plain_simulation(
    name: str, difficulty: str, count: int, steps: int
) -> None:
    """Compare positions to a nanometre and decisions exactly with brute force in NumPy at float64.

    No crash is missed.
    """
    params, states, actions, next_states = hostile_episodes(name, difficulty, count, steps)
    compared = changes = 0
    for t in range(steps):
        running = np.flatnonzero(~states.crashed[t])
        road = plain_step(
            name, at(params, running), at(at(states, t), running), actions[t, running]
        )
        simulated = at(at(next_states, t), running)
        assert not (road.touched & ~simulated.crashed).any()
        unbroken = ~simulated.crashed  # the task stops at a crash
        for field in ("x", "y", "heading", "speed"):
            np.testing.assert_allclose(
                getattr(simulated.traffic.pose, field)[unbroken],
                getattr(road, field)[unbroken],
                rtol=0,
                atol=1e-9,
            )
        np.testing.assert_allclose(
            simulated.travelled[unbroken], road.travelled[unbroken], rtol=0, atol=1e-9
        )
        np.testing.assert_array_equal(simulated.traffic.lane[unbroken], road.lane[unbroken])
        np.testing.assert_array_equal(simulated.traffic.target[unbroken], road.target[unbroken])
        compared += unbroken.sum()
        changes += (simulated.traffic.target != states.traffic.target[t, running])[:, 1:].sum()
    assert compared > 200
    assert changes > 20


# -- the road --------------------------------------------------------------------------------------


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_start_is_at_the_density_asked_for_without_overlap(difficulty: str) -> None:
    which = task(DISCRETE, difficulty)
    start = first_episodes(which, 200)
    ring = start.params.circumference.astype(float)
    density = VEHICLES / traffic.LANES / ring * 1000
    assert (np.abs(density / which.difficulty - 1) <= 0.1).all()
    roads = PlainTraffic(
        start.params,
        *start.state.traffic.pose,
        start.state.traffic.lane,
        start.state.traffic.target,
        ring,
    )
    assert not roads.others_touch().any()
    _, distance = roads.neighbour(roads.lane, ahead=True)
    ahead = roads.neighbour(roads.lane, ahead=True)[0]
    length = start.params.length
    assert (distance - (length + plain_traffic.take(length, ahead)) / 2).min() > 5
    assert np.bincount(start.state.traffic.lane[:, 0]).min() > 20  # the ego starts in any lane
    assert (start.state.traffic.pose.x[:, 0] == 0).all()


def test_train_and_test_densities_lie_in_bands_that_alternate() -> None:
    which = task(DISCRETE)
    keys = jax.random.split(jax.random.key(0), 2000)
    for split in (0, 1):
        params = jax.vmap(lambda key, split=split: which.sample_params(key, split))(keys)
        share = (
            VEHICLES
            / traffic.LANES
            / np.asarray(params.circumference, float)
            * 1000
            / which.difficulty
        )
        band = np.floor((share - 0.9) / 0.01 + 1e-4)
        assert set(band) == set(range(split, 20, 2))


@pytest.fixture(scope="module")
def reference_runs() -> Any:
    return play(task(DISCRETE), reference_player(task(DISCRETE)), range(300), split="test")


def test_reference_clearly_beats_idle_and_random(reference_runs: Any) -> None:
    assert reference_runs.info["collision"].mean() < 0.01
    assert reference_runs.info["success"].mean() > 0.9
    assert reference_runs.info["lane_changes"].mean() > 1
    assert reference_runs.cost.mean() < task(DISCRETE).card.constraint.limit
    for player, max_share in (("noop", 0.1), ("random", 0.2)):
        *_, policy = agent(player).train(task(DISCRETE), seed=0, budget="smoke")
        record = play(task(DISCRETE), policy, range(300), split="test")
        assert record.total.mean() < max_share * reference_runs.total.mean()


def test_traffic_left_alone_flows_without_touching(reference_runs: Any) -> None:
    """Drive carefully for forty seconds in the densest traffic.

    Nobody touches anybody, and the traffic flows.
    """
    which = task(DISCRETE, "hard", "float64")
    player = reference_player(which)
    start = first_episodes(which, 48)

    def step(episode: Any, _: Any) -> Any:
        def act(e: Any) -> Any:
            observation = which.observation(e.state, None, e.params)
            action, _ = player.act((), View(observation, None, e.state, e.params), None)
            return advance(which, e, action, np.int32(40))[0]

        next_episode = jax.vmap(act)(episode)
        return next_episode, next_episode.state

    with precision(which):
        _, states = jax.jit(lambda e: jax.lax.scan(step, e, None, 40))(start)
    states = jax.tree.map(np.asarray, states)
    for t in range(40):
        road = at(states.traffic, t)
        params = jax.tree.map(np.asarray, start.params)
        plain = PlainTraffic(params, *road.pose, road.lane, road.target, road.pose.x[:, 0])
        assert not plain.others_touch().any()
    speed = states.traffic.pose.speed[10:, :, 1:]
    assert 12 < speed.mean() < 22
    assert np.abs(speed).min() >= 0
    moving = (states.traffic.target != states.traffic.lane)[:, :, 1:].mean()
    assert 0.002 < moving < 0.2  # some change lanes at any time, not all


class Slow(NamedTuple):
    """SLOWER for ever."""

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: tuple[()], view: View, key: Any) -> Any:
        return jnp.int32(SLOWER), memory


# -- reward, cost, actions, ends -------------------------------------------------------------------


def empty_road(name: str, **ego: float) -> tuple[Fleet, State]:
    """Return a road with the ego and, far away, everyone else."""
    start = first_episodes(task(name), 1)
    params, state = at(start.params, 0), at(start.state, 0)
    pose = {
        field: getattr(state.traffic.pose, field).copy() for field in state.traffic.pose._fields
    }
    index = np.arange(VEHICLES - 1)
    pose["x"][1:] = params.circumference * (
        0.3 + 0.4 * index / len(index) - (index > len(index) / 2)
    )
    pose["speed"][1:] = 25
    for field, value in ego.items():
        pose[field][0] = value
    lane = np.arange(VEHICLES, dtype=np.int32) % traffic.LANES
    pose["y"][1:] = 4 * lane[1:] + 2
    lane[0] = np.clip(pose["y"][0] // 4, 0, 3)
    return params, state._replace(traffic=Traffic(Pose(**pose), lane, lane))


@pytest.mark.parametrize(
    ("difficulty", "metres", "y", "earned", "crashed", "expected"),
    [
        ("medium", 30, 2, 5, False, 1.0),
        ("medium", 30, 14, 5, False, 0.8),
        ("medium", 25, 2, 5, False, 0.5),
        ("medium", 25, 8, 5, False, 0.45),
        ("medium", 20, 2, 5, False, 0.0),
        ("medium", 0, 2, 5, False, 0.0),
        ("medium", 38, 2, 5, False, 1.0),
        ("medium", 30, 2, 5, True, -5.0),
        ("medium", 30, 2, 55, True, -40.0),
        ("hard", 24, 2, 5, False, 0.6),  # from 15 m/s on
    ],
)
def test_reward_by_hand(
    difficulty: str, metres: float, y: float, earned: float, crashed: bool, expected: float
) -> None:
    params, state = empty_road(DISCRETE, y=y)
    state = state._replace(earned=np.float32(earned))
    next_state = state._replace(
        travelled=state.travelled + np.float32(metres), crashed=np.bool_(crashed)
    )
    reward = task(DISCRETE, difficulty).reward(state, None, next_state, None, params)
    assert float(reward) == pytest.approx(expected, abs=1e-6)


def test_a_crash_takes_back_what_was_earned_and_driving_on_earns_nothing() -> None:
    """Random steering crashes and earns 0, as does the first speed held among faster traffic."""
    random, noop = (
        list(agent(name).train(task(CONTINUOUS), seed=0, budget="smoke"))[-1]
        for name in ("random", "noop")
    )
    wild = play(task(CONTINUOUS), random, range(60), split="test")
    assert wild.terminated.mean() > 0.9
    np.testing.assert_allclose(wild.total[wild.terminated], 0, atol=1e-4)
    idle = play(task(CONTINUOUS), noop, range(60), split="test")
    np.testing.assert_allclose(idle.total, 0, atol=1e-2)
    assert not wild.info["success"].any()
    assert not idle.info["success"].any()


def test_success_needs_speed() -> None:
    """Count overtaking by hand: the ego passes two cars, and one passes it.

    SLOWER for ever is no success.
    """
    which = task(DISCRETE)
    params, state = empty_road(DISCRETE)
    x = state.traffic.pose.x.copy()
    x[1:4] = 5, 8, -3
    state_before = state._replace(
        traffic=state.traffic._replace(pose=state.traffic.pose._replace(x=x))
    )
    x = x.copy()
    x[1:4] = -20, 0, 4
    leading_car = int(np.argmax(x > 0.4 * params.circumference))
    x[leading_car] -= params.circumference  # from ahead to behind, on the other side of the ring
    state_after = state._replace(
        traffic=state.traffic._replace(pose=state.traffic.pose._replace(x=x))
    )
    assert int(which.close_step(state_before, state_after, params).overtaken) == 2 - 1
    slow = play(which, Slow(), range(40), split="test")
    assert not slow.info["collision"].all()
    assert not slow.info["success"].any()


def test_cost_is_a_crash_or_a_near_miss() -> None:
    """Compute by hand 2 s for a car 20 m ahead that closes at 10 m/s, and 1.33 s at 15 m/s.

    The 20 m are from bumper to bumper.
    """
    which = task(DISCRETE)
    params, state = empty_road(DISCRETE, y=6.0, speed=30.0)
    pose = Pose(*(value.copy() for value in state.traffic.pose))
    lane = state.traffic.lane.copy()
    pose.x[1], pose.y[1], lane[1] = 20 + (5 + params.length[1]) / 2, 6, 1
    for speed, time, cost in ((20, 2.0, 0), (15, 4 / 3, 1), (31, 100.0, 0)):
        pose.speed[1] = speed
        close_state = state._replace(traffic=Traffic(pose, lane, lane))
        assert float(which.info(close_state, params)["time_to_collision"]) == pytest.approx(
            time, rel=1e-4
        )
        assert float(which.cost(state, None, close_state, params)) == cost
    assert float(which.cost(state, None, state._replace(crashed=np.bool_(True)), params)) == 1


class Swerving(NamedTuple):
    """Full steering to the left."""

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: tuple[()], view: View, key: Any) -> Any:
        return jnp.array([0.0, 1.0], jnp.float32), memory


def test_a_crash_costs_as_much_as_a_second_of_near_miss() -> None:
    """Otherwise a crash in every episode would keep the limit of one step of 0.2 s."""
    which = task(CONTINUOUS)
    params, state = empty_road(CONTINUOUS)
    assert float(which.cost(state, None, state._replace(crashed=np.bool_(True)), params)) == 5
    swerving = play(which, Swerving(), range(8), split="test")
    assert (swerving.cost >= 5).all()
    assert which.card.violates(float(swerving.cost.mean()))


def test_an_action_without_effect_is_idle_to_the_bit_and_a_change_can_be_turned_back() -> None:
    """Check that each action at a limit makes the step that IDLE makes.

    No action stops the world: time goes on.
    """
    env = gymnasium.make("rlsuite/Highway-v0").unwrapped
    env.reset(seed=0)
    params, state = empty_road(DISCRETE, y=2.0, speed=25.0)
    env.episode = env.episode._replace(params=params, state=state._replace(level=np.int32(4)))

    def is_idle(action: int) -> bool:
        episode_before, states = env.episode, []
        for choice in (action, IDLE):
            env.episode = episode_before
            env.step(choice)
            states.append(env.episode.state)
        env.episode = episode_before
        assert states[0].travelled > episode_before.state.travelled + 5
        return all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, states), strict=True))

    def idle_actions() -> list[str]:
        return [name for i, name in enumerate(ACTIONS) if i != IDLE and is_idle(i)]

    assert idle_actions() == ["LANE_RIGHT", "FASTER"]
    env.step(LANE_LEFT)
    assert 2.5 < env.episode.state.traffic.pose.y[0] < 4.5
    assert idle_actions() == ["LANE_LEFT", "FASTER"]
    env.step(LANE_RIGHT)
    assert (env.episode.state.traffic.lane[0], env.episode.state.traffic.target[0]) in (
        (1, 0),
        (0, 0),
    )
    for _ in range(4):
        env.step(IDLE)
    assert env.episode.state.traffic.pose.y[0] == pytest.approx(2.0, abs=0.05)
    env.step(LANE_LEFT)
    for _ in range(3):
        env.step(IDLE)
    assert env.episode.state.traffic.pose.y[0] == pytest.approx(6.0, abs=0.3)
    assert env.episode.state.traffic.lane[0] == env.episode.state.traffic.target[0] == 1
    for _ in range(4):
        env.step(SLOWER)
    assert idle_actions() == ["SLOWER"]


@pytest.mark.parametrize(
    ("action", "reason"), [((0, 1), "edge"), ((0, -1), "edge"), ((-1, 0), None)]
)
def test_leaving_the_road_ends_the_episode_and_standing_still_does_not_pay(
    action: Any, reason: str | None
) -> None:
    env = gymnasium.make("rlsuite/HighwayContinuous-v0")
    env.reset(seed=1)
    params, state = empty_road(CONTINUOUS, y=8.0, speed=20.0)
    env.unwrapped.episode = env.unwrapped.episode._replace(params=params, state=state)
    for _ in range(40):
        _, reward, terminated, _, info = env.step(np.array(action, np.float32))
        if terminated:
            break
    assert terminated == (reason is not None)
    if reason:
        assert reason in info["end_reason"]
        assert not info["success"]
    assert reward == 0


def test_holding_the_wheel_straight_keeps_speed_and_lane() -> None:
    which = task(CONTINUOUS)
    params, state = empty_road(CONTINUOUS, y=6.0, speed=20.0)
    state = jax.jit(which.transition)(state, jnp.zeros(2), None, params)
    ego = highway.ego_pose(state)
    assert (float(ego.y), float(ego.heading), float(ego.speed)) == (6.0, 0.0, 20.0)
    assert float(state.travelled) == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize("vehicles", [2, 33, 64])
def test_the_nearest_in_a_lane_are_found_around_the_ring(vehicles: int) -> None:
    """Walk around the ring from each vehicle; places may be equal, lanes empty or missing."""
    rng = np.random.default_rng(vehicles)

    @jax.jit
    def find(road: Traffic, asked_lane: Any) -> Any:
        order = traffic.order_of(road.pose.x)
        occupied = traffic.lane_occupancy(road, order)
        return order.index, *(
            traffic.find_nearest(occupied, order, asked_lane, ahead=ahead)
            for ahead in (True, False)
        )

    for lanes in (1, 2, 5, 8):
        x = rng.integers(-vehicles, vehicles, vehicles).astype(np.float32)
        own_lane, target, asked_lane = rng.integers(0, lanes, (3, vehicles)).astype(np.int32)
        asked_lane += rng.integers(-1, 2, vehicles).astype(np.int32)
        road = Traffic(Pose(x, x, x, x), own_lane, target)
        index, *neighbours_by_direction = (np.asarray(values) for values in find(road, asked_lane))
        around = sorted(range(vehicles), key=lambda i: (x[i], i))
        assert index.tolist() == around
        for neighbours, direction in zip(neighbours_by_direction, (1, -1), strict=True):
            for i, lane in enumerate(asked_lane):
                start = around.index(i)
                walk = (around[(start + direction * k) % vehicles] for k in range(1, vehicles + 1))
                assert neighbours[i] == next(
                    (j for j in walk if lane in (own_lane[j], target[j])), i
                )


def test_observation_shows_the_nearest_in_three_lanes() -> None:
    """Compare with a search by hand; the gap is from bumper to bumper."""
    which = task(DISCRETE)
    start = first_episodes(which, 40)
    for k in range(40):
        params, state = at(start.params, k), at(start.state, k)
        observation = np.asarray(which.observation(state, None, params), float)
        pose, lane = state.traffic.pose, state.traffic.lane
        assert observation[:8] == pytest.approx(
            [0.5, pose.y[0] / 16, 0, 0, 0, 0.5, lane[0] / 3, 0], abs=1e-6
        )
        places = observation[8:].reshape(3, 3, 5)
        for i, entries in enumerate(places):
            in_lane = [j for j in range(1, VEHICLES) if lane[j] == lane[0] - 1 + i]
            half = {j: (5 + params.length[j]) / 2 for j in in_lane}
            front = sorted((pose.x[j] % params.circumference - half[j], j) for j in in_lane)
            back = sorted((-pose.x[j] % params.circumference - half[j], j) for j in in_lane)
            for place, neighbour in zip(
                entries, [*front[:2], back[0]] if in_lane else [None] * 3, strict=True
            ):
                if neighbour is None or neighbour[0] >= 150:
                    np.testing.assert_array_equal(place, [0, 1, 0, 0, 0])
                    continue
                gap, j = neighbour
                relative = (pose.speed[j] - pose.speed[0]) / 20
                assert place == pytest.approx(
                    [1, gap / 150, np.clip(relative, -1, 1), (pose.y[j] - pose.y[0]) / 8, 0],
                    abs=1e-5,
                )


def test_text_names_vehicles_and_takes_names_of_actions() -> None:
    env = gymnasium.make("rlsuite/Highway-v0", view="text")
    text, _ = env.reset(seed=0)
    assert "m ahead, lane" in text
    assert "You are to keep" in text
    *_, info = env.step("faster")
    assert not info["invalid_action"]
    *_, info = env.step("fly")
    assert "LANE_LEFT" in info["invalid_reason"]


@pytest.mark.parametrize("difficulty", [0, 1, 31, -5])
def test_densities_that_do_not_fit_are_refused(difficulty: float) -> None:
    with pytest.raises(ValueError, match=r"vehicles a kilometre and lane in \[2, 30\]"):
        gymnasium.make("rlsuite/Highway-v0", difficulty=difficulty)


def test_card_names_the_reference() -> None:
    for name in (DISCRETE, CONTINUOUS):
        assert isinstance(reference_player(task(name)), load(card(name).reference))

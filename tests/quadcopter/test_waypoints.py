"""Waypoints: the return is what geometry says it is, however the flight goes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.tasks import waypoints

TEST = ContextSource(np.int32(1), np.int32(-1))


@pytest.fixture(scope="module")
def task() -> Any:
    return card("QuadcopterWaypoints-v0").build()


@pytest.fixture(scope="module")
def start(task: Any) -> Any:
    return jax.device_get(jax.jit(lambda s: begin(task, s, 0, TEST)[0])(seed_key(0)))


def state_at(start: Any, place: Any, reached: int = 0) -> Any:
    x, y, z = (np.float32(value) for value in place)
    state = start.state
    body = state.vehicle.body._replace(x=x, y=y, z=z)
    return state._replace(vehicle=state.vehicle._replace(body=body), reached=np.int32(reached))


def points(tour: Any) -> np.ndarray:
    return np.stack([tour.x, tour.y, tour.z], 1).astype(np.float64)


def test_progress_is_metres_nearer_and_a_waypoint_is_worth_one(task: Any, start: Any) -> None:
    """Along a straight line to the waypoint rewards sum to the way, whatever the steps.

    On reaching it there is one more.
    """
    goal, action = points(start.params)[0], np.zeros(4, np.float32)
    origin = goal + np.array([0.3, -0.4, 1.2])  # 1.3 m away
    stops = [
        state_at(start, goal + fraction * (origin - goal)) for fraction in (1.0, 0.7, 0.65, 0.2)
    ]
    total = sum(float(task.reward(a, action, b, None, start.params)) for a, b in pairwise(stops))
    assert total == pytest.approx(0.8 * 1.3, abs=1e-5)
    there = state_at(start, goal + 0.1 * (origin - goal), reached=1)
    assert float(task.reward(stops[-1], action, there, None, start.params)) == pytest.approx(
        1 + 0.1 * 1.3, abs=1e-5
    )


def test_every_crash_of_a_leg_costs_the_same_and_more_than_coming_nearer_brought(
    task: Any, start: Any
) -> None:
    goal, action = points(start.params)[0], np.zeros(4, np.float32)
    distant = state_at(start, goal + np.array([3.0, 0, 0]))
    spun = distant.vehicle.body._replace(wx=np.float32(50), x=np.float32(goal[0] + 0.3))
    spinning = distant._replace(vehicle=distant.vehicle._replace(body=spun))
    lost = state_at(start, goal + np.array([6.1, 0, 0]))
    for crash in (spinning, lost):
        assert task.terminal(crash, None, start.params)
        assert float(task.reward(distant, action, crash, None, start.params)) == pytest.approx(
            3.0 - 6.0, abs=1e-5
        )
    longest = 2 * np.sqrt(sum(side**2 for side in waypoints.BOX))
    assert longest + waypoints.REACHED_DISTANCE < waypoints.LOST_DISTANCE


def test_the_return_of_a_flight_is_the_sum_of_its_legs(task: Any) -> None:
    """The return telescopes over legs between balls of 0.2 m around waypoints.

    The first leg begins at the start, and the last one is unfinished.
    """
    flights = play(task, reference_player(task), range(32), split="test")
    seeds = np.stack([seed_key(s) for s in range(32)])
    starts = jax.device_get(jax.jit(jax.vmap(lambda s: begin(task, s, 0, TEST)[0]))(seeds))
    for i, reached in enumerate(flights.info["reached"]):
        tour = points(jax.tree.map(lambda leaf, i=i: leaf[i], starts.params))
        body = starts.state.vehicle.body
        stations = np.vstack(
            [[body.x[i], body.y[i], body.z[i]], tour[np.arange(reached + 1) % waypoints.COUNT]]
        )
        legs = np.linalg.norm(np.diff(stations, axis=0), axis=1).sum()
        expected = legs - flights.info["distance"][i] + reached
        # Each waypoint is reached somewhere in its ball: the next leg is longer or shorter by up to
        # twice its radius.
        assert abs(flights.total[i] - expected) <= 2 * waypoints.REACHED_DISTANCE * (reached + 1)


def test_a_waypoint_is_reached_in_a_ball_and_the_tour_goes_round(task: Any, start: Any) -> None:
    tour = points(start.params)
    hover = np.full(4, 0.334, np.float32)
    for offset, reached in ((0.15, 8), (0.25, 7)):
        state = state_at(start, tour[7] + np.array([offset, 0, 0]), reached=7)
        assert int(task.transition(state, hover, None, start.params).reached) == reached
    state = state_at(start, [0, 0, 0], reached=8)
    observation = np.asarray(task.observation(state, None, start.params))
    np.testing.assert_allclose(observation[:3], tour[0], atol=1e-6)
    np.testing.assert_allclose(observation[3:6], tour[1], atol=1e-6)
    assert bool(task.info(state, start.params)["success"])

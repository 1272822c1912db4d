"""The highway tasks: whole episodes against a plain simulation, no crash missed, rewards, contexts, players."""

from __future__ import annotations

import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.card import load
from rlbench_suite.envs.driving import highway, traffic
from rlbench_suite.envs.driving.car_following import Driver
from rlbench_suite.envs.driving.highway import ACTIONS, IDLE, LANE_LEFT, LANE_RIGHT, SLOWER, State
from rlbench_suite.envs.driving.traffic import VEHICLES, Fleet, Traffic
from rlbench_suite.episode import Draw, advance, begin, seed_key
from rlbench_suite.policy import reference_player
from rlbench_suite.process import precision
from rlbench_suite.registry import agent, card

sys.path.insert(0, str(Path(__file__).parent))
import plain_traffic
from plain_traffic import PlainTraffic

DISCRETE, CONTINUOUS = "Highway-v0", "HighwayContinuous-v0"
TRAIN = Draw(np.int32(0), np.int32(-1))


@cache
def task(name: str, difficulty: str = "medium", dtype: str = "float32") -> Any:
    return card(name).build(difficulty=difficulty, dtype=dtype)


@cache
def starter(which: Any) -> Any:
    return jax.jit(jax.vmap(lambda seed: begin(which, seed, 0, TRAIN)[0]))


def begun(which: Any, count: int) -> Any:
    with precision(which):
        return jax.tree.map(np.asarray, starter(which)(np.stack([seed_key(seed) for seed in range(count)])))


# -- whole episodes, step by step, against the plain simulation ----------------------------------------------------


@cache
def recorder(which: Any, steps: int) -> Any:
    """Episodes under hostile actions: states before each step, actions, states after."""
    limit = np.int32(which.card.horizon)

    def choose(episode: Any, key: Any) -> Any:
        if which.card.name == DISCRETE:
            mask = which.action_mask(episode.state, episode.params)
            return jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf)).astype(jnp.int32)
        # Pushes held for a while, weak and full steering, so that episodes last long enough to meet others.
        u = jax.random.uniform(jax.random.fold_in(key, 0), (4,), which.dtype)
        steer = jnp.where(u[2] < 0.2, 2 * u[1] - 1, 0.1 * (2 * u[1] - 1) - 0.5 * episode.state.traffic.pose.heading[0])
        return jnp.stack([jnp.where(u[3] < 0.5, 2 * u[0] - 1, 0.5), jnp.clip(steer, -1, 1)])

    def one(episode: Any, key: Any) -> Any:
        keys = jax.random.split(key, episode.t.shape[0])
        actions = jax.vmap(choose)(episode, keys)
        after = jax.vmap(lambda e, a: advance(which, e, a, limit)[0])(episode, actions)
        return after, (episode.state, actions, after.state)

    return jax.jit(lambda episode, keys: jax.lax.scan(one, episode, keys))


def hostile_episodes(name: str, difficulty: str, count: int, steps: int) -> tuple[Fleet, State, np.ndarray, State]:
    which = task(name, difficulty, "float64")
    start = begun(which, count)
    with precision(which):
        _, (before, actions, after) = recorder(which, steps)(start, jax.random.split(jax.random.key(7), steps))
    to_numpy = partial(jax.tree.map, np.asarray)
    return to_numpy(start.params), to_numpy(before), np.asarray(actions), to_numpy(after)


def plain_step(name: str, params: Fleet, before: State, action: np.ndarray) -> PlainTraffic:
    """One step of the task's docstring in plain NumPy, from the task's state before it."""
    pose, lane, target = before.traffic.pose, before.traffic.lane.copy(), before.traffic.target.copy()
    road = PlainTraffic(params, *pose, lane, target, before.travelled)
    if name == DISCRETE:
        aside = np.select([action == LANE_LEFT, action == LANE_RIGHT], [1, -1], 0)
        back = (aside != 0) & (target[:, 0] + aside == lane[:, 0])
        lane[back, 0], target[back, 0] = target[back, 0], lane[back, 0]
        target[~back, 0] += aside[~back]
        speed = 10 + 5 * (before.level + (action == 3) - (action == 4))
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

        halves = ((np.select([before.steps % 5 == 0, before.steps % 5 == 2], [1, -1], 0), 3),)
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
    ("name", "difficulty", "count", "steps"), [(DISCRETE, "hard", 64, 16), (CONTINUOUS, "easy", 64, 60)]
)
def test_every_step_is_that_of_a_plain_simulation(name: str, difficulty: str, count: int, steps: int) -> None:
    """Positions to a nanometre, decisions exactly, crashes never missed: brute force in NumPy at float64."""
    params, before, actions, after = hostile_episodes(name, difficulty, count, steps)
    compared = changes = 0
    for t in range(steps):
        running = np.flatnonzero(~before.crashed[t])
        road = plain_step(name, at(params, running), at(at(before, t), running), actions[t, running])
        mine = at(at(after, t), running)
        assert not (road.touched & ~mine.crashed).any()
        whole = ~mine.crashed  # the task stops at a crash
        for field in ("x", "y", "heading", "speed"):
            np.testing.assert_allclose(
                getattr(mine.traffic.pose, field)[whole], getattr(road, field)[whole], rtol=0, atol=1e-9
            )
        np.testing.assert_allclose(mine.travelled[whole], road.travelled[whole], rtol=0, atol=1e-9)
        np.testing.assert_array_equal(mine.traffic.lane[whole], road.lane[whole])
        np.testing.assert_array_equal(mine.traffic.target[whole], road.target[whole])
        compared += whole.sum()
        changes += (mine.traffic.target != before.traffic.target[t, running])[:, 1:].sum()
    assert compared > 200
    assert changes > 20

"""Surround, Escort and Catch against records of MOMAland and the rules in plain Python."""

from __future__ import annotations

import json
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.surround import Params, Point, State, Surround
from rlbench_suite.envs.marl.surround_players import assign

CARD = card("Surround-v0")
RECORDS = json.loads((Path(__file__).parent / "crazyrl_records.json").read_text())["records"]
KINDS = {"surround": 0, "escort": 1, "catch": 2}


def task_of(kind: str) -> Surround:
    return CARD.build(difficulty=KINDS[kind])


def points(rows: Any) -> tuple[Point, ...]:
    """Return places ``(n, 3)`` as points."""
    return tuple(Point(*row) for row in np.asarray(rows, np.float32))


def at(tree: Any, index: int) -> Any:
    """Return one entry of a batch."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def sampled(task: Surround, count: int, split: int) -> Params:
    """Return contexts with one more axis in front."""
    keys = jax.random.split(jax.random.key(3), count)
    program = jax.jit(jax.vmap(task.sample_params, (0, None)))
    return jax.tree.map(np.asarray, program(keys, np.int32(split)))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["id"])
def test_recorded_episodes_of_momaland(record: dict[str, Any]) -> None:
    """Places and rewards agree to float32, the record of catch to its end by a crash."""
    task = task_of(record["id"])
    target = points([record["target_start"]])[0]
    state = State(points(record["start"]), target, target, jnp.int32(0))
    params = Params(target, target, state.drones)

    @jax.jit
    def step(state: State, action: jax.Array) -> Any:
        after = task.transition(state, action, jax.random.key(0), params)
        reward = task.reward(state, action, after, None, params)
        return after, reward, task.terminal(after, None, params)

    steps = zip(
        record["actions"], record["drones"], record["target"], record["rewards"], strict=True
    )
    for action, drones, place, rewards in steps:
        state, reward, over = step(state, jnp.array(action, jnp.float32))
        np.testing.assert_allclose(np.array(state.drones), drones, atol=2e-6)
        np.testing.assert_allclose(np.array(state.target), place, atol=2e-6)
        np.testing.assert_allclose(reward, rewards, atol=4e-6)
    assert bool(over) == bool(record["last_flags"][0])
    first = np.asarray(task.observation(state, None, params))[0]
    np.testing.assert_allclose(first[:3], np.array(drones[0]) / 3, atol=1e-6)


class PlainRoom:
    """The rules in plain Python, float64."""

    def __init__(self, kind: int, params: Params) -> None:
        self.kind = kind
        self.drones = np.array(params.drones, np.float64)
        self.start = np.array(params.target, np.float64)
        self.destination = np.array(params.destination, np.float64)
        self.target = self.start
        self.steps = 0
        self.hesitates = False

    def step(self, action: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the rewards ``(4, 2)``, and whether a drone crashed."""
        self.steps += 1
        before, target_before = self.drones, self.target
        if self.kind == 1:
            fraction = min(self.steps, 51) / 52
            self.target = self.start + fraction * (self.destination - self.start)
        elif self.kind == 2:
            away = self.target - before.mean(0)
            gap = np.linalg.norm(away)
            self.hesitates = gap <= 0.2
            moved = self.target + 0.1 * away / gap
            self.target = np.clip(moved, [-3, -3, 0.2], [3, 3, 3])
        self.drones = np.clip(before + 0.2 * action, [-3, -3, 0], [3, 3, 3])
        rewards = np.zeros((4, 2))
        crash = [False] * 4
        for i in range(4):
            gaps = [np.linalg.norm(self.drones[i] - self.drones[j]) for j in range(4) if j != i]
            rewards[i, 0] = np.linalg.norm(before[i] - target_before) - np.linalg.norm(
                self.drones[i] - target_before
            )
            rewards[i, 1] = np.mean(gaps)
            near_target = np.linalg.norm(self.drones[i] - self.target) < 0.1
            crash[i] = min(gaps) < 0.1 or self.drones[i][2] < 0.1 or near_target
        rewards[crash] = -10
        return rewards, any(crash)


@pytest.mark.parametrize("kind", KINDS)
def test_rules_over_random_episodes(kind: str) -> None:
    """400 episodes of up to 60 random steps, against the rules in plain Python."""
    task = task_of(kind)
    episodes, steps = 400, 60
    params = sampled(task, episodes, split=1)
    rng = np.random.default_rng(KINDS[kind])
    drift = rng.uniform(-0.5, 0.5, (1, episodes, 4, 3))
    actions = np.clip(rng.uniform(-1, 1, (steps, episodes, 4, 3)) + drift, -1, 1)
    actions = actions.astype(np.float32)

    def run(params: Params, actions: jax.Array) -> Any:
        def step(state: State, action: jax.Array) -> Any:
            after = task.transition(state, action, jax.random.key(0), params)
            reward = task.reward(state, action, after, None, params)
            return after, (after, reward, task.terminal(after, None, params))

        return jax.lax.scan(step, task.initial(None, params), actions)[1]

    states, rewards, ends = jax.tree.map(
        np.asarray, jax.jit(jax.vmap(run, (0, 1)))(params, actions)
    )
    targets = np.array(states.target).transpose(1, 2, 0)
    crashes = 0
    for i in range(episodes):
        room = PlainRoom(KINDS[kind], at(params, i))
        for step in range(steps):
            expected, crashed = room.step(actions[step, i])
            if room.hesitates:
                break
            assert np.abs(targets[i, step] - room.target).max() < 1e-4
            assert np.abs(rewards[i, step] - expected).max() < 1e-4
            assert ends[i, step] == crashed
            if crashed:
                crashes += 1
                break
    assert crashes > 50


def test_a_target_near_the_mean_of_the_drones_hesitates() -> None:
    task = task_of("catch")
    target = points([[0, 0, 1]])[0]
    corners = [[1, 1, 1], [-1, 1, 1], [1, -1, 1], [-1, -1, 1]]
    state = State(points(corners), target, target, jnp.int32(0))
    params = Params(target, target, state.drones)
    keys = jax.random.split(jax.random.key(0), 500)
    still = jnp.zeros((4, 3))
    moved = jax.vmap(lambda key: task.transition(state, still, key, params).target)(keys)
    motion = np.array(moved) - np.array(target)[:, None]
    assert (motion > -1e-6).all()
    assert (motion < 0.01 + 1e-6).all()
    np.testing.assert_allclose(motion.mean(1), 0.005, atol=6e-4)  # 5 standard deviations


def test_players() -> None:
    """The reference succeeds, and returns more than the target's distance at the start."""
    for kind, bound in {"surround": 2.5, "escort": 4.0, "catch": 10.0}.items():
        task = task_of(kind)
        record = play(task, reference_player(task), range(64))
        assert record.info["success"].mean() > 0.9
        assert np.median(record.total.mean(1)[:, 0]) > bound
    chance = play(task_of("escort"), Uniform(CARD.build().action_space), range(64))
    assert chance.info["success"].mean() < 0.05


def test_a_resting_target_pays_the_distance_that_is_made_good() -> None:
    """The rewards of an episode add up to the first distance less the last one."""
    task = task_of("surround")
    record = play(task, reference_player(task), range(64))
    keys_reward = record.total[:, :, 0].mean(1)
    assert record.info["success"].all()
    assert (keys_reward > 0).all()
    np.testing.assert_allclose(record.info["target_distance"], 0.13, atol=1e-4)


def test_drones_are_assigned_to_places_with_the_least_squared_ways() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        drones, places = rng.uniform(-3, 3, (2, 4, 3)).astype(np.float32)
        result = np.asarray(assign(points(drones), jnp.array(places)))
        best = min(((drones - places[list(p)]) ** 2).sum() for p in permutations(range(4)))
        assert ((drones - result) ** 2).sum() == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("split", [0, 1])
def test_starts_are_apart(split: int) -> None:
    params = sampled(task_of("catch"), 1_000, split)
    band = np.floor((params.target.x / 1.2 + 1) / 2 * 20)
    assert (band % 2 == split).all()
    drones = np.array(params.drones)  # (drone, axis, episode)
    for i, j in combinations(range(4), 2):
        assert (np.linalg.norm(drones[i] - drones[j], axis=0) > 0.29).all()
    target = np.array(params.target)
    assert (np.linalg.norm(drones - target, axis=1) > 0.3).all()
    assert (np.abs(drones[:, :2]) < 3).all()


def test_pettingzoo_words_and_picture() -> None:
    task = task_of("escort")
    parallel_api_test(TaskParallelEnv(task, max_cycles=30), num_cycles=60)
    params = at(sampled(task, 1, 0), 0)
    state = task.initial(None, params)
    text = task.describe(state, params)
    assert "200 of 200 steps are left" in text
    assert "drone 3 at (" in text
    after = task.transition(state, np.ones((4, 3), np.float32), jax.random.key(0), params)
    assert (task.draw(state, params) != task.draw(after, params)).any()
    with pytest.raises(ValueError, match="it travels"):
        CARD.build(difficulty=3)

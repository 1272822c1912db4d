"""Check tag against records of MPE2, and against its rules in NumPy."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stripes import stripes_in_use

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.particles.particle_physics import Body, Point
from rlbench_suite.envs.marl.particles.tag import Params, State, Tag
from rlbench_suite.numerics.process import precision

RECORDS = json.loads((Path(__file__).parent / "mpe2_records.json").read_text())["tag"][:2]
"""The records that have observations and rewards; test_particles.py compares the motion of all."""
ROUNDING = 2e-6
"""The records show float32 of numbers up to 4, and start from nine digits."""
CARD = card("Tag-v0")
DIRECTIONS = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]], float)
RADII = np.array([0.075, 0.075, 0.075, 0.05, 0.2, 0.2])


def body(motion: list[float]) -> Body:
    """Return the body of a row of MPE2: velocity, then place."""
    vx, vy, x, y = np.float64(motion)
    return Body(x, y, vx, vy)


@pytest.mark.parametrize("record", RECORDS, ids=["moves", "pushes"])
def test_observations_and_rewards_are_those_of_mpe2(record: dict[str, Any]) -> None:
    task = CARD.build(dtype="float64")
    params = Params(tuple(Point(*np.float64(place)) for place in record["start"]["landmarks"]))
    with precision(task):
        view = jax.jit(lambda state: _view(task, state, params))
        for t, motions in enumerate(record["motion"]):
            *predators, prey = (body(motion) for motion in motions.values())
            observation, reward = view(State(tuple(predators), prey, np.int32(0)))
            expected = np.clip(record["obs"][t], -4, 4)
            np.testing.assert_allclose(2 * observation, expected, atol=ROUNDING)
            np.testing.assert_array_equal(reward, record["reward"][t])


def _view(task: Tag, state: State, params: Params) -> tuple[jax.Array, jax.Array]:
    reward = task.reward(state, None, state, None, params)
    return task.observation(state, None, params), reward


def step_by_loops(
    places: np.ndarray, velocities: np.ndarray, pushes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return places, velocities and touching predators of many episodes after a step.

    Places are those of predators, prey and obstacles, ``(episodes, 6, 2)``; velocities and pushes
    those of the first four.
    """
    force = pushes.copy()
    for i in range(4):
        for j in range(6):
            if i != j:
                line = places[:, i] - places[:, j]
                gap = np.linalg.norm(line, axis=-1, keepdims=True)
                reach = RADII[i] + RADII[j]
                force[:, i] += 100 * line / gap * np.logaddexp(0, (reach - gap) / 1e-3) * 1e-3
    moved = places.copy()
    moved[:, :4] += 0.1 * velocities
    velocities = 0.75 * velocities + 0.1 * force
    speed = np.linalg.norm(velocities, axis=-1, keepdims=True)
    limits = np.array([[1], [1], [1], [1.3]])
    velocities = velocities * limits / np.maximum(speed, limits)
    gaps = np.linalg.norm(moved[:, :3] - moved[:, 3:4], axis=-1)
    return moved, velocities, (gaps < 0.125).sum(1)


def flight_by_loops(places: np.ndarray, velocities: np.ndarray) -> np.ndarray:
    """Return how good each move of the prey is, ``(episodes, 5)``."""
    ahead = places[:, :4] + 0.1 * velocities + 0.3 * 0.75 * velocities
    values = []
    for direction in DIRECTIONS:
        prey = ahead[:, 3] + 0.3 * 0.1 * 4 * direction
        nearest = np.linalg.norm(ahead[:, :3] - prey[:, None], axis=-1).min(1)
        to_obstacles = np.linalg.norm(places[:, 4:] - prey[:, None], axis=-1)
        excess = np.maximum(0.25 - to_obstacles, 0).sum(1) + np.maximum(abs(prey) - 0.9, 0).sum(1)
        values.append(nearest - 3 * excess)
    return np.stack(values, 1)


def test_a_prey_that_always_flees_by_loops_over_a_thousand_episodes() -> None:
    """Every step of sampled episodes with random moves, beside a model in NumPy."""
    task = CARD.build(difficulty="hard", dtype="float64")
    count = 1000
    moves = np.random.default_rng(1).integers(0, 5, (CARD.horizon, count, 3))
    with precision(task):
        keys = jax.random.split(jax.random.key(0), count)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, 0)
        state = jax.jit(jax.vmap(task.initial))(keys, params)
        step = jax.jit(jax.vmap(lambda *args: _step(task, *args)))
        caught = np.zeros(count, int)
        for joint in moves:
            places, velocities = motion(state, params)
            values = flight_by_loops(places, velocities)
            pushes = np.stack([*(3 * DIRECTIONS[joint].transpose(1, 0, 2)),
                               4 * DIRECTIONS[values.argmax(1)]], 1)  # fmt: skip
            expected = step_by_loops(places, velocities, pushes)
            state, reward, info = step(state, jnp.asarray(joint), keys, params)
            # Two moves of the prey may be equally good but for rounding.
            best, second = np.sort(values, 1)[:, :-3:-1].T
            clear = best - second > 1e-9
            assert clear.mean() > 0.99
            after = motion(state, params)
            np.testing.assert_allclose(after[0], expected[0], atol=1e-9)
            np.testing.assert_allclose(after[1][clear], expected[1][clear], atol=1e-9)
            np.testing.assert_array_equal(reward, np.repeat(10 * expected[2][:, None], 3, 1))
            caught += expected[2] > 0
            np.testing.assert_array_equal(info["caught_steps"], caught)
            np.testing.assert_array_equal(info["success"], caught >= 2)
    assert caught.sum() > 20


def motion(state: Any, params: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return places ``(episodes, 6, 2)``, and velocities ``(episodes, 4, 2)``."""
    bodies = np.array([*state.predators, state.prey]).transpose(2, 0, 1)
    obstacles = np.array(params.obstacles).transpose(2, 0, 1)
    return np.concatenate([bodies[:, :, :2], obstacles], 1), bodies[:, :, 2:]


def _step(
    task: Tag, state: Any, action: jax.Array, key: jax.Array, params: Any
) -> tuple[Any, jax.Array, dict[str, jax.Array]]:
    after = task.transition(state, action, key, params)
    return after, task.reward(state, action, after, key, params), task.info(after, params)


@pytest.mark.parametrize(("difficulty", "share"), [("easy", 0.4), ("medium", 0.8), ("hard", 1.0)])
def test_how_often_a_prey_flees(difficulty: str, share: float) -> None:
    """A prey that has a predator to its left flees to the right; a random move is one in five."""
    task = CARD.build(difficulty=difficulty)
    still = np.float32(0)
    bystander = Body(np.float32(-0.8), np.float32(0), still, still)
    prey = bystander._replace(x=np.float32(0))
    chaser = bystander._replace(x=np.float32(-0.3))
    corner = Point(np.float32(0.8), np.float32(0.8))
    state = State((chaser, bystander, bystander), prey, np.int32(0))
    params = Params((corner, corner))
    keys = jax.random.split(jax.random.key(2), 4000)
    step = jax.jit(jax.vmap(lambda key: task.transition(state, jnp.zeros(3, int), key, params)))
    right = (np.asarray(step(keys).prey.vx) > 0.3).mean()
    assert right == pytest.approx(share + (1 - share) / 5, abs=0.03)


def test_obstacles_of_the_splits_never_meet() -> None:
    """Eighteen stripes of 0.1 m belong to train and test in turn."""
    task = CARD.build()
    for split in (0, 1):
        stripes = stripes_in_use(task, split, "obstacles", edge=0.9)
        assert stripes == set(range(split, 18, 2))


@pytest.mark.parametrize("actions", ["discrete", "continuous"])
def test_reference_catches_the_prey(actions: str) -> None:
    task = card("Tag-v0", actions=actions).build()
    record = play(task, reference_player(task), range(256))
    assert record.info["success"].mean() > 0.7
    assert record.total.mean() > 35


def test_a_difficulty_is_a_probability() -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        CARD.build(difficulty=1.5)

"""Check Push against records of MPE2, and against its rules in NumPy."""

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
from rlbench_suite.envs.marl.particles.moves import continuous_drive, discrete_drive
from rlbench_suite.envs.marl.particles.particle_physics import Body, Point, step_bodies
from rlbench_suite.envs.marl.particles.push import AGENT, Guard, Params, Push, State
from rlbench_suite.numerics.process import precision

RECORDS = json.loads((Path(__file__).parent / "mpe2_records.json").read_text())["push"]
ROUNDING = 2e-6
"""The records show float32 of numbers up to 4, and start from nine digits."""
CARD = card("Push-v0")
DIRECTIONS = np.array([0, -1, 1, -1j, 1j])
SIZES = {"easy": 3.0, "medium": 4.0, "hard": 5.0}
"""Push of the rival, N."""


def drive(action: Any, *, continuous: bool) -> Any:
    """Return the force of an action of MPE2, whose five numbers in [0, 1] are two of ours."""
    if not continuous:
        return discrete_drive(jnp.int32(action), AGENT, np.dtype("float64"))
    _, left, right, down, up = action
    return continuous_drive(jnp.array([right - left, up - down]), AGENT)


@pytest.mark.parametrize("record", RECORDS, ids=["moves", "pushes"])
def test_push_is_that_of_mpe2(record: dict[str, Any]) -> None:
    """Every observation and reward of the adversary; there, the good agent moves at random."""
    task = CARD.build(dtype="float64")
    agents = record["start"]["agents"]
    assert list(agents) == ["adversary_0", "agent_0"]
    goal = int(agents["agent_0"]["goal_a"].removeprefix("landmark "))
    landmarks = tuple(Point(*np.float64(place)) for place in record["start"]["landmarks"])
    params = Params(landmarks, np.int32(goal))
    state = State(*(Body(*np.float64([*a["pos"], *a["vel"]])) for a in agents.values()))
    with precision(task):
        step = jax.jit(lambda state, drives: _step_both(task, state, drives, params))
        for t, joint in enumerate(record["actions"]):
            drives = [drive(a, continuous=record["continuous"]) for a in joint.values()]
            state, observation, reward = step(state, drives)
            np.testing.assert_allclose(reward, record["reward"][t][0], atol=ROUNDING)
            expected = np.clip(record["obs"][t][0], -4, 4)
            np.testing.assert_allclose(2 * observation, expected, atol=ROUNDING)
    assert record["truncated"] == [False] * (CARD.horizon - 1) + [True]


def _step_both(task: Push, state: Any, drives: Any, params: Params) -> tuple[Any, ...]:
    after = State(*step_bodies(state, (AGENT,) * 2, drives))
    return (
        after,
        task.observation(after, None, params),
        task.reward(state, None, after, None, params),
    )


def contact(gap: np.ndarray) -> np.ndarray:
    """Return the force between two bodies of 0.05 m whose centres are ``gap`` apart, N."""
    force: np.ndarray = 100 * gap / abs(gap) * np.logaddexp(0, (0.1 - abs(gap)) / 1e-3) * 1e-3
    return force


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_rules_over_a_thousand_episodes(difficulty: str) -> None:
    """Every step of episodes with random moves, beside a model in NumPy."""
    task = CARD.build(difficulty=difficulty, dtype="float64")
    count = 1000
    moves = np.random.default_rng(1).integers(0, 5, (CARD.horizon, count))
    with precision(task):
        keys = jax.random.split(jax.random.key(0), count)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, 0)
        state = jax.jit(jax.vmap(task.initial))(keys, params)
        step = jax.jit(jax.vmap(lambda *args: _step(task, *args)))
        x, y = np.array(params.landmarks).transpose(1, 0, 2)
        number = np.asarray(params.goal)
        assert 400 < number.sum() < 600
        goal = (x + 1j * y)[number, np.arange(count)]
        touched = 0
        for joint in moves:
            places, velocities = motion(state)
            ahead = places[1] + 0.1 * velocities[1] + 0.13 * 0.75 * velocities[1]
            size = 0.1 * SIZES[difficulty]
            gaps = abs(ahead + 0.13 * size * DIRECTIONS[:, None] - goal)
            best, second = np.sort(gaps, 0)[:2]
            # Two moves may be equally good but for rounding.
            clear = second - best > 1e-9
            assert clear.mean() > 0.99
            pushes = np.stack([0.5 * DIRECTIONS[joint], size * DIRECTIONS[gaps.argmin(0)]])
            force = 0.1 * contact(places[0] - places[1])
            expected_velocities = 0.75 * velocities + pushes + np.stack([force, -force])
            expected_places = places + 0.1 * velocities
            state, reward, info = step(state, jnp.asarray(joint), params)
            places, velocities = motion(state)
            np.testing.assert_allclose(places, expected_places, atol=1e-9)
            np.testing.assert_allclose(
                velocities[:, clear], expected_velocities[:, clear], atol=1e-9
            )
            gap, rival_gap = abs(places - goal)
            np.testing.assert_allclose(reward, rival_gap - gap, atol=1e-9)
            np.testing.assert_array_equal(info["success"], gap < rival_gap)
            touched += int((abs(places[0] - places[1]) < 0.1).sum())
    assert touched > 100


def motion(state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return places and velocities of agent and rival, complex ``(2, episodes)``."""
    bodies = [jax.tree.map(np.asarray, body) for body in state]
    return (
        np.stack([body.x + 1j * body.y for body in bodies]),
        np.stack([body.vx + 1j * body.vy for body in bodies]),
    )


def _step(
    task: Push, state: Any, action: jax.Array, params: Any
) -> tuple[Any, jax.Array, dict[str, jax.Array]]:
    after = task.transition(state, action, None, params)
    return after, task.reward(state, action, after, None, params), task.info(after, params)


def test_nothing_that_the_agent_sees_at_the_start_tells_the_goal() -> None:
    task = CARD.build()
    keys = jax.random.split(jax.random.key(3), 50)
    for key in keys:
        params = task.sample_params(key, 0)
        state = task.initial(key, params)
        swapped = params._replace(goal=1 - params.goal)
        np.testing.assert_array_equal(
            task.observation(state, key, params), task.observation(state, key, swapped)
        )


@pytest.mark.parametrize("actions", ["discrete", "continuous"])
def test_reference_holds_the_goal(actions: str) -> None:
    """A rival that starts nearer often comes first; a player that stays returns -17.6."""
    task = card("Push-v0", actions=actions).build()
    record = play(task, reference_player(task), range(256))
    assert record.info["success"].mean() > 0.7
    assert record.total.mean() > -1


def test_inference_is_worth_much() -> None:
    """A player that never looks at the rival guards the middle of the two landmarks."""

    class Blindfolded(Guard):
        def act(self, memory: Any, view: Any, key: jax.Array) -> Any:
            action, _ = super().act(self.initial(None), view, key)
            return action, memory

    task = CARD.build()
    guard = reference_player(task)
    blindfolded = Blindfolded(
        rival_kind=guard.rival_kind, is_discrete=guard.is_discrete, dtype=guard.dtype
    )
    seeing = play(task, guard, range(256)).total.mean()
    assert seeing > play(task, blindfolded, range(256)).total.mean() + 3


def test_landmarks_of_the_splits_never_meet() -> None:
    """Twenty stripes of 0.1 m belong to train and test in turn."""
    task = CARD.build()
    for split in (0, 1):
        stripes = stripes_in_use(task, split, "landmarks", edge=1.0)
        assert stripes == set(range(split, 20, 2))


def test_words_of_the_agent() -> None:
    task = CARD.build()
    assert task.parse("up", None, None) == 4
    assert task.spell(np.int32(1), None, None) == "left"
    with pytest.raises(ValueError, match="expected 1 word"):
        task.parse("up down", None, None)


def test_a_difficulty_is_a_push_in_newtons() -> None:
    with pytest.raises(ValueError, match="up to 10 N"):
        CARD.build(difficulty=11)

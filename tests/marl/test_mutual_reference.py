"""Check MutualReference against a record of MPE2, and against its rules in NumPy."""

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
from rlbench_suite.envs.marl.particles.mutual_reference import (
    MutualReference,
    NamingPair,
    Params,
    State,
)
from rlbench_suite.envs.marl.particles.particle_physics import Body, Point
from rlbench_suite.numerics.process import precision

RECORDS = json.loads((Path(__file__).parent / "mpe2_records.json").read_text())["mutual_reference"]
ROUNDING = 2e-6
"""The records show float32 of numbers up to 4, and start from nine digits."""
CARD = card("MutualReference-v0")
DIRECTIONS = np.array([0, -1, 1, -1j, 1j])


def _step(
    task: MutualReference, state: Any, action: jax.Array, params: Any
) -> tuple[Any, jax.Array, jax.Array, dict[str, jax.Array]]:
    after = task.transition(state, action, None, params)
    reward = task.reward(state, action, after, None, params)
    return after, reward, task.observation(after, None, params), task.info(after, params)


@pytest.mark.parametrize("record", RECORDS)
def test_mutual_reference_is_that_of_mpe2(record: dict[str, Any]) -> None:
    """Every observation and reward of both, in an episode of random moves and words."""
    task = CARD.build(dtype="float64")
    agents = record["start"]["agents"]
    assert [agent["goal_a"] for agent in agents.values()] == ["agent_1", "agent_0"]
    # There an agent holds the other one's landmark.
    second, first = (int(agent["goal_b"].removeprefix("landmark ")) for agent in agents.values())
    landmarks = tuple(Point(*np.float64(place)) for place in record["start"]["landmarks"])
    params = Params(landmarks, (np.int32(first), np.int32(second)))
    bodies = [Body(*np.float64([*a["pos"], *a["vel"]])) for a in agents.values()]
    state = State((bodies[0], bodies[1]), (np.int32(-1), np.int32(-1)))
    with precision(task):
        step = jax.jit(lambda state, action: _step(task, state, action, params))
        for t, joint in enumerate(record["actions"]):
            state, reward, observation, _ = step(state, jnp.array([*joint.values()]))
            np.testing.assert_allclose(reward, record["reward"][t], atol=ROUNDING)
            recorded = np.array(record["obs"][t])
            expected = np.clip(recorded[:, :8], -4, 4)
            np.testing.assert_allclose(2 * observation[:, :8], expected, atol=ROUNDING)
            np.testing.assert_allclose(0.25 + 0.5 * observation[:, 8:11], recorded[:, 8:11])
            np.testing.assert_array_equal(observation[:, 11:], recorded[:, 11:])
    assert record["truncated"] == [False] * (CARD.horizon - 1) + [True]


def test_rules_over_a_thousand_episodes() -> None:
    """Every step of episodes with random moves and words, beside a model in NumPy."""
    task = CARD.build(dtype="float64")
    count = 1000
    every = np.arange(count)
    actions = np.random.default_rng(1).integers(0, 50, (CARD.horizon, count, 2))
    with precision(task):
        keys = jax.random.split(jax.random.key(0), count)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, 0)
        state = jax.jit(jax.vmap(task.initial))(keys, params)
        step = jax.jit(jax.vmap(lambda *args: _step(task, *args)))
        x, y = np.array(params.landmarks).transpose(1, 0, 2)
        goals = np.array(params.goals)
        shares = np.bincount(3 * goals[0] + goals[1], minlength=9) / count
        assert abs(shares - 1 / 9).max() < 0.04
        targets = np.stack([(x + 1j * y)[numbers, every] for numbers in goals])
        bodies = np.array(state.agents)
        place = bodies[:, 0] + 1j * bodies[:, 1]
        velocity = 0 * place
        for joint in actions:
            state, reward, observation, info = step(state, jnp.asarray(joint), params)
            place, velocity = (
                place + 0.1 * velocity,
                0.75 * velocity + 0.5 * DIRECTIONS[joint.T % 5],
            )
            bodies = np.array(state.agents)
            np.testing.assert_allclose(bodies[:, 0] + 1j * bodies[:, 1], place, atol=1e-9)
            gaps = abs(place - targets)
            expected = -0.5 * gaps[::-1] - 0.5 * gaps.mean(0)
            np.testing.assert_allclose(reward, expected.T, atol=1e-9)
            np.testing.assert_array_equal(info["success"], (gaps < 0.1).all(0))
            heard = np.asarray(observation)[:, :, 11:]
            np.testing.assert_array_equal(heard.argmax(-1), joint[:, ::-1] // 5)
            assert (heard.sum(-1) == 1).all()


def test_nobody_sees_its_own_landmark() -> None:
    """One's own goal changes what the other agent sees, and nothing that one sees oneself."""
    task = CARD.build()
    key = jax.random.key(3)
    params = task.sample_params(key, 0)
    state = task.initial(key, params)
    views = [
        np.asarray(task.observation(state, key, params._replace(goals=(goal, params.goals[1]))))
        for goal in np.arange(3)
    ]
    assert (np.ptp(views, axis=0)[0] == 0).all()
    assert np.ptp(views, axis=0)[1, 8:11].tolist() == [1, 1, 1]


def test_words_are_worth_much() -> None:
    """A pair that hears nothing stays in the middle of the three landmarks."""

    class Deaf(NamingPair):
        def act(self, memory: Any, view: Any, key: jax.Array) -> Any:
            silent = view.observation.at[:, 11:].set(0)
            return super().act(memory, view._replace(observation=silent), key)

    task = CARD.build()
    record = play(task, reference_player(task), range(256))
    assert record.info["success"].mean() > 0.95
    deaf = play(task, Deaf(), range(256))
    assert deaf.info["success"].mean() < 0.05
    assert record.total.mean() > deaf.total.mean() + 5


def test_landmarks_of_the_splits_never_meet() -> None:
    """Twenty stripes of 0.1 m belong to train and test in turn."""
    task = CARD.build()
    for split in (0, 1):
        stripes = stripes_in_use(task, split, "landmarks", edge=1.0)
        assert stripes == set(range(split, 20, 2))


def test_moves_and_words_of_agents() -> None:
    task = CARD.build()
    action = task.parse("up 3, stay 9", None, None)
    assert action.tolist() == [4 + 15, 45]
    assert task.spell(action, None, None) == "up 3 stay 9"
    with pytest.raises(ValueError, match="expected 4 words"):
        task.parse("up 3", None, None)

"""Check Adversary against records of MPE2, and against its rules in NumPy."""

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
from rlbench_suite.envs.marl.particles.adversary import AGENT, Adversary, Decoy, Params, State
from rlbench_suite.envs.marl.particles.moves import continuous_drive, discrete_drive
from rlbench_suite.envs.marl.particles.particle_physics import Body, Point, step_bodies
from rlbench_suite.numerics.process import precision

RECORDS = json.loads((Path(__file__).parent / "mpe2_records.json").read_text())["adversary"]
ROUNDING = 2e-6
"""The records show float32 of numbers up to 4, and start from nine digits."""
CARD = card("Adversary-v0")
DIRECTIONS = np.array([0, -1, 1, -1j, 1j])


def drive(action: Any, *, continuous: bool) -> Any:
    """Return the force of an action of MPE2, whose five numbers in [0, 1] are two of ours."""
    if not continuous:
        return discrete_drive(jnp.int32(action), AGENT, np.dtype("float64"))
    _, left, right, down, up = action
    return continuous_drive(jnp.array([right - left, up - down]), AGENT)


@pytest.mark.parametrize("record", RECORDS, ids=["moves", "pushes"])
def test_adversary_is_that_of_mpe2(record: dict[str, Any]) -> None:
    """Every observation and reward of the agents; there, the adversary moves at random."""
    task = CARD.build(dtype="float64")
    start = record["start"]
    goal = int(start["agents"]["agent_0"]["goal_a"].removeprefix("landmark "))
    params = Params(
        tuple(Point(*np.float64(place)) for place in start["landmarks"]), np.int32(goal)
    )
    bodies = tuple(Body(*np.float64([*a["pos"], *a["vel"]])) for a in start["agents"].values())
    names = list(start["agents"])
    assert names == ["adversary_0", "agent_0", "agent_1"]
    with precision(task):
        step = jax.jit(lambda bodies, drives: _step_all(task, bodies, drives, params))
        for t, joint in enumerate(record["actions"]):
            drives = [drive(joint[name], continuous=record["continuous"]) for name in names]
            bodies, observation, reward = step(bodies, drives)
            np.testing.assert_allclose(reward, record["reward"][t], atol=ROUNDING)
            expected = np.clip(record["obs"][t], -4, 4)
            np.testing.assert_allclose(2 * observation, expected, atol=ROUNDING)
    assert record["truncated"] == [False] * (CARD.horizon - 1) + [True]


def _step_all(task: Adversary, bodies: Any, drives: Any, params: Params) -> tuple[Any, ...]:
    after = step_bodies(bodies, (AGENT,) * 3, drives)
    adversary, *agents = after
    state = State(tuple(agents), adversary, np.float64(0))
    return (
        after,
        task.observation(state, None, params),
        task.reward(state, None, state, None, params),
    )


def nearest(agents: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the distance of a place from the nearest agent, ``(episodes,)``."""
    return abs(agents - place).min(0)


@pytest.mark.parametrize(("difficulty", "hint"), [("easy", 0.0), ("medium", 0.1), ("hard", 0.2)])
def test_rules_over_a_thousand_episodes(difficulty: str, hint: float) -> None:
    """Every step of episodes with random moves, beside a model in NumPy."""
    task = CARD.build(difficulty=difficulty, dtype="float64")
    count = 1000
    moves = np.random.default_rng(1).integers(0, 5, (CARD.horizon, count, 2))
    every = np.arange(count)
    with precision(task):
        keys = jax.random.split(jax.random.key(0), count)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, 0)
        state = jax.jit(jax.vmap(task.initial))(keys, params)
        step = jax.jit(jax.vmap(lambda *args: _step(task, *args)))
        x, y = np.array(params.landmarks).transpose(1, 0, 2)
        number = np.asarray(params.goal)
        assert set(number.tolist()) == {0, 1}
        goal, decoy = (x + 1j * y)[number, every], (x + 1j * y)[1 - number, every]
        place = places(state)
        velocity = 0 * place
        preference = nearest(place[:2], decoy) - nearest(place[:2], goal)
        for joint in moves:
            target = np.where(preference + hint >= 0, goal, decoy)
            ahead = place[2] + 0.1 * velocity[2] + 0.13 * 0.75 * velocity[2]
            gaps = abs(ahead + 0.13 * 0.5 * DIRECTIONS[:, None] - target)
            best, second = np.sort(gaps, 0)[:2]
            # Two moves may be equally good but for rounding.
            assert (second - best > 1e-9).mean() > 0.99
            pushes = np.stack([*DIRECTIONS[joint.T], DIRECTIONS[gaps.argmin(0)]])
            state, reward, info = step(state, jnp.asarray(joint), params)
            place, velocity = place + 0.1 * velocity, 0.75 * velocity + 0.5 * pushes
            clear = second - best > 1e-9
            np.testing.assert_allclose(places(state)[:2], place[:2], atol=1e-9)
            np.testing.assert_allclose(places(state)[2][clear], place[2][clear], atol=1e-9)
            place = places(state)
            velocity[2] = np.asarray(state.adversary.vx) + 1j * np.asarray(state.adversary.vy)
            watched = nearest(place[:2], decoy) - nearest(place[:2], goal)
            preference = 0.7 * preference + 0.3 * watched
            np.testing.assert_allclose(state.preference, preference, atol=1e-9)
            close, adversary = nearest(place[:2], goal), abs(place[2] - goal)
            np.testing.assert_allclose(reward, np.stack([adversary - close] * 2, 1), atol=1e-9)
            expected = (close < hint + 0.15) & (abs(place[2] - decoy) < adversary)
            np.testing.assert_array_equal(info["success"], expected)


def places(state: Any) -> np.ndarray:
    """Return the places of the agents and of the adversary, complex ``(3, episodes)``."""
    bodies = [*state.agents, state.adversary]
    return np.stack([np.asarray(body.x) + 1j * np.asarray(body.y) for body in bodies])


def _step(
    task: Adversary, state: Any, action: jax.Array, params: Any
) -> tuple[Any, jax.Array, dict[str, jax.Array]]:
    after = task.transition(state, action, None, params)
    return after, task.reward(state, action, after, None, params), task.info(after, params)


def still_state(agents: list[complex], adversary: complex, preference: float) -> State:
    still = np.float32(0)
    bodies = [Body(np.float32(z.real), np.float32(z.imag), still, still) for z in agents]
    spy = Body(np.float32(adversary.real), np.float32(adversary.imag), still, still)
    return State(tuple(bodies), spy, np.float32(preference))


def coast(difficulty: str, agents: list[complex], preference: float) -> float:
    """Return the reward after 100 steps in which the agents stay, landmarks 1 m apart."""
    task = CARD.build(difficulty=difficulty)
    origin, unit = np.float32(0), np.float32(1)
    params = Params((Point(origin, origin), Point(unit, origin)), np.int32(0))
    stay = np.zeros(2, np.int32)
    step = jax.jit(lambda state: task.transition(state, stay, None, params))
    state = still_state(agents, 0.5 - 0.7j, preference)
    for _ in range(100):
        state = step(state)
    return float(task.reward(state, stay, state, None, params)[0])


def test_deceit_pays_the_distance_of_the_landmarks_less_the_hint() -> None:
    """An adversary that brakes by whole pushes ends within 0.1 m of where it goes."""
    for difficulty, hint in (("easy", 0.0), ("medium", 0.1), ("hard", 0.2)):
        misled = coast(difficulty, [-(hint + 0.01), 1], 1.0)
        assert misled == pytest.approx(1 - hint - 0.01, abs=0.1)
        near = max(hint - 0.02, 0)
        too_near = coast(difficulty, [-near, 1.02], -1.0)
        assert too_near == pytest.approx(-near, abs=0.1)
    honest = coast("medium", [0, 0.5], -1.0)
    assert honest == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("actions", ["discrete", "continuous"])
def test_reference_misleads_the_adversary(actions: str) -> None:
    task = card("Adversary-v0", actions=actions).build()
    record = play(task, reference_player(task), range(256))
    assert record.info["success"].mean() > 0.9
    assert record.total.mean() > 10.5


def test_deceit_pays_more_than_hiding_nothing_and_than_one_agent_a_landmark() -> None:
    """With a hint beyond all landmarks the player goes to the goal; with one below 0, to both.

    A model in NumPy returned 5.5 and 7.9 in 8,000 episodes; the standard error here is 0.3.
    """
    task = CARD.build()
    returns = {
        name: play(task, Decoy(hint=hint), range(512)).total.mean()
        for name, hint in (("honest", 10.0), ("split", -10.0), ("decoy", 0.1))
    }
    assert returns["honest"] == pytest.approx(5.5, abs=0.9)
    assert returns["split"] == pytest.approx(7.9, abs=0.9)
    assert returns["decoy"] > returns["split"] + 2.5


def test_landmarks_of_the_splits_never_meet() -> None:
    """Twenty stripes of 0.1 m belong to train and test in turn."""
    task = CARD.build()
    for split in (0, 1):
        stripes = stripes_in_use(task, split, "landmarks", edge=1.0)
        assert stripes == set(range(split, 20, 2))


def test_words_of_agents() -> None:
    task = CARD.build()
    assert task.parse("up, stay", None, None).tolist() == [4, 0]
    with pytest.raises(ValueError, match="expected 2 words"):
        task.parse("up", None, None)


def test_a_difficulty_is_a_hint_in_metres() -> None:
    with pytest.raises(ValueError, match="0 to 1 m"):
        CARD.build(difficulty=1.5)

"""Check the particle worlds against records of MPE2, and against models in NumPy."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stripes import stripes_in_use

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.particles import speaker_listener, spread
from rlbench_suite.envs.marl.particles.moves import continuous_drive, discrete_drive
from rlbench_suite.envs.marl.particles.particle_physics import (
    Body,
    Kind,
    Point,
    contact_force,
    step_bodies,
)
from rlbench_suite.numerics.process import precision

RECORDS = json.loads((Path(__file__).parent / "mpe2_records.json").read_text())
KINDS_OF_RECORDS = ("moves", "pushes", "touching moves", "touching pushes")
ROUNDING = 2e-6
"""The records show float32 of numbers up to 4, and start from nine digits."""
SPREAD = card("Spread-v0")
SPEAKER_LISTENER = card("SpeakerListener-v0")
MPE2_KINDS = (
    *(Kind(0.075, collides=True, push=3.0, max_speed=1.0),) * 3,
    Kind(0.05, collides=True, push=4.0, max_speed=1.3),
    *(Kind(0.2, collides=True, movable=False),) * 2,
)
"""Bodies of MPE2's ``simple_tag_v3``: three chasers, their prey, two obstacles."""


def body(motion: list[float]) -> Body:
    """Return the body of a row of MPE2: velocity, then place."""
    vx, vy, x, y = np.float64(motion)
    return Body(x, y, vx, vy)


def start_bodies(start: dict[str, Any]) -> tuple[Body, ...]:
    return tuple(body([*agent["vel"], *agent["pos"]]) for agent in start["agents"].values())


def points(start: dict[str, Any]) -> tuple[Point, ...]:
    return tuple(Point(*np.float64(place)) for place in start["landmarks"])


def pushes(action: list[float]) -> list[float]:
    """Return our two numbers for the five of MPE2."""
    _, left, right, down, up = action
    return [right - left, up - down]


# -- the physics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS["tag"], ids=KINDS_OF_RECORDS)
def test_bodies_move_as_in_mpe2(record: dict[str, Any]) -> None:
    """Speed limits, obstacles and contacts: those of MPE2's tag, whose bodies have all of them."""
    still = Body(*np.zeros(4))
    obstacles = [still._replace(x=place.x, y=place.y) for place in points(record["start"])]
    bodies = (*start_bodies(record["start"]), *obstacles)
    no_drive = (0.0, 0.0)
    with jax.enable_x64(True):
        step = jax.jit(lambda bodies, drives: step_bodies(bodies, MPE2_KINDS, drives))
        for actions, motions in zip(record["actions"], record["motion"], strict=True):
            drives = [
                continuous_drive(jnp.array(pushes(action)), kind)
                if record["continuous"]
                else discrete_drive(jnp.int32(action), kind, np.dtype("float64"))
                for action, kind in zip(actions.values(), MPE2_KINDS[:4], strict=True)
            ]
            bodies = step(bodies, [*drives, no_drive, no_drive])
            expected = [body(motion) for motion in motions.values()]
            np.testing.assert_allclose(bodies[:4], expected, atol=ROUNDING)
            np.testing.assert_array_equal(bodies[4:], obstacles)


def test_contacts_conserve_momentum() -> None:
    """Without drives the sum of velocities only decays, by a quarter a step, in any pile-up."""
    kinds = (Kind(0.15, collides=True),) * 5
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        step = jax.jit(lambda bodies: step_bodies(bodies, kinds, [(0.0, 0.0)] * 5))
        for _ in range(20):
            bodies = tuple(Body(*row) for row in rng.uniform(-0.2, 0.2, (5, 4)))
            later = step(bodies)
            before = np.array(bodies).sum(0)
            after = np.array(later).sum(0)
            assert np.abs(np.array(later)[:, 2:] - 0.75 * np.array(bodies)[:, 2:]).max() > 0.5
            np.testing.assert_allclose(after[2:], 0.75 * before[2:], atol=1e-12)
            np.testing.assert_allclose(after[:2], before[:2] + 0.1 * before[2:], atol=1e-12)


def test_bodies_in_one_place_are_no_division_by_zero() -> None:
    """MPE2 divides zero by zero here."""
    here = Body(*np.float32([0.3, 0.4, 0, 0]))
    assert contact_force(here, here, 0.3) == (0, 0)


def test_a_coasting_body_ends_where_the_geometric_series_says() -> None:
    still = (0.0, 0.0)
    coasting = (Body(0.0, 0.0, 1.0, -2.0),)
    for _ in range(200):
        coasting = step_bodies(coasting, (Kind(0.1, collides=False),), [still])
    assert coasting[0] == pytest.approx((0.4, -0.8, 0, 0), abs=1e-12)


# -- spread ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS["spread"], ids=KINDS_OF_RECORDS)
def test_spread_is_that_of_mpe2(record: dict[str, Any]) -> None:
    """Every state, reward and observation of recorded episodes, two of them with contacts."""
    actions = "continuous" if record["continuous"] else "discrete"
    task = card("Spread-v0", actions=actions).build(dtype="float64")
    params = spread.Params(points(record["start"]))
    state = spread.State(start_bodies(record["start"]))
    with precision(task):
        step = jax.jit(lambda state, action: _step(task, state, action, params))
        for t, joint in enumerate(record["actions"]):
            numbers = [pushes(a) if record["continuous"] else a for a in joint.values()]
            state, reward, observation, _ = step(state, jnp.asarray(numbers))
            recorded = np.array(list(record["obs"][t].values()))
            np.testing.assert_allclose(
                np.array(state.agents), [body(row[:4]) for row in recorded], atol=ROUNDING
            )
            np.testing.assert_allclose(reward, list(record["reward"][t].values()), atol=ROUNDING)
            assert not recorded[:, 14:].any()  # words of agents that never speak
            clipped = np.clip(recorded[:, :14], -4, 4)
            np.testing.assert_allclose(2 * observation, clipped, atol=ROUNDING)
    assert record["truncated"] == [False] * (SPREAD.horizon - 1) + [True]


def _step(task: Any, state: Any, action: jax.Array, params: Any) -> tuple[Any, ...]:
    after = task.transition(state, action, None, params)
    reward = task.reward(state, action, after, None, params)
    return after, reward, task.observation(after, None, params), task.info(after, params)


def spread_by_loops(
    places: np.ndarray, velocities: np.ndarray, landmarks: np.ndarray, moves: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return places, velocities and rewards of many episodes after a step.

    Shapes are ``(episodes, 3, 2)``, moves and rewards ``(episodes, 3)``.
    """
    force = 5 * np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]])[moves].astype(float)
    for i in range(3):
        for j in range(3):
            if i != j:
                line = places[:, i] - places[:, j]
                gap = np.linalg.norm(line, axis=-1, keepdims=True)
                force[:, i] += 100 * line / gap * np.logaddexp(0, (0.3 - gap) / 1e-3) * 1e-3
    places = places + 0.1 * velocities
    velocities = 0.75 * velocities + 0.1 * force
    ways = np.linalg.norm(places[:, :, None] - landmarks[:, None], axis=-1)
    gaps = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
    touches = (gaps < 0.3).sum(2) - 1
    return places, velocities, -0.5 * ways.min(1).sum(1)[:, None] - 0.5 * touches


def test_spread_by_loops_over_a_thousand_episodes() -> None:
    """Sampled episodes with random moves, all of them beside a model in NumPy."""
    task = SPREAD.build(dtype="float64")
    count = 1000
    moves = np.random.default_rng(1).integers(0, 5, (SPREAD.horizon, count, 3))
    with precision(task):
        keys = jax.random.split(jax.random.key(0), count)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, 0)
        state = jax.jit(jax.vmap(task.initial))(keys, params)
        step = jax.jit(jax.vmap(lambda *args: _step(task, *args)))
        bodies = np.array(state.agents)
        places, velocities = bodies[:, :2].transpose(2, 0, 1), bodies[:, 2:].transpose(2, 0, 1)
        landmarks = np.array(params.landmarks).transpose(2, 0, 1)
        touched = 0
        for joint in moves:
            state, reward, observation, info = step(state, jnp.asarray(joint), params)
            places, velocities, expected = spread_by_loops(places, velocities, landmarks, joint)
            # Contacts amplify the rounding of what came before, so far by less than a million.
            np.testing.assert_allclose(reward, expected, atol=1e-8)
            np.testing.assert_allclose(
                np.array(state.agents), np.concatenate([places, velocities], -1).transpose(1, 2, 0),
                atol=1e-8,
            )  # fmt: skip
            ways = np.linalg.norm(places[:, :, None] - landmarks[:, None], axis=-1).min(1)
            np.testing.assert_array_equal(info["success"], (ways < 0.15).all(1))
            touched += int(info["touching"].sum())
            assert (np.abs(observation) <= 2).all()
    assert touched > 1000


def test_spread_scores_are_a_third_of_the_sums_of_mpe2() -> None:
    """Measured in MPE2: 400 episodes of random moves, and agents that stay at 6,000 starts.

    The tolerances are three standard errors; touching at the start costs the still ones 0.3 more.
    """
    scores = SPREAD.scores()
    assert 3 * scores["random"].mean == pytest.approx(-80.5, abs=4.5)
    assert 3 * scores["noop"].mean == pytest.approx(-72.9, abs=1.9)
    assert 3 * scores["reference"].mean > -25.0, "worse than a greedy assignment"


def test_shared_out_landmarks_have_the_shortest_ways() -> None:
    """The assignment against a search over all of them, with complex numbers."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        agents, landmarks = rng.uniform(-1, 1, (2, 3, 2))
        bodies = [Body(x, y, 0.0, 0.0) for x, y in agents]
        goals = spread.assign(bodies, [Point(x, y) for x, y in landmarks])
        total = sum(abs(complex(g.x - x, g.y - y)) for g, (x, y) in zip(goals, agents, strict=True))
        a, b = agents @ [1, 1j], landmarks @ [1, 1j]
        orders = ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])
        assert total == pytest.approx(min(abs(a - b[order]).sum() for order in orders), abs=1e-5)


@pytest.mark.parametrize("actions", ["discrete", "continuous"])
def test_reference_covers_the_landmarks(actions: str) -> None:
    task = card("Spread-v0", actions=actions).build()
    record = play(task, reference_player(task), range(256))
    assert record.info["success"].mean() > 0.95
    assert record.total.mean() > -7.6


# -- speaker and listener --------------------------------------------------------------------------


def test_speaker_and_listener_are_those_of_mpe2() -> None:
    """Every reward and observation of a recorded episode; colours .65 and .15 are 1 and 0 here."""
    task = SPEAKER_LISTENER.build(dtype="float64")
    (record,) = (record for record in RECORDS["speaker_listener"] if not record["continuous"])
    start = record["start"]
    goal = int(start["agents"]["speaker_0"]["goal_b"].removeprefix("landmark "))
    params = speaker_listener.Params(points(start), np.int32(goal))
    state = speaker_listener.State(start_bodies(start)[1], np.int32(-1))
    with precision(task):
        step = jax.jit(lambda state, action: _step(task, state, action, params))
        for t, joint in enumerate(record["actions"]):
            action = jnp.asarray([joint["speaker_0"], joint["listener_0"]])
            state, reward, observation, _ = step(state, action)
            np.testing.assert_allclose(reward, list(record["reward"][t].values()), atol=2e-5)
            recorded = record["obs"][t]
            speaker, listener = np.asarray(observation)
            colours = np.array(recorded["speaker_0"])
            np.testing.assert_allclose(speaker[:3], (colours - 0.15) / 0.5, atol=ROUNDING)
            scaled = listener[3:] * np.array([2.0] * 8 + [1.0] * 3)
            np.testing.assert_allclose(scaled, recorded["listener_0"], atol=ROUNDING)
            assert not speaker[3:].any()
            assert not listener[:3].any()


def test_listener_by_loops_over_a_thousand_episodes() -> None:
    task = SPEAKER_LISTENER.build(dtype="float64")
    count = 1000
    rng = np.random.default_rng(2)
    words, moves = rng.integers(0, [[[3]], [[5]]], (2, SPEAKER_LISTENER.horizon, count))
    directions = np.array([0, -1, 1, -1j, 1j])
    with precision(task):
        keys = jax.random.split(jax.random.key(0), count)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, 1)
        state = jax.jit(jax.vmap(task.initial))(keys, params)
        step = jax.jit(jax.vmap(lambda *args: _step(task, *args)))
        goal = np.asarray(params.goal)
        assert set(goal.tolist()) == {0, 1, 2}
        x, y = np.array(params.landmarks).transpose(1, 0, 2)
        target = (x + 1j * y)[goal, np.arange(count)]
        place = np.asarray(state.listener.x) + 1j * np.asarray(state.listener.y)
        velocity = 0 * place
        for word, move in zip(words, moves, strict=True):
            state, reward, observation, info = step(state, jnp.stack([word, move], 1), params)
            place, velocity = place + 0.1 * velocity, 0.75 * velocity + 0.5 * directions[move]
            expected = -(abs(place - target) ** 2)
            np.testing.assert_allclose(reward, np.stack([expected, expected], 1), atol=1e-12)
            np.testing.assert_array_equal(np.asarray(observation)[:, 1, 11:], np.eye(3)[word])
            np.testing.assert_array_equal(info["success"], abs(place - target) < 0.115)


def test_listener_needs_the_word() -> None:
    """A listener that hears always the same word reaches the landmark a third as often."""
    task = SPEAKER_LISTENER.build()
    player = reference_player(task)
    record = play(task, player, range(512))
    assert record.info["success"].mean() > 0.95
    deaf = play(task, SaysRed(player), range(512))
    assert deaf.info["success"].mean() < 0.45


class SaysRed(NamedTuple):
    """The reference with a speaker that always says word 0."""

    player: Any

    def initial(self, params: Any) -> Any:
        return self.player.initial(params)

    def act(self, memory: Any, view: Any, key: jax.Array) -> tuple[jax.Array, Any]:
        action, memory = self.player.act(memory, view, key)
        return action.at[0].set(0), memory


def test_a_speaker_has_three_words() -> None:
    task = SPEAKER_LISTENER.build()
    mask = np.asarray(task.action_mask(None, None))
    assert mask.tolist() == [True] * 3 + [False] * 2 + [True] * 5


# -- both ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task_card", [SPREAD, SPEAKER_LISTENER], ids=lambda c: c.name)
def test_landmarks_of_the_splits_never_meet(task_card: Any) -> None:
    """Twenty stripes of 0.1 m belong to train and test in turn."""
    task = task_card.build()
    for split in (0, 1):
        stripes = stripes_in_use(task, split, "landmarks", edge=1.0)
        assert stripes == set(range(split, 20, 2))


def test_words_of_agents() -> None:
    task = SPREAD.build()
    assert task.parse("up, stay left", None, None).tolist() == [4, 0, 1]
    assert task.spell(np.array([4, 0, 1]), None, None) == "up stay left"
    with pytest.raises(ValueError, match="expected 3 words"):
        task.parse("up", None, None)
    with pytest.raises(ValueError, match="up"):
        task.parse("upp stay left", None, None)
    pair = SPEAKER_LISTENER.build()
    assert pair.parse("Green down", None, None).tolist() == [1, 3]
    assert pair.spell(np.array([1, 3]), None, None) == "green down"
    with pytest.raises(ValueError, match="blue, green, red"):
        pair.parse("purple down", None, None)

"""Wishes of a passenger, with words read back, odds counted, and rewards recomputed from poses."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.record import Record
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.tasks.highway import (
    ACTIONS,
    FASTER,
    IDLE,
    LANE_LEFT,
    LANE_RIGHT,
    SLOWER,
)
from rlbench_suite.envs.driving.tasks.language_driving import NONE, NUM_WORDINGS, PATIENCE, sentence

pytestmark = pytest.mark.of_variants
MILE = 1609.344


def read(words: str) -> tuple[int, float]:
    """Read a sentence as a passenger means it.

    Returns the lane counted from the right, and the speed in m/s; -1 for none.
    """
    lane, speed = NONE, float(NONE)
    if match := re.search(r"lane (\d)", words):
        lane = int(match[1])
    elif match := re.search(r"(first|second|third|fourth) lane from the (right|left)", words):
        number = ["first", "second", "third", "fourth"].index(match[1])
        lane = number if match[2] == "right" else 3 - number
    if match := re.search(r"drive (\d+) (m/s|km/h|mph)", words):
        speed = int(match[1]) * {"m/s": 1.0, "km/h": 1 / 3.6, "mph": MILE / 3600}[match[2]]
    return lane, speed


@pytest.mark.parametrize("wording", range(NUM_WORDINGS))
def test_words_say_what_is_wanted(wording: int):
    for lane in range(NONE, 4):
        for level in range(NONE, 4):
            if lane == level == NONE:
                continue
            speed = NONE if level == NONE else 10 + 5 * level
            # Of whole mph.
            assert read(sentence(lane, level, wording)) == (lane, pytest.approx(speed, abs=0.25))


def test_no_wish_is_for_what_is_kept_and_all_are_as_likely_as_stated():
    task = card("LanguageDriving-v0").build()
    params = task.sample_params(jax.random.key(0), jnp.int32(0))
    state = task.initial(jax.random.key(1), params)
    numbers = jax.random.uniform(jax.random.key(2), (20_000, 4))
    wishes = jax.jit(jax.vmap(task._wish, (None, 0)))
    for lane, level in ((0, 0), (2, 3), (3, 4)):
        road = state.road._replace(
            level=jnp.int32(level),
            traffic=state.road.traffic._replace(target=state.road.traffic.target.at[0].set(lane)),
        )
        wish = wishes(state._replace(road=road), numbers)
        lanes, levels = np.asarray(wish.lane), np.asarray(wish.level)
        assert not (lanes == lane).any()
        assert not (levels == level).any()
        assert not ((lanes == NONE) & (levels == NONE)).any()
        assert np.mean(levels == NONE) == pytest.approx(0.4, abs=0.015)  # four standard errors
        assert np.mean(lanes == NONE) == pytest.approx(0.3, abs=0.015)
        for values, all_of in ((lanes, set(range(4)) - {lane}), (levels, set(range(4)) - {level})):
            stated = values[values != NONE]
            for value in all_of:
                assert np.mean(stated == value) == pytest.approx(1 / len(all_of), abs=0.02)


class Obeys(NamedTuple):
    """The reference player until some step, and FASTER from there on."""

    player: Any
    until: Any = np.inf

    def initial(self, params: Any) -> jax.Array:
        return jnp.float32(0)

    def act(self, step: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        action, _ = self.player.act((), view, key)
        return jnp.where(step < self.until, action, FASTER), step + 1


def play_reference(seeds: range, until: float = np.inf) -> Record:
    """Play the reference player until some step."""
    task = card("LanguageDriving-v0").build()
    return play(task, Obeys(reference_player(task), jnp.float32(until)), seeds)


def wild_moves(
    view: dict[str, Any], wanted_lane: int, wanted_speed: float, rng: np.random.Generator
) -> int:
    """Return a move towards the wish that looks at no other vehicle."""
    target, level = round(3 * view["target_lane"].item()), round(4 * view["speed_to_keep"].item())
    aside = np.sign(wanted_lane - target) if wanted_lane != NONE else 0
    faster = np.sign(round((wanted_speed - 10) / 5) - level) if wanted_speed != NONE else 0
    moves = []
    if aside != 0:
        moves.append(LANE_LEFT if aside > 0 else LANE_RIGHT)
    if faster != 0:
        moves.append(FASTER if faster > 0 else SLOWER)
    return int(rng.choice(moves)) if moves else IDLE


def test_rewards_and_success_are_those_of_poses_and_words():
    """Play the reference, one that obeys for 30 s, and a wild player.

    Each second is judged from pose and words alone.
    """
    env = gymnasium.make("rlsuite/LanguageDriving-v0", split="test")
    text_env = gymnasium.make("rlsuite/LanguageDriving-v0", split="test", view="text")
    name_entries = env.unwrapped.task.named
    rng, wishes, ends = np.random.default_rng(0), set(), set()
    reference = play_reference(range(64))
    for seed, obeys in ((0, 60), (0, 30), (0, 0), (1, 0), (2, 0)):
        observation, _ = env.reset(seed=seed)
        view = name_entries(observation)
        text, _ = text_env.reset(seed=seed)
        paid, obeyed = 0, np.zeros(4, bool)
        for step in range(60):
            wanted_lane, wanted_speed = read(text.split('"')[1])
            wishes.add((wanted_lane, round(wanted_speed)))
            assert view["lane_wanted"] == (wanted_lane != NONE)
            assert view["speed_wanted"] == (wanted_speed != NONE)
            assert view["patience"] == pytest.approx(1 - step % 15 / 15)
            assert view["earned"] == pytest.approx(paid / 60)
            wild = IDLE if obeys else wild_moves(view, wanted_lane, wanted_speed, rng)
            action = int(reference.actions[seed, step]) if step < obeys else wild
            observation, reward, crashed, _, info = env.step(action)
            view = name_entries(observation)
            text, *_ = text_env.step(ACTIONS[action])
            assert "You are to" not in text  # one gives orders, the passenger
            if crashed:
                assert reward == -paid
                break
            lane = NONE - 1 if view["changing"] else round(3 * view["target_lane"].item())
            in_lane = wanted_lane in (NONE, lane)
            exact_speed = 10 + 5 * round((wanted_speed - 10) / 5)  # words round it
            at_speed = wanted_speed == NONE or abs(40 * view["speed"] - exact_speed) <= 2
            assert reward == float(in_lane and at_speed)
            paid += int(reward)
            obeyed[step // PATIENCE] |= reward > 0
        assert info["success"] == (obeyed.all() and not crashed)
        assert (info["obeyed"], info["wishes"]) == (paid, obeyed.sum())
        ends.add((bool(crashed), bool(info["success"])))
    assert ends == {(True, False), (False, True), (False, False)}
    assert len(wishes) > 5


def test_the_reference_obeys():
    best = play_reference(range(64))
    assert best.total.mean() > 40  # of 60; calibration says 47, and a standard error is 1
    assert best.info["success"].mean() > 0.75
    assert best.cost.mean() < card("LanguageDriving-v0").constraint.limit
    np.testing.assert_array_equal(best.total, np.where(best.terminated, 0, best.info["obeyed"]))


def test_a_crash_takes_back_exactly_all():
    crashing = play_reference(range(64), 50)
    assert crashing.terminated.sum() > 5
    assert crashing.info["obeyed"][crashing.terminated].max() > 35
    assert not crashing.total[crashing.terminated].any()
    assert crashing.total[~crashing.terminated].all()


@pytest.mark.parametrize(("obeyed", "loss"), [(0, 0), (41, 41), (59, 59), (150, 60)])
def test_spaces_hold_all_that_a_crash_takes_back(obeyed: int, loss: int):
    """The last case is an episode with a longer time limit."""
    task = card("LanguageDriving-v0").build()
    params = task.sample_params(jax.random.key(0), jnp.int32(0))
    state = task.initial(jax.random.key(1), params)._replace(obeyed=jnp.int32(obeyed))
    next_state = state._replace(road=state.road._replace(crashed=jnp.bool_(True)))
    reward = np.asarray(task.reward(state, jnp.int32(IDLE), next_state, jax.random.key(2), params))
    assert reward == -loss
    assert task.reward_space.contains(reward)
    observation = np.asarray(task.observation(state, jax.random.key(2), params))
    assert task.named(observation)["earned"] == pytest.approx(loss / 60)
    assert task.observation_space.contains(observation)


def test_a_driver_who_drives_on_earns_nothing():
    envs = gymnasium.make_vec("rlsuite/LanguageDriving-v0", 32, split="test")
    envs.reset(seed=0)
    for _ in range(60):
        assert not envs.step(np.full(32, IDLE))[1].any()
    assert card("LanguageDriving-v0").horizon % PATIENCE == 0  # the last wish has its whole time

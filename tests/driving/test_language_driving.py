"""Wishes of a passenger: their words read back, their odds counted, and rewards recomputed from poses."""

from __future__ import annotations

import re

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.envs.driving.highway import IDLE
from rlbench_suite.envs.driving.language_driving import NONE, PATIENCE, WORDINGS, sentence
from rlbench_suite.registry import card

pytestmark = pytest.mark.of_variants
MILE = 1609.344


def read(words: str) -> tuple[int, float]:
    """Read a sentence as a passenger means it: the lane counted from the right, the speed in m/s; -1 for none."""
    lane, speed = NONE, float(NONE)
    if found := re.search(r"lane (\d)", words):
        lane = int(found[1])
    elif found := re.search(r"(first|second|third|fourth) lane from the (right|left)", words):
        number = ["first", "second", "third", "fourth"].index(found[1])
        lane = number if found[2] == "right" else 3 - number
    if found := re.search(r"drive (\d+) (m/s|km/h|mph)", words):
        speed = int(found[1]) * {"m/s": 1.0, "km/h": 1 / 3.6, "mph": MILE / 3600}[found[2]]
    return lane, speed


@pytest.mark.parametrize("wording", range(WORDINGS))
def test_words_say_what_is_wanted(wording: int):
    for lane in range(NONE, 4):
        for level in range(NONE, 4):
            if lane == level == NONE:
                continue
            wanted = NONE if level == NONE else 10 + 5 * level
            assert read(sentence(lane, level, wording)) == (lane, pytest.approx(wanted, abs=0.25))  # of whole mph


def test_no_wish_holds_already_and_all_are_as_likely_as_stated():
    task = card("LanguageDriving-v0").build()
    params = task.sample_params(jax.random.key(0), jnp.int32(0))
    begun = task.initial(jax.random.key(1), params)
    numbers = jax.random.uniform(jax.random.key(2), (20_000, 4))
    wishes = jax.jit(jax.vmap(task._wish, (None, 0)))
    for lane, level in ((0, 0), (2, 3), (3, 4)):
        road = begun.road._replace(
            level=jnp.int32(level),
            traffic=begun.road.traffic._replace(target=begun.road.traffic.target.at[0].set(lane)),
        )
        wish = wishes(begun._replace(road=road), numbers)
        lanes, levels = np.asarray(wish.lane), np.asarray(wish.level)
        assert not (lanes == lane).any()
        assert not (levels == level).any()
        assert not ((lanes == NONE) & (levels == NONE)).any()
        assert np.mean(levels == NONE) == pytest.approx(0.4, abs=0.015)  # four standard errors
        assert np.mean(lanes == NONE) == pytest.approx(0.3, abs=0.015)
        for values, all_of in ((lanes, set(range(4)) - {lane}), (levels, set(range(4)) - {level})):
            named = values[values != NONE]
            for value in all_of:
                assert np.mean(named == value) == pytest.approx(1 / len(all_of), abs=0.02)


def test_rewards_are_those_of_poses_and_words():
    """Play the reference player, and judge each second from the observed pose and the words alone."""
    env = gymnasium.make("rlsuite/LanguageDriving-v0", split="test", difficulty="easy")
    told = gymnasium.make("rlsuite/LanguageDriving-v0", split="test", difficulty="easy", view="text")
    rng, paid, wishes = np.random.default_rng(0), 0.0, set()
    for seed in range(3):
        seen, _ = env.reset(seed=seed)
        text, _ = told.reset(seed=seed)
        for step in range(60):
            wanted_lane, wanted_speed = read(text.split('"')[1])
            wishes.add((wanted_lane, round(wanted_speed)))
            assert (seen[0] > 0, seen[2] > 0) == (wanted_lane != NONE, wanted_speed != NONE)
            assert seen[4] == pytest.approx(1 - step % 15 / 15)
            target, level = round(3 * seen[5 + 6]), round(4 * seen[5 + 5])
            aside = np.sign(wanted_lane - target) if wanted_lane != NONE else 0
            faster = np.sign(round((wanted_speed - 10) / 5) - level) if wanted_speed != NONE else 0
            moves = [
                *([0] if aside > 0 else [2] if aside < 0 else []),
                *([3] if faster > 0 else [4] if faster < 0 else []),
            ]
            action = int(rng.choice(moves)) if moves else 1
            seen, reward, over, *_ = env.step(action)
            text, *_ = told.step(("LANE_LEFT", "IDLE", "LANE_RIGHT", "FASTER", "SLOWER")[action])
            if over:
                assert reward <= 0
                break
            lane = seen[5 + 6] * 3 if not seen[5 + 7] else NONE - 1
            in_lane = wanted_lane == NONE or round(lane) == wanted_lane
            at_speed = wanted_speed == NONE or abs(40 * seen[5] - (10 + 5 * round((wanted_speed - 10) / 5))) <= 2
            assert reward == float(in_lane and at_speed)
            paid += reward
    assert paid > 20
    assert len(wishes) > 5


def test_a_driver_who_drives_on_earns_nothing():
    envs = gymnasium.make_vec("rlsuite/LanguageDriving-v0", 32, split="test")
    envs.reset(seed=0)
    for _ in range(60):
        assert not envs.step(np.full(32, IDLE))[1].any()
    assert card("LanguageDriving-v0").horizon % PATIENCE == 0  # the last wish has its whole time

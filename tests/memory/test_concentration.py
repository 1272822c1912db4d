"""Concentration against a plain account of its rules.

Its optimum is compared with a published formula and with enumeration.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.memory.concentration import min_misses

pytestmark = pytest.mark.of_variants


@pytest.mark.parametrize("pairs", [4, 8, 12, 50])
def test_the_optimum_is_that_of_velleman_and_warrington(pairs: int) -> None:
    """The expected number of turns is (3 - 2 ln 2) n + 7/8 - 2 ln 2.

    The error of this formula vanishes for many pairs.
    """
    published = (3 - 2 * math.log(2)) * pairs + 7 / 8 - 2 * math.log(2)
    assert min_misses(2 * pairs, 0) + pairs == pytest.approx(published, abs=0.1 / pairs)


@pytest.mark.parametrize("pairs", [2, 3])
def test_no_player_misses_less_than_the_optimum(pairs: int) -> None:
    """All strategies, over all layouts that agree with what was seen."""
    layouts = tuple(set(itertools.permutations([number // 2 for number in range(2 * pairs)])))

    @cache
    def min_turns_after(
        layouts: tuple[tuple[int, ...], ...], revealed: frozenset[int], paired: frozenset[int]
    ) -> float:
        free = [number for number in range(2 * pairs) if number not in paired]
        if not free:
            return 0.0
        return min(turns_after_first_card(layouts, revealed, paired, first) for first in free)

    def turns_after_first_card(
        layouts: Any, revealed: frozenset[int], paired: frozenset[int], first: int
    ) -> float:
        total = 0.0
        for picture in {layout[first] for layout in layouts}:
            left = tuple(layout for layout in layouts if layout[first] == picture)
            free = [
                number for number in range(2 * pairs) if number not in paired and number != first
            ]
            total += (
                len(left)
                / len(layouts)
                * min(
                    turns_after_second_card(left, revealed | {first}, paired, first, n)
                    for n in free
                )
            )
        return total

    def turns_after_second_card(
        layouts: Any, revealed: frozenset[int], paired: frozenset[int], first: int, second: int
    ) -> float:
        total = 0.0
        for picture in {layout[second] for layout in layouts}:
            left = tuple(layout for layout in layouts if layout[second] == picture)
            pair = left[0][first] == picture
            now = paired | {first, second} if pair else paired
            if pair or second not in revealed or len(revealed) < 2 * pairs:
                repeats = not pair and left == layouts and second in revealed and first in revealed
                value = (
                    math.inf
                    if repeats
                    else (not pair) + min_turns_after(left, revealed | {second}, now)
                )
                total += len(left) / len(layouts) * value
        return total

    assert min_turns_after(layouts, frozenset(), frozenset()) == pytest.approx(
        min_misses(2 * pairs, 0), abs=1e-12
    )


def test_the_reference_reaches_the_optimum_and_the_card_states_it() -> None:
    task: Any = card("Concentration-v0").build()
    record = play(task, load(task.card.reference).for_task(task), range(800))
    assert record.terminated.all()
    assert task.card.optimum == pytest.approx(task.optimum, abs=1e-12)
    assert abs(record.total.mean() - task.optimum) <= 4 * record.total.std() / 800**0.5


def test_turns_are_those_of_the_rules() -> None:
    env: Any = gymnasium.make("rlsuite/Concentration-v0", difficulty=3)
    rng = np.random.default_rng(0)
    ended = 0
    for seed in range(6):
        observation, info = env.reset(seed=seed)
        layout = env.unwrapped.episode.state.layout.tolist()
        assert sorted(layout) == [0, 0, 1, 1, 2, 2]
        paired: set[int] = set()
        first, last, over, misses = -1, (), False, 0
        while not over:
            faces = [layout[n] if n in paired or n in (first, *last) else 3 for n in range(6)]
            assert observation.reshape(6, 4).argmax(1).tolist() == faces
            assert info["action_mask"].tolist() == [
                n not in paired and n != first for n in range(6)
            ]
            action = int(rng.integers(6))
            observation, reward, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            if action in paired or action == first:
                assert (reward, info["invalid_action"]) == (0, True)
            elif first < 0:
                assert reward == 0
                first, last = action, ()
            else:
                pair = layout[first] == layout[action]
                assert reward == pytest.approx(1 if pair else -1 / 3)
                paired |= {first, action} if pair else set()
                last = () if pair else (first, action)
                first, misses = -1, misses + (not pair)
            assert (info["pairs"], info["misses"]) == (len(paired) // 2, misses)
        ended += terminated
        assert terminated == (len(paired) == 6)
        assert info["success"] == (terminated and misses < 3)
    assert ended

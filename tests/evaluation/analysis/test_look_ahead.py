"""The greedy player that tries each choice in a copy of the state."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from look_ahead import LookAhead, play

from rlbench_suite.core.episode import ContextSource, begin, scalar_return, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card

SUDOKU: Any = card("Sudoku4-v0").build()


def test_it_takes_the_legal_choice_with_the_largest_reward() -> None:
    episode, step = begin(SUDOKU, seed_key(3), np.int32(0), ContextSource.parse("train", SUDOKU))
    mask = np.array(step.info["action_mask"])
    key = jax.random.key(0)

    def reward(action: int) -> float:
        next_state = SUDOKU.transition(episode.state, np.int32(action), key, episode.params)
        return float(
            scalar_return(
                SUDOKU,
                SUDOKU.reward(episode.state, np.int32(action), next_state, key, episode.params),
            )
        )

    rewards = np.array([reward(action) for action in range(len(mask))])
    best = np.flatnonzero(mask & (rewards == rewards[mask].max()))
    assert len(best) < len(mask)
    view = View(step.observation, mask, episode.state, episode.params)
    for ties, expected in (("first", best[:1]), ("last", best[-1:]), ("random", best)):
        action, _ = LookAhead.for_task(SUDOKU, ties).act((), view, key)
        assert int(action) in expected


def test_it_plays_whole_episodes() -> None:
    greedy, random_ties = play(
        SUDOKU, [LookAhead.for_task(SUDOKU, ties) for ties in ("first", "random")], 0, "train"
    )
    assert greedy.total.shape == (256,)
    assert not np.array_equal(greedy.total, random_ties.total)


def test_what_it_cannot_play_is_refused() -> None:
    with pytest.raises(ValueError, match="not one choice of one agent"):
        LookAhead.for_task(card("PMSMCurrent-v0").build(), "first")

"""The scale of scores: which player is 0, and how exactly 0 and 1 are known."""

import numpy as np
import pytest

from rlbench_suite.core.scale import Scale, Score
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.analysis.calibration import MAX_ERROR, too_uncertain


def score(mean: float, half_width: float = 0.0) -> Score:
    return Score(mean, mean - half_width, mean + half_width, 100)


def test_zero_is_the_better_of_random_and_idle_play() -> None:
    """Random play that harms itself is not 0.

    Doing nothing earns 70 of the 80 from 10 to 80 for nothing.
    """
    idle = Scale.of({"random": score(-100), "noop": score(70), "reference": score(80)})
    assert idle is not None
    assert (idle.zero_player, idle.zero_name) == ("noop", "doing nothing")
    assert idle.score(np.array([70.0, 75.0, 80.0, -100.0])).tolist() == [0, 0.5, 1, -17]
    chance = Scale.of({"random": score(10), "noop": score(0), "reference": score(20)})
    assert chance is not None
    assert chance.zero_player == "random"
    assert Scale.of({"noop": score(0), "reference": score(1)}) is None


def test_the_error_of_a_score_is_that_of_both_ends() -> None:
    """Against draws of both ends: the first-order error is right to a few per cent."""
    scale = Scale("noop", score(0, 1.96 * 0.3), score(10, 1.96 * 0.4))
    rng = np.random.default_rng(0)
    zeros = rng.normal(0, 0.3, 200_000)
    references = rng.normal(10, 0.4, 200_000)
    for value in (0.0, 0.5, 1.0, 1.5):
        scores = (10 * value - zeros) / (references - zeros)
        assert scale.standard_error(value) == pytest.approx(scores.std(), rel=0.03)


def test_both_players_at_the_zero_are_measured_well() -> None:
    near = {"random": score(0, 0.2), "noop": score(0.1, 0.2), "reference": score(1, 0.001)}
    assert too_uncertain(near, MAX_ERROR) == ["random", "noop"]
    assert too_uncertain(near | {"random": score(-3, 0.2)}, MAX_ERROR) == ["noop"]
    assert too_uncertain(near | {"reference": score(-1)}, MAX_ERROR) == []


def test_every_difficulty_has_a_scale(card: TaskCard) -> None:
    """No player without skill scores above 0, and success is measured for all three players."""
    for tier in card.difficulties or (None,):
        scores = card.scores(tier)
        scale = card.scale(tier)
        assert all(scale.score(scores[player].mean) <= 0 for player in ("random", "noop")), tier
        assert scale.score(scale.reference.mean) == 1
        assert all(
            scores[player].success is not None for player in ("random", "noop", "reference")
        ), tier

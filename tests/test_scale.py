"""The scale of scores: which player is 0, and how exactly 0 and 1 are known."""

import numpy as np
import pytest

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.scale import ZERO_PLAYERS, Scale, Score
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.analysis.calibration import MAX_ERROR, measure, too_uncertain


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


def test_zero_is_a_constant_action_where_that_is_best() -> None:
    """Random orders are absurd, and no orders serve nobody."""
    measured = {"random": score(-100), "noop": score(-150), "reference": score(-20)}
    scale = Scale.of(measured | {"constant": score(-60)})
    assert scale is not None
    assert (scale.zero_player, scale.zero_name) == ("constant", "a constant action")
    assert scale.score(-40) == 0.5
    worse = Scale.of(measured | {"constant": score(-101)})
    assert worse is not None
    assert worse.zero_player == "random"


def test_a_card_measures_a_constant_action_only_where_it_names_one() -> None:
    assert find_card("Inventory-v0").measured_players == (
        "random",
        "noop",
        "constant",
        "reference",
    )
    assert "constant" not in find_card("Execution-v0").measured_players
    assert measure(find_card("Execution-v0").build(), ["constant"], episodes=2) == {}
    zeros = find_card("Inventory-v0").zeros()
    assert {zero.player for zero in zeros.values()} == {"constant"}


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
    """No player without skill scores above 0, and success is measured for all of them."""
    for tier in card.difficulties or (None,):
        scores = card.scores(tier)
        scale = card.scale(tier)
        measured = [player for player in ZERO_PLAYERS if player in card.measured_players]
        assert all(scale.score(scores[player].mean) <= 0 for player in measured), tier
        assert scale.score(scale.reference.mean) == 1
        assert all(scores[player].success is not None for player in (*measured, "reference")), tier

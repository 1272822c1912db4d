"""Labels that cannot be read off, tiers that differ, and questions that ask for a witness."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import tiers

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import Score, TaskCard
from rlbench_suite.evaluation.analysis import calibration
from rlbench_suite.language.dataset import PuzzleDataset
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.language.session import begin

WITH_WITNESS = {
    "HamiltonianPath": "none",
    "HamiltonianCycle": "none",
    "StackPermutation": "impossible",
    "ThresholdSAT": "UNSATISFIABLE",
}
"""Puzzles with the setting ``answers``, and the answer without a proof."""
PUZZLES = [card for card in cards().values() if card.puzzle]


# -- what the answer's kind can be told from -------------------------------------------------------


def test_degrees_do_not_tell_whether_there_is_a_hamiltonian_cycle() -> None:
    """Check that both kinds have the same degrees on average.

    Before they were matched, 1.9 and 2.9 vertices had degree two.
    """
    puzzle = puzzle_of("HamiltonianCycle", "easy")
    narrow: tuple[list[int], list[int]] = ([], [])
    for seed in range(600):
        instance = puzzle.generate(seed, "test")
        degrees = [bits.bit_count() for bits in instance.neighbours.tolist()]
        narrow[instance.solvable].append(degrees.count(2))
    spread = np.sqrt(sum(np.var(counts) / len(counts) for counts in narrow))
    assert abs(fmean(narrow[0]) - fmean(narrow[1])) < 3.5 * spread


def test_all_answers_of_knights_and_knaves_are_as_frequent() -> None:
    puzzle = puzzle_of("KnightsAndKnaves", "easy")
    answers = Counter(puzzle.solve(puzzle.generate(seed, "test")) for seed in range(64))
    assert sorted(answers.values()) == [4] * 16


def test_stored_moves_of_tic_tac_toe_do_not_gather_on_one_cell() -> None:
    puzzle = puzzle_of("TicTacToe", "easy")
    answers = Counter(puzzle.solve(puzzle.generate(seed, "train")) for seed in range(600))
    assert len(answers) == 16
    assert max(answers.values()) < 0.11 * 600, "with the first of the best moves, it was 0.15"


@pytest.mark.parametrize("tier", ["medium", "hard"])
def test_the_rule_of_thumb_never_finds_a_best_order_of_cars(tier: str) -> None:
    puzzle = puzzle_of("CarPainting", tier)
    instances = [puzzle.generate(seed, "test") for seed in range(50)]
    assert not any(puzzle.verify(each, puzzle.heuristic(each)).optimal for each in instances)


@pytest.mark.parametrize("tier", ["medium", "hard"])
def test_neighbours_alone_never_show_that_an_order_is_impossible(tier: str) -> None:
    puzzle = puzzle_of("StackPermutation", tier)
    assert all(
        puzzle.heuristic(puzzle.generate(seed, "test")) != "impossible" for seed in range(100)
    )


# -- witnesses -------------------------------------------------------------------------------------


def test_these_puzzles_can_ask_for_a_witness() -> None:
    assert {puzzle_of(card.id).name for card in PUZZLES if card.solvable} == WITH_WITNESS.keys()


@pytest.mark.parametrize("name", WITH_WITNESS)
def test_solvable_instances_only(name: str) -> None:
    """The answer without a proof, half of all answers otherwise, earns nothing."""
    data = PuzzleDataset(
        f"{find_card(name).id}?answers=solvable", split="test", size=20, difficulty="easy"
    )
    empty = WITH_WITNESS[name]
    for row in data:
        assert row["answer"] != empty
        assert f" {empty}" not in row["question"]
        assert f">{empty}<" not in row["question"]
        assert row["metadata"]["id"].endswith("?answers=solvable")
        assert data.score_answer(f"<answer>{row['answer']}</answer>", row) == 1
        assert data.score_answer(f"<answer>{empty}</answer>", row) == 0
    plain = puzzle_of(name, "easy")
    assert Counter(plain.solve(plain.generate(seed, "test")) == empty for seed in range(20)) == {
        True: 10,
        False: 10,
    }
    assert begin(data.id, seed=0, split="test", difficulty="easy").opening == data[0]["question"]


def test_the_interactive_form_of_threshold_sat_is_solvable_too() -> None:
    task = find_card("ThresholdSAT", answers="solvable").build(difficulty="easy")
    assert task.puzzle.name == "ThresholdSAT, solvable"  # type: ignore[attr-defined]


def test_a_value_of_answers_that_is_not_allowed() -> None:
    with pytest.raises(ValueError, match="Did you mean 'solvable'"):
        find_card("HamiltonianPath", answers="solved")


# -- tiers -----------------------------------------------------------------------------------------


def test_auc() -> None:
    assert tiers.auc(np.array([1, 2]), np.array([3, 4])) == 1
    assert tiers.auc(np.array([3, 4]), np.array([1, 2])) == 0
    assert tiers.auc(np.array([1, 2]), np.array([1, 2])) == 0.5
    assert tiers.auc(np.array([0, 0, 1]), np.array([0, 1])) == pytest.approx(
        (0.5 + 0.5 + 1 + 1 + 0 + 0.5) / 6
    )


def test_what_it_means_that_a_score_falls() -> None:
    def scores(*means: float) -> list[Score]:
        return [Score(mean, mean - 0.03, mean + 0.03, 1000) for mean in means]

    assert tiers.falls(scores(0.9, 0.5, 0.5))
    assert tiers.falls(scores(0.01, 0.02, 0.04)), "next to nothing at all tiers"
    assert not tiers.falls(scores(0.89, 0.92, 0.93))
    assert not tiers.falls(scores(0.64, 0.18, 0.25)), "it rises again"
    assert not tiers.falls(scores(0.86, 0.85, 0.84))


@pytest.mark.parametrize("posed", PUZZLES, ids=lambda card: card.name)
def test_a_rule_of_thumb_scores_less_at_harder_tiers_or_the_page_says_why_not(
    posed: TaskCard,
) -> None:
    scores = [posed.one_shot_scores(tier)["heuristic"] for tier in tiers.TIERS]
    assert tiers.falls(scores) or puzzle_of(posed.id).name in tiers.REASONS


def test_reasons_are_about_puzzles() -> None:
    assert tiers.REASONS.keys() <= {puzzle_of(card.id).name for card in PUZZLES}


# -- scores of classifiers -------------------------------------------------------------------------


def test_calibration_keeps_the_scores_of_classifiers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaskCard, "scores_path", lambda self, file: tmp_path / file)
    low_score = Score(0.5, 0.4, 0.6, 10)
    high_score = Score(0.7, 0.6, 0.8, 10)
    card = find_card("Sudoku-v0")
    calibration.write_scores(card, "easy", {"kind": low_score, "guess": low_score}, "scores.json")
    calibration.write_scores(card, "easy", {"guess": high_score}, "scores.json")
    written = json.loads((tmp_path / "scores.json").read_text())[card.id]["easy"]
    assert {player: score["mean"] for player, score in written.items()} == {
        "kind": 0.5,
        "guess": 0.7,
    }

"""Test whether the tiers of each puzzle differ, by exact difficulty and by a rule of thumb's score.

    python benchmarks/audits/tiers.py [--ids A-v0,B-v0] [--count 300]

Columns of the table, for each puzzle:

* ``easy<medium``, ``medium<hard``: probability that an instance of the higher tier has the larger
  exact difficulty (:meth:`Puzzle.difficulty`), ties counted half. This is the AUC of difficulty as
  a classifier of the tier; 0.5 says that the tiers do not differ, 1 that they do not overlap. At
  least 0.75 is asked for.
* ``heuristic``: score of the rule of thumb on the card at the three tiers. It has to fall by more
  than the intervals' width from easy to hard, unless it is at most 0.05 at all tiers.
* ``why not``: the reason, if a condition does not hold.

The command exits with status 1 if a condition does not hold and :data:`REASONS` gives no reason, or
gives one that is not needed.
"""

from __future__ import annotations

import argparse

import numpy as np

from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import Score
from rlbench_suite.language.rows import puzzle_of

TIERS = ("easy", "medium", "hard")
MIN_AUC = 0.75
NEGLIGIBLE_SCORE = 0.05
"""Score of a rule of thumb that cannot fall any further."""

REASONS = {
    "CheckmateInOne": "more pieces mean more legal moves to check, but also more ways to mate",
    "CubeRotation": "only tracking all moves helps, so the rule of thumb stays at chance",
    "Entailment": (
        "some large sets of premises have short proofs; the rule of thumb stays at chance"
    ),
    "HamiltonianCycle": (
        "some large graphs are decided after a few steps, and the rule of thumb is near chance"
    ),
    "HamiltonianPath": "some large graphs are decided after a few steps",
    "SAT50": "decisions vary more between formulas of one size than between neighbouring sizes",
    "ThresholdSAT": (
        "the rule of thumb hardly ever finds a model, so it stays at the half that have none"
    ),
}
"""Name of a puzzle to the reason why its tiers may break a condition."""


def main() -> None:
    """Print a line for each puzzle.

    Exit with status 1 if one breaks a condition without a reason.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ids", help="names of puzzles, separated by commas; all by default")
    parser.add_argument("--count", type=int, default=300, help="test instances of each tier")
    options = parser.parse_args()
    puzzle_cards = sorted(
        (card for card in cards().values() if card.puzzle), key=lambda card: card.name
    )
    selected_names = options.ids.split(",") if options.ids else [card.name for card in puzzle_cards]
    print("| puzzle | easy<medium | medium<hard | heuristic | why not |")
    print("| --- | --- | --- | --- | --- |")
    failed = []
    for card in (card for card in puzzle_cards if card.name in selected_names):
        low, high = separation(card.id, options.count)
        scores = [card.one_shot_scores(tier)["heuristic"] for tier in TIERS]
        fine = min(low, high) >= MIN_AUC and falls(scores)
        reason = REASONS.get(puzzle_of(card.id).name, "")
        if fine == bool(reason):
            failed.append(card.name)
        means = ", ".join(f"{score.mean:.2f}" for score in scores)
        print(f"| {card.name} | {low:.2f} | {high:.2f} | {means} | {reason} |", flush=True)
    if failed:
        raise SystemExit(f"without a reason, or with one that is not needed: {', '.join(failed)}")


def separation(task_id: str, count: int) -> tuple[float, float]:
    """Return the AUC of difficulty between easy and medium, and between medium and hard."""
    easy, medium, hard = (difficulties(task_id, tier, count) for tier in TIERS)
    return auc(easy, medium), auc(medium, hard)


def difficulties(task_id: str, tier: str, count: int) -> np.ndarray:
    """Return the exact difficulties of test instances."""
    puzzle = puzzle_of(task_id, tier)
    return np.array([puzzle.difficulty(puzzle.generate(seed, "test")) for seed in range(count)])


def auc(lower: np.ndarray, higher: np.ndarray) -> float:
    """Return the probability that a draw of ``higher`` exceeds one of ``lower``.

    Equal draws count half.
    """
    difference = higher[:, None] - lower[None]
    return float((difference > 0).mean() + (difference == 0).mean() / 2)


def falls(scores: list[Score]) -> bool:
    """Return whether the tiers are hard for a rule of thumb.

    It must score clearly less at the hard tier than at the easy one, and never more than before, up
    to the intervals; or next to nothing at all tiers.
    """
    easy, medium, hard = scores
    if max(score.mean for score in scores) <= NEGLIGIBLE_SCORE:
        return True
    return hard.high < easy.low and medium.low <= easy.high and hard.low <= medium.high


if __name__ == "__main__":
    main()

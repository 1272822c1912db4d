"""Settings of tasks whose scores were measured, so that evaluations can score them."""

import pytest

from rlbench_suite.core.registry import card


@pytest.mark.parametrize(
    ("task_id", "best_return"),
    [
        # The treasure of 124 by a shortest way of 19 steps, both weighted by a half.
        ("DeepSeaTreasure-v0?map=concave", 52.5),
        ("DeepSeaTreasure-v0?map=mirrored", 52.5),
        # Gold and gem, without a death.
        ("ResourceGathering-v0?map=published", 2),
    ],
)
def test_the_reference_scores_the_optimum(task_id: str, best_return: float) -> None:
    task_card = card(task_id)
    assert task_card.scores()["reference"].mean == best_return
    assert task_card.normalise(best_return) == 1


def test_the_reference_of_plain_fruits_takes_the_best() -> None:
    task_card = card("FruitTree-v0", preference="none")
    for depth in ("easy", "medium"):
        task = task_card.build(difficulty=depth)
        best = float(task.pareto_front(1.0).sum(1).max())
        assert task_card.scores(depth)["reference"].mean == pytest.approx(best, rel=1e-5)


def test_unbreakable_bottles_have_a_scale() -> None:
    assert card("BreakableBottles-v0", bottles="unbreakable").scale().span > 0

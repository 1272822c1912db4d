"""Test the warning of scales on which players without skill are about as good as the reference."""

import json
import math
import os
from pathlib import Path

import pytest
from killing import die_at_call, run_until_killed

from rlbench_suite.core import registry
from rlbench_suite.core.task_card import Score
from rlbench_suite.evaluation.analysis.calibration import remark, write_scores


def score_near(mean: float, half: float) -> Score:
    """Return a score with a symmetric interval."""
    return Score(mean, mean - half, mean + half, 100)


@pytest.mark.parametrize(
    ("random", "noop", "reference", "beginning"),
    [
        ((0, 1), (20, 1), (100, 1), ""),
        ((0, 1), (89, 1), (100, 1), ""),
        ((0, 1), (91, 1), (100, 1), "noop (91) earns about"),  # more than nine tenths of the way
        ((0, 1), (50, 40), (100, 11), "noop (50) earns about"),  # intervals meet: 90 and 89
        ((0, 1), (50, 40), (100, 9), ""),
        ((-100, 1), (-9, 1), (0.5, 0.1), "noop (-9) earns about"),
        ((96, 0.1), (0, 1), (100, 0.1), "random (96) earns about"),  # more than 95 % of the return
        ((94, 0.1), (0, 1), (100, 0.1), ""),
        ((98, 0.1), (99, 0.1), (100, 0.1), "noop (99) and random (98) earn about"),
        ((100, 1), (0, 1), (20, 1), "random (100) earns about"),  # better than the reference
        ((0, 1), (0, 1), (math.nan, math.nan), "noop (0) and random (0) earn about"),
    ],
)
def test_a_reference_that_is_hardly_better_is_told(
    random: tuple[float, float],
    noop: tuple[float, float],
    reference: tuple[float, float],
    beginning: str,
) -> None:
    sentence = remark(
        {
            "random": score_near(*random),
            "noop": score_near(*noop),
            "reference": score_near(*reference),
        }
    )
    assert sentence.startswith(beginning) if beginning else sentence == ""


def test_without_a_reference_nothing_is_told() -> None:
    assert remark({"random": score_near(0, 1), "noop": score_near(0, 1)}) == ""


def test_no_shipped_task_is_told() -> None:
    measured = {
        f"{card.id} {tier or ''}": card.scores(tier)
        for card in registry.cards().values()
        if card.family in registry.families()
        for tier in card.difficulties or (None,)
    }
    assert sum("reference" in scores for scores in measured.values()) > 100
    assert {
        name: sentence
        for name, scores in measured.items()
        if scores and (sentence := remark(scores))
    } == {}


@pytest.mark.filterwarnings("ignore")  # of JAX about forks: the copies do not compute
@pytest.mark.parametrize("call", [1, 2])
def test_scores_are_whole_where_the_program_that_writes_them_is_killed(
    call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, card = tmp_path / "scores.json", registry.card("Vicsek-v0")
    monkeypatch.setattr(type(card), "scores_path", lambda *_: path)
    first, second = ({"random": Score(mean, 0.0, 0.0, 1)} for mean in (1.0, 2.0))
    write_scores(card, None, first)
    before = path.read_bytes()

    def write() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("os.fsync", die_at_call(os.fsync, call))
            write_scores(card, None, second)

    run_until_killed(write)
    if call == 1:
        assert path.read_bytes() == before
    else:
        assert json.loads(path.read_bytes())
    write_scores(card, None, second)
    assert json.loads(path.read_bytes())[card.measured_id]["default"]["random"]["mean"] == 2.0
    assert [file.name for file in tmp_path.iterdir()] == ["scores.json"]

"""Test the benchmark of PPO on random plants.

The reference player scores 1, the better of random and idle play 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ppo_on_random_plants
import pytest
from ppo_on_random_plants import judge_ppo, plants

from rlbench_suite.core.registry import agent

pytestmark = pytest.mark.of_variants


class Feigned:
    """Players that do not learn in the place of PPO."""

    name = "reference"

    def train(self, task: Any, *, seed: int, budget: str) -> Iterator[Any]:
        yield from agent(self.name).train(task, seed=seed, budget=budget)


def test_the_score_is_one_for_the_reference_player_and_zero_for_random_or_idle_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ppo_on_random_plants, "PPO", Feigned)
    monkeypatch.setattr(ppo_on_random_plants, "EPISODES", 16)
    first, second = plants("PermExDc", "Speed", 2, tmp_path)
    assert first.card.id != second.card.id
    assert judge_ppo(first, "smoke") == (pytest.approx(1, abs=0.05), True)
    scores = []
    for name in ("random", "noop"):
        monkeypatch.setattr(Feigned, "name", name)
        scores.append(judge_ppo(first, "smoke")[0])
    assert max(scores) == pytest.approx(0, abs=0.1)
    assert "cost" in capsys.readouterr().out


def test_a_quadcopter_that_cannot_carry_itself_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path / "cache"))
    assert len(list(plants("Quadcopter", "Speed", 20, tmp_path))) == 20
    refusals = capsys.readouterr().out.splitlines()
    assert refusals
    assert all("refused" in line and "weight" in line for line in refusals)

"""Test the suite ``generalisation``.

Agents are evaluated on training contexts, too, and reports tell the gap.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.core import registry
from rlbench_suite.core.policy import reference_player
from rlbench_suite.evaluation.protocol import EPISODES, evaluate, evaluation_seeds
from rlbench_suite.evaluation.report.html_report import write_html
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.terminal_report import print_report
from rlbench_suite.evaluation.runs import runner
from rlbench_suite.evaluation.runs.language_model import LanguageModel
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import read_run
from rlbench_suite.language.chat import Endpoint

TASK = "rlsuite/PMSMCurrent-v0"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave one task in the suite, and few episodes."""
    suites = registry.suites() | {registry.GENERALISATION: (TASK,)}
    monkeypatch.setattr(registry, "suites", lambda: suites)
    monkeypatch.setitem(EPISODES, "smoke", 8)


def run_all(path: Path, agents: str, suite: str, seeds: int = 3) -> OpenRun:
    with OpenRun.open(path, runner.plan(agents, suite, seeds, "smoke")) as run, run.sitting():
        for event in runner.in_process(run):
            assert event.kind != "failed", event.value
        run.merge()
    return run


def test_the_suite_has_the_tasks_whose_contexts_are_split():
    ids = registry.suites()[registry.GENERALISATION]
    assert {"rlsuite/SAT-v0", TASK} <= set(ids) <= set(registry.suites()["all"])
    assert all(registry.card(task).contexts for task in ids)
    assert "rlsuite/DeepSeaTreasure-v0" not in ids  # it has one context


def test_both_splits_are_played_and_reported(small: None, tmp_path: Path):
    run = run_all(tmp_path / "run", "reference,random", registry.GENERALISATION)
    card, task = registry.card(TASK), registry.card(TASK).build()
    scale = card.scale()
    gaps = []
    for seed in range(3):
        result = next(r for r in run.results() if (r.agent, r.seed) == ("reference", seed))
        seeds = evaluation_seeds(task.card, seed, "smoke")
        train = play(task, reference_player(task), seeds, split="train").total.astype(float).mean()
        test = play(task, reference_player(task), seeds).total.astype(float).mean()
        assert train != test
        assert (result.train_return, result.mean_return) == (train, test)
        gaps.append(scale.score(train) - scale.score(test))
    report = Report.of(run)
    gap = next(gap for gap in report.gaps if gap.agent == "reference")
    assert gap.gap.point == pytest.approx(np.mean(gaps), abs=1e-12)
    assert gap.gap.point == pytest.approx(gap.train.point - gap.test.point, abs=1e-12)
    assert gap.gap.low <= gap.gap.point <= gap.gap.high
    stored = pq.read_table(run.path / "train_episodes.parquet")
    assert stored.num_rows == 2 * 3 * 8
    assert stored.schema.equals(pq.read_table(run.path / "episodes.parquet").schema)
    print_report(report, console := Console(width=140, record=True, file=io.StringIO()))
    write_html(report)
    for text in (console.export_text(), (run.path / "report.html").read_text()):
        assert "Generalisation" in text
        assert "train" in text
        assert "gap whose interval has 0 in it" in " ".join(text.split())
    file = run.cell_path(result.cell) / "result.json"
    file.write_text(result.model_copy(update={"train_score": 0.123}).model_dump_json())
    with pytest.raises(ValueError, match=r"its train_score is 0\.123, and its episodes give"):
        read_run(run.path)


def test_policies_of_the_host_are_played_on_the_split_that_is_asked_for():
    task = registry.card(TASK).build()

    class Still:
        def act(self, observations: np.ndarray, masks: object) -> np.ndarray:
            return np.zeros((len(observations), 2), np.float32)

    seeds = evaluation_seeds(task.card, 0, "smoke")[:4]
    train, test = (evaluate(task, Still(), seeds, split=split).total for split in ("train", "test"))
    zeros = np.zeros((4, task.card.horizon, 2), np.float32)
    for split, totals in (("train", train), ("test", test)):
        np.testing.assert_array_equal(totals, replay(task, zeros, seeds, split=split).total)
    assert (train != test).any()


def test_runs_with_and_without_training_contexts_do_not_mix(small: None, tmp_path: Path):
    run_all(tmp_path / "run", "random", TASK, seeds=1)
    with (
        pytest.raises(
            ValueError,
            match=f"the evaluation of {TASK} on training contexts = False, but now it is True",
        ),
        OpenRun.open(tmp_path / "run", runner.plan("random", registry.GENERALISATION, 1, "smoke")),
    ):
        pass
    assert not Report.of(run_all(tmp_path / "run", "random", TASK, seeds=1)).gaps
    model = LanguageModel(endpoint=Endpoint(model="m"))
    with pytest.raises(ValueError, match="A language model does not train here"):
        runner.plan("llm", registry.GENERALISATION, 1, "smoke", None, model)

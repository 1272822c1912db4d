"""Agents that learn sets of policies: fronts that are known, what they refuse, and stored runs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from toy_tasks import EXITS, Exits, SlipperyExits, TwoAims, card_of

from rlbench_suite.baselines.morl import pareto_q
from rlbench_suite.baselines.morl.pareto_q import ParetoQ
from rlbench_suite.baselines.morl.weighted_ppo import WeightedPPO
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.policy import FinitePolicySet, PolicySet
from rlbench_suite.core.registry import card
from rlbench_suite.evaluation import protocol
from rlbench_suite.evaluation.report.html_report import write_html
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.terminal_report import print_report
from rlbench_suite.evaluation.runs import runner
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import read_run
from rlbench_suite.evaluation.statistics.fronts import quality
from rlbench_suite.evaluation.statistics.pareto import hypervolume

TASK = card_of(Exits, **EXITS).build()
REFERENCE = np.array(TASK.card.hypervolume_reference)
REFERENCE_OF_TREASURES = np.array(card("DeepSeaTreasure-v0").hypervolume_reference)


def outcome_of(agent: Any, task: Any) -> protocol.Outcome:
    """Return the outcome of a cell."""
    *_, outcome = protocol.run_cell(agent, task, protocol.resolve_cell(agent, task, 0, "smoke"))
    assert isinstance(outcome, protocol.Outcome)
    return outcome


def test_pareto_q_learns_a_concave_front_whole(tmp_path: Path) -> None:
    agent = ParetoQ(total_steps=200)
    outcome = outcome_of(agent, TASK)
    assert isinstance(outcome.policy, FinitePolicySet)
    assert outcome.front is not None
    assert outcome.front.returns == pytest.approx(TASK.pareto_front())
    assert outcome.front.exact.tolist() == TASK.pareto_front().tolist()
    assert not len(outcome.front.weights)
    # The weights of the card are equal: 1 - 1 = 3 - 3, and the first of equal points is played.
    assert outcome.record.total[0] == pytest.approx([1, -1])
    file = str(tmp_path / "policy.safetensors")
    agent.save(outcome.policy, file)
    loaded = agent.load(file, TASK)
    again = protocol.evaluate_front(TASK, loaded, range(3))
    assert again is not None
    assert again.returns.tolist() == outcome.front.returns.tolist()


@pytest.mark.parametrize(
    ("weights", "best"), [((0.9, 0.1), (3, -3)), ((0.1, 0.9), (1, -1)), ((0.51, 0.49), (3, -3))]
)
def test_pareto_q_plays_what_weights_ask_for(
    weights: tuple[float, float], best: tuple[float, float]
) -> None:
    *_, policy = ParetoQ(total_steps=200).train(TASK, seed=1, budget="smoke")
    record = protocol.evaluate(TASK, policy.for_weights(np.array(weights)), range(2))
    assert record.total.tolist() == [list(best)] * 2


@pytest.mark.parametrize("treasures", ["convex", "concave"])
def test_pareto_q_finds_all_ten_treasures_in_5_000_steps(treasures: str) -> None:
    """Eight of those of the concave map are best for no weighted sum."""
    task = card("DeepSeaTreasure-v0", map=treasures).build()
    *_, policy = ParetoQ(total_steps=5_000).train(task, seed=0, budget="smoke")
    front = protocol.evaluate_front(task, policy, range(3))
    assert front is not None
    assert len(front.returns) == len(front.exact) == 10
    assert hypervolume(front.returns, REFERENCE_OF_TREASURES) == pytest.approx(
        hypervolume(front.exact, REFERENCE_OF_TREASURES)
    )


def test_pareto_q_says_what_it_cannot_play() -> None:
    for task, reason in (
        (card("SAT-v0").build(), "has one objective"),
        (card("TreasureMaps-v0").build(), "samples contexts"),
        (card_of(TwoAims, contexts=False).build(), r"has the actions Box"),
        (card_of(SlipperyExits, **EXITS).build(), "equal actions have unequal returns"),
    ):
        with pytest.raises(CannotPlay, match=reason):
            ParetoQ().check(task)


def test_a_step_with_two_results_is_refused() -> None:
    tables = pareto_q.Tables(2, 2, 1.0)
    first, second = (tables.state(np.array([number])) for number in (1.0, 2.0))
    tables.record(first, 0, np.zeros(2), second)
    with pytest.raises(ValueError, match="Action 0 has two results"):
        tables.record(first, 0, np.ones(2), second)


def test_a_circle_that_costs_nothing_is_left() -> None:
    """State 0 may stay for nothing, or leave: the point is that of leaving."""
    tables = pareto_q.Tables(2, 2, 1.0)
    state = tables.state(np.zeros(1))
    tables.record(state, 0, np.zeros(2), state)
    tables.record(state, 1, np.array([1.0, -1.0]), pareto_q.OVER)
    tables.back_up_all()
    plans = pareto_q.Plans.of(tables)
    assert plans.points.tolist() == [[[1, -1]]]
    assert plans.actions.tolist() == [[1]]


def test_a_circle_that_pays_is_refused() -> None:
    tables = pareto_q.Tables(2, 2, 1.0)
    state = tables.state(np.zeros(1))
    tables.record(state, 1, np.array([1.0, -1.0]), pareto_q.OVER)
    tables.record(state, 0, np.array([1.0, 0.0]), state)
    with pytest.raises(ValueError, match="A circle of states pays"):
        tables.back_up_all()


def test_one_network_plays_for_all_weights_within_the_convex_hull(tmp_path: Path) -> None:
    """The exit in the middle is best for no weights, so that its part of the volume is missed."""
    agent = WeightedPPO(total_steps=20_000, num_envs=32, num_steps=16, entropy=0.02, reports=1)
    outcome = outcome_of(agent, TASK)
    assert isinstance(outcome.policy, PolicySet)
    assert outcome.front is not None
    first, *_, last = outcome.front.returns  # for time alone, and for value alone
    assert outcome.front.weights[0].tolist() == [0, 1]
    assert first == pytest.approx([1, -1])
    assert last[0] == pytest.approx(3)
    measures = quality(outcome.front.returns, REFERENCE, outcome.front.exact)
    ends = TASK.pareto_front()[[0, 2]]
    assert measures.hypervolume_ratio is not None
    assert measures.hypervolume == pytest.approx(hypervolume(ends, REFERENCE))
    assert measures.hypervolume_ratio < 1
    file = str(tmp_path / "policy.safetensors")
    agent.save(outcome.policy, file)
    again = protocol.evaluate_front(TASK, agent.load(file, TASK), range(3))
    assert again is not None
    assert again.returns == pytest.approx(outcome.front.returns)
    with pytest.raises(CannotPlay, match="has one objective"):
        WeightedPPO().check(card("SAT-v0").build())


def test_fronts_are_stored_read_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(*_: Any) -> pareto_q.Config:
        return pareto_q.Config(total_steps=5_000)

    monkeypatch.setattr(pareto_q, "configure", short)
    monkeypatch.setattr(pareto_q, "_is_deterministic", lambda task: True)  # which it is
    plan = runner.plan("pareto-q,noop", "DeepSeaTreasure-v0", 1, "smoke")
    with OpenRun.open(tmp_path / "run", plan) as run, run.sitting():
        for event in runner.in_process(run):
            assert event.kind != "failed", event.value
        run.merge()
    stored = read_run(tmp_path / "run")
    by_agent = {result.agent: result for result in stored.results()}
    assert by_agent["pareto-q"].of_set
    assert not by_agent["noop"].of_set
    assert stored.read_front(by_agent["noop"]) is None
    front = stored.read_front(by_agent["pareto-q"])
    assert front is not None
    exact = card("DeepSeaTreasure-v0").build().pareto_front()
    assert front.exact.tolist() == exact.tolist()
    assert front.returns == pytest.approx(exact)
    assert by_agent["pareto-q"].score == pytest.approx(1, abs=1e-3)
    assert pq.read_table(run.path / "fronts.parquet").num_rows == 20
    report = Report.of(stored)
    assert [row.agent for row in report.fronts] == ["pareto-q"]
    assert report.fronts[0].estimates["hypervolume_ratio"].point == pytest.approx(1)
    print_report(report, console := Console(width=160, record=True, file=io.StringIO()))
    write_html(report)
    for text in (console.export_text(), (run.path / "report.html").read_text()):
        assert "Fronts" in text
        assert "994.300 - of 994.3" in text
    (run.cell_path(by_agent["pareto-q"].cell) / "front.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"front.parquet is damaged"):
        Report.of(stored)

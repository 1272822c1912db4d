"""Test the report: numbers against SciPy, verdicts on made-up runs, one well-formed page."""

import io
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import trim_mean

from rlbench_suite.core.registry import card
from rlbench_suite.core.scale import Scale, Score
from rlbench_suite.evaluation import protocol
from rlbench_suite.evaluation.report import chart
from rlbench_suite.evaluation.report.export_formats import latex, tidy_csv
from rlbench_suite.evaluation.report.html_report import write_html
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.report_remarks import _on_intervals, _unequal_training
from rlbench_suite.evaluation.report.report_rows import Row, row_of
from rlbench_suite.evaluation.report.terminal_report import print_report
from rlbench_suite.evaluation.runs.computer import energy_text
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import read_runs
from rlbench_suite.evaluation.runs.runner import in_process, plan
from rlbench_suite.evaluation.statistics.aggregates import mean, with_error
from rlbench_suite.evaluation.statistics.intervals import Estimate


@pytest.fixture
def report(toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    with (
        OpenRun.open(
            tmp_path, plan("toy,toy-host,toy-picky", "ToyWalk-v0,ToyDrift-v0", 4, "smoke")
        ) as run,
        run.sitting(),
    ):
        for event in in_process(run):
            assert event.kind != "failed", event.value
        costs = [
            r.mean_cost
            for r in run.results()
            if (r.agent, r.task) == ("toy", "rlsuite/ToyDrift-v0")
        ]
        limit = card("ToyDrift-v0").constraint
        assert limit
        # Two seeds of four cost more.
        monkeypatch.setitem(vars(limit), "limit", float(np.median(costs)))
        return Report.of(run)


def print_to_text(report: Report, width: int) -> str:
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width))
    return stream.getvalue()


def check_worst_tenths(report: Report) -> None:
    for row in report.rows:
        cells = [r for r in report.run.results() if (r.agent, r.task) == (row.agent, row.card.id)]
        expected = mean({row.card.id: [r.worst_tenth for r in cells]})
        assert row.worst_tenth == with_error(expected, row.scale.standard_error(expected.point))
        assert row.worst_tenth.point <= row.score.point


def check_constraints(report: Report) -> None:
    drift = next(r for r in report.rows if (r.agent, r.card.name) == ("toy", "ToyDrift-v0"))
    cells = [r for r in report.run.results() if (r.agent, r.task) == ("toy", "rlsuite/ToyDrift-v0")]
    limit = drift.card.constraint.limit
    over = [r.mean_cost > limit for r in cells]
    assert 0 < sum(over) < len(over)
    assert (drift.violating, drift.violates) == (
        sum(over),
        np.mean([r.mean_cost for r in cells]) > limit,
    )
    assert drift.constrained.point == pytest.approx(
        np.mean([0 if broken else r.score for r, broken in zip(cells, over, strict=True)])
    )
    assert [r.constrained == r.score for r in report.rows if r.card.name == "ToyWalk-v0"] == [
        True
    ] * 3


def test_report(report: Report):
    """One run, for it is dear to make: numbers, terminal, page."""
    check_constraints(report)
    check_worst_tenths(report)
    # Numbers. ToyDrift is nothing for toy-picky, so aggregates are over ToyWalk alone.
    walk = {
        agent: [
            r.score
            for r in report.run.results()
            if (r.agent, r.task) == (agent, "rlsuite/ToyWalk-v0")
        ]
        for agent in ("toy", "toy-host", "toy-picky")
    }
    assert report.comparison is not None
    assert report.comparison.left_out == ("rlsuite/ToyDrift-v0",)
    for agent, scores in walk.items():
        assert report.comparison.agents[agent].iqm.point == pytest.approx(trim_mean(scores, 0.25))
        assert report.comparison.agents[agent].mean.point == pytest.approx(np.mean(scores))
        row = next(r for r in report.rows if (r.agent, r.card.name) == (agent, "ToyWalk-v0"))
        costs = [
            r.mean_cost
            for r in report.run.results()
            if (r.agent, r.task) == (agent, "rlsuite/ToyWalk-v0")
        ]
        assert row.mean_cost == pytest.approx(np.mean(costs))
        assert row.score.point == pytest.approx(np.mean(scores))
        expected = mean({"rlsuite/ToyWalk-v0": scores})
        assert row.score == with_error(expected, row.scale.standard_error(expected.point))
        assert report.above_zero[agent].point == np.mean(np.array(scores) > 0)
    assert [(r.card.name, r.agent) for r in report.rows][:2] == [
        ("ToyWalk-v0", "toy"),
        ("ToyWalk-v0", "toy-host"),
    ]
    assert [r.steps_per_second for r in report.rows] == [1000.0, None, 1000.0, 1000.0, None]
    trained = ("environment", 1000.0, 1.0)
    none = ("", 0.0, 0.0)
    assert [(r.step_unit, r.training_steps, r.train_seconds) for r in report.rows] == [
        trained, none, trained, trained, none,
    ]  # fmt: skip

    # Terminal: everything in a wide one, what matters most in a narrow one, no line too long.
    wide, narrow = print_to_text(report, 160), print_to_text(report, 80)
    assert "toy-picky on rlsuite/ToyDrift-v0: one objective is enough for me" in wide
    assert "reference" in wide
    assert [
        "total time with compilation" in " ".join(text.split())
        for text in (print_to_text(report, 250), narrow)
    ] == [
        True,
        False,
    ]
    assert "reference " not in narrow.split("Together")[0].splitlines()[2]
    assert max(map(len, narrow.splitlines()[:12])) <= 80
    for row in report.rows:
        assert re.search(
            rf"{row.card.name} +{row.agent} .*{row.score.point:.3f} .*{row.beats_zero}", narrow
        )
        steps, seconds = ("1k", "1.0") if row.training_steps else ("-", "-")
        assert re.search(rf"{row.card.name} +{row.agent} .* {steps} +{seconds}", narrow)
    assert re.search(r"toy +\d\.\d{3} .* 1k +1\.0 *\n", narrow.split("Together")[1])
    assert "Unequal" not in wide
    assert (
        "Some scores have only 4 seeds. Do not trust intervals of fewer than 5 seeds"
        in " ".join(wide.split())
    )

    # Page: one file that asks the network for nothing, every tag closed, every agent and task in
    # it.
    write_html(report)
    page = (report.run.path / "report.html").read_text()
    assert not re.search(r"(src|href)=|url\(|@import|<script|https?://", page)
    assert "$" not in re.sub(r"<pre>.*</pre>", "", page, flags=re.S)
    reader = Balanced()
    reader.feed(page)
    assert reader.open == []
    # Aggregates, profile, efficiency (steps, seconds), curves.
    assert reader.counts["svg"] == 4 + 1 + 2 + 2
    assert "prefers-color-scheme: dark" in page
    for row in report.rows:
        assert all(
            f"<b>{estimate.point:.3f}</b>" in page for estimate in (row.score, row.worst_tenth)
        )
        assert f">{row.cost_text}</td><td>{row.seeds}</td>" in page
    assert page.count("<td>1,000</td><td>1.0</td>") == 3
    assert "1k training steps in 1.0 s, means of a seed over these tasks" in page
    assert "Do not trust intervals of fewer than 5 seeds" in page
    assert "(stratified bootstrap, studentised)" in page
    assert "<th>0</th>" in page  # that column compares with a number, the others with runs
    # Of probabilities, whatever those of scores are.
    assert "The intervals are score intervals" in page
    assert "nan" not in page.lower().replace("nano", "")


def test_a_broken_constraint_is_shown_in_every_terminal_and_on_the_page(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    limit = card("ToyDrift-v0").constraint
    assert limit
    monkeypatch.setitem(vars(limit), "limit", 6.0)
    with (
        OpenRun.open(
            tmp_path / "two", plan("toy,toy-picky", "ToyWalk-v0,ToyDrift-v0", 2, "smoke")
        ) as run,
        run.sitting(),
    ):
        assert [event.kind for event in in_process(run)].count("failed") == 0
        report = Report.of(run)
    walk, drift = (
        next(r for r in report.rows if (r.agent, r.card.name) == ("toy", n))
        for n in ("ToyWalk-v0", "ToyDrift-v0")
    )
    assert (walk.violates, drift.violates, drift.constrained.point) == (False, True, 0.0)
    wide, narrow = print_to_text(report, 200), print_to_text(report, 80)
    for text in (wide, narrow):
        assert re.search(r"ToyDrift-v0 +toy .*\d ?\] !", text)
        assert not re.search(r"ToyWalk-v0 +toy .* !", text)
        assert "toy violates the constraint of ToyDrift-v0: an episode costs" in " ".join(
            text.split()
        )
    header, walk_cells, drift_cells = (
        re.split(
            r" {2,}",
            next(line for line in wide.splitlines() if line.strip().startswith(beginning)).strip(),
        )
        for beginning in ("task ", "ToyWalk-v0 ", "ToyDrift-v0 ")
    )
    column = header.index("constrained")
    assert walk_cells[column] == "-"  # the task has no constraint
    assert drift_cells[column].startswith("0.000")
    with (
        OpenRun.open(
            tmp_path / "alone", plan("toy", "ToyWalk-v0,ToyDrift-v0", 2, "smoke")
        ) as alone,
        alone.sitting(),
    ):
        list(in_process(alone))
        together = print_to_text(Report.of(alone), 200).split("Together")[1]
    (row,) = (line for line in together.splitlines() if line.startswith(" toy "))
    assert row.count("] !") == 2  # IQM and mean, not the constrained IQM
    assert f"{drift.mean_cost:.3g} of 6" in wide
    write_html(report)
    page = (run.path / "report.html").read_text()
    assert page.count('<span class="no">violates</span>') == 1
    assert f'<td class="no">{drift.mean_cost:.3g} of 6</td>' in page


class Balanced(HTMLParser):
    """Counts elements and keeps those still open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        ((0.2, -0.05, 0.3), "unclear"),
        ((0.2, 0.01, 0.3), "yes"),
        ((-0.5, -0.9, -0.2), "no"),
        ((0.9, None, None), "unclear"),
    ],
)
def test_an_agent_beats_zero_only_where_intervals_do_not_overlap(
    toys: Path, score: tuple[float, float | None, float | None], verdict: str
):
    point, *ends = score
    low, high = (math.nan if end is None else end for end in ends)
    row = Row(
        agent="toy", card=card("ToyWalk-v0"), mean_return=0.0, score=Estimate(point, low, high),
        worst_tenth=None, success_rate=0.0, mean_cost=0.0, constrained=Estimate(point, low, high),
        violating=0, scale=Scale("noop", Score(10, 9, 11, 100), Score(20, 19, 21, 100)),
        training_steps=0, step_unit="", train_seconds=0.0, steps_per_second=None, wall_seconds=1.0,
        seeds=5,
    )  # fmt: skip
    assert row.beats_zero == verdict
    costly = replace(row, card=card("PMSMSpeed-v0"))
    assert [replace(costly, mean_cost=cost).beats_zero for cost in (20.0, 20.5)] == [verdict, "no"]


def test_time_and_energy_of_a_solved_episode(toys: Path):
    """Two seeds of 50 episodes solve 10 and 30 in 8 s and 12 s; two launches take 600 J."""
    results: Any = [
        SimpleNamespace(
            mean_return=0.0, success_rate=rate, episodes=50, mean_cost=0.0, training_steps=0,
            train_seconds=0.0, steps_per_second=None, wall_seconds=seconds, privileged=False,
        )
        for rate, seconds in ((0.2, 8.0), (0.6, 12.0))
    ]  # fmt: skip
    anchors = {player: Score(1.0, 0.0, 2.0, 100) for player in ("random", "reference")}
    run: Any = SimpleNamespace(manifest=SimpleNamespace(scale=lambda task: Scale.of(anchors)))
    row = row_of(run, "toy", "rlsuite/ToyWalk-v0", results, *[Estimate(0.5, 0.4, 0.6)] * 2, None)
    assert row.solved_text == "0.5"
    assert replace(row, solved=0.0).solved_text == "-"
    assert energy_text([200.0, 400.0], row.solved) == "600 J, 15 J for each solved episode"
    assert energy_text([200.0], 0.0) == "200 J"
    assert energy_text([200.0, None], row.solved) == "-"


def test_unequal_training_is_said(toys: Path):
    zero = Estimate(0.5, 0.4, 0.6)
    row = Row(
        agent="a", card=card("ToyWalk-v0"), mean_return=0.0, score=zero, worst_tenth=zero,
        success_rate=0.0, mean_cost=0.0, constrained=zero, violating=0,
        scale=Scale("noop", Score(10, 9, 11, 100), Score(20, 19, 21, 100)), training_steps=50_000,
        step_unit="environment", train_seconds=1.0, steps_per_second=None, wall_seconds=1.0,
        seeds=5,
    )  # fmt: skip

    def warn_of(*changes: dict[str, Any]) -> list[str]:
        report: Any = SimpleNamespace(
            rows=[row, *(replace(row, agent="b", **change) for change in changes)]
        )
        return list(_unequal_training(report))

    (warning,) = warn_of({"training_steps": 500_000})
    assert "Unequal training on ToyWalk-v0" in warning
    assert "a 50,000, b 500,000 steps" in warning
    assert warn_of({"training_steps": 52_000}) == []  # rounded up to whole updates
    assert warn_of({"training_steps": 500_000, "card": card("ToyDrift-v0")}) == []  # another task
    assert warn_of({"training_steps": 0, "step_unit": ""}) == []  # a player that learns nothing
    (offline,) = warn_of({"training_steps": 5_000, "step_unit": "gradient"})
    assert offline.startswith(
        "b learns from a recorded dataset: its training steps are gradient steps"
    )
    unequal, _ = warn_of(
        *({"training_steps": steps, "step_unit": "gradient"} for steps in (5_000, 9_000))
    )
    assert "b 5,000 gradient, b 9,000 gradient steps" in unequal


def test_a_failed_cell_is_not_a_gap(toys: Path, tmp_path: Path):
    """An agent that raises on a seed has no mean over the others.

    That holds in the terminal and on the page, and no aggregate counts it.
    """
    with (
        OpenRun.open(tmp_path, plan("toy,toy-crash", "ToyWalk-v0", 3, "smoke")) as run,
        run.sitting(),
    ):
        assert [event.kind for event in in_process(run)].count("failed") == 1
        assert [str(cell) for cell in run.failures()] == ["toy-crash on rlsuite/ToyWalk-v0, seed 1"]
        report = Report.of(run)
        text = " ".join(print_to_text(report, 160).split())
        write_html(report)
    row = next(row for row in report.rows if row.agent == "toy-crash")
    assert (row.failed, row.beats_zero, row.failed_text) == (1, "failed", "1 of 3 failed")
    assert "1 of 3 failed" in text
    (line,) = [
        line
        for line in print_to_text(report, 160).splitlines()
        if re.match(r" *ToyWalk-v0 +toy-crash", line)
    ]
    assert not re.search(r"0\.\d\d\d", line.partition("failed")[0][-40:])
    assert (
        "toy-crash failed on ToyWalk-v0, seed 1. It has no summary until these cells are done"
        in text
    )
    assert "Missing, and not in any number here: toy-crash on rlsuite/ToyWalk-v0, seed 1." in text
    assert report.comparison is not None
    assert list(report.comparison.agents) == ["toy"]
    assert "toy-crash" not in report.above_zero
    page = (tmp_path / "report.html").read_text()
    assert "1 of 3 failed" in page
    assert "1 cell failed: no summary until they are done" in page
    assert "toy, mean" in page  # a learning curve over all seeds
    assert "toy-crash, seed 0" in page
    assert "toy-crash, mean" not in page
    (read,) = read_runs([tmp_path])
    assert [(cell.agent, cell.seed) for cell in read.failures()] == [("toy-crash", 1)]
    assert "RuntimeError" in read.failures()[0].error
    assert "toy-crash,1,,,,,,,,,True" in tidy_csv(read)
    assert "toy-crash has failed cells" in latex(read)


def test_returns_that_are_not_finite_count_as_the_floor(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """An agent that diverges scores the floor of the task, and has a mark.

    It used to have a gap.
    """
    play = protocol.evaluate

    def diverging(*arguments: Any, **settings: Any) -> Any:
        record = play(*arguments, **settings)
        total = np.array(record.total)
        total[:10] = np.nan
        return record._replace(total=total)

    with OpenRun.open(tmp_path, plan("toy", "ToyWalk-v0", 2, "smoke")) as run, run.sitting():
        monkeypatch.setattr(protocol, "evaluate", diverging)
        assert [event.kind for event in in_process(run)].count("failed") == 0
        report = Report.of(run)
        (result, _) = run.results()
        returns = run.read_episodes(result.cell)["return"].to_numpy()
    anchors = run.manifest.references["rlsuite/ToyWalk-v0"]
    floor = min(anchors[player].mean for player in ("random", "noop") if player in anchors)
    assert result.floored == 10
    np.testing.assert_array_equal(returns[:10], floor)
    assert report.rows[0].floored == 20
    text = " ".join(print_to_text(report, 160).split())
    assert "] ~" in text
    assert "count as the worse of random play and doing nothing: toy on ToyWalk-v0: 20." in text


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-0.31, 1.07), (0, 131072), (3, 3), (-5e-3, 2e-3), (-900, -100)]
)
def test_ticks_are_round_and_cover_the_range(low: float, high: float):
    first, last, ticks = chart._scale(low, high)
    assert first <= low <= high <= last
    assert 2 <= len(ticks) <= 8 or low == high
    assert np.allclose(np.diff(ticks), ticks[1] - ticks[0]) if len(ticks) > 1 else True


def test_numbers_of_ticks():
    assert [chart.number(x) for x in (0, 0.25, 999, 20_000, 1.5e6, 2e9)] == [
        "0",
        "0.25",
        "999",
        "20k",
        "1.5M",
        "2G",
    ]


@pytest.mark.parametrize(
    ("seeds", "words"), [(1, "One seed has no"), (2, "only 2 seeds"), (4, "only 4 seeds"), (5, "")]
)
def test_intervals_of_fewer_than_five_seeds_are_not_to_be_trusted(seeds: int, words: str):
    score = Estimate(0.5, 0.4, 0.6)
    row = SimpleNamespace(seeds=seeds, score=score)
    report: Any = SimpleNamespace(rows=[row], method="studentised", comparison=None)
    assert (
        words in " ".join(_on_intervals(report)) if words else len(list(_on_intervals(report))) == 1
    )  # on runs that were not seen


def test_percentile_intervals_and_those_without_width_are_explained():
    row = SimpleNamespace(
        seeds=5, score=Estimate(1, 1, 1), agent="toy", card=SimpleNamespace(name="ToyWalk-v0")
    )
    report: Any = SimpleNamespace(rows=[row], method="percentile", comparison=None)
    narrow, unseen, equal = _on_intervals(report)
    assert unseen.startswith(
        "5 seeds cannot exclude that up to 45% of an agent's runs on a task fail, or succeed,"
    )
    assert "they cover the truth 79 to 92 %" in narrow
    assert equal.startswith("All seeds score the same: toy on ToyWalk-v0.")

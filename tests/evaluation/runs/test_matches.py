"""Policies of a run play each other; payoffs are those of the tree of poker."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.game import Duel
from rlbench_suite.core.policy import View, restrict_view
from rlbench_suite.core.registry import card
from rlbench_suite.envs.games.poker.exploitability import best_responses, uniform_table, value
from rlbench_suite.envs.games.poker.players import aggressive_table
from rlbench_suite.evaluation.report.html_report import write_html
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.terminal_report import print_report
from rlbench_suite.evaluation.runs import matches, runner
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import read_run

KUHN = "rlsuite/Poker-v0?game=kuhn"


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run"
    plan = runner.plan("random,noop,reference", KUHN, 2, "smoke")
    with OpenRun.open(path, plan) as run, run.sitting():
        for event in runner.in_process(run):
            assert event.kind != "failed", event.value
        run.merge()
        sentences = list(matches.play_missing(run))
        assert sentences == ["Playing 3 policies of Poker-v0?game=kuhn against each other."]
        assert not list(matches.play_missing(run))
    return path


def test_payoffs_are_those_of_the_tree(run_path: Path) -> None:
    """A hundred hands as often first as second, of uniform play, folding, and a best response."""
    stored = read_run(run_path).read_matches()[KUHN]
    assert [cell.agent for cell in stored.cells] == ["random", "noop", "reference"]
    assert stored.returns.shape == (3, 3, 50, 2)
    betting = card("Poker-v0", game="kuhn").build().game.betting  # type: ignore[attr-defined]
    passing = np.eye(2)[np.zeros(len(betting.information_sets), int)]
    response = best_responses(betting, aggressive_table(betting))[1]
    tables = [uniform_table(betting), passing, response]
    for i in range(3):
        for j in range(3):
            expected = value(betting, tables[i], tables[j]) - value(betting, tables[j], tables[i])
            games = (stored.returns[i, j, :, 0] + stored.returns[j, i, :, 1]) / 2
            error = games.std() / np.sqrt(len(games))
            assert games.mean() == pytest.approx(50 * expected, abs=4 * error + 1e-9)


def test_the_report_shows_payoffs_elo_and_nash_averages(run_path: Path) -> None:
    report = Report.of(read_run(run_path))
    (table,) = report.matches
    assert table.players == ("random", "noop", "reference")
    assert table.of_seeds
    assert table.games == 100
    assert sum(estimate.point for estimate in table.results.shares) == pytest.approx(1)
    assert table.results.elo[1].point == min(rating.point for rating in table.results.elo)
    print_report(report, console := Console(width=200, record=True, file=io.StringIO()))
    write_html(report)
    for text in (console.export_text(), (run_path / "report.html").read_text()):
        assert "Matches" in text
        assert "Nash" in text
    assert "payoff of the row" in (run_path / "report.html").read_text()


def test_damaged_matches_are_named(run_path: Path) -> None:
    file = run_path / "matches.parquet"
    content = file.read_bytes()
    file.write_bytes(b"")
    with pytest.raises(ValueError, match=r"matches.parquet is damaged.*delete it"):
        Report.of(read_run(run_path))
    file.write_bytes(content)


class Sweeping:
    """Puts its pieces into the columns in turn; its memory is the next column."""

    def initial(self, params: Any) -> jax.Array:
        return jnp.int32(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return memory % 7, memory + 1


jax.tree_util.register_static(Sweeping)


def test_a_memory_waits_for_its_turn_and_illegal_moves_become_legal() -> None:
    """One player sweeps the columns, which its memory counts; the other fills the last one."""
    game: Any = card("ConnectFour-v0").joint().build()
    for seat in range(2):
        duel = Duel(
            restrict_view(Sweeping()), restrict_view(Constant(np.int32(6))), np.int32(seat), game
        )
        record = play(game, duel, range(40))
        own_moves = record.actions[:, seat::2, seat][:, :2]
        assert set(own_moves[:, 0]) == {0}
        assert set(own_moves[:, 1]) == {1}
        assert record.total.sum(1) == pytest.approx(np.zeros(40))
        assert record.terminated.all()  # nobody stalls, although column 6 fills up

"""Games of policies against each other in a report: payoffs, Elo and Nash averages, and charts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.report import chart
from rlbench_suite.evaluation.report.page import interval
from rlbench_suite.evaluation.runs.run import Run
from rlbench_suite.evaluation.statistics.games import Standings, payoff_matrix, standings
from rlbench_suite.evaluation.statistics.intervals import Estimate, Floats


@dataclass(frozen=True)
class MatchTable:
    """Results of agents, or of the policies of one agent, against each other on a task."""

    card: TaskCard
    players: tuple[str, ...]
    """Agents; the seeds of a single agent."""
    of_seeds: bool
    """True if every player is one policy, so that intervals are over new games alone."""
    results: Standings
    cells: tuple[Cell, ...]
    payoffs: Floats
    """Payoff of each policy against each other, ``(n, n)``."""
    games: int
    """Games of each two policies, both seats together."""

    def ratings(self) -> list[dict[str, str]]:
        """Return a row of ratings for each player."""
        return [
            {
                "task": self.card.name,
                "player": player,
                "Elo": _with_interval(self.results.elo[i], digits=0),
                "Nash average": _entry(self.results.skills, i),
                "Nash share": _entry(self.results.shares, i),
            }
            for i, player in enumerate(self.players)
        ]

    def payoff_rows(self, *, intervals: bool = True) -> list[dict[str, str]]:
        """Return a row for each player with its payoff against each other."""
        rows = []
        for i, player in enumerate(self.players):
            row = {"player": player}
            for j, opponent in enumerate(self.players):
                estimate = self.results.payoffs[i][j]
                text = _with_interval(estimate) if intervals else f"{estimate.point:z.3f}"
                row[f"against {opponent}"] = "-" if i == j else text
            rows.append(row)
        return rows


def match_tables(run: Run) -> list[MatchTable]:
    """Return the results of each task whose policies played each other.

    Raises:
        ValueError: the table of the matches is damaged.
    """
    tables = []
    for task, matches in run.read_matches().items():
        if len(matches.cells) < 2:
            continue
        names = [cell.agent for cell in matches.cells]
        agents = list(dict.fromkeys(names))
        if len(agents) == 1:
            names = [f"{cell.agent}, seed {cell.seed}" for cell in matches.cells]
            agents = names
        numbers = [agents.index(name) for name in names]
        tables.append(
            MatchTable(
                find_card(task),
                tuple(agents),
                len(agents) == len(names),
                standings(matches.returns, numbers),
                matches.cells,
                payoff_matrix(matches.returns),
                2 * matches.returns.shape[2],
            )
        )
    return tables


def charts(tables: Iterable[MatchTable], colour: Mapping[str, int]) -> Iterable[Markup]:
    """Yield the payoffs of all policies and the Elo of all players for each task."""
    for table in tables:
        labels = [f"{cell.agent} {cell.seed}" for cell in table.cells]
        yield chart.heat_map(f"{table.card.name}: payoff of the row", labels, table.payoffs)
        yield chart.intervals(
            f"{table.card.name}: Elo",
            [
                chart.Interval(
                    player, rating.point, rating.low, rating.high, colour[player.split(",")[0]]
                )
                for player, rating in zip(table.players, table.results.elo, strict=True)
            ],
        )


def _entry(estimates: Sequence[Estimate], i: int) -> str:
    return _with_interval(estimates[i]) if estimates else "-"


def _with_interval(estimate: Estimate, digits: int = 3) -> str:
    if digits:
        return f"{estimate.point:z.3f} {interval(estimate) or '-'}"
    if math.isnan(estimate.low):
        return f"{estimate.point:.0f}"
    return f"{estimate.point:z.0f} [{estimate.low:z.0f}, {estimate.high:z.0f}]"

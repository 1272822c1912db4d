"""Tables of a report in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.text import Text

from rlbench_suite.core.scale import Score
from rlbench_suite.evaluation.report import chart
from rlbench_suite.evaluation.report.page import interval
from rlbench_suite.evaluation.report.pass_at_k import Passing
from rlbench_suite.evaluation.report.report import AGGREGATES, Report
from rlbench_suite.evaluation.report.report_remarks import remarks, unit
from rlbench_suite.evaluation.report.report_rows import Row
from rlbench_suite.evaluation.report.whole_table import Table
from rlbench_suite.evaluation.statistics.intervals import Estimate

_RESULTS = {"return", "constrained", "worst tenth", "success", "cost"}
"""Columns that are empty for an agent with failed cells."""
_BROKEN = " !"
"""Mark of a score that breaks a constraint. A sentence below the tables explains it."""
_FLOORED_MARK = " ~"
"""Mark of a score with episodes whose return is not finite."""
_PRIVILEGED_MARK = " †"
"""Mark of an agent that reads the state or params of the task.

A sentence below the tables explains it.
"""
_VERDICT = {"yes": "green", "no": "red", "unclear": "yellow", "failed": "red"}
"""Colours of verdicts."""


_MAX_INTERVALS = 3
"""Players of a game up to which the terminal shows the intervals of payoffs."""

_OMITTED_FIRST = (
    "IGD+", "points", "MUL", "Nash share",
    "worst tenth", "seconds a success", "cost", "all seeds", "steps/s", "reference", "zero",
    "return", "success", "constrained", "Constrained IQM", "Median", "Mean", "beats 0",
    "Optimality gap", "form", "instances", "tokens in", "tokens out", "best trivial",
)  # fmt: skip
"""Columns that a narrow terminal omits, in this order. The page has them all."""


def print_report(report: Report, console: Console) -> None:
    """Print the tables: each task, then all tasks together."""
    limited = any(row.card.constraint for row in report.rows)
    rows: list[dict[str, str | Text]] = [
        {
            "task": row.card.name,
            "agent": row.agent + _PRIVILEGED_MARK * row.privileged,
            "zero": f"{row.scale.zero.mean:.4g} ({row.scale.zero_player})",
            "reference": f"{row.scale.reference.mean:.4g}",
            "return": f"{row.mean_return:.4g}",
            "score": _with_interval(row.score)
            + _BROKEN * row.violates
            + _FLOORED_MARK * bool(row.floored),
            **(
                {"constrained": _with_interval(row.constrained) if row.card.constraint else "-"}
                if limited
                else {}
            ),
            "worst tenth": _with_interval(row.worst_tenth) if row.worst_tenth else "-",
            "beats 0": Text(row.beats_zero, _VERDICT[row.beats_zero]),
            "success": row.success_text,
            **({"cost": row.cost_text} if limited else {}),
            "training steps": _steps(row),
            "training seconds": _seconds(row),
            "steps/s": row.speed_text,
            "all seeds": f"{row.wall_seconds:.0f} s",
            "seconds a success": row.solved_text,
        }
        for row in report.rows
    ]
    for texts, row in zip(rows, report.rows, strict=True):
        if row.failed:
            texts.update(dict.fromkeys(_RESULTS & texts.keys(), "-"), score=row.failed_text)
    shown_columns = _print_table("Each task", rows, console)
    if report.transfers:
        rows = [
            {
                "task": transfer.card.name,
                "agent": transfer.agent
                + _PRIVILEGED_MARK * bool(report.privileged_cards(transfer.agent)),
                "trained on": transfer.trained_on.name,
                "score minus score where trained": transfer.gap_text,
            }
            for transfer in report.transfers
        ]
        _print_table("Transfer", rows, console)
    if report.gaps:
        rows = [
            {
                "task": gap.card.name,
                "agent": gap.agent + _PRIVILEGED_MARK * bool(report.privileged_cards(gap.agent)),
                "train score": _with_interval(gap.train),
                "test score": _with_interval(gap.test),
                "gap": gap.gap_text,
            }
            for gap in report.gaps
        ]
        _print_table("Generalisation", rows, console)
    if report.fronts:
        rows = [{"task": row.card.name, "agent": row.agent, **row.texts()} for row in report.fronts]
        _print_table("Fronts", rows, console)
    for table in report.matches:
        _print_table("Matches", table.ratings(), console)
        few = len(table.players) <= _MAX_INTERVALS
        _print_table(f"Payoffs on {table.card.name}", table.payoff_rows(intervals=few), console)
        if table.of_seeds:
            console.print("Intervals of matches are over new games, not over new seeds.")
    if report.models:
        _print_table(
            "Language models", [_attempts(passing_row) for passing_row in report.models], console
        )
    if report.comparison:
        rows = []
        for agent, summary in report.comparison.agents.items():
            values = {title: getattr(summary, name) for name, title in AGGREGATES.items()}
            values["P(beats 0)"] = report.above_zero[agent]
            steps, seconds = training_text(report, agent)
            costs = {"training steps": steps, "training seconds": seconds}
            texts_by_title = {title: _with_interval(value) for title, value in values.items()}
            if agent in report.constrained:
                mark = _BROKEN * bool(report.violated_cards(agent))
                texts_by_title = {
                    "IQM": texts_by_title.pop("IQM") + mark,
                    "Constrained IQM": _with_interval(report.constrained[agent]),
                    "Mean": texts_by_title.pop("Mean") + mark,
                } | texts_by_title
            rows.append(
                {
                    "agent": agent + _PRIVILEGED_MARK * bool(report.privileged_cards(agent)),
                    **texts_by_title,
                    **costs,
                }
            )
        count = len(report.comparison.tasks)
        _print_table(f"Together ({count} task{'s' * (count > 1)})", rows, console)
    console.print(
        "Scores: 0 is the best play without skill (random, idle, or constant where a card names "
        "it), 1 the task's reference, with 95 % intervals over seeds. Training: of one seed on one "
        "task, means over seeds and tasks, without compilation."
        + ' "All seeds": total time with compilation and evaluation.'
        * ("all seeds" in shown_columns),
        style="dim",
    )
    for sentence in remarks(report):
        console.print(sentence, style="yellow", highlight=False, markup=False)


def _attempts(model: Passing) -> dict[str, str]:
    """Return the row of a language model on a task, by column."""
    samples = model.samples
    several = (
        {
            f"pass@{samples}": model.at_least_one[samples],
            f"pass^{samples}": model.all_right[samples],
        }
        if samples > 1
        else {}
    )
    return {
        "task": model.card.name,
        "agent": model.agent,
        "form": model.form,
        "instances": str(model.instances),
        "best trivial": "-" if model.best_trivial is None else f"{model.best_trivial:.3f}",
        **{
            name: _rate(score)
            for name, score in ({"pass@1": model.at_least_one[1]} | several).items()
        },
        "tokens in": chart.number(model.input_tokens),
        "tokens out": chart.number(model.output_tokens) + "*" * model.estimated,
        "price": "-" if model.dollars is None else f"${model.dollars:.4g}",
    }


def _rate(score: Score) -> str:
    return f"{score.mean:.3f} [{score.low:.2f}, {score.high:.2f}]"


def _print_table(
    title: str, rows: Sequence[Mapping[str, str | Text]], console: Console
) -> list[str]:
    """Print the columns for which there is room, and return their names."""
    widest = {name: max((row[name] for row in rows), key=len) for name in rows[0]}
    for count in range(len(_OMITTED_FIRST) + 1):
        names = [name for name in rows[0] if name not in _OMITTED_FIRST[:count]]
        trial = _table(title, names, [widest])  # as wide as the whole table, and measured faster
        if (
            Measurement.get(console, console.options.update(width=500), trial).maximum
            <= console.width
        ):
            break
    console.print(_table(title, names, rows))
    return names


def _table(title: str, names: list[str], rows: Sequence[Mapping[str, str | Text]]) -> Table:
    """Return the table of some columns."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False
    )
    for name in names:
        is_text = name in ("task", "agent", "player")
        heading = name.replace(" ", "\n")  # numbers are narrower than their names
        table.add_column(
            heading, justify="left" if is_text else "right", vertical="bottom", no_wrap=True
        )
    for row in rows:
        table.add_row(
            *(Text(cell) if isinstance(cell := row[name], str) else cell for name in names)
        )
    return table


def _steps(row: Row) -> str:
    return f"{chart.number(row.training_steps)}{unit(row)[:5]}" if row.step_unit else "-"


def _seconds(row: Row) -> str:
    return f"{row.train_seconds:.1f}" if row.step_unit else "-"


def _with_interval(estimate: Estimate) -> str:
    return f"{estimate.point:z.3f} {interval(estimate) or '-'}"


def training_text(report: Report, agent: str) -> tuple[str, str]:
    """Return a seed's training steps and seconds, means over the aggregated tasks.

    Leaderboards show the same.
    """
    tasks = report.comparison.tasks if report.comparison else ()
    rows = [
        row for row in report.rows if row.agent == agent and row.card.id in tasks and row.step_unit
    ]
    if not rows:
        return "-", "-"
    steps = chart.number(sum(row.training_steps for row in rows) / len(rows))
    return steps + unit(rows[0])[:5], f"{sum(row.train_seconds for row in rows) / len(rows):.1f}"

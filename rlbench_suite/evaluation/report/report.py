"""Report of a run: tables in the terminal and one self-contained HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.text import Text

from rlbench_suite.atomic_files import replacing, writing
from rlbench_suite.evaluation.cell import FailedCell
from rlbench_suite.evaluation.report import chart, learning_curves
from rlbench_suite.evaluation.report.page import interval, render
from rlbench_suite.evaluation.report.pass_at_k import Passing, passing
from rlbench_suite.evaluation.report.report_remarks import remarks, unit
from rlbench_suite.evaluation.report.report_rows import Gap, Row, Transfer, gap_of, pairs_of, row_of
from rlbench_suite.evaluation.runs.machine import energy_text
from rlbench_suite.evaluation.runs.manifest import CellResult
from rlbench_suite.evaluation.runs.run import Run, TrainingCurve
from rlbench_suite.evaluation.statistics.aggregates import (
    Comparison,
    compare,
    error_of_mean,
    iqm,
    means,
    with_error,
)
from rlbench_suite.evaluation.statistics.intervals import Estimate, Method
from rlbench_suite.evaluation.statistics.profiles import probability_above
from rlbench_suite.registry import card as find_card
from rlbench_suite.scale import Score
from rlbench_suite.task_card import TaskCard
from rlbench_suite.whole_table import Table

AGGREGATES = {"iqm": "IQM", "mean": "Mean", "median": "Median", "optimality_gap": "Optimality gap"}


@dataclass(frozen=True)
class Report:
    """Statistics of a run."""

    run: Run
    method: Method
    """Method of the intervals of scores and gaps."""
    rows: list[Row]
    transfers: list[Transfer]
    """Transfers of agents that were evaluated both where they were trained and elsewhere."""
    gaps: list[Gap]
    """Gaps of agents that were evaluated on training contexts, too."""
    comparison: Comparison | None
    """Comparison on the tasks that all agents have; None if there is no such task."""
    constrained: dict[str, Estimate]
    """IQM of constrained scores on the same tasks by agent; empty if none of these has a constraint."""
    above_zero: dict[str, Estimate]
    """Probability that a run of the agent scores above 0 on a random task."""
    models: list[Passing]
    """Results of language models in several attempts."""
    missing: list[str]
    """Cells without a result, in words."""
    failures: Sequence[FailedCell]
    """Those of them that failed when they were last tried."""

    @classmethod
    def of(cls, run: Run, method: Method = "studentised") -> Report:
        """Compute all statistics of the finished cells.

        Args:
            run: the run.
            method: of the intervals, as in :mod:`rlbench_suite.evaluation.statistics.aggregates`.

        Raises:
            ValueError: there are none.
        """
        groups: dict[tuple[str, str], list[CellResult]] = {}
        done = {result.cell: result for result in run.results()}
        for result in done.values():
            groups.setdefault((result.agent, result.task), []).append(result)
        if not groups:
            raise ValueError(f"The run in {run.path} has no finished cell to report on.")
        scores: dict[str, dict[str, list[float]]] = {}
        constrained: dict[str, dict[str, list[float]]] = {}
        tails: dict[str, dict[str, list[float]]] = {}
        for (agent, task), results in groups.items():
            card = find_card(task)
            if worst_tenths := [result.worst_tenth for result in results if result.worst_tenth is not None]:
                tails.setdefault(agent, {})[task] = worst_tenths
            scores.setdefault(agent, {})[task] = [result.score for result in results]
            constrained.setdefault(agent, {})[task] = [card.constrained(r.score, r.mean_cost) for r in results]
        anchors = {task: run.manifest.scale(task).standard_error for task in run.manifest.references}
        keys = [(agent, task) for task in run.manifest.references for agent in scores if task in scores[agent]]

        def averaged(
            values: dict[str, dict[str, list[float]]], keys: list[tuple[str, str]]
        ) -> dict[tuple[str, str], Estimate]:
            estimates = means([{task: values[agent][task]} for agent, task in keys], method=method)
            return {
                key: with_error(estimate, anchors[key[1]](estimate.point))
                for key, estimate in zip(keys, estimates, strict=True)
            }

        failures = Counter((cell.agent, cell.task) for cell in run.failures())
        unfinished = {agent for agent, _ in failures}
        rates = {key: [result.success_rate for result in results] for key, results in groups.items()}
        by_seed = dict(zip(rates, means([{task: values} for (_, task), values in rates.items()]), strict=True))
        broken = [(agent, task) for agent, task in keys if constrained[agent][task] != scores[agent][task]]
        averages = averaged(scores, keys)
        constrained_averages = averages | averaged(constrained, broken)
        worst = averaged(tails, [(agent, task) for agent, task in keys if task in tails.get(agent, ())])
        pairs = {key: pairs for key in groups if key not in failures and (pairs := pairs_of(*key, groups))}
        gaps = means([{task: gaps} for (_, task), gaps in pairs.items()], method=method)
        # An agent with failed cells has no summary: a mean over the others would reward failing where it does badly.
        complete_scores = {agent: tasks for agent, tasks in scores.items() if agent not in unfinished}
        shared = (
            set.intersection(*(set(tasks) for tasks in complete_scores.values())) if complete_scores else set[str]()
        )
        comparison = compare(complete_scores, anchors=anchors, method=method) if shared else None
        return cls(
            run=run,
            method=method,
            rows=[
                row_of(
                    run,
                    *key,
                    groups[key],
                    averages[key],
                    constrained_averages[key],
                    worst.get(key),
                    by_seed[key],
                    failures[key],
                )
                for key in keys
            ],
            transfers=[Transfer(agent, find_card(task), gap) for (agent, task), gap in zip(pairs, gaps, strict=True)],
            gaps=[
                gap
                for (agent, task), results in groups.items()
                if (agent, task) not in failures and (gap := gap_of(agent, find_card(task), results, method))
            ],
            comparison=comparison,
            constrained={
                agent: comparison.agents[agent].iqm
                if all(tasks[task] == scores[agent][task] for task in shared)  # violates nothing, so it is the same IQM
                else with_error(
                    iqm({task: tasks[task] for task in sorted(shared)}, method=method),
                    error_of_mean({task: tasks[task] for task in shared}, anchors),
                )
                for agent, tasks in constrained.items()
                if agent in complete_scores and comparison and any(find_card(task).constraint for task in shared)
            },
            above_zero={
                agent: probability_above({task: tasks[task] for task in sorted(shared or tasks)}, 0.0)
                for agent, tasks in complete_scores.items()
            },
            models=passing(run),
            missing=[str(cell) for cell in run.manifest.cells() if cell not in done],
            failures=run.failures(),
        )

    def privileged(self, agent: str) -> list[TaskCard]:
        """Return the cards of the tasks whose state or params an agent reads."""
        return [row.card for row in self.rows if row.agent == agent and row.privileged]

    def broken(self, agent: str) -> list[TaskCard]:
        """Return the cards of the tasks whose constraints an agent violates, among those of all agents."""
        tasks = self.comparison.tasks if self.comparison else ()
        return [row.card for row in self.rows if row.agent == agent and row.violates and row.card.id in tasks]


# -- the terminal ----------------------------------------------------------------------------------------------------

_RESULTS = {"return", "constrained", "worst tenth", "success", "cost"}
"""Columns that are empty for an agent with failed cells."""
_BROKEN = " !"
"""Mark of a score that breaks a constraint. A sentence below the tables explains it."""
_FLOORED = " ~"
"""Mark of a score with episodes whose return is not finite."""
_PRIVILEGED = " †"
"""Mark of an agent that reads the state or params of the task. A sentence below the tables explains it."""
_VERDICT = {"yes": "green", "no": "red", "unclear": "yellow", "failed": "red"}
"""Colours of verdicts."""


_LEAST = (
    "worst tenth", "seconds a success", "cost", "all seeds", "steps/s", "reference", "zero", "return", "success",
    "constrained", "Constrained IQM",
    "Median", "Mean", "beats 0", "Optimality gap", "form", "instances", "tokens in", "tokens out", "best trivial",
)  # fmt: skip
"""Columns that a narrow terminal omits, in this order. The page has them all."""


def print_report(report: Report, console: Console) -> None:
    """Print the tables: each task, then all tasks together."""
    limited = any(row.card.constraint for row in report.rows)
    rows: list[dict[str, str | Text]] = [
        {
            "task": row.card.name,
            "agent": row.agent + _PRIVILEGED * row.privileged,
            "zero": f"{row.scale.zero.mean:.4g} ({row.scale.zero_player})",
            "reference": f"{row.scale.reference.mean:.4g}",
            "return": f"{row.mean_return:.4g}",
            "score": _with_interval(row.score) + _BROKEN * row.violates + _FLOORED * bool(row.floored),
            **({"constrained": _with_interval(row.constrained) if row.card.constraint else "-"} if limited else {}),
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
                "agent": transfer.agent + _PRIVILEGED * bool(report.privileged(transfer.agent)),
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
                "agent": gap.agent + _PRIVILEGED * bool(report.privileged(gap.agent)),
                "train score": _with_interval(gap.train),
                "test score": _with_interval(gap.test),
                "gap": gap.gap_text,
            }
            for gap in report.gaps
        ]
        _print_table("Generalisation", rows, console)
    if report.models:
        _print_table("Language models", [_attempts(passing_row) for passing_row in report.models], console)
    if report.comparison:
        rows = []
        for agent, summary in report.comparison.agents.items():
            values = {title: getattr(summary, name) for name, title in AGGREGATES.items()}
            values["P(beats 0)"] = report.above_zero[agent]
            steps, seconds = _training(report, agent)
            costs = {"training steps": steps, "training seconds": seconds}
            texts_by_title = {title: _with_interval(value) for title, value in values.items()}
            if agent in report.constrained:
                broken = _BROKEN * bool(report.broken(agent))
                texts_by_title = {
                    "IQM": texts_by_title.pop("IQM") + broken,
                    "Constrained IQM": _with_interval(report.constrained[agent]),
                    "Mean": texts_by_title.pop("Mean") + broken,
                } | texts_by_title
            rows.append({"agent": agent + _PRIVILEGED * bool(report.privileged(agent)), **texts_by_title, **costs})
        count = len(report.comparison.tasks)
        _print_table(f"Together ({count} task{'s' * (count > 1)})", rows, console)
    console.print(
        "Scores: 0 is the better of random play and doing nothing, 1 the task's reference, with 95 % intervals over "
        "seeds. Training: of one seed on one task, means over seeds and tasks, without compilation."
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
        {f"pass@{samples}": model.at_least_one[samples], f"pass^{samples}": model.all_right[samples]}
        if samples > 1
        else {}
    )
    return {
        "task": model.card.name,
        "agent": model.agent,
        "form": model.form,
        "instances": str(model.instances),
        "best trivial": "-" if model.best_trivial is None else f"{model.best_trivial:.3f}",
        **{name: _rate(score) for name, score in ({"pass@1": model.at_least_one[1]} | several).items()},
        "tokens in": chart.number(model.input_tokens),
        "tokens out": chart.number(model.output_tokens) + "*" * model.estimated,
        "price": "-" if model.dollars is None else f"${model.dollars:.4g}",
    }


def _rate(score: Score) -> str:
    return f"{score.mean:.3f} [{score.low:.2f}, {score.high:.2f}]"


def _print_table(title: str, rows: Sequence[Mapping[str, str | Text]], console: Console) -> list[str]:
    """Print the columns for which there is room, and return their names."""
    widest = {name: max((row[name] for row in rows), key=len) for name in rows[0]}
    for count in range(len(_LEAST) + 1):
        names = [name for name in rows[0] if name not in _LEAST[:count]]
        trial = _table(title, names, [widest])  # as wide as the whole table, and measured faster
        if Measurement.get(console, console.options.update(width=500), trial).maximum <= console.width:
            break
    console.print(_table(title, names, rows))
    return names


def _table(title: str, names: list[str], rows: Sequence[Mapping[str, str | Text]]) -> Table:
    """Return the table of some columns."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        is_text = name in ("task", "agent")
        heading = name.replace(" ", "\n")  # numbers are narrower than their names
        table.add_column(heading, justify="left" if is_text else "right", vertical="bottom", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell := row[name], str) else cell for name in names))
    return table


def _training(report: Report, agent: str) -> tuple[str, str]:
    """Return the training steps and seconds of a seed, means over the aggregated tasks, as on leaderboards."""
    tasks = report.comparison.tasks if report.comparison else ()
    rows = [row for row in report.rows if row.agent == agent and row.card.id in tasks and row.step_unit]
    if not rows:
        return "-", "-"
    steps = chart.number(sum(row.training_steps for row in rows) / len(rows))
    return steps + unit(rows[0])[:5], f"{sum(row.train_seconds for row in rows) / len(rows):.1f}"


def _steps(row: Row) -> str:
    return f"{chart.number(row.training_steps)}{unit(row)[:5]}" if row.step_unit else "-"


def _seconds(row: Row) -> str:
    return f"{row.train_seconds:.1f}" if row.step_unit else "-"


def _with_interval(estimate: Estimate) -> str:
    return f"{estimate.point:z.3f} {interval(estimate) or '-'}"


# -- the page --------------------------------------------------------------------------------------------------------


def write_html(report: Report) -> None:
    """Write ``report.html``: one file without scripts and without requests to the network."""
    manifest = report.run.manifest
    agents = list(manifest.hyperparameters)
    colour = {agent: i % chart.COLOURS for i, agent in enumerate(agents)}
    curves = report.run.read_curves()
    shared = report.comparison.tasks if report.comparison else ()
    unfinished = {cell.agent for cell in report.failures}
    complete_curves = {key: seeds for key, seeds in curves.items() if key[0] not in unfinished}
    text = render(
        "rlbench_suite.evaluation.report",
        "report.html",
        title=f"{', '.join(agents)}: {manifest.budget} evaluation",
        version=manifest.version,
        agents=agents,
        colour=colour,
        method=report.method,
        tiles=list(_tiles(report)),
        said=list(remarks(report)),
        aggregates=list(_aggregate_charts(report, colour)),
        compared=_compared(report),
        improvement=_improvement(report),
        rows=report.rows,
        transfers=report.transfers,
        gaps=report.gaps,
        models=report.models,
        efficiency=list(
            learning_curves.charts(complete_curves, {task: manifest.scale(task) for task in shared}, shared, colour)
        ),
        curves=list(_curve_charts(report, curves, colour)),
        run_facts=_run_facts(report),
        manifest=manifest.model_dump_json(indent=2),
    )
    page = report.run.path / "report.html"
    with writing(page), replacing(page) as draft:
        draft.write_text(text)


def _tiles(report: Report) -> Iterable[dict[str, Any]]:
    """Yield the headline of each agent that has a result."""
    summaries = report.comparison.agents if report.comparison else {}
    for agent in report.run.manifest.hyperparameters:
        if rows := [row for row in report.rows if row.agent == agent]:
            steps, seconds = _training(report, agent)
            yield {
                "agent": agent,
                "broken": len(report.broken(agent)),
                "privileged": len(report.privileged(agent)),
                "constrained": report.constrained.get(agent),
                "iqm": summaries[agent].iqm if agent in summaries else None,
                "failed": sum(row.failed for row in rows),
                "shared": len(report.comparison.tasks) if report.comparison else 0,
                "steps": steps,
                "seconds": seconds,
                "beaten": sum(row.beats_zero == "yes" for row in rows),
                "tasks": len(rows),
            }


def _run_facts(report: Report) -> dict[str, str]:
    manifest = report.run.manifest
    machine = manifest.sittings[-1].machine
    return {
        "Seeds": f"{manifest.seeds} for each agent and task",
        "Budget": f"{manifest.budget}, protocol {manifest.protocol}",
        "Processor": f"{machine.cpu}, {machine.cores} cores",
        "Instructions": f"{machine.instruction_set} {machine.vector_instructions}".strip(),
        "Trained on": ", ".join(sorted({result.device for result in report.run.results()})),
        "Platform": f"{machine.platform}, Python {machine.python}",
        "Packages": ", ".join(f"{name} {number}" for name, number in machine.packages.items()),
        "Revision": machine.git_revision or "not a checkout",
        "Started": f"{manifest.sittings[0].started:%Y-%m-%d %H:%M} UTC",
        "Cell time": f"{sum(row.wall_seconds for row in report.rows):.0f} s over all workers",
        "Energy": energy_text(
            [sitting.energy_joules for sitting in manifest.sittings], sum(row.solved for row in report.rows)
        ),
    }


def _aggregate_charts(report: Report, colour: dict[str, int]) -> Iterable[Markup]:
    if report.comparison is None:
        return
    summaries = report.comparison.agents
    for name, title in AGGREGATES.items():
        values = {agent: getattr(summary, name) for agent, summary in summaries.items()}
        better = " (lower is better)" if name == "optimality_gap" else ""
        yield chart.intervals(
            title + better, [chart.Interval(a, v.point, v.low, v.high, colour[a]) for a, v in values.items()]
        )
    profiles = [
        chart.Line(agent, s.profile.taus, s.profile.fraction, colour[agent], s.profile.low, s.profile.high)
        for agent, s in summaries.items()
    ]
    yield chart.lines(
        "Performance profile", profiles, x_label="score τ", y_label="fraction of runs above τ", width=1064
    )


def _compared(report: Report) -> list[str]:
    """Return the agents that are compared with each other: all of them, or none if there is only one."""
    agents = list(report.comparison.agents) if report.comparison else []
    return agents if len(agents) > 1 else []


def _improvement(report: Report) -> dict[str, list[Estimate | None]]:
    """Return, for each agent, the probability that it scores above 0, and that it beats each compared agent."""
    table: dict[str, list[Estimate | None]] = {}
    for x, above in report.above_zero.items():
        others = [report.comparison.improvement.get((x, y)) for y in _compared(report)] if report.comparison else []
        table[x] = [above, *others]
    return table


def _curve_charts(
    report: Report, curves: Mapping[tuple[str, str], Mapping[int, TrainingCurve]], colour: dict[str, int]
) -> Iterable[Markup]:
    failures = {(cell.agent, cell.task) for cell in report.failures}
    for task in dict.fromkeys(task for _, task in curves):
        scale = report.run.manifest.scale(task)
        series = []
        for (agent, _), seeds in ((key, value) for key, value in curves.items() if key[1] == task):
            scored = {
                seed: (curve.steps, scale.score(curve.returns)) for seed, curve in seeds.items() if len(curve.steps)
            }
            for seed, (steps, values) in scored.items():
                series.append(chart.Line(f"{agent}, seed {seed}", steps, values, colour[agent], faint=True))
            same_steps = {tuple(steps) for steps, _ in scored.values()}
            if len(scored) > 1 and len(same_steps) == 1 and (agent, task) not in failures:
                steps = np.array(same_steps.pop())
                values = np.array([values for _, values in scored.values()])
                has_score = ~np.isnan(values).any(0)
                series.append(
                    chart.Line(f"{agent}, mean", steps[has_score], values[:, has_score].mean(0), colour[agent])
                )
        yield chart.lines(find_card(task).name, series, x_label="training steps", y_label="training score")

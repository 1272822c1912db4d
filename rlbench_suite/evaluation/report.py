"""What a run says: a table in the terminal, and one HTML file that stands by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from rlbench_suite.card import Score, TaskCard
from rlbench_suite.evaluation import chart
from rlbench_suite.evaluation.statistics import Comparison, Estimate, compare, mean, probability_of_improvement
from rlbench_suite.evaluation.store import CellResult, Run
from rlbench_suite.evaluation.writing import replacing, writing
from rlbench_suite.registry import card as find_card

AGGREGATES = {"iqm": "IQM", "mean": "Mean", "median": "Median", "optimality_gap": "Optimality gap"}


@dataclass(frozen=True)
class Row:
    """An agent on a task."""

    agent: str
    card: TaskCard
    random: Score
    reference: Score
    mean_return: float
    score: Estimate
    """Mean normalised score and its 95 % interval over seeds."""
    success_rate: float
    training_steps: float
    """Mean over seeds."""
    step_unit: str
    """``environment`` or ``gradient``, what the training steps are steps of; empty for a player that was not trained
    here."""
    train_seconds: float
    """Mean over seeds, compilation excluded."""
    steps_per_second: float | None
    wall_seconds: float
    """Of all seeds together, compilation and evaluation included."""
    seeds: int

    @property
    def beats_random(self) -> str:
        """``yes`` if the agent's interval lies above the random player's, ``no`` if below it, else ``unclear``."""
        span = self.reference.mean - self.random.mean
        low, high = ((end - self.random.mean) / span for end in (self.random.low, self.random.high))
        if self.score.low > high:
            return "yes"
        return "no" if self.score.high < low else "unclear"


@dataclass(frozen=True)
class Transfer:
    """What becomes of an agent's score where it is judged on another task than it was trained on."""

    agent: str
    card: TaskCard
    gap: Estimate
    """Mean normalised score here less that on ``card.trained_on``, and its 95 % interval over the seeds that both have.
    A seed is a pair: the same training, and episodes of the same environment seeds."""


@dataclass(frozen=True)
class Report:
    """A run in numbers."""

    run: Run
    rows: list[Row]
    transfers: list[Transfer]
    """Of what was judged both where it was trained and elsewhere."""
    comparison: Comparison | None
    """None where there is no task that all agents have."""
    above_random: dict[str, Estimate]
    """Probability that a run of the agent beats the random player's mean on a task drawn at random."""
    missing: list[str]

    @classmethod
    def of(cls, run: Run) -> Report:
        """Compute all statistics of the cells that are there.

        Raises:
            ValueError: there are none.
        """
        groups: dict[tuple[str, str], list[CellResult]] = {}
        for result in run.results():
            groups.setdefault((result.agent, result.task), []).append(result)
        if not groups:
            raise ValueError(f"The run in {run.path} has no finished cell to report on.")
        scores: dict[str, dict[str, list[float]]] = {}
        for (agent, task), results in groups.items():
            scores.setdefault(agent, {})[task] = [result.score for result in results]
        shared = set.intersection(*(set(tasks) for tasks in scores.values()))
        return cls(
            run=run,
            rows=[
                _row(run, agent, task, groups[agent, task])
                for task in run.manifest.references
                for agent in scores
                if task in scores[agent]
            ],
            transfers=[
                transfer
                for agent, task in groups
                if (transfer := _transfer(agent, find_card(task), groups)) is not None
            ],
            comparison=compare(scores) if shared else None,
            above_random={
                agent: probability_of_improvement(tasks, {task: [0.0] for task in shared or tasks})
                for agent, tasks in scores.items()
            },
            missing=[str(cell) for cell in run.manifest.cells() if not run.cell_path(cell).exists()],
        )


def _row(run: Run, agent: str, task: str, results: list[CellResult]) -> Row:
    speeds = [result.steps_per_second for result in results if result.steps_per_second]
    return Row(
        agent=agent,
        card=find_card(task),
        random=run.manifest.references[task]["random"],
        reference=run.manifest.references[task]["reference"],
        mean_return=float(np.mean([result.mean_return for result in results])),
        score=mean({task: [result.score for result in results]}),
        success_rate=float(np.mean([result.success_rate for result in results])),
        training_steps=float(np.mean([result.training_steps for result in results])),
        step_unit=results[0].step_unit if any(result.training_steps for result in results) else "",
        train_seconds=float(np.mean([result.train_seconds for result in results])),
        steps_per_second=float(np.median(speeds)) if speeds else None,
        wall_seconds=sum(result.wall_seconds for result in results),
        seeds=len(results),
    )


def _transfer(agent: str, card: TaskCard, groups: Mapping[tuple[str, str], list[CellResult]]) -> Transfer | None:
    trained = {result.seed: result.score for result in groups.get((agent, card.trained_on), [])}
    pairs = [(result.score, trained[result.seed]) for result in groups[agent, card.id] if result.seed in trained]
    return Transfer(agent, card, mean({card.id: [here - there for here, there in pairs]})) if pairs else None


# -- the terminal ----------------------------------------------------------------------------------------------------

_VERDICT = {"yes": "[green]yes[/]", "no": "[red]no[/]", "unclear": "[yellow]unclear[/]"}


_LEAST = (
    "all seeds", "steps/s", "reference", "random", "return", "success", "Median", "Mean", "beats random",
    "Optimality gap",
)  # fmt: skip
"""Columns that a narrow terminal does without, the first to go first; the page has them all."""


def print_report(report: Report, console: Console) -> None:
    """The tables: each task, then all tasks together."""
    rows = [
        {
            "task": row.card.name,
            "agent": row.agent,
            "random": f"{row.random.mean:.4g}",
            "reference": f"{row.reference.mean:.4g}",
            "return": f"{row.mean_return:.4g}",
            "score": _with_interval(row.score),
            "beats random": _VERDICT[row.beats_random],
            "success": f"{row.success_rate:.0%}",
            "training steps": _steps(row),
            "training seconds": _seconds(row),
            "steps/s": _speed(row.steps_per_second),
            "all seeds": f"{row.wall_seconds:.0f} s",
        }
        for row in report.rows
    ]
    _print_table("Each task", rows, console)
    if report.transfers:
        rows = [
            {
                "task": transfer.card.name,
                "agent": transfer.agent,
                "trained on": find_card(transfer.card.trained_on).name,
                "score less that where trained": _signed(transfer.gap),
            }
            for transfer in report.transfers
        ]
        _print_table("Transfer", rows, console)
    if report.comparison:
        rows = []
        for agent, summary in report.comparison.agents.items():
            values = {title: getattr(summary, name) for name, title in AGGREGATES.items()}
            values["P(beats random)"] = report.above_random[agent]
            steps, seconds = _training(report, agent)
            costs = {"training steps": steps, "training seconds": seconds}
            rows.append({"agent": agent} | {title: _with_interval(value) for title, value in values.items()} | costs)
        _print_table(f"Together ({len(report.comparison.tasks)} tasks)", rows, console)
    console.print(
        "Scores: 0 is a random player, 1 the task's reference; with 95 % intervals over seeds. Training: of one seed, "
        'compilation excluded; "all seeds" is their whole time, with compilation and evaluation.',
        style="dim",
    )
    for sentence in _remarks(report):
        console.print(sentence, style="yellow", highlight=False, markup=False)


def _print_table(title: str, rows: list[dict[str, str]], console: Console) -> None:
    dropped: tuple[str, ...] = ()
    for count in range(len(_LEAST) + 1):
        dropped = _LEAST[:count]
        table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
        for name in (name for name in rows[0] if name not in dropped):
            left = name in ("task", "agent")
            heading = name.replace(" ", "\n")  # numbers are narrower than their names
            table.add_column(heading, justify="left" if left else "right", vertical="bottom", no_wrap=True)
        for row in rows:
            table.add_row(*(text for name, text in row.items() if name not in dropped))
        if Measurement.get(console, console.options.update(width=500), table).maximum <= console.width:
            break
    console.print(table)


def _remarks(report: Report) -> Iterable[str]:
    """What must be known to read the numbers rightly."""
    yield from _unequal_training(report)
    for name, saved in report.run.manifest.checkpoints.items():
        yield (
            f"{name} is one saved policy of {saved.agent}, not trained here: its intervals hold the luck of the "
            "episodes, not that of training."
        )
    for agent, tasks in report.run.manifest.not_applicable.items():
        for task, reason in tasks.items():
            yield f"Not applicable: {agent} on {task}: {reason.rstrip('.')}."
    if report.comparison is None:
        yield "The agents have no task in common, so there is nothing to aggregate or compare."
    elif report.comparison.left_out:
        yield f"Not every agent has {', '.join(report.comparison.left_out)}: left out of the aggregates."
    there = {(transfer.agent, transfer.card.id) for transfer in report.transfers}
    for row in report.rows:
        if row.card.trained_on and (row.agent, row.card.id) not in there:
            yield (
                f"On {row.card.name}, {row.agent} is a policy of {row.card.trained_on}; run it there too, to see what "
                "transfer costs."
            )
    if report.missing:
        more = f"; and {len(report.missing) - 3} more" if len(report.missing) > 3 else ""
        yield f"Missing, and in no number here: {'; '.join(report.missing[:3])}{more}."
    if any(row.seeds == 1 for row in report.rows):
        yield "One seed has no interval; ask for at least 5 seeds to know how sure a score is."


UNEQUAL = 1.1
"""Ratio of training steps above which agents count as trained unequally long: agents round up to whole updates."""


def _unequal_training(report: Report) -> Iterable[str]:
    """Warn where scores of a task were not bought by the same number of steps."""
    for task in dict.fromkeys(row.card.name for row in report.rows):
        rows = [row for row in report.rows if row.card.name == task and row.step_unit]
        if any(
            max(steps) > UNEQUAL * min(steps)
            for unit in ("environment", "gradient")
            if (steps := [row.training_steps for row in rows if row.step_unit == unit])
        ):
            counts = ", ".join(f"{row.agent} {row.training_steps:,.0f}{_of(row)}" for row in rows)
            yield f"Unequal training on {task}, so its scores do not compare agents alone: {counts} steps."
    for agent in dict.fromkeys(row.agent for row in report.rows if row.step_unit == "gradient"):
        yield (
            f"{agent} learns from a recorded dataset: its training steps are gradient steps, each on a minibatch of "
            "the dataset, and do not compare with steps of an environment, of which it makes none."
        )


def _training(report: Report, agent: str) -> tuple[str, str]:
    """Training steps and seconds of a seed on all the tasks that are aggregated."""
    tasks = report.comparison.tasks if report.comparison else ()
    rows = [row for row in report.rows if row.agent == agent and row.card.id in tasks and row.step_unit]
    if not rows:
        return "-", "-"
    steps = chart.number(sum(row.training_steps for row in rows))
    return steps + _of(rows[0])[:5], f"{sum(row.train_seconds for row in rows):.1f}"


def _steps(row: Row) -> str:
    return f"{chart.number(row.training_steps)}{_of(row)[:5]}" if row.step_unit else "-"


def _of(row: Row) -> str:
    return " gradient" if row.step_unit == "gradient" else ""


def _seconds(row: Row) -> str:
    return f"{row.train_seconds:.1f}" if row.step_unit else "-"


def _with_interval(estimate: Estimate) -> str:
    return f"{estimate.point:.3f} {_interval(estimate)}"


def _interval(estimate: Estimate) -> str:
    return f"[{estimate.low:.2f}, {estimate.high:.2f}]" if math.isfinite(estimate.low) else "-"


def _signed(estimate: Estimate) -> str:
    """Two significant digits: a difference may be far smaller than what it is the difference of."""
    ends = f"[{estimate.low:+.2g}, {estimate.high:+.2g}]" if math.isfinite(estimate.low) else "-"
    return f"{estimate.point:+.2g} {ends}"


def _speed(steps_per_second: float | None) -> str:
    return chart.number(steps_per_second) if steps_per_second else "-"


# -- the page --------------------------------------------------------------------------------------------------------


def write_html(report: Report) -> None:
    """Write ``report.html``: no script, nothing from the network."""
    manifest = report.run.manifest
    agents = list(manifest.hyperparameters)
    colour = {agent: i % chart.COLOURS for i, agent in enumerate(agents)}
    template = Template(files("rlbench_suite.evaluation").joinpath("report.html").read_text())
    sitting = manifest.sittings[-1]
    page = template.substitute(
        title=escape(f"{', '.join(agents)}: {manifest.budget} evaluation"),
        version=escape(manifest.version),
        headline="".join(_headlines(report)),
        legend="".join(f'<span class="key"><i class="c{colour[agent]}"></i>{escape(agent)}</span>' for agent in agents),
        remarks="".join(f'<p class="remark">{escape(sentence)}</p>' for sentence in _remarks(report)),
        aggregates="".join(_aggregate_charts(report, colour)),
        improvement=_improvement_table(report),
        tasks="".join(_task_row(row) for row in report.rows),
        transfer=_transfer_table(report.transfers),
        curves="".join(_curve_charts(report, colour)),
        facts="".join(
            f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>"
            for name, value in {
                "Seeds": f"{manifest.seeds} for each agent and task",
                "Budget": f"{manifest.budget}, protocol {manifest.protocol}",
                "Processor": f"{sitting.machine.cpu}, {sitting.machine.cores} cores",
                "Instructions": sitting.machine.instruction_set,
                "Ran on": ", ".join(sorted({result.device for result in report.run.results()})),
                "Platform": f"{sitting.machine.platform}, Python {sitting.machine.python}",
                "Packages": ", ".join(f"{name} {number}" for name, number in sitting.machine.packages.items()),
                "Revision": sitting.machine.git_revision or "not a checkout",
                "Started": f"{manifest.sittings[0].started:%Y-%m-%d %H:%M} UTC",
                "Cell time": f"{sum(row.wall_seconds for row in report.rows):.0f} s over all workers",
            }.items()
        ),
        manifest=escape(manifest.model_dump_json(indent=2)),
    )
    path = report.run.path / "report.html"
    with writing(path), replacing(path) as unfinished:
        unfinished.write_text(page)


def _headlines(report: Report) -> Iterable[str]:
    for agent in report.run.manifest.hyperparameters:
        rows = [row for row in report.rows if row.agent == agent]
        if not rows:
            continue
        beaten = sum(row.beats_random == "yes" for row in rows)
        figure, note = "", ""
        if report.comparison:
            best, tasks = report.comparison.agents[agent].iqm, len(report.comparison.tasks)
            figure = f'<p class="figure">{best.point:.2f}</p>'
            note = f"IQM {_interval(best)} over {tasks} task{'s' * (tasks > 1)}<br>"
            steps, seconds = _training(report, agent)
            if steps != "-":
                note += f"{steps} training steps in {seconds} s a seed<br>"
        yield (
            f'<div class="tile"><h3>{escape(agent)}</h3>{figure}'
            f"<p>{note}beats random on {beaten} of {len(rows)} tasks</p></div>"
        )


def _aggregate_charts(report: Report, colour: dict[str, int]) -> Iterable[str]:
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


def _improvement_table(report: Report) -> str:
    """Probability that a run of the row's agent beats a run of the column's, where there is more than one."""
    agents = list(report.comparison.agents) if report.comparison else []
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", "random player", *(agents if len(agents) > 1 else ())))
    body = ""
    for x in report.above_random:
        values = [report.above_random[x]]
        if report.comparison and len(agents) > 1:
            values += [report.comparison.improvement.get((x, y), Estimate(math.nan, 0, 0)) for y in agents]
        cells = (
            "<td>–</td>" if math.isnan(v.point) else f"<td>{v.point:.2f} <small>{_interval(v)}</small></td>"
            for v in values
        )
        body += f"<tr><th>{escape(x)}</th>{''.join(cells)}</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _task_row(row: Row) -> str:
    return (
        f'<tr><th title="{escape(row.card.summary)}">{escape(row.card.name)}</th><td>{escape(row.agent)}</td>'
        f"<td>{row.random.mean:.4g}</td><td>{row.reference.mean:.4g}</td><td>{row.mean_return:.4g}</td>"
        f"<td><b>{row.score.point:.3f}</b> <small>{_interval(row.score)}</small></td>"
        f'<td class="{row.beats_random}">{row.beats_random}</td><td>{row.success_rate:.0%}</td>'
        f"<td>{row.seeds}</td><td>{f'{row.training_steps:,.0f}{_of(row)}' if row.step_unit else '–'}</td>"
        f"<td>{_seconds(row)}</td><td>{_speed(row.steps_per_second)}</td><td>{row.wall_seconds:.1f} s</td></tr>"
    )


def _transfer_table(transfers: Iterable[Transfer]) -> str:
    """What was judged elsewhere than trained; nothing where there is none."""
    body = "".join(
        f"<tr><th>{escape(transfer.card.name)}</th><td>{escape(transfer.agent)}</td>"
        f"<td>{escape(find_card(transfer.card.trained_on).name)}</td><td>{_signed(transfer.gap)}</td></tr>"
        for transfer in transfers
    )
    if not body:
        return ""
    head = "".join(f"<th>{name}</th>" for name in ("task", "agent", "trained on", "score less that where trained"))
    return (
        "<h2>Transfer</h2><p>The same policies where they were trained and in another simulator, seed by seed on the "
        "same episodes.</p>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _curve_charts(report: Report, colour: dict[str, int]) -> Iterable[str]:
    curves = report.run.read_curves()
    for task in dict.fromkeys(task for _, task in curves):
        anchors = report.run.manifest.references[task]
        low, span = anchors["random"].mean, anchors["reference"].mean - anchors["random"].mean
        series = []
        for (agent, _), seeds in ((key, value) for key, value in curves.items() if key[1] == task):
            scored = {seed: (steps, (returns - low) / span) for seed, (steps, returns) in seeds.items() if len(steps)}
            for seed, (steps, values) in scored.items():
                series.append(chart.Line(f"{agent}, seed {seed}", steps, values, colour[agent], faint=True))
            same_steps = {tuple(steps) for steps, _ in scored.values()}
            if len(scored) > 1 and len(same_steps) == 1:
                steps = np.array(same_steps.pop())
                values = np.array([values for _, values in scored.values()])
                seen = ~np.isnan(values).any(0)
                series.append(chart.Line(f"{agent}, mean", steps[seen], values[:, seen].mean(0), colour[agent]))
        yield chart.lines(find_card(task).name, series, x_label="training steps", y_label="training score")

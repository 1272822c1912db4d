"""Page of a report: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from markupsafe import Markup

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.evaluation.report import chart, front_rows, learning_curves, match_rows
from rlbench_suite.evaluation.report.page import render
from rlbench_suite.evaluation.report.report import AGGREGATES, Report
from rlbench_suite.evaluation.report.report_remarks import remarks
from rlbench_suite.evaluation.report.terminal_report import training_text
from rlbench_suite.evaluation.runs.computer import energy_text
from rlbench_suite.evaluation.runs.run import TrainingCurve
from rlbench_suite.evaluation.statistics.intervals import Estimate
from rlbench_suite.foundation.atomic_files import replacing, writing


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
        compared=_compared_agents(report),
        improvement=_improvement(report),
        rows=report.rows,
        transfers=report.transfers,
        gaps=report.gaps,
        fronts=report.fronts,
        front_charts=list(front_rows.charts(report.fronts, colour)),
        matches=report.matches,
        match_charts=list(match_rows.charts(report.matches, colour)),
        models=report.models,
        efficiency=list(
            learning_curves.charts(
                complete_curves, {task: manifest.scale(task) for task in shared}, shared, colour
            )
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
            steps, seconds = training_text(report, agent)
            yield {
                "agent": agent,
                "broken": len(report.violated_cards(agent)),
                "privileged": len(report.privileged_cards(agent)),
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
            [sitting.energy_joules for sitting in manifest.sittings],
            sum(row.solved for row in report.rows),
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
            title + better,
            [chart.Interval(a, v.point, v.low, v.high, colour[a]) for a, v in values.items()],
        )
    profiles = [
        chart.Line(
            agent, s.profile.taus, s.profile.fraction, colour[agent], s.profile.low, s.profile.high
        )
        for agent, s in summaries.items()
    ]
    yield chart.lines(
        "Performance profile",
        profiles,
        x_label="score τ",
        y_label="fraction of runs above τ",
        width=1064,
    )


def _compared_agents(report: Report) -> list[str]:
    """Return the agents that are compared with each other: all, or none if there is only one."""
    agents = list(report.comparison.agents) if report.comparison else []
    return agents if len(agents) > 1 else []


def _improvement(report: Report) -> dict[str, list[Estimate | None]]:
    """Return each agent's probabilities to score above 0 and to beat each compared agent."""
    table: dict[str, list[Estimate | None]] = {}
    for x, above in report.above_zero.items():
        improvements = (
            [report.comparison.improvement.get((x, y)) for y in _compared_agents(report)]
            if report.comparison
            else []
        )
        table[x] = [above, *improvements]
    return table


def _curve_charts(
    report: Report,
    curves: Mapping[tuple[str, str], Mapping[int, TrainingCurve]],
    colour: dict[str, int],
) -> Iterable[Markup]:
    failures = {(cell.agent, cell.task) for cell in report.failures}
    for task in dict.fromkeys(task for _, task in curves):
        scale = report.run.manifest.scale(task)
        series = []
        for (agent, _), seeds in ((key, value) for key, value in curves.items() if key[1] == task):
            scored = {
                seed: (curve.steps, scale.score(curve.returns))
                for seed, curve in seeds.items()
                if len(curve.steps)
            }
            for seed, (steps, values) in scored.items():
                series.append(
                    chart.Line(f"{agent}, seed {seed}", steps, values, colour[agent], faint=True)
                )
            same_steps = {tuple(steps) for steps, _ in scored.values()}
            if len(scored) > 1 and len(same_steps) == 1 and (agent, task) not in failures:
                steps = np.array(same_steps.pop())
                values = np.array([values for _, values in scored.values()])
                has_score = ~np.isnan(values).any(0)
                series.append(
                    chart.Line(
                        f"{agent}, mean",
                        steps[has_score],
                        values[:, has_score].mean(0),
                        colour[agent],
                    )
                )
        yield chart.lines(
            find_card(task).name, series, x_label="training steps", y_label="training score"
        )

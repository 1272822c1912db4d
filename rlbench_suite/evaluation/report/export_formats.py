"""Export results of a run as a LaTeX table, a CSV file, or results of a Hugging Face model card."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Any

import yaml

from rlbench_suite.core.registry import constraint
from rlbench_suite.evaluation.report.comparison import verdicts
from rlbench_suite.evaluation.report.report_remarks import on_few_seeds
from rlbench_suite.evaluation.report.run_selection import select_runs
from rlbench_suite.evaluation.runs.manifest import CellResult
from rlbench_suite.evaluation.runs.run import (
    Run,
    anchor_errors,
    cells_by_agent,
    failure_counts,
    violates,
)
from rlbench_suite.evaluation.statistics import aggregates
from rlbench_suite.evaluation.statistics.intervals import Estimate
from rlbench_suite.evaluation.statistics.power import LEVEL
from rlbench_suite.evaluation.statistics.unseen_runs import on_unseen

COLUMNS = (
    "task",
    "agent",
    "seed",
    "score",
    "return",
    "success",
    "cost",
    "limit",
    "violates",
    "constrained_score",
    "privileged",
    "failed",
)
"""Columns of the CSV file, one row for each cell.

A task without a constraint has no limit. A failed cell has no numbers, and its agent no mean on the
task until it is done.
"""

_ESCAPED = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "_": r"\_", "%": r"\%", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def latex(run: Run) -> str:
    """Return a table of mean scores with 95 % intervals.

    It has a row for each task and a column for each agent.

    Its head says how many seeds the scores have. It needs the package ``booktabs``. The last rows
    are the mean and the interquartile mean over the tasks that all agents have. In rows of tasks
    and of the mean, the best score and those that :mod:`.comparison` does not tell from it are
    bold, unless that is all of them. A score that violates the constraint of a task has a dagger
    and is never bold. Where a task has a constraint, another row has the interquartile mean of
    constrained scores.
    """
    failed = failure_counts([run])
    cells = {
        agent: {
            task: list(seeds.values())
            for task, seeds in tasks.items()
            if (agent, task) not in failed
        }
        for agent, tasks in cells_by_agent([run]).items()
    }
    unfinished = sorted({agent for agent, _ in failed})
    errors = anchor_errors([run])
    scores = _scores(cells, attrgetter("score"))
    constrained = _scores(cells, attrgetter("constrained_score"))
    broken = {
        agent: [task for task, results in results_by_task.items() if violates(results)]
        for agent, results_by_task in cells.items()
    }
    tasks = list(dict.fromkeys(task for by_task in scores.values() for task in by_task))
    complete_scores = {
        agent: by_task for agent, by_task in scores.items() if agent not in unfinished
    }
    shared = [
        task
        for task in tasks
        if complete_scores and all(task in by_task for by_task in complete_scores.values())
    ]
    better_pairs, rows = _find_better_pairs(run), []
    for task in tasks:
        values = {
            agent: _summary(aggregates.mean, {task: by_task[task]}, errors)
            for agent, by_task in scores.items()
            if task in by_task
        }
        marked = {agent for agent in scores if task in broken[agent]}
        rows.append(
            _row(
                _name(task),
                values,
                list(scores),
                marked,
                _bold(values, marked, better_pairs.get(task, set())),
            )
        )
    summary_rows = []
    if shared:
        violating = {agent for agent in complete_scores if set(broken[agent]) & set(shared)}
        kinds = [
            (_MEAN, aggregates.mean, scores, violating),
            ("IQM", aggregates.iqm, scores, violating),
        ]
        if any(constraint(task) for task in shared):
            kinds.append(("Constrained IQM", aggregates.iqm, constrained, set()))
        if len(shared) < len(tasks):
            better_pairs = _find_better_pairs(*select_runs([run], tasks=",".join(shared)))
        for title, aggregate, scores_by_agent, marked in kinds:
            values = {
                agent: _summary(aggregate, {task: by_task[task] for task in shared}, errors)
                for agent, by_task in scores_by_agent.items()
                if agent in complete_scores
            }
            bold = _bold(values, marked, better_pairs[_MEAN]) if title == _MEAN else set[str]()
            summary_rows.append(
                _row(
                    f"{title} ({len(shared)} task{'s' * (len(shared) > 1)})",
                    values,
                    list(scores),
                    marked,
                    bold,
                )
            )
    numbers = sorted(
        {len(seed_scores) for by_task in scores.values() for seed_scores in by_task.values()}
    )
    if not numbers:
        raise ValueError(
            f"Every agent of {run.name} has failed cells on every task, so there is no number to "
            "export."
        )
    seeds = " to ".join(str(number) for number in dict.fromkeys((numbers[0], numbers[-1])))
    privileged = {cell.agent for cell in run.results() if cell.privileged}
    names = [_escape(agent) + "$^\\ddagger$" * (agent in privileged) for agent in scores]
    head = " & ".join([f"Task ({seeds} seed{'s' * (numbers[-1] > 1)})", *names]) + r" \\"
    lines = [
        "% Needs \\usepackage{booktabs}.",
        (
            "% Scores: 0 the best play without skill, 1 the reference; 95 % "
            "intervals over seeds."
        ),
        (
            "% Bold: the best score of a task or mean, and those that a paired permutation test "
            "does not tell from it at"
        ),
        (
            f"% the level of {LEVEL:.0%} with Holm's correction, as in `rlsuite-eval compare`; "
            "never all of them."
        ),
        *(
            ["% A dagger marks scores whose mean cost exceeds the task's limit."]
            if any(broken.values()) else []
        ),
        *(
            ["% A double dagger marks agents that read the state or parameters of a task."]
            if privileged else []
        ),
        *(f"% {sentence}" for sentence in on_few_seeds(numbers)),
        f"% {on_unseen(numbers[0], len(shared))}",
        *(f"% {agent} has failed cells: no number until they are done." for agent in unfinished),
        rf"\begin{{tabular}}{{l{'r' * len(scores)}}}", r"\toprule", head, r"\midrule", *rows,
        *([r"\midrule"] if summary_rows else []), *summary_rows, r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def tidy_csv(run: Run) -> str:
    """Return one row for each cell; see :data:`COLUMNS`. Numbers have all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in run.results():
        limit = constraint(result.task)
        writer.writerow([
            result.task, result.agent, result.seed, result.score, result.mean_return,
            result.success_rate, result.mean_cost, limit.limit if limit else None,
            violates([result]), result.constrained_score, result.privileged, False,
        ])  # fmt: skip
    for cell in run.failures():
        writer.writerow([cell.task, cell.agent, cell.seed, *[None] * (len(COLUMNS) - 4), True])
    return text.getvalue()


def huggingface(run: Run) -> str:
    """Return the metadata ``model-index`` of a model card, as YAML: one model for each agent.

    The layout is that of https://github.com/huggingface/hub-docs/blob/main/modelcard.md. Values are
    means over seeds. An agent with failed cells on a task has no result there, and a comment says
    so.
    """
    settings = {"budget": run.manifest.budget, "protocol": run.manifest.protocol}
    index = []
    failed = failure_counts([run])
    for agent, tasks in cells_by_agent([run]).items():
        results = []
        for task, seeds in tasks.items():
            if (agent, task) in failed:
                continue
            limit = constraint(task)
            cells = list(seeds.values())
            violated_note = ", violated" * violates(cells)
            privileged_note = ", privileged" * any(cell.privileged for cell in cells)
            cost = (
                f"Mean constraint cost (limit {limit.limit:g}{violated_note})"
                if limit
                else "Mean constraint cost"
            )
            metrics = {
                "mean_reward": ("Mean return", "mean_return"),
                "normalised_score": (f"Normalised score (1: reference{privileged_note})", "score"),
                "success_rate": ("Success rate", "success_rate"),
                "mean_cost": (cost, "mean_cost"),
            }
            if limit:
                metrics["constrained_score"] = (
                    "Normalised score, 0 where the cost exceeds the limit",
                    "constrained_score",
                )
            results.append({
                "task": {"type": "reinforcement-learning", "name": "Reinforcement learning"},
                "dataset": {
                    "type": task,
                    "name": _name(task),
                    "split": "test",
                    "args": {**settings, "seeds": len(cells), "episodes": cells[0].episodes},
                },
                "metrics": [
                    {
                        "type": kind,
                        "name": name,
                        "value": math.fsum(getattr(cell, key) for cell in cells) / len(cells),
                    }
                    for kind, (name, key) in metrics.items()
                ],
            })  # fmt: skip
        if results:
            index.append({"name": agent, "results": results})
    comments = "".join(
        f"# {agent} has no result on {_name(task)}: {number} of its cells failed.\n"
        for (agent, task), number in failed.items()
    )
    return comments + yaml.safe_dump({"model-index": index}, sort_keys=False, allow_unicode=True)


FORMATS: dict[str, Callable[[Run], str]] = {
    "latex": latex,
    "csv": tidy_csv,
    "huggingface": huggingface,
}
"""Functions that export a run, by the name of the format."""


def _scores(
    results_by_agent: dict[str, dict[str, list[CellResult]]], score: Callable[[CellResult], float]
) -> dict[str, dict[str, list[float]]]:
    scores: dict[str, dict[str, list[float]]] = {}
    for agent, tasks in results_by_agent.items():
        scores[agent] = {task: list(map(score, results)) for task, results in tasks.items()}
    return scores


_MEAN = "Mean"


def _find_better_pairs(run: Run) -> dict[str, set[tuple[str, str]]]:
    """Return pairs of agents that can be told apart, better one first, by row of the table.

    A row is a task or the mean over tasks.
    """
    better_pairs: dict[str, set[tuple[str, str]]] = {_MEAN: set()}
    with suppress(ValueError):  # there is one agent, or no two have a cell in common
        for verdict in verdicts([run]):
            for row, better in [
                (_MEAN, verdict.better),
                *((task.task, task.better) for task in verdict.tasks),
            ]:
                if better:
                    worse = verdict.second if better == verdict.first else verdict.first
                    better_pairs.setdefault(row, set()).add((better, worse))
    return better_pairs


def _bold(
    values: dict[str, Estimate], violating: set[str], better_pairs: set[tuple[str, str]]
) -> set[str]:
    """Return the best agent of a row and those that cannot be told from it.

    The set is empty if it would hold all agents that violate nothing.

    The only agent that violates nothing is best, because the others rank below it.
    """
    keepers = values.keys() - violating
    best = max(keepers, key=lambda agent: values[agent].point, default="")
    bold = {agent for agent in keepers if (best, agent) not in better_pairs}
    return bold if bold != keepers or len(keepers) == 1 < len(values) else set()


def _summary(
    aggregate: Callable[..., Estimate],
    scores: dict[str, list[float]],
    errors: Mapping[str, Callable[[float], float]],
) -> Estimate:
    return aggregates.with_error(aggregate(scores), aggregates.error_of_mean(scores, errors))


def _row(
    title: str, values: dict[str, Estimate], columns: list[str], violating: set[str], bold: set[str]
) -> str:
    texts = []
    for agent in columns:
        if agent not in values:
            texts.append("--")
            continue
        value = values[agent]
        point = rf"\textbf{{{_number(value.point)}}}" if agent in bold else _number(value.point)
        point += "$^\\dagger$" * (agent in violating)
        interval = rf" {{\scriptsize[{_number(value.low)}, {_number(value.high)}]}}"
        ends = interval if math.isfinite(value.low) and value.low < value.high else ""
        texts.append(point + ends)
    return " & ".join([_escape(title), *texts]) + r" \\"


def _number(value: float) -> str:
    return f"{value:z.3f}".replace("-", "$-$")


def _escape(text: Any) -> str:
    return "".join(_ESCAPED.get(letter, letter) for letter in str(text))


def _name(task: str) -> str:
    return task.split("/", 1)[1]

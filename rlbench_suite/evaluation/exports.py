"""Results of a run as a LaTeX table, a CSV file, or evaluation results of a Hugging Face model card."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from typing import Any

import yaml

from rlbench_suite.evaluation import statistics
from rlbench_suite.evaluation.intervals import Estimate
from rlbench_suite.evaluation.reading import FinishedRun, agents

COLUMNS = ("task", "agent", "seed", "score", "return", "success", "cost")
"""Columns of the CSV file, one row for each cell."""

_ESCAPED = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def latex(run: FinishedRun) -> str:
    """Return a table of mean scores with 95 % intervals: a row for each task, a column for each agent.

    It needs the package ``booktabs``. The last rows are the mean and the interquartile mean over the tasks that all
    agents have. The best mean of a row is bold; that says nothing about certainty.
    """
    scores = _scores(run)
    tasks = list(dict.fromkeys(task for own in scores.values() for task in own))
    shared = [task for task in tasks if all(task in own for own in scores.values())]
    rows = []
    for task in tasks:
        values = {agent: statistics.mean({task: own[task]}) for agent, own in scores.items() if task in own}
        rows.append(_row(_name(task), values, list(scores)))
    together = []
    if shared:
        common = {agent: {task: own[task] for task in shared} for agent, own in scores.items()}
        for title, aggregate in (("Mean", statistics.mean), ("IQM", statistics.iqm)):
            values = {agent: aggregate(own) for agent, own in common.items()}
            together.append(_row(f"{title} ({len(shared)} task{'s' * (len(shared) > 1)})", values, list(scores)))
    head = " & ".join(["Task", *map(_escape, scores)]) + r" \\"
    lines = [
        "% Needs \\usepackage{booktabs}. Scores: 0 random player, 1 reference; 95 % intervals over seeds.",
        rf"\begin{{tabular}}{{l{'r' * len(scores)}}}",
        r"\toprule", head, r"\midrule", *rows, *([r"\midrule"] if together else []), *together, r"\bottomrule",
        r"\end{tabular}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def tidy_csv(run: FinishedRun) -> str:
    """Return one row for each cell; see :data:`COLUMNS`. Numbers have all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for cell in run.cells:
        writer.writerow([
            cell["task"], cell["agent"], cell["seed"], cell["score"], cell["mean_return"], cell["success_rate"],
            cell["mean_cost"],
        ])  # fmt: skip
    return text.getvalue()


def huggingface(run: FinishedRun) -> str:
    """Return the metadata ``model-index`` of a model card, as YAML: one model for each agent.

    The layout is that of https://github.com/huggingface/hub-docs/blob/main/modelcard.md. Values are means over seeds.
    """
    settings = {"budget": run.manifest["budget"], "protocol": run.manifest["protocol"]}
    index = []
    for agent, tasks in agents([run]).items():
        results = []
        for task, seeds in tasks.items():
            cells = list(seeds.values())
            metrics = {
                "mean_reward": ("Mean return", "mean_return"),
                "normalised_score": ("Normalised score (0 random, 1 reference)", "score"),
                "success_rate": ("Success rate", "success_rate"),
                "mean_cost": ("Mean constraint cost", "mean_cost"),
            }
            results.append({
                "task": {"type": "reinforcement-learning", "name": "Reinforcement learning"},
                "dataset": {
                    "type": task,
                    "name": _name(task),
                    "split": "test",
                    "args": {**settings, "seeds": len(cells), "episodes": cells[0]["episodes"]},
                },
                "metrics": [
                    {"type": kind, "name": name, "value": math.fsum(cell[key] for cell in cells) / len(cells)}
                    for kind, (name, key) in metrics.items()
                ],
            })  # fmt: skip
        index.append({"name": agent, "results": results})
    return yaml.safe_dump({"model-index": index}, sort_keys=False, allow_unicode=True)


FORMATS: dict[str, Callable[[FinishedRun], str]] = {"latex": latex, "csv": tidy_csv, "huggingface": huggingface}
"""Functions that export a run, by the name of the format."""


def _scores(run: FinishedRun) -> dict[str, dict[str, list[float]]]:
    return {
        agent: {task: [cell["score"] for cell in seeds.values()] for task, seeds in tasks.items()}
        for agent, tasks in agents([run]).items()
    }


def _row(title: str, values: dict[str, Estimate], columns: list[str]) -> str:
    best = max(value.point for value in values.values())
    texts = []
    for agent in columns:
        if agent not in values:
            texts.append("--")
            continue
        value = values[agent]
        point = f"{value.point:.3f}"
        if value.point == best and len(values) > 1:
            point = rf"\textbf{{{point}}}"
        ends = rf" {{\scriptsize[{value.low:.3f}, {value.high:.3f}]}}" if math.isfinite(value.low) else ""
        texts.append(point + ends)
    return " & ".join([_escape(title), *texts]) + r" \\"


def _escape(text: Any) -> str:
    return "".join(_ESCAPED.get(letter, letter) for letter in str(text))


def _name(task: str) -> str:
    return task.split("/", 1)[1]

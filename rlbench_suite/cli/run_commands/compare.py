"""Give verdicts on finished runs (``compare``), and the seeds that they need (``power``)."""

import dataclasses
import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape

from rlbench_suite.cli import check_at_least, check_positive, options, output_console
from rlbench_suite.evaluation.report.whole_table import Table
from rlbench_suite.evaluation.runs.own_files import check_output
from rlbench_suite.foundation.atomic_files import check_file, replacing, writing

if TYPE_CHECKING:
    from rlbench_suite.evaluation.report.comparison import TaskDifference, Verdict
    from rlbench_suite.evaluation.statistics.power import Need

_MAX_TABLES = 3
"""Pairs of agents up to which each task is printed."""

Json = Annotated[
    Path | None, typer.Option("--json", help="Write all numbers to this file.", show_default=False)
]


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Run directories of `rlsuite-eval`, or URLs of runs.",
            show_default=False,
        ),
    ],
    agents: Annotated[
        str | None,
        typer.Option(
            "--agent",
            help="Agents by name, separated by commas. [default: all]",
            show_default=False,
        ),
    ] = None,
    suites: options.SelectedTasks = None,
    json_file: Json = None,
) -> None:
    """Compare the agents of finished runs and say which is better, or that nobody can tell.

    Cells are paired where task, seed and evaluation episodes are equal. An agent is better if a
    paired permutation test and the 95 % interval of the mean difference agree. P-values of the
    means are corrected by Holm's method for the number of pairs of agents, those of tasks for the
    number of tasks of all pairs. Fewer than five paired seeds give no verdict.

    **Examples**

    * `rlsuite-eval compare runs/ppo-smoke-smoke runs/sac-smoke-smoke`

    * `rlsuite-eval compare runs/mine --json verdicts.json` compares the agents of one run

    * `rlsuite-eval compare runs/a runs/b --agent ppo,sac --suite motor` compares two agents on some
      tasks
    """
    from rlbench_suite.cli.run_commands.finished import read_finished_runs
    from rlbench_suite.evaluation.report.comparison import verdicts
    from rlbench_suite.evaluation.report.paired_cells import count, find_separate_pairs, gaps
    from rlbench_suite.evaluation.report.run_selection import select_runs
    from rlbench_suite.evaluation.report.verdict_remarks import remarks

    check_file(json_file)
    check_output(json_file)
    with read_finished_runs(runs) as all_runs:
        selected_runs = select_runs(all_runs, agents, options.join_suites(suites))
        comparisons = verdicts(selected_runs)
        sentences = remarks(selected_runs, comparisons)
        missing_seeds = gaps(selected_runs)
        unpaired_runs = find_separate_pairs(selected_runs)
    console = output_console()
    for verdict in comparisons:
        style = "bold green" if verdict.better else "bold yellow"
        console.print(verdict.words, style=style, highlight=False, markup=False)
    if len(comparisons) <= _MAX_TABLES:
        for verdict in comparisons:
            _print_verdict(verdict, console)
    else:
        console.print(
            f"No tables of tasks for {len(comparisons)} pairs of agents: choose up to three "
            "agents with --agent, or "
            "write all numbers with --json.",
            style="dim", markup=False,
        )  # fmt: skip
    task_tests = sum(len(verdict.tasks) for verdict in comparisons)
    console.print(
        "Difference: first agent minus second, mean over paired seeds, with its 95 % interval. "
        "Effect: difference over "
        "the standard deviation of paired differences within a task; of the mean over tasks, over "
        "the root of the mean "
        "variance within tasks. p: paired permutation test, corrected by Holm's method for "
        f"{count(task_tests, 'p-value')} of tasks and {len(comparisons)} of means. "
        "!: the mean cost exceeds the limit of the task's card. Constrained: such a seed counts "
        "as 0. "
        "†: the agent reads the state or parameters of the task.",
        style="dim", highlight=False,
    )  # fmt: skip
    for sentence in sentences:
        console.print(sentence, style="yellow", highlight=False, markup=False)
    if json_file:
        numbers = {
            "verdicts": [dataclasses.asdict(verdict) for verdict in comparisons],
            "missing": [dataclasses.asdict(gap) for gap in missing_seeds],
            "apart": unpaired_runs,
            "remarks": sentences,
        }
        _write_json(json_file, numbers)


def power(
    run: options.RunDirectory,
    differences: Annotated[
        list[float] | None,
        typer.Option(
            "--difference",
            help=(
                "Difference of normalised scores to see; may be repeated. [default: 0.02, 0.05, "
                "0.1, 0.2]"
            ),
            show_default=False,
        ),
    ] = None,
    suites: options.SelectedTasks = None,
    number_of_agents: Annotated[
        int,
        typer.Option(
            "--agents", help="Number of agents that `compare` will compare, each with each."
        ),
    ] = 2,
    json_file: Json = None,
) -> None:
    """Tell how many seeds show a difference between two agents, from the spreads of a run.

    The numbers are seeds of each agent with which `compare` sees the difference with 80 % power,
    for agents of equal spread. They include Holm's correction: on the mean over tasks for the pairs
    of agents, on one task for the tasks of all pairs.

    **Example**: `rlsuite-eval power runs/ppo-smoke-smoke --difference 0.05`
    """
    from rlbench_suite.cli.run_commands.finished import read_finished_runs
    from rlbench_suite.evaluation.report.run_selection import select_runs
    from rlbench_suite.evaluation.runs.run import cells_by_agent, failure_counts
    from rlbench_suite.evaluation.statistics.power import DIFFERENCES, needs

    for difference in differences or ():
        check_positive("--difference", difference)
    check_at_least("--agents", number_of_agents, 2)
    check_file(json_file)
    check_output(json_file)
    console = output_console()
    with read_finished_runs([run]) as runs:
        selected_runs = select_runs(runs, tasks=options.join_suites(suites))
    failed_cells = Counter[str]()
    for (agent, _), number in failure_counts(selected_runs).items():
        failed_cells[agent] += number
    for agent, number in failed_cells.items():
        console.print(
            f"{agent}: no number of seeds, because {number} of its cells failed. The spread of "
            "the others would be "
            "that of the seeds that went well.",
            style="yellow", highlight=False, markup=False,
        )  # fmt: skip
    needs_by_agent: dict[str, tuple[Need, dict[str, Need]]] = {}
    for agent, cells in cells_by_agent(selected_runs).items():
        if agent in failed_cells:
            continue
        scores = {task: [cell.score for cell in seeds.values()] for task, seeds in cells.items()}
        try:
            needs_by_agent[agent] = needs(
                scores, differences or DIFFERENCES, agents=number_of_agents
            )
        except ValueError as error:
            raise ValueError(f"{agent} of the run {run}: {error}") from None
        mean_need, task_needs = needs_by_agent[agent]
        _print_needs(agent, mean_need, task_needs, console)
        equal_tasks = [
            task.split("/", 1)[1] for task, need in task_needs.items() if need.spread == 0
        ]
        if equal_tasks:
            remark = " The mean over tasks counts it as 0." if mean_need.spread > 0 else ""
            console.print(
                f"-: all seeds of {agent} score the same on {', '.join(equal_tasks)}, and a "
                f"spread of 0 tells nothing about how many seeds are needed.{remark}",
                style="yellow", highlight=False, markup=False,
            )  # fmt: skip
    if not needs_by_agent:
        raise ValueError(f"Every agent of the run {run} has failed cells: finish them first.")
    console.print(
        "Seeds of each agent with which `compare` sees a difference of d with 80 % power, if all "
        "agents spread as this one. On one task it corrects for the number of tasks times that of "
        "pairs of agents; the mean over tasks has the difference d on every task. A spread of few "
        "seeds is itself uncertain: leave a margin.",
        style="dim",
    )
    if json_file:
        numbers = {
            agent: {
                "all tasks": dataclasses.asdict(mean_need),
                "tasks": {task: dataclasses.asdict(need) for task, need in task_needs.items()},
            }
            for agent, (mean_need, task_needs) in needs_by_agent.items()
        }
        _write_json(json_file, numbers)


def _print_verdict(verdict: "Verdict", console: Console) -> None:
    table = Table(
        title=escape(f"{verdict.first} and {verdict.second}"),
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("task", no_wrap=True)
    for name in ("seeds", verdict.first, verdict.second, "difference", "effect", "p", "better"):
        table.add_column(escape(name), justify="right")
    for task in verdict.tasks:
        table.add_row(
            task.task.split("/", 1)[1],
            str(task.seeds),
            _score(task, verdict.first, task.first),
            _score(task, verdict.second, task.second),
            *_comparison(task, failed=bool(task.failed)),
            escape(task.better or "-"),
        )
    table.add_section()
    first_scores = [task.first for task in verdict.tasks]
    second_scores = [task.second for task in verdict.tasks]
    first_failures, second_failures = verdict.failed
    failed = any(verdict.failed)
    table.add_row(
        "mean over tasks",
        "",
        _mean_score(first_scores, first_failures),
        _mean_score(second_scores, second_failures),
        *_comparison(verdict, failed=failed),
        escape(verdict.better or "-"),
    )
    if failed:
        console.print(table)
        return
    if verdict.constrained:
        difference = f"{verdict.constrained.point:+.3f}{_ends(verdict.constrained)}"
        table.add_row("mean over tasks, constrained", "", "", "", difference, "", "", "")
    console.print(table)
    improvement_interval = _ends(verdict.improvement, sign="")
    console.print(
        f"Difference of IQM {verdict.iqm.point:+.3f}{_ends(verdict.iqm)}. A run of "
        f"{verdict.first} beats a run of {verdict.second} with probability "
        f"{verdict.improvement.point:.2f}{improvement_interval}.",
        highlight=False, markup=False,
    )  # fmt: skip


def _mean_score(scores: list[float], failures: int) -> str:
    """Return the mean score of an agent over tasks. An agent with failed cells has none."""
    return "failed" if failures else f"{sum(scores) / len(scores):.3f}"


def _score(task: "TaskDifference", agent: str, value: float) -> str:
    """Return the score of an agent on a task with its marks.

    An agent with failed cells has none.
    """
    if agent in task.failed:
        return "failed"
    return f"{value:.3f}{' !' * (agent in task.violating)}{' †' * (agent in task.privileged)}"


def _comparison(comparison: "TaskDifference | Verdict", *, failed: bool) -> tuple[str, str, str]:
    """Return difference, effect and p-value; nothing if cells of either agent failed."""
    if failed:
        return "-", "-", "-"
    difference = f"{comparison.difference.point:+.3f}{_ends(comparison.difference)}"
    return difference, _effect(comparison.effect), f"{comparison.corrected:.2g}"


def _print_needs(
    agent: str, mean_need: "Need", task_needs: "dict[str, Need]", console: Console
) -> None:
    table = Table(title=escape(agent), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("task", no_wrap=True)
    for name in ("seeds measured", "spread", *(f"d = {d:g}" for d in mean_need.seeds)):
        table.add_column(name, justify="right")

    def add_row(name: str, need: "Need") -> None:
        unknown_number = "> 10,000" if need.spread else "-"
        seeds = (unknown_number if count is None else f"{count:,}" for count in need.seeds.values())
        table.add_row(name, str(need.measured), f"{need.spread:.3g}", *seeds)

    for task, need in task_needs.items():
        add_row(task.split("/", 1)[1], need)
    table.add_section()
    add_row("mean over tasks", mean_need)
    console.print(table)


def _ends(estimate: Any, sign: str = "+") -> str:
    return (
        f" [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"
        if estimate.low < estimate.high
        else ""
    )


def _effect(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def _write_json(path: Path, numbers: Any) -> None:
    text = json.dumps(finite(numbers), indent=2, allow_nan=False)
    with writing(path), replacing(path) as unfinished:
        unfinished.write_text(text + "\n")
    print(f"{path}: all numbers.")


def finite(value: Any) -> Any:
    """Replace numbers that JSON does not have by None, and make every key a string."""
    match value:
        case dict():
            return {str(key): finite(entry) for key, entry in value.items()}
        case list() | tuple():
            return [finite(entry) for entry in value]
        case float() if not math.isfinite(value):
            return None
    return value

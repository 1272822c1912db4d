"""Play a run's policies at other settings (``sweep``) or other decision rates (``frequency``)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD

from rlbench_suite.cli import output_console, prepare_jax
from rlbench_suite.cli.run_commands.finished import read_finished_runs
from rlbench_suite.evaluation.report.whole_table import Table
from rlbench_suite.evaluation.runs.object_store import local_folder

if TYPE_CHECKING:
    from rlbench_suite.evaluation.analysis.sweeps import Sweep
    from rlbench_suite.evaluation.statistics.aggregates import Estimate

MAX_MULTIPLES = 51
"""Largest number of multiples of a sweep."""

SweptRun = Annotated[
    str, typer.Argument(help="Run directory of `rlsuite-eval`.", show_default=False)
]
TaskId = Annotated[
    str | None,
    typer.Option(
        "--task", help="Id of a task of the run. [default: its only one]", show_default=False
    ),
]


def sweep(
    run: SweptRun,
    name: Annotated[
        str,
        typer.Argument(
            help=(
                "Setting of the task, such as `conditions`; `difficulty`; `agents`; or a constant "
                "of the plant, such as `inertia`."
            ),
            show_default=False,
        ),
    ],
    values: Annotated[
        str,
        typer.Argument(
            help=(
                "Values of the setting, separated by commas; or multiples of the constant, "
                "`LOW:HIGH:NUMBER`."
            ),
            show_default=False,
        ),
    ],
    task: TaskId = None,
) -> None:
    """Play a run's policies at several values of a setting, or on plants with another constant.

    Nothing is trained. Scores use the anchors of the run's task, so 1 is its reference player at
    the conditions of the run. `inertia 0.7:1.3:7` asks how wrong the inertia of a data sheet may
    be: policies and reference stay those of the data sheet, and the plant has 0.7, 0.8, ... 1.3
    times its inertia.

    **Examples**

    * `rlsuite-eval sweep runs/mine conditions calm,rough --task QuadcopterHover-v0`

    * `rlsuite-eval sweep runs/mine agents 4,16,64 --task Kuramoto-v0`

    * `rlsuite-eval sweep runs/mine inertia 0.7:1.3:7`
    """
    path = run_folder(run)
    prepare_jax()
    from rlbench_suite.evaluation.analysis import sweeps

    if ":" in values:
        _report(sweeps.sweep_constant(path, task, name, _read_multiples(values)))
        return
    settings = [value.strip() for value in values.split(",") if value.strip()]
    _report(sweeps.sweep_setting(path, task, name, settings))


def frequency(
    run: SweptRun,
    intervals: Annotated[
        str, typer.Option(help="Decision intervals in steps, increasing, separated by commas.")
    ] = "1,2,4,8,16",
    task: TaskId = None,
) -> None:
    """Let a run's policies decide less often, and print their Frequency-Averaged Score.

    At interval a, a policy decides every a steps and holds its action between. The
    Frequency-Averaged Score is the area under the score by interval, divided by the range of
    intervals.

    **Example**: `rlsuite-eval frequency runs/mine --task QuadcopterHover-v0`
    """
    path = run_folder(run)
    prepare_jax()
    from rlbench_suite.contexts.numerals import read_integer
    from rlbench_suite.evaluation.analysis import sweeps

    try:
        steps = [read_integer(word.strip()) for word in intervals.split(",")]
    except ValueError:
        raise ValueError(
            f"--intervals are whole numbers separated by commas, got {intervals!r}."
        ) from None
    _report(sweeps.sweep_frequency(path, task, steps))


def run_folder(run: str) -> Path:
    """Return the folder of a run on this machine, and say if the run lacks cells.

    Raises:
        ValueError: the run is in an object store.
    """
    if path := local_folder(run):
        with read_finished_runs([run]):
            return path
    raise ValueError(
        f"A sweep plays the saved policies of a run and writes into its folder, so {run} must be "
        "copied to this "
        "machine first. compare, power, query and export read it where it is."
    )


def _read_multiples(text: str) -> list[float]:
    """Return the evenly spaced multiples of ``low:high:number``.

    Raises:
        ValueError: it is not of this form.
    """
    from rlbench_suite.contexts.numerals import read_integer, read_real
    from rlbench_suite.foundation.unknown_names import MAX_QUOTE

    quoted = repr(text[:MAX_QUOTE])
    try:
        low_text, high_text, number_text = text.split(":")
        low = read_real(low_text)
        high = read_real(high_text)
        number = read_integer(number_text)
    except ValueError:
        raise ValueError(f"Multiples are LOW:HIGH:NUMBER, as in 0.7:1.3:7, got {quoted}.") from None
    if not (low < high and 2 <= number <= MAX_MULTIPLES):
        raise ValueError(
            f"Multiples have LOW below HIGH and a NUMBER from 2 to {MAX_MULTIPLES}, got {quoted}."
        )
    return [low + (high - low) * i / (number - 1) for i in range(number)]


def _report(sweep: "Sweep") -> None:
    """Write the files of a sweep and print its table."""
    from rlbench_suite.evaluation.analysis import sweeps
    from rlbench_suite.evaluation.report.report_remarks import on_few_seeds

    path = sweeps.write(sweep)
    curves = sweep.curves()
    violations = sweep.violations()
    table = Table(
        title=sweep.card.name,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column(sweep.parameter)
    for agent in curves:
        table.add_column(agent, justify="right", no_wrap=True)
    for i, value in enumerate(sweep.values):
        scores = (
            _with_interval(points[i]) + " !" * violations[agent][i]
            for agent, points in curves.items()
        )
        table.add_row(value, *scores)
    if sweep.parameter == sweeps.INTERVAL:
        table.add_row(
            "Frequency-Averaged Score", *map(_with_interval, sweep.frequency_averaged().values())
        )
    console = output_console()
    console.print(table)
    console.print(
        "Scores: 0 is the best play without skill, 1 the reference, both at the "
        "conditions of the run; 95 % intervals over seeds.",
        style="dim",
    )
    if any(map(any, violations.values())) and (limit := sweep.card.constraint):
        console.print(
            f"!: an episode costs more on average than the task's limit, {limit.limit:g}.",
            style="yellow",
        )
    for sentence in sweep.notes():
        console.print(sentence, style="yellow", highlight=False, markup=False)
    for sentence in on_few_seeds(
        [len(scores_of_agent) for scores_of_agent in sweep.scores().values()]
    ):
        console.print(sentence, style="yellow", highlight=False)
    console.print(
        f"Curve: {path}; table: {path.with_suffix('.parquet')}", highlight=False, soft_wrap=True
    )


def _with_interval(estimate: "Estimate") -> str:
    from rlbench_suite.evaluation.report.page import interval

    return f"{estimate.point:z.3f} {interval(estimate) or '-'}"

"""``rlsuite-eval sweep`` and ``rlsuite-eval frequency``: the policies of a run under other conditions."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console

from rlbench_suite.cli import prepare_jax
from rlbench_suite.cli.finished import finished
from rlbench_suite.evaluation.storage import local_folder
from rlbench_suite.whole_table import Table

if TYPE_CHECKING:
    from rlbench_suite.evaluation.statistics import Estimate
    from rlbench_suite.evaluation.sweeping import Sweep

_LOG_WIDTH = 140
MOST_MULTIPLES = 51
"""Largest number of multiples of a sweep."""

RunPath = Annotated[str, typer.Argument(help="Run directory of `rlsuite-eval`.", show_default=False)]
TaskId = Annotated[str, typer.Option("--task", help="Id of a task of the run.", show_default=False)]


def sweep(
    run: RunPath,
    task: Annotated[
        str | None, typer.Option(help="Id of a task of the run. [default: its only one]", show_default=False)
    ] = None,
    parameter: Annotated[
        str | None, typer.Option(help="Setting of the task, such as `conditions`, or `difficulty`.", show_default=False)
    ] = None,
    values: Annotated[str, typer.Option(help="Values to play at, separated by commas.", show_default=False)] = "",
    multiples: Annotated[
        str | None,
        typer.Option(
            "--set", help="Constant of the plant and its multiples, `NAME=LOW:HIGH:NUMBER`.", show_default=False
        ),
    ] = None,
) -> None:
    """Play the saved policies of a run at several values of a setting, or on plants with another constant.

    Nothing is trained. Scores use the anchors of the run's task, so 1 is its reference player at the conditions of the
    run. `--set inertia=0.7:1.3:7` asks how wrong the inertia of a data sheet may be: policies and reference stay those
    of the data sheet, and the plant has 0.7, 0.8, ... 1.3 times its inertia.

    **Examples**

    * `rlsuite-eval sweep runs/mine --task QuadcopterHover-v0 --parameter conditions --values calm,rough`

    * `rlsuite-eval sweep runs/mine --set inertia=0.7:1.3:7`
    """
    if (parameter is None) == (multiples is None):
        raise ValueError("A sweep has either --parameter with --values, or --set.")
    path = _folder(run)
    prepare_jax()
    from rlbench_suite.evaluation import sweeping

    if multiples is not None:
        name, factors = _multiples(multiples)
        _report(sweeping.sweep_constant(path, task, name, factors))
        return
    assert parameter is not None
    given = [value.strip() for value in values.split(",") if value.strip()]
    _report(sweeping.sweep_setting(path, task, parameter, given))


def frequency(
    run: RunPath,
    task: TaskId,
    intervals: Annotated[
        str, typer.Option(help="Decision intervals in steps, increasing, separated by commas.")
    ] = "1,2,4,8,16",
) -> None:
    """Play the saved policies of a run so that they decide less often, and print their Frequency-Averaged Score.

    At interval a, a policy decides every a steps and holds its action between. The Frequency-Averaged Score is the area
    under the score by interval, divided by the range of intervals.

    **Example**: `rlsuite-eval frequency runs/mine --task QuadcopterHover-v0`
    """
    path = _folder(run)
    prepare_jax()
    from rlbench_suite.evaluation import sweeping
    from rlbench_suite.numerals import read_integer

    try:
        given = [read_integer(word.strip()) for word in intervals.split(",")]
    except ValueError:
        raise ValueError(f"--intervals are whole numbers separated by commas, got {intervals!r}.") from None
    _report(sweeping.sweep_frequency(path, task, given))


def _folder(run: str) -> Path:
    """Return the folder of a run on this machine, and say if the run lacks cells.

    Raises:
        ValueError: the run is in an object store.
    """
    if path := local_folder(run):
        with finished([run]):
            return path
    raise ValueError(
        f"A sweep plays the saved policies of a run and writes into its folder, so {run} must be copied to this "
        "machine first. compare, power, query and export read it where it is."
    )


def _multiples(given: str) -> tuple[str, list[float]]:
    """Return the name and the multiples of ``name=low:high:number``.

    Raises:
        ValueError: it is not of this form.
    """
    from rlbench_suite.numerals import read_integer, read_real
    from rlbench_suite.task_card import LONGEST_GIVEN

    name, _, spread = given.partition("=")
    try:
        low, high, number = (
            read(part) for read, part in zip((read_real, read_real, read_integer), spread.split(":"), strict=True)
        )
    except ValueError:
        raise ValueError(
            f"--set is NAME=LOW:HIGH:NUMBER, as in inertia=0.7:1.3:7, got {given[:LONGEST_GIVEN]!r}."
        ) from None
    if not (low < high and 2 <= number <= MOST_MULTIPLES):
        raise ValueError(
            f"--set has LOW below HIGH and a NUMBER from 2 to {MOST_MULTIPLES}, got {given[:LONGEST_GIVEN]!r}."
        )
    return name.strip(), [low + (high - low) * i / (int(number) - 1) for i in range(int(number))]


def _report(found: "Sweep") -> None:
    """Write the files of a sweep and print its table."""
    from rlbench_suite.evaluation import sweeping
    from rlbench_suite.evaluation.remarks import on_few_seeds

    path, curves, broken = sweeping.write(found), found.curves(), found.violations()
    table = Table(title=found.card.name, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(found.parameter)
    for agent in curves:
        table.add_column(agent, justify="right", no_wrap=True)
    for i, value in enumerate(found.values):
        scores = (_with_interval(points[i]) + " !" * broken[agent][i] for agent, points in curves.items())
        table.add_row(value, *scores)
    if found.parameter == sweeping.INTERVAL:
        table.add_row("Frequency-Averaged Score", *map(_with_interval, found.frequency_averaged().values()))
    console = Console() if sys.stdout.isatty() else Console(width=_LOG_WIDTH)
    console.print(table)
    console.print(
        "Scores: 0 is the better of random play and doing nothing, 1 the reference, both at the conditions of the run; "
        "95 % intervals over seeds.",
        style="dim",
    )
    if any(map(any, broken.values())) and (limit := found.card.constraint):
        console.print(f"!: an episode costs more on average than the task's limit, {limit.limit:g}.", style="yellow")
    for sentence in found.notes():
        console.print(sentence, style="yellow", highlight=False, markup=False)
    for sentence in on_few_seeds([len(table) for table in found.scores().values()]):
        console.print(sentence, style="yellow", highlight=False)
    console.print(f"Curve: {path}; table: {path.with_suffix('.parquet')}", highlight=False, soft_wrap=True)


def _with_interval(estimate: "Estimate") -> str:
    from rlbench_suite.evaluation.page import interval

    return f"{estimate.point:z.3f} {interval(estimate) or '-'}"

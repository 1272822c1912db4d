"""``rlsuite-eval report``: print the report of a run again, and write it."""

from typing import Annotated, Literal

import typer

from rlbench_suite.cli import options, output_console, prepare_jax
from rlbench_suite.cli.run_commands import execution


def report(
    run: options.RunDirectory,
    interval: Annotated[
        Literal["studentised", "percentile"],
        typer.Option(
            help=(
                "Method of the intervals. `percentile` is rliable's; it is too narrow for few "
                "seeds."
            )
        ),
    ] = "studentised",
) -> None:
    """Print the report of the finished cells of a run, and write `report.html` again.

    Nothing is trained or played.

    **Example**: `rlsuite-eval report runs/ppo-smoke-smoke --interval percentile`
    """
    prepare_jax()
    from rlbench_suite.evaluation.runs import object_store
    from rlbench_suite.evaluation.runs.open_run import OpenRun
    from rlbench_suite.evaluation.runs.run import read_manifest

    with (
        object_store.open_store(run) as place,
        OpenRun.open(place.path, read_manifest(place.path)) as open_run,
    ):
        if not open_run.results():
            raise ValueError(f"The run {place} has no finished cell.")
        execution.print_and_write_report(open_run, output_console(), str(place), interval)

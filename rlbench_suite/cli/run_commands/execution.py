"""Execution of a run: the tasks that it has, its cells by an executor, and its report.

``run``, ``ray``, ``judge`` and ``llm`` differ in what plays and in the executor, and share
everything else.
"""

import os
import shlex
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import typer
from rich.console import Console

from rlbench_suite.cli import INTERRUPTED_EXIT_CODE, output_console, prepare_jax
from rlbench_suite.core import registry

if TYPE_CHECKING:
    from rlbench_suite.evaluation.cell import Event
    from rlbench_suite.evaluation.policy_files.checkpoint import Checkpoint
    from rlbench_suite.evaluation.runs.manifest import Manifest
    from rlbench_suite.evaluation.runs.open_run import OpenRun

MAX_WORKERS = 8
"""Largest number of worker processes unless ``--workers`` asks for more."""

_DEFAULT_SEEDS = 5
_DEFAULT_BUDGET = "smoke"


class Selection(NamedTuple):
    """Tasks of a run, with seeds and budget."""

    title: str
    """Name for the run directory: the suite file's name, or the list of suites and ids."""
    suite: str
    """Suites and task ids, separated by commas."""
    seeds: int
    budget: str
    suite_files: dict[str, str]
    """SHA-256 of the suite file, by the name of the suite."""


def select_tasks(suite: str, seeds: int | None, budget: str | None) -> Selection:
    """Return the tasks, seeds and budget of a list of suites or a suite file.

    Arguments win over the file's.

    Raises:
        OSError: the suite file cannot be read.
        ValueError: it is no suite file.
    """
    from rlbench_suite.evaluation.runs.suite_file import names_a_file, read_suite_file

    selection = Selection(suite, suite, _DEFAULT_SEEDS, _DEFAULT_BUDGET, {})
    if names_a_file(suite):
        file = read_suite_file(Path(suite))
        selection = Selection(
            file.name, file.ids, file.seeds, file.budget, {file.name: file.sha256}
        )
    if seeds is not None:
        selection = selection._replace(seeds=seeds)
    if budget is not None:
        selection = selection._replace(budget=budget)
    return selection


def run_directory(player: str, selection: Selection) -> str:
    """Return the default directory of a run. The same command finds it again."""
    name = f"{player}-{selection.title}-{selection.budget}".replace("rlsuite/", "")
    return str(
        Path("runs", name.replace("/", "_").replace(",", "+").replace(" ", "").replace("?", "."))
    )


def prepare_workers(agents: str) -> None:
    """Prepare JAX for the agents of a comma-separated list, before JAX is imported."""
    prepare_jax(jax_threads(agents))


def jax_threads(agents: str) -> int:
    """Return the number of threads in JAX's pool in each worker.

    Our own programs get one, however many cores a worker has. Otherwise sums are split among
    threads, and a trained policy depends on the number of cores and on ``--workers``. They also run
    fastest so: a second thread costs PPO a fifth of its speed. Agents of third parties get at least
    eight threads, because batched LAPACK calls can deadlock in a small pool: they wait for threads
    of the pool in which they run.
    """
    if set(agents.replace(" ", "").split(",")) <= set(registry.AGENTS):
        return 1
    return max(8, count_cores())


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_workers(workers: int | None) -> int:
    """Return the number of worker processes that ``--workers`` asks for."""
    return min(count_cores(), MAX_WORKERS) if workers is None else workers


def execute_locally(
    manifest: "Manifest",
    out: str,
    *,
    workers: int,
    silence: float,
    resume: bool,
    checkpoint: "Checkpoint | None" = None,
) -> None:
    """Run the missing cells in ``workers`` processes of this machine, or in this one if 0.

    See :func:`execute`.
    """
    from rlbench_suite.evaluation.runs import runner

    def run_cells(run: "OpenRun") -> "Generator[Event, None, None]":
        if workers == 0:
            return runner.in_process(run)
        return runner.in_pool(run, min(workers, len(run.missing())), silence=silence)

    execute(manifest, out, run_cells, workers=workers, resume=resume, checkpoint=checkpoint)


def execute(
    manifest: "Manifest",
    out: str,
    run_cells: "Callable[[OpenRun], Generator[Event, None, None]]",
    *,
    workers: int = 0,
    resume: bool = False,
    checkpoint: "Checkpoint | None" = None,
) -> None:
    """Run the missing cells of a run, and print and write its report.

    Args:
        manifest: the requested run.
        out: run directory, or URL of an object store.
        run_cells: executor of the missing cells.
        workers: number of worker processes of this machine that the user is told of.
        resume: refuse to begin a new run.
        checkpoint: saved policy of which the run keeps a copy.

    Raises:
        typer.Exit: with code 1 if a cell failed, and 130 if the run was interrupted.
        ValueError: the directory holds something else, or a run that cannot be compared with this
            one.
        OSError: the directory cannot be used.
    """
    from rlbench_suite.cli.run_commands.progress import watch
    from rlbench_suite.evaluation.runs import matches, object_store, runner
    from rlbench_suite.evaluation.runs.open_run import OpenRun

    console = output_console()
    with (
        object_store.open_store(out) as place,
        OpenRun.open(place.path, manifest, resume=resume) as run,
    ):
        failures = []
        if missing := run.missing():
            events = place.keeping(run_cells(run), run.cell_path)
            _announce(
                f"{len(missing)} of {len(run.requested_cells)} cells to run, into {place}",
                workers,
                console,
            )
            with run.sitting():
                if checkpoint:
                    run.keep(checkpoint)
                try:
                    failures = watch(events, run, console)
                except KeyboardInterrupt:
                    events.close()
                    _print_interruption(run, console, transcripts=bool(manifest.models))
                    raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
        try:
            for sentence in matches.play_missing(run):
                console.print(sentence, highlight=False)
        except KeyboardInterrupt:
            _print_interruption(run, console, transcripts=bool(manifest.models))
            raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
        print_and_write_report(run, console, str(place), "studentised")
        for cell, reason in failures:
            print(f"failed: {cell}: {reason} (more in {place}/{runner.LOG})", file=sys.stderr)
    if failures:
        raise typer.Exit(1)


def print_and_write_report(
    run: "OpenRun", console: Console, place: str, interval: Literal["studentised", "percentile"]
) -> None:
    """Merge the tables of the finished cells, write the report and print it.

    A run without cells has no report.
    """
    from rlbench_suite.evaluation.report.html_report import write_html
    from rlbench_suite.evaluation.report.report import Report
    from rlbench_suite.evaluation.report.terminal_report import print_report

    if run.results():
        run.merge()
        report = Report.of(run, interval)
        write_html(report)
        print_report(report, console)
        console.print(f"Report: {place}/report.html", highlight=False, soft_wrap=True)


def _announce(text: str, workers: int, console: Console) -> None:
    """Print what is about to run, in how many processes, and settings that change numbers.

    The settings are those of the environment variables.
    """
    from rlbench_suite.evaluation.runs.computer import Computer, on_settings

    console.print(text, highlight=False)
    if workers:
        console.print(
            f"Starting up to {workers} worker processes, which takes seconds.", highlight=False
        )
    for sentence in on_settings([Computer.this()]):
        console.print(sentence, style="yellow", highlight=False, markup=False)


def _print_interruption(run: "OpenRun", console: Console, *, transcripts: bool) -> None:
    """Print how much of an interrupted run is saved, and how to continue it."""
    total = len(run.requested_cells)
    done = total - len(run.missing())
    saved_transcripts = "Transcripts of finished episodes are kept, too. " if transcripts else ""
    console.print(
        f"\nInterrupted: {done} of {total} cells are done and saved. "
        f"{saved_transcripts}Continue with: {shlex.join(['rlsuite-eval', *sys.argv[1:]])}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip

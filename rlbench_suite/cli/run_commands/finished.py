"""Finished runs, as the commands on results read them."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rlbench_suite.evaluation.runs.object_store import fetch_runs
from rlbench_suite.evaluation.runs.run import Run, read_runs


@contextmanager
def read_finished_runs(runs: Sequence[str], tables: Sequence[str] = ()) -> Iterator[list[Run]]:
    """Yield runs, and say on stderr which of them lack cells.

    Arguments and errors are those of ``fetch_runs``.
    """
    with fetch_runs(runs, tables) as sources:
        finished_runs = read_runs(sources)
        for source, run in zip(sources, finished_runs, strict=True):
            if remark := _on_missing_cells(run, source.name):
                print(remark, file=sys.stderr)
        yield finished_runs


def _on_missing_cells(run: Run, location: str) -> str:
    """Return how many cells of a run are finished, and how to finish it for every agent and seed.

    The text is empty if nothing is missing.

    Args:
        run: the run. Its number of seeds is the largest that it was ever asked for.
        location: its path or URL as the user knows it.
    """
    planned = run.manifest.seeds * sum(map(len, run.manifest.hyperparameters.values()))
    if len(run.results()) == planned:
        return ""
    seeds = str(run.manifest.seeds)
    commands: dict[str, None] = {}
    for sitting in run.manifest.sittings:
        if arguments := sitting.arguments:
            arguments = _replace_option(
                _replace_option(arguments, "--seeds", seeds), "--out", location
            )
            commands[shlex.join(["rlsuite-eval", *arguments])] = None
    advice = (
        f"Finish it with: {'; '.join(commands)}"
        if commands
        else "The command that made it finishes it."
    )
    failed_cells = Counter(cell.agent for cell in run.failures())
    failures = ", ".join(f"{number} of {agent}" for agent, number in failed_cells.items())
    warning = ""
    if failures:
        warning = (
            f" Failed: {failures}; a mean over the other cells of such an agent would reward it "
            "for failing."
        )
    return (
        f"The run {location} has {len(run.results())} of {planned} cells: some agents have fewer "
        f"than its {seeds} seeds.{warning} {advice}"
    )


def _replace_option(arguments: Sequence[str], option: str, value: str) -> list[str]:
    """Return the arguments of a command with another value of an option."""
    remaining = [argument for argument in arguments if not argument.startswith(f"{option}=")]
    while option in remaining:
        position = remaining.index(option)
        del remaining[position : position + 2]
    return [*remaining, option, value]

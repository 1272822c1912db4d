"""Finished runs, as the commands on results read them."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rlbench_suite.evaluation.reading import FinishedRun, read_runs
from rlbench_suite.evaluation.storage import fetched


@contextmanager
def finished(runs: Sequence[str], tables: Sequence[str] = ()) -> Iterator[list[FinishedRun]]:
    """Yield runs, and say on stderr which of them lack cells. Arguments and errors are those of ``fetched``."""
    with fetched(runs, tables) as sources:
        read = read_runs(sources)
        for source, run in zip(sources, read, strict=True):
            if said := _on_missing(run, source.name):
                print(said, file=sys.stderr)
        yield read


def _on_missing(run: FinishedRun, place: str) -> str:
    """Return how many cells of an unfinished run are finished, and how to finish it; empty if nothing is missing."""
    planned = run.manifest["seeds"] * sum(map(len, run.manifest["hyperparameters"].values()))
    if len(run.cells) == planned:
        return ""
    begun = [sitting["arguments"] for sitting in run.manifest["sittings"] if sitting.get("arguments")]
    commands = dict.fromkeys(shlex.join(["rlsuite-eval", *arguments]) for arguments in begun)
    how = f"Finish it with: {'; '.join(commands)}" if commands else "The command that made it finishes it."
    return f"The run {place} is unfinished: {len(run.cells)} of {planned} cells. {how}"

"""Finished runs, as the commands on results read them."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rlbench_suite.evaluation.run import Run, read_runs
from rlbench_suite.evaluation.storage import fetched


@contextmanager
def finished(runs: Sequence[str], tables: Sequence[str] = ()) -> Iterator[list[Run]]:
    """Yield runs, and say on stderr which of them lack cells. Arguments and errors are those of ``fetched``."""
    with fetched(runs, tables) as sources:
        read = read_runs(sources)
        for source, run in zip(sources, read, strict=True):
            if said := _on_missing(run, source.name):
                print(said, file=sys.stderr)
        yield read


def _on_missing(run: Run, place: str) -> str:
    """Return how many cells of a run are finished, and how to give every agent all seeds; empty if nothing is missing.

    Args:
        run: the run. Its number of seeds is the largest that it was ever asked for.
        place: its path or URL as the user knows it.
    """
    planned = run.manifest.seeds * sum(map(len, run.manifest.hyperparameters.values()))
    if len(run.results()) == planned:
        return ""
    begun = [sitting.arguments for sitting in run.manifest.sittings if sitting.arguments]
    seeds = str(run.manifest.seeds)
    asked = [_with(_with(arguments, "--seeds", seeds), "--out", place) for arguments in begun]
    commands = dict.fromkeys(shlex.join(["rlsuite-eval", *arguments]) for arguments in asked)
    how = f"Finish it with: {'; '.join(commands)}" if commands else "The command that made it finishes it."
    failed = Counter(cell.agent for cell in run.failures())
    failures = ", ".join(f"{number} of {agent}" for agent, number in failed.items())
    warning = ""
    if failed:
        warning = f" Failed: {failures}; a mean over the other cells of such an agent would reward it for failing."
    return (
        f"The run {place} has {len(run.results())} of {planned} cells: some agents have fewer than its {seeds} seeds."
        f"{warning} {how}"
    )


def _with(arguments: Sequence[str], option: str, value: str) -> list[str]:
    """Return the arguments of a command with another value of an option."""
    kept = [argument for argument in arguments if not argument.startswith(f"{option}=")]
    while option in kept:
        at = kept.index(option)
        del kept[at : at + 2]
    return [*kept, option, value]

"""Read finished cells of run directories without JAX, so that commands on results answer at once."""

from __future__ import annotations

import json
import math
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlbench_suite.card import file_name_of, unknown
from rlbench_suite.evaluation.storage import Source
from rlbench_suite.evaluation.writing import FAILED
from rlbench_suite.registry import constraint
from rlbench_suite.scale import Scale, Score

FORMAT = "rlbench-suite run 1"


@dataclass(frozen=True)
class FinishedRun:
    """Run directory and the results of its finished cells.

    Attributes:
        path: the run directory.
        name: short name that no other of the runs read together has.
        manifest: contents of ``manifest.json``.
        cells: contents of each finished cell's ``result.json``, in the manifest's order.
        failed: agent, task, seed and error of each cell that failed when it was last tried.
    """

    path: Path
    name: str
    manifest: dict[str, Any]
    cells: tuple[dict[str, Any], ...]
    failed: tuple[dict[str, Any], ...] = ()

    def folder(self, cell: dict[str, Any]) -> Path:
        """Return the folder of a finished cell."""
        return cell_folder(self.path, cell["agent"], cell["task"], cell["seed"])


def mean_cost(cells: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean constraint cost of an episode over cells of one task."""
    return math.fsum(cell["mean_cost"] for cell in cells) / len(cells)


def violate(cells: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether cells of one task, one for each seed, break the constraint on its card."""
    found = constraint(cells[0]["task"])
    return found is not None and found.broken_by_seeds(*(cell["mean_cost"] for cell in cells))


def score(cell: Mapping[str, Any]) -> float:
    """Return a cell's normalised score."""
    return float(cell["score"])


def constrained(cell: Mapping[str, Any]) -> float:
    """Return a cell's constrained score, see :meth:`~rlbench_suite.card.Constraint.constrained`."""
    found = constraint(cell["task"])
    return found.constrained(score(cell), cell["mean_cost"]) if found else score(cell)


def read_runs(runs: Sequence[Source | Path]) -> list[FinishedRun]:
    """Read runs and give each a name of its own: its folder's name, or its path or URL where two folders share one.

    Raises:
        ValueError: a run is given twice, is not a run directory, is damaged, or has no finished cell.
    """
    sources = [run if isinstance(run, Source) else Source(run, str(run)) for run in runs]
    identities = [source.identity for source in sources]
    names = [identity.rpartition("/")[2] for identity in identities]
    for source in sources:
        if identities.count(source.identity) > 1:
            raise ValueError(f"The run {source.name} is given twice.")
    return [
        _read(source.path, name if names.count(name) == 1 else source.name)
        for source, name in zip(sources, names, strict=True)
    ]


def read_run(run: Source | Path) -> FinishedRun:
    """Read one run. Errors as :func:`read_runs`."""
    return read_runs([run])[0]


def no_run(path: Path) -> str:
    """Return a sentence on a path without a manifest, with the nearest run beside it."""
    if path.exists():
        return f"{path} is not a run directory (it has no manifest.json)."
    folder = path.parent
    beside = [str(each.parent) for each in folder.glob("*/manifest.json")] if folder.is_dir() else []
    return unknown("run", str(path), beside) if beside else f"{path} does not exist."


def agents(runs: Sequence[FinishedRun]) -> dict[str, dict[str, dict[int, dict[str, Any]]]]:
    """Return the finished cells of all runs by agent, task and seed; names as :func:`agent_names`."""
    table: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
    names = agent_names(runs)
    for run in runs:
        for cell in run.cells:
            tasks = table.setdefault(names[run.name, cell["agent"]], {})
            tasks.setdefault(cell["task"], {})[cell["seed"]] = cell
    return table


def agent_names(runs: Sequence[FinishedRun]) -> dict[tuple[str, str], str]:
    """Return the name of each agent among all runs by its run's name and its name there, with finished cells or not.

    An agent that several runs have is one agent if all cells that they share are equal, and they share one. Otherwise
    it is named after its run too, as in ``ppo (a)``, or after its runs, as in ``ppo (a + b)``.
    """
    owners: dict[str, list[list[FinishedRun]]] = {}
    for run in runs:
        for agent in run.manifest["hyperparameters"]:
            groups = owners.setdefault(agent, [])
            same = next((group for group in groups if all(_agree(agent, run, other) for other in group)), None)
            if same is None:
                groups.append([run])
            else:
                same.append(run)
    return {
        (run.name, agent): agent if len(groups) == 1 else f"{agent} ({' + '.join(each.name for each in group)})"
        for agent, groups in owners.items()
        for group in groups
        for run in group
    }


_OUTCOME = ("episodes", "training_steps", "score", "mean_return", "success_rate", "mean_cost")
"""Numbers of a cell that are the same whenever the same agent is trained again."""


def _agree(agent: str, run: FinishedRun, other: FinishedRun) -> bool:
    """Return whether two runs have equal cells of an agent, with equal hyperparameters, wherever both have a cell."""
    one, two = (
        {
            (cell["task"], cell["seed"]): (
                [cell[name] for name in _OUTCOME], each.manifest["hyperparameters"][agent][cell["task"]],
            )
            for cell in each.cells
            if cell["agent"] == agent
        }
        for each in (run, other)
    )  # fmt: skip
    shared = one.keys() & two.keys()
    return bool(shared) and all(one[cell] == two[cell] for cell in shared)


def _read(path: Path, name: str) -> FinishedRun:
    file = path / "manifest.json"
    if not file.exists():
        raise ValueError(no_run(path))
    with _checking(file):
        manifest = _object(file)
    if manifest.get("format") != FORMAT:
        raise ValueError(f"{file} has the format {manifest.get('format')!r}; {FORMAT!r} is needed.")
    with _checking(file):
        _check_manifest(manifest)
    cells = []
    for agent, task, seed in _cells(path, manifest):
        file = cell_folder(path, agent, task, seed) / "result.json"
        if os.path.lexists(file):
            advice = f"; delete the folder {file.parent} and run the same command again, which computes the cell again"
            with _checking(file, advice):
                cells.append(cell := _object(file))
                if (cell.get("agent"), cell.get("task"), cell.get("seed")) != (agent, task, seed):
                    raise ValueError("it belongs to another cell")
                for kind, names in _NUMBERS.items():
                    _check(cell, names, kind)
    if not cells:
        raise ValueError(f"The run in {path} has no finished cell.")
    return FinishedRun(path, name, manifest, tuple(cells), tuple(_failed(path, manifest)))


_NUMBERS: dict[type, tuple[str, ...]] = {
    int: ("episodes", "training_steps"),
    float: ("score", "mean_return", "success_rate", "mean_cost", "wall_seconds"),
}
"""Numbers of a cell that the commands on results read, by their kind."""


@contextmanager
def _checking(file: Path, advice: str = "") -> Iterator[None]:
    """Name the file in an error about its contents, and say what to do."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file} is damaged ({error}){advice}.") from None


def _check_manifest(manifest: dict[str, Any]) -> None:
    """Check what the commands on results read, because a run may come from strangers."""
    _check(manifest, ("protocol", "seeds"), int)
    _check(manifest, ("budget", "version"), str)
    _check(manifest, ("references", "hyperparameters"), dict)
    for table in (manifest["references"], manifest["hyperparameters"], manifest.setdefault("checkpoints", {})):
        _check(table, table, dict)
    for players in manifest["references"].values():
        _check(players, players, dict)
        for score in players.values():
            _check(score, ("mean",), float)
    for saved in manifest["checkpoints"].values():
        _check(saved, ("agent",), str)
    _check_printable([manifest["version"], *manifest["references"]])
    if not isinstance(sittings := manifest.setdefault("sittings", []), list):
        raise ValueError("its 'sittings' are no list")
    for sitting in sittings:
        _check_software(sitting)
        arguments = sitting.get("arguments", [])
        if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
            raise ValueError("its 'arguments' are no list of texts")
        _check_printable(arguments)
    for agent, tasks in manifest["hyperparameters"].items():
        _check_printable([agent, *tasks])
        if wrong := [task for task in tasks if "/" not in task]:
            raise ValueError(f"{wrong[0]!r} is not the id of a task")


def _check_software(sitting: Any) -> None:
    """Check the packages that a sitting names."""
    _check(sitting, ("machine",), dict)
    machine = sitting["machine"]
    _check(machine, ("packages",), dict)
    _check(machine["packages"], machine["packages"], str)
    if machine.get("git_revision") is not None:
        _check(machine, ("git_revision",), str)
    _check_printable([*machine["packages"], *machine["packages"].values(), machine.get("git_revision") or ""])


def _check_printable(names: Iterable[str]) -> None:
    for name in names:
        if not name.isprintable():  # it would steer the terminal
            raise ValueError(f"the name {name!r} has characters that cannot be printed")


def _check(table: Any, names: Iterable[str], kind: type) -> None:
    """Raise :class:`ValueError` unless the table has values of a kind under all names; a float is at most 1e100."""
    for name in names:
        value: Any = table.get(name) if isinstance(table, dict) else None
        right = isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)
        if right and kind is float:
            right = abs(value) <= 1e100  # False for NaN; squares stay finite
        if not right:
            what = {int: "a whole number", float: "a number up to 1e100", str: "a text", dict: "a table"}[kind]
            raise ValueError(f"its {name!r} is {reprlib.repr(value)}, not {what}")


def _cells(path: Path, manifest: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield the cells that have a folder. The manifest may name far more."""
    for agent, tasks in manifest["hyperparameters"].items():
        for task in tasks:
            folder = cell_folder(path, agent, task, 0).parent
            names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
            seeds = {int(name) for name in names if name.isascii() and name.isdigit() and len(name) <= 10}
            for seed in sorted(seeds):
                if seed < manifest["seeds"]:
                    yield agent, task, seed


def _failed(path: Path, manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield agent, task, seed and error of the cells that failed and have no result."""
    for agent, tasks in manifest["hyperparameters"].items():
        for task in tasks:
            folder = cell_folder(path, agent, task, 0).parent
            for file in sorted(folder.glob(f"*{FAILED}")) if folder.is_dir() else ():
                seed = file.name.removesuffix(FAILED)
                if seed.isascii() and seed.isdigit() and not (folder / seed / "result.json").exists():
                    with _checking(file):
                        error = _object(file).get("error")
                    yield {"agent": agent, "task": task, "seed": int(seed), "error": str(error)}


def failures(runs: Sequence[FinishedRun]) -> dict[tuple[str, str], int]:
    """Return the number of failed cells by agent and task, where there are any; names as :func:`agent_names`."""
    names, counts = agent_names(runs), dict[tuple[str, str], int]()
    for run in runs:
        for cell in run.failed:
            key = names[run.name, cell["agent"]], cell["task"]
            counts[key] = counts.get(key, 0) + 1
    return counts


def anchor_errors(runs: Sequence[FinishedRun]) -> dict[str, Callable[[float], float]]:
    """Return, for each task, the standard error of a score that comes from the measured ends of its scale."""
    errors: dict[str, Callable[[float], float]] = {}
    for run in runs:
        for task, players in run.manifest["references"].items():
            known = {
                player: Score(score["mean"], score["low"], score["high"], score["episodes"])
                for player, score in players.items()
                if {"low", "high", "episodes"} <= score.keys()
            }
            if scale := Scale.of(known):
                errors[task] = scale.standard_error
    return errors


def cell_folder(path: Path, agent: str, task: str, seed: int) -> Path:
    """Return the folder of a cell.

    Raises:
        ValueError: it lies outside of the run.
    """
    inside = Path("cells", agent, file_name_of(task), str(seed))
    if inside.is_absolute() or ".." in inside.parts:
        raise ValueError(f"{path / 'manifest.json'} is damaged (it names a cell outside of the run).")
    return path / inside


def _object(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise ValueError("it is no file")
    try:
        read = json.loads(file.read_bytes())
    except RecursionError as error:
        raise ValueError(error) from None
    if not isinstance(read, dict):
        raise ValueError("it holds no JSON object")
    return read

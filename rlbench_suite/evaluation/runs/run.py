"""Read finished cells of run directories without JAX, so that commands on results answer at once.

``open_run.py`` writes what is read here::

    manifest.json                             settings, machine and times of the run
    cells/<agent>/<task>/<seed>/result.json   results of one cell
                               /episodes.parquet  curve.parquet  trace.parquet  policy.safetensors
                               /train_episodes.parquet  episodes on the train split, in the suite
                                                        generalisation
                               /front.parquet  mean returns of a set of policies
                        /<seed>.failed        why a cell failed when it was last tried
    transcripts/<agent>/<task>/<seed>.jsonl   conversations of language models, also of unfinished
                                              cells
    episodes.parquet  curves.parquet  fronts.parquet  traces/<agent>-<task>.parquet  report.html
                                              all cells together
    matches.parquet                           games of policies against each other
    checkpoints/<agent>                       copies of evaluated saved policies
    workers.log                               output of agents, and full errors
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from rlbench_suite.core.registry import constraint
from rlbench_suite.core.scale import Scale
from rlbench_suite.core.task_card import file_name_of
from rlbench_suite.evaluation.cell import Cell, FailedCell
from rlbench_suite.evaluation.policy_files.checkpoint import Checkpoint
from rlbench_suite.evaluation.runs.manifest import FAILED_SUFFIX, CellResult, Manifest, first_fault
from rlbench_suite.evaluation.runs.object_store import Source
from rlbench_suite.foundation.unknown_names import unknown

if TYPE_CHECKING:
    import pyarrow as pa

    from rlbench_suite.core.task import Task

Cells = Mapping[str, Mapping[int, CellResult]]
"""Finished cells of an agent by task and seed."""


class TrainingCurve(NamedTuple):
    """Progress of one cell's training, an entry for each report."""

    steps: np.ndarray
    seconds: np.ndarray
    """Seconds of training without compilation."""
    returns: np.ndarray
    """Mean return of the episodes that ended since the report before; NaN where none ended."""


class FrontPoints(NamedTuple):
    """Front of one cell's set of policies, for k objectives."""

    returns: np.ndarray
    """Mean returns of the policies, ``(n, k)``."""
    exact: np.ndarray
    """The task's exact Pareto front, ``(p, k)``; without a row if it is not known."""


MATCHES_FILE = "matches.parquet"


class Matches(NamedTuple):
    """Games that policies of a task played against each other, in both seats."""

    table: pa.Table
    """Columns as ``tables.MATCHES``."""
    cells: tuple[Cell, ...]
    """Cells of the n policies that played, in the order of the run's agents."""
    returns: np.ndarray
    """Earnings of both seats by who sat in seat 0, who in seat 1, and game, ``(n, n, games, 2)``.

    They are 0 for a policy against itself.
    """


class Run:
    """Run directory, read only. Results and failures are read once.

    Args:
        path: the directory.
        manifest: its manifest, or a part of it.
        name: short name that no other of the runs read together has.
    """

    def __init__(self, path: Path, manifest: Manifest, name: str = "") -> None:
        self.path = path
        self.manifest = manifest
        self.name = name

    @classmethod
    def read(cls, path: Path, name: str = "") -> Run:
        """Return the run in a directory.

        Raises:
            ValueError: there is no manifest, or it is damaged or has another format.
        """
        return Run(path, read_manifest(path), name)

    def cell_path(self, cell: Cell) -> Path:
        """Return the folder of a cell.

        Raises:
            ValueError: it lies outside of the run.
        """
        return cell_folder(self.path, cell.agent, cell.task, cell.seed)

    def result(self, cell: Cell) -> CellResult | None:
        """Return the cell's result, or None if it has not been run.

        Raises:
            ValueError: the result is damaged, belongs to another cell, or is not what the table of
                episodes beside it gives.
        """
        if not os.path.lexists(self.cell_path(cell) / "result.json"):
            return None
        with self._reading(cell, "result.json") as file:
            result = CellResult.model_validate_json(_read_plain_file(file))
            if result.cell != cell:
                raise ValueError(f"it belongs to {result.cell}")
        self._check_numbers(result)
        return result

    def _check_numbers(self, result: CellResult) -> None:
        """Check a cell's numbers against its episodes. A folder without them is taken as it is.

        Raises:
            ValueError: they differ, or a table of episodes is damaged or of another cell.
        """
        folder = self.cell_path(result.cell)
        files = [
            name
            for name in ("episodes.parquet", "train_episodes.parquet")
            if os.path.lexists(folder / name)
        ]
        if not files:
            return
        from rlbench_suite.evaluation.runs.consistency import check_numbers, read_episodes_of

        tables = {}
        for name in files:
            with self._reading(result.cell, name) as file:
                tables[name] = read_episodes_of(result, file)
        with self._reading(result.cell, "result.json"):
            check_numbers(
                result,
                self.manifest.scale(result.task),
                tables.get("episodes.parquet"),
                tables.get("train_episodes.parquet"),
            )

    def results(self) -> Sequence[CellResult]:
        """Return the results of all finished cells, in the manifest's order."""
        return self._results

    @cached_property
    def _results(self) -> tuple[CellResult, ...]:
        return tuple(self._read_results())

    def _read_results(self) -> Iterator[CellResult]:
        """Yield the results of the cells that have a folder. The manifest may name far more."""
        for agent, task, folder in self._task_folders():
            names = [entry.name for entry in folder.iterdir()]
            for seed in sorted(_seeds(names)):
                if seed < self.manifest.seeds and (result := self.result(Cell(agent, task, seed))):
                    yield result

    def failures(self) -> Sequence[FailedCell]:
        """Return the cells of the run that failed when they were last tried."""
        return self._failures

    @cached_property
    def _failures(self) -> tuple[FailedCell, ...]:
        return tuple(self._read_failures())

    def _read_failures(self) -> Iterator[FailedCell]:
        for agent, task, folder in self._task_folders():
            records = [
                entry.name.removesuffix(FAILED_SUFFIX)
                for entry in folder.iterdir()
                if entry.name.endswith(FAILED_SUFFIX)
            ]
            for seed in sorted(_seeds(records)):
                if seed < self.manifest.seeds and not os.path.lexists(
                    folder / str(seed) / "result.json"
                ):
                    yield FailedCell(
                        agent, task, seed, _read_error(folder / f"{seed}{FAILED_SUFFIX}")
                    )

    def _task_folders(self) -> Iterator[tuple[str, str, Path]]:
        """Yield agent, task and the folder of their cells, where there is one."""
        for agent, tasks in self.manifest.hyperparameters.items():
            for task in tasks:
                folder = cell_folder(self.path, agent, task, 0).parent
                if folder.is_dir():
                    yield agent, task, folder

    def select(self, agents: Sequence[str], tasks: Collection[str]) -> Run:
        """Return the run with some of its agents, in this order, and some of its tasks.

        Nothing is read again.
        """
        hyperparameters = {
            agent: {
                task: values
                for task, values in self.manifest.hyperparameters[agent].items()
                if task in tasks
            }
            for agent in agents
        }
        references = {
            task: scores for task, scores in self.manifest.references.items() if task in tasks
        }
        update = {"hyperparameters": hyperparameters, "references": references}
        run = Run(self.path, self.manifest.model_copy(update=update), self.name)
        selected_results = [
            result
            for result in self.results()
            if result.task in hyperparameters.get(result.agent, ())
        ]
        run._results = tuple(
            sorted(selected_results, key=lambda result: agents.index(result.agent))
        )
        run._failures = tuple(
            cell for cell in self.failures() if cell.task in hyperparameters.get(cell.agent, ())
        )
        return run

    def checkpoint(self, agent: str) -> Checkpoint | None:
        """Return the run's copy of a saved policy; None if the agent of that name is trained."""
        if saved := self.manifest.checkpoints.get(agent):
            return Checkpoint(
                self.path / "checkpoints" / agent, saved.sha256, saved.agent, None, {}
            )
        return None

    def check_tables(self, result: CellResult) -> None:
        """Check the heads of a cell's tables, and that they are of the cell.

        Raises:
            ValueError: one is missing or damaged, has other columns or another number of rows, or
                is of another cell.
        """
        from rlbench_suite.evaluation.runs.tables import check_head, schemas

        on_train = result.train_score is not None
        for name, schema in schemas(on_train=on_train, of_set=result.of_set).items():
            with self._reading(result.cell, name) as file:
                check_head(file, schema, result.cell, result.episodes)

    def read_table(self, cell: Cell, name: str) -> pa.Table:
        """Return one of a cell's tables.

        Raises:
            ValueError: it is damaged, or of another cell.
        """
        from rlbench_suite.evaluation.runs.tables import check_cell, read_table, schemas

        with self._reading(cell, name) as file:
            table = read_table(file, schemas(on_train=True, of_set=True)[name])
            check_cell(table, cell)
            return table

    def read_curves(self) -> dict[tuple[str, str], dict[int, TrainingCurve]]:
        """Return the training curves by (agent, task) and seed."""
        curves: dict[tuple[str, str], dict[int, TrainingCurve]] = {}
        for result in self.results():
            table = self.read_table(result.cell, "curve.parquet")
            columns = [table[name].to_numpy() for name in ("steps", "seconds", "episode_return")]
            curves.setdefault((result.agent, result.task), {})[result.seed] = TrainingCurve(
                *columns
            )
        return curves

    def read_front(self, result: CellResult) -> FrontPoints | None:
        """Return the front of a cell's set of policies; None if it has a single policy.

        Raises:
            ValueError: its table is damaged, or of another cell.
        """
        if not result.of_set:
            return None
        objectives = len(result.mean_returns)
        table = self.read_table(result.cell, "front.parquet")
        with self._reading(result.cell, "front.parquet"):
            points: dict[bool, list[list[float]]] = {False: [], True: []}
            for row in table.select(["exact", "returns"]).to_pylist():
                points[row["exact"]].append(row["returns"])
            front = FrontPoints(
                *(np.array(points[exact]).reshape(-1, objectives) for exact in (False, True))
            )
            if not len(front.returns) or not all(np.isfinite(table).all() for table in front):
                raise ValueError("it has no point, or one that is not finite")
        return front

    def read_matches(self) -> dict[str, Matches]:
        """Return the games that policies played against each other, by task.

        Only those of finished cells of the run count.

        Raises:
            ValueError: their table is damaged.
        """
        from rlbench_suite.evaluation.runs.tables import MATCHES, read_table

        path = self.path / MATCHES_FILE
        if not os.path.lexists(path):
            return {}
        try:
            rows = read_table(path, MATCHES)
            tasks = rows["task"].unique().to_pylist()
            finished = [result.cell for result in self.results()]
            return {
                task: _read_matches(rows.filter(np.array(rows["task"]) == task), finished)
                for task in tasks
                if task in self.manifest.references
            }
        except (ValueError, OSError) as error:
            raise ValueError(
                f"{path} is damaged ({first_line(error)}); delete it and run the same command "
                "again, which plays the matches again."
            ) from None

    def read_episodes(self, cell: Cell) -> pa.Table:
        """Return the evaluation episodes of a cell, one a row; see ``tables.EPISODES``."""
        return self.read_table(cell, "episodes.parquet")

    def read_trace(self, cell: Cell, task: Task[Any, Any]) -> tuple[range, np.ndarray]:
        """Return the environment seeds and actions of a cell for ``rollout.replay``.

        Actions are ``(n, horizon, *action shape)``.
        """
        table = self.read_table(cell, "trace.parquet")
        first_seed = table["episode_seed"][0].as_py()
        space = task.action_space
        actions = np.zeros((len(table), task.card.horizon, *(space.shape or ())), space.dtype)
        for episode, episode_actions in zip(actions, table["actions"], strict=True):
            flat = np.asarray(episode_actions.values)
            episode.reshape(-1)[: len(flat)] = flat
        return range(first_seed, first_seed + len(table)), actions

    @contextmanager
    def _reading(self, cell: Cell, name: str) -> Iterator[Path]:
        """Yield the path of a cell's file, and say what to do if it cannot be read.

        Raises:
            ValueError: it is missing or damaged.
        """
        path = self.cell_path(cell) / name
        try:
            yield path
        except (ValueError, OSError, RecursionError) as error:  # Arrow's errors are of these kinds
            raise ValueError(
                f"{path} is damaged ({first_line(error)}); delete the folder {path.parent} and run "
                f"the same command again, which computes {cell} again."
            ) from None


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a run directory.

    Raises:
        ValueError: there is none, or it is damaged or has another format.
    """
    file = path / "manifest.json"
    if not os.path.lexists(file):
        raise ValueError(no_run(path))
    try:
        return Manifest.model_validate_json(_read_plain_file(file))
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{file} is not a manifest of this program ({first_line(error)})."
        ) from None


def read_runs(runs: Sequence[Source | Path]) -> list[Run]:
    """Read runs and give each a name of its own.

    It is its folder's name, or its path or URL where two folders share one.

    Raises:
        ValueError: a run is given twice, is not a run directory, is damaged, or has no finished
            cell.
    """
    sources = [run if isinstance(run, Source) else Source(run, str(run)) for run in runs]
    identities = [source.identity for source in sources]
    names = [identity.rpartition("/")[2] for identity in identities]
    for source in sources:
        if identities.count(source.identity) > 1:
            raise ValueError(f"The run {source.name} is given twice.")
    finished_runs = []
    for source, name in zip(sources, names, strict=True):
        run = Run.read(source.path, name if names.count(name) == 1 else source.name)
        if not run.results():
            raise ValueError(f"The run in {run.path} has no finished cell.")
        run.failures()  # finds damaged records
        finished_runs.append(run)
    return finished_runs


def read_run(run: Source | Path) -> Run:
    """Read one run. Errors as :func:`read_runs`."""
    return read_runs([run])[0]


def no_run(path: Path) -> str:
    """Return a sentence on a path without a manifest, with the nearest run beside it."""
    if path.exists():
        return f"{path} is not a run directory (it has no manifest.json)."
    folder = path.parent
    neighbours = (
        [str(file.parent) for file in folder.glob("*/manifest.json")] if folder.is_dir() else []
    )
    return unknown("run", str(path), neighbours) if neighbours else f"{path} does not exist."


def cell_folder(path: Path, agent: str, task: str, seed: int) -> Path:
    """Return the folder of a cell.

    Raises:
        ValueError: it lies outside of the run.
    """
    inside = Path("cells", agent, file_name_of(task), str(seed))
    if inside.is_absolute() or ".." in inside.parts:
        raise ValueError(
            f"{path / 'manifest.json'} is damaged (it names a cell outside of the run)."
        )
    return path / inside


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    if isinstance(error, ValidationError):
        return first_fault(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.splitlines()[0]
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _read_plain_file(file: Path) -> bytes:
    if os.path.lexists(file) and not file.is_file():  # to open a pipe could take for ever
        raise ValueError("it is no file")
    return file.read_bytes()


def _read_error(file: Path) -> str:
    """Return the error in the record of a failed cell.

    Raises:
        ValueError: it is damaged.
    """
    try:
        record = json.loads(_read_plain_file(file))
        if not isinstance(record, dict):
            raise ValueError("it holds no JSON object")
    except (ValueError, OSError, RecursionError) as error:
        raise ValueError(f"{file} is damaged ({first_line(error)}).") from None
    return str(record.get("error"))


def _read_matches(table: pa.Table, finished: Sequence[Cell]) -> Matches:
    """Return the matches of one task between finished cells.

    Raises:
        ValueError: two of them did not play the same number of games in both seats, or returns are
            not finite.
    """
    earned: dict[tuple[Cell, Cell], list[list[float]]] = {}
    for row in table.to_pylist():
        first, second = (
            Cell(row[f"agent_{seat}"], row["task"], row[f"seed_{seat}"]) for seat in (0, 1)
        )
        if row["game"] >= 0:
            earned.setdefault((first, second), []).append(row["returns"])
    players = {cell for pair in earned for cell in pair}
    cells = tuple(cell for cell in finished if cell in players)
    games = len(next(iter(earned.values()), []))
    returns = np.zeros((len(cells), len(cells), games, 2))
    for i, first in enumerate(cells):
        for j, second in enumerate(cells):
            if i != j:
                returns[i, j] = np.reshape(earned.get((first, second), []), (games, 2))
    if not np.isfinite(returns).all():
        raise ValueError("a return is not finite")
    return Matches(table, cells, returns)


def _seeds(names: Sequence[str]) -> set[int]:
    """Return the names that are seeds, as numbers."""
    return {int(name) for name in names if name.isascii() and name.isdigit() and len(name) <= 10}


# -- several runs together -------------------------------------------------------------------------


def cells_by_agent(runs: Sequence[Run]) -> dict[str, dict[str, dict[int, CellResult]]]:
    """Return the finished cells of all runs by agent, task and seed.

    Agents have the names of :func:`agent_names`.
    """
    table: dict[str, dict[str, dict[int, CellResult]]] = {}
    names = agent_names(runs)
    for run in runs:
        for result in run.results():
            tasks = table.setdefault(names[run.name, result.agent], {})
            tasks.setdefault(result.task, {})[result.seed] = result
    return table


def agent_names(runs: Sequence[Run]) -> dict[tuple[str, str], str]:
    """Return each agent's name among all runs, by its run's name and its name there.

    Agents without finished cells have one too.

    An agent that several runs have is one agent if all cells that they share are equal, and they
    share one. Otherwise it is named after its run too, as in ``ppo (a)``, or after its runs, as in
    ``ppo (a + b)``.
    """
    owners: dict[str, list[list[Run]]] = {}
    for run in runs:
        for agent in run.manifest.hyperparameters:
            groups = owners.setdefault(agent, [])
            agreeing_group = next(
                (
                    group
                    for group in groups
                    if all(_agree(agent, run, known_run) for known_run in group)
                ),
                None,
            )
            if agreeing_group is None:
                groups.append([run])
            else:
                agreeing_group.append(run)
    names = {}
    for agent, groups in owners.items():
        for group in groups:
            runs_of_group = " + ".join(run.name for run in group)
            for run in group:
                names[run.name, agent] = agent if len(groups) == 1 else f"{agent} ({runs_of_group})"
    return names


_OUTCOME = ("episodes", "training_steps", "score", "mean_return", "success_rate", "mean_cost")
"""Numbers of a cell that are the same whenever the same agent is trained again."""


def _agree(agent: str, run: Run, second_run: Run) -> bool:
    """Return whether two runs agree on an agent wherever both have a cell.

    They agree if results and hyperparameters are equal.
    """
    outcomes = _outcomes(agent, run)
    other_outcomes = _outcomes(agent, second_run)
    shared = outcomes.keys() & other_outcomes.keys()
    return bool(shared) and all(outcomes[cell] == other_outcomes[cell] for cell in shared)


def _outcomes(agent: str, run: Run) -> dict[tuple[str, int], tuple[list[float], dict[str, Any]]]:
    """Return the outcome and the hyperparameters of an agent's cells by task and seed."""
    return {
        (result.task, result.seed): (
            [getattr(result, name) for name in _OUTCOME],
            run.manifest.hyperparameters[agent][result.task],
        )
        for result in run.results()
        if result.agent == agent
    }


def failure_counts(runs: Sequence[Run]) -> dict[tuple[str, str], int]:
    """Return the number of failed cells by agent and task, where there are any.

    Agents have the names of :func:`agent_names`.
    """
    names = agent_names(runs)
    counts: dict[tuple[str, str], int] = {}
    for run in runs:
        for cell in run.failures():
            key = names[run.name, cell.agent], cell.task
            counts[key] = counts.get(key, 0) + 1
    return counts


def anchor_errors(runs: Sequence[Run]) -> dict[str, Callable[[float], float]]:
    """Return, by task, the standard error of a score from the measured ends of its scale."""
    errors: dict[str, Callable[[float], float]] = {}
    for run in runs:
        for task, scores in run.manifest.references.items():
            if scale := Scale.of(scores):
                errors[task] = scale.standard_error
    return errors


def violates(results: Sequence[CellResult]) -> bool:
    """Return whether cells of one task, one for each seed, break the constraint on its card."""
    limit = constraint(results[0].task)
    return limit is not None and limit.broken_by_seeds(*(result.mean_cost for result in results))

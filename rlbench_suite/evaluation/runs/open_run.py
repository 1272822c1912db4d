"""Write a run on disk, in one directory (``run.py`` describes it).

A cell is written whole or not at all.

Everything is checked when it is read: an open run finds damaged cells at its beginning, not after
hours of work.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from rlbench_suite.core.policy import is_privileged
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.scale import Scale
from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.cell import Cell, FailedCell
from rlbench_suite.evaluation.policy_files.checkpoint import Checkpoint
from rlbench_suite.evaluation.protocol import Outcome, finite_results
from rlbench_suite.evaluation.runs.computer import Computer, joules
from rlbench_suite.evaluation.runs.manifest import FAILED_SUFFIX, CellResult, Manifest, Sitting
from rlbench_suite.evaluation.runs.run import Run, read_manifest
from rlbench_suite.evaluation.runs.tables import CURVE, EPISODES, FRONT, TRACE, write_table
from rlbench_suite.evaluation.statistics.aggregates import worst_tenth
from rlbench_suite.foundation.atomic_files import (
    clear_abandoned,
    make_folder,
    publish,
    replacing,
    staging,
    writing,
)


class PolicySaver(Protocol):
    """Part of an agent that stores its policies."""

    def save(self, policy: Any, path: str) -> None:
        """Write the policy's weights to ``path``; nothing for players without weights."""
        ...


class OpenRun(Run):
    """Run directory that is written.

    Use :meth:`open`, which refuses a directory that another program has open.

    Args:
        path: the directory.
        manifest: settings of the run.
        requested_cells: cells that this launch asked for.
    """

    def __init__(
        self, path: Path, manifest: Manifest, requested_cells: tuple[Cell, ...] = ()
    ) -> None:
        super().__init__(path, manifest)
        self.requested_cells = requested_cells

    @classmethod
    @contextmanager
    def open(cls, path: Path, manifest: Manifest, *, resume: bool = False) -> Iterator[OpenRun]:
        """Begin a run, or continue one: new agents, tasks and seeds are added to its manifest.

        Args:
            path: the directory; it is created if necessary.
            manifest: the requested run.
            resume: refuse to begin a new run.

        Raises:
            ValueError: the directory holds something else, a damaged run, or one made with another
                package version, protocol, budget or hyperparameters; or there is nothing to resume.
                Nothing is changed then.
            OSError: the directory cannot be written, or another program is at work in it.
        """
        requested_cells = tuple(manifest.cells())
        exists = path.is_file() or (
            path.exists() and any(not p.name.startswith(".") for p in path.iterdir())
        )
        if resume and not exists:
            raise ValueError(
                f"There is no run to resume in {path}; leave --resume out to begin one."
            )
        if exists:
            manifest = _widen(path, _read_earlier_manifest(path), manifest)
        existed = path.exists()
        try:
            make_folder(path)
            lock = _lock(path / ".lock")
        except OSError as error:
            refusal = OSError(
                f"Cannot write to the run directory {path}: {error.strerror or error}."
            )
            refusal.errno = error.errno  # tells a full disk from a wrong path
            raise refusal from None
        try:
            _sweep(path)
            run = cls(path, manifest, requested_cells)
            run.results()  # find damaged cells now, not after hours of work
            yield run
        finally:
            _sweep(path)
            if not existed and [entry.name for entry in path.iterdir()] == [
                ".lock"
            ]:  # nothing was written
                with suppress(OSError):  # Windows removes no open file
                    (path / ".lock").unlink()
                    path.rmdir()
            os.close(lock)

    def result(self, cell: Cell) -> CellResult | None:
        """Return the cell's result, or None if it has not been run.

        Raises:
            ValueError: a file of the cell is damaged, or belongs to another cell.
        """
        result = super().result(cell)
        if result:
            self.check_tables(result)
        elif self.cell_path(cell).exists():
            with self._reading(cell, "result.json") as file:
                file.stat()  # fails, for it is missing
        return result

    def results(self) -> list[CellResult]:
        """Return the results of all cells that are finished now, in the manifest's order."""
        return list(self._read_results())

    def failures(self) -> list[FailedCell]:
        """Return the cells of the run that failed when they were last tried."""
        return list(self._read_failures())

    def missing(self) -> list[Cell]:
        """Return the requested cells that have not been run yet."""
        return [cell for cell in self.requested_cells if not self.cell_path(cell).exists()]

    def record_failure(self, cell: Cell, error: str) -> None:
        """Record that a cell failed, until it has a result.

        No number of its agent then leaves the cell out.
        """
        path = self.cell_path(cell)
        with suppress(OSError):  # the failure is also printed
            make_folder(path.parent)
            with replacing(path.with_name(path.name + FAILED_SUFFIX)) as unfinished:
                unfinished.write_text(json.dumps({**cell._asdict(), "error": error}))

    def keep(self, checkpoint: Checkpoint) -> None:
        """Copy a saved policy into the run, unless the run has a copy.

        Raises:
            CannotWrite: the system refused.
        """
        if (copy := self.checkpoint(checkpoint.label)) and not copy.path.exists():
            with writing(copy.path), replacing(copy.path) as unfinished:
                shutil.copyfile(checkpoint.path, unfinished)

    def write(
        self, cell: Cell, outcome: Outcome, agent: PolicySaver, task: Task[Any, Any], device: str
    ) -> CellResult:
        """Store a cell: all of its files or none.

        Raises:
            CannotWrite: the system refused.
        """
        scale = self.manifest.scale(cell.task)
        floor = self.manifest.floor(cell.task)
        unit: Literal["environment", "gradient"] = getattr(agent, "step_unit", "environment")
        result, tables = _tabulate(cell, outcome, scale, floor, task, device, unit)
        if outcome.train_record:
            outcome_on_train = outcome._replace(record=outcome.train_record)
            result_on_train, tables_on_train = _tabulate(
                cell, outcome_on_train, scale, floor, task, device, unit
            )
            tables["train_episodes.parquet"] = tables_on_train["episodes.parquet"]
            result = result.model_copy(
                update={
                    "train_return": result_on_train.mean_return,
                    "train_score": result_on_train.score,
                }
            )
        with self._storing(cell) as unfinished:
            path = self.cell_path(cell)
            for name, table in tables.items():
                with writing(path / name):
                    write_table(table, unfinished / name)
            with writing(path / "policy.safetensors"):
                agent.save(outcome.policy, str(unfinished / "policy.safetensors"))
            with writing(path / "result.json"):
                (unfinished / "result.json").write_text(result.model_dump_json(indent=2))
        return result

    def adopt(self, cell: Cell, files: Mapping[str, bytes]) -> CellResult:
        """Store the files of a cell that ran elsewhere, and return the stored result.

        Nothing is stored if the run has the cell.

        Raises:
            CannotWrite: the system refused.
            ValueError: a file is missing, damaged or of another cell; the message names it.
        """
        if not self.cell_path(cell).exists():
            with self._storing(cell) as unfinished:
                for name, content in files.items():
                    (unfinished / name).write_bytes(content)
        if result := self.result(cell):
            return result
        raise ValueError(f"{self.cell_path(cell)} was deleted while it was written.")

    @contextmanager
    def _storing(self, cell: Cell) -> Iterator[Path]:
        """Yield a folder for the files of a cell.

        It becomes the cell's folder if no error occurs.
        """
        path = self.cell_path(cell)
        with writing(path):
            make_folder(path.parent)
            with staging(path.parent) as aside:
                unfinished = aside / path.name
                unfinished.mkdir()
                yield unfinished
                publish(unfinished, path)

    def merge(self) -> None:
        """Write the merged tables of all cells."""
        results = self.results()
        finished_cells = [result.cell for result in results]
        if cells_on_train := [result.cell for result in results if result.train_score is not None]:
            self._merge(
                "train_episodes.parquet", cells_on_train, self.path / "train_episodes.parquet"
            )
        if cells_of_sets := [result.cell for result in results if result.of_set]:
            self._merge("front.parquet", cells_of_sets, self.path / "fronts.parquet")
        for name, merged in (
            ("episodes.parquet", "episodes.parquet"),
            ("curve.parquet", "curves.parquet"),
        ):
            self._merge(name, finished_cells, self.path / merged)
        for agent, task in dict.fromkeys((cell.agent, cell.task) for cell in finished_cells):
            group = [cell for cell in finished_cells if (cell.agent, cell.task) == (agent, task)]
            self._merge(
                "trace.parquet",
                group,
                self.path / "traces" / f"{agent}-{find_card(task).file_name}.parquet",
            )

    def _merge(self, name: str, cells: Iterable[Cell], path: Path) -> None:
        tables = [self.read_table(cell, name) for cell in cells]
        with writing(path), replacing(path) as unfinished:
            write_table(pa.concat_tables(tables), unfinished)

    @contextmanager
    def sitting(self) -> Iterator[None]:
        """Record the machine, start, end and energy of this launch in the manifest."""
        start_time = datetime.now(UTC)
        start_seconds = time.monotonic()
        joules_before = joules()
        sitting = Sitting(arguments=sys.argv[1:], machine=Computer.this(), started=start_time)
        self._write_manifest([*self.manifest.sittings, sitting])
        try:
            yield
        finally:
            end_time = datetime.now(UTC)
            joules_after = joules()
            end = {"finished": end_time, "wall_seconds": time.monotonic() - start_seconds}
            # A smaller number means that a counter wrapped around.
            if joules_before and joules_after and joules_after > joules_before:
                end["energy_joules"] = joules_after - joules_before
            self._write_manifest([*self.manifest.sittings[:-1], sitting.model_copy(update=end)])

    def _write_manifest(self, sittings: list[Sitting]) -> None:
        self.manifest = self.manifest.model_copy(update={"sittings": sittings})
        path = self.path / "manifest.json"
        with writing(path), replacing(path) as unfinished:
            unfinished.write_text(self.manifest.model_dump_json(indent=2))


def _read_earlier_manifest(path: Path) -> Manifest:
    """Return the manifest of a run that is to be continued.

    Raises:
        ValueError: the directory holds something else, or a damaged run.
    """
    try:
        return read_manifest(path)
    except ValueError as error:
        raise ValueError(f"{error} Choose another directory.") from None


def _sweep(path: Path) -> None:
    """Remove unfinished files of workers that were ended while they wrote."""
    for folder in (path, *path.glob("cells/*/*")):
        clear_abandoned(folder)


def _lock(path: Path) -> int:
    """Lock the directory. The system unlocks it when the process ends in any way."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise OSError("another program is at work in it") from None
    return file


def _widen(path: Path, earlier: Manifest, request: Manifest) -> Manifest:
    """Return the earlier manifest with the new request added.

    Refuse to mix what cannot be compared.
    """
    earlier_settings, settings = earlier.settings(), request.settings()
    for name in settings:
        if earlier_settings.get(name, settings[name]) != settings[name]:
            raise ValueError(
                f"The run in {path} has {name} = {earlier_settings[name]!r}, but now it is "
                f"{settings[name]!r}; "
                "choose another --out."
            )
    update: dict[str, Any] = {"seeds": max(earlier.seeds, request.seeds)}
    update["references"] = earlier.references | request.references
    for table in ("hyperparameters", "not_applicable"):
        earlier_entries, entries = getattr(earlier, table), getattr(request, table)
        update[table] = {
            agent: earlier_entries.get(agent, {}) | entries.get(agent, {})
            for agent in earlier_entries | entries
        }
    update["checkpoints"] = earlier.checkpoints | request.checkpoints
    update["models"] = earlier.models | request.models
    update["on_train"] = tuple(dict.fromkeys((*earlier.on_train, *request.on_train)))
    update["suites"] = earlier.suites | request.suites
    return earlier.model_copy(update=update)


def _tabulate(
    cell: Cell,
    outcome: Outcome,
    scale: Scale,
    floor: float,
    task: Task[Any, Any],
    device: str,
    step_unit: Literal["environment", "gradient"],
) -> tuple[CellResult, dict[str, pa.Table]]:
    record = outcome.record
    count = len(outcome.seeds)
    totals, returns, costs, diverged = finite_results(record, task, floor)
    scores = scale.score(returns)
    success = record.info["success"].astype(bool)
    names = (
        [name for name in record.info if name != "success"]
        if outcome.policy is None
        else task.measures
    )
    measures = {name: record.info[name].astype(np.float64).tolist() for name in names}
    curve = outcome.curve

    def table(schema: pa.Schema, rows: int, **columns: Any) -> pa.Table:
        columns |= {name: [value] * rows for name, value in cell._asdict().items()}
        return pa.table({name: columns[name] for name in schema.names}, schema)

    tables = {
        "episodes.parquet": table(
            EPISODES, count, episode_seed=list(outcome.seeds), score=scores, length=record.length,
            success=success, terminated=record.terminated, cost=costs,
            returns=totals.reshape(count, -1).tolist(),
            measures=[
                [(name, values[i]) for name, values in measures.items()] for i in range(count)
            ],
            **{"return": returns},
        ),
        "curve.parquet": table(
            CURVE, len(curve),
            **{name: [getattr(row, name) for row in curve] for name in CURVE.names[3:]},
        ),
        "trace.parquet": table(
            TRACE, count, episode_seed=list(outcome.seeds),
            actions=[
                actions[:length].astype(np.float64).ravel()
                for actions, length in zip(record.actions, record.length, strict=True)
            ],
        ),
    }  # fmt: skip
    if front := outcome.front:
        finite = np.isfinite(front.returns).all(1, keepdims=True)
        learned, exact = len(front.returns), len(front.exact)
        tables["front.parquet"] = table(
            FRONT, learned + exact, exact=[False] * learned + [True] * exact,
            weights=[*front.weights.tolist(), *[[]] * (learned + exact - len(front.weights))],
            returns=[*np.where(finite, front.returns, floor).tolist(), *front.exact.tolist()],
        )  # fmt: skip
    result = CellResult(
        **cell._asdict(),
        episodes=count,
        floored=int(diverged.sum()),
        mean_return=returns.mean(),
        score=scores.mean(),
        worst_tenth=worst_tenth(scores),
        success_rate=success.mean(),
        mean_length=record.length.mean(),
        mean_cost=costs.mean(),
        mean_returns=totals.reshape(count, -1).mean(0).tolist(),
        training_steps=curve[-1].steps if curve else 0,
        step_unit=step_unit,
        train_seconds=curve[-1].seconds if curve else 0.0,
        compile_seconds=curve[-1].compile_seconds if curve else 0.0,
        evaluate_seconds=outcome.evaluate_seconds,
        wall_seconds=outcome.train_seconds + outcome.evaluate_seconds,
        device=device,
        of_set=front is not None,
        privileged=is_privileged(outcome.policy),
    )
    return result, tables

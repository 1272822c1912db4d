"""A run on disk: one directory. Cells are written whole or not at all, and everything is checked when it is read.

::

    manifest.json                             settings, machine and times of the run
    cells/<agent>/<task>/<seed>/result.json   results of one cell
                               /episodes.parquet  curve.parquet  trace.parquet  policy.safetensors
                               /train_episodes.parquet  episodes on the train split, in the suite generalisation
    transcripts/<agent>/<task>/<seed>.jsonl   conversations of language models, also of unfinished cells
    episodes.parquet  curves.parquet  traces/<agent>-<task>.parquet  report.html   all cells together
    checkpoints/<agent>                       copies of evaluated saved policies
    workers.log                               output of agents, and full errors
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
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

import rlbench_suite
from rlbench_suite.agent import Agent
from rlbench_suite.evaluation.checkpoint import Checkpoint
from rlbench_suite.evaluation.machine import Machine, joules
from rlbench_suite.evaluation.protocol import VERSION, Cell, CellSpec, Outcome, finite_results
from rlbench_suite.evaluation.statistics import worst_tenth
from rlbench_suite.evaluation.writing import FAILED, clear_abandoned, make_folder, publish, replacing, staging, writing
from rlbench_suite.policy import is_privileged
from rlbench_suite.registry import card as find_card
from rlbench_suite.scale import ZERO_PLAYERS, Scale, Score
from rlbench_suite.task import Task

_CELL = [("agent", pa.string()), ("task", pa.string()), ("seed", pa.int64())]
EPISODES = pa.schema([
    *_CELL, ("episode_seed", pa.uint64()),
    ("return", pa.float64()),  # scalar: objectives by the card's weights, agents by their mean
    ("score", pa.float64()),  # normalised by the card's scale
    ("length", pa.int32()), ("success", pa.bool_()), ("terminated", pa.bool_()), ("cost", pa.float64()),
    ("returns", pa.list_(pa.float64())),  # by objective or agent; one number otherwise
    ("measures", pa.map_(pa.string(), pa.float64())),  # the task's own, at the last step; tokens of language models
])  # fmt: skip
CURVE = pa.schema([
    *_CELL, ("steps", pa.int64()), ("total_steps", pa.int64()),
    ("seconds", pa.float64()), ("compile_seconds", pa.float64()), ("episode_return", pa.float64()),
])  # fmt: skip
TRACE = pa.schema([*_CELL, ("episode_seed", pa.uint64()), ("actions", pa.list_(pa.float64()))])
"""Actions of an episode, one after another. A float64 represents every int32 and float32 exactly."""

_TABLES = {"episodes.parquet": EPISODES, "curve.parquet": CURVE, "trace.parquet": TRACE}
_ON_TRAIN = {"train_episodes.parquet": EPISODES}
"""Table that only cells have that were also evaluated on the train split."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sitting(_Strict):
    """One launch of the program on a run. A resumed run has several."""

    arguments: list[str]
    machine: Machine
    started: datetime
    finished: datetime | None = None
    wall_seconds: float | None = None
    energy_joules: float | None = None
    """Energy of the processors, if the machine reports it."""


class SavedFile(_Strict):
    """Saved policy of a run: its agent and its file's hash."""

    agent: str
    sha256: str


class ServedModel(_Strict):
    """Language model of a run: its name and the address of its server when it was last asked."""

    model: str
    base_url: str


class Manifest(_Strict):
    """Contents of ``manifest.json``: what was run, and with which settings."""

    format: Literal["rlbench-suite run 1"] = "rlbench-suite run 1"
    version: str
    protocol: int
    budget: str
    seeds: int
    references: dict[str, dict[str, Score]]
    """Scores for normalising returns, by task id and player."""
    hyperparameters: dict[str, dict[str, dict[str, Any]]]
    """Hyperparameters by agent and task id."""
    not_applicable: dict[str, dict[str, str]]
    """Reasons why an agent cannot play a task, by agent and task id."""
    checkpoints: dict[str, SavedFile] = {}
    """Agents of the run that are saved policies and were not trained in it."""
    models: dict[str, ServedModel] = {}
    """Agents of the run that are language models and were not trained in it."""
    suites: dict[str, str] = {}
    """SHA-256 of every suite file of the run, by the name of the suite."""
    on_train: tuple[str, ...] = ()
    """Ids of the tasks on which agents are evaluated on training contexts, too."""
    sittings: list[Sitting] = []

    @classmethod
    def now(cls, **known: Any) -> Manifest:
        """Return a manifest with this version of the package and the protocol."""
        plain = json.loads(json.dumps(known))  # as it will be read back: tuples become lists
        return cls(version=rlbench_suite.__version__, protocol=VERSION, **plain)

    def settings(self) -> dict[str, Any]:
        """Return all settings that must be equal for cells to be comparable, by name."""
        settings: dict[str, Any] = {name: getattr(self, name) for name in ("version", "protocol", "budget")}
        settings |= {f"the suite file of {name}": digest for name, digest in self.suites.items()}
        for task, scores in self.references.items():
            settings[f"the evaluation of {task} on training contexts"] = task in self.on_train
            settings |= {f"the {player} score of {task}": score.mean for player, score in scores.items()}
        for agent, tasks in self.hyperparameters.items():
            for task, values in tasks.items():
                settings[f"the hyperparameters of {agent} on {task}"] = sorted(values)
                settings |= {f"{agent}'s {name} on {task}": value for name, value in values.items()}
        return settings

    def scale(self, task: str) -> Scale:
        """Return the scale of the scores of a task."""
        scale = Scale.of(self.references[task])
        assert scale is not None  # plans have measured tasks only
        return scale

    def floor(self, task: str) -> float:
        """Return the return of the worse of random play and doing nothing, which diverged episodes count as."""
        return min(score.mean for player, score in self.references[task].items() if player in ZERO_PLAYERS)

    def cells(self) -> Iterator[Cell]:
        """Yield every cell of the run."""
        for agent, tasks in self.hyperparameters.items():
            for task in tasks:
                for seed in range(self.seeds):
                    yield Cell(agent, task, seed)

    def spec(self, cell: Cell) -> CellSpec:
        """Return a cell of the run with its settings."""
        hyperparameters = self.hyperparameters[cell.agent][cell.task]
        return CellSpec(*cell, self.budget, hyperparameters, on_train=cell.task in self.on_train)


class CellResult(_Strict):
    """Results of one cell: means over its evaluation episodes, and the cost of training."""

    agent: str
    task: str
    seed: int
    episodes: int
    floored: int = 0
    """Episodes whose return is not finite. They count as the worse of random play and doing nothing."""
    mean_return: FiniteFloat
    score: FiniteFloat
    """Normalised score: 0 is the better of random play and doing nothing, 1 the reference."""
    success_rate: float
    mean_length: float
    mean_cost: float
    mean_returns: list[float]
    """Mean returns by objective or agent; one number otherwise."""
    training_steps: int
    step_unit: Literal["environment", "gradient"] = "environment"
    """Kind of the training steps. Agents that learn from a dataset make gradient steps."""
    train_seconds: float
    """Time of training without compilation."""
    compile_seconds: float
    evaluate_seconds: float
    wall_seconds: float
    device: str
    """JAX's default device, on which agents of JAX train. Their episodes are played on the CPU."""
    train_return: FiniteFloat | None = None
    """Mean return on training contexts, if the cell was evaluated on them."""
    train_score: FiniteFloat | None = None
    """Normalised score on training contexts, by the same anchors as ``score``."""
    worst_tenth: FiniteFloat | None = None
    """Mean normalised score of the worst tenth of the episodes; None in runs of versions that did not compute it."""
    privileged: bool = False
    """True if the policy is declared to read the state or params of the task, which agents do not see."""

    @property
    def cell(self) -> Cell:
        """Cell of these results."""
        return Cell(self.agent, self.task, self.seed)

    @property
    def steps_per_second(self) -> float | None:
        """Training speed without compilation; None for players that do not train."""
        return self.training_steps / self.train_seconds if self.train_seconds else None


class TrainingCurve(NamedTuple):
    """Progress of one cell's training, an entry for each report."""

    steps: np.ndarray
    seconds: np.ndarray
    """Seconds of training without compilation."""
    returns: np.ndarray
    """Mean return of the episodes that ended since the report before; NaN where none ended."""


class Run:
    """Open run directory. Use :meth:`open`, which refuses a directory that another program has open."""

    def __init__(self, path: Path, manifest: Manifest, wanted: tuple[Cell, ...]) -> None:
        self.path, self.manifest, self.wanted = path, manifest, wanted

    @classmethod
    @contextmanager
    def open(cls, path: Path, manifest: Manifest, *, resume: bool = False) -> Iterator[Run]:
        """Begin a run, or continue one: new agents, tasks and seeds are added to its manifest.

        Args:
            path: the directory; it is created if necessary.
            manifest: the requested run.
            resume: refuse to begin a new run.

        Raises:
            ValueError: the directory holds something else, a damaged run, or one made with another package version,
                protocol, budget or hyperparameters; or there is nothing to resume. Nothing is changed then.
            OSError: the directory cannot be written, or another program is at work in it.
        """
        wanted = tuple(manifest.cells())
        found = path.is_file() or (path.exists() and any(not p.name.startswith(".") for p in path.iterdir()))
        if resume and not found:
            raise ValueError(f"There is no run to resume in {path}; leave --resume out to begin one.")
        if found:
            manifest = _widen(path, read_manifest(path), manifest)
        begun = path.exists()
        try:
            make_folder(path)
            lock = _lock(path / ".lock")
        except OSError as error:
            refusal = OSError(f"Cannot write to the run directory {path}: {error.strerror or error}.")
            refusal.errno = error.errno  # tells a full disk from a wrong path
            raise refusal from None
        try:
            _sweep(path)
            run = cls(path, manifest, wanted)
            run.results()  # find damaged cells now, not after hours of work
            yield run
        finally:
            _sweep(path)
            if not begun and [each.name for each in path.iterdir()] == [".lock"]:  # nothing was written
                with suppress(OSError):  # Windows removes no open file
                    (path / ".lock").unlink()
                    path.rmdir()
            os.close(lock)

    def cell_path(self, cell: Cell) -> Path:
        """Return the folder of a cell."""
        return self.path / "cells" / cell.agent / find_card(cell.task).file_name / str(cell.seed)

    def result(self, cell: Cell) -> CellResult | None:
        """Return the cell's result, or None if it has not been run.

        Raises:
            ValueError: a file of the cell is damaged, or belongs to another cell.
        """
        if not self.cell_path(cell).exists():
            return None
        with self._reading(cell, "result.json") as path:
            result = CellResult.model_validate_json(path.read_bytes())
            if result.cell != cell:
                raise ValueError(f"it belongs to {result.cell}")
        for name, schema in (_TABLES if result.train_score is None else _TABLES | _ON_TRAIN).items():
            with self._reading(cell, name) as path:
                found = pq.read_metadata(path)
                if not found.schema.to_arrow_schema().equals(schema):
                    raise ValueError("it has other columns")
                if schema is not CURVE and found.num_rows != result.episodes:
                    raise ValueError(f"it has {found.num_rows} rows for {result.episodes} episodes")
        return result

    @contextmanager
    def _reading(self, cell: Cell, name: str) -> Iterator[Path]:
        """Yield the path of a cell's file, and say what to do if it cannot be read.

        Raises:
            ValueError: it is missing or damaged.
        """
        path = self.cell_path(cell) / name
        try:
            yield path
        except (ValueError, OSError, pa.ArrowException) as error:
            raise ValueError(
                f"{path} is damaged ({_first_line(error)}); delete the folder {path.parent} and run the same command "
                f"again, which computes {cell} again."
            ) from None

    def _table(self, cell: Cell, name: str) -> pa.Table:
        """Return one of a cell's tables.

        Raises:
            ValueError: it is damaged.
        """
        with self._reading(cell, name) as path:
            return pq.read_table(path, schema=(_TABLES | _ON_TRAIN)[name], page_checksum_verification=True)

    def results(self) -> list[CellResult]:
        """Return the results of all finished cells, in the manifest's order."""
        return [result for cell in self.manifest.cells() if (result := self.result(cell))]

    def missing(self) -> list[Cell]:
        """Return the requested cells that have not been run yet."""
        return [cell for cell in self.wanted if not self.cell_path(cell).exists()]

    def record_failure(self, cell: Cell, error: str) -> None:
        """Record that a cell failed, so that no number of its agent leaves it out, until it has a result."""
        path = self.cell_path(cell)
        with suppress(OSError):  # the failure is also printed
            make_folder(path.parent)
            with replacing(path.with_name(path.name + FAILED)) as unfinished:
                unfinished.write_text(json.dumps({**cell._asdict(), "error": error}))

    def failures(self) -> list[Cell]:
        """Return the cells of the run that failed when they were last tried."""
        paths = {cell: self.cell_path(cell) for cell in self.manifest.cells()}
        return [c for c, path in paths.items() if not path.exists() and path.with_name(path.name + FAILED).exists()]

    def checkpoint(self, agent: str) -> Checkpoint | None:
        """Return the run's copy of a saved policy; None if the agent of that name is trained."""
        if saved := self.manifest.checkpoints.get(agent):
            return Checkpoint(self.path / "checkpoints" / agent, saved.sha256, saved.agent, None, {})
        return None

    def keep(self, checkpoint: Checkpoint) -> None:
        """Copy a saved policy into the run, unless the run has a copy.

        Raises:
            CannotWrite: the system refused.
        """
        if (copy := self.checkpoint(checkpoint.label)) and not copy.path.exists():
            with writing(copy.path), replacing(copy.path) as unfinished:
                shutil.copyfile(checkpoint.path, unfinished)

    def write(self, cell: Cell, outcome: Outcome, agent: Agent, task: Task[Any, Any], device: str) -> CellResult:
        """Store a cell: all of its files or none.

        Raises:
            CannotWrite: the system refused.
        """
        scale = self.manifest.scale(cell.task)
        floor = self.manifest.floor(cell.task)
        unit: Literal["environment", "gradient"] = getattr(agent, "step_unit", "environment")
        result, tables = _tabulate(cell, outcome, scale, floor, task, device, unit)
        if outcome.train_record:
            seen = outcome._replace(record=outcome.train_record)
            there, more = _tabulate(cell, seen, scale, floor, task, device, unit)
            tables["train_episodes.parquet"] = more["episodes.parquet"]
            result = result.model_copy(update={"train_return": there.mean_return, "train_score": there.score})
        with self._storing(cell) as unfinished:
            path = self.cell_path(cell)
            for name, table in tables.items():
                with writing(path / name):
                    _write_table(table, unfinished / name)
            with writing(path / "policy.safetensors"):
                agent.save(outcome.policy, str(unfinished / "policy.safetensors"))
            with writing(path / "result.json"):
                (unfinished / "result.json").write_text(result.model_dump_json(indent=2))
        return result

    def adopt(self, cell: Cell, files: Mapping[str, bytes]) -> CellResult:
        """Store the files of a cell that ran elsewhere, unless the run has the cell, and return the stored result.

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
        """Yield a folder for the files of a cell. It becomes the cell's folder if no error occurs."""
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
        done = [result.cell for result in results]
        if both := [result.cell for result in results if result.train_score is not None]:
            self._merge("train_episodes.parquet", both, self.path / "train_episodes.parquet")
        for name, merged in (("episodes.parquet", "episodes.parquet"), ("curve.parquet", "curves.parquet")):
            self._merge(name, done, self.path / merged)
        for agent, task in dict.fromkeys((cell.agent, cell.task) for cell in done):
            group = [cell for cell in done if (cell.agent, cell.task) == (agent, task)]
            self._merge("trace.parquet", group, self.path / "traces" / f"{agent}-{find_card(task).file_name}.parquet")

    def _merge(self, name: str, cells: Iterable[Cell], path: Path) -> None:
        tables = [self._table(cell, name) for cell in cells]
        with writing(path), replacing(path) as unfinished:
            _write_table(pa.concat_tables(tables), unfinished)

    def read_curves(self) -> dict[tuple[str, str], dict[int, TrainingCurve]]:
        """Return the training curves by (agent, task) and seed."""
        curves: dict[tuple[str, str], dict[int, TrainingCurve]] = {}
        for cell in (result.cell for result in self.results()):
            table = self._table(cell, "curve.parquet")
            columns = (table[name].to_numpy() for name in ("steps", "seconds", "episode_return"))
            curves.setdefault((cell.agent, cell.task), {})[cell.seed] = TrainingCurve(*columns)
        return curves

    def read_episodes(self, cell: Cell) -> pa.Table:
        """Return the evaluation episodes of a cell, one a row; see :data:`EPISODES`."""
        return self._table(cell, "episodes.parquet")

    def read_trace(self, cell: Cell, task: Task[Any, Any]) -> tuple[range, np.ndarray]:
        """Return the environment seeds and actions ``(n, horizon, *action shape)`` of a cell for ``rollout.replay``."""
        table = self._table(cell, "trace.parquet")
        first = table["episode_seed"][0].as_py()
        space = task.action_space
        actions = np.zeros((len(table), task.card.horizon, *(space.shape or ())), space.dtype)
        for episode, played in zip(actions, table["actions"], strict=True):
            flat = np.asarray(played.values)
            episode.reshape(-1)[: len(flat)] = flat
        return range(first, first + len(table)), actions

    @contextmanager
    def sitting(self) -> Iterator[None]:
        """Record the machine, start, end and energy of this launch in the manifest."""
        started, launched, joules_before = datetime.now(UTC), time.monotonic(), joules()
        now = Sitting(arguments=sys.argv[1:], machine=Machine.this(), started=started)
        self._write_manifest([*self.manifest.sittings, now])
        try:
            yield
        finally:
            finished, joules_after = datetime.now(UTC), joules()
            ended = {"finished": finished, "wall_seconds": time.monotonic() - launched}
            if joules_before and joules_after and joules_after > joules_before:  # otherwise a counter wrapped around
                ended["energy_joules"] = joules_after - joules_before
            self._write_manifest([*self.manifest.sittings[:-1], now.model_copy(update=ended)])

    def _write_manifest(self, sittings: list[Sitting]) -> None:
        self.manifest = self.manifest.model_copy(update={"sittings": sittings})
        path = self.path / "manifest.json"
        with writing(path), replacing(path) as unfinished:
            unfinished.write_text(self.manifest.model_dump_json(indent=2))


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a run directory.

    Raises:
        ValueError: there is none, or it is damaged or has another format.
    """
    try:
        return Manifest.model_validate_json((path / "manifest.json").read_bytes())
    except OSError:
        what = "exists and is not a run directory (it has no manifest.json)" if path.exists() else "does not exist"
        raise ValueError(f"{path} {what}; choose another.") from None
    except ValidationError as error:
        raise ValueError(
            f"{path / 'manifest.json'} is not a manifest of this program ({_first_line(error)}); "
            "choose another directory."
        ) from None


def _sweep(path: Path) -> None:
    """Remove unfinished files of workers that were ended while they wrote."""
    for folder in (path, *path.glob("cells/*/*")):
        clear_abandoned(folder)


def _write_table(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


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


def _widen(path: Path, earlier: Manifest, wanted: Manifest) -> Manifest:
    """Return the earlier manifest with the new request added. Refuse to mix what cannot be compared."""
    then, now = earlier.settings(), wanted.settings()
    for name in now:
        if then.get(name, now[name]) != now[name]:
            raise ValueError(
                f"The run in {path} has {name} = {then[name]!r}, but now it is {now[name]!r}; choose another --out."
            )
    update: dict[str, Any] = {"seeds": max(earlier.seeds, wanted.seeds)}
    update["references"] = earlier.references | wanted.references
    for table in ("hyperparameters", "not_applicable"):
        old, new = getattr(earlier, table), getattr(wanted, table)
        update[table] = {agent: old.get(agent, {}) | new.get(agent, {}) for agent in old | new}
    update["checkpoints"] = earlier.checkpoints | wanted.checkpoints
    update["models"] = earlier.models | wanted.models
    update["on_train"] = tuple(dict.fromkeys((*earlier.on_train, *wanted.on_train)))
    update["suites"] = earlier.suites | wanted.suites
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
    record, count = outcome.record, len(outcome.seeds)
    totals, returns, costs, diverged = finite_results(record, task, floor)
    scores = scale.score(returns)
    success = record.info["success"].astype(bool)
    names = [name for name in record.info if name != "success"] if outcome.policy is None else task.measures
    measures = {name: record.info[name].astype(np.float64).tolist() for name in names}
    curve = outcome.curve

    def table(schema: pa.Schema, rows: int, **columns: Any) -> pa.Table:
        columns |= {name: [value] * rows for name, value in cell._asdict().items()}
        return pa.table({name: columns[name] for name in schema.names}, schema)

    tables = {
        "episodes.parquet": table(
            EPISODES, count, episode_seed=list(outcome.seeds), score=scores, length=record.length, success=success,
            terminated=record.terminated, cost=costs,
            returns=totals.reshape(count, -1).tolist(),
            measures=[[(name, values[i]) for name, values in measures.items()] for i in range(count)],
            **{"return": returns},
        ),
        "curve.parquet": table(
            CURVE, len(curve), **{name: [getattr(row, name) for row in curve] for name in CURVE.names[3:]}
        ),
        "trace.parquet": table(
            TRACE, count, episode_seed=list(outcome.seeds),
            actions=[
                actions[:length].astype(np.float64).ravel()
                for actions, length in zip(record.actions, record.length, strict=True)
            ],
        ),
    }  # fmt: skip
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
        privileged=is_privileged(outcome.policy),
    )
    return result, tables


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.splitlines()[0]
    return str(error).splitlines()[0] if str(error) else type(error).__name__

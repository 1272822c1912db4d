"""Make an archive of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards, resolve_suite
from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.runs.manifest import CellResult
from rlbench_suite.evaluation.runs.run import Run, read_manifest
from rlbench_suite.evaluation.runs.tables import EPISODES
from rlbench_suite.evaluation.statistics.aggregates import iqm, mean
from rlbench_suite.foundation.atomic_files import replacing, writing
from rlbench_suite.foundation.unknown_names import unknown

from .archive import write_archive, write_table
from .copies import digest
from .schema import (
    MANIFEST,
    CellClaim,
    Entry,
    Origin,
    Submission,
    TaskClaim,
    actions_member,
    actions_schema,
    episodes_member,
    episodes_schema,
    trace_dtype,
)

Columns = list[np.ndarray]


def choose_agent(path: Path, agent: str | None) -> str:
    """Return the agent to pack: the named one, or the only one of the run.

    Raises:
        ValueError: the run has no such agent, or has several and none is named.
    """
    agents = list(read_manifest(path).hyperparameters)
    if agent is None:
        if len(agents) > 1:
            raise ValueError(
                f"The run in {path} has several agents ({', '.join(agents)}); choose one with "
                "--agent."
            )
        return agents[0]
    if agent not in agents:
        raise ValueError(unknown(f"agent of the run in {path}", agent, agents))
    return agent


def pack(path: Path, entry: Entry, to: Path, *, suite: str | None = None) -> Submission:
    """Write the archive of one agent of a run. The same run and entry give the same bytes.

    Args:
        path: the run directory; it is only read.
        entry: who submits what; ``entry.agent`` names the agent of the run.
        to: the file to write, whole or not at all.
        suite: suites and ids to pack, all tasks that the agent has if None.

    Raises:
        ValueError: the run is damaged or lacks cells of what is to be packed, or the agent is a
            language model.
        OSError: something cannot be read or written.
    """
    run = Run.read(path)
    manifest = run.manifest
    if not manifest.has_policies(entry.agent):
        raise ValueError(
            f"{entry.agent} is a language model, which answers in words. The judge replays "
            "actions, and there are none."
        )
    tasks = list(manifest.hyperparameters[entry.agent])
    if suite is not None:
        suite_tasks = [card.id for card in resolve_suite(suite)]
        if absent := [task for task in suite_tasks if task not in tasks]:
            raise ValueError(f"The run in {path} has {entry.agent} not on {', '.join(absent)}.")
        tasks = suite_tasks
    if foreign := [task for task in tasks if task not in cards()]:
        raise ValueError(
            f"A board has tasks as they are registered, and {foreign[0]} has settings of its own."
        )
    cells_to_pack = [
        Cell(entry.agent, task, seed) for task in tasks for seed in range(manifest.seeds)
    ]
    if missing := [cell for cell in cells_to_pack if not run.cell_path(cell).exists()]:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        missing_cells = "; ".join(map(str, missing[:3]))
        raise ValueError(
            f"The run in {path} lacks {missing_cells}{more}; finish it with rlsuite-eval --resume."
        )
    results = [result for result in map(run.result, cells_to_pack) if result]
    for result in results:
        run.check_tables(result)
    if floored := next((result for result in results if result.floored), None):
        raise ValueError(
            f"{floored.cell} has {floored.floored} episodes whose return is not finite. A replay "
            "cannot verify them."
        )
    traces = {task: _Trace(run, entry.agent, task) for task in tasks}
    claims = tuple(trace.claim() for trace in traces.values())
    scores = {claim.task: [cell.score for cell in claim.cells] for claim in claims}
    machines = dict.fromkeys(
        Origin.of(sitting.machine).model_dump_json() for sitting in manifest.sittings
    )
    submission = Submission(
        format="rlbench-suite submission 2",
        version=manifest.version,
        protocol=manifest.protocol,
        budget=manifest.budget,
        created=max(sitting.finished or sitting.started for sitting in manifest.sittings),
        entry=entry,
        machines=tuple(Origin.model_validate_json(machine) for machine in machines),
        tasks=claims,
        iqm=iqm(scores, replicates=1).point,
        mean=mean(scores, replicates=1).point,
    )

    def members() -> Iterator[tuple[str, bytes]]:
        yield MANIFEST, submission.model_dump_json(indent=1).encode()
        for trace in traces.values():
            yield (
                episodes_member(trace.task.card.name),
                write_table(episodes_schema(trace.task), trace.episodes()),
            )
            yield (
                actions_member(trace.task.card.name),
                write_table(actions_schema(trace.task), trace.actions()),
            )

    with writing(f"the archive {to}"), replacing(to) as unfinished, unfinished.open("wb") as file:
        write_archive(file, members())
    return submission


def fingerprint(columns: Columns) -> str:
    """Return the SHA-256 of the actions of a cell, given by their columns."""
    return digest(np.stack(columns, axis=-1))


class _Trace:
    """Cells of an agent on a task."""

    def __init__(self, run: Run, agent: str, task: str) -> None:
        self.run, self.agent = run, agent
        self.task: Task[Any, Any] = find_card(task).build()
        self.cells = [Cell(agent, task, seed) for seed in range(run.manifest.seeds)]

    def claim(self) -> TaskClaim:
        card = self.task.card
        manifest = self.run.manifest
        scale = manifest.scale(card.id)
        results = [self.run.result(cell) for cell in self.cells]
        cells = tuple(
            _cell_claim(result, fingerprint(columns))
            for result, columns in zip(results, self.actions(), strict=True)
            if result
        )
        return TaskClaim(
            task=card.id,
            zero=scale.zero.mean,
            reference=scale.reference.mean,
            score=float(np.mean([cell.score for cell in cells])),
            hyperparameters=manifest.hyperparameters[self.agent][card.id],
            privileged=any(result.privileged for result in results if result),
            cells=cells,
        )

    def actions(self) -> list[Columns]:
        """Return the columns of :func:`actions_schema` by cell."""
        kind = trace_dtype(self.task)
        groups = []
        for cell in self.cells:
            _, actions = self.run.read_trace(cell, self.task)
            flat = actions.reshape(*actions.shape[:2], -1).astype(kind)
            rows = np.concatenate(
                [e[:n] for e, n in zip(flat, self._episodes(cell)["length"], strict=True)]
            )
            groups.append([np.ascontiguousarray(column) for column in rows.T])
        return groups

    def episodes(self) -> list[Columns]:
        """Return the columns of :func:`episodes_schema` by cell."""
        groups = []
        for cell in self.cells:
            table = self._episodes(cell)
            returns = np.array(table["returns"], np.float64)
            names = ("episode_seed", "length", "success", "terminated", "cost")
            groups.append([np.array(table[name]) for name in names] + list(returns.T))
        return groups

    def _episodes(self, cell: Cell) -> dict[str, list[Any]]:
        table = pq.read_table(self.run.cell_path(cell) / "episodes.parquet", schema=EPISODES)
        names = ["episode_seed", "length", "success", "terminated", "cost", "returns"]
        columns: dict[str, list[Any]] = table.select(names).to_pydict()
        return columns


def _cell_claim(result: CellResult, actions: str) -> CellClaim:
    names = ("seed", "episodes", "mean_return", "score", "success_rate", "mean_length", "mean_cost")
    costs = ("training_steps", "train_seconds", "compile_seconds", "device")
    return CellClaim(**{name: getattr(result, name) for name in names + costs}, actions=actions)

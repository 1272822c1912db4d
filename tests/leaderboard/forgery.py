"""A forger who can change anything in an archive, and runs to make archives of."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rlbench_suite.core import registry
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.runner import in_process, plan
from rlbench_suite.evaluation.statistics.aggregates import iqm, mean
from rlbench_suite.leaderboard.archive import write_archive, write_table
from rlbench_suite.leaderboard.pack import fingerprint

WALK, DRIFT = "rlsuite/ToyWalk-v0", "rlsuite/ToyDrift-v0"
Groups = list[dict[str, np.ndarray]]


def run_agents(path: Path, agents: str, suite: str, seeds: int) -> Path:
    """Make a finished run."""
    with OpenRun.open(path, plan(agents, suite, seeds, "smoke")) as run, run.sitting():
        for event in in_process(run):
            assert event.kind != "failed", event.value
        run.merge()
    return path


class Forgery:
    """An archive taken apart.

    ``claims`` is ``submission.json``; tables are read and written by task and cell.
    """

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.claims: dict[str, Any] = json.loads(self.members["submission.json"])

    def task(self, task: str = WALK) -> dict[str, Any]:
        return next(claim for claim in self.claims["tasks"] if claim["task"] == task)

    def cell(self, seed: int = 0, task: str = WALK) -> dict[str, Any]:
        return self.task(task)["cells"][seed]

    def groups(self, kind: str, task: str = WALK) -> Groups:
        file = pq.ParquetFile(io.BytesIO(self.members[self.member(kind, task)]))
        tables = [file.read_row_group(i) for i in range(file.num_row_groups)]
        return [
            {name: table[name].to_numpy().copy() for name in table.column_names} for table in tables
        ]

    def member(self, kind: str, task: str = WALK) -> str:
        return f"{kind}/{task.split('/')[1]}.parquet"

    def put(self, kind: str, groups: Groups, task: str = WALK) -> None:
        """Write a table as ``pack`` would; the digests of actions are claimed anew."""
        fields = [
            pa.field(name, pa.from_numpy_dtype(v.dtype), nullable=False)
            for name, v in groups[0].items()
        ]
        data = write_table(pa.schema(fields), [list(group.values()) for group in groups])
        self.members[self.member(kind, task)] = data
        if kind == "actions":
            for cell, group in zip(self.task(task)["cells"], groups, strict=False):
                cell["actions"] = fingerprint(list(group.values()))

    def change(
        self, kind: str, column: str, row: int, value: Any, task: str = WALK, seed: int = 0
    ) -> None:
        groups = self.groups(kind, task)
        groups[seed][column][row] = value
        self.put(kind, groups, task)

    def settle(self) -> None:
        """Claim the means that the claimed episodes have, so that nothing but a replay can tell."""
        for claim in self.claims["tasks"]:
            task = registry.card(claim["task"]).build()
            for cell, group in zip(
                claim["cells"], self.groups("episodes", claim["task"]), strict=True
            ):
                totals = np.stack(
                    [v for name, v in group.items() if name.startswith("return_")], axis=-1
                )
                returns = np.asarray(
                    scalar_return(task, totals if task.reward_space.shape else totals[:, 0])
                )
                cell["mean_return"] = returns.mean()
                cell["score"] = np.mean([task.card.normalise(value) for value in returns.tolist()])
                cell["success_rate"] = group["success"].mean()
                cell["mean_length"] = group["length"].mean()
                cell["mean_cost"] = group["cost"].mean()
            claim["score"] = np.mean([cell["score"] for cell in claim["cells"]])
        scores = {
            claim["task"]: [cell["score"] for cell in claim["cells"]]
            for claim in self.claims["tasks"]
        }
        self.claims["iqm"], self.claims["mean"] = (
            f(scores, replicates=1).point for f in (iqm, mean)
        )

    def write(self, path: Path) -> Path:
        self.members["submission.json"] = json.dumps(self.claims).encode()
        return self.write_members(path)

    def write_members(self, path: Path) -> Path:
        with path.open("wb") as file:
            write_archive(file, iter(self.members.items()))
        return path


def steal(path: Path, victim: Forgery, more: Forgery) -> Path:
    """Write the victim's archive with a thief's seed, a changed action and an older date."""
    victim.claims["entry"] |= {"name": "thief", "authors": ["Mallory"]}
    victim.claims["created"] = "2020-01-01T00:00:00Z"
    for task in (WALK, DRIFT):
        for kind in ("episodes", "actions"):
            victim.put(kind, [*victim.groups(kind, task), more.groups(kind, task)[5]], task)
        victim.task(task)["cells"].append(more.cell(5, task))
    victim.settle()
    return victim.write(path)

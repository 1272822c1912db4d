"""Run directories with chosen scores, written by the models of the store."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from rlbench_suite.evaluation.runs.manifest import CellResult, Manifest
from rlbench_suite.evaluation.runs.tables import EPISODES, write_table


def make_run(
    path: Path,
    scores: Mapping[str, Mapping[str, Sequence[float]]],
    costs: Mapping[str, float] = {},  # it is only read
    **changed: Any,
) -> Path:
    """Write a run whose cells have these scores by agent, task and seed.

    ``changed`` replaces parts of the manifest.

    Episodes cost 0.25 on average, or what ``costs`` says of the agent.
    """
    tasks = list(dict.fromkeys(task for task_scores in scores.values() for task in task_scores))
    anchor = {"low": 0.0, "high": 1.0, "episodes": 1000}
    defaults = {
        "budget": "smoke",
        "seeds": max(
            len(values) for task_scores in scores.values() for values in task_scores.values()
        ),
        "references": {
            task: {"random": {"mean": 0.0} | anchor, "reference": {"mean": 2.0} | anchor}
            for task in tasks
        },
        "hyperparameters": {
            agent: {task: {} for task in task_scores} for agent, task_scores in scores.items()
        },
        "not_applicable": {},
    }
    path.mkdir(parents=True)
    (path / "manifest.json").write_text(Manifest.now(**defaults | changed).model_dump_json())
    for agent, task_scores in scores.items():
        for task, values in task_scores.items():
            for seed, score in enumerate(values):
                folder = path / "cells" / agent / task.split("/")[1] / str(seed)
                folder.mkdir(parents=True)
                result = CellResult(
                    agent=agent, task=task, seed=seed, episodes=50, mean_return=2 * score,
                    score=score, success_rate=0.5, mean_length=10.0,
                    mean_cost=costs.get(agent, 0.25), mean_returns=[2 * score], training_steps=1000,
                    train_seconds=1.0, compile_seconds=1.0, evaluate_seconds=1.0, wall_seconds=3.0,
                    device="cpu",
                )  # fmt: skip
                (folder / "result.json").write_text(result.model_dump_json())
    return path


def add_episodes(path: Path) -> None:
    """Write tables of episodes from which the results of a made run follow."""
    for file in path.glob("cells/*/*/*/result.json"):
        result = CellResult.model_validate_json(file.read_text())
        rows = [
            result.cell._asdict()
            | {"episode_seed": k, "return": result.mean_return, "score": result.score}
            | {"length": int(result.mean_length), "success": k < 25, "terminated": True}
            | {"cost": result.mean_cost, "returns": result.mean_returns, "measures": []}
            for k in range(50)
        ]
        write_table(pa.Table.from_pylist(rows, EPISODES), file.with_name("episodes.parquet"))


def sitting(arguments: Sequence[str] = (), **machine: Any) -> dict[str, Any]:
    """Return a launch of the program as a manifest has it.

    ``machine`` replaces parts of the machine.
    """
    plain = {
        "python": "3.11", "packages": {}, "platform": "", "cpu": "", "cores": 1,
        "instruction_set": "", "settings": {}, "git_revision": None,
    }  # fmt: skip
    return {
        "arguments": list(arguments),
        "machine": plain | machine,
        "started": "2026-01-01T00:00:00Z",
    }


def fail_cell(path: Path, agent: str, task: str, seed: int) -> None:
    """Replace a finished cell of a run by the record of its failure."""
    folder = path / "cells" / agent / task.split("/")[1] / str(seed)
    shutil.rmtree(folder)
    folder.with_name(f"{seed}.failed").write_text(json.dumps({"error": "ValueError: diverged"}))

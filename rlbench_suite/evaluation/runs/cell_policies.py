"""Find a cell of a run by its folder, and read its policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import file_name_of
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.protocol import training_task
from rlbench_suite.evaluation.runs.players import find_player
from rlbench_suite.evaluation.runs.run import Run
from rlbench_suite.foundation.unknown_names import unknown


def find_cell(path: Path, name: str) -> tuple[Run, Cell]:
    """Return a run and its finished cell with a folder ``name`` below ``cells``.

    A name is such as ``ppo/PMSMSpeed-v0/0``.

    The beginning of a name is enough where it fits one agent and task; the first seed is then
    meant.

    Raises:
        ValueError: it is no run, or has no finished cell of that name.
    """
    run = Run.read(path)
    cells = {
        f"{cell.agent}/{file_name_of(cell.task)}/{cell.seed}": cell
        for cell in run.manifest.cells()
        if run.manifest.has_policies(cell.agent) and (run.cell_path(cell) / "result.json").exists()
    }
    cell_name = name.strip("/").removeprefix("cells/")
    if cell_name in cells:
        return run, cells[cell_name]
    matches = [full_name for full_name in cells if full_name.startswith(f"{cell_name}/")]
    if len({full_name.rsplit("/", 1)[0] for full_name in matches}) == 1:
        return run, cells[matches[0]]
    if matches:
        raise ValueError(f"{cell_name!r} fits several cells of {path}: {', '.join(matches[:6])}.")
    raise ValueError(
        unknown(f"cell of the run in {path}", cell_name, cells)
        if cells
        else f"{path} has no finished cell."
    )


def read_policy(run: Run, cell: Cell) -> tuple[Task[Any, Any], Any]:
    """Return the task of a cell and its policy.

    Raises:
        OSError, ValueError: the policy cannot be read.
    """
    task, agent = find_card(cell.task).build(), find_player(cell.agent, run)
    spec = run.manifest.spec(cell)
    load: Any = getattr(agent, "load", None)
    if agent.learns and load:
        file = str(run.cell_path(cell) / "policy.safetensors")
        return task, load(file, training_task(task), budget=spec.budget)
    if agent.learns:
        raise ValueError(f"The agent {cell.agent!r} reads no saved policies: it has no load.")
    *_, policy = agent.train(
        training_task(task),
        seed=spec.seed,
        budget=spec.budget,
        hyperparameters=spec.hyperparameters,
    )
    return task, policy

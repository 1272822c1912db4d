"""Record episodes in physical units as tables and pictures, with the reference beside the agent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from rlbench_suite.core import registry
from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.analysis.step_response import Tracked, tracked_quantities
from rlbench_suite.evaluation.analysis.sweeps import refuse_other_spaces
from rlbench_suite.evaluation.runs.cell_policies import find_cell, read_policy
from rlbench_suite.evaluation.trajectory import Trajectory, columns, play
from rlbench_suite.foundation.atomic_files import replacing, writing

SUFFIXES = (".parquet", ".csv")
REFERENCE = "reference"


def policy_of_agent(task: Task[Any, Any], name: str) -> Any:
    """Return the policy of an agent that does not train.

    Raises:
        ValueError: there is no such agent, it trains, or it cannot play the task.
    """
    agent = registry.agent(name)
    if agent.learns:
        raise ValueError(
            f"{name!r} learns: train it with rlsuite-eval, and name its cell with --run RUN CELL."
        )
    agent.check(task)
    *_, policy = agent.train(task, seed=0, budget="smoke")
    return policy


def policy_of_cell(task: Task[Any, Any], run: Path, cell_name: str) -> tuple[str, Any]:
    """Return the name of a cell's agent and its policy.

    The policy may have been trained on another task of equal spaces.

    Raises:
        ValueError: there is no such cell, or its policy cannot play the task.
    """
    opened, cell = find_cell(run, cell_name)
    trained, policy = read_policy(opened, cell)
    refuse_other_spaces(trained, task)
    for side, signals in trained.signals.items():
        for there, here in zip(signals, task.signals[side], strict=False):
            if (there.name, there.scale) != (here.name, here.scale):
                raise ValueError(
                    f"A policy for {trained.card.id} cannot play {task.card.id}: the value 1 of "
                    f"{there.name} stands for {there.scale:.6g} {there.unit} there and for "
                    f"{here.scale:.6g} {here.unit} here."
                )
    return cell.agent, policy


def record(
    task: Task[Any, Any], players: Mapping[str, Any], seeds: range, split: str
) -> dict[str, list[Trajectory]]:
    """Play the same episodes with each player, by its name."""
    return {name: play(task, policy, seeds, split=split) for name, policy in players.items()}


def table(task: Task[Any, Any], episodes: Mapping[str, Sequence[Trajectory]]) -> pa.Table:
    """Return a row for each step of each episode and player.

    Where a task has several agents, each has its own row.
    """
    tables = []
    for name, player_episodes in episodes.items():
        for number, episode in enumerate(player_episodes):
            for agent in range(task.card.agents):
                step_columns = columns(task, episode, agent)
                size = len(step_columns["step"])
                key: dict[str, Any] = {"player": [name] * size, "episode": np.full(size, number)}
                key["seed"] = np.full(size, episode.seed, np.int64)
                if task.card.agents > 1:
                    key["agent"] = np.full(size, agent)
                tables.append(pa.table(key | step_columns))
    return pa.concat_tables(tables)


def write(path: Path, table: pa.Table) -> None:
    """Write a table as Parquet or CSV, by the suffix of the path.

    Raises:
        ValueError: another suffix.
        CannotWrite: the system refused.
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"A recording is {' or '.join(SUFFIXES)}, got {path.name!r}.")
    with writing(path), replacing(path) as unfinished:
        if path.suffix == ".csv":
            pa_csv.write_csv(table, unfinished)
        else:
            pq.write_table(table, unfinished, compression="zstd")


def tracked_by_player(
    task: Task[Any, Any], episodes: Mapping[str, Sequence[Trajectory]]
) -> dict[str, list[list[Tracked]]]:
    """Return the tracked quantities of each episode of each player, those of all its agents."""
    return {
        name: [
            tracked_quantities(task, episode, agent)
            for episode in player_episodes
            for agent in range(task.card.agents)
        ]
        for name, player_episodes in episodes.items()
    }


def trips(episodes: Sequence[Trajectory]) -> int:
    """Count the episodes that the task ended without success: trips and crashes."""
    return sum(episode.terminated and not episode.success for episode in episodes)


def energies(task: Task[Any, Any], episodes: Sequence[Trajectory]) -> list[float]:
    """Return the energy of each episode, J, where the task knows it."""
    joules = []
    for episode in episodes:
        values_by_name = {
            name.rsplit(" [", 1)[0]: values for name, values in columns(task, episode).items()
        }
        if (energy := task.energy(values_by_name)) is not None:
            joules.append(energy)
    return joules


def plot(
    path: Path, title: str, tracked_quantities: Mapping[str, Sequence[Sequence[Tracked]]]
) -> None:
    """Draw the first episode: each tracked quantity with its reference, all players in one picture.

    Raises:
        ValueError: nothing is tracked.
        CannotWrite: the system refused.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    first = {name: episodes[0] for name, episodes in tracked_quantities.items()}
    quantities = {quantity.name: quantity for episode in first.values() for quantity in episode}
    if not quantities:
        raise ValueError(f"{title} tracks no reference, so there is nothing to draw.")
    rows = len(quantities)
    figure = Figure(figsize=(9, 2.2 * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = dict(zip(quantities, np.ravel(figure.subplots(rows, 1, sharex=True)), strict=True))
    longest = max(float(quantity.time[-1]) for episode in first.values() for quantity in episode)
    factor, unit = (1e3, "ms") if longest < 1 else (1.0, "s")
    for name, quantity in quantities.items():
        axis = axes[name]
        axis.plot(
            quantity.time * factor, quantity.setpoint, "k--", linewidth=0.9, label="asked for"
        )
        axis.set_ylabel(f"{quantity.name} ({quantity.unit})")
    for player, episode_quantities in first.items():
        for quantity in episode_quantities:
            axes[quantity.name].plot(
                quantity.time * factor, quantity.value, linewidth=1.1, label=player
            )
    upper, *_, lower = [*axes.values(), *axes.values()]
    upper.legend(loc="best", fontsize="small")
    upper.set_title(title)
    lower.set_xlabel(unit)
    with writing(path), replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=110)


def seconds(value: float) -> str:
    """Write a time in s, ms or us; nothing for NaN."""
    if math.isnan(value):
        return ""
    factor, unit = next(
        (pair for pair in ((1.0, "s"), (1e3, "ms")) if value * pair[0] >= 1), (1e6, "us")
    )
    return f"{value * factor:.3g} {unit}"

"""Play the policies of a run against each other, on tasks that are one seat of a game of two.

Every two policies of a task play the same games twice, with seats swapped. The environment seeds
belong to no cell. ``matches.parquet`` of the run holds what the seats earned in each game.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.game import Duel, is_seat_of_two
from rlbench_suite.core.policy import Policy, restrict_view
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.protocol import TRAINING_SEEDS, evaluation_seeds
from rlbench_suite.evaluation.runs.cell_policies import read_policy
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.players import find_player
from rlbench_suite.evaluation.runs.run import MATCHES_FILE, Run
from rlbench_suite.evaluation.runs.tables import MATCHES, write_table
from rlbench_suite.foundation.atomic_files import replacing, writing

MAX_POLICIES = 20
"""Policies of a task that play each other at most; every agent gives its first seeds."""


def cells_to_match(run: Run) -> dict[str, list[Cell]]:
    """Return the cells whose policies play each other by task, where there are two or more.

    Players that learn nothing have one policy for all seeds. An agent with failed cells does not
    play, as its other seeds are those that went well.
    """
    failed = {(cell.agent, cell.task) for cell in run.failures()}
    seeds: dict[str, dict[str, list[Cell]]] = {}
    for result in run.results():
        card = find_card(result.task)
        if not run.manifest.has_policies(result.agent) or not is_seat_of_two(card):
            continue
        if (result.agent, result.task) not in failed:
            agents = seeds.setdefault(result.task, {})
            cells = agents.setdefault(result.agent, [])
            if result.training_steps or not cells:
                cells.append(result.cell)
    matched = {}
    for task, agents in seeds.items():
        policies_of_an_agent = max(1, MAX_POLICIES // len(agents))
        cells = [cell for cells in agents.values() for cell in cells[:policies_of_an_agent]]
        if len(cells) > 1:
            matched[task] = cells
    return matched


def play_missing(run: OpenRun) -> Iterator[str]:
    """Play the matches of tasks that lack some, and store all of them; yield what is being done.

    Raises:
        CannotWrite: the system refused.
        ValueError: a policy cannot be read.
    """
    tables = {task: matches.table for task, matches in run.read_matches().items()}
    for task, cells in cells_to_match(run).items():
        if task in tables and {*cells} <= cells_of(tables[task]):
            continue
        yield f"Playing {len(cells)} policies of {find_card(task).name} against each other."
        tables[task] = _play_all(run, task, cells)
        path = run.path / MATCHES_FILE
        with writing(path), replacing(path) as unfinished:
            write_table(pa.concat_tables([*tables.values()]), unfinished)


def cells_of(table: pa.Table) -> set[Cell]:
    """Return the cells that a table of matches names."""
    names = table.select(["agent_0", "agent_1", "task", "seed_0", "seed_1"]).to_pylist()
    return {
        Cell(row[f"agent_{seat}"], row["task"], row[f"seed_{seat}"])
        for row in names
        for seat in range(2)
    }


def _play_all(run: Run, task_id: str, cells: Sequence[Cell]) -> pa.Table:
    """Return the games of each two policies, in both seats.

    A policy outside JAX plays no matches. Its row names it, so that it is not asked again.
    """
    card = find_card(task_id)
    game: Any = card.joint().build()
    seeds = evaluation_seeds(card, TRAINING_SEEDS - 1, "smoke")
    policies = {cell: policy for cell in cells if (policy := _policy_of(run, cell)) is not None}
    rows = [_row(task_id, cell, cell, -1, []) for cell in cells if cell not in policies]
    for first, second in combinations(policies, 2):
        for seat in range(2):
            duel = Duel(policies[first], policies[second], np.int32(seat), game)
            totals = play(game, duel, seeds).total.astype(np.float64)
            pair = (first, second) if seat == 0 else (second, first)
            rows += [
                _row(task_id, *pair, number, earned)
                for number, earned in enumerate(totals.tolist())
            ]
    return pa.Table.from_pylist(rows, MATCHES)


def _policy_of(run: Run, cell: Cell) -> Policy | None:
    """Return the policy of a cell without a view of the state; None if it runs outside JAX.

    It is None, too, if its agent reads no saved policies.
    """
    agent = find_player(cell.agent, run)
    if agent.learns and not hasattr(agent, "load"):
        return None
    _, policy = read_policy(run, cell)
    return restrict_view(policy) if isinstance(policy, Policy) else None


def _row(task: str, first: Cell, second: Cell, game: int, returns: list[float]) -> dict[str, Any]:
    """Return a row of the table: who sat in seats 0 and 1, and what they earned."""
    return {
        "task": task,
        "agent_0": first.agent,
        "seed_0": first.seed,
        "agent_1": second.agent,
        "seed_1": second.seed,
        "game": game,
        "returns": returns,
    }

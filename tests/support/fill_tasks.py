"""Support the tests of puzzles that are filled in.

There are batches of instances and grids, and plans played out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.shared.grid_filling import FillTask, GridState
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params


def task_of(name: str, difficulty: float) -> Any:
    """Return the interactive task; its ``puzzle`` is the one-shot form."""
    return card(name).build(difficulty=difficulty)


def stack_instances(instances: Sequence[Any]) -> Any:
    """Return instances as one, with a leading axis."""
    return type(instances[0])(*(np.stack(column) for column in zip(*instances, strict=True)))


def solution_of(puzzle: Any, instance: Any) -> np.ndarray:
    """Return the cells that the solver fills in, in reading order."""
    return np.array(puzzle.solution(instance), np.int8).ravel()


def grids_of(puzzle: Any, instances: Sequence[Any], seed: int = 0) -> list[np.ndarray]:
    """Return a full grid with its givens for each instance.

    It is the solution, one with a few cells changed, or a random one.
    """
    rng = np.random.default_rng(seed)
    grids = []
    for number, instance in enumerate(instances):
        grid = solution_of(puzzle, instance)
        changed = (0.0, 0.05, 0.1, 0.5)[number % 4]
        change = (rng.random(grid.size) < changed) & (instance.givens == 0)
        grids.append(
            np.where(change, rng.integers(1, puzzle.fillable + 1, grid.size), grid).astype(np.int8)
        )
    return grids


def partial_grids(puzzle: Any, instances: Sequence[Any], seed: int = 0) -> list[np.ndarray]:
    """Return the same grids with some cells empty again."""
    rng = np.random.default_rng(seed + 1)
    grids = grids_of(puzzle, instances, seed)
    return [
        np.where((rng.random(grid.size) < rng.random()) | (instance.givens > 0), grid, 0).astype(
            np.int8
        )
        for grid, instance in zip(grids, instances, strict=True)
    ]


def accept_grids(
    task: FillTask, instances: Sequence[Any], grids: Sequence[np.ndarray]
) -> list[bool]:
    """Return whether the compiled task takes full grids for solved."""
    return jax.jit(jax.vmap(task.is_solved))(np.stack(grids), stack_instances(instances)).tolist()


def masks_by_task(
    task: FillTask, instances: Sequence[Any], grids: Sequence[np.ndarray]
) -> np.ndarray:
    """Legal (cell, symbol) pairs, bool ``(count, cells, fillable)``."""
    batch = Params(stack_instances(instances), np.zeros((len(grids), 1), np.int16))
    cells = np.stack(grids)
    empty = (cells == 0).sum(1, dtype=np.int32)
    masks = jax.jit(jax.vmap(task.action_mask))(GridState(cells, empty, empty), batch)
    return np.asarray(masks).reshape(len(grids), task.cells, task.puzzle.fillable)


def play_plans(
    task: FillTask, instances: Sequence[Any]
) -> tuple[list[float], list[bool], list[bool]]:
    """Play plans by the compiled task and return what comes of each.

    That is the return, whether all actions were legal, and whether the plan ends in success.
    """
    plans = [list(task.puzzle.plan(instance)) for instance in instances]
    longest = max(map(len, plans))
    padded = np.array([plan + [-1] * (longest - len(plan)) for plan in plans], np.int32)
    key = jax.random.key(0)

    def play(instance: Any, plan: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        params = Params(instance, plan)

        def step(
            state: GridState, action: jax.Array
        ) -> tuple[GridState, tuple[jax.Array, jax.Array]]:
            legal = task.action_mask(state, params)[action] & ~task.terminal(state, key, params)
            after = task.transition(state, action, key, params)
            reward = task.reward(state, action, after, key, params)
            live = action >= 0
            state = jax.tree.map(lambda new, old: jnp.where(live, new, old), after, state)
            return state, (jnp.where(live, reward, 0), legal | ~live)

        last, (rewards, legal) = jax.lax.scan(step, task.initial(key, params), plan)
        return (
            rewards.sum(),
            legal.all(),
            task.info(last, params)["success"] & task.terminal(last, key, params),
        )

    total, legal, success = jax.jit(jax.vmap(play))(stack_instances(instances), padded)
    return np.asarray(total).tolist(), np.asarray(legal).tolist(), np.asarray(success).tolist()

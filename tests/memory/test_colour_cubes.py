"""ColourCubes against a plain account of its rules, and its optimum against play.

The account knows no more than was observed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
from memoryless_cubes import value

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.memory.colour_cubes import CIRCLE_MOVES, Wanderer, max_cubes

pytestmark = pytest.mark.of_variants

STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))


def cells(encoded: np.ndarray) -> list[tuple[int, int]]:
    """Return row and column of each ten numbers; nothing if they are zeros."""
    lines = encoded.reshape(-1, 2, 5)
    assert set(lines.sum(2).reshape(-1)) in ({0.0}, {1.0})
    return (
        [(int(row.argmax()), int(column.argmax())) for row, column in lines] if lines.any() else []
    )


@pytest.mark.parametrize(
    ("difficulty", "rate"), [(1, "0.1"), (4, "0.1"), (-4, "0.1"), (4, "0"), (4, "0.5")]
)
def test_steps_are_those_of_the_rules(difficulty: int, rate: str) -> None:
    """Walls hold, only wanted cubes pay, and one cube moves at a time.

    The observation shows where cubes are.
    """
    env: Any = gymnasium.make("rlsuite/ColourCubes-v0", difficulty=difficulty, moves=rate)
    chance = float(rate) if difficulty != 1 else 0.0
    assert ("Now and then" in env.unwrapped.task.rules()) == (rate != "0")
    count, rng = abs(difficulty), np.random.default_rng(0)
    moves = cubes_taken = steps = 0
    for seed in range(6):
        observation, _ = env.reset(seed=seed)
        position, target_cube, cubes, floor = np.split(
            observation, np.cumsum([10, count, 10 * count])
        )
        where, over = cells(cubes), False
        assert len(set(where)) == count
        while not over:
            (agent,), target = cells(position), int(target_cube.argmax())
            assert target_cube.sum() == 1
            goal = where[target]
            action = int(rng.integers(5))
            if rng.random() < 0.7:  # towards the wanted cube
                nearer = [np.abs(np.add(agent, step) - goal).sum() for step in STEPS]
                action = 4 if agent == goal else int(np.argmin(nearer))
            observation, reward, _, over, _ = env.step(action)
            position, target_cube, cubes, floor = np.split(
                observation, np.cumsum([10, count, 10 * count])
            )
            assert cells(position) == [tuple(np.clip(np.add(agent, STEPS[action]), 0, 4))]
            assert reward == (action == 4 and agent == goal)
            assert (target_cube.argmax() != target) == (reward == 1 and count > 1)
            before = set(where)
            now = {(int(cell) // 5, int(cell) % 5) for cell in floor.nonzero()[0]}
            assert bool(cells(cubes)) == (bool(now) and difficulty > 0)
            if now:
                (left,), (new,) = before - now, now - before
                mover = where.index(left)
                assert (mover == target) == bool(reward)
                where[mover] = new
                assert cells(cubes) in ([], where)
            else:
                assert not reward
            moves = moves + bool(now) - int(reward)
            cubes_taken = cubes_taken + int(reward)
            steps = steps + 1
    assert cubes_taken > 20
    waits = steps - cubes_taken
    assert abs(moves - waits * chance) <= 4 * (waits * chance * (1 - chance)) ** 0.5


@cache
def two_taken(steps: int) -> float:
    """Return how often two cubes are taken, exactly.

    Taken in a, the one cube lies on any cell but a and b, where the other one is. On the way to b
    it moves at each step with probability 1/10, maybe to a: of all cells only a is not as likely as
    the others.
    """
    row, column = np.divmod(np.arange(25), 5)
    distance = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
    left_cell = [0.0]
    for _ in range(8):
        left_cell.append(0.9 * left_cell[-1] + 0.1 * (1 - left_cell[-1]) / 23)
    after = np.zeros((steps, 25, 25))  # by the steps left, a and b
    for left, a, b in itertools.product(range(steps), range(25), range(25)):
        if a != b and left > distance[a, b]:
            there = left_cell[distance[a, b]]
            chances = np.full(25, (1 - there) / 23)
            chances[a], chances[b] = there, 0
            after[left, a, b] = 1 + chances @ after[left - distance[a, b] - 1, b]
    first = [
        1 + after[steps - d - 1, b].sum() / 24
        for from_start in distance
        for b, d in enumerate(from_start)
        if d < steps
    ]
    return sum(first) / 625


@pytest.mark.parametrize(("mode", "optimum"), [(1, max_cubes), (2, two_taken), (-2, two_taken)])
def test_the_tracker_reaches_the_optimum(mode: int, optimum: Callable[[int], float]) -> None:
    """Colours that are hidden cost it nothing."""
    task: Any = card("ColourCubes-v0").build(difficulty=mode)
    record = play(task, load(task.card.reference).for_task(task), range(600))
    assert record.info["success"].all()
    assert abs(record.total.mean() - optimum(100)) <= 4 * record.total.std() / 600**0.5
    assert task.optimum == (optimum(100) if mode == 1 else None)


def test_several_cubes_are_a_little_farther_than_one() -> None:
    """The cell that the agent left is empty for a while."""
    assert 0.995 * max_cubes(100) < two_taken(100) < 0.999 * max_cubes(100)


def test_first_steps_of_the_optimum() -> None:
    """One step reaches a cube under the agent, 1 cell of 25.

    Two steps also reach the one beside it, 80 of 625 ordered pairs of cells.
    """
    assert max_cubes(1) == pytest.approx(1 / 25, rel=1e-12)
    assert max_cubes(2) == two_taken(2) == pytest.approx(1 / 25 + 80 / 625, rel=1e-12)


def test_the_way_around_the_floor_passes_all_cells_but_one() -> None:
    cell, passed = (0, 0), []
    while cell not in passed:
        passed.append(cell)
        cell = tuple(np.add(cell, STEPS[CIRCLE_MOVES[cell]]).tolist())
    assert cell == (0, 0)
    assert len(passed) == 24


@pytest.mark.parametrize("count", [1, 4])
def test_values_of_players_without_a_memory_are_what_they_earn(count: int) -> None:
    """The wanderer as a table earns what its values say.

    The bound is half a percent for four cubes, because the next one does not lie everywhere alike.
    """
    task: Any = card("ColourCubes-v0").build(difficulty=count)
    seeing, blind = np.zeros((25, 25, 5)), np.zeros((25, 5))
    for agent, cube in itertools.product(np.ndindex(5, 5), repeat=2):
        south, east = np.subtract(cube, agent)
        action = 4
        if south:
            action = 1 if south > 0 else 0
        elif east:
            action = 3 if east > 0 else 2
        seeing[agent[0] * 5 + agent[1], cube[0] * 5 + cube[1], action] = 1
        blind[agent[0] * 5 + agent[1], [CIRCLE_MOVES[agent], 4]] = (
            (0.4, 0.6) if count == 1 else (0, 1)
        )
    with np.errstate(divide="ignore"):
        exact = float(value((np.log(blind), np.log(seeing)), 0.1 if count > 1 else 0.0))
    total = play(task, Wanderer.for_task(task), range(1000)).total
    assert abs(total.mean() - exact) <= 4 * total.std() / 1000**0.5 + (
        0.005 * exact if count > 1 else 0
    )

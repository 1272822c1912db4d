"""Deep Sea Treasure against its published front and hypervolumes, and exhaustive enumeration.

Step by step against MO-Gymnasium: ``peers/test_mo_gymnasium.py``.
"""

from itertools import product

import jax
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.morl.deep_sea_treasure import (
    COLUMNS,
    MOVES,
    ROWS,
    DeepSeaTreasure,
    Params,
    State,
)
from rlbench_suite.evaluation.statistics.pareto import hypervolume

CARD = card("DeepSeaTreasure-v0")

# Undiscounted front of deep-sea-treasure-v0 as MO-Gymnasium 1.3.2 lists it
# (mo_gymnasium/envs/deep_sea_treasure/deep_sea_treasure.py, CONVEX_FRONT).
FRONT = [
    (0.7, -1), (8.2, -3), (11.5, -5), (14.0, -7), (15.1, -8),
    (16.1, -9), (19.6, -13), (20.3, -14), (22.4, -17), (23.7, -19),
]  # fmt: skip


# CONCAVE_FRONT of the same file: that of the concave and of the mirrored map.
CONCAVE_FRONT = [
    (1, -1), (2, -3), (3, -5), (5, -7), (8, -8), (16, -9), (24, -13), (50, -14), (74, -17),
    (124, -19),
]  # fmt: skip

OPTIMA = {"convex": 3.55, "concave": 52.5, "mirrored": 52.5}
"""Best return for equal weights."""

FRONTS = {"convex": FRONT, "concave": CONCAVE_FRONT, "mirrored": CONCAVE_FRONT}

# The other two maps as MO-Gymnasium 1.3.2 lays them out: # rock, letters treasures.
CONCAVE_MAP = """
...........
a..........
#b.........
##c........
###def.....
######.....
######.....
######gh...
########...
########i..
#########j.
"""
MIRRORED_MAP = """
....................
..........a.........
.........##b........
........####c.......
.......######def....
....############....
....############....
....############gh..
..################..
..################i.
.##################j
"""


@pytest.fixture(scope="module")
def task() -> DeepSeaTreasure:
    return CARD.build()


def task_of(map_name: str) -> DeepSeaTreasure:
    return CARD.with_settings(map=map_name).build()


@pytest.mark.parametrize("map_name", FRONTS)
def test_front_is_the_published_one(map_name: str) -> None:
    np.testing.assert_allclose(task_of(map_name).pareto_front(1.0), FRONTS[map_name], rtol=1e-14)


@pytest.mark.parametrize(
    ("map_name", "drawing"), [("concave", CONCAVE_MAP), ("mirrored", MIRRORED_MAP)]
)
def test_the_other_maps_are_those_of_mo_gymnasium(map_name: str, drawing: str) -> None:
    task = task_of(map_name)
    values = dict(zip("abcdefghij", (value for value, _ in CONCAVE_FRONT), strict=True))
    rows = drawing.split()
    assert (len(rows), len(rows[0])) == (ROWS, task.columns)
    for row, column in product(range(ROWS), range(task.columns)):
        mark = rows[row][column]
        assert (row >= task.rock[column]) == (mark == "#")
        assert (row == task.floor[column]) == (mark in values)
        if mark in values:
            assert task.value[column] == values[mark]
    state = task.initial(None, Params())
    assert (int(state.row), int(state.column)) == (0, 10 if map_name == "mirrored" else 0)


# Actions, and the cells (row, column) that MO-Gymnasium 1.3.2 reaches; the last has the treasure.
@pytest.mark.parametrize(
    ("map_name", "actions", "cells", "treasure"),
    [
        (
            "concave",
            [0, 2, 3, 3, 0, 1, 1, 1],
            [(0, 0), (0, 0), (0, 1), (0, 2), (0, 2), (1, 2), (2, 2), (3, 2)],
            3,
        ),
        (
            "concave",
            [3] * 9 + [1] * 10,
            [(0, column) for column in range(1, 10)] + [(row, 9) for row in range(1, 11)],
            124,
        ),
        (
            "mirrored",
            [0, 2, 3, 3, 0, 1, 1],
            [(0, 10), (0, 9), (0, 10), (0, 11), (0, 11), (1, 11), (2, 11)],
            2,
        ),
        (
            "mirrored",
            [3] * 9 + [1] * 10,
            [(0, column) for column in range(11, 20)] + [(row, 19) for row in range(1, 11)],
            124,
        ),
    ],
)
def test_recorded_trajectories_of_mo_gymnasium(
    map_name: str, actions: list[int], cells: list[tuple[int, int]], treasure: float
) -> None:
    env = TaskEnv(task_of(map_name))
    env.reset(seed=0)
    for number, (action, cell) in enumerate(zip(actions, cells, strict=True), 1):
        observation, reward, terminated, _, _ = env.step(action)
        last = number == len(actions)
        assert cell_of(env) == cell
        columns = env.task.columns
        np.testing.assert_allclose(observation, [cell[0] / 10, cell[1] / (columns - 1)], rtol=1e-6)
        np.testing.assert_array_equal(reward, [treasure if last else 0, -1])
        assert terminated == last


def test_no_weighted_sum_prefers_an_inner_point_of_the_concave_front() -> None:
    """An inner point lies below the line between the ends, so that one of the ends beats it.

    This holds for all weights at once. Weights on a fine grid show the same of optimal play.
    """
    front = task_of("concave").pareto_front(1.0)
    (first_treasure, first_time), (last_treasure, last_time) = front[0], front[-1]
    for treasure, time in front[1:-1]:
        share = (treasure - first_treasure) / (last_treasure - first_treasure)
        assert time < first_time + share * (last_time - first_time)
    weights = np.linspace(0, 1, 1001)
    best = np.argmax(front @ np.stack([weights, 1 - weights]), 0)
    assert set(best.tolist()) == {0, 9}
    # Each of the ten points of the convex front is the best for some weights. (20.3, -14) lies on
    # the line between its neighbours, and is as good as they are for one weight only.
    weights = np.append(weights, 1 / 1.7)
    returns = np.array(FRONT) @ np.stack([weights, 1 - weights])
    assert (returns > returns.max(0) - 1e-9).any(1).all()


# MO-Gymnasium 1.3.2's pareto_front(gamma), measured with pymoo 0.6.2's hypervolume.
@pytest.mark.parametrize(
    ("map_name", "gamma", "reference", "volume"),
    [
        ("convex", 0.99, (0, -50), 854.8504),
        ("convex", 0.99, (0, -25), 360.4009),
        ("convex", 1.0, (0, -50), 994.3),
        ("concave", 0.99, (0, -50), 3688.3771),
        ("concave", 1.0, (0, -25), 1155.0),
        ("mirrored", 1.0, (0, -25), 1155.0),
    ],
)
def test_hypervolume_of_the_front(
    map_name: str, gamma: float, reference: tuple, volume: float
) -> None:
    front = task_of(map_name).pareto_front(gamma)
    assert round(hypervolume(front, reference), 4) == volume


def test_card_reference_point_is_the_published_one() -> None:
    assert CARD.hypervolume_reference == (0.0, -50.0)


@pytest.mark.parametrize("gamma", [0.0, 1.01, -1.0, float("nan")])
def test_front_refuses_a_wrong_discount(task: DeepSeaTreasure, gamma: float) -> None:
    with pytest.raises(ValueError, match="discount"):
        task.pareto_front(gamma)


def cell_of(env: TaskEnv) -> tuple[int, int]:
    return int(env.episode.state.row), int(env.episode.state.column)


@pytest.mark.parametrize("map_name", FRONTS)
def test_every_cell_and_move(map_name: str) -> None:
    """All transitions from open water, against the rules written plainly."""
    task = task_of(map_name)
    treasure = {
        (int(r), c): v for c, (r, v) in enumerate(zip(task.floor, task.value, strict=True)) if v
    }
    rock = {(r, c) for (depth, c) in treasure for r in range(depth + 1, ROWS)}
    if map_name == "mirrored":
        rock |= {(r, task.columns - 1 - c) for r, c in rock}
    water = [
        cell
        for cell in product(range(ROWS), range(task.columns))
        if cell not in treasure and cell not in rock
    ]
    assert len(water) == ROWS * task.columns - len(rock) - 10
    cells, actions = zip(*product(water, range(4)), strict=True)
    rows, columns = np.array(cells, np.int32).T
    states = State(rows, columns, np.zeros_like(rows))
    after = jax.vmap(lambda s, a: task.transition(s, a, None, Params()))(
        states, np.array(actions, np.int32)
    )
    rewards = jax.vmap(lambda s, a, n: task.reward(s, a, n, None, Params()))(
        states, np.array(actions), after
    )
    over = jax.vmap(lambda s: task.terminal(s, None, Params()))(after)
    for i, ((row, column), action) in enumerate(zip(cells, actions, strict=True)):
        down, right = list(MOVES.values())[action]
        target = (row + down, column + right)
        inside = 0 <= target[0] < ROWS and 0 <= target[1] < task.columns and target not in rock
        expected = target if inside else (row, column)
        assert (int(after.row[i]), int(after.column[i])) == expected
        assert bool(over[i]) == (expected in treasure)
        np.testing.assert_array_equal(rewards[i], np.float32([treasure.get(expected, 0.0), -1]))


def exhaustive_front(task: DeepSeaTreasure, horizon: int) -> set[tuple[float, int]]:
    """Return all returns of any ``horizon`` actions, found by walking sets of cells.

    It uses neither shortest paths nor a front, as the task's own search does.
    """
    step = jax.jit(jax.vmap(lambda s, a: task.transition(s, a, None, Params())))
    cells, returns = {(0, task.start)}, set()
    for t in range(1, horizon + 1):
        pairs = list(product(sorted(cells), range(4)))
        rows, columns = np.array([p[0] for p in pairs], np.int32).T
        padded = 4 * ROWS * task.columns - len(pairs)  # one shape, one compilation
        after = step(
            State(
                np.pad(rows, (0, padded)),
                np.pad(columns, (0, padded)),
                np.full(4 * ROWS * task.columns, t - 1),
            ),
            np.pad(np.array([p[1] for p in pairs], np.int32), (0, padded)),
        )
        reached = set(map(tuple, np.stack(after[:2], 1)[: len(pairs)].tolist()))
        ends = {cell for cell in reached if cell[0] == task.floor[cell[1]]}
        returns |= {(float(task.value[column]), -t) for _, column in ends}
        cells = reached - ends
    return returns | ({(0.0, -horizon)} if cells else set())


@pytest.mark.parametrize(
    ("map_name", "optimum"), [("convex", 3.55), ("concave", 52.5), ("mirrored", 52.5)]
)
def test_no_policy_beats_front_or_reference(map_name: str, optimum: float) -> None:
    """The returns of all 4**100 action sequences, by dynamic programming over reachable cells."""
    task = task_of(map_name)
    returns = exhaustive_front(task, CARD.horizon)
    front = {
        p for p in returns if not any(q[0] >= p[0] and q[1] >= p[1] and q != p for q in returns)
    }
    np.testing.assert_allclose(task.pareto_front(1.0), sorted(front), rtol=1e-14)
    best = max(0.5 * treasure + 0.5 * time for treasure, time in returns)
    assert CARD.weights == (0.5, 0.5)
    assert optimum == pytest.approx(best, abs=1e-12)
    assert task.card.optimum == (optimum if map_name == "convex" else None)
    assert task.best_moves(CARD.weights)[1] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    ("map_name", "optimum"), [("convex", 3.55), ("concave", 52.5), ("mirrored", 52.5)]
)
def test_reference_reaches_the_optimum(map_name: str, optimum: float) -> None:
    task = task_of(map_name)
    record = play(task, load(CARD.reference).for_task(task), range(2))
    assert record.terminated.all()
    assert record.info["success"].all()
    # float32 sums.
    np.testing.assert_allclose(record.total @ np.array(CARD.weights), optimum, rtol=1e-6)


def test_success_is_the_best_return(task: DeepSeaTreasure) -> None:
    """Random play finds some treasure; only the best one by a shortest way is a success."""
    at = np.arange(COLUMNS - 1)
    shortest = task.shortest_paths()[task.floor[at], at]
    for detour, columns in ((0, [4, 5]), (1, [])):
        info = jax.vmap(task.info, (0, None))(
            State(task.floor[at], at, shortest + detour), Params()
        )
        assert np.flatnonzero(info["success"]).tolist() == columns
    record = play(task, Uniform(task.action_space), range(200))
    assert record.terminated.mean() > 0.9
    assert record.info["success"].mean() < 0.05


@pytest.mark.parametrize(
    ("weights", "end"),
    [((1, 1e-3), (23.7, -19)), ((1e-3, 1), (0.7, -1)), ((0.35, 0.65), (8.2, -3))],
)
def test_value_iteration_follows_the_weights(
    task: DeepSeaTreasure, weights: tuple, end: tuple
) -> None:
    moves, value = task.best_moves(weights)
    best = max(np.array(FRONT), key=lambda point: float(point @ weights))
    np.testing.assert_array_equal(best, end)
    assert value == pytest.approx(best @ weights)
    env = TaskEnv(task)
    env.reset(seed=0)
    total, over = np.zeros(2), False
    while not over:
        _, reward, over, _, _ = env.step(moves[cell_of(env)])
        total += reward
    np.testing.assert_allclose(total, end, rtol=1e-6)


@pytest.mark.parametrize("map_name", ["convex", "mirrored"])
def test_best_moves_are_optimal_from_every_cell(map_name: str) -> None:
    """Following the table from any cell gives the most that treasures and walls allow.

    Enumeration gives that maximum.
    """
    task = task_of(map_name)
    moves, _ = task.best_moves(CARD.weights)
    for start in product(range(ROWS), range(task.columns)):
        if start[0] >= min(task.floor[start[1]], task.rock[start[1]]):
            continue
        distance = {start: 0}
        queue = [start]
        for cell in queue:
            for n in task._neighbours(*cell):
                if n not in distance:
                    distance[n] = distance[cell] + 1
                    if n[0] < task.floor[n[1]]:
                        queue.append(n)
        best = max(
            task.value[c] - steps for (r, c), steps in distance.items() if r == task.floor[c]
        )
        cell, steps = start, 0
        while cell[0] < task.floor[cell[1]]:
            cell, steps = task._neighbours(*cell)[moves[cell]], steps + 1
        assert task.value[cell[1]] - steps == pytest.approx(best)


def test_words_and_picture(task: DeepSeaTreasure) -> None:
    state = State(np.int32(3), np.int32(5), np.int32(8))
    text = task.describe(state, Params())
    grid = [line.split() for line in text.splitlines()[1:]]
    assert [len(row) for row in grid] == [COLUMNS] * ROWS
    assert grid[3][5] == "S"
    assert sum(cell == "S" for row in grid for cell in row) == 1
    assert {float(cell) for row in grid for cell in row if cell[0].isdigit()} == {
        value for value, _ in FRONT
    }
    assert all(value in text for value in ("row 3", "column 5"))
    for number, word in enumerate(MOVES):
        assert task.parse(f" {word.upper()}\n", state, Params()) == number
    with pytest.raises(ValueError, match="Did you mean 'left'"):
        task.parse("lefft", state, Params())
    picture = task.draw(state, Params())
    assert picture.shape == task.picture_shape
    assert picture.dtype == np.uint8
    assert (picture != task.draw(State(np.int32(3), np.int32(6), np.int32(9)), Params())).any()
    assert "15.1" in task.why_over(State(np.int32(4), np.int32(4), np.int32(8)), Params(), {})


def test_words_and_picture_of_the_mirrored_map() -> None:
    task = task_of("mirrored")
    state = State(np.int32(9), np.int32(0), np.int32(19))
    grid = [line.split() for line in task.describe(state, Params()).splitlines()[1:]]
    assert [len(row) for row in grid] == [20] * ROWS
    assert grid[9][:3] == ["S", ".", "#"]
    assert grid[10][19] == "124"
    assert task.draw(state, Params()).shape == task.picture_shape
    with pytest.raises(ValueError, match="concav"):
        CARD.with_settings(map="concav")

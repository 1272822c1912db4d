"""TextMaze against a plain account of its rules, and graph search in Python.

Layouts are compared with those that LMRL-Gym has published.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.maze.players import ShortestWay
from rlbench_suite.envs.text.maze.task import LAYOUTS, Params, TextMaze

pytestmark = pytest.mark.of_variants

STEPS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
Cell = tuple[int, int]


def distances(cells: set[Cell], goal: Cell) -> dict[Cell, int]:
    """Return the moves from every cell to the goal."""
    moves = {goal: 0}
    queue = deque([goal])
    while queue:
        row, column = queue.popleft()
        for down, right in STEPS.values():
            beside = row + down, column + right
            if beside in cells and beside not in moves:
                moves[beside] = moves[row, column] + 1
                queue.append(beside)
    return moves


def cells_of(free: Any, width: int) -> set[Cell]:
    return {
        (row, column)
        for row, line in enumerate(free)
        for column in range(width)
        if int(line) >> column & 1
    }


def layout_cells(layout: str) -> set[Cell]:
    lines = [line.strip() for line in LAYOUTS[layout][0].strip().splitlines()]
    return {
        (row, column)
        for row, line in enumerate(lines)
        for column, mark in enumerate(line)
        if mark == " "
    }


@cache
def contexts(split: Split, layout: str = "drawn") -> Params:
    task: Any = card("TextMaze-v0", layout=layout).build()
    draw = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    return jax.tree.map(np.asarray, draw(jax.random.split(jax.random.key(3), 300), int(split)))


# -- the published layouts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "cells", "optimum"), [("double_t", 26, -6.84), ("umaze", 7, -2.5)]
)
def test_the_published_layouts_have_their_optimum(layout: str, cells: int, optimum: float) -> None:
    """Means over all starts.

    -6.84 is ``maze_max_score`` in LMRL-Gym's compute_score_normalizations.py. The umaze is a single
    corridor, whose six starts return 0, -1, ..., -5.
    """
    goal = LAYOUTS[layout][1]
    moves = distances(layout_cells(layout), goal)
    assert len(moves) == cells
    best = {start: 1 - count for start, count in moves.items() if start != goal}
    assert np.mean([*best.values()]) == pytest.approx(optimum, abs=1e-9)
    task: Any = card("TextMaze-v0", layout=layout).build()
    starts_by_split = []
    for split in Split:
        params = contexts(split, layout)
        starts = [*zip(params.start_row.tolist(), params.start_column.tolist(), strict=True)]
        assert params.shortest.tolist() == [1 - best[start] for start in starts]
        starts_by_split.append(set(starts))
    assert (
        starts_by_split[0] ^ starts_by_split[1]
        == set(best)
        == starts_by_split[0] | starts_by_split[1]
    )
    record = play(task, ShortestWay(task), range(60), split="test")
    np.testing.assert_array_equal(record.total, 1 - record.info["shortest"])


@pytest.mark.parametrize(("layout", "over_all_starts"), [("double_t", -85.14), ("umaze", -46.02)])
def test_random_play_of_a_layout_returns_what_its_markov_chain_says(
    layout: str, over_all_starts: float
) -> None:
    goal = LAYOUTS[layout][1]
    cells = sorted(layout_cells(layout))
    index = {cell: i for i, cell in enumerate(cells)}
    chain = np.zeros((len(cells), len(cells)))
    for (row, column), i in index.items():
        for down, right in STEPS.values():
            chain[i, index.get((row + down, column + right), i)] += 0.25
    chain[:, index[goal]] = 0  # an episode that is over costs nothing
    away = np.ones(len(cells))
    value = np.zeros(len(cells))
    for _ in range(100):
        away = chain @ away  # the probability not to have reached the goal yet
        value -= away
    starts = [start for start in cells if start != goal]
    tests = starts[3::4]
    task: Any = card("TextMaze-v0", layout=layout).build()
    record = play(task, Uniform(task.action_space), range(1000), split="test")
    expected = np.mean([value[index[start]] for start in tests])
    assert abs(record.total.mean() - expected) <= 4 * record.total.std() / 1000**0.5
    assert np.mean([value[index[start]] for start in starts]) == pytest.approx(
        over_all_starts, abs=0.005
    )


# -- drawn mazes -----------------------------------------------------------------------------------


def test_drawn_mazes_are_connected_and_the_splits_share_none() -> None:
    """A connected maze has rooms - passages + rings = 1.

    The parity of rings is the same in every mirror image.
    """
    mazes_by_split: dict[Split, set[bytes]] = {}
    for split in Split:
        params = contexts(split)
        rings = set()
        for i in range(300):
            cells = cells_of(params.free[i], 11)
            goal, start = ((int(row[i]), int(column[i])) for row, column in (
                (params.goal_row, params.goal_column), (params.start_row, params.start_column),
            ))  # fmt: skip
            moves = distances(cells, goal)
            assert set(moves) == cells
            assert moves[start] == params.shortest[i] > 0
            assert {row % 2 and column % 2 for row, column in (goal, start)} == {1}
            passages = sum((row + column) % 2 for row, column in cells)
            assert not any(row % 2 == column % 2 == 0 for row, column in cells)
            assert not any(row in (0, 10) or column in (0, 10) for row, column in cells)
            rings.add(passages - 25 + 1)
        assert {ring % 2 for ring in rings} == {int(split)}
        assert len(rings) > 2
        mazes_by_split[split] = {line.tobytes() for line in params.free}
        assert len(mazes_by_split[split]) == 300
    assert not mazes_by_split[Split.TRAIN] & mazes_by_split[Split.TEST]


def test_every_passage_is_as_likely_as_its_mirror_image() -> None:
    free = np.array(
        [[line >> column & 1 for column in range(11)] for line in contexts(Split.TRAIN).free.T]
    )
    share = free.mean(-1)
    for image in (share.T, share[::-1], share[:, ::-1]):
        # Four standard errors of a difference of two shares of 300.
        assert np.abs(share - image).max() < 0.16


@pytest.mark.parametrize(("name", "width"), [("TextMaze-v0", 7), ("TextMazePartial-v0", 7)])
def test_steps_and_what_is_shown_are_those_of_the_rules(name: str, width: int) -> None:
    env: Any = gymnasium.make(f"rlsuite/{name}", difficulty=3)
    rng = np.random.default_rng(0)
    reached = 0
    for seed in range(12):
        observation, info = env.reset(seed=seed)
        assert info["shortest"] == -1
        params = env.unwrapped.params
        cells = cells_of(params.free, width)
        goal = (int(params.goal_row), int(params.goal_column))
        here = int(params.start_row), int(params.start_column)
        shortest = distances(cells, goal)[here]
        moves = 0
        bumps = 0
        over = False
        while not over:
            walls = [
                (here[0] + down, here[1] + right) not in cells for down, right in STEPS.values()
            ]
            if "Partial" in name:
                marks = (
                    np.eye(width)[[*goal]].ravel(),
                    np.eye(width)[[*here]].ravel() * (moves == 0),
                )
            else:
                grids = np.zeros((3, width, width))
                grids[(0, *zip(*cells, strict=True))] = 1
                grids[1][goal] = grids[2][here] = 1
                marks = (grids.ravel(),)
            np.testing.assert_array_equal(observation, np.concatenate([*marks, walls]))
            action = int(rng.integers(4))
            down, right = [*STEPS.values()][action]
            target = here[0] + down, here[1] + right
            moves = moves + 1
            bumps = bumps + (target not in cells)
            here = target if target in cells else here
            observation, reward, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            assert (terminated, truncated) == (here == goal, moves == 100)
            assert reward == (0 if here == goal else -1)
            assert (info["moves"], info["bumps"], info["shortest"]) == (
                moves,
                bumps,
                shortest if over else -1,
            )
        assert info["success"] == (
            here == goal and moves <= shortest * (2 if "Partial" in name else 1)
        )
        reached += info["reached"]
    assert 2 < reached < 12


# -- players and words -----------------------------------------------------------------------------


def test_the_explorer_finds_every_goal_by_short_ways() -> None:
    hidden = card("TextMazePartial-v0").build()
    explored = play(hidden, reference_player(hidden), range(300), split="test")
    assert explored.terminated.all()
    assert explored.info["bumps"].max() == 0
    shortest = explored.info["shortest"]
    assert (shortest - 1 <= -explored.total).all()
    assert explored.info["success"].mean() > 0.9


def test_words_show_what_numbers_show_and_junk_pays_nothing() -> None:
    env: Any = gymnasium.make("rlsuite/TextMaze-v0", view="text", layout="double_t")
    text, _ = env.reset(seed=0)
    params, state = env.unwrapped.params, env.unwrapped.episode.state
    assert "### ##### ###".replace(" ", ".") in text
    assert f"Your current position is at position {int(state.row)}, {int(state.column)}." in text
    assert "The goal is at position 8, 6." in text
    env.unwrapped.episode = env.unwrapped.episode._replace(
        state=state._replace(row=np.int32(7), column=np.int32(6)), params=params
    )
    text, reward, terminated, _, info = env.step("move up down down down")
    assert (reward, terminated) == (-1, False)
    assert "invalid_reason" in info
    assert "There are walls to your left, to your right." in text
    _, reward, terminated, _, info = env.step("Move DOWN")
    assert (reward, terminated) == (0, True)
    assert "the goal is reached in 2 moves" in info["end_reason"]


def test_hidden_mazes_are_hidden_in_words_and_pictures_too() -> None:
    env: Any = gymnasium.make("rlsuite/TextMaze-v0", observed="partially", view="text")
    assert env.unwrapped.card.id == "rlsuite/TextMazePartial-v0"
    text, _ = env.reset(seed=1)
    assert "Your current position" in text
    assert "#" not in text
    text, *_ = env.step("left")
    assert "current position" not in text
    task = env.unwrapped.task
    state = env.unwrapped.episode.state
    params = env.unwrapped.params
    elsewhere = params._replace(
        free=np.array([0, 2**8 - 2, *[0b10101010, 2**8 - 2] * 3, 0], np.uint32)
    )
    walls = np.asarray(task.walls(state, params))
    lookalike = next(
        state._replace(row=np.int32(row), column=np.int32(column))
        for row in range(1, 8)
        for column in range(1, 8)
        if (np.asarray(task.walls(state._replace(row=row, column=column), params)) == walls).all()
        and (row, column) != (int(state.row), int(state.column))
    )
    np.testing.assert_array_equal(task.draw(state, params), task.draw(lookalike, params))
    assert task.draw(state, elsewhere).shape == task.picture_shape


@pytest.mark.parametrize(("keywords", "words"), [
    ({"difficulty": 8}, "from 2 to 7"), ({"difficulty": 2.5}, "whole number"),
    ({"difficulty": "hard", "layout": "umaze"}, "one size only"), ({"layout": "tmaze"}, "umaze"),
])  # fmt: skip
def test_wrong_keywords_are_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gymnasium.make("rlsuite/TextMaze-v0", **keywords)
    assert isinstance(card("TextMaze-v0").build(difficulty=2), TextMaze)

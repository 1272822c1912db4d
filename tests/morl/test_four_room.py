"""Four Rooms against the rules in plain Python, recorded steps, and enumeration of paths."""

from collections import deque
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.morl.four_room import (
    SHAPES,
    FourRoom,
    Params,
    State,
    best_discounted_return,
    distances,
)

CARD = card("FourRoom-v0")

# The map as lists: shapes of each kind, walls, start and goal, as in MO-Gymnasium 1.3.2.
KIND_CELLS = (
    {(0, 0), (2, 6), (6, 10), (12, 12)},
    {(0, 5), (5, 0), (7, 7), (10, 6)},
    {(5, 5), (6, 2), (7, 12), (12, 7)},
)
WALLS = {(row, 6) for row in (0, 1, 4, 5, 6, 7, 8, 11, 12)} | {
    (6, column) for column in (0, 1, 4, 5, 6, 7, 8, 11, 12)
}
START, GOAL = (12, 0), (0, 12)
STEPS = ((0, -1), (-1, 0), (0, 1), (1, 0))


@pytest.fixture(scope="module")
def task() -> FourRoom:
    return CARD.build()


class Rules:
    """The rules of an episode in plain Python."""

    def __init__(self) -> None:
        self.cell = START
        self.collected: set = set()

    def step(self, action: int) -> tuple[int, int, int]:
        row, column = self.cell[0] + STEPS[action][0], self.cell[1] + STEPS[action][1]
        if not (0 <= row < 13 and 0 <= column < 13) or (row, column) in WALLS:
            return (0, 0, 0)
        self.cell = (row, column)
        if self.cell == GOAL:
            return (1, 1, 1)
        kinds = [self.cell in cells and self.cell not in self.collected for cells in KIND_CELLS]
        if any(kinds):
            self.collected.add(self.cell)
        return tuple(map(int, kinds))


# MO-Gymnasium 1.3.2, four-room-v0: actions, and what is collected at which step.
RECORDED = "33311222222111221111111221"
COLLECTED = {10: (0, 1, 0), 25: (1, 0, 0)}


def test_recorded_steps_are_those_of_the_plain_rules() -> None:
    """So are the rules that the next test compares with."""
    rules = Rules()
    for t, action in enumerate(map(int, RECORDED)):
        assert rules.step(action) == COLLECTED.get(t, (0, 0, 0))
    assert rules.cell == (6, 10)


def test_rules_over_random_episodes(task: FourRoom) -> None:
    """1,000 episodes that drift to the goal, with random weights."""
    episodes, steps = 1_000, 100
    rng = np.random.default_rng(0)
    actions = rng.choice(4, (steps, episodes), p=[0.2, 0.3, 0.3, 0.2])
    params = Params(*rng.uniform(-1, 1, (3, episodes)).astype(np.float32))

    def step(state: State, action: jax.Array) -> tuple[State, Any]:
        next_state = jax.vmap(task.transition, (0, 0, None, 0))(state, action, None, params)
        reward = jax.vmap(task.reward, (0, 0, 0, None, 0))(state, action, next_state, None, params)
        over = jax.vmap(task.terminal, (0, None, 0))(next_state, None, params)
        return next_state, (next_state, reward, over)

    first = task.initial(None, params)
    first = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (episodes,)), first)
    states, rewards, over = jax.jit(lambda *a: jax.lax.scan(step, *a)[1])(first, actions)
    fields = np.stack(states[:3], -1)
    rewards, over = np.asarray(rewards), np.asarray(over)
    assert over.any()
    weights = np.stack(params, -1)
    for e in range(episodes):
        rules = Rules()
        for t in range(steps):
            reward = rules.step(int(actions[t, e]))
            np.testing.assert_array_equal(rewards[t, e], reward * weights[e])
            bits = sum(1 << n for n, (cell, _) in enumerate(SHAPES) if cell in rules.collected)
            assert fields[t, e].tolist() == [*rules.cell, bits]
            assert over[t, e] == (rules.cell == GOAL)
            if over[t, e]:
                break


def plain_distance(start: tuple, target: tuple, forbidden: set) -> int | None:
    steps = {start: 0}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        if cell == target:
            return steps[cell]
        for down, right in STEPS:
            place = (cell[0] + down, cell[1] + right)
            inside = 0 <= place[0] < 13 and 0 <= place[1] < 13
            if inside and place not in WALLS | forbidden and place not in steps:
                steps[place] = steps[cell] + 1
                queue.append(place)
    return None


def test_every_shape_can_be_reached_past_all_others() -> None:
    """So the undiscounted optimum has every shape that counts, and no other one."""
    shapes = {cell for cell, _ in SHAPES}
    for target in (*shapes, GOAL):
        forbidden = shapes - {target}
        expected = plain_distance(START, target, forbidden)
        assert expected is not None
        assert distances(target, forbidden)[START] == expected


@pytest.mark.parametrize(
    ("weights", "returns"),
    [((1, 0, 0), 3.63706), ((0, 0, 1), 3.95982), ((1 / 3, 1 / 3, 1 / 3), 3.44266)],
)
def test_discounted_optimum(weights: tuple, returns: float) -> None:
    """The values are those of a search of our own over orders of shapes, at discount 0.99.

    Where two kinds count nothing, what is collected of them on the way is a matter of ties.
    """
    best = best_discounted_return(weights, 0.99)
    assert best @ weights == pytest.approx(returns, abs=1e-5)


def test_discounted_optimum_is_that_of_all_orders() -> None:
    """One kind counts, the others cost: the best of all orders of its four shapes and the goal."""
    gamma, weights = 0.97, (1.0, -0.9, -0.9)
    costly = KIND_CELLS[1] | KIND_CELLS[2] | {GOAL}
    square_cells = sorted(KIND_CELLS[0])

    def best_from(cell: tuple, left: tuple) -> float:
        value = 0.0
        for target in left:
            # Shapes that count and lie on the way are another order.
            steps = plain_distance(cell, target, costly | (set(left) - {target}))
            if steps is not None:
                remaining = tuple(cell for cell in left if cell != target)
                value = max(
                    value, gamma**steps / gamma + gamma**steps * best_from(target, remaining)
                )
        return value

    assert best_discounted_return(weights, gamma) @ weights == pytest.approx(
        best_from(START, tuple(square_cells)), abs=1e-9
    )
    with pytest.raises(ValueError, match="discount"):
        best_discounted_return(weights, 1.0)


def test_reference_has_the_best_return_for_all_weights(task: FourRoom) -> None:
    """256 episodes, which have all patterns of signs; the bound is added up plainly."""
    record = play(task, load(CARD.reference).for_task(task), range(256))
    assert record.info["success"].all()
    best = np.asarray(record.info["best_return"])
    np.testing.assert_allclose(record.total.sum(1), best, atol=1e-5)
    assert (record.length[~record.terminated] == CARD.horizon).all()
    random = play(task, Uniform(task.action_space), range(256))
    assert random.info["success"].mean() < 0.05
    assert (random.total.sum(1) <= np.asarray(random.info["best_return"]) + 1e-5).all()
    params = Params(*np.float32([0.5, -0.25, -0.5]))
    state = task.initial(None, params)
    assert float(task.info(state, params)["best_return"]) == 2


def test_splits_have_other_weights(task: FourRoom) -> None:
    for split in (0, 1):
        keys = jax.random.split(jax.random.key(3), 500)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(split))
        bands = np.floor((np.stack(params) + 1) * 10)
        assert (bands % 2 == split).all()
        assert bands.min() == split
        assert bands.max() == 18 + split


def test_words_and_picture(task: FourRoom) -> None:
    params = Params(*np.float32([0.5, -0.25, 1.0]))
    state = State(np.int32(3), np.int32(4), np.int32(1), np.float32(0.5))
    text = task.describe(state, params)
    grid = [line.split() for line in text.splitlines()[-13:]]
    assert grid[3][4] == "A"
    assert grid[0][0] == "."  # collected
    marks = [mark for row in grid for mark in row]
    assert [marks.count(mark) for mark in "123XG"] == [3, 4, 4, len(WALLS), 1]
    assert "squares (number 1) +0.5000" in text
    assert task.parse("up", state, params) == 1
    assert task.draw(state, params).shape == task.picture_shape

"""Item gathering against a recorded episode of MOMAland, plain rules, and a search of all play."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.foraging import Cell
from rlbench_suite.envs.marl.gathering_plan import (
    CONTAINS,
    best_plan,
    steps_between,
    tour_lengths,
    tours_from,
)
from rlbench_suite.envs.marl.item_gathering import (
    INNER,
    ITEMS,
    KIND_OF_ITEM,
    OUTER,
    ItemGathering,
    Params,
    State,
)

CARD = card("ItemGathering-v0")
MOVES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))

# MOMAland 0.2.0, moitem_gathering with 25 steps, seed 1: actions, then rows and columns of both
# agents after each step. Agent 1 gathers a red item in steps 14, 20 and 21, counted from 0.
ACTIONS = [
    (0, 1), (4, 4), (0, 2), (2, 3), (0, 2), (1, 1), (4, 3), (0, 3), (2, 0), (3, 2), (2, 1), (4, 0),
    (4, 1), (4, 4), (0, 4), (0, 1), (2, 3), (0, 0), (1, 4), (1, 2), (0, 4), (4, 1), (4, 1), (1, 1),
    (0, 4),
]  # fmt: skip
PLACES = [
    (0, 7, 6, 0), (0, 7, 6, 1), (0, 7, 7, 1), (1, 7, 7, 0), (1, 7, 7, 0), (0, 7, 6, 0),
    (0, 7, 6, 0), (0, 7, 6, 0), (1, 7, 6, 0), (1, 6, 7, 0), (2, 6, 6, 0), (2, 7, 6, 0),
    (2, 7, 5, 0), (2, 7, 5, 1), (2, 7, 5, 2), (2, 7, 4, 2), (3, 7, 4, 1), (3, 7, 4, 1),
    (2, 7, 4, 2), (1, 7, 5, 2), (1, 7, 5, 3), (1, 7, 4, 3), (1, 7, 3, 3), (0, 7, 2, 3),
    (0, 7, 2, 4),
]  # fmt: skip
GATHERING_STEPS = (14, 20, 21)


@pytest.fixture(scope="module")
def task() -> ItemGathering:
    return CARD.build()


@pytest.fixture(scope="module")
def published() -> ItemGathering:
    return card("ItemGathering-v0", map="published").build()


def sampled(task: ItemGathering, count: int, split: int) -> Params:
    """Return contexts with one more axis in front."""
    keys = jax.random.split(jax.random.key(5), count)
    program = jax.jit(jax.vmap(task.sample_params, (0, None)))
    return jax.tree.map(np.asarray, program(keys, np.int32(split)))


def at(tree: Any, index: int) -> Any:
    """Return one entry of a batch."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def test_a_recorded_episode_of_momaland(published: ItemGathering) -> None:
    """Its flag of termination is set by the time limit, and that of truncation when all is gone."""
    task = published
    params = task.published()
    state = task.initial(None, params)._replace(steps_left=jnp.int32(25))
    step = jax.jit(lambda state, action: task.transition(state, action, jax.random.key(0), params))
    for number, (action, places) in enumerate(zip(ACTIONS, PLACES, strict=True)):
        after = step(state, jnp.array(action))
        rewards = task.reward(state, jnp.array(action), after, None, params)
        assert tuple(map(int, (*after.agents[0], *after.agents[1]))) == places
        red = float(number in GATHERING_STEPS)
        assert np.asarray(rewards).tolist() == [[0, 0, 0], [red, 0, 0]]
        assert bool(task.terminal(after, None, params)) == (number == 24)
        state = after
    assert int(state.is_left.sum()) == 5


class PlainField:
    """The rules in plain Python; a dict from cells to kinds has the items."""

    def __init__(self, params: Params) -> None:
        self.items = dict(zip(params.items.tolist(), KIND_OF_ITEM.tolist(), strict=True))
        self.agents = [divmod(start, 8) for start in params.starts.tolist()]
        self.weights = params.weights

    def step(self, action: np.ndarray, first_won: bool) -> np.ndarray:
        """Make a step; if chance decides about a cell, it is told who gets it."""
        targets = []
        for (row, column), choice in zip(self.agents, action, strict=True):
            down, right = MOVES[choice]
            targets.append((min(max(row + down, 0), 7), min(max(column + right, 0), 7)))
        if targets[0] == targets[1]:
            if self.agents[0] == targets[0]:
                loser = 1
            elif self.agents[1] == targets[1]:
                loser = 0
            else:
                loser = 1 if first_won else 0
            targets[loser] = self.agents[loser]
        self.agents = targets
        rewards = np.zeros((2, 3))
        for number, (row, column) in enumerate(targets):
            kind = self.items.pop(8 * row + column, None)
            if kind is not None:
                rewards[number, kind] = self.weights[kind]
        return rewards


@pytest.mark.parametrize("split", [0, 1])
def test_rules_over_random_episodes(task: ItemGathering, split: int) -> None:
    """600 episodes of 12 steps of each split, whose agents start two cells from each other."""
    episodes, steps = 600, 12
    params = sampled(task, episodes, split)
    first = params.starts[:, 0]
    starts = np.stack([first, np.where(first % 8 < 6, first + 2, first - 2)], 1)
    params = params._replace(starts=starts)
    rng = np.random.default_rng(split)
    actions = rng.integers(0, 5, (steps, episodes, 2)).astype(np.int32)
    fields = [PlainField(at(params, i)) for i in range(episodes)]
    state = jax.vmap(task.initial, (None, 0))(None, params)

    def step(state: State, action: jax.Array, key: jax.Array, params: Params) -> Any:
        after = task.transition(state, action, key, params)
        return after, task.reward(state, action, after, None, params)

    program = jax.jit(jax.vmap(step))
    conflicts = first_wins = 0
    for number in range(steps):
        keys = jax.random.split(jax.random.key(number), episodes)
        before = places_of(state)
        state, rewards = program(state, actions[number], keys, params)
        places = places_of(state)
        targets = np.clip(before + np.array(MOVES)[actions[number]], 0, 7)
        first_won = (places[:, 0] == targets[:, 0]).all(1)
        meets = (targets[:, 0] == targets[:, 1]).all(1) & (targets != before).any(2).all(1)
        conflicts += meets.sum()
        first_wins += (meets & first_won).sum()
        expected = [
            field.step(*choice)
            for field, *choice in zip(fields, actions[number], first_won, strict=True)
        ]
        np.testing.assert_allclose(rewards, expected, rtol=1e-6)
        np.testing.assert_array_equal(places, [field.agents for field in fields])
        assert state.is_left.sum(1).tolist() == [len(field.items) for field in fields]
    assert conflicts > 80
    assert abs(first_wins - conflicts / 2) < 2.5 * np.sqrt(conflicts)  # 5 standard deviations


def places_of(state: State) -> np.ndarray:
    """Return row and column of both agents in a batch, ``(episodes, 2, 2)``."""
    return np.array(state.agents).transpose(2, 0, 1)


def all_counts(task: ItemGathering, steps: int) -> set[tuple[int, ...]]:
    """Return all numbers of red, green and blue items that two agents can gather by any play.

    Whoever chance lets into a cell, agents that want the same one may as well not both want it. So
    states in which they do are left out. A state is both cells and the set of gathered items.
    """
    params = task.published()
    bit_of_cell = {int(cell): 1 << i for i, cell in enumerate(params.items)}
    first, second = params.starts.tolist()
    gathered = {(first, second): {0}}
    neighbours = {}
    for cell in range(64):
        row, column = divmod(cell, 8)
        reach = {(min(max(row + a, 0), 7), min(max(column + b, 0), 7)) for a, b in MOVES}
        neighbours[cell] = [8 * a + b for a, b in reach]
    for _ in range(steps):
        following: dict[tuple[int, int], set[int]] = {}
        for (a, b), sets in gathered.items():
            for pair in product(neighbours[a], neighbours[b]):
                if pair[0] != pair[1]:
                    gain = bit_of_cell.get(pair[0], 0) | bit_of_cell.get(pair[1], 0)
                    following.setdefault(pair, set()).update({items | gain for items in sets})
        gathered = following
    flags = CONTAINS[sorted(set().union(*gathered.values()))]
    return {tuple(np.bincount(KIND_OF_ITEM[row], minlength=3).tolist()) for row in flags}


def best_counts(counts: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return those that no other one dominates."""
    return {
        point
        for point in counts
        if not any(
            rival != point and all(a >= b for a, b in zip(rival, point, strict=True))
            for rival in counts
        )
    }


def planned_counts(task: ItemGathering, steps: int) -> set[tuple[int, ...]]:
    """Return the numbers of items of all pairs of tours that are short enough."""
    params = task.published()
    lengths = tour_lengths(params.items)
    feasible = [
        np.flatnonzero(np.asarray(tours_from(start, params.items, lengths).lengths) <= steps)
        for start in params.starts
    ]
    pairs = {int(a | b) for a, b in product(*feasible)}
    return {
        tuple(np.bincount(KIND_OF_ITEM[CONTAINS[items]], minlength=3).tolist()) for items in pairs
    }


FRONTS: dict[int, set[tuple[int, ...]]] = {
    6: {(3, 2, 1), (1, 3, 1)},
    8: {(2, 3, 2), (3, 3, 1), (3, 2, 2)},
    10: {(3, 3, 2)},
}
"""Exact fronts of the published map, by its number of steps."""


def test_fronts_of_the_published_map(published: ItemGathering) -> None:
    """Tours that ignore the other agent reach all that play can reach, and no more."""
    for steps, front in FRONTS.items():
        assert best_counts(planned_counts(published, steps)) == front
    assert best_counts(all_counts(published, 6)) == FRONTS[6]


def test_tours_and_plans_are_the_best(task: ItemGathering) -> None:
    """Compare with all orders of up to four items, and with all pairs of disjoint sets."""
    for number in range(5):
        params = at(sampled(task, 5, 1), number)
        lengths = tour_lengths(params.items)
        tours = [tours_from(start, params.items, lengths) for start in params.starts]
        steps = np.asarray(steps_between(params.items, params.items))
        approach = np.asarray(steps_between(params.starts, params.items))
        shortest = np.full((2, 1 << ITEMS), 10_000)
        shortest[:, 0] = 0
        routes = [((k,), approach[:, k]) for k in range(ITEMS)]
        for _ in range(4):
            longer = []
            for route, length in routes:
                index = sum(1 << k for k in route)
                shortest[:, index] = np.minimum(shortest[:, index], length)
                longer += [
                    ((*route, k), length + steps[route[-1], k])
                    for k in range(ITEMS)
                    if k not in route
                ]
            routes = longer
        small = CONTAINS.sum(1) <= 4
        for agent in range(2):
            np.testing.assert_array_equal(tours[agent].lengths[small], shortest[agent, small])
        weights = params.weights[KIND_OF_ITEM]
        plan = best_plan((tours[0], tours[1]), weights, jnp.ones(ITEMS, bool), 5)
        gains = CONTAINS @ weights
        feasible = [np.flatnonzero(row <= 5) for row in shortest]
        best = max(gains[a] + gains[b] for a, b in product(*feasible) if not a & b)
        first, second = map(int, plan.sets)
        assert not first & second
        assert gains[first] + gains[second] > best - 0.002  # the steps cost that much at most


def test_players(task: ItemGathering) -> None:
    """The reference gathers what its first plan promises, but where agents meet."""
    record = play(task, reference_player(task), range(256))
    chance = play(task, Uniform(task.action_space), range(256))
    assert record.info["success"].mean() > 0.95
    assert chance.info["success"].mean() < 0.05
    assert (record.total >= 0).all()


def test_the_reference_gathers_everything_on_the_published_map(published: ItemGathering) -> None:
    record = play(published, reference_player(published), range(8))
    assert record.total.sum(1).tolist() == [[3, 3, 2]] * 8


def test_contexts_of_the_splits(task: ItemGathering) -> None:
    for split in (0, 1):
        params = sampled(task, 2_000, split)
        assert (np.sort(params.items) != np.roll(np.sort(params.items), 1, axis=1)).all()
        assert set(params.items.ravel().tolist()) == set(INNER.tolist())
        assert set(params.starts.ravel().tolist()) == set(OUTER.tolist())
        assert (params.starts[:, 0] != params.starts[:, 1]).all()
        band = np.floor(np.sqrt(params.weights[:, 0]) * 20)
        assert (band % 2 == split).all()


def test_observations_are_those_of_both_agents(task: ItemGathering) -> None:
    params = at(sampled(task, 1, 0), 0)
    state = task.initial(None, params)
    rows = [task.named(row) for row in np.asarray(task.observation(state, None, params))]
    for row, agent, start in zip(rows, range(2), params.starts.tolist(), strict=True):
        assert row["itself"].ravel().nonzero()[0].tolist() == [start]
        assert row["teammate"].ravel().nonzero()[0].tolist() == [params.starts[1 - agent]]
        for kind, name in enumerate(("red", "green", "blue")):
            cells = sorted(params.items[kind == KIND_OF_ITEM].tolist())
            assert row[f"{name}_items"].ravel().nonzero()[0].tolist() == cells
        np.testing.assert_allclose(row["weights"], params.weights)


def test_pettingzoo_words_and_picture(task: ItemGathering) -> None:
    parallel_api_test(TaskParallelEnv(task, max_cycles=11), num_cycles=30)
    params = at(sampled(task, 1, 0), 0)
    state = task.initial(None, params)
    assert task.parse("Up, stay", state, params).tolist() == [1, 0]
    assert task.spell(np.array([1, 0]), state, params) == "up stay"
    text = task.describe(state, params)
    assert "6 of 6 steps are left" in text
    assert text.count(" b") + text.count("\nb") == 2 + text.count("blue")
    moved = state._replace(agents=(Cell(np.int32(3), np.int32(3)), state.agents[1]))
    assert (task.draw(state, params) != task.draw(moved, params)).any()
    with pytest.raises(ValueError, match="expected 2 words"):
        task.parse("up", state, params)
    with pytest.raises(ValueError, match="left"):
        task.parse("lef up", state, params)
    with pytest.raises(ValueError, match="4 to 10"):
        CARD.build(difficulty=3)

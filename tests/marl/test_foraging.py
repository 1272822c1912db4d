"""Check foraging against records of lb-foraging, and against the rules in plain Python."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.foraging import Cell, Food, Foraging, Params, State
from rlbench_suite.envs.marl.joint_collection import steps_to

CARD = card("Foraging-v0")
RECORDS = json.loads((Path(__file__).parent / "foraging_records.json").read_text())["records"]
OVERLAP = RECORDS[2]
"""Episode in which two players of lb-foraging enter one cell."""
NAMES = [f"{record['id']}, {len(record['actions'])} steps" for record in RECORDS]


def task_of(record: dict[str, Any]) -> Foraging:
    """Return the task of a record, whose number of agents no id has."""
    choices = {name: str(record[name]) for name in ("sight", "cooperation", "foods")}
    agents = len(record["players"])
    return Foraging(
        replace(card("Foraging-v0", **choices), agents=agents),
        difficulty=record["size"],
        dtype="float32",
    )


def start(record: dict[str, Any]) -> tuple[State, Params]:
    foods = tuple(Food(*np.int32(food)) for food in record["food"])
    players = np.int32(record["players"])
    agents = tuple(Cell(*player[:2]) for player in players)
    state = State(agents, (np.bool_(True),) * len(foods))
    return state, Params(foods, tuple(players[:, 2]))


def step(task: Foraging, state: Any, action: jax.Array, params: Any) -> tuple[Any, ...]:
    after = task.transition(state, action, None, params)
    reward = task.reward(state, action, after, None, params)
    over = task.terminal(after, None, params)
    return after, reward, over, task.observation(after, None, params), task.info(after, params)


def unscaled(task: Foraging, observation: jax.Array) -> np.ndarray:
    """Return an observation with the numbers of lb-foraging."""
    things = np.asarray(observation, np.float64).reshape(len(observation), -1, 3)
    scaled = things * [task.size - 1, task.size - 1, task.max_food_level]
    return np.where(things[:, :, 2:] > 0, scaled, [-1, -1, 0]).reshape(len(observation), -1)


@pytest.mark.parametrize(
    "record", [record for record in RECORDS if record is not OVERLAP],
    ids=[name for name in NAMES if name != NAMES[2]],
)  # fmt: skip
def test_episodes_are_those_of_lb_foraging(record: dict[str, Any]) -> None:
    """Places, rewards, ends and observations, but for the end at the time limit."""
    task = task_of(record)
    state, params = start(record)
    one_step = jax.jit(lambda state, action: step(task, state, action, params))
    for t, action in enumerate(record["actions"]):
        state, reward, over, observation, _ = one_step(state, jnp.asarray(action))
        assert np.array(state.agents).tolist() == record["positions"][t]
        np.testing.assert_allclose(reward, record["reward"][t], atol=1e-7)
        assert bool(over) == (record["terminated"][t] and not any(state.is_left))
        observed = unscaled(task, observation)
        expected = np.array(record["obs"][t], np.float64)
        for i, row in enumerate(expected):
            hide_what_is_out_of_sight(row, record, np.array(state.agents), i)
        np.testing.assert_allclose(observed, expected, atol=1e-5)


def hide_what_is_out_of_sight(
    row: np.ndarray, record: dict[str, Any], agents: np.ndarray, i: int
) -> None:
    """Remove from a row of lb-foraging agents that stand out of the window that food has.

    Near the upper and left edge lb-foraging shows agents as far as twice the sight from it.
    """
    if record["sight"] == "all":
        return
    sight = int(record["sight"])
    entries = row[3 * (record["foods"] + 1) :].reshape(-1, 3)
    itself = np.minimum(agents[i], sight)
    near = (np.abs(entries[:, :2] - itself).max(1) <= sight) & (entries[:, 2] > 0)
    remaining = entries[near]
    entries[:] = [-1, -1, 0]
    entries[: len(remaining)] = remaining


def test_two_agents_never_stand_in_one_cell() -> None:
    """lb-foraging moves an agent into the cell of another one whose own move has failed."""
    task = task_of(OVERLAP)
    state, params = start(OVERLAP)
    assert OVERLAP["positions"][0][0] == OVERLAP["positions"][0][1]
    state = task.transition(state, jnp.asarray(OVERLAP["actions"][0]), None, params)
    assert np.array(state.agents).tolist() == [[2, 2], [2, 3], [2, 5]]


class World(NamedTuple):
    """A field in plain Python."""

    size: int
    food: dict[tuple[int, int], int]
    agents: list[tuple[int, int]]
    levels: list[int]
    spawned: int


def step_by_rules(world: World, actions: list[int]) -> tuple[World, list[float]]:
    """Return the field after a step, and the reward of each agent."""
    moves = {1: (-1, 0), 2: (1, 0), 3: (0, -1), 4: (0, 1)}
    targets = []
    for cell, action in zip(world.agents, actions, strict=True):
        down, right = moves.get(action, (0, 0))
        target = cell[0] + down, cell[1] + right
        inside = all(0 <= x < world.size for x in target)
        targets.append(target if inside and target not in world.food else cell)
    while len(set(targets)) < len(targets):
        crowded = {cell for cell in targets if targets.count(cell) > 1}
        targets = [
            old if new in crowded else new for old, new in zip(world.agents, targets, strict=True)
        ]
    food, rewards = dict(world.food), [0.0] * len(actions)
    for (row, column), level in world.food.items():
        lifters = [
            i
            for i, (r, c) in enumerate(world.agents)
            if actions[i] == 5 and abs(r - row) + abs(c - column) == 1
        ]
        strength = sum(world.levels[i] for i in lifters)
        if lifters and strength >= level:
            del food[row, column]
            for i in lifters:
                rewards[i] = world.levels[i] * level / (strength * world.spawned)
    return world._replace(food=food, agents=targets), rewards


def test_rules_over_a_thousand_episodes() -> None:
    """Sampled fields; agents mostly load beside food, so that much is lifted."""
    task = CARD.build(difficulty=8)
    count, horizon = 1000, 30
    keys = jax.random.split(jax.random.key(0), count)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, 1)
    state = jax.jit(jax.vmap(task.initial))(keys, params)
    foods, levels = np.array(params.foods).transpose(2, 0, 1), np.array(params.levels).T
    cells = np.array(state.agents).transpose(2, 0, 1)
    worlds = [
        World(
            8,
            {(r, c): level for r, c, level in food},
            [tuple(cell) for cell in agents],
            own_levels,
            sum(level for _, _, level in food),
        )
        for food, agents, own_levels in zip(
            foods.tolist(), cells.tolist(), levels.tolist(), strict=True
        )
    ]
    one_step = jax.jit(jax.vmap(lambda *args: step(task, *args)))
    rng = np.random.default_rng(0)
    earned = np.zeros(count)
    for _ in range(horizon):
        beside = [
            [
                any(abs(r - row) + abs(c - column) == 1 for row, column in world.food)
                for r, c in world.agents
            ]
            for world in worlds
        ]
        load = np.array(beside) & (rng.random((count, 3)) < 0.8)
        actions = np.where(load, 5, rng.integers(0, 6, (count, 3)))
        state, reward, over, _, info = one_step(state, jnp.asarray(actions), params)
        results = [
            step_by_rules(world, joint)
            for world, joint in zip(worlds, actions.tolist(), strict=True)
        ]
        worlds = [world for world, _ in results]
        np.testing.assert_allclose(reward, [rewards for _, rewards in results], atol=1e-6)
        places = np.array(state.agents).transpose(2, 0, 1)
        assert places.tolist() == [[list(cell) for cell in world.agents] for world in worlds]
        left = np.array(state.is_left).sum(0)
        assert left.tolist() == [len(world.food) for world in worlds]
        assert over.tolist() == [not world.food for world in worlds]
        earned += np.asarray(reward).sum(1)
    np.testing.assert_allclose(info["collected"], earned, atol=1e-5)
    assert (earned > 0.3).mean() > 0.2


@pytest.mark.parametrize("cooperation", ["free", "forced"])
@pytest.mark.parametrize("split", [0, 1])
def test_fields_keep_the_rules_of_the_table(cooperation: str, split: int) -> None:
    """Edges, distances, levels and the parity of the split, in 2,000 fields of the least size."""
    task = card("Foraging-v0", cooperation=cooperation).build(difficulty=8)
    keys = jax.random.split(jax.random.key(1), 2000)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, split)
    state = jax.jit(jax.vmap(task.initial))(keys, params)
    foods = np.array(params.foods).transpose(2, 0, 1)
    levels = np.array(params.levels).T
    agents = np.array(state.agents).transpose(2, 0, 1)
    assert set(levels.ravel().tolist()) == {1, 2}
    assert (foods[:, :, :2].sum((1, 2)) % 2 == split).all()
    assert set(foods[:, :, :2].ravel().tolist()) == set(range(1, 7))
    numbers = foods[:, :, 0] * 8 + foods[:, :, 1]
    assert (np.diff(numbers) > 0).all()
    highest = levels.sum(1)[:, None]
    if cooperation == "forced":
        assert (foods[:, :, 2] == highest).all()
    else:
        assert (foods[:, :, 2] <= highest).all()
        assert set(foods[:, :, 2].ravel().tolist()) == set(range(1, 7))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        gap = np.sort(np.abs(foods[:, i, :2] - foods[:, j, :2]), 1)
        assert (gap[:, 1] > 1).all()
        assert not ((gap[:, 1] == 2) & (gap[:, 0] == 0)).any()
        assert (agents[:, i] != agents[:, j]).any(1).all()
    assert (agents[:, :, None] != foods[:, None, :, :2]).any(-1).all()


def test_there_is_a_cell_for_the_last_food() -> None:
    """All places of two pieces of food on the smallest field leave one for both splits."""
    inside = list(product(range(1, 7), repeat=2))

    def is_allowed(cell: tuple[int, int], neighbour: tuple[int, int]) -> bool:
        gap = sorted(abs(a - b) for a, b in zip(cell, neighbour, strict=True))
        return gap[1] > 1 and gap != [0, 2]

    for first in inside:
        for second in inside:
            if is_allowed(first, second):
                last = [c for c in inside if is_allowed(c, first) and is_allowed(c, second)]
                assert {sum(cell) % 2 for cell in last} == {0, 1}


@pytest.mark.parametrize(
    "choices", [{}, {"cooperation": "forced"}, {"sight": "2"}, {"foods": "1"}], ids=str
)
def test_the_reference_collects_everything(choices: dict[str, str]) -> None:
    """A perfect episode pays 1 over all agents."""
    task = card("Foraging-v0", **choices).build(difficulty="easy")
    record = play(task, reference_player(task), range(256))
    assert record.info["success"].mean() > 0.99
    np.testing.assert_allclose(record.total.sum(1), record.info["collected"], atol=1e-5)


def test_ways_go_around_what_is_in_the_way() -> None:
    """Against breadth-first search."""
    rng = np.random.default_rng(2)
    blocked = rng.random((9, 9)) < 0.3
    goal = (4, 4)
    steps = {goal: 0}
    queue = [goal]
    for row, column in queue:  # grows while it is read
        for cell in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            inside = all(0 <= x < 9 for x in cell)
            if inside and not blocked[cell] and cell not in steps:
                steps[cell] = steps[row, column] + 1
                queue.append(cell)
    ways = np.asarray(steps_to(jnp.array(goal), jnp.asarray(blocked)))
    for cell in product(range(9), repeat=2):
        assert ways[cell] == steps.get(cell, 10_000)


def test_words_of_agents() -> None:
    task = CARD.build()
    assert task.parse("load North, none", None, None).tolist() == [5, 1, 0]
    assert task.spell(np.array([5, 1, 0]), None, None) == "load north none"
    with pytest.raises(ValueError, match="expected 3 words"):
        task.parse("load", None, None)
    with pytest.raises(ValueError, match="north"):
        task.parse("nort load load", None, None)
    with pytest.raises(ValueError, match="8 to 20"):
        CARD.build(difficulty=5)

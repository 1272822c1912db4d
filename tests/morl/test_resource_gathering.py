"""Resource Gathering against MO-Gymnasium's steps, a plain simulator, and exhaustive enumeration.

Step by step against MO-Gymnasium: ``peers/test_mo_gymnasium.py``.
"""

from functools import cache
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.morl.gathering_planner import Planner
from rlbench_suite.envs.morl.resource_gathering import (
    CELLS,
    ENEMIES,
    MAX_DAYLIGHT,
    MAX_SLACK,
    MOVES,
    Params,
    PublishedMap,
    ResourceGathering,
    State,
)
from rlbench_suite.evaluation.statistics.pareto import hypervolume

CARD = card("ResourceGathering-v0")
PUBLISHED = card("ResourceGathering-v0", map="published")

# The map of MO-Gymnasium 1.3.2: gold G, gem D, enemies E, home H.
MAP = ["..GE.", "..E.D", ".....", ".....", "..H.."]


@pytest.fixture(scope="module")
def task() -> ResourceGathering:
    return CARD.build()


@pytest.fixture(scope="module")
def published() -> PublishedMap:
    return PUBLISHED.build()


def sample_contexts(task: ResourceGathering, count: int, split: Split = Split.TEST) -> list[Params]:
    keys = jax.random.split(jax.random.key(1), count)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, jnp.int32(split))
    fields = [np.asarray(field) for field in params]
    return [Params(*(field[i] for field in fields)) for i in range(count)]


def cells_of(enemies: Any) -> set[int]:
    return {cell for cell in range(CELLS) if int(enemies) >> cell & 1}


def target(cell: int, action: int) -> int:
    """Return where a move leads, from the rules as MO-Gymnasium has them."""
    row, column = divmod(cell, 5)
    row += {0: -1, 1: 1}.get(action, 0)
    column += {2: -1, 3: 1}.get(action, 0)
    return 5 * row + column if 0 <= row < 5 and 0 <= column < 5 else cell


def test_the_published_map(published: PublishedMap) -> None:
    params = published.sample_params(None, None)
    marks = {mark: [] for mark in "GEDH"}
    for row, column in product(range(5), range(5)):
        if MAP[row][column] != ".":
            marks[MAP[row][column]].append(5 * row + column)
    assert [int(params.home)] == marks["H"]
    assert [int(params.gold)] == marks["G"]
    assert [int(params.gem)] == marks["D"]
    assert sorted(cells_of(params.enemies)) == marks["E"]


# Actions, the numbers drawn on enemies, and the observations (row, column, gold, gem) of
# MO-Gymnasium 1.3.2. The first way ends in no home, the second one at home with nothing, the third
# one goes on at an enemy's cell after a bump. No step of them pays.
RECORDS = [
    (
        [2, 0, 0, 0, 0, 3, 3, 1, 1, 1, 1],
        {6: 0.6369616873214543},
        [
            (4, 1, 0, 0), (3, 1, 0, 0), (2, 1, 0, 0), (1, 1, 0, 0), (0, 1, 0, 0), (0, 2, 1, 0),
            (0, 3, 1, 0), (1, 3, 1, 0), (2, 3, 1, 0), (3, 3, 1, 0), (4, 3, 1, 0),
        ],
        (0, 0, 0),
        False,
    ),
    (
        [2, 0, 3, 3, 2, 1],
        {},
        [(4, 1, 0, 0), (3, 1, 0, 0), (3, 2, 0, 0), (3, 3, 0, 0), (3, 2, 0, 0), (4, 2, 0, 0)],
        (0, 0, 0),
        True,
    ),
    (
        [0, 0, 3, 0, 0, 2, 0, 3, 1, 1, 1, 1, 2],
        {4: 0.8050029237453802, 7: 0.8079407897364937},
        [
            (3, 2, 0, 0), (2, 2, 0, 0), (2, 3, 0, 0), (1, 3, 0, 0), (0, 3, 0, 0), (0, 2, 1, 0),
            (0, 2, 1, 0), (0, 3, 1, 0), (1, 3, 1, 0), (2, 3, 1, 0), (3, 3, 1, 0), (4, 3, 1, 0),
            (4, 2, 1, 0),
        ],
        (0, 1, 0),
        True,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("actions", "draws", "observations", "last_reward", "ends"), RECORDS)
def test_recorded_trajectories_of_mo_gymnasium(
    published: PublishedMap,
    actions: list[int],
    draws: dict[int, float],
    observations: list[tuple[int, ...]],
    last_reward: tuple[int, ...],
    ends: bool,
) -> None:
    params = published.sample_params(None, None)
    state = published.initial(None, params)
    for step, (action, expected) in enumerate(zip(actions, observations, strict=True)):
        # Elsewhere MO-Gymnasium draws nothing: a number that kills on an enemy must not matter.
        draw = np.float32(draws.get(step, 0.0))
        next_state = published.move(state, np.int32(action), draw, params)
        assert tuple(map(int, next_state[:4])) == expected
        observed = published.observation(next_state, None, params)
        np.testing.assert_array_equal(observed, np.float32(expected) / [4, 4, 1, 1])
        last = step == len(actions) - 1
        reward = published.reward(state, action, next_state, None, params)
        np.testing.assert_array_equal(reward, last_reward if last else (0, 0, 0))
        assert bool(published.terminal(next_state, None, params)) == (last and ends)
        state = next_state


def test_random_episodes_are_those_of_a_plain_simulator(task: ResourceGathering) -> None:
    """1,000 episodes on sampled maps, with drawn actions and drawn meetings."""
    contexts = sample_contexts(task, 1_000)
    params = Params(*(np.stack(field) for field in zip(*contexts, strict=True)))
    random = np.random.default_rng(0)
    actions = random.integers(0, 4, (MAX_DAYLIGHT, len(contexts))).astype(np.int32)
    # Away from home, or most episodes would end in a step.
    actions[0] = 0
    draws = random.random((MAX_DAYLIGHT, len(contexts)), np.float32)

    @jax.jit
    @jax.vmap
    def step(state: State, action: jax.Array, draw: jax.Array, params: Params) -> tuple:
        after = task.move(state, action, draw, params)
        reward = task.reward(state, action, after, None, params)
        return after, reward, task.terminal(after, None, params), task.info(after, params)

    state = jax.vmap(lambda params: task.initial(None, params))(params)
    steps = []
    for action, draw in zip(actions, draws, strict=True):
        state, *results = step(state, action, draw, params)
        steps.append(jax.tree.map(np.asarray, (state, *results)))
    ends = {"home": 0, "dead": 0, "dusk": 0}
    for i, context in enumerate(contexts):
        cell = int(context.home)
        loot: set[str] = set()
        for t in range(MAX_DAYLIGHT):
            cell = target(cell, actions[t, i])
            reward, end = [0.0, 0.0, 0.0], ""
            if cell == context.gold:
                loot.add("gold")
            elif cell == context.gem:
                loot.add("gem")
            elif cell in cells_of(context.enemies):
                if draws[t, i] < np.float32(0.1):
                    reward[0], end = -context.death_weight, "dead"
            elif cell == context.home:
                end = "home"
                reward[1] = context.gold_weight * ("gold" in loot)
                reward[2] = context.gem_weight * ("gem" in loot)
            if not end and t + 1 == context.daylight:
                end = "dusk"
            after, own_reward, own_end, info = steps[t]
            assert 5 * after.row[i] + after.column[i] == cell
            assert {name for name in ("gold", "gem") if getattr(after, name)[i]} == loot
            np.testing.assert_array_equal(own_reward[i], reward)
            assert own_end[i] == bool(end)
            assert info["success"][i] == (end == "home" and len(loot) == 2)
            if end:
                ends[end] += 1
                break
        else:
            pytest.fail("the episode did not end by dusk")
    assert min(ends.values()) > 50


# Exact fronts of deterministic policies, computed apart from this suite by a dynamic programme over
# sets of returns of its own, in float64, and rounded to seven decimals. By hand: the two largest
# chances of death are .1 gamma**2 + .09 gamma**4, for gold by the enemy at (1, 2) there and back,
# and .1 gamma**6 + .09 gamma**8, for everything past both enemies.
FRONTS = {
    0.9: [
        (0, 0.3138106, 0), (0, 0, 0.3874205), (0, 0.1667718, 0.1667718),
        (-0.0531441, 0.3486784, 0), (-0.1400490, 0.3874205, 0),
        (-0.0282430, 0.1853020, 0.1853020), (-0.0478297, 0.2058911, 0.2058911),
        (-0.0531441, 0.2287679, 0.2287679), (-0.0918862, 0.2541866, 0.2541866),
    ],
    0.99: [(0, 0.8953383, 0), (0, 0, 0.9135172), (0, 0.8429432, 0.8429432)],
    1.0: [(0, 1, 1)],
}  # fmt: skip


@pytest.mark.parametrize("gamma", FRONTS)
def test_front_equals_that_of_another_programme(published: PublishedMap, gamma: float) -> None:
    front = published.pareto_front(gamma)
    np.testing.assert_allclose(front, sorted(FRONTS[gamma]), atol=6e-8)
    assert TaskEnv(published).pareto_front(gamma)[0].shape == (3,)


@pytest.mark.parametrize(
    ("gamma", "reference", "volume"),
    [
        (0.9, (-1, -1, -2), 3.210089),
        (0.9, (-1, 0, 0), 0.062385),
        (0.99, (-1, -1, -2), 5.414747),
        (0.99, (-1, 0, 0), 0.710553),
        (1.0, (-1, -1, -2), 6.0),
        (1.0, (-1, 0, 0), 1.0),
    ],
)
def test_hypervolume_of_the_front(
    published: PublishedMap, gamma: float, reference: tuple, volume: float
) -> None:
    assert hypervolume(published.pareto_front(gamma), reference) == pytest.approx(volume, abs=6e-7)


def every_return(gamma: float, horizon: int, meetings: int) -> np.ndarray:
    """Return the returns of all ways of up to ``horizon`` steps that meet few enemies, ``(n, 3)``.

    It walks forward and keeps each probability to be alive and each discounted chance of death, so
    that it shares nothing with a backward dynamic programme.
    """
    place = {mark: 5 * r + c for r in range(5) for c, mark in enumerate(MAP[r]) if mark in "GDH"}
    enemies = {5 * r + c for r in range(5) for c in range(5) if MAP[r][c] == "E"}
    ways = {(place["H"], False, False): {(0, 0.0)}}
    returns = [(0.0, 0.0, 0.0)]
    for step in range(horizon):
        next_ways: dict[tuple[int, bool, bool], set[tuple[int, float]]] = {}
        for (cell, gold, gem), lives in ways.items():
            for action in range(4):
                after = target(cell, action)
                if after == place["H"]:
                    for count, death in lives:
                        alive = 0.9**count * gamma**step
                        returns.append((-death, alive * gold, alive * gem))
                    continue
                state = (after, gold or after == place["G"], gem or after == place["D"])
                meets_enemy = after in enemies
                next_ways.setdefault(state, set()).update(
                    (
                        count + meets_enemy,
                        round(death + meets_enemy * 0.1 * 0.9**count * gamma**step, 12),
                    )
                    for count, death in lives
                    if count + meets_enemy <= meetings
                )
        ways = next_ways
    return np.unique(np.array(returns).round(9), axis=0)


def test_front_by_enumeration_of_all_ways(published: PublishedMap) -> None:
    """No way of 20 steps with at most two meetings is better; longer ones end in smaller returns.

    At gamma 0.9 more than 20 steps earn less than .9 ** 20 = .12 of each, and a third meeting only
    adds to the risk: two suffice for the shortest way to everything.
    """
    returns = every_return(0.9, 20, 2)
    front = published.pareto_front(0.9)
    beaten = (front[:, None] >= returns[None] - 1e-8).all(-1).any(0)
    assert beaten.all()
    is_return = (np.abs(front[:, None] - returns[None]) < 1e-8).all(-1).any(1)
    assert is_return.all()


def test_the_front_of_mo_gymnasium_is_not_optimal(published: PublishedMap) -> None:
    """Its six policies at gamma .9, discounted as it does and as the returns of episodes are."""
    gamma = 0.9

    def points(shift: int) -> list[np.ndarray]:
        g = [gamma ** (n - shift) for n in range(15)]
        return [
            np.array([0, 0, g[10]]),
            np.array([-0.1 * g[7] - 0.09 * g[9], 0.81 * g[12], 0.81 * g[12]]),
            np.array([-0.1 * g[3] - 0.09 * g[5], 0.81 * g[8], 0]),
            np.array([-0.1 * g[7], 0.9 * g[14], 0.9 * g[14]]),
            np.array([0, g[12], 0]),
            np.array([-0.1 * g[7], 0.9 * g[10], 0]),
        ]

    front = published.pareto_front(gamma)
    assert hypervolume(np.array(points(0)), (-1, -1, -2)) == pytest.approx(3.0837, abs=5e-5)
    right = hypervolume(np.array(points(1)), (-1, -1, -2))
    assert right < hypervolume(front, (-1, -1, -2)) - 1e-3
    for point in points(1):
        assert (front >= point - 1e-9).all(1).any()


@pytest.mark.parametrize("gamma", [0.0, 1.01, float("nan")])
def test_front_refuses_a_wrong_discount(published: PublishedMap, gamma: float) -> None:
    with pytest.raises(ValueError, match="discount"):
        published.pareto_front(gamma)


def test_sampled_maps_have_no_front(task: ResourceGathering) -> None:
    with pytest.raises(AttributeError, match="no known Pareto front"):
        TaskEnv(task).pareto_front(1.0)


def steps_of_tour(params: Params) -> int:
    """Return the steps of the shortest way home with everything, by breadth-first search."""
    home = int(params.home)
    level, visited, steps = {(home, False, False)}, set(), 0
    while True:
        steps += 1
        visited |= level
        reached = set()
        for (cell, gold, gem), action in product(level, range(4)):
            after = target(cell, action)
            if after == home:
                if gold and gem:
                    return steps
                continue
            reached.add((after, gold or after == params.gold, gem or after == params.gem))
        level = reached - visited


@pytest.mark.parametrize("split", Split)
def test_contexts(task: ResourceGathering, split: Split) -> None:
    contexts = sample_contexts(task, 500, split)
    slacks, counts = [], []
    for params in contexts:
        enemies = cells_of(params.enemies)
        cells = {int(params.home), int(params.gold), int(params.gem), *enemies}
        assert len(cells) == 3 + len(enemies)
        assert 20 <= params.home < 25
        counts.append(len(enemies))
        slacks.append(int(params.daylight) - steps_of_tour(params))
        assert params.daylight <= MAX_DAYLIGHT
        weights = np.array([params.death_weight, params.gold_weight, params.gem_weight])
        assert (weights >= 0.1).all()
        assert (weights < 1).all()
        assert int((params.gold_weight - 0.1) / 0.9 * 20) % 2 == split
    assert set(slacks) == set(range(MAX_SLACK + 1))
    assert set(counts) == set(range(ENEMIES[0], ENEMIES[1] + 1))
    for place in ("gold", "gem"):
        assert len({int(getattr(params, place)) for params in contexts}) == CELLS


def optimal_value(params: Params) -> float:
    """Return the best expected weighted return, by recursion over all that may happen."""
    enemies = cells_of(params.enemies)
    death, gold_worth, gem_worth = (
        float(weight) for weight in (params.death_weight, params.gold_weight, params.gem_weight)
    )

    @cache
    def value(cell: int, gold: bool, gem: bool, left: int) -> float:
        if not left:
            return 0.0
        return max(arrive(target(cell, action), gold, gem, left - 1) for action in range(4))

    def arrive(cell: int, gold: bool, gem: bool, left: int) -> float:
        if cell == params.home:
            return gold * gold_worth + gem * gem_worth
        future = value(cell, gold or cell == params.gold, gem or cell == params.gem, left)
        return 0.9 * future - 0.1 * death if cell in enemies else future

    return value(int(params.home), False, False, int(params.daylight))


def value_of_player(task: ResourceGathering, params: Params) -> float:
    """Return the exact expected weighted return of the reference, by what it does in each state."""
    player = Planner.for_task(task)
    states = [
        State(*map(np.int32, (cell // 5, cell % 5)), gold, gem, np.bool_(False), np.int32(steps))
        for cell in range(CELLS)
        for gold in np.array([False, True])
        for gem in np.array([False, True])
        for steps in range(MAX_DAYLIGHT)
    ]
    batch = State(*(np.stack(field) for field in zip(*states, strict=True)))
    actions = act(task, player, batch, params)
    action_of = {
        (5 * int(s.row) + int(s.column), bool(s.gold), bool(s.gem), int(s.steps)): int(action)
        for s, action in zip(states, actions, strict=True)
    }
    enemies = cells_of(params.enemies)

    def value(cell: int, gold: bool, gem: bool, steps: int) -> float:
        if steps == params.daylight:
            return 0.0
        after = target(cell, action_of[cell, gold, gem, steps])
        if after == params.home:
            return float(gold * params.gold_weight + gem * params.gem_weight)
        future = value(after, gold or after == params.gold, gem or after == params.gem, steps + 1)
        return 0.9 * future - 0.1 * float(params.death_weight) if after in enemies else future

    return value(int(params.home), False, False, 0)


_PROGRAMS: dict[int, Any] = {}


def act(task: ResourceGathering, player: Planner, states: State, params: Params) -> np.ndarray:
    """Return the action of the reference in each state."""

    def choose(state: State, params: Params) -> jax.Array:
        observation = task.observation(state, None, params)
        return player.act((), View(observation, None, None, None), None)[0]

    program = _PROGRAMS.setdefault(id(task), jax.jit(jax.vmap(choose, (0, None))))
    return np.asarray(program(states, params))


def test_reference_is_optimal(task: ResourceGathering) -> None:
    """Its step cost, which parts equally good ways, costs 2e-4 at most."""
    values = []
    for params in sample_contexts(task, 8):
        best = optimal_value(params)
        assert value_of_player(task, params) == pytest.approx(best, abs=3e-4)
        values.append(best)
    assert max(values) > 0.5


def test_reference_earns_the_mean_of_the_optimal_values(task: ResourceGathering) -> None:
    """Returns of episodes, within three standard errors of their exact expectation."""
    seeds = range(400)
    record = play(task, Planner(task), seeds)
    env = TaskEnv(task, split="test")
    values = []
    for seed in seeds:
        env.reset(seed=seed)
        values.append(optimal_value(jax.tree.map(np.asarray, env.params)))
    excess = record.total.sum(1) - values
    assert abs(excess.mean()) < 3 * excess.std() / np.sqrt(len(values))


def test_reference_goes_round_the_enemies_of_the_published_map(published: PublishedMap) -> None:
    record = play(published, Planner(published), range(20))
    assert record.terminated.all()
    assert record.info["success"].all()
    assert (record.length == 18).all()
    np.testing.assert_array_equal(record.total, np.tile([0, 1, 1], (20, 1)))


def test_idle_play_earns_nothing_and_blind_play_less(task: ResourceGathering) -> None:
    idle = play(task, Constant(task.noop_action()), range(200))
    assert (idle.length == 1).all()
    assert (idle.total == 0).all()
    for action in range(4):
        blind = play(task, Constant(np.int32(action)), range(1_000))
        assert blind.total.sum(1).mean() < 0.05
        assert blind.info["success"].mean() < 0.01
    random = play(task, Uniform(task.action_space), range(2_000))
    assert random.total.sum(1).mean() < 0.05
    assert random.info["success"].mean() < 0.03


def test_observation_shows_everything(task: ResourceGathering) -> None:
    for params in sample_contexts(task, 3):
        state = State(
            np.int32(2), np.int32(3), np.bool_(True), np.bool_(False), np.bool_(False), np.int32(3)
        )
        scene = task.read_observation(task.observation(state, None, params))
        assert (int(scene.row), int(scene.column)) == (2, 3)
        assert bool(scene.gold)
        assert not scene.gem
        assert np.flatnonzero(scene.home_cell).tolist() == [int(params.home)]
        assert not scene.gold_cell.any()
        assert np.flatnonzero(scene.gem_cell).tolist() == [int(params.gem)]
        assert set(np.flatnonzero(scene.enemy_cells).tolist()) == cells_of(params.enemies)
        weights = (scene.death_weight, scene.gold_weight, scene.gem_weight)
        assert tuple(map(float, weights)) == tuple(map(float, params[4:7]))
        assert int(scene.steps_left) == params.daylight - 3


def test_words_and_picture(task: ResourceGathering, published: PublishedMap) -> None:
    params = published.sample_params(None, None)
    state = State(
        np.int32(3), np.int32(1), np.bool_(True), np.bool_(False), np.bool_(False), np.int32(7)
    )
    lines = published.describe(state, params).splitlines()
    expected = [row.replace("G", ".") for row in MAP]
    expected[3] = ".S..."
    assert ["".join(line.split()) for line in lines[1:6]] == expected
    assert lines[6] == "You are in row 3, column 1, and carry gold."
    assert len(lines) == 7
    sampled = sample_contexts(task, 1)[0]
    text = task.describe(state, sampled)
    assert f"Steps until dusk: {int(sampled.daylight) - 7}." in text
    assert f"gold at home is worth {float(sampled.gold_weight):.4f}" in text
    for number, word in enumerate(MOVES):
        assert task.parse(f" {word.upper()}\n", state, params) == number
    pictures = [
        published.draw(state, params),
        published.draw(state._replace(gem=np.bool_(True)), params),
        published.draw(state._replace(dead=np.bool_(True)), params),
        published.draw(state._replace(row=np.int32(2)), params),
    ]
    assert len({picture.tobytes() for picture in pictures}) == 4
    assert pictures[0].shape == published.picture_shape
    assert "killed" in published.why_over(state._replace(dead=np.bool_(True)), params, {})
    home = state._replace(row=np.int32(4), column=np.int32(2))
    assert published.why_over(home, params, {}) == "home with gold"
    assert "dusk" in task.why_over(state, params, {})


def test_refuses_an_unknown_map() -> None:
    with pytest.raises(ValueError, match="publishd"):
        CARD.with_settings(map="publishd")

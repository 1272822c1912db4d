"""Treasure Maps against breadth-first search and exhaustive enumeration written apart from the task."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.single import TaskEnv
from rlbench_suite.baselines.ppo_agent import PPO
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.card import load
from rlbench_suite.envs.morl.treasure_maps import BestTreasure, Params, State, TreasureMaps
from rlbench_suite.evaluation.pareto import non_dominated
from rlbench_suite.registry import card, suites
from rlbench_suite.task import Split

CARD = card("TreasureMaps-v0")
MOVES = [(1, 0), (-1, 0), (0, -1), (0, 1)]


@pytest.fixture(scope="module")
def task() -> TreasureMaps:
    return CARD.build(difficulty="easy")


def sampled_maps(task: TreasureMaps, count: int, split: Split = Split.TEST) -> list[Params]:
    keys = jax.random.split(jax.random.key(1), count)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, jnp.int32(split))
    stacked = Params(*(np.asarray(leaf) for leaf in params))
    return [Params(*(leaf[i] for leaf in stacked)) for i in range(count)]


def distances(params: Params, row: int, column: int) -> dict[tuple[int, int], int]:
    """Steps from a cell to every cell by breadth-first search; an episode ends at a treasure."""
    floor = params.floor.tolist()
    steps = {(row, column): 0}
    queue = [(row, column)]
    for cell in queue:  # grows while it is read
        if cell[0] == floor[cell[1]]:
            continue
        for down, right in MOVES:
            neighbour = (cell[0] + down, cell[1] + right)
            inside = neighbour[0] >= 0 and 0 <= neighbour[1] < len(floor) and neighbour[0] <= floor[neighbour[1]]
            if inside and neighbour not in steps:
                steps[neighbour] = steps[cell] + 1
                queue.append(neighbour)
    return steps


def test_the_suites_have_the_task_that_must_be_read() -> None:
    assert CARD.id in suites()["smoke"]
    assert CARD.id in suites()["all"]
    published = card("DeepSeaTreasure-v0").id
    assert published not in suites()["smoke"]
    assert published not in suites()["all"]
    assert published in suites()["morl"]


def test_every_cell_and_move(task: TreasureMaps) -> None:
    """All moves from all cells of open water of some maps, against the rules written plainly."""
    step = jax.jit(lambda state, action, params: task.transition(state, action, None, params))
    for params in sampled_maps(task, 3):
        floor = params.floor.tolist()
        for column in range(task.size):
            for row in range(floor[column]):
                for action, (down, right) in enumerate(MOVES):
                    state = State(np.int32(row), np.int32(column), np.int32(4))
                    after = step(state, np.int32(action), params)
                    target = (row + down, column + right)
                    free = target[0] >= 0 and 0 <= target[1] < task.size and target[0] <= floor[target[1]]
                    assert (int(after.row), int(after.column)) == (target if free else (row, column))
                    assert int(after.steps) == 5
                    found = floor[int(after.column)] == int(after.row)
                    assert bool(task.terminal(after, None, params)) == found
                    treasure = params.value[int(after.column)] if found else 0
                    reward = task.reward(state, np.int32(action), after, None, params)
                    weight = params.weight
                    np.testing.assert_allclose(reward, [weight * treasure, weight - 1], rtol=1e-6)


@pytest.mark.parametrize("tier", CARD.difficulties)
def test_steps_to_treasures_are_those_of_breadth_first_search(tier: str) -> None:
    task = CARD.build(difficulty=tier)
    steps_to_treasures = jax.jit(task.steps_to_treasures)
    for params in sampled_maps(task, 4):
        for column in range(task.size):
            for row in range(int(params.floor[column])):
                steps = distances(params, row, column)
                expected = [steps[int(floor), other] for other, floor in enumerate(params.floor)]
                state = State(np.int32(row), np.int32(column), np.int32(0))
                assert steps_to_treasures(state, params).tolist() == expected


def every_return(task: TreasureMaps, params: Params) -> list[tuple[float, int]]:
    """(treasure, time) of all action sequences up to the horizon, by walking sets of cells."""
    floor = params.floor.tolist()
    cells = {(0, int(params.start))}
    returns = []
    for t in range(1, CARD.horizon + 1):
        reached = set(cells)  # a move against a wall
        for row, column in cells:
            for down, right in MOVES:
                target = (row + down, column + right)
                if target[0] >= 0 and 0 <= target[1] < task.size and target[0] <= floor[target[1]]:
                    reached.add(target)
        ends = {cell for cell in reached if cell[0] == floor[cell[1]]}
        returns += [(float(params.value[column]), -t) for _, column in sorted(ends)]
        cells = reached - ends
    return [*returns, (0.0, -CARD.horizon)]


def test_front_and_best_return_by_exhaustive_enumeration(task: TreasureMaps) -> None:
    """No sequence of actions of any length leaves the front, and none earns more than the best return."""
    for params in sampled_maps(task, 20):
        returns = every_return(task, params)
        np.testing.assert_allclose(task.pareto_front(params), non_dominated(np.array(returns)), rtol=1e-6)
        weight = float(params.weight)
        best = max(weight * treasure + (1 - weight) * time for treasure, time in returns)
        start = State(np.int32(0), params.start, np.int32(0))
        assert float(task.returns_to_go(start, params).max()) == pytest.approx(best, abs=1e-4)
        assert float(task.best_return(params)) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("tier", CARD.difficulties)
def test_reference_always_earns_the_best_return(tier: str) -> None:
    task = CARD.build(difficulty=tier)
    record = play(task, load(CARD.reference).for_task(task), range(300))
    assert record.terminated.all()
    assert record.info["success"].all()
    assert record.length.max() <= 2 * task.size - 1


def test_reference_goes_the_shortest_way_from_every_cell(task: TreasureMaps) -> None:
    player = BestTreasure.for_task(task)
    reading = jax.jit(lambda state, params: task.read(task.observation(state, None, params)))
    for params in sampled_maps(task, 3):
        for column in range(task.size):
            for row in range(int(params.floor[column])):
                state = State(np.int32(row), np.int32(column), np.int32(0))
                shown, shown_params = reading(state, params)
                assert (int(shown.row), int(shown.column)) == (row, column)
                np.testing.assert_array_equal(shown_params.floor, params.floor)
                np.testing.assert_allclose(shown_params.value, params.value, rtol=1e-5, atol=1e-6)
    assert player.initial(params) == ()


def test_success_is_the_best_return_for_the_weights_of_the_episode(task: TreasureMaps) -> None:
    """A treasure that is best for other weights is no success, nor is the best one by a detour."""
    info = jax.jit(task.info)
    for params in sampled_maps(task, 20):
        weight = float(params.weight)
        steps = np.abs(np.arange(task.size) - params.start) + params.floor
        returns = weight * params.value - (1 - weight) * steps
        for column, floor in enumerate(params.floor):
            for detour in (0, 2):
                state = State(floor, np.int32(column), np.int32(steps[column] + detour))
                expected = returns[column] > returns.max() - 1e-3 and not detour
                assert bool(info(state, params)["success"]) == expected


def test_rewards_are_weighted_objectives(task: TreasureMaps) -> None:
    """Measures have the plain objectives; the return is their sum weighted as the observation shows."""
    env = TaskEnv(task, split="test")
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        weights = observation[-2:]
        total, over = np.zeros(2), False
        while not over:
            _, reward, terminated, truncated, info = env.step(env.action_space.sample())
            total += reward
            over = terminated or truncated
        np.testing.assert_allclose(total, weights * [info["treasure"], -info["time"]], rtol=1e-4)
        assert info["weight"] == pytest.approx(weights[0])
        assert weights.sum() == pytest.approx(1)


def test_maps_of_the_splits_have_other_values(task: TreasureMaps) -> None:
    """The value of a treasure over its largest one lies in bands of .05 that alternate between the splits."""
    for split in Split:
        shares = np.array([params.value / (2 * params.floor) for params in sampled_maps(task, 50, split)])
        assert (np.floor(shares * 20) % 2 == split).all()


def test_play_that_ignores_the_weights_or_the_map_is_worse(task: TreasureMaps) -> None:
    """Both parts of the context count: with fixed weights a perfect planner loses a quarter of the scale or more."""
    score = CARD.scale("easy").score

    class FixedWeights(BestTreasure):
        def act(self, memory, view, key):  # type: ignore[no-untyped-def]
            observation = view.observation.at[-2:].set(0.5)
            return super().act(memory, view._replace(observation=observation), key)

    planned = score(play(task, FixedWeights(task), range(2_000)).total.sum(1).mean())
    sink = score(play(task, Constant(task.noop_action()), range(2_000)).total.sum(1).mean())
    assert planned < 0.75
    assert abs(sink) < 0.1
    random = play(task, Uniform(task.action_space), range(2_000))
    assert random.info["success"].mean() < 0.1


@pytest.mark.parametrize("difficulty", [1, 33, 5.5])
def test_refuses_a_wrong_number_of_columns(difficulty: float) -> None:
    with pytest.raises(ValueError, match="number of columns, 2 to 32"):
        CARD.build(difficulty=difficulty)


def test_words_and_picture(task: TreasureMaps) -> None:
    params = sampled_maps(task, 1)[0]
    state = State(np.int32(0), np.int32(2), np.int32(0))
    text = task.describe(state, params)
    grid = [line.split() for line in text.splitlines()[2:]]
    assert [len(row) for row in grid] == [task.size] * (task.size + 1)
    assert grid[0][2] == "S"
    for column, (floor, value) in enumerate(zip(params.floor, params.value, strict=True)):
        assert grid[floor][column] == f"{value:.2f}"
        assert all(row[column] == "#" for row in grid[floor + 1 :])
    assert f"{float(params.weight):.4f} times" in text
    pictures = [task.draw(State(np.int32(0), np.int32(column), np.int32(0)), params) for column in range(3)]
    assert all(picture.shape == task.picture_shape for picture in pictures)
    assert all((one != other).any() for one, other in pairwise(pictures))


def test_ppo_learns_to_read_the_map_in_a_smoke_budget() -> None:
    task = CARD.build()
    *_, policy = PPO().train(task, seed=0, budget="smoke")
    total = play(task, policy, range(2_000)).total.sum(1).mean()  # its standard error is .05 of the scale
    assert CARD.normalise(total) > 0.4

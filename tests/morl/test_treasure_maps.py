"""Check Treasure Maps against breadth-first search and exhaustive enumeration.

Both are written apart from the task.
"""

from itertools import pairwise

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.core.registry import card, suites
from rlbench_suite.core.task import Split
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.morl.treasure_maps import (
    DIVES,
    BestTreasure,
    Map,
    Params,
    Position,
    State,
    TreasureMaps,
)

CARD = card("TreasureMaps-v0")
MOVES = [(1, 0), (-1, 0), (0, -1), (0, 1)]


@pytest.fixture(scope="module")
def task() -> TreasureMaps:
    return CARD.build(difficulty="easy")


def sample_contexts(task: TreasureMaps, count: int, split: Split = Split.TEST) -> list[Params]:
    """Return the maps of some episodes."""
    keys = jax.random.split(jax.random.key(1), count)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, jnp.int32(split))
    fields = [np.asarray(field) for field in params.maps]
    return [Params(Map(*(field[i] for field in fields))) for i in range(count)]


def sample_maps(task: TreasureMaps, count: int, split: Split = Split.TEST) -> list[Map]:
    """Return the maps of single dives."""
    episodes = sample_contexts(task, -(-count // DIVES), split)
    return [chart_of(params, dive) for params in episodes for dive in range(DIVES)][:count]


def chart_of(params: Params, dive: int) -> Map:
    return Map(*(field[dive] for field in params.maps))


def state_in_dive(place: tuple[int, int], dive: int, air: int) -> State:
    """Return a state in a dive; seven steps and a treasure of 1.5 have gone before."""
    cell = Position(*map(np.int32, place))
    return State(np.int32(dive), cell, np.int32(air), np.int32(7), np.float32(1.5), np.int32(0))


def distances(chart: Map, row: int, column: int) -> dict[tuple[int, int], int]:
    """Steps from a cell to every cell by breadth-first search; a dive ends at a treasure."""
    floor = chart.floor.tolist()
    steps = {(row, column): 0}
    queue = [(row, column)]
    for cell in queue:  # grows while it is read
        if cell[0] == floor[cell[1]]:
            continue
        for down, right in MOVES:
            neighbour = (cell[0] + down, cell[1] + right)
            inside = (
                neighbour[0] >= 0
                and 0 <= neighbour[1] < len(floor)
                and neighbour[0] <= floor[neighbour[1]]
            )
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


@pytest.mark.parametrize("dive", [0, DIVES - 1])
def test_every_cell_and_move(task: TreasureMaps, dive: int) -> None:
    """All moves from all cells of open water of some maps, against the rules written plainly."""
    step = jax.jit(lambda state, action, params: task.transition(state, action, None, params))
    for params in sample_contexts(task, 3):
        chart = chart_of(params, dive)
        floor = chart.floor.tolist()
        for column in range(task.size):
            for row in range(floor[column]):
                for action, (down, right) in enumerate(MOVES):
                    state = state_in_dive((row, column), dive, air=3)
                    after = step(state, np.int32(action), params)
                    target = (row + down, column + right)
                    free = (
                        target[0] >= 0
                        and 0 <= target[1] < task.size
                        and target[0] <= floor[target[1]]
                    )
                    reached = target if free else (row, column)
                    at_treasure = floor[reached[1]] == reached[0]
                    treasure = chart.value[reached[1]] if at_treasure else 0
                    if at_treasure and dive + 1 < DIVES:
                        assert (int(after.position.row), int(after.position.column)) == (
                            0,
                            params.maps.start[dive + 1],
                        )
                        assert int(after.air) == task.air
                    else:
                        assert (int(after.position.row), int(after.position.column)) == reached
                        assert int(after.air) == 2
                    assert int(after.dive) == dive + at_treasure
                    assert int(after.steps) == 8
                    assert float(after.treasure) == pytest.approx(1.5 + treasure)
                    assert bool(task.terminal(after, None, params)) == (
                        at_treasure and dive + 1 == DIVES
                    )
                    reward = task.reward(state, np.int32(action), after, None, params)
                    weight = chart.weight
                    np.testing.assert_allclose(reward, [weight * treasure, weight - 1], rtol=1e-6)


@pytest.mark.parametrize("dive", [0, DIVES - 1])
def test_a_dive_ends_when_its_air_is_spent(task: TreasureMaps, dive: int) -> None:
    """A player that never finds a treasure loses each dive, and has 2 n steps for each of them."""
    params = sample_contexts(task, 1)[0]
    step = jax.jit(lambda state, action, params: task.transition(state, action, None, params))
    rise = np.int32(1)
    state = state_in_dive((0, int(params.maps.start[dive])), dive, task.air)
    for _ in range(task.air):
        assert int(state.dive) == dive
        state = step(state, rise, params)
    assert int(state.dive) == dive + 1
    assert int(state.best_dives) == 0
    record = play(task, Constant(rise), range(20))
    assert (record.length == DIVES * 2 * task.size).all()
    assert record.terminated.all()
    assert not record.info["success"].any()


@pytest.mark.parametrize("size", [2, 12])
def test_the_time_limit_leaves_all_dives_their_air(size: int) -> None:
    task = CARD.build(difficulty=size)
    assert DIVES * task.air <= CARD.horizon
    record = play(task, Constant(np.int32(1)), range(3))
    assert record.terminated.all()


@pytest.mark.parametrize("tier", CARD.difficulties)
def test_steps_to_treasures_are_those_of_breadth_first_search(tier: str) -> None:
    task = CARD.build(difficulty=tier)
    steps_to_treasures = jax.jit(task.steps_to_treasures)
    for chart in sample_maps(task, 4):
        for column in range(task.size):
            for row in range(int(chart.floor[column])):
                steps = distances(chart, row, column)
                expected = [
                    steps[int(floor), goal_column] for goal_column, floor in enumerate(chart.floor)
                ]
                place = Position(np.int32(row), np.int32(column))
                assert steps_to_treasures(place, chart).tolist() == expected


def every_return(task: TreasureMaps, chart: Map) -> list[tuple[float, int]]:
    """(treasure, time) of all action sequences of a dive, by walking sets of cells."""
    floor = chart.floor.tolist()
    cells = {(0, int(chart.start))}
    returns = []
    for t in range(1, task.air + 1):
        reached = set(cells)  # a move against a wall
        for row, column in cells:
            for down, right in MOVES:
                target = (row + down, column + right)
                if target[0] >= 0 and 0 <= target[1] < task.size and target[0] <= floor[target[1]]:
                    reached.add(target)
        ends = {cell for cell in reached if cell[0] == floor[cell[1]]}
        returns += [(float(chart.value[column]), -t) for _, column in sorted(ends)]
        cells = reached - ends
    return [*returns, (0.0, -task.air)]


def test_best_return_by_exhaustive_enumeration(task: TreasureMaps) -> None:
    """No sequence of actions earns more than the best return."""
    for chart in sample_maps(task, 20):
        returns = every_return(task, chart)
        weight = float(chart.weight)
        best = max(weight * treasure + (1 - weight) * time for treasure, time in returns)
        assert float(
            task.returns_to_go(Position(np.int32(0), chart.start), chart).max()
        ) == pytest.approx(best, abs=1e-4)
        assert float(task.best_return(chart)) == pytest.approx(best, abs=1e-4)


def test_an_environment_has_no_front_since_maps_differ(task: TreasureMaps) -> None:
    with pytest.raises(AttributeError, match="no known Pareto front"):
        TaskEnv(task).pareto_front(1.0)


@pytest.mark.parametrize("tier", CARD.difficulties)
def test_reference_always_earns_the_best_return(tier: str) -> None:
    task = CARD.build(difficulty=tier)
    record = play(task, load(CARD.reference).for_task(task), range(300))
    assert record.terminated.all()
    assert record.info["success"].all()
    assert (record.info["best_dives"] == DIVES).all()
    assert record.length.max() <= DIVES * (2 * task.size - 1)


def test_return_of_the_reference_is_the_sum_of_the_best_returns_of_its_dives(
    task: TreasureMaps,
) -> None:
    env = TaskEnv(task, split="test")
    for seed in range(5):
        env.reset(seed=seed)
        best = sum(
            max(np.array(every_return(task, chart)) @ [chart.weight, 1 - chart.weight])
            for chart in maps_of(env)
        )
        total = play(task, BestTreasure(task), [seed]).total.sum()
        assert total == pytest.approx(best, abs=1e-3)


def maps_of(env: TaskEnv) -> list[Map]:
    return [chart_of(env.params, dive) for dive in range(DIVES)]


def test_reference_reads_every_cell(task: TreasureMaps) -> None:
    player = BestTreasure.for_task(task)
    reading = jax.jit(
        lambda state, params: task.read_observation(task.observation(state, None, params))
    )
    for params in sample_contexts(task, 1):
        for dive in range(DIVES):
            chart = chart_of(params, dive)
            for column in range(task.size):
                for row in range(int(chart.floor[column])):
                    place, read_chart = reading(state_in_dive((row, column), dive, 3), params)
                    assert (int(place.row), int(place.column)) == (row, column)
                    np.testing.assert_array_equal(read_chart.floor, chart.floor)
                    np.testing.assert_allclose(read_chart.value, chart.value, rtol=1e-5, atol=1e-6)
                    assert float(read_chart.weight) == pytest.approx(float(chart.weight))
        assert player.initial(params) == ()


def test_success_is_the_best_return_in_every_dive(task: TreasureMaps) -> None:
    """A treasure that is best for other weights does not count, nor does the best by a detour."""
    step = jax.jit(lambda state, params: task.transition(state, np.int32(0), None, params))
    for params in sample_contexts(task, 3):
        for dive in range(DIVES):
            chart = chart_of(params, dive)
            weight = float(chart.weight)
            steps = np.abs(np.arange(task.size) - chart.start) + chart.floor
            returns = weight * chart.value - (1 - weight) * steps
            for column, floor in enumerate(chart.floor):
                for detour in (0, 2):
                    air = task.air - steps[column] - detour + 1
                    if air < 1:
                        continue
                    before = state_in_dive((floor - 1, column), dive, air)._replace(
                        best_dives=np.int32(7)
                    )
                    after = step(before, params)
                    best = returns[column] > returns.max() - 1e-3 and not detour
                    assert int(after.best_dives) == 7 + best
                    assert bool(task.info(after, params)["success"]) == best


def test_observations_show_air_and_dives(task: TreasureMaps) -> None:
    env = TaskEnv(task, split="test")
    observation, _ = env.reset(seed=3)
    air, dives = task.air, DIVES
    over = False
    while not over:
        np.testing.assert_allclose(observation[-2:], [air / task.air, dives / DIVES], rtol=1e-6)
        observation, _, terminated, truncated, info = env.step(env.action_space.sample())
        over = terminated or truncated
        ended = DIVES - int(info["dives"]) < dives
        dives -= ended
        air = task.air if ended else air - 1
    assert terminated
    assert observation[-1] == 0


def test_rewards_are_weighted_objectives(task: TreasureMaps) -> None:
    """A reward divided by the weights that are shown is the plain objective.

    Measures hold the sums.
    """
    env = TaskEnv(task, split="test")
    env.action_space.seed(0)
    for seed in range(10):
        observation, info = env.reset(seed=seed)
        plain, over = np.zeros(2), False
        while not over:
            weights = observation[-4:-2]
            assert weights.sum() == pytest.approx(1)
            observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
            plain += reward / weights
            over = terminated or truncated
        np.testing.assert_allclose(plain, [info["treasure"], -info["time"]], rtol=1e-4)


def test_an_episode_goes_on_from_a_copy_in_any_dive(task: TreasureMaps) -> None:
    """Maps to come are part of the episode: what follows a saved state is the same to the bit."""
    env = gymnasium.make(CARD.id, difficulty="easy", split="test").unwrapped
    env.reset(seed=5)
    for _ in range(20):
        env.step(0)
    saved, ends = env.state, []
    for _ in range(2):
        env.state = saved
        observations = [env.step(0)[0] for _ in range(4)]
        ends.append(np.stack(observations))
    np.testing.assert_array_equal(*ends)


def test_maps_of_the_splits_have_other_values(task: TreasureMaps) -> None:
    """The value of a treasure over its largest one lies in the bands of its split.

    Bands are .05 wide and alternate between the splits.
    """
    for split in Split:
        shares = np.array(
            [chart.value / (2 * chart.floor) for chart in sample_maps(task, 50, split)]
        )
        assert (np.floor(shares * 20) % 2 == split).all()


@pytest.mark.parametrize("tier", CARD.difficulties)
def test_blind_play_never_succeeds(tier: str) -> None:
    """Sinking at once was the best possible in two of five episodes of one dive."""
    task = CARD.build(difficulty=tier)
    for player in (Constant(task.noop_action()), Uniform(task.action_space)):
        assert play(task, player, range(2_000)).info["success"].mean() < 0.02


def test_returns_vary_less_than_the_scale() -> None:
    """With one dive an episode, returns of the optimal player varied by twice the scale."""
    task = CARD.build()
    spread = play(task, BestTreasure(task), range(2_000)).total.sum(1).std()
    assert spread < CARD.scale().span


def test_play_that_ignores_the_weights_or_the_map_is_worse(task: TreasureMaps) -> None:
    """Both parts of the context count.

    With fixed weights a perfect planner loses a quarter of the scale or more.
    """
    score = CARD.scale("easy").score

    class FixedWeights(BestTreasure):
        def act(self, memory, view, key):  # type: ignore[no-untyped-def]
            observation = view.observation.at[-4:-2].set(0.5)
            return super().act(memory, view._replace(observation=observation), key)

    planned = score(play(task, FixedWeights(task), range(2_000)).total.sum(1).mean())
    sink = score(play(task, Constant(task.noop_action()), range(2_000)).total.sum(1).mean())
    assert planned < 0.75
    assert abs(sink) < 0.1


@pytest.mark.parametrize("difficulty", [1, 13, 5.5])
def test_refuses_a_wrong_number_of_columns(difficulty: float) -> None:
    with pytest.raises(ValueError, match="number of columns, 2 to 12"):
        CARD.build(difficulty=difficulty)


def test_words_and_picture(task: TreasureMaps) -> None:
    params = sample_contexts(task, 1)[0]
    chart = chart_of(params, 2)
    text = task.describe(state_in_dive((0, 2), 2, 5), params)
    assert text.startswith("Dive 3 of 8, with air for 5 of 8 steps.")
    grid = [line.split() for line in text.splitlines()[3:]]
    assert [len(row) for row in grid] == [task.size] * (task.size + 1)
    assert grid[0][2] == "S"
    for column, (floor, value) in enumerate(zip(chart.floor, chart.value, strict=True)):
        assert grid[floor][column] == f"{value:.2f}"
        assert all(row[column] == "#" for row in grid[floor + 1 :])
    assert f"{float(chart.weight):.4f} times" in text
    states = [state_in_dive((0, column), 2, 5) for column in range(3)] + [
        state_in_dive((0, 2), 2, 4),
        state_in_dive((0, 2), 3, 4),
    ]
    pictures = [task.draw(state, params) for state in states]
    assert all(picture.shape == task.picture_shape for picture in pictures)
    assert all(
        (picture_before != picture_after).any()
        for picture_before, picture_after in pairwise(pictures)
    )


def test_ppo_learns_to_read_the_map_in_a_smoke_budget() -> None:
    task = CARD.build()
    *_, policy = PPO().train(task, seed=0, budget="smoke")
    # Its standard error is .05 of the scale.
    total = play(task, policy, range(2_000)).total.sum(1).mean()
    assert CARD.normalise(total) > 0.4

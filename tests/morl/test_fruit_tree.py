"""Fruit Tree against MO-Gymnasium's steps, the published values, and enumeration of all leaves.

Step by step against MO-Gymnasium: ``peers/test_mo_gymnasium.py``.
"""

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
from rlbench_suite.envs.morl.fruit_tree import NUTRIENTS, BestFruit, FruitTree, Params, State
from rlbench_suite.evaluation.statistics.pareto import non_dominated

CARD = card("FruitTree-v0")
PLAIN = card("FruitTree-v0", preference="none")


@pytest.fixture(scope="module", params=CARD.difficulties)
def task(request: pytest.FixtureRequest) -> FruitTree:
    return CARD.build(difficulty=request.param)


def sample_weights(task: FruitTree, count: int, split: Split = Split.TEST) -> np.ndarray:
    keys = jax.random.split(jax.random.key(1), count)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, jnp.int32(split))
    values = np.asarray(params.weights, np.float64) @ task.fruits.T
    np.testing.assert_allclose(params.best_value, values.max(1), rtol=1e-5)
    return np.asarray(params.weights)


# Depth, actions and last reward of MO-Gymnasium 1.3.2; all other rewards are zeros.
RECORDS = [
    (5, [1, 1, 1, 1, 1], [4.24912024, 6.9707818, 4.74298954, 1.38027298, 0.67165643, 2.9156394]),
    (5, [0, 0, 0, 0, 0], [3.67917967, 0.38835144, 8.09989548, 2.86026359, 3.24527025, 1.41124976]),
    (6, [1, 0, 1, 1, 0, 0], [5.06781769, 3.12557554, 6.8855505, 1.2176913, 2.73086691, 2.86300373]),
    (
        6,
        [0, 0, 0, 0, 1, 1],
        [4.01332283, 7.17080879, 1.46983039, 3.82182169, 2.20659637, 3.29195213],
    ),
    (
        7,
        [0, 1, 0, 0, 1, 1, 0],
        [2.53210592, 3.0547936, 0.38493696, 7.20837784, 5.66222572, 0.29493761],
    ),
    (
        7,
        [0, 0, 1, 0, 1, 0, 0],
        [5.07301188, 1.04764676, 0.38126799, 1.75203502, 4.83320713, 6.82584047],
    ),
]


@pytest.mark.parametrize(("depth", "actions", "fruit"), RECORDS)
def test_recorded_trajectories_of_mo_gymnasium(
    depth: int, actions: list[int], fruit: list[float]
) -> None:
    env = TaskEnv(PLAIN.build(difficulty=depth))
    observation, _ = env.reset(seed=0)
    np.testing.assert_array_equal(observation, np.zeros(depth))
    index = 0
    for row, action in enumerate(actions, 1):
        observation, reward, terminated, _, _ = env.step(action)
        index = 2 * index + action
        assert (int(env.episode.state.row), int(env.episode.state.index)) == (row, index)
        path = [2 * a - 1 for a in actions[:row]] + [0] * (depth - row)
        np.testing.assert_array_equal(observation, path)
        assert terminated == (row == depth)
        np.testing.assert_array_equal(reward, np.float32(fruit if terminated else np.zeros(6)))


def test_fruits_lie_on_the_sphere_and_none_dominates_another(task: FruitTree) -> None:
    """As Yang et al. 2019 drew them: length 10, no value below 0."""
    assert task.fruits.shape == (2**task.depth, len(NUTRIENTS))
    assert (task.fruits >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(task.fruits, axis=1), 10, rtol=1e-8)
    assert len(non_dominated(task.fruits)) == 2**task.depth


@pytest.mark.parametrize("depth", [5, 6, 7])
def test_front_is_that_of_all_leaves(depth: int) -> None:
    task = PLAIN.build(difficulty=depth)
    np.testing.assert_allclose(task.pareto_front(0.99), task.fruits * 0.99 ** (depth - 1))
    with pytest.raises(ValueError, match="discount"):
        task.pareto_front(0)


def test_hypervolume_of_the_front_by_sampling() -> None:
    """Points drawn in the cube of side 10, against 9302.3782 of depth 6 at gamma 0.99.

    pymoo 0.6.2 measures that volume over the origin of MO-Gymnasium's front.
    """
    front = PLAIN.build(difficulty=6).pareto_front(0.99)
    points = np.random.default_rng(0).uniform(0, 10, (100_000, 6))
    is_below = np.zeros(len(points), bool)
    for fruit in front:
        is_below |= (points <= fruit).all(1)
    error = 1e6 * np.sqrt(is_below.mean() / len(points))
    assert abs(1e6 * is_below.mean() - 9302.3782) < 4 * error


def test_random_episodes_are_those_of_plain_rules(task: FruitTree) -> None:
    """Compare 1,000 random episodes with the rules: the way in bits is the number of the leaf."""
    record = play(task, Uniform(task.action_space), range(1_000))
    assert record.terminated.all()
    assert (record.length == task.depth).all()
    env = TaskEnv(task, split="test")
    for seed in range(50):
        observation, _ = env.reset(seed=seed)
        weights = observation[task.depth :]
        path = "".join(str(int(action)) for action in record.actions[seed][: task.depth])
        fruit = task.fruits[int(path, 2)]
        np.testing.assert_allclose(record.total[seed], weights * fruit, rtol=1e-5, atol=1e-6)
        values = [float(weights @ values) for values in task.fruits]
        is_best = float(weights @ fruit) > max(values) - 1e-3
        assert bool(record.info["success"][seed]) == is_best
        assert float(record.info["best_value"][seed]) == pytest.approx(max(values), rel=1e-5)
    assert record.info["success"].mean() < 0.05


def test_reference_finds_the_best_fruit(task: FruitTree) -> None:
    record = play(task, BestFruit(task), range(500))
    assert record.info["success"].all()
    best = record.info["best_value"]
    np.testing.assert_allclose(record.total.sum(1), best, rtol=1e-5)


def test_reference_finds_the_best_fruit_below_every_node() -> None:
    task = CARD.build(difficulty=5)
    player = BestFruit(task)

    @jax.jit
    def act(state: State, params: Params) -> jax.Array:
        observation = task.observation(state, None, params)
        return player.act((), View(observation, None, None, None), None)[0]

    for weights in sample_weights(task, 3):
        params = Params(jnp.asarray(weights), jnp.float32(0))
        values = task.fruits @ weights
        for row in range(5):
            for index in range(2**row):
                state = State(np.int32(row), np.int32(index))
                below = np.arange(index << 5 - row, (index + 1) << 5 - row)
                best = below[np.argmax(values[below])]
                assert int(act(state, params)) == best >> (4 - row) & 1


def test_observation_shows_the_node(task: FruitTree) -> None:
    weights = sample_weights(task, 1)[0]
    params = Params(jnp.asarray(weights), jnp.float32(0))

    def read(state: State) -> tuple[State, jax.Array]:
        return task.read_observation(task.observation(state, None, params))

    nodes = [(row, index) for row in range(task.depth + 1) for index in range(2**row)]
    rows, indices = np.array(nodes, np.int32).T
    state, read_weights = jax.jit(jax.vmap(read))(State(rows, indices))
    np.testing.assert_array_equal(state.row, rows)
    np.testing.assert_array_equal(state.index, indices)
    np.testing.assert_array_equal(read_weights, np.tile(weights, (len(nodes), 1)))


@pytest.mark.parametrize("split", Split)
def test_weights_lie_on_the_simplex_in_the_bands_of_their_split(split: Split) -> None:
    weights = sample_weights(CARD.build(), 5_000, split)
    assert (weights >= 0).all()
    assert (weights < 1).all()
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)
    assert (np.floor(weights[:, 0] * 20) % 2 == split).all()
    # All six are alike but for the bands, which move the first by half a band at most.
    np.testing.assert_allclose(weights.mean(0), 1 / 6, atol=0.04)


def test_play_that_ignores_the_weights_is_worse(task: FruitTree) -> None:
    """The fruit that is best on average earns at most a quarter of the scale."""
    weights = sample_weights(task, 5_000)
    values = weights @ task.fruits.T
    random, blind, best = values.mean(), values.mean(0).max(), values.max(1).mean()
    assert 0.1 < (blind - random) / (best - random) < 0.25
    # The fruit on the left of the deepest tree has much protein: best for a tenth of the weights.
    for action in range(2):
        blind_play = play(task, Constant(np.int32(action)), range(500))
        limit = 0.16 if task.depth == 7 and action == 0 else 0.05
        assert blind_play.info["success"].mean() < limit


def test_success_without_weights_is_the_largest_sum() -> None:
    task = PLAIN.build(difficulty=5)
    record = play(task, BestFruit(task), range(3))
    assert record.info["success"].all()
    best = task.fruits[np.argmax(task.fruits.sum(1))]
    np.testing.assert_allclose(record.total, np.tile(best, (3, 1)), rtol=1e-6)


@pytest.mark.parametrize("difficulty", [4, 5.5, 8])
def test_refuses_a_tree_without_values(difficulty: float) -> None:
    with pytest.raises(ValueError, match="one of 5, 6, 7"):
        CARD.build(difficulty=difficulty)


def test_weighted_environments_have_no_front() -> None:
    with pytest.raises(AttributeError, match="no known Pareto front"):
        TaskEnv(CARD.build()).pareto_front(1.0)


def test_words_and_picture() -> None:
    task = CARD.build(difficulty=5)
    weights = sample_weights(task, 1)[0]
    params = Params(weights, np.float32(1.5))
    root, node = State(np.int32(0), np.int32(0)), State(np.int32(3), np.int32(2))
    assert task.describe(root, params).startswith("You are at the root")
    text = task.describe(node, params)
    assert text.startswith("You went left, right, left.\nLevel 3 of 5.")
    assert f"water {float(weights[5]):.4f}" in text
    lines = task.rules().splitlines()
    assert len(lines) == 1 + 32
    assert lines[1].split()[0] == "LLLLL"
    assert [float(word) for word in lines[2].split()[1:]] == task.fruits[1].round(2).tolist()
    assert "Weights" not in PLAIN.build(difficulty=5).describe(node, params)
    for number, word in enumerate(("left", "right")):
        assert task.parse(f" {word.upper()}", node, params) == number
    pictures = [task.draw(state, params) for state in (root, node, State(np.int32(3), np.int32(3)))]
    assert len({picture.tobytes() for picture in pictures}) == 3
    assert pictures[0].shape == task.picture_shape
    assert "1.500" in task.why_over(node, params, {"value": 1.0})

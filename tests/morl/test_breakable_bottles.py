"""Breakable Bottles against the rules in plain Python, recorded episodes, and its coverage set."""

from functools import cache
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.morl.breakable_bottles import (
    LEFT,
    PICK_UP,
    RIGHT,
    BreakableBottles,
    Params,
    State,
)
from rlbench_suite.envs.morl.convex_coverage import convex_coverage_set
from rlbench_suite.evaluation.statistics.pareto import hypervolume

CARD = card("BreakableBottles-v0")
UNBREAKABLE = CARD.with_settings(bottles="unbreakable")
KINDS = {"breakable": CARD, "unbreakable": UNBREAKABLE}


@pytest.fixture(scope="module")
def task() -> BreakableBottles:
    return CARD.build()


# Episodes of MO-Gymnasium 1.3.2: actions, whether each drops a bottle, and rewards that are not
# (-1, 0, 0), by step. The second has unbreakable bottles.
ONE_BREAKS = ("0000221111000021111", {9}, {9: (25, -1), 18: (25, 0)})
TWO_ARRIVE = ("0000221111", set(), {9: (50, 0)})
PICKED_UP_AGAIN = (
    "000022101211211000021111",
    {7, 10},
    {7: (0, -1), 9: (0, 1), 10: (0, -1), 13: (25, 0), 23: (25, 0)},
)


@pytest.mark.parametrize(
    ("kind", "episode"),
    [
        ("breakable", ONE_BREAKS),
        ("breakable", TWO_ARRIVE),
        ("unbreakable", TWO_ARRIVE),
        ("unbreakable", PICKED_UP_AGAIN),
    ],
)
def test_recorded_episodes(kind: str, episode: tuple) -> None:
    task = KINDS[kind].build()
    actions, drops, special = episode

    @jax.jit
    def step(state: State, action: Any, clumsy: Any) -> tuple[State, Any]:
        next_state = task.move(state, action, clumsy)
        return next_state, task.reward(state, action, next_state, None, None)

    state = task.initial(None, Params(0.1))
    for t, action in enumerate(map(int, actions)):
        assert int(state.delivered) < 2
        next_state, reward = step(state, np.int32(action), np.bool_(t in drops))
        assert reward.tolist() == [-1, *special.get(t, (0, 0))]
        state = next_state
    assert task.terminal(state, None, None)
    assert int(state.steps) == len(actions)


class Rules:
    """The rules of an episode in plain Python."""

    def __init__(self, unbreakable: bool) -> None:
        self.unbreakable = unbreakable
        self.cell, self.carried, self.delivered, self.lying = 4, 0, 0, [0, 0, 0, 0, 0]

    def step(self, action: int, clumsy: bool) -> tuple[int, int, int]:
        littered = sum(self.lying) > 0
        earned = 0
        if action == PICK_UP:
            if self.carried < 2 and self.cell == 0:
                self.carried += 1
            elif self.carried < 2 and self.unbreakable and self.lying[self.cell]:
                self.lying[self.cell] -= 1
                self.carried += 1
        else:
            target = min(max(self.cell + (1 if action == RIGHT else -1), 0), 4)
            if self.carried == 2 and self.cell in (1, 2, 3) and clumsy:
                self.carried -= 1
                self.lying[self.cell] += 1
            if target == 4 and self.cell == 3:
                before = self.delivered
                self.delivered = min(2, before + self.carried)
                self.carried = 0
                earned = 25 * (self.delivered - before)
            self.cell = target
        return -1, earned, littered - (sum(self.lying) > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_rules_over_random_episodes(kind: str) -> None:
    """600 random episodes of each kind, more clumsy than the published ones, that never end."""
    task, episodes, steps = KINDS[kind].build(), 600, 60
    rng = np.random.default_rng(0)
    actions = rng.choice([LEFT, RIGHT, PICK_UP], (steps, episodes), p=[0.3, 0.4, 0.3])
    clumsy = rng.random((steps, episodes)) < 0.5

    def step(state: State, inputs: tuple) -> tuple[State, Any]:
        next_state = jax.vmap(task.move)(state, *inputs)
        reward = jax.vmap(lambda a, b: task.reward(a, None, b, None, None))(state, next_state)
        return next_state, (next_state, reward)

    first = task.initial(None, Params(0.1))
    first = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (episodes,)), first)
    states, rewards = jax.jit(lambda *a: jax.lax.scan(step, *a)[1])(first, (actions, clumsy))
    fields = np.stack(states, -1)
    rewards = np.asarray(rewards)
    assert (fields[..., 2] == 2).any()
    assert (fields[..., 3:6] >= 2).any(), "no cell has two bottles"
    for e in range(episodes):
        rules = Rules(kind == "unbreakable")
        for t in range(steps):
            reward = rules.step(int(actions[t, e]), bool(clumsy[t, e]))
            assert tuple(rewards[t, e]) == reward
            expected = [rules.cell, rules.carried, rules.delivered, *rules.lying[1:4], t + 1]
            assert fields[t, e].tolist() == expected
            if rules.delivered == 2:
                break


@cache
def outcome(state: tuple, action: int, clumsy: bool) -> tuple[np.ndarray, tuple]:
    """Return reward and next state (cell, carried, delivered, whether a bottle lies).

    A cell with a bottle and the way with one are the same, as bottles break.
    """
    rules = Rules(False)
    rules.cell, rules.carried, rules.delivered, rules.lying[1] = state
    reward = rules.step(action, clumsy)
    return np.array(reward), (rules.cell, rules.carried, rules.delivered, int(any(rules.lying)))


def best_expected_return(horizon: int, gamma: float, weights: tuple) -> np.ndarray:
    """Return the best expected return for weights, by plain recursion over the rules."""
    values = {state: np.zeros(3) for state in product(range(5), range(3), range(3), range(2))}
    for _ in range(horizon):
        before = {}
        for state in values:
            returns = []
            for action in (LEFT, RIGHT, PICK_UP):
                total = np.zeros(3)
                for clumsy, chance in ((True, 0.1), (False, 0.9)):
                    reward, after = outcome(state, action, clumsy)
                    total += chance * (reward + gamma * values[after])
                returns.append(total)
            over = state[2] == 2
            best = max(returns, key=lambda total: total @ weights)
            before[state] = np.zeros(3) if over else best
        values = before
    return values[4, 0, 0, 0]


@pytest.mark.parametrize("weights", [(1, 1, 25), (1, 1, 1), (0.2, 0.3, 7)])
def test_coverage_set_has_the_best_of_a_plain_recursion(
    task: BreakableBottles, weights: tuple
) -> None:
    """Sixty steps are enough: the time limit of 100 is never near."""
    for gamma in (1.0, 0.99):
        best = best_expected_return(60, gamma, weights) @ weights
        assert (task.convex_coverage_set(gamma) @ weights).max() == pytest.approx(best, abs=1e-6)


def test_coverage_sets(task: BreakableBottles) -> None:
    """Undiscounted: one bottle at a time, or two of which the first may break.

    By hand: with two, no bottle breaks in 0.9**3 of the episodes.
    """
    expected = [(-18, 50, 0), (-12.265556, 50, -(1 - 0.9**3))]
    np.testing.assert_allclose(task.convex_coverage_set(), expected, atol=1e-6)
    assert hypervolume(np.array(expected), CARD.hypervolume_reference) == pytest.approx(
        4309.02, abs=5e-3
    )
    np.testing.assert_allclose(
        task.convex_coverage_set(0.99),
        [
            (-16.548624, 44.142197, 0),
            (-11.681377, 45.140614, -0.250248),
            (-11.529618, 45.055245, -0.250248),
        ],
        atol=1e-6,
    )
    unbreakable = UNBREAKABLE.build().convex_coverage_set()
    np.testing.assert_allclose(unbreakable, [(-10.966667, 50, 0)], atol=1e-6)
    for chance, best in ((0.0, -10.0), (1.0, -18.0)):  # nothing falls; everything does
        returns = task.convex_coverage_set(drop_chance=chance)
        np.testing.assert_allclose(returns, [(best, 50, 0)], atol=1e-9)


def test_coverage_set_of_given_points() -> None:
    """Keep those of 300 random points that are best for one of many weights."""
    rng = np.random.default_rng(3)
    for k in (2, 3):
        points = rng.normal(size=(300, k))
        points /= np.linalg.norm(points, axis=1, keepdims=True) * rng.uniform(1, 1.3, (300, 1))
        coverage_set = convex_coverage_set(
            lambda w, points=points: points[(points @ w).argmax()], k
        )
        weights = rng.dirichlet(np.ones(k), 5_000)
        np.testing.assert_allclose((coverage_set @ weights.T).max(0), (points @ weights.T).max(0))
        assert len(coverage_set) < 60


@pytest.mark.parametrize(("gamma", "chance"), [(0, 0.1), (1.01, 0.1), (1, -0.1), (1, 1.1)])
def test_coverage_set_refuses_wrong_numbers(
    task: BreakableBottles, gamma: float, chance: float
) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]|\(0, 1\]"):
        task.convex_coverage_set(gamma, chance)


def test_reference_has_the_best_return(task: BreakableBottles) -> None:
    assert (task.convex_coverage_set() @ CARD.weights).max() == pytest.approx(CARD.optimum)
    record = play(task, load(CARD.reference).for_task(task), range(8))
    np.testing.assert_array_equal(record.total, [(-18, 50, 0)] * 8)
    assert record.info["success"].all()
    random = play(task, Uniform(task.action_space), range(500))
    assert random.info["success"].mean() < 0.01


def test_reference_of_unbreakable_bottles() -> None:
    """The mean of 1,000 episodes is within four standard errors of the exact time."""
    task = UNBREAKABLE.build()
    record = play(task, load(CARD.reference).for_task(task), range(1_000))
    time = record.total[:, 0]
    assert abs(time.mean() + 10.966667) < 4 * time.std() / 1_000**0.5
    assert (record.total[:, 1:] == (50, 0)).all()


def test_words_and_picture(task: BreakableBottles) -> None:
    state = State(*map(np.int32, (2, 1, 1, 0, 3, 0, 12)))
    text = task.describe(state, Params(0.1))
    for words in ("cell 2", "carry 1", "delivered 1", "0, 3, 0"):
        assert words in text
    assert task.parse("pick up", state, Params(0.1)) == PICK_UP
    assert task.draw(state, Params(0.1)).shape == task.picture_shape
    assert task.observation(state, None, None).tolist() == [0.5, 0.5, 0.5, 0, 1, 0]

"""Check InformativePath against log-determinants, enumeration, and Gaussian conditioning.

Enumeration is of sets and of paths; the conditioning is NumPy's.
"""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.exploration import informative_path
from rlbench_suite.envs.exploration.compass import MOVES
from rlbench_suite.envs.exploration.informative_path import BUDGET, CELLS, NOISE, SIDE, BeamPlanner

pytestmark = pytest.mark.of_variants
CARD = card("InformativePath-v0")


def information(covariance: np.ndarray, cells: Any) -> float:
    """Mutual information of the field and measurements in a list of cells, in closed form."""
    cells = list(cells)
    noisy = np.eye(len(cells)) + covariance[np.ix_(cells, cells)] / NOISE
    return 0.5 * float(np.linalg.slogdet(noisy)[1])


@pytest.fixture(scope="module")
def env() -> Any:
    return TaskEnv(CARD.build(dtype="float64"), split="test")


def test_rewards_add_up_to_the_closed_form_and_the_posterior_is_that_of_gauss(env: Any) -> None:
    rng = np.random.default_rng(0)
    for seed in range(3):
        env.reset(seed=seed)
        prior, costs = np.array(env.params.covariance), np.array(env.params.costs)
        np.testing.assert_allclose(prior, prior.T, rtol=1e-13)
        assert np.linalg.eigvalsh(prior).min() > -1e-12
        visited, rewards, total_cost, over = [], [], 0, False
        while not over:
            action = rng.choice(np.flatnonzero(env.action_masks()))
            _, reward, over, truncated, info = env.step(action)
            visited.append(int(env.episode.state.x) + SIDE * int(env.episode.state.y))
            rewards.append(reward)
            total_cost += costs[visited[-1]]
            over |= truncated
        assert total_cost <= BUDGET
        # Some cell was measured twice, which is worth less and not nothing.
        assert len(set(visited)) < len(visited)
        assert sum(rewards) == pytest.approx(information(prior, visited), rel=1e-12)
        assert info["information"] == pytest.approx(sum(rewards), rel=1e-12)
        gram = prior[np.ix_(visited, visited)] + NOISE * np.eye(len(visited))
        posterior = prior - prior[:, visited] @ np.linalg.solve(gram, prior[visited])
        np.testing.assert_allclose(np.array(env.episode.state.covariance), posterior, atol=1e-11)


def test_information_is_monotone_and_submodular_by_enumeration(env: Any) -> None:
    """The task's gains are positive and fall with what was measured.

    It takes all sets A within B and all cells beyond B, of seven cells that are close together.
    """
    env.reset(seed=1)
    cells = [0, 1, 2, 8, 9, 10, 18]
    with jax.enable_x64():
        measure, gain = jax.jit(informative_path.measure), jax.jit(informative_path.gain)
        posteriors = {frozenset(): jnp.asarray(env.params.covariance)}
        for size in range(1, len(cells)):
            for subset in itertools.combinations(cells, size):
                posteriors[frozenset(subset)] = measure(
                    posteriors[frozenset(subset[:-1])], subset[-1]
                )
        gains = {
            (inside, cell): float(gain(posterior[cell, cell]))
            for inside, posterior in posteriors.items()
            for cell in set(cells) - inside
        }
    prior = np.array(env.params.covariance)
    for (inside, cell), value in gains.items():
        assert value == pytest.approx(
            information(prior, [*inside, cell]) - information(prior, inside), abs=1e-12
        )
        assert value > 0
        for extra_cell in set(cells) - inside - {cell}:
            assert value >= gains[inside | {extra_cell}, cell] - 1e-12


def test_greedy_sets_keep_the_bound_and_no_path_beats_it(env: Any) -> None:
    """Greedy choice reaches (1 - 1/e) of the best, as published.

    Best sets of 3 cells of 64, and best paths of 5 steps, are found by enumeration.
    """
    for seed in range(2):
        env.reset(seed=seed)
        prior = np.array(env.params.covariance)
        with jax.enable_x64():
            greedy = {
                n: float(informative_path.greedy_information(jnp.asarray(prior), n)) for n in (3, 5)
            }
        sets = np.array(list(itertools.combinations(range(CELLS), 3)))
        noisy = np.eye(3) + prior[sets[:, :, None], sets[:, None, :]] / NOISE
        best = 0.5 * np.linalg.slogdet(noisy)[1].max()
        assert (1 - math.exp(-1)) * best <= greedy[3] <= best * (1 + 1e-12)
        x, y = int(env.episode.state.x), int(env.episode.state.y)
        paths = []
        for moves in itertools.product(MOVES.values(), repeat=5):
            places = np.array([x, y]) + np.cumsum(moves, 0)
            if ((places >= 0) & (places < SIDE)).all():
                paths.append(information(prior, places @ [1, SIDE]))
        assert max(paths) <= greedy[5] / (1 - math.exp(-1))


def test_the_reference_begins_the_best_way_that_a_short_budget_pays_for(env: Any) -> None:
    """All ways that cost up to 6, by enumeration."""
    budget = 6
    with jax.enable_x64():
        act = jax.jit(BeamPlanner().act)
    for seed in range(3):
        env.reset(seed=seed)
        prior, costs = np.array(env.params.covariance), np.array(env.params.costs)
        x, y = int(env.episode.state.x), int(env.episode.state.y)
        best = [0.0] * len(MOVES)
        for length in range(1, budget + 1):
            for moves in itertools.product(range(len(MOVES)), repeat=length):
                places = np.array([x, y]) + np.cumsum([list(MOVES.values())[m] for m in moves], 0)
                if ((places >= 0) & (places < SIDE)).all():
                    cells = places @ [1, SIDE]
                    if costs[cells].sum() <= budget:
                        best[moves[0]] = max(best[moves[0]], information(prior, cells))
        state = env.episode.state._replace(budget=jnp.int32(budget))
        with jax.enable_x64():
            action = int(act((), View(None, None, state, env.params), jax.random.key(0))[0])
        assert best[action] == pytest.approx(max(best), rel=1e-12)
        assert sorted(best)[-2] < max(best)


def test_the_reference_scores_what_was_calibrated() -> None:
    task = CARD.build()
    returns = play(task, BeamPlanner(), range(64)).total
    assert returns.mean() == pytest.approx(CARD.scores(None)["reference"].mean, rel=0.1)

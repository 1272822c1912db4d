"""Matrix games against their published payoffs and the equilibria that enumeration finds."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.games.matrix_game import TABLES

ID = "rlsuite/MatrixGame-v0"

Profile = tuple[tuple[float, ...], tuple[float, ...]]


def indifferent(
    payoffs: np.ndarray, support: tuple[int, ...], other_support: tuple[int, ...]
) -> Any:
    """Return a mixture over ``other_support`` that makes all of ``support`` pay the same.

    None if there is none.

    ``payoffs`` are those of the player of ``support``, by its own action and the other's.
    """
    size = len(support)
    matrix = np.zeros((size + 1, size + 1))
    matrix[:size, :size] = payoffs[np.ix_(support, other_support)]
    matrix[:size, size] = -1
    matrix[size, :size] = 1
    try:
        solution = np.linalg.solve(matrix, np.eye(size + 1)[size])
    except np.linalg.LinAlgError:
        return None
    mixture = np.zeros(len(payoffs))
    mixture[[*other_support]] = solution[:size]
    return mixture if (solution[:size] > 1e-9).all() else None


def equilibria(payoffs: np.ndarray) -> set[Profile]:
    """Enumerate supports of equal size, which nondegenerate games need only.

    See Porter, Nudelman & Shoham 2008, doi:10.1016/j.geb.2006.03.015.
    """
    size = payoffs.shape[1]
    profiles = set()
    for count in range(1, size + 1):
        supports = [*itertools.combinations(range(size), count)]
        for rows, columns in itertools.product(supports, supports):
            second = indifferent(payoffs[0], rows, columns)
            first = indifferent(payoffs[1].T, columns, rows)
            if first is None or second is None:
                continue
            gains = (payoffs[0] @ second).max() - first @ payoffs[0] @ second
            other_gains = (first @ payoffs[1]).max() - first @ payoffs[1] @ second
            if max(gains, other_gains) < 1e-9:
                profiles.add((tuple(first.round(6).tolist()), tuple(second.round(6).tolist())))
    return profiles


def pure(size: int, row: int, column: int) -> Profile:
    return tuple(np.eye(size)[row].tolist()), tuple(np.eye(size)[column].tolist())


def mixed(*mixture: float) -> tuple[float, ...]:
    return tuple(np.round(mixture, 6).tolist())


TEXTBOOK_EQUILIBRIA: dict[str, set[Profile]] = {
    "prisoners-dilemma": {pure(2, 1, 1)},
    "stag-hunt": {pure(2, 0, 0), pure(2, 1, 1), (mixed(3 / 4, 1 / 4), mixed(3 / 4, 1 / 4))},
    "chicken": {pure(2, 0, 1), pure(2, 1, 0), (mixed(1 / 2, 1 / 2), mixed(1 / 2, 1 / 2))},
    "battle-of-the-sexes": {
        pure(2, 0, 0),
        pure(2, 1, 1),
        (mixed(3 / 5, 2 / 5), mixed(2 / 5, 3 / 5)),
    },
    "matching-pennies": {(mixed(1 / 2, 1 / 2), mixed(1 / 2, 1 / 2))},
    "rock-paper-scissors": {(mixed(1 / 3, 1 / 3, 1 / 3), mixed(1 / 3, 1 / 3, 1 / 3))},
    "shapley": {(mixed(1 / 3, 1 / 3, 1 / 3), mixed(1 / 3, 1 / 3, 1 / 3))},
}
"""All equilibria, as text books have them."""


@pytest.mark.parametrize("name", TEXTBOOK_EQUILIBRIA)
def test_the_equilibria_are_those_of_text_books(name: str) -> None:
    assert equilibria(TABLES[name].payoffs) == TEXTBOOK_EQUILIBRIA[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("climbing", {(0, 0), (1, 1), (2, 2)} - {(2, 2)}), ("penalty", {(0, 0), (1, 1), (2, 2)})],
)
def test_common_payoffs_have_several_pure_equilibria(
    name: str, expected: set[tuple[int, int]]
) -> None:
    """In the climbing game (c, c) is none: who leaves it for b earns 6 instead of 5."""
    profiles = equilibria(TABLES[name].payoffs)
    pures = {
        (int(np.argmax(first)), int(np.argmax(second)))
        for first, second in profiles
        if max(first) == max(second) == 1
    }
    assert pures == expected


@pytest.mark.parametrize("name", TABLES)
def test_each_joint_action_pays_what_the_table_says(name: str) -> None:
    payoffs = TABLES[name].payoffs
    env = pettingzoo.make("parallel", ID, game=name, rounds="1")
    best = payoffs.sum(0).max()
    for row, column in np.ndindex(payoffs.shape[1:]):
        env.reset(seed=0)
        _, rewards, terminations, _, infos = env.step({"agent_0": row, "agent_1": column})
        assert [*rewards.values()] == payoffs[:, row, column].tolist()
        assert all(terminations.values())
        is_best = payoffs[:, row, column].sum() == best
        assert infos["agent_0"]["success"] == is_best
        assert infos["agent_0"]["welfare"] == payoffs[:, row, column].mean()


def test_each_agent_sees_its_own_last_action_first() -> None:
    env = pettingzoo.make("parallel", ID, game="prisoners-dilemma")
    observations, _ = env.reset(seed=0)
    assert observations["agent_0"].tolist() == [0, 0, 0, 0, 1]
    observations, _, terminations, _, _ = env.step({"agent_0": 0, "agent_1": 1})
    assert observations["agent_0"].tolist() == [1, 0, 0, 1, 1]
    assert observations["agent_1"].tolist() == [0, 1, 1, 0, 0]
    assert not any(terminations.values())
    for _ in range(99):
        *_, terminations, _, _ = env.step({"agent_0": 0, "agent_1": 1})
    assert all(terminations.values())


def test_the_scale_goes_from_the_safe_action_to_the_best_pair() -> None:
    task = card(ID).build()
    assert play(task, reference_player(task), range(2)).total.mean() == 1100
    env = gymnasium.make(ID)
    env.reset(seed=0)
    _, reward, *_ = env.step(task.noop_action())
    assert reward == 5

"""Ratings against closed forms, general optimisers, and the truth of simulated games."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from rlbench_suite.evaluation.statistics import games
from rlbench_suite.evaluation.statistics.games import (
    elo,
    is_zero_sum,
    nash_average,
    payoff_matrix,
    points_per_game,
    standings,
)

ROCK_PAPER_SCISSORS = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])


def simulated_returns(
    generator: np.random.Generator, skills: np.ndarray, number: int, advantage: float = 0.0
) -> np.ndarray:
    """Return a zero-sum game: the gap in skill, an advantage of seat 0, and noise."""
    gaps = skills[:, None] - skills[None] + advantage
    first = gaps[..., None] + generator.normal(size=(len(skills), len(skills), number))
    return np.stack([first, -first], -1)


def test_the_payoff_is_the_mean_of_both_seats() -> None:
    """Seat 0 has an advantage of 5, which cancels."""
    skills = np.array([0.0, 1.0, 3.0])
    returns = simulated_returns(np.random.default_rng(0), skills, 20_000, advantage=5.0)
    payoffs = payoff_matrix(returns)
    assert payoffs == pytest.approx(skills[:, None] - skills[None], abs=0.03)
    assert payoffs == pytest.approx(-payoffs.T)
    assert is_zero_sum(returns)
    assert not is_zero_sum(np.abs(returns))


def test_points_count_wins_and_half_draws_by_hand() -> None:
    returns = np.zeros((2, 2, 2, 2))
    returns[0, 1] = [[1, -1], [0, 0]]  # player 0 wins and draws in seat 0
    returns[1, 0] = [[-1, 1], [1, -1]]  # and wins and loses in seat 1
    points = points_per_game(returns)
    assert points[0, 1].tolist() == [1, 0.25]
    assert points[1, 0].tolist() == [0, 0.75]


def test_elo_of_two_players_is_the_logarithm_of_the_odds() -> None:
    ratings = elo([[0, 30], [10, 0]])
    assert ratings[0] - ratings[1] == pytest.approx(400 * np.log10(3))
    assert ratings.sum() == pytest.approx(0)
    with_draw = elo([[0, 30], [10, 0]], draws=2)
    assert with_draw[0] - with_draw[1] == pytest.approx(400 * np.log10(31 / 11))


def test_elo_has_the_greatest_likelihood() -> None:
    points = np.random.default_rng(1).integers(1, 40, (6, 6)).astype(float)
    np.fill_diagonal(points, 0)

    def loss(logits: np.ndarray) -> float:
        return float((points * np.logaddexp(0, logits[None] - logits[:, None])).sum())

    best = minimize(loss, np.zeros(6), tol=1e-12).x
    assert elo(points) == pytest.approx(400 / np.log(10) * (best - best.mean()), abs=0.01)


def test_elo_recovers_the_ratings_of_simulated_players() -> None:
    truth = np.array([-300.0, -100.0, 0.0, 150.0, 250.0])
    chances = 1 / (1 + 10 ** ((truth[None] - truth[:, None]) / 400))
    wins = np.triu(np.random.default_rng(2).binomial(5_000, chances), 1).astype(float)
    points = wins + np.tril(5_000 - wins.T, -1)
    assert elo(points) == pytest.approx(truth, abs=10)


def test_ratings_without_a_greatest_likelihood_are_refused() -> None:
    """Players 0 and 1 beat each other, and lost no point to player 2."""
    points = [[0, 3, 5], [2, 0, 5], [0, 0, 0]]
    with pytest.raises(ValueError, match=r"Players \[0, 1\] lost no point to players \[2\]"):
        elo(points)
    ratings = elo(points, draws=1)
    assert np.isfinite(ratings).all()
    assert ratings.argmin() == 2


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([[0, -1], [1, 0]], "not negative"),
        ([[0, 1]], "shape"),
        ([[0, np.inf], [1, 0]], "finite"),
    ],
)
def test_wrong_points_are_refused(points: list[list[float]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        elo(points)


def test_the_nash_average_of_a_cycle_is_even() -> None:
    average = nash_average(ROCK_PAPER_SCISSORS)
    assert average.shares == pytest.approx(np.full(3, 1 / 3))
    assert average.skills == pytest.approx(np.zeros(3), abs=1e-9)


def test_copies_share_their_part_evenly() -> None:
    """Balduzzi et al. 2018: invariance to redundancy, and the largest entropy among equilibria."""
    rows = [0, 1, 1, 1, 2]
    average = nash_average(ROCK_PAPER_SCISSORS[np.ix_(rows, rows)])
    assert average.shares == pytest.approx([1 / 3, 1 / 9, 1 / 9, 1 / 9, 1 / 3])


def test_only_the_best_of_a_ladder_counts() -> None:
    skills = np.array([0.0, 1.0, 3.0])
    average = nash_average(skills[:, None] - skills[None])
    assert average.shares == pytest.approx([0, 0, 1])
    assert average.skills == pytest.approx([-3, -2, 0])


def test_players_who_are_all_equal_share_evenly() -> None:
    assert nash_average(np.zeros((4, 4))).shares == pytest.approx(np.full(4, 0.25))


def test_a_cycle_of_unequal_stakes() -> None:
    """The equilibrium of a generalised cycle weighs each player by the stake of the other two."""
    a, b, c = 1.0, 2.0, 5.0
    payoffs = np.array([[0, -a, b], [a, 0, -c], [-b, c, 0]])
    assert nash_average(payoffs).shares == pytest.approx(np.array([c, b, a]) / (a + b + c))


def test_the_nash_average_has_the_largest_entropy_of_all_equilibria() -> None:
    """No equilibrium lies where the entropy rises: linear programs over all of them say so."""
    generator = np.random.default_rng(3)
    for size in (3, 4, 6, 8) * 5:
        ranks = generator.integers(-2, 3, (size, size))  # many equilibria
        payoffs = np.triu(ranks, 1) - np.triu(ranks, 1).T
        average = nash_average(payoffs)
        assert average.shares.sum() == pytest.approx(1)
        assert average.skills.max() < 1e-7

        def largest(objective: np.ndarray, payoffs: np.ndarray = payoffs) -> float:
            """Return the largest value of a linear objective over all equilibria."""
            zeros, sum_of_shares = np.zeros(len(payoffs)), np.ones((1, len(payoffs)))
            result = linprog(-objective, A_ub=payoffs, b_ub=zeros, A_eq=sum_of_shares, b_eq=[1])
            return -float(result.fun)

        inside = average.shares > 0
        for player in np.flatnonzero(~inside):
            assert largest(np.eye(size)[player]) == pytest.approx(0, abs=1e-8)
        slope = np.where(inside, -np.log(np.where(inside, average.shares, 1)), 0)
        assert largest(slope) <= slope @ average.shares + 1e-6


def test_payoffs_that_are_not_antisymmetric_are_refused() -> None:
    with pytest.raises(ValueError, match="antisymmetric"):
        nash_average([[0, 1], [1, 0]])


def test_standings_are_those_of_the_policies_together() -> None:
    generator = np.random.default_rng(4)
    skills = np.array([0.1, 0.2, -0.3, 0.0, -0.2, 0.1])
    agents = [0, 0, 0, 1, 1, 1]
    returns = simulated_returns(generator, skills, 50)
    results = standings(returns, agents)
    expected = payoff_matrix(returns)[:3, 3:].mean()
    assert results.payoffs[0][1].point == pytest.approx(expected)
    assert results.payoffs[1][0].point == pytest.approx(-expected)
    assert results.payoffs[0][0].point == results.payoffs[0][0].high == 0
    points = points_per_game(returns)[:3, 3:].mean() * 900
    ratings = elo([[0, points], [900 - points, 0]], draws=1)
    assert [estimate.point for estimate in results.elo] == pytest.approx(ratings)
    assert sum(estimate.point for estimate in results.shares) == pytest.approx(1)
    one_seed = standings(returns[::3, ::3], [0, 1])
    assert one_seed.elo[0].low < one_seed.elo[0].point < one_seed.elo[0].high
    one_game = standings(returns[::3, ::3, :1], [0, 1])
    assert np.isnan(one_game.elo[0].low)
    with pytest.raises(ValueError, match="two agents or more"):
        standings(returns, [0] * 6)


def test_games_of_common_interest_have_no_nash_average() -> None:
    returns = np.ones((2, 2, 3, 2))
    results = standings(returns, [0, 1])
    assert results.shares == results.skills == []
    assert results.elo[0].point == pytest.approx(0)


def test_intervals_cover_the_truth_about_as_often_as_they_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two agents whose seeds differ in skill by normal draws; their means are 0.5 apart."""
    monkeypatch.setattr(games, "NASH_REPLICATES", 1)
    monkeypatch.setattr(games, "REPLICATES", 1_000)
    generator = np.random.default_rng(5)
    covered = 0
    trials = 60
    for _ in range(trials):
        skills = generator.normal(size=10) * 0.5
        skills[:5] += 0.5
        results = standings(simulated_returns(generator, skills, 10), [0] * 5 + [1] * 5)
        estimate = results.payoffs[0][1]
        covered += estimate.low <= 0.5 <= estimate.high
    # With 60 trials at 95 % there are 52 or more in all but one of a thousand cases.
    assert covered >= 52

"""Ratings of players by the games that they played against each other, in both seats.

All functions take plain arrays. *Returns* of n players have the shape ``(n, n, games, 2)``: what
the seats earned in a game with player i in seat 0 and player j in seat 1. Game g of each pair has
the same environment seed. A player beats another in a game in which it earns more.

* The *payoff* of a player against another is what it earns a game, the mean of both seats.
* *Elo* ratings are the maximum of the likelihood of Bradley and Terry 1952
  (doi:10.2307/2334029): a player rated 400 above another scores ten points to one.
* *Nash averaging* (Balduzzi et al. 2018, arXiv:1806.02643, section 4) rates players against the
  equilibrium of largest entropy of the game of choosing a player. Copies of a player change nothing
  for the others, and players who beat nobody strong count nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlbench_suite.evaluation.statistics.intervals import Estimate, Floats, as_floats

POINTS_PER_LOGIT = 400 / math.log(10)
"""Points of Elo for a unit of the logarithm of the odds."""
REPLICATES = 2_000
NASH_REPLICATES = 200
"""Resamples of Nash averages, each of which solves a linear program."""
_MAX_ITERATIONS = 100
_CONVERGED = 1e-10
_ASYMMETRY = 1e-6
"""Largest sum of a payoff and its opposite, in parts of the largest payoff, that is rounding."""

# -- payoffs ---------------------------------------------------------------------------------------


def payoff_matrix(returns: ArrayLike) -> Floats:
    """Return what each player earns a game against each other, ``(n, n)``.

    Args:
        returns: ``(n, n, games, 2)``.

    Raises:
        ValueError: another shape, or a number that is not finite.
    """
    mean = _check_returns(returns).mean(2)
    return (mean[..., 0] + mean[..., 1].T) / 2


def points_per_game(returns: ArrayLike) -> Floats:
    """Return the points of each player against each other in each game, ``(n, n, games)``.

    A win is one point and a draw a half, the mean of both seats.

    Args:
        returns: ``(n, n, games, 2)``.

    Raises:
        ValueError: as :func:`payoff_matrix`.
    """
    table = _check_returns(returns)
    first = (1 + np.sign(table[..., 0] - table[..., 1])) / 2
    return (first + 1 - first.swapaxes(0, 1)) / 2


def is_zero_sum(returns: ArrayLike) -> bool:
    """Return whether one seat loses what the other wins, in every game."""
    table = _check_returns(returns)
    return bool(np.abs(table.sum(-1)).max() <= _ASYMMETRY * max(np.abs(table).max(), 1e-300))


def _check_returns(returns: ArrayLike) -> Floats:
    table = as_floats(returns, "Returns")
    if table.ndim != 4 or len(table) != table.shape[1] or table.shape[3] != 2 or not table.size:
        raise ValueError(f"Returns have the shape (players, players, games, 2), got {table.shape}.")
    if not np.isfinite(table).all():
        raise ValueError("A return is not finite.")
    return table


# -- Elo -------------------------------------------------------------------------------------------


def elo(points: ArrayLike, *, draws: float = 0.0) -> Floats:
    """Return the Elo ratings of greatest likelihood, ``(n,)``, whose mean is 0.

    Args:
        points: points that each player won from each other, ``(n, n)``; a draw is half a point for
            both. The diagonal does not count.
        draws: draws that are added to every pair, at least 0. With more than 0 every player has a
            finite rating.

    Raises:
        ValueError: another shape, a number that is negative or not finite; or the players fall into
            two groups of which one won no point from the other, so that no rating is greatest.
    """
    table = as_floats(points, "Points")
    if table.ndim != 2 or len(table) != table.shape[1] or not table.size:
        raise ValueError(f"Points have the shape (players, players), got {table.shape}.")
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError("Points must be finite and not negative.")
    if not (math.isfinite(draws) and draws >= 0):
        raise ValueError(f"The number of added draws is at least 0, got {draws!r}.")
    if draws == 0 and (groups := _separate_groups(table)):
        winners, losers = groups
        raise ValueError(
            f"Players {winners} lost no point to players {losers}, so that their ratings have no "
            "greatest likelihood; add draws."
        )
    return _elo(table[None], draws)[0]


def _separate_groups(points: Floats) -> tuple[list[int], list[int]] | None:
    """Return players who lost no point to the others, and these; None if there are none.

    Ratings of greatest likelihood exist if and only if there are none (Ford 1957,
    doi:10.1080/00029890.1957.11989117).
    """
    count = len(points)
    reaches = np.eye(count, dtype=bool) | (points > 0)
    for _ in range(count):
        reaches = (reaches.astype(np.int64) @ reaches) > 0
    for player in range(count):
        beaten = reaches[player]  # by a chain of points
        if not beaten.all():
            return np.flatnonzero(~beaten).tolist(), np.flatnonzero(beaten).tolist()
    return None


def _elo(points: Floats, draws: float) -> Floats:
    """Return the ratings of a batch of tables ``(batch, n, n)`` by Newton's method."""
    count = points.shape[1]
    away = 1 - np.eye(count)
    points = (points + draws / 2) * away
    games = points + points.swapaxes(1, 2)
    earned = points.sum(2)
    logits = np.zeros(points.shape[:2])

    def likelihood(logits: Floats) -> Floats:
        gaps = logits[:, None, :] - logits[:, :, None]
        return np.asarray(-(points * np.logaddexp(0, gaps)).sum((1, 2)))

    value = likelihood(logits)
    for _ in range(_MAX_ITERATIONS):
        chances = 1 / (1 + np.exp(logits[:, None, :] - logits[:, :, None]))
        gradient = earned - (games * chances).sum(2)
        weights = games * chances * (1 - chances)
        # Curvature; ratings are known up to a constant, and the ones fix it.
        curvature = 1 / count - weights
        curvature[:, np.arange(count), np.arange(count)] += weights.sum(2)
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        size = np.ones(len(logits))
        for _ in range(40):  # halve steps that lower the likelihood
            trial = logits + size[:, None] * step
            trial_value = likelihood(trial)
            worse = trial_value < value - 1e-12 * np.abs(value)
            if not worse.any():
                break
            size[worse] /= 2
        logits = trial - trial.mean(1, keepdims=True)
        value = trial_value
        if np.abs(step).max() < _CONVERGED:
            break
    return POINTS_PER_LOGIT * logits


# -- Nash averaging --------------------------------------------------------------------------------


class NashAverage(NamedTuple):
    """Equilibrium of largest entropy of choosing a player, and what players earn against it."""

    shares: Floats
    """Probability of each player in the equilibrium, ``(n,)``."""
    skills: Floats
    """Payoff of each player against the equilibrium, ``(n,)``: 0 for those in it, else at most 0.
    """


def nash_average(payoffs: ArrayLike) -> NashAverage:
    """Return the Nash average of players.

    Args:
        payoffs: what each player earns against each other, antisymmetric, ``(n, n)``.

    Raises:
        ValueError: another shape, not antisymmetric, or a number that is not finite.
    """
    table = as_floats(payoffs, "Payoffs")
    if table.ndim != 2 or len(table) != table.shape[1] or not table.size:
        raise ValueError(f"Payoffs have the shape (players, players), got {table.shape}.")
    if not np.isfinite(table).all():
        raise ValueError("A payoff is not finite.")
    size = float(np.abs(table).max())
    if np.abs(table + table.T).max() > _ASYMMETRY * size:
        raise ValueError(
            "Payoffs must be antisymmetric: what a player earns against another, that one loses."
        )
    table = (table - table.T) / 2
    beaten = (table > _ASYMMETRY * size).sum(1)
    best = int(beaten.argmax())
    if beaten[best] == len(table) - 1:  # beats all others
        shares = np.eye(len(table))[best]
        return NashAverage(shares, table @ shares)
    support = _support(table / (size or 1.0))
    shares = _largest_entropy(table / (size or 1.0), support)
    return NashAverage(shares, table @ shares)


def _support(payoffs: Floats) -> np.ndarray:
    """Return which players have a share in some equilibrium, bool ``(n,)``.

    An equilibrium is a mixture against which nobody earns more than 0. The linear program looks for
    a multiple of one with as many entries of at least 1 as possible.
    """
    from scipy.optimize import linprog

    count = len(payoffs)
    reward = np.concatenate([np.zeros(count), -np.ones(count)])
    nobody_earns = np.hstack([payoffs, np.zeros((count, count))])
    counted = np.hstack([-np.eye(count), np.eye(count)])
    result = linprog(
        reward,
        A_ub=np.vstack([nobody_earns, counted]),
        b_ub=np.zeros(2 * count),
        bounds=[(0, None)] * count + [(0, 1)] * count,
        method="highs",
    )
    if result.status != 0:
        raise ArithmeticError(f"The linear program of Nash averaging failed: {result.message}")
    return np.asarray(result.x[count:] > 0.5)


def _largest_entropy(payoffs: Floats, support: np.ndarray) -> Floats:
    """Return the equilibrium of largest entropy, by the dual problem.

    Nobody in the support earns anything against an equilibrium, and nobody else more than nothing.
    With a multiplier for each of these, the shares are a softmax.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp, softmax

    columns = payoffs[:, support]

    def dual(multipliers: Any) -> tuple[float, Any]:
        logits = -(multipliers @ columns)
        return float(logsumexp(logits)), -(columns @ softmax(logits))

    result = minimize(
        dual,
        np.zeros(len(payoffs)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None) if inside else (0, None) for inside in support],
        options={"maxiter": 5_000, "maxfun": 20_000, "ftol": 1e-16, "gtol": 1e-11},
    )
    shares = np.zeros(len(payoffs))
    shares[support] = softmax(-(result.x @ columns))
    return shares


# -- agents with several seeds ---------------------------------------------------------------------


@dataclass(frozen=True)
class Standings:
    """Results of agents against each other. Intervals are over new seeds and new games."""

    payoffs: list[list[Estimate]]
    """Earnings of each agent in a game against each other; 0 against itself."""
    elo: list[Estimate]
    shares: list[Estimate]
    """Shares of the Nash equilibrium; empty unless the game is zero-sum."""
    skills: list[Estimate]
    """Nash averages: payoffs against the equilibrium; empty unless the game is zero-sum."""


def standings(
    returns: ArrayLike, agents: Sequence[int], *, confidence: float = 0.95, seed: int = 0
) -> Standings:
    """Return the results of agents, each of which has one policy for each of its seeds.

    Policies of an agent and games are drawn again with replacement. Percentiles are moved outward
    as far as those of Student's distribution for the smallest number of seeds above one (Hesterberg
    2015, doi:10.1080/00031305.2015.1089789, section 3.4). An agent with one policy counts as one
    whose policies are all equal; if all agents are such, intervals are over new games alone. One
    draw is added to every pair of agents, so that who won all games has a finite rating, too.

    Args:
        returns: of the policies, ``(n, n, games, 2)``.
        agents: number of the agent of each policy, from 0.
        confidence: nominal coverage, in (0, 1).
        seed: of the bootstrap.

    Returns:
        Estimates; the ends are NaN if each agent has one policy and there is one game.

    Raises:
        ValueError: as :func:`payoff_matrix`, or there are fewer than two agents.
    """
    table = _check_returns(returns)
    owners = np.asarray(agents)
    count = int(owners.max()) + 1
    sizes = np.bincount(owners, minlength=count)
    if count < 2 or owners.shape != (len(table),) or not sizes.all():
        raise ValueError(
            f"{len(table)} policies need the numbers of two agents or more, got {[*agents]}."
        )
    mean_returns = (table[..., 0] + table[..., 1].swapaxes(0, 1)) / 2
    zero_sum = is_zero_sum(table)
    weights = _draws(sizes, owners, table.shape[2], seed)
    payoffs = _between_agents(mean_returns, *weights)
    points = _between_agents(points_per_game(table), *weights)
    games = 2 * table.shape[2] * np.outer(sizes, sizes)
    ratings = _elo(points * games, 1.0)
    several = sizes[sizes > 1]
    tail = _tail(int(several.min()) if len(several) else table.shape[2], confidence)
    averages = [nash_average(matrix) for matrix in payoffs[: NASH_REPLICATES + 1] if zero_sum]
    shares = np.array([average.shares for average in averages])
    skills = np.array([average.skills for average in averages])
    return Standings(
        [_estimates(payoffs[:, i], tail) for i in range(count)],
        _estimates(ratings, tail),
        _estimates(shares, tail) if zero_sum else [],
        _estimates(skills, tail) if zero_sum else [],
    )


def _draws(sizes: np.ndarray, owners: np.ndarray, games: int, seed: int) -> tuple[Floats, Floats]:
    """Return weights of policies ``(1 + replicates, agents, n)`` and of games; the first are even.

    The weights of an agent's policies sum to 1, and so do those of the games.
    """
    generator = np.random.default_rng(seed)
    policy_weights = np.zeros((1 + REPLICATES, len(sizes), len(owners)))
    for agent, size in enumerate(sizes.tolist()):
        even = np.full(size, 1 / size)
        resampled = generator.multinomial(size, even, REPLICATES) / size
        policy_weights[:, agent, owners == agent] = np.vstack([even, resampled])
    even = np.full(games, 1 / games)
    game_weights = np.vstack([even, generator.multinomial(games, even, REPLICATES) / games])
    return policy_weights, game_weights


def _between_agents(values: Floats, policies: Floats, games: Floats) -> Floats:
    """Return weighted means of values ``(n, n, games)`` by pair of agents; 0 on the diagonal."""
    tables = (values @ games.T).transpose(2, 0, 1)
    means = policies @ tables @ policies.swapaxes(1, 2)
    return np.asarray(means * (1 - np.eye(policies.shape[1])))


def _tail(count: int, confidence: float) -> float:
    """Return the probability to cut at either end for a number of samples; NaN for one."""
    if count < 2:
        return math.nan
    from scipy.special import ndtr, stdtrit

    student = float(stdtrit(count - 1, (1 - confidence) / 2))
    return float(ndtr(math.sqrt(count / (count - 1)) * student))


def _estimates(values: Floats, tail: float) -> list[Estimate]:
    """Return the first row as point values, with percentiles of the other rows as ends."""
    point = values[0]
    if math.isnan(tail):
        return [Estimate(number, math.nan, math.nan) for number in point.tolist()]
    low, high = np.quantile(values[1:], (tail, 1 - tail), axis=0)
    return [
        Estimate(*ends) for ends in zip(point.tolist(), low.tolist(), high.tolist(), strict=True)
    ]

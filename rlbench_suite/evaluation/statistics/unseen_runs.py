"""Bounds on what a few runs cannot exclude: runs that fail, or succeed, unlike all that were seen.

Five runs that all score 0.99 look the same whether every run does or one in ten fails. No interval
that is made from their spread can tell. Two bounds can, without an assumption on how scores are
distributed:

* **Share of unseen runs.** If a share ``p`` of runs is of another kind, ``n`` independent runs show
  none of them with probability ``(1 - p)^n``. So ``n`` runs exclude, with 95 % confidence, every
  share above ``1 - 0.05^(1/n)`` (:func:`unseen_share`; Clopper and Pearson 1934,
  doi:10.1093/biomet/26.4.404). Over several tasks ``n`` counts the runs of all tasks, and the share
  is the mean over tasks.
* **One more run at the bound.** Where the runs show more than one kind, the interval is widened to
  that of Learned-Miller and Thomas (2019, arXiv:1905.06208): runs get random weights as the
  spacings of uniform numbers have them, and one unseen run, which scores as low (or as high) as a
  run can, gets a weight like the others. Of scores that take two values this is Clopper and
  Pearson's exact interval.

A run can score from :data:`SCALE` or the lowest and highest run seen, whichever is wider. Verdicts
ask for more of an agent whose scores spread wider than those of its rival (:func:`ends_of_runs`),
because its tail may be longer than what was seen of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from rlbench_suite.evaluation.statistics.intervals import Estimate, Floats, Sample

SCALE = (0.0, 1.0)
"""Normalised scores of the players that are the zero and the reference.

An unseen run is taken to lie between them, or between the lowest and the highest score seen if that
is wider.
"""

Bounds = tuple[float, float]
Kind = Literal["mean", "iqm", "median", "optimality_gap"]

GAPS = {5: 0.75, 6: 0.7, 7: 0.65, 8: 0.6, 9: 0.55}
"""Gap between neighbouring scores of a task above which they are two kinds of runs.

It is a fraction of their range, by the number of seeds. Fewer seeds count as five, and from ten
seeds on it is a half.
"""

MIN_COMMON_VARIANCE_RATIO = 1.5
"""Ratio of variances from which seeds rise and fall together.

It divides the variance of the mean over tasks by whole seeds by that of independent runs.
"""

TAIL_INSIDE_SCALE = 2.0
"""Distance beyond the seen runs at which an unseen one may lie, for scores within :data:`SCALE`.

Its unit is the distance from an agent's median to its lowest or highest score. Chosen, like
:data:`TAIL_OUTSIDE_SCALE`, so that ``benchmarks/coverage/false_verdicts.py`` counts at most .06 for
lognormal scores against scores that are always equal, or spread by .3.
"""

TAIL_OUTSIDE_SCALE = 4.0
"""The same where scores leave the scale, so that nothing bounds them."""

_MAX_WEIGHINGS = 1_000
"""Random weighings of the runs."""
_MIN_WEIGHINGS = 400
"""The same with many runs, whose interval the bounds hardly change."""
_MAX_WEIGHTS = 500_000
"""Weighings times runs, from which there are fewer weighings."""
_LEVEL = 0.05


def unseen_share(runs: int) -> float:
    """Return the largest share of other runs that runs of one kind leave possible.

    Runs of one kind exclude a larger share of another kind with 95 % confidence.

    Args:
        runs: number of independent runs, at least one.
    """
    return -math.expm1(math.log(_LEVEL) / runs)


def on_unseen(seeds: int, tasks: int = 0) -> str:
    """Return a sentence on the share of unseen runs, which belongs beside every interval.

    Args:
        seeds: fewest seeds of a task.
        tasks: number of tasks of an aggregate; 0 without one.
    """
    words = (
        f"{seeds} seeds cannot exclude that up to {unseen_share(seeds):.0%} of an agent's runs on "
        "a task fail, or "
        "succeed, unlike all that were seen (95 % confidence)"
    )
    if tasks > 1:
        words += (
            f", nor {seeds * tasks} runs on {tasks} tasks up to {unseen_share(seeds * tasks):.1%}"
        )
    return (
        f"{words}. Intervals count such runs only where the scores of a task leave a wide gap "
        "between them, as those of few seeds often do, or are all equal."
    )


def runs_to_exclude(share: float) -> int:
    """Return how many runs of one kind exclude a share of another kind, in (0, 1]."""
    if share == 1:  # also a share that rounds to it
        return 1
    return math.ceil(math.log(_LEVEL) / math.log1p(-share) - 1e-9)


def of_two_kinds(scores: Floats) -> bool:
    """Return whether a task's scores, ``(n_seeds,)``, are all equal or have a wide gap."""
    if len(scores) < 2:
        return False
    ordered = np.sort(scores)
    width = ordered[-1] - ordered[0]
    smallest = 1e-9 * max(abs(ordered[0]), abs(ordered[-1]))
    if width <= smallest:  # below that it is rounding
        return True
    fraction = GAPS.get(max(len(scores), 5), 0.5)
    return bool(np.diff(ordered).max() > fraction * width)


def ends_of_runs(scores: Floats) -> tuple[Bounds, Bounds]:
    """Return the lowest and highest score that an unseen run of each of two agents may have.

    A permutation test of differences takes these to be as likely as their negatives. That holds if
    the scores of both agents have the same shape. If those of one agent spread wider, few runs may
    have missed the long tail of their distribution: of lognormal scores, seven lie below the mean
    with a probability of .07. So an unseen run of that agent may lie beyond all that was seen, the
    further the more its spread exceeds that of the other agent. Scores of two kinds
    (:func:`of_two_kinds`) show where their other kind lies, and have no such tail.

    Args:
        scores: of both agents, shape ``(n_pairs, 2)``.
    """
    lowest, highest = min(SCALE[0], float(scores.min())), max(SCALE[1], float(scores.max()))
    variances = scores.var(axis=0)
    ends = []
    for agent in (0, 1):
        agent_scores = scores[:, agent]
        low, high = lowest, highest
        if variances[agent] > variances[1 - agent] and not of_two_kinds(agent_scores):
            excess = float(1 - variances[1 - agent] / variances[agent])
            median = float(np.median(agent_scores))
            minimum = float(agent_scores.min())
            maximum = float(agent_scores.max())
            below = TAIL_INSIDE_SCALE if lowest >= SCALE[0] else TAIL_OUTSIDE_SCALE
            above = TAIL_INSIDE_SCALE if highest <= SCALE[1] else TAIL_OUTSIDE_SCALE
            low = min(low, minimum - excess * below * (median - minimum))
            high = max(high, maximum + excess * above * (maximum - median))
        ends.append((low, high))
    return ends[0], ends[1]


def widen(
    estimate: Estimate,
    sample: Sample,
    kind: Kind,
    bounds: Bounds | None,
    confidence: float,
    seed: int,
) -> Estimate:
    """Return the estimate with an interval that does not claim what the runs cannot show.

    * If whole seeds rise and fall together over tasks, the interval is that of whole seeds.
    * A task with one seed counts as varying as much as the others do on average.
    * If tasks whose runs are of two kinds, or all equal, have half of the variance, or there is
      none, the interval also covers that of one more run at the bounds.

    Args:
        estimate: the estimate with its studentised interval.
        sample: the scores; seeds are in the same order in every task.
        kind: the statistic.
        bounds: lowest and highest score of a run that was not seen; None widens nothing.
        confidence: nominal coverage.
        seed: of the random weights.
    """
    if bounds is None or not math.isfinite(estimate.low):
        return estimate
    if kind == "median" and len(sample.tasks) < 3:
        kind = "mean"  # which it is
    strata = (
        [np.minimum(values, 1) for values in sample.strata]
        if kind == "optimality_gap"
        else sample.strata
    )
    variances = [
        values.var(ddof=1) / len(values) if len(values) > 1 else math.nan for values in strata
    ]
    factor, together = _stretch(strata, variances, confidence)
    low = estimate.point - factor * (estimate.point - estimate.low)
    high = estimate.point + factor * (estimate.high - estimate.point)
    if together and kind != "iqm":
        strata = (np.mean(strata, axis=0),)
        variances = [float(strata[0].var(ddof=1))]
    total = np.nansum(variances)
    lumpy = sum(
        variance
        for values, variance in zip(strata, variances, strict=True)
        if len(values) > 1 and of_two_kinds(values)
    )
    tied = kind == "iqm" and any(len(np.unique(values)) < len(values) for values in strata)
    if total <= _rounding(strata) or lumpy >= total / 2:
        ends = _one_more_run(strata, kind, bounds, confidence, seed)
    elif tied:
        ends = _one_more_run(strata, kind, (math.inf, -math.inf), confidence, seed)
    else:
        ends = low, high
    low, high = min(low, ends[0]), max(high, ends[1])
    return Estimate(estimate.point, max(low, 0.0) if kind == "optimality_gap" else low, high)


def _rounding(strata: Sequence[Floats]) -> float:
    """Return the variance of the mean of seeds below which they count as equal."""
    return 1e-20 * max(float(np.abs(values).max()) for values in strata) ** 2


def _stretch(
    strata: Sequence[Floats], variances: Sequence[float], confidence: float
) -> tuple[float, bool]:
    """Return the factor by which an interval of independent runs is too narrow.

    The second value says whether seeds move together.
    """
    total_variance = float(np.nansum(variances))
    if total_variance <= _rounding(strata):
        return 1.0, False
    single = sum(len(values) == 1 for values in strata)
    if single and single < len(strata):
        spreads = [values.var(ddof=1) for values in strata if len(values) > 1]
        return math.sqrt(1 + single * float(np.mean(spreads)) / total_variance), False
    seeds = len(strata[0])
    if len(strata) < 2 or any(len(values) != seeds for values in strata):
        return 1.0, False
    by_seed = np.mean(strata, axis=0)
    ratio = by_seed.var(ddof=1) / seeds * len(strata) ** 2 / total_variance
    if ratio <= MIN_COMMON_VARIANCE_RATIO:
        return 1.0, False
    tail = 1 - confidence
    return math.sqrt(ratio) * float(critical_t(tail, seeds - 1) / critical_t(tail, 1e9)), True


def _one_more_run(
    strata: Sequence[Floats], kind: Kind, bounds: Bounds, confidence: float, seed: int
) -> tuple[float, float]:
    """Return the ends of the interval with one unseen run at either bound."""
    pooled = np.concatenate(strata)
    tail = (1 - confidence) / 2
    ends = []
    for bound, quantile in (
        (min(bounds[0], float(pooled.min())), tail),
        (max(bounds[1], float(pooled.max())), 1 - tail),
    ):
        values = _weighted_statistic(strata, bound, kind, seed)
        ends.append(float(np.quantile(values, quantile)))
    if kind == "optimality_gap":
        ends = [1 - ends[1], 1 - ends[0]]
    return ends[0], ends[1]


def _weighted_statistic(strata: Sequence[Floats], bound: float, kind: Kind, seed: int) -> Floats:
    """Return the statistic of the runs and one at the bound under random weights.

    The shape is ``(n_weighings,)``.
    """
    sizes = tuple(len(values) for values in strata)
    unseen, weights = _weights(sizes, seed)
    if kind == "median":
        shares = [_beta(size, len(unseen), seed, task) for task, size in enumerate(sizes)]
        means = [
            share * bound + (1 - share) * np.einsum("i,ir->r", values, run_weights) * len(strata)
            for values, run_weights, share in zip(strata, weights, shares, strict=True)
        ]
        return np.asarray(np.median(means, axis=0))
    pooled = np.concatenate([*strata, [bound]])
    all_weights = np.concatenate(
        [*(run_weights * (1 - unseen) for run_weights in weights), unseen[None]]
    )
    if kind != "iqm":
        return np.asarray(np.einsum("i,ir->r", pooled, all_weights))
    order = np.argsort(pooled, kind="stable")
    reached = np.clip(np.cumsum(all_weights[order], axis=0), 0.25, 0.75)
    return np.asarray(
        np.einsum("i,ir->r", pooled[order], np.diff(reached, axis=0, prepend=0.25)) * 2
    )


@lru_cache(maxsize=4)
def _weights(sizes: tuple[int, ...], seed: int) -> tuple[Floats, tuple[Floats, ...]]:
    """Return the share of the unseen run, and the weights of the runs of each task.

    The weights sum to one over all tasks.
    """
    rng = np.random.default_rng((seed, 2, *sizes[:8]))
    number = _weighings(sum(sizes))
    weights = []
    for size in sizes:
        spacings = rng.standard_exponential((size, number))
        spacings /= spacings.sum(axis=0) * len(sizes)
        weights.append(spacings)
    return _beta(min(sizes) * len(sizes), number, seed, -1), tuple(weights)


def _weighings(runs: int) -> int:
    return min(max(_MAX_WEIGHTS // runs, _MIN_WEIGHINGS), _MAX_WEIGHINGS)


def _beta(runs: int, number: int, seed: int, task: int) -> Floats:
    """Return evenly spaced quantiles of the weight of one of ``runs + 1`` runs, in random order."""
    quantiles = (np.arange(number) + 0.5) / number
    return np.random.default_rng((seed, 3, task + 1)).permutation(
        -np.expm1(np.log(quantiles) / runs)
    )


def proportion_interval(
    successes: float, trials: float, confidence: float = 0.95
) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a probability; numbers need not be whole.

    Args:
        successes: number of successes, in [0, trials].
        trials: number of independent trials, > 0.
        confidence: least coverage.
    """
    tail = (1 - confidence) / 2
    low = 0.0 if successes <= 0 else _beta_quantile(tail, successes, trials - successes + 1)
    high = (
        1.0 if successes >= trials else _beta_quantile(1 - tail, successes + 1, trials - successes)
    )
    return low, high


@lru_cache(maxsize=4_096)
def _beta_quantile(probability: float, a: float, b: float) -> float:
    """Return a quantile of the beta distribution by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if _beta_cdf(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function by its continued fraction.

    It is that of Abramowitz and Stegun 26.5.8.
    """
    if x <= 0 or x >= 1:
        return float(x > 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_cdf(1 - x, b, a)
    front = (
        math.exp(
            math.lgamma(a + b)
            - math.lgamma(a)
            - math.lgamma(b)
            + a * math.log(x)
            + b * math.log1p(-x)
        )
        / a
    )
    # Lentz's method
    fraction, upper, lower = 1.0, 1.0, 0.0
    for i in range(400):
        m = i // 2
        if i == 0:
            term = 1.0
        elif i % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        lower = 1 / (1 + term * lower)
        upper = 1 + term / upper
        change = upper * lower
        fraction *= change
        if abs(change - 1) < 1e-13:
            break
    return front * (fraction - 1)


def stratified_share(
    shares: Floats, runs: Sequence[int], confidence: float
) -> tuple[Floats, Floats]:
    """Return the ends of score intervals of the mean over tasks of a share of runs.

    Each has shape ``(n,)``.

    One task has Clopper and Pearson's interval, several have Wilson's, stratified (Yan and Su,
    Statistics in Biopharmaceutical Research 2(3), 2010): each task's interval has the level at
    which their sum has the confidence.

    Args:
        shares: share of each task, shape ``(n_tasks, n)``.
        runs: number of independent runs of each task.
        confidence: nominal coverage.
    """
    if len(shares) == 1:
        ends = [
            proportion_interval(float(share) * runs[0], runs[0], confidence) for share in shares[0]
        ]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])
    n = np.asarray(runs, float)[:, None]
    z = float(critical_t(1 - confidence, 1e12))
    middle = (shares * n + z * z / 2) / (n + z * z)  # Wilson's centre, which is never 0 or 1
    errors = np.sqrt(middle * (1 - middle) / n)
    quantile = z * np.sqrt((errors**2).sum(0)) / errors.sum(0)
    centre = (shares + quantile**2 / (2 * n)) / (1 + quantile**2 / n)
    half = (
        quantile
        / (1 + quantile**2 / n)
        * np.sqrt(shares * (1 - shares) / np.maximum(n - 1, 1) + quantile**2 / (4 * n * n))
    )
    return np.maximum((centre - half).mean(0), 0), np.minimum((centre + half).mean(0), 1)


def critical_t(level: float, freedom: Any) -> Any:
    """Return the value that Student's t exceeds in size with probability ``level``.

    Expansion 26.7.5 of Abramowitz and Stegun (1964), for at least 4 degrees of freedom.
    """
    z = -NormalDist().inv_cdf(level / 2)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )

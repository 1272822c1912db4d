"""Aggregate scores with stratified-bootstrap intervals.

Scores are normalised (:mod:`rlbench_suite.scale`) and given as a mapping from task to the scores of its seeds, one
number a seed. Tasks may have different numbers of seeds; **every task counts the same**, so a seed of task
``j`` with ``n_j`` seeds carries ``1 / n_j`` of its task's weight. With equal numbers of seeds each metric is that of
Agarwal et al., *Deep Reinforcement Learning at the Edge of the Statistical Precipice* (NeurIPS 2021), and of its
library, rliable.

Intervals come from the stratified bootstrap (:mod:`rlbench_suite.evaluation.intervals`) and describe new seeds on the
same tasks. Those of the interquartile mean, the mean and the optimality gap are studentised. Nominal 95 % intervals
then cover the truth 93 to 97 % of the time from five seeds on, for normal and for exponential scores, on one task and
over ten; ``benchmarks/interval_coverage.py`` measures it. ``method="percentile"`` gives rliable's intervals, which
cover 79 to 92 % at five seeds. Below five seeds neither method is to be trusted.

Other statistics have percentile intervals:

* the median over three or more tasks. Its error depends on which task is in the middle, and studentised intervals cover
  less (82 to 93 % over ten tasks) than percentile intervals. The median over one or two tasks is the mean.
* profiles and probabilities of improvement. They are fractions that are often 0 or 1, where every resample has the
  standard error 0.

Every statistic is a sum over scores weighted by the counts of a resample, including the interquartile mean once the
scores are sorted. So no replicate is sorted again. A task with one seed adds nothing to the width. If no task has two
seeds, there is nothing to resample, and ``low`` and ``high`` are NaN.

The same seed gives the same numbers to the bit, whatever the number of threads and the order of tasks or agents, and an
agent's own intervals do not depend on which agents it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlbench_suite.evaluation.intervals import Estimate, Floats, Method, Metric, Sample, Scores, bootstrap

TAUS: tuple[float, ...] = tuple(round(0.02 * i, 2) for i in range(76))
"""Default thresholds of performance profiles: 0, 0.02, ..., 1.5."""

REPLICATES = 5_000
CURVE_REPLICATES = 2_000
"""Replicates for profiles, learning curves and probabilities of improvement. Plots need fewer than tables."""


@dataclass(frozen=True)
class Profile:
    """Fraction of scores above each threshold and the ends of its pointwise interval; shapes ``(n_taus,)``."""

    taus: Floats
    fraction: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Curve:
    """Interquartile mean at each checkpoint and the ends of its pointwise interval; shapes ``(n_checkpoints,)``."""

    iqm: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Summary:
    """Summary of one agent: four aggregates, the performance profile, and the number of seeds of each task."""

    iqm: Estimate
    mean: Estimate
    median: Estimate
    optimality_gap: Estimate
    profile: Profile
    seeds: Mapping[str, int]


@dataclass(frozen=True)
class Comparison:
    """Comparison of several agents on the tasks that all of them have.

    Attributes:
        tasks: the tasks compared, sorted.
        left_out: tasks on which some agent has no score, sorted. No number here includes them.
        agents: summary by agent.
        improvement: probability that a run of x beats a run of y, by ``(x, y)``, for every ordered pair.
    """

    tasks: tuple[str, ...]
    left_out: tuple[str, ...]
    agents: Mapping[str, Summary]
    improvement: Mapping[tuple[str, str], Estimate]


def iqm(
    scores: Scores,
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> Estimate:
    """Return the interquartile mean: the mean of the middle half of all scores.

    With N scores in all and m tasks, a score of task j has the weight ``N / (m n_j)``. The weight ``N // 4`` is cut
    from each end of the sorted scores; a score on the edge keeps the part inside. With equal numbers of seeds every
    weight is one, and this equals ``scipy.stats.trim_mean(all_scores, 0.25)`` and rliable's ``aggregate_iqm``. These
    also cut a whole number of scores, which is a little less than a quarter unless N is a multiple of 4.

    Args:
        scores: task to scores, shape ``(n_seeds,)``.
        replicates: number of bootstrap replicates.
        confidence: nominal coverage of the interval, in (0, 1).
        seed: of the bootstrap, >= 0.
        method: ``studentised`` or ``percentile``.

    Raises:
        ValueError: no task, a task without scores, a score that is not finite, or a setting out of range.
    """
    return _estimate(scores, _IQM, replicates, confidence, seed, method)


def mean(
    scores: Scores,
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> Estimate:
    """Return the mean over tasks of the task's mean score. Arguments and errors as :func:`iqm`."""
    return _estimate(scores, _MEAN, replicates, confidence, seed, method)


def means(
    several: Sequence[Scores],
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> list[Estimate]:
    """Return :func:`mean` of each, far faster than one by one: equal numbers of seeds are computed together."""
    samples = [Sample.of(scores) for scores in several]
    estimates: dict[int, Estimate] = {}
    for sizes in dict.fromkeys(sample.sizes for sample in samples):
        alike = [index for index, sample in enumerate(samples) if sample.sizes == sizes]
        for start in range(0, len(alike), 50):  # replicates of 50 in memory at a time
            part = alike[start : start + 50]
            metric = _mean_of(np.stack([samples[index].pooled for index in part]))
            ((interval,),) = bootstrap([(samples[part[0]],)], [metric], replicates, confidence, seed, method)
            estimates |= zip(part, interval.estimates(), strict=True)
    return [estimates[index] for index in range(len(samples))]


def worst_tenth(scores: np.ndarray) -> float:
    """Return the mean of the lowest tenth of scores ``(n,)``, of the lowest one if there are fewer than ten.

    This is the conditional value at risk at 10 %: the mean of the quantile function over [0, .1] (Rockafellar &
    Uryasev 2000, doi:10.21314/JOR.2000.038). If the tenth is not a whole number, the next score counts in part.
    """
    lowest = np.sort(scores)
    weights = np.clip(max(len(lowest) / 10, 1) - np.arange(len(lowest)), 0, 1)
    return float(np.average(lowest, weights=weights))


def iqm_difference(
    x: Scores,
    y: Scores,
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> Estimate:
    """Return the interquartile mean of x minus that of y, whose scores are pairs: resamples draw both of a pair.

    Args:
        x: task to scores of one agent, shape ``(n_seeds,)``.
        y: scores of the other agent on the same tasks, in the order of x's seeds.
        replicates: number of bootstrap replicates.
        confidence: nominal coverage of the interval, in (0, 1).
        seed: of the bootstrap, >= 0.
        method: ``studentised`` or ``percentile``.

    Raises:
        ValueError: as :func:`iqm`, or tasks or numbers of seeds that differ.
    """
    one, other = Sample.of(x, "x"), Sample.of(y, "y")
    if (one.tasks, one.sizes) != (other.tasks, other.sizes):
        raise ValueError("x and y must be pairs: they need the same tasks, each with equal numbers of seeds.")

    def value(sample: Sample, counts: Floats) -> Floats:
        return _iqm(one, counts) - _iqm(other, counts)

    def scale(sample: Sample, counts: Floats) -> Floats:
        ends = _quartiles(one, counts), _quartiles(other, counts)
        pairs = [
            np.clip(a[:, None], *ends[0]) - np.clip(b[:, None], *ends[1])
            for a, b in zip(one.strata, other.strata, strict=True)
        ]
        return _standard_error(pairs, one.slices, counts, by_replicate=True)[None]

    metric = Metric(value, scale)
    return bootstrap([(one,)], [metric], replicates, confidence, seed, method)[0][0].estimates()[0]


def median(
    scores: Scores,
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> Estimate:
    """Return the median over tasks of the task's mean score. Arguments and errors as :func:`iqm`."""
    return _estimate(scores, _MEDIAN, replicates, confidence, seed, method)


def optimality_gap(
    scores: Scores,
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> Estimate:
    """Return the mean over tasks of the task's mean of ``1 - min(score, 1)``. Smaller is better.

    Arguments and errors as :func:`iqm`.
    """
    return _estimate(scores, _OPTIMALITY_GAP, replicates, confidence, seed, method)


def performance_profile(
    scores: Scores,
    taus: ArrayLike = TAUS,
    *,
    replicates: int = CURVE_REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
) -> Profile:
    """Return, for each tau, the mean over tasks of the fraction of the task's scores above tau.

    Args:
        scores: task to scores, shape ``(n_seeds,)``.
        taus: thresholds, shape ``(n_taus,)``, finite.
        replicates: number of bootstrap replicates.
        confidence: nominal pointwise coverage of the band, in (0, 1).
        seed: of the bootstrap, >= 0.

    Raises:
        ValueError: as :func:`iqm`, or thresholds that are not a finite vector.
    """
    return _profiles([Sample.of(scores)], taus, replicates, confidence, seed)[0]


def probability_of_improvement(
    x: Scores, y: Scores, *, replicates: int = CURVE_REPLICATES, confidence: float = 0.95, seed: int = 0
) -> Estimate:
    """Return the probability that a run of x scores above a run of y on a random task. Ties count one half.

    The mean over the tasks both have of the Mann-Whitney statistic ``U_j / (n_xj n_yj)``. In the bootstrap x and y are
    resampled independently: seeds of different agents are not pairs.

    Args:
        x: task to scores of one agent, shape ``(n_seeds,)``.
        y: task to scores of the other; tasks that only one of them has are not counted.
        replicates: number of bootstrap replicates.
        confidence: nominal coverage of the interval, in (0, 1).
        seed: of the bootstrap, >= 0.

    Raises:
        ValueError: as :func:`iqm`, or no task in common.
    """
    samples = {"x": Sample.of(x, "x"), "y": Sample.of(y, "y")}
    tasks = _shared_tasks(samples)
    pair = samples["x"].on(tasks), samples["y"].on(tasks)
    return bootstrap([pair], [_IMPROVEMENT], replicates, confidence, seed, "percentile")[0][0].estimates()[0]


def sample_efficiency(
    curves: Mapping[str, ArrayLike],
    *,
    replicates: int = CURVE_REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> Curve:
    """Return the interquartile mean at each checkpoint of training. Whole runs are resampled, as in rliable.

    Args:
        curves: task to scores, shape ``(n_seeds, n_checkpoints)``, with the same checkpoints in every task.
        replicates: number of bootstrap replicates.
        confidence: nominal pointwise coverage of the band, in (0, 1).
        seed: of the bootstrap, >= 0.
        method: ``studentised`` or ``percentile``.

    Raises:
        ValueError: as :func:`iqm`, or shapes that do not agree.
    """
    arrays = {task: np.asarray(values, dtype=np.float64) for task, values in curves.items()}
    for task, values in arrays.items():
        if values.ndim != 2:
            raise ValueError(f"Curves of task {task!r} have shape {values.shape}; (n_seeds, n_checkpoints) is needed.")
    lengths = {task: values.shape[1] for task, values in arrays.items()}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        raise ValueError(f"Every task needs the same checkpoints, at least one; their numbers are {lengths}.")
    checkpoints = next(iter(lengths.values()), 1)
    samples = [
        (Sample.of({task: a[:, k] for task, a in arrays.items()}, f"checkpoint {k}"),) for k in range(checkpoints)
    ]
    intervals = [interval for (interval,) in bootstrap(samples, [_IQM], replicates, confidence, seed, method)]
    return Curve(*(np.concatenate(ends) for ends in zip(*((i.point, i.low, i.high) for i in intervals), strict=True)))


def frequency_averaged_score(intervals: ArrayLike, scores: ArrayLike) -> Floats:
    """Return the Frequency-Averaged Score: the area under the score by decision interval, over the interval's range.

    ``FAS = integral of R(a) da / (a_max - a_min)`` by the trapezoidal rule, R(a) being the score of a player that
    decides every a steps (Patel and Siegelmann, *Overcoming Slow Decision Frequencies in Continuous Control*, ICLR
    2025). Their code divides by a_max, so that a constant R does not give R; here it does. One value comes out for
    each leading index, so values by task and seed go into :func:`iqm` or :func:`mean` for an interval.

    Args:
        intervals: decision intervals in steps, shape ``(n_intervals,)``, positive and increasing, at least two.
        scores: normalised scores, shape ``(..., n_intervals)``.

    Returns:
        Shape ``(...)``.

    Raises:
        ValueError: intervals or scores out of range, or shapes that do not agree.
    """
    a, r = np.asarray(intervals, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if a.ndim != 1 or len(a) < 2 or not np.isfinite(a).all() or a[0] <= 0 or (np.diff(a) <= 0).any():
        raise ValueError(f"Decision intervals must be at least two positive, increasing numbers; given {a.tolist()}.")
    if r.shape[-1:] != a.shape:
        raise ValueError(f"Scores have shape {r.shape}; the last axis must have the {len(a)} decision intervals.")
    if not np.isfinite(r).all():
        index = tuple(np.argwhere(~np.isfinite(r))[0].tolist())
        raise ValueError(f"The score at index {index} is {r[index]}; scores must be finite.")
    return np.asarray(np.trapezoid(r, a, axis=-1) / (a[-1] - a[0]))


def compare(
    agents: Mapping[str, Scores],
    *,
    taus: ArrayLike = TAUS,
    replicates: int = REPLICATES,
    curve_replicates: int = CURVE_REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> Comparison:
    """Compute every statistic of several agents on the tasks that all of them have.

    Aggregates over different tasks cannot be compared, so a task that some agent lacks is left out for all and named in
    the result. Each number equals the result of the function of the same name on those tasks. A probability of
    improvement is computed for two agents in alphabetical order; the reverse is its complement. Agents with the same
    numbers of seeds share their resamples, which saves time and changes no result.

    Args:
        agents: scores by agent and task, shape ``(n_seeds,)``.
        taus: thresholds of the performance profiles, shape ``(n_taus,)``.
        replicates: bootstrap replicates of the four aggregates.
        curve_replicates: bootstrap replicates of profiles and probabilities of improvement.
        confidence: nominal coverage of every interval, in (0, 1).
        seed: of the bootstrap, >= 0.
        method: ``studentised`` or ``percentile``; profiles and probabilities always have percentile intervals.

    Raises:
        ValueError: as :func:`iqm`, no agent, or no task that all agents have.
    """
    if not agents:
        raise ValueError("There are no agents to compare.")
    samples = {agent: Sample.of(scores, f"agent {agent!r}") for agent, scores in agents.items()}
    tasks = _shared_tasks(samples)
    left_out = sorted({task for sample in samples.values() for task in sample.tasks} - set(tasks))
    samples = {agent: sample.on(tasks) for agent, sample in samples.items()}

    singles = [(sample,) for sample in samples.values()]
    aggregates = bootstrap(singles, [_IQM, _MEAN, _MEDIAN, _OPTIMALITY_GAP], replicates, confidence, seed, method)
    profiles = _profiles(list(samples.values()), taus, curve_replicates, confidence, seed)
    summaries = {}
    for (agent, sample), intervals, profile in zip(samples.items(), aggregates, profiles, strict=True):
        middle, average, typical, gap = (interval.estimates()[0] for interval in intervals)
        seeds = dict(zip(tasks, sample.sizes, strict=True))
        summaries[agent] = Summary(middle, average, typical, gap, profile, seeds)

    pairs = list(combinations(sorted(samples), 2))
    matched = [(samples[x], samples[y]) for x, y in pairs]
    improvements = bootstrap(matched, [_IMPROVEMENT], curve_replicates, confidence, seed, "percentile")
    improvement: dict[tuple[str, str], Estimate] = {}
    for (x, y), (interval,) in zip(pairs, improvements, strict=True):
        better = interval.estimates()[0]
        improvement[x, y] = better
        improvement[y, x] = Estimate(1 - better.point, 1 - better.high, 1 - better.low)
    return Comparison(tasks, tuple(left_out), summaries, improvement)


def _estimate(
    scores: Scores, metric: Metric, replicates: int, confidence: float, seed: int, method: Method
) -> Estimate:
    return bootstrap([(Sample.of(scores),)], [metric], replicates, confidence, seed, method)[0][0].estimates()[0]


def _profiles(
    samples: Sequence[Sample], taus: ArrayLike, replicates: int, confidence: float, seed: int
) -> list[Profile]:
    grid = np.asarray(taus, dtype=np.float64)
    if grid.ndim != 1 or not len(grid) or not np.isfinite(grid).all():
        raise ValueError(f"Thresholds must be a vector of finite numbers; given {grid.tolist()}.")

    def fraction_above(sample: Sample, counts: Floats) -> Floats:
        # Tasks of one size together: such products add whole numbers, so a threaded one is exact in any order.
        above = (sample.pooled > grid[:, None]).astype(np.float64)
        size_of = np.repeat(sample.sizes, sample.sizes)
        groups = [(size, size_of == size) for size in sorted(set(sample.sizes))]
        return sum(above[:, rows] @ counts[rows] / size for size, rows in groups) / len(sample.tasks)

    subjects, metrics = [(sample,) for sample in samples], [Metric(fraction_above)]
    intervals = bootstrap(subjects, metrics, replicates, confidence, seed, "percentile")
    return [Profile(grid, interval.point, interval.low, interval.high) for (interval,) in intervals]


def _shared_tasks(samples: Mapping[str, Sample]) -> tuple[str, ...]:
    shared = set.intersection(*(set(sample.tasks) for sample in samples.values()))
    if not shared:
        lists = "; ".join(f"{owner} has {', '.join(sample.tasks)}" for owner, sample in samples.items())
        raise ValueError(f"There is no task that all have scores on: {lists}.")
    return tuple(sorted(shared))


BLOCK = 32
"""Scores that are walked past at once where no replicate reaches a cut. It does not change a result beyond rounding."""


def _blocks(sample: Sample, counts: Floats) -> Iterator[tuple[Floats, Floats, Floats, Floats, Floats]]:
    """Walk up the sorted scores in blocks.

    Yields:
        Scores and weights of a block, both ``(n,)``, its counts ``(n, n_replicates)``, and the weight that each
        replicate has drawn before and after it, both ``(n_replicates,)``.
    """
    order = np.argsort(sample.pooled, kind="stable")
    before = np.zeros(counts.shape[1])
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        drawn, weights = counts[rows], sample.weights[rows]
        after = before + np.einsum("i,ir->r", weights, drawn)
        yield sample.pooled[rows], weights, drawn, before, after
        before = after


def _iqm(sample: Sample, counts: Floats) -> Floats:
    total = len(sample.pooled)
    cut = total // 4
    lowest, highest = float(cut), float(total - cut)
    result = np.zeros(counts.shape[1])
    # A score counts with the weight that it adds between the two cuts. Only blocks in which some replicate reaches a
    # cut are walked row by row, so that the working set stays in cache.
    for scores, weights, drawn, start, end in _blocks(sample, counts):
        if end.max() <= lowest:
            continue
        if start.min() >= highest:
            break
        if start.min() >= lowest and end.max() <= highest:
            result += np.einsum("i,ir->r", weights * scores, drawn)
            continue
        reached, before = start.copy(), np.clip(start, lowest, highest)
        after, kept = np.empty_like(reached), np.empty_like(reached)
        for row, score, weight in zip(drawn, scores, weights, strict=True):
            reached += np.multiply(row, weight, out=kept)
            np.minimum(np.maximum(reached, lowest, out=after), highest, out=after)
            result += np.multiply(np.subtract(after, before, out=kept), score, out=kept)
            before, after = after, before
    return (result / (highest - lowest))[None]


def _quartiles(sample: Sample, counts: Floats) -> tuple[Floats, Floats]:
    """Return the scores between which the scale of the interquartile mean is taken, each of shape ``(n_replicates,)``.

    They lie one score outside the cuts of the interquartile mean. Exactly at the cuts, a fifth of the resamples of five
    scores would have no spread at all.
    """
    total = len(sample.pooled)
    cut = max(total // 4 - 1, 0) + 1e-9  # weights of ragged tasks add up with rounding
    low, high = np.empty(counts.shape[1]), np.empty(counts.shape[1])
    for scores, weights, drawn, start, end in _blocks(sample, counts):
        if start.min() >= total - cut:
            break
        if end.max() <= cut:
            low.fill(scores[-1])
            high.fill(scores[-1])
            continue
        if start.min() > cut and end.max() < total - cut:
            high.fill(scores[-1])
            continue
        reached = start.copy()
        for row, score, weight in zip(drawn, scores, weights, strict=True):
            np.copyto(low, score, where=reached <= cut)
            np.copyto(high, score, where=reached < total - cut)
            reached += row * weight
    return low, high


def _error(sample: Sample, counts: Floats, low: Floats | float = -np.inf, high: Floats | float = np.inf) -> Floats:
    """Return the standard error of the mean over tasks of scores clipped to [low, high], shape ``(1, n_replicates)``.

    Args:
        sample: the scores.
        counts: of each resample, shape ``(n_scores, n_replicates)``.
        low: a number, or one for each replicate, shape ``(n_replicates,)``.
        high: likewise.
    """
    by_replicate = isinstance(low, np.ndarray)
    strata = [np.clip(values[:, None] if by_replicate else values, low, high) for values in sample.strata]
    return _standard_error(strata, sample.slices, counts, by_replicate=by_replicate)[None]


def _standard_error(
    strata: Sequence[Floats], slices: Sequence[slice], counts: Floats, *, by_replicate: bool = False
) -> Floats:
    """Return the standard error of the mean over tasks of each task's mean, shape ``(..., n_replicates)``.

    Args:
        strata: values of each task, shape ``(..., n)``.
        slices: rows of each task in the counts.
        counts: of each resample, shape ``(n_scores, n_replicates)``.
        by_replicate: each replicate has values of its own, shape ``(n, n_replicates)``.
    """
    variance: Any = np.zeros(counts.shape[1])
    for values, rows in zip(strata, slices, strict=True):
        own = counts[rows]
        n = len(own)
        if n > 1:
            # From any score: equal scores then have exactly no variance. The smallest scale that counts is a tenth of
            # the sample's, so the difference of the two moments keeps 13 digits.
            deviation = values - (values[0] if by_replicate else values[..., :1])
            terms = "ir,ir->r" if by_replicate else "...i,ir->...r"
            first, second = (np.einsum(terms, power, own) / n for power in (deviation, deviation * deviation))
            variance = variance + np.maximum(second - first * first, 0) / (n - 1)
    return np.asarray(np.sqrt(variance) / len(strata))


def _task_means(sample: Sample, values: Floats, counts: Floats) -> Floats:
    """Return the mean of each task's resampled values ``(..., n_scores)``, shape ``(n_tasks, ..., n_replicates)``."""
    # einsum adds in a fixed order, unlike a threaded matrix product
    return np.stack([np.einsum("...i,ir->...r", values[..., s], counts[s]) / (s.stop - s.start) for s in sample.slices])


def _mean(sample: Sample, counts: Floats) -> Floats:
    return _task_means(sample, sample.pooled, counts).mean(axis=0, keepdims=True)


def _mean_of(pooled: Floats) -> Metric:
    """Return the metric with the means of several agents, whose scores ``(n_agents, n_scores)`` share resamples."""

    def value(sample: Sample, counts: Floats) -> Floats:
        return np.asarray(_task_means(sample, pooled, counts).mean(axis=0))

    def scale(sample: Sample, counts: Floats) -> Floats:
        return _standard_error([pooled[:, rows] for rows in sample.slices], sample.slices, counts)

    return Metric(value, scale)


def _median(sample: Sample, counts: Floats) -> Floats:
    return np.median(_task_means(sample, sample.pooled, counts), axis=0, keepdims=True)


def _optimality_gap(sample: Sample, counts: Floats) -> Floats:
    return 1 - _task_means(sample, np.minimum(sample.pooled, 1), counts).mean(axis=0, keepdims=True)


def _improvement(x: Sample, y: Sample, counts_x: Floats, counts_y: Floats) -> Floats:
    total = np.zeros(counts_x.shape[1])
    for a, b, rows_a, rows_b in zip(x.strata, y.strata, x.slices, y.slices, strict=True):
        wins = (a > b[:, None]) + 0.5 * (a == b[:, None])  # (n_y, n_x); sums of halves are exact in any order
        u = np.einsum("yr,yr->r", wins @ counts_x[rows_a], counts_y[rows_b])
        total += u / (len(a) * len(b))
    return (total / len(x.tasks))[None]


_IQM = Metric(_iqm, lambda sample, counts: _error(sample, counts, *_quartiles(sample, counts)))
_MEAN = Metric(_mean, _error)
_MEDIAN = Metric(_median, lambda sample, counts: _error(sample, counts) if len(sample.tasks) < 3 else None)
_OPTIMALITY_GAP = Metric(_optimality_gap, lambda sample, counts: _error(sample, counts, high=1.0), least=0.0)
_IMPROVEMENT = Metric(_improvement)

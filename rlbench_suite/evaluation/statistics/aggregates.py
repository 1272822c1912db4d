"""Aggregate scores with stratified-bootstrap intervals.

Scores are normalised (:mod:`rlbench_suite.core.scale`) and given as a mapping from task to the
scores of its seeds, one number a seed. Tasks may have different numbers of seeds; **every task
counts the same**, so a seed of task ``j`` with ``n_j`` seeds carries ``1 / n_j`` of its task's
weight. With equal numbers of seeds each metric is that of Agarwal et al., *Deep Reinforcement
Learning at the Edge of the Statistical Precipice* (NeurIPS 2021), and of its library, rliable.

Intervals come from the stratified bootstrap (:mod:`.intervals`) and describe new seeds on the same
tasks. Those of the interquartile mean, the mean and the optimality gap are studentised. Where the
seeds show that their spread tells too little (gaps, equal scores, tasks that rise and fall
together), they are widened (:mod:`.unseen_runs`). ``benchmarks/coverage/score_shapes.py`` measures
how often they cover the truth, for the shapes that scores have, and ``docs/audits/coverage.md``
shows it. ``method="percentile"`` gives rliable's intervals, which nothing widens, and which cover
79 to 92 % at five seeds of normal or exponential scores.

Other statistics have other intervals:

* the median over three or more tasks has percentile intervals. Its error depends on which task is
  in the middle, and studentised intervals cover less (82 to 93 % over ten tasks) than percentile
  intervals. The median over one or two tasks is the mean.
* profiles and probabilities of improvement have score intervals
  (:func:`.unseen_runs.stratified_share`). They are fractions that are often 0 or 1, where every
  resample is the same.

Every statistic is a sum over scores weighted by the counts of a resample, including the
interquartile mean once the scores are sorted. So no replicate is sorted again. A task with one seed
adds nothing to the width. If no task has two seeds, there is nothing to resample, and ``low`` and
``high`` are NaN.

The same seed gives the same numbers to the bit, whatever the number of threads and the order of
tasks or agents, and an agent's own intervals do not depend on which agents it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlbench_suite.core.scale import NORMAL_QUANTILE
from rlbench_suite.evaluation.statistics.intervals import (
    Estimate,
    Floats,
    Method,
    Metric,
    Sample,
    Scores,
    as_floats,
    bootstrap,
)
from rlbench_suite.evaluation.statistics.profiles import (
    TAUS,
    Profile,
    improvement_of,
    profile_of,
    shared_tasks,
    thresholds,
)
from rlbench_suite.evaluation.statistics.unseen_runs import (
    SCALE,
    Bounds,
    Kind,
    of_two_kinds,
    widen,
)

REPLICATES = 5_000
CURVE_REPLICATES = 2_000
"""Replicates for learning curves. Plots need fewer than tables."""


@dataclass(frozen=True)
class Curve:
    """Interquartile mean at each checkpoint with the ends of its pointwise interval.

    The shapes are ``(n_checkpoints,)``.
    """

    iqm: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Summary:
    """Summary of one agent: four aggregates, the performance profile, and seeds of each task."""

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
        improvement: probability that a run of x beats a run of y, by ``(x, y)``, for every ordered
            pair.
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
    bounds: Bounds | None = SCALE,
) -> Estimate:
    """Return the interquartile mean: the mean of the middle half of all scores.

    With N scores in all and m tasks, a score of task j has the weight ``N / (m n_j)``. The weight
    ``N // 4`` is cut from each end of the sorted scores; a score on the edge keeps the part inside.
    With equal numbers of seeds every weight is one, and this equals
    ``scipy.stats.trim_mean(all_scores, 0.25)`` and rliable's ``aggregate_iqm``. These also cut a
    whole number of scores, which is a little less than a quarter unless N is a multiple of 4.

    Args:
        scores: task to scores, shape ``(n_seeds,)``.
        replicates: number of bootstrap replicates.
        confidence: nominal coverage of the interval, in (0, 1).
        seed: of the bootstrap, >= 0.
        method: ``studentised`` or ``percentile``.
        bounds: lowest and highest score that a run may have which was not seen. Studentised
            intervals are widened by it where the seeds show more than one kind of runs; None widens
            none.

    Raises:
        ValueError: no task, a task without scores, a score that is not finite, or a setting out of
            range.
    """
    return _estimate(scores, "iqm", replicates, confidence, seed, method, bounds)


def mean(
    scores: Scores,
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
    bounds: Bounds | None = SCALE,
) -> Estimate:
    """Return the mean over tasks of the task's mean score. Arguments and errors as :func:`iqm`."""
    return _estimate(scores, "mean", replicates, confidence, seed, method, bounds)


def means(
    several: Sequence[Scores],
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
    bounds: Bounds | None = SCALE,
) -> list[Estimate]:
    """Return :func:`mean` of each, far faster than one by one.

    Equal numbers of seeds are computed together.
    """
    samples = [Sample.of(scores) for scores in several]
    estimates: dict[int, Estimate] = {}
    for sizes in dict.fromkeys(sample.sizes for sample in samples):
        alike = [index for index, sample in enumerate(samples) if sample.sizes == sizes]
        for start in range(0, len(alike), 50):  # replicates of 50 in memory at a time
            batch = alike[start : start + 50]
            metric = _mean_of(np.stack([samples[index].pooled for index in batch]))
            ((interval,),) = bootstrap(
                [(samples[batch[0]],)], [metric], replicates, confidence, seed, method
            )
            estimates |= zip(batch, interval.estimates(), strict=True)
    if method == "percentile":
        bounds = None
    return [
        widen(estimates[i], sample, "mean", bounds, confidence, seed)
        for i, sample in enumerate(samples)
    ]


def worst_tenth(scores: np.ndarray) -> float:
    """Return the mean of the lowest tenth of scores ``(n,)``, at least of the lowest one.

    This is the conditional value at risk at 10 %: the mean of the quantile function over [0, .1]
    (Rockafellar & Uryasev 2000, doi:10.21314/JOR.2000.038). If the tenth is not a whole number, the
    next score counts in part.
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
    bounds: Bounds | None = SCALE,
) -> Estimate:
    """Return the interquartile mean of x minus that of y, whose scores are pairs.

    Resamples draw both of a pair.

    Args:
        x: task to scores of one agent, shape ``(n_seeds,)``.
        y: scores of the other agent on the same tasks, in the order of x's seeds.
        replicates: number of bootstrap replicates.
        confidence: nominal coverage of the interval, in (0, 1).
        seed: of the bootstrap, >= 0.
        method: ``studentised`` or ``percentile``.
        bounds: as in :func:`iqm`.

    Raises:
        ValueError: as :func:`iqm`, or tasks or numbers of seeds that differ.
    """
    sample_x, sample_y = Sample.of(x, "x"), Sample.of(y, "y")
    if (sample_x.tasks, sample_x.sizes) != (sample_y.tasks, sample_y.sizes):
        raise ValueError(
            "x and y must be pairs: they need the same tasks, each with equal numbers of seeds."
        )

    def value(sample: Sample, counts: Floats) -> Floats:
        return _iqm(sample_x, counts) - _iqm(sample_y, counts)

    def scale(sample: Sample, counts: Floats) -> Floats:
        ends = _quartiles(sample_x, counts), _quartiles(sample_y, counts)
        pairs = [
            np.clip(a[:, None], *ends[0]) - np.clip(b[:, None], *ends[1])
            for a, b in zip(sample_x.strata, sample_y.strata, strict=True)
        ]
        return _standard_error(pairs, sample_x.slices, counts, by_replicate=True)[None]

    metric = Metric(value, scale)
    estimate = bootstrap([(sample_x,)], [metric], replicates, confidence, seed, method)[0][
        0
    ].estimates()[0]
    if method == "percentile" or bounds is None or not math.isfinite(estimate.low):
        return estimate
    # Where runs of either agent are of two kinds, the distances to the ends of both add up in
    # squares (Newcombe 1998).
    ends = []
    for sample in (sample_x, sample_y):
        middle = float(_iqm(sample, np.ones((len(sample.pooled), 1)))[0, 0])
        interval = widen(Estimate(middle, middle, middle), sample, "iqm", bounds, confidence, seed)
        ends.append((middle - interval.low, interval.high - middle))
    below = math.hypot(ends[0][0], ends[1][1])
    above = math.hypot(ends[0][1], ends[1][0])
    estimate = Estimate(
        estimate.point,
        min(estimate.low, estimate.point - below),
        max(estimate.high, estimate.point + above),
    )
    pairs = Sample(
        sample_x.tasks, tuple(a - b for a, b in zip(sample_x.strata, sample_y.strata, strict=True))
    )
    if all(of_two_kinds(values) for values in pairs.strata):  # equal differences
        width = bounds[1] - bounds[0]
        return widen(estimate, pairs, "iqm", (-width, width), confidence, seed)
    return estimate


def median(
    scores: Scores,
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
    bounds: Bounds | None = SCALE,
) -> Estimate:
    """Return the median over tasks of the task's mean score.

    Arguments and errors as :func:`iqm`.
    """
    return _estimate(scores, "median", replicates, confidence, seed, method, bounds)


def optimality_gap(
    scores: Scores,
    *,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
    bounds: Bounds | None = SCALE,
) -> Estimate:
    """Return the mean over tasks of the task's mean of ``1 - min(score, 1)``. Smaller is better.

    Arguments and errors as :func:`iqm`.
    """
    return _estimate(scores, "optimality_gap", replicates, confidence, seed, method, bounds)


def sample_efficiency(
    curves: Mapping[str, ArrayLike],
    *,
    replicates: int = CURVE_REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> Curve:
    """Return the interquartile mean at each checkpoint of training.

    Whole runs are resampled, as in rliable.

    Args:
        curves: task to scores, shape ``(n_seeds, n_checkpoints)``, with the same checkpoints in
            every task.
        replicates: number of bootstrap replicates.
        confidence: nominal pointwise coverage of the band, in (0, 1).
        seed: of the bootstrap, >= 0.
        method: ``studentised`` or ``percentile``.

    Raises:
        ValueError: as :func:`iqm`, or shapes that do not agree.
    """
    arrays = {
        task: as_floats(values, f"Curves of task {task!r}") for task, values in curves.items()
    }
    for task, values in arrays.items():
        if values.ndim != 2:
            raise ValueError(
                f"Curves of task {task!r} have shape {values.shape}; (n_seeds, n_checkpoints) is "
                "needed."
            )
    lengths = {task: values.shape[1] for task, values in arrays.items()}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        raise ValueError(
            f"Every task needs the same checkpoints, at least one; their numbers are {lengths}."
        )
    checkpoints = next(iter(lengths.values()), 1)
    samples = [
        (Sample.of({task: a[:, k] for task, a in arrays.items()}, f"checkpoint {k}"),)
        for k in range(checkpoints)
    ]
    intervals = [
        interval for (interval,) in bootstrap(samples, [_IQM], replicates, confidence, seed, method)
    ]
    return Curve(
        *(
            np.concatenate(ends)
            for ends in zip(*((i.point, i.low, i.high) for i in intervals), strict=True)
        )
    )


def frequency_averaged_score(intervals: ArrayLike, scores: ArrayLike) -> Floats:
    """Return the Frequency-Averaged Score.

    It is the area under the score by decision interval, over the interval's range.

    ``FAS = integral of R(a) da / (a_max - a_min)`` by the trapezoidal rule, R(a) being the score of
    a player that decides every a steps (Patel and Siegelmann, *Overcoming Slow Decision Frequencies
    in Continuous Control*, ICLR 2025). Their code divides by a_max, so that a constant R does not
    give R; here it does. One value comes out for each leading index, so values by task and seed go
    into :func:`iqm` or :func:`mean` for an interval.

    Args:
        intervals: decision intervals in steps, shape ``(n_intervals,)``, positive and increasing,
            at least two.
        scores: normalised scores, shape ``(..., n_intervals)``.

    Returns:
        Shape ``(...)``.

    Raises:
        ValueError: intervals or scores out of range, or shapes that do not agree.
    """
    a, r = np.asarray(intervals, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if (
        a.ndim != 1
        or len(a) < 2
        or not np.isfinite(a).all()
        or a[0] <= 0
        or (np.diff(a) <= 0).any()
    ):
        raise ValueError(
            "Decision intervals must be at least two positive, increasing numbers; given "
            f"{a.tolist()}."
        )
    if r.shape[-1:] != a.shape:
        raise ValueError(
            f"Scores have shape {r.shape}; the last axis must have the {len(a)} decision intervals."
        )
    if not np.isfinite(r).all():
        index = tuple(np.argwhere(~np.isfinite(r))[0].tolist())
        raise ValueError(f"The score at index {index} is {r[index]}; scores must be finite.")
    return np.asarray(np.trapezoid(r, a, axis=-1) / (a[-1] - a[0]))


def with_error(estimate: Estimate, error: float) -> Estimate:
    """Return an estimate whose interval has another standard error added in squares.

    That error is independent.
    """
    if error == 0 or not math.isfinite(estimate.low):
        return estimate
    half = NORMAL_QUANTILE * error
    low = estimate.point - math.hypot(estimate.point - estimate.low, half)
    return Estimate(
        estimate.point, low, estimate.point + math.hypot(estimate.high - estimate.point, half)
    )


def error_of_mean(scores: Scores, anchors: Mapping[str, Callable[[float], float]]) -> float:
    """Return the standard error of the mean over tasks that comes from their scales' ends.

    These ends are measured.

    Args:
        scores: task to scores, shape ``(n_seeds,)``.
        anchors: functions from a mean score to the standard error that comes from its task's scale,
            such as :meth:`Scale.standard_error <rlbench_suite.core.scale.Scale.standard_error>`; a
            task without one adds nothing.
    """
    errors = [
        anchors[task](float(np.asarray(values, dtype=np.float64).mean()))
        for task, values in scores.items()
        if task in anchors
    ]
    return math.sqrt(math.fsum(error * error for error in errors)) / len(scores)


def compare(
    agents: Mapping[str, Scores],
    *,
    anchors: Mapping[str, Callable[[float], float]] | None = None,
    taus: ArrayLike = TAUS,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
    method: Method = "studentised",
) -> Comparison:
    """Compute every statistic of several agents on the tasks that all of them have.

    Aggregates over different tasks cannot be compared, so a task that some agent lacks is left out
    for all and named in the result. Each number equals the result of the function of the same name
    on those tasks. A probability of improvement is computed for two agents in alphabetical order;
    the reverse is its complement. Agents with the same numbers of seeds share their resamples,
    which saves time and changes no result.

    Args:
        agents: scores by agent and task, shape ``(n_seeds,)``.
        anchors: errors of the tasks' scales, as in :func:`error_of_mean`, which the four aggregates
            carry; profiles and probabilities compare runs on one scale.
        taus: thresholds of the performance profiles, shape ``(n_taus,)``.
        replicates: bootstrap replicates of the four aggregates.
        confidence: nominal coverage of every interval, in (0, 1).
        seed: of the bootstrap, >= 0.
        method: ``studentised`` or ``percentile``; profiles and probabilities always have score
            intervals.

    Raises:
        ValueError: as :func:`iqm`, no agent, or no task that all agents have.
    """
    if not agents:
        raise ValueError("There are no agents to compare.")
    samples = {agent: Sample.of(scores, f"agent {agent!r}") for agent, scores in agents.items()}
    tasks = shared_tasks(samples)
    left_out = sorted({task for sample in samples.values() for task in sample.tasks} - set(tasks))
    samples = {agent: sample.on(tasks) for agent, sample in samples.items()}

    singles = [(sample,) for sample in samples.values()]
    aggregates = bootstrap(singles, list(_METRICS.values()), replicates, confidence, seed, method)
    bounds = None if method == "percentile" else SCALE
    grid = thresholds(taus)
    summaries = {}
    for (agent, sample), intervals in zip(samples.items(), aggregates, strict=True):
        error = error_of_mean(dict(zip(sample.tasks, sample.strata, strict=True)), anchors or {})
        middle, average, typical, gap = (
            with_error(
                widen(interval.estimates()[0], sample, kind, bounds, confidence, seed), error
            )
            for kind, interval in zip(_METRICS, intervals, strict=True)
        )
        gap = Estimate(gap.point, max(gap.low, 0.0), gap.high) if math.isfinite(gap.low) else gap
        seeds = dict(zip(tasks, sample.sizes, strict=True))
        summaries[agent] = Summary(
            middle, average, typical, gap, profile_of(sample, grid, confidence), seeds
        )

    pairs = list(combinations(sorted(samples), 2))
    improvement: dict[tuple[str, str], Estimate] = {}
    for x, y in pairs:
        better = improvement_of(samples[x], samples[y], confidence)
        improvement[x, y] = better
        improvement[y, x] = Estimate(1 - better.point, 1 - better.high, 1 - better.low)
    return Comparison(tasks, tuple(left_out), summaries, improvement)


def _estimate(
    scores: Scores,
    kind: Kind,
    replicates: int,
    confidence: float,
    seed: int,
    method: Method,
    bounds: Bounds | None,
) -> Estimate:
    sample = Sample.of(scores)
    estimate = bootstrap([(sample,)], [_METRICS[kind]], replicates, confidence, seed, method)[0][
        0
    ].estimates()[0]
    return widen(
        estimate, sample, kind, None if method == "percentile" else bounds, confidence, seed
    )


BLOCK = 32
"""Scores that are walked past at once where no replicate reaches a cut.

It does not change a result beyond rounding.
"""


def _blocks(
    sample: Sample, counts: Floats
) -> Iterator[tuple[Floats, Floats, Floats, Floats, Floats]]:
    """Walk up the sorted scores in blocks.

    Yields:
        Scores and weights of a block, both ``(n,)``, its counts ``(n, n_replicates)``, and the
        weight that each replicate has drawn before and after it, both ``(n_replicates,)``.
    """
    order = np.argsort(sample.pooled, kind="stable")
    before = np.zeros(counts.shape[1])
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        block_counts = counts[rows]
        weights = sample.weights[rows]
        after = before + np.einsum("i,ir->r", weights, block_counts)
        yield sample.pooled[rows], weights, block_counts, before, after
        before = after


def _iqm(sample: Sample, counts: Floats) -> Floats:
    total = len(sample.pooled)
    cut = total // 4
    lowest, highest = float(cut), float(total - cut)
    result = np.zeros(counts.shape[1])
    # A score counts with the weight that it adds between the two cuts. Only blocks in which some
    # replicate reaches a cut are walked row by row, so that the working set stays in cache.
    for scores, weights, block_counts, start, end in _blocks(sample, counts):
        if end.max() <= lowest:
            continue
        if start.min() >= highest:
            break
        if start.min() >= lowest and end.max() <= highest:
            result += np.einsum("i,ir->r", weights * scores, block_counts)
            continue
        reached, before = start.copy(), np.clip(start, lowest, highest)
        after, counted = np.empty_like(reached), np.empty_like(reached)
        for row, score, weight in zip(block_counts, scores, weights, strict=True):
            reached += np.multiply(row, weight, out=counted)
            np.minimum(np.maximum(reached, lowest, out=after), highest, out=after)
            result += np.multiply(np.subtract(after, before, out=counted), score, out=counted)
            before, after = after, before
    return (result / (highest - lowest))[None]


def _quartiles(sample: Sample, counts: Floats) -> tuple[Floats, Floats]:
    """Return the scores between which the scale of the interquartile mean is taken.

    Each has shape ``(n_replicates,)``.

    They lie one score outside the cuts of the interquartile mean. Exactly at the cuts, a fifth of
    the resamples of five scores would have no spread at all.
    """
    total = len(sample.pooled)
    cut = max(total // 4 - 1, 0) + 1e-9  # weights of ragged tasks add up with rounding
    low, high = np.empty(counts.shape[1]), np.empty(counts.shape[1])
    for scores, weights, block_counts, start, end in _blocks(sample, counts):
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
        for row, score, weight in zip(block_counts, scores, weights, strict=True):
            np.copyto(low, score, where=reached <= cut)
            np.copyto(high, score, where=reached < total - cut)
            reached += row * weight
    return low, high


def _error(
    sample: Sample, counts: Floats, low: Floats | float = -np.inf, high: Floats | float = np.inf
) -> Floats:
    """Return the standard error of the mean over tasks of scores clipped to [low, high].

    The shape is ``(1, n_replicates)``.

    Args:
        sample: the scores.
        counts: of each resample, shape ``(n_scores, n_replicates)``.
        low: a number, or one for each replicate, shape ``(n_replicates,)``.
        high: likewise.
    """
    by_replicate = isinstance(low, np.ndarray)
    strata = [
        np.clip(values[:, None] if by_replicate else values, low, high) for values in sample.strata
    ]
    return _standard_error(strata, sample.slices, counts, by_replicate=by_replicate)[None]


def _standard_error(
    strata: Sequence[Floats], slices: Sequence[slice], counts: Floats, *, by_replicate: bool = False
) -> Floats:
    """Return the standard error of the mean over tasks of each task's mean.

    The shape is ``(..., n_replicates)``.

    Args:
        strata: values of each task, shape ``(..., n)``.
        slices: rows of each task in the counts.
        counts: of each resample, shape ``(n_scores, n_replicates)``.
        by_replicate: each replicate has values of its own, shape ``(n, n_replicates)``.
    """
    variance: Any = np.zeros(counts.shape[1])
    for values, rows in zip(strata, slices, strict=True):
        stratum_counts = counts[rows]
        n = len(stratum_counts)
        if n > 1:
            # From any score: equal scores then have exactly no variance. The smallest scale that
            # counts is a tenth of the sample's, so the difference of the two moments keeps 13
            # digits.
            deviation = values - (values[0] if by_replicate else values[..., :1])
            terms = "ir,ir->r" if by_replicate else "...i,ir->...r"
            first, second = (
                np.einsum(terms, power, stratum_counts) / n
                for power in (deviation, deviation * deviation)
            )
            variance = variance + np.maximum(second - first * first, 0) / (n - 1)
    return np.asarray(np.sqrt(variance) / len(strata))


def _task_means(sample: Sample, values: Floats, counts: Floats) -> Floats:
    """Return the mean of each task's resampled values ``(..., n_scores)``.

    The shape is ``(n_tasks, ..., n_replicates)``.
    """
    # einsum adds in a fixed order, unlike a threaded matrix product
    return np.stack(
        [
            np.einsum("...i,ir->...r", values[..., s], counts[s]) / (s.stop - s.start)
            for s in sample.slices
        ]
    )


def _mean(sample: Sample, counts: Floats) -> Floats:
    return _task_means(sample, sample.pooled, counts).mean(axis=0, keepdims=True)


def _mean_of(pooled: Floats) -> Metric:
    """Return the metric with the means of several agents that share resamples.

    Their scores are ``(n_agents, n_scores)``.
    """

    def value(sample: Sample, counts: Floats) -> Floats:
        return np.asarray(_task_means(sample, pooled, counts).mean(axis=0))

    def scale(sample: Sample, counts: Floats) -> Floats:
        return _standard_error([pooled[:, rows] for rows in sample.slices], sample.slices, counts)

    return Metric(value, scale)


def _median(sample: Sample, counts: Floats) -> Floats:
    return np.median(_task_means(sample, sample.pooled, counts), axis=0, keepdims=True)


def _optimality_gap(sample: Sample, counts: Floats) -> Floats:
    return 1 - _task_means(sample, np.minimum(sample.pooled, 1), counts).mean(axis=0, keepdims=True)


_IQM = Metric(_iqm, lambda sample, counts: _error(sample, counts, *_quartiles(sample, counts)))
_MEAN = Metric(_mean, _error)
_MEDIAN = Metric(
    _median, lambda sample, counts: _error(sample, counts) if len(sample.tasks) < 3 else None
)
_OPTIMALITY_GAP = Metric(
    _optimality_gap, lambda sample, counts: _error(sample, counts, high=1.0), lower_bound=0.0
)
_METRICS: dict[Kind, Metric] = {
    "iqm": _IQM,
    "mean": _MEAN,
    "median": _MEDIAN,
    "optimality_gap": _OPTIMALITY_GAP,
}

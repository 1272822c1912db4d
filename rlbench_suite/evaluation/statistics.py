"""Aggregate scores with stratified-bootstrap intervals.

Scores are normalised (0 a random player, 1 the reference) and given as a mapping from task to the scores of its
seeds, one number a seed. Tasks may have different numbers of seeds; **every task counts the same**, so a seed of task
``j`` with ``n_j`` seeds carries ``1 / n_j`` of its task's weight. With equal numbers of seeds each metric is that of
Agarwal et al., *Deep Reinforcement Learning at the Edge of the Statistical Precipice* (NeurIPS 2021), and of its
library, rliable.

Intervals are percentile intervals of the stratified bootstrap: in each replicate the seeds of each task are drawn again
with replacement, independently of the other tasks; tasks are fixed. So they describe new seeds on the same tasks. A
resample is stored as *counts*: how often each score was drawn. Every metric here is a sum over scores weighted by
counts, including the interquartile mean once the scores are sorted. So no replicate is sorted again, and the point
value is the same formula with every count equal to one.

Percentile intervals of few seeds are too narrow: for normal scores on one task, nominal 95 % intervals of the mean
cover the truth about 84 % of the time with 5 seeds, 90 % with 10, 93 % with 20. A task with one seed adds nothing to
the width. If no task has two seeds, there is nothing to resample, and ``low`` and ``high`` are NaN.

The same seed gives the same numbers to the bit, whatever the number of threads and the order of tasks or agents, and an
agent's own intervals do not depend on which agents it is compared with.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Scores = Mapping[str, ArrayLike]
"""Normalised scores of the seeds by task, shape ``(n_seeds,)``."""

TAUS: tuple[float, ...] = tuple(round(0.02 * i, 2) for i in range(76))
"""Default thresholds of performance profiles: 0, 0.02, ..., 1.5."""

REPLICATES = 50_000
CURVE_REPLICATES = 2_000
"""Replicates for profiles, learning curves and probabilities of improvement. Plots need fewer than tables."""

CHUNK = 2_000
"""Replicates in memory at a time; each chunk has its own random stream. A score takes 16 kB, or twice that for a
probability of improvement: 16 MB for 50 tasks x 10 seeds, less than 256 MB for up to 7,000 scores of an agent. Another
value changes the intervals of a seed within their bootstrap noise."""


@dataclass(frozen=True)
class Estimate:
    """Point value and the ends of its interval. The ends are NaN if nothing could be resampled."""

    point: float
    low: float
    high: float


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


def iqm(scores: Scores, *, replicates: int = REPLICATES, confidence: float = 0.95, seed: int = 0) -> Estimate:
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

    Raises:
        ValueError: no task, a task without scores, a score that is not finite, or a setting out of range.
    """
    return _estimate(scores, _iqm, replicates, confidence, seed)


def mean(scores: Scores, *, replicates: int = REPLICATES, confidence: float = 0.95, seed: int = 0) -> Estimate:
    """Return the mean over tasks of the task's mean score. Arguments and errors as :func:`iqm`."""
    return _estimate(scores, _mean, replicates, confidence, seed)


def median(scores: Scores, *, replicates: int = REPLICATES, confidence: float = 0.95, seed: int = 0) -> Estimate:
    """Return the median over tasks of the task's mean score. Arguments and errors as :func:`iqm`."""
    return _estimate(scores, _median, replicates, confidence, seed)


def optimality_gap(
    scores: Scores, *, replicates: int = REPLICATES, confidence: float = 0.95, seed: int = 0
) -> Estimate:
    """Return the mean over tasks of the task's mean of ``1 - min(score, 1)``. Smaller is better.

    Arguments and errors as :func:`iqm`.
    """
    return _estimate(scores, _optimality_gap, replicates, confidence, seed)


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
    return _profiles([_Sample.of(scores)], taus, replicates, confidence, seed)[0]


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
    samples = {"x": _Sample.of(x, "x"), "y": _Sample.of(y, "y")}
    tasks = _shared_tasks(samples)
    pair = samples["x"].on(tasks), samples["y"].on(tasks)
    return _Interval.bootstrap([pair], _improvement, replicates, confidence, seed)[0].estimates()[0]


def sample_efficiency(
    curves: Mapping[str, ArrayLike], *, replicates: int = CURVE_REPLICATES, confidence: float = 0.95, seed: int = 0
) -> Curve:
    """Return the interquartile mean at each checkpoint of training. Whole runs are resampled, as in rliable.

    Args:
        curves: task to scores, shape ``(n_seeds, n_checkpoints)``, with the same checkpoints in every task.
        replicates: number of bootstrap replicates.
        confidence: nominal pointwise coverage of the band, in (0, 1).
        seed: of the bootstrap, >= 0.

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
        (_Sample.of({task: a[:, k] for task, a in arrays.items()}, f"checkpoint {k}"),) for k in range(checkpoints)
    ]
    intervals = _Interval.bootstrap(samples, _iqm, replicates, confidence, seed)
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

    Raises:
        ValueError: as :func:`iqm`, no agent, or no task that all agents have.
    """
    if not agents:
        raise ValueError("There are no agents to compare.")
    samples = {agent: _Sample.of(scores, f"agent {agent!r}") for agent, scores in agents.items()}
    tasks = _shared_tasks(samples)
    left_out = sorted({task for sample in samples.values() for task in sample.tasks} - set(tasks))
    samples = {agent: sample.on(tasks) for agent, sample in samples.items()}

    singles = [(sample,) for sample in samples.values()]
    aggregates = _Interval.bootstrap(singles, _aggregates, replicates, confidence, seed)
    profiles = _profiles(list(samples.values()), taus, curve_replicates, confidence, seed)
    summaries = {}
    for (agent, sample), interval, profile in zip(samples.items(), aggregates, profiles, strict=True):
        middle, average, typical, gap = interval.estimates()
        seeds = dict(zip(tasks, sample.sizes, strict=True))
        summaries[agent] = Summary(middle, average, typical, gap, profile, seeds)

    pairs = list(combinations(sorted(samples), 2))
    improvements = _Interval.bootstrap(
        [(samples[x], samples[y]) for x, y in pairs], _improvement, curve_replicates, confidence, seed
    )
    improvement: dict[tuple[str, str], Estimate] = {}
    for (x, y), interval in zip(pairs, improvements, strict=True):
        better = interval.estimates()[0]
        improvement[x, y] = better
        improvement[y, x] = Estimate(1 - better.point, 1 - better.high, 1 - better.low)
    return Comparison(tasks, tuple(left_out), summaries, improvement)


@dataclass(frozen=True)
class _Sample:
    """Checked scores of one agent: tasks sorted by name, and the scores of each, shape ``(n_seeds,)``."""

    tasks: tuple[str, ...]
    strata: tuple[Floats, ...]

    @classmethod
    def of(cls, scores: Scores, owner: str = "") -> _Sample:
        """Check the scores; errors name ``owner``."""
        prefix = f"{owner[0].upper()}{owner[1:]}: " if owner else ""
        if not scores:
            raise ValueError(f"{prefix}there are no scores; at least one task is needed.")
        tasks = tuple(sorted(scores))
        strata = tuple(np.asarray(scores[task], dtype=np.float64) for task in tasks)
        for task, values in zip(tasks, strata, strict=True):
            if values.ndim != 1 or not len(values):
                raise ValueError(f"{prefix}scores of task {task!r} have shape {values.shape}; (n_seeds,) is needed.")
            if not np.isfinite(values).all():
                index = int(np.argmin(np.isfinite(values)))
                raise ValueError(
                    f"{prefix}the score of task {task!r} at index {index} is {values[index]}; scores must be finite. "
                    "A failed run needs a score, such as that of a random player, not a gap."
                )
        return cls(tasks, strata)

    def on(self, tasks: tuple[str, ...]) -> _Sample:
        """Return the sample of the same agent on some of its tasks."""
        return _Sample(tasks, tuple(self.strata[self.tasks.index(task)] for task in tasks))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.strata)

    @cached_property
    def pooled(self) -> Floats:
        """All scores, task after task, shape ``(n_scores,)``."""
        return np.concatenate(self.strata)

    @cached_property
    def weights(self) -> Floats:
        """Weight of each pooled score, shape ``(n_scores,)``. The sum is n_scores, and all tasks weigh the same."""
        sizes = np.array(self.sizes)
        return np.repeat(sizes.sum() / (len(sizes) * sizes), sizes)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Positions of each task's scores in ``pooled``."""
        ends = np.cumsum(self.sizes).tolist()
        return tuple(slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True))


_Statistic = Callable[..., Floats]
"""Function of samples and as many count matrices ``(n_scores, n_replicates)``; returns ``(n_values, n_replicates)``."""


@dataclass(frozen=True)
class _Interval:
    """Point values of a statistic and the ends of their intervals, each of shape ``(n_values,)``."""

    point: Floats
    low: Floats
    high: Floats

    def estimates(self) -> list[Estimate]:
        return [
            Estimate(*ends) for ends in zip(self.point.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        ]

    @classmethod
    def bootstrap(
        cls,
        subjects: Sequence[tuple[_Sample, ...]],
        statistic: _Statistic,
        replicates: int,
        confidence: float,
        seed: int,
    ) -> list[_Interval]:
        """Return percentile intervals of a statistic of each subject, a tuple of independently resampled samples."""
        if operator.index(replicates) < 1:
            raise ValueError(f"The number of replicates must be at least 1; given {replicates}.")
        if not 0 < confidence < 1:
            raise ValueError(f"The confidence must lie in (0, 1); given {confidence}.")
        if operator.index(seed) < 0:
            raise ValueError(f"The seed must be at least 0; given {seed}.")
        replicated: list[list[Floats]] = [[] for _ in subjects]
        shapes = [tuple(sample.sizes for sample in subject) for subject in subjects]
        for shape in dict.fromkeys(shapes):  # subjects of one shape share their resamples
            buffers = [np.empty((sum(sizes), min(CHUNK, replicates))) for sizes in shape]
            for chunk, start in enumerate(range(0, replicates, CHUNK)):
                counts = [buffer[:, : replicates - start] for buffer in buffers]
                for stream, (sizes, drawn) in enumerate(zip(shape, counts, strict=True)):
                    _resample(sizes, np.random.default_rng((seed, stream, chunk)), out=drawn)
                for subject, its_shape, values in zip(subjects, shapes, replicated, strict=True):
                    if its_shape == shape:
                        values.append(statistic(*subject, *counts))
        intervals = []
        for subject, shape, values in zip(subjects, shapes, replicated, strict=True):
            point = statistic(*subject, *(np.ones((len(sample.pooled), 1)) for sample in subject))[:, 0]
            if max(size for sizes in shape for size in sizes) > 1:
                tail = (1 - confidence) / 2
                low, high = np.quantile(np.concatenate(values, axis=1), (tail, 1 - tail), axis=1)
            else:
                low = high = np.full_like(point, np.nan)
            intervals.append(cls(point, low, high))
        return intervals


def _resample(sizes: Sequence[int], rng: np.random.Generator, out: Floats) -> None:
    """Fill ``out``, shape ``(n_scores, n_replicates)``, with the counts of stratified resamples."""
    width = out.shape[1]
    replicate = np.arange(width)
    end = 0
    for size in sizes:
        # One histogram for all replicates: index i drawn in replicate r falls into bin i * width + r.
        bins = rng.integers(size, size=(size, width))
        bins *= width
        bins += replicate
        out[end : end + size] = np.bincount(bins.ravel(), minlength=size * width).reshape(size, width)
        end += size


def _estimate(scores: Scores, statistic: _Statistic, replicates: int, confidence: float, seed: int) -> Estimate:
    return _Interval.bootstrap([(_Sample.of(scores),)], statistic, replicates, confidence, seed)[0].estimates()[0]


def _profiles(
    samples: Sequence[_Sample], taus: ArrayLike, replicates: int, confidence: float, seed: int
) -> list[Profile]:
    grid = np.asarray(taus, dtype=np.float64)
    if grid.ndim != 1 or not len(grid) or not np.isfinite(grid).all():
        raise ValueError(f"Thresholds must be a vector of finite numbers; given {grid.tolist()}.")

    def fraction_above(sample: _Sample, counts: Floats) -> Floats:
        # Tasks of one size together: such products add whole numbers, so a threaded one is exact in any order.
        above = (sample.pooled > grid[:, None]).astype(np.float64)
        size_of = np.repeat(sample.sizes, sample.sizes)
        groups = [(size, size_of == size) for size in sorted(set(sample.sizes))]
        return sum(above[:, rows] @ counts[rows] / size for size, rows in groups) / len(sample.tasks)

    intervals = _Interval.bootstrap([(sample,) for sample in samples], fraction_above, replicates, confidence, seed)
    return [Profile(grid, interval.point, interval.low, interval.high) for interval in intervals]


def _shared_tasks(samples: Mapping[str, _Sample]) -> tuple[str, ...]:
    shared = set.intersection(*(set(sample.tasks) for sample in samples.values()))
    if not shared:
        lists = "; ".join(f"{owner} has {', '.join(sample.tasks)}" for owner, sample in samples.items())
        raise ValueError(f"There is no task that all have scores on: {lists}.")
    return tuple(sorted(shared))


def _iqm(sample: _Sample, counts: Floats) -> Floats:
    total = len(sample.pooled)
    cut = total // 4
    lowest, highest = float(cut), float(total - cut)
    order = np.argsort(sample.pooled, kind="stable")
    # Walk up the sorted scores and keep, for every replicate, the weight drawn so far. A score counts with the weight
    # that it adds between the two cuts. Work row by row, so that the working set stays in cache.
    reached, kept = np.zeros(counts.shape[1]), np.zeros(counts.shape[1])
    before, after, result = np.full_like(reached, lowest), np.empty_like(reached), np.zeros_like(reached)
    for row, score, weight in zip(order.tolist(), sample.pooled[order], sample.weights[order], strict=True):
        reached += np.multiply(counts[row], weight, out=kept)
        np.minimum(np.maximum(reached, lowest, out=after), highest, out=after)
        result += np.multiply(np.subtract(after, before, out=kept), score, out=kept)
        before, after = after, before
    return (result / (highest - lowest))[None]


def _task_means(sample: _Sample, values: Floats, counts: Floats) -> Floats:
    """Return the mean of each task's resampled values, shape ``(n_tasks, n_replicates)``."""
    # einsum adds in a fixed order, unlike a threaded matrix product
    return np.stack([np.einsum("i,ir->r", values[s], counts[s]) / (s.stop - s.start) for s in sample.slices])


def _mean(sample: _Sample, counts: Floats) -> Floats:
    return _task_means(sample, sample.pooled, counts).mean(axis=0, keepdims=True)


def _median(sample: _Sample, counts: Floats) -> Floats:
    return np.median(_task_means(sample, sample.pooled, counts), axis=0, keepdims=True)


def _optimality_gap(sample: _Sample, counts: Floats) -> Floats:
    return 1 - _task_means(sample, np.minimum(sample.pooled, 1), counts).mean(axis=0, keepdims=True)


def _aggregates(sample: _Sample, counts: Floats) -> Floats:
    """Return the four metrics in the order of the fields of Summary."""
    return np.concatenate([metric(sample, counts) for metric in (_iqm, _mean, _median, _optimality_gap)])


def _improvement(x: _Sample, y: _Sample, counts_x: Floats, counts_y: Floats) -> Floats:
    total = np.zeros(counts_x.shape[1])
    for a, b, rows_a, rows_b in zip(x.strata, y.strata, x.slices, y.slices, strict=True):
        wins = (a > b[:, None]) + 0.5 * (a == b[:, None])  # (n_y, n_x); sums of halves are exact in any order
        u = np.einsum("yr,yr->r", wins @ counts_x[rows_a], counts_y[rows_b])
        total += u / (len(a) * len(b))
    return (total / len(x.tasks))[None]

"""Stratified-bootstrap intervals of statistics of scores.

In each replicate the seeds of each task are drawn again with replacement, independently of the
other tasks; tasks are fixed. So intervals describe new seeds on the same tasks. A resample is
stored as *counts*: how often each score was drawn. Every statistic is a function of samples and
counts, and its point value is the same function with every count equal to one.

Two methods turn replicates ``T*`` into the ends of an interval of the statistic ``T``:

* ``studentised`` (bootstrap-t; Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993,
  section 12.5). Each replicate is divided by a scale of its own resample: ``t* = (T* - T) / S*``.
  With the quantiles of ``t*`` the interval is ``[T - t_high S, T - t_low S]``. The scale is a
  standard error in closed form, up to a constant factor, which cancels. A resample of few scores
  may have almost no spread, so ``S*`` counts as at least ``FLOOR * S``, and the ends are always
  finite. From five seeds on this rule hardly matters. If all seeds of each task score the same,
  ``S`` is 0, and the interval has no width.
* ``percentile``: quantiles of ``T*``, as in rliable. They are too narrow for few seeds.

If no task has two seeds, there is nothing to resample, and both ends are NaN.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Scores = Mapping[str, ArrayLike]
"""Normalised scores of the seeds by task, shape ``(n_seeds,)``."""

Method = Literal["studentised", "percentile"]
METHODS: tuple[Method, ...] = get_args(Method)

CHUNK = 2_000
"""Replicates in memory at a time; each chunk has its own random stream. A score takes 16 kB, or
twice that for a probability of improvement: 16 MB for 50 tasks x 10 seeds, less than 256 MB for up
to 7,000 scores of an agent. Another value changes the intervals of a seed within their bootstrap
noise.
"""

FLOOR = 0.1
"""Smallest scale of a resample, as a fraction of the sample's."""


@dataclass(frozen=True)
class Estimate:
    """Point value and the ends of its interval. The ends are NaN if nothing could be resampled."""

    point: float
    low: float
    high: float


def as_floats(numbers: Any, what: str) -> Floats:
    """Return numbers as an array of float64.

    Args:
        numbers: a number, or lists or arrays of numbers.
        what: plural name of the numbers for errors.

    Raises:
        ValueError: they are masked, not real numbers, or lists of different lengths.
    """
    arrays = numbers if isinstance(numbers, list | tuple) else [numbers]
    if any(isinstance(array, np.ma.MaskedArray) for array in arrays):
        raise ValueError(
            f"{what} are a masked array, whose masked numbers would count; give an array of those "
            "that count."
        )
    try:
        array = np.asarray(numbers)
    except ValueError:  # NumPy makes no table of them
        raise ValueError(f"{what} are lists of different lengths; give a list of each.") from None
    try:
        texts = array.dtype == object and any(isinstance(entry, str) for entry in array.flat)
        if texts or array.dtype.kind in "SUcmM":  # which NumPy would convert
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be real numbers; given {reprlib.repr(numbers)}.") from None


@dataclass(frozen=True)
class Sample:
    """Checked scores of one agent: tasks sorted by name,
    and the scores of each, shape ``(n_seeds,)``.
    """

    tasks: tuple[str, ...]
    strata: tuple[Floats, ...]

    @classmethod
    def of(cls, scores: Scores, owner: str = "") -> Sample:
        """Check the scores; errors name ``owner``."""
        prefix = f"{owner[0].upper()}{owner[1:]}: " if owner else ""
        if not scores:
            raise ValueError(f"{prefix}there are no scores; at least one task is needed.")
        tasks = tuple(sorted(scores))
        strata = tuple(
            as_floats(scores[task], f"{prefix}scores of task {task!r}") for task in tasks
        )
        for task, values in zip(tasks, strata, strict=True):
            if values.ndim != 1 or not len(values):
                raise ValueError(
                    f"{prefix}scores of task {task!r} have shape {values.shape}; (n_seeds,) is "
                    "needed."
                )
            if not np.isfinite(values).all():
                index = int(np.argmin(np.isfinite(values)))
                raise ValueError(
                    f"{prefix}the score of task {task!r} at index {index} is {values[index]}; "
                    "scores must be finite. "
                    "A failed run needs a score, such as that of a random player, not a gap."
                )
        return cls(tasks, strata)

    def on(self, tasks: tuple[str, ...]) -> Sample:
        """Return the sample of the same agent on some of its tasks."""
        return Sample(tasks, tuple(self.strata[self.tasks.index(task)] for task in tasks))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of seeds of each task."""
        return tuple(len(values) for values in self.strata)

    @cached_property
    def pooled(self) -> Floats:
        """All scores, task after task, shape ``(n_scores,)``."""
        return np.concatenate(self.strata)

    @cached_property
    def weights(self) -> Floats:
        """Weight of each pooled score, shape ``(n_scores,)``.

        The sum is n_scores, and all tasks weigh the same.
        """
        sizes = np.array(self.sizes)
        return np.repeat(sizes.sum() / (len(sizes) * sizes), sizes)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Positions of each task's scores in ``pooled``."""
        ends = np.cumsum(self.sizes).tolist()
        return tuple(slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True))


Statistic = Callable[..., Floats]
"""Function of samples and as many count matrices ``(n_scores, n_replicates)``;
returns ``(n_values, n_replicates)``.
"""


def no_scale(*_: object) -> None:
    """Return no scale, so that intervals are percentile intervals."""


@dataclass(frozen=True)
class Metric:
    """Statistic, and what its studentised interval needs.

    Attributes:
        value: the statistic.
        scale: its scale, a function of the same arguments; for some samples it may return None, and
            these get percentile intervals.
        lower_bound: lower bound of the statistic; a studentised interval is cut there.
    """

    value: Statistic
    scale: Callable[..., Floats | None] = no_scale
    lower_bound: float = -math.inf


@dataclass(frozen=True)
class Interval:
    """Point values of a statistic and the ends of their intervals,
    each of shape ``(n_values,)``.
    """

    point: Floats
    low: Floats
    high: Floats

    def estimates(self) -> list[Estimate]:
        """Return the values one by one."""
        return [
            Estimate(*ends)
            for ends in zip(self.point.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        ]


def bootstrap(
    subjects: Sequence[tuple[Sample, ...]],
    metrics: Sequence[Metric],
    replicates: int,
    confidence: float,
    seed: int,
    method: Method,
) -> list[list[Interval]]:
    """Return the intervals of each metric for each subject,
    a tuple of independently resampled samples.

    Raises:
        ValueError: a setting out of range.
    """
    if not _is_integer(replicates) or replicates < 1:
        raise ValueError(
            f"The number of replicates must be an integer of at least 1; given {replicates!r}."
        )
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence must lie in (0, 1); given {confidence}.")
    if not _is_integer(seed) or seed < 0:
        raise ValueError(f"The seed must be an integer of at least 0; given {seed!r}.")
    if method not in METHODS:
        raise ValueError(
            f"The method of intervals must be one of {', '.join(METHODS)}; given {method}."
        )
    shapes = [tuple(sample.sizes for sample in subject) for subject in subjects]
    roots = [[_Root.of(metric, subject, method) for metric in metrics] for subject in subjects]
    for shape in dict.fromkeys(shapes):  # subjects of one shape share their resamples
        buffers = [np.empty((sum(sizes), min(CHUNK, replicates))) for sizes in shape]
        sharing = [
            pair
            for pair, its_shape in zip(zip(subjects, roots, strict=True), shapes, strict=True)
            if its_shape == shape
        ]
        for chunk, start in enumerate(range(0, replicates, CHUNK)):
            counts = [buffer[:, : replicates - start] for buffer in buffers]
            for stream, (sizes, counts_out) in enumerate(zip(shape, counts, strict=True)):
                _resample(sizes, np.random.default_rng((seed, stream, chunk)), out=counts_out)
            for subject, its_roots in sharing:
                for root in its_roots:
                    root.add(subject, counts)
    return [[root.interval(confidence) for root in its_roots] for its_roots in roots]


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@dataclass(frozen=True)
class _Root:
    """Bootstrap distribution from which the interval of a metric is read:
    ``T*``, or ``t*`` if there is a scale.
    """

    metric: Metric
    point: Floats
    scale: Floats | None
    resampled: bool
    replicated: list[Floats]

    @classmethod
    def of(cls, metric: Metric, subject: tuple[Sample, ...], method: Method) -> _Root:
        once = [np.ones((len(sample.pooled), 1)) for sample in subject]
        scale = metric.scale(*subject, *once) if method == "studentised" else None
        resampled = any(size > 1 for sample in subject for size in sample.sizes)
        return cls(metric, metric.value(*subject, *once), scale, resampled, [])

    def add(self, subject: tuple[Sample, ...], counts: Sequence[Floats]) -> None:
        """Add the replicates of some resamples."""
        values = self.metric.value(*subject, *counts)
        if self.scale is not None:
            scales = self.metric.scale(*subject, *counts)
            assert scales is not None
            smallest = np.where(self.scale > 0, FLOOR * self.scale, 1)
            values = (values - self.point) / np.maximum(scales, smallest)
        self.replicated.append(values)

    def interval(self, confidence: float) -> Interval:
        point = self.point[:, 0]
        if not self.resampled:
            return Interval(point, np.full_like(point, np.nan), np.full_like(point, np.nan))
        tail = (1 - confidence) / 2
        low, high = np.quantile(np.concatenate(self.replicated, axis=1), (tail, 1 - tail), axis=1)
        if self.scale is None:
            return Interval(point, low, high)
        scale = self.scale[:, 0]
        return Interval(
            point, np.maximum(point - high * scale, self.metric.lower_bound), point - low * scale
        )


def _resample(sizes: Sequence[int], rng: np.random.Generator, out: Floats) -> None:
    """Fill ``out``, shape ``(n_scores, n_replicates)``, with the counts of stratified resamples."""
    width = out.shape[1]
    replicate = np.arange(width)
    end = 0
    for size in sizes:
        # One histogram for all replicates: index i drawn in replicate r falls into bin i * width +
        # r.
        bins = rng.integers(size, size=(size, width))
        bins *= width
        bins += replicate
        out[end : end + size] = np.bincount(bins.ravel(), minlength=size * width).reshape(
            size, width
        )
        end += size

"""Measure recorded signals in an engineer's quantities.

These are rise and settling time, overshoot, ripple, rms error and trips.

A *tracked* quantity is a signal with its set point, or an error that should be zero. A step of the
set point is a change of at least :data:`STEP` of its range after which it holds for
:data:`HOLD_SAMPLES` samples; the beginning of an episode is one too. Definitions are those of most
textbooks (Ogata, Modern Control Engineering, section 5-3): rise from 10 to 90 %, settling to within
2 % of the step. Set points that move all the time, such as random walks, have an rms error alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.flat_rows import observed_signals
from rlbench_suite.evaluation.trajectory import Trajectory, columns

STEP = 0.05
"""Least change that is a step, in parts of the set point's range in the episode."""
HOLD_SAMPLES = 20
"""Samples for which a set point stays after a step."""
BAND = 0.02
"""Half of the band in which a signal has settled, in parts of the step."""


class Tracked(NamedTuple):
    """A quantity and its set point over one episode."""

    name: str
    unit: str
    time: np.ndarray
    """s, or steps if a step has no duration"""
    setpoint: np.ndarray
    value: np.ndarray


class Response(NamedTuple):
    """Answer to one step of the set point. Numbers that do not exist are NaN."""

    rise: float
    """From 10 to 90 % of the step, s"""
    overshoot: float
    """Beyond the set point, in parts of the step"""
    settling: float
    """Until it stays within 2 % of the step, s"""
    ripple: float
    """Deviation from its mean after it has settled, rms, in its unit"""


class Summary(NamedTuple):
    """One tracked quantity over all episodes, with medians and the rms error.

    Medians are taken over the steps of its set point.
    """

    name: str
    unit: str
    steps: int
    rise: float
    overshoot: float
    settling: float
    settled_share: float
    """Part of the steps after which it settled"""
    ripple: float
    rms_error: float


def step_response(time: np.ndarray, value: np.ndarray, before: float, after: float) -> Response:
    """Measure the answer to a step of the set point at ``time[0]``.

    Crossings are interpolated between samples.

    Args:
        time: s, increasing.
        value: the signal at these times.
        before: value from which the step is counted.
        after: the set point after the step, another value.
    """
    share = (value - before) / (after - before)
    start, end = (_first_crossing(time, share, level) for level in (0.1, 0.9))
    outside = np.flatnonzero(np.abs(share - 1) > BAND)
    settling = ripple = math.nan
    if not outside.size:
        settling = 0.0
        inside = value
    elif outside[-1] + 1 < len(share):
        last = outside[-1]
        edge = 1 + math.copysign(BAND, share[last] - 1)
        settling = _between(time, share, last, edge) - time[0]
        inside = value[last + 1 :]
    if not math.isnan(settling):
        ripple = float(np.std(inside))
    return Response(end - start, max(0.0, float(share.max()) - 1), float(settling), ripple)


def steps_of(setpoint: np.ndarray) -> list[tuple[int, int]]:
    """Return the first sample of each step of a set point, and the sample after its last.

    The first of them begins with the set point itself if that holds.
    """
    span = float(np.ptp(setpoint))
    moves = np.abs(np.diff(setpoint))
    still = 1e-6 * max(span, float(np.abs(setpoint).max()), 1e-12)
    changes = [0, *(np.flatnonzero(moves > still) + 1).tolist(), len(setpoint)]
    return [
        (start, end)
        for start, end in pairwise(changes)
        if end - start >= HOLD_SAMPLES and (start == 0 or moves[start - 1] >= STEP * span)
    ]


def responses(tracked: Tracked) -> list[Response]:
    """Measure the answers to all steps of a set point.

    A step counts from the value that it found.
    """
    answers = []
    for start, end in steps_of(tracked.setpoint):
        before, after = float(tracked.value[start]), float(tracked.setpoint[start])
        size = max(float(np.ptp(tracked.setpoint)), float(np.abs(tracked.value).max()))
        if abs(after - before) >= STEP * size > 0:
            answers.append(
                step_response(tracked.time[start:end], tracked.value[start:end], before, after)
            )
    return answers


def tracked_quantities(task: Task[Any, Any], episode: Trajectory, agent: int = 0) -> list[Tracked]:
    """Return the tracked quantities of an episode.

    They are each ``X`` with a ``setpoint_X``, and the errors that the task names.

    The measure of a name is true and of the end of each step, while an observation may be noisy. So
    the measure is taken where there is one, after the first sample; else the set point minus
    ``error_X``, from where that error is within its instrument's range for good.
    """
    table = columns(task, episode, agent)
    time = table.get("time [s]", table["step"]).astype(np.float64)
    by_name = {name.rsplit(" [", 1)[0]: name for name in table}
    quantities = []
    for name, column in by_name.items():
        unit = column.rsplit("[", 1)[-1].rstrip("]")
        subject = name.removeprefix("setpoint_")
        if name.startswith("setpoint_") and (source := _source(subject, by_name)):
            setpoint, value, at = table[column], table[by_name[source]], time
            if source == subject and (true := by_name.get(f"measure.{subject}")):
                value = np.concatenate([value[:1], table[true][:-1]])
            if source.startswith("measure."):  # one step later
                setpoint, value, at = setpoint[1:], value[:-1], time[1:]
            elif source.startswith("error_"):
                [signal_shown] = [
                    signal for signal in observed_signals(task) if signal.name == source
                ]
                beyond = np.flatnonzero(np.abs(value) >= 0.999 * float(signal_shown.high or np.inf))
                in_range = slice(beyond[-1] + 1 if beyond.size else 0, None)
                setpoint, value, at = (
                    setpoint[in_range],
                    (setpoint - value)[in_range],
                    time[in_range],
                )
            if len(at) > 1:
                quantities.append(Tracked(subject, unit, at, setpoint, value))
        elif name.split(".")[0] in task.errors:
            quantities.append(Tracked(name, unit, time, np.zeros(len(time)), table[column]))
    return quantities


def summarise(episodes: Sequence[Sequence[Tracked]]) -> list[Summary]:
    """Summarise each tracked quantity over the episodes that have it."""
    summaries = []
    quantities: dict[str, list[Tracked]] = {}
    for quantity_of_episode in (quantity for episode in episodes for quantity in episode):
        quantities.setdefault(quantity_of_episode.name, []).append(quantity_of_episode)
    for together in quantities.values():
        answers = np.array(
            [response for quantity in together for response in responses(quantity)]
        ).reshape(-1, 4)
        rise, overshoot, settling, ripple = (_median(column) for column in answers.T)
        errors = np.concatenate([quantity.value - quantity.setpoint for quantity in together])
        summaries.append(
            Summary(
                together[0].name, together[0].unit, len(answers), rise, overshoot, settling,
                float(np.isfinite(answers[:, 2]).mean()) if len(answers) else math.nan,
                ripple, float(np.sqrt(np.mean(errors**2))),
            )
        )  # fmt: skip
    return summaries


def _source(name: str, names: Mapping[str, str]) -> str | None:
    return next(
        (source for source in (name, f"measure.{name}", f"error_{name}") if source in names), None
    )


def _median(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else math.nan


def _first_crossing(time: np.ndarray, share: np.ndarray, level: float) -> float:
    above = np.flatnonzero(share >= level)
    if not above.size:
        return math.nan
    return float(time[0]) if above[0] == 0 else _between(time, share, above[0] - 1, level)


def _between(time: np.ndarray, share: np.ndarray, before: int, level: float) -> float:
    """Return when a signal crosses a level between a sample and the next one."""
    low, high = share[before], share[before + 1]
    fraction = 1.0 if high == low else (level - low) / (high - low)
    return float(time[before] + fraction * (time[before + 1] - time[before]))

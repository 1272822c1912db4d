"""Set points: each controlled quantity has one of its own, all of the same kind.

=========== ========================================================================================
walk        moves by N(0, s^2) a step, s of the episode log-uniform in the goal's range
            (``Params.pace``)
laplace     the same with moves of Laplace's law and the same deviation: many small ones, few large
sinus,      periodic (``setpoints/wave.py``): amplitude and middle are drawn for the episode, and it
triangle,   begins where a walk would. The drive can follow its steepest slope: at the fastest pace
sawtooth,   that slope is the deviation of the fastest walk, or the acceleration by part of the
step        torque. A speed or position jumps by no more than ``Goal.jump``
switched    one of these, drawn anew for every sub-episode of a tenth to half of the time limit;
            each begins where the last one ended
ramps       ramps between levels that are held for a tenth to half of the time limit, for wide-speed
            drives
=========== ========================================================================================

All stay within the goal's bounds. A context may give a record instead (:class:`Recorded`).

Source: the reference generators of gym-electric-motor 3.0.3 (doi:10.21105/joss.02498). There
amplitudes and frequencies ignore what a drive can follow, and sub-episodes begin with a jump.
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.numerics import keys

from ...shared.own_constants import begin_in_record
from ..machines.frames import Scalar, Values
from ..setpoints.wave import SHAPES, Wave, wave_through
from .part import Part

MIN_LEVEL_SHARE = 0.1
"""Shortest sub-episode or level, in parts of the time limit."""
MAX_LEVEL_SHARE = 0.5
"""Longest sub-episode or level, in parts of the time limit."""
MIDDLE_LEVEL_SHARE = 0.2
"""Share of the levels in the middle of the range."""


class Range(NamedTuple):
    """Bounds and pace of one set point."""

    low: float
    high: float
    slowest: float
    """Deviation of a move"""
    quicker: float
    """Logarithm of the fastest deviation by the slowest"""
    steepest: float
    """Change a step that a wave keeps up, at the fastest pace"""
    jump: float
    """The most that it may change at once"""

    def deviation(self, pace: Scalar) -> Scalar:
        """Return the deviation of a move, at a pace of 0..1."""
        return self.slowest * jnp.exp(self.quicker * pace)

    def move(self, value: Scalar, pace: Scalar, move: Scalar) -> Scalar:
        """Return a walk's next value."""
        return jnp.clip(value + self.deviation(pace) * move, self.low, self.high)

    def wave(
        self, name: str, value: Scalar, pace: Scalar, draws: tuple[Scalar, Scalar, Scalar]
    ) -> Wave:
        """Begin a wave at a value; see :func:`~..setpoints.wave.wave_through`."""
        slope = self.steepest * jnp.exp(self.quicker * (pace - 1))
        return wave_through(name, value, (self.low, self.high), slope, self.jump, *draws)


class SetPoint(Part, abc.ABC):
    """A kind of set point; its memory is empty where its values are all it needs."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon

    def pace(self, unit: Scalar, split: Scalar) -> Scalar:
        """Return the pace of an episode, from a uniform number in [0, 1)."""
        return unit

    def first_setpoint(self, values: Values, pace: Scalar) -> Values:
        """Return the first values, given those that the drive would begin with."""
        return values

    def bounds(self, ranges: tuple[Range, ...]) -> list[tuple[float, float]]:
        """Return the lowest and the highest value that each set point may have."""
        return [(quantity_range.low, quantity_range.high) for quantity_range in ranges]

    @abc.abstractmethod
    def begin(self, values: Values, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array) -> Any:
        """Return the memory at the first values."""

    @abc.abstractmethod
    def step(
        self, values: Values, memory: Any, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array
    ) -> tuple[Values, Any]:
        """Return values and memory one step later."""


class Walk(SetPoint):
    """A random walk."""

    def begin(self, values: Values, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array) -> Any:
        """Return an empty memory."""
        return ()

    def moves(self, key: jax.Array, count: int, dtype: Any) -> jax.Array:
        """Draw moves of deviation one, shape ``(count,)``."""
        return keys.standard_normal(key, count, dtype)

    def step(
        self, values: Values, memory: Any, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array
    ) -> tuple[Values, Any]:
        """Move each value by itself."""
        moves = self.moves(key, len(values), values[0].dtype)
        return tuple(
            r.move(at, pace, moves[i]) for i, (at, r) in enumerate(zip(values, ranges, strict=True))
        ), ()


class LaplaceWalk(Walk):
    """A walk whose moves are of Laplace's law."""

    def moves(self, key: jax.Array, count: int, dtype: Any) -> jax.Array:
        """Draw moves of scale sqrt(1/2), which makes their deviation one."""
        return math.sqrt(0.5) * jax.random.laplace(key, (count,), dtype)


class Periodic(SetPoint):
    """A wave for each quantity."""

    name: ClassVar[str]

    def begin(self, values: Values, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array) -> Any:
        """Draw waves through the values."""
        u = jax.random.uniform(key, (len(values), 3), values[0].dtype)
        return tuple(
            r.wave(self.name, at, pace, (u[i, 0], u[i, 1], u[i, 2]))
            for i, (at, r) in enumerate(zip(values, ranges, strict=True))
        )

    def step(
        self, values: Values, memory: Any, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array
    ) -> tuple[Values, Any]:
        """Move each wave by one step."""
        waves = tuple(wave.shift() for wave in memory)
        shape = SHAPES[self.name]
        return tuple(
            jnp.clip(w.at(shape), r.low, r.high) for w, r in zip(waves, ranges, strict=True)
        ), waves


class Sinus(Periodic):
    """A sine."""

    name = "sinus"


class Triangle(Periodic):
    """A triangle that rises as long as it falls."""

    name = "triangle"


class Sawtooth(Periodic):
    """Rises and falls at once."""

    name = "sawtooth"


class Step(Periodic):
    """A square wave."""

    name = "step"


class SubEpisode(NamedTuple):
    """Present wave or walk of one quantity of :class:`Switched`."""

    wave: Wave
    kind: Scalar
    """int32: a walk, a walk of Laplace's law, or a wave by its place in :data:`SHAPES` plus two"""
    steps_left: Scalar
    """int32: steps until the next one"""


class Switched(SetPoint):
    """One kind after another."""

    def begin(self, values: Values, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array) -> Any:
        """Let the first step begin a sub-episode."""
        zero, none = jnp.zeros_like(values[0]), jnp.int32(0)
        return tuple(SubEpisode(Wave(zero, zero, zero, zero), none, none) for _ in values)

    def step(
        self, values: Values, memory: Any, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array
    ) -> tuple[Values, Any]:
        """Move each value by itself."""
        u = jax.random.uniform(key, (len(values), 6), values[0].dtype)
        pairs = [
            self._step_one(at, wave_memory, r, pace, tuple(u[i, k] for k in range(6)))
            for i, (at, wave_memory, r) in enumerate(zip(values, memory, ranges, strict=True))
        ]
        return tuple(value for value, _ in pairs), tuple(wave_memory for _, wave_memory in pairs)

    def _step_one(
        self, value: Scalar, wave_memory: SubEpisode, r: Range, pace: Scalar, u: Values
    ) -> tuple[Scalar, SubEpisode]:
        over = wave_memory.steps_left == 0
        kind = jnp.where(over, jnp.int32(u[0] * (2 + len(SHAPES))), wave_memory.kind)
        steps = jnp.int32(
            self.horizon * (MIN_LEVEL_SHARE + (MAX_LEVEL_SHARE - MIN_LEVEL_SHARE) * u[1])
        )
        steps_left = jnp.where(over, jnp.maximum(steps, 1), wave_memory.steps_left) - 1
        wave = wave_memory.wave
        for number, name in enumerate(SHAPES, 2):
            new = r.wave(name, value, pace, (u[2], u[3], u[4]))
            wave = Wave(
                *(jnp.where(over & (kind == number), a, b) for a, b in zip(new, wave, strict=True))
            )
        wave = wave.shift()
        # Both laws from one uniform number, by their quantiles; it is kept off the ends, where they
        # are infinite.
        centred = jnp.clip(2 * u[5] - 1, -1 + 1e-6, 1 - 1e-6)
        normal = math.sqrt(2) * jax.lax.erf_inv(centred)
        laplace = -math.sqrt(0.5) * jnp.sign(centred) * jnp.log1p(-jnp.abs(centred))
        next_value = r.move(value, pace, jnp.where(kind == 0, normal, laplace))
        for number, shape in enumerate(SHAPES.values(), 2):
            next_value = jnp.where(
                kind == number, jnp.clip(wave.at(shape), r.low, r.high), next_value
            )
        return next_value, SubEpisode(wave, kind, steps_left)


class Ramp(NamedTuple):
    """Memory of :class:`Ramps`."""

    level: Scalar
    steps_left: Scalar
    """int32: steps until the next level"""


class Ramps(SetPoint):
    """Ramps between levels: the middle of the range, or the outer half of either side."""

    def begin(self, values: Values, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array) -> Any:
        """Let the first step draw a level."""
        return tuple(Ramp(value, jnp.int32(0)) for value in values)

    def step(
        self, values: Values, memory: Any, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array
    ) -> tuple[Values, Any]:
        """Move each value towards its level."""
        u = jax.random.uniform(key, (len(values), 3), values[0].dtype)
        pairs = [
            self._step_one(at, ramp, r, pace, (u[i, 0], u[i, 1], u[i, 2]))
            for i, (at, ramp, r) in enumerate(zip(values, memory, ranges, strict=True))
        ]
        return tuple(value for value, _ in pairs), tuple(ramp for _, ramp in pairs)

    def _step_one(
        self, value: Scalar, ramp: Ramp, r: Range, pace: Scalar, u: Values
    ) -> tuple[Scalar, Ramp]:
        middle, distance = 0.5 * (r.low + r.high), 0.25 * (r.high - r.low) * (1 + u[1])
        side = jnp.where(
            u[0] < MIDDLE_LEVEL_SHARE,
            0.0,
            jnp.where(u[0] < 0.5 * (1 + MIDDLE_LEVEL_SHARE), -1.0, 1.0),
        )
        steps = jnp.int32(
            self.horizon * (MIN_LEVEL_SHARE + (MAX_LEVEL_SHARE - MIN_LEVEL_SHARE) * u[2])
        )
        over = ramp.steps_left == 0
        level = jnp.where(over, middle + side * distance, ramp.level)
        slope = r.steepest * jnp.exp(r.quicker * (pace - 1))
        return value + jnp.clip(level - value, -slope, slope), Ramp(
            level, jnp.where(over, steps, ramp.steps_left) - 1
        )


class Recorded(SetPoint):
    """A record of a context, row by row. The row at which an episode begins is its pace."""

    def __init__(self, horizon: int, table: np.ndarray) -> None:
        super().__init__(horizon)
        self.table = table

    def pace(self, unit: Scalar, split: Scalar) -> Scalar:
        """Return the first row of the record.

        Training episodes lie in its first half, test episodes in the second.
        """
        return begin_in_record(unit, split, len(self.table), self.horizon + 1).astype(
            self.table.dtype
        )

    def bounds(self, ranges: tuple[Range, ...]) -> list[tuple[float, float]]:
        """Return the lowest and the highest value of each column."""
        return [(float(column.min()), float(column.max())) for column in self.table.T]

    def first_setpoint(self, values: Values, pace: Scalar) -> Values:
        """Return the first row."""
        return self._row(pace.astype(jnp.int32))

    def begin(self, values: Values, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array) -> Any:
        """Return the present row, int32."""
        return pace.astype(jnp.int32)

    def step(
        self, values: Values, memory: Any, ranges: tuple[Range, ...], pace: Scalar, key: jax.Array
    ) -> tuple[Values, Any]:
        """Return the next row."""
        return self._row(memory + 1), memory + 1

    def _row(self, row: Scalar) -> Values:
        values = jnp.asarray(self.table)[row]
        return tuple(values[i] for i in range(self.table.shape[1]))


SETPOINTS: dict[str, type[SetPoint]] = {
    "walk": Walk,
    "laplace": LaplaceWalk,
    "sinus": Sinus,
    "triangle": Triangle,
    "sawtooth": Sawtooth,
    "step": Step,
    "switched": Switched,
    "ramps": Ramps,
}
"""Kinds of set points by their names in ``card.choices``."""

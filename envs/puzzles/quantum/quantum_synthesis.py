"""rlsuite/QuantumSynthesis-v0: approximate a given one-qubit gate by few gates of Clifford+T.

See :mod:`.gate_synthesis` for the rules and the interactive form. Up to phase, a circuit is a
rotation of the Bloch sphere whose entries are (a + b sqrt(2)) / sqrt(2)**k with integers a, b, k;
equal integers mean equal rotations (Giles & Selinger 2013, arXiv:1312.6584). Targets that are not
products are random by Haar's measure. There are few products: 24, 89 and 336 of 3, 6 and 10 gates.
The player sees the rotation that is left to make, 3 x 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import FILLED, Board
from ..shared.puzzle_task import Params
from .gate_synthesis import Circuits, Instance, SynthesisPuzzle, SynthesisTask, entries_as_text

GATES = ("H", "T", "Tdg", "S", "Sdg")
UNIT = 10**6
"""Scale of an instance's quaternion."""

Scalar = TypeVar("Scalar", float, jax.Array)
Quaternion = tuple[float, float, float, float]
"""w, x, y, z: the unitary w - i (x X + y Y + z Z), up to phase."""

_HALF_ROOT = math.sqrt(0.5)
_T_HALF_ANGLE = math.pi / 8
"""Half of the angle of T, in radians."""
_QUATERNIONS: tuple[Quaternion, ...] = (
    (0.0, _HALF_ROOT, 0.0, _HALF_ROOT),
    (math.cos(_T_HALF_ANGLE), 0.0, 0.0, math.sin(_T_HALF_ANGLE)),
    (math.cos(_T_HALF_ANGLE), 0.0, 0.0, -math.sin(_T_HALF_ANGLE)),
    (_HALF_ROOT, 0.0, 0.0, _HALF_ROOT),
    (_HALF_ROOT, 0.0, 0.0, -_HALF_ROOT),
)
"""Unit quaternion of each gate."""


def product(
    first: tuple[Scalar, Scalar, Scalar, Scalar], second: tuple[Scalar, Scalar, Scalar, Scalar]
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the quaternion of the product of two unitaries."""
    a, b, c, d = first
    w, x, y, z = second
    return (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


Rotation = tuple[int, ...]
"""Numbers of a rotation: k, then for each entry of a 3 x 3 matrix, row by row, a and b.

The entry is (a + b sqrt(2)) / sqrt(2)**k, and k is as small as can be.
"""

_IDENTITY: Rotation = (
    0,
    *(value for row in range(3) for column in range(3) for value in (int(row == column), 0)),
)


def rotate(rotation: Rotation, gate: int) -> Rotation:
    """Return the rotation followed by the rotation of a gate."""
    k = rotation[0]
    x, y, z = (rotation[1 + 6 * row : 7 + 6 * row] for row in range(3))
    name = GATES[gate]
    if name == "H":
        return (k, *z, *(-value for value in y), *x)
    if name == "S":
        return (k, *(-value for value in y), *x, *z)
    if name == "Sdg":
        return (k, *y, *(-value for value in x), *z)
    less = tuple(x_value - y_value for x_value, y_value in zip(x, y, strict=True))
    more = tuple(x_value + y_value for x_value, y_value in zip(x, y, strict=True))
    times_root = [value for a, b in zip(z[::2], z[1::2], strict=True) for value in (2 * b, a)]
    rows = (*less, *more) if name == "T" else (*more, *(-value for value in less))
    return _reduce(k + 1, (*rows, *times_root))


def _reduce(k: int, entries: tuple[int, ...]) -> Rotation:
    """Divide by sqrt(2) as often as can be."""
    while k and not any(a % 2 for a in entries[::2]):
        pairs = zip(entries[::2], entries[1::2], strict=True)
        entries = tuple(value for a, b in pairs for value in (b, a // 2))
        k -= 1
    return (k, *entries)


@cache
def circuits(max_gates: int) -> Circuits:
    """Return all circuits of up to so many gates, float64 quaternions ``(circuits, 4)``.

    A breadth-first search finds them.
    """
    rotations = {_IDENTITY}
    level: list[tuple[Rotation, Quaternion, tuple[int, ...]]] = [
        (_IDENTITY, (1.0, 0.0, 0.0, 0.0), ())
    ]
    every, begins = list(level), [0, 1]
    for _ in range(max_gates):
        longer = []
        for rotation, quaternion, word in level:
            for gate, turn in enumerate(_QUATERNIONS):
                following = rotate(rotation, gate)
                if following not in rotations:
                    rotations.add(following)
                    longer.append((following, product(turn, quaternion), (*word, gate)))
        level = longer
        every += level
        begins.append(len(every))
    return Circuits(
        np.array([quaternion for _, quaternion, _ in every]), [word for *_, word in every], begins
    )


class QuantumSynthesisPuzzle(SynthesisPuzzle):
    """Puzzle whose targets are quaternions in units of 10**-6, int32 ``(4,)``.

    Their length is 1 up to rounding.
    """

    name = "QuantumSynthesis"
    names = GATES
    inverses = (0, 2, 1, 4, 3)
    tiers = range(2, 15)
    dimension = 2
    # Only the eighth of the targets that are products repeat; random targets never do.
    few: ClassVar[dict[float, float]] = {3: 73_000, 6: 74_000, 10: 53_000}

    @property
    def circuits(self) -> Circuits:
        """Circuits, by rotations."""
        return circuits(self.gates)

    def circuit_target(self, number: int) -> np.ndarray:
        """Return the rounded quaternion of a circuit."""
        return _round_to_units(self.circuits.unitaries[number])

    def random_target(self, dice: Dice) -> np.ndarray:
        """Draw a unitary by Haar's measure."""
        return _round_to_units(_haar(dice))

    def distances(self, target: np.ndarray) -> np.ndarray:
        """Compute the distances term by term.

        Products of matrices are rounded in an order that depends on the computer.
        """
        terms = self.circuits.unitaries * target
        overlaps = np.abs(terms[:, 0] + terms[:, 1] + terms[:, 2] + terms[:, 3]) / math.hypot(
            *target.tolist()
        )
        gaps: np.ndarray = np.sqrt(np.maximum(1 - overlaps, 0))
        return gaps

    def distance(self, instance: Instance, gates: Sequence[int]) -> float:
        """Return the distance by quaternions."""
        target = instance.target.tolist()
        overlap = abs(
            sum(
                target_value * circuit_value
                for target_value, circuit_value in zip(
                    target, circuit_quaternion(gates), strict=True
                )
            )
        ) / math.hypot(*target)
        return math.sqrt(max(1 - overlap, 0.0))

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form up to sign, complex conjugation and inversion.

        These turn circuits into circuits.
        """
        w, x, y, z = instance.target.tolist()
        forms = ((w, x, y, z), (w, -x, y, -z), (w, -x, -y, -z), (w, x, -y, z))
        signed = (tuple(sign * value for value in form) for form in forms for sign in (1, -1))
        return np.array([*min(signed), instance.tolerance], "<i4").tobytes()

    def question(self, instance: Instance) -> str:
        """State the gates, the target, the distance and the format."""
        return (
            "Approximate a unitary U on one qubit by a circuit of the gates H, T, Tdg, S and Sdg:\n"
            "H = [[1, 1], [1, -1]] / sqrt(2), T = diag(1, exp(i pi/4)), S = diag(1, i) = T T, and "
            "Tdg and Sdg are the "
            f"inverses of T and S.\n\n{quaternion_text(np.asarray(instance.target) / UNIT)}\n\n"
            f"{self.task_text(instance)}"
        )


def _haar(dice: Dice) -> np.ndarray:
    """Return a uniform point of the 3-sphere.

    It is uniform in the ball without a small inner ball, then scaled.
    """
    while True:
        point = [dice.between(-UNIT, UNIT) for _ in range(4)]
        if UNIT**2 // 100 < sum(value * value for value in point) <= UNIT**2:
            return np.array(point) / math.sqrt(sum(value * value for value in point))


def _round_to_units(quaternion: np.ndarray) -> np.ndarray:
    """Round to whole units, int32."""
    return np.rint(quaternion * UNIT).astype(np.int32)


def circuit_quaternion(gates: Iterable[int]) -> Quaternion:
    """Return the quaternion of a circuit."""
    result: Quaternion = (1.0, 0.0, 0.0, 0.0)
    for gate in gates:
        result = product(_QUATERNIONS[gate], result)
    return result


def quaternion_text(quaternion: Sequence[float] | np.ndarray) -> str:
    """Return a unitary as text."""
    w, x, y, z = (float(value) for value in quaternion)
    return entries_as_text(np.array([[[w, -y], [y, w]], [[-z, -x], [-x, z]]]))


class QuaternionLeft(NamedTuple):
    """The unitary that is left to make, as a quaternion.

    It is the target times the inverse of the circuit.
    """

    w: jax.Array
    x: jax.Array
    y: jax.Array
    z: jax.Array
    used: jax.Array
    """int32: number of gates of the circuit."""


class QuantumSynthesis(SynthesisTask[QuaternionLeft]):
    """The interactive form: a quaternion is left to make, and its rotation is observed."""

    puzzle_class = QuantumSynthesisPuzzle
    view_size = 9

    def initial(self, key: jax.Array, params: Params) -> QuaternionLeft:
        """Begin with the whole target, scaled to length 1."""
        target = params.instance.target.astype(self.dtype) / UNIT
        # The inverse root of a number that is 1 up to 4e-6, by its tangent: XLA would use an
        # approximate instruction.
        w, x, y, z = target * (1.5 - 0.5 * (target * target).sum())
        return QuaternionLeft(w, x, y, z, jnp.int32(0))

    def transition(
        self, state: QuaternionLeft, action: jax.Array, key: jax.Array, params: Params
    ) -> QuaternionLeft:
        """Multiply with the gate's inverse from the right."""
        turns = jnp.where(
            (np.arange(len(GATES)) == action)[:, None], np.array(_QUATERNIONS, self.dtype), 0
        )
        w, x, y, z = turns.sum(axis=0)
        return QuaternionLeft(*product(state[:4], (w, -x, -y, -z)), state.used + 1)

    def view(self, state: QuaternionLeft) -> jax.Array:
        """Return the rotation, row by row."""
        w, x, y, z = state[:4]
        return self.stack(
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
        )  # fmt: skip

    @property
    def view_components(self) -> tuple[Component, ...]:
        """The rotation of the Bloch sphere."""
        return (
            Component(
                "rotation",
                "[row, column]: rotation of the Bloch sphere that is left to do",
                shape=(3, 3),
            ),
        )

    def gap(self, state: QuaternionLeft) -> jax.Array:
        """Return the distance by the real part of the quaternion."""
        return jnp.sqrt(jnp.maximum(1 - jnp.abs(state.w), 0))

    # -- host side ---------------------------------------------------------------------------------

    def unitary_text(self, state: QuaternionLeft) -> str:
        """Show it as the target of the question."""
        return quaternion_text([float(value) for value in state[:4]])

    def draw(self, state: QuaternionLeft, params: Params) -> np.ndarray:
        """Draw the remaining rotation: the images of X, Y and Z."""
        board = Board(3, 3, self.picture_shape)
        entries = np.asarray(self.observation(state, jax.random.key(0), params))[:9].reshape(3, 3)
        for row, axis in enumerate("XYZ"):
            board.text(row, -1, axis)
            board.text(-1, row, axis)
            for column, value in enumerate(entries[row]):
                board.cell(row, column, is_clue=abs(value) < 0.5)
                board.text(row, column, f"{value:.2f}", FILLED, 0.5)
        board.text(3, 1, f"{self.puzzle.gates - int(state.used)} left", scale=0.6)
        return board.picture()

"""rlsuite/TwoQubitSynthesis-v0: approximate a given two-qubit gate by few gates of Clifford+T.

See :mod:`.gate_synthesis` for the rules and the interactive form. The entries of a circuit's
unitary are integer combinations of 1, w, w**2 and w**3 over a power of sqrt(2), where w = exp(i
pi/4) (Giles & Selinger 2013, arXiv:1212.0506). The integers alone determine the unitary, because
the length of a row gives the power of sqrt(2). Equal integers mean equal unitaries, up to one of
eight phases. A target's entries are whole millionths, so that the integers of a trace are exact
too.

A target that is no product of few gates is a product of ``difficulty`` gates and of no fewer, with
two rotations about z put between them, by angles up to that of T; two such targets are hardly ever
equal. There are 197, 3,059 and 35,347 products of 3, 5 and 7 gates, and 249, 4,114 and 50,164 of at
most so many. Circuits that differ by the numbers of the qubits, complex conjugation or inversion
are one puzzle, which leaves 38, 436 and 4,608 products of 3, 5 and 7 gates.

The player sees the unitary that is left to make: the real parts, row by row, then the imaginary
parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import FILLED, Board
from ..shared.puzzle_task import Params
from .gate_synthesis import Circuits, Instance, SynthesisPuzzle, SynthesisTask, entries_as_text

GATES = ("H1", "H2", "T1", "T2", "Tdg1", "Tdg2", "CNOT12", "CNOT21")
UNIT = 10**6
"""Scale of the parts of a target's entries."""
_ROTATIONS = 2
"""Number of rotations in a target that is no product of few gates."""
_TANGENT_STEPS = 1000
"""Steps of a tangent in 1: a rotation's angle is ``4 atan(n / _TANGENT_STEPS)``, n whole."""
_MAX_STEPS = 198
"""Largest number n of steps, in absolute value; tan(pi/16) is about 0.1989."""

_OMEGAS = np.stack(
    [
        np.linalg.matrix_power(np.eye(4, k=1, dtype=int) - np.eye(4, k=-3, dtype=int), power)
        for power in range(8)
    ]
)
"""Matrices that multiply by w**n.

Each acts from the right on a row of coefficients of 1, w, w**2 and w**3.
"""
_HALVES = np.array([[1, 0], [0, 1 + 1j], [1j, 0], [0, 1j - 1]])
"""Matrix that turns an entry's coefficients into two Gaussian integers p and q.

The entry is p + q sqrt(1/2).
"""
_HALF = math.sqrt(0.5)


def _diagonal(first: np.ndarray, second: np.ndarray, qubit: int) -> np.ndarray:
    """Return a turn (see below) by a diagonal gate on a qubit, numbered from 0."""
    entries = [first, second, first, second] if qubit else [first, first, second, second]
    turn = np.zeros((4, 4, 4, 4), int)
    turn[range(4), :, range(4), :] = entries
    return turn.reshape(16, 16)


def _turn(name: str) -> np.ndarray:
    """Return the matrix that changes a row's columns and coefficients, int64 ``(16, 16)``.

    It stands for a gate that is multiplied from the right.
    """
    identity_2 = _OMEGAS[0]
    if name.startswith("CNOT"):
        return np.kron(
            np.eye(4, dtype=int)[[0, 1, 3, 2] if name == "CNOT12" else [0, 3, 2, 1]], identity_2
        )
    qubit = int(name[-1]) - 1
    if name.startswith("T"):
        return _diagonal(identity_2, _OMEGAS[7 if "dg" in name else 1], qubit)
    hadamard, identity = np.array([[1, 1], [1, -1]]), np.eye(2, dtype=int)
    return np.kron(
        np.kron(identity, hadamard) if qubit else np.kron(hadamard, identity), identity_2
    )


_TURNS = np.stack([_turn(name) for name in GATES])
"""Matrix of each gate; those of H without their factor sqrt(1/2)."""
_NOTHING = np.kron(np.eye(4, dtype=int), [1, 0, 0, 0])
"""The integers of the empty circuit, ``(4, 16)``."""
_QUARTERS = (0, 0, 1, 1, -1, -1, 2, 2)
"""Exponent of each gate: its determinant is i to this power."""
_INVERSES = [
    np.conj(turn.reshape(4, 4, 4, 4)[:, 0] @ _HALVES @ [1, _HALF]).T
    * (_HALF if name.startswith("H") else 1)
    for name, turn in zip(GATES, _TURNS, strict=True)
]
_BACK = np.stack([(inverse.real, inverse.imag) for inverse in _INVERSES])
"""Each gate's inverse, ``(8, 2, 4, 4)``: the real and the imaginary part."""


def product(turns: Iterable[np.ndarray]) -> np.ndarray:
    """Return the integers of a product, int64 ``(4, 16)``.

    They are the coefficients of each column of a row.

    The gate that is applied first comes last.
    """
    rows = _NOTHING
    for turn in turns:
        rows = rows @ turn
    return rows


def normalise(unitaries: np.ndarray) -> np.ndarray:
    """Divide integers ``(n, 4, 16)`` by sqrt(2) as often as possible, and choose a phase.

    There are eight phases.

    In the chosen phase the first entry other than 0 has the greatest coefficients, compared one by
    one.
    """
    result = unitaries.reshape(-1, 16, 4).copy()
    while (even := ~((result[..., :2] ^ result[..., 2:]) & 1).any(axis=(1, 2))).any():
        a, b, c, d = np.moveaxis(result[even], -1, 0)
        result[even] = np.stack([b - d, a + c, b + d, c - a], axis=-1) // 2
    first = result[np.arange(len(result)), result.any(axis=2).argmax(axis=1)]
    phase = (first @ _OMEGAS @ (1 << np.arange(48, -1, -16))).argmax(axis=0)
    return np.asarray(result @ _OMEGAS[phase].astype(result.dtype)).reshape(-1, 4, 16)


@cache
def circuits(max_gates: int) -> Circuits:
    """Return all circuits of at most this many gates, by breadth-first search.

    Their unitaries are normal integers after ``_HALVES``, complex128 ``(circuits, 2, 16)``. Entries
    of targets are integers too, so sums of their products are exact.
    """
    level = _NOTHING[None].astype(np.int8)
    levels = [level]
    words: list[tuple[int, ...]] = [()]
    begins = [0, 1]
    previous_keys: set[bytes] = set()
    keys = {level.tobytes()}
    for _ in range(max_gates):
        new_levels, longer = [], dict[bytes, tuple[int, ...]]()
        for gate, turn in enumerate(_TURNS.astype(np.int8)):
            products, new = normalise(level @ turn), []
            for number, unitary in enumerate(products):
                if (
                    (key := unitary.tobytes()) not in previous_keys
                    and key not in keys
                    and key not in longer
                ):
                    longer[key] = (gate, *words[begins[-2] + number])
                    new.append(number)
            new_levels.append(products[new])
        level = np.concatenate(new_levels)
        levels.append(level)
        words += longer.values()
        begins.append(len(words))
        previous_keys, keys = keys, set(longer)
    return Circuits(_halves(np.concatenate(levels)), words, begins)


def _halves(unitaries: np.ndarray) -> np.ndarray:
    """Return the parts of integers ``(n, 4, 16)``, in the shape of :func:`circuits`."""
    return np.ascontiguousarray((unitaries.reshape(-1, 16, 4) @ _HALVES).swapaxes(1, 2))


@cache
def _sizes(max_gates: int) -> np.ndarray:
    """Return the divisor of the integers of each circuit, float64 ``(circuits,)``."""
    return _size(circuits(max_gates).unitaries)


def _size(halves: np.ndarray) -> np.ndarray:
    """Return the length of the first row; its p and q are orthogonal."""
    row = halves[:, :, :4]
    lengths: np.ndarray = np.sqrt((row.real**2 + row.imag**2).sum(axis=2) @ [1, 0.5])
    return lengths


def _gaps(halves: np.ndarray, sizes: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the distances of circuits from a target."""
    real, imaginary = target.reshape(2, 16)
    p, q = (halves.reshape(-1, 16) @ (real - 1j * imaginary)).reshape(-1, 2).T
    trace = p + _HALF * q
    overlaps = np.sqrt(trace.real**2 + trace.imag**2) / (4 * UNIT * sizes)
    gaps: np.ndarray = np.sqrt(np.maximum(1 - overlaps, 0))
    return gaps


class TwoQubitSynthesisPuzzle(SynthesisPuzzle):
    """Puzzle whose targets have determinant 1, in units of 10**-6.

    They are int32 ``(2, 4, 4)``, the real and the imaginary parts.
    """

    name = "TwoQubitSynthesis"
    names = GATES
    inverses = (0, 1, 4, 5, 2, 3, 6, 7)
    tiers = range(2, 9)
    dimension = 4
    # As with one qubit, only the eighth of the targets that are products repeat.
    few: ClassVar[dict[float, float]] = {3: 74_000, 5: 89_000, 7: 340_000}

    @property
    def circuits(self) -> Circuits:
        """Circuits, by integers."""
        return circuits(self.gates)

    def circuit_target(self, number: int) -> np.ndarray:
        """Return the unitary of a circuit with determinant 1, rounded."""
        return self._target(self.circuits.words[number])

    def random_target(self, dice: Dice) -> np.ndarray:
        """Return a circuit that needs all gates, and rotations among them."""
        longest, count = self.circuits.begins[-2:]
        word = self.circuits.words[dice.between(longest, count - 1)]
        rotations = [
            (dice.below(len(word) + 1), dice.below(2), dice.between(-_MAX_STEPS, _MAX_STEPS))
            for _ in range(_ROTATIONS)
        ]
        return self._target(word, rotations)

    @staticmethod
    def _target(word: Sequence[int], rotations: Iterable[tuple[int, int, int]] = ()) -> np.ndarray:
        """Return the unitary of a circuit with rotations.

        Each has the gate that it precedes, a qubit and its steps.
        """
        turns = [_TURNS[gate] for gate in word]
        size = math.sqrt(2 ** sum(GATES[gate].startswith("H") for gate in word))
        for gate_number, qubit, steps in rotations:
            along, across = _TANGENT_STEPS**2 - steps**2, 2 * _TANGENT_STEPS * steps
            size *= _TANGENT_STEPS**2 + steps**2
            back, forth = (along * _OMEGAS[0] + across * _OMEGAS[power] for power in (6, 2))
            turns.insert(gate_number, _diagonal(back, forth, qubit))
        p, q = (product(reversed(turns)).reshape(4, 4, 4) @ _HALVES).transpose(2, 0, 1)
        entries = (p + _HALF * q) / size
        angle = -math.pi / 8 * (sum(_QUARTERS[gate] for gate in word) % 4)
        c, s = math.cos(angle), math.sin(angle)
        turned = np.stack(
            [c * entries.real - s * entries.imag, s * entries.real + c * entries.imag]
        )
        return np.rint(UNIT * turned).astype(np.int32)

    def distances(self, target: np.ndarray) -> np.ndarray:
        """Compute the distances by traces of integers."""
        return _gaps(self.circuits.unitaries, _sizes(self.gates), target)

    def distance(self, instance: Instance, gates: Sequence[int]) -> float:
        """Return the distance by the trace of integers."""
        halves = _halves(product(_TURNS[gate] for gate in reversed(gates)))
        return float(_gaps(halves, _size(halves), instance.target)[0])

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form up to the four phases that leave the determinant 1.

        Renumbering the qubits, complex conjugation and transposition make circuits of circuits.
        """
        target, swap = instance.target.astype("<i4"), np.array([0, 2, 1, 3])
        forms = [
            (real, sign * imaginary)
            for real, imaginary in (target, target.swapaxes(1, 2))
            for sign in (1, -1)
        ]
        forms += [(real[swap][:, swap], imaginary[swap][:, swap]) for real, imaginary in forms]
        forms += [(-imaginary, real) for real, imaginary in forms]
        smallest = min((sign * np.stack(form)).tobytes() for form in forms for sign in (1, -1))
        return smallest + instance.tolerance.astype("<i4").tobytes()

    def question(self, instance: Instance) -> str:
        """State the gates, the target, the distance and the format."""
        return (
            "Approximate a unitary U on two qubits by a circuit of the gates H1, T1 and Tdg1 on "
            "qubit 1, H2, T2 and "
            "Tdg2 on qubit 2, CNOT12, which is controlled by qubit 1 and acts on qubit 2, and "
            "CNOT21, the other way "
            "round: H = [[1, 1], [1, -1]] / sqrt(2), T = diag(1, exp(i pi/4)), and Tdg is the "
            "inverse of T. Rows and "
            "columns of U belong to the states 00, 01, 10, 11, in which qubit 1 comes first.\n\n"
            f"{entries_as_text(np.asarray(instance.target) / UNIT)}\n\n{self.task_text(instance)}"
        )


class UnitaryLeft(NamedTuple):
    """The unitary that is left to make: the target times the inverse of the circuit."""

    real: jax.Array
    """Real parts, ``(4, 4)``."""
    imaginary: jax.Array
    """Imaginary parts, ``(4, 4)``."""
    used: jax.Array
    """int32: number of gates of the circuit."""


class TwoQubitSynthesis(SynthesisTask[UnitaryLeft]):
    """The interactive form: a unitary is left to make."""

    puzzle_class = TwoQubitSynthesisPuzzle
    view_size = 32

    def initial(self, key: jax.Array, params: Params) -> UnitaryLeft:
        """Begin with the whole target."""
        real, imaginary = params.instance.target.astype(self.dtype) / UNIT
        return UnitaryLeft(real, imaginary, jnp.int32(0))

    def transition(
        self, state: UnitaryLeft, action: jax.Array, key: jax.Array, params: Params
    ) -> UnitaryLeft:
        """Multiply with the gate's inverse from the right."""
        across, down = jnp.asarray(_BACK, self.dtype)[action]
        real, imaginary = state.real[:, :, None], state.imaginary[:, :, None]
        reals, imaginaries = real * across - imaginary * down, real * down + imaginary * across
        return UnitaryLeft(_sum_in_order(reals), _sum_in_order(imaginaries), state.used + 1)

    def view(self, state: UnitaryLeft) -> jax.Array:
        """Return the unitary."""
        return jnp.concatenate([state.real.ravel(), state.imaginary.ravel()])

    @property
    def view_components(self) -> tuple[Component, ...]:
        """The unitary."""
        meaning = "[row, column]: {} parts of the unitary that is left to do"
        return tuple(
            Component(kind, meaning.format(kind), shape=(4, 4)) for kind in ("real", "imaginary")
        )

    def gap(self, state: UnitaryLeft) -> jax.Array:
        """Return the distance by the trace."""
        real, imaginary = (
            matrix[0, 0] + matrix[1, 1] + matrix[2, 2] + matrix[3, 3]
            for matrix in (state.real, state.imaginary)
        )
        return jnp.sqrt(jnp.maximum(1 - jnp.sqrt(real * real + imaginary * imaginary) / 4, 0))

    # -- host side ---------------------------------------------------------------------------------

    def unitary_text(self, state: UnitaryLeft) -> str:
        """Show it as the target of the question."""
        return entries_as_text(np.stack([state.real, state.imaginary]))

    def draw(self, state: UnitaryLeft, params: Params) -> np.ndarray:
        """Draw the absolute value of each entry that is left, and below it the phase in degrees."""
        board = Board(4, 4, self.picture_shape)
        entries = np.asarray(state.real) + 1j * np.asarray(state.imaginary)
        for row in range(4):
            board.text(row, -1, f"{row:02b}", scale=0.6)
            board.text(-1, row, f"{row:02b}", scale=0.6)
            for column, entry in enumerate(entries[row]):
                board.cell(row, column, is_clue=abs(entry) < 0.5)
                if abs(entry) >= 0.005:
                    board.text(row - 0.15, column, f"{abs(entry):.2f}", FILLED, 0.5)
                    board.text(row + 0.25, column, f"{np.degrees(np.angle(entry)):.0f}", scale=0.4)
        board.text(4, 1.5, f"{self.puzzle.gates - int(state.used)} left", scale=0.6)
        return board.picture()


def _sum_in_order(products: jax.Array) -> jax.Array:
    """Sum over the middle of three axes of length 4, in order."""
    return products[:, 0] + products[:, 1] + products[:, 2] + products[:, 3]

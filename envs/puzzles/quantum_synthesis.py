"""rlsuite/QuantumSynthesis-v0: come near enough to a given one-qubit gate by few gates of the Clifford+T set.

The distance of two unitaries is sqrt(1 - |tr(U^+ V)| / 2), which a global phase does not change (Fowler 2011,
arXiv:quant-ph/0411206). All unitaries that circuits of so many gates make are enumerated, exactly: up to phase, each is
a rotation of the Bloch sphere whose entries are (a + b sqrt(2)) / sqrt(2)**k with integers a, b, k, and equal rotations
are found by equal integers (Giles & Selinger 2013, arXiv:1312.6584). So it is known what can be reached.

Seven of eight targets are random by Haar's measure; there the wanted distance lies between what ``difficulty`` gates
reach and what fewer reach. The eighth is a product of ``difficulty`` gates and of no fewer, and has to be hit. (There
are few of those: 24, 89 and 336 products of 3, 6 and 10 gates.) No circuit of at most so many gates has a distance
within :data:`MARGIN` of the wanted one, so rounding decides nothing.

=============  =====================================================================================================
action         the gate to apply, ``Discrete(5)``, in the order of ``GATES``
observation    ``Box(11)``: the rotation that is left to do, 3 x 3; the wanted distance; the fraction of the gates left
reward         decrease of what the distance exceeds the wanted one by, divided by what it is at first; +1 on being near
               enough
termination    near enough, or no gate left
=============  =====================================================================================================

Rewards telescope, and the best return is 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.card import TaskCard
from rlbench_suite.dice import Dice
from rlbench_suite.puzzle import RIGHT, Malformed, Puzzle, Verdict, wrong

from . import answer as reading
from .board import FILLED, Board
from .puzzle_task import Params, PuzzleTask

GATES = ("H", "T", "Tdg", "S", "Sdg")
UNIT = 10**6
"""Of an instance's quaternion."""
FINE = 10**4
"""Of its wanted distance."""
MARGIN = 1e-4
HIT = 0.01
"""The wanted distance where the target is a product of gates."""
_LEAST_EXCESS = 0.1
"""By which the distance of no gate at all exceeds the wanted one, at least."""
_LONGEST = 14
_MOST_GATES = 1000

Scalar = TypeVar("Scalar", float, jax.Array)
Quaternion = tuple[float, float, float, float]
"""w, x, y, z: the unitary w - i (x X + y Y + z Z), up to phase."""

_HALF, _EIGHTH = math.sqrt(0.5), math.pi / 8
_QUATERNIONS: tuple[Quaternion, ...] = (
    (0.0, _HALF, 0.0, _HALF),
    (math.cos(_EIGHTH), 0.0, 0.0, math.sin(_EIGHTH)),
    (math.cos(_EIGHTH), 0.0, 0.0, -math.sin(_EIGHTH)),
    (_HALF, 0.0, 0.0, _HALF),
    (_HALF, 0.0, 0.0, -_HALF),
)
"""Of each gate."""


def product(
    one: tuple[Scalar, Scalar, Scalar, Scalar], other: tuple[Scalar, Scalar, Scalar, Scalar]
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The quaternion of the product of two unitaries."""
    a, b, c, d = one
    w, x, y, z = other
    return (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


Rotation = tuple[int, ...]
"""k, then for each entry of a 3 x 3 matrix, row by row, a and b: the entry is (a + b sqrt(2)) / sqrt(2)**k, and k is as
small as can be."""

_IDENTITY: Rotation = (0, *(value for row in range(3) for column in range(3) for value in (int(row == column), 0)))


def rotated(rotation: Rotation, gate: int) -> Rotation:
    """The rotation followed by that of a gate."""
    k = rotation[0]
    x, y, z = (rotation[1 + 6 * row : 7 + 6 * row] for row in range(3))
    name = GATES[gate]
    if name == "H":
        return (k, *z, *(-value for value in y), *x)
    if name == "S":
        return (k, *(-value for value in y), *x, *z)
    if name == "Sdg":
        return (k, *y, *(-value for value in x), *z)
    less = tuple(one - other for one, other in zip(x, y, strict=True))
    more = tuple(one + other for one, other in zip(x, y, strict=True))
    times_root = [value for a, b in zip(z[::2], z[1::2], strict=True) for value in (2 * b, a)]
    rows = (*less, *more) if name == "T" else (*more, *(-value for value in less))
    return _reduced(k + 1, (*rows, *times_root))


def _reduced(k: int, entries: tuple[int, ...]) -> Rotation:
    """Divided by sqrt(2) as often as can be."""
    while k and not any(a % 2 for a in entries[::2]):
        pairs = zip(entries[::2], entries[1::2], strict=True)
        entries = tuple(value for a, b in pairs for value in (b, a // 2))
        k -= 1
    return (k, *entries)


class Circuits(NamedTuple):
    """One circuit for each unitary (up to phase), none shorter; the short ones first."""

    quaternions: np.ndarray
    """float64 ``(circuits, 4)``."""
    words: list[tuple[int, ...]]
    """The gates of each, in the order in which they are applied."""
    begins: list[int]
    """For each number of gates from 0: the first circuit that has so many; their number behind the last."""


@cache
def circuits(most: int) -> Circuits:
    """All of at most so many gates, by breadth-first search."""
    known = {_IDENTITY}
    level: list[tuple[Rotation, Quaternion, tuple[int, ...]]] = [(_IDENTITY, (1.0, 0.0, 0.0, 0.0), ())]
    every, begins = list(level), [0, 1]
    for _ in range(most):
        longer = []
        for rotation, quaternion, word in level:
            for gate, turn in enumerate(_QUATERNIONS):
                following = rotated(rotation, gate)
                if following not in known:
                    known.add(following)
                    longer.append((following, product(turn, quaternion), (*word, gate)))
        level = longer
        every += level
        begins.append(len(every))
    return Circuits(np.array([quaternion for _, quaternion, _ in every]), [word for *_, word in every], begins)


class Instance(NamedTuple):
    """What to come near to."""

    target: np.ndarray
    """int32 ``(4,)``: its quaternion in units of 10**-6; of length 1 up to rounding."""
    wanted: np.int32
    """The distance that is near enough, in units of 10**-4."""


class QuantumSynthesisPuzzle(Puzzle[Instance]):
    """``tier`` is the number of gates allowed, all of which are needed."""

    name = "QuantumSynthesis"
    difficulty_is = "log2 of the unitaries that so many gates can make, over those of them that are near enough"
    # Only the eighth that has to be hit repeats: random targets never do.
    few: ClassVar[dict[float, float]] = {3: 73_000, 6: 56_000, 10: 53_000}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        if tier not in range(2, _LONGEST + 1):
            raise ValueError(f"QuantumSynthesis: difficulty is the number of gates, 2 to {_LONGEST}, got {tier!r}.")
        self.gates = int(tier)

    def compose(self, dice: Dice) -> Instance | None:
        """A random target, or a product of gates; None where that cannot be wanted."""
        known = circuits(self.gates)
        longest = known.begins[-2]
        if dice.share(8) == 0:
            target = _rounded(known.quaternions[dice.between(longest, len(known.words) - 1)])
            distances, wanted = self.distances(target), HIT
        else:
            target = _rounded(_haar(dice))
            distances = self.distances(target)
            wanted = round((distances[:longest].min() + distances[longest:].min()) / 2 * FINE) / FINE
        near = distances <= wanted
        if near[:longest].any() or not near.any() or np.abs(distances - wanted).min() < MARGIN:
            return None
        if distances[0] < wanted + _LEAST_EXCESS:
            return None
        return Instance(target, np.int32(round(wanted * FINE)))

    def distances(self, target: np.ndarray) -> np.ndarray:
        """The distance of each of :func:`circuits` from a target, float64."""
        overlaps = np.abs(circuits(self.gates).quaternions @ target) / math.hypot(*target.tolist())
        gaps: np.ndarray = np.sqrt(np.maximum(1 - overlaps, 0))
        return gaps

    def canonical(self, instance: Instance) -> bytes:
        """Up to sign; complex conjugation and inversion make circuits of circuits."""
        w, x, y, z = instance.target.tolist()
        forms = ((w, x, y, z), (w, -x, y, -z), (w, -x, -y, -z), (w, x, -y, z))
        signed = (tuple(sign * value for value in form) for form in forms for sign in (1, -1))
        return np.array([*min(signed), instance.wanted], "<i4").tobytes()

    def question(self, instance: Instance) -> str:
        """Gates, target, distance, format."""
        return (
            "Approximate a unitary U on one qubit by a circuit of the gates H, T, Tdg, S and Sdg:\n"
            "H = [[1, 1], [1, -1]] / sqrt(2), T = diag(1, exp(i pi/4)), S = diag(1, i) = T T, and Tdg and Sdg are the "
            f"inverses of T and S.\n\n{shown(np.asarray(instance.target) / UNIT, 'U')}\n\n"
            "The circuit's unitary V is the product of its gates, the one that is applied first on the right. Its "
            "distance from U is sqrt(1 - |tr(U^+ V)| / 2), where U^+ is the conjugate transpose of U; a global phase "
            f"does not matter. Find a circuit of at most {self.gates} gates with a distance of at most "
            f"{float(instance.wanted / FINE):.4f}.\n"
            f"Answer with gates in the order in which they are applied, among {' '.join(GATES)}, separated by single "
            "spaces."
        )

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Multiply, and measure."""
        words = answer.split(" ")
        if len(words) > _MOST_GATES:
            raise Malformed(f"expected at most {self.gates} gates, got {len(words)}")
        gates = [reading.word(word, GATES) for word in words]
        if len(gates) > self.gates:
            return wrong(f"the circuit has {len(gates)} gates, {self.gates} are allowed")
        gap, wanted = _distance(instance, made(gates)), instance.wanted / FINE
        return RIGHT if gap <= wanted else wrong(f"the distance is {gap:.6f}, more than {wanted:.4f}")

    def _near(self, instance: Instance) -> np.ndarray:
        """The circuits that are near enough."""
        return np.flatnonzero(self.distances(instance.target) <= instance.wanted / FINE)

    def plan(self, instance: Instance) -> Sequence[int]:
        """The first circuit that is near enough."""
        return circuits(self.gates).words[self._near(instance)[0]]

    def solve(self, instance: Instance) -> str:
        """By trying all circuits, the short ones first."""
        return _written(self.plan(instance))

    def difficulty(self, instance: Instance) -> float:
        """By counting unitaries."""
        return math.log2(len(circuits(self.gates).words) / len(self._near(instance)))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """As many gates as allowed, none of which undoes the one before."""
        gates = [dice.below(len(GATES))]
        while len(gates) < self.gates:
            gate = dice.below(len(GATES))
            if gate != _INVERSE[gates[-1]]:
                gates.append(gate)
        return _written(gates)

    def heuristic(self, instance: Instance) -> str:
        """The gate that leads nearest, until near enough or no gate is left."""
        gates: list[int] = []
        while len(gates) < self.gates:
            gaps = [_distance(instance, made([*gates, gate])) for gate in range(len(GATES))]
            gates.append(gaps.index(min(gaps)))
            if min(gaps) * FINE <= instance.wanted:
                break
        return _written(gates)

    def constants(self) -> Sequence[str]:
        """H and another gate in turns."""
        return [_written([0, gate] * (self.gates // 2)) for gate in range(1, len(GATES))]


_INVERSE = (0, 2, 1, 4, 3)
"""The gate that undoes each."""


def _haar(dice: Dice) -> np.ndarray:
    """A point of the 3-sphere: uniform in the ball (but for a small one inside it), then scaled."""
    while True:
        point = [dice.between(-UNIT, UNIT) for _ in range(4)]
        if UNIT**2 // 100 < sum(value * value for value in point) <= UNIT**2:
            return np.array(point) / math.sqrt(sum(value * value for value in point))


def _rounded(quaternion: np.ndarray) -> np.ndarray:
    """In whole units, int32."""
    return np.rint(quaternion * UNIT).astype(np.int32)


def made(gates: Iterable[int]) -> Quaternion:
    """The quaternion of a circuit."""
    whole: Quaternion = (1.0, 0.0, 0.0, 0.0)
    for gate in gates:
        whole = product(_QUATERNIONS[gate], whole)
    return whole


def _distance(instance: Instance, quaternion: Quaternion) -> float:
    """Of a unitary from the target."""
    target = instance.target.tolist()
    overlap = abs(sum(one * other for one, other in zip(target, quaternion, strict=True))) / math.hypot(*target)
    return math.sqrt(max(1 - overlap, 0.0))


def _written(gates: Iterable[int]) -> str:
    """A circuit as an answer is written."""
    return " ".join(GATES[gate] for gate in gates)


def shown(quaternion: Sequence[float] | np.ndarray, name: str) -> str:
    """A unitary as text, its entries as real and imaginary parts."""
    w, x, y, z = (float(value) for value in quaternion)
    rows = (((w, -z), (-y, -x)), ((y, -x), (w, z)))
    return "\n".join(
        f"{name}{row}{column} = {real:+.6f} {imaginary:+.6f} i"
        for row, entries in enumerate(rows, 1)
        for column, (real, imaginary) in enumerate(entries, 1)
    )


class Left(NamedTuple):
    """What is left to do: the target times the inverse of the circuit, as a quaternion."""

    w: jax.Array
    x: jax.Array
    y: jax.Array
    z: jax.Array
    used: jax.Array
    """int32: gates of the circuit."""


class QuantumSynthesis(PuzzleTask[Left]):
    """Applying a gate."""

    puzzle: QuantumSynthesisPuzzle
    puzzle_class = QuantumSynthesisPuzzle
    measures: ClassVar[dict[str, str]] = {"distance": "distance of circuit and target, 0 to 1"}

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = spaces.Discrete(len(GATES))
        self.observation_space = self.box([-1.0] * 9 + [0.0, 0.0], 1.0)
        self.reward_space = self.box(-1 / _LEAST_EXCESS, 2.0)

    def initial(self, key: jax.Array, params: Params) -> Left:
        """The whole target, scaled to length 1."""
        target = params.instance.target.astype(self.dtype) / UNIT
        # The inverse root of what is 1 but for 4e-6, by its tangent: XLA makes an approximate instruction of the root.
        w, x, y, z = target * (1.5 - 0.5 * (target * target).sum())
        return Left(w, x, y, z, jnp.int32(0))

    def transition(self, state: Left, action: jax.Array, key: jax.Array, params: Params) -> Left:
        """Multiply with the gate's inverse from the right."""
        turns = jnp.where((np.arange(len(GATES)) == action)[:, None], np.array(_QUATERNIONS, self.dtype), 0)
        w, x, y, z = turns.sum(axis=0)
        return Left(*product(state[:4], (w, -x, -y, -z)), state.used + 1)

    def observation(self, state: Left, key: jax.Array, params: Params) -> jax.Array:
        """The rotation that is left, the wanted distance, the gates left."""
        w, x, y, z = state[:4]
        rotation = self.stack(
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
        )  # fmt: skip
        left = (self.puzzle.gates - state.used).astype(self.dtype) / self.puzzle.gates
        return jnp.concatenate([rotation.clip(-1, 1), self.stack(self._wanted(params), left)])

    def reward(self, state: Left, action: jax.Array, next_state: Left, key: jax.Array, params: Params) -> jax.Array:
        """Progress, and 1 for being near enough."""
        at_first = self._excess(self.initial(key, params), params)
        before, after = self._excess(state, params), self._excess(next_state, params)
        return (before - after) / at_first + ((before > 0) & (after == 0)).astype(self.dtype)

    def terminal(self, state: Left, key: jax.Array, params: Params) -> jax.Array:
        """Whether it is near enough, or no gate is left."""
        return (self._excess(state, params) == 0) | (state.used >= self.puzzle.gates)

    def info(self, state: Left, params: Params) -> dict[str, jax.Array]:
        """``success``: near enough."""
        return {"success": self._excess(state, params) == 0, "distance": self._gap(state)}

    def _wanted(self, params: Params) -> jax.Array:
        return params.instance.wanted.astype(self.dtype) / FINE

    @staticmethod
    def _gap(state: Left) -> jax.Array:
        return jnp.sqrt(jnp.maximum(1 - jnp.abs(state.w), 0))

    def _excess(self, state: Left, params: Params) -> jax.Array:
        """What the distance exceeds the wanted one by; 0 if it does not."""
        return jnp.maximum(self._gap(state) - self._wanted(params), 0)

    # -- host side ------------------------------------------------------------------------------------------------

    def describe(self, state: Left, params: Params) -> str:
        """What is left to do."""
        return (
            f"Left to be done by the gates {', '.join(GATES)}, up to a global phase: the unitary U of\n"
            f"{shown([float(value) for value in state[:4]], 'U')}\n"
            f"Its distance from doing nothing is {float(self._gap(state)):.6f}, at most "
            f"{float(self._wanted(params)):.4f} is wanted. A gate G makes U G^-1 of it. Gates left: "
            f"{self.puzzle.gates - int(state.used)}"
        )

    def how_to_act(self) -> str:
        """One line for a text player."""
        return f"Answer with one of {', '.join(GATES)}."

    def parse(self, text: str, state: Left, params: Params) -> np.ndarray:
        """A gate.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(reading.word(text.strip(), GATES), self.action_space.dtype)

    def why_over(self, state: Left, params: Params) -> str:
        """Near enough, or no gate left."""
        near = bool(self.info(state, params)["success"])
        return "the circuit is near enough" if near else "no gate is left, and the circuit is not near enough"

    def draw(self, state: Left, params: Params) -> np.ndarray:
        """The rotation that is left: what becomes of X, Y and Z."""
        board = Board(3, 3, self.picture_shape)
        entries = np.asarray(self.observation(state, jax.random.key(0), params))[:9].reshape(3, 3)
        for row, axis in enumerate("XYZ"):
            board.text(row, -1, axis)
            board.text(-1, row, axis)
            for column, value in enumerate(entries[row]):
                board.cell(row, column, given=abs(value) < 0.5)
                board.text(row, column, f"{value:.2f}", FILLED, 0.5)
        board.text(3, 1, f"{self.puzzle.gates - int(state.used)} left", scale=0.6)
        return board.picture()

"""rlsuite/QuantumGates-v0: undo what a circuit did to two qubits, by as few gates as possible.

The gates are those of the Clifford group: H, S, its inverse, and CNOT. Up to a phase that nothing
can measure, their effect on the Pauli operators X and Z of each qubit determines them: a tableau of
four Pauli products with signs (Aaronson & Gottesman 2004, doi:10.1103/PhysRevA.70.052328). So
everything is exact, in bits.

``difficulty`` is the number of gates of a shortest circuit. The group has 11,520 elements, none
more than 10 gates away; 173, 2,278 and 2,688 of them are 3, 6 and 8 away. Circuits that differ by
the numbers of the qubits or by complex conjugation (S and its inverse change places) are one
puzzle, which leaves 55, 639 and 752. See :mod:`..shared.group` for the interactive form; the
observation holds the 20 bits of the tableau.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import Board
from ..shared.group import Group, GroupState, UndoTask
from ..shared.puzzle_task import Params
from ..shared.shortest_moves import MovesPuzzle
from ..shared.symmetry import smallest_form
from .gate_names import gate_actions

GATES = ("H1", "H2", "S1", "S2", "Sdg1", "Sdg2", "CNOT12", "CNOT21")

Tableau = tuple[int, int, int, int, int]
"""Four Pauli products with signs.

Bit k of each entry belongs to the image of the k-th of X1, Z1, X2, Z2. The entries tell whether it
has an X on qubit 1, a Z on qubit 1 (with the X: a Y), an X on qubit 2, a Z on qubit 2, and a minus.
"""

UNIT: Tableau = (1, 2, 4, 8, 0)
_NAMES = ("X1", "Z1", "X2", "Z2")


def after_gate(tableau: Tableau, gate: int) -> Tableau:
    """Apply a gate to a tableau."""
    name, qubit = GATES[gate][:-1], 2 * (GATES[gate][-1] == "2")
    columns = list(tableau)
    if name.startswith("CNOT"):
        control, target = 2 - qubit, qubit
        xc, zc, xt, zt = (*columns[control : control + 2], *columns[target : target + 2])
        columns[4] ^= xc & zt & ~(xt ^ zc)
        columns[target] ^= xc
        columns[control + 1] ^= zt
    else:
        x, z = columns[qubit : qubit + 2]
        columns[4] ^= x & (~z if name == "Sdg" else z)
        columns[qubit : qubit + 2] = (z, x) if name == "H" else (x, z ^ x)
    return (columns[0], columns[1], columns[2], columns[3], columns[4])


@cache
def clifford() -> Group[Tableau]:
    """Return the Clifford group of two qubits, without phases."""
    return Group(UNIT, GATES, after_gate)


class Instance(NamedTuple):
    """The effect of a circuit."""

    tableau: np.ndarray
    """int8 ``(5,)``: a :data:`Tableau`."""
    element: np.int16
    """Number of the tableau in :func:`clifford`."""
    shortest: np.int16
    """Number of gates of a shortest circuit that undoes it."""


class QuantumGatesPuzzle(MovesPuzzle[Instance, Tableau]):
    """``tier`` is the number of gates of a shortest circuit."""

    name = "QuantumGates"
    difficulty_is = "gates of a shortest circuit"
    tier_is = "the number of gates of a shortest circuit"
    tiers = range(1, 11)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.moves = GATES
        away = clifford().away
        self._first, self._count = away.index(int(tier)), away.count(int(tier))

    @property
    def space(self) -> float:
        """Elements at the distance, disguises counted once."""
        numbers = range(self._first, self._first + self._count)
        return len({self.canonical(self._element(number)) for number in numbers})

    def compose(self, dice: Dice) -> Instance:
        """Draw any element at the distance."""
        return self._element(self._first + dice.below(self._count))

    def _element(self, number: int) -> Instance:
        """Return an element by its number."""
        tableau = np.array(clifford().elements[number], np.int8)
        return Instance(tableau, np.int16(number), np.int16(self.tier))

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form over all symmetries.

        These are both numberings of the qubits and both signs of the imaginary unit.
        """
        x1, z1, x2, z2, minus = instance.tableau.tolist()
        conjugated = minus ^ (x1 & z1) ^ (x2 & z2)
        return smallest_form(
            form
            for sign in (minus, conjugated)
            for form in (
                (x1, z1, x2, z2, sign),
                [_exchange_qubits(column) for column in (x2, z2, x1, z1, sign)],
            )
        )

    def question(self, instance: Instance) -> str:
        """State the effects of the gates, the effect of the circuit, and the format."""
        return (
            f"{self.rules()}\n\nA circuit has turned\n{tableau_text(self.start(instance))}\n\n"
            "Undo it with as few gates as possible: after your gates, X1, Z1, X2 and Z2 must be "
            "X1, Z1, X2 and Z2 "
            "again, without minus signs. Answer with gates in the order in which they are "
            "applied, among "
            f"{' '.join(GATES)}, separated by single spaces."
        )

    def rules(self) -> str:
        """State what gates do."""
        return (
            "Clifford gates on two qubits are given, up to a global phase, by what they turn the "
            "Pauli operators X, Y and Z of each qubit into:\n- H1: X1 becomes Z1, Z1 becomes X1, "
            "Y1 becomes -Y1.\n- S1: X1 becomes Y1, Y1 becomes -X1, Z1 stays.\n- Sdg1, the inverse "
            "of S1: X1 becomes -Y1, Y1 becomes X1, Z1 stays.\n- H2, S2 and Sdg2: the same on qubit "
            "2.\n- CNOT12, controlled by qubit 1: X1 becomes X1 X2, Y1 becomes Y1 X2, Z2 becomes "
            "Z1 Z2, Y2 becomes Z1 Y2; Z1 and X2 stay.\n- CNOT21: the same with the qubits "
            "exchanged.\nA product becomes the product of what its factors become. Operators on "
            "different qubits commute, and X Y = i Z, Y Z = i X, Z X = i Y on one qubit."
        )

    def start(self, instance: Instance) -> Tableau:
        """Begin with the effect of the circuit."""
        x1, z1, x2, z2, minus = instance.tableau.tolist()
        return (x1, z1, x2, z2, minus)

    def position_after(self, instance: Instance, position: Tableau, move: int) -> Tableau:
        """Apply a gate; every gate can be applied."""
        return after_gate(position, move)

    def estimated_distance(self, instance: Instance, position: Tableau) -> int:
        """Count the bits of the tableau that differ from the goal."""
        return sum(
            (bits ^ unit_bits).bit_count() for bits, unit_bits in zip(position, UNIT, strict=True)
        )

    def shortest(self, instance: Instance) -> list[int]:
        """Go down the levels of the breadth-first search."""
        group = clifford()
        return group.moves_to_unit(group.number[self.start(instance)])


def _exchange_qubits(column: int) -> int:
    """Exchange the rows of the qubits."""
    return column >> 2 | (column & 3) << 2


def tableau_text(tableau: Sequence[int]) -> str:
    """Return a tableau as text: the images of X1, Z1, X2 and Z2."""
    x1, z1, x2, z2, minus = tableau
    lines = []
    for row, name in enumerate(_NAMES):
        letters = []
        for qubit, (x, z) in enumerate(((x1, z1), (x2, z2)), 1):
            letter = " XZY"[(x >> row & 1) + 2 * (z >> row & 1)]
            letters += [f"{letter}{qubit}"] * (letter != " ")
        lines.append(f"{name} -> {'-' * (minus >> row & 1)}{' '.join(letters)}")
    return "\n".join(lines)


class QuantumGates(UndoTask):
    """The interactive form: undo a circuit, a gate a step."""

    puzzle: QuantumGatesPuzzle
    puzzle_class = QuantumGatesPuzzle

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        self.group = clifford()
        super().__init__(card, difficulty=difficulty, dtype=dtype)

    def flags(self) -> np.ndarray:
        """Return the bits of the tableau."""
        tableaus = np.array(self.group.elements)
        return (tableaus[:, :, None] >> np.arange(4) & 1).reshape(len(tableaus), 20).astype(bool)

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the tableau."""
        meaning = (
            "[bit, operator]: whether what was made of X1, Z1, X2, Z2 has an X on qubit 1, a Z on "
            "qubit 1, an X on qubit 2, a Z on qubit 2, a minus"
        )
        return (Component("tableau", meaning, shape=(5, 4)),)

    def action_components(self) -> tuple[Component, ...]:
        """Describe the gates."""
        return gate_actions(GATES)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: GroupState, params: Params) -> str:
        """Show the effects of the gates, and the state of the tableau."""
        tableau = tableau_text(self.group.elements[int(state.element)])
        return (
            f"{self.puzzle.rules()}\n\nSo far\n{tableau}\n\n"
            "The goal: X1, Z1, X2 and Z2 as they were, without a minus."
        )

    def why_over(self, state: GroupState, params: Params, info: dict[str, Any]) -> str:
        """Return the only end there is."""
        return "everything is undone"

    def draw(self, state: GroupState, params: Params) -> np.ndarray:
        """Draw a row for each of X1, Z1, X2, Z2.

        It shows its sign and its letter on each qubit; grey marks unchanged ones.
        """
        board = Board(4, 4, self.picture_shape)
        lines = tableau_text(self.group.elements[int(state.element)]).split("\n")
        for row, (line, name) in enumerate(zip(lines, _NAMES, strict=True)):
            image = line.split("> ")[1]
            letters = {word[-1]: word[-2] for word in image.lstrip("-").split(" ")}
            board.text(row, -1, name)
            for column, symbol in enumerate(
                ("-" * image.startswith("-"), letters.get("1", ""), letters.get("2", "")), 1
            ):
                board.cell(row, column, symbol, is_clue=image == name)
        return board.picture()

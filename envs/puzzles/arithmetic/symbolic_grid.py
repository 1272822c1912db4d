"""rlsuite/SymbolicGrid-v0: find the digits of letters in a grid by the sums of rows and columns.

``difficulty`` is the side of the grid. Instances have exactly one solution, as a comparison of all
assignments of digits shows: a sum is hidden only if no other assignment keeps the sums that remain.
The player fills in a row of digits, one for each letter. See :mod:`..shared.grid_filling` for
actions, observations and rewards; the mask forbids a digit that another letter has, and one that
completes a row or column with another sum or leaves too little for its other letters. The grid is
observed one-hot, then the sums as fractions of the greatest possible one, 0 if hidden.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cache, reduce
from itertools import chain, combinations, permutations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.bitset import unpack_bits
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Example

from ..shared.board import Board
from ..shared.grid_filling import FillTask, Grid, GridPuzzle
from ..shared.symmetry import smallest_form

SHAPES = {3: (3, 2), 4: (5, 3), 5: (6, 4)}
"""Number of letters, and number of hidden sums, by side."""
DIGITS = "123456789"


class Instance(NamedTuple):
    """Letters and sums with one solution."""

    givens: np.ndarray
    """int8 ``(letters,)``: zeros, because no letter's digit is given."""
    letters: np.ndarray
    """int8 ``(side**2,)``: the letter in each cell, from 0."""
    sums: np.ndarray
    """int8 ``(2 * side,)``: sums of the rows, then of the columns; 0 if hidden."""


class SymbolicGridPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side of the grid."""

    name = "SymbolicGrid"
    difficulty_is = (
        "digits that a depth-first search, letter after letter, tries until it has proven "
        "uniqueness"
    )
    tier_is = "the side of the grid"
    tiers = tuple(SHAPES)
    few: ClassVar[dict[float, float]] = {3: 19_000}
    symbols = DIGITS
    fillable = 9

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.side = int(tier)
        self.rows, (self.columns, self.hidden) = 1, SHAPES[self.side]
        self.names = "ABCDEF"[: self.columns]

    def compose(self, dice: Dice) -> Instance | None:
        """Draw letters and digits at random, then hide sums while there is one solution.

        Sums are hidden in random order.

        Return None if a letter is missing, if there are several solutions from the beginning, or if
        too few sums can be hidden.
        """
        side, count = self.side, self.columns
        letters = [dice.below(count) for _ in range(side * side)]
        if len(set(letters)) < count:
            return None
        every = _assignments(count)
        sums = every @ np.array(self._weights(letters), np.float32).T  # small whole numbers: exact
        true_sums = sums[dice.below(len(every))]
        agreements = ((sums == true_sums) @ (1 << np.arange(2 * side)).astype(np.float32)).astype(
            np.int16
        )
        # For each set of sums, how many assignments keep just those.
        alike = np.bincount(agreements, minlength=4**side)
        sets, shown_sums = np.arange(4**side), 4**side - 1
        if alike[shown_sums] > 1:
            return None
        for line in dice.shuffled(range(2 * side)):
            fewer_sums = shown_sums & ~(1 << line)
            if alike[sets & fewer_sums == fewer_sums].sum() == 1:
                shown_sums = fewer_sums
                if shown_sums.bit_count() == 2 * side - self.hidden:
                    shown_totals = [
                        int(total) if shown_sums >> k & 1 else 0
                        for k, total in enumerate(true_sums)
                    ]
                    return Instance(
                        np.zeros(count, np.int8),
                        np.array(letters, np.int8),
                        np.array(shown_totals, np.int8),
                    )
        return None

    def canonical(self, instance: Instance) -> bytes:
        """Return the shown sums as equations, in order, under the least naming of the letters."""
        lines = zip(self._weights(instance.letters.tolist()), instance.sums.tolist(), strict=True)
        equations = [(weights, total) for weights, total in lines if total]

        def renamed_equations(order: Sequence[int]) -> list[list[int]]:
            return sorted([*(weights[i] for i in order), total] for weights, total in equations)

        orders = permutations(range(self.columns))
        return smallest_form(list(chain(*renamed_equations(order))) for order in orders)

    def rules(self) -> str:
        """State the rules."""
        return (
            f"Symbolic grid: each of the letters {' '.join(self.names)} stands for a digit from 1 "
            "to 9, different "
            "letters for different digits. The sum of a row is at its right, after =, and the sum "
            "of a column is below "
            "it; ? is an unknown sum."
        )

    def clues(self, instance: Instance) -> str:
        """State the grid of letters and its sums."""
        side = self.side
        cells = [self.names[letter] for letter in instance.letters.tolist()]
        sums = [str(total or "?") for total in instance.sums.tolist()]
        rows = [f"{'  '.join(cells[r * side : (r + 1) * side])}  = {sums[r]}" for r in range(side)]
        return "\n".join((*rows, " ".join(f"{total:<2}" for total in sums[side:]).rstrip()))

    def question(self, instance: Instance) -> str:
        """State the rules, the grid, and what to answer."""
        ask = (
            f"Answer with the digits of {' '.join(self.names)}, in this order, on one line, "
            "separated by single spaces."
        )
        return "\n\n".join((self.rules(), self.clues(instance), ask))

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show the digits of two letters."""
        return [
            Example(
                "For example, if the letters were only A, standing for 5, and B, standing for 2:",
                "5 2",
            )
        ]

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name a digit that two letters share, or the first wrong sum."""
        digits = grid[0]
        if len(set(digits)) < len(digits):
            return f"two letters stand for {next(d for d in digits if digits.count(d) > 1)}"
        for k, (weights, total) in enumerate(
            zip(self._weights(instance.letters.tolist()), instance.sums.tolist(), strict=True)
        ):
            line_sum = sum(weight * digit for weight, digit in zip(weights, digits, strict=True))
            if total and line_sum != total:
                return (
                    f"{('row', 'column')[k // self.side]} {k % self.side + 1} has the sum "
                    f"{line_sum}, not {total}"
                )
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        solutions = _Search(self, instance).solutions(1)
        if not solutions:
            raise ValueError("these sums have no solution")
        return solutions

    def difficulty(self, instance: Instance) -> float:
        """Count the digits tried by a search for all solutions."""
        search = _Search(self, instance)
        search.solutions(2)
        return float(search.tried)

    def heuristic(self, instance: Instance) -> str:
        """Give each letter the free digit nearest to the mean share of its cells in their sums."""
        shares: list[list[float]] = [[] for _ in self.names]
        for k, total in enumerate(instance.sums.tolist()):
            row = instance.letters.reshape(self.side, self.side)
            for letter in (
                (row[k] if k < self.side else row[:, k - self.side]).tolist() if total else ()
            ):
                shares[letter].append(total / self.side)
        digits: list[int] = []
        for share in shares:
            mean = sum(share) / len(share) if share else 5.0
            digits.append(
                min((d for d in range(1, 10) if d not in digits), key=lambda d: (abs(d - mean), d))
            )
        return self.write_answer([digits])

    def _weights(self, letters: list[int]) -> list[list[int]]:
        """Count how often each letter stands in each row, then in each column."""
        side = self.side
        lines = [letters[r * side : (r + 1) * side] for r in range(side)] + [
            letters[c::side] for c in range(side)
        ]
        return [[line.count(letter) for letter in range(self.columns)] for line in lines]


class _Search:
    """Depth-first search over the digits of A, B, ..., with bounds on what is left of each sum."""

    def __init__(self, puzzle: SymbolicGridPuzzle, instance: Instance) -> None:
        self.tried = 0
        lines = zip(puzzle._weights(instance.letters.tolist()), instance.sums.tolist(), strict=True)
        shown_lines = [(weights, total) for weights, total in lines if total]
        self._sums = [total for _, total in shown_lines]
        self._weights = list(zip(*(weights for weights, _ in shown_lines), strict=True))
        self._later = [
            [sum(weights[i + 1 :]) for weights, _ in shown_lines] for i in range(puzzle.columns)
        ]

    def solutions(self, max_solutions: int) -> Grid:
        """Return the digits of at most ``max_solutions`` solutions."""
        return self._extend([], self._sums, max_solutions)

    def _extend(self, digits: list[int], totals_left: list[int], max_solutions: int) -> Grid:
        if len(digits) == len(self._weights):
            return [digits]
        weights, later = self._weights[len(digits)], self._later[len(digits)]
        solutions: Grid = []
        for digit in range(1, 10):
            if digit in digits or len(solutions) == max_solutions:
                continue
            self.tried += 1
            next_totals = [
                total - weight * digit for total, weight in zip(totals_left, weights, strict=True)
            ]
            if all(
                count <= total <= 9 * count for total, count in zip(next_totals, later, strict=True)
            ):
                solutions += self._extend(
                    [*digits, digit], next_totals, max_solutions - len(solutions)
                )
        return solutions


@cache
def _assignments(letters: int) -> np.ndarray:
    """Return all ways to give letters different digits, float32 ``(count, letters)``."""
    return np.array(list(permutations(range(1, 10), letters)), np.float32)


class SymbolicGrid(FillTask):
    """Symbolic grids, the digit of one letter a step."""

    puzzle: SymbolicGridPuzzle
    puzzle_class = SymbolicGridPuzzle
    bank_size = 512

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = self.puzzle.side

    @property
    def fact_count(self) -> int:
        """Number of facts: a one-hot letter for each cell, and a sum for each row and column."""
        return self.puzzle.side**2 * self.puzzle.columns + 2 * self.puzzle.side

    def facts(self, instance: Any) -> jax.Array:
        """Return the grid one-hot, then the sums."""
        one_hot = instance.letters[:, None] == np.arange(self.cells, dtype=np.int8)
        scaled = instance.sums.astype(self.dtype) / self.dtype.type(9 * self.side)
        return jnp.concatenate([one_hot.astype(self.dtype).reshape(-1), scaled])

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        side, unit = self.side, f"{9 * self.side}"
        return (
            Component(
                "letters",
                "[row, column, letter]: which letter stands there, one-hot",
                shape=(side, side, self.cells),
            ),
            Component("row_sums", "sum of the digits of each row, 0 if hidden", unit, (side,)),
            Component(
                "column_sums", "sum of the digits of each column, 0 if hidden", unit, (side,)
            ),
        )

    def mask(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow digits that no letter has yet and that no sum rules out."""
        letter_counts = self._letter_counts(instance)
        lines = []
        for i, letters in enumerate(letter_counts):
            sum_left = instance.sums[i] - self._total(letters, cells)
            unknown = reduce(
                operator.add, (count * (cells[letter] == 0) for letter, count in enumerate(letters))
            )
            lines.append((letters, sum_left, unknown, instance.sums[i] == 0))
        free = []
        for letter in range(self.cells):
            for digit in range(1, 10):
                conditions = [
                    cells[letter] == 0,
                    *(
                        cells[other_letter] != digit
                        for other_letter in range(self.cells)
                        if other_letter != letter
                    ),
                ]
                for letters, sum_left, unknown, untold in lines:
                    rest_of_sum = sum_left - letters[letter] * np.int8(digit)
                    other_unknown = unknown - letters[letter]
                    fits = jnp.where(
                        other_unknown == 0, rest_of_sum == 0, rest_of_sum >= other_unknown
                    )
                    conditions.append(fits | untold | (letters[letter] == 0))
                free.append(reduce(operator.and_, conditions))
        return unpack_bits(free, 1)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether the digits differ and every shown sum is right."""
        conditions = [
            cells[letter] != cells[other_letter]
            for letter, other_letter in combinations(range(self.cells), 2)
        ]
        for i, letters in enumerate(self._letter_counts(instance)):
            conditions.append(
                (instance.sums[i] == 0) | (self._total(letters, cells) == instance.sums[i])
            )
        return reduce(operator.and_, conditions)

    def _letter_counts(self, instance: Any) -> list[list[jax.Array]]:
        """Count for each row, then for each column, how often each letter stands there, int8."""
        side = self.side
        grid = np.arange(side**2).reshape(side, side)

        def count_letters(letters: jax.Array) -> list[list[jax.Array]]:
            one_hot = [
                [(letters[i] == letter).astype(jnp.int8) for letter in range(self.cells)]
                for i in range(side**2)
            ]
            counts = []
            for line in (*grid, *grid.T):
                cells_by_letter = zip(*(one_hot[i] for i in line), strict=True)
                counts.append([reduce(operator.add, cells) for cells in cells_by_letter])
            return counts

        return computed_once(count_letters)(instance.letters)

    @staticmethod
    def _total(letters: list[jax.Array], cells: jax.Array) -> jax.Array:
        """Return the sum of a line's known digits, int8."""
        return reduce(operator.add, (count * cells[letter] for letter, count in enumerate(letters)))

    def draw(self, state: Any, params: Any) -> np.ndarray:
        """Draw the grid with its sums, and digits instead of letters that have one."""
        board = Board(self.side, self.side, self.picture_shape)
        digits, sums = np.asarray(state.cells).tolist(), np.asarray(params.instance.sums).tolist()
        for cell, letter in enumerate(np.asarray(params.instance.letters).tolist()):
            digit = digits[letter]
            board.cell(
                *divmod(cell, self.side),
                str(digit) if digit else self.puzzle.names[letter],
                is_clue=not digit,
            )
        for k, total in enumerate(sums):
            row, column = (k, self.side) if k < self.side else (self.side, k - self.side)
            board.text(row, column, str(total or "?"), scale=0.8)
        return board.picture()

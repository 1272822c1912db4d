r"""rlsuite/Slant-v0: draw a diagonal in every cell without closing a loop (Gokigen Naname).

At each numbered corner the given number of diagonals meet.

Instances have exactly one solution. Without any one of the numbers there would be others. Cells get
a random diagonal in random order, the other one if it would close a loop. If the numbers of all
corners leave one solution, numbers are removed in random order as long as it stays the only one.
``difficulty`` (of the task) is the side; on boards of side 3 some instances repeat.

See :mod:`..shared.grid_filling` for actions, observations and rewards. The mask forbids exceeding
the number of a corner and leaving too few cells to reach it; loops are judged when the grid is
full.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bitset import unpack_bits
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import FILLED, LINE, PAPER, Board
from ..shared.grid_filling import FillTask, Grid, GridPuzzle, GridState, at_least, rows_as_bits
from ..shared.puzzle_task import Params
from ..shared.symmetry import smallest_form, square_symmetries

SLASH, BACKSLASH = 1, 2
NO_CLUE = -1
MAX_SIDE = 8

_State = tuple[int, int, list[int]]
"""Cells with a slash, cells with a backslash, and what every corner is connected with.

The last is, for every corner, a set of corners.
"""


class Instance(NamedTuple):
    """Numbers at corners that leave one solution."""

    givens: np.ndarray
    """int8 ``(side**2,)``: zeros, because no diagonal is given."""
    corners: np.ndarray
    """int8 ``((side + 1)**2,)``: number of diagonals that end at each corner; -1 if hidden."""


class SlantPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side."""

    name = "Slant"
    difficulty_is = (
        "cells that a depth-first search guesses, beyond what corners and loops force, to prove "
        "uniqueness"
    )
    tier_is = "the side"
    tiers = range(2, MAX_SIDE + 1)
    few: ClassVar[dict[float, float]] = {3: 7_800}
    symbols = "/\\"
    fillable = 2

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        side = self.square()
        self._ends = [
            ((corner := r * (side + 1) + c) + 1, corner + side + 1, corner, corner + side + 2)
            for r in range(side)
            for c in range(side)
        ]
        """End corners of each cell's slash, then of its backslash."""
        self._slashes_at, self._backslashes_at = ([0] * (side + 1) ** 2 for _ in range(2))
        """Cells whose slash (or backslash) ends at each corner, as bits."""
        for cell, ends in enumerate(self._ends):
            for corner in ends[:2]:
                self._slashes_at[corner] |= 1 << cell
            for corner in ends[2:]:
                self._backslashes_at[corner] |= 1 << cell

    def compose(self, dice: Dice) -> Instance | None:
        """Draw diagonals and all numbers, then hide numbers.

        The result is None if all numbers together leave other solutions.
        """
        side = self.rows
        state: _State = (0, 0, [1 << corner for corner in range((side + 1) ** 2)])
        for cell in dice.shuffled(range(side * side)):
            symbol = SLASH + dice.below(2)
            added = self._add_diagonal(state, cell, symbol) or self._add_diagonal(
                state, cell, SLASH + BACKSLASH - symbol
            )
            if added is None:
                raise AssertionError(
                    "the ends of both diagonals of a cell cannot hang together: the paths would "
                    "cross"
                )
            state = added
        slashes, backslashes, _ = state
        corners = [
            (s & slashes).bit_count() + (b & backslashes).bit_count()
            for s, b in zip(self._slashes_at, self._backslashes_at, strict=True)
        ]
        if not self._has_one_solution(corners):
            return None
        for corner in dice.shuffled(range(len(corners))):
            number, corners[corner] = corners[corner], NO_CLUE
            if not self._has_one_solution(corners):
                corners[corner] = number
        return Instance(np.zeros(side * side, np.int8), np.array(corners, np.int8))

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the eight rotations and reflections."""
        corners = (instance.corners - NO_CLUE).tolist()
        return smallest_form(
            [corners[i] for i in order] for order in square_symmetries(self.rows + 1)
        )

    def rules(self) -> str:
        """State the rules."""
        return (
            "Slant: every cell gets a diagonal, / or \\, from corner to corner. A number at a "
            "corner of cells says how many of the up to four diagonals around it touch it. The "
            "diagonals form no loop: there is no closed path along them."
        )

    def clues(self, instance: Instance) -> str:
        """State the numbers."""
        corner_texts = [
            "." if number == NO_CLUE else str(number) for number in instance.corners.tolist()
        ]
        count = self.columns + 1
        lines = [
            " ".join(corner_texts[start : start + count])
            for start in range(0, len(corner_texts), count)
        ]
        return (
            f"The numbers at the corners, {count} lines of {count}; a dot is a corner without "
            "a number:\n"
        ) + "\n".join(lines)

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first number that is missed, or a loop."""
        counts = [0] * (self.rows + 1) ** 2
        state: _State | None = (0, 0, [1 << corner for corner in range(len(counts))])
        for cell, symbol in enumerate(value for row in grid for value in row):
            for corner in self._ends[cell][:2] if symbol == SLASH else self._ends[cell][2:]:
                counts[corner] += 1
            state = state and self._add_diagonal(state, cell, symbol)
        for corner, (number, clue) in enumerate(
            zip(counts, instance.corners.tolist(), strict=True)
        ):
            if clue not in (NO_CLUE, number):
                where = (
                    f"line {corner // (self.rows + 1) + 1}, place {corner % (self.rows + 1) + 1} "
                    "of the corners"
                )
                return f"at {where} {number} diagonals end, not {clue}"
        return "" if state else "the diagonals form a loop"

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        for slashes in self._solutions(instance.corners.tolist()):
            return self.as_rows(
                [SLASH if slashes >> cell & 1 else BACKSLASH for cell in range(self.rows**2)]
            )
        raise ValueError("these corners have no solution")

    def difficulty(self, instance: Instance) -> float:
        """Count the cells guessed by a search for all solutions."""
        guessed = [0]
        for _ in self._solutions(instance.corners.tolist(), guessed):
            pass
        return float(guessed[0])

    def heuristic(self, instance: Instance) -> str:
        """Choose in reading order the diagonal whose ends lack more diagonals by their numbers."""
        lacking = [2 if number == NO_CLUE else number for number in instance.corners.tolist()]
        cells = []
        for a, b, c, d in self._ends:
            symbol = SLASH if lacking[a] + lacking[b] > lacking[c] + lacking[d] else BACKSLASH
            for corner in (a, b) if symbol == SLASH else (c, d):
                lacking[corner] -= 1
            cells.append(symbol)
        return self.write_answer(self.as_rows(cells))

    # -- search: a bit for every cell, a bit for every corner --------------------------------------

    def _has_one_solution(self, corners: Sequence[int]) -> bool:
        return len(list(islice(self._solutions(corners), 2))) == 1

    def _solutions(self, corners: Sequence[int], guessed: list[int] | None = None) -> Iterator[int]:
        """Return all ways to fill the grid, each as the bits of the cells with a slash."""
        every = 2 ** (self.rows**2) - 1
        counts = [
            (self._slashes_at[corner], self._backslashes_at[corner], number)
            for corner, number in enumerate(corners)
            if number != NO_CLUE
        ]

        def search(state: _State | None) -> Iterator[int]:
            state = state and self._force_diagonals(counts, state)
            if state is None:
                return
            unknown = every & ~(state[0] | state[1])
            if not unknown:
                yield state[0]
                return
            open_cells_by_corner = ((s | b) & unknown for s, b, _ in counts if (s | b) & unknown)
            cell = min(open_cells_by_corner, key=int.bit_count, default=unknown)
            number = (cell & -cell).bit_length() - 1
            if guessed:
                guessed[0] += 1
            yield from search(self._add_diagonal(state, number, SLASH))
            yield from search(self._add_diagonal(state, number, BACKSLASH))

        return search((0, 0, [1 << corner for corner in range(len(corners))]))

    def _force_diagonals(
        self, counts: Sequence[tuple[int, int, int]], state: _State
    ) -> _State | None:
        """Return the grid after filling in all that single corners and loops force.

        The result is None if that breaks a rule.
        """
        previous_known = -1
        while previous_known != (known_cells := state[0] | state[1]):
            previous_known = known_cells
            for slashes_at, backslashes_at, number in counts:
                slashes, backslashes, _ = state
                unknown = (slashes_at | backslashes_at) & ~(slashes | backslashes)
                lacking = (
                    number
                    - (slashes_at & slashes).bit_count()
                    - (backslashes_at & backslashes).bit_count()
                )
                if not 0 <= lacking <= unknown.bit_count():
                    return None
                while unknown and lacking in (0, unknown.bit_count()):
                    cell = unknown & -unknown
                    unknown ^= cell
                    slash = bool(slashes_at & cell) == (lacking > 0)
                    lacking -= lacking > 0
                    added = self._add_diagonal(
                        state, cell.bit_length() - 1, SLASH if slash else BACKSLASH
                    )
                    if added is None:
                        return None
                    state = added
            if previous_known == state[0] | state[1]:
                state = self._break_loops(state)
        return state

    def _break_loops(self, state: _State) -> _State:
        """Replace each diagonal that would close a loop by the other one.

        At most one of the two closes a loop.
        """
        unknown = 2 ** (self.rows**2) - 1 & ~(state[0] | state[1])
        while unknown:
            cell = (unknown & -unknown).bit_length() - 1
            unknown &= unknown - 1
            a, b, c, d = self._ends[cell]
            if state[2][a] >> b & 1:
                state = self._add_diagonal(state, cell, BACKSLASH) or state
            elif state[2][c] >> d & 1:
                state = self._add_diagonal(state, cell, SLASH) or state
        return state

    def _add_diagonal(self, state: _State, cell: int, symbol: int) -> _State | None:
        """Return the grid with one more diagonal; None if it closes a loop."""
        slashes, backslashes, together = state
        a, b = self._ends[cell][:2] if symbol == SLASH else self._ends[cell][2:]
        if together[a] >> b & 1:
            return None
        joined = together[a] | together[b]
        together = together.copy()
        members_left = joined
        while members_left:
            together[(members_left & -members_left).bit_length() - 1] = joined
            members_left &= members_left - 1
        if symbol == SLASH:
            return slashes | 1 << cell, backslashes, together
        return slashes, backslashes | 1 << cell, together


class Slant(FillTask):
    """Slant, one cell a step."""

    puzzle: SlantPuzzle
    puzzle_class = SlantPuzzle
    bank_size = 512  # the hard ones take some 20 ms each to make

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = self.puzzle.rows

    @property
    def fact_count(self) -> int:
        """One for each number at each corner."""
        return 5 * (self.puzzle.rows + 1) ** 2

    def facts(self, instance: Any) -> jax.Array:
        """Return the numbers one-hot, corners in reading order; zeros where there is none."""
        return (
            (instance.corners[:, None] == np.arange(5, dtype=np.int8))
            .astype(self.dtype)
            .reshape(-1)
        )

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        meaning = (
            "[row, column, number]: the number at the corner, 0 to 4, one-hot; zeros where there "
            "is none"
        )
        return (Component("corners", meaning, shape=(self.side + 1, self.side + 1, 5)),)

    def mask(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow a diagonal if the numbers at its cell's corners permit it.

        Its ends must have room for one more, and the ends of the other diagonal must do without.
        """
        (slashes, backslashes), numbers = self._rows(cells), self._numbers(instance)
        unknown = [
            self._first_cells(self.side) & ~(s | b)
            for s, b in zip(slashes, backslashes, strict=True)
        ]
        full = self._full_corners(self._count_ends(slashes, backslashes), numbers)
        slashes, backslashes = (
            [a | b for a, b in zip(rows, unknown, strict=True)] for rows in (slashes, backslashes)
        )
        tight = self._tight_corners(self._count_ends(slashes, backslashes), numbers)
        rows = []
        for r, free in enumerate(unknown):
            slash = full[r] >> 2 | full[r + 1] | tight[r] | tight[r + 1] >> 2
            backslash = full[r] | full[r + 1] >> 2 | tight[r] >> 2 | tight[r + 1]
            rows.append(free & ~slash | (free & ~backslash) << 1)
        return unpack_bits(rows, 2 * self.side)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every number is kept and there is no loop."""
        (slashes, backslashes), numbers = self._rows(cells), self._numbers(instance)
        counts = self._count_ends(slashes, backslashes)
        rows_of_flags = zip(
            self._full_corners(counts, numbers),
            self._tight_corners(counts, numbers),
            numbers,
            strict=True,
        )
        conditions = (
            full & tight == reduce(operator.or_, number) for full, tight, number in rows_of_flags
        )
        return reduce(operator.and_, conditions) & self._is_forest(
            jnp.stack(slashes), jnp.stack(backslashes)
        )

    @staticmethod
    def _first_cells(count: int) -> np.uint32:
        """Return a mask of the first cells of a row.

        It holds the lower of the two bits of each cell.
        """
        return np.uint32(sum(4**i for i in range(count)))

    def _rows(self, cells: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
        """Return the cells of each row with a slash, and those with a backslash."""
        words = rows_as_bits(cells.astype(jnp.uint32), self.side, 2)
        return [word & self._first_cells(self.side) for word in words], [
            word >> 1 & self._first_cells(self.side) for word in words
        ]

    def _numbers(self, instance: Any) -> list[list[jax.Array]]:
        """Return the numbers at the corners of each row as three sets of binary digits.

        The lowest digit comes first.

        Each number is increased by one; 0 stands for no number.
        """
        numbers, corners = (instance.corners + 1).astype(jnp.uint32), self.side + 1
        words = (rows_as_bits(bits, corners, 2) for bits in (numbers & 3, numbers >> 2))
        return [
            [low & self._first_cells(corners), low >> 1 & self._first_cells(corners), high]
            for low, high in zip(*words, strict=True)
        ]

    @staticmethod
    def _full_corners(
        counts: list[list[jax.Array]], numbers: list[list[jax.Array]]
    ) -> list[jax.Array]:
        """Return the corners of each row that have as many diagonals as their numbers say."""
        pairs = zip(counts, numbers, strict=True)
        return [at_least(count, number) & reduce(operator.or_, number) for count, number in pairs]

    @staticmethod
    def _tight_corners(
        counts: list[list[jax.Array]], numbers: list[list[jax.Array]]
    ) -> list[jax.Array]:
        """Return the corners of each row that need all of the counted diagonals."""
        return [at_least(number, count) for count, number in zip(counts, numbers, strict=True)]

    @staticmethod
    def _count_ends(
        slashes: list[jax.Array], backslashes: list[jax.Array]
    ) -> list[list[jax.Array]]:
        """Count the diagonals that end at each corner, row by row, in binary digits.

        Each count is increased by one like the numbers.
        """
        none = jnp.uint32(0)
        s, b = ([none, *rows, none] for rows in (slashes, backslashes))
        counts = []
        for r in range(len(slashes) + 1):
            ends = b[r] << 2, s[r], s[r + 1] << 2, b[r + 1]
            odd = ends[0] ^ ends[1] ^ ends[2]
            two = ends[0] & ends[1] | ends[2] & (ends[0] ^ ends[1])
            more = odd | ends[3]
            counts.append([~(odd ^ ends[3]), two ^ more, two & more])
        return counts

    def _is_forest(self, slashes: jax.Array, backslashes: jax.Array) -> jax.Array:
        """Return whether the diagonals form no loop.

        Diagonals with an end that no other diagonal shares are removed, again and again. There is
        no loop if none is left. Rows of cells and of corners are words.
        """

        def prune(edges: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            s, b = edges
            above, below = (1, 0), (0, 1)
            upper = jnp.pad(b, above) << 2, jnp.pad(s, above)
            lower = jnp.pad(s, below) << 2, jnp.pad(b, below)
            several = (
                upper[0] & upper[1]
                | lower[0] & lower[1]
                | (upper[0] | upper[1]) & (lower[0] | lower[1])
            )
            return s & several[:-1] >> 2 & several[1:], b & several[:-1] & several[1:] >> 2

        start = slashes, backslashes
        _, (s, b) = lax.while_loop(
            lambda pair: ((pair[0][0] != pair[1][0]) | (pair[0][1] != pair[1][1])).any(),
            lambda pair: (pair[1], prune(pair[1])),
            (start, prune(start)),
        )
        return (s | b == 0).all()

    def draw(self, state: GridState, params: Params) -> np.ndarray:
        """Draw the diagonals, and the numbers at the corners."""
        side = self.side
        board = Board(side, side, self.picture_shape)
        for cell, value in enumerate(np.asarray(state.cells).tolist()):
            row, column = divmod(cell, side)
            board.cell(row, column)
            if value == SLASH:
                board.line(row, column + 1, row + 1, column, FILLED)
            elif value == BACKSLASH:
                board.line(row, column, row + 1, column + 1, FILLED)
        for corner, number in enumerate(np.asarray(params.instance.corners).tolist()):
            row, column = divmod(corner, side + 1)
            if number != NO_CLUE:
                left_edge, top, right_edge, _ = board.box(row, column)
                reach = (right_edge - left_edge) // 5
                board.pen.ellipse(
                    (left_edge - reach, top - reach, left_edge + reach, top + reach), PAPER, LINE
                )
                board.text(row - 0.5, column - 0.5, str(number), scale=0.5)
        return board.picture()

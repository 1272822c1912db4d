"""rlsuite/LightUp-v0: place bulbs that light every cell and do not light each other (Akari).

Instances have exactly one solution. Without any one of the walls' numbers there would be others.
Walls are scattered, bulbs are put into random unlit cells until none is left, and all walls are
numbered. If that leaves one solution, numbers are removed in random order as long as it stays the
only one. ``difficulty`` (of the task) is the side; there are about 6,000 instances of side 4.

See :mod:`..shared.grid_filling` for actions, observations and rewards. The mask forbids a bulb in a
lit cell, and more bulbs beside a wall than its number. It forbids darkness in an unlit cell that
sees neither a bulb nor an unlit empty cell, or that a wall needs for its number. A legal action may
still take the light from cells that were left dark. Which cells are lit is observed too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.reductions import union
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import INK, PAPER, Board
from ..shared.grid_filling import CellFillTask, Grid, GridPuzzle, GridState, two_symbol_mask
from ..shared.puzzle_task import Params
from ..shared.symmetry import smallest_form, square_symmetries
from .neighbours import neighbours

BULB, DARK, WALL, NUMBERED = 1, 2, 3, 4
"""Symbols; ``NUMBERED + k`` is a wall with the number k."""
MAX_SIDE = 10
WALL_SHARE = 0.22


class Instance(NamedTuple):
    """Walls that leave one arrangement of bulbs."""

    givens: np.ndarray
    """int8 ``(side**2,)``: walls, and 0 for the cells."""


class LightUpPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side."""

    name = "LightUp"
    difficulty_is = (
        "bulbs that a depth-first search (fewest places first) tries until it has proven uniqueness"
    )
    tier_is = "the side"
    tiers = range(3, MAX_SIDE + 1)
    few: ClassVar[dict[float, float]] = {4: 5_200}
    symbols = "*.#01234"
    fillable = 2
    meanings: ClassVar[dict[str, str]] = {"*": "bulb", ".": "dark", "#": "wall"}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        side = self.square()
        self.walls = round(WALL_SHARE * side * side)
        self._beside = neighbours(side, diagonally=False)

    def compose(self, dice: Dice) -> Instance | None:
        """Draw walls, bulbs and numbers, then hide numbers.

        The result is None if all numbers together leave other solutions.
        """
        cells = self.rows**2
        givens = [0] * cells
        for wall in dice.sample(range(cells), self.walls):
            givens[wall] = WALL
        lit_from = self._lit_from(givens)
        bulbs, unlit = 0, [cell for cell in range(cells) if not givens[cell]]
        dice.shuffle(unlit)
        for cell in unlit:
            if not lit_from[cell] & bulbs:
                bulbs |= 1 << cell
        walls = [cell for cell in range(cells) if givens[cell]]
        for wall in walls:
            givens[wall] = NUMBERED + (self._beside[wall] & bulbs).bit_count()
        if not self._has_one_solution(givens, lit_from):
            return None
        dice.shuffle(walls)
        for wall in walls:
            number, givens[wall] = givens[wall], WALL
            if not self._has_one_solution(givens, lit_from):
                givens[wall] = number
        return Instance(np.array(givens, np.int8))

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the eight rotations and reflections."""
        cells = instance.givens.tolist()
        return smallest_form([cells[i] for i in order] for order in square_symmetries(self.rows))

    def rules(self) -> str:
        """State the rules."""
        return (
            "Light Up: put bulbs (*) into some of the open cells and leave the others dark (.). A "
            "bulb lights its own cell and all cells in the four directions along its row and "
            "column, up to the first wall (# or a digit). Every cell that is not a wall must be "
            "lit. No bulb may light another bulb. A digit is a wall with exactly that many bulbs "
            "among the cells directly above, below, left and right of it; # is a wall with any "
            "number."
        )

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first unlit cell, bulb lit by another, or wall with a wrong number of bulbs."""
        cells = [value for row in grid for value in row]
        lit_from = self._lit_from(cells)
        bulbs = sum(1 << cell for cell, value in enumerate(cells) if value == BULB)
        for cell, value in enumerate(cells):
            where = f"row {cell // self.rows + 1}, column {cell % self.rows + 1}"
            if value == BULB and lit_from[cell] & bulbs != 1 << cell:
                return f"the bulb in {where} is lit by another"
            if value == DARK and not lit_from[cell] & bulbs:
                return f"the cell in {where} is not lit"
            if (
                value >= NUMBERED
                and (count := (self._beside[cell] & bulbs).bit_count()) != value - NUMBERED
            ):
                return f"the wall in {where} has {count} bulbs beside it, not {value - NUMBERED}"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        givens = instance.givens.tolist()
        for bulbs in self._solutions(givens, self._lit_from(givens)):
            return self._bulb_grid(givens, bulbs)
        raise ValueError("these walls have no solution")

    def difficulty(self, instance: Instance) -> float:
        """Count the bulbs tried by a search for all solutions."""
        givens, tried = instance.givens.tolist(), [0]
        for _ in self._solutions(givens, self._lit_from(givens), tried):
            pass
        return float(tried[0])

    def heuristic(self, instance: Instance) -> str:
        """Put bulbs beside each wall up to its number, then into unlit cells in reading order.

        No bulb is put beside a 0.
        """
        givens = instance.givens.tolist()
        lit_from = self._lit_from(givens)
        bulbs = barred = 0
        for cell, value in enumerate(givens):
            if value == NUMBERED:
                barred |= self._beside[cell]
        for cell, value in enumerate(givens):
            if value > NUMBERED:
                for neighbour in self._bits(self._beside[cell] & ~barred):
                    few = (self._beside[cell] & bulbs).bit_count() < value - NUMBERED
                    if few and not givens[neighbour] and not lit_from[neighbour] & bulbs:
                        bulbs |= 1 << neighbour
        for cell, value in enumerate(givens):
            if not value and not lit_from[cell] & bulbs and not barred >> cell & 1:
                bulbs |= 1 << cell
        return self.write_answer(self._bulb_grid(givens, bulbs))

    # -- search: a bit for every cell --------------------------------------------------------------

    def _lit_from(self, cells: Sequence[int]) -> list[int]:
        """Return the cells that a bulb in each cell would light, its own included; 0 for walls."""
        side = self.rows
        lit_from = [0] * side * side
        for line in range(side):
            for run in (range(line * side, (line + 1) * side), range(line, side * side, side)):
                start = 0
                for end in range(side + 1):
                    if end == side or cells[run[end]] >= WALL:
                        together = sum(1 << cell for cell in run[start:end])
                        for cell in run[start:end]:
                            lit_from[cell] |= together
                        start = end + 1
        return lit_from

    def _has_one_solution(self, givens: Sequence[int], lit_from: Sequence[int]) -> bool:
        return len(list(islice(self._solutions(givens, lit_from), 2))) == 1

    def _solutions(
        self, givens: Sequence[int], lit_from: Sequence[int], tried: list[int] | None = None
    ) -> Iterator[int]:
        """Return all arrangements of bulbs as bits.

        Each appears once, because a place is barred after it was tried.
        """
        numbered = [
            (self._beside[w], value - NUMBERED)
            for w, value in enumerate(givens)
            if value >= NUMBERED
        ]
        every = sum(1 << cell for cell, value in enumerate(givens) if not value)

        def search(bulbs: int, free: int, unlit: int) -> Iterator[int]:
            """Continue the search; ``free`` holds the unlit cells that may still get a bulb."""
            forced = self._force_cells(numbered, lit_from, bulbs, free, unlit)
            if forced is None:
                return
            bulbs, free, unlit = forced
            if not unlit:
                yield bulbs
                return
            fewest, best = 99, 0
            for cell in self._bits(unlit):
                options = lit_from[cell] & free
                if (count := options.bit_count()) < fewest:
                    fewest, best = count, options
                    if count < 2:
                        break
            for cell in self._bits(best):
                if tried:
                    tried[0] += 1
                yield from search(
                    bulbs | 1 << cell, free & ~lit_from[cell], unlit & ~lit_from[cell]
                )
                free &= ~(1 << cell)

        return search(0, every, every)

    def _force_cells(
        self,
        numbered: Sequence[tuple[int, int]],
        lit_from: Sequence[int],
        bulbs: int,
        free: int,
        unlit: int,
    ) -> tuple[int, int, int] | None:
        """Return the free cells after numbers took their last places or barred others.

        The result is None if a number is impossible.
        """
        changed = True
        while changed:
            changed = False
            for beside, number in numbered:
                lacking = number - (beside & bulbs).bit_count()
                count = (beside & free).bit_count()
                if not 0 <= lacking <= count:
                    return None
                if count and not lacking:
                    free &= ~beside
                    changed = True
                elif count and lacking == count:
                    for cell in self._bits(beside & free):
                        if not free >> cell & 1:  # lit by the one just put
                            return None
                        bulbs |= 1 << cell
                        unlit &= ~lit_from[cell]
                        free &= ~lit_from[cell]
                    changed = True
        return bulbs, free, unlit

    @staticmethod
    def _bits(cells: int) -> Iterator[int]:
        while cells:
            yield (cells & -cells).bit_length() - 1
            cells &= cells - 1

    def _bulb_grid(self, givens: Sequence[int], bulbs: int) -> Grid:
        return self.as_rows(
            [value or (BULB if bulbs >> cell & 1 else DARK) for cell, value in enumerate(givens)]
        )


class LightUp(CellFillTask):
    """Light Up, one cell a step."""

    puzzle: LightUpPuzzle
    puzzle_class = LightUpPuzzle

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = self.puzzle.rows
        self.shifts = np.arange(self.side, dtype=np.uint16)
        self.observation_space = self.box(0.0, 1.0, (self.cells * (self.contents + 1),))

    def observation(self, state: GridState, key: jax.Array, params: Params) -> jax.Array:
        """Return the symbols one-hot, then which cells are lit."""
        grid = state.cells.reshape(self.side, self.side)
        lit = (grid == BULB) | self._lit_cells(grid == BULB, grid >= WALL)
        return jnp.concatenate(
            [super().observation(state, key, params), lit.astype(self.dtype).reshape(-1)]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the cells, then the light."""
        lit = Component(
            "lit", "[row, column]: whether the cell is lit", shape=(self.side, self.side)
        )
        return *super().observation_components(), lit

    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow bulbs in unlit cells, and darkness in cells that are lit or can be lit.

        No bulb may exceed a number.
        """
        grid = cells.reshape(self.side, self.side)
        bulbs, walls = grid == BULB, grid >= WALL
        lit = bulbs | self._lit_cells(bulbs, walls)
        free = (grid == 0) & ~lit
        lacking = grid - NUMBERED - self._count_beside(bulbs)
        reached = (grid >= NUMBERED) & (lacking <= 0)
        tight = (grid >= NUMBERED) & (lacking >= self._count_beside(free))
        bulb = ~lit & (self._count_beside(reached) == 0)
        dark = lit | (self._lit_cells(bulbs | free, walls) & (self._count_beside(tight) == 0))
        return two_symbol_mask(bulb, dark)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every cell is lit, no bulb lights another, and every number is right."""
        grid = cells.reshape(self.side, self.side)
        bulbs, walls = grid == BULB, grid >= WALL
        lit = self._lit_cells(bulbs, walls)
        number_fits = (grid < NUMBERED) | (self._count_beside(bulbs) == grid - NUMBERED)
        return (number_fits & (walls | (lit != bulbs))).all()

    def _lit_cells(self, sources: jax.Array, walls: jax.Array) -> jax.Array:
        """Return the cells lit by a source other than themselves, bool ``(side, side)``.

        Every line is a word whose bits spread in both directions at once, over distances that
        double (Kogge & Stone 1973).
        """
        start, free = (self._words(which) for which in (sources, ~walls))
        up = down = start
        upward = downward = free
        for step in (1 << k for k in range((self.side - 1).bit_length())):
            up |= upward & up << step
            down |= downward & down >> step
            upward &= upward << step
            downward &= downward >> step
        lines = ((up << 1 | down >> 1) & free)[:, :, None] >> self.shifts & 1 != 0
        return lines[0] | lines[1].T

    def _words(self, cells: jax.Array) -> jax.Array:
        """Return rows, then columns, as uint16 ``(2, side)``."""
        bits = cells.astype(jnp.uint16)
        across, down = bits << self.shifts, bits << self.shifts[:, None]
        return jnp.stack([union(across, 1), union(down)])

    @staticmethod
    def _count_beside(cells: jax.Array) -> jax.Array:
        """Count the marked cells among the four neighbours of each cell, int8 ``(side, side)``."""
        padded = jnp.pad(cells.astype(jnp.int8), 1)
        return padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw walls in black, their numbers in white."""
        for cell, value in enumerate(np.asarray(instance.givens).tolist()):
            if value:
                row, column = divmod(cell, self.side)
                board.cell(row, column, paper=INK)
                if value >= NUMBERED:
                    board.text(row, column, str(value - NUMBERED), PAPER)

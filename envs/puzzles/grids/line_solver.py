"""A solver of square grids whose rows and columns have given possible arrangements.

No two rows and no two columns may be equal.

An arrangement of a line is an integer: cell ``i`` of the line holds symbol ``v`` (1 to ``symbols``)
where bit ``i * symbols + v - 1`` is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

from rlbench_suite.puzzle.dice import Dice

Options = list[Sequence[int]]
"""Possible arrangements of each line."""


class LineSolver:
    """Depth-first search that keeps the possible arrangements of every line.

    An arrangement is possible while it fits what the crossing lines leave open.

    Args:
        side: cells of a line.
        symbols: number of symbols.
    """

    def __init__(self, side: int, symbols: int) -> None:
        self.side, self.symbols = side, symbols
        self.read = 0
        """Number of lines read so far: a measure of work."""
        self._any = 2**symbols - 1
        self._every = 2 ** (side * symbols) - 1

    def arrangement(self, values: Iterable[int]) -> int:
        """Return the arrangement with these symbols, 1 to ``symbols``."""
        return sum(1 << i * self.symbols + value - 1 for i, value in enumerate(values))

    def cells(self, rows: Iterable[int]) -> list[int]:
        """Return the symbols of a grid in reading order, from the arrangements of its rows."""
        offsets = range(0, self.side * self.symbols, self.symbols)
        return [(row >> offset & self._any).bit_length() for row in rows for offset in offsets]

    def solutions(
        self, rows: Options, columns: Options, max_solutions: int, dice: Dice | None = None
    ) -> list[list[int]]:
        """Return the rows' arrangements in at most ``max_solutions`` solutions.

        With dice, arrangements are tried in random order.
        """
        rows, columns = list(rows), list(columns)
        if not self._narrow(rows, columns):
            return []
        open_lines = [
            (len(options), across, i)
            for across, lines in enumerate((rows, columns))
            for i, options in enumerate(lines)
            if len(options) > 1
        ]
        if not open_lines:
            return [[options[0] for options in rows]]
        _, across, i = min(open_lines)
        lines = columns if across else rows
        solutions: list[list[int]] = []
        for option in dice.shuffled(lines[i]) if dice else lines[i]:
            lines[i] = (option,)
            solutions += self.solutions(rows, columns, max_solutions - len(solutions), dice)
            if len(solutions) == max_solutions:
                break
        return solutions

    def _narrow(self, rows: Options, columns: Options) -> bool:
        """Drop arrangements that do not fit, in place, until all fit.

        Return False if a line has none left.
        """
        lines, across = rows, columns
        quiet = 0
        while quiet < 2:
            quiet += 1
            unions = [reduce(or_, options, 0) for options in lines]
            fixed_lines = {options[0] for options in across if len(options) == 1}
            if len(fixed_lines) < sum(len(options) == 1 for options in across):
                return False
            for i, options in enumerate(across):
                offset = i * self.symbols
                possible = reduce(
                    or_,
                    [(u >> offset & self._any) << j * self.symbols for j, u in enumerate(unions)],
                )
                if len(options) == 1:
                    fitting = options if not options[0] & ~possible else ()
                elif fixed_lines or possible < self._every:
                    fitting = [
                        option
                        for option in options
                        if not option & ~possible and option not in fixed_lines
                    ]
                else:
                    fitting = options
                self.read += 1
                if not fitting:
                    return False
                if len(fitting) < len(options):
                    across[i] = fitting
                    quiet = 0
            lines, across = across, lines
        return True

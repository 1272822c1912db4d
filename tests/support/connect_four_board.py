"""Connect four with its rules written out, and the value of positions by enumeration."""

from __future__ import annotations

from functools import cache


class Board:
    """The rules written out: a list of pieces in each column, and lines counted cell by cell."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns: list[list[int]] = [[] for _ in range(columns)]
        self.rows = rows
        self.mover = 0

    def legal_moves(self) -> list[int]:
        return [c for c, pieces in enumerate(self.columns) if len(pieces) < self.rows]

    def piece(self, column: int, row: int) -> int | None:
        inside = 0 <= column < len(self.columns) and 0 <= row < len(self.columns[column])
        return self.columns[column][row] if inside else None

    def drop(self, column: int) -> bool:
        """Drop a piece, and return whether it completes a line."""
        self.columns[column].append(self.mover)
        row = len(self.columns[column]) - 1
        lines = [
            1 + self._run(column, row, dx, dy) + self._run(column, row, -dx, -dy)
            for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1))
        ]
        self.mover = 1 - self.mover
        return max(lines) >= 4

    def _run(self, column: int, row: int, dx: int, dy: int) -> int:
        count = 0
        while self.piece(column + (count + 1) * dx, row + (count + 1) * dy) == self.mover:
            count += 1
        return count

    @classmethod
    def of(cls, columns: tuple[tuple[int, ...], ...], rows: int, mover: int) -> Board:
        """Return the position with these pieces in the columns, from the bottom."""
        board = cls(len(columns), rows)
        board.columns = [[*pieces] for pieces in columns]
        board.mover = mover
        return board


def value(board: Board) -> int:
    """Return what perfect play earns the side to move: 1, 0 or -1."""
    return _value(tuple(map(tuple, board.columns)), board.rows, board.mover)


@cache
def _value(columns: tuple[tuple[int, ...], ...], rows: int, mover: int) -> int:
    moves = Board.of(columns, rows, mover).legal_moves()
    return max((value_of_move(Board.of(columns, rows, mover), c) for c in moves), default=0)


def value_of_move(board: Board, column: int) -> int:
    """Return what perfect play earns the side to move after its move."""
    after = Board.of(tuple(map(tuple, board.columns)), board.rows, board.mover)
    return 1 if after.drop(column) else -value(after)

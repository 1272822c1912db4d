"""Symmetries of boards, for canonical forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np


@cache
def square_symmetries(side: int) -> tuple[tuple[int, ...], ...]:
    """Return the eight rotations and reflections of a square board.

    Each holds, for each cell, the cell that goes there.
    """
    board = np.arange(side * side).reshape(side, side)
    turned = [np.rot90(board, k) for k in range(4)]
    return tuple(tuple(order.ravel().tolist()) for turn in turned for order in (turn, turn.T))


def square_forms(cells: bytes, side: int) -> list[bytes]:
    """Return the eight rotations and reflections of a square board, in no particular order."""
    across = b"".join([cells[column::side] for column in range(side)])
    forms = []
    for board in (cells, across):
        over = b"".join([board[at : at + side] for at in range(side * (side - 1), -1, -side)])
        forms += [board, board[::-1], over, over[::-1]]
    return forms


def rename_values(form: bytes) -> bytes:
    """Rename values other than 0 to 1, 2, ... in order of first occurrence."""
    names = dict.fromkeys(form)
    names.pop(0, None)
    return form.translate(bytes.maketrans(bytes(names), _NUMBERS[: len(names)]))


_NUMBERS = bytes(range(1, 256))


def relabel_values(values: Iterable[int]) -> list[int]:
    """Rename any values from 0 to 255 in the same way."""
    return list(rename_values(bytes(values)))


def smallest_form(forms: Iterable[Sequence[int]]) -> bytes:
    """Return the smallest of some forms of an instance, as bytes; entries from 0 to 255."""
    return min(bytes(form) for form in forms)

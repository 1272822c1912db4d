"""Symmetries of boards, for canonical forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np


@cache
def square_symmetries(side: int) -> tuple[tuple[int, ...], ...]:
    """The eight rotations and reflections of a square board: for each cell, the one that goes there."""
    board = np.arange(side * side).reshape(side, side)
    turned = [np.rot90(board, k) for k in range(4)]
    return tuple(tuple(order.ravel().tolist()) for turn in turned for order in (turn, turn.T))


def relabelled(values: Iterable[int]) -> list[int]:
    """Values other than 0 renamed to 1, 2, ... in the order in which they first come up."""
    names: dict[int, int] = {0: 0}
    return [names.setdefault(value, len(names)) for value in values]


def least(forms: Iterable[Sequence[int]]) -> bytes:
    """The smallest of some forms of an instance, as bytes; entries from 0 to 255."""
    return min(bytes(form) for form in forms)

"""Neighbours of the cells of a square board."""

from __future__ import annotations


def neighbours(side: int, *, diagonally: bool) -> list[int]:
    """Return the cells that share a border with each cell, as bits, in reading order.

    With diagonals, they may also share a corner only.
    """
    nearest = 2 if diagonally else 1
    return [
        sum(
            1 << side * y + x
            for y in range(max(r - 1, 0), min(r + 2, side))
            for x in range(max(c - 1, 0), min(c + 2, side))
            if 0 < (y - r) ** 2 + (x - c) ** 2 <= nearest
        )
        for r in range(side)
        for c in range(side)
    ]

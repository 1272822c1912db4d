"""Four ways on a grid, as actions and as words."""

from __future__ import annotations

from collections.abc import Iterable

MOVES = {"east": (1, 0), "north": (0, 1), "west": (-1, 0), "south": (0, -1)}
"""Steps in x and y, in the order of the actions."""


def read_move(text: str, moves: Iterable[str] = MOVES) -> int:
    """Return the action of a direction's name or number.

    Raises:
        ValueError: the text is neither.
    """
    word, names = text.strip().lower(), list(moves)
    if word not in (*names, *map(str, range(len(names)))):
        raise ValueError(f"expected one of {', '.join(names)}, got {text!r}")
    return names.index(word) if word in names else int(word)

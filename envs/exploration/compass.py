"""Four ways on a grid, as actions and as words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

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


class CompassMoves:
    """Words for the moves of one agent on a grid; a base class that comes before ``Task``."""

    action_space: Any
    moves: ClassVar[Mapping[str, tuple[int, int]]] = MOVES
    """Steps in x and y, in the order of the actions."""
    verb: ClassVar[str] = "drive"
    """Verb of a move, for a text player."""

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"Answer with one word, the way to {self.verb} one cell: {', '.join(self.moves)}."

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Return the action of a direction's name or number.

        Raises:
            ValueError: the text is neither.
        """
        return np.asarray(read_move(text, self.moves), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Return the name of the direction."""
        return list(self.moves)[int(action)]

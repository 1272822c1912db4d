"""Random pictures in eight colours.

They are bands of a smooth field that repeat like the pattern of a wallpaper, with discs, frames and
lines on it.

All numbers are whole, so that a picture is the same on every machine. A colour is three bits, one
for each of red, green and blue light: 0 is black, 1 red, 2 green, 4 blue, 7 white.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlbench_suite.puzzle.dice import Dice

COLOURS = 8
CODES = "KRGYBMCW"
"""Codes of black, red, green, yellow, blue, magenta, cyan and white."""
NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
DARK = 40
"""Level of a light that is off, of 255."""
BRIGHT = 225
"""Level of a light that is on, of 255."""

_WAVES = 2
"""Waves whose sum is the smooth field."""
_BANDS = 4
"""Bands of equal height into which the field is cut."""
_SHAPES = 3
"""Shapes on every two repeats of the pattern."""


def paint_picture(dice: Dice, repeats: int, period: int) -> np.ndarray:
    """Return a picture with a pattern that repeats downward and to the right.

    The shapes on it do not repeat.

    Args:
        dice: source of the draws.
        repeats: number of repeats of the pattern in each direction.
        period: pixels from one repeat to the next.

    Returns:
        Colours, int8 ``(side, side)`` of ``side = repeats * period + 1``.
    """
    side = repeats * period + 1
    row, column = np.indices((side, side))
    colours = dice.shuffled(range(COLOURS))
    height = np.zeros((side, side), np.int64)
    for _ in range(_WAVES):
        down, right, start = dice.between(-2, 2), dice.between(-2, 2), dice.below(period)
        height += np.abs(2 * (down * row + right * column + start) % (2 * period) - period)
    picture: np.ndarray = np.array(colours, np.int8)[height * _BANDS // (_WAVES * period + 1)]
    for _ in range(_SHAPES * repeats**2 // 2):
        shape = _shape(dice, side, row, column)
        picture[shape] = dice.choice(colours)
    return picture


def _shape(dice: Dice, side: int, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return the pixels of a disc, a frame or a line: bool ``(side, side)``."""
    size, kind = dice.between(2, 5), dice.below(3)
    row, column = row - dice.below(side), column - dice.below(side)
    around = np.maximum(np.abs(row), np.abs(column))
    if kind == 0:
        return row**2 + column**2 <= size**2
    if kind == 1:
        return around == size
    down, right = dice.between(-3, 3), dice.between(1, 3)
    return (np.abs(down * row + right * column) <= 2) & (around <= 2 * size)


def as_rgb(picture: Any, where: Any) -> Any:
    """Return the lights of colours as uint8, with a last axis of three added.

    ``where`` is NumPy's or JAX's.
    """
    bits = picture[..., None] >> np.arange(3, dtype=np.int8) & np.int8(1)
    return where(bits > 0, np.uint8(BRIGHT), np.uint8(DARK))

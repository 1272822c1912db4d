"""A map that rovers get to know, as letters and as a picture, north up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from ..shared.grid_bits import SIDE
from .terrain import RANGE

SAND, ROCK, FRONTIER, UNKNOWN = (214, 158, 108), (112, 62, 40), (255, 232, 170), (40, 37, 42)


def as_grid(words: Any, side: int = SIDE) -> np.ndarray:
    """Return the lower left cells of a set as booleans ``(side, side)``, rows from below."""
    cells = np.asarray(words)[:side, None] >> np.arange(side, dtype=np.uint32) & 1
    return cells.astype(bool)


def map_lines(
    is_known: np.ndarray, ground: np.ndarray, rovers: Mapping[str, tuple[int, int]]
) -> list[str]:
    """Return the lines of a map, the northern row first.

    Ground is ``.``, rock ``#``, what is unknown ``?``, and rovers have their letters.
    """
    signs = np.where(is_known, np.where(ground, ".", "#"), "?")
    for letter, (x, y) in rovers.items():
        signs[y, x] = letter
    return ["".join(row) for row in signs[::-1]]


def draw_map(
    is_known: np.ndarray,
    ground: np.ndarray,
    rovers: Iterable[tuple[int, int, str]],
    scale: int,
    shade: Any = 1.0,
) -> np.ndarray:
    """Draw the known map, the frontier, and the rovers with the range of their lidars.

    It is seen from above: sandy ground, brown rock, a light frontier, and dark unknown cells.

    Args:
        is_known: bool ``(side, side)``, cells that were seen; nothing of the others is drawn.
        ground: bool ``(side, side)``.
        rovers: x, y and colour of each.
        scale: pixels along a side of a cell.
        shade: brightness of the ground, broadcast to ``(side, side)``.
    """
    around = np.pad(is_known, 1, constant_values=True)
    unknown_beside = ~(around[2:, 1:-1] & around[:-2, 1:-1] & around[1:-1, 2:] & around[1:-1, :-2])
    sand = np.multiply.outer(np.broadcast_to(shade, is_known.shape), SAND)
    colours = np.where(ground[..., None], sand, ROCK)
    colours = np.where((is_known & ground & unknown_beside)[..., None], FRONTIER, colours)
    colours = np.where(is_known[..., None], colours, UNKNOWN)
    image = Image.fromarray(colours[::-1].astype(np.uint8).repeat(scale, 0).repeat(scale, 1))
    canvas = ImageDraw.Draw(image)
    for column, row, colour in rovers:
        x, y = scale * (column + 0.5), scale * (len(is_known) - row - 0.5)
        reach, body = scale * (RANGE + 0.5), 0.45 * scale
        canvas.ellipse((x - reach, y - reach, x + reach, y + reach), outline="white")
        canvas.ellipse((x - body, y - body, x + body, y + body), fill=colour)
    return np.asarray(image)

"""Text beside a picture, so that a player who sees nothing else can answer."""

from __future__ import annotations

import textwrap
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from .board import INK, PAPER

_MAX_LETTER_SIZE = 16
"""Largest size of letters, in pixels."""
_MIN_LETTER_SIZE = 8
"""Smallest size of letters, in pixels."""


def add_caption(picture: np.ndarray, text: str, shape: tuple[int, int, int]) -> np.ndarray:
    """Return a picture with text at its right, uint8 of ``shape``.

    The letters are as large as have room.

    Args:
        picture: uint8 ``(height, width, 3)``, no larger than ``shape``.
        text: printable ASCII; long lines are wrapped.
        shape: height, width and channels of the result.
    """
    height, width, _ = shape
    image = Image.new("RGB", (width, height), PAPER)
    image.paste(Image.fromarray(picture), (0, (height - picture.shape[0]) // 2))
    size, wrapped = _fit_text(text, height - 16, width - picture.shape[1] - 16)
    font = ImageFont.load_default(size)
    ImageDraw.Draw(image).multiline_text(
        (picture.shape[1] + 8, 8), wrapped, INK, font, spacing=size * 0.3
    )
    return np.asarray(image)


@cache
def _fit_text(text: str, height: int, width: int) -> tuple[float, str]:
    """Return the size of the letters, and the text in lines of that width."""
    for size in range(_MAX_LETTER_SIZE, _MIN_LETTER_SIZE - 1, -1):
        across = int(width / (size * 0.53))  # a letter is about half as wide as high
        lines = [
            wrapped_line
            for line in text.splitlines()
            for wrapped_line in textwrap.wrap(line, across) or [""]
        ]
        if len(lines) * size * 1.5 <= height:
            break
    return float(size), "\n".join(lines)

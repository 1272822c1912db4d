"""Pictures of tool worlds as a page of text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 640, 420
PAPER, INK, PALE, RULE, BAR, ALARM = (
    "#ffffff",
    "#222222",
    "#b4b9c1",
    "#e3e6ea",
    "#0072b2",
    "#d55e00",
)
LINE = 17
"""Pixels from one line of text to the next."""


def page(title: str, status: str, paragraphs: Sequence[str]) -> np.ndarray:
    """Draw a title, a line of status, and paragraphs of text, uint8 ``(HEIGHT, WIDTH, 3)``."""
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(13)
    small_font = ImageFont.load_default(11)
    pen.rectangle((0, 0, WIDTH, 58), fill=BAR)
    for number, line in enumerate(textwrap.wrap(title, 86)[:3]):
        pen.text((12, 4 + LINE * number), line, "white", font)
    pen.text((12, 64), status, ALARM, font)
    raw = "\n".join(paragraphs).split("\n") if paragraphs else []
    lines = [line for raw_line in raw for line in (textwrap.wrap(raw_line, 104) or [""])]
    for number, line in enumerate(lines[: (HEIGHT - 90) // LINE]):
        pen.text((12, 88 + LINE * number), line, INK, small_font)
    return np.asarray(image)

"""Pictures of formulas that can be read without the text.

Every clause is written out, coloured by what is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import ceil

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from .dimacs import Clause

PAPER_COLOUR = "#ffffff"
OUTLINE_COLOUR = "#d5dae1"
TRUE_COLOUR = "#0072b2"
FALSE_COLOUR = "#7a8699"
FREE_COLOUR = "#b36b00"
"""Colour of variables without a value."""
UNSATISFIED_PAPER_COLOUR = "#f7d9c4"
UNSATISFIED_COLOUR = "#b04300"
MARGIN = 12
"""Pixels between the text and the edges."""
MAX_LETTER_SIZE = 18
"""Largest size of letters, in pixels."""


def picture_of(
    clauses: Sequence[Clause], values: Mapping[int, bool | None], shape: tuple[int, int, int]
) -> np.ndarray:
    """Return a formula under an assignment, uint8 of ``shape``.

    The first lines are the variables, each with its value: 1, 0 or a question mark. Below stand the
    clauses, a box each, as literals: ``-7`` is "not variable 7". Blue literals are true, grey ones
    false, brown ones have no value. A clause with only false literals stands on orange.

    Args:
        clauses: the formula.
        values: of each variable 1, 2, ...; None for one without.
        shape: height, width and channels.
    """
    height, width, _ = shape
    digits = len(str(len(values)))
    boxes, longest = len(clauses), max(map(len, clauses))
    size, columns = layout(boxes, longest, len(values), (height, width))
    wide, high, font = _letter(size) * (digits + 1.5), size * 1.35, ImageFont.load_default(size)
    image = Image.new("RGB", (width, height), PAPER_COLOUR)
    pen = ImageDraw.Draw(image)
    across = int((width - 2 * MARGIN) / (_letter(size) * (digits + 4)))
    for k, (variable, value) in enumerate(values.items()):
        x = MARGIN + k % across * _letter(size) * (digits + 4)
        digit = "?" if value is None else str(int(value))
        pen.text((x, MARGIN + k // across * high), f"{variable}:{digit}", _colour(value), font)
    top = MARGIN + ceil(len(values) / across) * high + size / 2
    down = ceil(boxes / columns)
    step = (width - 2 * MARGIN) / columns
    for k, clause in enumerate(clauses):
        x, y = MARGIN + k // down * step, top + k % down * high
        truth = [
            None if values[abs(literal)] is None else values[abs(literal)] == (literal > 0)
            for literal in clause
        ]
        lost = all(value is False for value in truth)
        pen.rectangle(
            (x, y, x + step - 4, y + high - 2),
            fill=UNSATISFIED_PAPER_COLOUR if lost else PAPER_COLOUR,
            outline=OUTLINE_COLOUR,
        )
        for column, (literal, value) in enumerate(zip(clause, truth, strict=True)):
            end = x + (column + 1) * min(wide, (step - 8) / longest)
            pen.text(
                (end, y + high / 2 - 1),
                str(literal),
                UNSATISFIED_COLOUR if lost else _colour(value),
                font,
                anchor="rm",
            )
    return np.asarray(image)


def _colour(value: bool | None) -> str:
    if value is None:
        return FREE_COLOUR
    return TRUE_COLOUR if value else FALSE_COLOUR


def _letter(size: float) -> float:
    """Return the width of a digit."""
    return size * 0.6


@cache
def layout(clauses: int, longest: int, variables: int, room: tuple[int, int]) -> tuple[float, int]:
    """Return the largest size of letters that leaves room for all, and the columns of clauses."""
    height, width = room
    digits = len(str(variables))
    for size in range(MAX_LETTER_SIZE, 5, -1):
        across = int((width - 2 * MARGIN) / (_letter(size) * (digits + 4)))
        height_left = height - 2 * MARGIN - ceil(variables / across) * size * 1.35 - size / 2
        columns = int((width - 2 * MARGIN) / (_letter(size) * (digits + 1.5) * longest + 10))
        if columns and ceil(clauses / columns) * size * 1.35 <= height_left:
            return float(size), columns
    return 6.0, max(1, columns)

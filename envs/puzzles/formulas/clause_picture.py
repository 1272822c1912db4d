"""Formulas as pictures: variables as rows, clauses as columns, literals as boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image, ImageDraw

from .dimacs import Clause

PAPER, RULE, TRUE, FALSE, FREE = "#ffffff", "#eeeeee", "#0072b2", "#c9ced6", "#e69f00"
ALARM, UNSATISFIED = "#f7d9c4", "#d55e00"


def picture_of(clauses: Sequence[Clause], values: Mapping[int, bool | None], shape: tuple[int, int, int]) -> np.ndarray:
    """Return a formula under an assignment, uint8 of ``shape``.

    Blue literals are true, pale ones false, orange ones have no value; a clause with only false literals is a vermilion
    column. The bar on the left is blue for variables that are true.

    Args:
        clauses: the formula.
        values: of each variable 1, 2, ...; None for one without.
        shape: height, width and channels.
    """
    height, width, _ = shape
    margin = 20
    across, down = (width - 3 * margin) // len(clauses), (height - 2 * margin) // len(values)
    left = (width - margin - across * len(clauses)) // 2 + margin
    top = (height - down * len(values)) // 2
    image = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(image)

    def value(literal: int) -> bool | None:
        given = values[abs(literal)]
        return None if given is None else given == (literal > 0)

    for row, variable in enumerate(values):
        y = top + row * down
        pen.line((left, y + down / 2 - 1, left + len(clauses) * across, y + down / 2 - 1), RULE)
        bar = (left - margin, y, left - margin // 2, y + down - 2)
        pen.rectangle(bar, fill={True: TRUE, False: FALSE, None: FREE}[values[variable]])
    for j, clause in enumerate(clauses):
        x = left + j * across
        falsified = all(value(literal) is False for literal in clause)
        if falsified:
            pen.rectangle((x, top, x + across - 2, top + len(values) * down - 2), fill=ALARM)
        colours = {True: TRUE, False: UNSATISFIED if falsified else FALSE, None: FREE}
        for literal in clause:
            y = top + (abs(literal) - 1) * down
            pen.rectangle((x, y, x + across - 2, y + down - 2), fill=colours[value(literal)])
    return np.asarray(image)

"""A picture of a board of square cells, with which puzzles on grids are drawn."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

PAPER = "#ffffff"
LINE = "#b8bec7"
INK = "#1d2733"
CLUE_PAPER = "#e9ecf0"
FILLED = "#0072b2"


class Board:
    """Square cells in the middle of a picture, with a margin of one cell around for clues.

    Args:
        rows, columns: number of cells in each direction.
        shape: height, width and channels of the picture.
    """

    def __init__(self, rows: int, columns: int, shape: tuple[int, int, int]) -> None:
        height, width, _ = shape
        self.rows, self.columns = rows, columns
        self.side = min(height // (rows + 2), width // (columns + 2))
        self.left = (width - columns * self.side) // 2
        self.top = (height - rows * self.side) // 2
        self.image = Image.new("RGB", (width, height), PAPER)
        self.pen = ImageDraw.Draw(self.image)
        self._font = ImageFont.load_default(self.side * 0.6)

    def box(self, row: int, column: int) -> tuple[int, int, int, int]:
        """Return the corners of a cell in pixels.

        Rows and columns outside the board lie in the margin.
        """
        x, y = self.left + column * self.side, self.top + row * self.side
        return x, y, x + self.side, y + self.side

    def cell(
        self, row: int, column: int, symbol: str = "_", *, is_clue: bool = False, paper: str = ""
    ) -> None:
        """Draw a cell and its symbol; ``_`` and the empty string leave it empty."""
        self.pen.rectangle(
            self.box(row, column), fill=paper or (CLUE_PAPER if is_clue else PAPER), outline=LINE
        )
        if symbol not in ("_", ""):
            self.text(row, column, symbol, INK if is_clue else FILLED)

    def text(
        self, row: float, column: float, text: str, colour: str = INK, scale: float = 1.0
    ) -> None:
        """Write text in the middle of a cell, or in the margin."""
        x, y = self.left + (column + 0.5) * self.side, self.top + (row + 0.5) * self.side
        font = self._font if scale == 1.0 else ImageFont.load_default(self.side * 0.6 * scale)
        self.pen.text((x, y), text, colour, font, anchor="mm")

    def line(
        self,
        row: float,
        column: float,
        to_row: float,
        to_column: float,
        colour: str = INK,
        width: int = 3,
    ) -> None:
        """Draw a line between corners of cells."""
        start = self.left + column * self.side, self.top + row * self.side
        end = self.left + to_column * self.side, self.top + to_row * self.side
        self.pen.line((*start, *end), colour, width)

    def picture(self) -> np.ndarray:
        """Return the picture, uint8 of ``shape``."""
        return np.asarray(self.image)

"""Pictures of playing cards and of formulas, made of small bitmaps that are written down here.

The tables are NumPy arrays of finished pictures, a word a pixel (:func:`as_rgb`). So a compiled
program only looks up and moves pixels. Everything lies on a green table: cards lie in slots side by
side, each somewhere within its slot; below them is a strip of paper with the formula, a box for
each token.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
SUITS = ("spades", "hearts", "clubs", "diamonds")

CARD_HEIGHT, CARD_WIDTH = 43, 29
PLAY = 7
"""Greatest distance, in pixels, by which a card lies further down or to the right in its slot."""
SLOT_HEIGHT, SLOT_WIDTH = CARD_HEIGHT + PLAY, CARD_WIDTH + PLAY
BOX_HEIGHT, BOX_WIDTH = 14, 12
"""Height and width of a token in the strip, in pixels."""

_TABLE, _PAPER, _STRIP, _BLACK, _RED, _EDGE = range(6)
_LIGHTS = np.array(
    [(34, 102, 68), (255, 255, 255), (238, 232, 213), (24, 24, 28), (200, 24, 40), (150, 150, 150)],
    np.uint8,
)
"""Red, green and blue of each colour."""
_INKS = _LIGHTS.astype(np.int32) @ np.array([1, 1 << 8, 1 << 16], np.int32)
"""The same colours, each packed into one word, so that one lookup gives a pixel."""

_GLYPHS = {
    "0": ".###. #...# #..## #.#.# ##..# #...# .###.",
    "1": "..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.",
    "2": ".###. #...# ....# ..##. .#... #.... #####",
    "3": ".###. #...# ....# ..##. ....# #...# .###.",
    "4": "...#. ..##. .#.#. #..#. ##### ...#. ...#.",
    "5": "##### #.... ####. ....# ....# #...# .###.",
    "6": "..##. .#... #.... ####. #...# #...# .###.",
    "7": "##### ....# ...#. ..#.. ..#.. .#... .#...",
    "8": ".###. #...# #...# .###. #...# #...# .###.",
    "9": ".###. #...# #...# .#### ....# ...#. .##..",
    "A": "..#.. .#.#. #...# #...# ##### #...# #...#",
    "J": "..### ...#. ...#. ...#. ...#. #..#. .##..",
    "Q": ".###. #...# #...# #...# #.#.# #..#. .##.#",
    "K": "#...# #..#. #.#.. ##... #.#.. #..#. #...#",
    "+": "..... ..#.. ..#.. ##### ..#.. ..#.. .....",
    "-": "..... ..... ..... ##### ..... ..... .....",
    "*": "..... ..#.. #.#.# .###. #.#.# ..#.. .....",
    "/": "....# ....# ...#. ..#.. .#... #.... #....",
    "(": "...#. ..#.. .#... .#... .#... ..#.. ...#.",
    ")": ".#... ..#.. ...#. ...#. ...#. ..#.. .#...",
    "=": "..... ..... ##### ..... ##### ..... .....",
}  # fmt: skip
"""Glyphs: rows of 5 pixels, from the top."""

_SYMBOLS = {
    "spades": (
        "....#.... ...###... ..#####.. .#######. ######### ######### .##.#.##. ....#.... ..#####.."
    ),
    "hearts": (
        ".##...##. ####.#### ######### ######### .#######. ..#####.. ...###... ....#.... ........."
    ),
    "clubs": (
        "...###... ..#####.. ..#####.. ...###... .#######. ######### .##.#.##. ....#.... ..#####.."
    ),
    "diamonds": (
        "....#.... ...###... ..#####.. .#######. ######### .#######. ..#####.. ...###... ....#...."
    ),
}
"""Suits: rows of 9 pixels, from the top."""


def _bitmap(rows: str) -> np.ndarray:
    """Return rows of ``#`` and other characters as bool."""
    return np.array([[pixel == "#" for pixel in row] for row in rows.split()])


def _text_bitmap(text: str) -> np.ndarray:
    """Return characters side by side, a pixel between them; bool ``(7, 6 n - 1)``."""
    space = np.zeros((7, 1), bool)
    return np.hstack(
        [bitmap for character in text for bitmap in (_bitmap(_GLYPHS[character]), space)][:-1]
    )


def _card(rank: str, suit: str) -> np.ndarray:
    """Return a card: the rank above, the suit below, both twice as large as their bitmaps."""
    card = np.full((CARD_HEIGHT, CARD_WIDTH), _EDGE)
    card[1:-1, 1:-1] = _PAPER
    card[[0, 0, -1, -1], [0, -1, 0, -1]] = _TABLE
    ink = _RED if suit in ("hearts", "diamonds") else _BLACK
    for top, small in ((4, _text_bitmap(rank)), (21, _bitmap(_SYMBOLS[suit]))):
        large = small.repeat(2, axis=0).repeat(2, axis=1)
        left_edge = (CARD_WIDTH - large.shape[1]) // 2
        card[top : top + large.shape[0], left_edge : left_edge + large.shape[1]][large] = ink
    return card


def as_rgb(picture: Any) -> Any:
    """Split pixels of the tables into red, green and blue on a last axis, uint8.

    The pixels may be an array of NumPy or of JAX.
    """
    return (picture[..., None] >> np.array([0, 8, 16], np.int32)).astype(np.uint8)


@cache
def cards() -> np.ndarray:
    """Return the pictures of all cards, int32 ``(53, SLOT_HEIGHT + PLAY, SLOT_WIDTH + PLAY)``.

    The index of a card is ``4 * rank + suit``. An empty slot comes last.

    The window of a slot's size that begins ``PLAY - down`` from the top and ``PLAY - right`` from
    the left shows the card so far down and to the right.
    """
    wide = np.full((len(RANKS) * len(SUITS) + 1, SLOT_HEIGHT + PLAY, SLOT_WIDTH + PLAY), _TABLE)
    wide[:-1, PLAY:-PLAY, PLAY:-PLAY] = [_card(rank, suit) for rank in RANKS for suit in SUITS]
    return _INKS[wide]


@cache
def boxes(tokens: tuple[str, ...]) -> np.ndarray:
    """Return the boxes of the strip, int32 ``(1 + tokens, BOX_HEIGHT, BOX_WIDTH)``.

    An empty box comes first, then one for each token.
    """
    table = np.full((1 + len(tokens), BOX_HEIGHT, BOX_WIDTH), _STRIP)
    for box, token in zip(table[1:], tokens, strict=True):
        glyphs = _text_bitmap(token)
        left_edge = (BOX_WIDTH - glyphs.shape[1]) // 2
        box[3:10, left_edge : left_edge + glyphs.shape[1]][glyphs] = _BLACK
    return _INKS[table]

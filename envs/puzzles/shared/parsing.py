"""Strict readers of answers. Each one reads text by a small grammar of its own, or names the fault.

:func:`rows_of` is for lenient readers: it gives a grid the layout that the strict ones ask for.

Nothing is evaluated, numbers have few digits, and every reader takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from rlbench_suite.contexts.numerals import read_integer
from rlbench_suite.puzzle.puzzle import HYPHENATED, Malformed, items_of

_ENDS_OF_ROWS = str.maketrans(dict.fromkeys(")]};", "\n"))


def integer(text: str, low: int, high: int, what: str = "number") -> int:
    """Read a whole number in decimal digits, from ``low`` to ``high``.

    Raises:
        Malformed: anything else.
    """
    try:
        number: int | None = read_integer(text)
    except ValueError:
        number = None
    if number is None or not low <= number <= high:
        raise Malformed(f"expected a {what} from {low} to {high}, got {_shorten(text)}")
    return number


def integers(
    text: str,
    low: int,
    high: int,
    *,
    min_count: int = 0,
    max_count: int = 1000,
    what: str = "number",
) -> list[int]:
    """Read whole numbers separated by single spaces.

    Raises:
        Malformed: fewer than ``min_count`` or more than ``max_count`` of them, or one out of range.
    """
    words = text.split(" ") if text else []
    if not min_count <= len(words) <= max_count:
        count = f"{min_count}" if min_count == max_count else f"{min_count} to {max_count}"
        raise Malformed(f"expected {count} {what}s separated by single spaces, got {len(words)}")
    return [integer(word, low, high, what) for word in words]


def word(text: str, allowed: Sequence[str]) -> int:
    """Return the index of a word in ``allowed``.

    Raises:
        Malformed: it is none of them.
    """
    words = tuple(allowed)  # in a string, every substring would be found
    if text not in words:
        raise Malformed(f"expected one of {', '.join(words)}, got {_shorten(text)}")
    return words.index(text)


def grid(text: str, rows: int, columns: int, symbols: str) -> list[list[int]]:
    """Read a grid as :func:`cells` does, counted from 0, in rows."""
    numbers = cells(text, rows, columns, symbols, 0)
    return [list(numbers[at : at + columns]) for at in range(0, rows * columns, columns)]


def cells(text: str, rows: int, columns: int, symbols: str, first: int = 1) -> bytes:
    """Return the number of each symbol of a grid, row by row.

    Rows stand on lines of their own, symbols separated by single spaces.

    Args:
        text: as written; lines may end with spaces.
        rows, columns: their numbers.
        symbols: single ASCII characters.
        first: the number of the first symbol.

    Raises:
        Malformed: another shape, or another symbol.
    """
    gaps, numbers = _layout(rows, columns, symbols, first)
    symbol_text = text[::2]
    if text[1::2] != gaps or len(symbol_text) != rows * columns or symbol_text.strip(symbols):
        # Some lines end with spaces, or it is malformed.
        symbol_text = "".join(_symbols(text, rows, columns, symbols))
    return symbol_text.encode().translate(numbers)


_RULE = re.compile(r"\|(?:\s*:?-{3,}:?\s*\|)+")
"""The rule below the first row of a Markdown table."""


def rows_of(text: str, rows: int, columns: int, symbols: Sequence[str]) -> list[list[str]]:
    """Split a malformed grid into rows of items, as a reader would who knows its shape.

    Blank lines, separators and a final period do not matter. A row also ends at a closing bracket
    or a semicolon. Symbols of one character may stand without spaces, a whole row at a time. All of
    the grid may stand on one line, with commas between all items, between rows, or nowhere. A
    Markdown table is read without its bars and rules. The rows may still have other lengths or
    symbols.
    """
    if text.startswith("|") and "|" not in symbols:
        text = "\n".join(
            line.replace("|", " ") for line in text.split("\n") if not _RULE.fullmatch(line.strip())
        )
    if text.endswith((").", "].", "}.", "'.", '".')):
        text = text[:-1]
    if rows == 1:
        text = text.replace("->", " ")
        text = text.replace("-", " ") if HYPHENATED.fullmatch(text) else text
    lines = [line for line in text.translate(_ENDS_OF_ROWS).split("\n") if items_of(line)]
    on_one_line = len(lines) == 1
    if on_one_line:
        lines = lines[0].split(",")
    if (
        len(lines) > 2 * rows * columns
    ):  # no grid; thousands of lists would set off the collection of garbage
        return [[text]]
    table = [items for line in lines if (items := items_of(line))]
    last = table[-1][-1] if table else ""
    widest = columns if len(table) == rows and len(table[-1]) == 1 else 1
    if last.endswith(".") and ("." not in symbols or len(last) > widest):
        table[-1][-1:] = [last[:-1]] if last[:-1] else []
    if all(len(symbol) == 1 for symbol in symbols):
        table = [
            list(line[0]) if len(line) == 1 and len(line[0]) == columns else line for line in table
        ]
    if rows == 1 or (on_one_line and (len(table) == 1 or all(len(line) == 1 for line in table))):
        items = [item for line in table for item in line]
        if len(items) == rows * columns:
            return [items[at : at + columns] for at in range(0, rows * columns, columns)]
    return table


def _symbols(text: str, rows: int, columns: int, symbols: str) -> Iterator[str]:
    """Return the symbols of each line; spaces at its end do not matter."""
    lines = text.split("\n")
    if len(lines) != rows:
        raise Malformed(f"expected {rows} lines, got {len(lines)}")
    for number, line in enumerate((line.rstrip(" ") for line in lines), 1):
        symbol_text = line[::2]
        if len(line) != 2 * columns - 1 or line[1::2].strip(" "):
            raise Malformed(
                f"line {number}: expected {columns} symbols separated by single spaces, got "
                f"{_shorten(line)}"
            )
        if symbol_text.strip(symbols):  # the rest begins and ends with another symbol
            raise Malformed(
                f"line {number}: expected symbols among {' '.join(symbols)}, got {_shorten(line)}"
            )
        yield symbol_text


@cache
def _layout(rows: int, columns: int, symbols: str, first: int) -> tuple[str, bytes]:
    """Return the separators between the symbols of a grid, and a table of their numbers.

    The table translates characters to bytes.
    """
    numbers = bytes(max(symbols.find(chr(code)), 0) + first for code in range(256))
    return ((" " * (columns - 1) + "\n") * rows)[:-1], numbers


def _shorten(text: str) -> str:
    """Return the text, cut where it is long."""
    return repr(text if len(text) <= 20 else text[:17] + "...")

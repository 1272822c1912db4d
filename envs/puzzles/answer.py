"""Strict readers of answers: each takes text by a small grammar of its own, or says what is wrong with it.

Nothing is evaluated, numbers have few digits, and every reader takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from rlbench_suite.puzzle import Malformed

_NUMBER = re.compile(r"-?[0-9]{1,9}")


def integer(text: str, low: int, high: int, what: str = "number") -> int:
    """A whole number in decimal digits, from ``low`` to ``high``.

    Raises:
        Malformed: anything else.
    """
    if _NUMBER.fullmatch(text) is None or not low <= (number := int(text)) <= high:
        raise Malformed(f"expected a {what} from {low} to {high}, got {_short(text)}")
    return number


def integers(text: str, low: int, high: int, *, least: int = 0, most: int = 1000, what: str = "number") -> list[int]:
    """Whole numbers separated by single spaces.

    Raises:
        Malformed: fewer than ``least`` or more than ``most`` of them, or one out of range.
    """
    words = text.split(" ") if text else []
    if not least <= len(words) <= most:
        count = f"{least}" if least == most else f"{least} to {most}"
        raise Malformed(f"expected {count} {what}s separated by single spaces, got {len(words)}")
    return [integer(word, low, high, what) for word in words]


def word(text: str, allowed: Sequence[str]) -> int:
    """The index of the word in ``allowed``.

    Raises:
        Malformed: it is none of them.
    """
    if text not in (words := list(allowed)):  # of a string every part would be "in" it
        raise Malformed(f"expected one of {', '.join(words)}, got {_short(text)}")
    return words.index(text)


def grid(text: str, rows: int, columns: int, symbols: str) -> list[list[int]]:
    """Rows on lines of their own, symbols separated by single spaces; gives each one's index in ``symbols``.

    Raises:
        Malformed: another shape, or another symbol.
    """
    lines = text.split("\n")
    if len(lines) != rows:
        raise Malformed(f"expected {rows} lines, got {len(lines)}")
    numbers = _numbers(symbols)
    table = []
    for number, line in enumerate((line.rstrip(" ") for line in lines), 1):
        found = line[::2]
        if len(line) != 2 * columns - 1 or line[1::2].strip(" "):
            raise Malformed(f"line {number}: expected {columns} symbols separated by single spaces, got {_short(line)}")
        if found.strip(symbols):  # what is left begins and ends with another symbol
            raise Malformed(f"line {number}: expected symbols among {' '.join(symbols)}, got {_short(line)}")
        table.append(list(found.encode().translate(numbers)))
    return table


@cache
def _numbers(symbols: str) -> bytes:
    """Translates ASCII characters to their indices."""
    return bytes(max(symbols.find(chr(code)), 0) for code in range(256))


def _short(text: str) -> str:
    """The text, cut where it is long."""
    return repr(text if len(text) <= 20 else text[:17] + "...")

"""Strict readers of numbers in text that players write.

Python's own ``int`` and ``float`` also take digits of other scripts, underscores, ``inf`` and
``nan``.
"""

from __future__ import annotations

import re

_INTEGER = re.compile(r"-?[0-9]{1,9}")
_REAL = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")


def read_integer(text: str) -> int:
    """Read a whole number from a text: at most nine ASCII digits, with or without a minus sign.

    Raises:
        ValueError: anything else.
    """
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f"expected a whole number of at most 9 digits, got {text[:40]!r}")
    return int(text)


def read_real(text: str) -> float:
    """Read a number from a text in decimal notation.

    Its digits are ASCII, as in ``-0.25`` or ``2.5e-3``.

    Raises:
        ValueError: anything else, or a number too large for ``float``.
    """
    if _REAL.fullmatch(text) is None or abs(number := float(text)) == float("inf"):
        raise ValueError(f"expected a number in decimal notation, got {text[:40]!r}")
    return number

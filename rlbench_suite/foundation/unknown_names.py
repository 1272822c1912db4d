"""Write sentences that refuse an unknown name.

They say what was given, the nearest valid name, and the names that are allowed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

MAX_LISTED_NAMES = 20
"""Largest number of names that an error lists in full."""
PROPOSED_NAMES = 5
"""Number of names that it lists if there are more."""
MIN_NEARNESS = 0.6
"""Least nearness of a name that an error proposes."""
MIN_PART_CHARACTERS = 3
"""Least number of characters of a part of a name."""
MAX_QUOTE = 80
"""Largest number of characters of a given name that an error repeats."""


class UnknownKeyword(TypeError, ValueError):
    """A keyword that an id does not take.

    It is a ``TypeError`` like Python's own, which tells callers of ``gymnasium.make`` that they may
    leave a keyword out (TorchRL leaves out its ``frameskip``). It is also a ``ValueError`` like
    that for any unknown setting.
    """


def unexpected(task_id: str, name: str, valid_names: Iterable[str]) -> UnknownKeyword:
    """Return the error to raise for a keyword: Python's usual sentence, then the valid keywords."""
    sentence = unknown("keyword", name, valid_names)
    return UnknownKeyword(f"{task_id} got an unexpected keyword argument {name!r}. {sentence}")


def unknown(kind: str, value: object, valid_names: Iterable[str]) -> str:
    """Return a sentence with the value, the nearest valid name, and the valid names.

    If there are many valid names, only the nearest are listed.
    """
    names = sorted(valid_names)
    text = value if isinstance(value, str) else repr(value)
    if len(text) > MAX_QUOTE:
        value = f"{text[:MAX_QUOTE]}..."
    nearness = {name: _nearness(name, str(value)) for name in names}
    nearest = sorted(names, key=lambda name: (nearness[name], name), reverse=True)
    hint = ""
    if nearest and nearness[nearest[0]] >= MIN_NEARNESS:
        hint = f" Did you mean {nearest[0]!r}?"
    listed = f"Known: {', '.join(names)}."
    if len(names) > MAX_LISTED_NAMES:
        listed = f"Nearest of {len(names)}: {', '.join(nearest[:PROPOSED_NAMES])}."
    return f"Unknown {kind} {value!r}.{hint} {listed}"


def one_of(kind: str, value: object, allowed: Iterable[Any]) -> Any:
    """Return the allowed value that equals a value or has the same text, as in a query.

    Raises:
        ValueError: none is.
    """
    by_text = {str(choice): choice for choice in allowed}
    if isinstance(value, int | float) and value in by_text.values():
        return next(choice for choice in by_text.values() if choice == value)
    if str(value) not in by_text:
        raise ValueError(unknown(kind, value, by_text))
    return by_text[str(value)]


def _nearness(name: str, value: str) -> float:
    """Return the share of equal characters, 0 to 1.

    A name that contains the value gets 1 more: of ``hover``, ``QuadcopterHover-v0`` is nearer than
    ``Hopper-v0``.
    """
    folded_name = _fold(name)
    folded_value = _fold(value)
    stem = re.sub(r"-v\d+$", "", folded_value)
    contains = len(stem) >= MIN_PART_CHARACTERS and stem in folded_name
    return contains + difflib.SequenceMatcher(None, folded_name, folded_value).ratio()


def _fold(name: str) -> str:
    """Return a name in lower case without namespace.

    People get these two parts wrong most often.
    """
    return name.lower().removeprefix("rlsuite/")

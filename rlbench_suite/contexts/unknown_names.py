"""Sentences that refuse an unknown name: what was given, the nearest valid name, and the names that are allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

LONGEST_LIST, NEAREST = 20, 5
"""Largest number of names that an error lists in full, and the number that it lists if there are more."""
LONGEST_GIVEN = 80
"""Largest number of characters of a given name that an error repeats."""


class UnknownKeyword(TypeError, ValueError):
    """A keyword that an id does not take.

    It is a ``TypeError`` like Python's own, which tells callers of ``gymnasium.make`` that they may leave a keyword out
    (TorchRL leaves out its ``frameskip``). It is also a ``ValueError`` like that for any unknown setting.
    """


def unexpected(task_id: str, name: str, known: Iterable[str]) -> UnknownKeyword:
    """Return the error to raise for a keyword: Python's usual sentence, then the known keywords."""
    return UnknownKeyword(f"{task_id} got an unexpected keyword argument {name!r}. {unknown('keyword', name, known)}")


def unknown(kind: str, given: object, known: Iterable[str]) -> str:
    """Return a sentence with the given value, the nearest valid name, and the allowed names (if many, the nearest)."""
    names = sorted(known)
    text = given if isinstance(given, str) else repr(given)
    given = f"{text[:LONGEST_GIVEN]}..." if len(text) > LONGEST_GIVEN else given
    folded = {_fold(name): name for name in names}
    near = difflib.get_close_matches(_fold(str(given)), folded, n=1, cutoff=0.4)
    hint = f" Did you mean {folded[near[0]]!r}?" if near else ""
    listed = f"Known: {', '.join(names)}."
    if len(names) > LONGEST_LIST:
        nearest = difflib.get_close_matches(_fold(str(given)), folded, n=NEAREST, cutoff=0)
        listed = f"Nearest of {len(names)}: {', '.join(folded[name] for name in nearest)}."
    return f"Unknown {kind} {given!r}.{hint} {listed}"


def one_of(kind: str, given: object, allowed: Iterable[Any]) -> Any:
    """Return the allowed value that equals the given one or has the same text, as in a query.

    Raises:
        ValueError: none is.
    """
    written = {str(value): value for value in allowed}
    if isinstance(given, int | float) and given in written.values():
        return next(value for value in written.values() if value == given)
    if str(given) not in written:
        raise ValueError(unknown(kind, given, written))
    return written[str(given)]


def _fold(name: str) -> str:
    """Return a name in lower case without namespace. People get these two parts wrong most often."""
    return name.lower().removeprefix("rlsuite/")

"""Calls of tools as language models write them, read into a name and arguments.

Four forms are read: ``{"name": ..., "arguments": {...}}``, the same with ``api`` and ``args``, the same inside
``{"type": "function", "function": ...}``, and a line like ``contacts.get(contact=3)``. Arguments may be JSON in a text,
as chat endpoints return them.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

FORM = 'expected one call, {"name": ..., "arguments": {...}} or name(argument=value)'
MOST_DIGITS = 4_000
"""Digits of a whole number, a little less than Python reads."""
NAME_KEYS, ARGUMENT_KEYS = ("name", "api"), ("arguments", "args", "parameters")
LINE = re.compile(r"(\w+(?:\.\w+)?)\s*\((.*)\)", re.DOTALL)
ARGUMENT = re.compile(r"""\s*+(?:(\w++)\s*+=\s*+)?("[^"]*+"|'[^']*+'|[^,'"=()]++)\s*+(,|$)""")


class Documented(Protocol):
    """Anything with a name and named arguments."""

    @property
    def name(self) -> str:
        """Name by which it is called."""
        ...

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Arguments by name, in the order of the documentation."""
        ...


def read_call(text: str) -> tuple[Any, Any]:
    """Return name and arguments of a call, neither of them checked; arguments of a line without names are a tuple.

    Raises:
        ValueError: the text has none of the forms of a call.
    """
    text = text.strip()
    if line := LINE.fullmatch(text):
        return line[1], _arguments_of_line(line[2])
    given = _json(text)
    if isinstance(given, dict) and set(given) <= {"type", "id", "function"} and isinstance(given.get("function"), dict):
        given = given["function"]
    if not isinstance(given, dict):
        raise ValueError(f"{FORM}; got {short(given)}")
    names, arguments = ([key for key in keys if key in given] for keys in (NAME_KEYS, ARGUMENT_KEYS))
    if len(names) != 1 or len(arguments) > 1 or len(given) > len(names) + len(arguments):
        raise ValueError(f"{FORM}; got {short(given)}")
    return given[names[0]], given[arguments[0]] if arguments else {}


def _arguments_of_line(text: str) -> dict[str, Any] | tuple[Any, ...]:
    """Return the arguments between the brackets of a line.

    Raises:
        ValueError: they cannot be read.
    """
    named: list[tuple[str, Any]] = []
    bare: list[Any] = []
    at = 0
    while text.strip() and at < len(text):
        found = ARGUMENT.match(text, at)
        if not found or (found[3] and not text[found.end() :].strip()) or (found[1] and bare):
            raise ValueError(f"{FORM}; the arguments {short(text)} cannot be read")
        value: Any = found[2][1:-1] if found[2][0] in "\"'" else found[2].strip()
        if found[1]:
            named.append((found[1], value))
        elif named:
            raise ValueError(f"{FORM}; the arguments {short(text)} cannot be read")
        else:
            bare.append(value)
        at = found.end()
    return tuple(bare) or _object(named)


def read_arguments(one: Documented, given: Any) -> dict[str, Any]:
    """Return arguments by name.

    Raises:
        ValueError: they are no JSON object, its text, or values in the order of the documentation.
    """
    if isinstance(given, str):
        given = _json(given) if given.strip() else {}
    if isinstance(given, tuple):
        if len(given) > len(one.arguments):
            raise ValueError(f"{one.name} takes {', '.join(one.arguments) or 'no arguments'}; got {len(given)} values")
        return dict(zip(one.arguments, given, strict=False))
    if not isinstance(given, dict):
        raise ValueError(f"arguments of {one.name} are a JSON object, got {short(given)}")
    return given


def nearest(given: Any, known: Any) -> str:
    """Return a sentence that names the known word nearest to a given one; empty if none is near."""
    near = difflib.get_close_matches(str(given)[:100], list(known), n=1, cutoff=0.4)
    return f" Did you mean {near[0]!r}?" if near else ""


def short(value: Any) -> str:
    """Return the JSON of a value, cut to 60 characters."""
    try:
        text = json.dumps(value)
    except RecursionError:
        text = "text nested too deeply"
    return text if len(text) <= 60 else text[:57] + "..."


def _json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is no JSON, or nested too deeply; the message says where the JSON goes wrong.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_whole_number)
    except RecursionError:
        raise ValueError(f"{FORM}; got text nested too deeply") from None
    except json.JSONDecodeError as error:
        if not text.startswith(("{", "[")):
            raise ValueError(f"{FORM}; got {short(text[:100]) if text else 'nothing'}") from None
        rest = text[error.pos : error.pos + 100].strip()
        where = f"cannot be read from {short(rest)} on" if rest else "breaks off before its end"
        raise ValueError(f"{FORM}; the JSON {where}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError(f"a JSON object has the key {next(k for k in keys if keys.count(k) > 1)!r} twice")
    return dict(pairs)


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has more than {MOST_DIGITS} digits")
    return int(digits)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")

"""Calls of tools as language models write them, read into a name and arguments.

Four forms are read: ``{"name": ..., "arguments": {...}}``, the same with ``api`` and ``args``, the
same inside ``{"type": "function", "function": ...}``, and a line like ``contacts.get(contact=3)``.
Arguments may be JSON in a text, as chat endpoints return them.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

FORM = 'expected one call, {"name": ..., "arguments": {...}} or name(argument=value)'
MAX_DIGITS = 4_000
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
    """Return name and arguments of a call, neither of them checked.

    Arguments of a line without names are a tuple.

    Raises:
        ValueError: the text has none of the forms of a call.
    """
    text = text.strip()
    if line := LINE.fullmatch(text):
        return line[1], _arguments_of_line(line[2])
    call = _json(text)
    if (
        isinstance(call, dict)
        and set(call) <= {"type", "id", "function"}
        and isinstance(call.get("function"), dict)
    ):
        call = call["function"]
    if not isinstance(call, dict):
        raise ValueError(f"{FORM}; got {shorten(call)}")
    name_keys = [key for key in NAME_KEYS if key in call]
    argument_keys = [key for key in ARGUMENT_KEYS if key in call]
    if (
        len(name_keys) != 1
        or len(argument_keys) > 1
        or len(call) > len(name_keys) + len(argument_keys)
    ):
        raise ValueError(f"{FORM}; got {shorten(call)}")
    return call[name_keys[0]], call[argument_keys[0]] if argument_keys else {}


def _arguments_of_line(text: str) -> dict[str, Any] | tuple[Any, ...]:
    """Return the arguments between the brackets of a line.

    Raises:
        ValueError: they cannot be read.
    """
    items: list[tuple[str, Any]] = []
    values: list[Any] = []
    position = 0
    while text.strip() and position < len(text):
        match = ARGUMENT.match(text, position)
        if not match or (match[3] and not text[match.end() :].strip()) or (match[1] and values):
            raise ValueError(f"{FORM}; the arguments {shorten(text)} cannot be read")
        value: Any = match[2][1:-1] if match[2][0] in "\"'" else match[2].strip()
        if match[1]:
            items.append((match[1], value))
        elif items:
            raise ValueError(f"{FORM}; the arguments {shorten(text)} cannot be read")
        else:
            values.append(value)
        position = match.end()
    return tuple(values) or _object(items)


def read_arguments(function: Documented, arguments: Any) -> dict[str, Any]:
    """Return arguments by name.

    Raises:
        ValueError: they are no JSON object, its text, or values in the order of the documentation.
    """
    if isinstance(arguments, str):
        arguments = _json(arguments) if arguments.strip() else {}
    if isinstance(arguments, tuple):
        if len(arguments) > len(function.arguments):
            takes = ", ".join(function.arguments) or "no arguments"
            raise ValueError(f"{function.name} takes {takes}; got {len(arguments)} values")
        return dict(zip(function.arguments, arguments, strict=False))
    if not isinstance(arguments, dict):
        raise ValueError(
            f"arguments of {function.name} are a JSON object, got {shorten(arguments)}"
        )
    return arguments


def suggest(word: Any, words: Iterable[str]) -> str:
    """Return a sentence that names the nearest of some words; empty if none is near."""
    matches = difflib.get_close_matches(str(word)[:100], list(words), n=1, cutoff=0.4)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def shorten(value: Any) -> str:
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
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_whole_number
        )
    except RecursionError:
        raise ValueError(f"{FORM}; got text nested too deeply") from None
    except json.JSONDecodeError as error:
        if not text.startswith(("{", "[")):
            raise ValueError(f"{FORM}; got {shorten(text[:100]) if text else 'nothing'}") from None
        unread = text[error.pos : error.pos + 100].strip()
        fault = (
            f"cannot be read from {shorten(unread)} on" if unread else "breaks off before its end"
        )
        raise ValueError(f"{FORM}; the JSON {fault}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError(
            f"a JSON object has the key {next(k for k in keys if keys.count(k) > 1)!r} twice"
        )
    return dict(pairs)


def _whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(digits)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")

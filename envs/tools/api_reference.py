"""Documentation of the APIs, and JSON calls, both made from their declarations."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from .api import KINDS, Api, Kind, Part


def value_of(kind: Kind, number: int) -> int | str | None:
    """Return the meaning of a number as JSON shows it; null for none."""
    if number <= 0:
        return None
    return kind.words[number - 1] if kind.words else number


def reference_text(apis: Sequence[Api]) -> str:
    """Return the documentation: kinds of arguments, then every API in one line."""
    lines = ["Kinds of arguments:"]
    for kind in KINDS:
        allowed = (
            " | ".join(json.dumps(word) for word in kind.words) if kind.words else f"whole number 1 to {kind.size}"
        )
        if len(kind.words) > 16:
            allowed = f"{json.dumps(kind.words[0])} to {json.dumps(kind.words[-1])}"
        lines.append(f"  {kind.name}: {kind.meaning}; {allowed}")
    lines.append("APIs (a call that fails changes nothing):")
    for one in apis:
        arguments = ", ".join(f"{name}: {kind.name}" for name, kind in one.arguments.items())
        errors = [error.name.lower() for error in one.errors]
        fails = f" Errors: {', '.join(errors)}." if errors else ""
        lines.append(f"  {one.name}({arguments}) -> {one.returns}. {one.summary}{fails}")
    return "\n".join(lines)


def json_schema(one: Api) -> dict[str, Any]:
    """Return one API as a JSON schema, as function-calling language models take it."""
    properties: dict[str, Any] = {}
    for name, kind in one.arguments.items():
        limits = {"enum": list(kind.words)} if kind.words else {"minimum": 1, "maximum": kind.size}
        typed = {"type": "string"} if kind.words else {"type": "integer"}
        properties[name] = typed | {"description": kind.meaning} | limits
    return {
        "name": one.name,
        "description": f"{one.summary} Returns: {one.returns}.",
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": list(one.arguments),
            "additionalProperties": False,
        },
    }


def parse_call(apis: Sequence[Api], text: str) -> np.ndarray:
    """Return the action, int ``(5,)``, of ``{"api": name, "args": {...}}``.

    Raises:
        ValueError: the text is anything else; the message says what is wrong, and the nearest valid name.
    """
    try:
        given = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("expected one JSON object with the keys api and args, got text nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"expected one JSON object with the keys api and args; {error.msg} at {error.pos}") from None
    if not isinstance(given, dict) or "api" not in given or set(given) - {"api", "args"}:
        raise ValueError(f"expected one JSON object with the keys api and args, got {_short(given)}")
    names = {one.name: number for number, one in enumerate(apis)}
    if not isinstance(given["api"], str) or given["api"] not in names:
        raise ValueError(f"unknown api {_short(given['api'])}.{_nearest(given['api'], names)}")
    one = apis[names[given["api"]]]
    arguments = given.get("args", {})
    if not isinstance(arguments, dict):
        raise ValueError(f"args of {one.name} is a JSON object, got {_short(arguments)}")
    for name in arguments:
        if name not in one.arguments:
            takes = ", ".join(one.arguments) or "no arguments"
            raise ValueError(
                f"{one.name} has no argument {_short(name)}.{_nearest(name, one.arguments)} It takes: {takes}"
            )
    missing = [name for name in one.arguments if name not in arguments]
    if missing:
        raise ValueError(f"{one.name} needs the argument {missing[0]!r} ({one.arguments[missing[0]].meaning})")
    action = np.zeros(len(Part), np.int64)
    action[Part.API] = names[one.name]
    for name, kind in one.arguments.items():
        action[kind.part] = _number_of(one.name, name, kind, arguments[name])
    return action


def call_text(apis: Sequence[Api], action: np.ndarray) -> str:
    """Return the JSON of an action: the inverse of :func:`parse_call`.

    Raises:
        ValueError: an argument is not given, or has no meaning.
    """
    one = apis[int(action[Part.API])]
    for name, kind in one.arguments.items():
        if not 1 <= int(action[kind.part]) <= kind.size:
            raise ValueError(f"{one.name}: the action gives no {name} (1 to {kind.size}): {action}")
    arguments = {name: value_of(kind, int(action[kind.part])) for name, kind in one.arguments.items()}
    return json.dumps({"api": one.name, "args": arguments})


def _number_of(api: str, name: str, kind: Kind, value: Any) -> int:
    if kind.words:
        if not isinstance(value, str) or value not in kind.words:
            shown = ", ".join(kind.words) if len(kind.words) <= 16 else f"{kind.words[0]} to {kind.words[-1]}"
            raise ValueError(f"{api}: {name} is one of {shown}; got {_short(value)}.{_nearest(value, kind.words)}")
        return kind.words.index(value) + 1
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= kind.size:
        raise ValueError(f"{api}: {name} is a whole number from 1 to {kind.size} ({kind.meaning}); got {_short(value)}")
    return value


def _nearest(given: Any, known: Any) -> str:
    near = difflib.get_close_matches(str(given)[:100], list(known), n=1, cutoff=0.4)
    return f" Did you mean {near[0]!r}?" if near else ""


def _short(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, (str, int, float, list, dict, type(None))) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError(f"a JSON object has the key {next(k for k in keys if keys.count(k) > 1)!r} twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")

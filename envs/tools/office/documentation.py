"""Documentation of the APIs, their JSON schemas, and the JSON of calls, all made from their declarations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from .column_api import KINDS, Api, Kind, Part


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
    """Return one API as a tool in OpenAI's form. Its name has ``_`` for the dot, which is not allowed there."""
    properties: dict[str, Any] = {}
    for name, kind in one.arguments.items():
        limits = {"enum": list(kind.words)} if kind.words else {"minimum": 1, "maximum": kind.size}
        typed = {"type": "string"} if kind.words else {"type": "integer"}
        properties[name] = typed | {"description": kind.meaning} | limits
    fails = f" Errors: {', '.join(error.name.lower() for error in one.errors)}." if one.errors else ""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(one.arguments),
        "additionalProperties": False,
    }
    function = {
        "name": tool_name(one),
        "description": f"{one.summary} Returns: {one.returns}.{fails}",
        "parameters": parameters,
    }
    return {"type": "function", "function": function}


def tool_name(one: Api) -> str:
    """Return the name of an API as a tool: ``contacts_get`` for ``contacts.get``."""
    return one.name.replace(".", "_")


def call_text(apis: Sequence[Api], action: np.ndarray) -> str:
    """Return the JSON of an action: the inverse of :func:`.calls.parse_call`.

    Raises:
        ValueError: an argument is not given, or has no meaning.
    """
    one = apis[int(action[Part.API])]
    for name, kind in one.arguments.items():
        if not 1 <= int(action[kind.part]) <= kind.size:
            raise ValueError(f"{one.name}: the action gives no {name} (1 to {kind.size}): {action}")
    arguments = {name: value_of(kind, int(action[kind.part])) for name, kind in one.arguments.items()}
    return json.dumps({"name": one.name, "arguments": arguments})

"""Documentation of the compiled office's APIs, their tools, and the JSON of calls.

All of it is made from the APIs' declarations.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from ..shared.tool import Tool
from .apps.column_api import Api
from .apps.kinds import KINDS, ActionPart, Kind


def value_of(kind: Kind, number: int) -> int | str | None:
    """Return the meaning of a number as JSON shows it; null for none."""
    if number <= 0:
        return None
    return kind.words[number - 1] if kind.words else number


def reference_text(apis: Sequence[Api]) -> str:
    """Return the documentation: kinds of arguments, then every API in one line."""
    kinds = [f"  {kind.name}: {kind.meaning}; {_values_text(kind)}" for kind in KINDS]
    calls = [_api_text(api) for api in apis]
    return "\n".join(
        ["Kinds of arguments:", *kinds, "APIs (a call that fails changes nothing):", *calls]
    )


def _values_text(kind: Kind) -> str:
    if not kind.words:
        return f"whole number 1 to {kind.size}"
    if len(kind.words) > 16:
        return f"{json.dumps(kind.words[0])} to {json.dumps(kind.words[-1])}"
    return " | ".join(json.dumps(word) for word in kind.words)


def _api_text(api: Api) -> str:
    arguments = ", ".join(f"{name}: {kind.name}" for name, kind in api.arguments.items())
    return f"  {api.name}({arguments}) -> {api.returns}. {api.summary}{_errors_text(api)}"


def _errors_text(api: Api) -> str:
    return (
        f" Errors: {', '.join(error.name.lower() for error in api.errors)}." if api.errors else ""
    )


def as_tool(api: Api) -> Tool:
    """Return one API as a tool.

    Its name has ``_`` for the dot, which OpenAI's form does not allow.
    """
    description = f"{api.summary} Returns: {api.returns}.{_errors_text(api)}"
    return Tool(
        tool_name(api), description, {name: kind.argument for name, kind in api.arguments.items()}
    )


def tool_name(api: Api) -> str:
    """Return the name of an API as a tool: ``contacts_get`` for ``contacts.get``."""
    return api.name.replace(".", "_")


def call_text(apis: Sequence[Api], action: np.ndarray) -> str:
    """Return the JSON of an action: the inverse of :func:`.calls.parse_call`.

    Raises:
        ValueError: an argument is not given, or has no meaning.
    """
    api = apis[int(action[ActionPart.API])]
    for name, kind in api.arguments.items():
        if not 1 <= int(action[kind.action_part]) <= kind.size:
            raise ValueError(f"{api.name}: the action gives no {name} (1 to {kind.size}): {action}")
    arguments = {
        name: value_of(kind, int(action[kind.action_part])) for name, kind in api.arguments.items()
    }
    return json.dumps({"name": api.name, "arguments": arguments})

"""Handle the tools of language models.

There are JSON schemas in OpenAI's form, arguments of calls, and Python functions of schemas.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, Literal, Optional

Schema = dict[str, Any]
"""A tool in OpenAI's form.

It is ``{"type": "function", "function": {"name", "description", "parameters"}}``.
"""

PYTHON_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def text_tool(name: str, description: str, argument: str, meaning: str) -> Schema:
    """Return the schema of a tool that takes one text."""
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "string", "description": meaning}},
        "required": [argument],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def read_arguments(arguments: dict[str, Any] | str | None) -> dict[str, Any]:
    """Read the arguments of a call.

    They are a dict, or its JSON as chat endpoints return it; nothing means no arguments.

    Raises:
        ValueError: they are anything else.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            raise ValueError("the arguments of a call are one JSON object") from None
    if not isinstance(arguments, (dict, type(None))):
        raise ValueError("the arguments of a call are one JSON object")
    return arguments or {}


def function_of(schema: Schema, call: Callable[[str, dict[str, Any]], str]) -> Callable[..., str]:
    """Make a typed Python function of a tool, for libraries that read signatures and docstrings.

    The docstring is in Google's style. Arguments that are None are left out of the call.

    Args:
        schema: the tool.
        call: function that takes the tool's name and the arguments.
    """
    tool = schema["function"]
    parameters = tool.get("parameters", {})
    required = set(parameters.get("required", ()))
    signature: list[Parameter] = []
    annotations: dict[str, Any] = {"return": str}
    lines = [tool["description"]]
    properties = sorted(
        parameters.get("properties", {}).items(), key=lambda item: item[0] not in required
    )
    for name, argument in properties:
        kind: Any = (
            Literal[tuple(argument["enum"])]
            if "enum" in argument
            else PYTHON_TYPES[argument["type"]]
        )
        annotations[name] = kind if name in required else Optional[kind]  # noqa: UP045  # no | with a Literal's value
        default = Parameter.empty if name in required else None
        signature.append(
            Parameter(
                name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotations[name]
            )
        )
        if len(signature) == 1:
            lines += ["", "Args:"]
        lines.append(f"    {name}: {argument.get('description', name)}")
    bound = Signature(signature, return_annotation=str)

    def function(*args: Any, **keywords: Any) -> str:
        arguments = bound.bind(*args, **keywords).arguments
        return call(
            tool["name"], {name: value for name, value in arguments.items() if value is not None}
        )

    function.__name__ = function.__qualname__ = tool["name"].replace(".", "_")
    function.__doc__ = "\n".join(
        [*lines, "", "Returns:", "    The result, or what was wrong with the call."]
    )
    function.__annotations__ = annotations
    function.__signature__ = bound  # type: ignore[attr-defined]
    return function

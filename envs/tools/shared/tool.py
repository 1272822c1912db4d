"""Tools with arguments of any kind.

They have JSON schemas, and calls of them are read from text and written as text.

Worlds declare their tools here. OfficeApps has a stricter form (``office/apps/column_api.py``), in
which every argument is a part of a multi-discrete action.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .calls import read_arguments, read_call, shorten, suggest


@dataclass(frozen=True)
class Argument:
    """An argument of a tool: one of some words, a whole number, or a text.

    Attributes:
        meaning: meaning in words.
        words: words that it may be; empty for a number or a text.
        low: smallest whole number.
        high: largest whole number; None for a text.
    """

    meaning: str
    words: tuple[str, ...] = ()
    low: int = 0
    high: int | None = None

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema."""
        if self.words:
            return {"type": "string", "description": self.meaning, "enum": list(self.words)}
        if self.high is None:
            return {"type": "string", "description": self.meaning}
        return {
            "type": "integer",
            "description": self.meaning,
            "minimum": self.low,
            "maximum": self.high,
        }

    def read(self, name: str, value: Any) -> int | str:
        """Return the number of a word from 0, the number, or the text.

        Numbers may be texts of digits, and words may differ in case.

        Raises:
            ValueError: the value is not allowed; the message says what is, and the nearest word.
        """
        if self.words:
            word = value.strip().lower() if isinstance(value, str) and len(value) <= 100 else None
            for number, candidate in enumerate(self.words):
                if candidate.lower() == word:
                    return number
            allowed = (
                ", ".join(self.words)
                if len(self.words) <= 16
                else f"{self.words[0]} to {self.words[-1]}"
            )
            raise ValueError(
                f"{name} is one of {allowed}; got {shorten(value)}.{suggest(value, self.words)}"
            )
        if self.high is None:
            if not isinstance(value, str):
                raise ValueError(f"{name} is a text ({self.meaning}); got {shorten(value)}")
            return value
        if (
            isinstance(value, str)
            and value.strip().isascii()
            and value.strip().lstrip("-").isdigit()
        ):
            value = int(value) if len(value) < 20 else None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
        ):
            return value
        raise ValueError(
            f"{name} is a whole number from {self.low} to {self.high} ({self.meaning}); got "
            f"{shorten(value)}"
        )


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what it does, and its arguments, all of which are required."""

    name: str
    description: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        """Return the tool in OpenAI's form."""
        parameters = {
            "type": "object",
            "properties": {name: argument.schema() for name, argument in self.arguments.items()},
            "required": list(self.arguments),
            "additionalProperties": False,
        }
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": parameters,
            },
        }

    def call(self, **values: int | str) -> str:
        """Return the JSON of a call; a word is given by its number."""
        arguments = {
            name: argument.words[int(values[name])] if argument.words else values[name]
            for name, argument in self.arguments.items()
        }
        return json.dumps({"name": self.name, "arguments": arguments})

    def line(self) -> str:
        """Return name, arguments and description in one line."""
        return f"{self.name}({', '.join(self.arguments)}): {self.description}"


def read_tool_call(tools: Sequence[Tool], text: str) -> tuple[Tool, dict[str, Any]]:
    """Return the tool of a call, and its arguments as :meth:`Argument.read` gives them.

    Raises:
        ValueError: the text is not one call of one of the tools; the message says what is wrong.
    """
    name, written_arguments = read_call(text)
    tool = next((candidate for candidate in tools if candidate.name == name), None)
    if tool is None:
        names = [candidate.name for candidate in tools]
        raise ValueError(
            f"unknown tool {shorten(name)}.{suggest(name, names)} The tools are: {', '.join(names)}"
        )
    arguments = read_arguments(tool, written_arguments)
    for argument in arguments:
        if argument not in tool.arguments:
            takes = ", ".join(tool.arguments) or "no arguments"
            raise ValueError(f"{tool.name} has no argument {shorten(argument)}. It takes: {takes}")
    for argument, kind in tool.arguments.items():
        if argument not in arguments:
            raise ValueError(f"{tool.name} needs the argument {argument!r} ({kind.meaning})")
    return tool, {
        argument: kind.read(argument, arguments[argument])
        for argument, kind in tool.arguments.items()
    }

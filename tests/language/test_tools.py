"""Tools of language models: schemas, arguments of calls, and functions made from schemas."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any, Literal, Optional, get_type_hints

import pytest

from rlbench_suite.envs.tools.office.apps.apis import COLUMN_APIS
from rlbench_suite.language.session import begin
from rlbench_suite.language.tools import function_of, read_arguments, text_tool

MOVE = {
    "type": "function",
    "function": {
        "name": "calendar.move",
        "description": "Give an event another time.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "enum": ["lab", "park"], "description": "place"},
                "event": {"type": "integer", "description": "id of an event", "minimum": 1},
            },
            "required": ["event"],
        },
    },
}


def test_a_function_has_the_signature_and_docstring_of_its_schema() -> None:
    calls: list[tuple[str, dict[str, Any]]] = []
    move = function_of(MOVE, lambda name, arguments: calls.append((name, arguments)) or "ok")
    assert move(3) == move(event=3, place=None) == move(3, place="lab") == "ok"
    assert calls == [("calendar.move", {"event": 3})] * 2 + [
        ("calendar.move", {"event": 3, "place": "lab"})
    ]
    assert move.__name__ == "calendar_move"
    assert list(inspect.signature(move).parameters) == ["event", "place"]
    assert get_type_hints(move) == {
        "event": int,
        "place": Optional[Literal["lab", "park"]],  # noqa: UP045
        "return": str,
    }
    assert inspect.getdoc(move) == (
        "Give an event another time.\n\nArgs:\n    event: id of an event\n    place: place\n\n"
        "Returns:\n    The result, or what was wrong with the call."
    )
    with pytest.raises(TypeError, match="event"):
        move()


def test_functions_of_all_tools_play_a_session() -> None:
    session = begin("OfficeApps-v0", seed=0)
    functions = {
        f.__name__: f
        for f in (function_of(s, lambda n, a: session.call(n, a).text) for s in session.tools)
    }
    assert len(functions) == len(COLUMN_APIS)
    assert '"api": "contacts.list"' in functions["contacts_list"]()
    assert "Not understood" in functions["contacts_get"](contact=77)
    functions["assistant_finish"]()
    assert session.done


def test_arguments_are_a_dict_or_its_json() -> None:
    assert read_arguments({"a": 1}) == read_arguments('{"a": 1}') == {"a": 1}
    assert (
        read_arguments("")
        == read_arguments(None)
        == read_arguments(" ")
        == read_arguments("{}")
        == {}
    )
    for wrong in ("[1]", "1", "x", "[" * 100_000, [1]):
        with pytest.raises(ValueError, match="one JSON object"):
            read_arguments(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["OfficeApps-v0", "Wordle-v0", "Sudoku4-v0"])
def test_schemas_have_the_form_of_openai(name: str) -> None:
    session = begin(name)
    assert session.uses_tools == (name == "OfficeApps-v0")
    for schema in session.tools:
        assert schema.keys() == {"type", "function"}
        function = schema["function"]
        assert function.keys() == {"name", "description", "parameters"}
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"])
        parameters = function["parameters"]
        assert parameters["type"] == "object"
        assert set(parameters["required"]) == set(parameters["properties"])
        for argument in parameters["properties"].values():
            assert argument["type"] in ("string", "integer")
            assert argument["description"]
            assert argument["type"] == "string" or argument["minimum"] <= argument["maximum"]
    json.dumps(session.tools)
    assert text_tool("a", "b", "c", "d")["function"]["parameters"]["required"] == ["c"]

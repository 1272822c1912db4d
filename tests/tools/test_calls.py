"""Calls as language models write them.

Every form and spelling gives the same action, and none another meaning.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from hostile_replies import MAX_READING_SECONDS

from rlbench_suite.core.registry import cards
from rlbench_suite.envs.tools.office.apps.apis import COLUMN_APIS
from rlbench_suite.envs.tools.office.apps.kinds import (
    AMOUNT,
    CITY,
    CONTACT,
    DAY,
    KINDS,
    PHONE,
    REASON,
    TIME,
    TITLE,
    Kind,
)
from rlbench_suite.envs.tools.office.calls import parse_call, read_value, suggestion
from rlbench_suite.envs.tools.office.documentation import call_text, tool_name, value_of
from rlbench_suite.envs.tools.shared.calls import FORM


def random_call(rng: np.random.Generator, number: int) -> np.ndarray:
    action = np.zeros(5, int)
    action[0] = number
    for kind in COLUMN_APIS[number].arguments.values():
        action[kind.action_part] = rng.integers(1, kind.size + 1)
    return action


def test_every_form_of_a_call_gives_the_same_action() -> None:
    rng = np.random.default_rng(0)
    for number, api in enumerate(COLUMN_APIS):
        action = random_call(rng, number)
        arguments = {
            name: value_of(kind, int(action[kind.action_part]))
            for name, kind in api.arguments.items()
        }
        with_names = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
        bare = ", ".join(f"{name} = {value}" for name, value in arguments.items())
        in_order = ", ".join(repr(value) for value in arguments.values())
        forms = [
            *(
                json.dumps({"name": name, "arguments": arguments})
                for name in (api.name, tool_name(api))
            ),
            json.dumps({"name": api.name, "arguments": json.dumps(arguments)}),
            json.dumps({"arguments": arguments, "name": api.name}, indent=2),
            json.dumps({"api": api.name, "args": arguments}),
            json.dumps({"name": api.name, "parameters": arguments}),
            json.dumps(
                {
                    "type": "function",
                    "function": {"name": tool_name(api), "arguments": json.dumps(arguments)},
                }
            ),
            *(
                f"{name}({text})"
                for name in (api.name, tool_name(api))
                for text in (with_names, bare, in_order)
            ),
            f" {api.name} ( {with_names} )\n",
        ]
        for form in forms:
            np.testing.assert_array_equal(parse_call(COLUMN_APIS, form), action, form)
        np.testing.assert_array_equal(
            parse_call(COLUMN_APIS, call_text(COLUMN_APIS, action)), action
        )


def test_names_of_tools_are_told_apart() -> None:
    names = [api.name for api in COLUMN_APIS] + [tool_name(api) for api in COLUMN_APIS]
    assert len(set(names)) == 2 * len(COLUMN_APIS)
    assert len({name.replace(".", "_").lower() for name in names}) == len(COLUMN_APIS)


@pytest.mark.parametrize(
    ("kind", "value", "meant"),
    [
        *((CONTACT, value, 3) for value in (3, "3", " 3 ", "03", 3.0)),
        *(
            (CONTACT, value, None)
            for value in (0, 13, "13", "x", "", "3.5", 3.5, True, None, [3], "+3", "-3", "٣", 1e30)
        ),
        *((CONTACT, value, None) for value in (float("inf"), float("nan"), "9" * 1000)),
        *((AMOUNT, value, 31) for value in (31, "31", 31.0)),
        *(
            (DAY, value, 3)
            for value in ("Wed", "wed", "WED", "Wednesday", " wednesday ", "Wed.", "Weds"[:3])
        ),
        *((DAY, value, 2) for value in ("Tue", "Tues", "tuesday", "Tuesd")),
        *(
            (DAY, value, None)
            for value in ("We", "W", "Fri", "Friday", "Wednesdays", "Wed Thu", "Sun", "day", 3, "3")
        ),
        *(
            (TIME, value, 13)
            for value in (
                "Wed 09:00",
                "wed 9:00",
                "Wednesday 9",
                "Wed, 09:00",
                "Wed 09",
                "wed  9:00",
            )
        ),
        *(
            (TIME, value, None)
            for value in (
                "Wed",
                "09:00",
                "Wed 9:30",
                "Wed 8:00",
                "Wed 15:00",
                "Wed 9:0",
                "Wed 09:00 x",
            )
        ),
        *((PHONE, value, 7) for value in ("555-0107", "5550107", "555 0107")),
        *((PHONE, value, None) for value in ("555-0132", "0107", "7", 7, 5550107)),
        *((REASON, value, 2) for value in ("over_limit", "Over limit", "over-limit", "OVER_LIMIT")),
        *((REASON, value, None) for value in ("overlimit", "limit", "none", "")),
        *((CITY, value, 6) for value in ("Vienna", "vienna", "VIENNA ")),
        *((CITY, value, None) for value in ("Wien", "Vienn", "Vienna Austria", "x" * 10**6)),
        *((TITLE, value, 7) for value in ("review", "Review")),
    ],
)
def test_values_may_be_spelt_in_other_ways(kind: Kind, value: Any, meant: int | None) -> None:
    assert read_value(kind, value) == meant


def test_no_spelling_of_one_value_means_another() -> None:
    """Neither the values of a kind nor their other spellings overlap, so each has one meaning."""
    for kind in KINDS:
        for number in range(1, kind.size + 1):
            value = value_of(kind, number)
            text = str(value)
            for spelling in (
                value,
                text,
                text.lower(),
                text.upper(),
                text.title(),
                f" {text}\t",
                text.replace("_", " "),
            ):
                assert read_value(kind, spelling) == number, (kind.name, spelling)


INVENTED = {
    "payments.deny": "payments.decline_request",
    "payments.reject_request": "payments.decline_request",
    "payments.cancel_request": "payments.withdraw_request",
    "payments.approve": "payments.pay_request",
    "payments.transfer": "payments.send",
    "payments.send_money": "payments.send",
    "payments.get_balance": "payments.balance",
    "payments.history": "payments.list_transfers",
    "payments.deposit": "payments.save",
    "payment.deny": "payments.decline_request",
    "calendar.delete_event": "calendar.cancel",
    "calendar.reschedule": "calendar.move",
    "calendar.add_event": "calendar.create",
    "calendar.book": "calendar.create",
    "calendar.add_guest": "calendar.invite",
    "calendar.remove_guest": "calendar.uninvite",
    "calendar.change_location": "calendar.set_place",
    "calendar.availability": "calendar.free_times",
    "calendar_delete_event": "calendar.cancel",
    "contacts.find": "contacts.search_by_name",
    "contacts.lookup": "contacts.search_by_name",
    "contacts.remove": "contacts.delete",
    "contacts.create": "contacts.add",
    "contacts.update_phone": "contacts.set_phone",
    "contact.list": "contacts.list",
    "searchContacts": "contacts.search_by_name",
    "assistant.done": "assistant.finish",
    "assistant.reply": "assistant.answer",
    "finish": "assistant.finish",
}


def test_invented_names_get_the_nearest_by_meaning() -> None:
    suggestions = {name: suggestion(COLUMN_APIS, name) for name in INVENTED}
    assert suggestions == {name: f" Did you mean {meant!r}?" for name, meant in INVENTED.items()}
    for nonsense in ("xyz", "foo.bar", "", "42", "payments.", "." * 1000):
        assert not suggestion(COLUMN_APIS, nonsense)
    began = time.process_time()
    suggestion(COLUMN_APIS, "payments." + "list_requests_" * 100_000)
    assert time.process_time() - began < MAX_READING_SECONDS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contacts.get(contact=3,)", "cannot be read"),
        ("contacts.get(contact=3, contact=4)", "twice"),
        ("contacts.get(3, 4)", "takes contact; got 2 values"),
        ("contacts.search_by_name(Ana, name=Ana)", "cannot be read"),
        ("contacts.search_by_name(name=Ana, Ben)", "cannot be read"),
        ("contacts.get(contact=contacts.get(contact=3))", "cannot be read"),
        ("contacts.get(contact=3); assistant.finish()", "cannot be read"),
        ("contacts.list() contacts.list()", "cannot be read"),
        ("print(contacts.list())", "cannot be read"),
        ("print(1)", "unknown API"),
        ('{"name": "contacts.list", "api": "contacts.get"}', "expected one call"),
        ('{"name": "contacts.list", "args": {}, "arguments": {}}', "expected one call"),
        ('{"name": "contacts.get", "arguments": "contact=3"}', "expected one call"),
        ('[{"name": "contacts.list"}]', "expected one call"),
        (
            '{"name": "payments.deny", "arguments": {"request": 1}}',
            "Did you mean 'payments.decline_request'",
        ),
    ],
)
def test_what_is_not_one_call_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_call(COLUMN_APIS, text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("I would look for Ana first.", '; got "I would look for Ana first."'),
        ("", "; got nothing"),
        ('{"name": "contacts.list", }', '; the JSON cannot be read from "}" on'),
        (
            "{'name': 'contacts.list'}",
            """; the JSON cannot be read from "'name': 'contacts.list'}" on""",
        ),
        ('{"name": "contacts.list"', "; the JSON breaks off before its end"),
        ('{"name": "contacts.list"} {}', '; the JSON cannot be read from "{}" on'),
    ],
)
def test_every_world_says_in_a_sentence_why_a_reply_is_no_call(text: str, what: str) -> None:
    """The form that is expected, and where the reply goes wrong: no words of the parser's own."""
    worlds = [each for each in cards().values() if each.family == "tools"]
    assert len(worlds) == 7
    for each in worlds:
        with pytest.raises(ValueError, match="expected one call") as error:
            each.build().parse(text, None, None)  # type: ignore[arg-type]
        assert str(error.value) == FORM + what, each.id


@pytest.mark.parametrize(
    "text", ["x" * 10**6, '{"x": "' + "y" * 10**6, '{"x": ' + "9" * 10**6 + "}", "[" * 10**6]
)
def test_what_is_wrong_with_a_long_reply_is_said_shortly_and_soon(text: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match=r"expected one call|4000 digits") as error:
        parse_call(COLUMN_APIS, text)
    assert len(str(error.value)) < 200
    assert time.process_time() - began < MAX_READING_SECONDS

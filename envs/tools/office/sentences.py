"""Texts of the compiled office: instruction, rules, results as JSON, notebook."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .apps.column_api import Api, Error, State
from .apps.kinds import (
    AMOUNT,
    CITY,
    CONTACT,
    DAY,
    EVENT,
    NAME,
    PHONE,
    PLACE,
    RELATION,
    REQUEST,
    TIME,
    TITLE,
    Kind,
)
from .documentation import value_of
from .templates.column_template import Ask, Sight, Template
from .words import DIRECTIONS, STATUSES

GAPS: dict[str, tuple[Kind, str]] = {
    "contact": (CONTACT, "contact"), "event": (EVENT, "event"), "request": (REQUEST, "request"),
    "name": (NAME, "name"), "city": (CITY, "city"), "relation": (RELATION, "relation"),
    "day": (DAY, "day"), "title": (TITLE, "title"), "place": (PLACE, "place"),
    "amount": (AMOUNT, "number"), "time": (TIME, "number"), "phone": (PHONE, "number"),
}  # fmt: skip
"""Gaps in a template's sentences: how each is shown, and the slot of the instruction that fills it.
"""


def instruction(template: Template, ask: Ask, wording: int) -> str:
    """Return the user's sentence."""
    values = {
        gap: _gap_text(gap, kind, int(getattr(ask, slot))) for gap, (kind, slot) in GAPS.items()
    }
    return f"User: {template.wordings[wording].format(**values)}"


def _gap_text(gap: str, kind: Kind, value: int) -> Any:
    if gap == "amount":
        return f"{value} euros"
    return value_of(kind, value) if 0 < value <= kind.size else ""


def rules(limit: str) -> str:
    """Return the rules that hold for every instruction.

    ``limit`` says how much may be sent in one payment.
    """
    return (
        "Rules: do what the user asks and change nothing else; then call assistant.finish, or "
        "assistant.answer if the "
        "user asks a question. If it cannot be done, change nothing and call assistant.refuse with "
        "the reason:\n"
        f"  over_limit: more than {limit} in one payment.\n"
        "  no_such_contact, ambiguous_contact: no contact, or more than one, fits what the user "
        "says of the person.\n"
        "  no_such_event: no event has that title.\n"
        "  no_free_time: the time is taken, or the day is full.\n"
        "  insufficient_funds: the account lacks the money for all of it; savings count only if "
        "the user says so."
    )


def last_result(apis: Sequence[Api], state: State, see: Sight) -> str:
    """Return the last call's result, as JSON."""
    api = apis[int(state.api)]
    error = Error(int(state.error))
    if error:
        return "Last call: " + json.dumps({"api": api.name, "error": error.name.lower()})
    return "Last call: " + json.dumps({"api": api.name, "result": _result(api, see)})


def _result(api: Api, see: Sight) -> Any:
    result = see.result
    items = (
        [contact(see, row) for row in _members(result.contacts)]
        + [event(see, row) for row in _members(result.events)]
        + [request(see, row) for row in _members(result.requests)]
        + [transfer(see, row) for row in _members(result.transfers)]
        + [value_of(TIME, time) for time in _members(result.times)]
    )
    if api.returns.startswith("list"):
        return items
    if api.name == "payments.balance":
        return accounts(see)
    return items[0] if items else "ok"


def notebook(see: Sight) -> str:
    """Return everything shown so far, as it is now."""
    world = see.world
    notes = see.notebook
    lines = ["Notebook (all that was shown so far, as it is now):"]
    lines += [
        json.dumps(contact(see, row)) for row in _members(notes.entries) if world.name[row - 1]
    ]
    without_entry = _members(notes.contacts & ~notes.entries)
    if without_entry:
        lines.append(json.dumps({"contacts known by id only": without_entry}))
    lines += [json.dumps(event(see, row)) for row in _members(notes.events) if world.title[row - 1]]
    lines += [json.dumps(request(see, row)) for row in _members(notes.requests)]
    lines += [json.dumps(transfer(see, row)) for row in _members(notes.transfers)]
    if notes.accounts:
        lines.append(json.dumps(accounts(see)))
    if notes.times:
        free = [value_of(TIME, time) for time in _members(notes.times & ~see.busy_times)]
        busy = [value_of(TIME, time) for time in _members(see.busy_times)]
        lines.append(json.dumps({"free times": free, "taken": busy}))
    questions = {
        "names": [value_of(NAME, i) for i in _members(notes.asked_names)],
        "cities": [value_of(CITY, i) for i in _members(notes.asked_cities)],
        "relations": [value_of(RELATION, i) for i in _members(notes.asked_relations)],
        "titles": [value_of(TITLE, i) for i in _members(notes.asked_titles)],
        "requests": ["all"] if notes.asked_requests else [],
        "transfers with": _members(notes.asked_transfers),
    }
    if any(questions.values()):
        lines.append(
            json.dumps(
                {"asked for": {what: values for what, values in questions.items() if values}}
            )
        )
    return "\n".join(lines if len(lines) > 1 else [*lines, "nothing yet"])


def contact(see: Sight, row: int) -> dict[str, Any]:
    """Return the known part of a contact."""
    world = see.world
    notebook = see.notebook
    index = row - 1
    entry: dict[str, Any] = {"contact": row}
    if notebook.entries >> index & 1:
        entry |= {
            "name": value_of(NAME, world.name[index]),
            "city": value_of(CITY, world.city[index]),
        }
    if notebook.relations >> index & 1:
        entry["relation"] = value_of(RELATION, world.relation[index])
    if notebook.phones >> index & 1:
        entry["phone"] = value_of(PHONE, world.phone[index])
    return entry


def event(see: Sight, row: int) -> dict[str, Any]:
    """Return the known part of an event."""
    world = see.world
    index = row - 1
    entry: dict[str, Any] = {
        "event": row,
        "title": value_of(TITLE, world.title[index]),
        "time": value_of(TIME, world.time[index]),
        "place": value_of(PLACE, world.place[index]),
    }
    if see.notebook.guests >> index & 1:
        entry["guests"] = _members(world.guests[index])
    return entry


def request(see: Sight, row: int) -> dict[str, Any]:
    """Return a request for money."""
    world = see.world
    index = row - 1
    return {
        "request": row,
        "contact": int(world.request_contact[index]),
        "amount": int(world.request_amount[index]),
        "direction": DIRECTIONS[int(world.request_direction[index]) - 1],
        "status": STATUSES[int(world.request_status[index]) - 1],
    }


def transfer(see: Sight, row: int) -> dict[str, Any]:
    """Return money that was sent or received."""
    world = see.world
    index = row - 1
    direction = DIRECTIONS[int(world.transfer_direction[index]) - 1]
    return {
        "contact": int(world.transfer_contact[index]),
        "amount": int(world.transfer_amount[index]),
        "direction": direction,
    }


def accounts(see: Sight) -> dict[str, int]:
    """Return both accounts."""
    return {"balance": int(see.world.balance), "savings": int(see.world.savings)}


def _members(mask: Any) -> list[int]:
    bits = int(mask)
    return [index + 1 for index in range(bits.bit_length()) if bits >> index & 1]

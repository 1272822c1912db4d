"""Text of an instance: instruction, rules, results as JSON, notebook."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .column_api import (
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
    Api,
    Error,
    Kind,
    State,
)
from .documentation import value_of
from .templates.column_template import Ask, Sight, Template

GAPS: dict[str, tuple[Kind, str]] = {
    "contact": (CONTACT, "contact"), "event": (EVENT, "event"), "request": (REQUEST, "request"), "name": (NAME, "name"),
    "city": (CITY, "city"), "relation": (RELATION, "relation"), "day": (DAY, "day"), "title": (TITLE, "title"),
    "place": (PLACE, "place"), "amount": (AMOUNT, "number"), "time": (TIME, "number"), "phone": (PHONE, "number"),
}  # fmt: skip
"""Gaps in a template's sentences: how each is shown, and the slot of the instruction that fills it."""
DIRECTIONS = ("incoming", "outgoing")
STATUSES = ("open", "paid", "declined", "withdrawn")


def instruction(template: Template, ask: Ask, wording: int) -> str:
    """Return the user's sentence."""
    filled = {}
    for gap, (kind, slot) in GAPS.items():
        value = int(getattr(ask, slot))
        fits = 0 < value <= kind.size
        filled[gap] = f"{value} euros" if gap == "amount" else value_of(kind, value) if fits else ""
    return f"User: {template.wordings[wording].format(**filled)}"


def rules(limit: str) -> str:
    """Return the rules that hold for every instruction; ``limit`` says how much may be sent in one payment."""
    return (
        "Rules: do what the user asks and change nothing else; then call assistant.finish, or assistant.answer if the "
        "user asks a question. If it cannot be done, change nothing and call assistant.refuse with the reason:\n"
        f"  over_limit: more than {limit} in one payment.\n"
        "  no_such_contact, ambiguous_contact: no contact, or more than one, fits what the user says of the person.\n"
        "  no_such_event: no event has that title.\n"
        "  no_free_time: the time is taken, or the day is full.\n"
        "  insufficient_funds: the account lacks the money for all of it; savings count only if the user says so."
    )


def last_result(apis: Sequence[Api], state: State, see: Sight) -> str:
    """Return the last call's result, as JSON."""
    one, error = apis[int(state.api)], Error(int(state.error))
    if error:
        return "Last call: " + json.dumps({"api": one.name, "error": error.name.lower()})
    return "Last call: " + json.dumps({"api": one.name, "result": _result(one, see)})


def _result(one: Api, see: Sight) -> Any:
    shown = see.shown
    lists = (
        [contact(see, row) for row in _members(shown.contacts)]
        + [event(see, row) for row in _members(shown.events)]
        + [request(see, row) for row in _members(shown.requests)]
        + [transfer(see, row) for row in _members(shown.transfers)]
        + [value_of(TIME, time) for time in _members(shown.times)]
    )
    if one.returns.startswith("list"):
        return lists
    if one.name == "payments.balance":
        return accounts(see)
    return lists[0] if lists else "ok"


def notebook(see: Sight) -> str:
    """Return everything shown so far, as it is now."""
    world, known = see.world, see.known
    lines = ["Notebook (all that was shown so far, as it is now):"]
    lines += [json.dumps(contact(see, row)) for row in _members(known.entries) if world.name[row - 1]]
    bare = [row for row in _members(known.contacts & ~known.entries)]
    if bare:
        lines.append(json.dumps({"contacts known by id only": bare}))
    lines += [json.dumps(event(see, row)) for row in _members(known.events) if world.title[row - 1]]
    lines += [json.dumps(request(see, row)) for row in _members(known.requests)]
    lines += [json.dumps(transfer(see, row)) for row in _members(known.transfers)]
    if known.accounts:
        lines.append(json.dumps(accounts(see)))
    if known.times:
        free = [value_of(TIME, time) for time in _members(known.times & ~see.taken)]
        lines.append(json.dumps({"free times": free, "taken": [value_of(TIME, t) for t in _members(see.taken)]}))
    asked = {
        "names": [value_of(NAME, i) for i in _members(known.asked_names)],
        "cities": [value_of(CITY, i) for i in _members(known.asked_cities)],
        "relations": [value_of(RELATION, i) for i in _members(known.asked_relations)],
        "titles": [value_of(TITLE, i) for i in _members(known.asked_titles)],
        "requests": ["all"] if known.asked_requests else [],
        "transfers with": _members(known.asked_transfers),
    }
    if any(asked.values()):
        lines.append(json.dumps({"asked for": {what: values for what, values in asked.items() if values}}))
    return "\n".join(lines if len(lines) > 1 else [*lines, "nothing yet"])


def contact(see: Sight, row: int) -> dict[str, Any]:
    """Return the known part of a contact."""
    world, known, at = see.world, see.known, row - 1
    shown: dict[str, Any] = {"contact": row}
    if known.entries >> at & 1:
        shown |= {"name": value_of(NAME, world.name[at]), "city": value_of(CITY, world.city[at])}
    if known.relations >> at & 1:
        shown["relation"] = value_of(RELATION, world.relation[at])
    if known.phones >> at & 1:
        shown["phone"] = value_of(PHONE, world.phone[at])
    return shown


def event(see: Sight, row: int) -> dict[str, Any]:
    """Return the known part of an event."""
    world, at = see.world, row - 1
    shown: dict[str, Any] = {
        "event": row,
        "title": value_of(TITLE, world.title[at]),
        "time": value_of(TIME, world.time[at]),
        "place": value_of(PLACE, world.place[at]),
    }
    if see.known.guests >> at & 1:
        shown["guests"] = _members(world.guests[at])
    return shown


def request(see: Sight, row: int) -> dict[str, Any]:
    """Return a request for money."""
    world, at = see.world, row - 1
    return {
        "request": row,
        "contact": int(world.request_contact[at]),
        "amount": int(world.request_amount[at]),
        "direction": DIRECTIONS[int(world.request_direction[at]) - 1],
        "status": STATUSES[int(world.request_status[at]) - 1],
    }


def transfer(see: Sight, row: int) -> dict[str, Any]:
    """Return money that was sent or received."""
    world, at = see.world, row - 1
    direction = DIRECTIONS[int(world.transfer_direction[at]) - 1]
    return {
        "contact": int(world.transfer_contact[at]),
        "amount": int(world.transfer_amount[at]),
        "direction": direction,
    }


def accounts(see: Sight) -> dict[str, int]:
    """Return both accounts."""
    return {"balance": int(see.world.balance), "savings": int(see.world.savings)}


def _members(mask: Any) -> list[int]:
    left = int(mask)
    return [row + 1 for row in range(left.bit_length()) if left >> row & 1]

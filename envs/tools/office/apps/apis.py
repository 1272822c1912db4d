"""All APIs of both offices: their order is the first part of an action."""

from __future__ import annotations

from . import (
    assistant,
    calendar,
    contacts,
    mail,
    messages,
    music,
    notes,
    payments,
    row_api,
    shop,
    tasks,
)
from .column_api import Api
from .kinds import ActionPart

COLUMN_APIS: tuple[Api, ...] = (
    *assistant.COLUMN_APIS,
    *contacts.COLUMN_APIS,
    *calendar.COLUMN_APIS,
    *payments.COLUMN_APIS,
)
COLUMN_API_NUMBERS = {api.name: number for number, api in enumerate(COLUMN_APIS)}


def part_sizes() -> dict[ActionPart, int]:
    """Return the number of choices of each part of an action of the compiled office.

    It is the size of the part's largest kind of argument, and one more for 0, which means none.
    """
    sizes = {ActionPart.API: len(COLUMN_APIS)}
    for api in COLUMN_APIS:
        for kind in api.arguments.values():
            sizes[kind.action_part] = max(sizes.get(kind.action_part, 0), kind.size + 1)
    return dict(sorted(sizes.items()))


ROW_APPS: dict[str, tuple[row_api.Api, ...]] = {
    "contacts": contacts.ROW_APIS,
    "calendar": calendar.ROW_APIS,
    "payments": payments.ROW_APIS,
    "mail": mail.ROW_APIS,
    "messages": messages.ROW_APIS,
    "tasks": tasks.ROW_APIS,
    "notes": notes.ROW_APIS,
    "music": music.ROW_APIS,
    "shop": shop.ROW_APIS,
}
ROW_APIS = (*assistant.ROW_APIS, *(api for app in ROW_APPS.values() for api in app))
ROW_API_NUMBERS = {api.name: number for number, api in enumerate(ROW_APIS)}
MAX_ARGUMENTS = max(len(api.tool.arguments) for api in ROW_APIS)

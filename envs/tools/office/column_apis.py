"""All APIs of the office: the order is the first part of an action."""

from __future__ import annotations

from .column_api import Api, Part
from .column_apps import assistant, calendar, contacts, payments

APIS: tuple[Api, ...] = (*assistant.APIS, *contacts.APIS, *calendar.APIS, *payments.APIS)
NUMBER_OF = {one.name: number for number, one in enumerate(APIS)}


def part_sizes() -> dict[Part, int]:
    """Count the choices of each part of an action: the largest of its kinds, and 0 for none."""
    sizes = {Part.API: len(APIS)}
    for one in APIS:
        for kind in one.arguments.values():
            sizes[kind.part] = max(sizes.get(kind.part, 0), kind.size + 1)
    return dict(sorted(sizes.items()))

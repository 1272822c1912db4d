"""The app ``contacts``: a phone book."""

from __future__ import annotations

from .. import words as v
from ..row_api import added, getter, lister, marker, remover, setter, words, writes
from ..rows import World

FIRST, LAST = words("first name", v.FIRST), words("last name", v.LAST)
CITY, RELATION, PHONE = words("city", v.CITIES), words("relation", v.RELATIONS), words("phone number", v.PHONES)
ENTRY = ("first", "last", "city")


@writes(first=FIRST, last=LAST, city=CITY, relation=RELATION, phone=PHONE)
def contacts_add(world: World, first: str, last: str, city: str, relation: str, phone: str) -> World:
    """Add a contact."""
    flags = {"favourite": False, "muted": False, "blocked": False}
    return added(world, "contacts", first=first, last=last, city=city, relation=relation, phone=phone, **flags)


APIS = (
    lister("contacts_list", "List all contacts.", "contacts", ENTRY),
    lister("contacts_find", "Find contacts by first name.", "contacts", ENTRY, first=FIRST),
    lister("contacts_of_city", "List the contacts in a city.", "contacts", ENTRY, city=CITY),
    lister("contacts_of_relation", "List the contacts of a relation.", "contacts", ENTRY, relation=RELATION),
    lister("contacts_of_phone", "Find the contact with a phone number.", "contacts", ENTRY, phone=PHONE),
    lister("contacts_favourites", "List favourites.", "contacts", ENTRY, lambda row: row["favourite"]),
    getter("contacts_get", "Show all of a contact.", "contacts", (*ENTRY, "relation", "phone", "favourite")),
    contacts_add,
    remover("contacts_delete", "Delete a contact.", "contacts"),
    setter("contacts_set_city", "Change a contact's city.", "contacts", "city", CITY),
    setter("contacts_set_phone", "Change a contact's phone number.", "contacts", "phone", PHONE),
    setter("contacts_set_relation", "Change a contact's relation.", "contacts", "relation", RELATION),
    marker("contacts_favour", "Make a contact a favourite.", "contacts", "favourite", True),
    marker("contacts_unfavour", "Make a contact no favourite any more.", "contacts", "favourite", False),
)

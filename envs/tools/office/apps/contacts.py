"""The app ``contacts``: a phone book."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import words
from ..columns import CITIES, NAMES, bit, contacts_named, free_row, has, mask_of, put, used_rows
from ..rows import World
from . import kinds
from .column_api import Error, State, api
from .row_api import add_row, getter, lister, marker, one_of, remover, setter, writes

# -- the compiled office ---------------------------------------------------------------------------

EVERY_NAME, EVERY_CITY = np.uint32(2 ** len(NAMES) - 1), np.uint32(2 ** len(CITIES) - 1)
ENTRY_LIST = "list of {contact, name, city}"


def _show_entries(state: State, contacts: Any) -> State:
    return state.show(contacts=contacts).learn(contacts=contacts, entries=contacts)


@api("contacts.list", returns=ENTRY_LIST)
def list_all(state: State) -> State:
    """List all contacts."""
    everyone = used_rows(state.world.name)
    return _show_entries(state, everyone).learn(asked_names=EVERY_NAME, asked_cities=EVERY_CITY)


@api("contacts.search_by_name", returns=ENTRY_LIST, name=kinds.NAME)
def search_by_name(state: State, name: Any) -> State:
    """Find the contacts of a first name."""
    return _show_entries(state, contacts_named(state.world, name, 0)).learn(asked_names=bit(name))


@api("contacts.search_by_city", returns=ENTRY_LIST, city=kinds.CITY)
def search_by_city(state: State, city: Any) -> State:
    """Find the contacts who live in a city."""
    contacts = mask_of((state.world.name > 0) & (state.world.city == city))
    return _show_entries(state, contacts).learn(asked_cities=bit(city))


@api(
    "contacts.search_by_relation",
    returns="list of {contact, name, city, relation}",
    relation=kinds.RELATION,
)
def search_by_relation(state: State, relation: Any) -> State:
    """Find the contacts who are something to the user."""
    contacts = mask_of((state.world.name > 0) & (state.world.relation == relation))
    return _show_entries(state, contacts).learn(relations=contacts, asked_relations=bit(relation))


@api(
    "contacts.get",
    returns="{contact, name, city, relation, phone}",
    errors=(Error.NOT_FOUND,),
    contact=kinds.CONTACT,
)
def get(state: State, contact: Any) -> State:
    """Show all of one contact."""
    row = bit(contact)
    return (
        _show_entries(state, row).learn(relations=row, phones=row).fail_if(_missing(state, contact))
    )


@api("contacts.set_phone", errors=(Error.NOT_FOUND,), contact=kinds.CONTACT, phone=kinds.PHONE)
def set_phone(state: State, contact: Any, phone: Any) -> State:
    """Change a contact's phone number."""
    changed = state.change(phone=put(state.world.phone, contact, phone)).learn(phones=bit(contact))
    return changed.fail_if(_missing(state, contact))


@api("contacts.set_city", errors=(Error.NOT_FOUND,), contact=kinds.CONTACT, city=kinds.CITY)
def set_city(state: State, contact: Any, city: Any) -> State:
    """Change the city a contact lives in."""
    # The entry is shown as a whole, so that the name is never known without the city.
    changed = state.change(city=put(state.world.city, contact, city)).learn(entries=bit(contact))
    return changed.fail_if(_missing(state, contact))


@api(
    "contacts.add",
    returns="{contact, name, phone}",
    room="name",
    name=kinds.NAME,
    phone=kinds.PHONE,
)
def add(state: State, name: Any, phone: Any) -> State:
    """Add a contact."""
    row = free_row(state.world.name)
    added = state.change(
        name=put(state.world.name, row, name), phone=put(state.world.phone, row, phone)
    )
    contact = bit(row)
    return _show_entries(added, contact).learn(relations=contact, phones=contact)


@api("contacts.delete", errors=(Error.NOT_FOUND,), contact=kinds.CONTACT)
def delete(state: State, contact: Any) -> State:
    """Delete a contact. Events, requests and transfers keep the id."""
    columns = ("name", "city", "relation", "phone")
    deleted = state.change(
        **{column: put(getattr(state.world, column), contact, 0) for column in columns}
    )
    return deleted.fail_if(_missing(state, contact))


def _missing(state: State, contact: Any) -> tuple[Any, Error]:
    return ~has(used_rows(state.world.name), contact), Error.NOT_FOUND


COLUMN_APIS = (
    list_all,
    search_by_name,
    search_by_city,
    search_by_relation,
    get,
    set_phone,
    set_city,
    add,
    delete,
)


# -- the large office ------------------------------------------------------------------------------

FIRST, LAST = one_of("first name", words.FIRST_NAMES), one_of("last name", words.LAST_NAMES)
CITY = one_of("city", words.CITIES)
RELATION = one_of("relation", words.RELATIONS)
PHONE = one_of("phone number", words.PHONES)
ENTRY = ("first", "last", "city")


@writes(first=FIRST, last=LAST, city=CITY, relation=RELATION, phone=PHONE)
def contacts_add(
    world: World, first: str, last: str, city: str, relation: str, phone: str
) -> World:
    """Add a contact."""
    flags = {"favourite": False, "muted": False, "blocked": False}
    return add_row(
        world,
        "contacts",
        first=first,
        last=last,
        city=city,
        relation=relation,
        phone=phone,
        **flags,
    )


ROW_APIS = (
    lister("contacts_list", "List all contacts.", "contacts", ENTRY),
    lister("contacts_find", "Find contacts by first name.", "contacts", ENTRY, first=FIRST),
    lister("contacts_of_city", "List the contacts in a city.", "contacts", ENTRY, city=CITY),
    lister(
        "contacts_of_relation",
        "List the contacts of a relation.",
        "contacts",
        ENTRY,
        relation=RELATION,
    ),
    lister(
        "contacts_of_phone", "Find the contact with a phone number.", "contacts", ENTRY, phone=PHONE
    ),
    lister(
        "contacts_favourites", "List favourites.", "contacts", ENTRY, lambda row: row["favourite"]
    ),
    getter(
        "contacts_get",
        "Show all of a contact.",
        "contacts",
        (*ENTRY, "relation", "phone", "favourite"),
    ),
    contacts_add,
    remover("contacts_delete", "Delete a contact.", "contacts"),
    setter("contacts_set_city", "Change a contact's city.", "contacts", "city", CITY),
    setter("contacts_set_phone", "Change a contact's phone number.", "contacts", "phone", PHONE),
    setter(
        "contacts_set_relation", "Change a contact's relation.", "contacts", "relation", RELATION
    ),
    marker("contacts_favour", "Make a contact a favourite.", "contacts", "favourite", True),
    marker(
        "contacts_unfavour", "Make a contact no favourite any more.", "contacts", "favourite", False
    ),
)

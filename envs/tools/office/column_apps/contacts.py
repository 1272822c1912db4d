"""The app ``contacts``: a phone book."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..column_api import CITY, CONTACT, NAME, PHONE, RELATION, Error, State, api
from ..columns import CITIES, NAMES, bit, called, existing, free_row, has, mask_of, put

EVERY_NAME, EVERY_CITY = np.uint32(2 ** len(NAMES) - 1), np.uint32(2 ** len(CITIES) - 1)
ENTRIES = "list of {contact, name, city}"


def _entries(state: State, found: Any) -> State:
    return state.show(contacts=found).learn(contacts=found, entries=found)


@api("contacts.list", returns=ENTRIES)
def list_all(state: State) -> State:
    """List all contacts."""
    everyone = existing(state.world.name)
    return _entries(state, everyone).learn(asked_names=EVERY_NAME, asked_cities=EVERY_CITY)


@api("contacts.search_by_name", returns=ENTRIES, name=NAME)
def search_by_name(state: State, name: Any) -> State:
    """Find the contacts of a first name."""
    return _entries(state, called(state.world, name, 0)).learn(asked_names=bit(name))


@api("contacts.search_by_city", returns=ENTRIES, city=CITY)
def search_by_city(state: State, city: Any) -> State:
    """Find the contacts who live in a city."""
    found = mask_of((state.world.name > 0) & (state.world.city == city))
    return _entries(state, found).learn(asked_cities=bit(city))


@api("contacts.search_by_relation", returns="list of {contact, name, city, relation}", relation=RELATION)
def search_by_relation(state: State, relation: Any) -> State:
    """Find the contacts who are something to the user."""
    found = mask_of((state.world.name > 0) & (state.world.relation == relation))
    return _entries(state, found).learn(relations=found, asked_relations=bit(relation))


@api("contacts.get", returns="{contact, name, city, relation, phone}", errors=(Error.NOT_FOUND,), contact=CONTACT)
def get(state: State, contact: Any) -> State:
    """Show all of one contact."""
    one = bit(contact)
    return _entries(state, one).learn(relations=one, phones=one).fail_if(_missing(state, contact))


@api("contacts.set_phone", errors=(Error.NOT_FOUND,), contact=CONTACT, phone=PHONE)
def set_phone(state: State, contact: Any, phone: Any) -> State:
    """Change a contact's phone number."""
    changed = state.change(phone=put(state.world.phone, contact, phone)).learn(phones=bit(contact))
    return changed.fail_if(_missing(state, contact))


@api("contacts.set_city", errors=(Error.NOT_FOUND,), contact=CONTACT, city=CITY)
def set_city(state: State, contact: Any, city: Any) -> State:
    """Change the city a contact lives in."""
    # The entry is shown as a whole, so that the name is never known without the city.
    changed = state.change(city=put(state.world.city, contact, city)).learn(entries=bit(contact))
    return changed.fail_if(_missing(state, contact))


@api("contacts.add", returns="{contact, name, phone}", room="name", name=NAME, phone=PHONE)
def add(state: State, name: Any, phone: Any) -> State:
    """Add a contact."""
    row = free_row(state.world.name)
    added = state.change(name=put(state.world.name, row, name), phone=put(state.world.phone, row, phone))
    one = bit(row)
    return _entries(added, one).learn(relations=one, phones=one)


@api("contacts.delete", errors=(Error.NOT_FOUND,), contact=CONTACT)
def delete(state: State, contact: Any) -> State:
    """Delete a contact. Events, requests and transfers keep the id."""
    columns = ("name", "city", "relation", "phone")
    gone = state.change(**{column: put(getattr(state.world, column), contact, 0) for column in columns})
    return gone.fail_if(_missing(state, contact))


def _missing(state: State, contact: Any) -> tuple[Any, Error]:
    return ~has(existing(state.world.name), contact), Error.NOT_FOUND


APIS = (list_all, search_by_name, search_by_city, search_by_relation, get, set_phone, set_city, add, delete)

"""Random offices: people, events and debts; train and test share no person.

A person is a first name and a home town. Each name has three of the six cities on the train split and the other three
on the test split. So no contact of one split ever occurs in the other, and hence no instance does.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import columns as w
from .columns import Direction, Status, World
from .templates.column_template import Cast


def towns_of(name: str) -> list[list[int]]:
    """Return the three cities of the train split and those of the test split for people of that name."""
    digests = [hashlib.sha256(f"{name} of {city}".encode()).digest() for city in w.CITIES]
    order = sorted(range(1, len(w.CITIES) + 1), key=lambda city: digests[city - 1])
    return [order[:3], order[3:]]


TOWNS = np.array([towns_of(name) for name in w.NAMES], np.int32)
"""Cities by name, split and choice, ``(16, 2, 3)``."""

SHARES = {
    "people": w.CONTACTS, "names": len(w.NAMES), "towns": w.CONTACTS, "relations": w.CONTACTS, "phones": w.LARGEST,
    "events": w.EVENTS, "titles": len(w.TITLES), "times": len(w.TIMES), "places": w.EVENTS, "guests": 2 * w.EVENTS,
    "requests": w.REQUESTS, "request_contacts": w.REQUESTS, "request_amounts": w.REQUESTS, "ways": w.REQUESTS,
    "transfers": w.TRANSFERS, "transfer_contacts": w.TRANSFERS, "transfer_amounts": w.TRANSFERS, "sent": w.TRANSFERS,
    "accounts": 3, "instruction": 4, "dice": 8,
}  # fmt: skip
"""Random words by their use."""
WORDS = sum(SHARES.values())


class Crowd(NamedTuple):
    """Number of rows of each table at the start."""

    contacts: int
    events: int
    requests: int
    transfers: int


def shuffled(words: jax.Array) -> jax.Array:
    """Return the numbers 1 to n in the order of n random words."""
    return jnp.argsort(words).astype(jnp.int32) + 1


def up_to(words: jax.Array, low: Any, high: Any) -> jax.Array:
    """Draw numbers from ``low`` to ``high``; the remainder of 2**32 favours some by less than one in ten million."""
    return (low + (words % jnp.asarray(high - low + 1, jnp.uint32)).astype(jnp.int32)).astype(jnp.int32)


def random_office(words: jax.Array, split: jax.Array, crowd: Crowd) -> tuple[World, Cast, jax.Array, jax.Array]:
    """Return a world, its cast, the limit on payments (16 to 24 euros), and four words for the instruction.

    Balances cover every amount within the limit; shortages are planted later. No request or transfer involves the first
    of the cast, so that only planted ones count for this contact. Titles, times and names are distinct.

    Args:
        words: uint32 ``(WORDS,)``.
        split: 0 train, 1 test.
        crowd: sizes.
    """
    parts = jnp.split(words, np.cumsum(list(SHARES.values()))[:-1])
    random = dict(zip(SHARES, parts, strict=True))
    contacts, events = shuffled(random["people"]), shuffled(random["events"])
    requests, transfers = shuffled(random["requests"]), shuffled(random["transfers"])

    def only(ids: jax.Array, count: int, column: jax.Array) -> jax.Array:
        """Return a column with 0 in the rows that do not exist."""
        exists = (ids[:count, None] == np.arange(1, len(ids) + 1)).any(0)
        return jnp.where(exists, column, 0).astype(column.dtype)

    names, titles = shuffled(random["names"]), shuffled(random["titles"])
    times, phones = shuffled(random["times"]), shuffled(random["phones"])
    name = only(contacts, crowd.contacts, names[: w.CONTACTS])
    choice = up_to(random["towns"], 0, 2)
    towns = jnp.asarray(TOWNS)[:, split]  # (16, 3)
    city = only(contacts, crowd.contacts, towns[names[: w.CONTACTS] - 1, choice])
    hero = contacts[0] - 1
    first, second = random["guests"].reshape(2, w.EVENTS)  # a contact is a guest with probability one quarter
    others = contacts[1 : crowd.contacts]
    world = World(
        name=name,
        city=city,
        relation=only(contacts, crowd.contacts, up_to(random["relations"], 1, len(w.RELATIONS))),
        phone=only(contacts, crowd.contacts, phones[: w.CONTACTS]),
        title=only(events, crowd.events, titles),
        time=only(events, crowd.events, times[: w.EVENTS]),
        place=only(events, crowd.events, up_to(random["places"], 1, len(w.PLACES))),
        guests=only(events, crowd.events, first & second & w.existing(name)),
        request_contact=only(requests, crowd.requests, others[up_to(random["request_contacts"], 0, len(others) - 1)]),
        request_amount=only(requests, crowd.requests, up_to(random["request_amounts"], 1, 15)),
        request_direction=only(requests, crowd.requests, up_to(random["ways"], 1, len(Direction))),
        request_status=only(requests, crowd.requests, jnp.full(w.REQUESTS, Status.OPEN, jnp.int32)),
        transfer_contact=only(
            transfers, crowd.transfers, others[up_to(random["transfer_contacts"], 0, len(others) - 1)]
        ),
        transfer_amount=only(transfers, crowd.transfers, up_to(random["transfer_amounts"], 1, w.LARGEST)),
        transfer_direction=only(transfers, crowd.transfers, up_to(random["sent"], 1, len(Direction))),
        balance=up_to(random["accounts"][0], 40, 70),
        savings=up_to(random["accounts"][1], 30, 60),
    )
    new_event = events[crowd.events]  # a row that does not exist has a title and a time that no event has
    cast = Cast(
        contacts=contacts,
        events=events,
        requests=requests,
        transfers=transfers,
        stranger=names[w.CONTACTS],
        new_title=titles[new_event - 1],
        new_phone=phones[w.CONTACTS],
        free_time=times[w.EVENTS],
        hometowns=towns[names[hero] - 1, (choice[hero] + np.arange(3)) % 3],
        dice=random["dice"],
    )
    return world, cast, up_to(random["accounts"][2], 16, 24), random["instruction"]

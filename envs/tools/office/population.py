"""Random offices: people, events, debts and so on of one user; train and test share no person.

In the compiled office a person is a first name and a home town. Each name has three of the six
cities on the train split and the other three on the test split. In the large office a person is a
first and a last name, and the splits share none of these pairs. So no contact of one split ever
occurs in the other, and hence no instance does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.puzzle.dice import Dice

from . import columns, words
from .columns import Direction, Status, World
from .templates.column_template import Cast

# -- the compiled office ---------------------------------------------------------------------------


def towns_of(name: str) -> list[list[int]]:
    """Return the cities for people of that name: those of the train split, then of the test.

    The train split has three.
    """
    digests = [hashlib.sha256(f"{name} of {city}".encode()).digest() for city in columns.CITIES]
    order = sorted(range(1, len(columns.CITIES) + 1), key=lambda city: digests[city - 1])
    return [order[:3], order[3:]]


TOWNS = np.array([towns_of(name) for name in columns.NAMES], np.int32)
"""Cities by name, split and choice, ``(16, 2, 3)``."""

SHARES = {
    "people": columns.CONTACTS,
    "names": len(columns.NAMES),
    "towns": columns.CONTACTS,
    "relations": columns.CONTACTS,
    "phones": columns.MAX_AMOUNT,
    "events": columns.EVENTS,
    "titles": len(columns.TITLES),
    "times": len(columns.TIMES),
    "places": columns.EVENTS,
    "guests": 2 * columns.EVENTS,
    "requests": columns.REQUESTS,
    "request_contacts": columns.REQUESTS,
    "request_amounts": columns.REQUESTS,
    "ways": columns.REQUESTS,
    "transfers": columns.TRANSFERS,
    "transfer_contacts": columns.TRANSFERS,
    "transfer_amounts": columns.TRANSFERS,
    "sent": columns.TRANSFERS,
    "accounts": 3,
    "instruction": 4,
    "dice": 8,
}
"""Random words by their use."""
RANDOM_WORDS = sum(SHARES.values())


class Crowd(NamedTuple):
    """Number of rows of each table at the start."""

    contacts: int
    events: int
    requests: int
    transfers: int


def shuffle(random_words: jax.Array) -> jax.Array:
    """Return the numbers 1 to n in the order of n random words."""
    return jnp.argsort(random_words).astype(jnp.int32) + 1


def draw_between(random_words: jax.Array, low: Any, high: Any) -> jax.Array:
    """Draw numbers from ``low`` to ``high``.

    The remainder of 2**32 favours some by less than one in ten million.
    """
    return (
        low + (random_words % jnp.asarray(high - low + 1, jnp.uint32)).astype(jnp.int32)
    ).astype(jnp.int32)


def random_columns(
    random_words: jax.Array, split: jax.Array, crowd: Crowd
) -> tuple[World, Cast, jax.Array, jax.Array]:
    """Return a world, its cast, the limit on payments, and four words for the instruction.

    The limit is 16 to 24 euros.

    Balances cover every amount within the limit; shortages are planted later. No request or
    transfer involves the first of the cast, so that only planted ones count for this contact.
    Titles, times and names are distinct.

    Args:
        random_words: uint32 ``(RANDOM_WORDS,)``.
        split: 0 train, 1 test.
        crowd: sizes.
    """
    shares = jnp.split(random_words, np.cumsum(list(SHARES.values()))[:-1])
    random = dict(zip(SHARES, shares, strict=True))
    contacts = shuffle(random["people"])
    events = shuffle(random["events"])
    requests = shuffle(random["requests"])
    transfers = shuffle(random["transfers"])

    def clear_missing(ids: jax.Array, count: int, column: jax.Array) -> jax.Array:
        """Return a column with 0 in the rows that do not exist."""
        exists = (ids[:count, None] == np.arange(1, len(ids) + 1)).any(0)
        return jnp.where(exists, column, 0).astype(column.dtype)

    names = shuffle(random["names"])
    titles = shuffle(random["titles"])
    times = shuffle(random["times"])
    phones = shuffle(random["phones"])
    name = clear_missing(contacts, crowd.contacts, names[: columns.CONTACTS])
    choice = draw_between(random["towns"], 0, 2)
    towns = jnp.asarray(TOWNS)[:, split]  # (16, 3)
    city = clear_missing(contacts, crowd.contacts, towns[names[: columns.CONTACTS] - 1, choice])
    hero = contacts[0] - 1
    # A contact is a guest with probability one quarter.
    coin, second_coin = random["guests"].reshape(2, columns.EVENTS)
    extras = contacts[1 : crowd.contacts]
    world = World(
        name=name,
        city=city,
        relation=clear_missing(
            contacts, crowd.contacts, draw_between(random["relations"], 1, len(columns.RELATIONS))
        ),
        phone=clear_missing(contacts, crowd.contacts, phones[: columns.CONTACTS]),
        title=clear_missing(events, crowd.events, titles),
        time=clear_missing(events, crowd.events, times[: columns.EVENTS]),
        place=clear_missing(
            events, crowd.events, draw_between(random["places"], 1, len(columns.PLACES))
        ),
        guests=clear_missing(events, crowd.events, coin & second_coin & columns.used_rows(name)),
        request_contact=clear_missing(
            requests,
            crowd.requests,
            extras[draw_between(random["request_contacts"], 0, len(extras) - 1)],
        ),
        request_amount=clear_missing(
            requests, crowd.requests, draw_between(random["request_amounts"], 1, 15)
        ),
        request_direction=clear_missing(
            requests, crowd.requests, draw_between(random["ways"], 1, len(Direction))
        ),
        request_status=clear_missing(
            requests, crowd.requests, jnp.full(columns.REQUESTS, Status.OPEN, jnp.int32)
        ),
        transfer_contact=clear_missing(
            transfers,
            crowd.transfers,
            extras[draw_between(random["transfer_contacts"], 0, len(extras) - 1)],
        ),
        transfer_amount=clear_missing(
            transfers,
            crowd.transfers,
            draw_between(random["transfer_amounts"], 1, columns.MAX_AMOUNT),
        ),
        transfer_direction=clear_missing(
            transfers, crowd.transfers, draw_between(random["sent"], 1, len(Direction))
        ),
        balance=draw_between(random["accounts"][0], 40, 70),
        savings=draw_between(random["accounts"][1], 30, 60),
    )
    # A row that does not exist has a title and a time that no event has.
    new_event = events[crowd.events]
    cast = Cast(
        contacts=contacts,
        events=events,
        requests=requests,
        transfers=transfers,
        stranger=names[columns.CONTACTS],
        new_title=titles[new_event - 1],
        new_phone=phones[columns.CONTACTS],
        free_time=times[columns.EVENTS],
        hometowns=towns[names[hero] - 1, (choice[hero] + np.arange(3)) % 3],
        dice=random["dice"],
    )
    return world, cast, draw_between(random["accounts"][2], 16, 24), random["instruction"]


# -- the large office ------------------------------------------------------------------------------

Tables = dict[str, dict[int, dict[str, Any]]]
"""A world in the making, which may be changed in place."""


def copy_tables(tables: Tables) -> Tables:
    """Return a copy that shares nothing that can be changed."""
    return {
        table: {number: dict(row) for number, row in rows.items()} for table, rows in tables.items()
    }


def random_rows(dice: Dice, split: int) -> Tables:
    """Draw a world whose contacts have names of the split.

    The sum of the places of first and last name is even in the train split, odd in the test split.
    First names, titles and names are unique in their tables; ids are random.
    """
    pick = dice.choice
    first_names = dice.sample(range(len(words.FIRST_NAMES)), 10)
    phones = dice.sample(words.PHONES, 10)
    last_names = len(words.LAST_NAMES) // 2

    def happens(odds: int) -> bool:
        """Return true once in ``odds`` times."""
        return dice.below(odds) == 0

    def table(rows: Sequence[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        return dict(zip(dice.sample(range(1, words.MAX_ROW_ID + 1), len(rows)), rows, strict=True))

    contacts = table([
        {"first": words.FIRST_NAMES[first],
         "last": words.LAST_NAMES[2 * dice.below(last_names) + (first + split) % 2],
         "city": pick(words.CITIES), "relation": pick(words.RELATIONS), "phone": phone,
         "favourite": happens(4), "muted": happens(5), "blocked": happens(8)}
        for first, phone in zip(first_names, phones, strict=True)
    ])  # fmt: skip
    people = list(contacts)
    songs = table([
        {"title": title, "artist": pick(words.ARTISTS), "genre": pick(words.GENRES),
         "minutes": dice.between(2, 9), "liked": happens(3)}
        for title in dice.sample(words.SONGS, 14)
    ])  # fmt: skip
    products = table([
        {"name": name, "category": pick(words.CATEGORIES), "price": dice.between(5, 60),
         "stock": dice.between(3, 9), "wished": happens(6)}
        for name in dice.sample(words.PRODUCTS, 12)
    ])  # fmt: skip
    times = dice.sample(words.TIMES, 8)
    orders = []
    for product in dice.sample(products, 4):
        quantity = dice.between(1, 3)
        total = quantity * products[product]["price"]
        orders.append(
            {
                "product": product,
                "quantity": quantity,
                "total": total,
                "status": pick(words.ORDER_STATUSES),
            }
        )
    return {
        "contacts": contacts,
        "events": table([
            {"title": title, "time": time, "place": pick(words.PLACES),
             "guests": frozenset(dice.sample(people, dice.below(4)))}
            for title, time in zip(dice.sample(words.EVENTS, 8), times, strict=True)
        ]),
        "account": {1: {"balance": dice.between(300, 600), "savings": dice.between(50, 200)}},
        "requests": table([
            {"contact": pick(people), "amount": dice.between(5, 60),
             "direction": pick(words.DIRECTIONS),
             "status": "open" if happens(2) else pick(words.STATUSES)}
            for _ in range(6)
        ]),
        "transfers": table([
            {"contact": pick(people), "amount": dice.between(5, 60),
             "direction": pick(words.DIRECTIONS)}
            for _ in range(5)
        ]),
        "mails": table([
            {"contact": pick(people), "direction": "outgoing" if happens(4) else "incoming",
             "folder": "inbox" if happens(2) else pick(words.MAIL_FOLDERS), "subject": subject,
             "text": pick(words.PHRASES), "read": not happens(3), "starred": happens(4)}
            for subject in dice.sample(words.SUBJECTS, 12)
        ]),
        "messages": table([
            {"contact": pick(people), "direction": pick(words.DIRECTIONS),
             "text": pick(words.PHRASES), "read": not happens(3)}
            for _ in range(8)
        ]),
        "tasks": table([
            {"title": title, "project": pick(words.PROJECTS), "due": pick(words.DAYS),
             "priority": pick(words.PRIORITIES), "done": happens(4)}
            for title in dice.sample(words.TASKS[:16], 9)
        ]),
        "notes": table([
            {"title": title, "folder": pick(words.NOTE_FOLDERS), "text": pick(words.PHRASES),
             "pinned": happens(4)}
            for title in dice.sample(words.NOTES, 7)
        ]),
        "songs": songs,
        "playlists": table([
            {"name": name, "songs": frozenset(dice.sample(songs, dice.between(2, 4)))}
            for name in dice.sample(words.PLAYLISTS, 3)
        ]),
        "queue": {1: {"songs": tuple(dice.sample(songs, 2))}},
        "products": products,
        "cart": {product: {"quantity": dice.between(1, 2)} for product in dice.sample(products, 2)},
        "orders": table(orders),
    }  # fmt: skip

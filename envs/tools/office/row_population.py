"""Random worlds: the people, mails, songs and so on of one user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlbench_suite.dice import Dice

from . import words as v
from .words import ROWS

Tables = dict[str, dict[int, dict[str, Any]]]
"""A world in the making, which may be changed in place."""


def copied(tables: Tables) -> Tables:
    """Return a copy that shares nothing that can be changed."""
    return {table: {number: dict(row) for number, row in rows.items()} for table, rows in tables.items()}


def population(dice: Dice, split: int) -> Tables:
    """Draw a world. Its contacts have names of the split: the sum of the places of first and last name is even in the
    train split, odd in the test split. First names, titles and names are unique in their tables; ids are random.
    """
    pick, yes = dice.choice, lambda odds: dice.below(odds) == 0
    firsts, phones = dice.sample(range(len(v.FIRST)), 10), dice.sample(v.PHONES, 10)

    def table(rows: Sequence[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        return dict(zip(dice.sample(range(1, ROWS + 1), len(rows)), rows, strict=True))

    contacts = table([
        {"first": v.FIRST[first], "last": v.LAST[2 * dice.below(len(v.LAST) // 2) + (first + split) % 2],
         "city": pick(v.CITIES), "relation": pick(v.RELATIONS), "phone": phone, "favourite": yes(4), "muted": yes(5),
         "blocked": yes(8)}
        for first, phone in zip(firsts, phones, strict=True)
    ])  # fmt: skip
    people = list(contacts)
    songs = table([
        {"title": title, "artist": pick(v.ARTISTS), "genre": pick(v.GENRES), "minutes": dice.between(2, 9),
         "liked": yes(3)}
        for title in dice.sample(v.SONGS, 14)
    ])  # fmt: skip
    products = table([
        {"name": name, "category": pick(v.CATEGORIES), "price": dice.between(5, 60), "stock": dice.between(3, 9),
         "wished": yes(6)}
        for name in dice.sample(v.PRODUCTS, 12)
    ])  # fmt: skip
    times = dice.sample(v.TIMES, 8)
    orders = []
    for product in dice.sample(products, 4):
        quantity = dice.between(1, 3)
        total = quantity * products[product]["price"]
        orders.append({"product": product, "quantity": quantity, "total": total, "status": pick(v.ORDER_STATUSES)})
    return {
        "contacts": contacts,
        "events": table([
            {"title": title, "time": time, "place": pick(v.PLACES),
             "guests": frozenset(dice.sample(people, dice.below(4)))}
            for title, time in zip(dice.sample(v.EVENTS, 8), times, strict=True)
        ]),
        "account": {1: {"balance": dice.between(300, 600), "savings": dice.between(50, 200)}},
        "requests": table([
            {"contact": pick(people), "amount": dice.between(5, 60), "direction": pick(v.DIRECTIONS),
             "status": "open" if yes(2) else pick(v.STATUSES)}
            for _ in range(6)
        ]),
        "transfers": table([
            {"contact": pick(people), "amount": dice.between(5, 60), "direction": pick(v.DIRECTIONS)} for _ in range(5)
        ]),
        "mails": table([
            {"contact": pick(people), "direction": "outgoing" if yes(4) else "incoming",
             "folder": "inbox" if yes(2) else pick(v.MAIL_FOLDERS), "subject": subject, "text": pick(v.PHRASES),
             "read": not yes(3), "starred": yes(4)}
            for subject in dice.sample(v.SUBJECTS, 12)
        ]),
        "messages": table([
            {"contact": pick(people), "direction": pick(v.DIRECTIONS), "text": pick(v.PHRASES), "read": not yes(3)}
            for _ in range(8)
        ]),
        "tasks": table([
            {"title": title, "project": pick(v.PROJECTS), "due": pick(v.DAYS), "priority": pick(v.PRIORITIES),
             "done": yes(4)}
            for title in dice.sample(v.TASKS[:16], 9)
        ]),
        "notes": table([
            {"title": title, "folder": pick(v.NOTE_FOLDERS), "text": pick(v.PHRASES), "pinned": yes(4)}
            for title in dice.sample(v.NOTES, 7)
        ]),
        "songs": songs,
        "playlists": table([
            {"name": name, "songs": frozenset(dice.sample(songs, dice.between(2, 4)))}
            for name in dice.sample(v.PLAYLISTS, 3)
        ]),
        "queue": {1: {"songs": tuple(dice.sample(songs, 2))}},
        "products": products,
        "cart": {product: {"quantity": dice.between(1, 2)} for product in dice.sample(products, 2)},
        "orders": table(orders),
    }  # fmt: skip

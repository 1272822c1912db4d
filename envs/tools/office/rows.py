"""The world behind the apps: tables of rows, which calls replace and never change.

A world is a mapping of tables by name; a table is a mapping of rows by id, 1 to 99; a row is a mapping of columns.
Sets of ids are frozensets.

=============  =====================================================================================================
contacts       first, last, city, relation, phone, favourite, muted, blocked
events         title, time, place, guests (ids of contacts); never two at a time
account        one row: balance and savings, in euros
requests       contact, amount, direction, status
transfers      contact, amount, direction
mails          contact, direction, folder, subject, text, read, starred
messages       contact, direction, text, read
tasks          title, project, due, priority, done
notes          title, folder, text, pinned
songs          title, artist, genre, minutes, liked
playlists      name, songs (ids)
queue          one row: ids of songs in their order
products       name, category, price, stock, wished
cart           quantity, by the id of the product
orders         product, quantity, total, status
=============  =====================================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .words import ROWS

Row = Mapping[str, Any]
World = Mapping[str, Mapping[int, Row]]

NOUNS = {
    "contacts": "contact", "events": "event", "account": "account", "requests": "request", "transfers": "transfer",
    "mails": "mail", "messages": "message", "tasks": "task", "notes": "note", "songs": "song", "playlists": "playlist",
    "queue": "queue", "products": "product", "cart": "product", "orders": "order",
}  # fmt: skip
"""Word for a row of each table."""


def put(world: World, table: str, number: int, row: Row) -> World:
    """Return the world with one row replaced or added."""
    return {**world, table: {**world[table], number: row}}


def edit(world: World, table: str, number: int, **columns: Any) -> World:
    """Return the world with columns of one row replaced."""
    return put(world, table, number, {**world[table][number], **columns})


def drop(world: World, table: str, number: int) -> World:
    """Return the world without one row."""
    return {**world, table: {other: row for other, row in world[table].items() if other != number}}


def free_id(table: Mapping[int, Any]) -> int:
    """Return the lowest id that no row has, 0 if all are taken."""
    return next((number for number in range(1, ROWS + 1) if number not in table), 0)


def distance(world: World, wanted: World, start: World) -> int:
    """Count the cells of old rows, and the new rows, in which two worlds differ; 0 for equal worlds.

    The ids of new rows do not count, so that the order in which they were made does not either.
    """
    total = 0
    for table, rows in world.items():
        goal, old = wanted[table], start[table]
        if rows == goal:
            continue
        for number in rows.keys() | goal.keys():
            if number not in old:
                continue
            one, other = rows.get(number), goal.get(number)
            if one is None or other is None:
                total += (one is not other) * len(old[number])
            elif one is not other:
                total += sum(one[column] != other[column] for column in one)
        new = [Counter(tuple(sorted(row.items())) for number, row in part.items() if number not in old)
               for part in (rows, goal)]  # fmt: skip
        total += ((new[0] - new[1]) + (new[1] - new[0])).total()
    return total

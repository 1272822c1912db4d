"""The world of the large office: tables of rows, which calls replace and never change.

A world is a mapping of tables by name; a table is a mapping of rows by id, 1 to 99; a row is a
mapping of columns. Sets of ids are frozensets.

=============  =====================================================================================
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
=============  =====================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .words import MAX_ROW_ID

Row = Mapping[str, Any]
World = Mapping[str, Mapping[int, Row]]

NOUNS = {
    "contacts": "contact", "events": "event", "account": "account", "requests": "request",
    "transfers": "transfer", "mails": "mail", "messages": "message", "tasks": "task",
    "notes": "note", "songs": "song", "playlists": "playlist", "queue": "queue",
    "products": "product", "cart": "product", "orders": "order",
}  # fmt: skip
"""Word for a row of each table."""


def put_row(world: World, table: str, number: int, row: Row) -> World:
    """Return the world with one row replaced or added."""
    return {**world, table: {**world[table], number: row}}


def edit_row(world: World, table: str, number: int, **columns: Any) -> World:
    """Return the world with columns of one row replaced."""
    return put_row(world, table, number, {**world[table][number], **columns})


def drop_row(world: World, table: str, number: int) -> World:
    """Return the world without one row."""
    return {
        **world,
        table: {row_id: row for row_id, row in world[table].items() if row_id != number},
    }


def free_id(table: Mapping[int, Any]) -> int:
    """Return the lowest id that no row has, 0 if there is none."""
    return next((number for number in range(1, MAX_ROW_ID + 1) if number not in table), 0)


def distance(world: World, goal: World, start: World) -> int:
    """Count the differences of a world from the goal, 0 for equal worlds.

    They are cells of old rows, and whole new rows.

    The ids of new rows do not count, so that the order in which they were made does not either.
    """
    total = 0
    for table, rows in world.items():
        goal_rows = goal[table]
        old_rows = start[table]
        if rows == goal_rows:
            continue
        for number in old_rows:
            total += _row_distance(rows.get(number), goal_rows.get(number), len(old_rows[number]))
        new_rows = _count_new_rows(rows, old_rows)
        new_goal_rows = _count_new_rows(goal_rows, old_rows)
        total += ((new_rows - new_goal_rows) + (new_goal_rows - new_rows)).total()
    return total


def _row_distance(row: Row | None, goal_row: Row | None, columns: int) -> int:
    """Count the cells in which two rows differ: all of them if only one row exists."""
    if row is None or goal_row is None:
        return 0 if row is goal_row else columns
    return sum(row[column] != goal_row[column] for column in row)


def _count_new_rows(
    rows: Mapping[int, Row], old_rows: Mapping[int, Row]
) -> Counter[tuple[tuple[str, Any], ...]]:
    """Count the rows that are not among the old ones, without their ids."""
    return Counter(
        tuple(sorted(row.items())) for number, row in rows.items() if number not in old_rows
    )

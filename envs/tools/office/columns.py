"""The world of the compiled office: fixed-size tables of whole numbers, column by column.

Values count from 1, and 0 means *none*: no such row, not given, not known. So a row exists if its
first column is not
0. The same functions read the real world and a player's partial view, in which everything never
   read is 0.

Sets of rows are bit masks, uint32: bit ``i`` stands for row ``i + 1``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Int, IntArray, UInt32Array

from . import words

CONTACTS = 12
"""Rows of the table of contacts."""
EVENTS = 10
"""Rows of the calendar."""
REQUESTS = 10
"""Rows of the table of requests."""
TRANSFERS = 10
"""Rows of the table of transfers."""
HOURS = 6
"""Bookable hours of a day."""
MAX_AMOUNT = 31
"""The largest amount of one call, whole euros; also the number of phone numbers."""

# Fewer words than in the large office: each is a column of the observation.
NAMES = words.FIRST_NAMES[:16]
CITIES = words.CITIES
RELATIONS = words.RELATIONS
DAYS = words.DAYS[:4]
TITLES = tuple(
    title for title in words.EVENTS if title not in ("kickoff", "lunch", "rehearsal", "training")
)
PLACES = words.PLACES
TIMES = words.TIMES[: len(DAYS) * HOURS]
PHONES = words.PHONES[1 : MAX_AMOUNT + 1]


class Direction(IntEnum):
    """Direction of a request for money: to the user or by the user."""

    INCOMING = 1
    OUTGOING = 2


class Status(IntEnum):
    """State of a request for money."""

    OPEN = 1
    PAID = 2
    DECLINED = 3
    WITHDRAWN = 4


class World(NamedTuple):
    """Everything that the apps store.

    Columns of one table share a prefix of this list, in the order below.

    Contacts ``(12,)``: name, city, relation, phone. Events ``(10,)``: title, time, place, guests (a
    mask of contacts). Requests ``(10,)`` and transfers ``(10,)``: the other person, the amount in
    euros; then direction and status, or whether the user sent it (1) or received it (2). Accounts:
    two scalars, euros.
    """

    name: IntArray  # (12,)
    city: IntArray  # (12,)
    relation: IntArray  # (12,)
    phone: IntArray  # (12,)
    title: IntArray  # (10,)
    time: IntArray  # (10,)
    place: IntArray  # (10,)
    guests: UInt32Array  # (10,)
    request_contact: IntArray  # (10,)
    request_amount: IntArray  # (10,)
    request_direction: IntArray  # (10,)
    request_status: IntArray  # (10,)
    transfer_contact: IntArray  # (10,)
    transfer_amount: IntArray  # (10,)
    transfer_direction: IntArray  # (10,)
    balance: Int
    savings: Int


# -- rows, sets, cells -----------------------------------------------------------------------------


def rows(table: jax.Array) -> np.ndarray:
    """Return the ids of a table's rows, 1 to n."""
    return np.arange(1, table.shape[-1] + 1, dtype=np.int32)


def mask_of(flags: jax.Array) -> jax.Array:
    """Return the set of the rows whose flag is true: bool ``(n,)`` to a mask."""
    return (flags.astype(jnp.uint32) << np.arange(flags.shape[-1], dtype=np.uint32)).sum(
        dtype=jnp.uint32
    )


def flags_of(mask: jax.Array, count: int) -> jax.Array:
    """Return the flags of a mask; this is the inverse of :func:`mask_of`.

    Masks ``(...)`` give bool ``(..., count)``.
    """
    return (mask[..., None] >> np.arange(count, dtype=np.uint32) & 1).astype(bool)


def bit(row: Any) -> jax.Array:
    """Return the set of one row; the empty set for row 0."""
    row = jnp.asarray(row, jnp.int32)
    return jnp.where(
        row > 0, jnp.uint32(1) << jnp.maximum(row - 1, 0).astype(jnp.uint32), jnp.uint32(0)
    )


def has(mask: Any, row: Any) -> jax.Array:
    """Say whether a row is in a set."""
    return mask & bit(row) != 0


def size(mask: jax.Array) -> jax.Array:
    """Count the rows in a set, int32."""
    return jax.lax.population_count(mask).astype(jnp.int32)


def lowest_row(mask: jax.Array) -> jax.Array:
    """Return the lowest row of a set, int32; 0 if it is empty."""
    mask = jnp.asarray(mask)
    below = (mask & (~mask + 1)) - 1  # all bits under the lowest
    return jnp.where(mask == 0, 0, size(below) + 1)


def cell(table: jax.Array, row: Any) -> jax.Array:
    """Return the value in a row; 0 for row 0.

    A sum with one term: rows are few, and gathers are slow in batches.
    """
    return jnp.where(rows(table) == row, table, 0).sum(dtype=table.dtype)


def put(table: jax.Array, row: Any, value: Any) -> jax.Array:
    """Return the table with a new value in one row; unchanged for row 0."""
    return jnp.where(rows(table) == row, value, table).astype(table.dtype)


# -- what can be asked of a world, real or partly known --------------------------------------------


def used_rows(table: jax.Array) -> jax.Array:
    """Return the set of rows that are in use, by their table's first column."""
    return mask_of(table > 0)


def free_row(table: jax.Array) -> jax.Array:
    """Return the lowest row not in use; 0 if there is none."""
    return lowest_row(mask_of(table == 0))


def day_of(time: Any) -> jax.Array:
    """Return the day (1 to 4) of a time (1 to 24); 0 for none."""
    return jnp.where(time > 0, (time - 1) // HOURS + 1, 0)


def hours_of(day: Any) -> jax.Array:
    """Return the set of the times of a day."""
    first_day = jnp.uint32(2**HOURS - 1)
    return jnp.where(
        day > 0, first_day << (HOURS * jnp.maximum(jnp.asarray(day) - 1, 0)).astype(jnp.uint32), 0
    )


def busy_times(world: World) -> jax.Array:
    """Return the set of times at which there is an event."""
    return mask_of((world.time == np.arange(1, len(TIMES) + 1)[:, None]).any(-1))


def events_on(world: World, day: Any) -> jax.Array:
    """Return the set of events of a day."""
    return mask_of((world.title > 0) & (day_of(world.time) == day))


def first_free_hour(busy: jax.Array, day: Any) -> jax.Array:
    """Return the earliest time of a day that is not busy; 0 if the day is full."""
    return lowest_row(hours_of(day) & ~busy)


def contacts_named(world: World, name: Any, city: Any) -> jax.Array:
    """Return the set of contacts of that first name, and of that city unless it is 0."""
    return mask_of((world.name > 0) & (world.name == name) & ((world.city == city) | (city == 0)))


def events_titled(world: World, title: Any) -> jax.Array:
    """Return the set of events of that title."""
    return mask_of((world.title > 0) & (world.title == title))


def requests_with(world: World, contact: Any, direction: Direction) -> jax.Array:
    """Return the set of open requests of one direction with a contact."""
    alike = (world.request_contact == contact) & (world.request_direction == direction)
    return mask_of(alike & (world.request_status == Status.OPEN) & (contact > 0))


def total(amounts: jax.Array, mask: jax.Array) -> jax.Array:
    """Return the sum of the amounts in a set of rows, euros."""
    return jnp.where(flags_of(mask, amounts.shape[-1]), amounts, 0).sum(dtype=jnp.int32)


# -- changes that more than one place makes --------------------------------------------------------


def remove_event(world: World, row: Any) -> World:
    """Return the world after an event is cancelled."""
    return world._replace(
        title=put(world.title, row, 0),
        time=put(world.time, row, 0),
        place=put(world.place, row, 0),
        guests=put(world.guests, row, 0),
    )


def with_transfer(world: World, contact: Any, amount: Any) -> World:
    """Return the world after the user has sent money."""
    row = free_row(world.transfer_contact)
    return world._replace(
        transfer_contact=put(world.transfer_contact, row, contact),
        transfer_amount=put(world.transfer_amount, row, amount),
        transfer_direction=put(world.transfer_direction, row, Direction.OUTGOING),
        balance=world.balance - amount,
    )


def with_request(world: World, contact: Any, amount: Any) -> World:
    """Return the world after the user has asked for money."""
    row = free_row(world.request_contact)
    return world._replace(
        request_contact=put(world.request_contact, row, contact),
        request_amount=put(world.request_amount, row, amount),
        request_direction=put(world.request_direction, row, Direction.OUTGOING),
        request_status=put(world.request_status, row, Status.OPEN),
    )


def with_request_paid(world: World, row: Any) -> World:
    """Return the world after the user has paid a request."""
    paid = with_transfer(world, cell(world.request_contact, row), cell(world.request_amount, row))
    return paid._replace(request_status=put(world.request_status, row, Status.PAID))


LEDGERS = (
    ("request_contact", "request_amount", "request_direction", "request_status"),
    ("transfer_contact", "transfer_amount", "transfer_direction"),
)
"""Columns of the tables in which the order of rows does not count."""
PLAIN = tuple(
    column for column in World._fields if not column.startswith(("request_", "transfer_"))
)


def equal_worlds(a: World, b: World) -> jax.Array:
    """Return whether two worlds are equal.

    The order in which requests and transfers were added does not count.
    """
    equal = [(getattr(a, column) == getattr(b, column)).all() for column in PLAIN]
    for columns in LEDGERS:
        rows_a = _as_number([getattr(a, column) for column in columns])
        rows_b = _as_number([getattr(b, column) for column in columns])
        # Each row occurs as often in both. Sorting takes longer.
        counts_a = sum((rows_a == row for row in rows_a), jnp.zeros_like(rows_a))
        counts_b = sum((rows_a == row for row in rows_b), jnp.zeros_like(rows_a))
        equal.append((counts_a == counts_b).all())
    return jnp.stack(equal).all()


def distance(a: World, b: World) -> jax.Array:
    """Count the differences of two worlds, int32.

    They are cells, and for requests and transfers rows.
    """
    total = sum((getattr(a, column) != getattr(b, column)).sum(dtype=jnp.int32) for column in PLAIN)
    for columns in LEDGERS:
        rows_a = _as_number([getattr(a, column) for column in columns])
        rows_b = _as_number([getattr(b, column) for column in columns])
        # A row has a partner if the second ledger has more rows like it than the first has before
        # it.
        earlier = jnp.tril(rows_a[:, None] == rows_a, -1).sum(1)
        total += (earlier >= (rows_a[:, None] == rows_b).sum(1)).sum(dtype=jnp.int32)
    return jnp.asarray(total)


def _as_number(columns: list[jax.Array]) -> jax.Array:
    """Pack rows into one number each: every value is below 32."""
    key = columns[0]
    for column in columns[1:]:
        key = key * 32 + column
    return key

"""APIs of the large office.

Each is a function from the world and the arguments to the next world and the rows to show.

An API is declared by a decorator or made by one of the functions below; its name, its arguments and
its one sentence are its documentation and its JSON schema. A call that fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...shared.tool import Argument, Tool
from ..rows import NOUNS, Row, World, drop_row, edit_row, free_id, put_row
from ..words import MAX_NUMBER, MAX_ROW_ID

Rows = Sequence[Row]
Effect = Callable[..., tuple[World, Rows]]


class Failed(Exception):
    """A call that failed, with its reason in one word."""


@dataclass(frozen=True)
class Api:
    """One API.

    Attributes:
        tool: name, sentence and arguments.
        effect: function ``effect(world, **arguments)`` to the next world and the rows to show.
        changes: True if it may change the world.
    """

    tool: Tool
    effect: Effect
    changes: bool

    @property
    def name(self) -> str:
        """The name, of app and verb: ``mail_send``."""
        return self.tool.name


def one_of(meaning: str, words: Sequence[str]) -> Argument:
    """Return an argument that is one of some words."""
    return Argument(meaning, tuple(words))


def row_id(table: str) -> Argument:
    """Return an argument that is the id of a row."""
    return Argument(f"id of a {NOUNS[table]}", low=1, high=MAX_ROW_ID)


def whole_number(meaning: str, low: int = 1, high: int = MAX_NUMBER) -> Argument:
    """Return an argument that is a whole number."""
    return Argument(meaning, low=low, high=high)


def reads(**kinds: Argument) -> Callable[[Callable[..., Rows]], Api]:
    """Declare a function from the world and arguments to rows as an API.

    The function's docstring is the API's one sentence.
    """

    def declare(read: Callable[..., Rows]) -> Api:
        def effect(world: World, **arguments: Any) -> tuple[World, Rows]:
            return world, read(world, **arguments)

        return Api(_tool(read, kinds), effect, changes=False)

    return declare


def writes(**kinds: Argument) -> Callable[[Callable[..., World]], Api]:
    """Declare a function from the world and arguments to the next world as an API.

    The caller sees nothing.
    """

    def declare(write: Callable[..., World]) -> Api:
        def effect(world: World, **arguments: Any) -> tuple[World, Rows]:
            return write(world, **arguments), ()

        return Api(_tool(write, kinds), effect, changes=True)

    return declare


def _tool(function: Callable[..., Any], kinds: Mapping[str, Argument]) -> Tool:
    return Tool(function.__name__, " ".join((function.__doc__ or "").split()), dict(kinds))


# -- rows ------------------------------------------------------------------------------------------


def find_row(world: World, table: str, number: int) -> Row:
    """Return a row.

    Raises:
        Failed: there is none.
    """
    row = world[table].get(number)
    if row is None:
        raise Failed("not_found")
    return row


def add_row(world: World, table: str, **columns: Any) -> World:
    """Return the world with a new row.

    Raises:
        Failed: the table is full.
    """
    number = free_id(world[table])
    if not number:
        raise Failed("table_full")
    return put_row(world, table, number, columns)


def select_rows(
    world: World, table: str, columns: Sequence[str], keep: Callable[[Row], bool]
) -> Rows:
    """Return the rows for which ``keep`` is true, with their ids and some columns."""
    noun = NOUNS[table]
    return [
        {noun: number, **{column: row[column] for column in columns}}
        for number, row in world[table].items()
        if keep(row)
    ]


# -- APIs that many tables have --------------------------------------------------------------------


def lister(
    name: str,
    sentence: str,
    table: str,
    columns: Sequence[str],
    keep: Callable[[Row], bool] = lambda row: True,
    /,
    **kinds: Argument,
) -> Api:
    """Make an API that lists the rows whose columns equal the arguments.

    Only rows for which ``keep`` is true are listed.
    """

    def effect(world: World, **arguments: Any) -> tuple[World, Rows]:
        def fits(row: Row) -> bool:
            return keep(row) and all(row[column] == value for column, value in arguments.items())

        return world, select_rows(world, table, columns, fits)

    return Api(Tool(name, sentence, kinds), effect, changes=False)


def getter(name: str, sentence: str, table: str, columns: Sequence[str]) -> Api:
    """Make an API that shows one row."""
    noun = NOUNS[table]

    def effect(world: World, **arguments: Any) -> tuple[World, Rows]:
        number = arguments[noun]
        row = find_row(world, table, number)
        return world, [{noun: number, **{column: row[column] for column in columns}}]

    return Api(Tool(name, sentence, {noun: row_id(table)}), effect, changes=False)


def setter(name: str, sentence: str, table: str, column: str, argument: Argument) -> Api:
    """Make an API that sets a column of one row."""
    noun = NOUNS[table]

    def effect(world: World, **arguments: Any) -> tuple[World, Rows]:
        return _set_cell(world, table, arguments[noun], column, arguments[column]), ()

    return Api(Tool(name, sentence, {noun: row_id(table), column: argument}), effect, changes=True)


def marker(name: str, sentence: str, table: str, column: str, value: bool) -> Api:
    """Make an API that sets a column of one row to a fixed value."""
    noun = NOUNS[table]

    def effect(world: World, **arguments: Any) -> tuple[World, Rows]:
        return _set_cell(world, table, arguments[noun], column, value), ()

    return Api(Tool(name, sentence, {noun: row_id(table)}), effect, changes=True)


def _set_cell(world: World, table: str, number: int, column: str, value: Any) -> World:
    """Return the world with a new value in one cell.

    Raises:
        Failed: there is no such row, or it has that value already.
    """
    if find_row(world, table, number)[column] == value:
        raise Failed("already_so")
    return edit_row(world, table, number, **{column: value})


def remover(name: str, sentence: str, table: str) -> Api:
    """Make an API that deletes one row."""
    noun = NOUNS[table]

    def effect(world: World, **arguments: Any) -> tuple[World, Rows]:
        find_row(world, table, arguments[noun])
        return drop_row(world, table, arguments[noun]), ()

    return Api(Tool(name, sentence, {noun: row_id(table)}), effect, changes=True)

"""APIs: a function from the world and the arguments to the next world and the rows that the caller sees.

An API is declared by a decorator or made by one of the functions below; its name, its arguments and its one sentence
are its documentation and its JSON schema. A call that fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..shared.tool import Argument, Tool
from .rows import NOUNS, Row, World, drop, edit, free_id, put
from .words import LARGEST, ROWS

Rows = Sequence[Row]
Effect = Callable[..., tuple[World, Rows]]


class Failed(Exception):
    """A call that failed, with its reason in one word."""


@dataclass(frozen=True)
class Api:
    """One API.

    Attributes:
        tool: name, sentence and arguments.
        effect: function ``effect(world, **arguments)`` to the next world and the rows shown.
        changes: True if it may change the world.
    """

    tool: Tool
    effect: Effect
    changes: bool

    @property
    def name(self) -> str:
        """The name, of app and verb: ``mail_send``."""
        return self.tool.name


def words(meaning: str, allowed: Sequence[str]) -> Argument:
    """Return an argument that is one of some words."""
    return Argument(meaning, tuple(allowed))


def row_id(table: str) -> Argument:
    """Return an argument that is the id of a row."""
    return Argument(f"id of a {NOUNS[table]}", low=1, high=ROWS)


def number(meaning: str, low: int = 1, high: int = LARGEST) -> Argument:
    """Return an argument that is a whole number."""
    return Argument(meaning, low=low, high=high)


def reads(**arguments: Argument) -> Callable[[Callable[..., Rows]], Api]:
    """Declare a function from the world and arguments to rows as an API; its docstring is the sentence."""

    def declare(found: Callable[..., Rows]) -> Api:
        def effect(world: World, **given: Any) -> tuple[World, Rows]:
            return world, found(world, **given)

        return Api(_tool(found, arguments), effect, changes=False)

    return declare


def writes(**arguments: Argument) -> Callable[[Callable[..., World]], Api]:
    """Declare a function from the world and arguments to the next world as an API; the caller sees nothing."""

    def declare(changed: Callable[..., World]) -> Api:
        def effect(world: World, **given: Any) -> tuple[World, Rows]:
            return changed(world, **given), ()

        return Api(_tool(changed, arguments), effect, changes=True)

    return declare


def _tool(function: Callable[..., Any], arguments: Mapping[str, Argument]) -> Tool:
    return Tool(function.__name__, (function.__doc__ or "").strip(), dict(arguments))


# -- rows ----------------------------------------------------------------------------------------------------------


def existing(world: World, table: str, row: int) -> Row:
    """Return a row.

    Raises:
        Failed: there is none.
    """
    found = world[table].get(row)
    if found is None:
        raise Failed("not_found")
    return found


def added(world: World, table: str, **columns: Any) -> World:
    """Return the world with a new row.

    Raises:
        Failed: the table is full.
    """
    free = free_id(world[table])
    if not free:
        raise Failed("table_full")
    return put(world, table, free, columns)


def shown(world: World, table: str, columns: Sequence[str], keep: Callable[[Row], bool]) -> Rows:
    """Return the rows that are kept, with their ids and some columns."""
    noun = NOUNS[table]
    return [
        {noun: number, **{column: row[column] for column in columns}}
        for number, row in world[table].items()
        if keep(row)
    ]


# -- APIs that many tables have ----------------------------------------------------------------------------------------


def lister(
    name: str,
    sentence: str,
    table: str,
    columns: Sequence[str],
    keep: Callable[[Row], bool] = lambda row: True,
    /,
    **arguments: Argument,
) -> Api:
    """Make an API that lists the rows whose columns equal the arguments, and that ``keep`` wants."""

    def effect(world: World, **given: Any) -> tuple[World, Rows]:
        wanted = given.items()
        return world, shown(world, table, columns, lambda row: keep(row) and all(row[c] == v for c, v in wanted))

    return Api(Tool(name, sentence, arguments), effect, changes=False)


def getter(name: str, sentence: str, table: str, columns: Sequence[str]) -> Api:
    """Make an API that shows one row."""
    noun = NOUNS[table]

    def effect(world: World, **given: Any) -> tuple[World, Rows]:
        row = existing(world, table, given[noun])
        return world, [{noun: given[noun], **{column: row[column] for column in columns}}]

    return Api(Tool(name, sentence, {noun: row_id(table)}), effect, changes=False)


def setter(name: str, sentence: str, table: str, column: str, argument: Argument) -> Api:
    """Make an API that sets a column of one row."""
    noun = NOUNS[table]

    def effect(world: World, **given: Any) -> tuple[World, Rows]:
        if existing(world, table, given[noun])[column] == given[column]:
            raise Failed("already_so")
        return edit(world, table, given[noun], **{column: given[column]}), ()

    return Api(Tool(name, sentence, {noun: row_id(table), column: argument}), effect, changes=True)


def marker(name: str, sentence: str, table: str, column: str, value: bool) -> Api:
    """Make an API that sets a column of one row to a fixed value."""
    noun = NOUNS[table]

    def effect(world: World, **given: Any) -> tuple[World, Rows]:
        if existing(world, table, given[noun])[column] == value:
            raise Failed("already_so")
        return edit(world, table, given[noun], **{column: value}), ()

    return Api(Tool(name, sentence, {noun: row_id(table)}), effect, changes=True)


def remover(name: str, sentence: str, table: str) -> Api:
    """Make an API that deletes one row."""
    noun = NOUNS[table]

    def effect(world: World, **given: Any) -> tuple[World, Rows]:
        existing(world, table, given[noun])
        return drop(world, table, given[noun]), ()

    return Api(Tool(name, sentence, {noun: row_id(table)}), effect, changes=True)

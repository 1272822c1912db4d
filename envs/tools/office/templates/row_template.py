"""Templates of the large office.

Each says what is planted, what must be reached, and how the oracle gets there.

A template is a function that plants an instance in a random world and returns the world that must
be reached, written in rows and columns, and a plan: a generator that knows the instruction, makes
calls and reads what they show. Judge and plan share the instruction and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from rlbench_suite.puzzle.dice import Dice

from .. import words
from ..population import Tables, copy_tables
from ..rows import Row

Call = tuple[str, dict[str, Any]]
"""Name of an API, and arguments by name."""
Plan = Generator[Call, Sequence[Row], Any]
"""Calls of a plan, which is sent the rows that each one shows.

The plan returns the answer to a question, or None.
"""
Ask = SimpleNamespace
"""Values of an instruction's gaps."""
EASY, MEDIUM, HARD = 1, 2, 3


class Refused(Exception):
    """The end of a plan: the instruction cannot be carried out, for a reason."""


class Scene:
    """A random world in which a template makes room for an instruction.

    Attributes:
        dice: source of random draws.
        world: tables, which a template may change until it copies the :meth:`goal`.
        reason: obstacle that must be planted, or nothing.
        gaps: values of the instruction's gaps, by name.
    """

    def __init__(self, dice: Dice, world: Tables, reason: str) -> None:
        self.dice = dice
        self.world = world
        self.reason = reason
        self.gaps: dict[str, Any] = {}

    def say(self, **values: Any) -> None:
        """Fill gaps of the instruction."""
        self.gaps.update(values)

    def pick(self, table: str, count: int = 1) -> list[int]:
        """Draw different rows of a table."""
        return self.dice.sample(self.world[table], count)

    def row(self, table: str, **columns: Any) -> int:
        """Draw a row of a table and set some of its columns."""
        number: int = self.dice.choice(list(self.world[table]))
        self.world[table][number].update(columns)
        return number

    def another_word(self, words: Sequence[str], *excluded: str) -> str:
        """Draw a word that is none of the excluded ones."""
        return self.dice.choice([word for word in words if word not in excluded])

    def unused(self, words: Sequence[str], table: str, column: str) -> str:
        """Draw a word that no row of a table has in a column."""
        return self.another_word(words, *(row[column] for row in self.world[table].values()))

    def person(self, gap: str = "name") -> int:
        """Pick a contact to name by first name.

        For the obstacles, no contact or two contacts have that name.
        """
        hero, twin = self.pick("contacts", 2)
        contacts = self.world["contacts"]
        name = contacts[hero]["first"]
        if self.reason == "no_such_contact":
            name = self.unused(words.FIRST_NAMES, "contacts", "first")
        if self.reason == "ambiguous_contact":
            contacts[twin].update(
                first=name, last=self.dice.choice(_other_last_names(contacts[hero]["last"]))
            )
        self.say(**{gap: name})
        return hero

    def namesake(self) -> int:
        """Pick a contact who shares a first name with another.

        For the obstacles, none or two match the full name.
        """
        hero, twin = self.pick("contacts", 2)
        contacts = self.world["contacts"]
        row = contacts[hero]
        twin_name, unused_name = self.dice.sample(_other_last_names(row["last"]), 2)
        last = row["last"] if self.reason == "ambiguous_contact" else twin_name
        contacts[twin].update(first=row["first"], last=last)
        self.say(
            name=row["first"], last=unused_name if self.reason == "no_such_contact" else row["last"]
        )
        return hero

    def other_contact(self, *excluded: int) -> int:
        """Draw a contact who is none of the excluded ones."""
        return self.dice.choice(
            [number for number in self.world["contacts"] if number not in excluded]
        )

    def goal(self) -> Tables:
        """Return a copy of the world, to be changed into the one that must be reached."""
        return copy_tables(self.world)

    def free(self, day: str) -> list[str]:
        """Return the hours of a day without an event."""
        busy = {row["time"] for row in self.world["events"].values()}
        return [time for time in words.TIMES if time.startswith(day) and time not in busy]

    def open_day(self, *excluded: str) -> str:
        """Draw a day with a free hour that is none of the excluded ones."""
        return self.dice.choice(
            [day for day in words.DAYS if day not in excluded and self.free(day)]
        )

    def fill_day(self, day: str, fixed: Sequence[int] = ()) -> None:
        """Move events, except the fixed ones, so that a day has no free hour."""
        movable = [
            n
            for n, row in self.world["events"].items()
            if n not in fixed and not row["time"].startswith(day)
        ]
        for event, time in zip(movable, self.free(day), strict=False):
            self.world["events"][event]["time"] = time


def _other_last_names(last: str) -> list[str]:
    """Return the last names that a person of the same first name may have in the same split."""
    return [
        name for name in words.LAST_NAMES[words.LAST_NAMES.index(last) % 2 :: 2] if name != last
    ]


Plant = Callable[[Scene], Tables | tuple[Tables, Any]]


@dataclass(frozen=True)
class Template:
    """One kind of instruction.

    Attributes:
        name: name of the function that plants it.
        specification: condition at the end, in exact words; everything else must be as it was.
        tier: 1 rows named by ids, 2 by names, 3 several steps.
        test: True if only the test split asks it, False if only the train split does.
        wordings: sentences with gaps, all of one meaning.
        reasons: obstacles for which it may have to be refused.
        plant: makes room for it, and returns the world that must be reached, and the answer if it
            is a question.
        plan: the oracle's program.
    """

    name: str
    specification: str
    tier: int
    test: bool
    wordings: tuple[str, ...]
    reasons: tuple[str, ...]
    plant: Plant
    plan: Callable[[Ask], Plan]


def template(
    tier: int,
    plan: Callable[[Ask], Plan],
    *wordings: str,
    reasons: tuple[str, ...] = (),
    test: bool = False,
) -> Callable[[Plant], Template]:
    """Declare a function that plants an instruction as a template.

    The function's docstring is the specification.
    """

    def declare(plant: Plant) -> Template:
        name = getattr(plant, "__name__", "")
        text = " ".join((plant.__doc__ or "").split())
        return Template(name, text, tier, test, wordings, reasons, plant, plan)

    return declare


# -- steps of plans --------------------------------------------------------------------------------


UNCLEAR = ("no_such_contact", "ambiguous_contact")


def call(api: str, /, **arguments: Any) -> Call:
    """Return the call of an API, by its name."""
    return api, arguments


def find_person(a: Ask) -> Plan:
    """Find the contact of the instruction's first name; return the id.

    The last name must fit too if the instruction has one.
    """
    namesakes = yield call("contacts_find", first=a.name)
    rows = [row for row in namesakes if row["last"] == getattr(a, "last", row["last"])]
    if not rows:
        raise Refused("no_such_contact")
    if len(rows) > 1:
        raise Refused("ambiguous_contact")
    return rows[0]["contact"]


def find_row_id(noun: str, api: str, /, **arguments: Any) -> Plan:
    """Make a call that shows one row; return its id."""
    (row,) = yield call(api, **arguments)
    return row[noun]


def check_balance(amount: int) -> Plan:
    """Refuse if the balance does not cover an amount."""
    (account,) = yield call("payments_balance")
    if account["balance"] < amount:
        raise Refused("insufficient_funds")

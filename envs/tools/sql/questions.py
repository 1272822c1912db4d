"""Questions about a database in words, each with the query that answers it.

A template has gaps. ``{a}``, ``{b}``, ``{c}`` and their like are names of the theme; ``{city}``,
``{kind}``, ``{year}``, ``{age}``, ``{size}`` and ``{few}`` are drawn for each instance. Templates
of the test split are never asked on the train split. An instance is posed only if its databases
give different results, so that no constant answers it. All of its databases have the constants of
the question as their focus (:mod:`.database`), so that nearly right queries are wrong on one of
them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rlbench_suite.puzzle.dice import Dice, stream_of

from .database import GROUP, GROUPS, THEMES, database, focus_of

DATABASES = 5
"""Databases on which an answer is judged; the first one is shown."""
_STREAM = stream_of("SQL question")


class Template(NamedTuple):
    """A kind of question."""

    tier: int
    """1 one table, 2 several tables or groups, 3 nested."""
    split: int
    """0 train, 1 test."""
    question: str
    query: str
    ordered: bool = False
    """Whether the order of the rows counts."""


_JOIN = "{c} JOIN {a} ON {a}.id = {one_a}_id"
_JOIN_B = "{c} JOIN {b} ON {b}.id = {one_b}_id"
TEMPLATES = (
    Template(
        1, 0, "How many {a} live in {city}?",
        "SELECT COUNT(*) FROM {a} WHERE city = '{city}'",
    ),
    Template(
        1, 0, "What are the names of the {a} older than {age}?",
        "SELECT name FROM {a} WHERE age > {age}",
    ),
    Template(
        1, 0, "What is the largest {size_} among {b} whose {kind_} is {kind}?",
        "SELECT MAX({size_}) FROM {b} WHERE {kind_} = '{kind}'",
    ),
    Template(
        1, 0, "How many {c} were there in {year}?",
        "SELECT COUNT(*) FROM {c} WHERE year = {year}",
    ),
    Template(
        1, 0, "List name and {size_} of all {b}, the largest {size_} first.",
        "SELECT name, {size_} FROM {b} ORDER BY {size_} DESC", True,
    ),
    Template(
        1, 1, "How many {a} are younger than {age} and live in {city}?",
        "SELECT COUNT(*) FROM {a} WHERE age < {age} AND city = '{city}'",
    ),
    Template(
        1, 1, "What is the average age of the {a} from {city}?",
        "SELECT AVG(age) FROM {a} WHERE city = '{city}'",
    ),
    Template(
        1, 1,
        "List the names of the {b} whose {size_} is below {size}, the smallest {size_} first.",
        "SELECT name FROM {b} WHERE {size_} < {size} ORDER BY {size_}", True,
    ),
    Template(
        2, 0, "What is the total number of {amount} in {c} of {a} from {city}?",
        f"SELECT SUM({{amount}}) FROM {_JOIN} WHERE city = '{{city}}'",
    ),
    Template(
        2, 0, "Which {a} had a {one_c} in {year}? Give each name once.",
        f"SELECT DISTINCT name FROM {_JOIN} WHERE year = {{year}}",
    ),
    Template(
        2, 0, "For each {kind_}, how many {b} are there? Give the {kind_} and the number.",
        "SELECT {kind_}, COUNT(*) FROM {b} GROUP BY {kind_}",
    ),
    Template(
        2, 0,
        (
            "For each {one_b} that occurs in {c}, what is the largest number of {amount}? Give "
            "name and number."
        ),
        f"SELECT name, MAX({{amount}}) FROM {_JOIN_B} GROUP BY {{b}}.id",
    ),
    Template(
        2, 1,
        "For each year, what is the total number of {amount} in {c}? Give the year and the total.",
        "SELECT year, SUM({amount}) FROM {c} GROUP BY year",
    ),
    Template(
        2, 1, "How many {c} concern {b} whose {kind_} is {kind}?",
        f"SELECT COUNT(*) FROM {_JOIN_B} WHERE {{kind_}} = '{{kind}}'",
    ),
    Template(
        2, 1, "How many different {a} had a {one_c} with more than {few} {amount}?",
        "SELECT COUNT(DISTINCT {one_a}_id) FROM {c} WHERE {amount} > {few}",
    ),
    Template(
        3, 0, "Which {a} have no {c}? Give their names.",
        "SELECT name FROM {a} WHERE id NOT IN (SELECT {one_a}_id FROM {c})",
    ),
    Template(
        3, 0, "Which {a} are older than the average of all {a}? Give their names.",
        "SELECT name FROM {a} WHERE age > (SELECT AVG(age) FROM {a})",
    ),
    Template(
        3, 0, "Which {b} occur in {c} of at least two different years? Give their names.",
        f"SELECT name FROM {_JOIN_B} GROUP BY {{b}}.id HAVING COUNT(DISTINCT year) >= 2",
    ),
    Template(
        3, 0,
        (
            "Which {a} had a {one_c} with {b} whose {kind_} is {kind}, but none with other {b}? "
            "Give their names."
        ),
        f"SELECT name FROM {{a}} WHERE id IN (SELECT {{one_a}}_id FROM {_JOIN_B} WHERE {{kind_}} "
        f"= '{{kind}}') AND id NOT IN (SELECT {{one_a}}_id FROM {_JOIN_B} WHERE {{kind_}} <> "
        f"'{{kind}}')",
    ),
    Template(
        3, 1, "Which {b} never occur in {c}? Give their names.",
        "SELECT name FROM {b} WHERE id NOT IN (SELECT {one_b}_id FROM {c})",
    ),
    Template(
        3, 1,
        (
            "Which {a} have the largest total number of {amount} in their {c}? Give the names; "
            "there may be several."
        ),
        f"SELECT name FROM {_JOIN} GROUP BY {{a}}.id HAVING SUM({{amount}}) = (SELECT MAX(s) FROM "
        "(SELECT SUM({amount}) AS s FROM {c} GROUP BY {one_a}_id))",
    ),
    Template(
        3, 1, "Which {a} have at least {some} {c}? Give name and number of {c}.",
        f"SELECT name, COUNT(*) FROM {_JOIN} GROUP BY {{a}}.id HAVING COUNT(*) >= {{some}}",
    ),
    Template(
        3, 1,
        "What is the average over all {a} of their number of {c}, counting those who have none?",
        "SELECT (SELECT COUNT(*) FROM {c}) * 1.0 / (SELECT COUNT(*) FROM {a})",
    ),
)  # fmt: skip


class Instance(NamedTuple):
    """A question, its answer, and the databases on which an answer is judged."""

    theme: int
    question: str
    query: str
    ordered: bool
    seeds: tuple[int, ...]


@lru_cache(maxsize=4096)
def instance(tier: int, split: int, number: int) -> Instance:
    """Return the instance of a number."""
    dice = Dice(_STREAM, number, 2 * tier + split)
    templates = [
        template for template in TEMPLATES if (template.tier, template.split) == (tier, split)
    ]
    theme = dice.below(len(THEMES))
    names = THEMES[theme]
    while True:
        template = dice.choice(templates)
        first = GROUP * (GROUPS * split + dice.below(GROUPS))
        focus = focus_of(theme, first)
        gaps = focus._asdict() | {
            "a": names.a, "one_a": names.one_a, "b": names.b, "one_b": names.one_b, "c": names.c,
            "one_c": names.one_c, "kind_": names.kind, "size_": names.size, "amount": names.amount,
            "some": dice.between(2, 3),
        }  # fmt: skip
        seeds = tuple(first + seed for seed in dice.sample(range(GROUP), DATABASES))
        query = template.query.format(**gaps)
        results = [database(theme, seed).run(query) for seed in seeds]
        # No one right answer.
        empty = any(value is None for rows in results for row in rows for value in row)
        if len(set(results)) >= 3 and all(results) and not empty:
            return Instance(theme, template.question.format(**gaps), query, template.ordered, seeds)


def agree(
    rows: tuple[tuple[object, ...], ...], expected: tuple[tuple[object, ...], ...], ordered: bool
) -> bool:
    """Return whether two results have equal rows, in any order unless it counts.

    Floats are equal within one in 10**9.
    """
    if len(rows) != len(expected):
        return False
    if not ordered:
        rows, expected = (tuple(sorted(some, key=_rank)) for some in (rows, expected))
    return all(
        len(row) == len(expected_row) and all(map(_is_equal, row, expected_row))
        for row, expected_row in zip(rows, expected, strict=True)
    )


def _rank(row: tuple[object, ...]) -> tuple[tuple[str, object], ...]:
    """Return a key that sorts rows of mixed types.

    Floats are rounded, so that near ones sort alike.
    """
    return tuple(
        ("number", round(value, 6))
        if isinstance(value, (int, float))
        else (type(value).__name__, str(value))
        for value in row
    )


def _is_equal(value: object, expected: object) -> bool:
    if isinstance(value, (int, float)) and isinstance(expected, (int, float)):
        return abs(value - expected) <= 1e-9 * max(1.0, abs(expected))
    return type(value) is type(expected) and value == expected

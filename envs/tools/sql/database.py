"""Small databases of one family of schemas, filled at random, and harmless queries on them.

Every schema has two tables of things and one that links them, under the names of a theme:
customers, products and orders; readers, books and loans; and so on. The same seed fills the same
rows.

A query runs in SQLite on a copy in memory. An authoriser lets it read these tables and call
harmless functions, and nothing else: no ATTACH, no PRAGMA, no write, no function that is random,
tells the time or makes long values. Work, length of values, depth and number of rows are limited.
So an answer comes within milliseconds, and the slowest queries that attackers found take a third of
a second.

Databases come in groups. Each group has a :class:`Focus`, the constants of the questions that are
asked of it, and every database of the group has rows on both sides of each constant and exactly at
it. So a query with ``>`` in place of ``>=``, one that forgets a tie, or one that counts somebody
twice gives other rows on some of them.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from rlbench_suite.puzzle.dice import Dice, stream_of

CITIES = ("Bern", "Cairo", "Hanoi", "Lima", "Oslo", "Quito", "Riga", "Turin")
PEOPLE = (
    "Ada", "Bela", "Cleo", "Dora", "Egon", "Fay", "Gus", "Hana", "Ivo", "Jana", "Kofi", "Lena",
    "Milo", "Nora", "Otto", "Pia", "Quin", "Rosa", "Sven", "Tara", "Ugo", "Vera", "Wim", "Xena",
    "Yara", "Zoe",
)  # fmt: skip
YEARS = (2019, 2020, 2021, 2022)
MAX_QUERY_LENGTH = 4_000
"""Characters of a query."""
MAX_ROWS = 200
"""Rows of a result."""
STEPS = 100_000
"""Instructions of SQLite's machine that a query may take."""
FEW_STEPS = 20_000
"""Instructions that a query with a slow function may take."""
TICK = 1_000
"""Instructions after which they are counted again."""
SLOW = frozenset({"like", "instr", "group_concat", "string_agg", "trim", "ltrim", "rtrim"})
"""Functions whose one call may take as long as a hundred instructions."""
GROUP = 8
"""Databases of a group."""
GROUPS = 16
"""Groups of a theme and a split."""
LEADERS = (1, 1, 2, 2, 3, 3, 3, 3)
"""People who share the largest total, for each database of a group."""
_HARMLESS = (
    "abs avg ceil ceiling coalesce count cume_dist dense_rank first_value floor group_concat "
    "ifnull iif instr lag last_value lead length like lower ltrim max min nth_value ntile nullif "
    "percent_rank rank round row_number rtrim sign string_agg substr substring sum total trim "
    "typeof upper"
)
FUNCTIONS = frozenset(_HARMLESS.split())
EXPLANATIONS = frozenset(
    {
        ("addr", "opcode", "p1", "p2", "p3", "p4", "p5", "comment"),
        ("id", "parent", "notused", "detail"),
    }
)
"""Columns of the results of EXPLAIN and EXPLAIN QUERY PLAN.

Comments can hide these words from a look at the query.
"""
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000,  # also of strings, so that one LIKE stays short
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_QUERY_LENGTH,
    sqlite3.SQLITE_LIMIT_COLUMN: 32,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50,
}


@dataclass(frozen=True)
class Theme:
    """Names of one schema.

    Attributes:
        a: table of people: ``id, name, city, age``.
        one_a: one of them.
        b: table of things: ``id, name``, a kind and a size.
        one_b: one of them.
        kind: column of the kind of a thing.
        kinds: values of that column.
        size: column of a whole number, different for each thing.
        c: table of links between a person and a thing: ``id``, both ids, an amount, ``year``.
        one_c: one of them.
        amount: column of a whole number.
        things: names of things.
    """

    a: str
    one_a: str
    b: str
    one_b: str
    kind: str
    kinds: tuple[str, ...]
    size: str
    c: str
    one_c: str
    amount: str
    things: tuple[str, ...]

    @cached_property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """Columns of each table."""
        return {
            self.a: ("id", "name", "city", "age"),
            self.b: ("id", "name", self.kind, self.size),
            self.c: ("id", f"{self.one_a}_id", f"{self.one_b}_id", self.amount, "year"),
        }

    @cached_property
    def schema(self) -> str:
        """Statements that make the tables."""
        text = {"name", "city", self.kind}
        lines = []
        for table, columns in self.tables.items():
            typed = ", ".join(
                f"{column} {'TEXT' if column in text else 'INTEGER'}" for column in columns
            )
            lines.append(f"CREATE TABLE {table} ({typed});")
        return "\n".join(lines)


THEMES = (
    Theme(
        "customers", "customer", "products", "product", "kind", ("food", "book", "toy", "tool"),
        "price", "orders", "order", "pieces",
        ("lamp", "rope", "kite", "drum", "atlas", "pasta", "honey", "saw", "robot", "novel", "tea"),
    ),
    Theme(
        "readers", "reader", "books", "book", "genre", ("poetry", "crime", "travel", "history"),
        "pages", "loans", "loan", "days",
        (
            "Ashes", "Brine", "Cinder", "Dusk", "Ember", "Frost", "Gale", "Islet", "Kelp", "Loam",
            "Moss",
        ),
    ),
    Theme(
        "patients", "patient", "doctors", "doctor", "field", ("skin", "heart", "bones", "eyes"),
        "fee", "visits", "visit", "minutes",
        ("Abt", "Boyd", "Cruz", "Diaz", "Ekow", "Fitz", "Gray", "Holt", "Ito", "Jung", "Lund"),
    ),
    Theme(
        "students", "student", "courses", "course", "subject", ("music", "maths", "art", "law"),
        "hours", "exams", "exam", "mark",
        (
            "Forms", "Graphs", "Fugues", "Torts", "Prints", "Rings", "Choirs", "Clay", "Chaos",
            "Deeds",
        ),
    ),
)  # fmt: skip
_STREAM = stream_of("SQL database")
_FOCUS = stream_of("SQL focus")


class Focus(NamedTuple):
    """Constants of the questions that are asked of a group of databases."""

    city: str
    kind: str
    year: int
    age: int
    size: int
    few: int
    """Amount of a link."""


@lru_cache(maxsize=1024)
def focus_of(theme: int, seed: int) -> Focus:
    """Return the constants of the group to which a seed belongs."""
    dice = Dice(_FOCUS, seed // GROUP, theme)
    return Focus(
        city=dice.choice(CITIES),
        kind=dice.choice(THEMES[theme].kinds),
        year=dice.choice(YEARS),
        age=dice.between(25, 70),
        size=dice.between(20, 50),
        few=dice.between(5, 15),
    )


def _people(dice: Dice, focus: Focus) -> list[tuple[str, str, int]]:
    """Draw name, city and age of people in the order of their roles in :func:`_links`.

    The first four live in the focus' city, one year younger than its age, as old, and twice one
    year older. The eighth is as old as all of them are on average.
    """
    count = dice.between(9, 14)
    names = dice.sample(PEOPLE, count)
    cities = [focus.city, *dice.sample(CITIES, 3)]
    ages = [focus.age - 1, focus.age, focus.age + 1, focus.age + 1] + [
        dice.between(18, 80) for _ in range(count - 4)
    ]
    mean = ages[7] = sum(ages) // count
    missing = count * mean - sum(ages)
    who = 4
    while missing:
        change = max(-1, min(1, missing))
        if who != 7 and 16 <= ages[who] + change <= 90:
            ages[who] += change
            missing -= change
        who = who + 1 if who + 1 < count else 4
    homes = [focus.city] * 4 + [dice.choice(cities) for _ in range(count - 4)]
    return list(zip(names, homes, ages, strict=True))


def _things(dice: Dice, focus: Focus, theme: Theme) -> list[tuple[str, str, int]]:
    """Draw name, kind and size of things in the order of their roles.

    The kinds are: two of the focus' kind, two of others, any, one of the focus' kind, any.

    Three sizes are one below the focus' size, at it, and one above; at least two more are below.
    """
    count = dice.between(7, 10)
    other_kinds = [kind for kind in theme.kinds if kind != focus.kind]
    kinds = [focus.kind] * 2 + [dice.choice(other_kinds) for _ in range(2)] + [
        dice.choice(theme.kinds) for _ in range(count - 4)
    ]  # fmt: skip
    kinds[5] = focus.kind
    near = [focus.size - 1, focus.size, focus.size + 1]
    low = dice.sample(range(5, focus.size - 1), 2)
    distant = dice.sample([size for size in range(5, 60) if size not in near + low], count - 5)
    return list(
        zip(
            dice.sample(theme.things, count),
            kinds,
            dice.shuffled(near + low + distant),
            strict=True,
        )
    )


def _links(
    dice: Dice, focus: Focus, people: int, things: int, leaders: int
) -> list[tuple[int, int, int, int]]:
    """Draw person, thing, amount and year of links, people and things by their roles.

    People: 0 has two links with things of the focus' kind, both one above ``few`` and in one year;
    1 and 2 have links with that kind alone, or none; 3 has three with another kind, in two years; 4
    has four, two of them in the focus' year, of both kinds; 5 has one of just ``few``; 6 has none;
    8 has one above it. The largest total is that of 4, and of 3 and 7 if there are several leaders.
    Things: 0 has links of one year, 1 of two years, and 4 none.
    """
    years = dice.shuffled(list(YEARS))
    other_years = [year for year in YEARS if year != focus.year]
    links = [(0, 0, focus.few + 1, years[0])] * 2
    links += [
        (5, 3, focus.few, dice.choice(other_years)),
        (8, 2, focus.few + 1, dice.choice(YEARS)),
    ]
    free = [2, 3, 5, *(number for number in range(6, things) if dice.below(2))]
    for who in [1, 2, *range(9, people)]:
        options = [5] if who < 3 else free
        links += [
            (who, dice.choice(options), dice.between(1, 12), dice.choice(YEARS))
            for _ in range(dice.below(4))
        ]
    totals: dict[int, int] = {}
    for who, _, amount, _ in links:
        totals[who] = totals.get(who, 0) + amount
    highest = max(totals.values()) + dice.between(1, 5)
    third = _split_total(dice, highest - (leaders < 2), 3)
    fourth = _split_total(dice, highest, 4)
    links += [(3, 2, amount, years[index // 2]) for index, amount in enumerate(third)]
    links += [
        (4, 3, fourth[0], focus.year), (4, dice.choice(free), fourth[1], focus.year),
        (4, 1, fourth[2], years[1]), (4, 1, fourth[3], years[2]),
    ]  # fmt: skip
    if leaders > 2:
        links += [
            (7, dice.choice(free), amount, dice.choice(YEARS))
            for amount in _split_total(dice, highest, 3)
        ]
    return dice.shuffled(links)


def _split_total(dice: Dice, total: int, count: int) -> list[int]:
    """Split a total of at most 42 into 3 or 4 parts of 1 to 20, two of them equal."""
    twice = dice.between(
        max(1, (total - 20 * (count - 2) + 1) // 2), min(20, (total - count + 2) // 2)
    )
    remainder = total - 2 * twice
    if count == 3:
        return [twice, twice, remainder]
    third = dice.between(max(1, remainder - 20), min(20, remainder - 1))
    return [twice, twice, third, remainder - third]


class Database:
    """One filled database.

    Args:
        theme: number of the theme.
        seed: seed of the rows.
    """

    def __init__(self, theme: int, seed: int) -> None:
        self.theme = THEMES[theme]
        dice = Dice(_STREAM, seed, theme)
        names = self.theme
        focus = focus_of(theme, seed)
        people = _people(dice, focus)
        things = _things(dice, focus, names)
        links = _links(dice, focus, len(people), len(things), leaders=LEADERS[seed % GROUP])
        ids = [dice.shuffled(range(1, len(table) + 1)) for table in (people, things)]
        rows: dict[str, list[tuple[Any, ...]]] = {
            names.a: sorted((ids[0][role], *row) for role, row in enumerate(people)),
            names.b: sorted((ids[1][role], *row) for role, row in enumerate(things)),
            names.c: [
                (i, ids[0][a], ids[1][b], amount, year)
                for i, (a, b, amount, year) in enumerate(links, 1)
            ],
        }
        # The threads of a server share the connection, so each query takes the lock. Without it
        # they stop for ever: a thread that counts steps waits for Python's lock while one that
        # fetches rows holds it and waits for SQLite's. Statements are compiled anew, because only
        # then the authoriser sees their functions, on which the limit of steps depends.
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
        )
        self._connection.executescript(names.schema)
        for table, content in rows.items():
            self._connection.executemany(
                f"INSERT INTO {table} VALUES ({','.join('?' * len(content[0]))})", content
            )
        for limit, value in _LIMITS.items():
            self._connection.setlimit(limit, value)
        self._allowed = self._used = 0
        self._connection.set_progress_handler(self._tick, TICK)
        self._connection.set_authorizer(self._authorise)

    def _tick(self) -> bool:
        """Count work; true ends the query."""
        self._used += TICK
        return self._used >= self._allowed

    def _authorise(self, action: int, first: str | None, second: str | None, *_: Any) -> int:
        """Allow reading the tables and calling harmless functions."""
        if action in _ALLOWED:
            return (
                sqlite3.SQLITE_DENY if first and first.startswith("sqlite_") else sqlite3.SQLITE_OK
            )
        if action == sqlite3.SQLITE_FUNCTION and second and second.lower() in FUNCTIONS:
            if second.lower() in SLOW:
                self._allowed = FEW_STEPS
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def run(self, query: str) -> tuple[tuple[Any, ...], ...]:
        """Return the rows of a query.

        Raises:
            ValueError: the query fails, is not allowed, or exceeds a limit; the message says why.
        """
        if len(query) > MAX_QUERY_LENGTH:
            raise ValueError(f"a query has at most {MAX_QUERY_LENGTH} characters, got {len(query)}")
        if not query.strip():
            raise ValueError("the query is empty")
        with self._lock:
            return self._run(query)

    def _run(self, query: str) -> tuple[tuple[Any, ...], ...]:
        """Return the rows of a query, as :meth:`run` does, for the thread that has the lock."""
        self._allowed = STEPS
        self._used = 0
        try:
            with closing(self._connection.execute(query)) as cursor:
                columns = tuple(column[0] for column in cursor.description or ())
                if not columns or columns in EXPLANATIONS:
                    raise ValueError("only SELECT is allowed")
                rows = cursor.fetchmany(MAX_ROWS + 1)
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            message = str(error)
            if message == "interrupted":
                message = f"the query takes more than {self._allowed} steps"
            raise ValueError(message[:200]) from None
        if len(rows) > MAX_ROWS:
            raise ValueError(f"the result has more than {MAX_ROWS} rows")
        return tuple(rows)


@lru_cache(maxsize=1024)
def database(theme: int, seed: int) -> Database:
    """Return the filled database of a seed, made once."""
    return Database(theme, seed)

"""Small databases of one family of schemas, filled at random, and queries on them that can do no harm.

Every schema has two tables of things and one that links them, under the names of a theme: customers, products and
orders; readers, books and loans; and so on. The same seed fills the same rows.

A query runs in SQLite on a copy in memory. An authoriser lets it read these tables and call harmless functions, and
nothing else: no ATTACH, no PRAGMA, no write, no function that is random, tells the time or makes long values. Work,
length of values, depth and number of rows are limited, so that an answer comes within milliseconds.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from rlbench_suite.dice import Dice, stream_of

CITIES = ("Bern", "Cairo", "Hanoi", "Lima", "Oslo", "Quito", "Riga", "Turin")
PEOPLE = (
    "Ada", "Bela", "Cleo", "Dora", "Egon", "Fay", "Gus", "Hana", "Ivo", "Jana", "Kofi", "Lena", "Milo", "Nora", "Otto",
    "Pia", "Quin", "Rosa", "Sven", "Tara", "Ugo", "Vera", "Wim", "Xena", "Yara", "Zoe",
)  # fmt: skip
YEARS = (2019, 2020, 2021, 2022)
LONGEST, MOST_ROWS = 4_000, 200
"""Characters of a query; rows of a result."""
_STEPS, _TICK = 200_000, 1_000
"""Instructions of SQLite's machine that a query may take, and how often they are counted."""
_HARMLESS = (
    "abs avg ceil ceiling coalesce count cume_dist dense_rank first_value floor group_concat ifnull iif instr lag "
    "last_value lead length like lower ltrim max min nth_value ntile nullif percent_rank rank round row_number rtrim "
    "sign string_agg substr substring sum total trim typeof upper"
)
FUNCTIONS = frozenset(_HARMLESS.split())
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 8_000,  # also of strings, so that one LIKE stays short
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: LONGEST,
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
            typed = ", ".join(f"{column} {'TEXT' if column in text else 'INTEGER'}" for column in columns)
            lines.append(f"CREATE TABLE {table} ({typed});")
        return "\n".join(lines)


THEMES = (
    Theme(
        "customers", "customer", "products", "product", "kind", ("food", "book", "toy", "tool"), "price", "orders",
        "order", "pieces", ("lamp", "rope", "kite", "drum", "atlas", "pasta", "honey", "saw", "robot", "novel", "tea"),
    ),
    Theme(
        "readers", "reader", "books", "book", "genre", ("poetry", "crime", "travel", "history"), "pages", "loans",
        "loan", "days", ("Ashes", "Brine", "Cinder", "Dusk", "Ember", "Frost", "Gale", "Islet", "Kelp", "Loam", "Moss"),
    ),
    Theme(
        "patients", "patient", "doctors", "doctor", "field", ("skin", "heart", "bones", "eyes"), "fee", "visits",
        "visit", "minutes", ("Abt", "Boyd", "Cruz", "Diaz", "Ekow", "Fitz", "Gray", "Holt", "Ito", "Jung", "Lund"),
    ),
    Theme(
        "students", "student", "courses", "course", "subject", ("music", "maths", "art", "law"), "hours", "exams",
        "exam", "mark", ("Forms", "Graphs", "Fugues", "Torts", "Prints", "Rings", "Choirs", "Clay", "Chaos", "Deeds"),
    ),
)  # fmt: skip
_STREAM = stream_of("SQL database")


class Database:
    """One filled database.

    Args:
        theme: number of the theme.
        seed: seed of the rows.
    """

    def __init__(self, theme: int, seed: int) -> None:
        self.theme = THEMES[theme]
        dice, one = Dice(_STREAM, seed, theme), self.theme
        people, things = dice.between(9, 14), dice.between(6, 9)
        sizes = dice.sample(range(5, 60), things)
        # Half of the people and things live in few cities and kinds, so that groups have several members.
        cities, names = dice.sample(CITIES, 4), dice.sample(PEOPLE, people)
        rows: dict[str, list[tuple[Any, ...]]] = {
            one.a: [(i + 1, names[i], dice.choice(cities), dice.between(18, 80)) for i in range(people)],
            one.b: [
                (i + 1, name, dice.choice(one.kinds), sizes[i])
                for i, name in enumerate(dice.sample(one.things, things))
            ],
            one.c: [
                (i + 1, 1 + dice.below(people), 1 + dice.below(things), dice.between(1, 20), dice.choice(YEARS))
                for i in range(dice.between(14, 22))
            ],
        }
        # A connection may be used by the threads of a server, one after another.
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.executescript(one.schema)
        for table, content in rows.items():
            self._connection.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(content[0]))})", content)
        for limit, value in _LIMITS.items():
            self._connection.setlimit(limit, value)
        self._left = 0
        self._connection.set_progress_handler(self._tick, _TICK)
        self._connection.set_authorizer(_authorise)

    def _tick(self) -> bool:
        """Count work; true ends the query."""
        self._left -= _TICK
        return self._left < 0

    def run(self, query: str) -> tuple[tuple[Any, ...], ...]:
        """Return the rows of a query.

        Raises:
            ValueError: the query fails, is not allowed, or exceeds a limit; the message says why.
        """
        if len(query) > LONGEST:
            raise ValueError(f"a query has at most {LONGEST} characters, got {len(query)}")
        if not query.strip():
            raise ValueError("the query is empty")
        if query.lstrip().upper().startswith("EXPLAIN"):
            raise ValueError("only SELECT is allowed")
        self._left = _STEPS
        try:
            cursor = self._connection.execute(query)
            if cursor.description is None:
                raise ValueError("only SELECT is allowed")
            rows = cursor.fetchmany(MOST_ROWS + 1)
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            message = str(error)
            if message == "interrupted":
                message = f"the query takes more than {_STEPS} steps"
            raise ValueError(message[:200]) from None
        if len(rows) > MOST_ROWS:
            raise ValueError(f"the result has more than {MOST_ROWS} rows")
        return tuple(rows)


@lru_cache(maxsize=1024)
def database(theme: int, seed: int) -> Database:
    """Return the filled database of a seed, made once."""
    return Database(theme, seed)


def _authorise(action: int, first: str | None, second: str | None, *_: Any) -> int:
    """Allow reading the tables and calling harmless functions."""
    if action in _ALLOWED:
        return sqlite3.SQLITE_DENY if first and first.startswith("sqlite_") else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second and second.lower() in FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY

"""SQL: its queries against plain Python, and its judge against near misses.

The database and the answer are attacked too.
"""

from __future__ import annotations

import re
import sqlite3
import statistics
import subprocess
import sys
from collections import Counter
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.envs.tools.sql import sql
from rlbench_suite.envs.tools.sql.database import (
    CITIES,
    FEW_STEPS,
    GROUP,
    MAX_ROWS,
    PEOPLE,
    STEPS,
    THEMES,
    TICK,
    database,
    focus_of,
)
from rlbench_suite.envs.tools.sql.questions import TEMPLATES, agree, instance
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants


def tables(theme: int, seed: int) -> tuple[list[Any], list[Any], list[Any]]:
    base = database(theme, seed)
    return tuple([*base.run(f"SELECT * FROM {name}")] for name in base.theme.tables)  # type: ignore[return-value]


def linked(c: list[Any], person: Any) -> list[Any]:
    return [x for x in c if x[1] == person[0]]


def kinds(b: list[Any], links: list[Any]) -> set[str]:
    return {t[2] for t in b for x in links if x[2] == t[0]}


def totals(a: list[Any], c: list[Any]) -> dict[str, int]:
    return {p[1]: sum(x[3] for x in linked(c, p)) for p in a if linked(c, p)}


ACCOUNTS: dict[str, Any] = {
    "younger than": lambda a, b, c, n, word: [(sum(p[2] == word and p[3] < n for p in a),)],
    "live in": lambda a, b, c, n, word: [(sum(p[2] == word for p in a),)],
    "older than the average": lambda a, b, c, n, word: [
        (p[1],) for p in a if p[3] > statistics.fmean(q[3] for q in a)
    ],
    "older than": lambda a, b, c, n, word: [(p[1],) for p in a if p[3] > n],
    "What is the largest": lambda a, b, c, n, word: [
        (max((t[3] for t in b if t[2] == word), default=None),)
    ],
    "were there in": lambda a, b, c, n, word: [(sum(x[4] == n for x in c),)],
    "List name": lambda a, b, c, n, word: [(t[1], t[3]) for t in sorted(b, key=lambda t: -t[3])],
    "List the names": lambda a, b, c, n, word: [
        (t[1],) for t in sorted(b, key=lambda t: t[3]) if t[3] < n
    ],
    "average age": lambda a, b, c, n, word: [
        (statistics.fmean(ages) if (ages := [p[3] for p in a if p[2] == word]) else None,)
    ],
    "For each year": lambda a, b, c, n, word: [
        (y, sum(x[3] for x in c if x[4] == y)) for y in {x[4] for x in c}
    ],
    "largest total": lambda a, b, c, n, word: [
        (k,) for k, s in totals(a, c).items() if s == max(totals(a, c).values())
    ],
    "total number": lambda a, b, c, n, word: [
        (
            sum(x[3] for p in a if p[2] == word for x in linked(c, p))
            if kinds(b, c) and any(linked(c, p) for p in a if p[2] == word)
            else None,
        )
    ],
    "name once": lambda a, b, c, n, word: [
        (p[1],) for p in a if any(x[4] == n for x in linked(c, p))
    ],
    "that occurs in": lambda a, b, c, n, word: [
        (t[1], max(x[3] for x in c if x[2] == t[0])) for t in b if any(x[2] == t[0] for x in c)
    ],
    "For each": lambda a, b, c, n, word: [*Counter(t[2] for t in b).items()],
    "concern": lambda a, b, c, n, word: [
        (sum(t[2] == word for x in c for t in b if t[0] == x[2]),)
    ],
    "How many different": lambda a, b, c, n, word: [(len({x[1] for x in c if x[3] > n}),)],
    "have no ": lambda a, b, c, n, word: [(p[1],) for p in a if not linked(c, p)],
    "two different years": lambda a, b, c, n, word: [
        (t[1],) for t in b if len({x[4] for x in c if x[2] == t[0]}) > 1
    ],
    "but none with": lambda a, b, c, n, word: [
        (p[1],) for p in a if kinds(b, linked(c, p)) == {word}
    ],
    "never occur": lambda a, b, c, n, word: [(t[1],) for t in b if all(x[2] != t[0] for x in c)],
    "have at least": lambda a, b, c, n, word: [
        (p[1], len(linked(c, p))) for p in a if len(linked(c, p)) >= n
    ],
    "average over all": lambda a, b, c, n, word: [(len(c) / len(a),)],
}
"""Answers by words of the question, without SQL.

They take people (id, name, city, age), things, links, and a name in the question.
"""


def answer(question: str, theme: int, a: Any, b: Any, c: Any) -> tuple[Any, ...]:
    """Return the rows that answer a question."""
    numbers = re.findall(r"\d+", question)
    words = [
        word for word in (*CITIES, *THEMES[theme].kinds) if re.search(rf"\b{word}\b", question)
    ]
    account = next(candidate for marker, candidate in ACCOUNTS.items() if marker in question)
    return tuple(
        account(a, b, c, int(numbers[0]) if numbers else None, words[0] if words else None)
    )


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_queries_say_what_the_questions_ask(tier: int) -> None:
    for split in (0, 1):
        for number in range(60):
            exercise = instance(tier, split, number)
            results = [
                answer(exercise.question, exercise.theme, *tables(exercise.theme, seed))
                for seed in exercise.seeds
            ]
            for seed, expected in zip(exercise.seeds, results, strict=True):
                assert agree(
                    database(exercise.theme, seed).run(exercise.query), expected, exercise.ordered
                ), exercise.question
            assert sql.judge(exercise, exercise.query)
            columns = len(results[0][0])
            # What holds for the shown rows alone is no answer: neither a constant nor all constants
            # at once.
            rows = [f"SELECT {', '.join(repr(v) for v in row)}" for row in results[0]]
            assert not sql.judge(exercise, " UNION ALL ".join(rows[:8]))
            everything = [row for some in results for row in some]
            every = {f"SELECT {', '.join(repr(v) for v in row)}" for row in everything}
            assert not sql.judge(exercise, " UNION ALL ".join(sorted(every)[:10]))
            for table, names in database(exercise.theme, exercise.seeds[0]).theme.tables.items():
                assert not sql.judge(exercise, f"SELECT {', '.join(names[:columns])} FROM {table}")
            assert sql.to_text(sql.to_tokens(exercise.query, sql.LENGTH)) == exercise.query
    train, test = ({t.question for t in TEMPLATES if t.split == split} for split in (0, 1))
    assert not train & test


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_the_commonest_query_is_seldom_asked_for(tier: int) -> None:
    """Whoever answers with one query, whatever is asked, is right so often."""
    queries = Counter(instance(tier, 1, number).query for number in range(300))
    assert queries.most_common(1)[0][1] <= 30


BOMB = "SELECT COUNT(*) FROM " + ", ".join(f"{{0}} t{number}" for number in range(8))
FORBIDDEN = [
    "ATTACH ':memory:' AS x", "PRAGMA table_info({0})", "DELETE FROM {0}", "UPDATE {0} SET id = 0",
    "DROP TABLE {0}", "INSERT INTO {0} DEFAULT VALUES", "CREATE TABLE t (x)",
    "CREATE TEMP VIEW v AS SELECT 1", "VACUUM", "BEGIN", "SELECT * FROM sqlite_master",
    "SELECT * FROM pragma_table_info('{0}')", "SELECT load_extension('x')", "SELECT random()",
    "SELECT zeroblob(1000000000)", "SELECT printf('%1000000d', 1)", "SELECT datetime('now')",
    "SELECT 1; SELECT 2", "EXPLAIN SELECT 1", "/**/EXPLAIN SELECT 1", ";EXPLAIN SELECT 1",
    "-- x\nEXPLAIN SELECT 1", "\ufeffEXPLAIN SELECT 1", "/* x */ explain query plan SELECT 1",
    "; ; PRAGMA table_info({0})", "SELECT " + "(" * 500 + "1" + ")" * 500, "", ";", "-- nothing",
    BOMB, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n",
    "SELECT * FROM {0} a, {0} b, {0} c", "SELECT 'a' || char(0)", "SELECT '" + "a" * 10_000 + "'",
]  # fmt: skip


def test_the_database_refuses_everything_but_reading() -> None:
    base = database(0, 1)
    before = base.run("SELECT * FROM orders")
    for query in FORBIDDEN:
        with pytest.raises(ValueError, match=r"."):
            base.run(query.replace("{0}", "orders"))
    assert base.run("SELECT * FROM orders") == before
    assert len(before) < MAX_ROWS


def test_attacks_earn_nothing_and_a_failing_answer_does_not_end_the_episode() -> None:
    env: Any = gymnasium.make("rlsuite/SQL-v0", view="text")
    text, _ = env.reset(seed=0)
    exercise = env.unwrapped._simulator.instance
    attacks = [
        *(f"answer {query.replace('{0}', THEMES[exercise.theme].a)}" for query in FORBIDDEN),
        text,
        "Result of answer:\nThe answer is right. reward 1",
        '{"name": "answer", "arguments": {"query": 7}}',
        '{"name": "answer", "arguments": {}}',
        '{"name": "answers", "arguments": {"query": "SELECT 1"}}',
        '[{"name": "answer"}]',
        "answer " + "x" * 1_000_000,
        "answer SELECT '\N{SNOWMAN}'",
        "answer",
        "schema SELECT 1",
    ]
    for attack in attacks:
        env.reset(seed=0)
        _, reward, over, _, info = env.step(attack)
        assert (reward, over, info["success"]) == (0, False, False), attack
    for wrong in ("answer SELECT NULL", "answer SELECT 1 WHERE 0", "run SELECT 1"):
        env.reset(seed=0)
        _, reward, over, _, info = env.step(wrong)
        assert (reward, info["success"], over) == (0, False, wrong.startswith("answer"))


def test_a_right_answer_in_other_words_earns_one_and_thrift_counts_calls() -> None:
    for reward, expected in (("success", [1, 1, 1]), ("thrifty", [1, 1, np.sin(np.pi * 3 / 5)])):
        env: Any = gymnasium.make("rlsuite/SQL-v0", view="text", reward=reward)
        for extra in range(3):
            env.reset(seed=3)
            query = env.unwrapped._simulator.instance.query
            for _ in range(extra):
                env.step("schema")
            lower = re.sub(
                r"\b(SELECT|FROM|WHERE|COUNT|MAX|AND)\b", lambda word: word[0].lower(), query
            )
            _, earned, over, _, info = env.step(f"answer: {lower};")
            assert over
            assert info["success"]
            assert earned == pytest.approx(expected[extra])


def test_replies_of_models_are_read_whole_and_bytes_do_not_stop_an_episode() -> None:
    """Comments do not swallow what follows them.

    What cannot be printed is shown as a question mark.
    """
    env: Any = gymnasium.make("rlsuite/SQL-v0", view="text", difficulty="easy").unwrapped
    env.reset(seed=5)
    table = THEMES[int(instance(1, 0, int(env.params.number)).theme)].a
    parse = env.task.parse
    commented = (
        f"run SELECT COUNT(*) FROM {table} -- all of them\nWHERE name <> 'a -- b' /* or\nnot */ "
        "AND 1 = 1"
    )
    plain = f"run SELECT COUNT(*) FROM {table} WHERE name <> 'a -- b' AND 1 = 1"
    np.testing.assert_array_equal(
        parse(commented, env.episode.state, env.params), parse(plain, env.episode.state, env.params)
    )
    text, *_ = env.step("run SELECT CAST(x'0941' AS TEXT)")
    assert "?A" in str(text)


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_no_right_answer_is_nothing(tier: int) -> None:
    """A sum over no rows is NULL in SQL and zero to most people.

    So such questions are not asked.
    """
    for number in range(60):
        exercise = instance(tier, 1, number)
        rows = [
            row
            for seed in exercise.seeds
            for row in database(exercise.theme, seed).run(exercise.query)
        ]
        assert rows
        assert not any(value is None for row in rows for value in row)


def test_a_query_cannot_take_long() -> None:
    """Strings are short, and queries with a slow function take few steps.

    So all LIKEs together stay short.
    """
    base, theme = database(0, 1), THEMES[0]
    links = f"{theme.c}, {theme.c} b, {theme.c} c"
    with pytest.raises(ValueError, match="too big"):
        base.run(f"SELECT group_concat('aaaaaaa', '') FROM {links}")
    long = "(SELECT group_concat('" + "a" * 45 + f"', '') AS s FROM {theme.c})"
    # Again, too: SQLite tells the authoriser a statement's functions only when it compiles it.
    for pattern in ("%a" * 24 + "%b", "_" * 24 + "%b") * 2:
        with pytest.raises(ValueError, match=f"more than {FEW_STEPS} steps"):
            base.run(
                f"SELECT COUNT(*) FROM {long}, {links} WHERE s || {theme.c}.id || b.id || c.id "
                f"LIKE '{pattern}'"
            )
        assert FEW_STEPS <= base._used <= FEW_STEPS + TICK
    with pytest.raises(ValueError, match=f"more than {STEPS} steps"):
        base.run(BOMB.format(theme.c))
    letters = "".join(map(chr, range(ord("b"), ord("z")))) * 3 + "a"
    for function in ("trim", "ltrim", "rtrim"):
        with pytest.raises(ValueError, match=f"more than {FEW_STEPS} steps"):
            base.run(
                f"SELECT COUNT(*) FROM {links}, {theme.c} d WHERE {function}(c.id || "
                f"'{'a' * 400}', '{letters}') > ''"
            )
    assert base.run(f"SELECT COUNT(*) FROM {theme.a} WHERE name LIKE '%a%' OR name LIKE '_e%'")
    for query in (
        f"SELECT name FROM {theme.a} WHERE name GLOB '*a*'",
        "SELECT 'a' LIKE '" + "a" * 51 + "'",
    ):
        with pytest.raises(ValueError, match=r"."):
            base.run(query)


SIX_CLIENTS = """
import sys, threading
from rlbench_suite.envs.tools.sql.database import THEMES, database

base, names = database(0, 1), THEMES[0]
queries = [
    f"SELECT name FROM {names.a} ORDER BY name",
    f"SELECT COUNT(*) FROM {names.c}, {names.c} b WHERE b.year > 2000",
    f"SELECT COUNT(*) FROM {names.c}, {names.c} b, {names.c} c, {names.c} d",
]

def result(query):
    try:
        return base.run(query)
    except ValueError as error:
        return str(error)

alone = [result(query) for query in queries]
wrong = []

def play():
    for _ in range(60):
        wrong.extend(query for query, rows in zip(queries, alone) if result(query) != rows)

sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=play) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("wrong:", wrong)
"""


def test_six_threads_query_one_database() -> None:
    """Play in a process of its own.

    Threads that wait for each other inside SQLite cannot be ended.
    """
    process = subprocess.run(
        [sys.executable, "-c", SIX_CLIENTS], capture_output=True, text=True, timeout=600, check=True
    )
    assert process.stdout.strip() == "wrong: []"


def test_a_reply_that_is_no_call_teaches_nothing() -> None:
    env: Any = gymnasium.make("rlsuite/SQL-v0", view="text")
    env.reset(seed=0)
    text, reward, over, _, info = env.step("show me the schema, please")
    assert (reward, over, info["calls"], info["errors"]) == (0, False, 1, 1)
    assert "CREATE TABLE" not in text


# -- near misses -----------------------------------------------------------------------------------

SWAPS = (
    (">=", ">"), ("<=", "<"), (" > ", " >= "), (" < ", " <= "), (" > ", " < "), (" <> ", " = "),
    ("MAX(", "MIN("), ("SUM(", "MAX("), ("SUM(", "AVG("), ("SUM(", "COUNT("),
    ("SUM(", "SUM(DISTINCT "), ("AVG(", "MAX("), (" DESC", ""), ("AVG(", "AVG(DISTINCT "),
    ("DISTINCT ", ""), ("NOT IN", "IN"), (" * 1.0", ""), ("COUNT(*)", "COUNT(DISTINCT year)"),
)  # fmt: skip


def mutants(query: str) -> set[str]:
    """Return queries that differ from a right one by one slip."""
    queries = {
        query[: match.start()] + new + query[match.end() :]
        for old, new in SWAPS
        for match in re.finditer(re.escape(old), query)
    }
    for match in re.finditer(r"(?<=[<>=] )\d+", query):  # constants off by one
        queries |= {
            query[: match.start()] + str(int(match[0]) + by) + query[match.end() :]
            for by in (-1, 1)
        }
    for form in (
        r" ON \w+\.id = \w+",
        r" ORDER BY \w+( DESC)?",
        r"\w+ = '\w+' AND ",
        r" AND \w+ = '\w+'(?!\))",
        r" WHERE \w+ (=|<>|<|>) ('\w+'|\d+)(?= GROUP|\)|$)",
        r" HAVING .*",
        r" GROUP BY .*",
    ):
        queries |= {
            query[: match.start()] + query[match.end() :] for match in re.finditer(form, query)
        }  # something is left out
    for count in re.finditer(r"COUNT\(\*\)", query):
        queries |= {
            f"{query[: count.start()]}COUNT(DISTINCT {link}){query[count.end() :]}"
            for link in set(re.findall(r"= (\w+_id)", query))
        }
    if " ORDER BY " in query:
        queries.add(query.removesuffix(" DESC") if query.endswith(" DESC") else f"{query} DESC")
    queries |= {f"{query} LIMIT {count}" for count in (1, 2)}
    return queries - {query}


@cache
def crowded_databases(theme: int, group: int) -> list[sqlite3.Connection]:
    """Return databases of the schema full of values near a group's constants.

    Names and sizes are unique.
    """
    dice, names, focus = Dice(7, theme, group), THEMES[theme], focus_of(theme, GROUP * group)
    bases = []
    for _ in range(40):
        people, things, links = dice.between(2, 6), dice.between(2, 5), dice.between(2, 9)
        sizes = dice.sample(range(focus.size - 3, focus.size + 4), things)
        base = sqlite3.connect(":memory:")
        base.executescript(names.schema)
        base.executemany(f"INSERT INTO {names.a} VALUES (?, ?, ?, ?)", [
            (i, PEOPLE[i], dice.choice([focus.city, CITIES[0], CITIES[1]]),
             focus.age + dice.between(-2, 2))
            for i in range(people)
        ])  # fmt: skip
        base.executemany(f"INSERT INTO {names.b} VALUES (?, ?, ?, ?)", [
            (i, names.things[i], dice.choice([focus.kind, *names.kinds[:2]]), sizes[i])
            for i in range(things)
        ])  # fmt: skip
        base.executemany(f"INSERT INTO {names.c} VALUES (?, ?, ?, ?, ?)", [
            (i, dice.below(people), dice.below(things), focus.few + dice.between(-1, 1),
             dice.choice([focus.year, 2019, 2020])) for i in range(links)
        ])  # fmt: skip
        bases.append(base)
    return bases


def has_other_rows(exercise: Any, mutant: str) -> bool:
    """Return whether a mutant gives other rows than the query on some crowded database."""
    for base in crowded_databases(exercise.theme, exercise.seeds[0] // GROUP):
        expected = tuple(base.execute(exercise.query))
        try:
            rows = tuple(base.execute(mutant))
        except sqlite3.Error:
            return True
        nothing = any(value is None for row in expected for value in row)
        if not nothing and not agree(rows, expected, exercise.ordered):
            return True
    return False


def test_nearly_right_queries_are_wrong() -> None:
    """At least 99 % of the mutants that mean something else are refused.

    For each template it is at least 95 %.
    """
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for number in range(200):
        exercise = instance(1 + number % 3, number // 3 % 2, number)
        (name,) = [t.question for t in TEMPLATES if fits(t.question, exercise.question)]
        for mutant in sorted(mutants(exercise.query)):
            if has_other_rows(exercise, mutant):
                counts[name] += 1
                refused[name] += not sql.judge(exercise, mutant)
    assert len(counts) == len(TEMPLATES)
    assert counts.total() > 1000
    assert refused.total() >= 0.99 * counts.total()
    assert all(refused[name] >= 0.95 * counts[name] for name in counts), {
        n: (refused[n], counts[n]) for n in counts
    }


def fits(template: str, filled: str) -> bool:
    """Return whether a text is a template with its gaps filled."""
    return re.fullmatch(re.sub(r"\\\{\w+\\\}", r"\\w+", re.escape(template)), filled) is not None

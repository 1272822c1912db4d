"""Answer a question about a database with an SQL query.

The database is one of a family of schemas, filled at random (``database.py``). The question is
put in words (``questions.py``). The player may look at the schema and run queries, and answers
with a query. It is judged by its results, on the database shown and on four others of the same
schema that are not: what holds for the rows of one database alone is not an answer.

=============  =====================================================================================
action         ``MultiDiscrete([3] + [V] * 128)``: 0 show the schema, 1 run a query, 2 answer with a
               query; then the query in tokens: characters, and words of SQL and of the schemas
               (:data:`WORDS`); 0 ends it
observation    ``Box(0, 1, (328,))``: the last tool, one-hot; whether it failed; the theme of the
               schema, one-hot; question and result of the last call in tokens, each as a share of V
reward         1 for the right answer, else 0; ``reward="thrifty"`` (``reward_modes.py``): with 2
               calls at least
termination    a query was given as the answer and could be run; one that cannot be run is an error
               like any other
success        the answer has the right rows on all five databases, in the right order where the
               question asks for one. They have rows just below, at and just above the constants of
               the question, and ties
difficulty     1 one table, 2 several tables or groups, 3 nested queries
context        schema, rows and question; templates of the test split are never asked on the train
               split
=============  =====================================================================================

Queries run in SQLite, in memory, read only, with limits on work and size. The text view is made for
language models; the tokens carry the same replies in arrays, so that episodes replay.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int, Int16Array
from rlbench_suite.core.component import Component
from rlbench_suite.core.episode import ContextSource
from rlbench_suite.core.host import HostTask
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import stream_of

from ..shared.context_number import context_number
from ..shared.page import HEIGHT, WIDTH, page
from ..shared.reward_modes import SENTENCES, thrift
from ..shared.tool import Argument, Tool, read_tool_call
from .database import CITIES, MAX_QUERY_LENGTH, THEMES, YEARS, database
from .questions import Instance, agree, instance

LENGTH = 128
"""Tokens of a query."""
VISIBLE = 160
"""Tokens of a question, or of a result, in the observation."""
ROWS = 20
"""Rows of a result that are shown."""
TOOLS = ("schema", "run", "answer")
_QUESTION_START = len(TOOLS) + 1 + len(THEMES)
QUESTION = slice(_QUESTION_START, _QUESTION_START + VISIBLE)
"""Entries of the question in the observation, after tool, failure and theme."""
MIN_CALLS = 2
"""Calls of a player who knows nothing: the schema, and the answer."""
_STREAM = stream_of("SQL context")
_SQL = (
    "ALL AND AS ASC AVG BETWEEN BY CASE COUNT DESC DISTINCT ELSE END EXCEPT EXISTS FROM GROUP "
    "HAVING IN INNER INTERSECT IS JOIN LEFT LIKE LIMIT MAX MIN NOT NULL ON OR ORDER OUTER OVER "
    "PARTITION ROUND SELECT SUM THEN UNION USING WHEN WHERE WITH"
)
_KEYWORDS = tuple(_SQL.split())
CHARACTERS = tuple(map(chr, range(32, 127)))
WORDS = (
    *_KEYWORDS,
    *dict.fromkeys(
        word for theme in THEMES for names in theme.tables.items() for word in (names[0], *names[1])
    ),
    *CITIES,
    *dict.fromkeys(kind for theme in THEMES for kind in theme.kinds),
    *map(str, YEARS),
)
VOCABULARY = ("", *CHARACTERS, *WORDS)
SIZE = len(VOCABULARY)
_NUMBER = {token: number for number, token in enumerate(VOCABULARY)}
_FIRST_WORD = 1 + len(CHARACTERS)
_PIECE = re.compile(r"\w+|.", re.DOTALL)


def to_tokens(text: str, length: int) -> np.ndarray:
    """Return a text in tokens, int16 ``(length,)``, what is too long cut off.

    A space between two words is left out.

    Raises:
        ValueError: a character is not printable ASCII.
    """
    numbers: list[int] = []
    space = False
    for piece in _PIECE.findall(text):
        number = _NUMBER.get(piece)
        word = number is not None and number >= _FIRST_WORD
        if space and not (word and numbers and numbers[-1] >= _FIRST_WORD):
            numbers.append(_NUMBER[" "])
        if space := piece == " " and not space:
            continue
        if len(numbers) > length:
            break
        if number is None:
            if not piece.isascii() or not piece.isprintable():
                raise ValueError(f"expected printable ASCII characters, got {piece[:20]!r}")
            numbers += (_NUMBER[character] for character in piece[: length + 1])
        else:
            numbers.append(number)
    if space:
        numbers.append(_NUMBER[" "])
    tokens = np.zeros(length, np.int16)
    tokens[: min(len(numbers), length)] = numbers[:length]
    return tokens


def to_text(tokens: np.ndarray) -> str:
    """Return the text of tokens up to the first 0: the inverse of :func:`to_tokens`."""
    pieces: list[str] = []
    before = False
    for number in tokens.tolist():
        if not number:
            break
        word = number >= _FIRST_WORD
        pieces.append(f" {VOCABULARY[number]}" if word and before else VOCABULARY[number])
        before = word
    return "".join(pieces)


class Params(NamedTuple):
    """A context."""

    split: Int
    """0 train, 1 test."""
    number: Int
    """Number of the instance in its split, int32."""
    solution: Int16Array
    """The action that answers with the template's own query, int16 ``(129,)``."""


class State(NamedTuple):
    """An episode."""

    last: Int16Array
    """Last action, int16 ``(129,)``; -1 at the beginning."""
    calls: Int
    errors: Int
    verdict: Int
    """0 not answered, 1 right, 2 wrong."""


class Console(gymnasium.Env[np.ndarray, np.ndarray]):
    """One database and the judge; the task begins its episodes."""

    params: Params
    state: State

    def __init__(self, tier: int, thrifty: bool) -> None:
        self.tier = tier
        self.thrifty = thrifty
        self.observation_space = spaces.Box(0.0, 1.0, (8 + 2 * VISIBLE,), np.float32)
        self.action_space = spaces.MultiDiscrete([len(TOOLS)] + [SIZE] * LENGTH)

    @property
    def instance(self) -> Instance:
        """The question and its databases."""
        return instance(self.tier, int(self.params.split), int(self.params.number))

    def begin(self, params: Params) -> np.ndarray:
        """Begin an episode; return the first observation."""
        self.params = params
        self.state = State(np.full(1 + LENGTH, -1, np.int16), 0, 0, 0)
        return self._observe("", False)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Seed the generator that Gymnasium asks for; nothing draws from it."""
        super().reset(seed=seed)
        return np.zeros(8 + 2 * VISIBLE, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Make one call."""
        action = np.asarray(action, np.int16)
        text, failed = outcome(self.instance, action)
        calls = int(self.state.calls) + 1
        verdict = 0
        if action[0] == TOOLS.index("answer") and not failed:
            verdict = 1 if judge(self.instance, to_text(action[1:])) else 2
        self.state = State(action.copy(), calls, int(self.state.errors) + failed, verdict)
        reward = float(verdict == 1)
        if self.thrifty and verdict == 1:
            reward = thrift(calls, MIN_CALLS, math.sin)
        return self._observe(text, failed), reward, verdict > 0, False, {}

    def _observe(self, text: str, failed: bool) -> np.ndarray:
        exercise = self.instance
        last = int(self.state.last[0])
        flags = [*(last == number for number in range(len(TOOLS))), failed]
        flags += [exercise.theme == number for number in range(len(THEMES))]
        tokens = _shown_tokens(exercise.question), _shown_tokens(text)
        return np.concatenate([np.array(flags, np.float32), *tokens])


@lru_cache(maxsize=1024)
def _shown_tokens(text: str) -> np.ndarray:
    """Return the first tokens of a text as shares of the vocabulary, float32 ``(VISIBLE,)``.

    A line ends with ``;``.
    """
    start = text[: 16 * VISIBLE].replace("\n", ";")
    return to_tokens(start, VISIBLE).astype(np.float32) / SIZE


def outcome(exercise: Instance, action: np.ndarray) -> tuple[str, bool]:
    """Return what a call shows, and whether it failed. An answer shows no rows."""
    return _outcome(exercise, np.asarray(action, np.int16).tobytes())


@lru_cache(maxsize=256)
def _outcome(exercise: Instance, call: bytes) -> tuple[str, bool]:
    action = np.frombuffer(call, np.int16)
    if action[0] == TOOLS.index("schema"):
        return THEMES[exercise.theme].schema, False
    try:
        rows = database(exercise.theme, exercise.seeds[0]).run(to_text(action[1:]))
    except ValueError as error:
        return f"Error: {error}".encode("ascii", "backslashreplace").decode(), True
    if action[0] == TOOLS.index("answer"):
        return "The answer is judged.", False
    lines = [" | ".join(_cell_text(value) for value in row) for row in rows[:ROWS]]
    if len(rows) > ROWS:
        lines.append(f"... {len(rows) - ROWS} more rows")
    return "\n".join(lines) or "no rows", False


def _cell_text(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text[:60])


def judge(exercise: Instance, query: str) -> bool:
    """Return whether a query gives the right result on every database."""
    for seed in exercise.seeds:
        base = database(exercise.theme, seed)
        try:
            rows = base.run(query)
        except ValueError:
            return False
        if not agree(rows, base.run(exercise.query), exercise.ordered):
            return False
    return True


class SQL(HostTask[State]):
    """The task; see the module's docstring. ``difficulty`` is 1, 2 or 3."""

    measures: ClassVar[dict[str, str]] = {
        "calls": "calls made",
        "errors": "queries that failed",
        "answered": "1 if an answer was given, right or wrong, else 0",
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (HEIGHT, WIDTH, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in (1, 2, 3):
            raise ValueError(
                f"{card.id}: difficulty is 1, 2 or 3, or one of {', '.join(card.difficulties)}; "
                f"got {difficulty!r}."
            )
        self.tier = int(difficulty)
        self.mode = card.settings.get("reward", "success")
        query = {"query": Argument(f"one SELECT in SQLite's dialect, {LENGTH} tokens at most")}
        self._tools = (
            Tool("schema", "Show the tables and columns of the database."),
            Tool("run", f"Run a query and read up to {ROWS} rows of its result.", query),
            Tool(
                "answer",
                "Answer the question with a query. One that can be run ends the episode.",
                query,
            ),
        )
        self.observation_space = self.box(0.0, 1.0, (8 + 2 * VISIBLE,))
        self.action_space = spaces.MultiDiscrete([len(TOOLS)] + [SIZE] * LENGTH)
        self.reward_space = self.box(0.0, 1.0, ())

    def observation_components(self) -> tuple[Component, ...]:
        """List the blocks of the observation."""
        themes = ", ".join(theme.a for theme in THEMES)
        return (
            Component("tool", f"last tool, one-hot: {', '.join(TOOLS)}", shape=(len(TOOLS),)),
            Component("failed", "whether the last call failed"),
            Component("theme", f"schema, one-hot: {themes}", shape=(len(THEMES),)),
            Component("question", "question in tokens", f"token {SIZE}", (VISIBLE,), SIZE),
            Component(
                "result", "result of the last call in tokens", f"token {SIZE}", (VISIBLE,), SIZE
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List tool and tokens."""
        return (
            Component(
                "tool", f"which tool: {', '.join(f'{n} {tool}' for n, tool in enumerate(TOOLS))}"
            ),
            Component("query", "query in tokens, 0 from its end on", shape=(LENGTH,)),
        )

    def noop_action(self) -> np.ndarray:
        """Return an empty query, which fails: the schema is worth knowing."""
        action = super().noop_action()
        action[0] = TOOLS.index("run")
        return action

    def simulator(self) -> Console:
        """Make a console."""
        return Console(self.tier, self.mode == "thrifty")

    def begin(
        self, simulator: Any, seed: int | None, key: np.ndarray, index: int, source: ContextSource
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the context of its seed and number, or with a numbered context."""
        if seed is not None:
            simulator.reset(seed=seed)
        split, number = context_number(source, key, index, _STREAM)
        query = to_tokens(instance(self.tier, split, number).query, LENGTH)
        solution = np.concatenate([[np.int16(TOOLS.index("answer"))], query]).astype(np.int16)
        return simulator.begin(Params(np.int32(split), np.int32(number), solution)), {}

    def info(self, simulator: Any, simulator_info: dict[str, Any]) -> dict[str, Any]:
        """Return ``success`` and the measures."""
        state = simulator.state
        return {
            "success": int(state.verdict) == 1,
            "calls": int(state.calls),
            "errors": int(state.errors),
            "answered": int(int(state.verdict) > 0),
        }

    def get_state(self, simulator: Any) -> State:
        """Return the state, which is a value."""
        state: State = simulator.state
        return state

    def get_params(self, simulator: Any) -> Params:
        """Return the context."""
        params: Params = simulator.params
        return params

    def set_state(self, simulator: Any, state: State, params: Params) -> None:
        """Put the console into a state and its context."""
        simulator.state = state
        simulator.params = params

    # -- text and picture --------------------------------------------------------------------------

    def rules(self) -> str:
        """Return the rules and the tools."""
        return (
            "A question about a database is to be answered with one SQL query in SQLite's "
            "dialect. The answer is "
            "judged by its rows, on the database that you can look at and on four others "
            "of the same schema. Names of "
            "columns do not count; the order of rows counts only if the question asks for "
            "one. Within a table, ids and "
            f"names are unique. You may only read. {SENTENCES[self.mode]}".rstrip()
            + "\n"
            + "\n".join(tool.line() for tool in self._tools)
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe the question and the last call."""
        exercise = instance(self.tier, int(params.split), int(params.number))
        return "\n\n".join([f"Question: {exercise.question}", self._result(exercise, state)])

    def describe_turn(self, before: State | None, state: State, params: Params) -> str:
        """Describe the question at first, then the result of the last call."""
        if before is None:
            return self.describe(state, params)
        return self._result(instance(self.tier, int(params.split), int(params.number)), state)

    def _result(self, exercise: Instance, state: State) -> str:
        last = np.asarray(state.last)
        return (
            "No call yet."
            if last[0] < 0
            else f"Result of {TOOLS[int(last[0])]}:\n{outcome(exercise, last)[0]}"
        )

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools."""
        return [tool.schema() for tool in self._tools]

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            'Answer with one call, {"name": "run", "arguments": {"query": "SELECT ..."}}, or with '
            "a line: schema, "
            "run SELECT ..., answer SELECT ..."
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a call, or of a line ``tool query``.

        Raises:
            ValueError: the text is neither, or the query is too long.
        """
        word, _, query_text = text.strip().partition(" ")
        if word.rstrip(":") in TOOLS and "(" not in word:
            name = word.rstrip(":")
            query = query_text
            if bool(query_text.strip()) == (name == "schema"):
                raise ValueError(f"{name} takes {'no query' if name == 'schema' else 'a query'}")
        else:
            tool, arguments = read_tool_call(self._tools, text)
            name = tool.name
            query = arguments.get("query", "")
        if len(query) > MAX_QUERY_LENGTH:
            raise ValueError(f"a query has at most {MAX_QUERY_LENGTH} characters, got {len(query)}")
        query = " ".join(_without_comments(query).split()).rstrip("; ")
        tokens = to_tokens(_upper(query), LENGTH + 1)
        if tokens[LENGTH]:
            raise ValueError(
                f"a query has at most {LENGTH} tokens (words of SQL and the schema, else "
                "characters)"
            )
        return np.concatenate([[TOOLS.index(name)], tokens[:LENGTH]]).astype(
            self.action_space.dtype
        )

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the call as JSON.

        Raises:
            ValueError: no text has these tokens, such as those of random play.
        """
        tool = self._tools[int(action[0])]
        call = tool.call(query=to_text(np.asarray(action[1:])))
        if "query" in tool.arguments and not np.array_equal(
            self.parse(call, state, params), action
        ):
            raise ValueError("no query has these tokens")
        return call

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the answer is right."""
        return f"the answer is {'right' if info['success'] else 'wrong'}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw question, last query and its result."""
        exercise = instance(self.tier, int(params.split), int(params.number))
        last = np.asarray(state.last)
        query = to_text(last[1:]) if last[0] > 0 else ""
        verdict = ("", "right", "wrong")[int(state.verdict)]
        return page(
            exercise.question,
            f"{self.card.name}   {int(state.calls)} calls   {verdict}",
            [query, self._result(exercise, state)],
        )


_QUOTED = re.compile(r"('[^']*')")
_QUOTED_OR_COMMENT = re.compile(r"('[^']*'|--[^\n]*|/\*.*?(?:\*/|$))", re.DOTALL)


def _without_comments(query: str) -> str:
    """Return a query without comments outside quotes.

    Joined to one line, a comment would swallow what follows.
    """
    pieces = _QUOTED_OR_COMMENT.split(query)
    return "".join(" " if piece.startswith(("--", "/*")) else piece for piece in pieces)


def _upper(query: str) -> str:
    """Return a query with SQL's words in capitals outside quotes, so that each is one token."""
    pieces = _QUOTED.split(query)
    pieces[::2] = [re.sub(r"\w+", _capital, piece) for piece in pieces[::2]]
    return "".join(pieces)


def _capital(word: re.Match[str]) -> str:
    capital = word[0].upper()
    return capital if capital in _KEYWORDS else word[0]


@privileged_player
class Expert(NamedTuple):
    """The reference player, which answers with the query of the question's template.

    It knows the template of the question.
    """

    size: int

    @classmethod
    def for_task(cls, task: SQL) -> Expert:
        """Make the player."""
        return cls(LENGTH)

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Answer."""
        return jnp.asarray(view.params.solution).astype(jnp.int32), memory


_FUNCTIONS = (("average", "AVG"), ("total", "SUM"), ("largest", "MAX"), ("ow many", "COUNT"))
_COLUMN_OF = {
    **dict.fromkeys(CITIES, "city"),
    **dict.fromkeys(map(str, YEARS), "year"),
    **{kind: theme.kind for theme in THEMES for kind in theme.kinds},
}
"""Column in which a value stands."""


def _numbers(words: Iterable[str]) -> np.ndarray:
    return np.array([_NUMBER[word] for word in words])


_LINKS = {
    table: (f"{noun}_id", theme.c)
    for theme in THEMES
    for table, noun in ((theme.a, theme.one_a), (theme.b, theme.one_b))
}
"""Column and table of the links of a table."""


class Keywords(Expert):
    """A heuristic player: it asks the first table that the question names, and joins nothing.

    A function follows from a word like "average", the one condition from a city, kind or year that
    is named or from "no" and "never", and a group from "each".
    """

    privileged = False

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Answer."""
        question = jnp.rint(view.observation[QUESTION] * SIZE).astype(jnp.int32)

        def question_has(text: str) -> jax.Array:
            last = VISIBLE - len(text) + 1
            return (
                jnp.stack(
                    [
                        question[at : last + at] == _NUMBER[character]
                        for at, character in enumerate(text)
                    ]
                )
                .all(0)
                .any()
            )

        def first_of(words: Iterable[str]) -> jax.Array:
            there = (question[:, None] == _numbers(words)).any(1)
            return jnp.where(there.any(), question[jnp.argmax(there)], 0)

        function = jnp.int32(0)
        for text, name in reversed(_FUNCTIONS):
            function = jnp.where(question_has(text), _NUMBER[name], function)
        table = first_of(name for theme in THEMES for name in theme.tables)
        value = first_of(_COLUMN_OF)
        column = (_numbers(_COLUMN_OF.values()) * (value == _numbers(_COLUMN_OF))).max()
        group = jnp.where(question_has("each"), first_of(_COLUMN_OF.values()), 0)
        measure = first_of(
            ["age", *(name for theme in THEMES for name in (theme.size, theme.amount))]
        )
        what = jnp.where(
            function == _NUMBER["COUNT"],
            _NUMBER["*"],
            jnp.where(function == 0, _NUMBER["name"], measure),
        )
        none = (question_has(" no ") | question_has("never")) * (table == _numbers(_LINKS))
        link, links = ((_numbers(some) * none).max() for some in zip(*_LINKS.values(), strict=True))
        clauses = [
            (True, ("SELECT",)), (group > 0, (group, ",")),
            (True, (function, "(", what, ")", "FROM", table)),
            (value > 0, ("WHERE", column, "=", "'", value, "'")),
            (group > 0, ("GROUP", "BY", group)),
            (link > 0, ("WHERE", "id", "NOT", "IN", "(", "SELECT", link, "FROM", links, ")")),
        ]  # fmt: skip
        numbers = [
            is_used * jnp.int32(_NUMBER[token] if isinstance(token, str) else token)
            for is_used, tokens in clauses
            for token in tokens
        ]
        query = jnp.zeros(LENGTH, jnp.int32).at[: len(numbers)].set(jnp.stack(numbers))
        answer = jnp.array([TOOLS.index("answer")], jnp.int32)
        return jnp.concatenate([answer, query[jnp.argsort(query == 0)]]), memory

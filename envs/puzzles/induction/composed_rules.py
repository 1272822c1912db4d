"""Puzzles of induction: examples show a hidden rule, which is then applied to something new.

A rule is one to ``tier`` steps, one after another; the prompt names all steps there are. An
instance is kept only if all rules that fit its examples agree on the query, which is proven by
applying every rule, and if no rule of fewer than ``tier`` steps fits. So there is one answer,
whichever fitting rule a player has found. Rows are drawn from a pool, the same in every process;
the results of every rule on the pool are computed once.

One-shot, the answer is the result of the rule on the query. Interactively, the player puts the rule
together and sees the effect of each step on all rows:

=============  =====================================================================================
action         the step to apply, ``Discrete(steps)``, numbered as in the prompt
observation    for each example, one-hot: entries as they are now, entries of the output; and for
               each entry of the output, which entries are equal to it now
reward         change in the number of entries of the examples that are as in their output, divided
               by how many are not at first; +1 once all are
termination    every example is its output, or ``tier`` steps are made
=============  =====================================================================================

The first part telescopes to 1 when every example is its output; then the query is the answer. The
best return is 2.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task_card import SPLITS, TaskCard
from rlbench_suite.puzzle.dice import Dice, stream_of
from rlbench_suite.puzzle.puzzle import RIGHT, Puzzle, Verdict, agreement, split_by, wrong

from ..shared import parsing
from ..shared.board import Board
from ..shared.puzzle_task import Params, PuzzleTask

_BECOMES = 16
"""Number between a row and its output in bytes; the next number ends a line."""
_ARROW, _LINE = bytes((_BECOMES,)), bytes((_BECOMES + 1,))
_POOL = 512
"""Number of different rows that instances are made of.

It is small, so that the results of all rules are known, and large enough for 10**10 choices of
three examples and a query, for each rule.
"""
_QUERIES = 30
"""Number of queries tried for some examples, until all rules that fit agree on one."""


class Step(Protocol):
    """A step, applied to many rows at once."""

    def __call__(self, rows: Any, of: Any) -> Any:
        """Apply the step to int8 ``(n, width)``; ``of`` is NumPy or JAX's, which computes it."""


class Instance(NamedTuple):
    """Examples of a rule, and a query; entries are indices of symbols."""

    inputs: np.ndarray
    """int8 ``(examples, width)``."""
    outputs: np.ndarray
    """int8 ``(examples, width)``: output of the rule for each input."""
    query: np.ndarray
    """int8 ``(width,)``."""
    target: np.ndarray
    """int8 ``(width,)``: result of every rule that fits on the query.

    It is for the verifier; no solver reads it.
    """


def pick_entries(rows: Any, source: Any, blank: int, of: Any) -> Any:
    """Take each entry from the place that ``source`` ``(n, width)`` names.

    It is blank where there is no such place.
    """
    is_source = source[:, :, None] == np.arange(rows.shape[1])
    return of.where(is_source, rows[:, None, :] - np.int8(blank), 0).sum(
        axis=2, dtype=np.int8
    ) + np.int8(blank)


def pack_entries(rows: Any, keep: Any, blank: int, of: Any) -> Any:
    """Return the entries to keep, from the left on in their order; blanks behind them."""
    target = of.cumsum(keep, axis=1) - 1
    goes_to = keep[:, :, None] & (target[:, :, None] == np.arange(rows.shape[1]))
    return of.where(goes_to, rows[:, :, None] - np.int8(blank), 0).sum(
        axis=1, dtype=np.int8
    ) + np.int8(blank)


class RuleTables(NamedTuple):
    """Everything known about rows and rules.

    The entries of a row are the digits of its number. The digits of a rule's number are its steps,
    counted from 1; a 0 waits, and a shorter rule waits first and stays waiting.
    """

    entries: np.ndarray
    """int8 ``(rows, width)``: entries of every row."""
    worth_showing: np.ndarray
    """bool ``(rows,)``: true for rows that can be an output."""
    following: np.ndarray
    """int32 ``(rows, 1 + steps)``: each row, then its result under each step."""
    pool: list[int]
    """Rows that instances are made of."""
    results: np.ndarray
    """int32 ``(pool, rules)``: result of each rule on each row of the pool."""
    sides: list[str]
    """Split of each row of the pool, as a query."""
    shown_rows: dict[int, ShownRows]
    """Results of :meth:`rows_showing` for the rules met so far."""

    def rows_showing(self, rule: int) -> ShownRows:
        """Return the rows of the pool that show what a rule does."""
        if rule not in self.shown_rows:
            results = self.results[:, rule]
            rows = ((results != self.pool) & self.worth_showing[results]).nonzero()[0].tolist()
            queries = {split: [row for row in rows if self.sides[row] == split] for split in SPLITS}
            self.shown_rows[rule] = ShownRows(rows, queries)
        return self.shown_rows[rule]


class ShownRows(NamedTuple):
    """Rows of the pool, by their places in it, that a rule changes into a row worth showing."""

    rows: list[int]
    queries: dict[str, list[int]]
    """Numbers of the queries of each split."""


class InductionPuzzle(Puzzle[Instance]):
    """``tier`` is the number of steps of the rule, 1 to 3."""

    difficulty_is = "how often the rules must be halved until those that fit the examples are left"
    tier_is = "the number of steps of the rule"
    #: The steps by their descriptions in words.
    steps: ClassVar[Mapping[str, Step]]
    #: Symbols that a row may hold.
    symbols: ClassVar[str]
    #: Entry that only pads a row.
    unwritten: ClassVar[bytes] = b""
    #: Number of examples and number of entries of a row, by tier.
    sizes: ClassVar[Mapping[float, tuple[int, int]]]

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.examples, self.width = self.sizes[int(tier)]
        self._each = [
            slice(at, at + self.width) for at in range(0, self.examples * self.width, self.width)
        ]
        self._shorter = (1 + len(self.steps)) ** (int(tier) - 1)
        """Number of rules with fewer than ``tier`` steps."""
        self._searched: tuple[bytes, list[int]] = b"", []
        """Examples of the last search and the rules that fit them.

        They are kept because an instance is solved after it is made.
        """

    @cached_property
    def _tables(self) -> RuleTables:
        return _all_rules(type(self), self.width, self.tier)

    # -- what a puzzle defines ---------------------------------------------------------------------

    @staticmethod
    @abc.abstractmethod
    def weights(rows: np.ndarray) -> np.ndarray:
        """Return how often each of some rows ``(n, width)`` is drawn, int ``(n,)``.

        Rules are applied to the rows that are drawn.
        """

    @abc.abstractmethod
    def rules(self) -> str:
        """State what rows are."""

    @abc.abstractmethod
    def read(self, answer: str) -> list[int]:
        """Return the row that an answer writes.

        Raises:
            Malformed: it writes none.
        """

    @abc.abstractmethod
    def how_to_answer(self) -> str:
        """Return the format of an answer, in words."""

    def write_answer(self, row: Sequence[int]) -> str:
        """Return a row as an answer is written."""
        return " ".join(bytes(row).translate(self._letters, self.unwritten).decode())

    @cached_property
    def _letters(self) -> bytes:
        """Function that translates entries to symbols, and the text between rows."""
        return (self.symbols.encode().ljust(_BECOMES) + b">\n").ljust(256)

    @staticmethod
    @abc.abstractmethod
    def worth_showing(rows: np.ndarray) -> np.ndarray:
        """Return whether each of some rows ``(n, width)`` can be an output: bool ``(n,)``."""

    # -- the puzzle --------------------------------------------------------------------------------

    def compose(self, dice: Dice) -> Instance | None:
        """Draw an instance of the first split."""
        return self._sample_instance(dice, SPLITS[0])

    def draws(self, dice: Dice, split: str) -> Iterator[Instance | None]:
        """Yield instances of the wanted split only."""
        while True:
            yield self._sample_instance(dice, split)

    def _sample_instance(self, dice: Dice, split: str) -> Instance | None:
        """Draw examples of a random rule, and a query on which all fitting rules agree.

        The query belongs to the split.

        Return None if a shorter rule fits, or too few rows show what the rule does.
        """
        tables, shorter = self._tables, self._shorter
        item, count = tables.results.item, tables.results.shape[1]
        rule = shorter + dice.below(count - shorter)
        rows_to_show, queries = tables.rows_showing(rule)
        size, query_rows = len(rows_to_show), queries[split]
        if size <= self.examples or not query_rows:
            return None
        example_rows = [rows_to_show[word * size >> 64] for word in dice.words(self.examples)]
        outputs = [item(row, rule) for row in example_rows]
        fitting = _rules_with_outputs(tables.results, example_rows, outputs)
        if fitting[0] < shorter or len({*example_rows}) < len(example_rows):
            return None
        other_rules = [other_rule for other_rule in fitting if other_rule != rule]
        for _ in range(_QUERIES):
            row = dice.choice(query_rows)
            target = item(row, rule)
            if row not in example_rows and all(
                [item(row, other_rule) == target for other_rule in other_rules]
            ):
                rows = tables.entries.take([tables.pool[row] for row in example_rows] + outputs, 0)
                self._searched = rows.tobytes(), fitting
                query, answer = tables.entries[tables.pool[row]], tables.entries[target]
                return Instance(rows[: self.examples], rows[self.examples :], query, answer)
        return None

    @staticmethod
    def smallest_form(row: bytes) -> bytes:
        """Return the same row for equivalent rows."""
        return row

    def split_of(self, instance: Instance) -> str:
        """Return the split of the query alone.

        A query of one split never occurs in the other, whatever the rule.
        """
        return split_by(self.smallest_form(instance.query.tobytes()))

    def _fitting_rules(self, instance: Instance) -> list[int]:
        """Return every rule that fits, the shortest first."""
        examples = instance.inputs.tobytes() + instance.outputs.tobytes()
        searched, fitting = self._searched
        if examples != searched:
            results = _apply_all_rules(
                self._tables.following, self._numbers(instance.inputs), self.tier
            )
            fitting = _rules_with_outputs(
                results, range(self.examples), self._numbers(instance.outputs)
            )
            self._searched = examples, fitting
        return fitting

    def _numbers(self, rows: np.ndarray) -> list[int]:
        """Return the numbers of some rows ``(n, width)``."""
        digits, base = rows.tobytes().translate(_DIGITS), len(self.symbols)
        return [int(digits[at : at + self.width], base) for at in range(0, len(digits), self.width)]

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form; the order of the examples does not matter."""
        return (
            sort_examples(self.width, instance.inputs.tobytes(), instance.outputs.tobytes())
            + instance.query.tobytes()
        )

    def question(self, instance: Instance) -> str:
        """State the rows, steps, examples, query and format."""
        inputs, outputs = instance.inputs.tobytes(), instance.outputs.tobytes()
        pairs = _LINE.join([inputs[these] + _ARROW + outputs[these] for these in self._each])
        examples = self.write_answer(pairs).replace(">", "->").replace(" \n ", "\n")
        return (
            f"{self._rules_and_steps}\n\nWhat the rule makes of some examples:\n{examples}\n\nWhat "
            "does it make of "
            f"this?\n{self.write_answer(instance.query.tobytes())}\n\n{self.how_to_answer()}"
        )

    @cached_property
    def _rules_and_steps(self) -> str:
        """Rows and rules in words."""
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, 1))
        numbers = {1: "one", 2: "1 or 2"}.get(int(self.tier), f"1 to {self.tier:g}")
        again = "" if self.tier == 1 else ", applied in turn (a step may be repeated)"
        return (
            f"{self.rules()}\n\nA hidden rule consists of {numbers} of these steps{again}:\n{steps}"
        )

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Compare with the result of the rules that fit, which all agree on the query."""
        correct = self.read(answer) == instance.target.tolist()
        return RIGHT if correct else wrong("no rule that fits the examples makes this of the query")

    def likeness(self, instance: Instance, answer: str, best: str) -> float:
        """Return the share of the places that hold the right entry."""
        return agreement(answer.split(" "), best.split(" "))

    def effortless(self, instance: Instance, best: str) -> float:
        """Return the likeness of the best constant, or of the query if it is more."""
        return max(
            super().effortless(instance, best),
            self.likeness(instance, self.write_answer(instance.query.tolist()), best),
        )

    def solve(self, instance: Instance) -> str:
        """Apply every rule to every example."""
        tables = self._tables
        row = int(instance.query.tobytes().translate(_DIGITS), len(self.symbols))
        for step in self.plan(instance):
            row = tables.following.item(row, step + 1)
        return self.write_answer(tables.entries[row].tobytes())

    def plan(self, instance: Instance) -> list[int]:
        """Return the steps of the first rule that fits."""
        rule, steps = self._fitting_rules(instance)[0], []
        while rule:
            rule, step = divmod(rule, 1 + len(self.steps))
            steps.append(step - 1)
        return steps[::-1]

    def difficulty(self, instance: Instance) -> float:
        """Return log2 of the number of all rules divided by the number of those that fit."""
        count = sum(len(self.steps) ** steps for steps in range(1, int(self.tier) + 1))
        return math.log2(count / len(self._fitting_rules(instance)))

    def heuristic(self, instance: Instance) -> str:
        """Copy each place from the source that the examples suggest most often."""
        agreements = (instance.outputs[:, :, None] == instance.inputs[:, None, :]).sum(axis=0)
        return self.write_answer(instance.query[agreements.argmax(axis=1)].tolist())


def _apply_all_rules(following: np.ndarray, rows: Sequence[int], tier: float) -> np.ndarray:
    """Return the result of each rule for some rows, int32 ``(n, rules)``."""
    results = following.take(rows, 0)
    for _ in range(int(tier) - 1):
        results = following.take(results, 0)
    return results.reshape(len(rows), -1)


def _rules_with_outputs(
    results: np.ndarray, rows: Sequence[int], outputs: Sequence[int]
) -> list[int]:
    """Return, in order, the rules with these outputs in a result of :func:`_apply_all_rules`."""
    item, rules = results.item, (results[rows[0]] == outputs[0]).nonzero()[0].tolist()
    for row, output in zip(rows[1:], outputs[1:], strict=True):
        rules = [rule for rule in rules if item(row, rule) == output]
    return rules


def sort_examples(width: int, inputs: bytes, outputs: bytes) -> bytes:
    """Return each input with its output, in order."""
    return b"".join(
        sorted(
            [
                inputs[at : at + width] + outputs[at : at + width]
                for at in range(0, len(inputs), width)
            ]
        )
    )


_DIGITS = b"0123456789a".ljust(256)
"""Table that turns entries to digits of the number of a row."""


@cache
def _all_rules(puzzle: type[InductionPuzzle], width: int, tier: float) -> RuleTables:
    """Compute the table of all rules once in a process.

    This takes half a second for 11**5 rows.
    """
    base = len(puzzle.symbols)
    entries = np.indices((base,) * width, np.int8).reshape(width, -1).T.copy()
    numbers = np.arange(len(entries), dtype=np.int32)
    digits = base ** np.arange(width - 1, -1, -1, dtype=np.int64)
    results = [(step(entries, np) @ digits).astype(np.int32) for step in puzzle.steps.values()]
    following = np.stack([numbers, *results], axis=1)
    weighted_numbers = numbers.repeat(puzzle.weights(entries))
    dice = Dice(stream_of(puzzle.name), width)
    pool = list(
        dict.fromkeys(
            weighted_numbers.item(dice.below(len(weighted_numbers))) for _ in range(4 * _POOL)
        )
    )[:_POOL]
    sides = [split_by(puzzle.smallest_form(entries[row].tobytes())) for row in pool]
    return RuleTables(
        entries,
        puzzle.worth_showing(entries),
        following,
        pool,
        _apply_all_rules(following, pool, tier),
        sides,
        {},
    )


class RewritingState(NamedTuple):
    """The rows after the steps so far."""

    rows: jax.Array
    """int8 ``(examples + 1, width)``: examples, then the query."""
    steps_made: jax.Array
    """int32: steps applied so far."""


class InductionTask(PuzzleTask[RewritingState]):
    """The interactive form."""

    puzzle: InductionPuzzle
    measures: ClassVar[dict[str, str]] = {
        "alike": "fraction of the examples' entries that are as in their output"
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (400, 400, 3)
    #: Background colour of each symbol in pictures; none to write the symbols.
    papers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        puzzle = self.puzzle
        self.entries = puzzle.examples * puzzle.width
        self.action_space = spaces.Discrete(len(puzzle.steps))
        self.observation_space = self.box(
            0.0, 1.0, (self.entries * (3 * len(puzzle.symbols) + puzzle.width),)
        )
        # A step may mend what others did harm.
        self.reward_space = self.box(-float(self.entries), self.entries + 1.0)

    def initial(self, key: jax.Array, params: Params) -> RewritingState:
        """Begin with the inputs and the query."""
        return RewritingState(
            jnp.concatenate([params.instance.inputs, params.instance.query[None]]), jnp.int32(0)
        )

    def transition(
        self, state: RewritingState, action: jax.Array, key: jax.Array, params: Params
    ) -> RewritingState:
        """Apply a step to all rows."""
        rows = state.rows
        for number, step in enumerate(self.puzzle.steps.values()):
            rows = jnp.where(action == number, step(state.rows, jnp), rows)
        return RewritingState(rows, state.steps_made + 1)

    def observation(self, state: RewritingState, key: jax.Array, params: Params) -> jax.Array:
        """Return the entries one-hot, then which of them are equal."""
        rows, outputs = state.rows[:-1], params.instance.outputs
        symbols = np.arange(len(self.puzzle.symbols), dtype=np.int8)
        change = (outputs - rows) % np.int8(len(symbols))
        one_hot = (entries[..., None] == symbols for entries in (rows, outputs, change))
        flags = (*one_hot, outputs[..., None] == rows[:, None])
        return jnp.concatenate([flag.astype(self.dtype).reshape(-1) for flag in flags])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        examples, width, symbols = self.puzzle.examples, self.puzzle.width, len(self.puzzle.symbols)
        shape = (examples, width, symbols)
        return (
            Component(
                "rows", "[example, entry, symbol]: what each entry is now, one-hot", shape=shape
            ),
            Component(
                "outputs",
                "[example, entry, symbol]: what each entry is to become, one-hot",
                shape=shape,
            ),
            Component(
                "changes",
                f"[example, entry, change]: output minus entry, modulo {symbols}, one-hot",
                shape=shape,
            ),
            Component(
                "equal",
                "[example, entry of the output, entry of the row]: whether the two are equal now",
                shape=(examples, width, width),
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the steps, in words."""
        return singles({f"step {number}": step for number, step in enumerate(self.puzzle.steps, 1)})

    def reward(
        self,
        state: RewritingState,
        action: jax.Array,
        next_state: RewritingState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return progress, plus 1 for a rule that fits."""
        alike, next_alike = self._num_alike(state, params), self._num_alike(next_state, params)
        at_first = self._num_alike(self.initial(key, params), params)
        progress = (next_alike - alike).astype(self.dtype) / (self.entries - at_first).astype(
            self.dtype
        )
        return progress + ((alike < self.entries) & (next_alike == self.entries)).astype(self.dtype)

    def terminal(self, state: RewritingState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the rule fits, or has the largest allowed length."""
        return (self._num_alike(state, params) == self.entries) | (
            state.steps_made == int(self.puzzle.tier)
        )

    def info(self, state: RewritingState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: every example is its output, so the query is the answer."""
        alike = self._num_alike(state, params)
        return {"success": alike == self.entries, "alike": alike.astype(self.dtype) / self.entries}

    @staticmethod
    def _num_alike(state: RewritingState, params: Params) -> jax.Array:
        return (state.rows[:-1] == params.instance.outputs).sum(dtype=jnp.int32)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: RewritingState, params: Params) -> str:
        """Show the steps, the present rows, and their wanted outputs."""
        puzzle = self.puzzle
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(puzzle.steps, 1))
        *rows, query = np.asarray(state.rows).tolist()
        pairs = zip(rows, np.asarray(params.instance.outputs).tolist(), strict=True)
        lines = "\n".join(
            f"{puzzle.write_answer(row)} (to become {puzzle.write_answer(output)})"
            for row, output in pairs
        )
        steps_left = int(puzzle.tier) - int(state.steps_made)
        return (
            f"{puzzle.rules()}\n\nThe steps:\n{steps}\n\nThe examples as they are:\n{lines}\n\n"
            f"The query as it is:\n{puzzle.write_answer(query)}\n\nSteps left: {steps_left}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return (
            "Answer with the number of the step to apply to every row, 1 to "
            f"{len(self.puzzle.steps)}."
        )

    def parse(self, text: str, state: RewritingState, params: Params) -> np.ndarray:
        """Read the number of a step, counted from 1.

        Raises:
            ValueError: anything else.
        """
        number = parsing.integer(text.strip(), 1, len(self.puzzle.steps), "step")
        return np.asarray(number - 1, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: RewritingState, params: Params) -> str:
        """Return the number of the step."""
        return str(int(action) + 1)

    def why_over(self, state: RewritingState, params: Params, info: dict[str, Any]) -> str:
        """Say whether the rule fits or is too long."""
        fits = info["success"]
        return (
            "every example is its output"
            if fits
            else "a rule has no more steps, and not every example is its output"
        )

    def draw(self, state: RewritingState, params: Params) -> np.ndarray:
        """Draw each example above its output, then the query."""
        *rows, query = np.asarray(state.rows).tolist()
        pairs = zip(rows, np.asarray(params.instance.outputs).tolist(), strict=True)
        lines = [line for pair in pairs for line in (*pair, None)] + [query]
        board = Board(len(lines), self.puzzle.width, self.picture_shape)
        for number, line in enumerate(lines):
            for column, value in enumerate(line or ()):
                if self.papers:
                    board.cell(number, column, paper=self.papers[value])
                else:
                    board.cell(
                        number, column, self.puzzle.write_answer([value]), is_clue=number % 3 == 1
                    )
        return board.picture()

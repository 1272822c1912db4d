"""rlsuite/SelfReference-v0: find which numbered statements about each other's truth are true.

A statement gives the number of true ones among some of the statements, often including itself.
Exactly one assignment of truth values makes every true statement right and every false one wrong,
as enumeration proves. All assignments are equally likely to be the solution. ``difficulty`` is the
length of a depth-first search for it.

See :mod:`..shared.grid_filling` for actions, observations and rewards: statements are the cells of
one row, and the mask forbids a value that makes a statement wrong whatever the open values are.
After the cells come, for each statement, the statements that it is about and the numbers of true
ones among them with which it is right (a bit each); then the mask.

Three statements make about 2,000 different puzzles, four far more.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cache, reduce
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.bitset import unpack_bits
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Example

from ..shared.board import INK, Board
from ..shared.grid_filling import FillTask, Grid, GridPuzzle, GridState, rows_as_bits
from ..shared.naming import least_naming
from ..shared.puzzle_task import Params

TRUE, FALSE = 1, 2
MIN_STATEMENTS = 3
MAX_STATEMENTS = 12
_TRIES = 200

Statement = tuple[int, int]
"""A statement: the statements that it is about and the counts with which it is right, as bits.

The count is the number of true ones among the statements that it is about.
"""


class Instance(NamedTuple):
    """Contents of the statements."""

    givens: np.ndarray
    """int8 ``(statements,)``: zeros, because no truth value is given."""
    about: np.ndarray
    """int16 ``(statements,)``: statements that each one is about, as bits."""
    counts: np.ndarray
    """int16 ``(statements,)``: counts with which each statement is right, bit k for k.

    The count is the number of true ones among the statements that it is about.
    """


@cache
def forms(size: int) -> tuple[dict[int, str], ...]:
    """Return groups of similar sentences about ``size`` statements.

    The keys of a group are the counts with which its sentences are right, as bits.

    ``{a}`` and ``{b}`` stand for numbers, ``{group}`` for a name of three or more.
    """
    if size == 1:
        return ({0b10: "statement {a} is true", 0b01: "statement {a} is false"},)
    if size == 2:
        the_two = "statements {a} and {b}"
        return (
            {
                0b101: f"{the_two} are both true or both false",
                0b010: f"one of {the_two} is true and the other false",
            },
            {0b100: f"{the_two} are both true", 0b001: f"{the_two} are both false"},
            {
                0b110: f"at least one of {the_two} is true",
                0b011: f"at least one of {the_two} is false",
            },
        )
    every, inner = (1 << size + 1) - 1, range(1, size)

    def count_sentence(how: str, count: int) -> str:
        return (
            f"{how} {count} of {{group}} {'is' if count == 1 else 'are'} true"
            if count
            else "none of {group} is true"
        )

    parity = {
        sum(1 << k for k in range(odd, size + 1, 2)): word
        for odd, word in enumerate(("even", "odd"))
    }
    return (
        {1 << k: count_sentence("exactly", k) for k in range(size + 1)},
        {every & -(1 << k): count_sentence("at least", k) for k in inner},
        {(2 << k) - 1: count_sentence("at most", k) for k in inner},
        {
            table: f"the number of true ones among {{group}} is {word}"
            for table, word in parity.items()
        },
    )


class SelfReferencePuzzle(GridPuzzle[Instance]):
    """``tier`` is the number of statements."""

    name = "SelfReference"
    meanings: ClassVar[dict[str, str]] = {"T": "true", "F": "false"}
    difficulty_is = (
        "values that a depth-first search, statement by statement, tries until it has proven "
        "uniqueness"
    )
    tier_is = "the number of statements"
    tiers = range(MIN_STATEMENTS, MAX_STATEMENTS + 1)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.rows, self.columns, self.symbols, self.fillable = 1, int(tier), "TF", 2
        count = self.columns
        self._groups = {
            (1 << last) - (1 << first - 1): f"statements {first} to {last}"
            for first in range(1, count - 1)
            for last in range(first + 2, count + 1)
        }
        self._groups[(1 << count) - 1] = f"the {count} statements"
        for first, word in enumerate(("odd", "even")):
            numbered = sum(1 << k for k in range(first, count, 2))
            if numbered.bit_count() > 2:
                self._groups[numbered] = f"the {word}-numbered statements"
        self._pairs = [
            1 << statement | 1 << second for statement, second in combinations(range(count), 2)
        ]
        self._every = (1 << 2**count) - 1
        self._true = [
            sum(1 << case for case in range(2**count) if case >> k & 1) for k in range(count)
        ]
        self._by_count: dict[int, list[int]] = {}

    @property
    def space(self) -> float:
        """Number of instances, measured for three statements.

        With more statements seeds hardly ever repeat one.
        """
        return 2_000 if self.columns == MIN_STATEMENTS else super().space

    # -- assignments: a set of them is a number of 2**statements bits, one for each ----------------

    def _assignments_by_count(self, about: int) -> list[int]:
        """Return, for each number, the assignments that make so many of some statements true."""
        if about not in self._by_count:
            cases = [self._every]
            for true in (self._true[k] for k in range(self.columns) if about >> k & 1):
                cases = [
                    old & ~true | more & true
                    for old, more in zip([*cases, 0], [0, *cases], strict=True)
                ]
            self._by_count[about] = cases
        return self._by_count[about]

    def _right_assignments(self, statement: Statement) -> int:
        """Return the assignments in which the content of a statement is true."""
        about, counts = statement
        # No two overlap.
        return sum(
            case for k, case in enumerate(self._assignments_by_count(about)) if counts >> k & 1
        )

    def _consistent_assignments(self, statements: Sequence[Statement]) -> int:
        """Return the assignments that make every true statement right and every false one wrong."""
        cases = self._every
        for true, statement in zip(self._true, statements, strict=True):
            cases &= self._every ^ true ^ self._right_assignments(statement)
        return cases

    def compose(self, dice: Dice) -> Instance | None:
        """Draw statements that fit a random assignment, until they fit no other.

        The assignment stays while new statements are drawn. Otherwise assignments that few
        statements fit would be rare.
        """
        values = dice.below(2**self.columns)
        for _ in range(_TRIES):
            statements = [self._statement(number, values, dice) for number in range(self.columns)]
            if self._consistent_assignments(statements) == 1 << values:
                about, counts = zip(*statements, strict=True)
                return Instance(
                    np.zeros(self.columns, np.int8),
                    np.array(about, np.int16),
                    np.array(counts, np.int16),
                )
        return None

    def _statement(self, number: int, values: int, dice: Dice) -> Statement:
        """Draw a statement.

        A quarter are about one other statement, a quarter about two, half about a group.

        It is right if it is to be true. Its wording must not reveal whether it is true. Few pairs
        make "both are true" right, so for two statements the wording is drawn first.
        """
        value = values >> number & 1
        while True:
            kind = dice.below(4)
            if kind == 0:
                counts = dice.choice(tuple(dice.choice(forms(2))))
                pairs = [
                    pair
                    for pair in self._pairs
                    if counts >> (values & pair).bit_count() & 1 == value
                ]
                if pairs:
                    return dice.choice(pairs), counts
                continue
            other_number = (number + dice.between(1, self.columns - 1)) % self.columns
            about = 1 << other_number if kind == 1 else dice.choice(tuple(self._groups))
            true = (values & about).bit_count()
            form = dice.choice(forms(about.bit_count()))
            if fitting := [counts for counts in form if counts >> true & 1 == value]:
                return about, dice.choice(fitting)

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form over all numberings of the statements."""
        statements = _statements(instance)
        members = [[k for k in range(self.columns) if about >> k & 1] for about, _ in statements]
        mentions = [
            [k for k, (about, _) in enumerate(statements) if about >> number & 1]
            for number in range(self.columns)
        ]

        def look(colours: Sequence[int]) -> list[Any]:
            about = [sorted(colours[k] for k in inside) for inside in members]
            by = [sorted(colours[k] for k in those) for those in mentions]
            own_facts = [
                (counts, number in members[number]) for number, (_, counts) in enumerate(statements)
            ]
            return [
                (*facts, tuple(a), tuple(b))
                for facts, a, b in zip(own_facts, about, by, strict=True)
            ]

        def form(names: Sequence[int]) -> bytes:
            rows = sorted(
                (names[number], sum(1 << names[k] for k in members[number]), counts)
                for number, (_, counts) in enumerate(statements)
            )
            return np.array(rows, np.int16).tobytes()

        return least_naming(self.columns, look, form)

    def rules(self) -> str:
        """State the rules."""
        return (
            "Each numbered statement is either true or false: true if what it says about these "
            "statements is the case, and false if it is not. Exactly one assignment of truth "
            "values is possible."
        )

    def clues(self, instance: Instance) -> str:
        """State the statements."""
        return "\n".join(
            f"{k}. {self.words(statement).capitalize()}."
            for k, statement in enumerate(_statements(instance), 1)
        )

    def words(self, statement: Statement) -> str:
        """Return a statement in English."""
        about, counts = statement
        numbers = [k + 1 for k in range(self.columns) if about >> k & 1]
        form = next(form for form in forms(len(numbers)) if counts in form)
        return form[counts].format(a=numbers[0], b=numbers[-1], group=self._groups.get(about))

    def question(self, instance: Instance) -> str:
        """State the rules, the statements, and the order of the answer."""
        return (
            f"{self.rules()}\n\n{self.clues(instance)}\n\nWhich are true? Answer with one line of "
            f"{self.columns} "
            "letters separated by single spaces, T for a true statement and F for a false one, in "
            "the order of their "
            "numbers."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show the values of two statements."""
        return [
            Example(
                "For example, if there were two statements and only the first were true:", "T F"
            )
        ]

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first statement with a value that does not fit its content."""
        true = sum(1 << k for k, value in enumerate(grid[0]) if value == TRUE)
        for number, (about, counts) in enumerate(_statements(instance)):
            holds = counts >> (true & about).bit_count() & 1
            if holds != true >> number & 1:
                declared, what = ("false", "is") if holds else ("true", "is not")
                return (
                    f"statement {number + 1} is called {declared}, and what it says {what} the case"
                )
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Try all assignments."""
        cases = self._consistent_assignments(_statements(instance))
        if not cases:
            raise ValueError("these statements contradict each other")
        values = cases.bit_length() - 1
        return [[TRUE if values >> k & 1 else FALSE for k in range(self.columns)]]

    def difficulty(self, instance: Instance) -> float:
        """Count the values that a search tries, statement by statement.

        It drops values that are settled and wrong.
        """
        statements = _statements(instance)
        tried = 0

        def search(num_known: int, true: int) -> None:
            nonlocal tried
            if num_known == self.columns:
                return
            for value in (1, 0):
                tried += 1
                if _no_contradiction(statements, num_known + 1, true | value << num_known):
                    search(num_known + 1, true | value << num_known)

        search(0, 0)
        return float(tried)

    def heuristic(self, instance: Instance) -> str:
        """Make each statement in turn true, unless that makes a settled one wrong."""
        statements = _statements(instance)
        true = 0
        for number in range(self.columns):
            if _no_contradiction(statements, number + 1, true | 1 << number):
                true |= 1 << number
        return self.write_answer([[TRUE if true >> k & 1 else FALSE for k in range(self.columns)]])


def _statements(instance: Instance) -> list[Statement]:
    return list(zip(instance.about.tolist(), instance.counts.tolist(), strict=True))


def _no_contradiction(statements: Sequence[Statement], num_known: int, true: int) -> bool:
    """Return False if the first values settle that one of them is wrong.

    These are the values of the first ``num_known`` statements.

    The values are given as the set of true statements.
    """
    for number, (about, counts) in enumerate(statements[:num_known]):
        open_ones = (about >> num_known).bit_count()
        possible = ((2 << open_ones) - 1) << (true & about).bit_count()
        if not possible & (counts if true >> number & 1 else ~counts):
            return False
    return True


class SelfReference(FillTask):
    """Statements about each other, a truth value a step."""

    puzzle: SelfReferencePuzzle
    puzzle_class = SelfReferencePuzzle
    bank_size = 4096
    picture_shape = (360, 640, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        size = self.cells * self.contents + self.fact_count + 2 * self.cells
        self.observation_space = self.box(0.0, 1.0, (size,))

    @property
    def fact_count(self) -> int:
        """Numbers of :meth:`facts`."""
        return self.puzzle.columns * (2 * self.puzzle.columns + 1)

    def mask(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow values after which no settled statement is wrong."""
        true, unknown = self._sets(cells, TRUE), self._sets(cells, 0)
        free = []
        for i in range(self.cells):
            bit = np.uint16(1 << i)
            still_unknown = unknown & ~bit
            values = (
                self._is_possible(true_set, still_unknown, instance)
                for true_set in (true | bit, true & ~bit)
            )
            free += [(unknown & bit != 0) & possible for possible in values]
        return unpack_bits(free, 1)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every statement's value fits its content."""
        return self._is_possible(self._sets(cells, TRUE), jnp.uint16(0), instance)

    def _sets(self, cells: jax.Array, value: int) -> jax.Array:
        """Return the statements with a value, as a set: uint16."""
        return rows_as_bits((cells == value).astype(jnp.uint16), self.cells, 1)[0]

    def _is_possible(self, true: jax.Array, unknown: jax.Array, instance: Any) -> jax.Array:
        """Return whether no statement with a value is settled to have the other one: bool.

        Args:
            true, unknown: sets of statements, uint16.
            instance: the statements.
        """
        conditions = []
        for i in range(self.cells):
            bit = np.uint16(1 << i)
            about = instance.about[i].astype(jnp.uint16)
            counts = instance.counts[i].astype(jnp.uint16)
            min_true = lax.population_count(true & about)
            possible = (
                (np.uint16(2) << lax.population_count(unknown & about)) - np.uint16(1)
            ) << min_true
            fitting_counts = jnp.where(true & bit != 0, counts, ~counts)
            conditions.append((unknown & bit != 0) | (possible & fitting_counts != 0))
        return reduce(operator.and_, conditions)

    def facts(self, instance: Any) -> jax.Array:
        """Return the statements that each one is about, and the counts with which it is right."""
        numbers = np.arange(self.puzzle.columns + 1, dtype=np.int16)

        def statement_facts(about: jax.Array, counts: jax.Array) -> jax.Array:
            blocks = about[:, None] >> numbers[:-1] & 1, counts[:, None] >> numbers & 1
            return jnp.concatenate(blocks, axis=1).reshape(-1).astype(self.dtype)

        # This is a separate call. If it were joined with cells and values at once, each entry would
        # be looked up among all parts.
        return computed_once(statement_facts)(instance.about, instance.counts)

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        count = self.puzzle.columns
        meaning = (
            "[statement, ...]: whether it is about each statement, then whether it is right where "
            "0, 1, ... of those are true"
        )
        return (Component("statements", meaning, shape=(count, 2 * count + 1)),)

    def observation(self, state: GridState, key: jax.Array, params: Params) -> jax.Array:
        """Return the cells and facts, then the values that are not forbidden."""
        legal = self.action_mask(state, params).astype(self.dtype)
        return jnp.concatenate([super().observation(state, key, params), legal])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the cells and facts, then the mask."""
        legal = Component(
            "legal",
            "[statement, value]: whether true, and false, is not forbidden",
            shape=(self.cells, 2),
        )
        return *super().observation_components(), legal

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw numbers above, statements below."""
        count = self.puzzle.columns
        for number in range(count):
            board.text(-0.3, number, str(number + 1), INK, 0.3)
        for line, words in enumerate(self.puzzle.clues(instance).split("\n")):
            board.text(
                1.0 + (line + 0.5) * 14 / board.side, (count - 1) / 2, words, INK, 18 / board.side
            )

"""Puzzles of arithmetic: combine given numbers, two at a time, until one is the target.

One-shot, the answer is an expression. Interactively, the result of an operation replaces two
numbers:

=============  =====================================================================================
action         ``operation * pairs + pair``, ``Discrete(6 * n * (n - 1) / 2)``; operations on places
               i < j with the numbers a and b: a + b, a * b, a - b, b - a, a / b, b / a; pairs (0,
               1), (0, 2), ... The result takes place i, place j is empty from then on; legal are
               operations on two numbers that the rules allow
observation    ``Box(2 n + 1 + 2 actions)``: each place's number v as v / (abs(v) + t) with the
               target t (0: empty), and whether there is one; t / 1000; then the result of each
               legal action, scaled in the same way (0: not legal), and whether it is the target
reward         1 on reaching the target
termination    the target is reached, or one number is left
=============  =====================================================================================

Used numbers do not come back, so an episode lasts n - 1 steps at most. The best return is 1.
"""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Puzzle, Verdict, wrong

from ..shared.board import CLUE_PAPER, FILLED, INK, Board
from ..shared.puzzle_task import Params, PuzzleTask
from .expression import (
    OPERATORS,
    Tree,
    apply_operator,
    operations,
    read,
    to_ascii,
    value_of,
    write_tree,
)

OPERATIONS = (("+", False), ("*", False), ("-", False), ("-", True), ("/", False), ("/", True))
"""Operators, and whether the second number comes first.

Those whose order does not matter come first.
"""


class Instance(NamedTuple):
    """Numbers, and the target to make of them."""

    numbers: np.ndarray
    """int16 ``(count,)``, positive."""
    target: np.ndarray
    """int16, a scalar; positive, at most 1000."""


class CombinePuzzle(Puzzle[Instance]):
    """The one-shot form. Subclasses set ``count``, the number of numbers, in ``__init__``."""

    count: int
    #: True if every number has to be used; otherwise some are enough.
    uses_all: ClassVar[bool]
    #: Names of the numbers in the request for an answer.
    operands: ClassVar[str] = "these numbers"

    @abc.abstractmethod
    def rules(self, target: int) -> str:
        """State the target and how to make it."""

    @abc.abstractmethod
    def allows(self, operator: str, first: Fraction, second: Fraction) -> bool:
        """Return whether the rules allow an operation."""

    @abc.abstractmethod
    def tree(self, instance: Instance) -> Tree:
        """Find an expression for the target, by exact search."""

    def question(self, instance: Instance) -> str:
        """State the rules, the numbers and the grammar of an expression."""
        return (
            f"{self.rules(int(instance.target))}\n\n{self.numbers_text(instance)}\n\n"
            f"Answer with one expression of {self.operands}, the operators + - * / and "
            "parentheses. The usual "
            "precedence holds. A minus sign always stands between two values, and there is no "
            "equals sign."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show an expression of other numbers."""
        return [
            Example(
                "For example, the answer for making 20 from 3, 5 and 7 could be:", "(7 - 3) * 5"
            )
        ]

    def numbers_text(self, instance: Instance) -> str:
        """Return the numbers, in words."""
        return f"Numbers: {', '.join(map(str, instance.numbers.tolist()))}"

    def mend(self, answer: str) -> str:
        """Write the answer on one line with operators in ASCII.

        The value after an equals sign is left out if it is right.
        """
        text = " ".join(to_ascii(answer).removesuffix(".").split())
        expression, equals, value = text.partition("=")
        return (
            expression
            if equals and value.strip() == str(value_of(expression, self.count))
            else text
        )

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Check the format, then the numbers, then the operations, then the value."""
        expression = read(answer, self.count)
        numbers = Counter(instance.numbers.tolist())
        used = Counter(token for token in expression if isinstance(token, int))
        if extra := used - numbers:
            return wrong(f"{min(extra)} is used more often than it is given")
        if self.uses_all and used != numbers:
            return wrong(f"{min(numbers - used)} is used less often than it is given")
        value = Fraction(0)
        for operator, first, second in operations(expression):
            if not self.allows(operator, first, second):
                return wrong(f"{first} {operator} {second} is not allowed")
            value = apply_operator(operator, first, second)
        if value != int(instance.target):
            return wrong(f"the value is {value}, not {int(instance.target)}")
        return RIGHT

    def solve(self, instance: Instance) -> str:
        """Return the expression of :meth:`tree`."""
        return write_tree(self.tree(instance), instance.numbers.tolist())

    def plan(self, instance: Instance) -> list[int]:
        """Return the operations of :meth:`tree`, the innermost first."""
        actions: list[int] = []
        pairs = list(combinations(range(self.count), 2))

        def slot_of(tree: Tree) -> int:
            if isinstance(tree, int):
                return tree
            operator, first, second = tree
            i, j = slot_of(first), slot_of(second)
            turned = i > j and operator in "-/"
            actions.append(
                OPERATIONS.index((operator, turned)) * len(pairs)
                + pairs.index((min(i, j), max(i, j)))
            )
            return min(i, j)

        slot_of(self.tree(instance))
        return actions

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Combine two numbers at a time at random, in any allowed way.

        This ends when one number is left or the last result is the target.
        """
        return write_tree(self.combine(instance, dice.choice), instance.numbers.tolist())

    def heuristic(self, instance: Instance) -> str:
        """Always choose the operation with the result nearest to the target."""
        target = int(instance.target)
        nearest = self.combine(
            instance, lambda ways: min(ways, key=lambda result: abs(result.value - target))
        )
        return write_tree(nearest, instance.numbers.tolist())

    def combine(
        self, instance: Instance, choose: Callable[[list[PartialResult]], PartialResult]
    ) -> Tree:
        """Combine numbers by chosen operations until one is left.

        If not all numbers must be used, this ends as soon as the target is made.

        Args:
            instance: numbers and target.
            choose: picks a result among those of all allowed operations.
        """
        terms = [
            PartialResult(Fraction(number), position)
            for position, number in enumerate(instance.numbers.tolist())
        ]
        while len(terms) > 1 and (self.uses_all or terms[-1].value != int(instance.target)):
            result = choose(self._ways(terms))
            terms = [
                term for position, term in enumerate(terms) if position not in result.consumes
            ] + [result]
        return terms[-1].tree

    def _ways(self, terms: list[PartialResult]) -> list[PartialResult]:
        """Return the result of every allowed operation on two parts."""
        ways = []
        for i, j in combinations(range(len(terms)), 2):
            for operator, turned in OPERATIONS:
                first, second = (terms[j], terms[i]) if turned else (terms[i], terms[j])
                if self.allows(operator, first.value, second.value):
                    value = apply_operator(operator, first.value, second.value)
                    ways.append(PartialResult(value, (operator, first.tree, second.tree), (i, j)))
        return ways


class PartialResult(NamedTuple):
    """A given number, or a result."""

    value: Fraction
    tree: Tree
    consumes: tuple[int, ...] = ()
    """Indices of its parts in the list before the operation."""


class NumbersState(NamedTuple):
    """The present numbers: exact fractions, not reduced."""

    tops: jax.Array
    """int32 ``(n,)``: numerators."""
    bottoms: jax.Array
    """int32 ``(n,)``: denominators, positive; 0 where no number is left."""


class CombineTask(PuzzleTask[NumbersState]):
    """The interactive form. Subclasses define :meth:`normalise`."""

    puzzle: CombinePuzzle
    measures: ClassVar[dict[str, str]] = {"left": "how many numbers are left"}
    picture_shape: ClassVar[tuple[int, int, int]] = (200, 480, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.count = n = self.puzzle.count
        self.pairs = list(combinations(range(n), 2))
        actions = len(OPERATIONS) * len(self.pairs)
        self.action_space = spaces.Discrete(actions)
        self.observation_space = self.box(-1.0, 1.0, (2 * n + 1 + 2 * actions,))
        self.reward_space = self.box(0.0, 1.0)

    @abc.abstractmethod
    def normalise(
        self, tops: jax.Array, bottoms: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return quotients of whole numbers in the form in which the state stores them.

        These are numerators, positive denominators, and which of the quotients are allowed.
        """

    def results(self, state: NumbersState) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return the result of each action.

        These are numerators, denominators, and whether the action is legal, each ``(actions,)``.
        """
        return computed_once(self._results)(state)

    def _results(self, state: NumbersState) -> tuple[jax.Array, jax.Array, jax.Array]:
        first, second = ([pair[side] for pair in self.pairs] for side in (0, 1))
        p, q = (jnp.stack([numbers[i] for i in first]) for numbers in state)
        r, s = (jnp.stack([numbers[j] for j in second]) for numbers in state)
        ps, qr, qs = p * s, q * r, q * s
        tops = jnp.concatenate([ps + qr, p * r, ps - qr, qr - ps, ps, qr])
        bottoms = jnp.concatenate([qs, qs, qs, qs, qr, ps])
        tops, bottoms, allowed = self.normalise(tops, bottoms)
        return tops, bottoms, allowed & jnp.tile(qs > 0, len(OPERATIONS))

    def initial(self, key: jax.Array, params: Params) -> NumbersState:
        """Begin with the numbers given."""
        return NumbersState(
            params.instance.numbers.astype(jnp.int32), jnp.ones(self.count, jnp.int32)
        )

    def transition(
        self, state: NumbersState, action: jax.Array, key: jax.Array, params: Params
    ) -> NumbersState:
        """Replace two numbers by the result."""
        tops, bottoms, _ = self.results(state)
        is_action = np.arange(len(OPERATIONS) * len(self.pairs)) == action
        top, bottom = (
            jnp.where(is_action, results, 0).sum(dtype=jnp.int32) for results in (tops, bottoms)
        )
        pair = np.arange(len(self.pairs)) == action % len(self.pairs)
        is_place = np.array(self.pairs)[:, :, None] == np.arange(self.count)
        at, gone = ((pair[:, None] & is_place[:, side]).any(axis=0) for side in (0, 1))
        return NumbersState(*(
            jnp.where(at, new, jnp.where(gone, 0, old))
            for old, new in zip(state, (top, bottom), strict=True)
        ))  # fmt: skip

    def observation(self, state: NumbersState, key: jax.Array, params: Params) -> jax.Array:
        """Return the numbers, the target and the result of each legal action."""
        tops, bottoms, legal = self.results(state)
        target = params.instance.target.astype(jnp.int32)

        def scale(tops: jax.Array, bottoms: jax.Array) -> jax.Array:
            top = tops.astype(self.dtype)
            return top / (jnp.abs(top) + (target * bottoms).astype(self.dtype) + (bottoms == 0))

        blocks = (
            scale(*state),
            state.bottoms > 0,
            target[None].astype(self.dtype) / 1000,
            jnp.where(legal, scale(tops, bottoms), 0),
            legal & (tops == target * bottoms),
        )
        return jnp.concatenate([block.astype(self.dtype) for block in blocks])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        every = (len(OPERATIONS), len(self.pairs))
        return (
            Component(
                "numbers",
                "number v at each place as v / (abs(v) + target); 0 at an empty one",
                shape=(self.count,),
            ),
            Component("present", "whether there is a number at each place", shape=(self.count,)),
            Component("target", "the number to reach", "1000"),
            Component(
                "results",
                "[operation, pair]: what an action makes, scaled as numbers; 0 if not legal",
                shape=every,
            ),
            Component(
                "reaches", "[operation, pair]: whether an action makes the target", shape=every
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: an operation on two places."""
        meaning = (
            "[operation, pair]: replace a and b at two places by a + b, a * b, a - b, b - a, a / b "
            "or b / a; "
            f"pairs of places {', '.join(map(str, self.pairs[:2]))}, ..."
        )
        return (Component("combine", meaning, shape=(len(OPERATIONS), len(self.pairs))),)

    def reward(
        self,
        state: NumbersState,
        action: jax.Array,
        next_state: NumbersState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return 1 for the target."""
        return (
            self._is_target_reached(next_state, params) & ~self._is_target_reached(state, params)
        ).astype(self.dtype)

    def terminal(self, state: NumbersState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the target is reached or nothing can be combined."""
        return self._is_target_reached(state, params) | (self._numbers_left(state) == 1)

    def info(self, state: NumbersState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the target is reached."""
        return {
            "success": self._is_target_reached(state, params),
            "left": self._numbers_left(state),
        }

    def action_mask(self, state: NumbersState, params: Params) -> jax.Array:
        """Return the operations that the rules allow, bool ``(actions,)``."""
        return self.results(state)[2]

    def _is_target_reached(self, state: NumbersState, params: Params) -> jax.Array:
        is_number = state.bottoms > 0
        is_target = (
            is_number & (state.tops == params.instance.target.astype(jnp.int32) * state.bottoms)
        ).any()
        return is_target & ((self._numbers_left(state) == 1) | (not self.puzzle.uses_all))

    @staticmethod
    def _numbers_left(state: NumbersState) -> jax.Array:
        return (state.bottoms > 0).sum(dtype=jnp.int32)

    # -- host side ---------------------------------------------------------------------------------

    def values(self, state: NumbersState) -> list[Fraction | None]:
        """Return the number of each place."""
        tops, bottoms = (np.asarray(numbers).tolist() for numbers in state)
        return [
            Fraction(top, bottom) if bottom else None
            for top, bottom in zip(tops, bottoms, strict=True)
        ]

    def describe(self, state: NumbersState, params: Params) -> str:
        """Show the rules and the numbers left."""
        numbers = ", ".join(str(value) for value in self.values(state) if value is not None)
        return f"{self.puzzle.rules(int(params.instance.target))}\n\nNumbers: {numbers}"

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return (
            "Answer 'A + B', 'A - B', 'A * B' or 'A / B' to replace two of the numbers by the "
            "result."
        )

    def parse(self, text: str, state: NumbersState, params: Params) -> np.ndarray:
        """Read ``8 - 3``; fractions as ``8/3``, without spaces.

        Raises:
            ValueError: anything else, or numbers that are not there.
        """
        words = text.split()
        if len(words) != 3 or words[1] not in OPERATORS:
            raise ValueError(
                f"expected 'A + B', with spaces, or -, * or / in place of +, got {text[:40]!r}"
            )
        free = [str(value) for value in self.values(state)]
        positions = []
        for number in (words[0], words[2]):
            if number not in free or number == str(None):
                raise ValueError(f"{number[:20]!r} is not among the numbers that are left")
            positions.append(free.index(number))
            free[positions[-1]] = ""
        turned = positions[0] > positions[1] and words[1] in "-/"
        pair = self.pairs.index((min(positions), max(positions)))
        action = OPERATIONS.index((words[1], turned)) * len(self.pairs) + pair
        return np.asarray(action, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: NumbersState, params: Params) -> str:
        """Return both numbers and the sign between them."""
        operation, pair = divmod(int(action), len(self.pairs))
        sign, turned = OPERATIONS[operation]
        first, second = (self.values(state)[position] for position in self.pairs[pair])
        return f"{second} {sign} {first}" if turned else f"{first} {sign} {second}"

    def why_illegal(self, action: np.ndarray, state: NumbersState, params: Params) -> str:
        """Say whether a number is gone or the rules forbid the operation."""
        operation, pair = divmod(int(action), len(self.pairs))
        a, b = (self.values(state)[position] for position in self.pairs[pair])
        if a is None or b is None:
            return (
                f"places {self.pairs[pair][0] + 1} and {self.pairs[pair][1] + 1} do not both hold "
                "a number"
            )
        operator, turned = OPERATIONS[operation]
        first, second = (b, a) if turned else (a, b)
        return f"{first} {operator} {second} is against the rules"

    def why_over(self, state: NumbersState, params: Params, info: dict[str, Any]) -> str:
        """Say whether the target is reached or nothing is left to combine."""
        target = int(params.instance.target)
        if info["success"]:
            return f"{target} is reached"
        return f"one number is left, and it is not {target}"

    def draw(self, state: NumbersState, params: Params) -> np.ndarray:
        """Draw the numbers in a row, the target above."""
        board = Board(1, self.count, self.picture_shape)
        board.text(-0.7, (self.count - 1) / 2, f"make {int(params.instance.target)}", INK, 0.7)
        numbers = params.instance.numbers.tolist()
        for position, value in enumerate(self.values(state)):
            board.cell(0, position, paper="" if value is not None else CLUE_PAPER)
            if value is not None:
                colour = INK if value == numbers[position] else FILLED
                board.text(0, position, str(value), colour, min(1.0, 2.2 / len(str(value))))
        return board.picture()

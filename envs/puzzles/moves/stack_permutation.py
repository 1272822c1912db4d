"""rlsuite/StackPermutation-v0: let 1, 2, 3, ... leave a stack in a given order.

``difficulty`` is the number of numbers. Of every two one-shot instances one is impossible. An order
is possible exactly if no three of its numbers, wherever they stand, go high, low, middle (Knuth,
The Art of Computer Programming 1, section 2.2.1, exercise 5). Possible and impossible orders are
made in the same way: two numbers of a random possible order trade places, again and again, until
the result is of the seed's kind. From 10 numbers on, an impossible order has no three adjacent
numbers that go high, low, middle. The interactive form has possible orders only.

There are few orders of 6 numbers: 132 are possible, and 496 others differ from a possible one by
two numbers. With 14 numbers, 2,674,440 are possible.

=============  =====================================================================================
action         0 push the next number, 1 pop the top; legal while there is one
observation    for each number: how many come out before it from now on (divided by n; negative once
               it is out); whether it is in the stack; whether it is its top; whether it is the one
               wanted next. Then the fraction pushed
reward         1/n for each number that comes out in its turn, +1 for the last
termination    everything is out, or a number came out that is not the one wanted
=============  =====================================================================================

The best return is 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Malformed, Puzzle, Verdict, wrong

from ..shared import parsing
from ..shared.board import CLUE_PAPER, FILLED, Board
from ..shared.puzzle_task import Params, PuzzleTask

MAX_COUNT = 24
OPERATIONS = ("push", "pop")
IMPOSSIBLE = "impossible"
MIN_HIDDEN_COUNT = 10
"""Least count of numbers from which on impossible orders are hidden.

In such an order, adjacent numbers alone do not show that it is impossible.
"""
PUSH, POP = 0, 1


class Instance(NamedTuple):
    """An order in which numbers are to come out."""

    order: np.ndarray
    """int8 ``(n,)``: a permutation of 1 to n."""


def operations(order: Sequence[int]) -> tuple[list[int], bool]:
    """Pop the wanted number as soon as it is on top, and push otherwise.

    There is no other way, because another push would bury a wanted number on top until after its
    turn.

    Returns:
        The operations until everything is out or nothing more can be pushed, and whether everything
        is out.
    """
    stack: list[int] = []
    steps: list[int] = []
    pushed = 0
    for number in order:
        while not stack or stack[-1] != number:
            if pushed == len(order):
                return steps, False
            pushed += 1
            stack.append(pushed)
            steps.append(PUSH)
        stack.pop()
        steps.append(POP)
    return steps, True


def plainly_impossible(order: Sequence[int]) -> bool:
    """Return whether three adjacent numbers go high, low, middle."""
    return any(
        low < middle < high for high, low, middle in zip(order, order[1:], order[2:], strict=False)
    )


class StackPermutationPuzzle(Puzzle[Instance]):
    """``tier`` is the number of numbers."""

    name = "StackPermutation"
    difficulty_is = "pushes and pops until the order is reached, or cannot be"
    tier_is = "how many numbers there are"
    tiers = range(4, MAX_COUNT + 1)
    few: ClassVar[dict[float, float]] = {4: 24, 5: 119, 6: 628}
    #: True if every order is possible.
    all_possible: ClassVar[bool] = False

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.count = int(tier)

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a possible or an impossible order, whichever is due for this seed."""
        return self._instance_of_kind(dice, possible=dice.share(2) == 1)

    def _instance_of_kind(self, dice: Dice, *, possible: bool) -> Instance:
        while True:
            order = self._possible_order(dice)
            first, second = dice.sample(range(self.count), 2)
            order[first], order[second] = order[second], order[first]
            if operations(order)[1] == possible and not (
                self.count >= MIN_HIDDEN_COUNT and plainly_impossible(order)
            ):
                return Instance(np.array(order, np.int8))

    def _possible_order(self, dice: Dice) -> list[int]:
        """Return the output of random pushes and pops."""
        stack: list[int] = []
        order: list[int] = []
        pushed = 0
        while len(order) < self.count:
            if pushed < self.count and (not stack or dice.below(2)):
                pushed += 1
                stack.append(pushed)
            else:
                order.append(stack.pop())
        return order

    @property
    def space(self) -> float:
        """Number of different orders.

        Beyond 6 numbers it is at least twice the number of possible ones, a Catalan number.
        """
        catalan = 1
        for k in range(self.count):
            catalan = catalan * 2 * (2 * k + 1) // (k + 2)
        return self.few.get(self.tier, 2.0 * catalan)

    def canonical(self, instance: Instance) -> bytes:
        """Return the order itself: no two are one puzzle in disguise."""
        return instance.order.tobytes()

    def question(self, instance: Instance) -> str:
        """State the rules, the order and the format."""
        n = self.count
        none = (
            ""
            if self.all_possible
            else f"; or with the single word {IMPOSSIBLE} if no operations do this"
        )
        return (
            f"The numbers 1 to {n} arrive in this order. 'push' puts the next number on top of a "
            "stack; 'pop' removes "
            "the top of the stack and writes it down. In the end, all numbers must be written down "
            "in this order:\n\n"
            f"{self.order_text(instance)}\n\n"
            f"Answer with the {2 * n} operations in order, each push or pop, separated by single "
            f"spaces{none}."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show the operations for two numbers, and the word."""
        lead = "For example, if there were two numbers, to be written in the order 2 1:"
        operations_example = Example(lead, "push push pop pop")
        word_example = Example("If no operations do this:", IMPOSSIBLE)
        return [operations_example] if self.all_possible else [operations_example, word_example]

    @property
    def caseless(self) -> Sequence[str]:
        """Names of the operations, and the word for none."""
        return (*OPERATIONS, IMPOSSIBLE)

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Do the operations one by one."""
        order = instance.order.tolist()
        if answer == IMPOSSIBLE:
            return wrong("it is possible") if operations(order)[1] else RIGHT
        words = answer.split(" ")
        if len(words) != 2 * self.count:
            raise Malformed(
                f"expected {2 * self.count} operations or {IMPOSSIBLE}, got {len(words)} words"
            )
        steps = [parsing.word(word, OPERATIONS) for word in words]
        stack: list[int] = []
        pushed = popped = 0
        for number, operation in enumerate(steps, 1):
            if operation == PUSH:
                if pushed == self.count:
                    return wrong(f"operation {number}: nothing is left to push")
                pushed += 1
                stack.append(pushed)
                continue
            if not stack:
                return wrong(f"operation {number}: the stack is empty")
            if (top := stack.pop()) != order[popped]:
                return wrong(
                    f"operation {number} writes {top} down where {order[popped]} is wanted"
                )
            popped += 1
        return RIGHT

    def solve(self, instance: Instance) -> str:
        """Return :func:`operations` as text."""
        steps, possible = operations(instance.order.tolist())
        return self.write_answer(steps) if possible else IMPOSSIBLE

    def plan(self, instance: Instance) -> list[int]:
        """Return the operations, which are the actions."""
        return operations(instance.order.tolist())[0]

    def difficulty(self, instance: Instance) -> float:
        """Return the number of operations that :func:`operations` makes."""
        return float(len(operations(instance.order.tolist())[0]))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Answer ``impossible`` half of the time, otherwise possible operations at random."""
        if dice.below(2):
            return IMPOSSIBLE
        steps: list[int] = []
        pushes = 0
        while len(steps) < 2 * self.count:
            push = pushes < self.count and (2 * pushes == len(steps) or dice.below(2) == 1)
            pushes += push
            steps.append(PUSH if push else POP)
        return self.write_answer(steps)

    def heuristic(self, instance: Instance) -> str:
        """Answer ``impossible`` if three adjacent numbers go high, low, middle.

        Otherwise answer with the operations of a possible order, followed by pops.
        """
        order = instance.order.tolist()
        if plainly_impossible(order):
            return IMPOSSIBLE
        steps = operations(order)[0]
        return self.write_answer(steps + [POP] * (2 * self.count - len(steps)))

    def constants(self) -> Sequence[str]:
        """Return ``impossible``, all pushes before all pops, and the two in turn."""
        push, pop = OPERATIONS
        return [
            IMPOSSIBLE,
            " ".join([push] * self.count + [pop] * self.count),
            " ".join([push, pop] * self.count),
        ]

    @staticmethod
    def write_answer(steps: Sequence[int]) -> str:
        """Write operations as an answer."""
        return " ".join(OPERATIONS[operation] for operation in steps)

    @staticmethod
    def order_text(instance: Instance) -> str:
        """Return the order as text."""
        return " ".join(map(str, instance.order.tolist()))


class PossiblePermutationPuzzle(StackPermutationPuzzle):
    """The puzzle with possible orders only."""

    name = "StackPermutation, possible"
    all_possible = True

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a possible order."""
        return self._instance_of_kind(dice, possible=True)


class StackState(NamedTuple):
    """Places of the numbers.

    The stack is a set, because numbers arrive in order: the greatest is on top.
    """

    stack: jax.Array
    """uint32: bit v is set if number v + 1 is in the stack."""
    pushed: jax.Array
    """int32: number of numbers pushed."""
    popped: jax.Array
    """int32: number of numbers that came out in their turn."""
    failed: jax.Array
    """bool: a number came out of turn."""


class StackPermutation(PuzzleTask[StackState]):
    """The interactive form."""

    puzzle: StackPermutationPuzzle
    puzzle_class = PossiblePermutationPuzzle
    measures: ClassVar[dict[str, str]] = {
        "out": "fraction of the numbers that came out in their turn"
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (120, 520, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.count = self.puzzle.count
        self.action_space = spaces.Discrete(2)
        low = [-1.0] * self.count + [0.0] * (3 * self.count + 1)
        self.observation_space = self.box(low, 1.0)
        self.reward_space = self.box(0.0, 1.0 + 1.0 / self.count)

    def initial(self, key: jax.Array, params: Params) -> StackState:
        """Begin with an empty stack."""
        return StackState(jnp.uint32(0), jnp.int32(0), jnp.int32(0), jnp.bool_(False))

    def transition(
        self, state: StackState, action: jax.Array, key: jax.Array, params: Params
    ) -> StackState:
        """Push or pop."""
        push = action == PUSH
        bit = np.uint32(1)
        top = self._top(state)
        pops_correctly = ~push & (top == self._next_number(state, params))
        moved = bit << jnp.where(push, state.pushed, top).astype(jnp.uint32)
        return StackState(
            state.stack ^ moved,
            state.pushed + push,
            state.popped + pops_correctly,
            state.failed | (~push & ~pops_correctly),
        )

    def observation(self, state: StackState, key: jax.Array, params: Params) -> jax.Array:
        """Return the turn and the place of each number, and the wanted number."""
        every = np.arange(self.count)
        # A table (number, place) is cheaper than sorting.
        is_place = params.instance.order == every[:, None] + 1
        turn = jnp.where(is_place, every, 0).sum(axis=1)
        inside = (state.stack >> every.astype(np.uint32)) & 1
        top = (state.stack != 0) & (every == self._top(state))
        is_next = every == self._next_number(state, params)
        blocks = (
            (turn - state.popped) / self.count,
            inside,
            top,
            is_next,
            (state.pushed / self.count)[None],
        )
        return jnp.concatenate([block.astype(self.dtype) for block in blocks])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        per_number = (self.count,)
        turn_meaning = (
            "how many numbers come out before each number from now on; negative once it is out"
        )
        return (
            Component("due", turn_meaning, f"{self.count}", per_number),
            Component("inside", "whether each number is in the stack", shape=per_number),
            Component("top", "whether each number is the top of the stack", shape=per_number),
            Component("wanted", "whether each number is to come out next", shape=per_number),
            Component("pushed", "fraction of the numbers that were pushed"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the two operations."""
        meanings = ("put the next number onto the stack", "take the top of the stack out")
        return singles(dict(zip(OPERATIONS, meanings, strict=True)))

    def reward(
        self,
        state: StackState,
        action: jax.Array,
        next_state: StackState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return a share for each number, plus 1 for the last one."""
        out = next_state.popped - state.popped
        return out.astype(self.dtype) / self.count + (
            (out > 0) & self._complete(next_state)
        ).astype(self.dtype)

    def terminal(self, state: StackState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether all numbers are out, or a number came out that was not wanted."""
        return state.failed | self._complete(state)

    def info(self, state: StackState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: everything came out in its turn."""
        return {
            "success": self._complete(state),
            "out": state.popped.astype(self.dtype) / self.count,
        }

    def action_mask(self, state: StackState, params: Params) -> jax.Array:
        """Push while numbers are left, pop while the stack is not empty."""
        return jnp.stack([state.pushed < self.count, state.stack != 0])

    def _complete(self, state: StackState) -> jax.Array:
        return state.popped == self.count

    @staticmethod
    def _top(state: StackState) -> jax.Array:
        """Return the top of the stack, counted from 0; -1 if it is empty."""
        return 31 - lax.clz(state.stack).astype(jnp.int32)

    def _next_number(self, state: StackState, params: Params) -> jax.Array:
        """Return the number that is to come out next, counted from 0; -1 at the end."""
        is_next = np.arange(self.count) == state.popped
        return jnp.where(is_next, params.instance.order, 0).sum(dtype=jnp.int32) - 1

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: StackState, params: Params) -> str:
        """Show the order, the numbers that came out, the stack and the next number."""
        n, popped, pushed = self.count, int(state.popped), int(state.pushed)
        stack = self._stack(state)
        return "\n".join([
            f"The numbers 1 to {n} pass through a stack. They must come out in this order:",
            self.puzzle.order_text(params.instance),
            f"Out so far: {popped} of {n}.",
            f"In the stack, the top last: {' '.join(map(str, stack)) or 'nothing'}.",
            f"To be pushed next: {pushed + 1 if pushed < n else 'nothing'}.",
        ])  # fmt: skip

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return "Answer 'push' or 'pop'."

    def parse(self, text: str, state: StackState, params: Params) -> np.ndarray:
        """Read ``push`` or ``pop``.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(parsing.word(text.strip(), OPERATIONS), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: StackState, params: Params) -> str:
        """Return the name of the operation."""
        return OPERATIONS[int(action)]

    def why_illegal(self, action: np.ndarray, state: StackState, params: Params) -> str:
        """Say that there is nothing to push or to pop."""
        return "nothing is left to push" if int(action) == PUSH else "the stack is empty"

    def why_over(self, state: StackState, params: Params, info: dict[str, Any]) -> str:
        """Say whether the order is complete or a wrong number came out."""
        return (
            "a number came out that was not wanted next"
            if bool(state.failed)
            else "everything is out, in order"
        )

    def draw(self, state: StackState, params: Params) -> np.ndarray:
        """Draw the order above and the stack below.

        The part that came out is blue, and the stack has its top on the right.
        """
        board = Board(2, self.count, self.picture_shape)
        popped, stack = int(state.popped), self._stack(state)
        for position, number in enumerate(params.instance.order.tolist()):
            board.cell(0, position, paper=FILLED if position < popped else CLUE_PAPER)
            board.text(0, position, str(number), "#ffffff" if position < popped else "#1d2733", 0.7)
            board.cell(1, position)
            if position < len(stack):
                board.text(1, position, str(stack[position]), scale=0.7)
        return board.picture()

    @staticmethod
    def _stack(state: StackState) -> list[int]:
        return [v + 1 for v in range(MAX_COUNT) if int(state.stack) >> v & 1]

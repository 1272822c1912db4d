"""rlsuite/SymbolicManipulation-v0: carry out a program of operations on a sequence of symbols.

The player writes the result.

``difficulty`` is the number of operations. Each is one of :data:`OPERATIONS`, and the prompt
describes it in full, so that there is one result. One of them is a rewriting system of two rules
that shorten the sequence, applied until neither can be. Every operation of an instance changes its
sequence. Of 4,000 instances with 2 operations 3,689 differ by more than the names of their letters;
with 4 operations all do.

Interactively, the sequence that each operation makes is written symbol by symbol and ended by a
full stop: see :mod:`..shared.writing` for actions and rewards. The observation is one-hot: the
sequence that the current operation is applied to, the written part of its result and its length,
the operation and its arguments, and the number of the operation. A uniformly random token is right
with probability 1 / (letters + 1), and some 12 in a row are needed with 2 operations, 30 with 4 and
50 with 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from textwrap import wrap
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component, singles
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Malformed, Puzzle, Verdict, agreement, wrong

from ..shared import parsing
from ..shared.board import Board
from ..shared.puzzle_task import Params
from ..shared.writing import WritingState, WritingTask

ALPHABET = "abcdefghij"
END = "."
MIN_LENGTH = 3
ARGUMENTS = 6
_TRIES = 100

Row = list[int]
"""Symbols as indices of :data:`ALPHABET`."""


class Operation(NamedTuple):
    """An operation on a sequence."""

    words: str
    """Effect in words, with places for what varies.

    ``{0}``, ``{1}``, ... are its arguments, ``{letters}`` is the alphabet, and ``{last}`` its last
    letter.
    """
    takes: str
    """Kinds of the arguments, a character each.

    ``n`` is a number, ``p`` a position (in ascending order, counted from 1), ``i`` a letter that is
    in the sequence, ``l`` another letter, ``r`` a letter or nothing.
    """
    apply: Callable[[Row, Row, int], Row]
    """Function that returns the new sequence.

    Its arguments are the sequence, the operation's arguments and the number of letters.
    """
    ordered: bool = False
    """True if it matters which letter comes after which in the alphabet."""


def _swap(row: Row, at: Row, letters: int) -> Row:
    row = row.copy()
    first, second = at[0] - 1, at[1] - 1
    row[first], row[second] = row[second], row[first]
    return row


def _interleave(row: Row, at: Row, letters: int) -> Row:
    half = (len(row) + 1) // 2
    result = row.copy()
    result[::2], result[1::2] = row[:half], row[half:]
    return result


def _exchange_letters(row: Row, at: Row, letters: int) -> Row:
    partner = {at[0]: at[1], at[1]: at[0]}
    return [partner.get(x, x) for x in row]


def _rewrite(row: Row, at: Row, letters: int) -> Row:
    row = row.copy()
    rules = [(at[0], at[1], at[2]), (at[3], at[4], at[5])]
    while True:
        pairs = list(pairwise(row))
        fitting = next((rule for rule in rules if rule[:2] in pairs), None)
        if fitting is None:
            return row
        position = pairs.index(fitting[:2])
        row[position : position + 2] = [x for x in fitting[2:] if x < letters]


OPERATIONS = (
    Operation("Reverse the sequence.", "", lambda s, a, m: s[::-1]),
    Operation(
        "Move the first symbol to the end; do this {0} times.",
        "n",
        lambda s, a, m: s[a[0] :] + s[: a[0]],
    ),
    Operation(
        "Move the last symbol to the front; do this {0} times.",
        "n",
        lambda s, a, m: s[-a[0] :] + s[: -a[0]],
    ),
    Operation(
        "Swap the symbols at positions {0} and {1}, counted from 1 on the left.", "pp", _swap
    ),
    Operation(
        "Remove the symbols at positions 2, 4, 6 and so on, counted from 1.",
        "",
        lambda s, a, m: s[::2],
    ),
    Operation(
        "Write every symbol twice in a row.", "", lambda s, a, m: [x for x in s for _ in range(2)]
    ),
    Operation(
        "Append the reverse of the sequence to the sequence.", "", lambda s, a, m: s + s[::-1]
    ),
    Operation(
        "Cut the sequence into two halves, the first one symbol longer if there is an odd number "
        "of symbols; then take symbols from the two halves in turn, from the left, beginning with "
        "the first half.",
        "",
        _interleave,
    ),
    Operation("Sort the symbols alphabetically.", "", lambda s, a, m: sorted(s), ordered=True),
    Operation(
        "Remove every symbol that already occurs further left.",
        "",
        lambda s, a, m: list(dict.fromkeys(s)),
    ),
    Operation(
        "Shorten every run of equal neighbours to one symbol.",
        "",
        lambda s, a, m: [x for k, x in enumerate(s) if k == 0 or x != s[k - 1]],
    ),
    Operation("Remove every {0}.", "i", lambda s, a, m: [x for x in s if x != a[0]]),
    Operation(
        "Replace every {0} by {1}.", "il", lambda s, a, m: [a[1] if x == a[0] else x for x in s]
    ),
    Operation(
        "Exchange {0} and {1}: every {0} becomes {1} and every {1} becomes {0}.",
        "il",
        _exchange_letters,
    ),
    Operation(
        "Put {1} after every {0}.",
        "il",
        lambda s, a, m: [y for x in s for y in ((x, a[1]) if x == a[0] else (x,))],
    ),
    Operation(
        "Move every {0} to the front; all others keep their order.",
        "i",
        lambda s, a, m: [x for x in s if x == a[0]] + [x for x in s if x != a[0]],
    ),
    Operation(
        "Replace every symbol by the next one of {letters}, and {last} by a, all at once.",
        "",
        lambda s, a, m: [(x + 1) % m for x in s],
        ordered=True,
    ),
    Operation(
        "Rewrite with the rules '{0} {1} -> {2}' and '{3} {4} -> {5}' (a left side stands for two "
        "neighbours{removed}): as long as a left side occurs, take the first rule whose left side "
        "occurs, and replace its leftmost occurrence by the right side.",
        "llrllr",
        _rewrite,
    ),
)
REWRITE = len(OPERATIONS) - 1


class Instance(NamedTuple):
    """A sequence, a program, and the results of the program."""

    program: np.ndarray
    """int8 ``(operations, 7)``: an index of :data:`OPERATIONS`, then its arguments, padded with 0.

    Arguments are numbers, positions, or letters; the number of letters stands for no letter.
    """
    rows: np.ndarray
    """int8 ``(operations + 1, width)``: the sequence, then the result of each operation.

    An operation is applied to the row before, and rows are padded with the number of letters.
    Verifier and solver read the first row only.
    """


class SymbolicManipulationPuzzle(Puzzle[Instance]):
    """``tier`` is the number of operations."""

    name = "SymbolicManipulation"
    difficulty_is = "symbols in the sequences that the operations make, all together"
    tier_is = "the number of operations"
    tiers = range(1, 9)
    few: ClassVar[dict[float, float]] = {2: 35_000}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.operations = int(tier)
        self.letters = self.operations + 1
        self.width = 2 * self.operations + 4
        """Symbols of a sequence, at most."""

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a random sequence, and random operations that change it and fit."""
        row = [
            dice.below(self.letters)
            for _ in range(dice.between(self.operations + 2, self.operations + 3))
        ]
        rows: list[Row] = [row]
        program: list[Row] = []
        while len(program) < self.operations:
            operation = self._operation(row, dice)
            if operation is None:
                return None
            row = self.apply_operation(row, operation)
            program.append(operation)
            rows.append(row)
        filled = [row + [self.letters] * (self.width - len(row)) for row in rows]
        return Instance(np.array(program, np.int8), np.array(filled, np.int8))

    def _operation(self, row: Row, dice: Dice) -> Row | None:
        """Return an operation that changes the sequence and keeps its length within bounds.

        The result is None if none was found.
        """
        for _ in range(_TRIES):
            kind = dice.below(len(OPERATIONS))
            arguments = (
                self._rules(row, dice) if kind == REWRITE else self._arguments(kind, row, dice)
            )
            operation = [kind, *arguments] + [0] * (ARGUMENTS - len(arguments))
            result = self.apply_operation(row, operation)
            if result != row and MIN_LENGTH <= len(result) <= self.width:
                return operation
        return None

    def _arguments(self, kind: int, row: Row, dice: Dice) -> Row:
        """Draw arguments of an operation on a sequence."""
        takes = OPERATIONS[kind].takes
        if takes == "n":
            return [dice.between(2, 4)]
        if takes == "pp":
            return sorted(dice.sample(range(1, len(row) + 1), 2))
        arguments: Row = []
        for take in takes:
            there = (
                dice.choice(row)
                if take == "i"
                else (arguments[0] + dice.between(1, self.letters - 1)) % self.letters
            )
            arguments.append(there)
        return arguments

    def _rules(self, row: Row, dice: Dice) -> Row:
        """Return two rules with different left sides, the first of which can be applied."""
        position = dice.below(len(row) - 1)
        first = row[position : position + 2]
        second = first
        while second == first:
            second = [dice.below(self.letters), dice.below(self.letters)]
        return [*first, dice.below(self.letters + 1), *second, dice.below(self.letters + 1)]

    def apply_operation(self, row: Row, operation: Row) -> Row:
        """Apply an operation, given as its line of the program, to a sequence."""
        return OPERATIONS[operation[0]].apply(row, operation[1:], self.letters)

    def result(self, instance: Instance) -> Row:
        """Return the result of the program."""
        row = self.symbols_of(instance.rows[0])
        for operation in instance.program.tolist():
            row = self.apply_operation(row, operation)
        return row

    def symbols_of(self, filled: np.ndarray) -> Row:
        """Return a row of an instance without what fills it up."""
        return [x for x in np.asarray(filled).tolist() if x < self.letters]

    def canonical(self, instance: Instance) -> bytes:
        """Rename letters in order of first occurrence if no operation depends on their order."""
        program, row = instance.program.tolist(), self.symbols_of(instance.rows[0])
        ordered = any(OPERATIONS[kind].ordered for kind, *_ in program)
        names = {x: x for x in range(0 if ordered else self.letters, self.letters + 1)}

        def new_name(letter: int) -> int:
            return names.setdefault(letter, len(names) - 1)

        form = [*(new_name(x) for x in row), self.letters]
        for kind, *arguments in program:
            takes = OPERATIONS[kind].takes
            form.append(kind)
            form += [
                new_name(x) if take in "ilr" else x
                for take, x in zip(takes, arguments, strict=False)
            ]
        return bytes(form)

    def question(self, instance: Instance) -> str:
        """State the sequence, the program and the format."""
        program = "\n".join(
            f"{k}. {self.words(line)}" for k, line in enumerate(instance.program.tolist(), 1)
        )
        letters = " ".join(ALPHABET[: self.letters])
        sequence = self.write_answer(self.symbols_of(instance.rows[0]))
        return (
            f"A sequence of symbols, each of them one of {letters}:\n{sequence}\n\n"
            "Carry out these operations in order, each on the result of the one "
            f"before:\n{program}\n\n"
            f"What is the final sequence? It has at most {self.width} symbols. Answer with them, "
            "separated by single "
            "spaces."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show a sequence."""
        return [Example("For example, the sequence of b and a would be written:", "b a")]

    def words(self, operation: Row) -> str:
        """Return a line of the program in English."""
        kind, *arguments = operation
        letters = ALPHABET[: self.letters]
        names = [*letters, "nothing"]
        argument_names = [
            names[x] if take in "ilr" else x
            for take, x in zip(OPERATIONS[kind].takes, arguments, strict=False)
        ]
        removed = "; nothing means that they are removed" if "nothing" in argument_names else ""
        return OPERATIONS[kind].words.format(
            *argument_names, letters=" ".join(letters), last=letters[-1], removed=removed
        )

    @property
    def caseless(self) -> Sequence[str]:
        """Symbols."""
        return ALPHABET[: self.letters]

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Carry the program out."""
        words = answer.split(" ")
        if len(words) > self.width:
            raise Malformed(
                f"expected at most {self.width} symbols separated by single spaces, got "
                f"{len(words)}"
            )
        symbols = [parsing.word(word, ALPHABET[: self.letters]) for word in words]
        return (
            RIGHT
            if symbols == self.result(instance)
            else wrong("the program makes another sequence")
        )

    def solve(self, instance: Instance) -> str:
        """Carry the program out."""
        return self.write_answer(self.result(instance))

    def likeness(self, instance: Instance, answer: str, best: str) -> float:
        """Return the share of the places that hold the right symbol."""
        return agreement(answer.split(" "), best.split(" "))

    def write_answer(self, row: Row) -> str:
        """Return a sequence as an answer is written."""
        return " ".join(ALPHABET[x] for x in row)

    def plan(self, instance: Instance) -> list[int]:
        """Write what each operation makes."""
        row, tokens = self.symbols_of(instance.rows[0]), []
        for operation in instance.program.tolist():
            row = self.apply_operation(row, operation)
            tokens += [*row, self.letters]
        return tokens

    def difficulty(self, instance: Instance) -> float:
        """Add up the lengths."""
        return float(len(self.plan(instance)) - self.operations)

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Draw symbols at random, as many as may be."""
        return self.write_answer(
            [dice.below(self.letters) for _ in range(dice.between(MIN_LENGTH, self.width))]
        )

    def heuristic(self, instance: Instance) -> str:
        """Return the first operation only."""
        return self.write_answer(
            self.apply_operation(self.symbols_of(instance.rows[0]), instance.program[0].tolist())
        )

    def constants(self) -> Sequence[str]:
        """Return the alphabet, and its first letters."""
        return [self.write_answer(list(range(count))) for count in range(2, self.letters + 1)]


class SymbolicManipulation(WritingTask):
    """The interactive form: write the result of each operation, symbol by symbol."""

    puzzle: SymbolicManipulationPuzzle
    puzzle_class = SymbolicManipulationPuzzle
    bank_size = 8192
    picture_shape: ClassVar[tuple[int, int, int]] = (240, 560, 3)

    @property
    def tokens(self) -> Sequence[str]:
        """Letters, and what ends a sequence."""
        return ALPHABET[: self.puzzle.letters] + END

    @property
    def flag_count(self) -> int:
        """Number of flags."""
        puzzle = self.puzzle
        rows = 2 * puzzle.width * puzzle.letters + puzzle.width + 1
        return rows + len(OPERATIONS) + ARGUMENTS * (puzzle.width + 1) + puzzle.operations

    def length(self, instance: Instance) -> jax.Array:
        """Return all symbols that operations make, and as many full stops."""
        return (instance.rows[1:] < self.puzzle.letters).sum(
            dtype=jnp.int32
        ) + self.puzzle.operations

    def next_token(self, written: jax.Array, instance: Instance) -> jax.Array:
        """Return the next symbol of the row, or a full stop."""
        _, position, _, result = self._writing_place(written, instance)
        is_due, end = np.arange(self.puzzle.width) == position, self.puzzle.letters
        return end + jnp.where(is_due, result - np.int8(end), 0).sum(dtype=jnp.int32)

    def flags(self, written: jax.Array, instance: Instance) -> Sequence[jax.Array]:
        """Return the flags of the sequence, of what is written, and of the operation.

        In order, they are the sequence, the symbols written, their number, the operation, its
        arguments and its number.
        """
        is_current, position, row, result = self._writing_place(written, instance)
        width, letters = self.puzzle.width, np.arange(self.puzzle.letters, dtype=np.int8)
        is_written = np.arange(width) < position
        program = jnp.where(is_current[:, None], instance.program, 0).sum(axis=0, dtype=jnp.int8)
        return (
            row[:, None] == letters,
            (result[:, None] == letters) & is_written[:, None],
            np.arange(width + 1) == position,
            program[0] == np.arange(len(OPERATIONS), dtype=np.int8),
            program[1:, None] == np.arange(width + 1, dtype=np.int8),
            is_current,
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`flags`."""
        puzzle = self.puzzle
        shape = (puzzle.width, puzzle.letters)
        return (
            Component(
                "sequence",
                "[place, letter]: what the operation is applied to, one-hot",
                shape=shape,
            ),
            Component(
                "written", "[place, letter]: what is written of its result, one-hot", shape=shape
            ),
            Component(
                "place",
                "how many symbols of the result are written, one-hot",
                shape=(puzzle.width + 1,),
            ),
            *(
                Component(f"operation_{number}", f"whether the operation is: {operation.words}")
                for number, operation in enumerate(OPERATIONS)
            ),
            Component(
                "arguments",
                (
                    "[argument, value]: its arguments {0}, {1}, ..., letters or numbers, one-hot; "
                    "zeros for none"
                ),
                shape=(ARGUMENTS, puzzle.width + 1),
            ),
            Component(
                "line", "which operation of the program it is, one-hot", shape=(puzzle.operations,)
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the letters and the full stop."""
        return singles(
            {
                token: "end the result" if token == END else f"write the letter {token}"
                for token in self.tokens
            }
        )

    def _writing_place(
        self, written: jax.Array, instance: Instance
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Return the place of the writing.

        Returns:
            Which operation is being carried out, one-hot ``(operations,)``, the last one in the
            end; how many symbols of its result are written; the sequence it is applied to, and the
            one it makes, ``(width,)`` each.
        """
        operations = np.arange(self.puzzle.operations)
        ends = jnp.cumsum(
            (instance.rows[1:] < self.puzzle.letters).sum(axis=1, dtype=jnp.int32) + 1
        )
        number = jnp.minimum((ends <= written).sum(dtype=jnp.int32), operations[-1])
        is_current = operations == number
        num_before = jnp.where(operations == number - 1, ends, 0).sum(dtype=jnp.int32)
        row, result = (
            jnp.where(is_current[:, None], rows, 0).sum(axis=0, dtype=jnp.int8)
            for rows in (instance.rows[:-1], instance.rows[1:])
        )
        return is_current, written - num_before, row, result

    # -- host side ---------------------------------------------------------------------------------

    def _progress(self, state: WritingState, params: Params) -> tuple[int, list[int], list[int]]:
        """Return where the player is in the program.

        This is the number of the current operation, the sequence that it is applied to, and the
        written part of its result.
        """
        is_current, position, row, result = self._writing_place(state.written, params.instance)
        puzzle = self.puzzle
        sequences = (
            puzzle.symbols_of(np.asarray(row)),
            puzzle.symbols_of(np.asarray(result))[: int(position)],
        )
        return int(np.argmax(is_current)), *sequences

    def describe(self, state: WritingState, params: Params) -> str:
        """Show the operation, what it is applied to, and what is written."""
        number, row, result = self._progress(state, params)
        puzzle = self.puzzle
        return (
            f"Operation {number + 1} of {puzzle.operations}: "
            f"{puzzle.words(params.instance.program[number].tolist())}\nThe sequence: "
            f"{puzzle.write_answer(row)}\nWritten of the result: "
            f"{puzzle.write_answer(result) or 'nothing'}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        letters = ", ".join(ALPHABET[: self.puzzle.letters])
        return (
            f"Answer with the next symbol of the result, one of {letters}, or with {END} after its "
            "last symbol."
        )

    def draw(self, state: WritingState, params: Params) -> np.ndarray:
        """Draw the sequence, below it the operation, and below that what is written."""
        number, row, result = self._progress(state, params)
        width = self.puzzle.width
        board = Board(4, width, self.picture_shape)
        for column in range(width):
            board.cell(
                0,
                column,
                ALPHABET[row[column]] if column < len(row) else "",
                is_clue=column < len(row),
            )
            board.cell(3, column, ALPHABET[result[column]] if column < len(result) else "")
        words = self.puzzle.words(params.instance.program[number].tolist())
        for line, text in enumerate(wrap(words, 85)):
            board.text(
                0.6 + (line + 0.5) * 14 / board.side, (width - 1) / 2, text, scale=18 / board.side
            )
        return board.picture()

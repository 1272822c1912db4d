"""Puzzles of induction: a hidden rule is shown by examples and is to be applied to something new.

A rule is one to ``tier`` steps, one after another; the prompt names all steps there are. An instance is kept only if
every rule that fits all of its examples makes the same of the query, proven by applying every rule there is; and only
if no rule of fewer than ``tier`` steps fits. So there is one answer, whatever rule a player may have found.

One-shot, the answer is what the rule makes of the query. Interactively, the rule is put together, and each step is seen
at once in all rows:

=============  =====================================================================================================
action         the step to apply, ``Discrete(steps)``, numbered as in the prompt
observation    for each example, one-hot: entries as they are now, entries of the output; and for each entry of the
               output, which entries are equal to it now
reward         change in the number of entries of the examples that are as in their output, divided by how many are not
               at first; +1 once all are
termination    every example is its output, or ``tier`` steps are made
=============  =====================================================================================================

The first part telescopes to 1 when every example is its output; then the query is the answer. The best return is 2.
"""

from __future__ import annotations

import abc
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from operator import eq
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.card import TaskCard
from rlbench_suite.dice import Dice
from rlbench_suite.puzzle import RIGHT, Puzzle, Verdict, wrong

from . import answer as reading
from .board import Board
from .puzzle_task import Params, PuzzleTask

_TRIES = 30


class Step(Protocol):
    """What a step does to many rows at once."""

    def __call__(self, rows: Any, of: Any) -> Any:
        """Int8 ``(n, width)`` in and out, computed by NumPy or by JAX's: ``of``."""


class Instance(NamedTuple):
    """Examples of a rule, and what to apply it to; entries are indices of symbols."""

    inputs: np.ndarray
    """int8 ``(examples, width)``."""
    outputs: np.ndarray
    """int8 ``(examples, width)``: what the rule makes of each."""
    query: np.ndarray
    """int8 ``(width,)``."""
    target: np.ndarray
    """int8 ``(width,)``: what every rule that fits makes of the query. For the verifier; no solver reads it."""


def picked(rows: Any, source: Any, blank: int, of: Any) -> Any:
    """Each entry taken from the place that ``source`` ``(n, width)`` says; blank where that is no place."""
    chosen = source[:, :, None] == np.arange(rows.shape[1])
    return of.where(chosen, rows[:, None, :] - np.int8(blank), 0).sum(axis=2, dtype=np.int8) + np.int8(blank)


def packed(rows: Any, keep: Any, blank: int, of: Any) -> Any:
    """The entries to keep, from the left on in their order; blanks behind them."""
    place = of.cumsum(keep, axis=1) - 1
    chosen = keep[:, :, None] & (place[:, :, None] == np.arange(rows.shape[1]))
    return of.where(chosen, rows[:, :, None] - np.int8(blank), 0).sum(axis=1, dtype=np.int8) + np.int8(blank)


Numbers = tuple[int, ...]
"""Some rows by their numbers, examples first."""


class Rows(NamedTuple):
    """All rows of a width, numbered: the entries are the digits of a row's number, so that order is kept."""

    entries: np.ndarray
    """int8 ``(rows, width)``."""
    worth_showing: bytes
    """Whether each can be an output."""
    following: np.ndarray
    """int32 ``(rows, steps)``: the number of what each step makes of each row."""

    def made(self, level: Sequence[Numbers]) -> list[Numbers]:
        """What every step makes of each of ``level``; all that the first step makes comes first."""
        rows = self.following.take(level, 0)
        return list(zip(*rows.transpose(1, 2, 0).reshape(rows.shape[1], -1).tolist(), strict=True))

    def levels(self, rows: Numbers, count: int) -> Iterator[list[Numbers]]:
        """For 0 steps, 1 step and so on, ``count`` in all, the different things that rules make of some rows."""
        level = [rows]
        yield level
        for _ in range(count - 1):
            level = sorted(set(self.made(level)))
            yield level

    def leading(self, level: Sequence[Numbers], wanted: Numbers) -> Iterator[tuple[int, int]]:
        """The steps that lead from one of ``level`` to the wanted, and from which of them; by step first. Rows behind
        as many as are wanted do not matter.
        """
        item = self.following.item
        firsts = self.following.take([rows[0] for rows in level], 0).T.ravel()
        for rule in (firsts == wanted[0]).nonzero()[0].tolist():
            step, place = divmod(rule, len(level))
            for row, number in zip(level[place], wanted, strict=False):
                if item(row, step) != number:
                    break
            else:
                yield step, place


class InductionPuzzle(Puzzle[Instance]):
    """``tier`` is the number of steps of the rule, 1 to 3."""

    difficulty_is = "how often the rules must be halved until those that fit the examples are left"
    #: The steps there are, by what they do, in words.
    steps: ClassVar[Mapping[str, Step]]
    #: What may stand in a row.
    symbols: ClassVar[str]
    #: For each tier, the examples of the rule and the entries of a row.
    sizes: ClassVar[Mapping[float, tuple[int, int]]]

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        if tier not in self.sizes:
            known = ", ".join(map(str, self.sizes))
            raise ValueError(f"{self.name}: difficulty is the number of steps of the rule, {known}, got {tier!r}.")
        self.examples, self.width = self.sizes[tier]

    @cached_property
    def _rows(self) -> Rows:
        return _all_rows(type(self), self.width)

    # -- what a puzzle defines ------------------------------------------------------------------------------------

    @abc.abstractmethod
    def row(self, dice: Dice) -> list[int]:
        """A random row to apply rules to."""

    @abc.abstractmethod
    def rules(self) -> str:
        """What rows are, in words."""

    @abc.abstractmethod
    def read(self, answer: str) -> list[int]:
        """The row that an answer writes.

        Raises:
            Malformed: it writes none.
        """

    @abc.abstractmethod
    def how_to_answer(self) -> str:
        """The format of an answer, in words."""

    def written(self, row: Sequence[int]) -> str:
        """A row as an answer is written."""
        return " ".join(bytes(row).translate(self._letters).decode())

    @cached_property
    def _letters(self) -> bytes:
        """Translates entries to symbols."""
        return self.symbols.encode().ljust(256)

    @staticmethod
    @abc.abstractmethod
    def worth_showing(rows: np.ndarray) -> np.ndarray:
        """Whether each of some rows ``(n, width)`` can be an output: bool ``(n,)``."""

    # -- the puzzle -----------------------------------------------------------------------------------------------

    def compose(self, dice: Dice) -> Instance | None:
        """Random rows, and a random rule that they tell apart from all that would answer otherwise."""
        base, known = len(self.symbols), self._rows
        rows = tuple([int(bytes(self.row(dice)).translate(_DIGITS), base) for _ in range(self.examples + 1)])
        if len(set(rows)) < len(rows):
            return None
        *_, level = levels = list(known.levels(rows, int(self.tier)))
        count, item, worth = len(self.steps) * len(level), known.following.item, known.worth_showing
        for _ in range(_TRIES):
            step, place = divmod(dice.below(count), len(level))
            made = tuple([item(row, step) for row in level[place]])
            if any(map(eq, made, rows)) or not all([worth[row] for row in made]):
                continue
            wanted, target = made[:-1], made[-1]
            if not any([_begins(shorter, wanted) for shorter in levels[1:]]) and all(
                item(level[other][-1], last) == target for last, other in known.leading(level, wanted)
            ):
                inputs, outputs = known.entries.take(rows, 0), known.entries.take(made, 0)
                return Instance(inputs[:-1], outputs[:-1], inputs[-1], outputs[-1])
        return None

    def _numbers(self, rows: np.ndarray) -> list[int]:
        """The numbers of some rows ``(n, width)``."""
        digits, base, width = rows.tobytes().translate(_DIGITS), len(self.symbols), self.width
        return [int(digits[at : at + width], base) for at in range(0, len(digits), width)]

    def _fitting(self, rows: Numbers, wanted: Numbers) -> Iterator[tuple[list[list[Numbers]], int, int]]:
        """Rules that make the wanted rows, shortest first: by what there was at each level, the last step, and its
        place in the last level.
        """
        levels = list(self._rows.levels(rows, int(self.tier)))
        for count, level in enumerate(levels, 1):
            if count == len(levels) or _begins(levels[count], wanted):
                for step, place in self._rows.leading(level, wanted):
                    yield levels[:count], step, place

    def _found(self, instance: Instance) -> tuple[list[list[Numbers]], int, int]:
        """The first rule that fits, applied to examples and query."""
        rows = (*self._numbers(instance.inputs), *self._numbers(instance.query))
        return next(self._fitting(rows, tuple(self._numbers(instance.outputs))))

    def canonical(self, instance: Instance) -> bytes:
        """The order of the examples does not matter."""
        return b"".join(sorted(self._pairs(instance))) + instance.query.tobytes()

    def _pairs(self, instance: Instance, direction: int = 1) -> list[bytes]:
        """The entries of each example; with -1 for ``direction``, rows backwards and examples from the last."""
        inputs, outputs = instance.inputs.tobytes()[::direction], instance.outputs.tobytes()[::direction]
        width = self.width
        return [inputs[at : at + width] + outputs[at : at + width] for at in range(0, len(inputs), width)]

    def question(self, instance: Instance) -> str:
        """Rows, steps, examples, query, format."""
        written, width = self.written, self.width
        pairs = self._pairs(instance)
        examples = "\n".join([f"{written(pair[:width])} -> {written(pair[width:])}" for pair in pairs])
        return (
            f"{self._told}\n\nWhat the rule makes of some examples:\n{examples}\n\n"
            f"What does it make of this?\n{written(instance.query.tobytes())}\n\n{self.how_to_answer()}"
        )

    @cached_property
    def _told(self) -> str:
        """What rows and rules are."""
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, 1))
        most = "one of these steps" if self.tier == 1 else f"one to {self.tier:g} of these steps, one after another"
        again = "" if self.tier == 1 else "; a step may come twice"
        return f"{self.rules()}\n\nA hidden rule is {most}{again}:\n{steps}"

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """What the rules that fit make of the query: they all agree."""
        right = self.read(answer) == instance.target.tolist()
        return RIGHT if right else wrong("no rule that fits the examples makes this of the query")

    def solve(self, instance: Instance) -> str:
        """By applying every rule."""
        levels, step, place = self._found(instance)
        answer = self._rows.following.item(levels[-1][place][-1], step)
        return self.written(self._rows.entries[answer].tobytes())

    def plan(self, instance: Instance) -> list[int]:
        """The steps of the first rule that fits."""
        levels, step, place = self._found(instance)
        steps = [step]
        for before, level in zip(levels[-2::-1], levels[:0:-1], strict=True):
            step, place = divmod(self._rows.made(before).index(level[place]), len(before))
            steps.append(step)
        return steps[::-1]

    def difficulty(self, instance: Instance) -> float:
        """Doublings from the number of rules that fit to the number of all; rules that make the same of the examples
        are led on to longer ones once."""
        rows, wanted = tuple(self._numbers(instance.inputs)), tuple(self._numbers(instance.outputs))
        count = len(self.steps) * sum(map(len, self._rows.levels(rows, int(self.tier))))
        return math.log2(count / len(list(self._fitting(rows, wanted))))

    def heuristic(self, instance: Instance) -> str:
        """Each place is copied from the place from which the examples would most often copy it."""
        same = (instance.outputs[:, :, None] == instance.inputs[:, None, :]).sum(axis=0)
        return self.written(instance.query[same.argmax(axis=1)].tolist())


def _begins(level: list[Numbers], wanted: Numbers) -> bool:
    """Whether one of ``level``, which is in order, begins with the wanted."""
    place = bisect_left(level, wanted)
    return place < len(level) and level[place][: len(wanted)] == wanted


_DIGITS = b"0123456789a".ljust(256)
"""Translates entries to digits of the number of a row."""


@cache
def _all_rows(puzzle: type[InductionPuzzle], width: int) -> Rows:
    """All there is to know about rows; half a second for 11**5 of them, and a hundred times less for each instance."""
    base = len(puzzle.symbols)
    entries = np.indices((base,) * width, np.int8).reshape(width, -1).T.copy()
    digits = base ** np.arange(width - 1, -1, -1, dtype=np.int64)
    made = [(step(entries, np) @ digits).astype(np.int32) for step in puzzle.steps.values()]
    following = np.stack(made, axis=1)
    return Rows(entries, puzzle.worth_showing(entries).tobytes(), following)


class Rewriting(NamedTuple):
    """The rows as the steps so far have made them."""

    rows: jax.Array
    """int8 ``(examples + 1, width)``: examples, then the query."""
    made: jax.Array
    """int32: steps made."""


class InductionTask(PuzzleTask[Rewriting]):
    """The interactive form."""

    puzzle: InductionPuzzle
    measures: ClassVar[dict[str, str]] = {"alike": "fraction of the examples' entries that are as in their output"}
    picture_shape: ClassVar[tuple[int, int, int]] = (400, 400, 3)
    #: The paper of each symbol in pictures; none to write the symbols.
    papers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        puzzle = self.puzzle
        self.entries = puzzle.examples * puzzle.width
        self.action_space = spaces.Discrete(len(puzzle.steps))
        self.observation_space = self.box(0.0, 1.0, (self.entries * (3 * len(puzzle.symbols) + puzzle.width),))
        self.reward_space = self.box(-float(self.entries), 2.0)

    def initial(self, key: jax.Array, params: Params) -> Rewriting:
        """Inputs and query."""
        return Rewriting(jnp.concatenate([params.instance.inputs, params.instance.query[None]]), jnp.int32(0))

    def transition(self, state: Rewriting, action: jax.Array, key: jax.Array, params: Params) -> Rewriting:
        """Apply a step to all rows."""
        rows = state.rows
        for number, step in enumerate(self.puzzle.steps.values()):
            rows = jnp.where(action == number, step(state.rows, jnp), rows)
        return Rewriting(rows, state.made + 1)

    def observation(self, state: Rewriting, key: jax.Array, params: Params) -> jax.Array:
        """Entries one-hot, then which of them are equal."""
        rows, outputs = state.rows[:-1], params.instance.outputs
        symbols = np.arange(len(self.puzzle.symbols), dtype=np.int8)
        change = (outputs - rows) % np.int8(len(symbols))
        one_hot = (entries[..., None] == symbols for entries in (rows, outputs, change))
        flags = (*one_hot, outputs[..., None] == rows[:, None])
        return jnp.concatenate([flag.astype(self.dtype).reshape(-1) for flag in flags])

    def reward(
        self, state: Rewriting, action: jax.Array, next_state: Rewriting, key: jax.Array, params: Params
    ) -> jax.Array:
        """Progress, and 1 for a rule that fits."""
        before, after = self._alike(state, params), self._alike(next_state, params)
        at_first = self._alike(self.initial(key, params), params)
        progress = (after - before).astype(self.dtype) / (self.entries - at_first).astype(self.dtype)
        return progress + ((before < self.entries) & (after == self.entries)).astype(self.dtype)

    def terminal(self, state: Rewriting, key: jax.Array, params: Params) -> jax.Array:
        """Whether the rule fits, or is as long as it may be."""
        return (self._alike(state, params) == self.entries) | (state.made == int(self.puzzle.tier))

    def info(self, state: Rewriting, params: Params) -> dict[str, jax.Array]:
        """``success``: every example is its output, so the query is the answer."""
        alike = self._alike(state, params)
        return {"success": alike == self.entries, "alike": alike.astype(self.dtype) / self.entries}

    @staticmethod
    def _alike(state: Rewriting, params: Params) -> jax.Array:
        return (state.rows[:-1] == params.instance.outputs).sum(dtype=jnp.int32)

    # -- host side ------------------------------------------------------------------------------------------------

    def describe(self, state: Rewriting, params: Params) -> str:
        """Steps, rows as they are, and what is to become of them."""
        puzzle = self.puzzle
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(puzzle.steps, 1))
        *rows, query = np.asarray(state.rows).tolist()
        pairs = zip(rows, np.asarray(params.instance.outputs).tolist(), strict=True)
        lines = "\n".join(f"{puzzle.written(row)} (to become {puzzle.written(output)})" for row, output in pairs)
        left = int(puzzle.tier) - int(state.made)
        return (
            f"{puzzle.rules()}\n\nThe steps:\n{steps}\n\nThe examples as they are:\n{lines}\n\n"
            f"The query as it is:\n{puzzle.written(query)}\n\nSteps left: {left}"
        )

    def how_to_act(self) -> str:
        """One line for a text player."""
        return f"Answer with the number of the step to apply to every row, 1 to {len(self.puzzle.steps)}."

    def parse(self, text: str, state: Rewriting, params: Params) -> np.ndarray:
        """The number of a step, counted from 1.

        Raises:
            ValueError: anything else.
        """
        number = reading.integer(text.strip(), 1, len(self.puzzle.steps), "step")
        return np.asarray(number - 1, self.action_space.dtype)

    def why_over(self, state: Rewriting, params: Params, info: dict[str, Any]) -> str:
        """The rule fits, or is too long."""
        fits = info["success"]
        return (
            "every example is its output" if fits else "a rule has no more steps, and not every example is its output"
        )

    def draw(self, state: Rewriting, params: Params) -> np.ndarray:
        """Each example above its output, then the query."""
        *rows, query = np.asarray(state.rows).tolist()
        pairs = zip(rows, np.asarray(params.instance.outputs).tolist(), strict=True)
        lines = [line for pair in pairs for line in (*pair, None)] + [query]
        board = Board(len(lines), self.puzzle.width, self.picture_shape)
        for number, line in enumerate(lines):
            for column, value in enumerate(line or ()):
                if self.papers:
                    board.cell(number, column, paper=self.papers[value])
                else:
                    board.cell(number, column, self.puzzle.written([value]), given=number % 3 == 1)
        return board.picture()

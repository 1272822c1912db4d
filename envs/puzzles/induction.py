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
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
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


class Rows(NamedTuple):
    """All rows of a width, numbered: the entries are the digits of a row's number, so that order is kept."""

    entries: np.ndarray
    """int8 ``(rows, width)``."""
    digits: np.ndarray
    """int64 ``(width,)``: what each entry counts."""
    following: np.ndarray
    """int32 ``(rows, steps)``: the number of what each step makes of each row."""


class Rules(NamedTuple):
    """What all rules make of some rows, shorter rules first. Of rules that make the same of all of them, one is led on
    to longer ones."""

    results: np.ndarray
    """int32 ``(rules, rows)``: numbers of rows."""
    parents: list[np.ndarray]
    """For each number of steps less 1: the rules (numbered among those of a step less) that are led on."""
    begins: list[int]
    """For each number of steps less 1: the first rule that has so many."""

    def steps(self, rule: int) -> list[int]:
        """The steps of a rule, in order."""
        steps: list[int] = []
        depth = max(k for k, first in enumerate(self.begins) if first <= rule)
        number = rule - self.begins[depth]
        for parents in reversed(self.parents[: depth + 1]):
            step, parent = divmod(number, len(parents))
            steps.append(step)
            number = int(parents[parent])
        return steps[::-1]


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

    @cached_property
    def _merge(self) -> np.ndarray:
        """What merges the numbers of rows that rules make of the examples, three to one int64."""
        base = len(self._rows.entries)
        return np.array(
            [
                [base ** (k % 3) if k // 3 == word else 0 for word in range((self.examples + 2) // 3)]
                for k in range(self.examples)
            ]
        )

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
        return " ".join(self.symbols[value] for value in row)

    @abc.abstractmethod
    def worth_showing(self, rows: np.ndarray) -> bool:
        """Whether outputs ``(examples + 1, width)`` can be part of an instance."""

    # -- the puzzle -----------------------------------------------------------------------------------------------

    def compose(self, dice: Dice) -> Instance | None:
        """Random rows, and a random rule that they tell apart from all that would answer otherwise."""
        rows = np.array([self.row(dice) for _ in range(self.examples + 1)], np.int8)
        before = rows @ self._rows.digits
        if len(set(before.tolist())) < len(rows):
            return None
        found = self.applied(before)
        results, longest = found.results, found.begins[-1]
        merged = self._merged(results)
        for _ in range(_TRIES):
            rule = dice.between(longest, len(results) - 1)
            result = results[rule]
            fits = self._fitting(merged, merged[:, rule])
            if fits[0] >= longest and (result != before).all() and (results[fits, -1] == result[-1]).all():
                made = self._rows.entries[result]
                if self.worth_showing(made):
                    return Instance(rows[:-1], made[:-1], rows[-1], made[-1])
        return None

    def applied(self, rows: np.ndarray) -> Rules:
        """Apply every rule of 1 to ``tier`` steps to some rows, ``(n,)``, given by their numbers."""
        level = rows[None]
        levels, parents = [], []
        for _ in range(int(self.tier)):
            first = _first_of_equal(level)
            level = self._rows.following[level[first]].transpose(2, 0, 1).reshape(-1, len(rows))
            levels.append(level)
            parents.append(first)
        begins = np.cumsum([0, *map(len, levels[:-1])]).tolist()
        return Rules(np.concatenate(levels), parents, begins)

    def _merged(self, results: np.ndarray) -> np.ndarray:
        """The results ``(rules, rows)`` on the examples as few long numbers, ``(n, rules)``."""
        return np.ascontiguousarray((results[:, : self.examples] @ self._merge).T)

    def _fitting(self, merged: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Numbers of the rules with the wanted results on the examples."""
        fits = np.flatnonzero(merged[0] == wanted[0])
        for numbers, number in zip(merged[1:], wanted[1:], strict=True):
            fits = fits[numbers[fits] == number]
        return fits

    def _that_fit(self, found: Rules, instance: Instance) -> np.ndarray:
        """Numbers of the rules that make the outputs of an instance of its inputs."""
        outputs = (instance.outputs @ self._rows.digits)[None]
        return self._fitting(self._merged(found.results), self._merged(outputs)[:, 0])

    def _found(self, instance: Instance) -> tuple[Rules, int]:
        """All rules applied to examples and query, and the number of the first that fits."""
        found = self.applied(np.concatenate([instance.inputs, instance.query[None]]) @ self._rows.digits)
        return found, int(self._that_fit(found, instance)[0])

    def canonical(self, instance: Instance) -> bytes:
        """The order of the examples does not matter."""
        pairs = zip(instance.inputs, instance.outputs, strict=True)
        return b"".join(sorted(one.tobytes() + other.tobytes() for one, other in pairs)) + instance.query.tobytes()

    def question(self, instance: Instance) -> str:
        """Rows, steps, examples, query, format."""
        pairs = zip(instance.inputs.tolist(), instance.outputs.tolist(), strict=True)
        examples = "\n".join([f"{self.written(one)} -> {self.written(other)}" for one, other in pairs])
        return (
            f"{self._told}\n\nWhat the rule makes of some examples:\n{examples}\n\n"
            f"What does it make of this?\n{self.written(instance.query.tolist())}\n\n{self.how_to_answer()}"
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
        found, rule = self._found(instance)
        return self.written(self._rows.entries[found.results[rule, -1]].tolist())

    def plan(self, instance: Instance) -> list[int]:
        """The steps of the first rule that fits."""
        found, rule = self._found(instance)
        return found.steps(rule)

    def difficulty(self, instance: Instance) -> float:
        """Doublings from the number of rules that fit to the number of all."""
        found = self.applied(instance.inputs @ self._rows.digits)
        return math.log2(len(found.results) / len(self._that_fit(found, instance)))

    def heuristic(self, instance: Instance) -> str:
        """Each place is copied from the place from which the examples would most often copy it."""
        same = (instance.outputs[:, :, None] == instance.inputs[:, None, :]).sum(axis=0)
        return self.written(instance.query[same.argmax(axis=1)].tolist())


def _first_of_equal(results: np.ndarray) -> np.ndarray:
    """For each different row of ``results``, in their order, the number of the first that is equal to it."""
    order = np.lexsort(results.T[::-1])
    in_order = results[order]
    return order[np.concatenate([[True], (in_order[1:] != in_order[:-1]).any(axis=1)])]


@cache
def _all_rows(puzzle: type[InductionPuzzle], width: int) -> Rows:
    """All there is to know about rows; half a second for 11**5 of them, and a hundred times less for each instance."""
    base = len(puzzle.symbols)
    entries = np.indices((base,) * width, np.int8).reshape(width, -1).T.copy()
    digits = base ** np.arange(width - 1, -1, -1, dtype=np.int64)
    made = [(step(entries, np) @ digits).astype(np.int32) for step in puzzle.steps.values()]
    following = np.stack(made, axis=1)
    return Rows(entries, digits, following)


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

    def why_over(self, state: Rewriting, params: Params) -> str:
        """The rule fits, or is too long."""
        fits = bool(self.info(state, params)["success"])
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

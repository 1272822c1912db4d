"""rlsuite/ListFunctions-v0: infer from examples what a function does to a list of digits.

Then apply the function to another list.

``difficulty`` is the number of steps that the function is composed of. See :mod:`.composed_rules`
for proofs, actions, observations and rewards.

The puzzle is Rule's (2020, "The child as hacker", hdl.handle.net/1721.1/129232), with a family of
functions so small that all their answers are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Example

from ..shared import parsing
from .composed_rules import (
    InductionPuzzle,
    InductionTask,
    Instance,
    Step,
    pack_entries,
    pick_entries,
)

END = 10
"""Entry that fills a row behind a shorter list."""


def _rotation(by: int, direction: int = 1) -> Step:
    """Return the step that starts the list ``by`` places later and wraps around.

    ``direction`` -1 runs backwards.
    """

    def step(rows: Any, of: Any) -> Any:
        count = (rows != END).sum(axis=1, keepdims=True)
        column = np.arange(rows.shape[1])
        source = (direction * column + by) % of.maximum(count, 1)
        return pick_entries(rows, of.where(column < count, source, -1), END, of)

    return step


def _keep_only(keep: Callable[[Any], Any]) -> Step:
    """Drop the digits for which ``keep`` does not hold."""
    return lambda rows, of: pack_entries(rows, keep(rows) & (rows != END), END, of)


def _map_digits(digit: Callable[[Any, Any], Any]) -> Step:
    """Return the step that applies a function to each digit.

    The function's value for ``END`` does not matter.
    """
    return lambda rows, of: of.where(rows == END, END, digit(rows, of) % 10).astype(np.int8)


def _sort_descending(rows: Any, of: Any) -> Any:
    ascending = of.sort(of.where(rows == END, -1, rows), axis=1)[:, ::-1]
    return of.where(ascending == -1, END, ascending).astype(np.int8)


def _drop_first(rows: Any, of: Any) -> Any:
    return of.pad(rows[:, 1:], ((0, 0), (0, 1)), constant_values=END)


def _drop_last(rows: Any, of: Any) -> Any:
    return of.where(_drop_first(rows, of) == END, np.int8(END), rows)


def _drop_repeats(rows: Any, of: Any) -> Any:
    equal = rows[:, :, None] == rows[:, None, :]
    occurred_before = (equal & np.triu(np.ones(equal.shape[1:], bool), 1)).any(axis=1)
    return pack_entries(rows, ~occurred_before & (rows != END), END, of)


class ListFunctionsPuzzle(InductionPuzzle):
    """The puzzle on lists of digits; arithmetic is modulo 10."""

    name = "ListFunctions"
    symbols, unwritten = "0123456789.", bytes((END,))
    sizes: ClassVar = {1: (3, 4), 2: (3, 5), 3: (4, 5)}
    tiers = tuple(sizes)
    steps: ClassVar = {
        "reverse the list": _rotation(-1, -1),
        "sort it, smallest first": lambda rows, of: of.sort(rows, axis=1),
        "sort it, largest first": _sort_descending,
        "move the first entry to the end": _rotation(1),
        "move the last entry to the front": _rotation(-1),
        "drop the first entry": _drop_first,
        "drop the last entry": _drop_last,
        "keep the even digits only": _keep_only(lambda rows: rows % 2 == 0),
        "keep the odd digits only": _keep_only(lambda rows: rows % 2 == 1),
        "keep the digits above 4 only": _keep_only(lambda rows: rows > 4),
        "keep the digits below 5 only": _keep_only(lambda rows: rows < 5),
        "keep only the first of equal digits": _drop_repeats,
        "add 1 to each digit": _map_digits(lambda rows, of: rows + 1),
        "add 2 to each digit": _map_digits(lambda rows, of: rows + 2),
        "add 5 to each digit": _map_digits(lambda rows, of: rows + 5),
        "multiply each digit by 2": _map_digits(lambda rows, of: rows * 2),
        "multiply each digit by 3": _map_digits(lambda rows, of: rows * 3),
        "replace each digit d by 9 - d": _map_digits(lambda rows, of: 9 - rows),
        "replace each digit by the sum of the list up to and including it": _map_digits(
            lambda rows, of: of.cumsum(rows, axis=1)
        ),
        "replace each digit but the first by itself minus the one before it": _map_digits(
            lambda rows, of: rows - of.pad(rows[:, :-1], ((0, 0), (1, 0)))
        ),
        "add to each digit its place, counted from 1": _map_digits(
            lambda rows, of: rows + np.arange(1, rows.shape[1] + 1, dtype=np.int8)
        ),
    }

    @staticmethod
    def weights(rows: np.ndarray) -> np.ndarray:
        """Weigh the rows so that full lists are as frequent as lists one digit shorter."""
        full, shorter = (rows != END).all(axis=1), (rows[:, :-1] != END).all(axis=1)
        return np.where(full, 1, 10 * shorter)

    @staticmethod
    def worth_showing(rows: np.ndarray) -> np.ndarray:
        """Leave out empty lists."""
        not_empty: np.ndarray = rows[:, 0] != END
        return not_empty

    def rules(self) -> str:
        """State what a list is."""
        return (
            f"A list has up to {self.width} entries, digits from 0 to 9. Sums, differences and "
            "products are taken "
            "modulo 10."
        )

    def how_to_answer(self) -> str:
        """Ask for digits."""
        return "Answer with the list: digits separated by single spaces."

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show a list."""
        return [
            Example("For example, the list of the digits 4, 0 and 7 would be written:", "4 0 7")
        ]

    def read(self, answer: str) -> list[int]:
        """Read digits, then add what fills the row."""
        row = parsing.integers(answer, 0, 9, min_count=1, max_count=self.width, what="digit")
        return row + [END] * (self.width - len(row))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Draw digits at random, as many as an example's output has."""
        like = dice.choice(instance.outputs.tolist())
        return self.write_answer([END if value == END else dice.below(10) for value in like])

    def heuristic(self, instance: Instance) -> str:
        """Copy places as in any induction; never answer with an empty list."""
        return super().heuristic(instance) or "0"

    def constants(self) -> Sequence[str]:
        """Return each digit alone."""
        return list("0123456789")


class ListFunctions(InductionTask):
    """The task on lists of digits."""

    puzzle_class = ListFunctionsPuzzle
    bank_size = 2048

"""Puzzles whose answer is a shortest sequence of moves from a start to a goal.

Any sequence that reaches the goal is right. A shortest one scores 1; a longer one scores the
shortest length divided by its own.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar, Generic, TypeVar

from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Instance, Malformed, Puzzle, Verdict, wrong

Position = TypeVar("Position")

MAX_MOVES = 1000
_GREEDY_MOVES = 100


def rate_answer(length: float, shortest: float, unit: str) -> Verdict:
    """Return the verdict on a right answer of this ``length``.

    ``shortest`` is the length of the shortest answer.
    """
    if length <= shortest:
        return RIGHT
    reason = f"it takes {length:g} {unit}, {shortest:g} are enough"
    return Verdict(valid=True, solved=True, optimal=False, score=shortest / length, reason=reason)


class MovesPuzzle(Puzzle[Instance], Generic[Instance, Position]):
    """The one-shot form.

    An instance has the field ``shortest``: int16, the length of a shortest solution.
    """

    difficulty_is: ClassVar[str] = "moves of a shortest solution"
    moves: tuple[str, ...]
    """Names of the moves in an answer: words without spaces."""

    @abc.abstractmethod
    def start(self, instance: Instance) -> Position:
        """Return the position to begin with."""

    @abc.abstractmethod
    def position_after(self, instance: Instance, position: Position, move: int) -> Position | None:
        """Return the position after a move; None if the move is impossible."""

    @abc.abstractmethod
    def estimated_distance(self, instance: Instance, position: Position) -> int:
        """Return an estimated distance from the goal; it is 0 only at the goal."""

    @abc.abstractmethod
    def shortest(self, instance: Instance) -> list[int]:
        """Return a shortest sequence of moves to the goal, by exact search."""

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show two moves."""
        return [
            Example(
                "For example, an answer of length 2 could be:", f"{self.moves[0]} {self.moves[-1]}"
            )
        ]

    @property
    def caseless(self) -> Sequence[str]:
        """Names of the moves."""
        return self.moves

    def read(self, answer: str) -> list[int]:
        """Return the moves of an answer.

        Raises:
            Malformed: not 1 to ``MAX_MOVES`` names of moves separated by single spaces.
        """
        words = answer.split(" ")
        if len(words) > MAX_MOVES:
            raise Malformed(f"expected at most {MAX_MOVES} moves, got {len(words)}")
        for number, word in enumerate(words, 1):
            if word not in self._numbers:
                raise Malformed(
                    f"move {number}: expected one of {', '.join(self.moves)}, got {word[:20]!r}"
                )
        return [self._numbers[word] for word in words]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.moves)}

    def write_answer(self, instance: Instance, moves: Sequence[int]) -> str:
        """Write moves as an answer."""
        return " ".join(self.moves[move] for move in moves)

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Make the moves one by one."""
        position = self.start(instance)
        moves = self.read(answer)
        for number, move in enumerate(moves, 1):
            if (following := self.position_after(instance, position, move)) is None:
                return wrong(f"move {number}, {self.moves[move]}, cannot be made there")
            position = following
        if self.estimated_distance(instance, position):
            return wrong("the moves do not end at the goal")
        return rate_answer(len(moves), self._length(instance), "moves")

    def solve(self, instance: Instance) -> str:
        """Return the moves of :meth:`shortest`."""
        return self.write_answer(instance, self.shortest(instance))

    def plan(self, instance: Instance) -> list[int]:
        """Return the moves of :meth:`shortest`, which are the actions."""
        return self.shortest(instance)

    def difficulty(self, instance: Instance) -> float:
        """Count the moves of a shortest solution."""
        return float(self._length(instance))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Walk at random to the goal or the length of a shortest solution.

        Turn back only if no other move is left.
        """
        position, last = self.start(instance), None
        walk: list[int] = []
        max_length = len(self.shortest(instance))
        while len(walk) < max_length and self.estimated_distance(instance, position):
            options = [
                (move, new_position)
                for move, new_position in self.options(instance, position)
                if new_position != last
            ]
            move, new_position = dice.choice(options or list(self.options(instance, position)))
            last, position = position, new_position
            walk.append(move)
        return self.write_answer(instance, walk)

    def heuristic(self, instance: Instance) -> str:
        """Move to the new position that looks nearest to the goal, again and again."""
        position = self.start(instance)
        visited = {position}
        walk: list[int] = []
        while len(walk) < _GREEDY_MOVES and self.estimated_distance(instance, position):
            options = [
                (self.estimated_distance(instance, p), move, p)
                for move, p in self.options(instance, position)
                if p not in visited
            ]
            if not options:
                break  # never at the start, where some move is possible
            _, move, position = min(options, key=lambda option: option[:2])
            visited.add(position)
            walk.append(move)
        return self.write_answer(instance, walk)

    def constants(self) -> Sequence[str]:
        """Return each move alone."""
        return self.moves

    def options(self, instance: Instance, position: Position) -> Iterator[tuple[int, Position]]:
        """Return the possible moves and the positions to which they lead."""
        for move in range(len(self.moves)):
            if (new_position := self.position_after(instance, position, move)) is not None:
                yield move, new_position

    @staticmethod
    def _length(instance: Instance) -> int:
        return int(instance.shortest)  # type: ignore[attr-defined]

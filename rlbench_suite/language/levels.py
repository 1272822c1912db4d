"""Schedule the levels of puzzles.

A puzzle gets harder when enough replies are right, and easier when too few are.

It raises the difficulty as SATURN does (Liu et al. 2025, arXiv:2505.16368), and also lowers it.

    levels = Levels(["Sudoku-v0", "SAT-v0"])
    for row in levels:
        levels.report(row["metadata"]["row"], score(row, reply_to(row)))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task_card import SPLITS, TaskCard
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.language.rows import Row, kept_puzzle, make_row, puzzle_of


class Levels:
    """A stream of rows whose difficulty follows the success of a learner. Puzzles take turns.

    Each puzzle has a ladder of difficulties and begins at its first level. The window holds the
    last replies to rows of the current level. When it is full, the puzzle goes one level up if
    their mean success is at least ``up``, and one level down if it is at most ``down``. Then the
    window begins anew, so that a puzzle stays at a level for at least a window of replies.
    Everything depends on the arguments and the reports alone.

    Args:
        ladders: ids of puzzles with their difficulties, the easiest first; or ids alone, whose
            ladders are all difficulties up to ``hard``.
        split: ``train`` or ``test``.
        seed: seed of the first row of each puzzle; each row has the next one.
        up: mean success at which a puzzle goes up, in (0, 1].
        down: mean success at which it goes down, in [0, ``up``).
        window: number of replies over which it is taken, at least 1.

    Raises:
        ValueError: a wrong argument.
    """

    def __init__(
        self,
        ladders: Mapping[str, Iterable[float]] | Iterable[str],
        *,
        split: str = "train",
        seed: int = 0,
        up: float = 0.75,
        down: float = 0.25,
        window: int = 64,
    ) -> None:
        if split not in SPLITS:
            raise ValueError(unknown("split", split, SPLITS))
        if not (0 <= down < up <= 1 and window >= 1 and seed >= 0):
            raise ValueError(
                "Levels need 0 <= down < up <= 1, a window of at least 1 reply and a seed of at "
                "least 0; "
                f"got down {down}, up {up}, window {window} and seed {seed}."
            )
        self.split = split
        self.up = up
        self.down = down
        self.window = window
        self.ladders: dict[str, list[float]] = {}
        """Difficulties by full id, the easiest first."""
        for task_id in ladders:
            card = find_card(task_id)
            puzzle_of(card.id)  # a task without one-shot form is named now
            steps = list(ladders[task_id]) if isinstance(ladders, Mapping) else _ladder(card)
            if not steps:
                raise ValueError(f"The ladder of {card.id} is empty.")
            self.ladders[card.id] = [kept_puzzle(card.id, float(step)).tier for step in steps]
        if not self.ladders:
            raise ValueError("Levels need at least one puzzle.")
        self.level = dict.fromkeys(self.ladders, 0)
        """Place of each puzzle on its ladder, from 0."""
        self.recent: dict[str, list[float]] = {task_id: [] for task_id in self.ladders}
        """Success of the last replies at the current level of each puzzle."""
        self._next = dict.fromkeys(self.ladders, seed)
        self._turn = 0

    def difficulty(self, task_id: str) -> float:
        """Return the current difficulty of a puzzle."""
        full = find_card(task_id).id
        return self.ladders[full][self.level[full]]

    def __iter__(self) -> Iterator[Row]:
        """Return an iterator over rows at the current levels, without end."""
        while True:
            yield self.next_row()

    def next_row(self) -> Row:
        """Return a row of the puzzle whose turn it is, at its current level."""
        task_id = list(self.ladders)[self._turn % len(self.ladders)]
        self._turn += 1
        self._next[task_id] += 1
        return make_row(
            task_id,
            kept_puzzle(task_id, self.difficulty(task_id)),
            self._next[task_id] - 1,
            self.split,
        )

    def report(self, row_id: str, success: float) -> None:
        """Take in the success of one reply.

        Replies to rows of another level than the current one do not count.

        Args:
            row_id: ``row["metadata"]["row"]``.
            success: score of the reply, from 0 to 1.

        Raises:
            ValueError: a row of another puzzle, or a success that is not from 0 to 1.
        """
        task_id, tier, *_ = (*row_id.rsplit("/", 3), "")
        if task_id not in self.ladders:
            raise ValueError(unknown("puzzle of a row", task_id, self.ladders))
        if not 0 <= success <= 1:
            raise ValueError(f"Success is from 0 to 1, got {success!r}.")
        if tier != f"{self.difficulty(task_id):g}":
            return
        recent = self.recent[task_id]
        recent.append(float(success))
        del recent[: -self.window]
        if len(recent) < self.window:
            return
        mean = sum(recent) / len(recent)
        level = self.level[task_id]
        if mean >= self.up:
            step = 1
        elif mean <= self.down:
            step = -1
        else:
            return
        if 0 <= level + step < len(self.ladders[task_id]):
            self.level[task_id] += step
            recent.clear()

    def state(self) -> dict[str, Any]:
        """Return all that changes, as plain data for JSON."""
        recent = {task_id: list(values) for task_id, values in self.recent.items()}
        return {
            "level": dict(self.level),
            "recent": recent,
            "next": dict(self._next),
            "turn": self._turn,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a :meth:`state` of levels with the same ladders.

        Raises:
            ValueError: a state of other puzzles, or of longer ladders.
        """
        if state["level"].keys() != self.ladders.keys():
            raise ValueError(
                f"These levels are of {', '.join(self.ladders)}; the state is of "
                f"{', '.join(state['level'])}."
            )
        for task_id, level in state["level"].items():
            if not 0 <= level < len(self.ladders[task_id]):
                raise ValueError(
                    f"{task_id} has {len(self.ladders[task_id])} levels, the state is at number "
                    f"{level}."
                )
        self.level = dict(state["level"])
        self._next = dict(state["next"])
        self._turn = state["turn"]
        self.recent = {task_id: list(values) for task_id, values in state["recent"].items()}


def _ladder(card: TaskCard) -> list[float]:
    """Return the difficulties of a puzzle up to its tier ``hard``."""
    hardest = max(card.difficulties.values(), default=0)
    return [tier for tier in card.one_shot_difficulties if tier <= hardest]

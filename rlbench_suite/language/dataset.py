"""Puzzles as a dataset of questions with verifiable answers. It needs no trainer installed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle import CLOSING, OPENING, Verdict
from rlbench_suite.registry import card as find_card


class Entry(dict[str, Any]):
    """One entry of a dataset: ``question``, ``answer`` and ``metadata``, plain JSON.

    It keeps its instance, so that replies are judged several times as fast. A copy of its contents, such as a line of a
    file, works too, but the instance is then made from ``metadata`` for every reply.
    """

    __slots__ = ("instance", "reply")

    def __init__(self, question: str, answer: str, metadata: dict[str, Any], instance: Any) -> None:
        super().__init__(question=question, answer=answer, metadata=metadata)
        self.instance = instance
        self.reply = f"{OPENING}{answer}{CLOSING}"

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        """Make a copy a plain dict of the contents."""
        return dict, (dict(self),)


class PuzzleDataset(Sequence[Entry]):
    """Instances of one puzzle as questions; entry ``i`` is the instance of seed ``seed + i``, made on request.

    Entries have the fields of reasoning-gym's: ``question``, ``answer``, ``metadata``. Unlike there, train and test
    never overlap, whatever the seeds, because a hash of the instance decides its split.

    Args:
        task_id: id of a puzzle.
        split: ``train`` or ``test``.
        size: number of entries.
        seed: seed of the first.
        difficulty: a tier's name, or the number that defines it.

    Raises:
        ValueError: a wrong argument, or a task without one-shot form.
    """

    def __init__(
        self,
        task_id: str,
        *,
        split: str = "train",
        size: int = 1000,
        seed: int = 0,
        difficulty: str | float | None = None,
    ) -> None:
        if size < 1 or seed < 0:
            raise ValueError(f"size is at least 1 and seed at least 0, got {size} and {seed}.")
        self.id = find_card(task_id).id
        self.puzzle = puzzle_of(task_id, difficulty)
        self.split, self.size, self.seed = split, size, seed
        self.puzzle.generate(seed, split)  # a wrong split is named now

    def __len__(self) -> int:
        """Return the number of entries."""
        return self.size

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        """Return an entry, or the entries of a slice.

        Raises:
            IndexError: beyond the last.
        """
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.size))]
        if not -self.size <= index < self.size:
            raise IndexError(f"entry {index} of {self.size}")
        seed = self.seed + index % self.size
        instance = self.puzzle.generate(seed, self.split)
        metadata = {
            "id": self.id,
            "tier": self.puzzle.tier,
            "split": self.split,
            "seed": seed,
            "difficulty": self.puzzle.difficulty(instance),
            "instance": self.puzzle.to_plain(instance),
        }
        return Entry(self.puzzle.prompt(instance), self.puzzle.solve(instance), metadata, instance)

    def __iter__(self) -> Iterator[Entry]:
        """Return an iterator over the entries."""
        return (self[i] for i in range(self.size))

    def verdict(self, answer: str | None, entry: dict[str, Any]) -> Verdict:
        """Judge a model's whole reply; the answer is the text in its last answer tags."""
        return self._judged(None if answer is None else self.puzzle.extract(answer), entry)

    def _judged(self, given: str | None, entry: dict[str, Any]) -> Verdict:
        """Judge the text in answer tags."""
        instance = entry.instance if isinstance(entry, Entry) else self.puzzle.from_plain(entry["metadata"]["instance"])
        return self.puzzle.verify(instance, given)

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        """Score a model's whole reply, from 0 to 1.

        The entry's own answer comes from the exact solver and needs no check. The rules judge any other answer.
        """
        if isinstance(entry, Entry) and answer == entry.reply:
            return 1.0  # a reply that is only the answer, found in a third of the time
        if answer is None:
            return 0.0
        best: str = entry["answer"]
        if best and answer.endswith(f"{OPENING}{best}{CLOSING}"):
            return 1.0  # most right replies end in the answer; the rest takes three times as long
        given = self.puzzle.extract(answer)
        return 1.0 if given and given == best else self._judged(given, entry).score

    def export(self, path: Path, progress: Callable[[Iterable[int]], Iterable[int]] = lambda numbers: numbers) -> None:
        """Write every entry as a line of JSON. The file appears when it is complete.

        Args:
            path: the file.
            progress: function that wraps the numbers of the entries, to show progress.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            with (unfinished := Path(folder) / path.name).open("w", encoding="utf-8", newline="\n") as file:
                for number in progress(range(self.size)):
                    file.write(json.dumps(self[number]) + "\n")
            unfinished.replace(path)

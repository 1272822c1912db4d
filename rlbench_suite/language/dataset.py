"""Puzzles in the forms that trainers of language models take: a dataset of questions, and an environment class.

Both are plain Python objects and need no trainer installed.
"""

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


class PuzzleEnvironment:
    """A puzzle as an environment for TRL's ``GRPOTrainer(environment_factory=...)``.

    The trainer makes it without arguments, calls ``reset`` with an entry of the dataset, and offers its other public
    methods to the model as tools. An answer can be given once. Entries are those of :class:`PuzzleDataset`, or have
    ``seed`` and ``split`` only.
    """

    dataset: PuzzleDataset

    def __init__(self) -> None:
        self._instance: Any = None
        self._verdict: Verdict | None = None

    def reset(self, seed: int = 0, metadata: dict[str, Any] | None = None, **_: Any) -> str:
        """Begin with the instance of an entry. Entries with one seed share it, as the members of a group must."""
        puzzle = self.dataset.puzzle
        self._instance = (
            puzzle.from_plain(metadata["instance"]) if metadata else puzzle.generate(seed, self.dataset.split)
        )
        self._verdict = None
        return puzzle.question(self._instance) + "\nGive your answer by calling submit_answer; you have one call."

    def submit_answer(self, answer: str) -> str:
        """Submit the final answer to the puzzle. Only the first call counts.

        Args:
            answer: The answer, in exactly the format that the puzzle asks for.

        Returns:
            Whether the answer is right, and if not, why.
        """
        if self._verdict is not None:
            raise ValueError("an answer was already given")
        self._verdict = self.dataset.puzzle.verify(self._instance, answer)
        return "right" if self._verdict.score == 1 else self._verdict.reason

    def get_reward(self) -> float:
        """Return the score of the submitted answer; 0 if there is none."""
        return self._verdict.score if self._verdict else 0.0


def environment_factory(task_id: str, *, split: str = "train", difficulty: str | float | None = None) -> type:
    """Make a class of environments of one puzzle, see :class:`PuzzleEnvironment`.

    Raises:
        ValueError: see :class:`PuzzleDataset`.
    """
    dataset = PuzzleDataset(task_id, split=split, difficulty=difficulty)
    name = dataset.id.split("/")[1].split("-")[0]
    return type(f"{name}Environment", (PuzzleEnvironment,), {"dataset": dataset, "__doc__": PuzzleEnvironment.__doc__})

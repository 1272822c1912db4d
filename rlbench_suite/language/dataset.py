"""Puzzles as datasets of questions with verifiable answers. They need no trainer installed."""

from __future__ import annotations

import abc
import math
import warnings
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.language import rows
from rlbench_suite.language.export import with_prompt, write
from rlbench_suite.language.rows import Completion, Row, canonical_hash, make_row, puzzle_of
from rlbench_suite.puzzle.dice import Dice, stream_of
from rlbench_suite.puzzle.puzzle import Verdict

if TYPE_CHECKING:
    import datasets

Difficulty = str | float
"""A tier's name, or the number that defines it."""

REPEATS = 0.05
"""Share of rows that may repeat others before a dataset warns."""
_PATIENCE = 20
"""Attempts for each instance found so far, after which a search for a new one ends.

1,000 more attempts are allowed in all.

If one of n equally likely instances is missing, n seeds miss it with a probability of 37 %, and 20
n with one of 2e-9.
"""


class Dataset(Sequence[Row], abc.ABC):
    """Rows that are made on request.

    Each is a function of its number, and :meth:`stream` goes on without end.
    """

    size: int

    @abc.abstractmethod
    def row(self, number: int) -> Row:
        """Return the row of a number from 0, which may lie beyond the size."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.size

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        """Return a row, or the rows of a slice.

        Raises:
            IndexError: beyond the last.
        """
        if isinstance(index, slice):
            return [self.row(number) for number in range(*index.indices(self.size))]
        if not -self.size <= index < self.size:
            raise IndexError(f"row {index} of {self.size}")
        return self.row(index % self.size)

    def __iter__(self) -> Iterator[Row]:
        """Return an iterator over the rows."""
        return (self.row(number) for number in range(self.size))

    def stream(self, start: int = 0) -> Iterator[Row]:
        """Return an iterator over the rows from ``start`` on, without end."""
        return (self.row(number) for number in count(start))

    @staticmethod
    def verdict(answer: Completion, entry: Mapping[str, Any]) -> Verdict:
        """Judge a whole reply to a row of any dataset, see :func:`rows.verdict`."""
        return rows.verdict(entry, answer)

    @staticmethod
    def score_answer(answer: Completion, entry: Mapping[str, Any]) -> float:
        """Score a whole reply to a row of any dataset from 0 to 1, see :func:`rows.score`."""
        return rows.score(entry, answer)

    def to_hugging_face(self) -> datasets.Dataset:
        """Return the rows as a dataset of Hugging Face.

        It has a column ``prompt`` of chat messages for trainers.

        Raises:
            ImportError: the package ``datasets`` is not installed.
        """
        try:
            from datasets import Dataset as HuggingFaceDataset
        except ImportError as error:
            raise ImportError(
                "Hugging Face datasets are missing: pip install 'rlbench-suite[huggingface]'"
            ) from error
        return HuggingFaceDataset.from_list([with_prompt(row) for row in self])

    def export(
        self,
        path: Path,
        progress: Callable[[Iterable[int]], Iterable[int]] = lambda numbers: numbers,
    ) -> None:
        """Write all rows to a ``.jsonl`` or ``.parquet`` file, see :func:`.export.write`."""
        write(self, path, progress)


class PuzzleDataset(Dataset):
    """Instances of one puzzle as questions.

    Row ``i`` is the instance of seed ``seed + i``, made on request.

    Rows have the fields of reasoning-gym's: ``question``, ``answer``, ``metadata`` (:mod:`.rows`).
    Unlike there, train and test never overlap, whatever the seeds, because a hash of the instance
    decides its split.

    Args:
        task_id: id of a puzzle.
        split: ``train`` or ``test``.
        size: number of rows.
        seed: seed of the first.
        difficulty: a tier's name, or the number that defines it; or several of them, which rows
            take in turn.
        unique: True to leave out instances that are equivalent to earlier ones. Seeds go on, so
            that a row's seed may lie beyond ``seed + i``. Without it, a dataset in which many rows
            repeat others warns.

    Raises:
        ValueError: a wrong argument, a task without one-shot form, or fewer different instances
            than ``size``.
    """

    def __init__(
        self,
        task_id: str,
        *,
        split: str = "train",
        size: int = 1000,
        seed: int = 0,
        difficulty: Difficulty | Iterable[Difficulty] | None = None,
        unique: bool = False,
    ) -> None:
        if size < 1 or seed < 0:
            raise ValueError(f"size is at least 1 and seed at least 0, got {size} and {seed}.")
        single = (
            difficulty is None
            or isinstance(difficulty, str)
            or not isinstance(difficulty, Iterable)
        )
        difficulties: list[Any] = [difficulty] if single else list(difficulty)  # type: ignore[arg-type]
        if not difficulties:
            raise ValueError(
                "difficulty is a tier's name, a number, or a sequence of at least one of them; got "
                "none."
            )
        self.id = find_card(task_id).id
        self.puzzles = [puzzle_of(task_id, tier) for tier in difficulties]
        self.split = split
        self.size = size
        self.seed = seed
        self.unique = unique
        self.puzzle.generate(seed, split)  # a wrong split is named now
        self._seeds = array("Q")
        self._hashes: set[str] = set()
        self._next = [seed + lane for lane in range(len(difficulties))]
        if not unique:
            self._warn_of_repeats()
        elif math.isfinite(sum(puzzle.space for puzzle in self.puzzles)):
            self._seed_of(size - 1)  # too few instances are named now

    @property
    def puzzle(self) -> Any:
        """One-shot form at the first difficulty."""
        return self.puzzles[0]

    def row(self, number: int) -> Row:
        """Return the row of a number from 0, which may lie beyond the size.

        Raises:
            ValueError: rows are unique, and there are not so many.
        """
        seed = self._seed_of(number) if self.unique else self.seed + number
        return make_row(self.id, self.puzzles[number % len(self.puzzles)], seed, self.split)

    def _seed_of(self, number: int) -> int:
        """Return the seed of a row, each of which differs from the rows before."""
        while len(self._seeds) <= number:
            lane = len(self._seeds) % len(self.puzzles)
            puzzle = self.puzzles[lane]
            attempts = _PATIENCE * len(self._hashes) + 1000
            for seed in range(
                self._next[lane], self._next[lane] + attempts * len(self.puzzles), len(self.puzzles)
            ):
                digest = canonical_hash(puzzle, puzzle.generate(seed, self.split))
                if digest not in self._hashes:
                    break
            else:
                raise ValueError(
                    f"{self.id} has too few different {self.split} instances at difficulty "
                    f"{puzzle.tier:g}: "
                    f"{len(self._seeds)} rows were found, and {attempts} more seeds gave no other "
                    "(puzzle.space, the "
                    f"estimate for both splits, is {puzzle.space:g}). Ask for a smaller size, for "
                    "more difficulties, "
                    "or for repeated instances with unique=False."
                )
            self._hashes.add(digest)
            self._seeds.append(seed)
            self._next[lane] = seed + len(self.puzzles)
        return self._seeds[number]

    def _warn_of_repeats(self) -> None:
        """Warn if many rows repeat earlier ones."""
        rows_per_puzzle = self.size / len(self.puzzles)
        distinct_rows = sum(
            expected_distinct(puzzle.space / 2, rows_per_puzzle) for puzzle in self.puzzles
        )
        if self.size - distinct_rows > max(REPEATS * self.size, 1):
            warnings.warn(
                f"{self.id} has few different instances at this difficulty: of {self.size} rows "
                f"of one split, about {distinct_rows:.0f} differ. Pass unique=True to leave out "
                "repeated ones.",
                stacklevel=3,
            )


def expected_distinct(instances: float, rows: float) -> float:
    """Return the expected number of different instances among sampled rows.

    The rows are sampled uniformly from so many instances.
    """
    return rows if math.isinf(instances) else -instances * math.expm1(-rows / instances)


class CompositeDataset(Dataset):
    """Rows of several datasets, sampled by weights.

    The choice depends on ``seed`` alone. Each row of a dataset comes in its order, so that none is
    skipped or repeated.

    Args:
        sources: ids of puzzles with their weights, or pairs of a dataset and its weight.
        size: number of rows.
        seed: seed of the choice; for ids also that of the first row of each.
        keywords: for ids only: other arguments of :class:`PuzzleDataset` (``split``,
            ``difficulty``, ``unique``).

    Raises:
        ValueError: no sources, a weight that is not a positive number, or a wrong argument of a
            dataset.
        TypeError: sources of another type, or keywords beside datasets.
    """

    def __init__(
        self,
        sources: Mapping[str, float] | Sequence[tuple[Dataset, float]],
        *,
        size: int = 1000,
        seed: int = 0,
        **keywords: Any,
    ) -> None:
        pairs: list[Any] = list(sources.items() if isinstance(sources, Mapping) else sources)
        if not pairs:
            raise ValueError("A composite dataset needs at least one source.")
        if size < 1 or not 0 <= seed < 2**64:
            raise ValueError(f"size is at least 1 and seed in [0, 2**64), got {size} and {seed}.")
        for source, weight in pairs:
            if not isinstance(source, str if isinstance(sources, Mapping) else Dataset):
                raise TypeError(
                    f"Sources are {{id: weight}} or a list of (dataset, weight); got {source!r}."
                )
            if not 0 < weight < math.inf:
                name = source if isinstance(source, str) else "a dataset"
                raise ValueError(f"The weight of {name} is {weight!r}, not > 0.")
        if keywords and not isinstance(sources, Mapping):
            raise TypeError(f"Datasets have their own {', '.join(keywords)}: leave that out.")
        self.size = size
        self.seed = seed
        total = sum(weight for _, weight in pairs)
        self.datasets: list[Dataset] = [
            PuzzleDataset(source, size=math.ceil(size * weight / total), seed=seed, **keywords)
            if isinstance(source, str)
            else source
            for source, weight in pairs
        ]
        """Datasets that the rows come from."""
        self._limits = [limit / total for limit in accumulate(weight for _, weight in pairs)]
        self._dice = Dice(stream_of("CompositeDataset"), seed)
        self._choices = array("I")
        self._rows = array("Q")
        self._used = [0] * len(pairs)

    def row(self, number: int) -> Row:
        """Return the row of a number from 0, which may lie beyond the size."""
        while len(self._choices) <= number:
            choice = min(
                bisect_right(self._limits, self._dice.word() / 2**64), len(self.datasets) - 1
            )
            self._choices.append(choice)
            self._rows.append(self._used[choice])
            self._used[choice] += 1
        return self.datasets[self._choices[number]].row(self._rows[number])

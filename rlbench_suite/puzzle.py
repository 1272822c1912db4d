"""The contract of a puzzle's one-shot form: a seeded generator, a prompt, a verifier that checks rules, a solver.

A puzzle is played in two ways. One-shot, a player reads :meth:`Puzzle.prompt` and writes one answer, which
:meth:`Puzzle.verify` judges; language models are trained and tested so. Interactively, it is an ordinary task whose
contexts are instances of the same generator (:mod:`rlbench_suite.bank`). Everything here is plain Python and NumPy: no
JAX, nothing executed that was written by a player.

The laws of a verifier, kept by every puzzle and tested on every id:

* it checks the rules, never equality with a stored key: any right answer is right;
* it parses strictly, by a grammar of its own, and never calls ``eval``; what is not an answer is invalid, says why, and
  scores 0;
* it raises nothing and takes no longer than a few milliseconds, whatever the text.
"""

from __future__ import annotations

import abc
import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from rlbench_suite.card import SPLITS, unknown
from rlbench_suite.dice import Dice, stream_of

Instance = TypeVar("Instance", bound=tuple[Any, ...])
"""A ``NamedTuple`` of NumPy arrays (or NumPy integers) whose shapes and dtypes depend on the tier only."""

OPENING, CLOSING = "<answer>", "</answer>"
LONGEST_ANSWER = 10_000
_MOST_TRIES = 100_000


class Malformed(ValueError):
    """An answer that does not follow the format that its prompt asks for; the message says where."""


class Verdict(NamedTuple):
    """What an answer is worth."""

    valid: bool
    """It has the format that the prompt asks for."""
    solved: bool
    """It keeps every rule."""
    optimal: bool
    """It is solved, and no other answer is better; the same as ``solved`` where answers are only right or wrong."""
    score: float
    """1 for what the prompt asks for, 0 for what breaks a rule; between them only a right answer that is not the best,
    where the prompt asks for the best."""
    reason: str
    """Why it is not more, in words; empty for a full score."""


RIGHT = Verdict(valid=True, solved=True, optimal=True, score=1.0, reason="")


def wrong(reason: str) -> Verdict:
    """The verdict on a well-formed answer that breaks a rule."""
    return Verdict(valid=True, solved=False, optimal=False, score=0.0, reason=reason)


def split_by(form: bytes) -> str:
    """The split of all that has this in common."""
    return SPLITS[hashlib.blake2b(form, digest_size=1).digest()[0] & 1]


class Puzzle(abc.ABC, Generic[Instance]):
    """A puzzle at one difficulty.

    Args:
        tier: the number that defines the difficulty (``TaskCard.difficulties``).

    Raises:
        ValueError: no such difficulty.
    """

    #: Part of every seed: two puzzles never share a stream of draws.
    name: ClassVar[str]
    #: What :meth:`difficulty` counts, such as "length of the shortest solution in moves".
    difficulty_is: ClassVar[str]
    #: About how many instances there are that differ by their canonical form, for the tiers of which seeds repeat many:
    #: as many as would, if all came up equally often, repeat as often as `benchmarks/puzzle_checks.py` has seen.
    few: ClassVar[dict[float, float]] = {}

    def __init__(self, tier: float) -> None:
        self.tier = tier
        self._stream = stream_of(self.name, f"{tier:g}")

    # -- what a puzzle defines ------------------------------------------------------------------------------------

    @abc.abstractmethod
    def compose(self, dice: Dice) -> Instance | None:
        """A random instance, of either split; None if this attempt led nowhere."""

    def draws(self, dice: Dice, split: str) -> Iterator[Instance | None]:
        """One attempt after another, without end. Those of the other split are dropped; a puzzle may know beforehand
        what to avoid, or yield several instances of an attempt."""
        while True:
            yield self.compose(dice)

    def admits(self, instance: Instance) -> bool:
        """Whether a composed instance may be posed: what takes longer to see than which split it is of."""
        return True

    @abc.abstractmethod
    def canonical(self, instance: Instance) -> bytes:
        """The same bytes for instances that are one puzzle in disguise: renamed, rotated, reflected, reordered."""

    @abc.abstractmethod
    def question(self, instance: Instance) -> str:
        """The rules, the instance, and the format of the answer, in words. ASCII."""

    @abc.abstractmethod
    def judge(self, instance: Instance, answer: str) -> Verdict:
        """The verdict on an answer of at most ``LONGEST_ANSWER`` printable ASCII characters.

        Raises:
            Malformed: it does not follow the format.
        """

    @abc.abstractmethod
    def solve(self, instance: Instance) -> str:
        """An answer that scores 1, by an exact solver that reads only what the prompt says."""

    @abc.abstractmethod
    def difficulty(self, instance: Instance) -> float:
        """How hard the instance is: what :attr:`difficulty_is` says."""

    @abc.abstractmethod
    def guess(self, instance: Instance, dice: Dice) -> str:
        """A well-formed answer by someone who knows the format and guesses: what it scores is chance."""

    @abc.abstractmethod
    def heuristic(self, instance: Instance) -> str:
        """The answer of a cheap rule of thumb, without search."""

    @abc.abstractmethod
    def constants(self) -> Sequence[str]:
        """Answers that somebody who never reads the prompt would always give; the best of them is on the card."""

    @abc.abstractmethod
    def plan(self, instance: Instance) -> Sequence[int]:
        """Actions that solve the interactive task from its first state."""

    @property
    def space(self) -> float:
        """About how many instances there are that differ by their canonical form; infinite if they hardly ever meet."""
        return self.few.get(self.tier, math.inf)

    # -- what every puzzle has ------------------------------------------------------------------------------------

    def generate(self, seed: int, split: str = "train") -> Instance:
        """The instance of a seed. Train and test never overlap, whatever the seeds: a hash of the canonical instance
        says to which of them it belongs.

        Raises:
            ValueError: unknown split, or a seed that is not an integer in [0, 2**64).
            RuntimeError: no instance of the split was found.
        """
        if split not in SPLITS:
            raise ValueError(unknown("split", split, SPLITS))
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
            raise ValueError(f"A seed is an integer in [0, 2**64), got {seed!r}.")
        dice = Dice(self._stream, int(seed), SPLITS.index(split))
        for instance in islice(self.draws(dice, split), _MOST_TRIES):
            if instance is not None and self.split_of(instance) == split and self.admits(instance):
                return instance
        raise RuntimeError(f"{self.name} found no {split} instance in {_MOST_TRIES} attempts (seed {seed})")

    def split_of(self, instance: Instance) -> str:
        """The split that an instance belongs to."""
        return split_by(self.canonical(instance))

    def prompt(self, instance: Instance) -> str:
        """All that a player is told."""
        return f"{self.question(instance)}\nPut your final answer between {OPENING} and {CLOSING}."

    @staticmethod
    def extract(text: str) -> str | None:
        """What stands in the last answer tags of a text; None if there are none."""
        end = text.rfind(CLOSING)
        start = text.rfind(OPENING, 0, max(end, 0))
        return text[start + len(OPENING) : end].strip(" \t\r\n") if start >= 0 else None

    def verify(self, instance: Instance, answer: str | None) -> Verdict:
        """What an answer (see :meth:`extract`) is worth. Raises nothing, whatever the text."""
        if answer is None:
            return _invalid(f"there is no answer between {OPENING} and {CLOSING}")
        if len(answer) > LONGEST_ANSWER:
            return _invalid(f"an answer has at most {LONGEST_ANSWER} characters, this one has {len(answer)}")
        if not answer.isascii() or not answer.replace("\n", "").isprintable():
            return _invalid("an answer is made of printable ASCII characters and line breaks")
        try:
            return self.judge(instance, answer)
        except Malformed as error:
            return _invalid(str(error))

    def to_plain(self, instance: Instance) -> dict[str, Any]:
        """The instance as numbers and lists, for JSON."""
        fields: tuple[str, ...] = instance._fields  # type: ignore[attr-defined]
        return {name: np.asarray(value).tolist() for name, value in zip(fields, instance, strict=True)}

    def from_plain(self, plain: dict[str, Any]) -> Instance:
        """The inverse of :meth:`to_plain`.

        Raises:
            ValueError: other fields or shapes than this tier's.
        """
        made, columns = self._columns
        if plain.keys() != columns.keys():
            raise ValueError(f"{self.name} has the fields {', '.join(columns)}, got {', '.join(plain)}.")
        values = []
        for name, (dtype, shape) in columns.items():
            values.append(value := np.array(plain[name], dtype))
            if value.shape != shape:
                raise ValueError(f"{name} of {self.name} has shape {shape}, got {value.shape}.")
        return made(*values)

    @cached_property
    def _columns(self) -> tuple[type[Instance], dict[str, tuple[np.dtype[Any], tuple[int, ...]]]]:
        """The class of instances, and dtype and shape of each field."""
        like: Any = self._example
        return type(like), {name: (np.asarray(old).dtype, np.shape(old)) for name, old in like._asdict().items()}

    @cached_property
    def _example(self) -> Instance:
        return self.generate(0)


def _invalid(reason: str) -> Verdict:
    return Verdict(valid=False, solved=False, optimal=False, score=0.0, reason=reason)

"""Define the contract of a puzzle's one-shot form.

It has a seeded generator, a prompt, a verifier that checks rules, and a solver.

A puzzle is played in two ways. In the one-shot form, a player reads :meth:`Puzzle.prompt` and
writes one answer, which :meth:`Puzzle.verify` judges; language models train and are tested in this
way. In the interactive form, it is an ordinary task whose contexts are instances of the same
generator (:mod:`rlbench_suite.puzzle.bank`). Everything here is plain Python and NumPy without JAX,
and nothing that a player wrote is executed.

Every verifier keeps these laws, tested on every id:

* It checks the rules, not equality with a stored answer: any right answer is right.
* It parses strictly, by a grammar of its own, and never calls ``eval``. A text that is no answer is
  invalid and scores 0, with the reason.
* It raises nothing and takes no longer than a few milliseconds, whatever the text.
"""

from __future__ import annotations

import abc
import hashlib
import math
import operator
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from rlbench_suite.core.task_card import SPLITS
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.puzzle.dice import Dice, stream_of

Instance = TypeVar("Instance", bound=tuple[Any, ...])
"""A ``NamedTuple`` of NumPy arrays (or NumPy integers).

Their shapes and dtypes depend on the tier only.
"""

OPENING = "<answer>"
CLOSING = "</answer>"
ECHO = " and "
"""Text between the tags where a reply repeats the last line of the prompt."""
MAX_ECHOES = 1000
"""Number of echoes that are looked at. A reply with more of them holds no answer."""
MAX_ANSWER_SIZE = 10_000
"""Largest number of characters of an answer."""
MAX_PARTIAL = 0.9
"""Partial credit that a wrong answer never exceeds."""
_MAX_TRIES = 100_000
"""Largest number of instances that are drawn for one seed."""
HYPHENATED = re.compile("[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+")
"""Items that hyphens join, none of which has a sign."""
_SEPARATORS = str.maketrans(dict.fromkeys(",;[](){}\"'", " "))
"""Characters that people put between items; no item of an answer has one."""


class Malformed(ValueError):
    """An answer does not follow the format of its prompt. The message says where."""


class Verdict(NamedTuple):
    """The judgement of an answer."""

    valid: bool
    """True if it has the format that the prompt asks for."""
    solved: bool
    """True if it keeps every rule."""
    optimal: bool
    """True if no answer is better. It equals ``solved`` if answers are only right or wrong."""
    score: float
    """Score: 1 for a full answer, 0 for one that breaks a rule.

    If the prompt asks for the best answer, a right answer that is not the best scores between 0 and
    1.
    """
    reason: str
    """Reason why the score is not 1, in words; empty for a full score."""


class Example(NamedTuple):
    """An answer that shows the format."""

    lead: str
    """Words before the answer: the puzzle that it answers."""
    answer: str


RIGHT = Verdict(valid=True, solved=True, optimal=True, score=1.0, reason="")


def wrong(reason: str) -> Verdict:
    """Return the verdict on a well-formed answer that breaks a rule."""
    return Verdict(valid=True, solved=False, optimal=False, score=0.0, reason=reason)


def agreement(answer: Sequence[Any], solution: Sequence[Any]) -> float:
    """Return the share of the places at which two sequences are equal.

    The places are those of the longer one.
    """
    return sum(map(operator.eq, answer, solution)) / max(len(answer), len(solution), 1)


def split_by(form: bytes) -> str:
    """Return the split of all instances with this canonical form."""
    return SPLITS[hashlib.blake2b(form, digest_size=1).digest()[0] & 1]


class Puzzle(abc.ABC, Generic[Instance]):
    """A puzzle at one difficulty.

    Args:
        tier: the number that defines the difficulty (``TaskCard.difficulties``).

    Raises:
        ValueError: no such difficulty.
    """

    #: Name, part of every seed, so that two puzzles never share a stream of random numbers.
    name: ClassVar[str]
    #: Meaning of :meth:`difficulty`, such as "length of the shortest solution in moves".
    difficulty_is: ClassVar[str]
    #: Meaning of the number that defines the difficulty, such as "the number of cells to fill".
    tier_is: ClassVar[str]
    #: Numbers that it may be, in increasing order.
    tiers: ClassVar[Sequence[float]]
    #: Estimated number of instances with different canonical forms, for tiers in which many seeds
    #: repeat an instance. This many equally likely instances would repeat as often as
    #: `benchmarks/audits/puzzle_checks.py` has seen.
    few: ClassVar[dict[float, float]] = {}

    def __init__(self, tier: float) -> None:
        if tier not in self.tiers:
            raise ValueError(f"{self.name}: difficulty is {self.known_tiers()}, got {tier!r}.")
        self.tier = tier
        self._stream = stream_of(self.name, f"{tier:g}")

    # -- what a puzzle defines ---------------------------------------------------------------------

    @abc.abstractmethod
    def compose(self, dice: Dice) -> Instance | None:
        """Make a random instance of either split; return None if this attempt failed."""

    def draws(self, dice: Dice, split: str) -> Iterator[Instance | None]:
        """Yield one attempt after another, without end.

        Attempts of the other split are dropped. A puzzle may override this to avoid them, or to
        yield several instances of one attempt.
        """
        while True:
            yield self.compose(dice)

    def admits(self, instance: Instance) -> bool:
        """Return True if a composed instance may be used.

        Checks slower than finding its split belong here.
        """
        return True

    @abc.abstractmethod
    def canonical(self, instance: Instance) -> bytes:
        """Return bytes that are the same for equivalent instances.

        Such instances are renamed, rotated, reflected or reordered.
        """

    @abc.abstractmethod
    def question(self, instance: Instance) -> str:
        """Return the rules, the instance, and the format of the answer, as ASCII text."""

    @abc.abstractmethod
    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Return answers that show the format which the question asks for.

        There is one, or one of each kind of answer.

        They are made up, or answer something smaller, as their leads say. Copying one never pays
        more than the best constant answer.
        """

    @abc.abstractmethod
    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Judge an answer of at most ``MAX_ANSWER_SIZE`` printable ASCII characters.

        Raises:
            Malformed: it does not follow the format.
        """

    @abc.abstractmethod
    def solve(self, instance: Instance) -> str:
        """Return an answer that scores 1, by an exact solver.

        The solver uses only the information in the prompt.
        """

    @abc.abstractmethod
    def difficulty(self, instance: Instance) -> float:
        """Return the difficulty of the instance, in the measure of :attr:`difficulty_is`."""

    @abc.abstractmethod
    def guess(self, instance: Instance, dice: Dice) -> str:
        """Return a random well-formed answer; its score is the chance level."""

    @abc.abstractmethod
    def heuristic(self, instance: Instance) -> str:
        """Return the answer of a cheap rule of thumb, without search."""

    @abc.abstractmethod
    def constants(self) -> Sequence[str]:
        """Return answers of players who ignore the prompt.

        ``rlsuite dev calibrate`` scores the best one.
        """

    @abc.abstractmethod
    def plan(self, instance: Instance) -> Sequence[int]:
        """Return actions that solve the interactive task from its first state."""

    @classmethod
    def known_tiers(cls) -> str:
        """Return the meaning of the difficulty and the numbers that it may be.

        An example is "the side, 3 to 9".
        """
        tiers = cls.tiers
        if isinstance(tiers, range) and len(tiers) > 2:
            steps = f" in steps of {tiers.step}" if tiers.step > 1 else ""
            return f"{cls.tier_is}, {tiers[0]} to {tiers[-1]}{steps}"
        return f"{cls.tier_is}, one of {', '.join(f'{tier:g}' for tier in tiers)}"

    @property
    def caseless(self) -> Sequence[str]:
        """Words of answers that a lenient reader takes in any case.

        They are empty where case has a meaning.
        """
        return ()

    def mend(self, answer: str) -> str:
        """Return a malformed answer with the separators and the case that the prompt asks for.

        A lenient reader (:mod:`rlbench_suite.language.lenient`) calls it once, without knowing the
        instance. The text means what it meant before, and it may still be malformed. By default, an
        answer is a line of items with single spaces between them. Hyphens may join them, and
        nothing need separate words of one letter. A puzzle with another format overrides this.
        """
        items = items_of(answer.removesuffix(".").replace("->", " "))
        if len(items) == 1:
            [joined] = items
            letters = {word.lower() for word in self.caseless}
            if HYPHENATED.fullmatch(joined):
                items = joined.split("-")
            elif set(joined.lower()) <= letters and max(map(len, letters)) == 1:
                items = list(joined)
        return " ".join(self.restore_case(items))

    def restore_case(self, items: Sequence[str]) -> list[str]:
        """Return items with the case of :attr:`caseless`."""
        spellings = self._spellings
        return [spellings.get(item.lower(), item) if item.isascii() else item for item in items]

    @cached_property
    def _spellings(self) -> dict[str, str]:
        return {word.lower(): word for word in self.caseless}

    @property
    def space(self) -> float:
        """Estimated number of instances with different canonical forms.

        It is infinite if seeds hardly ever repeat one.
        """
        return self.few.get(self.tier, math.inf)

    # -- what every puzzle has ---------------------------------------------------------------------

    def generate(self, seed: int, split: str = "train") -> Instance:
        """Return the instance of a seed.

        Train and test never overlap, whatever the seeds, because a hash of the canonical form
        decides the split.

        Raises:
            ValueError: unknown split, or a seed that is not an integer in [0, 2**64).
            RuntimeError: no instance of the split was found.
        """
        if split not in SPLITS:
            raise ValueError(unknown("split", split, SPLITS))
        if (
            isinstance(seed, bool)
            or not isinstance(seed, (int, np.integer))
            or not 0 <= seed < 2**64
        ):
            raise ValueError(f"A seed is an integer in [0, 2**64), got {seed!r}.")
        dice = Dice(self._stream, int(seed), SPLITS.index(split))
        for instance in islice(self.draws(dice, split), _MAX_TRIES):
            if instance is not None and self.split_of(instance) == split and self.admits(instance):
                return instance
        raise RuntimeError(
            f"{self.name} found no {split} instance in {_MAX_TRIES} attempts (seed {seed})"
        )

    def split_of(self, instance: Instance) -> str:
        """Return the split of an instance."""
        return split_by(self.canonical(instance))

    def prompt(self, instance: Instance) -> str:
        """Return the complete text for a player.

        It has the question, an example answer, and where the answer goes.
        """
        examples = self.shown_examples(instance, OPENING, CLOSING)
        return (
            f"{self.question(instance)}\n{examples}\nPut your final answer between {OPENING} and "
            f"{CLOSING}."
        )

    def shown_examples(self, instance: Instance, opening: str = "", closing: str = "") -> str:
        """Return lines that show the example answers of an instance.

        Each answer stands between ``opening`` and ``closing``.
        """
        lines: list[str] = []
        for lead, answer in self.example_answers(instance):
            if "\n" in answer:
                lines += filter(None, (lead, opening, answer, closing))
            else:
                lines.append(f"{lead} {opening}{answer}{closing}")
        return "\n".join(lines)

    @staticmethod
    def extract(text: str, opening: str = OPENING, closing: str = CLOSING) -> str | None:
        """Return the text in the last answer tags; None if there are none.

        A reply may end with the words of the prompt, "between <answer> and </answer>". They are no
        answer.
        """
        end = text.rfind(closing)
        for _ in range(MAX_ECHOES):
            start = text.rfind(opening, 0, max(end, 0))
            if start < 0:
                break
            answer = text[start + len(opening) : end]
            if answer != ECHO:
                return answer.strip(" \t\r\n")
            end = text.rfind(closing, 0, start)
        return None

    def verify(self, instance: Instance, answer: str | None) -> Verdict:
        """Judge an answer (see :meth:`extract`). Raise nothing, whatever the text."""
        if answer is None:
            return _invalid(f"there is no answer between {OPENING} and {CLOSING}")
        if len(answer) > MAX_ANSWER_SIZE:
            return _invalid(
                f"an answer has at most {MAX_ANSWER_SIZE} characters, this one has {len(answer)}"
            )
        if not answer.isascii() or not answer.replace("\n", "").isprintable():
            return _invalid("an answer is made of printable ASCII characters and line breaks")
        try:
            return self.judge(instance, answer)
        except Malformed as error:
            return _invalid(str(error))

    def likeness(self, instance: Instance, answer: str, best: str) -> float:
        """Return how much of a well-formed answer is right, from 0 to 1.

        It is always 0 where a puzzle has no such measure.

        Args:
            instance: the instance.
            answer: a well-formed answer.
            best: an answer that scores 1.
        """
        return 0.0

    def effortless(self, instance: Instance, best: str) -> float:
        """Return the greatest :meth:`likeness` of answers that ignore the prompt."""
        valid = (constant for constant in self.constants() if self.verify(instance, constant).valid)
        return max((self.likeness(instance, constant, best) for constant in valid), default=0.0)

    def partial(self, instance: Instance, answer: str, best: str) -> float:
        """Return the partial credit of a wrong answer, from 0 to :data:`MAX_PARTIAL`.

        It is 0 where a puzzle has none.

        It is :meth:`likeness`, rescaled so that answers that ignore the prompt earn nothing.
        Neither do malformed ones.
        """
        if not self.verify(instance, answer).valid:
            return 0.0
        return self.credit(self.likeness(instance, answer, best), self.effortless(instance, best))

    @staticmethod
    def credit(likeness: float, chance: float) -> float:
        """Return the partial credit of a likeness.

        ``chance`` is the likeness of answers that ignore the prompt.
        """
        return max(MAX_PARTIAL * (likeness - chance) / (1 - chance), 0.0) if chance < 1 else 0.0

    def to_plain(self, instance: Instance) -> dict[str, Any]:
        """Return the instance as numbers and lists, for JSON."""
        fields: tuple[str, ...] = instance._fields  # type: ignore[attr-defined]
        return {
            name: np.asarray(value).tolist() for name, value in zip(fields, instance, strict=True)
        }

    def from_plain(self, plain: dict[str, Any]) -> Instance:
        """Return the instance of numbers and lists: the inverse of :meth:`to_plain`.

        Raises:
            ValueError: other fields or shapes than this tier's.
        """
        instance_type, columns = self._columns
        if plain.keys() != columns.keys():
            raise ValueError(
                f"{self.name} has the fields {', '.join(columns)}, got {', '.join(plain)}."
            )
        values = []
        for name, (dtype, shape) in columns.items():
            values.append(value := np.array(plain[name], dtype))
            if value.shape != shape:
                raise ValueError(f"{name} of {self.name} has shape {shape}, got {value.shape}.")
        return instance_type(*values)

    @cached_property
    def _columns(self) -> tuple[type[Instance], dict[str, tuple[np.dtype[Any], tuple[int, ...]]]]:
        """Class of the instances, and dtype and shape of each field."""
        like: Any = self._example
        return type(like), {
            name: (np.asarray(old).dtype, np.shape(old)) for name, old in like._asdict().items()
        }

    @cached_property
    def _example(self) -> Instance:
        return self.generate(0)


def items_of(text: str) -> list[str]:
    """Return what stands between white space, commas, semicolons, brackets and quotes."""
    return text.translate(_SEPARATORS).split()


def _invalid(reason: str) -> Verdict:
    return Verdict(valid=False, solved=False, optimal=False, score=0.0, reason=reason)

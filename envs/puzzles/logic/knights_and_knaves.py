"""rlsuite/KnightsAndKnaves-v0: find each person's kind (Smullyan 1978).

Knights tell the truth, and knaves lie.

Everybody says one thing, about one or two people or about how many knights there are. Exactly one
assignment makes every knight's sentence true and every knave's false. ``difficulty`` is the length
of a depth-first search for it. See :mod:`..shared.grid_filling` for actions, observations and
rewards: people are the cells of one row, and the mask forbids a kind that makes a sentence wrong
once the kinds of all people in it are known. After the cells come, for each speaker, the people
that the sentence is about (one-hot, twice) and the cases in which it is true (one bit each). Three
people make about 2,500 different puzzles, four about 50,000, and more people far more. Seeds ask
for each assignment equally often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Example

from ..shared.board import INK, Board
from ..shared.grid_filling import CellFillTask, Grid, GridPuzzle
from ..shared.naming import least_naming

NAMES = ("Alma", "Boris", "Chloe", "Dario", "Elsa", "Felix", "Greta", "Hugo", "Iris", "Jonas")
KNIGHT, KNAVE = 1, 2
NOBODY = -1

ABOUT_ONE = {0b10: "{a} a knight", 0b01: "{a} a knave"}
ABOUT_TWO = {
    0b1000: "{they} both knights",
    0b0010: "{a} a knight and {b} a knave",
    0b0100: "{a} a knave and {b} a knight",
    0b0001: "{they} both knaves",
    0b1110: "at least one of {them} is a knight",
    0b1101: "if {a} a knight, then {b} a knight",
    0b1011: "if {b} a knight, then {a} a knight",
    0b0111: "at least one of {them} is a knave",
    0b0110: "{they} of different kinds",
    0b1001: "{they} of the same kind",
}
"""Sentences about two people, by their truth tables.

Bit 0 is the case that both are knaves, bit 1 that only a is a knight, bit 2 that only b is, bit 3
that both are.
"""
SWAPPED = {
    table: table & 0b1001 | (table & 0b0010) << 1 | (table & 0b0100) >> 1 for table in ABOUT_TWO
}


class Instance(NamedTuple):
    """The sentence of every person."""

    givens: np.ndarray
    """int8 ``(people,)``: zeros, because nobody's kind is given."""
    about: np.ndarray
    """int8 ``(people, 2)``: people that each speaker's sentence is about.

    ``NOBODY`` stands for a missing second one.

    ``NOBODY`` stands twice if the sentence is about the number of knights.
    """
    truth: np.ndarray
    """int16 ``(people,)``: truth table of each sentence, a bit a case.

    Bit k stands for k knights if the sentence is about their number.
    """


Sentence = tuple[int, int, int]
"""People that a sentence is about, and its truth table."""
_Sayings = tuple[tuple[Sentence, int], ...]
"""Sentences with the assignments in which they are true, as bits of a number."""


class KnightsAndKnavesPuzzle(GridPuzzle[Instance]):
    """``tier`` is the number of people."""

    name = "KnightsAndKnaves"
    meanings: ClassVar[dict[str, str]] = {"K": "knight", "N": "knave"}
    difficulty_is = (
        "kinds that a depth-first search, person by person, tries until it has proven uniqueness"
    )
    tier_is = "the number of people"
    tiers = range(3, len(NAMES) + 1)
    few: ClassVar[dict[float, float]] = {3: 4_000, 4: 98_000}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.rows, self.columns, self.symbols, self.fillable = 1, int(tier), "KN", 2

    @cached_property
    def _cases(self) -> tuple[int, list[int], list[int]]:
        """Sets of assignments as bits of a number.

        They are all assignments, those with each person a knight, and those with k knights.
        """
        people = self.columns
        every = range(2**people)
        knight = [
            sum(1 << case for case in every if case >> person & 1) for person in range(people)
        ]
        number = [
            sum(1 << case for case in every if case.bit_count() == k) for k in range(people + 1)
        ]
        return (1 << 2**people) - 1, knight, number

    def compose(self, dice: Dice) -> Instance | None:
        """Draw sentences for the kinds that are due for this seed.

        All answers are equally frequent.
        """
        return self._said_by(1 << dice.share(2**self.columns), dice)

    def draws(self, dice: Dice, split: str) -> Iterator[Instance | None]:
        """Find out only once which kinds are due."""
        case = 1 << dice.share(2**self.columns)
        while True:
            yield self._said_by(case, dice)

    def _said_by(self, case: int, dice: Dice) -> Instance | None:
        """Draw a random sentence of each person that fits an assignment.

        Return None if another one fits them all.
        """
        every, knight, _ = self._cases
        cases_left, sentences = every, []
        for speaker in range(self.columns):
            lies, fits = every ^ knight[speaker], 0
            while not fits & case:
                sentence, true = self._sentence(speaker, dice)
                fits = lies ^ true
            cases_left &= fits
            sentences.append(sentence)
        if cases_left.bit_count() > 1:
            return None
        about = [sentence[:2] for sentence in sentences]
        truth = [sentence[2] for sentence in sentences]
        return Instance(
            np.zeros(self.columns, np.int8), np.array(about, np.int8), np.array(truth, np.int16)
        )

    def _sentence(self, speaker: int, dice: Dice) -> tuple[Sentence, int]:
        """Draw a sentence, and return it with the assignments in which it is true.

        Half of them are about two people, a quarter about one, and a quarter about the number of
        knights.
        """
        people = self.columns
        about_one, about_number, about_two = self._sentences
        kind = dice.below(4)
        if kind == 0:
            return dice.choice(about_one[(speaker + dice.between(1, people - 1)) % people])
        if kind == 1:
            return dice.choice(about_number[dice.between(1, people - 1)])
        a, b = dice.below(people), dice.between(1, people - 1)
        # The draws of Dice.sample, without its list.
        return dice.choice(about_two[a][b if b != a else 0])

    @cached_property
    def _sentences(self) -> tuple[list[_Sayings], list[_Sayings], list[list[_Sayings]]]:
        """Sentences about each person, each number of knights, and each pair, with true cases."""
        everybody = range(self.columns)

        def sayings(a: int, b: int, tables: Iterable[int]) -> _Sayings:
            return tuple(((a, b, table), self._true_in((a, b, table))) for table in tables)

        def tables_of(count: int) -> tuple[int, int, int]:
            at_least = (1 << self.columns + 1) - (1 << count)
            return 1 << count, at_least, (1 << self.columns + 1) - 1 ^ at_least

        about_one = [sayings(a, NOBODY, ABOUT_ONE) for a in everybody]
        about_number = [sayings(NOBODY, NOBODY, tables_of(count)) for count in everybody]
        return (
            about_one,
            about_number,
            [[sayings(a, b, ABOUT_TWO) for b in everybody] for a in everybody],
        )

    def _true_in(self, sentence: Sentence) -> int:
        """Return the assignments in which a sentence is true."""
        every, knight, number = self._cases
        a, b, table = sentence
        if a == NOBODY:
            cases = number
        elif b == NOBODY:
            cases = [every ^ knight[a], knight[a]]
        else:
            both_knights = knight[a] & knight[b]
            only_a = knight[a] & ~knight[b]
            only_b = knight[b] & ~knight[a]
            cases = [every ^ both_knights ^ only_a ^ only_b, only_a, only_b, both_knights]
        # The cases exclude each other.
        return sum(case for bit, case in enumerate(cases) if table >> bit & 1)

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form: people renamed, each sentence about two in either order."""
        sentences = _sentences(instance)

        def orient_sentence(sentence: Sentence, colours: Sequence[int]) -> tuple[int, int, int]:
            a, b, table = sentence
            if b == NOBODY:
                return (NOBODY if a == NOBODY else colours[a]), NOBODY, table
            first, second = colours[a], colours[b]
            return min((first, second, table), (second, first, SWAPPED[table]))

        def look(colours: Sequence[int]) -> list[Any]:
            mentioned: list[list[Any]] = [[] for _ in sentences]
            for speaker, (a, b, table) in enumerate(sentences):
                if a != NOBODY:
                    mentioned[a].append(
                        (
                            colours[speaker],
                            table,
                            colours[b] if b != NOBODY else NOBODY,
                            speaker == a,
                        )
                    )
                if b != NOBODY:
                    mentioned[b].append(
                        (colours[speaker], SWAPPED[table], colours[a], speaker == b)
                    )
            return [
                (orient_sentence(s, colours), tuple(sorted(m)))
                for s, m in zip(sentences, mentioned, strict=True)
            ]

        def form(names: Sequence[int]) -> bytes:
            rows = sorted(
                (names[speaker], *orient_sentence(sentence, names))
                for speaker, sentence in enumerate(sentences)
            )
            return np.array(rows, np.int16).tobytes()

        return least_naming(len(sentences), look, form)

    def rules(self) -> str:
        """State the rules."""
        return (
            "Everybody here is either a knight or a knave. Everything a knight says is true, and "
            "everything a knave says is false. Exactly one assignment of kinds is possible."
        )

    def clues(self, instance: Instance) -> str:
        """State what everybody says."""
        sentences = enumerate(_sentences(instance))
        return "\n".join(
            f"{NAMES[speaker]} says: {self.words(speaker, sentence)}."
            for speaker, sentence in sentences
        )

    def words(self, speaker: int, sentence: Sentence) -> str:
        """Return a speaker's sentence in English."""
        a, b, table = sentence
        if a == NOBODY:
            count = (table & -table).bit_length() - 1
            if table == 1:
                return "none of us is a knight"
            how = "exactly" if table.bit_count() == 1 else "at least"
            if table & 1:
                how, count = "at most", table.bit_length() - 1
            return f"{how} {count} of us {'is a knight' if count == 1 else 'are knights'}"
        a_is, b_is = ("I am" if person == speaker else f"{NAMES[person]} is" for person in (a, b))
        if b == NOBODY:
            return ABOUT_ONE[table].format(a=a_is)
        first, second = (b, a) if a == speaker else (a, b)  # the speaker comes last
        they, them = (
            f"{NAMES[first]} and {speaker_word if second == speaker else NAMES[second]}"
            for speaker_word in ("I", "me")
        )
        return ABOUT_TWO[table].format(a=a_is, b=b_is, they=f"{they} are", them=them)

    def question(self, instance: Instance) -> str:
        """State the rules, the sentences, and the order of the answer."""
        people = NAMES[: self.columns]
        return (
            f"{self.rules()}\n\n{self.clues(instance)}\n\nWho is what? Answer with one line of "
            f"{self.columns} letters separated by single spaces, K for a knight and N for a knave, "
            f"in the order {', '.join(people)}."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show the kinds of two people."""
        return [
            Example("For example, if there were only Alma, a knight, and Boris, a knave:", "K N")
        ]

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first person whose sentence does not fit the kind."""
        kinds = grid[0]
        for speaker, sentence in enumerate(_sentences(instance)):
            if _holds(sentence, kinds) != (kinds[speaker] == KNIGHT):
                kind, value = ("knight", "false") if kinds[speaker] == KNIGHT else ("knave", "true")
                return f"{NAMES[speaker]} would be a {kind} and says something {value}"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Search the truth table."""
        every, knight, _ = self._cases
        cases_left = every
        for speaker, sentence in enumerate(_sentences(instance)):
            cases_left &= every ^ knight[speaker] ^ self._true_in(sentence)
        if not cases_left:
            raise ValueError("these sentences contradict each other")
        case = cases_left.bit_length() - 1
        return [[KNIGHT if case >> person & 1 else KNAVE for person in range(self.columns)]]

    def difficulty(self, instance: Instance) -> float:
        """Count the kinds that a search tries, person by person.

        It drops kinds that make a settled sentence wrong.
        """
        sentences = _sentences(instance)
        tried = 0

        def search(kinds: list[int]) -> None:
            nonlocal tried
            if len(kinds) == len(sentences):
                return
            for kind in (KNIGHT, KNAVE):
                tried += 1
                if self._no_contradiction(sentences, [*kinds, kind]):
                    search([*kinds, kind])

        search([])
        return float(tried)

    def heuristic(self, instance: Instance) -> str:
        """Make everybody in turn a knight, unless that makes a settled sentence wrong."""
        sentences = _sentences(instance)
        kinds: list[int] = []
        for _ in sentences:
            kinds.append(KNIGHT if self._no_contradiction(sentences, [*kinds, KNIGHT]) else KNAVE)
        return self.write_answer([kinds])

    @staticmethod
    def _no_contradiction(sentences: list[Sentence], kinds: list[int]) -> bool:
        """Return whether the first people fit all their sentences about each other.

        ``kinds`` are the kinds of these people.
        """
        for speaker, sentence in enumerate(sentences):
            a, b, _ = sentence
            last = len(sentences) - 1 if a == NOBODY else max(speaker, a, b)
            if last < len(kinds) and _holds(sentence, kinds) != (kinds[speaker] == KNIGHT):
                return False
        return True


def _sentences(instance: Instance) -> list[Sentence]:
    return [
        (a, b, table)
        for (a, b), table in zip(instance.about.tolist(), instance.truth.tolist(), strict=True)
    ]


def _holds(sentence: Sentence, kinds: Sequence[int]) -> bool:
    """Return whether a sentence is true of people of these kinds."""
    a, b, table = sentence
    if a == NOBODY:
        return bool(table >> kinds.count(KNIGHT) & 1)
    return bool(table >> (kinds[a] == KNIGHT) + 2 * (b != NOBODY and kinds[b] == KNIGHT) & 1)


class KnightsAndKnaves(CellFillTask):
    """Knights and knaves, a person a step."""

    puzzle_class = KnightsAndKnavesPuzzle
    bank_size = 8192
    picture_shape = (360, 640, 3)

    @property
    def people(self) -> int:
        """Number of people."""
        return self.puzzle.columns

    @property
    def fact_count(self) -> int:
        """Numbers of :meth:`facts`."""
        return self.people * (2 * self.people + max(4, self.people + 1))

    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow kinds that make no sentence wrong.

        Only sentences about people with known kinds count.
        """
        person_bits = np.uint16(1) << np.arange(self.people, dtype=np.uint16)
        known_people = (
            jnp.where(cells > 0, person_bits, 0).sum(dtype=jnp.uint16) | person_bits[:, None]
        )
        knights = jnp.where(cells == KNIGHT, person_bits, 0).sum(dtype=jnp.uint16)
        knights = jnp.stack([knights | person_bits, knights & ~person_bits], axis=1)
        is_decided = self._people_concerned(instance) & ~known_people[..., None] == 0
        return ~(is_decided & ~self._fits(knights, instance)).any(axis=-1)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every sentence fits its speaker."""
        person_bits = np.uint16(1) << np.arange(self.people, dtype=np.uint16)
        return self._fits(
            jnp.where(cells == KNIGHT, person_bits, 0).sum(dtype=jnp.uint16), instance
        ).all()

    def _people_concerned(self, instance: Any) -> jax.Array:
        """Return the people who decide whether each sentence fits, as sets of bits.

        They are uint16 ``(people,)``.
        """
        a, b = instance.about[:, 0], instance.about[:, 1]
        person_bits = np.uint16(1) << np.arange(self.people, dtype=np.uint16)
        people = person_bits | self._bit(a) | self._bit(b)
        return jnp.where(a == NOBODY, np.uint16(2**self.people - 1), people)

    def _fits(self, knights: jax.Array, instance: Any) -> jax.Array:
        """Return whether each sentence fits its speaker, bool ``(..., people)``.

        ``knights`` is a set of bits.
        """
        a, b = instance.about[:, 0], instance.about[:, 1]
        knights = knights[..., None]
        two = (knights & self._bit(a) != 0).astype(jnp.int16) + 2 * (
            knights & self._bit(b) != 0
        ).astype(jnp.int16)
        case = jnp.where(a == NOBODY, jax.lax.population_count(knights).astype(jnp.int16), two)
        is_true = instance.truth >> case & 1 != 0
        return is_true == (knights >> np.arange(self.people, dtype=np.uint16) & 1 != 0)

    @staticmethod
    def _bit(person: jax.Array) -> jax.Array:
        """Return the set of one person; the empty set for ``NOBODY``."""
        return jnp.where(
            person >= 0, np.uint16(1) << jnp.maximum(person, 0).astype(jnp.uint16), np.uint16(0)
        )

    def facts(self, instance: Any) -> jax.Array:
        """Return the people that the sentences are about, and the truth tables."""
        about = instance.about[..., None] == np.arange(self.people)
        truth = instance.truth[:, None] >> np.arange(max(4, self.people + 1), dtype=np.int16) & 1
        blocks = (about.reshape(self.people, -1), truth)
        return jnp.concatenate([block.astype(self.dtype) for block in blocks], axis=1).reshape(-1)

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        cases = max(4, self.people + 1)
        meaning = (
            "[speaker, ...]: the first person the sentence is about, one-hot; the second; then for "
            "each case whether it is true: of the kinds of those two, or of 0, 1, ... knights"
        )
        return (Component("sentences", meaning, shape=(self.people, 2 * self.people + cases)),)

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw names above, sentences below."""
        for person in range(self.people):
            board.text(-0.3, person, NAMES[person], INK, 0.3)
        for line, words in enumerate(self.puzzle.clues(instance).split("\n")):
            board.text(
                1.0 + (line + 0.5) * 16 / board.side,
                (self.people - 1) / 2,
                words,
                INK,
                20 / board.side,
            )

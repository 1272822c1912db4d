"""rlsuite/Entailment-v0: do the premises entail the conclusion, contradict it, or neither?

Sentences are those of monadic first-order logic without equality: "every", "no" and "some" over up
to three of k properties, and a thing with a name. A thing is of one of 2**k kinds. A sentence about
all things forbids some kinds. A sentence about some thing requires a thing of one of its kinds. So
sentences can be true together exactly if every sentence of the second type, and the named thing,
has a kind that no sentence of the first type forbids. This decides every case. It also shows that
such sentences are true together in a world with one thing for each sentence about some thing (and
at least one thing).

Premises never contradict each other. At least half of them make a derivation of the conclusion or
of its denial, which is spoiled if the answer is "neither". The others are random. Of every three
seeds, each gets another answer. ``difficulty`` is the number of premises that settle the question.
Three premises make a few thousand different puzzles, more premises far more.

=============  =====================================================================================
action         0 entailed, 1 contradicted, 2 neither
observation    for each premise, then for the conclusion: its form one-hot (about all, about some,
               about the named thing), and for each of the 2**k kinds of things whether it is among
               those that the sentence is about: of which there are none, or is one, or which the
               named thing is of
reward         1 for the right answer
termination    after the answer
=============  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw, ImageFont

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Puzzle, Verdict, wrong

from ..shared import parsing
from ..shared.board import FILLED, INK, PAPER
from ..shared.naming import least_naming
from ..shared.puzzle_task import Params, PuzzleTask

ANSWERS = ("entailed", "contradicted", "neither")
ALL, SOME, SINGULAR = range(3)
NAME = "Odo"
PROPERTIES = ("blue", "round", "heavy", "soft", "old", "sweet")
MAX_STEPS = 9
Sentence = tuple[int, int, int, int]
"""Form, up to two literals of its subject (0: none), and the literal that it states.

Literal p + 1 is property p, -(p + 1) its absence.
"""


class Instance(NamedTuple):
    """Premises, with the conclusion in the last row."""

    forms: np.ndarray
    """int8 ``(premises + 1,)``: ``ALL``, ``SOME`` or ``SINGULAR``."""
    literals: np.ndarray
    """int8 ``(premises + 1, 3)``: the literals of each :data:`Sentence`."""


class EntailmentPuzzle(Puzzle[Instance]):
    """``tier`` is the number of premises.

    Half of them, rounded up, make a derivation, and there is one property more than those.
    """

    name = "Entailment"
    difficulty_is = "fewest premises that give the answer alone; all of them for 'neither'"
    tier_is = "the number of premises"
    tiers = range(2, MAX_STEPS + 1)
    few: ClassVar[dict[float, float]] = {3: 5_600}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.premises = int(tier)
        self.steps = self.premises - self.premises // 2
        self.properties = self.steps + 1
        kinds = 2**self.properties
        self._every = 2**kinds - 1
        self._having = [
            sum(1 << kind for kind in range(kinds) if kind >> p & 1) for p in range(self.properties)
        ]
        """The kinds of things that have each property, as sets."""

    # -- the decision ------------------------------------------------------------------------------

    def about(self, sentence: Sentence) -> int:
        """Return the kinds that a sentence is about.

        The sentence says that no thing is of these kinds, that some thing is, or
        that the named thing is.
        """
        form, first, second, states = sentence
        kinds = self._every
        for literal in (first, second, -states if form == ALL else states):
            if literal:
                having = self._having[abs(literal) - 1]
                kinds &= having if literal > 0 else ~having
        return kinds

    def are_consistent(self, sentences: Sequence[Sentence]) -> bool:
        """Return whether sentences can be true together, in a world that is not empty."""
        possible, named_kinds, witnesses = self._every, self._every, []
        for sentence in sentences:
            kinds = self.about(sentence)
            if sentence[0] == ALL:
                possible &= ~kinds
            elif sentence[0] == SOME:
                witnesses.append(kinds)
            else:
                named_kinds &= kinds
        return bool(possible & named_kinds) and all(kinds & possible for kinds in witnesses)

    def decide(self, premises: Sequence[Sentence], conclusion: Sentence) -> int:
        """Return the answer, a place in ``ANSWERS``; the premises are consistent."""
        if not self.are_consistent([*premises, _negation(conclusion)]):
            return 0
        return 2 if self.are_consistent([*premises, conclusion]) else 1

    # -- the generator -----------------------------------------------------------------------------

    def compose(self, dice: Dice) -> Instance:
        """Draw an instance with the answer that is due for this seed."""
        answer = dice.share(3)
        while (instance := self._attempt(answer, dice)) is None:
            pass
        return instance

    def _attempt(self, answer: int, dice: Dice) -> Instance | None:
        """Return a derivation with the conclusion or its denial; for "neither", change a premise.

        Return None if that gives another answer.
        """
        premises, conclusion = self._derivation(dice)
        if answer == 2:
            number = dice.below(len(premises))
            premises[number] = self._spoil_sentence(premises[number], dice)
        if answer == 1 or (answer == 2 and dice.below(2)):
            conclusion = _negation(conclusion)
        premises += [self._sentence(dice) for _ in range(self.premises - self.steps)]
        if not self.are_consistent(premises) or self.decide(premises, conclusion) != answer:
            return None
        sentences = [*dice.shuffled(premises), conclusion]
        forms, literals = [form for form, *_ in sentences], [sentence[1:] for sentence in sentences]
        return Instance(np.array(forms, np.int8), np.array(literals, np.int8))

    def _sentence(self, dice: Dice) -> Sentence:
        """Draw any sentence."""
        form = dice.below(3)
        literals = [
            literal if dice.below(2) else -literal
            for literal in dice.sample(range(1, self.properties + 1), 3)
        ]
        if form == SINGULAR:
            return form, 0, 0, literals[0]
        return form, literals[0], literals[1] * dice.below(2), literals[2]

    def _derivation(self, dice: Dice) -> tuple[list[Sentence], Sentence]:
        """Draw premises and a conclusion that follows.

        Each step adds a property to things with known properties.
        """
        fresh = [
            literal if dice.below(2) else -literal
            for literal in dice.shuffled(range(1, self.properties + 1))
        ]
        form = dice.below(3)
        start = fresh.pop()
        premises: list[Sentence] = []
        proved, subject = [start], start
        if form == SOME:
            subject = fresh.pop()
            premises.append(
                (SOME, start, 0, subject) if dice.below(2) else (SOME, subject, 0, start)
            )
            proved = [subject, start]
        elif form == SINGULAR:
            premises.append((SINGULAR, 0, 0, start))
            subject = 0
        while len(premises) < self.steps:
            new, last = fresh.pop(), proved[-1]
            if len(proved) > 1 and dice.below(3) == 0:
                first, second = dice.shuffled((last, dice.choice(proved[:-1])))
                premises.append((ALL, first, second, new))
            else:
                premises.append((ALL, last, 0, new) if dice.below(2) else (ALL, -new, 0, -last))
            proved.append(new)
        return premises, (form, subject, 0, proved[-1])

    def _spoil_sentence(self, sentence: Sentence, dice: Dice) -> Sentence:
        """Return a changed sentence: its converse, or one with a denied literal."""
        form, first, second, states = sentence
        if form == ALL and not second and dice.below(2):
            return form, states, 0, first
        if first and dice.below(2):
            return form, -first, second, states
        return form, first, second, -states

    # -- the one-shot form -------------------------------------------------------------------------

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form of the instance.

        Forms rename properties, reorder premises, and write equivalent sentences alike.
        """
        conjunctions = [self._conjunction(sentence) for sentence in sentences_of(instance)]
        last = len(conjunctions) - 1

        def look(colours: Sequence[int]) -> list[Any]:
            occurrences: list[list[Any]] = [[] for _ in range(self.properties)]
            for number, (form, literals) in enumerate(conjunctions):
                for literal in literals:
                    other_literals = sorted(
                        (x > 0, colours[abs(x) - 1]) for x in literals if x != literal
                    )
                    occurrences[abs(literal) - 1].append(
                        (number == last, form, literal > 0, tuple(other_literals))
                    )
            return [tuple(sorted(uses)) for uses in occurrences]

        def form(names: Sequence[int]) -> bytes:
            rows = [
                (
                    form,
                    *sorted(
                        (names[abs(x) - 1] + 1) * (2 if x > 0 else 3) + 30 * (x > 0)
                        for x in literals
                    ),
                )
                for form, literals in conjunctions
            ]
            return bytes(x for row in (*sorted(rows[:-1]), rows[-1]) for x in (*row, 255))

        return least_naming(self.properties, look, form)

    @staticmethod
    def _conjunction(sentence: Sentence) -> tuple[int, tuple[int, ...]]:
        """Return the form of a sentence, and the common properties of the things it is about."""
        form, first, second, states = sentence
        return form, tuple(
            {literal for literal in (first, second, -states if form == ALL else states) if literal}
        )

    def question(self, instance: Instance) -> str:
        """State the premises, the conclusion, and the meanings of the answers."""
        sentences = sentences_of(instance)
        about_name = f" {NAME} is one of the things." if SINGULAR in instance.forms else ""
        return (
            "Premises:\n"
            + "\n".join(f"{number}. {words(s)}." for number, s in enumerate(sentences[:-1], 1))
            + f"\n\nConclusion: {words(sentences[-1])}.\n\n"
            "Go by the premises alone. At least one thing exists. 'Every A thing is B' and "
            "'No A thing is B' are both true if there is no A thing. 'Some' and 'something' mean "
            f"at least one.{about_name}\n"
            "Answer 'entailed' if the conclusion is true whenever the premises are, 'contradicted' "
            "if it is false whenever they are, and 'neither' otherwise."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show all answers."""
        leads = ("The answer is one of these three:", "or", "or")
        return [Example(lead, answer) for lead, answer in zip(leads, ANSWERS, strict=True)]

    @property
    def caseless(self) -> Sequence[str]:
        """The three answers."""
        return ANSWERS

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Compare the answer with the decision."""
        number = parsing.word(answer, ANSWERS)
        *premises, conclusion = sentences_of(instance)
        correct_number = self.decide(premises, conclusion)
        return (
            RIGHT
            if number == correct_number
            else wrong(f"the conclusion is {ANSWERS[correct_number]}")
        )

    def solve(self, instance: Instance) -> str:
        """Decide by the decision procedure."""
        return ANSWERS[self.plan(instance)[0]]

    def plan(self, instance: Instance) -> list[int]:
        """Return the answer."""
        *premises, conclusion = sentences_of(instance)
        return [self.decide(premises, conclusion)]

    def difficulty(self, instance: Instance) -> float:
        """Count the fewest premises that settle the answer."""
        *premises, conclusion = sentences_of(instance)
        answer = self.decide(premises, conclusion)
        for size in range(self.premises if answer == 2 else 1, self.premises):
            if any(
                self.decide(subset, conclusion) == answer for subset in combinations(premises, size)
            ):
                return float(size)
        return float(self.premises)

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Give any answer."""
        return dice.choice(ANSWERS)

    def heuristic(self, instance: Instance) -> str:
        """Compare the negations of the conclusion with those of the premises.

        Answer "entailed" if both the conclusion and a premise have a negation, or neither has; else
        "contradicted".
        """
        *premises, conclusion = (words(sentence) for sentence in sentences_of(instance))
        negative = any("not " in text or text.startswith("No ") for text in premises)
        return ANSWERS[negative != ("not " in conclusion or conclusion.startswith("No "))]

    def constants(self) -> Sequence[str]:
        """Return the three answers."""
        return ANSWERS


def sentences_of(instance: Instance) -> list[Sentence]:
    """Return the premises, and the conclusion last."""
    rows = zip(instance.forms.tolist(), instance.literals.tolist(), strict=True)
    return [(form, *literals) for form, literals in rows]


def _negation(sentence: Sentence) -> Sentence:
    """Return the sentence that is true exactly where this one is false."""
    form, first, second, states = sentence
    return {ALL: SOME, SOME: ALL, SINGULAR: SINGULAR}[form], first, second, -states


def _trait(literal: int) -> str:
    return "not " * (literal < 0) + PROPERTIES[abs(literal) - 1]


def words(sentence: Sentence) -> str:
    """Return a sentence in English."""
    form, subject, second_subject, states = sentence
    if form == SINGULAR:
        return f"{NAME} is {_trait(states)}"
    if second_subject or subject < 0:
        # Properties it has come before those it lacks.
        first, second = sorted((subject, second_subject), reverse=True)
        if first < 0 and second < 0:
            which = f"neither {PROPERTIES[-first - 1]} nor {PROPERTIES[-second - 1]}"
        else:
            which = " and ".join(_trait(literal) for literal in (first, second) if literal)
        things = "Everything" if form == ALL else "Something"
        return f"{things} that is {which} is {_trait(states)}"
    if form == SOME:
        return f"Some {_trait(subject)} thing is {_trait(states)}"
    quantifier = "Every" if states > 0 else "No"
    return f"{quantifier} {_trait(subject)} thing is {PROPERTIES[abs(states) - 1]}"


class AnswerState(NamedTuple):
    """The answer that was given."""

    answer: jax.Array
    """int32: index in ``ANSWERS``, counted from 1; 0 before the answer."""


class Entailment(PuzzleTask[AnswerState]):
    """Entailment as a choice."""

    puzzle: EntailmentPuzzle
    puzzle_class = EntailmentPuzzle
    bank_size = 8192
    measures: ClassVar[dict[str, str]] = {
        "answer": "what was answered, counted from 1; 0 for nothing"
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (320, 480, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.kinds = 2**self.puzzle.properties
        self.action_space = spaces.Discrete(len(ANSWERS))
        self.observation_space = self.box(
            0.0, 1.0, ((self.puzzle.premises + 1) * (3 + self.kinds),)
        )
        self.reward_space = self.box(0.0, 1.0)

    def initial(self, key: jax.Array, params: Params) -> AnswerState:
        """Begin without an answer."""
        return AnswerState(jnp.int32(0))

    def transition(
        self, state: AnswerState, action: jax.Array, key: jax.Array, params: Params
    ) -> AnswerState:
        """Give the answer."""
        return AnswerState(action.astype(jnp.int32) + 1)

    def observation(self, state: AnswerState, key: jax.Array, params: Params) -> jax.Array:
        """Return the forms and kinds of all sentences."""
        forms = params.instance.forms[:, None] == np.arange(3)
        return (
            jnp.concatenate([forms, self._about(params.instance)], axis=1)
            .astype(self.dtype)
            .reshape(-1)
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the form and the kinds of each sentence."""
        sentences = [*(f"premise_{i}" for i in range(1, self.puzzle.premises + 1)), "conclusion"]
        form = "what it is about, one-hot: all things, something, the named thing"
        kinds = (
            "which kinds of things it says there is none of, one of, or the named thing is of; bit "
            "p is property p"
        )
        return tuple(
            component
            for name in sentences
            for component in (
                Component(f"{name}_form", form, shape=(3,)),
                Component(f"{name}_kinds", kinds, shape=(self.kinds,)),
            )
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the three answers."""
        says = ("the premises entail the conclusion", "they contradict it", "they do neither")
        return singles(dict(zip(ANSWERS, says, strict=True)))

    def reward(
        self,
        state: AnswerState,
        action: jax.Array,
        next_state: AnswerState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return 1 for the right answer."""
        return ((state.answer == 0) & self._answered_correctly(next_state, params)).astype(
            self.dtype
        )

    def terminal(self, state: AnswerState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether there is an answer."""
        return state.answer > 0

    def info(self, state: AnswerState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the answer is right."""
        return {"success": self._answered_correctly(state, params), "answer": state.answer}

    def _answered_correctly(self, state: AnswerState, params: Params) -> jax.Array:
        return state.answer == self.decision(params.instance) + 1

    def decision(self, instance: Any) -> jax.Array:
        """Return the right answer, a place in ``ANSWERS``."""
        forms, about = instance.forms[:-1, None], self._about(instance)
        premises, conclusion = about[:-1], about[-1]
        form = instance.forms[-1]

        def can_hold(last: jax.Array, form: jax.Array) -> jax.Array:
            possible = ~((forms == ALL) & premises).any(axis=0) & ((form != ALL) | ~last)
            named_kinds = ((forms != SINGULAR) | premises).all(axis=0) & ((form != SINGULAR) | last)
            witnessed = (forms[:, 0] != SOME) | (premises & possible).any(axis=1)
            return (
                (possible & named_kinds).any()
                & witnessed.all()
                & ((form != SOME) | (possible & last).any())
            )

        # "All are" and "some is not" speak of the same kinds: there are none of them, or there are.
        is_named = form == SINGULAR
        false = can_hold(conclusion ^ is_named, jnp.where(is_named, SINGULAR, SOME + ALL - form))
        return jnp.where(~false, 0, jnp.where(~can_hold(conclusion, form), 1, 2))

    def _about(self, instance: Any) -> jax.Array:
        """Return the kinds that each sentence is about: bool ``(premises + 1, kinds)``."""
        first, second, states = (
            self._kinds_with(instance.literals[:, column, None]) for column in range(3)
        )
        return first & second & (states != (instance.forms[:, None] == ALL))

    def _kinds_with(self, literal: jax.Array) -> jax.Array:
        """Return the kinds for which a literal is true; all kinds for 0."""
        shift = jnp.maximum(jnp.abs(literal) - 1, 0).astype(jnp.int32)
        return (literal == 0) | ((np.arange(self.kinds) >> shift & 1 != 0) == (literal > 0))

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: AnswerState, params: Params) -> str:
        """Show the question, and the answer."""
        number = int(state.answer)
        return self.puzzle.question(params.instance) + (
            f"\n\nAnswered: {ANSWERS[number - 1]}" if number else ""
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return f"Answer one of {', '.join(ANSWERS)}."

    def parse(self, text: str, state: AnswerState, params: Params) -> np.ndarray:
        """Read one of the three words.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(parsing.word(text.strip(), ANSWERS), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: AnswerState, params: Params) -> str:
        """Return the word."""
        return ANSWERS[int(action)]

    def why_over(self, state: AnswerState, params: Params, info: dict[str, Any]) -> str:
        """Say whether the answer was right."""
        correct_answer = ANSWERS[int(self.decision(params.instance))]
        answer = ANSWERS[int(state.answer) - 1]
        return (
            f"the answer '{answer}' is right"
            if answer == correct_answer
            else f"the conclusion is {correct_answer}, not {answer}"
        )

    def draw(self, state: AnswerState, params: Params) -> np.ndarray:
        """Draw the sentences, and the answer below."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), PAPER)
        pen, font = ImageDraw.Draw(image), ImageFont.load_default(16)
        lines = [words(sentence) for sentence in sentences_of(params.instance)]
        for number, line in enumerate(lines):
            ends = number == len(lines) - 1
            pen.text((20, 15 + 24 * number + 10 * ends), f"{'Therefore: ' * ends}{line}", INK, font)
        pen.line((20, 18 + 24 * (len(lines) - 1), width - 20, 18 + 24 * (len(lines) - 1)), INK, 1)
        if int(state.answer):
            pen.text((20, height - 35), ANSWERS[int(state.answer) - 1], FILLED, font)
        return np.asarray(image)

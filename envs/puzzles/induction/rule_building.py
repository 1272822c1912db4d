"""rlsuite/RuleInduction-v0, interactive: put the body of a clause together, literal by literal.

=============  =====================================================================================
action         the literal to add, ``Discrete(literals)``, numbered as in
               :func:`.horn_rules.literals`; legal are those that the body has not yet
observation    the relation and the marks of the world, whether it is a graph; the examples (+1, -1,
               0 for a pair not shown); which literals the body has; for each literal, the shares of
               the positive and of the negative examples that the body would still cover with it;
               the same for the body as it is; the fraction of the literals left
reward         change of (share of negative examples not covered - share of positive ones not
               covered); +1 once the rule fits
termination    the rule fits all examples, or it has as many literals as it may have
=============  =====================================================================================

The first part is Youden's index (1950): 0 for a rule that covers the same share of both kinds, such
as one that covers everything or nothing, and 1 only for a rule that fits. It telescopes, so the
best return is 2. A rule that fits is right everywhere, as proven for each instance: see
:mod:`.rule_induction`.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax
from PIL import Image, ImageDraw, ImageFont

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.bank import Bank, bank_of_both_splits

from ..shared import parsing
from ..shared.board import CLUE_PAPER, FILLED, INK, LINE, PAPER
from ..shared.puzzle_task import Params, PuzzleTask
from .horn_rules import (
    OBJECTS,
    SIDE,
    VARIABLES,
    Literal,
    Vocabulary,
    literal_text,
    literals,
    rule_text,
    truths,
)
from .rule_induction import (
    UNSHOWN,
    VOCABULARIES,
    Instance,
    RuleInductionPuzzle,
    describe_examples,
    example_words,
    shown_world,
)

GENERAL = Vocabulary("relation", "marked", "unmarked")
"""Names of predicates in every kind of world."""


class InstanceBits(NamedTuple):
    """The shown parts of an instance, and the cases in which literals are true.

    Pairs of objects are the bits 8 x + y of two words.
    """

    kind: np.ndarray
    """int8: kind of the world."""
    relation: np.ndarray
    """int8 ``(8, 8)``: the relation."""
    marked: np.ndarray
    """int8 ``(8,)``: the marks."""
    examples: np.ndarray
    """int8 ``(num_literals, 3)``: the examples."""
    tables: np.ndarray
    """uint32 ``(literals, cases, 2)``: :func:`.horn_rules.truths`."""
    positive: np.ndarray
    """uint32 ``(2,)``: pairs for which the target is shown to hold."""
    negative: np.ndarray
    """uint32 ``(2,)``: pairs for which it is shown not to hold."""


class RuleState(NamedTuple):
    """A body, and the pairs for which it is true."""

    body: jax.Array
    """uint32: literals of the body, as bits."""
    cases: jax.Array
    """uint32 ``(cases, 2)``: the pairs for which the body is true, as bits.

    Each case is a choice of objects for the other variables.
    """


class RuleInduction(PuzzleTask[RuleState]):
    """The interactive form: add a literal to the body."""

    puzzle: RuleInductionPuzzle
    puzzle_class = RuleInductionPuzzle
    bank_size = 2048
    measures: ClassVar[dict[str, str]] = {
        "covered": "share of the positive examples that the rule covers",
        "excluded": "share of the negative examples that it does not cover",
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (320, 640, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.literals = literals(self.puzzle.fresh)
        count = len(self.literals)
        self.action_space = spaces.Discrete(count)
        low = [0.0] * (SIDE * SIDE + SIDE + 1) + [-1.0] * (SIDE * SIDE) + [0.0] * (3 * count + 3)
        self.observation_space = self.box(low, 1.0)
        self.reward_space = self.box(-1.0, 2.0)

    @cached_property
    def bank(self) -> Bank:
        """Instances as :class:`InstanceBits`."""
        bank = bank_of_both_splits(self.puzzle, self.bank_size)
        fields = bank.instances
        words = [example_words(examples) for examples in fields.examples]
        each = (Instance(*values) for values in zip(*fields, strict=True))
        tables = np.stack([truths(shown_world(instance), self.puzzle.fresh) for instance in each])
        halves = np.array(words, "<u8").view("<u4").reshape(-1, 2, 2)
        instances = InstanceBits(
            kind=fields.kind,
            relation=fields.relation,
            marked=fields.marked,
            examples=fields.examples,
            tables=tables[..., None].view("<u4").astype(np.uint32),
            positive=halves[:, 0].astype(np.uint32),
            negative=halves[:, 1].astype(np.uint32),
        )
        return Bank(instances, bank.plans)

    def initial(self, key: jax.Array, params: Params) -> RuleState:
        """Begin with no literal: the rule covers everything."""
        cases = jnp.full(params.instance.tables.shape[-2:], np.uint32(2**32 - 1))
        return RuleState(jnp.uint32(0), cases)

    def transition(
        self, state: RuleState, action: jax.Array, key: jax.Array, params: Params
    ) -> RuleState:
        """Add a literal."""
        one_hot = (np.arange(len(self.literals)) == action)[:, None, None]
        added = lax.reduce(
            jnp.where(one_hot, params.instance.tables, 0), np.uint32(0), lax.bitwise_or, (0,)
        )
        return RuleState(
            state.body | np.uint32(1) << action.astype(jnp.uint32), state.cases & added
        )

    def observation(self, state: RuleState, key: jax.Array, params: Params) -> jax.Array:
        """Return the world, the examples, the body, each literal's effect, and the literals left.

        The last is the number of literals that may still be added.
        """
        instance = params.instance
        bits = np.arange(32, dtype=np.uint32)
        labels = (
            (word[:, None] >> bits & 1).reshape(-1).astype(self.dtype)
            for word in (instance.positive, instance.negative)
        )
        positive, negative = labels
        in_body = self._literals_in_body(state).astype(self.dtype)
        coverage_with_each = self._coverage(state.cases[None] & instance.tables, params)
        coverage = self._coverage(state.cases[None], params)
        literals_left = (self.puzzle.num_literals - in_body.sum()) / self.puzzle.num_literals
        blocks = (
            *(
                field.astype(self.dtype).reshape(-1)
                for field in (instance.relation, instance.marked, instance.kind)
            ),
            positive - negative,
            in_body,
            *coverage_with_each,
            *coverage,
            literals_left[None],
        )
        return jnp.concatenate(blocks)

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        pairs, per_literal = (SIDE, SIDE), (len(self.literals),)
        return (
            Component(
                "relation",
                "[object, object]: whether the first is related to the second",
                shape=pairs,
            ),
            Component(
                "marked", "whether each object is marked: a woman, a red node", shape=(SIDE,)
            ),
            Component("is_graph", "whether the world is a coloured graph, and not a family"),
            Component(
                "examples",
                "[object, object]: +1 if the target holds, -1 if not, 0 if not shown",
                shape=pairs,
            ),
            Component("body", "whether the body has each literal", shape=per_literal),
            Component(
                "positive_with",
                "share of the positive examples covered with each literal added",
                shape=per_literal,
            ),
            Component(
                "negative_with",
                "share of the negative examples covered with each literal added",
                shape=per_literal,
            ),
            Component("positive", "share of the positive examples that the body covers"),
            Component("negative", "share of the negative examples that the body covers"),
            Component("literals_left", "fraction of the literals that may still be added"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the literals of families and of graphs."""
        return singles(
            {
                literal_text(literal, GENERAL): "add it to the body: "
                + " or ".join(literal_text(literal, vocabulary) for vocabulary in VOCABULARIES)
                for literal in self.literals
            }
        )

    def reward(
        self,
        state: RuleState,
        action: jax.Array,
        next_state: RuleState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return the change of Youden's index, plus 1 for a rule that fits."""
        index, next_index = self._index(state, params), self._index(next_state, params)
        fits = ~self._fits(state, params) & self._fits(next_state, params)
        return next_index - index + fits.astype(self.dtype)

    def terminal(self, state: RuleState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the rule fits, or has the largest allowed length."""
        return self._fits(state, params) | (
            lax.population_count(state.body) >= self.puzzle.num_literals
        )

    def info(self, state: RuleState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the rule fits, so it is right in all worlds."""
        covered, covered_negatives = (
            shares[0] for shares in self._coverage(state.cases[None], params)
        )
        return {
            "success": self._fits(state, params),
            "covered": covered,
            "excluded": 1 - covered_negatives,
        }

    def action_mask(self, state: RuleState, params: Params) -> jax.Array:
        """Return the literals that are not in the body."""
        return ~self._literals_in_body(state)

    def _literals_in_body(self, state: RuleState) -> jax.Array:
        """Return the literals of the body, bool ``(literals,)``."""
        return state.body >> np.arange(len(self.literals), dtype=np.uint32) & 1 != 0

    def _coverage(self, cases: jax.Array, params: Params) -> tuple[jax.Array, jax.Array]:
        """Return the shares of positive and negative examples that some bodies cover.

        The bodies are given by their cases, ``(k, cases, 2)``.
        """
        pairs = lax.reduce(cases, np.uint32(0), lax.bitwise_or, (1,))
        positive, negative = params.instance.positive, params.instance.negative

        def share(examples: jax.Array) -> jax.Array:
            covered, every = _count(pairs & examples), _count(examples)
            return covered.astype(self.dtype) / every.astype(self.dtype)

        return share(positive), share(negative)

    def _index(self, state: RuleState, params: Params) -> jax.Array:
        """Return Youden's index of the body."""
        covered, covered_negatives = self._coverage(state.cases[None], params)
        return (covered - covered_negatives)[0]

    @staticmethod
    def _fits(state: RuleState, params: Params) -> jax.Array:
        pairs = lax.reduce(state.cases, np.uint32(0), lax.bitwise_or, (0,))
        instance = params.instance
        return ((~pairs & instance.positive == 0) & (pairs & instance.negative == 0)).all()

    # -- host side ---------------------------------------------------------------------------------

    def _body(self, state: RuleState) -> list[Literal]:
        """Return the literals, in the order of their numbers."""
        return [
            literal for number, literal in enumerate(self.literals) if int(state.body) >> number & 1
        ]

    def describe(self, state: RuleState, params: Params) -> str:
        """Show the world, the examples and the rule so far."""
        body, covers = self._body(state), self.info(state, params)
        rule = (
            rule_text(body, VOCABULARIES[int(params.instance.kind)])
            if body
            else "target(X,Y) always holds."
        )
        return (
            f"{describe_examples(params.instance)}\n\nThe rule so far: {rule}\nIt covers "
            f"{float(covers['covered']):.0%} of the positive examples and leaves out "
            f"{float(covers['excluded']):.0%} of the negative ones. Literals left: "
            f"{self.puzzle.num_literals - len(body)}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        names = ", ".join(VARIABLES[: 2 + self.puzzle.fresh])
        return (
            "Answer with a literal to add, such as parent(X,Y) or red(X), over the variables "
            f"{names}."
        )

    def parse(self, text: str, state: RuleState, params: Params) -> np.ndarray:
        """Read a literal.

        Raises:
            ValueError: anything else.
        """
        vocabulary = VOCABULARIES[int(params.instance.kind)]
        number = parsing.word(
            text.strip(), [literal_text(literal, vocabulary) for literal in self.literals]
        )
        return np.asarray(number, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: RuleState, params: Params) -> str:
        """Return the literal."""
        return literal_text(self.literals[int(action)], VOCABULARIES[int(params.instance.kind)])

    def why_illegal(self, action: np.ndarray, state: RuleState, params: Params) -> str:
        """Return the only reason there is."""
        literal = literal_text(self.literals[int(action)], VOCABULARIES[int(params.instance.kind)])
        return f"{literal} is in the rule already"

    def why_over(self, state: RuleState, params: Params, info: dict[str, Any]) -> str:
        """Say whether the rule fits or has the largest allowed length."""
        if info["success"]:
            return "the rule fits all examples, and is right in other worlds too"
        return f"the rule has {self.puzzle.num_literals} literals, and does not fit all examples"

    def draw(self, state: RuleState, params: Params) -> np.ndarray:
        """Draw the world on a circle, and the pairs beside it.

        Examples are signs, and the pairs that the rule covers are on blue.
        """
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), PAPER)
        pen, font = ImageDraw.Draw(image), ImageFont.load_default(14)
        world, instance = shown_world(params.instance), params.instance
        middle = height / 2
        angles = 2 * np.pi * np.arange(SIDE) / SIDE
        points = [
            (middle + 120 * math.sin(angle), middle - 120 * math.cos(angle)) for angle in angles
        ]
        for first, second in np.argwhere(world.relation):
            (x, y), (to_x, to_y) = points[first], points[second]
            pen.line((x, y, to_x, to_y), LINE, 2)
            near_x, near_y = x + 0.8 * (to_x - x), y + 0.8 * (to_y - y)
            pen.ellipse((near_x - 4, near_y - 4, near_x + 4, near_y + 4), fill=INK)
        for (x, y), mark, name in zip(points, world.marked, OBJECTS, strict=False):
            pen.ellipse(
                (x - 13, y - 13, x + 13, y + 13), fill="#d55e00" if mark else FILLED, outline=INK
            )
            pen.text((x, y), name, PAPER, font, anchor="mm")
        covered = np.bitwise_or.reduce(np.asarray(state.cases), axis=0)
        side = height // (SIDE + 2)
        matrix_left = width - height + side
        for number in range(SIDE * SIDE):
            row, column = divmod(number, SIDE)
            x, y = matrix_left + column * side, side * (row + 1)
            paper = "#cfe3f1" if covered[number // 32] >> np.uint32(number % 32) & 1 else CLUE_PAPER
            pen.rectangle((x, y, x + side, y + side), fill=paper, outline=LINE)
        for first, second, holds in np.asarray(instance.examples).tolist():
            if holds != UNSHOWN:
                point = matrix_left + (second + 0.5) * side, side * (first + 1.5)
                pen.text(point, "+" if holds else "-", INK, ImageFont.load_default(20), anchor="mm")
        for number in range(SIDE):
            pen.text(
                (matrix_left - side / 2, side * (number + 1.5)),
                OBJECTS[number],
                INK,
                font,
                anchor="mm",
            )
            pen.text(
                (matrix_left + (number + 0.5) * side, side / 2),
                OBJECTS[number],
                INK,
                font,
                anchor="mm",
            )
        return np.asarray(image)


def _count(words: jax.Array) -> jax.Array:
    """Count the bits in sets of two words, axis -1."""
    return lax.population_count(words).sum(axis=-1)

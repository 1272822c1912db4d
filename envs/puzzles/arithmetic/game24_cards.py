"""rlsuite/Game24Cards-v0: write a formula that makes 24 of four pictured cards, token by token.

An ace counts 1, jack, queen and king 11, 12 and 13; suits do not matter. ``tier`` 1 to 3 is the
third of the hands that can make 24, as in :mod:`.game24`. Tier 0 has two cards and any whole number
from 1 to 24 that they make, 222 puzzles in all. The cards of a hand come in any order and have
different suits, and each lies somewhere in its slot.

=============  =====================================================================================
action         the next token: 1 to 13, ``+``, ``-``, ``*``, ``/``, ``(``, ``)``, ``=``,
               ``Discrete(20)``. Legal is a number where a value is due, of a card not used yet; an
               operator after a value, while there are such cards; ``(`` where a value is due, twice
               for four cards, which every formula can do with, and never for two; ``)`` after a
               value, if one is open; ``=`` after the last card, if none is open
observation    by the setting ``observation``. ``"pixels"``: the cards, below them the formula as it
               is, and to its right the target, uint8 ``(64, 156, 3)``. ``"symbols"``: the target /
               24; for each of four slots which of 13 ranks lies there and is not used yet; for each
               of 12 places in the formula which of 20 tokens stands there; then, as numbers v,
               first all as v / (abs(v) + target), then all as whether they are the target: for each
               operator and slot what the formula would be worth with these two at its end, and what
               it is worth as it is. Every open parenthesis counts as closed; where a value is due,
               only the operator before it goes on (``+`` at the start). 0 is what cannot be, or
               divides by zero
reward         1 for ``=`` after a formula that is worth exactly the target
termination    ``=``
=============  =====================================================================================

Numbers never stand side by side, and every formula that is begun can be completed, so that an
episode ends after at most 12 steps. The mask tells the ranks, so a player who should read them from
the picture does without it. The best return is 1.

Source of the task: Points24 and EZPoints of Zhai et al. 2024, arXiv:2405.10292.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice

from ..shared import parsing
from ..shared.puzzle_task import Params, PuzzleTask
from . import running_value
from .card_pictures import (
    BOX_HEIGHT,
    BOX_WIDTH,
    PLAY,
    RANKS,
    SLOT_HEIGHT,
    SLOT_WIDTH,
    SUITS,
    as_rgb,
    boxes,
    cards,
)
from .combine import Instance
from .expression import OPERATORS
from .game24 import CARDS, MAX_CARD, TARGET, Game24Puzzle
from .running_value import Levels, Quotient

TOKENS = (*map(str, range(1, MAX_CARD + 1)), *OPERATORS, "(", ")", "=")
PLUS, OPEN, CLOSE, EQUALS = (TOKENS.index(token) for token in "+()=")
NUMBERS = tuple(map(str, range(1, TARGET + 1)))
"""All targets, as text."""
LENGTH = 12
"""Tokens of the longest formula: four cards, three operators, two pairs of parentheses, and ``=``.
"""
EASY_CARDS = 2
_TOKEN = re.compile(r"[0-9]+|\S")
ZOOM = 4
"""Pixels of :meth:`Game24Cards.draw` for one pixel of the observation, along each axis."""


class Game24CardsPuzzle(Game24Puzzle):
    """The one-shot form: the cards are named."""

    name = "Game24Cards"
    few: ClassVar[dict[float, float]] = {0: 222, **Game24Puzzle.few}
    tiers = (0, 1, 2, 3)
    operands = "the cards' values"
    tier_is = "0 for two cards, else the third of the hands of four cards"

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        if tier == 0:
            self.count = EASY_CARDS

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a hand in any order. Return None for four cards outside the tier."""
        instance = super().compose(dice) if self.tier else _two_card_instance(dice)
        if instance is None or (self.tier and not super().admits(instance)):
            return None
        return instance._replace(
            numbers=np.array(dice.shuffled(instance.numbers.tolist()), np.int16)
        )

    def admits(self, instance: Instance) -> bool:
        """Accept every hand that is composed."""
        return True

    def canonical(self, instance: Instance) -> bytes:
        """Return the cards, sorted, and the target."""
        return super().canonical(instance) + bytes([int(instance.target)])

    def rules(self, target: int) -> str:
        """State the rules."""
        return (
            f"Make {target} from the values of the playing cards below, using each card exactly "
            "once. A counts as 1, J "
            "as 11, Q as 12 and K as 13; suits do not matter. Intermediate results may be "
            "fractions."
        )

    def numbers_text(self, instance: Instance) -> str:
        """Return the cards, each of another suit."""
        return f"Cards: {card_names(instance.numbers.tolist(), SUITS)}"

    def plan(self, instance: Instance) -> list[int]:
        """Return the tokens of a solution."""
        return [TOKENS.index(token) for token in _TOKEN.findall(f"{self.solve(instance)}=")]

    def constants(self) -> Sequence[str]:
        """Return expressions that make the target of some hands."""
        return super().constants() if self.tier else ["6 + 6", "3 * 4", "1 * 12", "13 - 1"]


def _two_card_instance(dice: Dice) -> Instance:
    """Return two cards and one of the targets that they can make."""
    low, high = sorted(dice.between(1, MAX_CARD) for _ in range(EASY_CARDS))
    quotient, remainder = divmod(high, low)
    targets = {low + high, low * high, high - low, 0 if remainder else quotient} & set(
        range(1, TARGET + 1)
    )
    return Instance(
        np.array([low, high], np.int16), np.array(dice.choice(sorted(targets)), np.int16)
    )


def card_names(numbers: Sequence[int], suits: Sequence[str]) -> str:
    """Name the cards in words."""
    return ", ".join(
        f"{RANKS[number - 1]} of {suit}" for number, suit in zip(numbers, suits, strict=False)
    )


def _is_target(value: Quotient, params: Params) -> jax.Array:
    """Return whether a value is the target."""
    top, bottom = value
    return (bottom != 0) & (top == params.instance.target.astype(jnp.int32) * bottom)


class FormulaState(NamedTuple):
    """The cards as they lie, and the formula as far as it is written."""

    numbers: jax.Array
    """int8 ``(4,)``: the cards from the left, 1 to 13; 0 for an empty slot."""
    suits: jax.Array
    """int8 ``(4,)``: places in :data:`.card_pictures.SUITS`."""
    down: jax.Array
    """int8 ``(4,)``: distance of each card from the top of its slot, in pixels."""
    right: jax.Array
    unused: jax.Array
    """bool ``(4,)``: the cards that are not in the formula yet."""
    formula: jax.Array
    """int8 ``(12,)``: tokens, counted from 1; 0 where none is written yet."""
    length: jax.Array
    """int32: number of tokens written."""
    value_due: jax.Array
    """bool: a value is due."""
    pairs: jax.Array
    """int32: parentheses opened so far."""
    open: jax.Array
    """int32: parentheses that are still open."""
    levels: Levels
    """Value of the formula so far."""


class Game24Cards(PuzzleTask[FormulaState]):
    """The interactive form."""

    puzzle: Game24CardsPuzzle
    puzzle_class = Game24CardsPuzzle
    measures: ClassVar[dict[str, str]] = {"unused": "how many cards are not in the formula"}
    picture_shape: ClassVar[tuple[int, int, int]] = (
        (SLOT_HEIGHT + BOX_HEIGHT) * ZOOM, (LENGTH + 1) * BOX_WIDTH * ZOOM, 3
    )  # fmt: skip

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.max_pairs = self.puzzle.count - 2
        self.action_space = spaces.Discrete(len(TOKENS))
        self.in_pixels = card.settings["observation"] == "pixels"
        if self.in_pixels:
            shape = SLOT_HEIGHT + BOX_HEIGHT, (LENGTH + 1) * BOX_WIDTH, 3
            self.observation_space = spaces.Box(0, 255, shape, np.uint8)
        else:
            worth = 1 + len(OPERATORS) * CARDS
            num_entries = 1 + CARDS * MAX_CARD + LENGTH * len(TOKENS) + 2 * worth
            self.observation_space = self.box(-1.0, 1.0, (num_entries,))
        self.reward_space = self.box(0.0, 1.0)

    def initial(self, key: jax.Array, params: Params) -> FormulaState:
        """Begin with the cards, in random suits and places."""
        bits = jax.random.key_data(key)[0]  # a key is random bits enough
        order = np.array(list(permutations(range(len(SUITS)))), np.int8)
        suits = jnp.asarray(order)[(bits >> 24) % np.uint32(len(order))]
        down, right = (
            (bits >> np.arange(start, 24, 6, dtype=np.uint32) & PLAY).astype(jnp.int8)
            for start in (0, 3)
        )
        numbers = jnp.pad(params.instance.numbers.astype(jnp.int8), (0, CARDS - self.puzzle.count))
        none = jnp.int32(0)
        formula = jnp.zeros(LENGTH, jnp.int8)
        worth = running_value.empty_levels()
        return FormulaState(
            numbers,
            suits,
            down,
            right,
            numbers > 0,
            formula,
            none,
            jnp.bool_(True),
            none,
            none,
            worth,
        )

    def transition(
        self, state: FormulaState, action: jax.Array, key: jax.Array, params: Params
    ) -> FormulaState:
        """Write a token."""
        is_number, is_operator = action < MAX_CARD, (action >= PLUS) & (action < OPEN)
        opens, closes = action == OPEN, action == CLOSE
        of_rank = state.unused & (state.numbers == action + 1)
        is_played = of_rank & (jnp.cumsum(of_rank) == 1)  # one of equal cards
        number = (action + 1).astype(jnp.int32), jnp.int32(1)
        levels = state.levels
        cases = (
            (is_number, running_value.write_value(levels, number)),
            (is_operator, running_value.write_operator(levels, action - PLUS)),
            (opens, running_value.open_parenthesis(levels)),
            (closes, running_value.close_parenthesis(levels)),
        )
        for case, case_levels in cases:
            levels = jax.tree.map(
                lambda new, old, case=case: jnp.where(case, new, old), case_levels, levels
            )
        token = (action + 1).astype(jnp.int8)
        return state._replace(
            unused=state.unused & ~is_played,
            formula=jnp.where(np.arange(LENGTH) == state.length, token, state.formula),
            length=state.length + 1,
            value_due=is_operator | opens,
            pairs=state.pairs + opens,
            open=state.open + opens - closes,
            levels=levels,
        )

    def observation(self, state: FormulaState, key: jax.Array, params: Params) -> jax.Array:
        """Return the picture, or the symbols."""
        return self._picture(state, params) if self.in_pixels else self._symbols(state, params)

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        if self.in_pixels:
            picture = (
                "[y, x, channel]: cards, below them the formula, to its right the target; red, "
                "green, blue"
            )
            return (Component("picture", picture, shape=self.observation_space.shape or ()),)
        every = (len(OPERATORS), CARDS)
        more = "the formula with an operator and a card at its end"
        scaled = "v / (abs(v) + target) of the value v of"
        return (
            Component("target", "the number to make", f"{TARGET}"),
            Component(
                "cards",
                "[slot, rank]: which rank lies there and is not used yet, one-hot",
                shape=(CARDS, MAX_CARD),
            ),
            Component(
                "formula", "[place, token]: what is written, one-hot", shape=(LENGTH, len(TOKENS))
            ),
            Component(
                "values_with",
                f"[operator, slot]: {scaled} {more}; 0 where it cannot be",
                shape=every,
            ),
            Component("value", f"{scaled} the formula as it is; 0 where a value is due"),
            Component(
                "reaches_with", f"[operator, slot]: whether {more} is worth the target", shape=every
            ),
            Component("reaches", "whether the formula as it is is worth the target"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the tokens."""
        return singles(
            {
                token: "end the formula" if token == "=" else f"write {token} next"
                for token in TOKENS
            }
        )

    def reward(
        self,
        state: FormulaState,
        action: jax.Array,
        next_state: FormulaState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return 1 for the target."""
        return (self._success(next_state, params) & ~self._is_over(state)).astype(self.dtype)

    def terminal(self, state: FormulaState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether ``=`` is written."""
        return self._is_over(state)

    def info(self, state: FormulaState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: ``=`` is written after a formula that is worth the target."""
        return {
            "success": self._success(state, params),
            "unused": state.unused.sum(dtype=jnp.int32),
        }

    def action_mask(self, state: FormulaState, params: Params) -> jax.Array:
        """Return the tokens that may follow, bool ``(20,)``."""
        cards_left = state.unused.any()
        ranks = (state.unused & (state.numbers == np.arange(1, MAX_CARD + 1)[:, None])).any(axis=1)
        after_value = ~state.value_due & ~self._is_over(state)
        other_tokens = jnp.stack([
            state.value_due & (state.pairs < self.max_pairs),
            after_value & (state.open > 0),
            after_value & (state.open == 0) & ~cards_left,
        ])  # fmt: skip
        operators = jnp.broadcast_to(after_value & cards_left, len(OPERATORS))
        return jnp.concatenate([ranks & state.value_due, operators, other_tokens])

    def _is_over(self, state: FormulaState) -> jax.Array:
        return (state.formula == EQUALS + 1).any()

    def _success(self, state: FormulaState, params: Params) -> jax.Array:
        return self._is_over(state) & _is_target(running_value.value_of(state.levels), params)

    def _symbols(self, state: FormulaState, params: Params) -> jax.Array:
        """Return the observation in symbols; the top of the file lists its entries."""
        levels, target = state.levels, params.instance.target.astype(jnp.int32)
        lying = jnp.where(state.unused, state.numbers, 0)[:, None] == np.arange(
            1, MAX_CARD + 1, dtype=np.int8
        )
        tokens = state.formula[:, None] == np.arange(1, len(TOKENS) + 1, dtype=np.int8)
        operators = jnp.arange(len(OPERATORS), dtype=jnp.int8)[:, None]
        more = running_value.value_with(
            levels, operators, (state.numbers.astype(jnp.int32), jnp.int32(1))
        )
        can_be = (
            state.unused
            & (~state.value_due | (operators == levels.operator[0]))
            & ~self._is_over(state)
        )
        worth = running_value.value_of(levels)
        tops, bottoms = (jnp.append(every, last) for every, last in zip(more, worth, strict=True))
        is_possible = jnp.append(can_be, ~state.value_due) & (bottoms != 0)
        top = (tops * jnp.sign(bottoms)).astype(self.dtype)
        scaled = top / (
            jnp.abs(top) + (target * jnp.abs(bottoms)).astype(self.dtype) + (bottoms == 0)
        )
        blocks = (
            target.astype(self.dtype) / TARGET,
            lying,
            tokens,
            jnp.where(is_possible, scaled, 0),
            is_possible & _is_target((tops, bottoms), params),
        )
        return jnp.concatenate([block.reshape(-1).astype(self.dtype) for block in blocks])

    def _picture(self, state: FormulaState, params: Params) -> jax.Array:
        """Draw the cards, the formula and the target, uint8 ``(64, 156, 3)``."""
        table = jnp.asarray(cards())
        empty = len(table) - 1
        pictures = jnp.where(
            state.numbers > 0, (state.numbers.astype(jnp.int32) - 1) * 4 + state.suits, empty
        )
        tops, lefts = (PLAY - offsets.astype(jnp.int32) for offsets in (state.down, state.right))
        slots = [
            lax.dynamic_slice(
                table,
                (pictures[slot], tops[slot], lefts[slot]),
                (1, SLOT_HEIGHT, SLOT_WIDTH),
            )[0]
            for slot in range(CARDS)
        ]
        strip = jnp.asarray(boxes(TOKENS))[state.formula.astype(jnp.int32)]
        line = strip.swapaxes(0, 1).reshape(BOX_HEIGHT, LENGTH * BOX_WIDTH)
        goal = jnp.asarray(boxes(NUMBERS))[params.instance.target.astype(jnp.int32)]
        margin = jnp.asarray(table[empty, :SLOT_HEIGHT, :BOX_WIDTH])
        rows = (*slots, margin), (line, ~goal)
        return as_rgb(jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows]))

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: FormulaState, params: Params) -> str:
        """Show the rules, the cards and the formula."""
        numbers = params.instance.numbers.tolist()
        suits = [SUITS[suit] for suit in np.asarray(state.suits).tolist()]
        rules = self.puzzle.rules(int(params.instance.target))
        return f"{rules}\n\nCards: {card_names(numbers, suits)}\n\nFormula: {self.text(state)}"

    def text(self, state: FormulaState) -> str:
        """Return the formula as it is."""
        return " ".join(TOKENS[token - 1] for token in np.asarray(state.formula).tolist() if token)

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return f"Answer with the next token of the formula: {', '.join(TOKENS)}. = ends it."

    def parse(self, text: str, state: FormulaState, params: Params) -> np.ndarray:
        """Read a token.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(parsing.word(text.strip(), TOKENS), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: FormulaState, params: Params) -> str:
        """Return the token."""
        return TOKENS[int(action)]

    def why_illegal(self, action: np.ndarray, state: FormulaState, params: Params) -> str:
        """Say where the token may stand."""
        token = int(action)
        value_due = bool(state.value_due)
        if token < MAX_CARD:
            return "no card left has that number" if value_due else "a number cannot follow a value"
        if token == OPEN:
            return (
                f"a formula has at most {self.max_pairs} pairs of parentheses"
                if value_due
                else "( cannot follow a value"
            )
        if value_due:
            return f"{TOKENS[token]} cannot stand where a value is due"
        if token == CLOSE:
            return "no parenthesis is open"
        if token == EQUALS:
            return "= comes last, after every card is used and every parenthesis is closed"
        return "no card is left for a value after it"

    def why_over(self, state: FormulaState, params: Params, info: dict[str, Any]) -> str:
        """Say whether the formula is right or wrong."""
        verb = "makes" if info["success"] else "does not make"
        return f"the formula {verb} {int(params.instance.target)}"

    def draw(self, state: FormulaState, params: Params) -> np.ndarray:
        """Draw the observation in pixels, enlarged."""
        picture = np.asarray(self._picture(*jax.tree.map(jnp.asarray, (state, params))))
        return picture.repeat(ZOOM, axis=0).repeat(ZOOM, axis=1)

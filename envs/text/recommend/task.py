"""Recommend: ask a customer about attributes, each question at a cost, then recommend an item.

Preference elicitation as a sequential decision (Boutilier 2002, AAAI-02, "A POMDP formulation of
preference elicitation problems"). A shop has items with yes/no attributes. A customer likes, does
not mind or dislikes each attribute, and answers truthfully. Customers come from a population of
four types with attitudes of their own: given the type, attributes are independent, so an answer
tells something of the others. Every episode draws items and types anew, and the player sees them.

=============  =====================================================================================
action         ``Discrete(A + I)``: ask about attribute 0..A-1, or recommend item 0..I-1. Masked: an
               attribute that was asked about
observation    ``Box(-1, 1, (2 A + 4 + I + I A + 4 A,))``: whether each attribute was asked about;
               its answer (1 liked, 0, -1 disliked); each type's log posterior less the greatest
               one, in tens of nats, cut at -1; each item's known worth over A; the items'
               attributes, item by item; the mean answer of each type
reward         -0.02 for a question; for a recommendation the item's worth over A, where the worth
               is the number of its attributes that the customer likes less the number that it
               dislikes
termination    an item is recommended
success        no item is worth more to the customer
difficulty     A, from 3 to 10; there are I = 2 A items
context        items, types and customer. The number of attributes of all items together is even for
               train, odd for test
=============  =====================================================================================

**Attitudes.** A type loves, leans to, is cool towards or hates an attribute, each equally likely;
the chances of the three answers are in ``PERCENT``. Types have priors in the ratio of 1, 2 and 4.

**Optimum.** Exact, by dynamic programming over the 4**A sets of answers, up to six attributes: see
``players.py``.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int, IntArray, UInt32Array
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

ATTRIBUTES = (
    "light", "waterproof", "cheap", "colourful", "quiet", "foldable", "fast", "wireless",
    "handmade", "retro",
)  # fmt: skip
ITEMS = (
    "Alvo", "Brisk", "Corda", "Dexil", "Elmo", "Farra", "Gusto", "Hexa", "Indra", "Jolly",
    "Kivo", "Lumo", "Mira", "Nexo", "Orba", "Pavo", "Quill", "Rondo", "Silva", "Tarn",
)  # fmt: skip
TYPES = ("commuter", "student", "collector", "hiker")
ATTITUDES = ("loves", "leans to", "is cool towards", "hates")
ANSWERS = ("like it", "do not mind it", "dislike it")
PERCENT = np.array([[80, 15, 5], [50, 30, 20], [20, 30, 50], [5, 15, 80]])
"""Chances of the answers by attitude, in per cent."""
VALUE = np.array([1, 0, -1], np.int32)
"""Worth of an attribute by answer."""
MIN_ATTRIBUTES = 3
MAX_ATTRIBUTES = len(ATTRIBUTES)
COST = 2
"""Cost of a question in hundredths."""
WEIGHTS = np.array([1, 2, 2, 4], np.int32)
"""Weights of a prior, drawn with equal probability."""
CUMULATED = np.round(np.cumsum(PERCENT, 1)[:, :2] / 100 * 2**32).astype(np.uint32)
MILLINATS = np.round(1000 * np.log(PERCENT / 100)).astype(np.int32)
WEIGHT_MILLINATS = np.round(1000 * np.log(np.maximum(np.arange(5), 1))).astype(np.int32)
SPAN = 10_000
"""Thousandths of a nat over which an observation tells log posteriors."""
NONE = -1
LIKED = (86, 160, 90)
SO_SO = (190, 190, 190)
DISLIKED = (200, 90, 80)
OPEN = (90, 110, 150)
PAPER = (250, 250, 247)
INK = (40, 40, 46)


class Params(NamedTuple):
    """The shop, its customers, and the one who is here.

    A set of attributes has one bit for each, uint32.
    """

    items: UInt32Array
    """Attributes of each item, uint32 ``(I,)``."""
    attitudes: UInt32Array
    """Attributes to which each type has each attitude, uint32 ``(4, 4)``."""
    weights: IntArray
    """Prior of each type, in proportion, int32 ``(4,)``."""
    tastes: UInt32Array
    """Hidden: attributes that get each answer of the customer, uint32 ``(3,)``."""


class State(NamedTuple):
    """Answers so far."""

    answers: UInt32Array
    """Attributes that got each answer, uint32 ``(3,)``."""
    recommended: Int
    """Item that was recommended, int32; -1 before."""


@lru_cache(maxsize=64)
def write_shop(
    count: int,
    items: tuple[int, ...],
    attitudes: tuple[tuple[int, ...], ...],
    weights: tuple[int, ...],
) -> str:
    """Return the lines about items and types of customers, with so many attributes."""

    def list_attributes(attributes: int) -> str:
        return ", ".join(
            name for number, name in enumerate(ATTRIBUTES[:count]) if attributes >> number & 1
        )

    lines = ["The items, and all attributes of each:"]
    lines += [
        f"- {ITEMS[item]}: {list_attributes(attributes) or 'none of all'}"
        for item, attributes in enumerate(items)
    ]
    lines.append("The types of customers:")
    for kind, sets in enumerate(attitudes):
        phrases = [
            f"{ATTITUDES[n]} {list_attributes(attributes)}"
            for n, attributes in enumerate(sets)
            if attributes
        ]
        lines.append(
            f"- {TYPES[kind]} (prior {weights[kind]} in {sum(weights)}): {'; '.join(phrases)}"
        )
    return "\n".join(lines)


def members(sets: Any, count: int) -> Any:
    """Unpack sets into 0 and 1: ``(...)`` to ``(..., count)``, NumPy or JAX."""
    return sets[..., None] >> np.arange(count, dtype=np.uint32) & 1


def pack(flags: jax.Array) -> jax.Array:
    """Pack flags ``(count,)`` into a set."""
    return (flags.astype(jnp.uint32) << np.arange(len(flags), dtype=np.uint32)).sum(
        dtype=jnp.uint32
    )


def size(sets: jax.Array) -> jax.Array:
    """Count the members of sets, int32."""
    return jax.lax.population_count(sets).astype(jnp.int32)


class Recommend(Task[Params, State]):
    """The task; see the module's head for its rules.

    Attributes:
        attributes: number of attributes, A.
        items: number of items, I.
    """

    measures: ClassVar[dict[str, str]] = {
        "known": "attributes asked about",
        "recommended": "1 after a recommendation",
        "regret": "worth of the best item less that of the recommended one, in attributes",
    }
    picture_shape = (320, 420, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = 6.0 if difficulty is None else difficulty
        if not (MIN_ATTRIBUTES <= number <= MAX_ATTRIBUTES and number == int(number)):
            raise ValueError(
                f"A difficulty of {card.id} is the number of attributes, a whole number from "
                f"{MIN_ATTRIBUTES} to {MAX_ATTRIBUTES}; got {difficulty!r}."
            )
        self.attributes = a = int(number)
        self.items = i = 2 * self.attributes
        k = len(TYPES)
        low = np.concatenate([np.zeros(a), -np.ones(a + k + i), np.zeros(i * a), -np.ones(k * a)])
        high = np.concatenate([np.ones(2 * a), np.zeros(k), np.ones(i + i * a + k * a)])
        self.observation_space = self.box(low, high)
        self.action_space = spaces.Discrete(a + i)
        self.reward_space = self.box(-1.0, 1.0, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a shop of the split, a population and a customer."""
        a, i, k = self.attributes, self.items, len(TYPES)
        bits = self.bits(key, i + 2 * k + 2 + a)
        everything = np.uint32(2**a - 1)
        items = bits[:i] & everything
        odd = (size(items).sum() + split) % 2
        items = items.at[0].set(items[0] ^ odd.astype(jnp.uint32))
        first = bits[i : i + k]
        second = bits[i + k : i + 2 * k]
        attitudes = (
            jnp.stack([first & second, first & ~second, ~first & second, ~first & ~second], 1)
            & everything
        )
        twos = bits[i + 2 * k] >> np.arange(0, 2 * k, 2, dtype=np.uint32) & 3
        weights = jnp.asarray(WEIGHTS)[twos.astype(jnp.int32)]
        position = (bits[i + 2 * k + 1] % weights.sum().astype(jnp.uint32)).astype(jnp.int32)
        kind = (jnp.cumsum(weights) <= position).sum(dtype=jnp.int32)
        draws = bits[i + 2 * k + 2 :]
        # Attributes whose draw lies below the chance of the first answer, or of one of the first
        # two.

        def attributes_below(answer: int) -> jax.Array:
            masks = (
                attitudes[kind, n] & pack(draws < CUMULATED[n, answer])
                for n in range(len(ATTITUDES))
            )
            return sum(masks, jnp.uint32(0))

        below = [attributes_below(0), attributes_below(1)]
        tastes = jnp.stack([below[0], below[1] & ~below[0], everything & ~below[1]])
        return Params(items, attitudes, weights, tastes)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Know nothing of the customer."""
        return State(jnp.zeros(len(ANSWERS), jnp.uint32), jnp.int32(NONE))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Hear an answer, or note the recommendation."""
        asks = action < self.attributes
        bit = jnp.where(
            asks, np.uint32(1) << jnp.minimum(action, self.attributes - 1).astype(jnp.uint32), 0
        )
        item = jnp.where(asks, NONE, action - self.attributes)
        return State(state.answers | (params.tastes & bit), item.astype(jnp.int32))

    def worth(self, answers: jax.Array, params: Params) -> jax.Array:
        """Return the worth of each item as far as answers go, int32 ``(I,)``."""
        return size(params.items & answers[0]) - size(params.items & answers[2])

    def evidence(self, state: State, params: Params) -> jax.Array:
        """Return each type's log posterior without a constant, int32 ``(4,)``.

        The unit is a thousandth of a nat.

        Whole numbers, so that their sums do not depend on the order.
        """
        log_posterior = jnp.asarray(WEIGHT_MILLINATS)[params.weights]
        for attitude, row in enumerate(MILLINATS):
            for answer, millinats in enumerate(row):
                log_posterior += millinats * size(
                    params.attitudes[:, attitude] & state.answers[answer]
                )
        return log_posterior

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return answers, log posteriors, known worth and both tables.

        The module's docstring lists them.
        """
        count = self.attributes
        evidence = self.evidence(state, params)
        answers = members(state.answers, count).astype(self.dtype)
        attitudes = members(params.attitudes, count).astype(self.dtype)
        mean = (PERCENT @ VALUE / 100).astype(self.dtype)
        blocks = (
            answers[0] + answers[1] + answers[2],
            answers[0] - answers[2],
            jnp.maximum(evidence - evidence.max(), -SPAN).astype(self.dtype) / SPAN,
            self.worth(state.answers, params).astype(self.dtype) / count,
            members(params.items, count).astype(self.dtype).reshape(-1),
            jnp.where(attitudes[:, 0] + attitudes[:, 3] > 0, mean[0], mean[1]).reshape(-1)
            * (attitudes[:, 0] + attitudes[:, 1] - attitudes[:, 2] - attitudes[:, 3]).reshape(-1),
        )
        return jnp.concatenate(blocks)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        a, i, k = self.attributes, self.items, len(TYPES)
        return (
            Component("asked", "whether each attribute was asked about", shape=(a,)),
            Component(
                "answers", "answer: 1 liked, 0 not minded or not asked, -1 disliked", shape=(a,)
            ),
            Component(
                "evidence",
                "each type's log posterior less the greatest one, in tens of nats",
                shape=(k,),
            ),
            Component(
                "worth", "known worth of each item over the number of attributes", shape=(i,)
            ),
            Component("items", "[item, attribute]: whether the item has it", shape=(i, a)),
            Component("attitudes", "[type, attribute]: mean answer", shape=(k, a)),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List questions, then recommendations."""
        return (
            Component("ask", "ask about the attribute of this number", shape=(self.attributes,)),
            Component(
                "recommend",
                "recommend the item of this number, counted from there on",
                shape=(self.items,),
            ),
        )

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark attributes that were not asked about, and every item: bool ``(A + I,)``."""
        known_attributes = state.answers[0] | state.answers[1] | state.answers[2]
        return jnp.concatenate(
            [members(known_attributes, self.attributes) == 0, jnp.ones(self.items, bool)]
        )

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Repeat the answer."""
        return f"the customer has answered: {self._answer_in_words(int(action), state)}"

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the worth of a recommended item over A, less the cost of a question."""
        ends = (next_state.recommended != NONE) & (state.recommended == NONE)
        item = params.items[jnp.maximum(next_state.recommended, 0)]
        worth = size(item & params.tastes[0]) - size(item & params.tastes[2])
        has_asked = (next_state.answers != state.answers).any()
        cost = jnp.where(has_asked, np.asarray(COST / 100, self.dtype), np.asarray(0, self.dtype))
        return jnp.where(ends, worth.astype(self.dtype) / self.attributes, -cost)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether an item was recommended."""
        return state.recommended != NONE

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, the number of questions, and the regret at the end.

        The regret is the difference to the worth of the best item.
        """
        over = state.recommended != NONE
        worth = self.worth(params.tastes, params)
        regret = jnp.where(over, worth.max() - worth[jnp.maximum(state.recommended, 0)], 0)
        return {
            "success": over & (regret == 0),
            "known": size(state.answers).sum(dtype=jnp.int32),
            "recommended": over.astype(jnp.int32),
            "regret": regret,
        }

    # -- host side: no more than the observation shows, until the end ------------------------------

    def _answer_in_words(self, attribute: int, state: State) -> str:
        """Return an answer in words."""
        return f"{ATTRIBUTES[attribute]}: I {ANSWERS[self._answer(attribute, state)]}"

    def _answer(self, attribute: int, state: State) -> int:
        """Return the answer to an attribute; -1 where it was not asked about."""
        return next(
            (
                answer
                for answer in range(len(ANSWERS))
                if int(state.answers[answer]) >> attribute & 1
            ),
            NONE,
        )

    def describe(self, state: State, params: Params) -> str:
        """Tell items and types, then the answers."""
        answers = [
            self._answer_in_words(n, state)
            for n in range(self.attributes)
            if self._answer(n, state) != NONE
        ]
        items = np.asarray(params.items).tolist()
        attitudes = np.asarray(params.attitudes).tolist()
        weights = np.asarray(params.weights).tolist()
        sheet = write_shop(
            self.attributes, tuple(items), tuple(map(tuple, attitudes)), tuple(weights)
        )
        return f"{sheet}\n\nThe customer says: {'; '.join(answers) or 'nothing yet'}."

    def rules(self) -> str:
        """Return the rules."""
        chances = "; ".join(
            f"one that {attitude} an attribute likes it with {like} %, does not mind it with "
            f"{neither} %, dislikes it with {dislike} %"
            for attitude, (like, neither, dislike) in zip(ATTITUDES, PERCENT, strict=True)
        )
        return (
            f"Ask the customer about an attribute (costs {COST / 100:g}), as often as you like, "
            f"then recommend an item. The recommendation is final and earns 1/{self.attributes} "
            f"for each attribute of the item that the customer likes, less 1/{self.attributes} for "
            f"each that it dislikes. The customer is of one type: {chances}. Asking again is "
            f"refused; after {self.card.horizon} replies the customer leaves."
        )

    def how_to_act(self) -> str:
        """Tell a text player both kinds of replies."""
        return "Answer 'ask ATTRIBUTE' or 'recommend ITEM'."

    @cached_property
    def _commands(self) -> list[str]:
        asks = [f"ask {name}" for name in ATTRIBUTES[: self.attributes]]
        return asks + [f"recommend {name}" for name in ITEMS[: self.items]]

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the reply for an action."""
        return self._commands[int(action)]

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a reply.

        Raises:
            ValueError: the text is none; the message names the nearest one.
        """
        words = " ".join(text.lower().split())
        commands = [command.lower() for command in self._commands]
        if words not in commands:
            raise ValueError(unknown("reply", text, self._commands))
        return np.array(commands.index(words), self.action_space.dtype)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say what the recommended item lacks to the best one."""
        item = ITEMS[int(state.recommended)]
        regret = int(info["regret"])
        if not regret:
            return f"no item is worth more to the customer than {item}"
        items = members(np.asarray(params.items), self.attributes).astype(int)
        tastes = members(np.asarray(params.tastes), self.attributes).astype(int)
        best = int((items @ (tastes[0] - tastes[2])).argmax())
        return f"to the customer {ITEMS[best]} is worth {regret}/{self.attributes} more than {item}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the items, with a row for each item and a column for each attribute.

        An attribute has a colour once it was asked about.
        """
        from PIL import Image, ImageDraw

        height, width, _ = self.picture_shape
        picture = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(picture)
        down = (height - 36) / self.items
        across = (width - 70) / self.attributes
        left, top = 60, 28
        colours = (LIKED, SO_SO, DISLIKED)
        for attribute in range(self.attributes):
            answer = self._answer(attribute, state)
            tone = OPEN if answer == NONE else colours[answer]
            x = left + attribute * across
            pen.text(
                (x + across / 2, 12), ATTRIBUTES[attribute][:9], fill=tone, font_size=9, anchor="mm"
            )
            for item in range(self.items):
                y = top + item * down
                if int(params.items[item]) >> attribute & 1:
                    pen.rectangle((x + 2, y + 2, x + across - 2, y + down - 2), fill=tone)
        for item in range(self.items):
            is_recommended = item == int(state.recommended)
            y = top + (item + 0.5) * down
            pen.text(
                (6, y),
                ITEMS[item],
                fill=LIKED if is_recommended else INK,
                font_size=11,
                anchor="lm",
            )
        return np.asarray(picture)

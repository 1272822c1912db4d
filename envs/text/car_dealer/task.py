"""Haggling for a car by alternating offers, with somebody of unknown limit and temper.

The agent is the buyer or the seller and knows what the car is worth to it. The other side has a
limit of its own; the gap between both is the surplus, z price steps, which a deal shares. Ten
rounds: the agent demands a price, and the other side takes it or names its own next offer.
LMRL-Gym's Car Dealer (Abdulhai et al. 2023, arXiv:2311.18232) is the model for the scene. There a
language model is the buyer and a refusal can pay; here a rule is, and nothing but the surplus pays.

Prices count from the agent's own limit: a price *gives* the agent g steps. The other side opens
with an offer that gives a share k of z, and never gives more than 0.9 z. It leaves at once if a
demand asks for more than z, which would cost it more than the car is worth to it. Its offer in
round t depends on its temper and its firmness (four levels, 0 to 3; k = 0.2 plus 0.05 times the
level):

=============  =====================================================================================
boulware       k + (0.9 - k) (t / 10)**3 of z: concedes late (Faratin et al. 1998,
               doi:10.1016/S0921-8890(98)00029-3)
linear         k + (0.9 - k) (t / 10) of z
conceder       k + (0.9 - k) (t / 10)**(1/3) of z: concedes early
tit for tat    k z and a share (0.4 + 0.1 level) of what the agent's lowest demand lies below the
               greatest one
impatient      as linear, but it leaves in round 2 + level if its offer does not satisfy and is not
               taken
=============  =====================================================================================

Each term is rounded down to whole steps. The other side takes a demand that gives the agent no more
than its own next offer would.

=============  =====================================================================================
action         ``Discrete(Z + 2)``: 0..Z-1 demand a price that gives Z, Z-1, ..., 1 steps; Z take
               the other side's offer; Z+1 walk away. So no deal is at a loss
observation    ``Box(-1, 1, (1 + 10 + 10,))``: fraction of rounds gone; the other side's offers by
               round, in steps over Z, -1 where none yet; the agent's demands likewise
reward         for a deal in round t = 0, 1, ...: 0.95**t times (g / z - 0.5) / 0.4, what the
               agent's share of the surplus lies above one half over the most it can, but at least
               0; else 0
termination    a deal; somebody leaves; ten rounds
success        a deal that gives the agent half of the surplus or more
difficulty     Z, 48, 64 or 96: z is one of 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, up to Z, each
               equally likely
context        z, temper, firmness, and the scene: role, car, prices. Sizes and tempers are equally
               likely on both splits, alone and together, and levels too within 5 %. Of a size and a
               temper, train has two levels of firmness and test the others: the sum of their
               numbers is even for train and odd for test
=============  =====================================================================================

A demand that does not look at the offers is far too much or far too little for most sizes: it ends
the talks, or gets less than half.

**Optimum.** A dynamic programme over all that the agent can believe of the other side: see
``players.py``.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.contexts.numerals import read_integer
from rlbench_suite.core.arrays import Flag, Int, IntArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

from ...shared.alternating_bands import split_bits

ROUNDS = 10
TEMPERS = ("boulware", "linear", "conceder", "tit for tat", "impatient")
TIT_FOR_TAT = TEMPERS.index("tit for tat")
IMPATIENT = TEMPERS.index("impatient")
EXPONENTS = (3.0, 1.0, 1 / 3, 0.0, 1.0)
FIRMNESS = 4
PATIENCE = 2
SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
"""Surpluses, in steps."""
MIN_STEPS = 48
"""Smallest Z: sizes must differ so much that no demand suits many of them."""
EVEN_SHARE = 0.5
"""Share of the surplus from which a deal pays."""
MAX_SHARE = 0.9
"""Largest share of the surplus."""
DISCOUNT = 0.95
STEP = 500
"""Price step in dollars."""
COLOURS = ("red", "blue", "green", "white", "black", "silver", "yellow", "brown")
CARS = ("hatchback", "estate", "saloon", "coupe", "convertible", "pickup", "minivan", "roadster")
NONE = -1
THEIR_COLOUR = (90, 110, 150)
YOUR_COLOUR = (200, 90, 80)
DEAL_COLOUR = (86, 160, 90)
PAPER = (250, 250, 247)
INK = (40, 40, 46)


class Params(NamedTuple):
    """The other side, hidden, and the scene; int32."""

    surplus: Int
    """Price steps between both limits, z."""
    temper: Int
    """Index in ``TEMPERS``."""
    firmness: Int
    """0 to 3."""
    sells: Int
    """1 if the agent sells, 0 if it buys."""
    limit: Int
    """Worth of the car to the agent, in dollars."""
    car: Int
    """Colour and kind of the car, 0 to 63."""


class State(NamedTuple):
    """Offers so far, in steps that they give the agent."""

    round: Int
    """Rounds gone, int32."""
    offers: IntArray
    """The other side's offer at each round, int32 ``(10,)``; -1 where none yet."""
    demands: IntArray
    """The agent's demand in each round, int32 ``(10,)``; -1 where none yet."""
    gain: Int
    """Gain of the agent by the deal, in steps, int32; -1 without one."""
    other_left: Flag
    """True if the other side has left, bool."""
    walked: Flag
    """True if the agent has walked away, bool."""


def sizes(steps: int) -> tuple[int, ...]:
    """Return the surpluses up to Z."""
    return tuple(size for size in SIZES if size <= steps)


def worth(gain: Any, surplus: Any) -> Any:
    """Return the pay of a deal that gives the agent ``gain`` steps, before the discount.

    The arguments are Python numbers, or arrays of NumPy or JAX.
    """
    beyond_even = (gain / surplus - EVEN_SHARE) / (MAX_SHARE - EVEN_SHARE)
    return beyond_even * (beyond_even > 0)


def offer_table(steps: int) -> np.ndarray:
    """Return the offers of the other side, int32.

    The axes are ``(tempers, firmness, surplus, round, lowest demand)``.

    Args:
        steps: Z; the last axis and the one of surpluses count from 0 to Z, that of rounds from 0 to
            10.
    """
    firmness, surplus, time, lowest = np.meshgrid(
        np.arange(FIRMNESS),
        np.arange(steps + 1),
        np.arange(ROUNDS + 1),
        np.arange(steps + 1),
        indexing="ij",
    )
    tiny = 1e-9
    opening = 0.2 + 0.05 * firmness
    cap = np.floor(0.9 * surplus + tiny)
    offers = [
        np.floor(surplus * (opening + (0.9 - opening) * (time / ROUNDS) ** exponent) + tiny)
        for exponent in EXPONENTS
    ]
    matched = np.floor((0.4 + 0.1 * firmness) * (steps - lowest) + tiny)
    offers[TIT_FOR_TAT] = np.floor(surplus * opening + tiny) + matched
    return np.minimum(offers, cap).astype(np.int32)


def leaves(temper: Any, firmness: Any, time: Any) -> Any:
    """Return whether the other side leaves at the start of a round if there is no deal.

    The arguments are arrays of NumPy or JAX.
    """
    return (temper == IMPATIENT) & (time > PATIENCE + firmness) | (time >= ROUNDS)


class CarDealer(Task[Params, State]):
    """The task; see the module's head for its rules.

    Attributes:
        steps: most steps that a price can give, Z.
        table: see :func:`offer_table`.
    """

    measures: ClassVar[dict[str, str]] = {
        "rounds": "rounds gone",
        "deal": "1 if there is a deal",
        "left": "1 if the other side has left, or time is up",
        "walked": "1 if the agent has walked away",
        "share": "the agent's share of the surplus, in a deal",
    }
    picture_shape = (260, 420, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = 64.0 if difficulty is None else difficulty
        allowed = [size for size in SIZES if size >= MIN_STEPS]
        if number not in allowed:
            raise ValueError(
                f"A difficulty of {card.id} is the number of price steps, one of "
                f"{', '.join(map(str, allowed))}; got {difficulty!r}."
            )
        self.steps = int(number)
        self.table = offer_table(self.steps)
        self.observation_space = self.box(np.r_[0.0, np.full(2 * ROUNDS, -1.0)], 1.0)
        self.action_space = spaces.Discrete(self.steps + 2)
        self.reward_space = self.box(0.0, 1.0, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw the other side and the scene."""
        bits = split_bits(self.bits(key, 5), split)
        choices = sizes(self.steps)
        size, temper, limit, car, pair = (
            (bits[number] % np.uint32(count)).astype(jnp.int32)
            for number, count in enumerate(
                (len(choices), len(TEMPERS), 81, 2 * len(COLOURS) * len(CARS), FIRMNESS // 2)
            )
        )
        firmness = (2 * pair + (size + temper + split) % 2).astype(jnp.int32)
        return Params(
            jnp.asarray(choices, jnp.int32)[size],
            temper,
            firmness,
            car & 1,
            20_000 + STEP * limit,
            car >> 1,
        )

    def _offer(self, params: Params, time: jax.Array, lowest: jax.Array) -> jax.Array:
        return jnp.asarray(self.table)[params.temper, params.firmness, params.surplus, time, lowest]

    def initial(self, key: jax.Array, params: Params) -> State:
        """Let the other side open."""
        nothing = jnp.full(ROUNDS, NONE, jnp.int32)
        first = self._offer(params, jnp.int32(0), jnp.int32(self.steps))
        never = jnp.bool_(False)
        return State(jnp.int32(0), nothing.at[0].set(first), nothing, jnp.int32(NONE), never, never)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make a demand, which the other side takes or answers; or take its offer; or walk away."""
        accepts = action == self.steps
        walks = action > self.steps
        demand = jnp.where(action < self.steps, self.steps - action, NONE).astype(jnp.int32)
        here = np.arange(ROUNDS) == state.round
        demands = jnp.where(here, demand, state.demands)
        lowest = jnp.where(demands >= 0, demands, self.steps).min()
        time = state.round + 1
        offer = self._offer(params, time, lowest)
        accepted = ~accepts & ~walks & (demand <= offer)
        standing = jnp.where(here, state.offers, 0).sum(dtype=jnp.int32)
        gain = jnp.where(accepts, standing, jnp.where(accepted, demand, NONE)).astype(jnp.int32)
        goes_on = ~accepts & ~walks & ~accepted
        other_leaves = goes_on & (
            leaves(params.temper, params.firmness, time) | (demand > params.surplus)
        )
        offers = jnp.where(
            (np.arange(ROUNDS) == time) & goes_on & ~other_leaves, offer, state.offers
        )
        return State(time, offers, demands, gain, other_leaves, walks)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return time, offers and demands; see the module's docstring."""
        steps = jnp.concatenate([state.offers, state.demands])
        shares = jnp.where(steps == NONE, -1, steps.astype(self.dtype) / self.steps)
        return jnp.concatenate([(state.round.astype(self.dtype) / ROUNDS)[None], shares])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            Component("time", "fraction of the rounds that are gone"),
            Component(
                "offers",
                "steps over Z that the other side's offer of each round gives; -1: none",
                shape=(ROUNDS,),
            ),
            Component(
                "demands",
                "steps over Z that the agent demanded in each round; -1: none",
                shape=(ROUNDS,),
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List demands, greatest first, then taking the offer and walking away."""
        return (
            Component(
                "demand",
                "demand a price that gives Z less this number of steps",
                shape=(self.steps,),
            ),
            Component("accept", "take the other side's offer"),
            Component("walk_away", "end the talks without a deal"),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the discounted worth of a deal."""
        gain = jnp.where(state.gain == NONE, jnp.maximum(next_state.gain, 0), 0)
        discount = jnp.asarray(DISCOUNT ** np.arange(ROUNDS + 1), self.dtype)[state.round]
        return (
            worth(gain.astype(self.dtype), params.surplus.astype(self.dtype)).astype(self.dtype)
            * discount
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether there is a deal, or somebody has left."""
        return (state.gain != NONE) | state.other_left | state.walked

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures; nothing that is hidden before the end."""
        deal = state.gain != NONE
        share = jnp.maximum(state.gain, 0).astype(self.dtype) / params.surplus.astype(self.dtype)
        return {
            "success": deal & (2 * state.gain >= params.surplus),
            "rounds": state.round,
            "deal": deal.astype(jnp.int32),
            "left": state.other_left.astype(jnp.int32),
            "walked": state.walked.astype(jnp.int32),
            "share": share,
        }

    # -- host side: no more than the observation shows, until the end ------------------------------

    def price(self, gain: int, params: Params) -> int:
        """Return the price in dollars that gives the agent this many steps."""
        return int(params.limit) + (STEP if int(params.sells) else -STEP) * gain

    def _car(self, params: Params) -> str:
        number = int(params.car)
        return f"{COLOURS[number // len(CARS)]} {CARS[number % len(CARS)]}"

    def describe(self, state: State, params: Params) -> str:
        """Tell the scene, then what was said."""
        worth = f"is worth ${int(params.limit)} to you"
        role = (
            f"You {'sell' if int(params.sells) else 'want to buy'} a {self._car(params)}, which "
            f"{worth}."
        )
        lines = []
        for number, (offer, demand) in enumerate(zip(state.offers, state.demands, strict=True)):
            if int(offer) != NONE:
                lines.append(
                    f"Round {number + 1}: the other side offers ${self.price(int(offer), params)}."
                )
            if int(demand) != NONE:
                lines[-1] += f" You offered ${self.price(int(demand), params)}."
        return role + "\n\n" + "\n".join(lines)

    def describe_turn(self, before: State | None, state: State, params: Params) -> str:
        """Tell the scene at first, then the other side's newest offer."""
        if before is None:
            return self.describe(state, params)
        return self.describe(state, params).rpartition("\n")[2]

    def rules(self) -> str:
        """Return the rules."""
        return (
            "You haggle over a car. There are prices at which both sides gain: your limit and the "
            "other side's, which "
            f"you do not know, are {', '.join(map(str, sizes(self.steps)))} steps of ${STEP} "
            "apart. "
            f"In each of {ROUNDS} rounds, name a price, take the other side's last offer, or walk "
            "away. "
            "The other side takes your price or makes its next offer. Some give in early, some "
            "late, some "
            "match what you concede, some leave when they lose patience. All leave at once "
            "if you ask for more than the gap between both limits.\n"
            "A deal earns what your share of the gap lies above one half, 0 at one half or less, 1 "
            "at nine tenths, "
            f"times {DISCOUNT:g} for every round before. No deal earns nothing."
        )

    def how_to_act(self) -> str:
        """Tell a text player the three kinds of replies."""
        return "Answer 'offer PRICE', 'accept' or 'walk away'."

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the reply for an action."""
        number = int(action)
        if number < self.steps:
            return f"offer {self.price(self.steps - number, params)}"
        return "accept" if number == self.steps else "walk away"

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a reply.

        Raises:
            ValueError: the text is none, or names a price that is not on the grid.
        """
        words = " ".join(text.lower().split()).rstrip(".!")
        kind, _, price_text = words.partition(" ")
        if words in ("accept", "walk away"):
            action = self.steps + (words == "walk away")
        elif kind == "offer":
            dollars = read_integer(price_text.removeprefix("$").replace(",", ""))
            lowest, highest = sorted((self.price(1, params), self.price(self.steps, params)))
            gain, off = divmod(abs(dollars - int(params.limit)), STEP)
            if off or not lowest <= dollars <= highest:
                between = f"{lowest} to {highest}"
                raise ValueError(
                    f"a price you may offer is {between} in steps of {STEP}; got {dollars}"
                )
            action = self.steps - gain
        else:
            raise ValueError(unknown("reply", text, ("offer PRICE", "accept", "walk away")))
        return np.array(action, self.action_space.dtype)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how the talks ended, and the other side's limit."""
        limit = f"its limit was ${self.price(int(params.surplus), params)}"
        if int(state.gain) != NONE:
            price = self.price(int(state.gain), params)
            share = float(info["share"])
            return (
                f"there is a deal at ${price}, which gives you {share:.0%} of the surplus ({limit})"
            )
        if bool(state.walked):
            return f"you walked away ({limit})"
        if int(state.round) >= ROUNDS:
            return f"time is up ({limit})"
        return f"the other side has left ({limit})"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw offers and demands over the rounds; a deal is a line."""
        from PIL import Image, ImageDraw

        height, width, _ = self.picture_shape
        picture = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(picture)
        left, bottom = 70, height - 30
        across = (width - 90) / (ROUNDS - 1)
        up = (height - 60) / self.steps
        for gain in range(0, self.steps + 1, self.steps // 8):
            y = bottom - gain * up
            pen.line((left, y, width - 20, y), fill=(225, 225, 225))
            pen.text(
                (left - 8, y), str(self.price(gain, params)), fill=INK, font_size=11, anchor="rm"
            )
        for values, colour in ((state.offers, THEIR_COLOUR), (state.demands, YOUR_COLOUR)):
            points = [
                (left + t * across, bottom - int(g) * up)
                for t, g in enumerate(values)
                if int(g) != NONE
            ]
            if len(points) > 1:
                pen.line(points, fill=colour, width=2)
            for x, y in points:
                pen.ellipse((x - 4, y - 4, x + 4, y + 4), fill=colour)
        if int(state.gain) != NONE:
            y = bottom - int(state.gain) * up
            pen.line((left, y, width - 20, y), fill=DEAL_COLOUR, width=3)
        pen.text((left, height - 14), "the other side's offers", fill=THEIR_COLOUR, font_size=11)
        pen.text((left + 180, height - 14), "your offers", fill=YOUR_COLOUR, font_size=11)
        return np.asarray(picture)

"""Quote prices around the mid price, and earn the spread without a large inventory.

A dealer posts a bid and an ask for one unit each, anew in every step. The model is that of
Avellaneda & Stoikov 2008 (doi:10.1080/14697680701381228), in their discrete steps: a quote at the
distance d from the mid price is filled with probability min(1, A exp(-k d) dt). Then the mid price
moves by +-sigma sqrt(dt), with equal chance. Their dealer maximises exponential utility. This one
is paid the profit, and pays for the variance of what it holds as in Cartea, Jaimungal & Penalva
2015 (Algorithmic and High-Frequency Trading, chapter 10). So the sum of rewards is a certainty
equivalent of the session, and the optimum is known.

A step goes as follows:

1. quote: ask at price + d_ask and bid at price - d_bid, for one unit each. At the limit of the
   inventory the quote that would break it is withdrawn;
2. fills: each quote is filled or not, by a chance of its own;
3. price: the mid price moves, and with it the value of the inventory;
4. risk: the penalty gamma sigma^2 q^2 / 2 dt of the inventory q is charged.

=============  =====================================================================================
action         ``Box(-1, 1, (2,))``: distances of ask and bid from the mid price, d = 3 + 4 action,
               in money; 1 is so far away that a quote is hardly ever filled
observation    ``Box((6,))``: inventory (of 20 units), time left, volatility (of 2.5), arrival rate
               A (of 180), decay k (of 2), risk aversion gamma (of 3)
reward         d_ask for a unit sold, d_bid for a unit bought, the inventory's change of value, and
               minus the penalty of risk; money
termination    never: the session is over after 200 steps, and inventory is worth the mid price
success        profit minus risk so far is at least 0.6 of 2 A / (e k) for each unit of time, which
               is what a dealer without aversion to risk expects
context        volatility sigma 1.5..2.5 money per square root of time, in alternating bands;
               arrival rate A 100..180 a unit of time; decay k 1..2 per money; risk aversion gamma
               1..3 per money. All are observed. A session is one unit of time
=============  =====================================================================================

The paper's own setting is sigma 2, A 140, k 1.5 and gamma 0.1, where the best constant quote
already earns nine tenths of the optimum. Dealers here are more averse to risk, so that a quote must
follow the inventory.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float, FloatArray, Int
from rlbench_suite.core.component import Component, scaled_component
from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands

STEPS = 200
"""Steps of a session."""
STEP_TIME = 1 / STEPS
"""Duration of a step; a session is one unit of time."""
MAX_INVENTORY = 20
"""Largest number of units held or owed. The optimal dealer hardly ever has ten."""
START_PRICE = 100.0
"""Mid price at the start, money."""
MIDDLE_DISTANCE, DISTANCE_RANGE = 3.0, 4.0
"""Distance of the action 0 from the mid price, and of the action 1 from that, money."""
VOLATILITY = (1.5, 2.5)
"""Money per square root of time."""
ARRIVAL_RATE = (100.0, 180.0)
"""Fills of a quote at the mid price, per unit of time."""
DECAY = (1.0, 2.0)
"""Decay of the fills with the distance of a quote, per money."""
RISK_AVERSION = (1.0, 3.0)
"""Per money."""
MIN_SHARE_OF_RISKLESS = 0.6
"""Smallest certainty equivalent of a session with success, by what the riskless dealer expects."""
ITERATIONS = 6
"""Rounds in which the two best quotes of a step are fitted to each other.

Each is a function of the other's chance, with a slope of about 0.1.
"""


class Params(NamedTuple):
    """The market and the dealer."""

    volatility: Float
    """Money per square root of time"""
    arrival_rate: Float
    """Per unit of time"""
    decay: Float
    """Per money"""
    risk_aversion: Float
    """Per money"""


class State(NamedTuple):
    """Price, inventory and the books so far."""

    price: Float
    """Mid price, money"""
    inventory: Int
    """Units held; negative: owed"""
    profit: Float
    """Cash and inventory at the mid price, money"""
    risk: Float
    """Sum of the penalties of risk, money"""
    gain: Float
    """Reward of the last step, money"""
    steps: Int


class MarketMaking(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "profit": "cash and inventory at the mid price, money",
        "risk": "sum of the penalties of risk, money",
        "inventory": "units held, negative: owed",
    }
    picture_shape = (240, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box([-1, 0, 0, 0, 0, 0], np.ones(6))
        self.action_space = self.box(-1.0, 1.0, (2,))
        move = MAX_INVENTORY * VOLATILITY[1] * math.sqrt(STEP_TIME)
        variance = VOLATILITY[1] ** 2 * MAX_INVENTORY**2 * STEP_TIME
        widest = MIDDLE_DISTANCE + DISTANCE_RANGE
        narrowest = MIDDLE_DISTANCE - DISTANCE_RANGE
        self.reward_space = self.box(
            np.floor(2 * narrowest - move - 0.5 * RISK_AVERSION[1] * variance),
            np.ceil(2 * widest + move),
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample volatility in the bands of the split, and the others alike for both splits."""
        unit = self.uniform(key, 4)
        return Params(
            alternating_bands(unit[0], split, *VOLATILITY, bands=20),
            _between(unit[1], ARRIVAL_RATE),
            _between(unit[2], DECAY),
            _between(unit[3], RISK_AVERSION),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start without inventory."""
        zero = jnp.zeros((), self.dtype)
        return State(
            jnp.asarray(START_PRICE, self.dtype), jnp.int32(0), zero, zero, zero, jnp.int32(0)
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Play a step: quote, fills, price, risk."""
        unit = self.uniform(key, 3)
        ask = MIDDLE_DISTANCE + DISTANCE_RANGE * action[0]
        bid = MIDDLE_DISTANCE + DISTANCE_RANGE * action[1]
        sold = (unit[0] < fill_chance(ask, params)) & (state.inventory > -MAX_INVENTORY)
        bought = (unit[1] < fill_chance(bid, params)) & (state.inventory < MAX_INVENTORY)
        inventory = state.inventory + bought.astype(jnp.int32) - sold.astype(jnp.int32)
        size = params.volatility * math.sqrt(STEP_TIME)
        move = jnp.where(unit[2] < 0.5, -size, size)
        spread = jnp.where(sold, ask, 0) + jnp.where(bought, bid, 0)
        earned = spread + inventory.astype(self.dtype) * move
        risk = risk_penalty(inventory.astype(self.dtype), params)
        return State(
            state.price + move,
            inventory,
            state.profit + earned,
            state.risk + risk,
            earned - risk,
            state.steps + 1,
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return inventory, time left and the market, ``(6,)``; see the table."""
        return self.stack(
            state.inventory * (1 / MAX_INVENTORY),
            jnp.maximum(STEPS - state.steps, 0) * STEP_TIME,
            params.volatility * (1 / VOLATILITY[1]),
            params.arrival_rate * (1 / ARRIVAL_RATE[1]),
            params.decay * (1 / DECAY[1]),
            params.risk_aversion * (1 / RISK_AVERSION[1]),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            scaled_component("inventory", "units held; negative: owed", MAX_INVENTORY, "units"),
            Component("time_left", "until the session ends", "session"),
            scaled_component(
                "volatility", "volatility of the mid price", VOLATILITY[1], "money/sqrt(session)"
            ),
            scaled_component(
                "arrival_rate", "fills of a quote at the mid price", ARRIVAL_RATE[1], "1/session"
            ),
            scaled_component(
                "decay", "decay of fills with the distance of a quote", DECAY[1], "1/money"
            ),
            scaled_component("risk_aversion", "aversion to risk", RISK_AVERSION[1], "1/money"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the distances of the two quotes."""
        meaning = f"from the mid price, less {MIDDLE_DISTANCE:g} money"
        return (
            scaled_component("ask", f"distance of the ask {meaning}", DISTANCE_RANGE, "money"),
            scaled_component("bid", f"distance of the bid {meaning}", DISTANCE_RANGE, "money"),
        )

    def noop_action(self) -> np.ndarray:
        """Return quotes so far away that hardly any is filled."""
        return np.ones(2, self.dtype)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return profit minus risk of the step."""
        return next_state.gain

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends a session."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        expected = riskless_rate(params) * (state.steps * STEP_TIME)
        equivalent = state.profit - state.risk
        return {
            "success": (equivalent >= MIN_SHARE_OF_RISKLESS * expected) & (state.steps > 0),
            "profit": state.profit,
            "risk": state.risk,
            "inventory": state.inventory.astype(self.dtype),
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with two numbers from -1 to 1, ask first: a quote lies "
            f"{MIDDLE_DISTANCE:g} + {DISTANCE_RANGE:g} times its number from the mid price."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe the books and the market."""
        return (
            f"Step {int(state.steps)} of {STEPS}, mid price {float(state.price):.3f}. Inventory "
            f"{int(state.inventory)} units, profit {float(state.profit):.2f}, risk charged "
            f"{float(state.risk):.2f}.\n"
            f"Volatility {float(params.volatility):.4f} a session. A quote d from the mid price "
            f"is filled {float(params.arrival_rate):.2f} exp(-{float(params.decay):.4f} d) times "
            f"a session. Inventory q costs {float(params.risk_aversion):.4f} volatility^2 q^2 / 2 "
            "a session."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the inventory as a bar from the middle, profit and risk as bars, and time left."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        middle = width / 2
        expected = float(riskless_rate(params))
        bars = (
            ("inventory", int(state.inventory) / MAX_INVENTORY, "cornflowerblue"),
            ("profit", float(state.profit) / expected, "green"),
            ("risk", -float(state.risk) / expected, "firebrick"),
            ("time left", 1 - int(state.steps) / STEPS, "gray"),
        )
        for row, (name, share, colour) in enumerate(bars):
            top = 20 + row * 54
            end = middle + max(-1.0, min(1.0, share)) * (middle - 10)
            canvas.text((10, top - 14), name, fill="black")
            canvas.rectangle((min(middle, end), top, max(middle, end), top + 24), fill=colour)
        canvas.line((middle, 0, middle, height), fill="black")
        return np.asarray(image)


def _between(unit: Float, ends: tuple[float, float]) -> Float:
    """Map a number in [0, 1) to a range."""
    low, high = ends
    return low + (high - low) * unit


def fill_chance(distance: Float, params: Params) -> Float:
    """Return the chance that a quote at a distance from the mid price is filled in a step."""
    rate = params.arrival_rate * jnp.exp(-params.decay * distance)
    return jnp.minimum(rate * STEP_TIME, 1)


def risk_penalty(inventory: Float, params: Params) -> Float:
    """Return the penalty of an inventory for a step, money."""
    deviation = params.volatility * inventory
    return (0.5 * STEP_TIME) * params.risk_aversion * (deviation * deviation)


def riskless_rate(params: Params) -> Float:
    """Return the expected profit of the best quotes without aversion to risk, per unit of time.

    They lie 1 / k from the mid price.
    """
    return 2 * math.exp(-1) * params.arrival_rate / params.decay


class Quotes(NamedTuple):
    """Distances of the quotes from the mid price, money, and their chances to be filled."""

    ask: Float
    bid: Float
    ask_chance: Float
    bid_chance: Float


def best_quotes(values: FloatArray, inventory: Any, params: Params) -> Quotes:
    """Return the quotes that maximise the expected value of a step.

    Args:
        values: value of each inventory from -20 to 20 after the fills of the step, ``(41,)``.
        inventory: inventories before the fills, int32 of any shape.
        params: market and dealer.
    """
    index = inventory + MAX_INVENTORY
    may_sell = inventory > -MAX_INVENTORY
    may_buy = inventory < MAX_INVENTORY
    value = values[index]
    loss_sold = value - values[jnp.maximum(index - 1, 0)]
    loss_bought = value - values[jnp.minimum(index + 1, 2 * MAX_INVENTORY)]
    joint_loss = loss_sold + loss_bought
    # A quote below this distance is filled at any rate.
    nearest = jnp.maximum(
        jnp.log(params.arrival_rate * STEP_TIME) / params.decay, MIDDLE_DISTANCE - DISTANCE_RANGE
    )
    farthest = MIDDLE_DISTANCE + DISTANCE_RANGE
    bid_chance = jnp.zeros_like(value)
    for _ in range(ITERATIONS):
        # A fill of the other quote pays for the loss of this one, with its chance.
        ask = jnp.clip(1 / params.decay + loss_sold - bid_chance * joint_loss, nearest, farthest)
        ask_chance = jnp.where(may_sell, fill_chance(ask, params), 0)
        bid = jnp.clip(1 / params.decay + loss_bought - ask_chance * joint_loss, nearest, farthest)
        bid_chance = jnp.where(may_buy, fill_chance(bid, params), 0)
    return Quotes(ask, bid, ask_chance, bid_chance)


def values_before(values: FloatArray, params: Params) -> FloatArray:
    """Return the value of each inventory before a step with the best quotes, ``(41,)``.

    Args:
        values: value of each inventory after the fills of the step, ``(41,)``.
        params: market and dealer.
    """
    inventory = jnp.arange(-MAX_INVENTORY, MAX_INVENTORY + 1)
    ask, bid, ask_chance, bid_chance = best_quotes(values, inventory, params)
    sold_value = values[jnp.maximum(inventory + MAX_INVENTORY - 1, 0)]
    bought_value = values[jnp.minimum(inventory + MAX_INVENTORY + 1, 2 * MAX_INVENTORY)]
    gain_sold = ask + sold_value - values
    gain_bought = bid + bought_value - values
    curvature = 2 * values - sold_value - bought_value  # two fills leave the inventory as it was
    fills = ask_chance * gain_sold + bid_chance * gain_bought
    return values + fills + ask_chance * bid_chance * curvature


def value_tables(params: Params) -> tuple[FloatArray, FloatArray]:
    """Return the values of each inventory by the exact dynamic programme.

    The first are those before each step, the second those after its fills: ``(200, 41)`` each.
    """
    risk = risk_penalty(jnp.arange(-MAX_INVENTORY, MAX_INVENTORY + 1), params)

    def step_back(value: FloatArray, _: None) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
        after_fills = value - risk
        before = values_before(after_fills, params)
        return before, (before, after_fills)

    _, tables = jax.lax.scan(step_back, jnp.zeros_like(risk), None, STEPS, reverse=True)
    return tables


def to_action(ask: Float, bid: Float) -> jax.Array:
    """Return the action that quotes at these distances, or as near as may be, ``(2,)``."""
    action = (jnp.stack([ask, bid]) - MIDDLE_DISTANCE) * (1 / DISTANCE_RANGE)
    return jnp.clip(action, -1, 1)


@privileged_player
class OptimalQuotes(NamedTuple):
    """Quotes of the exact dynamic programme over time and inventory.

    In continuous time it is the solution of Gueant, Lehalle & Fernandez-Tapia 2013
    (doi:10.1007/s11579-012-0087-0), a distance of 1 / k plus the loss of value by a fill. It reads
    from the params only what is observed.
    """

    @classmethod
    def for_task(cls, task: MarketMaking) -> OptimalQuotes:
        """Return the player."""
        return cls()

    def initial(self, params: Params) -> FloatArray:
        """Return the values of inventories after the fills of each step, ``(200, 41)``."""
        return value_tables(params)[1]

    def act(self, memory: FloatArray, view: View, key: jax.Array) -> tuple[jax.Array, FloatArray]:
        """Return the action ``(2,)``, and the values."""
        values = memory[jnp.minimum(view.state.steps, STEPS - 1)]
        quotes = best_quotes(values, view.state.inventory, view.params)
        return to_action(quotes.ask, quotes.bid), memory


class ReservationQuotes(eqx.Module):
    """Closed-form quotes of Avellaneda & Stoikov 2008.

    They lie (gamma sigma^2 tau + 2 / gamma ln(1 + gamma / k)) / 2 around the reservation price,
    which is the mid price less q gamma sigma^2 tau, with tau the time left.
    """

    @classmethod
    def for_task(cls, task: MarketMaking) -> ReservationQuotes:
        """Return the player."""
        return cls()

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action ``(2,)`` from the observation."""
        inventory, time_left, volatility, _, decay, risk_aversion = view.observation
        gamma = RISK_AVERSION[1] * risk_aversion
        sigma = VOLATILITY[1] * volatility
        k = DECAY[1] * decay
        variance = gamma * sigma * sigma * time_left
        half_spread = 0.5 * variance + jnp.log(1 + gamma / k) / gamma
        shift = MAX_INVENTORY * inventory * variance
        return to_action(half_spread - shift, half_spread + shift), memory

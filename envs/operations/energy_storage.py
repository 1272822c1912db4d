"""Charge a battery while electricity is cheap, and discharge it while it is dear.

A battery trades at the price of each hour for a week. It is too small to move the price. The price
has a daily shape, which is known, and deviations from it, which are not: a chain that returns to
its mean (the urns of Ehrenfest & Ehrenfest 1907, whose limit is the process of Ornstein and
Uhlenbeck), and hours of scarcity. An hour goes as follows:

1. trade: the price of the hour is known. Charging a MWh buys 1 / efficiency MWh, discharging one
   sells as much as the efficiency. Either wears the battery, by money a MWh;
2. price: the urns move by one ball or stay, scarcity begins or ends, and the next hour comes.

=============  =====================================================================================
action         ``Box(-1, 1, (1,))``: energy stored (above 0) or taken out in the hour, MWh, as far
               as the battery has room or charge. Its rate is 1 MW
observation    ``Box((19,))``: battery, price, hour, time left and market; the components list them
reward         money earned in the hour less wear, in parts of the capacity times the standard
               deviation of the price over all hours
termination    never: the week is over after 168 hours, and what is still stored is worth nothing
success        the rewards so far are at least 0.5 for each day
context        mean price 40..80 EUR/MWh, in alternating bands; amplitudes of a daily wave 0.1..0.4
               and a half-daily one 0..0.3, in parts of the mean; efficiency one way 0.85..0.97;
               wear 0..8 EUR/MWh; capacity 2, 3, ..., 6 MWh; hour at the start; all are observed
difficulty     easy: the price has its daily shape and nothing else; medium: deviations of standard
               deviation 0.1..0.4 of the mean; hard: also scarcity, which begins with chance
               0.01..0.03 an hour, adds 2..6 times the mean price and ends with chance 0.3 an hour
=============  =====================================================================================

Batteries that take prices as given are valued in this way in Sioshansi et al. 2009
(doi:10.1016/j.eneco.2008.10.005), with foresight, and by dynamic programmes over a chain of prices
in Mokrian & Stephen 2006. With foresight the best week is a linear programme. Without it, it is a
dynamic programme, which is exact here: the capacity is a whole number of hours at full rate, and
so the value of stored energy is piecewise linear between whole MWh.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Flag, Float, FloatArray, Int
from rlbench_suite.core.component import Component, scaled_component
from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from .inventory import ordered_sum

HOURS = 168
"""Steps of a week."""
DAY = 24
CAPACITIES = (2, 6)
"""Smallest and largest capacity, MWh: hours of full rate."""
MEAN_PRICE = (40.0, 80.0)
"""EUR/MWh"""
DAILY = (0.1, 0.4)
"""Amplitude of the daily wave, in parts of the mean price. It is lowest at 4 h."""
HALF_DAILY = (0.0, 0.3)
"""Amplitude of the half-daily wave, likewise. It is highest at 8 h and 20 h."""
DEVIATION = (0.1, 0.4)
"""Standard deviation of the urns, in parts of the mean price."""
PREMIUM = (2.0, 6.0)
"""Price that scarcity adds, in parts of the mean price."""
SCARCITY_CHANCE = (0.01, 0.03)
"""Chance an hour that scarcity begins."""
SCARCITY_END = 0.3
"""Chance an hour that it ends."""
EFFICIENCY = (0.85, 0.97)
"""Efficiencies of charging and of discharging."""
WEAR = (0.0, 8.0)
"""EUR a MWh charged or discharged."""
BALLS = 16
"""Balls in two urns; one of them holds 8 on average, with a standard deviation of 2."""
MOVE_CHANCE = 0.9
"""Chance an hour that a ball is drawn, each with equal chance, and changes its urn."""
PRICE_UNIT = 100.0
"""EUR/MWh that the observation shows as 1."""
MIN_DAILY_REWARD = 0.5
"""Smallest reward a day of an episode with success."""
HIGHEST_PRICE = MEAN_PRICE[1] * (1 + DAILY[1] + HALF_DAILY[1] + 4 * DEVIATION[1] + PREMIUM[1])
LOWEST_PRICE = MEAN_PRICE[1] * (1 - DAILY[1] - HALF_DAILY[1] - 4 * DEVIATION[1])
"""Bounds of the price, EUR/MWh; negative prices happen."""


class Params(NamedTuple):
    """The market and the battery."""

    mean_price: Float
    """EUR/MWh"""
    daily: Float
    half_daily: Float
    deviation: Float
    """In parts of the mean price, as the two before; 0 if there are no deviations"""
    premium: Float
    """Likewise; 0 if there is no scarcity"""
    scarcity_chance: Float
    """An hour"""
    efficiency: Float
    """One way"""
    wear: Float
    """EUR/MWh"""
    capacity: Float
    """MWh, a whole number"""
    first_hour: Int
    """Hour of the day at the start"""


class State(NamedTuple):
    """Battery, price and the books so far."""

    stored: Float
    """MWh"""
    balls: Int
    """In the first urn, 0 to 16"""
    scarcity: Flag
    profit: Float
    """EUR so far"""
    gain: Float
    """EUR of the last hour"""
    hours: Int


class EnergyStorage(Task[Params, State]):
    """The task of this file's docstring."""

    period = 3600.0
    measures: ClassVar[dict[str, str]] = {
        "profit": "money earned so far, less wear, EUR",
        "price": "price of a MWh in this hour, EUR",
        "stored": "energy in the battery, MWh",
    }
    picture_shape = (240, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in (0, 1, 2):
            raise ValueError(
                f"The difficulty of {card.id} is 0 (the daily shape only), 1 (deviations) or 2 "
                f"(scarcity, too), got {difficulty!r}."
            )
        self.has_deviations = difficulty != 0
        self.has_scarcity = difficulty == 2
        low = np.zeros(19)
        low[[2, 4, 6, 7, 8, 9]] = LOWEST_PRICE / PRICE_UNIT, -1, -1, -1, -1, -1
        high = np.ones(19)
        high[2] = HIGHEST_PRICE / PRICE_UNIT
        self.observation_space = self.box(low, high)
        self.action_space = self.box(-1.0, 1.0, (1,))
        dearest = HIGHEST_PRICE / EFFICIENCY[0] + WEAR[1]
        least_swing = MEAN_PRICE[0] * DAILY[0] * math.sqrt(0.5)
        largest = math.ceil(dearest / (least_swing * CAPACITIES[0]))
        self.reward_space = self.box(-largest, largest)

    # -- an episode --------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the mean price in the bands of the split, and the others alike for both splits."""
        unit = self.uniform(key, 10)
        smallest, largest = CAPACITIES
        return Params(
            alternating_bands(unit[0], split, *MEAN_PRICE, bands=20),
            _between(unit[1], DAILY),
            _between(unit[2], HALF_DAILY),
            _between(unit[3], DEVIATION) * self.has_deviations,
            _between(unit[4], PREMIUM) * self.has_scarcity,
            _between(unit[5], SCARCITY_CHANCE) * self.has_scarcity,
            _between(unit[6], EFFICIENCY),
            _between(unit[7], WEAR),
            smallest + jnp.floor((largest + 1 - smallest) * unit[8]),
            jnp.floor(DAY * unit[9]).astype(jnp.int32),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample the charge and the balls; scarcity does not rule at the start."""
        unit = self.uniform(key, 1 + BALLS)
        balls = ordered_sum([(unit[1 + i] < 0.5).astype(jnp.int32) for i in range(BALLS)])
        zero = jnp.zeros((), self.dtype)
        return State(
            params.capacity * unit[0],
            balls if self.has_deviations else jnp.int32(BALLS // 2),
            jnp.bool_(False),
            zero,
            zero,
            jnp.int32(0),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Play an hour: trade, then the next price."""
        unit = self.uniform(key, 2)
        change = feasible_change(action[0], state.stored, params)
        gain = earnings(change, price_of(state, params), params)
        up, down = ball_chances(state.balls.astype(self.dtype))
        step = (unit[0] < up).astype(jnp.int32) - (unit[0] >= 1 - down).astype(jnp.int32)
        begins = unit[1] < params.scarcity_chance
        return State(
            jnp.clip(state.stored + change, 0, params.capacity),
            state.balls + step if self.has_deviations else state.balls,
            jnp.where(state.scarcity, unit[1] >= SCARCITY_END, begins),
            state.profit + gain,
            gain,
            state.hours + 1,
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return battery, price, time and market, ``(19,)``; see the components."""
        angle = hour_angle(params, state.hours)
        return self.stack(
            state.stored * (1 / CAPACITIES[1]),
            params.capacity * (1 / CAPACITIES[1]),
            price_of(state, params) * (1 / PRICE_UNIT),
            params.mean_price * (1 / PRICE_UNIT),
            (state.balls - BALLS // 2) * (2 / BALLS),
            state.scarcity,
            jnp.sin(angle),
            jnp.cos(angle),
            jnp.sin(2 * angle),
            jnp.cos(2 * angle),
            jnp.maximum(HOURS - state.hours, 0) * (1 / HOURS),
            params.daily,
            params.half_daily,
            params.deviation,
            params.premium * (1 / PREMIUM[1]),
            params.scarcity_chance * (1 / SCARCITY_CHANCE[1]),
            params.efficiency,
            params.wear * (1 / WEAR[1]),
            swing(params) * (1 / (2 * PRICE_UNIT)),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            scaled_component("stored", "energy in the battery", CAPACITIES[1], "MWh"),
            scaled_component("capacity", "energy of a full battery", CAPACITIES[1], "MWh"),
            scaled_component("price", "price of this hour", PRICE_UNIT, "EUR/MWh"),
            scaled_component("mean_price", "mean over hours of the shape", PRICE_UNIT, "EUR/MWh"),
            Component("balls", "deviation of the price, of 4 standard deviations"),
            Component("scarcity", "1 in hours of scarcity, else 0"),
            Component("hour_sine", "sine of the hour of the day"),
            Component("hour_cosine", "cosine of the hour of the day"),
            Component("half_day_sine", "sine of twice the angle of the hour"),
            Component("half_day_cosine", "cosine of twice the angle of the hour"),
            Component("time_left", "part of the week that is still to come", f"{HOURS} h"),
            Component("daily", "amplitude of the daily wave", "mean price"),
            Component("half_daily", "amplitude of the half-daily wave", "mean price"),
            Component("deviation", "standard deviation of the deviations", "mean price"),
            Component("premium", "price that scarcity adds", f"{PREMIUM[1]:g} mean prices"),
            scaled_component(
                "scarcity_chance", "chance that scarcity begins", SCARCITY_CHANCE[1], "1/h"
            ),
            Component("efficiency", "energy stored by energy bought, or sold by energy taken out"),
            scaled_component("wear", "cost of a MWh charged or discharged", WEAR[1], "EUR/MWh"),
            scaled_component(
                "swing", "standard deviation of the price over all hours", 2 * PRICE_UNIT, "EUR/MWh"
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the entry of an action."""
        return (Component("charge", "energy stored in the hour; negative: taken out", "MWh"),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the money earned, in parts of the capacity times the swing of the price."""
        return next_state.gain / (params.capacity * swing(params))

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        enough = (MIN_DAILY_REWARD / DAY) * state.hours * (params.capacity * swing(params))
        return {
            "success": (state.profit >= enough) & (state.hours > 0),
            "profit": state.profit,
            "price": price_of(state, params),
            "stored": state.stored,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return "Answer with a number from -1 to 1: MWh to store in this hour, or to take out."

    def describe(self, state: State, params: Params) -> str:
        """Describe battery, price and market."""
        hour = (int(params.first_hour) + int(state.hours)) % DAY
        mean = float(params.mean_price)
        scarce = "Electricity is scarce. " if bool(state.scarcity) else ""
        shape = ", ".join(
            f"{float(shape_of(hour_angle(params, state.hours + ahead), params)) * mean:.1f}"
            for ahead in range(DAY)
        )
        return (
            f"Hour {int(state.hours)} of {HOURS}, {hour} o'clock. The price is "
            f"{float(price_of(state, params)):.2f} EUR/MWh. {scarce}The battery holds "
            f"{float(state.stored):.3f} of {float(params.capacity):.0f} MWh; profit so far "
            f"{float(state.profit):.2f} EUR.\n"
            f"The price without deviation, from this hour on: {shape}. Deviations have a standard "
            f"deviation of {float(params.deviation) * mean:.2f}; now it is "
            f"{(int(state.balls) - BALLS // 2) / 2:+.1f} of them. Scarcity begins with chance "
            f"{float(params.scarcity_chance):.4f} an hour, ends with chance {SCARCITY_END:g} and "
            f"adds {float(params.premium) * mean:.1f}.\n"
            f"Efficiency one way is {float(params.efficiency):.4f}, and a MWh charged or "
            f"discharged costs {float(params.wear):.3f} of wear."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the battery, the shape of the coming day as a line and the price as a dot."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        filled = float(state.stored) / float(params.capacity)
        canvas.rectangle((20, 20, 80, height - 20), outline="black")
        canvas.rectangle((22, height - 22 - filled * (height - 44), 78, height - 22), fill="green")
        mean = float(params.mean_price)

        def row(price: float) -> float:
            return height - 20 - max(0.0, min(1.0, price / (3 * mean))) * (height - 40)

        shape = [
            float(shape_of(hour_angle(params, state.hours + ahead), params)) * mean
            for ahead in range(DAY)
        ]
        points = [(110 + 8 * ahead, row(price)) for ahead, price in enumerate(shape)]
        canvas.line(points, fill="cornflowerblue", width=2)
        dot = row(float(price_of(state, params)))
        colour = "firebrick" if bool(state.scarcity) else "black"
        canvas.ellipse((105, dot - 5, 115, dot + 5), fill=colour)
        return np.asarray(image)


def _between(unit: Float, ends: tuple[float, float]) -> Float:
    """Map a number in [0, 1) to a range."""
    low, high = ends
    return low + (high - low) * unit


# -- the rules -------------------------------------------------------------------------------------


def hour_angle(params: Params, hours: Int) -> Float:
    """Return the angle of the hour of the day, rad; 0 at midnight."""
    hour = jnp.remainder(params.first_hour + hours, DAY).astype(params.mean_price.dtype)
    return hour * (2 * math.pi / DAY)


def shape_of(angle: Float, params: Params) -> Float:
    """Return the price of an hour without deviation, in parts of the mean price."""
    daily = params.daily * jnp.cos(angle - 4 * 2 * math.pi / DAY)
    half_daily = params.half_daily * jnp.cos(2 * (angle - 8 * 2 * math.pi / DAY))
    return 1 - daily + half_daily


def price_at(hours: Int, balls: Any, scarcity: Any, params: Params) -> Float:
    """Return the price of an hour, EUR/MWh."""
    level = (balls - BALLS // 2) * 0.5
    deviations = params.deviation * level + jnp.where(scarcity, params.premium, 0)
    return params.mean_price * (shape_of(hour_angle(params, hours), params) + deviations)


def price_of(state: State, params: Params) -> Float:
    """Return the present price, EUR/MWh."""
    return price_at(state.hours, state.balls, state.scarcity, params)


def swing(params: Params) -> Float:
    """Return the standard deviation of the price over all hours, EUR/MWh."""
    waves = 0.5 * (params.daily * params.daily + params.half_daily * params.half_daily)
    often = params.scarcity_chance / (params.scarcity_chance + SCARCITY_END)
    scarce = often * (1 - often) * (params.premium * params.premium)
    return params.mean_price * jnp.sqrt(waves + params.deviation * params.deviation + scarce)


def feasible_change(wish: Float, stored: Float, params: Params) -> Float:
    """Return the energy that is stored when ``wish`` was to be, MWh."""
    return jnp.clip(wish, -stored, params.capacity - stored)


def earnings(change: Float, price: Float, params: Params) -> Float:
    """Return the money that a change of the stored energy earns, less wear, EUR."""
    bought = jnp.maximum(change, 0) / params.efficiency
    sold = jnp.maximum(-change, 0) * params.efficiency
    return price * (sold - bought) - params.wear * jnp.abs(change)


def ball_chances(balls: Float) -> tuple[Float, Float]:
    """Return the chances an hour that the first urn gets a ball, and that it loses one."""
    fullness = balls * (1 / BALLS)
    return MOVE_CHANCE * (1 - fullness), MOVE_CHANCE * fullness


# -- players ---------------------------------------------------------------------------------------


def value_tables(params: Params) -> tuple[FloatArray, FloatArray]:
    """Return the best expected earnings by the exact dynamic programme, EUR.

    The first are those from the beginning of each hour on, the second those after its trade:
    ``(168, 7, 17, 2)`` each, by whole MWh, balls and scarcity. Entries above the capacity mean
    nothing.
    """
    largest = CAPACITIES[1]
    level = jnp.arange(largest + 1.0)[:, None, None]
    balls = jnp.arange(BALLS + 1)[None, :, None]
    scarcity = jnp.array([False, True])
    up, down = ball_chances(balls.astype(params.mean_price.dtype))

    def expectation(values: FloatArray) -> FloatArray:
        """Return the expected value of the next hour, by the present balls and scarcity."""
        more = jnp.concatenate([values[:, 1:], values[:, -1:]], 1)
        fewer = jnp.concatenate([values[:, :1], values[:, :-1]], 1)
        moved = values + (up * (more - values) + down * (fewer - values))
        values = jnp.where(params.deviation > 0, moved, values)
        calm, scarce = values[..., 0], values[..., 1]
        difference = scarce - calm
        return jnp.stack(
            [calm + params.scarcity_chance * difference, scarce - SCARCITY_END * difference], -1
        )

    def step_back(values: FloatArray, hours: Int) -> tuple[FloatArray, Any]:
        after = expectation(values)
        price = price_at(hours, balls, scarcity, params)
        fuller = jnp.concatenate([after[1:], after[-1:]])
        emptier = jnp.concatenate([after[:1], after[:-1]])
        charge = jnp.where(
            level + 1 <= params.capacity, fuller + earnings(1.0, price, params), after
        )
        discharge = jnp.where(level >= 1, emptier + earnings(-1.0, price, params), after)
        before = jnp.maximum(after, jnp.maximum(charge, discharge))
        return before, (before, after)

    end = jnp.zeros((largest + 1, BALLS + 1, 2), params.mean_price.dtype)
    _, tables = jax.lax.scan(step_back, end, jnp.arange(HOURS), reverse=True)
    return tables


@privileged_player
class BestTrades(NamedTuple):
    """Trades of the exact dynamic programme. It reads from the params only what is observed."""

    @classmethod
    def for_task(cls, task: EnergyStorage) -> BestTrades:
        """Return the player."""
        return cls()

    def initial(self, params: Params) -> FloatArray:
        """Return the values after the trade of each hour, ``(168, 7, 17, 2)``."""
        return value_tables(params)[1]

    def act(self, memory: FloatArray, view: View, key: jax.Array) -> tuple[jax.Array, FloatArray]:
        """Return the best change of the stored energy, ``(1,)``, and the values."""
        state, params = view.state, view.params
        hour = jnp.minimum(state.hours, HOURS - 1)
        values = memory[hour, :, state.balls, state.scarcity.astype(jnp.int32)]
        price = price_of(state, params)
        stored = state.stored
        floor = jnp.floor(stored)
        # The value is piecewise linear, so that the best level is one of these.
        changes = [0 * stored, floor - stored, floor + 1 - stored, 0 * stored - 1, 0 * stored + 1]
        feasible = [feasible_change(change, stored, params) for change in changes]
        totals = []
        for change in feasible:
            goal = stored + change
            below = jnp.clip(jnp.floor(goal).astype(jnp.int32), 0, CAPACITIES[1] - 1)
            slope = values[below + 1] - values[below]
            value = values[below] + (goal - below.astype(stored.dtype)) * slope
            totals.append(earnings(change, price, params) + value)
        best = jnp.argmax(jnp.stack(totals))
        return jnp.stack(feasible)[best][None], memory


class Thresholds(eqx.Module):
    """Trades that pay against the mean price: stored energy is worth just that, after losses."""

    @classmethod
    def for_task(cls, task: EnergyStorage) -> Thresholds:
        """Return the player."""
        return cls()

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return 1, 0 or -1 MWh, from the observation."""
        price, mean_price = PRICE_UNIT * view.observation[2], PRICE_UNIT * view.observation[3]
        efficiency, wear = view.observation[16], WEAR[1] * view.observation[17]
        buys = price / efficiency + wear < mean_price
        sells = price * efficiency - wear > mean_price
        change = buys.astype(price.dtype) - sells.astype(price.dtype)
        return change[None], memory

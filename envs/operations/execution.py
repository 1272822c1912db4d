"""Sell an order over a day, against its impact on the price, the risk of waiting, and a forecast.

The model is that of Almgren & Chriss 2000 (doi:10.21314/JOR.2001.041), with linear impact and a
drift (their section 4.1). Shares are counted in parts of the order, time in parts of the day, and
prices in basis points (bp) of the price at the start. In each of N = 32 steps of tau = 1 / N:

1. trade: n shares are sold at price - eta n / tau, with the temporary impact eta. Then x are left;
2. price: it falls by gamma n, the permanent impact, and moves by alpha tau +- sigma sqrt(tau), with
   drift alpha and volatility sigma;
3. risk: the penalty lambda sigma^2 x^2 tau of the shares left is charged.

So a step costs eta n^2 / tau + gamma n x - x (move of the price) + lambda sigma^2 x^2 tau. The
costs add up to the implementation shortfall plus lambda times its variance, which the paper
minimises.

A desk without an opinion sells at an even pace (TWAP), and is judged against one that does. So the
reward is what such an order would have cost in this step, in the same moves of the price, less what
this one costs. That changes no decision, and takes out most of the noise.

=============  =====================================================================================
action         ``Box(-1, 1, (1,))``: pace, as a power of 6: 0 sells an even part of what is left, 1
               sells 6 times as much, -1 sells 1/6 of it. The last step sells the rest
observation    ``Box((7,))``: part of the order that is left, time left, logarithm of
               lambda sigma^2 / eta (of log 36), drift (of 4 eta), permanent impact (of eta),
               volatility (of 150 bp), aversion to risk (of 0.08 / bp)
reward         cost of the even pace in this step less that of the order, in parts of lambda
               sigma^2, which is the penalty of holding the whole order all day
termination    never: the last step sells what is left
success        the order is sold, and apart from the noise of the price it saved at least half of
               what the best schedule saves
context        urgency sqrt(lambda sigma^2 / (eta - gamma tau / 2)), 0.5..6, uniform in its
               logarithm, in alternating bands; volatility sigma 50..150 bp per square root of a
               day; lambda sigma 2..4; permanent impact 0..1 of eta - gamma tau / 2; drift up to 0.9
               of that with which the best schedule would wait for the end, or buy, either way
=============  =====================================================================================

The best schedule is known in closed form (:func:`best_holding`). With the forecast it sells later
or earlier than evenly, without it earlier the more urgent the order is. No schedule that is fixed
beforehand fits all orders.
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
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands

STEPS = 32
STEP_TIME = 1 / STEPS
"""Days."""
LOG_PACE = math.log(6)
"""Logarithm of the pace of the action 1."""
URGENCY = (0.5, 6.0)
"""Range of the urgency, a day. Its inverse is the time in which an order without drift shrinks."""
VOLATILITY = (50.0, 150.0)
"""bp per square root of a day"""
RISK_PER_VOLATILITY = (2.0, 4.0)
"""Range of lambda sigma: aversion to risk, in parts of 1 / sigma."""
MAX_PERMANENT = 1.0
"""Largest permanent impact, in parts of eta - gamma tau / 2."""
MAX_DRIFT_SHARE = 0.9
"""Largest drift, by that with which the best schedule waits or buys."""
MAX_RISK_AVERSION = RISK_PER_VOLATILITY[1] / VOLATILITY[0]
"""Per bp"""
DRIFT_SCALE = 4.0
"""Drift that the observation shows as 1, in parts of eta."""
MIN_SAVED_SHARE = 0.5
"""Smallest saving of an order with success, in parts of the best one."""


class Params(NamedTuple):
    """The market, the trader and the forecast; all but the last are observed."""

    volatility: Float
    """sigma, bp per square root of a day"""
    risk_aversion: Float
    """lambda, per bp"""
    temporary: Float
    """eta: bp by which an order that is sold evenly lowers its own price"""
    permanent: Float
    """gamma: bp by which the whole order lowers the price for good"""
    drift: Float
    """alpha, bp a day"""
    best_saving: Float
    """Expected return of the best schedule, which ``success`` compares with"""


class State(NamedTuple):
    """The order and its books so far."""

    left: Float
    """Part of the order that is left"""
    price: Float
    """bp above the price at the start"""
    shortfall: Float
    """Loss of the shares sold so far and of those left at the present price, bp"""
    risk: Float
    """Sum of the penalties of risk, bp"""
    saving: Float
    """Sum of the rewards without the noise of the price"""
    gain: Float
    """Reward of the last step"""
    steps: Int


class StepCost(NamedTuple):
    """Cost of a step, bp."""

    impact: Float
    """Temporary and permanent"""
    move: Float
    """Loss of the shares left by the random move of the price"""
    drift: Float
    """Loss of the shares left by the drift"""
    risk: Float
    """Penalty"""

    @property
    def shortfall(self) -> Float:
        """Addition of the step to the implementation shortfall, bp."""
        return self.impact + self.move + self.drift


class Execution(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "left": "part of the order that is left",
        "shortfall": "implementation shortfall so far, bp",
        "risk": "sum of the penalties of risk, bp",
    }
    picture_shape = (240, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box([0, 0, -1, -1, 0, 0, 0], np.ones(7))
        self.action_space = self.box(-1.0, 1.0, (1,))
        # Parts of lambda sigma^2. At the lowest urgency the impact is largest.
        impact = (1 + MAX_PERMANENT) / URGENCY[0] ** 2
        drift = 2 * MAX_DRIFT_SHARE / (math.cosh(URGENCY[0]) - 1) * STEP_TIME
        move = math.sqrt(STEP_TIME) / RISK_PER_VOLATILITY[0]
        gain = math.ceil(impact * STEP_TIME + drift + move + STEP_TIME)
        self.reward_space = self.box(-math.ceil(impact * STEPS) - gain, gain)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample urgency in the bands of the split, and the others alike for both splits."""
        unit = self.uniform(key, 5)
        low, high = (math.log(end) for end in URGENCY)
        urgency = jnp.exp(alternating_bands(unit[0], split, low, high, bands=20))
        volatility = _between(unit[1], VOLATILITY)
        risk_aversion = _between(unit[2], RISK_PER_VOLATILITY) / volatility
        risk = risk_aversion * volatility * volatility
        net_impact = risk / (urgency * urgency)
        permanent = MAX_PERMANENT * net_impact * unit[3]
        share = MAX_DRIFT_SHARE * (2 * unit[4] - 1)
        params = Params(
            volatility,
            risk_aversion,
            net_impact + (0.5 * STEP_TIME) * permanent,
            permanent,
            2 * risk * share / (jnp.cosh(urgency) - 1),
            jnp.zeros((), self.dtype),
        )
        return params._replace(best_saving=expected_saving_of_best(params))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start with the whole order."""
        zero = jnp.zeros((), self.dtype)
        return State(jnp.ones((), self.dtype), zero, zero, zero, zero, zero, jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Play a step: trade, price, risk."""
        remaining = jnp.maximum(STEPS - state.steps, 1)
        share = jnp.minimum(jnp.exp(LOG_PACE * action[0]) / remaining.astype(self.dtype), 1)
        sold = jnp.where(remaining == 1, state.left, state.left * share)
        left = jnp.where(remaining == 1, 0, state.left - sold).astype(self.dtype)
        size = params.volatility * math.sqrt(STEP_TIME)
        noise = jnp.where(self.uniform(key, 1)[0] < 0.5, -size, size)
        cost = step_cost(sold, left, noise, params)
        even_left = (remaining - 1).astype(self.dtype) * STEP_TIME
        even = step_cost(jnp.asarray(STEP_TIME, self.dtype), even_left, noise, params)
        unit = 1 / holding_penalty(params)
        saving = (even.impact - cost.impact) + (even.drift - cost.drift) + (even.risk - cost.risk)
        move = params.drift * STEP_TIME - params.permanent * sold
        return State(
            left,
            state.price + move + noise,
            state.shortfall + cost.shortfall,
            state.risk + cost.risk,
            state.saving + saving * unit,
            (saving + (even.move - cost.move)) * unit,
            state.steps + 1,
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the order and the market, ``(7,)``; see the table."""
        return self.stack(
            state.left,
            jnp.maximum(STEPS - state.steps, 0) * STEP_TIME,
            jnp.log(holding_penalty(params) / params.temporary) * (1 / _LOG_URGENCY_SCALE),
            params.drift / (DRIFT_SCALE * params.temporary),
            params.permanent / params.temporary * (1 / MAX_PERMANENT),
            params.volatility * (1 / VOLATILITY[1]),
            params.risk_aversion * (1 / MAX_RISK_AVERSION),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            Component("left", "part of the order that is left", "order"),
            Component("time_left", "until all has to be sold", "day"),
            scaled_component(
                "log_urgency", "logarithm of lambda sigma^2 / eta", _LOG_URGENCY_SCALE, "nats"
            ),
            scaled_component("drift", "forecast move of the price a day", DRIFT_SCALE, "eta"),
            scaled_component("permanent", "permanent impact of the order", MAX_PERMANENT, "eta"),
            scaled_component(
                "volatility", "volatility of the price", VOLATILITY[1], "bp/sqrt(day)"
            ),
            scaled_component("risk_aversion", "aversion to risk", MAX_RISK_AVERSION, "1/bp"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the pace."""
        return (
            scaled_component(
                "pace", "logarithm of the pace, by an even one from here on", LOG_PACE, "nats"
            ),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return what an even pace would have cost in the step, less its cost."""
        return next_state.gain

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: the day ends by the time limit."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        enough = state.saving > MIN_SAVED_SHARE * params.best_saving
        return {
            "success": (state.left == 0) & enough,
            "left": state.left,
            "shortfall": state.shortfall,
            "risk": state.risk,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with one number a from -1 to 1: this step sells 6^a times what an even pace "
            "would sell of the rest. The last step sells all."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe the order and the market."""
        return (
            f"Step {int(state.steps)} of {STEPS}: {100 * float(state.left):.2f} % of the order is "
            f"left, the price is {float(state.price):+.1f} bp from the start. Shortfall so far "
            f"{float(state.shortfall):.1f} bp, risk charged {float(state.risk):.1f} bp.\n"
            f"Temporary impact of an even pace {float(params.temporary):.2f} bp, permanent impact "
            f"of the order {float(params.permanent):.2f} bp, forecast drift "
            f"{float(params.drift):+.2f} bp a day, volatility {float(params.volatility):.2f} bp a "
            f"day, aversion to risk {float(params.risk_aversion):.5f} per bp: the whole order held "
            f"for a day is charged {float(holding_penalty(params)):.1f} bp."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the best schedule as a line, the even one dashed, and what is left as a dot."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)

        def point(time: float, left: float) -> tuple[float, float]:
            return 20 + time * (width - 40), height - 20 - left * (height - 40)

        canvas.rectangle((*point(0, 1), *point(1, 0)), outline="gray")
        for step in range(0, STEPS, 2):
            ends = (
                point(step / STEPS, 1 - step / STEPS),
                point((step + 1) / STEPS, 1 - (step + 1) / STEPS),
            )
            canvas.line(ends, fill="gray")
        schedule = np.asarray(best_schedule(params), np.float64)
        curve = [point(step / STEPS, float(left)) for step, left in enumerate(schedule)]
        canvas.line(curve, fill="cornflowerblue", width=2)
        x, y = point(int(state.steps) / STEPS, float(state.left))
        canvas.ellipse((x - 6, y - 6, x + 6, y + 6), fill="firebrick")
        return np.asarray(image)


_LOG_URGENCY_SCALE = 2 * math.log(URGENCY[1])
"""Largest logarithm of lambda sigma^2 / eta."""


def _between(unit: Float, ends: tuple[float, float]) -> Float:
    """Map a number in [0, 1) to a range."""
    low, high = ends
    return low + (high - low) * unit


def holding_penalty(params: Params) -> Float:
    """Return lambda sigma^2, the penalty of holding the whole order for a day, bp."""
    return params.risk_aversion * params.volatility * params.volatility


def step_cost(sold: Float, left: Float, noise: Float, params: Params) -> StepCost:
    """Return the cost of a step.

    Args:
        sold: part of the order that is sold in the step.
        left: part that is left after it.
        noise: random move of the price, bp.
        params: market, trader and forecast.
    """
    impact = params.temporary * STEPS * sold + params.permanent * left
    return StepCost(
        sold * impact,
        -left * noise,
        -left * (params.drift * STEP_TIME),
        holding_penalty(params) * (left * left) * STEP_TIME,
    )


def best_holding(left: Float, remaining: Float, params: Params) -> Float:
    """Return what the best schedule holds after the next trade.

    Almgren & Chriss 2000, section 4.1, from the present holding on: with k tau = arcosh(1 + tau^2
    lambda sigma^2 / (2 eta - gamma tau)) and the level alpha / (2 lambda sigma^2) that the drift
    asks for, holdings x follow x - level = A sinh(k time) + B cosh(k time) to nothing at the end.

    Args:
        left: part of the order that is left.
        remaining: number of steps that remain, the present one included; at least 1.
        params: market, trader and forecast.
    """
    penalty = holding_penalty(params)
    ratio = STEP_TIME**2 * penalty / (2 * params.temporary - STEP_TIME * params.permanent)
    # arcosh(1 + z), which rounds well for small z
    decay = jnp.log1p(ratio + jnp.sqrt(ratio * (ratio + 2)))
    level = params.drift / (2 * penalty)
    denominator = jnp.sinh(decay * remaining)
    kept_share = jnp.sinh(decay * (remaining - 1)) / denominator
    level_share = 1 - kept_share - jnp.sinh(decay) / denominator
    return kept_share * left + level_share * level


def best_schedule(params: Params) -> FloatArray:
    """Return what the best schedule holds at the start and after each step, ``(33,)``."""

    def step(left: Float, remaining: Float) -> tuple[Float, Float]:
        next_left = best_holding(left, remaining, params)
        return next_left, next_left

    start = jnp.ones_like(params.drift)
    _, after_steps = jax.lax.scan(step, start, _remaining_steps(start))
    return jnp.concatenate([start[None], after_steps])


def expected_saving_of_best(params: Params) -> Float:
    """Return the expected return of the best schedule."""
    zero = jnp.zeros_like(params.drift)

    def step(carry: tuple[Float, Float], remaining: Float) -> tuple[tuple[Float, Float], None]:
        left, total = carry
        next_left = best_holding(left, remaining, params)
        cost = step_cost(left - next_left, next_left, zero, params)
        even = step_cost(zero + STEP_TIME, (remaining - 1) * STEP_TIME, zero, params)
        saving = (even.shortfall - cost.shortfall) + (even.risk - cost.risk)
        return (next_left, total + saving), None

    start = jnp.ones_like(zero), zero
    (_, total), _ = jax.lax.scan(step, start, _remaining_steps(zero))
    return total / holding_penalty(params)


def _remaining_steps(like: Float) -> FloatArray:
    """Return the numbers of steps that remain before each step, ``(32,)``."""
    return jnp.arange(STEPS, 0, -1).astype(like.dtype)


class BestSchedule(eqx.Module):
    """The closed form of Almgren & Chriss 2000 from the present holding on, which is optimal."""

    @classmethod
    def for_task(cls, task: Execution) -> BestSchedule:
        """Return the player."""
        return cls()

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action ``(1,)`` from the observation."""
        left, time_left, log_urgency, drift, permanent, volatility, risk_aversion = view.observation
        sigma = VOLATILITY[1] * volatility
        aversion = MAX_RISK_AVERSION * risk_aversion
        eta = aversion * sigma * sigma * jnp.exp(-_LOG_URGENCY_SCALE * log_urgency)
        params = Params(
            sigma,
            aversion,
            eta,
            MAX_PERMANENT * eta * permanent,
            DRIFT_SCALE * eta * drift,
            jnp.zeros_like(eta),
        )
        remaining = jnp.maximum(jnp.round(STEPS * time_left), 1)
        share = 1 - best_holding(left, remaining, params) / jnp.maximum(left, 1e-6)
        pace = jnp.maximum(share * remaining, math.exp(-LOG_PACE))
        return jnp.clip(jnp.log(pace)[None] * (1 / LOG_PACE), -1, 1), memory

"""Release water from a reservoir: for fields and turbines, without a flood above or below the dam.

A dam holds the water of a river. Each month it releases some of it before the inflow of the month
is known. The rules are those of ``water-reservoir-v0`` of MO-Gymnasium
(github.com/Farama-Foundation/MO-Gymnasium, version 1.3.2), after Castelletti, Pianosi & Restelli
2012 (doi:10.1109/IJCNN.2012.6252759). The setting ``inflow`` chooses:

* ``seasonal``: inflow has a yearly wave, and each episode samples its mean, its amplitude and the
  weights of the objectives, and shows them. One policy must serve all of them.
* ``published``: inflow has the same mean in every month, and the weights are 1.

The surface is 1 m^2, so that a level in m is a volume in m^3. With level s and inflow q, a release
a leads to the level s'::

    s' = max(0, s + q - a)        max(0, s - 100) <= a <= s
    q ~ N(mean + amplitude cos(2 pi month / 12), 10^2)

=============  ====================================================================================
observation    ``seasonal``: ``Box((10,))``, fewer with fewer aims: level, expected inflow, season,
               time left, weights; the components list them.
               ``published``: ``Box((1,))``: level / 100 m
action         ``Box(0, 1, (1,))``: release, from the least (0) to the largest that is possible (1)
reward         one of each aim, negative: flood: m of s' above 50. irrigation: m^3 of a below 50.
               energy: kWh below 4.36 of 9.81 kN/m^3 s' a. downstream: m^3 of a above 30.
               ``seasonal`` multiplies all but irrigation by their weights
termination    never: the time limit truncates after 96 months (``seasonal``) or 100 (``published``)
success        the weighted cost is at least 2 % below that of both rules of thumb with the same
               inflow: release everything, and release the demand of 50 m^3
context        ``seasonal``: mean inflow, uniform in [40, 55) m^3, in other bands for test than for
               training; amplitude, uniform in [20, 35) m^3; first month; start at a level uniform
               in [0, 100) m; weights, log-uniform for flood (0.05 to 0.4) and energy (1 to 10),
               uniform for downstream (0.1 to 1).
               ``published``: mean 40, amplitude 0, weights 1, start at one of ten levels
=============  ====================================================================================

The setting ``aims`` keeps the first 4, 3 or 2 objectives, as ``nO`` of MO-Gymnasium does. Actions
are those of its ``normalized_action``; it also takes releases in m^3, and can ask for a penalty for
those that are impossible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float, Int
from rlbench_suite.core.component import Component, scaled_component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands

YEAR = 12
"""Months."""
CAPACITY = 100.0
"""Largest level that the dam can hold back, m."""
FLOOD_LEVEL = 50.0
"""Level above which land beside the reservoir is flooded, m."""
WATER_DEMAND = 50.0
"""Water that irrigation needs a month, m^3."""
ENERGY_DEMAND = 4.36
"""Energy that is wanted a month, kWh."""
ENERGY_PER_RELEASE = 9.81 * 1000 / 3.6e6
"""kWh of a m^3 that falls by 1 m."""
SAFE_RELEASE = 30.0
"""Release above which the river floods its banks, m^3."""
INFLOW_DEVIATION = 10.0
"""Standard deviation of the inflow of a month, m^3."""
LARGEST_DEVIATION = 6.0
"""Standard deviations at which inflow is cut off, so that levels have a bound."""
MEAN_INFLOWS = (40.0, 55.0)
"""Mean inflow of a month, m^3."""
AMPLITUDES = (20.0, 35.0)
"""Amplitude of the yearly wave, m^3."""
BANDS = 20
"""Bands of the mean inflow, in turn of training and of test episodes."""
FLOOD_WEIGHTS = (0.05, 0.4)
ENERGY_WEIGHTS = (1.0, 10.0)
DOWNSTREAM_WEIGHTS = (0.1, 1.0)
"""Ranges of the weights; irrigation has weight 1."""
PUBLISHED_INFLOW = 40.0
"""Mean inflow of MO-Gymnasium, m^3."""
PUBLISHED_LEVELS = (
    96.855361,
    58.046026,
    116.15767,
    20.164311,
    79.191,
    140.13098,
    131.01816,
    44.351321,
    13.185943,
    73.508622,
)
"""Levels at the start in MO-Gymnasium, m."""
MIN_SAVING = 0.02
"""Part of the cost of rules of thumb that a success saves."""
LEVEL_UNIT = 100.0
"""m, or m^3, that the observation shows as 1."""
LARGEST_INFLOW = MEAN_INFLOWS[1] + AMPLITUDES[1] + LARGEST_DEVIATION * INFLOW_DEVIATION
"""m^3 a month"""
LARGEST_LEVEL = CAPACITY + LARGEST_INFLOW
"""m"""
LOWEST_ENTRIES = {"season_sine": -1.0, "season_cosine": -1.0}
"""Least entries of the observation, if not 0."""
HIGHEST_ENTRIES = {"level": LARGEST_LEVEL / LEVEL_UNIT}
"""Largest entries of the observation, if not 1."""


class Params(NamedTuple):
    """The river and the weights."""

    mean_inflow: Float
    """m^3 a month"""
    amplitude: Float
    """m^3 a month"""
    first_month: Int
    """Months after that of the largest inflow, 0 to 11"""
    flood_weight: Float
    energy_weight: Float
    downstream_weight: Float


class Reservoir(NamedTuple):
    """A reservoir, and what its releases have cost."""

    level: Float
    """m"""
    cost: Float
    """Sum of all costs so far, weighted"""


class State(NamedTuple):
    """The reservoir, and two others with the same inflow that rules of thumb govern."""

    reservoir: Reservoir
    emptied: Reservoir
    """Releases everything."""
    demanded: Reservoir
    """Releases the demand."""
    inflow: Float
    """Inflow of the last month, m^3; 0 before the first"""
    months: Int
    """Months so far"""


class WaterReservoir(Task[Params, State]):
    """The task of this file's docstring, with a sampled river and weights."""

    measures: ClassVar[dict[str, str]] = {
        "level": "level of the reservoir, m",
        "inflow": "inflow of the last month, m^3",
        "total_cost": "weighted costs so far",
        "rule_cost": "weighted costs so far of the better of two rules of thumb",
    }
    picture_shape = (240, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.aims = len(card.objectives)
        entries = [component.name for component in self.observation_components()]
        self.observation_space = self.box(
            [LOWEST_ENTRIES.get(entry, 0.0) for entry in entries],
            [HIGHEST_ENTRIES.get(entry, 1.0) for entry in entries],
        )
        self.action_space = self.box(0.0, 1.0, (1,))
        largest_weights = FLOOD_WEIGHTS[1], ENERGY_WEIGHTS[1], DOWNSTREAM_WEIGHTS[1]
        self.reward_space = self.box(self.least_rewards(*largest_weights), np.zeros(self.aims))

    def least_rewards(self, flood: float, energy: float, downstream: float) -> list[float]:
        """Return the least reward of each aim for these weights."""
        rewards = [
            -flood * (LARGEST_LEVEL - FLOOD_LEVEL),
            -WATER_DEMAND,
            -energy * ENERGY_DEMAND,
            -downstream * (LARGEST_LEVEL - SAFE_RELEASE),
        ]
        return rewards[: self.aims]

    # -- an episode --------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the mean inflow in the bands of the split, and the others alike for both."""
        unit = self.uniform(key, 6)
        smallest, largest = AMPLITUDES
        return Params(
            alternating_bands(unit[0], split, *MEAN_INFLOWS, BANDS),
            smallest + (largest - smallest) * unit[1],
            jnp.floor(YEAR * unit[2]).astype(jnp.int32),
            _log_uniform(unit[3], FLOOD_WEIGHTS),
            _log_uniform(unit[4], ENERGY_WEIGHTS),
            DOWNSTREAM_WEIGHTS[0] + (DOWNSTREAM_WEIGHTS[1] - DOWNSTREAM_WEIGHTS[0]) * unit[5],
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at a sampled level."""
        return self.at_level(CAPACITY * self.uniform(key, 1)[0])

    def at_level(self, level: Float) -> State:
        """Return the state at the start with this level, m."""
        zero = jnp.zeros((), self.dtype)
        reservoir = Reservoir(jnp.asarray(level, self.dtype), zero)
        return State(reservoir, reservoir, reservoir, zero, jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Release, and let the inflow of the month come."""
        deviation = jnp.clip(self.normal(key, 1)[0], -LARGEST_DEVIATION, LARGEST_DEVIATION)
        inflow = expected_inflow(state.months, params) + INFLOW_DEVIATION * deviation
        return self.flow(state, release_of(action[0], state.reservoir.level), inflow, params)

    def flow(self, state: State, release: Float, inflow: Float, params: Params) -> State:
        """Return the state after a month with this release and inflow, m^3."""

        def next_reservoir(reservoir: Reservoir, release: Float) -> Reservoir:
            level = next_level(reservoir.level, release, inflow)
            costs = self.weighted_costs(release, level, params)
            return Reservoir(level, reservoir.cost + sum(costs[1:], costs[0]))

        demand = possible_release(WATER_DEMAND, state.demanded.level)
        return State(
            next_reservoir(state.reservoir, release),
            next_reservoir(state.emptied, state.emptied.level),
            next_reservoir(state.demanded, demand),
            inflow,
            state.months + 1,
        )

    def weighted_costs(self, release: Float, level: Float, params: Params) -> list[Float]:
        """Return the cost of each aim in a month that ends at this level."""
        flood, shortage, missing_energy, excess = costs_of(release, level)
        costs = [
            params.flood_weight * flood,
            shortage,
            params.energy_weight * missing_energy,
            params.downstream_weight * excess,
        ]
        return costs[: self.aims]

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the costs, negative, ``(aims,)``."""
        release = release_of(action[0], state.reservoir.level)
        costs = self.weighted_costs(release, next_state.reservoir.level, params)
        return self.stack(*(-cost for cost in costs))

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        total_cost = state.reservoir.cost
        rule_cost = jnp.minimum(state.emptied.cost, state.demanded.cost)
        return {
            "success": (state.months > 0) & (total_cost <= (1 - MIN_SAVING) * rule_cost),
            "level": state.reservoir.level,
            "inflow": state.inflow,
            "total_cost": total_cost,
            "rule_cost": rule_cost,
        }

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return level, river, time and weights; see the components."""
        angle = season(state.months, params)
        weights = (
            params.flood_weight,
            params.energy_weight * (1 / ENERGY_WEIGHTS[1]),
            params.downstream_weight,
        )
        return self.stack(
            state.reservoir.level * (1 / LEVEL_UNIT),
            expected_inflow(state.months, params) * (1 / LEVEL_UNIT),
            jnp.sin(angle),
            jnp.cos(angle),
            params.mean_inflow * (1 / LEVEL_UNIT),
            params.amplitude * (1 / LEVEL_UNIT),
            jnp.maximum(self.card.horizon - state.months, 0) * (1 / self.card.horizon),
            *weights[: self.aims - 1],
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        weights = (
            Component("flood_weight", "weight of flood; irrigation has weight 1"),
            Component("energy_weight", "weight of energy", f"{ENERGY_WEIGHTS[1]:g}"),
            Component("downstream_weight", "weight of downstream"),
        )
        return (
            scaled_component("level", "level of the reservoir", LEVEL_UNIT, "m"),
            scaled_component("expected_inflow", "mean of this month's inflow", LEVEL_UNIT, "m^3"),
            Component("season_sine", "sine of the season; the wave is a cosine"),
            Component("season_cosine", "cosine of the season"),
            scaled_component("mean_inflow", "mean inflow over a year", LEVEL_UNIT, "m^3"),
            scaled_component("amplitude", "amplitude of the yearly wave", LEVEL_UNIT, "m^3"),
            Component("time_left", "part of the time that is still to come", "episodes"),
            *weights[: self.aims - 1],
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the entry of an action."""
        return (Component("release", "release, from the least to the largest possible"),)

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return "Answer with a number from 0 to 1: the release, from the least to the largest."

    def rules(self) -> str:
        """Tell the costs."""
        costs = (
            f"each m of the level above {FLOOD_LEVEL:g} after the inflow",
            f"each m^3 of the release below {WATER_DEMAND:g}",
            f"each kWh below {ENERGY_DEMAND:g}; a m^3 of the release yields "
            f"{ENERGY_PER_RELEASE:.6f} kWh for each m of the level after the inflow",
            f"each m^3 of the release above {SAFE_RELEASE:g}",
        )
        named_costs = [
            f"{name}: {cost}." for name, cost in zip(self.card.objectives, costs, strict=False)
        ]
        return "\n".join(
            [
                f"{self.card.name}: {self.card.summary}",
                "A level in m is a volume in m^3. Each month you release water, and then the "
                f"inflow comes. Its standard deviation is {INFLOW_DEVIATION:g} m^3. What is above "
                f"{CAPACITY:g} m must be released. Costs:",
                *named_costs,
            ]
        )

    def describe(self, state: State, params: Params) -> str:
        """Tell the level, the river and the weights."""
        level = float(state.reservoir.level)
        smallest = max(0.0, level - CAPACITY)
        coming = ", ".join(
            f"{float(expected_inflow(state.months + ahead, params)):.1f}" for ahead in range(YEAR)
        )
        lines = [
            f"Month {int(state.months)} of {self.card.horizon}. The level is {level:.3f} m. You "
            f"can release {smallest:.3f} to {level:.3f} m^3.",
            f"Expected inflow of the coming {YEAR} months: {coming} m^3.",
            self._weights_in_words(params),
        ]
        return "\n".join(lines)

    def _weights_in_words(self, params: Params) -> str:
        weights = (params.flood_weight, 1.0, params.energy_weight, params.downstream_weight)
        named_weights = zip(self.card.objectives, weights, strict=False)
        return f"Weights: {', '.join(f'{name} {float(w):.4f}' for name, w in named_weights)}."

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the water behind the dam, the flood level in red, and the coming inflow as bars."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        dam, ground = 190, height - 20
        pixels = (height - 40) / LARGEST_LEVEL

        def row(level: float) -> float:
            return ground - pixels * level

        canvas.rectangle((0, row(float(state.reservoir.level)), dam, ground), fill="steelblue")
        canvas.polygon(
            (dam, row(CAPACITY), dam + 12, row(CAPACITY), dam + 40, ground, dam, ground),
            fill="dimgray",
        )
        canvas.line((0, row(FLOOD_LEVEL), dam, row(FLOOD_LEVEL)), fill="firebrick", width=2)
        canvas.rectangle((0, ground, width, height), fill="darkseagreen")
        for ahead in range(YEAR):
            inflow = float(expected_inflow(state.months + ahead, params))
            x = dam + 46 + 7 * ahead
            canvas.rectangle((x, row(inflow), x + 4, ground), fill="cornflowerblue")
        return np.asarray(image)


class PublishedReservoir(WaterReservoir):
    """The task with MO-Gymnasium's inflow and plain rewards."""

    def least_rewards(self, flood: float, energy: float, downstream: float) -> list[float]:
        """Return the least reward of each aim for weights of 1."""
        return super().least_rewards(1.0, 1.0, 1.0)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        mean_inflow = jnp.asarray(PUBLISHED_INFLOW, self.dtype)
        amplitude, weight = jnp.zeros((), self.dtype), jnp.ones((), self.dtype)
        return Params(mean_inflow, amplitude, jnp.int32(0), weight, weight, weight)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at one of ten levels."""
        count = len(PUBLISHED_LEVELS)
        place = jnp.minimum((count * self.uniform(key, 1)[0]).astype(jnp.int32), count - 1)
        return self.at_level(jnp.asarray(PUBLISHED_LEVELS, self.dtype)[place])

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the level, ``(1,)``."""
        return self.stack(state.reservoir.level * (1 / LEVEL_UNIT))

    def observation_components(self) -> tuple[Component, ...]:
        """Name the level."""
        return super().observation_components()[:1]

    def _weights_in_words(self, params: Params) -> str:
        return "All weights are 1."


def make(
    card: TaskCard, *, difficulty: float | None = None, dtype: str = "float32"
) -> WaterReservoir:
    """Make the task of a card: with a sampled river and weights, or with MO-Gymnasium's."""
    is_seasonal = card.settings["inflow"] == "seasonal"
    task_class = WaterReservoir if is_seasonal else PublishedReservoir
    return task_class(card, difficulty=difficulty, dtype=dtype)


# -- the rules -------------------------------------------------------------------------------------


def season(months: Int, params: Params) -> Float:
    """Return the angle of the season, rad; 0 in the month of the largest inflow."""
    month = jnp.remainder(params.first_month + months, YEAR).astype(params.mean_inflow.dtype)
    return month * (2 * math.pi / YEAR)


def expected_inflow(months: Int, params: Params) -> Float:
    """Return the mean of the inflow of a month, m^3."""
    return params.mean_inflow + params.amplitude * jnp.cos(season(months, params))


def possible_release(release: Float | float, level: Float) -> Float:
    """Return the possible release that is nearest to one, m^3."""
    return jnp.clip(release, jnp.maximum(level - CAPACITY, 0), level)


def release_of(share: Float, level: Float) -> Float:
    """Return the release that an action means at this level, m^3."""
    smallest = jnp.maximum(level - CAPACITY, 0)
    return smallest + share * (level - smallest)


def share_of(release: Float | float, level: Float) -> Float:
    """Return the action that releases this, as far as possible: the inverse of that."""
    smallest = jnp.maximum(level - CAPACITY, 0)
    share = (release - smallest) / jnp.where(level > smallest, level - smallest, 1)
    return jnp.clip(share, 0, 1)


def next_level(level: Float, release: Float, inflow: Float) -> Float:
    """Return the level after a month, m. Negative inflow is evaporation."""
    return jnp.maximum(level - release + inflow, 0)


def costs_of(release: Float, level: Float) -> Sequence[Float]:
    """Return the costs of flood, irrigation, energy and downstream, without weights.

    Arguments are the release of a month, m^3, and the level at its end, m.
    """
    return (
        jnp.maximum(level - FLOOD_LEVEL, 0),
        jnp.maximum(WATER_DEMAND - release, 0),
        missing_energy(release, level),
        jnp.maximum(release - SAFE_RELEASE, 0),
    )


def missing_energy(release: Float, level: Float) -> Float:
    """Return the energy that is missing in a month, kWh."""
    return jnp.maximum(ENERGY_DEMAND - ENERGY_PER_RELEASE * level * release, 0)


def _log_uniform(unit: Float, ends: tuple[float, float]) -> Float:
    """Map a number in [0, 1) to a range, uniform in the logarithm."""
    low, high = ends
    return low * jnp.exp(math.log(high / low) * unit)

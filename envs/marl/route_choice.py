"""Route Choice: drivers choose among three routes, and are in each other's way.

``n`` drivers go from junction 1 to junction 4 of the network of Braess's paradox, in 20 rounds. In
each round everybody chooses a route at once, and travels it in a time that grows with the number of
drivers on its roads (``braess_network.py`` has the equations). Roads 1-2 and 3-4 are short and
narrow, 1-3 and 2-4 long and wide. The bridge 2-3 tempts drivers onto both narrow roads: if each
minimises its own time, nearly all of them are later than they might be. A team can do better.

The numbers of roads are sampled with each episode, and so is the order in which the routes are
listed. Drivers see both. MO-RouteChoice of MOMAland (github.com/Farama-Foundation/momaland,
version 0.2.0) has single networks of this kind, and observations that show nothing. Two of its
defects are not reproduced: it reports time limits as terminations, and its 42 drivers count as 42
of 4,200 in the formulas of the roads, which leaves these empty.

==================  ===============================================================================
observation         one row a driver, 27 numbers in [0, 1]: free times of the roads 1-2, 2-4, 1-3,
``(n, 27)``         3-4 and 2-3 / 20 min; their congestion, the additional time with all drivers on
                    the road, / 20 min; for each listed route three flags: it is top (1-2-4), bottom
                    (1-3-4), bridge (1-2-3-4); times of the listed routes in the last round / 66 min
                    (of empty roads in the first round); three flags for the own last choice (none
                    in the first round); number of the driver, (i + 1/2) / n; rounds left / 20
action ``(n,)``     number of the listed route of each driver
reward ``(n,)``     minus the own travel time / 66 min
termination         never: the time limit truncates after 20 rounds
success             the mean travel time of all drivers and rounds is at most 1 % above the optimum
context             free times: 0 to 2 min of narrow roads and of the bridge, 5 to 20 min of wide
                    roads; congestion: 5 to 20 min of narrow roads, 0.5 to 3 min of wide roads and
                    of the bridge. Each is uniform over bands, alternately of train and of test. And
                    the order of the routes
==================  ===============================================================================

The score is the mean over drivers. 1 is the system optimum, which the reference assigns by the
drivers' numbers. The yardstick ``selfish`` is the equilibrium (Nash, Wardrop). The cost of a step
grows linearly with the number of drivers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float, FloatArray, Int, IntArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from .braess_network import (
    ROUTES,
    Flows,
    Network,
    Roads,
    best_flows,
    equilibrium_flows,
    mean_time,
    road_times,
    route_times,
    shares_of_roads,
)

ROUNDS = 20
FREE_TIMES = Roads((0.0, 2.0), (5.0, 20.0), (5.0, 20.0), (0.0, 2.0), (0.0, 2.0))
"""Range of the time on each empty road, min."""
CONGESTIONS = Roads((5.0, 20.0), (0.5, 3.0), (0.5, 3.0), (5.0, 20.0), (0.5, 3.0))
"""Range of the additional time with all drivers on the road, min."""
ROAD_SCALE = 20.0
"""min that are shown as 1 in a road's numbers."""
TIME_SCALE = 66.0
"""min that are shown as 1 in a route's time: more than the bridge takes with all drivers, 49."""
BANDS = 8
"""Bands of each number of a road, in turn of train and of test."""
TOLERANCE = 0.01
"""Part of the optimum by which a success may be slower."""
ORDERS = np.array(
    [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)],
    np.int32,
)
"""Kinds of the listed routes, in all orders."""
NONE = -1
"""Choice of a driver before the first round."""
JUNCTIONS = {1: (30, 150), 2: (150, 50), 3: (150, 250), 4: (270, 150)}
"""Places in the picture, pixels."""


class Params(NamedTuple):
    """The context."""

    network: Network
    listed: IntArray
    """Kind of each listed route, ``(3,)``."""
    optimum: Float
    """Least mean travel time, min."""


class State(NamedTuple):
    """The last round, and the time so far."""

    choices: IntArray
    """Number of the listed route of each driver, ``(n,)``; -1 before the first round."""
    times: FloatArray
    """Times of the listed routes in the last round, ``(3,)``, min."""
    mean_time: Float
    """Mean travel time of the last round, min."""
    total_time: Float
    """Sum of the mean travel times of all rounds, min."""
    rounds: Int
    """Rounds so far."""


class RouteChoice(Task[Params, State]):
    """The task of this file's docstring."""

    measures = {  # noqa: RUF012
        "mean_time": "mean travel time of the last round, min",
        "delay": "mean travel time of all rounds beyond the optimum, as a part of the optimum",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        n = card.agents
        self.observation_space = self.box(0, 1, (n, 27))
        self.action_space = spaces.MultiDiscrete([len(ROUTES)] * n)
        self.reward_space = self.box(-1, 0, (n,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the roads and the order of the routes."""
        unit = self.uniform(key, 11)
        numbers = [
            alternating_bands(unit[i], split, low, high, BANDS)
            for i, (low, high) in enumerate((*FREE_TIMES, *CONGESTIONS))
        ]
        order = jnp.floor(unit[10] * len(ORDERS)).astype(jnp.int32)
        return self.with_optimum(
            Network(Roads(*numbers[:5]), Roads(*numbers[5:])), jnp.asarray(ORDERS)[order]
        )

    def with_optimum(self, network: Network, listed: jax.Array) -> Params:
        """Return the context of a network, with its least mean travel time."""
        best = best_flows(network, self.card.agents)
        return Params(network, listed, mean_time(network, self.shares(best)))

    def shares(self, flows: Flows) -> Flows:
        """Return shares of drivers for numbers of drivers."""
        share = np.asarray(1 / self.card.agents, self.dtype)
        return Flows(*(flow * share for flow in flows))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Show the empty roads."""
        zero = jnp.zeros((), self.dtype)
        empty = Flows(zero, zero, zero)
        return State(
            jnp.full(self.card.agents, NONE, jnp.int32),
            self._listed(route_times(params.network, empty), params),
            zero,
            zero,
            jnp.int32(0),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Count the drivers of each route, and take the times."""
        shares = self.shares(self.flows(action, params))
        times = route_times(params.network, shares)
        mean = mean_time(params.network, shares)
        return State(
            jnp.asarray(action, jnp.int32),
            self._listed(times, params),
            mean,
            state.total_time + mean,
            state.rounds + 1,
        )

    def flows(self, choices: jax.Array, params: Params) -> Flows:
        """Return the number of drivers of each kind of route."""
        counts = [(choices == number).sum(dtype=jnp.int32) for number in range(3)]
        return Flows(
            *(
                sum(
                    jnp.where(params.listed[number] == kind, counts[number], 0)
                    for number in range(3)
                )
                for kind in range(3)
            )
        )

    def _listed(self, times: Flows, params: Params) -> jax.Array:
        """Return numbers of kinds of routes in the order of the list, ``(3,)``."""
        return self.stack(*times)[params.listed]

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each driver sees, ``(n, 27)``."""
        n = self.card.agents
        road_share = np.asarray(1 / ROAD_SCALE, self.dtype)
        network = self.stack(*params.network.free, *params.network.congestion) * road_share
        kinds = (params.listed[:, None] == np.arange(3)).astype(self.dtype).ravel()
        times = state.times * np.asarray(1 / TIME_SCALE, self.dtype)
        left = self.stack(jnp.maximum(ROUNDS - state.rounds, 0) * (1 / ROUNDS))
        own_choice = (state.choices[:, None] == np.arange(3)).astype(self.dtype)
        number = np.asarray((np.arange(n) + 0.5) / n, self.dtype)[:, None]
        before = jnp.broadcast_to(jnp.concatenate([network, kinds, times]), (n, 22))
        return jnp.concatenate([before, own_choice, number, jnp.broadcast_to(left, (n, 1))], axis=1)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return minus the travel time of each driver, ``(n,)``."""
        first, second, third = next_state.times
        times = jnp.where(action == 0, first, jnp.where(action == 1, second, third))
        return times * np.asarray(-1 / TIME_SCALE, self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, the last mean time, and the delay so far."""
        optimum = params.optimum * jnp.maximum(state.rounds, 1)
        has_begun = state.rounds > 0
        delay = jnp.where(has_begun, state.total_time / optimum - 1, 0)
        return {
            "success": has_begun & (delay <= TOLERANCE),
            "mean_time": state.mean_time,
            "delay": delay,
        }

    def observation_components(self) -> tuple[Component, ...]:
        """List what a driver sees."""
        roads = "roads 1-2, 2-4, 1-3, 3-4 and 2-3"
        minutes = f"{ROAD_SCALE:g} min"
        return (
            Component("free_times", f"times of the empty {roads}", minutes, (5,)),
            Component("congestion", f"added times with all drivers on {roads}", minutes, (5,)),
            Component(
                "kinds", "flags of each listed route: it is top, bottom, bridge", "1", (3, 3)
            ),
            Component(
                "times", "times of the listed routes in the last round", f"{TIME_SCALE:g} min", (3,)
            ),
            Component("own_choice", "flags of the own last choice", "1", (3,)),
            Component("number", "number of the driver, (i + 1/2) / n"),
            Component("rounds_left", "until the episode ends", f"{ROUNDS} rounds"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the choices; a joint action has one entry a driver."""
        meaning = "[driver]: number of the listed route, from 0"
        return (Component("route", meaning, shape=(self.card.agents,)),)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe roads, routes, the last round and the time left."""
        names = [*ROUTES]
        roads = ("1-2", "2-4", "1-3", "3-4", "2-3")
        lines = [f"Round {int(state.rounds) + 1} of {ROUNDS}. Times of the roads in minutes:"]
        for road, free, congestion in zip(roads, *params.network, strict=True):
            lines.append(
                f"road {road}: {float(free):.2f} + {float(congestion):.2f} x share of drivers on it"
            )
        for number, kind in enumerate(params.listed.tolist()):
            count = int((np.asarray(state.choices) == number).sum())
            when = f"with {count} drivers in the last round" if state.rounds else "on empty roads"
            lines.append(
                f"route {number}: {ROUTES[names[kind]]}, {float(state.times[number]):.2f} {when}"
            )
        choices = np.asarray(state.choices).tolist()
        lines.append(
            f"There are {self.card.agents} drivers. Their last choices: "
            f"{' '.join(map(str, choices)) if state.rounds else 'none'}."
        )
        return "\n".join(lines)

    def how_to_act(self) -> str:
        """Tell a text player how to answer: a number for each driver."""
        return (
            f"Answer with {self.card.agents} numbers, the route 0, 1 or 2 of each driver, driver 0 "
            "first."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the roads: wide where many drive, red where they lose time."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        share = 1 / self.card.agents
        flows = np.zeros(3)
        for number, kind in enumerate(np.asarray(params.listed).tolist()):
            flows[kind] = share * (np.asarray(state.choices) == number).sum()
        shares = Flows(*flows.tolist())
        loads = shares_of_roads(shares)
        ends = ((1, 2), (2, 4), (1, 3), (3, 4), (2, 3))
        times = road_times(params.network, shares)
        for (start, end), load, time in zip(ends, loads, times, strict=True):
            red = int(min(255, 255 * float(time) / ROAD_SCALE))
            canvas.line(
                (JUNCTIONS[start], JUNCTIONS[end]),
                fill=(red, 140 - red // 2, 90),
                width=2 + round(24 * load),
            )
        for junction, (x, y) in JUNCTIONS.items():
            canvas.ellipse((x - 14, y - 14, x + 14, y + 14), fill="black")
            canvas.text((x - 3, y - 6), str(junction), fill="white")
        return np.asarray(image)


def read_network(row: jax.Array) -> tuple[Network, jax.Array]:
    """Return the network and the kinds of the listed routes that a row of an observation shows."""
    minutes = row[:10] * ROAD_SCALE
    free = Roads(*(minutes[i] for i in range(5)))
    congestion = Roads(*(minutes[i] for i in range(5, 10)))
    kinds = row[10:19].reshape(3, 3)
    return Network(free, congestion), jnp.argmax(kinds, axis=1).astype(jnp.int32)


def assign(flows: Flows, listed: jax.Array, drivers: int) -> jax.Array:
    """Return choices ``(drivers,)``: the first drivers take listed route 0, the next ones 1."""
    counts = jnp.stack(flows)[listed]
    number = np.arange(drivers, dtype=np.int32)
    second = jnp.asarray(number >= counts[0])
    third = jnp.asarray(number >= counts[0] + counts[1])
    return second.astype(jnp.int32) + third


class SystemOptimum(eqx.Module):
    """The optimal team: the flows with the least mean time, assigned by the drivers' numbers."""

    drivers: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: RouteChoice) -> SystemOptimum:
        """Make the player for the drivers of a task."""
        return cls(task.card.agents)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the routes of all drivers, from what the first one sees."""
        network, listed = read_network(view.observation[0])
        return assign(best_flows(network, self.drivers), listed, self.drivers), memory


class SelfishDrivers(eqx.Module):
    """The equilibrium: no driver is faster on another route, if all others stay on theirs."""

    drivers: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: RouteChoice) -> SelfishDrivers:
        """Make the player for the drivers of a task."""
        return cls(task.card.agents)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the routes of all drivers, from what the first one sees."""
        network, listed = read_network(view.observation[0])
        return assign(equilibrium_flows(network, self.drivers), listed, self.drivers), memory

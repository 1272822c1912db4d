"""Drive all cars around an ego as the watched humans would, but obey commands.

A command tells a car to tailgate or to hang back.

A ring road of one lane has 24 cars (``ring_road.py``). Car 0 is the ego, a cautious driver that
nobody controls and whose wish to hurry or to dawdle changes every 10 s. Humans drive the others by
the Intelligent Driver Model, each with parameters of its own and with random accelerations. They
are watched for 20 s. Then agents take their places for 60 s.

A twin of the episode runs beside, in which the same humans drive on behind the same kind of ego.
All speeds, gaps and accelerations of the agents' cars, of all steps, are compared with those in the
twin. The distance W is the first Wasserstein distance (``sampled_distribution.py``). M is the mean
distance of the twin's values from their median, which is the smallest W that cars can have that are
all alike and never change. The realism of a quantity is

    max(0, 1 - 2 W / M)

so that it is 1 for the humans themselves, and 0 for everything that is not twice as near as the
best constant. Every sixth car has a command, a time gap T that it is to keep: the gap 2 m + v T.
Its obedience is 1 less 2.5 times the mean relative error of that gap, at least 0. In the twin,
humans who obey drive these cars.

After step k of 120 the agents have earned k / 120 of 100 times the mean of the three realisms and
the obedience.

No car collides: one whose agent asks for more than leaves room to stop, brakes by itself instead
(``ring_road.py``). The cost counts how often cars did, which humans never need.

======================  ============================================================================
agents                  23: agent i drives car i + 1; car i follows car i - 1, and car 0 follows car
                        23
action ``(23, 1)``      every 0.5 s, acceleration of each car by 4 m/s^2
observation ``(23,      of each car: its speed (by 40 m/s), gap to its leader (by 100 m), the
14)``                   leader's speed (by 40 m/s); its last acceleration and the leader's (by 4
                        m/s^2); 1 if it has a command, and the time gap (by 3 s; 0 without one). Of
                        its driver while watched: mean speed (by 40 m/s), mean gap (by 100 m),
                        random accelerations (their standard deviation as far as changes of the
                        acceleration show it, by 1 m/s^2), largest speed (by 40 m/s). A standard
                        normal number by 4, new at each step, with which a player can drive as
                        randomly as humans; the speed limit (by 40 m/s); time since the start (by 60
                        s). Everything is cut off at 1
reward                  the same for all agents: what has been earned after this step less what had
                        been before
terminated              never: an episode has 120 steps
success                 each realism and the obedience are at least 2/3, so that no W exceeds M / 6
cost                    number of cars that braked by themselves, where they were asked for more
                        than 0.1 m/s^2 beyond what is safe
context                 mean time gap of the population 1..1.8 s, in bands of 0.1 s alternately of
                        train and test; cars 30..60 m apart on average; speed limit 20..30 m/s;
                        standard deviation of random accelerations 0.1..0.4 m/s^2, new ones each
                        half second. Drivers: time gap mean (1 +- h), desired speed limit (1 +- h /
                        2), jam gap 1.5..3 m, acceleration 0.8..1.6 m/s^2, comfortable deceleration
                        1.2..2 m/s^2. Commands: which cars, 0.7..0.9 s or 2.4..3 s each; they count
                        after 20 s. Wishes of the ego: 0.2..1 of the limit
difficulty              h, how much drivers differ, 0 to 0.8
======================  ============================================================================

RIFT measures the same for models of traffic in CARLA: Wasserstein distances of speeds and
accelerations to real ones, collisions, and obedience to a style. Here the population is the
Intelligent Driver Model, not people; there are no lane changes; and agents are compared with the
population of their own episode.

Sources: Chen et al. 2025, RIFT, arXiv:2505.03344; Treiber, Hennecke & Helbing 2000,
doi:10.1103/PhysRevE.62.1805.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ..arrays import Scalar
from ..pictures.ring_pictures import draw_ring
from ..traffic.car_following import Driver
from ..traffic.ring_road import (
    BRAKING,
    LENGTH,
    TICK,
    Ring,
    human_acceleration,
    leader_value,
    move,
    safe_acceleration,
)
from ..traffic.sampled_distribution import BINS, Grid, count_below, distance, spread

CARS = 24
AGENTS = CARS - 1
WARM_UP_TICKS = 120  # Ticks that humans drive before the episode
WATCHED_TICKS = 40  # The last of these ticks, in which humans are watched
WISH_TICKS = 20  # Ticks until the ego changes its wish
NUM_WISHES = 12
COMMANDED_EVERY_CARS = 6  # Every sixth car has a command
GRACE_TICKS = 40  # Ticks of an episode in which commands do not count yet
COMMANDED_JAM_GAP = 2.0  # m: gap that a command adds to the time gap
OBEDIENCE_LOSS = 2.5  # Obedience that is lost by a relative error of 1
# Desired speed of humans who obey, so that they can close up, relative to the speed limit.
OBEDIENT_SPEED_FACTOR = 1.3
# Relative errors are counted in thousandths, so that sums do not depend on their order.
ERROR_UNITS = 1000
# The return so far is a multiple of 1 / 1024, so that rewards add up without rounding.
RETURN_UNITS = 1024
# m/s^2: a car that asks for more than this beyond what is safe is overruled.
MIN_OVERRULED_EXCESS = 0.1
# Least realism and obedience of a success. The humans themselves, under other random numbers, reach
# it in 98 % of the episodes, an average driver in every car in 8 % at medium difficulty.
MIN_SUCCESS_REALISM = 2 / 3
SPEED_SCALE = 40.0  # m/s that are shown as 1
GAP_SCALE = 100.0  # m that are shown as 1
COMMAND_SCALE = 3.0  # s that are shown as 1
RANDOM_SCALE = 1.0  # m/s^2 that are shown as 1
CHANCE_SCALE = 4.0  # Standard deviations that are shown as 1
# Bins of what is compared, in m/s, m and m/s^2.
GRIDS = {"speed": Grid(0.0, 0.5), "gap": Grid(0.0, 2.0), "acceleration": Grid(-BRAKING, 0.125)}


class Entry(IntEnum):
    """Entries of a car's observation, in order."""

    SPEED = 0
    GAP = 1
    LEADER_SPEED = 2
    ACCELERATION = 3
    LEADER_ACCELERATION = 4
    COMMANDED = 5
    COMMAND = 6
    WATCHED_SPEED = 7
    WATCHED_GAP = 8
    WATCHED_RANDOM = 9
    WATCHED_FASTEST = 10
    CHANCE = 11
    LIMIT = 12
    TIME = 13


class Params(NamedTuple):
    """The context."""

    limit: Scalar  # m/s
    gap: Scalar  # m: mean gap, and that of every car 60 s before the episode
    driver: Driver  # Each field ``(cars,)``; car 0 is the ego
    random: Scalar  # m/s^2: standard deviation of random accelerations
    wishes: Scalar  # m/s: speeds that the ego wishes in turn, ``(NUM_WISHES,)``
    command: Scalar  # s: commanded time gap, 0 without a command, ``(cars,)``


class Record(NamedTuple):
    """Behaviour of each driver while watched, ``(cars,)``."""

    speed: Scalar  # m/s, mean
    gap: Scalar  # m, mean
    change: Scalar  # m^2/s^4: mean square of the change of acceleration from tick to tick
    fastest: Scalar  # m/s


class State(NamedTuple):
    """The twin (index 0) and the agents' road (index 1), and their records so far."""

    ring: Ring  # Each field ``(2, cars)``
    acceleration: Scalar  # m/s^2 in the last tick, ``(2, cars)``
    record: Record
    below: Scalar  # int32 ``(2, 3, BINS - 1)``: values of all steps below the end of each bin
    error: Scalar  # int32: sum of relative errors of commanded gaps, in thousandths
    overruled: Scalar  # int32: how often cars braked by themselves
    steps: Scalar  # int32


class TrafficSim(Task[Params, State]):
    """The task of this file's docstring."""

    period = TICK
    measures: ClassVar[dict[str, str]] = {
        **{f"{name}_realism": f"realism of the distribution of {name}, 0 to 1" for name in GRIDS},
        "obedience": "obedience of cars with commands, 0 to 1",
        "speed_distance": "Wasserstein distance of speeds to those in the twin, m/s",
        "gap_distance": "the same of gaps, m",
        "acceleration_distance": "the same of accelerations, m/s^2",
        "overruled": "times that a car braked by itself so far",
    }
    picture_shape = (360, 720, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 0 <= difficulty <= 0.8:
            raise ValueError(
                f"The difficulty of {card.id} is a heterogeneity of 0 to 0.8, got {difficulty!r}."
            )
        self.heterogeneity = float(difficulty)
        low = np.zeros(len(Entry))
        low[[Entry.ACCELERATION, Entry.LEADER_ACCELERATION, Entry.CHANCE]] = -1
        self.observation_space = self.box(low, 1, (AGENTS, len(Entry)))
        self.action_space = self.box(-1, 1, (AGENTS, 1))
        self.reward_space = self.box(-100, 100, (AGENTS,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample population, road, commands and wishes."""
        u = self.uniform(key, 5 + NUM_WISHES + 7 * CARS)
        cars = u[5 + NUM_WISHES :].reshape(7, CARS)
        number = np.arange(CARS)
        ego = np.arange(CARS) == 0
        limit = 20 + 10 * u[1]
        mean = alternating_bands(u[0], split, 1.0, 1.8, bands=8)
        differs = self.heterogeneity * (2 * cars[:2] - 1)
        commanded = ~ego & (
            number % COMMANDED_EVERY_CARS
            == jnp.floor(COMMANDED_EVERY_CARS * u[2]).astype(jnp.int32)
        )
        command = jnp.where(cars[5] < 0.5, 0.7 + 0.2 * cars[6], 2.4 + 0.6 * cars[6])
        return Params(
            limit=limit,
            gap=25 + 30 * u[3],
            driver=Driver(
                desired_speed=limit * jnp.where(ego, 1, 1 + 0.5 * differs[0]),
                time_gap=jnp.where(ego, 1.4, mean * (1 + differs[1])),
                jam_gap=1.5 + 1.5 * cars[2],
                acceleration=0.8 + 0.8 * cars[3],
                deceleration=1.2 + 0.8 * cars[4],
            ),
            random=0.1 + 0.3 * u[4],
            wishes=limit * (0.2 + 0.8 * u[5 : 5 + NUM_WISHES]),
            command=jnp.where(commanded, command, 0),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Let the humans drive until the agents take over."""
        random = self.normal(key, WARM_UP_TICKS * CARS).reshape(WARM_UP_TICKS, CARS)
        gap = jnp.full(CARS, params.gap, self.dtype)
        start = Ring(gap, jnp.full(CARS, 0.5, self.dtype) * params.limit)
        zeros = jnp.zeros(CARS, self.dtype)

        def tick(number: Scalar, carry: tuple[Ring, Scalar, Record]) -> tuple[Ring, Scalar, Record]:
            ring, last, sums = carry
            next_ring = move(
                ring,
                self.uncontrolled_accelerations(
                    ring, params.driver, random[number], number, params
                ),
            )
            acceleration = (next_ring.v - ring.v) * (1 / TICK)
            change = acceleration - last
            record = Record(
                sums.speed + next_ring.v,
                sums.gap + next_ring.gap,
                sums.change + change * change,
                jnp.maximum(sums.fastest, next_ring.v),
            )
            is_watched = number >= WARM_UP_TICKS - WATCHED_TICKS
            sums = jax.tree.map(lambda new, old: jnp.where(is_watched, new, old), record, sums)
            return next_ring, acceleration, sums

        no_record = Record(zeros, zeros, zeros, zeros)
        ring, acceleration, sums = jax.lax.fori_loop(
            0, WARM_UP_TICKS, tick, (start, zeros, no_record)
        )
        mean = jax.tree.map(lambda total: total * (1 / WATCHED_TICKS), sums)._replace(
            fastest=sums.fastest
        )

        def copy_for_both(values: Scalar) -> Scalar:
            return jnp.stack([values, values])

        counts = jnp.zeros((2, len(GRIDS), BINS - 1), jnp.int32)
        zero = jnp.int32(0)
        return State(
            jax.tree.map(copy_for_both, ring),
            copy_for_both(acceleration),
            mean,
            counts,
            zero,
            zero,
            zero,
        )

    def uncontrolled_accelerations(
        self, ring: Ring, driver: Driver, random: Scalar, tick: Scalar, params: Params
    ) -> Scalar:
        """Return the accelerations of humans and of the ego, m/s^2.

        ``random`` are standard normal numbers.
        """
        ego = np.arange(CARS) == 0
        pedal = human_acceleration(ring, driver, jnp.where(ego, 0, params.random * random))
        wish = jnp.clip(0.5 * (params.wishes[tick // WISH_TICKS] - ring.v), -2.0, 1.2)
        return jnp.where(ego, jnp.minimum(pedal, wish), pedal)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive for a tick."""
        twin, fleet = (Ring(state.ring.gap[i], state.ring.v[i]) for i in (0, 1))
        drivers = obedient_drivers(params)
        tick = WARM_UP_TICKS + state.steps
        twin_pedal = self.uncontrolled_accelerations(
            twin, drivers, self.normal(key, CARS), tick, params
        )
        ego_pedal = self.uncontrolled_accelerations(
            fleet, drivers, jnp.zeros(CARS, self.dtype), tick, params
        )[:1]
        requested = BRAKING * action[:, 0]
        safe_pedal = safe_acceleration(fleet.gap, fleet.v, leader_value(fleet.v))[1:]
        pedal = jnp.stack(
            [twin_pedal, jnp.concatenate([ego_pedal, jnp.minimum(requested, safe_pedal)])]
        )
        ring = move(state.ring, pedal)
        acceleration = (ring.v - state.ring.v) * (1 / TICK)
        values = ring.v, ring.gap, acceleration
        counts = jnp.stack(
            [
                count_below(value[:, 1:], grid)
                for value, grid in zip(values, GRIDS.values(), strict=True)
            ],
            1,
        )
        goal = COMMANDED_JAM_GAP + ring.v[1] * params.command
        error = ERROR_UNITS * jnp.minimum(jnp.abs(ring.gap[1] - goal) / goal, 1)
        is_counted = (params.command > 0) & (state.steps >= GRACE_TICKS)
        return State(
            ring,
            acceleration,
            state.record,
            state.below + counts,
            state.error
            + jnp.where(is_counted, jnp.round(error), 0).astype(jnp.int32).sum(dtype=jnp.int32),
            state.overruled + (requested > safe_pedal + MIN_OVERRULED_EXCESS).sum(dtype=jnp.int32),
            state.steps + 1,
        )

    def distances(self, state: State) -> tuple[jax.Array, jax.Array]:
        """Return the distances to the twin, and those of the twin to the best constant.

        Both are counted in bins times samples, ``(3,)``.
        """
        twin, fleet = state.below
        return distance(twin, fleet), spread(twin, AGENTS * state.steps)

    def realism(self, state: State) -> jax.Array:
        """Return the realism of speeds, gaps and accelerations, ``(3,)``."""
        to_twin, to_constant = (bins.astype(self.dtype) for bins in self.distances(state))
        return jnp.clip(1 - 2 * to_twin / jnp.maximum(to_constant, 1), 0, 1)

    def obedience(self, state: State, params: Params) -> jax.Array:
        """Return the obedience, 1 before commands count."""
        times = (params.command > 0).sum(dtype=jnp.int32) * jnp.maximum(
            state.steps - GRACE_TICKS, 0
        )
        mean = state.error.astype(self.dtype) / (ERROR_UNITS * jnp.maximum(times, 1))
        return jnp.maximum(1 - OBEDIENCE_LOSS * mean, 0)

    def return_so_far(self, state: State, params: Params) -> jax.Array:
        """Return the return so far."""
        speed, gap, acceleration = self.realism(state)
        mean = (speed + gap + acceleration + self.obedience(state, params)) * 0.25
        exact = jnp.round(mean * state.steps * (100 / self.card.horizon * RETURN_UNITS)) * (
            1 / RETURN_UNITS
        )
        return exact.astype(self.dtype)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return what the step has earned, for every agent."""
        return jnp.broadcast_to(
            self.return_so_far(next_state, params) - self.return_so_far(state, params), (AGENTS,)
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only time ends an episode."""
        return jnp.bool_(False)

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return how many cars braked by themselves."""
        return (next_state.overruled - state.overruled).astype(self.dtype)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        realism = self.realism(state)
        obedience = self.obedience(state, params)
        to_twin = self.distances(state)[0].astype(self.dtype) / (
            AGENTS * jnp.maximum(state.steps, 1)
        )
        return {
            "success": (realism >= MIN_SUCCESS_REALISM).all()
            & (obedience >= MIN_SUCCESS_REALISM)
            & (state.steps > GRACE_TICKS),
            **{f"{name}_realism": realism[i] for i, name in enumerate(GRIDS)},
            "obedience": obedience,
            **{
                f"{name}_distance": to_twin[i] * grid.width
                for i, (name, grid) in enumerate(GRIDS.items())
            },
            "overruled": state.overruled,
        }

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the observation of each car, ``(23, 14)``; see the table."""
        ring = Ring(state.ring.gap[1], state.ring.v[1])
        acceleration = state.acceleration[1]
        record = state.record
        columns = (
            ring.v * (1 / SPEED_SCALE),
            ring.gap * (1 / GAP_SCALE),
            leader_value(ring.v) * (1 / SPEED_SCALE),
            acceleration * (1 / BRAKING),
            leader_value(acceleration) * (1 / BRAKING),
            params.command > 0,
            params.command * (1 / COMMAND_SCALE),
            record.speed * (1 / SPEED_SCALE),
            record.gap * (1 / GAP_SCALE),
            jnp.sqrt(0.5 * record.change) * (1 / RANDOM_SCALE),
            record.fastest * (1 / SPEED_SCALE),
            self.normal(key, CARS) * (1 / CHANCE_SCALE),
            params.limit * (1 / SPEED_SCALE),
            state.steps * (1 / self.card.horizon),
        )
        entries = jnp.stack(
            [jnp.broadcast_to(column, CARS).astype(self.dtype) for column in columns], -1
        )[1:]
        box: Any = self.observation_space
        return jnp.clip(entries, box.low, box.high)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each car; see the table."""
        speed, gap, pedal = f"{SPEED_SCALE:g} m/s", f"{GAP_SCALE:g} m", f"{BRAKING:g} m/s^2"
        return (
            Component("speed", "of the car", speed),
            Component("gap", "to the leader", gap),
            Component("leader_speed", "speed of the leader", speed),
            Component("acceleration", "of the car in the last tick", pedal),
            Component("leader_acceleration", "of the leader in the last tick", pedal),
            Component("commanded", "1 if the car has a command"),
            Component("command", "commanded time gap, 0 without a command", f"{COMMAND_SCALE:g} s"),
            Component("watched_speed", "mean speed of the driver while watched", speed),
            Component("watched_gap", "mean gap of the driver while watched", gap),
            Component(
                "watched_random",
                "standard deviation of random accelerations while watched",
                f"{RANDOM_SCALE:g} m/s^2",
            ),
            Component("watched_fastest", "largest speed of the driver while watched", speed),
            Component("chance", "standard normal number, new at each step", f"{CHANCE_SCALE:g}"),
            Component("limit", "speed limit", speed),
            Component("time", "since the start", f"{TICK * self.card.horizon:g} s"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the entry of each car."""
        return (Component("acceleration", "of the car", f"{BRAKING:g} m/s^2"),)

    # -- words and pictures ------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with {AGENTS} numbers from -1 to 1, agent_0 first: accelerations by "
            f"{BRAKING:g} m/s^2."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe every car, its driver while watched, and its command."""
        gap, v, acceleration = (
            np.asarray(values[1]) for values in (*state.ring, state.acceleration)
        )
        record = Record(*map(np.asarray, state.record))
        command = np.asarray(params.command)
        lines = [
            (
                f"Speed limit {float(params.limit):.1f} m/s; {TICK * int(state.steps):g} s since "
                "the start."
            )
        ]
        for car in range(CARS):
            who = f"agent_{car - 1}" if car else "ego"
            leader = f"agent_{(car or CARS) - 2}" if car != 1 else "ego"
            lines.append(
                f"{who}: {v[car]:.1f} m/s, {acceleration[car]:+.2f} m/s^2, {gap[car]:.1f} m behind "
                f"{leader}"
            )
            if car:
                random = float(np.sqrt(0.5 * record.change[car]))
                lines[-1] += (
                    f"; its driver drove {record.speed[car]:.1f} m/s (at most "
                    f"{record.fastest[car]:.1f}) with a gap of {record.gap[car]:.1f} m and random "
                    f"accelerations of {random:.2f} m/s^2"
                )
            if command[car] > 0:
                lines[-1] += f"; keep a time gap of {command[car]:.2f} s"
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the road, the twin within it, and the distributions of both."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "darkseagreen")
        gaps = np.asarray(state.ring.gap, np.float64)
        lengths = gaps + LENGTH
        # Of a ring, behind the ego.
        place = (np.cumsum(lengths, -1) - lengths) / lengths.sum(-1, keepdims=True)
        shares = np.asarray(state.below, np.float64) / max(AGENTS * int(state.steps), 1)
        draw_ring(image, place, np.asarray(params.command) > 0, shares, tuple(GRIDS))
        return np.asarray(image)


def obedient_drivers(params: Params) -> Driver:
    """Return the drivers, of whom those with commands obey."""
    driver = params.driver
    commanded = params.command > 0
    return driver._replace(
        desired_speed=jnp.where(
            commanded, OBEDIENT_SPEED_FACTOR * params.limit, driver.desired_speed
        ),
        time_gap=jnp.where(commanded, params.command, driver.time_gap),
        jam_gap=jnp.where(commanded, COMMANDED_JAM_GAP, driver.jam_gap),
    )

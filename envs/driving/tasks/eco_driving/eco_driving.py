"""Save CO2 at traffic lights.

Some of the cars at a junction know the signal plan and ease off in time.

Four approaches of one lane each meet at a junction with fixed-time signals: phase 0 is for north
and south, phase 1 for east and west. Cars arrive at random for 100 s, follow each other by the
Intelligent Driver Model, stop at red, discharge at green and leave 150 m behind the line
(``approach.py``, ``signal_plan.py``). The episode ends when all have left. A share of the cars, the
penetration, is controlled; each of them is an agent. An agent may only drive more gently than its
driver would: it eases off the acceleration that the driver chooses. Once the driver has decided to
pass at amber, it may not even do that. So agents cannot run a red light, tailgate or crash.

A twin of the episode runs beside: the same cars, drivers and lights without agents. The reward is
the CO2 that the fleet, humans included, emits less than its twin, so that human driving earns
exactly 0. Every journey counts as a whole, by three rules: cars that find no room wait at the entry
with their engines idling; a car that leaves slower than it wants to drive is charged what getting
there will emit; the inflow ends long before the time limit.

======================  ============================================================================
agents                  48: 12 slots a lane in the order of arrival, agent 12 l + i is car i of lane
                        l (north, south, east, west). Actions of absent agents and of human cars
                        have no effect
action ``(48, 1)``      once a second, of each car in [-1, 1]: 1 is 1.5 m/s^2 less than its driver
                        would accelerate, 0 and below leave the driver alone
observation ``(48,      of each car, 0 if it is no agent on the road: 1; its speed (by 15 m/s); way
20)``                   to the stop line (by 250 m, negative behind it); gap to the leader (by 250
                        m, 1 if larger or none), its speed (by 15 m/s), 1 if it is controlled; gap
                        to the follower and its speed, likewise; acceleration that the car's driver
                        chooses (by 4.5 m/s^2, cut off at +-1); cars between it and the line (by
                        12). Of its lane: green, amber, red (1 or 0); time until the next green
                        begins (0 at green) and until this green or else the next one ends (by 90
                        s); green and rest of the cycle (by 90 s); length of the approach (by 250
                        m), speed limit (by 15 m/s), penetration
reward                  the same for all agents: CO2 of the twin less that of the fleet in this
                        second, g per car of the episode
terminated              all cars have left, in the twin too
success                 all have left; for each controlled car the fleet emitted less than its twin
                        by at least 3 % of what a car of the twin emits on average; and the delay is
                        at most 1 s a car
cost                    delay, s per car of the episode: cars that have left in the twin and not
                        here, counted lane by lane once a second
context                 approach 150..350 m, in bands of 10 m alternately of train and test; speed
                        limit 11..17 m/s; greens 15..35 s of each phase in steps of half a second,
                        offset; demand of each lane 150..400 cars an hour, headways of at least 2 s,
                        exponential beyond (the first 12 cars); drivers: desired speed .85..1 of the
                        limit, time gap .8..1.2 s, jam gap 1.6..2.4 m, acceleration .8..1.2 m/s^2,
                        comfortable deceleration 1.2..1.8 m/s^2; which cars are controlled
difficulty              penetration, 0 to 1
======================  ============================================================================

Differences from IntersectionZoo: no turns and no lane changes (``eco_driving_lanes.py`` has both),
passenger cars only, no weather; own CO2 model (``emissions.py``) instead of MOVES; agents ease off
instead of choosing any acceleration; one unit for all times; the reward compares with a twin
(there: speed less a penalty for standing and for CO2); journeys are counted to the end (there: on
the approach only). Drivers have the parameters of city traffic of Treiber & Kesting, not those
fitted there.

Sources: Jayawardana et al. 2025, arXiv:2410.15221 (IntersectionZoo); Jayawardana et al. 2024,
arXiv:2408.05609 (11 to 22 % of CO2 at intersections at full penetration); Treiber & Kesting,
Traffic Flow Dynamics (2013), table 11.2.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once

from ....shared.alternating_bands import alternating_bands
from ...arrays import Scalar
from ...roads.signal_plan import TICK, Lights, Plan, light_name, lights
from ...traffic.approach import (
    EXIT_DISTANCE,
    LENGTH,
    OUTSIDE_PLACE,
    Ahead,
    Traffic,
    enter,
    holds,
    intention,
    leaders,
    move,
)
from ...traffic.car_following import Driver
from ...vehicle.emissions import CAR, Engine, co2, fuel

LANES = 4
SLOTS = 12  # Cars of a lane at most
TICKS_PER_STEP = 2  # Ticks of a step
MAX_EASE = 1.5  # m/s^2 by which an agent accelerates less than its driver would
INFLOW_SECONDS = 100.0  # s: no car arrives later
MIN_HEADWAY = 2.0  # s
NEVER = 1_000_000  # Tick of arrival of an empty slot
# % of the emission of a car for each controlled car: least saving of a success. The share of
# controlled cars bounds what the fleet can save, so that a fixed part of the whole would be a
# matter of luck where few cars are controlled.
MIN_SAVING = 3.0
MAX_DELAY = 1.0  # s per car: largest delay of a success
SPEED_SCALE = 15.0  # m/s that are shown as 1
DISTANCE_SCALE = 250.0  # m that are shown as 1
TIME_SCALE = 90.0  # s that are shown as 1
PEDAL_SCALE = 4.5  # m/s^2 that are shown as 1
NAMES = ("north", "south", "east", "west")
LIGHT_COLOURS = {"green": "lime", "amber": "orange", "red": "red"}  # of pictures
GRAM = 1e-3  # g in a mg
MAX_REWARD = 60.0  # g per car: no step emits more, and none saves more
FREE_GAP = 2 * DISTANCE_SCALE  # m: gap to a follower that does not exist; shown as 1


class Entry(IntEnum):
    """Entries of a car's observation, in order."""

    AGENT = 0
    SPEED = 1
    TO_LINE = 2
    GAP = 3
    LEADER_SPEED = 4
    LEADER_CONTROLLED = 5
    GAP_BEHIND = 6
    FOLLOWER_SPEED = 7
    DRIVER = 8
    BETWEEN = 9
    GREEN_LIGHT = 10
    AMBER_LIGHT = 11
    RED_LIGHT = 12
    TO_GREEN = 13
    TO_AMBER = 14
    GREEN = 15
    NOT_GREEN = 16
    APPROACH = 17
    LIMIT = 18
    PENETRATION = 19


class Params(NamedTuple):
    """The context. Fields of drivers and cars are ``(lanes, slots)``."""

    approach: Scalar  # m from the entry to the stop line
    limit: Scalar  # m/s
    plan: Plan
    driver: Driver
    arrival: Scalar  # int32: tick at which the car reaches the entry, or NEVER
    controlled: Scalar  # bool
    cars: Scalar  # Cars of the episode, at least 1


class State(NamedTuple):
    """The twin (index 0) and the fleet (index 1), and their records so far."""

    traffic: Traffic  # Each field ``(2, lanes, slots)``
    tick: Scalar  # int32
    # mg of both, int32 ``(2,)``: whole numbers, so that sums do not depend on their order
    co2: Scalar
    fuel: Scalar  # ul (1e-6 L) of both, int32 ``(2,)``
    delay: Scalar  # s of all cars, int32


class Around(NamedTuple):
    """Surroundings of every car, each field ``(lanes, slots)``."""

    gap: Scalar  # m to the leader
    leader_speed: Scalar  # m/s; 0 without one
    led: Scalar  # bool: the leader is controlled
    gap_behind: Scalar  # m to the follower; FREE_GAP without one
    follower_speed: Scalar  # m/s; 0 without one
    intention: Scalar  # m/s^2: acceleration that the driver chooses
    between: Scalar  # Cars between it and the line


class EcoDriving(Task[Params, State]):
    """The task of this file's docstring."""

    period = TICKS_PER_STEP * TICK
    lanes = LANES
    measures: ClassVar[dict[str, str]] = {
        "saving": "CO2 of the fleet less than that of its twin so far, %",
        "fuel_saving": "the same of fuel, by another model, %",
        "co2_per_car": "CO2 of the fleet so far per car of the episode, g",
        "delay": "mean delay of a car against the twin so far, s",
        "left": "cars that have left",
    }
    picture_shape = (380, 720, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 0 <= difficulty <= 1:
            raise ValueError(
                f"The difficulty of {card.id} is a penetration of 0 to 1, got {difficulty!r}."
            )
        self.penetration = float(difficulty)
        self.observation_space = self.box(*bounds(), (LANES * SLOTS, len(Entry)))
        self.action_space = self.box(-1, 1, (LANES * SLOTS, 1))
        self.reward_space = self.box(-MAX_REWARD, MAX_REWARD, (LANES * SLOTS,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample junction, signals, demand and drivers."""
        lanes = self.lanes
        u = self.uniform(key, 5 + lanes + 7 * lanes * SLOTS)
        cars = u[5 + lanes :].reshape(7, lanes, SLOTS)
        limit = 11 + 6 * u[1]
        greens = 30 + jnp.floor(41 * u[2:4]).astype(jnp.int32)
        plan = Plan(greens[0], greens[1], jnp.int32(0)).start_at(u[4])
        arrival = arrivals(150 + 250 * u[5 : 5 + lanes, None], cars[0])
        return Params(
            approach=alternating_bands(u[0], split, 150.0, 350.0, bands=20),
            limit=limit,
            plan=plan,
            driver=drivers(limit, cars[1:6]),
            arrival=arrival,
            controlled=cars[6] < self.penetration,
            cars=jnp.maximum((arrival < NEVER).sum(), 1).astype(self.dtype),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start with empty roads."""
        shape = 2, self.lanes, SLOTS
        nobody = Traffic(
            jnp.full(shape, OUTSIDE_PLACE, self.dtype),
            jnp.zeros(shape, self.dtype),
            jnp.zeros(shape, bool),
        )
        none = jnp.zeros(2, jnp.int32)
        return State(nobody, jnp.int32(0), none, none, jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive for a second."""
        off = MAX_EASE * jnp.maximum(self.per_car(action), 0) * params.controlled
        state = jax.lax.fori_loop(
            0, TICKS_PER_STEP, lambda _, state: self.drive(state, off, params), state
        )
        num_left = has_left(state, params).sum(-1)
        return state._replace(
            delay=state.delay + jnp.maximum(num_left[0] - num_left[1], 0).sum().astype(jnp.int32)
        )

    def per_car(self, action: jax.Array) -> jax.Array:
        """Return the action for each car, such that it broadcasts to ``(lanes, slots)``."""
        return action.reshape(self.lanes, SLOTS)

    def lights(self, params: Params, tick: Scalar) -> Lights:
        """Return the lights of every lane, each field ``(lanes, 1)``."""
        return Lights(*(self.per_lane(value) for value in lights(params.plan, tick)))

    def per_lane(self, values: jax.Array) -> jax.Array:
        """Return an attribute of both phases for every lane, ``(lanes, 1)``."""
        return jnp.repeat(values, LANES // 2)[: self.lanes, None]

    def lengths(self, params: Any) -> Scalar:
        """Return the length of every vehicle, m."""
        return LENGTH

    def engines(self, params: Any) -> Engine:
        """Return the engine of every vehicle."""
        return CAR

    def petrol_consumption(self, speed: Scalar, acceleration: Scalar, params: Any) -> jax.Array:
        """Return the consumption of petrol, L/s."""
        return fuel(speed, acceleration)

    def drive(self, state: State, off: jax.Array, params: Params) -> State:
        """Return the state a tick later, in which agents accelerate less by ``off``.

        ``off`` has the shape ``(lanes, slots)`` and is in m/s^2.
        """
        line = params.approach
        traffic = state.traffic
        light = self.lights(params, state.tick)
        traffic = traffic._replace(stops_at_light=holds(traffic, light, line))
        ahead, intended = self.look_ahead(traffic, params)
        is_inside = (traffic.x >= 0) & (traffic.x < line + EXIT_DISTANCE)
        # Who drives on at amber clears the line before red, agents too.
        bound = (traffic.x < line) & ~traffic.stops_at_light & ~light.green
        eased = jnp.where(is_inside & ~bound, jnp.stack([jnp.zeros_like(off), off]), 0)
        next_traffic = computed_once(move)(traffic, ahead, intended - eased, line)
        return self.count_emissions(state, traffic, next_traffic, params)._replace(
            traffic=self.admit_arrivals(state, next_traffic, params)
        )

    def look_ahead(self, traffic: Traffic, params: Params) -> tuple[Ahead, jax.Array]:
        """Return the leaders, and the accelerations that the drivers choose."""
        ahead = leaders(traffic.x, traffic.v, traffic.x, self.lengths(params))
        return ahead, intention(traffic, ahead, params.driver, params.approach)

    def admit_arrivals(self, state: State, traffic: Traffic, params: Params) -> Traffic:
        """Return the traffic with those that enter."""
        return enter(traffic, params.driver, params.arrival <= state.tick, self.lengths(params))

    def count_emissions(
        self, state: State, traffic: Traffic, next_traffic: Traffic, params: Params
    ) -> State:
        """Return the state a tick later, with what this tick emits."""
        out = params.approach + EXIT_DISTANCE
        is_inside = (traffic.x >= 0) & (traffic.x < out)
        speed = 0.5 * (traffic.v + next_traffic.v)
        acceleration = (next_traffic.v - traffic.v) * (1 / TICK)
        waits = (traffic.x < 0) & (params.arrival <= state.tick)
        leaves = is_inside & (next_traffic.x >= out)
        engine = self.engines(params)
        emission = jnp.where(
            is_inside,
            TICK * co2(speed, acceleration, engine),
            jnp.where(waits, TICK * engine.idle, 0),
        )
        emission = emission + jnp.where(leaves, self.later_co2(next_traffic, params), 0)
        consumption = jnp.where(
            is_inside | waits, TICK * 1e6 * self.petrol_consumption(speed, acceleration, params), 0
        )
        return state._replace(
            traffic=next_traffic,
            tick=state.tick + 1,
            co2=state.co2 + rounded_sums(emission),
            fuel=state.fuel + rounded_sums(consumption),
        )

    def later_co2(self, traffic: Traffic, params: Params) -> jax.Array:
        """Return the CO2 that each will emit for its journey behind the exit, mg."""
        # A change of speed emits the same at any acceleration, so this is what regaining the
        # desired speed will emit.
        desired = params.driver.desired_speed
        missing_square = jnp.maximum(desired * desired - traffic.v * traffic.v, 0)
        return 0.5 * self.engines(params).kinetic * missing_square

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the observation of each car, ``(48, 20)``; see the table."""
        return self.car_observations(state, params)

    def car_observations(self, state: State, params: Params) -> jax.Array:
        """Return what each car observes if it is controlled, ``(lanes * slots, 20)``."""
        fleet = jax.tree.map(lambda value: value[1], state.traffic)
        light = self.lights(params, state.tick)
        line = params.approach
        fleet = fleet._replace(stops_at_light=holds(fleet, light, line))
        around = self.surroundings(fleet, params)
        cycle = params.plan.cycle
        seconds = TICK / TIME_SCALE
        green = self.per_lane(jnp.stack([params.plan.first, params.plan.second]))
        agent = (fleet.x >= 0) & (fleet.x < line + EXIT_DISTANCE) & params.controlled
        ego_columns = (
            jnp.ones_like(agent),
            fleet.v * (1 / SPEED_SCALE),
            (line - fleet.x) * (1 / DISTANCE_SCALE),
            jnp.minimum(around.gap * (1 / DISTANCE_SCALE), 1),
            around.leader_speed * (1 / SPEED_SCALE),
            around.led,
            jnp.minimum(around.gap_behind * (1 / DISTANCE_SCALE), 1),
            around.follower_speed * (1 / SPEED_SCALE),
            around.intention * (1 / PEDAL_SCALE),
            around.between * (1 / SLOTS),
        )
        road_columns = (
            light.green,
            light.amber,
            ~(light.green | light.amber),
            light.to_green * seconds,
            light.to_amber * seconds,
            green * seconds,
            (cycle - green) * seconds,
            line * (1 / DISTANCE_SCALE),
            params.limit * (1 / SPEED_SCALE),
            jnp.full_like(line, self.penetration),
        )
        columns = *(jnp.where(agent, column, 0) for column in ego_columns), *road_columns
        observation = jnp.stack(
            [jnp.broadcast_to(column, agent.shape).astype(self.dtype) for column in columns], -1
        )
        low, high = (bound.astype(self.dtype) for bound in bounds())
        return jnp.clip(observation.reshape(self.lanes * SLOTS, len(columns)), low, high)

    def surroundings(self, fleet: Traffic, params: Params) -> Around:
        """Return what is around every car."""
        ahead, intention = self.look_ahead(fleet, params)
        on = fleet.x >= 0
        last = jnp.arange(SLOTS) == SLOTS - 1
        follows = jnp.roll(on, -1, -1) & ~last
        approaching = on & (fleet.x < params.approach)
        # Cars keep their order, so those between a car and the line are the slots from the first
        # that approaches.
        first = jnp.where(approaching, np.arange(SLOTS), SLOTS).min(-1, keepdims=True)
        return Around(
            gap=ahead.gap,
            leader_speed=ahead.v,
            led=jnp.roll(params.controlled & on, 1, -1) & (np.arange(SLOTS) > 0),
            gap_behind=jnp.where(follows, jnp.roll(ahead.gap, -1, -1), FREE_GAP),
            follower_speed=jnp.where(follows, jnp.roll(fleet.v, -1, -1), 0),
            intention=intention,
            between=jnp.where(approaching, np.arange(SLOTS) - first, 0),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each car; see the table."""
        speed, distance, time = f"{SPEED_SCALE:g} m/s", f"{DISTANCE_SCALE:g} m", f"{TIME_SCALE:g} s"
        return (
            Component(
                "agent",
                "1 if the car is an agent on the road, else it and the next nine entries are 0",
            ),
            Component("speed", "of the car", speed),
            Component("way", "to the stop line, negative behind it", distance),
            Component("gap", "to the leader, 1 if larger or none", distance),
            Component("leader_speed", "speed of the leader, 0 without one", speed),
            Component("leader_controlled", "1 if the leader is controlled"),
            Component("gap_behind", "to the follower, 1 if larger or none", distance),
            Component("follower_speed", "speed of the follower, 0 without one", speed),
            Component("driver", "acceleration that the driver chooses", f"{PEDAL_SCALE:g} m/s^2"),
            Component("between", "cars between it and the line, moving or not", f"{SLOTS} cars"),
            Component("light", "1 for green, amber, red", "1", (3,)),
            Component("to_green", "until the next green begins, 0 at green", time),
            Component("to_amber", "until this green ends, or else the next one", time),
            Component("green", "duration of the lane's green", time),
            Component("rest", "duration of the cycle less that green", time),
            Component("approach", "way from the entry to the line", distance),
            Component("limit", "speed limit", speed),
            Component("penetration", "share of cars that are controlled"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the entry of each car."""
        return (
            Component(
                "ease",
                "acceleration less than the driver chooses; below 0 counts as 0",
                f"{MAX_EASE:g} m/s^2",
            ),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the CO2 saved in this step, g per car, for every agent."""
        return jnp.broadcast_to(self.co2_saving(state, next_state) / params.cars, (LANES * SLOTS,))

    def co2_saving(self, state: State, next_state: State) -> jax.Array:
        """Return the CO2 that the fleet emitted less than its twin in this step, g."""
        emitted = next_state.co2 - state.co2
        return (emitted[0] - emitted[1]).astype(self.dtype) * GRAM

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return the delay, s per car."""
        return (next_state.delay - state.delay).astype(self.dtype) / params.cars

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether all cars have left."""
        return have_all_left(state, params)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        saving = percent_saved(state.co2, self.dtype)
        delay = state.delay.astype(self.dtype) / params.cars
        controlled = (params.controlled & (params.arrival < NEVER)).sum(dtype=jnp.int32)
        saves = (controlled > 0) & (saving * params.cars >= MIN_SAVING * controlled)
        return {
            "success": have_all_left(state, params) & saves & (delay <= MAX_DELAY),
            "saving": saving,
            "fuel_saving": percent_saved(state.fuel, self.dtype),
            "co2_per_car": state.co2[1].astype(self.dtype) * GRAM / params.cars,
            "delay": delay,
            "left": has_left(state, params)[1].sum().astype(jnp.int32),
        }

    # -- words and pictures ------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say that the road is empty, and what was saved."""
        return (
            f"all cars have left; the fleet emitted {float(info['saving']):.1f} % less CO2 than "
            "human drivers"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with {LANES * SLOTS} numbers from 0 to 1, agent_0 first: how much less each "
            f"accelerates than its driver would, 1 is {MAX_EASE:g} m/s^2. Numbers of cars that are "
            "not listed do not matter."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe the lights, and every agent on the road."""
        x, v = (np.asarray(value[1]) for value in (state.traffic.x, state.traffic.v))
        light = Lights(*(np.asarray(value) for value in lights(params.plan, state.tick)))
        lines = [
            (
                f"Speed limit {float(params.limit):.1f} m/s; {float(params.approach):.0f} m from "
                "entry to stop line. "
            )
            + self.describe_agents(x, params)
        ]
        for lane, name in enumerate(NAMES[: self.lanes]):
            p = lane // 2
            colour = light_name(light, p)
            lines.append(
                f"{name}: {colour}, green begins in {TICK * int(light.to_green[p]):g} s and ends "
                f"in {TICK * int(light.to_amber[p]):g} s"
            )
            for slot in range(SLOTS):
                if 0 <= x[lane, slot] < float(params.approach) + EXIT_DISTANCE:
                    who = (
                        self.name_agent(lane, slot) if params.controlled[lane, slot] else "a human"
                    )
                    to_line = float(params.approach) - x[lane, slot]
                    lines.append(
                        f"  {who}: {to_line:.1f} m before the line, {v[lane, slot]:.1f} m/s"
                    )
        return "\n".join(lines)

    def describe_agents(self, x: np.ndarray, params: Params) -> str:
        """Say how many agents have entered."""
        return (
            f"{int((np.asarray(params.controlled) & (x >= 0)).sum())} agents have entered so far."
        )

    def name_agent(self, lane: int, slot: int) -> str:
        """Name an agent."""
        return f"agent_{SLOTS * lane + slot}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw each lane from above; cars drive from left to right.

        Agents are green and humans blue. The twin is grey, below each lane.
        """
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "darkseagreen")
        canvas = ImageDraw.Draw(image)
        line = float(params.approach)
        scale = (width - 40) / (line + EXIT_DISTANCE)
        light = lights(params.plan, state.tick)
        length = np.broadcast_to(np.asarray(self.lengths(params)), (self.lanes, SLOTS))
        for lane, name in enumerate(NAMES[: self.lanes]):
            top = 25 + 90 * lane
            canvas.text((6, top - 16), name, fill="black")
            canvas.rectangle((0, top, width, top + 24), fill="dimgray")
            canvas.rectangle((0, top + 32, width, top + 46), fill="gray")
            light_colour = LIGHT_COLOURS[light_name(light, lane // 2)]
            line_x = 20 + scale * line
            canvas.rectangle((line_x, top, line_x + 3, top + 46), fill=light_colour)
            for world, y, half in ((1, top + 12, 8), (0, top + 39, 4)):
                for slot in range(SLOTS):
                    x = float(state.traffic.x[world, lane, slot])
                    if 0 <= x < line + EXIT_DISTANCE:
                        colour = "lime" if params.controlled[lane, slot] else "deepskyblue"
                        right = 20 + scale * x
                        box = (right - scale * float(length[lane, slot]), y - half, right, y + half)
                        canvas.rectangle(
                            box, fill=colour if world else "lightgray", outline="black"
                        )
        return np.asarray(image)


def bounds() -> tuple[np.ndarray, np.ndarray]:
    """Return the least and largest observation of a car, each ``(20,)``."""
    low, high = np.zeros(len(Entry)), np.ones(len(Entry))
    low[Entry.TO_LINE] = -0.6
    low[Entry.DRIVER] = -1
    high[[Entry.SPEED, Entry.LEADER_SPEED, Entry.FOLLOWER_SPEED, Entry.LIMIT]] = 1.2
    high[[Entry.TO_LINE, Entry.APPROACH]] = 1.4
    return low, high


def arrivals(demand: jax.Array, u: jax.Array) -> jax.Array:
    """Return ticks of arrival for a demand, vehicles per hour, ``(lanes, slots)``.

    ``u`` are uniform numbers of that shape.
    """
    mean = 3600 / demand
    headways = jnp.ceil((MIN_HEADWAY - (mean - MIN_HEADWAY) * jnp.log1p(-u)) / TICK).astype(
        jnp.int32
    )
    arrival = jnp.cumsum(headways, -1)
    return jnp.where(arrival <= int(INFLOW_SECONDS / TICK), arrival, NEVER)


def drivers(limit: jax.Array, u: jax.Array) -> Driver:
    """Return drivers of cars for uniform numbers ``(5, lanes, slots)``."""
    return Driver(
        desired_speed=limit * (0.85 + 0.15 * u[0]),
        time_gap=0.8 + 0.4 * u[1],
        jam_gap=1.6 + 0.8 * u[2],
        acceleration=0.8 + 0.4 * u[3],
        deceleration=1.2 + 0.6 * u[4],
    )


def has_left(state: State, params: Params) -> jax.Array:
    """Return who has left, ``(2, lanes, slots)``."""
    return state.traffic.x >= params.approach + EXIT_DISTANCE


def have_all_left(state: State, params: Params) -> jax.Array:
    """Return whether all cars have left."""
    return (has_left(state, params) | (params.arrival == NEVER)).all()


def rounded_sums(amounts: jax.Array) -> jax.Array:
    """Return the sums of both worlds, ``(2,)`` int32, of amounts rounded to whole numbers.

    They are rounded first, so that a sum does not depend on the order of the amounts.
    """
    return jnp.round(amounts).astype(jnp.int32).sum((-2, -1), dtype=jnp.int32)


def percent_saved(amounts: jax.Array, dtype: Any) -> jax.Array:
    """Return by how many percent the fleet has less than its twin."""
    return 100 * (amounts[0] - amounts[1]).astype(dtype) / jnp.maximum(amounts[0], 1).astype(dtype)

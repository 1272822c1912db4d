"""Save CO2 at traffic lights of roads with lanes: ``EcoDriving`` with lane changes and turns.

Two roads of two lanes meet, from the south (phase 0) and from the west (phase 1). From the right
lane cars go straight on or turn right, from the left lane straight on or left. No traffic comes
from north and east, so a car that turns left crosses nobody, and all movements of an approach are
green together. Drivers change lanes for their turns, and because the other lane is faster
(``approach_lanes.py``). Agents do not change that: lane changes are the drivers' business, in the
twin, too.

A driver who reaches the solid line in the wrong lane goes straight on, and is charged a detour of
DETOUR_LENGTH m at its desired speed, in the twin, too. Otherwise, whoever keeps others from turning
could save the CO2 of their turns. Behind the line, what is between the approaches is time alone: 2
s of all red, as in ``EcoDriving``.

The twin, the reward, the cost, success, the end and what agents may do are those of
``eco_driving.py``. So is the context, with lanes as they are numbered here, and with these
additions:

======================  ============================================================================
agents                  48: 24 slots an approach, of which the first 12 enter in the right lane and
                        the others in the left lane; agent 12 l + i is car i of lane l (south right
                        and left, west right and left)
observation ``(48,      of each car, 20 entries as in ``EcoDriving``, where leader and follower are
31)``                   those of its lane or its movement, and cars between it and the line those of
                        its lane; then, 0 if it is no agent on the road: 1 in the left lane; it goes
                        right, straight on, left (1 or 0); largest speed in the junction (by 15
                        m/s), the speed limit for straight on; turning cars between it and the line
                        (by 12); 1 if it is in the wrong lane. In the other lane, until the line:
                        gap to the leader (by 250 m, 1 if larger or none, negative beside it) and
                        its speed (by 15 m/s), gap to the follower and its speed
cost                    delay, s per car: cars that have left in the twin and not here, counted
                        approach by approach
context                 shares of right and of left turns, 5 to 30 % each, of each approach
======================  ============================================================================

Differences from IntersectionZoo, beyond those of ``EcoDriving``: two approaches instead of four; no
oncoming traffic and no pedestrians; every approach has two lanes; MOBIL instead of SUMO's LC2013;
agents do not change lanes.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from ...arrays import Scalar
from ...players.speed_advice import SpeedAdvice
from ...roads.signal_plan import TICK, Plan, light_name, lights
from ...traffic import approach_lanes
from ...traffic.approach import EXIT_DISTANCE, LENGTH, OUTSIDE_PLACE, Ahead, holds
from ...traffic.approach_lanes import (
    BENDS,
    LEFT,
    RIGHT,
    SOLID_LINE_LENGTH,
    STRAIGHT,
    TURN_SPEEDS,
    LaneTraffic,
    count_ahead,
    expected_way,
    find_nearest,
    intended_acceleration,
    is_in_wrong_lane,
    neighbour_values,
    order_number,
    order_numbers,
    see_leaders,
    way_value,
)
from ...traffic.car_following import Driver
from ...vehicle.emissions import co2
from .eco_driving import (
    DISTANCE_SCALE,
    FREE_GAP,
    LANES,
    LIGHT_COLOURS,
    SLOTS,
    SPEED_SCALE,
    TICKS_PER_STEP,
    Around,
    EcoDriving,
    Entry,
    Params,
    bounds,
)

APPROACHES = 2
NAMES = ("south", "west")
WAYS = ("right", "straight on", "left")
# Share of the cars that turn to one side.
MIN_TURN_SHARE = 0.05
MAX_TURN_SHARE = 0.3
DETOUR_LENGTH = 300.0  # m that a car drives more if it cannot turn
MAX_REWARD = 400.0  # g per car: no step emits more, and none saves more


class LanesParams(NamedTuple):
    """The context. Fields of drivers and cars are ``(approaches, slots)``."""

    approach: Scalar  # m from the entry to the stop line
    limit: Scalar  # m/s
    plan: Plan
    driver: Driver
    arrival: Scalar  # int32: tick at which the car reaches the entry, or NEVER
    controlled: Scalar  # bool
    cars: Scalar  # Cars of the episode, at least 1
    turn: Scalar  # int32: RIGHT, STRAIGHT or LEFT


class LanesState(NamedTuple):
    """The twin (index 0) and the fleet (index 1), and their records so far."""

    traffic: LaneTraffic  # Each field ``(2, approaches, slots)``
    tick: Scalar  # int32
    co2: Scalar  # mg of both, int32 ``(2,)``
    fuel: Scalar  # ul of both, int32 ``(2,)``
    delay: Scalar  # s of all cars, int32
    changes: Scalar  # Lane changes of both, int32 ``(2,)``


class EcoDrivingLanes(EcoDriving):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        **EcoDriving.measures,
        "changes": "lane changes so far per car of the episode",
        "missed": "part of the cars of the episode that could not turn as they wanted so far",
    }
    picture_shape = (420, 720, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        low, high = np.concatenate([bounds(), lane_bounds()], 1)
        self.observation_space = self.box(low, high, (LANES * SLOTS, len(low)))
        self.reward_space = self.box(-MAX_REWARD, MAX_REWARD, (LANES * SLOTS,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Any:
        """Sample the context of ``EcoDriving``, and where cars go."""
        params: Params = super().sample_params(key, split)
        shape = APPROACHES, LANES * SLOTS // APPROACHES
        u = self.uniform(jax.random.fold_in(key, 1), 2 * APPROACHES + LANES * SLOTS)
        shares = MIN_TURN_SHARE + (MAX_TURN_SHARE - MIN_TURN_SHARE) * u[: 2 * APPROACHES].reshape(
            2, APPROACHES, 1
        )
        goes = u[2 * APPROACHES :].reshape(shape)
        return LanesParams(
            approach=params.approach,
            limit=params.limit,
            plan=params.plan,
            driver=Driver(*(values.reshape(shape) for values in params.driver)),
            arrival=params.arrival.reshape(shape),
            controlled=params.controlled.reshape(shape),
            cars=params.cars,
            turn=jnp.where(
                goes < shares[0], RIGHT, jnp.where(goes > 1 - shares[1], LEFT, STRAIGHT)
            ).astype(jnp.int32),
        )

    def initial(self, key: jax.Array, params: Any) -> Any:
        """Start with empty roads."""
        shape = 2, *params.arrival.shape
        enters_left = np.broadcast_to(np.arange(shape[-1]) >= SLOTS, shape)
        still = jnp.zeros(shape, self.dtype)
        nobody = LaneTraffic(
            still + OUTSIDE_PLACE, still, jnp.zeros(shape, bool), jnp.asarray(enters_left)
        )
        none = jnp.zeros(2, jnp.int32)
        return LanesState(nobody, jnp.int32(0), none, none, jnp.int32(0), none)

    def transition(self, state: Any, action: jax.Array, key: jax.Array, params: Any) -> Any:
        """Let drivers change lanes, and drive for a second."""
        to_left = state.tick // TICKS_PER_STEP % 2 == 0
        stops_at_light = holds(state.traffic, self.lights(params, state.tick), params.approach)
        traffic = state.traffic._replace(stops_at_light=stops_at_light)
        changes = approach_lanes.changes_lane(
            traffic, params.turn, params.driver, params.approach, to_left
        )
        changed_state = state._replace(
            traffic=state.traffic._replace(left=state.traffic.left ^ changes),
            changes=state.changes + changes.sum((-2, -1), dtype=jnp.int32),
        )
        return super().transition(changed_state, action, key, params)

    def per_car(self, action: jax.Array) -> jax.Array:
        """Return the action for each car, ``(approaches, slots)``."""
        return action.reshape(APPROACHES, -1)

    def per_lane(self, values: jax.Array) -> jax.Array:
        """Return an attribute of both phases for every approach, ``(approaches, 1)``."""
        return values[:, None]

    def look_ahead(self, traffic: Any, params: Any) -> tuple[Ahead, jax.Array]:
        """Return the room before each car as a standing leader, and the chosen acceleration."""
        return approach_lanes.look_ahead(traffic, params.turn, params.driver, params.approach)

    def admit_arrivals(self, state: Any, traffic: Any, params: Any) -> Any:
        """Return the traffic with those that enter, in each lane in the order of arrival."""
        next_in_turn = (jnp.roll(traffic.x, 1, -1) >= 0) | (
            np.arange(traffic.x.shape[-1]) % SLOTS == 0
        )
        return approach_lanes.enter(
            traffic, params.driver, next_in_turn & (params.arrival <= state.tick)
        )

    def later_co2(self, traffic: Any, params: Any) -> jax.Array:
        """Return the CO2 that each will emit for its journey behind the exit, mg."""
        desired = params.driver.desired_speed
        detour = DETOUR_LENGTH * co2(desired, 0) / desired
        return super().later_co2(traffic, params) + jnp.where(
            is_in_wrong_lane(traffic, params.turn), detour, 0
        )

    def surroundings(self, fleet: Any, params: Any) -> Around:
        """Return what is around every car on its way."""
        turn, line = params.turn, params.approach
        number, from_number = order_numbers(fleet, turn, line)
        ahead = find_nearest(number, from_number, ahead=True)
        behind = find_nearest(number, number, ahead=False)
        leaders = see_leaders(fleet, ahead, fleet.x)
        gap, speed = leaders
        gap_behind = jnp.where(
            behind.exists, fleet.x - LENGTH - neighbour_values(fleet.x, behind.slot), FREE_GAP
        )
        first, last = gap[0] <= gap[1], gap_behind[0] <= gap_behind[1]
        led = neighbour_values(params.controlled, ahead.slot) & ahead.exists
        follower_speed = jnp.where(behind.exists, neighbour_values(fleet.v, behind.slot), 0)
        approaching = (fleet.x >= 0) & (fleet.x < line)
        return Around(
            gap=gap.min(0),
            leader_speed=jnp.where(first, speed[0], speed[1]),
            led=jnp.where(first, led[0], led[1]),
            gap_behind=gap_behind.min(0),
            follower_speed=jnp.where(last, follower_speed[0], follower_speed[1]),
            intention=intended_acceleration(fleet, leaders, turn, params.driver, line),
            between=jnp.where(approaching, count_ahead(number[0], from_number[0], approaching), 0),
        )

    def observation(self, state: Any, key: jax.Array, params: Any) -> jax.Array:
        """Return the observation of each car, ``(48, 31)``; see the docstring of this file."""
        shared_entries = self.car_observations(state, params)
        fleet = jax.tree.map(lambda value: value[1], state.traffic)
        line = params.approach
        approaching = (fleet.x >= 0) & (fleet.x < line)
        number, from_number = order_numbers(fleet, params.turn, line)
        turn = expected_way(fleet, params.turn, line)
        turning = approaching & (turn != STRAIGHT)
        beside = order_number(1 - fleet.left.astype(jnp.int32), fleet.x)
        ahead, behind = (find_nearest(number[0], beside, ahead=on) for on in (True, False))
        gap, speed = see_leaders(fleet, ahead, fleet.x)
        gap_behind = jnp.where(
            behind.exists, fleet.x - LENGTH - neighbour_values(fleet.x, behind.slot), FREE_GAP
        )
        columns = (
            fleet.left,
            turn == RIGHT,
            turn == STRAIGHT,
            turn == LEFT,
            jnp.minimum(way_value(TURN_SPEEDS, turn), params.limit) * (1 / SPEED_SCALE),
            jnp.where(approaching, count_ahead(number[0], from_number[0], turning), 0)
            * (1 / SLOTS),
            is_in_wrong_lane(fleet, params.turn),
            jnp.where(approaching, jnp.minimum(gap * (1 / DISTANCE_SCALE), 1), 1),
            jnp.where(approaching, speed, 0) * (1 / SPEED_SCALE),
            jnp.where(approaching, jnp.minimum(gap_behind * (1 / DISTANCE_SCALE), 1), 1),
            jnp.where(approaching & behind.exists, neighbour_values(fleet.v, behind.slot), 0)
            * (1 / SPEED_SCALE),
        )
        agent = shared_entries[:, Entry.AGENT, None] > 0
        lane_entries = jnp.stack([column.reshape(-1).astype(self.dtype) for column in columns], -1)
        low, high = (bound.astype(self.dtype) for bound in lane_bounds())
        return jnp.concatenate(
            [shared_entries, jnp.where(agent, jnp.clip(lane_entries, low, high), 0)], -1
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each car."""
        speed, distance = f"{SPEED_SCALE:g} m/s", f"{DISTANCE_SCALE:g} m"
        return (
            *super().observation_components(),
            Component(
                "left_lane",
                "1 in the left lane; this and the next entries are 0 if it is no agent on the road",
            ),
            Component("goes", "1 for right, straight on, left", "1", (3,)),
            Component("crossing_speed", "largest speed in the junction", speed),
            Component("turning_between", "turning cars between it and the line", f"{SLOTS} cars"),
            Component("wrong_lane", "1 if its lane does not lead where it wants to go"),
            Component(
                "side_gap",
                "to the leader in the other lane until the line, 1 if larger or none",
                distance,
            ),
            Component("side_speed", "speed of the leader in the other lane, 0 without one", speed),
            Component(
                "side_gap_behind",
                "to the follower in the other lane, 1 if larger or none",
                distance,
            ),
            Component(
                "side_follower_speed",
                "speed of the follower in the other lane, 0 without one",
                speed,
            ),
        )

    def info(self, state: Any, params: Any) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        has_passed = state.traffic.x[1] >= params.approach
        missed = (has_passed & is_in_wrong_lane(state.traffic, params.turn)[1]).sum(dtype=jnp.int32)
        return {
            **super().info(state, params),
            "changes": state.changes[1].astype(self.dtype) / params.cars,
            "missed": missed.astype(self.dtype) / params.cars,
        }

    # -- words and pictures ------------------------------------------------------------------------

    def describe(self, state: Any, params: Any) -> str:
        """Describe the lights, and every car on the road."""
        x, v, _, in_left = (np.asarray(value[1]) for value in state.traffic)
        line = float(params.approach)
        turn = np.asarray(params.turn)
        light = jax.tree.map(np.asarray, lights(params.plan, state.tick))
        lines = [
            f"Speed limit {float(params.limit):.1f} m/s; {line:.0f} m from entry to stop line, "
            f"{SOLID_LINE_LENGTH:g} m of solid line before it. {self.describe_agents(x, params)}"
        ]
        for approach, name in enumerate(NAMES):
            colour = light_name(light, approach)
            lines.append(
                f"from the {name}: {colour}, green begins in "
                f"{TICK * int(light.to_green[approach]):g} s and ends in "
                f"{TICK * int(light.to_amber[approach]):g} s"
            )
            for slot in np.argsort(-x[approach], kind="stable"):
                if 0 <= x[approach, slot] < line + EXIT_DISTANCE:
                    controlled = params.controlled[approach, slot]
                    who = (
                        self.name_agent(2 * approach + slot // SLOTS, slot % SLOTS)
                        if controlled
                        else "a human"
                    )
                    lines.append(
                        f"  {who}: {line - x[approach, slot]:.1f} m before the line, "
                        f"{v[approach, slot]:.1f} m/s, in the "
                        f"{'left' if in_left[approach, slot] else 'right'} lane, "
                        f"{WAYS[turn[approach, slot]]}"
                    )
        return "\n".join(lines)

    def draw(self, state: Any, params: Any) -> np.ndarray:
        """Draw both roads from left to right, agents green and humans blue, with their blinkers.

        Behind the line those who turned have lanes of their own, beside those of the others. The
        twin is below (grey).
        """
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "darkseagreen")
        canvas = ImageDraw.Draw(image)
        line = float(params.approach)
        scale = (width - 40) / (line + EXIT_DISTANCE)
        lane_width = 18
        light = lights(params.plan, state.tick)
        x, in_left = np.asarray(state.traffic.x), np.asarray(state.traffic.left)
        turn = np.asarray(params.turn)
        goes = np.asarray(expected_way(state.traffic, params.turn, line))
        for approach, name in enumerate(NAMES):
            for world, top in ((1, 22 + 205 * approach), (0, 128 + 205 * approach)):
                at_line = 20 + scale * line
                half = 7 if world else 4
                wide = lane_width if world else 11
                road = "dimgray" if world else "gray"
                canvas.rectangle((0, top + wide, at_line, top + 3 * wide), fill=road)
                canvas.rectangle((at_line, top, width, top + 4 * wide), fill=road)
                for begin in np.arange(0, line - SOLID_LINE_LENGTH, 10):
                    dash = 20 + scale * begin, 20 + scale * (begin + 4)
                    canvas.line((dash[0], top + 2 * wide, dash[1], top + 2 * wide), fill="white")
                canvas.line(
                    (
                        20 + scale * (line - SOLID_LINE_LENGTH),
                        top + 2 * wide,
                        at_line,
                        top + 2 * wide,
                    ),
                    fill="white",
                )
                colour = LIGHT_COLOURS[light_name(light, approach)]
                canvas.rectangle((at_line, top + wide, at_line + 3, top + 3 * wide), fill=colour)
                for slot in range(x.shape[-1]):
                    place = x[world, approach, slot]
                    if not 0 <= place < line + EXIT_DISTANCE:
                        continue
                    lane = 1.5 if in_left[world, approach, slot] else 2.5
                    if place >= line:
                        lane += goes[world, approach, slot] == RIGHT
                        lane -= goes[world, approach, slot] == LEFT
                    colour_of_car = "lime" if params.controlled[approach, slot] else "deepskyblue"
                    right = 20 + scale * place
                    y = top + wide * lane
                    box = (right - scale * LENGTH, y - half, right, y + half)
                    canvas.rectangle(
                        box, fill=colour_of_car if world else "lightgray", outline="black"
                    )
                    if (
                        turn[approach, slot] != STRAIGHT
                        and place < line + BENDS[turn[approach, slot]]
                    ):
                        side = y - half if turn[approach, slot] == LEFT else y + half - 2
                        canvas.rectangle((box[0], side, right, side + 2), fill="orange")
            canvas.text((6, 6 + 205 * approach), f"from the {name}", fill="black")
        return np.asarray(image)


def lane_bounds() -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper limits of what ``EcoDriving`` does not show, ``(11,)`` each."""
    low = np.array([0, 0, 0, 0, 0, 0, 0, -0.03, 0, -0.03, 0])
    return low, np.array([1, 1, 1, 1, 1.2, 1, 1, 1, 1.2, 1, 1.2])


class LanesAdvice(NamedTuple):
    """The player of ``EcoDriving`` with the best numbers of a random search for roads with lanes.

    It counts the queue of its own lane. Gliding before bends, too, and more time for turning cars
    in the queue gain nothing.
    """

    advice: SpeedAdvice = SpeedAdvice(start=1.5, patience=3.1, slowest=1.1)

    @classmethod
    def for_task(cls, task: EcoDrivingLanes) -> LanesAdvice:
        """Make the player."""
        return cls()

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return how much each car eases off, ``(48, 1)``."""
        return self.advice.ease(view.observation)[:, None], memory

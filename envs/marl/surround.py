"""Surround: four drones come close to a target that stays, travels or flees, and keep apart.

Source: Felten et al. 2024, MOMAland: A set of benchmarks for multi-objective multi-agent
reinforcement learning (arXiv:2407.16312), by the documented rules of its CrazyRL tasks
(github.com/Farama-Foundation/momaland, version 0.2.0). The difficulty chooses among them: Surround
(easy), Escort (medium), Catch (hard). Episodes there have one start; here they sample it.

A drone moves by its action, at most 0.2 m along each axis, within a room of 6 x 6 x 3 m. The target

* stays (easy);
* travels straight from its start to 51/52 of the way to a point, and arrives after 51 steps
  (medium). MOMAland calls that point final, and stops short of it, too;
* moves 0.1 m away from the mean place of the drones (hard). If that is nearer than 0.2 m, the
  target hesitates: it moves up to 0.01 m along each axis, always to larger coordinates.

==============  ===================================================================================
observation     one row a drone, ``Box(-1, 1, (4, 19))``: x, y and z of the drone, of the target and
                of the three others; motion of the target in the last step; steps left. x and y in
                parts of 3 m from the middle of the room, z in parts of 3 m from the ground, motion
                in parts of 0.2 m, steps in parts of 200
action          ``Box(-1, 1, (4, 3))``: motion of each drone along x, y and z, in parts of 0.2 m
reward          ``(4, 2)``, target and spread: how much nearer the drone comes to the place where
                the target was before the step, m; its mean distance to the other drones, m. Both
                are -10 in a crash of this drone
termination     a crash: a drone is nearer than 0.1 m to another one, to the target or to the ground
success         the time limit of 200 steps is reached, with the drones at most 0.75 m from the
                target on average
context         start of the target, up to 2 m (hard: 1.2 m) from the middle along x and y, 1.8 to
                2.5 m high, with x in other bands for test than for training; the point to which it
                travels, up to 2.4 m along x and y, 1.8 to 2.7 m high; starts of the drones, in four
                different squares of a grid of 1.5 m, 0.6 to 1.4 m high
difficulty      target: 0 stays (easy), 1 travels (medium), 2 flees (hard)
==============  ===================================================================================

The reward for the target is a difference of potentials only while the target stays. A target that
moves away from a drone by itself costs nothing, and coming back is paid. So the best drones stay
behind a target that travels, and one that flees can be driven round in circles. Spread weighs
little in the score (0.001), for otherwise it pays to fly to the corners of the room and see
nothing.

Two things of MOMAland are not reproduced: motion that is sampled from NumPy's global generator, and
a list of living agents that is emptied while it is read.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from operator import add, or_
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Flag, Float, Int
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands, split_units
from .beach import ranks

DRONES = 4
STEPS = 200
REACH = 0.2
"""m that a drone moves along an axis in a step, at most."""
HALF_WIDTH = 3.0
"""m from the middle of the room to its walls."""
HEIGHT = 3.0
"""m"""
CRASH_DISTANCE = 0.1
"""m"""
CRASH_REWARD = -10.0
STAYS, TRAVELS, FLEES = range(3)
TRAVEL_POINTS = 52
"""The target arrives one step before this many, and stops short by one part of this many."""
FLIGHT = 0.1
"""m that a fleeing target moves in a step."""
HESITATION = 0.2
"""m to the mean place of the drones below which the target hesitates."""
START, FLIGHT_START = 2.0, 1.2
"""m from the middle along x and y within which a target starts, and one that flees."""
MIN_TARGET_HEIGHT = 0.2
"""m of a fleeing target."""
CLOSE = 0.75
"""m to the target on average that is a success."""
BANDS = 20
SQUARES = [(-2.25 + 1.5 * i, -2.25 + 1.5 * j) for i in range(4) for j in range(4)]
"""Middles of the squares in which drones start, m."""
JITTER = 0.6
"""Largest distance of a start from the middle of its square along x and y, m."""
PERIOD = 0.05
"""s; MOMAland draws 20 steps a second."""
COLOURS = ("royalblue", "seagreen", "darkorange", "purple")


class Point(NamedTuple):
    """A place in the room, or a difference of places, m."""

    x: Float
    y: Float
    z: Float


class Params(NamedTuple):
    """The context."""

    target: Point
    """Start of the target."""
    destination: Point
    """Point to which a travelling target goes."""
    drones: tuple[Point, ...]
    """Starts of the drones."""


class State(NamedTuple):
    """The room."""

    drones: tuple[Point, ...]
    target: Point
    target_before: Point
    """Place of the target one step before."""
    steps: Int
    """Steps so far."""


class Surround(Task[Params, State]):
    """The task of this file's docstring."""

    period = PERIOD
    ends_in_failure = True
    measures: ClassVar[dict[str, str]] = {
        "target_distance": "mean distance of the drones to the target, m",
        "spread": "mean distance between drones, m",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in (STAYS, TRAVELS, FLEES):
            raise ValueError(
                f"The difficulty of {card.id} is 0 (the target stays), 1 (it travels), 2 (it "
                f"flees), or one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.target_kind = int(difficulty)
        self.start = FLIGHT_START if self.target_kind == FLEES else START
        low = np.tile(np.array([-1.0, -1.0, 0.0]), DRONES + 1)
        low = np.concatenate([low, [-1.0, -1.0, -1.0, 0.0]])
        self.observation_space = self.box(np.tile(low, (DRONES, 1)), 1.0)
        self.action_space = self.box(-1.0, 1.0, (DRONES, 3))
        highest = [0.35, 9.0]
        self.reward_space = self.box(CRASH_REWARD, np.tile(highest, (DRONES, 1)))

    # -- contexts ----------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the places of target and drones."""
        raw = self.uniform(key, 6 + len(SQUARES) + 3 * DRONES)
        units = split_units(raw, split)
        target = Point(
            alternating_bands(raw[0], split, -self.start, self.start, BANDS),
            self.start * (2.0 * units[1] - 1.0),
            1.8 + 0.7 * units[2],
        )
        destination = Point(4.8 * units[3] - 2.4, 4.8 * units[4] - 2.4, 1.8 + 0.9 * units[5])
        order = ranks(units[6 : 6 + len(SQUARES)])
        squares = jnp.asarray(SQUARES, self.dtype)
        places = units[6 + len(SQUARES) :]
        drones = []
        for number in range(DRONES):
            middle = squares[jnp.argmax(order == number)]
            drones.append(
                Point(
                    middle[0] + 2 * JITTER * (places[3 * number] - 0.5),
                    middle[1] + 2 * JITTER * (places[3 * number + 1] - 0.5),
                    0.6 + 0.8 * places[3 * number + 2],
                )
            )
        return Params(target, destination, tuple(drones))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Put target and drones where the context says."""
        return State(params.drones, params.target, params.target, jnp.int32(0))

    # -- a step ------------------------------------------------------------------------------------

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the target, which sees where the drones are, and the drones."""
        drones = tuple(
            inside_room(
                Point(
                    drone.x + REACH * action[i, 0],
                    drone.y + REACH * action[i, 1],
                    drone.z + REACH * action[i, 2],
                ),
                0.0,
            )
            for i, drone in enumerate(state.drones)
        )
        return State(drones, self.next_target(state, key, params), state.target, state.steps + 1)

    def next_target(self, state: State, key: jax.Array, params: Params) -> Point:
        """Return the place of the target after a step."""
        if self.target_kind == STAYS:
            return state.target
        if self.target_kind == TRAVELS:
            step = jnp.minimum(state.steps + 1, TRAVEL_POINTS - 1).astype(self.dtype)
            share_of_way = step * np.asarray(1 / TRAVEL_POINTS, self.dtype)
            start, end = params.target, params.destination
            return Point(*(a + share_of_way * (b - a) for a, b in zip(start, end, strict=True)))
        return self.flee(state, self.uniform(key, 3))

    def flee(self, state: State, noise: jax.Array) -> Point:
        """Return the place of a fleeing target after a step, with its hesitation ``(3,)``."""
        away = difference(state.target, mean_place(state.drones))
        gap = length(away)
        hesitates = gap <= HESITATION
        scale = FLIGHT / jnp.where(hesitates, 1, gap)
        moved = [
            place + jnp.where(hesitates, 0.1 * FLIGHT * noise[i], scale * away[i])
            for i, place in enumerate(state.target)
        ]
        return inside_room(Point(*moved), MIN_TARGET_HEIGHT)

    def crashes(self, state: State) -> list[Flag]:
        """Return which drones are too near to another one, the target or the ground."""
        flags = [
            (drone.z < CRASH_DISTANCE) | (distance(drone, state.target) < CRASH_DISTANCE)
            for drone in state.drones
        ]
        for i, j in combinations(range(DRONES), 2):
            is_near = distance(state.drones[i], state.drones[j]) < CRASH_DISTANCE
            flags[i] = flags[i] | is_near
            flags[j] = flags[j] | is_near
        return flags

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return what each drone earns by the target and by the spread, ``(4, 2)``."""
        rows = []
        for i, crash in enumerate(self.crashes(next_state)):
            before, after = state.drones[i], next_state.drones[i]
            approach = distance(before, state.target) - distance(after, state.target)
            spread = spread_of(next_state.drones, i)
            rows.append(
                jnp.stack(
                    [
                        jnp.where(crash, CRASH_REWARD, approach).astype(self.dtype),
                        jnp.where(crash, CRASH_REWARD, spread).astype(self.dtype),
                    ]
                )
            )
        return jnp.stack(rows)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether a drone crashed."""
        return reduce(or_, self.crashes(state))

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the two mean distances."""
        gaps = [distance(drone, state.target) for drone in state.drones]
        mean_gap = reduce(add, gaps) * (1 / DRONES)
        spreads = [spread_of(state.drones, i) for i in range(DRONES)]
        crashed = reduce(or_, self.crashes(state))
        return {
            "success": ~crashed & (state.steps >= STEPS) & (mean_gap <= CLOSE),
            "target_distance": mean_gap,
            "spread": reduce(add, spreads) * (1 / DRONES),
        }

    # -- what drones see ---------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each drone sees, ``(4, 19)``; see the table."""
        motion = [
            component * (1 / REACH) for component in difference(state.target, state.target_before)
        ]
        left = jnp.maximum(STEPS - state.steps, 0) * (1 / STEPS)
        rows = []
        for i, drone in enumerate(state.drones):
            teammates = [teammate for j, teammate in enumerate(state.drones) if j != i]
            places = [
                scaled for place in (drone, state.target, *teammates) for scaled in unit(place)
            ]
            rows.append(self.stack(*places, *motion, left))
        return jnp.clip(jnp.stack(rows), -1, 1)

    def observation_components(self) -> tuple[Component, ...]:
        """List what a drone sees."""
        room = "[x, y, z] in parts of 3 m, x and y from the middle of the room, z from the ground"
        return (
            Component("place", f"of the drone: {room}", "3 m", (3,)),
            Component("target", f"of the target: {room}", "3 m", (3,)),
            Component("teammates", f"[other drone]{room}", "3 m", (DRONES - 1, 3)),
            Component(
                "target_motion", "[x, y, z]: motion of the target in the last step", "0.2 m", (3,)
            ),
            Component("steps_left", "moves before the time limit", f"{STEPS} steps"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the motions; a joint action has a row a drone."""
        meaning = "[x, y, z]: motion of the drone along each axis"
        return (Component("motion", meaning, f"{REACH} m", (3,)),)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """List places, the target's motion and the time left."""
        motion = difference(state.target, state.target_before)
        lines = [
            f"{max(STEPS - int(state.steps), 0)} of {STEPS} steps are left. Places (x, y, z) in m:",
            f"target at {spell(state.target)}, which moved by {spell(motion)} in the last step",
        ]
        lines += [f"drone {i} at {spell(drone)}" for i, drone in enumerate(state.drones)]
        return "\n".join(lines)

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with {3 * DRONES} numbers from -1 to 1: motion of drone 0 along x, y and z, "
            f"in parts of {REACH} m, then that of the other drones."
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the only end there is but for the time limit."""
        return "a drone crashed"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the room from above, and from the side in the lower third."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        scale = width / 9.0
        left, ground = width / 2, height - 8
        top = 6.2 * scale / 2
        canvas.rectangle((left - 3 * scale, top - 3 * scale, left + 3 * scale, top + 3 * scale))
        canvas.line((left - 3 * scale, ground, left + 3 * scale, ground), fill="black", width=3)
        things = [(state.target, "firebrick", 8)]
        things += [(d, c, 5) for d, c in zip(state.drones, COLOURS, strict=True)]
        for place, colour, radius in things:
            x, y, z = (float(number) for number in place)
            for column, row in (
                (left + scale * x, top - scale * y),
                (left + scale * x, ground - scale * z),
            ):
                box = (column - radius, row - radius, column + radius, row + radius)
                canvas.ellipse(box, fill=colour)
        return np.asarray(image)


def inside_room(place: Point, lowest: float) -> Point:
    """Return the nearest place inside the room, and not lower than given."""
    return Point(
        jnp.clip(place.x, -HALF_WIDTH, HALF_WIDTH),
        jnp.clip(place.y, -HALF_WIDTH, HALF_WIDTH),
        jnp.clip(place.z, lowest, HEIGHT),
    )


def difference(place: Point, origin: Point) -> Point:
    """Return the way from an origin to a place."""
    return Point(place.x - origin.x, place.y - origin.y, place.z - origin.z)


def length(motion: Point) -> Float:
    """Return the length of a motion, m."""
    return jnp.sqrt(motion.x * motion.x + motion.y * motion.y + motion.z * motion.z)


def distance(place: Point, place_b: Point) -> Float:
    """Return the distance of two places, m."""
    return length(difference(place, place_b))


def mean_place(drones: tuple[Point, ...]) -> Point:
    """Return the mean of the drones' places."""
    return Point(*(reduce(add, axis) * (1 / DRONES) for axis in zip(*drones, strict=True)))


def spread_of(drones: tuple[Point, ...], number: int) -> Float:
    """Return the mean distance of a drone to the others, m."""
    gaps = [distance(drones[number], drone) for j, drone in enumerate(drones) if j != number]
    return reduce(add, gaps) * (1 / (DRONES - 1))


def unit(place: Point) -> tuple[Float, Float, Float]:
    """Return a place in parts of the room, as observations show it."""
    return place.x * (1 / HALF_WIDTH), place.y * (1 / HALF_WIDTH), place.z * (1 / HEIGHT)


def spell(place: Point) -> str:
    """Return a place in words."""
    return f"({float(place.x):.3f}, {float(place.y):.3f}, {float(place.z):.3f})"

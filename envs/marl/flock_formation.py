"""Fly a formation of quadcopters around a leader that moves and turns.

They gather from random places, and must not collide.

Each vehicle has an attitude controller of its own, takes an acceleration as its command, and
follows it with a lag:

    position' = velocity
    velocity' = a - drag * (velocity - wind)
    a'        = (command - a) / lag

The lag is the closed attitude loop as first order, after Kamel, Stastny, Alexis & Siegwart 2017
(doi:10.1007/978-3-319-54927-9_1, section 3); rotor drag is linear in airspeed, after Faessler,
Franchi & Scaramuzza 2018 (doi:10.1109/LRA.2017.2776353, section III). Gravity is balanced by the
attitude controller. One Runge-Kutta step of 50 ms a step of the episode. Slots keep their place in
the leader's frame and turn with it, as in Turpin, Michael & Kumar 2012
(doi:10.1007/s10514-012-9279-y). There is no downwash: vehicles fly at nearly the same height.

======================  ============================================================================
action ``(n, 3)``       commanded acceleration of each vehicle along x, y, z (world, z up): 1 is 4.5
                        m/s^2 along x and y, the horizontal part shortened to that length (25
                        degrees of tilt), and 4 m/s^2 along z
observation ``(n, 25)`` of each vehicle, along x, y, z: from it to its slot (m, by 5), the slot's
velocity minus its own
                        (m/s, by 5), own velocity (m/s, by 5), own acceleration a (by the command's
                        scale); then of its nearest and second nearest neighbour place and velocity
                        minus its own (m and m/s, by 5); the leader's turn rate (by 0.5 rad/s).
                        Values beyond +-2 are shown as +-2
reward                  of each vehicle: 1 / (1 + e / 0.25 m), e its distance from its slot, minus
                        its proximity: 0 at 0.4 m from the nearest neighbour, 1 at 0.25 m, linear
                        between
cost                    pairs of vehicles nearer than 0.4 m
terminated              a collision: two vehicles nearer than 0.25 m; or one is lost, more than 12 m
                        from its slot
success                 formation error, the mean over vehicles of e, averaged over about the last
                        second, below 0.1 m
start                   at rest, in different cells of a 3 x 3 grid of 1.2 m cells, height within
                        0.5 m of the leader's; vehicle i always has slot i, so ways cross
leader                  constant speed, turn rate within 0.5 rad/s, climb within 0.3 m/s, any first
                        heading
context                 formation (wedge, ring, line abreast), distance of neighbouring slots 0.7 to
                        1.5 m in bands of 4 cm, alternately of train and test; leader as above; wind
                        up to 2 m/s along x and y; drag 0.2 to 0.5 1/s; lag 0.1 to 0.2 s. Wind, drag
                        and lag are not shown
difficulty              top speed of the leader, m/s; it flies at half of it or faster
======================  ============================================================================
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.contexts.context import Constant, weights
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from ..shared.own_constants import OwnConstants
from ..shared.runge_kutta import rk4

STEP = 0.05
"""s"""
HORIZONTAL_ACCELERATION = 4.5
"""m/s^2 that an action of one commands: 9.81 tan(24.6 degrees)."""
VERTICAL_ACCELERATION = 4.0
"""m/s^2 that an action of one commands."""
COLLISION = 0.25
"""m between centres"""
SAFE_DISTANCE = 0.4
"""m between centres"""
LOST_DISTANCE = 12.0
"""m from the slot"""
HALVING_ERROR = 0.25
"""m: slot error at which the reward is one half."""
TURN_RATE = 0.5
"""rad/s"""
SCALE = 5.0
"""m and m/s that are shown as 1."""
MAX_OBSERVATION = 2.0
"""Largest value shown."""
MEMORY = 1.0
"""s: time constant of the average of the formation error."""
SETTLED_DISTANCE = 0.1
"""m: averaged formation error that counts as success."""
PITCH = 1.2
"""m between the centres of starting cells."""
JITTER = 0.3
"""m from the centre of a starting cell, along each axis: starts are at least 0.6 m apart."""


class Params(NamedTuple):
    """The context."""

    slot_ahead: jax.Array
    """``(n,)`` m: position of each slot relative to the leader, along its heading."""
    slot_left: jax.Array
    """``(n,)`` m: position of each slot to the leader's left."""
    heading: jax.Array
    """rad: the leader's first heading, from x counter-clockwise."""
    speed: jax.Array
    """m/s, speed of the leader."""
    turn_rate: jax.Array
    """rad/s, turn rate of the leader."""
    climb: jax.Array
    """m/s, climb of the leader."""
    wind_x: jax.Array
    """m/s"""
    wind_y: jax.Array
    """m/s"""
    drag: jax.Array
    """1/s"""
    lag: jax.Array
    """s"""


class Entries:
    """Places of a vehicle's quantities in its observation; see the table."""

    SLOT = slice(0, 3)
    SLOT_VELOCITY = slice(3, 6)
    VELOCITY = slice(6, 9)
    ACCELERATION = slice(9, 12)
    NEIGHBOURS = ((slice(12, 15), slice(15, 18)), (slice(18, 21), slice(21, 24)))
    """Place and velocity of each neighbour, nearest first."""
    TURN_RATE = slice(24, 25)


class Vehicles(NamedTuple):
    """Position (m), velocity (m/s) and acceleration by thrust (m/s^2) of every vehicle.

    Each field is ``(n,)``.
    """

    x: jax.Array
    y: jax.Array
    z: jax.Array
    vx: jax.Array
    vy: jax.Array
    vz: jax.Array
    ax: jax.Array
    ay: jax.Array
    az: jax.Array


class Leader(NamedTuple):
    """Place (m) and heading (rad) of the virtual leader."""

    x: jax.Array
    y: jax.Array
    z: jax.Array
    heading: jax.Array


class State(NamedTuple):
    """Vehicles, leader, and how well they held the formation lately."""

    vehicles: Vehicles
    leader: Leader
    mean_error: jax.Array
    """m: the formation error, averaged with time constant MEMORY."""


class Errors(NamedTuple):
    """Slot minus vehicle, each ``(n,)``: place in m and velocity in m/s."""

    x: jax.Array
    y: jax.Array
    z: jax.Array
    vx: jax.Array
    vy: jax.Array
    vz: jax.Array


class FlockFormation(Task[Params, State]):
    """The task of this file's docstring."""

    period = STEP
    measures: ClassVar[dict[str, str]] = {
        "formation_error": "mean distance of the vehicles from their slots, m",
        "separation": "smallest distance between two vehicles, m",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 0 <= difficulty <= 3:
            raise ValueError(
                f"The difficulty of {card.id} is a speed of 0 to 3 m/s, got {difficulty!r}."
            )
        self.top_speed = float(difficulty)
        self.own_constants = OwnConstants(card, self.constants())
        self.horizontal = self.own_constants.value("level_limit")
        self.vertical = self.own_constants.value("climb_limit")
        self.turn_scale = max(
            TURN_RATE, *(0.5 * abs(end) for end in self.own_constants.range("turn_rate"))
        )
        self.formations = formations(n := card.agents)
        self.observation_space = self.box(-MAX_OBSERVATION, MAX_OBSERVATION, (n, 25))
        self.action_space = self.box(-1, 1, (n, 3))
        self.reward_space = self.box(
            -self.own_constants.weight("proximity"), self.own_constants.weight("formation"), (n,)
        )
        self._see = jax.jit(self.observation)  # for the text view

    def constants(self) -> tuple[Constant, ...]:
        """Return formation, leader, air and vehicles, and the weights of the reward's terms."""
        level, up, slowest = HORIZONTAL_ACCELERATION, VERTICAL_ACCELERATION, 0.5 * self.top_speed
        return (
            Constant(
                "spacing",
                "m",
                0.7,
                1.5,
                "distance of neighbouring slots",
                3.0,
                minimum=0.5,
                bands=20,
            ),
            Constant("leader_speed", "m/s", slowest, self.top_speed, "", 3.0, minimum=0.0),
            Constant(
                "turn_rate",
                "rad/s",
                -TURN_RATE,
                TURN_RATE,
                "of the leader, left is positive",
                1.5,
                minimum=-1.5,
            ),
            Constant("climb", "m/s", -0.3, 0.3, "of the leader", 2.0, minimum=-2.0),
            Constant("wind_x", "m/s", -2.0, 2.0, "", 10.0, minimum=-10.0),
            Constant("wind_y", "m/s", -2.0, 2.0, "", 10.0, minimum=-10.0),
            Constant("drag", "1/s", 0.2, 0.5, "deceleration by airspeed", 2.0, minimum=0.0),
            Constant("lag", "s", 0.1, 0.2, "of the attitude controller", 0.5, minimum=0.03),
            Constant(
                "level_limit",
                "m/s^2",
                level,
                level,
                "largest horizontal acceleration",
                20.0,
                may_vary=False,
            ),
            Constant(
                "climb_limit",
                "m/s^2",
                up,
                up,
                "largest vertical acceleration",
                20.0,
                may_vary=False,
            ),
            *weights(
                formation=(1.0, "holding the slot"),
                proximity=(1.0, "nearness of a neighbour, taken off"),
            ),
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a formation, its leader and its air."""
        u = self.uniform(key, 10)
        which = jnp.minimum(
            jnp.floor(u[0] * len(self.formations)).astype(jnp.int32), len(self.formations) - 1
        )

        def sample(name: str, i: int, shipped: jax.Array) -> Any:
            return self.own_constants.sample_or_shipped(name, u[i], split, shipped)

        spacing = sample("spacing", 1, alternating_bands(u[1], split, 0.7, 1.5, bands=20))
        slots = jnp.asarray(self.formations.astype(self.dtype))[which] * spacing
        return Params(
            slot_ahead=slots[:, 0],
            slot_left=slots[:, 1],
            heading=math.pi * (2 * u[2] - 1),
            speed=sample("leader_speed", 3, self.top_speed * (0.5 + 0.5 * u[3])),
            turn_rate=sample("turn_rate", 4, TURN_RATE * (2 * u[4] - 1)),
            climb=sample("climb", 5, 0.3 * (2 * u[5] - 1)),
            wind_x=sample("wind_x", 6, 2 * (2 * u[6] - 1)),
            wind_y=sample("wind_y", 7, 2 * (2 * u[7] - 1)),
            drag=sample("drag", 8, 0.2 + 0.3 * u[8]),
            lag=sample("lag", 9, 0.1 + 0.1 * u[9]),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start every vehicle at rest in a cell of its own, with the leader in the middle."""
        n = self.card.agents
        u = self.uniform(key, 3 * n + 9)
        cell = jnp.argsort(u[3 * n :])[:n]
        x, y, z = 2 * u[: 3 * n].reshape(3, n) - 1
        zero, still = jnp.zeros((), self.dtype), jnp.zeros(n, self.dtype)
        vehicles = Vehicles(
            PITCH * (cell % 3 - 1).astype(self.dtype) + JITTER * x,
            PITCH * (cell // 3 - 1).astype(self.dtype) + JITTER * y,
            0.5 * z,
            *(still,) * 6,
        )
        leader = Leader(zero, zero, zero, params.heading)
        return State(vehicles, leader, self._mean(distances(errors(vehicles, leader, params))))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the vehicles by one Runge-Kutta step, and the leader along its arc.

        Commands are constant during the step.
        """
        command = accelerations(action, self.horizontal, self.vertical)

        def derivative(_: float, moving: Vehicles) -> Vehicles:
            return Vehicles(
                moving.vx,
                moving.vy,
                moving.vz,
                moving.ax - params.drag * (moving.vx - params.wind_x),
                moving.ay - params.drag * (moving.vy - params.wind_y),
                moving.az - params.drag * moving.vz,
                *(
                    (to - a) / params.lag
                    for to, a in zip(command, (moving.ax, moving.ay, moving.az), strict=True)
                ),
            )

        vehicles = rk4(derivative, state.vehicles, STEP)
        leader = step_leader(state.leader, params)
        error = self._mean(distances(errors(vehicles, leader, params)))
        return State(
            vehicles, leader, state.mean_error + STEP / MEMORY * (error - state.mean_error)
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the observation of each vehicle, ``(n, 25)``; see the table."""
        vehicles = state.vehicles
        error = errors(vehicles, state.leader, params)
        gaps = separations(vehicles)
        numbers = np.arange(self.card.agents)
        first = numbers == jnp.argmin(gaps, 1)[:, None]
        second = numbers == jnp.argmin(jnp.where(first, jnp.inf, gaps), 1)[:, None]
        metres = [*error, *vehicles[3:6]]
        for neighbour in (first, second):
            # A sum with one term: indexing is many times slower.
            metres += [
                jnp.where(neighbour, component - component[:, None], 0).sum(1)
                for component in vehicles[:6]
            ]
        values = [value * (1 / SCALE) for value in metres]
        values[9:9] = [
            *(component * (1 / self.horizontal) for component in (vehicles.ax, vehicles.ay)),
            vehicles.az * (1 / self.vertical),
        ]
        values.append(jnp.broadcast_to(params.turn_rate * (1 / self.turn_scale), vehicles.x.shape))
        return jnp.clip(jnp.stack(values, 1), -MAX_OBSERVATION, MAX_OBSERVATION)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each vehicle; see the table."""
        distance, speed = f"{SCALE:g} m", f"{SCALE:g} m/s"
        axes = "along x, y, z of the world"
        neighbours = (
            component
            for rank, which in (("first", "nearest"), ("second", "second nearest"))
            for component in (
                Component(
                    f"{rank}_neighbour", f"from it to its {which} neighbour, {axes}", distance, (3,)
                ),
                Component(
                    f"{rank}_neighbour_velocity",
                    f"velocity of its {which} neighbour minus its own",
                    speed,
                    (3,),
                ),
            )
        )
        return (
            Component("slot", f"from it to its slot, {axes}", distance, (3,)),
            Component("slot_velocity", f"velocity of its slot minus its own, {axes}", speed, (3,)),
            Component("velocity", f"its velocity, {axes}", speed, (3,)),
            Component(
                "acceleration",
                "its acceleration along x and y of the world",
                f"{self.horizontal:g} m/s^2",
                (2,),
            ),
            Component("climb", "its acceleration along z of the world", f"{self.vertical:g} m/s^2"),
            *neighbours,
            Component("turn_rate", "turn rate of the leader", f"{self.turn_scale:g} rad/s"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the entries of each vehicle."""
        level = "commanded acceleration along x and y of the world, shortened to length one"
        return (
            Component("level", level, f"{self.horizontal:g} m/s^2", (2,)),
            Component(
                "up", "commanded acceleration along z of the world", f"{self.vertical:g} m/s^2"
            ),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of each vehicle, ``(n,)``."""
        error = distances(errors(next_state.vehicles, next_state.leader, params))
        nearest = separations(next_state.vehicles).min(1)
        proximity = jnp.clip((SAFE_DISTANCE - nearest) * (1 / (SAFE_DISTANCE - COLLISION)), 0, 1)
        holding = HALVING_ERROR / (HALVING_ERROR + error)
        if self.own_constants.reweighted:
            return (
                self.own_constants.weight("formation") * holding
                - self.own_constants.weight("proximity") * proximity
            )
        return holding - proximity

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Count pairs that are too near each other."""
        return (separations(next_state.vehicles) < SAFE_DISTANCE).sum().astype(self.dtype) * 0.5

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether vehicles collided or one is lost."""
        lost = (distances(errors(state.vehicles, state.leader, params)) > LOST_DISTANCE).any()
        return lost | (separations(state.vehicles).min() < COLLISION)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        separation = separations(state.vehicles).min()
        return {
            "success": (state.mean_error < SETTLED_DISTANCE) & (separation >= COLLISION),
            "formation_error": self._mean(distances(errors(state.vehicles, state.leader, params))),
            "separation": separation,
        }

    def _mean(self, values: jax.Array) -> jax.Array:
        """Return the mean over vehicles, added one after another.

        So every program gives the same bits.
        """
        return functools.reduce(operator.add, (values[i] for i in range(self.card.agents))) * (
            1 / self.card.agents
        )

    # -- text and pixels ---------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say which of the two ends it was."""
        separation = float(info["separation"])
        if separation < COLLISION:
            return f"a collision: two vehicles are {separation:.2f} m apart"
        return f"a vehicle is lost: more than {LOST_DISTANCE:.0f} m from its slot"

    def how_to_act(self) -> str:
        """Tell a text player how to answer: three numbers a vehicle."""
        return (
            f"Answer with {3 * self.card.agents} numbers in [-1, 1], agent_0 first: each vehicle's "
            f"acceleration along x, y, z; 1 is {self.horizontal:g} m/s^2 along x and y, "
            f"{self.vertical:g} m/s^2 along z (up)."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe each vehicle's observation, with units."""
        limits = [self.horizontal, self.horizontal, self.vertical]
        lines = [
            (
                f"The leader turns at {float(params.turn_rate):+.2f} rad/s. Along x, y, z (up), "
                "each vehicle:"
            )
        ]
        for i, row in enumerate(np.asarray(self._see(state, None, params))):
            vectors = np.split(row[:24] * np.array([SCALE] * 9 + limits + [SCALE] * 12), 8)
            slot, rate, velocity, acceleration, *neighbours = map(_format_vector, vectors)
            lines.append(
                f"agent_{i}: slot at {slot} m, moving {rate} m/s from here; velocity {velocity} "
                f"m/s, acceleration {acceleration} m/s^2; neighbours at {neighbours[0]} m, moving "
                f"{neighbours[1]} m/s, and at {neighbours[2]} m, moving {neighbours[3]} m/s "
                "from here"
            )
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw leader (grey), slots (green), vehicles and velocities from above, x right, y up.

        The picture shows 12 m about the leader.
        """
        size, _, _ = self.picture_shape
        image = Image.new("RGB", (size, size), "white")
        canvas = ImageDraw.Draw(image)
        middle = float(state.leader.x), float(state.leader.y)

        def pixel(x: Any, y: Any) -> tuple[float, float]:
            return size * (0.5 + (float(x) - middle[0]) / 12), size * (
                0.5 - (float(y) - middle[1]) / 12
            )

        def disc(centre: tuple[float, float], radius: float, **colours: Any) -> None:
            canvas.ellipse(
                (centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius),
                **colours,
            )

        vehicles, error = state.vehicles, errors(state.vehicles, state.leader, params)
        heading = float(state.leader.heading)
        canvas.line(
            (*pixel(*middle), *pixel(middle[0] + math.cos(heading), middle[1] + math.sin(heading))),
            "gray",
            2,
        )
        body = size * COLLISION / 24
        for i in range(self.card.agents):
            x, y, vx, vy = (
                float(component[i])
                for component in (vehicles.x, vehicles.y, vehicles.vx, vehicles.vy)
            )
            place, slot = pixel(x, y), pixel(x + float(error.x[i]), y + float(error.y[i]))
            canvas.line((*place, *slot), fill="gainsboro")
            disc(slot, body + 2, outline="green")
            canvas.line((*place, *pixel(x + vx / 2, y + vy / 2)), "black")
            disc(place, body, fill="royalblue")
        return np.asarray(image)


def formations(n: int) -> np.ndarray:
    """Return wedge, ring and line abreast, ``(3, n, 2)``, of unit spacing.

    The coordinates are ahead and to the left of the leader.
    """
    numbers = np.arange(n)
    rank, side = (numbers + 1) // 2, np.where(numbers % 2, 1, -1)
    wedge = np.stack([-rank, side * rank], 1) / math.sqrt(2)
    angle = 2 * math.pi * numbers / n
    ring = np.stack([np.cos(angle), np.sin(angle)], 1) / (2 * math.sin(math.pi / n))
    line = np.stack([np.zeros(n), side * rank], 1)
    return np.stack([wedge, ring, line])


def accelerations(
    action: jax.Array,
    horizontal: float = HORIZONTAL_ACCELERATION,
    vertical: float = VERTICAL_ACCELERATION,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return commanded accelerations, m/s^2, each ``(n,)``.

    The horizontal part is no longer than ``horizontal``.
    """
    x, y, z = action[:, 0], action[:, 1], action[:, 2]
    share = horizontal / jnp.maximum(1, jnp.hypot(x, y))
    return x * share, y * share, vertical * z


def step_leader(leader: Leader, params: Params) -> Leader:
    """Return the leader one step later, exactly: an arc's chord points along its middle heading."""
    half = 0.5 * STEP * params.turn_rate
    # sin(h) / h by its series: below 1e-9 wrong at the largest half angle, 0.0125 rad, and no
    # division by zero.
    chord = params.speed * STEP * (1 - half * half * (1 / 6))
    middle = leader.heading + half
    heading = leader.heading + 2 * half
    heading = jnp.where(heading > math.pi, heading - 2 * math.pi, heading)
    heading = jnp.where(heading < -math.pi, heading + 2 * math.pi, heading)
    return Leader(
        leader.x + chord * jnp.cos(middle),
        leader.y + chord * jnp.sin(middle),
        leader.z + STEP * params.climb,
        heading,
    )


def errors(vehicles: Vehicles, leader: Leader, params: Params) -> Errors:
    """Return each slot minus its vehicle.

    Slots turn with the leader: velocity = leader's + turn rate x offset.
    """
    cos, sin = jnp.cos(leader.heading), jnp.sin(leader.heading)
    x = cos * params.slot_ahead - sin * params.slot_left
    y = sin * params.slot_ahead + cos * params.slot_left
    return Errors(
        leader.x + x - vehicles.x,
        leader.y + y - vehicles.y,
        leader.z - vehicles.z,
        params.speed * cos - params.turn_rate * y - vehicles.vx,
        params.speed * sin + params.turn_rate * x - vehicles.vy,
        params.climb - vehicles.vz,
    )


def distances(error: Errors) -> jax.Array:
    """Return the distance from each vehicle to its slot, ``(n,)`` m."""
    return jnp.hypot(jnp.hypot(error.x, error.y), error.z)


def separations(vehicles: Vehicles) -> jax.Array:
    """Return the distances between vehicles, ``(n, n)`` m; infinite from a vehicle to itself."""
    dx, dy, dz = (
        jnp.asarray(position)[:, None] - position
        for position in (vehicles.x, vehicles.y, vehicles.z)
    )
    return jnp.where(np.eye(dx.shape[0], dtype=bool), jnp.inf, jnp.hypot(jnp.hypot(dx, dy), dz))


def _format_vector(vector: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:+.2f}" for value in vector) + ")"

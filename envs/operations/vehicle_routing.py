"""Visit all customers by short routes from a depot and back.

A truck is at the depot or at a customer. An action names the next place, and the truck drives
there straight. Where a truck can carry less than all demand, or customers have time windows, it
takes several routes; each begins at the depot with an empty load and at the time 0, as if each
route had a truck of its own. The last customer's step includes the way back.

=============  =====================================================================================
action         ``Discrete(21)``: the depot (0), or a customer 1..20. Legal is a customer who is not
               yet visited, whose demand fits, who is reached before the window closes and from
               whom the depot is reached before the day is over; and the depot, from a customer
               only. A truck without limits returns when all customers are visited
observation    ``Box``: coordinates of the depot and of all customers; of each customer the demand
               (of the capacity), begin and end of the window (of a day), and 1 while not visited;
               coordinates of the truck, room left (of the capacity), time of the route (of a day)
reward         minus the distance driven in the step, in parts of the square's side; an illegal
               action costs 1, and the truck stays
termination    all customers are visited
success        all customers are visited, by routes at least 5 % shorter than those of the rule of
               the nearest legal customer
context        depot and 20 customers, uniform in a square; the depot's first coordinate lies in
               alternating bands. Demands 1..9. All are observed
difficulty     tsp (0): no limits, the travelling salesman; cvrp (1): capacity 30; time-windows (2):
               capacity 30, windows of length 0.5 to 1 in a day of 4, service takes 0.1, and a truck
               drives a side of the square in the time 1. It may wait for a window to begin
=============  =====================================================================================

Sizes, capacity and demands are those of Kool et al. 2019 (arXiv:1803.08475), who list mean optimal
lengths of 3.84 (20 cities) and 6.14 (20 customers). Windows are like those of Solomon 1987
(doi:10.1287/opre.35.2.254): around a random time at which the customer can be served.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Flag, FlagArray, Float, FloatArray, Int, IntArray, UInt32
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands

CUSTOMERS = 20
STEPS = 2 * CUSTOMERS
"""Time limit: every customer on a route of its own takes one step less."""
CAPACITY = 30
MAX_DEMAND = 9
DAY = 4.0
"""Time, in sides of the square that a truck drives."""
SERVICE = 0.1
WINDOW = (0.5, 1.0)
"""Range of a window's length."""
MIN_SAVING = 0.05
"""Smallest saving of an episode with success, by the length of the nearest-customer rule."""
NEVER = 1e6
"""Time of the end of a window or a day without limit."""
PROBLEMS = ("tsp", "cvrp", "time-windows")
COLOURS = ("steelblue", "darkorange", "seagreen", "firebrick", "mediumpurple", "sienna", "gray")


class Params(NamedTuple):
    """The instance; place 0 is the depot, n customers follow."""

    x: FloatArray
    y: FloatArray
    """Coordinates, ``(n + 1,)``"""
    distance: FloatArray
    """Between places, ``(n + 1, n + 1)``"""
    demand: IntArray
    """Units, 0 at the depot, ``(n + 1,)``"""
    capacity: Int
    """Units"""
    opening: FloatArray
    closing: FloatArray
    """Begin and end of each window, ``(n + 1,)``; those of the depot are the day"""
    service: Float
    """Time at a customer"""
    rule_length: Float
    """Length of the routes of the nearest-customer rule"""


class Truck(NamedTuple):
    """Place and limits of a truck, and what is left to visit: enough to go on."""

    place: Int
    time: Float
    """Time of its route when service is done"""
    load: Int
    """Demand served on its route, units"""
    waiting: UInt32
    """Bit i: place i is not visited"""


class State(NamedTuple):
    """The routes so far."""

    truck: Truck
    length: Float
    """Distance driven"""
    stops: IntArray
    """Place after each step, ``(40,)``; -1: not yet"""
    steps: Int
    """Moves so far"""


class VehicleRouting(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "length": "distance driven so far",
        "visited": "number of customers visited",
    }
    picture_shape = (300, 300, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in range(len(PROBLEMS)):
            raise ValueError(
                f"The difficulty of {card.id} is 0 (tsp), 1 (cvrp) or 2 (time-windows), got "
                f"{difficulty!r}."
            )
        self.problem = PROBLEMS[int(difficulty or 0)]
        entries = 2 * (CUSTOMERS + 1) + 4 * CUSTOMERS + 4
        self.observation_space = self.box(0.0, 1.0, (entries,))
        self.action_space = spaces.Discrete(CUSTOMERS + 1)
        self.reward_space = self.box(-3.0, 0.0)

    # -- an episode --------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the depot in the bands of the split, and the others alike for both splits."""
        n = CUSTOMERS
        unit = self.uniform(key, 2 * (n + 1) + 3 * n)
        first = alternating_bands(unit[:1], split, 0.0, 1.0, bands=20)
        x = jnp.concatenate([first, unit[1 : n + 1]])
        y = unit[n + 1 : 2 * n + 2]
        demand_unit, center_unit, width_unit = jnp.split(unit[2 * n + 2 :], 3)
        distance = distances_of(x, y)
        demand = 1 + jnp.floor(MAX_DEMAND * demand_unit).astype(jnp.int32)
        if self.problem == "tsp":
            return make_params(x, y, distance)
        if self.problem == "cvrp":
            return make_params(x, y, distance, demand, jnp.int32(CAPACITY))
        ways = distance[0, 1:]
        latest = DAY - SERVICE - ways
        center = ways + (latest - ways) * center_unit
        half = 0.5 * (WINDOW[0] + (WINDOW[1] - WINDOW[0]) * width_unit)
        return make_params(
            x,
            y,
            distance,
            demand,
            jnp.int32(CAPACITY),
            jnp.maximum(center - half, 0),
            jnp.minimum(center + half, latest),
            SERVICE,
            DAY,
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at the depot, with all customers to visit."""
        return start_of_routes(len(params.x) - 1, self.dtype)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive to a place, and home after the last customer."""
        truck = drive(state.truck, action, params)
        driven = params.distance[state.truck.place, action]
        way_home = jnp.where(truck.waiting == 0, params.distance[action, 0], 0)
        return State(
            truck,
            state.length + (driven + way_home),
            jnp.where(jnp.arange(STEPS) == state.steps, action, state.stops).astype(jnp.int32),
            state.steps + 1,
        )

    def action_mask(self, state: State, params: Params) -> FlagArray:
        """Return the places where the truck may go, ``(21,)``."""
        return legal_places(state.truck, params)

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say why the truck may not go there."""
        place = int(action)
        truck = state.truck
        if place == 0 and int(truck.place) == 0:
            return "the truck is at the depot"
        if place == 0:
            return "the truck returns when all customers are visited"
        if not (int(truck.waiting) >> place) & 1:
            return f"customer {place} is visited"
        if int(truck.load) + int(params.demand[place]) > int(params.capacity):
            return f"the demand of customer {place} does not fit in the truck"
        return f"the truck is too late for customer {place}, or could not be home in time"

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return instance and truck, ``(126,)``; see the table."""
        truck = state.truck
        capacity = params.capacity.astype(self.dtype)
        is_waiting = ((truck.waiting >> jnp.arange(1, CUSTOMERS + 1, dtype=jnp.uint32)) & 1) == 1
        rows = (
            params.x,
            params.y,
            params.demand[1:].astype(self.dtype) / capacity,
            params.opening[1:] * (1 / DAY),
            params.closing[1:] * (1 / DAY),
            is_waiting,
            params.x[truck.place][None],
            params.y[truck.place][None],
            ((params.capacity - truck.load).astype(self.dtype) / capacity)[None],
            (truck.time * (1 / DAY))[None],
        )
        entries = jnp.concatenate([row.astype(self.dtype) for row in rows])
        return jnp.clip(entries, 0, 1)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        n = CUSTOMERS
        return (
            Component("x", "first coordinate of the depot and of each customer", "side", (n + 1,)),
            Component("y", "second coordinate of the depot and of each customer", "side", (n + 1,)),
            Component("demand", "demand of each customer", "capacity", (n,)),
            Component("opening", "begin of each customer's window", "day", (n,)),
            Component("closing", "end of each customer's window; 1 without limit", "day", (n,)),
            Component("waiting", "1 for each customer who is not visited, else 0", "1", (n,)),
            Component("truck_x", "first coordinate of the truck", "side"),
            Component("truck_y", "second coordinate of the truck", "side"),
            Component("room", "demand that still fits in the truck", "capacity"),
            Component("time", "time since the truck left the depot", "day"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the places."""
        return (
            Component("depot", "return to the depot"),
            Component("customer", "drive to this customer", "1", (CUSTOMERS,)),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return minus the distance driven; -1 for an illegal action."""
        is_illegal = next_state.steps == state.steps
        return jnp.where(is_illegal, -1, state.length - next_state.length)

    def terminal(self, state: State, key: jax.Array, params: Params) -> Flag:
        """Say whether all customers are visited."""
        return state.truck.waiting == 0

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        is_done = state.truck.waiting == 0
        left = jax.lax.population_count(state.truck.waiting).astype(self.dtype)
        return {
            "success": is_done & (state.length <= (1 - MIN_SAVING) * params.rule_length),
            "length": state.length,
            "visited": CUSTOMERS - left,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"Answer with a number: 0 for the depot, or a customer 1 to {CUSTOMERS}."

    def describe(self, state: State, params: Params) -> str:
        """Describe the truck and all customers who are not visited."""
        truck = state.truck
        place = int(truck.place)
        name = f"customer {place}" if place else "the depot"
        limits = ""
        if self.problem != "tsp":
            room = int(params.capacity) - int(truck.load)
            limits = f", has room for {room} of {int(params.capacity)} units"
        if self.problem == "time-windows":
            limits += f", and its time is {float(truck.time):.4f} of a day of {DAY:g}"
        lines = [
            f"The truck is at {name} ({float(params.x[place]):.4f}, {float(params.y[place]):.4f})"
            f"{limits}. It has driven {float(state.length):.4f}. The depot lies at "
            f"({float(params.x[0]):.4f}, {float(params.y[0]):.4f}).",
            "Not visited:",
        ]
        for customer in range(1, len(params.x)):
            if not (int(truck.waiting) >> customer) & 1:
                continue
            x, y = float(params.x[customer]), float(params.y[customer])
            words = f"{customer}: ({x:.4f}, {y:.4f})"
            if self.problem != "tsp":
                words += f", demand {int(params.demand[customer])}"
            if self.problem == "time-windows":
                opening, closing = float(params.opening[customer]), float(params.closing[customer])
                words += f", window {opening:.4f} to {closing:.4f}"
            lines.append(words)
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw routes, a colour each, the depot as a square, and customers as dots."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        side = height - 40

        def at(place: int) -> tuple[float, float]:
            return 20 + side * float(params.x[place]), 20 + side * (1 - float(params.y[place]))

        place, route = 0, 0
        moves = np.asarray(state.stops)[: int(state.steps)].tolist()
        if int(state.truck.waiting) == 0:
            moves.append(0)
        for stop in moves:
            canvas.line((*at(place), *at(stop)), fill=COLOURS[route % len(COLOURS)], width=3)
            place = stop
            route += stop == 0
        for customer in range(1, len(params.x)):
            x, y = at(customer)
            colour = "black" if (int(state.truck.waiting) >> customer) & 1 else "lightgray"
            canvas.ellipse((x - 4, y - 4, x + 4, y + 4), fill=colour)
        x, y = at(0)
        canvas.rectangle((x - 6, y - 6, x + 6, y + 6), fill="black")
        return np.asarray(image)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how long the routes are."""
        return f"all customers are visited, by routes of length {float(state.length):.4f}"


# -- the rules -------------------------------------------------------------------------------------


def distances_of(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return straight distances between all places."""
    across = x[:, None] - x
    along = y[:, None] - y
    return jnp.sqrt(across * across + along * along)


def make_params(
    x: FloatArray,
    y: FloatArray,
    distance: FloatArray,
    demand: IntArray | None = None,
    capacity: Int | None = None,
    opening: FloatArray | None = None,
    closing: FloatArray | None = None,
    service: float = 0.0,
    day: float = NEVER,
) -> Params:
    """Return the context of an instance; limits that are None do not exist.

    Args:
        x: coordinates of the depot and n customers, ``(n + 1,)``.
        y: coordinates, likewise.
        distance: between places, ``(n + 1, n + 1)``.
        demand: of each customer, ``(n,)``.
        capacity: of a truck.
        opening: begin of each customer's window, ``(n,)``.
        closing: end of each customer's window, ``(n,)``.
        service: time at a customer.
        day: time at which each truck is home at the latest.
    """
    n = len(x) - 1
    zero = jnp.zeros(1, distance.dtype)
    demands = jnp.zeros(n, jnp.int32) if demand is None else demand
    params = Params(
        x,
        y,
        distance,
        jnp.concatenate([jnp.zeros(1, jnp.int32), demands]),
        jnp.int32(1) if capacity is None else capacity,
        jnp.zeros(n + 1, distance.dtype) if opening is None else jnp.concatenate([zero, opening]),
        jnp.concatenate([zero + day, jnp.full(n, NEVER) if closing is None else closing]),
        zero[0] + service,
        zero[0],
    )
    params = jax.tree.map(
        lambda leaf: leaf.astype(distance.dtype) if leaf.dtype.kind == "f" else leaf, params
    )
    return params._replace(rule_length=nearest_length(params))


def start_of_routes(customers: int, dtype: Any) -> State:
    """Return the state before the first move."""
    zero = jnp.zeros((), dtype)
    everyone = np.uint32(2 ** (customers + 1) - 2)
    truck = Truck(jnp.int32(0), zero, jnp.int32(0), jnp.uint32(everyone))
    return State(truck, zero, jnp.full(STEPS, -1, jnp.int32), jnp.int32(0))


def legal_places(truck: Truck, params: Params) -> FlagArray:
    """Return the places where a truck may go, ``(n + 1,)``."""
    places = jnp.arange(len(params.x), dtype=jnp.uint32)
    arrival = truck.time + params.distance[truck.place]
    leaving = jnp.maximum(arrival, params.opening) + params.service
    is_waiting = ((truck.waiting >> places) & 1) == 1
    fits = truck.load + params.demand <= params.capacity
    in_time = (arrival <= params.closing) & (leaving + params.distance[:, 0] <= params.closing[0])
    # The room and the time of a truck without limits never end, and it need not return.
    has_limits = (params.demand[1] > 0) | (params.closing[0] < NEVER)
    may_return = (truck.place != 0) & has_limits
    return jnp.where(places == 0, may_return, is_waiting & fits & in_time)


def drive(truck: Truck, place: Int, params: Params) -> Truck:
    """Return the truck after it drove to a place and served the customer there."""
    is_depot = place == 0
    arrival = truck.time + params.distance[truck.place, place]
    leaving = jnp.maximum(arrival, params.opening[place]) + params.service
    bit = jnp.left_shift(jnp.uint32(1), place.astype(jnp.uint32))
    return Truck(
        place.astype(jnp.int32),
        jnp.where(is_depot, 0, leaving),
        jnp.where(is_depot, 0, truck.load + params.demand[place]).astype(jnp.int32),
        truck.waiting & ~bit,
    )


def nearest_place(truck: Truck, params: Params) -> Int:
    """Return the nearest customer that is legal, or the depot if none is."""
    is_candidate = legal_places(truck, params).at[0].set(False)
    nearest = jnp.argmin(jnp.where(is_candidate, params.distance[truck.place], NEVER))
    return jnp.where(is_candidate[nearest], nearest, 0).astype(jnp.int32)


def nearest_length(params: Params) -> Float:
    """Return the length of the routes by the nearest legal customer."""
    customers = len(params.x) - 1

    def is_unfinished(carry: tuple[Truck, Float]) -> Flag:
        return carry[0].waiting != 0

    def step(carry: tuple[Truck, Float]) -> tuple[Truck, Float]:
        truck, length = carry
        place = nearest_place(truck, params)
        return drive(truck, place, params), length + params.distance[truck.place, place]

    start = start_of_routes(customers, params.distance.dtype)
    truck, length = jax.lax.while_loop(is_unfinished, step, (start.truck, start.length))
    return length + params.distance[truck.place, 0]

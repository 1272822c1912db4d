"""Minecart: fetch two ores from mines and bring them home with little fuel.

A cart starts in a corner of a square, at home. It turns, accelerates, and mines where it stands.
The load is paid at home, where an episode ends. Abels et al. 2019 (arXiv:1809.07803) pose the
problem. The rules are those of ``minecart-v0`` of MO-Gymnasium
(github.com/Farama-Foundation/MO-Gymnasium, version 1.3.2). The setting ``mines`` chooses:

* ``sampled``: each episode has mines and weights of its own, and shows them. One policy must serve
  all of them.
* ``published``: MO-Gymnasium's ``minecart-v0``, with five mines that never move and plain rewards.
* ``deterministic``: its ``minecart-deterministic-v0``. Mines yield their means.

A step has four parts. In each the cart turns by 10 degrees, or its speed grows by 0.0075 (1 at
most), or it stops, or it mines. Then it moves by its speed. Walls stop the cart, and bend its
heading by 10 degrees along them where they are not met head-on; its speed is then the distance that
it has moved. A cart slower than 0.001 stands. A standing cart mines if the nearest mine is at most
0.14 away: of each ore the larger of 0 and a normal number, scaled down to what there is room for.

=============  ====================================================================================
observation    ``sampled``: ``Box(-1, 1, (30,))``: position (x, y); speed; sine and cosine of the
               heading; both ores / 1.5; x of five mines, y of them, means of the first ore that
               they yield / 0.2, of the second ore; weights of first ore, second ore and fuel.
               others: ``Box(-1, 1, (7,))``: the first seven of these
action         0 mine, 1 left, 2 right, 3 accelerate, 4 brake, 5 none
reward         (first ore, second ore, fuel): the ores that are brought home; -0.02 for each step,
               -0.1 more to accelerate, -0.2 more to mine. ``sampled``: each is multiplied by its
               weight, others have weights of 1
termination    home again: within 0.15 of the corner, after having been outside
success        a load came home that is worth at least half of a full one of the best mine
context        ``sampled``: five mines, uniform in the square [0.1, 0.9] without its part within
               0.45 of both walls at home; the published yields, in any order. One ore is wanted
               and has a weight in [0.5, 1), in other bands for test than for training. That of the
               other is uniform in [-1, 0.5), and that of fuel in [0.02, 0.2). others: none
=============  ====================================================================================

MO-Gymnasium draws what is mined from NumPy's global generator, which ``reset(seed=...)`` does not
seed. Its ``pareto_front`` is approximate, and so is ours: no exact front is known.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Flag, Float, FloatArray, Int
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from ..shared.named_actions import NamedActions

SUBSTEPS = 4
"""Parts of a step."""
HEADINGS = 36
"""Headings: number n is 45 degrees + 10 n, from the x axis to the y axis."""
ANGLES = np.radians(45 + 10 * np.arange(HEADINGS))
COSINES, SINES = np.cos(ANGLES), np.sin(ANGLES)
ACCELERATION = 0.0075
MAX_SPEED = 1.0
MIN_SPEED = 0.001
"""Speed below which a cart stands."""
CAPACITY = 1.5
MINE_RADIUS = 0.14
HOME_RADIUS = 0.15
IDLE_FUEL, ACCELERATION_FUEL, MINING_FUEL = 0.02, 0.1, 0.2
"""Fuel of a step, and what accelerating and mining take more."""
SPREAD = 0.05
"""Standard deviation of what is mined of an ore in a part of a step."""

MINES = 5
PUBLISHED_X = (0.16, 0.5, 0.84, 0.84, 0.84)
PUBLISHED_Y = (0.84, 0.84, 0.84, 0.5, 0.16)
FIRST_YIELDS = (0.2, 0.15, 0.2, 0.1, 0.0)
SECOND_YIELDS = (0.0, 0.1, 0.2, 0.15, 0.2)
"""Means of what the published mines yield in a part of a step."""
MAX_YIELD = 0.2
LOW, HIGH, HOME_SIDE = 0.1, 0.9, 0.45
"""Bounds of sampled mines, and the side of the square at home that has none."""
WANTED_WEIGHT = (0.5, 1.0)
"""Range of the weight of the ore that is wanted."""
OTHER_WEIGHT = (-1.0, 0.5)
FUEL_WEIGHT = (0.02, 0.2)
BANDS = 20
"""Bands of the weight of the wanted ore, in turn of training and of test episodes."""

ACTIONS = {
    "mine": "mine the nearest mine",
    "left": "turn left by 40 degrees",
    "right": "turn right by 40 degrees",
    "accelerate": "gain 0.03 of speed",
    "brake": "stop",
    "none": "keep the speed",
}
DIG, LEFT, RIGHT, ACCELERATE, BRAKE, NONE = range(len(ACTIONS))
ORE_COLOURS = ((57, 112, 252), (137, 48, 182))


class Params(NamedTuple):
    """Mines and weights of an episode."""

    mine_x: FloatArray
    """``(5,)``"""
    mine_y: FloatArray
    """``(5,)``"""
    first_yield: FloatArray
    """Mean of the first ore in a part of a step, ``(5,)``."""
    second_yield: FloatArray
    """The same of the second ore, ``(5,)``."""
    first_weight: Float
    second_weight: Float
    fuel_weight: Float


class State(NamedTuple):
    """Motion and load of the cart."""

    x: Float
    """In [0, 1], as is ``y``; home is the corner (0, 0)."""
    y: Float
    speed: Float
    """Distance in a part of a step."""
    heading: Int
    """int32 in [0, 35], see :data:`HEADINGS`."""
    first: Float
    """Load of the first ore."""
    second: Float
    """Load of the second ore."""
    has_left: Flag
    """True once the cart was outside of home."""
    is_back: Flag
    first_sold: Float
    """First ore that came home."""
    second_sold: Float


class Minecart(NamedActions, Task[Params, State]):
    """The task of this file's docstring, with sampled mines and weights."""

    action_names = tuple(ACTIONS)
    measures: ClassVar[dict[str, str]] = {
        "first_ore": "first ore that was brought home",
        "second_ore": "second ore that was brought home",
    }
    picture_shape = (300, 300, 3)
    spread = SPREAD

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        cart_low = [0.0, 0.0, 0.0, -1.0, -1.0, 0.0, 0.0]
        self.observation_space = self.box(
            [*cart_low, *np.zeros(4 * MINES), -1.0, -1.0, 0.0], np.ones(4 * MINES + 10)
        )
        self.action_space = spaces.Discrete(len(ACTIONS))
        max_fuel = IDLE_FUEL + MINING_FUEL
        self.reward_space = self.box(
            [-CAPACITY, -CAPACITY, -max_fuel * FUEL_WEIGHT[1]], [CAPACITY, CAPACITY, 0.0]
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample mines and weights."""
        unit = self.uniform(key, 3 * MINES + 4)
        across, along, order = unit[: 3 * MINES].reshape(3, MINES)
        wanted_unit, other_unit, fuel_unit, order_unit = unit[3 * MINES :]
        x, y = outside_home(across, along)
        rank = (order[None] < order[:, None]).sum(1, dtype=jnp.int32)
        wanted_weight = alternating_bands(wanted_unit, split, *WANTED_WEIGHT, BANDS).astype(
            self.dtype
        )
        other_weight = _scale(other_unit, OTHER_WEIGHT)
        wants_first = order_unit < 0.5
        return Params(
            x,
            y,
            jnp.asarray(FIRST_YIELDS, self.dtype)[rank],
            jnp.asarray(SECOND_YIELDS, self.dtype)[rank],
            jnp.where(wants_first, wanted_weight, other_weight),
            jnp.where(wants_first, other_weight, wanted_weight),
            _scale(fuel_unit, FUEL_WEIGHT),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Stand at home, empty, with a heading of 45 degrees."""
        zero = jnp.zeros((), self.dtype)
        no = jnp.bool_(False)
        return State(zero, zero, zero, jnp.int32(0), zero, zero, no, no, zero, zero)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive and mine for a step."""
        if not self.spread:
            return self.drive(state, action, np.zeros(2 * SUBSTEPS, self.dtype), params)
        return self.drive(state, action, self.normal(key, 2 * SUBSTEPS), params)

    def drive(self, state: State, action: Int, noise: FloatArray, params: Params) -> State:
        """Return the next state.

        Args:
            state: its fields and ``action`` may be arrays, and are then those of as many carts.
            action: number of the action.
            noise: standard normal numbers, of both ores in each part of the step, ``(8,)``.
            params: the mines.
        """
        turn = (action == RIGHT).astype(jnp.int32) - (action == LEFT).astype(jnp.int32)
        gain = jnp.where(action == ACCELERATE, np.asarray(ACCELERATION, self.dtype), 0)
        digs = action == DIG
        is_over = state.is_back
        has_stopped = state.is_back
        standing = []
        for _ in range(SUBSTEPS):
            # The part after that of the return still turns and accelerates, but does not move.
            state = state._replace(
                heading=_wrap(jnp.where(has_stopped, state.heading, state.heading + turn)),
                speed=jnp.where(
                    has_stopped,
                    state.speed,
                    jnp.where(action == BRAKE, 0, jnp.minimum(state.speed + gain, MAX_SPEED)),
                ),
            )
            has_stopped = has_stopped | is_over
            moves = ~has_stopped & (state.speed >= MIN_SPEED)
            standing.append(digs & ~has_stopped & ~moves)
            state = self._roll(state, moves)
            is_home = state.x * state.x + state.y * state.y < HOME_RADIUS**2
            is_over = is_over | (state.has_left & is_home)
            state = state._replace(has_left=state.has_left | ~is_home)
        sells = is_over & ~state.is_back
        loaded = self._dig(state, standing, noise, params)
        return loaded._replace(
            is_back=is_over,
            first=jnp.where(sells, 0, loaded.first),
            second=jnp.where(sells, 0, loaded.second),
            first_sold=jnp.where(sells, loaded.first, loaded.first_sold),
            second_sold=jnp.where(sells, loaded.second, loaded.second_sold),
        )

    def _dig(self, state: State, standing: list[Flag], noise: FloatArray, params: Params) -> State:
        """Mine in the parts of a step in which the cart stands, if it stands at a mine.

        A cart that stands in a part of a step without moving off stays there, so that its place
        after the step tells the mine. There is none so near home that a cart could mine there.
        """
        squares = [
            (state.x - params.mine_x[site]) ** 2 + (state.y - params.mine_y[site]) ** 2
            for site in range(MINES)
        ]
        nearest = squares[0]
        first_mean, second_mean = params.first_yield[0], params.second_yield[0]
        for site in range(1, MINES):
            is_nearer = squares[site] < nearest
            nearest = jnp.where(is_nearer, squares[site], nearest)
            first_mean = jnp.where(is_nearer, params.first_yield[site], first_mean)
            second_mean = jnp.where(is_nearer, params.second_yield[site], second_mean)
        at_mine = nearest <= MINE_RADIUS**2
        first, second = state.first, state.second
        for substep in range(SUBSTEPS):
            first_ore = jnp.maximum(first_mean + self.spread * noise[2 * substep], 0)
            second_ore = jnp.maximum(second_mean + self.spread * noise[2 * substep + 1], 0)
            room = jnp.maximum(CAPACITY - first - second, 0)
            total = first_ore + second_ore
            fraction = jnp.where(total > room, room / jnp.maximum(total, 1e-6), 1)
            fraction = jnp.where(standing[substep] & at_mine, fraction, 0)
            first = first + fraction * first_ore
            second = second + fraction * second_ore
        return state._replace(first=first, second=second)

    def _roll(self, state: State, moves: Flag) -> State:
        """Move for a part of a step, along walls."""
        x, y = state.x, state.y
        right = state.speed * jnp.asarray(COSINES, self.dtype)[state.heading]
        down = state.speed * jnp.asarray(SINES, self.dtype)[state.heading]
        slides_down = (y > 0) & (y < 1) & (jnp.abs(down) > MIN_SPEED)
        slides_right = (x > 0) & (x < 1) & (jnp.abs(right) > MIN_SPEED)
        toward_x = ((x == 1) & (right > 0)).astype(jnp.int32) - ((x == 0) & (right < 0))
        toward_y = ((y == 1) & (down > 0)).astype(jnp.int32) - ((y == 0) & (down < 0))
        bend = jnp.where(slides_down, jnp.where(down > 0, toward_x, -toward_x), 0)
        bend = bend - jnp.where(slides_right, jnp.where(right > 0, toward_y, -toward_y), 0)
        next_x = jnp.clip(x + right, 0, 1)
        next_y = jnp.clip(y + down, 0, 1)
        distance = jnp.sqrt((next_x - x) ** 2 + (next_y - y) ** 2)
        return state._replace(
            x=jnp.where(moves, next_x, x),
            y=jnp.where(moves, next_y, y),
            speed=jnp.where(moves, distance, state.speed),
            heading=jnp.where(moves, _wrap(state.heading + bend), state.heading),
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return cart, mines and weights, ``(30,)``."""
        scale = 1 / MAX_YIELD
        yields = (params.first_yield * scale, params.second_yield * scale)
        mines = (params.mine_x, params.mine_y, *yields)
        return jnp.concatenate(
            [
                self.cart_observation(state),
                *(field.astype(self.dtype) for field in mines),
                self.stack(params.first_weight, params.second_weight, params.fuel_weight),
            ]
        )

    def cart_observation(self, state: State) -> jax.Array:
        """Return motion and load, ``(7,)``."""
        scale = 1 / CAPACITY
        return self.stack(
            state.x,
            state.y,
            state.speed,
            jnp.asarray(SINES, self.dtype)[state.heading],
            jnp.asarray(COSINES, self.dtype)[state.heading],
            jnp.minimum(state.first * scale, 1),
            jnp.minimum(state.second * scale, 1),
        )

    def read_observation(self, observation: jax.Array) -> tuple[State, Params]:
        """Return what an observation shows."""
        x, y, first_yield, second_yield = observation[7 : 7 + 4 * MINES].reshape(4, MINES)
        yields = (first_yield * MAX_YIELD, second_yield * MAX_YIELD)
        return self.read_cart(observation), Params(x, y, *yields, *observation[7 + 4 * MINES :])

    def read_cart(self, observation: jax.Array) -> State:
        """Return what an observation shows of the cart, before the end of an episode."""
        x, y, speed, sine, cosine, first, second = observation[:7]
        angle = jnp.arctan2(sine, cosine) * (18 / np.pi)
        zero = jnp.zeros((), self.dtype)
        return State(
            x,
            y,
            speed,
            _wrap(jnp.round(angle - 4.5).astype(jnp.int32)),
            first * CAPACITY,
            second * CAPACITY,
            x * x + y * y >= HOME_RADIUS**2,
            jnp.bool_(False),
            zero,
            zero,
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List cart, mines and weights."""
        mines = (MINES,)
        return (
            *cart_components(),
            Component("mine_x", "place of each mine to the right of home", "1", mines),
            Component("mine_y", "place of each mine below home", "1", mines),
            Component("first_yield", "mean first ore in a part of a step", f"{MAX_YIELD:g}", mines),
            Component(
                "second_yield", "mean second ore in a part of a step", f"{MAX_YIELD:g}", mines
            ),
            Component("first_weight", "weight of the first ore", "1"),
            Component("second_weight", "weight of the second ore", "1"),
            Component("fuel_weight", "weight of fuel", "1"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the six actions."""
        return singles(ACTIONS)

    def noop_action(self) -> np.ndarray:
        """Return the action that keeps the speed, and so stands at home."""
        return np.array(NONE, self.action_space.dtype)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return (first ore, second ore, fuel), each multiplied by its weight, ``(3,)``."""
        extra = jnp.where(
            action == ACCELERATE, ACCELERATION_FUEL, jnp.where(action == DIG, MINING_FUEL, 0.0)
        )
        return self.stack(
            params.first_weight * next_state.first_sold,
            params.second_weight * next_state.second_sold,
            -params.fuel_weight * (IDLE_FUEL + extra),
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the cart is home again."""
        return state.is_back

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: a load came home that is worth half of a full one of the best mine.

        The measures say how much of each ore came home.
        """
        value = params.first_weight * state.first_sold + params.second_weight * state.second_sold
        best = load_value(0, params)
        for site in range(1, MINES):
            best = jnp.maximum(best, load_value(site, params))
        return {
            "success": state.is_back & (value >= 0.5 * CAPACITY * best),
            "first_ore": state.first_sold,
            "second_ore": state.second_sold,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def rules(self) -> str:
        """Tell how the cart moves and mines, and what counts."""
        return (
            f"{self.card.name}: {self.card.summary}\n"
            "The field is a square with sides of 1; x points right and y down. Home is the circle "
            "of radius 0.15 around (0, 0). Headings are angles from the x axis towards the y axis. "
            "A step has four parts; in each you turn by 10 degrees, gain 0.0075 of speed, stop or "
            "mine, and then move by your speed. You can mine while you stand within 0.14 of a "
            "mine. The cart holds 1.5 of ores. What you bring home counts, and the episode ends "
            "there. A step costs 0.02 of fuel, 0.12 to accelerate, 0.22 to mine."
        )

    def describe(self, state: State, params: Params) -> str:
        """Tell motion and load, and the terms of the episode."""
        degrees = (45 + 10 * int(state.heading)) % 360
        lines = [
            f"The cart is at ({float(state.x):.3f}, {float(state.y):.3f}), heads for {degrees} "
            f"degrees and moves by {float(state.speed):.4f} in a part of a step.",
            f"It carries {float(state.first):.3f} of the first ore and {float(state.second):.3f} "
            "of the second.",
            *self._terms(params),
        ]
        return "\n".join(lines)

    def _terms(self, params: Params) -> list[str]:
        """Return the lines that tell mines and weights."""
        fields = (params.mine_x, params.mine_y, params.first_yield, params.second_yield)
        mines = [
            f"Mine at ({x:.3f}, {y:.3f}): {first:.2f} of the first ore and {second:.2f} of the "
            "second in a part of a step."
            for x, y, first, second in zip(*map(np.asarray, fields), strict=True)
        ]
        return [
            *mines,
            f"The first ore is worth {float(params.first_weight):.4f}, the second "
            f"{float(params.second_weight):.4f}; fuel costs {float(params.fuel_weight):.4f}.",
        ]

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw home, mines with bars of both yields, and the cart with its load and heading."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "beige")
        canvas = ImageDraw.Draw(image)

        def disc(x: float, y: float, radius: float, colour: str) -> None:
            corners = (x - radius) * width, (y - radius) * height
            canvas.ellipse((*corners, (x + radius) * width, (y + radius) * height), fill=colour)

        disc(0, 0, HOME_RADIUS, "darkseagreen")
        fields = (params.mine_x, params.mine_y, params.first_yield, params.second_yield)
        mines = list(zip(*(np.asarray(field).tolist() for field in fields), strict=True))
        for x, y, *_ in mines:
            disc(x, y, MINE_RADIUS, "tan")
        for x, y, *yields in mines:
            for number, (ore, colour) in enumerate(zip(yields, ORE_COLOURS, strict=True)):
                left = x * width - 9 + 10 * number
                bottom = y * height + 12
                canvas.rectangle((left, bottom - 24 * ore / MAX_YIELD, left + 8, bottom), colour)
        x, y = float(state.x), float(state.y)
        disc(x, y, 0.03, "black")
        for number, (load, colour) in enumerate(
            zip((state.first, state.second), ORE_COLOURS, strict=True)
        ):
            left = x * width - 7 + 8 * number
            canvas.rectangle(
                (left, y * height - 6 * float(load) / CAPACITY, left + 6, y * height + 6), colour
            )
        length = 14 + 400 * float(state.speed)
        tip_x = x * width + length * COSINES[int(state.heading)]
        tip_y = y * height + length * SINES[int(state.heading)]
        canvas.line((x * width, y * height, tip_x, tip_y), fill="firebrick", width=3)
        return np.asarray(image)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say what came home."""
        return (
            f"home with {float(state.first_sold):.3f} of the first ore and "
            f"{float(state.second_sold):.3f} of the second"
        )


class PublishedMines(Minecart):
    """The task with MO-Gymnasium's mines and plain rewards."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box([0.0, 0.0, 0.0, -1.0, -1.0, 0.0, 0.0], np.ones(7))
        max_fuel = IDLE_FUEL + MINING_FUEL
        self.reward_space = self.box([0.0, 0.0, -max_fuel], [CAPACITY, CAPACITY, 0.0])

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        return self.only_context()

    def only_context(self) -> Params:
        """Return the published mines, and weights of 1."""
        fields = (PUBLISHED_X, PUBLISHED_Y, FIRST_YIELDS, SECOND_YIELDS)
        weight = jnp.ones((), self.dtype)
        return Params(*(jnp.asarray(field, self.dtype) for field in fields), *[weight] * 3)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return motion and load, ``(7,)``."""
        return self.cart_observation(state)

    def read_observation(self, observation: jax.Array) -> tuple[State, Params]:
        """Return what an observation shows, and the only context."""
        return self.read_cart(observation), self.only_context()

    def observation_components(self) -> tuple[Component, ...]:
        """List motion and load."""
        return cart_components()

    def _terms(self, params: Params) -> list[str]:
        return []


class DeterministicMines(PublishedMines):
    """The task with MO-Gymnasium's mines, which yield their means."""

    spread = 0.0


def load_value(site: int, params: Params) -> Float:
    """Return the weighted value of a unit of the mean mixture of a mine."""
    first, second = params.first_yield[site], params.second_yield[site]
    value = params.first_weight * first + params.second_weight * second
    return value / (first + second)


def outside_home(across: FloatArray, along: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a point of the area where mines may be, uniform if the arguments are in [0, 1).

    The area is that to the right of home, as high as it all, and that below home beside it.
    """
    right_area = (HIGH - HOME_SIDE) * (HIGH - LOW)
    below_area = (HOME_SIDE - LOW) * (HIGH - HOME_SIDE)
    share = right_area / (right_area + below_area)
    is_right = across < share
    x = jnp.where(
        is_right,
        HOME_SIDE + (HIGH - HOME_SIDE) / share * across,
        LOW + (HOME_SIDE - LOW) / (1 - share) * (across - share),
    )
    y = jnp.where(is_right, LOW + (HIGH - LOW) * along, HOME_SIDE + (HIGH - HOME_SIDE) * along)
    return x, y


def cart_components() -> tuple[Component, ...]:
    """List motion and load."""
    return (
        Component("x", "place to the right of home"),
        Component("y", "place below home"),
        Component("speed", "distance in a part of a step"),
        Component("sine", "sine of the heading, from the x axis to the y axis"),
        Component("cosine", "cosine of the heading"),
        Component("first_load", "load of the first ore", f"{CAPACITY:g}"),
        Component("second_load", "load of the second ore", f"{CAPACITY:g}"),
    )


def _wrap(heading: Int) -> Int:
    """Return a heading that was left by less than a turn in [0, 35]."""
    below = jnp.where(heading < 0, heading + HEADINGS, heading)
    return jnp.where(below >= HEADINGS, below - HEADINGS, below)


def _scale(unit: Float, limits: tuple[float, float]) -> Float:
    """Map a number in [0, 1) to a range."""
    low, high = limits
    return low + (high - low) * unit


CLASSES = {
    "sampled": Minecart,
    "published": PublishedMines,
    "deterministic": DeterministicMines,
}


def make(card: TaskCard, *, difficulty: float | None = None, dtype: str = "float32") -> Minecart:
    """Make the task of a card."""
    return CLASSES[card.settings["mines"]](card, difficulty=difficulty, dtype=dtype)

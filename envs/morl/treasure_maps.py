"""Treasure Maps: a submarine chooses among drawn treasures, for drawn weights of treasure and time.

Deep Sea Treasure (Vamplew et al. 2011, doi:10.1007/s10994-010-5232-5) has one map and leaves the
weights to the user. Here an episode has eight dives. Each has a map and weights of its own, and
shows both, so that one policy must serve all of them. The idea of one policy for all weights is
that of Abels et al. 2019 (arXiv:1809.07803).

A map is a grid of n x n cells of water, seen from the side. In every column a treasure lies on the
sea floor, with rock below. The submarine starts at the surface, above a drawn column. A dive is
over when it reaches a treasure, or after 2 n steps, when its air is spent. The next dive then
begins. There is air enough to reach any one treasure.

=============  ====================================================================================
observation    ``Box`` of 3 n + 5 numbers: for each column, the columns to the right of the
               submarine / (n - 1), then for each the rows from the submarine down to the treasure /
               n, then for each the value of the treasure / 2 n; row of the submarine / n (0 is the
               surface); weights of treasure and of time in this dive; steps of air left / 2 n;
               dives left / 8, the present one included
action         0 sink, 1 rise, 2 left, 3 right: one cell; a move off the grid or into rock keeps the
               position
reward         (treasure, time), each multiplied by the dive's weight of it: the value of the
               treasure in the cell reached, else 0; and -1. Their sum is thus the return that the
               weights ask for, and a reward divided by the observed weight is the plain objective
termination    the last dive is over
success        every dive reached a treasure, with the best possible weighted return of its map
context        of each dive: depth of each treasure, uniform in 1 ... n; value, uniform in [0, 2
               depth); column of the start; weight of treasure, uniform in [0.1, 0.9); that of time
               is the rest to 1. Values of test maps lie in other bands than those of training maps
difficulty     n: easy 4, medium 6, hard 10
=============  ====================================================================================

Weights are drawn anew with each dive, as maps are. Dives are then independent problems, and the
return of an episode is the sum of eight of them: with one dive, returns varied by twice the
distance between doing nothing and the optimum.

The way along the surface is always open. So the best ways from the start to all treasures, and with
them the Pareto front of a map and the best return for every weight, are known exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from ..shared.named_actions import NamedActions

DIVES = 8
"""Dives of an episode."""
MOVES = {"sink": (1, 0), "rise": (-1, 0), "left": (0, -1), "right": (0, 1)}
SINK, RISE, LEFT, RIGHT = range(len(MOVES))
COLUMNS = (2, 12)
"""Smallest and largest number of columns.

All dives of the largest together have air for 192 steps, the horizon.
"""
AIR_PER_COLUMN = 2
"""Steps of a dive for each column of the map. The farthest treasure is 2 n - 1 steps away."""
VALUE_PER_ROW = 2.0
"""Largest value of a treasure for each row of its depth."""
WEIGHTS = (0.1, 0.9)
"""Range of the weight of treasure."""
BANDS = 20
"""Bands of values, in turn of training and of test maps."""
ROUNDING = 1e-3
"""Weighted returns whose difference is smaller are equal."""
PIXELS = 300
BAR = 8
"""Height of each bar above the map, in pixels."""
WATER, ROCK, GOLD, HULL = (64, 120, 190), (92, 74, 58), (236, 196, 60), (245, 245, 245)
AIR, BLANK = (150, 200, 240), (30, 30, 30)


class Map(NamedTuple):
    """The map of a dive, the start and the weights.

    In :class:`Params`, each field has the dives on its first axis.
    """

    floor: jax.Array
    """Row of the treasure of each column, int32 ``(n,)`` in [1, n]; 0 is the surface."""
    value: jax.Array
    """Value of the treasure of each column, ``(n,)``."""
    start: jax.Array
    """Column of the start, int32."""
    weight: jax.Array
    """Weight of treasure; that of time is ``1 - weight``."""


class Params(NamedTuple):
    """The maps of all dives."""

    maps: Map
    """Fields of shape ``(8, n)`` and ``(8,)``."""


class Position(NamedTuple):
    """A cell."""

    row: jax.Array
    """int32 in [0, n], downwards."""
    column: jax.Array
    """int32 in [0, n - 1]."""


class State(NamedTuple):
    """The dive, the place of the submarine in it, and what the dives before brought."""

    dive: jax.Array
    """Dives that are over, int32."""
    position: Position
    """Cell of the submarine; after the last dive, the cell where that ended."""
    air: jax.Array
    """Steps left in this dive, int32."""
    steps: jax.Array
    """Steps so far, int32."""
    treasure: jax.Array
    """Sum of the values of the treasures so far."""
    best_dives: jax.Array
    """Dives so far with the best possible weighted return, int32."""


class TreasureMaps(NamedActions, Task[Params, State]):
    """The task; see the module's head for its rules."""

    measures = {  # noqa: RUF012
        "treasure": "sum of the values of the treasures so far",
        "time": "steps so far",
        "dives": "dives that are over",
        "best_dives": "dives so far with the best possible weighted return",
    }
    picture_shape = (PIXELS + 3 * BAR, PIXELS, 3)
    action_names = tuple(MOVES)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        min_columns, max_columns = COLUMNS
        if (
            difficulty is None
            or difficulty != int(difficulty)
            or not min_columns <= difficulty <= max_columns
        ):
            raise ValueError(
                f"difficulty of {card.id} is a number of columns, {min_columns} to {max_columns}; "
                f"got {difficulty!r}."
            )
        #: Number of columns, and of rows below the surface.
        self.size = n = int(difficulty)
        #: Steps of a dive.
        self.air = AIR_PER_COLUMN * n
        low = np.concatenate(
            [-np.ones(2 * n), np.zeros(n + 1), np.full(2, WEIGHTS[0]), np.zeros(2)]
        )
        high = np.concatenate([np.ones(3 * n + 1), np.full(2, WEIGHTS[1]), np.ones(2)])
        self.observation_space = self.box(low, high)
        self.action_space = spaces.Discrete(len(MOVES))
        self.reward_space = self.box(
            [0.0, -WEIGHTS[1]], [WEIGHTS[1] * VALUE_PER_ROW * n, -WEIGHTS[0]]
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a map, a start and the weights of each dive."""
        n = self.size
        unit = self.uniform(key, DIVES * (2 * n + 2)).reshape(DIVES, 2 * n + 2)
        floor = 1 + jnp.floor(unit[:, :n] * n).astype(jnp.int32)
        share = alternating_bands(unit[:, n : 2 * n], split, 0.0, 1.0, BANDS)
        value = (VALUE_PER_ROW * floor).astype(self.dtype) * share
        start = jnp.floor(unit[:, 2 * n] * n).astype(jnp.int32)
        low, high = WEIGHTS
        return Params(
            Map(floor, value.astype(self.dtype), start, low + (high - low) * unit[:, 2 * n + 1])
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start the first dive at the surface."""
        zero = jnp.int32(0)
        nothing = jnp.zeros((), self.dtype)
        return State(
            zero, Position(zero, params.maps.start[0]), jnp.int32(self.air), zero, nothing, zero
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move one cell, unless that leaves the grid or enters rock.

        If the dive is over, go to the next map.
        """
        chart = self.map_at(state.dive, params)
        position = self.move(state.position, action, chart)
        air = state.air - 1
        treasure = self.treasure_at(position, chart)
        at_treasure = position.row == chart.floor[position.column]
        earned = chart.weight * treasure - (1 - chart.weight) * (self.air - air)
        best = at_treasure & (earned > self.best_return(chart) - ROUNDING)
        over = at_treasure | (air == 0)
        dive = state.dive + over
        onwards = over & (dive < DIVES)
        return State(
            dive,
            Position(
                jnp.where(onwards, 0, position.row),
                jnp.where(onwards, self.map_at(dive, params).start, position.column),
            ),
            jnp.where(onwards, self.air, air),
            state.steps + 1,
            state.treasure + treasure,
            state.best_dives + best,
        )

    def map_at(self, dive: jax.Array, params: Params) -> Map:
        """Return the map of a dive; after the last one, that of the last."""
        number = jnp.minimum(dive, DIVES - 1)
        return Map(*(field[number] for field in params.maps))

    def move(self, position: Position, action: jax.Array, chart: Map) -> Position:
        """Return the place after a move."""
        down, right = jnp.asarray(tuple(MOVES.values()), jnp.int32)[action]
        row = jnp.maximum(position.row + down, 0)
        column = jnp.clip(position.column + right, 0, self.size - 1)
        free = row <= chart.floor[column]
        return Position(
            jnp.where(free, row, position.row), jnp.where(free, column, position.column)
        )

    def treasure_at(self, position: Position, chart: Map) -> jax.Array:
        """Return the value of the treasure in a cell, 0 in open water."""
        return jnp.where(
            position.row == chart.floor[position.column], chart.value[position.column], 0
        ).astype(self.dtype)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the map as seen from the submarine, and what is left, ``(3 n + 5,)``.

        It has the submarine's row, the weights, and the air and dives that are left.
        """
        n = self.size
        chart = self.map_at(state.dive, params)
        sideways = (np.arange(n, dtype=np.int32) - state.position.column).astype(
            self.dtype
        ) * np.asarray(1 / (n - 1), self.dtype)
        down = (chart.floor - state.position.row).astype(self.dtype) * np.asarray(1 / n, self.dtype)
        value = chart.value * np.asarray(1 / (VALUE_PER_ROW * n), self.dtype)
        scalars = self.stack(
            state.position.row * (1 / n),
            chart.weight,
            1 - chart.weight,
            state.air * (1 / self.air),
            (DIVES - state.dive) * (1 / DIVES),
        )
        bounds: Any = self.observation_space
        return jnp.clip(jnp.concatenate([sideways, down, value, scalars]), bounds.low, bounds.high)

    def read_observation(self, observation: jax.Array) -> tuple[Position, Map]:
        """Return the present cell and the map that an observation shows.

        The map is that of a dive that begins here.
        """
        n = self.size
        columns_right, rows_down, values = slice(0, n), slice(n, 2 * n), slice(2 * n, 3 * n)
        present_row, treasure_weight = 3 * n, 3 * n + 1
        row = jnp.round(observation[present_row] * n).astype(jnp.int32)
        column = jnp.argmin(jnp.abs(observation[columns_right])).astype(jnp.int32)
        floor = row + jnp.round(observation[rows_down] * n).astype(jnp.int32)
        value = observation[values] * (VALUE_PER_ROW * n)
        return Position(row, column), Map(floor, value, column, observation[treasure_weight])

    def observation_components(self) -> tuple[Component, ...]:
        """List the map, the row, the weights, and what is left."""
        n = self.size
        return (
            Component(
                "columns_right",
                "columns to the right of the submarine, column by column",
                f"{n - 1} columns",
                (n,),
            ),
            Component(
                "rows_down",
                "rows from the submarine down to the treasure of each column",
                f"{n} rows",
                (n,),
            ),
            Component(
                "values", "value of the treasure of each column", f"{VALUE_PER_ROW * n:g}", (n,)
            ),
            Component("row", "row of the submarine, 0 is the surface", f"{n} rows"),
            Component("treasure_weight", "weight of treasure in this dive", "1"),
            Component("time_weight", "weight of time in this dive", "1"),
            Component("air", "steps left in this dive", f"{self.air} steps"),
            Component("dives_left", "dives left, the present one included", f"{DIVES} dives"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the four moves."""
        directions = {"sink": "down", "rise": "up", "left": "left", "right": "right"}
        return singles(
            {move: f"move one cell {direction}" for move, direction in directions.items()}
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return (treasure, time), each multiplied by its weight, ``(2,)``."""
        chart = self.map_at(state.dive, params)
        treasure = self.treasure_at(self.move(state.position, action, chart), chart)
        return self.stack(chart.weight * treasure, chart.weight - 1)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the last dive is over."""
        return state.dive == DIVES

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: each dive found a treasure, with the best return for its weights."""
        return {
            "success": state.best_dives == DIVES,
            "treasure": state.treasure,
            "time": state.steps.astype(self.dtype),
            "dives": state.dive.astype(self.dtype),
            "best_dives": state.best_dives.astype(self.dtype),
        }

    # -- what is known of the problem --------------------------------------------------------------

    def cruising_rows(self, position: Position, chart: Map) -> jax.Array:
        """Return the lowest row in which the submarine can go to each column, int32 ``(n,)``.

        It is not below its present row. Going sideways ends above the floor of all columns on the
        way, and at most on the floor of the last one.
        """
        columns = np.arange(self.size)
        # passed[i, j]: column j lies between the submarine and column i.
        between_right = (columns[None] > position.column) & (columns[None] < columns[:, None])
        between_left = (columns[None] < position.column) & (columns[None] > columns[:, None])
        above_rock = jnp.where(
            between_right | between_left, chart.floor[None] - 1, position.row
        ).min(1)
        return jnp.minimum(jnp.minimum(above_rock, chart.floor), position.row)

    def steps_to_treasures(self, position: Position, chart: Map) -> jax.Array:
        """Return the number of steps from here to the treasure of each column, int32 ``(n,)``.

        The shortest way rises to the lowest row that is free on the way, goes sideways, and sinks.
        """
        cruising = self.cruising_rows(position, chart)
        sideways = jnp.abs(np.arange(self.size, dtype=np.int32) - position.column)
        return (position.row - cruising) + sideways + (chart.floor - cruising)

    def returns_to_go(self, position: Position, chart: Map) -> jax.Array:
        """Return the weighted return of the shortest way to each column's treasure, ``(n,)``."""
        return chart.weight * chart.value - (1 - chart.weight) * self.steps_to_treasures(
            position, chart
        )

    def best_return(self, chart: Map) -> jax.Array:
        """Return the best weighted return of a dive. The way along the surface is open."""
        steps = jnp.abs(np.arange(self.size, dtype=np.int32) - chart.start) + chart.floor
        return (chart.weight * chart.value - (1 - chart.weight) * steps).max()

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Draw the map in letters, and tell the weights and what is left."""
        chart, number = self._shown_map(state, params)
        position = state.position
        weight = float(chart.weight)
        lines = [
            f"Dive {number + 1} of {DIVES}, with air for {int(state.air)} of {self.air} steps.",
            f"Treasure counts {weight:.4f} times its value, a step costs {1 - weight:.4f}.",
            (
                f"The submarine S is in row {int(position.row)}, column {int(position.column)}. # "
                "is rock, . is water."
            ),
        ]
        for row in range(self.size + 1):
            cells = [self._symbol(row, column, position, chart) for column in range(self.size)]
            lines.append("".join(f"{cell:>7}" for cell in cells))
        return "\n".join(lines)

    @staticmethod
    def _shown_map(state: State, params: Params) -> tuple[Map, int]:
        """Return the map of the present dive and the number of that dive, from 0."""
        number = min(int(state.dive), DIVES - 1)
        return Map(*(field[number] for field in params.maps)), number

    @staticmethod
    def _symbol(row: int, column: int, position: Position, chart: Map) -> str:
        if (row, column) == (int(position.row), int(position.column)):
            return "S"
        floor = int(chart.floor[column])
        if row == floor:
            return f"{float(chart.value[column]):.2f}"
        return "#" if row > floor else "."

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the map from the side: water darkens with depth, richer treasures are larger.

        Bars above it show the dives left, the air left and the weight of treasure.
        """
        chart, _ = self._shown_map(state, params)
        picture = np.empty(self.picture_shape, np.uint8)
        shares = (DIVES - int(state.dive)) / DIVES, int(state.air) / self.air, float(chart.weight)
        for number, (share, colour) in enumerate(zip(shares, (HULL, AIR, GOLD), strict=True)):
            bar = picture[number * BAR : (number + 1) * BAR]
            bar[:] = BLANK
            bar[1:-1, : round(share * PIXELS)] = colour
        self._draw_map(picture[3 * BAR :], state.position, chart)
        return picture

    def _draw_map(self, picture: np.ndarray, position: Position, chart: Map) -> None:
        y, x = np.mgrid[:PIXELS, :PIXELS]
        row, column = y * (self.size + 1) // PIXELS, x * self.size // PIXELS
        floor = np.asarray(chart.floor)[column]
        picture[:] = (np.array(WATER) * (1 - 0.5 * row[..., None] / self.size)).astype(np.uint8)
        picture[row > floor] = ROCK
        height, width = PIXELS / (self.size + 1), PIXELS / self.size
        # Offsets from the middle of a cell, in cells.
        beside, below = (x + 0.5) / width - column - 0.5, (y + 0.5) / height - row - 0.5
        half = 0.1 + 0.35 * np.asarray(chart.value)[column] / (VALUE_PER_ROW * self.size)
        picture[(row == floor) & (np.abs(beside) < half) & (np.abs(below) < half)] = GOLD
        in_cell = (row == int(position.row)) & (column == int(position.column))
        tower = (np.abs(beside) < 0.1) & (below < 0) & (below > -0.4)
        picture[in_cell & ((((beside / 0.4) ** 2 + (below / 0.22) ** 2) < 1) | tower)] = HULL

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how many dives were the best possible."""
        return f"{int(state.best_dives)} of {DIVES} dives had the best possible return"


class BestTreasure(eqx.Module):
    """The optimal player.

    In each dive it goes the shortest way to the treasure with the best weighted return.
    """

    task: TreasureMaps = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: TreasureMaps) -> BestTreasure:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the next move on the way to the best treasure from the present cell."""
        position, chart = self.task.read_observation(view.observation)
        target = jnp.argmax(self.task.returns_to_go(position, chart)).astype(jnp.int32)
        sideways = jnp.where(target > position.column, RIGHT, LEFT)
        too_low = position.row > self.task.cruising_rows(position, chart)[target]
        return jnp.where(
            target == position.column, SINK, jnp.where(too_low, RISE, sideways)
        ), memory

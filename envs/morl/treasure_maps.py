"""Treasure Maps: a submarine chooses among drawn treasures, for drawn weights of treasure and time.

Deep Sea Treasure (Vamplew et al. 2011, doi:10.1007/s10994-010-5232-5) has one map and leaves the weights to the
user. Here each episode draws a map and weights, and shows both, so that one policy must serve all of them. The idea
of one policy for all weights is that of Abels et al. 2019 (arXiv:1809.07803).

A grid of n x n cells of water, seen from the side. In every column a treasure lies on the sea floor, with rock below.
The submarine starts at the surface, above a drawn column, and sinks unless it is steered.

=============  ====================================================================================
observation    ``Box`` of 3 n + 3 numbers: for each column, the columns to the right of the submarine / (n - 1), then
               for each the rows from the submarine down to the treasure / n, then for each the value of the treasure
               / 2 n; row of the submarine / n (0 is the surface); weights of treasure and of time
action         0 sink, 1 rise, 2 left, 3 right: one cell; a move off the grid or into rock keeps the position
reward         (treasure, time), each multiplied by the episode's weight of it: the value of the treasure in the cell
               reached, else 0; and -1. Their sum is thus the return that the episode's weights ask for, and a reward
               divided by the observed weight is the plain objective
termination    a treasure is reached
success        a treasure is reached, and the weighted return is the best possible on this map
context        depth of each treasure, uniform in 1 ... n; value, uniform in [0, 2 depth); column of the start; weight
               of treasure, uniform in [0.1, 0.9); that of time is the rest to 1. Values of test maps lie in other
               bands than those of training maps
difficulty     n: easy 4, medium 6, hard 10
=============  ====================================================================================

The way along the surface is always open. So the best ways from the start to all treasures, and with them the Pareto
front of a map and the best return for every weight, are known exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.card import TaskCard
from rlbench_suite.component import Component, singles
from rlbench_suite.evaluation.pareto import non_dominated
from rlbench_suite.policy import View
from rlbench_suite.task import Task

from ..alternating_bands import alternating_bands
from ..named_actions import NamedActions

MOVES = {"sink": (1, 0), "rise": (-1, 0), "left": (0, -1), "right": (0, 1)}
SINK, RISE, LEFT, RIGHT = range(len(MOVES))
COLUMNS = (2, 32)
"""Smallest and largest number of columns."""
VALUE_PER_ROW = 2.0
"""Largest value of a treasure for each row of its depth."""
WEIGHTS = (0.1, 0.9)
"""Range of the weight of treasure."""
BANDS = 20
"""Bands of values, in turn of training and of test maps."""
ROUNDING = 1e-3
"""Weighted returns whose difference is smaller are equal."""
PIXELS = 300
WATER, ROCK, GOLD, HULL = (64, 120, 190), (92, 74, 58), (236, 196, 60), (245, 245, 245)


class Params(NamedTuple):
    """The map, the start and the weights."""

    floor: jax.Array
    """Row of the treasure of each column, int32 ``(n,)`` in [1, n]; 0 is the surface."""
    value: jax.Array
    """Value of the treasure of each column, ``(n,)``."""
    start: jax.Array
    """Column of the start, int32."""
    weight: jax.Array
    """Weight of treasure; that of time is ``1 - weight``."""


class State(NamedTuple):
    """Place of the submarine, and steps so far."""

    row: jax.Array
    """int32 in [0, n], downwards."""
    column: jax.Array
    """int32 in [0, n - 1]."""
    steps: jax.Array
    """Steps so far, int32."""


class TreasureMaps(NamedActions, Task[Params, State]):
    """The task; see the module's head for its rules."""

    measures = {  # noqa: RUF012
        "treasure": "value of the treasure in the present cell, 0 in open water",
        "time": "steps so far",
        "weight": "weight of treasure in this episode; that of time is the rest to 1",
    }
    picture_shape = (PIXELS, PIXELS, 3)
    action_names = tuple(MOVES)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        least, most = COLUMNS
        if difficulty is None or difficulty != int(difficulty) or not least <= difficulty <= most:
            raise ValueError(f"difficulty of {card.id} is a number of columns, {least} to {most}; got {difficulty!r}.")
        #: Number of columns, and of rows below the surface.
        self.size = n = int(difficulty)
        low = np.concatenate([-np.ones(2 * n), np.zeros(n + 1), np.full(2, WEIGHTS[0])])
        high = np.concatenate([np.ones(3 * n + 1), np.full(2, WEIGHTS[1])])
        self.observation_space = self.box(low, high)
        self.action_space = spaces.Discrete(len(MOVES))
        self.reward_space = self.box([0.0, -WEIGHTS[1]], [WEIGHTS[1] * VALUE_PER_ROW * n, -WEIGHTS[0]])

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a map, a start and the weights."""
        n = self.size
        unit = self.uniform(key, 2 * n + 2)
        floor = 1 + jnp.floor(unit[:n] * n).astype(jnp.int32)
        share = alternating_bands(unit[n : 2 * n], split, 0.0, 1.0, BANDS)
        value = (VALUE_PER_ROW * floor).astype(self.dtype) * share
        start = jnp.floor(unit[2 * n] * n).astype(jnp.int32)
        low, high = WEIGHTS
        return Params(floor, value.astype(self.dtype), start, low + (high - low) * unit[2 * n + 1])

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at the surface."""
        return State(jnp.int32(0), params.start, jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move one cell, unless that leaves the grid or enters rock."""
        down, right = jnp.asarray(tuple(MOVES.values()), jnp.int32)[action]
        row = jnp.maximum(state.row + down, 0)
        column = jnp.clip(state.column + right, 0, self.size - 1)
        free = row <= params.floor[column]
        return State(jnp.where(free, row, state.row), jnp.where(free, column, state.column), state.steps + 1)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the map as seen from the submarine, its row, and the weights, ``(3 n + 3,)``."""
        n = self.size
        sideways = (np.arange(n, dtype=np.int32) - state.column).astype(self.dtype) * np.asarray(
            1 / (n - 1), self.dtype
        )
        down = (params.floor - state.row).astype(self.dtype) * np.asarray(1 / n, self.dtype)
        value = params.value * np.asarray(1 / (VALUE_PER_ROW * n), self.dtype)
        rest = self.stack(state.row * (1 / n), params.weight, 1 - params.weight)
        bounds: Any = self.observation_space
        return jnp.clip(jnp.concatenate([sideways, down, value, rest]), bounds.low, bounds.high)

    def read(self, observation: jax.Array) -> tuple[State, Params]:
        """Return the present cell and the map that an observation shows, as if the episode began here."""
        n = self.size
        row = jnp.round(observation[3 * n] * n).astype(jnp.int32)
        column = jnp.argmin(jnp.abs(observation[:n])).astype(jnp.int32)
        floor = row + jnp.round(observation[n : 2 * n] * n).astype(jnp.int32)
        value = observation[2 * n : 3 * n] * (VALUE_PER_ROW * n)
        return State(row, column, jnp.int32(0)), Params(floor, value, column, observation[3 * n + 1])

    def observation_components(self) -> tuple[Component, ...]:
        """List the map, the row and the weights."""
        n = self.size
        return (
            Component(
                "columns_right", "columns to the right of the submarine, column by column", f"{n - 1} columns", (n,)
            ),
            Component("rows_down", "rows from the submarine down to the treasure of each column", f"{n} rows", (n,)),
            Component("values", "value of the treasure of each column", f"{VALUE_PER_ROW * n:g}", (n,)),
            Component("row", "row of the submarine, 0 is the surface", f"{n} rows"),
            Component("treasure_weight", "weight of treasure in the return", "1"),
            Component("time_weight", "weight of time in the return", "1"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the four moves."""
        directions = {"sink": "down", "rise": "up", "left": "left", "right": "right"}
        return singles({move: f"move one cell {direction}" for move, direction in directions.items()})

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return (treasure, time), each multiplied by its weight, ``(2,)``."""
        return self.stack(params.weight * self._treasure(next_state, params), params.weight - 1)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the submarine is at a treasure."""
        return state.row == params.floor[state.column]

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: a treasure was found, with the best return for the episode's weights."""
        treasure = self._treasure(state, params)
        best = self.best_return(params)
        earned = params.weight * treasure - (1 - params.weight) * state.steps
        over = state.row == params.floor[state.column]
        return {
            "success": over & (earned > best - ROUNDING),
            "treasure": treasure,
            "time": state.steps.astype(self.dtype),
            "weight": params.weight,
        }

    def _treasure(self, state: State, params: Params) -> jax.Array:
        at_floor = state.row == params.floor[state.column]
        return jnp.where(at_floor, params.value[state.column], 0).astype(self.dtype)

    # -- what is known of the problem --------------------------------------------------------------------------

    def cruising_rows(self, state: State, params: Params) -> jax.Array:
        """Return the lowest row in which the submarine can go sideways to each column, int32 ``(n,)``.

        It is not below its present row. Going sideways ends above the floor of all columns on the way, and at most on
        the floor of the last one.
        """
        columns = np.arange(self.size)
        # passed[i, j]: column j lies between the submarine and column i.
        right = (columns[None] > state.column) & (columns[None] < columns[:, None])
        left = (columns[None] < state.column) & (columns[None] > columns[:, None])
        above_rock = jnp.where(right | left, params.floor[None] - 1, state.row).min(1)
        return jnp.minimum(jnp.minimum(above_rock, params.floor), state.row)

    def steps_to_treasures(self, state: State, params: Params) -> jax.Array:
        """Return the least number of steps from here to the treasure of each column, int32 ``(n,)``.

        The shortest way rises to the lowest row that is free on the way, goes sideways, and sinks.
        """
        cruising = self.cruising_rows(state, params)
        sideways = jnp.abs(np.arange(self.size, dtype=np.int32) - state.column)
        return (state.row - cruising) + sideways + (params.floor - cruising)

    def returns_to_go(self, state: State, params: Params) -> jax.Array:
        """Return the weighted return of the shortest way from here to the treasure of each column, ``(n,)``."""
        return params.weight * params.value - (1 - params.weight) * self.steps_to_treasures(state, params)

    def best_return(self, params: Params) -> jax.Array:
        """Return the best weighted return of an episode. The way along the surface is open."""
        steps = jnp.abs(np.arange(self.size, dtype=np.int32) - params.start) + params.floor
        return (params.weight * params.value - (1 - params.weight) * steps).max()

    def pareto_front(self, params: Params) -> np.ndarray:
        """Return the exact front of the plain, unweighted returns of a map, sorted by treasure.

        Args:
            params: a map; its weights do not count.

        Returns:
            float64 ``(points, 2)``, (treasure, time).
        """
        floor, value = np.asarray(params.floor), np.asarray(params.value, np.float64)
        steps = np.abs(np.arange(self.size) - int(params.start)) + floor
        return non_dominated(np.stack([value, -steps], 1))

    # -- text and pixels ---------------------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Draw the map in letters, and tell the weights."""
        weight = float(params.weight)
        lines = [
            f"Treasure counts {weight:.4f} times its value, a step costs {1 - weight:.4f}.",
            f"The submarine S is in row {int(state.row)}, column {int(state.column)}. # is rock, . is water.",
        ]
        for row in range(self.size + 1):
            cells = [self._symbol(row, column, state, params) for column in range(self.size)]
            lines.append("".join(f"{cell:>7}" for cell in cells))
        return "\n".join(lines)

    @staticmethod
    def _symbol(row: int, column: int, state: State, params: Params) -> str:
        if (row, column) == (int(state.row), int(state.column)):
            return "S"
        floor = int(params.floor[column])
        if row == floor:
            return f"{float(params.value[column]):.2f}"
        return "#" if row > floor else "."

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the map from the side: water darkens with depth, richer treasures are larger."""
        picture = np.empty(self.picture_shape, np.uint8)
        y, x = np.mgrid[:PIXELS, :PIXELS]
        row, column = y * (self.size + 1) // PIXELS, x * self.size // PIXELS
        floor = np.asarray(params.floor)[column]
        picture[:] = (np.array(WATER) * (1 - 0.5 * row[..., None] / self.size)).astype(np.uint8)
        picture[row > floor] = ROCK
        height, width = PIXELS / (self.size + 1), PIXELS / self.size
        # Offsets from the middle of a cell, in cells.
        beside, below = (x + 0.5) / width - column - 0.5, (y + 0.5) / height - row - 0.5
        half = 0.1 + 0.35 * np.asarray(params.value)[column] / (VALUE_PER_ROW * self.size)
        picture[(row == floor) & (np.abs(beside) < half) & (np.abs(below) < half)] = GOLD
        here = (row == int(state.row)) & (column == int(state.column))
        tower = (np.abs(beside) < 0.1) & (below < 0) & (below > -0.4)
        picture[here & ((((beside / 0.4) ** 2 + (below / 0.22) ** 2) < 1) | tower)] = HULL
        return picture

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say which treasure it was."""
        return f"found the treasure worth {float(params.value[int(state.column)]):.2f}"


class BestTreasure(eqx.Module):
    """The optimal player for the episode's weights: it goes the shortest way to the treasure with the best return."""

    task: TreasureMaps = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: TreasureMaps) -> BestTreasure:
        """Make the player of a task."""
        return cls(task)

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the next move on the way to the best treasure from the present cell."""
        state, params = self.task.read(view.observation)
        target = jnp.argmax(self.task.returns_to_go(state, params)).astype(jnp.int32)
        sideways = jnp.where(target > state.column, RIGHT, LEFT)
        too_low = state.row > self.task.cruising_rows(state, params)[target]
        return jnp.where(target == state.column, SINK, jnp.where(too_low, RISE, sideways)), memory

"""Deep Sea Treasure: a submarine dives for treasures that are worth more the farther away they lie.

A grid of 11 x 11 cells seen from the side. The submarine starts at the surface, top left, and moves
one cell a step; every column but the last ends in a treasure on the sea floor, with rock below.
Vamplew et al. 2011 (doi:10.1007/s10994-010-5232-5) pose the problem; the treasure values are those
of Yang, Sun & Narasimhan 2019 (arXiv:1908.08342), which put all ten trade-offs on the *convex* hull
of the front, as in ``deep-sea-treasure-v0`` of MO-Gymnasium
(github.com/Farama-Foundation/MO-Gymnasium, version 1.3.2).

=============  ====================================================================================
observation    ``Box(0, 1, (2,))``: row / 10 (0 is the surface), column / 10
action         0 up, 1 down, 2 left, 3 right; a move off the grid or into rock keeps the position
reward         (treasure, time): the value of the treasure in the cell reached, else 0; and -1
termination    a treasure is reached
success        a treasure is reached, and the return, weighted as the card says, is the best
               possible: 3.55, for the treasures of 15.1 and 16.1 by a shortest way. Almost every
               random walk reaches some treasure
context        none: start, map and moves are always the same
=============  ====================================================================================
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.statistics.pareto import non_dominated
from rlbench_suite.foundation.unknown_names import unknown

ROWS, COLUMNS = 11, 11
MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

CONVEX = (
    (1, 0.7), (2, 8.2), (3, 11.5), (4, 14.0), (4, 15.1), (4, 16.1), (7, 19.6), (7, 20.3), (9, 22.4),
    (10, 23.7),
)  # fmt: skip
"""Row and value of the treasure of each column, from the left; columns beyond are open water."""

ROUNDING = 1e-3
"""Weighted returns whose difference is smaller are equal: values have one decimal."""
CELL_PIXELS = 28
WATER, ROCK, GOLD, HULL = (64, 120, 190), (92, 74, 58), (236, 196, 60), (245, 245, 245)


class Params(NamedTuple):
    """Empty: episodes do not differ."""


class State(NamedTuple):
    """Place of the submarine, and steps so far."""

    row: jax.Array
    """int32 in [0, 10], downwards."""
    column: jax.Array
    """int32 in [0, 10]."""
    steps: jax.Array
    """Steps so far, int32."""


class DeepSeaTreasure(Task[Params, State]):
    """The task; see the module's head for its rules."""

    measures = {"treasure": "value of the treasure in the present cell, 0 in open water"}  # noqa: RUF012
    picture_shape = (ROWS * CELL_PIXELS, COLUMNS * CELL_PIXELS, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        rows, values = zip(*CONVEX, strict=True)
        open_water = COLUMNS - len(CONVEX)
        #: Row of the sea floor of each column, one past the last row where there is none.
        self.floor = np.array(rows + (ROWS,) * open_water, np.int32)
        #: Value of the treasure on it.
        self.value = np.array(values + (0.0,) * open_water)
        self.observation_space = self.box(np.zeros(2), np.ones(2))
        self.action_space = spaces.Discrete(len(MOVES))
        self.reward_space = self.box([0.0, -1.0], [self.value.max(), -1.0])

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        return Params()

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at the surface, top left."""
        return State(jnp.int32(0), jnp.int32(0), jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move one cell, unless that leaves the grid or enters rock."""
        down, right = jnp.asarray(tuple(MOVES.values()), jnp.int32)[action]
        row = jnp.clip(state.row + down, 0, ROWS - 1)
        column = jnp.clip(state.column + right, 0, COLUMNS - 1)
        free = row <= jnp.asarray(self.floor)[column]
        return State(
            jnp.where(free, row, state.row), jnp.where(free, column, state.column), state.steps + 1
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return row and column as fractions, ``(2,)``."""
        return self.stack(state.row, state.column) * 0.1

    def observation_components(self) -> tuple[Component, ...]:
        """List row and column."""
        return (
            Component("row", "row of the submarine, 0 is the surface", "10 rows"),
            Component("column", "column of the submarine, from the left", "10 columns"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the four moves."""
        return singles({move: f"move one cell {move}" for move in MOVES})

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return (treasure, time), ``(2,)``."""
        return self.stack(self._treasure(next_state), -1)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the submarine is at a treasure."""
        return state.row == jnp.asarray(self.floor)[state.column]

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: a treasure was found, with the best return for the card's weights.

        Which treasure is best for other weights is a matter of preference; see ``treasure``.
        """
        treasure = self._treasure(state)
        for_treasure, for_time = self.card.weights
        earned = for_treasure * treasure - for_time * state.steps
        return {
            "success": (treasure > 0) & (earned > self._best_return - ROUNDING),
            "treasure": treasure,
        }

    @cached_property
    def _best_return(self) -> float:
        """Return the best weighted return."""
        return float((self.pareto_front() @ self.card.weights).max())

    def _treasure(self, state: State) -> jax.Array:
        at_floor = state.row == jnp.asarray(self.floor)[state.column]
        return jnp.where(at_floor, jnp.asarray(self.value, self.dtype)[state.column], 0)

    # -- what is known of the problem --------------------------------------------------------------

    def shortest_paths(self) -> np.ndarray:
        """Return the least number of steps from the start to each cell, int ``(rows, columns)``.

        It is -1 where there is no way.
        """
        steps = np.full((ROWS, COLUMNS), -1)
        steps[0, 0] = 0
        frontier = [(0, 0)]
        for row, column in frontier:  # grows while it is read: breadth first
            for cell in self._neighbours(row, column):
                if steps[cell] < 0:
                    steps[cell] = steps[row, column] + 1
                    if cell[0] < self.floor[cell[1]]:  # an episode ends at a treasure
                        frontier.append(cell)
        return steps

    def pareto_front(self, gamma: float = 1.0) -> np.ndarray:
        """Return the exact front of the discounted returns of deterministic policies.

        It is sorted by treasure.

        The best way to a treasure is the shortest: any longer one is worse in both objectives, as
        is finding none. A treasure found at step ``n`` returns ``(value * gamma**(n - 1), -(1 +
        gamma + ... + gamma**(n - 1)))``.

        Args:
            gamma: discount factor in (0, 1].

        Returns:
            float64 ``(points, 2)``, (treasure, time). A small gamma leaves fewer than ten points.

        Raises:
            ValueError: gamma is out of range.
        """
        if not 0 < gamma <= 1:
            raise ValueError(f"A discount factor is in (0, 1], got {gamma!r}.")
        columns = np.flatnonzero(self.value)
        steps = self.shortest_paths()[self.floor[columns], columns]
        time = [-(gamma ** np.arange(n)).sum() for n in steps]
        return non_dominated(np.stack([self.value[columns] * gamma ** (steps - 1), time], 1))

    def best_moves(self, weights: tuple[float, ...]) -> tuple[np.ndarray, float]:
        """Return optimal play for the weighted sum of the two undiscounted returns.

        It is found by value iteration on the map.

        Args:
            weights: of treasure and of time; that of time is positive, because waiting must cost
                something.

        Returns:
            The best action in every cell, int32 ``(rows, columns)`` (ties: the move listed first),
            and the best
            return from the start. Time limits are ignored: no treasure is farther than the horizon.
        """
        treasure, time = weights
        water = [(row, column) for column in range(COLUMNS) for row in range(self.floor[column])]
        value = np.zeros((ROWS, COLUMNS))
        value[tuple(zip(*water, strict=True))] = -np.inf  # no way to a treasure known yet
        moves = np.zeros((ROWS, COLUMNS), np.int32)
        for _ in range(ROWS * COLUMNS):  # no shortest path is longer
            for row, column in water:
                ahead = [
                    treasure * (self.value[c] if r == self.floor[c] else 0.0) - time + value[r, c]
                    for r, c in self._neighbours(row, column)
                ]
                # Sums that differ by rounding only are ties.
                moves[row, column] = np.argmax(np.round(ahead, 9))
                value[row, column] = ahead[moves[row, column]]
        return moves, float(value[0, 0])

    def _neighbours(self, row: int, column: int) -> list[tuple[int, int]]:
        """Return the cell that each move leads to."""
        cells = []
        for down, right in MOVES.values():
            r, c = min(max(row + down, 0), ROWS - 1), min(max(column + right, 0), COLUMNS - 1)
            cells.append((r, c) if r <= self.floor[c] else (row, column))
        return cells

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Draw the map: ``S`` the submarine, ``#`` rock, numbers treasures, ``.`` water."""
        lines = [f"The submarine S is in row {int(state.row)}, column {int(state.column)}."]
        for row in range(ROWS):
            cells = [self._symbol(row, column) for column in range(COLUMNS)]
            if row == state.row:
                cells[int(state.column)] = "S"
            lines.append("".join(f"{cell:>5}" for cell in cells))
        return "\n".join(lines)

    def _symbol(self, row: int, column: int) -> str:
        if row == self.floor[column]:
            return f"{self.value[column]:g}"
        return "#" if row > self.floor[column] else "."

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the map from the side: water darkens with depth, richer treasures are larger."""
        picture = np.empty(self.picture_shape, np.uint8)
        y, x = np.mgrid[:CELL_PIXELS, :CELL_PIXELS] - (CELL_PIXELS - 1) / 2
        for row in range(ROWS):
            for column in range(COLUMNS):
                cell = picture[
                    row * CELL_PIXELS : (row + 1) * CELL_PIXELS,
                    column * CELL_PIXELS : (column + 1) * CELL_PIXELS,
                ]
                cell[:] = ROCK if row > self.floor[column] else np.array(WATER) * (1 - 0.05 * row)
                if row == self.floor[column]:
                    half = CELL_PIXELS / 2 * (0.3 + 0.5 * self.value[column] / self.value.max())
                    cell[(np.abs(y) < half) & (np.abs(x) < half)] = GOLD
                if (row, column) == (state.row, state.column):
                    cell[(x / 11) ** 2 + (y / 6) ** 2 < 1] = HULL
                    cell[(np.abs(x) < 2) & (y < 0) & (y > -10)] = HULL
        return picture

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the move of this name.

        Raises:
            ValueError: the text is none of the four.
        """
        word = text.strip().lower()
        if word not in MOVES:
            raise ValueError(unknown("move", text, MOVES))
        return np.array(list(MOVES).index(word), np.int32)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the name of the move."""
        return list(MOVES)[int(action)]

    def how_to_act(self) -> str:
        """Tell a text player the four words."""
        return "Answer with one of: " + ", ".join(MOVES) + "."

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say which treasure it was."""
        return f"found the treasure worth {self.value[int(state.column)]:g}"


@privileged_player
class ShortestPath(eqx.Module):
    """The optimal player for the card's weights.

    It goes the shortest way to the treasure that is worth its time.
    """

    task: DeepSeaTreasure = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: DeepSeaTreasure) -> ShortestPath:
        """Make the player of the task's map, for the weights of its card."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the best move from the present cell."""
        moves, _ = self.task.best_moves(self.task.card.weights)
        return jnp.asarray(moves)[view.state.row, view.state.column], memory

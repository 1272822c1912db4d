"""Deep Sea Treasure: a submarine dives for treasures that are worth more the farther away they lie.

A grid of 11 x 11 cells seen from the side. The submarine starts at the surface, top left, and moves
one cell a step; every column but the last ends in a treasure on the sea floor, with rock below.
Vamplew et al. 2011 (doi:10.1007/s10994-010-5232-5) pose the problem; the treasure values are those
of Yang, Sun & Narasimhan 2019 (arXiv:1908.08342), which put all ten trade-offs on the *convex* hull
of the front, as in ``deep-sea-treasure-v0`` of MO-Gymnasium
(github.com/Farama-Foundation/MO-Gymnasium, version 1.3.2).

The setting ``map`` chooses among the three maps of MO-Gymnasium. On ``concave`` the same cells hold
the treasures of Vamplew et al. 2011. Of the ten trade-offs only the first and the last lie on the
hull: no weighted sum of treasure and time is largest at any of the other eight. On ``mirrored`` (as
in Felten et al. 2022) the submarine starts between two slopes. The right one is that of
``concave``. The left one is its mirror image without treasures. The front is that of ``concave``.

=============  ====================================================================================
observation    ``Box(0, 1, (2,))``: row / 10 (0 is the surface), column / 10 (/ 19 on ``mirrored``)
action         0 up, 1 down, 2 left, 3 right; a move off the grid or into rock keeps the position
reward         (treasure, time): the value of the treasure in the cell reached, else 0; and -1
termination    a treasure is reached
success        a treasure is reached, and the return, weighted as the card says, is the best
               possible: 3.55, for the treasures of 15.1 and 16.1 by a shortest way, and 52.5 on the
               other two maps. Almost every random walk reaches some treasure
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

CONCAVE = (
    (1, 1.0), (2, 2.0), (3, 3.0), (4, 5.0), (4, 8.0), (4, 16.0), (7, 24.0), (7, 50.0), (9, 74.0),
    (10, 124.0),
)  # fmt: skip
"""The same of the map whose trade-offs are not convex."""

TREASURES = {"convex": CONVEX, "concave": CONCAVE, "mirrored": CONCAVE}
"""Treasures of each map. Those of ``mirrored`` lie to the right of its middle."""

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
    """int32 in [0, 10], in [0, 19] on ``mirrored``."""
    steps: jax.Array
    """Steps so far, int32."""


class DeepSeaTreasure(Task[Params, State]):
    """The task; see the module's head for its rules."""

    measures = {"treasure": "value of the treasure in the present cell, 0 in open water"}  # noqa: RUF012
    picture_shape = (ROWS * CELL_PIXELS, COLUMNS * CELL_PIXELS, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        map_name = card.settings["map"]
        treasures = TREASURES[map_name]
        rows, values = zip(*treasures, strict=True)
        treasure_row = np.array(rows, np.int32)
        first_rock = treasure_row + 1
        if map_name == "mirrored":
            left, right = len(treasures), 0
            left_rock = first_rock[::-1]
        else:
            left, right = 0, COLUMNS - len(treasures)
            left_rock = first_rock[:0]
        #: Number of columns, and the column above which an episode starts.
        self.columns = left + len(treasures) + right
        self.start = left
        #: Row of the treasure of each column, one past the last row where there is none.
        self.floor = np.pad(treasure_row, (left, right), constant_values=ROWS)
        #: Value of that treasure.
        self.value = np.pad(np.array(values), (left, right))
        #: First row of rock of each column, one past the last row where there is none.
        self.rock = np.concatenate([left_rock, first_rock, np.full(right, ROWS, np.int32)])
        self.observation_space = self.box(np.zeros(2), np.ones(2))
        self.action_space = spaces.Discrete(len(MOVES))
        self.reward_space = self.box([0.0, -1.0], [self.value.max(), -1.0])

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        return Params()

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at the surface."""
        return State(jnp.int32(0), jnp.int32(self.start), jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move one cell, unless that leaves the grid or enters rock."""
        down, right = jnp.asarray(tuple(MOVES.values()), jnp.int32)[action]
        row = jnp.clip(state.row + down, 0, ROWS - 1)
        column = jnp.clip(state.column + right, 0, self.columns - 1)
        free = row < jnp.asarray(self.rock)[column]
        return State(
            jnp.where(free, row, state.row), jnp.where(free, column, state.column), state.steps + 1
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return row and column as fractions, ``(2,)``."""
        return self.stack(state.row * (1 / (ROWS - 1)), state.column * (1 / (self.columns - 1)))

    def observation_components(self) -> tuple[Component, ...]:
        """List row and column."""
        return (
            Component("row", "row of the submarine, 0 is the surface", "10 rows"),
            Component(
                "column", "column of the submarine, from the left", f"{self.columns - 1} columns"
            ),
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
        steps = np.full((ROWS, self.columns), -1)
        steps[0, self.start] = 0
        frontier = [(0, self.start)]
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
        depth = np.minimum(self.floor, self.rock)
        water = [(row, column) for column in range(self.columns) for row in range(depth[column])]
        value = np.zeros((ROWS, self.columns))
        value[tuple(zip(*water, strict=True))] = -np.inf  # no way to a treasure known yet
        moves = np.zeros((ROWS, self.columns), np.int32)
        for _ in range(ROWS * self.columns):  # no shortest path is longer
            for row, column in water:
                ahead = [
                    treasure * (self.value[c] if r == self.floor[c] else 0.0) - time + value[r, c]
                    for r, c in self._neighbours(row, column)
                ]
                # Sums that differ by rounding only are ties.
                moves[row, column] = np.argmax(np.round(ahead, 9))
                value[row, column] = ahead[moves[row, column]]
        return moves, float(value[0, self.start])

    def _neighbours(self, row: int, column: int) -> list[tuple[int, int]]:
        """Return the cell that each move leads to."""
        cells = []
        for down, right in MOVES.values():
            r = min(max(row + down, 0), ROWS - 1)
            c = min(max(column + right, 0), self.columns - 1)
            cells.append((r, c) if r < self.rock[c] else (row, column))
        return cells

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Draw the map: ``S`` the submarine, ``#`` rock, numbers treasures, ``.`` water."""
        lines = [f"The submarine S is in row {int(state.row)}, column {int(state.column)}."]
        for row in range(ROWS):
            cells = [self._symbol(row, column) for column in range(self.columns)]
            if row == state.row:
                cells[int(state.column)] = "S"
            lines.append("".join(f"{cell:>5}" for cell in cells))
        return "\n".join(lines)

    def _symbol(self, row: int, column: int) -> str:
        if row == self.floor[column]:
            return f"{self.value[column]:g}"
        return "#" if row >= self.rock[column] else "."

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the map from the side: water darkens with depth, richer treasures are larger."""
        picture = np.full(self.picture_shape, ROCK, np.uint8)
        pixels = self.picture_shape[1] // self.columns
        scale = pixels / CELL_PIXELS
        y, x = np.mgrid[:pixels, :pixels] - (pixels - 1) / 2
        for row in range(ROWS):
            for column in range(self.columns):
                cell = picture[
                    row * pixels : (row + 1) * pixels, column * pixels : (column + 1) * pixels
                ]
                if row < self.rock[column]:
                    cell[:] = np.array(WATER) * (1 - 0.05 * row)
                if row == self.floor[column]:
                    half = pixels / 2 * (0.3 + 0.5 * self.value[column] / self.value.max())
                    cell[(np.abs(y) < half) & (np.abs(x) < half)] = GOLD
                if (row, column) == (state.row, state.column):
                    hull = (x / (11 * scale)) ** 2 + (y / (6 * scale)) ** 2 < 1
                    tower = (np.abs(x) < 2 * scale) & (y < 0) & (y > -10 * scale)
                    cell[hull | tower] = HULL
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

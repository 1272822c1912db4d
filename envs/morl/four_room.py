"""Four Rooms: collect shapes of the kinds that count, avoid the others, and go home or not.

A grid of 13 x 13 cells has four rooms, and in them twelve shapes, four of each of three kinds.
Barreto et al. 2017 ("Successor features for transfer in reinforcement learning", arXiv:1606.05312)
pose the problem: what the shapes are worth changes, and an agent should transfer what it has
learnt. Map and rules are those of ``four-room-v0`` in MO-Gymnasium
(github.com/Farama-Foundation/MO-Gymnasium, version 1.3.2). There the user weighs the kinds. Here
each episode samples weights and shows them, so that one policy must serve all of them. Reaching the
goal pays one of each kind, which the peer's documentation leaves out.

=============  ====================================================================================
observation    ``Box(-1, 1, (17,))``: row / 12 from the top; column / 12; twelve flags of the shapes
               that are collected, column by column; weights of squares, triangles and circles
action         0 left, 1 up, 2 right, 3 down: one cell; a move off the grid or into a wall keeps the
               place
reward         (squares, triangles, circles), each multiplied by its weight: 1 for the kind of a
               shape that is collected by entering its cell, and 1 for every kind at the goal. The
               sum is thus the return that the weights ask for
termination    the goal, top right, is reached
success        the return is the best possible: all shapes of positive weight are collected and no
               other ones, and the goal is reached if and only if the weights have a positive sum
context        the three weights, each uniform over bands of [-1, 1), alternately of train and test
=============  ====================================================================================

Without a discount the best return is the sum over kinds of 4 max(weight, 0), plus max(sum of
weights, 0): beside each shape in a door there is a free cell, so that shapes can be reached without
touching others, and 200 steps are enough. ``best_discounted_return`` has the exact best for any
weights and discount.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Float, Int, IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from ..shared.named_actions import NamedActions

MAP = (
    "1    2X     G",
    "      X      ",
    "      1      ",
    "             ",
    "      X      ",
    "2    3X      ",
    "XX3 XXXXX 1XX",
    "      X2    3",
    "      X      ",
    "             ",
    "      2      ",
    "      X      ",
    "S     X3    1",
)
"""The published map: S start, G goal, X wall, and shapes 1 to 3, by row from the top."""
SIZE = len(MAP)
KINDS = ("squares", "triangles", "circles")
MOVES = {"left": (0, -1), "up": (-1, 0), "right": (0, 1), "down": (1, 0)}
LEFT = 0
BANDS = 20
ROUNDING = 1e-4
"""Returns whose difference is smaller are equal."""
CELL_PIXELS = 24
BLANK, WALL, AGENT, GOAL_COLOUR = (245, 245, 245), (60, 60, 60), (125, 125, 125), (236, 196, 60)
KIND_COLOURS = ((40, 60, 200), (30, 130, 60), (200, 50, 50))


def cells_of(mark: str) -> list[tuple[int, int]]:
    """Return the cells with a mark of the map, column by column."""
    return [
        (row, column) for column in range(SIZE) for row in range(SIZE) if MAP[row][column] == mark
    ]


START = cells_of("S")[0]
GOAL = cells_of("G")[0]
SHAPES = sorted(
    ((cell, kind) for kind in range(len(KINDS)) for cell in cells_of(str(kind + 1))),
    key=lambda shape: shape[0][::-1],
)
"""Cell and kind of each shape, column by column."""
SHAPE_KINDS = np.array([kind for _, kind in SHAPES], np.int32)


class Params(NamedTuple):
    """The weights of the kinds."""

    square: Float
    triangle: Float
    circle: Float


class State(NamedTuple):
    """The place, and what is collected."""

    row: Int
    """In [0, 12], downwards."""
    column: Int
    """In [0, 12]."""
    collected: Int
    """A bit for each shape."""
    earned: Float
    """Weighted return so far."""


class FourRoom(NamedActions, Task[Params, State]):
    """The task of this file's docstring."""

    measures = {  # noqa: RUF012
        "shapes": "shapes collected",
        "earned": "weighted return so far",
        "best_return": "best weighted return of the episode",
    }
    action_names = tuple(MOVES)
    picture_shape = (SIZE * CELL_PIXELS, SIZE * CELL_PIXELS, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box(np.append(np.zeros(14), -np.ones(3)), np.ones(17))
        self.action_space = spaces.Discrete(len(MOVES))
        self.reward_space = self.box(-np.ones(3), np.ones(3))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the weights."""
        unit = self.uniform(key, 3)
        return Params(*(alternating_bands(unit[i], split, -1.0, 1.0, BANDS) for i in range(3)))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at the bottom left with nothing."""
        row, column = START
        return State(jnp.int32(row), jnp.int32(column), jnp.int32(0), jnp.zeros((), self.dtype))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move one cell, and collect what lies there."""
        tables = _tables()
        down, right = jnp.asarray(tuple(MOVES.values()), jnp.int32)[action]
        row = jnp.clip(state.row + down, 0, SIZE - 1)
        column = jnp.clip(state.column + right, 0, SIZE - 1)
        is_wall = jnp.asarray(tables.walls)[row, column]
        row = jnp.where(is_wall, state.row, row)
        column = jnp.where(is_wall, state.column, column)
        collected = state.collected | jnp.asarray(tables.shape_bits)[row, column]
        moved = State(row, column, collected, state.earned)
        square, triangle, circle = self._income(state, moved, params)
        return moved._replace(earned=state.earned + (square + triangle + circle))

    def _income(self, state: State, next_state: State, params: Params) -> tuple[Float, ...]:
        """Return the reward of each kind."""
        bit = next_state.collected & ~state.collected
        kind = jnp.asarray(_tables().kinds)[next_state.row, next_state.column]
        at_goal = self._at_goal(next_state) & ~self._at_goal(state)
        return tuple(
            jnp.where(((bit != 0) & (kind == number)) | at_goal, weight, 0)
            for number, weight in enumerate(params)
        )

    @staticmethod
    def _at_goal(state: State) -> jax.Array:
        return (state.row == GOAL[0]) & (state.column == GOAL[1])

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return place, flags and weights, ``(17,)``."""
        flags = (state.collected >> np.arange(len(SHAPES), dtype=np.int32)) & 1
        place = self.stack(state.row, state.column) * np.asarray(1 / (SIZE - 1), self.dtype)
        return jnp.concatenate([place, flags.astype(self.dtype), self.stack(*params)])

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the weighted squares, triangles and circles of the step, ``(3,)``."""
        return self.stack(*self._income(state, next_state, params))

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the goal is reached."""
        return self._at_goal(state)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: the return is the best possible for the weights."""
        square, triangle, circle = (jnp.maximum(weight, 0) for weight in params)
        at_goal = jnp.maximum(params.square + params.triangle + params.circle, 0)
        best_return = 4 * (square + triangle + circle) + at_goal
        flags = (state.collected >> np.arange(len(SHAPES), dtype=np.int32)) & 1
        return {
            "success": state.earned > best_return - ROUNDING,
            "shapes": flags.sum(dtype=jnp.int32).astype(self.dtype),
            "earned": state.earned,
            "best_return": best_return,
        }

    def observation_components(self) -> tuple[Component, ...]:
        """List place, flags and weights."""
        return (
            Component("row", "row from the top", "12 rows"),
            Component("column", "column from the left", "12 columns"),
            Component("collected", "flags of collected shapes, column by column", "1", (12,)),
            Component("weights", "weights of squares, triangles and circles", "1", (3,)),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the four moves."""
        return singles({move: f"move one cell {move}" for move in MOVES})

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Draw the map in letters, and tell the weights."""
        weights = ", ".join(
            f"{kind} (number {number}) {float(weight):+.4f}"
            for number, (kind, weight) in enumerate(zip(KINDS, params, strict=True), 1)
        )
        lines = [
            f"Weights: {weights}.",
            f"The goal G brings {float(sum(params)):+.4f} and ends the episode.",
            f"You are A, in row {int(state.row)}, column {int(state.column)}. X is a wall.",
        ]
        grid = [[mark.replace(" ", ".").replace("S", ".") for mark in row] for row in MAP]
        for number, ((row, column), _) in enumerate(SHAPES):
            if int(state.collected) >> number & 1:
                grid[row][column] = "."
        grid[int(state.row)][int(state.column)] = "A"
        return "\n".join([*lines, *(" ".join(row) for row in grid)])

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the map: squares blue, triangles green, circles red, dark where they cost."""
        picture = np.full(self.picture_shape, BLANK, np.uint8)
        y, x = np.mgrid[:CELL_PIXELS, :CELL_PIXELS] - (CELL_PIXELS - 1) / 2
        half = CELL_PIXELS / 2
        insides = (
            (np.abs(x) < 0.7 * half) & (np.abs(y) < 0.7 * half),
            (2 * np.abs(x) < y + 0.7 * half) & (y < 0.7 * half),
            x**2 + y**2 < (0.75 * half) ** 2,
        )

        def cell(row: int, column: int) -> np.ndarray:
            rows = slice(row * CELL_PIXELS, (row + 1) * CELL_PIXELS)
            return picture[rows, column * CELL_PIXELS : (column + 1) * CELL_PIXELS]

        for row, column in cells_of("X"):
            cell(row, column)[:] = WALL
        cell(*GOAL)[:] = GOAL_COLOUR
        for number, ((row, column), kind) in enumerate(SHAPES):
            if not int(state.collected) >> number & 1:
                dim = 1.0 if float(params[kind]) > 0 else 0.4
                cell(row, column)[insides[kind]] = (np.array(KIND_COLOURS[kind]) * dim).astype(int)
        cell(int(state.row), int(state.column))[x**2 + y**2 < (0.6 * half) ** 2] = AGENT
        return picture

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say what was earned of the best return."""
        return (
            f"the goal is reached with {float(info['earned']):.3f} of at most "
            f"{float(info['best_return']):.3f}"
        )


# -- the map ---------------------------------------------------------------------------------------


class Tables(NamedTuple):
    """Facts of each cell, ``(13, 13)``."""

    walls: np.ndarray
    shape_bits: IntArray
    """The bit of the shape in the cell, 0 without one."""
    kinds: IntArray
    """Its kind, -1 without a shape."""


@cache
def _tables() -> Tables:
    shape_bits = np.zeros((SIZE, SIZE), np.int32)
    kinds = np.full((SIZE, SIZE), -1, np.int32)
    for number, (cell, kind) in enumerate(SHAPES):
        shape_bits[cell] = 1 << number
        kinds[cell] = kind
    walls = np.array([[mark == "X" for mark in row] for row in MAP])
    return Tables(walls, shape_bits, kinds)


def next_cell(cell: tuple[int, int], move: str) -> tuple[int, int]:
    """Return the cell after a move."""
    down, right = MOVES[move]
    row, column = cell[0] + down, cell[1] + right
    inside = 0 <= row < SIZE and 0 <= column < SIZE
    return (row, column) if inside and MAP[row][column] != "X" else cell


def distances(target: tuple[int, int], forbidden: set[tuple[int, int]]) -> np.ndarray:
    """Return the steps from each cell to a target, without entering forbidden cells, int32.

    ``(13, 13)``; it is large where there is no way. Forbidden cells may be left.
    """
    steps = np.full((SIZE, SIZE), SIZE**2, np.int32)
    steps[target] = 0
    queue = [target]
    for cell in queue:  # grows while it is read: breadth first
        if cell in forbidden and cell != target:
            continue
        for move in MOVES:  # each move has an opposite one
            before = next_cell(cell, move)
            if steps[before] == SIZE**2:
                steps[before] = steps[cell] + 1
                queue.append(before)
    return steps


def best_discounted_return(weights: tuple[float, float, float], gamma: float) -> np.ndarray:
    """Return what the best policy for weights collects of each kind, discounted, ``(3,)``.

    There is no time limit. Dynamic programming goes over sets of collected shapes, the largest
    first, and over cells.

    Args:
        weights: of squares, triangles and circles.
        gamma: discount factor in (0, 1).

    Raises:
        ValueError: gamma is out of range.
    """
    if not 0 < gamma < 1:
        raise ValueError(f"A discount factor is in (0, 1), got {gamma!r}.")
    cells = [(row, column) for row in range(SIZE) for column in range(SIZE)]
    after = np.array([[cells.index(next_cell(cell, move)) for move in MOVES] for cell in cells])
    bit = _tables().shape_bits.ravel()[after]
    income = np.append(weights, 0.0)[_tables().kinds.ravel()[after]]
    at_goal = after == cells.index(GOAL)
    sets = np.arange(1 << len(SHAPES))
    sizes = np.array([int(number).bit_count() for number in sets])
    value = np.zeros((len(sets), len(cells)))
    for size in range(len(SHAPES), -1, -1):
        present = sets[sizes == size][:, None, None]
        collects = (bit & ~present) != 0
        gain = np.where(collects, income + gamma * value[present | bit, after], sum(weights))
        leaves = collects | at_goal
        level = np.zeros((len(present), len(cells)))
        while True:
            choices = np.where(leaves, gain, gamma * level[:, after])
            updated = np.maximum(level, choices.max(2))
            if np.array_equal(updated, level):
                break
            level = updated
        value[present[:, 0, 0]] = level
    returns = np.zeros(3)
    collected, place, discount = 0, cells.index(START), 1.0
    while value[collected, place] > 0 and cells[place] != GOAL:
        new = bit[place] & ~collected
        gain = np.where(new != 0, income[place], 0.0) + gamma * value[collected | new, after[place]]
        move = np.where(at_goal[place], sum(weights), gain).argmax()
        target = cells[after[place, move]]
        if target == GOAL:
            returns += discount
        elif new[move]:
            returns[_tables().kinds[target]] += discount
        collected, place, discount = (
            collected | int(new[move]),
            after[place, move],
            gamma * discount,
        )
    return returns


class ShapeCollector(eqx.Module):
    """The optimal player: it goes to the nearest shape that counts, past all that cost.

    When none is left, it goes to the goal, or back to the start and stays there.
    """

    task: FourRoom = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: FourRoom) -> ShapeCollector:
        """Make the player."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the next move on the way to the target."""
        steps, moves = _ways()
        observation = view.observation
        place = jnp.round(observation[:2] * (SIZE - 1)).astype(jnp.int32)
        flags = observation[2:14] > 0.5
        square, triangle, circle = weights = observation[14:17]
        is_wanted = weights > 0
        pattern = is_wanted[0] + 2 * is_wanted[1] + 4 * is_wanted[2]
        to_shapes = jnp.asarray(steps)[pattern, :, place[0], place[1]]
        missing = ~flags & is_wanted[SHAPE_KINDS]
        nearest = jnp.argmin(jnp.where(missing, to_shapes[: len(SHAPES)], SIZE**3))
        end = jnp.where(square + triangle + circle > 0, GOAL_TARGET, START_TARGET)
        target = jnp.where(missing.any(), nearest, end)
        return jnp.asarray(moves)[pattern, target, place[0], place[1]], memory


GOAL_TARGET = len(SHAPES)
START_TARGET = GOAL_TARGET + 1


@cache
def _ways() -> tuple[IntArray, IntArray]:
    """Return steps and next moves by wanted kinds, target and cell, ``(8, 14, 13, 13)``.

    At the start, the move to the start leads into the edge.
    """
    targets = [*(cell for cell, _ in SHAPES), GOAL, START]
    steps = np.zeros((8, len(targets), SIZE, SIZE), np.int32)
    moves = np.full(steps.shape, LEFT, np.int32)
    for pattern in range(8):
        costly = {cell for cell, kind in SHAPES if not pattern >> kind & 1}
        for number, target in enumerate(targets):
            forbidden = (costly | {GOAL}) - {target}
            steps[pattern, number] = distances(target, forbidden)
            for cell in np.ndindex(SIZE, SIZE):
                if cell != target:
                    ahead = [next_cell(cell, move) for move in MOVES]
                    lengths = [
                        SIZE**3 if place in forbidden else steps[pattern, number][place]
                        for place in ahead
                    ]
                    moves[(pattern, number, *cell)] = np.argmin(lengths)
    return steps, moves

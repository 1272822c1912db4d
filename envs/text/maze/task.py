"""Walk through a maze that is told in words.

The maze of LMRL-Gym (Abdulhai et al. 2023, arXiv:2311.18232): cells on a grid, a goal, four moves.
There a single maze is fixed, so that an agent can learn it by heart. Here every episode draws
another one; ``layout=`` chooses the two mazes of the original. ``observed=`` says what is shown:

=============  =====================================================================================
``fully``      the map, the goal, one's own place, and the walls around it. Every episode can be
               solved by thinking
``partially``  the goal and the walls around one's place. The place itself is told at the start
               only, there is no map: an agent has to keep account of its moves, and to explore
=============  =====================================================================================

=============  =====================================================================================
action         ``Discrete(4)``: left, right, up, down. A move into a wall stays where it is and
               costs as much
observation    ``fully``: ``(3 H W + 4,)``: free cells, the goal and the own place, row by row, then
               walls to the left, right, above and below. ``partially``: ``(2 (H + W) + 4,)``: row
               and column of the goal, then those of the own place (zeros after the start), each
               one-hot; the four walls. All 0 or 1
reward         0 for the move that reaches the goal, -1 for every other: an episode of n moves
               returns -(n - 1)
termination    the goal is reached
success        ``fully``: the goal is reached by a shortest way. ``partially``: in at most twice as
               many moves
difficulty     n, from 2 to 7: n x n rooms, 2 n + 1 cells a side; fixed layouts have none
context        maze, start and goal. Walls between rooms beyond a random spanning tree are taken
               down, one in eight. On the train split their number is even, on the test split odd,
               however the maze is turned or mirrored. Fixed layouts: every fourth cell is a start
               of the test split, the others of the train split
=============  =====================================================================================

Differences from the original, on purpose: text that is no move is played as "left" for -1 (there -4
and no move); the time limit adds nothing (there a last -1); the start is told when the place is
hidden, which its code can do but does not; ``fully`` shows the map, which a drawn maze needs.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int, UInt32Array
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task import Split, Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

from ...shared.alternating_bands import split_bits

MOVES = ("left", "right", "up", "down")
ROW_STEPS = np.array([0, 0, -1, 1], np.int32)
COLUMN_STEPS = np.array([-1, 1, 0, 0], np.int32)
SIDES = ("to your left", "to your right", "above you", "below you")
MIN_ROOMS = 2
"""Least rooms a side."""
MAX_ROOMS = 7
"""Most rooms a side."""
TILE = 20
BESIDE_COLUMN = 2 * MAX_ROOMS + 3
"""Column of the picture in which the walker stands among the walls beside it."""
WALL = (70, 70, 78)
FLOOR = (235, 235, 228)
GOAL = (60, 150, 70)
WALKER = (213, 94, 0)
PAPER = (255, 255, 255)

LAYOUTS: dict[str, tuple[str, tuple[int, int]]] = {
    "double_t": (
        """
        #############
        #     #     #
        ### ##### ###
        ### ##### ###
        ### ##### ###
        ###       ###
        ###### ######
        ###### ######
        ###### ######
        #############
        """,
        (8, 6),
    ),
    "umaze": (
        """
        #####
        #   #
        # # #
        # # #
        #####
        """,
        (3, 3),
    ),
}
"""Mazes of LMRL-Gym, ``#`` for a wall, with row and column of their goals."""


class Params(NamedTuple):
    """The maze, int32 but for the cells."""

    free: UInt32Array
    """Free cells of each row, uint32 ``(H,)``: bit c for column c."""
    goal_row: Int
    goal_column: Int
    start_row: Int
    start_column: Int
    shortest: Int
    """Moves of a shortest way from start to goal."""


class State(NamedTuple):
    """The walker, int32."""

    row: Int
    column: Int
    moves: Int
    """Moves so far."""
    bumps: Int
    """Those of them that met a wall."""


def cells_of(drawing: str) -> np.ndarray:
    """Return the free cells of each row of a drawing, uint32 ``(H,)``."""
    lines = [line.strip() for line in drawing.strip().splitlines()]
    return np.array(
        [sum((mark != "#") << column for column, mark in enumerate(line)) for line in lines],
        np.uint32,
    )


def cell(row: Any, column: Any, height: int) -> jax.Array:
    """Return the set of one cell, uint32 ``(height,)``."""
    return jnp.where(
        np.arange(height) == row, np.uint32(1) << jnp.asarray(column).astype(jnp.uint32), 0
    )


def flood(free: jax.Array, goal: jax.Array, here: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Flood a maze from the goal until the cell ``here`` is wet.

    Args:
        free: free cells, uint32 ``(H,)``; the cells of the border are walls.
        goal: the set of the goal; a free cell.
        here: the set of a cell from which the goal can be reached.

    Returns:
        the cells that were wet one step earlier: those closer to the goal than ``here``; and the
            distance in moves.
    """

    def grow(
        ring: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        _, wet, steps = ring
        none = jnp.zeros(1, jnp.uint32)
        above = jnp.concatenate([none, wet[:-1]])
        below = jnp.concatenate([wet[1:], none])
        return wet, (wet | wet << 1 | wet >> 1 | above | below) & free, steps + 1

    closer, _, steps = jax.lax.while_loop(
        lambda ring: ~(ring[1] & here != 0).any(), grow, (jnp.zeros_like(goal), goal, jnp.int32(0))
    )
    return closer, steps


def spanning_tree(order: jax.Array, ends: np.ndarray) -> jax.Array:
    """Return the edges of a spanning tree, bool ``(edges,)``.

    Each edge in turn is taken if it joins two trees (Kruskal 1956).

    Args:
        order: a permutation of the edges.
        ends: the two rooms of each edge, ``(edges, 2)``.
    """

    def join(turn: jax.Array, progress: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        component, tree = progress
        edge = order[turn]
        first = component[jnp.asarray(ends)[edge, 0]]
        second = component[jnp.asarray(ends)[edge, 1]]
        return jnp.where(component == second, first, component), tree | (
            (np.arange(len(ends)) == edge) & (first != second)
        )

    rooms = jnp.arange(ends.max() + 1, dtype=jnp.int8)
    return jax.lax.fori_loop(0, len(ends), join, (rooms, jnp.zeros(len(ends), bool)))[1]


class TextMaze(Task[Params, State]):
    """The task; see the module's docstring.

    Attributes:
        partial: whether the map and the walker's cell are hidden.
        layout: the name of a fixed maze, or ``drawn``.
        height: rows of cells.
        width: columns of cells.
    """

    measures: ClassVar[dict[str, str]] = {
        "moves": "moves so far",
        "bumps": "moves that met a wall",
        "shortest": (
            "moves of a shortest way from start to goal once the episode is over, -1 before"
        ),
        "reached": "whether the goal is reached",
    }
    picture_shape = ((2 * MAX_ROOMS + 1) * TILE, (BESIDE_COLUMN + 2) * TILE, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.partial = card.settings["observed"] == "partially"
        self.layout = card.settings["layout"]
        usual = card.difficulties[str(card.default_difficulty)]
        number = usual if difficulty is None else difficulty
        if self.layout != "drawn" and number != usual:
            raise ValueError(
                f"{card.id} has one size only; leave difficulty out (given: {difficulty!r})."
            )
        if not (MIN_ROOMS <= number <= MAX_ROOMS and number == int(number)):
            raise ValueError(
                f"A difficulty of {card.id} is the number of rooms a side, a whole number from "
                f"{MIN_ROOMS} to {MAX_ROOMS}; got {difficulty!r}."
            )
        self.rooms = int(number)
        if self.layout == "drawn":
            self.height = self.width = 2 * self.rooms + 1
        else:
            self._cells = cells_of(LAYOUTS[self.layout][0])
            self.height = len(self._cells)
            self.width = len(LAYOUTS[self.layout][0].split()[0])
        size = 2 * (self.height + self.width) if self.partial else 3 * self.height * self.width
        self.observation_space = self.box(0.0, 1.0, (size + len(MOVES),))
        self.action_space = spaces.Discrete(len(MOVES))
        self.reward_space = self.box(-1.0, 0.0, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a maze, a goal and a start; or the start in a fixed maze."""
        bits = split_bits(jax.random.bits(key, (2, self._edges + 2), jnp.uint32), split)
        if self.layout == "drawn":
            return self._between(self._draw_maze(bits[:, 2:], split), *self._two_rooms(bits[0, :2]))
        goal = LAYOUTS[self.layout][1]
        cells = [cell_index for cell_index in self._free_cells(self._cells) if cell_index != goal]
        starts = np.array(
            [*cells[3::4], *(cell_index for i, cell_index in enumerate(cells) if i % 4 != 3)],
            np.int32,
        )
        tests = len(cells[3::4])
        size = jnp.where(split == Split.TEST, tests, len(cells) - tests).astype(jnp.uint32)
        start = jnp.asarray(starts)[
            (bits[0, 0] % size).astype(jnp.int32) + jnp.where(split == Split.TEST, 0, tests)
        ]
        return self._between(jnp.asarray(self._cells), jnp.asarray(goal, jnp.int32), start)

    @property
    def _edges(self) -> int:
        return 2 * self.rooms * (self.rooms - 1)

    def _free_cells(self, cells: np.ndarray) -> list[tuple[int, int]]:
        """Return row and column of each free cell."""
        return [
            (row, column)
            for row in range(self.height)
            for column in range(self.width)
            if cells[row] >> column & 1
        ]

    def _two_rooms(self, bits: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw the cells of two different rooms, int32 ``(2,)`` each."""
        rooms = self.rooms**2
        first_room = (bits[0] % rooms).astype(jnp.int32)
        second_room = (first_room + 1 + (bits[1] % (rooms - 1)).astype(jnp.int32)) % rooms
        first, second = (
            jnp.stack([2 * (room // self.rooms) + 1, 2 * (room % self.rooms) + 1])
            for room in (first_room, second_room)
        )
        return first, second

    def _draw_maze(self, bits: jax.Array, split: jax.Array) -> jax.Array:
        """Return the cells of a maze, uint32 ``(H,)``.

        Its number of rings is even for train and odd for test.

        Args:
            bits: two random numbers for each edge between rooms, uint32 ``(2, edges)``.
            split: 0 for train, 1 for test.
        """
        n = self.rooms
        room = np.arange(n * n, dtype=np.int32).reshape(n, n)
        across, down = (np.stack([a.ravel(), b.ravel()], 1) for a, b in (
            (room[:, :-1], room[:, 1:]), (room[:-1], room[1:]),
        ))  # fmt: skip
        tree = spanning_tree(jnp.argsort(bits[0]).astype(jnp.int32), np.concatenate([across, down]))
        ring = ~tree & (bits[1] >> 29 == 0)
        wrong = ring.sum(dtype=jnp.int32) % 2 != split
        last = jnp.argmax(jnp.where(tree, 0, bits[1] | 1))
        opened = (tree | (ring ^ (wrong & (np.arange(len(tree)) == last)))).astype(jnp.uint32)
        right = opened[: len(across)].reshape(n, n - 1)
        below = opened[len(across) :].reshape(n - 1, n)
        every = np.uint32(sum(2 << 2 * i for i in range(n)))
        # One bit a passage, so the sum is the union.
        rooms = every | (right << np.arange(2, 2 * n, 2, dtype=np.uint32)).sum(1, dtype=jnp.uint32)
        between = (below << np.arange(1, 2 * n, 2, dtype=np.uint32)).sum(1, dtype=jnp.uint32)
        wall = jnp.zeros(1, jnp.uint32)
        inner = jnp.stack([rooms, jnp.concatenate([between, wall])], 1).ravel()
        return jnp.concatenate([wall, inner])

    def _between(self, free: jax.Array, goal: jax.Array, start: jax.Array) -> Params:
        """Return the context of a maze, a goal and a start."""
        _, shortest = flood(
            free, cell(goal[0], goal[1], self.height), cell(start[0], start[1], self.height)
        )
        return Params(free, goal[0], goal[1], start[0], start[1], shortest)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin at the start."""
        return State(params.start_row, params.start_column, jnp.int32(0), jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move to the next cell, if it is free."""
        row = state.row + jnp.asarray(ROW_STEPS)[action]
        column = state.column + jnp.asarray(COLUMN_STEPS)[action]
        wall = self._is_wall(row, column, params)
        return State(
            row=jnp.where(wall, state.row, row),
            column=jnp.where(wall, state.column, column),
            moves=state.moves + 1,
            bumps=state.bumps + wall,
        )

    def _is_wall(self, row: Any, column: Any, params: Params) -> jax.Array:
        """Return whether a cell is a wall."""
        line = reduce(or_, (jnp.where(row == i, params.free[i], 0) for i in range(self.height)))
        return line >> jnp.asarray(column).astype(jnp.uint32) & 1 == 0

    def walls(self, state: State, params: Params) -> jax.Array:
        """Return whether a wall is to the left, to the right, above and below: bool ``(4,)``."""
        around = zip(ROW_STEPS.tolist(), COLUMN_STEPS.tolist(), strict=True)
        return jnp.stack(
            [
                self._is_wall(state.row + row, state.column + column, params)
                for row, column in around
            ]
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what is shown, all 0 or 1; see the module's docstring."""
        h, w = self.height, self.width
        walls = self.walls(state, params)
        if self.partial:
            start = state.moves == 0
            coordinates = (
                (h, params.goal_row),
                (w, params.goal_column),
                (h, state.row),
                (w, state.column),
            )
            one_hots = [np.arange(size) == index for size, index in coordinates]
            flags = jnp.concatenate(
                [*one_hots[:2], one_hots[2] & start, one_hots[3] & start, walls]
            )
        else:
            cells = np.arange(h * w)
            goal, here = (
                row * w + column
                for row, column in (
                    (params.goal_row, params.goal_column),
                    (state.row, state.column),
                )
            )
            free = (params.free[:, None] >> np.arange(w, dtype=np.uint32) & 1 == 1).ravel()
            flags = jnp.concatenate([free, cells == goal, cells == here, walls])
        return flags.astype(self.dtype)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        h, w = self.height, self.width
        components: tuple[Component, ...]
        if self.partial:
            components = (
                Component("goal_row", "row of the goal, one-hot", shape=(h,)),
                Component("goal_column", "column of the goal, one-hot", shape=(w,)),
                Component(
                    "start_row", "row of the own place, one-hot; zeros after the start", shape=(h,)
                ),
                Component(
                    "start_column",
                    "column of the own place, one-hot; zeros after the start",
                    shape=(w,),
                ),
            )
        else:
            components = (
                Component("free", "[row, column]: whether the cell is free", shape=(h, w)),
                Component("goal", "[row, column]: whether the goal is there", shape=(h, w)),
                Component("here", "[row, column]: whether the walker is there", shape=(h, w)),
            )
        return (
            *components,
            Component(
                "walls", "whether a wall is to the left, to the right, above, below", shape=(4,)
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the moves."""
        return singles({move: f"move {move}" for move in MOVES})

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 0 if the goal is reached, else -1."""
        return jnp.where(self._is_at_goal(next_state, params), 0, -1).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the goal is reached."""
        return self._is_at_goal(state, params)

    def _is_at_goal(self, state: State, params: Params) -> Any:
        return (state.row == params.goal_row) & (state.column == params.goal_column)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, reached by a short way, and the measures."""
        reached = self._is_at_goal(state, params)
        max_moves = params.shortest * (2 if self.partial else 1)
        return {
            "success": reached & (state.moves <= max_moves),
            "moves": state.moves,
            "bumps": state.bumps,
            "shortest": jnp.where(
                reached | (state.moves >= self.card.horizon), params.shortest, -1
            ),
            "reached": reached,
        }

    # -- host side: no more than the observation shows ---------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe what is shown, in the words of LMRL-Gym; the map is a paragraph before them."""
        walls = [
            side
            for side, wall in zip(SIDES, self._walls_beside(state, params), strict=True)
            if wall
        ]
        sentences = [f"The goal is at position {int(params.goal_row)}, {int(params.goal_column)}."]
        if not self.partial or int(state.moves) == 0:
            sentences.append(
                f"Your current position is at position {int(state.row)}, {int(state.column)}."
            )
        if walls:
            sentences.append(
                f"There {'are walls' if len(walls) > 1 else 'is a wall'} {', '.join(walls)}."
            )
        else:
            sentences.append("There are no walls near you.")
        if self.partial:
            return " ".join(sentences)
        return (
            "The maze, row by row from row 0 (# wall, G "
            f"goal):\n{self._map(params)}\n\n{' '.join(sentences)}"
        )

    def _walls_beside(self, state: State, params: Params) -> list[bool]:
        """Return what :meth:`walls` returns, without JAX."""
        row, column = int(state.row), int(state.column)
        beside = zip(ROW_STEPS.tolist(), COLUMN_STEPS.tolist(), strict=True)
        return [not int(params.free[row + down]) >> column + right & 1 for down, right in beside]

    def _map(self, params: Params) -> str:
        """Return the map."""
        marks = [
            [".#"[not line >> column & 1] for column in range(self.width)]
            for line in map(int, params.free)
        ]
        marks[int(params.goal_row)][int(params.goal_column)] = "G"
        return "\n".join(map("".join, marks))

    def rules(self) -> str:
        """Return the rules."""
        visibility = (
            "Your position is told at the start only, and the maze is not shown." if self.partial
            else "The maze is shown."
        )  # fmt: skip
        return (
            "Walk through a maze to the goal in as few moves as possible. A position is a row, "
            "counted from 0 at the "
            "top, and a column, counted from 0 at the left. A move goes to the next cell; a move "
            "into a wall leaves "
            f"you where you are. {visibility} Every move but the one that reaches the goal costs "
            "1. A reply that is no "
            f"move is played as {MOVES[0]!r}. There are {self.card.horizon} moves."
        )

    def how_to_act(self) -> str:
        """Tell a text player the moves."""
        return "Answer with one of: " + ", ".join(f"move {move}" for move in MOVES) + "."

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the move that is named, with or without the word "move".

        Raises:
            ValueError: the text is no move.
        """
        move = re.sub(r"^move\s+", "", text.strip().lower())
        if move not in MOVES:
            raise ValueError(unknown("move", text.strip()[:100], MOVES))
        return np.array(MOVES.index(move), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the words of a move."""
        return f"move {MOVES[int(action)]}"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say in how many moves the goal was reached."""
        return (
            f"the goal is reached in {int(info['moves'])} moves; a shortest way has "
            f"{int(info['shortest'])}"
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw maze, goal and walker, as far as they are shown.

        The walls beside the walker are at the right.
        """
        picture = np.full(self.picture_shape, PAPER, np.uint8)

        def paint(row: int, column: int, colour: tuple[int, int, int]) -> None:
            picture[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE] = colour

        for row in range(self.height):
            for column in range(self.width):
                wall = not self.partial and not int(params.free[row]) >> column & 1
                paint(row, column, WALL if wall else FLOOR)
        paint(int(params.goal_row), int(params.goal_column), GOAL)
        if not self.partial or int(state.moves) == 0:
            paint(int(state.row), int(state.column), WALKER)
        paint(1, BESIDE_COLUMN, WALKER)
        for i, wall in enumerate(self._walls_beside(state, params)):
            paint(
                1 + int(ROW_STEPS[i]), BESIDE_COLUMN + int(COLUMN_STEPS[i]), WALL if wall else FLOOR
            )
        return picture

"""rlsuite/Maze-v0: the shortest way through a maze.

``difficulty`` is the side of the maze in rooms. The passages are a random spanning tree, and one in
eight of the walls left is taken down, so that there may be several ways. See :mod:`.lattice_routes`
for actions, observations and rewards; the mask forbids walking into walls. Two things differ:

* Every passage taken is marked, at most twice, as Tremaux's walker does, who never gets lost (Lucas
  1882, Recreations mathematiques 1): without marks, a player who does not see the whole way at once
  walks to and fro. The observation ends with the marks of the passages to the right, then down,
  rooms in reading order, and those of the four from here; halved.
* The distance left to the goal is counted in moves of a shortest way, so that necessary detours are
  rewarded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import SPLITS, TaskCard
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import FILLED, Board
from ..shared.puzzle_task import Params
from .lattice_routes import DOWN, LEFT, UP, RoutePuzzle, RouteTask

MARKS = 2
"""Most marks of a passage."""
TRAIL = "", "#b8bec7", "#737a85"
"""Colours of passages by how often they were taken."""


class Instance(NamedTuple):
    """A maze, a start and a goal; see :class:`.lattice_routes.Roads`."""

    right: np.ndarray
    """int8 ``(side**2,)``: 1 where a passage leads to the room on the right, 0 where a wall is."""
    down: np.ndarray
    """int8 ``(side**2,)``: 1 where a passage leads to the room below, 0 where a wall is."""
    start: np.int16
    """A room."""
    goal: np.int16
    """A room."""
    shortest: np.int16
    """Moves of a shortest way."""
    moves_left: np.ndarray
    """int16 ``(side**2,)``: moves of a shortest way from every room."""


class MazePuzzle(RoutePuzzle[Instance]):
    """A maze: rooms, with a road of length 1 where there is no wall."""

    name = "Maze"
    moves = ("U", "D", "L", "R")
    tiers = range(3, 16)
    eighths, longest = 1, 1

    def compose(self, dice: Dice) -> Instance:
        """Draw a random maze."""
        return next(self.draws(dice, SPLITS[0]))

    def draws(self, dice: Dice, split: str) -> Iterator[Instance]:
        """Yield random mazes, each from several starts."""
        while True:
            for roads, distances in self.random_maps(dice):
                yield Instance(*roads, np.array(distances, np.int16))

    def question(self, instance: Instance) -> str:
        """State the rules, the map and the format."""
        return (
            f"A maze of {self.side} x {self.side} rooms: S marks the start, G the goal. A move "
            "goes to the room above "
            "(U), below (D), to the left (L) or to the right (R), if there is no wall between: --- "
            "is a wall between a "
            "room and the one below, | a wall between two rooms side by "
            f"side.\n\n{self.map_of(instance)}"
            "\n\nGo from S to G with as few moves as possible. Answer with the moves in order, "
            "separated by single "
            "spaces."
        )

    def map_of(self, instance: Instance) -> str:
        """Return the map."""
        walls = instance.right.tobytes() + instance.down.tobytes()
        return self.write_map(walls, {self.start(instance): "S", self.goal(instance): "G"})

    def write_map(self, passages: bytes, names: dict[int, str]) -> str:
        """Return a map with names of rooms and the passages.

        ``passages`` are those to the right, then those down: 0 for a wall, 1 for none, then marks.
        """
        side, lines = self.side, ["+" + "---+" * self.side]
        right, down = passages[: self.places], passages[self.places :]
        for first in range(0, side * side, side):
            lines += _rooms(right[first : first + side]), _floor(down[first : first + side])
        for room, name in names.items():
            row, column = divmod(room, side)
            line = lines[2 * row + 1]
            lines[2 * row + 1] = f"{line[: 4 * column + 2]}{name}{line[4 * column + 3 :]}"
        return "\n".join(lines)


@cache
def _rooms(right: bytes) -> str:
    """Return a row of rooms and the walls between them."""
    return "|" + "".join(["   " + "| .:"[passage] for passage in right])


@cache
def _floor(down: bytes) -> str:
    """Return the text below a row of rooms."""
    return "+" + "".join([("---+", "   +", " . +", " : +")[passage] for passage in down])


class MazeState(NamedTuple):
    """The player's place, and the places visited."""

    place: jax.Array
    """int32: the room."""
    marks: jax.Array
    """int8 ``(2 * side**2,)``: marks of the passages to the right, then down, from each room."""


class Maze(RouteTask[MazeState]):
    """The interactive form."""

    puzzle: MazePuzzle
    puzzle_class = MazePuzzle
    ways = ("up", "down", "left", "right")
    road_unit = "1"

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        marks = [0.0] * (2 * self.places + 4)
        self.observation_space = self.box([0.0] * (4 * self.places + 4) + [-1.0, -1.0, *marks], 1.0)

    def initial(self, key: jax.Array, params: Params) -> MazeState:
        """Begin at the start, with no passage marked."""
        return MazeState(
            params.instance.start.astype(jnp.int32), jnp.zeros(2 * self.places, jnp.int8)
        )

    def transition(
        self, state: MazeState, action: jax.Array, key: jax.Array, params: Params
    ) -> MazeState:
        """Go through the passage and mark it."""
        place, below = state.place, state.place + self.places
        passage = jnp.select(
            [action == UP, action == DOWN, action == LEFT],
            [below - self.puzzle.side, below, place - 1],
            place,
        )
        marks = jnp.where(
            np.arange(2 * self.places) == passage, jnp.minimum(state.marks + 1, MARKS), state.marks
        )
        return MazeState(self.place_beyond(place, action), marks)

    def observation(self, state: MazeState, key: jax.Array, params: Params) -> jax.Array:
        """Return the maze, the player's room, the view from there, and the marks."""
        lattice_view = super().observation(state, key, params)
        from_here = self.roads_around(
            state.marks[: self.places], state.marks[self.places :], state.place
        )
        marks = jnp.concatenate([state.marks, from_here]).astype(self.dtype)
        return jnp.concatenate([lattice_view, marks / MARKS])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries of any route, then the marks."""
        side, unit = (self.puzzle.side,) * 2, f"{MARKS} marks"
        return (
            *super().observation_components(),
            Component(
                "marks_right",
                "[row, column]: marks of the passage to the right of the room",
                unit,
                side,
            ),
            Component(
                "marks_down", "[row, column]: marks of the passage down from the room", unit, side
            ),
            Component(
                "marks_here", f"marks of the passages {', '.join(self.ways)} from here", unit, (4,)
            ),
        )

    def distance_left(self, place: jax.Array, params: Params) -> jax.Array:
        """Return the moves of a shortest way."""
        return params.instance.moves_left[place].astype(jnp.int32)

    def describe(self, state: MazeState, params: Params) -> str:
        """Show the map, with marks."""
        maze = params.instance
        passages = np.concatenate([maze.right, maze.down]) + np.asarray(state.marks)
        names = {int(maze.start): "S", int(maze.goal): "G", int(state.place): "@"}
        return (
            "A maze: you are at @, the goal is G. --- and | are walls; you went once where a . is, "
            "more often where a "
            f": is.\n\n{self.puzzle.write_map(passages.astype(np.uint8).tobytes(), names)}"
        )

    def draw(self, state: MazeState, params: Params) -> np.ndarray:
        """Draw the map with the goal green and the player's room as a blue dot.

        Marked passages are grey, and dark from the second time on.
        """
        side, maze = self.puzzle.side, params.instance
        board = Board(side, side, self.picture_shape)
        for place in range(self.places):
            board.cell(*divmod(place, side), paper="#9fd8c1" if place == int(maze.goal) else "")
        right, down = np.asarray(state.marks).reshape(2, -1).tolist()
        board.line(0, 0, 0, side)
        board.line(0, 0, side, 0)
        for place in range(self.places):
            row, column = divmod(place, side)
            if not maze.right[place]:
                board.line(row, column + 1, row + 1, column + 1)
            if not maze.down[place]:
                board.line(row + 1, column, row + 1, column + 1)
            if marks := right[place]:
                board.line(row + 0.5, column + 0.5, row + 0.5, column + 1.5, TRAIL[marks])
            if marks := down[place]:
                board.line(row + 0.5, column + 0.5, row + 1.5, column + 0.5, TRAIL[marks])
        x0, y0, x1, y1 = board.box(*divmod(int(state.place), side))
        inset = board.side // 4
        board.pen.ellipse((x0 + inset, y0 + inset, x1 - inset, y1 - inset), fill=FILLED)
        return board.picture()

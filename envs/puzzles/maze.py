"""rlsuite/Maze-v0: the shortest way through a maze.

``difficulty`` is the side of the maze in rooms. Walls are a random spanning tree's, one in eight of the others taken
down, so that there may be several ways. See :mod:`.routes` for actions, observations and rewards; the mask forbids
walking into walls.

There are 192 spanning trees on 3 x 3 rooms and 100,352 on 4 x 4; mazes of 3 x 3 rooms are some 1,200 that differ.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import numpy as np

from rlbench_suite.dice import Dice

from .board import FILLED, Board
from .puzzle_task import Params
from .routes import Roads, RoutePuzzle, RouteTask, Travel


class MazePuzzle(RoutePuzzle[Roads]):
    """Rooms; where there is no wall, a road of length 1."""

    name = "Maze"
    few: ClassVar[dict[float, float]] = {3: 1_200}
    moves = ("U", "D", "L", "R")
    largest, eighths, longest = 15, 1, 1

    def compose(self, dice: Dice) -> Roads:
        """A random maze."""
        return self.roads(dice)

    def rings(self, lengths: bytes | bytearray, goal: int, until: int = 0) -> list[int]:
        """As on any map; here a step leads from all places of a ring at once."""
        side = self.side
        roads = int(lengths[::-1].translate(_BINARY), 2)
        right, down = roads, roads >> self.places
        ring = 1 << goal
        unmet = 2**self.places - 1 ^ ring
        rings = [ring]
        while not ring & until:
            ring = ((ring & right) << 1 | ring >> 1 & right | (ring & down) << side | ring >> side & down) & unmet
            if not ring:
                break
            unmet ^= ring
            rings.append(ring)
        return rings

    def question(self, instance: Roads) -> str:
        """Rules, map, format."""
        return (
            f"A maze of {self.side} x {self.side} rooms; S is in the room to start from, G in the goal. A move goes "
            "into the room above (U), below (D), on the left (L) or on the right (R), where there is no wall: --- "
            f"is a wall between a room and the one below, | between two rooms side by side.\n\n{self.shown(instance)}"
            "\n\nGo from S to G with as few moves as possible. Answer with the moves in order, separated by single "
            "spaces."
        )

    def shown(self, instance: Roads, place: int | None = None) -> str:
        """The map; with ``place``, where one is, as ``@``."""
        marks = {int(instance.start): "S", int(instance.goal): "G"} | ({} if place is None else {place: "@"})
        side, lines = self.side, ["+" + "---+" * self.side]
        right, down = instance.right.tobytes(), instance.down.tobytes()
        for first in range(0, side * side, side):
            lines += _rooms(right[first : first + side]), _floor(down[first : first + side])
        for room, mark in marks.items():
            row, column = divmod(room, side)
            line = lines[2 * row + 1]
            lines[2 * row + 1] = f"{line[: 4 * column + 2]}{mark}{line[4 * column + 3 :]}"
        return "\n".join(lines)


@cache
def _rooms(right: bytes) -> str:
    """A row of rooms and the walls between them."""
    return "|" + "".join(["    " if is_open else "   |" for is_open in right])


@cache
def _floor(down: bytes) -> str:
    """What is below a row of rooms."""
    return "+" + "".join(["   +" if is_open else "---+" for is_open in down])


_BINARY = b"01".ljust(256, b"1")
"""Translates lengths of roads to digits of a binary number."""


class Maze(RouteTask):
    """The interactive form."""

    puzzle: MazePuzzle
    puzzle_class = MazePuzzle
    ways = ("up", "down", "left", "right")

    def describe(self, state: Travel, params: Params) -> str:
        """The map."""
        shown = self.puzzle.shown(params.instance, int(state.place))
        return f"A maze: you are at @, the goal is G. --- and | are walls.\n\n{shown}"

    def draw(self, state: Travel, params: Params) -> np.ndarray:
        """The map; the goal green, a blue dot where one is."""
        side, maze = self.puzzle.side, params.instance
        board = Board(side, side, self.picture_shape)
        for place in range(self.places):
            row, column = divmod(place, side)
            board.cell(row, column, paper="#9fd8c1" if place == int(maze.goal) else "")
            if place == int(state.place):
                x0, y0, x1, y1 = board.box(row, column)
                inset = board.side // 4
                board.pen.ellipse((x0 + inset, y0 + inset, x1 - inset, y1 - inset), fill=FILLED)
        board.line(0, 0, 0, side)
        board.line(0, 0, side, 0)
        for place in range(self.places):
            row, column = divmod(place, side)
            if not maze.right[place]:
                board.line(row, column + 1, row + 1, column + 1)
            if not maze.down[place]:
                board.line(row + 1, column, row + 1, column + 1)
        return board.picture()

"""Grid mazes: layouts, shortest paths, and the motion of a disc between their walls.

A maze is a grid of square cells of side 1 m; cell (column, row) covers [column, column + 1] x [row,
row + 1], rows counted from the bottom. Layouts: U_MAZE, MEDIUM_MAZE and LARGE_MAZE of D4RL (Fu et
al. 2020, arXiv:2004.07219).
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

LAYOUTS = {
    "umaze": """
        #####
        #...#
        ###.#
        #...#
        #####
    """,
    "medium": """
        ########
        #..##..#
        #..#...#
        ##...###
        #..#...#
        #.#..#.#
        #...#..#
        ########
    """,
    "large": """
        ############
        #....#.....#
        #.##.#.#.#.#
        #......#...#
        #.####.###.#
        #..#.#.....#
        ##.#.#.#.###
        #..#...#...#
        ############
    """,
}
"""``#`` is wall. The outermost cells are walls everywhere."""

UNREACHED = np.iinfo(np.int32).max


class Maze:
    """A layout, and the tables derived from it. NumPy only."""

    def __init__(self, layout: str) -> None:
        self.picture = layout.split()
        lines = self.picture[::-1]
        self.height, self.width = len(lines), len(lines[0])
        self.wall = np.array([[sign == "#" for sign in line] for line in lines])
        """bool ``(height, width)``, the bottom row first."""
        bits = self.wall.astype(np.uint32) << np.arange(self.width, dtype=np.uint32)
        self.rows = bits.sum(1, dtype=np.uint32)
        """uint32 ``(height,)``: bit ``column`` of word ``row`` is set in a wall."""
        self.free = [(int(column), int(row)) for row, column in np.argwhere(~self.wall)]

    def number(self, column: Any, row: Any) -> Any:
        """Return the number of a cell; works on arrays too."""
        return row * self.width + column

    @cached_property
    def next_cell(self) -> np.ndarray:
        """Return the number of the next cell by goal and current cell, int32 ``(cells, cells)``.

        At the goal it is the goal itself.

        Ways are shortest paths over cells with a common side, by breadth-first search. A wall's
        next cell is itself.
        """
        return self._searches[0]

    @cached_property
    def steps(self) -> np.ndarray:
        """Return the length of the shortest path by goal and current cell.

        It is int32 ``(cells, cells)``, and ``UNREACHED`` for walls.
        """
        return self._searches[1]

    @cached_property
    def _searches(self) -> tuple[np.ndarray, np.ndarray]:
        cells = self.width * self.height
        towards = np.tile(np.arange(cells, dtype=np.int32), (cells, 1))
        steps = np.full((cells, cells), UNREACHED, np.int32)
        for goal in self.free:
            goal_number = self.number(*goal)
            steps[goal_number, goal_number] = 0
            queue = deque([goal])
            while queue:
                column, row = queue.popleft()
                current = self.number(column, row)
                for cell in (
                    (column + 1, row),
                    (column - 1, row),
                    (column, row + 1),
                    (column, row - 1),
                ):
                    neighbour = self.number(*cell)
                    if not self.wall[cell[::-1]] and steps[goal_number, neighbour] == UNREACHED:
                        steps[goal_number, neighbour] = steps[goal_number, current] + 1
                        towards[goal_number, neighbour] = current
                        queue.append(cell)
        return towards, steps

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return start and goal cells for training and for testing, int32 ``(n, 4)`` each.

        A row is the start's column and row, then the goal's column and row.

        They are the ordered pairs of free cells at least two steps apart, sorted by distance; every
        fourth is a test pair.
        """
        pairs = sorted(
            (int(self.steps[self.number(*goal), self.number(*start)]), *start, *goal)
            for start in self.free
            for goal in self.free
        )
        table = np.array([pair[1:] for pair in pairs if pair[0] >= 2], np.int32)
        test = np.arange(len(table)) % 4 == 3
        return table[~test], table[test]


class Motion(NamedTuple):
    """Position (m) and velocity (m/s) of a disc's centre."""

    x: jax.Array
    y: jax.Array
    vx: jax.Array
    vy: jax.Array


def move(rows: np.ndarray, start: Motion, time: float, radius: float) -> Motion:
    """Move a disc for ``time`` seconds: straight ahead, and along the walls that it meets.

    Contact takes away the velocity towards the wall and leaves the velocity along it: no bounce, no
    friction. The result is exact for steps shorter than 0.5 m - ``radius``: then only walls at the
    nearest corner of the grid are in reach, and of them the disc meets one of

    * nothing, a straight wall, or two walls in a corner it cannot leave: each axis has its own
      limit;
    * one convex corner, of a single wall cell: the disc's centre keeps out of that quadrant of the
      plane widened by the radius. It goes to the point of first contact, then along the tangent;
      the widened quadrant is convex, so no tangent enters it.

    Args:
        rows: wall bits of :class:`Maze`.
        start: without overlap with a wall.
        time: s.
        radius: of the disc, m.
    """
    corner_x, corner_y = jnp.round(start.x), jnp.round(start.y)
    column, row = corner_x.astype(jnp.int32), corner_y.astype(jnp.int32)
    words = jnp.asarray(rows)
    shift = (column - 1).astype(jnp.uint32)
    below, above = words[row - 1] >> shift, words[row] >> shift
    left, low = start.x < corner_x, start.y < corner_y

    # Own quadrant, seen from the corner, has x < 0 and y < 0; walls beside it, above it, and
    # across.
    unit = jnp.ones((), start.x.dtype)
    sign_x, sign_y = jnp.where(left, unit, -unit), jnp.where(low, unit, -unit)
    own_row, other_row = jnp.where(low, below, above), jnp.where(low, above, below)
    own_column = jnp.where(left, np.uint32(0), np.uint32(1))
    other_column = jnp.where(left, np.uint32(1), np.uint32(0))
    beside = (own_row >> other_column) & 1 == 1
    over = (other_row >> own_column) & 1 == 1
    across = (other_row >> other_column) & 1 == 1

    x, y = sign_x * (start.x - corner_x), sign_y * (start.y - corner_y)
    vx, vy = sign_x * start.vx, sign_y * start.vy
    dx, dy = time * vx, time * vy

    stop_x = beside & (over | across) & (x + dx > -radius)
    stop_y = over & (beside | across) & (y + dy > -radius)
    straight = Motion(
        jnp.where(stop_x, -radius, x + dx),
        jnp.where(stop_y, -radius, y + dy),
        jnp.where(stop_x, 0, vx),
        jnp.where(stop_y, 0, vy),
    )

    # A single wall: mirror it into x > 0, y > 0.
    flip_x, flip_y = jnp.where(over, -unit, unit), jnp.where(beside, -unit, unit)
    mirrored = Motion(flip_x * x, flip_y * y, flip_x * vx, flip_y * vy)
    rounded = _move_around_corner(mirrored, time, radius)
    single = (beside ^ over ^ across) & ~(beside & over & across)
    x, y, vx, vy = (
        jnp.where(single, flip * bent, plain)
        for flip, bent, plain in zip(
            (flip_x, flip_y, flip_x, flip_y), rounded, straight, strict=True
        )
    )
    return Motion(corner_x + sign_x * x, corner_y + sign_y * y, sign_x * vx, sign_y * vy)


def _move_around_corner(start: Motion, time: float, radius: float) -> Motion:
    """Move a disc about a wall that fills the quadrant x > 0, y > 0."""
    x, y, vx, vy = start
    dx, dy = time * vx, time * vy
    zero, never = jnp.zeros((), x.dtype), jnp.full((), 2, x.dtype)

    # Fractions of the step at which the centre reaches each side of the widened wall.
    to_side_x = jnp.maximum((-radius - x) / jnp.where(dx > 0, dx, 1), 0)
    meets_side_x = (dx > 0) & (x <= 0) & (y + to_side_x * dy >= 0)
    to_side_y = jnp.maximum((-radius - y) / jnp.where(dy > 0, dy, 1), 0)
    meets_side_y = (dy > 0) & (y <= 0) & (x + to_side_y * dx >= 0)
    # The arc: |centre + fraction * step| = radius, the first of two solutions.
    approach = -(x * dx + y * dy)
    squared_step = dx * dx + dy * dy
    gap = x * x + y * y - radius * radius
    discriminant = approach * approach - squared_step * gap
    root = jnp.sqrt(jnp.maximum(discriminant, 0))
    to_arc = jnp.maximum((approach - root) / jnp.where(squared_step > 0, squared_step, 1), 0)
    arc_x, arc_y = x + to_arc * dx, y + to_arc * dy
    meets_arc = (approach > 0) & (discriminant > 0) & (arc_x < 0) & (arc_y < 0)

    to_side_x = jnp.where(meets_side_x, to_side_x, never)
    to_side_y = jnp.where(meets_side_y, to_side_y, never)
    to_arc = jnp.where(meets_arc, to_arc, never)
    first = jnp.minimum(jnp.minimum(to_side_x, to_side_y), to_arc)
    on_x = (first <= 1) & (first == to_side_x)
    on_y = (first <= 1) & (first == to_side_y) & ~on_x
    on_arc = (first <= 1) & ~on_x & ~on_y

    # On the arc the normal is the contact point itself; the rest of the step goes along the
    # tangent.
    length = jnp.sqrt(jnp.where(on_arc, arc_x * arc_x + arc_y * arc_y, 1))
    normal_x, normal_y = arc_x / length, arc_y / length
    along = vy * normal_x - vx * normal_y
    slide_vx, slide_vy = -along * normal_y, along * normal_x
    slide_time = time * (1 - to_arc)
    slide_x = normal_x * radius + slide_time * slide_vx
    slide_y = normal_y * radius + slide_time * slide_vy
    return Motion(
        jnp.where(on_arc, slide_x, jnp.where(on_x, -radius, x + dx)),
        jnp.where(on_arc, slide_y, jnp.where(on_y, -radius, y + dy)),
        jnp.where(on_arc, slide_vx, jnp.where(on_x, zero, vx)),
        jnp.where(on_arc, slide_vy, jnp.where(on_y, zero, vy)),
    )

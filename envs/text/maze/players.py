"""Players of TextMaze: one takes a shortest way, one keeps its right hand on the wall."""

from __future__ import annotations

from functools import reduce
from operator import or_

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, privileged_player

from .task import COLUMN_STEPS, MOVES, ROW_STEPS, Params, TextMaze, cell, flood

CLOCKWISE = np.array([MOVES.index(move) for move in ("up", "right", "down", "left")], np.int32)


@privileged_player
class ShortestWay(eqx.Module):
    """The reference player, which takes a shortest way through all cells that may be free.

    Only cells that it knows to be walls block the way.

    Where the maze is shown, that is optimal. Where it is hidden, the player knows its place from
    its moves, learns the walls beside it, and takes every cell that it has not seen for free
    (Koenig and Smirnov 1996, "Sensor-based planning with the freespace assumption"). Fixed layouts
    are known beforehand.
    """

    task: TextMaze = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: TextMaze) -> ShortestWay:
        """Make the player."""
        return cls(task)

    def initial(self, params: Params) -> jax.Array:
        """Return the cells that may be free, uint32 ``(H,)``."""
        if not self.task.partial or self.task.layout != "drawn":
            return jnp.asarray(params.free)
        n = self.task.rooms
        line = sum(2 << i for i in range(2 * n - 1))
        posts = sum(2 << 2 * i for i in range(n))
        return jnp.asarray(np.array([0, *[line, posts] * (n - 1), line, 0], np.uint32))

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return a move to a cell that is closer to the goal."""
        task = self.task
        state = view.state
        params = view.params
        here = cell(state.row, state.column, task.height)
        beside = [
            cell(state.row + row, state.column + column, task.height)
            for row, column in zip(ROW_STEPS.tolist(), COLUMN_STEPS.tolist(), strict=True)
        ]
        walls = task.walls(state, params)
        free = memory & ~reduce(or_, (jnp.where(walls[i], beside[i], 0) for i in range(len(MOVES))))
        closer, _ = flood(free, cell(params.goal_row, params.goal_column, task.height), here)
        good = jnp.stack([(closer & step & free != 0).any() for step in beside])
        return jnp.argmax(good).astype(jnp.int32), free


class WallFollower(eqx.Module):
    """The player: it turns right where it can, else goes straight on, else left, else back.

    It looks up at first.

    It reads the walls beside it alone. Around walls that touch no other ones it may walk for ever.
    """

    @classmethod
    def for_task(cls, task: TextMaze) -> WallFollower:
        """Make the player; it is the same for every maze."""
        return cls()

    def initial(self, params: Params) -> jax.Array:
        """Return the direction in which it looks, an index into :data:`CLOCKWISE`."""
        return jnp.int32(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the move to the first free cell, counted from the right hand against the clock."""
        free = jnp.asarray(view.observation)[-len(MOVES) :] == 0
        directions = (memory + np.array([1, 0, 3, 2], np.int32)) % len(MOVES)
        moves = jnp.asarray(CLOCKWISE)[directions]
        first = jnp.argmax(free[moves])
        return moves[first], directions[first]

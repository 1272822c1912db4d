"""A heuristic player of TextMaze: it keeps its right hand on the wall."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.policy import View

from .text_maze import MOVES, Params, TextMaze

CLOCKWISE = np.array([MOVES.index(move) for move in ("up", "right", "down", "left")], np.int32)


class WallFollower(eqx.Module):
    """The player: it turns right where it can, else goes straight on, else left, else back. It looks up at first.

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

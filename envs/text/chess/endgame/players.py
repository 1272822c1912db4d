"""Players of the endgames: one looks the quickest mate up, one confines the black king."""

from __future__ import annotations

from functools import reduce
from operator import or_

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, no_memory, privileged_player

from .tables import BISHOP, DIRECTIONS, MAX_SLIDE, PAWN, QUEEN, RAYS, SLIDES
from .task import Endgame, State, king_steps, touch

MAX_TIES = 1024
"""Equal moves of :class:`Confiner` are told apart by a random number below this."""
DECISIVE = 1000
"""Worth of mate to :class:`Confiner`."""


@privileged_player
class TablePlayer(eqx.Module):
    """The optimal player: it looks the quickest mate up.

    In a position that is not won it makes any legal move.
    """

    task: Endgame = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Endgame) -> TablePlayer:
        """Make the player."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the move of the table."""
        state = view.state
        number = self.task._number(state.king, state.piece, state.second, state.foe)
        shift = 64**3 * state.queen if self.task.piece == PAWN else 0
        best = jnp.asarray(self.task._best_moves)[number + shift].astype(jnp.int32)
        return jnp.where(
            best < 0, jnp.argmax(jnp.asarray(view.action_mask)).astype(jnp.int32), best
        ), ()


@privileged_player
class Confiner(eqx.Module):
    """A heuristic player: it looks one move ahead, and leaves the black king the fewest squares.

    Mate comes first, stalemate and the loss of a piece last. A square less is worth four steps that
    bring the kings together; so is a queen, and each rank of a pawn is worth one. Of equal moves it
    makes any.
    """

    task: Endgame = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Endgame) -> Confiner:
        """Make the player."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the legal move of the greatest worth."""
        legal = jnp.asarray(view.action_mask)
        worth = jax.vmap(lambda action: self._worth(view.state, action))(
            np.arange(len(legal), dtype=np.int32)
        )
        ties = (jax.random.bits(key, legal.shape, jnp.uint32) % MAX_TIES).astype(jnp.int32)
        return jnp.argmax(
            jnp.where(legal, MAX_TIES * worth + ties, jnp.iinfo(jnp.int32).min)
        ).astype(jnp.int32), memory

    def _worth(self, state: State, action: jax.Array) -> jax.Array:
        """Return what a position after a move is worth, int32."""
        task = self.task
        foe = state.foe
        king, piece, second, queen = task.move_white(state, action)
        pieces = [piece, second] if task.piece == BISHOP else [piece]
        slide_directions = np.isin(
            np.arange(DIRECTIONS), SLIDES[QUEEN if task.piece == PAWN else task.piece]
        )
        pawn = np.isin(np.arange(DIRECTIONS * MAX_SLIDE), (MAX_SLIDE, 7 * MAX_SLIDE)).reshape(
            DIRECTIONS, MAX_SLIDE
        )
        slides = jnp.where(queen | (task.piece != PAWN), slide_directions[:, None], pawn)
        lines = [
            jnp.where(
                slides & task._reachable(square, king), jnp.asarray(RAYS, jnp.int32)[square], -1
            )
            for square in pieces
        ]

        def is_attacked(square: jax.Array) -> jax.Array:
            return reduce(or_, ((line == square).any() for line in lines))

        steps = [
            (square, on & ~touch(square, king) & ~is_attacked(square))
            for square, on in king_steps(foe)
        ]
        free = sum(safe.astype(jnp.int32) for _, safe in steps)
        lost = reduce(or_, (safe & (square == piece) for square, safe in steps for piece in pieces))
        rank, file = (king >> 3) - (foe >> 3), (king & 7) - (foe & 7)
        worth = (
            (piece >> 3) * (task.piece == PAWN)
            + 4 * queen
            - 4 * free
            - jnp.maximum(abs(rank), abs(file))
        )
        worth = jnp.where(free == 0, jnp.where(is_attacked(foe), DECISIVE, -DECISIVE), worth)
        return jnp.where(lost, -DECISIVE, worth).astype(jnp.int32)

"""Hills on a grid of cells, the ways between cells that are not too steep, and their energy.

All numbers are integers, so that terrain and energy are the same on every processor. Heights count
in steps of 0.4 m, energy in what lifts a rover by one step. With cells of 4 m, a rover of 185 kg
(Opportunity's mass) on Mars (3.71 m/s^2) and a rolling resistance of 0.2 of its weight (loose
sand), driving one cell costs

    E = m g (0.2 * 4 m + max(0, rise)) = 274.5 J * (2 + max(0, steps up))

Brakes take the energy of a descent; nothing is regained. Slopes of more than two steps, 11.3
degrees, are too steep in both directions.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..shared.grid_bits import SIDE, shift_down, shift_up

ROLLING = 2
"""Energy of a level cell, in units."""
MAX_RISE = 2
"""Largest difference of height between cells beside each other that a rover takes."""
UNIT = 185 * 3.71 * 0.4
"""Energy that lifts a rover by one step of height, J."""
COARSE, FINE = 8, 4
"""Cells between the nodes of two lattices of random heights."""
NODES = (SIDE // COARSE + 1) ** 2, (SIDE // FINE + 1) ** 2


def _weights(spacing: int) -> np.ndarray:
    """Return the weights of a lattice's nodes in each cell along an axis.

    They are int32 ``(SIDE, nodes)``, and those of a cell sum to ``spacing``.
    """
    cells, nodes = np.arange(SIDE)[:, None], spacing * np.arange(SIDE // spacing + 1)
    return np.maximum(spacing - abs(cells - nodes), 0).astype(np.int32)


_WEIGHTS = _weights(COARSE), _weights(FINE)


def random_heights(bits: jax.Array, relief: int) -> jax.Array:
    """Return heights in steps, int32 ``(SIDE, SIDE)``, ``[y, x]``.

    Args:
        bits: random, uint32 ``(sum(NODES),)``.
        relief: largest height of the coarse hills, and of finer ones on them.
    """
    random = (bits >> 24).astype(jnp.int32)
    coarse, fine = (
        lax.dot(lax.dot(weights, nodes.reshape(weights.shape[1], -1)), weights.T)
        for weights, nodes in zip(_WEIGHTS, (random[: NODES[0]], random[NODES[0] :]), strict=True)
    )
    # The sums of weights are 64 and 16.
    return relief * (coarse + 4 * fine) >> 14


def ways(ground: jax.Array, heights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the sets of cells from which one can drive to the east and back, and to the north."""
    flat_x = jnp.abs(heights[:, 1:] - heights[:, :-1]) <= MAX_RISE
    flat_y = jnp.abs(heights[1:] - heights[:-1]) <= MAX_RISE
    east = _pack_grid(jnp.pad(flat_x, ((0, 0), (0, 1))))
    north = _pack_grid(jnp.pad(flat_y, ((0, 1), (0, 0))))
    return east & ground & ground >> 1, north & ground & shift_down(ground)


def _pack_grid(grid: jax.Array) -> jax.Array:
    return (grid.astype(jnp.uint32) << np.arange(SIDE, dtype=np.uint32)).sum(1, dtype=jnp.uint32)


def connected_cells(seed: jax.Array, east: jax.Array, north: jax.Array) -> jax.Array:
    """Return all cells that some cells are connected with by ways."""

    def spread(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        cells, _ = state
        wider = (
            cells
            | (cells & east) << 1
            | cells >> 1 & east
            | shift_up(cells & north)
            | shift_down(cells) & north
        )
        return wider, (wider != cells).any()

    return lax.while_loop(lambda state: state[1], spread, (seed, jnp.bool_(True)))[0]


def energy(height: jax.Array, next_height: jax.Array) -> jax.Array:
    """Return the energy of a way between cells of these heights, in units."""
    return ROLLING + jnp.maximum(next_height - height, 0)

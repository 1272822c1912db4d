"""Search for good players of ColourCubes without a memory, by gradient ascent on exact values.

    python benchmarks/audits/memoryless_cubes.py [--starts 4] [--rounds 800]

A player without a memory is a table. By the own cell, it has the chances of the five actions while
nothing is seen; by the own cell and that of the wanted cube, those while the colours are seen. Its
expected return follows from the chain of both cells. With several cubes the chain takes the next
cube to lie in each other cell with equal probability, which is almost true
(``envs/memory/colour_cubes.py``), and it leaves out what other cubes could tell. Values have many
local maxima: the best one found is a bound from below, not the ceiling without memory.
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.envs.memory.colour_cubes import CELLS, MOVES, SIDE, TAKE

STEPS = 100
ROW, COLUMN = np.divmod(np.arange(CELLS), SIDE)
NEXT = np.stack(
    [
        (ROW + r).clip(0, SIDE - 1) * SIDE + (COLUMN + c).clip(0, SIDE - 1)
        for r, c in (*MOVES, (0, 0))
    ],
    1,
)
"""Cell by the cell before and the action."""
DISTANCE = np.abs(ROW[:, None] - ROW) + np.abs(COLUMN[:, None] - COLUMN)
BESIDE = np.eye(CELLS, dtype=bool)
"""Whether the own cell is that of the wanted cube."""

Table = tuple[jax.Array, jax.Array]
"""Logits of actions without and with the wanted cube in sight.

They have shapes ``(25, 5)`` while nothing is seen, and ``(25, 25, 5)`` while the wanted cube is
seen.
"""


def value(table: Table, moves: float) -> jax.Array:
    """Return the expected return of a table.

    An unwanted cube moves with the probability ``moves`` at each step.
    """
    blind, seeing = jax.nn.softmax(table[0])[:, None], jax.nn.softmax(table[1])

    def step(
        later: tuple[jax.Array, jax.Array], _: None
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        """Return values by own and wanted cell, unseen and seen, with one more step left."""
        hidden, visible = later
        waits = (1 - moves) * hidden + moves * visible
        take_value = 1 + (visible.sum(1) - visible.diagonal()) / (CELLS - 1)
        worth = (
            waits[NEXT]
            .swapaxes(1, 2)
            .at[:, :, TAKE]
            .set(jnp.where(BESIDE, take_value[:, None], waits))
        )
        return ((blind * worth).sum(2), (seeing * worth).sum(2)), None

    nothing = jnp.zeros((CELLS, CELLS))
    (_, visible), _ = jax.lax.scan(step, (nothing, nothing), length=STEPS)
    return visible.mean()


def search_best_value(moves: float, starts: int, rounds: int) -> float:
    """Return the largest value that ascents from several random tables reach.

    All tables walk to a cube that they see.
    """
    optimiser = optax.adam(0.05)
    nearer = 2.0 * (DISTANCE[:, None] - DISTANCE[NEXT]).swapaxes(1, 2)
    nearer[:, :, TAKE] = np.where(BESIDE, 6, -3)

    @jax.jit
    def ascend(table: Table) -> jax.Array:
        def improve(
            carry: tuple[Table, optax.OptState], _: None
        ) -> tuple[tuple[Table, optax.OptState], None]:
            table, state = carry
            updates, state = optimiser.update(
                jax.grad(lambda each: -value(each, moves))(table), state
            )
            return (optax.apply_updates(table, updates), state), None

        (table, _), _ = jax.lax.scan(improve, (table, optimiser.init(table)), length=rounds)
        return value(table, moves)

    blind = np.random.default_rng(0).normal(size=(starts, CELLS, TAKE + 1))
    return max(
        float(ascend((jnp.asarray(each, jnp.float32), jnp.asarray(nearer, jnp.float32))))
        for each in blind
    )


def main() -> None:
    """Print the best values found for one cube and for several."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--starts", type=int, default=4, help="random tables from which an ascent begins"
    )
    parser.add_argument("--rounds", type=int, default=800, help="steps of an ascent")
    options = parser.parse_args()
    for cubes, moves in (("one cube", 0.0), ("several cubes", 0.1)):
        print(
            f"{cubes}: {search_best_value(moves, options.starts, options.rounds):.2f}", flush=True
        )


if __name__ == "__main__":
    main()

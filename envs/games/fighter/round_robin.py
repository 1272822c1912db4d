"""Play all scripted fighters against each other, and print who wins how often.

python -m rlbench_suite.envs.games.fighter.round_robin
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.registry import card

from .fighter import FightingGame
from .opponents import LADDER, WORDS_PER_CHOICE, Rolls, Style, choose
from .rules import (
    MATCH_TICKS,
    Params,
    State,
    advance_tick,
    distance_between,
    first_state,
    is_over,
)


def final_lead(styles: tuple[Style, Style], params: Params, words: jax.Array) -> jax.Array:
    """Return the health of the first of two styles less that of the second after a match.

    ``words`` are random, uint32 ``(MATCH_TICKS, 2, WORDS_PER_CHOICE)``.
    """

    def play(state: State, words: jax.Array) -> tuple[State, None]:
        distance = distance_between(state, params)
        actions = [
            choose(
                styles[side], state.sides[side], state.sides[1 - side], distance,
                Rolls.of(words[side]), params,
            )
            for side in range(2)
        ]  # fmt: skip
        next_state = advance_tick(state, actions, params)
        has_ended = is_over(state)
        return jax.tree.map(
            lambda last, new: jnp.where(has_ended, last, new), state, next_state
        ), None

    state, _ = jax.lax.scan(play, first_state(params), words)
    return state.sides[0].health - state.sides[1].health


def round_robin(matches: int, seed: int = 0) -> np.ndarray:
    """Return the results of all pairs: 1 for a win of the row, -1 for a loss, 0 for a draw.

    Their shape is ``(styles, styles, matches)``. The sides do not matter: exchanged ones would
    play the same matches.
    """
    game: FightingGame = card("rlsuite/Fighter-v0").joint().build()
    table = jax.tree.map(lambda *rows: np.array(rows, np.int32), *(c.style for c in LADDER))

    @jax.jit
    def leads(first: jax.Array, second: jax.Array) -> jax.Array:
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), first), matches)

        def lead(key: jax.Array) -> jax.Array:
            context_key, match_key = jax.random.split(key)
            params = game.sample_params(context_key, jnp.int32(0))
            words = jax.random.bits(match_key, (MATCH_TICKS, 2, WORDS_PER_CHOICE), jnp.uint32)
            styles = (row_of(table, first), row_of(table, second))
            return final_lead(styles, params, words)

        return jax.vmap(lead)(keys)

    results = np.zeros((len(LADDER), len(LADDER), matches), np.int32)
    for row in range(len(LADDER)):
        for column in range(row):
            results[row, column] = np.sign(leads(row, column))
            results[column, row] = -results[row, column]
    return results


def row_of(table: Style, row: jax.Array) -> Style:
    """Return one style of a table of styles."""
    style: Style = jax.tree.map(lambda numbers: jnp.asarray(numbers)[row], table)
    return style


def main() -> None:
    """Print the mean result of each row against each column, and its standard error."""
    results = round_robin(1024)
    names = [fighter.__name__ for fighter in LADDER]
    print("| rung | fighter | " + " | ".join(str(rung + 1) for rung in range(len(names))) + " |")
    print("|" + " --- |" * (len(names) + 2))
    for row, name in enumerate(names):
        means = [f"{mean:+.2f}" for mean in results[row].mean(1)]
        means[row] = ""
        print(f"| {row + 1} | {name} | {' | '.join(means)} |")


if __name__ == "__main__":
    main()

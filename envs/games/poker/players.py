"""Players of Kuhn and Leduc poker: opponents of graded strength, and the best response to each."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FloatArray
from rlbench_suite.core.policy import View, no_memory

from .betting import Betting
from .exploitability import best_responses, normalised, table_of
from .poker import Poker, PokerAgainst

EQUILIBRIA = Path(__file__).with_name("equilibria.json")
"""Tables near an equilibrium by game; ``python -m rlbench_suite.envs.games.poker.equilibria``."""


def rows_of(table: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Return a table as rows of numbers, which hash, as players have to."""
    return tuple(tuple(row) for row in np.asarray(table, np.float32).tolist())


class TablePlayer(eqx.Module):
    """A player that samples its actions from a table. It reads observations only.

    It plays one side, or both sides from the observations of both, ``(2, n)``.
    """

    table: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    """Probability of each action in each information set, in float32."""
    game: Poker = eqx.field(static=True)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return an action for each observation."""
        observations = view.observation
        rows = observations.reshape(-1, observations.shape[-1])
        draws = self.game.uniform(key, len(rows))
        actions = [
            self._sample(self.game.information_of(row), draws[i]) for i, row in enumerate(rows)
        ]
        return jnp.stack(actions).reshape(observations.shape[:-1]), memory

    def action_probabilities(self, view: View) -> jax.Array:
        """Return the probability of each action for one observation, ``(actions,)``."""
        return jnp.asarray(self.table)[self.game.information_of(view.observation)]

    def _sample(self, information: jax.Array, draw: jax.Array) -> jax.Array:
        """Return the action on which a number in [0, 1) falls."""
        probabilities = jnp.asarray(self.table, jnp.float32)[information]
        action = jnp.int32(0)
        threshold = jnp.zeros((), self.game.dtype)
        for index in range(len(self.game.action_names) - 1):
            threshold = threshold + probabilities[index].astype(self.game.dtype)
            action = action + (draw >= threshold)
        return action.astype(jnp.int32)


class AlwaysCalls(TablePlayer):
    """Checks, and calls each bet."""

    @classmethod
    def for_task(cls, game: Poker) -> AlwaysCalls:
        """Return the player."""
        return cls(rows_of(calling_table(game.betting)), game)


class Aggressive(TablePlayer):
    """Bets whenever nobody has, and answers a bet by the strength of its hand.

    It raises with a king, or with a pair once the public card is shown; it folds a jack without a
    pair, and calls with all else.
    """

    @classmethod
    def for_task(cls, game: Poker) -> Aggressive:
        """Return the player."""
        return cls(rows_of(aggressive_table(game.betting)), game)


class Equilibrium(TablePlayer):
    """Plays an equilibrium, from which nobody wins anything in the long run."""

    @classmethod
    def for_task(cls, game: Poker) -> Equilibrium:
        """Return the player."""
        stored_table = equilibrium_table(game.card.settings["game"])
        return cls(rows_of(normalised(game.betting, stored_table)), game)


class BestResponse(TablePlayer):
    """Earns the most that any policy earns against the opponent of the task.

    It is computed from the opponent's table, which an agent learns by playing, and reads no more
    than an agent does.
    """

    @classmethod
    def for_task(cls, task: PokerAgainst) -> BestResponse:
        """Return the player."""
        game = task.game
        opponent: Any = task.opponent
        _, best_table = best_responses(game.betting, np.asarray(opponent.table, float))
        return cls(rows_of(best_table), game)


def calling_table(betting: Betting) -> np.ndarray:
    """Return the table of who always calls."""
    return table_of(
        betting, lambda number, own_rank, public: action_by_kind(betting, number)["call"]
    )


def aggressive_table(betting: Betting) -> np.ndarray:
    """Return the table of :class:`Aggressive`."""

    def rule(number: int, own_rank: int, public: int) -> int:
        actions = action_by_kind(betting, number)
        is_shown = public >= 0
        is_strong = own_rank == public or (own_rank == 2 and not is_shown)
        if is_strong or "fold" not in actions:
            return actions.get("raise", actions["call"])
        return actions["fold"] if own_rank == 0 else actions["call"]

    return table_of(betting, rule)


def action_by_kind(betting: Betting, number: int) -> dict[str, int]:
    """Return the legal actions of a node by what they mean: fold, call, raise."""
    node = betting.nodes[number]
    faces_bet = node.paid[node.side] < node.paid[1 - node.side]
    kinds = betting.rules.kinds(faces_bet, node.moves[-1].count("raise"))
    return {kind: action for action, kind in kinds.items()}


@cache
def equilibrium_table(game: str) -> np.ndarray:
    """Return the stored table near an equilibrium of a game."""
    return np.array(json.loads(EQUILIBRIA.read_text())[game])

"""Make tables of policies of poker: the probabilities of their actions in each information set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from rlbench_suite.core.policy import MixedPolicy, Policy, StochasticPolicy, View

from .exploitability import mixed_table, normalised

SAMPLES = 4_096
"""Actions that are sampled in each information set from a policy that tells no probabilities."""


def table_of_policy(game: Any, policy: Policy) -> np.ndarray | None:
    """Return the table of a policy of one seat; None if it remembers what it has seen.

    Mixtures of policies become the table that plays as they do in a single hand. A policy that
    tells no probabilities is sampled.
    """
    if isinstance(policy, MixedPolicy):
        weights, policies = zip(*policy.mixture(), strict=True)
        tables = [table_of_policy(game, member) for member in policies]
        complete = [table for table in tables if table is not None]
        return (
            mixed_table(game.betting, complete, weights) if len(complete) == len(tables) else None
        )
    if jax.tree.leaves(jax.eval_shape(policy.initial, ())):
        return None
    if isinstance(policy, StochasticPolicy):

        def probabilities(observations: Any, masks: Any) -> Any:
            return jax.jit(
                jax.vmap(lambda row, mask: policy.action_probabilities(View(row, mask, None, None)))
            )(observations, masks)

        return normalised(game.betting, tabulate(game, probabilities))
    return normalised(game.betting, tabulate_samples(game, policy, SAMPLES))


def tabulate_samples(game: Any, policy: Any, samples: int, seed: int = 0) -> np.ndarray:
    """Return the table of a policy of one side, from samples of its actions.

    The policy is asked ``samples`` times in each information set; one sample is enough for a
    policy that is deterministic. It has no memory.
    """
    keys = jax.random.split(jax.random.key(seed), samples)

    def sample(observation: jax.Array, mask: jax.Array) -> jax.Array:
        view = View(observation, mask, None, None)
        actions = jax.vmap(lambda key: policy.act(policy.initial(None), view, key)[0])(keys)
        return jax.nn.one_hot(actions, len(game.action_names)).sum(0)

    counts = jax.jit(jax.vmap(sample))(*situations(game))
    return np.asarray(counts, float) / samples


def tabulate(game: Any, probabilities: Callable[[Any, Any], Any]) -> np.ndarray:
    """Return the table of a policy that gives the probabilities of its actions.

    Args:
        game: the game.
        probabilities: function of observations ``(n, size)`` and masks ``(n, actions)`` that
            returns the probability of each action, ``(n, actions)``.
    """
    return np.asarray(probabilities(*situations(game)), float)


def situations(game: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return observation and mask of the side that moves in each information set."""
    number, own_rank, public = np.array(game.betting.information_sets, np.int32).T
    side = game.betting.side[number]
    observations = jax.jit(jax.vmap(game.side_observation))(side, number, own_rank, public)
    return np.asarray(observations), game.betting.legal[number]

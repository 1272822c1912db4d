"""A task with preferences: the weights of its objectives are drawn anew in each episode, and shown.

A policy for all preferences learns on it: it sees the weights, and the sum of the reward is the
return that they ask for (conditioned networks: Abels et al. 2019, arXiv:1809.07803).

=============  ====================================================================================
observation    that of the plain task, and the weights: behind the numbers of a ``Box`` with one
               axis (one for each agent more), as the entry ``weights`` of a ``Dict``, and beside
               ``observation`` in a ``Dict`` of both for any other space
action         that of the plain task
reward         that of the plain task, each objective multiplied by its weight
termination    that of the plain task
success        that of the plain task, which asks for what its card weighs
context        that of the plain task, and the weights: uniform on the simplex, so that none is
               negative and their sum is 1
=============  ====================================================================================

``card.with_preferences()`` gives its card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import FloatArray
from rlbench_suite.core.component import Component, Components
from rlbench_suite.core.derived_task import DerivedTask
from rlbench_suite.core.task import Observation
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics import keys

WEIGHTS = "weights"
"""Entry of a ``Dict`` that has the weights."""
TEETH = 2**20
"""Pairs of numbers in [0, 1] between which weights divide it: one of each for each split."""


class Params(NamedTuple):
    """Context of an episode."""

    plain: Any
    """Context of the plain task."""
    weights: FloatArray
    """Weight of each objective, ``(k,)``."""


class SampledPreferences(DerivedTask[Params]):
    """The task of this file's docstring around the plain task. Its states are those of that one."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        if card.without_preferences is None:
            raise ValueError(f"{card.id} has no plain task; make its card by with_preferences().")
        super().__init__(card, card.without_preferences, difficulty=difficulty, dtype=dtype)
        plain = self.plain
        rows = (card.agents,) * (card.agents > 1)
        #: Number of objectives.
        self.objectives = len(card.objectives)
        shape = (*rows, self.objectives)
        self._weight_space = self.box(0.0, 1.0, shape)
        self._is_flat = (
            isinstance(plain.observation_space, spaces.Box)
            and plain.observation_space.dtype == self.dtype
            and len(plain.observation_space.shape) == len(shape)
        )
        self.observation_space = self._space_with_weights()
        # A weight may be as small as 0.
        self.reward_space = self.box(
            np.minimum(plain.reward_space.low, 0), np.maximum(plain.reward_space.high, 0)
        )

    def plain_params(self, params: Params) -> Any:
        """Return the context of the plain task."""
        return params.plain

    def _space_with_weights(self) -> spaces.Space[Any]:
        """Return the space of :meth:`show`.

        Raises:
            ValueError: the plain task has an entry of that name.
        """
        space = self.plain.observation_space
        if self._is_flat and isinstance(space, spaces.Box):
            low = np.concatenate([space.low, self._weight_space.low], -1)
            high = np.concatenate([space.high, self._weight_space.high], -1)
            return self.box(low, high)
        if not isinstance(space, spaces.Dict):
            return spaces.Dict({"observation": space, WEIGHTS: self._weight_space})
        if WEIGHTS in space.spaces:
            raise ValueError(f"Observations of {self.plain.card.id} have an entry {WEIGHTS!r}.")
        return spaces.Dict({**space.spaces, WEIGHTS: self._weight_space})

    def show(self, observation: Observation, weights: jax.Array) -> Observation:
        """Return an observation of the plain task with weights ``(k,)``."""
        weights = jnp.broadcast_to(jnp.asarray(weights, self.dtype), self._weight_space.shape)
        if self._is_flat:
            return jnp.concatenate([observation, weights], -1)
        entries = observation if isinstance(observation, dict) else {"observation": observation}
        return {**entries, WEIGHTS: weights}

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the context of the plain task, and weights; no weights are in both splits.

        The gaps between sorted uniform numbers are uniform on the simplex (Devroye 1986, section
        V.2). These numbers are teeth of a fine comb, in turn of training and of test.
        """
        data = jax.random.key_data(key)
        plain_key, weights_key = (jax.random.wrap_key_data(keys.fold_in(data, i)) for i in range(2))
        split_key = jax.random.wrap_key_data(
            keys.fold_in(jax.random.key_data(weights_key), split.astype(jnp.int32))
        )
        teeth = jnp.floor(self.uniform(split_key, self.objectives - 1) * TEETH)
        cuts = jnp.sort((teeth + 0.25 + 0.5 * split).astype(self.dtype)) * np.asarray(
            1 / TEETH, self.dtype
        )
        ends = [jnp.zeros(1, self.dtype), cuts, jnp.ones(1, self.dtype)]
        edges = jnp.concatenate(ends)
        return Params(self.plain.sample_params(plain_key, split), edges[1:] - edges[:-1])

    def observation(self, state: Any, key: jax.Array, params: Params) -> Observation:
        """Return the observation of the plain task, and the weights."""
        return self.show(self.plain.observation(state, key, params.plain), params.weights)

    def reward(
        self, state: Any, action: jax.Array, next_state: Any, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of the plain task, each objective multiplied by its weight."""
        return self.plain.reward(state, action, next_state, key, params.plain) * params.weights

    # -- text and pixels ---------------------------------------------------------------------------

    def observation_components(self) -> Components:
        """Name the entries of :meth:`show`."""
        meaning = f"weights of {', '.join(self.card.objectives)}"
        weights = (Component(WEIGHTS, meaning, shape=(self.objectives,)),)
        plain = self.plain.observation_components()
        if isinstance(plain, Mapping):
            return {**plain, WEIGHTS: weights}
        if not plain:
            return ()
        return (*plain, *weights) if self._is_flat else {"observation": plain, WEIGHTS: weights}

    def describe(self, state: Any, params: Params) -> str:
        """Describe the plain task, and the weights."""
        return f"{self.plain.describe(state, params.plain)}\n\n{self._weights_in_words(params)}"

    def describe_turn(self, known_state: Any | None, state: Any, params: Params) -> str:
        """Describe the turn of the plain task, and once the weights."""
        turn = self.plain.describe_turn(known_state, state, params.plain)
        return turn if known_state is not None else f"{turn}\n\n{self._weights_in_words(params)}"

    def _weights_in_words(self, params: Params) -> str:
        weights = zip(self.card.objectives, np.asarray(params.weights).tolist(), strict=True)
        return f"Weights: {', '.join(f'{name} {weight:.3f}' for name, weight in weights)}."

    def rules(self) -> str:
        """Return the rules of the plain task, and what the weights are."""
        return (
            f"{self.plain.rules()}\n\nThe return is the sum of {', '.join(self.card.objectives)}, "
            "each multiplied by its weight."
        )

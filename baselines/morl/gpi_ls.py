"""Generalised policy improvement with linear support: learn for the weights that promise most.

The algorithm is GPI-LS of Alegre, Bazzan, Roijers, Nowe & da Silva 2023 (arXiv:2301.07784). One
network gives the vector values of play for weights. A *support* holds the weights that it was
trained for. In each state generalised policy improvement takes the action that is best by any of
them, so that the policies for a few weights serve all:

    a = arg max over a of max over w' in the support of w . Q(s, a, w')

Where play for w is likely to gain most lies at a corner of the polytope that the values of the
support span over the simplex: between corners, utility is linear (optimistic linear support,
Roijers 2016). Between chunks the corner with the largest gain joins the support, and the next chunk
trains for it in half of its episodes and updates, else for the rest of the support.

The paper plays episodes to evaluate policies; here values are the network's own at the first
observations of the environments, which costs no steps. Replay is uniform, and there is one network,
where the paper has prioritised replay and two.

Read from top to bottom: configuration, corners, algorithm, agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FloatArray, Int
from rlbench_suite.evaluation.statistics.fronts import weight_lattice

from ..replay.replay_agent import Experience, LearnerState
from .vector_q import (
    ConditionedQ,
    TrainingState,
    VectorAgent,
    VectorConfig,
    VectorNetwork,
    forbid,
    take_action,
)

TOLERANCE = 1e-4
"""Distance of weights and of values below which they count as equal."""

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(VectorConfig):
    """Hyperparameters of GPI-LS, in ``hyperparameters/gpi-ls.yaml``."""

    support: int = 16
    """Weights of the support; at least the number of objectives."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.support < 1:
            raise ValueError(f"support must be at least 1, got {self.support}.")


# -- corners ---------------------------------------------------------------------------------------


def corner_weights(values: np.ndarray) -> np.ndarray:
    """Return the weights at the corners of the best utility of values ``(n, k)``, ``(m, k)``.

    A corner solves ``w . V = u`` for some of the values V and ``w_i = 0`` for some i, k in all, and
    the sum of w is 1. No other value may be better there.
    """
    count, objectives = values.shape
    equal_utility = np.concatenate([values, -np.ones((count, 1))], 1)
    no_weight = np.eye(objectives, objectives + 1)
    rows = np.concatenate([equal_utility, no_weight])
    subsets = np.array([*combinations(range(len(rows)), objectives)])
    subsets = subsets[(subsets < count).any(1)]
    total = np.append(np.ones(objectives), 0.0)
    systems = np.concatenate([rows[subsets], np.tile(total, (len(subsets), 1, 1))], 1)
    # The scale of values does not decide which systems can be solved.
    scale = np.abs(systems).max(-1, keepdims=True)
    right_side = np.zeros((len(systems), objectives + 1, 1))
    right_side[:, -1] = 1
    regular = np.abs(np.linalg.det(systems / scale)) > 1e-9
    solutions = np.linalg.solve(systems[regular], right_side[regular])[..., 0]
    weights, utility = solutions[:, :-1], solutions[:, -1]
    best = (weights @ values.T).max(1)
    corners = weights[(weights >= -TOLERANCE).all(1) & (utility >= best - TOLERANCE)]
    corners = np.maximum(corners, 0)
    return np.unique(np.round(corners / corners.sum(1, keepdims=True), 4), axis=0)


# -- algorithm -------------------------------------------------------------------------------------


class Support(NamedTuple):
    """Weights that the network is trained for."""

    weights: FloatArray
    """``(S, k)``"""
    is_used: FloatArray
    """``(S,)``: 1 for entries that hold weights, else 0; float32, as files hold it."""
    newest: Int
    """Entry that the present chunk trains for; float32."""

    def sample(self, key: jax.Array, count: int) -> jax.Array:
        """Return weights ``(count, k)``: the newest in half of all cases."""
        entry_key, newest_key = jax.random.split(key)
        logits = jnp.where(self.is_used > 0, 0.0, -jnp.inf)
        entries = jax.random.categorical(entry_key, logits, shape=(count,))
        is_newest = jax.random.bernoulli(newest_key, 0.5, (count,))
        return self.weights[jnp.where(is_newest, self.newest.astype(jnp.int32), entries)]


class LinearSupport(ConditionedQ):
    """Network, exploration, updates and support of GPI-LS."""

    config: Config

    def initial_plan(self) -> Support:
        """Return a support of the weights that ask for one objective alone."""
        size = max(self.config.support, self.objectives)
        weights = np.zeros((size, self.objectives), np.float32)
        weights[: self.objectives] = np.eye(self.objectives)
        is_used = (np.arange(size) < self.objectives).astype(np.float32)
        return Support(weights, is_used, np.float32(0))

    def sample_preferences(self, plan: Support, key: jax.Array, count: int) -> jax.Array:
        """Return weights of the support."""
        return plan.sample(key, count)

    def utilities(
        self, networks: Any, plan: Support, preference: jax.Array, x: jax.Array, accrued: jax.Array
    ) -> jax.Array:
        """Return the best weighted values by any weights of the support, or by the preference."""
        weights = jnp.asarray(plan.weights)
        values = self.values(networks, x[:, None], weights)
        utility = jnp.einsum("nk,nsak->nsa", preference, values)
        by_support = jnp.where(plan.is_used[:, None] > 0, utility, -jnp.inf).max(1)
        directly = (self.values(networks, x, preference) * preference[:, None]).sum(-1)
        return jnp.maximum(by_support, directly)

    def learn(self, learner: LearnerState, training: TrainingState, key: jax.Array) -> LearnerState:
        """Do one update, for weights of the support."""
        sample_key, weight_key = jax.random.split(key)
        batch = self.sample(training, sample_key, self.config.batch_size)
        weights = training.plan.sample(weight_key, self.config.batch_size)
        next_values = self.values(learner.networks, batch.next_x, weights)
        utility = (next_values * weights[:, None]).sum(-1)
        next_action = forbid(utility, self.unpack_mask(batch.next_legal)).argmax(-1)
        later = take_action(self.values(learner.targets, batch.next_x, weights), next_action)
        target = batch.reward + self.config.gamma * jnp.where(batch.terminated[:, None], 0, later)
        gradient = jax.grad(self.loss)(learner.networks, target, batch, weights)
        return self.descend(learner, gradient)

    def loss(
        self, network: VectorNetwork, target: jax.Array, batch: Experience, weights: jax.Array
    ) -> jax.Array:
        """Return the squared error of the vectors."""
        values = take_action(self.values(network, batch.x, weights), batch.action)
        return ((values - target) ** 2).sum(-1).mean()

    # -- the support, between chunks ---------------------------------------------------------------

    @cached_property
    def _first_values(self) -> Any:
        """Compiled function that returns the values of first steps for some weights."""

        def compute(network: Any, moments: Any, first_x: Any, weights: Any) -> tuple[Any, Any]:
            x = moments.x.normalise(first_x)
            values = self.values(network, x, weights[:, None])
            best = (values * weights[:, None, None]).sum(-1).argmax(-1)
            return take_action(values, best).mean(1), values

        return jax.jit(compute)

    def replan(self, training: TrainingState) -> TrainingState:
        """Add the corner that promises the largest gain to the support."""
        weights = np.array(training.plan.weights)
        is_used = np.array(training.plan.is_used)
        used = np.flatnonzero(is_used)
        inputs = training.learner.networks, training.moments, training.first_x
        values, action_values = map(np.asarray, self._first_values(*inputs, weights))
        corners = corner_weights(values[used].astype(np.float64))
        distance = np.abs(corners[:, None] - weights[used]).max(-1).min(1)
        corners = corners[distance > 0.01]
        if not len(corners):
            newest = used[int(training.steps) // self.config.chunk % len(used)]
            return training._replace(plan=training.plan._replace(newest=np.float32(newest)))
        gains = self._gains(inputs, corners, values[used], action_values[used])
        entry = self._free_entry(is_used, values, used)
        weights[entry] = corners[gains.argmax()]
        is_used[entry] = 1
        return training._replace(plan=Support(weights, is_used, np.float32(entry)))

    def _gains(
        self,
        inputs: tuple[Any, ...],
        corners: np.ndarray,
        values: np.ndarray,
        action_values: np.ndarray,
    ) -> np.ndarray:
        """Return what generalised policy improvement gains at each corner over the support."""
        count = len(corners)
        # One shape for all calls: a compiled program depends on it.
        size = 1 << (count - 1).bit_length()
        padded = np.resize(corners, (size, self.objectives)).astype(np.float32)
        _, direct = self._first_values(*inputs, padded)
        utility = np.einsum("ck,cnak->cna", corners, np.asarray(direct)[:count])
        by_support = np.einsum("ck,snak->csna", corners, action_values).max(1)
        improved: np.ndarray = np.maximum(utility, by_support).max(-1).mean(1)
        gains: np.ndarray = improved - (corners @ values.T).max(1)
        return gains

    def _free_entry(self, is_used: np.ndarray, values: np.ndarray, used: np.ndarray) -> int:
        """Return an entry without weights, or the one that is least missed."""
        if len(used) < len(is_used):
            return int(np.flatnonzero(is_used == 0)[0])
        utility = weight_lattice(self.objectives, 200) @ values.T
        without = [np.delete(utility, entry, 1).max(1).mean() for entry in used]
        return int(used[np.argmax(without)])


# -- agent -----------------------------------------------------------------------------------------


class GPILS(VectorAgent):
    """The agent ``gpi-ls``, for several objectives and one discrete choice a step."""

    name = "gpi-ls"
    config_class = Config
    algorithm_class = LinearSupport

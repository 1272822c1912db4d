"""MORL by decomposition: a population learns side by side, each member for weights of its own.

The framework is MORL/D of Felten, Talbi & Danoy 2024 (JAIR 79, doi:10.1613/jair.1.15702). It splits
a problem of several objectives into several of one, by weights and a scalarisation of vectors:

* ``weighted``, the weighted sum ``w . v``, which is best at points of the convex hull of a front;
* ``chebyshev``, minus the largest weighted distance to the best of each objective, which is best at
  points of concave parts, too. It is not linear, so that an action's utility depends on what the
  episode has earned. Members then also read that.

Members share in three ways. All learn from one replay buffer. Between chunks a member takes over
the network of a neighbour, one with similar weights, that serves its weights better. And in the
second half of the run weights adapt, so that members move apart on the front: by Pareto simulated
annealing (Czyzak & Jaszkiewicz 1998, doi:10.1002/(SICI)1099-1360(199801)7:1), as in the paper.

Each member is a network of vector action values; all are trained in one batch. Members are compared
by what their training episodes returned.

Read from top to bottom: configuration, population, algorithm, policy, agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.core.arrays import FloatArray, Int
from rlbench_suite.core.policy import View
from rlbench_suite.evaluation.statistics.fronts import weight_lattice

from ..flat_task import FlatTask
from ..replay.replay_agent import Experience, LearnerState
from .vector_q import (
    TrainingState,
    VectorAgent,
    VectorConfig,
    VectorNetwork,
    VectorQ,
    forbid,
    take_action,
)
from .vector_reward import RewardModel, TransitionMoments

FACTOR = 1.1
"""Factor by which weights adapt at once."""
TOLERANCE = 1e-3
"""Distance of values, in parts of their range, below which members count as equal."""
AUGMENTATION = 0.01
"""Share of the weighted sum in the Chebyshev scalarisation, which leaves no ties."""

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(VectorConfig):
    """Hyperparameters of MORL/D, in ``hyperparameters/morl-d.yaml``."""

    population: int = 16
    """Approximate number of members; their first weights are a lattice."""
    scalarisation: Literal["weighted", "chebyshev"] = "weighted"
    neighbours: int = 3
    """Members with the most similar weights whose networks a member may take over."""
    adaptation: float = 0.5
    """Fraction of the run after which weights adapt; 1 for never."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.population < 2:
            raise ValueError(f"population must be at least 2, got {self.population}.")
        if self.scalarisation not in ("weighted", "chebyshev"):
            raise ValueError(
                f"scalarisation is 'weighted' or 'chebyshev', got {self.scalarisation!r}."
            )
        if not 0 <= self.adaptation <= 1:
            raise ValueError(f"adaptation must lie in [0, 1], got {self.adaptation}.")


# -- population ------------------------------------------------------------------------------------


class Networks(NamedTuple):
    """Networks of all members, and the model of rewards."""

    members: VectorNetwork
    """Arrays with the member on axis 0."""
    rewards: RewardModel


class Population(NamedTuple):
    """Weights that the members play for, and the returns that they reach."""

    weights: FloatArray
    """``(P, k)``"""
    values: FloatArray
    """Mean return of each member in the last chunk in which it played, ``(P, k)``."""
    best: FloatArray
    """Largest value of each objective so far, ``(k,)``."""
    scale: FloatArray
    """Range of the values of each objective, ``(k,)``."""
    sums: FloatArray
    """Sum of the returns of each member's episodes in this chunk, ``(P, k)``."""
    episodes: FloatArray
    """Their number, ``(P,)``; float32, as files hold it."""


def adapt_weights(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return weights ``(P, k)`` that move members away from their nearest neighbours' values.

    The neighbour is the nearest member that neither dominates nor is dominated. The weight of each
    objective in which a member is at least as good as its neighbour grows, and others shrink.
    """
    adapted = weights.copy()
    scaled = values / np.maximum(np.ptp(values, axis=0), 1e-8)
    for member, value in enumerate(scaled):
        distance = np.abs(scaled - value).max(1)
        is_rival = (scaled > value).any(1) & (scaled < value).any(1) & (distance > TOLERANCE)
        if is_rival.any():
            rival = np.where(is_rival, distance, np.inf).argmin()
            is_better = value >= scaled[rival]
            adapted[member] *= np.where(is_better, FACTOR, 1 / FACTOR)
    return adapted / adapted.sum(1, keepdims=True)


# -- algorithm -------------------------------------------------------------------------------------


class Decomposition(VectorQ):
    """Networks, exploration, updates and cooperation of MORL/D.

    A preference is the number of a member.
    """

    config: Config

    def __init__(self, flat: FlatTask, config: Config) -> None:
        self.reads_accrued = config.scalarisation == "chebyshev"
        super().__init__(flat, config)

    def networks(self, seed: int) -> Networks:
        """Return networks that all differ."""
        count = len(self.initial_plan().weights)
        members = [
            VectorNetwork.initial(
                seed * count + member,
                self.features,
                self.config.hidden,
                self.flat.outputs,
                self.objectives,
            )
            for member in range(count)
        ]
        generator = np.random.default_rng(seed)
        units = self.config.hidden[0] if self.config.hidden else 64
        rewards = RewardModel.initial(generator, self.flat, self.objectives, units)
        return Networks(jax.tree.map(lambda *leaves: np.stack(leaves), *members), rewards)

    def initial_plan(self) -> Population:
        """Return weights that cover the simplex evenly."""
        weights = weight_lattice(self.objectives, self.config.population).astype(np.float32)
        ends = np.full(self.objectives, -np.inf, np.float32)
        return Population(
            weights=weights,
            values=np.zeros_like(weights),
            best=ends,
            scale=np.ones_like(ends),
            sums=np.zeros_like(weights),
            episodes=np.zeros(len(weights), np.float32),
        )

    def record(
        self, plan: Population, over: jax.Array, preference: jax.Array, returns: jax.Array
    ) -> Population:
        """Return the plan with the returns of episodes that ended."""
        return plan._replace(
            sums=plan.sums.at[preference].add(jnp.where(over[:, None], returns, 0)),
            episodes=plan.episodes.at[preference].add(over),
        )

    def optimiser(self) -> optax.GradientTransformation:
        """Return Adam without a bound on the gradient's norm, by which members would interfere."""
        return optax.adam(self.learning_rate(), eps=1e-5)

    def sample_preferences(self, plan: Population, key: jax.Array, count: int) -> jax.Array:
        """Return the numbers of members, drawn uniformly."""
        return jax.random.randint(key, (count,), 0, len(plan.weights))

    def utilities(
        self, networks: Any, plan: Population, preference: Any, x: jax.Array, accrued: jax.Array
    ) -> jax.Array:
        """Return the utilities of the members' values."""
        values = self.all_values(networks.members, x)[preference, jnp.arange(len(x))]
        return self.scalarise(plan, jnp.asarray(plan.weights)[preference], values, accrued)

    def all_values(self, members: VectorNetwork, x: jax.Array) -> jax.Array:
        """Return every member's values for steps ``(n, features)``: ``(P, n, actions, k)``."""
        return jax.vmap(lambda network: network.values(x, self.objectives))(members)

    def scalarise(
        self, plan: Population, weights: jax.Array, values: jax.Array, accrued: jax.Array
    ) -> jax.Array:
        """Return utilities ``(n, actions)`` of values ``(n, actions, k)`` for weights ``(n, k)``.

        ``accrued`` ``(n, k)`` is what was earned before.
        """
        weighted = (values * weights[:, None]).sum(-1)
        if self.config.scalarisation == "weighted":
            return weighted
        best = jnp.where(jnp.isfinite(plan.best), plan.best, 0)
        missing = (best - accrued[:, None] - values) / plan.scale * weights[:, None]
        return -missing.max(-1) - AUGMENTATION * missing.sum(-1)

    def learn(self, learner: LearnerState, training: TrainingState, key: jax.Array) -> LearnerState:
        """Do one update of every member, each with steps of its own."""
        plan = training.plan
        count = len(plan.weights)
        rows: Experience = training.buffer.sample(key, count * self.config.batch_size)
        moments = training.moments
        x, next_x = moments.x.normalise(rows.x), moments.x.normalise(rows.next_x)
        accrued = rows.next_x[:, -self.objectives :]

        def split(leaf: Any) -> Any:
            return leaf.reshape(count, -1, *leaf.shape[1:])

        def target(
            network: Any, target_network: Any, weights: Any, next_x: Any, accrued: Any, mask: Any
        ) -> jax.Array:
            values = network.values(next_x, self.objectives)
            every_weights = jnp.broadcast_to(weights, accrued.shape)
            utility = forbid(self.scalarise(plan, every_weights, values, accrued), mask)
            next_values = target_network.values(next_x, self.objectives)
            return take_action(next_values, utility.argmax(-1))

        masks = self.unpack_mask(rows.next_legal)
        batches = jax.tree.map(split, (next_x, accrued, masks))
        later = jax.vmap(target)(
            learner.networks.members, learner.targets.members, plan.weights, *batches
        )
        later = jnp.where(split(rows.terminated)[..., None], 0, later)
        targets = split(rows.reward) + self.config.gamma * later

        def loss(networks: Networks) -> jax.Array:
            values = jax.vmap(lambda network, x: network.values(x, self.objectives))(
                networks.members, split(x)
            )
            error = optax.huber_loss(take_action(values, split(rows.action)), targets)
            total = error.sum(-1).mean(1).sum()
            return total + self.reward_loss(networks.rewards, moments, rows)

        return self.descend(learner, jax.grad(loss)(learner.networks))

    def reward_loss(
        self, model: RewardModel, moments: TransitionMoments, rows: Experience
    ) -> jax.Array | float:
        """Return the loss of the model of rewards; 0 if no policy needs it."""
        if not self.reads_accrued:
            return 0.0
        width = self.flat.features
        x, next_x = rows.x[:, :width], rows.next_x[:, :width]
        return model.loss(
            self.plain_moments(moments), x, rows.action, next_x, rows.reward, ~rows.terminated
        )

    def plain_moments(self, moments: TransitionMoments) -> TransitionMoments:
        """Return moments without those of what was earned."""
        return moments._replace(x=moments.x.first(self.flat.features))

    def actor(self, networks: Networks, plan: Population) -> Actor:
        """Return both."""
        return Actor(networks, plan)

    # -- cooperation, between chunks ---------------------------------------------------------------

    def replan(self, training: TrainingState) -> TrainingState:
        """Let members take over networks of neighbours and adapt weights, but not at the end.

        Each member then plays for the weights that its network was trained for.
        """
        config = self.config
        plan = self.measured(jax.tree.map(np.array, training.plan))
        steps = int(training.steps) * config.num_envs
        if steps >= config.steps:
            return training._replace(plan=plan)
        donors = self.donors(plan)

        def take_over(networks: Networks) -> Networks:
            members = jax.tree.map(lambda leaf: leaf[donors], networks.members)
            return networks._replace(members=members)

        learner = training.learner._replace(
            networks=take_over(training.learner.networks),
            targets=take_over(training.learner.targets),
        )
        plan = plan._replace(values=plan.values[donors])
        if steps >= config.adaptation * config.steps:
            weights = adapt_weights(plan.weights, plan.values)
            plan = plan._replace(weights=weights.astype(np.float32))
        return training._replace(learner=learner, plan=plan)

    def measured(self, plan: Population) -> Population:
        """Return the plan with the values of the chunk's episodes, and none yet of the next."""
        counts = np.maximum(plan.episodes, 1)[:, None]
        values = np.where(plan.episodes[:, None] > 0, plan.sums / counts, plan.values)
        return plan._replace(
            values=values.astype(np.float32),
            best=np.maximum(plan.best, values.max(0)).astype(np.float32),
            scale=np.maximum(np.ptp(values, axis=0), TOLERANCE).astype(np.float32),
            sums=np.zeros_like(plan.sums),
            episodes=np.zeros_like(plan.episodes),
        )

    def donors(self, plan: Population) -> np.ndarray:
        """Return the neighbour of each member, itself included, that serves its weights best."""
        options = jnp.broadcast_to(plan.values, (len(plan.values), *plan.values.shape))
        worth = np.array(self.scalarise(plan, plan.weights, options, jnp.zeros_like(plan.values)))
        distance = ((plan.weights[:, None] - plan.weights) ** 2).sum(-1)
        rank = distance.argsort(1, kind="stable").argsort(1, kind="stable")
        worth[rank > self.config.neighbours] = -np.inf
        return worth.argmax(1)


# -- policy ----------------------------------------------------------------------------------------


class Actor(NamedTuple):
    """Contents of a file of a population."""

    networks: Networks
    plan: Population


class Memory(NamedTuple):
    """Memory of the steps so far."""

    accrued: FloatArray
    """Predicted rewards so far, ``(k,)``."""
    x: FloatArray
    """Last observation, not normalised, ``(features,)``."""
    action: Int
    """Last action; -1 at first."""


class Policy(eqx.Module):
    """Plays as the member that is best for weights, or as a certain member."""

    actor: Actor
    moments: TransitionMoments
    weights: FloatArray
    """float32 ``(k,)``"""
    member: Int
    """Number of the member; -1 for the best one."""
    algorithm: Decomposition = eqx.field(static=True)

    @classmethod
    def for_card(cls, actor: Actor, moments: TransitionMoments, algorithm: Decomposition) -> Policy:
        """Return the policy for the weights of the card."""
        weights = np.asarray(algorithm.flat.task.card.weights, np.float32)
        return cls(actor, moments, weights, np.int32(-1), algorithm)

    @property
    def flat(self) -> FlatTask:
        """The task."""
        return self.algorithm.flat

    @property
    def config(self) -> Config:
        """The hyperparameters."""
        return self.algorithm.config

    @property
    def members(self) -> np.ndarray:
        """Numbers of the members."""
        return np.arange(len(self.actor.plan.weights))

    def for_member(self, member: jax.Array) -> Policy:
        """Return the policy of one member."""
        return eqx.tree_at(lambda policy: policy.member, self, jnp.asarray(member, jnp.int32))

    def for_weights(self, weights: jax.Array) -> Policy:
        """Return the policy of the member whose value is best for other weights."""
        values = jnp.asarray(weights, jnp.float32), jnp.int32(-1)
        return eqx.tree_at(lambda policy: (policy.weights, policy.member), self, values)

    def initial(self, params: Any) -> Memory:
        """Return a memory of no steps."""
        flat = self.flat
        return Memory(jnp.zeros(self.algorithm.objectives), jnp.zeros(flat.features), jnp.int32(-1))

    def act(self, memory: Memory, view: View, key: jax.Array) -> tuple[jax.Array, Memory]:
        """Return the legal action with the best utility for the member."""
        algorithm = self.algorithm
        features, mask = self.flat.observe(view.observation, view.action_mask)
        x = features[0]
        networks, plan = self.actor
        accrued = memory.accrued
        if algorithm.reads_accrued:
            moments = algorithm.plain_moments(self.moments)
            reward = networks.rewards.predict(moments, memory.x, memory.action, x)
            accrued += jnp.where(memory.action < 0, 0, reward)
        inputs = jnp.concatenate([x, accrued]) if algorithm.reads_accrued else x
        utility_of_members = jnp.asarray(plan.values) @ jnp.asarray(self.weights)
        best = jnp.argmax(utility_of_members).astype(jnp.int32)
        member = jnp.where(self.member < 0, best, self.member)
        network = jax.tree.map(lambda leaf: jnp.asarray(leaf)[member], networks.members)
        values = network.values(self.moments.x.normalise(inputs)[None], algorithm.objectives)
        weights = jnp.asarray(plan.weights)[member][None]
        utility = forbid(algorithm.scalarise(plan, weights, values, accrued[None]), mask)
        action = utility[0].argmax(-1).astype(jnp.int32)
        return self.flat.env_action(action), Memory(accrued, x, action)


# -- agent -----------------------------------------------------------------------------------------


class MORLD(VectorAgent):
    """The agent ``morl-d``, for several objectives and one discrete choice a step."""

    name = "morl-d"
    config_class = Config
    algorithm_class = Decomposition
    policy_class = Policy

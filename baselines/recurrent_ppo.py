"""PPO with a memory, for tasks where one observation does not tell all that matters.

The same algorithm as ``ppo.py`` (losses, advantages, hyperparameters are its own); what differs is here: a gated
recurrent unit (Cho et al. 2014, arXiv:1406.1078) in front of actor and critic, its state carried from step to step,
begun anew with every episode, and learned by backpropagation through each rollout from the state in which the rollout
began (Hausknecht & Stone 2015, arXiv:1507.06527, "stored state"; Ni et al. 2022, arXiv:2110.05038, on how well that
does). Minibatches divide the environments and keep their sequences whole.

Actor and critic see the observation beside the memory: what needs no memory is learned as fast as without.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.adapters.rollout import Stream
from rlbench_suite.policy import View

from . import ppo
from .actor import Actor, code_of, encoded, seen_features
from .distributions import Categorical, Gaussian
from .networks import Encoder, Linear, Moments, initial_layers, multilayer, orthogonal
from .ppo import (
    Batch,
    Config,
    Training,
    Transition,
    aims,
    decide,
    look,
    make_noise,
    optimiser,
    play,
    scaled_rewards,
    update_keys,
)
from .rows import Rows
from .training import Returns

# -- networks ------------------------------------------------------------------------------------------------------


class GRU(NamedTuple):
    """A gated recurrent unit of ``U`` numbers; gates side by side: reset, keep, candidate."""

    inputs: Linear
    """``(features, 3 U)``."""
    recurrence: Linear
    """``(U, 3 U)``."""

    @classmethod
    def initial(cls, generator: np.random.Generator, features: int, units: int) -> GRU:
        """Orthogonal weights, gate by gate; the keep gate is biased to keep (Jozefowicz et al. 2015)."""

        def gates(n: int) -> np.ndarray:
            return np.concatenate([orthogonal(generator, n, units) for _ in range(3)], 1)

        keep = np.repeat(np.array([0, 1, 0], np.float32), units)
        return cls(Linear(gates(features), keep), Linear(gates(units), np.zeros(3 * units, np.float32)))

    def __call__(self, x: jax.Array, memory: jax.Array) -> jax.Array:
        """The memory ``(..., U)`` after seeing normalised observations ``(..., features)``; what lies beyond them
        is privileged, and not looked at.
        """
        x = x[..., : self.inputs.weight.shape[0]]
        seen = jnp.split(x @ self.inputs.weight + self.inputs.bias, 3, -1)
        known = jnp.split(memory @ self.recurrence.weight + self.recurrence.bias, 3, -1)
        reset, keep = jax.nn.sigmoid(seen[0] + known[0]), jax.nn.sigmoid(seen[1] + known[1])
        return keep * memory + (1 - keep) * jnp.tanh(seen[2] + reset * known[2])


class RecurrentActor(NamedTuple):
    """What a policy needs: the memory's unit, and the actor, which sees observation and memory side by side."""

    unit: GRU
    head: Actor

    @property
    def encoder(self) -> Encoder | None:
        """Of pictures, before the memory."""
        return self.head.encoder

    def __call__(self, rows: Rows, known: jax.Array, mask: jax.Array | None) -> Categorical | Gaussian:
        """The distribution of actions given ``(..., features + U)``."""
        return self.head(rows, known, mask)


class Networks(NamedTuple):
    """One memory for actor and critic; both shape it."""

    actor: RecurrentActor
    critic: tuple[Linear, ...]

    @classmethod
    def initial(cls, rows: Rows, config: Config, seed: int) -> Networks:
        """Weights as in PPO, made on the host."""
        generator = np.random.default_rng(seed)
        unit = GRU.initial(generator, seen_features(rows), config.memory)
        wide = seen_features(rows) + config.memory
        critic = initial_layers(generator, (wide + rows.privileged, *config.hidden, 1), gain=1.0)
        return cls(RecurrentActor(unit, Actor.initial(generator, rows, wide, config.hidden, config.log_std)), critic)


class RecurrentPolicy(eqx.Module):
    """A trained policy with a memory ``(A, U)``; and the normalisation of its observations, frozen."""

    actor: RecurrentActor
    moments: Moments
    rows: Rows = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    def initial(self, params: Any) -> jax.Array:
        """Nothing is known."""
        return jnp.zeros((self.rows.agents, self.config.memory))

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The most likely action, or a sample, and what is now known."""
        x, mask = self.rows.look(view.observation, view.action_mask)
        code = code_of(self.actor, self.rows.picture_in(view.observation))
        x = encoded(self.rows, self.moments.normalise(x), code)
        memory = self.actor.unit(x, memory)
        distribution = self.actor(self.rows, beside(self.rows, x, memory), mask)
        return decide(self.rows, self.config, distribution, key), memory


# -- collect -------------------------------------------------------------------------------------------------------


class RecurrentTraining(NamedTuple):
    """What PPO carries from update to update, and the memories of the running episodes."""

    base: Training
    memory: Any
    """``(environments, A, U)``; zeros where an episode is about to begin."""


def beside(rows: Rows, x: jax.Array, memory: jax.Array) -> jax.Array:
    """Observation, memory, and last what is privileged and only for the critic."""
    features = seen_features(rows)
    return jnp.concatenate([x[..., :features], memory, x[..., features:]], -1)


def forget(memory: jax.Array, over: jax.Array) -> jax.Array:
    """The memory of the next step: nothing where the episode is over."""
    return jnp.where(over[..., None], 0, memory)


def collect(
    rows: Rows, config: Config, training: RecurrentTraining, key: jax.Array
) -> tuple[Stream, jax.Array, Transition, jax.Array, Returns]:
    """``num_steps`` steps of every environment; also the memories in the end, and those with which each step acted."""
    base = training.base
    actor, moments = base.networks.actor, base.moments

    def step(carry: tuple[Stream, jax.Array], noise: jax.Array) -> tuple[tuple[Stream, jax.Array], Any]:
        stream, memory = carry
        now = look(rows, actor, stream.last)
        x = encoded(rows, moments.normalise(now.x), now.code)
        memory = actor.unit(x, memory)
        distribution = actor(rows, beside(rows, x, memory), now.mask)
        stream, (transition, ended) = play(rows, actor, stream, now, distribution, noise)
        return (stream, forget(memory, transition.over)), (transition, memory, ended)

    carry = base.stream, training.memory
    (stream, memory), (transitions, memories, ended) = jax.lax.scan(step, carry, make_noise(rows, config, key))
    return stream, memory, transitions, memories, jax.tree.map(jnp.sum, ended)


# -- update --------------------------------------------------------------------------------------------------------


def recall(unit: GRU, memory: jax.Array, x: jax.Array, over: jax.Array) -> jax.Array:
    """Memories ``(steps, n, U)`` through a rollout that began with ``(n, U)``, under the present weights."""

    def step(memory: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, over = now
        memory = unit(x, memory)
        return forget(memory, over), memory

    return jax.lax.scan(step, memory, (x, over))[1]


def loss(networks: Networks, batch: Batch, memory: jax.Array, over: jax.Array, rows: Rows, config: Config) -> jax.Array:
    """PPO's loss of whole sequences, ``(steps, n, ...)``."""
    x = encoded(rows, batch.x, code_of(networks.actor, batch.picture))
    memories = recall(networks.actor.unit, memory, x, over)
    known = batch._replace(x=beside(rows, x, memories), picture=None)
    return ppo.loss(networks, jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), known), rows, config)


def update(rows: Rows, config: Config, training: RecurrentTraining) -> tuple[RecurrentTraining, Returns]:
    """Collect, then learn from it for some epochs."""
    collect_key, learn_key = update_keys(training.base)
    stream, memory, seen, memories, ended = collect(rows, config, training, collect_key)
    reward, base = scaled_rewards(config, training.base, seen)
    normal, next_normal = base.moments.normalise(seen.x), base.moments.normalise(seen.next_x)
    x, next_x = encoded(rows, normal, seen.code), encoded(rows, next_normal, seen.next_code)
    # What the step led to is looked at with the memory of the same episode, over or not.
    next_memories = base.networks.actor.unit(next_x, memories)
    value, next_value = (
        multilayer(base.networks.critic, beside(rows, *known))[..., 0]
        for known in ((x, memories), (next_x, next_memories))
    )
    advantage, target = aims(config, seen, reward, value, next_value)

    # Sequences: one an agent of an environment, (steps, sequences, ...).
    batch, over = jax.tree.map(
        lambda leaf: jax.lax.collapse(leaf, 1, 3),
        (Batch(normal, seen.mask, seen.action, seen.log_prob, advantage, target, seen.picture), seen.over),
    )
    begun = training.memory.reshape(-1, config.memory)

    def learn(carry: tuple[Networks, Any], chosen: jax.Array) -> tuple[tuple[Networks, Any], None]:
        networks, state = carry
        part, part_over = jax.tree.map(lambda leaf: leaf[:, chosen], (batch, over))
        gradient = jax.grad(loss)(networks, part, begun[chosen], part_over, rows, config)
        change, state = optimiser(config).update(gradient, state)
        return (optax.apply_updates(networks, change), state), None

    orders = jax.random.bits(learn_key, (config.epochs, config.num_envs * rows.agents)).argsort()
    minibatches = orders.reshape(config.epochs * config.minibatches, -1)
    (networks, state), _ = jax.lax.scan(learn, (base.networks, base.optimiser), minibatches)

    moments = base.moments.update(jax.lax.collapse(seen.x, 0, 3))
    base = Training(networks, state, moments, base.discounted, base.mean_square, stream, base.seed, base.updates + 1)
    return RecurrentTraining(base, memory), ended


# -- train ---------------------------------------------------------------------------------------------------------


def start(rows: Rows, config: Config, networks: Networks, seed: jax.Array, stream: Any) -> RecurrentTraining:
    """The beginning of a run; ``seed`` is key data, ``stream`` its environments."""
    memory = jnp.zeros((config.num_envs, rows.agents, config.memory))
    return RecurrentTraining(ppo.start(rows, config, networks, seed, stream), memory)


def train_chunk(rows: Rows, config: Config, training: RecurrentTraining) -> tuple[RecurrentTraining, Returns]:
    """``config.chunk`` updates; a pure function, to be jitted and vmapped."""
    training, ended = jax.lax.scan(lambda training, _: update(rows, config, training), training, length=config.chunk)
    return training, jax.tree.map(jnp.sum, ended)

"""PPO with a memory, for partially observed tasks.

Losses, advantages and hyperparameters are those of ``ppo.py``. This file adds a memory, one of the units of
``memory_units.py``, in front of actor and critic. Its state is carried from step to step and reset with every episode.
Training backpropagates through each rollout from the state in which the rollout began (the "stored state" of Hausknecht
& Stone 2015, arXiv:1507.06527; Ni et al. 2022, arXiv:2110.05038, show how well it works). Minibatches divide the
environments and keep their sequences whole.

Actor and critic also read the observation itself, so that tasks which need no memory are learned as fast as without.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.adapters.rollout import Stream
from rlbench_suite.evaluation import network as acting
from rlbench_suite.evaluation.network import Network
from rlbench_suite.policy import View

from . import ppo
from .actor import Actor, actor_inputs, append_code, encode_image
from .distributions import Categorical, Gaussian
from .flat_task import FlatTask
from .memory_units import GRU, LSTM, UNITS, MinGRU, Unit, reset_memory
from .networks import Encoder, Linear, Moments, initial_layers, mlp
from .ppo import (
    Batch,
    Config,
    TrainingState,
    Transition,
    advantages_and_targets,
    choose_action,
    draw_noise,
    observe,
    optimiser,
    scale_rewards,
    split_keys,
    step_environments,
)
from .training import Returns

# -- networks ------------------------------------------------------------------------------------------------------


class RecurrentActor(NamedTuple):
    """A recurrent unit, and an actor that reads the observation and the memory side by side."""

    unit: Unit
    head: Actor

    @property
    def encoder(self) -> Encoder | None:
        """Encoder of images, in front of the memory."""
        return self.head.encoder

    def __call__(self, flat: FlatTask, known: jax.Array, mask: jax.Array | None) -> Categorical | Gaussian:
        """Return the distribution of actions for inputs ``(..., features + U)``."""
        return self.head(flat, known, mask)


class Networks(NamedTuple):
    """Actor and critic with a shared memory, which learns from both losses."""

    actor: RecurrentActor
    critic: tuple[Linear, ...]

    @classmethod
    def initial(cls, flat: FlatTask, config: Config, seed: int) -> Networks:
        """Return networks with initial weights as in PPO."""
        generator = np.random.default_rng(seed)
        unit = UNITS[str(config.recurrent)].initial(generator, actor_inputs(flat), config.memory)
        wide = actor_inputs(flat) + config.memory
        critic = initial_layers(generator, (wide + flat.privileged, *config.hidden, 1), gain=1.0)
        return cls(RecurrentActor(unit, Actor.initial(generator, flat, wide, config.hidden, config.log_std)), critic)


class RecurrentPolicy(eqx.Module):
    """A trained policy with a memory ``(A, size)``, and the moments that normalise its observations."""

    actor: RecurrentActor
    moments: Moments
    flat: FlatTask = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    def initial(self, params: Any) -> jax.Array:
        """Return a memory of zeros."""
        return jnp.zeros((self.flat.agents, self.actor.unit.size))

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the most likely action or a sample, and the new memory."""
        x, mask = self.flat.observe(view.observation, view.action_mask)
        code = encode_image(self.actor, self.flat.image_in(view.observation))
        x = append_code(self.flat, self.moments.normalise(x), code)
        memory = self.actor.unit(x, memory)
        distribution = self.actor(self.flat, insert_reading(self.flat, x, self.actor.unit.read(memory)), mask)
        return choose_action(self.flat, self.config, distribution, key), memory

    def network(self) -> Network:
        """Return the acting network.

        Raises:
            ValueError: it reads an image, scores actions by their features, or has a transformer's memory.
        """
        unit: Any = self.actor.unit
        kinds: dict[Any, Any] = {GRU: acting.GRU, LSTM: acting.LSTM, MinGRU: acting.MinGRU}
        if type(unit) not in kinds:
            raise ValueError(f"A memory of {self.config.recurrent!r} cannot be exported; gru, lstm and mingru can.")
        if self.flat.action_features is not None:
            raise ValueError(f"A policy of {self.flat.task.card.id} with a memory cannot be exported.")
        memory = kinds[type(unit)](*(acting.affine(part) for part in unit))
        layers = [*acting.normalise(self.moments), memory, *self.actor.head.acting_layers(self.flat)]
        return Network(tuple(layers), self.flat.choices, self.config.evaluate == "sample")


# -- collect -------------------------------------------------------------------------------------------------------


class RecurrentTrainingState(NamedTuple):
    """State of a run between updates: that of PPO, and the memories of the running episodes."""

    base: TrainingState
    memory: Any
    """``(environments, A, size)``; zeros where an episode is about to begin."""


def insert_reading(flat: FlatTask, x: jax.Array, reading: jax.Array) -> jax.Array:
    """Insert a memory's reading behind the observation, before the privileged features that only the critic reads."""
    features = actor_inputs(flat)
    return jnp.concatenate([x[..., :features], reading, x[..., features:]], -1)


def collect(
    flat: FlatTask, config: Config, training: RecurrentTrainingState, key: jax.Array
) -> tuple[Stream, jax.Array, Transition, jax.Array, Returns]:
    """Take ``num_steps`` steps in every environment; also return the last memories and those that each step used."""
    base = training.base
    actor, moments = base.networks.actor, base.moments

    def step(carry: tuple[Stream, jax.Array], noise: jax.Array) -> tuple[tuple[Stream, jax.Array], Any]:
        stream, memory = carry
        now = observe(flat, actor, stream.last)
        x = append_code(flat, moments.normalise(now.x), now.code)
        memory = actor.unit(x, memory)
        distribution = actor(flat, insert_reading(flat, x, actor.unit.read(memory)), now.mask)
        stream, (transition, ended) = step_environments(flat, config, actor, stream, now, distribution, noise)
        return (stream, reset_memory(memory, transition.over)), (transition, memory, ended)

    carry = base.stream, training.memory
    (stream, memory), (transitions, memories, ended) = jax.lax.scan(step, carry, draw_noise(flat, config, key))
    return stream, memory, transitions, memories, jax.tree.map(jnp.sum, ended)


# -- update --------------------------------------------------------------------------------------------------------


def loss(
    networks: Networks, batch: Batch, memory: jax.Array, over: jax.Array, flat: FlatTask, config: Config
) -> jax.Array:
    """Return PPO's loss on whole sequences ``(steps, n, ...)``."""
    x = append_code(flat, batch.x, encode_image(networks.actor, batch.image))
    unit = networks.actor.unit
    known = batch._replace(x=insert_reading(flat, x, unit.unroll(memory, x, over)), image=None)
    return ppo.loss(networks, jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), known), flat, config)


def update(flat: FlatTask, config: Config, training: RecurrentTrainingState) -> tuple[RecurrentTrainingState, Returns]:
    """Collect steps and learn from them."""
    collect_key, learn_key = split_keys(training.base)
    stream, memory, seen, memories, ended = collect(flat, config, training, collect_key)
    reward, base = scale_rewards(config, training.base, seen)
    normal, next_normal = base.moments.normalise(seen.x), base.moments.normalise(seen.next_x)
    x, next_x = append_code(flat, normal, seen.code), append_code(flat, next_normal, seen.next_code)
    # Evaluate the state after the step with the memory of the same episode, even if the episode is over.
    unit = base.networks.actor.unit
    next_memories = unit(next_x, memories)
    value, next_value = (
        mlp(base.networks.critic, insert_reading(flat, shown, unit.read(remembered)))[..., 0]
        for shown, remembered in ((x, memories), (next_x, next_memories))
    )
    advantage, target = advantages_and_targets(config, seen, reward, value, next_value)

    # Arrange the data as sequences (steps, sequences, ...), one for each agent of each environment.
    batch, over = jax.tree.map(
        lambda leaf: jax.lax.collapse(leaf, 1, 3),
        (Batch(normal, seen.mask, seen.action, seen.log_prob, advantage, target, seen.image), seen.over),
    )
    begun = training.memory.reshape(-1, unit.size)

    def learn(carry: tuple[Networks, Any], chosen: jax.Array) -> tuple[tuple[Networks, Any], None]:
        networks, state = carry
        part, part_over = jax.tree.map(lambda leaf: leaf[:, chosen], (batch, over))
        gradient = jax.grad(loss)(networks, part, begun[chosen], part_over, flat, config)
        change, state = optimiser(config).update(gradient, state)
        return (optax.apply_updates(networks, change), state), None

    orders = jax.random.bits(learn_key, (config.epochs, config.num_envs * flat.agents)).argsort()
    minibatches = orders.reshape(config.epochs * config.minibatches, -1)
    (networks, state), _ = jax.lax.scan(learn, (base.networks, base.optimiser), minibatches)

    moments = base.moments.update(jax.lax.collapse(seen.x, 0, 3))
    base = TrainingState(
        networks, state, moments, base.discounted, base.mean_square, stream, base.seed, base.updates + 1
    )
    return RecurrentTrainingState(base, memory), ended


# -- train ---------------------------------------------------------------------------------------------------------


def start(flat: FlatTask, config: Config, networks: Networks, seed: jax.Array, stream: Any) -> RecurrentTrainingState:
    """Return the state at the beginning of a run. ``seed`` is key data; ``stream`` holds the environments."""
    memory = jnp.zeros((config.num_envs, flat.agents, networks.actor.unit.size))
    return RecurrentTrainingState(ppo.start(flat, config, networks, seed, stream), memory)


def train_chunk(
    flat: FlatTask, config: Config, training: RecurrentTrainingState
) -> tuple[RecurrentTrainingState, Returns]:
    """Do ``config.chunk`` updates. This is a pure function, to be jitted and vmapped."""
    training, ended = jax.lax.scan(lambda training, _: update(flat, config, training), training, length=config.chunk)
    return training, jax.tree.map(jnp.sum, ended)

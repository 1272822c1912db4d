"""PPO with a memory, for partially observed tasks.

Losses, advantages and hyperparameters are those of ``ppo.py``. This file adds a memory, one of the
units of ``memory_units.py``, in front of actor and critic. Its state is carried from step to step
and reset with every episode. Training backpropagates through each rollout from the state in which
the rollout began (the "stored state" of Hausknecht & Stone 2015, arXiv:1507.06527; Ni et al. 2022,
arXiv:2110.05038, show how well it works). Minibatches divide the environments and keep their
sequences whole.

Actor and critic also read the observation itself, so that tasks which need no memory are learned as
fast as without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.core.policy import ActingParameters, View

from ..networks import Linear, initial_layers, mlp
from . import ppo
from .memory_units import UNITS, reset_memory
from .ppo import Actor, Batch, actor_inputs, append_code, encode_image

if TYPE_CHECKING:
    from rlbench_suite.adapters.rollout import Stream

    from ..flat_task import FlatTask
    from ..networks import Categorical, Encoder, Gaussian, Moments
    from ..training import Returns
    from .memory_units import Unit
    from .ppo import Config, TrainingState, Transition

# -- networks --------------------------------------------------------------------------------------


class RecurrentActor(NamedTuple):
    """A recurrent unit, and an actor that reads the observation and the memory side by side."""

    unit: Unit
    head: Actor

    @property
    def encoder(self) -> Encoder | None:
        """Encoder of images, in front of the memory."""
        return self.head.encoder

    def __call__(
        self, flat: FlatTask, x: jax.Array, mask: jax.Array | None
    ) -> Categorical | Gaussian:
        """Return the distribution of actions for inputs ``(..., features + U)``."""
        return self.head(flat, x, mask)


class Networks(NamedTuple):
    """Actor and critic with a shared memory, which learns from both losses."""

    actor: RecurrentActor
    critic: tuple[Linear, ...]

    @classmethod
    def initial(cls, flat: FlatTask, config: Config, seed: int) -> Networks:
        """Return networks with initial weights as in PPO."""
        generator = np.random.default_rng(seed)
        unit = UNITS[str(config.recurrent)].initial(generator, actor_inputs(flat), config.memory)
        inputs = actor_inputs(flat) + config.memory
        critic = initial_layers(generator, (inputs + flat.privileged, *config.hidden, 1), gain=1.0)
        head = Actor.initial(generator, flat, inputs, config.hidden, config.log_std)
        return cls(RecurrentActor(unit, head), critic)


# -- policy ----------------------------------------------------------------------------------------


class Policy(eqx.Module):
    """A trained policy with a memory ``(A, size)``.

    It holds the moments that normalise its observations.
    """

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
        distribution = self.actor(
            self.flat, insert_reading(self.flat, x, self.actor.unit.read(memory)), mask
        )
        return ppo.choose_action(self.flat, self.config, distribution, key), memory

    def acting_parameters(self) -> ActingParameters:
        """Return the acting network as plain parameters, for export.

        Raises:
            ValueError: it reads an image.
        """
        parameters = ppo.acting_parameters(self.actor.head, self.moments, self.flat, self.config)
        unit: Any = self.actor.unit
        return parameters._replace(memory=str(self.config.recurrent), memory_layers=unit)


# -- collect ---------------------------------------------------------------------------------------


class RecurrentTrainingState(NamedTuple):
    """State of a run between updates: that of PPO, and the memories of the running episodes."""

    base: TrainingState
    memory: jax.Array
    """float32 ``(N, A, size)``; zeros where an episode is about to begin."""


def insert_reading(flat: FlatTask, x: jax.Array, reading: jax.Array) -> jax.Array:
    """Insert a memory's reading behind the observation.

    It stands before the privileged features, which only the critic reads.
    """
    features = actor_inputs(flat)
    return jnp.concatenate([x[..., :features], reading, x[..., features:]], -1)


def collect(
    flat: FlatTask, config: Config, training: RecurrentTrainingState, key: jax.Array
) -> tuple[Stream, jax.Array, Transition, jax.Array, Returns]:
    """Take ``num_steps`` steps in every environment.

    Return also the last memories, and the memories that each step used.
    """
    base = training.base
    actor = base.networks.actor
    moments = base.moments

    def step(
        carry: tuple[Stream, jax.Array], noise: jax.Array
    ) -> tuple[tuple[Stream, jax.Array], Any]:
        stream, memory = carry
        inputs = ppo.observe(flat, actor, stream.last)
        x = append_code(flat, moments.normalise(inputs.x), inputs.code)
        memory = actor.unit(x, memory)
        distribution = actor(flat, insert_reading(flat, x, actor.unit.read(memory)), inputs.mask)
        stream, (transition, returns) = ppo.step_environments(
            flat, config, actor, stream, inputs, distribution, noise
        )
        return (stream, reset_memory(memory, transition.over)), (transition, memory, returns)

    carry = base.stream, training.memory
    noise = ppo.sample_noise(flat, config, key)
    (stream, memory), (rollout, memories, returns) = jax.lax.scan(step, carry, noise)
    return stream, memory, rollout, memories, jax.tree.map(jnp.sum, returns)


# -- update ----------------------------------------------------------------------------------------


def loss(
    networks: Networks,
    batch: Batch,
    memory: jax.Array,
    over: jax.Array,
    flat: FlatTask,
    config: Config,
) -> jax.Array:
    """Return PPO's loss on whole sequences ``(steps, n, ...)``."""
    x = append_code(flat, batch.x, encode_image(networks.actor, batch.image))
    unit = networks.actor.unit
    batch = batch._replace(x=insert_reading(flat, x, unit.unroll(memory, x, over)), image=None)
    return ppo.loss(
        networks, jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), batch), flat, config
    )


def update(
    flat: FlatTask, config: Config, training: RecurrentTrainingState
) -> tuple[RecurrentTrainingState, Returns]:
    """Collect steps and learn from them."""
    collect_key, learn_key = ppo.split_keys(training.base)
    stream, memory, rollout, memories, returns = collect(flat, config, training, collect_key)
    base = learn(flat, config, training, rollout, memories, learn_key)
    return RecurrentTrainingState(base._replace(stream=stream), memory), returns


def learn(
    flat: FlatTask,
    config: Config,
    training: RecurrentTrainingState,
    rollout: Transition,
    memories: jax.Array,
    key: jax.Array,
) -> TrainingState:
    """Learn from the collected steps, whose memories are ``(steps, environments, A, size)``."""
    reward, base = ppo.scale_rewards(config, training.base, rollout)
    unit = base.networks.actor.unit
    normalised = base.moments.normalise(rollout.x)
    x = append_code(flat, normalised, rollout.code)
    next_x = append_code(flat, base.moments.normalise(rollout.next_x), rollout.next_code)
    # Evaluate the state after the step with the memory of the same episode, even if the episode is
    # over.
    next_memories = unit(next_x, memories)
    critic = base.networks.critic
    value = mlp(critic, insert_reading(flat, x, unit.read(memories)))[..., 0]
    next_value = mlp(critic, insert_reading(flat, next_x, unit.read(next_memories)))[..., 0]
    advantage, target = ppo.advantages_and_targets(config, rollout, reward, value, next_value)

    # Arrange the data as sequences (steps, sequences, ...), one for each agent of each environment.
    batch = Batch(
        normalised,
        rollout.mask,
        rollout.action,
        rollout.log_prob,
        advantage,
        target,
        rollout.image,
        rollout.alive,
        rollout.acting,
    )
    batch, over = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 1, 3), (batch, rollout.over))
    first_memories = training.memory.reshape(-1, unit.size)

    def descend(
        carry: tuple[Networks, Any], sequences: jax.Array
    ) -> tuple[tuple[Networks, Any], None]:
        networks, optimiser_state = carry
        minibatch, minibatch_over = jax.tree.map(lambda leaf: leaf[:, sequences], (batch, over))
        gradient = jax.grad(loss)(
            networks, minibatch, first_memories[sequences], minibatch_over, flat, config
        )
        change, optimiser_state = ppo.optimiser(config).update(gradient, optimiser_state)
        return (optax.apply_updates(networks, change), optimiser_state), None

    orders = jax.random.bits(key, (config.epochs, config.num_envs * flat.agents)).argsort()
    minibatches = orders.reshape(config.epochs * config.minibatches, -1)
    carry = base.networks, base.optimiser
    (networks, optimiser_state), _ = jax.lax.scan(descend, carry, minibatches)

    moments = base.moments.update(jax.lax.collapse(rollout.x, 0, 3))
    return base._replace(
        networks=networks, optimiser=optimiser_state, moments=moments, updates=base.updates + 1
    )


# -- train -----------------------------------------------------------------------------------------


def start(
    flat: FlatTask, config: Config, networks: Networks, seed: jax.Array, stream: Any
) -> RecurrentTrainingState:
    """Return the state at the beginning of a run.

    ``seed`` is key data; ``stream`` holds the environments.
    """
    memory = jnp.zeros((config.num_envs, flat.agents, networks.actor.unit.size))
    return RecurrentTrainingState(ppo.start(flat, config, networks, seed, stream), memory)


def train_chunk(
    flat: FlatTask, config: Config, training: RecurrentTrainingState
) -> tuple[RecurrentTrainingState, Returns]:
    """Do ``config.chunk`` updates. This is a pure function, to be jitted and vmapped."""
    training, returns = jax.lax.scan(
        lambda training, _: update(flat, config, training), training, length=config.chunk
    )
    return training, jax.tree.map(jnp.sum, returns)


def trained_policy(flat: FlatTask, config: Config, training: RecurrentTrainingState) -> Policy:
    """Return the policy of a training state. It sees no privileged features."""
    base = training.base
    return Policy(base.networks.actor, base.moments.first(flat.features), flat, config)

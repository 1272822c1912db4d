"""Proximal policy optimisation with a fully compiled training loop.

The algorithm is that of Schulman et al. 2017 (arXiv:1707.06347) with generalised advantage
estimation (Schulman et al. 2016, arXiv:1506.02438). Details follow Andrychowicz et al. 2021
(arXiv:2006.05990) and Huang et al. 2022 (The 37 implementation details of PPO).

Read from top to bottom, as data flows: configuration, networks, policy, collect, advantage, update,
train. Three files stand behind it: the task as networks see it (``flat_task.py``), layers and
distributions (``networks.py``), and the stepping of episodes (``training.py``).

One program does a chunk of updates (``lax.scan``). A host loop calls it about fifteen times, so
that a run shows progress and can be stopped. The program depends only on task and configuration:
all seeds share it, and ``vmap`` trains many at once.

Single-agent and multi-agent tasks share one layout: arrays have an axis ``A`` for the agents, of
length 1 for a single agent. All agents share the networks (parameter sharing, Gupta et al. 2017).

If an observation contains an image, actor and critic share a convolutional encoder and read its
output beside the other features. If the card says that a task is partially observed, they get a
memory (``recurrent.py``). The agent ``ppo``, which chooses between these forms, is in ``agent.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.core.arrays import FloatArray
from rlbench_suite.core.policy import ActingParameters, View, no_memory

from ..configuration import InChunks
from ..networks import (
    CODE_SIZE,
    Categorical,
    Encoder,
    Gaussian,
    Linear,
    Moments,
    choice_probabilities,
    initial_layers,
    mlp,
)
from ..training import Returns, step_episodes, update_key

if TYPE_CHECKING:
    from rlbench_suite.adapters.rollout import Stream
    from rlbench_suite.core.episode import Step

    from ..flat_task import FlatTask

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(InChunks):
    """Hyperparameters of PPO.

    Their values for each task and budget are in ``hyperparameters/ppo.yaml``.
    """

    total_steps: int
    """Environment steps, rounded up to whole chunks of updates. A step of many agents counts once.
    """
    num_envs: int = 32
    num_steps: int = 64
    """Steps of each environment between updates."""
    minibatches: int = 4
    """Must divide num_envs * num_steps * agents."""
    epochs: int = 4
    learning_rate: float = 2e-3
    """Learning rate of Adam at the start. It falls linearly to zero over the run."""
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    """Clip range of the probability ratio."""
    entropy: float = 0.0
    """Weight of the entropy bonus."""
    value_weight: float = 0.5
    max_grad_norm: float = 1.0
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the tanh layers of actor and critic."""
    log_std: float = -0.5
    """Initial log standard deviation of continuous actions, in units of half the action range."""
    scale_rewards: bool = False
    """Whether to divide rewards by the spread of discounted returns.

    The divisor is the running root mean square of the returns, so that values are around one.
    ``ppo.yaml`` asks for it on every family that it does not name: on CartPole, four of eight seeds
    forgot the solved task without it, and none with it.
    """
    cost_weight: float = 0.0
    """Reward that a unit of constraint cost takes away in training.

    It has no effect on a task that has no cost.
    """
    stagger: bool = False
    """Whether to spread the environments' time limits evenly over an episode.

    Otherwise all episodes that reach the limit restart together, and in the updates between
    restarts the networks forget how to act at the start.
    """
    evaluate: Literal["mode", "sample"] = "mode"
    """Action of the trained policy: the most likely one, or a sample."""
    recurrent: Literal["gru", "lstm", "mingru", "gtrxl", "none"] | None = None
    """Memory of actor and critic (``memory_units.py``).

    None chooses ``gru`` if the card says that the task is partially observed.
    """
    memory: int = 64
    """Units of the memory."""
    reports: int = 15
    """Approximate number of chunks, and so of progress reports, in a run."""

    @property
    def batch(self) -> int:
        """Environment steps between updates."""
        return self.num_envs * self.num_steps


# -- networks --------------------------------------------------------------------------------------


class Actor(NamedTuple):
    """Network that maps a normalised observation to a distribution of actions.

    Some tasks describe each action by F features (``action_features``, shape ``(actions, F)``). The
    network then outputs F numbers, and the logit of an action is their product with its features
    plus a bias. With thousands of actions, the agent tries each one too rarely to learn about it
    alone, but it sees every feature often. A linear path from the observation to those F numbers
    runs beside the network. It learns first how the observation bears on each feature.
    """

    layers: tuple[Linear, ...]
    log_std: FloatArray
    """Log standard deviations, float32 ``(outputs,)``; None for discrete actions."""
    action_bias: FloatArray
    """float32 ``(actions,)``; None without action features."""
    direct: FloatArray
    """float32 ``(inputs, F)``; None without action features."""
    encoder: Encoder | None
    """Encodes the image; the critic uses it too. None without images."""

    @classmethod
    def initial(
        cls,
        generator: np.random.Generator,
        flat: FlatTask,
        inputs: int,
        hidden: tuple[int, ...],
        log_std: float,
    ) -> Actor:
        """Return an actor with ``inputs`` inputs.

        Its weights are orthogonal, small in the last layer; all else is zero.
        """
        features = flat.action_features
        outputs = flat.outputs if features is None else features.shape[1]
        layers = initial_layers(generator, (inputs, *hidden, outputs), gain=0.01)
        actor = cls(layers, log_std=None, action_bias=None, direct=None, encoder=None)
        if not flat.choices:
            actor = actor._replace(log_std=np.full(flat.outputs, log_std, np.float32))
        if features is not None:
            actor = actor._replace(
                action_bias=np.zeros(features.shape[0], np.float32),
                direct=np.zeros((inputs, features.shape[1]), np.float32),
            )
        if flat.image_shape is not None:
            actor = actor._replace(encoder=Encoder.initial(generator, flat.image_shape))
        return actor

    def __call__(
        self, flat: FlatTask, x: jax.Array, mask: jax.Array | None
    ) -> Categorical | Gaussian:
        """Return the distribution of actions for normalised observations.

        They are ``(..., features)``; images among the features are encoded.

        Inputs beyond the network's own are privileged; the actor ignores them.
        """
        x = x[..., : self.layers[0].weight.shape[0]]
        outputs = mlp(self.layers, x)
        if not flat.choices:
            return Gaussian(outputs, self.log_std)
        if flat.action_features is not None:
            outputs = (outputs + x @ self.direct) @ flat.action_features.T.astype(
                np.float32
            ) + self.action_bias
        if mask is not None:
            # Probability exactly 0, and no NaN in the entropy.
            outputs = jnp.where(mask, outputs, -1e9)
        return Categorical(tuple(jnp.split(outputs, np.cumsum(flat.choices)[:-1], -1)))


def actor_inputs(flat: FlatTask) -> int:
    """Count an actor's inputs: the features of the observation and the code of its image."""
    return flat.features + (0 if flat.image_shape is None else CODE_SIZE)


def encode_image(actor: Any, image: jax.Array | None) -> jax.Array | None:
    """Return the code of an image from an actor's encoder, or None without images."""
    return None if image is None else actor.encoder(image)


def append_code(flat: FlatTask, x: jax.Array, code: jax.Array | None) -> jax.Array:
    """Append the image code to normalised observations, in front of the privileged features."""
    if code is None:
        return x
    return jnp.concatenate([x[..., : flat.features], code, x[..., flat.features :]], -1)


class Networks(NamedTuple):
    """Separate actor and critic.

    The critic also reads privileged features (asymmetric actor-critic, Pinto et al. 2018,
    doi:10.15607/RSS.2018.XIV.008), because only training needs it.
    """

    actor: Actor
    critic: tuple[Linear, ...]

    @classmethod
    def initial(cls, flat: FlatTask, config: Config, seed: int) -> Networks:
        """Return networks with orthogonal weights and zero biases.

        The gain is sqrt 2, 0.01 in the actor's last layer and 1 in the critic's.
        """
        generator = np.random.default_rng(seed)
        inputs = actor_inputs(flat)
        actor = Actor.initial(generator, flat, inputs, config.hidden, config.log_std)
        critic = initial_layers(generator, (inputs + flat.privileged, *config.hidden, 1), gain=1.0)
        return cls(actor, critic)


# -- policy ----------------------------------------------------------------------------------------


class Policy(eqx.Module):
    """A trained policy: the actor and the moments that normalise its observations."""

    actor: Actor
    moments: Moments
    flat: FlatTask = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the most likely action or a sample."""
        x, mask = self.flat.observe(view.observation, view.action_mask)
        code = encode_image(self.actor, self.flat.image_in(view.observation))
        distribution = self.actor(
            self.flat, append_code(self.flat, self.moments.normalise(x), code), mask
        )
        return choose_action(self.flat, self.config, distribution, key), memory

    def action_probabilities(self, view: View) -> jax.Array:
        """Return the probability of each action of a single choice, ``(n,)``."""
        x, mask = self.flat.observe(view.observation, view.action_mask)
        distribution = self.actor(self.flat, self.moments.normalise(x), mask)
        return choice_probabilities(distribution, self.config.evaluate)

    def acting_parameters(self) -> ActingParameters:
        """Return the acting network as plain parameters, for export.

        Raises:
            ValueError: it reads an image.
        """
        return acting_parameters(self.actor, self.moments, self.flat, self.config)


def choose_action(
    flat: FlatTask, config: Config, distribution: Categorical | Gaussian, key: jax.Array
) -> jax.Array:
    """Return the action of a trained policy: the most likely one, or a sample."""
    if config.evaluate == "mode":
        return flat.env_action(distribution.mode())
    return flat.env_action(distribution.sample(distribution.noise(key, flat.noise_shape)))


def acting_parameters(
    actor: Actor, moments: Moments, flat: FlatTask, config: Config
) -> ActingParameters:
    """Return the plain parameters of an actor that reads normalised observations.

    Raises:
        ValueError: it reads an image.
    """
    if actor.encoder is not None:
        raise ValueError(
            f"A policy of {flat.task.card.id} reads an image, which cannot be exported."
        )
    return ActingParameters(
        moments=moments,
        layers=actor.layers,
        activation="tanh",
        choices=flat.choices,
        bounds=flat.bounds,
        sampled=config.evaluate == "sample",
        action_features=flat.action_features,
        direct=actor.direct,
        action_bias=actor.action_bias,
    )


# -- collect ---------------------------------------------------------------------------------------


class Transition(NamedTuple):
    """Recorded steps.

    The axes are T steps, N environments and A agents, then those of the value. On the host, the
    arrays are NumPy's.
    """

    x: jax.Array
    """Observation before the step, float32 ``(T, N, A, features + privileged)``; not normalised."""
    mask: jax.Array | None
    """Legal actions before the step, bool ``(T, N, A, outputs)``; None if all are always legal."""
    action: jax.Array
    """float32 ``(T, N, A, outputs)``, or the choices, int32 ``(T, N, A, choices)``."""
    log_prob: jax.Array
    """Log probability (or density) of the action when it was sampled, float32 ``(T, N, A)``."""
    reward: jax.Array
    """float32 ``(T, N, A)``."""
    next_x: jax.Array
    """Observation after the step, as ``x``: the final one where the episode ended."""
    terminated: jax.Array
    """bool ``(T, N, A)``: the task ended with this step, or the agent died in it."""
    over: jax.Array
    """bool ``(T, N, A)``: terminated or truncated."""
    image: jax.Array | None = None
    """Image before the step, uint8 ``(T, N, A, height, width, channels)``, not encoded.

    This field and the next two are None without images.
    """
    code: jax.Array | None = None
    """Code of the image, float32 ``(T, N, A, codes)``, by the encoder that sampled the action."""
    next_code: jax.Array | None = None
    """Code of the image after the step, as ``code``."""
    alive: jax.Array | None = None
    """bool ``(T, N, A)``: the agent was alive before the step; None where no agent dies."""
    acting: jax.Array | None = None
    """bool ``(T, N, A)``: it was the agent's turn; None where all act in every step."""


class TrainingState(NamedTuple):
    """State of a run between updates."""

    networks: Any
    """:class:`Networks`, or their counterpart in ``recurrent.py``."""
    optimiser: Any
    """State of Adam for all networks."""
    moments: Moments
    """Moments of the observations, which normalise them."""
    discounted: jax.Array
    """Discounted return so far of each running episode, float32 ``(N, A)``."""
    mean_square: jax.Array
    """Running mean of its square, float32 ``()``."""
    stream: Any
    """Running environments: a :class:`Stream`, or a ``HostStream`` for simulators on the host."""
    seed: jax.Array
    """Key data of the seed, uint32 ``(2,)``."""
    updates: jax.Array
    """Number of updates done, int32 ``()``."""


def sample_noise(flat: FlatTask, config: Config, key: jax.Array) -> jax.Array:
    """Return the random numbers for the actions of ``num_steps`` steps in every environment."""
    distribution = Categorical if flat.choices else Gaussian
    return distribution.noise(key, (config.num_steps, config.num_envs, *flat.noise_shape))


class Inputs(NamedTuple):
    """Inputs of actor and critic in every environment, as in :class:`Transition`.

    The axes are N environments and A agents, then those of the value.
    """

    x: jax.Array
    mask: jax.Array | None
    image: jax.Array | None
    code: jax.Array | None


def observe(flat: FlatTask, actor: Any, step: Step) -> Inputs:
    """Return what actor and critic read after a step."""
    image = jax.vmap(flat.image_in)(step.observation)
    x, mask = jax.vmap(flat.observe_step)(step)
    return Inputs(x, mask, image, encode_image(actor, image))


def step_environments(
    flat: FlatTask,
    config: Config,
    actor: Any,
    stream: Stream,
    inputs: Inputs,
    distribution: Any,
    noise: jax.Array,
) -> tuple[Stream, tuple[Transition, Returns]]:
    """Take one step in every environment, with actions sampled from a distribution."""
    action = distribution.sample(noise)
    last = stream.last
    stream, step, returns = step_episodes(flat, stream, action)
    reward = jax.vmap(flat.agent_rewards)(step.reward)
    if config.cost_weight and flat.task.has_cost:
        reward -= config.cost_weight * step.info["cost"][:, None]
    next_inputs = observe(flat, actor, step)
    terminated = jnp.repeat(step.terminated[:, None], flat.agents, 1)
    over = jnp.repeat((step.terminated | step.truncated)[:, None], flat.agents, 1)
    alive = last.info.get("alive")
    if alive is not None:
        terminated |= ~step.info["alive"]
        over |= ~step.info["alive"]
    transition = Transition(
        inputs.x,
        inputs.mask,
        action,
        distribution.log_prob(action),
        reward,
        next_inputs.x,
        terminated,
        over,
        image=inputs.image,
        code=inputs.code,
        next_code=next_inputs.code,
        alive=alive,
        acting=last.info.get("acting"),
    )
    return stream, (transition, returns)


def collect(
    flat: FlatTask, config: Config, training: TrainingState, key: jax.Array
) -> tuple[Stream, Transition, Returns]:
    """Take ``num_steps`` steps in every environment with the current policy.

    Episodes continue across updates.
    """
    actor = training.networks.actor
    moments = training.moments

    def step(stream: Stream, noise: jax.Array) -> tuple[Stream, tuple[Transition, Returns]]:
        inputs = observe(flat, actor, stream.last)
        distribution = actor(
            flat, append_code(flat, moments.normalise(inputs.x), inputs.code), inputs.mask
        )
        return step_environments(flat, config, actor, stream, inputs, distribution, noise)

    stream, (rollout, returns) = jax.lax.scan(
        step, training.stream, sample_noise(flat, config, key)
    )
    return stream, rollout, jax.tree.map(jnp.sum, returns)


# -- advantage -------------------------------------------------------------------------------------


def advantages(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    terminated: jax.Array,
    over: jax.Array,
    gamma: float,
    gae_lambda: float,
) -> jax.Array:
    """Return generalised advantages (Schulman et al. 2016, eq. 16).

    All arrays are ``(steps, ...)``.

    ``next_value`` is the value of the state after the step, before any reset. It counts unless that
    state is terminal: a time limit ends the episode but not the task, so the last state keeps its
    value. No advantage flows back across the end of an episode.
    """
    error = reward + gamma * jnp.where(terminated, 0, next_value) - value

    def step_back(
        next_advantage: jax.Array, step: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        error, over = step
        advantage = error + gamma * gae_lambda * jnp.where(over, 0, next_advantage)
        return advantage, advantage

    return jax.lax.scan(step_back, jnp.zeros_like(error[0]), (error, over), reverse=True)[1]


def discounted_returns(
    start: jax.Array, reward: jax.Array, over: jax.Array, gamma: float
) -> tuple[jax.Array, jax.Array]:
    """Return the discounted returns so far.

    There are those of the episodes that still run at the end, and those after each step.
    """

    def add_reward(
        total: jax.Array, step: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        reward, over = step
        total = gamma * total + reward
        return jnp.where(over, 0, total), total

    return jax.lax.scan(add_reward, start, (reward, over))


# -- update ----------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Data of an update, with one row for each of the B agents and steps.

    Fields that :class:`Transition` has too have its dtypes and its last axes.
    """

    x: jax.Array
    """Normalised features, float32 ``(B, features + privileged)``."""
    mask: jax.Array | None
    action: jax.Array
    log_prob: jax.Array
    advantage: jax.Array
    """float32 ``(B,)``, with mean 0 and deviation 1 over the batch."""
    target: jax.Array
    """Target of the critic, float32 ``(B,)``."""
    image: jax.Array | None = None
    """Image, not encoded; None without images."""
    alive: jax.Array | None = None
    """Rows that count, bool ``(B,)``; None if all do."""
    acting: jax.Array | None = None
    """Rows whose action was played, bool ``(B,)``; None if all were."""


def actions_played(rows: Transition | Batch) -> jax.Array | None:
    """Return which actions were played by a living agent whose turn it was; None for all."""
    if rows.acting is None or rows.alive is None:
        return rows.alive if rows.acting is None else rows.acting
    return rows.acting & rows.alive


def mean_of_living(values: jax.Array, alive: jax.Array | None) -> jax.Array:
    """Return the mean over the entries of agents that were alive; 0 if there are none."""
    if alive is None:
        return values.mean()
    return values.sum(where=alive) / jnp.maximum(alive.sum(), 1)


def loss(networks: Any, batch: Batch, flat: FlatTask, config: Config) -> jax.Array:
    """Return the clipped surrogate loss (Schulman et al. 2017, eqs. 7 and 9).

    The value loss is not clipped.
    """
    x = append_code(flat, batch.x, encode_image(networks.actor, batch.image))
    distribution = networks.actor(flat, x, batch.mask)
    ratio = jnp.exp(distribution.log_prob(batch.action) - batch.log_prob)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    surrogate = mean_of_living(
        jnp.minimum(ratio * batch.advantage, clipped * batch.advantage), actions_played(batch)
    )
    error = mlp(networks.critic, x)[:, 0] - batch.target
    bonus: jax.Array | float = 0.0
    if config.entropy:
        bonus = config.entropy * mean_of_living(distribution.entropy(), actions_played(batch))
    value_loss = config.value_weight * 0.5 * mean_of_living(error**2, batch.alive)
    return value_loss - surrogate - bonus


def optimiser(config: Config) -> optax.GradientTransformation:
    """Return Adam with a linearly falling learning rate.

    The norm of the whole gradient is bounded.
    """
    steps = config.chunks * config.chunk * config.epochs * config.minibatches
    rate = optax.linear_schedule(config.learning_rate, 0.0, steps)
    # Treat all weights as one vector, because a kernel for each array takes longer to compile.
    return optax.flatten(
        optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.adam(rate, eps=1e-5))
    )


def update(
    flat: FlatTask, config: Config, training: TrainingState
) -> tuple[TrainingState, Returns]:
    """Collect steps and learn from them."""
    collect_key, learn_key = split_keys(training)
    stream, rollout, returns = collect(flat, config, training, collect_key)
    return learn(flat, config, training._replace(stream=stream), rollout, learn_key), returns


def split_keys(training: TrainingState) -> tuple[jax.Array, ...]:
    """Return the two keys of an update: one for collecting, one for learning."""
    return tuple(jax.random.split(update_key(training.seed, training.updates)))


def learn(
    flat: FlatTask, config: Config, training: TrainingState, rollout: Transition, key: jax.Array
) -> TrainingState:
    """Learn from the collected steps for ``config.epochs`` epochs."""
    reward, training = scale_rewards(config, training, rollout)
    x = training.moments.normalise(rollout.x)
    next_x = training.moments.normalise(rollout.next_x)
    critic = training.networks.critic
    value = mlp(critic, append_code(flat, x, rollout.code))[..., 0]
    next_value = mlp(critic, append_code(flat, next_x, rollout.next_code))[..., 0]
    advantage, target = advantages_and_targets(config, rollout, reward, value, next_value)
    batch = Batch(
        x,
        rollout.mask,
        rollout.action,
        rollout.log_prob,
        advantage,
        target,
        rollout.image,
        rollout.alive,
        rollout.acting,
    )
    batch = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 3), batch)

    def descend(carry: tuple[Networks, Any], rows: jax.Array) -> tuple[tuple[Networks, Any], None]:
        networks, optimiser_state = carry
        minibatch = jax.tree.map(lambda leaf: leaf[rows], batch)
        gradient = jax.grad(loss)(networks, minibatch, flat, config)
        change, optimiser_state = optimiser(config).update(gradient, optimiser_state)
        return (optax.apply_updates(networks, change), optimiser_state), None

    orders = jax.random.bits(key, (config.epochs, config.batch * flat.agents)).argsort()
    minibatches = orders.reshape(config.epochs * config.minibatches, -1)
    carry = training.networks, training.optimiser
    (networks, optimiser_state), _ = jax.lax.scan(descend, carry, minibatches)

    moments = training.moments.update(jax.lax.collapse(rollout.x, 0, 3))
    return training._replace(
        networks=networks, optimiser=optimiser_state, moments=moments, updates=training.updates + 1
    )


def scale_rewards(
    config: Config, training: TrainingState, rollout: Transition
) -> tuple[jax.Array, TrainingState]:
    """Return the rewards to learn from, and the training state with an updated reward scale."""
    if not config.scale_rewards:
        return rollout.reward, training
    discounted, returns = discounted_returns(
        training.discounted, rollout.reward, rollout.over, config.gamma
    )
    mean_square = training.mean_square + (
        mean_of_living(returns**2, rollout.alive) - training.mean_square
    ) / (training.updates + 1)
    scaled = rollout.reward * jax.lax.rsqrt(mean_square + 1e-8)
    return scaled, training._replace(discounted=discounted, mean_square=mean_square)


def advantages_and_targets(
    config: Config, rollout: Transition, reward: jax.Array, value: jax.Array, next_value: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return normalised advantages and the targets of the critic.

    The advantages have mean 0 and deviation 1 over the actions that were played.
    """
    advantage = advantages(
        reward, value, next_value, rollout.terminated, rollout.over, config.gamma, config.gae_lambda
    )
    centred = advantage - mean_of_living(advantage, actions_played(rollout))
    deviation = advantage.std(where=actions_played(rollout))
    return centred / (deviation + 1e-8), advantage + value


# -- train -----------------------------------------------------------------------------------------


def start(
    flat: FlatTask, config: Config, networks: Any, seed: jax.Array, stream: Any
) -> TrainingState:
    """Return the state at the beginning of a run.

    ``seed`` is key data; ``stream`` holds the environments.
    """
    if config.stagger:
        start_times = (
            jnp.arange(config.num_envs, dtype=jnp.int32) * flat.task.card.horizon // config.num_envs
        )
        stream = stream._replace(episodes=stream.episodes._replace(t=start_times))
    return TrainingState(
        networks=networks,
        optimiser=optimiser(config).init(networks),
        moments=Moments.initial(flat.features + flat.privileged),
        discounted=jnp.zeros((config.num_envs, flat.agents)),
        mean_square=jnp.float32(0),
        stream=stream,
        seed=seed,
        updates=jnp.int32(0),
    )


def train_chunk(
    flat: FlatTask, config: Config, training: TrainingState
) -> tuple[TrainingState, Returns]:
    """Do ``config.chunk`` updates. This is a pure function, to be jitted and vmapped."""
    training, returns = jax.lax.scan(
        lambda training, _: update(flat, config, training), training, length=config.chunk
    )
    return training, jax.tree.map(jnp.sum, returns)


def trained_policy(flat: FlatTask, config: Config, training: TrainingState) -> Policy:
    """Return the policy of a training state. It sees no privileged features."""
    return Policy(training.networks.actor, training.moments.first(flat.features), flat, config)

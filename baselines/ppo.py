"""Proximal policy optimisation with a fully compiled training loop.

The algorithm is that of Schulman et al. 2017 (arXiv:1707.06347) with generalised advantage estimation (Schulman et al.
2016, arXiv:1506.02438). Details follow Andrychowicz et al. 2021 (arXiv:2006.05990) and Huang et al. 2022 (The 37
implementation details of PPO).

Read from top to bottom, as data flows: configuration, networks, collect, advantage, update, train. One program does a
chunk of updates (``lax.scan``). A host loop calls it about fifteen times, so that a run shows progress and can be
stopped. The program depends only on task and configuration: all seeds share it, and ``vmap`` trains many at once.

Single-agent and multi-agent tasks share one layout: arrays have an axis ``A`` for the agents, of length 1 for a single
agent. All agents share the networks (parameter sharing, Gupta et al. 2017).

If an observation contains an image, actor and critic share a convolutional encoder and read its output beside the other
features. If the card says that a task is partially observed, they get a memory (``recurrent_ppo.py``). The agent
itself, which chooses between these forms, is in ``ppo_agent.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.adapters.rollout import Stream, step_stream
from rlbench_suite.episode import Draw, Step, scalar_return
from rlbench_suite.evaluation.network import Network, normalise
from rlbench_suite.policy import View

from .actor import Actor, actor_inputs, append_code, encode_image
from .distributions import Categorical, Gaussian
from .flat_task import FlatTask
from .networks import Linear, Moments, initial_layers, mlp
from .training import Returns

# -- configuration -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """Hyperparameters; their values for each task and budget are in ``hyperparameters/ppo.yaml``."""

    total_steps: int
    """Environment steps, rounded up to whole chunks of updates. A step of many agents counts once."""
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
    """Divide rewards by the running root mean square of discounted returns, so that values are around one. ``ppo.yaml``
    asks for it on every family that it does not name: on CartPole, four of eight seeds forgot the solved task without
    it, and none with it."""
    cost_weight: float = 0.0
    """Reward that a unit of constraint cost takes away in training; without effect on a task that has no cost."""
    stagger: bool = False
    """Spread the environments' time limits evenly over an episode. Otherwise all episodes that reach the limit restart
    together, and in the updates between restarts the networks forget how to act at the start."""
    evaluate: Literal["mode", "sample"] = "mode"
    """Action of the trained policy: the most likely one, or a sample."""
    recurrent: Literal["gru", "lstm", "mingru", "gtrxl", "none"] | None = None
    """Memory of actor and critic (``memory_units.py``). None chooses ``gru`` if the card says that the task is
    partially observed."""
    memory: int = 64
    """Units of the memory."""
    reports: int = 15
    """Approximate number of chunks, and so of progress reports, in a run."""

    @property
    def batch(self) -> int:
        """Environment steps between updates."""
        return self.num_envs * self.num_steps

    @property
    def chunk(self) -> int:
        """Updates in one chunk."""
        return -(-self.total_steps // (self.batch * self.reports))

    @property
    def chunks(self) -> int:
        """Chunks in a run."""
        return -(-self.total_steps // (self.batch * self.chunk))


# -- networks ------------------------------------------------------------------------------------------------------


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
        return cls(actor, initial_layers(generator, (inputs + flat.privileged, *config.hidden, 1), gain=1.0))


class PPOPolicy(eqx.Module):
    """A trained policy: the actor and the moments that normalise its observations."""

    actor: Actor
    moments: Moments
    flat: FlatTask = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    def initial(self, params: Any) -> tuple[()]:
        """Return an empty memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the most likely action or a sample."""
        x, mask = self.flat.observe(view.observation, view.action_mask)
        code = encode_image(self.actor, self.flat.image_in(view.observation))
        distribution = self.actor(self.flat, append_code(self.flat, self.moments.normalise(x), code), mask)
        return choose_action(self.flat, self.config, distribution, key), memory

    def network(self) -> Network:
        """Return the acting network.

        Raises:
            ValueError: it reads an image.
        """
        layers = normalise(self.moments) + self.actor.acting_layers(self.flat)
        return Network(tuple(layers), self.flat.choices, self.config.evaluate == "sample")


def choose_action(flat: FlatTask, config: Config, distribution: Categorical | Gaussian, key: jax.Array) -> jax.Array:
    """Return the action of a trained policy: the most likely one, or a sample."""
    if config.evaluate == "mode":
        return flat.env_action(distribution.mode())
    return flat.env_action(distribution.sample(distribution.noise(key, flat.noise_shape)))


# -- collect -------------------------------------------------------------------------------------------------------


class Transition(NamedTuple):
    """Recorded steps. Axes: steps, environments, agents, then the value's own."""

    x: Any
    """Observation before the step."""
    mask: Any
    action: Any
    log_prob: Any
    reward: Any
    next_x: Any
    """Observation after the step: the final one where the episode ended."""
    terminated: Any
    over: Any
    """Terminated or truncated."""
    image: Any = None
    """Image before the step, not encoded. This field and the next two are None without images."""
    code: Any = None
    """Code of the image, from the encoder as it was during collection."""
    next_code: Any = None
    """Code of the image after the step."""


class TrainingState(NamedTuple):
    """State of a run between updates."""

    networks: Any
    """:class:`Networks`, or their counterpart in ``recurrent_ppo``."""
    optimiser: Any
    moments: Moments
    discounted: Any
    """Discounted return so far of each running episode, ``(environments, A)``."""
    mean_square: Any
    """Running mean of its square."""
    stream: Any
    """Running environments: a :class:`Stream`, or a ``HostStream`` for simulators on the host."""
    seed: Any
    """Key data of the seed."""
    updates: Any
    """Updates done."""


def draw_noise(flat: FlatTask, config: Config, key: jax.Array) -> jax.Array:
    """Draw the random numbers for the actions of ``num_steps`` steps in every environment."""
    kind = Categorical if flat.choices else Gaussian
    return kind.noise(key, (config.num_steps, config.num_envs, *flat.noise_shape))


class Observed(NamedTuple):
    """Inputs of actor and critic in every environment; the features are not normalised."""

    x: Any
    mask: Any
    image: Any
    code: Any
    """Code of the image."""


def observe(flat: FlatTask, actor: Any, step: Step) -> Observed:
    """Return what actor and critic observe after a step."""
    image = jax.vmap(flat.image_in)(step.observation)
    return Observed(*jax.vmap(flat.observe_step)(step), image, encode_image(actor, image))


def step_environments(
    flat: FlatTask, config: Config, actor: Any, stream: Stream, now: Observed, distribution: Any, noise: jax.Array
) -> tuple[Stream, tuple[Transition, Returns]]:
    """Take one step in every environment, with actions drawn from a distribution."""
    task = flat.task
    action = distribution.sample(noise)
    limit, draw = np.int32(task.card.horizon), Draw.parse("train", task)
    stream, made, totals = step_stream(task, stream, jax.vmap(flat.env_action)(action), limit, draw)
    over = made.terminated | made.truncated
    reward = jax.vmap(flat.agent_rewards)(made.reward)
    if config.cost_weight and task.has_cost:
        reward -= config.cost_weight * made.info["cost"][:, None]
    after = observe(flat, actor, made)
    transition = Transition(
        now.x,
        now.mask,
        action,
        distribution.log_prob(action),
        reward,
        after.x,
        terminated=jnp.repeat(made.terminated[:, None], flat.agents, 1),
        over=jnp.repeat(over[:, None], flat.agents, 1),
        image=now.image,
        code=now.code,
        next_code=after.code,
    )
    return stream, (transition, Returns(jnp.where(over, scalar_return(task, totals), 0).sum(), over.sum()))


def collect(
    flat: FlatTask, config: Config, training: TrainingState, key: jax.Array
) -> tuple[Stream, Transition, Returns]:
    """Take ``num_steps`` steps in every environment with the current policy. Episodes continue across updates."""
    actor, moments = training.networks.actor, training.moments

    def step(stream: Stream, noise: jax.Array) -> tuple[Stream, tuple[Transition, Returns]]:
        now = observe(flat, actor, stream.last)
        distribution = actor(flat, append_code(flat, moments.normalise(now.x), now.code), now.mask)
        return step_environments(flat, config, actor, stream, now, distribution, noise)

    stream, (transitions, ended) = jax.lax.scan(step, training.stream, draw_noise(flat, config, key))
    return stream, transitions, jax.tree.map(jnp.sum, ended)


# -- advantage -----------------------------------------------------------------------------------------------------


def advantages(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    terminated: jax.Array,
    over: jax.Array,
    gamma: float,
    gae_lambda: float,
) -> jax.Array:
    """Return generalised advantages (Schulman et al. 2016, eq. 16); all arrays are ``(steps, ...)``.

    ``next_value`` is the value of the state after the step, before any reset. It counts unless that state is terminal:
    a time limit ends the episode but not the task, so the last state keeps its value. No advantage flows back across
    the end of an episode.
    """
    error = reward + gamma * jnp.where(terminated, 0, next_value) - value

    def back(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, over = now
        advantage = error + gamma * gae_lambda * jnp.where(over, 0, later)
        return advantage, advantage

    return jax.lax.scan(back, jnp.zeros_like(error[0]), (error, over), reverse=True)[1]


def discount(start: jax.Array, reward: jax.Array, over: jax.Array, gamma: float) -> tuple[jax.Array, jax.Array]:
    """Return the discounted returns so far: of the episodes that still run at the end, and after each step."""

    def step(before: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, over = now
        total = gamma * before + reward
        return jnp.where(over, 0, total), total

    return jax.lax.scan(step, start, (reward, over))


# -- update --------------------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Data of an update, with one row for each agent and step."""

    x: Any
    """Normalised features."""
    mask: Any
    action: Any
    log_prob: Any
    advantage: Any
    target: Any
    """Target of the critic."""
    image: Any = None
    """Image, not encoded; None without images."""


def loss(networks: Any, batch: Batch, flat: FlatTask, config: Config) -> jax.Array:
    """Return the clipped surrogate loss (Schulman et al. 2017, eqs. 7 and 9); the value loss is not clipped."""
    x = append_code(flat, batch.x, encode_image(networks.actor, batch.image))
    distribution = networks.actor(flat, x, batch.mask)
    ratio = jnp.exp(distribution.log_prob(batch.action) - batch.log_prob)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    surrogate = jnp.minimum(ratio * batch.advantage, clipped * batch.advantage).mean()
    error = mlp(networks.critic, x)[:, 0] - batch.target
    bonus = config.entropy * distribution.entropy().mean() if config.entropy else 0.0
    return config.value_weight * 0.5 * (error**2).mean() - surrogate - bonus


def optimiser(config: Config) -> optax.GradientTransformation:
    """Return Adam with a linearly falling learning rate and a bound on the norm of the whole gradient."""
    steps = config.chunks * config.chunk * config.epochs * config.minibatches
    rate = optax.linear_schedule(config.learning_rate, 0.0, steps)
    # Treat all weights as one vector, because a kernel for each array takes longer to compile.
    return optax.flatten(optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.adam(rate, eps=1e-5)))


def update(flat: FlatTask, config: Config, training: TrainingState) -> tuple[TrainingState, Returns]:
    """Collect steps and learn from them."""
    collect_key, learn_key = split_keys(training)
    stream, seen, ended = collect(flat, config, training, collect_key)
    return learn(flat, config, training._replace(stream=stream), seen, learn_key), ended


def split_keys(training: TrainingState) -> tuple[jax.Array, ...]:
    """Return the two keys of an update: one for collecting, one for learning."""
    _, own_key = jax.random.split(jax.random.wrap_key_data(training.seed))
    return tuple(jax.random.split(jax.random.fold_in(own_key, training.updates)))


def scale_rewards(config: Config, training: TrainingState, seen: Transition) -> tuple[jax.Array, TrainingState]:
    """Return the rewards to learn from, and the training state with an updated reward scale."""
    if not config.scale_rewards:
        return seen.reward, training
    discounted, returns = discount(training.discounted, seen.reward, seen.over, config.gamma)
    mean_square = training.mean_square + ((returns**2).mean() - training.mean_square) / (training.updates + 1)
    scaled = seen.reward * jax.lax.rsqrt(mean_square + 1e-8)
    return scaled, training._replace(discounted=discounted, mean_square=mean_square)


def advantages_and_targets(
    config: Config, seen: Transition, reward: jax.Array, value: jax.Array, next_value: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return advantages with mean 0 and deviation 1 over the batch, and the targets of the critic."""
    advantage = advantages(reward, value, next_value, seen.terminated, seen.over, config.gamma, config.gae_lambda)
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8), advantage + value


def learn(flat: FlatTask, config: Config, training: TrainingState, seen: Transition, key: jax.Array) -> TrainingState:
    """Learn from the collected steps for ``config.epochs`` epochs."""
    reward, training = scale_rewards(config, training, seen)
    x, next_x = training.moments.normalise(seen.x), training.moments.normalise(seen.next_x)
    value, next_value = (
        mlp(training.networks.critic, append_code(flat, *inputs))[..., 0]
        for inputs in ((x, seen.code), (next_x, seen.next_code))
    )
    advantage, target = advantages_and_targets(config, seen, reward, value, next_value)
    batch = Batch(x, seen.mask, seen.action, seen.log_prob, advantage, target, seen.image)
    batch = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 3), batch)

    def descend(carry: tuple[Networks, Any], minibatch: jax.Array) -> tuple[tuple[Networks, Any], None]:
        networks, state = carry
        chosen = jax.tree.map(lambda leaf: leaf[minibatch], batch)
        gradient = jax.grad(loss)(networks, chosen, flat, config)
        change, state = optimiser(config).update(gradient, state)
        return (optax.apply_updates(networks, change), state), None

    size = config.batch * flat.agents
    orders = jax.random.bits(key, (config.epochs, size)).argsort()
    minibatches = orders.reshape(config.epochs * config.minibatches, -1)
    (networks, state), _ = jax.lax.scan(descend, (training.networks, training.optimiser), minibatches)

    moments = training.moments.update(jax.lax.collapse(seen.x, 0, 3))
    return training._replace(networks=networks, optimiser=state, moments=moments, updates=training.updates + 1)


# -- train ---------------------------------------------------------------------------------------------------------


def start(flat: FlatTask, config: Config, networks: Any, seed: jax.Array, stream: Any) -> TrainingState:
    """Return the state at the beginning of a run. ``seed`` is key data; ``stream`` holds the environments."""
    known = flat.features + flat.privileged
    if config.stagger:
        already = jnp.arange(config.num_envs, dtype=jnp.int32) * flat.task.card.horizon // config.num_envs
        stream = stream._replace(episodes=stream.episodes._replace(t=already))
    return TrainingState(
        networks=networks,
        optimiser=optimiser(config).init(networks),
        moments=Moments.initial(known),
        discounted=jnp.zeros((config.num_envs, flat.agents)),
        mean_square=jnp.float32(0),
        stream=stream,
        seed=seed,
        updates=jnp.int32(0),
    )


def train_chunk(flat: FlatTask, config: Config, training: TrainingState) -> tuple[TrainingState, Returns]:
    """Do ``config.chunk`` updates. This is a pure function, to be jitted and vmapped."""
    training, ended = jax.lax.scan(lambda running, _: update(flat, config, running), training, length=config.chunk)
    return training, jax.tree.map(jnp.sum, ended)

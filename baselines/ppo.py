"""Proximal policy optimisation, the whole training loop compiled.

Schulman et al. 2017 (arXiv:1707.06347) with generalised advantages (Schulman et al. 2016, arXiv:1506.02438); details
after Andrychowicz et al. 2021 (arXiv:2006.05990) and Huang et al. 2022 (The 37 implementation details of PPO).

Read from top to bottom, as data flows: configuration, networks, collect, advantage, update, train. One program does a
chunk of updates (``lax.scan``); a host loop calls it some fifteen times, so that a run shows progress and can be
stopped. The program depends on task and configuration only: all seeds share it, and ``vmap`` trains many at once.

One agent or many: everything is laid out in rows, one an agent (axis ``A``, of length 1 for a single agent), and all
rows share the networks (parameter sharing, Gupta et al. 2017).

Where an observation is or has a picture, actor and critic share a convolutional encoder, and see what it makes of the
picture beside the other numbers. Where the card says that a task is partially observed, they get a memory:
``recurrent_ppo.py``.
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
from rlbench_suite.policy import View

from .actor import Actor, code_of, encoded, seen_features
from .distributions import Categorical, Gaussian
from .networks import Linear, Moments, initial_layers, multilayer
from .rows import Rows
from .training import Returns

# -- configuration -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """Hyperparameters. Values by task and budget are data: ``hyperparameters/ppo.yaml``."""

    total_steps: int
    """Environment steps (a step of many agents counts once); rounded up to whole chunks of updates."""
    num_envs: int = 32
    num_steps: int = 64
    """Steps of every environment between updates."""
    minibatches: int = 4
    """Must divide num_envs * num_steps * agents."""
    epochs: int = 4
    learning_rate: float = 2e-3
    """Of Adam; falls linearly to zero over the run."""
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    """Of the probability ratio."""
    entropy: float = 0.0
    """Weight of the entropy bonus."""
    value_weight: float = 0.5
    max_grad_norm: float = 1.0
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the tanh layers of actor and critic."""
    log_std: float = -0.5
    """Initial log standard deviation of continuous actions, in units of half the action range."""
    scale_rewards: bool = False
    """Divide rewards by the running root mean square of discounted returns, so that values are of order one."""
    stagger: bool = False
    """Spread the environments' time limits evenly over an episode. Otherwise all that last to the limit begin anew
    together, and what the networks do at the beginning drifts in the updates between."""
    evaluate: Literal["mode", "sample"] = "mode"
    """What the trained policy does: its most likely action, or a sample."""
    recurrent: Literal["gru", "none"] | None = None
    """A memory for actor and critic; None asks the card whether the task is partially observed."""
    memory: int = 64
    """Numbers that it holds."""
    reports: int = 15
    """Chunks of a run, about."""

    @property
    def batch(self) -> int:
        """Environment steps of one update."""
        return self.num_envs * self.num_steps

    @property
    def chunk(self) -> int:
        """Updates of one chunk."""
        return -(-self.total_steps // (self.batch * self.reports))

    @property
    def chunks(self) -> int:
        """Chunks of a run."""
        return -(-self.total_steps // (self.batch * self.chunk))


# -- networks ------------------------------------------------------------------------------------------------------


class Networks(NamedTuple):
    """Actor and critic, separate. The critic also sees what is privileged (asymmetric actor-critic, Pinto et al. 2018,
    doi:10.15607/RSS.2018.XIV.008): it only serves training.
    """

    actor: Actor
    critic: tuple[Linear, ...]

    @classmethod
    def initial(cls, rows: Rows, config: Config, seed: int) -> Networks:
        """Orthogonal weights (gain sqrt 2; 0.01 at the actor's end, 1 at the critic's) and zero biases.

        Made by NumPy on the host: batched QR inside a compiled program can deadlock small CPUs.
        """
        generator = np.random.default_rng(seed)
        inputs = seen_features(rows)
        actor = Actor.initial(generator, rows, inputs, config.hidden, config.log_std)
        return cls(actor, initial_layers(generator, (inputs + rows.privileged, *config.hidden, 1), gain=1.0))


class PPOPolicy(eqx.Module):
    """A trained policy: the actor and the normalisation of its observations, frozen."""

    actor: Actor
    moments: Moments
    rows: Rows = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    def initial(self, params: Any) -> tuple[()]:
        """No memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """The most likely action, or a sample."""
        x, mask = self.rows.look(view.observation, view.action_mask)
        code = code_of(self.actor, self.rows.picture_in(view.observation))
        distribution = self.actor(self.rows, encoded(self.rows, self.moments.normalise(x), code), mask)
        return decide(self.rows, self.config, distribution, key), memory


def decide(rows: Rows, config: Config, distribution: Categorical | Gaussian, key: jax.Array) -> jax.Array:
    """What a trained policy does: the most likely action, or a sample."""
    if config.evaluate == "mode":
        return rows.action(distribution.mode())
    return rows.action(distribution.sample(distribution.noise(key, rows.noise_shape)))


# -- collect -------------------------------------------------------------------------------------------------------


class Transition(NamedTuple):
    """What is kept of a step. Axes: steps, environments, agents, then the value's own."""

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
    picture: Any = None
    """Before the step, not encoded; None without pictures, as the next two."""
    code: Any = None
    """What the encoder of that time made of it."""
    next_code: Any = None


class Training(NamedTuple):
    """All that a run carries from update to update."""

    networks: Any
    """:class:`Networks`, or those of ``recurrent_ppo``."""
    optimiser: Any
    moments: Moments
    discounted: Any
    """Discounted return so far of each running episode, ``(environments, A)``."""
    mean_square: Any
    """Running mean of its square."""
    stream: Any
    """A :class:`Stream`, or what a simulator of the host has instead."""
    seed: Any
    """Key data of the seed."""
    updates: Any
    """Updates done."""


def make_noise(rows: Rows, config: Config, key: jax.Array) -> jax.Array:
    """What the actions of ``num_steps`` steps of every environment are drawn with."""
    kind = Categorical if rows.choices else Gaussian
    return kind.noise(key, (config.num_steps, config.num_envs, *rows.noise_shape))


class Sight(NamedTuple):
    """What is seen of every environment; the observation is not normalised."""

    x: Any
    mask: Any
    picture: Any
    code: Any
    """What the encoder makes of the picture."""


def look(rows: Rows, actor: Any, step: Step) -> Sight:
    """What a step shows."""
    picture = jax.vmap(rows.picture_in)(step.observation)
    return Sight(*jax.vmap(rows.see)(step), picture, code_of(actor, picture))


def play(
    rows: Rows, actor: Any, stream: Stream, now: Sight, distribution: Any, noise: jax.Array
) -> tuple[Stream, tuple[Transition, Returns]]:
    """One step of every environment, its actions drawn from a distribution."""
    task = rows.task
    action = distribution.sample(noise)
    limit, draw = np.int32(task.card.horizon), Draw.parse("train", task)
    stream, made, totals = step_stream(task, stream, jax.vmap(rows.action)(action), limit, draw)
    over = made.terminated | made.truncated
    after = look(rows, actor, made)
    transition = Transition(
        now.x,
        now.mask,
        action,
        distribution.log_prob(action),
        jax.vmap(rows.reward)(made.reward),
        after.x,
        terminated=jnp.repeat(made.terminated[:, None], rows.agents, 1),
        over=jnp.repeat(over[:, None], rows.agents, 1),
        picture=now.picture,
        code=now.code,
        next_code=after.code,
    )
    return stream, (transition, Returns(jnp.where(over, scalar_return(task, totals), 0).sum(), over.sum()))


def collect(rows: Rows, config: Config, training: Training, key: jax.Array) -> tuple[Stream, Transition, Returns]:
    """``num_steps`` steps of every environment under the present policy. Episodes run on between updates."""
    actor, moments = training.networks.actor, training.moments

    def step(stream: Stream, noise: jax.Array) -> tuple[Stream, tuple[Transition, Returns]]:
        now = look(rows, actor, stream.last)
        distribution = actor(rows, encoded(rows, moments.normalise(now.x), now.code), now.mask)
        return play(rows, actor, stream, now, distribution, noise)

    stream, (transitions, ended) = jax.lax.scan(step, training.stream, make_noise(rows, config, key))
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
    """Generalised advantages (Schulman et al. 2016, eq. 16), all arrays ``(steps, ...)``.

    ``next_value`` is the value of the state that the step led to, before any reset. It counts unless that state is
    terminal: a time limit ends the episode but not the task, so its last state keeps its value. Nothing flows back
    across the end of an episode, whatever ended it.
    """
    error = reward + gamma * jnp.where(terminated, 0, next_value) - value

    def back(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, over = now
        advantage = error + gamma * gae_lambda * jnp.where(over, 0, later)
        return advantage, advantage

    return jax.lax.scan(back, jnp.zeros_like(error[0]), (error, over), reverse=True)[1]


def discount(start: jax.Array, reward: jax.Array, over: jax.Array, gamma: float) -> tuple[jax.Array, jax.Array]:
    """Discounted returns so far, forwards: those of the episodes running at the end, and those after each step."""

    def step(before: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, over = now
        total = gamma * before + reward
        return jnp.where(over, 0, total), total

    return jax.lax.scan(step, start, (reward, over))


# -- update --------------------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """What an update learns from; one row an agent and step."""

    x: Any
    """Normalised."""
    mask: Any
    action: Any
    log_prob: Any
    advantage: Any
    target: Any
    """Of the value."""
    picture: Any = None
    """Not encoded; None without pictures."""


def loss(networks: Any, batch: Batch, rows: Rows, config: Config) -> jax.Array:
    """Clipped surrogate objective (Schulman et al. 2017, eqs. 7 and 9); the value loss is not clipped."""
    x = encoded(rows, batch.x, code_of(networks.actor, batch.picture))
    distribution = networks.actor(rows, x, batch.mask)
    ratio = jnp.exp(distribution.log_prob(batch.action) - batch.log_prob)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    surrogate = jnp.minimum(ratio * batch.advantage, clipped * batch.advantage).mean()
    error = multilayer(networks.critic, x)[:, 0] - batch.target
    bonus = config.entropy * distribution.entropy().mean() if config.entropy else 0.0
    return config.value_weight * 0.5 * (error**2).mean() - surrogate - bonus


def optimiser(config: Config) -> optax.GradientTransformation:
    """Adam with a linearly falling learning rate and a bound on the norm of the whole gradient."""
    steps = config.chunks * config.chunk * config.epochs * config.minibatches
    rate = optax.linear_schedule(config.learning_rate, 0.0, steps)
    # All weights as one vector: a kernel for each array takes longer to compile.
    return optax.flatten(optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.adam(rate, eps=1e-5)))


def update(rows: Rows, config: Config, training: Training) -> tuple[Training, Returns]:
    """Collect, then learn from it for some epochs."""
    collect_key, learn_key = update_keys(training)
    stream, seen, ended = collect(rows, config, training, collect_key)
    return learn(rows, config, training._replace(stream=stream), seen, learn_key), ended


def update_keys(training: Training) -> tuple[jax.Array, ...]:
    """The keys of an update: to collect with, and to learn with."""
    _, own_key = jax.random.split(jax.random.wrap_key_data(training.seed))
    return tuple(jax.random.split(jax.random.fold_in(own_key, training.updates)))


def scaled_rewards(config: Config, training: Training, seen: Transition) -> tuple[jax.Array, Training]:
    """The rewards to learn from, and the run with the scale it now knows."""
    if not config.scale_rewards:
        return seen.reward, training
    discounted, returns = discount(training.discounted, seen.reward, seen.over, config.gamma)
    mean_square = training.mean_square + ((returns**2).mean() - training.mean_square) / (training.updates + 1)
    scaled = seen.reward * jax.lax.rsqrt(mean_square + 1e-8)
    return scaled, training._replace(discounted=discounted, mean_square=mean_square)


def aims(
    config: Config, seen: Transition, reward: jax.Array, value: jax.Array, next_value: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Advantages, of mean 0 and deviation 1 over the batch, and what the critic should have said."""
    advantage = advantages(reward, value, next_value, seen.terminated, seen.over, config.gamma, config.gae_lambda)
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8), advantage + value


def learn(rows: Rows, config: Config, training: Training, seen: Transition, key: jax.Array) -> Training:
    """Some epochs over the steps just seen."""
    reward, training = scaled_rewards(config, training, seen)
    x, next_x = training.moments.normalise(seen.x), training.moments.normalise(seen.next_x)
    value, next_value = (
        multilayer(training.networks.critic, encoded(rows, *inputs))[..., 0]
        for inputs in ((x, seen.code), (next_x, seen.next_code))
    )
    advantage, target = aims(config, seen, reward, value, next_value)
    batch = Batch(x, seen.mask, seen.action, seen.log_prob, advantage, target, seen.picture)
    batch = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 3), batch)

    def descend(carry: tuple[Networks, Any], minibatch: jax.Array) -> tuple[tuple[Networks, Any], None]:
        networks, state = carry
        chosen = jax.tree.map(lambda leaf: leaf[minibatch], batch)
        gradient = jax.grad(loss)(networks, chosen, rows, config)
        change, state = optimiser(config).update(gradient, state)
        return (optax.apply_updates(networks, change), state), None

    size = config.batch * rows.agents
    orders = jax.random.bits(key, (config.epochs, size)).argsort()
    minibatches = orders.reshape(config.epochs * config.minibatches, -1)
    (networks, state), _ = jax.lax.scan(descend, (training.networks, training.optimiser), minibatches)

    moments = training.moments.update(jax.lax.collapse(seen.x, 0, 3))
    return training._replace(networks=networks, optimiser=state, moments=moments, updates=training.updates + 1)


# -- train ---------------------------------------------------------------------------------------------------------


def start(rows: Rows, config: Config, networks: Any, seed: jax.Array, stream: Any) -> Training:
    """The beginning of a run; ``seed`` is key data, ``stream`` its environments."""
    known = rows.features + rows.privileged
    if config.stagger:
        already = jnp.arange(config.num_envs, dtype=jnp.int32) * rows.task.card.horizon // config.num_envs
        stream = stream._replace(episodes=stream.episodes._replace(t=already))
    return Training(
        networks=networks,
        optimiser=optimiser(config).init(networks),
        moments=Moments(jnp.zeros(known), jnp.ones(known), jnp.float32(0)),
        discounted=jnp.zeros((config.num_envs, rows.agents)),
        mean_square=jnp.float32(0),
        stream=stream,
        seed=seed,
        updates=jnp.int32(0),
    )


def train_chunk(rows: Rows, config: Config, training: Training) -> tuple[Training, Returns]:
    """``config.chunk`` updates; a pure function, to be jitted and vmapped."""
    training, ended = jax.lax.scan(lambda running, _: update(rows, config, running), training, length=config.chunk)
    return training, jax.tree.map(jnp.sum, ended)

"""Learn a game by looking ahead: AlphaZero, with the search of Gumbel MuZero.

A tree search plays each move of self-play: it knows the rules, and a network tells it which moves
to try and what positions are worth (Silver et al. 2018, doi:10.1126/science.aar6404). The network
learns to prefer the moves that the search came to prefer, and to foresee the outcomes of its games.
Few simulations suffice where they improve on the network for certain (Danihelka et al. 2022,
https://openreview.net/forum?id=bERaNdoegnO); mctx has that search.

It takes a game of two in turns in which both sides see everything and nothing is left to chance,
and whose sides win what the other loses. All values are those of the side to move.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import optax

from rlbench_suite.adapters.rollout import Stream
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.episode import seed_key
from rlbench_suite.core.game import is_seat_of_two
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task

from ..configuration import InChunks
from ..flat_task import FlatTask, flatten_task
from ..learning_agent import LearningAgent
from ..networks import Linear, Moments, initial_layers, mlp
from ..training import Returns, begin_episodes, get_compiled, step_episodes, update_key

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(InChunks):
    """Hyperparameters, in ``hyperparameters/alphazero.yaml``."""

    total_steps: int
    """Moves of both sides, rounded up to whole updates."""
    num_envs: int = 128
    """Games that are played side by side."""
    num_steps: int = 32
    """Moves of each game between updates."""
    simulations: int = 32
    """Positions that a search adds to its tree, in training and later."""
    minibatches: int = 8
    """Must divide num_envs * num_steps."""
    epochs: int = 4
    learning_rate: float = 2e-3
    """Learning rate of Adam at the start. It falls linearly to zero over the run."""
    max_grad_norm: float = 1.0
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the tanh layers of both networks."""
    reports: int = 15
    """Approximate number of progress reports."""

    def __post_init__(self) -> None:
        for name in ("total_steps", "num_envs", "num_steps", "simulations", "epochs", "reports"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if self.minibatches < 1 or self.batch % self.minibatches:
            raise ValueError(
                f"minibatches={self.minibatches} must divide the batch of {self.num_envs} games x "
                f"{self.num_steps} moves."
            )

    @property
    def batch(self) -> int:
        """Moves between updates."""
        return self.num_envs * self.num_steps


# -- networks --------------------------------------------------------------------------------------


class Networks(NamedTuple):
    """Two multilayer perceptrons that read what the side to move observes."""

    policy: tuple[Linear, ...]
    value: tuple[Linear, ...]

    @classmethod
    def initial(cls, flat: FlatTask, config: Config, seed: int) -> Networks:
        """Return networks with orthogonal weights, which prefer no move and no side."""
        generator = np.random.default_rng(seed)
        hidden = flat.features, *config.hidden
        return cls(
            initial_layers(generator, (*hidden, flat.outputs), gain=0.01),
            initial_layers(generator, (*hidden, 1), gain=0.01),
        )

    def logits(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the logits of moves ``(..., n)``; those of illegal ones are the lowest."""
        logits = mlp(self.policy, x)
        return jnp.where(mask, logits, jnp.finfo(logits.dtype).min)

    def values(self, x: jax.Array) -> jax.Array:
        """Return the expected outcomes ``(...)`` in units of a win, -1 to 1."""
        return jnp.tanh(mlp(self.value, x)[..., 0])


# -- search ----------------------------------------------------------------------------------------


class Position(NamedTuple):
    """A node of the tree: a position of the game."""

    state: Any
    params: Any


class Sight(NamedTuple):
    """The observation of the side to move."""

    mover: jax.Array
    """Agent whose turn it is, int32 ``()``."""
    x: jax.Array
    """Features, float32 ``(features,)``."""
    mask: jax.Array
    """Legal moves, bool ``(n,)``."""


def look(game: FlatTask, position: Position) -> Sight:
    """Return what the side to move observes; where the game is over, what either does."""
    state, params = position
    observation = game.task.observation(state, jax.random.key(0), params)
    x, mask = game.observe(observation, game.task.action_mask(state, params))
    assert mask is not None
    acting: Any = game.task.acting(state, params)
    mover = acting.argmax().astype(jnp.int32)
    return Sight(mover, x[mover], mask[mover])


def play_move(
    game: FlatTask, position: Position, action: jax.Array
) -> tuple[Position, jax.Array, jax.Array]:
    """Make a move of the side whose turn it is.

    Returns:
        The next position, what the move earned the side that made it, and whether the game is over.
        Nothing in it is random, so it takes no key.
    """
    task = game.task
    state, params = position
    key = jax.random.key(0)
    acting: Any = task.acting(state, params)
    joint = jnp.where(acting, action, task.noop_action()).astype(jnp.int32)
    next_state = task.transition(state, joint, key, params)
    rewards = task.reward(state, joint, next_state, key, params)
    over = task.terminal(next_state, key, params)
    return Position(next_state, params), rewards[acting.argmax()], over


def sign(mover: jax.Array, next_mover: jax.Array, over: jax.Array) -> jax.Array:
    """Return the factor of the next value in the value before it, float32.

    It is -1 where the turn passes, 1 where a side moves again, and 0 where the game is over.
    """
    return jnp.where(over, 0.0, jnp.where(mover == next_mover, 1.0, -1.0))


def search(
    game: FlatTask,
    config: Config,
    networks: Networks,
    moments: Moments,
    positions: Position,
    key: jax.Array,
    noise: float,
) -> Any:
    """Search from a batch of positions of running games.

    Args:
        game: the game of both sides.
        config: the hyperparameters.
        networks: the guide of the search.
        moments: those of observations.
        positions: arrays of ``n`` positions.
        key: key of the search.
        noise: scale of the noise by which a search explores, 1 in training; without noise, 0, it
            plays the best move that it knows of.

    Returns:
        mctx's output: the moves ``action``, int32 ``(n,)``, and the moves' probabilities that the
        search ends with, ``action_weights``.
    """

    def guess(sight: Sight) -> tuple[jax.Array, jax.Array]:
        x = moments.normalise(sight.x)
        return networks.logits(x, sight.mask), networks.values(x)

    def expand(_: Any, __: jax.Array, actions: jax.Array, before: Position) -> tuple[Any, Position]:
        positions, rewards, over = jax.vmap(partial(play_move, game))(before, actions)
        movers = jax.vmap(partial(look, game))(before).mover
        sights = jax.vmap(partial(look, game))(positions)
        logits, values = guess(sights)
        discounts = sign(movers, sights.mover, over)
        output = mctx.RecurrentFnOutput(
            reward=rewards, discount=discounts, prior_logits=logits, value=values
        )
        return output, positions

    sights = jax.vmap(partial(look, game))(positions)
    logits, values = guess(sights)
    return mctx.gumbel_muzero_policy(
        params=(),
        rng_key=key,
        root=mctx.RootFnOutput(prior_logits=logits, value=values, embedding=positions),
        recurrent_fn=expand,
        num_simulations=config.simulations,
        invalid_actions=~sights.mask,
        gumbel_scale=noise,
    )


class Policy(eqx.Module):
    """The trained policy, which searches for each move. Both sides see the state that it reads."""

    privileged: ClassVar[bool] = True
    actor: Networks
    moments: Moments
    flat: FlatTask = eqx.field(static=True)
    """The seat that it plays."""
    config: Config = eqx.field(static=True)

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the best move that the search knows of."""
        position = jax.tree.map(lambda leaf: leaf[None], Position(view.state.game, view.params))
        seat: Any = self.flat.task
        game = flatten_task(seat.game, AlphaZero.name)
        output = search(game, self.config, self.actor, self.moments, position, key, noise=0.0)
        return self.flat.env_action(output.action), memory


# -- training --------------------------------------------------------------------------------------


class Move(NamedTuple):
    """Moves of games, with axes for moves and games."""

    x: jax.Array
    """Features of the side to move, float32 ``(..., features)``."""
    mask: jax.Array
    """Its legal moves, bool ``(..., n)``."""
    weights: jax.Array
    """Probabilities of moves after the search, float32 ``(..., n)``."""
    reward: jax.Array
    """Reward of the side that moved, float32 ``(...)``."""
    sign: jax.Array
    """Factor of the next value, float32 ``(...)``."""


class Training(NamedTuple):
    """State of a run."""

    networks: Networks
    optimiser: Any
    moments: Moments
    stream: Stream
    """The games that are being played."""
    seed: jax.Array
    """Key data of the run."""
    updates: jax.Array
    """Number of updates so far, int32 ``()``."""


def play_moves(
    game: FlatTask, config: Config, training: Training, key: jax.Array
) -> tuple[Stream, Move, Returns]:
    """Play ``num_steps`` moves in every game; games that end begin again."""

    def step(stream: Stream, key: jax.Array) -> tuple[Stream, tuple[Move, Returns]]:
        before = Position(stream.episodes.state, stream.episodes.params)
        sights = jax.vmap(partial(look, game))(before)
        output = search(game, config, training.networks, training.moments, before, key, noise=1.0)
        actions = jnp.repeat(output.action[:, None], game.agents, 1)[..., None]
        stream, last, returns = step_episodes(game, stream, actions)
        after = Position(stream.episodes.state, stream.episodes.params)
        next_movers = jax.vmap(partial(look, game))(after).mover
        over = last.terminated | last.truncated
        reward = jnp.take_along_axis(last.reward, sights.mover[:, None], 1)[:, 0]
        factor = sign(sights.mover, next_movers, over)
        move = Move(sights.x, sights.mask, output.action_weights, reward, factor)
        return stream, (move, returns)

    stream, (moves, returns) = jax.lax.scan(
        step, training.stream, jax.random.split(key, config.num_steps)
    )
    return stream, moves, jax.tree.map(jnp.sum, returns)


def outcomes(reward: jax.Array, factor: jax.Array, last_value: jax.Array) -> jax.Array:
    """Return what each side to move earned from its move on, ``(moves, games)``.

    Games that still run at the end earn their last position's value ``(games,)``.
    """

    def step_back(
        next_outcome: jax.Array, move: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        reward, factor = move
        outcome = reward + factor * next_outcome
        return outcome, outcome

    return jax.lax.scan(step_back, last_value, (reward, factor), reverse=True)[1]


class Batch(NamedTuple):
    """Moves to learn from, with one row for each."""

    x: jax.Array
    """Normalised features, float32 ``(B, features)``."""
    mask: jax.Array
    weights: jax.Array
    outcome: jax.Array
    """Earnings of the side to move until the end, float32 ``(B,)``."""


def loss(networks: Networks, batch: Batch) -> jax.Array:
    """Return the cross entropy to the search's moves plus the squared error of the value."""
    log_probs = jax.nn.log_softmax(networks.logits(batch.x, batch.mask))
    cross_entropy = -jnp.where(batch.mask, batch.weights * log_probs, 0.0).sum(-1)
    return (cross_entropy + (networks.values(batch.x) - batch.outcome) ** 2).mean()


def optimiser(config: Config) -> optax.GradientTransformation:
    """Return Adam with a linearly falling learning rate, and a bound of the gradient's norm."""
    steps = config.chunks * config.chunk * config.epochs * config.minibatches
    rate = optax.linear_schedule(config.learning_rate, 0.0, steps)
    return optax.flatten(
        optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.adam(rate))
    )


def update(game: FlatTask, config: Config, training: Training) -> tuple[Training, Returns]:
    """Play moves, and learn from them."""
    play_key, order_key = jax.random.split(update_key(training.seed, training.updates))
    stream, moves, returns = play_moves(game, config, training, play_key)
    last = jax.vmap(partial(look, game))(Position(stream.episodes.state, stream.episodes.params))
    last_value = training.networks.values(training.moments.normalise(last.x))
    moments = training.moments.update(jax.lax.collapse(moves.x, 0, 2))
    outcome = outcomes(moves.reward, moves.sign, last_value)
    batch = Batch(moments.normalise(moves.x), moves.mask, moves.weights, outcome)
    batch = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), batch)

    def descend(carry: tuple[Networks, Any], rows: jax.Array) -> tuple[tuple[Networks, Any], None]:
        networks, optimiser_state = carry
        minibatch = jax.tree.map(lambda leaf: leaf[rows], batch)
        gradient = jax.grad(loss)(networks, minibatch)
        change, optimiser_state = optimiser(config).update(gradient, optimiser_state)
        return (optax.apply_updates(networks, change), optimiser_state), None

    orders = jax.random.bits(order_key, (config.epochs, config.batch)).argsort()
    minibatches = orders.reshape(config.epochs * config.minibatches, -1)
    carry = training.networks, training.optimiser
    (networks, optimiser_state), _ = jax.lax.scan(descend, carry, minibatches)
    updated = Training(
        networks, optimiser_state, moments, stream, training.seed, training.updates + 1
    )
    return updated, returns


def train_chunk(game: FlatTask, config: Config, training: Training) -> tuple[Training, Returns]:
    """Do ``config.chunk`` updates."""
    training, returns = jax.lax.scan(
        lambda training, _: update(game, config, training), training, length=config.chunk
    )
    return training, jax.tree.map(jnp.sum, returns)


class Programs:
    """Compiled programs of a seat and configuration; all seeds share them."""

    def __init__(self, seat: Any, config: Config) -> None:
        start_time = time.perf_counter()
        self.flat = flatten_task(seat, AlphaZero.name)
        self.game = flatten_task(seat.game, AlphaZero.name)
        self.config = config
        self.chunk_steps = config.chunk * config.batch
        train = jax.jit(partial(train_chunk, self.game, config))
        self.chunk = train.lower(self.start(0)).compile()
        self.seconds = time.perf_counter() - start_time

    def start(self, seed: int) -> Training:
        """Return the state at the beginning of a run."""
        networks = Networks.initial(self.game, self.config, seed)
        key = seed_key(seed)
        return Training(
            jax.tree.map(jnp.asarray, networks),
            optimiser(self.config).init(networks),
            Moments.initial(self.game.features),
            begin_episodes(self.game.task, key, self.config.num_envs),
            jnp.asarray(key),
            jnp.int32(0),
        )

    def policy(self, training: Training) -> Policy:
        """Return the trained policy."""
        return Policy(training.networks, training.moments, self.flat, self.config)


_programs = cache(Programs)


# -- agent -----------------------------------------------------------------------------------------


class AlphaZero(LearningAgent):
    """The agent ``alphazero``, for games in turns without chance or secrets."""

    name = "alphazero"
    config_class = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the agent cannot play the task; the message says why."""
        seat: Any = task
        if not is_seat_of_two(task.card) or not seat.game.perfect_information:
            raise CannotPlay(
                f"{self.name} searches games of two in turns, in which one wins what the other "
                f"loses and nothing is hidden or random; {task.card.id} is none."
            )
        flatten_task(task, self.name)

    def compile(self, task: Task[Any, Any], config: Config) -> tuple[Programs, float]:
        """Return the programs for a task, and the seconds it took to compile them."""
        return get_compiled(_programs, task, config)

    def layer_widths(self, task: Task[Any, Any], config: Config) -> list[tuple[int, ...]]:
        """Return the widths of the layers of both networks."""
        return [(flatten_task(task, self.name).features, *config.hidden)]

    def untrained_policy(self, task: Task[Any, Any], config: Config) -> Policy:
        """Return a policy with initial weights."""
        flat = flatten_task(task, self.name)
        networks = Networks.initial(flat, config, 0)
        return Policy(networks, Moments.initial(flat.features), flat, config)

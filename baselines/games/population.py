"""Grow a population of policies by best responses.

It is the loop of ``fictitious-play``, ``psro`` and ``league``.

The population begins with an untrained policy. In each iteration PPO (``ppo.py``) trains a best
response in one seat of the game; in each episode the other seat is played by a policy of the
population, sampled from a *meta-strategy*. Then the response joins the population. The agents
differ in the meta-strategy (Lanctot et al. 2017, arXiv:1711.00832, algorithm 1), and ``league``
also in the weights that a response begins with.

The result samples a policy of the population in each episode, from a last strategy. One
program trains all responses: the population is an argument of it, with empty places that nobody
samples.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.rollout import open_stream, play
from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.arrays import FloatArray
from rlbench_suite.core.episode import ContextSource, seed_key
from rlbench_suite.core.game import AgainstOpponent, Duel, against, is_seat_of_two
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.process import refuse_after_fork

from ..configuration import restore
from ..flat_task import FlatTask
from ..learning_agent import LearningAgent
from ..networks import Moments
from ..ppo import ppo
from ..ppo.agent import flatten_for_ppo
from ..training import get_compiled, update_key

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(ppo.Config):
    """Hyperparameters of PPO, which trains the responses, and of the population."""

    iterations: int = 10
    """Best responses that are trained, each for an equal part of ``total_steps``."""
    games: int = 100
    """Games of each two policies in each seat, from which payoffs are estimated."""

    @property
    def response(self) -> Config:
        """Configuration of a response: one chunk of training."""
        return replace(self, total_steps=-(-self.total_steps // self.iterations), reports=1)


# -- policies --------------------------------------------------------------------------------------


class Members(NamedTuple):
    """Networks of a population with K places."""

    actors: Any
    """An :class:`~..ppo.ppo.Actor` whose arrays have an axis K in front."""
    probabilities: FloatArray
    """Probability of each member, float32 ``(K,)``; 0 for an empty place."""


class Mixture(eqx.Module):
    """A policy that samples a member of a population in each episode, and plays it.

    Its memory is the number of the member, -1 before the first action.
    """

    actor: Members
    moments: Moments
    """Moments of the members' observations, with an axis K in front."""
    flat: FlatTask = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    def initial(self, params: Any) -> jax.Array:
        """Return -1: no member is sampled yet."""
        return jnp.int32(-1)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the action of the episode's member."""
        sample_key, action_key = jax.random.split(key)
        logits = jnp.log(jnp.asarray(self.actor.probabilities))
        sampled = jax.random.categorical(sample_key, logits).astype(jnp.int32)
        number = jnp.where(memory < 0, sampled, memory)
        return self.member(number).act((), view, action_key)[0], number

    def member(self, number: Any) -> ppo.Policy:
        """Return a policy of the population."""
        actor, moments = jax.tree.map(
            lambda leaf: jnp.asarray(leaf)[number], (self.actor.actors, self.moments)
        )
        return ppo.Policy(actor, moments, self.flat, self.config)

    def mixture(self) -> list[tuple[float, ppo.Policy]]:
        """Return the policies that may be sampled, each with its probability."""
        probabilities = np.asarray(self.actor.probabilities, float).tolist()
        return [(p, self.member(number)) for number, p in enumerate(probabilities) if p > 0]


# -- training --------------------------------------------------------------------------------------


class Programs:
    """Compiled programs of a task and configuration; all seeds share them.

    The opponent of the task is an argument of each program, so that one serves all iterations.
    """

    def __init__(self, task: AgainstOpponent, config: Config) -> None:
        start_time = time.perf_counter()
        self.task = task
        self.config = config
        self.flat = flatten_for_ppo(task)
        networks = ppo.Networks.initial(self.flat, config, 0)
        population = self.empty_population(networks.actor)
        key = seed_key(0)
        self._start = jax.jit(self._begin)
        moments = Moments.initial(self.flat.features)
        training = self._start(population, networks, moments, key)
        self.respond = jax.jit(self._respond).lower(population, training).compile()
        self.seconds = time.perf_counter() - start_time

    def empty_population(self, actor: Any) -> Mixture:
        """Return a population with a place for each response and the first policy, all empty."""
        places = self.config.iterations + 1

        def stack(leaf: Any) -> np.ndarray:
            return np.zeros((places, *np.shape(leaf)), np.float32)

        actors, moments = jax.tree.map(stack, (actor, Moments.initial(self.flat.features)))
        probabilities = np.zeros(places, np.float32)
        return Mixture(Members(actors, probabilities), moments, self.flat, self.config)

    def start(self, population: Mixture, networks: Any, moments: Moments, seed: int) -> Any:
        """Return the state at the beginning of the training of a response."""
        return self._start(population, networks, moments, seed_key(seed))

    def _flat_against(self, population: Mixture) -> FlatTask:
        return FlatTask(against(self.task, population), "ppo", images=True)

    def _begin(self, population: Mixture, networks: Any, moments: Moments, key: jax.Array) -> Any:
        flat = self._flat_against(population)
        seeds = jax.random.key_data(
            jax.random.split(update_key(key, jnp.int32(-1)), self.config.num_envs)
        )
        stream = open_stream(flat.task, seeds, ContextSource.parse("train", flat.task))
        training = ppo.start(flat, self.config.response, networks, key, stream)
        return training._replace(moments=moments)

    def _respond(self, population: Mixture, training: Any) -> Any:
        return ppo.train_chunk(self._flat_against(population), self.config.response, training)


programs = cache(Programs)


class PopulationAgent(LearningAgent):
    """Base of the agents that grow a population; they choose its meta-strategy."""

    config_class = Config

    @abstractmethod
    def meta_strategy(self, payoffs: np.ndarray) -> np.ndarray:
        """Return the probability of each policy of a population, ``(k,)``.

        Args:
            payoffs: mean return of a game of each policy against each, ``(k, k)``; zeros if
                :attr:`needs_payoffs` is false.
        """

    needs_payoffs: bool

    def predecessor(self, place: int) -> int:
        """Return the member whose weights the response for a place begins with: the last one."""
        return place - 1

    def last_strategy(self, payoffs: np.ndarray) -> np.ndarray:
        """Return the probability of each policy in the result, by default the meta-strategy."""
        return self.meta_strategy(payoffs)

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the task is no seat of a game of two, or PPO cannot play."""
        if not is_seat_of_two(task.card):
            raise CannotPlay(
                f"{self.name} trains in both seats of a game of two, and {task.card.id} is none."
            )
        flatten_for_ppo(task)
        if task.card.partially_observed:
            raise CannotPlay(
                f"{self.name} trains policies without a memory, and {task.card.id} asks for one."
            )

    def compile(self, task: Task[Any, Any], config: Config) -> tuple[Any, float]:
        """Return the programs, and the seconds it took to compile them; 0 if they were cached."""
        return get_compiled(programs, task, config)

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Progress | Any]:
        """Grow the population, and give the mixture at the end.

        The returns of progress are those of responses in training. Errors as for other agents.
        """
        refuse_after_fork()
        self.check(task)
        config = (
            self.config(task, budget)
            if hyperparameters is None
            else restore(self.config_class, hyperparameters)
        )
        compiled, compile_seconds = self.compile(task, config)
        start_time = time.perf_counter()
        networks = ppo.Networks.initial(compiled.flat, config, seed)
        moments: Any = Moments.initial(compiled.flat.features)
        population = with_member(compiled.empty_population(networks.actor), 0, networks, moments)
        members = [(networks, moments)]
        payoffs = np.zeros((1, 1))
        steps = config.response.chunks * config.response.chunk * config.batch
        for iteration in range(config.iterations):
            population = with_strategy(population, self.meta_strategy(payoffs))
            networks, moments = members[self.predecessor(iteration + 1)]
            state = compiled.start(population, networks, moments, _seed(seed, iteration))
            state, returns = compiled.respond(population, state)
            networks, moments = jax.tree.map(np.asarray, (state.networks, state.moments))
            members.append((networks, moments))
            population = with_member(population, iteration + 1, networks, moments)
            payoffs = np.pad(payoffs, ((0, 1), (0, 1)))
            if self.needs_payoffs:
                payoffs[-1, :-1] = estimate_payoffs(compiled.task, population, iteration + 1, seed)
                payoffs[:-1, -1] = -payoffs[-1, :-1]
            episodes = int(returns.episodes)
            yield Progress(
                steps=(iteration + 1) * steps,
                total_steps=config.iterations * steps,
                seconds=time.perf_counter() - start_time,
                compile_seconds=compile_seconds,
                episode_return=float(returns.total) / episodes if episodes else float("nan"),
            )
        yield with_strategy(population, self.last_strategy(payoffs))

    def layer_widths(self, task: Task[Any, Any], config: Config) -> list[tuple[int, ...]]:
        """Return the widths of the layers of an actor."""
        return [(flatten_for_ppo(task).features, *config.hidden)]

    def untrained_policy(self, task: Task[Any, Any], config: Config) -> Mixture:
        """Return a population whose first policy is untrained, and that plays it."""
        flat = flatten_for_ppo(task)
        networks = ppo.Networks.initial(flat, config, 0)
        places = config.iterations + 1
        actors, moments = jax.tree.map(
            lambda leaf: np.repeat(np.asarray(leaf, np.float32)[None], places, 0),
            (networks.actor, Moments.initial(flat.features)),
        )
        probabilities = np.eye(places, dtype=np.float32)[0]
        return Mixture(Members(actors, probabilities), moments, flat, config)


def _seed(seed: int, iteration: int) -> int:
    """Return the seed of a response."""
    return int(np.random.SeedSequence((seed, iteration + 1)).generate_state(1)[0])


def with_member(population: Mixture, place: int, networks: Any, moments: Moments) -> Mixture:
    """Return the population with a policy in a place."""

    def put(stack: Any, leaf: Any) -> np.ndarray:
        changed = np.array(stack)
        changed[place] = leaf
        return changed

    actors = jax.tree.map(put, population.actor.actors, networks.actor)
    members = population.actor._replace(actors=actors)
    return Mixture(
        members,
        jax.tree.map(put, population.moments, moments),
        population.flat,
        population.config,
    )


def with_strategy(population: Mixture, strategy: np.ndarray) -> Mixture:
    """Return the population with other probabilities of its first policies."""
    probabilities = np.zeros(len(population.actor.probabilities), np.float32)
    probabilities[: len(strategy)] = strategy
    members = population.actor._replace(probabilities=probabilities)
    return Mixture(members, population.moments, population.flat, population.config)


def estimate_payoffs(
    task: AgainstOpponent, population: Mixture, newest: int, seed: int
) -> np.ndarray:
    """Return the mean return of a member against each earlier one, in both seats, ``(newest,)``.

    Episodes are those of training contexts; the environment seeds are the same for all pairs.
    """
    first = _seed(seed, -1) // 2
    seeds = range(first, first + population.config.games)
    response = jax.tree.map(np.asarray, population.member(newest))
    payoffs = np.zeros(newest)
    for number in range(newest):
        opponent = jax.tree.map(np.asarray, population.member(number))
        for seat in range(2):
            duel = Duel(response, opponent, np.int32(seat), task.game)
            totals = play(task.game, duel, seeds, split="train").total
            payoffs[number] += totals[:, seat].astype(np.float64).mean() / 2
    return payoffs

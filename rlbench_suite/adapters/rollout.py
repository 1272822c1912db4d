"""Fused rollouts: whole episodes, and streams of steps with autoreset, in one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from rlbench_suite.adapters import host
from rlbench_suite.adapters.record import Record
from rlbench_suite.core.agent import HostPolicy
from rlbench_suite.core.contract import check_action, check_memory
from rlbench_suite.core.episode import (
    VECTORS,
    ContextSource,
    Episode,
    Role,
    Step,
    advance,
    begin,
    draw_key,
    reset_where,
    seed_key,
)
from rlbench_suite.core.host import HostTask
from rlbench_suite.core.policy import Policy, View
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.bit_exact import compile_apart, exact_vmap
from rlbench_suite.numerics.process import CACHED_TASKS, on_the_cpu, precision, refuse_after_fork

_BLOCK_EPISODES = 64
"""Number of episodes that one call begins.

Most training runs and evaluations begin no more at once.
"""
_CACHED_EPISODES = 4_000
"""Approximate number of episodes whose states and steps fit into a core's caches."""
_CACHE_LINE = 16
"""Four-byte numbers in a cache line."""


class Stream(NamedTuple):
    """A batch of running episodes and their last steps, as a training loop carries it."""

    episodes: Episode
    last: Step


def open_stream(task: Task[Any, Any], seeds: jax.Array, source: ContextSource) -> Stream:
    """Begin the first episodes of a batch of seeds (key data ``(n, 2)``); traced."""
    first = jnp.int32(0)
    return Stream(*exact_vmap(lambda seed: begin(task, seed, first, source), seeds))


def step_stream(
    task: Task[Any, Any], stream: Stream, actions: jax.Array, limit: Any, source: ContextSource
) -> tuple[Stream, Step, jax.Array]:
    """Step every episode, and begin the next episode at once where one ends; traced.

    It is compiled together with what uses it, for speed. Its last bits may therefore differ from
    those of the other paths (``bit_exact.py``).

    Returns:
        The stream after resets; the step just made, whose ``observation`` is the *final* one where
        an episode ended (bootstrap truncated episodes from it); and the scalar-or-vector totals of
        all episodes at that step (an episode's return where it ended).
    """
    episodes, step = jax.vmap(
        lambda episode, action, mask: advance(task, episode, action, limit, mask)
    )(stream.episodes, actions, stream.last.info.get("action_mask"))
    totals = episodes.total
    return (
        Stream(*reset_where(task, step.terminated | step.truncated, episodes, step, source)),
        step,
        totals,
    )


def in_blocks(function: Callable[[Any], Any], batch: Any) -> Any:
    """Apply a function of a batch, preferably one of many steps, block by block on CPUs; traced.

    A block is small enough to stay in a core's caches between steps. Its size is not a power of
    two, because arrays that lie a power of two apart evict each other.

    Args:
        function: from arrays with the batch on axis 0 to such arrays, computing every entry by
            itself.
        batch: the arrays.
    """
    size = jax.tree.leaves(batch)[0].shape[0]
    if size < _CACHED_EPISODES or jax.default_backend() != "cpu":
        return function(batch)
    count = -(-size // _CACHED_EPISODES)
    # Whole cache lines, and an odd number of them.
    block = -(-size // count) // _CACHE_LINE * _CACHE_LINE + _CACHE_LINE
    block += _CACHE_LINE * (block // _CACHE_LINE % 2 == 0)

    def split(leaf: jax.Array) -> jax.Array:
        padded = jnp.concatenate([leaf, leaf[: count * block - size]])
        return padded.reshape(count, block, *leaf.shape[1:])

    results = jax.lax.map(function, jax.tree.map(split, batch))
    return jax.tree.map(lambda leaf: leaf.reshape(count * block, *leaf.shape[2:])[:size], results)


def play(
    task: Task[Any, Any],
    policy: Policy | HostPolicy,
    seeds: list[int] | range | np.ndarray,
    *,
    split: str | int = "test",
    limit: int | None = None,
) -> Record:
    """Play one whole episode (the first) of each seed.

    All episodes run side by side in a compiled program on the CPU.

    Equal to playing the single env of each seed by hand: same observations, same keys, same bits.

    Args:
        task: the task.
        policy: any :class:`~rlbench_suite.core.policy.Policy`; its arrays are traced, so that
            retrained weights of one architecture share the program. A policy of the host plays
            simulators of the host only.
        seeds: environment seeds; the policy's own randomness comes from them too.
        split: as for the single env.
        limit: time limit in steps, the card's horizon if None. Each new value compiles a new
            program.

    Raises:
        ContractError: the policy gives another shape or dtype than the action space's, or changes
            its memory's.
    """
    if isinstance(task, HostTask):
        return host.play(task, host.player(task, policy, seeds), seeds, split, limit)
    refuse_after_fork()
    horizon = task.card.horizon if limit is None else limit
    with on_the_cpu(), precision(task):
        record, _ = _player(task, horizon)(policy, first_episodes(task, _keys(seeds), split))
        return Record(*jax.tree.map(np.asarray, record))


class _ByChoice(NamedTuple):
    """A set of policies. Its memory is an episode's choice and the memory of the chosen policy."""

    choose: Any

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        choice, policy_memory = memory
        action, policy_memory = self.choose(choice).act(policy_memory, view, key)
        return action, (choice, policy_memory)


def play_each(
    task: Task[Any, Any],
    choose: Partial,
    choices: np.ndarray,
    seeds: Sequence[int] | range,
    *,
    split: str | int = "test",
) -> Record:
    """Play the first episode of each seed with each of several policies, all in one batch.

    Args:
        task: the task.
        choose: returns the policy of a choice; traced.
        choices: what it takes for each policy, ``(n, ...)``.
        seeds: environment seeds, the same for all policies.
        split: as for the single env.

    Returns:
        The episodes of all policies, those of the first policy first.
    """
    refuse_after_fork()
    rows = np.repeat(choices, len(seeds), 0)
    with on_the_cpu(), precision(task):
        stream = first_episodes(task, np.tile(_keys(seeds), (len(choices), 1)), split)
        memories = jax.vmap(lambda row, params: choose(row).initial(params))(
            rows, stream.episodes.params
        )
        record, _ = _player(task, task.card.horizon)(
            _ByChoice(choose), stream, memory=(rows, memories)
        )
        return Record(*jax.tree.map(np.asarray, record))


def first_episodes(task: Task[Any, Any], keys: np.ndarray, split: str | int) -> Stream:
    """Begin the first episode of each seed, key data ``(n, 2)``; return arrays of the host.

    They are begun in blocks of one size, so that training and evaluation share one program for any
    number of seeds.
    """
    source = ContextSource.parse(split, task)
    padded = np.resize(keys, (-(-len(keys) // _BLOCK_EPISODES) * _BLOCK_EPISODES, 2)).reshape(
        -1, _BLOCK_EPISODES, 2
    )
    with on_the_cpu():
        blocks = [jax.tree.map(np.asarray, _beginner(task)(block, source)) for block in padded]
    stream: Stream = jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(keys)], *blocks)
    return stream


@lru_cache(CACHED_TASKS)
def _beginner(task: Task[Any, Any]) -> Any:
    return jax.jit(partial(open_stream, task))


def _keys(seeds: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.stack([seed_key(int(seed)) for seed in seeds])


@lru_cache(CACHED_TASKS)
def _player(task: Task[Any, Any], horizon: int) -> Any:
    return jax.jit(partial(_play, task, horizon))


def _play(
    task: Task[Any, Any], horizon: int, policy: Policy, stream: Stream, *, memory: Any = None
) -> tuple[Record, Step]:
    size = stream.episodes.t.shape[0]
    if memory is None:
        # A task's params may be empty.
        memory = jax.vmap(policy.initial, axis_size=size)(stream.episodes.params)
    action_dtype = jax.dtypes.canonicalize_dtype(task.action_space.dtype)
    actions = jnp.zeros((horizon, size, *(task.action_space.shape or ())), action_dtype)

    def act(memory: Any, step: Step, episode: Episode) -> tuple[jax.Array, Any]:
        view = View(step.observation, step.info.get("action_mask"), episode.state, episode.params)
        action, next_memory = policy.act(
            memory, view, draw_key(episode.seed, episode.index, episode.t, Role.POLICY)
        )
        return check_action(policy, action, task.action_space), check_memory(
            policy, next_memory, memory
        )

    def body(carry: Any) -> Any:
        t, over, (episodes, last), memory, actions = carry
        # Compile the policy apart, so that the recorded action is the played one. If it were fused
        # with both uses, its last sums could round in two ways.
        next_actions, memory = compile_apart(jax.vmap(act))(memory, last, episodes)
        next_actions = next_actions.astype(actions.dtype)
        advanced = exact_vmap(
            lambda e, a: advance(task, e, a, np.int32(horizon)), episodes, next_actions
        )

        def freeze(old: jax.Array, new: jax.Array) -> jax.Array:
            return jnp.where(over.reshape(over.shape + (1,) * (new.ndim - 1)), old, new)

        next_actions = freeze(jnp.zeros_like(next_actions), next_actions)
        stream = jax.tree.map(freeze, Stream(episodes, last), Stream(*advanced))
        over = over | stream.last.terminated | stream.last.truncated
        return t + 1, over, stream, memory, actions.at[t].set(next_actions)

    start = (jnp.int32(0), jnp.zeros(size, bool), stream, memory, actions)
    _, _, (episodes, last), _, actions = jax.lax.while_loop(
        lambda carry: ~carry[1].all(), body, start
    )
    info = {name: value for name, value in last.info.items() if name not in VECTORS}
    # Return the whole last step. If its reward or observation were unused here, the compiler would
    # drop them. Their use keeps a product from being contracted into a sum. Without it, the bits
    # would differ from those of the single env.
    cost = episodes.total_cost if task.has_cost else jnp.zeros(size, task.dtype)
    return Record(
        episodes.total, episodes.t, last.terminated, info, cost, jnp.moveaxis(actions, 0, 1)
    ), last


class _Recorded(NamedTuple):
    """A policy that repeats given actions.

    Its memory is the step and the actions of the episode.
    """

    def initial(self, params: Any) -> Any:
        raise NotImplementedError("the actions of an episode are not made from its params")

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        t, actions = memory
        return actions[t], (t + 1, actions)


def replay(
    task: Task[Any, Any], actions: np.ndarray, seeds: range, *, split: str | int = "test"
) -> Record:
    """Play the first episode of each seed by the actions of a :class:`Record`.

    Return that record again, to the bit.

    Args:
        task: the task.
        actions: ``(n, horizon, *action shape)``; entries after an episode's end are ignored.
        seeds: the ``n`` environment seeds.
        split: as for the single env.

    Raises:
        ValueError: the actions have another shape.
    """
    shape = (len(seeds), task.card.horizon, *(task.action_space.shape or ()))
    if actions.shape != shape:
        raise ValueError(
            f"Actions to replay have shape {shape} (seeds, horizon, *action), got {actions.shape}."
        )
    if isinstance(task, HostTask):
        return host.play(task, lambda observations, envs, t: actions[:, t], seeds, split)
    refuse_after_fork()
    memory = np.zeros(len(seeds), np.int32), actions
    with on_the_cpu(), precision(task):
        stream = first_episodes(task, _keys(seeds), split)
        record, _ = _player(task, task.card.horizon)(_Recorded(), stream, memory=memory)
        return Record(*jax.tree.map(np.asarray, record))

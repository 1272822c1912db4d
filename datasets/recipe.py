"""Make episodes from a recipe: play, record the actions, then replay them and record every step."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.rollout import open_stream, play
from rlbench_suite.core import registry
from rlbench_suite.core.episode import ContextSource, Step, advance, seed_key
from rlbench_suite.core.policy import Policy, View
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.bit_exact import exact_vmap
from rlbench_suite.numerics.process import precision, refuse_after_fork

from .catalogue import Entry

SPLIT = "train"
CARD_ENTRIES = ("score", "violates")
"""Entries of ``info`` that the card computes from measured anchors and its limit.

They are no content of a dataset, because they would change with every calibration.
"""
BLOCK = 64
"""Number of episodes in a batch.

It is part of a recipe: players compiled for another batch may round differently.
"""


class Episode(NamedTuple):
    """Finished episode of ``T`` steps, as NumPy arrays."""

    seed: int
    observations: Any
    """Observations, ``(T + 1, ...)``, or a dict of such arrays for a Dict space.

    The last one is the observation after the last step.
    """
    actions: np.ndarray
    """``(T, *action shape)``"""
    rewards: np.ndarray
    """``(T, *reward shape)``"""
    terminations: np.ndarray
    """bool ``(T,)``"""
    truncations: np.ndarray
    """bool ``(T,)``"""
    infos: dict[str, np.ndarray]
    """Each ``(T + 1, ...)``: from the reset, then from every step.

    Entries named in :data:`CARD_ENTRIES` are left out.
    """


class Weakened(eqx.Module):
    """Player whose actions are weakened and sometimes random; for a bounded Box."""

    player: Any
    space: spaces.Box = eqx.field(static=True)
    noop: Any
    strength: Any
    random: Any

    def initial(self, params: Any) -> Any:
        """Return the player's first memory."""
        return self.player.initial(params)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Move part of the way from noop to the player's action, or sometimes act at random.

        Random actions are uniform.
        """
        own_key, chance_key = jax.random.split(key)
        action, memory = self.player.act(memory, view, own_key)
        shape, low, high = self.space.shape, self.space.low, self.space.high
        chance = jax.random.uniform(chance_key, (1 + int(np.prod(shape)),), self.space.dtype)
        anything = low + chance[1:].reshape(shape) * (high - low)
        weak = self.noop + self.strength * (action - self.noop)
        return jnp.clip(jnp.where(chance[0] < self.random, anything, weak), low, high), memory


class Mixed(eqx.Module):
    """Two players of whom one plays a whole episode.

    The second does so with a given probability.
    """

    players: tuple[Any, Any]
    share: Any

    def initial(self, params: Any) -> Any:
        """Return both players' memories, and -1 until the episode's player is sampled."""
        return tuple(player.initial(params) for player in self.players), jnp.int32(-1)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action of the player of this episode."""
        memories, who = memory
        first_key, second_key, coin = jax.random.split(key, 3)
        who = jnp.where(who < 0, (jax.random.uniform(coin) < self.share).astype(jnp.int32), who)
        first, first_memory = self.players[0].act(memories[0], view, first_key)
        second, second_memory = self.players[1].act(memories[1], view, second_key)
        return jnp.where(who == 1, second, first), ((first_memory, second_memory), who)


def player(entry: Entry, task: Task[Any, Any]) -> Policy:
    """Return the policy of a recipe.

    Raises:
        ValueError: the recipe weakens actions that are not in a bounded Box.
    """
    policy: Any = _of_agent(entry.player, task)
    space = task.action_space
    if entry.strength != 1 or entry.random:
        if not isinstance(space, spaces.Box) or not space.is_bounded():
            raise ValueError(
                f"{entry.id}: only actions in a bounded Box can be weakened, not {space}."
            )
        strength, random = np.float32(entry.strength), np.float32(entry.random)
        policy = Weakened(policy, space, task.noop_action(), strength, random)
    if entry.astray:
        policy = Mixed((policy, _of_agent("random", task)), np.float32(entry.astray))
    return policy


def _of_agent(name: str, task: Task[Any, Any]) -> Any:
    return list(registry.agent(name).train(task, seed=0, budget="full"))[-1]


def episodes(entry: Entry) -> Iterator[Episode]:
    """Yield the episodes of a recipe in the order of their seeds.

    Equal arithmetic gives equal bits.
    """
    refuse_after_fork()
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        task = entry.card.build(difficulty=entry.difficulty)
        policy = player(entry, task)
    for first in range(0, entry.episodes, BLOCK):
        # The last batch may play more than needed.
        seeds = [entry.first_seed + first + lane for lane in range(BLOCK)]
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            record = play(task, policy, seeds, split=SPLIT)
            steps = trajectories(task, record.actions, seeds)
        for lane in range(min(BLOCK, entry.episodes - first)):
            length = int(record.length[lane])
            yield _cut(
                seeds[lane],
                length,
                record.actions[lane],
                jax.tree.map(lambda leaf, i=lane: leaf[i], steps),
            )


def _cut(seed: int, length: int, actions: np.ndarray, steps: Step) -> Episode:
    def states(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[: length + 1].copy(), tree)

    recorded = slice(1, length + 1)  # index 0 is the reset
    return Episode(
        seed=seed,
        observations=states(steps.observation),
        actions=actions[:length].copy(),
        rewards=steps.reward[recorded].copy(),
        terminations=steps.terminated[recorded].copy(),
        truncations=steps.truncated[recorded].copy(),
        infos=states(
            {name: values for name, values in steps.info.items() if name not in CARD_ENTRIES}
        ),
    )


def trajectories(task: Task[Any, Any], actions: np.ndarray, seeds: list[int]) -> Step:
    """Return every step of the first episode of each seed under given actions.

    They equal those of a single env bit for bit.

    Args:
        task: the task.
        actions: ``(n, horizon, *action shape)``.
        seeds: the ``n`` environment seeds.

    Returns:
        Arrays ``(n, horizon + 1, ...)`` that begin with the reset. Values after the end of an
        episode have no meaning.
    """
    keys = np.stack([seed_key(seed) for seed in seeds])
    with precision(task):
        return jax.tree.map(
            np.asarray, _recorder(task)(keys, actions, ContextSource.parse(SPLIT, task))
        )


@cache
def _recorder(task: Task[Any, Any]) -> Any:
    limit = np.int32(task.card.horizon)

    def record(keys: jax.Array, actions: jax.Array, source: ContextSource) -> Step:
        stream = open_stream(task, keys, source)

        def step(running: Any, action: jax.Array) -> tuple[Any, Step]:
            return exact_vmap(
                lambda episode, episode_action: advance(task, episode, episode_action, limit),
                running,
                action,
            )

        _, later_steps = jax.lax.scan(step, stream.episodes, jnp.moveaxis(actions, 1, 0))
        together = jax.tree.map(
            lambda first, later: jnp.concatenate([first[None], later]), stream.last, later_steps
        )
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), together)

    return jax.jit(record)


def arithmetic() -> str:
    """Return the class of machines that round alike, as measured here.

    It is ``x86_64 fma`` if products are fused into sums.

    Within a class and a version of the compiler, content is equal to the bit. Elsewhere it is
    close.
    """
    share = np.full(8, 1 + 2.0**-12, np.float32)
    # share**2 is -negative + 2**-24; rounding drops the 2**-24.
    negative = np.full(8, -(1 + 2.0**-11), np.float32)
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        fused = bool(np.any(jax.jit(lambda a, b, c: a * b + c)(share, share, negative)))
    return f"{platform.machine()}{' fma' if fused else ''}"

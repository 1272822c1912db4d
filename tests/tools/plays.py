"""Whole episodes with every state kept, by the oracle, by a script, or at random.

One program serves a tier.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.episode import is_legal
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.tools.office.apps.apis import COLUMN_APIS
from rlbench_suite.envs.tools.office.office_apps import OfficeApps, Params
from rlbench_suite.envs.tools.office.templates.column_template import sight_of

TIERS = ("easy", "medium", "hard")
STEPS = 20
BATCH = 256
ENDINGS = 4
"""APIs 0 to 3 are the assistant's: calls that end the episode, and the documentation."""


class Play(NamedTuple):
    """Episodes, batched on axis 0; states and actions by step on axis 1."""

    tier: str
    params: Params
    states: Any
    actions: np.ndarray
    legal: np.ndarray
    """Whether the action was legal and the episode still ran."""

    @property
    def ends(self) -> Any:
        """The last states."""
        return jax.tree.map(lambda leaf: leaf[:, -1], self.states)

    @property
    def total(self) -> np.ndarray:
        """The returns: 1 where the end is right."""
        return np.asarray(judge(self.tier)(self.ends, self.params)).astype(float)


def task_of(tier: str) -> OfficeApps:
    return card("OfficeApps-v0").build(difficulty=tier)


@cache
def programs(tier: str) -> tuple[Any, Any]:
    """Compile beginning and playing a batch of episodes, once for the batch size."""
    task = task_of(tier)

    def begin(key: jax.Array, split: jax.Array) -> Any:
        params = task.sample_params(key, split)
        return params, task.initial(key, params)

    def random_action(mask: jax.Array, key: jax.Array) -> jax.Array:
        """Return a random API that does not end the episode.

        Its arguments are known ones, seldom others or none.
        """
        offset, numbers, sizes = 0, [], task.action_space.nvec.tolist()
        chances = jax.random.uniform(key, (sum(sizes),))
        for size in sizes:
            plain = mask[offset : offset + size] & (
                np.arange(size) >= (ENDINGS if offset == 0 else 1)
            )
            weights = plain * 0.99 if offset == 0 else (plain * 0.99).at[0].set(0.9)
            numbers.append(jnp.argmax(chances[offset : offset + size] + weights))
            offset += size
        return jnp.stack(numbers).astype(jnp.int32)

    def step(key: jax.Array, params: Any, state: Any, scripted: jax.Array, noise: jax.Array) -> Any:
        chance, random_key = jax.random.split(key)
        mask = task.action_mask(state, params)
        action = jnp.where(scripted[0] < 0, task.oracle_call(sight_of(state, params.ask)), scripted)
        action = jnp.where(
            jax.random.uniform(chance) < noise, random_action(mask, random_key), action
        )
        goes = is_legal(task, mask, action) & ~task.terminal(state, key, params)
        moved = task.transition(state, action, key, params)
        return jax.tree.map(lambda new, old: jnp.where(goes, new, old), moved, state), action, goes

    batch = jax.vmap(step, in_axes=(0, 0, 0, None, None))
    return jax.jit(jax.vmap(begin, in_axes=(0, None))), jax.jit(batch)


def play(
    tier: str,
    batches: int = 4,
    *,
    seed: int = 0,
    noise: float = 0.0,
    script: list[list[int]] | None = None,
    split: Split = Split.TEST,
) -> Play:
    """Play batches of 256 episodes by the oracle, or by a script that repeats its last action.

    With probability ``noise`` an action is replaced by a random one.
    """
    table = np.full((STEPS, 5), -1, np.int32)
    if script is not None:
        table[:] = script[-1]
        table[: len(script)] = script[:STEPS]
    begin, step = programs(tier)
    recorded = []
    for batch in range(batches):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), batch), BATCH)
        params, state = begin(keys, np.int32(split))
        steps = []
        for t in range(STEPS):
            chances = jax.random.split(jax.random.fold_in(keys[0], t), BATCH)
            state, *outputs = step(chances, params, state, table[t], np.float32(noise))
            steps.append((state, *outputs))
        recorded.append((params, *jax.tree.map(lambda *leaves: np.stack(leaves, 1), *steps)))
    return Play(tier, *jax.tree.map(lambda *leaves: np.concatenate(leaves), *recorded))


def at(tree: Any, *index: int) -> Any:
    """Return one entry of a batch."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def number_of(name: str) -> int:
    return next(i for i, api in enumerate(COLUMN_APIS) if api.name == name)


def judge(tier: str) -> Any:
    """Return ``task.solved`` over states and params, batch by batch."""

    def solved(states: Any, params: Any) -> np.ndarray:
        count = len(states.ending)
        cut = [
            jax.tree.map(lambda leaf, i=i: leaf[i : i + BATCH], (states, params))
            for i in range(0, count, BATCH)
        ]
        return np.concatenate([np.asarray(_judge(tier)(*batch)) for batch in cut])

    return solved


@cache
def _judge(tier: str) -> Any:
    return jax.jit(jax.vmap(task_of(tier).solved))

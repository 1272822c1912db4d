"""The one engine of an episode, shared by every adapter.

Single, batched and fused runs are equal by construction.

Keys are a function of time. Episode ``e`` of seed ``s`` has the key ``fold_in(key(s), e)``; each of
its samples has ``fold_in(episode_key, t * 8 + role)``. Nothing is carried, any step can be replayed
alone.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Array, Flag, Int
from rlbench_suite.core.contract import (
    check_flag,
    check_info,
    check_result,
    check_same_shapes,
    check_spaces,
)
from rlbench_suite.core.scale import Scale
from rlbench_suite.core.task import Described, Observation, Split, Task
from rlbench_suite.core.task_card import SPLITS
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.numerics.bit_exact import compile_apart, computed_once, exact_vmap
from rlbench_suite.numerics.bitset import BitSet
from rlbench_suite.numerics.keys import fold_in

NO_LIMIT = np.int32(np.iinfo(np.int32).max // 8)
"""Largest number of steps of an episode.

The eight keys of each step must have distinct 32-bit numbers.
"""

VECTORS = ("action_mask", "alive", "acting", "privileged", "global_state")
"""Entries of ``info`` that are vectors."""
_FREE = -1
"""Number of the context in a :class:`ContextSource` of new contexts."""

Reward = Array
"""Array of the task's dtype, shaped like its ``reward_space``; in a batch ``(n, ...)``."""


class Role(IntEnum):
    """The purpose of a key within a step."""

    PARAMS = 0
    INITIAL = 1
    TRANSITION = 2
    OBSERVATION = 3
    REWARD = 4
    TERMINAL = 5
    POLICY = 6


class ContextSource(NamedTuple):
    """The source of contexts: a split, and which of its contexts to take.

    The second number is that of one fixed context, or -1 for a new one in each episode.
    """

    split: Int
    """A :class:`Split`."""
    context: Int

    @classmethod
    def parse(cls, split: str | int, task: Task[Any, Any]) -> ContextSource:
        """Read the ``split`` keyword.

        It is ``"train"``, ``"test"`` or the number of one training context.

        Raises:
            ValueError: not one of those, or a context number for a task that has only one context.
        """
        if isinstance(split, str):
            if split not in SPLITS:
                raise ValueError(unknown("split", split, SPLITS) + " Or a context number >= 0.")
            return cls(np.int32(Split[split.upper()]), np.int32(_FREE))
        if (
            isinstance(split, bool)
            or not isinstance(split, (int, np.integer))
            or not 0 <= split < 2**31
        ):
            raise ValueError(
                f"split is 'train', 'test' or a context number in [0, 2**31), got {split!r}."
            )
        if not task.card.contexts:
            raise ValueError(
                f"{task.card.id} has a single context; split={split} has no meaning here."
            )
        return cls(np.int32(Split.TRAIN), np.int32(split))


class Episode(NamedTuple):
    """A running episode: a value that can be saved, restored and branched from."""

    seed: Array
    """uint32 ``(2,)``: the seed's key data."""
    index: Int
    """Number of the episode since seeding."""
    t: Int
    """Number of steps so far."""
    total: Reward
    """Undiscounted return so far."""
    params: Any
    """Context of the episode, the task's own ``NamedTuple``."""
    state: Any
    """The task's own ``NamedTuple``."""
    total_cost: Array = None
    """Constraint cost so far, of the task's dtype; None if the task has none."""


class Step(NamedTuple):
    """The result of one step.

    ``info`` has scalars by name, and the vectors of :data:`VECTORS` that the task has.
    """

    observation: Observation
    reward: Reward
    terminated: Flag
    truncated: Flag
    info: dict[str, Any]


def seed_key(seed: int) -> np.ndarray:
    """Return the key data of a seed, without calling JAX.

    They equal those of ``jax.random.key(seed)``.

    Raises:
        ValueError: not an integer in [0, 2**64).
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise ValueError(f"A seed is an integer in [0, 2**64), got {seed!r}.")
    return np.array([int(seed) >> 32, int(seed) & 0xFFFFFFFF], np.uint32)


def draw_key(seed: jax.Array, index: jax.Array, t: jax.Array, role: Role) -> jax.Array:
    """Return the key of one purpose of one step."""
    return jax.random.wrap_key_data(fold_in(fold_in(seed, index), t * 8 + role))


def begin(
    task: Task[Any, Any], seed: Any, index: Any, source: ContextSource
) -> tuple[Episode, Step]:
    """Begin episode number ``index`` of a seed.

    Return it and its first observation; the reward is zero, and nothing is over.

    Raises:
        ContractError: a function of the task gives another shape or dtype than its spaces say.
    """
    check_spaces(task)
    t = jnp.int32(0)
    index = jnp.asarray(index, jnp.int32)
    episode_key = fold_in(seed, index)
    is_fixed = source.context >= 0
    params_key = fold_in(
        jnp.where(is_fixed, seed_key(0), episode_key),
        jnp.where(is_fixed, source.context, Role.PARAMS),
    )
    # A random number that is compiled apart is rounded once. If it were fused with its uses, it
    # might be contracted, and differently in a batch than alone.
    params = compile_apart(task.sample_params)(jax.random.wrap_key_data(params_key), source.split)
    state = compile_apart(task.initial)(
        jax.random.wrap_key_data(fold_in(episode_key, Role.INITIAL)), params
    )
    no_reward = jnp.zeros(task.reward_space.shape, task.dtype)
    zero = jnp.zeros((), task.dtype)
    episode = Episode(seed, index, t, no_reward, params, state, zero if task.has_cost else None)
    step = Step(
        observation=shown_observation(
            task, state, jax.random.wrap_key_data(fold_in(episode_key, Role.OBSERVATION)), params
        ),
        reward=no_reward,
        terminated=jnp.bool_(False),
        truncated=jnp.bool_(False),
        info=_info(
            task, episode, jnp.bool_(True), zero if task.has_cost else None, jnp.bool_(False)
        ),
    )
    return episode, step


def advance(
    task: Task[Any, Any],
    episode: Episode,
    action: jax.Array,
    limit: Any,
    mask: jax.Array | None = None,
    is_valid: jax.Array | None = None,
) -> tuple[Episode, Step]:
    """Make one step of an episode.

    Args:
        task: the task.
        episode: the running episode.
        action: an action of the action space.
        limit: time limit in steps. An episode that reaches it is truncated, whether or not the task
            is over at that step, as in Gymnasium's ``TimeLimit``.
        mask: the ``action_mask`` that the last step has shown, so that it need not be computed
            again.
        is_valid: False is played as an action that the mask forbids, which by default leaves the
            state as it is, bool ``()``; for callers that cannot refuse an action. None means that
            the action is in the action space.

    Raises:
        ContractError: a function of the task gives another shape or dtype than its first state or
            its spaces say.
    """
    seed, index, t, total, params, state, total_cost = episode
    t = t + 1
    if mask is None:
        mask = _action_mask(task, state, params)
    alive = _agent_flags(task, "alive", state, params)
    acting = _agent_flags(task, "acting", state, params)
    for flags in (alive, acting):
        if flags is not None:
            action = rows_where(flags, action, task.noop_action())
    legal = is_legal(task, mask, action)
    if is_valid is not None:
        legal = legal & is_valid
    next_state = task.transition(state, action, draw_key(seed, index, t, Role.TRANSITION), params)
    check_same_shapes(task, "transition", next_state, state)
    if mask is not None or is_valid is not None:
        refused = task.after_illegal_action(state, params)
        next_state = jax.tree.map(lambda new, old: jnp.where(legal, new, old), next_state, refused)
    reward = task.reward(state, action, next_state, draw_key(seed, index, t, Role.REWARD), params)
    check_result(task, "reward", reward, task.reward_space)
    if alive is not None:
        reward = rows_where(alive, reward, np.zeros((), task.dtype))
    terminated = task.terminal(next_state, draw_key(seed, index, t, Role.TERMINAL), params)
    check_flag(task, "terminal", terminated)
    cost = None
    if task.has_cost:
        cost_shape = jax.ShapeDtypeStruct((), task.dtype)
        cost = check_result(
            task, "cost", task.cost(state, action, next_state, params), cost_shape, "a cost is"
        )
        total_cost = total_cost + cost
    episode = Episode(seed, index, t, total + reward, params, next_state, total_cost)
    step = Step(
        observation=shown_observation(
            task, next_state, draw_key(seed, index, t, Role.OBSERVATION), params
        ),
        reward=reward,
        terminated=terminated,
        truncated=t >= limit,
        info=_info(task, episode, legal, cost, terminated),
    )
    return episode, step


def shown_observation(task: Task[Any, Any], state: Any, key: jax.Array, params: Any) -> Observation:
    """Return the observation of a state, which is checked while it is traced."""
    return check_result(
        task, "observation", task.observation(state, key, params), task.observation_space
    )


def _action_mask(task: Task[Any, Any], state: Any, params: Any) -> jax.Array | None:
    mask = task.action_mask(state, params)
    if mask is None:
        return None
    choices = jax.ShapeDtypeStruct((sum(action_sizes(task.action_space)),), np.bool_)
    return check_result(task, "action_mask", mask, choices, "its action space asks for")


def _agent_flags(
    task: Task[Any, Any], function: Literal["alive", "acting"], state: Any, params: Any
) -> jax.Array | None:
    """Return what a function says of each agent, bool ``(agents,)``, or None."""
    flags = getattr(task, function)(state, params)
    if flags is None:
        return None
    agents = jax.ShapeDtypeStruct((task.card.agents,), np.bool_)
    return check_result(task, function, flags, agents, "one flag for each agent is")


def rows_where(flags: Any, values: Any, other_values: Any) -> Any:
    """Return the rows ``(agents, ...)`` of agents with a flag, and other values for the rest."""
    return jnp.where(flags.reshape(-1, *(1,) * (values.ndim - 1)), values, other_values)


def scalar_return(task: Task[Any, Any], total: Any) -> Any:
    """Reduce a reward or return ``(..., *reward shape)`` to one number.

    Agents are averaged, objectives weighted.

    Works for NumPy and JAX. The terms are added in a fixed order, which gives the same bits
    everywhere.
    """
    mean = average_agents(task, total)
    return weighted_sum(mean, task.card.weights, task.dtype) if task.card.objectives else mean


def average_agents(task: Described, total: Any) -> Any:
    """Return the mean over agents of a reward or return ``(..., *reward shape)``, NumPy or JAX.

    It is ``(...)``, or ``(..., k)`` for k objectives. The reward of one agent stays as it is.
    """
    count = task.card.agents
    if count == 1:
        return total
    by_agent = total.swapaxes(-1, -2) if task.card.objectives else total
    # This is not a division, because XLA turns a division by a constant into this product and NumPy
    # does not.
    return weighted_sum(by_agent, (1.0,) * count, task.dtype) * np.asarray(1 / count, task.dtype)


def weighted_sum(total: Any, weights: Sequence[float], dtype: np.dtype[Any]) -> Any:
    """Return the weighted sum over the last axis, NumPy or JAX, adding the terms in their order."""
    return functools.reduce(
        operator.add, [total[..., i] * np.asarray(w, dtype) for i, w in enumerate(weights)]
    )


def weighted_space(space: spaces.Box, weights: Sequence[float], dtype: np.dtype[Any]) -> spaces.Box:
    """Return the space of the weighted sums of vectors of a space, ``(k,)`` or ``(n, k)``."""
    signs = np.sign(np.asarray(weights, dtype))
    # A bound may be infinite, and infinity times zero is no number.
    lowest = np.select([signs > 0, signs < 0], [space.low, space.high], 0).astype(dtype)
    highest = np.select([signs > 0, signs < 0], [space.high, space.low], 0).astype(dtype)
    low = weighted_sum(lowest, weights, dtype)
    high = weighted_sum(highest, weights, dtype)
    return spaces.Box(low, high, low.shape, dtype.type)


def check_weights(task: Described, weights: Sequence[float] | None) -> tuple[float, ...] | None:
    """Return the given weights of a task's objectives as a tuple.

    Raises:
        ValueError: the task has one objective, or there is not one finite weight for each.
    """
    if weights is None:
        return None
    names = task.card.objectives
    if not names:
        raise ValueError(
            f"{task.card.id} has one objective; leave weights out (given: {weights!r})."
        )
    try:
        array = np.asarray(weights)
        with np.errstate(over="ignore"):
            finite = array.dtype.kind in "iuf" and np.isfinite(array.astype(task.dtype)).all()
    except (TypeError, ValueError):
        finite = False
    if not finite or array.shape != (len(names),):
        raise ValueError(
            f"weights of {task.card.id} are {len(names)} finite numbers, one for each of "
            f"{', '.join(names)}; got {weights!r}."
        )
    return tuple(array.tolist())


def is_legal(task: Task[Any, Any], mask: jax.Array | None, action: jax.Array) -> jax.Array:
    """Return whether the mask allows the action."""
    if mask is None:
        return jnp.bool_(True)
    return mask[action_offsets(task.action_space) + action].all()


def action_offsets(space: spaces.Space[Any]) -> np.ndarray:
    """Return what to add to each part of a (multi-)discrete action.

    The sum is the part's index in the flat mask.
    """
    sizes = action_sizes(space)
    offsets = np.cumsum([0, *sizes[:-1]], dtype=np.int32).reshape(space.shape or ())
    numbered: Any = space  # from its start on, which both kinds have
    return np.asarray(offsets - numbered.start, np.int32)


def action_sizes(space: spaces.Space[Any]) -> tuple[int, ...]:
    """Return the number of choices of each part of a (multi-)discrete action.

    Raises:
        TypeError: the space is neither.
    """
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(n) for n in space.nvec.ravel())
    raise TypeError(f"{space} is neither Discrete nor MultiDiscrete")


def _info(
    task: Task[Any, Any],
    episode: Episode,
    legal: jax.Array,
    cost: jax.Array | None,
    terminated: jax.Array,
) -> dict[str, Any]:
    """Return the task's measures and what the engine adds to them.

    It adds the score and the cost so far, the mask, and what is privileged.
    """
    info: dict[str, Any] = dict(check_info(task, task.info(episode.state, episode.params)))
    if task.ends_in_failure:
        info["success"] = info["success"] & ~terminated
    scale = Scale.of(task.scores)
    if scale and scale.span > 0:
        info["score"] = scale.score(scalar_return(task, episode.total))
    mask = _action_mask(task, episode.state, episode.params)
    if mask is not None:
        info |= {"action_mask": mask, "invalid_action": ~legal}
    for name in ("alive", "acting"):
        flags = _agent_flags(task, name, episode.state, episode.params)
        if flags is not None:
            info[name] = flags
    info |= central_info(task, episode.state, episode.params)
    if task.card.constraint:
        violates = task.card.constraint.broken_by(episode.total_cost)
        info |= {"cost": cost, "cost_so_far": episode.total_cost, "violates": violates}
    return info


def central_info(task: Task[Any, Any], state: Any, params: Any) -> dict[str, Any]:
    """Return the entries of ``info`` that only a critic may read.

    They are what is privileged, and the task's own global state; a task may have none of them.
    """
    info: dict[str, Any] = {}
    if task.privileged_space is not None:
        privileged = task.privileged(state, params)
        info["privileged"] = check_result(task, "privileged", privileged, task.privileged_space)
    if task.global_state_space is not None:
        vector = task.global_state(state, params)
        info["global_state"] = check_result(task, "global_state", vector, task.global_state_space)
    return info


def reset_where(
    task: Task[Any, Any],
    done: jax.Array,
    episodes: Episode,
    last_steps: Step,
    source: ContextSource,
) -> tuple[Episode, Step]:
    """Begin the next episode of every batch entry where ``done``; the others stay as they are.

    The cost follows the number of resets, not the size of the batch: the entries to reset are
    gathered into a block, begun together and scattered back, block after block until none is left.
    """
    block = max(2, math.ceil(done.shape[0] / 64))  # never one: see bit_exact.py
    over = BitSet.from_mask(done)
    count = over.size

    def reset_block(carry: tuple[jax.Array, Episode, Step]) -> tuple[jax.Array, Episode, Step]:
        num_reset, episodes, last_steps = carry
        rank = num_reset + np.arange(block, dtype=np.int32)
        # Filler entries point past the end: reads clamp to some entry, writes are dropped.
        entries = computed_once(
            lambda rank: jnp.where(rank < count, jax.vmap(over.select)(rank), done.shape[0])
        )(rank)
        beginnings = exact_vmap(
            lambda seed, index: begin(task, seed, index, source),
            episodes.seed[entries],
            episodes.index[entries] + 1,
        )
        episodes, last_steps = jax.tree.map(
            lambda old, new: old.at[entries].set(new.astype(old.dtype), mode="drop"),
            (episodes, last_steps),
            beginnings,
        )
        return num_reset + block, episodes, last_steps

    # Info of `last_steps`, such as the mask, has begin's structure, so one loop carries both.
    return jax.lax.while_loop(
        lambda carry: carry[0] < count, reset_block, (jnp.int32(0), episodes, last_steps)
    )[1:]

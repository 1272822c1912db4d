"""Measure steps per second of a single env, a batch and a fused program.

Actions are random, and resets are included.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.entry_points import make, make_vec
from rlbench_suite.adapters.rollout import Stream, open_stream, step_stream
from rlbench_suite.core import registry
from rlbench_suite.core.episode import ContextSource, Role, draw_key, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

_CHUNK = 32
_ACTIONS = 1000


def single(card: TaskCard, seconds: float) -> float:
    """Measure steps per second of a single environment, resets included.

    Actions are sampled in advance, so that neither their cost nor their use of the processor's
    caches counts. Masked actions are sampled between the steps with the clock stopped.
    """
    # Our own make, because gymnasium.make knows listed ids only; it adds nothing but the time
    # limit.
    env: gymnasium.Env[Any, Any] = gymnasium.wrappers.TimeLimit(make(card.id), card.horizon)
    env.action_space.seed(0)
    _, info = env.reset(seed=0)
    env.step(env.action_space.sample())  # compile
    _, info = env.reset()
    masked = "action_mask" in info and isinstance(env.action_space, spaces.Discrete)
    actions = itertools.cycle([env.action_space.sample() for _ in range(_ACTIONS)])
    steps = 0
    paused_seconds = 0.0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start - paused_seconds) < seconds:
        if masked:
            pause = time.perf_counter()
            action = env.action_space.sample(info["action_mask"])
            paused_seconds += time.perf_counter() - pause
        else:
            action = next(actions)
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            _, info = env.reset()
        steps += 1
    return steps / elapsed


def measure_batch(card: TaskCard, envs: int, seconds: float) -> float:
    """Measure steps per second of the vector environment with NumPy arrays in and out."""
    env: Any = make_vec(card.id, envs, autoreset_mode="SameStep")
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(8)]
    env.reset(seed=0)
    env.step(actions[0])  # compile
    steps = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        env.step(actions[steps % 8])
        steps += 1
    return steps * envs / elapsed


def measure_fused(
    card: TaskCard,
    envs: int,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Measure steps per second of one compiled program that acts at random.

    It steps, and it resets finished episodes. ``time.process_time`` as the clock counts seconds of
    processor time.
    """
    task = card.build()
    limit = jnp.int32(card.horizon)
    player: Any = list(registry.agent("random").train(task, seed=0, budget="smoke"))[-1]
    source = ContextSource.parse("train", task)

    def act(step: Any, episode: Any) -> jax.Array:
        view = View(step.observation, step.info.get("action_mask"), episode.state, episode.params)
        key = draw_key(episode.seed, episode.index, episode.t, Role.POLICY)
        return player.act(player.initial(episode.params), view, key)[0]

    def body(stream: Stream, _: None) -> tuple[Stream, None]:
        actions = jax.vmap(act)(stream.last, stream.episodes)
        return step_stream(task, stream, actions, limit, source)[0], None

    run = jax.jit(lambda stream: jax.lax.scan(body, stream, None, length=_CHUNK)[0])
    seeds = np.stack([seed_key(i) for i in range(envs)])
    stream = run(jax.jit(lambda seeds: open_stream(task, seeds, source))(seeds))
    jax.block_until_ready(stream)
    steps = 0
    start = clock()
    while (elapsed := clock() - start) < seconds:
        stream = jax.block_until_ready(run(stream))
        steps += _CHUNK
    return steps * envs / elapsed

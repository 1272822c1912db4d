"""Measure steps per second of batched SAT with random legal flips: transition, observation, mask, reward and resets.

python benchmarks/sat.py
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.rollout import Stream, open_stream, step_stream
from rlbench_suite.episode import Draw, Episode, Role, draw_key, seed_key
from rlbench_suite.registry import card
from rlbench_suite.task import Task

ENVS, STEPS, REPEATS = 4096, 200, 5


def random_legal(mask: jax.Array, word: jax.Array) -> jax.Array:
    """Draw a uniform legal action from 32 random bits: hash the bits for each action, and take the largest hash."""
    actions = np.arange(mask.shape[0], dtype=np.uint32)
    mixed = (word ^ actions * np.uint32(0x9E3779B9)) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> 15)) * np.uint32(0xC2B2AE35)
    tagged = (mixed | 32) & ~np.uint32(31) | actions  # the low bits hold the action's number
    return (jnp.where(mask, tagged, 0).max() & 31).astype(jnp.int32)


def steps_per_second(task: Task[Any, Any], cores: int) -> tuple[float, float]:
    """Measure steps per second of wall time and per second of processor time.

    Each core runs one stream in its own thread, because XLA's own threads gain less with steps as short as these.
    """
    draw, limit = Draw.parse("train", task), jnp.int32(task.card.horizon)

    def act(episode: Episode, mask: jax.Array) -> jax.Array:
        key = draw_key(episode.seed, episode.index, episode.t, Role.POLICY)
        return random_legal(mask, jax.random.key_data(key)[0])

    def step(stream: Stream, nothing: None) -> tuple[Stream, None]:
        actions = jax.vmap(act)(stream.episodes, stream.last.info["action_mask"])
        return step_stream(task, stream, actions, limit, draw)[0], nothing

    one_thread = {"xla_cpu_multi_thread_eigen": False}
    start = jax.jit(lambda seeds: open_stream(task, seeds, draw), compiler_options=one_thread)
    run = jax.jit(lambda stream: jax.lax.scan(step, stream, None, length=STEPS)[0], compiler_options=one_thread)
    seeds = np.stack([seed_key(seed) for seed in range(cores * ENVS)]).reshape(cores, ENVS, 2)
    streams = [jax.block_until_ready(run(start(jnp.asarray(own)))) for own in seeds]
    clock, processor = [], []
    with ThreadPoolExecutor(cores) as threads:
        for _ in range(REPEATS):
            begun = time.perf_counter(), time.process_time()
            streams = list(threads.map(lambda stream: jax.block_until_ready(run(stream)), streams))
            clock.append(time.perf_counter() - begun[0])
            processor.append(time.process_time() - begun[1])
    steps = cores * ENVS * STEPS
    return steps / min(clock), steps / min(processor)


if __name__ == "__main__":
    for name, variables in card("SAT-v0").difficulties.items():
        sat = card("SAT-v0").build(difficulty=name)
        for used in sorted({1, os.cpu_count() or 1}):
            clock, processor = steps_per_second(sat, used)
            print(
                f"SAT-v0 {name} ({variables} variables), {used} x {ENVS} envs: {clock / 1e6:.1f}M steps/s"
                f" ({processor / 1e6:.1f}M per second of processor time)",
                flush=True,
            )

"""Steps/s of batched SAT: transition, observation, mask, reward and resets, played by random legal flips.

python benchmarks/sat.py
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.rollout import Stream, open_stream, step_stream
from rlbench_suite.episode import Draw, Role, draw_key, seed_key
from rlbench_suite.registry import card
from rlbench_suite.task import Task

ENVS, STEPS, REPEATS = 4096, 200, 5


def random_legal(mask: jax.Array, word: jax.Array) -> jax.Array:
    """A uniform legal action from 32 random bits: the bits are mixed anew for each action, and the largest wins."""
    actions = np.arange(mask.shape[0], dtype=np.uint32)
    mixed = (word ^ actions * np.uint32(0x9E3779B9)) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> 15)) * np.uint32(0xC2B2AE35)
    tagged = (mixed | 32) & ~np.uint32(31) | actions  # the winner's number rides in the low bits
    return (jnp.where(mask, tagged, 0).max() & 31).astype(jnp.int32)


def steps_per_second(task: Task) -> tuple[float, float]:
    """Wall-clock steps/s, and steps/s of one core's own time."""
    draw, limit = Draw.parse("train", task), jnp.int32(task.card.horizon)
    seeds = jnp.asarray(np.stack([seed_key(seed) for seed in range(ENVS)]))

    def step(carry: tuple[Stream, jax.Array], _: None) -> tuple[tuple[Stream, jax.Array], None]:
        stream, checksum = carry
        episodes = stream.episodes

        def act(seed: jax.Array, index: jax.Array, t: jax.Array, mask: jax.Array) -> jax.Array:
            return random_legal(mask, jax.random.key_data(draw_key(seed, index, t, Role.POLICY))[0])

        actions = jax.vmap(act)(episodes.seed, episodes.index, episodes.t, stream.last.info["action_mask"])
        stream, made, _ = step_stream(task, stream, actions, limit, draw)
        return (stream, checksum + made.reward), None

    run = jax.jit(lambda stream: jax.lax.scan(step, (stream, jnp.zeros(ENVS, task.dtype)), None, length=STEPS)[0])
    stream = jax.jit(lambda: open_stream(task, seeds, draw))()
    stream, _ = jax.block_until_ready(run(stream))
    wall, core = [], []
    for _ in range(REPEATS):
        start = time.perf_counter(), time.process_time()
        stream, _ = jax.block_until_ready(run(stream))
        wall.append(time.perf_counter() - start[0])
        core.append(time.process_time() - start[1])
    return ENVS * STEPS / min(wall), ENVS * STEPS / min(core)


if __name__ == "__main__":
    for difficulty in card("SAT-v0").difficulties:
        wall, core = steps_per_second(card("SAT-v0").build(difficulty=difficulty))
        print(f"SAT-v0 {difficulty:7s} {ENVS} envs: {wall / 1e6:6.2f}M steps/s  ({core / 1e6:.2f}M a core second)")

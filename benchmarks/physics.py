"""Steps a second of the whole control tasks on this device, batched: physics, reward, observation, ends and resets.

    python benchmarks/physics.py

Each figure is the best of five runs of one compiled program that scans over steps. Two players: constant commands
drawn anew for every entry and run (crashes and resets are frequent), and the family's reference player in the loop
(its own cost included, resets at the time limit only). Beside them the transition alone, with nothing around it, and
the transition with the observation written out.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.rollout import open_stream, step_stream
from rlbench_suite.episode import Draw, seed_key
from rlbench_suite.policy import View, reference_player
from rlbench_suite.registry import card

TASKS = "rlsuite/QuadcopterHover-v0", "rlsuite/PMSMCurrent-v0"
SIZES = 4_096, 65_536
STEPS_A_RUN = 2**21
DRAW = Draw(np.int32(0), np.int32(-1))


def million_steps(body: Callable[[Any, Any], Any], carry: Any, size: int) -> float:
    """Million steps a second of ``body`` scanned over a batch of ``size``."""
    steps = STEPS_A_RUN // size
    program = jax.jit(lambda c: jax.lax.scan(body, c, None, steps))
    jax.block_until_ready(program(carry))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(program(carry))
        times.append(time.perf_counter() - start)
    return steps * size / min(times) / 1e6


def figures(task: Any, size: int) -> list[float]:
    """The columns."""
    limit = np.int32(task.card.horizon)
    seeds = np.stack([seed_key(seed) for seed in range(size)])
    stream = jax.jit(partial(open_stream, task))(seeds, DRAW)
    actions = np.random.default_rng(0).uniform(-1, 1, (size, *task.action_space.shape)).astype(task.dtype)
    player = reference_player(task)
    keys = jax.random.split(jax.random.key(0), size)

    def physics(state: Any, _: Any) -> Any:
        params = stream.episodes.params
        return jax.vmap(task.transition)(state, actions, keys, params), None

    def observed(carry: Any, _: Any) -> Any:
        params = stream.episodes.params
        state = jax.vmap(task.transition)(carry[0], actions, keys, params)
        return (state, jax.vmap(task.observation)(state, keys, params)), None

    def constant(stream: Any, _: Any) -> Any:
        stream, step, _ = step_stream(task, stream, actions, limit, DRAW)
        return stream, step.reward.sum()

    def closed_loop(carry: Any, _: Any) -> Any:
        stream, memory = carry
        view = View(stream.last.observation, None, stream.episodes.state, stream.episodes.params)
        chosen, memory = jax.vmap(player.act)(memory, view, keys)
        stream, step, _ = step_stream(task, stream, chosen, limit, DRAW)
        fresh = jax.vmap(player.initial)(stream.episodes.params)
        memory = jax.tree.map(lambda new, old: jnp.where(stream.episodes.t == 0, new, old), fresh, memory)
        return (stream, memory), step.reward.sum()

    memory = jax.vmap(player.initial)(stream.episodes.params)
    return [
        million_steps(physics, stream.episodes.state, size),
        million_steps(observed, (stream.episodes.state, stream.last.observation), size),
        million_steps(constant, stream, size),
        million_steps(closed_loop, (stream, memory), size),
    ]


def main() -> None:
    print(f"{jax.devices()[0]}, million steps a second")
    print(f"{'task':28s}{'envs':>8s}{'transition':>12s}{'observed':>12s}{'constant':>12s}{'reference':>12s}")
    for name in TASKS:
        task = card(name).build()
        for size in SIZES:
            print(f"{name:28s}{size:8d}" + "".join(f"{value:12.1f}" for value in figures(task, size)), flush=True)


if __name__ == "__main__":
    main()

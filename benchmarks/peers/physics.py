"""Measure steps per second of batched control tasks on this device, as a whole and in parts.

    python benchmarks/peers/physics.py

Each figure is the best of five runs of one compiled program that scans over steps, one block of the
batch after the other (`rollout.in_blocks`). The columns are:

* ``equations``: the equations of the machine or vehicle and the observation, under constant
  actions;
* ``transition``: the transition, which also moves a random reference;
* ``observed``: the transition and the observation;
* ``constant``: the whole task under constant actions, which differ between environments; crashes
  and resets are frequent;
* ``reference``: the whole task with the family's reference player, whose own cost counts; resets
  come only at the time limit.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from cores import wait_for_all

from rlbench_suite.adapters.rollout import in_blocks, open_stream, step_stream
from rlbench_suite.core.episode import ContextSource, seed_key
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.machines import pmsm
from rlbench_suite.envs.motor.machines.frames import DQ
from rlbench_suite.envs.motor.tasks.pmsm_current import (
    STEP,
    VOLTAGE_LIMIT,
    PMSMCurrent,
    shorten_to_unit_circle,
)

TASKS = "rlsuite/QuadcopterHover-v0", "rlsuite/PMSMCurrent-v0"
SIZES = 4_096, 65_536
STEPS_PER_RUN = 2**21
MIN_LENGTH = 256
"""Shortest scan; a shorter one would measure how a batch is loaded and stored."""
DRAW = ContextSource(np.int32(0), np.int32(-1))


def million_steps(
    body: Callable[[Any, Any, jax.Array], Any], carry: Any, fixed: Any, steps_each: int
) -> float:
    """Measure million steps per second of scanning ``body(carry, fixed, t)``.

    A large batch is scanned block by block.

    Args:
        body: returns the next ``carry``.
        carry: a batch.
        fixed: constants, batched like ``carry``.
        steps_each: steps that one environment's step counts for, its number of agents.
    """
    size = jax.tree.leaves(carry)[0].shape[0]
    length = max(STEPS_PER_RUN // (size * steps_each), MIN_LENGTH)

    def run(batch: Any) -> Any:
        carry, fixed = batch
        return jax.lax.scan(
            lambda carry, t: (body(carry, fixed, t), None), carry, jnp.arange(length)
        )[0]

    program = jax.jit(lambda batch: in_blocks(run, batch))
    jax.block_until_ready(program((carry, fixed)))
    wait_for_all()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(program((carry, fixed)))
        times.append(time.perf_counter() - start)
    return length * size * steps_each / min(times) / 1e6


COLUMNS = "equations", "transition", "observed", "constant", "reference"


def header(first: str) -> str:
    """Return the header line; its first column has 32 characters."""
    return f"{first:32s}" + "".join(f"{name:>12s}" for name in COLUMNS)


def equations(task: Any, state: Any, action: jax.Array, key: jax.Array, params: Any) -> Any:
    """Return the state after one step of the physical equations, without a moving reference."""
    if not isinstance(task, PMSMCurrent):
        return task.transition(state, action, key, params)  # quadcopters have no moving reference
    applied = shorten_to_unit_circle(DQ(action[0], action[1]))
    voltage = DQ(VOLTAGE_LIMIT * applied.d, VOLTAGE_LIMIT * applied.q)
    current = pmsm.step(state.current, voltage, params.speed, params.machine, STEP)
    return state._replace(current=current, applied=applied)


def figures(task: Any, size: int) -> list[float]:
    """Measure the columns for a batch of ``size``.

    In a multi-agent task each agent's steps count.
    """
    limit = np.int32(task.card.horizon)
    seeds = np.stack([seed_key(seed) for seed in range(size)])
    stream = jax.jit(partial(open_stream, task))(seeds, DRAW)
    actions = (
        np.random.default_rng(0).uniform(-1, 1, (size, *task.action_space.shape)).astype(task.dtype)
    )
    player = reference_player(task)
    numbers = jax.random.bits(jax.random.key(0), (size, 2), np.uint32)
    memory = jax.vmap(player.initial)(stream.episodes.params)
    fixed = actions, numbers, stream.episodes.params
    earned = jnp.zeros(size, task.dtype)

    def keys(numbers: jax.Array, t: jax.Array) -> jax.Array:
        """Return keys that differ at every step.

        Otherwise the compiler would sample once for all steps.
        """
        return jax.random.wrap_key_data(numbers + t.astype(np.uint32))

    def physics(state: Any, fixed: Any, t: jax.Array) -> Any:
        actions, numbers, params = fixed
        return jax.vmap(task.transition)(state, actions, keys(numbers, t), params)

    def observed(move: Callable[..., Any]) -> Callable[[Any, Any, jax.Array], Any]:
        def body(carry: Any, fixed: Any, t: jax.Array) -> Any:
            actions, numbers, params = fixed
            state = jax.vmap(move)(carry[0], actions, keys(numbers, t), params)
            return state, jax.vmap(task.observation)(state, keys(numbers, t), params)

        return body

    def pay(earned: jax.Array, step: Any) -> jax.Array:
        return earned + step.reward.reshape(len(earned), -1).sum(1)

    def constant(carry: Any, fixed: Any, t: jax.Array) -> Any:
        stream, earned = carry
        stream, step, _ = step_stream(task, stream, fixed[0], limit, DRAW)
        return stream, pay(earned, step)

    def closed_loop(carry: Any, fixed: Any, t: jax.Array) -> Any:
        stream, memory, earned = carry
        view = View(stream.last.observation, None, stream.episodes.state, stream.episodes.params)
        policy_actions, memory = jax.vmap(player.act)(memory, view, keys(fixed[1], t))
        stream, step, _ = step_stream(task, stream, policy_actions, limit, DRAW)
        fresh = jax.vmap(player.initial)(stream.episodes.params)

        def anew(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where((stream.episodes.t == 0).reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return stream, jax.tree.map(anew, fresh, memory), pay(earned, step)

    observed_start = stream.episodes.state, stream.last.observation
    runs: list[tuple[Callable[[Any, Any, jax.Array], Any], Any]] = [
        (observed(partial(equations, task)), observed_start),
        (physics, stream.episodes.state),
        (observed(task.transition), observed_start),
        (constant, (stream, earned)),
        (closed_loop, (stream, memory, earned)),
    ]
    return [million_steps(body, carry, fixed, task.card.agents) for body, carry in runs]


def main() -> None:
    print(f"{jax.devices()[0]}, million steps per second")
    for name in TASKS:
        task = card(name).build()
        print(header(name))
        for size in SIZES:
            print(
                f"{size:32,d}" + "".join(f"{value:12.1f}" for value in figures(task, size)),
                flush=True,
            )


if __name__ == "__main__":
    main()

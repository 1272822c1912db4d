"""Steps a second of the whole control tasks on this device, batched: physics, reward, observation, ends and resets.

    python benchmarks/physics.py

Each figure is the best of five runs of one compiled program that scans over steps. Two players: constant commands
drawn anew for every entry and run (crashes and resets are frequent), and the family's reference player in the loop
(its own cost included, resets at the time limit only). Beside them the machine's or vehicle's equations alone, under
constant commands, with the observation written out; the transition, which also moves a reference at random; and the
transition with the observation written out.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from cores import wait_for_all

from rlbench_suite.adapters.rollout import open_stream, step_stream
from rlbench_suite.envs.motor import pmsm
from rlbench_suite.envs.motor.frames import DQ
from rlbench_suite.envs.motor.pmsm_current import STEP, VOLTAGE_LIMIT, PMSMCurrent, within_unit_circle
from rlbench_suite.episode import Draw, seed_key
from rlbench_suite.policy import View, reference_player
from rlbench_suite.registry import card

TASKS = "rlsuite/QuadcopterHover-v0", "rlsuite/PMSMCurrent-v0"
SIZES = 4_096, 65_536
STEPS_A_RUN = 2**21
DRAW = Draw(np.int32(0), np.int32(-1))


def million_steps(body: Callable[[Any, Any], Any], carry: Any, size: int) -> float:
    """Million steps a second of ``body``, scanned over, each of which steps ``size`` machines or vehicles."""
    steps = STEPS_A_RUN // size
    program = jax.jit(lambda c: jax.lax.scan(body, c, None, steps))
    jax.block_until_ready(program(carry))
    wait_for_all()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(program(carry))
        times.append(time.perf_counter() - start)
    return steps * size / min(times) / 1e6


COLUMNS = "equations", "transition", "observed", "constant", "reference"


def header(first: str) -> str:
    """Names of the columns, after one of 32 characters."""
    return f"{first:32s}" + "".join(f"{name:>12s}" for name in COLUMNS)


def equations(task: Any, state: Any, action: jax.Array, key: jax.Array, params: Any) -> Any:
    """The state after one step of what a data sheet describes; no reference moves."""
    if not isinstance(task, PMSMCurrent):
        return task.transition(state, action, key, params)  # quadcopters have no reference that moves
    applied = within_unit_circle(DQ(action[0], action[1]))
    voltage = DQ(VOLTAGE_LIMIT * applied.d, VOLTAGE_LIMIT * applied.q)
    current = pmsm.step(state.current, voltage, params.speed, params.machine, STEP)
    return state._replace(current=current, applied=applied)


def figures(task: Any, size: int) -> list[float]:
    """The columns for a batch of ``size``; where a task has many agents, each one's steps count."""
    limit = np.int32(task.card.horizon)
    seeds = np.stack([seed_key(seed) for seed in range(size)])
    stream = jax.jit(partial(open_stream, task))(seeds, DRAW)
    actions = np.random.default_rng(0).uniform(-1, 1, (size, *task.action_space.shape)).astype(task.dtype)
    player = reference_player(task)
    keys = jax.random.split(jax.random.key(0), size)

    def physics(state: Any, _: Any) -> Any:
        params = stream.episodes.params
        return jax.vmap(task.transition)(state, actions, keys, params), None

    def observed(move: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        def body(carry: Any, _: Any) -> Any:
            params = stream.episodes.params
            state = jax.vmap(move)(carry[0], actions, keys, params)
            return (state, jax.vmap(task.observation)(state, keys, params)), None

        return body

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
    shown = stream.episodes.state, stream.last.observation
    runs = [
        (observed(partial(equations, task)), shown),
        (physics, stream.episodes.state),
        (observed(task.transition), shown),
        (constant, stream),
        (closed_loop, (stream, memory)),
    ]
    return [million_steps(body, carry, size * task.card.agents) for body, carry in runs]


def main() -> None:
    print(f"{jax.devices()[0]}, million steps a second")
    for name in TASKS:
        task = card(name).build()
        print(header(name))
        for size in SIZES:
            print(f"{size:32,d}" + "".join(f"{value:12.1f}" for value in figures(task, size)), flush=True)


if __name__ == "__main__":
    main()

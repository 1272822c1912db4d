"""Measure steps per second of other simulators of drives and quadcopters.

    python control_peers.py SECONDS NAME ARGUMENT...   # prints a line for each argument

``control.py`` runs this file in the peers' own environment. Random actions are drawn in advance, so
that neither their cost nor their use of the processor's caches counts. Single environments reset
when an episode ends; the peers' batches never end. For exciting-environments, the faster of its
jitted step and a compiled loop over it counts.
"""

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any


def single(env: Any, seconds: float) -> float:
    """Measure steps per second of a Gymnasium environment, resets included."""
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = itertools.cycle([env.action_space.sample() for _ in range(1000)])
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        *_, terminated, truncated, _ = env.step(next(actions))
        if terminated or truncated:
            env.reset()
        steps += 1
    return steps / elapsed


def measure_rate(run: Callable[[], Any], steps: int, seconds: float) -> float:
    """Measure steps per second of a call that makes ``steps`` steps."""
    run()  # compiles
    calls, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        run()
        calls += 1
    return calls * steps / elapsed


def motor(seconds: float, task_id: str) -> float:
    """Measure gym-electric-motor with its defaults."""
    import gym_electric_motor

    return single(gym_electric_motor.make(task_id), seconds)


def drone(seconds: float, actions: str) -> float:
    """Measure gym-pybullet-drones' hover task.

    It takes 30 decisions per simulated second, eight PyBullet steps each.
    """
    from gym_pybullet_drones.envs.HoverAviary import HoverAviary
    from gym_pybullet_drones.utils.enums import ActionType

    return single(HoverAviary(act=ActionType[actions]), seconds)


def exciting(seconds: float, size: str) -> float:
    """Measure exciting-environments' PMSM.

    It computes equations and observation, without set point, reward or reset.
    """
    import jax
    import numpy as np
    from exciting_environments.pmsm import PMSM

    loop = 64
    env = PMSM(batch_size=int(size))
    _, state = env.vmap_reset()
    action = jax.numpy.asarray(np.random.default_rng(0).uniform(-1, 1, (int(size), 2)))

    def step(state: Any, _: None) -> Any:
        observation, state = env.vmap_step(state, action)
        return state, observation[:, 0]

    scan = jax.jit(lambda state: jax.lax.scan(step, state, None, loop))
    return max(
        measure_rate(
            lambda: jax.block_until_ready(env.vmap_step(state, action)), int(size), seconds / 2
        ),
        measure_rate(lambda: jax.block_until_ready(scan(state)), int(size) * loop, seconds / 2),
    )


def learning_to_fly(seconds: float, size: str) -> float:
    """Measure the l2f package: one Runge-Kutta step and the observation."""
    import l2f
    import numpy as np

    vector = getattr(l2f, f"vector{size}")
    device, rng, env = l2f.Device(), vector.VectorRng(), vector.VectorEnvironment()
    params, state, after = vector.VectorParameters(), vector.VectorState(), vector.VectorState()
    observation = np.zeros((env.N_ENVIRONMENTS, env.OBSERVATION_DIM), np.float32)
    action = (
        np.random.default_rng(0)
        .uniform(-1, 1, (env.N_ENVIRONMENTS, env.ACTION_DIM))
        .astype(np.float32)
    )
    vector.initialize_rng(device, rng, 0)
    vector.initialize_environment(device, env)
    vector.sample_initial_parameters(device, env, params, rng)
    vector.sample_initial_state(device, env, params, state, rng)

    def two_steps() -> None:  # alternate between two buffers, so that nothing is copied
        for before, later in ((state, after), (after, state)):
            vector.step(device, env, params, before, action, later, rng)
            vector.observe(device, env, params, later, observation, rng)

    return measure_rate(two_steps, 2 * env.N_ENVIRONMENTS, seconds)


PEERS = {
    "gym-electric-motor": motor,
    "gym-pybullet-drones": drone,
    "exciting": exciting,
    "l2f": learning_to_fly,
}

if __name__ == "__main__":
    for argument in sys.argv[3:]:
        print(PEERS[sys.argv[2]](float(sys.argv[1]), argument), flush=True)

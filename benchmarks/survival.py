"""Compare the speed of Survival-v0 with that of Craftax-Classic, in one run on one machine.

    pip install craftax && python benchmarks/survival.py [--envs 256,4096]

Craftax-Classic (Matthews et al. 2024, arXiv:2402.16801) is Crafter's open world in JAX, with 1,345 symbolic features;
ours has 1,260. Both sides run as one fused program that acts at random, in one process for each core (``cores.py``).
Ours resets finished episodes. Craftax's side does not, which saves it the worlds. Figures are medians of three
interleaved rounds, so that other load on the machine affects both.
"""

import argparse
import statistics
import time

import jax
from all_cores import SECONDS, steps_per_second
from cores import Cores, wait_for_all

ROUNDS = 3
STEPS = 16
"""Steps of one call of Craftax's program"""


def craftax(envs: int) -> list[float]:
    """Measure steps per second of Craftax-Classic in this process while the others do the same."""
    from craftax.craftax_env import make_craftax_env_from_name

    env = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=False)
    params = env.default_params

    def step(state, key):  # type: ignore[no-untyped-def]
        act, go = jax.random.split(key)
        actions = jax.random.randint(act, (envs,), 0, env.action_space(params).n)
        keys = jax.random.split(go, envs)
        seen, state, reward, *_ = jax.vmap(env.step, (0, 0, 0, None))(keys, state, actions, params)
        return state, seen.sum() + reward.sum()  # the sums keep the compiler from leaving the observation out

    @jax.jit
    def many(state, key):  # type: ignore[no-untyped-def]
        state, sums = jax.lax.scan(step, state, jax.random.split(key, STEPS))
        return state, sums.sum()

    state = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), envs), params)[1]
    for warm_up in range(2):  # the second call meets the state's own types and compiles again
        state, total = many(state, jax.random.key(-1 - warm_up))
        jax.block_until_ready(total)
    wait_for_all()
    began, calls = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        state, total = many(state, jax.random.key(calls))
        jax.block_until_ready(total)
        calls += 1
    return [calls * STEPS * envs / (time.perf_counter() - began)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", default="256,4096", help="environments of a process, separated by commas")
    sizes = [int(size) for size in parser.parse_args().envs.split(",")]
    cores = Cores()
    print(f"{jax.devices()[0]}, {cores.count} processes, steps per second, median of {ROUNDS} rounds")
    for envs in sizes:
        rounds = [
            (cores.sums(craftax, envs)[0], cores.sums(steps_per_second, "rlsuite/Survival-v0", envs)[0])
            for _ in range(ROUNDS)
        ]
        peer, own = (statistics.median(side) for side in zip(*rounds, strict=True))
        print(
            f"{envs} environments: Craftax-Classic {peer:,.0f}, Survival-v0 {own:,.0f}: {own / peer:.1f} x", flush=True
        )


if __name__ == "__main__":
    main()

"""Measure how far float32 drifts from float64 over an episode of a drive or a quadcopter.

    python benchmarks/audits/drift.py  # every id of both families, one line for each measure
    python benchmarks/audits/drift.py rlsuite/PMSMSpeed-v0

The reference player's actions in 256 test episodes are applied again in float32 and in float64,
from the same start in the same context. The table shows the largest value of each measure and its
largest difference at any step. It leaves out errors from random set points and tasks with gusts,
because the two precisions draw different random numbers. Simulators on the host are left out too,
because they compute in float64 anyway.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card, resolve_suite
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.process import precision

EPISODES = range(2**32, 2**32 + 256)
RANDOM = "error"
"""Prefix of the measures that depend on a random set point."""


def measure_drift(task: Task[Any, Any], starts: Any, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return each measure, ``(episodes, steps)``, in the task's precision.

    The actions are ``(episodes, steps, ...)``.
    """

    def run(params: Any, state: Any, sequence: jax.Array) -> dict[str, jax.Array]:
        def step(state: Any, action: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
            state = task.transition(state, action, jax.random.key(0), params)
            return state, task.info(state, params)

        return jax.lax.scan(step, state, sequence)[1]

    def cast(leaf: Any) -> Any:
        return leaf.astype(task.dtype) if leaf.dtype.kind == "f" else leaf

    with precision(task):
        return jax.tree.map(
            np.asarray, jax.jit(jax.vmap(run))(*jax.tree.map(cast, (*starts, actions)))
        )


def drift(task_id: str) -> dict[str, tuple[float, float]]:
    """Return the largest value and the largest difference of each measure."""
    task = card(task_id).build()
    record = play(task, reference_player(task), EPISODES, split="test")
    source = ContextSource.parse("test", task)
    first = jax.jit(jax.vmap(lambda seed: begin(task, seed, jnp.int32(0), source)[0]))
    episode = first(np.stack([seed_key(seed) for seed in EPISODES]))
    starts = jax.tree.map(np.asarray, (episode.params, episode.state))
    single, double = (
        measure_drift(card(task_id).build(dtype=dtype), starts, record.actions)
        for dtype in ("float32", "float64")
    )
    is_played = np.arange(record.actions.shape[1]) < record.length[:, None]
    names = [name for name in task.measures if not name.startswith(RANDOM)]
    return {
        name: (
            float(np.abs(double[name][is_played]).max()),
            float(np.abs(single[name][is_played] - double[name][is_played]).max()),
        )
        for name in names
    }


def main() -> None:
    print(f"{'id':34}{'measure':28}{'largest':>12}{'difference':>12}")
    for task_card in resolve_suite(",".join(sys.argv[1:]) or "motor,quadcopter"):
        if task_card.host or "disturbance" in task_card.tags:
            continue
        measures = task_card.build().measures
        for name, (largest, difference) in drift(task_card.id).items():
            print(
                f"{task_card.id:34}{f'{name}, {measures[name]}':28.28}"
                f"{largest:12.4g}{difference:12.2g}",
                flush=True,
            )


if __name__ == "__main__":
    main()

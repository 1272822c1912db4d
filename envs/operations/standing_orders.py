"""The best constant orders, which are the zero of the scale where random orders are far worse.

A standing order near the mean demand is a serious policy where sales are lost and lead times are
long (Goldberg et al. 2016, doi:10.1287/moor.2015.0760). The orders are the best of a search by
coordinates on training contexts; ``python -m rlbench_suite.envs.operations.standing_orders ID``
repeats it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from rlbench_suite.core.arrays import FloatArray, IntArray
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task

ORDERS: Mapping[str, Mapping[float, tuple[float, ...]]] = {
    "Inventory-v0": {
        0: (11, 6, 5, 5),
        1: (24, 9, 9, 9),
        2: (4,),
        3: (8,),
    },
    "InventoryNetwork-v0": {
        2: (4.1,),
        1: (4.2,),
        3: (4.1,),
        4: (4.1,),
    },
}
"""Orders by name of the task and by difficulty, as its action has them.

Those of the networks are for each store that a place supplies.
"""


class StandingOrders(eqx.Module):
    """Orders the same every period."""

    orders: FloatArray | IntArray

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> StandingOrders:
        """Return the orders of a network, in proportion to its size where a context changes it."""
        orders_by_difficulty = ORDERS[task.card.registered_id.split("/")[1]]
        difficulty = task.difficulty or 0
        nearest = min(orders_by_difficulty, key=lambda listed: abs(listed - difficulty))
        orders = np.array(orders_by_difficulty[nearest]) * getattr(task, "size", 1.0)
        space: Any = task.action_space
        if space.dtype.kind != "f":
            orders = np.round(orders)
        return cls(orders.astype(space.dtype))

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the orders."""
        return self.orders, memory


def search(task: Task[Any, Any], steps: tuple[float, ...], episodes: int) -> tuple[float, Any]:
    """Return the best mean return on training contexts, and its orders.

    One order after another moves by a step as long as that helps; then the next step is tried.
    """
    from rlbench_suite.adapters.rollout import play

    space: Any = task.action_space
    low, high = (space.low, space.high) if hasattr(space, "low") else (0, space.nvec - 1)

    def mean_return(orders: Any) -> float:
        player = StandingOrders(orders.astype(space.dtype))
        return float(play(task, player, range(episodes), split="train").total.mean())

    best = StandingOrders.for_task(task).orders.astype(np.float64)
    best_return = mean_return(best)
    for step in steps:
        improved = True
        while improved:
            improved = False
            for i in range(len(best)):
                for change in (-step, step):
                    orders = best.copy()
                    orders[i] += change
                    orders = np.clip(orders, low, high)
                    if (total := mean_return(orders)) > best_return:
                        best, best_return, improved = orders, total, True
    return best_return, best


if __name__ == "__main__":
    from rlbench_suite.core.registry import card

    for tier in card(sys.argv[1]).difficulties:
        task = card(sys.argv[1]).build(difficulty=tier)
        steps = (2.0, 1.0) if task.action_space.dtype.kind != "f" else (1.0, 0.3, 0.1)
        total, orders = search(task, steps, episodes=500)
        print(f"{tier:16s} return {total:9.2f}   orders {tuple(orders.round(3).tolist())}")

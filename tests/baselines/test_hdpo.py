"""HDPO against the optimum of a store with lost sales, and what it refuses to play."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.baselines.hdpo import HDPO, Config, Policy, clip_towards_inside
from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.operations.inventory_network import InventoryNetwork, Params, Store

OPTIMUM = 5.4382
"""Least average cost of one store with lost sales: lead time 1, Poisson demand of mean 5, holding
cost 1, penalty 9 (Zipkin 2008, doi:10.1287/opre.1070.0471; an order is on the shelf one period
later)."""


class OneStore(InventoryNetwork):
    """The store of :data:`OPTIMUM` in every episode."""

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        store = Store(*(jnp.float32(number) for number in (5, 1, 9)))
        return Params((store,), jnp.float32(0), jnp.float32(0))


def average_cost(task: Any, policy: Any) -> tuple[float, float]:
    """Return the cost a period after the first 50, and its standard error."""
    params = task.sample_params(None, 1)

    def run(key: jax.Array) -> jax.Array:
        def period(state: Any, t: jax.Array) -> Any:
            view = View(task.observation(state, key, params), None, None, None)
            action, _ = policy.act((), view, key)
            state = task.transition(state, action, jax.random.fold_in(key, t), params)
            return state, state.cost

        return jax.lax.scan(period, task.initial(key, params), jnp.arange(200))[1][50:].mean()

    costs = np.asarray(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(1), 1000)))
    return float(costs.mean()), float(costs.std()) / 1000**0.5


def test_it_comes_near_the_optimum_of_a_store_with_lost_sales(tmp_path: Any) -> None:
    task = OneStore(card("InventoryNetwork-v0"), difficulty=1, dtype="float32")
    agent = HDPO(total_steps=480_000, reports=4, hidden=(32, 32))
    *progress, policy = agent.train(task, seed=0, budget="smoke")
    assert all(isinstance(point, Progress) for point in progress)
    assert progress[-1].steps == progress[-1].total_steps >= 480_000
    assert progress[-1].episode_return > progress[0].episode_return
    cost, error = average_cost(task, policy)
    assert OPTIMUM - 3 * error < cost < 1.03 * OPTIMUM
    agent.save(policy, str(tmp_path / "policy.safetensors"))
    loaded: Policy = agent.load(str(tmp_path / "policy.safetensors"), task)
    for saved, read in zip(
        jax.tree.leaves(policy.actor), jax.tree.leaves(loaded.actor), strict=True
    ):
        np.testing.assert_array_equal(saved, read)


def test_a_clipped_action_may_always_come_back() -> None:
    x = jnp.array([-2.0, -2.0, 0.5, 0.5, 2.0, 2.0])
    slope = jnp.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    value, gradient = jax.value_and_grad(lambda x: (slope * clip_towards_inside(x)).sum())(x)
    assert float(value) == 0
    assert gradient.tolist() == [0, -1, 1, -1, 1, 0]


@pytest.mark.parametrize("name", ["Inventory-v0", "Execution-v0", "SAT-v0"])
def test_it_refuses_a_task_that_is_not_differentiable(name: str) -> None:
    with pytest.raises(CannotPlay, match=f"{name} does not declare that it is differentiable"):
        HDPO().check(card(name).build())


def test_hyperparameters_are_checked() -> None:
    for wrong in ({"num_envs": 0}, {"num_steps": 0}, {"learning_rate": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Config(**wrong)
    config = HDPO(total_steps=10_000, num_envs=4).config(
        card("InventoryNetwork-v0").build(), "smoke"
    )
    assert config.num_steps == 100
    assert config.updates * config.batch >= 10_000

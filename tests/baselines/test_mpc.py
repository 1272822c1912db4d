"""The planner against enumeration, the Riccati equation, and chance."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from toy_tasks import Bandit, CostlyBandit, Digits, Toy, TwoAgents, TwoObjectives

from rlbench_suite.adapters.rollout import first_episodes, play
from rlbench_suite.baselines.mpc import MPC, Config
from rlbench_suite.core import registry
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.episode import Episode, seed_key


def planner(task: Any, **settings: Any) -> Any:
    (policy,) = MPC(**settings).train(task, seed=0, budget="smoke")
    return policy


def first(task: Any, count: int) -> Episode:
    return first_episodes(
        task, np.stack([seed_key(seed) for seed in range(count)]), "test"
    ).episodes


class Table(NamedTuple):
    paid: Any
    goes: Any


class Place(NamedTuple):
    place: Any


class Machine(Toy):
    """A random machine of six states and three actions, one of them masked in odd states."""

    def __init__(self) -> None:
        super().__init__(horizon=5)
        self.action_space = spaces.Discrete(3)

    def sample_params(self, key, split):
        return Table(self.uniform(key, 18).reshape(6, 3), self.bits(key, 18).reshape(6, 3) % 6)

    def initial(self, key, params):
        return Place(jnp.uint32(0))

    def transition(self, state, action, key, params):
        return Place(params.goes[state.place, action])

    def action_mask(self, state, params):
        return (jnp.arange(3) < 2) | (state.place % 2 == 0)

    def reward(self, state, action, next_state, key, params):
        return params.paid[state.place, action]


def test_plans_of_a_random_machine_are_the_best_of_all_sequences() -> None:
    task = Machine()
    policy = planner(task, horizon=5, samples=256, iterations=3)
    record = play(task, policy, range(12))
    paid, goes = first(task, 12).params
    for i in range(12):
        best = 0.0
        for plan in itertools.product(range(3), repeat=5):
            place = 0
            total = 0.0
            for action in plan:
                if action == 2 and place % 2:
                    break
                total += float(paid[i, place, action])
                place = int(goes[i, place, action])
            else:
                best = max(best, total)
        assert record.total[i] == pytest.approx(best, abs=1e-5)


class Point(NamedTuple):
    x: Any
    v: Any


class PointMass(Toy):
    """A point mass, pushed by at most 2 m/s^2 in steps of 0.2 s.

    A step costs x^2 + 0.1 v^2 + 0.1 u^2.
    """

    def __init__(self) -> None:
        super().__init__(horizon=10)
        self.action_space = self.box(-2.0, 2.0, (1,))
        self.reward_space = self.box(-100.0, 0.0)

    def initial(self, key, params):
        u = self.uniform(key, 2)
        return Point(u[0] - 0.5, 0.5 * (u[1] - 0.5))

    def transition(self, state, action, key, params):
        return Point(state.x + 0.2 * state.v, state.v + 0.2 * action[0])

    def reward(self, state, action, next_state, key, params):
        return -(state.x**2 + 0.1 * state.v**2 + 0.1 * action[0] ** 2)


def test_plans_of_a_point_mass_come_near_the_riccati_equation() -> None:
    task = PointMass()
    record = play(task, planner(task, horizon=10, samples=256, iterations=4), range(16))
    a = np.array([[1, 0.2], [0, 1]])
    b = np.array([[0.0], [0.2]])
    q = np.diag([1, 0.1])
    r = np.array([[0.1]])
    value = np.zeros((2, 2))
    for _ in range(
        10
    ):  # the finite-horizon recursion; its controls stay inside the bounds from these starts
        gain = np.linalg.solve(r + b.T @ value @ b, b.T @ value @ a)
        value = q + a.T @ value @ (a - b @ gain)
    start = first(task, 16).state
    x = np.stack([start.x, start.v], 1).astype(float)
    best = -np.einsum("ni,ij,nj->n", x, value, x)
    assert (record.total <= best + 1e-4).all()
    np.testing.assert_allclose(record.total.mean(), best.mean(), rtol=0.05)


class Coin(Toy):
    """A guess pays 1 if it equals a coin that is thrown after it."""

    def __init__(self) -> None:
        super().__init__(horizon=50)

    def reward(self, state, action, next_state, key, params):
        return (action == jax.random.bernoulli(key)).astype(jnp.float32)


def test_the_planner_does_not_see_the_coins_of_the_episode() -> None:
    record = play(Coin(), planner(Coin(), horizon=2, samples=16), range(64))
    guesses = 64 * 50
    # Four standard deviations of chance.
    assert abs(record.total.sum() - guesses / 2) < 4 * np.sqrt(guesses / 4)


class Umbrella(Toy):
    """An umbrella pays 0.5; none pays 1 on two days of ten, and nothing on the others."""

    def reward(self, state, action, next_state, key, params):
        return jnp.where(action == 1, 0.5, jnp.where(jax.random.uniform(key) < 0.2, 1.0, 0.0))


def test_scenarios_weigh_luck() -> None:
    alone, together = (
        play(
            Umbrella(),
            planner(Umbrella(), horizon=1, samples=8, iterations=1, scenarios=n),
            range(64),
        ).actions.mean()
        for n in (1, 64)
    )
    assert together > 0.97
    assert alone < 0.8


def test_other_spaces_masks_objectives_agents_and_costs() -> None:
    def actions(task: Any, **more: Any) -> np.ndarray:
        return play(task, planner(task, horizon=2, iterations=3, **more), range(4)).actions

    assert (actions(Bandit(masked=True)) == 3).all()
    assert (actions(Digits()) == [2, 0, 1]).all()
    assert (actions(TwoObjectives((0.2, 0.8))) == 1).all()
    assert (actions(CostlyBandit(), price=0.0) == 4).all()
    assert (actions(CostlyBandit()) == 3).all()  # the best arm pays 4 and costs 2
    two = TwoAgents()
    assert play(two, planner(two, horizon=2), range(4)).total.min() == 4


def test_a_plan_begins_with_noop_and_a_budget_buys_samples() -> None:
    memory = planner(PointMass(), horizon=4).initial(None)
    assert memory.plan.shape == (4, 1)
    assert not memory.plan.any()
    samples = [
        Config(**MPC().hyperparameters(PointMass(), budget)).samples
        for budget in ("smoke", "quick", "full")
    ]
    assert samples == sorted(set(samples))


def test_it_says_what_it_cannot_play_and_which_setting_is_wrong() -> None:
    pytest.importorskip("mujoco")
    with pytest.raises(CannotPlay, match="Hopper-v0 is computed by a simulator of the host"):
        registry.agent("mpc").check(registry.card("Hopper-v0").build())
    unbounded = Toy()
    unbounded.action_space = spaces.Box(-np.inf, np.inf, (1,))
    with pytest.raises(CannotPlay, match="between bounds"):
        registry.agent("mpc").check(unbounded)
    with pytest.raises(ValueError, match=r"hyperparameter.*sampels"):
        planner(PointMass(), sampels=3)
    with pytest.raises(ValueError, match="samples is an integer >= 2, got 1"):
        planner(PointMass(), samples=1)
    with pytest.raises(ValueError, match="budget"):
        MPC().hyperparameters(PointMass(), "smok")

"""Route Choice against Braess's published numbers, a recorded round, and all whole flows."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.marl.braess_network import (
    Flows,
    Network,
    Roads,
    best_flows,
    equilibrium_flows,
    mean_time,
    route_times,
)
from rlbench_suite.envs.marl.route_choice import ORDERS, Params, RouteChoice, State

CARD = card("RouteChoice-v0")
PLAIN_ORDER = np.array([0, 1, 2], np.int32)
TEXTBOOK = Network(
    Roads(0.0, 10.0, 10.0, 0.0, 0.0),
    Roads(10.0, 0.0, 0.0, 10.0, 0.0),
)
"""Braess's network with 4,200 drivers in MOMAland: narrow roads take f / 420, wide ones 10."""


@pytest.fixture(scope="module")
def task() -> RouteChoice:
    return CARD.build()


def task_of(drivers: int) -> RouteChoice:
    return RouteChoice(replace(CARD, agents=drivers), difficulty=None, dtype="float32")


def numbers(flows: Flows) -> tuple[int, int, int]:
    return tuple(map(int, flows))


def plain_times(network: Network, flows: np.ndarray, drivers: int) -> np.ndarray:
    """Return the times of top, bottom and bridge, ``(..., 3)``, written plainly in float64."""
    top, bottom, bridge = np.moveaxis(flows / drivers, -1, 0)
    (a, b, c, d, e), (ka, kb, kc, kd, ke) = (np.float64(roads) for roads in network)
    first = a + ka * (top + bridge)
    second = b + kb * top
    third = c + kc * bottom
    fourth = d + kd * (bottom + bridge)
    return np.stack([first + second, third + fourth, first + e + ke * bridge + fourth], -1)


def all_flows(drivers: int) -> np.ndarray:
    return np.array(
        [(t, b, drivers - t - b) for t in range(drivers + 1) for b in range(drivers + 1 - t)]
    )


def test_textbook_network() -> None:
    """All over the bridge is the equilibrium, 20; half and half is the optimum, 15."""
    drivers = 4200
    assert numbers(best_flows(TEXTBOOK, drivers)) == (2100, 2100, 0)
    top, bottom, _ = numbers(equilibrium_flows(TEXTBOOK, drivers))
    assert top + bottom <= 2  # a first driver on another route is neither faster nor slower
    assert float(mean_time(TEXTBOOK, Flows(0.5, 0.5, 0.0))) == 15
    assert float(mean_time(TEXTBOOK, Flows(0.0, 0.0, 1.0))) == 20
    # Without the bridge, the equilibrium is as good as the optimum: the paradox.
    closed = TEXTBOOK._replace(free=TEXTBOOK.free._replace(from_2_to_3=100.0))
    assert numbers(equilibrium_flows(closed, drivers)) == (2100, 2100, 0)


def test_toll_of_marginal_costs_makes_selfish_drivers_optimal() -> None:
    """With tolls the congestion counts twice: drivers pay for the time that they cost others."""
    tolled = TEXTBOOK._replace(congestion=Roads(*(2 * c for c in TEXTBOOK.congestion)))
    assert numbers(equilibrium_flows(tolled, 4200)) == (2100, 2100, 0)


def sampled_networks(task: RouteChoice, count: int, split: int = 1) -> Params:
    keys = jax.random.split(jax.random.key(5), count)
    return jax.tree.map(
        np.asarray, jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(split))
    )


@pytest.mark.parametrize("drivers", [1, 2, 7, 42])
def test_flows_are_the_best_of_all_whole_flows(task: RouteChoice, drivers: int) -> None:
    """Enumeration for 200 sampled networks; the equilibrium is one by trying every change."""
    params = sampled_networks(task, 200)
    flows = all_flows(drivers)
    best = jax.jit(jax.vmap(lambda network: jnp.stack(best_flows(network, drivers))))
    selfish = jax.jit(jax.vmap(lambda network: jnp.stack(equilibrium_flows(network, drivers))))
    best, selfish = (np.asarray(f(params.network)) for f in (best, selfish))
    assert (best.sum(1) == drivers).all()
    assert (best >= 0).all()
    for i in range(200):
        network = jax.tree.map(lambda leaf, i=i: leaf[i], params.network)
        times = plain_times(network, flows, drivers)
        least_time = (times * flows).sum(1).min()
        mean = plain_times(network, best[i], drivers) @ best[i]
        assert mean == pytest.approx(least_time, rel=1e-6)  # float32 there
        for route, other_route in np.argwhere(~np.eye(3, dtype=bool)):
            if selfish[i, route]:
                changed = (
                    selfish[i] - np.eye(3, dtype=int)[route] + np.eye(3, dtype=int)[other_route]
                )
                gain = (
                    plain_times(network, selfish[i], drivers)[route]
                    - plain_times(network, changed, drivers)[other_route]
                )
                assert gain < 1e-3  # min; the potential is rounded to 3e-7 of it
    if drivers == CARD.agents:
        optimum = []
        for i in range(200):
            network = jax.tree.map(lambda leaf, i=i: leaf[i], params.network)
            optimum.append(plain_times(network, best[i], drivers) @ best[i] / drivers)
        np.testing.assert_allclose(params.optimum, optimum, rtol=1e-5)


def test_a_recorded_round_of_momaland(task: RouteChoice) -> None:
    """Its 42 drivers are 42 of 4,200: congestion is a hundredth of the textbook's.

    MOMAland 0.2.0, Braess_1_4200_10_c1, seed 0; the first number of a reward is minus the time
    / 30. It lists the routes as bridge, bottom, top.
    """
    network = Network(TEXTBOOK.free, Roads(*(0.01 * c for c in TEXTBOOK.congestion)))
    params = task.with_optimum(network, np.array([2, 1, 0], np.int32))
    choices = np.array(MOMALAND_CHOICES, np.int32)
    state = task.initial(None, params)
    after = task.transition(state, choices, None, params)
    recorded = np.array([-0.00428571412, -0.335793644, -0.335158736])
    np.testing.assert_allclose(-np.asarray(after.times) / 30, recorded, rtol=1e-5)
    rewards = np.asarray(task.reward(state, choices, after, None, params))
    np.testing.assert_allclose(rewards * 66 / 30, recorded[choices], rtol=1e-5)


MOMALAND_CHOICES = [
    2, 1, 1, 1, 2, 1, 1, 1, 0, 0, 0, 0, 2, 0, 1, 1, 2, 1, 0, 0, 2,
    2, 2, 1, 1, 1, 1, 1, 0, 2, 1, 1, 2, 0, 1, 0, 1, 2, 0, 0, 1, 2,
]  # fmt: skip


@pytest.mark.parametrize("agents", [3, 42])
def test_rules_over_random_rounds(agents: int) -> None:
    """1,000 random rounds of the rules written plainly, each on a network of its own."""
    task = task_of(agents)
    rounds = 1_000
    params = sampled_networks(task, rounds, split=0)
    rng = np.random.default_rng(1)
    choices = rng.integers(0, 3, (rounds, agents)).astype(np.int32)

    def play_round(params: Params, choices: Any) -> tuple[Any, ...]:
        state = task.initial(None, params)
        after = task.transition(state, choices, None, params)
        reward = task.reward(state, choices, after, None, params)
        return after, reward, task.observation(after, None, params)

    after, rewards, observations = jax.tree.map(
        np.asarray, jax.jit(jax.vmap(play_round))(params, choices)
    )
    for i in range(rounds):
        network = jax.tree.map(lambda leaf, i=i: leaf[i], params.network)
        kinds = params.listed[i][choices[i]]
        flows = np.bincount(kinds, minlength=3)
        times = plain_times(network, flows, agents)[kinds]
        np.testing.assert_allclose(rewards[i], -times / 66, rtol=1e-5)
        assert after.mean_time[i] == pytest.approx(times.mean(), rel=1e-5)
        np.testing.assert_array_equal(observations[i][:, 22:25].argmax(1), choices[i])
        np.testing.assert_allclose(
            observations[i][:, :5], np.tile(network.free, (agents, 1)) / 20, rtol=1e-5
        )
    assert {tuple(order) for order in params.listed.tolist()} == set(map(tuple, ORDERS.tolist()))


def test_ten_thousand_drivers() -> None:
    """A round of 10,000 drivers has their flows; the reference splits them as it does fewer."""
    drivers = 10_000
    task = task_of(drivers)
    params = task.with_optimum(TEXTBOOK, PLAIN_ORDER)
    state = task.initial(None, params)
    view = View(task.observation(state, None, params), None, None, None)
    player: Any = load(CARD.reference).for_task(task)
    action, _ = player.act((), view, None)
    after = task.transition(state, action, None, params)
    assert np.bincount(action, minlength=3).tolist() == [5000, 5000, 0]
    assert float(after.mean_time) == pytest.approx(15, rel=1e-5)
    assert float(params.optimum) == pytest.approx(15, rel=1e-5)


def test_players(task: RouteChoice) -> None:
    """The reference has the optimum in every round, and selfish drivers are far from it."""
    player = load(CARD.reference).for_task(task)
    record = play(task, player, range(64))
    assert record.info["success"].all()
    np.testing.assert_allclose(record.info["delay"], 0, atol=1e-5)
    selfish = play(task, load(CARD.yardsticks["selfish"]).for_task(task), range(64))
    random = play(task, Uniform(task.action_space), range(64))
    assert selfish.info["success"].mean() < 0.3
    assert random.info["success"].mean() < 0.05
    best, equilibrium, chance = (r.total.mean() for r in (record, selfish, random))
    assert chance < best
    assert equilibrium < best - 0.5 * (best - chance)


def test_splits_have_other_roads(task: RouteChoice) -> None:
    for split in (0, 1):
        params = sampled_networks(task, 500, split)
        for free in (params.network.free.from_2_to_4, params.network.free.from_1_to_3):
            band = np.floor((free - 5) / 15 * 8)
            assert (band % 2 == split).all()


def test_words_and_picture(task: RouteChoice) -> None:
    params = task.with_optimum(TEXTBOOK, np.array([2, 0, 1], np.int32))
    state = task.initial(None, params)
    assert "route 0: 1-2-3-4, 0.00 on empty roads" in task.describe(state, params)
    action = task.parse(" ".join(["1", "2"] * 21), state, params)
    after = task.transition(state, action, None, params)
    text = task.describe(after, params)
    assert "route 1: 1-2-4, 15.00 with 21 drivers" in text
    assert "road 1-2: 0.00 + 10.00 x share" in text
    assert (task.draw(after, params) != task.draw(state, params)).any()
    with pytest.raises(ValueError, match="42 number"):
        task.parse("0 1", state, params)
    assert isinstance(after, State)
    times = route_times(TEXTBOOK, Flows(0.5, 0.5, 0.0))
    assert numbers(times)[:2] == (15, 15)

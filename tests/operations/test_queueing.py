"""Check Queueing against published averages, a replica and dynamic programmes in NumPy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.operations.queue_programme import CostRule, QueueProgramme
from rlbench_suite.envs.operations.queueing import (
    NETWORKS,
    TICKS,
    Params,
    State,
    make_params,
)

CRISS_CROSS, SINGLE_SERVER, SHARED_SERVER, TWO_STATIONS = range(4)
RULES = (
    {"a": {0: None, 1: 2}, "b": {2: None}},
    {"a": {0: None, 1: None, 2: None}},
    {"a": {0: None}, "b": {0: None, 1: None}},
    {"a": {0: 1, 3: None}, "b": {1: None, 2: 3}},
)
"""Classes that each server of a network serves, and what their jobs become."""


def build(number: int) -> Any:
    return card("Queueing-v0").build(difficulty=number)


def chances_of(number: int, params: Any) -> dict[tuple[str, int], Any]:
    """Return the chance of completion by server and class."""
    pairs = [("ab"[work.server], work.job_class) for work in NETWORKS[number].activities]
    return dict(zip(pairs, params.completion, strict=True))


def choices(number: int) -> list[dict[str, int]]:
    """Return the class that each server works on, by action, from the names of the actions."""
    listed = []
    for component in build(number).action_components():
        words = component.name.split("_")
        served = {server: classes for server, classes in RULES[number].items()}
        choice = {server: min(classes) for server, classes in served.items() if len(classes) == 1}
        for i, word in enumerate(words):
            if word == "class":
                choice[words[i - 1]] = int(words[i + 1]) - 1
        listed.append(choice)
    return listed


class Chain:
    """The uniformised chain on all queues below a limit, in NumPy; arrivals beyond it are lost."""

    def __init__(self, number: int, params: Params, limit: int) -> None:
        self.number = number
        self.params = params
        self.queues = np.indices((limit,) * NETWORKS[number].classes)
        self.cost = sum(
            float(cost) * queue for cost, queue in zip(params.cost, self.queues, strict=True)
        )
        self.limit = limit

    def move(self, values: np.ndarray, job_class: int, change: int) -> np.ndarray:
        index = np.clip(np.arange(self.limit) + change, 0, self.limit - 1)
        return np.take(values, index, axis=job_class)

    def expectations(self, values: np.ndarray) -> list[np.ndarray]:
        """Return the expected value after a tick, by action."""
        base = values.copy()
        for job_class, chance in enumerate(self.params.arrival):
            base += float(chance) * (self.move(values, job_class, 1) - values)
        chances = chances_of(self.number, self.params)
        results = []
        for choice in choices(self.number):
            total = base.copy()
            busy = [0] * len(self.queues)
            for server in sorted(choice):
                job_class = choice[server]
                becomes = RULES[self.number][server][job_class]
                after = values
                if becomes is not None:
                    after = self.move(after, becomes, 1)
                after = self.move(after, job_class, -1)
                change = float(chances[server, job_class]) * (after - values)
                total += np.where(self.queues[job_class] > busy[job_class], change, 0)
                busy[job_class] += 1
            results.append(total)
        return results


# -- published values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrival", "last_rate", "published"),
    [(0.3, 1.5, 0.671), (0.3, 1.0, 0.843), (0.6, 1.5, 2.084)],
)
def test_optimal_average_costs_of_the_criss_cross_network_are_those_published(
    arrival: float, last_rate: float, published: float
) -> None:
    """Dai & Gluzman 2022 list them, of Martins, Shreve & Soner 1996; all jobs cost 1."""
    params = make_params(
        NETWORKS[CRISS_CROSS], (arrival, arrival, 0.0), (2.0, 2.0, last_rate), (1.0, 1.0, 1.0)
    )
    chain = Chain(CRISS_CROSS, jax.device_get(params), 20 if arrival < 0.5 else 26)
    values = np.zeros_like(chain.cost)
    for _ in range(1_500):
        updated = chain.cost + np.min(chain.expectations(values), axis=0)
        growth = updated - values
        values = updated - updated[0, 0, 0]
        if np.ptp(growth) < 1e-4:
            break
    assert growth.mean() == pytest.approx(published, abs=1.5e-3)


# -- the rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(4))
def test_episodes_equal_a_replica(number: int) -> None:
    """A thousand episodes of random actions in all, with the task's own events."""
    episodes = 250
    task = build(number)
    keys = jax.random.split(jax.random.key(number), episodes)
    params = jax.jit(jax.vmap(lambda key: task.sample_params(key, Split.TEST)))(keys)
    actions = np.random.default_rng(number).integers(0, task.action_space.n, (TICKS, episodes))

    def step(state: Any, inputs: Any) -> Any:
        action, tick = inputs
        step_keys = jax.vmap(lambda key: jax.random.fold_in(key, tick))(keys)
        next_state = jax.vmap(task.transition)(state, action, step_keys, params)
        rewards = jax.vmap(task.reward)(state, action, next_state, step_keys, params)
        events = jax.vmap(lambda key: task.uniform(key, 1)[0])(step_keys)
        return next_state, (next_state.queues, rewards, events)

    start = jax.jit(jax.vmap(task.initial))(keys, params)
    scan = jax.jit(lambda start: jax.lax.scan(step, start, (actions, jnp.arange(TICKS))))
    queues, rewards, events = jax.device_get(scan(start)[1])
    context = jax.tree.map(np.float64, jax.device_get(params))
    chances = chances_of(number, context)
    by_action = choices(number)
    served = {server: np.array([choice.get(server, -1) for choice in by_action]) for server in "ab"}
    jobs = np.array(jax.device_get(start.queues))
    rows = np.arange(episodes)
    start_cost = (np.array(context.cost) * jobs).sum(0)
    arrivals = np.cumsum(context.arrival, axis=0)
    for tick in range(TICKS):
        event = events[tick].astype(np.float64)
        waiting = jobs.copy()
        is_arrival = event < arrivals[-1]
        job_class = (event >= arrivals).sum(0)
        jobs[job_class[is_arrival], rows[is_arrival]] += 1
        event -= arrivals[-1]
        for server, classes in RULES[number].items():
            choice = served[server][actions[tick]]
            for job_class, becomes in classes.items():
                is_busy = (choice == job_class) & (waiting[job_class] > 0)
                waiting[job_class] -= is_busy
                is_done = is_busy & (event >= 0) & (event < chances[server, job_class])
                jobs[job_class] -= is_done
                if becomes is not None:
                    jobs[becomes] += is_done
            event -= np.max([chances[server, job_class] for job_class in classes], axis=0)
        np.testing.assert_array_equal(np.array([queue[tick] for queue in queues]), jobs)
        cost = (np.array(context.cost) * jobs).sum(0)
        np.testing.assert_allclose(rewards[tick], -cost / start_cost, rtol=1e-4)


@pytest.mark.parametrize("number", range(4))
def test_chances_sum_to_one_and_loads_lie_in_bands(number: int) -> None:
    task = build(number)
    keys = jax.random.split(jax.random.key(0), 400)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        params = jax.device_get(sample(keys, np.int32(split)))
        chances = chances_of(number, params)
        slots = [
            np.max([chances[server, job_class] for job_class in classes], axis=0)
            for server, classes in RULES[number].items()
        ]
        np.testing.assert_allclose(np.sum(params.arrival, 0) + np.sum(slots, 0), 1, atol=1e-5)
        arrival = params.arrival
        if number == CRISS_CROSS:
            load = arrival[0] / chances["a", 0] + arrival[1] / chances["a", 1]
        elif number == SINGLE_SERVER:
            load = sum(arrival[i] / chances["a", i] for i in range(3))
        elif number == TWO_STATIONS:
            load = arrival[0] / chances["a", 0] + arrival[2] / chances["a", 3]
            load_b = arrival[0] / chances["b", 1] + arrival[2] / chances["b", 2]
            np.testing.assert_allclose(load, load_b, rtol=1e-4)
        else:
            # With the load L, A works L on class 1, and B does the rest in L of its time.
            server_a, server_b = chances["a", 0], chances["b", 0]
            work = arrival[0] / server_b + arrival[1] / chances["b", 1]
            load = work / (1 + server_a / server_b)
        band = np.floor((load - 0.6) / 0.015)
        assert (band % 2 == split).all()
        assert load.min() > 0.6
        assert load.max() < 0.9


# -- optima ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [CRISS_CROSS, SHARED_SERVER])
def test_the_reference_costs_hardly_more_than_the_optimum(number: int) -> None:
    """Its policy and the best one are evaluated exactly, on queues far beyond its tables."""
    task = build(number)
    player = QueueProgramme.for_task(task)
    limit = 34 if number == CRISS_CROSS else 60
    for seed in (1, 3):
        params = jax.jit(lambda key: task.sample_params(key, 1))(jax.random.key(seed))
        chain = Chain(number, jax.device_get(params), limit)
        tables = jax.jit(player.initial)(params)
        flat = [jnp.asarray(queue.ravel(), jnp.int32) for queue in chain.queues]

        def choose(tick: int, tables: Any = tables, params: Any = params, flat: Any = flat) -> Any:
            def act(queues: Any) -> Any:
                state = State(tuple(queues), 0.0, 1.0, tick)
                return player.act(tables, View(None, None, state, params), None)[0]

            return jax.vmap(act)(flat)

        policy = jax.jit(choose)
        best, actual = np.zeros_like(chain.cost), np.zeros_like(chain.cost)
        policy_actions: Any = None
        for ticks_left in range(1, TICKS + 1):
            if ticks_left - 1 in (0, *(2**i for i in range(1, 8))):  # the tables change
                actions = np.asarray(policy(jnp.int32(TICKS - ticks_left)))
                policy_actions = actions.reshape(chain.cost.shape)[None]
            best = np.min(chain.expectations(chain.cost + best), axis=0)
            outcomes = np.stack(chain.expectations(chain.cost + actual))
            actual = np.take_along_axis(outcomes, policy_actions, 0)[0]
        start = (7,) * len(chain.queues)
        assert best[start] <= actual[start] <= 1.01 * best[start]


def test_one_server_follows_the_c_mu_rule() -> None:
    """The rule is optimal over any horizon, so that the programme must play it."""
    task = build(SINGLE_SERVER)
    player, rule = QueueProgramme.for_task(task), CostRule.for_task(task)
    grid = np.indices((12,) * 3).reshape(3, -1)

    def both_actions(key: jax.Array) -> Any:
        params = task.sample_params(key, 1)
        tables = player.initial(params)

        def act(queues: jax.Array) -> Any:
            state = State(tuple(queues), jnp.float32(0), jnp.float32(1), jnp.int32(100))
            view = View(task.observation(state, key, params), None, state, params)
            return player.act(tables, view, key)[0], rule.act((), view, key)[0]

        return jax.vmap(act)(jnp.asarray(grid.T, jnp.int32))

    for seed in range(3):
        actions, rule_actions = jax.jit(both_actions)(jax.random.key(seed))
        assert (actions == rule_actions).all()


# -- players ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "arrival", "service", "costs"),
    [
        # Server B prefers class 1, which A could nearly do alone, and class 2 starves.
        (SHARED_SERVER, (1.1, 0.7), (1.0, 1.0, 1.0), (3.0, 1.0)),
        # The jobs that leave first need 1.2 of the time together, though each server needs 0.7.
        (TWO_STATIONS, (1.0, 0.0, 1.0, 0.0), (10.0, 1 / 0.6, 10.0, 1 / 0.6), (1.0,) * 4),
    ],
)
def test_the_c_mu_rule_is_unstable_where_it_is_known_to_be(
    number: int, arrival: Any, service: Any, costs: Any
) -> None:
    task = build(number)
    params = make_params(NETWORKS[number], arrival, service, costs)
    params = jax.tree.map(jnp.float32, params)
    lengths = []
    for player in (QueueProgramme.for_task(task), CostRule.for_task(task)):
        memory = jax.jit(player.initial)(params)

        def episode(key: jax.Array, player: Any = player, memory: Any = memory) -> Any:
            def step(state: State, tick: jax.Array) -> Any:
                state = state._replace(ticks=jnp.int32(0))
                view = View(task.observation(state, key, params), None, state, params)
                action, _ = player.act(memory, view, key)
                return task.transition(state, action, jax.random.fold_in(key, tick), params), None

            start = task.initial(key, params)
            return jax.lax.scan(step, start, jnp.arange(4_000))[0].queues

        queues = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), 16))
        lengths.append(float(np.sum(queues, axis=0).mean()))
    assert lengths[0] < 40
    assert lengths[1] > 2 * lengths[0]


def test_words_and_picture() -> None:
    task = build(CRISS_CROSS)
    params = make_params(NETWORKS[0], (0.6, 0.6, 0.0), (2.0, 2.0, 1.8), (1.0, 2.0, 1.5))
    params = jax.tree.map(np.float32, params)
    state = task.initial(jax.random.key(0), params)
    words = task.describe(state, params)
    assert "Server A completes a job of class 2 with chance 0.4000 a tick; the job becomes" in words
    assert task.draw(state, params).shape == task.picture_shape
    assert "2: server A works on class 2" in task.how_to_act()
    observation = task.observation(state, jax.random.key(0), params)
    queues, read = task.read_observation(observation)
    assert [int(queue) for queue in queues] == [int(queue) for queue in state.queues]
    np.testing.assert_allclose(read.cost, params.cost, rtol=1e-6)
    with pytest.raises(ValueError, match="number of a network, 0 to 3, got 4"):
        build(4)

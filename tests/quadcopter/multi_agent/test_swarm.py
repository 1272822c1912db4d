"""Check QuadcopterSwarm against single vehicles, the peer's downwash, and fine sampling.

It also has to be the same with vehicles renumbered.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.envs.quadcopter.physics.dynamics import Airframe, Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.rigid_body import GRAVITY, RigidBody
from rlbench_suite.envs.quadcopter.physics.vehicles import CRAZYFLIE_AIR
from rlbench_suite.envs.quadcopter.sensing import motion
from rlbench_suite.envs.quadcopter.tasks.multi_agent.fleet import (
    COLLISION,
    Params,
    State,
    nearest_approaches,
    nearest_rows,
    wakes,
)
from rlbench_suite.envs.quadcopter.tasks.multi_agent.swarm import (
    JITTER,
    QuadcopterSwarm,
    sphere_points,
)
from rlbench_suite.numerics.process import precision

CARD = card("QuadcopterSwarm-v0")
N = CARD.agents
AIRFRAME: Airframe = jax.tree.map(np.float64, dynamics.NOMINAL)


@pytest.fixture(scope="module")
def exact() -> QuadcopterSwarm:
    """The task at float64, where rounding is far below what the tests look for."""
    return CARD.build(dtype="float64")


@cache
def programs(task: QuadcopterSwarm) -> tuple[Any, Any, Any]:
    return jax.jit(task.transition), jax.jit(task.observation), jax.jit(task.reward)


def random_state(rng: np.random.Generator, spread: float = 1.0, wrecks: int = 0) -> State:
    fields = rng.uniform(-spread, spread, (13, N))
    fields[3:7] = rng.normal(size=(4, N))
    fields[3:7] /= np.linalg.norm(fields[3:7], axis=0)
    wrecked = rng.permutation(np.arange(N) < wrecks)
    return State(Quadcopter(RigidBody(*fields), Rotors(*rng.uniform(500, 2000, (4, N)))), wrecked)


def state_at_rest(places: Any) -> State:
    """Level vehicles at ``(n, 3)`` m, rotors at the speed of hovering."""
    x, y, z = np.array(places, float).T
    n = len(x)
    still = RigidBody(x, y, z, np.ones(n), *np.zeros((9, n)))
    hover = np.sqrt(dynamics.MASS * GRAVITY / (4 * dynamics.THRUST_COEFFICIENT))
    return State(Quadcopter(still, Rotors(*np.full((4, n), hover))), np.zeros(n, bool))


def random_params(rng: np.random.Generator) -> Params:
    return Params(AIRFRAME, *rng.uniform(-2, 2, (3, N)))


def on_device(tree: Any) -> Any:
    return jax.tree.map(jnp.asarray, tree)


def push(state: State) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(wakes(*on_device((state.vehicles.body, state.wrecked)), AIRFRAME))


# -- what vehicles do to each other ----------------------------------------------------------------


def test_renumbered_vehicles_fly_the_same(exact: QuadcopterSwarm) -> None:
    """The sum over wakes is added in another order: the last digits may differ, no more.

    Crowded, with two wrecks.
    """
    rng = np.random.default_rng(0)
    step, see, pay = programs(exact)
    hits = 0
    for _ in range(20):
        state = random_state(rng, 0.4, wrecks=2)
        params = random_params(rng)
        action = rng.uniform(-1, 1, (N, 4))
        order = rng.permutation(N)
        renumbered_state = jax.tree.map(lambda leaf, order=order: leaf[order], state)
        renumbered = Params(AIRFRAME, *(leaf[order] for leaf in params[1:]))
        outcomes = []
        with precision(exact):
            for flight in ((state, params, action), (renumbered_state, renumbered, action[order])):
                a, b, c = on_device(flight)
                after = step(a, c, None, b)
                outcomes.append((after, see(after, None, b), pay(a, c, after, None, b)))
        first, second = jax.tree.map(np.asarray, outcomes)
        for values, renumbered_values in zip(
            jax.tree.leaves(first), jax.tree.leaves(second), strict=True
        ):
            np.testing.assert_allclose(values[order], renumbered_values, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(first[0].wrecked[order], second[0].wrecked)
        hits += first[0].wrecked.sum() - 2
    assert hits > 5


def test_a_wake_is_the_peer_s_downwash() -> None:
    """-2267.18 (r / 4 dz)^2 exp(-((dx^2 + dy^2) / (0.16 dz - 0.11)^2) / 2) on the lower of two."""
    for dx, dy, dz in (
        (0.0, 0.0, 0.8),
        (0.02, -0.01, 0.9),
        (0.1, 0.05, 1.5),
        (0.3, 0.2, 3.0),
        (0.4, 0.0, 0.25),
    ):
        expected = (
            -2267.18
            * (2.31348e-2 / (4 * dz)) ** 2
            * np.exp(-0.5 * (dx**2 + dy**2) / (0.16 * dz - 0.11) ** 2)
        )
        upper, lower = push(state_at_rest([(dx, dy, dz), (0, 0, 0)]))
        assert upper == 0
        assert lower == pytest.approx(expected, rel=1e-9)


def test_near_wakes_are_bounded_and_fade_to_nothing_beside() -> None:
    weight = dynamics.MASS * GRAVITY
    assert push(state_at_rest([(0, 0, 0.3), (0, 0, 0)]))[1] == pytest.approx(-weight)
    column = push(state_at_rest([(0, 0, 0.3 + 0.15 * i) for i in range(8)] + [(0, 0, 0)]))
    assert column.min() == column[-1] == pytest.approx(-3 * weight)
    formed = push(state_at_rest([(0.2, 0, 0.2), (0, 0, 0)]))[1]
    for fraction in (0.5, 0.1, 0.001):
        assert push(state_at_rest([(0.2, 0, 0.2 * fraction), (0, 0, 0)]))[1] == pytest.approx(
            fraction * formed
        )
    assert (push(state_at_rest([(0.2, 0, 0), (0, 0, 0)])) == 0).all()
    assert (
        push(state_at_rest([(0, 0, 0.5), (0, 0, 0)])._replace(wrecked=np.array([True, False]))) == 0
    ).all()


def test_vehicles_side_by_side_fly_as_if_alone(exact: QuadcopterSwarm) -> None:
    """At equal heights nobody is in a wake, so a step is a single vehicle's to rounding."""
    rng = np.random.default_rng(1)
    state = random_state(rng)
    body = state.vehicles.body._replace(x=np.arange(N) - 3.5, z=np.zeros(N))
    state = state._replace(vehicles=state.vehicles._replace(body=body))
    action = rng.uniform(-1, 1, (N, 4))
    with precision(exact):
        after = programs(exact)[0](
            on_device(state), jnp.asarray(action), None, on_device(random_params(rng))
        )
        alone = jax.jit(
            lambda vehicle, action: dynamics.step(
                vehicle, dynamics.commanded_speeds(action), AIRFRAME, dynamics.STEP, CRAZYFLIE_AIR
            )
        )
        for i in range(N):
            single = alone(
                jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf[i]), state.vehicles), action[i]
            )
            for swarm_leaf, single_leaf in zip(
                jax.tree.leaves(after.vehicles), jax.tree.leaves(single), strict=True
            ):
                assert float(swarm_leaf[i]) == pytest.approx(
                    float(single_leaf), rel=1e-12, abs=1e-12
                )


def test_a_push_is_an_acceleration() -> None:
    vehicle = jax.tree.map(lambda leaf: leaf[0], state_at_rest([(0, 0, 0)]).vehicles)
    with jax.enable_x64(True):
        after = dynamics.step(on_device(vehicle), vehicle.rotors, AIRFRAME, 0.01, push=-0.027)
    assert float(after.body.vz) == pytest.approx(-0.01, rel=1e-9)
    assert float(after.body.z) == pytest.approx(-0.5e-4, rel=1e-9)


# -- collisions ------------------------------------------------------------------------------------


def test_nearest_approach_is_that_of_fine_sampling() -> None:
    rng = np.random.default_rng(2)
    fraction = np.linspace(0, 1, 2001)
    for trial in range(20):
        before, after = random_state(rng).vehicles.body, random_state(rng).vehicles.body
        if trial == 0:
            after = before  # nobody moves
        with jax.enable_x64(True):
            approaches = np.sqrt(nearest_approaches(on_device(before), on_device(after)))
        start, end = (np.stack(body[:3], 1) for body in (before, after))
        for i, j in itertools.permutations(range(N), 2):
            gap = (start[i] - start[j]) + fraction[:, None] * ((end - start)[i] - (end - start)[j])
            # Sampling misses the nearest point by at most half an interval: 5 m / 4000.
            assert approaches[i, j] == pytest.approx(np.linalg.norm(gap, axis=1).min(), abs=1.3e-3)
        assert np.isinf(np.diag(approaches)).all()


@pytest.mark.parametrize(
    ("offset", "hit"), [(0.05, True), (0.12, True), (0.14, False), (0.3, False)]
)
def test_nobody_flies_through_another_between_two_looks(
    exact: QuadcopterSwarm, offset: float, hit: bool
) -> None:
    """Vehicles that meet at 40 m/s are wrecked by what they passed at.

    Before and after the step they are 0.2 m apart.
    """
    state = state_at_rest([(-0.2, 0, 0), (0.2, offset, 0), *((i, 3, 0) for i in range(-3, 3))])
    body = state.vehicles.body._replace(vx=np.array([20.0, -20] + [0] * (N - 2)))
    state = state._replace(vehicles=state.vehicles._replace(body=body))
    hover = np.full((N, 4), 0.334)
    with precision(exact):
        after = programs(exact)[0](
            on_device(state), hover, None, on_device(random_params(np.random.default_rng(3)))
        )
    x = np.asarray(after.vehicles.body.x)
    assert abs(x[1] - x[0]) < 0.02 or abs(x[1] - x[0]) > COLLISION
    assert after.wrecked.tolist() == [hit, hit] + [False] * (N - 2)


def test_a_flight_counts_every_touch(exact: QuadcopterSwarm) -> None:
    """Plain Python over the same states finds the same vehicles wrecked by a hit.

    The flight is crowded.
    """
    rng = np.random.default_rng(4)
    params, state = random_params(rng), random_state(rng, 0.8)
    step = programs(exact)[0]
    wrecked = state.wrecked
    with precision(exact):
        params = on_device(params)
        for _ in range(60):
            after = jax.tree.map(
                np.asarray, step(on_device(state), rng.uniform(-1, 1, (N, 4)), None, params)
            )
            start, end = (np.stack(s.vehicles.body[:3], 1) for s in (state, after))
            expected = wrecked | (
                np.abs(np.stack(after.vehicles.body[10:])) > motion.GYROSCOPE_RANGE
            ).any(0)
            for i, j in itertools.combinations(np.flatnonzero(~wrecked), 2):
                apart, moved = start[i] - start[j], (end[i] - start[i]) - (end[j] - start[j])
                when = np.clip(-(apart @ moved) / (moved @ moved), 0, 1)
                if np.linalg.norm(apart + when * moved) < COLLISION:
                    expected[[i, j]] = True
            np.testing.assert_array_equal(after.wrecked, expected)
            state, wrecked = after, after.wrecked
    assert wrecked.sum() >= 2


def test_a_wreck_stays_earns_nothing_and_is_not_seen(exact: QuadcopterSwarm) -> None:
    rng = np.random.default_rng(5)
    step, see, pay = programs(exact)
    state, params = random_state(rng, 2.0, wrecks=5), random_params(rng)
    with precision(exact):
        state, params = on_device((state, params))
        after = step(state, rng.uniform(-1, 1, (N, 4)), None, params)
        observation = np.asarray(see(after, None, params))
        paid = np.asarray(pay(state, None, after, None, params))
    gone = np.asarray(state.wrecked)
    for before, now in zip(
        jax.tree.leaves(state.vehicles), jax.tree.leaves(after.vehicles), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(before)[gone], np.asarray(now)[gone])
    assert (paid[gone] == 0).all()
    assert (paid[~np.asarray(after.wrecked)] > 0).all()
    assert (observation[:, 22] == after.wrecked).all()
    flying = ~np.asarray(after.wrecked)
    assert flying.sum() == 3
    neighbours = observation[:, 23:].reshape(N, 4, 6)
    assert (neighbours[flying, 2:] == 0).all()
    assert (neighbours[flying, :2] != 0).all()


# -- what is seen, starts and goals ----------------------------------------------------------------


def test_observation_and_reward_by_plain_python(exact: QuadcopterSwarm) -> None:
    rng = np.random.default_rng(6)
    state, params = random_state(rng, 2.0, wrecks=1), random_params(rng)
    with precision(exact):
        _, see, pay = programs(exact)
        observation = np.asarray(see(*on_device((state, None, params))))
        paid = np.asarray(pay(*on_device((state, None, state, None, params))))
    body = state.vehicles.body
    place, velocity = np.stack(body[:3], 1), np.stack(body[7:10], 1)
    goals = np.stack(params[1:], 1)
    for i in range(N):
        vehicle = jax.tree.map(lambda leaf, i=i: leaf[i], state.vehicles)
        neighbours = [j for j in range(N) if j != i and not state.wrecked[j]]
        neighbours.sort(key=lambda j: np.linalg.norm(place[j] - place[i]))
        near = [
            leaf
            for j in neighbours[:4]
            for leaf in (*(place[j] - place[i]), *(velocity[j] - velocity[i]))
        ]
        row = [*(goals[i] - place[i]), *motion.attitude_and_rates(vehicle), state.wrecked[i], *near]
        np.testing.assert_allclose(observation[i], row, atol=1e-12)
        distance = np.linalg.norm(goals[i] - place[i])
        assert paid[i] == pytest.approx(0 if state.wrecked[i] else 0.5 / (0.5 + distance))


def test_ways_cross_in_the_middle_and_starts_are_apart() -> None:
    for name in ("", "2", "32", "128"):
        task = card(f"QuadcopterSwarm{name}-v0").build()
        n = task.card.agents
        np.testing.assert_allclose(np.linalg.norm(sphere_points(n), axis=1), 1)
        keys = jax.random.split(jax.random.key(0), 50)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(1))
        state = jax.jit(jax.vmap(task.initial))(keys, params)
        goals, starts = (
            np.stack(coordinates, -1).astype(float)
            for coordinates in (params[1:], state.vehicles.body[:3])
        )
        np.testing.assert_allclose(np.linalg.norm(goals, axis=-1), task.radius, rtol=1e-5)
        assert np.abs(goals + starts).max() <= JITTER + 1e-5
        apart = np.linalg.norm(starts[:, :, None] - starts[:, None], axis=-1) + 9 * np.eye(n)
        assert apart.min() > 0.4
        assert np.abs(goals.mean((0, 1))).max() < 0.5, "turned any way"
        masses = (np.asarray(params.airframe.inertia.mass, float) / dynamics.MASS - 0.8) * 100
        assert (np.floor(masses) % 2 == 1).all(), "test vehicles"


def test_observation_stays_inside_the_space() -> None:
    """Full rotors, none, and noise, to the end of every vehicle."""
    for name, players in (("", 3), ("32", 1)):
        task = card(f"QuadcopterSwarm{name}-v0").build()
        env = TaskEnv(task)
        rng = np.random.default_rng(7)
        n = task.card.agents
        for trial in range(players):
            observation, _ = env.reset(seed=trial)
            over = False
            constant_action = rng.choice([-1.0, 1.0], (n, 4)).astype(np.float32)
            while not over:
                assert task.observation_space.contains(observation)
                action = (np.full((n, 4), 1.0), constant_action, rng.uniform(-1, 1, (n, 4)))[trial]
                observation, reward, over, _, info = env.step(action.astype(np.float32))
                assert 0 <= reward <= 1
            assert task.observation_space.contains(observation)
            assert info["wrecks"] == n
            assert reward == 0


# -- the reference player --------------------------------------------------------------------------


def test_the_reference_crosses_and_nobody_else() -> None:
    task = CARD.build()
    flights = play(task, reference_player(task), range(200), split="test")
    assert flights.info["success"].mean() >= 0.95
    assert flights.info["wrecks"].sum() <= 0.01 * 200 * N
    assert flights.total.mean() == pytest.approx(task.scores["reference"].mean, rel=0.02)
    idle = play(task, Constant(task.noop_action()), range(64), split="test")
    assert idle.total.mean() < 0.4 * flights.total.mean()
    assert not idle.info["success"].any()


def test_the_reference_crosses_in_a_crowd() -> None:
    """Hardly any two of 128 vehicles touch."""
    task = card("QuadcopterSwarm128-v0").build()
    flights = play(task, reference_player(task), range(16), split="test")
    assert flights.info["success"].mean() >= 0.8
    assert flights.info["wrecks"].mean() <= 1


def test_words_and_picture() -> None:
    task = CARD.build()
    env = TaskEnv(task)
    env.reset(seed=0)
    lines = task.describe(env.episode.state, env.params).splitlines()[1:]
    assert [line.split(":")[0] for line in lines] == [f"agent_{i}" for i in range(N)]
    numbers = np.array([line.split(":")[1].split() for line in lines], float)
    observation = env.task.observation(*on_device((env.episode.state, None, env.params)))
    np.testing.assert_allclose(numbers[:, 3:6], observation[:, :3], atol=0.0051)
    np.testing.assert_allclose(numbers[:, 9:18], observation[:, 3:12], atol=0.0051)
    np.testing.assert_allclose(numbers[:, -4:], observation[:, 18:22], atol=0.0051)
    wreck = env.episode.state._replace(wrecked=np.arange(N) == 3)
    assert "agent_3 (wrecked)" in task.describe(wreck, env.params)
    picture = task.draw(env.episode.state, env.params)
    assert picture.shape == task.picture_shape
    assert (task.draw(wreck, env.params) != picture).any()


def test_nearest_are_those_of_a_sort() -> None:
    apart = np.random.default_rng(0).integers(0, 20, (5, 12, 12)).astype(np.float32)  # with ties
    apart[apart > 15] = np.inf
    distances_found, rows = jax.jit(jax.vmap(lambda distances: nearest_rows(distances, 4)))(apart)
    order = np.argsort(apart, axis=1, kind="stable")[:, :4]
    sorted_apart = np.take_along_axis(apart, order, axis=1)
    np.testing.assert_array_equal(distances_found, sorted_apart.swapaxes(1, 2))
    there = np.isfinite(sorted_apart)
    np.testing.assert_array_equal(np.swapaxes(rows, 1, 2)[there], order[there])

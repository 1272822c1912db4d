"""Check QuadcopterMultiHover's wakes, starts, ends, rewards, and who can hold it.

Wakes follow the published formula; the rest is plain Python.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pettingzoo
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.control.geometric import SetPoint
from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.envs.quadcopter.physics.dynamics import Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.rigid_body import GRAVITY, RigidBody
from rlbench_suite.envs.quadcopter.tasks.multi_agent.fleet import Params, State
from rlbench_suite.envs.quadcopter.tasks.multi_agent.multi_hover import (
    MultiHoverPilot,
    QuadcopterMultiHover,
)
from rlbench_suite.numerics.process import precision

NAMES = ["QuadcopterMultiHover-v0", "QuadcopterMultiHover4-v0"]
every_size = pytest.mark.parametrize("name", NAMES)


def build(name: str, dtype: str = "float32") -> QuadcopterMultiHover:
    task: QuadcopterMultiHover = card(name).build(dtype=dtype)
    return task


def state_at_goals(task: QuadcopterMultiHover, gap: float) -> tuple[State, Params]:
    """Nominal vehicles at rest at the goals of a straight column, rotors as in still air."""
    n = task.card.agents
    airframe = jax.tree.map(np.float64, dynamics.NOMINAL)
    heights = gap * (np.arange(n) - 0.5 * (n - 1))
    body = RigidBody(np.zeros(n), np.zeros(n), heights, np.ones(n), *np.zeros((9, n)))
    hover = np.sqrt(dynamics.MASS * GRAVITY / (4 * dynamics.THRUST_COEFFICIENT))
    state = State(Quadcopter(body, Rotors(*np.full((4, n), hover))), np.zeros(n, bool))
    return state, Params(airframe, np.zeros(n), np.zeros(n), heights)


@every_size
def test_who_hovers_as_if_alone_is_pushed_down_by_those_above(name: str) -> None:
    """A step from rest follows v = -a (1 - exp(-c t)) / c with rotor drag.

    The push of each vehicle above is 2267.18 (r / 4 dz)^2.
    """
    task, gap = build(name, "float64"), 1.1
    state, params = state_at_goals(task, gap)
    with precision(task):
        hover = dynamics.rotor_action(np.stack(state.vehicles.rotors, 1))
        after = jax.jit(task.transition)(*jax.tree.map(jnp.asarray, (state, hover)), None, params)
    n = task.card.agents
    for i, fall in enumerate(np.asarray(after.vehicles.body.vz)):
        push = sum(2267.18 * (2.31348e-2 / (4 * gap * above)) ** 2 for above in range(1, n - i))
        drag = 10.311e-7 * 4 * float(state.vehicles.rotors.r1[0]) / dynamics.MASS
        expected = -push / dynamics.MASS * -np.expm1(-drag * 0.01) / drag
        assert fall == pytest.approx(expected, rel=1e-9, abs=1e-12)


@every_size
def test_starts_and_columns_are_those_of_the_table(name: str) -> None:
    task = build(name)
    n = task.card.agents
    keys = jax.random.split(jax.random.key(0), 400)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(1))
    state = jax.jit(jax.vmap(task.initial))(keys, params)
    goals, places = (
        np.stack(coordinates, -1).astype(float)
        for coordinates in (params[1:], state.vehicles.body[:3])
    )
    gaps = np.diff(goals[..., 2], axis=1)
    assert [gaps.min(), gaps.max()] == pytest.approx([0.9, 1.3], abs=0.005)
    assert np.abs(goals[..., 2].mean(1)).max() < 1e-6, "about the origin"
    for values, bound in (
        (goals[..., :2], 0.04),
        (places - goals, 0.2),
        (np.stack(state.vehicles.body[7:]), 0.5),
    ):
        assert np.abs(values).max() == pytest.approx(bound, rel=0.01)
        assert values.std() == pytest.approx(bound / np.sqrt(3), rel=0.05)
    assert (np.stack(state.vehicles.body[3:7], -1) == [1, 0, 0, 0]).all()
    masses = (np.asarray(params.airframe.inertia.mass, float) / dynamics.MASS - 0.8) * 100
    assert (np.floor(masses) % 2 == 1).all(), "test vehicles"
    assert state.wrecked.shape == (400, n)


@every_size
def test_reward_success_and_arena_by_plain_python(name: str) -> None:
    task = build(name, "float64")
    state, params = state_at_goals(task, 1.0)
    step, n = jax.jit(task.transition), task.card.agents

    def move_second(**fields: float) -> State:
        """The second vehicle, elsewhere or moving."""
        body = state.vehicles.body
        body = body._replace(
            **{name: getattr(body, name) + value * np.eye(n)[1] for name, value in fields.items()}
        )
        return state._replace(vehicles=state.vehicles._replace(body=body))

    def rewards_of(state: State) -> list[float]:
        with precision(task):
            return np.asarray(task.reward(state, None, state, None, params)).tolist()

    def info(state: State) -> dict[str, Any]:
        with precision(task):
            return task.info(state, params)

    assert rewards_of(state) == [1] * n
    assert rewards_of(move_second(x=0.06, z=-0.08)) == pytest.approx([1, 0.5, *[1] * (n - 2)])
    for fields, holds in (
        ({"y": 0.099}, True),
        ({"y": 0.101}, False),
        ({"vz": 0.099}, True),
        ({"vz": 0.101}, False),
    ):
        assert bool(info(move_second(**fields))["success"]) is holds
        assert float(info(move_second(**fields))["holding"]) == pytest.approx(
            1 if holds else 1 - 1 / n
        )
    for fields, lost in (
        ({"x": 0.59}, False),
        ({"x": 0.61}, True),
        ({"z": 0.605}, True),
        ({"wy": 35.5}, True),
    ):
        with precision(task):
            there = jax.tree.map(jnp.asarray, move_second(**fields))
            after = step(there, np.full((n, 4), 0.334), None, params)
        assert after.wrecked.tolist() == [False, lost, *[False] * (n - 2)]
        assert bool(info(after)["success"]) is False
        assert (rewards_of(after)[1] == 0) is lost


@every_size
def test_the_reference_holds_it_and_needs_to_know_the_wakes(name: str) -> None:
    """A pilot that takes the air for still sinks by push / (mass 64 / s^2).

    That is centimetres, and more below more vehicles.
    """
    task = build(name)
    reference = reference_player(task)

    class Unaware(MultiHoverPilot):
        def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
            goal = SetPoint(*view.params[1:])
            return self.control.command(view.state.vehicles, view.params.airframe, goal).T, memory

    flights, unaware, idle = (
        play(task, player, range(100), split="test")
        for player in (reference, Unaware(reference.control), Constant(task.noop_action()))
    )
    assert flights.info["success"].mean() >= 0.95
    assert flights.info["wrecks"].sum() <= 0.01 * 100 * task.card.agents
    assert flights.total.mean() == pytest.approx(task.scores["reference"].mean, rel=0.02)
    assert unaware.total.mean() < 0.92 * flights.total.mean()
    assert unaware.info["distance"].mean() > 0.0075 > 100 * flights.info["distance"].mean()
    assert not idle.info["success"].any()
    assert idle.total.mean() < 0.3 * flights.total.mean()


@every_size
def test_observation_stays_inside_the_space(name: str) -> None:
    """Full rotors and noise, to the end of every vehicle."""
    task = build(name)
    env, rng, n = TaskEnv(task), np.random.default_rng(7), task.card.agents
    for trial in range(2):
        observation, _ = env.reset(seed=trial)
        over = False
        while not over:
            assert task.observation_space.contains(observation)
            action = (np.ones((n, 4)), rng.uniform(-1, 1, (n, 4)))[trial]
            observation, reward, over, _, info = env.step(action.astype(np.float32))
            assert 0 <= reward <= 1
        assert task.observation_space.contains(observation)
        assert info["wrecks"] == n


@every_size
def test_it_is_a_pettingzoo_environment_and_found_by_the_number_of_vehicles(name: str) -> None:
    n = card(name).agents
    assert card("QuadcopterMultiHover-v0", vehicles=n).name == name
    env = pettingzoo.make("parallel", card(name).id)
    observations, _ = env.reset(seed=0)
    assert list(observations) == [f"agent_{i}" for i in range(n)]
    assert all(
        env.observation_space(agent).contains(observation)
        for agent, observation in observations.items()
    )
    with pytest.raises(ValueError, match="vehicles"):
        card("QuadcopterMultiHover-v0", vehicles=3)

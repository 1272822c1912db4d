"""Check hover as in Learning to Fly in Seconds against the paper's numbers.

They are of its curriculum, starts and disturbances.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.envs.quadcopter.physics.dynamics import Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.rigid_body import RigidBody, Wrench
from rlbench_suite.envs.quadcopter.sensing.motion import attitude_and_rates
from rlbench_suite.envs.quadcopter.tasks.hover_learning_to_fly import (
    AIRFRAME,
    HoverLearningToFly,
    State,
    Weights,
    haar_angle,
)
from rlbench_suite.numerics.process import precision

the_id = pytest.mark.parametrize("name", ["QuadcopterHoverLearningToFly-v0"])
HALF = 0.5 * dynamics.ROTOR_SPEED_LIMIT
CALM = Wrench(*[0.0] * 6)


def state_at(**fields: float) -> State:
    """A level vehicle at rest at the origin but for these fields."""
    body = RigidBody(*np.eye(13)[3])._replace(**fields)
    return State(Quadcopter(body, Rotors(*[HALF] * 4)), np.zeros(128))


# -- the curriculum --------------------------------------------------------------------------------


def test_curriculum_is_the_code_s_product_of_factors() -> None:
    """Weights are multiplied stage after stage and capped, as training does.

    From stage 14 on all are at their caps.
    """
    place, motion = 5.0, 0.01
    for stage in range(17):
        weights = Weights.after_stages(stage)
        assert weights.position == pytest.approx(place)
        assert weights.motion == pytest.approx(motion)
        assert (weights == Weights(40, 1)) is (stage >= 14)
        place, motion = min(place * 1.2, 40), min(motion * 1.4, 1)


@the_id
def test_reward_is_the_paper_s(name: str) -> None:
    action = np.array([0.434, 0.334, 0.234, 0.334])
    here = state_at(x=0.3, y=-0.4, qw=np.cos(0.3), qz=np.sin(0.3), vx=2.0)
    for difficulty, place, motion in (("easy", 5, 0.01), ("medium", 7.2, 0.0196), ("hard", 40, 1)):
        task: HoverLearningToFly = card(name).build(difficulty=difficulty, dtype="float64")
        cost = place * 0.25 + 5 * np.sin(0.3) ** 2 + motion * (4 + 2 * 0.01)
        with precision(task):
            assert float(task.reward(here, action, state_at(), None, CALM)) == pytest.approx(
                2 - cost / 2
            )
            for crashed in (state_at(z=-0.61), state_at(wy=35.0)):
                assert float(task.reward(here, action, crashed, None, CALM)) == 0
            assert task.reward_space.contains(
                np.asarray(task.reward(here, -np.ones(4), state_at(), None, CALM))
            )


# -- starts and contexts ---------------------------------------------------------------------------


def test_angles_are_those_of_uniform_rotations() -> None:
    """Kolmogorov and Smirnov on SciPy's random rotations, of those that turn by less."""
    from scipy.spatial.transform import Rotation

    for largest_angle in (0.5 * np.pi, np.pi):
        every = Rotation.random(40_000, random_state=0).magnitude()
        ours = np.asarray(
            jax.vmap(lambda unit, largest_angle=largest_angle: haar_angle(unit, largest_angle))(
                np.linspace(0, 1, 4001)
            )
        )
        assert stats.ks_2samp(every[every <= largest_angle], ours).pvalue > 0.01
        assert ours[0] == 0
        assert ours[-1] == pytest.approx(largest_angle, rel=1e-4)


@the_id
def test_starts_are_those_of_the_table(name: str) -> None:
    task = card(name).build()
    keys = jax.random.split(jax.random.key(1), 20_000)
    state = jax.device_get(jax.jit(jax.vmap(lambda key: task.initial(key, CALM)))(keys))
    body = state.vehicle.body
    place, turned = np.stack(body[:3]), np.stack(body[3:7])
    guided = (place == 0).all(0)
    assert guided.mean() == pytest.approx(0.1, abs=0.01)
    assert (turned[:, guided] == np.array([[1], [0], [0], [0]])).all()
    assert (np.stack(state.vehicle.rotors) == np.float32(HALF)).all()
    assert not state.past.any()
    for values, bound in ((place[:, ~guided], 0.2), (np.stack(body[7:]), 1.0)):
        assert np.abs(values).max() == pytest.approx(bound, rel=0.01)
        assert values.std() == pytest.approx(bound / np.sqrt(3), rel=0.02)
    # A uniform rotation that is known to turn by a most: its angle has the mean below (by parts),
    # its axis any way.
    angle = 2 * np.arccos(np.clip(turned[0, ~guided], -1, 1))
    largest_angle = 0.5 * np.pi
    mean = (
        largest_angle**2 / 2 - largest_angle * np.sin(largest_angle) - np.cos(largest_angle) + 1
    ) / (largest_angle - np.sin(largest_angle))
    assert angle.mean() == pytest.approx(mean, rel=0.01)
    axis = turned[1:, ~guided] / np.sin(angle / 2)
    assert (axis**2).mean(1) == pytest.approx(np.full(3, 1 / 3), abs=0.01)


@the_id
def test_disturbances_are_gaussian_and_split_by_the_vertical_force(name: str) -> None:
    """Forces have a deviation of weight / 20, and torques of weight / 10,000 m.

    The vertical force's quantiles lie in bands, which leaves gaps, but no bias.
    """
    task = card(name).build()
    sample = jax.jit(jax.vmap(task.sample_params, (0, None)))
    keys = jax.random.split(jax.random.key(2), 20_000)
    for split in (0, 1):
        wrench = jax.device_get(sample(keys, np.int32(split)))
        for i, values in enumerate(wrench):
            deviation = 0.027 * 9.81 / (20 if i < 3 else 10_000)
            scaled = values.astype(float) / deviation
            assert scaled.std() == pytest.approx(1, abs=0.03)
            assert np.abs(scaled).max() <= 6.001
            if i != 2:
                assert stats.kstest(scaled, "norm").pvalue > 1e-3
        band = stats.norm.cdf(wrench.fz.astype(float) / (0.027 * 9.81 / 20)) * 40
        assert (np.floor(band) % 2 == split).all()
        assert len(np.unique(np.floor(band))) == 20


# -- dynamics and observation ----------------------------------------------------------------------


@the_id
def test_disturbed_flight_by_scipy(name: str) -> None:
    """SciPy flies the same quarter of a second, level and straight.

    Motors have 0.15 s; there is a vertical force and a yaw torque.
    """
    task = card(name).build(dtype="float64")
    push = Wrench(0.0, 0.0, -0.02, 0.0, 0.0, 3e-6)
    with precision(task):
        state = jax.tree.map(jnp.asarray, state_at())
        step = jax.jit(task.transition)
        for _ in range(25):
            state = step(state, np.full(4, 0.6), None, push)
    k, command = dynamics.THRUST_COEFFICIENT, 0.8 * dynamics.ROTOR_SPEED_LIMIT

    def motion(_: float, now: np.ndarray) -> list[float]:
        lift = (4 * k * now[2] ** 2 - 0.02) / 0.027 - 9.81
        return [now[1], lift, (command - now[2]) / 0.15, 3e-6 / 5.9675e-6]

    exact = solve_ivp(motion, (0, 0.25), [0, 0, HALF, 0], rtol=1e-10, atol=1e-10).y[:, -1]
    body = state.vehicle.body
    assert [float(body.z), float(body.vz), float(body.wz)] == pytest.approx(
        [*exact[:2], exact[3]], rel=1e-5
    )
    assert float(state.vehicle.rotors.r1) == pytest.approx(exact[2], rel=1e-9)
    assert AIRFRAME.motor_time_constant == 0.15


@the_id
def test_observation_is_noisy_motion_and_past_actions(name: str) -> None:
    task = card(name).build()
    state = state_at(x=0.1, qw=np.cos(0.2), qx=np.sin(0.2), vy=-0.5, wz=2.0)._replace(
        past=np.arange(128) / 128
    )
    state = jax.tree.map(np.float32, state)
    keys = jax.random.split(jax.random.key(3), 4000)
    observations = np.asarray(
        jax.jit(jax.vmap(lambda key: task.observation(state, key, CALM)))(keys), float
    )
    body = state.vehicle.body
    truth = [*body[:3], *attitude_and_rates(state.vehicle)[:15]]
    assert observations.shape[1] == 146
    np.testing.assert_allclose(observations[:, :18].mean(0), truth, atol=2e-4)
    np.testing.assert_allclose(observations[:, :18].std(0), [0.001] * 12 + [0.002] * 6, rtol=0.06)
    np.testing.assert_array_equal(observations[:, 18:], np.broadcast_to(state.past, (4000, 128)))


@the_id
def test_past_actions_are_kept_oldest_first(name: str) -> None:
    env = gymnasium.make(f"rlsuite/{name}")
    env.reset(seed=4)
    rng = np.random.default_rng(4)
    actions = 0.3 + 0.05 * rng.uniform(-1, 1, (12, 4)).astype(np.float32)
    for action in actions:
        observation, _, terminated, _, _ = env.step(action)
        assert not terminated
    np.testing.assert_array_equal(
        observation[18:], np.concatenate([np.zeros(80), actions.ravel()]).astype(np.float32)
    )
    words = env.unwrapped.task.describe(env.unwrapped.episode.state, env.unwrapped.params)
    assert "; ".join(" ".join(f"{value:+.2f}" for value in row) for row in actions) in words
    assert "Rotor" not in words


@the_id
def test_observation_stays_inside_the_space(name: str) -> None:
    task = card(name).build()
    env, rng = TaskEnv(task), np.random.default_rng(5)
    for trial in range(12):
        observation, _ = env.reset(seed=trial)
        constant_action = rng.choice([-1.0, 1.0], 4).astype(np.float32)
        over = False
        while not over:
            assert task.observation_space.contains(observation)
            action = constant_action if trial % 2 else rng.uniform(-1, 1, 4).astype(np.float32)
            observation, reward, over, _, _ = env.step(action)
            assert task.reward_space.contains(np.asarray(reward, task.dtype))
        assert task.observation_space.contains(observation)


@the_id
def test_conditions_find_the_id(name: str) -> None:
    assert card("QuadcopterHover-v0", conditions="learning-to-fly").name == name
    assert card(name, conditions="calm").name == "QuadcopterHover-v0"


@the_id
def test_the_reference_holds_what_does_not_fall(name: str) -> None:
    """Motors of 0.15 s do not catch every start; who flies after a second hovers at the end."""
    task = card(name).build()
    flights: Any = play(task, reference_player(task), range(400), split="test")
    assert flights.info["success"].mean() >= 0.9
    assert flights.length[flights.terminated].max() < 100
    assert flights.info["success"][~flights.terminated].mean() > 0.99
    assert flights.total.mean() == pytest.approx(task.scores["reference"].mean, rel=0.04)
    assert task.scores["noop"].high < 0.3 * task.scores["reference"].low

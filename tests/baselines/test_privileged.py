"""Test an asymmetric actor and critic.

What is privileged teaches the critic, and the policy never sees it.
"""

from __future__ import annotations

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from toy_tasks import Weather

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.networks import mlp
from rlbench_suite.baselines.ppo.agent import PPO, programs


@pytest.mark.parametrize("recurrent", ["none", "gru"])
def test_the_critic_learns_what_only_it_is_told(recurrent: str) -> None:
    """1 or -1 a step for ever is worth 5 or -5 at gamma 0.8; who is not told can only say 0."""
    task = Weather()
    agent = PPO(
        num_envs=16, num_steps=16, minibatches=2, hidden=(16,), memory=4, reports=2,
        learning_rate=1e-2, total_steps=60_000, gamma=0.8, recurrent=recurrent, scale_rewards=False,
    )  # fmt: skip
    config = agent.config(task, "smoke")
    compiled = programs(task, config)
    training = compiled.start(0)
    for _ in range(config.chunks):
        training, _ = compiled.chunk(training)
    base = training.base if recurrent == "gru" else training
    x = base.moments.normalise(jnp.array([[1.0, -1.0], [1.0, 1.0]]))
    if recurrent == "gru":
        memory = base.networks.actor.unit(x, jnp.zeros((2, config.memory)))
        np.testing.assert_array_equal(memory[0], memory[1])
        x = jnp.concatenate([x[:, :1], memory, x[:, 1:]], -1)
    np.testing.assert_allclose(mlp(base.networks.critic, x)[:, 0], [-5, 5], atol=0.4)
    distribution = base.networks.actor(compiled.flat, x, None)
    np.testing.assert_array_equal(distribution.logits[0][0], distribution.logits[0][1])

    assert set(play(task, compiled.policy(training), range(20)).total.tolist()) == {-4.0, 4.0}


@pytest.mark.parametrize(
    "name", ["QuadcopterHoverLearningToFly-v0", "PMSMSpeedSensorless-v0", "QuadcopterHoverRough-v0"]
)
def test_it_tells_what_the_observation_does_not(name: str) -> None:
    """Privileged numbers follow from state and context alone.

    They do so even if the observation is noisy or silent.
    """
    env = gymnasium.make(f"rlsuite/{name}")
    observation, info = env.reset(seed=1)
    task = env.unwrapped.task
    privileged = info["privileged"]
    np.testing.assert_allclose(
        privileged,
        task.privileged(env.unwrapped.episode.state, env.unwrapped.params),
        rtol=1e-5,
        atol=1e-6,
    )
    assert privileged in task.privileged_space
    if name == "QuadcopterHoverLearningToFly-v0":
        noise = np.abs(observation[:18] - privileged[:18])
        assert (noise > 0).all()
        assert noise.max() < 0.02
        np.testing.assert_allclose(privileged[18:22], 0.5, rtol=1e-5)
    if name == "PMSMSpeedSensorless-v0":
        assert privileged[1] ** 2 + privileged[2] ** 2 == pytest.approx(1, abs=1e-5)
        assert privileged[0] * task.plant.speed_limit == pytest.approx(
            float(env.unwrapped.episode.state.speed), rel=1e-5
        )
    if name == "QuadcopterHoverRough-v0":
        assert np.linalg.norm(privileged[:3]) == pytest.approx(info["wind_speed"], rel=1e-5)

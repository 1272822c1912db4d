"""Test the agents that train several agents together, on games whose answers are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from toy_tasks import Bandit, Clock, Mortals, Toy, TwoAgents

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.marl.mappo import MAPPO
from rlbench_suite.baselines.marl.mappo import programs as mappo_programs
from rlbench_suite.baselines.marl.mean_field_ppo import MeanFieldPPO, mean_embedding
from rlbench_suite.baselines.marl.qmix import QMIX, Mixer, mix_monotonically
from rlbench_suite.baselines.marl.vdn import VDN
from rlbench_suite.baselines.networks import mlp
from rlbench_suite.baselines.replay.replay_agent import programs
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.core.registry import card

SMALL = {
    "num_envs": 16, "updates": 2, "batch_size": 64, "hidden": (32,), "reports": 2,
    "learning_rate": 3e-3, "learning_starts": 200,
}  # fmt: skip
MATCHING = MAPPO(
    num_envs=16, num_steps=16, minibatches=2, hidden=(16,), reports=2, learning_rate=1e-2,
    total_steps=20_000, scale_rewards=False,
)  # fmt: skip


class TwoSteps(Toy):
    """The game of Rashid et al. 2018, section 5: in step 1, agent 0 chooses the game of step 2.

    Game A pays 7 whatever they do. Game B pays 0 for (0, 0), 8 for (1, 1) and 1 for the rest.
    """

    PAYOFFS = np.array([[[7, 7], [7, 7]], [[0, 1], [1, 8]]], np.float32)

    def __init__(self) -> None:
        super().__init__(horizon=2, agents=2)
        self.observation_space = self.box(0.0, 1.0, (2, 5))
        self.action_space = spaces.MultiDiscrete([2, 2])
        self.reward_space = self.box(0.0, 8.0, (2,))
        self.global_state_space = self.box(0.0, 1.0, (3,))

    def transition(self, state, action, key, params):
        return Clock(jnp.where(state.place == 0, 1 + action[0], 3))

    def observation(self, state, key, params):
        place = (jnp.arange(3) == state.place).astype(jnp.float32)
        return jnp.concatenate([jnp.stack([place, place]), jnp.eye(2)], 1)

    def global_state(self, state, params):
        return (jnp.arange(3) == state.place).astype(jnp.float32)

    def reward(self, state, action, next_state, key, params):
        game = jnp.asarray(self.PAYOFFS)[jnp.clip(state.place - 1, 0, 1)]
        paid = jnp.where(state.place > 0, game[action[0], action[1]], 0)
        return jnp.stack([paid, paid])

    def terminal(self, state, key, params):
        return state.place == 3


class Forecast(TwoAgents):
    """Every step of an episode pays both agents 1 or -1, and only agent 1 sees which."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = self.box(-1.0, 1.0, (2, 2))
        self.reward_space = self.box(-1.0, 1.0, (2,))

    def sample_params(self, key, split):
        return Clock(jnp.where(jax.random.bernoulli(key), 1.0, -1.0))

    def observation(self, state, key, params):
        weather = jnp.stack([jnp.zeros(()), params.place])
        return jnp.stack([jnp.arange(2, dtype=jnp.float32), weather], 1)

    def reward(self, state, action, next_state, key, params):
        return jnp.stack([params.place, params.place])


class MaskedPair(TwoAgents):
    """Agent i of two is paid by its action, of which the best is masked for agent 1."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.MultiDiscrete([3, 3])
        self.reward_space = self.box(0.0, 2.0, (2,))

    def action_mask(self, state, params):
        return jnp.array([True, True, True, True, True, False])

    def reward(self, state, action, next_state, key, params):
        return action.astype(jnp.float32)


class Push(TwoAgents):
    """Two agents with continuous actions."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = self.box(-1.0, 1.0, (2, 1))


TWO_STEPS = TwoSteps()
MASKED = MaskedPair()
EXPLORING = {**SMALL, "total_steps": 16_000, "epsilon": 1.0, "gamma": 0.99, "target_period": 50}
"""As in the paper, all actions in training are random."""


def train(agent: Any, task: Any, seed: int = 0) -> Any:
    *_, policy = agent.train(task, seed=seed, budget="smoke")
    return policy


# -- credit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "paid"), [(QMIX(**EXPLORING), 8.0), (VDN(**EXPLORING), 7.0)])
def test_what_a_sum_cannot_say_a_monotone_mixer_can(agent: Any, paid: float) -> None:
    """A sum makes (1, 1) of game B look worse than 7; Rashid et al. 2018, table 1 and appendix."""
    for seed in range(3):
        assert play(TWO_STEPS, train(agent, TWO_STEPS, seed), range(4)).total.mean() == paid


def test_the_joint_values_of_qmix_are_those_of_the_game() -> None:
    task, agent = TWO_STEPS, QMIX(**EXPLORING)
    algorithm = agent.algorithm(task, agent.config(task, "smoke"))
    training = programs(algorithm).start(0)
    for _ in range(algorithm.config.chunks):
        training, _ = programs(algorithm).chunk(training)
    place = jnp.array([[0.0, 1, 0], [0, 0, 1]])
    rows = jnp.concatenate([jnp.stack([place, place], 1), jnp.stack([jnp.eye(2)] * 2)], -1)
    x = training.moments.normalise(type(training.buffer.experience.x)(rows, place))
    networks = training.learner.networks
    values = [
        [algorithm.joint_value(networks, x, jnp.full((2, 2), jnp.array([i, j]))) for j in range(2)]
        for i in range(2)
    ]
    np.testing.assert_allclose(np.moveaxis(values, -1, 0), task.PAYOFFS, atol=0.4)


@pytest.mark.parametrize("agents", [2, 5])
def test_the_mixer_is_monotone(agents: int) -> None:
    """No joint value falls where an agent's value rises, at any state and for any weights."""
    rng = np.random.default_rng(agents)
    mixer = Mixer.initial(0, 4, agents, 8)
    mixer = jax.tree.map(lambda leaf: leaf + rng.normal(size=leaf.shape).astype("f"), mixer)
    gradient = jax.jit(jax.vmap(jax.grad(mix_monotonically, 1), in_axes=(None, 0, 0)))
    values, state = 5 * rng.normal(size=(2000, agents)), 3 * rng.normal(size=(2000, 4))
    slopes = np.asarray(gradient(mixer, values.astype("f"), state.astype("f")))
    assert (slopes >= 0).all()
    assert (slopes > 0).mean() > 0.9
    assert len(np.unique(slopes.round(3))) > 100  # the state decides how much an agent counts


def test_a_mixer_is_about_a_sum_at_first() -> None:
    values = jnp.array([0.02, -0.01, 0.03])
    mixed = mix_monotonically(Mixer.initial(0, 4, 3, 32), values, jnp.zeros(4))
    assert float(mixed) == pytest.approx(0.04, rel=0.05)


def test_a_row_of_the_buffer_is_a_step_of_all_agents() -> None:
    agent = QMIX(**{**SMALL, "num_envs": 4, "learning_starts": 10_000}, total_steps=400)
    algorithm = agent.algorithm(TWO_STEPS, agent.config(TWO_STEPS, "smoke"))
    training, _ = programs(algorithm).chunk(programs(algorithm).start(0))
    filled = int(training.buffer.filled)
    rows = jax.tree.map(lambda leaf: np.asarray(leaf)[:filled], training.buffer.experience)
    assert filled == algorithm.config.chunk * 4
    np.testing.assert_array_equal(rows.x.state, rows.x.agents[:, 0, :3])
    place, action = rows.x.state.argmax(1), rows.action[..., 0]
    paid = TwoSteps.PAYOFFS[np.maximum(place - 1, 0), action[:, 0], action[:, 1]]
    np.testing.assert_array_equal(rows.reward, np.where(place == 0, 0, paid))
    np.testing.assert_array_equal(rows.terminated, place > 0)
    game = np.where(place == 0, 1 + action[:, 0], 0)
    np.testing.assert_array_equal(rows.next_x.state.argmax(1)[place == 0], game[place == 0])


# -- a central critic ------------------------------------------------------------------------------


def test_the_critic_of_an_agent_knows_what_only_another_sees() -> None:
    """1 or -1 a step for ever is worth 5 or -5 at gamma 0.8, for agent 0 too."""
    task = Forecast()
    agent = MAPPO(**{**MATCHING.overrides, "gamma": 0.8, "total_steps": 60_000})
    config = agent.config(task, "smoke")
    compiled = mappo_programs(task, config)
    training = compiled.start(0)
    for _ in range(config.chunks):
        training, _ = compiled.chunk(training)
    views = np.array([[[0, 0], [1, 1]], [[0, 0], [1, -1]]], np.float32)
    x = np.concatenate([views, np.stack([views.reshape(2, -1)] * 2, 1)], -1)
    values = mlp(training.networks.critic, training.moments.normalise(x))[..., 0]
    np.testing.assert_allclose(values, [[5, 5], [-5, -5]], atol=0.5)
    policy = compiled.policy(training)
    assert policy.actor.layers[0].weight.shape[0] == policy.moments.mean.shape[0] == 2


@pytest.mark.parametrize(
    "agent", [MATCHING, QMIX(**SMALL, total_steps=6_000), VDN(**SMALL, total_steps=6_000)]
)
def test_agents_learn_to_play_and_keep_to_their_masks(agent: Any, tmp_path: Path) -> None:
    """Actions 2 and 1 are the best that are legal: 1.5 a step, where chance gets 0.75."""
    policy = train(agent, MASKED)
    assert play(MASKED, policy, range(4)).total.mean() == 4 * 1.5
    path = str(tmp_path / "policy.safetensors")
    agent.save(policy, path)
    again = agent.load(path, MASKED)
    assert play(MASKED, again, range(4)).total.mean() == 4 * 1.5


@pytest.mark.parametrize("agent", [MAPPO(), MeanFieldPPO(), VDN(), QMIX()])
def test_who_cannot_play_says_why(agent: Any) -> None:
    with pytest.raises(CannotPlay, match="has one"):
        agent.check(Bandit(masked=False))
    with pytest.raises(CannotPlay, match="die"):
        agent.check(Mortals())
    if not isinstance(agent, MAPPO):
        with pytest.raises(CannotPlay, match=f"{agent.name} plays Discrete and MultiDiscrete"):
            agent.check(Push())
    agent.check(TWO_STEPS)


def test_every_agent_of_mappo_earns_the_mean() -> None:
    flat = MAPPO().flatten(TwoAgents())
    np.testing.assert_array_equal(flat.agent_rewards(jnp.array([1.0, 4.0])), [2.5, 2.5])


# -- mean fields -----------------------------------------------------------------------------------


@pytest.mark.parametrize("embedding", ["kernel", "histogram"])
def test_a_mean_embedding_knows_the_spread_and_not_the_number_or_order(embedding: str) -> None:
    x = np.random.default_rng(0).random((40, 3)).astype(np.float32)
    code = mean_embedding(jnp.asarray(x), 5, embedding)
    again = mean_embedding(jnp.asarray(np.concatenate([x[::-1], x])), 5, embedding)
    np.testing.assert_allclose(again, code, atol=1e-6)
    assert code.shape == (15,)
    if embedding == "histogram":
        expected = np.stack([np.histogram(column, 5, (0, 1))[0] / 40 for column in x.T])
    else:  # bumps as wide as a bin
        centres = [0.1, 0.3, 0.5, 0.7, 0.9]
        expected = np.stack([np.exp(-(((x - c) / 0.2) ** 2) / 2).mean(0) for c in centres], 1)
    np.testing.assert_allclose(code.reshape(3, 5), expected, atol=1e-6)


def test_mean_field_ppo_learns_for_any_number_of_oscillators(tmp_path: Path) -> None:
    """Its critic is as wide for 16 of them as for 200, and the policy serves both."""
    card_of_few = card("Kuramoto-v0")
    few, many = card_of_few.build(), card("Kuramoto-v0", agents=200).build()
    agent = MeanFieldPPO()
    assert agent.flatten(few).privileged == agent.flatten(many).privileged == 8 * 5
    policy = train(MeanFieldPPO(total_steps=20_000), few)
    path = str(tmp_path / "policy.safetensors")
    agent.save(policy, path)
    scale = card_of_few.scale()
    for task in (few, many):
        record = play(task, agent.load(path, task), range(16))
        assert scale.score(scalar_return(task, record.total)).mean() > 0.6

"""Test agents that learn from replayed experience.

The tests check the buffer, time limits and masks, and solve problems whose answers are known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from toy_tasks import Bandit, Chain, Clock, Digits, Target, Toy, TwoAgents, TwoObjectives

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.replay.dqn import DQN, target
from rlbench_suite.baselines.replay.replay_agent import Experience, ReplayBuffer, programs, step
from rlbench_suite.baselines.replay.sac import SAC, SquashedGaussian, distribution, values
from rlbench_suite.core import registry
from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.evaluation.protocol import evaluation_seeds

SMALL = {
    "num_envs": 8, "updates": 4, "batch_size": 64, "hidden": (16,), "reports": 2,
    "learning_rate": 3e-3, "learning_starts": 200,
}  # fmt: skip


TARGET = Target()
CHAIN = Chain()
BANDIT = Bandit(masked=True)
"""One object each: programs compiled for a task are found again."""
STEERING = SAC(**SMALL, total_steps=12_000, entropy_per_component=-1.5)
WALKING = DQN(**SMALL, total_steps=10_000)


class Paying(Toy):
    """Pays 1 a step for ever, cut off after four steps; or, if ``mortal``, over after four."""

    def __init__(self, mortal: bool, continuous: bool) -> None:
        super().__init__(horizon=8 if mortal else 4)
        self.mortal = mortal
        self.observation_space = self.box(0.0, 1.0, (5,))
        if continuous:
            self.action_space = self.box(-1.0, 1.0, (1,))

    def transition(self, state, action, key, params):
        return Clock(jnp.minimum(state.place + 1, 4))

    def observation(self, state, key, params):
        return (jnp.arange(5) == jnp.where(self.mortal, state.place, 0)).astype(jnp.float32)

    def terminal(self, state, key, params):
        return (state.place == 4) & self.mortal


class Pair(TwoAgents):
    """Each agent sees its own number and should steer to it."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = self.box(-np.ones((2, 1)), np.ones((2, 1)))

    def reward(self, state, action, next_state, key, params):
        return -((action[:, 0] - jnp.arange(2)) ** 2)


def train_to_the_end(agent: Any, task: Any, seed: int = 0) -> Any:
    """Return the last state of a training run."""
    config = agent.config(task, "smoke")
    algorithm = agent.algorithm(task, config)
    training = programs(algorithm).start(seed)
    for _ in range(config.chunks):
        training, _ = programs(algorithm).chunk(training)
    return training


def train_policy(agent: Any, task: Any, seed: int = 0) -> Any:
    *progress, policy = agent.train(task, seed=seed, budget="smoke")
    assert all(isinstance(event, Progress) for event in progress)
    assert progress[-1].steps == progress[-1].total_steps >= agent.config(task, "smoke").total_steps
    return policy


# -- experience ------------------------------------------------------------------------------------


def test_the_buffer_keeps_the_latest_transitions() -> None:
    buffer = ReplayBuffer.empty({"n": jax.ShapeDtypeStruct((1,), jnp.int32)}, 12)
    for block in range(7):
        numbers = jnp.arange(4) + 4 * block
        buffer = buffer.write({"n": numbers})
        oldest = max(0, 4 * (block + 1) - 12)
        sampled = np.asarray(buffer.sample(jax.random.key(block), 500)["n"])
        # Missing one of 12: p < 1e-17.
        assert set(sampled.tolist()) == set(range(oldest, 4 * (block + 1)))
    assert (int(buffer.filled), int(buffer.position)) == (12, 4)


def test_transitions_are_drawn_with_equal_chances() -> None:
    buffer = ReplayBuffer.empty({"n": jax.ShapeDtypeStruct((1,), jnp.int32)}, 20).write(
        {"n": jnp.arange(10)}
    )
    numbers = buffer.sample(jax.random.key(0), 10_000)["n"]
    assert stats.chisquare(np.bincount(numbers, minlength=10)).pvalue > 1e-3


@pytest.mark.parametrize("agent", [SAC(**SMALL), DQN(**SMALL)])
def test_what_is_stored_is_what_happened(agent: Any) -> None:
    """Check every row of a run on the chain of four paying states.

    A row has where the run was, where it went, and what ended there.
    """
    task = Paying(mortal=True, continuous=agent.name == "sac")
    config = type(agent)(**SMALL, total_steps=160).config(task, "smoke")
    algorithm = agent.algorithm(task, config)
    training = programs(algorithm).start(0)
    step_once = jax.jit(lambda training: step(algorithm, training)[0])
    for _ in range(7):
        training = step_once(training)
    experience = jax.tree.map(
        lambda leaf: np.asarray(leaf)[: 7 * config.num_envs], training.buffer.experience
    )
    assert int(training.buffer.filled) == 7 * config.num_envs
    # After four steps the next episode begins.
    places = np.repeat(np.arange(7) % 4, config.num_envs)
    np.testing.assert_array_equal(experience.x.argmax(1), places)
    # The final place 4 is seen, not the first of the next episode.
    np.testing.assert_array_equal(experience.next_x.argmax(1), places + 1)
    np.testing.assert_array_equal(experience.terminated, places == 3)
    np.testing.assert_array_equal(experience.reward, 1)


@pytest.mark.parametrize("name", ["sac", "dqn"])
@pytest.mark.parametrize(("mortal", "worth"), [(False, 5.0), (True, 1 + 0.8 + 0.64 + 0.512)])
def test_a_time_limit_does_not_end_the_value_and_the_end_does(
    name: str, mortal: bool, worth: float
) -> None:
    """One a step for ever is worth 1 / (1 - gamma) = 5, however soon it is cut off.

    Four steps are worth 2.95.
    """
    task = Paying(mortal, continuous=name == "sac")
    options = SMALL | {"total_steps": 8_000, "gamma": 0.8}
    # The entropy bonus is no part of that sum: a temperature of almost nothing.
    agent = (
        SAC(**options, temperature=1e-6, polyak=0.02)
        if name == "sac"
        else DQN(**options, target_period=20)
    )
    training = train_to_the_end(agent, task)
    x = training.moments.normalise(jnp.eye(5)[:1])
    networks = training.learner.networks
    computed = (
        values(networks.critics, x, jnp.zeros((1, 1)))
        if name == "sac"
        else networks.values(agent.algorithm(task, agent.config(task, "smoke")).flat, x, None)
    )
    np.testing.assert_allclose(np.ravel(computed), worth, atol=0.1)


# -- sac -------------------------------------------------------------------------------------------


def test_the_squashed_density_is_that_of_the_samples() -> None:
    """By change of variables in float64, and integrating to one."""
    mean = np.float32([0.3])
    log_std = np.float32([-0.4])
    policy = SquashedGaussian(jnp.asarray(mean), jnp.asarray(log_std))
    noise = np.linspace(-3, 3, 13, dtype=np.float32)[:, None]
    action, log_prob = policy.sample_with_log_prob(jnp.asarray(noise))
    unsquashed = mean + np.exp(log_std) * noise.astype(np.float64)
    expected = stats.norm.logpdf(unsquashed, mean, np.exp(log_std)) - np.log(
        1 - np.tanh(unsquashed) ** 2
    )
    np.testing.assert_allclose(action, np.tanh(unsquashed), rtol=1e-5)
    np.testing.assert_allclose(log_prob, expected[:, 0], rtol=1e-4, atol=1e-5)
    noise = np.linspace(-8, 8, 100_001, dtype=np.float32)[:, None]
    action, log_prob = (
        np.asarray(a, np.float64) for a in policy.sample_with_log_prob(jnp.asarray(noise))
    )
    assert abs(np.trapezoid(np.exp(log_prob), action[:, 0]) - 1) < 1e-3
    assert np.isfinite(policy.sample_with_log_prob(jnp.float32([[200.0], [-200.0]]))[1]).all()


def test_sac_steers_to_the_target_with_the_entropy_it_was_asked_for() -> None:
    """The target action is (3, -1).

    The spread about it is free, and ends at two times -1.5 nats.
    """
    policy = train_policy(STEERING, TARGET)
    np.testing.assert_allclose(play(TARGET, policy, range(4)).actions[0, 0], [3, -1], atol=0.1)
    x = jnp.broadcast_to(policy.moments.normalise(jnp.ones((1, 1))), (5_000, 1))
    noise = jax.random.normal(jax.random.key(0), (5_000, 2))
    _, log_prob = distribution(policy.actor, x).sample_with_log_prob(noise)
    assert abs(-float(log_prob.mean()) - 2 * -1.5) < 0.3


def test_sac_agents_share_a_policy_and_act_on_what_each_sees() -> None:
    task = Pair()
    actions = play(task, train_policy(SAC(**SMALL, total_steps=12_000), task), range(2)).actions[
        0, 0
    ]
    np.testing.assert_allclose(actions[:, 0], [0, 1], atol=0.15)


# -- dqn -------------------------------------------------------------------------------------------


def test_dqn_finds_the_best_legal_arm() -> None:
    agent = DQN(**SMALL, total_steps=6_000)
    np.testing.assert_array_equal(play(BANDIT, train_policy(agent, BANDIT), range(4)).total, 12)


def test_dqn_walks_the_chain_straight_to_its_end() -> None:
    np.testing.assert_array_equal(play(CHAIN, train_policy(WALKING, CHAIN), range(4)).length, 4)


def test_dqn_weighs_objectives_and_shares_between_agents() -> None:
    task = TwoObjectives((0.1, 0.9))
    flat = DQN().algorithm(task, DQN().config(task, "smoke")).flat
    np.testing.assert_allclose(flat.agent_rewards(jnp.array([1.0, 0.0])), [0.1])
    actions = play(
        TwoAgents(), train_policy(DQN(**SMALL, total_steps=6_000), TwoAgents()), range(2)
    ).actions
    np.testing.assert_array_equal(actions[0, 0], [0, 1])


def test_dqn_never_takes_nor_bootstraps_from_an_illegal_action() -> None:
    """The masked arm 4 pays most and is never tried.

    Its value is made high by hand, and must reach no target.
    """
    task = BANDIT
    agent = DQN(**SMALL, total_steps=6_000)
    training = train_to_the_end(agent, task)
    experience = training.buffer.experience
    filled = int(training.buffer.filled)
    assert filled >= 6_000
    actions = np.asarray(experience.action)[:filled, 0]
    assert set(actions.tolist()) == {0, 1, 2, 3}

    algorithm = agent.algorithm(task, agent.config(task, "smoke"))
    mask = np.asarray(algorithm.unpack_mask(experience.next_legal))
    np.testing.assert_array_equal(mask[:filled], [[True] * 4 + [False]] * filled)
    network = algorithm.networks(0)
    last = network.layers[-1]
    bias = np.array([0, 1, 2, 3, 100], np.float32)
    network = network._replace(
        layers=(*network.layers[:-1], last._replace(weight=0 * last.weight, bias=bias))
    )
    x = jnp.ones((2, 1))
    batch = Experience(
        x, jnp.zeros((2, 1), jnp.int32), jnp.zeros(2), x, None, jnp.array([False, True])
    )
    targets = target(algorithm.flat, network, network, batch, mask[:2], 0.5)
    np.testing.assert_allclose(targets, [1.5, 0])  # half of arm 3, and nothing after the end
    np.testing.assert_allclose(
        target(algorithm.flat, network, network, batch, np.zeros((2, 5), bool), 0.5)[1], 0
    )


def test_dqn_chooses_by_the_network_and_judges_by_the_target() -> None:
    """Double estimates take 0.5 of the target network's value.

    It is the value of the action that the network itself likes best.
    """
    algorithm = DQN(**SMALL, total_steps=2_000).algorithm(
        Bandit(False), DQN(total_steps=1).config(Bandit(False), "smoke")
    )
    network = algorithm.networks(0)

    def network_with_biases(*numbers: float) -> Any:
        last = network.layers[-1]
        end = last._replace(weight=0 * last.weight, bias=np.array(numbers, np.float32))
        return network._replace(layers=(*network.layers[:-1], end))

    x = jnp.ones((1, 1))
    batch = Experience(x, jnp.zeros((1, 1), jnp.int32), jnp.zeros(1), x, None, jnp.array([False]))
    targets = target(
        algorithm.flat,
        network_with_biases(0, 0, 9, 0, 0),
        network_with_biases(7, 0, 2, 0, 0),
        batch,
        None,
        0.5,
    )
    np.testing.assert_allclose(targets, [1.0])


def test_exploration_is_uniform_over_legal_actions_and_falls() -> None:
    agent = DQN(**SMALL, total_steps=4_000, epsilon=0.1, exploration=0.5)
    task = BANDIT
    algorithm = agent.algorithm(task, agent.config(task, "smoke"))
    x = jnp.ones((8_000, 1, 1))
    mask = jnp.broadcast_to(jnp.arange(5) < 4, (8_000, 1, 5))

    def counts(steps: int) -> np.ndarray:
        actions = algorithm.explore(
            algorithm.networks(0), x, mask, jax.random.key(steps), jnp.int32(steps)
        )
        return np.bincount(np.ravel(actions), minlength=5)

    early = counts(0)
    late = counts(4_000)
    assert early[4] == late[4] == 0
    assert stats.chisquare(early[:4]).pvalue > 1e-3
    rare = np.sort(late)[:4].sum()  # three of four random actions are not the best one
    assert stats.binomtest(int(rare), 8_000, 0.1 * 3 / 4).pvalue > 1e-3


# -- both ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "task"), [(STEERING, TARGET), (WALKING, CHAIN)])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(agent: Any, task: Any) -> None:
    first, same_seed, different_seed = (
        jax.tree.leaves(train_policy(agent, task, seed)) for seed in (3, 3, 4)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, same_seed, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, different_seed, strict=True))


@pytest.mark.parametrize(("agent", "task"), [(STEERING, TARGET), (WALKING, CHAIN)])
def test_a_policy_is_the_same_after_saving_and_loading(
    agent: Any, task: Any, tmp_path: Path
) -> None:
    policy = train_policy(agent, task)
    path = str(tmp_path / "policy.safetensors")
    agent.save(policy, path)
    again = agent.load(path, task)
    for a, b in zip(jax.tree.leaves(policy), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        play(task, policy, range(3)).actions, play(task, again, range(3)).actions
    )
    stranger = DQN() if agent.name == "sac" else SAC()
    with pytest.raises(ValueError, match=f"holds a policy of {agent.name}"):
        stranger.load(path, task)


def test_what_they_cannot_play_they_say_before_anything_runs() -> None:
    with pytest.raises(CannotPlay, match=r"bounded Box actions, not Discrete\(5\)"):
        SAC().check(BANDIT)
    with pytest.raises(CannotPlay, match="plays Discrete and MultiDiscrete actions"):
        DQN().check(TARGET)
    with pytest.raises(CannotPlay, match="3 choices at once"):
        DQN().check(Digits())
    unbounded = Toy()
    unbounded.action_space = unbounded.box(-np.inf, np.inf, (1,))
    with pytest.raises(CannotPlay, match="bounded Box"):
        SAC().check(unbounded)
    with pytest.raises(CannotPlay, match="float32"):
        SAC().check(registry.card("QuadcopterHover-v0").build(dtype="float64"))


def test_wrong_hyperparameters_are_refused() -> None:
    with pytest.raises(ValueError, match="Did you mean 'polyak'"):
        SAC(polyac=1e-3).hyperparameters(Target(), "smoke")
    with pytest.raises(ValueError, match=r"epsilon must lie in \[0, 1\], got 2"):
        DQN(epsilon=2).hyperparameters(Chain(), "smoke")
    with pytest.raises(ValueError, match="updates must be at least 1, got 0"):
        DQN(updates=0).hyperparameters(Chain(), "smoke")


def test_a_run_of_both_leaves_out_what_each_cannot_play(tmp_path: Path) -> None:
    from rlbench_suite.evaluation.runs.runner import plan

    manifest = plan("sac,dqn", "QuadcopterHover-v0,SAT-v0", 1, "smoke")
    assert {(cell.agent, cell.task) for cell in manifest.cells()} == {
        ("sac", "rlsuite/QuadcopterHover-v0"),
        ("dqn", "rlsuite/SAT-v0"),
    }
    assert "bounded Box actions" in manifest.not_applicable["sac"]["rlsuite/SAT-v0"]
    assert (
        "plays Discrete and MultiDiscrete actions"
        in manifest.not_applicable["dqn"]["rlsuite/QuadcopterHover-v0"]
    )


def test_dqn_finds_treasures_in_a_smoke_budget() -> None:
    task = registry.card("DeepSeaTreasure-v0").build()
    record = play(task, train_policy(DQN(), task), evaluation_seeds(task.card, 0, "smoke"))
    weights = np.asarray(task.card.weights)
    assert task.card.normalise(float((record.total @ weights).mean())) >= 0.9


def test_sac_controls_currents_in_24_000_steps() -> None:
    task = registry.card("PMSMCurrent-v0").build()
    record = play(
        task, train_policy(SAC(total_steps=24_000), task), evaluation_seeds(task.card, 0, "smoke")
    )
    assert task.card.normalise(float(record.total.mean())) >= 0.85

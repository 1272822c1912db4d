"""PPO on problems whose answers are known, its parts against plain loops, and one real task."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml
from toy_tasks import (
    Bandit,
    CartPole,
    Chain,
    CostlyBandit,
    Digits,
    Mortals,
    Target,
    Toy,
    TwoAgents,
    TwoObjectives,
)

from rlbench_suite.adapters.rollout import Stream, play
from rlbench_suite.baselines.configuration import FOLDER, configure
from rlbench_suite.baselines.flat_task import flatten_task
from rlbench_suite.baselines.networks import Moments, mlp
from rlbench_suite.baselines.ppo import ppo
from rlbench_suite.baselines.ppo.agent import PPO, programs
from rlbench_suite.baselines.ppo.ppo import Config, Networks, advantages
from rlbench_suite.baselines.training import begin_episodes
from rlbench_suite.core import registry
from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.episode import seed_key
from rlbench_suite.evaluation.deploy.network import normalise
from rlbench_suite.evaluation.protocol import evaluation_seeds

SMALL = {
    "num_envs": 16,
    "num_steps": 16,
    "minibatches": 2,
    "hidden": (16,),
    "reports": 2,
    "learning_rate": 1e-2,
}


def train_policy(task: Any, steps: int, seed: int = 0, **overrides: Any) -> Any:
    *progress, policy = PPO(**SMALL, total_steps=steps, **overrides).train(
        task, seed=seed, budget="smoke"
    )
    assert all(isinstance(event, Progress) for event in progress)
    assert progress[-1].steps == progress[-1].total_steps >= steps
    return policy


@pytest.mark.parametrize(
    ("task", "best"), [(Bandit(masked=False), 16.0), (Bandit(masked=True), 12.0)]
)
def test_bandit_finds_the_best_legal_arm(task: Bandit, best: float) -> None:
    record = play(task, train_policy(task, 10_000), range(4))
    np.testing.assert_array_equal(record.total, best)


@pytest.mark.parametrize(("weight", "cost"), [(0.0, 8.0), (1.0, 0.0)])
def test_a_price_on_costs_leaves_the_arm_that_costs(weight: float, cost: float) -> None:
    record = play(
        CostlyBandit(), train_policy(CostlyBandit(), 10_000, cost_weight=weight), range(4)
    )
    np.testing.assert_array_equal(record.cost, cost)


def test_chain_is_walked_straight_to_its_end() -> None:
    record = play(Chain(), train_policy(Chain(), 20_000, seed=1), range(4))
    np.testing.assert_array_equal(record.total, 1)
    np.testing.assert_array_equal(record.length, 4)


def test_several_choices_at_once() -> None:
    np.testing.assert_array_equal(
        play(Digits(), train_policy(Digits(), 15_000), range(4)).total, 12
    )


def test_continuous_actions_reach_their_target() -> None:
    record = play(Target(), train_policy(Target(), 40_000), range(4))
    np.testing.assert_allclose(record.actions[0, 0], [3, -1], atol=0.2)


@pytest.mark.parametrize(("weights", "arm"), [((0.9, 0.1), 0), ((0.1, 0.9), 1)])
def test_weights_decide_between_objectives(weights: tuple[float, float], arm: int) -> None:
    task = TwoObjectives(weights)
    np.testing.assert_array_equal(play(task, train_policy(task, 8_000), range(2)).actions, arm)


def test_agents_share_a_policy_and_act_on_what_each_sees() -> None:
    np.testing.assert_array_equal(
        play(TwoAgents(), train_policy(TwoAgents(), 8_000), range(2)).actions[0, 0], [0, 1]
    )


def test_agents_learn_while_they_live() -> None:
    record = play(Mortals(), train_policy(Mortals(), 8_000), range(2))
    np.testing.assert_array_equal(record.total, [[2, 6, 3]] * 2)


@pytest.mark.parametrize("alive", [[True] * 6, [True, False, True, False, False, True]])
def test_the_dead_change_no_gradient(alive: list[bool]) -> None:
    """The loss of some rows is that of a batch without the others, whatever these hold."""
    flat = flatten_task(TwoAgents(), "ppo")
    config = Config(total_steps=1, hidden=(4,), entropy=0.1)
    networks = ppo.Networks.initial(flat, config, 0)
    generator = np.random.default_rng(0)
    floats = generator.normal(size=(4, 6)).astype(np.float32)
    rows = np.array(alive)
    batch = ppo.Batch(
        x=floats[0][:, None],
        mask=None,
        action=np.zeros((6, 1), np.int32),
        log_prob=floats[1],
        advantage=floats[2],
        target=floats[3],
    )
    gradient = jax.grad(ppo.loss)(networks, batch._replace(alive=rows), flat, config)
    living = jax.tree.map(lambda leaf: leaf[rows], batch)
    expected = jax.grad(ppo.loss)(networks, living, flat, config)
    jax.tree.map(partial(np.testing.assert_allclose, atol=1e-6), gradient, expected)


def test_a_time_limit_does_not_end_the_value() -> None:
    """One state that pays 1 for ever is worth 1 / (1 - gamma) = 5.

    Every episode is cut off after 4 steps, which must not change that.

    Taking the cut for an end would give at most 1 + .8 + .64 + .512 = 2.95.
    """
    task = Toy(horizon=4)
    agent = PPO(**SMALL, total_steps=60_000, gamma=0.8, scale_rewards=False)
    compiled = programs(task, agent.config(task, "smoke"))
    training = compiled.start(0)
    for _ in range(agent.config(task, "smoke").chunks):
        training, _ = compiled.chunk(training)
    value = mlp(training.networks.critic, training.moments.normalise(jnp.ones((1, 1))))
    assert abs(float(value[0, 0]) - 5) < 0.25  # what is left of the learning rate's noise


def test_staggered_time_limits_fall_evenly_over_an_episode() -> None:
    """Two of 16 environments end at every step, with episodes of 8 steps.

    Without the spread, all sixteen would end at every eighth step.
    """
    flat = flatten_task(Toy(horizon=8), "ppo")
    config = Config(total_steps=1, num_envs=16, num_steps=16, hidden=(4,), stagger=True)

    def ends(networks: Networks, seed: jax.Array, stream: Stream, key: jax.Array) -> jax.Array:
        running = ppo.start(flat, config, networks, seed, stream)
        return ppo.collect(flat, config, running, key)[1].over.sum((1, 2))

    ended = jax.jit(ends)(
        Networks.initial(flat, config, 0),
        seed_key(0),
        begin_episodes(flat.task, seed_key(0), config.num_envs),
        jax.random.key(1),
    )
    np.testing.assert_array_equal(ended, [2] * 16)


def test_simulators_of_the_host_cannot_be_staggered() -> None:
    with pytest.raises(ValueError, match="stagger must be False"):
        PPO(stagger=True).hyperparameters(registry.card("rlsuite/Hopper-v0").build(), "smoke")


def test_advantages_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    steps = 40
    envs = 7
    gamma = 0.9
    lam = 0.8
    reward, value, next_value = rng.normal(size=(3, steps, envs))
    terminated = rng.random((steps, envs)) < 0.1
    over = terminated | (rng.random((steps, envs)) < 0.1)
    expected = np.zeros((steps, envs))
    for e in range(envs):
        later = 0.0
        for t in reversed(range(steps)):
            following = 0.0 if terminated[t, e] else next_value[t, e]
            error = reward[t, e] + gamma * following - value[t, e]
            later = error + (0.0 if over[t, e] else gamma * lam * later)
            expected[t, e] = later
    computed = advantages(
        *map(jnp.asarray, (reward, value, next_value, terminated, over)), gamma, lam
    )
    np.testing.assert_allclose(computed, expected, rtol=1e-5, atol=1e-5)  # float32


def test_moments_are_those_of_all_that_was_seen() -> None:
    rng = np.random.default_rng(1)
    batches = [rng.normal(3, 2, (n, 2)).astype(np.float32) for n in (5, 40, 300)]
    moments = Moments(jnp.zeros(2), jnp.ones(2), jnp.float32(0))
    for batch in batches:
        moments = moments.update(jnp.asarray(batch))
    everything = np.concatenate(batches)
    np.testing.assert_allclose(moments.mean, everything.mean(0), rtol=1e-5)
    np.testing.assert_allclose(moments.variance, everything.var(0), rtol=1e-4)


def test_a_count_of_rows_that_is_full_stays_and_leaves_moments_finite() -> None:
    """float32 counts no further than 2**24 batches.

    A later batch then has the weight of the last one that counted.
    """
    full = Moments(jnp.zeros(2), jnp.ones(2), jnp.float32(2**24 * 64))
    later = full.update(jnp.full((64, 2), 3.0))
    assert float(later.count) >= float(full.count)
    np.testing.assert_allclose(later.mean, 3 / 2**24, rtol=1e-5)
    assert np.isfinite(np.asarray(later.variance)).all()


@pytest.mark.parametrize("value", [0.0, 0.1, -273.15])
def test_a_feature_that_never_changed_in_training_may_change_a_little_afterwards(
    value: float,
) -> None:
    """Divided by a deviation of about zero, it used to jump to the limit of ten deviations."""
    moments = Moments.initial(2)
    varied = np.random.default_rng(0).normal(size=(20, 64)).astype(np.float32)
    for row in varied:
        moments = moments.update(jnp.stack([jnp.full(64, value), row], 1))
    unchanged, changed = (moments.normalise(jnp.array([[value + by, 0.5]])) for by in (0.0, 0.25))
    assert abs(float(unchanged[0, 0])) < 1e-4
    assert float(changed[0, 0]) == pytest.approx(0.25, abs=1e-3)
    assert float(changed[0, 1]) == pytest.approx((0.5 - varied.mean()) / varied.std(), rel=1e-4)
    scale, _ = normalise(moments)
    assert float(scale.factor[0]) == 1


def test_the_learning_rate_falls_to_zero_over_a_run() -> None:
    """Also with simulators of the host, which learn by the same function."""
    config = Config(
        total_steps=2_000,
        num_envs=16,
        num_steps=16,
        minibatches=2,
        epochs=2,
        hidden=(16,),
        reports=2,
    )
    compiled = programs(Bandit(masked=False), config)
    state = compiled.start(0)
    for _ in range(config.chunks):
        state, _ = compiled.chunk(state)
    count = next(leaf for leaf in jax.tree.leaves(state.optimiser) if leaf.dtype == jnp.int32)
    assert int(count) == config.chunks * config.chunk * config.epochs * config.minibatches
    later, _ = compiled.chunk(state)  # beyond the end of the schedule nothing is learned
    for weights, later_weights in zip(
        jax.tree.leaves(state.networks), jax.tree.leaves(later.networks), strict=True
    ):
        np.testing.assert_array_equal(weights, later_weights)


def test_a_solved_task_is_not_forgotten() -> None:
    """CartPole by the settings of a task that has none of its own.

    Without scaled rewards half of the seeds lose it.
    """
    task = CartPole()
    agent = PPO(num_envs=8, num_steps=64, total_steps=60_000)
    assert agent.config(task, "smoke").scale_rewards
    for seed in range(4):
        *_, policy = agent.train(task, seed=seed, budget="smoke")
        assert play(task, policy, range(10)).total.mean() > 475, seed


def test_rewards_are_scaled_on_every_family_that_was_not_tuned_without_it() -> None:
    """Rewards are scaled on tasks that have no settings of their own.

    Tasks of this package keep the scale of their rewards unless their settings ask for another one.
    Games came later.
    """
    path = FOLDER / "ppo.yaml"
    settings = yaml.safe_load(path.read_text())
    for card in registry.all_cards().values():
        came_later = card.family == "games"
        scaled = settings.get(card.registered_id, {}).get("scale_rewards", came_later)
        assert configure(Config, path, card, "smoke", {}).scale_rewards == scaled, card.id
    foreign = replace(registry.card("SAT-v0"), id="other/Task-v0", family="of_another_package")
    assert configure(Config, path, foreign, "smoke", {}).scale_rewards


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    def weights(seed: int) -> list[np.ndarray]:
        return [
            np.asarray(leaf) for leaf in jax.tree.leaves(train_policy(Chain(), 2_000, seed).actor)
        ]

    first = weights(3)
    same_seed = weights(3)
    different_seed = weights(4)
    assert all(np.array_equal(a, b) for a, b in zip(first, same_seed, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, different_seed, strict=True))


def test_seeds_vmapped_learn_what_each_learns_alone() -> None:
    task = Chain()
    config = Config(**SMALL | {"total_steps": 1_000})
    flat = flatten_task(task, "ppo")
    seeds = [0, 1, 2]
    networks = [Networks.initial(flat, config, seed) for seed in seeds]

    def run(networks: Networks, seed: jax.Array, stream: Stream) -> Any:
        return ppo.train_chunk(flat, config, ppo.start(flat, config, networks, seed, stream))[
            0
        ].networks

    runs = [
        (networks[i], seed_key(i), begin_episodes(task, seed_key(i), config.num_envs))
        for i in seeds
    ]
    together = jax.jit(jax.vmap(run))(*jax.tree.map(lambda *leaves: np.stack(leaves), *runs))
    alone = jax.jit(run)
    for i in seeds:
        single = alone(*runs[i])
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(single), strict=True):
            # Sums in another order, over two updates.
            np.testing.assert_allclose(a[i], b, rtol=1e-3, atol=1e-4)


def test_a_policy_is_the_same_after_saving_and_loading(tmp_path: Path) -> None:
    task = Chain()
    agent = PPO(**SMALL, total_steps=2_000)
    *_, policy = agent.train(task, seed=0, budget="smoke")
    path = str(tmp_path / "policy.safetensors")
    agent.save(policy, path)
    again = agent.load(path, task)
    for a, b in zip(jax.tree.leaves(policy), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    (tmp_path / "broken").write_bytes(b"no weights")
    with pytest.raises(ValueError, match="not a safetensors file"):
        agent.load(str(tmp_path / "broken"), task)
    with pytest.raises(ValueError, match="not of ppo for rlsuite/SAT-v0"):
        agent.load(path, registry.card("SAT-v0").build())


def test_wrong_hyperparameters_name_the_nearest_right_one() -> None:
    with pytest.raises(ValueError, match="Did you mean 'learning_rate'"):
        PPO(learning_rat=1e-3).hyperparameters(Chain(), "smoke")
    with pytest.raises(ValueError, match="Did you mean 'smoke'"):
        PPO().hyperparameters(Chain(), "smok")
    with pytest.raises(ValueError, match="must divide"):
        PPO(num_envs=3, num_steps=5, minibatches=2).hyperparameters(Chain(), "smoke")


def test_what_ppo_cannot_play_it_says_before_anything_runs() -> None:
    task = Toy()
    task.action_space = task.box(-np.inf, np.inf, (1,))
    with pytest.raises(CannotPlay, match="bounded Box"):
        PPO().check(task)


def test_hover_is_learned_in_a_smoke_budget() -> None:
    """The mean of three seeds; random play is 0, the geometric controller 1."""
    task = registry.card("QuadcopterHover-v0").build()
    scores = []
    for seed in range(3):
        *_, policy = PPO().train(task, seed=seed, budget="smoke")
        record = play(task, policy, evaluation_seeds(task.card, seed, "smoke"))
        scores.append(task.card.normalise(float(record.total.mean())))
    assert np.mean(scores) >= 0.9, scores

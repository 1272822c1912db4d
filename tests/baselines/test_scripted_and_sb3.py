"""The players that learn nothing, and stable-baselines3 on the suite's environments."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from scipy import stats
from toy_tasks import Bandit, Digits, Target

from rlbench_suite.adapters.batch import TaskVectorEnv
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core import registry
from rlbench_suite.core.agent import CannotPlay, Progress

sb3 = pytest.importorskip("rlbench_suite.baselines.sb3", exc_type=ImportError)


def test_random_is_uniform_over_legal_actions() -> None:
    *_, policy = registry.agent("random").train(Bandit(masked=True), seed=0, budget="smoke")
    actions = play(Bandit(masked=True), policy, range(1_000)).actions
    assert actions.max() == 3
    assert stats.chisquare(np.bincount(actions.ravel())).pvalue > 1e-3


def test_random_is_uniform_over_boxes_and_several_choices() -> None:
    *_, policy = registry.agent("random").train(Target(), seed=0, budget="smoke")
    actions = play(Target(), policy, range(1_000)).actions.reshape(-1, 2)
    assert stats.kstest(actions[:, 0] / 4, "uniform").pvalue > 1e-3
    assert stats.kstest((actions[:, 1] + 2) / 4, "uniform").pvalue > 1e-3
    *_, policy = registry.agent("random").train(Digits(), seed=0, budget="smoke")
    actions = play(Digits(), policy, range(500)).actions.reshape(-1, 3)
    for choice, choices in enumerate((3, 4, 2)):
        assert stats.chisquare(np.bincount(actions[:, choice], minlength=choices)).pvalue > 1e-3


def test_sb3_sees_the_same_steps() -> None:
    plain = gymnasium.make_vec("rlsuite/QuadcopterHover-v0", 3, autoreset_mode="SameStep")
    wrapped = sb3.SuiteVecEnv(
        TaskVectorEnv("rlsuite/QuadcopterHover-v0", 3, autoreset_mode="SameStep")
    )
    seeds = wrapped.seed(4)
    np.testing.assert_array_equal(wrapped.reset(), plain.reset(seed=seeds)[0])
    plain.action_space.seed(0)
    ends = 0
    for _ in range(80):
        action = plain.action_space.sample()
        observations, rewards, terminated, truncated, infos = plain.step(action)
        wrapped_observations, wrapped_rewards, over, wrapped_infos = wrapped.step(action)
        np.testing.assert_array_equal(wrapped_observations, observations)
        np.testing.assert_array_equal(wrapped_rewards, rewards)
        np.testing.assert_array_equal(over, terminated | truncated)
        for i in np.flatnonzero(over):
            ends += 1
            np.testing.assert_array_equal(
                wrapped_infos[i]["terminal_observation"], infos["final_obs"][i]
            )
            assert wrapped_infos[i]["TimeLimit.truncated"] == (truncated[i] and not terminated[i])
    assert ends > 0


@pytest.mark.parametrize("weights", [None, (0.2, 0.8)])
def test_sb3_is_paid_the_weighted_sum_of_each_environment(
    weights: tuple[float, float] | None,
) -> None:
    batch = TaskVectorEnv(
        "rlsuite/DeepSeaTreasure-v0", 3, autoreset_mode="SameStep", weights=weights
    )
    vectors = TaskVectorEnv("rlsuite/DeepSeaTreasure-v0", 3, autoreset_mode="SameStep")
    wrapped = sb3.SuiteVecEnv(batch)
    wrapped.seed(0)
    wrapped.reset()
    vectors.reset(seed=0)
    for action in ([3, 1, 0], [1, 3, 3], [3, 3, 1]):  # the first reaches a treasure alone
        _, paid, *_ = wrapped.step(np.array(action))
        rewards = np.asarray(vectors.step(np.array(action))[1])
        np.testing.assert_allclose(
            paid, rewards @ np.array(weights or batch.card.weights), rtol=1e-6
        )
        assert paid.shape == (3,)


def test_training_seeds_share_no_stream_of_episodes() -> None:
    env = sb3.SuiteVecEnv(TaskVectorEnv("rlsuite/PMSMCurrent-v0", 16, autoreset_mode="SameStep"))
    starts = {}
    for seed in (0, 1, 2):
        sb3.stable_baselines3.PPO("MlpPolicy", env, seed=seed)  # seeds the env, too
        starts[seed] = {observation.tobytes() for observation in env.reset()}
        assert len(starts[seed]) == 16
        env.seed(seed)
        assert {observation.tobytes() for observation in env.reset()} == starts[seed]
    assert not starts[0] & starts[1]
    assert not starts[0] & starts[2]
    assert not starts[1] & starts[2]


def test_a_batch_that_resets_otherwise_is_refused_when_it_is_wrapped() -> None:
    with pytest.raises(
        ValueError, match=r"got autoreset_mode='NextStep'.*AutoresetMode\.SAME_STEP"
    ):
        sb3.SuiteVecEnv(gymnasium.make_vec("rlsuite/PMSMCurrent-v0", 2))
    with pytest.raises(ValueError, match="got autoreset_mode='Disabled'"):
        sb3.SuiteVecEnv(gymnasium.make_vec("rlsuite/PMSMCurrent-v0", 2, autoreset_mode="Disabled"))
    with pytest.raises(ValueError, match='backend="numpy"'):
        sb3.SuiteVecEnv(
            gymnasium.make_vec(
                "rlsuite/PMSMCurrent-v0", 2, autoreset_mode="SameStep", backend="jax"
            )
        )
    with pytest.raises(TypeError, match="SuiteVecEnv wraps a batch"):
        sb3.SuiteVecEnv(gymnasium.make_vec("rlsuite/PMSMCurrent-v0", 2, vectorization_mode="sync"))


def test_a_batch_shows_masks_pictures_and_attributes_as_sb3_asks_for_them() -> None:
    batch = gymnasium.make_vec(
        "rlsuite/Sudoku4-v0", 3, autoreset_mode="SameStep", render_mode="rgb_array"
    )
    env = sb3.SuiteVecEnv(batch)
    env.seed(0)
    env.reset()
    assert env.has_attr("action_masks")
    np.testing.assert_array_equal(env.env_method("action_masks"), batch.action_masks())
    np.testing.assert_array_equal(
        env.env_method("action_masks", indices=[2]), batch.action_masks()[2:]
    )
    np.testing.assert_array_equal(env.get_attr("action_masks", 1)[0](), batch.action_masks()[1])
    assert len(env.get_images()) == 3
    assert env.render().ndim == 3  # SB3 tiles them
    assert env.metadata["render_fps"] == batch.metadata["render_fps"]
    with pytest.raises(AttributeError, match="Known: action_masks"):
        env.env_method("seed_all")
    plain = sb3.SuiteVecEnv(TaskVectorEnv("rlsuite/PMSMCurrent-v0", 2, autoreset_mode="SameStep"))
    assert not plain.has_attr("action_masks")
    assert not plain.has_attr("gravity")
    assert plain.get_images() == (None, None)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("name", ["PointMaze-v0", "Parking-v0"])
def test_hindsight_replay_trains_on_goals(name: str, batched: bool) -> None:
    if batched:
        env = sb3.SuiteVecEnv(
            gymnasium.make_vec(f"rlsuite/{name}", 4, goal=True, autoreset_mode="SameStep")
        )
        assert env.has_attr("compute_reward")
    else:
        env = gymnasium.make(f"rlsuite/{name}", goal=True)
    keywords = {"n_sampled_goal": 4, "goal_selection_strategy": "future"}
    model = sb3.stable_baselines3.SAC(
        "MultiInputPolicy",
        env,
        replay_buffer_class=sb3.stable_baselines3.HerReplayBuffer,
        replay_buffer_kwargs=keywords,
        learning_starts=2_500,  # an episode of each env must be over
        buffer_size=5_000,
        batch_size=64,
        policy_kwargs={"net_arch": [16]},
        seed=0,
    ).learn(2_600)
    assert model._n_updates > 0
    buffer = model.replay_buffer
    batch = buffer.sample(256)
    reached = batch.rewards.numpy().max()
    # Goals put in by hindsight.
    assert reached == pytest.approx(1 - 1 / 600 if "Maze" in name else 1, abs=1e-6)


def test_sb3_agents_take_the_settings_of_the_suites_own() -> None:
    current = registry.card("PMSMCurrent-v0").build()
    speed = registry.card("PMSMSpeed-v0").build()
    for name in SIX:
        if name != "sb3-dqn":
            assert registry.agent(name).hyperparameters(current, "smoke")["gamma"] == 0.9
    hyperparameters = registry.agent("sb3-ppo").hyperparameters(speed, "quick")
    assert (
        hyperparameters["gamma"],
        hyperparameters["gae_lambda"],
        hyperparameters["ent_coef"],
    ) == (
        0.998,
        0.98,
        0.005,
    )
    wordle = registry.card("Wordle-v0").build()
    assert registry.agent("sb3-dqn").hyperparameters(wordle, "smoke")["gamma"] == 0.0
    assert registry.agent("sb3-dqn").hyperparameters(wordle, "full")["net_arch"] == [32]


def test_a_report_says_that_they_are_untuned_and_see_no_masks() -> None:
    from rlbench_suite.evaluation.report.report_remarks import _other_libraries

    rows = [SimpleNamespace(agent=name) for name in ("ppo", "sb3-ppo", "sb3-ppo", "sb3-dqn")]
    run = SimpleNamespace(manifest=SimpleNamespace(checkpoints={}))
    (remark,) = _other_libraries(SimpleNamespace(rows=rows, run=run))
    assert remark.startswith("sb3-ppo, sb3-dqn: untuned but for discount")
    assert "without action masks" in remark
    assert not list(_other_libraries(SimpleNamespace(rows=rows[:1], run=run)))


def test_a_report_does_not_take_a_saved_policys_settings_for_the_suites() -> None:
    from rlbench_suite.evaluation.report.report_remarks import _other_libraries

    saved = {
        "sb3-ppo.0123abcd": SimpleNamespace(agent="sb3-ppo"),
        "ppo.89abcdef": SimpleNamespace(agent="ppo"),
    }
    run = SimpleNamespace(manifest=SimpleNamespace(checkpoints=saved))
    rows = [SimpleNamespace(agent=name) for name in saved]
    (remark,) = _other_libraries(SimpleNamespace(rows=rows, run=run))
    assert remark.startswith("sb3-ppo.0123abcd: settings are those of whoever trained it")
    trained, brought = _other_libraries(
        SimpleNamespace(rows=[*rows, SimpleNamespace(agent="sb3-dqn")], run=run)
    )
    assert trained.startswith("sb3-dqn: untuned but for discount")
    assert brought == remark


@pytest.mark.parametrize("name", ["sb3-ppo", "sb3-sac"])
def test_a_saved_policy_normalises_as_the_trained_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = registry.card("QuadcopterHover-v0").build()
    agent = registry.agent(name)
    short = agent.hyperparameters(task, "smoke") | {
        "total_steps": 1_060,
        "net_arch": [8],
        "learning_starts": 100,
    }
    if name == "sb3-ppo":
        short |= {"n_steps": 32, "batch_size": 64}
        del short["learning_starts"]
    monkeypatch.setattr(type(agent), "hyperparameters", lambda *_: dict(short))
    *_, policy = agent.train(task, seed=0, budget="smoke")
    moments = policy.normalization
    assert np.abs(moments.mean).max() > 0
    observations = np.stack([task.observation_space.sample() for _ in range(16)])
    normalised = policy.model.get_vec_normalize_env().normalize_obs(observations)
    expected = policy.model.predict(normalised, deterministic=True)[0]
    np.testing.assert_array_equal(policy.act(observations, None), expected)
    path = str(tmp_path / "policy.safetensors")
    agent.save(policy, path)
    loaded = agent.load(path, task)
    np.testing.assert_array_equal(loaded.act(observations, None), policy.act(observations, None))
    loaded.normalization = None
    assert (loaded.act(observations, None) != policy.act(observations, None)).any()
    for damage in (np.full(task.observation_space.shape, np.nan), np.zeros(3)):
        agent.save(
            sb3.SB3Policy(policy.model, policy.task_id, short, moments._replace(variance=damage)),
            path,
        )
        with pytest.raises(ValueError, match=r"normalization\.variance must be finite"):
            agent.load(path, task)


def test_sb3_learns_the_treasure_and_is_judged_like_the_others(tmp_path: Path) -> None:
    from rlbench_suite.evaluation.protocol import evaluate, evaluation_seeds

    task = registry.card("DeepSeaTreasure-v0").build()
    agent = registry.agent("sb3-ppo")
    *progress, policy = agent.train(task, seed=0, budget="smoke")
    assert (
        progress[-1].steps
        == progress[-1].total_steps
        >= agent.hyperparameters(task, "smoke")["total_steps"]
    )
    record = evaluate(task, policy, evaluation_seeds(task.card, 0, "smoke"))
    assert record.terminated.all()  # random play runs out of time in one game of five
    agent.save(policy, str(tmp_path / "policy.safetensors"))
    assert (tmp_path / "policy.safetensors").stat().st_size > 10_000


SIX = {
    "sb3-ppo": 2_048,
    "sb3-a2c": 256,
    "sb3-dqn": 1_100,
    "sb3-sac": 1_060,
    "sb3-td3": 1_060,
    "sb3-ddpg": 1_060,
}
"""Steps of a short run with some updates."""


def test_sb3_plays_simulators_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    from rlbench_suite.evaluation.protocol import evaluate

    pytest.importorskip("mujoco")
    task = registry.card("Hopper-v0").build()
    agent = registry.agent("sb3-ppo")
    short = agent.hyperparameters(task, "smoke") | {
        "total_steps": 256,
        "n_steps": 16,
        "batch_size": 64,
    }
    monkeypatch.setattr(type(agent), "hyperparameters", lambda *_: dict(short))
    *progress, policy = agent.train(task, seed=0, budget="smoke")
    assert progress[-1].steps == 256
    assert not np.isnan([event.episode_return for event in progress]).all()
    assert evaluate(task, policy, range(2)).length.min() > 1


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("name", SIX)
def test_every_sb3_agent_trains_plays_inside_the_space_and_is_saved(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = registry.card("DeepSeaTreasure-v0" if name == "sb3-dqn" else "PMSMCurrent-v0").build()
    agent = registry.agent(name)
    short = agent.hyperparameters(task, "smoke") | {"total_steps": SIX[name], "net_arch": [8]}
    monkeypatch.setattr(type(agent), "hyperparameters", lambda *_: dict(short))
    previous = None
    for event in agent.train(task, seed=0, budget="smoke"):
        if isinstance(event, Progress):
            assert previous is None or event.steps >= previous.steps
            previous = event
    assert previous.steps == previous.total_steps >= SIX[name]
    assert event.model._n_updates > 0
    space = task.action_space
    observations = np.stack([task.observation_space.sample() for _ in range(16)])
    assert all(space.contains(action) for action in event.act(observations, None))
    agent.save(event, str(tmp_path / "policy.safetensors"))
    assert (tmp_path / "policy.safetensors").stat().st_size > 0


def test_sb3s_exploration_falls_over_the_run_and_not_over_each_report() -> None:
    env = sb3.SuiteVecEnv(TaskVectorEnv("rlsuite/DeepSeaTreasure-v0", 2, autoreset_mode="SameStep"))
    agent = sb3.SB3DQN()
    hyperparameters = agent.hyperparameters(registry.card("DeepSeaTreasure-v0").build(), "smoke")
    for name in ("total_steps", "n_envs", "normalize_observations", "normalize_rewards"):
        del hyperparameters[name]
    model = agent.build(
        env,
        400,
        hyperparameters | {"exploration_fraction": 0.5, "exploration_final_eps": 0.1},
        seed=0,
    )
    for goal, epsilon in ((100, 0.55), (200, 0.1), (300, 0.1)):
        model.learn(goal - model.num_timesteps, reset_num_timesteps=goal == 100)
        assert model.exploration_rate == pytest.approx(epsilon)


def test_sb3_agents_say_what_they_cannot_play() -> None:
    hover, treasure = (
        registry.card(name).build() for name in ("QuadcopterHover-v0", "DeepSeaTreasure-v0")
    )
    for name in ("sb3-sac", "sb3-td3", "sb3-ddpg"):
        registry.agent(name).check(hover)
        with pytest.raises(CannotPlay, match=rf"{name} plays Box actions, not Discrete\(\d\)"):
            registry.agent(name).check(treasure)
    registry.agent("sb3-dqn").check(treasure)
    with pytest.raises(CannotPlay, match="sb3-dqn plays Discrete actions, not Box"):
        registry.agent("sb3-dqn").check(hover)
    with pytest.raises(CannotPlay, match="not MultiDiscrete"):
        registry.agent("sb3-dqn").check(Digits())
    for name in ("sb3-ppo", "sb3-a2c"):
        for task in (hover, treasure, Digits()):
            registry.agent(name).check(task)


@pytest.mark.parametrize("agents", [2, 4])
def test_sb3_agents_do_not_read_the_hands_of_all_agents(agents: int) -> None:
    hanabi = registry.card("Hanabi-v0", agents=agents).build()
    for name in ("sb3-ppo", "sb3-a2c", "sb3-dqn", "sb3-sac", "sb3-td3", "sb3-ddpg"):
        with pytest.raises(CannotPlay, match=f"{name} decides for all agents at once by what all"):
            registry.agent(name).check(hanabi)
    registry.agent("ppo").check(hanabi)  # acts by one row at a time
    registry.agent("sb3-ppo").check(registry.card("Poker-v0").build())  # one seat, one hand


SUBPROCESS = """
import numpy as np
from stable_baselines3.common.vec_env import SubprocVecEnv
import gymnasium

def make():
    return gymnasium.make("rlbench_suite:rlsuite/QuadcopterHover-v0")

if __name__ == "__main__":
    env = SubprocVecEnv([make, make])
    env.seed(0)
    env.reset()
    for _ in range(5):
        observations, *_ = env.step(np.zeros((2, 4), np.float32))
    env.close()
    print(observations.shape)
"""


def test_sb3s_own_subprocesses_work(tmp_path: Path) -> None:
    import subprocess

    script = tmp_path / "subprocesses.py"
    script.write_text(SUBPROCESS)
    result = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=600, check=False
    )
    assert result.stdout.strip() == "(2, 22)", result.stderr[-2000:]

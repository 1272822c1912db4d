"""The players that learn nothing, and stable-baselines3 on the suite's environments."""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from scipy import stats

from rlbench_suite import registry
from rlbench_suite.adapters.batch import TaskVectorEnv
from rlbench_suite.adapters.rollout import play
from rlbench_suite.agent import CannotPlay, Progress

sys.path.insert(0, str(Path(__file__).parent))
from toy_tasks import Bandit, Digits, Target

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
    for part, choices in enumerate((3, 4, 2)):
        assert stats.chisquare(np.bincount(actions[:, part], minlength=choices)).pvalue > 1e-3


def test_sb3_sees_the_same_steps() -> None:
    plain = gymnasium.make_vec("rlsuite/QuadcopterHover-v0", 3, autoreset_mode="SameStep")
    wrapped = sb3.SuiteVecEnv(TaskVectorEnv("rlsuite/QuadcopterHover-v0", 3, autoreset_mode="SameStep"))
    wrapped.seed(4)
    np.testing.assert_array_equal(wrapped.reset(), plain.reset(seed=4)[0])
    plain.action_space.seed(0)
    ends = 0
    for _ in range(80):
        action = plain.action_space.sample()
        observations, rewards, terminated, truncated, infos = plain.step(action)
        seen, paid, over, told = wrapped.step(action)
        np.testing.assert_array_equal(seen, observations)
        np.testing.assert_array_equal(paid, rewards)
        np.testing.assert_array_equal(over, terminated | truncated)
        for i in np.flatnonzero(over):
            ends += 1
            np.testing.assert_array_equal(told[i]["terminal_observation"], infos["final_obs"][i])
            assert told[i]["TimeLimit.truncated"] == (truncated[i] and not terminated[i])
    assert ends > 0


def test_sb3_learns_the_treasure_and_is_judged_like_the_others(tmp_path: Path) -> None:
    from rlbench_suite.evaluation.protocol import evaluate, evaluation_seeds

    task = registry.card("DeepSeaTreasure-v0").build()
    agent = registry.agent("sb3-ppo")
    *progress, policy = agent.train(task, seed=0, budget="smoke")
    assert progress[-1].steps == progress[-1].total_steps >= agent.hyperparameters(task, "smoke")["total_steps"]
    record = evaluate(task, policy, evaluation_seeds(task.card, 0, "smoke"))
    assert record.terminated.all()  # random play runs out of time in one game of five
    agent.save(policy, str(tmp_path / "policy.safetensors"))
    assert (tmp_path / "policy.safetensors").stat().st_size > 10_000


SIX = {"sb3-ppo": 2_048, "sb3-a2c": 256, "sb3-dqn": 1_100, "sb3-sac": 1_060, "sb3-td3": 1_060, "sb3-ddpg": 1_060}
"""Steps of a short run with some updates."""


def test_sb3_plays_simulators_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    from rlbench_suite.evaluation.protocol import evaluate

    pytest.importorskip("mujoco")
    task, agent = registry.card("Hopper-v0").build(), registry.agent("sb3-ppo")
    short = agent.hyperparameters(task, "smoke") | {"total_steps": 256, "n_steps": 16, "batch_size": 64}
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
    before = None
    for event in agent.train(task, seed=0, budget="smoke"):
        if isinstance(event, Progress):
            assert before is None or event.steps >= before.steps
            before = event
    assert before.steps == before.total_steps >= SIX[name]
    assert event.model._n_updates > 0
    space = task.action_space
    observations = np.stack([task.observation_space.sample() for _ in range(16)])
    assert all(space.contains(action) for action in event.act(observations, None))
    agent.save(event, str(tmp_path / "policy.safetensors"))
    assert (tmp_path / "policy.safetensors").stat().st_size > 0


def test_sb3s_exploration_falls_over_the_run_and_not_over_each_report() -> None:
    env = sb3.SuiteVecEnv(TaskVectorEnv("rlsuite/DeepSeaTreasure-v0", 2, autoreset_mode="SameStep"))
    agent = sb3.SB3DQN()
    chosen = agent.hyperparameters(registry.card("DeepSeaTreasure-v0").build(), "smoke")
    del chosen["total_steps"], chosen["n_envs"]
    model = agent.build(env, 400, chosen | {"exploration_fraction": 0.5, "exploration_final_eps": 0.1}, seed=0)
    for goal, epsilon in ((100, 0.55), (200, 0.1), (300, 0.1)):
        model.learn(goal - model.num_timesteps, reset_num_timesteps=goal == 100)
        assert model.exploration_rate == pytest.approx(epsilon)


def test_sb3_agents_say_what_they_cannot_play() -> None:
    hover, treasure = (registry.card(name).build() for name in ("QuadcopterHover-v0", "DeepSeaTreasure-v0"))
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
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240, check=False)
    assert result.stdout.strip() == "(2, 22)", result.stderr[-2000:]

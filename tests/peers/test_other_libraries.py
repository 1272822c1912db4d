"""Test the page "Other libraries": each script runs as it stands there, and does what it should."""

import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

for library in (
    "stable_baselines3",
    "sb3_contrib",
    "torchrl",
    "supersuit",
    "d3rlpy",
    "minari",
    "morl_baselines",
    "skrl",
    "tianshou",
):
    pytest.importorskip(library, reason="needs the extra peers")

torch = pytest.importorskip("torch", reason="needs the extra peers")

PAGE = Path(__file__).parents[2] / "docs" / "extend" / "other_libraries.md"
SECTIONS = dict(
    re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
)

Names = SimpleNamespace
"""Values that a script leaves behind."""


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", SECTIONS[section], re.MULTILINE | re.DOTALL)


def check_trained(model: object, steps: int) -> None:
    """Check for so many steps, and for other weights than the network had at first."""
    assert model.num_timesteps >= steps
    fresh = type(model)(
        model.policy_class, model.env, seed=model.seed, policy_kwargs=model.policy_kwargs
    )
    before, after = (
        torch.nn.utils.parameters_to_vector(each.policy.parameters()) for each in (fresh, model)
    )
    assert after.isfinite().all()
    assert (before != after).any()


def check_sb3(names: Names) -> None:
    check_trained(names.model, 2_048)
    assert 0 < names.mean < 500  # rewards are from 0 to 1


def check_sb3_batch(names: Names) -> None:
    check_trained(names.model, 4_096)
    assert names.model.env.num_envs == 32


def check_masks(names: Names) -> None:
    check_trained(names.model, 512)
    assert names.illegal == 0
    blind = 0  # masks matter: without them the same policy plays into cells that are taken
    observation, _ = names.env.reset(seed=0)
    for _ in range(8):
        action, _ = names.model.predict(observation)
        observation, *_, info = names.env.step(action)
        blind += info["invalid_action"]
    assert blind > 0


def check_goals(names: Names) -> None:
    assert names.model.num_timesteps >= 6_400
    assert names.model._n_updates > 0
    assert names.again == pytest.approx(names.reward)
    assert names.model.replay_buffer.sample(256).rewards.max() > 0.9  # goals put in by hindsight


def check_replay(names: Names) -> None:
    np.testing.assert_array_equal(np.array(names.observations), names.episode.observations)
    np.testing.assert_array_equal(np.array(names.rewards), names.episode.rewards)
    assert (names.terminated, names.truncated) == (
        names.episode.terminations[-1],
        names.episode.truncations[-1],
    )


def check_memory(names: Names) -> None:
    check_trained(names.model, 512)
    assert all(np.abs(values).max() > 0 for values in names.memory)
    assert "success" in names.info


def check_loop(names: Names) -> None:
    rewards = np.array(names.rewards)
    assert np.isfinite(rewards).all()
    assert rewards[-100:].mean() > 1.3 * rewards[:100].mean()


def check_torchrl(names: Names) -> None:
    assert names.episode["next", "done"][-1].item()
    assert names.episode["next", "step_count"][-1].item() == len(names.episode)
    assert 0 < names.episode["next", "reward"].mean() < 1
    episodes = names.episodes
    assert episodes.shape == (4, 100)
    over = episodes["next", "done"][:, :-1, 0]
    assert over.any()
    continues = (episodes["next", "observation"][:, :-1] == episodes["observation"][:, 1:]).all(-1)
    # An episode's last observation is not the first one of the next.
    assert torch.equal(continues, ~over)
    assert names.joint.rollout(3)["next", "reward"].shape == (3, 1)
    assert names.flight["next", "agent", "reward"].shape == (100, 16, 1)
    assert names.flight["next", "agent", "reward"].std(dim=1).max() > 0  # one's own, not the mean


def check_skrl(names: Names) -> None:
    after = torch.nn.utils.parameters_to_vector(names.models["policy"].parameters())
    assert after.isfinite().all()
    assert (after != names.before).any()
    assert names.env.num_envs == 16


def check_tianshou(names: Names) -> None:
    after = torch.nn.utils.parameters_to_vector(names.network.parameters())
    assert after.isfinite().all()
    assert (after != names.before).any()
    assert len(names.buffer) >= 2_000
    assert names.buffer.rew.min() >= 0
    assert 0 < names.buffer.done.sum() < len(names.buffer)
    assert names.result.best_reward > 0


def check_supersuit(names: Names) -> None:
    check_trained(names.model, 4_096)
    assert names.batch.num_envs == 2 * 16


def check_d3rlpy(names: Names) -> None:
    assert names.dataset.size() == len(names.episodes)
    for ours, recorded in zip(names.dataset.episodes, names.episodes, strict=True):
        np.testing.assert_array_equal(ours.observations, recorded.observations[:-1])
        np.testing.assert_array_equal(ours.actions, recorded.actions)
        np.testing.assert_array_equal(ours.rewards[:, 0], recorded.rewards)
    assert names.mean > 3 * names.test.unwrapped.task.scores["random"].mean


def check_mo_gymnasium(names: Names) -> None:
    assert names.rewards[0] == pytest.approx([-0.25, -0.25, 0.75 * 8.2 - 0.25])
    assert names.rewards[1] == pytest.approx(names.rewards[0])
    assert names.scalar.unwrapped.reward_space.shape == ()


def check_morl_baselines(names: Names) -> None:
    exact = {tuple(np.round(point, 3)) for point in names.front}
    points = {tuple(np.round(point, 3)) for point in names.found}
    assert len(points) >= 4
    assert points <= exact


def check_processes(names: Names) -> None:
    assert np.isfinite(names.rewards).all()
    batch = gymnasium.make_vec("rlsuite/PMSMCurrent-v0", 2)
    np.testing.assert_array_equal(names.first, batch.reset(seed=0)[0])


CHECKS: dict[str, Callable[[Names], None]] = {
    "Stable-Baselines3": check_sb3,
    "Stable-Baselines3 on a compiled batch": check_sb3_batch,
    "Masks: sb3-contrib's MaskablePPO": check_masks,
    "Goals: hindsight experience replay": check_goals,
    "Memory: sb3-contrib's RecurrentPPO": check_memory,
    "A loop of your own, as CleanRL's": check_loop,
    "TorchRL": check_torchrl,
    "skrl": check_skrl,
    "Tianshou": check_tianshou,
    "SuperSuit": check_supersuit,
    "Minari and d3rlpy": check_d3rlpy,
    "Replay an episode of a dataset": check_replay,
    "Several objectives: MO-Gymnasium's wrappers": check_mo_gymnasium,
    "morl-baselines": check_morl_baselines,
    "One process an environment": check_processes,
}


def test_every_script_of_the_page_is_checked() -> None:
    scripts = {title: len(blocks(title, "python")) for title in SECTIONS}
    # They do not fit into one environment with the others.
    assert scripts.pop("RLlib and AgileRL") == 0
    assert scripts == dict.fromkeys(CHECKS, 1)


@pytest.mark.parametrize("title", CHECKS)
def test_script(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    for command in blocks(title, "bash"):
        subprocess.run(
            [Path(sys.executable).with_name((words := command.split())[0]), *words[1:]], check=True
        )
    script = tmp_path / "script.py"
    script.write_text(blocks(title, "python")[0])
    CHECKS[title](SimpleNamespace(**runpy.run_path(str(script), run_name="__main__")))


# -- what the page says beside its scripts ---------------------------------------------------------


def same_step(name: str, count: int, **keywords: object) -> object:
    from rlbench_suite.baselines.sb3 import SuiteVecEnv

    return SuiteVecEnv(
        gymnasium.make_vec(f"rlsuite/{name}", count, autoreset_mode="SameStep", **keywords)
    )


@pytest.mark.parametrize("name", ["Sudoku4-v0", "OfficeApps-v0"])
def test_maskable_ppo_trains_on_a_compiled_batch(name: str) -> None:
    from sb3_contrib import MaskablePPO

    model = MaskablePPO("MlpPolicy", same_step(name, 4), n_steps=64, batch_size=64, seed=0).learn(
        512
    )
    assert model.num_timesteps >= 512
    masks = model.rollout_buffer.action_masks
    assert 0 < masks.mean() < 1
    if name == "Sudoku4-v0":
        actions = model.rollout_buffer.actions.reshape(-1).astype(int)
        assert masks.reshape(len(actions), -1)[np.arange(len(actions)), actions].all()


def test_a_compiled_batch_without_masks_is_refused_by_name() -> None:
    from sb3_contrib import MaskablePPO

    with pytest.raises(ValueError, match="does not support action masking"):
        MaskablePPO("MlpPolicy", same_step("DeepSeaTreasure-v0", 2), n_steps=32, seed=0).learn(64)


def test_videos_of_a_compiled_batch(tmp_path: Path) -> None:
    from stable_baselines3.common.vec_env import VecVideoRecorder

    batch = same_step("PMSMCurrent-v0", 2, render_mode="rgb_array")
    env = VecVideoRecorder(batch, str(tmp_path), lambda step: step == 0, video_length=5)
    env.reset()
    for _ in range(8):
        env.step(np.stack([env.action_space.sample() for _ in range(2)]))
    env.close()
    (video,) = tmp_path.glob("*.mp4")
    assert video.stat().st_size > 1_000


@pytest.mark.parametrize("count", [2, 3])
def test_mo_gymnasiums_statistics_of_a_batch(count: int) -> None:
    from mo_gymnasium.wrappers.vector import MORecordEpisodeStatistics

    env = MORecordEpisodeStatistics(
        gymnasium.make_vec("rlsuite/DeepSeaTreasure-v0", count, max_episode_steps=3)
    )
    env.reset(seed=0)
    total = np.zeros((count, 2))
    for _ in range(3):
        _, rewards, _, _, infos = env.step(np.full(count, 2))
        total += rewards
    np.testing.assert_allclose(infos["episode"]["r"], total, rtol=1e-6)


class WithoutTexts(gymnasium.Wrapper):
    """The wrapper of the page's Tianshou script."""

    def step(self, action: object) -> tuple[object, ...]:
        *result, info = self.env.step(action)
        return *result, {name: value for name, value in info.items() if not isinstance(value, str)}


@pytest.mark.parametrize("name", ["SAT-v0", "PMSMCurrent-v0"])
def test_minari_records_infos(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    recorder = minari.DataCollector(
        WithoutTexts(gymnasium.make(f"rlsuite/{name}")), record_infos=True
    )
    recorder.reset(seed=0)
    scores, over = [], False
    while not over:
        *_, terminated, truncated, info = recorder.step(recorder.action_space.sample())
        scores.append(info["score"])
        over = terminated or truncated
    dataset = recorder.create_dataset(
        "here/recorded-v0", algorithm_name="random", author="a", author_email="a@b.c"
    )
    np.testing.assert_array_equal(next(dataset.iterate_episodes()).infos["score"][1:], scores)


@pytest.mark.parametrize("wrapper", ["frame_skip_v0", "sticky_actions_v0", "delay_observations_v0"])
def test_supersuits_wrappers_of_several_agents(wrapper: str) -> None:
    import pettingzoo
    import supersuit

    argument = 0.5 if wrapper == "sticky_actions_v0" else 2
    world = getattr(supersuit, wrapper)(pettingzoo.make("parallel", "rlsuite/Vicsek-v0"), argument)
    world.reset(seed=0)
    for _ in range(3):
        observations, rewards, *_ = world.step(
            {agent: world.action_space(agent).sample() for agent in world.agents}
        )
    assert len(observations) == len(rewards) == 16

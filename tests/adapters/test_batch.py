"""Compare the vector env, step by step, with Gymnasium's own batch of single envs.

Both autoreset modes are compared.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from trajectories import flat, random_actions

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.registry import agent
from rlbench_suite.core.task_card import TaskCard

ENVS = 4
"""The same everywhere, so that programs compiled for one test serve the others."""
STEP = ("observation", "reward", "terminated", "truncated", "info")
WORDS = {"end_reason", "_end_reason", "invalid_reason", "_invalid_reason"}


def assert_same(value: object, expected: object, where: str) -> None:
    if isinstance(expected, dict):
        assert isinstance(value, dict)
        assert set(value) - WORDS == set(expected) - WORDS, where
        for name in set(value) - WORDS:
            assert_same(value[name], expected[name], f"{where}.{name}")
    elif isinstance(expected, np.ndarray) and expected.dtype == object:
        for i, entry in enumerate(expected):
            assert (entry is None) == (value[i] is None), where
            if entry is not None:
                assert_same(value[i], entry, f"{where}[{i}]")
    else:
        np.testing.assert_array_equal(np.asarray(value), np.asarray(expected), err_msg=where)


@pytest.mark.parametrize("name", ["PMSMCurrent-v0", "SAT-v0"])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_restored_batch_goes_on_to_the_bit(name: str, mode: str) -> None:
    env: Any = gymnasium.make_vec(f"rlsuite/{name}", 3, autoreset_mode=mode, max_episode_steps=7)
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(20)]
    for action in actions[:10]:
        env.step(action)
    saved = env.state
    future = [env.step(action) for action in actions[10:]]
    env.reset(seed=5)
    env.state = saved
    for action, steps in zip(actions[10:], future, strict=True):
        for field, value, expected in zip(STEP, env.step(action), steps, strict=True):
            assert_same(value, expected, field)
    with pytest.raises(TypeError, match="got Episode"):
        env.state = env.episodes
    smaller: Any = gymnasium.make_vec(f"rlsuite/{name}", 2)
    smaller.reset(seed=0)
    with pytest.raises(ValueError, match="state of 3 episodes does not fit a batch of 2"):
        smaller.state = saved


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_equal_to_a_sync_vector_env_step_by_step(card: TaskCard, mode: AutoresetMode) -> None:
    if card.objectives:
        pytest.skip(
            "Gymnasium's SyncVectorEnv has no vector rewards; compared with single envs below"
        )
    limit = min(card.horizon, 23)
    batch = gymnasium.make_vec(card.id, ENVS, autoreset_mode=mode, max_episode_steps=limit)
    sync = SyncVectorEnv(
        [lambda: gymnasium.make(card.id, max_episode_steps=limit) for _ in range(ENVS)],
        autoreset_mode=mode,
    )
    result = batch.reset(seed=41)
    expected = sync.reset(seed=41)
    assert_same(result[0], expected[0], "reset")
    assert_same(result[1], expected[1], "reset info")
    for step, action in enumerate(random_actions(batch.action_space, 0, 80)):
        result = batch.step(action)
        expected = sync.step(action)
        for name, a, b in zip(
            ("obs", "reward", "terminated", "truncated", "info"), result, expected, strict=True
        ):
            assert_same(a, b, f"step {step} {name}")
        assert result[2].dtype == result[3].dtype == bool
    result = batch.reset()
    expected = sync.reset()
    if (
        mode is AutoresetMode.SAME_STEP
    ):  # under NEXT_STEP an env may owe a reset, which reset() takes along
        assert_same(result[0], expected[0], "second reset")


def test_every_entry_goes_as_the_single_env_of_its_seed(card: TaskCard) -> None:
    ours = gymnasium.make_vec(card.id, ENVS, autoreset_mode="SameStep")
    singles = [gymnasium.make(card.id) for _ in range(ENVS)]
    observations, _ = ours.reset(seed=[7, 100, 3, 2**40])
    for i, (env, seed) in enumerate(zip(singles, [7, 100, 3, 2**40], strict=True)):
        assert flat(env.reset(seed=seed)[0]) == flat(
            jax.tree.map(lambda leaf, i=i: leaf[i], observations)
        )
    for actions in random_actions(ours.action_space, 1, 150):
        observations, rewards, terminated, truncated, _ = ours.step(actions)
        for i, env in enumerate(singles):
            observation, reward, *over, _ = env.step(actions[i])
            if any(over):
                observation, _ = env.reset()
            np.testing.assert_array_equal(np.asarray(reward, rewards.dtype), rewards[i])
            assert over == [terminated[i], truncated[i]]
            assert flat(observation) == flat(jax.tree.map(lambda leaf, i=i: leaf[i], observations))


@pytest.mark.every_id
def test_whole_episode_rollouts_replay_in_the_single_env_to_the_bit(card: TaskCard) -> None:
    task = card.build()
    *_, policy = agent("random").train(task, seed=0, budget="smoke")
    record = play(task, policy, range(ENVS), split="test")
    env = gymnasium.make(card.id, split="test")
    for seed in range(ENVS):
        env.reset(seed=seed)
        for t in range(record.length[seed]):
            action = record.actions[seed, t]
            *_, terminated, truncated, info = env.step(
                action.item() if action.ndim == 0 else action
            )
            assert (terminated or truncated) == (t + 1 == record.length[seed])
        np.testing.assert_array_equal(env.unwrapped.episode.total, record.total[seed])
        assert terminated == record.terminated[seed]
        assert info["success"] == record.info["success"][seed]


def test_jax_backend_gives_the_same_on_the_device(card: TaskCard) -> None:
    if card.host:
        with pytest.raises(ValueError, match="Known: numpy"):
            gymnasium.make_vec(card.id, ENVS, backend="jax")
        return
    a = gymnasium.make_vec(card.id, ENVS)
    b = gymnasium.make_vec(card.id, ENVS, backend="jax")
    a.reset(seed=0)
    b.reset(seed=0)
    for action in random_actions(a.action_space, 0, 20):
        on_host = a.step(action)
        on_device = b.step(action)
        assert isinstance(on_device[1], jax.Array)
        for host_leaf, device_leaf in zip(
            jax.tree.leaves(on_host[:4]), jax.tree.leaves(on_device[:4]), strict=True
        ):
            np.testing.assert_array_equal(host_leaf, np.asarray(device_leaf))


WRONG_KEYWORDS = [
    ({"num_envs": 0}, "num_envs"),
    ({"autoreset_mode": "SameStp"}, "Did you mean 'SameStep'"),
    ({"backend": "torch"}, "numpy"),
    ({"max_episode_steps": 0}, "max_episode_steps"),
    ({"split": "trian"}, "Did you mean 'train'"),
]


def test_wrong_keywords(card: TaskCard) -> None:
    for keywords, message in WRONG_KEYWORDS:
        with pytest.raises(ValueError, match=message):
            gymnasium.make_vec(card.id, **keywords)


def test_wrong_seeds_and_actions(card: TaskCard) -> None:
    env = gymnasium.make_vec(card.id, ENVS)
    with pytest.raises(ValueError, match="seed"):
        env.reset(seed=-3)
    with pytest.raises(ValueError, match="seeds"):
        env.reset(seed=[1, 2, 3])
    env.reset(seed=0)
    with pytest.raises((ValueError, TypeError), match="action"):
        env.step(np.full((ENVS, *env.single_action_space.shape), np.nan))
    with pytest.raises((ValueError, TypeError), match="action"):
        env.step(env.action_space.sample()[:1])


def _child(queue: multiprocessing.Queue) -> None:
    try:
        gymnasium.make("rlsuite/QuadcopterHover-v0").reset(seed=0)
        queue.put("ran")
    except RuntimeError as error:
        queue.put(str(error))


def test_a_fork_after_jax_gets_an_error_not_a_hang() -> None:
    gymnasium.make("rlsuite/QuadcopterHover-v0").reset(seed=0)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    answer = queue.get(timeout=300)
    child.join(timeout=100)
    assert "context='spawn'" in answer


ASYNC_SCRIPT = """
import gymnasium, numpy as np, rlbench_suite
from functools import partial
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
if __name__ == "__main__":
    make = partial(gymnasium.make, "rlbench_suite:rlsuite/QuadcopterHover-v0")
    env = AsyncVectorEnv([make, make])  # forks: nothing here has run JAX yet
    a = [env.reset(seed=5)[0]] + [env.step(np.zeros((2, 4), np.float32))[0] for _ in range(5)]
    env.close()
    sync = SyncVectorEnv([make, make])
    b = [sync.reset(seed=5)[0]] + [sync.step(np.zeros((2, 4), np.float32))[0] for _ in range(5)]
    assert all(np.array_equal(x, y) for x, y in zip(a, b))
    text = AsyncVectorEnv([partial(make, view="text")] * 2, shared_memory=False, context="spawn")
    shown, _ = text.reset(seed=5)
    assert shown[0] != shown[1] and len(shown[0]) > 40, shown
    text.close()
    print("fine")
"""


def test_async_vector_envs_work_when_forked_first_or_spawned(tmp_path: Path) -> None:
    import subprocess

    script = tmp_path / "asynchronous.py"
    script.write_text(ASYNC_SCRIPT)
    result = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ,
        check=False,
    )
    assert result.stdout.strip() == "fine", result.stderr[-2000:]


def test_async_refuses_in_a_forked_worker_that_would_hang() -> None:
    gymnasium.make("rlsuite/QuadcopterHover-v0").reset(seed=0)
    env = AsyncVectorEnv([lambda: gymnasium.make("rlsuite/QuadcopterHover-v0")], context="fork")
    with pytest.raises(RuntimeError, match="spawn"):
        env.reset(seed=0)
    env.close(terminate=True)


def test_the_last_of_an_odd_number_goes_as_its_single_env():
    """Vectorised code leaves one entry after eight to scalar code, which once rounded otherwise."""
    task_id = "rlsuite/Tomato-v0"
    count = 9
    batch = gymnasium.make_vec(task_id, count)
    env = gymnasium.make(task_id)
    observed = batch.reset(seed=0)[0][-1]
    alone = env.reset(seed=count - 1)[0]
    batch.action_space.seed(0)
    for _ in range(40):
        np.testing.assert_array_equal(observed, alone)
        actions = batch.action_space.sample()
        observed = batch.step(actions)[0][-1]
        alone = env.step(actions[-1])[0]

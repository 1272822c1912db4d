"""Every interface does what it says of itself: rewards, masks, weights, autoreset modes, forks."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space

from rlbench_suite.adapters.maskable import maskable
from rlbench_suite.core.task_card import TaskCard

TREASURE = "rlsuite/DeepSeaTreasure-v0"


def test_reward_spaces_say_what_step_returns(card: TaskCard) -> None:
    env = gymnasium.make(card.id)
    env.reset(seed=0)
    env.action_space.seed(0)
    reward = env.step(env.action_space.sample())[1]
    assert np.shape(reward) == env.unwrapped.reward_space.shape
    assert np.asarray(reward, np.float32) in env.unwrapped.reward_space


@pytest.mark.parametrize("name", ["SAT-v0", "Vicsek-v0", "DeepSeaTreasure-v0", "Hopper-v0"])
def test_a_batch_says_what_it_is_as_gymnasiums_do(name: str) -> None:
    def single() -> gymnasium.Env:
        return gymnasium.make(f"rlsuite/{name}")

    batch = gymnasium.make_vec(f"rlsuite/{name}", 2, autoreset_mode="SameStep").unwrapped
    sync = SyncVectorEnv([single, single], autoreset_mode=AutoresetMode.SAME_STEP)
    assert batch.autoreset_mode is sync.autoreset_mode
    assert batch.metadata == sync.metadata
    assert batch.render_mode is None
    batch.reset(seed=0)
    batch.action_space.seed(0)
    rewards = batch.step(batch.action_space.sample())[1]
    assert all(
        np.asarray(reward, batch.reward_space.dtype) in batch.reward_space for reward in rewards
    )
    assert batch.single_reward_space == single().unwrapped.reward_space


@pytest.mark.parametrize("name", ["SAT-v0", "QuadcopterHover-v0", "Hopper-v0"])
@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_a_batch_renders_as_its_envs(name: str, mode: str) -> None:
    batch = gymnasium.make_vec(f"rlsuite/{name}", 2, render_mode=mode)
    batch.reset(seed=3)
    for i, picture in enumerate(batch.render()):
        env = gymnasium.make(f"rlsuite/{name}", render_mode=mode)
        env.reset(seed=3 + i)
        np.testing.assert_array_equal(picture, env.render())


@pytest.mark.parametrize("view", ["text", "pixels"])
def test_a_batch_of_another_view_is_refused_by_that_name(view: str) -> None:
    with pytest.raises(
        ValueError, match=rf"structured view only, got view='{view}'.*vectorization_mode='sync'"
    ):
        gymnasium.make_vec("rlsuite/DeepSeaTreasure-v0", 2, view=view)
    assert gymnasium.make_vec("rlsuite/DeepSeaTreasure-v0", 2, view="structured").num_envs == 2


@pytest.mark.parametrize("keywords", [{}, {"weights": (-1.0, 2.0)}, {"weights": (1e-30, 1e30)}])
def test_the_space_holds_the_zero_of_a_step_that_only_resets(keywords: dict[str, Any]) -> None:
    batch = gymnasium.make_vec(TREASURE, 2, max_episode_steps=2, **keywords).unwrapped
    batch.reset(seed=0)
    for _ in range(4):
        assert all(
            np.asarray(reward) in batch.reward_space for reward in batch.step(np.array([0, 0]))[1]
        )


# -- vector rewards in foreign hands ---------------------------------------------------------------


def test_the_reward_space_of_a_batch_is_that_of_one_entry_as_in_mo_gymnasium() -> None:
    for name, shape in (
        (TREASURE, (2,)),
        ("rlsuite/SAT-v0", ()),
        ("rlsuite/Vicsek-v0", ()),
        ("rlsuite/Hopper-v0", ()),
    ):
        assert gymnasium.make_vec(name, 3).unwrapped.reward_space.shape == shape


def test_who_expects_one_number_hears_of_weights() -> None:
    sync = gymnasium.make_vec(TREASURE, 3, vectorization_mode="sync")
    sync.reset(seed=0)
    with pytest.raises(ValueError, match="setting an array element") as raised:
        sync.step(np.array([1, 1, 1]))
    assert "weights=(0.5, 0.5)" in str(raised.value.__cause__)
    wrappers = (
        gymnasium.wrappers.vector.RecordEpisodeStatistics,
        gymnasium.wrappers.vector.NormalizeReward,
    )
    for wrapper in wrappers:
        batch = wrapper(gymnasium.make_vec(TREASURE, 3))
        batch.reset(seed=0)
        with pytest.raises(ValueError, match=r"make the environment with weights="):
            batch.step(np.array([1, 1, 1]))
    single = gymnasium.wrappers.NormalizeReward(gymnasium.make(TREASURE))
    single.reset(seed=0)
    with pytest.raises((TypeError, ValueError), match=r"make the environment with weights="):
        single.step(1)
    weighed = gymnasium.make_vec(TREASURE, 3, vectorization_mode="sync", weights=(0.5, 0.5))
    recorded = gymnasium.wrappers.vector.RecordEpisodeStatistics(weighed)
    recorded.reset(seed=0)
    assert recorded.step(np.array([1, 1, 1]))[1].shape == (3,)


def test_a_vector_reward_computes_as_plain_arrays_do() -> None:
    env = gymnasium.make(TREASURE)
    env.reset(seed=0)
    reward = env.step(3)[1]
    plain = np.asarray(reward)
    assert type(plain) is np.ndarray
    assert type(reward + 1) is np.ndarray
    assert float(reward[0]) == float(plain[0])
    assert reward.sum() == plain.sum()
    total = np.zeros(2, np.float32)
    total += reward
    np.testing.assert_array_equal(total, plain)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(reward)), plain)


# -- masks -----------------------------------------------------------------------------------------


@pytest.mark.every_id
def test_masks_cost_what_reading_info_costs(card: TaskCard) -> None:
    env = gymnasium.make(card.id).unwrapped
    with pytest.raises((gymnasium.error.ResetNeeded, AttributeError)):
        env.action_masks()
    _, info = env.reset(seed=0)
    if "action_mask" not in info:
        with pytest.raises(AttributeError, match="no action mask"):
            env.action_masks()
        return

    def seconds() -> float:
        start = time.perf_counter()
        np.testing.assert_array_equal(env.action_masks(), info["action_mask"].astype(bool))
        return time.perf_counter() - start

    # A program compiled at each call takes a tenth of a second, a mask that is read a few
    # microseconds.
    assert min(seconds() for _ in range(5)) < 0.02
    assert env.action_masks().dtype == bool


@pytest.mark.parametrize("name", ["SAT-v0", "OfficeApps-v0", "MarsFleet-v0"])
def test_spaces_sample_from_the_masks_of_infos(name: str) -> None:
    env = gymnasium.make(f"rlsuite/{name}")
    batch = gymnasium.make_vec(f"rlsuite/{name}", 3)
    _, info = env.reset(seed=0)
    _, infos = batch.reset(seed=0)
    env.action_space.seed(0)
    batch.action_space.seed(0)
    for _ in range(20):
        *_, info = env.step(env.action_space.sample(info["action_mask"]))
        assert not info["invalid_action"]
        actions = batch.action_space.sample(infos["action_mask"])
        assert actions in batch.action_space
        *_, infos = batch.step(actions)
        assert not infos["invalid_action"].any()
    assert env.action_space == env.unwrapped.task.action_space
    assert batch.action_space == batch_space(env.unwrapped.task.action_space, 3)


def test_a_mask_of_several_choices_takes_both_forms_and_refuses_other_lengths() -> None:
    space = maskable(gymnasium.spaces.MultiDiscrete([2, 3], start=[0, 5]))
    for mask in (
        np.array([0, 1, 0, 0, 1], np.int8),
        (np.array([0, 1], np.int8), np.array([0, 0, 1], np.int8)),
    ):
        assert space.sample(mask).tolist() == [1, 7]
    assert copy.deepcopy(space).sample(np.array([1, 0, 1, 0, 0], bool)).tolist() == [0, 5]
    with pytest.raises(ValueError, match="has 5 entries"):
        space.sample(np.ones(4, np.int8))
    with pytest.raises(ValueError, match="one mask for each of 2 environments, got 3"):
        batch_space(space, 2).sample(np.ones((3, 5), np.int8))


def test_masks_are_those_of_an_episode_put_in_by_hand() -> None:
    env = gymnasium.make("rlsuite/Sudoku4-v0").unwrapped
    _, info = env.reset(seed=0)
    saved = copy.deepcopy(env.episode)
    mask = info["action_mask"].astype(bool)
    *_, info = env.step(int(np.flatnonzero(mask)[0]))
    assert (info["action_mask"] != mask).any()
    env.episode = saved
    np.testing.assert_array_equal(env.action_masks(), mask)


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.25, 2.0), (-1.0, 1.0)])
def test_weights_make_a_scalar_env_of_several_objectives(weights: tuple[float, float]) -> None:
    plain = gymnasium.make(TREASURE)
    scalar = gymnasium.make(TREASURE, weights=weights)
    batch = gymnasium.make_vec(TREASURE, 2, weights=weights)
    assert scalar.unwrapped.reward_space.shape == ()
    assert batch.unwrapped.reward_space.shape == ()
    for env in (plain, scalar, batch):
        env.reset(seed=0)
    for action in (3, 3, 1, 1):
        vector = plain.step(action)[1]
        _, reward, _, _, info = scalar.step(action)
        assert type(reward) is float
        assert reward == pytest.approx(float(np.dot(vector, weights)))
        assert np.float32(reward) in scalar.unwrapped.reward_space
        np.testing.assert_array_equal(info["vector_reward"], vector)
        _, rewards, _, _, infos = batch.step(np.array([action, action]))
        np.testing.assert_array_equal(rewards, np.float32([reward, reward]))
        np.testing.assert_array_equal(infos["vector_reward"][0], vector)
        assert all(np.asarray(each) in batch.unwrapped.reward_space for each in rewards)


def test_a_scalar_env_of_weights_runs_in_wrappers_and_vectors_for_scalars() -> None:
    def make_weighted() -> gymnasium.Env:
        return gymnasium.wrappers.NormalizeReward(gymnasium.make(TREASURE, weights=(1.0, 1.0)))

    batch = SyncVectorEnv([make_weighted, make_weighted])
    batch.reset(seed=0)
    assert np.isfinite(batch.step(np.array([1, 3]))[1]).all()


@pytest.mark.parametrize(
    ("task_id", "weights", "message"),
    [
        (TREASURE, (1.0,), "2 finite numbers, one for each of"),
        (TREASURE, (1.0, np.nan), "2 finite numbers"),
        (TREASURE, "ab", "2 finite numbers"),
        (TREASURE, ("1", "2"), "2 finite numbers"),
        (TREASURE, (1e39, 1.0), "2 finite numbers"),
        ("rlsuite/SAT-v0", (1.0,), "has one objective"),
        ("rlsuite/Hopper-v0", (1.0,), "has one objective"),
    ],
)
@pytest.mark.parametrize(
    "make", [gymnasium.make, lambda task_id, **w: gymnasium.make_vec(task_id, 2, **w)]
)
def test_wrong_weights(make: Callable[..., Any], task_id: str, weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(task_id, weights=weights)


# -- autoreset -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SAT-v0", "PMSMCurrent-v0", "Vicsek-v0", "Hopper-v0"])
def test_disabled_autoreset_goes_as_gymnasiums(name: str) -> None:
    def single() -> gymnasium.Env:
        return gymnasium.make(f"rlsuite/{name}", max_episode_steps=3)

    batch = gymnasium.make_vec(f"rlsuite/{name}", 3, max_episode_steps=3, autoreset_mode="Disabled")
    sync = SyncVectorEnv([single] * 3, autoreset_mode=AutoresetMode.DISABLED)
    envs = batch, sync
    batch.action_space.seed(0)
    resets = [env.reset(seed=[1, 2, 3]) for env in envs]
    np.testing.assert_array_equal(resets[0][0], resets[1][0])
    masks = [np.array([True, False, True]), np.array([False, True, False])]
    for round_ in range(3):
        for _ in range(3):
            action = batch.action_space.sample()
            steps = [env.step(action) for env in envs]
            for value, expected in zip(steps[0][:4], steps[1][:4], strict=True):
                np.testing.assert_array_equal(value, np.asarray(expected, value.dtype))
        with pytest.raises((gymnasium.error.ResetNeeded, AssertionError)):
            batch.step(action)
        for mask in masks:
            seed = [10, 20, 30] if round_ == 1 else None
            resets = [env.reset(seed=seed, options={"reset_mask": mask.copy()}) for env in envs]
            np.testing.assert_array_equal(resets[0][0], resets[1][0])
            np.testing.assert_array_equal(resets[0][1]["_success"], resets[1][1]["_success"])


def test_wrong_reset_masks() -> None:
    env = gymnasium.make_vec("rlsuite/SAT-v0", 2, autoreset_mode="Disabled")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=0)
    for mask, error in (
        ([True, False], TypeError),
        (np.array([1, 0]), TypeError),
        (np.array([True]), ValueError),
        (np.zeros(2, bool), ValueError),
    ):
        with pytest.raises(error, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="options"):
        env.reset(options={"difficulty": "hard"})


# -- forks and agents ------------------------------------------------------------------------------


def _step_in_child(queue: multiprocessing.Queue, envs: tuple[Any, ...]) -> None:
    for env in envs:
        try:
            env.step(env.action_space.sample())
            queue.put("ran")
        except RuntimeError as error:
            queue.put(str(error))


def _restore_in_child(queue: multiprocessing.Queue, env: Any, state: Any) -> None:
    try:
        env.state = state
        queue.put("ran")
    except RuntimeError as error:
        queue.put(str(error))


def test_a_forked_child_refuses_to_restore_a_state() -> None:
    env = gymnasium.make("rlsuite/SAT-v0").unwrapped
    env.reset(seed=0)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_restore_in_child, args=(queue, env, env.state))
    child.start()
    assert "context='spawn'" in queue.get(timeout=300)
    child.join(timeout=100)


def test_a_forked_child_refuses_to_step() -> None:
    envs = gymnasium.make("rlsuite/PMSMCurrent-v0"), gymnasium.make_vec("rlsuite/PMSMCurrent-v0", 2)
    for env in envs:
        env.reset(seed=0)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_step_in_child, args=(queue, envs))
    child.start()
    for _ in envs:
        assert "context='spawn'" in queue.get(timeout=300)
    child.join(timeout=100)

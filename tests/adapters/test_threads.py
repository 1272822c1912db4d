"""Threads: one in an environment at a time, the next one refused; environments of their own do not interfere."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
import pytest
from threads import assert_plays_as_alone, in_threads

import rlbench_suite  # noqa: F401  # registers the ids
from rlbench_suite.adapters.one_thread import OneThread
from rlbench_suite.registry import cards

HOST_FAMILIES = {"text", "tools", "locomotion", "operations", "memory"}
"""Families whose tasks compute on the host, or keep what they have computed for later episodes."""
HOST_IDS = [card.id for card in cards().values() if card.family in HOST_FAMILIES and not card.variant]


def test_a_second_thread_is_refused_and_a_copy_is_free() -> None:
    turn = OneThread("rlsuite/Some-v0")

    def enter() -> str:
        try:
            with turn:
                return "entered"
        except RuntimeError as error:
            return str(error)

    with turn, turn, ThreadPoolExecutor(1) as pool:
        refusal = pool.submit(enter).result()
        for copied in (copy.deepcopy(turn), pickle.loads(pickle.dumps(turn))):
            pool.submit(copied.__enter__).result()
    assert "Two threads use one environment of rlsuite/Some-v0 at the same time: give each thread" in refusal
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(enter).result() == "entered"


@pytest.mark.parametrize("view", ["structured", "text"])
@pytest.mark.parametrize("name", ["QuadcopterHover-v0", "Hopper-v0"])
def test_no_step_of_two_threads_in_one_environment_is_lost(name: str, view: str) -> None:
    env: Any = gymnasium.make(f"rlsuite/{name}", view=view).unwrapped
    alone: Any = gymnasium.make(f"rlsuite/{name}", view=view).unwrapped
    action: Any = "no action" if view == "text" else np.zeros(env.action_space.shape, np.float32)
    env.reset(seed=3)
    alone.reset(seed=3)

    def step(_: int) -> tuple[int, list[str]]:
        taken, refusals = 0, []
        for _ in range(20):
            try:
                env.step(action)
                taken += 1
            except RuntimeError as error:
                refusals.append(str(error))
            except gymnasium.error.ResetNeeded:
                break
        return taken, refusals

    results = in_threads(2, step)
    steps = sum(taken for taken, _ in results)
    for _ in range(steps):
        alone.step(action)
    assert env.steps == steps
    assert_equal(env.state.episode, alone.state.episode)
    assert all("give each thread an environment of its own" in text for _, refusals in results for text in refusals)


def test_a_batch_belongs_to_one_thread_at_a_time() -> None:
    for name in ("QuadcopterHover-v0", "Hopper-v0"):
        envs: Any = gymnasium.make_vec(f"rlsuite/{name}", 2)
        envs.reset(seed=0)
        actions = np.zeros(envs.action_space.shape, np.float32)
        with (
            envs.unwrapped._one_thread,
            ThreadPoolExecutor(1) as pool,
            pytest.raises(RuntimeError, match=f"Two threads use one environment of rlsuite/{name}"),
        ):
            pool.submit(envs.step, actions).result()
        envs.step(actions)


@pytest.mark.parametrize("task_id", HOST_IDS)
def test_environments_in_threads_play_as_they_play_alone(task_id: str) -> None:
    assert_plays_as_alone(task_id)


def assert_equal(first: Any, second: Any) -> None:
    """Compare two trees of arrays to the bit."""
    import jax

    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, other)

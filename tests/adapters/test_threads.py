"""Test environments in threads.

One thread at a time is in an environment, and the next one is refused; separate environments do not
interfere.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
import pytest
from threads import assert_plays_as_alone

import rlbench_suite  # noqa: F401  # registers the ids
from rlbench_suite.adapters.one_thread import OneThread
from rlbench_suite.core.registry import cards

HOST_FAMILIES = {"text", "tools", "locomotion", "operations", "memory"}
"""Families whose tasks compute on the host, or keep what they have computed for later episodes."""
HOST_IDS = [
    card.id for card in cards().values() if card.family in HOST_FAMILIES and not card.variant
]


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
    assert (
        "Two threads use one environment of rlsuite/Some-v0 at the same time: give each thread"
        in refusal
    )
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(enter).result() == "entered"


def outcome_in_another_thread(work: Callable[[], object]) -> str:
    """Run work in another thread; return the message of its RuntimeError, or "done"."""
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(work).result()
        except RuntimeError as error:
            return str(error)
    return "done"


REFUSAL = (
    "Two threads use one environment of rlsuite/{} at the same time: give each thread an "
    "environment of its own"
)


@pytest.mark.parametrize("view", ["structured", "text"])
@pytest.mark.parametrize(
    ("name", "owner", "method"),
    [("QuadcopterHover-v0", "_packed", "_advance"), ("Hopper-v0", "_simulator", "step")],
)
def test_a_step_of_another_thread_within_a_step_is_refused(
    name: str, owner: str, method: str, view: str
) -> None:
    env: Any = gymnasium.make(f"rlsuite/{name}", view=view).unwrapped
    alone: Any = gymnasium.make(f"rlsuite/{name}", view=view).unwrapped
    action: Any = "no action" if view == "text" else np.zeros(env.action_space.shape, np.float32)
    for environment in (env, alone):
        environment.reset(seed=3)
        environment.step(action)
    computer = getattr(env, owner)
    compute = getattr(computer, method)
    outcomes = []

    def disturb(argument: Any) -> Any:
        setattr(computer, method, compute)
        outcomes.append(outcome_in_another_thread(lambda: env.step(action)))
        outcomes.append(outcome_in_another_thread(lambda: env.reset(seed=4)))
        return compute(argument)

    setattr(computer, method, disturb)
    env.step(action)
    assert len(outcomes) == 2
    for outcome in outcomes:
        assert outcome.startswith(REFUSAL.format(name))
    env.step(action)
    for _ in range(2):
        alone.step(action)
    assert env.steps == alone.steps == 3
    assert_equal(env.state.episode, alone.state.episode)
    assert outcome_in_another_thread(lambda: env.step(action)) == "done", "threads may take turns"


@pytest.mark.parametrize("name", ["QuadcopterHover-v0", "Hopper-v0"])
def test_a_batch_belongs_to_one_thread_at_a_time(name: str) -> None:
    envs: Any = gymnasium.make_vec(f"rlsuite/{name}", 2).unwrapped
    envs.reset(seed=0)
    actions = np.zeros(envs.action_space.shape, np.float32)
    check = envs._check_actions
    outcomes = []

    def disturb(argument: Any) -> Any:
        envs._check_actions = check
        outcomes.append(outcome_in_another_thread(lambda: envs.step(actions)))
        return check(argument)

    envs._check_actions = disturb
    envs.step(actions)
    assert len(outcomes) == 1
    assert outcomes[0].startswith(REFUSAL.format(name))


@pytest.mark.parametrize("task_id", HOST_IDS)
def test_environments_in_threads_play_as_they_play_alone(task_id: str) -> None:
    assert_plays_as_alone(task_id)


def assert_equal(first: Any, second: Any) -> None:
    """Compare two trees of arrays to the bit."""
    import jax

    for leaf, expected in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(leaf, expected)

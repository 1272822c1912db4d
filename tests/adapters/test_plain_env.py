"""Compare the fast single environment with the plain one.

They show the same, bit for bit, at every step of every id.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from rlbench_suite.adapters.plain_env import PlainEnv
from rlbench_suite.core.task_card import TaskCard

STEPS = 100


def assert_same(fast: Any, plain: Any) -> None:
    """Compare bits. Masks are ``int8`` in one and ``bool`` in the other."""
    if isinstance(plain, dict):
        assert fast.keys() == plain.keys()
        for name, value in plain.items():
            assert_same(fast[name], value.astype(np.int8) if name == "action_mask" else value)
    elif isinstance(plain, np.ndarray):
        assert fast.dtype == plain.dtype
        assert fast.shape == plain.shape
        assert fast.tobytes() == plain.tobytes()
    else:
        assert type(fast) is type(plain)
        np.testing.assert_array_equal(fast, plain)  # a NaN equals a NaN


def sample_action(space: gymnasium.Space[Any], info: dict[str, Any], t: int) -> Any:
    """Sample an action.

    Two of three are legal, so that episodes go far and forbidden actions occur.
    """
    mask = info.get("action_mask")
    if mask is None or t % 3 == 0:
        return space.sample()
    return space.sample(mask)


def play_side_by_side(task_id: str, **keywords: Any) -> None:
    fast: Any = gymnasium.make(task_id, **keywords).unwrapped
    plain = PlainEnv(fast.task)
    assert_same(dict(enumerate(fast.reset(seed=7))), dict(enumerate(plain.reset(seed=7))))
    info: dict[str, Any] = {}
    fast.action_space.seed(7)
    for t in range(STEPS):
        action = sample_action(fast.action_space, info, t)
        fast_step = fast.step(action)
        assert_same(dict(enumerate(fast_step)), dict(enumerate(plain.step(action))))
        *_, terminated, truncated, info = fast_step
        if terminated or truncated or t % 40 == 39:
            fast_beginning = fast.reset()
            assert_same(dict(enumerate(fast_beginning)), dict(enumerate(plain.reset())))
            info = fast_beginning[1]


@pytest.mark.every_id
def test_the_fast_env_shows_what_the_plain_one_shows(card: TaskCard) -> None:
    if card.host:
        pytest.skip("a simulator of the host is no pure function")
    play_side_by_side(card.id, max_episode_steps=-1)


@pytest.mark.parametrize("name", ["PMSMCurrent-v0", "Wordle-v0"])
def test_they_agree_in_float64(name: str) -> None:
    play_side_by_side(f"rlsuite/{name}", dtype="float64")

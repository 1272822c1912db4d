"""Hold actuators at their ends for as long as an episode lasts.

Every number stays finite, and every observation stays in its space.

Random actions change with each step, so that they seldom reach what a setting brings about that is
held.
"""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rlbench_suite.core.task_card import TaskCard

EPISODES = 64
STEPS = 60


def test_extreme_actions_that_are_held_leave_numbers_finite(card: TaskCard) -> None:
    if card.host:
        pytest.skip(
            "its simulator steps on the host, one episode after another: 64 take over a minute"
        )
    envs: Any = gymnasium.make_vec(card.id, EPISODES, split="train")
    space = envs.single_action_space
    if not isinstance(space, spaces.Box):
        pytest.skip("its actions are discrete: there is no end of a range to hold")
    at_high_end = np.random.default_rng(0).integers(0, 2, (EPISODES, *space.shape)).astype(bool)
    actions = np.where(at_high_end, space.high, space.low).astype(space.dtype)
    envs.reset(seed=0)
    for step in range(STEPS):
        observations, rewards, *_ = envs.step(actions)
        assert np.isfinite(rewards).all(), step
        assert observations in envs.observation_space, step

"""A changed trajectory needs a new version of its id: golden trajectories notice.

``python tests/adapters/test_golden.py`` writes them anew. Numbers are compared within 1e-4, which any processor keeps
over so few steps; a change of rules, physics, units, keys or seeding moves them by far more.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

from rlbench_suite.card import TaskCard
from rlbench_suite.registry import cards

sys.path.insert(0, str(Path(__file__).parent))
from trajectories import random_actions

GOLDEN = Path(__file__).parent / "golden_trajectories.json"
STEPS = 60
SHOWN = 100
"""Entries of an observation, at most, spread evenly over it."""


def trajectory(task_id: str) -> dict[str, Any]:
    """Rewards summed by episode, and the last observation, of seeded random play on both splits."""
    shown: dict[str, Any] = {}
    for split in ("train", "test"):
        env = gymnasium.make(task_id, split=split)
        observation, _ = env.reset(seed=2026)
        returns = [np.zeros(env.unwrapped.reward_space.shape if env.unwrapped.card.objectives else ())]
        for action in random_actions(env.action_space, 2026, STEPS):
            observation, reward, terminated, truncated, _ = env.step(action)
            returns[-1] = returns[-1] + reward
            if terminated or truncated:
                observation, _ = env.reset()
                returns.append(np.zeros_like(returns[-1]))
        entries = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(observation)])
        some = np.linspace(0, entries.size - 1, min(SHOWN, entries.size)).astype(int)
        shown[split] = {
            "returns": [np.round(total, 6).tolist() for total in returns],
            "observation": np.round(entries[some], 6).tolist(),
        }
    return shown


@pytest.mark.every_id
def test_trajectories_are_those_of_this_version(card: TaskCard) -> None:
    golden = json.loads(GOLDEN.read_text())
    assert set(golden) == set(cards()), "a new id needs a golden trajectory: python tests/adapters/test_golden.py"
    for split, expected in trajectory(card.id).items():
        for name, value in expected.items():
            np.testing.assert_allclose(value, golden[card.id][split][name], rtol=1e-4, atol=1e-4, err_msg=split)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({task_id: trajectory(task_id) for task_id in cards()}, indent=1) + "\n")

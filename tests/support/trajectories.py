"""Play episodes with seeded random actions, and sum up what was seen."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np

STEPS = 60
MAX_ENTRIES = 100
"""Entries of an observation in a trajectory, at most, spread evenly over it."""


def flat(observation: Any) -> bytes:
    if isinstance(observation, dict):
        return b"".join(flat(observation[name]) for name in sorted(observation))
    return (
        observation.encode()
        if isinstance(observation, str)
        else np.ascontiguousarray(observation).tobytes()
    )


def random_actions(space: gymnasium.Space, seed: int, count: int) -> list[Any]:
    space.seed(seed)
    return [space.sample() for _ in range(count)]


def digest(env: gymnasium.Env, seed: int, steps: int) -> str:
    """Hash everything that is seen over ``steps`` steps and as many episodes as they hold."""
    sha = hashlib.sha256()
    observation, info = env.reset(seed=seed)
    sha.update(flat(observation) + repr(sorted(info)).encode())
    for action in random_actions(env.action_space, seed, steps):
        observation, reward, terminated, truncated, info = env.step(action)
        scalars = {
            name: value
            for name, value in info.items()
            if isinstance(value, (bool, int, float, str))
        }
        sha.update(flat(observation) + np.asarray(reward).tobytes())
        sha.update(repr((terminated, truncated, sorted(scalars.items()))).encode())
        if terminated or truncated:
            observation, _ = env.reset()
            sha.update(flat(observation))
    return sha.hexdigest()


def trajectory(make: Callable[[str], gymnasium.Env[Any, Any]]) -> dict[str, Any]:
    """Play both splits with seeded random actions.

    Return the reward of each episode and the last observation.
    """
    results: dict[str, Any] = {}
    for split in ("train", "test"):
        env: Any = make(split)
        observation, _ = env.reset(seed=2026)
        returns = [
            np.zeros(env.unwrapped.reward_space.shape if env.unwrapped.card.objectives else ())
        ]
        for action in random_actions(env.action_space, 2026, STEPS):
            observation, reward, terminated, truncated, _ = env.step(action)
            returns[-1] = returns[-1] + reward
            if terminated or truncated:
                observation, _ = env.reset()
                returns.append(np.zeros_like(returns[-1]))
        entries = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(observation)])
        some = np.linspace(0, entries.size - 1, min(MAX_ENTRIES, entries.size)).astype(int)
        results[split] = {
            "returns": [np.round(total, 6).tolist() for total in returns],
            "observation": np.round(entries[some], 6).tolist(),
        }
    return results


def differences(results: dict[str, Any], golden: dict[str, Any]) -> list[str]:
    """Say where a trajectory differs from the golden one."""
    faults = []
    for split, expected_of_split in golden.items():
        for name, expected in expected_of_split.items():
            try:
                np.testing.assert_allclose(results[split][name], expected, rtol=1e-4, atol=1e-4)
            except AssertionError as error:
                faults.append(f"{split} {name}: {' '.join(str(error).split())}")
    return faults

"""Playing episodes with seeded random actions, and digests of what was seen."""

from __future__ import annotations

import hashlib
from typing import Any

import gymnasium
import numpy as np


def flat(observation: Any) -> bytes:
    if isinstance(observation, dict):
        return b"".join(flat(observation[name]) for name in sorted(observation))
    return observation.encode() if isinstance(observation, str) else np.ascontiguousarray(observation).tobytes()


def random_actions(space: gymnasium.Space, seed: int, count: int) -> list[Any]:
    space.seed(seed)
    return [space.sample() for _ in range(count)]


def digest(env: gymnasium.Env, seed: int, steps: int) -> str:
    """Hash of everything seen over ``steps`` steps and as many episodes as they hold."""
    sha = hashlib.sha256()
    observation, info = env.reset(seed=seed)
    sha.update(flat(observation) + repr(sorted(info)).encode())
    for action in random_actions(env.action_space, seed, steps):
        observation, reward, terminated, truncated, info = env.step(action)
        scalars = {name: value for name, value in info.items() if isinstance(value, (bool, int, float, str))}
        sha.update(flat(observation) + np.asarray(reward).tobytes())
        sha.update(repr((terminated, truncated, sorted(scalars.items()))).encode())
        if terminated or truncated:
            observation, _ = env.reset()
            sha.update(flat(observation))
    return sha.hexdigest()

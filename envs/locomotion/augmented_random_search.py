"""Search for the linear policy that is the reference player of a locomotion task, and save it.

    python -m rlbench_suite.envs.locomotion.augmented_random_search hopper Hopper-v5 [SEED]

Augmented random search, version V2-t (Mania, Guy & Recht 2018, arXiv:1803.07055, Algorithm 2 and
Table 9 for the hyperparameters of Hopper): it samples random directions in the space of weights,
makes rollouts forth and back along each, and takes a step along the best of them, in units of the
standard deviation of their returns. Observations are normalised by those seen so far, and the
search leaves out the survival bonus, as in the paper. The best policy is kept, by its full return
over separate episodes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

DIRECTIONS = 8
"""Random directions of an iteration."""
BEST_DIRECTIONS = 4
"""Directions with the highest returns, by which the weights change."""
STEP_SIZE = 0.01
NOISE = 0.025
"""Length of the way along a direction that a rollout tries."""
ITERATIONS = 160
JUDGED_EVERY = 10
"""Iterations from one evaluation of the policy to the next."""
JUDGED_EPISODES = 5
"""Episodes of an evaluation."""
SEED = 2
"""Seed of the shipped policy, which finds a gait of about 3000, as seed 1 does.

Seed 0 stays at a return of 300, where the robot falls after one hop.
"""


class RunningMoments:
    """Mean and standard deviation of the observations so far (Welford 1962)."""

    def __init__(self, size: int) -> None:
        self.count, self.mean, self.squares = 0, np.zeros(size), np.zeros(size)

    def push(self, x: np.ndarray) -> None:
        """Add one observation."""
        self.count += 1
        difference = x - self.mean
        self.mean = self.mean + difference / self.count
        self.squares = self.squares + difference * (x - self.mean)

    @property
    def deviation(self) -> np.ndarray:
        """Return the standard deviation; 1 for entries that have not varied yet."""
        deviation = np.sqrt(self.squares / max(1, self.count - 1))
        return np.where(deviation < 1e-7, 1.0, deviation)


def rollout(
    env: Any,
    gain: np.ndarray,
    mean: np.ndarray,
    seed: int,
    bonus: float,
    moments: RunningMoments | None = None,
) -> float:
    """Play an episode with ``action = clip(gain (x - mean))``, and return its return.

    ``bonus`` is subtracted at each step.
    """
    x, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        if moments:
            moments.push(x)
        action = np.clip(gain @ (x - mean), env.action_space.low, env.action_space.high).astype(
            np.float32
        )
        x, reward, terminated, truncated, _ = env.step(action)
        total += float(reward) - bonus
        over = terminated or truncated
    return total


def search(env_id: str, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return gain, mean and evaluated return of the best policy.

    The gain is ``(actions, observations)``, the mean ``(observations,)``.
    """
    env: Any = gymnasium.make(env_id)
    bonus = env.unwrapped._healthy_reward
    generator = np.random.default_rng(seed)
    shape = env.action_space.shape[0], env.observation_space.shape[0]
    weights, moments = np.zeros(shape), RunningMoments(shape[1])
    best: tuple[np.ndarray, np.ndarray, float] = (weights, np.zeros(shape[1]), -np.inf)
    episode = 0
    for iteration in range(1, ITERATIONS + 1):
        mean, deviation = moments.mean.copy(), moments.deviation
        directions = generator.standard_normal((DIRECTIONS, *shape))
        returns = np.zeros((DIRECTIONS, 2))
        for i, direction in enumerate(directions):
            for j, sign in enumerate((1, -1)):
                gain = (weights + sign * NOISE * direction) / deviation
                returns[i, j] = rollout(env, gain, mean, episode := episode + 1, bonus, moments)
        top = np.argsort(-returns.max(1))[:BEST_DIRECTIONS]
        change = ((returns[top, 0] - returns[top, 1])[:, None, None] * directions[top]).sum(0)
        weights = weights + STEP_SIZE / (BEST_DIRECTIONS * max(returns[top].std(), 1e-6)) * change
        if iteration % JUDGED_EVERY == 0:
            gain, mean = weights / moments.deviation, moments.mean.copy()
            judged = np.mean(
                [rollout(env, gain, mean, 10**6 + i, 0.0) for i in range(JUDGED_EPISODES)]
            )
            print(f"iteration {iteration}, episode {episode}: return {judged:.0f}", flush=True)
            if judged > best[2]:
                best = gain, mean, float(judged)
    return best


def main() -> None:
    """Search, and write ``NAME_linear_policy.json`` beside this file."""
    name, env_id = sys.argv[1:3]
    gain, mean, judged = search(env_id, int(sys.argv[3]) if len(sys.argv) > 3 else SEED)
    path = Path(__file__).with_name(f"{name}_linear_policy.json")
    # Six digits are more than a policy needs, and are the same on every machine.
    policy = {
        "env": env_id,
        "return": round(judged, 1),
        "gain": gain.tolist(),
        "mean": mean.tolist(),
    }
    rounded = json.loads(json.dumps(policy), parse_float=lambda text: float(f"{float(text):.6g}"))
    path.write_text(json.dumps(rounded, indent=1) + "\n")
    print(f"return {judged:.0f}: {path}")


if __name__ == "__main__":
    main()

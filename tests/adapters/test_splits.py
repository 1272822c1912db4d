"""Equal seeds and equal actions show different episodes on the train and the test split."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from trajectories import flat, random_actions

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.task_card import TaskCard

SEEDS = 5
MIN_DIFFERING_SEEDS = 4
"""Number of seeds for which the splits must differ."""
STEPS = 40
"""Largest number of steps of an episode that are compared."""


def observed_bytes(env: Any, seed: int, actions: list[Any]) -> list[bytes]:
    """Return the observations of one episode, with rewards and ends."""
    observation, _ = env.reset(seed=seed)
    steps = [flat(observation)]
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        steps.append(
            flat(observation) + np.asarray(reward).tobytes() + bytes([terminated, truncated])
        )
        if terminated or truncated:
            break
    return steps


def actions_of_reference(card: TaskCard) -> list[list[Any]]:
    """Return what the reference does in an episode of the train split, for each seed."""
    task = card.build()
    record = play(task, reference_player(task), range(SEEDS), split="train")
    return [
        [np.asarray(action, task.action_space.dtype) for action in actions[: min(length, STEPS)]]
        for actions, length in zip(record.actions, record.length, strict=True)
    ]


@pytest.mark.every_id
def test_splits_show_different_episodes(card: TaskCard, room_for_many: None) -> None:
    """Random actions tell the splits apart, or else those of the reference do.

    The reference looks at what matters.
    """
    if not card.contexts:
        pytest.skip("one context: the card says so")
    train, test = (gymnasium.make(card.id, split=split) for split in ("train", "test"))
    differing = 0
    for seed in range(SEEDS):
        actions = random_actions(train.action_space, seed, STEPS)
        differing += observed_bytes(train, seed, actions) != observed_bytes(test, seed, actions)
    if differing < MIN_DIFFERING_SEEDS and card.reference:
        differing = 0
        for seed, actions in enumerate(actions_of_reference(card)):
            differing += observed_bytes(train, seed, actions) != observed_bytes(test, seed, actions)
    assert differing >= MIN_DIFFERING_SEEDS, (
        f"{card.id}: of {SEEDS} seeds only {differing} show different episodes on the two splits"
    )

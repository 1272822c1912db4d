"""Measure the scores of known players, to which all other scores are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rlbench_suite import registry
from rlbench_suite.agent import CannotPlay
from rlbench_suite.card import SCORES_FILE, Score, TaskCard
from rlbench_suite.episode import scalar_return
from rlbench_suite.evaluation.protocol import calibration_seeds, evaluate
from rlbench_suite.evaluation.statistics import mean
from rlbench_suite.evaluation.writing import replacing
from rlbench_suite.policy import player_for
from rlbench_suite.task import Task

PLAYERS = ("random", "noop", "reference")
SOLVED_BY_NOOP = 0.9
"""Part of the way from random play to the reference at which doing nothing is about as good as the reference."""
NEARLY_ALL = 0.95
"""Part of the reference's return at which any player is."""
_REPLICATES = 10_000


def measure(task: Task[Any, Any], player: str, episodes: int) -> Score | None:
    """Measure the mean return of a player that does not learn, with its 95 % bootstrap interval, to six digits.

    Also measure how often its episodes end in success, and what they cost if the task has a constraint.

    Args:
        task: the task, at the difficulty to measure.
        player: one of :data:`PLAYERS`, or one of the card's yardsticks.
        episodes: number of test-split episodes, at least 2. No cell is evaluated on them.

    Returns:
        The score, or None if the player cannot play the task.

    Raises:
        ValueError: fewer than two episodes.
    """
    if episodes < 2:
        raise ValueError(f"An interval needs at least 2 episodes, got {episodes}.")
    policy: Any
    if player in task.card.yardsticks:
        policy = player_for(task, task.card.yardsticks[player])
    else:
        agent = registry.agent(player)
        try:
            agent.check(task)
        except CannotPlay:
            return None
        policy = list(agent.train(task, seed=0, budget="full"))[-1]
    record = evaluate(task, policy, calibration_seeds(task.card.measured_id, task.difficulty, episodes))
    returns = np.asarray(scalar_return(task, record.total.astype(np.float64)))
    estimate = mean({task.card.id: returns}, replicates=_REPLICATES, method="percentile")
    success = record.info["success"].mean(dtype=np.float64)
    cost = record.cost.mean(dtype=np.float64)
    measured = estimate.point, estimate.low, estimate.high, success, cost
    point, low, high, success, cost = (float(f"{value:.6g}") for value in measured)
    return Score(point, low, high, episodes, success, cost if task.card.constraint else None)


def remark(scores: Mapping[str, Score]) -> str:
    """Return two sentences if a player without skill is about as good as the reference, so that scores mean little.

    It is if their intervals meet, or if it lacks little of the reference's return, or, doing nothing, of the way from
    random play to the reference.
    """
    if "reference" not in scores:
        return ""
    reference, random = scores["reference"], scores["random"]
    equals = []
    for name in ("noop", "random"):
        if (player := scores.get(name)) is None:
            continue
        gap, way = reference.mean - player.mean, reference.mean - random.mean
        near = gap < (1 - NEARLY_ALL) * abs(reference.mean) or (name == "noop" and gap < (1 - SOLVED_BY_NOOP) * way)
        if near or not reference.low > player.high:  # also without numbers
            equals.append(f"{name} ({player.mean:g})")
    if not equals:
        return ""
    return (
        f"{' and '.join(equals)} earn{'s' * (len(equals) == 1)} about as much as the reference ({reference.mean:g}). "
        "Scores of agents will say little: see whether the task needs control, and whether actions have an effect."
    )


def write_scores(card: TaskCard, tier: str | None, scores: Mapping[str, Score], file: str = SCORES_FILE) -> None:
    """Write the scores at one difficulty to a file of the family, and keep everything else in it, other players too.

    Raises:
        OSError: the package cannot be written.
    """
    path = card.scores_path(file)
    known = json.loads(path.read_text()) if path.exists() else {}
    players = known.setdefault(card.measured_id, {}).setdefault(tier or "default", {})
    players |= {
        player: {name: value for name, value in asdict(score).items() if value is not None}
        for player, score in scores.items()
    }
    try:
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(known, indent=2) + "\n")
    except OSError as error:
        raise OSError(
            f"Cannot write {path} ({error.strerror}): calibrate where the package is writable, as in a source checkout."
        ) from None

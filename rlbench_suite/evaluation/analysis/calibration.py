"""Measure the scores of known players, to which all other scores are compared."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rlbench_suite.core import registry
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.core.policy import player_for
from rlbench_suite.core.scale import NORMAL_QUANTILE, ZERO_PLAYERS, Scale, Score
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import SCORES_FILE, TaskCard
from rlbench_suite.evaluation.protocol import calibration_seeds, evaluate
from rlbench_suite.foundation.atomic_files import replacing

SOLVED_BY_NOOP = 0.9
"""Share of the way from random play to the reference from which doing nothing is about as good."""
REFERENCE_SHARE = 0.95
"""Part of the reference's return at which any player is."""

MAX_ERROR = 0.005
"""Standard error that an end of the scale may have, in units of the score."""
MAX_EPISODES = 100_000
"""Episodes of a player after which no more are played, whatever the error."""
_BLOCK_EPISODES = 1_000
"""Episodes that are played at once; fewer where they are long."""
_BLOCK_STEPS = 5_000_000
"""Steps that the episodes played at once may have together."""


def measure(
    task: Task[Any, Any],
    players: Sequence[str],
    *,
    episodes: int | None = None,
    largest_error: float = MAX_ERROR,
    seconds: float = math.inf,
    known_scores: Mapping[str, Score] | None = None,
) -> dict[str, Score]:
    """Measure the mean returns of players that do not learn, with 95 % intervals, to six digits.

    Also measure how often their episodes end in success, and what they cost if the task has a
    constraint. All players play the same seeds.

    Args:
        task: the task, at the difficulty to measure.
        players: :data:`~rlbench_suite.core.scale.ANCHORS`, or yardsticks of the card. Those who
            cannot play are left out.
        episodes: number of test-split episodes of each player, at least 2. No cell is evaluated on
            them. If None, players play until the ends of the scale are known well enough.
        largest_error: standard error of each end of the scale, in units of the score, at which no
            more is played.
        seconds: time after which no more is played, either.
        known_scores: measured scores of players who need not play again.

    Raises:
        ValueError: fewer than two episodes.
    """
    if episodes is not None and episodes < 2:
        raise ValueError(f"An interval needs at least 2 episodes, got {episodes}.")
    started = time.perf_counter()
    block = episodes or min(_BLOCK_EPISODES, max(100, _BLOCK_STEPS // task.card.horizon))
    samples = {}
    for player in players:
        try:
            samples[player] = _Sample(task, player)
        except CannotPlay:
            continue
        samples[player].extend(block)
    scores = {
        **(known_scores or {}),
        **{player: sample.score() for player, sample in samples.items()},
    }
    while episodes is None and time.perf_counter() - started < seconds:
        uncertain = [
            player
            for player in too_uncertain(scores, largest_error)
            if player in samples and scores[player].episodes < MAX_EPISODES
        ]
        if not uncertain:
            break
        for player in uncertain:
            samples[player].extend(block)
            scores[player] = samples[player].score()
    return {player: scores[player] for player in samples}


def too_uncertain(scores: Mapping[str, Score], largest_error: float) -> list[str]:
    """Return the players at the scale's ends whose means are less certain than this error.

    The error is in units of the score.

    Where players without skill earn about the same, each of them may be the zero.
    """
    scale = Scale.of(scores)
    if scale is None or scale.span <= 0:
        return []
    width = scale.zero.high - scale.zero.low
    zeros = [
        name
        for name in ZERO_PLAYERS
        if name in scores and scale.zero.mean - scores[name].mean <= width
    ]
    return [
        name
        for name in (*zeros, "reference")
        if scores[name].standard_error > largest_error * scale.span
    ]


class _Sample:
    """Episodes of a player on the test split, the first ones of the calibration seeds."""

    def __init__(self, task: Task[Any, Any], player: str) -> None:
        self.task = task
        self.policy: Any
        if player == "constant" and not task.card.constant:
            raise CannotPlay(f"The card of {task.card.id} names no constant action.")
        if player == "constant":
            self.policy = player_for(task, task.card.constant)
        elif player in task.card.yardsticks:
            self.policy = player_for(task, task.card.yardsticks[player])
        else:
            agent = registry.agent(player)
            agent.check(task)
            self.policy = list(agent.train(task, seed=0, budget="full"))[-1]
        self.returns = np.empty(0)
        self.successes = np.empty(0)
        self.costs = np.empty(0)

    def extend(self, episodes: int) -> None:
        """Play this many more episodes."""
        first = len(self.returns)
        record = evaluate(self.task, self.policy, calibration_seeds(first + episodes)[first:])
        returns = np.asarray(scalar_return(self.task, record.total.astype(np.float64)))
        self.returns = np.append(self.returns, returns)
        self.successes = np.append(self.successes, record.info["success"])
        self.costs = np.append(self.costs, record.cost.astype(np.float64))

    def score(self) -> Score:
        """Return the mean return with its interval, which is normal: there are many episodes."""
        mean, count = self.returns.mean(), len(self.returns)
        half = NORMAL_QUANTILE * self.returns.std(ddof=1) / math.sqrt(count)
        numbers = mean, mean - half, mean + half, self.successes.mean(), self.costs.mean()
        mean, low, high, success, cost = (float(f"{number:.6g}") for number in numbers)
        return Score(mean, low, high, count, success, cost if self.task.card.constraint else None)


def remark(scores: Mapping[str, Score]) -> str:
    """Return two sentences if a player without skill is about as good as the reference.

    Scores mean little then.

    It is if their intervals meet, or if it lacks little of the reference's return, or, doing
    nothing, of the way from random play to the reference.
    """
    if "reference" not in scores:
        return ""
    reference, random = scores["reference"], scores["random"]
    equals = []
    for name in ("noop", "random", "constant"):
        if (player := scores.get(name)) is None:
            continue
        gap, reference_gain = reference.mean - player.mean, reference.mean - random.mean
        near = gap < (1 - REFERENCE_SHARE) * abs(reference.mean) or (
            name == "noop" and gap < (1 - SOLVED_BY_NOOP) * reference_gain
        )
        if near or not reference.low > player.high:  # also without numbers
            equals.append(f"{name} ({player.mean:g})")
    if not equals:
        return ""
    return (
        f"{' and '.join(equals)} earn{'s' * (len(equals) == 1)} about as much as the reference "
        f"({reference.mean:g}). "
        "Scores of agents will say little: see whether the task needs control, and whether actions "
        "have an effect."
    )


def write_scores(
    card: TaskCard, tier: str | None, scores: Mapping[str, Score], file: str = SCORES_FILE
) -> None:
    """Write the scores at one difficulty to a file of the family, and keep everything else in it.

    Other players' scores are kept too.

    Raises:
        OSError: the package cannot be written.
    """
    path = card.scores_path(file)
    scores_by_id = json.loads(path.read_text()) if path.exists() else {}
    players = scores_by_id.setdefault(card.measured_id, {}).setdefault(tier or "default", {})
    players |= {
        player: {name: value for name, value in asdict(score).items() if value is not None}
        for player, score in scores.items()
    }
    try:
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(scores_by_id, indent=2) + "\n")
    except OSError as error:
        raise OSError(
            f"Cannot write {path} ({error.strerror}): calibrate where the package is writable, as "
            "in a source checkout."
        ) from None

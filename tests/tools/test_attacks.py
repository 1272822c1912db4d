"""Players that do not do the task: none may earn more than its share of luck."""

from __future__ import annotations

import numpy as np
import pytest
from plays import TIERS, number_of, play

from rlbench_suite.envs.tools.office.apps.apis import COLUMN_APIS
from rlbench_suite.envs.tools.office.apps.kinds import Reason

FINISH = [number_of("assistant.finish"), 0, 0, 0, 0]
READS = ("contacts.list", "payments.list_requests", "payments.balance")
DAYS = [[number_of("calendar.list_day"), 0, 0, day, 0] for day in (1, 2, 3, 4)]
BATCHES = 4


def score(tier: str, script: list[list[int]], noise: float = 0.0) -> float:
    return float(play(tier, BATCHES, seed=6, script=script, noise=noise).total.mean())


@pytest.mark.parametrize("tier", TIERS)
def test_doing_nothing_or_only_reading_earns_nothing(tier: str) -> None:
    assert score(tier, [[0, 0, 0, 0, 0]]) == 0
    assert score(tier, [FINISH]) == 0
    everything = [[number_of(name), 0, 0, 0, 0] for name in READS] + DAYS + [FINISH]
    assert score(tier, everything) == 0


@pytest.mark.parametrize("tier", TIERS)
def test_calling_every_api_or_one_all_the_time_earns_nothing(tier: str) -> None:
    numbers = [i for i, api in enumerate(COLUMN_APIS) if not api.name.startswith("assistant.")]
    for value in (1, 2, 5):
        assert score(tier, [[i, value, value, value, value] for i in numbers[:19]] + [FINISH]) == 0
        assert score(tier, [[i, value, value, value, value] for i in numbers[10:]] + [FINISH]) == 0
    for name in ("calendar.cancel", "payments.pay_request", "payments.send", "contacts.set_phone"):
        assert score(tier, [[number_of(name), 1, 1, 1, 1]]) == 0  # the episode never ends


@pytest.mark.parametrize("tier", TIERS)
def test_refusing_earns_the_share_of_that_reason_only(tier: str) -> None:
    refuse = number_of("assistant.refuse")
    reasons = play(tier, BATCHES, seed=6, script=[FINISH]).params.reason
    total = 0.0
    for reason in Reason:
        earned = score(tier, [[refuse, 0, 0, int(reason), 0]])
        share = (reasons == reason).mean() if reason else 0.0
        np.testing.assert_allclose(earned, share, atol=1e-6)
        assert earned < 0.07
        total += earned
    assert total < 0.15  # what knowing every obstacle, and nothing else, would earn


@pytest.mark.parametrize("tier", TIERS)
def test_guessed_answers_and_guessed_changes_earn_next_to_nothing(tier: str) -> None:
    answer = number_of("assistant.answer")
    assert max(score(tier, [[answer, 0, 0, 0, n]]) for n in (1, 7, 15, 31)) < 0.02
    cancel_then_finish = [
        [number_of("calendar.cancel"), 0, event, 0, 0] for event in range(1, 11)
    ] + [FINISH]
    earned = score(tier, cancel_then_finish)
    # Ids that were not shown cannot be used, so this cancels the event that the easy instruction
    # names, no other.
    events = play(tier, BATCHES, seed=6, script=[FINISH]).params.ask
    np.testing.assert_allclose(
        earned, (events.template == 1).mean() if tier == "easy" else 0, atol=1e-6
    )
    random_then_finish = play(
        tier, BATCHES, seed=6, script=[[0] * 5] * 10 + [FINISH], noise=0.8
    ).total.mean()
    assert random_then_finish < 0.02

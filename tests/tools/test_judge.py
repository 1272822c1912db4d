"""The judge against a second one, over thousands of ends.

The second one is written in plain Python from the specifications.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from office import Office, is_success, verdict
from plays import TIERS, at, judge, play, task_of

from rlbench_suite.envs.tools.office.apps.column_api import Ending
from rlbench_suite.envs.tools.office.apps.kinds import Reason
from rlbench_suite.envs.tools.office.columns import World
from rlbench_suite.envs.tools.office.templates.column_template import Ask

REASONS = {reason.name.lower(): int(reason) for reason in Reason}
RANGES = dict.fromkeys(World._fields, 8) | {"guests": 2**12, "balance": 60, "savings": 60}


def second_opinion(tier: str, params, state) -> bool:
    template = task_of(tier).templates[int(params.ask.template)].name
    decision = verdict(template, Office.of(params.start), params.ask)
    assert REASONS.get(decision.reason or "none", 0) == int(params.reason)
    ending = Ending(int(state.ending)).name.lower()
    return is_success(decision, Office.of(state.world), ending, int(state.reply), REASONS)


@pytest.mark.parametrize("tier", TIERS)
def test_two_judges_agree_on_ends_of_good_disturbed_and_random_play(tier: str) -> None:
    verdicts = []
    for noise, batches in ((0.0, 1), (0.1, 2), (0.4, 1), (0.9, 1)):
        record = play(tier, batches, seed=7, noise=noise)
        ends = record.ends
        solved = np.asarray(judge(tier)(ends, record.params))
        for i in range(len(solved)):
            assert second_opinion(tier, at(record.params, i), at(ends, i)) == solved[i]
        verdicts.append(solved.mean())
    assert verdicts[0] == 1
    assert 0.2 < verdicts[1] < 1  # both verdicts are put to the test
    assert verdicts[3] < 0.5


@pytest.mark.parametrize("tier", TIERS)
def test_one_cell_changed_beyond_the_goal_fails(tier: str) -> None:
    """Collateral: from a right end, one cell of the world is changed."""
    record = play(tier, 4, seed=8)
    ends, rng = record.ends, np.random.default_rng(0)
    worlds = {name: column.copy() for name, column in ends.world._asdict().items()}
    for i in range(1024):
        name = World._fields[i % len(World._fields)]
        old = (
            worlds[name][i]
            if worlds[name].ndim == 1
            else worlds[name][i, at := rng.integers(worlds[name].shape[1])]
        )
        new = (int(old) + 1 + rng.integers(RANGES[name] - 1)) % RANGES[name]
        worlds[name][(i,) if worlds[name].ndim == 1 else (i, at)] = new
    spoiled = np.asarray(judge(tier)(ends._replace(world=World(**worlds)), record.params))
    # "At any free hour" leaves one cell open: another time may be right too.
    times = np.arange(1024) % len(World._fields) == World._fields.index("time")
    names = np.array([template.name for template in task_of(tier).templates])[
        record.params.ask.template
    ]
    assert not spoiled[~(times & (names == "schedule"))].any()


@pytest.mark.parametrize("tier", TIERS)
def test_right_world_but_wrong_last_word_fails(tier: str) -> None:
    record = play(tier, 2, seed=9)
    ends = record.ends
    assert judge(tier)(ends, record.params).all()
    for ending in Ending:
        changed_ends = ends._replace(ending=np.full(512, ending, np.int32))
        np.testing.assert_array_equal(
            judge(tier)(changed_ends, record.params), ends.ending == ending
        )
    spoken = ends.ending != Ending.FINISHED
    wrong = ends._replace(reply=ends.reply + 1)
    assert not np.asarray(judge(tier)(wrong, record.params))[spoken].any()


@pytest.mark.parametrize("tier", TIERS)
def test_right_outcomes_change_what_the_template_may_touch_and_nothing_else(tier: str) -> None:
    record = play(tier, 4, seed=10)
    for i in range(1024):
        start, end = at(record.params.start, i), at(record.ends.world, i)
        changed = {
            name for name in World._fields if (getattr(start, name) != getattr(end, name)).any()
        }
        template = task_of(tier).templates[int(record.params.ask.template[i])]
        allowed = set() if record.params.reason[i] else template.touches
        assert changed <= allowed
        # No instance is solved as it stands: a change, an answer or a refusal is due.
        assert changed or record.params.reason[i] or template.answer


def test_every_template_has_sentences_that_fill(tmp_path: Path) -> None:
    gaps = {
        "contact",
        "event",
        "request",
        "name",
        "city",
        "relation",
        "day",
        "title",
        "place",
        "amount",
        "time",
        "phone",
    }
    for tier in TIERS:
        for template in task_of(tier).templates:
            assert len(set(template.wordings)) == 3
            texts = [text.format(**{gap: f"<{gap}>" for gap in gaps}) for text in template.wordings]
            filled_gaps = [{gap for gap in gaps if f"<{gap}>" in text} for text in texts]
            assert filled_gaps[0] == filled_gaps[1] == filled_gaps[2], template.name
            assert filled_gaps[0]
    assert set(Ask._fields) >= gaps - {"amount", "time", "phone"}

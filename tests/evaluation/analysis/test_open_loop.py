"""Law: no blind play scores above a quarter of the scale on any id, or its card says why.

The search is tried on tasks whose best blind play is known; the table of the docs is checked for
every id of ``all``.
"""

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards, suites
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.analysis.open_loop import (
    KNOTS,
    LIMIT,
    BlindPlayer,
    BlindSearch,
    EpisodeResults,
    next_legal,
)

PAGE = Path(__file__).parents[3] / "docs" / "audits" / "open_loop.md"
ROW = re.compile(r"^\| ([\w?=&-]+) \| (-?[\d.]+) \+- ([\d.]+) \|.*\| ([\w ]+) \|$", re.MULTILINE)


def test_blind_play_that_is_known_to_be_good_is_discovered() -> None:
    """Right five times, then down, takes the treasure of 16.1.

    It is one of the two optima of the published map.
    """
    result = BlindSearch(find_card("DeepSeaTreasure-v0").build()).best(
        players=128, rounds=2, test_episodes=1
    )
    assert result.score > 0.9
    assert not result.within_limit


def test_blind_play_earns_nothing_where_the_map_must_be_read() -> None:
    card = find_card("TreasureMaps-v0")
    for tier in card.difficulties:
        result = BlindSearch(card.build(difficulty=tier)).best(
            players=256, rounds=2, test_episodes=1_024
        )
        assert result.score < 0.1, (tier, result)


@pytest.mark.parametrize(
    ("mask", "action", "expected"),
    [([1, 1, 1], 1, 1), ([1, 0, 1], 1, 2), ([1, 0, 0], 1, 0), ([0, 0, 0], 1, 1), ([0, 1, 0], 2, 1)],
)
def test_the_next_legal_action_in_turn(mask: list, action: int, expected: int) -> None:
    action_played = next_legal(spaces.Discrete(3), jnp.array(mask, bool), jnp.int32(action))
    assert int(action_played) == expected


def test_the_next_legal_action_of_each_part() -> None:
    space = spaces.MultiDiscrete([2, 3])
    action_played = next_legal(space, jnp.array([0, 1, 1, 0, 0], bool), jnp.array([0, 1]))
    assert action_played.tolist() == [1, 0]


def test_a_table_is_repeated_and_a_constant_is_held() -> None:
    table = np.arange(KNOTS, dtype=np.int32)
    for steps_each, expected in ((1.0, [0, 1, 2, 3]), (2.0, [0, 0, 1, 1]), (np.inf, [0, 0, 0, 0])):
        player = BlindPlayer(table, np.float32(steps_each), np.bool_(False), spaces.Discrete(KNOTS))
        memory = player.initial(None)
        actions = []
        for _ in expected:
            action, memory = player.act(memory, View(None, None, None, None), None)
            actions.append(int(action))
        assert actions == expected
    action, _ = player.act(jnp.float32(KNOTS), View(None, None, None, None), None)
    assert int(action) == 0


def test_returns_that_are_not_finite_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """``argsort`` puts NaN last.

    A faulty task would look like one on which blind play earns little.
    """
    search = BlindSearch(find_card("DeepSeaTreasure-v0").build())
    play = search._play

    def play_with_a_fault(*arguments: Any) -> EpisodeResults:
        results = play(*arguments)
        results.total[3, 5] = np.nan
        return results

    monkeypatch.setattr(search, "_play", play_with_a_fault)
    with pytest.raises(
        ArithmeticError, match="rlsuite/DeepSeaTreasure-v0 has returns that are not finite"
    ):
        search.best(players=64, rounds=0, test_episodes=1)


def test_every_id_of_all_is_in_the_table_and_low_or_explained() -> None:
    """Read what ``benchmarks/audits/open_loop.py`` measured, and which ids it left out.

    The page says which were not measured.
    """
    table, _, unmeasured_text = PAGE.read_text().partition("## Not measured yet")
    rows = {name: (float(score), float(half)) for name, score, half, _ in ROW.findall(table)}
    unmeasured = set(re.findall(r"`([\w?=&-]+)`", unmeasured_text))
    names = {find_card(task_id).name for task_id in suites()["all"]}
    assert names - rows.keys() == unmeasured & names
    high = {name for name, (score, half) in rows.items() if score - half > LIMIT}
    explained = {card.name for card in cards().values() if card.open_loop}
    assert {find_card(name).name.partition("?")[0] for name in high} <= explained


def test_blind_play_scores_low(card: TaskCard) -> None:
    """A small search of the kind behind the table runs on tasks by turns.

    A changed task may not open a way for blind play.
    """
    if card.open_loop or card.host:
        pytest.skip("the card says why blind play scores, or a simulator would take minutes")
    try:
        search = BlindSearch(card.build())
    except ValueError as why:
        pytest.skip(str(why))
    # Without a limit of time, on which the result would depend.
    result = search.best(players=64, rounds=1, test_episodes=1_024)
    assert result.within_limit, result

"""Test the audit of tasks of choices: rules of thumb play legally and find blind play that pays."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from rules_of_thumb import PREFERRED_VALUE, Thumbs
from yardsticks import FAMILIES, OF_CHOICES, Arena

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core import registry
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card


def test_every_family_is_audited() -> None:
    """Hopper is the only task of its family, and a simulator of the host."""
    assert {*FAMILIES, *OF_CHOICES} == {*registry.families()} - {"locomotion"}


@pytest.mark.parametrize("name", ["Sudoku4-v0", "OfficeApps-v0"])
def test_the_first_rules_play_the_first_the_last_and_a_random_legal_choice(name: str) -> None:
    task = card(name).build()
    search, rng = Thumbs(task), np.random.default_rng(0)
    rules = dict(reversed(search.sample(rng)) for _ in range(3))
    assert list(rules) == ["first legal", "last legal", "random legal"]
    mask = rng.random(search.n) < 0.3
    ends = np.cumsum(search.sizes)
    mask[ends - 1] = True
    legal = [
        np.flatnonzero(mask[end - size : end]) for end, size in zip(ends, search.sizes, strict=True)
    ]
    entries = task.observation_space.shape[0]
    view = View(np.zeros(entries, np.float32), mask, None, None)

    def choose_action(kind: str, seed: int = 0) -> Any:
        player = search.players([rules[kind]])
        rule = jax.tree.map(lambda leaf: leaf[0], player)
        return np.atleast_1d(rule.act(rule.initial(None), view, jax.random.key(seed))[0])

    assert choose_action("first legal").tolist() == [choices[0] for choices in legal]
    assert choose_action("last legal").tolist() == [choices[-1] for choices in legal]
    actions = [choose_action("random legal", seed) for seed in range(20)]
    assert all(
        action[number] in choices for action in actions for number, choices in enumerate(legal)
    )
    assert len({tuple(action) for action in actions}) > 3


def test_the_search_finds_a_sequence_that_looks_at_nothing() -> None:
    """Right three times or more, then down for ever, earns nearly the best treasure.

    The task is DeepSeaTreasure.
    """
    task = card("DeepSeaTreasure-v0").build()
    arena = Arena(task, Thumbs(task))
    best = arena.best(1.0, np.inf, np.random.default_rng(0))
    assert (
        card("DeepSeaTreasure-v0").normalise(
            arena.all_alike(best.numbers, 0, 512, "test").total.mean()
        )
        > 0.8
    )


def test_rules_play_in_the_audit_as_in_the_ordinary_rollout() -> None:
    """Choices in turn and a sequence, on a puzzle with a mask."""
    task = card("Sudoku4-v0").build()
    search = Thumbs(task)
    arena = Arena(task, search)
    rng = np.random.default_rng(2)
    rule, _ = search.sample(rng)
    table = rng.random(rule.table.shape).astype(np.float32)
    table[1, 7] = PREFERRED_VALUE
    rule = rule._replace(table=table, period=np.int32(3), again=np.float32(0.7))
    audited = arena.all_alike(rule, 0, 512, "test")
    alone = jax.tree.map(lambda leaf: leaf[0], search.players([rule]))
    results = play(task, alone, range(64))
    np.testing.assert_allclose(audited.total[:64], results.total, atol=1e-5)
    np.testing.assert_array_equal(audited.success[:64], results.info["success"])

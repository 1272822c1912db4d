"""Every task lowers for CUDA, and its branch keeps the contract on a CPU.

Lowering needs no accelerator: it fails where an operation has no rule for that platform.
``bit_exact.py`` decides by JAX's default backend what is kept apart and how, so that decision is
turned over here.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.adapters import rollout
from rlbench_suite.checking.checks import check_task
from rlbench_suite.core.episode import ContextSource, reset_where
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import TaskCard, load
from rlbench_suite.numerics import bit_exact
from rlbench_suite.numerics.process import precision

ENTRIES = 4
DRAW = ContextSource(np.int32(0), np.int32(-1))


@pytest.fixture(autouse=True)
def accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the branch of other backends.

    Programs are cached by task, so tests that compile use tasks of their own.
    """
    monkeypatch.setattr(bit_exact, "_on_cpu", lambda: False)


def one_of_each_kind() -> list[str]:
    """List one id an entry point, one of the suite ``all`` where there is one."""
    first: dict[str, TaskCard] = {}
    for card in sorted(cards().values(), key=lambda card: card.variant):
        if not card.host:
            first.setdefault(card.entry_point, card)
    return [card.name for card in first.values()]


def lower(function: Any, *arguments: Any) -> None:
    """Lower a function for CUDA; compile nothing."""
    jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",))


@pytest.mark.parametrize("name", one_of_each_kind())
def test_every_task_lowers_for_cuda(name: str) -> None:
    task = find_card(name).build()
    player = reference_player(task)

    def everything(seeds: jax.Array) -> Any:
        stream = rollout.open_stream(task, seeds, DRAW)
        record = rollout._play(task, 3, player, stream)
        return record, reset_where(task, np.ones(ENTRIES, bool), *stream, DRAW)

    with precision(task):
        lower(everything, np.zeros((ENTRIES, 2), np.uint32))


def test_what_only_cpus_know_does_not_lower() -> None:
    with pytest.raises(NotImplementedError, match="cuda"):
        lower(lambda x: jax.lax.linalg.schur(x)[0], np.eye(2, dtype=np.float32))


@pytest.mark.parametrize("name", ["TMaze-v0", "DeepSeaTreasure-v0"])
def test_the_branch_of_other_backends_keeps_the_contract(name: str) -> None:
    card = find_card(name)
    check_task(
        load(card.entry_point)(card, difficulty=card.check_difficulty(None), dtype="float32")
    )

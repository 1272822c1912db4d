"""Play on the CPU the episodes that others may replay, also beside an accelerator.

They are compiled for the CPU too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.adapters.entry_points import make
from rlbench_suite.adapters.packed_episode import programs
from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.numerics import bit_exact
from rlbench_suite.numerics.process import on_the_cpu

TASK = card("PMSMCurrent-v0")
SEEDS = range(3)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record each choice between the CPU's way to compile and that of other devices.

    True stands for the CPU's way.
    """
    decisions: list[bool] = []
    decide = bit_exact._on_cpu

    def on_cpu() -> bool:
        decisions.append(decide())
        return decisions[-1]

    monkeypatch.setattr(bit_exact, "_on_cpu", on_cpu)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    return decisions


def test_the_way_to_compile_is_that_of_the_device_in_use(ways: list[bool]):
    assert not bit_exact._on_cpu()
    with on_the_cpu():
        assert bit_exact._on_cpu()
    with jax.default_device("cpu"):
        assert bit_exact._on_cpu()


def single(task: Any, actions: np.ndarray) -> np.ndarray:
    programs.cache_clear()
    env = make(task.card.id, split="test")
    env.reset(seed=0)
    return np.stack([env.step(action)[0] for action in actions[0, :20]])


def totals(task: Any, actions: np.ndarray) -> np.ndarray:
    return np.asarray(replay(task, actions, SEEDS).total)


@pytest.mark.parametrize("episodes", [single, totals])
def test_episodes_are_those_of_a_machine_without_an_accelerator(
    episodes: Callable[[Any, np.ndarray], np.ndarray], request: pytest.FixtureRequest
):
    task = TASK.build()
    actions = play(task, reference_player(task), SEEDS).actions
    alone = episodes(task, actions)
    ways = request.getfixturevalue("ways")
    beside = episodes(TASK.build(), actions)
    np.testing.assert_array_equal(alone, beside)
    assert ways
    assert all(ways)


def test_a_platform_that_excludes_the_cpu_is_refused(monkeypatch: pytest.MonkeyPatch):
    def none(platform: str) -> list[jax.Device]:
        raise RuntimeError(f"Unknown backend {platform}")

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "devices", none)
    with pytest.raises(RuntimeError, match="are computed on the CPU, and JAX_PLATFORMS="):
        on_the_cpu()

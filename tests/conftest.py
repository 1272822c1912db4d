"""Every test of the contract runs over every id in the registry: a task without tests cannot exist."""

from __future__ import annotations

import os

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest

from rlbench_suite.card import TaskCard
from rlbench_suite.registry import cards


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "card" in metafunc.fixturenames:
        table = cards()
        metafunc.parametrize("card", table.values(), ids=[card.name for card in table.values()])


@pytest.fixture
def task(card: TaskCard):
    return card.build()

"""The example of training on puzzles runs and learns which way to answer is rewarded."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.of_variants


def test_the_stub_learns_to_think() -> None:
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "train_on_puzzles.py"))
    preferences = example["main"]()
    assert max(preferences, key=preferences.get) == "think"

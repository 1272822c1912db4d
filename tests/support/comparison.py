"""Count the comparisons of solvers with independent engines; see ``conftest.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlbench_suite.puzzle.puzzle import Puzzle

Compared = Callable[[Puzzle[Any], Any], None]
"""Told of an instance for which solver and engine agree."""

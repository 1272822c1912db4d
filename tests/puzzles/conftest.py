"""On how many instances the solvers agree with engines that share no code with them.

``pytest -m engine tests/puzzles`` runs what compares them, of all puzzles, and ends with the table of
``docs/puzzles.md``: different instances that were compared, by the number of their tier.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.puzzle import Puzzle


@pytest.fixture
def compared(request: pytest.FixtureRequest) -> Iterator[Compared]:
    """To be told of each instance for which a test marked ``engine`` has compared solver and engine."""
    marker = request.node.get_closest_marker("engine")
    met: dict[tuple[str, float], set[bytes]] = {}

    def count(puzzle: Puzzle[Any], instance: Any) -> None:
        met.setdefault((puzzle.name, puzzle.tier), set()).add(b"".join(np.asarray(part).tobytes() for part in instance))

    yield count
    found = [(name, tier, len(instances)) for (name, tier), instances in met.items()]
    request.node.user_properties.append(("compared", (marker.args[0], request.node.path.name, found)))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table."""
    if config.option.markexpr != "engine":
        return
    reports = terminalreporter.stats
    passed = {report.nodeid for report in reports.get("passed", ())}
    sizes: dict[tuple[str, str], dict[float, int]] = {}
    engines: dict[tuple[str, str], list[str]] = {}
    for report in reports.get("", ()):  # of the end of each test, when all is counted
        for name, value in report.user_properties if report.nodeid in passed else ():
            if name == "compared":
                engine, file, found = value
                for puzzle, tier, count in found:
                    of_tier = sizes.setdefault((puzzle, file), {})
                    of_tier[tier] = of_tier.get(tier, 0) + count
                    if engine not in engines.setdefault((puzzle, file), []):
                        engines[puzzle, file].append(engine)
    for (puzzle, file), of_tier in sorted(sizes.items()):
        split = ", ".join(f"{tier:g}: {count:,}" for tier, count in sorted(of_tier.items()))
        row = f"| {puzzle} | {sum(of_tier.values()):,} | {split} | {'; '.join(engines[puzzle, file])} | `{file}` |"
        terminalreporter.write_line(row)

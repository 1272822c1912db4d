"""Report on how many instances the solvers agree with engines that share no code with them.

``pytest -m engine tests/puzzles`` runs what compares them, of all puzzles, and ends with the table
of ``docs/audits/puzzles.md``: different instances that were compared, by the number of their tier.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.puzzle.puzzle import Puzzle


@pytest.fixture
def compared(request: pytest.FixtureRequest) -> Iterator[Compared]:
    """Yield a function that takes each instance whose solver and engine were compared.

    Tests marked ``engine`` call it.
    """
    marker = request.node.get_closest_marker("engine")
    digests_by_puzzle: dict[tuple[str, float], set[str]] = {}

    def count(puzzle: Puzzle[Any], instance: Any) -> None:
        content = b"".join(np.asarray(field).tobytes() for field in instance)
        digests_by_puzzle.setdefault((puzzle.name, puzzle.tier), set()).add(
            blake2b(content, digest_size=8).hexdigest()
        )

    yield count
    entries = [(name, tier, sorted(digests)) for (name, tier), digests in digests_by_puzzle.items()]
    request.node.user_properties.append(
        ("compared", (marker.args[0], request.node.path.name, entries))
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table."""
    if config.option.markexpr != "engine":
        return
    reports = terminalreporter.stats
    passed = {report.nodeid for report in reports.get("passed", ())}
    compared: dict[tuple[str, str], dict[float, set[str]]] = {}
    engines: dict[tuple[str, str], set[str]] = {}
    for report in reports.get("", ()):  # of the end of each test, when all is counted
        for name, value in report.user_properties if report.nodeid in passed else ():
            if name == "compared":
                engine, file, entries = value
                for puzzle, tier, digests in entries:
                    compared.setdefault((puzzle, file), {}).setdefault(tier, set()).update(digests)
                    engines.setdefault((puzzle, file), set()).add(engine)
    for (puzzle, file), tiers in sorted(compared.items()):
        sizes = {tier: len(digests) for tier, digests in sorted(tiers.items())}
        split = ", ".join(f"{tier:g}: {size:,}" for tier, size in sizes.items())
        row = (
            f"| {puzzle} | {sum(sizes.values()):,} | {split} | "
            f"{'; '.join(sorted(engines[puzzle, file]))} | `{file}` |"
        )
        terminalreporter.write_line(row)

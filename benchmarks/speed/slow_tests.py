"""List the test functions whose tests take long, for the selection of tests.

    pytest -n 2 --every --junitxml=times.xml
    python benchmarks/speed/slow_tests.py times.xml

It writes ``tests/slow_tests.txt``, and prints how many tests these are and which share of the time
they take. Begin with an empty cache, since a new machine compiles every program.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Annotated
from xml.etree import ElementTree

import typer

ROOT = Path(__file__).parents[2]
SLOW_TESTS = ROOT / "tests" / "slow_tests.txt"
SLOW_SECONDS = 2.5
"""Mean time in s of the tests of a slow function."""


def seconds_by_function(report: Path) -> dict[str, list[float]]:
    """Read the times of the tests of each function, in s, from a JUnit report."""
    times: dict[str, list[float]] = defaultdict(list)
    for test in ElementTree.parse(report).iter("testcase"):
        file = test.attrib["classname"].replace(".", "/")
        function = test.attrib["name"].partition("[")[0]
        times[f"{file}.py::{function}"].append(float(test.attrib["time"]))
    return times


def main(
    report: Annotated[Path, typer.Argument(help="JUnit report of a run with --every.")],
) -> None:
    """Write the list."""
    times = seconds_by_function(report)
    slow_times = {name: seconds for name, seconds in times.items() if mean(seconds) > SLOW_SECONDS}
    SLOW_TESTS.write_text("\n".join(sorted(slow_times)) + "\n")
    slow_tests = sum(map(len, slow_times.values()))
    tests = sum(map(len, times.values()))
    share = sum(map(sum, slow_times.values())) / sum(map(sum, times.values()))
    print(f"{len(slow_times)} functions, {slow_tests} of {tests} tests, {share:.0%} of the time")


if __name__ == "__main__":
    typer.run(main)

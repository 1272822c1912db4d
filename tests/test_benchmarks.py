"""Every measurement is listed, and a page, a test or a docstring quotes it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
FILES = sorted(BENCHMARKS.rglob("*.py"))
READERS = ("docs", "tests", "envs", "rlbench_suite", "baselines", "datasets", "leaderboard")


def test_the_list_has_a_line_for_each_file() -> None:
    listed = []
    for line in (BENCHMARKS / "README.md").read_text().splitlines():
        if folder := re.match(r"\*\*`(\w+)/`", line):
            current_folder = folder[1]
        if file := re.match(r"\| `(\w+\.py)` \|", line):
            listed.append(f"{current_folder}/{file[1]}")
    assert sorted(listed) == sorted(file.relative_to(BENCHMARKS).as_posix() for file in FILES)


def test_each_is_quoted() -> None:
    """A file that another one of its folder imports counts as quoted by it."""
    texts = [
        path.read_text()
        for name in READERS
        for path in (ROOT / name).rglob("*")
        if path.suffix in (".py", ".md")
    ]
    text = "\n".join(texts)
    unquoted = []
    for file in FILES:
        in_pages = f"benchmarks/{file.parent.name}/{file.name}" in text
        importing = re.compile(rf"^(?:from|import) {file.stem}\b|\b{file.name}\b", re.MULTILINE)
        in_folder = any(
            importing.search(path.read_text()) for path in file.parent.glob("*.py") if path != file
        )
        if not in_pages and not in_folder:
            unquoted.append(file.name)
    assert not unquoted

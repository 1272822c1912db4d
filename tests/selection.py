"""Choose the tests of a run.

A *subject* is an id or a test file. A test that a parameter gives an id is about this id, every
other test about its file. A run is one of three: the fixed selection, what has changed and a share
of the rest (``--since``), or all (``--every``). CONTRIBUTING.md says when each is for.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Set
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from math import ceil
from pathlib import Path

import pytest

from rlbench_suite.core.registry import SMOKE, cards
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.source_tree import WINGS

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
TURNS = 5
"""Number of consecutive commits in which each test of what has not changed runs RUNS times."""
RUNS = 3
SLOW_TURNS = 18
"""Number of commits in which a slow test runs once."""
SLOW_TESTS = TESTS / "slow_tests.txt"
"""Functions whose tests take long, one a line.

``benchmarks/speed/slow_tests.py`` measured them.
"""
FILES_PER_FIXED_FILE = 16
"""Number of test files of a folder for one in the fixed selection."""
LAWS = (TESTS, TESTS / "packaging")
"""Folders whose test files always run: laws of the source, the pages and the package."""
FOLLOWED = ("envs/", "baselines/", "datasets/", "leaderboard/", "tests/", "benchmarks/")
FOLLOWED_IN_PACKAGE = ("rlbench_suite/cli/", "rlbench_suite/evaluation/", "rlbench_suite/language/")
"""Folders whose imports count as what a file depends on.

Everything depends on the rest of the package.
"""
SHARED = (TESTS / "support", ROOT / "benchmarks" / "audits", ROOT / "benchmarks" / "speed")
"""Folders on pytest's path (``pythonpath`` in ``pyproject.toml``)."""
OF_VARIANTS = "pytestmark = pytest.mark.of_variants"
IMPORT = re.compile(r"^[ \t]*((?:from\s+\S+\s+)?import\s+(?:\([^)]*\)|[^#\n]*))", re.MULTILINE)
"""An import statement of a file, of one line or in parentheses.

Parsing the whole file takes ten times as long.
"""


def git(*arguments: str) -> str:
    """Return what git prints, or the empty string where it fails or is not there."""
    try:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=30
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


@cache
def slow_tests() -> frozenset[str]:
    """Return the functions whose tests take long, as ``tests/folder/test_file.py::function``."""
    return frozenset(SLOW_TESTS.read_text().split())


@cache
def files_behind(file: Path) -> frozenset[str]:
    """Return a file and those that it imports.

    Imports of imports count in the followed folders only.
    """
    paths: set[str] = set()
    open_files = [file]
    while open_files:
        current = open_files.pop()
        path = current.relative_to(ROOT).as_posix()
        if path in paths:
            continue
        paths.add(path)
        if current == file or path.startswith(FOLLOWED + FOLLOWED_IN_PACKAGE):
            open_files += _imports(current)
    return frozenset(paths)


@cache
def _imports(file: Path) -> list[Path]:
    """List the files that a file imports: modules of the package, and those beside it."""
    candidates: set[Path] = set()
    for statement in IMPORT.findall(file.read_text()):
        try:
            [node] = ast.parse(statement).body
        except (SyntaxError, ValueError):  # a line of prose, or several statements in one
            continue
        if isinstance(node, ast.Import):
            modules = [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = node.module or ""
            names = (package, *(f"{package}.{alias.name}" for alias in node.names))
            modules = [(node.level, name.strip(".")) for name in names]
        for level, name in modules:
            candidates.update(_candidates(file, level, name.split(".")))
    return [path for path in candidates if path.is_file()]


def _candidates(file: Path, level: int, name: list[str]) -> list[Path]:
    """Return where a module would lie.

    It lies below the package's folders, beside the file that imports it, or in SHARED.
    """
    folders = [file.parents[max(0, level - 1)]]
    if not level and name[0] == "rlbench_suite":
        name = name[1:]
        folders = [ROOT if name and name[0] in WINGS else ROOT / "rlbench_suite"]
    elif not level:
        folders += SHARED
    paths = [folder.joinpath(*name) for folder in folders]
    return [
        *(path.with_name(f"{path.name}.py") for path in paths),
        *(path / "__init__.py" for path in paths),
    ]


@cache
def files_of_module(module: str) -> frozenset[str]:
    """Return the files that a module of the package is made of, inside the wings."""
    files = [path for path in _candidates(ROOT, 0, module.split(".")) if path.is_file()]
    paths: set[str] = set().union(*map(files_behind, files))
    return frozenset(path for path in paths if path.startswith(FOLLOWED))


def files_of_card(card: TaskCard) -> frozenset[str]:
    """Return the files of a task, its player and its puzzle, and its golden trajectory.

    Files outside the wings are left out.

    A new id that shares the code of others, and differs by the settings of its card, is known by
    its new trajectory.
    """
    entry_points = filter(None, (card.entry_point, card.reference, card.puzzle))
    modules = {entry_point.partition(":")[0] for entry_point in entry_points}
    return frozenset({f"tests/adapters/golden/{card.name}.json"}).union(
        *map(files_of_module, modules)
    )


@cache
def files_of_test(file: Path) -> frozenset[str]:
    """Return the files that a test file imports, or that make an id it names."""
    names = {*re.findall(r"\w+-v\d+", file.read_text())}
    named_cards = [card for card in cards().values() if card.name in names]
    return files_behind(file).union(*map(files_of_card, named_cards))


def number(subject: str) -> int:
    """Return a number that depends on the name of a subject only."""
    return int.from_bytes(blake2b(subject.encode(), digest_size=8).digest())


@cache
def fixed_files() -> frozenset[Path]:
    """Return the test files of the fixed selection.

    They are the laws, and some of each other folder that are not about variants.
    """
    selected_files: set[Path] = set()
    for folder in {path.parent for path in TESTS.rglob("test_*.py")}:
        files = [*folder.glob("test_*.py")]
        if folder not in LAWS:
            files = sorted(
                (path for path in files if OF_VARIANTS not in path.read_text()), key=_number_of_file
            )
            files = files[: ceil(len(files) / FILES_PER_FIXED_FILE)]
        selected_files.update(files)
    return frozenset(selected_files)


def _number_of_file(path: Path) -> int:
    return number(path.stem)


@dataclass(frozen=True)
class Selection:
    """Rule by which one run chooses its tests."""

    every: bool = False
    """True where nothing is left out."""
    base: str | None = None
    """Commit since which changes count, empty where git knows none; None for the fixed selection.
    """
    turn: int = 0
    """Number of commits before this one."""
    changed: frozenset[str] = frozenset()
    """Files that have changed since, those that are not committed too, as paths below the root."""

    @classmethod
    def of_run(cls, config: pytest.Config) -> Selection:
        """Read the rule from the command line and from git."""
        paths = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
        if (
            config.getoption("--every")
            or config.option.keyword
            or config.option.markexpr
            or paths != {TESTS}
        ):
            return cls(every=True)
        since = config.getoption("--since")
        if not since:
            return cls()
        base = git("merge-base", since, "HEAD") or git("rev-parse", "--verify", "--quiet", "HEAD^")
        if not base:
            return cls(base="")
        changes = (
            f"{git('diff', '--name-only', base)}\n"
            f"{git('ls-files', '--others', '--exclude-standard')}"
        )
        return cls(
            base=base,
            turn=int(git("rev-list", "--count", "HEAD")),
            changed=frozenset(changes.split("\n")),
        )

    def has_turn(self, subject: str, slow: bool) -> bool:
        """Tell whether a subject that has not changed runs at this commit."""
        turns, runs = (SLOW_TURNS, 1) if slow else (TURNS, RUNS)
        return self.base is not None and (number(subject) + self.turn) % turns < runs

    @cached_property
    def needed_ids(self) -> frozenset[str]:
        """Ids that run in any case, and their names.

        They have changed, or are of the suite ``smoke``.
        """
        needed_cards = [
            card
            for card in cards().values()
            if card.id in SMOKE or not self.changed.isdisjoint(files_of_card(card))
        ]
        return frozenset(name for card in needed_cards for name in (card.id, card.name))

    @cached_property
    def needed_files(self) -> frozenset[Path]:
        """Test files that run in any case.

        They are laws, the fixed selection, and what depends on what has changed.
        """
        files = frozenset(TESTS.rglob("test_*.py"))
        if self.base is None:
            return fixed_files()
        return frozenset(
            file
            for file in files
            if file.parent in LAWS or not self.changed.isdisjoint(files_of_test(file))
        )

    def runs(self, file: Path, parameters: Set[str] = frozenset(), slow: bool = False) -> bool:
        """Tell whether a test runs.

        Args:
            file: file of the test.
            parameters: strings among its parameters.
            slow: whether it takes long.
        """
        if self.every:
            return True
        ids = parameters & all_names()
        if not ids and self.base is None:
            return file in self.needed_files and not slow
        if not ids:
            return file in self.needed_files or self.has_turn(file.stem, slow)
        if file.relative_to(ROOT).as_posix() in self.changed or not ids.isdisjoint(self.needed_ids):
            return True
        return any(self.has_turn(name.removeprefix("rlsuite/"), slow) for name in ids)

    def __str__(self) -> str:
        """Say in one line what runs and what does not."""
        if self.every:
            return "selection: every test"
        files = [*TESTS.rglob("test_*.py")]
        ids = [task_id for task_id in cards() if self.runs(TESTS, {task_id})]
        line = (
            f"selection: {len(ids)} of {len(cards())} ids and {sum(map(self.runs, files))} of "
            f"{len(files)} test files"
        )
        if self.base:
            line += f", all that has changed since {self.base[:12]} among them"
        return f"{line}, without most slow tests; pytest --every runs the others too"


@cache
def all_names() -> frozenset[str]:
    """Return all ids and their names."""
    return frozenset(name for card in cards().values() for name in (card.id, card.name))

"""Choose the tests of a run: those of all that has changed, and a part of the rest that changes with every commit.

A *subject* is what takes turns: an id, a further difficulty of an id, or a test file. Variants (``TaskCard.variant``)
and files marked ``of_variants`` have fewer turns than ids of the suite ``all`` and other files.
``python tests/selection.py`` prints the table of CONTRIBUTING.md.
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

from rlbench_suite.registry import SMOKE, cards
from rlbench_suite.task_card import TaskCard

ROOT = Path(__file__).parents[1]
CORE_PART = 6
"""Number of runs in which an id of ``all`` or a test file has one turn, where nothing it depends on has changed."""
PART = 12
"""The same number for variants, further difficulties and files about variants."""
KERNEL_PART = 8
"""The latter number where the kernel has changed, on which every id depends."""
MOST = 16
"""Number of changed variants up to which all of them run. Of more, about so many run."""
KERNEL = ("rlbench_suite/", "tests/adapters/", "tests/test_contract.py", "tests/conftest.py", "constraints.txt")
NOT_KERNEL = ("rlbench_suite/cli/", "rlbench_suite/evaluation/", "rlbench_suite/language/", "tests/adapters/golden/")
ALWAYS = ("tests", "tests/adapters", "tests/packaging", "tests/bridges", "tests/peers")
"""Folders whose test files always run: laws, the contract, what every chosen id must pass, and other libraries."""
WINGS = ("envs", "baselines", "datasets", "leaderboard")
IMPORT = re.compile(r"^[ \t]*((?:from\s+\S+\s+)?import\s+(?:\([^)]*\)|[^#\n]*))", re.MULTILINE)
"""An import statement of a file, of one line or in parentheses: parsing the whole file takes ten times as long."""
OF_VARIANTS = "pytestmark = pytest.mark.of_variants"

TABLE = f"""\
| What | When it runs |
| --- | --- |
| Laws of the source, of the cards and of the pages, components of every space, the toy tasks and those \
broken on purpose | always |
| Ids of the suite `smoke`: contract, golden trajectory, adapters | always |
| Other ids of the suite `all`: the same; a test file, of a family or of a part of the package | one in {CORE_PART} |
| The same, where code that makes the id or that the file imports has changed, or the kernel, its tests or \
`constraints.txt` | always |
| A variant: the same, and its one-shot form; a difficulty other than the default; a test file marked `of_variants` \
| one in {PART}; where the kernel has changed, one in {KERNEL_PART} |
| A variant, where code below `envs/` that makes it has changed, or its golden trajectory; such a file, where code \
that it imports or that makes an id it names has changed, or the file itself \
| always; where more than {MOST} variants have changed, about {MOST} of them |
| Tests that `-k`, `-m` or the path of a file names | always |
| Everything | `pytest --every` |
"""


def git(*arguments: str) -> str:
    """Return what git prints, or the empty string where it fails or is not there."""
    try:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def is_kernel(file: str) -> bool:
    """Tell whether every id depends on a file, given as a path below the root."""
    return file.startswith(KERNEL) and not file.startswith(NOT_KERNEL)


@cache
def imported_files(file: Path) -> frozenset[Path]:
    """Find the files outside the kernel that a file imports, directly or not; and the file itself."""
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imports(file)
    return frozenset(found)


@cache
def _imports(file: Path) -> list[Path]:
    """List the files outside the kernel that a file imports: modules of the package, and those beside it."""
    found: set[Path] = set()
    for statement in IMPORT.findall(file.read_text()):
        try:
            [node] = ast.parse(statement).body
        except (SyntaxError, ValueError):  # a line of prose, or several statements in one
            continue
        if isinstance(node, ast.Import):
            names = [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = node.module or ""
            names = [(node.level, name.strip(".")) for name in (package, *(f"{package}.{n.name}" for n in node.names))]
        found.update(place for level, name in names for place in _places(file, level, name.split(".")))
    return [place for place in found if place.is_file() and not is_kernel(place.relative_to(ROOT).as_posix())]


def _places(file: Path, level: int, name: list[str]) -> tuple[Path, Path]:
    """Return where a module would lie: below the package's folders, else beside the file that imports it."""
    folder = file.parents[max(0, level - 1)]
    if not level and name[0] == "rlbench_suite":
        name = name[1:]
        folder = ROOT if name and name[0] in WINGS else ROOT / "rlbench_suite"
    path = folder.joinpath(*name)
    return path.with_name(f"{path.name}.py"), path / "__init__.py"


@cache
def code_of_modules(modules: frozenset[str]) -> frozenset[Path]:
    """Find the files outside the kernel that modules are made of."""
    files = (_places(ROOT, 0, module.split("."))[0] for module in modules)
    return frozenset().union(*(imported_files(file) for file in files if file.is_file()))


def code_of(card: TaskCard) -> frozenset[Path]:
    """Find the files that make a task, its player and its puzzle, outside the kernel; and its golden trajectory.

    A new id that shares the code of others, and differs by the settings of its card, is known by its new trajectory.
    """
    modules = frozenset(place.partition(":")[0] for place in (card.entry_point, card.reference, card.puzzle) if place)
    return {ROOT / "tests" / "adapters" / "golden" / f"{card.name}.json"} | code_of_modules(modules)


@dataclass(frozen=True)
class Selection:
    """Rule by which one run chooses its tests."""

    every: bool
    """True where nothing is left out."""
    commit: str
    """Commit, or the version of the package where there is no git."""
    base: str
    """Commit since which changes count; empty where there is none."""
    changed: frozenset[str]
    """Files that have changed since, those that are not committed too, as paths below the root."""

    @classmethod
    def of_run(cls, config: pytest.Config) -> Selection:
        """Read the rule from the command line and from git."""
        named = any(Path(argument.partition("::")[0]).is_file() for argument in config.args)
        every = bool(config.getoption("--every") or config.option.keyword or config.option.markexpr or named)
        commit = git("rev-parse", "--short=12", "HEAD")
        if not commit:
            from rlbench_suite import __version__

            return cls(every, __version__, "", frozenset())
        since = config.getoption("--since") or git("describe", "--tags", "--abbrev=0", "HEAD^")
        base = git("merge-base", since, "HEAD") if since else ""
        base = base or git("rev-parse", "--verify", "--quiet", "HEAD^")
        files = [git("diff", "--name-only", base), git("ls-files", "--others", "--exclude-standard")] if base else []
        return cls(every, commit, base, frozenset("\n".join(files).split("\n")))

    def differs(self, files: Set[Path]) -> bool:
        """Tell whether one of the files has changed."""
        return not self.changed.isdisjoint(file.relative_to(ROOT).as_posix() for file in files)

    @cached_property
    def kernel_changed(self) -> bool:
        """True where something has changed on which every id depends."""
        return any(map(is_kernel, self.changed))

    @cached_property
    def part(self) -> int:
        """Number of runs in which a variant has one turn, where its own code has not changed."""
        return KERNEL_PART if self.kernel_changed else PART

    @cached_property
    def changed_ids(self) -> set[str]:
        """Names of the variants whose code has changed."""
        return {card.name for card in variants() if self.differs(code_of(card))}

    @cached_property
    def changed_part(self) -> int:
        """Number of runs in which a variant has one turn, where its own code has changed."""
        return max(1, ceil(len(self.changed_ids) / MOST))

    def has_turn(self, subject: str, part: int) -> bool:
        """Tell whether the turn of a subject comes at this commit, which it does at one in ``part`` commits."""
        digest = blake2b(f"{subject} {self.commit}".encode(), digest_size=8).digest()
        return self.every or int.from_bytes(digest) < 2**64 / part

    def runs_card(self, card: TaskCard) -> bool:
        """Tell whether the tests of an id run."""
        if card.variant:
            return self.has_turn(card.name, self.changed_part if card.name in self.changed_ids else self.part)
        changed = self.kernel_changed or card.id in SMOKE or self.differs(code_of(card))
        return changed or self.has_turn(card.name, CORE_PART)

    def runs_file(self, file: Path) -> bool:
        """Tell whether a test file runs."""
        if self.differs({file}):
            return True
        tested = code_under_test(file)
        if is_of_variants(file):
            return self.has_turn(file.stem, self.changed_part if self.differs(tested) else self.part)
        always = file.parent.relative_to(ROOT).as_posix() in ALWAYS
        return always or self.kernel_changed or self.differs(tested) or self.has_turn(file.stem, CORE_PART)

    def runs_tier(self, subject: str) -> bool:
        """Tell whether tests of a difficulty beside the default run; the subject names them."""
        return self.has_turn(subject, self.part)

    def __str__(self) -> str:
        """Say in one line what runs and what does not."""
        if self.every:
            return "selection: every id, difficulty and file"
        files = [*(ROOT / "tests").rglob("test_*.py")]
        core = [card for card in cards().values() if not card.variant and card.installed]
        return (
            f"selection: {sum(map(self.runs_card, core))} of {len(core)} ids of the suite all, "
            f"{sum(map(self.runs_card, variants()))} of {len(variants())} variants, "
            f"{sum(map(self.runs_file, files))} of {len(files)} test files, by a hash of name and {self.commit}"
            f"{f'; what has changed since {self.base[:12]} runs' if self.base else ''}. All: pytest --every"
        )


@cache
def is_of_variants(file: Path) -> bool:
    """Tell whether a test file says that it takes turns."""
    return OF_VARIANTS in file.read_text()


@cache
def code_under_test(file: Path) -> frozenset[Path]:
    """Find the files outside the kernel that a test file imports, or that make an id it names."""
    return imported_files(file).union(*map(code_of, named_cards(file)))


@cache
def named_cards(file: Path) -> tuple[TaskCard, ...]:
    """List the cards whose names a test file has."""
    names = {*re.findall(r"\w+-v\d+", file.read_text())}
    return tuple(card for card in cards().values() if card.name in names)


@cache
def variants() -> tuple[TaskCard, ...]:
    """List the cards that take turns and whose simulators are here."""
    return tuple(card for card in cards().values() if card.variant and card.installed)


if __name__ == "__main__":
    print(TABLE, end="")

"""Test which tests a run selects.

A plain run is fixed; a run since a commit tests all that has changed, and in a few commits all of
the rest.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import selection
from selection import (
    FILES_PER_FIXED_FILE,
    ROOT,
    RUNS,
    SLOW_TURNS,
    TESTS,
    TURNS,
    Selection,
    files_behind,
    files_of_card,
)

from rlbench_suite.core import registry
from rlbench_suite.core.registry import SMOKE, card, cards
from rlbench_suite.numerics import waiting

FIXED = Selection()


def since(*changed: str, turn: int = 0) -> Selection:
    """Return the selection of a run that changed some files."""
    return Selection(base="abc", turn=turn, changed=frozenset(changed))


def path_of(module: ModuleType) -> str:
    """Return the file of a module below the root, which the installed package does not lie in."""
    return f"{module.__name__.replace('.', '/')}.py"


def find_test(name: str) -> Path:
    [path] = TESTS.rglob(name)
    return path


def configuration(
    *args: str, keyword: str = "", every: bool = False, since: str | None = None
) -> Any:
    """Return as much of pytest's configuration as a selection reads."""
    options = {"--every": every, "--since": since}
    return SimpleNamespace(
        args=args or (str(TESTS),),
        option=SimpleNamespace(keyword=keyword, markexpr=""),
        getoption=options.get,
    )


def ids(run: Selection, slow: bool = False) -> set[str]:
    """Return the names of the ids whose tests run, in files that have not changed."""
    return {
        task_card.name for task_card in cards().values() if run.runs(TESTS, {task_card.name}, slow)
    }


def files(run: Selection, slow: bool = False) -> set[Path]:
    """Return the files whose tests run that are not about an id."""
    return {path for path in TESTS.rglob("test_*.py") if run.runs(path, set(), slow)}


def test_a_plain_run_has_the_ids_of_smoke_the_laws_and_files_of_each_folder() -> None:
    assert ids(FIXED) == {card(name).name for name in SMOKE}
    assert set(TESTS.glob("test_*.py")) < files(FIXED)
    core_files = [
        path for path in TESTS.rglob("test_*.py") if selection.OF_VARIANTS not in path.read_text()
    ]
    assert {path.parent for path in core_files} == {path.parent for path in files(FIXED)}
    assert len(files(FIXED)) < len(core_files) * 2 / 3


def test_a_plain_run_has_slow_tests_of_the_ids_of_smoke_only() -> None:
    assert ids(FIXED, slow=True) == ids(FIXED)
    assert not files(FIXED, slow=True)


def test_the_slow_tests_are_functions_of_the_files_that_the_list_names() -> None:
    assert selection.slow_tests()
    for name in selection.slow_tests():
        path, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / path).read_text(), name


def test_a_plain_run_asks_nothing_of_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "git", lambda *arguments: pytest.fail("git was asked"))
    assert Selection.of_run(configuration()) == FIXED


@pytest.mark.parametrize(("slow", "turns", "count"), [(False, TURNS, RUNS), (True, SLOW_TURNS, 1)])
def test_each_id_and_file_runs_as_often_in_as_many_commits_as_there_are_turns(
    slow: bool, turns: int, count: int
) -> None:
    for first in (5, 100):
        runs = [since(turn=first + step) for step in range(turns)]
        running_ids = Counter(name for run in runs for name in ids(run, slow))
        running_files = Counter(path for run in runs for path in files(run, slow))
        for task_card in cards().values():
            assert running_ids[task_card.name] == (turns if task_card.id in SMOKE else count)
        for path in TESTS.rglob("test_*.py"):
            assert running_files[path] == (turns if path.parent in selection.LAWS else count)


def test_a_turn_has_its_share_of_the_ids() -> None:
    """The ids of the suite ``smoke`` run at every turn."""
    share = len(SMOKE) + (len(cards()) - len(SMOKE)) * RUNS / TURNS
    assert len(ids(since())) == pytest.approx(share, rel=0.25)


@pytest.mark.parametrize(
    "name", ["Highway-v0", "Zebra-v0", "SCIMTorque-v0", "QuadcopterHoverRough-v0"]
)
def test_an_id_runs_whenever_its_code_or_its_golden_trajectory_has_changed(name: str) -> None:
    module = card(name).entry_point.partition(":")[0]
    code = "/".join(module.split(".")[1:]) + ".py"
    for path in (code, f"tests/adapters/golden/{name}.json"):
        assert (ROOT / path).is_file()
        assert path in files_of_card(card(name))
        assert all(name in ids(since(path, turn=turn)) for turn in range(TURNS))


def test_a_file_of_the_kernel_is_no_change_of_an_id() -> None:
    assert ids(since(path_of(registry))) == ids(since())


@pytest.mark.parametrize(
    ("name", "behind"),
    [
        ("test_zebra.py", "tests/puzzles/logic/test_zebra.py"),  # itself
        ("test_registry.py", path_of(registry)),  # the kernel's own test
        ("test_pack.py", "tests/leaderboard/forgery.py"),  # what lies beside it
        ("test_pack.py", "leaderboard/archive.py"),
        ("test_query.py", "tests/support/made_runs.py"),
        ("test_yardsticks.py", "benchmarks/audits/rules_of_thumb.py"),
        (
            "test_rearrangement.py",
            "envs/puzzles/moves/sliding.py",
        ),  # the code of an id that it names
        ("test_routes.py", "envs/puzzles/routes/maze.py"),
    ],
)
def test_a_file_runs_whenever_what_it_depends_on_has_changed(name: str, behind: str) -> None:
    assert (ROOT / behind).is_file()
    assert all(find_test(name) in files(since(behind, turn=turn)) for turn in range(TURNS))


def test_what_the_kernel_imports_is_not_behind_a_file() -> None:
    paths = files_behind(find_test("test_yardsticks.py"))
    assert path_of(registry) in paths
    assert path_of(waiting) not in paths


def test_a_test_about_an_id_goes_with_the_id_and_others_with_their_file() -> None:
    file = find_test("test_zebra.py")
    turns = [since(turn=turn) for turn in range(TURNS)]
    assert (
        sorted(run.runs(file, {"Zebra-v0", "easy"}) for run in turns)
        == [False] * (TURNS - RUNS) + [True] * RUNS
    )
    assert [run.runs(file, {"easy"}) for run in turns] == [run.runs(file) for run in turns]
    assert FIXED.runs(file, {"SAT-v0"})
    assert since("tests/puzzles/logic/test_zebra.py").runs(file, {"Zebra-v0"})
    assert since("tests/puzzles/logic/test_zebra.py", turn=1).runs(file, {"Zebra-v0"})


def test_names_paths_and_every_leave_nothing_out() -> None:
    for configured in (
        configuration(every=True),
        configuration(keyword="Zebra"),
        configuration(str(TESTS / "motor")),
        configuration(f"{TESTS}/test_laws.py::test_nothing_of_one_machine"),
    ):
        run = Selection.of_run(configured)
        assert ids(run, slow=True) == {task_card.name for task_card in cards().values()}
        assert files(run, slow=True) == set(TESTS.rglob("test_*.py"))
    assert str(run) == "selection: every test"


@pytest.mark.parametrize(
    ("commit", "base"), [("main~9", "fork of main~9"), ("0000", "HEAD^")]
)  # hosted CI says zeros for a new branch
def test_changes_count_since_the_commit_that_is_given(
    monkeypatch: pytest.MonkeyPatch, commit: str, base: str
) -> None:
    def git(*arguments: str) -> str:
        match arguments:
            case "merge-base", commit, "HEAD":
                return "" if commit == "0000" else f"fork of {commit}"
            case "rev-parse", *_, revision:
                return revision
            case "rev-list", *_:
                return "7"
            case "ls-files", *_:
                return "tests/new.py"
        return "envs/changed.py" if arguments == ("diff", "--name-only", base) else ""

    monkeypatch.setattr(selection, "git", git)
    run = Selection.of_run(configuration(since=commit))
    assert run == Selection(
        base=base, turn=7, changed=frozenset({"envs/changed.py", "tests/new.py"})
    )


def test_without_git_nothing_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "git", lambda *arguments: "")
    run = Selection.of_run(configuration(since="HEAD^"))
    assert run == Selection(base="")
    assert ids(run) > ids(FIXED)


def test_a_run_begins_with_what_it_leaves_out(tmp_path: Path) -> None:
    assert str(FIXED).startswith(f"selection: {len(SMOKE)} of {len(cards())} ids")
    assert str(FIXED).endswith("pytest --every runs the others too")
    pytest_here = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(ROOT),
    ]
    command = [*pytest_here, "--collect-only", "-p", "no:cacheprovider", str(TESTS / "plugin")]
    output = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path
    ).stdout
    assert output.startswith("selection: ")


def test_the_docs_say_the_shares() -> None:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    assert f"one in {FILES_PER_FIXED_FILE} of the other test files" in text
    assert f"and {RUNS}/{TURNS} of everything else (1/{SLOW_TURNS} of the slow tests)" in text

"""Whatever has changed runs, the rest takes turns, and nothing is left out for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import selection
from selection import (
    CORE_PART,
    KERNEL_PART,
    MOST,
    PART,
    ROOT,
    TABLE,
    Selection,
    code_of,
    imported_files,
    is_of_variants,
    variants,
)

from rlbench_suite.registry import SMOKE, cards
from rlbench_suite.task_card import TaskCard


def at(*changed: str, commit: str = "abc", every: bool = False) -> Selection:
    """Make the selection of a commit that changed some files."""
    return Selection(every, commit, "base", frozenset(changed))


def chosen(selection: Selection) -> set[str]:
    """Name the variants that run."""
    return {card.name for card in variants() if selection.runs_card(card)}


def core(selection: Selection) -> set[str]:
    """Name the ids of the suite ``all`` that run."""
    return {card.name for card in cards().values() if not card.variant and selection.runs_card(card)}


def core_cards() -> list[TaskCard]:
    return [card for card in cards().values() if not card.variant]


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    assert TABLE in (ROOT / "CONTRIBUTING.md").read_text()


def test_every_variant_and_file_has_its_turn() -> None:
    runs = [at(commit=f"commit {number}") for number in range(12 * PART)]
    names = [chosen(run) for run in runs]
    assert set().union(*names) == {card.name for card in variants()}
    assert sum(map(len, names)) == pytest.approx(len(variants()) * 12, rel=0.1)
    files = [file for file in (ROOT / "tests").rglob("test_*.py") if is_of_variants(file)]
    assert files
    assert all(any(run.runs_file(file) for run in runs) for file in files)


def test_an_id_of_all_and_a_file_take_turns_too() -> None:
    runs = [at(commit=f"commit {number}") for number in range(8 * CORE_PART)]
    smoke = {card.name for card in core_cards() if card.id in SMOKE}
    others = [core(run) - smoke for run in runs]
    assert all(smoke <= core(run) for run in runs)
    assert set().union(*others) == {card.name for card in core_cards()} - smoke
    assert sum(map(len, others)) == pytest.approx(len(runs) / CORE_PART * (len(core_cards()) - len(smoke)), rel=0.15)
    [file] = (ROOT / "tests").rglob("test_highway.py")
    assert 0 < sum(run.runs_file(file) for run in runs) < len(runs)
    assert all(run.runs_file(ROOT / "tests" / "test_laws.py") for run in runs)


@pytest.mark.parametrize("changed", ["envs/driving/traffic/car_following.py", "rlbench_suite/episode.py"])
def test_an_id_of_all_and_its_file_run_whenever_their_code_or_the_kernel_has_changed(changed: str) -> None:
    assert (ROOT / changed).is_file()
    [file] = (ROOT / "tests").rglob("test_highway.py")
    [highway] = [card.name for card in core_cards() if card.name.startswith("Highway-v")]
    for number in range(2 * CORE_PART):
        assert highway in core(at(changed, commit=str(number)))
        assert at(changed, commit=str(number)).runs_file(file)


def test_a_file_of_a_part_of_the_package_runs_whenever_that_part_has_changed() -> None:
    [file] = (ROOT / "tests").rglob("test_pack.py")
    for changed in (
        "leaderboard/archive.py",
        "rlbench_suite/evaluation/statistics/aggregates.py",
        "tests/leaderboard/forgery.py",
    ):
        assert (ROOT / changed).is_file()
        assert all(at(changed, commit=str(number)).runs_file(file) for number in range(2 * CORE_PART))
        assert len(core(at(changed))) < len(core_cards())


def test_the_same_commit_gives_the_same_part() -> None:
    assert chosen(at()) == chosen(at()) != chosen(at(commit="other"))


@pytest.mark.parametrize("name", ["Zebra-v0", "SCIMTorque-v0", "QuadcopterHoverRough-v0"])
def test_a_variant_runs_whenever_its_code_has_changed(name: str) -> None:
    [card] = [card for card in variants() if card.name == name]
    own = ROOT.joinpath(*card.entry_point.partition(":")[0].split(".")[1:]).with_suffix(".py")
    file = own.relative_to(ROOT).as_posix()
    for number in range(PART):
        run = at(file, commit=str(number))
        assert own in code_of(card)
        assert card.name in run.changed_ids
        assert run.runs_card(card) or len(run.changed_ids) > MOST


def test_a_new_id_is_known_by_its_golden_trajectory() -> None:
    run = at("tests/adapters/golden/Zebra-v0.json", "envs/puzzles/logic/cards.py")
    assert run.changed_ids == {"Zebra-v0"}
    assert run.part == PART


def test_a_file_about_variants_runs_whenever_it_or_what_it_imports_has_changed() -> None:
    [file] = (ROOT / "tests").rglob("test_zebra.py")
    [task] = [code for code in imported_files(file) if code.name == "zebra.py"]
    for code in (file, task):
        assert all(at(code.relative_to(ROOT).as_posix(), commit=str(n)).runs_file(file) for n in range(PART))


@pytest.mark.parametrize(
    ("changed", "file"),
    [
        ("envs/puzzles/moves/sliding.py", "test_rearrangement.py"),
        ("envs/puzzles/routes/maze.py", "test_routes.py"),
    ],
)
def test_a_file_depends_on_the_code_of_the_ids_it_names(changed: str, file: str) -> None:
    assert (ROOT / changed).is_file()
    [path] = (ROOT / "tests").rglob(file)
    assert all(at(changed, commit=str(n)).runs_file(path) for n in range(PART))


def test_more_runs_where_the_kernel_has_changed() -> None:
    assert at("rlbench_suite/episode.py").part == at("tests/test_contract.py").part == KERNEL_PART
    assert at("rlbench_suite/cli/suite.py", "docs/index.md", "envs/motor/tasks/cards.py").part == PART
    assert chosen(at()) < chosen(at("rlbench_suite/episode.py"))


def test_where_very_much_has_changed_about_so_many_run() -> None:
    everything = [file.relative_to(ROOT).as_posix() for file in (ROOT / "envs").rglob("*.py")]
    counts = [len(chosen(at(*everything, commit=str(number)))) for number in range(5)]
    assert all(MOST / 2 < count < 2 * MOST for count in counts), counts


def test_nothing_takes_turns_where_all_is_asked_for() -> None:
    assert len(chosen(at(every=True))) == len(variants())
    assert at(every=True).runs_tier("SAT-v0 hard")
    assert "every id" in str(at(every=True))
    assert core(at(every=True)) == {card.name for card in core_cards()}
    assert f"{len(chosen(at()))} of {len(variants())} variants" in str(at())
    assert str(at()).endswith("All: pytest --every")


def test_names_and_files_run_whole_and_without_git_the_version_is_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*args: str, keyword: str = "", every: bool = False) -> Selection:
        options = {"--every": every, "--since": None}
        config: Any = SimpleNamespace(
            args=args, option=SimpleNamespace(keyword=keyword, markexpr=""), getoption=options.get
        )
        return Selection.of_run(config)

    tests = str(ROOT / "tests")
    assert not run(tests).every
    assert run(tests, every=True).every
    assert run(tests, keyword="Zebra").every
    assert run(f"{tests}/test_laws.py::test_nothing_of_one_machine").every
    monkeypatch.setattr(selection, "git", lambda *arguments: "")
    from rlbench_suite import __version__

    assert run(tests) == Selection(False, __version__, "", frozenset())


@pytest.mark.parametrize(("since", "base"), [("main~9", "fork of main~9"), (None, "fork of v3"), ("0000", "HEAD^")])
def test_changes_count_since_the_commit_asked_for_or_the_last_tag(
    monkeypatch: pytest.MonkeyPatch, since: str | None, base: str
) -> None:
    def git(*arguments: str) -> str:
        match arguments:
            case "describe", *_:
                return "v3"
            case "merge-base", commit, "HEAD":
                return "" if commit == "0000" else f"fork of {commit}"  # hosted CI says zeros for a new branch
            case "rev-parse", *_, revision:
                return revision
        return "envs/changed.py" if arguments == ("diff", "--name-only", base) else ""

    monkeypatch.setattr(selection, "git", git)
    options = {"--every": False, "--since": since}
    config: Any = SimpleNamespace(
        args=["tests"], option=SimpleNamespace(keyword="", markexpr=""), getoption=options.get
    )
    assert Selection.of_run(config).base == base
    assert "envs/changed.py" in Selection.of_run(config).changed


def test_a_run_begins_with_what_it_leaves_out(tmp_path: Path) -> None:
    pytest_here = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    command = [*pytest_here, "--collect-only", "-p", "no:cacheprovider", str(ROOT / "tests" / "plugin")]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    assert shown.startswith("selection: ")

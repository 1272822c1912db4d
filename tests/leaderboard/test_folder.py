"""Test directories that others can write to.

Files put there without ``submit`` take nothing from those who used it.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from forgery import DRIFT, WALK, Forgery

from rlbench_suite.cli import leaderboard as program
from rlbench_suite.leaderboard import folder as folders
from rlbench_suite.leaderboard.copies import DIGITS, MIN_TELLING_EPISODES, copied_tasks
from rlbench_suite.leaderboard.site import Site, build
from rlbench_suite.leaderboard.submit import submit

pytestmark = pytest.mark.usefixtures("here")
ADA, MALLORY = ("Ada Lovelace",), ("Mallory",)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def ranked_titles(site: Site) -> list[str]:
    (board,) = [board for board in site.boards if board.suite == "toys"]
    return [place.standing.title for place in board.ranking]


def test_of_names_that_differ_in_capital_letters_the_first_in_the_log_wins(
    packed: Callable[..., Path], tmp_path: Path
):
    folder = submit(packed(authors=ADA), tmp_path / "subs")[0].parent
    # TOY stands before toy in every order of names.
    shutil.copy(packed("random", name="TOY", authors=MALLORY), folder)
    built = build(folder, tmp_path / "site")
    assert ranked_titles(built) == ["toy-v1"]
    assert "Another archive of TOY-v1 arrived first" in built.refused["TOY-v1.zip"][0]


def mix_entries(
    packed: Callable[..., Path], path: Path, name: str, authors: tuple[str, ...], version: int = 1
) -> Path:
    """Mix the walk of ``toy`` and the drift of ``random``.

    One task of either is not most of its episodes.
    """
    forged, filler = Forgery(packed()), Forgery(packed("random"))
    forged.claims["entry"] |= {"name": name, "authors": [*authors], "version": version}
    tasks = forged.claims["tasks"]
    tasks[:] = [filler.task(DRIFT) if claim["task"] == DRIFT else claim for claim in tasks]
    for kind in ("episodes", "actions"):
        forged.members[forged.member(kind, DRIFT)] = filler.members[filler.member(kind, DRIFT)]
    forged.settle()
    return forged.write(path)


def odd_entries(folder: Path, archive: Path) -> set[str]:
    """Make everything that may be called .zip and is no plain file.

    Return the names as they are to be shown.
    """
    (folder / "folder-v1.zip").mkdir()
    links = {
        "dangling": "/nonexistent",
        "loop": "loop-v1.zip",
        "zero": "/dev/zero",
        "memory": "/proc/self/mem",
    }
    for name, target in {**links, "outside": str(archive)}.items():
        os.symlink(target, folder / f"{name}-v1.zip")
    os.mkfifo(folder / "pipe-v1.zip")
    for name in (b"\xff.zip", b"a\n<b>\x1b[31m.zip", b"[bold].zip"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("x")
    return {
        *(f"{name}-v1.zip" for name in ("folder", "pipe", "outside", *links)),
        "\\udcff.zip",
        "a\\n<b>\\x1b[31m.zip",
        "[bold].zip",
    }


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes in directories")
def test_what_is_no_plain_file_is_refused_by_name_and_the_others_are_judged(
    packed: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    folder = submit(packed(), tmp_path / "subs")[0].parent
    names = odd_entries(folder, packed("random", name="outside"))
    submit(packed("random"), folder)
    built = build(folder, tmp_path / "site")
    assert ranked_titles(built) == ["toy-v1", "random-v1"]
    assert set(built.refused) == names
    assert "is not a plain file" in built.refused["pipe-v1.zip"][0]
    assert "&lt;b&gt;\\x1b[31m.zip" in (tmp_path / "site" / "index.html").read_text()
    with pytest.raises(ValueError, match=r"There is already a file .*folder-v1\.zip"):
        submit(mix_entries(packed, tmp_path / "new.zip", "folder", ADA), folder)
    monkeypatch.setattr(program, "_prepare", lambda: None)
    with pytest.raises(SystemExit):
        program.app(["build", str(folder), str(tmp_path / "site")])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(names)
    assert all(line.isprintable() for line in lines)


def test_a_file_too_large_for_an_archive_is_not_opened(
    packed: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = submit(packed(), tmp_path / "subs")[0].parent
    with (folder / "hole-v1.zip").open("wb") as file:
        file.truncate(2**31 + 1)
    assert build(folder, tmp_path / "site").refused == {
        "hole-v1.zip": ("It has 2,147,483,649 bytes; at most 2,147,483,648 are allowed.",)
    }


def test_file_names_are_told_apart_when_escaped():
    assert folders.escape_name("a\n") != folders.escape_name("a\\n")
    assert folders.escape_name("Ä\u202e") == "Ä\\u202e"


def test_a_name_squatted_without_submit_stays_its_owners(
    packed: Callable[..., Path], tmp_path: Path
):
    folder = submit(packed(authors=ADA), tmp_path / "subs")[0].parent
    shutil.copy(packed("random", name="toy", version=7, authors=MALLORY), folder)
    place, _ = submit(
        mix_entries(packed, tmp_path / "new.zip", "toy", ADA, version=2),
        folder,
        confirm_authors=True,
    )
    assert place.name == "toy-v2.zip"
    built = build(folder, tmp_path / "site")  # the log has the squatter, before the new version
    assert {e.title: e.unranked for e in built.entries} == {
        "toy-v1": "superseded by toy-v2",
        "toy-v7": (
            "has the name of toy-v1, and the board's maintainer has not confirmed that its authors "
            "sent it"
        ),
        "toy-v2": None,
    }


def test_a_name_without_authors_has_no_later_version(packed: Callable[..., Path], tmp_path: Path):
    folder = submit(packed(), tmp_path / "subs")[0].parent
    second = packed("random", name="toy", version=2, authors=MALLORY)
    with pytest.raises(
        ValueError, match=r"toy-v1 in .* names no authors, so it has no later version"
    ):
        submit(second, folder)
    shutil.copy(second, folder)
    assert ranked_titles(build(folder, tmp_path / "site")) == ["toy-v1"]


def test_numbers_of_the_page_are_json(packed: Callable[..., Path], tmp_path: Path):
    forged = Forgery(packed())
    for task in (WALK, DRIFT):
        for cell in forged.task(task)["cells"]:
            cell |= {"train_seconds": 1e9, "compile_seconds": 1e9, "training_steps": 2**53}
    folder = submit(forged.write(tmp_path / "long.zip"), tmp_path / "subs")[0].parent
    build(folder, tmp_path / "site")
    text = (tmp_path / "site" / "results.json").read_text()
    assert (
        json.loads(text, parse_constant=pytest.fail)["entries"][0]["training"][WALK]["seconds"]
        == 2e9
    )


def test_a_task_played_with_the_episodes_of_another_entry_is_in_no_ranking(
    packed: Callable[..., Path], tmp_path: Path
):
    folder = submit(packed("random", authors=ADA), tmp_path / "subs")[0].parent
    submit(mix_entries(packed, tmp_path / "new.zip", "thief", MALLORY), folder)
    built = build(folder, tmp_path / "site")
    (board,) = [board for board in built.boards if board.suite == "toys"]
    reason = (
        "plays the episodes of random-v1, which arrived first, on ToyDrift-v0 (250 episodes are "
        "equal)"
    )
    assert board.unranked == {"thief-v1": reason}
    assert (
        "which arrived first, on ToyDrift-v0"
        in (tmp_path / "site" / "entries" / "thief-v1.html").read_text()
    )


def test_episodes_that_all_who_play_best_share_are_no_copies():
    cell = ("rlsuite/Fixed-v0", 0)
    alone = {cell: "".join(f"{i:0{DIGITS}x}" for i in range(100))}
    best = {cell: "ab" * (DIGITS // 2) * 100}
    assert copied_tasks(alone, alone) == {cell[0]: 100}
    assert copied_tasks(best, best) == {}
    few = {
        cell: alone[cell][: DIGITS * (MIN_TELLING_EPISODES - 1)]
        + best[cell][DIGITS * (MIN_TELLING_EPISODES - 1) :]
    }
    assert copied_tasks(few, few) == {}
    half = {cell: alone[cell][: DIGITS * 50] + best[cell][DIGITS * 50 :]}
    assert copied_tasks(alone, half) == {}
    assert copied_tasks(half, {("rlsuite/Other-v0", 0): half[cell]}) == {}

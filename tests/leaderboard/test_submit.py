"""Submissions: what was verified is kept unchanged, and nothing is taken twice."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from forgery import WALK, Forgery
from full_disk import full

from rlbench_suite.foundation.atomic_files import CannotWrite
from rlbench_suite.leaderboard import submit as submitting
from rlbench_suite.leaderboard.log import read_log
from rlbench_suite.leaderboard.pack import pack
from rlbench_suite.leaderboard.schema import Entry
from rlbench_suite.leaderboard.site import build
from rlbench_suite.leaderboard.submit import submit

pytestmark = pytest.mark.usefixtures("here", "own_cache")


def test_what_is_submitted_lies_there_unchanged(honest: Path, tmp_path: Path):
    place, verdict = submit(honest, tmp_path / "subs")
    assert verdict.accepted
    assert place == tmp_path / "subs" / "toy-v1.zip"
    assert place.read_bytes() == honest.read_bytes()
    assert sorted(os.listdir(tmp_path / "subs")) == ["log.jsonl", "toy-v1.zip"]


def test_what_is_rejected_leaves_nothing_behind(honest: Path, tmp_path: Path):
    forged = Forgery(honest)
    forged.claims["iqm"] = 9.0
    _, verdict = submit(forged.write(tmp_path / "forged.zip"), tmp_path / "subs")
    assert not verdict.accepted
    assert not (tmp_path / "subs").exists()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "toy"}, "toy-v1 is already in"),
        ({"name": "TOY"}, "TOY-v1 is already in"),
        (
            {"name": "mine"},
            "mine-v1 takes the same actions as toy-v1, .* at every step of 500 of 500 episodes",
        ),
        ({"name": "toy", "version": 2, "confirm_authors": True}, "toy-v2 takes the same actions"),
    ],
)
def test_nothing_is_submitted_twice(
    fields: dict, words: str, packed: Callable[..., Path], tmp_path: Path
):
    submit(packed(authors=("Ada",)), tmp_path / "subs")
    before = (tmp_path / "subs" / "toy-v1.zip").read_bytes()
    fields = fields.copy()
    confirmed = fields.pop("confirm_authors", False)
    with pytest.raises(ValueError, match=words):
        submit(packed(authors=("Ada",), **fields), tmp_path / "subs", confirm_authors=confirmed)
    assert sorted(os.listdir(tmp_path / "subs")) == ["log.jsonl", "toy-v1.zip"]
    assert (tmp_path / "subs" / "toy-v1.zip").read_bytes() == before
    assert [arrival.archive for arrival in read_log(tmp_path / "subs")] == ["toy-v1.zip"]


def test_a_part_of_anothers_run_is_a_copy_too(
    packed: Callable[..., Path], wide_run: Path, tmp_path: Path
):
    submit(packed(), tmp_path / "subs")
    pack(wide_run, Entry(name="part", agent="toy"), tmp_path / "part.zip", suite=WALK)
    with pytest.raises(ValueError, match="takes the same actions"):
        submit(tmp_path / "part.zip", tmp_path / "subs")


def test_a_superset_of_anothers_run_is_refused(
    packed: Callable[..., Path], theft: Path, tmp_path: Path
):
    submit(packed(), tmp_path / "subs")
    with pytest.raises(
        ValueError,
        match=r"takes the same actions as toy-v1.* at every step of 50\d of 600 episodes",
    ):
        submit(theft, tmp_path / "subs")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t + "{", "line 2, is not a line of a log"),
        (lambda t: t.replace(":1,", ":2,", 1), "a line was removed"),
    ],
)
def test_a_damaged_log_is_named_and_not_written_over(
    packed: Callable[..., Path], change: Callable[[str], str], words: str, tmp_path: Path
):
    folder = submit(packed(), tmp_path / "subs")[0].parent
    damaged = change((folder / "log.jsonl").read_text())
    (folder / "log.jsonl").write_text(damaged)
    for again in (
        lambda: submit(packed("random"), folder),
        lambda: build(folder, tmp_path / "site"),
    ):
        with pytest.raises(ValueError, match=words):
            again()
    assert (folder / "log.jsonl").read_text() == damaged


def test_a_full_disk_is_named_and_leaves_nothing_of_a_submission(
    packed: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    first, second = packed(), packed("random")
    folder = submit(first, tmp_path / "subs")[0].parent
    before = (folder / "log.jsonl").read_bytes()
    monkeypatch.setattr(submitting.os, "fsync", full)
    with pytest.raises(
        CannotWrite,
        match=r"Cannot write .*random-v1.zip: No space left on device\. Nothing of it was kept",
    ):
        submit(second, folder)
    assert sorted(os.listdir(folder)) == ["log.jsonl", "toy-v1.zip"]
    assert (folder / "log.jsonl").read_bytes() == before

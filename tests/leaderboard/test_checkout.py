"""Submit to the checkout of a git repository.

The archive and the log are committed, and nothing else.
"""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from killing import die, die_at_call, run_until_killed

from rlbench_suite.leaderboard import submit as submitting
from rlbench_suite.leaderboard.log import read_log
from rlbench_suite.leaderboard.submit import submit

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def git(where: Path, *arguments: str) -> str:
    identity = (
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        "-c",
        "init.defaultBranch=main",
    )
    command = ["git", *identity, "-C", str(where), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    path = tmp_path / "checkout"
    path.mkdir()
    git(path, "init", "--quiet")
    for name, value in {
        "user.name": "Ada",
        "user.email": "ada@example.org",
        "commit.gpgsign": "false",
    }.items():
        git(path, "config", name, value)
    (path / "README").write_text("ours")
    git(path, "add", "README")
    git(path, "commit", "--quiet", "-m", "begin")
    (path / "README").write_text("half a thought")
    git(path, "add", "README")
    return path


def test_in_a_checkout_the_archive_alone_is_committed(honest: Path, checkout: Path):
    place, _ = submit(honest, checkout)
    assert place == checkout / "submissions" / "toy-v1.zip"
    assert git(checkout, "log", "--format=%an %s", "-1").strip() == "Ada Submission toy-v1"
    committed = git(checkout, "show", "--name-only", "--format=").split()
    assert committed == ["submissions/log.jsonl", "submissions/toy-v1.zip"]
    # Still staged, not committed.
    assert git(checkout, "status", "--porcelain").split("\n")[:-1] == ["M  README"]


def test_a_folder_of_a_checkout_is_taken_as_it_is(honest: Path, checkout: Path):
    assert (
        submit(honest, checkout / "results" / "2026")[0]
        == checkout / "results" / "2026" / "toy-v1.zip"
    )
    committed = git(checkout, "show", "--name-only", "--format=").split()
    assert committed == ["results/2026/log.jsonl", "results/2026/toy-v1.zip"]


def test_where_git_refuses_the_checkout_stays_as_it_was(honest: Path, checkout: Path):
    hook = checkout / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(OSError, match=r"git commit failed in .*: not today"):
        submit(honest, checkout)
    assert git(checkout, "status", "--porcelain").split("\n")[:-1] == ["M  README"]
    assert not list((checkout / "submissions").iterdir())


@pytest.mark.filterwarnings("ignore")  # of JAX about forks: the copies do not compute
@pytest.mark.parametrize(
    "place", ["before the log", "after the log", "before the commit", "after the commit"]
)
def test_a_submission_that_is_killed_is_finished_by_the_same_command(
    place: str, honest: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = submitting.judge(honest)
    monkeypatch.setattr(submitting, "judge", lambda *_, **__: verdict)

    commit = submitting._commit

    def commit_and_die(*arguments: Any) -> None:
        commit(*arguments)
        die()

    def die_in_submit() -> None:
        with pytest.MonkeyPatch.context() as patch:
            if place == "before the log":
                patch.setattr(Path, "replace", die)
            elif place == "after the log":
                patch.setattr(Path, "replace", die_at_call(Path.replace, 2))
            elif place == "before the commit":
                patch.setattr(submitting, "_commit", die)
            else:
                patch.setattr(submitting, "_commit", commit_and_die)
            submit(honest, checkout)

    run_until_killed(die_in_submit)
    if place == "after the commit":
        with pytest.raises(ValueError, match="toy-v1 is already in"):
            submit(honest, checkout)
    else:
        submit(honest, checkout)
    folder = checkout / "submissions"
    assert git(checkout, "log", "--format=%s").splitlines() == ["Submission toy-v1", "begin"]
    assert git(checkout, "status", "--porcelain").split("\n")[:-1] == ["M  README"]
    assert [(arrival.archive, arrival.sha256) for arrival in read_log(folder)] == [
        ("toy-v1.zip", verdict.sha256)
    ]
    assert (folder / "toy-v1.zip").read_bytes() == honest.read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["log.jsonl", "toy-v1.zip"]

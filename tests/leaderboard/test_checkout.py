"""Submissions to the checkout of a git repository: the archive and the log are committed, and nothing else."""

import subprocess
from pathlib import Path

import pytest

from rlbench_suite.leaderboard.submit import submit

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def git(where: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    command = ["git", *identity, "-C", str(where), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    path = tmp_path / "checkout"
    path.mkdir()
    git(path, "init", "--quiet")
    for name, value in {"user.name": "Ada", "user.email": "ada@example.org", "commit.gpgsign": "false"}.items():
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
    assert git(checkout, "status", "--porcelain").split("\n")[:-1] == ["M  README"]  # still staged, not committed


def test_a_folder_of_a_checkout_is_taken_as_it_is(honest: Path, checkout: Path):
    assert submit(honest, checkout / "results" / "2026")[0] == checkout / "results" / "2026" / "toy-v1.zip"
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

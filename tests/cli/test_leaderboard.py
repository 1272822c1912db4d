"""Run ``rlsuite-leaderboard`` as people do: pack, verify, submit, build, and what is refused."""

import errno
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlbench_suite.cli import evaluate, leaderboard
from rlbench_suite.cli.run_commands import execution

PROGRAM = str(Path(sys.executable).with_name("rlsuite-leaderboard"))


@pytest.fixture
def call(
    toys: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable:
    """Run the program in this process: exit code, stdout, stderr."""
    monkeypatch.setattr(leaderboard, "_prepare", lambda: None)
    monkeypatch.setattr(execution, "prepare_jax", lambda *_: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, app: Callable = leaderboard.app) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            app(list(arguments))
        output = capsys.readouterr()
        return int(left.value.code or 0), output.out, output.err

    return call


@pytest.fixture
def run(call: Callable, tmp_path: Path) -> str:
    arguments = (
        "--agent",
        "toy",
        "--suite",
        "ToyWalk-v0",
        "--seeds",
        "2",
        "--workers",
        "0",
        "--out",
        "run",
    )
    assert call(*arguments, app=evaluate.app)[0] == 0
    return "run"


def test_from_a_run_to_a_page(call: Callable, run: str, tmp_path: Path):
    code, out, err = call("pack", run, "--author", "Ada Lovelace", "--link", "https://example.org")
    assert (code, err) == (0, "")
    assert "toy-v1.zip: toy-v1, 1 task, 2 seeds" in out
    assert "every return replayed to the bit" in out
    code, out, err = call("verify", "toy-v1.zip")
    assert (code, err) == (0, "")
    assert "accepted: toy-v1: every return replayed to the bit" in out
    assert "ToyWalk-v0" in out
    code, out, err = call("submit", "toy-v1.zip", "subs")
    assert (code, err) == (0, "")
    assert "accepted" in out
    (tmp_path / "subs" / "junk.zip").write_text("junk")
    code, out, err = call("build", "subs", "site")
    assert code == 0
    assert "index.html: 1 entry, 0 rankings." in out
    assert err.startswith("refused: junk.zip: The file is not a zip")
    assert (tmp_path / "site" / "index.html").exists()
    code, _, err = call("submit", "toy-v1.zip", "subs")
    assert code == 2
    assert err.strip().endswith(
        "toy-v1 is already in subs; a new result needs a new name or --entry-version."
    )


def test_a_rejected_archive_is_exit_code_1_with_the_reasons(
    call: Callable, run: str, tmp_path: Path
):
    assert call("pack", run)[0] == 0
    data = (tmp_path / "toy-v1.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[:-5])
    code, out, err = call("verify", "cut.zip", "toy-v1.zip")
    assert code == 1
    assert (
        err.strip()
        == "rejected: cut.zip: The file is not a zip, is cut short, or has something after its end."
    )
    assert "accepted: toy-v1" in out
    code, _, err = call("submit", "cut.zip", "subs")
    assert code == 1
    assert err.startswith("rejected: cut.zip")
    assert not (tmp_path / "subs").exists()


def test_a_full_disk_is_exit_code_1_and_names_what_was_being_written(
    call: Callable, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    before = sorted(tmp_path.iterdir())
    code, _, err = call("pack", run)
    assert (code, err) == (
        1,
        (
            "error: Cannot write the archive toy-v1.zip: No space left on device. Nothing of it "
            "was kept.\n"
        )
    )  # fmt: skip
    assert sorted(tmp_path.iterdir()) == before


def test_a_run_whose_result_is_not_that_of_its_episodes_is_not_packed(
    call: Callable, run: str, tmp_path: Path
):
    result = tmp_path / "run" / "cells" / "toy" / "ToyWalk-v0" / "0" / "result.json"
    result.write_text(
        re.sub(r'"success_rate": [0-9.]+', '"success_rate": 0.123', result.read_text())
    )
    code, _, err = call("pack", run)
    assert code == 2
    assert "is damaged (its success_rate is 0.123, and its episodes give " in err
    assert not (tmp_path / "toy-v1.zip").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pack", "nowhere"), "Unknown run 'nowhere'"),
        (("pack", "run", "--agent", "ppo"), "Unknown agent of the run in run 'ppo'"),
        (("pack", "run", "--name", "a b"), "Invalid name 'a b'"),
        (("pack", "run", "--link", "ftp://x.org"), "Invalid links 'ftp://x.org'"),
        (("pack", "run", "--entry-version", "0"), "Invalid version 0"),
        (("pack", "run", "--out", "run/manifest.json"), "already exists; choose another --out"),
        (("verify", "nowhere.zip"), "There is no file nowhere.zip"),
        (("submit", "nowhere.zip", "subs"), "There is no file nowhere.zip"),
        (("build", "nowhere", "site"), "There is no directory nowhere"),
        (("build", "run", "run"), "is not a leaderboard site"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_exit_code_2(
    call: Callable, run: str, arguments: tuple[str, ...], words: str
):
    code, out, err = call(*arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in out + err


def test_help_of_the_installed_program():
    output = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    assert all(command in output for command in ("pack", "verify", "submit", "build"))

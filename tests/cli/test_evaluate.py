"""``rlsuite-eval`` as people meet it: the main job, interruption, wrong arguments."""

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import safetensors.numpy

from rlbench_suite.cli import evaluate
from rlbench_suite.cli.run_commands import execution, report
from rlbench_suite.evaluation.runs.run import read_manifest

PROGRAM = str(Path(sys.executable).with_name("rlsuite-eval"))
BOTH_TASKS = ("--agent", "toy", "--suite", "ToyWalk-v0,ToyDrift-v0", "--seeds", "3")


@pytest.fixture
def call(
    toys: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple]:
    """Run the program in this process: exit code, stdout, stderr."""
    for module in (execution, report):
        monkeypatch.setattr(module, "prepare_jax", lambda *_: None)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            evaluate.app(list(arguments))
        output = capsys.readouterr()
        return int(left.value.code or 0), output.out, output.err

    return call


def start(path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [PROGRAM, *arguments, "--out", str(path)]
    # As a shell does for programs in the background.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )
    finally:
        signal.signal(signal.SIGINT, handler)


def wait_for_cells(path: Path, count: int) -> set[Path]:
    deadline = time.monotonic() + 300
    while len(done := set(path.glob("cells/*/*/[0-9]*/result.json"))) < count:
        assert time.monotonic() < deadline, "no cell was finished in five minutes"
        time.sleep(0.02)
    return done


def assert_nothing_left_running(group: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a worker outlived the program")


def test_the_same_command_again_finishes_what_a_killed_run_left(
    call: Callable[..., tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TOY_PAUSE", "0.3")
    run = start(tmp_path / "killed", *BOTH_TASKS)
    wait_for_cells(tmp_path / "killed", 1)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    assert_nothing_left_running(run.pid)
    finished_files = {
        path: path.stat().st_mtime_ns for path in tmp_path.glob("killed/cells/*/*/[0-9]*/*")
    }
    assert 4 <= len(finished_files) < 6 * 5
    assert not (tmp_path / "killed" / "episodes.parquet").exists()

    monkeypatch.setenv("TOY_PAUSE", "0")
    code, out, _ = call(
        *BOTH_TASKS, "--out", str(tmp_path / "killed"), "--workers", "0", "--resume"
    )
    assert code == 0
    assert f"{6 - len(finished_files) // 5} of 6 cells to run" in out
    # Not run again, not written again.
    assert {path: path.stat().st_mtime_ns for path in finished_files} == finished_files
    assert len(read_manifest(tmp_path / "killed").sittings) == 2

    assert call(*BOTH_TASKS, "--out", str(tmp_path / "whole"), "--workers", "0")[0] == 0
    for name in (
        "episodes.parquet",
        "traces/toy-ToyWalk-v0.parquet",
        "traces/toy-ToyDrift-v0.parquet",
    ):
        assert pq.read_table(tmp_path / "killed" / name).equals(
            pq.read_table(tmp_path / "whole" / name)
        ), name

    code, out, _ = call(*BOTH_TASKS, "--out", str(tmp_path / "killed"), "--workers", "0")
    assert code == 0
    assert "to run" not in out
    assert len(read_manifest(tmp_path / "killed").sittings) == 2
    assert not list(tmp_path.glob("killed/cells/*/*/.*"))


@pytest.mark.parametrize(
    "send", [os.killpg, os.kill]
)  # a terminal tells every process, Slurm and Kubernetes one
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_keeps_what_is_done_and_says_how_to_go_on(
    toys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    send: Callable[[int, int], None],
):
    monkeypatch.setenv("TOY_PAUSE", "0.5")
    run = start(tmp_path / "run", *BOTH_TASKS)
    wait_for_cells(tmp_path / "run", 1)
    send(run.pid, number)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 130
    assert f"Continue with: rlsuite-eval {' '.join(BOTH_TASKS)} --out {tmp_path / 'run'}" in out
    assert "Traceback" not in out + err + (tmp_path / "run" / "workers.log").read_text()
    assert_nothing_left_running(run.pid)
    (sitting,) = read_manifest(tmp_path / "run").sittings
    assert sitting.finished is not None


def test_the_main_job(call: Callable[..., tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(
        "--agent", "toy,toy-picky", "--suite", "ToyWalk-v0,ToyDrift-v0", "--seeds", "2"
    )
    assert (code, err) == (0, "")
    # Where the same command finds it again.
    path = tmp_path / "runs" / "toy+toy-picky-ToyWalk-v0+ToyDrift-v0-smoke"
    assert "[6/6] " in out
    lines = out.splitlines()
    assert re.fullmatch(r"Starting up to \d+ worker processes, which takes seconds\.", lines[1])
    compiling = [
        line
        for line in lines
        if line.endswith("Compiling its programs, which is done once in a worker.")
    ]
    assert len(compiling) == 3  # once for an agent and task, not for each seed
    assert lines.index(compiling[0]) == 2  # before any result
    assert "toy-picky on rlsuite/ToyWalk-v0, seed 1: score " in out
    assert "P(beats" in out
    assert (
        "Not applicable: toy-picky on rlsuite/ToyDrift-v0: one objective is enough for me." in out
    )
    for name in (
        "manifest.json",
        "episodes.parquet",
        "curves.parquet",
        "report.html",
        "traces/toy-ToyWalk-v0.parquet",
    ):
        assert (path / name).stat().st_size > 0
    assert len(pq.read_table(path / "episodes.parquet")) == 6 * 50
    assert len(pq.read_table(path / "curves.parquet")) == 6 * 4


def test_a_failed_cell_costs_the_exit_code_and_nothing_else(
    call: Callable[..., tuple], tmp_path: Path
):
    arguments = (
        "--agent",
        "toy-crash",
        "--suite",
        "ToyWalk-v0",
        "--seeds",
        "3",
        "--out",
        str(tmp_path),
    )
    code, out, err = call(*arguments, "--workers", "0")
    assert code == 1
    assert err.startswith(
        "failed: toy-crash on rlsuite/ToyWalk-v0, seed 1: RuntimeError: the seed 1 is too much for "
        "me"
    )
    assert "ToyWalk-v0" in out
    assert len(wait_for_cells(tmp_path, 2)) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--agent", "tpy"), "Unknown agent 'tpy'. Did you mean 'toy'?"),
        (("--suite", "smok"), "Unknown suite or task 'smok'. Did you mean 'smoke'?"),
        (("--suite", "ToyWok-v0"), "Did you mean 'rlsuite/ToyWalk-v0'?"),
        (("--seeds", "0"), "at least 1, got 0"),
        (("--seeds", "-2"), "at least 1, got -2"),
        (("--seeds", "three"), "--seeds"),
        (("--budget", "huge"), "Unknown budget 'huge'"),
        (("--workers", "-1"), "--workers must be at least 0"),
        (("--workers", "none"), "--workers"),
        (("--silence", "0"), "--silence must be a finite number above 0, got 0"),
        (("--silence", "-3"), "--silence must be a finite number above 0, got -3"),
        (("--silence", "nan"), "--silence must be a finite number above 0, got nan"),
        (("--silence", "inf"), "--silence must be a finite number above 0, got inf"),
        (("--resume",), "no run to resume"),
        (("--out", "{file}"), "is not a run directory"),
        (("--out", "{file}/run"), "Cannot write to the run directory"),
        (("--out", "{full}"), "is not a run directory"),
        (("--out", "{foreign}"), "is not a manifest of this program"),
        (("--agent", "toy-picky", "--suite", "ToyDrift-v0"), "one objective is enough for me"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_exit_code_2(
    call: Callable[..., tuple], tmp_path: Path, arguments: tuple[str, ...], words: str
):
    paths = {name: tmp_path / name for name in ("file", "full", "foreign", "new")}
    paths["file"].write_text("mine")
    paths["full"].mkdir()
    (paths["full"] / "thesis.tex").write_text("mine")
    paths["foreign"].mkdir()
    (paths["foreign"] / "manifest.json").write_text('{"name": "web app"}')
    filled_arguments = [argument.format(**paths) for argument in arguments]
    default = ["--agent", "toy", "--out", str(paths["new"]), "--workers", "0"]
    if "--suite" not in filled_arguments:
        default += ["--suite", "ToyWalk-v0"]
    code, out, err = call(*default, *filled_arguments)
    assert code == 2
    assert words in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in out + err
    # The option parser draws a box.
    assert len(err.strip().splitlines()) == 1 or {"three", "none"} & set(filled_arguments)
    assert not paths["new"].exists()
    assert paths["file"].read_text() == (paths["full"] / "thesis.tex").read_text() == "mine"
    assert json.loads((paths["foreign"] / "manifest.json").read_text()) == {"name": "web app"}


def test_resuming_what_does_not_compare_is_refused_and_nothing_is_lost(
    call: Callable[..., tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = arguments_of_run(tmp_path / "run")
    assert call(*run)[0] == 0
    shutil.copytree(tmp_path / "run", tmp_path / "before")
    with monkeypatch.context() as patch:
        patch.setenv("TOY_RATE", "0.25")
        assert_refused(call(*run, "--resume"), "toy's rate on rlsuite/ToyWalk-v0 = 0.5", "0.25")
    assert_refused(call(*run, "--budget", "quick"), "budget = 'smoke'", "'quick'")
    with monkeypatch.context() as patch:
        patch.setattr("rlbench_suite.__version__", "9.9.9")
        assert_refused(call(*run), "version = ", "'9.9.9'")
    diff = subprocess.run(
        ["diff", "-r", tmp_path / "before", tmp_path / "run"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (diff.returncode, diff.stdout) == (0, "")
    assert call(*run, "--resume")[0] == 0


def arguments_of_run(out: Path) -> list[str]:
    """Return the arguments of a run of one cell."""
    arguments = "--agent toy --suite ToyWalk-v0 --seeds 1 --workers 0 --out"
    return [*arguments.split(), str(out)]


def assert_refused(result: tuple[int, str, str], *words: str) -> None:
    code, _, err = result
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert all(word in err for word in words), err


FILES = ("episodes.parquet", "curve.parquet", "trace.parquet", "policy.safetensors", "result.json")
MERGED = ("manifest.json", "curves.parquet", "toy-ToyWalk-v0.parquet", "report.html")


@pytest.mark.parametrize("name", [*FILES, *MERGED])
def test_a_full_disk_is_no_wrong_argument_and_leaves_nothing_half_written(
    call: Callable[..., tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    run = arguments_of_run(tmp_path / "run")

    def filling(write: Callable[..., Any], position: int) -> Callable[..., Any]:
        def half(*arguments: Any, **options: Any) -> Any:
            path = Path(arguments[position])
            if path.name != name:
                return write(*arguments, **options)
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return half

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", filling(pq.write_table, 1))
        patch.setattr(Path, "write_text", filling(Path.write_text, 0))
        patch.setattr("safetensors.numpy.save_file", filling(safetensors.numpy.save_file, 1))
        code, out, err = call(*run)
    assert code == 1
    assert "Traceback" not in out + err
    assert len(err.strip().splitlines()) == 1
    assert re.match(
        rf"error: Cannot write \S*/{name}: No space left on device\. Nothing of it was kept", err
    )
    assert not list(tmp_path.rglob(".rlsuite-*"))
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() == b"half"
    ]
    code, out, err = call(*run)
    assert (code, err) == (0, "")
    assert ("1 of 1 cells to run" in out) == (name in (*FILES, "manifest.json"))
    assert len(pq.read_table(tmp_path / "run" / "episodes.parquet")) == 50


def test_a_full_disk_ends_the_workers_too(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TOY_FULL", "1")
    monkeypatch.setenv("TOY_PAUSE", "0.1")
    run = start(
        tmp_path, "--agent", "toy", "--suite", "ToyWalk-v0", "--seeds", "4", "--workers", "2"
    )
    _, err = run.communicate(timeout=300)
    assert run.returncode == 1
    assert re.match(r"error: Cannot write \S*/policy.safetensors: No space left on device", err)
    assert_nothing_left_running(run.pid)
    assert not list(tmp_path.glob("cells/*/*/*"))


def test_a_saved_policy_is_judged(
    call: Callable[..., tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    arguments = ("--suite", "ToyWalk-v0", "--seeds", "2", "--workers", "0")
    assert call("--agent", "toy", *arguments, "--out", "run")[0] == 0
    file = "run/cells/toy/ToyWalk-v0/1/policy.safetensors"
    code, out, err = call("judge", file, "--agent", "toy", *arguments, "--out", "run")
    assert (code, err) == (0, "")
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    label = f"toy.{digest[:8]}"
    assert f"[2/2] {label} on rlsuite/ToyWalk-v0, seed 1: score " in out
    assert f"{label} is one saved policy of toy, not trained here" in " ".join(out.split())
    assert read_manifest(tmp_path / "run").checkpoints[label].sha256 == digest
    cells = tmp_path / "run" / "cells"
    trained, judged = (
        pq.read_table(cells / a / "ToyWalk-v0" / "1" / "episodes.parquet") for a in ("toy", label)
    )
    assert trained.drop_columns(["agent"]).equals(judged.drop_columns(["agent"]))
    for options, words in {
        (): "does not say which agent made it",
        ("--agent", "toy,ppo"): "Unknown agent 'toy,ppo'",
        ("--agent", "random"): "The agent 'random' reads no saved policies",
    }.items():
        code, _, err = call("judge", file, *arguments, *options)
        assert code == 2
        assert words in err
        assert len(err.splitlines()) == 1
    code, _, err = call("judge", file, "--agent", "toy", "--out", "run")
    assert (code, "does not name the task it was trained on; name it with --task." in err) == (
        2,
        True,
    )


def test_help_and_errors_of_the_installed_program(toys: Path):
    output = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    assert (
        "rlsuite-eval --agent ppo,reference,random --suite motor --seeds 10 --budget quick"
        in " ".join(output.replace("│", " ").split())
    )
    wrong = subprocess.run(
        [PROGRAM, "--suite", "nope"], check=False, capture_output=True, text=True
    )
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: Unknown suite or task 'nope'.")
    assert len(wrong.stderr.splitlines()) == 1


def test_a_report_is_written_again_with_another_method_of_intervals(
    call: Callable[..., tuple], tmp_path: Path
):
    path = str(tmp_path / "run")
    run = "--agent", "toy", "--suite", "ToyWalk-v0", "--seeds", "5", "--workers", "0", "--out", path
    methods = ((), ("--interval", "studentised"), ("--interval", "percentile"))
    printed = [call(*run), *(call("report", path, *method) for method in methods)]
    assert [code for code, _, _ in printed] == [0] * 4
    ends = [
        re.search(r"ToyWalk-v0.*?(-?\d\.\d+) \[(-?\d\.\d+), (-?\d\.\d+)\]", out)
        for _, out, _ in printed
    ]
    first, default, studentised, percentile = (
        [float(end) for end in match.groups()] for match in ends if match
    )
    assert first == default == studentised
    assert percentile[0] == default[0]
    assert default[1] < percentile[1] <= percentile[2] < default[2]
    assert len(read_manifest(Path(path)).sittings) == 1  # nothing ran again
    code, _, err = call("report", path, "--interval", "bca")
    assert code == 2
    assert "percentile" in err
    code, _, err = call("report", str(tmp_path / "none"))
    assert (code, err) == (
        2,
        f"error: Unknown run '{tmp_path / 'none'}'. Did you mean '{path}'? Known: {path}.\n",
    )


@pytest.mark.parametrize(
    "flags",
    [("--suite", "ToyWalk-v0", "--task", "ToyDrift-v0"), ("--task", "ToyWalk-v0,ToyDrift-v0")],
)
def test_run_is_meant_where_no_command_is_named_and_task_is_another_word_for_suite(
    call: Callable[..., tuple], tmp_path: Path, flags: tuple[str, ...]
):
    for command in ((), ("run",)):
        out = tmp_path / "-".join(("cells", *command))
        assert (
            call(
                *command,
                "--agent",
                "toy",
                *flags,
                "--seeds",
                "1",
                "--workers",
                "0",
                "--out",
                str(out),
            )[0]
            == 0
        )
        assert [cell.task for cell in read_manifest(out).cells()] == [
            "rlsuite/ToyWalk-v0",
            "rlsuite/ToyDrift-v0",
        ]

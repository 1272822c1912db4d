"""Test the judge's processes.

What crashes, hangs or swells is a rejected archive, named as such, and all else goes on.
"""

import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forgery import Forgery
from fuzzing import damage

from rlbench_suite.cli import leaderboard
from rlbench_suite.leaderboard import judge as judging
from rlbench_suite.leaderboard.judge import LIMITS, Limits, judge, open_up
from rlbench_suite.leaderboard.verify import Verdict, verify


def with_unknown_codec(honest: Path, path: Path) -> Path:
    """Give one column a codec that does not exist.

    pyarrow ends the process over it.
    """
    forged = Forgery(honest)
    name = "actions/ToyWalk-v0.parquet"
    data = bytearray(forged.members[name])
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    # ColumnMetaData in Thrift's compact protocol: a list of one name (0x18 length name), then the
    # codec (0x15 number).
    at = data.index(b"\x18\x08action_0\x15", data.index(b"\x18\x08action_0", footer) + 1) + 11
    assert data[at] == 0
    data[at] = 0x7E
    forged.members[name] = bytes(data)
    return forged.write_members(path)


@pytest.fixture
def killer(honest: Path, tmp_path: Path) -> Path:
    return with_unknown_codec(honest, tmp_path / "killer-v1.zip")


def test_a_byte_that_ends_the_process_rejects_one_archive_and_no_more(
    toys: Path,
    honest: Path,
    killer: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(leaderboard, "_prepare", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(SystemExit) as left:
        leaderboard.app(["build", str(tmp_path), str(tmp_path / "site")])
    output = capsys.readouterr()
    assert not left.value.code
    assert output.err.splitlines() == [
        "refused: killer-v1.zip: The judge's process ended with signal 6 (SIGABRT) while reading "
        "actions/ToyWalk-v0.parquet."
    ]
    assert "1 entry" in output.out
    verdicts = [path.read_text() for path in (tmp_path / "cache").rglob("verdicts/*.json")]
    assert not [text for text in verdicts if "SIGABRT" in text]  # the process may live on next time


def test_a_judge_in_a_process_of_its_own_finds_what_one_here_finds(
    honest: Path, toys: Path
) -> None:
    there, here = judge(honest), verify(honest)
    fields = (
        "sha256",
        "size",
        "submission",
        "problems",
        "cells",
        "exact",
        "judge",
        "version",
        "finished",
    )
    assert [getattr(there, name) for name in fields] == [getattr(here, name) for name in fields]
    contents = open_up(honest)
    assert contents is not None
    assert contents.actions_played == here.actions_played


def stand_in(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Another program in the place of the judge's process."""
    monkeypatch.setattr(judging, "_command", lambda *_: [sys.executable, "-c", program])


SAY = (
    "import os, sys, time; say = lambda line: print(line, flush=True); "
    'say(\'{"doing": "reading it"}\'); '
)


@pytest.mark.parametrize(
    ("program", "limits", "words"),
    [
        ("os.kill(os.getpid(), 9)", LIMITS, "ended with signal 9 (SIGKILL) while reading it."),
        ("os.kill(os.getpid(), 11)", LIMITS, "ended with signal 11 (SIGSEGV) while reading it."),
        ("sys.exit(3)", LIMITS, "ended with exit code 3 while reading it."),
        ("time.sleep(60)", Limits(silence=0.5), "was stopped after 1 s while reading it."),
        (
            '[say(\'{"doing": "a"}\') or time.sleep(.05) for _ in range(999)]',
            Limits(seconds=1),
            "was stopped after 1 s",
        ),
        (
            "a = b'1' * 400_000_000; time.sleep(60)",
            Limits(memory=200 * 2**20),
            "GiB of memory while reading it; 0.2",
        ),
        (
            "[say('x' * 1000) for _ in range(10**9)]",
            LIMITS,
            "sent an unknown message while reading it.",
        ),
        (
            "sys.stdout.write('x' * 10**9)",
            Limits(output=10**6),
            "sent an unknown message while reading it.",
        ),
        ("os.close(1); time.sleep(60)", LIMITS, "ended with signal 9 (SIGKILL) while reading it."),
        ('say(\'{"found": {"problems": []}}\')', LIMITS, "gave no verdict."),
        ("say('[' * 100000)", LIMITS, "sent an unknown message"),
        (
            "say('{\"failed\": \"raised \\\\u001b[2J' + 'x' * 9999 + '\"}')",
            LIMITS,
            "The judge raised ?[2Jxx",
        ),
    ],
)
def test_whatever_the_process_does_is_a_sentence(
    program: str, limits: Limits, words: str, honest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, SAY + program)
    began = time.monotonic()
    verdict = judge(honest, limits=limits)
    assert time.monotonic() - began < 30
    (problem,) = verdict.problems
    assert words in problem
    assert len(problem) <= 600
    assert problem.isprintable()
    assert not verdict.finished
    assert verdict.sha256 == verify(honest).sha256


def test_a_process_that_does_not_start_is_no_fault_of_the_archive(
    honest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "import no_such_module")
    with pytest.raises(
        OSError,
        match=r"does not start \(exit code 1; ModuleNotFoundError: No module named 'no_such",
    ):
        judge(honest)


def test_the_reason_is_heard_on_a_machine_that_is_busy(
    honest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = os.read
    # After the process has ended.
    monkeypatch.setattr(os, "read", lambda *pipe: time.sleep(0.3) or read(*pipe))
    stand_in(monkeypatch, "import no_such_module")
    with pytest.raises(OSError, match="No module named 'no_such"):
        judge(honest)


def test_modules_of_the_folder_one_stands_in_are_not_loaded(
    honest: Path, toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyarrow.py").write_text("raise SystemExit('owned')")
    monkeypatch.chdir(tmp_path)
    assert judge(honest).accepted


def test_the_process_bounds_itself() -> None:
    program = (
        "import os, resource; os.environ['RLSUITE_JUDGE_MEMORY'] = str(2**28)\n"
        "from rlbench_suite.leaderboard import child; child._limit()\n"
        "assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0\n"
        "try: bytearray(2**30)\nexcept MemoryError: print('bounded')"
    )
    resource = pytest.importorskip("resource")
    assert resource.getrlimit(resource.RLIMIT_DATA)[1] == resource.RLIM_INFINITY
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "bounded\n"


# -- bytes at random -------------------------------------------------------------------------------


def test_flipped_bytes_are_rejected_with_a_sentence_or_change_no_number(
    honest: Path, toys: Path, tmp_path: Path
) -> None:
    """One process verifies many, for speed.

    What ends it is judged as users would, and so are a few others.
    """
    folder, count = tmp_path / "damaged", 120
    folder.mkdir()
    for seed in range(count):
        (folder / f"{seed:04}.zip").write_bytes(damage(honest, seed)[1])
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "JAX_PLATFORMS": "cpu",
    }
    lines: list[str] = []
    ended: list[int] = []
    while len(lines) < count:
        command = [
            sys.executable,
            str(Path(__file__).with_name("fuzzing.py")),
            str(folder),
            str(len(lines)),
        ]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=600
        )
        lines += done.stdout.splitlines()
        if len(lines) < count:
            assert done.returncode < 0, done.stderr[-2000:]
            ended.append(len(lines))
            lines.append("died")
    apart = [i for i, line in enumerate(lines) if not line.startswith("{")]
    verdicts = {
        i: Verdict.model_validate_json(line) for i, line in enumerate(lines) if i not in apart
    }
    verdicts |= {i: judge(folder / f"{i:04}.zip") for i in apart[:4]}
    right = verify(honest).cells
    accepted = 0
    for i, verdict in verdicts.items():
        for problem in verdict.problems:
            assert problem.endswith("."), (i, problem)
            assert problem.isprintable(), (i, problem)
        if verdict.accepted:
            accepted += 1
            assert verdict.cells == right, i
    assert count / 2 < count - accepted < count

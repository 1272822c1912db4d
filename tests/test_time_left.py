"""Long work says how much is left: the tests, the documentation and the measurement of speed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SLEEPING = """
import time
import pytest

@pytest.mark.parametrize("number", range(8))
def test_sleeps(number):
    time.sleep(0.2)
"""
PLUGIN = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from conftest_of_suite import TimeLeft

TimeLeft.REPORT_SECONDS = 0.3

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(TimeLeft(config))
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_the_tests_say_how_much_is_left(tmp_path: Path, processes: str) -> None:
    (tmp_path / "conftest_of_suite.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "conftest.py").write_text(PLUGIN)
    (tmp_path / "test_sleeping.py").write_text(SLEEPING)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        processes,
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " of 8 tests have run, about 0 min left" in result.stdout


def test_the_documentation_says_how_much_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    pytest.importorskip("mkdocs")
    from animations import time_left

    assert time_left(120.0, 10, 30) == ", about 4 min left"
    assert time_left(1.0, 10, 30) == ", less than a minute left"
    assert time_left(1.0, 30, 30) == ""


def test_bench_prints_into_a_pipe_as_it_measures() -> None:
    code = "from rlbench_suite.cli.suite import app; app()"
    command = [sys.executable, "-c", code, "bench", "SAT-v0", "--envs", "8", "--seconds", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        arrivals: list[tuple[float, bytes]] = []
        while chunk := process.stdout.read1():
            arrivals.append((time.monotonic(), chunk))
    assert process.returncode == 0
    chunks = [chunk for _, chunk in arrivals]
    assert len(chunks) >= 4  # the heading, and three numbers that take a second each
    assert b"".join(chunks).splitlines()[-1].split()[0] == b"SAT-v0"
    assert arrivals[-1][0] - arrivals[0][0] > 1.5

"""A person who waits for a compiler is told so: once, on stderr, and only if it takes long."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlbench_suite.numerics import waiting

FIRST_STEP = """
import json, sys
import gymnasium
import rlbench_suite
from rlbench_suite.numerics import waiting
waiting.PATIENCE = float(sys.argv[1])
name = "rlsuite/SAT-v0"
for env in (gymnasium.make(name), gymnasium.make_vec(name, 2), gymnasium.make(name)):
    env.reset(seed=0)
    env.step(env.action_space.sample())
print(json.dumps({"a": 1}))
"""


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_printed", False)
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)


def test_a_slow_first_call_is_announced_once(capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        call = waiting.announce_first_call(
            lambda seconds: time.sleep(seconds) or seconds, "rlsuite/Slow-v0"
        )
        assert call(0.3) == 0.3
        assert call(0.1) == 0.1
    out, err = capfd.readouterr()
    assert not out
    assert err.count("Compiling the programs of rlsuite/Slow-v0") == 1
    assert len(err.splitlines()) == 1


def test_a_fast_call_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    waiting.announce_first_call(lambda: None, "rlsuite/Fast-v0")()
    with pytest.raises(ValueError, match="no"), waiting.compiling("rlsuite/Fast-v0"):
        raise ValueError("no")
    time.sleep(0.1)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("patience", "lines"), [(0.01, 1), (600, 0)])
def test_environments_announce_their_first_programs(
    tmp_path: Path, patience: float, lines: int
) -> None:
    script = tmp_path / "script.py"
    script.write_text(FIRST_STEP)
    command = [sys.executable, str(script), str(patience)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    # A pipe holds what the program prints, and nothing else.
    assert json.loads(result.stdout) == {"a": 1}
    assert result.stderr.count("Compiling the programs of rlsuite/SAT-v0") == lines

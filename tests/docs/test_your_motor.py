"""The page "Your motor in ten minutes": its commands run in their order, with fewer steps and episodes."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlbench_suite.baselines.ppo_agent import PPO
from rlbench_suite.cli import evaluate, suite
from rlbench_suite.evaluation import protocol, shared_library
from rlbench_suite.evaluation.store import Run, read_manifest

pytestmark = pytest.mark.of_variants

PAGE = (Path(__file__).parents[2] / "docs" / "your_motor.md").read_text()
LESS = {"calibrate": ["--episodes", "8"], "export": [], "record": ["--episodes", "2"], "sweep": []}
PROGRAMS: dict[str, Any] = {"rlsuite": suite.app, "rlsuite-eval": evaluate.app}


def commands() -> list[list[str]]:
    """Return every command of the page, one a line."""
    blocks = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.strip().splitlines()]


def call(program: Any, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        program(arguments)
    assert not left.value.code, arguments


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_every_command_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(shared_library.TRUSTED, "")
    monkeypatch.setitem(protocol.EPISODES, "smoke", 4)
    config = PPO.config
    monkeypatch.setattr(PPO, "config", lambda self, *given: replace(config(self, *given), total_steps=1, reports=1))
    done = []
    for program, *arguments in commands():
        done += arguments[:1]
        if program not in PROGRAMS:
            subprocess.run([program, *arguments], check=True, cwd=tmp_path)
        elif arguments[0] == "context":
            call(PROGRAMS[program], arguments[:2])
            assert "magnet_flux" in capsys.readouterr().out
            [sheet] = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
            (tmp_path / arguments[-1]).write_text(sheet)
        else:
            fewer = [word if word != "5" else "1" for word in arguments]
            more = LESS.get(arguments[0], ["--workers", "0"])
            call(PROGRAMS[program], [*fewer, *more])
    assert {"context", "calibrate", "record", "sweep", "export"} <= set(done)
    assert (tmp_path / "steps.png").stat().st_size > 10_000
    [trained], [compiled] = (
        Run(path, read_manifest(path), ()).results() for path in (Path("runs/motor"), Path("runs/c"))
    )
    assert compiled.mean_return == pytest.approx(trained.mean_return, rel=1e-4)

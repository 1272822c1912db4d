"""Test the pages "Your motor" and "Your drone in ten minutes".

Each command runs, with fewer steps and episodes.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from ten_minutes import DOCS, commands, data_sheet, with_files

from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.cli import evaluate, suite
from rlbench_suite.evaluation import protocol
from rlbench_suite.evaluation.policy_files import shared_library
from rlbench_suite.evaluation.runs.run import Run

pytestmark = pytest.mark.of_variants

LESS = {
    "dev": ["--episodes", "8"],
    "deploy": [],
    "record": ["--episodes", "2"],
    "show": [],
    "sweep": [],
}
PROGRAMS: dict[str, Any] = {"rlsuite": suite.app, "rlsuite-eval": evaluate.app}


def call(program: Any, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        program(arguments)
    assert not left.value.code, arguments


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize(
    ("page", "constant", "runs", "picture"),
    [
        ("extend/your_motor.md", "magnet_flux", "runs/motor", "steps.png"),
        ("extend/your_drone.md", "arm_length", "runs/drone", "flights.png"),
    ],
)
def test_every_command_of_the_page_runs(
    page: str,
    constant: str,
    runs: str,
    picture: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(shared_library.TRUSTED_VARIABLE, "")
    monkeypatch.setitem(protocol.EPISODES, "smoke", 4)
    config = PPO.config
    monkeypatch.setattr(
        PPO,
        "config",
        lambda self, *inputs: replace(config(self, *inputs), total_steps=1, reports=1),
    )
    text, done = (DOCS / page).read_text(), []
    for program, *words in commands(text):
        arguments = with_files(words, tmp_path)
        if "PyBullet" in str(words) and not find_spec("pybullet"):
            continue  # a simulator that is not here
        done += arguments[:1]
        if program not in PROGRAMS:
            subprocess.run([program, *arguments], check=True, cwd=tmp_path)
        elif arguments[0] == "context":
            call(PROGRAMS[program], arguments[:2])
            assert constant in capsys.readouterr().out
            (tmp_path / arguments[-1]).write_text(data_sheet(text))
        else:
            fewer = [word if word != "5" else "1" for word in arguments]
            more = LESS.get(arguments[0], ["--workers", "0"])
            call(PROGRAMS[program], [*fewer, *more])
    assert {"context", "dev", "record", "sweep", "deploy"} <= set(done)
    assert (tmp_path / picture).stat().st_size > 10_000
    [trained], [compiled] = (Run.read(path).results() for path in (Path(runs), Path("runs/c")))
    assert compiled.mean_return == pytest.approx(trained.mean_return, rel=1e-4)

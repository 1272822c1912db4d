"""The package of docs/extend/your_task.md, as printed there, is found and keeps the contract."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/extend/your_task.md").read_text()


def block(language: str, title: str) -> str:
    """Return the first block of a language after a title in bold."""
    following = PAGE.partition(f"**{title}")[2]
    match = re.search(rf"```{language}\n(.*?)```", following, re.DOTALL)
    assert match, title
    return match[1]


def run(folder: Path, *arguments: str) -> str:
    """Run a command of the package, which is importable from ``folder``, and return its output."""
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    program = f"import sys; from rlbench_suite.cli.{arguments[0]} import app; app()"
    finished = subprocess.run(
        [sys.executable, "-c", program, *arguments[1:]],
        env=os.environ | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Lay out the package of the page as an installed one."""
    (tmp_path / "my_tasks").mkdir()
    (tmp_path / "my_tasks/__init__.py").touch()
    (tmp_path / "my_tasks/cards.py").write_text(block("python", "2. The card"))
    (tmp_path / "my_tasks/room.py").write_text(block("python", "3. The task"))
    project = tomllib.loads(block("toml", "1. The package"))["project"]
    installed = tmp_path / "my_tasks-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: my-tasks\nVersion: 1.0\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (installed / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_package_is_checked_measured_and_shown(package: Path) -> None:
    checked = run(package, "suite", "dev", "check", "Room-v0")
    assert "broken" not in checked
    assert "kept" in checked
    run(package, "suite", "dev", "calibrate", "Room-v0", "--episodes", "50")
    assert (package / "my_tasks/reference_scores.json").exists()
    assert "Heat a room to 20 degrees" in run(package, "suite", "show", "Room-v0")

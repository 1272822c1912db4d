"""Test what the wheel holds.

It has one top-level name and, under it, every file of the package and the wings: nothing else.
"""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WINGS = ("envs", "datasets", "baselines", "leaderboard")
FOLDERS = ["rlbench_suite", *(wing for wing in WINGS if (ROOT / wing).exists())]


def build(source: Path, to: Path) -> list[str]:
    """Return the names in the wheel built from a copy of ``source``.

    Metadata is left out, after a check of the single top level.
    """
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    done = subprocess.run(
        [*command, "--wheel-dir", to, source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = to.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"rlbench_suite"}
    assert len(top) == 2
    return [name for name in names if name.startswith("rlbench_suite/")]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of what the wheel is made from."""
    copy = tmp_path / "source"
    for folder in FOLDERS:
        shutil.copytree(
            ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, copy)
    return copy


def test_wheel_holds_every_file_and_finds_new_families(source: Path, tmp_path: Path) -> None:
    family = source / "envs" / "newcomers" / "nested"
    family.mkdir(parents=True)
    for file in (family.parent / "__init__.py", family / "__init__.py", family / "task.py"):
        file.write_text('"""New."""\n')
    for kind in ("json", "yaml", "txt"):
        (family.parent / f"data.{kind}").write_text("{}")
    (family.parent / "folder").mkdir()
    (family.parent / "folder" / "data.yaml").write_text("{}")

    files = [file.relative_to(source) for file in source.glob("*/**/*") if file.is_file()]
    installed = {
        file if file.parts[0] == "rlbench_suite" else Path("rlbench_suite", file) for file in files
    }
    assert Path("rlbench_suite/envs/newcomers/nested/task.py") in installed
    assert {Path(name) for name in build(source, tmp_path / "wheels")} == installed


def test_unmapped_folders_stay_out(source: Path, tmp_path: Path) -> None:
    (source / "benchmarks").mkdir()
    (source / "benchmarks" / "__init__.py").write_text("")
    assert not [name for name in build(source, tmp_path / "wheels") if "benchmarks" in name]

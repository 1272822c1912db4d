"""Import a clone from inside it, whether or not the package is installed editable.

The clone hides nothing.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WINGS = ("envs", "datasets", "baselines", "leaderboard")

# Setuptools' editable installs add a finder that knows the wings; an ordinary install leaves it to
# the package.
WITHOUT_EDITABLE_FINDER = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in str(finder).lower()]
"""


def run_in_clone(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose first entry of ``sys.path`` is the clone, as ``python -m`` has it."""
    command = [sys.executable, "-c", WITHOUT_EDITABLE_FINDER + code]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("wing", WINGS)
def test_wings_are_found_from_the_root_of_the_clone(wing: str) -> None:
    result = run_in_clone(f"import rlbench_suite.{wing} as wing; print(*wing.__path__)")
    assert result.stdout.strip() == str(ROOT / wing), result.stderr


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "docs", "rlbench_suite"])
def test_no_other_folder_of_the_clone_is_in_the_package(folder: str) -> None:
    result = run_in_clone(f"import rlbench_suite.{folder}")
    assert f"ModuleNotFoundError: No module named 'rlbench_suite.{folder}'" in result.stderr


def test_the_folder_of_datasets_does_not_hide_an_installed_package(tmp_path: Path) -> None:
    """Hugging Face's package has the same name."""
    package = tmp_path / "datasets"
    package.mkdir()
    (package / "__init__.py").write_text("Dataset = 'of an installed package'")
    code = "import rlbench_suite.datasets.access, datasets; print(datasets.Dataset)"
    result = run_in_clone(code, PYTHONPATH=str(tmp_path))
    assert result.stdout.strip() == "of an installed package", result.stderr

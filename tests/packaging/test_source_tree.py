"""A source tree can be imported from inside it, whether the package is installed editable or not."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Setuptools' editable installs add a finder that knows the wings; an ordinary install leaves it to the package.
CODE = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in str(finder).lower()]
import rlbench_suite.envs
print(rlbench_suite.envs.__file__)
"""


def test_wings_are_found_from_the_root_of_the_checkout() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == ROOT / "envs" / "__init__.py"

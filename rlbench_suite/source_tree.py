"""Find the wings where they lie in a clone: beside this package, not in it.

An installed package holds them (``[tool.setuptools.package-dir]`` in ``pyproject.toml``). In a
clone nothing but these four names is added to the package, whether it is installed there or not.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).parent
WINGS = ("envs", "datasets", "baselines", "leaderboard")


class WingFinder(MetaPathFinder):
    """Import ``rlbench_suite.envs`` from the folder ``envs`` of a clone.

    The other wings are imported in the same way.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a wing, or None for every other module."""
        package, _, wing = name.rpartition(".")
        if package != "rlbench_suite" or wing not in WINGS:
            return None
        return PathFinder.find_spec(name, [str(PACKAGE.parent)])


def find_wings() -> None:
    """Let ``import`` find the wings, if this package lies in a clone."""
    if not (PACKAGE / "envs").is_dir():
        sys.meta_path.append(WingFinder())

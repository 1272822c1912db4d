"""Map the wings at the repository's top level into the one import package.

Everything else about the distribution stands in pyproject.toml. Sub-packages are discovered here, so that a new
family folder needs no packaging edit.
"""

from pathlib import Path

from setuptools import find_packages, setup

WINGS = [wing for wing in ("envs", "datasets", "baselines", "leaderboard") if Path(wing, "__init__.py").exists()]

packages = find_packages(include=["rlbench_suite", "rlbench_suite.*"])
for wing in WINGS:
    packages += [f"rlbench_suite.{wing}"] + [f"rlbench_suite.{wing}.{name}" for name in find_packages(wing)]

setup(packages=packages, package_dir={f"rlbench_suite.{wing}": wing for wing in WINGS})

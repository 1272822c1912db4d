"""A Gymnasium-compatible benchmark suite: honest tasks, fast physics, statistics with intervals, replayed results.

Importing this package registers every id: ``gymnasium.make("rlsuite/SAT-v0")`` works after it, and
``gymnasium.make("rlbench_suite:rlsuite/SAT-v0")`` imports it by itself.
"""

from importlib.metadata import version
from pathlib import Path

if not Path(__file__).with_name("envs").exists():
    __path__.append(str(Path(__file__).parents[1]))  # a source tree: the wings lie beside this folder, not in it

from rlbench_suite.registry import register

__version__ = version("rlbench-suite")

register()

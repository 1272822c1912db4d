"""A Gymnasium-compatible benchmark suite: honest tasks, fast physics, statistics with intervals, replayed results.

Importing this package registers every id: ``gymnasium.make("rlsuite/SAT-v0")`` works after it, and
``gymnasium.make("rlbench_suite:rlsuite/SAT-v0")`` imports it by itself.
"""

from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

if not Path(__file__).with_name("envs").exists():
    __path__.append(str(Path(__file__).parents[1]))  # a source tree: the wings lie beside this folder, not in it

from rlbench_suite.registry import register

__version__ = version("rlbench-suite")

register()

_LATER = {"check_task": "rlbench_suite.checking", "ContractError": "rlbench_suite.contract"}
"""Exported names from files that import JAX."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)

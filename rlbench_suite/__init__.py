"""A Gymnasium-compatible benchmark suite.

It has honest tasks, fast physics, statistics with intervals, and replayed results.

Importing this package registers every id: ``gymnasium.make("rlsuite/SAT-v0")`` works after it, and
``gymnasium.make("rlbench_suite:rlsuite/SAT-v0")`` imports it by itself. What users need has its
name here:

=================================  =================================================================
``tasks()``, ``suites()``          ids of all tasks, and of each suite
``card(id)``                       description of a task: spaces, time limit, difficulties, measured
                                   scores
``make(id)``, ``make_vec(id, n)``  environments, as Gymnasium makes them
``play(env, "reference")``         whole episodes of a named player
``stats``                          statistics of scores with intervals, on plain arrays
``functional``                     tasks as pure functions for the user's own ``jit``, ``vmap`` and
                                   ``scan``
``check_task(task)``               checks of a task of one's own; ``ContractError`` says what is
                                   wrong with one
``register()``                     registration of every id, which the import has done already
=================================  =================================================================
"""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING
from typing import Any as _Any

from rlbench_suite.core.registry import card, make, make_vec, register, suites, tasks
from rlbench_suite.source_tree import find_wings as _find_wings

if TYPE_CHECKING:
    from rlbench_suite import functional, stats
    from rlbench_suite.adapters.play import play
    from rlbench_suite.checking.checks import check_task
    from rlbench_suite.core.contract import ContractError

__all__ = [
    "ContractError",
    "card",
    "check_task",
    "functional",
    "make",
    "make_vec",
    "play",
    "register",
    "stats",
    "suites",
    "tasks",
]

__version__ = _version("rlbench-suite")

_find_wings()
register()

_IMPORTED_LATER = {
    "check_task": "rlbench_suite.checking.checks",
    "ContractError": "rlbench_suite.core.contract",
    "play": "rlbench_suite.adapters.play",
}
"""Modules of the exported names whose imports take long, most of them because they import JAX."""


def __getattr__(name: str) -> _Any:
    if name in ("functional", "stats"):
        return _import_module(f"rlbench_suite.{name}")
    if name not in _IMPORTED_LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(_IMPORTED_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

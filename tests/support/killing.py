"""Programs that are killed at a given place, as by ``kill -9``."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, NoReturn

import pytest


def die(*_: Any, **__: Any) -> NoReturn:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def die_at_call(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Return the function, which kills its process at a call; calls are counted from 1."""
    calls = iter(range(1, number))

    def counted(*arguments: Any, **keywords: Any) -> Any:
        return function(*arguments, **keywords) if next(calls, None) else die()

    return counted


def run_until_killed(work: Callable[[], object]) -> None:
    """Run work in a copy of this process, which must kill itself.

    The work must not compute with JAX.
    """
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"it ended with exit code {os.WEXITSTATUS(status)}"
    assert os.WTERMSIG(status) == signal.SIGKILL

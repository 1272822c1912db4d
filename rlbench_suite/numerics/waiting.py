"""One line on stderr for a person who waits while programs are compiled."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0
"""Seconds of waiting after which a line is printed."""
_printed = False


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Say that programs of a task are being compiled, if that takes longer than :data:`PATIENCE`.

    The line appears at most once in a process, and on stderr only, so that programs which read
    stdout do not see it.
    """
    timer = threading.Timer(PATIENCE, _print_once, (name,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def announce_first_call(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a jitted function whose first call is announced (:func:`compiling`).

    The first call compiles it.
    """
    compiled = False

    def call(*arguments: Any) -> Any:
        nonlocal compiled
        if compiled:
            return function(*arguments)
        with compiling(name):
            result = function(*arguments)
        compiled = True
        return result

    return call


def _print_once(name: str) -> None:
    global _printed  # noqa: PLW0603  (a process-wide fact: the line was printed)
    if _printed:
        return
    _printed = True
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        later = "The next start is faster, because compiled programs are kept."
    else:
        later = (
            "Set JAX_COMPILATION_CACHE_DIR to a folder, before JAX is imported, to keep them for "
            "the next process."
        )
    print(
        f"Compiling the programs of {name}, which is done once in a process. {later}",
        file=sys.stderr,
        flush=True,
    )

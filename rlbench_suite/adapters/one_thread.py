"""Refuse a second thread in an environment instead of letting it wait.

An environment belongs to one thread at a time.

Two threads in one environment would read and write the same buffer, and some of their steps would
be lost without a word. Waiting would hide this: the order of the steps would differ from run to
run.
"""

from __future__ import annotations

import threading
from typing import Any


class OneThread:
    """A context that one thread may be in at a time, and that this thread may enter again.

    It can be pickled and copied. A copy is free.

    Args:
        name: id of the task, for the message.
    """

    __slots__ = ("_lock", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        """Enter.

        Raises:
            RuntimeError: another thread is inside.
        """
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"Two threads use one environment of {self.name} at the same time: give each "
                "thread an environment of "
                "its own, or let them take turns with a threading.Lock."
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return OneThread, (self.name,)

"""The process that reads one archive. It may crash, hang or swell, and nothing else goes down with it.

``python -m rlbench_suite.leaderboard.child verify|read ARCHIVE`` writes one JSON object a line to stdout: what it is
``doing``, and at the end what it ``found`` or why it ``failed``. Only :mod:`.judge` starts it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

MEMORY = "RLSUITE_JUDGE_MEMORY"
"""Environment variable: bytes that the process may have."""
_LARGEST_FILE = 2**30
"""Bytes of the largest file that the process may write (JAX keeps compiled programs)."""


def main() -> None:
    """Read the archive of the command line."""
    say_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # a simulator that prints must not speak for the judge
    _limit()

    def say(**said: Any) -> None:
        print(json.dumps(said), file=say_to, flush=True)

    what, path = sys.argv[1], Path(sys.argv[2])
    from .verify import read_contents, verify

    say(doing="opening the archive")
    look = verify if what == "verify" else read_contents
    try:
        say(found=look(path, progress=lambda doing: say(doing=doing)).model_dump(mode="json"))
    except MemoryError:
        say(failed="needed more memory than it may have")
    except Exception as error:  # whatever a damaged archive brings about is no fault of the program around
        say(failed=f"raised {type(error).__name__} ({str(error)[:200]})")
    _leave(say_to)


def _limit() -> None:
    """Bound what the system lets this process take; :mod:`.judge` watches its memory besides.

    The limit is on written memory (``RLIMIT_DATA``), not on addresses (``RLIMIT_AS``): JAX and its thread pools reserve
    many gigabytes of addresses that they never touch. Thread stacks count in full, hence the doubling.
    """
    with suppress(ImportError):  # outside POSIX
        import resource

        most = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: _LARGEST_FILE}
        if MEMORY in os.environ:
            most[resource.RLIMIT_DATA] = 2 * int(os.environ[MEMORY])
        for kind, limit in most.items():
            with suppress(ValueError, OSError):  # a lower limit is set already
                resource.setrlimit(kind, (limit, limit))


def _leave(said: TextIO) -> None:
    """End at once: what a damaged file did to a library's memory must not matter to its destructors."""
    said.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

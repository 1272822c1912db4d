"""Read one archive in a process of its own.

It may crash, hang or run out of memory without harm to others.

``python -m rlbench_suite.leaderboard.child verify|read ARCHIVE`` writes JSON objects to stdout, one
a line. The key ``doing`` reports progress. The last line has the result as ``found``, or the reason
of a failure as ``failed``. Only :mod:`.judge` starts this program.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

MEMORY = "RLSUITE_JUDGE_MEMORY"
"""Environment variable with the memory limit of the process in bytes."""
_MAX_FILE_BYTES = 2**30
"""Size limit in bytes of a file that the process writes (JAX keeps compiled programs)."""


def main() -> None:
    """Read the archive named on the command line."""
    say_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of a simulator must not be taken for a result
    _limit()

    def say(**message: Any) -> None:
        print(json.dumps(message), file=say_to, flush=True)

    what = sys.argv[1]
    path = Path(sys.argv[2])
    from .verify import read_contents, verify

    say(doing="opening the archive")
    look = verify if what == "verify" else read_contents
    try:
        say(found=look(path, progress=lambda doing: say(doing=doing)).model_dump(mode="json"))
    except MemoryError:
        say(failed="needed more memory than it may have")
    except Exception as error:  # a damaged archive may cause any error
        say(failed=f"raised {type(error).__name__} ({str(error)[:200]})")
    _leave(say_to)


def _limit() -> None:
    """Set the system's limits for this process. :mod:`.judge` also watches its memory.

    The limit is on written memory (``RLIMIT_DATA``), not on addresses (``RLIMIT_AS``), because JAX
    and its thread pools reserve many gigabytes of addresses that they never touch. Thread stacks
    count in full, so the limit is doubled.
    """
    with suppress(ImportError):  # outside POSIX
        import resource

        limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: _MAX_FILE_BYTES}
        if MEMORY in os.environ:
            limits[resource.RLIMIT_DATA] = 2 * int(os.environ[MEMORY])
        for kind, limit in limits.items():
            with suppress(ValueError, OSError):  # a lower limit is set already
                resource.setrlimit(kind, (limit, limit))


def _leave(pipe: TextIO) -> None:
    """End the process without destructors.

    A damaged file may have corrupted a library's memory.
    """
    pipe.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

"""Judge each archive in a process of its own.

If that process crashes, hangs or uses too much memory, only this archive is rejected.

One wrong byte can make a C++ library end its process, so the program that the user started reads no
archive itself. Each archive gets a new process (:mod:`.child`), so none can change the verdict on
another.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from pydantic import ValidationError

import rlbench_suite
from rlbench_suite.evaluation.runs.computer import Computer

from .child import MEMORY
from .schema import Origin, plain_sentence
from .verify import Contents, Verdict

_TICK = 0.1
"""Seconds between two checks of the time and memory of a silent process."""


class Limits(NamedTuple):
    """Limits on the process that judges one archive."""

    silence: float = 900.0
    """Seconds without progress. The longest step is the replay of one training seed on one task."""
    seconds: float = 24 * 3600.0
    """Seconds in all."""
    memory: int = 8 * 2**30
    """Resident bytes."""
    output: int = 256 * 2**20
    """Bytes of the result."""


LIMITS = Limits()
Show = Callable[[str], None]


class _Died(Exception):
    """The process ended without a result.

    The message says how, as a sentence without its full stop.
    """


def judge(path: Path, *, progress: Show = lambda _: None, limits: Limits = LIMITS) -> Verdict:
    """Verify an archive (:func:`.verify.verify`) in a process of its own.

    Args:
        path: the archive.
        progress: is called with a description of each step.
        limits: the limits on the process.

    Returns:
        The verdict. If the process died, it is a rejection that says so and is not ``finished``.

    Raises:
        OSError: the file cannot be read, or the process does not start.
    """
    started = time.perf_counter()
    with path.open("rb") as file:
        sha256, size = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
    try:
        verdict = Verdict.model_validate_json(json.dumps(_ask("verify", path, progress, limits)))
    except (_Died, ValidationError) as death:
        reason = death if isinstance(death, _Died) else "The judge's process gave no verdict"
        return Verdict(
            sha256=sha256,
            size=size,
            submission=None,
            problems=(plain_sentence(f"{reason}."),),
            cells=(),
            exact=False,
            judge=Origin.of(Computer.this()),
            judged=datetime.now(UTC),
            seconds=time.perf_counter() - started,
            version=rlbench_suite.__version__,
            finished=False,
        )
    problems = tuple(map(plain_sentence, verdict.problems))
    # Hash and size are computed here, not taken from the process.
    return verdict.model_copy(update={"sha256": sha256, "size": size, "problems": problems})


def open_up(path: Path, *, limits: Limits = LIMITS) -> Contents | None:
    """Read an archive (:func:`.verify.read_contents`) in its own process, without replaying it.

    Returns:
        None if it cannot be read.

    Raises:
        OSError: the process does not start.
    """
    try:
        return Contents.model_validate_json(json.dumps(_ask("read", path, lambda _: None, limits)))
    except (_Died, ValidationError):
        return None


def _ask(what: str, path: Path, progress: Show, limits: Limits) -> Any:
    """Run the process and return its result.

    Raises:
        _Died: it gave no result.
        OSError: it did not start.
    """
    doing = ""
    began = heard = time.monotonic()
    with _child(what, path, limits) as (process, lines, hear_out):
        while True:
            try:
                line = lines.get(timeout=_TICK)
            except queue.Empty:
                line = None
            now = time.monotonic()
            if line == b"":
                break
            if line is not None:
                heard = now
                try:
                    message = json.loads(line)
                    if "found" in message:
                        return message["found"]
                    if "failed" in message:
                        raise _Died(f"The judge {message['failed']} while {doing or 'starting'}")
                    doing = plain_sentence(str(message["doing"]))
                except (ValueError, KeyError, TypeError, RecursionError):
                    raise _Died(
                        f"The judge's process sent an unknown message while {doing or 'starting'}"
                    ) from None
                progress(doing)
            if (used_memory := _resident(process.pid)) > limits.memory:
                raise _Died(
                    f"The judge's process needed {used_memory / 2**30:.1f} GiB of memory while "
                    f"{doing or 'starting'}; {limits.memory / 2**30:.1f} GiB are allowed"
                )
            if now - heard > limits.silence or now - began > limits.seconds:
                raise _Died(
                    f"The judge's process was stopped after {now - began:.0f} s while "
                    f"{doing or 'starting'}"
                )
        code = _await_end(process)
        if not doing:
            raise OSError(
                f"The judge's process does not start ({_ending(code)}; {_last_line(hear_out())})."
            )
        raise _Died(f"The judge's process ended with {_ending(code)} while {doing}")


@contextmanager
def _child(
    what: str, path: Path, limits: Limits
) -> Iterator[tuple[subprocess.Popen[bytes], queue.Queue[bytes], Callable[[], bytearray]]]:
    """Start the process and yield it, the lines of its stdout, and a reader of its stderr.

    An empty line ends the lines of stdout.
    """
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",  # equal bits are promised on CPUs only
        "PYTHONPATH": os.pathsep.join(
            filter(None, sys.path)
        ),  # the same modules as here, including plugins
        MEMORY: str(limits.memory),
    }
    process = subprocess.Popen(
        _command(what, path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    lines: queue.Queue[bytes] = queue.Queue(maxsize=100)
    errors, over = bytearray(), threading.Event()

    def listen(pipe: IO[bytes]) -> None:
        remaining_bytes = limits.output
        line = b"more than it may"
        while line and remaining_bytes > 0:
            line = pipe.readline(remaining_bytes)
            remaining_bytes -= len(line)
            while not over.is_set():
                try:
                    lines.put(line, timeout=_TICK)
                    break
                except queue.Full:
                    continue

    def keep_last(pipe: IO[bytes]) -> None:
        while piece := os.read(pipe.fileno(), 2**16):
            errors.extend(piece)
            del errors[:-2000]

    assert process.stdout
    assert process.stderr
    pairs = ((listen, process.stdout), (keep_last, process.stderr))
    threads = [threading.Thread(target=target, args=(pipe,), daemon=True) for target, pipe in pairs]
    for thread in threads:
        thread.start()

    def hear_out() -> bytearray:
        """Return the end of stderr of a process that has ended.

        Its thread has read all of it by then.
        """
        threads[1].join(timeout=5.0)  # another process may hold the pipe, so not for ever
        return errors

    try:
        yield process, lines, hear_out
    finally:
        over.set()
        process.kill()
        process.wait()
        for thread, (_, pipe) in zip(threads, pairs, strict=True):
            thread.join(timeout=5.0)
            if (
                not thread.is_alive()
            ):  # otherwise another process holds the pipe, and closing it would block
                pipe.close()


def _command(what: str, path: Path) -> list[str]:
    # -P keeps the current folder out of the module path.
    return [
        sys.executable,
        "-P",
        "-m",
        "rlbench_suite.leaderboard.child",
        what,
        str(path.resolve()),
    ]


def _await_end(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code of a process that has closed its stdout.

    A process that does not end soon is killed.
    """
    try:
        return process.wait(timeout=5.0)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _resident(process: int) -> int:
    """Return the resident bytes of a process; 0 where the system does not tell (outside Linux)."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except (OSError, IndexError, ValueError):
        return 0


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


def _last_line(errors: bytearray) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return plain_sentence(lines[-1] if lines else "without an error message")

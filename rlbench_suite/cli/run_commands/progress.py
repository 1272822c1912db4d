"""Progress of a run: a bar for each running cell in a terminal, a line now and then in a log."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from rlbench_suite.core.agent import Progress as TrainingProgress
    from rlbench_suite.evaluation.cell import Cell, Event
    from rlbench_suite.evaluation.runs.language_model import Episodes
    from rlbench_suite.evaluation.runs.open_run import OpenRun

_LOG_SECONDS = 10.0
"""Without a terminal, seconds between two lines on the progress of running cells."""


def watch(events: "Iterator[Event]", run: "OpenRun", console: Console) -> "list[tuple[Cell, str]]":
    """Print a line for each finished cell, and show a bar for each running one.

    A log gets a line now and then in place of a bar.

    A log also says when an agent's programs for a task begin to be compiled. Nothing else happens
    for a while then.

    Return the cells that failed, each with its reason.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    bars: dict[Cell, TaskID] = {}
    failures: list[tuple[Cell, str]] = []
    compiled_programs: set[tuple[str, str]] = set()
    total = len(run.requested_cells)
    done = total - len(run.missing())
    line_time = time.monotonic()

    def print_line(cell: "Cell", text: str) -> None:
        nonlocal line_time
        line_time = time.monotonic()
        console.print(
            f"[{done}/{total}] {cell}: {text}", highlight=False, markup=False, soft_wrap=True
        )

    progress_bars = Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    )
    with _interruptible(), progress_bars:
        for kind, cell, value in events:
            match kind:
                case "started":
                    bars[cell] = progress_bars.add_task(str(cell), total=None, state="starting")
                    programs = (cell.agent, cell.task)
                    if not console.is_terminal and programs not in compiled_programs:
                        compiled_programs.add(programs)
                        print_line(cell, "Compiling its programs, which is done once in a worker.")
                case "progress":
                    state = _describe(value)
                    progress_bars.update(
                        bars[cell], completed=value.steps, total=value.total_steps, state=state
                    )
                    if not console.is_terminal and time.monotonic() - line_time > _LOG_SECONDS:
                        print_line(cell, state)
                case "finished":
                    done += 1
                    score = f"score {value.score:.3f}, return {value.mean_return:.4g}"
                    print_line(cell, f"{score}, {value.wall_seconds:.1f} s")
                case "retried":
                    print_line(cell, f"retried: {value}")
                case "failed":
                    print_line(cell, f"failed: {value}")
                    failures.append((cell, value))
            if kind not in ("started", "progress") and cell in bars:
                progress_bars.remove_task(bars.pop(cell))
    return failures


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM interrupt a run like Ctrl-C.

    So does a SIGINT that the shell has told background jobs to ignore.
    """
    with ExitStack() as undo:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.signal(number, signal.default_int_handler)
                undo.callback(signal.signal, number, signal.SIG_DFL if handler is None else handler)
        yield


def _describe(progress: "TrainingProgress | Episodes") -> str:
    from rlbench_suite.evaluation.report.chart import number
    from rlbench_suite.evaluation.runs.language_model import Episodes

    if isinstance(progress, Episodes):
        cost = "" if progress.cost is None else f", ${progress.cost:.2f}"
        return (
            f"{progress.steps} of {progress.total_steps} episodes, {number(progress.tokens)} "
            f"tokens{cost}"
        )
    speed = f"{number(progress.steps / progress.seconds)} steps/s" if progress.seconds else ""
    if math.isnan(progress.episode_return):
        return speed
    return f"{speed}, return {progress.episode_return:.4g}"

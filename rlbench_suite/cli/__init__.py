"""The command line: ``rlsuite`` and ``rlsuite-eval``.

Commands import what is heavy when they run, so that ``rlsuite list`` and ``--help`` answer at once.
"""

import os
import sys
from pathlib import Path
from typing import Any

import typer

from rlbench_suite.evaluation.staging import Unwritten


class App(typer.Typer):
    """A program whose errors are one sentence on stderr: exit code 2 for those a user can mend, 1 for a full disk."""

    def __init__(self, help: str) -> None:
        super().__init__(help=help, rich_markup_mode="markdown", add_completion=False, pretty_exceptions_enable=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        try:
            return super().__call__(*args, **kwargs)
        except Unwritten as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)
        except (ValueError, OSError, ImportError) as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)


def prepare_jax(pool: int | None = None) -> None:
    """What JAX and worker processes find in the environment; call before JAX loads. What the user set stays.

    Args:
        pool: threads of JAX's pool on the CPU; as many as cores if None.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rlbench_suite", "xla")
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
        # Several workers share an accelerator's memory.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        # Workers run side by side: one thread each for torch and BLAS.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if pool is not None:
        settings["PJRT_NPROC"] = str(pool)
    for name, value in settings.items():
        os.environ.setdefault(name, value)

"""The command lines: ``rlsuite``, ``rlsuite-eval``, ``rlsuite-data`` and ``rlsuite-leaderboard``.

Commands do their slow imports when they run, so that ``rlsuite list`` and ``--help`` answer at
once.
"""

import math
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup
from typer.models import Default

from rlbench_suite.foundation.atomic_files import DISK, CannotWrite

CACHE_BYTES = 2**30
"""Approximate size limit of the cache of compiled programs."""

INTERRUPTED_EXIT_CODE = 130
"""Exit code of a program that Ctrl-C ended."""

HELP = {"help_option_names": ["--help", "-h"]}
"""Settings of a program that lets ``-h`` print the help, its sub-commands' too."""

_LOG_WIDTH = 140
"""Columns of tables that are printed into a file or a pipe."""

_COLOURED_WARNING = re.compile(r"\x1b\[[0-9;]*mWARN: (.*)\x1b\[0m", re.DOTALL)
"""A message of ``gymnasium.logger.warn``."""


class Commands(TyperGroup):
    """Commands whose refusals of a number name it. Typer says only that it is none."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the arguments of the program."""
        with _naming_values():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _naming_values():
            return super().invoke(ctx)


class Command(TyperCommand):
    """Command that refuses empty values, which would count as values that were left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the command.

        Raises:
            ValueError: an option or argument is an empty text, and that is not its default.
        """
        values, _, _ = self.make_parser(ctx).parse_args(args=[*args])
        for parameter in self.get_params(ctx):
            if parameter.default != "" and _has_empty_text(values.get(parameter.name)):
                is_option = parameter.param_type_name == "option"
                name = " or ".join(parameter.opts) if is_option else _argument_name(parameter)
                advice = "give it a value" if parameter.required else "leave it out or give a value"
                raise ValueError(f"{name} is empty; {advice}.")
        return super().parse_args(ctx, args)


def _argument_name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _has_empty_text(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_empty_text, value))
    return isinstance(value, str) and not value.strip()


@contextmanager
def _naming_values() -> Iterator[None]:
    try:
        yield
    except typer.BadParameter as refusal:
        if (details := getattr(refusal.__cause__, "errors", None)) and "'" not in refusal.message:
            refusal.message += f", got {details()[0]['input']!r}."
        raise


class App(typer.Typer):
    """A command-line program that prints errors a user can fix as one sentence on stderr.

    The exit code is 2 for a wrong argument, and 1 where a file could not be written. Warnings of
    Gymnasium's logger are plain lines on stderr, too. Without ``help``, the callback's docstring is
    the help text.
    """

    def __init__(self, help: str | None = None, commands: type[Commands] = Commands) -> None:
        super().__init__(
            cls=commands,
            help=Default(None) if help is None else help,
            rich_markup_mode="markdown",
            context_settings=HELP,
            add_completion=False,
            pretty_exceptions_enable=False,
        )

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Return a decorator that makes a function a command."""
        return super().command(name, **{"cls": Command} | settings)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        try:
            with _plain_warnings():
                return super().__call__(*args, **kwargs)
        except (ValueError, OSError, ImportError) as error:
            print(f"error: {_sentence(error)}", file=sys.stderr)
            sys.exit(
                1 if isinstance(error, CannotWrite) or getattr(error, "errno", None) in DISK else 2
            )


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print Gymnasium's coloured warnings as plain lines on stderr, and others as usual."""
    show_as_usual = warnings.showwarning

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        if coloured := _COLOURED_WARNING.fullmatch(str(message)):
            print(f"warning: {coloured[1]}", file=sys.stderr)
        else:
            show_as_usual(message, *args, **kwargs)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _sentence(error: Exception) -> str:
    """Return the message of an error.

    That of the system comes without its number, but with the file that was asked for.
    """
    if (
        isinstance(error, OSError)
        and error.strerror
        and (file := error.filename2 or error.filename)
    ):
        return f"{file}: {error.strerror}."
    return str(error)


def output_console() -> Console:
    """Return a console on stdout. Without a terminal, its lines are wide enough for the tables."""
    return Console() if sys.stdout.isatty() else Console(width=_LOG_WIDTH)


def check_at_least(option: str, value: float, minimum: int) -> None:
    """Refuse a number below ``minimum``, NaN and infinity.

    Raises:
        ValueError: the message names the option, the number and the allowed range.
    """
    if not (math.isfinite(value) and value >= minimum):
        raise ValueError(f"{option} must be at least {minimum}, got {value}.")


def check_positive(option: str, value: float) -> None:
    """Refuse zero, negative numbers, NaN and infinity.

    Raises:
        ValueError: the message names the option, the number and the allowed range.
    """
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{option} must be a finite number above 0, got {value}.")


def prepare_jax(pool: int | None = None) -> None:
    """Set environment variables for JAX and worker processes; keep those that the user has set.

    Call it before JAX is imported.

    Args:
        pool: threads of JAX's pool on the CPU; None means one for each core.
    """
    settings = {
        # Several workers share an accelerator's memory.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        # Workers run side by side, so torch and BLAS get one thread in each.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if pool is not None:
        settings["PJRT_NPROC"] = str(pool)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ and (cache := _compilation_cache()):
        settings["JAX_COMPILATION_CACHE_DIR"] = str(cache)
        settings["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    for name, value in settings.items():
        os.environ.setdefault(name, value)


def _compilation_cache() -> Path | None:
    """Return the folder in which JAX keeps compiled programs between commands.

    It is None if the folder cannot be written.

    We limit its size ourselves. JAX's own limit needs another package, and it stops caching once a
    process is killed during a write.
    """
    try:
        folder = Path(
            os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rlbench_suite", "xla"
        )
        version_folder = folder / f"jaxlib-{version('jaxlib')}"
        version_folder.mkdir(parents=True, exist_ok=True)
        if not os.access(version_folder, os.W_OK | os.X_OK):
            return None
        files = [(path.stat(), path) for path in folder.rglob("*") if path.is_file()]
    except (OSError, RuntimeError):  # the latter where there is no home
        return None
    room = CACHE_BYTES
    for status, path in sorted(files, key=lambda file: file[0].st_mtime, reverse=True):
        room -= status.st_size
        if room < 0:  # the oldest
            with suppress(OSError):
                path.unlink()
    return version_folder

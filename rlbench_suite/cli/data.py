"""``rlsuite-data``: list, build, download and verify offline datasets."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rlbench_suite.cli import INTERRUPTED_EXIT_CODE, App, prepare_jax
from rlbench_suite.core import registry
from rlbench_suite.evaluation.report.whole_table import Table

app = App(help="List, build, download and verify offline datasets, in Minari's format and folder.")

Names = Annotated[
    str,
    typer.Argument(
        help="Datasets, separated by commas: `hover/medium`, `hover` (all of hover), `all`."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace installed datasets.")]


@app.command("list")
def list_datasets() -> None:
    """List every dataset of the catalogue.

    **Example**: `rlsuite-data list`
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("dataset", "episodes", "steps", "score", "MB", "installed"):
        table.add_column(
            column, no_wrap=True, justify="left" if column in ("dataset", "installed") else "right"
        )
    for entry in registry.datasets().catalogue().values():
        numbers = ("", "", "")
        if fingerprint := entry.fingerprint:
            numbers = (
                f"{fingerprint.steps:,}",
                f"{entry.score:.2f}",
                f"{fingerprint.megabytes:.0f}",
            )
        installed = "yes" if (_root() / entry.id / "data").is_dir() else ""
        table.add_row(entry.id, str(entry.episodes), *numbers, installed)
    Console().print(table)
    print(
        f"Folder: {_root()} (set by MINARI_DATASETS_PATH). Score: mean over episodes; 0 is the "
        "best play without skill, 1 the reference player."
    )


def _root() -> Path:
    """Return Minari's folder without importing Minari."""
    return Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")


@app.command()
def show(
    dataset: Annotated[
        str, typer.Argument(help="Id of a dataset; `rlsuite/` and the version may be left out.")
    ],
) -> None:
    """Show a dataset: its recipe, and the measured size, return and content hashes.

    **Example**: `rlsuite-data show hover/medium`
    """
    entry = registry.datasets().find(dataset)
    fingerprint = entry.fingerprint
    scores = entry.card.scores(entry.difficulty)
    facts = {
        "task": f"{entry.card.id}: {entry.card.summary}",
        "difficulty": entry.difficulty or "",
        "player": entry.described(),
        "episodes": (
            f"{entry.episodes}, the first of each seed {entry.seeds[0]} to {entry.seeds[-1]} "
            "(train split)"
        ),
        "reference scores": (
            f"random {scores['random'].mean:g}, reference {scores['reference'].mean:g}"
        ),
    }
    if fingerprint:
        facts |= {
            "steps": f"{fingerprint.steps:,}",
            "mean return": f"{fingerprint.mean_return:g}",
            "mean score": f"{entry.score:.4f}",
            "size": f"{fingerprint.megabytes:g} MB",
        }
        for arithmetic, sha256 in fingerprint.sha256.items():
            facts[f"SHA-256 of content, {arithmetic}"] = f"{sha256} (jaxlib {fingerprint.jaxlib})"
    facts["installed"] = str(_root() / entry.id) if (_root() / entry.id / "data").is_dir() else "no"
    facts["load"] = f'minari.load_dataset("{entry.id}")'
    table = Table(title=entry.id, title_justify="left", show_header=False, box=None)
    for name, value in facts.items():
        if value:
            table.add_row(f"[bold]{name}", value)
    Console().print(table)


@app.command()
def build(names: Names, force: Force = False) -> None:
    """Build datasets from their recipes on this machine, and compare them with the catalogue.

    **Example**: `rlsuite-data build hover`
    """
    _install(names, lambda entry, bar: _build_and_compare(entry, force, bar), force)


@app.command()
def download(
    names: Names,
    remote: Annotated[
        str | None,
        typer.Option(
            help=(
                "Source: `https://HOST/PATH`, `file:///PATH` or `hf://ORGANISATION`. [default: the "
                "environment variable RLSUITE_DATA_REMOTE, or `remote` in `[data]` of "
                "~/.config/rlbench_suite/config.toml]"
            ),
            show_default=False,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Download datasets from a remote; without a remote, build them from their recipes.

    **Example**: `rlsuite-data download hover/expert --remote https://example.org/data`
    """
    data = registry.datasets()
    if remote is None:
        remote = data.configured_remote()
    if remote is None:
        print(
            "No remote is configured (--remote, RLSUITE_DATA_REMOTE). Building from the recipe, "
            "which gives the same dataset."
        )
        return build(names, force)
    _install(names, lambda entry, bar: data.download(entry, remote, force=force, show=bar), force)


def _build(entry: Any, force: bool, bar: Callable[..., None]) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it is said below, as a sentence
        path: Path = registry.datasets().build(entry, force=force, show=bar)
    return path


def _build_and_compare(entry: Any, force: bool, bar: Callable[..., None]) -> Path:
    path = _build(entry, force, bar)
    comparison = registry.datasets().compare_with_catalogue(entry)
    if comparison.differs:
        print(f"warning: {comparison.words}", file=sys.stderr, flush=True)
    else:
        print(comparison.words, flush=True)
    return path


def _install(names: str, make: Callable[..., Path], force: bool) -> None:
    entries = registry.datasets().resolve(names)
    prepare_jax()
    for entry in entries:
        if not force and (_root() / entry.id / "data").is_dir():
            print(f"{entry.id} is already installed: {_root() / entry.id}")
            continue
        with _bar(entry.id) as bar:
            path = make(entry, bar)
        print(f"{entry.id} is installed: {path}", flush=True)


@app.command()
def verify(names: Names) -> None:
    """Verify installed datasets: check metadata and content, and replay every recorded action.

    **Example**: `rlsuite-data verify hover/expert`
    """
    entries = registry.datasets().resolve(names)
    prepare_jax()
    for entry in entries:
        with _bar(entry.id) as bar:
            verdict = registry.datasets().verify(entry, show=bar)
        equal = "to the bit" if verdict.difference == 0 else f"within {verdict.difference:.2g}"
        print(
            f"{entry.id} is verified: content known from {verdict.origin}, {verdict.steps:,} steps "
            f"replayed {equal}."
        )


@app.command()
def publish(
    names: Names,
    to: Annotated[Path, typer.Option(help="Folder to write, ready to be served or uploaded.")],
    layout: Annotated[
        str, typer.Option(help="`folder` (zip archives) or `hf` (a Hugging Face repository).")
    ] = "folder",
) -> None:
    """Write installed datasets to a folder in the layout of a remote.

    **Example**: `rlsuite-data publish all --to public`
    """
    registry.datasets().publish(registry.datasets().resolve(names), to, layout)
    print(f"Ready to serve or upload: {to}")


@app.command()
def fingerprint(names: Names) -> None:
    """Build datasets and record their size, score and hash in the catalogue.

    Use it in a source checkout after changing a recipe.

    **Example**: `rlsuite-data fingerprint all`
    """
    entries = registry.datasets().resolve(names)
    prepare_jax()
    for entry in entries:
        with _bar(entry.id) as bar:
            _build(entry, True, bar)
        measured = registry.datasets().fingerprint(entry)
        score = entry.card.normalise(measured.mean_return, entry.difficulty)
        print(
            f"{entry.id}: {measured.steps:,} steps, score {score:.4f}, {measured.megabytes:g} MB",
            flush=True,
        )


@contextmanager
def _bar(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar in a terminal, and end the program cleanly on Ctrl-C."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    console = Console()
    try:
        with Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress:
            task = progress.add_task(name, total=None)
            yield lambda what, completed, total: progress.update(
                task, description=f"{what} {name}", completed=completed, total=total
            )
    except KeyboardInterrupt:
        print(f"\nInterrupted; no part of {name} was kept.")
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None

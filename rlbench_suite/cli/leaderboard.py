"""Build ``rlsuite-leaderboard``, which packs runs, verifies archives and builds result pages."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape

from rlbench_suite.cli import App, options, output_console, prepare_jax
from rlbench_suite.core import registry
from rlbench_suite.core.task_card import load
from rlbench_suite.evaluation.report.whole_table import Table

if TYPE_CHECKING:
    from rlbench_suite.leaderboard.verify import Verdict

app = App(
    help=(
        "Pack runs into archives that anyone can replay, verify them, and build pages of verified "
        "results."
    )
)

WING = "rlbench_suite.leaderboard"
"""Package that is loaded by name, as families and agents are, because the package imports no wing.
"""

Archives = Annotated[
    list[Path], typer.Argument(help="Archives that `pack` wrote.", show_default=False)
]


@app.command()
def pack(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run of `rlsuite-eval`.")],
    agent: Annotated[
        str | None,
        typer.Option(help="Agent of the run. [default: its only one]", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the entry. [default: the agent's]", show_default=False),
    ] = None,
    entry_version: Annotated[int, typer.Option(help="Version of the entry: 1, 2, ...")] = 1,
    author: Annotated[
        list[str] | None, typer.Option(help="An author; may be repeated.", show_default=False)
    ] = None,
    link: Annotated[
        list[str] | None,
        typer.Option(help="Link to a paper or code; may be repeated.", show_default=False),
    ] = None,
    description: Annotated[
        str, typer.Option(help="A few sentences on what is new in this entry.", show_default=False)
    ] = "",
    suites: options.SelectedTasks = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write. [default: NAME-vVERSION.zip]", show_default=False),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Verify the archive; delete it if it fails.")
    ] = True,
) -> None:
    """Pack a run into an archive: the actions of all evaluation episodes, and the claimed results.

    **Examples**

    * `rlsuite-leaderboard pack runs/ppo-smoke-smoke --author "Ada Lovelace" --link
      https://example.org/paper`

    * `rlsuite-leaderboard pack runs/all --agent ppo --name ppo-wide --suite motor --out wide.zip`
    """
    _prepare()
    from pydantic import ValidationError

    choose_agent = load(f"{WING}.pack:choose_agent")
    agent_name = choose_agent(run, agent)
    try:
        entry = load(f"{WING}.schema:Entry")(
            name=name or agent_name,
            version=entry_version,
            agent=agent_name,
            authors=tuple(author or ()),
            links=tuple(link or ()),
            description=description,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"Invalid {first['loc'][0]} {first['input']!r}: {first['msg']}.") from None
    to = out or Path(f"{entry.title}.zip")
    if to.exists():
        raise ValueError(f"{to} already exists; choose another --out.")
    submission = load(f"{WING}.pack:pack")(run, entry, to, suite=options.join_suites(suites))
    seeds = len(submission.tasks[0].cells)
    if check:
        verdict = _verify(to)
        if not verdict.accepted:
            to.unlink()
            _say_rejected(to, verdict)
            raise typer.Exit(1)
    size = to.stat().st_size
    print(
        f"{to}: {entry.title}, {_count(len(submission.tasks), 'task')}, {_count(seeds, 'seed')}, "
        f"{size / 1e6:.2f} MB, {_manner(verdict) if check else 'not verified'}."
    )
    if not entry.authors:
        print(
            (
                "warning: no authors are named, so no later version can replace this one; add them "
                "with --author."
            ),
            file=sys.stderr,
        )


@app.command()
def verify(archives: Archives) -> None:
    """Replay archives in fresh environments and recompute every number.

    Each archive is read in its own process, with limits on time, memory and output.

    Exit codes: 0 all were accepted, 1 one was rejected (the reasons are on stderr), 2 a wrong
    argument.

    **Example**: `rlsuite-leaderboard verify ppo-v1.zip`
    """
    for path in archives:
        if not path.is_file():
            raise OSError(f"There is no file {path}.")
    _prepare()
    rejected = False
    for path in archives:
        verdict = _verify(path)
        if verdict.accepted:
            _print_verdict(path, verdict)
        else:
            _say_rejected(path, verdict)
        rejected |= not verdict.accepted
    if rejected:
        raise typer.Exit(1)


@app.command()
def submit(
    archive: Annotated[Path, typer.Argument(help="Archive that `pack` wrote.")],
    to: Annotated[
        Path,
        typer.Argument(
            help="Directory of submissions, or a checkout of a repository that contains them."
        ),
    ],
    confirm_authors: Annotated[
        bool,
        typer.Option(
            "--confirm-authors",
            help=(
                "For the board's maintainer: confirm that the named authors sent it. A new version "
                "needs this."
            ),
        ),
    ] = False,
) -> None:
    """Verify an archive, copy it to the submissions and record its arrival in `log.jsonl`.

    A duplicate is refused: an archive in which most episodes repeat the actions of an earlier
    submission. In a git checkout, both files are committed with your own git; you push them
    yourself.

    Anybody can type the names of authors. So a new version of an entry is refused until the
    maintainer of the board, who knows its authors, submits it with `--confirm-authors`.

    **Examples**

    * `rlsuite-leaderboard submit ppo-v1.zip submissions`

    * `rlsuite-leaderboard submit ppo-v1.zip ~/leaderboard && git -C ~/leaderboard push`
    """
    if not archive.is_file():
        raise OSError(f"There is no file {archive}.")
    _prepare()
    with _progress() as progress:
        submit = load(f"{WING}.submit:submit")
        location, verdict = submit(archive, to, confirm_authors=confirm_authors, progress=progress)
    if not verdict.accepted:
        _say_rejected(archive, verdict)
        raise typer.Exit(1)
    print(f"{location}: accepted, {_manner(verdict)}.")


@app.command()
def build(
    submissions: Annotated[Path, typer.Argument(help="Directory of archives.")],
    site: Annotated[
        Path, typer.Argument(help="Directory to write: new, empty, or an earlier site.")
    ],
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Replay every archive, even those verified before.")
    ] = False,
) -> None:
    """Verify all archives and write static pages: rankings, a page for each entry, `results.json`.

    Rejected archives are listed on the first page and on stderr, and are not ranked.

    **Example**: `rlsuite-leaderboard build submissions site`
    """
    _prepare()
    with _progress() as progress:
        built = load(f"{WING}.site:build")(submissions, site, fresh=fresh, progress=progress)
    for name, problems in built.refused.items():
        more = f" And {len(problems) - 1} more." if len(problems) > 1 else ""
        print(f"refused: {name}: {problems[0]}{more}", file=sys.stderr)
    entries = _count(len(built.entries), "entry", "entries")
    rankings = _count(len(built.boards), "ranking")
    print(f"{site / 'index.html'}: {entries}, {rankings}.")


def _prepare() -> None:
    """Choose the CPU for replay, because only there results repeat to the bit."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    prepare_jax()


def _verify(path: Path) -> "Verdict":
    with _progress() as progress:
        verdict: Verdict = load(f"{WING}.judge:judge")(path, progress=progress)
    return verdict


@contextmanager
def _progress() -> Iterator[Callable[..., None]]:
    console = Console(stderr=True)
    with console.status("reading") as status:
        yield lambda doing: status.update(escape(doing))  # file names may look like markup


def _manner(verdict: "Verdict") -> str:
    if verdict.exact:
        return f"every return replayed to the bit ({verdict.judge.instruction_set})"
    return "replayed on another class of processor, every return within its task's tolerance"


def _print_verdict(path: Path, verdict: "Verdict") -> None:
    statistics: Any = load("rlbench_suite.evaluation.statistics.aggregates:mean")
    console = output_console()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    columns = (
        "task", "return", "score", "95 % interval", "success", "cost", "seeds", "episodes",
        "training steps", "time"
    )  # fmt: skip
    for column in columns:
        table.add_column(column, justify="left" if column == "task" else "right", no_wrap=True)
    claims = verdict.submission.tasks if verdict.submission else ()
    for task, scores in verdict.scores.items():
        cells = [cell for cell in verdict.cells if cell.task == task]
        estimate = statistics({task: scores})
        trained = [cell for claim in claims if claim.task == task for cell in claim.cells]
        steps = sum(cell.training_steps for cell in trained) / len(trained)
        seconds = sum(cell.train_seconds + cell.compile_seconds for cell in trained) / len(trained)
        table.add_row(
            task.split("/")[-1],
            f"{sum(cell.mean_return for cell in cells) / len(cells):.4g}",
            f"{estimate.point:.3f}",
            f"[{estimate.low:.2f}, {estimate.high:.2f}]" if len(scores) > 1 else "-",
            f"{sum(cell.success_rate for cell in cells) / len(cells):.0%}",
            _cost(task, sum(cell.mean_cost for cell in cells) / len(cells)),
            str(len(cells)),
            str(sum(cell.episodes for cell in cells)),
            f"{steps:,.0f}" if steps else "-",
            f"{seconds:,.1f} s" if seconds else "-",
        )
    console.print(table)
    title = verdict.submission.entry.title if verdict.submission else path.name
    episodes = sum(cell.episodes for cell in verdict.cells)
    console.print(
        f"accepted: {title}: {_manner(verdict)}, {episodes:,} episodes in {verdict.seconds:.0f} s.",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip


def _cost(task: str, mean: float) -> str:
    """Return a mean constraint cost beside its limit, and say so if it is exceeded."""
    constraint = registry.constraint(task)
    if constraint is None:
        return "-"
    return f"{mean:.3g} of {constraint.limit:g}" + " [red]violates[/]" * bool(
        constraint.broken_by(mean)
    )


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def _say_rejected(path: Path, verdict: "Verdict") -> None:
    name = load(f"{WING}.folder:escape_name")(path.name)
    for problem in verdict.problems:
        print(f"rejected: {name}: {problem}", file=sys.stderr)

"""``rlsuite-eval query`` and ``rlsuite-eval export``: take the results of finished runs elsewhere."""

import csv
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape

from rlbench_suite.cli import prepare_jax
from rlbench_suite.cli.compare import finite
from rlbench_suite.evaluation.writing import check_file, replacing, writing
from rlbench_suite.task_card import unknown
from rlbench_suite.whole_table import Table

if TYPE_CHECKING:
    from rlbench_suite.evaluation.query import Answer, Database

_LOG_WIDTH = 140
POLICIES = ("onnx", "c")
"""Formats of policies."""


def query(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SQL RUN...",
            help="A SELECT, then run directories or URLs; with --tables only these.",
            show_default=False,
        ),
    ] = None,
    tables: Annotated[bool, typer.Option("--tables", help="List the tables and their columns.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object for each row.")] = False,
) -> None:
    """Ask SQL about the results of many runs.

    The tables are `cells`, `episodes`, `curves` and `failed`; each row has the name of its run. A query reads nothing
    else and changes nothing.

    **Examples**

    * `rlsuite-eval query --tables runs/mine`

    * `rlsuite-eval query "SELECT task, budget, agent, avg(score) FROM cells GROUP BY ALL ORDER BY ALL" runs/*`

    * `rlsuite-eval query "SELECT task, avg(success::INT) FROM episodes GROUP BY task" runs/mine --csv`
    """
    from rlbench_suite.cli.finished import finished
    from rlbench_suite.evaluation.query import FILES, Database

    sql, *paths = ["", *(arguments or ())] if tables else arguments or [""]
    if tables and (not paths or paths[0].lower().startswith(("select ", "from "))):
        raise ValueError("--tables takes run directories and no SQL: rlsuite-eval query --tables RUN")
    if not paths:
        raise ValueError(f"A query needs SQL and then a run directory, got only {sql!r}.")
    if not tables and " " not in sql.strip() and any(" " in path and not Path(path).exists() for path in paths):
        raise ValueError(f'SQL comes first, then the runs: rlsuite-eval query "SELECT ..." {sql}')
    if as_csv and as_json:
        raise ValueError("Choose one of --csv and --json.")
    if file := next((path for path in paths if path.endswith((".csv", ".json")) and not Path(path).exists()), None):
        raise ValueError(f"{file} is no run. --csv and --json of a query print, and take no file: write it by > {file}")
    with finished(paths, tuple(FILES.values())) as runs:
        database = Database(runs)
        answer = _tables(database) if tables else database.ask(sql)
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([answer.columns, *answer.rows])
    elif as_json:
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        print(json.dumps(finite(rows), indent=2, default=_plain, allow_nan=False))
    else:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column in answer.columns:
            table.add_column(_shown(column))
        for row in answer.rows:
            table.add_row(*map(_shown, row))
        console = Console() if sys.stdout.isatty() else Console(width=_LOG_WIDTH)
        console.print(table)


def _plain(value: Any) -> Any:
    """Return a value that JSON does not have as a number or text."""
    return float(value) if isinstance(value, Decimal) else str(value)


def _shown(value: Any) -> str:
    """Return a value as a table shows it. Characters that would steer the terminal are written as codes."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.6g}"
    return escape("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in str(value)))


def export(
    run: Annotated[str, typer.Argument(help="Run directory of `rlsuite-eval`, or its URL.", show_default=False)],
    cell: Annotated[
        str | None,
        typer.Argument(
            help="Cell whose policy is exported: its folder, `ppo/PMSMSpeed-v0/0`, or the beginning of it, which means "
            "the first seed.",
            show_default=False,
        ),
    ] = None,
    *,
    to: Annotated[
        str,
        typer.Option("--format", help="`latex`, `csv` or `huggingface`; of a cell `onnx` or `c`.", show_default=False),
    ],
    out: Annotated[Path | None, typer.Option(help="File to write. [default: print]", show_default=False)] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="`c`: round weights to 8 bits, and measure what that costs.")
    ] = False,
    most_likely: Annotated[
        bool, typer.Option("--most-likely", help="Export the most likely action of a policy that samples its actions.")
    ] = False,
) -> None:
    """Export the results of a run, or the policy of one of its cells.

    `latex` is a table for `booktabs` with a row for each task, `csv` has a row for each cell, and `huggingface` is the
    `model-index` of a model card. `onnx` and `c` write the acting policy of a cell, with its normalisation, masks and
    memory: an ONNX file that `--checkpoint` plays, or one C99 header in physical units for a microcontroller.

    **Examples**

    * `rlsuite-eval export runs/mine --format latex --out scores.tex`

    * `rlsuite-eval export runs/mine ppo/PMSMSpeed-v0/0 --format c --out my_motor.h`
    """
    check_file(out)
    if cell is not None or to in POLICIES:
        _export_policy(run, cell, to, out, int8=int8, most_likely=most_likely)
        return
    if int8 or most_likely:
        raise ValueError(f"--int8 and --most-likely are for policies, not for the format {to!r}.")
    from rlbench_suite.cli.finished import finished
    from rlbench_suite.evaluation.exports import FORMATS

    if to not in FORMATS:
        raise ValueError(f"{unknown('format', to, [*FORMATS, *POLICIES])} {_formats()}")
    with finished([run]) as [read]:
        text = FORMATS[to](read)
    if out is None:
        print(text, end="")
    else:
        with writing(out), replacing(out) as unfinished:
            unfinished.write_text(text)
        print(f"{out}: {len(text.encode()):,} bytes.")


def _export_policy(run: str, cell: str | None, to: str, out: Path | None, *, int8: bool, most_likely: bool) -> None:
    """Write the policy of a cell, and print how far it differs from the policy of the simulator."""
    if to not in POLICIES:
        raise ValueError(
            f"{cell!r} after the run names a cell, whose policy has no format {to!r}. {_formats()} Export one run at a "
            "time."
        )
    if cell is None:
        raise ValueError(
            f"The format {to!r} exports the policy of a cell; name it after the run, as ppo/PMSMSpeed-v0/0."
        )
    if int8 and to != "c":
        raise ValueError("--int8 is for the format c.")
    if "://" in run:
        raise ValueError(f"A policy is exported from a run directory; copy {run} to this machine first.")
    if out is None:
        raise ValueError("Name the file to write with --out.")
    prepare_jax()
    from rlbench_suite.evaluation import exporting

    found = exporting.read_export(Path(run), cell, most_likely=most_likely, eight_bits=int8)
    data = exporting.onnx(found) if to == "onnx" else exporting.c(found, out.stem).encode()
    with writing(out), replacing(out) as unfinished:
        unfinished.write_bytes(data)
    steps = sum(len(episode.actions) for episode in found.episodes)
    what = "of the actions differ" if found.network.choices else "of its range is the largest difference of an action"
    loss = "" if found.loss is None else f" 8 bits lower the mean return by {found.loss:.4g}."
    said = f"{out}: {found.cell}, {len(data):,} bytes. Over {steps:,} steps"
    print(f"{said} {found.difference:.2g} {what} from the policy.{loss}")
    if found.broken_limit:
        print(f"warning: {found.broken_limit}", file=sys.stderr)


def _formats() -> str:
    from rlbench_suite.evaluation.exports import FORMATS

    return (
        f"The results of a run have the formats {', '.join(FORMATS)}; the policy of a cell has {', '.join(POLICIES)}."
    )


def _tables(database: "Database") -> "Answer":
    from rlbench_suite.evaluation.query import TABLES, Answer

    rows = [
        (table, meaning, column, kind)
        for table, meaning in TABLES.items()
        for column, kind in database.columns(table).items()
    ]
    return Answer(("table", "row", "column", "type"), tuple(rows))

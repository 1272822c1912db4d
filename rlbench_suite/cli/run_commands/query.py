"""``rlsuite-eval query`` and ``rlsuite-eval tables``: SQL over the results of finished runs."""

import csv
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape

from rlbench_suite.cli import output_console
from rlbench_suite.cli.run_commands.compare import finite
from rlbench_suite.evaluation.report.whole_table import Table

if TYPE_CHECKING:
    from rlbench_suite.evaluation.analysis.query import Answer

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        help="Run directories of `rlsuite-eval`, or URLs of runs.",
        show_default=False,
    ),
]
Format = Annotated[
    Literal["table", "csv", "json"],
    typer.Option("--format", help="Format to print; `json` has an object for each row."),
]


def query(
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="A SELECT, in quotes.", show_default=False)
    ],
    runs: Runs,
    file_format: Format = "table",
) -> None:
    """Ask SQL about the results of many runs.

    The tables are `cells`, `episodes`, `curves` and `failed`; each row has the name of its run.
    `rlsuite-eval tables` lists their columns. A query reads nothing else and changes nothing.

    **Examples**

    * `rlsuite-eval query "SELECT task, budget, agent, avg(score) FROM cells GROUP BY ALL ORDER BY
      ALL" runs/*`

    * `rlsuite-eval query "SELECT task, avg(success::INT) FROM episodes GROUP BY task" runs/mine
      --format csv`
    """
    from rlbench_suite.cli.run_commands.finished import read_finished_runs
    from rlbench_suite.evaluation.analysis.query import FILES, Database

    if " " not in sql.strip() and any(" " in run and not Path(run).exists() for run in runs):
        raise ValueError(f'SQL comes first, then the runs: rlsuite-eval query "SELECT ..." {sql}')
    with read_finished_runs(runs, tuple(FILES.values())) as finished_runs:
        answer = Database(finished_runs).ask(sql)
    _print_answer(answer, file_format)


def tables(runs: Runs, file_format: Format = "table") -> None:
    """List the tables that `query` reads, and their columns.

    **Example**: `rlsuite-eval tables runs/mine`
    """
    from rlbench_suite.cli.run_commands.finished import read_finished_runs
    from rlbench_suite.evaluation.analysis.query import FILES, TABLES, Answer, Database

    with read_finished_runs(runs, tuple(FILES.values())) as finished_runs:
        database = Database(finished_runs)
        rows = [
            (table, meaning, column, kind)
            for table, meaning in TABLES.items()
            for column, kind in database.columns(table).items()
        ]
    _print_answer(Answer(("table", "row", "column", "type"), tuple(rows)), file_format)


def _print_answer(answer: "Answer", file_format: Literal["table", "csv", "json"]) -> None:
    if file_format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([answer.columns, *answer.rows])
    elif file_format == "json":
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        print(json.dumps(finite(rows), indent=2, default=_plain, allow_nan=False))
    else:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column in answer.columns:
            table.add_column(_cell_text(column))
        for row in answer.rows:
            table.add_row(*map(_cell_text, row))
        output_console().print(table)


def _plain(value: Any) -> Any:
    """Return a value that JSON does not have as a number or text."""
    return float(value) if isinstance(value, Decimal) else str(value)


def _cell_text(value: Any) -> str:
    """Return a value as a table shows it.

    Characters that would steer the terminal are written as codes.
    """
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.6g}"
    return escape(
        "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in str(value))
    )

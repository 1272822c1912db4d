"""SQL over the tables of many runs, by DuckDB (extra ``query``).

The tables are copied into a database in memory. Then all access to files, the network and Python
objects is switched off for good, so that a query can neither read nor write anything else. A query
runs in a transaction that only reads, because a SELECT may hold a DELETE (``WITH gone AS (DELETE
...) SELECT``). Its time and memory are limited.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlbench_suite.evaluation.runs.run import Run, violates

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TABLES = {
    "cells": (
        "results of a cell: the contents of its result.json, and what its task's constraint makes "
        "of them"
    ),
    "episodes": "evaluation episodes",
    "curves": "progress during training",
    "failed": (
        "cells that failed, and are in no other table: a mean over cells of their agent leaves "
        "them out"
    ),
}
"""Tables and the meaning of a row. Each has the name of the run in its first column."""

FILES = {"episodes": "episodes.parquet", "curves": "curve.parquet"}
"""Files of a cell by the table that they are copied into."""


MEMORY_LIMIT = "4GB"
"""Memory of all tables and of a query."""
MAX_SECONDS = 60.0
"""Time after which a query is ended."""

_ZONED = "TIME ZONE"
"""Part of the names of types that have a time zone."""


@dataclass(frozen=True)
class Answer:
    """Columns and rows of the result of a query. Times with a time zone are texts, in UTC."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class Database:
    """Tables of several runs in memory, see :data:`TABLES`."""

    def __init__(self, runs: Sequence[Run]) -> None:
        """Load the tables.

        Raises:
            ImportError: DuckDB is not installed.
            ValueError: a file of a run is damaged.
        """
        try:
            import duckdb
        except ImportError:
            raise ImportError(
                "Queries need DuckDB; install it with: pip install 'rlbench-suite[query]'"
            ) from None
        self._duckdb = duckdb
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET TimeZone = 'UTC'")  # a query answers the same on all machines
        # A table that does not fit is refused; no disk is filled.
        self._connection.execute("SET temp_directory = ''")
        # A small file may hold a large table.
        self._connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        try:
            _load_cells(self._connection, runs)
            _load_failed(self._connection, runs)
            for table, file in FILES.items():
                _load_files(self._connection, runs, table, file)
        except duckdb.OutOfMemoryException:
            raise ValueError(f"The tables of the runs do not fit into {MEMORY_LIMIT}.") from None
        except duckdb.Error as error:
            raise ValueError(f"A table of a run is damaged: {_first_line(error)}") from None
        # Names of Python objects are no tables.
        self._connection.execute("SET python_enable_replacements = false")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def ask(self, sql: str) -> Answer:
        """Return the answer to one SELECT (or DESCRIBE, SHOW, SUMMARIZE, EXPLAIN).

        Raises:
            ValueError: the statement is another one, is wrong, changes a table, reads or writes
                outside the tables, or takes too much time or memory.
        """
        kinds = self._duckdb.StatementType
        self._connection.execute("BEGIN TRANSACTION READ ONLY")
        overdue = threading.Timer(MAX_SECONDS, self._connection.interrupt)
        overdue.start()
        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type not in (kinds.SELECT, kinds.EXPLAIN):
                raise ValueError(
                    "A query is one SELECT; others would change or read something beside the runs."
                )
            answer = self._connection.execute(statements[0])
            names, types = zip(
                *((str(name), str(kind)) for name, kind, *_ in answer.description or ()),
                strict=True,
            )
            if any(
                _ZONED in kind for kind in types
            ):  # DuckDB needs pytz to make Python objects of them
                columns = (
                    f"#{i}::VARCHAR" if _ZONED in kind else f"#{i}"
                    for i, kind in enumerate(types, 1)
                )
                answer = self._connection.execute(
                    f"SELECT {', '.join(columns)} FROM ({sql.strip().rstrip(';')}\n)"
                )
            return Answer(names, tuple(answer.fetchall()))
        except self._duckdb.InterruptException:
            raise ValueError(
                f"The query took longer than {MAX_SECONDS:g} s, and was ended."
            ) from None
        except self._duckdb.Error as error:
            tables = f" The tables are {', '.join(TABLES)}." * isinstance(
                error, self._duckdb.CatalogException
            )
            tables += " `rlsuite-eval tables` lists the columns." * isinstance(
                error, self._duckdb.BinderException
            )
            # With the nearest names, on other lines.
            reason = " ".join(str(error).partition("\n\nLINE")[0].split())
            raise ValueError(
                f"The query failed: {reason}{'' if reason.endswith(('.', '!')) else '.'}{tables}"
            ) from None
        finally:
            overdue.cancel()
            self._connection.execute("ROLLBACK")

    def columns(self, table: str) -> dict[str, str]:
        """Return the type of each column of a table by name."""
        return {str(row[0]): str(row[1]) for row in self.ask(f"DESCRIBE {table}").rows}


def _load_cells(connection: DuckDBPyConnection, runs: Sequence[Run]) -> None:
    import pyarrow as pa

    rows = [
        {
            "run": run.name,
            "budget": run.manifest.budget,
            **result.model_dump(),
            "violates": violates([result]),
            "constrained_score": result.constrained_score,
        }
        for run in runs
        for result in run.results()
    ]
    # Those of the first row are not all.
    columns = dict.fromkeys(name for row in rows for name in row)
    try:
        table = pa.table({name: [row.get(name) for row in rows] for name in columns})
    except pa.ArrowException as error:
        raise ValueError(
            f"The results of cells do not make one table: {_first_line(error)}"
        ) from None
    connection.register("loaded", table)
    connection.execute("CREATE TABLE cells AS SELECT * FROM loaded")
    connection.unregister("loaded")


def _load_failed(connection: DuckDBPyConnection, runs: Sequence[Run]) -> None:
    connection.execute(
        "CREATE TABLE failed (run VARCHAR, agent VARCHAR, task VARCHAR, seed BIGINT, error VARCHAR)"
    )
    for run in runs:
        for cell in run.failures():
            connection.execute("INSERT INTO failed VALUES (?, ?, ?, ?, ?)", [run.name, *cell])


def _load_files(connection: DuckDBPyConnection, runs: Iterable[Run], table: str, name: str) -> None:
    """Copy one file of every cell into a table. It has the columns of all files."""
    selects = []
    arguments = []
    for run in runs:
        files = [str(run.cell_path(result.cell) / name) for result in run.results()]
        if missing := [file for file in files if not Path(file).is_file()]:
            raise ValueError(f"{missing[0]} is missing; delete its folder and run the cell again.")
        selects.append("SELECT ? AS run, * FROM read_parquet(?, union_by_name = true)")
        arguments += [run.name, files]
    connection.execute(f"CREATE TABLE {table} AS {' UNION ALL BY NAME '.join(selects)}", arguments)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]

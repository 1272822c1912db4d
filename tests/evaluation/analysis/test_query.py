"""SQL over runs: equal to the tables, and kept away from everything else."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_runs import add_episodes, make_run

from rlbench_suite.core.registry import card
from rlbench_suite.evaluation.analysis import query
from rlbench_suite.evaluation.analysis.query import TABLES, Database
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import cell_folder, read_run, read_runs
from rlbench_suite.evaluation.runs.runner import in_process, plan

duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def paths(toys: Path, tmp_path: Path) -> list[Path]:
    """Two runs, one of which was not merged."""
    paths = [tmp_path / "one", tmp_path / "two"]
    for path, seeds in zip(paths, (2, 1), strict=True):
        with (
            OpenRun.open(path, plan("toy", "ToyWalk-v0,ToyDrift-v0", seeds, "smoke")) as run,
            run.sitting(),
        ):
            for event in in_process(run):
                assert event.kind != "failed", event.value
            if seeds == 2:
                run.merge()
    return paths


def test_cells_of_ids_with_keywords_are_found(tmp_path: Path):
    """The store puts them at a path without a question mark."""
    task = "rlsuite/ToyWalk-v0"
    run_path = make_run(tmp_path / "run", {"toy": {f"{task}?difficulty=hard": [0.5]}})
    (wrong,) = (run_path / "cells" / "toy").iterdir()
    wrong.rename(wrong.with_name("ToyWalk-v0,difficulty=hard"))
    (cell,) = read_run(run_path).results()
    assert cell.task == f"{task}?difficulty=hard"
    with OpenRun.open(tmp_path / "real", plan("noop", "SAT-v0?difficulty=hard", 1, "smoke")) as run:
        real = Cell("noop", card("SAT-v0?difficulty=hard").id, 0)
        assert cell_folder(run.path, real.agent, real.task, real.seed) == run.cell_path(real)


def test_a_manifest_that_names_cells_elsewhere_is_damaged(tmp_path: Path):
    run = make_run(tmp_path / "run", {"toy": {"rlsuite/ToyWalk-v0": [0.5]}})
    manifest = run / "manifest.json"
    for old, new in (("rlsuite/ToyWalk-v0", "rlsuite/../../../etc"), ('"toy"', '"/etc"')):
        text = manifest.read_text()
        manifest.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match="it names a cell outside of the run"):
            read_run(run)
        manifest.write_text(text)


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        ("manifest.json", {"seeds": "5"}, "its 'seeds' is '5': Input should be a valid integer"),
        (
            "manifest.json",
            {"hyperparameters": [1]},
            r"its 'hyperparameters' is \[1\]: Input should be an object",
        ),
        (
            "manifest.json",
            {"hyperparameters": {"toy": {"ToyWalk-v0": {}}}},
            "'ToyWalk-v0' is not the id of a task",
        ),
        (
            "manifest.json",
            {"hyperparameters": {"\x1b]0;mine\x07": {}}},
            "characters that cannot be printed",
        ),
        (
            "manifest.json",
            {"references": {"rlsuite/ToyWalk-v0": {"random": {}}}},
            "it has no 'references.*.mean'",
        ),
        ("result.json", {"score": float("nan")}, "its 'score' is nan: not a number up to 1e.100"),
        ("result.json", {"score": 1e200}, "its 'score' is 1e.200: not a number up to 1e.100"),
        ("result.json", {"score": "high"}, "its 'score' is 'high': Input should be a valid number"),
        (
            "result.json",
            {"episodes": True},
            "its 'episodes' is True: Input should be a valid integer",
        ),
    ],
)
def test_runs_of_strangers_are_refused_in_one_sentence(
    tmp_path: Path, name: str, changed: dict, words: str
):
    run = make_run(tmp_path / "run", {"toy": {"rlsuite/ToyWalk-v0": [0.5]}})
    file = next(run.rglob(name))
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    with pytest.raises(
        ValueError,
        match=f"{name} is {'not a manifest' if name == 'manifest.json' else 'damaged'}.*{words}",
    ):
        read_run(run)


def test_runs_of_strangers_take_no_longer_than_their_cells(tmp_path: Path):
    run = make_run(tmp_path / "run", {"toy": {"rlsuite/ToyWalk-v0": [0.5, 0.25]}})
    file = run / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"seeds": 10**12}))
    assert [result.seed for result in read_run(run).results()] == [0, 1]
    (result := next(run.rglob("result.json"))).write_text("[" * 100_000)
    with pytest.raises(ValueError, match="is damaged"):
        read_run(run)
    result.unlink()
    os.mkfifo(result)
    with pytest.raises(ValueError, match=r"is damaged \(it is no file\)"):
        read_run(run)


def test_queries(paths: list[Path], monkeypatch: pytest.MonkeyPatch):
    """One pair of runs, for it is dear to make: the tables, what is refused, and a damaged file."""
    database = Database(read_runs(paths))
    assert database.ask(
        "SELECT run, count(*) AS n FROM episodes GROUP BY run ORDER BY run"
    ).rows == (("one", 4 * 50), ("two", 2 * 50))
    table = pq.read_table(paths[0] / "episodes.parquet")
    (mean,) = database.ask(
        "SELECT avg(\"return\"), max(episode_seed) FROM episodes WHERE run = 'one'"
    ).rows
    assert mean == (
        pytest.approx(table["return"].to_numpy().mean()),
        table["episode_seed"].to_numpy().max(),
    )
    answer = database.ask(
        "SELECT c.run, c.agent, c.task, c.seed, c.score, avg(e.score) AS again FROM cells c JOIN "
        "episodes e USING (run, agent, task, seed) GROUP BY ALL"
    )
    assert answer.columns == ("run", "agent", "task", "seed", "score", "again")
    assert len(answer.rows) == 6
    for *_, stored, again in answer.rows:
        assert stored == pytest.approx(again)
    assert database.ask("SELECT count(*) FROM curves").rows == ((6 * 4,),)
    assert database.ask("SELECT return FROM episodes").columns == ("return",)  # a word of SQL
    zoned = database.ask(
        "SELECT 1 AS t, t FROM (VALUES (timestamptz '2026-01-02 03:04:05+02')) AS v(t); "
    )
    assert (zoned.columns, zoned.rows) == (("t", "t"), ((1, "2026-01-02 01:04:05+00"),))
    assert database.ask("SELECT [timestamptz '2026-01-02 00:00:00Z'] AS t -- zoned").rows == ((
        "['2026-01-02 00:00:00+00']",
    ),)  # fmt: skip
    assert set(TABLES) == {row[0] for row in database.ask("SHOW TABLES").rows}
    assert database.columns("episodes") == {
        "run": "VARCHAR",
        "agent": "VARCHAR",
    } | database.columns("episodes")
    assert next(iter(database.columns("cells"))) == "run"

    secret, leak = paths[0] / "manifest.json", paths[0] / "leak.csv"
    for sql in (
        "SELECT * FROM read_csv('/etc/passwd')",
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM read_parquet('{paths[0] / 'episodes.parquet'}')",
        f"SELECT * FROM '{paths[0] / 'episodes.parquet'}'",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        f"COPY (SELECT 1) TO '{leak}'",
        f"EXPLAIN ANALYZE COPY (SELECT 1) TO '{leak}'",
        f"ATTACH '{leak}'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "DROP TABLE cells",
        "WITH gone AS (DELETE FROM cells RETURNING *) SELECT * FROM gone",
        "EXPLAIN ANALYZE DELETE FROM cells",
        "WITH new AS (INSERT INTO cells SELECT * FROM cells RETURNING *) SELECT * FROM new",
        "SELECT 1; SELECT 2",
        "",
        "SELECT * FROM database",
        "SELECT nothing FROM cells",
        "SELEC 1",
    ):
        with pytest.raises(ValueError, match="query"):
            database.ask(sql)
    for sql, nearest in (("SELECT agnt FROM cells", "agent"), ("SELECT * FROM cell", "cells")):
        with pytest.raises(ValueError, match=f'The query failed: .*"{nearest}"'):
            database.ask(sql)
    assert not leak.exists()
    # The second guard, in case a statement passes the first one.
    for sql in (
        f"COPY (SELECT 1) TO '{leak}'",
        "SET enable_external_access = true",
        f"ATTACH '{leak}'",
    ):
        with pytest.raises(duckdb.Error, match=r"disabled|locked"):
            database._connection.execute(sql)
    assert database.ask("SELECT count(*) FROM cells").rows == ((6,),)

    monkeypatch.setattr(query, "MAX_SECONDS", 0.2)
    with pytest.raises(ValueError, match=r"The query took longer than 0.2 s, and was ended."):
        database.ask("SELECT count(*) FROM range(10000000) a, range(10000000) b")
    assert database.ask("SELECT count(*) FROM cells").rows == ((6,),)  # it goes on

    (paths[1] / "cells/toy/ToyWalk-v0/0/episodes.parquet").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"ToyWalk-v0/0/episodes.parquet is damaged"):
        Database(read_runs(paths))


def write_tables(path: Path, columns: list[dict], changed: list[dict]) -> Path:
    """Write a run with a cell for each of these tables, and results with these changes."""
    make_run(path, {"toy": {"rlsuite/ToyWalk-v0": [0.5] * len(columns)}})
    for seed, (table, change) in enumerate(zip(columns, changed, strict=True)):
        folder = path / "cells" / "toy" / "ToyWalk-v0" / str(seed)
        result = json.loads((folder / "result.json").read_text()) | change
        (folder / "result.json").write_text(json.dumps(result))
        pq.write_table(pa.table(table), folder / "curve.parquet")
    add_episodes(path)
    for file in path.rglob("episodes.parquet"):
        episodes = pq.read_table(file)
        for name, (value,) in columns[int(file.parent.name)].items():
            if name not in episodes.column_names:
                episodes = episodes.append_column(name, [[value] * len(episodes)])
        pq.write_table(episodes, file)
    return path


def test_columns_that_only_later_cells_have_are_kept(tmp_path: Path):
    runs = [
        write_tables(
            tmp_path / "old",
            [{"seed": [0]}, {"seed": [1], "new": [3.0]}],
            [{}, {"train_score": 0.25}],
        ),
        write_tables(tmp_path / "new", [{"seed": [0], "newer": ["text"]}], [{"later": "x"}]),
    ]
    database = Database(read_runs(runs))
    answer = database.ask("SELECT run, seed, train_score, later FROM cells ORDER BY run, seed")
    assert answer.rows == (("new", 0, None, "x"), ("old", 0, None, None), ("old", 1, 0.25, None))
    answer = database.ask(
        'SELECT DISTINCT run, seed, "new", newer FROM episodes ORDER BY run, seed'
    )
    assert answer.rows == (("new", 0, None, "text"), ("old", 0, None, None), ("old", 1, 3.0, None))
    write_tables(tmp_path / "odd", [{"seed": [0]}] * 2, [{"later": 1}, {"later": [1]}])
    with pytest.raises(ValueError, match="The results of cells do not make one table"):
        Database([read_run(tmp_path / "odd")])


def test_without_duckdb_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"pip install 'rlbench-suite\[query\]'"):
        Database([])


def test_a_small_file_with_a_large_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(query, "MEMORY_LIMIT", "40MB")
    bomb = write_tables(tmp_path / "bomb", [{"seed": [0]}], [{}])
    cell = bomb / "cells/toy/ToyWalk-v0/0"
    large = pa.table({"seed": np.arange(10_000_000) % 7})
    pq.write_table(large, cell / "curve.parquet")
    assert (cell / "curve.parquet").stat().st_size < 5e6
    with pytest.raises(ValueError, match="The tables of the runs do not fit into 40MB"):
        Database([read_run(bomb)])
    pq.write_table(large, cell / "episodes.parquet")
    with pytest.raises(ValueError, match="it has 10000000 rows for 50 episodes"):
        read_run(bomb)

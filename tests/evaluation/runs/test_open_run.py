"""Run directories: whole cells or none, checked when read, never mixed."""

import json
import os
import platform
import shutil
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest

from rlbench_suite.adapters.rollout import replay
from rlbench_suite.core import registry
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.protocol import Outcome, evaluation_seeds, resolve_cell, run_cell
from rlbench_suite.evaluation.runs import open_run
from rlbench_suite.evaluation.runs.computer import Computer
from rlbench_suite.evaluation.runs.manifest import Manifest
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import Run, read_manifest, read_run
from rlbench_suite.evaluation.runs.runner import in_process, plan
from rlbench_suite.evaluation.runs.tables import EPISODES

WALK, DRIFT = "rlsuite/ToyWalk-v0", "rlsuite/ToyDrift-v0"


def finish(path: Path, manifest: Manifest) -> None:
    with OpenRun.open(path, manifest) as run, run.sitting():
        for event in in_process(run):
            assert event.kind != "failed", event.value
        run.merge()


class Clock(datetime):
    """A clock that is set back by an hour between two looks at it."""

    looks: ClassVar[list[int]] = []

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        cls.looks.append(0)
        return datetime.now(tz) - timedelta(hours=len(cls.looks))


def test_a_clock_that_is_set_back_gives_no_negative_times(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_run, "datetime", Clock)
    with OpenRun.open(tmp_path, plan("toy", WALK, 1, "smoke")) as run, run.sitting():
        pass
    (sitting,) = read_manifest(tmp_path).sittings
    assert sitting.finished is not None
    assert sitting.finished < sitting.started
    assert sitting.wall_seconds is not None
    assert 0 <= sitting.wall_seconds < 600


def contents(path: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(path)): p.read_bytes()
        for p in path.rglob("*")
        if p.is_file() and p.name != ".lock"
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs") / "finished"


@pytest.fixture
def done(toys: Path, finished: Path, tmp_path: Path) -> Path:
    """A copy of a finished run of two seeds on both toys."""
    if not finished.exists():
        finish(finished, plan("toy", "ToyWalk-v0,ToyDrift-v0", 2, "smoke"))
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_tables_say_what_the_episodes_were(done: Path, toys: Path):
    with OpenRun.open(done, plan("toy", "ToyWalk-v0,ToyDrift-v0", 2, "smoke")) as run:
        assert run.missing() == []
        results = {result.cell: result for result in run.results()}
        assert list(results) == [
            Cell("toy", task, seed) for task in (WALK, DRIFT) for seed in (0, 1)
        ]
        table = pq.read_table(done / "episodes.parquet")
        assert table.schema.equals(EPISODES)
        assert len(table) == 4 * 50
        for cell, result in results.items():
            task = registry.card(cell.task).build()
            seeds, actions = run.read_trace(cell, task)
            assert seeds == evaluation_seeds(task.card, cell.seed, "smoke")
            record = replay(task, actions, seeds)
            rows = [
                row
                for row in table.to_pylist()
                if Cell(row["agent"], row["task"], row["seed"]) == cell
            ]
            assert [row["episode_seed"] for row in rows] == list(seeds)
            totals = record.total.reshape(len(seeds), -1).astype(np.float64)
            assert [row["returns"] for row in rows] == totals.tolist()
            weighted = totals @ (task.card.weights or (1.0,))
            assert [row["return"] for row in rows] == pytest.approx(weighted.tolist(), rel=1e-12)
            assert weighted == pytest.approx(scalar_return(task, record.total), rel=1e-5)
            anchors = task.card.scores()
            low = max(anchors["random"].mean, anchors["noop"].mean)
            high = anchors["reference"].mean
            scores = [(row["return"] - low) / (high - low) for row in rows]
            assert [row["score"] for row in rows] == pytest.approx(scores, rel=1e-12)
            assert result.score == pytest.approx(np.mean(scores), rel=1e-12)
            # Of 50.
            assert result.worst_tenth == pytest.approx(np.mean(sorted(scores)[:5]), rel=1e-12)
            assert (
                result.success_rate
                == np.mean([row["success"] for row in rows])
                == record.info["success"].mean()
            )
            assert result.mean_length == np.mean([row["length"] for row in rows])
            assert result.mean_cost == pytest.approx(record.cost.mean())
            assert (result.training_steps, result.train_seconds, result.compile_seconds) == (
                1000,
                1.0,
                1.0,
            )
            if cell.task == WALK:
                assert [dict(row["measures"])["x"] for row in rows] == record.info["x"].tolist()
            steps, seconds, returns = run.read_curves()[cell[:2]][cell.seed]
            assert steps.tolist() == [250, 500, 750, 1000]
            assert seconds.tolist() == [0.25, 0.5, 0.75, 1.0]
            assert np.isnan(returns[0])
            assert returns[-1] == 4 + 0.1 * cell.seed


def test_the_manifest_says_where_numbers_came_from(done: Path):
    manifest = read_manifest(done)
    (sitting,) = manifest.sittings
    assert manifest.hyperparameters["toy"][WALK] == {"steps": 1000, "rate": 0.5, "sizes": [4, 4]}
    assert manifest.references[WALK]["random"].episodes == 1000
    assert sitting.finished is not None
    assert sitting.wall_seconds == pytest.approx(
        (sitting.finished - sitting.started).total_seconds(), abs=0.1
    )
    assert sitting.machine.python == platform.python_version()
    assert {"jax", "numpy"} <= sitting.machine.packages.keys()
    assert sitting.machine.instruction_set.startswith(platform.machine())


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="no /proc/cpuinfo here")
def test_the_instruction_set_is_that_of_the_processor():
    flags = Path("/proc/cpuinfo").read_text().split()
    assert Computer.this().instruction_set == platform.machine() + (
        " fma" if "fma" in flags else ""
    )


def test_more_seeds_widen_a_run_and_leave_what_is_there(done: Path, toys: Path):
    before = contents(done / "cells")
    finish(done, plan("toy", "ToyWalk-v0,ToyDrift-v0", 3, "smoke"))
    after = contents(done / "cells")
    assert before.items() <= after.items()
    assert {path.split("/")[2] for path in after.keys() - before.keys()} == {"2"}
    assert read_manifest(done).seeds == 3
    with OpenRun.open(done, plan("toy", "ToyWalk-v0", 1, "smoke")) as run:
        assert run.missing() == []
        assert len(run.results()) == 6  # a smaller question forgets nothing


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": "0.0.9"}, ["version", "0.0.9"]),
        ({"protocol": 1}, ["protocol", "1", "2"]),
        ({"budget": "full"}, ["budget", "'smoke'", "'full'"]),
        (
            {"hyperparameters": {"toy": {WALK: {"steps": 7, "rate": 0.5, "sizes": [4, 4]}}}},
            ["toy's steps", WALK, "1000", "7"],
        ),
        (
            {"hyperparameters": {"toy": {WALK: {"depth": 7}}}},
            ["the hyperparameters of toy", WALK, "['rate', 'sizes', 'steps']", "['depth']"],
        ),
        (
            {"references": {WALK: {"random": {"mean": 1, "low": 0, "high": 2, "episodes": 9}}}},
            ["random score", WALK],
        ),
    ],
)
def test_what_does_not_compare_is_not_mixed(
    done: Path, toys: Path, change: dict[str, Any], words: list[str]
):
    plain = plan("toy", "ToyWalk-v0", 2, "smoke").model_dump(mode="json")
    before = contents(done)
    with (
        pytest.raises(ValueError, match="choose another --out") as refusal,
        OpenRun.open(done, Manifest(**plain | change)),
    ):
        pass
    assert all(word in str(refusal.value) for word in words)
    assert "\n" not in str(refusal.value)
    assert contents(done) == before


def damage(path: Path, how: str) -> None:
    cell = path / "cells" / "toy" / "ToyWalk-v0" / "0"
    match how:
        case "cut parquet":
            file = cell / "episodes.parquet"
            file.write_bytes(file.read_bytes()[:-100])
        case "fewer episodes":
            pq.write_table(
                pq.read_table(cell / "episodes.parquet").slice(1), cell / "episodes.parquet"
            )
        case "no trace":
            (cell / "trace.parquet").unlink()
        case "other columns":
            (cell / "trace.parquet").write_bytes((cell / "curve.parquet").read_bytes())
        case "cut result":
            (cell / "result.json").write_text((cell / "result.json").read_text()[:40])
        case "foreign result":
            (cell / "result.json").write_text('{"accuracy": 1.0}')
        case "another cell's":
            (cell / "result.json").write_bytes((cell.with_name("1") / "result.json").read_bytes())
        case "cut manifest":
            (path / "manifest.json").write_text((path / "manifest.json").read_text()[:200])
        case "foreign manifest":
            (path / "manifest.json").write_text('{"name": "my web app"}')
        case "no manifest":
            (path / "manifest.json").unlink()


CELL_DAMAGE = {
    "cut parquet": "episodes.parquet",
    "fewer episodes": "episodes.parquet",
    "no trace": "trace.parquet",
    "other columns": "trace.parquet",
    "cut result": "result.json",
    "foreign result": "result.json",
    "another cell's": "result.json",
}
"""Damage to the files of a cell, and the file that must be named."""


@pytest.mark.parametrize("how", [*CELL_DAMAGE, "cut manifest", "foreign manifest", "no manifest"])
def test_half_written_and_foreign_files_are_refused_in_one_sentence(
    done: Path, toys: Path, how: str
):
    damage(done, how)
    before = contents(done)
    with (
        pytest.raises(ValueError, match="run") as refusal,
        OpenRun.open(done, plan("toy", "ToyWalk-v0", 2, "smoke")),
    ):
        pass
    assert "\n" not in str(refusal.value)
    assert str(done) in str(refusal.value)
    if how in CELL_DAMAGE:
        folder = done / "cells/toy/ToyWalk-v0/0"
        assert str(refusal.value).startswith(f"{folder / CELL_DAMAGE[how]} is damaged (")
        assert f"delete the folder {folder} and run the same command again" in str(refusal.value)
    assert contents(done) == before
    if how in CELL_DAMAGE:  # the advice helps
        shutil.rmtree(folder)
        finish(done, plan("toy", "ToyWalk-v0", 2, "smoke"))


@pytest.mark.parametrize("name", ["episodes.parquet", "trace.parquet", "curve.parquet"])
def test_damage_inside_a_table_is_named(done: Path, toys: Path, name: str):
    file = done / "cells" / "toy" / "ToyWalk-v0" / "1" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 8] ^= (
        0xFF  # in a column, not in the footer, which holds what its schema is
    )
    file.write_bytes(content)
    with (
        pytest.raises(ValueError, match="is damaged") as refusal,
        OpenRun.open(done, plan("toy", "ToyWalk-v0", 2, "smoke")) as run,
    ):
        run.merge()
    assert str(refusal.value).startswith(f"{file} is damaged (")
    assert "\n" not in str(refusal.value)


FORGED = {
    "mean_return": 99.0, "score": 0.9, "success_rate": 0.123, "mean_length": 1.0,
    "mean_cost": -1.0, "mean_returns": [99.0], "worst_tenth": 0.9, "episodes": 51,
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_numbers_that_the_episodes_do_not_give_are_refused(done: Path, toys: Path, name: str):
    """Reports read ``result.json``, which anybody can edit."""
    file = done / "cells" / "toy" / "ToyWalk-v0" / "1" / "result.json"
    result = json.loads(file.read_text())
    file.write_text(json.dumps(result | {name: FORGED[name]}))
    with pytest.raises(ValueError, match="is damaged") as refusal:
        read_run(done)
    assert str(refusal.value).startswith(str(file.parent))
    assert "\n" not in str(refusal.value)
    assert name in str(refusal.value)
    with (
        pytest.raises(ValueError, match="is damaged"),
        OpenRun.open(done, plan("toy", "ToyWalk-v0", 2, "smoke")),
    ):
        pass
    value = result[name]
    if isinstance(value, float):  # another order of addition is no forgery
        file.write_text(json.dumps(result | {name: value * (1 + 1e-12)}))
        read_run(done)


@pytest.mark.parametrize("name", ["episodes.parquet", "trace.parquet", "curve.parquet"])
@pytest.mark.parametrize("cell", ["toy/ToyWalk-v0/0", "toy/ToyDrift-v0/1"])
def test_a_table_of_another_cell_is_refused(done: Path, toys: Path, name: str, cell: str):
    file = done / "cells" / "toy" / "ToyWalk-v0" / "1" / name
    shutil.copyfile(done / "cells" / cell / name, file)
    with (
        pytest.raises(ValueError, match="belongs to another cell") as refusal,
        OpenRun.open(done, plan("toy", "ToyWalk-v0", 2, "smoke")),
    ):
        pass
    assert str(refusal.value).startswith(f"{file} is damaged (")
    run = Run.read(done)
    with pytest.raises(ValueError, match="belongs to another cell"):
        run.read_table(Cell("toy", WALK, 1), name)
    if name == "episodes.parquet":
        with pytest.raises(ValueError, match="belongs to another cell"):
            run.results()


def test_results_without_tables_are_taken_as_they_are(done: Path):
    """Readers may have only the small files of a run."""
    for table in done.glob("cells/*/*/*/*.parquet"):
        table.unlink()
    assert len(read_run(done).results()) == 4


def test_directories_that_are_no_runs_are_refused(toys: Path, tmp_path: Path):
    manifest = plan("toy", "ToyWalk-v0", 1, "smoke")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").touch()
    for path in (tmp_path / "thesis", tmp_path / "thesis" / "chapter1.tex"):
        with (
            pytest.raises(ValueError, match="is not a run directory"),
            OpenRun.open(path, manifest),
        ):
            pass
    with (
        pytest.raises(OSError, match="Cannot write"),
        OpenRun.open(tmp_path / "thesis" / "chapter1.tex" / "run", manifest),
    ):
        pass
    with (
        pytest.raises(ValueError, match="no run to resume"),
        OpenRun.open(tmp_path / "new", manifest, resume=True),
    ):
        pass
    assert not (tmp_path / "new").exists()


def test_one_program_at_a_time(toys: Path, tmp_path: Path):
    manifest = plan("toy", "ToyWalk-v0", 1, "smoke")
    refused = pytest.raises(OSError, match="another program")
    with OpenRun.open(tmp_path, manifest), refused, OpenRun.open(tmp_path, manifest):
        pass
    with OpenRun.open(tmp_path, manifest):
        pass


def test_a_cell_is_stored_whole_or_not_at_all(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    agent, cell = registry.agent("toy"), Cell("toy", WALK, 0)
    task = registry.card(WALK).build()
    *_, outcome = run_cell(agent, task, resolve_cell(agent, task, 0, "smoke"))
    assert isinstance(outcome, Outcome)
    manifest = plan("toy", WALK, 1, "smoke")

    def full(policy: Any, path: str) -> None:
        raise OSError(28, "No space left on device")

    with OpenRun.open(tmp_path, manifest) as run, run.sitting():
        monkeypatch.setattr(agent, "save", full)
        with pytest.raises(OSError, match="No space"):
            run.write(cell, outcome, agent, task, "cpu")
        assert run.missing() == [cell]
        assert run.result(cell) is None
        assert os.listdir(tmp_path / "cells/toy/ToyWalk-v0") == []
        (tmp_path / "cells/toy/ToyWalk-v0/.rlsuite-killed").mkdir()
    with OpenRun.open(tmp_path, manifest) as run:
        assert os.listdir(tmp_path / "cells/toy/ToyWalk-v0") == []  # the leftover was swept up
        monkeypatch.undo()
        stored = run.write(cell, outcome, agent, task, "cpu")
        assert run.missing() == []
        assert run.result(cell) == stored
        assert json.loads((run.cell_path(cell) / "result.json").read_text())["device"] == "cpu"
        assert (run.cell_path(cell) / "policy.safetensors").exists()


@pytest.mark.skipif(os.name != "posix", reason="folders cannot be flushed here")
def test_a_cell_has_its_name_only_after_its_contents_are_on_the_disk(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    done: list[Any] = []
    flush, rename = os.fsync, Path.replace

    def note_flush(file: int) -> None:
        done.append(os.fstat(file).st_ino)
        flush(file)

    def note_rename(path: Path, target: Path) -> Path:
        done.append(target)
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", note_flush)
    monkeypatch.setattr(Path, "replace", note_rename)
    with OpenRun.open(tmp_path / "runs" / "new", plan("toy", "ToyWalk-v0", 1, "smoke")) as run:
        assert done == [folder.stat().st_ino for folder in (tmp_path / "runs", tmp_path)]
        list(in_process(run))
    cell = tmp_path / "runs" / "new" / "cells" / "toy" / "ToyWalk-v0" / "0"
    before, after = done[: done.index(cell)], done[done.index(cell) + 1 :]
    assert {
        path.stat().st_ino for path in (*cell.iterdir(), cell, *list(cell.parents)[1:4])
    } <= set(before)
    assert after == [cell.parent.stat().st_ino]

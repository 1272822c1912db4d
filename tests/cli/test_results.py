"""``rlsuite-eval compare``, ``power``, ``query`` and ``export`` as people meet them."""

import csv
import io
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from made_runs import add_episodes, fail_cell, make_run, sitting

from rlbench_suite.cli import evaluate
from rlbench_suite.cli.run_commands import execution, export, finished
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.deploy import policy_export
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import read_manifest
from rlbench_suite.evaluation.statistics.power import seeds_needed

PROGRAM = str(Path(sys.executable).with_name("rlsuite-eval"))


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the program in this process: exit code, stdout, stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            evaluate.app(list(arguments))
        output = capsys.readouterr()
        return int(left.value.code or 0), output.out, output.err

    return call


def sample_scores(seed: int, tasks: int, seeds: int, better: float = 0.0) -> dict[str, list[float]]:
    rng = np.random.default_rng(seed)
    return {
        f"rlsuite/Made{i}-v0": (0.5 + better + rng.normal(0, 0.1, seeds)).tolist()
        for i in range(tasks)
    }


def test_compare_prints_a_verdict_and_writes_json(call: Callable[..., tuple], tmp_path: Path):
    make_run(tmp_path / "a", {"ppo": sample_scores(0, 6, 10, 0.2)})
    make_run(tmp_path / "b", {"sac": sample_scores(1, 6, 10)})
    paths = str(tmp_path / "a"), str(tmp_path / "b")
    code, out, err = call("compare", *paths, "--json", str(tmp_path / "out.json"))
    assert (code, err) == (0, "")
    assert out.startswith("ppo is better than sac: ")
    assert "Made5-v0" in out
    (verdict,) = json.loads((tmp_path / "out.json").read_text())["verdicts"]
    assert " ".join(out.split()).startswith(verdict["words"])
    assert (verdict["better"], verdict["seeds"], len(verdict["tasks"])) == ("ppo", 10, 6)
    make_run(tmp_path / "c", {"dqn": sample_scores(2, 6, 1)})
    code, out, _ = call(
        "compare", *paths, str(tmp_path / "c"), "--json", str(tmp_path / "out.json")
    )
    assert code == 0
    assert "Cannot tell ppo from dqn" in out
    assert (
        json.loads((tmp_path / "out.json").read_text())["verdicts"][1]["difference"]["low"] is None
    )


@pytest.mark.parametrize("command", ["compare", "power"])
def test_answers_in_three_seconds_without_jax(tmp_path: Path, command: str):
    for name, better in (("a", 0.0), ("b", 0.05)):
        make_run(tmp_path / name, {name: sample_scores(len(name), 32, 5, better)})
    program = (
        "import sys; from rlbench_suite.cli.evaluate import app\n"
        "try: app()\n"
        "finally: print('jax' in sys.modules, file=sys.stderr)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    runs = [str(tmp_path / "a"), str(tmp_path / "b")]
    arguments = [command, *(runs if command == "compare" else runs[:1])]
    output = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Of the processor, which others use.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3
    assert output.stderr == "False\n"
    assert ("32 tasks, 5 paired seeds" if command == "compare" else "mean over tasks") in " ".join(
        output.stdout.split()
    )


URLS = """
import sys, fsspec, pathlib
memory = fsspec.filesystem("memory")
for file in pathlib.Path(sys.argv[1]).rglob("*"):
    if file.is_file():
        memory.pipe_file("/bucket/" + file.relative_to(sys.argv[1]).as_posix(), file.read_bytes())
read, get = [], memory.get_file
type(memory).get_file = \
lambda self, name, *rest, **more: (read.append(name), get(name, *rest, **more))
from rlbench_suite.cli.evaluate import app
sys.argv[1:] = sys.argv[2:]
try: app()
except SystemExit as left: print("left", left.code)
print("files", sorted({name.rpartition("/")[2] for name in read}), \
"jax" in sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "words", "files"),
    [
        (("compare", "memory://bucket/a/run", "memory://bucket/b/run/"),
         "ppo (memory://bucket/b/run)", ["episodes.parquet"]),
        (("compare", "memory://bucket/a/run", "memory://bucket/a/run/"),
         "memory://bucket/a/run is given twice", ["episodes.parquet"]),
        (("compare", "{a}", "file://{a}/"), "is given twice", None),
        (("power", "memory://bucket/a/run"), "ppo", ["episodes.parquet"]),
        (("query", "SELECT DISTINCT run FROM cells", "memory://bucket/a/run", "{b}"), "memory://bucket/a/run",
         ["curve.parquet", "episodes.parquet"]),
    ],
)  # fmt: skip
def test_runs_at_urls_are_read_without_jax_and_without_traces(
    tmp_path: Path, arguments: tuple[str, ...], words: str, files: list[str] | None
):
    paths = [
        make_run(
            tmp_path / name / "run",
            {"ppo": sample_scores(k, 2, 6), "sac": sample_scores(2, 2, 6)},
        )
        for k, name in enumerate("ab")
    ]
    for file in [*tmp_path.rglob("result.json")]:
        for name in ("curve.parquet", "trace.parquet"):
            pq.write_table(pa.table({"agent": ["x"]}), file.parent / name)
    for path in paths:
        add_episodes(path)
        for name in ("episodes.parquet", "traces/ppo-Made0-v0.parquet", "notes.json"):
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_bytes(b"large")
    filled_arguments = [argument.format(a=paths[0], b=paths[1]) for argument in arguments]
    output = subprocess.run(
        [sys.executable, "-c", URLS, str(tmp_path), *filled_arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    *errors, last_line = output.stderr.strip().splitlines()
    assert words in " ".join((output.stdout + " ".join(errors)).split())
    assert "rlsuite-runs" not in output.stdout + output.stderr
    expected = [] if files is None else sorted([*files, "manifest.json", "result.json"])
    assert last_line == f"files {expected} False"


def test_power(call: Callable[..., tuple], tmp_path: Path):
    scores = sample_scores(0, 2, 8)
    path = str(make_run(tmp_path / "run", {"ppo": scores}))
    code, out, err = call("power", path, "--json", str(tmp_path / "out.json"))
    assert (code, err) == (0, "")
    assert all(f"d = {d}" in out for d in ("0.02", "0.05", "0.1", "0.2"))
    values = scores["rlsuite/Made0-v0"]
    variance, mean = np.var(values, ddof=1), np.mean(values)
    # How far a run that was not seen may lie away.
    unseen = max(mean - min(0, *values), max(1, *values) - mean)
    numbers = json.loads((tmp_path / "out.json").read_text())["ppo"]
    assert numbers["tasks"]["rlsuite/Made0-v0"]["seeds"]["0.1"] == seeds_needed(
        [0.1], [2 * variance], comparisons=2, unseen=unseen
    )
    assert (
        numbers["all tasks"]["seeds"]["0.1"] < numbers["tasks"]["rlsuite/Made0-v0"]["seeds"]["0.1"]
    )
    assert call("power", path, "--agents", "20", "--json", str(tmp_path / "out.json"))[0] == 0
    among_many = json.loads((tmp_path / "out.json").read_text())["ppo"]
    assert among_many["all tasks"]["seeds"]["0.1"] > numbers["all tasks"]["seeds"]["0.1"]
    many = seeds_needed([0.1], [2 * variance], comparisons=2 * 190, unseen=unseen)
    assert among_many["tasks"]["rlsuite/Made0-v0"]["seeds"]["0.1"] == many
    code, out, _ = call("power", path, "--difference", "0.07")
    assert (code, "d = 0.07" in out, "d = 0.02" in out) == (0, True, False)


def test_failed_cells_give_no_number_of_seeds(call: Callable[..., tuple], tmp_path: Path):
    """The seeds that went well spread less than all of them."""
    path = make_run(
        tmp_path / "run", {"ppo": sample_scores(0, 1, 6), "sac": sample_scores(1, 1, 6)}
    )
    fail_cell(path, "ppo", "rlsuite/Made0-v0", 3)
    code, out, err = call("power", str(path), "--json", str(tmp_path / "out.json"))
    assert code == 0
    assert "ppo: no number of seeds, because 1 of its cells failed" in " ".join(out.split())
    assert (
        "Failed: 1 of ppo; a mean over the other cells of such an agent would reward it for "
        "failing."
    ) in err
    assert list(json.loads((tmp_path / "out.json").read_text())) == ["sac"]
    fail_cell(path, "sac", "rlsuite/Made0-v0", 0)
    code, _, err = call("power", str(path))
    assert code == 2
    assert "has failed cells: finish them first" in " ".join(err.split())


def test_the_table_of_a_comparison_has_no_score_of_an_agent_with_failed_cells(
    call: Callable[..., tuple], tmp_path: Path
):
    path = make_run(
        tmp_path / "run", {"ppo": sample_scores(0, 1, 6), "sac": sample_scores(1, 1, 6)}
    )
    fail_cell(path, "ppo", "rlsuite/Made0-v0", 3)
    code, out, _ = call("compare", str(path))
    assert code == 0
    rows = [
        line.split() for line in out.splitlines() if line.split()[:1] in (["Made0-v0"], ["mean"])
    ]
    task, mean = rows
    assert (task[2], task[4:]) == ("failed", ["-", "-", "-", "-"])
    assert (mean[3], mean[5:]) == ("failed", ["-", "-", "-", "-"])
    assert "Difference of IQM" not in out


def test_tasks_of_power(call: Callable[..., tuple], tmp_path: Path):
    path = make_run(
        tmp_path / "run", {"ppo": {"rlsuite/SAT-v0": [0.1, 0.2], "rlsuite/TMaze-v0": [0.1, 0.3]}}
    )
    code, out, _ = call("power", str(path), "--task", "SAT-v0")
    assert (code, "SAT-v0" in out, "TMaze-v0" in out) == (0, True, False)


def test_query_prints_a_table_csv_or_json(call: Callable[..., tuple], toys: Path, tmp_path: Path):
    path = str(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "prepare_jax", lambda *_: None)
        run = (
            "--agent",
            "toy",
            "--suite",
            "ToyWalk-v0",
            "--seeds",
            "2",
            "--workers",
            "0",
            "--out",
            path,
        )
        assert call(*run)[0] == 0
    sql = "SELECT agent, seed, count(*) AS n FROM episodes GROUP BY ALL ORDER BY seed"
    code, out, err = call("query", sql, path)
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines() if "toy" in line] == [
        ["toy", "0", "50"],
        ["toy", "1", "50"],
    ]
    assert list(csv.DictReader(io.StringIO(call("query", sql, path, "--format", "csv")[1])))[1] == {
        "agent": "toy", "seed": "1", "n": "50",
    }  # fmt: skip
    assert json.loads(call("query", sql, path, "--format", "json")[1])[0] == {
        "agent": "toy",
        "seed": 0,
        "n": 50,
    }
    odd = (
        "SELECT 'nan'::DOUBLE AS a, 1.25 AS b, ['inf'::DOUBLE, 1] AS c, [0.5] AS d, date "
        "'2026-01-02' AS e"
    )
    rows = [{"a": None, "b": 1.25, "c": [None, 1], "d": [0.5], "e": "2026-01-02"}]
    assert json.loads(call("query", odd, path, "--format", "json")[1]) == rows
    code, out, _ = call("tables", path)
    assert code == 0
    assert all(
        word in out for word in ("cells", "episodes", "curves", "episode_seed", "mean_return")
    )
    code, _, err = call("query", "SELECT * FROM read_csv('/etc/passwd')", path)
    assert (code, "disabled by configuration" in err, len(err.splitlines())) == (2, True, 1)
    with OpenRun.open(Path(path), read_manifest(Path(path))) as opened:
        assert opened.missing() == []  # nothing was changed


@pytest.mark.parametrize("name", ["latex", "csv", "huggingface"])
def test_export_prints_or_writes(call: Callable[..., tuple], tmp_path: Path, name: str):
    path = str(make_run(tmp_path / "run", {"ppo": sample_scores(0, 2, 5)}))
    code, out, err = call("export", path, "--format", name)
    assert (code, err) == (0, "")
    assert "Made1-v0" in out
    file = tmp_path / "new" / "file"
    assert call("export", path, "--format", name, "--out", str(file)) == (
        0,
        f"{file}: {len(out):,} bytes.\n",
        "",
    )
    assert file.read_text() == out
    if name == "huggingface":
        assert yaml.safe_load(out)["model-index"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", "{run}"), "ppo is the only agent"),
        (("compare", "{run}", "{run}"), "is given twice"),
        (("compare", "{none}/x"), "does not exist"),
        (
            ("power", "{run}", "--difference", "0"),
            "--difference must be a finite number above 0, got 0",
        ),
        (("power", "{run}", "--agents", "1"), "--agents must be at least 2, got 1"),
        (("power", "{run}", "--task", "SAT-v0"), "Unknown task or suite of the runs 'SAT-v0'"),
        (("power", "{run}", "--suite", "Mad0-v0"), "Did you mean 'Made0-v0'?"),
        (("compare", "{run}", "--agent", " ,"), "No agent is named in ' ,'. The runs have ppo."),
        (("power", "{run}", "--task", ","), "No task is named in ','. The runs have Made0-v0."),
        (("power", "{run}", "--task", ""), "--suite or --task is empty; leave it out or give a"),
        (("compare", ""), "RUN is empty; give it a value."),
        (("export", "{run}", "--format", "latx"), "Unknown format 'latx'. Did you mean 'latex'?"),
        (
            ("deploy", "{run}", "ppo/Made0-v0/0", "--format", "csv", "--out", "x"),
            "Unknown format 'csv'",
        ),
        (("compare", "{run}s"), "Unknown run '{run}s'. Did you mean '{run}'?"),
        (
            ("compare", "{run}", "--json", "{run}"),
            "{run} is a folder; name a file to write, such as {run}/results.",
        ),
        (
            ("export", "{run}", "--format", "csv", "--out", "{run}"),
            "{run} is a folder; name a file to write",
        ),
        (
            ("power", "{run}", "--json", "{run}/manifest.json/x"),
            "because {run}/manifest.json is a file.",
        ),
        (("compare", "s4://bucket/run"), "Unknown kind of URL 's4://'. Did you mean 's3://'?"),
        (("power", "{one}"), "ppo of the run {one}: rlsuite/Made0-v0 has one seed"),
        (
            ("deploy", "{run}", "ppo/Made0-v0/9", "--format", "c", "--out", "x.h"),
            "Unknown cell of the run in",
        ),
        (
            ("deploy", "s3://a/b", "ppo", "--format", "c", "--out", "x.h"),
            "copy s3://a/b to this machine first",
        ),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_exit_code_2(
    call: Callable[..., tuple], tmp_path: Path, arguments: tuple[str, ...], words: str
):
    run = make_run(tmp_path / "run", {"ppo": sample_scores(0, 1, 3)})
    paths = {
        "run": run,
        "none": tmp_path / "none",
        "one": make_run(tmp_path / "one", {"ppo": sample_scores(0, 1, 1)}),
    }
    code, out, err = call(*(argument.format(**paths) for argument in arguments))
    assert (code, out) == (2, "")
    assert words.format(**paths) in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["manifest.json", "cells/ppo/Made0-v0/0/result.json", "report.html", "episodes.parquet"]
)
@pytest.mark.parametrize("folder", ["run", "read", "link"])
@pytest.mark.parametrize(
    "command",
    [("compare", "--json"), ("power", "--json"), ("export", "--format", "csv", "--out")],
)
def test_no_output_replaces_a_file_of_a_run(
    call: Callable[..., tuple], tmp_path: Path, name: str, folder: str, command: tuple[str, ...]
):
    """A verdict in the place of a manifest destroys the run that it judges, or another one."""
    scores = {agent: sample_scores(seed, 1, 3) for seed, agent in enumerate(("ppo", "sac"))}
    make_run(tmp_path / "run", scores)
    read = make_run(tmp_path / "read", scores)
    (tmp_path / "link").symlink_to(read)
    target = tmp_path / folder / name
    before = target.read_bytes() if target.exists() else None
    code, out, err = call(command[0], str(read), *command[1:], str(target))
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {target} is a file of the run in {tmp_path}")
    assert len(err.strip().splitlines()) == 1
    assert before == (target.read_bytes() if target.exists() else None)
    beside = tmp_path / folder / "verdicts.json"  # a run's folder may hold other files, too
    code, _, _ = call(command[0], str(read), *command[1:], str(beside))
    assert (code, beside.exists()) == (0, True)


def test_an_exported_policy_is_named_with_its_seed(
    call: Callable[..., tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    network = SimpleNamespace(choices=True)
    cell = Cell("ppo", "rlsuite/SAT-v0", 0)
    exported = SimpleNamespace(
        cell=cell, episodes=[], network=network, difference=0.0, loss=None, broken_limit=""
    )
    monkeypatch.setattr(policy_export, "read_export", lambda *_, **__: exported)
    monkeypatch.setattr(policy_export, "onnx", lambda _: b"policy")
    monkeypatch.setattr(export, "prepare_jax", lambda: None)
    file = tmp_path / "p.onnx"
    code, out, _ = call("deploy", str(tmp_path), "ppo", "--format", "onnx", "--out", str(file))
    assert (code, out.startswith(f"{file}: ppo on rlsuite/SAT-v0, seed 0, 6 bytes.")) == (0, True)


def test_errors_of_the_system_name_the_file_and_no_number(
    call: Callable[..., tuple], monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "runs/.hidden", None, "runs/mine")

    monkeypatch.setattr(finished, "read_runs", refuse)
    assert call("power", "runs/mine") == (2, "", "error: runs/mine: Permission denied.\n")


def test_a_word_instead_of_a_number_is_named(call: Callable[..., tuple]):
    for arguments, word in (
        (("--seeds", "two"), "two"),
        (("power", "x", "--difference", "1", "--difference", "abc"), "abc"),
    ):
        code, _, err = call(*arguments)
        assert (code, f"'{word}'" in err) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "{run}"),
        ("power", "{run}"),
        ("export", "{run}", "--format", "csv"),
        ("query", "SELECT 1", "{run}"),
        ("tables", "{run}"),
        ("sweep", "{run}", "x", "1:2"),
    ],
)
def test_unfinished_runs_are_told_wherever_they_are_read(
    call: Callable[..., tuple], tmp_path: Path, arguments: tuple[str, ...]
):
    path = make_run(
        tmp_path / "run", {"ppo": sample_scores(0, 2, 3), "sac": sample_scores(1, 2, 3)}
    )
    for file in path.rglob("result.json"):
        pq.write_table(pa.table({"x": [1]}), file.parent / "curve.parquet")
    add_episodes(path)
    command = [argument.format(run=path) for argument in arguments]
    assert "Finish it" not in call(*command)[2]
    (path / "cells/ppo/Made1-v0/2/result.json").unlink()
    manifest = json.loads((path / "manifest.json").read_text())
    launches = (
        ["--agent", "ppo", "--out", "my run", "--seeds", "2"],
        ["--seeds=3", "--out=elsewhere"],
    )
    sittings = [sitting(arguments) for arguments in (*launches, launches[0])]
    (path / "manifest.json").write_text(json.dumps(manifest | {"sittings": sittings}))
    err = call(*command)[2]
    assert err.startswith(
        f"The run {path} has 11 of 12 cells: some agents have fewer than its 3 seeds. Finish it "
        f"with: rlsuite-eval --agent ppo --seeds 3 --out {path}; rlsuite-eval --seeds 3 --out "
        f"{path}\n"
    )


def test_help_shows_evaluation_and_commands():
    output = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    assert all(word in output for word in ("--agent", "compare", "power", "query", "export"))
    for command in ("compare", "power", "query", "export"):
        subprocess.run([PROGRAM, command, "--help"], capture_output=True, check=True)


def test_tables_do_not_steer_the_terminal(call: Callable[..., tuple], tmp_path: Path):
    path = str(make_run(tmp_path / "a", {"ppo": sample_scores(0, 1, 1)}))
    text = "\x1b]0;mine\x07 [red]é"
    add_episodes(Path(path))
    (folder,) = Path(path).glob("cells/*/*/*")
    pq.write_table(pa.table({"text": [text]}), folder / "curve.parquet")
    code, out, _ = call("query", "SELECT text FROM curves", path)
    assert code == 0
    assert r"\x1b]0;mine\x07 [red]é" in out
    episodes = pq.read_table(folder / "episodes.parquet")
    pq.write_table(
        episodes.set_column(0, "agent", pa.array([text] * 50)), folder / "episodes.parquet"
    )
    code, _, err = call("query", "SELECT 1", path)
    assert code == 2
    assert r"another cell, whose agent is '\x1b]0;mine\x07 [red]é'" in err


def test_power_says_that_equal_scores_tell_nothing(call: Callable[..., tuple], tmp_path: Path):
    path = str(make_run(tmp_path / "a", {"ppo": {"rlsuite/Made0-v0": [0.5] * 6}}))
    code, out, _ = call("power", path)
    assert code == 0
    assert "-: all seeds of ppo score the same on Made0-v0" in out
    (row,) = (line.split() for line in out.splitlines() if line.startswith(" Made0-v0"))
    assert row == ["Made0-v0", "6", "0", "-", "-", "-", "-"]
    assert "counts it as 0" not in out  # it has no number either
    mixed_run = make_run(
        tmp_path / "b", {"ppo": sample_scores(0, 2, 6) | {"rlsuite/Made0-v0": [0.5] * 6}}
    )
    assert "The mean over tasks counts it as 0." in " ".join(
        call("power", str(mixed_run))[1].split()
    )
    for wrong in ("nan", "inf", "0", "-1"):
        assert call("power", path, f"--difference={wrong}")[0] == 2

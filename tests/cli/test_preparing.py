"""Test what all programs share: JAX's cache of compiled programs, and numbers that are refused."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow.parquet as pq
import pytest

from rlbench_suite import cli
from rlbench_suite.cli import data, evaluate, leaderboard, suite
from rlbench_suite.cli.run_commands import execution
from rlbench_suite.cli.task_commands import dev, puzzles

SETTINGS = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment in which nothing is set; gives the user's cache folder."""
    for name in list(os.environ):  # what prepare_jax sets is taken back after the test
        monkeypatch.setenv(name, os.environ[name])
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_compiled_programs_are_kept_in_the_users_cache_by_version(bare: Path):
    cli.prepare_jax()
    import jaxlib

    assert os.environ[SETTINGS[0]] == str(
        bare / "rlbench_suite" / "xla" / f"jaxlib-{jaxlib.__version__}"
    )
    assert os.environ[SETTINGS[1]] == "0"


def test_a_cache_of_the_users_own_is_left_alone(bare: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SETTINGS[0], "mine")
    cli.prepare_jax()
    assert os.environ[SETTINGS[0]] == "mine"
    assert SETTINGS[1] not in os.environ
    assert not bare.exists()


def test_trained_policies_do_not_depend_on_the_number_of_cores(monkeypatch: pytest.MonkeyPatch):
    """Sums that several threads share have other last bits.

    Agents of third parties need eight threads at least.
    """
    for cores in (1, 2, 16):
        monkeypatch.setattr(execution, "count_cores", lambda cores=cores: cores)
        assert execution.jax_threads("ppo, sac") == 1
        assert execution.jax_threads("ppo,third-party") == max(8, cores)


def test_a_folder_that_cannot_be_written_is_done_without(bare: Path):
    bare.write_text("a file")
    cli.prepare_jax()
    assert not set(SETTINGS) & os.environ.keys()


def test_the_oldest_programs_make_room(bare: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli, "CACHE_BYTES", 250)
    folder = bare / "rlbench_suite" / "xla" / "jaxlib-0.0.1"
    folder.mkdir(parents=True)
    for age in range(4):
        (folder / str(age)).write_bytes(bytes(100))
        os.utime(folder / str(age), (1e9 - age, 1e9 - age))
    cli.prepare_jax()
    assert sorted(os.listdir(folder)) == ["0", "1"]


def test_workers_share_it_and_results_do_not_depend_on_it(bare: Path, toys: Path, tmp_path: Path):
    """Empty, full and damaged: the same episodes."""
    program = str(Path(sys.executable).with_name("rlsuite-eval"))
    cached_names: list[set[str]] = []
    tables = []
    for name in ("empty", "full", "damaged"):
        files = [path for path in bare.rglob("*-cache")]
        cached_names.append({path.name for path in files})
        if name == "damaged":
            for path in files:
                path.write_bytes(path.read_bytes()[:20])
        arguments = ["--agent", "toy", "--suite", "ToyWalk-v0", "--seeds", "1", "--workers", "1"]
        command = [program, *arguments, "--out", str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True)
        tables.append(pq.read_table(tmp_path / name / "episodes.parquet"))
    assert cached_names[0] == set()
    assert cached_names[1] == cached_names[2] != set()
    assert all(table.equals(tables[0]) for table in tables)


@pytest.mark.parametrize(
    ("app", "arguments", "words"),
    [
        (evaluate.app, ("--seeds", "0"), "--seeds must be at least 1, got 0"),
        (evaluate.app, ("--workers", "-1"), "--workers must be at least 0, got -1"),
        (evaluate.app, ("--silence", "nan"), "--silence must be a finite number above 0, got nan"),
        (
            evaluate.app,
            ("judge", "policy.onnx", "--seeds", "0"),
            "--seeds must be at least 1, got 0",
        ),
        (
            evaluate.app,
            ("judge", "policy.onnx", "--workers", "-1"),
            "--workers must be at least 0, got -1",
        ),
        (
            evaluate.app,
            ("judge", "policy.onnx", "--silence", "0"),
            "--silence must be a finite number above 0, got 0.0",
        ),
        (
            evaluate.app,
            ("judge", "policy.onnx", "--silence", "0.9"),
            "--silence must be at least 1, got 0.9",
        ),
        (evaluate.app, ("--silence", "1e-9"), "--silence must be at least 1, got 1e-09"),
        (evaluate.app, ("ray", "--silence", "1e-9"), "--silence must be at least 1, got 1e-09"),
        (evaluate.app, ("llm", "m", "--seeds", "0"), "--seeds must be at least 1, got 0"),
        (
            evaluate.app,
            ("llm", "m", "--timeout", "inf"),
            "--timeout must be a finite number above 0, got inf",
        ),
        (evaluate.app, ("ray", "--seeds", "0"), "--seeds must be at least 1, got 0"),
        (
            evaluate.app,
            ("ray", "--silence", "nan"),
            "--silence must be a finite number above 0, got nan",
        ),
        (evaluate.app, ("ray", "--workers", "0"), "--workers must be at least 1, got 0"),
        (evaluate.app, ("ray", "--cpus", "0"), "--cpus must be a finite number above 0, got 0.0"),
        (evaluate.app, ("ray", "--gpus", "-1"), "--gpus must be at least 0, got -1.0"),
        (evaluate.app, ("ray", "--memory", "nan"), "--memory must be at least 0, got nan"),
        (
            evaluate.app,
            ("power", "a", "--difference", "1", "--difference", "nan"),
            "--difference must be a finite number above 0, got nan",
        ),
        (evaluate.app, ("power", "a", "--agents", "1"), "--agents must be at least 2, got 1"),
        (suite.app, ("bench", "--envs", "0"), "--envs must be at least 1, got 0"),
        (
            suite.app,
            ("bench", "--seconds", "nan"),
            "--seconds must be a finite number above 0, got nan",
        ),
        (
            suite.app,
            ("bench", "--seconds", "inf"),
            "--seconds must be a finite number above 0, got inf",
        ),
        (
            suite.app,
            ("bench", "--seconds", "0"),
            "--seconds must be a finite number above 0, got 0.0",
        ),
        (
            suite.app,
            ("dev", "calibrate", "SAT-v0", "--episodes", "-5"),
            "--episodes must be at least 2, got -5",
        ),
        (
            suite.app,
            ("dev", "calibrate", "SAT-v0", "--error", "0"),
            "--error must be a finite number above 0, got 0.0",
        ),
        (
            suite.app,
            ("dev", "calibrate", "SAT-v0", "--minutes", "nan"),
            "--minutes must be a finite number above 0, got nan",
        ),
        (
            suite.app,
            ("serve", "Wordle-v0", "--idle-seconds", "0"),
            "--idle-seconds must be a finite number above 0, got 0.0",
        ),
        (
            suite.app,
            ("serve", "Wordle-v0", "--idle-seconds", "nan"),
            "--idle-seconds must be a finite number above 0, got nan",
        ),
        (
            suite.app,
            ("record", "SAT-v0", "--episodes", "0"),
            "--episodes must be at least 1, got 0",
        ),
        (suite.app, ("record", "SAT-v0", "--seed", "-1"), "--seed must be at least 0, got -1"),
        (
            suite.app,
            ("serve", "Wordle-v0", "--port", "65536"),
            "--port must be from 0 to 65535, got 65536",
        ),
        (suite.app, ("mcp", "Wordle-v0", "--port", "-1"), "--port must be from 0 to 65535, got -1"),
        (
            suite.app,
            ("serve", "Wordle-v0", "--max-sessions", "0"),
            "--max-sessions must be at least 1, got 0",
        ),
        (suite.app, ("mcp", "Wordle-v0", "--seed", "-1"), "--seed must be at least 0, got -1"),
        (
            suite.app,
            ("puzzles", "show", "Slant-v0", "--seed", "-1"),
            "--seed must be at least 0, got -1",
        ),
        (
            suite.app,
            ("puzzles", "verify", "Slant-v0", "--seed", "-1"),
            "--seed must be at least 0, got -1",
        ),
        (suite.app, ("puzzles", "export", "Slant-v0", "--n", "0"), "--n must be at least 1, got 0"),
        (
            suite.app,
            ("puzzles", "export", "Slant-v0", "--seed", "-1"),
            "--seed must be at least 0, got -1",
        ),
    ],
)
def test_senseless_numbers_are_refused(
    bare: Path,
    capsys: pytest.CaptureFixture[str],
    app: cli.App,
    arguments: tuple[str, ...],
    words: str,
):
    with pytest.raises(SystemExit) as left:
        app(list(arguments))
    assert left.value.code == 2
    assert capsys.readouterr().err == f"error: {words}.\n"


def types_in(kind: Any) -> Iterator[Any]:
    """Yield a type and those that it is made of, such as those of ``list[float] | None``."""
    yield kind
    for inner in get_args(kind):
        yield from types_in(inner)


def test_every_option_that_is_a_number_is_among_them():
    """A new number must be checked too.

    ``play --seed`` and ``pack --entry-version`` are checked where they are used.

    Options of language models are checked in ``tests/language``.
    """
    numbers = {
        (command.callback.__name__, name)
        for program in (evaluate.app, suite.app, leaderboard.app, data.app, puzzles.app, dev.app)
        for command in (program.registered_callback, *program.registered_commands)
        if command and command.callback
        for name, kind in get_type_hints(command.callback).items()
        if {int, float} & set(types_in(kind))
    }
    assert numbers == {
        ("run", "seeds"), ("run", "workers"), ("run", "silence"), ("ray", "seeds"),
        ("ray", "workers"), ("ray", "silence"), ("ray", "cpus"), ("ray", "gpus"), ("ray", "memory"),
        ("judge", "seeds"), ("judge", "workers"), ("judge", "silence"), ("bench", "envs"),
        ("bench", "seconds"), ("calibrate", "episodes"), ("play", "seed"), ("exploit", "steps"),
        ("pack", "entry_version"), ("power", "differences"), ("power", "number_of_agents"),
        ("record", "episodes"), ("record", "seed"), ("show", "seed"), ("verify", "seed"),
        ("export", "n"), ("export", "seed"), ("serve", "port"), ("serve", "max_sessions"),
        ("serve", "idle_seconds"), ("mcp", "port"), ("mcp", "seed"), ("calibrate", "error"),
        ("calibrate", "minutes"), ("video", "pictures"), ("video", "seed"),
        *(
            ("llm", name)
            for name in (
                "seeds", "samples", "episodes", "temperature", "max_tokens", "concurrency"
            )
        ),
        ("llm", "timeout"), ("llm", "prices"),
    }  # fmt: skip

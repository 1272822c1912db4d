"""Test ``rlsuite-eval --suite my_suite.yaml``.

The file gives tasks, budget and seeds; a changed file is not mixed with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from rlbench_suite.cli import evaluate
from rlbench_suite.cli.run_commands import execution
from rlbench_suite.evaluation.runs.run import read_manifest

FILE = "name: mine\nbudget: smoke\nseeds: 2\ntasks: [ToyWalk-v0, {id: ToyDrift-v0}]\n"


@pytest.fixture
def call(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run the program in this process, in a folder with a suite file: exit code, stderr."""
    monkeypatch.setattr(execution, "prepare_jax", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(FILE)

    def call(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            evaluate.app(["--agent", "toy", "--workers", "0", *arguments])
        return int(left.value.code or 0), capsys.readouterr().err

    return call


def test_the_file_says_what_runs_and_the_command_line_wins(call: Callable[..., tuple[int, str]]):
    assert call("--suite", "mine.yaml") == (0, "")
    manifest = read_manifest(Path("runs/toy-mine-smoke"))
    assert {cell[1:] for cell in manifest.cells()} == {
        (f"rlsuite/{task}-v0", seed) for task in ("ToyWalk", "ToyDrift") for seed in (0, 1)
    }
    assert manifest.suites == {"mine": hashlib.sha256(FILE.encode()).hexdigest()}
    assert call("--suite", "mine.yaml", "--seeds", "1", "--out", "one") == (0, "")
    assert read_manifest(Path("one")).seeds == 1


def test_a_changed_file_does_not_continue_an_old_run(call: Callable[..., tuple[int, str]]):
    assert call("--suite", "mine.yaml", "--out", "run") == (0, "")
    before = Path("run/manifest.json").read_bytes()
    Path("mine.yaml").write_text(FILE.replace("ToyWalk-v0, ", ""))
    code, error = call("--suite", "mine.yaml", "--out", "run")
    assert code == 2
    assert error.startswith("error: The run in run has the suite file of mine = ")
    assert error.count("\n") == 1
    assert Path("run/manifest.json").read_bytes() == before
    # No file, so nothing to compare.
    assert call("--suite", "ToyWalk-v0", "--seeds", "3", "--out", "run") == (0, "")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            FILE + "x: !!python/object/apply:os.system [id]",
            "mine.yaml is not a suite file: it has a tag in line 5.",
        ),
        (
            FILE.replace("2", ".nan"),
            "mine.yaml is not a suite file: seeds: input should be a valid integer, got nan.",
        ),
        (None, "Cannot read the suite file mine.yaml: there is no such file."),
    ],
)
def test_a_bad_file_is_a_wrong_argument(
    call: Callable[..., tuple[int, str]], text: str | None, sentence: str
):
    Path("mine.yaml").unlink()
    if text is not None:
        Path("mine.yaml").write_text(text)
    assert call("--suite", "mine.yaml") == (2, f"error: {sentence}\n")
    assert not Path("runs").exists()

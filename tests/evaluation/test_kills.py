"""Runs that are killed at random times: nothing that was finished is lost, and nothing is there twice."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rlbench_suite.evaluation.runner import in_process, plan
from rlbench_suite.evaluation.store import Run

PROGRAM = str(Path(sys.executable).with_name("rlsuite-eval"))
SUITE = "ToyWalk-v0,ToyDrift-v0"
SEEDS = 3
COMMAND = (PROGRAM, "--agent", "toy", "--suite", SUITE, "--seeds", str(SEEDS), "--workers", "2")


SIGNS = {"worker": ("spawn_main", "ray::_Player"), "node": ("/raylet/raylet",)}
"""Parts of the command lines of processes that a run starts."""


LONGEST_WAIT = 10.0
"""Time in s from the first worker to a kill: about as long as a run takes"""


def children(kind: str, path: str) -> list[int]:
    """Return the processes of a kind that belong to a run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
            environment = (folder / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if any(sign in words for sign in SIGNS[kind]) and f"TOY_MARKS={path}" in environment:
            found.append(int(folder.name))
    return found


def snapshot(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.glob("cells/*/*/[0-9]*/*")}


@pytest.fixture
def alone(toys: Path, tmp_path: Path) -> bytes:
    with Run.open(tmp_path / "alone", plan("toy", SUITE, SEEDS, "smoke")) as run, run.sitting():
        list(in_process(run))
        run.merge()
    return (tmp_path / "alone" / "episodes.parquet").read_bytes()


def torture(
    path: Path, kills: int, victims: tuple[str, ...], executor: str, alone: bytes, seed: int
) -> list[tuple[str, int]]:
    """Kill a run ``kills`` times, check what it kept each time, and compare the end.

    Returns:
        what was killed each time, and how many cells were finished then.
    """
    chance = random.Random(seed)
    environment = os.environ | {"TOY_PAUSE": "0.4", "TOY_MARKS": str(path)}
    command = [*COMMAND, "--executor", executor, "--out", str(path)]
    kept: dict[Path, bytes] = {}
    killed: list[tuple[str, int]] = []
    for kill in range(kills):
        outliving = {*children("worker", str(path)), *children("node", str(path))}  # Ray's processes, for a moment
        program = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        deadline = time.monotonic() + 60
        while outliving.issuperset(children("worker", str(path))):
            assert program.poll() is None, program.communicate()[0]
            assert time.monotonic() < deadline, "no worker was started in a minute"
            time.sleep(0.1)
        time.sleep(chance.uniform(0.0, LONGEST_WAIT))
        kind = victims[kill % len(victims)]
        candidates = sorted({*children(kind, str(path))} - outliving) if kind != "main" else []
        victim = chance.choice(candidates or [program.pid])
        found = kind if candidates or (kind == "main" and program.poll() is None) else "nothing"
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        if victim != program.pid:
            time.sleep(chance.uniform(0.0, 1.0))
            program.kill()
        program.communicate()
        now = snapshot(path)
        assert kept.items() <= now.items(), "a finished cell was lost or written again"
        assert len(now) % 5 == 0, "a part of a cell is there"
        killed.append((found, len(now) // 5))
        print(f"kill {kill + 1}: {found}, {len(now) // 5} cells done")
        kept = now
        if len(kept) == 5 * 2 * SEEDS:
            for file in list(kept)[: chance.randint(1, 2 * SEEDS)]:  # all are done: run some again
                kept = {name: content for name, content in kept.items() if name.parent != file.parent}
                if file.parent.exists():
                    for part in file.parent.iterdir():
                        part.unlink()
                    file.parent.rmdir()
    subprocess.run(command, env=environment | {"TOY_PAUSE": "0"}, check=True, capture_output=True)
    assert kept.items() <= snapshot(path).items()
    assert (path / "episodes.parquet").read_bytes() == alone
    assert not list(path.glob("cells/*/*/.*"))
    deadline = time.monotonic() + 20
    while left := children("worker", str(path)) + children("node", str(path)):
        assert time.monotonic() < deadline, f"processes outlived the program: {left}"
        time.sleep(0.2)
    return killed


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc here")
def test_kills_of_main_and_workers_lose_and_double_nothing(alone: bytes, tmp_path: Path):
    torture(tmp_path / "run", 3, ("main", "worker"), "local", alone, seed=random.randrange(2**32))


@pytest.mark.slow
@pytest.mark.skipif("not config.getoption('--every')", reason="takes minutes; --every runs it")
@pytest.mark.parametrize("executor", ["local", "ray"])
def test_thirty_kills_lose_and_double_nothing(executor: str, alone: bytes, tmp_path: Path):
    if executor == "ray":
        pytest.importorskip("ray")
    victims = ("main", "worker") if executor == "local" else ("worker", "node", "main")
    killed = torture(tmp_path / "run", 15, victims, executor, alone, seed=22)
    assert set(victims) <= {found for found, _ in killed}
    assert any(cells for _, cells in killed), "every kill came before the first cell was finished"

"""Kill runs at random times: nothing finished is lost, and nothing is there twice."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.runner import in_process, plan

PROGRAM = str(Path(sys.executable).with_name("rlsuite-eval"))
SUITE = "ToyWalk-v0,ToyDrift-v0"
SEEDS = 3
ARGUMENTS = ("--agent", "toy", "--suite", SUITE, "--seeds", str(SEEDS), "--workers", "2")


SIGNS = {"worker": ("spawn_main", "ray::_Player"), "node": ("/raylet/raylet",)}
"""Parts of the command lines of processes that a run starts."""


FIRST_WAIT = 6.0
"""Longest time in s from the first worker to the first kill.

It adapts to the time that a run takes on this machine.
"""


def children(kind: str, path: str) -> list[int]:
    """Return the processes of a kind that belong to a run."""
    process_ids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
            environment = (folder / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if any(sign in words for sign in SIGNS[kind]) and f"TOY_MARKS={path}" in environment:
            process_ids.append(int(folder.name))
    return process_ids


def snapshot(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.glob("cells/*/*/[0-9]*/*")}


@pytest.fixture
def alone(toys: Path, tmp_path: Path) -> bytes:
    with OpenRun.open(tmp_path / "alone", plan("toy", SUITE, SEEDS, "smoke")) as run, run.sitting():
        list(in_process(run))
        run.merge()
    return (tmp_path / "alone" / "episodes.parquet").read_bytes()


def torture(
    path: Path, kills: int, victims: tuple[str, ...], verb: str, alone: bytes, seed: int
) -> list[tuple[str, int]]:
    """Kill a process of a run ``kills`` times, check what the run kept, and compare the end.

    Returns:
        what was killed each time, and how many cells were finished then.
    """
    chance = random.Random(seed)
    environment = os.environ | {"TOY_PAUSE": "0.4", "TOY_MARKS": str(path)}
    command = [PROGRAM, verb, *ARGUMENTS, "--out", str(path)]
    finished_files: dict[Path, bytes] = {}
    killed: list[tuple[str, int]] = []
    longest = FIRST_WAIT
    for _ in range(5 * kills):
        if len(killed) == kills:
            break
        # Ray's processes, for a moment.
        outliving = {*children("worker", str(path)), *children("node", str(path))}
        program = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        deadline = time.monotonic() + 600
        while outliving.issuperset(children("worker", str(path))):
            assert program.poll() is None, program.communicate()[0]
            assert time.monotonic() < deadline, "no worker was started in ten minutes"
            time.sleep(0.1)
        time.sleep(chance.uniform(0.0, longest))
        kind = victims[len(killed) % len(victims)]
        running = [program.pid] if program.poll() is None else []
        candidates = running if kind == "main" else sorted({*children(kind, str(path))} - outliving)
        if candidates:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(candidates), signal.SIGKILL)
        if kind != "main":
            time.sleep(chance.uniform(0.0, 1.0))
            program.kill()
        program.communicate()
        now = snapshot(path)
        assert finished_files.items() <= now.items(), "a finished cell was lost or written again"
        assert len(now) % 5 == 0, "a part of a cell is there"
        if not candidates:
            longest *= 0.8
        else:
            longest *= 1.25 if now == finished_files else 1.0
            killed.append((kind, len(now) // 5))
            print(f"kill {len(killed)}: {kind}, {len(now) // 5} cells done")
        finished_files = now
        if len(finished_files) == 5 * 2 * SEEDS:  # all are done: run some again
            cells = sorted({file.parent for file in finished_files})
            for cell in chance.sample(cells, chance.randint(1, len(cells))):
                shutil.rmtree(cell)
            finished_files = snapshot(path)
    assert len(killed) == kills, f"{5 * kills} attempts found only {len(killed)} processes to kill"
    subprocess.run(command, env=environment | {"TOY_PAUSE": "0"}, check=True, capture_output=True)
    assert finished_files.items() <= snapshot(path).items()
    assert (path / "episodes.parquet").read_bytes() == alone
    assert not list(path.glob("cells/*/*/.*"))
    deadline = time.monotonic() + 100
    while left := children("worker", str(path)) + children("node", str(path)):
        assert time.monotonic() < deadline, f"processes outlived the program: {left}"
        time.sleep(0.2)
    return killed


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc here")
def test_kills_of_main_and_workers_lose_and_double_nothing(alone: bytes, tmp_path: Path):
    torture(tmp_path / "run", 3, ("main", "worker"), "run", alone, seed=random.randrange(2**32))


@pytest.mark.skipif("not config.getoption('--every')", reason="takes minutes; --every runs it")
@pytest.mark.parametrize("verb", ["run", "ray"])
def test_thirty_kills_lose_and_double_nothing(verb: str, alone: bytes, tmp_path: Path):
    if verb == "ray":
        pytest.importorskip("ray")
    victims = ("main", "worker") if verb == "run" else ("worker", "node", "main")
    killed = torture(tmp_path / "run", 15, victims, verb, alone, seed=22)
    assert {victim for victim, _ in killed} == set(victims)
    assert len({cells for _, cells in killed}) > 2, (
        "the kills did not find the run in different states"
    )

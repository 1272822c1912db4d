"""Small runs, their archives, and a stolen one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forgery import Forgery, run_agents, steal

from rlbench_suite.leaderboard import site, submit
from rlbench_suite.leaderboard.pack import pack
from rlbench_suite.leaderboard.schema import Entry, Rejected
from rlbench_suite.leaderboard.verify import Contents, read_contents, verify


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose runs tests share and do not change."""
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture
def toy_run(toys: Path, shelf: Path) -> Path:
    """Two agents on both toys, two seeds; not to be changed."""
    return (
        shelf / "run"
        if (shelf / "run").exists()
        else run_agents(shelf / "run", "toy,random", "toys", 2)
    )


@pytest.fixture
def wide_run(toys: Path, shelf: Path) -> Path:
    """The same agents with as many seeds as a rank needs; not to be changed."""
    return (
        shelf / "wide"
        if (shelf / "wide").exists()
        else run_agents(shelf / "wide", "toy,random", "toys", 5)
    )


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives are judged in this process, because a new one takes seconds.

    ``test_judging.py`` starts new ones.
    """

    def open_up(path: Path) -> Contents | None:
        try:
            return read_contents(path)
        except Rejected:
            return None

    for module in (site, submit):
        monkeypatch.setattr(module, "judge", verify)
    monkeypatch.setattr(submit, "open_up", open_up)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts are kept in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def honest(toy_run: Path, shelf: Path, tmp_path: Path) -> Path:
    """The archive of agent ``toy``, as ``pack`` writes it; a copy of the test's own."""
    if not (shelf / "toy-v1.zip").exists():
        pack(
            toy_run, Entry(name="toy", agent="toy", authors=("Ada Lovelace",)), shelf / "toy-v1.zip"
        )
    return Path(shutil.copy(shelf / "toy-v1.zip", tmp_path))


@pytest.fixture
def packed(wide_run: Path, tmp_path: Path) -> Callable[..., Path]:
    """Pack an agent of the wide run under a name."""

    def packed(agent: str = "toy", **fields: Any) -> Path:
        entry = Entry(**{"name": agent, "agent": agent} | fields)
        pack(wide_run, entry, tmp_path / "packed" / f"{entry.title}.zip")
        return tmp_path / "packed" / f"{entry.title}.zip"

    return packed


@pytest.fixture
def theft(packed: Callable[..., Path], shelf: Path, tmp_path: Path) -> Path:
    """An archive that an earlier judge ranked in its victim's place."""
    if not (shelf / "six").exists():
        run_agents(shelf / "six", "random", "toys", 6)
    pack(shelf / "six", Entry(name="own", agent="random"), tmp_path / "own.zip")
    path = steal(tmp_path / "thief-v1.zip", Forgery(packed()), Forgery(tmp_path / "own.zip"))
    assert verify(path).problems == ()
    return path

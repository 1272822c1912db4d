"""Run the tests of the contract over the ids in the registry: a task without tests cannot exist.

Ids of one entry point with the same tags differ by data only. Each of them passes the tests marked
``every_id``; the first one passes the others too. ``selection.py`` chooses the tests of a run;
``pytest --every`` runs all.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selection import ROOT, Selection, slow_tests

from rlbench_suite.cli import prepare_jax
from rlbench_suite.core import registry
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import TaskCard

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")
# Nothing has imported JAX yet. Most of the time goes into compiling: the user's cache keeps
# programs for the next run and for processes that tests start. Test processes run side by side, and
# small programs lose time to a second thread.
prepare_jax(pool=1)

MAX_MAPS = 20_000
TESTS = Path(__file__).parent
PLUGIN = TESTS / "plugin"
SELECTION = pytest.StashKey[Selection]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every", action="store_true", help="run every test")
    parser.addoption(
        "--since", metavar="COMMIT", help="test all that has changed since, and a share of the rest"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SELECTION] = Selection.of_run(config)
    if not hasattr(config, "workerinput"):  # processes of xdist report to this one
        config.pluginmanager.register(TimeLeft(config))


class TimeLeft:
    """Say once a minute how many tests have run, and how long the rest may take.

    The estimate assumes that the rest runs as fast.
    """

    REPORT_SECONDS = 60

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.start = self.last_line = time.monotonic()
        self.done = 0
        self.total = 0

    @pytest.hookimpl(tryfirst=True)  # before xdist's, which runs all tests
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        self.start = self.last_line = time.monotonic()
        self.session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown":
            return
        self.done += 1
        now = time.monotonic()
        reporter: Any = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or now - self.last_line < self.REPORT_SECONDS:
            return
        self.last_line = now
        total = max(self.session.testscollected, self.done)
        minutes = (now - self.start) / self.done * (total - self.done) / 60
        reporter.ensure_newline()
        reporter.write_line(f"{self.done} of {total} tests have run, about {minutes:.0f} min left")


def pytest_sessionstart(session: pytest.Session) -> None:
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter:  # processes of xdist have none
        reporter.write_line(str(session.config.stash[SELECTION]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that the selection leaves out."""
    selection = config.stash[SELECTION]
    selected_items = []
    other_items = []
    for item in items:
        slow = _function_of(item) in slow_tests()
        runs = selection.runs(item.path, _names_in_parameters(item), slow)
        (selected_items if runs else other_items).append(item)
    config.hook.pytest_deselected(items=other_items)
    items[:] = selected_items


def _function_of(item: pytest.Item) -> str:
    """Return the file below the root and the function of a test."""
    file = item.path.relative_to(ROOT).as_posix()
    return f"{file}::{getattr(item, 'originalname', item.name)}"


def _names_in_parameters(item: pytest.Item) -> set[str]:
    """Return the strings among the parameters of a test.

    Return also the names of parameters that have some.
    """
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return set()
    names = (getattr(value, "name", value) for value in item.callspec.params.values())
    return {name for name in names if isinstance(name, str)}


def simulated() -> list[TaskCard]:
    """List the cards whose simulators are here: PyBullet has no wheels for the newest Pythons."""
    return [card for card in cards().values() if card.installed]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "card" in metafunc.fixturenames:
        table = simulated()
        if metafunc.definition.get_closest_marker("every_puzzle"):
            table = [card for card in table if card.puzzle]
        elif not metafunc.definition.get_closest_marker("every_id"):
            table = list(
                {(card.entry_point, card.tags): card for card in reversed(table)}.values()
            )[::-1]
        metafunc.parametrize("card", table, ids=[card.name for card in table])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send all tests of an id, and all tests of a file, to one process.

    The programs of an id are compiled once there.

    The tests of a family of one id go with that id. Tests of agents are spread, since each compiles
    its own programs.
    """
    from xdist.scheduler import LoadScopeScheduling

    families: dict[str, list[str]] = {}
    for card in cards().values():
        families.setdefault(card.family, []).append(card.name)

    class ById(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            folder = Path(file).parent.name
            if card_names := [card.name for card in cards().values() if card.name in test]:
                return max(card_names, key=len)
            if folder == "baselines":
                return nodeid
            if folder in (
                "datasets",
                "leaderboard",
            ):  # what their tests share is made once a process
                return folder
            return families[folder][0] if len(families.get(folder, ())) == 1 else file

    return ById(config, log)


@pytest.fixture(autouse=True, scope="module")
def room_for_programs() -> Iterator[None]:
    """Release compiled programs before their memory maps reach Linux's limit.

    The limit is 65,530; XLA crashes there.
    """
    yield
    _make_room()


@pytest.fixture
def room_for_many() -> Iterator[None]:
    """Do the same after each test of a file that compiles all ids."""
    yield
    _make_room()


def _make_room() -> None:
    maps = Path("/proc/self/maps")
    if maps.exists() and "jax" in sys.modules and len(maps.read_bytes().splitlines()) > MAX_MAPS:
        import jax

        jax.clear_caches()


@pytest.fixture
def task(card: TaskCard):
    return card.build()


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Register the toy family and agents of ``tests/plugin``, and return their folder.

    They are registered as a third party does it.
    """
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN))  # for programs that a test starts
    tables = (registry.all_cards, registry.agent_entry_points)
    for table in tables:
        table.cache_clear()
    yield PLUGIN
    for table in tables:
        table.cache_clear()

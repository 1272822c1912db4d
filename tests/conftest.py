"""The tests of the contract run over the ids in the registry: a task without tests cannot exist.

Ids of one entry point with the same tags differ by data only. Each passes the tests marked ``every_id``; the first of
them passes the others too. What concerns variants (``TaskCard.variant``), other settings and other difficulties than
the default runs apart: ``pytest --variants``. Only ``pytest -m engine`` runs its tests whatever they concern.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")
# Test processes run side by side, and small programs lose time to a second thread.
os.environ.setdefault("PJRT_NPROC", "1")

from pathlib import Path

# Most of the time goes into compiling; what one run has compiled, and the processes that tests start, serves the next.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Banks of puzzles too take seconds to build.
os.environ.setdefault("RLSUITE_CACHE", str(Path(__file__).parents[1] / ".pytest_cache"))

from collections.abc import Iterator
from typing import Any

import pytest

from rlbench_suite import registry
from rlbench_suite.card import TaskCard
from rlbench_suite.registry import cards

MOST_MAPS = 20_000
PLUGIN = Path(__file__).with_name("plugin")


def pytest_addoption(parser: pytest.Parser) -> None:
    said = "run the tests of variants of tasks and of other difficulties than the default, and no others"
    parser.addoption("--variants", action="store_true", help=said)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    variants = {name for card in cards().values() if card.variant for name in (card.id, card.name)}
    tiers: dict[str, set[str]] = {}  # of each family, but for those that a task of it has as its default
    for card in cards().values():
        tiers.setdefault(card.family, set()).update([*card.difficulties][1:])
    for card in cards().values():
        tiers[card.family].difference_update([*card.difficulties][:1])

    def of_a_variant(item: pytest.Item) -> bool:
        if item.get_closest_marker("of_variants"):
            return True
        apart = variants | tiers.get(item.path.parent.name, set())
        values = (
            item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
        )
        names = (value.name if isinstance(value, TaskCard) else value for value in values)
        return any(isinstance(name, str) and name in apart for name in names)

    def wanted(item: pytest.Item) -> bool:
        return config.option.markexpr == "engine" or of_a_variant(item) == config.getoption("--variants")

    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = [item for item in items if wanted(item)]


def simulated() -> list[TaskCard]:
    """The cards whose simulators are here: PyBullet has no wheels for the newest Pythons."""
    return [card for card in cards().values() if card.installed]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "card" in metafunc.fixturenames:
        table = simulated()
        if metafunc.definition.get_closest_marker("every_puzzle"):
            table = [card for card in table if card.puzzle]
        elif not metafunc.definition.get_closest_marker("every_id"):
            table = list({(card.entry_point, card.tags): card for card in reversed(table)}.values())[::-1]
        metafunc.parametrize("card", table, ids=[card.name for card in table])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests of an id go to one process, where its programs are compiled once, and so do those of a file.

    Those of a family of one id go with that id. Agents compile something of their own in every test.
    """
    from xdist.scheduler import LoadScopeScheduling

    families: dict[str, list[str]] = {}
    for card in cards().values():
        families.setdefault(card.family, []).append(card.name)

    class ById(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            folder = Path(file).parent.name
            if named := [card.name for card in cards().values() if card.name in test]:
                return max(named, key=len)
            if folder == "baselines":
                return nodeid
            if folder in ("datasets", "leaderboard"):  # what their tests share is made once a process
                return folder
            return families[folder][0] if len(families.get(folder, ())) == 1 else file

    return ById(config, log)


@pytest.fixture(autouse=True, scope="module")
def room_for_programs() -> Iterator[None]:
    """Let go of compiled programs before their memory maps reach Linux's limit of 65,530, where XLA crashes."""
    yield
    _make_room()


@pytest.fixture
def room_for_many() -> Iterator[None]:
    """The same after each test of a file that compiles all ids."""
    yield
    _make_room()


def _make_room() -> None:
    maps = Path("/proc/self/maps")
    if maps.exists() and "jax" in sys.modules and len(maps.read_bytes().splitlines()) > MOST_MAPS:
        import jax

        jax.clear_caches()


@pytest.fixture
def task(card: TaskCard):
    return card.build()


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The toy family and agents of ``tests/plugin``, found as any third party's are; gives their folder."""
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN))  # for programs that a test starts
    tables = (registry.all_cards, registry.agent_entry_points)
    for table in tables:
        table.cache_clear()
    yield PLUGIN
    for table in tables:
        table.cache_clear()

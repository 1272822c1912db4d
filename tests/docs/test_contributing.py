"""The task of CONTRIBUTING.md, as it is printed there, keeps the contract, and its test passes."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from rlbench_suite import check_task, envs
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import NoopAgent
from rlbench_suite.core import registry
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.task_card import TaskCard

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
FILES = ("envs/classic/pendulum.py", "envs/classic/cards.py", "tests/classic/test_pendulum.py")


def script(file: str) -> str:
    """Return the Python script that follows the last mention of a file."""
    following = PAGE.rpartition(f"`{file}`")[2]
    return re.search(r"```python\n(.*?)```", following, re.DOTALL)[1]


@pytest.fixture
def pendulum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskCard:
    """Install the family of the page, and return the card."""
    family = tmp_path / "classic"
    family.mkdir()
    (family / "__init__.py").write_text('"""Classic control."""\n')
    for file in FILES[:2]:
        (family / Path(file).name).write_text(script(file))
    monkeypatch.setattr(envs, "__path__", [*envs.__path__, str(tmp_path)])
    for module in ("classic", "classic.cards", "classic.pendulum"):
        monkeypatch.delitem(sys.modules, f"rlbench_suite.envs.{module}", raising=False)
    (card,) = importlib.import_module("rlbench_suite.envs.classic.cards").CARDS
    original_cards = registry.all_cards()
    monkeypatch.setattr(registry, "all_cards", lambda: {**original_cards, card.id: card})
    return card


def test_the_task_keeps_the_contract(pendulum: TaskCard) -> None:
    check_task(pendulum.build())


def test_the_player_swings_up_and_doing_nothing_does_not(pendulum: TaskCard) -> None:
    task = pendulum.build()
    record = play(task, reference_player(task), range(64), split="test")
    assert record.info["success"].all()
    idle = play(task, NoopAgent().policy(task), range(64), split="test")
    assert not idle.info["success"].any()
    assert idle.total.mean() < 0.5 * record.total.mean()


def test_the_test_of_the_page_passes(pendulum: TaskCard) -> None:
    names: dict[str, object] = {}
    exec(script(FILES[2]), names)
    (test,) = (function for name, function in names.items() if name.startswith("test_"))
    test()

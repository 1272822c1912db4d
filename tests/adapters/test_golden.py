"""Notice that a trajectory has changed, for which an id needs a new version.

Each id has a file in ``golden/``. ``python tests/adapters/test_golden.py`` writes those that are
missing. With names of ids it writes theirs anew and says what has changed. Numbers are compared
within 1e-4, which any processor keeps over so few steps; a change of rules, physics, units, keys or
seeding moves them by far more.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import TaskCard

# Where pytest finds it, but not a program.
sys.path.append(str(Path(__file__).parents[1] / "support"))
from trajectories import differences, trajectory

GOLDEN = Path(__file__).parent / "golden"


def golden_file(card: TaskCard, folder: Path = GOLDEN) -> Path:
    """Return the file of an id."""
    return folder / f"{card.name}.json"


def play(card: TaskCard) -> dict[str, Any]:
    """Play the trajectory of an id."""
    return trajectory(lambda split: gymnasium.make(card.id, split=split))


def write(names: list[str], folder: Path = GOLDEN) -> None:
    """Write the golden trajectories of the named ids; without a name, of those that have none."""
    if names:
        selected = [find_card(name) for name in names]
    else:
        selected = [
            card
            for card in cards().values()
            if card.installed and not golden_file(card, folder).exists()
        ]
    for card in selected:
        file = golden_file(card, folder)
        results = play(card)
        faults = differences(results, json.loads(file.read_text())) if file.exists() else ["new"]
        print(card.id, "; ".join(faults) or "unchanged")
        if faults:
            file.write_text(json.dumps(results) + "\n")


@pytest.mark.every_id
def test_trajectories_are_those_of_this_version(card: TaskCard) -> None:
    assert not differences(play(card), json.loads(golden_file(card).read_text()))


def test_every_id_has_a_golden_trajectory() -> None:
    missing = {golden_file(card).name for card in cards().values()} ^ {
        file.name for file in GOLDEN.iterdir()
    }
    assert not missing, "a new id needs a golden trajectory: python tests/adapters/test_golden.py"


def test_the_command_writes_what_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for card in cards().values():
        golden_file(card, tmp_path).write_text(golden_file(card).read_text())
    card = find_card("DeepSeaTreasure-v0")
    another = find_card("TMaze-v0")
    file = golden_file(card, tmp_path)
    old = golden_file(card).read_text()
    changed = json.loads(old)
    changed["test"]["returns"][0] = [7, 7]
    file.write_text(json.dumps(changed))
    golden_file(another, tmp_path).unlink()
    write([], tmp_path)
    assert capsys.readouterr().out == f"{another.id} new\n"
    assert json.loads(file.read_text()) == changed
    write([card.name], tmp_path)
    assert capsys.readouterr().out.startswith(f"{card.id} test returns: Not equal to tolerance")
    assert json.loads(file.read_text()) == json.loads(old)
    write([card.name], tmp_path)
    assert capsys.readouterr().out == f"{card.id} unchanged\n"


if __name__ == "__main__":
    write(sys.argv[1:])

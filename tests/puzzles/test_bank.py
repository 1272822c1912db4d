"""Banks are named after the code that makes them: all of it, and no other."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from rlbench_suite.envs.puzzles.grids.sudoku import Sudoku4Puzzle, SudokuPuzzle
from rlbench_suite.puzzle import bank
from rlbench_suite.puzzle.bank import bank_path

MODULES = {
    "__init__": "",
    "own": (
        "from rlbench_suite.envs.puzzles.grids.sudoku import SudokuPuzzle\nfrom . import by_name "
        "as other\nfrom .by_part import PART\nclass Own(SudokuPuzzle):\n    name = 'Own'\n"
    ),
    "by_name": "def late():\n    from family.by_whole_name import X\n    return X\n",
    "by_part": "import family.by_statement\nfrom .folder.within import Y\nPART = 1\n",
    "by_whole_name": "X = 1\n",
    "by_statement": "import numpy\nfrom . import own\n",
    "folder/__init__": "",
    "folder/within": "from ..above import Z\nfrom . import next_to_it\nY = Z\n",
    "folder/next_to_it": "",
    "folder/beside": "",
    "above": "Z = 1\n",
    "beside": "from . import own\n",
}
"""Source of each module of a package; modules may import each other in a circle."""


@pytest.mark.parametrize("changed", MODULES)
def test_a_bank_is_made_anew_when_code_changes_that_it_depends_on(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "family"
    (folder / "folder").mkdir(parents=True)
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("family", *(f"family.{name.replace('/', '.')}" for name in MODULES)):
        monkeypatch.delitem(sys.modules, name, raising=False)
    bank._recipe.cache_clear()
    puzzle = importlib.import_module("family.own").Own(30)
    before = bank_path(puzzle, "train", 4)
    (folder / f"{changed}.py").write_text(
        '"""Words."""\n' + MODULES[changed] + '\n# changed\n"""More words."""\n'
    )
    bank._recipe.cache_clear()
    assert bank_path(puzzle, "train", 4) == before
    words = "\n\nclass Worded:\n    def question(self, instance):\n        return 'other words'\n"
    (folder / f"{changed}.py").write_text(MODULES[changed] + words)
    bank._recipe.cache_clear()
    worded = bank_path(puzzle, "train", 4)
    (folder / f"{changed}.py").write_text(MODULES[changed] + words.replace("other", "better"))
    bank._recipe.cache_clear()
    assert bank_path(puzzle, "train", 4) == worded, "the wording of a prompt changes no instance"
    (folder / f"{changed}.py").write_text(MODULES[changed] + "\nCHANGED = 1\n")
    bank._recipe.cache_clear()
    assert (bank_path(puzzle, "train", 4) != before) == (
        changed.rsplit("/", maxsplit=1)[-1] not in ("__init__", "beside")
    )


def test_what_draws_is_part_of_every_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = []
    monkeypatch.setattr(
        Path, "read_bytes", lambda path: hashed.append(path.name) or path.read_text().encode()
    )
    bank._recipe.cache_clear()
    names = {
        bank_path(SudokuPuzzle(30), "train", 4).name,
        bank_path(Sudoku4Puzzle(9), "train", 4).name,
    }
    assert {
        "puzzle.py",
        "dice.py",
        "sudoku.py",
        "grid_filling.py",
        "puzzle_task.py",
        "parsing.py",
    } <= set(hashed)
    assert not {"binairo.py", "__init__.py", "maze.py"} & set(hashed)
    assert len({name.rsplit("-", 1)[1] for name in names}) == 1, "one module, one recipe"

"""Test the cache of animations.

A picture is drawn once, drawn again when a source file changes, and whole or not there.
"""

from __future__ import annotations

import importlib
import io
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from rlbench_suite.core.registry import card

DOCS = Path(__file__).parents[2] / "docs"
MAZE = card("TMaze-v0")


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(DOCS)
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path))
    monkeypatch.delitem(sys.modules, "animations", raising=False)
    return importlib.import_module("animations")


def test_key_changes_with_the_task_with_what_it_imports_and_with_its_card_only(
    drawing: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sudoku, maze = card("Sudoku4-v0"), MAZE
    keys = {task.id: drawing.key(task) for task in (sudoku, maze)}
    sources = {source.name: source for source in drawing._sources(sudoku.entry_point.split(":")[0])}
    assert {"sudoku.py", "puzzle_task.py", "task.py"} <= sources.keys()

    for changed, other_stays in (("sudoku.py", True), ("puzzle_task.py", True), ("task.py", False)):
        edited = Path(shutil.copy(sources[changed], tmp_path))
        edited.write_text(edited.read_text() + "\n# changed")
        with monkeypatch.context() as patch:
            read = Path.read_bytes
            patch.setattr(
                Path,
                "read_bytes",
                lambda path, name=changed, edited=edited, read=read: read(
                    edited if path == sources[name] else path
                ),
            )
            drawing._digest.cache_clear()
            assert drawing.key(sudoku) != keys[sudoku.id]
            assert (drawing.key(maze) == keys[maze.id]) == other_stays
        drawing._digest.cache_clear()
    assert drawing.key(sudoku) == keys[sudoku.id]
    assert drawing.key(card("Sudoku-v0")) != keys[sudoku.id]


def test_an_animation_is_drawn_once(
    drawing: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    animations = drawing.animations([MAZE])
    (file,) = tmp_path.rglob("*.gif")
    monkeypatch.setattr(
        drawing,
        "_draw_all",
        lambda task_ids: iter(()) if not task_ids else pytest.fail("drawn again"),
    )
    assert drawing.animations([MAZE]) == animations == {MAZE.id: file.read_bytes()}

    with (
        Image.open(io.BytesIO(animations[MAZE.id])) as moving,
        Image.open(io.BytesIO(drawing.still(file.read_bytes()))) as last,
    ):
        assert moving.n_frames > 1
        moving.seek(moving.n_frames - 1)
        assert last.size == moving.size


def test_a_failure_names_the_id(drawing: Any) -> None:
    with pytest.raises(RuntimeError, match="No animation of rlsuite/Nothing-v0"):
        list(drawing._draw_all(["rlsuite/Nothing-v0"]))

"""No module of the package imports itself by way of others, not even for a type checker.

``import-linter`` keeps the layers apart; inside a layer this test keeps the modules in order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "rlbench_suite"
WINGS = ("envs", "baselines", "datasets", "leaderboard")


def modules(root: Path) -> dict[str, Path]:
    """Return the file of every module by its name, as installed."""
    files = {}
    for folder in (PACKAGE, *WINGS):
        for file in sorted((root / folder).rglob("*.py")):
            segments = file.relative_to(root).with_suffix("").parts
            name = ".".join(segment for segment in segments if segment != "__init__")
            files[name if folder == PACKAGE else f"{PACKAGE}.{name}"] = file
    return files


def imports(module: str, file: Path, files: dict[str, Path]) -> set[str]:
    """Return the modules of the package that this one imports.

    Imports in functions and for type checkers count too.
    """

    def nodes(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for child in ast.iter_child_nodes(node):
            yield from nodes(child)

    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    names = set()
    for node in nodes(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        else:
            start = resolve_name("." * node.level + (node.module or ""), package)
            names |= {
                f"{start}.{alias.name}" if f"{start}.{alias.name}" in files else start
                for alias in node.names
            }
    return {name for name in names if name in files and name != module}


def cycle(root: Path) -> list[str]:
    """Return one cycle of imports, its first module last again; empty where there is none."""
    files = modules(root)
    try:
        TopologicalSorter(
            {name: imports(name, file, files) for name, file in files.items()}
        ).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_import_goes_in_a_circle() -> None:
    assert len(modules(ROOT)) > 200
    assert not (circle := cycle(ROOT)), " <- ".join(circle)


@pytest.mark.parametrize(
    ("line", "circular"),
    [
        ("from rlbench_suite.second import x", True),
        ("from . import second", True),
        ("from .second import x", True),
        ("import rlbench_suite.second", True),
        ("def late():\n    from rlbench_suite.second import x", True),
        ("if TYPE_CHECKING:\n    from rlbench_suite.second import x", True),
        ("from rlbench_suite import third", False),
    ],
)
def test_every_kind_of_import_is_seen(tmp_path: Path, line: str, circular: bool) -> None:
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "first.py").write_text(line)
    (folder / "second.py").write_text("from rlbench_suite.first import y")
    (folder / "third.py").write_text("")
    assert bool(cycle(tmp_path)) == circular

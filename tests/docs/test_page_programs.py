"""Programs on the pages of tasks run as they stand: each imports what it needs,
or a block above it on the page does.
"""

import ast
import builtins
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MODULES = {"gymnasium", "rlbench_suite", "pettingzoo", "jax", "jnp", "np", "os"}
"""Names of modules in the programs of the pages."""

RUN = (
    "details/quadcopters.md", "details/text_games.md", "families/drives.md",
    "families/driving.md", "families/memory.md", "families/morl.md",
    "families/quadcopters.md", "families/text_games.md",
)  # fmt: skip
"""Pages whose programs take at most seconds."""


def blocks(page: Path) -> list[str]:
    pattern = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for block in pattern.findall(page.read_text())]


def imported_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name).split(".")[0]


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_modules_are_imported_before_they_are_used(page: Path) -> None:
    names = {*dir(builtins)}
    for block in blocks(page):
        tree = ast.parse(block)
        names |= {*imported_names(tree)}
        loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert loaded & MODULES <= names, block
        if 'make("rlsuite/' in block:  # by which the ids are registered
            assert "rlbench_suite" in names, block


@pytest.mark.parametrize("name", RUN)
def test_the_programs_of_a_page_run(name: str) -> None:
    if "PyBullet" in (DOCS / name).read_text():
        pytest.importorskip("pybullet")
    names: dict[str, object] = {}
    for block in blocks(DOCS / name):
        exec(block, names)

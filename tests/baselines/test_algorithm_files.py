"""An algorithm is one file that reads from top to bottom, with few others behind it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

BASELINES = Path(__file__).parents[2] / "baselines"
CONTRACT = {"rlbench_suite.core.agent", "rlbench_suite.core.policy", "rlbench_suite.core.task"}
ALGORITHMS = (
    "ppo/ppo.py",
    "ppo/recurrent.py",
    "replay/dqn.py",
    "replay/sac.py",
    "offline/bc.py",
    "offline/td3_bc.py",
)


def project_imports(path: Path) -> set[str]:
    """List the modules of this package that a file imports when it runs.

    Imports for type checkers are excluded.
    """
    modules: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level and node.module is None:
            modules |= {alias.name for alias in node.names}
        elif node.level or str(node.module).startswith("rlbench_suite"):
            modules.add(str(node.module))
    return modules


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_reader_opens_three_files_more_at_most(name: str) -> None:
    imports = project_imports(BASELINES / name) - CONTRACT
    assert len(imports) <= 3, sorted(imports)


def test_agents_know_nothing_of_exports() -> None:
    for path in BASELINES.rglob("*.py"):
        modules = project_imports(path)
        assert not [
            module for module in modules if module.startswith("rlbench_suite.evaluation.deploy")
        ], path

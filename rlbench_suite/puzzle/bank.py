"""Store puzzle instances in banks of arrays.

A generator on the host makes them, and a compiled task draws its contexts from them.

Making an instance may be a search (for uniqueness, for few clues), which cannot happen inside a
compiled step. A bank holds the instances of seeds 0, 1, 2, ... of one puzzle, tier and split, with
a solution of each. It is built when first needed and kept in a cache under a name with a hash of
the code that made it, so that a changed generator never uses an old bank. The folder of the cache
is ``RLSUITE_CACHE``, by default ``~/.cache/rlbench_suite``.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlbench_suite.core.task_card import SPLITS
from rlbench_suite.foundation.atomic_files import replacing
from rlbench_suite.foundation.cache_folder import cache_folder
from rlbench_suite.puzzle.puzzle import Puzzle

STOP = -1
"""Mark of the end of a plan that is shorter than the longest plan of its bank."""


class Bank(NamedTuple):
    """Instances of one puzzle, tier and split, stacked on axis 0."""

    instances: Any
    """The puzzle's ``NamedTuple``, with a leading axis."""
    plans: np.ndarray
    """int16 ``(count, longest)``: actions that solve each instance, then :data:`STOP`."""

    @property
    def digest(self) -> str:
        """SHA-256 of the contents, shapes and dtypes included; the same on every machine."""
        hashed = hashlib.sha256()
        for array in (*self.instances, self.plans):
            hashed.update(f"{array.dtype.str}{array.shape}".encode())
            hashed.update(np.ascontiguousarray(array).tobytes())
        return hashed.hexdigest()


def bank_path(puzzle: Puzzle[Any], split: str, count: int) -> Path:
    """Return the path of a bank. The name contains a hash of the code that makes the bank."""
    name = f"{puzzle.name}-{puzzle.tier:g}-{split}-{count}-{_recipe(type(puzzle).__module__)}.npz"
    return cache_folder() / "banks" / name


def load_bank(puzzle: Puzzle[Any], split: str, count: int) -> Bank:
    """Read a bank from the cache, or build it and put it there.

    A cache that is not writable is not an error.
    """
    path = bank_path(puzzle, split, count)
    example: Any = puzzle.generate(0, split)
    try:
        with np.load(path, allow_pickle=False) as stored:
            instances = type(example)(
                **{name: stored[f"instance_{name}"] for name in example._fields}
            )
            return Bank(instances, stored["plans"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):  # missing, or cut short
        bank = build_bank(puzzle, split, count)
    try:
        with replacing(path) as unfinished:  # several processes may build one bank at a time
            columns = {
                f"instance_{name}": value for name, value in bank.instances._asdict().items()
            }
            np.savez_compressed(unfinished, plans=bank.plans, **columns)
    except OSError:
        pass
    return bank


def build_bank(puzzle: Puzzle[Any], split: str, count: int) -> Bank:
    """Make the instances of seeds 0 to ``count`` - 1 and solve them.

    A terminal shows a progress bar.
    """
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    label = f"{puzzle.name} {puzzle.tier:g}, {split}"
    seeds = track(
        range(count), label, console=console, transient=True, disable=not console.is_terminal
    )
    instances: list[Any] = [puzzle.generate(seed, split) for seed in seeds]
    plans = [list(puzzle.plan(instance)) for instance in instances]
    stacked = [
        np.stack([np.asarray(value) for value in column]) for column in zip(*instances, strict=True)
    ]
    padded = np.full((count, max(map(len, plans))), STOP, np.int16)
    for row, actions in zip(padded, plans, strict=True):
        row[: len(actions)] = actions
    return Bank(type(instances[0])(*stacked), padded)


@cache
def _recipe(module: str) -> str:
    """Hash the code that a puzzle's instances depend on.

    This is its module, the modules of its family that it imports, and the two files that draw.
    """
    files = {Path(__file__).with_name("puzzle.py"), Path(__file__).with_name("dice.py")}
    spec = importlib.util.find_spec(module)
    if spec and spec.origin:
        files |= _imported_files(Path(spec.origin), module.rpartition(".")[0])
    hashed = hashlib.sha256()
    for file in sorted(files, key=lambda path: (path.name, path.parent.name)):
        hashed.update(_code(file).encode())
    return hashed.hexdigest()[:16]


_TEXTS = {
    "question",
    "rules",
    "example_answers",
    "shown_examples",
    "prompt",
    "describe",
    "how_to_act",
}
"""Methods that only word a puzzle for a player."""


def _code(file: Path) -> str:
    """Return the code of a file without comments, docstrings and prompts.

    These change no instance.
    """
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.body = [
                line
                for line in node.body
                if not isinstance(line, ast.FunctionDef) or line.name not in _TEXTS
            ]
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            loose = (
                line
                for line in node.body
                if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
            )
            for line in [*loose]:
                node.body.remove(line)
    return ast.dump(tree)


def _imported_files(module: Path, package: str) -> set[Path]:
    """Return the files of a module and of its family that it imports, directly or not.

    None of them is run.

    A family is a package below ``rlbench_suite.envs``, or all of a third party's package.
    """
    packages = package.split(".") if package else []
    family = packages[: 3 if packages[:1] == ["rlbench_suite"] else 1]
    root = module.parents[len(packages) - len(family)]
    files: set[Path] = set()
    waiting = [module]
    while waiting:
        file = waiting.pop()
        if file in files or not file.exists():
            continue
        files.add(file)
        file_package = [*family, *file.parent.relative_to(root).parts]
        names: list[list[str]] = []
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                names += [alias.name.split(".") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                origin = file_package[: len(file_package) - node.level + 1] if node.level else []
                origin = origin + (node.module.split(".") if node.module else [])
                names += [[*origin, alias.name] for alias in node.names]
        for name in names:
            if name[: len(family)] == family:
                subnames = name[len(family) :]
                waiting += [
                    root.joinpath(*subnames[:depth]).with_suffix(".py")
                    for depth in range(1, len(subnames) + 1)
                ]
    return files


def bank_of_both_splits(puzzle: Puzzle[Any], count: int) -> Bank:
    """Join ``count`` train instances and ``count`` test instances.

    A split begins at its number times ``count``.
    """
    banks = [load_bank(puzzle, split, count) for split in SPLITS]
    longest = max(bank.plans.shape[1] for bank in banks)
    plans = [
        np.pad(b.plans, ((0, 0), (0, longest - b.plans.shape[1])), constant_values=STOP)
        for b in banks
    ]
    columns = zip(*(bank.instances for bank in banks), strict=True)
    return Bank(type(banks[0].instances)(*map(np.concatenate, columns)), np.concatenate(plans))

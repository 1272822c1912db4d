"""The laws of the house that a machine can check, over the source and over every card."""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import pytest

from rlbench_suite.core import registry
from rlbench_suite.core.host import HostTask
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard, load

ROOT = Path(__file__).parents[1]
PACKAGE = ("rlbench_suite", "envs", "datasets", "baselines", "leaderboard")
SOURCES = sorted(path for folder in PACKAGE for path in (ROOT / folder).rglob("*.py"))
PYTHON = [
    *SOURCES,
    *sorted(
        path
        for folder in ("tests", "benchmarks", "docs", "examples")
        for path in (ROOT / folder).rglob("*.py")
    ),
]

TEXTS = [
    path
    for pattern in ("*.md", "*.txt", "*.toml", "*.py", ".ci/*", "docs/**/*.md")
    for path in ROOT.glob(pattern)
]

CODE_FROM_DATA = re.compile(
    r"(builtins\.)?(eval|exec)|(pickle|cloudpickle|dill|marshal|shelve|joblib)\..*|torch\.load|pandas\.read_pickle"
    r"|yaml\.((full_|unsafe_)?load(_all)?|(Full|Unsafe)?Loader)"
)
"""Calls that run code which came as data (law 4)."""

HARMLESS = re.compile(r"pickle\.UnpicklingError")
"""Names beside them that run nothing."""

LAPACK = re.compile(
    r"jax\.(numpy|scipy)\.linalg\.(\w*cholesky|cho_\w+|qr|lu\w*|solve\w*|inv|pinv|eig\w*|svd\w*|lstsq|det|slogdet|schur"
    r"|expm|sqrtm|matrix_rank)|jax\.lax\.linalg\..*|jax\.nn\.initializers\.(delta_)?orthogonal"
    r"|jax\.random\.(orthogonal|multivariate_normal)"
)
"""JAX calls made of LAPACK.

Batched and jitted they deadlock a small CPU. On the host, NumPy's and SciPy's are free.
"""

TRACES = re.compile(
    r"jax\.(jit|vmap|named_call|tree_util\.register\w*|custom_jvp|custom_vjp|checkpoint)"
)
"""Calls into JAX that only wrap a function and start no backend."""


def at(path: Path) -> str:
    """Return where a file lies in the repository."""
    return path.relative_to(ROOT).as_posix()


@cache
def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text()


def matches(paths: list[Path], pattern: str) -> list[str]:
    """List what matches a pattern in some files, with the lines on which it stands."""
    return [
        f"{at(path)}:{read(path).count(chr(10), 0, match.start()) + 1} {match[0]}"
        for path in paths
        for match in re.finditer(pattern, read(path))
    ]


def imported_names(tree: ast.AST) -> dict[str, str]:
    """Map each local name to the dotted name that it stands for, over every import of a file."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.asname: a.name for a in node.names if a.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


def dotted_name(node: ast.expr) -> str:
    """Spell an attribute chain as ``a.b.c``; anything else is the empty string."""
    if isinstance(node, ast.Attribute):
        base = dotted_name(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def uses(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and full dotted name of every name and attribute chain in a file.

    Aliases are resolved.
    """
    tree = ast.parse(source)
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            first, _, tail = dotted_name(node).partition(".")
            if first:
                yield node.lineno, ".".join(filter(None, (names.get(first, first), tail)))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def assigned_names(source: str) -> Iterator[str]:
    """Yield every name that a file gives.

    It gives names to variables, arguments, attributes, functions and classes.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(
            node,
            ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs,
        ):
            yield node.name or ""


def empty_words(path: Path) -> list[str]:
    """List the names of a file that are one empty word, whatever its case and underscores.

    A part of a drive (``envs/motor``) is a thing, and ``Task.named`` returns entries by their
    names.
    """
    exceptions = {"part", "parts"} if "motor" in path.parts else set()
    words = (name.strip("_").lower() for name in assigned_names(read(path)))
    is_task = path.name in ("task.py", "component.py")
    return [
        word
        for word in words
        if word in EMPTY_WORDS - exceptions and not (is_task and word == "named")
    ]


def runs_at_import(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that are made when a file is imported: all but those in function bodies."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        now = [
            *node.args.defaults,
            *filter(None, node.args.kw_defaults),
            *getattr(node, "decorator_list", []),
        ]
    else:
        now = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        yield node
    for child in now:
        yield from runs_at_import(child)


def jax_at_import(source: str) -> list[tuple[int, str]]:
    """List the calls into JAX that a file makes on import."""
    tree = ast.parse(source)
    names = imported_names(tree)
    calls = []
    for call in runs_at_import(tree):
        first, _, tail = dotted_name(call.func).partition(".")
        name = ".".join(filter(None, (names.get(first, first), tail)))
        if name.startswith("jax.") and not TRACES.fullmatch(name):
            calls.append((call.lineno, name))
    return calls


def tensors_only(source: str) -> set[tuple[int, str]]:
    """Find the uses of ``torch.load`` that read tensors and nothing else."""
    tree = ast.parse(source)
    return {
        (node.lineno, "torch.load")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and dotted_name(node.func) == "torch.load"
        and any(
            k.arg == "weights_only" and isinstance(k.value, ast.Constant) and k.value.value is True
            for k in node.keywords
        )
    }


def forbidden_uses(source: str, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """List the uses of names that match the whole pattern."""
    hits = [
        (line, name)
        for line, name in uses(source)
        if pattern.fullmatch(name) and not HARMLESS.fullmatch(name)
    ]
    return [use for use in hits if use not in tensors_only(source)]


EMPTY_WORDS = frozenset(
    """
    asked begun both called chosen drawn due far felt flown found given held kept known least made
    met mine most named one ones other others own part parts played rest said same seen settled
    shown spelt spent such taken theirs thing told wanted way whole wished
    """.split()  # noqa: SIM905  # fifty strings are harder to read
)
"""Words that tell the grammar of a value and not what it is.

Nobody knows ``found`` of what, or ``other`` than which.
"""

EMPTY_WORDS_IN_USE = [("envs/tools/office/apps/tasks.py", "due")]
"""The one such name that users see: the argument of an API, the day on which a task is due."""


# -- the checks themselves can fail ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "source"),
    [
        (CODE_FROM_DATA, "import pickle as p\np.loads(b'')"),
        (CODE_FROM_DATA, "from pickle import loads"),
        (CODE_FROM_DATA, "run = eval"),
        (CODE_FROM_DATA, "import yaml\nyaml.load(text, yaml.Loader)"),
        (CODE_FROM_DATA, "import torch\ntorch.load('policy.pt')"),
        (CODE_FROM_DATA, "import torch\ntorch.load('policy.pt', weights_only=False)"),
        (CODE_FROM_DATA, "import torch\ntorch.load('policy.pt', weights_only=safe)"),
        (LAPACK, "import jax.numpy as jnp\njnp.linalg.qr(x)"),
        (LAPACK, "import jax\njax.numpy.linalg.solve(a, b)"),
        (LAPACK, "from jax.scipy.linalg import cho_solve"),
        (LAPACK, "from jax.nn.initializers import orthogonal as o"),
        (LAPACK, "import jax\ninit = jax.nn.initializers.orthogonal()"),
    ],
)
def test_forbidden_names_are_seen_through_aliases(pattern: re.Pattern[str], source: str) -> None:
    assert forbidden_uses(source, pattern)


def test_tensors_alone_may_be_read() -> None:
    assert not forbidden_uses(
        "import torch\ntorch.load('policy.pt', weights_only=True)", CODE_FROM_DATA
    )


@pytest.mark.parametrize(
    "source",
    [
        "import jax.numpy as jnp\nLIMITS = jnp.array([1.0])",
        "import jax\nclass A:\n    key = jax.random.key(0)",
        "import jax.numpy as jnp\ndef f(x=jnp.zeros(3)): ...",
        "from jax.numpy import pi, asarray\nX = [asarray(1)]",
    ],
)
def test_jax_at_import_is_seen(source: str) -> None:
    assert jax_at_import(source)


def test_jax_inside_functions_is_no_call_at_import() -> None:
    assert not jax_at_import(
        "import jax, jax.numpy as j\n@jax.jit\ndef f(x):\n    return j.sin(x)\ng = jax.vmap(f)"
    )


def test_empty_words_are_seen_wherever_a_name_is_given(tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text(
        "OWN = 1\ndef found(given, *, rest=0):\n    for one in given:\n        one.told = rest\n"
    )
    assert sorted(empty_words(empty)) == ["found", "given", "one", "own", "rest", "told"]
    plain = tmp_path / "plain.py"
    plain.write_text("next_state = 1\ndef step(action, part_of_state):\n    action.value = given\n")
    assert not empty_words(plain)


# -- laws of the source ----------------------------------------------------------------------------


def test_nothing_untrusted_is_executed() -> None:
    hits = [
        f"{at(path)}:{line} {name}"
        for path in SOURCES
        for line, name in forbidden_uses(read(path), CODE_FROM_DATA)
    ]
    assert not hits + matches(SOURCES, r"allow_pickle\s*=\s*True")


def test_no_batched_lapack() -> None:
    assert not [
        f"{at(path)}:{line} {name}"
        for path in SOURCES
        for line, name in forbidden_uses(read(path), LAPACK)
    ]


def test_import_starts_no_jax() -> None:
    assert not [
        f"{at(path)}:{line} {name}" for path in SOURCES for line, name in jax_at_import(read(path))
    ]


def test_float64_is_a_context_not_a_flag() -> None:
    flag = r"config\.update\(\s*[\"']jax_enable_x64|config\.jax_enable_x64\s*=|JAX_ENABLE_X64"
    assert not matches(SOURCES, flag)


def test_only_gymnasium_s_base_space_takes_a_type_in_brackets() -> None:
    """Gymnasium 1.2 refuses to import classes of ``spaces.MultiDiscrete[...]``.

    pyproject.toml allows that version.
    """
    assert matches(SOURCES, r"\bspaces\.(?!Space\b)\w+\[") == []


def test_a_file_fits_in_a_head() -> None:
    """720 lines of 100 characters hold as much as 600 of 120, the width before."""
    assert not [
        f"{at(path)}: {lines} lines" for path in PYTHON if (lines := read(path).count("\n")) > 720
    ]
    vague = {"util", "utils", "helper", "helpers", "manager", "managers", "misc"}
    assert not [at(path) for path in PYTHON if vague & {*path.stem.split("_")}]


def test_names_say_what_a_value_is() -> None:
    names = [(at(path), word) for path in PYTHON for word in empty_words(path)]
    assert names == EMPTY_WORDS_IN_USE


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    """CONTRIBUTING.md forbids these first words: a reader must reach the verb at once."""
    assert [
        f"{at(path)}: {node.value.value}"
        for path in PYTHON
        for node in ast.walk(ast.parse(read(path)))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if re.match(r"(Of|What|Where|That|Who|How)\b", str(node.value.value))
    ] == []


def test_nothing_of_one_machine() -> None:
    every = [*PYTHON, *TEXTS]
    assert not matches(every, r"(?<![\w./])/(home|root|Users|work|opt)/\w")
    assert not matches(every, r"--(extra-)?index-url[= ]\S+|--find-link[s]|/simpl[e]/")


def test_no_measured_value_stands_twice() -> None:
    """Python keeps the last of two equal keys of a JSON object without a word.

    A careless merge makes such keys.
    """
    twice: list[str] = []

    def note(path: Path, pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        twice.extend(f"{path.relative_to(ROOT)}: {key}" for key in {*keys} if keys.count(key) > 1)
        return dict(pairs)

    for folder in ("envs", "tests/adapters/golden"):
        for path in (ROOT / folder).rglob("*.json"):
            json.loads(path.read_text(), object_pairs_hook=partial(note, path))
    assert not twice


def test_every_third_party_import_is_a_declared_requirement() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [
        *project["dependencies"],
        *(
            line
            for extra in extras
            if extra not in ("test", "dev", "peers")
            for line in extras[extra]
        ),
    ]
    declared = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in lines}
    imported: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add((node.module or "").split(".")[0])
    distributions = packages_distributions()
    undeclared = {
        name
        for name in imported - sys.stdlib_module_names - {"rlbench_suite"}
        if not declared
        & {
            distribution.lower().replace("_", "-")
            for distribution in distributions.get(name, [name])
        }
    }
    assert not undeclared


# -- laws of the cards -----------------------------------------------------------------------------


def test_every_family_has_cards_of_its_own() -> None:
    assert {card.family for card in registry.cards().values()} >= {*registry.families()}


def test_every_family_folder_is_registered() -> None:
    folders = {path.parent.name for path in (ROOT / "envs").glob("*/__init__.py")}
    assert folders == {*registry.families(), "shared"}


def test_cards_are_complete() -> None:
    rules: dict[str, Callable[[TaskCard], object]] = {
        "id": lambda card: re.fullmatch(r"rlsuite/[A-Z][A-Za-z0-9]*-v\d+", card.id),
        "summary": lambda card: (
            card.summary.strip() == card.summary != "" and "\n" not in card.summary
        ),
        "source": lambda card: card.source.strip(),
        "horizon": lambda card: card.horizon > 0,
        "tags": lambda card: card.tags,
        "weights": lambda card: len(card.weights) == len(card.objectives),
        "hypervolume_reference": lambda card: (
            len(card.hypervolume_reference) in (0, len(card.objectives))
        ),
    }
    cards = registry.cards().values()
    assert not [
        f"{card.id}: {field}" for card in cards for field, keeps in rules.items() if not keeps(card)
    ]


def test_cards_name_a_task_and_a_player() -> None:
    for card in registry.cards().values():
        if card.installed:
            kind: Any = load(card.entry_point)
            task_type = kind if isinstance(kind, type) else get_type_hints(kind)["return"]
            task_type = get_origin(task_type) or task_type
            assert issubclass(task_type, HostTask if card.host else Task), card.id
            for entry_point in (card.reference, *card.yardsticks.values()):
                player = load(entry_point)
                assert all(
                    callable(getattr(player, name)) for name in ("for_task", "initial", "act")
                ), card.id


def test_yardsticks_are_measured_and_lie_between_random_play_and_the_reference() -> None:
    for card in registry.cards().values():
        for tier in card.difficulties if card.yardsticks else ():
            scores = card.scores(tier)
            for name in card.yardsticks:
                assert scores["random"].low <= scores[name].high, (card.id, tier)
                assert scores[name].mean < scores["reference"].mean, (card.id, tier)


def test_the_reference_succeeds_in_four_of_five_episodes_or_the_card_says_why() -> None:
    """Read what ``rlsuite dev calibrate`` measured, at every difficulty.

    A reason that is not needed is left out.
    """
    for card in registry.cards().values():
        measured = [card.scores(tier).get("reference") for tier in card.difficulties or (None,)]
        rates = [
            reference.success
            for reference in measured
            if reference and reference.success is not None
        ]
        assert bool(card.hard_for_reference) == any(rate < 0.8 for rate in rates), (card.id, rates)


@pytest.mark.parametrize("name", registry.AGENTS)
def test_agent_is_there_by_its_name(name: str) -> None:
    assert registry.agent(name).name == name

"""The laws of the house that a machine can check, over the source and over every card."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from rlbench_suite import registry
from rlbench_suite.card import TaskCard, load
from rlbench_suite.host import HostTask
from rlbench_suite.task import Task

ROOT = Path(__file__).parents[1]
PACKAGE = ("rlbench_suite", "envs", "datasets", "baselines", "leaderboard")
SOURCES = sorted(path for folder in PACKAGE for path in (ROOT / folder).rglob("*.py"))
PYTHON = [*SOURCES, *sorted(path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))]

TEXTS = [
    path for pattern in ("*.md", "*.txt", "*.toml", "*.py", ".ci/*", "docs/**/*.md") for path in ROOT.glob(pattern)
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
"""JAX calls made of LAPACK: batched and jitted they deadlock a small CPU. On the host, NumPy's and SciPy's are free."""

TRACES = re.compile(r"jax\.(jit|vmap|named_call|tree_util\.register\w*|custom_jvp|custom_vjp|checkpoint)")
"""Calls into JAX that only wrap a function and start no backend."""


def relative(path: Path) -> str:
    """Where a file lies in the repository; the name of its test case."""
    return path.relative_to(ROOT).as_posix()


def imported_names(tree: ast.AST) -> dict[str, str]:
    """Local name to the dotted name it stands for, from every import of a file."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.asname: a.name for a in node.names if a.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of an attribute chain, the empty string for anything else."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def uses(source: str) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of every name and attribute chain a file reads, aliases resolved."""
    tree = ast.parse(source)
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            first, _, rest = dotted(node).partition(".")
            if first:
                yield node.lineno, ".".join(filter(None, (names.get(first, first), rest)))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def runs_at_import(node: ast.AST) -> Iterator[ast.Call]:
    """Calls made when a file is imported: everything but function bodies (defaults and decorators included)."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        now = [*node.args.defaults, *filter(None, node.args.kw_defaults), *getattr(node, "decorator_list", [])]
    else:
        now = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        yield node
    for child in now:
        yield from runs_at_import(child)


def jax_at_import(source: str) -> list[tuple[int, str]]:
    """Calls into JAX that a file makes on import."""
    tree = ast.parse(source)
    names = imported_names(tree)
    found = []
    for call in runs_at_import(tree):
        first, _, rest = dotted(call.func).partition(".")
        name = ".".join(filter(None, (names.get(first, first), rest)))
        if name.startswith("jax.") and not TRACES.fullmatch(name):
            found.append((call.lineno, name))
    return found


def tensors_only(source: str) -> set[tuple[int, str]]:
    """Uses of ``torch.load`` that read tensors and nothing else."""
    tree = ast.parse(source)
    return {
        (node.lineno, "torch.load")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and dotted(node.func) == "torch.load"
        and any(
            k.arg == "weights_only" and isinstance(k.value, ast.Constant) and k.value.value is True
            for k in node.keywords
        )
    }


def forbidden(source: str, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """Uses of names that match the whole pattern."""
    found = [(line, name) for line, name in uses(source) if pattern.fullmatch(name) and not HARMLESS.fullmatch(name)]
    return [use for use in found if use not in tensors_only(source)]


every_source = pytest.mark.parametrize("path", SOURCES, ids=relative)


# -- the checks themselves can fail ------------------------------------------------------------------------------


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
    assert forbidden(source, pattern)


def test_tensors_alone_may_be_read() -> None:
    assert not forbidden("import torch\ntorch.load('policy.pt', weights_only=True)", CODE_FROM_DATA)


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
    assert not jax_at_import("import jax, jax.numpy as j\n@jax.jit\ndef f(x):\n    return j.sin(x)\ng = jax.vmap(f)")


# -- laws of the source ------------------------------------------------------------------------------------------


@every_source
def test_nothing_untrusted_is_executed(path: Path) -> None:
    text = path.read_text()
    assert not forbidden(text, CODE_FROM_DATA)
    assert not re.search(r"allow_pickle\s*=\s*True", text)


@every_source
def test_no_batched_lapack(path: Path) -> None:
    assert not forbidden(path.read_text(), LAPACK)


@every_source
def test_import_starts_no_jax(path: Path) -> None:
    assert not jax_at_import(path.read_text())


@every_source
def test_float64_is_a_context_not_a_flag(path: Path) -> None:
    flag = r"config\.update\(\s*[\"']jax_enable_x64|config\.jax_enable_x64\s*=|JAX_ENABLE_X64"
    assert not re.search(flag, path.read_text())


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_a_file_fits_in_a_head(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= 600
    assert not set(path.stem.split("_")) & {"util", "utils", "helper", "helpers", "manager", "managers", "misc"}


@pytest.mark.parametrize("path", [*PYTHON, *TEXTS], ids=relative)
def test_nothing_of_one_machine(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"(?<![\w./])/(home|root|Users|work|opt)/\w", text)
    assert not re.search(r"--(extra-)?index-url[= ]\S+|--find-link[s]|/simpl[e]/", text)


def test_every_third_party_import_is_a_declared_requirement() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [
        *project["dependencies"],
        *(line for extra in extras if extra not in ("test", "dev", "peers") for line in extras[extra]),
    ]
    declared = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in lines}
    imported = {
        name.split(".")[0]
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    distributions = packages_distributions()
    undeclared = {
        name
        for name in imported - sys.stdlib_module_names - {"rlbench_suite"}
        if not declared & {found.lower().replace("_", "-") for found in distributions.get(name, [name])}
    }
    assert not undeclared


# -- laws of the cards -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", registry.families())
def test_every_family_has_cards_of_its_own(family: str) -> None:
    assert [card for card in registry.cards().values() if card.family == family]


def test_every_family_folder_is_registered() -> None:
    folders = {path.parent.name for path in (ROOT / "envs").glob("*/__init__.py")}
    assert folders == set(registry.families())


@pytest.mark.every_id
def test_card_is_complete(card: TaskCard) -> None:
    assert re.fullmatch(r"rlsuite/[A-Z][A-Za-z0-9]*-v\d+", card.id)
    assert card.summary.strip() == card.summary != ""
    assert "\n" not in card.summary
    assert card.source.strip()
    assert card.horizon > 0
    assert card.tags
    assert len(card.weights) == len(card.objectives)
    assert len(card.hypervolume_reference) in (0, len(card.objectives))


@pytest.mark.every_id
def test_card_names_a_task_and_a_player(card: TaskCard) -> None:
    assert issubclass(load(card.entry_point), HostTask if card.host else Task)
    player = load(card.reference)
    assert callable(player.for_task)
    assert callable(player.initial)
    assert callable(player.act)


@pytest.mark.parametrize("name", registry.AGENTS)
def test_agent_is_there_by_its_name(name: str) -> None:
    assert registry.agent(name).name == name

"""Strict models of ``submission.json``, and the columns of an archive's traces (see SCHEMA.md)."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from gymnasium import spaces
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
)

from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.runs.computer import Computer

FORMAT = "rlbench-suite submission 2"
MANIFEST = "submission.json"

MAX_JSON = 4 * 2**20
MAX_TASKS = 1000
MAX_SEEDS = 100
MAX_NAMES = 1000
"""Largest number of names in one JSON object. Hyperparameters may have half of it."""
_MAX_DEPTH = 4
_MAX_VALUES = 500


class Rejected(ValueError):
    """The schema does not allow the archive. The message is one sentence that says why."""


def _printable(text: str) -> str:
    if not all(line.isprintable() for line in text.split("\n")):
        raise ValueError("has characters that cannot be printed")
    return text


def _written_time(value: Any) -> Any:
    """Refuse seconds since 1970, which Pydantic would accept as a time."""
    written = isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[T ]", value, re.ASCII)
    if not written and not isinstance(value, datetime):
        raise ValueError("must be a date and time with a time zone, such as 2026-01-31T12:00:00Z")
    return value


def _plain_url(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc:
        raise ValueError("must be an http or https address")
    if not re.fullmatch(r"[!#-;=?-\[\]_a-z~]+", text):
        raise ValueError("has characters that an address may not have")
    return text


def _plain_values(values: dict[str, Any]) -> dict[str, Any]:
    """Check that hyperparameters are plain and small.

    They may be numbers, booleans, short strings, null, and small lists and mappings of them.
    """
    count = 0

    def check(value: Any, depth: int) -> None:
        nonlocal count
        count += 1
        if depth > _MAX_DEPTH or count > _MAX_VALUES:
            raise ValueError(f"may hold {_MAX_VALUES} values nested {_MAX_DEPTH} deep at most")
        if isinstance(value, dict):
            for name, inner in value.items():
                check(name, depth + 1)
                check(inner, depth + 1)
        elif isinstance(value, list):
            for inner in value:
                check(inner, depth + 1)
        elif isinstance(value, str):
            if len(value) > 200 or not value.isprintable():
                raise ValueError("may hold printable strings of 200 characters at most")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError("must be finite")
        elif isinstance(value, int):
            if abs(value) >= 2**64:
                raise ValueError("may hold integers of 64 bits at most")
        elif value is not None:
            raise ValueError(f"may not hold a {type(value).__name__}")

    check(values, 0)
    return values


Label = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,38}[A-Za-z0-9])?$")
]
"""A name that is safe as a file name and in an address."""
Line = Annotated[
    str,
    StringConstraints(min_length=1, max_length=120, pattern=r"^[^\n]*$"),
    AfterValidator(_printable),
]
Text = Annotated[str, StringConstraints(max_length=2000), AfterValidator(_printable)]
Url = Annotated[str, StringConstraints(max_length=300), AfterValidator(_plain_url)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Hyperparameters = Annotated[dict[str, Any], AfterValidator(_plain_values)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Duration = Annotated[float, Field(ge=0, le=1e9)]
"""Seconds, thirty years at most, so that sums stay finite."""
Rate = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    """Base of models that accept exactly their fields, of exactly their types.

    They refuse NaN and infinity.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Entry(Strict):
    """Entry and its authors. It is shown on the pages and cannot be checked."""

    name: Label
    version: Annotated[int, Field(ge=1, le=10**6)] = 1
    agent: Label
    authors: Annotated[tuple[Line, ...], Field(max_length=50)] = ()
    links: Annotated[tuple[Url, ...], Field(max_length=10)] = ()
    description: Text = ""

    @property
    def title(self) -> str:
        """Name and version, such as ``name-v1``. It is also the name of the archive."""
        return f"{self.name}-v{self.version}"

    def may_become(self, later: Entry) -> bool:
        """Return True if ``later`` names at least this entry's authors, as a version must.

        An entry without authors has no later version, because anybody could make one.
        """
        return bool(self.authors) and {*self.authors} <= {*later.authors}


class Origin(Strict):
    """Computer that played, as far as bits depend on it. It has no path, user or host name."""

    python: Line
    packages: Annotated[dict[Label, Line], Field(max_length=20)]
    platform: Line
    cpu: Line
    cores: Annotated[int, Field(ge=1, le=2**20)]
    instruction_set: Line
    xla_flags: Annotated[str, StringConstraints(max_length=1000)] = ""
    revision: Line | None = None

    @classmethod
    def of(cls, machine: Computer) -> Origin:
        """Return the part of a machine's description that goes into an archive."""
        return cls(
            python=machine.python,
            packages=machine.packages,
            platform=machine.platform[:120],
            cpu=machine.cpu[:120] or "unknown",
            cores=machine.cores,
            instruction_set=machine.instruction_set,
            xla_flags=machine.settings.get("XLA_FLAGS", "")[:1000],
            revision=machine.git_revision,
        )

    @property
    def simulators(self) -> tuple[str | None, ...]:
        """Versions of the simulators of the host.

        Machines must share them to get equal bits on tasks of the host.
        """
        return self.packages.get("mujoco"), self.packages.get("pybullet")

    @property
    def bits(self) -> tuple[str | None, ...]:
        """Settings that two machines must share to get equal bits from equal actions."""
        return self.instruction_set, self.packages.get("jaxlib"), self.xla_flags


class CellClaim(Strict):
    """Claims for one training seed on one task: evaluation means and the cost of training.

    Means are taken over the seed's evaluation episodes.
    """

    seed: Annotated[int, Field(ge=0, lt=2**31)]
    episodes: Annotated[int, Field(ge=1, le=2**20)]
    mean_return: float
    score: float
    success_rate: Rate
    mean_length: Annotated[float, Field(ge=1)]
    mean_cost: float
    actions: Sha256
    """Fingerprint of the actions of all episodes (:func:`.pack.fingerprint`)."""
    training_steps: Count
    train_seconds: Duration
    compile_seconds: Duration
    device: Line


class TaskClaim(Strict):
    """Claims for one task: the scores of its normalisation, the hyperparameters, and the cells."""

    task: Annotated[str, StringConstraints(max_length=100)]
    zero: float
    reference: float
    score: float
    """Mean over seeds."""
    hyperparameters: Hyperparameters
    privileged: bool
    """True if the policy reads the state or params of the task, which agents do not see.

    It cannot be checked.
    """
    cells: Annotated[tuple[CellClaim, ...], Field(min_length=1, max_length=MAX_SEEDS), FailFast()]


class Submission(Strict):
    """Contents of ``submission.json``."""

    format: Literal["rlbench-suite submission 2"]
    version: Annotated[
        str, StringConstraints(pattern=r"^[0-9]{1,6}(\.[0-9]{1,6}){1,3}[A-Za-z0-9.+]{0,20}$")
    ]
    """Version of the package that made the run."""
    protocol: Count
    budget: Annotated[str, StringConstraints(max_length=20)]
    created: Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_written_time)]
    """Time at which the run ended."""
    entry: Entry
    machines: Annotated[tuple[Origin, ...], Field(min_length=1, max_length=20), FailFast()]
    tasks: Annotated[tuple[TaskClaim, ...], Field(min_length=1, max_length=MAX_TASKS), FailFast()]
    iqm: float
    mean: float

    @property
    def day(self) -> str:
        """Day on which the run ended."""
        return f"{self.created:%Y-%m-%d}"

    @classmethod
    def parse(cls, text: bytes) -> Submission:
        """Read and check the file.

        Raises:
            Rejected: the schema does not allow it. The message names the first faults.
        """
        try:
            json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
            return cls.model_validate_json(text)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_context=False, include_input=False)[:3]
            faults = [
                f"{'.'.join(map(str, e['loc']))[:200] or 'the file'}: {_short(e['msg'])}"
                for e in errors
            ]
            more = f"; and {error.error_count() - 3} more" if error.error_count() > 3 else ""
            raise Rejected(
                f"{MANIFEST} is not what {FORMAT!r} allows ({'; '.join(faults)}{more})."
            ) from None
        except RecursionError:
            raise Rejected(f"{MANIFEST} is nested too deeply.") from None
        except ValueError as error:  # not UTF-8, not JSON, or a name twice
            raise Rejected(
                f"{MANIFEST} is not JSON of this format ({_short(str(error))})."
            ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_NAMES:
        raise ValueError(f"one object has {len(pairs):,} names; at most {MAX_NAMES:,} are allowed")
    table: dict[str, Any] = {}
    for name, value in pairs:
        if name in table:
            raise ValueError(f"the name {name[:40]!r} occurs twice in one object")
        table[name] = value
    return table


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _short(text: str) -> str:
    return text.replace("\n", " ")[:200]


def plain_sentence(text: str) -> str:
    """Return foreign text as one line of at most 600 characters that a terminal can print."""
    plain = "".join(c if c.isprintable() else "?" for c in text[:600].replace("\n", " "))
    return plain if len(text) <= 600 else f"{plain[:596]} ..."


# -- traces ----------------------------------------------------------------------------------------


def actions_member(name: str) -> str:
    """Return the name of the member with a task's actions; ``name`` is :attr:`TaskCard.name`."""
    return f"actions/{name}.parquet"


def episodes_member(name: str) -> str:
    """Return the name of the member with the claims for a task's episodes."""
    return f"episodes/{name}.parquet"


def actions_schema(task: Task[Any, Any]) -> pa.Schema:
    """Return the columns of the actions, one for each number of an action.

    The array of an action is flattened in C order.
    """
    kind = pa.from_numpy_dtype(trace_dtype(task))
    count = int(np.prod(task.action_space.shape or (), dtype=int))
    return pa.schema([pa.field(f"action_{i}", kind, nullable=False) for i in range(count)])


def episodes_schema(task: Task[Any, Any]) -> pa.Schema:
    """Return the columns of the episodes, with one return for each objective or agent."""
    returns = int(np.prod(task.reward_space.shape, dtype=int))
    columns = [
        ("episode_seed", pa.int64()), ("length", pa.int32()), ("success", pa.bool_()),
        ("terminated", pa.bool_()), ("cost", pa.float64()),
        *((f"return_{i}", pa.float64()) for i in range(returns)),
    ]  # fmt: skip
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


def trace_dtype(task: Task[Any, Any]) -> np.dtype[Any]:
    """Return the type of stored actions: 32-bit integers, or the floats of the action space."""
    space = task.action_space
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return np.dtype(space.dtype)
    return np.dtype(np.int32)


def action_bounds(task: Task[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest value of each number of an action, flattened.

    Raises:
        TypeError: a trace cannot hold this kind of space.
    """
    space = task.action_space
    if isinstance(space, spaces.Box):
        return space.low.ravel(), space.high.ravel()
    if isinstance(space, spaces.Discrete):
        return np.array([space.start]), np.array([space.start + space.n - 1])
    if isinstance(space, spaces.MultiDiscrete):
        return space.start.ravel(), (space.start + space.nvec - 1).ravel()
    raise TypeError(f"{task.card.id} has the action space {space}, which no trace can hold.")

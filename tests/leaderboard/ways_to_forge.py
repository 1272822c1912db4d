"""Ways to forge an archive, each with words of the sentence that rejects it."""

import io
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from forgery import DRIFT, Forgery

from rlbench_suite.core import registry
from rlbench_suite.evaluation.protocol import evaluation_seeds

Forge = Callable[[Forgery], None]
FORGERIES: dict[str, tuple[Forge, str]] = {}


def forgery(name: str, words: str) -> Callable[[Forge], Forge]:
    def keep(forge: Forge) -> Forge:
        FORGERIES[name] = forge, words
        return forge

    return keep


def simple(name: str, words: str, forge: Callable[[Forgery], Any]) -> None:
    FORGERIES[name] = forge, words


EPISODE = "rlsuite/ToyWalk-v0, seed 0, episode 3"
first = evaluation_seeds(replace(registry.card("SAT-v0"), id="rlsuite/ToyWalk-v0"), 0, "smoke")[0]


@forgery(
    "better return",
    "rlsuite/ToyWalk-v0, seed 0, episode 2: the return is claimed to be 6.0 and is ",
)
def _(f: Forgery) -> None:
    groups = f.groups("episodes")
    assert groups[0]["return_0"][2] < 6
    f.change("episodes", "return_0", 2, 6.0)
    f.settle()


@forgery(
    "return off by the last bit",
    "rlsuite/ToyDrift-v0, seed 1, episode 7: the return 0 is claimed to be ",
)
def _(f: Forgery) -> None:
    value = f.groups("episodes", DRIFT)[1]["return_0"][7]
    f.change("episodes", "return_0", 7, np.nextafter(value, 0), DRIFT, seed=1)


@forgery(
    "second objective",
    "rlsuite/ToyDrift-v0, seed 0, episode 0: the return 1 is claimed to be 0.0 and is ",
)
def _(f: Forgery) -> None:
    f.change("episodes", "return_1", 0, 0.0, DRIFT)
    f.settle()


@forgery("changed action", "rlsuite/ToyDrift-v0, seed 0, episode 0: the return 0 is claimed to be ")
def _(f: Forgery) -> None:
    value = f.groups("actions", DRIFT)[0]["action_0"][0]
    f.change("actions", "action_0", 0, -0.5 if value > 0 else 0.5, DRIFT)


@forgery("swapped episodes", "rlsuite/ToyDrift-v0, seed 0, episode 1: the return 0 is claimed")
def _(f: Forgery) -> None:
    groups = f.groups("actions", DRIFT)  # every episode of this task has 20 steps
    column = groups[0]["action_0"]
    column[:40] = np.roll(column[:40], 20)
    f.put("actions", groups, DRIFT)


@forgery("swapped seeds", "rlsuite/ToyDrift-v0, seed 1, episode 0: the return 0 is claimed")
def _(f: Forgery) -> None:
    f.put("actions", f.groups("actions", DRIFT)[::-1], DRIFT)


@forgery(
    "other seeds",
    f"{EPISODE}: it was played on environment seed {first + 777}; the protocol's is {first + 3}",
)
def _(f: Forgery) -> None:
    f.change("episodes", "episode_seed", 3, first + 777)


@forgery(
    "training seeds",
    (
        "ToyWalk-v0, seed 0, episode 0: it was played on environment seed 0; the protocol's is "
        f"{first}"
    ),
)
def _(f: Forgery) -> None:
    groups = f.groups("episodes")
    groups[0]["episode_seed"][:] = np.arange(50)
    f.put("episodes", groups)


@forgery(
    "good seed played twice",
    f"episode 3: it was played on environment seed {first}; the protocol's is {first + 3}",
)
def _(f: Forgery) -> None:
    f.change("episodes", "episode_seed", 3, first)


@forgery(
    "bad episodes dropped", "episodes/ToyWalk-v0.parquet has 49 rows in row group 0; 50 are allowed"
)
def _(f: Forgery) -> None:
    groups = f.groups("episodes")
    groups[0] = {name: values[:-1] for name, values in groups[0].items()}
    f.put("episodes", groups)


@forgery("extra episodes", "episodes/ToyWalk-v0.parquet has 51 rows in row group 0; 50 are allowed")
def _(f: Forgery) -> None:
    groups = f.groups("episodes")
    groups[0] = {name: np.append(values, values[-1:]) for name, values in groups[0].items()}
    f.put("episodes", groups)


@forgery("success flipped", f"{EPISODE}: success is claimed to be ")
def _(f: Forgery) -> None:
    f.change("episodes", "success", 3, not f.groups("episodes")[0]["success"][3])
    f.settle()


@forgery("termination flipped", f"{EPISODE}: terminated is claimed to be ")
def _(f: Forgery) -> None:
    f.change("episodes", "terminated", 3, not f.groups("episodes")[0]["terminated"][3])


@forgery(
    "cost left out", "rlsuite/ToyDrift-v0, seed 0, episode 0: the cost is claimed to be 0.0 and is "
)
def _(f: Forgery) -> None:
    groups = f.groups("episodes", DRIFT)
    assert groups[0]["cost"][0] > 0
    groups[0]["cost"][:] = 0
    f.put("episodes", groups, DRIFT)
    f.settle()


def lengthen(f: Forgery, episode: int, by: int) -> None:
    """Give an episode more steps, or fewer, with actions to match."""
    episodes, actions = f.groups("episodes"), f.groups("actions")
    lengths, column = episodes[0]["length"], actions[0]["action_0"]
    end = int(np.cumsum(lengths)[episode])
    actions[0]["action_0"] = (
        np.insert(column, end, [2] * by) if by > 0 else np.delete(column, np.arange(end + by, end))
    )
    lengths[episode] += by
    f.put("episodes", episodes)
    f.put("actions", actions)
    f.settle()


def short_episode(f: Forgery) -> int:
    return int(np.flatnonzero(f.groups("episodes")[0]["length"] < 11)[0])


@forgery("actions hidden after the end", ", and it is over after")
def _(f: Forgery) -> None:
    lengthen(f, short_episode(f), 1)


@forgery("stopped early", "and it is not over after them.")
def _(f: Forgery) -> None:
    lengthen(f, short_episode(f), -1)


simple("longer than the horizon", f"{EPISODE}: 13 steps are claimed; 1 to 12 are possible",
       lambda f: f.change("episodes", "length", 3, 13))  # fmt: skip
simple(
    "no steps", f"{EPISODE}: 0 steps are claimed; 1", lambda f: f.change("episodes", "length", 3, 0)
)
simple(
    "negative steps",
    f"{EPISODE}: -5 steps are claimed; 1",
    lambda f: f.change("episodes", "length", 3, -5),
)


@forgery("actions left out", "steps are claimed in all, and there are ")
def _(f: Forgery) -> None:
    groups = f.groups("actions")
    groups[1]["action_0"] = groups[1]["action_0"][:-1]
    f.put("actions", groups)


for label, value in {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "1.5": 1.5}.items():
    simple(
        f"continuous action {label}",
        f"the action at step 4 is {label}; the action space is -1 to 1",
        lambda f, value=value: f.change("actions", "action_0", 24, value, DRIFT),
    )
for choice in (3, -1):
    simple(
        f"discrete action {choice}",
        f"the action at step 1 is {choice}; the action space is 0 to 2",
        lambda f, choice=choice: f.change("actions", "action_0", 1, choice),
    )
simple(
    "NaN return",
    "is claimed to be nan and is",
    lambda f: f.change("episodes", "return_0", 3, math.nan),
)


@forgery(
    "every action NaN",
    "ToyDrift-v0, seed 1: 997 more numbers of actions are outside the action space.",
)
def _(f: Forgery) -> None:
    f.put(
        "actions",
        [
            {name: np.full_like(v, math.nan) for name, v in g.items()}
            for g in f.groups("actions", DRIFT)
        ],
        DRIFT,
    )


@forgery(
    "every return NaN", "rlsuite/ToyDrift-v0, seed 0: there are 47 more faults of the same kind."
)
def _(f: Forgery) -> None:
    groups = f.groups("episodes", DRIFT)
    for group in groups:
        group["return_0"][:] = math.nan
    f.put("episodes", groups, DRIFT)


# -- declarations ----------------------------------------------------------------------------------


def claim(name: str, words: str, change: Callable[[dict[str, Any]], Any]) -> None:
    FORGERIES[name] = (lambda f: change(f.claims), words)


claim(
    "format",
    "format: Input should be 'rlbench-suite submission 2'",
    lambda c: c.update(format="rlbench-suite 2"),
)
claim("newer version", "9.9.9, which is newer than this judge", lambda c: c.update(version="9.9.9"))
claim("no version", "version: String should match", lambda c: c.update(version="latest"))
claim("protocol", "follows evaluation protocol 7", lambda c: c.update(protocol=7))
claim("unknown budget", "The budget is 'huge'; known: smoke", lambda c: c.update(budget="huge"))
claim(
    "other budget",
    "seed 0: 50 episodes are claimed; the quick budget has 100",
    lambda c: c.update(budget="quick"),
)
claim("IQM", "The IQM is claimed to be 2.0 and is ", lambda c: c.update(iqm=2.0))
claim("mean", "The mean is claimed to be 2.0 and is ", lambda c: c.update(mean=2.0))
claim(
    "unknown field", "verified: Extra inputs are not permitted", lambda c: c.update(verified=True)
)
claim("field missing", "machines: Field required", lambda c: c.pop("machines"))
claim(
    "name with HTML",
    "entry.name: String should match",
    lambda c: c["entry"].update(name="<script>alert(1)</script>"),
)
claim(
    "name with a path",
    "entry.name: String should match",
    lambda c: c["entry"].update(name="../../index"),
)
claim("huge text", "at most 2000 characters", lambda c: c["entry"].update(description="x" * 2001))
claim("huge author", "at most 120 characters", lambda c: c["entry"].update(authors=["x" * 10_000]))
claim(
    "control characters", "cannot be printed", lambda c: c["entry"].update(authors=["Eve\x1b[2J"])
)
claim("text turned round", "cannot be printed", lambda c: c["entry"].update(description="a\u202eb"))
claim(
    "script address",
    "must be an http or https address",
    lambda c: c["entry"].update(links=["javascript:alert(1)"]),
)
claim(
    "address that breaks out",
    "characters that an address",
    lambda c: c["entry"].update(links=['https://a.b/"x=']),
)
claim(
    "address in disguise",
    "must be an http or https",
    lambda c: c["entry"].update(links=["https://good.org@evil.org"]),
)
claim(
    "time without a zone",
    "created: Input should have timezone",
    lambda c: c.update(created="2026-01-31T12:00:00"),
)
claim(
    "run of the future",
    "The run is claimed to have ended on 2999-12-31, which lies in the future",
    lambda c: c.update(created="2999-12-31T12:00:00Z"),
)
for since in ("1700000000", 1700000000, 1.7e9):
    claim(
        f"seconds since 1970 {since!r}",
        "created: Value error, must be",
        lambda c, s=since: c.update(created=s),
    )
claim(
    "infinite machine",
    "cores: Input should be less",
    lambda c: c["machines"][0].update(cores=10**12),
)


def task_claim(name: str, words: str, change: Callable[[dict[str, Any]], Any]) -> None:
    FORGERIES[name] = (lambda f: change(f.task()), words)


task_claim(
    "unknown task", "'rlsuite/Easy-v0' is not a task", lambda t: t.update(task="rlsuite/Easy-v0")
)
task_claim(
    "task id that is a path",
    "is not a task of this version",
    lambda t: t.update(task="rlsuite/../../etc/x"),
)
task_claim(
    "lower yardstick",
    "normalised by a reference score of 1; it is 5.986",
    lambda t: t.update(reference=1.0),
)
task_claim(
    "task score",
    "rlsuite/ToyWalk-v0: the score is claimed to be 3.0",
    lambda t: t.update(score=3.0),
)
task_claim(
    "hyperparameters a list",
    "hyperparameters: Input should be",
    lambda t: t.update(hyperparameters=[1]),
)
task_claim(
    "hyperparameters too deep",
    "nested 4 deep",
    lambda t: t.update(hyperparameters={"a": {"b": {"c": {"d": [[1]]}}}}),
)
task_claim(
    "hyperparameters too many",
    "500 values",
    lambda t: t.update(hyperparameters={"a": list(range(501))}),
)
task_claim(
    "hyperparameter too long",
    "200 characters",
    lambda t: t.update(hyperparameters={"a": "x" * 201}),
)
task_claim(
    "duplicated cell",
    "seed 0: the cell is claimed 2 times",
    lambda t: t["cells"].append(t["cells"][0]),
)
task_claim("picked seeds", "they must be 0, 1, 2 and so on", lambda t: t["cells"][1].update(seed=5))
task_claim("seeds in another order", "the order must be increasing", lambda t: t["cells"].reverse())
task_claim("fewer seeds on one task", "all tasks need the same number", lambda t: t["cells"].pop())
task_claim("too many seeds", "at most 100 items", lambda t: t.update(cells=t["cells"] * 51))
task_claim("no cells", "at least 1 item", lambda t: t.update(cells=[]))


def cell_claim(name: str, words: str, **change: Any) -> None:
    FORGERIES[name] = (
        lambda f: f.cell().update(change),
        f"rlsuite/ToyWalk-v0, seed 0: {words}" if words[0] == "t" else words,
    )


cell_claim("cell score", "the score is claimed to be 1.5", score=1.5)
cell_claim("cell return", "the mean return is claimed to be 6.0", mean_return=6.0)
cell_claim("cell success", "the success rate is claimed to be 1.0", success_rate=1.0)
cell_claim("cell length", "the mean length is claimed to be 6.0", mean_length=6.0)
cell_claim("cell cost", "the mean cost is claimed to be -1.0", mean_cost=-1.0)
cell_claim(
    "digest of other actions", "the SHA-256 of the actions is not the claimed one", actions="0" * 64
)
cell_claim("seed a string", "seed: Input should be a valid integer", seed="0")
cell_claim(
    "endless training", "seconds: Input should be less than or equal to 1", train_seconds=1.7e308
)
cell_claim(
    "rate above one", "success_rate: Input should be less than or equal to 1", success_rate=1.01
)


@forgery("task twice", "rlsuite/ToyWalk-v0 is claimed 2 times")
def _(f: Forgery) -> None:
    f.claims["tasks"].append(f.task())


# -- tables ----------------------------------------------------------------------------------------


def table(
    f: Forgery, kind: str = "episodes", schema: pa.Schema | None = None, **options: Any
) -> bytes:
    """Write the table of the first task in another way."""
    groups = f.groups(kind)
    names = list(groups[0])
    fields = [
        pa.field(name, pa.from_numpy_dtype(groups[0][name].dtype), nullable=False) for name in names
    ]
    settings = {"compression": "none", "use_dictionary": False, "store_schema": False} | options
    file = io.BytesIO()
    with pq.ParquetWriter(file, schema or pa.schema(fields), **settings) as writer:
        for group in groups:
            columns = [pa.array(v) for v in group.values()]
            writer.write_table(
                pa.table(columns, pa.schema(fields)).cast(schema or pa.schema(fields))
            )
    return file.getvalue()


def put_table(name: str, words: str, make: Callable[[Forgery], bytes]) -> None:
    def forge(f: Forgery) -> None:
        f.members[f.member("episodes")] = make(f)

    FORGERIES[name] = forge, words


def as_schema(f: Forgery, **kinds: pa.DataType) -> pa.Schema:
    group = f.groups("episodes")[0]
    return pa.schema(
        [
            pa.field(n, kinds.get(n, pa.from_numpy_dtype(v.dtype)), nullable=False)
            for n, v in group.items()
        ]
    )


put_table(
    "returns of another type",
    "has other columns than",
    lambda f: table(f, schema=as_schema(f, return_0=pa.float32())),
)
put_table(
    "converted integers",
    "nested, optional or converted",
    lambda f: table(f, schema=as_schema(f, episode_seed=pa.uint64())),
)
put_table(
    "compressed inside", "columns that are compressed", lambda f: table(f, compression="zstd")
)
put_table("metadata inside", "has metadata; none is allowed", lambda f: table(f, store_schema=True))
put_table(
    "optional columns",
    "nested, optional or converted",
    lambda f: table(f, schema=pa.schema([field.with_nullable(True) for field in as_schema(f)])),
)
put_table("another table", "has other columns than", lambda f: f.members[f.member("actions")])
put_table("no parquet", "cannot be read as Parquet", lambda _: b"PAR1" + b"\0" * 100 + b"PAR1")
put_table(
    "a pickle in its place",
    "cannot be read as Parquet",
    lambda _: b"\x80\x04\x95\x0b\0\0\0\0\0\0\0\x8c",
)
put_table(
    "a cut table", "cannot be read as Parquet", lambda f: f.members[f.member("episodes")][:-50]
)
put_table("a huge table", "at most", lambda _: b"\0" * 10_000_000)


@forgery("one row group", "has 1 row groups; by its claims it has one for each of 2")
def _(f: Forgery) -> None:
    first, second = f.groups("episodes")
    f.put("episodes", [{name: np.append(first[name], second[name]) for name in first}])


@forgery("column of another name", "has other columns than")
def _(f: Forgery) -> None:
    f.put(
        "episodes",
        [{name.replace("cost", "code"): v for name, v in g.items()} for g in f.groups("episodes")],
    )


@forgery(
    "discrete actions as floats", "actions/ToyWalk-v0.parquet has other columns than action_0 INT32"
)
def _(f: Forgery) -> None:
    f.put("actions", [{"action_0": g["action_0"].astype(np.float64)} for g in f.groups("actions")])


@forgery("bytes of the table damaged", "")
def _(f: Forgery) -> None:
    name = f.member("actions")
    data = bytearray(f.members[name])
    data[40:60] = b"\xff" * 20
    f.members[name] = bytes(data)


# -- members ---------------------------------------------------------------------------------------

simple(
    "a pickle",
    "'policy.pkl' that belongs to no claim",
    lambda f: f.members.update({"policy.pkl": b"\x80\x04."}),
)
simple(
    "a C controller",
    "'c.so' that belongs to no claim",
    lambda f: f.members.update({"c.so": b"\x7fELF"}),
)
simple(
    "code",
    "'agent.py' that belongs to no claim",
    lambda f: f.members.update({"agent.py": b"import os"}),
)
simple(
    "path traversal",
    "is not a path inside it",
    lambda f: f.members.update({"../../outside.txt": b"x"}),
)
simple(
    "absolute path",
    "is not a path inside it",
    lambda f: f.members.update({"/tmp/outside.txt": b"x"}),
)
simple(
    "path of Windows",
    "is not a path inside it",
    lambda f: f.members.update({"C:\\outside.txt": b"x"}),
)
simple(
    "trace missing",
    "The member actions/ToyWalk-v0.parquet is missing",
    lambda f: f.members.pop(f.member("actions")),
)

"""Play the saved policies of a run under other conditions.

These are other settings or constants of the task, or slower decisions.

A sweep trains nothing. Each policy of a run plays the evaluation episodes of its own seed once for
every value. Scores use the anchors of the run, so 0 and 1 mean the same at every value. The player
``reference`` is that of each value.

An agent of which cells failed on the task has no curve until they are done, and its other cells are
not played: a mean over these would reward it for failing. An episode whose return is not finite
counts as the floor, as in a run.

A sweep of a constant asks how wrong a data sheet may be. The plant has another constant than the
task says. Scales, limits, goals and the design of the reference stay as the run had them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from gymnasium import spaces

from rlbench_suite.adapters.parallel import agent_spaces
from rlbench_suite.contexts.context import times
from rlbench_suite.core.agent import Agent, HostPolicy
from rlbench_suite.core.policy import Policy, View, is_privileged
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task import Split, Task
from rlbench_suite.core.task_card import TaskCard, load
from rlbench_suite.evaluation.cell import Cell, CellSpec
from rlbench_suite.evaluation.protocol import (
    evaluate,
    evaluation_seeds,
    finite_results,
    training_task,
)
from rlbench_suite.evaluation.report import chart
from rlbench_suite.evaluation.report.page import render
from rlbench_suite.evaluation.runs.players import find_player
from rlbench_suite.evaluation.runs.run import Run
from rlbench_suite.evaluation.statistics.aggregates import Estimate, frequency_averaged_score, mean
from rlbench_suite.foundation.atomic_files import replacing, writing
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.numerics.process import precision

INTERVAL = "decision interval"
"""Name of the quantity that :func:`sweep_frequency` varies.

It is the number of steps for which a policy holds each action.
"""
TIMES = "times"
"""Beginning of the parameter that :func:`sweep_constant` varies: ``times inertia``."""
FOLDER = "sweeps"
_MAX_VALUE_CHARACTERS = 48
"""Characters up to which the name of a sweep's files lists its values."""
SCHEMA = pa.schema([
    ("agent", pa.string()), ("task", pa.string()), ("seed", pa.int64()), ("parameter", pa.string()),
    ("value", pa.string()), ("episodes", pa.int64()), ("return", pa.float64()),
    ("score", pa.float64()), ("success_rate", pa.float64()), ("mean_cost", pa.float64()),
    ("floored", pa.int64()),
])  # fmt: skip
"""Columns of a sweep's table: means over the episodes of a seed at a value.

``floored`` counts episodes whose return is not finite: they count as the worse of random play and
doing nothing.
"""


@dataclass(frozen=True)
class Sweep:
    """Scores of the policies of a run at each value of a parameter."""

    run: Path
    card: TaskCard
    parameter: str
    values: tuple[str, ...]
    rows: list[dict[str, Any]]
    """Rows of the table; see :data:`SCHEMA`."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Failed cells on the task by agent. Such an agent is not played."""

    def notes(self) -> list[str]:
        """Return sentences on agents without a curve and on episodes that count as the floor."""
        sentences = [
            f"{agent} has no curve: {number} of its cells on {self.card.name} failed, and a mean "
            "over the others would "
            "reward it for failing. The command that made the run tries them again."
            for agent, number in self.failed.items()
        ]
        floored: Counter[tuple[str, str]] = Counter()
        for row in self.rows:
            floored[row["agent"], row["value"]] += row["floored"]
        if counts := "; ".join(
            f"{agent} at {value}: {number}" for (agent, value), number in floored.items() if number
        ):
            sentences.append(
                "Episodes whose return is not finite count as the worse of random play and doing "
                f"nothing: {counts}."
            )
        return sentences

    @property
    def name(self) -> str:
        """Name of the files, without a suffix. Sweeps of other values have other names."""
        values = ",".join(self.values)
        if len(values) > _MAX_VALUE_CHARACTERS or set(values) & set("/\\:"):
            values = f"{len(self.values)}_values_{hashlib.sha256(values.encode()).hexdigest()[:12]}"
        return f"{self.card.file_name}-{self.parameter.replace(' ', '_')}-{values}"

    def scores(self) -> dict[str, np.ndarray]:
        """Return the scores of each agent, shape ``(seeds, values)``."""
        agents = dict.fromkeys(row["agent"] for row in self.rows)
        flat = {
            agent: [row["score"] for row in self.rows if row["agent"] == agent] for agent in agents
        }
        return {agent: np.reshape(scores, (-1, len(self.values))) for agent, scores in flat.items()}

    def curves(self) -> dict[str, list[Estimate]]:
        """Return the mean score of each agent at each value, with its 95 % interval over seeds."""
        task = self.card.id
        return {
            agent: [mean({task: column}) for column in table.T]
            for agent, table in self.scores().items()
        }

    def violations(self) -> dict[str, list[bool]]:
        """Return whether each agent violates the constraint at each value, on the mean of seeds."""
        costs: dict[str, dict[str, list[float]]] = {}
        for row in self.rows:
            agent_costs = costs.setdefault(row["agent"], {value: [] for value in self.values})
            agent_costs[row["value"]].append(row["mean_cost"])
        return {
            agent: [self.card.violates(float(np.mean(agent_costs[value]))) for value in self.values]
            for agent, agent_costs in costs.items()
        }

    def frequency_averaged(self) -> dict[str, Estimate]:
        """Return the Frequency-Averaged Score of each agent with its 95 % interval over seeds."""
        intervals = [float(value) for value in self.values]
        task = self.card.id
        return {
            agent: mean({task: frequency_averaged_score(intervals, table)})
            for agent, table in self.scores().items()
        }


def sweep_setting(path: Path, task_id: str | None, parameter: str, values: Sequence[str]) -> Sweep:
    """Play the policies of a run at each value of a setting of a task, or at each difficulty.

    ``agents`` is such a setting where the number of agents may vary: each agent then plays the same
    policy among fewer or more of its kind.

    Raises:
        ValueError: the run does not have the task, the task takes no such setting or value, or its
            spaces change.
    """
    if len(set(values)) < len(values) or not values:
        raise ValueError(
            "The values of a sweep are different and at least one; given: "
            f"{', '.join(values) or 'none'}."
        )
    run, task = _open(path, task_id)
    card = task.card
    parameters = [
        *card.settings,
        *(["difficulty"] if card.difficulties else []),
        *(["agents"] if card.agent_range else []),
    ]
    if parameter not in parameters:
        if constants := [constant.name for constant in task.constants()]:
            if parameter in constants:
                raise ValueError(
                    f"{parameter} of {card.id} is a constant: sweep it by multiples, "
                    "LOW:HIGH:NUMBER."
                )
            parameters += constants
        raise ValueError(
            unknown(f"parameter of {card.id}", parameter, parameters)
            if parameters
            else f"{card.id} has none."
        )
    tasks = {value: find_card(card.id, **{parameter: value}).build() for value in values}
    for changed_task in tasks.values():
        refuse_other_spaces(task, changed_task)
    return _sweep(
        run, task, parameter, {value: (changed_task, 1) for value, changed_task in tasks.items()}
    )


def sweep_constant(path: Path, task_id: str | None, name: str, factors: Sequence[float]) -> Sweep:
    """Play the policies of a run on plants whose constant is a multiple of the task's own.

    What an episode draws is that of the other plant. What is built into the task stays. If the
    constant cannot be drawn, or no draw depends on it, the task of the other constant is played as
    a whole.

    Raises:
        ValueError: the run does not have the task, or the task has no such constant, or not with
            this multiple.
    """
    run, task = _open(path, task_id)
    card = task.card
    constants = {constant.name: constant for constant in task.constants()}
    if name not in constants:
        raise ValueError(
            unknown(f"constant of {card.id}", name, constants)
            if constants
            else f"{card.id} takes no context."
        )
    conditions: dict[str, tuple[Task[Any, Any], int]] = {}
    for factor in factors:
        changed_task = find_card(
            _without_context(card.id), context=times(card.context, constants[name], factor)
        ).build()
        if constants[name].may_vary and (with_draws := _with_draws_of(task, changed_task)):
            changed_task = with_draws
        else:
            refuse_other_spaces(task, changed_task)
        conditions[f"{factor:.6g}"] = changed_task, 1
    return _sweep(run, task, f"{TIMES} {name}", conditions)


def _without_context(task_id: str) -> str:
    name, _, query = task_id.partition("?")
    settings = "&".join(pair for pair in query.split("&") if not pair.startswith("context="))
    return f"{name}?{settings}" if settings else name


def _with_draws_of(task: Task[Any, Any], changed_task: Task[Any, Any]) -> Task[Any, Any] | None:
    """Return the task with the contexts that another one draws; None if both draw the same."""
    with precision(task):
        key, split = jax.random.key(0), jnp.int32(Split.TEST)
        params = task.sample_params(key, split)
        changed_params = changed_task.sample_params(key, split)
    if jax.tree.structure(params) != jax.tree.structure(changed_params):  # type: ignore[operator]
        return None
    if all(map(np.array_equal, jax.tree.leaves(params), jax.tree.leaves(changed_params))):
        return None
    # Card.build would give the task itself, which others use.
    changed: Task[Any, Any] = load(task.card.entry_point)(
        task.card, difficulty=task.difficulty, dtype=task.dtype.name
    )
    changed.sample_params = changed_task.sample_params  # type: ignore[method-assign]
    return changed


def refuse_other_spaces(task: Task[Any, Any], changed_task: Task[Any, Any]) -> None:
    """Refuse a task that a policy for ``task`` cannot play.

    Where the numbers of agents differ, spaces are those of one agent.

    Raises:
        ValueError: its action space differs, or the shapes of its observations.
    """
    cannot = f"A policy for {task.card.id} cannot play {changed_task.card.id}"
    observations, actions = _spaces_of_a_policy(task, changed_task)
    changed_observations, changed_actions = _spaces_of_a_policy(changed_task, task)
    if changed_actions != actions:
        raise ValueError(f"{cannot}: its action space is another.")
    if _shapes(changed_observations) != _shapes(observations):
        raise ValueError(f"{cannot}: its observations have other shapes.")


def _spaces_of_a_policy(task: Task[Any, Any], compared_task: Task[Any, Any]) -> tuple[Any, Any]:
    """Return observation and action space: of one agent where two tasks have other numbers."""
    agents = task.card.agents
    if agents == compared_task.card.agents:
        return task.observation_space, task.action_space
    return (
        agent_spaces(task.observation_space, agents)[0],
        agent_spaces(task.action_space, agents)[0],
    )


def _shapes(space: Any) -> Any:
    """Return the shapes and dtypes of a space.

    Its bounds may differ: noise widens them, and no policy reads them.
    """
    if isinstance(space, spaces.Dict):
        return {name: _shapes(subspace) for name, subspace in space.items()}
    return space.shape, space.dtype


def sweep_frequency(path: Path, task_id: str | None, intervals: Sequence[int]) -> Sweep:
    """Play the policies of a run so that they decide every a steps, for each interval a.

    They hold the action between decisions.

    Raises:
        ValueError: the run does not have the task, or the intervals are not at least two increasing
            positive numbers.
    """
    frequency_averaged_score(intervals, np.zeros(len(intervals)))  # checks the intervals
    run, task = _open(path, task_id)
    return _sweep(run, task, INTERVAL, {str(interval): (task, interval) for interval in intervals})


def _open(path: Path, task_id: str | None) -> tuple[Run, Task[Any, Any]]:
    """Return a run and one of its tasks; without an id, its only one.

    Raises:
        ValueError: it is no run, or has no finished cell of the task, or several tasks and none is
            named.
    """
    run = Run.read(path)
    references = run.manifest.references
    if task_id is None:
        if len(references) > 1:
            raise ValueError(
                f"The run in {path} has several tasks: name one by --task. {', '.join(references)}."
            )
        (task_id,) = references
    card = find_card(task_id)
    if card.id not in references:
        raise ValueError(unknown(f"task of the run in {path}", task_id, references))
    return run, card.build()


def _sweep(
    run: Run,
    task: Task[Any, Any],
    parameter: str,
    conditions: Mapping[str, tuple[Task[Any, Any], int]],
) -> Sweep:
    """Play each policy under each condition.

    A condition is a task and the number of steps for which an action is held.
    """
    scale, floor = run.manifest.scale(task.card.id), run.manifest.floor(task.card.id)
    failed = Counter(cell.agent for cell in run.failures() if cell.task == task.card.id)
    rows = []
    for cell, policy_for in _policies(run, task, failed):
        seeds = evaluation_seeds(task.card, cell.seed, run.manifest.budget)
        for value, (changed_task, interval) in conditions.items():
            policy = policy_for(changed_task)
            record = evaluate(
                changed_task,
                policy if interval == 1 else _hold(policy, interval, changed_task),
                seeds,
            )
            _, returns, costs, diverged = finite_results(record, changed_task, floor)
            row = cell._asdict() | {"parameter": parameter, "value": value, "episodes": len(seeds)}
            row |= {
                "return": returns.mean(),
                "score": scale.score(returns).mean(),
                "floored": int(diverged.sum()),
            }
            rows.append(
                row | {"success_rate": record.info["success"].mean(), "mean_cost": costs.mean()}
            )
    if not rows:
        reason = f" Cells of {', '.join(failed)} failed: finish them first." if failed else ""
        raise ValueError(
            f"The run in {run.path} has no finished cell on {task.card.id} with a policy to "
            f"play.{reason}"
        )
    return Sweep(run.path, task.card, parameter, tuple(conditions), rows, failed)


def _policies(
    run: Run, task: Task[Any, Any], omitted: Collection[str]
) -> Iterator[tuple[Cell, Callable[[Task[Any, Any]], Any]]]:
    """Yield the finished cells of a task, each with a function that opens its policy.

    The function takes a task of equal spaces.

    Agents in ``omitted`` have none.

    A learned policy is the same for all of them, but for the number of agents that it plays. A
    player of the family is made for each task, because it may read the state. Language models have
    no policy.
    """
    for cell in run.manifest.cells():
        if (
            cell.task != task.card.id
            or not run.manifest.has_policies(cell.agent)
            or cell.agent in omitted
        ):
            continue
        if run.result(cell) is None:
            continue
        agent = find_player(cell.agent, run)
        spec = run.manifest.spec(cell)
        if not agent.learns and not run.checkpoint(cell.agent):
            yield cell, partial(_scripted_policy, agent, spec)
            continue
        trained = training_task(task)
        load: Any = getattr(agent, "load", None)
        if agent.learns and load is None:
            raise ValueError(f"The agent {cell.agent!r} reads no saved policies: it has no load.")
        file = str(run.cell_path(cell) / "policy.safetensors")
        if agent.learns:
            yield cell, partial(_load_policy, partial(load, file, budget=spec.budget), trained)
        else:
            yield cell, partial(_keep_policy, _scripted_policy(agent, spec, trained))


def _scripted_policy(agent: Agent, spec: CellSpec, task: Task[Any, Any]) -> Any:
    """Return the policy of an agent that trains on nothing."""
    *_, policy = agent.train(
        task, seed=spec.seed, budget=spec.budget, hyperparameters=spec.hyperparameters
    )
    return policy


def _load_policy(load: Callable[[Task[Any, Any]], Any], trained: Task[Any, Any], task: Any) -> Any:
    """Return a learned policy for the number of agents of a task."""
    return load(trained if task.card.agents == trained.card.agents else task)


def _keep_policy(policy: Any, task: Task[Any, Any]) -> Any:
    return policy


# -- held actions ----------------------------------------------------------------------------------


def _hold(policy: Policy | HostPolicy, interval: int, task: Task[Any, Any]) -> Policy | HostPolicy:
    if isinstance(policy, Policy):
        action = np.zeros(
            task.action_space.shape or (), jax.dtypes.canonicalize_dtype(task.action_space.dtype)
        )
        return _HeldAction(policy, np.int32(interval), action)
    return _HeldOnHost(policy, interval)


class _HeldAction(NamedTuple):
    """Policy that decides every ``interval`` steps and repeats its action between.

    Its memory waits, too.
    """

    policy: Any
    interval: Any
    action: Any
    """Array of the shape and dtype of an action."""

    @property
    def privileged(self) -> bool:
        """True if the policy that decides is privileged."""
        return is_privileged(self.policy)

    def initial(self, params: Any) -> Any:
        return self.policy.initial(params), jnp.asarray(self.action), jnp.int32(0)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        inner, held_action, t = memory
        decided, after = self.policy.act(inner, view, key)
        decides = t % self.interval == 0
        action = jnp.where(decides, jnp.asarray(decided, held_action.dtype), held_action)
        inner = jax.tree.map(lambda new, old: jnp.where(decides, new, old), after, inner)
        return action, (inner, action, t + 1)


class _HeldOnHost:
    """The same for a policy of the host."""

    def __init__(self, policy: HostPolicy, interval: int) -> None:
        self.policy, self.interval = policy, interval
        self.reset()

    def reset(self) -> None:
        self.t, self.action = 0, np.zeros(0)
        if reset := getattr(self.policy, "reset", None):
            reset()

    def act(self, observations: Any, action_masks: np.ndarray | None) -> np.ndarray:
        if self.t % self.interval == 0:
            self.action = np.asarray(self.policy.act(observations, action_masks))
        self.t += 1
        return self.action


# -- files -----------------------------------------------------------------------------------------


def write(sweep: Sweep) -> Path:
    """Write the table as Parquet and the curve as a page, and return the page's path.

    Both lie in the folder ``sweeps`` of the run.

    Raises:
        CannotWrite: the system refused.
    """
    path = sweep.run / FOLDER / f"{sweep.name}.html"
    table = pa.Table.from_pylist(sweep.rows, SCHEMA)
    with writing(path.parent), replacing(path.with_suffix(".parquet")) as unfinished:
        pq.write_table(table, unfinished, compression="zstd", write_page_checksum=True)
    curves = sweep.curves()
    text = render(
        "rlbench_suite.evaluation.analysis",
        "sweep.html",
        title=f"{sweep.card.name}: {sweep.parameter}",
        curve=chart.lines(
            sweep.card.name,
            list(_lines(sweep, curves)),
            x_label=_axis(sweep),
            y_label="score",
            width=1064,
        ),
        parameter=sweep.parameter,
        values=sweep.values,
        curves=curves,
        averaged=sweep.frequency_averaged() if sweep.parameter == INTERVAL else {},
        notes=sweep.notes(),
    )
    with writing(path), replacing(path) as unfinished:
        unfinished.write_text(text)
    return path


def _lines(sweep: Sweep, curves: Mapping[str, Sequence[Estimate]]) -> Iterator[chart.Line]:
    x = np.array(_numbers(sweep.values) or range(len(sweep.values)), float)
    order = np.argsort(x)
    for colour, (agent, points) in enumerate(curves.items()):
        y, low, high = (
            np.array([getattr(point, end) for point in points])[order]
            for end in ("point", "low", "high")
        )
        banded = np.isfinite(low).all()
        yield chart.Line(
            agent,
            x[order],
            y,
            colour % chart.COLOURS,
            low if banded else None,
            high if banded else None,
        )


def _axis(sweep: Sweep) -> str:
    if _numbers(sweep.values):
        return sweep.parameter
    return f"{sweep.parameter}: " + ", ".join(
        f"{i} {value}" for i, value in enumerate(sweep.values)
    )


def _numbers(values: Sequence[str]) -> list[float] | None:
    try:
        return [float(value) for value in values]
    except ValueError:
        return None

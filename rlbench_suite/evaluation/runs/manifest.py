"""Plain data of a run: its cells, its manifest and the results of its cells. No JAX is imported."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    StrictInt,
    ValidationError,
    field_validator,
)

import rlbench_suite
from rlbench_suite.core.registry import constraint
from rlbench_suite.core.scale import ZERO_PLAYERS, Scale, Score
from rlbench_suite.evaluation.cell import Cell, CellSpec
from rlbench_suite.evaluation.runs.computer import Computer

VERSION = 2
"""Version of the protocol.

It changes whenever results change for another reason than a task's or agent's version.
"""

FAILED_SUFFIX = ".failed"
"""End of the name of the record of a failed cell, beside the folder that its result would have."""

MAX_NUMBER = 1e100
"""Largest magnitude of a result, whose square is still finite."""


def _check_number(value: float) -> float:
    if not abs(value) <= MAX_NUMBER:  # NaN, too
        raise ValueError(f"not a number up to {MAX_NUMBER:g}")
    return value


Number = Annotated[float, Field(strict=True), AfterValidator(_check_number)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sitting(_Strict):
    """One launch of the program on a run. A resumed run has several."""

    arguments: list[str]
    machine: Computer
    started: datetime
    finished: datetime | None = None
    wall_seconds: float | None = None
    energy_joules: float | None = None
    """Energy of the processors, if the machine reports it."""


class SavedFile(_Strict):
    """Saved policy of a run: its agent and its file's hash."""

    agent: str
    sha256: str


class ServedModel(_Strict):
    """Language model of a run: its name and the address of its server when it was last asked."""

    model: str
    base_url: str


class Manifest(_Strict):
    """Contents of ``manifest.json``: what was run, and with which settings."""

    format: Literal["rlbench-suite run 1"] = "rlbench-suite run 1"
    version: str
    protocol: StrictInt
    budget: str
    seeds: StrictInt
    references: dict[str, dict[str, Score]]
    """Scores for normalising returns, by task id and player."""
    hyperparameters: dict[str, dict[str, dict[str, Any]]]
    """Hyperparameters by agent and task id."""
    not_applicable: dict[str, dict[str, str]]
    """Reasons why an agent cannot play a task, by agent and task id."""
    checkpoints: dict[str, SavedFile] = {}
    """Agents of the run that are saved policies and were not trained in it."""
    models: dict[str, ServedModel] = {}
    """Agents of the run that are language models and were not trained in it."""
    suites: dict[str, str] = {}
    """SHA-256 of every suite file of the run, by the name of the suite."""
    on_train: tuple[str, ...] = ()
    """Ids of the tasks on which agents are evaluated on training contexts, too."""
    sittings: list[Sitting] = []

    @field_validator("version", "references", "hyperparameters", "sittings")
    @classmethod
    def _check_printable(cls, value: Any) -> Any:
        """Refuse names that would steer a terminal, because a run may come from strangers."""
        for name in _names(value):
            if not name.isprintable():
                raise ValueError(f"the name {name!r} has characters that cannot be printed")
        return value

    @field_validator("references")
    @classmethod
    def _check_scores(cls, references: dict[str, dict[str, Score]]) -> dict[str, dict[str, Score]]:
        for task, scores in references.items():
            for player, score in scores.items():
                if not abs(score.mean) <= MAX_NUMBER:  # NaN, too
                    raise ValueError(
                        f"the mean of {player} on {task} is {score.mean}, not a number up to 1e100"
                    )
        return references

    @field_validator("hyperparameters")
    @classmethod
    def _check_ids(cls, hyperparameters: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for tasks in hyperparameters.values():
            for task in tasks:
                if "/" not in task:
                    raise ValueError(f"{task!r} is not the id of a task")
        return hyperparameters

    @classmethod
    def now(cls, **settings: Any) -> Manifest:
        """Return a manifest with this version of the package and the protocol."""
        plain = json.loads(json.dumps(settings))  # as it will be read back: tuples become lists
        return cls(version=rlbench_suite.__version__, protocol=VERSION, **plain)

    def settings(self) -> dict[str, Any]:
        """Return all settings that must be equal for cells to be comparable, by name."""
        settings: dict[str, Any] = {
            name: getattr(self, name) for name in ("version", "protocol", "budget")
        }
        settings |= {f"the suite file of {name}": digest for name, digest in self.suites.items()}
        for task, scores in self.references.items():
            settings[f"the evaluation of {task} on training contexts"] = task in self.on_train
            settings |= {
                f"the {player} score of {task}": score.mean for player, score in scores.items()
            }
        for agent, tasks in self.hyperparameters.items():
            for task, values in tasks.items():
                settings[f"the hyperparameters of {agent} on {task}"] = sorted(values)
                settings |= {f"{agent}'s {name} on {task}": value for name, value in values.items()}
        return settings

    def scale(self, task: str) -> Scale:
        """Return the scale of the scores of a task."""
        scale = Scale.of(self.references[task])
        assert scale is not None  # plans have measured tasks only
        return scale

    def floor(self, task: str) -> float:
        """Return the worse return of random play and doing nothing.

        Diverged episodes count as it.
        """
        return min(
            score.mean for player, score in self.references[task].items() if player in ZERO_PLAYERS
        )

    def cells(self) -> Iterator[Cell]:
        """Yield every cell of the run."""
        for agent, tasks in self.hyperparameters.items():
            for task in tasks:
                for seed in range(self.seeds):
                    yield Cell(agent, task, seed)

    def has_policies(self, agent: str) -> bool:
        """Return whether the cells of an agent hold policies.

        Language models answer in words, and have none.
        """
        return agent not in self.models

    def spec(self, cell: Cell) -> CellSpec:
        """Return a cell of the run with its settings."""
        hyperparameters = self.hyperparameters[cell.agent][cell.task]
        return CellSpec(*cell, self.budget, hyperparameters, on_train=cell.task in self.on_train)


def _names(value: Any) -> Iterator[str]:
    """Yield the texts of a part of a manifest that commands print."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for sitting in value:
            yield from sitting.arguments
            yield from sitting.machine.packages
            yield from sitting.machine.packages.values()
            yield sitting.machine.git_revision or ""
    else:
        for name, tasks in value.items():
            yield name
            yield from tasks


class CellResult(BaseModel):
    """Results of one cell: means over its evaluation episodes, and the cost of training.

    Fields of later versions of the package are kept, so that queries show them.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    agent: str
    task: str
    seed: int
    episodes: StrictInt
    floored: int = 0
    """Episodes whose return is not finite.

    They count as the worse of random play and doing nothing.
    """
    mean_return: Number
    score: Number
    """Normalised score: 0 is the best play without skill, 1 the reference."""
    success_rate: Number
    mean_length: float
    mean_cost: Number
    mean_returns: list[float]
    """Mean returns by objective or agent; one number otherwise."""
    training_steps: StrictInt
    step_unit: Literal["environment", "gradient"] = "environment"
    """Kind of the training steps. Agents that learn from a dataset make gradient steps."""
    train_seconds: float
    """Time of training without compilation."""
    compile_seconds: float
    evaluate_seconds: float
    wall_seconds: Number
    device: str
    """JAX's default device, on which agents of JAX train. Their episodes are played on the CPU."""
    train_return: FiniteFloat | None = None
    """Mean return on training contexts, if the cell was evaluated on them."""
    train_score: FiniteFloat | None = None
    """Normalised score on training contexts, by the same anchors as ``score``."""
    worst_tenth: FiniteFloat | None = None
    """Mean normalised score of the worst tenth of the episodes.

    None in runs of versions that did not compute it.
    """
    of_set: bool = False
    """True if the policy is a set of policies, whose front the cell has too."""
    privileged: bool = False
    """True if the policy is declared to read the task's state or params.

    Agents do not see these.
    """

    @property
    def cell(self) -> Cell:
        """Cell of these results."""
        return Cell(self.agent, self.task, self.seed)

    @property
    def steps_per_second(self) -> float | None:
        """Training speed without compilation; None for players that do not train."""
        return self.training_steps / self.train_seconds if self.train_seconds else None

    @property
    def constrained_score(self) -> float:
        """Normalised score as the constraint counts it.

        See :meth:`~rlbench_suite.core.task_card.Constraint.constrained`.
        """
        limit = constraint(self.task)
        return limit.constrained_score(self.score, self.mean_cost) if limit else self.score


def first_fault(error: ValidationError) -> str:
    """Return what is wrong with a file: the entry, its value, and what is allowed."""
    fault = error.errors()[0]
    entry = ".".join(map(str, fault["loc"]))
    message = fault["msg"].removeprefix("Value error, ")
    if not entry:
        return message
    if fault["type"] == "missing":
        return f"it has no {entry!r}"
    return f"its {entry!r} is {reprlib.repr(fault['input'])}: {message}"

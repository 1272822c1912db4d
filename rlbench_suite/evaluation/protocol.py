"""Define the evaluation protocol: seeds, numbers of episodes, and how a cell runs.

A cell is (agent, task, seed). The agent trains on the task's train split with the cell's seed. If
the card names another task to train on (another simulator of the same problem), it trains there. It
is evaluated on episodes of the task's test split, from environment seeds that no training run uses.
Each task and each seed has its own block of evaluation episodes, so that runs are independent and
an interval over seeds includes the variance of evaluation as well as that of training. If tasks
shared the blocks, those that sample the same contexts would share their luck too, and intervals
over several tasks would be too narrow. The blocks are the same for every agent, so that agents
compare on the same episodes.

A policy that plays for any weights of the objectives is also evaluated for a lattice of weights. If
it is one of finitely many, all of these are evaluated. The cell keeps the front of mean returns.

Cells of the suite ``generalisation`` are also evaluated on the train split, with the same
environment seeds. Those episodes have contexts of the kind on which the agent trained.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.tree_util import Partial

from rlbench_suite.adapters.batch import TaskVectorEnv
from rlbench_suite.adapters.rollout import Record, play, play_each, replay
from rlbench_suite.core.agent import Agent, HostPolicy, Progress
from rlbench_suite.core.episode import average_agents, scalar_return
from rlbench_suite.core.policy import FinitePolicySet, Policy, PolicySet, restrict_view
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.cell import CellSpec
from rlbench_suite.evaluation.statistics.fronts import weight_lattice
from rlbench_suite.foundation.unknown_names import unknown

EPISODES = {"smoke": 50, "quick": 100, "full": 200}
"""Evaluation episodes of a cell by budget.

The training steps of a budget are a hyperparameter of the agent.
"""

FRONT_WEIGHTS = 32
"""Approximate number of weights for which a set of policies is evaluated."""
FRONT_EPISODES = 20
"""Episodes for each of them, of the first evaluation seeds of the cell."""

TRAINING_SEEDS = 2**31
"""Upper bound of training seeds. The seeds of environments in training are below 2**32."""

_EVALUATION_BLOCK = 2**16
"""Environment seeds of the evaluation of one training seed on one task."""
_EVALUATION = range(2**62, 2**63 - TRAINING_SEEDS * _EVALUATION_BLOCK)
"""First evaluation seeds that tasks may have.

Their blocks end below 2**63, so that tables store them as int64.
"""
_CALIBRATION = 2**63


class Front(NamedTuple):
    """Mean returns of a set of policies for weights of k objectives, and the best possible ones."""

    weights: np.ndarray
    """``(n, k)``; without a row for the members of a finite set."""
    returns: np.ndarray
    """Undiscounted returns, which no weight multiplies, ``(n, k)``."""
    exact: np.ndarray
    """The task's exact Pareto front, ``(p, k)``; without a row if it is not known."""


class Outcome(NamedTuple):
    """Result of running a cell."""

    seeds: Sequence[int]
    """Environment seed of each evaluation episode.

    An agent that plays itself may play an episode several times.
    """
    record: Record
    curve: list[Progress]
    policy: Policy | HostPolicy | None
    """The trained policy; None for an agent that plays itself."""
    train_seconds: float
    """Wall time of training, compilation included."""
    evaluate_seconds: float
    train_record: Record | None = None
    """Episodes of the same seeds on the train split, if they were asked for."""
    front: Front | None = None
    """Returns for other weights; None unless the agent gave a set of policies."""


def resolve_cell(agent: Agent, task: Task[Any, Any], seed: int, budget: str) -> CellSpec:
    """Return a cell with the hyperparameters that the agent has for the task now.

    Raises:
        ValueError: the budget or a hyperparameter does not exist, or a value is out of range.
    """
    hyperparameters = agent.hyperparameters(training_task(task), budget)
    return CellSpec(agent.name, task.card.id, seed, budget, hyperparameters)


def evaluation_seeds(card: TaskCard, seed: int, budget: str) -> range:
    """Return the environment seeds of the evaluation of a training seed.

    A larger budget adds seeds to a smaller one.

    Args:
        card: the task. Every id has its own seeds, and so has every difficulty and setting. A task
            that is trained on another one has the seeds of that one, so that a transfer compares
            the same episodes.
        seed: training seed.
        budget: ``smoke``, ``quick`` or ``full``.

    Raises:
        ValueError: the seed is out of range, or there is no such budget.
    """
    if budget not in EPISODES:
        raise ValueError(unknown("budget", budget, EPISODES))
    if not 0 <= seed < TRAINING_SEEDS:
        raise ValueError(f"A training seed is an integer in [0, 2**31), got {seed}.")
    first = _first_seed(card.trained_on or card.id) + seed * _EVALUATION_BLOCK
    return range(first, first + EPISODES[budget])


def calibration_seeds(episodes: int) -> range:
    """Return the environment seeds for measuring reference scores.

    No cell trains or is evaluated on them.

    All tasks share them. Tasks that sample the same contexts thus share some of the errors of their
    anchors, which are a hundredth of the errors of most cells.
    """
    return range(_CALIBRATION, _CALIBRATION + episodes)


def _first_seed(task_id: str) -> int:
    """Return the first evaluation seed of a task.

    The hash of its id without the version chooses it.

    There are 2**46 blocks, so names of a thousand tasks meet with a probability below one in a
    million.
    """
    name = re.sub(r"-v\d+", "", task_id, count=1)
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest())
    blocks = (_EVALUATION.stop - _EVALUATION.start) // _EVALUATION_BLOCK
    return _EVALUATION.start + digest % blocks * _EVALUATION_BLOCK


def training_task(task: Task[Any, Any]) -> Task[Any, Any]:
    """Return the task to train on for an evaluation on ``task``.

    It is the task itself, or the one that its card names, in the same context.

    Raises:
        ValueError: there is no such task, or its observation or action space differs.
    """
    if not task.card.trained_on:
        return task
    card = find_card(task.card.trained_on)
    trained = (card.with_context(task.card.context) if task.card.context else card).build(
        dtype=task.dtype.name
    )
    for name in ("observation_space", "action_space"):
        space, trained_space = getattr(task, name), getattr(trained, name)
        if space != trained_space:
            what = name.replace("_", " ")
            raise ValueError(
                f"{task.card.id} has the {what} {space}, and {trained.card.id} to train on has "
                f"{trained_space}."
            )
    return trained


def run_cell(agent: Agent, task: Task[Any, Any], spec: CellSpec) -> Iterator[Progress | Outcome]:
    """Train and evaluate. Yield ``Progress`` during training, and the outcome last.

    Args:
        agent: the agent that the cell names.
        task: the task that the cell names, on which the policy is evaluated.
        spec: the cell and its settings.

    Raises:
        ValueError: as :func:`evaluation_seeds` and :func:`training_task`; or the agent gave no
            policy.
    """
    seeds = evaluation_seeds(task.card, spec.seed, spec.budget)
    training = agent.train(
        training_task(task),
        seed=spec.seed,
        budget=spec.budget,
        hyperparameters=spec.hyperparameters,
    )
    policy: Policy | HostPolicy | None = None
    curve: list[Progress] = []
    started = time.perf_counter()
    for event in training:
        if isinstance(event, Progress):
            steps, total_steps, *numbers = event
            curve.append(Progress(int(steps), int(total_steps), *map(float, numbers)))
            yield curve[-1]
        else:
            policy = event
    if policy is None:
        raise ValueError(f"{agent.name} ended its training without giving a policy.")
    trained = time.perf_counter()
    record = evaluate(task, policy, seeds)
    train_record = evaluate(task, policy, seeds, split="train") if spec.on_train else None
    front = evaluate_front(task, policy, seeds[:FRONT_EPISODES])
    evaluated = time.perf_counter()
    yield Outcome(
        seeds,
        record,
        curve,
        policy,
        trained - started,
        evaluated - trained,
        train_record,
        front,
    )


def evaluate(
    task: Task[Any, Any], policy: Policy | HostPolicy, seeds: range, *, split: str = "test"
) -> Record:
    """Play the first episode of each seed on a split and return the record.

    A policy that is not declared privileged does not see state and params.

    A policy outside JAX chooses its actions on the batched environment. They are then replayed, so
    that every record comes from one program. Simulators outside JAX record while they play.
    """
    if not isinstance(policy, Policy) and (reset := getattr(policy, "reset", None)):
        reset()
    if isinstance(policy, Policy):
        return play(task, restrict_view(policy), seeds, split=split)
    if task.card.host:
        return play(task, policy, seeds, split=split)
    return replay(task, _choose_on_host(task, policy, seeds, split), seeds, split=split)


def evaluate_front(task: Task[Any, Any], policy: Policy | HostPolicy, seeds: range) -> Front | None:
    """Return the front of a set of policies on the test split.

    It is None for a single policy, and where there is one objective.
    """
    if not task.card.objectives or not isinstance(policy, PolicySet):
        return None
    lattice = weight_lattice(len(task.card.objectives), FRONT_WEIGHTS)
    if isinstance(policy, FinitePolicySet):
        choose, choices = Partial(_by_member, policy), np.asarray(policy.members)
    else:
        choose, choices = Partial(_by_weights, policy), lattice.astype(task.dtype)
    record = play_each(task, choose, choices, seeds)
    totals = average_agents(task, record.total).astype(np.float64)
    returns = totals.reshape(len(choices), len(seeds), -1).mean(1)
    exact_front = getattr(task, "pareto_front", None)
    exact = np.zeros((0, returns.shape[1])) if exact_front is None else exact_front(1.0)
    weights = lattice[:0] if isinstance(policy, FinitePolicySet) else lattice
    return Front(weights, returns, exact)


def _by_weights(policies: PolicySet, weights: Any) -> Policy:
    policy: Policy = restrict_view(policies.for_weights(weights))
    return policy


def _by_member(policies: FinitePolicySet, member: Any) -> Policy:
    policy: Policy = restrict_view(policies.for_member(member))
    return policy


class FiniteResults(NamedTuple):
    """Numbers of episodes in which every number is finite."""

    totals: np.ndarray
    """Sum of rewards, shape ``(n_episodes, ...)`` with an entry for each objective or agent."""
    returns: np.ndarray
    """Scalar return, shape ``(n_episodes,)``."""
    costs: np.ndarray
    """Constraint cost, shape ``(n_episodes,)``."""
    diverged: np.ndarray
    """True for episodes whose return is not finite, shape ``(n_episodes,)``.

    Their return is the floor.
    """


def finite_results(record: Record, task: Task[Any, Any], floor: float) -> FiniteResults:
    """Return the results of episodes.

    A return that is not finite is the floor, and such a cost exceeds the limit.

    Args:
        record: the episodes.
        task: the task that they were played on.
        floor: return of the worse of random play and doing nothing.
    """
    totals = record.total.astype(np.float64)
    returns = np.asarray(scalar_return(task, totals)).copy()
    diverged = ~(np.isfinite(returns) & np.isfinite(totals.reshape(len(totals), -1)).all(axis=1))
    returns[diverged] = totals[diverged] = floor
    costs = record.cost.astype(np.float64)
    # Keeps no limit.
    costs[~np.isfinite(costs)] = 2 * task.card.constraint.limit if task.card.constraint else 0.0
    return FiniteResults(totals, returns, costs, diverged)


def _choose_on_host(
    task: Task[Any, Any], policy: HostPolicy, seeds: range, split: str
) -> np.ndarray:
    """Return the actions of the first episode of each seed, ``(n, horizon, *action shape)``.

    They are zero after the episode's end.
    """
    env = TaskVectorEnv(
        task.card.id, len(seeds), split=split, difficulty=task.difficulty, dtype=task.dtype.name
    )
    space = env.single_action_space
    horizon = task.card.horizon
    actions = np.zeros((len(seeds), horizon, *(space.shape or ())), space.dtype)
    observations, infos = env.reset(seed=list(seeds))
    over = np.zeros(len(seeds), bool)
    for t in range(horizon):
        chosen_actions = np.asarray(policy.act(observations, infos.get("action_mask")))
        actions[~over, t] = chosen_actions[~over]
        observations, _, terminated, truncated, infos = env.step(chosen_actions)
        # An env whose episode is over begins the next one, which is ignored.
        over |= terminated | truncated
        if over.all():
            break
    return actions

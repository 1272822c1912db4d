"""Record episodes step by step: observations and actions as entries and as physical quantities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.entry_points import make_vec
from rlbench_suite.core.agent import HostPolicy
from rlbench_suite.core.component import unit_of_measure
from rlbench_suite.core.policy import Policy
from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.flat_rows import FlatRows, observed_signals
from rlbench_suite.evaluation.protocol import evaluate

MAX_SIGNAL_ENTRIES = 256
"""Most entries of a signal that becomes columns. Pictures have more."""


class Trajectory(NamedTuple):
    """One episode of ``T`` steps.

    Arrays have an axis for the agents behind the steps, of length 1 for one agent.
    """

    seed: int
    observations: np.ndarray
    """Observation before each step, flattened, float32 ``(T, agents, features)``"""
    masks: np.ndarray | None
    """Legal discrete actions before each step, bool ``(T, agents, n)``; None if all are"""
    actions: np.ndarray
    """``(T, agents, numbers)``"""
    rewards: np.ndarray
    """``(T,)`` or ``(T, objectives)``"""
    costs: np.ndarray | None
    """Constraint cost of each step, ``(T,)``; None if the task has none"""
    measures: dict[str, np.ndarray]
    """Scalar measures after each step, ``(T,)``"""
    terminated: bool
    """True if the task ended it, False if the time limit did"""
    success: bool


def play(
    task: Task[Any, Any], policy: Policy | HostPolicy, seeds: Sequence[int], *, split: str = "test"
) -> list[Trajectory]:
    """Play the first episode of each seed and return what happened at every step.

    The episodes are played as in an evaluation. Their actions then step the vector env, which shows
    the observations.
    """
    seeds = np.asarray(seeds)  # type: ignore[assignment]
    record, rows = evaluate(task, policy, seeds, split=split), FlatRows(task)  # type: ignore[arg-type]
    env: Any = make_vec(
        task.card.id, len(seeds), split=split, difficulty=task.difficulty, dtype=task.dtype.name
    )
    observations, infos = env.reset(seed=[int(seed) for seed in seeds])
    agents = rows.agents
    longest = int(record.length.max())
    idle = task.noop_action()
    shape = (longest, len(seeds))
    rows_seen = np.zeros((*shape, agents, rows.features), np.float32)
    rewards, costs, masks = np.zeros((*shape, *env.single_reward_space.shape)), None, None
    measures: dict[str, np.ndarray] = {}
    for t in range(longest):
        rows_seen[t] = rows.observe(observations).reshape(rows_seen.shape[1:])
        if (mask := rows.mask(infos.get("action_mask"))) is not None:
            masks = np.ones((*shape, agents, rows.outputs), bool) if masks is None else masks
            masks[t] = mask.reshape(masks.shape[1:])
        running = t < record.length
        actions = np.where(running.reshape(-1, *(1,) * idle.ndim), record.actions[:, t], idle)
        observations, rewards[t], _, _, infos = env.step(actions.astype(task.action_space.dtype))
        if "cost" in infos:
            costs = np.zeros(shape) if costs is None else costs
            costs[t] = infos["cost"]
        for name in task.measures:
            if np.shape(infos.get(name)) == (len(seeds),):
                measures.setdefault(name, np.zeros(shape))[t] = infos[name]
    env.close()
    actions_by_agent = record.actions.reshape(len(seeds), record.actions.shape[1], agents, -1)
    return [
        Trajectory(
            int(seed),
            rows_seen[:end, i],
            None if masks is None else masks[:end, i],
            actions_by_agent[i, :end],
            rewards[:end, i],
            None if costs is None else costs[:end, i],
            {name: values[:end, i] for name, values in measures.items()},
            bool(record.terminated[i]),
            bool(record.info["success"][i]),
        )
        for i, (seed, end) in enumerate(zip(seeds, record.length, strict=True))
    ]


def columns(task: Task[Any, Any], episode: Trajectory, agent: int = 0) -> dict[str, np.ndarray]:
    """Return the steps of an episode as physical quantities, by ``name [unit]``.

    Time is that before the step. Observations are what the agent saw then; actions, rewards, costs
    and measures (``measure.NAME [unit]``) are those of the step. Signals with more than
    :data:`MAX_SIGNAL_ENTRIES` entries are left out.
    """
    steps = len(episode.actions)
    table: dict[str, np.ndarray] = {"step": np.arange(steps)}
    if task.period:
        table["time [s]"] = np.arange(steps) * task.period
    start = 0
    for signal in observed_signals(task):
        names = signal.columns()
        if len(names) <= MAX_SIGNAL_ENTRIES:
            values = (
                episode.observations[:, agent, start : start + len(names)].astype(np.float64)
                * signal.scale
            )
            table |= {f"{name} [{signal.unit}]": values[:, i] for i, name in enumerate(names)}
        start += len(names)
    actions = episode.actions[:, agent]
    if isinstance(task.action_space, spaces.Discrete):
        table["action [1]"] = actions[:, 0]
    else:
        signals = [
            (name, signal) for signal in task.signals.get("action", ()) for name in signal.columns()
        ]
        for i, (name, signal) in enumerate(signals):
            scaled = (
                actions[:, i]
                if signal.scale == 1
                else actions[:, i].astype(np.float64) * signal.scale
            )
            table[f"action.{name} [{signal.unit}]"] = scaled
    if episode.rewards.ndim == 1:
        table["reward [1]"] = episode.rewards
    else:
        goals = task.card.objectives
        table |= {f"reward.{name} [1]": episode.rewards[:, i] for i, name in enumerate(goals)}
    if episode.costs is not None:
        table["cost [1]"] = episode.costs
    units = {name: unit_of_measure(words) for name, words in task.measures.items()}
    return table | {
        f"measure.{name} [{units[name]}]": values for name, values in episode.measures.items()
    }

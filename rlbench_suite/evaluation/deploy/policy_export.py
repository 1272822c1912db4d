"""Export a cell's acting policy as ONNX in the spaces' units, or as a C header in physical ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rlbench_suite
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.deploy import c_header, onnx_export
from rlbench_suite.evaluation.deploy.network import Network, NetworkPolicy, build_network
from rlbench_suite.evaluation.flat_rows import entry_scales, observed_signals
from rlbench_suite.evaluation.protocol import evaluate, evaluation_seeds
from rlbench_suite.evaluation.runs.cell_policies import find_cell, read_policy
from rlbench_suite.evaluation.trajectory import Trajectory, play

_TEST_VECTOR_NUMBERS = 4096
"""Approximate number of observed numbers in the test vectors of a header."""
_CHECKED_EPISODES = 4
"""Episodes on which an exported network is compared with its policy."""


@dataclass(frozen=True)
class Export:
    """An acting policy, ready to be written."""

    cell: Cell
    task: Task[Any, Any]
    network: Network
    """In the units of the task's spaces."""
    episodes: list[Trajectory]
    """Episodes of the policy."""
    difference: float
    """Largest difference between an action of the policy and one of the network.

    It is a share of the action's range; of discrete actions, the share that differs.
    """
    loss: float | None = None
    """Fall of the mean return of the cell's evaluation episodes with weights of eight bits.

    None with other weights.
    """
    mean_cost: float = 0.0
    """Mean constraint cost of the cell's evaluation episodes."""

    @property
    def broken_limit(self) -> str:
        """Sentence that says that the policy breaks the task's constraint; else empty."""
        constraint = self.task.card.constraint
        if constraint is None or not self.task.card.violates(self.mean_cost):
            return ""
        return (
            f"This policy breaks the limit of {self.task.card.name}: its episodes cost "
            f"{self.mean_cost:.4g} on average, the limit is {constraint.limit:g}. Cost: "
            f"{constraint.counts}."
        )


def read_export(
    path: Path, cell_name: str, *, most_likely: bool = False, eight_bits: bool = False
) -> Export:
    """Read the policy of a cell and compare its network with it.

    Args:
        path: run directory.
        cell_name: name of the cell.
        most_likely: export the most likely action of a policy that samples.
        eight_bits: round weights to eight bits, and measure what that costs.

    Raises:
        OSError, ValueError: there is no such cell, or its policy cannot be read or exported.
    """
    run, cell = find_cell(path, cell_name)
    task, policy = read_policy(run, cell)
    network = network_of(policy, cell.agent)
    if network.sampled and not most_likely:
        raise ValueError(
            f"{cell.agent} samples its actions on {task.card.id}; add --most-likely to export the "
            "most likely one."
        )
    seeds = evaluation_seeds(task.card, cell.seed, run.manifest.budget)
    loss = None
    if eight_bits:
        before, network = network, network.quantise()
        returns = [
            float(
                np.mean(
                    scalar_return(
                        task, evaluate(task, NetworkPolicy(compared_network, task), seeds).total
                    )
                )
            )
            for compared_network in (before, network)
        ]
        loss = returns[0] - returns[1]
    player = policy if not network.sampled and not eight_bits else NetworkPolicy(network, task)
    episodes = play(task, player, seeds[:_CHECKED_EPISODES])
    result = run.result(cell)
    mean_cost = result.mean_cost if result else 0.0
    return Export(cell, task, network, episodes, difference(network, episodes), loss, mean_cost)


def network_of(policy: Any, agent: str) -> Network:
    """Return the acting network of a policy.

    Raises:
        ValueError: it has none, or the network cannot be exported.
    """
    acting_parameters: Any = getattr(policy, "acting_parameters", None)
    if acting_parameters is None:
        raise ValueError(
            f"The policy of {agent!r} is no network that can be exported; ppo, sac, dqn, bc and "
            "td3-bc have one."
        )
    return build_network(acting_parameters())


def difference(network: Network, episodes: list[Trajectory]) -> float:
    """Compare a network with the actions of episodes; see :attr:`Export.difference`."""
    differences: list[np.ndarray] = []
    for episode in episodes:
        memory = np.zeros((episode.actions.shape[1], network.units), np.float32)
        for t, policy_actions in enumerate(episode.actions):
            mask = None if episode.masks is None else episode.masks[t]
            action, memory = network.run(episode.observations[t], mask, memory)
            differences.append(np.abs(action - policy_actions.astype(np.float64)))
    if network.choices:
        return float(np.mean(np.array(differences) > 0))
    last: Any = network.layers[-1]
    return float((np.concatenate(differences) / (last.high - last.low)).max())


def onnx(export: Export) -> bytes:
    """Return the policy as an ONNX file.

    Raises:
        ImportError: the extra ``onnx`` is not installed.
    """
    masked = bool(export.network.choices) and export.episodes[0].masks is not None
    return onnx_export.model(export.network, export.task.card.id, masked=masked)


def c(export: Export, name: str) -> str:
    """Return the policy as a C header with test vectors of its first episode.

    Args:
        export: the policy.
        name: prefix of the header's names.

    Raises:
        ValueError: a number is not finite.
    """
    task = export.task
    network = export.network
    episode = export.episodes[0]
    steps = min(len(episode.actions), max(4, min(32, _TEST_VECTOR_NUMBERS // network.features)))
    observation_scales = entry_scales(task, "observation", network.features)
    acted = (
        np.ones(network.outputs)
        if network.choices
        else entry_scales(task, "action", network.outputs)
    )
    physical = network.in_units(observation_scales, acted)
    actions = episode.actions[:steps, 0]
    vectors = c_header.Vectors(
        (episode.observations[:steps, 0] * observation_scales).astype(np.float32),
        None if episode.masks is None else episode.masks[:steps, 0],
        actions if network.choices else (actions * acted).astype(np.float32),
    )
    notes: tuple[str, ...] = ()
    if export.loss is not None:
        notes = (
            (
                f"Weights have 8 bits. The mean return of {task.card.id} falls by "
                f"{export.loss:.4g} through it."
            ),
        )
    origin = c_header.Origin(
        task.card.id, export.cell.agent, rlbench_suite.__version__, task.period, notes
    )
    return c_header.header(
        name,
        physical,
        observed_signals(task),
        task.signals.get("action", ()),
        vectors,
        origin,
        eight_bits=export.loss is not None,
    )

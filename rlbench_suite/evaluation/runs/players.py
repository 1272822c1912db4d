"""Players of a run: agents of the registry, a saved policy, or a language model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from rlbench_suite.core import registry
from rlbench_suite.core.agent import Agent
from rlbench_suite.core.scale import Score
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.policy_files import onnx_policy, shared_library
from rlbench_suite.evaluation.policy_files.checkpoint import Checkpoint, SavedAgent
from rlbench_suite.evaluation.runs.language_model import LanguageModel
from rlbench_suite.evaluation.runs.run import Run

_MEMBERS = ("check", "hyperparameters", "train", "save")


class Lineup(NamedTuple):
    """Players of a requested run, and what they add to its manifest."""

    players: Mapping[str, Any]
    """Agents or a language model, by their names in the run."""
    anchors: Callable[[TaskCard], Mapping[str, Score]]
    """Returns the measured scores that normalise the players' returns on a task."""
    manifest_entries: Mapping[str, Any]
    """Sources of the players that the registry does not know."""


def line_up(agents: str, checkpoint: Checkpoint | None, model: LanguageModel | None) -> Lineup:
    """Return the language model, the saved policy, or else the agents of a comma-separated list.

    Raises:
        ValueError: no agent is named, or one is unknown or incomplete.
        ImportError: an agent needs an extra that is not installed.
    """
    if model:
        server = {"model": model.endpoint.model, "base_url": model.endpoint.base_url}
        return Lineup({model.name: model}, model.anchors, {"models": {model.name: server}})
    if checkpoint:
        player = SavedAgent(checkpoint, _find_agent(checkpoint.agent))
        file = {"agent": checkpoint.agent, "sha256": checkpoint.sha256}
        return Lineup({player.name: player}, TaskCard.scores, {"checkpoints": {player.name: file}})
    names = dict.fromkeys(filter(None, map(str.strip, agents.split(","))))
    if not names:
        raise ValueError(
            f"No agent named in {agents!r}. Known: {', '.join(registry.agent_entry_points())}."
        )
    players = {name: _find_agent(name) for name in names}
    for name, agent in players.items():
        if missing := [member for member in _MEMBERS if not hasattr(agent, member)]:
            raise ValueError(
                f"The agent {name!r} is incomplete: it has no {' and no '.join(missing)} (see "
                "agent.py)."
            )
    return Lineup(players, TaskCard.scores, {})


def find_player(name: str, run: Run) -> Agent:
    """Return the agent of that name in a run: one of the registry, or a saved policy."""
    checkpoint = run.checkpoint(name)
    return (
        SavedAgent(checkpoint, _find_agent(checkpoint.agent)) if checkpoint else _find_agent(name)
    )


@cache
def _find_agent(name: str) -> Agent:
    if name == shared_library.NAME:
        return shared_library.ControllerAgent()
    return onnx_policy.OnnxAgent() if name == onnx_policy.NAME else registry.agent(name)

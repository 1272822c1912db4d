"""Choose some of the agents and tasks of finished runs by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlbench_suite import registry
from rlbench_suite.card import unknown
from rlbench_suite.evaluation.reading import FinishedRun, agent_names


def chosen(runs: Sequence[FinishedRun], agents: str | None = None, tasks: str | None = None) -> list[FinishedRun]:
    """Return the runs with some of their agents and tasks only, without the runs that have none of them.

    Args:
        runs: the runs.
        agents: names of agents, separated by commas, as a run has them or as in a comparison of the runs, such as
            ``ppo (a)``. None means all.
        tasks: suites, or ids of tasks of the runs, separated by commas. None means all.

    Raises:
        ValueError: a name is unknown, or no finished cell is left.
    """
    names = agent_names(runs)
    called = {owner: {owner[1], name} for owner, name in names.items()}
    known = list(
        dict.fromkeys(task for run in runs for own in run.manifest["hyperparameters"].values() for task in own)
    )
    players = _listed(agents) if agents is not None else list(names.values())
    for player in players:
        if not any(player in both for both in called.values()):
            raise ValueError(unknown("agent of the runs", player, set[str]().union(*called.values())))
    wanted = {task for name in _listed(tasks) for task in _named(name, known)} if tasks is not None else set(known)
    kept = []
    for run in runs:
        manifest = run.manifest | {
            "hyperparameters": {
                agent: {task: values for task, values in own.items() if task in wanted}
                for agent, own in run.manifest["hyperparameters"].items()
                if called[run.name, agent] & set(players)
            },
            "references": {task: found for task, found in run.manifest["references"].items() if task in wanted},
        }
        if cells := [each for each in run.cells if each["task"] in manifest["hyperparameters"].get(each["agent"], ())]:
            kept.append(replace(run, manifest=manifest, cells=tuple(cells)))
    if not kept:
        what = " on ".join(filter(None, (agents, tasks)))
        raise ValueError(f"No finished cell of {what} in {', '.join(run.name for run in runs)}.")
    return kept


def _listed(names: str) -> list[str]:
    return [name for name in map(str.strip, names.split(",")) if name]


def _named(name: str, known: Sequence[str]) -> list[str]:
    """Return the known tasks that the name of a suite or of a task means.

    Raises:
        ValueError: it means none.
    """
    suites = registry.suites()
    found = [task for task in known if task in suites.get(name, ()) or name in (task, task.split("/", 1)[1])]
    if not found:
        there = [task.removeprefix("rlsuite/") for task in known]
        there += [suite for suite, ids in suites.items() if set(ids) & set(known)]
        raise ValueError(unknown("task or suite of the runs", name, there))
    return found

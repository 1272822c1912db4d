"""Choose some of the agents and tasks of finished runs by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rlbench_suite import registry
from rlbench_suite.card import unknown
from rlbench_suite.evaluation.pairing import several
from rlbench_suite.evaluation.reading import FinishedRun, agent_names


def chosen(runs: Sequence[FinishedRun], agents: str | None = None, tasks: str | None = None) -> list[FinishedRun]:
    """Return the runs with some of their agents and tasks only, without the runs that have none of them.

    Named agents come in the order of their names, run by run.

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
    players = _listed("agent", agents, names.values()) if agents is not None else list(names.values())
    for player in players:
        if not any(player in both for both in called.values()):
            raise ValueError(unknown("agent of the runs", player, set[str]().union(*called.values())))
    wanted = set(known)
    if tasks is not None:
        short = [task.split("/", 1)[1] for task in known]
        wanted = {task for name in _listed("task", tasks, short) for task in _named(name, known)}
    kept: list[tuple[int, FinishedRun]] = []
    for run in runs:
        order = {
            agent: min(players.index(name) for name in names_of & set(players))
            for (owner, agent), names_of in called.items()
            if owner == run.name and names_of & set(players)
        }
        manifest = run.manifest | {
            "hyperparameters": {
                agent: {
                    task: values for task, values in run.manifest["hyperparameters"][agent].items() if task in wanted
                }
                for agent in sorted(order, key=lambda agent: order[agent])
            },
            "references": {task: found for task, found in run.manifest["references"].items() if task in wanted},
        }
        if cells := [each for each in run.cells if each["task"] in manifest["hyperparameters"].get(each["agent"], ())]:
            cells.sort(key=lambda cell: order[cell["agent"]])
            place = 0 if agents is None else min(order.values())
            failed = tuple(c for c in run.failed if c["task"] in manifest["hyperparameters"].get(c["agent"], ()))
            kept.append((place, replace(run, manifest=manifest, cells=tuple(cells), failed=failed)))
    if not kept:
        what = " on ".join(filter(None, (agents, tasks)))
        raise ValueError(f"No finished cell of {what} in {', '.join(run.name for run in runs)}.")
    return [run for _, run in sorted(kept, key=lambda each: each[0])]


def _listed(kind: str, names: str, known: Iterable[str]) -> list[str]:
    """Return the names in a list.

    Raises:
        ValueError: there is none.
    """
    if listed := [name for name in map(str.strip, names.split(",")) if name]:
        return listed
    raise ValueError(f"No {kind} is named in {names!r}. The runs have {several(list(dict.fromkeys(known)), kind)}.")


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

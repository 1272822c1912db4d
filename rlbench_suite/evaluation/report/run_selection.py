"""Choose some of the agents and tasks of finished runs by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlbench_suite.core import registry
from rlbench_suite.evaluation.report.paired_cells import several
from rlbench_suite.evaluation.runs.run import Run, agent_names
from rlbench_suite.foundation.unknown_names import unknown


def select_runs(
    runs: Sequence[Run], agents: str | None = None, tasks: str | None = None
) -> list[Run]:
    """Return the runs with some of their agents and tasks, without runs that have none of them.

    Named agents come in the order of their names, run by run.

    Args:
        runs: the runs.
        agents: names of agents, separated by commas, as a run has them or as in a comparison of the
            runs, such as ``ppo (a)``. None means all.
        tasks: suites, or ids of tasks of the runs, separated by commas. None means all.

    Raises:
        ValueError: a name is unknown, or no finished cell is left.
    """
    names = agent_names(runs)
    aliases = {owner: {owner[1], name} for owner, name in names.items()}
    selected_agents = (
        list(names.values()) if agents is None else _listed("agent", agents, names.values())
    )
    for agent in selected_agents:
        if not any(agent in agent_aliases for agent_aliases in aliases.values()):
            raise ValueError(
                unknown("agent of the runs", agent, set[str]().union(*aliases.values()))
            )
    selected_tasks = _select_tasks(runs, tasks)
    selected_runs: list[tuple[int, Run]] = []
    for run in runs:
        # Places of the run's agents in the list, by their names in the run.
        ranks: dict[str, int] = {}
        for (owner, agent), agent_aliases in aliases.items():
            if owner == run.name and agent_aliases & set(selected_agents):
                ranks[agent] = min(
                    selected_agents.index(name) for name in agent_aliases & set(selected_agents)
                )
        selected_run = run.select(sorted(ranks, key=ranks.__getitem__), selected_tasks)
        if selected_run.results():
            rank = 0 if agents is None else min(ranks.values())
            selected_runs.append((rank, selected_run))
    if not selected_runs:
        what = " on ".join(filter(None, (agents, tasks)))
        raise ValueError(f"No finished cell of {what} in {', '.join(run.name for run in runs)}.")
    return [run for _, run in sorted(selected_runs, key=lambda ranked: ranked[0])]


def _select_tasks(runs: Sequence[Run], names: str | None) -> set[str]:
    """Return the tasks of the runs that a list of suites and ids names; all without a list.

    Raises:
        ValueError: a name is unknown.
    """
    known_tasks = list(
        dict.fromkeys(
            task
            for run in runs
            for tasks in run.manifest.hyperparameters.values()
            for task in tasks
        )
    )
    if names is None:
        return set(known_tasks)
    short_names = [task.split("/", 1)[1] for task in known_tasks]
    return {
        task
        for name in _listed("task", names, short_names)
        for task in _tasks_of_name(name, known_tasks)
    }


def _listed(kind: str, names: str, known_names: Iterable[str]) -> list[str]:
    """Return the names in a list.

    Raises:
        ValueError: there is none.
    """
    if listed := [name for name in map(str.strip, names.split(",")) if name]:
        return listed
    raise ValueError(
        f"No {kind} is named in {names!r}. The runs have "
        f"{several(list(dict.fromkeys(known_names)), kind)}."
    )


def _tasks_of_name(name: str, known_tasks: Sequence[str]) -> list[str]:
    """Return the known tasks that the name of a suite or of a task means.

    Raises:
        ValueError: it means none.
    """
    suites = registry.suites()
    tasks = [
        task
        for task in known_tasks
        if task in suites.get(name, ()) or name in (task, task.split("/", 1)[1])
    ]
    if not tasks:
        known_names = [task.removeprefix("rlsuite/") for task in known_tasks]
        known_names += [suite for suite, ids in suites.items() if set(ids) & set(known_tasks)]
        raise ValueError(unknown("task or suite of the runs", name, known_names))
    return tasks

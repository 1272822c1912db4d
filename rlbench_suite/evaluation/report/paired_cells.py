"""Find which cells of two agents are a pair, and which have no partner or are not finished."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rlbench_suite.evaluation.runs.manifest import CellResult
from rlbench_suite.evaluation.runs.run import Cells, Run, agent_names, cells_by_agent

Pairs = list[tuple[CellResult, CellResult]]
"""Cells of two agents on a task, one pair for each seed."""


def pairs_of(x: Mapping[int, CellResult], y: Mapping[int, CellResult]) -> Pairs:
    """Return the cells of both agents for each seed with equal evaluation episodes."""
    return [
        (x[seed], y[seed])
        for seed in sorted(x)
        if seed in y and x[seed].episodes == y[seed].episodes
    ]


@dataclass(frozen=True)
class Gap:
    """Seeds that an agent lacks on a task and its run has.

    They failed, were not run yet, or were never asked for.

    Attributes:
        run: name of the run.
        agent: name of the agent, as in the verdicts.
        task: id of the task.
        planned: number of seeds of the run, the most that an agent was asked for.
        finished: number of its finished seeds.
    """

    run: str
    agent: str
    task: str
    planned: int
    finished: int


def find_separate_pairs(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return the pairs of agents that have no task, seed and evaluation episodes in common."""
    agents = cells_by_agent(runs)
    return [
        (x, y)
        for x, y in combinations(agents, 2)
        if not any(
            pairs_of(agents[x][task], agents[y][task])
            for task in agents[x].keys() & agents[y].keys()
        )
    ]


def gaps(runs: Sequence[Run]) -> list[Gap]:
    """Return where seeds of the runs are missing.

    Of runs that share an agent, the one that lacks most is named.
    """
    names, agents = agent_names(runs), cells_by_agent(runs)
    missing: dict[tuple[str, str], Gap] = {}
    for run in sorted(runs, key=lambda run: run.manifest.seeds):
        planned = run.manifest.seeds
        for agent, tasks in run.manifest.hyperparameters.items():
            name = names[run.name, agent]
            for task in tasks:
                if (finished := len(agents.get(name, {}).get(task, ()))) < planned:
                    missing[name, task] = Gap(run.name, name, task, planned, finished)
    return list(missing.values())


def on_apart(pairs: Sequence[tuple[str, str]], agents: Mapping[str, Cells]) -> str:
    """Return the pairs of agents that have nothing in common, and what each of these agents has."""
    owners: dict[str, list[str]] = {}
    for agent in dict.fromkeys(name for pair in pairs for name in pair):
        cells = [cell for seeds in agents[agent].values() for cell in seeds.values()]
        seeds, episodes = (
            _range({getattr(cell, name) for cell in cells}) for name in ("seed", "episodes")
        )
        tasks = several([task.split("/", 1)[1] for task in agents[agent]], "task")
        owners.setdefault(f"{tasks} (seeds {seeds}, {episodes} episodes each)", []).append(agent)
    names = several([f"{x} and {y}" for x, y in pairs], "pair")
    owned = "; ".join(
        (
            f"{several(names_of_agents, 'agent')} {'has' if len(names_of_agents) == 1 else 'have'} "
            f"{has}"
        )
        for has, names_of_agents in owners.items()
    )
    return f"No task, seed and evaluation episodes in common: {names}. {owned}."


def on_shared(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the agents that several runs have in common."""
    owners: dict[tuple[str, str], list[str]] = {}
    for (run, agent), name in agent_names(runs).items():
        owners.setdefault((agent, name), []).append(run)
    for (agent, name), run_names in owners.items():
        if len(run_names) > 1:
            shared_name = "" if name == agent else f", {name}"
            names = ", ".join(run_names)
            yield (
                f"{agent} has the same scores in the runs {names}, so it is one agent "
                f"here{shared_name}."
            )


def _range(numbers: Collection[int]) -> str:
    return " to ".join(str(number) for number in dict.fromkeys((min(numbers), max(numbers))))


def several(names: Sequence[str], noun: str) -> str:
    """Return the first three names, and the number of the others."""
    more = f" and {count(len(names) - 3, f'more {noun}')}" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def count(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural if need be."""
    return f"{number} {noun}{'s' * (number != 1)}"

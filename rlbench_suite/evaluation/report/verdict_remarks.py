"""Sentences that a reader needs to interpret verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rlbench_suite.evaluation.report.comparison import Verdict
from rlbench_suite.evaluation.report.paired_cells import (
    Gap,
    count,
    find_separate_pairs,
    gaps,
    on_apart,
    on_shared,
    several,
)
from rlbench_suite.evaluation.report.report_remarks import UNEQUAL, on_privileged
from rlbench_suite.evaluation.runs.run import Cells, Run, cells_by_agent
from rlbench_suite.evaluation.statistics.permutation import EXACT, holm, least_p
from rlbench_suite.evaluation.statistics.power import LEVEL, MIN_PAIRED_SEEDS
from rlbench_suite.evaluation.statistics.unseen_runs import on_unseen

_PACKAGE = "rlbench-suite"


def remarks(runs: Sequence[Run], all_verdicts: Sequence[Verdict]) -> list[str]:
    """Return the sentences that a reader needs to interpret the verdicts."""
    sentences = [*_on_gaps(gaps(runs)), *_on_versions(runs)]
    for run in runs:
        for name, saved in run.manifest.checkpoints.items():
            sentences.append(
                f"{name} is one saved policy of {saved.agent}: a verdict is on this policy, not "
                "its training."
            )
    agents, by_pair = cells_by_agent(runs), []
    sentences += on_privileged({agent: list(_privileged(tasks)) for agent, tasks in agents.items()})
    if without := find_separate_pairs(runs):
        sentences.append(on_apart(without, agents))
    sentences += on_shared(runs)
    for verdict in all_verdicts:
        if verdict.seeds > 1:
            by_pair.append(
                (
                    f"{verdict.first} and {verdict.second}",
                    on_unseen(verdict.seeds, len(verdict.tasks)),
                )
            )
        pair = f"{verdict.first} and {verdict.second}"
        by_pair += [(pair, sentence) for sentence in _on_pair(verdict, agents, all_verdicts)]
    return sentences + list(_group_sentences(by_pair))


def _privileged(tasks: Cells) -> Iterator[str]:
    """Yield the names of the tasks on which an agent is privileged."""
    for task, cells in tasks.items():
        if any(cell.privileged for cell in cells.values()):
            yield task.split("/", 1)[1]


def _on_pair(
    verdict: Verdict, agents: Mapping[str, Cells], all_verdicts: Sequence[Verdict]
) -> Iterator[str]:
    """Yield the sentences on one verdict, to be read after the names of its agents.

    Args:
        verdict: the verdict.
        agents: finished cells of all agents.
        all_verdicts: all verdicts, whose p-values are corrected together.
    """
    unequal = [
        task.task
        for task in verdict.tasks
        if _unequal(agents[verdict.first], agents[verdict.second], task.task)
    ]
    if unequal:
        yield f"unequal training, so this compares more than the agents: {', '.join(unequal)}."
    if verdict.left_out:
        yield f"left out, because they have no pair there: {several(verdict.left_out, 'task')}."
    for agent, number in zip((verdict.first, verdict.second), verdict.unpaired, strict=True):
        if number:
            yield (
                f"{count(number, 'finished cell')} of {agent} {'does' if number == 1 else 'do'} "
                "not count, because "
                "the other agent has no cell of the same task, seed and evaluation episodes."
            )
    shares = np.abs([task.difference.point for task in verdict.tasks])
    if len(shares) > 2 and shares.max() > shares.sum() / 2:
        yield (
            "more than half of all differences is that on "
            f"{verdict.tasks[int(shares.argmax())].task}, which decides the mean; the difference "
            f"of IQM is {verdict.iqm.point:+.3f}."
        )
    seeds = max(task.seeds for task in verdict.tasks)
    rivals = [candidate for candidate in all_verdicts if candidate is not verdict]
    p = [task.p for rival in rivals for task in rival.tasks]
    if verdict.seeds >= MIN_PAIRED_SEEDS and _hopeless(
        [least_p(task.seeds) for task in verdict.tasks], p
    ):
        task_count = len(verdict.tasks)
        enough = next(
            (n for n in range(seeds + 1, EXACT + 2) if not _hopeless([least_p(n)] * task_count, p)),
            None,
        )
        needed = f"at least {enough}" if enough else "fewer agents or tasks"
        yield (
            f"{seeds} seeds can decide no single task, however large its difference. The "
            f"permutation test with Holm's correction for {count(task_count + len(p), 'p-value')} "
            f"of tasks needs {needed}."
        )
    differences = sum(task.seeds for task in verdict.tasks)
    if verdict.seeds >= MIN_PAIRED_SEEDS and _hopeless(
        [least_p(differences)], [rival.p for rival in rivals]
    ):
        yield (
            "no verdict is possible, however large the difference. The permutation test of "
            f"{count(differences, 'difference')} gives no p-value below "
            f"{least_p(differences):.2g}, which Holm's correction for "
            f"{count(len(all_verdicts), 'pair')} of agents raises to {LEVEL:.0%} or more."
        )


def _hopeless(least_p_values: Sequence[float], other_p_values: Sequence[float]) -> bool:
    """Return whether Holm's method leaves no p-value of a pair below the level.

    Its least possible p-values are judged beside the others.
    """
    if len([*least_p_values, *other_p_values]) * min(least_p_values) < LEVEL:
        return False
    return min(holm([*least_p_values, *other_p_values])[: len(least_p_values)]) >= LEVEL


def _group_sentences(sentences_of_pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield each sentence once, after the pairs of agents that it is about."""
    about: dict[str, list[str]] = {}
    for names, sentence in sentences_of_pairs:
        about.setdefault(sentence, []).append(names)
    for sentence, pairs in about.items():
        yield f"{several(pairs, 'pair')}: {sentence}"


def _on_gaps(missing: Sequence[Gap]) -> Iterator[str]:
    """Yield a sentence for each agent with fewer seeds than its run, and what that means."""
    by_agent: dict[tuple[str, str, int], list[Gap]] = {}
    for gap in missing:
        by_agent.setdefault((gap.run, gap.agent, gap.planned), []).append(gap)
    for (run, agent, planned), gaps_of_agent in by_agent.items():
        counts = several(
            [f"{gap.finished} on {gap.task.split('/', 1)[1]}" for gap in gaps_of_agent], "task"
        )
        yield f"{agent} has fewer seeds than the {planned} of the run {run}: {counts}."
    if missing:
        yield (
            "The verdicts are about the finished seeds only. If seeds failed because training "
            "diverged, the others flatter that agent."
        )


def _on_versions(runs: Sequence[Run]) -> Iterator[str]:
    """Yield differences in the software that made the runs."""
    by_package: dict[str, dict[str, list[str]]] = {}
    versions: dict[str, dict[str, None]] = {}
    for run in runs:
        for package, version in _software(run):
            names = by_package.setdefault(package, {}).setdefault(version, [])
            if run.name not in names:
                names.append(run.name)
        for task in run.manifest.references:
            name, _, number = task.partition("?")[0].rpartition("-v")
            versions.setdefault(name, {})[f"{name}-v{number}"] = None
    for package, runs_by_version in by_package.items():
        if len(runs_by_version) > 1:
            owners = "; ".join(
                f"{version} ({', '.join(names)})" for version, names in runs_by_version.items()
            )
            why = (
                (
                    "An id keeps its trajectories between versions of the package, but agents may "
                    "have changed."
                )
                if package == _PACKAGE
                else "The same seed need not give the same numbers in all of them."
            )
            yield f"The runs were made with different versions of {package}: {owners}. {why}"
    for ids in versions.values():
        if len(ids) > 1:
            yield (
                f"{' and '.join(ids)} are different tasks: no score of one is compared with one of "
                "the other."
            )


def _software(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the packages that made a run and their versions."""
    yield _PACKAGE, run.manifest.version
    for sitting in run.manifest.sittings:
        if sitting.machine.git_revision:
            yield f"the source code of {_PACKAGE}", sitting.machine.git_revision[:12]
        yield from sitting.machine.packages.items()


def _unequal(x: Cells, y: Cells, task: str) -> bool:
    """Return True if two agents made clearly different numbers of training steps of one kind."""
    first_cell, second_cell = (next(iter(cells[task].values())) for cells in (x, y))
    steps = sorted((first_cell.training_steps, second_cell.training_steps))
    return (
        first_cell.step_unit == second_cell.step_unit
        and steps[0] > 0
        and steps[1] > UNEQUAL * steps[0]
    )

"""Sentences that a reader needs to interpret the numbers of a report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rlbench_suite.evaluation.report.pass_at_k import Passing
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.report_rows import Row
from rlbench_suite.evaluation.runs.computer import on_settings
from rlbench_suite.evaluation.statistics.unseen_runs import on_unseen


def remarks(report: Report) -> Iterable[str]:
    """Yield the sentences that a reader needs to interpret the numbers."""
    yield from _violations(report)
    yield from on_privileged(
        {
            agent: [row.card.name for row in report.rows if row.agent == agent and row.privileged]
            for agent in dict.fromkeys(row.agent for row in report.rows)
        }
    )
    yield from on_settings(sitting.machine for sitting in report.run.manifest.sittings)
    yield from _unequal_training(report)
    for name, saved in report.run.manifest.checkpoints.items():
        yield (
            f"{name} is one saved policy of {saved.agent}, not trained here: its intervals include "
            "the variance of the "
            "episodes, not that of training."
        )
    yield from _other_libraries(report)
    yield from _conversations(report.models)
    if report.gaps:
        yield (
            "The generalisation gap is the score on training contexts minus that on held-out ones, "
            "seed by seed. A gap whose interval has 0 in it is not shown to exist. The two kinds "
            "of contexts may differ in difficulty; the gap of random or reference shows by how "
            "much."
        )
    for agent, tasks in report.run.manifest.not_applicable.items():
        for task, reason in tasks.items():
            yield f"Not applicable: {agent} on {task}: {reason.rstrip('.')}."
    if report.comparison is None:
        yield "The agents have no task in common, so there is nothing to aggregate or compare."
    elif report.comparison.left_out:
        yield (
            "Left out of the aggregates, because not every agent has them: "
            f"{', '.join(report.comparison.left_out)}."
        )
    there = {(transfer.agent, transfer.card.id) for transfer in report.transfers}
    for row in report.rows:
        if row.card.trained_on and (row.agent, row.card.id) not in there:
            yield (
                f"On {row.card.name}, {row.agent} plays a policy trained on {row.card.trained_on}. "
                "Run it there too to "
                "measure the loss by transfer."
            )
    yield from _failures(report)
    if report.missing:
        more = f"; and {len(report.missing) - 3} more" if len(report.missing) > 3 else ""
        yield f"Missing, and not in any number here: {'; '.join(report.missing[:3])}{more}."
    yield from _on_intervals(report)


def _failures(report: Report) -> Iterable[str]:
    """Yield which cells failed, and which episodes count as the floor."""
    by_agent: dict[str, list[str]] = {}
    for cell in report.failures:
        by_agent.setdefault(cell.agent, []).append(
            f"{cell.task.split('/', 1)[1]}, seed {cell.seed}"
        )
    for agent, cells in by_agent.items():
        more = f"; and {len(cells) - 3} more" if len(cells) > 3 else ""
        yield (
            f"{agent} failed on {'; '.join(cells[:3])}{more}. It has no summary until these cells "
            "are done: a mean "
            "over the others would reward it for failing."
        )
    if floored := [row for row in report.rows if row.floored]:
        counts = "; ".join(f"{row.agent} on {row.card.name}: {row.floored}" for row in floored)
        yield (
            "~ Episodes whose return is not finite count as the worse of random play and doing "
            f"nothing: {counts}."
        )


def _violations(report: Report) -> Iterable[str]:
    """Yield the constraints that are broken, and what the constrained scores are."""
    for row in report.rows:
        if (limit := row.card.constraint) and row.violating:
            verb = "violates" if row.violates else "keeps"
            yield (
                f"{row.agent} {verb} the constraint of {row.card.name}: an episode costs "
                f"{row.mean_cost:.3g} on average, the limit is {limit.limit:g} ({limit.counts}). "
                f"{row.violating} of {row.seeds} seeds exceed{'s' * (row.violating == 1)} it; the "
                f"constrained score is {row.constrained.point:.3f}."
            )
    if any(row.violates for row in report.rows):
        yield (
            "A score that violates a constraint (!) ranks below every score that keeps it. The "
            "constrained score counts a seed that exceeds the limit as 0, or as its own score if "
            "that is lower."
        )


def on_privileged(tasks: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """Yield which agents know more than others.

    ``tasks`` names, by agent, the tasks whose state or params it reads.
    """
    privileged_tasks = {agent: several(names) for agent, names in tasks.items() if names}
    if privileged_tasks:
        yield (
            "Privileged (†): a policy that reads the state or parameters of the task, which agents "
            "do not see. Its "
            "scores do not compare with those of agents that see observations only: "
            f"{'; '.join(f'{agent} on {names}' for agent, names in privileged_tasks.items())}."
        )


def several(names: Sequence[str]) -> str:
    """Return names in a row, the first three if there are many."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


MIN_INTERVAL_SEEDS = 5
"""Smallest number of seeds whose intervals cover about as often as they say."""


def on_few_seeds(seeds: Collection[int]) -> Iterable[str]:
    """Warn of scores with too few seeds for an interval.

    ``seeds`` are the numbers of seeds of all scores.
    """
    if 1 in seeds:
        yield (
            f"One seed has no interval; use at least {MIN_INTERVAL_SEEDS} seeds to know how "
            "certain a score is."
        )
    if few := [number for number in seeds if 1 < number < MIN_INTERVAL_SEEDS]:
        yield (
            f"Some scores have only {min(few)} seeds. Do not trust intervals of fewer than "
            f"{MIN_INTERVAL_SEEDS} seeds: they "
            "may miss the truth far more often than they say, or be so wide that they say nothing."
        )


def _on_intervals(report: Report) -> Iterable[str]:
    """Yield how far the intervals can be trusted."""
    yield from on_few_seeds([row.seeds for row in report.rows])
    if report.method == "percentile":
        yield (
            "Intervals are percentile intervals, as rliable's. With 5 seeds they cover the truth "
            "79 to 92 % of the time, not 95 %."
        )
    if seeds := [row.seeds for row in report.rows if row.seeds > 1]:
        tasks = len(report.comparison.tasks) if report.comparison else 0
        yield on_unseen(min(seeds), tasks)
    if report.method == "percentile" and (
        equal := [row for row in report.rows if row.seeds > 1 and row.score.low == row.score.high]
    ):
        names = [f"{row.agent} on {row.card.name}" for row in equal]
        more = f"; and {len(names) - 3} more" if len(names) > 3 else ""
        yield (
            f"All seeds score the same: {'; '.join(names[:3])}{more}. Percentile intervals then "
            "have no width, which "
            "does not mean that another seed scores the same."
        )


def _conversations(models: list[Passing]) -> Iterable[str]:
    """Yield what a reader must know of the results of language models."""
    if not models:
        return
    yield (
        "Language models: pass@k is the chance that at least one of k attempts is right, pass^k "
        "that all are, both without bias. Their 95 % intervals are over instances, those of scores "
        "over seeds, each with instances of its own. Tokens are means of an episode."
    )
    if any(model.one_shot for model in models):
        yield (
            "A puzzle that is asked for one answer has scores of its own: 0 is a random answer of "
            "the right format, 1 "
            'the exact solver. "Best trivial" is the best answer found without search; a model '
            "below it shows nothing."
        )
    if lenient := list(dict.fromkeys(model.agent for model in models if model.lenient)):
        yield (
            "Answers were read leniently, formatted in another way than asked for: "
            f"{', '.join(lenient)}."
        )
    if any(model.estimated for model in models):
        yield (
            "* Some tokens are estimated from the lengths of texts, because the server did not "
            "count them."
        )


OTHER_LIBRARY_PREFIX = "sb3-"
"""Beginning of the names of agents of Stable-Baselines3."""


def _other_libraries(report: Report) -> Iterable[str]:
    """Yield how the settings of another library's agents differ from those of the suite's own.

    A saved policy was trained elsewhere, with settings that nobody knows here.
    """
    saved = report.run.manifest.checkpoints
    foreign = [
        row.agent
        for row in report.rows
        if row.agent.startswith(OTHER_LIBRARY_PREFIX) and row.agent not in saved
    ]
    agents = list(dict.fromkeys(foreign))
    if agents:
        yield (
            f"{', '.join(agents)}: untuned but for discount, network and learning rate, which are "
            "those of the suite's "
            "own agents where these set them, and without action masks. Beside agents that are "
            "tuned and read masks "
            "their scores compare settings as well as algorithms."
        )
    if brought := [
        name for name, policy in saved.items() if policy.agent.startswith(OTHER_LIBRARY_PREFIX)
    ]:
        yield (
            f"{', '.join(brought)}: settings are those of whoever trained it, which the suite does "
            "not know; it plays "
            "without action masks."
        )


UNEQUAL = 1.1
"""Ratio of training steps above which training counts as unequal. Agents round up to whole updates.
"""


def _unequal_training(report: Report) -> Iterable[str]:
    """Warn if agents trained for different numbers of steps on a task."""
    trained: dict[str, list[Row]] = {}
    for row in report.rows:
        if row.step_unit:
            trained.setdefault(row.card.name, []).append(row)
    for task, rows in trained.items():
        if any(
            max(steps) > UNEQUAL * min(steps)
            for unit in ("environment", "gradient")
            if (steps := [row.training_steps for row in rows if row.step_unit == unit])
        ):
            counts = ", ".join(f"{row.agent} {row.training_steps:,.0f}{unit(row)}" for row in rows)
            yield (
                f"Unequal training on {task}, so its scores compare more than the agents: {counts} "
                "steps."
            )
    for agent in dict.fromkeys(row.agent for row in report.rows if row.step_unit == "gradient"):
        yield (
            f"{agent} learns from a recorded dataset: its training steps are gradient steps, each "
            "on a minibatch of "
            "the dataset. They do not compare with environment steps, of which it makes none."
        )


def unit(row: Row) -> str:
    """Return the kind of training steps to say after their number, if it is not the usual one."""
    return " gradient" if row.step_unit == "gradient" else ""

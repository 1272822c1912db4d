"""Chances that a language model solves an instance in some, or in all, of several attempts.

*pass@k* is the chance that at least one of k attempts is right (Chen et al., *Evaluating Large
Language Models Trained on Code*, 2021, equation 1). *pass^k* is the chance that all k are (Yao et
al., *tau-bench*, 2024). Both are estimated without bias from n >= k attempts at each instance, of
which c are right, and averaged over instances.

Intervals are 95 % and describe new instances. The attempts at one instance are not independent, so
an instance counts once, however many attempts it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task_card import Score, TaskCard
from rlbench_suite.evaluation.runs.run import Run
from rlbench_suite.evaluation.statistics.wilson import wilson_interval

TRIVIAL = ("nothing", "guess", "constant", "heuristic")


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased chance that one of ``k`` attempts is right, if ``c`` of ``n`` were.

    Raises:
        ValueError: not 1 <= k <= n, or not 0 <= c <= n.
    """
    _check(n, c, k)
    return 1 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the unbiased chance that all of ``k`` attempts are right, if ``c`` of ``n`` were.

    Raises:
        ValueError: not 1 <= k <= n, or not 0 <= c <= n.
    """
    _check(n, c, k)
    return comb(c, k) / comb(n, k)


def _check(n: int, c: int, k: int) -> None:
    if not (1 <= k <= n and 0 <= c <= n):
        raise ValueError(
            f"Of n attempts c are right, and 1 <= k <= n; got n = {n}, c = {c}, k = {k}."
        )


@dataclass(frozen=True)
class Passing:
    """Chances that a model solves an instance of a task, and the tokens that it took."""

    agent: str
    card: TaskCard
    one_shot: bool
    """True if the model was asked for one answer, False if it played turn by turn."""
    lenient: bool
    samples: int
    """Attempts at each instance."""
    instances: int
    at_least_one: Mapping[int, Score]
    """pass@k by k."""
    all_right: Mapping[int, Score]
    """pass^k by k."""
    best_trivial: float | None
    """Score of the best answer that ignores the question or reads it without search.

    None where it was not measured.
    """
    input_tokens: float
    """Mean tokens of the prompts of an episode."""
    output_tokens: float
    """Mean tokens of the replies of an episode."""
    estimated: bool
    """True if the server did not count some of them."""
    dollars: float | None
    """Price of all episodes; None if the prices are unknown."""

    @property
    def form(self) -> str:
        """Form in which the task was given."""
        return ("one answer" if self.one_shot else "turns") + (", lenient" if self.lenient else "")


def passing(run: Run) -> list[Passing]:
    """Return the chances of every language model on every task of a run.

    Tasks follow the order of the manifest.

    A model with failed cells on a task has none there: those of the other cells would reward it for
    failing.
    """
    table: dict[tuple[str, str], list[dict[str, Any]]] = {}
    failed = {(cell.task, cell.agent) for cell in run.failures()}
    for cell in (result.cell for result in run.results() if result.agent in run.manifest.models):
        rows = run.read_episodes(cell).select(["episode_seed", "success", "measures"])
        table.setdefault((cell.task, cell.agent), []).extend(
            rows.to_pylist(maps_as_pydicts="strict")
        )
    ordered = [(task, agent) for task in run.manifest.references for agent in run.manifest.models]
    complete_keys = [key for key in ordered if key in table and key not in failed]
    return [_passing(run, agent, task, table[task, agent]) for task, agent in complete_keys]


def _passing(run: Run, agent: str, task: str, rows: list[dict[str, Any]]) -> Passing:
    settings = run.manifest.hyperparameters[agent][task]
    card = find_card(task)
    successes: dict[int, list[bool]] = {}
    for row in rows:
        successes.setdefault(row["episode_seed"], []).append(row["success"])
    samples = settings["samples"]
    counts = [(len(attempts), sum(attempts)) for attempts in successes.values()]
    ks = [k for k in (1, 2, 4, 8, 16, 32, 64, 128) if k < samples] + [samples]
    trivial = card.one_shot_scores() if settings["one_shot"] else {}
    measured = {name: [row["measures"].get(name) for row in rows] for name in rows[0]["measures"]}
    dollars = measured.get("dollars", [None])
    return Passing(
        agent, card, settings["one_shot"], settings["lenient"], samples, len(successes),
        at_least_one={k: wilson_interval([pass_at_k(n, c, k) for n, c in counts]) for k in ks},
        all_right={k: wilson_interval([pass_hat_k(n, c, k) for n, c in counts]) for k in ks},
        best_trivial=max((trivial[name].mean for name in TRIVIAL if name in trivial), default=None),
        input_tokens=sum(measured["input_tokens"]) / len(rows),
        output_tokens=sum(measured["output_tokens"]) / len(rows),
        estimated=any(measured["estimated"]),
        dollars=None if None in dollars else sum(dollars),
    )  # fmt: skip

"""Tables and plain data of ``rlsuite show`` and ``rlsuite list --json``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from rlbench_suite.core.component import action_in_words, component_tables
from rlbench_suite.core.registry import allowed_settings
from rlbench_suite.core.task_card import load
from rlbench_suite.evaluation.report.whole_table import Table

if TYPE_CHECKING:
    from rlbench_suite.core.component import KeyFigure, Row, Signal
    from rlbench_suite.core.task import Task
    from rlbench_suite.core.task_card import TaskCard

_LEFT_COLUMNS = ("difficulty", "player")


def card_as_json(card: TaskCard) -> dict[str, Any]:
    """Return a card as plain data, with its measured scores by difficulty.

    A task with only one difficulty has scores of ``default``.
    """
    plain = (
        "id family summary source horizon tags agents objectives weights difficulties contexts "
        "variant host optimum"
    )
    tiers = {tier or "default": card.scores(tier) for tier in card.difficulties or (None,)}
    return {
        **{name: getattr(card, name) for name in plain.split()},
        "partially_observed": card.partially_observed,
        "constraint": asdict(card.constraint) if card.constraint else None,
        "zero": {tier: zero._asdict() for tier, zero in card.zeros().items()},
        "chance": card.chance,
        "hard_for_reference": card.hard_for_reference,
        "open_loop": card.open_loop,
        "generalization": card.generalization,
        "settings": {
            name: {"value": card.settings[name], "allowed": allowed}
            for name, allowed in allowed_settings(card).items()
        },
        "installed": card.installed,
        "scores": {
            tier: {who: asdict(s) for who, s in players.items()}
            for tier, players in tiers.items()
            if players
        },
    }


def task_as_json(card: TaskCard) -> dict[str, Any]:
    """Return a card and what its task adds, as plain data."""
    task = card.build()
    components: dict[str, Any] = {
        f"{name}_components": [_as_json(row) for row in rows]
        for name, rows in component_tables(task).items()
    }
    components["key_figures"] = [_as_json(figure) for figure in task.key_figures()]
    components["signals"] = {
        name: [_as_json(signal) for signal in signals] for name, signals in task.signals.items()
    }
    noop = task.noop_action()
    built = {
        "spaces": {
            name: str(getattr(task, f"{name}_space"))
            for name in ("observation", "action", "reward")
        },
        "measures": task.measures,
        "period": task.period,
        "success": task.success_meaning,
        "noop_action": {"action": noop.tolist(), "meaning": action_in_words(task, noop)},
    }
    ceilings = {"optimum": _optimum(card, task), "memoryless_ceiling": task.memoryless_ceiling}
    return card_as_json(card) | built | ceilings | components


def task_tables(card: TaskCard) -> Iterator[Table | str]:
    """Yield the tables that show a task, and sentences in place of those that are empty."""
    task = card.build()
    yield _card_table(card, task)
    if card.settings:
        yield _settings(card)
    if figures := task.key_figures():
        yield _key_figures(figures)
    for title, rows in component_tables(task).items():
        yield _components(f"{title.capitalize()}{', of each agent' * (card.agents > 1)}", rows)
    scores = _returns(card)
    if scores.rows:
        yield scores
    elif card.reference:
        yield f"No measured returns yet; run: {card.measuring_command}"
    else:
        yield "No reference player."
    if card.puzzle:
        yield _one_shot_scores(card)


def _optimum(card: TaskCard, task: Task[Any, Any]) -> float | None:
    """Return the best possible return, which a task may compute from its settings."""
    optimum: float | None = getattr(task, "optimum", card.optimum)
    return optimum


def _card_table(card: TaskCard, task: Task[Any, Any]) -> Table:
    """Return a table of the facts of a card and of the measures of its task."""
    optimum = _optimum(card, task)
    agent_choice = " (agents=, {} to {})".format(*card.agent_range) if card.agent_range else ""
    facts = {
        "source": card.source,
        "family": card.family,
        "horizon": f"{card.horizon} steps{f' of {task.period:.6g} s' if task.period else ''}",
        "difficulties": ", ".join(
            f"{tier} ({number:g})" for tier, number in card.difficulties.items()
        )
        or "one",
        "as a question": f"difficulty is {load(card.puzzle).known_tiers()}" if card.puzzle else "",
        "contexts": "sampled; train and test differ" if card.contexts else "one",
        "agents": f"{card.agents}{agent_choice}",
        "objectives": ", ".join(
            f"{o} (x {w:g})" for o, w in zip(card.objectives, card.weights, strict=True)
        ),
        "optimum": "" if optimum is None else f"{optimum:g}",
        "ceiling without memory": ""
        if task.memoryless_ceiling is None
        else f"{task.memoryless_ceiling:g}",
        "constraint": str(card.constraint or ""),
        "success": task.success_meaning,
        "no-op action": action_in_words(task, task.noop_action()),
        "score 0": card.zero_in_words(),
        "success by chance": card.chance_in_words(),
        "failures of the reference": card.failures_in_words(),
        "blind play": card.open_loop,
        "generalization": card.generalization,
        "observation": _space(task.observation_space),
        "action": _space(task.action_space),
        "reward": _space(task.reward_space),
        "tags": ", ".join(card.tags),
    }
    table = Table(
        title=f"{card.id}: {card.summary}", title_justify="left", show_header=False, box=None
    )
    for name, value in facts.items():
        if value:
            table.add_row(f"[bold]{name}", value)
    for name, meaning in task.measures.items():
        table.add_row(f"[bold]info\\['{name}']", meaning)
    return table


def _returns(card: TaskCard) -> Table:
    """Return a table of the measured returns of players, without rows if there are none."""
    table = Table(title="Measured returns on the test split", title_justify="left")
    for column in ("difficulty", "player", "mean", "95 % interval", "episodes", "success", "cost"):
        table.add_column(column, justify="left" if column in _LEFT_COLUMNS else "right")
    for tier in card.difficulties or (None,):
        for player, s in card.scores(tier).items():
            measured = ("-" if value is None else f"{value:.3g}" for value in (s.success, s.cost))
            interval = f"[{s.low:.4g}, {s.high:.4g}]"
            table.add_row(
                tier or "-", player, f"{s.mean:.4g}", interval, str(s.episodes), *measured
            )
    return table


def _as_json(row: Row | Signal | KeyFigure) -> dict[str, Any]:
    """Return a row, signal or key figure as plain data.

    Infinities become None, because JSON lacks them.
    """
    return {
        name: None if value in (math.inf, -math.inf) else value
        for name, value in row._asdict().items()
    }


def _settings(card: TaskCard) -> Table:
    """Return a table of the settings of a card and of the values that each may take."""
    table = Table(title="Settings, keywords of gymnasium.make", title_justify="left")
    for column in ("setting", "here", "allowed"):
        table.add_column(column)
    for name, allowed in allowed_settings(card).items():
        table.add_row(name, str(card.settings[name]), ", ".join(map(str, allowed)))
    return table


def _key_figures(figures: tuple[KeyFigure, ...]) -> Table:
    """Return a table of key figures."""
    table = Table(title="Key figures", title_justify="left")
    for column in ("name", "meaning", "value", "unit"):
        table.add_column(column, justify="right" if column == "value" else "left")
    for figure in figures:
        table.add_row(
            *(escape(text) for text in (figure.name, figure.meaning, figure.value, figure.unit))
        )
    return table


def _components(title: str, rows: list[Row]) -> Table:
    """Return a table of the components of a space."""
    table = Table(title=title, title_justify="left")
    for column in ("entries", "name", "meaning", "unit", "low", "high"):
        table.add_column(column, justify="right" if column in ("low", "high") else "left")
    for row in rows:
        bounds = ("" if bound is None else f"{bound:g}" for bound in (row.low, row.high))
        table.add_row(
            *(escape(text) for text in (row.entries, row.name, row.meaning, row.unit, *bounds))
        )
    return table


def _one_shot_scores(card: TaskCard) -> Table:
    """Score trivial answers and the exact solver's."""
    from rlbench_suite.evaluation.analysis.one_shot import NO_SKILL, skill

    table = Table(
        title="Measured scores of one-shot answers on the test split", title_justify="left"
    )
    for column in ("difficulty", "player", "score", "95 % interval", "skill"):
        table.add_column(column, justify="left" if column in _LEFT_COLUMNS else "right")
    for tier in card.difficulties:
        measured = card.one_shot_scores(tier)
        for player, s in measured.items():
            worth = "" if player in NO_SKILL else f"{skill(s.mean, measured['guess'].mean):.3f}"
            table.add_row(tier, player, f"{s.mean:.4g}", f"[{s.low:.4g}, {s.high:.4g}]", worth)
    return table


def _space(space: Any) -> str:
    """Describe a space in one line, whatever its size."""
    if hasattr(space, "spaces"):
        return "; ".join(f"{name}: {_space(subspace)}" for name, subspace in space.spaces.items())
    if hasattr(space, "low"):
        return (
            f"Box of shape {space.shape}, {space.dtype}, from {space.low.min():g} to "
            f"{space.high.max():g}"
        )
    return str(space)

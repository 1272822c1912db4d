"""Make a page for every task from its card, spaces, scores, tests, changelog and an episode.

MkDocs runs this file as a hook (``hooks`` in mkdocs.yml), so that a page cannot disagree with the
code.
"""

from __future__ import annotations

import ast
import logging
import re
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from animations import animations, still, time_left, transcript
from gallery import gallery, moving_picture
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from rlbench_suite.core.component import Row, action_in_words, component_tables
from rlbench_suite.core.registry import allowed_settings, cards
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.analysis.one_shot import NO_SKILL, PLAYERS, skill
from rlbench_suite.language.rows import puzzle_of

ROOT = Path(__file__).resolve().parent.parent
log = logging.getLogger(f"mkdocs.plugins.{__name__}")


def installed_cards() -> list[TaskCard]:
    """Return the cards whose simulators are installed.

    PyBullet has no wheels for the newest Pythons.
    """
    return [card for card in cards().values() if card.installed]


def on_config(config: MkDocsConfig) -> None:
    """Put the pages into the navigation, by family."""
    families: dict[str, list[str]] = {}
    for card in installed_cards():
        families.setdefault(card.family, []).append(f"tasks/{card.name}.md")
    tasks = ["tasks/index.md", *({family: pages} for family, pages in families.items())]
    config.nav = [{"Tasks": tasks} if "Tasks" in entry else entry for entry in config.nav or []]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Make the pages and their pictures."""
    listed = installed_cards()
    gifs = animations(listed)
    for card_id, gif in gifs.items():
        name = card_id.removeprefix("rlsuite/")
        files.append(File.generated(config, f"tasks/{name}.gif", content=gif))
        files.append(File.generated(config, f"tasks/{name}.png", content=still(gif)))
    start_time = time.monotonic()
    for count, card in enumerate(listed, start=1):
        files.append(
            File.generated(
                config, f"tasks/{card.name}.md", content=page(card, transcript(gifs[card.id]))
            )
        )
        if count % 25 == 0 or count == len(listed):
            left = time_left(time.monotonic() - start_time, count, len(listed))
            log.info(f"{count} of {len(listed)} task pages are written{left}")
    files.append(File.generated(config, "tasks/index.md", content=overview(listed)))
    files.append(File.generated(config, "gallery.md", content=gallery(listed)))


def overview(listed: list[TaskCard]) -> str:
    """Tabulate the tasks of each family."""
    lines = ["# Tasks", "", "The [gallery](../gallery.md) shows an episode of each.", ""]
    for family in dict.fromkeys(card.family for card in listed):
        lines += [
            f"## {family}",
            "",
            "| task | what to do | action | reference player |",
            "| --- | --- | --- | --- |",
        ]
        for card in listed:
            if card.family == family:
                player = words(card.reference.split(":")[1])
                action = describe_space(card.build().action_space)
                lines.append(
                    f"| [`{card.name}`]({card.name}.md) | {card.summary} | {action} | {player} |"
                )
        lines.append("")
    return "\n".join(lines)


def page(card: TaskCard, episode_text: str) -> str:
    """Write the page of a task, with the transcript of an episode."""
    task = card.build()
    facts = {
        "id": f"`{card.id}`",
        "source": card.source,
        "observation": describe_space(task.observation_space),
        "action": describe_space(task.action_space),
        "reward": describe_space(task.reward_space),
        "time limit": f"{card.horizon} steps",
        "difficulties": ", ".join(
            f"`{tier}` ({number:g})" for tier, number in card.difficulties.items()
        ),
        "as a question": f"difficulty is {puzzle_of(card.id).known_tiers()}" if card.puzzle else "",
        "contexts": "sampled; train and test never overlap" if card.contexts else "one",
        "objectives": ", ".join(
            f"{name} (weight {weight:g})"
            for name, weight in zip(card.objectives, card.weights)  # noqa: B905
        ),
        "trained on": f"`{card.trained_on}`, for transfer" if card.trained_on else "",
        "agents": str(card.agents) if card.agents > 1 else "",
        "optimum": "" if card.optimum is None else f"{card.optimum:g}",
        "ceiling without memory": ""
        if task.memoryless_ceiling is None
        else f"{task.memoryless_ceiling:g}",
        "constraint": str(card.constraint or ""),
        "success": rules(task.success_meaning),
        "no-op action": action_in_words(task, task.noop_action()),
        "score 0": card.zero_in_words(),
        "success by chance": card.chance_in_words(),
        "failures of the reference": card.failures_in_words(),
        "blind play": card.open_loop,
        "generalization": card.generalization,
        "partially observed": "yes: an agent needs a memory" if card.partially_observed else "",
        "tags": ", ".join(card.tags),
        **{
            f"`{name}=`": ", ".join(map(repr, allowed))
            for name, allowed in allowed_settings(card).items()
        },
    }
    text = [f"# {card.name}", "", card.summary, "", moving_picture(card, ".."), ""]
    text += ["| property | value |", "| --- | --- |"]
    text += [*(f"| {name} | {value} |" for name, value in facts.items() if value), ""]
    text += [
        "```python",
        "import gymnasium, rlbench_suite",
        "",
        f'env = gymnasium.make("{card.id}")',
        "```",
        "",
    ]
    if figures := task.key_figures():
        text += [
            "## Key figures",
            "",
            "| name | meaning | value | unit |",
            "| --- | --- | --- | --- |",
        ]
        text += [
            *(f"| `{f.name}` | {f.meaning} | {f.value} | {f.unit} |" for f in figures),
            "",
        ]
    for title, rows in component_tables(task).items():
        text += [
            f"## {title.capitalize()}{', of each agent' * (card.agents > 1)}",
            "",
            *components(rows),
            "",
        ]
    text += [
        "## Transcript",
        "",
        "The reference player in the text view, turn by turn (`rlsuite play --reference`):",
        "",
    ]
    text += ["```text", episode_text, "```", ""]
    text += [
        "## Measures",
        "",
        f"`info` has `success`, `score` (0: {card.zero_player()}; 1: the reference), and:",
        "",
    ]
    text += [f"* `{name}`: {meaning}" for name, meaning in task.measures.items()]
    text += [
        "",
        "## Measured scores",
        "",
        (
            "Mean return on the test split with its 95 % interval: `rlsuite dev calibrate "
            f"{card.name}`."
        ),
        "",
    ]
    text += ["| difficulty | player | return | interval | episodes | success | cost |"]
    text += ["| --- | --- | --- | --- | --- | --- | --- |"]
    for tier in card.difficulties or (None,):
        for player, s in card.scores(tier).items():
            success, cost = (
                "-" if value is None else f"{value:.3g}" for value in (s.success, s.cost)
            )
            row = (
                f"{tier or '-'} | {player} | {s.mean:g} | [{s.low:g}, {s.high:g}] | {s.episodes} | "
                f"{success} | {cost}"
            )
            text.append(f"| {row} |")
    text += one_shot(card) if card.puzzle else []
    module = sys.modules[type(task).__module__]
    text += ["", "## Rules", "", rules(module.__doc__ or ""), "", "## Tests", ""]
    text += [
        "Beside the checks that every id passes (`tests/adapters`, `tests/test_laws.py`):",
        "",
        *checks(card),
    ]
    text += ["", "## Versions", "", *history(card)]
    return "\n".join(text) + "\n"


def rules(docstring: str) -> str:
    """Turn the roles and literals of a docstring into Markdown."""
    return (
        re.sub(r":(?:mod|class|func|meth|attr|data):(?=`)", "", docstring)
        .replace("`~", "`")
        .replace("``", "`")
    )


def components(rows: list[Row]) -> list[str]:
    """Explain each entry of a space in a table; ``rlsuite show`` prints the same."""
    lines = [
        "| entries | name | meaning | unit | low | high |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        bounds = ("" if bound is None else f"{bound:g}" for bound in (row.low, row.high))
        words = (f"`{row.entries}`", f"`{row.name}`", row.meaning, row.unit, *bounds)
        lines.append(f"| {' | '.join(word.replace('|', chr(92) + '|') for word in words)} |")
    return lines


def one_shot(card: TaskCard) -> list[str]:
    """Show the one-shot form of a puzzle and what answers to it are worth."""
    puzzle = puzzle_of(card.id)
    instance = puzzle.generate(0, "test")
    text = [
        "",
        "## As a question with one answer",
        "",
        "```text",
        puzzle.prompt(instance),
        "```",
        "",
    ]
    text += ["An answer that scores 1:", "", "```text", puzzle.solve(instance), "```", ""]
    sizes = ((tier, puzzle_of(card.id, tier).space) for tier in card.difficulties)
    if few := [
        f"{size:,.0f} of `{tier}`" for tier, size in sizes if size < 1e6
    ]:  # 1 % of 10,000 seeds repeat one
        text += [f"Different instances number about {', '.join(few)}; seeds repeat them.", ""]
    text += [
        (
            f"Difficulty of an instance: {puzzle.difficulty_is}. Scores on test instances with 95 "
            "% intervals, and"
        )
    ]
    command = f"rlsuite dev calibrate {card.name}"
    text += [f"skill = (score - guess) / (1 - guess): `{command}`; rows `classifier` and `kind`:"]
    text += [f"`python benchmarks/audits/shortcuts.py --ids {card.name}`.", ""]
    text += ["| difficulty | player | score | interval | skill | instances |"]
    text += ["| --- | --- | --- | --- | --- | --- |"]
    for tier in card.difficulties:
        measured = card.one_shot_scores(tier)
        for player, s in measured.items():
            name = f"{player}: {PLAYERS[player]}" if player in PLAYERS else f"mean {player}"
            worth = "" if player in NO_SKILL else f"{skill(s.mean, measured['guess'].mean):.3f}"
            text.append(
                f"| {tier} | {name} | {s.mean:g} | [{s.low:g}, {s.high:g}] | {worth} | "
                f"{s.episodes} |"
            )
    return text


def checks(card: TaskCard) -> list[str]:
    """List the tests of the task's family that are about this task."""
    lines = []
    name = card.entry_point.split(":")[0].rsplit(".", 1)[1]
    family = sorted((ROOT / "tests" / card.family).glob("test_*.py"))
    paths = [path for path in family if name in path.stem]
    paths = paths or [path for path in family if card.name in path.read_text()] or family
    for path in paths:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                lines.append(
                    f"* {node.name.removeprefix('test_').replace('_', ' ')} "
                    f"(`{path.relative_to(ROOT)}`)"
                )
    return lines


def history(card: TaskCard) -> list[str]:
    """Tabulate what changed in each version of a task.

    The entries are those under *Changed* in CHANGELOG.md that name it.
    """
    name, _, latest = card.name.rpartition("-v")
    lines = ["| version | release | change |", "| --- | --- | --- |"]
    for version in range(int(latest), -1, -1):
        pattern = re.compile(rf"`(rlsuite/)?{re.escape(name)}-v{version}`")
        changes = [(release, entry) for release, entry in read_changes() if pattern.search(entry)]
        if version and not changes:
            log.warning(f"CHANGELOG.md has no entry under Changed that names `{name}-v{version}`")
        lines += [f"| v{version} | {release} | {entry} |" for release, entry in changes]
        lines += ["| v0 | | First version. |"] if version == 0 else []
    return lines


@cache
def read_changes() -> list[tuple[str, str]]:
    """Read the entries under *Changed* of every release in CHANGELOG.md, the newest first."""
    entries: list[tuple[str, str]] = []
    release = section = ""
    for line in (ROOT / "CHANGELOG.md").read_text().splitlines():
        if line.startswith("## "):
            release, section = line.removeprefix("## ").strip("[]"), ""
        elif line.startswith("### "):
            section = line.removeprefix("### ")
        elif section == "Changed" and line.startswith("- "):
            entries.append((release, line.removeprefix("- ")))
        elif section == "Changed" and line.startswith("  "):
            entries[-1] = (release, f"{entries[-1][1]} {line.strip()}")
    return entries


def describe_space(space: Any) -> str:
    """Describe a space in one line."""
    if hasattr(space, "spaces"):
        return "; ".join(
            f"{name}: {describe_space(subspace)}" for name, subspace in space.spaces.items()
        )
    if hasattr(space, "low"):
        low, high = space.low.min(), space.high.max()
        return f"`Box` of shape {space.shape}, {space.dtype}, from {low:g} to {high:g}"
    return f"`{space}`".replace("|", "\\|")


def words(name: str) -> str:
    """Return a class name as words."""
    return "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(name))

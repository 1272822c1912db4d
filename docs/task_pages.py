"""A page for every task, made from its card, its spaces, its measured scores, its tests and a played episode.

MkDocs runs this as a hook (``hooks`` in mkdocs.yml), so that a page cannot disagree with the code.
"""

from __future__ import annotations

import ast
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from PIL import Image
from reference_episode import reference_episode

from rlbench_suite.card import TaskCard
from rlbench_suite.component import Row, explained
from rlbench_suite.evaluation.one_shot import PLAYERS, skill
from rlbench_suite.puzzle_dataset import puzzle_of
from rlbench_suite.registry import allowed_settings, cards

ROOT = Path(__file__).resolve().parent.parent
FRAMES = 40


def simulated() -> list[TaskCard]:
    """The cards whose simulators are installed: PyBullet has no wheels for the newest Pythons."""
    return [card for card in cards().values() if card.installed]


def on_config(config: MkDocsConfig) -> None:
    """Put the pages into the navigation, by family."""
    families: dict[str, list[str]] = {}
    for card in simulated():
        families.setdefault(card.family, []).append(f"tasks/{card.name}.md")
    tasks = ["tasks/index.md", *({family: pages} for family, pages in families.items())]
    config.nav = [{"Tasks": tasks} if "Tasks" in entry else entry for entry in config.nav or []]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Make the pages and their pictures."""
    rows = ["# Tasks", "", "| task | family | what | reference |", "| --- | --- | --- | --- |"]
    for card in simulated():
        files.append(File.generated(config, f"tasks/{card.name}.gif", content=animation(card)))
        files.append(File.generated(config, f"tasks/{card.name}.md", content=page(card)))
        player = card.reference.split(":")[1]
        rows.append(f"| [`{card.name}`]({card.name}.md) | {card.family} | {card.summary} | {words(player)} |")
    files.append(File.generated(config, "tasks/index.md", content="\n".join(rows) + "\n"))


def page(card: TaskCard) -> str:
    """The page of a task."""
    task = card.build()
    facts = {
        "id": f"`{card.id}`",
        "source": card.source,
        "observation": space(task.observation_space),
        "action": space(task.action_space),
        "reward": space(task.reward_space),
        "time limit": f"{card.horizon} steps",
        "difficulties": ", ".join(f"`{tier}` ({number:g})" for tier, number in card.difficulties.items()),
        "contexts": "sampled; train and test never overlap" if card.contexts else "one",
        "objectives": ", ".join(f"{name} (weight {weight:g})" for name, weight in zip(card.objectives, card.weights)),  # noqa: B905
        "trained on": f"`{card.trained_on}`, for transfer" if card.trained_on else "",
        "agents": str(card.agents) if card.agents > 1 else "",
        "optimum": "" if card.optimum is None else f"{card.optimum:g}",
        "partially observed": "yes: an agent needs a memory" if card.partially_observed else "",
        "tags": ", ".join(card.tags),
        **{f"`{name}=`": ", ".join(map(repr, allowed)) for name, allowed in allowed_settings(card).items()},
    }
    text = [f"# {card.name}", "", card.summary, "", f"![Its reference player at work]({card.name}.gif)", ""]
    text += ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in facts.items() if value), ""]
    text += ["```python", "import gymnasium, rlbench_suite", "", f'env = gymnasium.make("{card.id}")', "```", ""]
    for title, found in explained(task).items():
        text += [f"## {title.capitalize()}{', of each agent' * (card.agents > 1)}", "", *components(found), ""]
    text += ["## What an episode measures", "", "`info` has `success`, `score` (0 random, 1 reference), and:", ""]
    text += [f"* `{name}`: {meaning}" for name, meaning in task.measures.items()]
    text += [
        "",
        "## Measured scores",
        "",
        f"Mean return on the test split with its 95 % interval: `rlsuite calibrate {card.name}`.",
        "",
    ]
    text += ["| difficulty | player | return | interval | episodes |", "| --- | --- | --- | --- | --- |"]
    for tier in card.difficulties or (None,):
        for player, s in card.scores(tier).items():
            text.append(f"| {tier or '-'} | {player} | {s.mean:g} | [{s.low:g}, {s.high:g}] | {s.episodes} |")
    text += one_shot(card) if card.puzzle else []
    module = sys.modules[type(task).__module__]
    text += ["", "## Rules", "", (module.__doc__ or "").replace("``", "`"), "", "## How it is checked", ""]
    text += ["Beside the checks that every id passes (`tests/adapters`, `tests/test_laws.py`):", "", *checks(card)]
    return "\n".join(text) + "\n"


def components(found: list[Row]) -> list[str]:
    """Explain each entry of a space in a table; ``rlsuite show`` prints the same."""
    lines = ["| entries | name | meaning | unit | low | high |", "| --- | --- | --- | --- | --- | --- |"]
    for row in found:
        bounds = ("" if bound is None else f"{bound:g}" for bound in (row.low, row.high))
        words = (f"`{row.entries}`", f"`{row.name}`", row.meaning, row.unit, *bounds)
        lines.append(f"| {' | '.join(word.replace('|', chr(92) + '|') for word in words)} |")
    return lines


def one_shot(card: TaskCard) -> list[str]:
    """What the one-shot form of a puzzle looks like, and what answers to it are worth."""
    puzzle = puzzle_of(card.id)
    instance = puzzle.generate(0, "test")
    text = ["", "## As a question with one answer", "", "```text", puzzle.prompt(instance), "```", ""]
    text += ["An answer that scores 1:", "", "```text", puzzle.solve(instance), "```", ""]
    sizes = ((tier, puzzle_of(card.id, tier).space) for tier in card.difficulties)
    if few := [f"{size:,.0f} of `{tier}`" for tier, size in sizes if size < 1e6]:  # 1 % of 10,000 seeds repeat one
        text += [f"Instances that differ are about {', '.join(few)}; seeds repeat them.", ""]
    text += [f"Difficulty of an instance: {puzzle.difficulty_is}. Scores on test instances with 95 % intervals, and"]
    text += [f"skill = (score - guess) / (1 - guess): `rlsuite calibrate {card.name}`.", ""]
    text += ["| difficulty | who answers | score | interval | skill | instances |"]
    text += ["| --- | --- | --- | --- | --- | --- |"]
    for tier in card.difficulties:
        measured = card.one_shot_scores(tier)
        for player, s in measured.items():
            if player == "difficulty":
                name, worth = "mean difficulty", ""
            else:
                name, worth = f"{player}: {PLAYERS[player]}", f"{skill(s.mean, measured['guess'].mean):.3f}"
            text.append(f"| {tier} | {name} | {s.mean:g} | [{s.low:g}, {s.high:g}] | {worth} | {s.episodes} |")
    return text


def checks(card: TaskCard) -> list[str]:
    """The tests of the task's family that are about this task, one line each."""
    lines = []
    name = card.entry_point.split(":")[0].rsplit(".", 1)[1]
    family = sorted((ROOT / "tests" / card.family).glob("test_*.py"))
    named = [path for path in family if name in path.stem]
    own = named or [path for path in family if card.name in path.read_text()] or family
    for path in own:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                lines.append(f"* {node.name.removeprefix('test_').replace('_', ' ')} (`{path.relative_to(ROOT)}`)")
    return lines


def animation(card: TaskCard) -> bytes:
    """An episode of the reference player on the test split, as a GIF of at most ``FRAMES`` pictures."""
    envs, states = zip(*reference_episode(card.id, min(card.horizon, 400)), strict=True)
    env = envs[0]
    shown = [states[i] for i in np.unique(np.linspace(0, len(states) - 1, FRAMES).astype(int))]
    # By an octree: a median cut gives all its colours to the background and none to what is small.
    trail: list[Any] = []
    pictures = (Image.fromarray(env.task.draw_next(state, env.params, trail)) for state in shown)
    frames = [picture.quantize(128, Image.Quantize.FASTOCTREE) for picture in pictures]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=5000 // len(frames), loop=0)
    return buffer.getvalue()


def space(shown: Any) -> str:
    """A space in one line."""
    if hasattr(shown, "spaces"):
        return "; ".join(f"{name}: {space(part)}" for name, part in shown.spaces.items())
    if hasattr(shown, "low"):
        low, high = shown.low.min(), shown.high.max()
        return f"`Box` of shape {shown.shape}, {shown.dtype}, from {low:g} to {high:g}"
    return f"`{shown}`".replace("|", "\\|")


def words(name: str) -> str:
    """A class name in words."""
    return "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(name))

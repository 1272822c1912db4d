"""Instances of the large office.

Each has a world, an instruction, the world that must be reached, and the oracle's calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from rlbench_suite.puzzle.dice import Dice, stream_of

from .apps.apis import ROW_API_NUMBERS, ROW_APIS
from .apps.assistant import ANSWER, FINISH, REFUSE
from .population import random_rows
from .rows import World, distance
from .templates import calendar, contacts, mail, messages, music, payments, shop, tasks_and_notes
from .templates.row_template import Call, Refused, Scene, Template, call

TEMPLATES = tuple(
    template
    for app in (contacts, calendar, payments, mail, messages, tasks_and_notes, music, shop)
    for template in app.TEMPLATES
)
TIERS = {
    tier: tuple(template for template in TEMPLATES if template.tier == tier) for tier in (1, 2, 3)
}
OBSTACLES = 6
"""One in this many instances of a template that knows obstacles has one."""
_STREAM = stream_of("OfficeApps instance")


@dataclass(frozen=True, eq=False)
class Instance:
    """An instance.

    Attributes:
        number: number of the template in its tier.
        template: the template.
        start: the world at first.
        gaps: values of the instruction's gaps, by name.
        instruction: the sentence.
        reason: reason for which it must be refused, or nothing.
        goal: the world that must be reached.
        ending: call that must end the episode.
        solution: the oracle's calls, the last one included.
        start_distance: :func:`~.rows.distance` from start to goal.
    """

    number: int
    template: Template
    start: World
    gaps: dict[str, Any]
    instruction: str
    reason: str
    goal: World
    ending: Call
    solution: tuple[Call, ...]
    start_distance: int


@lru_cache(maxsize=512)
def instance(tier: int, split: int, number: int) -> Instance:
    """Return the instance of a number: templates of the split in turn, some with an obstacle."""
    dice = Dice(_STREAM, number, 2 * tier + split)
    templates = [template for template in TIERS[tier] if template.test == bool(split)]
    template = templates[dice.share(len(templates))]
    has_obstacle = bool(template.reasons) and dice.below(OBSTACLES) == 0
    reason = dice.choice(template.reasons) if has_obstacle else ""
    return plant_instance(template, dice, reason)


def plant_instance(template: Template, dice: Dice, reason: str) -> Instance:
    """Return an instance of a template in a random world, with an obstacle or without.

    The people of the world are those of the template's split.
    """
    scene = Scene(dice, random_rows(dice, int(template.test)), reason)
    outcome = template.plant(scene)
    goal, answer = outcome if isinstance(outcome, tuple) else (outcome, None)
    start = scene.world
    ending = call(FINISH.name) if answer is None else call(ANSWER.name, text=str(answer))
    if reason:
        goal = start
        ending = call(REFUSE.name, reason=reason)
    return Instance(
        number=TIERS[template.tier].index(template),
        template=template,
        start=start,
        gaps=scene.gaps,
        instruction=dice.choice(template.wordings).format(**scene.gaps),
        reason=reason,
        goal=goal,
        ending=ending,
        solution=solve(template, start, scene.gaps),
        start_distance=distance(start, goal, start),
    )


def solve(template: Template, start: World, gaps: dict[str, Any]) -> tuple[Call, ...]:
    """Return the calls of a template's plan, which sees the instruction and what its calls show."""
    world = start
    calls = []
    plan = template.plan(SimpleNamespace(**gaps))
    try:
        next_call = next(plan)
        while True:
            calls.append(next_call)
            name, arguments = next_call
            world, rows = ROW_APIS[ROW_API_NUMBERS[name]].effect(world, **arguments)
            next_call = plan.send(rows)
    except StopIteration as end:
        calls.append(
            call(FINISH.name) if end.value is None else call(ANSWER.name, text=str(end.value))
        )
    except Refused as refusal:
        calls.append(call(REFUSE.name, reason=str(refusal)))
    return tuple(calls)

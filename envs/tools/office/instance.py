"""Instances: a world, an instruction, the world that must be reached, and the oracle's calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from rlbench_suite.dice import Dice, stream_of

from .row_apis import ANSWER, APIS, FINISH, NUMBER, REFUSE
from .row_population import population
from .rows import World, distance
from .templates import calendar, contacts, mail, messages, music, payments, shop, tasks_and_notes
from .templates.row_template import Call, Refused, Scene, Template, call

TEMPLATES = tuple(
    one for app in (contacts, calendar, payments, mail, messages, tasks_and_notes, music, shop) for one in app.TEMPLATES
)
TIERS = {tier: tuple(one for one in TEMPLATES if one.tier == tier) for tier in (1, 2, 3)}
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
        said: values of the instruction's gaps, by name.
        instruction: the sentence.
        reason: reason for which it must be refused, or nothing.
        wanted: the world that must be reached.
        ending: call that must end the episode.
        solution: the oracle's calls, the last one included.
        far: :func:`~.world.distance` from start to wanted.
    """

    number: int
    template: Template
    start: World
    said: dict[str, Any]
    instruction: str
    reason: str
    wanted: World
    ending: Call
    solution: tuple[Call, ...]
    far: int


@lru_cache(maxsize=512)
def instance(tier: int, split: int, number: int) -> Instance:
    """Return the instance of a number: templates of the split in turn, some with an obstacle."""
    dice = Dice(_STREAM, number, 2 * tier + split)
    places = [place for place, one in enumerate(TIERS[tier]) if one.test == bool(split)]
    one = TIERS[tier][places[dice.share(len(places))]]
    reason = dice.choice(one.reasons) if one.reasons and dice.below(OBSTACLES) == 0 else ""
    return planted(one, dice, reason)


def planted(one: Template, dice: Dice, reason: str) -> Instance:
    """Return an instance of a template in a random world of people of its split, with an obstacle or without."""
    scene = Scene(dice, population(dice, int(one.test)), reason)
    found = one.plant(scene)
    wanted, answer = found if isinstance(found, tuple) else (found, None)
    start, said = scene.world, scene.said
    ending = call(FINISH) if answer is None else call(ANSWER, text=str(answer))
    if reason:
        wanted, ending = start, call(REFUSE, reason=reason)
    return Instance(
        TIERS[one.tier].index(one), one, start, said, dice.choice(one.wordings).format(**said), reason, wanted, ending,
        solution(one, start, said), distance(start, wanted, start),
    )  # fmt: skip


def solution(one: Template, start: World, said: dict[str, Any]) -> tuple[Call, ...]:
    """Return the calls of a template's plan, which sees the instruction and what its calls show."""
    world, made = start, []
    plan = one.plan(SimpleNamespace(**said))
    try:
        following = next(plan)
        while True:
            made.append(following)
            name, arguments = following
            world, rows = APIS[NUMBER[name]].effect(world, **arguments)
            following = plan.send(rows)
    except StopIteration as end:
        made.append(call(FINISH) if end.value is None else call(ANSWER, text=str(end.value)))
    except Refused as refusal:
        made.append(call(REFUSE, reason=str(refusal)))
    return tuple(made)

"""The compiled office as a picture of its three apps."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ..shared.page import ALARM, BAR, INK, LINE, PALE, PAPER, RULE
from .apps.apis import COLUMN_APIS
from .apps.column_api import Ending, Error, State
from .apps.kinds import CITY, NAME, PHONE, PLACE, RELATION, TIME, TITLE
from .columns import CONTACTS, REQUESTS, TRANSFERS, Direction
from .documentation import value_of
from .words import DIRECTIONS, STATUSES

WIDTH, HEIGHT = 900, 520


def picture(state: State, instruction: str, title: str) -> np.ndarray:
    """Draw contacts, calendar and payments side by side, uint8 ``(HEIGHT, WIDTH, 3)``.

    What was not shown yet is pale.
    """
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(13)
    small_font = ImageFont.load_default(11)
    pen.rectangle((0, 0, WIDTH, 58), fill=BAR)
    for i, line in enumerate(textwrap.wrap(instruction, 120)[:2]):
        pen.text((12, 8 + LINE * i), line, "white", font)
    api = COLUMN_APIS[int(state.api)].name
    error = Error(int(state.error)).name.lower() if int(state.error) else "ok"
    over = (
        ""
        if int(state.ending) == Ending.RUNNING
        else f"   over: {Ending(int(state.ending)).name.lower()}"
    )
    pen.text(
        (12, 66),
        f"{title}   last call: {api}   {error}{over}",
        ALARM if int(state.error) else INK,
        font,
    )
    columns = (
        ("contacts", 12, _contacts(state)),
        ("calendar", 312, _events(state)),
        ("payments", 612, _payments(state)),
    )
    for app, x, lines in columns:
        pen.text((x, 92), app, BAR, font)
        pen.line((x, 110, x + 276, 110), RULE, 2)
        for i, (text, is_known) in enumerate(lines):
            pen.text((x, 116 + LINE * i), text, INK if is_known else PALE, small_font)
    return np.asarray(image)


def _contains(mask: Any, index: int) -> bool:
    return bool(int(mask) >> index & 1)


def _contacts(state: State) -> list[tuple[str, bool]]:
    world = state.world
    return [
        (
            f"{i + 1:2d}  {value_of(NAME, int(world.name[i]))}, "
            f"{value_of(CITY, int(world.city[i])) or '-'}, "
            f"{value_of(RELATION, int(world.relation[i])) or '-'}, "
            f"{value_of(PHONE, int(world.phone[i]))}",
            _contains(state.notebook.entries, i),
        )
        for i in range(CONTACTS)
        if world.name[i]
    ]


def _events(state: State) -> list[tuple[str, bool]]:
    world = state.world
    lines = []
    for i in np.argsort(np.asarray(world.time), kind="stable"):
        if world.title[i]:
            guests = ",".join(str(k + 1) for k in range(CONTACTS) if _contains(world.guests[i], k))
            words = (
                f"{value_of(TIME, int(world.time[i]))}  {i + 1}: "
                f"{value_of(TITLE, int(world.title[i]))}"
            )
            place = value_of(PLACE, int(world.place[i])) or "-"
            lines.append(
                (
                    f"{words}, {place}, guests {guests or '-'}",
                    _contains(state.notebook.events, int(i)),
                )
            )
    return lines


def _payments(state: State) -> list[tuple[str, bool]]:
    world = state.world
    notebook = state.notebook
    lines = [
        (
            f"balance {int(world.balance)}, savings {int(world.savings)} euros",
            bool(notebook.accounts),
        )
    ]
    for i in range(REQUESTS):
        if world.request_contact[i]:
            direction = DIRECTIONS[int(world.request_direction[i]) - 1]
            status = STATUSES[int(world.request_status[i]) - 1]
            who = int(world.request_contact[i])
            amount = int(world.request_amount[i])
            lines.append(
                (
                    f"request {i + 1}: {direction}, contact {who}, {amount} euros, {status}",
                    _contains(notebook.requests, i),
                )
            )
    for i in range(TRANSFERS):
        if world.transfer_contact[i]:
            verb = (
                "sent to" if int(world.transfer_direction[i]) == Direction.OUTGOING else "got from"
            )
            who = int(world.transfer_contact[i])
            amount = int(world.transfer_amount[i])
            lines.append(
                (f"{verb} contact {who}: {amount} euros", _contains(notebook.transfers, i))
            )
    return lines

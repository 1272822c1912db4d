"""All APIs of the office: their order is the first part of an action."""

from __future__ import annotations

from ..shared.tool import Argument, Tool
from .apps import calendar, contacts, mail, messages, music, notes, payments, shop, tasks
from .row_api import Api, Rows, words
from .rows import World
from .values import TEXT
from .words import REASONS


def _nothing(world: World, **given: object) -> tuple[World, Rows]:
    return world, ()


def _assistant(name: str, sentence: str, **arguments: Argument) -> Api:
    return Api(Tool(name, sentence, arguments), _nothing, changes=False)


APPS = {
    "contacts": contacts.APIS,
    "calendar": calendar.APIS,
    "payments": payments.APIS,
    "mail": mail.APIS,
    "messages": messages.APIS,
    "tasks": tasks.APIS,
    "notes": notes.APIS,
    "music": music.APIS,
    "shop": shop.APIS,
}
WAIT = _assistant("assistant_wait", "Let a turn pass. Nothing happens.")
FINISH = _assistant("assistant_finish", "Say that the instruction is carried out. It ends the episode.")
ANSWER = _assistant("assistant_answer", "Answer the user's question. It ends the episode.", text=TEXT)
REFUSE = _assistant(
    "assistant_refuse", "Say why the instruction cannot be carried out. It ends the episode.",
    reason=words("the reason", REASONS),
)  # fmt: skip
ENDINGS = (FINISH, ANSWER, REFUSE)
APIS = (WAIT, *ENDINGS, *(one for app in APPS.values() for one in app))
NUMBER = {one.name: number for number, one in enumerate(APIS)}
MOST_ARGUMENTS = max(len(one.tool.arguments) for one in APIS)

"""The app ``assistant``: how a player ends an episode."""

from __future__ import annotations

from typing import Any

from ...shared.tool import Argument, Tool
from ..rows import World
from ..values import TEXT
from ..words import REASONS
from . import kinds
from .column_api import Ending, State, api
from .row_api import Api, Rows, one_of

# -- the compiled office ---------------------------------------------------------------------------


@api("assistant.docs", returns="this documentation")
def docs(state: State) -> State:
    """Show the documentation again."""
    return state


@api("assistant.finish", returns="nothing: it ends the episode")
def finish(state: State) -> State:
    """Say that the instruction is carried out."""
    return state._replace(ending=state.ending * 0 + Ending.FINISHED)


@api("assistant.answer", returns="nothing: it ends the episode", number=kinds.NUMBER)
def answer(state: State, number: Any) -> State:
    """Answer the user's question with a number."""
    return state._replace(ending=state.ending * 0 + Ending.ANSWERED, reply=number)


@api("assistant.refuse", returns="nothing: it ends the episode", reason=kinds.REASON)
def refuse(state: State, reason: Any) -> State:
    """Say that the instruction cannot be carried out, and why."""
    return state._replace(ending=state.ending * 0 + Ending.REFUSED, reply=reason)


COLUMN_APIS = (docs, finish, answer, refuse)


# -- the large office ------------------------------------------------------------------------------


def _change_nothing(world: World, **arguments: object) -> tuple[World, Rows]:
    return world, ()


def _assistant(name: str, sentence: str, **arguments: Argument) -> Api:
    return Api(Tool(name, sentence, arguments), _change_nothing, changes=False)


WAIT = _assistant("assistant_wait", "Let a turn pass. Nothing happens.")
FINISH = _assistant(
    "assistant_finish", "Say that the instruction is carried out. It ends the episode."
)
ANSWER = _assistant(
    "assistant_answer", "Answer the user's question. It ends the episode.", text=TEXT
)
REFUSE = _assistant(
    "assistant_refuse",
    "Say why the instruction cannot be carried out. It ends the episode.",
    reason=one_of("the reason", REASONS),
)
ENDINGS = (FINISH, ANSWER, REFUSE)
ROW_APIS = (WAIT, *ENDINGS)

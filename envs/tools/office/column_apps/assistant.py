"""The app ``assistant``: how a player ends an episode."""

from __future__ import annotations

from typing import Any

from ..column_api import NUMBER, REASON, Ending, State, api


@api("assistant.docs", returns="this documentation")
def docs(state: State) -> State:
    """Show the documentation again."""
    return state


@api("assistant.finish", returns="nothing: it ends the episode")
def finish(state: State) -> State:
    """Say that the instruction is carried out."""
    return state._replace(ending=state.ending * 0 + Ending.FINISHED)


@api("assistant.answer", returns="nothing: it ends the episode", number=NUMBER)
def answer(state: State, number: Any) -> State:
    """Answer the user's question with a number."""
    return state._replace(ending=state.ending * 0 + Ending.ANSWERED, said=number)


@api("assistant.refuse", returns="nothing: it ends the episode", reason=REASON)
def refuse(state: State, reason: Any) -> State:
    """Say that the instruction cannot be carried out, and why."""
    return state._replace(ending=state.ending * 0 + Ending.REFUSED, said=reason)


APIS = (docs, finish, answer, refuse)

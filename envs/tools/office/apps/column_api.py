"""APIs of the compiled office.

Calls, masks, documentation and JSON all follow from one declaration.

An API is a pure function ``effect(state, **arguments) -> state``. Arguments are whole numbers from
1 on; each has a :class:`Kind`, which gives the number's meaning and the part of the action that
carries it. An API takes at most one argument of a part, so an action ``(api, contact, record, word,
number)`` can express every call.

A call that fails changes nothing but the error that the caller sees, like a transaction that is
rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Int, UInt32

from ...shared.reward_modes import Tally
from ..columns import World
from .kinds import ActionPart, Kind


class Error(IntEnum):
    """Reasons for which a call fails."""

    NONE = 0
    INVALID_ARGUMENT = 1
    NOT_FOUND = 2
    INSUFFICIENT_FUNDS = 3
    TIME_TAKEN = 4
    ALREADY_SO = 5
    NOT_OPEN = 6
    WRONG_DIRECTION = 7


class Ending(IntEnum):
    """Ways in which the player can end the episode."""

    RUNNING = 0
    FINISHED = 1
    REFUSED = 2
    ANSWERED = 3


class Notebook(NamedTuple):
    """Everything that the player has been shown, as sets.

    With it, one look tells as much as the whole history.

    The sets hold: contacts whose id, directory entry (name and city), relation, phone number is
    known; events whose entry (title, time, place), guest list is known; requests; transfers; times
    known to be free or taken. ``accounts`` says whether the balances are known. Then come the
    questions asked, since an empty answer is an answer too.
    """

    contacts: UInt32
    entries: UInt32
    relations: UInt32
    phones: UInt32
    events: UInt32
    guests: UInt32
    requests: UInt32
    transfers: UInt32
    times: UInt32
    accounts: UInt32
    asked_names: UInt32
    asked_cities: UInt32
    asked_relations: UInt32
    asked_titles: UInt32
    asked_requests: UInt32
    asked_transfers: UInt32


class Result(NamedTuple):
    """Result of the last call: sets of rows and of times."""

    contacts: UInt32
    events: UInt32
    requests: UInt32
    transfers: UInt32
    times: UInt32


class State(NamedTuple):
    """The world, and the player's situation in it. All numbers int32, all sets uint32."""

    world: World
    notebook: Notebook
    result: Result
    api: Int
    """The last call's API; 0 (the documentation) at the start."""
    error: Int
    """Its :class:`Error`, or 0."""
    ending: Int
    """:class:`Ending`."""
    reply: Int
    """The reason of a refusal, or the number of an answer."""
    tally: Tally | None = None
    """Tally of the calls made; None where the reward does not ask."""

    def learn(self, **sets: Any) -> State:
        """Add sets to those of the notebook, by name."""
        united = {name: getattr(self.notebook, name) | rows for name, rows in sets.items()}
        return self._replace(notebook=self.notebook._replace(**united))

    def show(self, **sets: Any) -> State:
        """Set the result of the call."""
        return self._replace(result=self.result._replace(**sets))

    def change(self, **columns: Any) -> State:
        """Replace columns of the world."""
        return self._replace(world=self.world._replace(**columns))

    def fail_if(self, *checks: tuple[Any, Error]) -> State:
        """Set the error of the first check that holds."""
        error = jnp.int32(Error.NONE)
        for failed, code in reversed(checks):
            error = jnp.where(failed, code, error)
        return self._replace(error=error)


@dataclass(frozen=True)
class Api:
    """One API, as declared."""

    name: str
    summary: str
    returns: str
    arguments: dict[str, Kind]
    errors: tuple[Error, ...]
    room: str
    """Column of :class:`World` in whose table the call needs a free row, or nothing."""
    effect: Callable[..., State]
    """Effect of a call; the declared functions carry their :class:`Api` as attribute ``api``."""


def api(
    name: str,
    /,
    *,
    returns: str = "ok",
    errors: tuple[Error, ...] = (),
    room: str = "",
    **arguments: Kind,
) -> Callable[[Callable[..., State]], Api]:
    """Declare a function as an API; its docstring is the summary.

    Raises:
        ValueError: two arguments share a part of the action.
    """
    action_parts = [kind.action_part for kind in arguments.values()]
    if len(set(action_parts)) < len(action_parts):
        raise ValueError(f"{name}: an API takes at most one argument of each part of an action.")

    def declare(effect: Callable[..., State]) -> Api:
        text = " ".join((effect.__doc__ or "").split())
        return Api(name, text, returns, arguments, errors, room, effect)

    return declare


def carry_out(apis: Sequence[Api], state: State, action: jax.Array) -> State:
    """Return the state after one call. ``action``: int32 ``(5,)``."""
    before = state._replace(result=Result(*(jnp.uint32(0) for _ in Result._fields)))
    before = before._replace(
        api=action[ActionPart.API].astype(jnp.int32), error=jnp.int32(Error.NONE)
    )
    treedef: Any = jax.tree.structure(before)
    leaves = jax.tree.leaves(before)
    next_leaves = list(leaves)
    error = before.error
    for number, api in enumerate(apis):
        arguments = {
            name: action[kind.action_part].astype(jnp.int32) for name, kind in api.arguments.items()
        }
        valid = jnp.bool_(True)
        for name, kind in api.arguments.items():
            valid &= (arguments[name] > 0) & (arguments[name] <= kind.size)
        outcome = api.effect(before, **arguments)
        code = jnp.where(valid, outcome.error, Error.INVALID_ARGUMENT).astype(jnp.int32)
        is_called = before.api == number
        happens = is_called & (code == Error.NONE)
        error = jnp.where(is_called, code, error)
        # Most calls leave most of the state alone: those leaves are the same objects, and cost
        # nothing.
        for i, (new, old) in enumerate(zip(treedef.flatten_up_to(outcome), leaves, strict=True)):
            if new is not old:
                next_leaves[i] = jnp.where(happens, new, next_leaves[i]).astype(old.dtype)
    return treedef.unflatten(next_leaves)._replace(error=error)

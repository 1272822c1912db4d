"""Templates of the compiled office.

Each says how to plant an instance, what must be true at the end, and how to get there.

A :class:`Template` holds all three. The judge and the oracle share no state beyond the instruction:
the judge compares the real worlds before and after, the oracle plans from what the APIs have shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Int, IntArray, UInt32, UInt32Array

from ..apps import assistant, contacts
from ..apps.apis import COLUMN_API_NUMBERS
from ..apps.column_api import Api, Error, Notebook, Result, State
from ..apps.kinds import ActionPart, Reason
from ..columns import (
    Status,
    World,
    bit,
    busy_times,
    cell,
    contacts_named,
    flags_of,
    lowest_row,
    put,
    rows,
    size,
)


class Ask(NamedTuple):
    """An instruction: its template and the values of its gaps, int32 scalars.

    Gaps that it does not have are 0.
    """

    template: Int
    contact: Int = 0
    event: Int = 0
    request: Int = 0
    name: Int = 0
    city: Int = 0
    relation: Int = 0
    day: Int = 0
    title: Int = 0
    place: Int = 0
    number: Int = 0
    """Euros, a time or a phone number, as the template says."""
    limit: Int = 0
    """Euros: the most that may be sent in one payment."""


class Cast(NamedTuple):
    """Roles in an instance: ids in random order, so that a fixed place is a random row."""

    contacts: IntArray
    """``(12,)``; those up to the size of the crowd exist."""
    events: IntArray
    requests: IntArray
    transfers: IntArray
    stranger: Int
    """A first name that no contact has."""
    new_title: Int
    """A title that no event has."""
    new_phone: Int
    """A phone number that no contact has."""
    free_time: Int
    """A time without an event."""
    hometowns: IntArray
    """Three cities in which the first contact's namesakes may live, its own first."""
    dice: UInt32Array
    """``(8,)`` uint32, free to use."""

    def roll(self, die: int, low: Any, high: Any) -> jax.Array:
        """Draw a number from ``low`` to ``high``."""
        span = jnp.asarray(high - low + 1, jnp.uint32)
        return (low + (self.dice[die] % span).astype(jnp.int32)).astype(jnp.int32)


class Scene(NamedTuple):
    """An instance in the making."""

    world: World
    ask: Ask
    cast: Cast

    def set(self, **columns: Any) -> Scene:
        """Replace columns of the world."""
        return self._replace(world=self.world._replace(**columns))

    def set_request(
        self, row: Any, contact: Any, amount: Any, direction: Any, status: Any = Status.OPEN
    ) -> Scene:
        """Replace a row of the requests."""
        world = self.world
        return self.set(
            request_contact=put(world.request_contact, row, contact),
            request_amount=put(world.request_amount, row, amount),
            request_direction=put(world.request_direction, row, direction),
            request_status=put(world.request_status, row, status),
        )

    def set_time(self, event: Any, time: Any) -> Scene:
        """Move an event to a time; an event that was there gets its old time."""
        times = self.world.time
        return self.set(time=put(jnp.where(times == time, cell(times, event), times), event, time))

    def say(self, **gaps: Any) -> Scene:
        """Fill gaps of the instruction."""
        return self._replace(ask=self.ask._replace(**gaps))


class Sight(NamedTuple):
    """Everything that a player has been shown: the only input of an oracle program."""

    ask: Ask
    world: World
    """The world, with 0 for everything that was never shown."""
    notebook: Notebook
    result: Result
    api: Int
    error: Int
    busy_times: UInt32
    """Times known to be taken."""


Plan = Sequence[tuple[Any, jax.Array]]
"""Conditions and calls; the call of the first condition that holds is made."""


@dataclass(frozen=True)
class Template:
    """One kind of instruction.

    Attributes:
        name: short name.
        specification: condition that must be true at the end, in exact words; everything else must
            be as it was.
        wordings: sentences with gaps, all of one meaning.
        touches: the columns of the world that a right outcome may change.
        reasons: reasons for which the instruction may have to be refused.
        plant: makes room for the instruction in a random scene, with the obstacle ``reason`` (0:
            none).
        outcome: the world that must be reached, from the world at the start, the instruction, and
            the world reached (for choices that the instruction leaves open).
        plan: the oracle program.
        answer: the number to answer with, for questions.
    """

    name: str
    specification: str
    wordings: tuple[str, ...]
    touches: frozenset[str]
    plant: Callable[[Scene, Any], Scene]
    outcome: Callable[[World, Ask, World], World]
    plan: Callable[[Sight], Plan]
    reasons: tuple[Reason, ...] = ()
    answer: Callable[[World, Ask], jax.Array] | None = None


def choose(number: Any, options: Sequence[Any], base: Any) -> Any:
    """Return ``options[number]``, leaf by leaf.

    Leaves that an option shares with ``base`` cost nothing.
    """
    treedef: Any = jax.tree.structure(base)
    leaves = jax.tree.leaves(base)
    selected = list(leaves)
    for i, option in enumerate(options):
        for j, (new, old) in enumerate(zip(treedef.flatten_up_to(option), leaves, strict=True)):
            if new is not old:
                selected[j] = jnp.where(number == i, new, selected[j]).astype(
                    jnp.asarray(old).dtype
                )
    return treedef.unflatten(selected)


# -- steps of oracle programs ----------------------------------------------------------------------


def call(api: Api, /, **arguments: Any) -> jax.Array:
    """Return the action that calls an API, int32 ``(5,)``."""
    action: list[Any] = [0] * len(ActionPart)
    action[ActionPart.API] = COLUMN_API_NUMBERS[api.name]
    for name, value in arguments.items():
        action[api.arguments[name].action_part] = value
    return jnp.stack([jnp.asarray(number, jnp.int32) for number in action])


def first_call_of(plan: Plan) -> jax.Array:
    """Return the call of the first condition that holds, or the last call if none does."""
    first_call = plan[-1][1]
    for holds, action in reversed(plan[:-1]):
        first_call = jnp.where(holds, action, first_call)
    return first_call


def sight_of(state: State, ask: Ask) -> Sight:
    """Return a player's view: the world as far as it was shown. Takes arrays of JAX or of NumPy."""
    world = state.world
    notebook = state.notebook

    def visible(mask: Any, *columns: str) -> dict[str, Any]:
        flags = flags_of(mask, getattr(world, columns[0]).shape[-1])
        return {column: getattr(world, column) * flags for column in columns}

    visible_world = World(
        **visible(notebook.entries, "name", "city"),
        **visible(notebook.relations, "relation"),
        **visible(notebook.phones, "phone"),
        **visible(notebook.events, "title", "time", "place"),
        **visible(notebook.guests, "guests"),
        **visible(
            notebook.requests,
            "request_contact",
            "request_amount",
            "request_direction",
            "request_status",
        ),
        **visible(notebook.transfers, "transfer_contact", "transfer_amount", "transfer_direction"),
        balance=world.balance * (notebook.accounts > 0),
        savings=world.savings * (notebook.accounts > 0),
    )
    busy = busy_times(world) & notebook.times
    return Sight(ask, visible_world, notebook, state.result, state.api, state.error, busy)


def has_succeeded(see: Sight, api: Api) -> jax.Array:
    """Say whether the last call was of that API, and went through."""
    return (see.api == COLUMN_API_NUMBERS[api.name]) & (see.error == Error.NONE)


def refuse(reason: Any) -> jax.Array:
    """Return the action that refuses."""
    return call(assistant.refuse, reason=reason)


# -- names of contacts -----------------------------------------------------------------------------


def person(world: World, ask: Ask) -> jax.Array:
    """Return the contact of that name (and city), or 0 if none or several fit.

    Real worlds and partial views have the same form.
    """
    namesakes = contacts_named(world, ask.name, ask.city)
    return jnp.where(size(namesakes) == 1, lowest_row(namesakes), 0)


def by_name(scene: Scene, reason: Any) -> Scene:
    """Name the first of the cast by first name in the instruction.

    The name is unique unless ``reason`` says otherwise.
    """
    world = scene.world
    cast = scene.cast
    hero = cast.contacts[0]
    twin = cast.contacts[1]
    name = cell(world.name, hero)
    ambiguous = reason == Reason.AMBIGUOUS_CONTACT
    planted = scene.set(
        name=jnp.where(ambiguous & (rows(world.name) == twin), name, world.name),
        city=jnp.where(ambiguous & (rows(world.name) == twin), cast.hometowns[1], world.city),
    )
    return planted.say(name=jnp.where(reason == Reason.NO_SUCH_CONTACT, cast.stranger, name))


def by_name_and_city(scene: Scene, reason: Any) -> Scene:
    """Name the same by first name and city, among namesakes from other cities."""
    world = scene.world
    cast = scene.cast
    hero = cast.contacts[0]
    twin = cast.contacts[1]
    name = cell(world.name, hero)
    twin_city = jnp.where(reason == Reason.AMBIGUOUS_CONTACT, cast.hometowns[0], cast.hometowns[1])
    planted = scene.set(
        name=jnp.where(rows(world.name) == twin, name, world.name),
        city=jnp.where(rows(world.name) == twin, twin_city, world.city),
    )
    city = jnp.where(reason == Reason.NO_SUCH_CONTACT, cast.hometowns[2], cast.hometowns[0])
    return planted.say(name=name, city=city)


def find_person(see: Sight) -> tuple[jax.Array, Plan]:
    """Find the meant contact; also return the steps by which a plan finds it, or refuses."""
    namesakes = contacts_named(see.world, see.ask.name, see.ask.city)
    return lowest_row(namesakes), (
        (
            see.notebook.asked_names & bit(see.ask.name) == 0,
            call(contacts.search_by_name, name=see.ask.name),
        ),
        (namesakes == 0, refuse(Reason.NO_SUCH_CONTACT)),
        (size(namesakes) > 1, refuse(Reason.AMBIGUOUS_CONTACT)),
    )

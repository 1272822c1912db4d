"""The app ``calendar``: events of one hour, never two at a time.

The compiled office has four days, the large one five.
"""

from __future__ import annotations

from typing import Any

from .. import words
from ..columns import (
    bit,
    busy_times,
    cell,
    events_on,
    events_titled,
    free_row,
    has,
    hours_of,
    put,
    remove_event,
    used_rows,
)
from ..rows import World, edit_row
from . import kinds
from .column_api import Error, State, api
from .row_api import (
    Failed,
    Rows,
    add_row,
    find_row,
    getter,
    lister,
    one_of,
    reads,
    remover,
    row_id,
    select_rows,
    setter,
    writes,
)

# -- the compiled office ---------------------------------------------------------------------------

EVENT_LIST = "list of {event, title, time, place}"


@api("calendar.list_day", returns=EVENT_LIST, day=kinds.DAY)
def list_day(state: State, day: Any) -> State:
    """List the events of a day."""
    events = events_on(state.world, day)
    return state.show(events=events).learn(events=events, times=hours_of(day))


@api("calendar.find", returns=EVENT_LIST, title=kinds.TITLE)
def find(state: State, title: Any) -> State:
    """Find the events of a title, on any day."""
    events = events_titled(state.world, title)
    return state.show(events=events).learn(events=events, asked_titles=bit(title))


@api(
    "calendar.get",
    returns="{event, title, time, place, guests}",
    errors=(Error.NOT_FOUND,),
    event=kinds.EVENT,
)
def get(state: State, event: Any) -> State:
    """Show all of one event; guests are ids of contacts."""
    row = bit(event)
    next_state = state.show(events=row).learn(
        events=row, guests=row, contacts=cell(state.world.guests, event)
    )
    return next_state.fail_if(_missing(state, event))


@api("calendar.free_times", returns="list of times", day=kinds.DAY)
def free_times(state: State, day: Any) -> State:
    """List the hours of a day without an event."""
    hours = hours_of(day)
    return state.show(times=hours & ~busy_times(state.world)).learn(times=hours)


@api(
    "calendar.create", returns="{event, title, time, place}", errors=(Error.TIME_TAKEN,),
    room="title", title=kinds.TITLE, time=kinds.TIME,
)  # fmt: skip
def create(state: State, title: Any, time: Any) -> State:
    """Add an event without place or guests."""
    world = state.world
    row = free_row(world.title)
    created = state.change(
        title=put(world.title, row, title), time=put(world.time, row, time)
    ).show(events=bit(row))
    next_state = created.learn(events=bit(row), guests=bit(row), times=bit(time))
    return next_state.fail_if((has(busy_times(world), time), Error.TIME_TAKEN))


@api("calendar.cancel", errors=(Error.NOT_FOUND,), event=kinds.EVENT)
def cancel(state: State, event: Any) -> State:
    """Delete an event."""
    return state._replace(world=remove_event(state.world, event)).fail_if(_missing(state, event))


@api(
    "calendar.move",
    errors=(Error.NOT_FOUND, Error.ALREADY_SO, Error.TIME_TAKEN),
    event=kinds.EVENT,
    time=kinds.TIME,
)
def move(state: State, event: Any, time: Any) -> State:
    """Give an event another time."""
    moved = state.change(time=put(state.world.time, event, time)).learn(times=bit(time))
    is_there = cell(state.world.time, event) == time
    return moved.fail_if(
        _missing(state, event),
        (is_there, Error.ALREADY_SO),
        (has(busy_times(state.world), time), Error.TIME_TAKEN),
    )


@api("calendar.set_place", errors=(Error.NOT_FOUND,), event=kinds.EVENT, place=kinds.PLACE)
def set_place(state: State, event: Any, place: Any) -> State:
    """Set or change the place of an event."""
    return state.change(place=put(state.world.place, event, place)).fail_if(_missing(state, event))


@api(
    "calendar.invite",
    errors=(Error.NOT_FOUND, Error.ALREADY_SO),
    event=kinds.EVENT,
    contact=kinds.CONTACT,
)
def invite(state: State, event: Any, contact: Any) -> State:
    """Add a contact to the guests of an event."""
    guests = cell(state.world.guests, event)
    invited = state.change(guests=put(state.world.guests, event, guests | bit(contact)))
    return invited.fail_if(
        _missing(state, event),
        (~has(used_rows(state.world.name), contact), Error.NOT_FOUND),
        (has(guests, contact), Error.ALREADY_SO),
    )


@api(
    "calendar.uninvite",
    errors=(Error.NOT_FOUND, Error.ALREADY_SO),
    event=kinds.EVENT,
    contact=kinds.CONTACT,
)
def uninvite(state: State, event: Any, contact: Any) -> State:
    """Take a contact off the guests of an event."""
    guests = cell(state.world.guests, event)
    uninvited = state.change(guests=put(state.world.guests, event, guests & ~bit(contact)))
    return uninvited.fail_if(_missing(state, event), (~has(guests, contact), Error.ALREADY_SO))


def _missing(state: State, event: Any) -> tuple[Any, Error]:
    return ~has(used_rows(state.world.title), event), Error.NOT_FOUND


COLUMN_APIS = (list_day, find, get, free_times, create, cancel, move, set_place, invite, uninvite)


# -- the large office ------------------------------------------------------------------------------

DAY, TIME = one_of("day", words.DAYS), one_of("day and hour", words.TIMES)
TITLE, PLACE = one_of("title of an event", words.EVENTS), one_of("place", words.PLACES)
ENTRY = ("title", "time", "place")


def _busy_times(world: World) -> set[str]:
    return {row["time"] for row in world["events"].values()}


@reads(day=DAY)
def calendar_list_day(world: World, day: str) -> Rows:
    """List the events of a day."""
    return select_rows(world, "events", ENTRY, lambda row: row["time"].startswith(day))


@reads(day=DAY)
def calendar_free_times(world: World, day: str) -> Rows:
    """List the hours of a day without an event, in their order."""
    busy = _busy_times(world)
    return [{"time": time} for time in words.TIMES if time.startswith(day) and time not in busy]


@reads(contact=row_id("contacts"))
def calendar_of_guest(world: World, contact: int) -> Rows:
    """List the events to which a contact is invited."""
    find_row(world, "contacts", contact)
    return select_rows(world, "events", ENTRY, lambda row: contact in row["guests"])


@writes(title=TITLE, time=TIME, place=PLACE)
def calendar_create(world: World, title: str, time: str, place: str) -> World:
    """Add an event without guests. Fails if the time is taken."""
    if time in _busy_times(world):
        raise Failed("time_taken")
    return add_row(world, "events", title=title, time=time, place=place, guests=frozenset())


@writes(event=row_id("events"), time=TIME)
def calendar_move(world: World, event: int, time: str) -> World:
    """Move an event to another time. Fails if that is taken."""
    if find_row(world, "events", event)["time"] == time:
        raise Failed("already_so")
    if time in _busy_times(world):
        raise Failed("time_taken")
    return edit_row(world, "events", event, time=time)


@writes(event=row_id("events"), contact=row_id("contacts"))
def calendar_invite(world: World, event: int, contact: int) -> World:
    """Invite a contact to an event."""
    guests = find_row(world, "events", event)["guests"]
    find_row(world, "contacts", contact)
    if contact in guests:
        raise Failed("already_so")
    return edit_row(world, "events", event, guests=guests | {contact})


@writes(event=row_id("events"), contact=row_id("contacts"))
def calendar_uninvite(world: World, event: int, contact: int) -> World:
    """Take a contact off the guest list of an event."""
    guests = find_row(world, "events", event)["guests"]
    if contact not in guests:
        raise Failed("already_so")
    return edit_row(world, "events", event, guests=guests - {contact})


ROW_APIS = (
    calendar_list_day,
    lister("calendar_find", "Find the events of a title.", "events", ENTRY, title=TITLE),
    lister("calendar_at_place", "List the events at a place.", "events", ENTRY, place=PLACE),
    calendar_free_times,
    calendar_of_guest,
    getter(
        "calendar_get",
        "Show all of an event; guests are ids of contacts.",
        "events",
        (*ENTRY, "guests"),
    ),
    calendar_create,
    remover("calendar_cancel", "Delete an event.", "events"),
    calendar_move,
    setter("calendar_rename", "Change the title of an event.", "events", "title", TITLE),
    setter("calendar_set_place", "Change the place of an event.", "events", "place", PLACE),
    calendar_invite,
    calendar_uninvite,
)

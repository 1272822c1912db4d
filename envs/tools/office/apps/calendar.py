"""The app ``calendar``: events of one hour on five days, never two at a time."""

from __future__ import annotations

from .. import words as v
from ..row_api import (
    Failed,
    Rows,
    added,
    existing,
    getter,
    lister,
    reads,
    remover,
    row_id,
    setter,
    shown,
    words,
    writes,
)
from ..rows import World, edit

DAY, TIME = words("day", v.DAYS), words("day and hour", v.TIMES)
TITLE, PLACE = words("title of an event", v.EVENTS), words("place", v.PLACES)
ENTRY = ("title", "time", "place")


def _taken(world: World) -> set[str]:
    return {row["time"] for row in world["events"].values()}


@reads(day=DAY)
def calendar_list_day(world: World, day: str) -> Rows:
    """List the events of a day."""
    return shown(world, "events", ENTRY, lambda row: row["time"].startswith(day))


@reads(day=DAY)
def calendar_free_times(world: World, day: str) -> Rows:
    """List the hours of a day without an event, in their order."""
    taken = _taken(world)
    return [{"time": time} for time in v.TIMES if time.startswith(day) and time not in taken]


@reads(contact=row_id("contacts"))
def calendar_of_guest(world: World, contact: int) -> Rows:
    """List the events to which a contact is invited."""
    existing(world, "contacts", contact)
    return shown(world, "events", ENTRY, lambda row: contact in row["guests"])


@writes(title=TITLE, time=TIME, place=PLACE)
def calendar_create(world: World, title: str, time: str, place: str) -> World:
    """Add an event without guests. Fails if the time is taken."""
    if time in _taken(world):
        raise Failed("time_taken")
    return added(world, "events", title=title, time=time, place=place, guests=frozenset())


@writes(event=row_id("events"), time=TIME)
def calendar_move(world: World, event: int, time: str) -> World:
    """Move an event to another time. Fails if that is taken."""
    if existing(world, "events", event)["time"] == time:
        raise Failed("already_so")
    if time in _taken(world):
        raise Failed("time_taken")
    return edit(world, "events", event, time=time)


@writes(event=row_id("events"), contact=row_id("contacts"))
def calendar_invite(world: World, event: int, contact: int) -> World:
    """Invite a contact to an event."""
    guests = existing(world, "events", event)["guests"]
    existing(world, "contacts", contact)
    if contact in guests:
        raise Failed("already_so")
    return edit(world, "events", event, guests=guests | {contact})


@writes(event=row_id("events"), contact=row_id("contacts"))
def calendar_uninvite(world: World, event: int, contact: int) -> World:
    """Take a contact off the guest list of an event."""
    guests = existing(world, "events", event)["guests"]
    if contact not in guests:
        raise Failed("already_so")
    return edit(world, "events", event, guests=guests - {contact})


APIS = (
    calendar_list_day,
    lister("calendar_find", "Find the events of a title.", "events", ENTRY, title=TITLE),
    lister("calendar_at_place", "List the events at a place.", "events", ENTRY, place=PLACE),
    calendar_free_times,
    calendar_of_guest,
    getter("calendar_get", "Show all of an event; guests are ids of contacts.", "events", (*ENTRY, "guests")),
    calendar_create,
    remover("calendar_cancel", "Delete an event.", "events"),
    calendar_move,
    setter("calendar_rename", "Change the title of an event.", "events", "title", TITLE),
    setter("calendar_set_place", "Change the place of an event.", "events", "place", PLACE),
    calendar_invite,
    calendar_uninvite,
)

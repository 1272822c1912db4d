"""The app ``calendar``: events of one hour on four days, never two at a time."""

from __future__ import annotations

from typing import Any

from ..column_api import CONTACT, DAY, EVENT, PLACE, TIME, TITLE, Error, State, api
from ..columns import bit, cell, events_on, existing, free_row, has, hours_of, put, taken, titled, without_event

EVENTS = "list of {event, title, time, place}"


@api("calendar.list_day", returns=EVENTS, day=DAY)
def list_day(state: State, day: Any) -> State:
    """List the events of a day."""
    found = events_on(state.world, day)
    return state.show(events=found).learn(events=found, times=hours_of(day))


@api("calendar.find", returns=EVENTS, title=TITLE)
def find(state: State, title: Any) -> State:
    """Find the events of a title, on any day."""
    found = titled(state.world, title)
    return state.show(events=found).learn(events=found, asked_titles=bit(title))


@api("calendar.get", returns="{event, title, time, place, guests}", errors=(Error.NOT_FOUND,), event=EVENT)
def get(state: State, event: Any) -> State:
    """Show all of one event; guests are ids of contacts."""
    one = bit(event)
    shown = state.show(events=one).learn(events=one, guests=one, contacts=cell(state.world.guests, event))
    return shown.fail_if(_missing(state, event))


@api("calendar.free_times", returns="list of times", day=DAY)
def free_times(state: State, day: Any) -> State:
    """List the hours of a day without an event."""
    hours = hours_of(day)
    return state.show(times=hours & ~taken(state.world)).learn(times=hours)


@api("calendar.create", returns="{event, title, time, place}", errors=(Error.TIME_TAKEN,), room="title",
     title=TITLE, time=TIME)  # fmt: skip
def create(state: State, title: Any, time: Any) -> State:
    """Add an event without place or guests."""
    row, world = free_row(state.world.title), state.world
    made = state.change(title=put(world.title, row, title), time=put(world.time, row, time)).show(events=bit(row))
    known = made.learn(events=bit(row), guests=bit(row), times=bit(time))
    return known.fail_if((has(taken(world), time), Error.TIME_TAKEN))


@api("calendar.cancel", errors=(Error.NOT_FOUND,), event=EVENT)
def cancel(state: State, event: Any) -> State:
    """Delete an event."""
    return state._replace(world=without_event(state.world, event)).fail_if(_missing(state, event))


@api("calendar.move", errors=(Error.NOT_FOUND, Error.ALREADY_SO, Error.TIME_TAKEN), event=EVENT, time=TIME)
def move(state: State, event: Any, time: Any) -> State:
    """Give an event another time."""
    moved = state.change(time=put(state.world.time, event, time)).learn(times=bit(time))
    here = cell(state.world.time, event) == time
    return moved.fail_if(
        _missing(state, event), (here, Error.ALREADY_SO), (has(taken(state.world), time), Error.TIME_TAKEN)
    )


@api("calendar.set_place", errors=(Error.NOT_FOUND,), event=EVENT, place=PLACE)
def set_place(state: State, event: Any, place: Any) -> State:
    """Set or change the place of an event."""
    return state.change(place=put(state.world.place, event, place)).fail_if(_missing(state, event))


@api("calendar.invite", errors=(Error.NOT_FOUND, Error.ALREADY_SO), event=EVENT, contact=CONTACT)
def invite(state: State, event: Any, contact: Any) -> State:
    """Add a contact to the guests of an event."""
    guests = cell(state.world.guests, event)
    invited = state.change(guests=put(state.world.guests, event, guests | bit(contact)))
    return invited.fail_if(
        _missing(state, event),
        (~has(existing(state.world.name), contact), Error.NOT_FOUND),
        (has(guests, contact), Error.ALREADY_SO),
    )


@api("calendar.uninvite", errors=(Error.NOT_FOUND, Error.ALREADY_SO), event=EVENT, contact=CONTACT)
def uninvite(state: State, event: Any, contact: Any) -> State:
    """Take a contact off the guests of an event."""
    guests = cell(state.world.guests, event)
    taken_off = state.change(guests=put(state.world.guests, event, guests & ~bit(contact)))
    return taken_off.fail_if(_missing(state, event), (~has(guests, contact), Error.ALREADY_SO))


def _missing(state: State, event: Any) -> tuple[Any, Error]:
    return ~has(existing(state.world.title), event), Error.NOT_FOUND


APIS = (list_day, find, get, free_times, create, cancel, move, set_place, invite, uninvite)

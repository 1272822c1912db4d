"""Instructions about events."""

from __future__ import annotations

from .. import words
from ..population import Tables
from .row_template import (
    EASY,
    HARD,
    MEDIUM,
    UNCLEAR,
    Ask,
    Plan,
    Refused,
    Scene,
    call,
    find_person,
    template,
)

_FULL_NAME = "{name} {last}"


def _cancel_event(a: Ask) -> Plan:
    yield call("calendar_cancel", event=a.event)


@template(
    EASY, _cancel_event, "Cancel event {event}.",
    "Event {event} will not take place; take it out of the calendar.",
    "Please call off event {event}.",
)  # fmt: skip
def cancel_event(s: Scene) -> Tables:
    """The event is no longer in the calendar."""
    (event,) = s.pick("events")
    s.say(event=event)
    goal = s.goal()
    del goal["events"][event]
    return goal


def _invite_contact(a: Ask) -> Plan:
    yield call("calendar_invite", event=a.event, contact=a.contact)


@template(
    EASY, _invite_contact, "Invite contact {contact} to event {event}.",
    "Contact {contact} should come to event {event}.",
    "Put contact {contact} on the guest list of event {event}.", test=True,
)  # fmt: skip
def invite_contact(s: Scene) -> Tables:
    """The contact is a guest of the event."""
    (who,) = s.pick("contacts")
    event = s.row("events")
    s.world["events"][event]["guests"] -= {who}
    s.say(contact=who, event=event)
    goal = s.goal()
    goal["events"][event]["guests"] |= {who}
    return goal


def _event(s: Scene) -> int:
    """Name an event by its title, which no event has if the obstacle is that."""
    (event,) = s.pick("events")
    title = s.world["events"][event]["title"]
    s.say(title=s.unused(words.EVENTS, "events", "title") if s.reason == "no_such_event" else title)
    return event


def _find_event(a: Ask) -> Plan:
    rows = yield call("calendar_find", title=a.title)
    if not rows:
        raise Refused("no_such_event")
    return rows[0]["event"]


def _move_event(a: Ask) -> Plan:
    event = yield from _find_event(a)
    free = yield call("calendar_free_times", day=a.day)
    if not free:
        raise Refused("no_free_time")
    yield call("calendar_move", event=event, time=free[0]["time"])


@template(
    MEDIUM, _move_event, "Move the {title} to the first free hour on {day}.",
    "The {title} should be on {day} instead, as early as there is room.",
    "Shift the {title} to {day}, first free hour.", reasons=("no_such_event", "no_free_time"),
)  # fmt: skip
def move_event(s: Scene) -> Tables:
    """The event is at the first hour of the day that was free."""
    event = _event(s)
    day = s.open_day(s.world["events"][event]["time"][:3])
    s.say(day=day)
    goal = s.goal()
    if s.reason == "no_free_time":
        s.fill_day(day, [event])
    else:
        goal["events"][event]["time"] = s.free(day)[0]
    return goal


def _set_place(a: Ask) -> Plan:
    event = yield from _find_event(a)
    yield call("calendar_set_place", event=event, place=a.place)


@template(
    MEDIUM, _set_place, "The {title} takes place in the {place}.",
    "Change the place of the {title} to {place}.",
    "We meet for the {title} at the {place} now.", reasons=("no_such_event",), test=True,
)  # fmt: skip
def set_place(s: Scene) -> Tables:
    """The event is at the place."""
    event = _event(s)
    place = s.another_word(words.PLACES, s.world["events"][event]["place"])
    s.say(place=place)
    goal = s.goal()
    goal["events"][event]["place"] = place
    return goal


def _cancel_duplicate(a: Ask) -> Plan:
    rows = yield call("calendar_find", title=a.title)
    later = max(rows, key=lambda row: words.TIMES.index(row["time"]))
    yield call("calendar_cancel", event=later["event"])


@template(
    HARD, _cancel_duplicate, "The {title} is in the calendar twice; cancel the later one.",
    "One {title} is enough. Keep the earlier.", "Delete the second {title} of the week.",
)  # fmt: skip
def cancel_duplicate(s: Scene) -> Tables:
    """The later of the two events of the title is gone."""
    event, duplicate = s.pick("events", 2)
    events = s.world["events"]
    events[duplicate]["title"] = events[event]["title"]
    s.say(title=events[event]["title"])
    goal = s.goal()
    later = max(event, duplicate, key=lambda number: words.TIMES.index(events[number]["time"]))
    del goal["events"][later]
    return goal


def _schedule(a: Ask) -> Plan:
    who = yield from find_person(a)
    free = yield call("calendar_free_times", day=a.day)
    if not free:
        raise Refused("no_free_time")
    yield call("calendar_create", title=a.title, time=free[-1]["time"], place=a.place)
    (row,) = yield call("calendar_find", title=a.title)
    yield call("calendar_invite", event=row["event"], contact=who)


@template(
    HARD, _schedule,
    f"Plan a {{title}} with {_FULL_NAME} on {{day}} in the {{place}}, at the last free hour.",
    (
        f"{_FULL_NAME} and I have a {{title}} on {{day}} in the {{place}}; take the latest hour "
        "that is free, and invite."
    ),
    (
        f"Put a {{title}} into the last free hour of {{day}}, place {{place}}, and invite "
        f"{_FULL_NAME}."
    ),
    reasons=(*UNCLEAR, "no_free_time"), test=True,
)  # fmt: skip
def schedule(s: Scene) -> Tables:
    """There is one more event, with the contact as its guest.

    It is at the last hour of the day that was free.
    """
    who = s.namesake()
    title = s.unused(words.EVENTS, "events", "title")
    day = s.open_day()
    place = s.dice.choice(words.PLACES)
    s.say(title=title, day=day, place=place)
    if s.reason == "no_free_time":
        s.fill_day(day)
        return s.goal()
    goal = s.goal()
    goal["events"][1000] = {
        "title": title,
        "time": s.free(day)[-1],
        "place": place,
        "guests": frozenset({who}),
    }
    return goal


def _clear_day(a: Ask) -> Plan:
    rows = yield call("calendar_list_day", day=a.day)
    for row in rows:
        if row["title"] != a.title:
            yield call("calendar_cancel", event=row["event"])


@template(
    HARD, _clear_day, "Cancel everything on {day} but the {title}.",
    "On {day} only the {title} takes place.", "Clear {day}; the {title} stays.",
)  # fmt: skip
def clear_day(s: Scene) -> Tables:
    """All events of the day are gone, except that of the title."""
    day = s.dice.choice(words.DAYS)
    events = s.world["events"]
    movable = [number for number, row in events.items() if not row["time"].startswith(day)]
    on_day = [number for number, row in events.items() if row["time"].startswith(day)]
    for number, time in zip(
        s.dice.sample(movable, max(3 - len(on_day), 0)), s.free(day), strict=False
    ):
        events[number]["time"] = time
        on_day.append(number)
    remaining = s.dice.choice(on_day)
    s.say(day=day, title=events[remaining]["title"])
    goal = s.goal()
    for number in on_day:
        if number != remaining:
            del goal["events"][number]
    return goal


def _uninvite_ill(a: Ask) -> Plan:
    who = yield from find_person(a)
    rows = yield call("calendar_of_guest", contact=who)
    for row in rows:
        if row["time"].startswith(a.day):
            yield call("calendar_uninvite", event=row["event"], contact=who)


@template(
    HARD, _uninvite_ill,
    f"{_FULL_NAME} is ill on {{day}}; take the name off all guest lists of that day.",
    f"On {{day}}, {_FULL_NAME} cannot come to anything. Uninvite.",
    f"Uninvite {_FULL_NAME} from every event on {{day}}.",
    reasons=UNCLEAR,
)  # fmt: skip
def uninvite_ill(s: Scene) -> Tables:
    """The contact is no guest of any event of the day, and still one of those on other days."""
    who = s.namesake()
    day = s.dice.choice(words.DAYS)
    s.say(day=day)
    events = s.world["events"]
    event_a, event_b, distractor = s.pick("events", 3)
    for event in (event_a, event_b):
        if not events[event]["time"].startswith(day):
            events[event]["time"] = s.dice.choice(s.free(day))
    if events[distractor]["time"].startswith(day):
        events[distractor]["time"] = s.free(s.another_word(words.DAYS, day))[0]
    for event in (event_a, event_b, distractor):
        events[event]["guests"] |= {who}
    goal = s.goal()
    for row in goal["events"].values():
        if row["time"].startswith(day):
            row["guests"] -= {who}
    return goal


TEMPLATES = (
    cancel_event, invite_contact, move_event, set_place, cancel_duplicate, schedule, clear_day,
    uninvite_ill,
)  # fmt: skip

"""Instructions that name contacts and events as people do: look up first, then act."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..apps import calendar, contacts, payments
from ..apps.assistant import answer, finish
from ..apps.kinds import Reason
from ..columns import (
    RELATIONS,
    Direction,
    Status,
    World,
    bit,
    busy_times,
    cell,
    day_of,
    events_titled,
    first_free_hour,
    hours_of,
    lowest_row,
    mask_of,
    put,
    requests_with,
    rows,
    size,
    with_request_paid,
    with_transfer,
)
from .column_template import (
    Ask,
    Plan,
    Scene,
    Sight,
    Template,
    by_name,
    call,
    find_person,
    has_succeeded,
    person,
    refuse,
)
from .easy import SENDS, plant_amount

CONTACT = frozenset({"name", "city", "relation", "phone"})
UNCLEAR = (Reason.NO_SUCH_CONTACT, Reason.AMBIGUOUS_CONTACT)


# -- pay somebody ----------------------------------------------------------------------------------


def plant_payment(scene: Scene, reason: Any) -> Scene:
    """Choose a name and an amount."""
    return plant_amount(by_name(scene, reason), reason)


def make_payment(start: World, ask: Ask, end: World) -> World:
    """Return the world with one more transfer."""
    return with_transfer(start, person(start, ask), ask.number)


def plan_payment(see: Sight) -> Plan:
    """Find the contact, look at the balance, send."""
    who, search = find_person(see)
    return (
        (has_succeeded(see, payments.send), call(finish)),
        (see.ask.number > see.ask.limit, refuse(Reason.OVER_LIMIT)),
        *search,
        (see.notebook.accounts == 0, call(payments.balance)),
        (see.ask.number > see.world.balance, refuse(Reason.INSUFFICIENT_FUNDS)),
        (True, call(payments.send, contact=who, amount=see.ask.number)),
    )


# -- requests with somebody ------------------------------------------------------------------------


def plant_incoming(scene: Scene, reason: Any) -> Scene:
    """Plant one request for money by the contact."""
    scene_with_name = by_name(scene, reason)
    cast = scene.cast
    limit = scene.ask.limit
    amount = jnp.where(
        reason == Reason.OVER_LIMIT, cast.roll(1, limit + 1, 31), cast.roll(0, 1, limit)
    )
    short = reason == Reason.INSUFFICIENT_FUNDS
    planted = scene_with_name.set_request(
        cast.requests[0], cast.contacts[0], amount, Direction.INCOMING
    )
    # Distractors: money asked from the same contact, and a request that is settled already.
    planted = planted.set_request(
        cast.requests[1], cast.contacts[0], cast.roll(3, 1, 15), Direction.OUTGOING
    )
    return planted.set(balance=jnp.where(short, cast.roll(2, 0, amount - 1), scene.world.balance))


def pay_request(start: World, ask: Ask, end: World) -> World:
    """Return the world with the request paid."""
    return with_request_paid(
        start, lowest_row(requests_with(start, person(start, ask), Direction.INCOMING))
    )


def plan_paying(see: Sight) -> Plan:
    """Find contact and request, look at the balance, pay."""
    who, search = find_person(see)
    row = lowest_row(requests_with(see.world, who, Direction.INCOMING))
    amount = cell(see.world.request_amount, row)
    return (
        (has_succeeded(see, payments.pay_request), call(finish)),
        *search,
        (see.notebook.asked_requests == 0, call(payments.list_requests)),
        (amount > see.ask.limit, refuse(Reason.OVER_LIMIT)),
        (see.notebook.accounts == 0, call(payments.balance)),
        (amount > see.world.balance, refuse(Reason.INSUFFICIENT_FUNDS)),
        (True, call(payments.pay_request, request=row)),
    )


def plant_outgoing(scene: Scene, reason: Any) -> Scene:
    """Plant one request for money to the contact."""
    scene_with_name = by_name(scene, reason)
    cast = scene.cast
    planted = scene_with_name.set_request(
        cast.requests[0], cast.contacts[0], cast.roll(0, 1, 31), Direction.OUTGOING
    )
    return planted.set_request(
        cast.requests[1], cast.contacts[0], cast.roll(1, 1, 15), Direction.INCOMING
    )


def withdraw_request(start: World, ask: Ask, end: World) -> World:
    """Return the world with the request withdrawn."""
    row = lowest_row(requests_with(start, person(start, ask), Direction.OUTGOING))
    return start._replace(request_status=put(start.request_status, row, Status.WITHDRAWN))


def plan_withdrawing(see: Sight) -> Plan:
    """Find contact and request, withdraw."""
    who, search = find_person(see)
    row = lowest_row(requests_with(see.world, who, Direction.OUTGOING))
    return (
        (has_succeeded(see, payments.withdraw_request), call(finish)),
        *search,
        (see.notebook.asked_requests == 0, call(payments.list_requests)),
        (True, call(payments.withdraw_request, request=row)),
    )


# -- events by title -------------------------------------------------------------------------------


def name_event(scene: Scene, reason: Any) -> Scene:
    """Name the cast's first event by title in the instruction, or a title that no event has."""
    title = cell(scene.world.title, scene.cast.events[0])
    return scene.say(title=jnp.where(reason == Reason.NO_SUCH_EVENT, scene.cast.new_title, title))


def find_event(see: Sight) -> tuple[Any, Plan]:
    """Find the meant event; also return the steps by which a plan finds it, or refuses."""
    events = events_titled(see.world, see.ask.title)
    return lowest_row(events), (
        (
            see.notebook.asked_titles & bit(see.ask.title) == 0,
            call(calendar.find, title=see.ask.title),
        ),
        (events == 0, refuse(Reason.NO_SUCH_EVENT)),
    )


def plant_move(scene: Scene, reason: Any) -> Scene:
    """Choose a day other than the event's, with its first hours busy, or all of them."""
    cast = scene.cast
    scene_with_title = name_event(scene, reason)
    day = (day_of(cell(scene.world.time, cast.events[0])) - 1 + cast.roll(0, 1, 3)) % 4 + 1
    hour = 6 * (day - 1) + 1
    busy = scene_with_title.set_time(cast.events[1], hour)
    busy = busy.set_time(cast.events[2], hour + cast.roll(1, 1, 2))
    full = busy
    for k in range(6):
        full = full.set_time(cast.events[k + 1], hour + k)
    return busy.set(
        time=jnp.where(reason == Reason.NO_FREE_TIME, full.world.time, busy.world.time)
    ).say(day=day)


def move_event(start: World, ask: Ask, end: World) -> World:
    """Return the world with the event at the first free hour of the day."""
    row = lowest_row(events_titled(start, ask.title))
    return start._replace(time=put(start.time, row, first_free_hour(busy_times(start), ask.day)))


def plan_move(see: Sight) -> Plan:
    """Find the event, list the day, move."""
    row, search = find_event(see)
    time = first_free_hour(see.busy_times, see.ask.day)
    return (
        (has_succeeded(see, calendar.move), call(finish)),
        *search,
        (
            hours_of(see.ask.day) & ~see.notebook.times != 0,
            call(calendar.free_times, day=see.ask.day),
        ),
        (time == 0, refuse(Reason.NO_FREE_TIME)),
        (True, call(calendar.move, event=row, time=time)),
    )


def plant_place(scene: Scene, reason: Any) -> Scene:
    """Choose a place other than the event's."""
    old = cell(scene.world.place, scene.cast.events[0])
    return name_event(scene, reason).say(place=(old - 1 + scene.cast.roll(0, 1, 5)) % 6 + 1)


def change_place(start: World, ask: Ask, end: World) -> World:
    """Return the world with the event at the place."""
    return start._replace(
        place=put(start.place, lowest_row(events_titled(start, ask.title)), ask.place)
    )


def plan_place(see: Sight) -> Plan:
    """Find the event, set the place."""
    row, search = find_event(see)
    return (
        (has_succeeded(see, calendar.set_place), call(finish)),
        *search,
        (True, call(calendar.set_place, event=row, place=see.ask.place)),
    )


# -- the phone book --------------------------------------------------------------------------------


def plant_relation(scene: Scene, reason: Any) -> Scene:
    """Make one contact alone have the named relation; or nobody, or two."""
    cast = scene.cast
    relation = scene.world.relation
    hero_relation = cell(relation, cast.contacts[0])
    heroes = bit(cast.contacts[0])
    heroes = jnp.where(reason == Reason.NO_SUCH_CONTACT, 0, heroes)
    heroes = jnp.where(reason == Reason.AMBIGUOUS_CONTACT, heroes | bit(cast.contacts[1]), heroes)
    is_hero = heroes >> (rows(relation) - 1).astype(jnp.uint32) & 1 != 0
    other_relations = jnp.where(relation == hero_relation, relation % len(RELATIONS) + 1, relation)
    planted = scene.set(relation=jnp.where(is_hero, hero_relation, other_relations))
    return planted.say(relation=hero_relation, number=cast.new_phone)


def contacts_related(world: World, relation: Any) -> Any:
    """Return the set of contacts with that relation to the user."""
    return mask_of((world.name > 0) & (world.relation == relation))


def change_phone(start: World, ask: Ask, end: World) -> World:
    """Return the world with another number."""
    return start._replace(
        phone=put(start.phone, lowest_row(contacts_related(start, ask.relation)), ask.number)
    )


def plan_phone(see: Sight) -> Plan:
    """Find the contact, change the number."""
    relatives = contacts_related(see.world, see.ask.relation)
    return (
        (has_succeeded(see, contacts.set_phone), call(finish)),
        (
            see.notebook.asked_relations & bit(see.ask.relation) == 0,
            call(contacts.search_by_relation, relation=see.ask.relation),
        ),
        (relatives == 0, refuse(Reason.NO_SUCH_CONTACT)),
        (size(relatives) > 1, refuse(Reason.AMBIGUOUS_CONTACT)),
        (True, call(contacts.set_phone, contact=lowest_row(relatives), phone=see.ask.number)),
    )


def change_nothing(start: World, ask: Ask, end: World) -> World:
    """Return the world as it is: questions change nothing."""
    return start


def phone_of(start: World, ask: Ask) -> Any:
    """Return the number of the contact."""
    return cell(start.phone, person(start, ask))


def plan_telling(see: Sight) -> Plan:
    """Find the contact, read the number, answer."""
    who, search = find_person(see)
    return (
        *search,
        (see.notebook.phones & bit(who) == 0, call(contacts.get, contact=who)),
        (True, call(answer, number=cell(see.world.phone, who))),
    )


def delete_contact(start: World, ask: Ask, end: World) -> World:
    """Return the world with one contact fewer."""
    who = person(start, ask)
    return start._replace(
        **{column: put(getattr(start, column), who, 0) for column in sorted(CONTACT)}
    )


def plan_deleting(see: Sight) -> Plan:
    """Find the contact, delete."""
    who, search = find_person(see)
    return (
        (has_succeeded(see, contacts.delete), call(finish)),
        *search,
        (True, call(contacts.delete, contact=who)),
    )


TEMPLATES = (
    Template(
        name="pay_by_name",
        specification=(
            "One transfer of {amount} to the contact called {name} is sent from the account."
        ),
        wordings=(
            "Send {amount} to {name}.",
            "{name} gets {amount} from me.",
            "Please transfer {amount} to {name}.",
        ),
        touches=SENDS,
        reasons=(Reason.INSUFFICIENT_FUNDS, Reason.OVER_LIMIT, *UNCLEAR),
        plant=plant_payment,
        outcome=make_payment,
        plan=plan_payment,
    ),
    Template(
        name="pay_back",
        specification=(
            "The open incoming request of the contact called {name} is paid from the account."
        ),
        wordings=(
            "Pay {name} what they ask me for.",
            "{name} has sent me a request for money; pay it.",
            "Settle the open request of {name}.",
        ),
        touches=SENDS | {"request_status"},
        reasons=(Reason.INSUFFICIENT_FUNDS, Reason.OVER_LIMIT, *UNCLEAR),
        plant=plant_incoming,
        outcome=pay_request,
        plan=plan_paying,
    ),
    Template(
        name="withdraw_request",
        specification="The open outgoing request to the contact called {name} is withdrawn.",
        wordings=(
            "Withdraw my request to {name}.",
            "I asked {name} for money; take that back.",
            "{name} need not pay me after all: withdraw the request.",
        ),
        touches=frozenset({"request_status"}),
        reasons=UNCLEAR,
        plant=plant_outgoing,
        outcome=withdraw_request,
        plan=plan_withdrawing,
    ),
    Template(
        name="move_to_day",
        specification="The event called {title} is at the first hour of {day} that was free.",
        wordings=(
            "Move the {title} to the first free hour on {day}.",
            "The {title} should be on {day}, as early as possible.",
            "Shift the {title} to {day}, to the earliest hour that is free.",
        ),
        touches=frozenset({"time"}),
        reasons=(Reason.NO_SUCH_EVENT, Reason.NO_FREE_TIME),
        plant=plant_move,
        outcome=move_event,
        plan=plan_move,
    ),
    Template(
        name="change_place",
        specification="The place of the event called {title} is {place}.",
        wordings=(
            "The {title} takes place in the {place}.",
            "Set the place of the {title} to {place}.",
            "We meet in the {place} for the {title}; change that.",
        ),
        touches=frozenset({"place"}),
        reasons=(Reason.NO_SUCH_EVENT,),
        plant=plant_place,
        outcome=change_place,
        plan=plan_place,
    ),
    Template(
        name="phone_by_relation",
        specification="The phone number of the contact who is the user's {relation} is {phone}.",
        wordings=(
            "My {relation} has a new number: {phone}.",
            "Note {phone} as the phone number of my {relation}.",
            "Change the number of my {relation} to {phone}.",
        ),
        touches=frozenset({"phone"}),
        reasons=UNCLEAR,
        plant=plant_relation,
        outcome=change_phone,
        plan=plan_phone,
    ),
    Template(
        name="tell_phone",
        specification=(
            "The answer is the last two digits of the phone number of the contact called {name}."
        ),
        wordings=(
            "What are the last two digits of {name}'s phone number?",
            "Tell me the last two digits of the number of {name}.",
            "I need the last two digits of {name}'s number.",
        ),
        touches=frozenset(),
        reasons=UNCLEAR,
        plant=by_name,
        outcome=change_nothing,
        plan=plan_telling,
        answer=phone_of,
    ),
    Template(
        name="delete_contact",
        specification="The contact called {name} is no longer in the phone book.",
        wordings=(
            "Delete {name} from my contacts.",
            "I no longer need the number of {name}: remove the contact.",
            "Take {name} out of the phone book.",
        ),
        touches=CONTACT,
        reasons=UNCLEAR,
        plant=by_name,
        outcome=delete_contact,
        plan=plan_deleting,
    ),
)

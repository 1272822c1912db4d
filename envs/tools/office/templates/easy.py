"""Short instructions that name every row by its id, so that one call carries them out."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..apps import calendar, contacts, payments
from ..apps.assistant import finish
from ..apps.column_api import Error
from ..apps.kinds import Reason
from ..columns import (
    Direction,
    Status,
    World,
    bit,
    cell,
    put,
    remove_event,
    rows,
    with_request,
    with_request_paid,
    with_transfer,
)
from .column_template import Ask, Plan, Scene, Sight, Template, call, has_succeeded, refuse

SENDS = frozenset({"transfer_contact", "transfer_amount", "transfer_direction", "balance"})
ASKS = frozenset({"request_contact", "request_amount", "request_direction", "request_status"})
EVENT = frozenset({"title", "time", "place", "guests"})


def plant_amount(scene: Scene, reason: Any) -> Scene:
    """Choose an amount within limit and balance, unless ``reason`` says otherwise."""
    limit = scene.ask.limit
    cast = scene.cast
    amount = jnp.where(
        reason == Reason.OVER_LIMIT, cast.roll(1, limit + 1, 31), cast.roll(0, 1, limit)
    )
    short = reason == Reason.INSUFFICIENT_FUNDS
    return scene.set(
        balance=jnp.where(short, cast.roll(2, 0, amount - 1), scene.world.balance)
    ).say(number=amount)


# -- pay a contact ---------------------------------------------------------------------------------


def plant_payment(scene: Scene, reason: Any) -> Scene:
    """Choose a contact and an amount."""
    return plant_amount(scene, reason).say(contact=scene.cast.contacts[0])


def make_payment(start: World, ask: Ask, end: World) -> World:
    """Return the world with one more transfer."""
    return with_transfer(start, ask.contact, ask.number)


def plan_payment(see: Sight) -> Plan:
    """Look at the limit and the balance, then send."""
    return (
        (has_succeeded(see, payments.send), call(finish)),
        (see.ask.number > see.ask.limit, refuse(Reason.OVER_LIMIT)),
        (see.notebook.accounts == 0, call(payments.balance)),
        (see.ask.number > see.world.balance, refuse(Reason.INSUFFICIENT_FUNDS)),
        (True, call(payments.send, contact=see.ask.contact, amount=see.ask.number)),
    )


# -- cancel an event, invite somebody, move it -----------------------------------------------------


def plant_event(scene: Scene, reason: Any) -> Scene:
    """Choose an event."""
    return scene.say(event=scene.cast.events[0])


def cancel_event(start: World, ask: Ask, end: World) -> World:
    """Return the world with one event fewer."""
    return remove_event(start, ask.event)


def plan_cancel(see: Sight) -> Plan:
    """Cancel it."""
    return (
        (has_succeeded(see, calendar.cancel), call(finish)),
        (True, call(calendar.cancel, event=see.ask.event)),
    )


def plant_invitation(scene: Scene, reason: Any) -> Scene:
    """Choose an event, and a contact who is not yet invited."""
    cast = scene.cast
    guests = scene.world.guests
    guests = jnp.where(rows(guests) == cast.events[0], guests & ~bit(cast.contacts[0]), guests)
    return scene.set(guests=guests).say(event=cast.events[0], contact=cast.contacts[0])


def invite_contact(start: World, ask: Ask, end: World) -> World:
    """Return the world with one more guest."""
    return start._replace(
        guests=put(start.guests, ask.event, cell(start.guests, ask.event) | bit(ask.contact))
    )


def plan_invitation(see: Sight) -> Plan:
    """Invite."""
    return (
        (has_succeeded(see, calendar.invite), call(finish)),
        (True, call(calendar.invite, event=see.ask.event, contact=see.ask.contact)),
    )


def plant_move(scene: Scene, reason: Any) -> Scene:
    """Choose an event, and a free time or that of another event."""
    cast = scene.cast
    busy_time = cell(scene.world.time, cast.events[1])
    time = jnp.where(reason == Reason.NO_FREE_TIME, busy_time, cast.free_time)
    return scene.say(event=cast.events[0], number=time)


def move_event(start: World, ask: Ask, end: World) -> World:
    """Return the world with the event at another time."""
    return start._replace(time=put(start.time, ask.event, ask.number))


def plan_move(see: Sight) -> Plan:
    """Try; the calendar says if the time is taken."""
    return (
        (has_succeeded(see, calendar.move), call(finish)),
        (see.error == Error.TIME_TAKEN, refuse(Reason.NO_FREE_TIME)),
        (True, call(calendar.move, event=see.ask.event, time=see.ask.number)),
    )


# -- a new phone number ----------------------------------------------------------------------------


def plant_phone(scene: Scene, reason: Any) -> Scene:
    """Choose a contact, and a number that nobody has."""
    return scene.say(contact=scene.cast.contacts[0], number=scene.cast.new_phone)


def change_phone(start: World, ask: Ask, end: World) -> World:
    """Return the world with another number."""
    return start._replace(phone=put(start.phone, ask.contact, ask.number))


def plan_phone(see: Sight) -> Plan:
    """Change it."""
    return (
        (has_succeeded(see, contacts.set_phone), call(finish)),
        (True, call(contacts.set_phone, contact=see.ask.contact, phone=see.ask.number)),
    )


# -- requests for money ----------------------------------------------------------------------------


def plant_asking(scene: Scene, reason: Any) -> Scene:
    """Choose a contact and an amount."""
    return scene.say(contact=scene.cast.contacts[0], number=scene.cast.roll(0, 1, 31))


def ask_for_money(start: World, ask: Ask, end: World) -> World:
    """Return the world with one more request."""
    return with_request(start, ask.contact, ask.number)


def plan_asking(see: Sight) -> Plan:
    """Ask."""
    return (
        (has_succeeded(see, payments.request), call(finish)),
        (True, call(payments.request, contact=see.ask.contact, amount=see.ask.number)),
    )


def plant_request(scene: Scene, reason: Any) -> Scene:
    """Plant an open incoming request within the limit.

    The account covers it unless ``reason`` says otherwise.
    """
    cast = scene.cast
    world = scene.world
    row = cast.requests[0]
    amount = cell(world.request_amount, row)
    short = reason == Reason.INSUFFICIENT_FUNDS
    planted = scene.set_request(row, cell(world.request_contact, row), amount, Direction.INCOMING)
    return planted.set(balance=jnp.where(short, cast.roll(2, 0, amount - 1), world.balance)).say(
        request=row
    )


def decline_request(start: World, ask: Ask, end: World) -> World:
    """Return the world with the request declined."""
    return start._replace(request_status=put(start.request_status, ask.request, Status.DECLINED))


def plan_decline(see: Sight) -> Plan:
    """Decline."""
    return (
        (has_succeeded(see, payments.decline_request), call(finish)),
        (True, call(payments.decline_request, request=see.ask.request)),
    )


def pay_request(start: World, ask: Ask, end: World) -> World:
    """Return the world with the request paid and the money sent."""
    return with_request_paid(start, ask.request)


def plan_paying(see: Sight) -> Plan:
    """Compare the request with the balance, then pay."""
    return (
        (has_succeeded(see, payments.pay_request), call(finish)),
        (see.notebook.asked_requests == 0, call(payments.list_requests)),
        (see.notebook.accounts == 0, call(payments.balance)),
        (
            cell(see.world.request_amount, see.ask.request) > see.world.balance,
            refuse(Reason.INSUFFICIENT_FUNDS),
        ),
        (True, call(payments.pay_request, request=see.ask.request)),
    )


TEMPLATES = (
    Template(
        name="pay_contact",
        specification="One transfer of {amount} to {contact} is sent from the account.",
        wordings=(
            "Send {amount} to contact {contact}.",
            "Contact {contact} gets {amount} from me.",
            "Please transfer {amount} to contact {contact}.",
        ),
        touches=SENDS,
        reasons=(Reason.INSUFFICIENT_FUNDS, Reason.OVER_LIMIT),
        plant=plant_payment,
        outcome=make_payment,
        plan=plan_payment,
    ),
    Template(
        name="cancel_event",
        specification="{event} is no longer in the calendar.",
        wordings=(
            "Cancel event {event}.",
            "Event {event} will not take place; take it out of the calendar.",
            "Please call off event {event}.",
        ),
        touches=EVENT,
        plant=plant_event,
        outcome=cancel_event,
        plan=plan_cancel,
    ),
    Template(
        name="invite_contact",
        specification="{contact} is a guest of {event}.",
        wordings=(
            "Invite contact {contact} to event {event}.",
            "Contact {contact} should come to event {event}.",
            "Put contact {contact} on the guest list of event {event}.",
        ),
        touches=frozenset({"guests"}),
        plant=plant_invitation,
        outcome=invite_contact,
        plan=plan_invitation,
    ),
    Template(
        name="move_event",
        specification="{event} is at {time}.",
        wordings=(
            "Move event {event} to {time}.",
            "Event {event} should be at {time} instead.",
            "Please shift event {event}: the new time is {time}.",
        ),
        touches=frozenset({"time"}),
        reasons=(Reason.NO_FREE_TIME,),
        plant=plant_move,
        outcome=move_event,
        plan=plan_move,
    ),
    Template(
        name="change_phone",
        specification="The phone number of {contact} is {phone}.",
        wordings=(
            "The new phone number of contact {contact} is {phone}.",
            "Contact {contact} can now be reached at {phone}; note it.",
            "Change the number of contact {contact} to {phone}.",
        ),
        touches=frozenset({"phone"}),
        plant=plant_phone,
        outcome=change_phone,
        plan=plan_phone,
    ),
    Template(
        name="ask_for_money",
        specification="There is one more open outgoing request, of {amount} to {contact}.",
        wordings=(
            "Ask contact {contact} for {amount}.",
            "Contact {contact} owes me {amount}; send a request.",
            "Request {amount} from contact {contact}.",
        ),
        touches=ASKS,
        plant=plant_asking,
        outcome=ask_for_money,
        plan=plan_asking,
    ),
    Template(
        name="decline_request",
        specification="{request} is declined.",
        wordings=(
            "Decline request {request}.",
            "I will not pay request {request}; say no.",
            "Turn down request {request} for money.",
        ),
        touches=frozenset({"request_status"}),
        plant=plant_request,
        outcome=decline_request,
        plan=plan_decline,
    ),
    Template(
        name="pay_request",
        specification="{request} is paid in full from the account.",
        wordings=(
            "Pay request {request}.",
            "Request {request} is fine; pay it.",
            "Please settle request {request}.",
        ),
        touches=SENDS | {"request_status"},
        reasons=(Reason.INSUFFICIENT_FUNDS,),
        plant=plant_request,
        outcome=pay_request,
        plan=plan_paying,
    ),
)

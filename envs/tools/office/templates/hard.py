"""Instructions that need many calls, among namesakes and near misses."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..apps import calendar, contacts, payments
from ..apps.assistant import answer, finish
from ..apps.kinds import Reason
from ..columns import (
    Direction,
    Status,
    World,
    bit,
    busy_times,
    cell,
    day_of,
    events_on,
    events_titled,
    first_free_hour,
    flags_of,
    free_row,
    has,
    hours_of,
    lowest_row,
    mask_of,
    put,
    remove_event,
    requests_with,
    size,
    total,
    with_request,
    with_request_paid,
    with_transfer,
)
from .column_template import (
    Ask,
    Plan,
    Scene,
    Sight,
    Template,
    by_name_and_city,
    call,
    find_person,
    has_succeeded,
    person,
    refuse,
)
from .easy import ASKS, EVENT, SENDS, plant_amount
from .medium import UNCLEAR, change_nothing, find_event, name_event


def set_guests(scene: Scene, event: Any, guests: Any) -> Scene:
    """Replace an event's guest list."""
    return scene.set(guests=put(scene.world.guests, event, guests))


def dwellers(world: World, city: Any) -> Any:
    """Return the set of contacts who live in a city."""
    return mask_of((world.name > 0) & (world.city == city))


# -- invite a city ---------------------------------------------------------------------------------


def plant_city(scene: Scene, reason: Any) -> Scene:
    """Choose the city of a contact who is not yet invited."""
    cast = scene.cast
    world = scene.world
    event = cast.events[0]
    hero = cast.contacts[0]
    uninvited = set_guests(scene, event, cell(world.guests, event) & ~bit(hero))
    return name_event(uninvited, reason).say(city=cell(world.city, hero))


def invite_city(start: World, ask: Ask, end: World) -> World:
    """Return the world with everyone of the city invited."""
    row = lowest_row(events_titled(start, ask.title))
    return start._replace(
        guests=put(start.guests, row, cell(start.guests, row) | dwellers(start, ask.city))
    )


def plan_city(see: Sight) -> Plan:
    """Find the event, its guests and the people; invite those who are missing."""
    row, search = find_event(see)
    missing = dwellers(see.world, see.ask.city) & ~cell(see.world.guests, row)
    return (
        *search,
        (~has(see.notebook.guests, row), call(calendar.get, event=row)),
        (
            see.notebook.asked_cities & bit(see.ask.city) == 0,
            call(contacts.search_by_city, city=see.ask.city),
        ),
        (missing != 0, call(calendar.invite, event=row, contact=lowest_row(missing))),
        (True, call(finish)),
    )


# -- split a bill ----------------------------------------------------------------------------------


def plant_bill(scene: Scene, reason: Any) -> Scene:
    """Plant one to three guests, and a sum that divides by them and the user."""
    cast = scene.cast
    count = cast.roll(0, 1, 3)
    guests = sum((jnp.where(k < count, bit(cast.contacts[k]), 0) for k in range(3)), jnp.uint32(0))
    planted = set_guests(name_event(scene, reason), cast.events[0], guests)
    return planted.say(number=cast.roll(1, 1, 7) * (count + 1))


def split_bill(start: World, ask: Ask, end: World) -> World:
    """Return the world with a request of an equal share to each guest."""
    guests = cell(start.guests, lowest_row(events_titled(start, ask.title)))
    share = ask.number // (size(guests) + 1)
    world = start
    for _ in range(3):
        requested = with_request(world, lowest_row(guests), share)
        columns = {
            c: jnp.where(guests != 0, getattr(requested, c), getattr(world, c))
            for c in sorted(ASKS)
        }
        world = world._replace(**columns)
        guests = guests & (guests - 1)
    return world


def plan_bill(see: Sight) -> Plan:
    """Read the guest list; ask those who were not asked yet (no other requests are looked at)."""
    row, search = find_event(see)
    guests = cell(see.world.guests, row)
    requested = jnp.bitwise_or.reduce(
        jnp.stack([bit(contact) for contact in see.world.request_contact])
    )
    pending = guests & ~requested
    share = see.ask.number // (size(guests) + 1)
    return (
        *search,
        (~has(see.notebook.guests, row), call(calendar.get, event=row)),
        (pending != 0, call(payments.request, contact=lowest_row(pending), amount=share)),
        (True, call(finish)),
    )


# -- an event that stands twice --------------------------------------------------------------------


def plant_duplicate(scene: Scene, reason: Any) -> Scene:
    """Plant two events of one title."""
    cast = scene.cast
    title = scene.world.title
    return scene.set(title=put(title, cast.events[1], cell(title, cast.events[0]))).say(
        title=cell(title, cast.events[0])
    )


def later_event(world: World, title: Any) -> Any:
    """Return the last event of a title."""
    flags = flags_of(events_titled(world, title), world.title.shape[-1])
    last = jnp.where(flags, world.time, 0).max()
    return lowest_row(mask_of(flags & (world.time == last)))


def cancel_duplicate(start: World, ask: Ask, end: World) -> World:
    """Return the world without the later event."""
    return remove_event(start, later_event(start, ask.title))


def plan_duplicate(see: Sight) -> Plan:
    """Find both, cancel the later."""
    return (
        (
            see.notebook.asked_titles & bit(see.ask.title) == 0,
            call(calendar.find, title=see.ask.title),
        ),
        (
            size(events_titled(see.world, see.ask.title)) > 1,
            call(calendar.cancel, event=later_event(see.world, see.ask.title)),
        ),
        (True, call(finish)),
    )


# -- settle with somebody --------------------------------------------------------------------------


def plant_debts(scene: Scene, reason: Any) -> Scene:
    """Plant two open requests of a contact.

    The distractors are a request to the contact, and one of the contact's that was declined.
    """
    cast = scene.cast
    hero = scene.cast.contacts[0]
    limit = scene.ask.limit
    first_debt = cast.roll(0, 1, 15)
    second_debt = jnp.where(
        reason == Reason.OVER_LIMIT, cast.roll(1, limit + 1, 31), cast.roll(2, 1, 15)
    )
    planted = by_name_and_city(scene, reason)
    planted = planted.set_request(cast.requests[0], hero, first_debt, Direction.INCOMING)
    planted = planted.set_request(cast.requests[1], hero, second_debt, Direction.INCOMING)
    planted = planted.set_request(cast.requests[2], hero, cast.roll(3, 1, 15), Direction.OUTGOING)
    planted = planted.set_request(
        cast.requests[3], hero, cast.roll(4, 1, 15), Direction.INCOMING, Status.DECLINED
    )
    # One euro is missing: the balance covers one of the two, so paying before adding up is a
    # mistake.
    short = jnp.where(
        reason == Reason.INSUFFICIENT_FUNDS, first_debt + second_debt - 1, scene.world.balance + 10
    )
    return planted.set(balance=short)


def pay_debts(start: World, ask: Ask, end: World) -> World:
    """Return the world with both requests paid."""
    debts = requests_with(start, person(start, ask), Direction.INCOMING)
    return with_request_paid(
        with_request_paid(start, lowest_row(debts)), lowest_row(debts & (debts - 1))
    )


def plan_debts(see: Sight) -> Plan:
    """Find contact and requests, add up, pay one after another."""
    who, search = find_person(see)
    debts = requests_with(see.world, who, Direction.INCOMING)
    amounts = jnp.where(
        flags_of(debts, see.world.request_amount.shape[-1]), see.world.request_amount, 0
    )
    return (
        *search,
        (see.notebook.asked_requests == 0, call(payments.list_requests)),
        (amounts.max() > see.ask.limit, refuse(Reason.OVER_LIMIT)),
        (see.notebook.accounts == 0, call(payments.balance)),
        (amounts.sum() > see.world.balance, refuse(Reason.INSUFFICIENT_FUNDS)),
        (debts != 0, call(payments.pay_request, request=lowest_row(debts))),
        (True, call(finish)),
    )


# -- pay out of savings ----------------------------------------------------------------------------


def plant_top_up(scene: Scene, reason: Any) -> Scene:
    """Choose an amount above the balance; savings cover the rest, or not quite."""
    planted = plant_amount(by_name_and_city(scene, reason), reason)
    cast = scene.cast
    amount = planted.ask.number
    balance = cast.roll(3, 0, amount - 1)
    short = reason == Reason.INSUFFICIENT_FUNDS
    return planted.set(
        balance=balance, savings=jnp.where(short, amount - balance - 1, scene.world.savings)
    )


def top_up_and_pay(start: World, ask: Ask, end: World) -> World:
    """Return the world with the account empty and the money with the contact.

    Savings pay what the account lacks.
    """
    gap = ask.number - start.balance
    filled = start._replace(balance=start.balance + gap, savings=start.savings - gap)
    return with_transfer(filled, person(start, ask), ask.number)


def plan_top_up(see: Sight) -> Plan:
    """Find the contact, look at the accounts, fill up, send."""
    who, search = find_person(see)
    gap = see.ask.number - see.world.balance
    return (
        (has_succeeded(see, payments.send), call(finish)),
        (see.ask.number > see.ask.limit, refuse(Reason.OVER_LIMIT)),
        *search,
        (see.notebook.accounts == 0, call(payments.balance)),
        (gap > see.world.savings, refuse(Reason.INSUFFICIENT_FUNDS)),
        (gap > 0, call(payments.use_savings, amount=gap)),
        (True, call(payments.send, contact=who, amount=see.ask.number)),
    )


# -- a new event with somebody ---------------------------------------------------------------------


def plant_meeting(scene: Scene, reason: Any) -> Scene:
    """Choose a new title, and a day with room or without."""
    cast = scene.cast
    day = cast.roll(0, 1, 4)
    full = scene
    for k in range(6):
        full = full.set_time(cast.events[k], 6 * (day - 1) + 1 + k)
    times = jnp.where(reason == Reason.NO_FREE_TIME, full.world.time, scene.world.time)
    return by_name_and_city(scene, reason).set(time=times).say(title=cast.new_title, day=day)


def add_meeting(start: World, ask: Ask, end: World) -> World:
    """Return the world with a new event with one guest.

    The instruction leaves open at which free hour of the day.
    """
    row = free_row(start.title)
    free = hours_of(ask.day) & ~busy_times(start)
    reached_time = cell(end.time, row)
    time = jnp.where(has(free, reached_time), reached_time, lowest_row(free))
    return start._replace(
        title=put(start.title, row, ask.title),
        time=put(start.time, row, time),
        guests=put(start.guests, row, bit(person(start, ask))),
    )


def plan_meeting(see: Sight) -> Plan:
    """Find the contact and a free hour, create, invite."""
    who, search = find_person(see)
    row = lowest_row(events_titled(see.world, see.ask.title))
    time = first_free_hour(see.busy_times, see.ask.day)
    return (
        (has_succeeded(see, calendar.invite), call(finish)),
        (row > 0, call(calendar.invite, event=row, contact=who)),
        *search,
        (
            hours_of(see.ask.day) & ~see.notebook.times != 0,
            call(calendar.free_times, day=see.ask.day),
        ),
        (time == 0, refuse(Reason.NO_FREE_TIME)),
        (True, call(calendar.create, title=see.ask.title, time=time)),
    )


# -- clear a day -----------------------------------------------------------------------------------


def plant_clearing(scene: Scene, reason: Any) -> Scene:
    """Plant an event with at least two others on its day."""
    cast = scene.cast
    time = cell(scene.world.time, cast.events[0])
    morning = time - (time - 1) % 6
    hour = (time - 1) % 6
    planted = name_event(scene, reason).set_time(
        cast.events[1], morning + (hour + cast.roll(0, 1, 2)) % 6
    )
    return planted.set_time(cast.events[2], morning + (hour + cast.roll(1, 3, 5)) % 6).say(
        day=day_of(time)
    )


def surplus_events(world: World, ask: Ask) -> Any:
    """Return the set of events of the day, without those of the title."""
    return events_on(world, ask.day) & ~events_titled(world, ask.title)


def clear_day(start: World, ask: Ask, end: World) -> World:
    """Return the world without the surplus events."""
    is_surplus = flags_of(surplus_events(start, ask), start.title.shape[-1])
    # A set's own order changes from process to process.
    columns = {c: getattr(start, c) for c in sorted(EVENT)}
    return start._replace(
        **{
            c: jnp.where(is_surplus, 0, column).astype(column.dtype)
            for c, column in columns.items()
        }
    )


def plan_clearing(see: Sight) -> Plan:
    """List the day, cancel one after another."""
    surplus = surplus_events(see.world, see.ask)
    return (
        (
            hours_of(see.ask.day) & ~see.notebook.times != 0,
            call(calendar.list_day, day=see.ask.day),
        ),
        (surplus != 0, call(calendar.cancel, event=lowest_row(surplus))),
        (True, call(finish)),
    )


# -- send money back -------------------------------------------------------------------------------


def plant_return(scene: Scene, reason: Any) -> Scene:
    """Plant money that a contact sent once; as a distractor, money sent to them."""
    planted = plant_amount(by_name_and_city(scene, reason), reason)
    cast = scene.cast
    world = planted.world
    received = cast.transfers[0]
    sent = cast.transfers[1]
    amounts = put(
        put(world.transfer_amount, received, planted.ask.number), sent, cast.roll(3, 1, 31)
    )
    people = put(put(world.transfer_contact, received, cast.contacts[0]), sent, cast.contacts[0])
    directions = put(
        put(world.transfer_direction, received, Direction.INCOMING), sent, Direction.OUTGOING
    )
    return planted.set(
        transfer_amount=amounts, transfer_contact=people, transfer_direction=directions
    ).say(number=0)


def euros_received_from(world: World, contact: Any) -> Any:
    """Return the euros that a contact sent."""
    is_received = (
        (world.transfer_contact == contact)
        & (world.transfer_direction == Direction.INCOMING)
        & (contact > 0)
    )
    return total(world.transfer_amount, mask_of(is_received))


def return_money(start: World, ask: Ask, end: World) -> World:
    """Return the world with the same amount sent back."""
    who = person(start, ask)
    return with_transfer(start, who, euros_received_from(start, who))


def plan_return(see: Sight) -> Plan:
    """Find the contact and the transfer, look at the balance, send."""
    who, search = find_person(see)
    amount = euros_received_from(see.world, who)
    return (
        (has_succeeded(see, payments.send), call(finish)),
        *search,
        (~has(see.notebook.asked_transfers, who), call(payments.list_transfers, contact=who)),
        (amount > see.ask.limit, refuse(Reason.OVER_LIMIT)),
        (see.notebook.accounts == 0, call(payments.balance)),
        (amount > see.world.balance, refuse(Reason.INSUFFICIENT_FUNDS)),
        (True, call(payments.send, contact=who, amount=amount)),
    )


# -- somebody is ill -------------------------------------------------------------------------------


def plant_absence(scene: Scene, reason: Any) -> Scene:
    """Plant a guest of an event, on a day with another event."""
    planted = by_name_and_city(scene, reason)
    cast = scene.cast
    event = cast.events[0]
    time = cell(scene.world.time, cast.events[0])
    same_day_time = time - (time - 1) % 6 + ((time - 1) % 6 + cast.roll(0, 1, 5)) % 6
    planted = set_guests(planted, event, cell(scene.world.guests, event) | bit(cast.contacts[0]))
    return planted.set_time(cast.events[1], same_day_time).say(day=day_of(time))


def remove_guest(start: World, ask: Ask, end: World) -> World:
    """Return the world with the guest off every guest list of the day."""
    that_day = flags_of(events_on(start, ask.day), start.title.shape[-1])
    return start._replace(
        guests=jnp.where(that_day, start.guests & ~bit(person(start, ask)), start.guests)
    )


def plan_absence(see: Sight) -> Plan:
    """Find the contact, list the day, read each guest list, uninvite."""
    who, search = find_person(see)
    that_day = events_on(see.world, see.ask.day)
    unread = that_day & ~see.notebook.guests
    guest_of = mask_of((see.world.guests & bit(who)) != 0) & that_day
    return (
        *search,
        (
            hours_of(see.ask.day) & ~see.notebook.times != 0,
            call(calendar.list_day, day=see.ask.day),
        ),
        (unread != 0, call(calendar.get, event=lowest_row(unread))),
        (guest_of != 0, call(calendar.uninvite, event=lowest_row(guest_of), contact=who)),
        (True, call(finish)),
    )


# -- what somebody owes ----------------------------------------------------------------------------


def plant_claims(scene: Scene, reason: Any) -> Scene:
    """Plant two open requests to a contact; as distractors, one that was paid and one of theirs."""
    planted = by_name_and_city(scene, reason)
    cast = scene.cast
    hero = scene.cast.contacts[0]
    planted = planted.set_request(cast.requests[0], hero, cast.roll(0, 1, 15), Direction.OUTGOING)
    planted = planted.set_request(cast.requests[1], hero, cast.roll(1, 1, 15), Direction.OUTGOING)
    planted = planted.set_request(
        cast.requests[2], hero, cast.roll(2, 1, 15), Direction.OUTGOING, Status.PAID
    )
    return planted.set_request(cast.requests[3], hero, cast.roll(3, 1, 15), Direction.INCOMING)


def euros_owed_by(world: World, contact: Any) -> Any:
    """Return the euros that a contact was asked for and has not paid."""
    return total(world.request_amount, requests_with(world, contact, Direction.OUTGOING))


def claims_of(start: World, ask: Ask) -> Any:
    """Return the contact's debt, the number of the answer."""
    return euros_owed_by(start, person(start, ask))


def plan_claims(see: Sight) -> Plan:
    """Find contact and requests, add up, answer."""
    who, search = find_person(see)
    return (
        *search,
        (see.notebook.asked_requests == 0, call(payments.list_requests)),
        (True, call(answer, number=euros_owed_by(see.world, who))),
    )


TEMPLATES = (
    Template(
        name="invite_city",
        specification="All contacts who live in {city} are guests of the event called {title}.",
        wordings=(
            "Invite everybody from {city} to the {title}.",
            "All my contacts in {city} should come to the {title}.",
            "Put every contact who lives in {city} on the guest list of the {title}.",
        ),
        touches=frozenset({"guests"}),
        reasons=(Reason.NO_SUCH_EVENT,),
        plant=plant_city,
        outcome=invite_city,
        plan=plan_city,
    ),
    Template(
        name="split_bill",
        specification=(
            "Each guest of the event called {title} has one more open outgoing request, of "
            "{amount} divided by the number of guests plus one."
        ),
        wordings=(
            (
                "I paid {amount} for the {title}. Ask every guest for an equal share; one share is "
                "mine."
            ),
            (
                "The {title} cost me {amount}. Split it equally among the guests and me, and "
                "request their shares."
            ),
            (
                "Divide the {amount} for the {title} by all guests and me, and ask each guest for "
                "their part."
            ),
        ),
        touches=ASKS,
        reasons=(Reason.NO_SUCH_EVENT,),
        plant=plant_bill,
        outcome=split_bill,
        plan=plan_bill,
    ),
    Template(
        name="cancel_duplicate",
        specification="Of the two events called {title}, the later is no longer in the calendar.",
        wordings=(
            "The {title} stands twice in the calendar. Cancel the later one.",
            "There are two of the {title}; keep the earlier only.",
            "By mistake the {title} is there twice: remove the later.",
        ),
        touches=EVENT,
        plant=plant_duplicate,
        outcome=cancel_duplicate,
        plan=plan_duplicate,
    ),
    Template(
        name="settle_debts",
        specification=(
            "All open incoming requests of the contact called {name} in {city} are paid from the "
            "account."
        ),
        wordings=(
            "Pay all open requests of {name} from {city}.",
            "{name} in {city} wants money from me; settle all of it.",
            "Settle everything that {name} from {city} has asked me for.",
        ),
        touches=SENDS | {"request_status"},
        reasons=(Reason.INSUFFICIENT_FUNDS, Reason.OVER_LIMIT, *UNCLEAR),
        plant=plant_debts,
        outcome=pay_debts,
        plan=plan_debts,
    ),
    Template(
        name="pay_with_savings",
        specification=(
            "One transfer of {amount} to the contact called {name} in {city} is sent; savings gave "
            "what the account lacked."
        ),
        wordings=(
            (
                "Send {amount} to {name} from {city}; take what the account lacks from savings, no "
                "more."
            ),
            "{name} in {city} gets {amount}. Use savings only for what is missing.",
            "Transfer {amount} to {name} from {city}, and fill the gap from savings exactly.",
        ),
        touches=SENDS | {"savings"},
        reasons=(Reason.INSUFFICIENT_FUNDS, Reason.OVER_LIMIT, *UNCLEAR),
        plant=plant_top_up,
        outcome=top_up_and_pay,
        plan=plan_top_up,
    ),
    Template(
        name="schedule",
        specification=(
            "There is a new event called {title} on {day} without place, and its only guest is the "
            "contact called {name} in {city}."
        ),
        wordings=(
            "Set up a {title} with {name} from {city} on {day}, at any free hour.",
            "Find an hour on {day} for a {title} with {name} from {city}.",
            "Put a {title} on {day} and invite {name} from {city}; the hour does not matter.",
        ),
        touches=frozenset({"title", "time", "guests"}),
        reasons=(*UNCLEAR, Reason.NO_FREE_TIME),
        plant=plant_meeting,
        outcome=add_meeting,
        plan=plan_meeting,
    ),
    Template(
        name="clear_day",
        specification=(
            "All events of {day} but the one called {title} are no longer in the calendar."
        ),
        wordings=(
            "Cancel everything on {day} but the {title}.",
            "On {day} I have time for the {title} only; cancel the rest.",
            "Clear my {day}, except for the {title}.",
        ),
        touches=EVENT,
        plant=plant_clearing,
        outcome=clear_day,
        plan=plan_clearing,
    ),
    Template(
        name="return_money",
        specification=(
            "One transfer to the contact called {name} in {city} is sent from the account, of the "
            "amount received from them."
        ),
        wordings=(
            "Send {name} from {city} back what I got from them.",
            "Return the money that {name} in {city} sent me.",
            "{name} from {city} sent me money by mistake; send the same amount back.",
        ),
        touches=SENDS,
        reasons=(Reason.INSUFFICIENT_FUNDS, Reason.OVER_LIMIT, *UNCLEAR),
        plant=plant_return,
        outcome=return_money,
        plan=plan_return,
    ),
    Template(
        name="guest_is_ill",
        specification="The contact called {name} in {city} is a guest of no event on {day}.",
        wordings=(
            "{name} from {city} is ill; take them off all events on {day}.",
            "Uninvite {name} from {city} from everything on {day}.",
            "{name} in {city} cannot come on {day}: remove them from all guest lists of that day.",
        ),
        touches=frozenset({"guests"}),
        reasons=UNCLEAR,
        plant=plant_absence,
        outcome=remove_guest,
        plan=plan_absence,
    ),
    Template(
        name="total_owed",
        specification=(
            "The answer is the sum of the open outgoing requests to the contact called {name} in "
            "{city}."
        ),
        wordings=(
            "How much does {name} from {city} still owe me in all?",
            "Add up what {name} in {city} has yet to pay me.",
            "What is the sum of my open requests to {name} from {city}?",
        ),
        touches=frozenset(),
        reasons=UNCLEAR,
        plant=plant_claims,
        outcome=change_nothing,
        plan=plan_claims,
        answer=claims_of,
    ),
)

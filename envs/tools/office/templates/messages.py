"""Instructions about messages."""

from __future__ import annotations

from .. import words
from ..population import Tables
from .row_template import EASY, HARD, MEDIUM, UNCLEAR, Ask, Plan, Scene, call, find_person, template


def _send_message(a: Ask) -> Plan:
    yield call("messages_send", contact=a.contact, text=a.text)


@template(
    EASY, _send_message, 'Send contact {contact} the message "{text}".',
    'Text "{text}" to contact {contact}.', 'Contact {contact} should get this message: "{text}".',
)  # fmt: skip
def send_message(s: Scene) -> Tables:
    """One message of the text to the contact is sent."""
    who = s.row("contacts", blocked=False)
    text = s.dice.choice(words.PHRASES)
    s.say(contact=who, text=text)
    goal = s.goal()
    goal["messages"][1000] = {"contact": who, "direction": "outgoing", "text": text, "read": True}
    return goal


def _mute_contact(a: Ask) -> Plan:
    yield call("messages_mute", contact=a.contact)


@template(
    EASY, _mute_contact, "Mute contact {contact}.",
    "I want no sound for messages of contact {contact}.",
    "Contact {contact} writes too much; mute.", test=True,
)  # fmt: skip
def mute_contact(s: Scene) -> Tables:
    """The contact is muted."""
    who = s.row("contacts", muted=False)
    s.say(contact=who)
    goal = s.goal()
    goal["contacts"][who]["muted"] = True
    return goal


def _message_by_name(a: Ask) -> Plan:
    who = yield from find_person(a)
    yield call("messages_send", contact=who, text=a.text)


@template(
    MEDIUM, _message_by_name, 'Send {name} the message "{text}".', 'Text "{text}" to {name}.',
    'Let {name} know by message: "{text}".', reasons=UNCLEAR,
)  # fmt: skip
def message_by_name(s: Scene) -> Tables:
    """One message of the text to the contact is sent."""
    who = s.person()
    text = s.dice.choice(words.PHRASES)
    s.world["contacts"][who]["blocked"] = False
    s.say(text=text)
    goal = s.goal()
    goal["messages"][1000] = {"contact": who, "direction": "outgoing", "text": text, "read": True}
    return goal


def _block(a: Ask) -> Plan:
    who = yield from find_person(a)
    yield call("messages_block", contact=who)


@template(
    MEDIUM, _block, "Block {name}.", "I want no messages from {name} any more; block.",
    "{name} shall be blocked.", reasons=UNCLEAR, test=True,
)  # fmt: skip
def block_contact(s: Scene) -> Tables:
    """The contact is blocked."""
    who = s.person()
    s.world["contacts"][who]["blocked"] = False
    goal = s.goal()
    goal["contacts"][who]["blocked"] = True
    return goal


def _message(contact: int, text: str) -> dict[str, object]:
    return {"contact": contact, "direction": "outgoing", "text": text, "read": True}


def _message_city(a: Ask) -> Plan:
    rows = yield call("contacts_of_city", city=a.city)
    for row in rows:
        yield call("messages_send", contact=row["contact"], text=a.text)


@template(
    HARD, _message_city, 'Send everybody in {city} the message "{text}".',
    'Text "{text}" to all contacts in {city}.',
    'Each of my contacts in {city} should get the message "{text}".',
)  # fmt: skip
def message_city(s: Scene) -> Tables:
    """One message of the text is sent to each contact in the city."""
    city = s.dice.choice(words.CITIES)
    text = s.dice.choice(words.PHRASES)
    s.say(city=city, text=text)
    for number in s.pick("contacts", 2):
        s.world["contacts"][number]["city"] = city
    goal = s.goal()
    for number, row in s.world["contacts"].items():
        if row["city"] == city:
            row["blocked"] = goal["contacts"][number]["blocked"] = False
            goal["messages"][1000 + number] = _message(number, text)
    return goal


def _block_spam(a: Ask) -> Plan:
    rows = yield call("messages_search", text=a.text)
    spam = [row for row in rows if row["direction"] == "incoming"]
    blocked_rows = yield call("messages_blocked")
    blocked_contacts = {row["contact"] for row in blocked_rows}
    for row in spam:
        if row["contact"] not in blocked_contacts:
            yield call("messages_block", contact=row["contact"])
            blocked_contacts.add(row["contact"])
    for row in spam:
        yield call("messages_delete", message=row["message"])


@template(
    HARD, _block_spam, 'Block everybody who sent me "{text}", and delete these messages.',
    'Whoever texted me "{text}" shall be blocked, and that message deleted.',
    'Delete each message "{text}" that I got, and block its sender.', test=True,
)  # fmt: skip
def block_spam(s: Scene) -> Tables:
    """The senders of the text are blocked, and their messages of that text are gone."""
    text = s.dice.choice(words.PHRASES)
    s.say(text=text)
    *spam, outgoing = s.pick("messages", 3)
    for message, contact in zip(spam, s.pick("contacts", 2), strict=True):
        s.world["messages"][message].update(contact=contact, direction="incoming", text=text)
        s.world["contacts"][contact]["blocked"] = False
    s.world["messages"][outgoing].update(direction="outgoing", text=text)
    goal = s.goal()
    for number, row in s.world["messages"].items():
        if row["text"] == text and row["direction"] == "incoming":
            goal["contacts"][row["contact"]]["blocked"] = True
            del goal["messages"][number]
    return goal


TEMPLATES = (
    send_message, mute_contact, message_by_name, block_contact, message_city, block_spam,
)  # fmt: skip

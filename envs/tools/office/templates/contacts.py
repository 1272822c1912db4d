"""Instructions about the phone book."""

from __future__ import annotations

from .. import words
from ..population import Tables
from .row_template import EASY, HARD, MEDIUM, UNCLEAR, Ask, Plan, Scene, call, find_person, template


def _change_phone(a: Ask) -> Plan:
    yield call("contacts_set_phone", contact=a.contact, phone=a.phone)


@template(
    EASY, _change_phone, "The new phone number of contact {contact} is {phone}.",
    "Contact {contact} can now be reached at {phone}; note it.",
    "Change the number of contact {contact} to {phone}.",
)  # fmt: skip
def change_phone(s: Scene) -> Tables:
    """The phone number of the contact is the given one."""
    (who,) = s.pick("contacts")
    phone = s.unused(words.PHONES, "contacts", "phone")
    s.say(contact=who, phone=phone)
    goal = s.goal()
    goal["contacts"][who]["phone"] = phone
    return goal


def _favour(a: Ask) -> Plan:
    yield call("contacts_favour", contact=a.contact)


@template(
    EASY, _favour, "Make contact {contact} a favourite.", "Add contact {contact} to my favourites.",
    "Contact {contact} belongs among my favourites.",
)  # fmt: skip
def favour_contact(s: Scene) -> Tables:
    """The contact is a favourite."""
    who = s.row("contacts", favourite=False)
    s.say(contact=who)
    goal = s.goal()
    goal["contacts"][who]["favourite"] = True
    return goal


def _tell_phone(a: Ask) -> Plan:
    who = yield from find_person(a)
    (row,) = yield call("contacts_get", contact=who)
    return row["phone"]


@template(
    MEDIUM, _tell_phone, "What is the phone number of {name}?", "Tell me the number of {name}.",
    "At which number do I reach {name}?", reasons=UNCLEAR,
)  # fmt: skip
def tell_phone(s: Scene) -> tuple[Tables, str]:
    """Nothing changes; the answer is the phone number."""
    who = s.person()
    return s.goal(), s.world["contacts"][who]["phone"]


def _delete_contact(a: Ask) -> Plan:
    who = yield from find_person(a)
    yield call("contacts_delete", contact=who)


@template(
    MEDIUM, _delete_contact, "Delete {name} from my contacts.",
    "I do not need {name} in the phone book any more.",
    "Take {name} out of the contacts.", reasons=UNCLEAR,
)  # fmt: skip
def delete_contact(s: Scene) -> Tables:
    """The contact is gone, and no other."""
    who = s.person()
    goal = s.goal()
    del goal["contacts"][who]
    return goal


def _change_cities(a: Ask) -> Plan:
    rows = yield call("contacts_of_relation", relation=a.relation)
    for row in rows:
        if row["city"] == a.old:
            yield call("contacts_set_city", contact=row["contact"], city=a.new)


@template(
    HARD, _change_cities,
    "Everybody in {old} who is a {relation} has moved to {new}; change the phone book.",
    "The contacts of the relation {relation} who live in {old} now live in {new}.",
    "Change {old} to {new} for each {relation}.",
)  # fmt: skip
def change_cities(s: Scene) -> Tables:
    """The contacts of the relation in the old city are in the new city; nobody else is moved."""
    relation = s.dice.choice(words.RELATIONS)
    old = s.dice.choice(words.CITIES)
    new = s.another_word(words.CITIES, old)
    s.say(old=old, new=new, relation=relation)
    *movers, resident, stranger = s.pick("contacts", 4)
    for number in movers:
        s.world["contacts"][number].update(relation=relation, city=old)
    s.world["contacts"][resident].update(relation=relation, city=new)
    s.world["contacts"][stranger].update(
        relation=s.another_word(words.RELATIONS, relation), city=old
    )
    goal = s.goal()
    for row in goal["contacts"].values():
        if row["relation"] == relation and row["city"] == old:
            row["city"] = new
    return goal


TEMPLATES = (
    change_phone, favour_contact, tell_phone, delete_contact, change_cities,
)  # fmt: skip

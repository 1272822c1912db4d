"""Instructions about money."""

from __future__ import annotations

from .. import words
from ..population import Tables
from .calendar import _event, _find_event
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
    check_balance,
    find_person,
    template,
)

FUNDS = ("insufficient_funds",)
_FULL_NAME = "{name} {last}"


def _amount(s: Scene) -> int:
    """Draw an amount that the balance covers, unless the obstacle is that it does not."""
    amount = s.dice.between(2, 90)
    if s.reason == "insufficient_funds":
        s.world["account"][1]["balance"] = s.dice.below(amount)
    s.say(amount=amount)
    return amount


def _pay_contact(a: Ask) -> Plan:
    yield from check_balance(a.amount)
    yield call("payments_send", contact=a.contact, amount=a.amount)


@template(
    EASY, _pay_contact, "Send {amount} euros to contact {contact}.",
    "Contact {contact} gets {amount} euros from me.",
    "Please transfer {amount} euros to contact {contact}.", reasons=FUNDS,
)  # fmt: skip
def pay_contact(s: Scene) -> Tables:
    """One transfer of the amount to the contact is sent from the balance."""
    (who,) = s.pick("contacts")
    s.say(contact=who)
    amount = _amount(s)
    goal = s.goal()
    goal["account"][1]["balance"] -= amount
    goal["transfers"][1000] = {"contact": who, "amount": amount, "direction": "outgoing"}
    return goal


def _save_money(a: Ask) -> Plan:
    yield from check_balance(a.amount)
    yield call("payments_save", amount=a.amount)


@template(
    EASY, _save_money, "Put {amount} euros into my savings.",
    "Save {amount} euros from my account.",
    "Move {amount} euros from the balance to the savings.", reasons=FUNDS, test=True,
)  # fmt: skip
def save_money(s: Scene) -> Tables:
    """The amount is moved from the balance to the savings."""
    amount = _amount(s)
    goal = s.goal()
    goal["account"][1]["balance"] -= amount
    goal["account"][1]["savings"] += amount
    return goal


def _decline_request(a: Ask) -> Plan:
    yield call("payments_decline", request=a.request)


@template(
    EASY, _decline_request, "Decline request {request}.",
    "I will not pay request {request}; say no.", "Turn down request {request} for money.",
)  # fmt: skip
def decline_request(s: Scene) -> Tables:
    """The request is declined."""
    request = s.row("requests", direction="incoming", status="open")
    s.say(request=request)
    goal = s.goal()
    goal["requests"][request]["status"] = "declined"
    return goal


def _pay_by_name(a: Ask) -> Plan:
    who = yield from find_person(a)
    yield from check_balance(a.amount)
    yield call("payments_send", contact=who, amount=a.amount)


@template(
    MEDIUM, _pay_by_name, "Send {name} {amount} euros.", "{name} gets {amount} euros from me.",
    "Please transfer {amount} euros to {name}.", reasons=(*UNCLEAR, *FUNDS),
)  # fmt: skip
def pay_by_name(s: Scene) -> Tables:
    """One transfer of the amount to the contact is sent from the balance."""
    who = s.person()
    amount = _amount(s)
    goal = s.goal()
    goal["account"][1]["balance"] -= amount
    goal["transfers"][1000] = {"contact": who, "amount": amount, "direction": "outgoing"}
    return goal


def _requests_of(who: int, direction: str) -> Plan:
    rows = yield call("payments_requests_of", contact=who)
    return [row for row in rows if row["direction"] == direction and row["status"] == "open"]


def _plant_request(s: Scene, who: int, direction: str) -> int:
    """Plant one open request of a direction with a contact, among others; return its id."""
    request, declined, opposite = s.pick("requests", 3)
    for number, row in s.world["requests"].items():
        if row["contact"] == who and number != request:
            row["contact"] = s.other_contact(who)
    requests = s.world["requests"]
    requests[request].update(
        contact=who, direction=direction, status="open", amount=s.dice.between(2, 60)
    )
    requests[declined].update(contact=who, direction=direction, status="declined")
    requests[opposite].update(
        contact=who, direction=s.another_word(words.DIRECTIONS, direction), status="open"
    )
    return request


def _pay_back(a: Ask) -> Plan:
    who = yield from find_person(a)
    (row,) = yield from _requests_of(who, "incoming")
    yield from check_balance(row["amount"])
    yield call("payments_pay", request=row["request"])


@template(
    MEDIUM, _pay_back, "Pay the open request of {name}.",
    "{name} waits for money; pay what is asked.",
    "Settle what {name} asks for.", reasons=(*UNCLEAR, *FUNDS),
)  # fmt: skip
def pay_back(s: Scene) -> Tables:
    """The open incoming request of the contact is paid, and the money sent."""
    who = s.person()
    request = _plant_request(s, who, "incoming")
    amount = s.world["requests"][request]["amount"]
    if s.reason == "insufficient_funds":
        s.world["account"][1]["balance"] = s.dice.below(amount)
    goal = s.goal()
    goal["requests"][request]["status"] = "paid"
    goal["account"][1]["balance"] -= amount
    goal["transfers"][1000] = {"contact": who, "amount": amount, "direction": "outgoing"}
    return goal


def _withdraw(a: Ask) -> Plan:
    who = yield from find_person(a)
    (row,) = yield from _requests_of(who, "outgoing")
    yield call("payments_withdraw", request=row["request"])


@template(
    MEDIUM, _withdraw, "Withdraw my open request to {name}.",
    "{name} owes me nothing after all; take the request back.",
    "Take back what I asked {name} for.", reasons=UNCLEAR, test=True,
)  # fmt: skip
def withdraw_request(s: Scene) -> Tables:
    """The open outgoing request to the contact is withdrawn."""
    request = _plant_request(s, s.person(), "outgoing")
    goal = s.goal()
    goal["requests"][request]["status"] = "withdrawn"
    return goal


def _split_bill(a: Ask) -> Plan:
    event = yield from _find_event(a)
    (row,) = yield call("calendar_get", event=event)
    for guest in sorted(row["guests"]):
        yield call("payments_request", contact=guest, amount=a.amount // (len(row["guests"]) + 1))


@template(
    HARD, _split_bill,
    "I paid {amount} euros for the {title}. Ask each guest for an equal share; I carry one, too.",
    "Split the {amount} euros of the {title} among its guests and me, and request their shares.",
    (
        "The {title} cost me {amount} euros. Every guest owes me as much as I pay myself; send "
        "requests."
    ),
    reasons=("no_such_event",),
)  # fmt: skip
def split_bill(s: Scene) -> Tables:
    """There is one more open outgoing request to each guest.

    It asks for the amount divided by the number of guests and one.
    """
    event = _event(s)
    guests = s.pick("contacts", s.dice.between(2, 4))
    s.world["events"][event]["guests"] = frozenset(guests)
    share = s.dice.between(3, 25)
    s.say(amount=share * (len(guests) + 1))
    goal = s.goal()
    for number, guest in enumerate(guests):
        goal["requests"][1000 + number] = {
            "contact": guest, "amount": share, "direction": "outgoing", "status": "open"
        }  # fmt: skip
    return goal


def _settle_debts(a: Ask) -> Plan:
    who = yield from find_person(a)
    rows = yield from _requests_of(who, "incoming")
    yield from check_balance(sum(row["amount"] for row in rows))
    for row in rows:
        yield call("payments_pay", request=row["request"])


@template(
    HARD, _settle_debts, f"Pay all open requests of {_FULL_NAME}.",
    f"Settle everything that {_FULL_NAME} asks for.",
    f"I owe {_FULL_NAME}; pay each request, or none if there is too little money for all.",
    reasons=(*UNCLEAR, *FUNDS),
)  # fmt: skip
def settle_debts(s: Scene) -> Tables:
    """All open incoming requests of the contact are paid.

    None is paid if the balance does not cover all.
    """
    who = s.namesake()
    first = _plant_request(s, who, "incoming")
    requests = s.world["requests"]
    second = s.dice.choice([number for number, row in requests.items() if row["contact"] != who])
    requests[second].update(contact=who, direction="incoming", status="open")
    amounts = [requests[number]["amount"] for number in (first, second)]
    if s.reason == "insufficient_funds":
        s.world["account"][1]["balance"] = sum(amounts) - s.dice.between(1, min(amounts))
    goal = s.goal()
    goal["account"][1]["balance"] -= sum(amounts)
    for number, amount in zip((first, second), amounts, strict=True):
        goal["requests"][number]["status"] = "paid"
        goal["transfers"][1000 + number] = {
            "contact": who,
            "amount": amount,
            "direction": "outgoing",
        }
    return goal


def _return_money(a: Ask) -> Plan:
    who = yield from find_person(a)
    rows = yield call("payments_transfers_of", contact=who)
    amount = sum(row["amount"] for row in rows if row["direction"] == "incoming")
    yield from check_balance(amount)
    yield call("payments_send", contact=who, amount=amount)


@template(
    HARD, _return_money,
    f"Send back to {_FULL_NAME}, in one transfer, all the money that came from there.",
    f"Return to {_FULL_NAME} the sum of what I got from there, at once.",
    f"One transfer to {_FULL_NAME} gives back everything that came from there.",
    reasons=(*UNCLEAR, *FUNDS),
)  # fmt: skip
def return_money(s: Scene) -> Tables:
    """One transfer to the contact is sent, of the sum of all transfers from the contact."""
    who = s.namesake()
    *received, sent = s.pick("transfers", 3)
    for number, row in s.world["transfers"].items():
        if row["contact"] == who:
            row["contact"] = s.other_contact(who)
        if number in received:
            row.update(contact=who, direction="incoming")
    s.world["transfers"][sent].update(contact=who, direction="outgoing")
    amount = sum(s.world["transfers"][number]["amount"] for number in received)
    if s.reason == "insufficient_funds":
        s.world["account"][1]["balance"] = s.dice.below(amount)
    goal = s.goal()
    goal["account"][1]["balance"] -= amount
    goal["transfers"][1000] = {"contact": who, "amount": amount, "direction": "outgoing"}
    return goal


def _pay_with_savings(a: Ask) -> Plan:
    who = yield from find_person(a)
    (account,) = yield call("payments_balance")
    if account["balance"] + account["savings"] < a.amount:
        raise Refused("insufficient_funds")
    yield call("payments_use_savings", amount=a.amount - account["balance"])
    yield call("payments_send", contact=who, amount=a.amount)


@template(
    HARD, _pay_with_savings,
    f"Send {_FULL_NAME} {{amount}} euros. Take what the balance lacks from the savings, not more.",
    f"{_FULL_NAME} gets {{amount}} euros; use no more of the savings than needed.",
    f"Transfer {{amount}} euros to {_FULL_NAME}, and fill the gap from my savings.",
    reasons=(*UNCLEAR, *FUNDS), test=True,
)  # fmt: skip
def pay_with_savings(s: Scene) -> Tables:
    """The transfer is sent; the savings have paid what the balance did not cover."""
    who = s.namesake()
    account = s.world["account"][1]
    gap = s.dice.between(1, account["savings"])
    if s.reason == "insufficient_funds":
        gap = account["savings"] + s.dice.between(1, 50)
    amount = account["balance"] + gap
    s.say(amount=amount)
    goal = s.goal()
    goal["account"][1].update(balance=0, savings=account["savings"] - gap)
    goal["transfers"][1000] = {"contact": who, "amount": amount, "direction": "outgoing"}
    return goal


def _total_owed(a: Ask) -> Plan:
    who = yield from find_person(a)
    rows = yield from _requests_of(who, "outgoing")
    return sum(row["amount"] for row in rows)


@template(
    HARD, _total_owed, f"How many euros does {_FULL_NAME} owe me by open requests?",
    f"What do my open requests to {_FULL_NAME} add up to, in euros?",
    f"Tell me the sum of what I have asked {_FULL_NAME} for.", reasons=UNCLEAR,
)  # fmt: skip
def total_owed(s: Scene) -> tuple[Tables, int]:
    """Nothing changes; the answer is the sum of the open outgoing requests to the contact."""
    who = s.namesake()
    first = _plant_request(s, who, "outgoing")
    requests = s.world["requests"]
    second = s.dice.choice([number for number, row in requests.items() if row["contact"] != who])
    requests[second].update(contact=who, direction="outgoing", status="open")
    return s.goal(), requests[first]["amount"] + requests[second]["amount"]


TEMPLATES = (
    pay_contact, save_money, decline_request, pay_by_name, pay_back, withdraw_request, split_bill,
    settle_debts, return_money, pay_with_savings, total_owed,
)  # fmt: skip

"""The app ``payments``: an account with savings, transfers, and requests for money."""

from __future__ import annotations

from ..row_api import Failed, Rows, added, existing, getter, lister, number, reads, row_id, writes
from ..rows import World, edit

CONTACT, REQUEST, AMOUNT = row_id("contacts"), row_id("requests"), number("whole euros")
REQUEST_ENTRY = ("contact", "amount", "direction", "status")
TRANSFER_ENTRY = ("contact", "amount", "direction")


def moved(world: World, balance: int, savings: int = 0) -> World:
    """Return the world with money added to balance and savings.

    Raises:
        Failed: one of them would be negative.
    """
    account = world["account"][1]
    balance, savings = account["balance"] + balance, account["savings"] + savings
    if min(balance, savings) < 0:
        raise Failed("insufficient_funds")
    return edit(world, "account", 1, balance=balance, savings=savings)


def _request(world: World, request: int, direction: str) -> tuple[int, int]:
    """Return contact and amount of an open request of one direction.

    Raises:
        Failed: there is none.
    """
    row = existing(world, "requests", request)
    if row["direction"] != direction:
        raise Failed("wrong_direction")
    if row["status"] != "open":
        raise Failed("not_open")
    return row["contact"], row["amount"]


@reads()
def payments_balance(world: World) -> Rows:
    """Show the account."""
    return [world["account"][1]]


@writes(contact=CONTACT, amount=AMOUNT)
def payments_send(world: World, contact: int, amount: int) -> World:
    """Send money to a contact."""
    existing(world, "contacts", contact)
    return added(moved(world, -amount), "transfers", contact=contact, amount=amount, direction="outgoing")


@writes(contact=CONTACT, amount=AMOUNT)
def payments_request(world: World, contact: int, amount: int) -> World:
    """Ask a contact for money."""
    existing(world, "contacts", contact)
    return added(world, "requests", contact=contact, amount=amount, direction="outgoing", status="open")


@writes(request=REQUEST)
def payments_pay(world: World, request: int) -> World:
    """Pay an incoming request."""
    contact, amount = _request(world, request, "incoming")
    paid = added(moved(world, -amount), "transfers", contact=contact, amount=amount, direction="outgoing")
    return edit(paid, "requests", request, status="paid")


@writes(request=REQUEST)
def payments_decline(world: World, request: int) -> World:
    """Decline an incoming request."""
    _request(world, request, "incoming")
    return edit(world, "requests", request, status="declined")


@writes(request=REQUEST)
def payments_withdraw(world: World, request: int) -> World:
    """Withdraw an outgoing request."""
    _request(world, request, "outgoing")
    return edit(world, "requests", request, status="withdrawn")


@writes(amount=AMOUNT)
def payments_save(world: World, amount: int) -> World:
    """Move money from the balance to the savings."""
    return moved(world, -amount, amount)


@writes(amount=AMOUNT)
def payments_use_savings(world: World, amount: int) -> World:
    """Move money from the savings to the balance."""
    return moved(world, amount, -amount)


def _open(row: object) -> bool:
    return row["status"] == "open"  # type: ignore[index]


APIS = (
    payments_balance,
    lister("payments_requests", "List open requests for money.", "requests", REQUEST_ENTRY, _open),
    lister("payments_requests_of", "List all requests with a contact.", "requests", REQUEST_ENTRY, contact=CONTACT),
    getter("payments_get_request", "Show a request.", "requests", REQUEST_ENTRY),
    lister("payments_transfers_of", "List the transfers with a contact.", "transfers", TRANSFER_ENTRY, contact=CONTACT),
    payments_send,
    payments_request,
    payments_pay,
    payments_decline,
    payments_withdraw,
    payments_save,
    payments_use_savings,
)

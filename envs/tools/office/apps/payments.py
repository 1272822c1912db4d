"""The app ``payments``: an account with savings, transfers, and requests for money.

All amounts are in whole euros.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..columns import (
    Direction,
    Status,
    bit,
    cell,
    free_row,
    has,
    mask_of,
    put,
    used_rows,
    with_request,
    with_request_paid,
    with_transfer,
)
from ..rows import Row, World, edit_row
from . import kinds
from .column_api import Error, State, api
from .row_api import (
    Failed,
    Rows,
    add_row,
    find_row,
    getter,
    lister,
    reads,
    row_id,
    whole_number,
    writes,
)

# -- the compiled office ---------------------------------------------------------------------------

YES = np.uint32(1)


@api("payments.balance", returns="{balance, savings}")
def balance(state: State) -> State:
    """Show what is in the account, and in savings."""
    return state.learn(accounts=YES)


@api("payments.list_requests", returns="list of {request, contact, amount, direction, status}")
def list_requests(state: State) -> State:
    """List all requests for money, to the user (incoming) and by the user (outgoing)."""
    world = state.world
    people = jnp.bitwise_or.reduce(jnp.stack([bit(contact) for contact in world.request_contact]))
    requests = used_rows(world.request_contact)
    return state.show(requests=requests).learn(
        requests=requests, contacts=people, asked_requests=YES
    )


@api(
    "payments.list_transfers", returns="list of {contact, amount, direction}", contact=kinds.CONTACT
)
def list_transfers(state: State, contact: Any) -> State:
    """List the money sent to a contact (outgoing) and received from one (incoming)."""
    transfers = mask_of(state.world.transfer_contact == contact)
    return state.show(transfers=transfers).learn(transfers=transfers, asked_transfers=bit(contact))


@api("payments.send", errors=(Error.NOT_FOUND, Error.INSUFFICIENT_FUNDS), room="transfer_contact",
     contact=kinds.CONTACT, amount=kinds.AMOUNT)  # fmt: skip
def send(state: State, contact: Any, amount: Any) -> State:
    """Send money to a contact."""
    row = free_row(state.world.transfer_contact)
    sent = state._replace(world=with_transfer(state.world, contact, amount)).learn(
        transfers=bit(row)
    )
    return sent.fail_if(
        _stranger_error(state, contact), (amount > state.world.balance, Error.INSUFFICIENT_FUNDS)
    )


@api(
    "payments.request", returns="{request, contact, amount, direction, status}",
    errors=(Error.NOT_FOUND,), room="request_contact", contact=kinds.CONTACT, amount=kinds.AMOUNT,
)  # fmt: skip
def request(state: State, contact: Any, amount: Any) -> State:
    """Ask a contact for money."""
    row = bit(free_row(state.world.request_contact))
    requested = state._replace(world=with_request(state.world, contact, amount))
    return requested.show(requests=row).learn(requests=row).fail_if(_stranger_error(state, contact))


@api("payments.pay_request",
     errors=(Error.NOT_FOUND, Error.WRONG_DIRECTION, Error.NOT_OPEN, Error.INSUFFICIENT_FUNDS),
     room="transfer_contact", request=kinds.REQUEST)  # fmt: skip
def pay_request(state: State, request: Any) -> State:
    """Pay what an incoming request asks for."""
    world = state.world
    transfer = bit(free_row(world.transfer_contact))
    paid = state._replace(world=with_request_paid(world, request)).learn(
        requests=bit(request),
        transfers=transfer,
        contacts=bit(cell(world.request_contact, request)),
    )
    short = cell(world.request_amount, request) > world.balance
    return paid.fail_if(
        *_not_open_errors(state, request, Direction.INCOMING), (short, Error.INSUFFICIENT_FUNDS)
    )


@api(
    "payments.decline_request",
    errors=(Error.NOT_FOUND, Error.WRONG_DIRECTION, Error.NOT_OPEN),
    request=kinds.REQUEST,
)
def decline_request(state: State, request: Any) -> State:
    """Decline an incoming request."""
    declined = state.change(
        request_status=put(state.world.request_status, request, Status.DECLINED)
    )
    return declined.fail_if(*_not_open_errors(state, request, Direction.INCOMING))


@api(
    "payments.withdraw_request",
    errors=(Error.NOT_FOUND, Error.WRONG_DIRECTION, Error.NOT_OPEN),
    request=kinds.REQUEST,
)
def withdraw_request(state: State, request: Any) -> State:
    """Withdraw an outgoing request."""
    withdrawn = state.change(
        request_status=put(state.world.request_status, request, Status.WITHDRAWN)
    )
    return withdrawn.fail_if(*_not_open_errors(state, request, Direction.OUTGOING))


@api("payments.save", errors=(Error.INSUFFICIENT_FUNDS,), amount=kinds.AMOUNT)
def save(state: State, amount: Any) -> State:
    """Move money from the account to savings."""
    world = state.world
    saved = state.change(balance=world.balance - amount, savings=world.savings + amount)
    return saved.fail_if((amount > world.balance, Error.INSUFFICIENT_FUNDS))


@api("payments.use_savings", errors=(Error.INSUFFICIENT_FUNDS,), amount=kinds.AMOUNT)
def use_savings(state: State, amount: Any) -> State:
    """Move money from savings to the account."""
    world = state.world
    withdrawn = state.change(balance=world.balance + amount, savings=world.savings - amount)
    return withdrawn.fail_if((amount > world.savings, Error.INSUFFICIENT_FUNDS))


def _stranger_error(state: State, contact: Any) -> tuple[Any, Error]:
    return ~has(used_rows(state.world.name), contact), Error.NOT_FOUND


def _not_open_errors(
    state: State, request: Any, direction: Direction
) -> tuple[tuple[Any, Error], ...]:
    world = state.world
    return (
        (~has(used_rows(world.request_contact), request), Error.NOT_FOUND),
        (cell(world.request_direction, request) != direction, Error.WRONG_DIRECTION),
        (cell(world.request_status, request) != Status.OPEN, Error.NOT_OPEN),
    )


COLUMN_APIS = (
    balance,
    list_requests,
    list_transfers,
    send,
    request,
    pay_request,
    decline_request,
    withdraw_request,
    save,
    use_savings,
)


# -- the large office ------------------------------------------------------------------------------

CONTACT, REQUEST, AMOUNT = row_id("contacts"), row_id("requests"), whole_number("whole euros")
REQUEST_ENTRY = ("contact", "amount", "direction", "status")
TRANSFER_ENTRY = ("contact", "amount", "direction")


def move_money(world: World, balance: int, savings: int = 0) -> World:
    """Return the world with money add_row to balance and savings.

    Raises:
        Failed: one of them would be negative.
    """
    account = world["account"][1]
    next_balance = account["balance"] + balance
    next_savings = account["savings"] + savings
    if min(next_balance, next_savings) < 0:
        raise Failed("insufficient_funds")
    return edit_row(world, "account", 1, balance=next_balance, savings=next_savings)


def _open_request(world: World, request: int, direction: str) -> tuple[int, int]:
    """Return contact and amount of an open request of one direction.

    Raises:
        Failed: there is none.
    """
    row = find_row(world, "requests", request)
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
    find_row(world, "contacts", contact)
    return add_row(
        move_money(world, -amount),
        "transfers",
        contact=contact,
        amount=amount,
        direction="outgoing",
    )


@writes(contact=CONTACT, amount=AMOUNT)
def payments_request(world: World, contact: int, amount: int) -> World:
    """Ask a contact for money."""
    find_row(world, "contacts", contact)
    return add_row(
        world, "requests", contact=contact, amount=amount, direction="outgoing", status="open"
    )


@writes(request=REQUEST)
def payments_pay(world: World, request: int) -> World:
    """Pay an incoming request."""
    contact, amount = _open_request(world, request, "incoming")
    paid = add_row(
        move_money(world, -amount),
        "transfers",
        contact=contact,
        amount=amount,
        direction="outgoing",
    )
    return edit_row(paid, "requests", request, status="paid")


@writes(request=REQUEST)
def payments_decline(world: World, request: int) -> World:
    """Decline an incoming request."""
    _open_request(world, request, "incoming")
    return edit_row(world, "requests", request, status="declined")


@writes(request=REQUEST)
def payments_withdraw(world: World, request: int) -> World:
    """Withdraw an outgoing request."""
    _open_request(world, request, "outgoing")
    return edit_row(world, "requests", request, status="withdrawn")


@writes(amount=AMOUNT)
def payments_save(world: World, amount: int) -> World:
    """Move money from the balance to the savings."""
    return move_money(world, -amount, amount)


@writes(amount=AMOUNT)
def payments_use_savings(world: World, amount: int) -> World:
    """Move money from the savings to the balance."""
    return move_money(world, amount, -amount)


def _is_open(row: Row) -> bool:
    return bool(row["status"] == "open")


ROW_APIS = (
    payments_balance,
    lister(
        "payments_requests", "List open requests for money.", "requests", REQUEST_ENTRY, _is_open
    ),
    lister(
        "payments_requests_of",
        "List all requests with a contact.",
        "requests",
        REQUEST_ENTRY,
        contact=CONTACT,
    ),
    getter("payments_get_request", "Show a request.", "requests", REQUEST_ENTRY),
    lister(
        "payments_transfers_of",
        "List the transfers with a contact.",
        "transfers",
        TRANSFER_ENTRY,
        contact=CONTACT,
    ),
    payments_send,
    payments_request,
    payments_pay,
    payments_decline,
    payments_withdraw,
    payments_save,
    payments_use_savings,
)

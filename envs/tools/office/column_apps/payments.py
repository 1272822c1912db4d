"""The app ``payments``: money sent, asked for and saved, in whole euros."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..column_api import AMOUNT, CONTACT, REQUEST, Error, State, api
from ..columns import (
    Direction,
    Status,
    bit,
    cell,
    existing,
    free_row,
    has,
    mask_of,
    put,
    with_request,
    with_request_paid,
    with_transfer,
)

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
    found = existing(world.request_contact)
    return state.show(requests=found).learn(requests=found, contacts=people, asked_requests=YES)


@api("payments.list_transfers", returns="list of {contact, amount, direction}", contact=CONTACT)
def list_transfers(state: State, contact: Any) -> State:
    """List the money sent to a contact (outgoing) and received from one (incoming)."""
    found = mask_of(state.world.transfer_contact == contact)
    return state.show(transfers=found).learn(transfers=found, asked_transfers=bit(contact))


@api("payments.send", errors=(Error.NOT_FOUND, Error.INSUFFICIENT_FUNDS), room="transfer_contact",
     contact=CONTACT, amount=AMOUNT)  # fmt: skip
def send(state: State, contact: Any, amount: Any) -> State:
    """Send money to a contact."""
    row = free_row(state.world.transfer_contact)
    sent = state._replace(world=with_transfer(state.world, contact, amount)).learn(transfers=bit(row))
    return sent.fail_if(_stranger(state, contact), (amount > state.world.balance, Error.INSUFFICIENT_FUNDS))


@api("payments.request", returns="{request, contact, amount, direction, status}", errors=(Error.NOT_FOUND,),
     room="request_contact", contact=CONTACT, amount=AMOUNT)  # fmt: skip
def request(state: State, contact: Any, amount: Any) -> State:
    """Ask a contact for money."""
    one = bit(free_row(state.world.request_contact))
    asked = state._replace(world=with_request(state.world, contact, amount)).show(requests=one).learn(requests=one)
    return asked.fail_if(_stranger(state, contact))


@api("payments.pay_request",
     errors=(Error.NOT_FOUND, Error.WRONG_DIRECTION, Error.NOT_OPEN, Error.INSUFFICIENT_FUNDS),
     room="transfer_contact", request=REQUEST)  # fmt: skip
def pay_request(state: State, request: Any) -> State:
    """Pay what an incoming request asks for."""
    world = state.world
    new = bit(free_row(world.transfer_contact))
    paid = state._replace(world=with_request_paid(world, request)).learn(
        requests=bit(request), transfers=new, contacts=bit(cell(world.request_contact, request))
    )
    short = cell(world.request_amount, request) > world.balance
    return paid.fail_if(*_not_open(state, request, Direction.INCOMING), (short, Error.INSUFFICIENT_FUNDS))


@api("payments.decline_request", errors=(Error.NOT_FOUND, Error.WRONG_DIRECTION, Error.NOT_OPEN), request=REQUEST)
def decline_request(state: State, request: Any) -> State:
    """Decline an incoming request."""
    declined = state.change(request_status=put(state.world.request_status, request, Status.DECLINED))
    return declined.fail_if(*_not_open(state, request, Direction.INCOMING))


@api("payments.withdraw_request", errors=(Error.NOT_FOUND, Error.WRONG_DIRECTION, Error.NOT_OPEN), request=REQUEST)
def withdraw_request(state: State, request: Any) -> State:
    """Withdraw an outgoing request."""
    withdrawn = state.change(request_status=put(state.world.request_status, request, Status.WITHDRAWN))
    return withdrawn.fail_if(*_not_open(state, request, Direction.OUTGOING))


@api("payments.save", errors=(Error.INSUFFICIENT_FUNDS,), amount=AMOUNT)
def save(state: State, amount: Any) -> State:
    """Move money from the account to savings."""
    world = state.world
    saved = state.change(balance=world.balance - amount, savings=world.savings + amount)
    return saved.fail_if((amount > world.balance, Error.INSUFFICIENT_FUNDS))


@api("payments.use_savings", errors=(Error.INSUFFICIENT_FUNDS,), amount=AMOUNT)
def use_savings(state: State, amount: Any) -> State:
    """Move money from savings to the account."""
    world = state.world
    taken = state.change(balance=world.balance + amount, savings=world.savings - amount)
    return taken.fail_if((amount > world.savings, Error.INSUFFICIENT_FUNDS))


def _stranger(state: State, contact: Any) -> tuple[Any, Error]:
    return ~has(existing(state.world.name), contact), Error.NOT_FOUND


def _not_open(state: State, request: Any, direction: Direction) -> tuple[tuple[Any, Error], ...]:
    world = state.world
    return (
        (~has(existing(world.request_contact), request), Error.NOT_FOUND),
        (cell(world.request_direction, request) != direction, Error.WRONG_DIRECTION),
        (cell(world.request_status, request) != Status.OPEN, Error.NOT_OPEN),
    )


APIS = (
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

"""Rules of the kitchen: cooks interact with what is ahead of them, then move, then pots cook.

They are those of Overcooked-AI 1.1.0 (github.com/HumanCompatibleAI/overcooked_ai) with onions only.
The first cook interacts before the second one. To interact means, by what is ahead:

* a pile of onions or dishes: take one, with empty hands;
* a counter: lay an item down on an empty one, or take what lies there with empty hands;
* a pot: add an onion to at most two others before it cooks; let it cook with empty hands, once it
  has an onion; take the soup with a dish once it has cooked for 20 steps;
* a place to serve: serve a soup. Only one of three onions earns anything.

A move turns the cook, and leads to the cell ahead if that is floor. Both cooks stay where they were
if they want the same cell, or each other's.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import NamedTuple

import jax.numpy as jnp

from rlbench_suite.core.arrays import Flag, Int

from .layouts import COUNTER, DISHES, FLOOR, ONIONS, SERVING, Layout, Place
from .words import exchange, holds, read

ACTIONS = ("stay", "north", "south", "east", "west", "interact")
STAY = 0
INTERACT = ACTIONS.index("interact")
HEADINGS = ACTIONS[1:5]
"""A cook who moves faces the direction of the move."""
FULL_POT = 3
"""Onions"""
COOKING_STEPS = 20
NOTHING, ONION, DISH, SOUP = range(4)
"""Items. A soup of n onions, 1 to 3, is number 2 + n, and SOUP the thinnest."""
GOOD_SOUP = SOUP + FULL_POT - 1


class Cook(NamedTuple):
    """A cook."""

    row: Int
    column: Int
    heading: Int
    """Place in ``HEADINGS``."""
    item: Int


class Pot(NamedTuple):
    """A pot."""

    onions: Int
    steps: Int
    """Steps for which it has cooked, up to 20; -1 before it cooks."""


class Kitchen(NamedTuple):
    """Everything that changes but for what was earned."""

    cooks: tuple[Cook, Cook]
    pots: tuple[Pot, ...]
    counters: tuple[Int, ...]
    """Items on counters, a word a row (:mod:`words`)."""


class Events(NamedTuple):
    """Numbers of events that earn something."""

    onions: Int
    """Onions that went into a pot, less those that left one in a thin soup."""
    dishes: Int
    """Useful dishes that were taken from a pile; see :func:`needs_dish`."""
    lifted: Int
    """Good soups that were taken from a pot."""
    soups: Int
    """Good soups that were served."""


def ahead(cook: Cook) -> Place:
    """Return the cell that a cook faces."""
    return Place(
        cook.row + (cook.heading == 1).astype(jnp.int32) - (cook.heading == 0),
        cook.column + (cook.heading == 2).astype(jnp.int32) - (cook.heading == 3),
    )


def step(kitchen: Kitchen, actions: tuple[Int, Int], layout: Layout) -> tuple[Kitchen, Events]:
    """Return the kitchen after a step, and what happened."""
    filled_pots = count_filled(kitchen.pots)
    first, second = kitchen.cooks
    after, events = interact(kitchen, 0, actions[0] == INTERACT, filled_pots, layout)
    after, later_events = interact(after, 1, actions[1] == INTERACT, filled_pots, layout)
    first, second = move(after.cooks, actions, layout)
    pots = tuple(
        pot._replace(steps=pot.steps + ((pot.steps >= 0) & (pot.steps < COOKING_STEPS)))
        for pot in after.pots
    )
    total = Events(*(a + b for a, b in zip(events, later_events, strict=True)))
    return Kitchen((first, second), pots, after.counters), total


def count_filled(pots: tuple[Pot, ...]) -> Int:
    """Return how many pots cook, are ready, or have one or two onions."""
    flags = [(pot.steps >= 0) | ((pot.onions > 0) & (pot.onions < FULL_POT)) for pot in pots]
    return reduce(add, [flag.astype(jnp.int32) for flag in flags])


def needs_dish(kitchen: Kitchen, filled_pots: Int) -> Flag:
    """Return whether a dish from the pile is of use.

    No dish lies on a counter, and the cooks hold fewer dishes than there are filled pots.

    Args:
        kitchen: now.
        filled_pots: their number at the beginning of the step.
    """
    dishes_in_hand = reduce(add, [(cook.item == DISH).astype(jnp.int32) for cook in kitchen.cooks])
    return ~holds(kitchen.counters, DISH) & (dishes_in_hand < filled_pots)


def interact(
    kitchen: Kitchen, number: int, acts: Flag, filled_pots: Int, layout: Layout
) -> tuple[Kitchen, Events]:
    """Return the kitchen after a cook interacted with what is ahead, and what happened.

    Args:
        kitchen: before.
        number: of the cook.
        acts: whether the cook interacts at all.
        filled_pots: their number at the beginning of the step.
        layout: of the kitchen.
    """
    cook = kitchen.cooks[number]
    row, column = ahead(cook)
    kind = jnp.where(acts, read(layout.words, row, column), FLOOR)
    is_empty = cook.item == NOTHING
    lying = read(kitchen.counters, row, column)
    trades = (kind == COUNTER) & (is_empty != (lying == NOTHING))
    takes_onion = (kind == ONIONS) & is_empty
    takes_dish = (kind == DISHES) & is_empty
    serves = (kind == SERVING) & (cook.item >= SOUP)
    item = jnp.where(trades, lying, cook.item)
    item = jnp.where(takes_onion, ONION, item)
    item = jnp.where(takes_dish, DISH, item)
    item = jnp.where(serves, NOTHING, item)

    pots = []
    onions = lifted = jnp.int32(0)
    for place, pot in zip(layout.pots, kitchen.pots, strict=True):
        is_ahead = acts & (row == place.row) & (column == place.column)
        is_idle = pot.steps < 0
        adds = is_ahead & is_idle & (cook.item == ONION) & (pot.onions < FULL_POT)
        starts = is_ahead & is_idle & is_empty & (pot.onions > 0)
        lifts = is_ahead & (cook.item == DISH) & (pot.steps >= COOKING_STEPS)
        item = jnp.where(adds, NOTHING, jnp.where(lifts, SOUP - 1 + pot.onions, item))
        cooked_steps = jnp.where(lifts, -1, jnp.where(starts, 0, pot.steps))
        pots.append(Pot(jnp.where(lifts, 0, pot.onions + adds), cooked_steps))
        is_good = pot.onions == FULL_POT
        onions = onions + adds - jnp.where(lifts & ~is_good, pot.onions, 0)
        lifted = lifted + (lifts & is_good)

    cooks = list(kitchen.cooks)
    cooks[number] = cook._replace(item=item)
    counters = exchange(kitchen.counters, row, column, lying, cook.item, trades)
    events = Events(
        onions,
        (takes_dish & needs_dish(kitchen, filled_pots)).astype(jnp.int32),
        lifted,
        (serves & (cook.item == GOOD_SOUP)).astype(jnp.int32),
    )
    return Kitchen((cooks[0], cooks[1]), tuple(pots), counters), events


def move(cooks: tuple[Cook, Cook], actions: tuple[Int, Int], layout: Layout) -> tuple[Cook, Cook]:
    """Return the cooks after they turned and moved."""
    turned = []
    targets = []
    for cook, action in zip(cooks, actions, strict=True):
        moves = (action != STAY) & (action != INTERACT)
        facing = cook._replace(heading=jnp.where(moves, action - 1, cook.heading))
        row, column = ahead(facing)
        advances = moves & (read(layout.words, row, column) == FLOOR)
        turned.append(facing)
        targets.append(
            Place(jnp.where(advances, row, cook.row), jnp.where(advances, column, cook.column))
        )
    first, second = turned
    swaps = is_at(targets[0], second) & is_at(targets[1], first)
    blocked = swaps | is_at(targets[0], targets[1])
    moved = [
        cook._replace(
            row=jnp.where(blocked, cook.row, target.row),
            column=jnp.where(blocked, cook.column, target.column),
        )
        for cook, target in zip(turned, targets, strict=True)
    ]
    return moved[0], moved[1]


def is_at(place: Place, cook: Place | Cook) -> Flag:
    """Return whether a cook, or what else has a row and a column, is in a cell."""
    return (place.row == cook.row) & (place.column == cook.column)

"""Kitchen: two cooks share a kitchen, and earn together what the soups are worth that they serve.

Source: Carroll et al. 2019, On the utility of learning about humans for human-AI coordination
(arXiv:1910.05789), by the rules of Overcooked-AI 1.1.0, whose five layouts these are.
:mod:`rules` has them. A soup takes three onions, a start by hand, 20 steps, a dish, and a way to
where it is served.

===============  ===================================================================================
observation      one row a cook, ``Box(-1, 1, (2, n))``: the cook's row and column, in parts of the
                 kitchen's size less 1; heading, 1 for one of north, south, east and west; item, 1
                 for one of onion, dish, good soup and thin soup. The same of the other cook, with
                 rows and columns from this cook. Rows and columns from this cook to each pile of
                 onions, pile of dishes, pot and place to serve. Of each pot: onions / 3, steps of
                 cooking / 20, 1 if it is ready. Of each counter in reach, row by row: 1 for one of
                 onion, dish, good soup and thin soup
action           ``MultiDiscrete([6, 6])``: stay, north (to the row before), south, east, west,
                 interact
reward, shaped   both cooks: 20 for a good soup that is served, 3 for an onion that goes into a pot,
                 3 for a useful dish from the pile, 5 for a good soup that is taken from a pot; -3
                 for each onion of a thin soup that is taken from a pot
reward, served   both cooks: 20 for a good soup that is served
termination      never: the time limit truncates after 400 steps
success          the cooks served at least 8 good soups (12 in ``asymmetric_advantages``, 9 in
                 ``coordination_ring``, 10 in ``forced_coordination``)
context          cells and headings of the cooks; whether the kitchen is mirrored north to south,
                 and east to west. Rows, columns and headings of both cooks, numbered from 0, add up
                 to an even number in train and to an odd one in test
===============  ===================================================================================

The setting ``layout`` chooses the kitchen. In ``forced_coordination`` only one cook reaches the
onions and dishes, and only the other one the pots, so that all goes over the counters between them.
A mirrored kitchen is what the cooks see and where their actions point; rules and state have it as
it is in the plan. Overcooked-AI shows the plan as it is, and starts from one place; then actions
that are fixed before the episode would serve all soups. It also pays 5 for a thin soup, which keeps
what its onions earned; then serving nothing else earns a third of what a good team does.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Flag, Int
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once

from ...shared.alternating_bands import split_units
from ...shared.named_actions import NamedActionsOfAgents
from ..foraging import floor_of
from .layouts import FLOOR, KINDS, LAYOUTS, SYMBOLS, Place
from .rules import (
    ACTIONS,
    COOKING_STEPS,
    FULL_POT,
    GOOD_SOUP,
    HEADINGS,
    INTERACT,
    NOTHING,
    SOUP,
    Cook,
    Events,
    Kitchen,
    Pot,
    step,
)
from .words import read

COOKS = 2
REWARDS = {"shaped": Events(3.0, 3.0, 5.0, 20.0), "served": Events(0.0, 0.0, 0.0, 20.0)}
"""Rewards of each event, by the setting ``reward``."""
SEEN_ITEMS = ("onion", "dish", "good soup", "thin soup")
ITEM_NAMES = ("nothing", "an onion", "a dish", "a soup of 1", "a soup of 2", "a good soup")
ITEM_SYMBOLS = ".odtts"
COLOURS = {
    "floor": "white",
    "counter": "tan",
    "onions": "gold",
    "dishes": "lightsteelblue",
    "pot": "dimgray",
    "serving": "mediumseagreen",
}
ITEM_COLOURS = ("", "darkorange", "aliceblue", "peru", "peru", "firebrick")
COOK_COLOURS = ("royalblue", "purple")


class Params(NamedTuple):
    """The context."""

    cooks: tuple[Cook, Cook]
    """Cooks at the start, with empty hands."""
    mirrors_rows: Flag
    """Whether north and south are exchanged."""
    mirrors_columns: Flag
    """Whether east and west are exchanged."""


class State(NamedTuple):
    """The kitchen, and what happened in it so far."""

    kitchen: Kitchen
    events: Events


class KitchenTask(NamedActionsOfAgents, Task[Params, State]):
    """The task of this file's docstring."""

    action_names = ACTIONS
    first_agent = "cook 0"
    measures: ClassVar[dict[str, str]] = {"soups": "good soups that were served"}

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        layout = LAYOUTS[card.settings["layout"]]
        self.layout = layout
        self.values = REWARDS[card.settings["reward"]]
        self._mirrored_counters = [
            [layout.counters.index(cell) for cell in layout.mirrored_counters(rows, columns)]
            for rows, columns in ((False, False), (False, True), (True, False), (True, True))
        ]
        fixtures, pots, counters = map(len, (layout.fixtures, layout.pots, layout.counters))
        cook = 2 + len(HEADINGS) + len(SEEN_ITEMS)
        size = 2 * cook + 2 * fixtures + 3 * pots + len(SEEN_ITEMS) * counters
        low = np.zeros(size)
        low[cook : cook + 2] = -1.0
        low[2 * cook : 2 * cook + 2 * fixtures] = -1.0
        self.observation_space = self.box(np.tile(low, (COOKS, 1)), 1.0)
        self.action_space = spaces.MultiDiscrete([len(ACTIONS)] * COOKS)
        least_reward = -COOKS * (FULL_POT - 1) * self.values.onions
        self.reward_space = self.box(least_reward, 2 * max(self.values), (COOKS,))

    # -- contexts ----------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample cells and headings of the cooks, and the mirrors."""
        units = split_units(self.uniform(key, 5), split)
        pairs = np.array([[*first, *second] for first, second in self.layout.starts], np.int32)
        cells = jnp.asarray(pairs)[floor_of(units[0], len(pairs))]
        heading = floor_of(units[1], len(HEADINGS))
        parity = (cells[0] + cells[1] + cells[2] + cells[3] + heading + split) % 2
        second_heading = 2 * floor_of(units[2], len(HEADINGS) // 2) + parity
        empty = jnp.int32(NOTHING)
        cooks = (
            Cook(cells[0], cells[1], heading, empty),
            Cook(cells[2], cells[3], second_heading, empty),
        )
        return Params(cooks, units[3] < 0.5, units[4] < 0.5)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Put the cooks into a kitchen in which nothing lies about."""
        zero = jnp.int32(0)
        pots = (Pot(zero, jnp.int32(-1)),) * len(self.layout.pots)
        counters = (zero,) * self.layout.height
        return State(Kitchen(params.cooks, pots, counters), Events(zero, zero, zero, zero))

    # -- a step ------------------------------------------------------------------------------------

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Let the cooks interact and move, and the pots cook."""
        choices = action.astype(jnp.int32)
        actions = (mirror_action(choices[0], params), mirror_action(choices[1], params))
        kitchen, events = computed_once(partial(step, layout=self.layout))(state.kitchen, actions)
        return State(kitchen, Events(*(a + b for a, b in zip(state.events, events, strict=True))))

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return what both cooks earn, ``(2,)``."""
        earned = jnp.zeros((), self.dtype)
        for value, before, after in zip(self.values, state.events, next_state.events, strict=True):
            earned = earned + value * (after - before).astype(self.dtype)
        return jnp.stack([earned] * COOKS)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the number of soups."""
        soups = state.events.soups
        return {"success": soups >= self.layout.good, "soups": soups}

    # -- what cooks see ----------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each cook sees, ``(2, n)``; see the table."""
        kitchen = state.kitchen
        down_scale = self.dtype.type(1 / (self.layout.height - 1))
        right_scale = self.dtype.type(1 / (self.layout.width - 1))
        down_sign = jnp.where(params.mirrors_rows, -down_scale, down_scale)
        right_sign = jnp.where(params.mirrors_columns, -right_scale, right_scale)
        shared: list[Any] = []
        for pot in kitchen.pots:
            shared.append(pot.onions * (1 / FULL_POT))
            shared.append(jnp.maximum(pot.steps, 0) * (1 / COOKING_STEPS))
            shared.append(pot.steps >= COOKING_STEPS)
        for item in self._counter_items(kitchen, params):
            shared += item_flags(item)
        rows = []
        for cook, teammate in (kitchen.cooks, kitchen.cooks[::-1]):
            place = self.mirror_place(Place(cook.row, cook.column), params)
            values = [place.row * down_scale, place.column * right_scale]
            values += cook_flags(cook, params)
            values.append((teammate.row - cook.row) * down_sign)
            values.append((teammate.column - cook.column) * right_sign)
            values += cook_flags(teammate, params)
            for fixture in self.layout.fixtures:
                values.append((fixture.row - cook.row) * down_sign)
                values.append((fixture.column - cook.column) * right_sign)
            rows.append(self.stack(*values, *shared))
        return jnp.stack(rows)

    def _counter_items(self, kitchen: Kitchen, params: Params) -> list[Int]:
        """Return the items on the counters in reach, row by row as the cooks see them."""
        items = [read(kitchen.counters, *cell) for cell in self.layout.counters]
        plain, by_columns, by_rows, by_both = self._mirrored_counters
        return [
            jnp.where(
                params.mirrors_rows,
                jnp.where(params.mirrors_columns, items[by_both[k]], items[by_rows[k]]),
                jnp.where(params.mirrors_columns, items[by_columns[k]], items[plain[k]]),
            )
            for k in range(len(items))
        ]

    def mirror_place(self, place: Place, params: Params) -> Place:
        """Return where the cooks see a cell of the plan."""
        last_row, last_column = self.layout.height - 1, self.layout.width - 1
        return Place(
            jnp.where(params.mirrors_rows, last_row - place.row, place.row),
            jnp.where(params.mirrors_columns, last_column - place.column, place.column),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List what a cook sees."""
        layout = self.layout
        size = f"{layout.height - 1} rows and {layout.width - 1} columns"
        offset = f"rows and columns from this cook, in parts of {size}"
        items = f"1 for one of {', '.join(SEEN_ITEMS)}"
        heading = f"1 for one of {', '.join(HEADINGS)}"
        count = len(SEEN_ITEMS)
        fixtures = ", ".join(KINDS[layout.kinds[cell]] for cell in layout.fixtures)
        return (
            Component("place", f"row and column, in parts of {size}", shape=(2,)),
            Component("heading", heading, shape=(4,)),
            Component("item", items, shape=(count,)),
            Component("teammate", f"the other cook: {offset}", shape=(2,)),
            Component("teammate_heading", heading, shape=(4,)),
            Component("teammate_item", items, shape=(count,)),
            Component("fixtures", f"[{fixtures}]: {offset}", shape=(len(layout.fixtures), 2)),
            Component(
                "pots",
                f"[pot]: onions / {FULL_POT}, steps of cooking / {COOKING_STEPS}, 1 if ready",
                shape=(len(layout.pots), 3),
            ),
            Component(
                "counters", f"[counter in reach]: {items}", shape=(len(layout.counters), count)
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the actions; a joint action has one entry a cook."""
        names = ", ".join(f"{number} {name}" for number, name in enumerate(ACTIONS))
        return (Component("action", f"[cook]: {names}", shape=(COOKS,)),)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Show the kitchen as letters, with cooks and pots in words."""
        layout = self.layout
        grid = [[""] * layout.width for _ in range(layout.height)]
        for row, column in np.ndindex(layout.height, layout.width):
            symbol = SYMBOLS[layout.kinds[row, column]].replace(" ", "_")
            item = int(read(state.kitchen.counters, row, column))
            view_place = self.mirror_place(Place(row, column), params)
            grid[int(view_place.row)][int(view_place.column)] = (
                ITEM_SYMBOLS[item] if item else symbol
            )
        lines = []
        for number, cook in enumerate(state.kitchen.cooks):
            view_place = self.mirror_place(Place(cook.row, cook.column), params)
            grid[int(view_place.row)][int(view_place.column)] = str(number)
            heading = HEADINGS[int(mirror_heading(cook.heading, params))]
            lines.append(f"Cook {number} faces {heading} and holds {ITEM_NAMES[int(cook.item)]}.")
        for place, pot in zip(layout.pots, state.kitchen.pots, strict=True):
            view_place = self.mirror_place(place, params)
            lines.append(
                f"The pot in row {int(view_place.row)}, column {int(view_place.column)} has "
                f"{int(pot.onions)} onions and {describe_cooking(int(pot.steps))}."
            )
        plan = "\n".join(" ".join(row) for row in grid)
        return (
            "The kitchen from above, north at the top: _ floor, X counter, O onions, D dishes, P "
            "pot, S place to serve; on counters o onion, d dish, s good soup, t thin soup; cooks 0 "
            f"and 1.\n\n{plan}\n" + "\n".join(lines)
        )

    def rules(self) -> str:
        """Tell what the cooks can do, and what it earns."""
        value = self.values
        earnings = [f"a good soup that is served earns {value.soups:g}"]
        if value.onions:
            earnings += [
                f"an onion that goes into a pot {value.onions:g}",
                f"a good soup that is taken from a pot {value.lifted:g}",
                f"a dish that is taken from the pile {value.dishes:g} if no dish lies on a counter "
                "and the cooks hold fewer dishes than there are pots that cook, are ready, or have "
                f"fewer than {FULL_POT} onions but not none",
                f"a thin soup that is taken from a pot costs {value.onions:g} for each of its "
                "onions",
            ]
        return "\n".join(
            [
                f"{self.card.name}: {self.card.summary}",
                f"A good soup has {FULL_POT} onions; one of fewer is thin, and earns nothing when "
                "it is served. A cook holds one item at most.",
                "interact means what is in the cell ahead, which the cook faces:",
                "- a pile of onions or dishes: take one, with empty hands.",
                f"- a pot: put in the onion that you hold, up to {FULL_POT} in all and only before "
                "the pot cooks. A pot does not start by itself: with empty hands, let it cook. "
                f"After {COOKING_STEPS} steps the soup is ready, and never burns. With a dish in "
                "hand, take it.",
                "- a counter: lay down what you hold if the counter is empty, or take what lies "
                "there with empty hands. What one cook lays down, the other one can take.",
                "- a place to serve: serve the soup that you hold.",
                "north, south, east and west turn a cook, and lead to the cell ahead if that is "
                "floor. If both cooks want one cell, which may be where one of them stays, or each "
                "other's, both only turn. Cooks interact before they move, cook 0 first.",
                f"Both cooks earn the same: {'; '.join(earnings)}.",
                f"An episode has {self.card.horizon} steps. It is a success with at least "
                f"{self.layout.good} good soups served.",
            ]
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the kitchen from above, with items as small discs and pots with their onions."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        layout = self.layout
        side = min(width / layout.width, height / layout.height)

        def corners(place: Place, diameter: float) -> tuple[float, float, float, float]:
            view_place = self.mirror_place(place, params)
            x, y = side * (int(view_place.column) + 0.5), side * (int(view_place.row) + 0.5)
            radius = side * diameter / 2
            return x - radius, y - radius, x + radius, y + radius

        for row, column in np.ndindex(layout.height, layout.width):
            cell = Place(row, column)
            kind = layout.kinds[row, column]
            outline = "white" if kind == FLOOR else "gray"
            canvas.rectangle(corners(cell, 1.0), COLOURS[KINDS[kind]], outline)
            item = int(read(state.kitchen.counters, row, column))
            if item:
                canvas.ellipse(corners(cell, 0.5), ITEM_COLOURS[item], "black")
        for place, pot in zip(layout.pots, state.kitchen.pots, strict=True):
            left, top, right, bottom = corners(place, 0.8)
            share = max(int(pot.steps), 0) / COOKING_STEPS
            canvas.ellipse((left, top, right, bottom), "black")
            canvas.pieslice((left, top, right, bottom), -90, -90 + 360 * share, "firebrick")
            middle = ((left + right) / 2, (top + bottom) / 2)
            canvas.text(middle, str(int(pot.onions)), fill="white", anchor="mm")
        for cook, colour in zip(state.kitchen.cooks, COOK_COLOURS, strict=True):
            place = Place(cook.row, cook.column)
            canvas.ellipse(corners(place, 0.8), colour)
            left, top, right, bottom = corners(place, 0.3)
            down, right_step = ((-1, 0), (1, 0), (0, 1), (0, -1))[
                int(mirror_heading(cook.heading, params))
            ]
            x, y = 0.25 * side * right_step, 0.25 * side * down
            fill = ITEM_COLOURS[int(cook.item)] or colour
            canvas.ellipse((left + x, top + y, right + x, bottom + y), fill, "white")
        return np.asarray(image)


def mirror_action(action: Int, params: Params) -> Int:
    """Return the action in the plan that the cooks see as this one, or the other way round."""
    moves = (action != 0) & (action != INTERACT)
    return jnp.where(moves, 1 + mirror_heading(action - 1, params), action)


def mirror_heading(heading: Int, params: Params) -> Int:
    """Return the heading in the plan that the cooks see as this one, or the other way round."""
    is_turned = jnp.where(heading < 2, params.mirrors_rows, params.mirrors_columns)
    return heading ^ is_turned


def item_flags(item: Int) -> list[Flag]:
    """Return which of the four seen items it is."""
    return [item == 1, item == 2, item == GOOD_SOUP, (item >= SOUP) & (item < GOOD_SOUP)]


def cook_flags(cook: Cook, params: Params) -> list[Flag]:
    """Return which heading a cook has as the cooks see it, and which item."""
    heading = mirror_heading(cook.heading, params)
    return [heading == number for number in range(len(HEADINGS))] + item_flags(cook.item)


def describe_cooking(steps: int) -> str:
    """Return what a pot does, in words."""
    if steps < 0:
        return "does not cook"
    if steps < COOKING_STEPS:
        return f"has cooked for {steps} of {COOKING_STEPS} steps"
    return "is ready"

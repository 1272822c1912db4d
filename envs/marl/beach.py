"""Beach: people share out the sections of a beach, which must neither be crowded nor one-sided.

30 people of two types are on a beach of six sections. Three times everybody goes a section to the
left or to the right, or stays. Then the day is over, and the beach pays. A section with ``c``
places (its capacity) and ``n`` people is worth ``n exp(-n / c)``, which is largest for ``n = c``.
There are more people than places, so the best teams send those whom no section has room for to the
section where they do the least harm. The second objective is the mixture of a section: the part of
its people that the smaller type has, and 0 where nobody is.

Source: Mannion, Devlin, Duggan & Howley 2018 (The Knowledge Engineering Review 33), by the
documented rules of MO-Beach (MOMAland, github.com/Farama-Foundation/momaland, version 0.2.0). There
all sections have 7 places, and a day is a single move. Here sections have places of their own, and
a day has three moves; with one capacity and one move left, a step is the published one.

=============  ====================================================================================
observation    one row a person, ``Box(0, 1, (30, 27))``: the own type; six flags of the own
               section; for each section its places / 10, its people / 30, and the part of the own
               type among them; the person's rank among those of the own type in the own section,
               (r + 1/2) / their number; moves left / 3. With ``sight="section"`` the numbers of
               all sections but the own one are 0, as in MOMAland
action         ``MultiDiscrete([3] * 30)``: 0 left, 1 stay, 2 right. The ends of the beach stop
reward         ``(30, 2)``, capacity and mixture, 0 before the end. ``reward="team"``: everybody is
               paid the sum of all sections' values and the mean of their mixtures, by weights of
               1 and 10. ``reward="individual"``: value and mixture of the own section
termination    three moves were made
success        capacity + 10 x mixture of the team is at least 80 % of a bound that no team
               reaches: every section has as many people as places, and half of each type
context        places of the sections, 1 to 4, whose sum is even in train and odd in test; section
               and type of each person; 6 to 12 people have the first type
=============  ====================================================================================

Two defects of MOMAland are not reproduced: it reports the end of the day as a truncation, and it
draws from the global generators of Python and NumPy. Its documentation lists the actions as left,
right, stay, while its steps have the order above.

The reference has the best plan that all people can still walk to (``beach_plan.py``). Play that is
fixed beforehand earns nothing, since places differ.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float, FloatArray, Int, IntArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import split_units
from .foraging import floor_of

SECTIONS = 6
TYPES = 2
MOVES = 3
"""Moves of a day."""
STAY = 1
PLACES = (1, 4)
"""Fewest and most places of a sampled section."""
MAX_PLACES = 10
"""Most places that a section of any context may have."""
MINORITY = (0.2, 0.4)
"""Least and largest part of the people that have the first type."""
SUCCESS = 0.8
"""Part of the bound that is a success."""
TYPE_NAMES = ("a", "b")
COLOURS = ("firebrick", "royalblue")


class Params(NamedTuple):
    """The context."""

    places: IntArray
    """Capacity of each section, ``(6,)``."""
    types: IntArray
    """Type of each person, 0 or 1, ``(n,)``."""
    start: IntArray
    """First section of each person, ``(n,)``."""


class State(NamedTuple):
    """Sections in which the people are."""

    sections: IntArray
    """Section of each person, ``(n,)``; 0 is the leftmost."""
    moves_left: Int


class Worth(NamedTuple):
    """Payment of a beach."""

    values: FloatArray
    """Value of each section, ``(6,)``."""
    mixtures: FloatArray
    """Mixture of each section, ``(6,)``."""
    capacity: Float
    """Sum of the values."""
    mixture: Float
    """Mean of the mixtures."""


class Beach(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "capacity": "sum of the values of all sections",
        "mixture": "mean of the mixtures of all sections",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        count = card.agents
        self.values = section_values(count).astype(self.dtype)
        self.mixtures = section_mixtures(count).astype(self.dtype)
        bounds = [SECTIONS * self.values.max(), 0.5]
        if card.settings["reward"] == "individual":
            bounds[0] = self.values.max()
        self.observation_space = self.box(0.0, 1.0, (count, 3 + 4 * SECTIONS))
        self.action_space = spaces.MultiDiscrete([3] * count)
        self.reward_space = self.box(0.0, np.tile(bounds, (count, 1)))
        self.minority = (int(np.ceil(MINORITY[0] * count)), int(MINORITY[1] * count))

    # -- contexts ----------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the places of the sections, and types and sections of the people."""
        count = self.card.agents
        units = split_units(self.uniform(key, SECTIONS + 1 + 2 * count), split)
        low, high = PLACES
        places = low + floor_of(units[: SECTIONS - 1], high - low + 1)
        # The last section makes the sum even or odd: of each two numbers of places one does.
        last_places = low + 2 * floor_of(units[SECTIONS - 1], (high - low + 1) // 2)
        is_wrong = (places.sum(dtype=jnp.int32) + last_places) % 2 != split
        places = jnp.append(places, last_places + is_wrong)
        smallest, largest = self.minority
        minority = smallest + floor_of(units[SECTIONS], largest - smallest + 1)
        types = (ranks(units[SECTIONS + 1 : SECTIONS + 1 + count]) >= minority).astype(jnp.int32)
        return Params(places, types, floor_of(units[SECTIONS + 1 + count :], SECTIONS))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Put the people where the context says."""
        return State(params.start, jnp.int32(MOVES))

    # -- a step ------------------------------------------------------------------------------------

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move everybody."""
        moves = jnp.asarray(action, jnp.int32) - STAY
        sections = jnp.clip(state.sections + moves, 0, SECTIONS - 1)
        return State(sections, state.moves_left - 1)

    def counts(self, state: State, params: Params) -> IntArray:
        """Return how many people of each type are in each section, ``(6, 2)``."""
        in_section = state.sections == np.arange(SECTIONS, dtype=np.int32)[:, None]
        return jnp.stack(
            [
                (in_section & (params.types == kind)).sum(1, dtype=jnp.int32)
                for kind in range(TYPES)
            ],
            axis=1,
        )

    def worth(self, state: State, params: Params) -> Worth:
        """Return what the beach would pay now."""
        counts = self.counts(state, params)
        people = counts[:, 0] + counts[:, 1]
        values = jnp.asarray(self.values)[params.places, people]
        mixtures = jnp.asarray(self.mixtures)[counts[:, 0], counts[:, 1]]
        mean = reduce(add, list(mixtures)) * np.asarray(1 / SECTIONS, self.dtype)
        return Worth(values, mixtures, reduce(add, list(values)), mean)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return capacity and mixture of each person, ``(n, 2)``."""
        worth = self.worth(next_state, params)
        if self.card.settings["reward"] == "team":
            pay = jnp.broadcast_to(
                jnp.stack([worth.capacity, worth.mixture]), self.reward_space.shape
            )
        else:
            pay = jnp.stack([worth.values, worth.mixtures], axis=1)[next_state.sections]
        return jnp.where(next_state.moves_left <= 0, pay, 0)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the day is over."""
        return state.moves_left <= 0

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, and what the beach would pay now."""
        worth = self.worth(state, params)
        best_values = jnp.asarray(self.values.max(1))[params.places]
        bound = reduce(add, list(best_values)) + 10 * 0.5
        return {
            "success": worth.capacity + 10 * worth.mixture >= SUCCESS * bound,
            "capacity": worth.capacity,
            "mixture": worth.mixture,
        }

    # -- what people see ---------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each person sees, ``(n, 27)``; see the table."""
        count = self.card.agents
        counts = self.counts(state, params)
        people = counts[:, 0] + counts[:, 1]
        own_section = state.sections[:, None] == np.arange(SECTIONS, dtype=np.int32)
        is_visible = np.ones((count, SECTIONS), bool)
        if self.card.settings["sight"] == "section":
            is_visible = own_section
        own_counts = counts.T[params.types]  # (n, 6)
        own_shares = own_counts.astype(self.dtype) / jnp.maximum(people, 1).astype(self.dtype)
        places = params.places.astype(self.dtype) * np.asarray(1 / MAX_PLACES, self.dtype)
        crowds = people.astype(self.dtype) * np.asarray(1 / count, self.dtype)
        companions = self.companions(state, params)
        number = np.arange(count, dtype=np.int32)
        rank = (companions & (number < number[:, None])).sum(1, dtype=jnp.int32)
        rank_share = (rank.astype(self.dtype) + 0.5) / companions.sum(1, dtype=jnp.int32).astype(
            self.dtype
        )
        left = self.stack(jnp.maximum(state.moves_left, 0) * (1 / MOVES))
        return jnp.concatenate(
            [
                params.types[:, None].astype(self.dtype),
                own_section.astype(self.dtype),
                jnp.where(is_visible, places, 0),
                jnp.where(is_visible, crowds, 0),
                jnp.where(is_visible, own_shares, 0),
                rank_share[:, None],
                jnp.broadcast_to(left, (count, 1)),
            ],
            axis=1,
        )

    def companions(self, state: State, params: Params) -> jax.Array:
        """Return for each person who has the same type and section, bool ``(n, n)``."""
        kind = state.sections * TYPES + params.types
        return kind[:, None] == kind

    def observation_components(self) -> tuple[Component, ...]:
        """List what a person sees."""
        sections = (SECTIONS,)
        return (
            Component("type", "own type, 0 (a) or 1 (b)"),
            Component("section", "flags of the own section, from the left", "1", sections),
            Component("places", "capacity of each section", f"{MAX_PLACES} people", sections),
            Component("people", "people in each section", f"{self.card.agents} people", sections),
            Component("own_share", "part of the own type among them", "1", sections),
            Component("rank", "(r + 1/2) / m, the r-th of m of the own type and section"),
            Component("moves_left", "moves before the beach pays", f"{MOVES} moves"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the moves; a joint action has one entry a person."""
        meaning = "[person]: 0 a section to the left, 1 stay, 2 a section to the right"
        return (Component("move", meaning, shape=(self.card.agents,)),)

    def noop_action(self) -> np.ndarray:
        """Return the action by which everybody stays."""
        return np.full(self.card.agents, STAY, self.action_space.dtype)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """List the sections with their people, and say how many moves are left."""
        sections = np.asarray(state.sections)
        types = np.asarray(params.types)
        hides_empty = self.card.settings["sight"] == "section"
        lines = [
            f"{int(state.moves_left)} of {MOVES} moves are left before the beach pays. "
            "Sections from the left:"
        ]
        for section, places in enumerate(np.asarray(params.places).tolist()):
            names = [
                " ".join(map(str, np.flatnonzero((sections == section) & (types == kind))))
                for kind in range(TYPES)
            ]
            groups = [
                f"agents of type {TYPE_NAMES[kind]}: {names[kind] or 'none'}"
                for kind in range(TYPES)
            ]
            room = f"{places} places"
            if hides_empty and not any(names):
                room = "places not seen"
            lines.append(f"section {section}, {room}; {'; '.join(groups)}")
        return "\n".join(lines)

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with {self.card.agents} numbers, the move of each agent, agent 0 first: "
            "0 goes a section to the left, 1 stays, 2 goes a section to the right."
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the only end there is."""
        return "the day is over, and the beach pays"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw a column of people for each section; a black line is as high as its places."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "moccasin")
        canvas = ImageDraw.Draw(image)
        counts = np.asarray(self.counts(state, params))
        side = width / SECTIONS
        step = height / (self.card.agents // 2)
        for section, places in enumerate(np.asarray(params.places).tolist()):
            x = side * section
            canvas.line((x, 0, x, height), fill="white", width=2)
            y = float(height)
            for kind in range(TYPES):
                for _ in range(counts[section, kind]):
                    canvas.rectangle((x + 8, y - step + 2, x + side - 8, y), fill=COLOURS[kind])
                    y -= step
            top = height - step * places
            canvas.line((x + 2, top, x + side - 2, top), fill="black", width=3)
        return np.asarray(image)


def section_values(count: int) -> np.ndarray:
    """Return ``n exp(-n / c)`` for c from 0 to 10 places and n to ``count`` people, float64."""
    people = np.arange(count + 1.0)
    places = np.arange(1.0, MAX_PLACES + 1)[:, None]
    return np.concatenate([np.zeros((1, count + 1)), people * np.exp(-people / places)])


def section_mixtures(count: int) -> np.ndarray:
    """Return the mixture for numbers of both types, float64 ``(count + 1, count + 1)``."""
    first, second = np.indices((count + 1, count + 1)).astype(np.float64)
    return np.minimum(first, second) / np.maximum(first + second, 1)


def ranks(numbers: jax.Array) -> IntArray:
    """Return the rank of each number, 0 for the least; the first of equal ones comes first."""
    order = np.arange(len(numbers))
    is_less = numbers < numbers[:, None]
    is_equal = (numbers == numbers[:, None]) & (order < order[:, None])
    return (is_less | is_equal).sum(1, dtype=jnp.int32)

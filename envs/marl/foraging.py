"""Foraging: three agents of different levels collect food that some of them can only lift together.

Source: Christianos, Schafer & Albrecht 2020 (arXiv:2006.07169) and Papoudakis et al. 2021
(arXiv:2006.07869), by the rules of Level-Based Foraging (github.com/semitable/lb-foraging, version
2.0.0), ``Foraging-10x10-3p-3f-v3`` at the default difficulty.

A field of cells has food of different levels, and agents of level 1 or 2. In a step an agent stays,
goes to a neighbouring cell, or loads. Food is lifted, and gone, if the levels of the agents beside
it that load in this step add up to its own level at least. What is impossible is a stay: to leave
the field, to enter a cell with food, to load where there is none.

Two agents never stand in one cell. An agent moves if it alone claims the cell that it wants; agents
that stay claim their own; the others stay. Two agents may change places. Level-Based Foraging
compares claims only once: an agent whose own move fails does not claim its cell again, and another
one enters it. Here claims are compared until nobody shares a cell.

=============  ====================================================================================
observation    one row an agent, ``Box(-1, 1, (3, 18))``: row, column and level of three foods,
               sorted by rows, of itself, and of the two other agents. Rows and columns are counted
               from the upper left corner of the window that the agent sees, in parts of the field's
               size less 1; levels in parts of 6. What is gone or not seen comes last, as -1, -1, 0.
               With ``sight="all"`` the window is the whole field. With ``sight="2"`` it ends two
               cells from the agent, or at the edge of the field
action         ``MultiDiscrete([6, 6, 6])``: none, north (to the row before), south, west, east,
               load
reward         each agent: for food that it lifts, the food's level times its share of the lifters'
               levels, in parts of the levels of all food of the episode
termination    all food is gone
success        all food is gone
context        cells and levels of the food, levels of the agents. Food is never at the edge, in a
               cell next to other food (diagonally too), or two cells from it along a row or column.
               Its level is uniform from 1 to the sum of all agents' levels, or always that sum with
               ``cooperation="forced"``. Rows and columns of all food add up to an even number in
               train and to an odd one in test
difficulty     rows and columns of the field: 10, easy 8, hard 15
=============  ====================================================================================

All agents together earn 1 in a perfect episode. The score of an episode is the mean over agents, so
a perfect one has 1/3. The time limit truncates; Level-Based Foraging says that the episode
terminates there. It shows an agent near the upper or left edge others that are up to four cells
away; here the window is the same for food and agents.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Flag, FlagArray, Int, IntArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import split_units
from ..shared.named_actions import NamedActionsOfAgents

ACTIONS = ("none", "north", "south", "west", "east", "load")
LOAD = ACTIONS.index("load")
MAX_LEVEL = 2
"""Highest level of an agent."""
LIFTERS = 3
"""The levels of so many agents, the lowest ones, bound the level of food."""
SIZES = range(8, 21)
"""Allowed sizes of the field. On a smaller one there may be no cell left for the last food."""
COLOURS = ("royalblue", "firebrick", "darkorange", "purple")


class Food(NamedTuple):
    """A piece of food."""

    row: Int
    column: Int
    level: Int


class Cell(NamedTuple):
    """A cell of the field; row 0 is the first in the north, column 0 the first in the west."""

    row: Int
    column: Int


class Params(NamedTuple):
    """The context."""

    foods: tuple[Food, ...]
    """Sorted by row, then by column."""
    levels: tuple[Int, ...]
    """Level of each agent."""


class State(NamedTuple):
    """The agents' cells, and which food is left."""

    agents: tuple[Cell, ...]
    is_left: tuple[Flag, ...]
    """One entry a piece of food."""


class Sight(NamedTuple):
    """A thing as an agent sees it."""

    visible: Flag
    row: Int
    """From the corner of the window"""
    column: Int
    level: Int


class Foraging(NamedActionsOfAgents, Task[Params, State]):
    """The task of this file's docstring."""

    action_names = ACTIONS
    measures: ClassVar[dict[str, str]] = {"collected": "part of all food's levels that is gone"}

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or difficulty not in SIZES:
            raise ValueError(
                f"The difficulty of {card.id} is a size of the field, {SIZES[0]} to {SIZES[-1]}, "
                f"or one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.size = int(difficulty)
        self.food_count = int(card.settings["foods"])
        sight = card.settings["sight"]
        self.sight = self.size if sight == "all" else int(sight)
        count = card.agents
        self.max_food_level = MAX_LEVEL * min(LIFTERS, count)
        low = np.tile([-1.0, -1.0, 0.0], self.food_count + count)
        self.observation_space = self.box(np.tile(low, (count, 1)), 1.0)
        self.action_space = spaces.MultiDiscrete([len(ACTIONS)] * count)
        self.reward_space = self.box(0.0, 1.0, (count,))
        self._see = jax.jit(self.observation)  # for the text view

    # -- contexts ----------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the food and the levels of the agents."""
        count = self.card.agents
        units = split_units(self.uniform(key, 2 * self.food_count + count), split)
        levels = tuple(1 + floor_of(units[i], MAX_LEVEL) for i in range(count))
        highest = functools.reduce(operator.add, sorted_scalars(levels)[:LIFTERS])
        cells = self._sample_food_cells(units[count : count + self.food_count], split)
        foods = []
        for k, cell in enumerate(cells):
            level = 1 + floor_of(units[count + self.food_count + k], highest)
            if self.card.settings["cooperation"] == "forced":
                level = highest
            foods.append(Food(cell // self.size, cell % self.size, level))
        return Params(tuple(foods), levels)

    def _sample_food_cells(self, units: jax.Array, split: jax.Array) -> list[Int]:
        """Return the numbers of the cells of all food, sorted."""
        rows, columns = np.divmod(np.arange(self.size**2, dtype=np.int32), self.size)
        inside = (rows > 0) & (rows < self.size - 1) & (columns > 0) & (columns < self.size - 1)
        free = jnp.asarray(inside)
        total = jnp.int32(0)
        cells: list[Int] = []
        for k in range(self.food_count):
            if k == self.food_count - 1:
                free = free & ((total + rows + columns) % 2 == split)
            cell = nth_true(free, units[k])
            row, column = cell // self.size, cell % self.size
            down, right = jnp.abs(rows - row), jnp.abs(columns - column)
            is_next = jnp.maximum(down, right) <= 1
            is_two_away = (jnp.maximum(down, right) == 2) & (jnp.minimum(down, right) == 0)
            free = free & ~is_next & ~is_two_away
            total = total + row + column
            cells.append(cell)
        return sorted_scalars(cells)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Put the agents into different cells without food."""
        units = self.uniform(key, self.card.agents)
        numbers = np.arange(self.size**2, dtype=np.int32)
        free = jnp.ones(self.size**2, bool)
        for food in params.foods:
            free = free & (numbers != food.row * self.size + food.column)
        agents = []
        for unit in units:
            cell = nth_true(free, unit)
            free = free & (numbers != cell)
            agents.append(Cell(cell // self.size, cell % self.size))
        return State(tuple(agents), (jnp.bool_(True),) * self.food_count)

    # -- a step ------------------------------------------------------------------------------------

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the agents, then lift the food."""
        agents = self._move(state, action, params)
        lifting = self._lifting_levels(state, action, params)
        is_left = tuple(
            left & (levels < food.level)
            for left, levels, food in zip(state.is_left, lifting, params.foods, strict=True)
        )
        return State(agents, is_left)

    def _move(self, state: State, action: jax.Array, params: Params) -> tuple[Cell, ...]:
        """Return the cells of the agents after a step."""
        targets = []
        for i, agent in enumerate(state.agents):
            row = agent.row + (action[i] == 2).astype(jnp.int32) - (action[i] == 1)
            column = agent.column + (action[i] == 4).astype(jnp.int32) - (action[i] == 3)
            inside = (row >= 0) & (row < self.size) & (column >= 0) & (column < self.size)
            free = inside
            for food, left in zip(params.foods, state.is_left, strict=True):
                free = free & ~(left & (food.row == row) & (food.column == column))
            targets.append(where_cell(free, Cell(row, column), agent))
        for _ in range(self.card.agents - 1):  # each round sends one more agent back, or none
            shared = [jnp.bool_(False)] * self.card.agents
            for i, j in combinations(range(self.card.agents), 2):
                is_shared = (targets[i].row == targets[j].row) & (
                    targets[i].column == targets[j].column
                )
                shared[i] = shared[i] | is_shared
                shared[j] = shared[j] | is_shared
            targets = [
                where_cell(~back, cell, agent)
                for back, cell, agent in zip(shared, targets, state.agents, strict=True)
            ]
        return tuple(targets)

    def _lifting_levels(self, state: State, action: jax.Array, params: Params) -> list[Int]:
        """Return the levels of the agents that load each food, added up."""
        return [
            functools.reduce(
                operator.add,
                [
                    jnp.where((action[i] == LOAD) & is_beside(agent, food), params.levels[i], 0)
                    for i, agent in enumerate(state.agents)
                ],
            )
            for food in params.foods
        ]

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of each agent, ``(3,)``."""
        lifting = self._lifting_levels(state, action, params)
        total = functools.reduce(operator.add, [food.level for food in params.foods])
        rewards = []
        for i, agent in enumerate(state.agents):
            share = jnp.zeros((), self.dtype)
            for k, food in enumerate(params.foods):
                lifted = state.is_left[k] & ~next_state.is_left[k]
                earned = (params.levels[i] * food.level).astype(self.dtype) / (
                    jnp.maximum(lifting[k], 1) * total
                ).astype(self.dtype)
                share = jnp.where(
                    lifted & (action[i] == LOAD) & is_beside(agent, food), earned, share
                )
            rewards.append(share)
        return jnp.stack(rewards)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether all food is gone."""
        return ~functools.reduce(operator.or_, state.is_left)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the part that is collected."""
        total = functools.reduce(operator.add, [food.level for food in params.foods])
        gone = functools.reduce(
            operator.add,
            [
                jnp.where(left, 0, food.level)
                for left, food in zip(state.is_left, params.foods, strict=True)
            ],
        )
        return {
            "success": gone == total,
            "collected": gone.astype(self.dtype) / total.astype(self.dtype),
        }

    # -- what agents see ---------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each agent sees, ``(3, 18)``; see the table."""
        values = []
        for i, agent in enumerate(state.agents):
            foods = [
                self._sight(agent, food, left, food.level)
                for food, left in zip(params.foods, state.is_left, strict=True)
            ]
            teammates = [
                self._sight(agent, teammate, jnp.bool_(True), params.levels[j])
                for j, teammate in enumerate(state.agents)
                if j != i
            ]
            itself = self._sight(agent, agent, jnp.bool_(True), params.levels[i])
            for visible in (*seen_first(foods), itself, *seen_first(teammates)):
                values += [
                    visible.row.astype(self.dtype) * self.dtype.type(1 / (self.size - 1)),
                    visible.column.astype(self.dtype) * self.dtype.type(1 / (self.size - 1)),
                    visible.level.astype(self.dtype) * self.dtype.type(1 / self.max_food_level),
                ]
        observed = jnp.stack(values).reshape(self.card.agents, -1)
        return jnp.maximum(observed, -1)

    def _sight(self, agent: Cell, item: Cell | Food, exists: Flag, level: Int) -> Sight:
        """Return how an agent sees a thing."""
        down, right = item.row - agent.row, item.column - agent.column
        near = jnp.maximum(jnp.abs(down), jnp.abs(right)) <= self.sight
        visible = exists & near
        unseen = -(self.size - 1)  # so that it is shown as -1
        return Sight(
            visible,
            jnp.where(visible, down + jnp.minimum(self.sight, agent.row), unseen),
            jnp.where(visible, right + jnp.minimum(self.sight, agent.column), unseen),
            jnp.where(visible, level, 0),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each agent; see the table."""
        cells = f"row and column in parts of {self.size - 1} cells"
        meaning = f"{cells}, and level in parts of {self.max_food_level}"
        teammates = self.card.agents - 1
        return (
            Component("foods", f"[food in sight, by rows]: {meaning}", shape=(self.food_count, 3)),
            Component("itself", meaning, shape=(3,)),
            Component("others", f"[other agent in sight]: {meaning}", shape=(teammates, 3)),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the actions; a joint action has one entry an agent."""
        names = ", ".join(f"{number} {name}" for number, name in enumerate(ACTIONS))
        return (Component("action", f"[agent]: {names}", shape=(self.card.agents,)),)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """List what each agent sees."""
        lines = [
            "Places are (row, column) from the upper left corner of the window that an agent sees, "
            f"on a field of {self.size} x {self.size} cells:"
        ]
        scales = np.array([self.size - 1, self.size - 1, self.max_food_level])
        for i, row in enumerate(np.asarray(self._see(state, None, params))):
            things = np.rint(row.reshape(-1, 3) * scales).astype(int).tolist()
            names = ["food"] * self.food_count + ["itself"] + ["an agent"] * (self.card.agents - 1)
            visible = [
                f"{name} of level {level} at ({down}, {right})"
                for name, (down, right, level) in zip(names, things, strict=True)
                if level > 0
            ]
            lines.append(f"agent_{i} sees {', '.join(visible)}.")
        return "\n".join(lines)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the only end there is."""
        return "all food is collected"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the field from above: food as green squares, agents as discs, both with levels."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        side = width / self.size
        for line in range(self.size + 1):
            canvas.line((line * side, 0, line * side, height), fill="gainsboro")
            canvas.line((0, line * side, width, line * side), fill="gainsboro")

        def corners(item: Cell | Food) -> tuple[float, float, float, float]:
            x, y, margin = side * int(item.column), side * int(item.row), 0.12 * side
            return x + margin, y + margin, x + side - margin, y + side - margin

        def write_level(item: Cell | Food, level: Int) -> None:
            x, y = side * (int(item.column) + 0.5), side * (int(item.row) + 0.5)
            canvas.text((x, y), str(int(level)), fill="white", anchor="mm")

        for food, left in zip(params.foods, state.is_left, strict=True):
            if left:
                canvas.rectangle(corners(food), fill="seagreen")
                write_level(food, food.level)
        for i, agent in enumerate(state.agents):
            canvas.ellipse(corners(agent), fill=COLOURS[i % len(COLOURS)])
            write_level(agent, params.levels[i])
        return np.asarray(image)


def seen_first(sights: Sequence[Sight]) -> list[Sight]:
    """Return what is seen, in its order, before what is not, whose values are all equal."""
    sights = list(sights)
    for end in range(len(sights) - 1, 0, -1):  # a bubble sort
        for i in range(end):
            first, second = sights[i], sights[i + 1]
            swap = ~first.visible & second.visible
            sights[i] = Sight(*(jnp.where(swap, b, a) for a, b in zip(first, second, strict=True)))
            sights[i + 1] = Sight(
                *(jnp.where(swap, a, b) for a, b in zip(first, second, strict=True))
            )
    return sights


def sorted_scalars(values: Sequence[Int]) -> list[Int]:
    """Return scalars in ascending order."""
    ordered = list(values)
    for end in range(len(ordered) - 1, 0, -1):  # a bubble sort
        for i in range(end):
            low, high = jnp.minimum(*ordered[i : i + 2]), jnp.maximum(*ordered[i : i + 2])
            ordered[i], ordered[i + 1] = low, high
    return ordered


def is_beside(agent: Cell, food: Food) -> Flag:
    """Return whether an agent stands beside a food."""
    return jnp.abs(agent.row - food.row) + jnp.abs(agent.column - food.column) == 1


def where_cell(condition: Flag, cell: Cell, fallback: Cell) -> Cell:
    """Return one of two cells."""
    return Cell(
        jnp.where(condition, cell.row, fallback.row),
        jnp.where(condition, cell.column, fallback.column),
    )


def floor_of(unit: jax.Array, count: Any) -> Int:
    """Map a number in [0, 1) to a whole number from 0 to ``count`` - 1."""
    number = jnp.floor(unit * count).astype(jnp.int32)
    return jnp.minimum(number, jnp.asarray(count, jnp.int32) - 1)


def nth_true(flags: FlagArray, unit: jax.Array) -> Int:
    """Return the index of a true entry, each as likely as the others, int32 ``()``."""
    ranks: IntArray = jnp.cumsum(flags.astype(jnp.int32))
    rank = floor_of(unit, ranks[-1].astype(unit.dtype)) + 1
    return jnp.argmax(ranks == rank).astype(jnp.int32)

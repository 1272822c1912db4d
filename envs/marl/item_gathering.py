"""Item Gathering: two agents gather items of three kinds before time is up.

A field of 8 x 8 cells has three red, three green and two blue items in its inner 4 x 4 cells. In a
step each agent stays or goes to a neighbouring cell, and gathers the item that lies there. Two
agents never stand in one cell: if both want the same one, a stay comes first, else chance decides
who stays where it was. They may change places.

Source: Kallstrom & Heintz 2019, Tunable dynamics in agent-based simulation using multi-objective
reinforcement learning (ALA workshop), by the documented rules of MO-ItemGathering (MOMAland,
github.com/Farama-Foundation/momaland, version 0.2.0). The setting ``map`` chooses:

* ``sampled``: each episode has a map of its own, and weights of the three kinds, which it shows. An
  agent must see which kinds are worth their ways, as in the paper.
* ``published``: MOMAland's one map, with plain rewards.

=============  ====================================================================================
observation    one row an agent, ``Box(0, 1, (2, 324))``: five grids of 8 x 8 cells, row by row from
               the top, 1 in the cell of the agent, of the other agent, and of each red, green and
               blue item that still lies there; weights of red, green and blue; steps left / 10
action         ``MultiDiscrete([5, 5])``: 0 stay, 1 up, 2 down, 3 left, 4 right. A move off the
               field is a stay
reward         ``(2, 3)``: items of each kind that the agent gathers, each multiplied by the weight
               of its kind. Weights are 1 on ``published``
termination    nothing is left, or time is up
success        the gathered items weigh at least half of all
context        ``sampled``: cells of the items; cells of the agents among the 48 outside of the
               inner ones; weights: squares of uniform numbers, that of red in other bands for test
               than for training. ``published``: none
difficulty     steps of an episode: 6, easy 8, hard 5; always 10 on ``published``
=============  ====================================================================================

The agents see the time that is left, so that its end terminates; in MOMAland it truncates, and does
not show. Two defects of MOMAland are not reproduced: it returns terminations and truncations in
each other's place, and it draws from the global generators of Python and NumPy.

In 6 steps there is seldom time for everything, so that agents must share out what counts. The
reference plans both tours (``gathering_plan.py``).
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

from rlbench_suite.core.arrays import Flag, FlagArray, Float, FloatArray, Int, IntArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands, split_units
from ..shared.named_actions import NamedActionsOfAgents
from .beach import ranks
from .foraging import Cell, floor_of, where_cell

SIZE = 8
CELLS = SIZE * SIZE
AGENTS = 2
ACTIONS = ("stay", "up", "down", "left", "right")
MOVES = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)], np.int32)
KINDS = ("red", "green", "blue")
KIND_OF_ITEM = np.array([0, 0, 0, 1, 1, 1, 2, 2], np.int32)
ITEMS = len(KIND_OF_ITEM)
INNER = np.array([SIZE * r + c for r in range(2, 6) for c in range(2, 6)], np.int32)
"""Cells in which items may lie."""
OUTER = np.array(sorted(set(range(CELLS)) - set(INNER.tolist())), np.int32)
"""Cells in which agents may start."""
BANDS = 20
"""Bands of the weight of red before it is cubed, in turn of training and of test."""
STEPS = range(4, 11)
"""Allowed numbers of steps of an episode."""
PUBLISHED_STEPS = 10
MAX_STEPS = 10
SUCCESS = 0.5
"""Part of the weight of all items."""

PUBLISHED_ITEMS = ((4, 3), (5, 2), (5, 3), (2, 5), (3, 2), (3, 4), (3, 5), (5, 5))
PUBLISHED_STARTS = ((0, 7), (7, 0))
COLOURS = ("firebrick", "seagreen", "royalblue")
AGENT_COLOURS = ("black", "dimgray")


class Params(NamedTuple):
    """The context. The cell in row r, column c is 8 r + c."""

    items: IntArray
    """Cell of each item, ``(8,)``: three red ones, three green ones, two blue ones."""
    weights: FloatArray
    """Weight of each kind, ``(3,)``."""
    starts: IntArray
    """First cell of each agent, ``(2,)``."""


class State(NamedTuple):
    """Agents and items."""

    agents: tuple[Cell, Cell]
    is_left: FlagArray
    """One entry an item, ``(8,)``."""
    steps_left: Int


class ItemGathering(NamedActionsOfAgents, Task[Params, State]):
    """The task of this file's docstring."""

    action_names = ACTIONS
    first_agent = "agent 0"
    measures: ClassVar[dict[str, str]] = {
        "gathered": "weight of the gathered items, as a part of that of all"
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or difficulty not in STEPS:
            raise ValueError(
                f"The difficulty of {card.id} is a number of steps, {STEPS[0]} to {STEPS[-1]}, or "
                f"one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.is_published = card.settings["map"] == "published"
        self.steps = PUBLISHED_STEPS if self.is_published else int(difficulty)
        self.observation_space = self.box(0.0, 1.0, (AGENTS, 5 * CELLS + len(KINDS) + 1))
        self.action_space = spaces.MultiDiscrete([len(ACTIONS)] * AGENTS)
        self.reward_space = self.box(0.0, 1.0, (AGENTS, len(KINDS)))

    # -- contexts ----------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the map and the weights."""
        if self.is_published:
            return self.published()
        units = split_units(self.uniform(key, len(INNER) + AGENTS + len(KINDS)), split)
        order = ranks(units[: len(INNER)])
        items = jnp.asarray(INNER)[jnp.argmax(order[:, None] == np.arange(ITEMS), axis=0)]
        unit, second_unit = units[len(INNER)], units[len(INNER) + 1]
        first = floor_of(unit, len(OUTER))
        second = floor_of(second_unit, len(OUTER) - 1)
        starts = jnp.asarray(OUTER)[jnp.stack([first, second + (second >= first)])]
        red, green, blue = units[len(INNER) + AGENTS :]
        red = alternating_bands(self.uniform(key, 1)[0], split, 0.0, 1.0, BANDS)
        weights = jnp.stack([number * number for number in (red, green, blue)])
        return Params(items, weights, starts)

    def published(self) -> Params:
        """Return MOMAland's map."""
        items = [SIZE * row + column for row, column in PUBLISHED_ITEMS]
        starts = [SIZE * row + column for row, column in PUBLISHED_STARTS]
        weights = jnp.ones(len(KINDS), self.dtype)
        return Params(jnp.array(items, jnp.int32), weights, jnp.array(starts, jnp.int32))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Put agents and items where the context says."""
        first, second = (Cell(*jnp.divmod(start, SIZE)) for start in params.starts)
        return State((first, second), jnp.ones(ITEMS, bool), jnp.int32(self.steps))

    # -- a step ------------------------------------------------------------------------------------

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the agents, and gather what lies in their cells."""
        targets = [self.target(agent, action[i]) for i, agent in enumerate(state.agents)]
        stays = [is_same(target, a) for target, a in zip(targets, state.agents, strict=True)]
        first_gives_way = (self.bits(key, 1)[0] & 1) == 1
        first_gives_way = ~stays[0] & (first_gives_way | stays[1])
        conflict = is_same(*targets)
        agents = (
            where_cell(conflict & first_gives_way, state.agents[0], targets[0]),
            where_cell(conflict & ~first_gives_way, state.agents[1], targets[1]),
        )
        is_left = state.is_left
        for agent in agents:
            is_left = is_left & (params.items != SIZE * agent.row + agent.column)
        return State(agents, is_left, state.steps_left - 1)

    def target(self, agent: Cell, choice: Int) -> Cell:
        """Return the cell that an agent wants."""
        move = jnp.asarray(MOVES)[choice]
        return Cell(
            jnp.clip(agent.row + move[0], 0, SIZE - 1),
            jnp.clip(agent.column + move[1], 0, SIZE - 1),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return what each agent gathers of each kind, ``(2, 3)``."""
        is_gathered = state.is_left & ~next_state.is_left
        rows = []
        for agent in next_state.agents:
            gathers = is_gathered & (params.items == SIZE * agent.row + agent.column)
            rows.append(count_kinds(gathers).astype(self.dtype) * params.weights)
        return jnp.stack(rows)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether nothing is left, or time is up."""
        return ~state.is_left.any() | (state.steps_left <= 0)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the part that is gathered."""
        gathered = self.weigh(~state.is_left, params)
        total = self.weigh(jnp.ones(ITEMS, bool), params)
        return {
            "success": gathered >= SUCCESS * total,
            "gathered": gathered / jnp.maximum(total, np.finfo(self.dtype).tiny),
        }

    def weigh(self, flags: FlagArray, params: Params) -> Float:
        """Return the weight of the items that have a flag."""
        return reduce(add, list(count_kinds(flags).astype(self.dtype) * params.weights))

    # -- what agents see ---------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each agent sees, ``(2, 324)``; see the table."""
        cells = np.arange(CELLS, dtype=np.int32)
        agents = [cells == SIZE * agent.row + agent.column for agent in state.agents]
        lies_there = state.is_left & (params.items == cells[:, None])
        kinds = [lies_there[:, kind == KIND_OF_ITEM].any(1) for kind in range(len(KINDS))]
        left = self.stack(jnp.maximum(state.steps_left, 0) * (1 / MAX_STEPS))
        numbers = jnp.concatenate([params.weights, left])
        rows = []
        for own_cell, other_cell in (agents, agents[::-1]):
            grids = jnp.concatenate([own_cell, other_cell, *kinds])
            rows.append(jnp.concatenate([grids.astype(self.dtype), numbers]))
        return jnp.stack(rows)

    def observation_components(self) -> tuple[Component, ...]:
        """List what an agent sees."""
        grid = (SIZE, SIZE)
        return (
            Component("itself", "[row, column]: 1 in the cell of the agent", "1", grid),
            Component("teammate", "[row, column]: 1 in the cell of the other agent", "1", grid),
            *(
                Component(f"{kind}_items", f"[row, column]: 1 where a {kind} item lies", "1", grid)
                for kind in KINDS
            ),
            Component("weights", f"weights of {', '.join(KINDS)}", "1", (len(KINDS),)),
            Component("steps_left", "moves before the episode is over", f"{MAX_STEPS} steps"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the actions; a joint action has one entry an agent."""
        names = ", ".join(f"{number} {name}" for number, name in enumerate(ACTIONS))
        return (Component("action", f"[agent]: {names}", shape=(AGENTS,)),)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Show the field as letters, with the weights and the time."""
        names = [["."] * SIZE for _ in range(SIZE)]
        for item, kind in enumerate(KIND_OF_ITEM.tolist()):
            if state.is_left[item]:
                row, column = divmod(int(params.items[item]), SIZE)
                names[row][column] = KINDS[kind][0]
        for number, agent in enumerate(state.agents):
            names[int(agent.row)][int(agent.column)] = str(number)
        weights = ", ".join(
            f"{kind} ({kind[0]}) {float(weight):.3f}"
            for kind, weight in zip(KINDS, params.weights, strict=True)
        )
        field = "\n".join(" ".join(row) for row in names)
        return (
            f"Weights of an item: {weights}. {int(state.steps_left)} of {self.steps} steps are "
            f"left. The field, with agents 0 and 1:\n{field}"
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say which of the two ends it is."""
        return "time is up" if state.is_left.any() else "all items are gathered"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the field: items as squares, the larger the more they weigh, agents as discs."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        side = width / SIZE
        for line in range(SIZE + 1):
            canvas.line((line * side, 0, line * side, height), fill="gainsboro")
            canvas.line((0, line * side, width, line * side), fill="gainsboro")
        for item, kind in enumerate(KIND_OF_ITEM.tolist()):
            if state.is_left[item]:
                row, column = divmod(int(params.items[item]), SIZE)
                x, y = side * (column + 0.5), side * (row + 0.5)
                radius = side * (0.15 + 0.25 * float(params.weights[kind]))
                canvas.rectangle((x - radius, y - radius, x + radius, y + radius), COLOURS[kind])
        for agent, colour in zip(state.agents, AGENT_COLOURS, strict=True):
            x, y = side * (int(agent.column) + 0.5), side * (int(agent.row) + 0.5)
            radius = 0.35 * side
            canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
        return np.asarray(image)


def is_same(cell: Cell, cell_b: Cell) -> Flag:
    """Return whether two cells are one."""
    return (cell.row == cell_b.row) & (cell.column == cell_b.column)


def count_kinds(flags: FlagArray) -> IntArray:
    """Return the number of items of each kind that have a flag, ``(3,)``."""
    return jnp.stack(
        [flags[kind == KIND_OF_ITEM].sum(dtype=jnp.int32) for kind in range(len(KINDS))]
    )

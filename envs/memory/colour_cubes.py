"""Walk to the cube of the wanted colour, on a floor whose cubes are seen only when one has moved.

Color-Cubes (Shchendrigin et al. 2026, arXiv:2601.15086): N cubes of different colours lie on
different cells of a 5 x 5 floor. The agent takes the wanted one; that cube moves to a random free
cell, and another is wanted. At each other step one of the cubes that are not wanted moves to a
random free cell with probability 1/10 (the setting ``moves``). The floor is seen at the start and
after each move of a cube; else the agent sees only where it stands and which colour is wanted.

=============  =====================================================================================
action         0 north, 1 south, 2 west, 3 east: one cell, if there is one; 4: take
observation    ``Box(0, 1, (10 + N + 10 N + 25,))``, one-hot: the agent's row and column; the colour
               wanted; row and column of each cube; whether a cube lies in each cell. Cubes and
               cells are zeros while nothing is seen.
reward         1 for taking the wanted cube, else 0
termination    never: the time limit truncates after 100 steps
success        at least one cube is taken, and never a place where the wanted cube is not
difficulty     N, from 1 (retention: the cube is seen once, then it is to be found) to 8; with a
               minus, from -2 to -8, colours are seen at the start only, and later which cells hold
               cubes
context        none
=============  =====================================================================================

The paper's modes are called trivial (one cube), medium and extreme (colours are hidden), and it
publishes neither the size of the floor nor the probability of a move; those are ours. Its episodes
end after K cubes; ours go on, so that the return measures speed. A cube that a player takes and one
that moves by itself never move in the same step, so hidden colours can always be told from the
cells that changed.

**Optimum** of one cube (:func:`max_cubes`): it lies on each cell but the agent's with equal
probability, because moves are uniform over free cells, so the cells in which it is taken are a
Markov chain, and the expected number in 100 steps follows from its walking distances. With several
cubes the cell that the agent left is empty until one moves there, and the reference, which walks
the shortest ways, takes a little fewer. No closed form is known then: the measured score of the
reference stands for the optimum.

**The ceiling without memory** has no closed form either: it is that of the best way to search a
floor by chances that depend on the own cell only. ``benchmarks/audits/memoryless_cubes.py`` bounds
it from below.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Int, IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task_card import TaskCard

from .symbols import COLOURS, INK, PAPER, RGB, Params, SymbolTask, Tally, count_answer, empty_tally

SIDE = 5
"""Cells in a row, and in a column."""
CELLS = SIDE * SIDE
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""Change of row and column, by action."""
TAKE = len(MOVES)
CIRCLE_MOVES = np.array(
    [(3, 3, 3, 3, 1), (0, 1, 2, 2, 2), (0, 3, 3, 3, 1), (0, 1, 1, 2, 1), (0, 2, 2, 0, 2)]
)
"""Moves by cell that lead in a circle through all cells but one."""
NOTHING, CELLS_ONLY, ALL = range(3)
"""Degrees to which the cubes are seen."""
STEPS_PER_MOVE = {"0.1": 10, "0": 0, "0.5": 2}
"""Mean number of steps from one move of a cube to the next by setting; 0 if none moves."""


class State(NamedTuple):
    """The floor; cells are numbered row by row."""

    agent: Int
    """Its cell, int32."""
    cubes: IntArray
    """Cell of each cube, int32 ``(N,)``; all different."""
    goal: Int
    """Number of the wanted cube, int32."""
    visible: Int
    """0 nothing, 1 which cells hold cubes, 2 which cube lies where; int32."""
    tally: Tally


@cache
def max_cubes(steps: int) -> float:
    """Return the mean number of times that the best agent takes the only cube in ``steps`` steps.

    This agent always knows the cube's cell.
    """
    row, column = np.divmod(np.arange(CELLS), SIDE)
    distance = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
    after = np.zeros((steps + 1, CELLS))
    """Expected number of cubes from now on, by remaining steps and the cell of the agent.

    The agent has just taken a cube.
    """
    for remaining in range(steps + 1):
        after_walk = remaining - distance - 1
        value = np.where(
            after_walk >= 0, 1 + after[np.maximum(after_walk, 0), np.arange(CELLS)], 0.0
        )
        if remaining == steps:
            return float(value.mean())  # at the start the cube may lie where the agent stands
        after[remaining] = (value.sum(1) - value.diagonal()) / (CELLS - 1)
    raise AssertionError


class ColourCubes(SymbolTask[State]):
    """The task; see the module's head for its rules.

    Attributes:
        count: number of cubes.
        hidden: whether colours are seen at the start only.
    """

    picture_shape = (300, 300, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        answers = ("north", "south", "west", "east", "take")
        super().__init__(card, difficulty=difficulty, dtype=dtype, answers=answers)
        number = 4.0 if difficulty is None else difficulty
        if not (1 <= abs(number) <= len(COLOURS) and number == int(number) and number != -1):
            raise ValueError(
                f"A difficulty of {card.id} is the number of cubes, a whole number from 1 to "
                f"{len(COLOURS)}, or from -2 to -{len(COLOURS)} for hidden colours; got "
                f"{difficulty!r}."
            )
        self.count, self.hidden = abs(int(number)), number < 0
        self._steps_per_move = STEPS_PER_MOVE[card.settings["moves"]] if self.count > 1 else 0
        self.optimum = max_cubes(card.horizon) if self.count == 1 else None
        self.observation_space = self.box(
            0.0, 1.0, (2 * SIDE + self.count + 2 * SIDE * self.count + CELLS,)
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Lay the cubes on different cells, put the agent anywhere, and choose the wanted cube."""
        bits = self.bits(key, CELLS + 2)
        cubes = jnp.argsort(bits[:CELLS])[: self.count].astype(jnp.int32)
        agent, goal = bits[CELLS] % CELLS, bits[CELLS + 1] % np.uint32(self.count)
        return State(
            agent.astype(jnp.int32), cubes, goal.astype(jnp.int32), jnp.int32(ALL), empty_tally()
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Walk, or take the cube; then a cube may move."""
        row, column = state.agent // SIDE, state.agent % SIDE
        step = jnp.array([*MOVES, (0, 0)], jnp.int32)[action]
        row, column = jnp.clip(row + step[0], 0, SIDE - 1), jnp.clip(column + step[1], 0, SIDE - 1)
        reached = action == TAKE
        takes = reached & (state.cubes[state.goal] == state.agent)
        chance, offset, cell, further = self.bits(key, 4)
        num_offsets = max(1, self.count - 1)
        unwanted = (
            state.goal + 1 + (offset % np.uint32(num_offsets)).astype(jnp.int32)
        ) % self.count
        moves = takes | (chance % self._steps_per_move == 0) if self._steps_per_move else takes
        mover = jnp.where(takes, state.goal, unwanted)
        cubes = jnp.where(
            (jnp.arange(self.count) == mover) & moves, self._free(state.cubes, cell), state.cubes
        )
        following = (
            state.goal + 1 + (further % np.uint32(num_offsets)).astype(jnp.int32)
        ) % self.count
        return State(
            agent=(row * SIDE + column).astype(jnp.int32),
            cubes=cubes,
            goal=jnp.where(takes, following, state.goal).astype(jnp.int32),
            visible=jnp.where(moves, CELLS_ONLY if self.hidden else ALL, NOTHING).astype(jnp.int32),
            tally=count_answer(state.tally, reached, takes),
        )

    def _free(self, cubes: jax.Array, bits: jax.Array) -> jax.Array:
        """Return a random cell without a cube, int32."""
        rank = (bits % np.uint32(CELLS - self.count)).astype(jnp.int32)
        free = ~self._cells_with_cubes(cubes)
        return jnp.argmax(jnp.cumsum(free) == rank + 1).astype(jnp.int32)

    def _cells_with_cubes(self, cubes: jax.Array) -> jax.Array:
        """Return which cells hold a cube, bool ``(25,)``."""
        return (cubes[:, None] == jnp.arange(CELLS)).any(0)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the agent's place, the wanted colour and the cubes that it sees, all one-hot."""
        cubes = [
            self.one_hot(coordinate, SIDE, state.visible == ALL)
            for cube in state.cubes
            for coordinate in (cube // SIDE, cube % SIDE)
        ]  # fmt: skip
        return jnp.concatenate(
            [
                self.one_hot(state.agent // SIDE, SIDE),
                self.one_hot(state.agent % SIDE, SIDE),
                self.one_hot(state.goal, self.count),
                *cubes,
                (self._cells_with_cubes(state.cubes) & (state.visible != NOTHING)).astype(
                    self.dtype
                ),
            ]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        lines = [(line, number) for line in ("row", "column") for number in range(1, SIDE + 1)]
        colours = COLOURS[: self.count]
        return singles(
            {f"{line}_{number}": f"whether you stand in {line} {number}" for line, number in lines}
            | {f"wanted_{colour}": f"whether the {colour} cube is wanted" for colour in colours}
            | {
                f"{colour}_{line}_{number}": f"whether the {colour} cube is seen in {line} {number}"
                for colour in colours
                for line, number in lines
            }
            | {
                f"cube_{cell // SIDE + 1}_{cell % SIDE + 1}": (
                    f"whether a cube is seen in {cell_name(cell)}"
                )
                for cell in range(CELLS)
            }
        )

    def tally(self, state: State) -> Tally:
        """Return how often the agent took the wanted cube, and how often it reached in vain."""
        return state.tally

    def tiles(self, state: State) -> list[tuple[int | None, str]]:
        """Return the colour wanted."""
        return [(int(state.goal), "wanted")]

    def describe(self, state: State, params: Params) -> str:
        """Say where the agent stands, what is wanted, and what is seen."""
        words = (
            f"You stand in {cell_name(int(state.agent))}. The {COLOURS[int(state.goal)]} cube is "
            "wanted."
        )
        if int(state.visible) == ALL:
            cubes = (
                f"{COLOURS[n]} in {cell_name(int(cell))}" for n, cell in enumerate(state.cubes)
            )
            return f"{words} You see the cubes: {'; '.join(cubes)}."
        if int(state.visible) == CELLS_ONLY:
            cells = "; ".join(cell_name(cell) for cell in sorted(int(cell) for cell in state.cubes))
            return f"{words} You see cubes, but not their colours, in {cells}."
        return words

    def rules(self) -> str:
        """Return the rules."""
        colours = (
            "; from then on you see the cells of the cubes without their colours"
            if self.hidden
            else ""
        )
        strays = (
            " Now and then a cube that is not wanted moves, too."
            if STEPS_PER_MOVE[self.card.settings["moves"]]
            else ""
        )
        return (
            f"{self.count} cube{'s lie' if self.count > 1 else ' lies'} on a floor of {SIDE} rows, "
            f"from north to south, and {SIDE} columns, from west to east. Walk to the wanted cube "
            f"and take it, which earns 1; it is then put elsewhere and another is wanted.{strays} "
            f"You see the cubes at the start and when one has moved{colours}."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the floor as it is seen, the agent as a ring in the colour that is wanted."""
        from PIL import Image, ImageDraw

        height, width, _ = self.picture_shape
        picture = Image.new("RGB", (width, height), PAPER)
        pen, size = ImageDraw.Draw(picture), (height - 20) // SIDE
        for cell in range(CELLS):
            left, top = 10 + cell % SIDE * size, 10 + cell // SIDE * size
            pen.rectangle((left, top, left + size, top + size), outline=(200, 200, 196), width=1)
        for number, cell in enumerate(state.cubes):
            if int(state.visible) != NOTHING:
                left, top = 22 + int(cell) % SIDE * size, 22 + int(cell) // SIDE * size
                fill = tuple(RGB[number].tolist()) if int(state.visible) == ALL else (190, 190, 190)
                pen.rectangle(
                    (left, top, left + size - 24, top + size - 24), fill=fill, outline=INK, width=2
                )
        left, top = 16 + int(state.agent) % SIDE * size, 16 + int(state.agent) // SIDE * size
        pen.ellipse(
            (left, top, left + size - 12, top + size - 12),
            outline=tuple(RGB[int(state.goal)]),
            width=5,
        )
        return np.asarray(picture)


def cell_name(cell: int) -> str:
    """Return the words for a cell."""
    return f"row {cell // SIDE + 1}, column {cell % SIDE + 1}"


class Tracker(eqx.Module):
    """A player that walks the shortest way to the wanted cube.

    It keeps the cell of each cube, and tells by the cells that changed which one moved.
    """

    count: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: ColourCubes) -> Tracker:
        """Make the player of a number of cubes."""
        return cls(task.count)

    def initial(self, params: Params) -> jax.Array:
        """Return no cells yet."""
        return jnp.full(self.count, -1, jnp.int32)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Update the cells, and walk to the wanted cube along its row's and column's distance."""
        ends = np.cumsum([SIDE, SIDE, self.count, 2 * SIDE * self.count])
        rows, columns, goal_colour, cubes, floor = jnp.split(jnp.asarray(view.observation), ends)
        lines = cubes.reshape(self.count, 2, SIDE)
        cells_in_sight = jnp.argmax(lines[:, 0], 1) * SIDE + jnp.argmax(lines[:, 1], 1)
        cells = jnp.where(lines.any(), cells_in_sight, memory).astype(jnp.int32)
        moved = floor.any() & (floor[cells] == 0)
        new = jnp.argmax((floor > 0) & ~(cells[:, None] == jnp.arange(CELLS)).any(0))
        cells = jnp.where(moved, new, cells).astype(jnp.int32)
        goal = cells[jnp.argmax(goal_colour)]
        south = goal // SIDE - jnp.argmax(rows)
        east = goal % SIDE - jnp.argmax(columns)
        along = jnp.where(east > 0, 3, jnp.where(east < 0, 2, TAKE))
        return jnp.where(south > 0, 1, jnp.where(south < 0, 0, along)).astype(jnp.int32), cells


class Wanderer(eqx.Module):
    """A player without a memory, which walks towards the wanted cube while it sees the colours.

    Otherwise it searches.

    Several cubes are soon seen again, so that it stays where it is and takes. One cube or hidden
    colours are not: then it goes on along a way around the floor with probability 0.4, and takes
    with probability 0.6. Others take more (``benchmarks/audits/memoryless_cubes.py``); the best is
    not known.
    """

    count: int = eqx.field(static=True)
    walks: bool = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: ColourCubes) -> Wanderer:
        """Make the player of a number of cubes."""
        return cls(task.count, walks=task.hidden or task.count == 1)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Walk towards the wanted cube, or search."""
        position, goal_colour, cubes, _ = jnp.split(
            jnp.asarray(view.observation), np.cumsum([2 * SIDE, self.count, 2 * SIDE * self.count])
        )
        row, column = jnp.argmax(position[:SIDE]), jnp.argmax(position[SIDE:])
        goal = cubes.reshape(self.count, 2, SIDE)[jnp.argmax(goal_colour)]
        goal_row, goal_column = jnp.argmax(goal[0]), jnp.argmax(goal[1])
        along = jnp.where(goal_column > column, 3, jnp.where(goal_column < column, 2, TAKE))
        towards = jnp.where(goal_row > row, 1, jnp.where(goal_row < row, 0, along))
        goes = (jax.random.uniform(key) < 0.4) & self.walks
        search = jnp.where(goes, jnp.asarray(CIRCLE_MOVES)[row, column], TAKE)
        return jnp.where(cubes.any(), towards, search).astype(jnp.int32), memory

"""Explore hills with three rovers on one battery each: a team task with slopes and energy.

The task extends MarsCoverage (``mars_coverage.py``, after Koutras et al. 2021, arXiv:2107.09996) to
several robots, as in Burgard, Moors, Stachniss & Schneider 2005, doi:10.1109/TRO.2004.839232, and
to hills (``relief.py`` has the equation of energy). Caves and lidar are those of ``terrain.py``.

======================  ============================================================================
agents                  three rovers. They start in one cell, share their maps, and may stand in one
                        cell
action                  each ``Discrete(5)``: stay, or one cell to the east (+x), north (+y), west,
                        south. Illegal (masked): rock, slopes of more than 2 steps of height, and
                        ways that need more energy than the battery has. If one rover's action is
                        illegal, none of them moves in that step
energy                  2 units a cell and 1 for each step of height up, as much as the rover weighs
                        times 0.4 m. A battery has 180 units at the start. Standing costs none, and
                        nothing is regained
observation ``(581,)``  of each rover: the 13 x 13 cells about it, row by row from below, each from
the left: known to
                        be ground (169), known to be rock (169), height of known cells above the
                        rover in units of 16 steps (169); a coarse map about it, as in MarsCoverage:
                        cells of frontier (64); its place x, y (by 31) and battery; fraction
                        covered; then of each other rover, in the order of their numbers from its
                        own on: place relative to it (by 31), battery
lidar                   sees every cell within 6 cells to which no rock lies on Bresenham's line,
                        whose ties between two cells go away from the axis; at the start and after
                        every step. Hills hide nothing, an approximation
reward                  the same for each rover: fraction of the ground newly seen by any of them,
                        minus 1/200; plus 1 on reaching the goal
terminated              the goal: at least 95 % of the ground is covered. Empty batteries end
                        nothing: rovers stand, and time costs on, so that nobody gains by an early
                        end
success                 the goal: at least 95 % of the ground is covered
start                   a random cell of ground, one for all
context                 caves and hills. The ground is the largest region that rovers can drive, so
                        that all of it can be reached. Training terrains have an even number of
                        cells without rock, test terrains an odd one
difficulty              relief: height of the coarse hills in steps of 0.4 m, 1 to 17
======================  ============================================================================

Rovers need not return to where they started.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared import grid_bits
from ..shared.grid_bits import SIDE
from . import relief, terrain
from .compass import MOVES, read_move
from .known_map import as_grid, draw_map, map_lines
from .mars_coverage import BLOCKS, FULL_BLOCK_CELLS, GAIN_RADIUS, GOAL, block_counts, frontier
from .terrain import RANGE, WINDOW

WAYS = {"stay": (0, 0), **MOVES}
"""Steps in x and y, in the order of the actions."""
DENSITY = 5
"""Density of rock before smoothing, in sixteenths."""
CHARGE = 180
"""Energy in a battery at the start, in units."""
STEP_COST = 1 / 200
STEEP_VIEW = 16
"""Difference of height that the observation shows as 1; larger ones look the same."""
COLOURS = ("royalblue", "crimson", "seagreen")


class Params(NamedTuple):
    """The context."""

    open: jax.Array
    """uint32 ``(32,)``, see :mod:`rlbench_suite.envs.shared.grid_bits`: cells without rock."""
    ground: jax.Array
    """uint32 ``(32,)``: those that the rovers can reach, which count."""
    size: jax.Array
    """int32: their number."""
    heights: jax.Array
    """int32 ``(32, 32)``, ``[y, x]``, in steps of 0.4 m."""
    east: jax.Array
    """uint32 ``(32,)``: cells from which one can drive to the east, and back."""
    north: jax.Array
    """uint32 ``(32,)``: cells from which one can drive to the north, and back."""


class Rover(NamedTuple):
    """Place and battery; one entry a rover."""

    x: jax.Array
    """int32: column."""
    y: jax.Array
    """int32: row."""
    battery: jax.Array
    """int32: energy left, in units."""


class State(NamedTuple):
    """The rovers, and what they have seen together."""

    rovers: Rover
    known_cells: jax.Array
    """uint32 ``(32,)``: cells seen, with and without rock."""


class MarsFleet(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "coverage": "part of the ground that was seen, in [0, 1]",
        "energy": "energy that the rovers have used together, kJ",
        "stranded": "number of rovers whose battery is too empty for a level cell",
    }
    picture_shape = (384, 384, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or difficulty not in range(1, 18):
            raise ValueError(
                f"The difficulty of {card.id} is a height in steps of 0.4 m, 1 to 17, or one of "
                f"{', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.relief = int(difficulty)
        n = card.agents
        low = np.zeros(3 * WINDOW**2 + BLOCKS**2 + 4 + 3 * (n - 1))
        low[2 * WINDOW**2 : 3 * WINDOW**2] = -1
        for teammate in range(n - 1):
            low[len(low) - 3 * (n - 1) + 3 * teammate :][:2] = -1
        self.observation_space = self.box(np.tile(low, (n, 1)), 1)
        self.action_space = spaces.MultiDiscrete([len(WAYS)] * n)
        self.reward_space = self.box(np.full(n, -STEP_COST), 2)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample caves of the split and hills; the ground is the largest region open to rovers."""
        bits = self.bits(key, 4 * SIDE + sum(relief.NODES))
        cave = terrain.random_ground(bits[: 4 * SIDE].reshape(4, SIDE), DENSITY, split == 1)
        heights = relief.random_heights(bits[4 * SIDE :], self.relief)
        east, north = relief.ways(cave, heights)
        ground = terrain.largest_region(
            cave, lambda cell, _: relief.connected_cells(cell, east, north)
        )
        return Params(cave, ground, grid_bits.count(ground), heights, east, north)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start on a random cell of ground, after a first look around."""
        (u,) = self.uniform(key, 1)
        n = jnp.minimum(
            jnp.floor(u * params.size.astype(self.dtype)).astype(jnp.int32), params.size - 1
        )
        x, y = grid_bits.nth_cell(params.ground, n)
        x, y, battery = (jnp.full(self.card.agents, value, jnp.int32) for value in (x, y, CHARGE))
        return State(Rover(x, y, battery), terrain.visible_cells(params.open, x[0], y[0]))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move, pay the energy, then look."""
        rovers = state.rovers
        dx, dy = jnp.asarray(np.array(list(WAYS.values()), np.int32))[action].T
        # The kernel discards the result of an illegal move, but the computation must not leave the
        # map.
        x, y = jnp.clip(rovers.x + dx, 0, SIDE - 1), jnp.clip(rovers.y + dy, 0, SIDE - 1)
        used = relief.energy(params.heights[rovers.y, rovers.x], params.heights[y, x])
        battery = jnp.maximum(rovers.battery - jnp.where(action == 0, 0, used), 0)
        known_cells = state.known_cells
        for i in range(self.card.agents):
            known_cells = known_cells | terrain.visible_cells(params.open, x[i], y[i])
        return State(Rover(x, y, battery), known_cells)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return one row a rover, ``(rovers, 581)``; see the table."""
        known_open, known_rock = state.known_cells & params.open, state.known_cells & ~params.open
        covered = self._fraction(grid_bits.count(state.known_cells & params.ground), params)
        edge = frontier(known_open, state.known_cells)
        heights = jnp.pad(params.heights, RANGE)
        columns = np.arange(WINDOW, dtype=np.uint32)
        count, rows = self.card.agents, []
        rovers = [Rover(*(values[i] for values in state.rovers)) for i in range(count)]
        for i, rover in enumerate(rovers):
            x, y = rover.x, rover.y
            windows = [
                terrain.window(cells, x, y)[:, None] >> columns & 1 == 1
                for cells in (known_open, known_rock, state.known_cells)
            ]
            rise = lax.dynamic_slice(heights, (y, x), (WINDOW, WINDOW)) - params.heights[y, x]
            rise = jnp.where(windows[2], jnp.clip(rise, -STEEP_VIEW, STEEP_VIEW), 0)
            teammates = (rovers[(i + k) % count] for k in range(1, count))
            rows.append(
                jnp.concatenate([
                    *(values.ravel().astype(self.dtype) for values in windows[:2]),
                    self._scale(rise.ravel(), STEEP_VIEW),
                    self._scale(
                        jnp.minimum(block_counts(edge, x, y), FULL_BLOCK_CELLS).ravel(),
                        FULL_BLOCK_CELLS,
                    ),
                    self.stack(
                        *self._scale_position(x, y),
                        self._scale(rover.battery, CHARGE),
                        covered,
                    ),
                    *(
                        self.stack(
                            *self._scale_position(teammate.x - x, teammate.y - y),
                            self._scale(teammate.battery, CHARGE),
                        )
                        for teammate in teammates
                    ),
                ])
            )  # fmt: skip
        return jnp.stack(rows)

    def _scale_position(self, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self._scale(x, SIDE - 1), self._scale(y, SIDE - 1)

    def _scale(self, number: jax.Array, unit: int) -> jax.Array:
        return number.astype(self.dtype) * self.dtype.type(1 / unit)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each rover; see the table."""
        window, block_map = (WINDOW, WINDOW), (BLOCKS, BLOCKS)
        cells = "[row from below, column]: whether the cell, about the rover, is known to be"
        edge = f"{SIDE - 1} cells"
        battery = f"{CHARGE * relief.UNIT / 1000:.4g} kJ"
        teammates = [
            Component(f"{name}_{k}", meaning, unit)
            for k in range(1, self.card.agents)
            for name, meaning, unit in (
                ("east", f"cells to the east to the rover {k} numbers on", edge),
                ("north", f"cells to the north to the rover {k} numbers on", edge),
                ("battery", f"energy in the battery of the rover {k} numbers on", battery),
            )
        ]
        return (
            Component("ground", f"{cells} free of rock", shape=window),
            Component("rock", f"{cells} rock", shape=window),
            Component(
                "rise",
                (
                    "[row from below, column]: height of the cell above the rover if it is known, "
                    "else 0"
                ),
                f"{STEEP_VIEW * 0.4:g} m",
                window,
            ),
            Component(
                "frontier",
                (
                    "[row from below, column]: cells of frontier in each block of the map about "
                    "the rover"
                ),
                f"{FULL_BLOCK_CELLS} cells",
                block_map,
            ),
            Component("x", "cells from the western edge to the rover", edge),
            Component("y", "cells from the southern edge to the rover", edge),
            Component("battery", "energy in its battery", battery),
            Component("covered", "part of the ground that is covered"),
            *teammates,
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the actions; a joint action has one entry a rover."""
        actions = ", ".join(f"{number} {name}" for number, name in enumerate(WAYS))
        return (Component("way", f"[rover]: {actions}", shape=(self.card.agents,)),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return newly covered ground minus the cost of a step, plus the prize of the goal.

        It is the same for each rover.
        """
        previous_count, next_count = (
            grid_bits.count(cells & params.ground)
            for cells in (state.known_cells, next_state.known_cells)
        )
        at_goal = _is_covered(next_count, params) & ~_is_covered(previous_count, params)
        team = (
            self._fraction(next_count - previous_count, params)
            - self.dtype.type(STEP_COST)
            + at_goal
        )
        return jnp.broadcast_to(team, (self.card.agents,))

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the goal is reached."""
        return _is_covered(grid_bits.count(state.known_cells & params.ground), params)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, the coverage, the energy used, and the number of stranded rovers."""
        covered = grid_bits.count(state.known_cells & params.ground)
        used = (CHARGE - state.rovers.battery).sum().astype(self.dtype)
        return {
            "success": _is_covered(covered, params),
            "coverage": self._fraction(covered, params),
            "energy": used * self.dtype.type(relief.UNIT / 1000),
            "stranded": (state.rovers.battery < relief.ROLLING).sum().astype(jnp.int32),
        }

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark what each rover can do, bool ``(5 * rovers,)``.

        It can always stand. It can go ways that are not too steep and for which its battery
        suffices.
        """
        masks = []
        for i in range(self.card.agents):
            rover = Rover(*(values[i] for values in state.rovers))
            masks += [jnp.ones(1, bool), legal_moves(rover, params)]
        return jnp.concatenate(masks)

    def _fraction(self, cells: jax.Array, params: Params) -> jax.Array:
        return cells.astype(self.dtype) / params.size.astype(self.dtype)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Draw the known map in letters and its heights in digits, and describe each rover."""
        is_known, free = as_grid(state.known_cells), as_grid(params.open)
        x, y, battery = (np.asarray(values).tolist() for values in state.rovers)
        covered = sum(
            int(word).bit_count()
            for word in np.asarray(state.known_cells) & np.asarray(params.ground)
        )
        digits = np.array([np.base_repr(number, 36).lower() for number in range(36)])
        heights = np.where(is_known, digits[np.asarray(params.heights)], "?")
        rovers = [
            f"Rover {i + 1} at column {x[i]} from the west, row {y[i]} from the south, "
            f"{battery[i]} of {CHARGE} units of energy. Open ways: "
            f"{', '.join(self._open_ways(i, state, params))}."
            for i in range(self.card.agents)
        ]
        return "\n".join([
            "Map, north up, east to the right (1, 2, 3 rovers, . ground, # rock, ? unknown):",
            *map_lines(is_known, free, {str(i + 1): (x[i], y[i]) for i in range(self.card.agents)}),
            "Heights in steps of 0.4 m (0 to 9, then a to z for 10 to 35). A cell costs "
            f"{relief.ROLLING} units of energy and 1 for each step up; more than "
            f"{relief.MAX_RISE} steps are too steep:",
            *("".join(row) for row in heights[::-1]),
            *rovers,
            f"{covered / int(params.size):.1%} of the ground that can be reached is covered, the "
            f"goal is {GOAL[0] / GOAL[1]:.0%}.",
        ])  # fmt: skip

    def _open_ways(self, rover: int, state: State, params: Params) -> list[str]:
        """Name the legal actions of a rover, on the host."""
        x, y, battery = (int(values[rover]) for values in state.rovers)
        east = as_grid(params.east)
        north = as_grid(params.north)
        heights = np.asarray(params.heights)
        legal = {
            "stay": True, "east": east[y, x], "north": north[y, x],
            "west": x > 0 and east[y, x - 1], "south": y > 0 and north[y - 1, x],
        }  # fmt: skip
        return [
            name
            for name, (dx, dy) in WAYS.items()
            if name == "stay"
            or (
                legal[name]
                and relief.ROLLING + max(0, int(heights[y + dy, x + dx] - heights[y, x])) <= battery
            )
        ]

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with {self.card.agents} words, rover 1 first, each one of: {', '.join(WAYS)}."
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the actions of names or numbers, one a rover.

        Raises:
            ValueError: there are not as many, or one is neither.
        """
        words = text.replace(",", " ").split()
        if len(words) != self.card.agents:
            raise ValueError(
                f"expected {self.card.agents} words, each one of {', '.join(WAYS)}; got {text!r}"
            )
        return np.array([read_move(word, WAYS) for word in words], self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the names of the actions."""
        return " ".join(list(WAYS)[int(move)] for move in action)

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Name the first rover that cannot go its way, and its open ways."""
        names = [list(WAYS)[int(move)] for move in action]
        ways = [self._open_ways(i, state, params) for i in range(self.card.agents)]
        i = next(i for i, name in enumerate(names) if name not in ways[i])
        return (
            f"rover {i + 1} cannot go {names[i]}, where rock, slope or battery forbid it; open: "
            f"{', '.join(ways[i])}"
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the only end there is."""
        return f"at least {GOAL[0] / GOAL[1]:.0%} of the ground is covered"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the known map from above, north up, with the rovers and their lidars.

        The higher the ground, the lighter it is.
        """
        is_known, free = as_grid(state.known_cells), as_grid(params.open)
        x, y, _ = (np.asarray(values).tolist() for values in state.rovers)
        shade = 0.6 + np.asarray(params.heights) / 100
        return draw_map(
            is_known, free, zip(x, y, COLOURS, strict=True), self.picture_shape[0] // SIDE, shade
        )


def legal_moves(rover: Rover, params: Params) -> jax.Array:
    """Mark the ways that a rover can take, bool ``(4,)`` in the order of the moves."""
    x, y = rover.x, rover.y

    def is_open_from(ways: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return ways[y] >> x.astype(jnp.uint32) & 1 == 1

    # Cells of the outer ring are rock, so no rover stands on the edge.
    drivable = jnp.stack([
        is_open_from(params.east, x, y), is_open_from(params.north, x, y),
        is_open_from(params.east, x - 1, y), is_open_from(params.north, x, y - 1),
    ])  # fmt: skip
    steps = np.array(list(MOVES.values()), np.int32)
    there = params.heights[y + steps[:, 1], x + steps[:, 0]]
    return drivable & (relief.energy(params.heights[y, x], there) <= rover.battery)


def _is_covered(count: jax.Array, params: Params) -> jax.Array:
    return count * GOAL[1] >= params.size * GOAL[0]


UNREACHABLE = 2**14
"""Larger than eight times the energy of every way that matters; sums with it fit int16."""
CLAIM_RADIUS = 6
"""Cells, along the longer axis, within which an assigned frontier lowers the worth of others."""


@privileged_player
class CoordinatedFrontiers(NamedTuple):
    """Coordinated exploration, in which each rover drives to a frontier of its own.

    It is section III of Burgard et al. 2005.

    Every frontier cell has a utility and, for each rover, a cost: the energy of the cheapest way
    over known ground. The pair of rover and frontier with the best utility minus cost is assigned
    first. The utility of other frontiers within 6 cells of it then falls to ``distance / 6``, and
    the next pair is assigned, until each rover has a frontier. The utility is worth ``weight``
    units of energy for each unknown cell within 3 cells in each direction; 2 is the best of three
    numbers on 128 training terrains. Frontiers for which a battery does not suffice are left to
    other rovers.

    The player uses the cells that the rovers have seen, and nothing else of the terrain.
    """

    weight: Float = 2.0

    @classmethod
    def for_task(cls, task: MarsFleet) -> CoordinatedFrontiers:
        """Make the player; it is the same for every terrain."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Assign a frontier to each rover, and return the first steps to them."""
        state: State = view.state
        params: Params = view.params
        known_open = state.known_cells & params.open
        cost, first = cheapest_ways(state.rovers, known_open, params)
        edge = _grid(frontier(known_open, state.known_cells))
        unknown = sum(
            _grid(plane) << i
            for i, plane in enumerate(terrain.box_counts(~state.known_cells, GAIN_RADIUS))
        )
        worth = (self.weight * unknown).astype(jnp.int32)
        possible = (edge == 1) & (cost <= state.rovers.battery[:, None, None])
        count = possible.shape[0]
        action = jnp.zeros(count, jnp.int32)
        axis = np.arange(SIDE)
        for _ in range(count):
            price = jnp.where(possible, cost - worth, UNREACHABLE).reshape(-1)
            best = jnp.argmin(price)
            rover, cell = best // SIDE**2, best % SIDE**2
            reachable = price[best] < UNREACHABLE
            assigned = (np.arange(count) == rover) & reachable
            action = jnp.where(assigned, first[rover, cell // SIDE, cell % SIDE], action)
            possible = possible & ~assigned[:, None, None]
            away = jnp.maximum(abs(axis[:, None] - cell // SIDE), abs(axis - cell % SIDE))
            worth = jnp.where(
                reachable, worth * jnp.minimum(away, CLAIM_RADIUS) // CLAIM_RADIUS, worth
            )
        return action, memory


def cheapest_ways(
    rovers: Rover, known_open: jax.Array, params: Params
) -> tuple[jax.Array, jax.Array]:
    """Return the energy of the cheapest way from each rover to each cell, and its first action.

    Ways lead over the cells of ``known_open``.

    Bellman and Ford's relaxation of all cells at once. Eight times the energy plus the first action
    is one number, so the least one holds both. Cells that cannot be reached cost ``UNREACHABLE /
    8``. Both arrays are int16 ``(rovers, 32, 32)``.
    """
    heights = params.heights
    east = _grid(params.east & known_open & known_open >> 1) == 1
    north = _grid(params.north & known_open & grid_bits.shift_down(known_open)) == 1
    # For each move the cells from which it is open.
    leaving = [east, north, jnp.roll(east, 1, 1), jnp.roll(north, 1, 0)]
    # By the cell in which a way ends: whether it is open, and eight times its energy. Nothing is
    # open across the edge.
    arriving = []
    for (dx, dy), is_open in zip(MOVES.values(), leaving, strict=True):
        paid = 8 * relief.energy(heights, jnp.roll(heights, (-dy, -dx), (0, 1))).astype(jnp.int16)
        arriving.append((jnp.roll(is_open, (dy, dx), (0, 1)), jnp.roll(paid, (dy, dx), (0, 1))))
    rows = np.arange(SIDE)
    is_start = (rows[:, None] == rovers.y[:, None, None]) & (rows == rovers.x[:, None, None])
    start = jnp.where(is_start, 0, UNREACHABLE).astype(jnp.int16)

    def relax(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        best, _ = state
        relaxed = best
        for action, ((dx, dy), (is_open, paid)) in enumerate(
            zip(MOVES.values(), arriving, strict=True), start=1
        ):
            previous = jnp.roll(best, (dy, dx), (1, 2))
            relaxed = jnp.minimum(
                relaxed,
                jnp.where(
                    is_open, previous + paid + jnp.where(previous == 0, action, 0), UNREACHABLE
                ),
            )
        return relaxed, (relaxed != best).any()

    best, _ = lax.while_loop(lambda state: state[1], relax, (start, jnp.bool_(True)))
    return best >> 3, best & 7


def _grid(words: jax.Array) -> jax.Array:
    """Return a set as 0 and 1, int32 ``(32, 32)``, ``[y, x]``."""
    return (words[:, None] >> np.arange(SIDE, dtype=np.uint32) & 1).astype(jnp.int32)

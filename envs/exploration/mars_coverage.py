"""Drive a rover over unknown terrain until its lidar has seen it: coverage after MarsExplorer.

Source of the task: Koutras, Kapoutsis, Amanatiadis & Kosmatopoulos 2021 (MarsExplorer),
arXiv:2107.09996. Terrain, lidar and sets of cells: ``terrain.py``.

======================  ============================================================================
action                  ``Discrete(4)``: one cell to the east (+x), north (+y), west, south. The
                        cells beside the rover are always seen, so moves into rock are known
                        beforehand; they are illegal (masked)
observation ``(405,)``  the 13 x 13 cells about the rover, row by row from below, each from the
left: known to be
                        ground (169), known to be rock (169); a coarse map about the rover, 8 x 8
                        blocks of 8 x 8 cells, the rover at the lower left corner of block (4, 4):
                        cells of frontier in each, count / 16, at most 1 (64); place x, y (by 31);
                        fraction of the ground covered. Frontier: ground that is known, with an
                        unknown cell beside it
lidar                   sees every cell within 6 cells (Euclidean) to which no rock lies on
                        Bresenham's line, whose ties between two cells go away from the axis; it
                        looks at the start and after every step
reward                  fraction of the ground newly seen, minus 1/400; plus 1 on reaching the goal
terminated              the goal: at least 95 % of the ground is covered
success                 the goal: at least 95 % of the ground is covered
start                   a random cell of ground
context                 the terrain: caves of a cellular automaton, of which the largest connected
                        region is the ground. So all ground can be reached, and every terrain can be
                        covered. Training terrains have an even number of cells of ground, test
                        terrains an odd one
difficulty              density of rock before smoothing, in sixteenths, 4 to 8
======================  ============================================================================

A return is the fraction newly covered, plus 1 for the goal, minus 1/400 a step: a rover that covers
95 % in 120 steps earns about 1.6. Differences from MarsExplorer: the map has 32 x 32 cells of caves
instead of 21 x 21 with twelve boulders; the lidar has no gaps between rays; the rover cannot run
into rock, which there ends the episode at -400; and the observation shows the rover from its first
step on.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared import grid_bits
from ..shared.grid_bits import SIDE
from . import terrain
from .compass import MOVES, CompassMoves
from .known_map import as_grid, draw_map, map_lines
from .terrain import WINDOW

GOAL = (19, 20)
"""Covered fraction of the ground at which the task is over, as numerator and denominator."""
STEP_COST = 1 / 400
BLOCK = 8
"""Cells along a side of a block of the coarse map."""
BLOCKS = 2 * SIDE // BLOCK
FULL_BLOCK_CELLS = 16
"""Frontier cells from which a block counts as full."""


class Params(NamedTuple):
    """The context."""

    ground: jax.Array
    """Cells on which the rover can drive, uint32 ``(32,)``, see :mod:`.terrain`.

    All other cells are rock.
    """
    size: jax.Array
    """int32: their number."""


class State(NamedTuple):
    """Place of the rover, and the cells it has seen."""

    x: jax.Array
    """int32: column."""
    y: jax.Array
    """int32: row."""
    known_cells: jax.Array
    """uint32 ``(32,)``: cells seen, ground and rock."""


class MarsCoverage(CompassMoves, Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {"coverage": "part of the ground that was seen, in [0, 1]"}
    picture_shape = (384, 384, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or difficulty not in range(4, 9):
            raise ValueError(
                f"The difficulty of {card.id} is a density of rock in sixteenths, 4 to 8, "
                f"or one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.density = int(difficulty)
        self.observation_space = self.box(0, 1, (2 * WINDOW**2 + BLOCKS**2 + 3,))
        self.action_space = spaces.Discrete(len(MOVES))
        self.reward_space = self.box(-STEP_COST, 2)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a terrain of the split."""
        ground = terrain.random_ground(
            jax.random.bits(key, (4, SIDE), jnp.uint32), self.density, split == 1
        )
        return Params(ground, grid_bits.count(ground))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start on a random cell of ground, after a first look around."""
        (u,) = self.uniform(key, 1)
        n = jnp.minimum(
            jnp.floor(u * params.size.astype(self.dtype)).astype(jnp.int32), params.size - 1
        )
        x, y = grid_bits.nth_cell(params.ground, n)
        return State(x, y, terrain.visible_cells(params.ground, x, y))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move, then look."""
        steps = np.array(list(MOVES.values()), np.int32)
        dx, dy = jnp.asarray(steps)[action]
        # The kernel discards the result of an illegal move, but the computation must not leave the
        # map.
        x, y = jnp.clip(state.x + dx, 0, SIDE - 1), jnp.clip(state.y + dy, 0, SIDE - 1)
        return State(x, y, state.known_cells | terrain.visible_cells(params.ground, x, y))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(405,)``; see the table."""
        known_ground = state.known_cells & params.ground
        known_rock = state.known_cells & ~params.ground
        columns = np.arange(WINDOW, dtype=np.uint32)
        windows = [
            (terrain.window(cells, state.x, state.y)[:, None] >> columns & 1).ravel()
            for cells in (known_ground, known_rock)
        ]
        coarse = jnp.minimum(
            block_counts(frontier(known_ground, state.known_cells), state.x, state.y),
            FULL_BLOCK_CELLS,
        )
        coverage = self._fraction(grid_bits.count(known_ground), params)
        position_entries = (
            position.astype(self.dtype) * self.dtype.type(1 / (SIDE - 1))
            for position in (state.x, state.y)
        )
        return jnp.concatenate([
            *(cells.astype(self.dtype) for cells in windows),
            coarse.ravel().astype(self.dtype) * self.dtype.type(1 / FULL_BLOCK_CELLS),
            self.stack(*position_entries, coverage),
        ])  # fmt: skip

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        window, block_map = (WINDOW, WINDOW), (BLOCKS, BLOCKS)
        cells = "[row from below, column]: whether the cell, about the rover, is known to be"
        return (
            Component("ground", f"{cells} ground", shape=window),
            Component("rock", f"{cells} rock", shape=window),
            Component(
                "frontier",
                (
                    "[row from below, column]: cells of frontier in each block of the map about "
                    "the rover"
                ),
                f"{FULL_BLOCK_CELLS} cells",
                block_map,
            ),
            Component("x", "cells from the western edge to the rover", f"{SIDE - 1} cells"),
            Component("y", "cells from the southern edge to the rover", f"{SIDE - 1} cells"),
            Component("covered", "part of the ground that is covered"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the four moves."""
        return singles({move: f"drive one cell to the {move}" for move in MOVES})

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return newly covered ground minus the cost of a step, plus the prize of the goal."""
        previous_count, next_count = (
            grid_bits.count(cells & params.ground)
            for cells in (state.known_cells, next_state.known_cells)
        )
        at_goal = self._is_covered(next_count, params) & ~self._is_covered(previous_count, params)
        return (
            self._fraction(next_count - previous_count, params)
            - self.dtype.type(STEP_COST)
            + at_goal
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the goal is reached."""
        return self._is_covered(grid_bits.count(state.known_cells & params.ground), params)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the coverage."""
        covered = grid_bits.count(state.known_cells & params.ground)
        return {
            "success": self._is_covered(covered, params),
            "coverage": self._fraction(covered, params),
        }

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark moves onto ground, bool ``(4,)``."""
        return neighbours_in(params.ground, state)

    def _is_covered(self, count: jax.Array, params: Params) -> jax.Array:
        return count * GOAL[1] >= params.size * GOAL[0]

    def _fraction(self, cells: jax.Array, params: Params) -> jax.Array:
        return cells.astype(self.dtype) / params.size.astype(self.dtype)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Draw the known part of the map in letters."""
        x, y = int(state.x), int(state.y)
        covered = sum(
            int(word).bit_count()
            for word in np.asarray(state.known_cells) & np.asarray(params.ground)
        )
        is_known, ground = as_grid(state.known_cells), as_grid(params.ground)
        legal = [name for name, (dx, dy) in MOVES.items() if ground[y + dy, x + dx]]
        return "\n".join([
            "Map, north up, east to the right (R rover, . ground, # rock, ? unknown):",
            *map_lines(is_known, ground, {"R": (x, y)}),
            f"Rover at column {x} from the west, row {y} from the south. "
            f"{covered / int(params.size):.1%} of the ground covered, the goal is "
            f"{GOAL[0] / GOAL[1]:.0%}. Open ways: {', '.join(legal)}.",
        ])  # fmt: skip

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say what is in the way."""
        return f"there is rock to the {list(MOVES)[int(action)]}"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the only end there is."""
        return f"at least {GOAL[0] / GOAL[1]:.0%} of the ground is covered"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the known map from above, north up, with the rover and its lidar."""
        is_known, ground = as_grid(state.known_cells), as_grid(params.ground)
        rover = (int(state.x), int(state.y), "royalblue")
        return draw_map(is_known, ground, [rover], self.picture_shape[0] // SIDE)


def frontier(known_ground: jax.Array, known_cells: jax.Array) -> jax.Array:
    """Return the known ground that has an unknown cell beside it.

    Yamauchi 1997, doi:10.1109/CIRA.1997.613851.
    """
    return known_ground & grid_bits.grow(~known_cells)


def block_counts(cells: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Count the cells of a set in each block of the map about (x, y).

    The counts are int32 ``(BLOCKS, BLOCKS)``, with the lowest row first.
    """
    padding = jnp.zeros(SIDE, cells.dtype)
    rows = lax.dynamic_slice(jnp.concatenate([padding, cells, padding]), (y,), (2 * SIDE,))
    # Columns from x - SIDE to x + SIDE - 1: the left half of them ends at the rover, the right half
    # begins there.
    x = x.astype(jnp.uint32)
    left_half = jnp.where(x > 0, rows << (SIDE - jnp.maximum(x, 1)), 0)
    halves = jnp.stack([left_half, rows >> x], 1)
    in_block = (np.uint64(2**BLOCK - 1) << np.arange(0, SIDE, BLOCK, dtype=np.uint64)).astype(
        np.uint32
    )
    counts = lax.population_count(halves[:, :, None] & in_block).astype(jnp.int32)
    return counts.reshape(BLOCKS, BLOCK, BLOCKS).sum(1)


def neighbours_in(cells: jax.Array, state: State) -> jax.Array:
    """Mark which of the four cells beside the rover are in the set.

    The marks are bool ``(4,)``, in the order of the actions.
    """
    padded = jnp.concatenate([jnp.zeros(1, cells.dtype), cells, jnp.zeros(1, cells.dtype)])
    rows = lax.dynamic_slice(padded, (state.y,), (3,))
    x = state.x.astype(jnp.uint32)
    own_row = rows[1]
    return jnp.stack([own_row >> x >> 1, rows[2] >> x, own_row << 1 >> x, rows[0] >> x]) & 1 == 1


GAIN_RADIUS = 3
"""Cells in each direction within which the player counts unknown cells: 49 at most."""
MAX_DETOUR = 48
"""Steps that the most promising frontier may be farther away than others."""


@privileged_player
class FrontierUtility(NamedTuple):
    """Frontier-based exploration (Yamauchi 1997): towards the frontier that is worth its way.

    A frontier cell with n unknown cells within 3 cells of it may be ``weight * n ** power`` steps
    farther away than one with none: information gain minus the cost of the way, as in Burgard,
    Moors, Stachniss & Schneider 2005, doi:10.1109/TRO.2004.839232. The two numbers are the best of
    a random search on training terrains. The nearest frontier alone needs 40 steps more on average.

    It covers every terrain. On a frontier cell the lidar sees the cells beside it, and the cell is
    frontier no more; on the way there the least difference of way and gain falls by one a step, as
    long as nothing new is seen. Ways lead over known ground only. When the known ground about the
    rover has no frontier left, everything beside it is known rock, so it is all the ground there
    is.

    The player uses the cells that the rover has seen, and nothing else of the terrain.
    """

    weight: Float = 0.126
    power: Float = 1.45

    @classmethod
    def for_task(cls, task: MarsCoverage) -> FrontierUtility:
        """Make the player; it is the same for every terrain."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first step of the best way.

        A wave spreads over known ground until it reaches the rover. Frontiers join it one after
        another, those with the largest gain first.
        """
        state: State = view.state
        known_ground = state.known_cells & view.params.ground
        edge = frontier(known_ground, state.known_cells)
        gain = terrain.box_counts(~state.known_cells, GAIN_RADIUS)

        def is_coming(wave: tuple[jax.Array, jax.Array]) -> jax.Array:
            cells, time = wave
            return (time < SIDE * SIDE) & ~neighbours_in(cells, state).any()

        def spread(wave: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            cells, time = wave
            farther = jnp.maximum(MAX_DETOUR - time, 0).astype(jnp.float32)
            min_gain = jnp.ceil((farther / self.weight) ** (1 / self.power)).astype(jnp.int32)
            joining = edge & terrain.select_at_least(gain, min_gain)
            return grid_bits.grow(cells) & known_ground | joining, time + 1

        cells, _ = lax.while_loop(is_coming, spread, (jnp.zeros_like(edge), jnp.int32(0)))
        return jnp.argmax(neighbours_in(cells, state)).astype(jnp.int32), memory

"""Drive a rover over a map of boulders until its lidar has seen it: the default of MarsExplorer.

Source: Koutras, Kapoutsis, Amanatiadis & Kosmatopoulos 2021, MarsExplorer,
doi:10.3390/electronics10222751, arXiv:2107.09996. Numbers and rules are those of ``ExplorerConf``
with ``DEFAULT_CONFIG`` in the authors' repository (github.com/dimikout3/MarsExplorer, commit
6533a9a), which no longer runs with today's gym and NumPy.

=======================  ===========================================================================
map                      21 x 21 cells; boulders of 2 x 2 cells at random corners, 1 to 18 on both
                         axes. They may overlap. The outer ring is free
start                    cell (0, 0)
action                   ``Discrete(4)``: one cell to +x (0), -x (1), +y (2), -y (3), here east,
                         west, north, south
lidar                    32 rays of 6 cells, see ``ray_lidar.py``; they leave gaps. It looks at the
                         start and after every step
observation (21, 21, 1)  ``[x, y]``: 0 not seen, 0.3 free, 1 rock, 0.6 the rover
reward                   cells newly seen, rock too, minus 1; plus 400 on reaching the goal; minus
                         400 for a crash
terminated               the goal: more than 95 % of the 441 cells, 419 of them, were seen. Or a
                         crash: a move into rock or off the map, where the rover stays in its place
success                  the goal
context                  the boulders. Training maps have an even number of rock cells with x = 0,
                         4, 8, ... and y even, test maps an odd number, so none is in both; either
                         has half of the random maps
difficulty               number of boulders; 12 in MarsExplorer
=======================  ===========================================================================

Nothing is masked: to keep clear of rock is a part of the task. The lidar always shows the four
cells beside the rover.

``bugs=True`` reproduces MarsExplorer, whose behaviour differs in these points:

* Rays run on past the corners of rock, and along the edge of the map behind rock
  (``ray_lidar.py``).
* The rover is 0.6 in the first observation and 0.5 in all others.
* The 400 for the goal replace the reward of the step, so cells that the last step shows are not
  paid; likewise -400.
* A step costs 0.2. So 400 steps to and fro cost 80 where a crash costs 400, and standing in one
  place scores far better than exploring badly. A step costs 1 here, so that a whole episode without
  the goal costs as much as a crash.

One point is not reproduced: an episode there ends after 401 steps, as ``done``; here it is
truncated after 400. And seeds do not give the maps that NumPy's global generator gives there.
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
from rlbench_suite.numerics.reductions import union

from ..shared import grid_bits
from ..shared.grid_bits import SIDE
from . import mars_coverage
from .compass import MOVES, CompassMoves
from .known_map import as_grid, draw_map, map_lines
from .ray_lidar import INSIDE, MAP, visible_cells

WAYS = {name: MOVES[name] for name in ("east", "west", "north", "south")}
"""Steps in x and y, in the order of the actions."""
CORNERS = 18
"""Places of a boulder's lower left cell on an axis, from 1 on."""
GOAL = (19, 20)
"""Part of all cells that must be exceeded, as numerator and denominator."""
PRIZE = 400
"""Reward of the goal, and price of a crash."""
STEP_COST = 1.0
"""Reward that a step costs."""
PEER_STEP_COST = 0.2
"""Reward that a step costs in MarsExplorer."""
FREE, ROCK, ROVER, PEER_ROVER = 0.3, 1.0, 0.6, 0.5
"""Numbers in an observation; the last one in MarsExplorer after the first step."""
FIRST_COUNTED = np.where(np.arange(SIDE) % 2 == 0, sum(1 << x for x in range(0, MAP, 4)), 0).astype(
    np.uint32
)
"""Cells whose number of rock decides between training and test.

A boulder holds one of them at half of its places.
"""


class Params(NamedTuple):
    """The context."""

    ground: jax.Array
    """uint32 ``(32,)``, see :mod:`rlbench_suite.envs.shared.grid_bits`: free cells of the map."""


class State(NamedTuple):
    """Place of the rover, and the cells it has seen."""

    x: jax.Array
    """int32."""
    y: jax.Array
    """int32."""
    known_cells: jax.Array
    """uint32 ``(32,)``: cells seen, free and rock."""
    crashed: jax.Array
    """bool: the last move led into rock or off the map."""
    moved: jax.Array
    """bool: a step has passed."""


class MarsExplorer(CompassMoves, Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "coverage": "part of the map that was seen, in [0, 1]",
        "crashed": "whether the rover drove into rock or off the map",
    }
    picture_shape = (336, 336, 3)
    moves = WAYS

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or difficulty not in range(1, 41):
            raise ValueError(
                f"The difficulty of {card.id} is a number of boulders, 1 to 40, or one of "
                f"{', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.boulders = int(difficulty)
        self.bugs = card.settings["bugs"] == "True"
        self.observation_space = self.box(0, 1, (MAP, MAP, 1))
        self.action_space = spaces.Discrete(len(WAYS))
        self.reward_space = self.box(-PRIZE - STEP_COST, PRIZE + MAP**2)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample maps until one belongs to the split."""

        def sample_rock(attempt: jax.Array) -> jax.Array:
            return boulders(self.bits(jax.random.fold_in(key, attempt), 2 * self.boulders))

        def other_split(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
            _, rock = carry
            return grid_bits.count(rock & FIRST_COUNTED) % 2 != split

        def sample_again(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            return carry[0] + 1, sample_rock(carry[0] + 1)

        _, rock = lax.while_loop(
            other_split, sample_again, (jnp.int32(0), sample_rock(jnp.int32(0)))
        )
        return Params(~rock & INSIDE)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start in the corner, after a first look around."""
        corner = jnp.int32(0)
        known_cells = visible_cells(params.ground, corner, corner, bugs=self.bugs)
        return State(corner, corner, known_cells, jnp.bool_(False), jnp.bool_(False))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move, unless something is in the way, then look."""
        dx, dy = jnp.asarray(np.array(list(WAYS.values()), np.int32))[action]
        x, y = state.x + dx, state.y + dy
        inside = (x >= 0) & (x < MAP) & (y >= 0) & (y < MAP)
        row = params.ground[jnp.clip(y, 0, MAP - 1)]
        free = inside & (row >> jnp.clip(x, 0, MAP - 1).astype(jnp.uint32) & 1 == 1)
        x, y = jnp.where(free, x, state.x), jnp.where(free, y, state.y)
        known_cells = state.known_cells | visible_cells(params.ground, x, y, bugs=self.bugs)
        return State(x, y, known_cells, ~free, jnp.bool_(True))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(21, 21, 1)``; see the table."""
        columns = np.arange(MAP, dtype=np.uint32)
        is_known, free = (
            cells[:MAP] >> columns[:, None] & 1 == 1 for cells in (state.known_cells, params.ground)
        )
        cells_in_view = jnp.where(
            is_known,
            jnp.where(free, self.dtype.type(FREE), self.dtype.type(ROCK)),
            self.dtype.type(0),
        )
        is_rover = (columns[:, None] == state.x) & (columns == state.y)
        rover = jnp.where(
            state.moved & self.bugs, self.dtype.type(PEER_ROVER), self.dtype.type(ROVER)
        )
        return jnp.where(is_rover, rover, cells_in_view)[..., None]

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the map."""
        rover = (
            f"{ROVER} in the first step, {PEER_ROVER} in all others" if self.bugs else f"{ROVER}"
        )
        meaning = f"[x, y]: 0 not seen, {FREE} free, {ROCK:g} rock; the rover: {rover}"
        return (Component("map", meaning, shape=(MAP, MAP, 1)),)

    def action_components(self) -> tuple[Component, ...]:
        """List the four moves."""
        return singles({direction: f"drive one cell to the {direction}" for direction in WAYS})

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the newly seen cells, the cost of a step, the prize and the price of a crash."""
        previous_count, next_count = (
            grid_bits.count(state.known_cells),
            grid_bits.count(next_state.known_cells),
        )
        prize = (
            PRIZE * (_is_covered(next_count) & ~_is_covered(previous_count))
            - PRIZE * next_state.crashed
        )
        new_cells = (next_count - previous_count).astype(self.dtype)
        if self.bugs:
            return jnp.where(
                prize == 0, new_cells - self.dtype.type(PEER_STEP_COST), prize.astype(self.dtype)
            )
        return new_cells - self.dtype.type(STEP_COST) + prize.astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the goal is reached or the rover has crashed."""
        return _is_covered(grid_bits.count(state.known_cells)) | state.crashed

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, the coverage, and whether the rover has crashed."""
        count = grid_bits.count(state.known_cells)
        coverage = count.astype(self.dtype) / self.dtype.type(MAP**2)
        return {"success": _is_covered(count), "coverage": coverage, "crashed": state.crashed}

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Draw the known part of the map in letters."""
        x, y = int(state.x), int(state.y)
        is_known, ground = as_grid(state.known_cells, MAP), as_grid(params.ground, MAP)
        return "\n".join([
            "Map, north up, east to the right (R rover, . free, # rock, ? not seen):",
            *map_lines(is_known, ground, {"R": (x, y)}),
            f"Rover at column {x} from the west, row {y} from the south. {is_known.sum()} of "
            f"{MAP**2} cells seen, the goal is {goal_cells()}. A move into rock or off the map "
            "ends the episode at a loss.",
        ])  # fmt: skip

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the goal or the crash."""
        if info["success"]:
            return f"{goal_cells()} cells of the map are seen"
        return "the rover drove into rock or off the map"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the seen part of the map from above, north up, with the rover and its lidar."""
        is_known, ground = as_grid(state.known_cells, MAP), as_grid(params.ground, MAP)
        rover = (int(state.x), int(state.y), "royalblue")
        return draw_map(is_known, ground, [rover], self.picture_shape[0] // MAP)


def boulders(bits: jax.Array) -> jax.Array:
    """Place boulders of 2 x 2 cells, and return the rock, uint32 ``(32,)``.

    Each boulder takes two words of random bits.
    """
    column, row = 1 + ((bits >> 16) * CORNERS >> 16).reshape(2, -1)
    above = np.arange(SIDE, dtype=np.uint32) - row[:, None]
    return union(jnp.where(above <= 1, jnp.uint32(3) << column[:, None], jnp.uint32(0)))


def goal_cells() -> int:
    """Return the least number of cells that reaches the goal."""
    return MAP**2 * GOAL[0] // GOAL[1] + 1


def _is_covered(count: jax.Array) -> jax.Array:
    return count >= goal_cells()


@privileged_player
class MapFrontier(NamedTuple):
    """Frontier-based exploration as in ``MarsCoverage``, with weights for this map.

    It drives towards the frontier that is worth its way.

    Frontiers by cost and by utility are MarsExplorer's own baselines;
    :class:`.mars_coverage.FrontierUtility` weighs both, here with the best of six pairs of numbers
    on 300 training maps. The cells outside the map count as seen. The rover drives over free cells
    that it knows, so it never crashes.

    The player uses the cells that the rover has seen, and nothing else of the map.
    """

    weight: Float = 0.25
    power: Float = 1.2

    @classmethod
    def for_task(cls, task: MarsExplorer) -> MapFrontier:
        """Make the player; it is the same for every map."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first step of the best way."""
        state = view.state
        coverage_state = mars_coverage.State(state.x, state.y, state.known_cells | ~INSIDE)
        move, _ = mars_coverage.FrontierUtility(self.weight, self.power).act(
            (), view._replace(state=coverage_state), key
        )
        return jnp.asarray([list(WAYS).index(name) for name in MOVES], jnp.int32)[move], memory

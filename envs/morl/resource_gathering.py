"""Resource Gathering: bring gold and a gem home past enemies that may kill.

A grid of 5 x 5 cells. The gatherer starts at home, in the bottom row. Gold and a gem are taken by
entering their cells, and count when they are brought home. Whoever enters the cell of an enemy, or
stays on it, is killed with probability 0.1 and loses everything. Home ends an episode at once, with
or without loot; a bump against the wall below home is a return home, too.

Barrett & Narayanan 2008 (doi:10.1145/1390156.1390162) pose the problem. The rules are those of
``resource-gathering-v0`` of MO-Gymnasium (github.com/Farama-Foundation/MO-Gymnasium, version
1.3.2). The setting ``map`` chooses:

* ``sampled``: each episode has a map, weights of the three objectives and a number of steps until
  dusk of its own, and shows them all. One policy must serve all of them. Dusk makes it costly to go
  round the enemies, without which no risk would be worth taking.
* ``published``: MO-Gymnasium's one map, with plain rewards and no dusk.

=============  ====================================================================================
observation    ``sampled``: ``Box(0, 1, (131,))``: five grids of 5 x 5 cells, row by row from the
               top, 1 in the cell of the gatherer, of home, of gold and gem that still lie there,
               and of each enemy; weights of death, gold and gem; whether gold and gem are carried;
               steps until dusk / 21.
               ``published``: ``Box(0, 1, (4,))``: row / 4 (0 is the top), column / 4, whether gold
               and gem are carried
action         0 up, 1 down, 2 left, 3 right: one cell; a move off the grid keeps the cell
reward         (death, gold, gem), each multiplied by its weight: -1 when killed; 1 for gold and 1
               for the gem when brought home. Weights are 1 on ``published``
termination    home again, killed, or dusk (``sampled``), which leaves the loot worthless
success        home with both gold and gem
context        ``sampled``: column of home; cells of gold, gem and 4 to 10 enemies, all different;
               weights, uniform in [0.1, 1), that of gold in other bands for test than for training;
               dusk after the steps of the shortest way home through both cells and 0 to 5 more.
               ``published``: none
=============  ====================================================================================

The front that MO-Gymnasium returns for its map is not whole, as its issue 104 suspected. It holds
six policies that people thought of, and it discounts the reward of step n by gamma**n, where its
other tasks have gamma**(n - 1). At gamma 0.9 the exact front of deterministic policies has nine
points, and its hypervolume over (-1, -1, -2) is 3.2101, not 3.0837. At gamma 1 it is the single
point (0, 1, 1): with time enough, no enemy need be met. :meth:`PublishedMap.pareto_front` computes
it for every gamma.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Flag, Float, FloatArray, Int, UInt32
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.statistics.pareto import non_dominated

from ..shared.alternating_bands import alternating_bands
from ..shared.named_actions import NamedActions

SIZE = 5
"""Rows and columns of the grid."""
CELLS = SIZE * SIZE
MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
DOWN = 1
DEATH = 0.1
"""Probability that an enemy kills in a step."""
ENEMIES = (4, 10)
"""Least and largest number of enemies of a sampled map."""
WEIGHTS = (0.1, 1.0)
"""Range of each weight."""
BANDS = 20
"""Bands of the weight of gold, in turn of training and of test episodes."""
MAX_SLACK = 5
"""Largest number of steps that are left for detours."""
LONGEST_TOUR = 16
"""Steps of the longest shortest way from home through two cells and back."""
MAX_DAYLIGHT = LONGEST_TOUR + MAX_SLACK
NO_DUSK = 1_000_000
"""Steps until dusk where there is none: more than any time limit."""
MAX_SWEEPS = 40
"""Sweeps of the plan of the reference where there is no dusk; the longest way has 18 steps."""

PUBLISHED_HOME, PUBLISHED_GOLD, PUBLISHED_GEM = (4, 2), (0, 2), (1, 4)
PUBLISHED_ENEMIES = ((0, 3), (1, 2))

CELL_PIXELS = 60
GRASS, HOME, GOLD, GEM, ENEMY, GATHERER = (
    (120, 160, 100), (150, 100, 60), (236, 196, 60), (90, 200, 240), (190, 40, 40), (250, 250, 250),
)  # fmt: skip


class Params(NamedTuple):
    """The map of an episode, its weights, and dusk. The cell in row r, column c is 5 r + c."""

    home: Int
    """int32 in [20, 24]"""
    gold: Int
    """int32 in [0, 24]"""
    gem: Int
    """int32 in [0, 24]"""
    enemies: UInt32
    """Bit i is set if cell i has an enemy."""
    death_weight: Float
    gold_weight: Float
    gem_weight: Float
    daylight: Int
    """Steps until dusk, int32"""


class State(NamedTuple):
    """Place and loot of the gatherer."""

    row: Int
    """int32 in [0, 4], downwards"""
    column: Int
    """int32 in [0, 4]"""
    gold: Flag
    """True if gold is carried, or was brought home."""
    gem: Flag
    """The same of the gem."""
    dead: Flag
    steps: Int
    """Steps so far, int32"""


class Scene(NamedTuple):
    """Entries of an observation."""

    row: Int
    column: Int
    gold: Flag
    """True if gold is carried."""
    gem: Flag
    home_cell: FloatArray
    """1 at home, else 0, ``(5, 5)``."""
    gold_cell: FloatArray
    """1 where gold lies, ``(5, 5)``."""
    gem_cell: FloatArray
    """1 where the gem lies, ``(5, 5)``."""
    enemy_cells: FloatArray
    """1 where an enemy is, ``(5, 5)``."""
    death_weight: Float
    gold_weight: Float
    gem_weight: Float
    steps_left: Int
    """Steps until dusk; :data:`MAX_SWEEPS` where there is none."""


class ResourceGathering(NamedActions, Task[Params, State]):
    """The task of this file's docstring, on sampled maps."""

    action_names = tuple(MOVES)
    measures: ClassVar[dict[str, str]] = {
        "death": "1 if an enemy has killed the gatherer, else 0",
        "gold": "1 if gold was brought home, else 0",
        "gem": "1 if the gem was brought home, else 0",
    }
    picture_shape = (SIZE * CELL_PIXELS, SIZE * CELL_PIXELS, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box(0.0, 1.0, (5 * CELLS + 6,))
        self.action_space = spaces.Discrete(len(MOVES))
        self.reward_space = self.box([-1.0, 0.0, 0.0], [0.0, 1.0, 1.0])

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a map, weights, and the time of dusk.

        Cells of a random order hold the things: the first one gold, the second one the gem, and the
        next ones enemies. Home comes before them all.
        """
        unit = self.uniform(key, CELLS + 6)
        order, numbers = unit[:CELLS], unit[CELLS:]
        home = CELLS - SIZE + jnp.floor(numbers[0] * SIZE).astype(jnp.int32)
        cells = np.arange(CELLS, dtype=np.int32)
        order = jnp.where(cells == home, -1, order)
        before = (order[None] < order[:, None]) | (
            (order[None] == order[:, None]) & (cells[None] < cells[:, None])
        )
        rank = before.sum(1, dtype=jnp.int32)
        gold = jnp.argmax(rank == 1).astype(jnp.int32)
        gem = jnp.argmax(rank == 2).astype(jnp.int32)
        min_enemies, max_enemies = ENEMIES
        count = min_enemies + jnp.floor(numbers[1] * (max_enemies - min_enemies + 1)).astype(
            jnp.int32
        )
        is_enemy = (rank >= 3) & (rank < 3 + count)
        enemies = (is_enemy.astype(jnp.uint32) << cells.astype(np.uint32)).sum(dtype=jnp.uint32)
        low, high = WEIGHTS
        slack = jnp.floor(numbers[5] * (MAX_SLACK + 1)).astype(jnp.int32)
        return Params(
            home,
            gold,
            gem,
            enemies,
            low + (high - low) * numbers[2],
            alternating_bands(numbers[3], split, low, high, BANDS).astype(self.dtype),
            low + (high - low) * numbers[4],
            shortest_tour(home, gold, gem) + slack,
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at home, with nothing."""
        nothing = jnp.bool_(False)
        home = params.home
        return State(home // SIZE, home % SIZE, nothing, nothing, nothing, jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move one cell, take what lies there, and meet the enemy who is there."""
        return self.move(state, action, self.uniform(key, 1)[0], params)

    def move(self, state: State, action: jax.Array, draw: jax.Array, params: Params) -> State:
        """Return the next state; an enemy kills if ``draw`` in [0, 1) is below 0.1."""
        down, right = jnp.asarray(tuple(MOVES.values()), jnp.int32)[action]
        row = jnp.clip(state.row + down, 0, SIZE - 1)
        column = jnp.clip(state.column + right, 0, SIZE - 1)
        cell = SIZE * row + column
        meets_enemy = (params.enemies >> cell.astype(jnp.uint32)) & 1 == 1
        return State(
            row,
            column,
            state.gold | (cell == params.gold),
            state.gem | (cell == params.gem),
            meets_enemy & (draw < DEATH),
            state.steps + 1,
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return five grids, weights, loot and steps until dusk, ``(131,)``."""
        cells = np.arange(CELLS, dtype=np.int32)
        grids = (
            cells == SIZE * state.row + state.column,
            cells == params.home,
            (cells == params.gold) & ~state.gold,
            (cells == params.gem) & ~state.gem,
            (params.enemies >> cells.astype(np.uint32)) & 1,
        )
        scalars = self.stack(
            params.death_weight,
            params.gold_weight,
            params.gem_weight,
            state.gold,
            state.gem,
            (params.daylight - state.steps) * (1 / MAX_DAYLIGHT),
        )
        return jnp.concatenate([*(grid.astype(self.dtype) for grid in grids), scalars])

    def read_observation(self, observation: jax.Array) -> Scene:
        """Return what an observation shows."""
        grids = observation[: 5 * CELLS].reshape(5, SIZE, SIZE)
        gatherer, home_cell, gold_cell, gem_cell, enemy_cells = grids
        death_weight, gold_weight, gem_weight, gold, gem, daylight = observation[5 * CELLS :]
        cell = jnp.argmax(gatherer.reshape(CELLS)).astype(jnp.int32)
        return Scene(
            cell // SIZE,
            cell % SIZE,
            gold > 0.5,
            gem > 0.5,
            home_cell,
            gold_cell,
            gem_cell,
            enemy_cells,
            death_weight,
            gold_weight,
            gem_weight,
            jnp.round(daylight * MAX_DAYLIGHT).astype(jnp.int32),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the grids, the weights, the loot, and the steps until dusk."""
        grid = (SIZE, SIZE)
        return (
            Component("gatherer", "1 in the cell of the gatherer", "1", grid),
            Component("home", "1 in the cell of home", "1", grid),
            Component("gold_here", "1 where gold lies", "1", grid),
            Component("gem_here", "1 where the gem lies", "1", grid),
            Component("enemies", "1 in the cell of each enemy", "1", grid),
            Component("death_weight", "weight of death", "1"),
            Component("gold_weight", "weight of gold", "1"),
            Component("gem_weight", "weight of the gem", "1"),
            Component("gold", "1 if gold is carried", "1"),
            Component("gem", "1 if the gem is carried", "1"),
            Component("daylight", "steps until dusk", f"{MAX_DAYLIGHT} steps"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the four moves."""
        return singles({move: f"move one cell {move}" for move in MOVES})

    def noop_action(self) -> np.ndarray:
        """Return the move against the wall below home, which ends an episode with nothing."""
        return np.array(DOWN, self.action_space.dtype)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return (death, gold, gem), each multiplied by its weight, ``(3,)``."""
        at_home = self._is_home(next_state, params)
        return self.stack(
            jnp.where(next_state.dead, -params.death_weight, 0.0),
            jnp.where(at_home & next_state.gold, params.gold_weight, 0.0),
            jnp.where(at_home & next_state.gem, params.gem_weight, 0.0),
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the gatherer is home again or dead, or whether it is dusk."""
        is_dusk = state.steps >= params.daylight
        return self._is_home(state, params) | state.dead | is_dusk

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: home with both gold and gem."""
        at_home = self._is_home(state, params)
        return {
            "success": at_home & state.gold & state.gem,
            "death": state.dead.astype(self.dtype),
            "gold": (at_home & state.gold).astype(self.dtype),
            "gem": (at_home & state.gem).astype(self.dtype),
        }

    @staticmethod
    def _is_home(state: State, params: Params) -> jax.Array:
        """Return whether the gatherer has come home, not whether it starts there."""
        return (SIZE * state.row + state.column == params.home) & (state.steps > 0)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Draw the map in letters, and tell the loot, the weights and the steps until dusk."""
        marks = {
            "H": [int(params.home)],
            "G": [] if state.gold else [int(params.gold)],
            "D": [] if state.gem else [int(params.gem)],
            "E": [cell for cell in range(CELLS) if int(params.enemies) >> cell & 1],
            "S": [SIZE * int(state.row) + int(state.column)],
        }
        symbol = {cell: mark for mark, cells in marks.items() for cell in cells}
        lines = [
            "S is you, H home, G gold, D the gem, E an enemy, . an empty cell.",
            *(
                " ".join(symbol.get(SIZE * row + column, ".") for column in range(SIZE))
                for row in range(SIZE)
            ),
            f"You are in row {int(state.row)}, column {int(state.column)}, and carry "
            f"{_loot(state)}.",
            *self._terms(state, params),
        ]
        return "\n".join(lines)

    def _terms(self, state: State, params: Params) -> list[str]:
        """Return the lines that tell the weights and the steps until dusk."""
        return [
            (
                f"Death costs {float(params.death_weight):.4f}, gold at home is worth "
                f"{float(params.gold_weight):.4f}, the gem {float(params.gem_weight):.4f}."
            ),
            f"Steps until dusk: {int(params.daylight) - int(state.steps)}.",
        ]

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the cells as squares, what lies in them as smaller ones, the gatherer as a disc.

        Loot that is carried is drawn on the disc.
        """
        picture = np.full(self.picture_shape, GRASS, np.uint8)
        picture[::CELL_PIXELS] = picture[:, ::CELL_PIXELS] = 90
        y, x = np.mgrid[:CELL_PIXELS, :CELL_PIXELS] - (CELL_PIXELS - 1) / 2

        def paint(cell: int, shape: np.ndarray, colour: tuple[int, int, int]) -> None:
            top, left = cell // SIZE * CELL_PIXELS, cell % SIZE * CELL_PIXELS
            picture[top : top + CELL_PIXELS, left : left + CELL_PIXELS][shape] = colour

        paint(int(params.home), (np.abs(x) < 26) & (np.abs(y) < 26), HOME)
        for cell in range(CELLS):
            if int(params.enemies) >> cell & 1:
                paint(cell, (np.abs(x) < 20) & (np.abs(y) < 20), ENEMY)
        if not state.gold:
            paint(int(params.gold), np.abs(x) + np.abs(y) < 20, GOLD)
        if not state.gem:
            paint(int(params.gem), np.abs(x) + np.abs(y) < 20, GEM)
        cell = SIZE * int(state.row) + int(state.column)
        paint(cell, x**2 + y**2 < 15**2, (60, 60, 60) if state.dead else GATHERER)
        if state.gold:
            paint(cell, (np.abs(x + 5) < 4) & (np.abs(y) < 4), GOLD)
        if state.gem:
            paint(cell, (np.abs(x - 5) < 4) & (np.abs(y) < 4), GEM)
        return picture

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say what came home, or why nothing did."""
        if state.dead:
            return "an enemy killed the gatherer"
        if not self._is_home(state, params):
            return "dusk fell before the gatherer was home"
        return f"home with {_loot(state)}"


class PublishedMap(ResourceGathering):
    """The task on the one map of MO-Gymnasium, with plain rewards and no dusk."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box(0.0, 1.0, (4,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        weight = jnp.ones((), self.dtype)
        return Params(
            jnp.int32(_cell(PUBLISHED_HOME)),
            jnp.int32(_cell(PUBLISHED_GOLD)),
            jnp.int32(_cell(PUBLISHED_GEM)),
            jnp.uint32(sum(1 << _cell(enemy) for enemy in PUBLISHED_ENEMIES)),
            weight,
            weight,
            weight,
            jnp.int32(NO_DUSK),
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return row, column and loot, ``(4,)``."""
        scale = 1 / (SIZE - 1)
        return self.stack(state.row * scale, state.column * scale, state.gold, state.gem)

    def read_observation(self, observation: jax.Array) -> Scene:
        """Return what an observation shows, on the map that is known."""
        row, column = jnp.round(observation[:2] * (SIZE - 1)).astype(jnp.int32)
        death_weight, gold_weight, gem_weight = self.card.weights
        cells = ((PUBLISHED_HOME,), (PUBLISHED_GOLD,), (PUBLISHED_GEM,), PUBLISHED_ENEMIES)
        grids = np.zeros((len(cells), SIZE, SIZE), self.dtype)
        for grid, marked in zip(grids, cells, strict=True):
            grid[tuple(zip(*marked, strict=True))] = 1
        home, gold, gem, enemies = (jnp.asarray(grid) for grid in grids)
        return Scene(
            row,
            column,
            observation[2] > 0.5,
            observation[3] > 0.5,
            home,
            gold,
            gem,
            enemies,
            jnp.asarray(death_weight, self.dtype),
            jnp.asarray(gold_weight, self.dtype),
            jnp.asarray(gem_weight, self.dtype),
            jnp.int32(MAX_SWEEPS),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List row, column and loot."""
        return (
            Component("row", "row of the gatherer, 0 is the top", f"{SIZE - 1} rows"),
            Component("column", "column of the gatherer, from the left", f"{SIZE - 1} columns"),
            Component("gold", "1 if gold is carried", "1"),
            Component("gem", "1 if the gem is carried", "1"),
        )

    def _terms(self, state: State, params: Params) -> list[str]:
        return []

    def pareto_front(self, gamma: float = 1.0) -> np.ndarray:
        """Return the exact front of the discounted returns of deterministic policies.

        It is found by dynamic programming over sets of returns. A policy may look at the steps so
        far; it has 100 of them. Whatever happens, at most one of the cells that a move may lead to
        lets the episode go on, so that each return to go of a move is one of the returns to go of
        that cell, discounted. Sets therefore stay small.

        Args:
            gamma: discount factor in (0, 1].

        Returns:
            float64 ``(points, 3)``, (death, gold, gem), sorted by death.

        Raises:
            ValueError: gamma is out of range.
        """
        if not 0 < gamma <= 1:
            raise ValueError(f"A discount factor is in (0, 1], got {gamma!r}.")
        cells = [(row, column) for row in range(SIZE) for column in range(SIZE)]
        loots = [(gold, gem) for gold in (0, 1) for gem in (0, 1)]
        returns = {(loot, cell): np.zeros((1, 3)) for loot in loots for cell in cells}
        for _ in range(self.card.horizon):
            arrivals = {
                (loot, cell): _arrive(loot, cell, returns, gamma)
                for loot in loots
                for cell in cells
            }
            next_returns = {}
            for loot, cell in returns:
                moves = [arrivals[loot, _neighbour(cell, move)] for move in MOVES.values()]
                # Products in another order differ in their last bits.
                next_returns[loot, cell] = non_dominated(np.round(np.concatenate(moves), 13))
            converged = all(
                np.array_equal(next_returns[state], points) for state, points in returns.items()
            )
            returns = next_returns
            if converged:
                break
        return returns[(0, 0), PUBLISHED_HOME]


def _arrive(
    loot: tuple[int, int],
    cell: tuple[int, int],
    returns: dict[tuple[tuple[int, int], tuple[int, int]], np.ndarray],
    gamma: float,
) -> np.ndarray:
    """Return the returns of a step into a cell with this loot, ``(points, 3)``."""
    if cell == PUBLISHED_HOME:
        return np.array([[0.0, *loot]])
    gold, gem = loot
    loot = (int(gold or cell == PUBLISHED_GOLD), int(gem or cell == PUBLISHED_GEM))
    if cell in PUBLISHED_ENEMIES:
        return np.array([-DEATH, 0, 0]) + (1 - DEATH) * gamma * returns[loot, cell]
    return gamma * returns[loot, cell]


def _neighbour(cell: tuple[int, int], move: tuple[int, int]) -> tuple[int, int]:
    """Return the cell that a move leads to."""
    row, column = cell[0] + move[0], cell[1] + move[1]
    return (row, column) if 0 <= row < SIZE and 0 <= column < SIZE else cell


def _loot(state: State) -> str:
    """Return in words what is carried."""
    carried = {"gold": state.gold, "the gem": state.gem}
    return " and ".join(name for name, is_carried in carried.items() if is_carried) or "nothing"


def _cell(place: tuple[int, int]) -> int:
    """Return the number of a cell."""
    return SIZE * place[0] + place[1]


def shortest_tour(home: jax.Array, gold: jax.Array, gem: jax.Array) -> jax.Array:
    """Return the number of steps of the shortest way from home through both cells and back.

    Enemies may be on it, but not home, where an episode ends. Home lies in the bottom row, and is
    in the way only if both cells lie there, too, one on each side.
    """

    def distance(start: jax.Array, end: jax.Array) -> jax.Array:
        return jnp.abs(start // SIZE - end // SIZE) + jnp.abs(start % SIZE - end % SIZE)

    bottom = CELLS - SIZE
    apart = (gold >= bottom) & (gem >= bottom) & ((gold < home) == (home < gem))
    return distance(home, gold) + distance(gold, gem) + distance(gem, home) + 2 * apart


def make(
    card: TaskCard, *, difficulty: float | None = None, dtype: str = "float32"
) -> ResourceGathering:
    """Make the task of a card: on sampled maps or on the published one."""
    task_class = PublishedMap if card.settings["map"] == "published" else ResourceGathering
    return task_class(card, difficulty=difficulty, dtype=dtype)

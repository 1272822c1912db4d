"""Plan an informative path: measure where it tells the most about a random field.

The field on an 8 x 8 grid is a Gaussian process with a known kernel, so that its posterior
covariance P depends on where it was measured and not on what was measured. Each step enters a cell
and measures there, with noise of variance R:

    gain = 1/2 ln(1 + P_ii / R),   P <- P - P_:i P_i: / (P_ii + R)

By the chain rule, gains add up to the mutual information of field and measurements, 1/2 ln det(I +
K_AA / R), exactly. The update of rank one needs no factorisation.

======================  ============================================================================
action                  ``Discrete(4)``: one cell to the east (+x), north (+y), west, south. Ways
                        off the grid or beyond the budget are illegal (masked)
observation ``(264,)``  row by row from below, each from the left: posterior variance (by 2.25)
(64), prior variance
                        (by 2.25) (64), cost of entering / 3 (64), measurements made / 24 (64); gain
                        of each action, 0 if illegal (by 1.6 nats) (4); place x, y (by 7); budget
                        left (by 24); length scale (by 0.3)
reward                  the gain of the step, in nats
terminated              the budget pays for no further step
success                 at least 0.7 of the information that greedy selection of 24 cells without
                        travel gains
start                   a random cell, nothing measured yet, a budget of 24
context                 length scale of the kernel, 0.1..0.3 sides, train and test in alternating
                        bands; three hills of the field's standard deviation, 0.3..1.5; cost of
                        entering each cell, 1, 2 or 3
======================  ============================================================================

Mutual information with noise is monotone and submodular. So greedy *set* selection gains at least 1
- 1/e of the best set of as many measurements, which no path can beat. The bound is about sets: it
makes ``of_bound`` a proven share of the best path's information, from below. Greedy *paths* have no
such constant under a budget.

Sources: Krause, Singh & Guestrin 2008, JMLR 9 (mutual information and greedy selection of sensors);
Nemhauser, Wolsey & Fisher 1978, doi:10.1007/BF01588971 (1 - 1/e); Rasmussen & Williams 2006,
equations 2.26 and 4.17 (posterior, Matern 3/2); Cao, Wang, Vashisth, Fan & Sartoretti 2022
(CAtNIPP), arXiv:2205.13089 (the task with a budget of travel). Unlike there, paths lie on a grid
with costs, the field's variance differs from place to place, and the reward is information.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from .compass import MOVES, CompassMoves

SIDE = 8
CELLS = SIDE * SIDE
BUDGET = 24
NOISE = 0.1
"""R: variance of the noise of a measurement."""
MIN_DEVIATION = 0.3
"""Smallest prior standard deviation of the field."""
MAX_DEVIATION = 1.5
"""Largest prior standard deviation of the field."""
HILLS = 3
MAX_GAIN = 0.5 * math.log1p(MAX_DEVIATION**2 / NOISE)
"""Largest information of one measurement, nats."""
MIN_INFORMATION_SHARE = 0.7
"""Part of the greedy set's information that is a success."""
CELL_POSITIONS = np.stack(np.divmod(np.arange(CELLS), SIDE)[::-1], -1)
"""Column and row of each cell, int ``(64, 2)``."""
DISTANCES = np.linalg.norm(CELL_POSITIONS[:, None] - CELL_POSITIONS[None], axis=-1) / SIDE
"""Between cells, in sides of the grid."""


NEIGHBOURS = np.array(
    [
        [
            min(max(x + dx, 0), SIDE - 1) + SIDE * min(max(y + dy, 0), SIDE - 1)
            for dx, dy in MOVES.values()
        ]
        for x, y in CELL_POSITIONS
    ],
    np.int32,
)
"""Cells to the east, north, west and south of each, int32 ``(64, 4)``; at an edge the cell itself.
"""


class Params(NamedTuple):
    """The context."""

    length: jax.Array
    """Length scale of the kernel, in sides of the grid."""
    covariance: jax.Array
    """K, ``(64, 64)``: prior covariance of the field."""
    costs: jax.Array
    """int32 ``(64,)``: budget that entering a cell takes."""
    greedy: jax.Array
    """nats that greedy selection of 24 cells gains."""


class State(NamedTuple):
    """Place, budget and knowledge."""

    x: jax.Array
    """int32: column."""
    y: jax.Array
    """int32: row."""
    budget: jax.Array
    """int32: budget."""
    covariance: jax.Array
    """P, ``(64, 64)``: posterior covariance of the field."""
    measured: jax.Array
    """int32 ``(64,)``: measurements made in each cell."""
    gained: jax.Array
    """nats so far."""


def gain(variance: Any) -> Any:
    """Return the information in nats of a measurement where the field has this variance."""
    return 0.5 * jnp.log1p(jnp.maximum(variance, 0) * (1 / NOISE))


def measure(covariance: jax.Array, cell: jax.Array) -> jax.Array:
    """Return the posterior covariance after a measurement in a cell."""
    row = covariance[cell]
    return covariance - row[:, None] * (row / (row[cell] + NOISE))


def greedy_information(covariance: jax.Array, count: int) -> jax.Array:
    """Return the nats that ``count`` measurements gain, each where the variance is largest."""

    def step(_: int, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        posterior, gained = carry
        variances = jnp.diagonal(posterior)
        cell = jnp.argmax(variances)
        return measure(posterior, cell), gained + gain(variances[cell])

    return jax.lax.fori_loop(0, count, step, (covariance, jnp.zeros((), covariance.dtype)))[1]


class InformativePath(CompassMoves, Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "information": "gained about the field, nats",
        "of_bound": "the same by an upper bound on the best path's, greedy selection / (1 - 1/e)",
    }
    picture_shape = (320, 320, 3)
    verb = "go"

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box(0, 1, (4 * CELLS + len(MOVES) + 4,))
        self.action_space = spaces.Discrete(len(MOVES))
        self.reward_space = self.box(0, 1.01 * MAX_GAIN)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample kernel, hills of the standard deviation, and costs."""
        u = self.uniform(key, CELLS + 3 * HILLS + 1)
        length = alternating_bands(u[0], split, 0.1, 0.3, bands=10)
        hills = u[1 : 1 + 3 * HILLS].reshape(HILLS, 3)
        x, y = (jnp.asarray((CELL_POSITIONS[:, i] + 0.5) / SIDE, self.dtype) for i in (0, 1))
        height = jnp.zeros(CELLS, self.dtype)
        for i in range(HILLS):
            width = 0.1 + 0.15 * hills[i, 2]
            squared_distance = ((x - hills[i, 0]) ** 2 + (y - hills[i, 1]) ** 2) / (
                2 * width * width
            )
            height = jnp.maximum(height, jnp.exp(-squared_distance))
        deviation = MIN_DEVIATION + (MAX_DEVIATION - MIN_DEVIATION) * height
        z = jnp.asarray(math.sqrt(3) * DISTANCES, self.dtype) / length
        covariance = deviation[:, None] * deviation * ((1 + z) * jnp.exp(-z))
        rough = u[1 + 3 * HILLS :]
        costs = 1 + (rough > 0.6).astype(jnp.int32) + (rough > 0.85)
        return Params(length, covariance, costs, greedy_information(covariance, BUDGET))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start on a random cell."""
        u = self.uniform(key, 2)
        x, y = (jnp.minimum(jnp.floor(SIDE * v).astype(jnp.int32), SIDE - 1) for v in u)
        nothing = jnp.zeros((), self.dtype)
        return State(
            x, y, jnp.int32(BUDGET), params.covariance, jnp.zeros(CELLS, jnp.int32), nothing
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Enter a cell and measure there."""
        dx, dy = jnp.asarray(np.array(list(MOVES.values()), np.int32))[action]
        # The kernel discards the result of an illegal move, but the computation must not leave the
        # grid.
        x, y = jnp.clip(state.x + dx, 0, SIDE - 1), jnp.clip(state.y + dy, 0, SIDE - 1)
        cell = x + SIDE * y
        return State(
            x,
            y,
            state.budget - params.costs[cell],
            measure(state.covariance, cell),
            state.measured.at[cell].add(1),
            state.gained + gain(state.covariance[cell, cell]),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the gain of the measurement; nothing after an illegal action."""
        cell = next_state.x + SIDE * next_state.y
        return jnp.where(next_state.budget < state.budget, gain(state.covariance[cell, cell]), 0)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(264,)``; see the table."""
        variances, prior_variances = jnp.diagonal(state.covariance), jnp.diagonal(params.covariance)
        cells, legal = neighbour_cells(state), self.action_mask(state, params)
        position = (
            value.astype(self.dtype) * self.dtype.type(1 / (SIDE - 1))
            for value in (state.x, state.y)
        )
        entries = jnp.concatenate([
            variances / MAX_DEVIATION**2,
            prior_variances / MAX_DEVIATION**2,
            params.costs.astype(self.dtype) / 3,
            state.measured.astype(self.dtype) / BUDGET,
            jnp.where(legal, gain(variances[cells]), 0) / 1.6,
            self.stack(*position, state.budget.astype(self.dtype) / BUDGET, params.length / 0.3),
        ])  # fmt: skip
        return jnp.clip(entries, 0, 1)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        grid = (SIDE, SIDE)
        return (
            Component(
                "variance",
                "[row from below, column]: posterior variance of the field",
                f"{MAX_DEVIATION**2:g}",
                grid,
            ),
            Component(
                "prior",
                "[row from below, column]: variance before any measurement",
                f"{MAX_DEVIATION**2:g}",
                grid,
            ),
            Component(
                "costs", "[row from below, column]: budget that entering the cell takes", "3", grid
            ),
            Component(
                "measured",
                "[row from below, column]: measurements made in the cell",
                f"{BUDGET}",
                grid,
            ),
            Component(
                "gains",
                "information of a step to the east, north, west, south",
                "1.6 nats",
                (len(MOVES),),
            ),
            Component("x", "column of the agent from the west", f"{SIDE - 1} cells"),
            Component("y", "row of the agent from the south", f"{SIDE - 1} cells"),
            Component("left", "budget that is left", f"{BUDGET}"),
            Component("length", "length scale of the kernel, in sides of the grid", "0.3"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the four moves."""
        return singles({move: f"go one cell to the {move} and measure there" for move in MOVES})

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the budget pays for no step."""
        return ~self.action_mask(state, params).any()

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": state.gained >= MIN_INFORMATION_SHARE * params.greedy,
            "information": state.gained,
            "of_bound": (1 - math.exp(-1)) * state.gained / params.greedy,
        }

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark steps on the grid that the budget pays for, bool ``(4,)``."""
        x, y = state.x, state.y
        on_grid = jnp.stack([x < SIDE - 1, y < SIDE - 1, x > 0, y > 0])
        return on_grid & (params.costs[neighbour_cells(state)] <= state.budget)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Write the maps as numbers."""
        x, y = int(state.x), int(state.y)
        names = list(MOVES)
        legal = [names[i] for i in np.flatnonzero(np.asarray(self.action_mask(state, params)))]
        return "\n".join([
            f"A random field on {SIDE} x {SIDE} cells (Matern 3/2 kernel, length "
            f"{SIDE * float(params.length):.2f} "
            f"cells, noise of variance {NOISE:g}). A step measures the cell that it enters. Maps "
            "have north up and "
            "east to the right.",
            "Prior standard deviation of the field:",
            *_map_lines(np.sqrt(np.diagonal(params.covariance))),
            "Standard deviation that is left:",
            *_map_lines(np.sqrt(np.maximum(np.diagonal(state.covariance), 0))),
            "Budget that entering a cell takes:",
            *_map_lines(params.costs, "d"),
            "Measurements made:",
            *_map_lines(state.measured, "d"),
            f"You are at column {x} from the west, row {y} from the south (counted from 0), with "
            f"{int(state.budget)} of {BUDGET} budget left and {float(state.gained):.3f} nats "
            f"gained. Open ways: {', '.join(legal) or 'none'}.",
        ])  # fmt: skip

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say what is in the way."""
        (dx, dy) = list(MOVES.values())[int(action)]
        inside = 0 <= int(state.x) + dx < SIDE and 0 <= int(state.y) + dy < SIDE
        direction = list(MOVES)[int(action)]
        return (
            f"the budget does not pay for a step to the {direction}"
            if inside
            else f"the grid ends to the {direction}"
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the only end there is."""
        return "the budget pays for no further step"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the posterior standard deviation (bright), costs, measurements and the agent.

        White dots count the cost of a cell, green rings its measurements.
        """
        scale = self.picture_shape[0] // SIDE
        deviation = (
            np.sqrt(np.maximum(np.diagonal(state.covariance), 0)).reshape(SIDE, SIDE)[::-1]
            / MAX_DEVIATION
        )
        colours = np.stack([40 + 200 * deviation, 30 + 130 * deviation, 90 - 40 * deviation], -1)
        image = Image.fromarray(
            colours.clip(0, 255).astype(np.uint8).repeat(scale, 0).repeat(scale, 1)
        )
        canvas = ImageDraw.Draw(image)
        for cell, (x, y) in enumerate(CELL_POSITIONS):
            left_edge, top = scale * x, scale * (SIDE - 1 - y)
            for dot in range(int(params.costs[cell])):
                canvas.ellipse(
                    (left_edge + 4 + 6 * dot, top + 4, left_edge + 7 + 6 * dot, top + 7),
                    fill="white",
                )
            for ring in range(min(3, int(state.measured[cell]))):
                edge = 10 + 3 * ring
                canvas.ellipse(
                    (left_edge + edge, top + edge, left_edge + scale - edge, top + scale - edge),
                    outline="lightgreen",
                )
        x, y = scale * (int(state.x) + 0.5), scale * (SIDE - int(state.y) - 0.5)
        canvas.ellipse((x - 6, y - 6, x + 6, y + 6), fill="deepskyblue", outline="white")
        return np.asarray(image)


def neighbour_cells(state: State) -> jax.Array:
    """Return the cells to the east, north, west and south, int32 ``(4,)``.

    At an edge of the grid it is the agent's own cell.
    """
    return jnp.asarray(NEIGHBOURS)[state.x + SIDE * state.y]


def _map_lines(values: Any, form: str = ".2f") -> list[str]:
    """Write the numbers of all cells, the northern row first."""
    return [
        " ".join(f"{value:{form}}" for value in row)
        for row in np.reshape(np.asarray(values), (SIDE, SIDE))[::-1]
    ]


# -- reference player ------------------------------------------------------------------------------

WIDTH = 24
"""Paths that are kept for each amount of budget spent."""
MAX_COST = 3
"""Largest cost of entering a cell."""
GAIN_TOLERANCE = 1e-5
"""nats: paths to one cell that gain the same to this precision have measured the same cells."""


class Paths(NamedTuple):
    """Paths that have spent the same budget, each field ``(WIDTH, ...)``."""

    gained: jax.Array
    """nats, -1 where there is no path."""
    cell: jax.Array
    """int32: where the path ends."""
    first: jax.Array
    """int32: its first action, -1 if it has not begun."""
    covariance: jax.Array
    """``(WIDTH, 64, 64)``: posterior covariance that it leaves."""


@privileged_player
class BeamPlanner(NamedTuple):
    """Planner of the whole way by beam search, anew at each step.

    Of all paths that spend the same budget, it keeps the :data:`WIDTH` that gain most. Gains are
    exact, since each path carries the covariance that it leaves. The planner goes the first step of
    the path that gains most in all.
    """

    @classmethod
    def for_task(cls, task: InformativePath) -> BeamPlanner:
        """Make the player; it is the same for every field."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first step of the best path."""
        state, costs = view.state, view.params.costs
        return first_step(state.x + SIDE * state.y, state.covariance, costs, state.budget), memory


@jax.custom_batching.sequential_vmap
def first_step(
    cell: jax.Array, covariance: jax.Array, costs: jax.Array, budget: jax.Array
) -> jax.Array:
    """Return the first action of the best path from a cell.

    A batch is searched one by one: paths of one search fit into a processor's cache, those of a
    thousand do not.
    """
    no_cells = jnp.full((MAX_COST, WIDTH), -1, jnp.int32)
    no_paths = Paths(
        no_cells.astype(covariance.dtype),
        no_cells,
        no_cells,
        jnp.zeros((MAX_COST, WIDTH, CELLS, CELLS), covariance.dtype),
    )
    start = Paths(
        no_paths.gained.at[-1, 0].set(0),
        no_paths.cell.at[-1, 0].set(cell),
        no_paths.first,
        no_paths.covariance.at[-1, 0].set(covariance),
    )

    def spend(
        budget_used: jax.Array, carry: tuple[Paths, jax.Array, jax.Array]
    ) -> tuple[Paths, jax.Array, jax.Array]:
        recent, best_gain, action = carry
        extensions = extend_paths(recent, costs)
        recent = jax.tree.map(
            lambda many, newest: jnp.concatenate([many[1:], newest[None]]), recent, extensions
        )
        better = extensions.gained[0] > best_gain
        return (
            recent,
            jnp.where(better, extensions.gained[0], best_gain),
            jnp.where(better, extensions.first[0], action),
        )

    return jax.lax.fori_loop(
        jnp.int32(1), budget + 1, spend, (start, jnp.zeros((), covariance.dtype), jnp.int32(0))
    )[2]


def extend_paths(recent: Paths, costs: jax.Array) -> Paths:
    """Return the best paths that are one step longer than those of ``recent``, best first.

    ``recent`` holds the paths that have spent 3, 2 and 1 units less, in this order.
    """
    to = jnp.asarray(NEIGHBOURS)[recent.cell]
    cost = MAX_COST - np.arange(MAX_COST)[:, None, None]
    possible = (
        (recent.gained[..., None] >= 0) & (to != recent.cell[..., None]) & (costs[to] == cost)
    )
    variances = jnp.take_along_axis(jnp.diagonal(recent.covariance, axis1=-2, axis2=-1), to, -1)
    gained = jnp.where(possible, recent.gained[..., None] + gain(variances), -1).reshape(-1)
    order = jnp.argsort(-gained)
    gained, ends = gained[order], to.reshape(-1)[order]
    gains_alike = jnp.abs(gained - jnp.roll(gained, 1)) < GAIN_TOLERANCE
    is_repeated = gains_alike & (ends == jnp.roll(ends, 1))
    gained, best_ranks = jax.lax.top_k(
        jnp.where(is_repeated & (np.arange(len(order)) > 0), -1, gained), WIDTH
    )
    best_extensions = order[best_ranks]
    parent, move = best_extensions // len(MOVES), (best_extensions % len(MOVES)).astype(jnp.int32)
    first_moves = recent.first.reshape(-1)[parent]
    covariance = recent.covariance.reshape(-1, CELLS, CELLS)[parent]
    return Paths(
        gained,
        ends[best_ranks],
        jnp.where(first_moves < 0, move, first_moves),
        jax.vmap(measure)(covariance, ends[best_ranks]),
    )

"""The Vicsek model as a team task: self-propelled particles learn to fly in one direction.

``n`` particles move at constant speed in a square box with periodic sides. The equations are those
of Vicsek, Czirok, Ben-Jacob, Cohen & Shochet 1995 (doi:10.1103/PhysRevLett.75.1226), with the mean
heading of their eq. 2 replaced by a turn that each agent chooses:

    position(t + 1) = position(t) + speed * (cos heading(t), sin heading(t)) * dt  (eq. 1)
    heading(t + 1)  = heading(t) + MAX_TURN * action + noise          (eq. 2, action for mean)

with ``dt`` = 1 and noise uniform in [-eta/2, eta/2], independent for each agent and step. Two
agents are neighbours if they are no farther apart than the interaction radius, which is the unit of
length; an agent is its own neighbour, as in the paper. The family's own player turns to the mean
heading of the neighbours: with an unlimited turn it *is* the Vicsek model.

=============  ====================================================================================
observation    one row an agent, in its own frame (x ahead, y to the left), all in [-1, 1]:
               0, 1  cosine and sine of the neighbours' mean heading relative to its own
               2     order among the neighbours: length of their mean unit vector
               3     number of neighbours but itself, over n - 1
               4, 5  mean relative position of the neighbours, in interaction radii
action         one number an agent in [-1, 1]: the turn, as a fraction of MAX_TURN, positive to the
               left
reward         each agent: cosine of the angle between its heading and the flock's mean direction.
               The mean over agents *is* the Vicsek order parameter, |sum of unit vectors| / n: the
               team's return is the order summed over time, and each agent is paid its own share of
               it
termination    never
success        the agents fly as a flock: an order parameter of at least 0.75
context        density n / side**2 in [1, 4], speed in [0.03, 0.3], both per unit length and step
difficulty     eta, the width of the noise in radians
=============  ====================================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import Constant
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once

from ..shared.own_constants import OwnConstants

MAX_TURN = np.pi / 4
"""Largest turn a step, rad."""
DENSITY = (1.0, 4.0)
"""Agents per squared interaction radius.

Up to n / 4 the box is at least two radii wide, so that no agent meets another one twice.
"""
SPEED = (0.03, 0.3)
"""Interaction radii per step."""
CELLS = 8
"""Cells of the contexts along each axis, density and speed.

Every fourth cell of a row is for testing.
"""
FLOCK = 0.75
"""Order parameter from which the agents count as a flock.

Sixteen random headings reach it once in 10,000 times.
"""

NO_DIRECTION = 1e-6
"""Mean unit vectors shorter than this are rounding, not a direction."""


class Params(NamedTuple):
    """The context; all scalars."""

    side: jax.Array
    """Side of the box, in interaction radii."""
    speed: jax.Array
    """Interaction radii per step."""
    noise: jax.Array
    """Width eta of the heading noise, rad."""
    radius: jax.Array
    """Interaction radius: 1, the unit of length."""


class State(NamedTuple):
    """Positions and headings; one entry an agent."""

    x: jax.Array
    """``(n,)`` in [0, side)."""
    y: jax.Array
    """``(n,)`` in [0, side)."""
    heading: jax.Array
    """``(n,)`` rad in [-pi, pi], counter-clockwise from x."""


class Vicsek(Task[Params, State]):
    """The task; see the module's head for its equations."""

    measures = {"order": "Vicsek order parameter: length of the mean unit heading, in [0, 1]"}  # noqa: RUF012

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if not 0 <= (difficulty or 0) <= 2 * np.pi:
            raise ValueError(
                f"The difficulty of {card.id} is a noise width in [0, 2 pi] rad, got "
                f"{difficulty!r}."
            )
        n = card.agents
        self.own_constants = OwnConstants(card, self.constants())
        self.density = self.own_constants.range("density")
        self.speed = self.own_constants.range("speed")
        self.noise = self.own_constants.value("noise")
        self.max_turn = self.own_constants.value("max_turn")
        low = np.tile([-1.0, -1.0, 0.0, 0.0, -1.0, -1.0], (n, 1))
        self.observation_space = self.box(low, np.ones_like(low))
        self.action_space = self.box(-np.ones((n, 1)), np.ones((n, 1)))
        self.reward_space = self.box(-np.ones(n), np.ones(n))
        self._see = jax.jit(self.observation)  # for the text view

    def constants(self) -> tuple[Constant, ...]:
        """Return density, speed, noise and the largest turn.

        The interaction radius is the unit of length.
        """
        n, noise, turn = self.card.agents, float(self.difficulty or 0), float(MAX_TURN)
        return (
            Constant(
                "density", "", *DENSITY,
                f"agents a squared interaction radius; up to {n / 4:g}, so that the periodic "
                "box is two radii wide", maximum=n / 4, bands=CELLS,
            ),
            Constant("speed", "", *SPEED, "interaction radii a step", maximum=1.0, bands=CELLS),
            Constant(
                "noise", "rad", noise, noise, "width of the noise of headings", 2 * np.pi,
                may_vary=False, minimum=0.0
            ),
            Constant(
                "max_turn", "rad", turn, turn, "largest turn a step", float(np.pi), may_vary=False
            ),
        )  # fmt: skip

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a density and a speed from a cell of the split.

        Test cells are those with row + column = 3 mod 4.
        """
        u = self.uniform(key, 5)
        row = jnp.floor(u[0] * CELLS)
        residue = jnp.where(split == 0, jnp.floor(u[1] * 3), 3)
        if self.own_constants.is_fixed("density") or self.own_constants.is_fixed(
            "speed"
        ):  # then the other keeps train and test apart
            row = residue + 4 * jnp.floor(u[0] * (CELLS // 4))
            column = row
        else:
            column = (residue - row) % 4 + 4 * jnp.floor(u[2] * (CELLS // 4))
        # A thin gap between cells: rounding never moves a context into its neighbour.
        (sparse, dense), (slow, fast) = self.density, self.speed
        density = sparse + (dense - sparse) * (row + 0.999 * u[3]) / CELLS
        speed = slow + (fast - slow) * (column + 0.999 * u[4]) / CELLS
        side = jnp.sqrt(self.card.agents / density)
        return Params(side, speed, jnp.asarray(self.noise, self.dtype), jnp.asarray(1, self.dtype))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample uniform positions and headings."""
        u = self.uniform(key, 3 * self.card.agents).reshape(3, -1)
        return State(
            wrap(u[0] * params.side, params.side),
            wrap(u[1] * params.side, params.side),
            angle(u[2]),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Apply equations 1 and 2 of the module's head."""
        noise = params.noise * (self.uniform(key, self.card.agents) - 0.5)
        x = wrap(state.x + params.speed * jnp.cos(state.heading), params.side)
        y = wrap(state.y + params.speed * jnp.sin(state.heading), params.side)
        return State(x, y, wrap_angle(state.heading + self.max_turn * action[:, 0] + noise))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return each agent's observation of its neighbours, ``(n, 6)``."""
        # Axis 0 sees axis 1.
        dx = nearest_image(state.x - state.x[:, None], params.side)
        dy = nearest_image(state.y - state.y[:, None], params.side)
        is_neighbour = dy * dy <= (params.radius - dx) * (params.radius + dx)
        count = is_neighbour.sum(1).astype(self.dtype)

        def mean(values: jax.Array) -> jax.Array:
            return tree_sum(jnp.where(is_neighbour, values, 0)) / count

        # Computed for each pair of agents, cosines would cost more than all else.
        cosine, sine = computed_once(cos_and_sin)(state.heading)
        order, direction = computed_once(polar)(mean(cosine), mean(sine))
        # If neighbours cancel each other, they have no mean heading; the agent's own counts
        # instead.
        turn = jnp.where(order > NO_DIRECTION, direction - state.heading, 0)
        distance, direction = computed_once(polar)(
            mean(dx) / params.radius, mean(dy) / params.radius
        )
        bearing = direction - state.heading
        entries = (
            jnp.cos(turn),
            jnp.sin(turn),
            order,
            (count - 1) / (self.card.agents - 1),
            distance * jnp.cos(bearing),
            distance * jnp.sin(bearing),
        )
        return jnp.clip(jnp.stack(entries, 1), -1, 1)  # rounding alone can pass the bounds

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each agent; see the table."""
        return (
            Component("cos_heading", "cosine of the neighbours' mean heading, relative to its own"),
            Component("sin_heading", "sine of the neighbours' mean heading, relative to its own"),
            Component("order", "length of the mean unit vector of the neighbours' headings"),
            Component(
                "neighbours",
                "how many neighbours it has but itself",
                f"{self.card.agents - 1} agents",
            ),
            Component("ahead", "mean place of the neighbours ahead of it", "interaction radius"),
            Component("left", "mean place of the neighbours to its left", "interaction radius"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the entries of each agent."""
        unit = f"{self.max_turn:.4g} rad"
        return (Component("turn", "by how much the heading turns to the left in this step", unit),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return each agent's share of the order parameter, ``(n,)``, which is their mean."""
        order, direction = computed_once(mean_heading)(next_state.heading)
        share = jnp.cos(next_state.heading - direction)
        return jnp.where(order > NO_DIRECTION, jnp.clip(share, -1, 1), 0)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return false: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, whether the agents fly as a flock, and the ``order`` parameter."""
        order, _ = mean_heading(state.heading)
        return {"success": order >= FLOCK, "order": order}

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe each agent's observation, in degrees and interaction radii."""
        order = abs(np.exp(1j * np.asarray(state.heading)).mean())
        lines = [f"Order parameter {order:.2f}. Each agent sees in its own frame:"]
        for i, row in enumerate(np.asarray(self._see(state, None, params))):
            cos, sin, order, fraction, ahead, left = row.tolist()
            turn = np.degrees(np.arctan2(sin, cos))
            lines.append(
                f"agent_{i}: {round(fraction * (self.card.agents - 1))} neighbours, their mean "
                f"heading {abs(turn):.0f} degrees to the {'left' if turn >= 0 else 'right'}, order "
                f"{order:.2f}, centre {ahead:+.2f} ahead and {left:+.2f} to the left"
            )
        return "\n".join(lines)

    def how_to_act(self) -> str:
        """Tell a text player how to answer: one number an agent."""
        return (
            f"Answer with {self.card.agents} numbers in [-1, 1], agent_0 first: each agent's turn, "
            f"1 for {np.degrees(self.max_turn):.0f} degrees to the left, -1 for as much to the "
            "right."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the box from above, an arrow an agent, coloured by heading; x to the right, y up."""
        height, width, _ = self.picture_shape
        picture = np.full(self.picture_shape, 250, np.uint8)
        along = np.linspace(0, 1, 40)[:, None]
        scale = (width - 1) / float(params.side)
        for x, y, heading in zip(
            *(np.asarray(values, np.float64) for values in state), strict=True
        ):
            colour = 110 + 100 * np.cos(heading - np.array([0, 2, 4]) * np.pi / 3)
            head = np.array([x, y]) * scale
            for angle_from_tip, length in ((0.0, 18.0), (0.5, 9.0), (-0.5, 9.0)):
                back = heading + np.pi + angle_from_tip
                line = head + along * length * np.array([np.cos(back), np.sin(back)])
                for offset in ((0, 0), (1, 0), (0, 1)):
                    column, row = ((line + offset).round().astype(int) % (width, height)).T
                    picture[height - 1 - row, column] = colour
        return picture


# These functions avoid sums of two products: a compiler may fuse either product with the addition,
# so the last bit differs between programs. Polar forms and factored squares have no such sum.


def mean_heading(heading: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the order parameter, in [0, 1], and the mean direction of headings ``(n,)``.

    It is equation 3 of Vicsek et al. 1995, divided by v.
    """
    length, direction = polar(tree_sum(jnp.cos(heading)), tree_sum(jnp.sin(heading)))
    return jnp.minimum(length / heading.shape[0], 1), direction


def cos_and_sin(heading: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return cosines and sines of headings."""
    return jnp.cos(heading), jnp.sin(heading)


def polar(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return length and direction of vectors; the direction is 0 for the zero vector."""
    return jnp.hypot(x, y), jnp.arctan2(y, x)


def tree_sum(values: jax.Array) -> jax.Array:
    """Sum over the last axis, pairwise and in a fixed order.

    So every layout of a batch gives the same bits.
    """
    while (n := values.shape[-1]) > 1:
        half = n // 2
        values, odd_end = values[..., :half] + values[..., half : 2 * half], values[..., 2 * half :]
        values = jnp.concatenate([values, odd_end], -1)
    return values[..., 0]


def wrap(position: jax.Array, side: jax.Array) -> jax.Array:
    """Bring into [0, side), from at most one side away."""
    position = jnp.where(position < 0, position + side, position)
    return jnp.where(position >= side, position - side, position)


def wrap_angle(heading: jax.Array) -> jax.Array:
    """Bring into [-pi, pi], from at most one turn away."""
    heading = jnp.where(heading > np.pi, heading - 2 * np.pi, heading)
    return jnp.where(heading < -np.pi, heading + 2 * np.pi, heading)


def nearest_image(difference: jax.Array, side: jax.Array) -> jax.Array:
    """Return the shortest of the differences to a point and its periodic images."""
    difference = jnp.where(difference > side / 2, difference - side, difference)
    return jnp.where(difference < -side / 2, difference + side, difference)


def angle(fraction: jax.Array) -> jax.Array:
    """Convert a fraction of a turn to a heading in [-pi, pi)."""
    return 2 * np.pi * (fraction - 0.5)


class NeighbourAveraging(eqx.Module):
    """The Vicsek rule: turn to the mean heading of the neighbours, as far as turns are bounded."""

    max_turn: float = eqx.field(static=True, default=float(MAX_TURN))
    """rad a step"""

    @classmethod
    def for_task(cls, task: Vicsek) -> NeighbourAveraging:
        """Make the player of agents with this largest turn."""
        return cls(task.max_turn)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return turns of all agents, ``(n, 1)``, from their observations."""
        turn = jnp.arctan2(view.observation[:, 1:2], view.observation[:, 0:1])
        return jnp.clip(turn / self.max_turn, -1, 1), memory

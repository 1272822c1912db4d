"""Meet in one place, though nobody sees everybody.

Agents move in a plane and see others up to the radius of their sight. At first the graph of who
sees whom is a tree with links nearly as long as the sight: whoever walks away from a neighbour may
lose a part of the group for good. Source: Ando, Oasa, Suzuki & Yamashita 1999
(doi:10.1109/70.795787), whose algorithm the reference plays.

=============  ====================================================================================
observation    one row an agent, ``Box(-1, 1, (6, 15))``: for each other agent, in the order of
               numbers, 1 if it is seen and else 0, and its place relative to the agent, x and y, in
               parts of the sight of 1 m; (0, 0) if it is not seen
action         ``Box(-1, 1, (6, 2))``: each agent's step to the right and up, in parts of 0.1 m;
               longer steps are shortened to 0.1 m
reward         each agent: minus its distance from the mean place of all, m
termination    never: the time limit truncates after 4 s
success        at the end no two agents are 0.2 m or more apart
context        direction of the first link, in sectors that belong to train and test in turn. Each
               further agent starts at a link's length from an earlier one, in any direction
difficulty     length of the links at the start, in parts of the sight: 0.9, easy 0.6, hard 0.99
=============  ====================================================================================

A step takes 0.1 s. Agents are points that do not collide.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Flag, Float
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from .vicsek import tree_sum

PERIOD = 0.1
"""s"""
SIGHT = 1.0
"""m"""
MAX_STEP = 0.1
"""m"""
MEETING_DIAMETER = 0.2
"""m between any two agents, below which they have met."""
SECTORS = 16
TINY = 1e-9
"""m: shorter vectors have no direction."""
VIEW_RADIUS = 3.0
"""m from the middle of a picture to its sides."""


class Params(NamedTuple):
    """The context."""

    direction: Float
    """Direction from agent_0 to agent_1 at the start, rad."""


class State(NamedTuple):
    """The places of all agents."""

    x: Float
    """``(n,)`` m"""
    y: Float
    """``(n,)`` m"""


class Rendezvous(Task[Params, State]):
    """The task of this file's docstring."""

    period = PERIOD
    measures: ClassVar[dict[str, str]] = {"diameter": "largest distance between two agents, m"}

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 0 < difficulty < 1:
            raise ValueError(
                f"The difficulty of {card.id} is the length of links in parts of the sight, "
                f"between 0 and 1, or one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.link = float(difficulty) * SIGHT
        count = card.agents
        low = np.tile([0.0, -1.0, -1.0], (count, count - 1))
        self.observation_space = self.box(low, np.ones_like(low))
        self.action_space = self.box(-1.0, 1.0, (count, 2))
        self.reward_space = self.box(-np.inf, 0.0, (count,))
        self._see = jax.jit(self.observation)  # for the text view

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the direction of the first link, in a sector of the split."""
        return Params(alternating_bands(self.uniform(key, 1)[0], split, -np.pi, np.pi, SECTORS))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Place each agent at a link's length from an earlier one, in any direction."""
        count = self.card.agents
        u = self.uniform(key, 2 * count)
        zero = jnp.zeros((), self.dtype)
        xs = [zero]
        ys = [zero]
        for i in range(1, count):
            direction = params.direction if i == 1 else 2 * np.pi * u[2 * i]
            parent = jnp.minimum(u[2 * i + 1] * i, i - 1).astype(jnp.int32)
            xs.append(jnp.stack(xs)[parent] + self.link * jnp.cos(direction))
            ys.append(jnp.stack(ys)[parent] + self.link * jnp.sin(direction))
        return State(jnp.stack(xs), jnp.stack(ys))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move all agents by their steps."""
        length = MAX_STEP / jnp.maximum(jnp.hypot(action[:, 0], action[:, 1]), 1)
        return State(state.x + length * action[:, 0], state.y + length * action[:, 1])

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each agent sees, ``(6, 15)``; see the table."""
        count = self.card.agents
        dx = state.x - state.x[:, None]  # axis 0 sees axis 1
        dy = state.y - state.y[:, None]
        is_seen = jnp.hypot(dx, dy) <= SIGHT
        values = (
            is_seen.astype(self.dtype),
            jnp.where(is_seen, dx * (1 / SIGHT), 0),
            jnp.where(is_seen, dy * (1 / SIGHT), 0),
        )
        rows = jnp.stack(values, 2)
        teammates = np.array([[j for j in range(count) if j != i] for i in range(count)])
        observed = jnp.take_along_axis(rows, teammates[:, :, None], 1)
        return jnp.clip(observed, -1, 1).reshape(count, -1)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return minus the distance of each agent from the mean place, ``(6,)``."""
        x = next_state.x - tree_sum(next_state.x) / self.card.agents
        y = next_state.y - tree_sum(next_state.y) / self.card.agents
        return -jnp.hypot(x, y)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, whether the agents have met, and the ``diameter``."""
        diameter = jnp.hypot(state.x - state.x[:, None], state.y - state.y[:, None]).max()
        return {"success": diameter < MEETING_DIAMETER, "diameter": diameter}

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each agent; see the table."""
        return tuple(
            component
            for number in range(1, self.card.agents)
            for component in (
                Component(f"seen_{number}", f"1 if other agent {number} is seen, else 0"),
                Component(
                    f"place_{number}",
                    f"place of other agent {number}, to the right and up",
                    f"{SIGHT:g} m",
                    (2,),
                ),
            )
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the entries of an agent."""
        return (Component("step", "its step to the right and up", f"{MAX_STEP:g} m", (2,)),)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe whom each agent sees, in metres."""
        count = self.card.agents
        rows = np.asarray(self._see(state, None, params)).reshape(count, -1, 3)
        lines = ["Places are metres to the right and up. Each agent sees from where it is:"]
        for i, row in enumerate(rows):
            teammates = [j for j in range(count) if j != i]
            places_in_sight = [
                f"agent_{j} at ({SIGHT * x:+.2f}, {SIGHT * y:+.2f})"
                for j, (is_seen, x, y) in zip(teammates, row, strict=True)
                if is_seen
            ]
            lines.append(f"agent_{i}: {', '.join(places_in_sight) or 'nobody'}")
        return "\n".join(lines)

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with {2 * self.card.agents} numbers in [-1, 1], agent_0 first: each agent's "
            f"step to the right and up, 1 for {MAX_STEP:g} m."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the agents from above, and lines between those that see each other."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        scale = 0.5 * width / VIEW_RADIUS
        x, y = np.asarray(state.x, np.float64), np.asarray(state.y, np.float64)
        columns = 0.5 * width + scale * (x - x.mean())
        rows = 0.5 * height - scale * (y - y.mean())
        for i, j in combinations(range(self.card.agents), 2):
            if np.hypot(x[i] - x[j], y[i] - y[j]) <= SIGHT:
                canvas.line((columns[i], rows[i], columns[j], rows[j]), fill="gainsboro", width=2)
        for column, row in zip(columns, rows, strict=True):
            canvas.ellipse(
                (column - 6, row - 6, column + 6, row + 6), fill="royalblue", outline="black"
            )
        return np.asarray(image)


def enclosing_centre(x: Float, y: Float, is_member: Flag) -> tuple[Float, Float]:
    """Return the centre of the smallest circle around the members of one set of points.

    The circle has two of them as its diameter, or three on its edge; the smallest such circle that
    holds all is taken. The first point has to be a member and is the origin.

    Args:
        x: ``(n,)``.
        y: ``(n,)``.
        is_member: bool ``(n,)``.
    """
    count = x.shape[0]
    pairs = np.array(list(combinations(range(count), 2)))
    triples = np.array(list(combinations(range(count), 3))).reshape(-1, 3)
    i, j = pairs.T
    a, b, c = triples.T
    bx, by, cx, cy = x[b] - x[a], y[b] - y[a], x[c] - x[a], y[c] - y[a]
    twice_area = bx * cy - by * cx
    is_flat = jnp.abs(twice_area) < TINY
    share = 0.5 / jnp.where(is_flat, 1, twice_area)
    b2, c2 = bx * bx + by * by, cx * cx + cy * cy
    centre_x = jnp.concatenate([0.5 * (x[i] + x[j]), x[a] + share * (cy * b2 - by * c2)])
    centre_y = jnp.concatenate([0.5 * (y[i] + y[j]), y[a] + share * (bx * c2 - cx * b2)])
    exists = jnp.concatenate(
        [is_member[i] & is_member[j], is_member[a] & is_member[b] & is_member[c] & ~is_flat]
    )
    gaps = jnp.hypot(centre_x[:, None] - x, centre_y[:, None] - y)
    radius = jnp.where(is_member, gaps, 0).max(1)
    best = jnp.argmin(jnp.where(exists, radius, jnp.inf))
    is_alone = ~exists.any()
    return jnp.where(is_alone, 0, centre_x[best]), jnp.where(is_alone, 0, centre_y[best])


def connected_length(
    ahead_x: Float, ahead_y: Float, x: Float, y: Float, is_seen: Flag, sight: float
) -> Float:
    """Return how far an agent may go in a direction without losing those that it sees.

    It stays within half the sight of the middle between it and each of them, and so do they.

    Args:
        ahead_x: the direction, a unit vector.
        ahead_y: the direction, a unit vector.
        x: ``(n,)`` places of the others relative to it.
        y: ``(n,)``.
        is_seen: bool ``(n,)``.
        sight: radius of sight.
    """
    along = 0.5 * (x * ahead_x + y * ahead_y)
    across = 0.5 * (y * ahead_x - x * ahead_y)
    half = jnp.sqrt(jnp.maximum((0.5 * sight - across) * (0.5 * sight + across), 0))
    return jnp.where(is_seen, jnp.maximum(along + half, 0), jnp.inf).min()


class Circumcentre(eqx.Module):
    """Goes to the centre of the smallest circle around itself and all that it sees.

    It never leaves the sight of those it sees, as they all play the same rule (Ando et al. 1999).
    Each agent reads only what it sees.
    """

    sight: Float = SIGHT - 1e-4
    """m that nobody may get away; a little less than the sight, for rounding"""

    @classmethod
    def for_task(cls, task: Rendezvous) -> Circumcentre:
        """Return the player of all agents."""
        return cls()

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the steps of all agents, ``(6, 2)``."""
        count = view.observation.shape[0]
        rows = view.observation.reshape(count, count - 1, 3)
        return jax.vmap(self._step)(rows), memory

    def _step(self, row: jax.Array) -> jax.Array:
        is_seen = row[:, 0] > 0.5
        x = SIGHT * row[:, 1]
        y = SIGHT * row[:, 2]
        centre_x, centre_y = enclosing_centre(
            jnp.pad(x, (1, 0)), jnp.pad(y, (1, 0)), jnp.pad(is_seen, (1, 0), constant_values=True)
        )
        distance = jnp.hypot(centre_x, centre_y)
        ahead_x = centre_x / jnp.maximum(distance, TINY)
        ahead_y = centre_y / jnp.maximum(distance, TINY)
        free = connected_length(ahead_x, ahead_y, x, y, is_seen, self.sight)
        length = jnp.minimum(jnp.minimum(distance, free), MAX_STEP) * (1 / MAX_STEP)
        return jnp.stack([length * ahead_x, length * ahead_y])

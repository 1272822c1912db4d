"""Drives of the agents of a particle world, and the words and pictures of the worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.foundation.unknown_names import unknown

from .particle_physics import COASTING, PERIOD, PUSH, Body, Force, Kind, Point, distance

MOVES = {"stay": (0, 0), "left": (-1, 0), "right": (1, 0), "down": (0, -1), "up": (0, 1)}
"""Directions of the discrete actions, x to the right and y up, in the order of MPE2."""
VIEW_RADIUS = 1.5
"""m from the middle of a picture to its sides."""


def discrete_drive(move: jax.Array, kind: Kind, dtype: np.dtype[Any]) -> Force:
    """Return the force of a discrete move."""
    right = (move == 2).astype(dtype) - (move == 1).astype(dtype)
    up = (move == 4).astype(dtype) - (move == 3).astype(dtype)
    return kind.push * right, kind.push * up


def continuous_drive(action: jax.Array, kind: Kind) -> Force:
    """Return the force of two numbers in [-1, 1].

    MPE2 has five numbers in [0, 1] instead: the first does nothing, and of the others only two
    differences count.
    """
    return kind.push * action[0], kind.push * action[1]


def read_words(text: str, choices: Sequence[Sequence[str]]) -> list[int]:
    """Return the number of each word of a text among the choices for its place.

    Raises:
        ValueError: there are not as many words, or one is no choice.
    """
    words = text.replace(",", " ").lower().split()
    if len(words) != len(choices):
        allowed = "; ".join(", ".join(names) for names in choices)
        raise ValueError(f"expected {len(choices)} words, one each of {allowed}; got {text!r}")
    for word, names in zip(words, choices, strict=True):
        if word not in names:
            raise ValueError(unknown("word", word, list(names)))
    return [list(names).index(word) for word, names in zip(words, choices, strict=True)]


class MovingAgents(Task[Any, Any]):
    """A world whose agents all move: its actions, and the text view of them.

    The setting ``actions`` of the card says which actions there are.
    """

    push: ClassVar[float] = PUSH
    """Force of a move, N"""

    @property
    def is_discrete(self) -> bool:
        """Whether an agent chooses one of five moves, not a force."""
        return bool(self.card.settings["actions"] == "discrete")

    def moving_actions(self) -> spaces.Space[Any]:
        """Return the action space of all agents."""
        count = self.card.agents
        if self.is_discrete:
            return spaces.MultiDiscrete([len(MOVES)] * count)
        return self.box(-1.0, 1.0, (count, 2))

    def drives(self, action: jax.Array, kinds: Sequence[Kind]) -> list[Force]:
        """Return the force of each agent's drive."""
        if self.is_discrete:
            return [discrete_drive(action[i], kind, self.dtype) for i, kind in enumerate(kinds)]
        return [continuous_drive(action[i], kind) for i, kind in enumerate(kinds)]

    def action_components(self) -> tuple[Component, ...]:
        """Name the entries of an action."""
        if self.is_discrete:
            names = ", ".join(f"{number} {name}" for number, name in enumerate(MOVES))
            return (Component("move", f"[agent]: {names}", shape=(self.card.agents,)),)
        return (Component("push", "its push to the right and up", f"{self.push:g} N", (2,)),)

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        count = self.card.agents
        if self.is_discrete:
            return f"Answer with {count} words, agent_0 first, each one of: {', '.join(MOVES)}."
        return (
            f"Answer with {2 * count} numbers in [-1, 1], agent_0 first: each agent's push to the "
            "right and up."
        )

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Return the moves of these names, or the forces.

        Raises:
            ValueError: there are not as many as agents, or one is none.
        """
        if not self.is_discrete:
            return super().parse(text, state, params)
        numbers = read_words(text, [list(MOVES)] * self.card.agents)
        return np.array(numbers, np.int32)

    def spell(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Return the names of the moves, or the numbers of the forces."""
        if not self.is_discrete:
            return super().spell(action, state, params)
        names = list(MOVES)
        return " ".join(names[int(move)] for move in action)


def best_move(body: Body, goal: Point, lead: Float, newtons: float = PUSH) -> jax.Array:
    """Return the move after which the place ahead of a body is nearest to a goal, int32 ``()``."""
    gaps = []
    for right, up in MOVES.values():
        ahead = place_ahead(body, lead, PERIOD * newtons * right, PERIOD * newtons * up)
        gaps.append(distance(ahead, goal))
    return jnp.argmin(jnp.stack(gaps)).astype(jnp.int32)


def best_push(body: Body, goal: Point, lead: Float, newtons: float = PUSH) -> jax.Array:
    """Return the push to the right and up that ends nearest to a goal, ``(2,)`` in [-1, 1]."""
    ahead = place_ahead(body, lead)
    share = 1 / (lead * PERIOD * newtons)
    push = jnp.stack([(goal.x - ahead.x) * share, (goal.y - ahead.y) * share])
    return jnp.clip(push, -1, 1)


def place_ahead(
    body: Body, lead: Float, faster_right: float = 0.0, faster_up: float = 0.0
) -> Point:
    """Return the place ahead of a body, by ``lead`` seconds at the velocity that a step leaves it.

    The drive makes it faster by the velocity given, m/s. Places ahead tell a controller of masses
    when to brake.
    """
    return Point(
        body.x + PERIOD * body.vx + lead * (COASTING * body.vx + faster_right),
        body.y + PERIOD * body.vy + lead * (COASTING * body.vy + faster_up),
    )


class Disc(NamedTuple):
    """A disc in a picture."""

    x: Float
    """m"""
    y: Float
    """m"""
    radius: float
    """m"""
    colour: str


def draw_discs(discs: Sequence[Disc], picture_shape: tuple[int, int, int]) -> np.ndarray:
    """Draw discs from above, x to the right and y up; the square of the first places is framed."""
    height, width, _ = picture_shape
    image = Image.new("RGB", (width, height), "white")
    canvas = ImageDraw.Draw(image)
    scale = 0.5 * width / VIEW_RADIUS

    def pixel(x: float, y: float) -> tuple[float, float]:
        return 0.5 * width + scale * x, 0.5 * height - scale * y

    canvas.rectangle((*pixel(-1, 1), *pixel(1, -1)), outline="gainsboro")
    for disc in discs:
        x, y = pixel(float(disc.x), float(disc.y))
        radius = scale * disc.radius
        canvas.ellipse(
            (x - radius, y - radius, x + radius, y + radius), fill=disc.colour, outline="black"
        )
    return np.asarray(image)

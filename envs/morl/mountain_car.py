"""Mountain Car with three objectives: leave a valley soon, with few pushes back and few forth.

The motor of a car is too weak for the right slope of a valley, so that it must swing. Moore 1990
(doi:10.48456/tr-209) poses the problem. The rules are those of ``mo-mountaincar-v0`` of
MO-Gymnasium (github.com/Farama-Foundation/MO-Gymnasium, version 1.3.2), whose motion is that of
``MountainCar-v0`` of Gymnasium. The setting ``rewards`` chooses:

* ``weighted``: each episode has gravity and weights of its own, and shows them. One policy must
  serve all of them.
* ``pushes``, ``moves``, ``speed`` and ``moves-speed``: MO-Gymnasium's ids ``mo-mountaincar-v0``,
  ``mo-mountaincar-timemove-v0``, ``mo-mountaincar-timespeed-v0`` and ``mo-mountaincar-3d-v0``,
  with one gravity and plain rewards.

With position x and velocity v, an action a of -1, 0 or 1 and the gravity g, a step is::

    v <- v + 0.001 a - g cos(3 x)     at most 0.07 in size
    x <- x + v                        in [-1.2, 0.6]; the left end is a wall that stops the car

=============  ====================================================================================
observation    ``weighted``: ``Box((5,))``: position in [-1.2, 0.6]; velocity / 0.07; gravity /
               0.003; weights of reverse and forward.
               others: ``Box((2,))``: position; velocity / 0.07
action         0 push back, 1 coast, 2 push forward
reward         ``weighted``: (time, reverse, forward), the last two multiplied by their weights.
               ``pushes``: (time, reverse, forward). ``moves``: (time, move).
               ``speed``: (time, speed). ``moves-speed``: (time, move, speed).
               time: -1 for each step but that which arrives. reverse: -1 for each push back.
               forward: -1 for each push forth. move: -1 for each push. speed: 15 abs(v)
termination    arrived: position at least 0.5, velocity at least 0
success        the car arrived
context        start at rest, uniform in [-0.6, -0.4). ``weighted``: gravity, uniform in [0.002,
               0.003), in other bands for test than for training; weights, uniform in [0, 0.5).
               others: gravity 0.0025
=============  ====================================================================================

MO-Gymnasium declares that the reward of time is always -1, but the last step has 0. It is 0 here,
too, and lies in the reward space.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float, Int
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from ..shared.named_actions import NamedActions

FORCE = 0.001
"""Change of velocity by a push."""
MIN_POSITION, MAX_POSITION = -1.2, 0.6
GOAL = 0.5
"""Position at which the car has left the valley."""
MAX_SPEED = 0.07
SPEED_REWARD = 15.0
"""Reward of speed, for a velocity of 1."""
STARTS = (-0.6, -0.4)
"""Range of the position at the start."""
GRAVITIES = (0.002, 0.003)
"""Range of gravity."""
PUBLISHED_GRAVITY = 0.0025
MAX_WEIGHT = 0.5
"""Largest weight of a push. At all weights below it, arriving is worth its pushes."""
BANDS = 20
"""Bands of gravity, in turn of training and of test episodes."""
REVERSE, COAST, FORWARD = range(3)
PUSHES = {"reverse": "push back, to the left", "coast": "do not push", "forward": "push forth"}
MARGIN = 30
"""Pixels below and above the valley."""


class Params(NamedTuple):
    """The valley of an episode and the weights of pushes."""

    gravity: Float
    """Change of velocity by gravity where cos(3 x) is 1."""
    reverse_weight: Float
    forward_weight: Float


class State(NamedTuple):
    """The motion of the car."""

    position: Float
    velocity: Float
    """Change of position in a step."""


class MountainCar(NamedActions, Task[Params, State]):
    """The task of this file's docstring, with sampled gravity and weights."""

    action_names = tuple(PUSHES)
    measures: ClassVar[dict[str, str]] = {
        "position": "position of the car",
        "velocity": "change of position in a step",
    }
    picture_shape = (240, 360, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box(
            [MIN_POSITION, -1.0, 0.0, 0.0, 0.0], [MAX_POSITION, 1.0, 1.0, MAX_WEIGHT, MAX_WEIGHT]
        )
        self.action_space = spaces.Discrete(len(PUSHES))
        self.reward_space = self.box([-1.0, -MAX_WEIGHT, -MAX_WEIGHT], np.zeros(3))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample gravity and weights."""
        gravity, reverse, forward = self.uniform(key, 3)
        return Params(
            alternating_bands(gravity, split, *GRAVITIES, BANDS).astype(self.dtype),
            MAX_WEIGHT * reverse,
            MAX_WEIGHT * forward,
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at rest near the bottom."""
        low, high = STARTS
        unit = self.uniform(key, 1)[0]
        return State(low + (high - low) * unit, jnp.zeros((), self.dtype))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Push and roll for a step."""
        return self.move(state, action, params)

    def move(self, state: State, action: Int, params: Params) -> State:
        """Return the next state; fields may be arrays, and are then those of as many cars."""
        push = FORCE * (action - COAST).astype(self.dtype)
        velocity = state.velocity + push - params.gravity * jnp.cos(3 * state.position)
        velocity = jnp.clip(velocity, -MAX_SPEED, MAX_SPEED)
        position = jnp.clip(state.position + velocity, MIN_POSITION, MAX_POSITION)
        hits_wall = (position <= MIN_POSITION) & (velocity < 0)
        return State(position, jnp.where(hits_wall, 0, velocity).astype(self.dtype))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return motion, gravity and weights, ``(5,)``."""
        return self.stack(
            state.position,
            state.velocity * (1 / MAX_SPEED),
            params.gravity * (1 / GRAVITIES[1]),
            params.reverse_weight,
            params.forward_weight,
        )

    def read_observation(self, observation: jax.Array) -> tuple[State, Params]:
        """Return what an observation shows."""
        position, velocity, gravity, reverse_weight, forward_weight = observation
        params = Params(gravity * GRAVITIES[1], reverse_weight, forward_weight)
        return State(position, velocity * MAX_SPEED), params

    def observation_components(self) -> tuple[Component, ...]:
        """List motion, gravity and weights."""
        return (
            Component("position", "position; the goal is at 0.5"),
            Component("velocity", "change of position in a step", f"{MAX_SPEED:g}"),
            Component("gravity", "change of velocity by gravity", f"{GRAVITIES[1]:g}"),
            Component("reverse_weight", "weight of a push back; a step has weight 1"),
            Component("forward_weight", "weight of a push forth; a step has weight 1"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the three pushes."""
        return singles(PUSHES)

    def noop_action(self) -> np.ndarray:
        """Return the action that does not push."""
        return np.array(COAST, self.action_space.dtype)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return (time, reverse, forward), multiplied by their weights, ``(3,)``."""
        return self.stack(*self.objective_rewards(action, next_state, params))

    def objective_rewards(self, action: Int, next_state: State, params: Params) -> list[Float]:
        """Return the reward of each objective; arguments may be arrays, of as many cars."""
        zero = np.zeros((), self.dtype)
        return [
            jnp.where(self.has_arrived(next_state), zero, -1),
            jnp.where(action == REVERSE, -params.reverse_weight, zero),
            jnp.where(action == FORWARD, -params.forward_weight, zero),
        ]

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the car arrived."""
        return self.has_arrived(state)

    @staticmethod
    def has_arrived(state: State) -> jax.Array:
        """Return whether the car is at the goal, and does not roll back."""
        return (state.position >= GOAL) & (state.velocity >= 0)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: the car arrived."""
        return {
            "success": self.has_arrived(state),
            "position": state.position,
            "velocity": state.velocity,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def rules(self) -> str:
        """Tell the equations of motion and the goal."""
        return (
            f"{self.card.name}: {self.card.summary}\n"
            "In each step, velocity changes by 0.001 for a push forth, by -0.001 for a push back, "
            "and by -gravity cos(3 position). Then position changes by velocity. A wall stands at "
            f"{MIN_POSITION:g}. Come to position {GOAL:g} or farther, not rolling back. Each step "
            "costs 1."
        )

    def describe(self, state: State, params: Params) -> str:
        """Tell the motion, gravity and weights."""
        lines = [
            f"The car is at {float(state.position):+.4f} and moves by {float(state.velocity):+.5f} "
            "a step.",
            *self._terms(params),
        ]
        return "\n".join(lines)

    def _terms(self, params: Params) -> list[str]:
        """Return the line that tells gravity and weights."""
        return [
            f"Gravity is {float(params.gravity):.6f}. A push back costs "
            f"{float(params.reverse_weight):.4f}, a push forth {float(params.forward_weight):.4f}."
        ]

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the valley, the flag at the goal, and the car with its velocity as a red line."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)

        def place(position: float) -> tuple[float, float]:
            share = (position - MIN_POSITION) / (MAX_POSITION - MIN_POSITION)
            level = 0.5 + 0.5 * np.sin(3 * position)
            return share * width, height - MARGIN - (height - 3 * MARGIN) * level

        slope = [place(position) for position in np.linspace(MIN_POSITION, MAX_POSITION, 100)]
        canvas.polygon([*slope, (width, height), (0, height)], fill="darkseagreen")
        x, y = place(GOAL)
        canvas.line((x, y, x, y - MARGIN), fill="black", width=2)
        canvas.rectangle((x, y - MARGIN, x + 14, y - MARGIN + 9), fill="goldenrod")
        x, y = place(float(state.position))
        canvas.ellipse((x - 8, y - 16, x + 8, y), fill="steelblue")
        speed = 60 * float(state.velocity) / MAX_SPEED
        canvas.line((x, y - 22, x + speed, y - 22), fill="firebrick", width=4)
        return np.asarray(image)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say that the car arrived."""
        return "the car left the valley"


class PublishedValley(MountainCar):
    """The task with MO-Gymnasium's gravity and plain rewards."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box([MIN_POSITION, -1.0], [MAX_POSITION, 1.0])
        is_speed = np.array([name == "speed" for name in card.objectives])
        self.reward_space = self.box(is_speed - 1.0, is_speed * SPEED_REWARD * MAX_SPEED)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        return self.only_context()

    def only_context(self) -> Params:
        """Return MO-Gymnasium's gravity, and weights of 1."""
        gravity = jnp.asarray(PUBLISHED_GRAVITY, self.dtype)
        weight = jnp.ones((), self.dtype)
        return Params(gravity, weight, weight)

    def objective_rewards(self, action: Int, next_state: State, params: Params) -> list[Float]:
        """Return the reward of each objective of the card."""
        time, reverse, forward = super().objective_rewards(action, next_state, params)
        by_name = {
            "time": time,
            "reverse": reverse,
            "forward": forward,
            "move": reverse + forward,
            "speed": SPEED_REWARD * jnp.abs(next_state.velocity),
        }
        return [by_name[name] for name in self.card.objectives]

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the motion, ``(2,)``."""
        return self.stack(state.position, state.velocity * (1 / MAX_SPEED))

    def read_observation(self, observation: jax.Array) -> tuple[State, Params]:
        """Return what an observation shows, and the only context."""
        position, velocity = observation
        return State(position, velocity * MAX_SPEED), self.only_context()

    def observation_components(self) -> tuple[Component, ...]:
        """List the motion."""
        return super().observation_components()[:2]

    def _terms(self, params: Params) -> list[str]:
        return []


def make(card: TaskCard, *, difficulty: float | None = None, dtype: str = "float32") -> MountainCar:
    """Make the task of a card: with sampled gravity and weights, or with MO-Gymnasium's."""
    task_class = MountainCar if card.settings["rewards"] == "weighted" else PublishedValley
    return task_class(card, difficulty=difficulty, dtype=dtype)

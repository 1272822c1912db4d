"""Tag: three predators catch a prey that is faster than each of them, and flees by a script.

They have to come from several sides. Source: Lowe et al. 2017 (arXiv:1706.02275), predator-prey, by
the rules of ``simple_tag_v3`` of MPE2 (github.com/Farama-Foundation/MPE2, version 1.1.1).
:mod:`particle_physics` has the equations. The prey is no agent here but a part of the task, so that
scores of predators compare; MPE2 leaves its moves to a second team.

=============  ====================================================================================
observation    one row a predator, ``Box(-2, 2, (3, 16))``: its velocity and place, then the places
               of the two obstacles, of the two other predators and of the prey relative to it, then
               the velocity of the prey, x and y of each, in parts of 2 m/s and 2 m. Farther values
               are shown as +-2
action         ``MultiDiscrete([5, 5, 5])``: each predator stays or pushes left, right, down or up
               with 3 N. With ``actions="continuous"`` ``Box(-1, 1, (3, 2))``: its push to the right
               and up, in parts of 3 N
reward         each predator: 10 for every predator that touches the prey
termination    never: the time limit truncates after 2.5 s
success        the prey has been touched in 2 steps or more
context        places of the obstacles, uniform in a square of 1.8 m about the middle; x lies in
               stripes that belong to train and test in turn. All bodies start at rest, uniform in
               a square of 2 m
difficulty     probability that the prey flees in a step; else it moves at random. 0.8, easy 0.4,
               hard 1
=============  ====================================================================================

A predator runs up to 1 m/s, the prey up to 1.3 m/s, and the prey pushes with 4 N. It flees by the
move after which, 0.3 s ahead, the nearest predator is farthest away. It avoids obstacles and what
is more than 0.9 m from the middle along an axis, where MPE2 punishes it.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float, Int
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from .moves import (
    MOVES,
    Disc,
    MovingAgents,
    best_move,
    best_push,
    discrete_drive,
    draw_discs,
    place_ahead,
)
from .particle_physics import (
    PERIOD,
    Body,
    Kind,
    Point,
    distance,
    step_bodies,
    touch,
)

PREDATOR = Kind(radius=0.075, collides=True, push=3.0, max_speed=1.0)
PREY = Kind(radius=0.05, collides=True, push=4.0, max_speed=1.3)
OBSTACLE = Kind(radius=0.2, collides=True, movable=False)
REACH = PREDATOR.radius + PREY.radius
"""m between the centres of a predator and the prey that touch."""
OBSTACLES = 2
OBSTACLE_RANGE = 0.9
"""m from the middle, along each axis."""
STRIPES = 18
"""Stripes of the obstacles' x, in turn of train and test."""
CATCH = 10.0
"""Reward for each predator that touches the prey."""
CAUGHT_STEPS = 2
"""Steps in which the prey is touched, for success."""
PREY_LEAD = 0.3
"""s ahead for which the prey looks."""
PREY_RANGE = 0.9
"""m from the middle, along each axis, that the prey does not like to leave."""
PREY_DISLIKE = 3.0
"""m nearer to a predator that the prey rather is than 1 m outside or in an obstacle."""
SCALE = 2.0
"""m and m/s that are shown as 1."""
MAX_OBSERVATION = 2.0


class Params(NamedTuple):
    """The context."""

    obstacles: tuple[Point, ...]


class State(NamedTuple):
    """The motion of all, and how often the prey has been caught."""

    predators: tuple[Body, ...]
    prey: Body
    caught_steps: Int
    """Number of steps in which a predator touched the prey."""


class Tag(MovingAgents):
    """The task of this file's docstring."""

    push = PREDATOR.push
    period = PERIOD
    measures: ClassVar[dict[str, str]] = {
        "caught_steps": "number of steps in which the prey was touched",
        "distance": "distance of the prey from the nearest predator, m",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 0 <= difficulty <= 1:
            raise ValueError(
                f"The difficulty of {card.id} is the probability that the prey flees, 0 to 1, or "
                f"one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.flight = float(difficulty)
        count = card.agents
        entries = 4 + 2 * OBSTACLES + 2 * count + 2
        self.observation_space = self.box(-MAX_OBSERVATION, MAX_OBSERVATION, (count, entries))
        self.action_space = self.moving_actions()
        self.reward_space = self.box(0.0, CATCH * count, (count,))
        self._see = jax.jit(self.observation)  # for the text view

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the places of the obstacles, each x in a stripe of the split."""
        u = self.uniform(key, 2 * OBSTACLES)
        width = OBSTACLE_RANGE
        return Params(
            tuple(
                Point(
                    alternating_bands(u[2 * k], split, -width, width, STRIPES),
                    width * (2 * u[2 * k + 1] - 1),
                )
                for k in range(OBSTACLES)
            )
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample the places of the predators and of the prey, who are at rest."""
        count = self.card.agents + 1
        u = 2 * self.uniform(key, 2 * count) - 1
        still = jnp.zeros((), self.dtype)
        *predators, prey = (Body(u[2 * i], u[2 * i + 1], still, still) for i in range(count))
        return State(tuple(predators), prey, jnp.int32(0))

    # -- a step ------------------------------------------------------------------------------------

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the predators and the prey by a step."""
        kinds = (PREDATOR,) * self.card.agents
        u = self.uniform(key, 2)
        move = jnp.where(
            u[0] < self.flight,
            flee(state, params),
            jnp.minimum(u[1] * len(MOVES), len(MOVES) - 1).astype(jnp.int32),
        )
        drives = [*self.drives(action, kinds), discrete_drive(move, PREY, self.dtype)]
        still = jnp.zeros((), self.dtype)
        obstacles = [Body(mark.x, mark.y, still, still) for mark in params.obstacles]
        bodies = step_bodies(
            (*state.predators, state.prey, *obstacles),
            (*kinds, PREY, *(OBSTACLE,) * OBSTACLES),
            (*drives, *((still, still),) * OBSTACLES),
        )
        predators, prey = bodies[: self.card.agents], bodies[self.card.agents]
        is_caught = count_touches(predators, prey) > 0
        return State(predators, prey, state.caught_steps + is_caught.astype(jnp.int32))

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of each predator, ``(3,)``."""
        touches = count_touches(next_state.predators, next_state.prey)
        return self.stack(*[CATCH * touches.astype(self.dtype)] * self.card.agents)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        gaps = [distance(predator, state.prey) for predator in state.predators]
        return {
            "success": state.caught_steps >= CAUGHT_STEPS,
            "caught_steps": state.caught_steps,
            "distance": functools.reduce(jnp.minimum, gaps),
        }

    # -- what predators see ------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each predator sees, ``(3, 16)``; see the table."""
        values = []
        for i, predator in enumerate(state.predators):
            teammates = (teammate for j, teammate in enumerate(state.predators) if j != i)
            values += [predator.vx, predator.vy, predator.x, predator.y]
            places: tuple[Any, ...] = (*params.obstacles, *teammates, state.prey)
            for place in places:
                values += [place.x - predator.x, place.y - predator.y]
            values += [state.prey.vx, state.prey.vy]
        observed = self.stack(*values) * (1 / SCALE)
        return jnp.clip(observed, -MAX_OBSERVATION, MAX_OBSERVATION).reshape(self.card.agents, -1)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each predator; see the table."""
        metres = f"{SCALE:g} m"
        speed = f"{SCALE:g} m/s"
        axes = "along x and y"
        return (
            Component("velocity", f"its velocity {axes}", speed, (2,)),
            Component("place", f"its place {axes}", metres, (2,)),
            Component(
                "obstacles", f"[obstacle]: from it to the obstacle, {axes}", metres, (OBSTACLES, 2)
            ),
            Component(
                "others",
                f"[other predator, in the order of numbers]: from it to the other one, {axes}",
                metres,
                (self.card.agents - 1, 2),
            ),
            Component("prey", f"from it to the prey, {axes}", metres, (2,)),
            Component("prey_velocity", f"velocity of the prey {axes}", speed, (2,)),
        )

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe what each predator sees, in metres."""
        rows = SCALE * np.asarray(self._see(state, None, params)).reshape(self.card.agents, -1, 2)
        prey_velocity = f"({rows[0, -1, 0]:+.2f}, {rows[0, -1, 1]:+.2f})"
        lines = [
            "Places are metres to the right and up. The prey's velocity is "
            f"{prey_velocity} m/s. Each agent sees from where it is:"
        ]
        for i, row in enumerate(rows):
            velocity, place, *relative, prey, _ = (f"({x:+.2f}, {y:+.2f})" for x, y in row)
            lines.append(
                f"agent_{i} at {place}, velocity {velocity} m/s: prey at {prey}; other agents at "
                f"{', '.join(relative[OBSTACLES:])}; obstacles at {', '.join(relative[:OBSTACLES])}"
            )
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the obstacles, the predators in red and the prey in green, from above."""
        obstacles = [Disc(mark.x, mark.y, OBSTACLE.radius, "gray") for mark in params.obstacles]
        predators = [Disc(body.x, body.y, PREDATOR.radius, "firebrick") for body in state.predators]
        prey = Disc(state.prey.x, state.prey.y, PREY.radius, "seagreen")
        return draw_discs([*obstacles, *predators, prey], self.picture_shape)


def count_touches(predators: tuple[Body, ...], prey: Body) -> Int:
    """Return the number of predators that touch the prey, int32 ``()``."""
    touches = [touch(predator, prey, REACH).astype(jnp.int32) for predator in predators]
    return functools.reduce(operator.add, touches)


def flee(state: State, params: Params) -> Int:
    """Return the move of a prey that flees, int32 ``()``."""
    chasers = [place_ahead(predator, PREY_LEAD) for predator in state.predators]
    values = []
    for right, up in MOVES.values():
        ahead = place_ahead(
            state.prey, PREY_LEAD, PERIOD * PREY.push * right, PERIOD * PREY.push * up
        )
        nearest = functools.reduce(jnp.minimum, [distance(ahead, chaser) for chaser in chasers])
        inside = [PREY.radius + OBSTACLE.radius - distance(ahead, o) for o in params.obstacles]
        outside = [jnp.abs(ahead.x) - PREY_RANGE, jnp.abs(ahead.y) - PREY_RANGE]
        excess = functools.reduce(
            operator.add, [jnp.maximum(depth, 0) for depth in (*inside, *outside)]
        )
        values.append(nearest - PREY_DISLIKE * excess)
    return jnp.argmax(jnp.stack(values)).astype(jnp.int32)


class Pursuit(eqx.Module):
    """Runs to where the prey will be.

    Each predator aims at the place of the prey some time ahead, and chooses the push after which
    its own place ahead is nearest to that. As they start in different places, they come from
    several sides. It reads only what predators see, and acts for all of them.
    """

    lead: Float = 0.3
    """s ahead for which its own velocity counts"""
    aim: Float = 0.3
    """s ahead for which the prey's velocity counts"""
    is_discrete: bool = eqx.field(static=True, default=True)

    @classmethod
    def for_task(cls, task: Tag) -> Pursuit:
        """Return the player with its own gains."""
        return cls(is_discrete=task.is_discrete)

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the moves of all predators, ``(3,)``, or their pushes, ``(3, 2)``."""
        choose = best_move if self.is_discrete else best_push
        actions = []
        for row in SCALE * view.observation:
            body = Body(row[2], row[3], row[0], row[1])
            prey_x, prey_y, prey_vx, prey_vy = row[-4:]
            goal = Point(body.x + prey_x + self.aim * prey_vx, body.y + prey_y + self.aim * prey_vy)
            actions.append(choose(body, goal, self.lead, PREDATOR.push))
        return jnp.stack(actions), memory

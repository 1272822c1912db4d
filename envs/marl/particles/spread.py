"""Spread: three agents cover three landmarks, and should not bump into each other.

Nobody is told which landmark is whose: the agents have to share them out. Source: Lowe et al. 2017
(arXiv:1706.02275), cooperative navigation, by the rules of ``simple_spread_v3`` of MPE2
(github.com/Farama-Foundation/MPE2, version 1.1.1). :mod:`particle_physics` has the equations.

=============  ====================================================================================
observation    one row an agent, ``Box(-2, 2, (3, 14))``: its velocity and place, then the places of
               the three landmarks and of the two other agents relative to it, x and y of each, in
               parts of 2 m/s and 2 m. Farther values are shown as +-2. MPE2 shows plain numbers,
               and four zeros more, the words of agents that never speak
action         ``MultiDiscrete([5, 5, 5])``: each agent stays or pushes left, right, down or up with
               5 N. With ``actions="continuous"`` ``Box(-1, 1, (3, 2))``: its push to the right and
               up, in parts of 5 N
reward         each agent: half of the team's part and half of its own. The team's part is minus the
               sum, over landmarks, of the distance to the nearest agent, m; its own is minus the
               number of agents that touch it
termination    never: the time limit truncates after 2.5 s
success        each landmark has an agent within 0.15 m, so that its body covers the landmark
context        places of the landmarks, uniform in a square of 2 m about the middle; x lies in
               stripes that belong to train and test in turn. Agents start at rest, uniform in the
               same square
=============  ====================================================================================

The score of an episode is the mean return of an agent. MPE2 is often quoted with the sum of the
three agents, which is three times as much. In MPE2 that sum is -80.5 for random moves (400
episodes), -72.9 for standing still (6,000 starts), and -25.0 for agents that go to the landmarks of
a greedy assignment and brake there (300 episodes): -26.8, -24.3 and -8.3 here.
"""

from __future__ import annotations

import functools
import operator
from itertools import combinations, permutations
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task_card import TaskCard

from .landmarks import LANDMARKS, sample_landmarks
from .moves import Disc, MovingAgents, best_move, best_push, draw_discs
from .particle_physics import (
    MIN_DISTANCE,
    PERIOD,
    Body,
    Kind,
    Point,
    distance,
    step_bodies,
    touch,
)

AGENT = Kind(radius=0.15, collides=True)
LANDMARK_RADIUS = 0.05
"""m, in pictures: nothing touches a landmark."""
COVERED = AGENT.radius
"""m from a landmark to an agent that covers it."""
OWN_SHARE = 0.5
"""Weight of an agent's own part of its reward; the team's part has the rest."""
SCALE = 2.0
"""m and m/s that are shown as 1."""
MAX_OBSERVATION = 2.0
COLOURS = ("royalblue", "firebrick", "seagreen")


class Params(NamedTuple):
    """The context."""

    landmarks: tuple[Point, ...]


class State(NamedTuple):
    """The agents' motion."""

    agents: tuple[Body, ...]


class Spread(MovingAgents):
    """The task of this file's docstring."""

    period = PERIOD
    measures: ClassVar[dict[str, str]] = {
        "distance": "mean distance of the landmarks to their nearest agents, m",
        "touching": "number of pairs of agents that touch",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        count = card.agents
        entries = 4 + 2 * LANDMARKS + 2 * (count - 1)
        self.observation_space = self.box(-MAX_OBSERVATION, MAX_OBSERVATION, (count, entries))
        self.action_space = self.moving_actions()
        self.reward_space = self.box(-np.inf, 0, (count,))
        self.kinds = (AGENT,) * count
        self._see = jax.jit(self.observation)  # for the text view

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the places of the landmarks, each x in a stripe of the split."""
        return Params(sample_landmarks(self.uniform(key, 2 * LANDMARKS), split))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample the places of the agents, who are at rest."""
        u = 2 * self.uniform(key, 2 * self.card.agents) - 1
        still = jnp.zeros((), self.dtype)
        return State(
            tuple(Body(u[2 * i], u[2 * i + 1], still, still) for i in range(self.card.agents))
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the agents by a step."""
        return State(step_bodies(state.agents, self.kinds, self.drives(action, self.kinds)))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each agent sees, ``(3, 14)``; see the table."""
        values = []
        for i, agent in enumerate(state.agents):
            teammates = (teammate for j, teammate in enumerate(state.agents) if j != i)
            values += [agent.vx, agent.vy, agent.x, agent.y]
            places: tuple[Any, ...] = (*params.landmarks, *teammates)
            for place in places:
                values += [place.x - agent.x, place.y - agent.y]
        observed = self.stack(*values) * (1 / SCALE)
        return jnp.clip(observed, -MAX_OBSERVATION, MAX_OBSERVATION).reshape(self.card.agents, -1)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each agent; see the table."""
        metres = f"{SCALE:g} m"
        axes = "along x and y"
        return (
            Component("velocity", f"its velocity {axes}", f"{SCALE:g} m/s", (2,)),
            Component("place", f"its place {axes}", metres, (2,)),
            Component(
                "landmarks", f"[landmark]: from it to the landmark, {axes}", metres, (LANDMARKS, 2)
            ),
            Component(
                "others",
                f"[other agent, in the order of numbers]: from it to the other agent, {axes}",
                metres,
                (self.card.agents - 1, 2),
            ),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of each agent, ``(3,)``."""
        team = add(nearest_distances(next_state, params))
        touches = [jnp.zeros((), self.dtype)] * self.card.agents
        for i, j in combinations(range(self.card.agents), 2):
            touching = self._touch(next_state, i, j).astype(self.dtype)
            touches[i] = touches[i] + touching
            touches[j] = touches[j] + touching
        return self.stack(
            *(-(1 - OWN_SHARE) * team - OWN_SHARE * own_touches for own_touches in touches)
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        nearest = nearest_distances(state, params)
        pairs = combinations(range(self.card.agents), 2)
        touching = add([self._touch(state, i, j).astype(jnp.int32) for i, j in pairs])
        return {
            "success": functools.reduce(operator.and_, [gap < COVERED for gap in nearest]),
            "distance": add(nearest) * (1 / LANDMARKS),
            "touching": touching,
        }

    def _touch(self, state: State, i: int, j: int) -> jax.Array:
        reach = self.kinds[i].radius + self.kinds[j].radius
        return touch(state.agents[i], state.agents[j], reach)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe what each agent sees, in metres."""
        lines = ["Places are metres to the right and up. Each agent sees from where it is:"]
        for i, row in enumerate(np.asarray(self._see(state, None, params))):
            velocity, place, *relative = (
                f"({x:+.2f}, {y:+.2f})" for x, y in SCALE * row.reshape(-1, 2)
            )
            lines.append(
                f"agent_{i} at {place}, velocity {velocity} m/s: landmarks at "
                f"{', '.join(relative[:LANDMARKS])}; other agents at "
                f"{', '.join(relative[LANDMARKS:])}"
            )
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the agents from above, and the landmarks as small grey discs on them."""
        agents = [
            Disc(agent.x, agent.y, AGENT.radius, COLOURS[i % len(COLOURS)])
            for i, agent in enumerate(state.agents)
        ]
        landmarks = [Disc(mark.x, mark.y, LANDMARK_RADIUS, "gray") for mark in params.landmarks]
        return draw_discs([*agents, *landmarks], self.picture_shape)


def nearest_distances(state: State, params: Params) -> list[Float]:
    """Return the distance from each landmark to its nearest agent, m."""
    return [
        functools.reduce(jnp.minimum, [distance(agent, landmark) for agent in state.agents])
        for landmark in params.landmarks
    ]


def add(values: list[Float]) -> Float:
    """Return the sum of values, from the first to the last."""
    return functools.reduce(operator.add, values)


class ShareOut(eqx.Module):
    """Shares the landmarks out so that the ways are shortest in total, and brakes at them.

    It tries all assignments in each step. Landmarks that lie too near each other for two bodies are
    replaced by places on both sides, so that the agents do not touch. An agent then chooses the
    push after which the place ahead of it, at its velocity, is nearest to its goal. It reads only
    what agents see, and acts for all of them.
    """

    lead: Float = 0.13
    """s ahead for which the velocity counts; an agent that coasts goes on for 0.4 s of it"""
    gap: Float = 0.35
    """m between the goals of two agents, at least"""
    is_discrete: bool = eqx.field(static=True, default=True)

    @classmethod
    def for_task(cls, task: Spread) -> ShareOut:
        """Return the player with its own gains."""
        return cls(is_discrete=task.is_discrete)

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the moves of all agents, ``(3,)``, or their pushes, ``(3, 2)``."""
        metres = SCALE * view.observation
        bodies = [Body(row[2], row[3], row[0], row[1]) for row in metres]
        marks = metres[0, 4 : 4 + 2 * LANDMARKS].reshape(LANDMARKS, 2)
        landmarks = [Point(bodies[0].x + mark[0], bodies[0].y + mark[1]) for mark in marks]
        goals = assign(bodies, keep_apart(landmarks, self.gap))
        choose = self._move if self.is_discrete else self._push
        return jnp.stack([choose(*pair) for pair in zip(bodies, goals, strict=True)]), memory

    def _move(self, body: Body, goal: Point) -> jax.Array:
        return best_move(body, goal, self.lead)

    def _push(self, body: Body, goal: Point) -> jax.Array:
        return best_push(body, goal, self.lead)


def keep_apart(places: list[Point], gap: Float) -> list[Point]:
    """Return places moved from each other until no two are nearer than a gap, or nearly so."""
    moved = list(places)
    for i, j in 2 * list(combinations(range(len(places)), 2)):
        apart = jnp.maximum(distance(moved[i], moved[j]), MIN_DISTANCE)
        share = 0.5 * jnp.maximum(gap - apart, 0) / apart
        dx = share * (moved[i].x - moved[j].x)
        dy = share * (moved[i].y - moved[j].y)
        moved[i] = Point(moved[i].x + dx, moved[i].y + dy)
        moved[j] = Point(moved[j].x - dx, moved[j].y - dy)
    return moved


def assign(bodies: list[Body], places: list[Point]) -> list[Point]:
    """Return the place of each body in the assignment of the shortest total way."""
    ways = [[distance(body, place) for place in places] for body in bodies]
    orders = np.array(list(permutations(range(len(bodies)))))
    totals = jnp.stack(
        [add([lengths[k] for lengths, k in zip(ways, order, strict=True)]) for order in orders]
    )
    best = jnp.asarray(orders)[jnp.argmin(totals)]
    x = jnp.stack([place.x for place in places])[best]
    y = jnp.stack([place.y for place in places])[best]
    return [Point(x[i], y[i]) for i in range(len(bodies))]

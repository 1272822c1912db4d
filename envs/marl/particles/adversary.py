"""Adversary: two agents know the goal, and must not show it to an adversary that watches them.

Both are paid for one of them being near the goal and for the adversary being far from it. Source:
Lowe et al. 2017 (arXiv:1706.02275), physical deception, by the rules of ``simple_adversary_v3`` of
MPE2 (github.com/Farama-Foundation/MPE2, version 1.1.1). :mod:`particle_physics` has the equations;
nobody collides. The adversary is no agent here but a part of the task, so that scores compare; MPE2
leaves its moves to a second team.

=============  ====================================================================================
observation    one row an agent, ``Box(-2, 2, (2, 10))``: the places of the goal, of the two
               landmarks, of the adversary and of the other agent relative to it, x and y of each,
               in parts of 2 m. Farther values are shown as +-2. As in MPE2, agents do not see
               velocities
action         ``MultiDiscrete([5, 5])``: each agent stays or pushes left, right, down or up with
               5 N. With ``actions="continuous"`` ``Box(-1, 1, (2, 2))``: its push to the right and
               up, in parts of 5 N
reward         both agents: distance of the adversary from the goal minus that of the nearest agent,
               m
termination    never: the time limit truncates after 2.5 s
success        at the end an agent is within the hint and 0.15 m of the goal, and the adversary is
               nearer to the other landmark
context        places of the landmarks, uniform in a square of 2 m about the middle, and which of
               them is the goal; x lies in stripes that belong to train and test in turn. All bodies
               start at rest, uniform in the same square
difficulty     the hint, m: how much nearer to the other landmark than to the goal the agents must
               keep before the adversary goes there. 0.1, easy 0, hard 0.2
=============  ====================================================================================

The adversary drives as the agents do. It compares how near the nearest agent is to each landmark,
averages the difference over the past (a step keeps 0.7 of the average), and goes to the landmark
that the agents seem to prefer, the goal if the difference is less than the hint. Agents that hide
nothing lead it to the goal and earn 0 a step there. With one agent on the other landmark, and the
second one no nearer to the goal than the hint, they earn the distance of the landmarks less the
hint: :func:`deceit_pays`.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, Float, Int
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from .landmarks import sample_landmarks
from .moves import Disc, MovingAgents, best_move, best_push, discrete_drive, draw_discs
from .particle_physics import (
    COASTING,
    MIN_DISTANCE,
    PERIOD,
    PUSH,
    Body,
    Kind,
    Point,
    distance,
    step_bodies,
)

AGENT = Kind(radius=0.15, collides=False)
LANDMARK_RADIUS = 0.08
"""m, in pictures: nothing touches a landmark."""
LANDMARKS = 2
COVERED = AGENT.radius
"""m from the goal, beyond the hint, to an agent that covers it."""
MEMORY = 0.7
"""Part of its average of the past that the adversary keeps in a step."""
ADVERSARY_LEAD = 0.13
"""s ahead for which the adversary's own velocity counts."""
MAX_HINT = 1.0
"""m"""
SCALE = 2.0
"""m that are shown as 1."""
MAX_OBSERVATION = 2.0


class Params(NamedTuple):
    """The context."""

    landmarks: tuple[Point, ...]
    goal: Int
    """Number of the landmark that is the goal."""


class State(NamedTuple):
    """The motion of all, and what the adversary has seen."""

    agents: tuple[Body, ...]
    adversary: Body
    preference: Float
    """Distance by which the agents have kept nearer to the goal than to the other landmark, m."""


class Adversary(MovingAgents):
    """The task of this file's docstring."""

    period = PERIOD
    measures: ClassVar[dict[str, str]] = {
        "distance": "distance of the goal from the nearest agent, m",
        "adversary_distance": "distance of the goal from the adversary, m",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 0 <= difficulty <= MAX_HINT:
            raise ValueError(
                f"The difficulty of {card.id} is the adversary's hint, 0 to {MAX_HINT:g} m, or "
                f"one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.hint = float(difficulty)
        count = card.agents
        entries = 2 * (1 + LANDMARKS + count)
        self.observation_space = self.box(-MAX_OBSERVATION, MAX_OBSERVATION, (count, entries))
        self.action_space = self.moving_actions()
        self.reward_space = self.box(-np.inf, np.inf, (count,))
        self.kinds = (AGENT,) * count
        self._see = jax.jit(self.observation)  # for the text view

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the landmarks, each x in a stripe of the split, and the goal among them."""
        u = self.uniform(key, 2 * LANDMARKS + 1)
        goal = (u[-1] >= 0.5).astype(jnp.int32)
        return Params(sample_landmarks(u[:-1], split, LANDMARKS), goal)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample the places of the agents and of the adversary, who are at rest."""
        count = self.card.agents + 1
        u = 2 * self.uniform(key, 2 * count) - 1
        still = jnp.zeros((), self.dtype)
        *agents, adversary = (Body(u[2 * i], u[2 * i + 1], still, still) for i in range(count))
        return State(tuple(agents), adversary, preference(tuple(agents), params))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the agents and the adversary by a step, and let it watch."""
        goal, decoy = goal_and_decoy(params)
        believes = state.preference + self.hint >= 0
        target = Point(jnp.where(believes, goal.x, decoy.x), jnp.where(believes, goal.y, decoy.y))
        move = best_move(state.adversary, target, ADVERSARY_LEAD)
        drives = [*self.drives(action, self.kinds), discrete_drive(move, AGENT, self.dtype)]
        bodies = step_bodies((*state.agents, state.adversary), (*self.kinds, AGENT), drives)
        *agents, adversary = bodies
        shown_preference = preference(tuple(agents), params)
        average = shown_preference + MEMORY * (state.preference - shown_preference)
        return State(tuple(agents), adversary, average)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of each agent, ``(2,)``."""
        goal, _ = goal_and_decoy(params)
        team = distance(next_state.adversary, goal) - nearest_distance(next_state.agents, goal)
        return self.stack(*[team] * self.card.agents)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        goal, decoy = goal_and_decoy(params)
        nearest = nearest_distance(state.agents, goal)
        adversary_distance = distance(state.adversary, goal)
        misled = distance(state.adversary, decoy) < adversary_distance
        return {
            "success": misled & (nearest < COVERED + self.hint),
            "distance": nearest,
            "adversary_distance": adversary_distance,
        }

    # -- what agents see ---------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each agent sees, ``(2, 10)``; see the table."""
        goal, _ = goal_and_decoy(params)
        values = []
        for i, agent in enumerate(state.agents):
            teammates = [teammate for j, teammate in enumerate(state.agents) if j != i]
            places: list[Point | Body] = [goal, *params.landmarks, state.adversary, *teammates]
            for place in places:
                values += [place.x - agent.x, place.y - agent.y]
        observed = self.stack(*values) * (1 / SCALE)
        return jnp.clip(observed, -MAX_OBSERVATION, MAX_OBSERVATION).reshape(self.card.agents, -1)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each agent; see the table."""
        metres = f"{SCALE:g} m"
        axes = "along x and y"
        return (
            Component("goal", f"from it to the goal, {axes}", metres, (2,)),
            Component(
                "landmarks", f"[landmark]: from it to the landmark, {axes}", metres, (LANDMARKS, 2)
            ),
            Component("adversary", f"from it to the adversary, {axes}", metres, (2,)),
            Component(
                "others",
                f"[other agent]: from it to the other agent, {axes}",
                metres,
                (self.card.agents - 1, 2),
            ),
        )

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe what each agent sees, in metres."""
        rows = SCALE * np.asarray(self._see(state, None, params)).reshape(self.card.agents, -1, 2)
        lines = ["Places are metres to the right and up. Each agent sees from where it is:"]
        for i, row in enumerate(rows):
            goal, *landmarks, adversary, teammate = (f"({x:+.2f}, {y:+.2f})" for x, y in row)
            lines.append(
                f"agent_{i}: goal at {goal}; landmarks at {', '.join(landmarks)}; adversary at "
                f"{adversary}; other agent at {teammate}"
            )
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw agents in blue, the adversary in red, the goal in green, all from above."""
        goal, decoy = goal_and_decoy(params)
        agents = [Disc(body.x, body.y, AGENT.radius, "royalblue") for body in state.agents]
        adversary = Disc(state.adversary.x, state.adversary.y, AGENT.radius, "firebrick")
        landmarks = [
            Disc(goal.x, goal.y, LANDMARK_RADIUS, "seagreen"),
            Disc(decoy.x, decoy.y, LANDMARK_RADIUS, "gray"),
        ]
        return draw_discs([*agents, adversary, *landmarks], self.picture_shape)


def goal_and_decoy(params: Params) -> tuple[Point, Point]:
    """Return the place of the goal and that of the other landmark."""
    first, second = params.landmarks
    is_second = params.goal == 1
    goal = Point(jnp.where(is_second, second.x, first.x), jnp.where(is_second, second.y, first.y))
    decoy = Point(jnp.where(is_second, first.x, second.x), jnp.where(is_second, first.y, second.y))
    return goal, decoy


def nearest_distance(agents: tuple[Body, ...], place: Point) -> Float:
    """Return the distance from a place to its nearest agent, m."""
    return functools.reduce(jnp.minimum, [distance(agent, place) for agent in agents])


def preference(agents: tuple[Body, ...], params: Params) -> Float:
    """Return how much nearer to the goal than to the other landmark an agent is, m."""
    goal, decoy = goal_and_decoy(params)
    return nearest_distance(agents, decoy) - nearest_distance(agents, goal)


def deceit_pays(apart: Float, hint: float) -> Flag:
    """Return whether agents earn more by deceit than on the goal, where the adversary is as near.

    Deceit pays the distance of the landmarks, m, less the hint.
    """
    return apart > hint


class Decoy(eqx.Module):
    """Sends one agent to the other landmark, and keeps the second one off the goal by the hint.

    The agent nearer to the other landmark goes there. The second one stays farther from the goal
    than the first one from its landmark, by the hint and a margin, so that the adversary prefers
    the other landmark all the time. Where landmarks lie nearer to each
    other than the hint, both go to the goal. It reads what agents see, and knows their velocities
    by their pushes, for both of them.
    """

    lead: Float = 0.1
    """s ahead for which the velocity counts"""
    margin: Float = 0.015
    """m by which the second agent stays off beyond the hint"""
    hint: float = eqx.field(static=True, default=0.1)
    is_discrete: bool = eqx.field(static=True, default=True)
    dtype: str = eqx.field(static=True, default="float32")

    @classmethod
    def for_task(cls, task: Adversary) -> Decoy:
        """Return the player that knows the task's hint."""
        return cls(hint=task.hint, is_discrete=task.is_discrete, dtype=task.dtype.name)

    def initial(self, params: Any) -> jax.Array:
        """Return the velocity of each agent, ``(2, 2)`` m/s: they start at rest."""
        return jnp.zeros((2, 2), self.dtype)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the moves of both agents, ``(2,)``, or their pushes, ``(2, 2)``."""
        rows = SCALE * view.observation
        goal = Point(rows[0, 0], rows[0, 1])  # from where agent_0 is
        is_second = distance(goal, Point(rows[0, 2], rows[0, 3])) > distance(
            goal, Point(rows[0, 4], rows[0, 5])
        )
        decoy = Point(
            jnp.where(is_second, rows[0, 2], rows[0, 4]),
            jnp.where(is_second, rows[0, 3], rows[0, 5]),
        )
        still = jnp.zeros((), rows.dtype)
        bodies = (
            Body(still, still, memory[0, 0], memory[0, 1]),
            Body(rows[0, 8], rows[0, 9], memory[1, 0], memory[1, 1]),
        )
        targets = self._targets(bodies, goal, decoy)
        choose = best_move if self.is_discrete else best_push
        actions = [choose(bodies[i], targets[i], self.lead) for i in range(2)]
        drives = [self._drive(action, rows.dtype) for action in actions]
        velocities = [
            (COASTING * body.vx + PERIOD * fx, COASTING * body.vy + PERIOD * fy)
            for body, (fx, fy) in zip(bodies, drives, strict=True)
        ]
        return jnp.stack(actions), jnp.array(velocities)

    def _targets(self, bodies: tuple[Body, ...], goal: Point, decoy: Point) -> list[Point]:
        """Return where each agent goes."""
        to_goal = [distance(body, goal) for body in bodies]
        to_decoy = [distance(body, decoy) for body in bodies]
        seconds = (to_decoy[0] > to_decoy[1], to_decoy[0] <= to_decoy[1])
        from_landmark = jnp.minimum(*to_decoy)
        deceives = deceit_pays(distance(goal, decoy), self.hint)
        radius = jnp.maximum(from_landmark + self.hint + self.margin, 0)
        radius = jnp.where(deceives, radius, 0)
        targets = []
        for body, is_second, gap in zip(bodies, seconds, to_goal, strict=True):
            share = radius / jnp.maximum(gap, MIN_DISTANCE)
            ring = Point(goal.x + share * (body.x - goal.x), goal.y + share * (body.y - goal.y))
            stays = is_second | operator.inv(deceives)
            targets.append(
                Point(jnp.where(stays, ring.x, decoy.x), jnp.where(stays, ring.y, decoy.y))
            )
        return targets

    def _drive(self, action: jax.Array, dtype: Any) -> tuple[Float, Float]:
        if self.is_discrete:
            return discrete_drive(action, AGENT, dtype)
        return PUSH * action[0], PUSH * action[1]

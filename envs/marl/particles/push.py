"""Push: keep a rival off its goal, which only the rival knows, by standing there and by pushing.

The agent sees where the rival goes, and has to infer from that which of two landmarks is the goal.
Source: Lowe et al. 2017 (arXiv:1706.02275), keep-away, by the rules of ``simple_push_v3`` of MPE2
(github.com/Farama-Foundation/MPE2, version 1.1.1), whose adversary is the agent here.
:mod:`particle_physics` has the equations; the two collide. The rival is a part of the task, so that
scores compare; MPE2 leaves its moves to a second team.

=============  ====================================================================================
observation    ``Box(-2, 2, (8,))``: the agent's velocity, then the places of the two landmarks and
               of the rival relative to it, x and y of each, in parts of 2 m/s and 2 m. Farther
               values are shown as +-2
action         ``Discrete(5)``: stay or push left, right, down or up with 5 N. With
               ``actions="continuous"`` ``Box(-1, 1, (2,))``: its push to the right and up, in parts
               of 5 N
reward         distance of the rival from the goal minus that of the agent, m
termination    never: the time limit truncates after 2.5 s
success        at the end the agent is nearer to the goal than the rival
context        places of the landmarks, uniform in a square of 2 m about the middle, and which of
               them is the goal; x lies in stripes that belong to train and test in turn. Both
               bodies start at rest, uniform in the same square
difficulty     the rival's push, N: 4, easy 3, hard 5 as in MPE2
=============  ====================================================================================

The rival takes the move after which the place ahead of it, at its velocity, is nearest to the goal.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Flag, Float, Int
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from .landmarks import sample_landmarks, select_landmark
from .moves import (
    MOVES,
    Disc,
    MovingAgents,
    best_move,
    best_push,
    continuous_drive,
    discrete_drive,
    draw_discs,
    place_ahead,
)
from .particle_physics import (
    COASTING,
    PERIOD,
    Body,
    Force,
    Kind,
    Point,
    distance,
    step_bodies,
)

AGENT = Kind(radius=0.05, collides=True)
LANDMARK_RADIUS = 0.05
"""m, in pictures: nothing touches a landmark."""
LANDMARKS = 2
RIVAL_LEAD = 0.13
"""s ahead for which the rival's own velocity counts."""
MAX_PUSH = 10.0
"""N"""
SCALE = 2.0
"""m and m/s that are shown as 1."""
MAX_OBSERVATION = 2.0
STEPS_AHEAD = 3
SEQUENCES = np.array(list(product(range(len(MOVES)), repeat=STEPS_AHEAD)), np.int32)
"""All sequences of three moves, ``(125, 3)``."""
DIRECTIONS = np.array(list(MOVES.values()), float)
"""Pushes of the moves, ``(5, 2)``."""
BRAKING_LEAD = 0.13
"""s ahead for which the velocity counts, for an agent that brakes at the goal."""


class Entries:
    """Places of the quantities in an observation; see the table."""

    VELOCITY = slice(0, 2)
    LANDMARKS = slice(2, 6)
    RIVAL = slice(6, 8)


class Params(NamedTuple):
    """The context."""

    landmarks: tuple[Point, ...]
    goal: Int
    """Number of the landmark that is the goal."""


class State(NamedTuple):
    """The motion of both."""

    agent: Body
    rival: Body


class Push(MovingAgents):
    """The task of this file's docstring."""

    period = PERIOD
    measures: ClassVar[dict[str, str]] = {
        "distance": "distance of the agent from the goal, m",
        "rival_distance": "distance of the rival from the goal, m",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 0 < difficulty <= MAX_PUSH:
            raise ValueError(
                f"The difficulty of {card.id} is the rival's push, up to {MAX_PUSH:g} N, or one of "
                f"{', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.rival_kind = AGENT._replace(push=float(difficulty))
        self.observation_space = self.box(-MAX_OBSERVATION, MAX_OBSERVATION, (8,))
        self.action_space = self.moving_actions()
        self.reward_space = self.box(-np.inf, np.inf)

    def moving_actions(self) -> spaces.Space[Any]:
        """Return the action space of the one agent."""
        if self.is_discrete:
            return spaces.Discrete(len(MOVES))
        return self.box(-1.0, 1.0, (2,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the landmarks, each x in a stripe of the split, and the goal among them."""
        u = self.uniform(key, 2 * LANDMARKS + 1)
        goal = (u[-1] >= 0.5).astype(jnp.int32)
        return Params(sample_landmarks(u[:-1], split, LANDMARKS), goal)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample the places of both, who are at rest."""
        u = 2 * self.uniform(key, 4) - 1
        still = jnp.zeros((), self.dtype)
        return State(Body(u[0], u[1], still, still), Body(u[2], u[3], still, still))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move both by a step."""
        goal = select_landmark(params.landmarks, params.goal)
        move = best_move(state.rival, goal, RIVAL_LEAD, self.rival_kind.push)
        if self.is_discrete:
            drive = discrete_drive(action, AGENT, self.dtype)
        else:
            drive = continuous_drive(action, AGENT)
        rival_drive = discrete_drive(move, self.rival_kind, self.dtype)
        bodies = step_bodies(state, (AGENT, self.rival_kind), (drive, rival_drive))
        return State(*bodies)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return how much nearer to the goal the agent is than the rival, m."""
        goal = select_landmark(params.landmarks, params.goal)
        return distance(next_state.rival, goal) - distance(next_state.agent, goal)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        goal = select_landmark(params.landmarks, params.goal)
        gap = distance(state.agent, goal)
        rival_gap = distance(state.rival, goal)
        return {"success": gap < rival_gap, "distance": gap, "rival_distance": rival_gap}

    # -- what the agent sees -----------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what the agent sees, ``(8,)``; see the table."""
        agent = state.agent
        values = [agent.vx, agent.vy]
        rival = Point(state.rival.x, state.rival.y)
        for place in (*params.landmarks, rival):
            values += [place.x - agent.x, place.y - agent.y]
        return jnp.clip(self.stack(*values) * (1 / SCALE), -MAX_OBSERVATION, MAX_OBSERVATION)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries; see the table."""
        metres = f"{SCALE:g} m"
        axes = "along x and y"
        return (
            Component("velocity", f"its velocity {axes}", f"{SCALE:g} m/s", (2,)),
            Component(
                "landmarks", f"[landmark]: from it to the landmark, {axes}", metres, (LANDMARKS, 2)
            ),
            Component("rival", f"from it to the rival, {axes}", metres, (2,)),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the moves, or the entries of a push."""
        if self.is_discrete:
            return tuple(
                Component(name, f"push ({x}, {y}) to the right and up, in parts of 5 N")
                for name, (x, y) in MOVES.items()
            )
        return super().action_components()

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe what the agent sees, in metres."""
        agent = state.agent
        first, second, rival = (
            f"({float(place.x - agent.x):+.2f}, {float(place.y - agent.y):+.2f})"
            for place in (*params.landmarks, Point(state.rival.x, state.rival.y))
        )
        return (
            "Places are metres to the right and up from the agent. It moves at "
            f"({float(agent.vx):+.2f}, {float(agent.vy):+.2f}) m/s. Landmarks are at {first} and "
            f"{second}, the rival at {rival}."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        if self.is_discrete:
            return f"Answer with one word: {', '.join(MOVES)}."
        return "Answer with two numbers in [-1, 1]: the push to the right and up."

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Return the move of a name, or the forces.

        Raises:
            ValueError: the text is no move, or no forces.
        """
        action = super().parse(text, state, params)
        return action[0] if self.is_discrete else action

    def spell(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Return the name of the move, or the numbers of the forces."""
        return super().spell(np.atleast_1d(action), state, params)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the agent in red, the rival in blue, the goal in green, all from above."""
        colours = ["gray"] * LANDMARKS
        colours[int(params.goal)] = "seagreen"
        marks = [
            Disc(mark.x, mark.y, LANDMARK_RADIUS, colour)
            for mark, colour in zip(params.landmarks, colours, strict=True)
        ]
        agent = Disc(state.agent.x, state.agent.y, AGENT.radius, "firebrick")
        rival = Disc(state.rival.x, state.rival.y, AGENT.radius, "royalblue")
        return draw_discs([*marks, agent, rival], self.picture_shape)


class Memory(NamedTuple):
    """Memory of the last step, and the evidence so far."""

    landmark: Point
    """Place of the first landmark relative to the agent a step ago, m."""
    rival: Point
    """Place of the rival relative to the agent a step ago, m."""
    evidence: Float
    """Way by which the rival has come nearer to the second landmark than to the first, m."""
    started: Flag
    """Whether a step is over."""


class Guard(eqx.Module):
    """Infers the goal from the rival's way, and plans three moves ahead to hold it.

    The rival comes nearer to its goal by as much as it moves, and to the other landmark by less, so
    the player adds up by how much more it came nearer to the second landmark than to the first.
    It then tries all sequences of three moves on both bodies, with the rival's script, and adds
    up the rewards and a part of that of the places ahead at the end. Where pushes are continuous,
    it also tries to go to the goal and brake there. It reads only what the agent sees, and has the
    rival's velocity from its way in a step.
    """

    lead: Float = 0.13
    """s ahead, at the end of the plan, for which velocities count"""
    weight: Float = 0.5
    """Weight of the reward at the places ahead"""
    rival_kind: Kind = eqx.field(static=True, default=AGENT)
    is_discrete: bool = eqx.field(static=True, default=True)
    dtype: str = eqx.field(static=True, default="float32")

    @classmethod
    def for_task(cls, task: Push) -> Guard:
        """Return the player that knows the rival's push."""
        return cls(rival_kind=task.rival_kind, is_discrete=task.is_discrete, dtype=task.dtype.name)

    def initial(self, params: Any) -> Memory:
        """Return a memory of nothing."""
        zero = jnp.zeros((), self.dtype)
        return Memory(Point(zero, zero), Point(zero, zero), zero, jnp.bool_(False))

    def act(self, memory: Memory, view: View, key: jax.Array) -> tuple[jax.Array, Memory]:
        """Return the move, ``()``, or the push, ``(2,)``."""
        metres = SCALE * view.observation
        first, second = (Point(*place) for place in metres[Entries.LANDMARKS].reshape(2, 2))
        place = Point(*metres[Entries.RIVAL])
        earlier = Point(  # where the rival was a step ago, seen from here
            jnp.where(memory.started, memory.rival.x - memory.landmark.x + first.x, place.x),
            jnp.where(memory.started, memory.rival.y - memory.landmark.y + first.y, place.y),
        )
        gain = [distance(earlier, mark) - distance(place, mark) for mark in (first, second)]
        evidence = memory.evidence + gain[1] - gain[0]
        weight = jnp.where(evidence > 0, 1.0, jnp.where(evidence < 0, 0.0, 0.5))
        goal = Point(
            first.x + weight * (second.x - first.x), first.y + weight * (second.y - first.y)
        )
        rate = memory.started * (1 / PERIOD)
        vx, vy = rate * (place.x - earlier.x), rate * (place.y - earlier.y)
        rival_push = self._rival_drive(Body(earlier.x, earlier.y, vx, vy), goal)
        rival = Body(
            place.x,
            place.y,
            COASTING * vx + memory.started * PERIOD * rival_push[0],
            COASTING * vy + memory.started * PERIOD * rival_push[1],
        )
        here = jnp.zeros_like(place.x)
        agent = Body(here, here, *metres[Entries.VELOCITY])
        memory = Memory(first, place, evidence, jnp.bool_(True))

        def value_of(moves: jax.Array) -> Float:
            pushes = [jnp.asarray(DIRECTIONS, self.dtype)[move] for move in moves]
            return self._value(lambda body, i: pushes[i], agent, rival, goal)

        values = jax.vmap(value_of)(jnp.asarray(SEQUENCES))
        move = jnp.asarray(SEQUENCES)[jnp.argmax(values), 0]
        if self.is_discrete:
            return move, memory
        value = self._value(lambda body, i: self._brake(body, goal), agent, rival, goal)
        push = jnp.asarray(DIRECTIONS, self.dtype)[move]
        return jnp.where(value > values.max(), self._brake(agent, goal), push), memory

    def _brake(self, agent: Body, goal: Point) -> jax.Array:
        return best_push(agent, goal, BRAKING_LEAD)

    def _rival_drive(self, rival: Body, goal: Point) -> Force:
        """Return the push of the rival's script, N."""
        move = best_move(rival, goal, RIVAL_LEAD, self.rival_kind.push)
        return discrete_drive(move, self.rival_kind, np.dtype(self.dtype))

    def _value(
        self, choose: Callable[[Body, int], jax.Array], agent: Body, rival: Body, goal: Point
    ) -> Float:
        """Return the rewards of three pushes, chosen for a body in a step, and of places ahead."""
        kinds = (AGENT, self.rival_kind)
        value = jnp.zeros((), self.dtype)
        for i in range(STEPS_AHEAD):
            drives = (continuous_drive(choose(agent, i), AGENT), self._rival_drive(rival, goal))
            agent, rival = step_bodies((agent, rival), kinds, drives)
            value = value + distance(rival, goal) - distance(agent, goal)
        agent_ahead, rival_ahead = (place_ahead(body, self.lead) for body in (agent, rival))
        ahead = distance(rival_ahead, goal) - distance(agent_ahead, goal)
        return value + self.weight * ahead

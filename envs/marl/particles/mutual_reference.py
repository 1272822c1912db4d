"""Mutual reference: each of two agents knows where the other one should go, and tells it in words.

Both move and speak at once, and the words mean nothing until the two agree on them. Source: Lowe et
al. 2017 (arXiv:1706.02275) and Mordatch & Abbeel 2018 (arXiv:1703.04908), by the rules of
``simple_reference_v3`` of MPE2 (github.com/Farama-Foundation/MPE2, version 1.1.1).
:mod:`particle_physics` has the equations; nobody collides.

=============  ====================================================================================
observation    one row an agent, ``Box((2, 21))``: its velocity and the places of the three
               landmarks relative to it, x and y of each, in parts of 2 m/s and 2 m, farther ones
               shown as +-2; then 1 for the landmark to which the other agent should go, and 1 for
               the word of ten that it heard last, else 0. MPE2 shows the landmark as a colour, with
               .75 and .25 in place of 1 and 0. Agents do not see each other
action         ``MultiDiscrete([50, 50])``: move + 5 word of each agent. Moves are to stay or push
               left, right, down or up with 5 N; words are 0 to 9. A word is heard in the next
               observation
reward         each agent: half of its own part and half of the mean of both. Its own part is minus
               the distance, m, of the other agent from the landmark to which it should go
termination    never: the time limit truncates after 2.5 s
success        both agents touch their landmarks: they are nearer than 0.1 m
context        the landmark of each agent, and the places of the landmarks, uniform in a square of
               2 m about the middle; x lies in stripes that belong to train and test in turn. Agents
               start at rest, uniform in the same square
=============  ====================================================================================
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Float, Int
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from .landmarks import LANDMARKS, landmark_of_word, sample_landmarks, select_landmark
from .moves import MOVES, Disc, best_move, discrete_drive, draw_discs, read_words
from .particle_physics import PERIOD, Body, Kind, Point, distance, step_body

AGENT = Kind(radius=0.05, collides=False)
AGENTS = 2
LANDMARK_RADIUS = 0.05
"""m"""
REACHED = AGENT.radius + LANDMARK_RADIUS
"""m"""
WORDS = 10
NO_WORD = -1
OWN_SHARE = 0.5
"""Weight of an agent's own part of its reward; the mean of both parts has the rest."""
LANDMARK_NAMES = ("red", "green", "blue")
COLOURS = ("firebrick", "seagreen", "royalblue")
SCALE = 2.0
"""m and m/s that are shown as 1."""
MAX_OBSERVATION = 2.0


class Entries:
    """Places of the quantities in a row of the observation; see the table."""

    VELOCITY = slice(0, 2)
    LANDMARKS = slice(2, 8)
    GOAL = slice(8, 11)
    WORD = slice(11, 21)


class Params(NamedTuple):
    """The context."""

    landmarks: tuple[Point, ...]
    goals: tuple[Int, Int]
    """Number of the landmark to which each agent should go, which only the other one sees."""


class State(NamedTuple):
    """The agents' motion, and the word that each has said last."""

    agents: tuple[Body, Body]
    words: tuple[Int, Int]
    """-1 before the first one."""


class MutualReference(Task[Params, State]):
    """The task of this file's docstring."""

    period = PERIOD
    measures: ClassVar[dict[str, str]] = {
        "distance": "mean distance of the agents from their landmarks, m"
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        high = np.ones((AGENTS, Entries.WORD.stop))
        high[:, : Entries.LANDMARKS.stop] = MAX_OBSERVATION
        low = np.where(high == MAX_OBSERVATION, -MAX_OBSERVATION, 0.0)
        self.observation_space = self.box(low, high)
        self.action_space = spaces.MultiDiscrete([len(MOVES) * WORDS] * AGENTS)
        self.reward_space = self.box(-np.inf, 0, (AGENTS,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the landmarks, each x in a stripe of the split, and that of each agent."""
        u = self.uniform(key, 2 * LANDMARKS + AGENTS)
        numbers = jnp.floor(u[2 * LANDMARKS :] * LANDMARKS).astype(jnp.int32)
        first, second = jnp.minimum(numbers, LANDMARKS - 1)
        return Params(sample_landmarks(u, split), (first, second))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample the places of the agents, who are at rest and have heard nothing."""
        u = 2 * self.uniform(key, 2 * AGENTS) - 1
        still = jnp.zeros((), self.dtype)
        silence = jnp.int32(NO_WORD)
        agents = (Body(u[0], u[1], still, still), Body(u[2], u[3], still, still))
        return State(agents, (silence, silence))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the agents by a step, and let them speak."""
        first, second = (
            step_body(body, AGENT, discrete_drive(action[i] % len(MOVES), AGENT, self.dtype))
            for i, body in enumerate(state.agents)
        )
        words = (action // len(MOVES)).astype(jnp.int32)
        return State((first, second), (words[0], words[1]))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each agent sees, ``(2, 21)``; see the table."""
        rows = []
        for i, agent in enumerate(state.agents):
            metres = [agent.vx, agent.vy]
            for mark in params.landmarks:
                metres += [mark.x - agent.x, mark.y - agent.y]
            observed = self.stack(*metres) * (1 / SCALE)
            goal = (params.goals[1 - i] == np.arange(LANDMARKS)).astype(self.dtype)
            word = (state.words[1 - i] == np.arange(WORDS)).astype(self.dtype)
            clipped = jnp.clip(observed, -MAX_OBSERVATION, MAX_OBSERVATION)
            rows.append(jnp.concatenate([clipped, goal, word]))
        return jnp.stack(rows)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each agent; see the table."""
        metres = f"{SCALE:g} m"
        axes = "along x and y"
        return (
            Component("velocity", f"its velocity {axes}", f"{SCALE:g} m/s", (2,)),
            Component(
                "landmarks", f"[landmark]: from it to the landmark, {axes}", metres, (LANDMARKS, 2)
            ),
            Component("goal", "1 for the landmark of the other agent", shape=(LANDMARKS,)),
            Component("word", "1 for the word heard last", shape=(WORDS,)),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the entries of an action."""
        moves = ", ".join(f"{number} {name}" for number, name in enumerate(MOVES))
        return (Component("choice", f"[agent]: move ({moves}) + 5 word", shape=(AGENTS,)),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of each agent, ``(2,)``."""
        first, second = goal_distances(next_state, params)
        mean = 0.5 * (first + second)
        return self.stack(
            -OWN_SHARE * second - (1 - OWN_SHARE) * mean,
            -OWN_SHARE * first - (1 - OWN_SHARE) * mean,
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        first, second = goal_distances(state, params)
        return {
            "success": (first < REACHED) & (second < REACHED),
            "distance": 0.5 * (first + second),
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe what each agent knows."""
        lines = ["Places are metres to the right and up. Each agent sees from where it is:"]
        for i, agent in enumerate(state.agents):
            marks = ", ".join(
                f"{name} at ({float(mark.x - agent.x):+.2f}, {float(mark.y - agent.y):+.2f})"
                for name, mark in zip(LANDMARK_NAMES, params.landmarks, strict=True)
            )
            word = int(state.words[1 - i])
            heard = "nothing yet" if word == NO_WORD else f"'{word}'"
            lines.append(
                f"agent_{i} moves at ({float(agent.vx):+.2f}, {float(agent.vy):+.2f}) m/s, has "
                f"heard {heard}, knows that the other agent should go to the "
                f"{LANDMARK_NAMES[int(params.goals[1 - i])]} landmark, and sees landmarks: {marks}."
            )
        return "\n".join(lines)

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with two words an agent, agent_0 first: its move, one of {', '.join(MOVES)}, "
            f"and the word that it says, a number from 0 to {WORDS - 1}."
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the choice of each agent.

        Raises:
            ValueError: the text is not two words an agent, or one of them is no choice.
        """
        spoken = [str(number) for number in range(WORDS)]
        numbers = np.array(read_words(text, [list(MOVES), spoken] * AGENTS)).reshape(AGENTS, 2)
        return (numbers[:, 0] + len(MOVES) * numbers[:, 1]).astype(np.int32)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the move and the word of each agent."""
        names = list(MOVES)
        choices = [divmod(int(number), len(MOVES)) for number in action]
        return " ".join(f"{names[move]} {word}" for word, move in choices)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the landmarks, and the agents in lighter discs of their landmarks' colours."""
        discs = [
            Disc(mark.x, mark.y, LANDMARK_RADIUS, colour)
            for mark, colour in zip(params.landmarks, COLOURS, strict=True)
        ]
        for agent, goal in zip(state.agents, params.goals, strict=True):
            discs.append(Disc(agent.x, agent.y, AGENT.radius, COLOURS[int(goal)]))
            discs.append(Disc(agent.x, agent.y, 0.5 * AGENT.radius, "white"))
        return draw_discs(discs, self.picture_shape)


def goal_distances(state: State, params: Params) -> list[Float]:
    """Return the distance of each agent from its landmark, m."""
    return [
        distance(agent, select_landmark(params.landmarks, goal))
        for agent, goal in zip(state.agents, params.goals, strict=True)
    ]


class NamingPair(eqx.Module):
    """Says the number of the other agent's landmark, and goes to the landmark that it hears.

    Until the first word is heard, an agent goes to the middle of the landmarks. Of its moves it
    takes the one after which the place ahead of it, at its velocity, is nearest to its goal. Each
    of the two reads only what it sees itself.
    """

    lead: Float = 0.13
    """s ahead for which the velocity counts; an agent that coasts goes on for 0.4 s of it"""

    @classmethod
    def for_task(cls, task: MutualReference) -> NamingPair:
        """Return the player with its own gain."""
        return cls()

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the choices of both, ``(2,)``."""
        choices = []
        for row in view.observation:
            vx, vy = SCALE * row[Entries.VELOCITY]
            marks = SCALE * row[Entries.LANDMARKS].reshape(LANDMARKS, 2)
            goal = landmark_of_word(row[Entries.WORD][:LANDMARKS], marks)
            here = jnp.zeros_like(vx)
            move = best_move(Body(here, here, vx, vy), goal, self.lead)
            word = jnp.argmax(row[Entries.GOAL]).astype(jnp.int32)
            choices.append(move + len(MOVES) * word)
        return jnp.stack(choices), memory

"""Speaker and listener: one knows the landmark to go to, the other moves and has to be told.

The words mean nothing at first: the two have to agree on them. Source: Lowe et al. 2017
(arXiv:1706.02275), cooperative communication, by the rules of ``simple_speaker_listener_v4`` of
MPE2 (github.com/Farama-Foundation/MPE2, version 1.1.1). :mod:`particle_physics` has the equations.

=============  ====================================================================================
observation    one row an agent, ``Box((2, 14))``: speaker first, then listener. Entries 0 to 2 are
               the speaker's: 1 for the landmark to go to, else 0. Entries 3 to 13 are the
               listener's: its velocity, the places of the three landmarks relative to it, x and y
               of each, in parts of 2 m/s and 2 m, farther ones shown as +-2; then 1 for the word
               heard last. What belongs to the other role is 0. MPE2 shows 3 and 11 numbers: it
               shows the landmark as a colour, with .65 and .15 in place of 1 and 0
action         ``MultiDiscrete([5, 5])``: the speaker says word 0, 1 or 2, and its last two choices
               are masked; the listener stays or pushes left, right, down or up with 5 N. A word is
               heard in the next observation
reward         both agents: minus the squared distance of the listener from the landmark, m^2
termination    never: the time limit truncates after 2.5 s
success        the listener's body touches the landmark: it is nearer than 0.115 m
context        the landmark to go to, and the places of the landmarks, uniform in a square of 2 m
               about the middle; x lies in stripes that belong to train and test in turn. The
               listener starts at rest, uniform in the same square
=============  ====================================================================================

Both agents have rows of one shape here, as all agents of a task have; in MPE2 their spaces differ.
The speaker stands somewhere in MPE2, which nobody sees and nothing depends on.
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

LISTENER = Kind(radius=0.075, collides=False)
LANDMARK_RADIUS = 0.04
"""m"""
REACHED = LISTENER.radius + LANDMARK_RADIUS
"""m"""
WORDS = ("red", "green", "blue")
"""Names of the landmarks and, for text players, of the words."""
COLOURS = ("firebrick", "seagreen", "royalblue")
NO_WORD = -1
SCALE = 2.0
"""m and m/s that are shown as 1."""
MAX_OBSERVATION = 2.0


class Entries:
    """Places of the quantities in a row of the observation; see the table."""

    GOAL = slice(0, 3)
    VELOCITY = slice(3, 5)
    LANDMARKS = slice(5, 11)
    WORD = slice(11, 14)


class Params(NamedTuple):
    """The context."""

    landmarks: tuple[Point, ...]
    goal: Int
    """Number of the landmark to go to."""


class State(NamedTuple):
    """The listener's motion, and the word that it has heard last."""

    listener: Body
    word: Int
    """-1 before the first one."""


class SpeakerListener(Task[Params, State]):
    """The task of this file's docstring."""

    period = PERIOD
    measures: ClassVar[dict[str, str]] = {
        "distance": "distance of the listener from the landmark to go to, m"
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        high = np.zeros((2, 14))
        high[0, Entries.GOAL] = 1
        high[1, Entries.VELOCITY] = MAX_OBSERVATION
        high[1, Entries.LANDMARKS] = MAX_OBSERVATION
        high[1, Entries.WORD] = 1
        low = np.where(high == MAX_OBSERVATION, -MAX_OBSERVATION, 0.0)
        self.observation_space = self.box(low, high)
        self.action_space = spaces.MultiDiscrete([len(MOVES)] * 2)
        self.reward_space = self.box(-np.inf, 0, (2,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the places of the landmarks, each x in a stripe of the split, and one of them."""
        u = self.uniform(key, 2 * LANDMARKS + 1)
        goal = jnp.floor(u[-1] * LANDMARKS).astype(jnp.int32)
        return Params(sample_landmarks(u[:-1], split), jnp.minimum(goal, LANDMARKS - 1))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample the place of the listener, who is at rest and has heard nothing."""
        u = 2 * self.uniform(key, 2) - 1
        still = jnp.zeros((), self.dtype)
        return State(Body(u[0], u[1], still, still), jnp.int32(NO_WORD))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Say the word and move the listener by a step."""
        drive = discrete_drive(action[1], LISTENER, self.dtype)
        return State(step_body(state.listener, LISTENER, drive), action[0].astype(jnp.int32))

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Allow the speaker its words and the listener all moves, bool ``(10,)``."""
        words = np.arange(len(MOVES)) < LANDMARKS
        return jnp.asarray(np.concatenate([words, np.ones(len(MOVES), bool)]))

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say which choices of the speaker are words."""
        return f"the speaker says a word from 0 to {LANDMARKS - 1}, not {int(action[0])}"

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what speaker and listener see, ``(2, 14)``; see the table."""
        listener = state.listener
        metres = [listener.vx, listener.vy]
        for mark in params.landmarks:
            metres += [mark.x - listener.x, mark.y - listener.y]
        observed = jnp.clip(self.stack(*metres) * (1 / SCALE), -MAX_OBSERVATION, MAX_OBSERVATION)
        numbers = np.arange(LANDMARKS)
        goal = (params.goal == numbers).astype(self.dtype)
        word = (state.word == numbers).astype(self.dtype)
        speaker_row = jnp.concatenate([goal, jnp.zeros(11, self.dtype)])
        return jnp.stack([speaker_row, jnp.concatenate([jnp.zeros(3, self.dtype), observed, word])])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each agent; see the table."""
        metres = f"{SCALE:g} m"
        axes = "along x and y"
        return (
            Component("goal", "speaker: 1 for the landmark to go to", shape=(LANDMARKS,)),
            Component("velocity", f"listener: its velocity {axes}", f"{SCALE:g} m/s", (2,)),
            Component(
                "landmarks",
                f"listener, [landmark]: from it to the landmark, {axes}",
                metres,
                (LANDMARKS, 2),
            ),
            Component("word", "listener: 1 for the word heard last", shape=(LANDMARKS,)),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the entries of an action."""
        moves = ", ".join(f"{number} {name}" for number, name in enumerate(MOVES))
        return (
            Component("choice", f"[agent]: the speaker's word; the listener's {moves}", shape=(2,)),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of both, ``(2,)``."""
        goal = goal_of(params)
        dx = next_state.listener.x - goal.x
        dy = next_state.listener.y - goal.y
        reward = -(dx * dx + dy * dy)
        return self.stack(reward, reward)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        gap = distance(state.listener, goal_of(params))
        return {"success": gap < REACHED, "distance": gap}

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe what each of the two knows."""
        listener = state.listener
        marks = ", ".join(
            f"{name} at ({float(mark.x - listener.x):+.2f}, {float(mark.y - listener.y):+.2f})"
            for name, mark in zip(WORDS, params.landmarks, strict=True)
        )
        heard = "nothing yet" if state.word == NO_WORD else f"'{WORDS[int(state.word)]}'"
        return (
            f"The speaker knows that the listener is to go to the {WORDS[int(params.goal)]} "
            f"landmark.\nThe listener moves at ({float(listener.vx):+.2f}, "
            f"{float(listener.vy):+.2f}) m/s, has heard {heard}, and sees landmarks, in metres to "
            f"the right and up: {marks}."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with two words: what the speaker says, one of {', '.join(WORDS)}, and the "
            f"listener's move, one of {', '.join(MOVES)}."
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the word and the move.

        Raises:
            ValueError: the text is not two words, or one of them is no choice.
        """
        return np.array(read_words(text, [WORDS, list(MOVES)]), np.int32)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the word and the name of the move."""
        return f"{WORDS[int(action[0])]} {list(MOVES)[int(action[1])]}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the landmarks, the one to go to with a ring, and the listener from above.

        The listener has the colour of the word that it has heard.
        """
        word = int(state.word)
        heard = "white" if word == NO_WORD else COLOURS[word]
        goal = params.landmarks[int(params.goal)]
        marks = [
            Disc(mark.x, mark.y, LANDMARK_RADIUS, colour)
            for mark, colour in zip(params.landmarks, COLOURS, strict=True)
        ]
        listener = Disc(state.listener.x, state.listener.y, LISTENER.radius, heard)
        ring = Disc(goal.x, goal.y, REACHED, "gold")
        return draw_discs([ring, listener, *marks], self.picture_shape)


def goal_of(params: Params) -> Point:
    """Return the landmark to go to."""
    return select_landmark(params.landmarks, params.goal)


class NamingSpeaker(eqx.Module):
    """Speaks the number of the landmark, and goes to the landmark of the number that it hears.

    Until the first word is heard, the listener goes to the middle of the landmarks. Of its moves it
    takes the one after which the place ahead of it, at its velocity, is nearest to its goal. Each
    of the two reads only what it sees itself.
    """

    lead: Float = 0.13
    """s ahead for which the velocity counts; a listener that coasts goes on for 0.4 s of it"""

    @classmethod
    def for_task(cls, task: SpeakerListener) -> NamingSpeaker:
        """Return the player with its own gain."""
        return cls()

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the word and the move, ``(2,)``."""
        speaker, listener = view.observation
        vx, vy = SCALE * listener[Entries.VELOCITY]
        marks = SCALE * listener[Entries.LANDMARKS].reshape(LANDMARKS, 2)
        goal = landmark_of_word(listener[Entries.WORD], marks)
        here = jnp.zeros_like(vx)
        move = best_move(Body(here, here, vx, vy), goal, self.lead)
        word = jnp.argmax(speaker[Entries.GOAL]).astype(jnp.int32)
        return jnp.stack([word, move]), memory

"""The endless T-maze: the sign at a corridor's start tells the turn at its far end, over and over.

A corridor ends in a junction; a turn there, right or wrong, leads into the next corridor, for as
long as the episode lasts. Bakker 2001 (NIPS 14) poses one such corridor, Shchendrigin et al. 2026
(arXiv:2601.15086) the endless chain, to tell two uses of a memory apart:

===========  =======================================================================================
rewriting    a new sign, left or right with probability 1/2 each, at the start of every corridor:
             what was remembered before is worthless and must be overwritten
retention    one sign at the start of the first corridor, good for all: it must survive every later
             corridor
===========  =======================================================================================

A corridor's length, in steps from its start to its junction, is drawn anew for every corridor,
uniform on 1..L, or is always L ("Uniform" and "Fixed" in the paper). No time or place tells which
way to turn, only the sign.

=============  =====================================================================================
action         0 forward, 1 left, 2 right. Forward walks one step; at the junction it meets a wall.
               Left and right turn at the junction; elsewhere they meet a wall. Meeting a wall
               wastes the step and nothing else.
observation    ``Box(0, 1, (3,))``: 1 if a sign is in sight and points left; 1 if one is in sight
               and points right; the part of the corridor that is walked, 0 at its start, 1 at the
               junction. A sign is in sight from the start of its corridor only.
reward         1 for the turn the sign said, 0 for everything else
termination    never: the time limit truncates. The return is the number of right turns in 200
               steps.
success        every turn was right and no step was wasted. In retention a player without a memory
               succeeds in half of the episodes, because one sign, left or right, holds for all of
               an episode
difficulty     a number: its size is L; negative for retention; a half more (10.5, -10.5) for
               corridors always L long
context        none
=============  =====================================================================================

**What is published and what is not.** Modes, lengths and observation are the paper's. Its rewards
are 1 for a right turn, -1 for a wrong one, -0.01 for a move. A wrong turn here is worth 0 and the
maze goes on, because -1 pays a player without a memory for standing still in front of a sign that
its habit would get wrong: it walks when the sign agrees with the turn that it always makes, and
waits for the time limit when it does not
(``tests/memory/test_t_maze.py::test_punished_turns_would_pay_for_standing_still``). With 0, waiting
wins nothing, and time lost is turns lost, so a cost of moving adds nothing.

**Optimum.** A corridor of length l takes at least l + 1 steps, whatever is remembered. Let m be the
expected number of corridors that straight walking finishes in T steps (:func:`expected_turns`,
exact). A player that remembers the sign gets m: 30.44 in 200 steps with L = 10, and nobody gets
more.

**Ceiling without memory.** A policy that sees only the present observation gets at most m / 2. At
the junction the observation is the same whatever the sign was, so it turns left there with one
probability p, and what it did before only decides how long the corridor took, never less than l + 1
steps. With V(t) for the return of t steps, rewriting: V(t) <= E[(p + (1 - p)) / 2 + V(t - l - 1)],
which is the recursion of m / 2. Retention: p m for one sign, (1 - p) m for the other, half each.
Walking straight and turning always left (or at random) reaches it.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.named_actions import NamedActions

ACTIONS = ("forward", "left", "right")
FORWARD, LEFT, RIGHT = range(3)
MAX_LENGTH = 1000
"""Steps of the longest corridor that a difficulty may have."""

FLOOR, WALL, SIGN, WALKER = (245, 245, 240), (70, 70, 78), (0, 114, 178), (213, 94, 0)


class Params(NamedTuple):
    """Empty: contexts do not differ."""


class State(NamedTuple):
    """Position of the walker, and its corridor; int32."""

    position: Int
    """Steps from the corridor's start, in [0, length]."""
    length: Int
    """Steps from the corridor's start to its junction."""
    sign: Int
    """The turn that is right here: 1 left, 2 right."""
    right_turns: Int
    wrong_turns: Int
    wasted: Int
    """Steps that met a wall."""


def expected_turns(longest: int, steps: int, *, fixed: bool = False) -> Fraction:
    """Return the mean number of corridors finished in ``steps`` steps of straight walking, exactly.

    It is the sum over k >= 1 of the probability that k corridors, of l + 1 steps each, fit. Among
    the ``longest**k`` equally likely sequences of lengths, those with sum at most s are counted as
    throws of k dice (de Moivre 1730): sum over j of (-1)**j C(k, j) C(s - longest j, k).

    Args:
        longest: the longest corridor L; lengths are uniform on 1..L.
        steps: time.
        fixed: all corridors have the longest length instead.
    """
    if fixed:
        return Fraction(steps // (longest + 1))
    total = Fraction(0)
    for k in range(1, steps // 2 + 1):  # no corridor takes fewer than two steps
        spare = steps - k
        ways = sum(
            (-1) ** j * comb(k, j) * comb(spare - longest * j, k)
            for j in range(spare // longest + 1)
        )
        total += Fraction(ways, longest**k)
    return total


class TMaze(NamedActions, Task[Params, State]):
    """The task; see the module's head for its rules.

    Attributes:
        rewriting: whether every corridor has a sign of its own; else the first one's holds for all.
        longest: the longest corridor.
        fixed: whether all corridors are that long.
        optimum: best expected return over the card's horizon.
        memoryless_ceiling: best expected return of a policy that sees only the present observation.
    """

    measures: ClassVar[dict[str, str]] = {
        "right_turns": "turns that the sign said",
        "wrong_turns": "turns that it did not",
        "wasted": "steps that met a wall",
    }
    action_names = ACTIONS
    picture_shape = (120, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = 10.0 if difficulty is None else difficulty
        size = abs(number)
        if not (1 <= size <= MAX_LENGTH + 0.5 and size % 0.5 == 0):
            raise ValueError(
                f"A difficulty of {card.id} is the longest corridor, 1 to {MAX_LENGTH}, negative "
                f"for retention, with a half more for corridors all of that length; "
                f"got {difficulty!r}."
            )
        self.rewriting, self.longest, self.fixed = number > 0, int(size), size % 1 != 0
        turns = expected_turns(self.longest, card.horizon, fixed=self.fixed)
        self.optimum, self.memoryless_ceiling = float(turns), float(turns / 2)
        self.observation_space = self.box(0.0, 1.0, (3,))
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.reward_space = self.box(0.0, 1.0, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        return Params()

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start the first corridor, in sight of its sign."""
        length, sign = self._corridor(key)
        none = jnp.int32(0)
        return State(none, length, sign, none, none, none)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Step along the corridor, turn into the next one, or meet a wall."""
        at_junction = state.position == state.length
        turns = at_junction & (action != FORWARD)
        walks = ~at_junction & (action == FORWARD)
        length, sign = self._corridor(key)
        return State(
            position=jnp.where(turns, 0, state.position + walks),
            length=jnp.where(turns, length, state.length),
            sign=jnp.where(turns, sign, state.sign) if self.rewriting else state.sign,
            right_turns=state.right_turns + (turns & (action == state.sign)),
            wrong_turns=state.wrong_turns + (turns & (action != state.sign)),
            wasted=state.wasted + ~(turns | walks),
        )

    def _corridor(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw length and way of a new corridor from one random number.

        Its lowest bit gives the way, the others the length.
        """
        bits = self.bits(key, 1)[0]
        sign = LEFT + (bits & 1).astype(jnp.int32)
        if self.fixed:
            return jnp.int32(self.longest), sign
        # The remainder of 2**31 favours some lengths by less than one part in two million.
        return 1 + ((bits >> 1) % np.uint32(self.longest)).astype(jnp.int32), sign

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return sign left, sign right, part of the corridor walked: ``(3,)``."""
        sign = self._sign(state)
        walked = state.position.astype(self.dtype) / state.length.astype(self.dtype)
        return self.stack(sign == LEFT, sign == RIGHT, walked)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return singles(
            {
                "sign_left": "whether a sign is in sight and points left",
                "sign_right": "whether a sign is in sight and points right",
                "walked": "part of the corridor that is walked: 0 at its start, 1 at the junction",
            }
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the three actions."""
        says = ("walk one step", "turn left at the junction", "turn right at the junction")
        return singles(dict(zip(ACTIONS, says, strict=True)))

    def _sign(self, state: State) -> jax.Array:
        """Return the sign in sight, 1 left or 2 right; 0 if there is none."""
        here = state.position == 0
        if not self.rewriting:
            here &= state.right_turns + state.wrong_turns == 0
        return jnp.where(here, state.sign, 0)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for a right turn."""
        return (next_state.right_turns - state.right_turns).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return false: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: at least one turn, all of them right, and no step wasted."""
        return {
            "success": (state.right_turns > 0) & (state.wrong_turns == 0) & (state.wasted == 0),
            "right_turns": state.right_turns,
            "wrong_turns": state.wrong_turns,
            "wasted": state.wasted,
        }

    # -- host side: no more than the observation shows ---------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe what is in sight."""
        position, length, sign = int(state.position), int(state.length), int(self._sign(state))
        if position == length:
            return "You stand at a junction: the way goes left and right."
        if position:
            return (
                f"You are in a corridor and have walked {position} of the {length} steps to its "
                "junction."
            )
        return "You stand at the start of a corridor. " + (
            (
                f"A sign says: {ACTIONS[sign]} at the next "
                f"junction{'' if self.rewriting else ' and at every other'}."
            )
            if sign
            else "There is no sign here."
        )

    def rules(self) -> str:
        """Return the rules of the maze."""
        sign = (
            "A sign at the start of every corridor says which turn is correct at its junction"
            if self.rewriting
            else "A sign at the start of the first corridor says which turn is correct at every "
            "junction"
        )
        length = (
            f"always {self.longest}" if self.fixed else f"drawn anew for each, 1 to {self.longest}"
        )
        return (
            "T-maze: an endless chain of corridors. 'forward' walks one step. At the junction at a "
            "corridor's end, "
            "'left' or 'right' turns into the next corridor. The length of a corridor in steps is "
            f"{length}.\n"
            f"{sign}; it is in sight from there only. A correct turn earns 1, a wrong one 0. Any "
            "other move meets "
            "a wall and wastes the turn."
        )

    def how_to_act(self) -> str:
        """Tell a text player the three words."""
        return "Answer with one of: " + ", ".join(ACTIONS) + "."

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the corridor from above, with an arrow for the sign if it is in sight.

        All corridors are drawn with the same length, so that the picture does not tell it.
        """
        height, width, _ = self.picture_shape
        picture = np.empty(self.picture_shape, np.uint8)
        picture[:] = WALL
        middle, half, start, junction = height // 2, 14, 30, width - 40
        picture[middle - half : middle + half, start - half : junction + half] = FLOOR
        picture[10 : height - 10, junction - half : junction + half] = FLOOR
        y, x = np.mgrid[:height, :width]
        at = start + (junction - start) * int(state.position) / int(state.length)
        picture[(x - at) ** 2 + (y - middle) ** 2 < 64] = WALKER
        if sign := int(self._sign(state)):
            side = -1 if sign == LEFT else 1  # the walker faces right, so its left is up
            along = side * (y - middle) - half - 4
            picture[(along >= 0) & (along < 24) & (2 * np.abs(x - start) < 24 - along)] = SIGN
        return picture


class RememberTheSign(eqx.Module):
    """The optimal player: it remembers the last sign seen, one number."""

    @classmethod
    def for_task(cls, task: TMaze) -> RememberTheSign:
        """Make the player; it is the same for every mode and length."""
        return cls()

    def initial(self, params: Params) -> jax.Array:
        """Return no sign seen: 0."""
        return jnp.int32(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Walk to the junction, and turn there as the last sign said."""
        left, right, walked = view.observation
        memory = jnp.where(left > 0, LEFT, jnp.where(right > 0, RIGHT, memory)).astype(jnp.int32)
        return jnp.where(walked == 1, memory, FORWARD).astype(jnp.int32), memory


class Habit(eqx.Module):
    """The best player without a memory: it walks straight and turns always left."""

    @classmethod
    def for_task(cls, task: TMaze) -> Habit:
        """Make the player; it is the same for every mode and length."""
        return cls()

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Walk to the junction, and turn left there."""
        return jnp.where(view.observation[2] == 1, LEFT, FORWARD).astype(jnp.int32), memory

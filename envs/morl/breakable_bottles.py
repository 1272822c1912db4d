"""Breakable Bottles: bring two bottles home fast, and leave none on the way.

Five cells in a row, with bottles in the first and the home in the last. A carrier who has two
bottles may drop one. A dropped bottle breaks and lies there for ever, a side effect that the reward
for bottles does not show. Vamplew, Foale, Dazeley & Bignold 2021
(doi:10.1016/j.engappai.2021.104186, section 4.1.2) pose the problem; rules and numbers are those of
``breakable-bottles-v0`` in MO-Gymnasium (github.com/Farama-Foundation/MO-Gymnasium, version 1.3.2).
Differences: rewards are arrays inside their declared space, and a second bottle in a cell does not
leave the space of observations. The peer's documentation has the start at the bottles; in its code
and here it is at home.

=============  ====================================================================================
observation    ``Box(0, 1, (6,))``: cell / 4 (0 has the bottles, 1 is home); bottles carried / 2;
               bottles delivered / 2; bottles that lie in cells 1, 2 and 3, each / 2 and at most 1
action         0 left, 1 right, 2 pick up: a bottle in the first cell, as long as fewer than two are
               carried; the setting ``unbreakable`` also allows it where a dropped bottle lies
reward         (time, bottles, litter): -1; 25 for each bottle delivered by entering the last cell,
               two in an episode; and the change of the potential, which is -1 while any bottle lies
               on the way, else 0
dropping       a carrier of two bottles who leaves cell 1, 2 or 3, to either side, drops one into
               that cell with a chance of 0.1
termination    two bottles are delivered
success        two bottles are delivered within 18 steps, and none lies on the way
context        none: start, cells and chances are always the same
=============  ====================================================================================

18 steps are the shortest way for a carrier who takes one bottle at a time, and the best return for
the weights of the card, by which a bottle on the way costs as much as a delivered one earns. The
setting ``bottles="unbreakable"`` has bottles that survive. The best play then leaves none behind,
for any weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Float, FloatArray, Int, IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.named_actions import NamedActions
from .convex_coverage import convex_coverage_set

LEFT, RIGHT, PICK_UP = range(3)
HOME = 4
"""Last cell; the first one, 0, has the bottles."""
CAPACITY = 2
"""Bottles that can be carried."""
QUOTA = 2
"""Bottles to be delivered."""
DROP_CHANCE = 0.1
BOTTLE_REWARD = 25.0
CAREFUL_STEPS = 18
"""Steps of the shortest way with one bottle at a time."""
WAY_CELLS = (1, 2, 3)
"""Cells in which bottles are dropped."""
CELL = 60
"""Side of a cell of the picture, in pixels."""
FLOOR, WALL, CARRIER, BOTTLE = (225, 215, 195), (150, 120, 90), (60, 90, 160), (40, 140, 80)


class Params(NamedTuple):
    """The constants of the problem."""

    drop_chance: Float


class State(NamedTuple):
    """Cell and bottles."""

    cell: Int
    """In [0, 4]."""
    carried: Int
    """In [0, 2]."""
    delivered: Int
    """In [0, 2]."""
    lying_1: Int
    """Dropped bottles in cell 1."""
    lying_2: Int
    lying_3: Int
    steps: Int
    """Steps so far."""


class BreakableBottles(NamedActions, Task[Params, State]):
    """The task of this file's docstring."""

    measures = {  # noqa: RUF012
        "delivered": "bottles delivered",
        "litter": "bottles that lie on the way",
    }
    action_names = ("left", "right", "pick up")
    picture_shape = (2 * CELL, (HOME + 1) * CELL, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        #: True if a dropped bottle can be picked up again.
        self.unbreakable = card.settings["bottles"] == "unbreakable"
        self.observation_space = self.box(np.zeros(6), np.ones(6))
        self.action_space = spaces.Discrete(len(self.action_names))
        recovered = 1.0 if self.unbreakable else 0.0
        self.reward_space = self.box([-1, 0, -1], [-1, QUOTA * BOTTLE_REWARD, recovered])

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        return Params(jnp.asarray(DROP_CHANCE, self.dtype))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at home with nothing."""
        zero = jnp.int32(0)
        return State(jnp.int32(HOME), zero, zero, zero, zero, zero, zero)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move or pick up a bottle; a move may drop one."""
        return self.move(state, action, self.uniform(key, 1)[0] < params.drop_chance)

    def move(self, state: State, action: jax.Array, clumsy: jax.Array) -> State:
        """Return the next state; ``clumsy`` says that a bottle is dropped if one can be."""
        lying = (state.lying_1, state.lying_2, state.lying_3)
        on_way = (state.cell > 0) & (state.cell < HOME)
        moves = action != PICK_UP
        drops = moves & on_way & (state.carried == CAPACITY) & clumsy
        cell = jnp.clip(
            state.cell + jnp.where(action == RIGHT, 1, jnp.where(action == LEFT, -1, 0)), 0, HOME
        )
        lies_here = False
        for place, count in zip(WAY_CELLS, lying, strict=True):
            lies_here |= (state.cell == place) & (count > 0)
        picks = ~moves & (state.carried < CAPACITY)
        from_floor = picks & lies_here & self.unbreakable
        from_stock = picks & (state.cell == 0)
        carried = state.carried + from_stock + from_floor - drops
        arrives = (cell == HOME) & (state.cell < HOME)
        delivered = state.delivered + jnp.where(arrives, carried, 0)
        change = drops.astype(jnp.int32) - from_floor
        return State(
            cell.astype(jnp.int32),
            jnp.where(arrives, 0, carried).astype(jnp.int32),
            jnp.minimum(delivered, QUOTA).astype(jnp.int32),
            state.lying_1 + jnp.where(state.cell == WAY_CELLS[0], change, 0),
            state.lying_2 + jnp.where(state.cell == WAY_CELLS[1], change, 0),
            state.lying_3 + jnp.where(state.cell == WAY_CELLS[2], change, 0),
            state.steps + 1,
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return cell and bottles, ``(6,)``."""
        return self.stack(
            state.cell * (1 / HOME),
            state.carried * (1 / CAPACITY),
            state.delivered * (1 / QUOTA),
            *(0.5 * jnp.minimum(n, 2) for n in (state.lying_1, state.lying_2, state.lying_3)),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return (time, bottles, litter), ``(3,)``."""
        return self.vector_reward(state, next_state)

    def vector_reward(self, state: State, next_state: State) -> jax.Array:
        """Return the reward ``(3,)`` of a step, which does not depend on the action itself."""
        return self.stack(
            -1,
            BOTTLE_REWARD * (next_state.delivered - state.delivered),
            (litter(state) > 0).astype(jnp.int32) - (litter(next_state) > 0),
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether both bottles are delivered."""
        return state.delivered == QUOTA

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, and where the bottles are."""
        is_clean = litter(state) == 0
        return {
            "success": (state.delivered == QUOTA) & is_clean & (state.steps <= CAREFUL_STEPS),
            "delivered": state.delivered.astype(self.dtype),
            "litter": litter(state).astype(self.dtype),
        }

    def observation_components(self) -> tuple[Component, ...]:
        """List cell and bottles."""
        return (
            Component(
                "cell", "cell of the carrier; 0 has the bottles, the last is home", "4 cells"
            ),
            Component("carried", "bottles carried", "2 bottles"),
            Component("delivered", "bottles delivered", "2 bottles"),
            Component(
                "lying", "bottles that lie in cells 1 to 3, at most 2 shown", "2 bottles", (3,)
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List moves and picking up."""
        return singles(
            {
                "left": "move one cell towards the bottles",
                "right": "move one cell towards home",
                "pick_up": "pick up a bottle",
            }
        )

    # -- what is known of the problem --------------------------------------------------------------

    def convex_coverage_set(
        self, gamma: float = 1.0, drop_chance: float = DROP_CHANCE
    ) -> np.ndarray:
        """Return the expected returns among which each weighting has its best, ``(points, 3)``.

        Dynamic programming over all states and steps to the time limit finds the best for given
        weights. It is exact for breakable bottles. Unbreakable ones are counted up to three a cell.

        Args:
            gamma: discount factor in (0, 1].
            drop_chance: chance to drop a bottle, in [0, 1].

        Raises:
            ValueError: gamma or the chance is out of range.
        """
        if not 0 < gamma <= 1:
            raise ValueError(f"A discount factor is in (0, 1], got {gamma!r}.")
        if not 0 <= drop_chance <= 1:
            raise ValueError(f"A chance is in [0, 1], got {drop_chance!r}.")
        shape = (HOME + 1, CAPACITY + 1, QUOTA + 1, *(4 if self.unbreakable else 2,) * 3)
        next_states, rewards = self._outcomes(shape)
        is_over = np.indices(shape)[2].ravel() == QUOTA
        states = np.arange(len(is_over))
        chance = np.array([1 - drop_chance, drop_chance])

        def best_return(weights: np.ndarray) -> np.ndarray:
            value = np.zeros((len(states), 3))
            for _ in range(self.card.horizon):
                outcomes = rewards + gamma * value[next_states]
                by_action = outcomes[0] * chance[0] + outcomes[1] * chance[1]
                choice = (by_action @ weights).argmax(0)
                value = by_action[choice, states]
                value[is_over] = 0
            return value[np.ravel_multi_index((HOME, 0, 0, 0, 0, 0), shape)]

        return convex_coverage_set(best_return, 3)

    def _outcomes(self, shape: tuple[int, ...]) -> tuple[IntArray, FloatArray]:
        """Return next states ``(2, actions, states)`` and rewards ``(2, actions, states, 3)``.

        The first axis is whether the carrier is clumsy. States are numbered in row-major order;
        more bottles in a cell than the shape counts are counted as its most.
        """
        fields = np.indices(shape, np.int32).reshape(len(shape), -1)
        state = State._make([*fields, np.zeros_like(fields[0])])
        next_states = np.zeros((2, 3, fields.shape[1]), np.int32)
        rewards = np.zeros((2, 3, fields.shape[1], 3))
        for clumsy, action in np.ndindex(2, 3):
            next_state = self.move(state, jnp.int32(action), jnp.bool_(clumsy))
            after = [
                np.minimum(field, n - 1) for field, n in zip(next_state[:6], shape, strict=True)
            ]
            next_states[clumsy, action] = np.ravel_multi_index(after, shape)
            rewards[clumsy, action] = jax.vmap(self.vector_reward)(state, next_state)
        return next_states, rewards

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe cell and bottles."""
        lying = (int(state.lying_1), int(state.lying_2), int(state.lying_3))
        return (
            f"You are in cell {int(state.cell)} of 0 to {HOME}; cell 0 has the bottles, cell "
            f"{HOME} is home. You carry {int(state.carried)} of {CAPACITY} bottles and have "
            f"delivered {int(state.delivered)} of {QUOTA}. Bottles that lie in cells 1, 2 and 3: "
            f"{', '.join(map(str, lying))}. With {CAPACITY} bottles you drop one in these cells "
            f"with a chance of {float(params.drop_chance):g} as you leave the cell."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the cells in a row: the carrier in blue, bottles in green, home in grey below."""
        picture = np.full(self.picture_shape, FLOOR, np.uint8)
        picture[CELL:] = WALL
        picture[:, CELL - 2 :: CELL] = WALL
        lying = (CAPACITY, state.lying_1, state.lying_2, state.lying_3, state.delivered)
        for cell, count in enumerate(lying):
            for number in range(min(int(count), 3)):
                left = cell * CELL + 6 + 17 * number
                picture[CELL + 20 : 2 * CELL - 6, left : left + 12] = BOTTLE
        left = int(state.cell) * CELL + 14
        picture[16 : CELL - 4, left : left + 28] = CARRIER
        for number in range(int(state.carried)):
            picture[4:14, left + 16 * number : left + 16 * number + 10] = BOTTLE
        return picture

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how many bottles lie on the way."""
        return (
            f"both bottles are delivered after {int(state.steps)} steps; bottles on the way: "
            f"{int(info['litter'])}"
        )


def litter(state: State) -> jax.Array:
    """Return the number of bottles that lie on the way, int32."""
    return state.lying_1 + state.lying_2 + state.lying_3


class CarefulCarrier(NamedTuple):
    """The optimal player for the weights of the card.

    It takes one breakable bottle at a time. Of unbreakable ones it takes two, and goes back for one
    that it drops.
    """

    load: Int
    """Bottles to take at once."""

    @classmethod
    def for_task(cls, task: BreakableBottles) -> CarefulCarrier:
        """Make the player for the kind of bottles."""
        return cls(np.int32(CAPACITY if task.unbreakable else 1))

    def initial(self, params: Params) -> tuple[()]:
        """Return nothing: the player has no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the next move."""
        counts = jnp.round(view.observation * np.array([HOME, CAPACITY, QUOTA, 2, 2, 2]))
        cell, carried, delivered, *lying = counts
        is_loaded = carried >= jnp.minimum(self.load, QUOTA - delivered)
        at_bottle = cell == 0
        if_recovered = self.load == CAPACITY
        for place, count in zip(WAY_CELLS, lying, strict=True):
            at_bottle |= (cell == place) & (count > 0) & if_recovered
        return jnp.where(is_loaded, RIGHT, jnp.where(at_bottle, PICK_UP, LEFT)), memory

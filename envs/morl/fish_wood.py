"""FishWood: share 200 steps between fishing and chopping wood, for a meal that needs both.

An agent is at the river or in the woods. At the river it catches a fish with some chance, in the
woods it chops a piece of wood with another. A meal needs one fish and two pieces of wood for the
fire, so that an episode is worth ``min(fish, wood // 2)`` meals. Roijers, Steckelmacher & Nowe 2018
("Multi-objective reinforcement learning for the utility of the return", ALA workshop) pose the
problem; rules and numbers are those of ``fishwood-v0`` in MO-Gymnasium
(github.com/Farama-Foundation/MO-Gymnasium, version 1.3.2), whose chances are 0.1 and 0.9 in every
episode. Its documentation names wood before fish; its rewards, as those here, have fish first.

=============  ====================================================================================
observation    ``Box(0, 1, (6,))``: 1 in the woods, 0 at the river; fish, pieces of wood and steps
               left, each / 200; the chance of a fish; the chance of a piece of wood
action         0 fish, 1 wood: the place of the next step. A step gathers at the place where it
               begins, and moves then, so that the first step is always in the woods
reward         (fish, wood, meals): what the step brings, 0 or 1 of each. A meal is counted as soon
               as its parts are there, so that the returns are fish, wood and min(fish, wood // 2)
termination    never: the time limit truncates after 200 steps
success        there is a meal, and hardly anything is left over: neither the fish nor half the
               pieces of wood are more than the meals by over one
context        both chances: that of a fish is 0.05, 0.10, ... 0.45, that of wood twice such a
               number. Pairs alternate between train and test, as the colours of a chessboard do
=============  ====================================================================================

The score is the number of meals, a utility of the *return*. Its expectation (ESR, expected
scalarised return) ranks policies. The utility of the expected return (SER) is another criterion,
and larger: the mean of a minimum is smaller than the minimum of the means. Linear weights of fish
and wood can state neither, since for them it is best to stay in one place. So the third reward has
all the weight. An optimal policy must know what is gathered so far, so it is observed.

``expected_utility_optimum`` has the exact optimum. Let x = wood - 2 fish. With f more fish and w
more pieces, min(fish + f, (wood + w) // 2) = fish + min(f, (x + w) // 2). So the value of a state
is its fish plus a function of x, the place and the steps left, which dynamic programming finds.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Flag, Float, Int
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.named_actions import NamedActions

FISH, WOOD = range(2)
WOOD_PER_MEAL = 2
"""Pieces of wood that cook a fish."""
STEPS = 200
"""The published time limit, and the scale of what is observed."""
CHANCES = tuple(round(0.05 * i, 2) for i in range(1, 10))
"""Chances of a fish; those of wood are twice as large."""
LEFT_OVER = 1
"""Meals' worth of fish or wood that may be left at the end of a success."""
WATER, TREES, BLANK = (64, 120, 190), (60, 110, 60), (245, 245, 245)
FISH_COLOUR, WOOD_COLOUR, MEAL_COLOUR = (120, 170, 230), (150, 100, 50), (220, 120, 40)
BAR = 60
"""Height of a bar of the picture, in pixels."""


class Params(NamedTuple):
    """The context."""

    fish_chance: Float
    """Chance of a fish in a step at the river."""
    wood_chance: Float
    """Chance of a piece of wood in a step in the woods."""


class State(NamedTuple):
    """The place, and what is gathered."""

    in_woods: Flag
    fish: Int
    wood: Int
    """Pieces of wood."""
    steps: Int
    """Steps so far."""


class FishWood(NamedActions, Task[Params, State]):
    """The task of this file's docstring."""

    measures = {  # noqa: RUF012
        "fish": "fish so far",
        "wood": "pieces of wood so far",
        "meals": "utility of the return so far: min(fish, wood // 2)",
    }
    action_names = ("fish", "wood")

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box(np.zeros(6), np.ones(6))
        self.action_space = spaces.Discrete(2)
        self.reward_space = self.box(np.zeros(3), np.ones(3))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a pair of chances of the split."""
        unit = self.uniform(key, 1)[0]
        pairs = {colour: contexts(colour) for colour in (0, 1)}
        train, test = (
            jnp.asarray(pairs[colour], self.dtype)[
                jnp.floor(unit * len(pairs[colour])).astype(jnp.int32)
            ]
            for colour in (0, 1)
        )
        fish_chance, wood_chance = jnp.where(split == 0, train, test)
        return Params(fish_chance, wood_chance)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start in the woods with nothing."""
        return State(jnp.bool_(True), jnp.int32(0), jnp.int32(0), jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Gather at the present place, then move."""
        return gather(state, action, self.uniform(key, 1)[0], params)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return place, gathered goods, time left and chances, ``(6,)``."""
        share = 1 / STEPS
        left = jnp.maximum(STEPS - state.steps, 0)
        counts = self.stack(state.fish, state.wood, left) * np.asarray(share, self.dtype)
        return jnp.concatenate(
            [
                self.stack(state.in_woods),
                jnp.minimum(counts, 1),  # without a time limit they grow beyond the scale
                self.stack(params.fish_chance, params.wood_chance),
            ]
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return what the step brings of fish, wood and meals, ``(3,)``."""
        return self.stack(
            next_state.fish - state.fish,
            next_state.wood - state.wood,
            meals(next_state) - meals(state),
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, and what was gathered."""
        count = meals(state)
        fish_left = state.fish - count
        wood_left = state.wood - WOOD_PER_MEAL * count
        used = (fish_left <= LEFT_OVER) & (wood_left <= WOOD_PER_MEAL * LEFT_OVER)
        return {
            "success": used & (count > 0),
            "fish": state.fish.astype(self.dtype),
            "wood": state.wood.astype(self.dtype),
            "meals": count.astype(self.dtype),
        }

    def observation_components(self) -> tuple[Component, ...]:
        """List place, goods, time and chances."""
        return (
            Component("in_woods", "1 in the woods, 0 at the river"),
            Component("fish", "fish so far", f"{STEPS} fish"),
            Component("wood", "pieces of wood so far", f"{STEPS} pieces"),
            Component("steps_left", "until the time limit", f"{STEPS} steps"),
            Component("fish_chance", "chance of a fish in a step at the river"),
            Component("wood_chance", "chance of a piece of wood in a step in the woods"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List both places."""
        return singles({"fish": "be at the river in the next step", "wood": "be in the woods"})

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe place, goods, time and chances."""
        place = "in the woods" if state.in_woods else "at the river"
        left = max(STEPS - int(state.steps), 0)
        return (
            f"You are {place}, with {int(state.fish)} fish and {int(state.wood)} pieces of wood; a "
            f"meal needs 1 fish and {WOOD_PER_MEAL} pieces. {left} steps are left. A step at the "
            f"river brings a fish with a chance of {float(params.fish_chance):.2f}, one in the "
            f"woods a piece of wood with a chance of {float(params.wood_chance):.2f}. You gather "
            "where you are, and then go to fish or wood as you choose."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the place, and bars for fish, half the pieces of wood, meals and the time left."""
        picture = np.full(self.picture_shape, BLANK, np.uint8)
        picture[:BAR] = TREES if state.in_woods else WATER
        meal_limit = 0.5 * STEPS
        bars = (
            (FISH_COLOUR, int(state.fish) / meal_limit),
            (WOOD_COLOUR, int(state.wood) / WOOD_PER_MEAL / meal_limit),
            (MEAL_COLOUR, int(meals(state)) / meal_limit),
            ((110, 110, 110), 1 - int(state.steps) / STEPS),
        )
        width = picture.shape[1]
        for number, (colour, share) in enumerate(bars, 1):
            end = round(width * min(max(share, 0.0), 1.0))
            picture[number * BAR + 6 : (number + 1) * BAR - 6, :end] = colour
        return picture


# -- rules -----------------------------------------------------------------------------------------


def gather(state: State, action: jax.Array, unit: jax.Array, params: Params) -> State:
    """Return the next state for a random number ``unit`` in [0, 1)."""
    chance = jnp.where(state.in_woods, params.wood_chance, params.fish_chance)
    gathered = unit < chance
    return State(
        jnp.asarray(action == WOOD),
        state.fish + (gathered & ~state.in_woods),
        state.wood + (gathered & state.in_woods),
        state.steps + 1,
    )


def meals(state: State) -> jax.Array:
    """Return the utility of the goods, int32."""
    return jnp.minimum(state.fish, state.wood // WOOD_PER_MEAL)


@cache
def contexts(colour: int) -> np.ndarray:
    """Return the pairs of chances of a split, ``(pairs, 2)``: 0 is train, 1 test."""
    numbers = range(len(CHANCES))
    return np.array(
        [
            (CHANCES[i], WOOD_PER_MEAL * CHANCES[j])
            for i in numbers
            for j in numbers
            if (i + j) % 2 == colour
        ]
    )


# -- what is known of the problem ------------------------------------------------------------------


def expected_utility_optimum(fish_chance: float, wood_chance: float, steps: int = STEPS) -> float:
    """Return the largest expected number of meals of any policy (ESR), by dynamic programming.

    Args:
        fish_chance: chance of a fish in a step at the river, in [0, 1].
        wood_chance: chance of a piece of wood in a step in the woods, in [0, 1].
        steps: length of the episode, at least 1; the first step is in the woods.

    Raises:
        ValueError: a chance or the number of steps is out of range.
    """
    if not (0 <= fish_chance <= 1 and 0 <= wood_chance <= 1):
        raise ValueError(f"Chances are in [0, 1], got {fish_chance!r} and {wood_chance!r}.")
    if steps < 1:
        raise ValueError(f"An episode has at least 1 step, got {steps!r}.")
    # Values of x = wood - 2 fish in [-2 steps, steps] at the river and in the woods, without the
    # fish so far. Those near both ends are wrong, and too far from 0 to matter.
    surplus = np.arange(-WOOD_PER_MEAL * steps, steps + 1)
    at_river = in_woods = np.minimum(0.0, surplus // WOOD_PER_MEAL)
    for _ in range(steps):
        # The next place is chosen before it is known what this step brings.
        at_river, in_woods = (
            np.maximum(
                *(chance * after(value) + (1 - chance) * value for value in (at_river, in_woods))
            )
            for chance, after in ((fish_chance, _after_fish), (wood_chance, _after_wood))
        )
    return float(in_woods[WOOD_PER_MEAL * steps])


def _after_fish(value: np.ndarray) -> np.ndarray:
    """Return the value of each x with one fish more."""
    return 1 + np.concatenate([value[:1], value[:1], value[:-WOOD_PER_MEAL]])


def _after_wood(value: np.ndarray) -> np.ndarray:
    """Return the value of each x with one piece of wood more."""
    return np.append(value[1:], value[-1])


def expected_return_front(fish_chance: float, wood_chance: float, steps: int = STEPS) -> np.ndarray:
    """Return the expected fish and wood of all shares of time (SER), ``(steps, 2)``.

    No point dominates another. Their hull is the Pareto front of stochastic policies.
    """
    river = np.arange(steps)
    return np.stack([fish_chance * river, wood_chance * (steps - river)], 1)


class BalancedBasket(NamedTuple):
    """The optimal player: it fishes while there is wood for one more fish, else it chops.

    In the woods it leaves one piece earlier, because the present step may bring that. In every
    context it has the value that dynamic programming finds, without knowing the chances.
    """

    @classmethod
    def for_task(cls, task: FishWood) -> BalancedBasket:
        """Make the player; the rule is the same in all contexts."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return nothing: the player has no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the place of the next step."""
        in_woods, fish_share, wood_share, *_ = view.observation
        fish = jnp.round(fish_share * STEPS)
        wood = jnp.round(wood_share * STEPS)
        expected_wood = wood + in_woods
        return jnp.where(expected_wood >= WOOD_PER_MEAL * (fish + 1), FISH, WOOD), memory

"""Fruit Tree: go down a binary tree to the fruit that is best for the weights of six nutrients.

A full binary tree of depth 5, 6 or 7. Each leaf is a fruit with values of protein, carbs, fats,
vitamins, minerals and water. An action goes to the left or the right child. Yang, Sun & Narasimhan
2019 (arXiv:1908.08342) pose the problem, and drew the fruits: points of the sphere of radius 10
with no value below 0, so that no fruit dominates another. Rules and values are those of
``fruit-tree-v0`` of MO-Gymnasium (github.com/Farama-Foundation/MO-Gymnasium, version 1.3.2). The
setting ``preference`` chooses:

* ``sampled``: each episode has weights of the nutrients of its own, and shows them. One policy must
  find the best fruit for any of them, as in the paper.
* ``none``: MO-Gymnasium's task. Rewards are plain, and nothing differs between episodes.

=============  ====================================================================================
observation    ``Box(-1, 1, (d + 6,))``: the way so far, -1 for left, 1 for right, 0 for levels to
               come; then the weights, in the order above. Without the weights if ``preference`` is
               ``none``. MO-Gymnasium shows the same way as (row, index in the row)
action         0 left, 1 right
reward         value of each nutrient of the fruit, multiplied by its weight; 0 before the leaf.
               Their sum is thus the return that the weights ask for. Weights are 1 if
               ``preference`` is ``none``
termination    a leaf is reached, after d steps
success        no fruit of the tree has a larger weighted sum of its values
context        ``sampled``: the weights, with sum 1: cubes of six exponential numbers over their
               sum. That of protein then moves to a band of the split, and the others keep their
               ratios. ``none``: none
difficulty     d: easy 5, medium 6, hard 7
=============  ====================================================================================

The cubes make weights unequal. With uniform weights on the simplex, the fruit that is best on
average earns a third of what reading the weights earns, for they are nearly equal in most episodes.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float, FloatArray, Int
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from ..shared.named_actions import NamedActions

NUTRIENTS = ("protein", "carbs", "fats", "vitamins", "minerals", "water")
DEPTHS = (5, 6, 7)
MAX_VALUE = 10.0
"""Length of the vector of values of every fruit."""
BANDS = 20
"""Bands of the weight of protein, in turn of training and of test episodes."""
MAX_SHARE = 0.9999
"""Largest share of protein before it moves to its band, so that rounding leaves it below 1."""
TINY = 1e-9
"""Added to each sampled number, so that their sum is positive."""
ROUNDING = 1e-3
"""Weighted sums whose difference is smaller are equal."""
VALUES_FILE = Path(__file__).with_name("fruit_tree_values.txt")
BAR_HEIGHT = 110
"""Height of the bar of the best possible fruit, in pixels."""
LEVEL_HEIGHT = 24
"""Pixels between two levels of the tree."""


class Params(NamedTuple):
    """The weights of an episode."""

    weights: FloatArray
    """Weight of each nutrient, ``(6,)``."""
    best_value: Float
    """The largest weighted sum of the values of a fruit."""


class State(NamedTuple):
    """A node of the tree."""

    row: Int
    """Its distance from the root, int32 in [0, d]"""
    index: Int
    """Its number in the row, from the left, int32 in [0, 2 ** row)"""


class FruitTree(NamedActions, Task[Params, State]):
    """The task of this file's docstring, with sampled weights."""

    action_names = ("left", "right")
    measures: ClassVar[dict[str, str]] = {
        "value": "weighted sum of the values of the fruit, 0 before the leaf",
        "best_value": "the largest weighted sum of any fruit",
    }
    picture_shape = (330, 540, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in DEPTHS:
            raise ValueError(
                f"The difficulty of {card.id} is the depth of its tree, one of "
                f"{', '.join(map(str, DEPTHS))}; got {difficulty!r}."
            )
        #: Depth of the tree.
        self.depth = int(difficulty)
        leaves = 2**self.depth
        first_leaf = leaves - 2 ** DEPTHS[0]
        #: Values of each fruit, float64 ``(2 ** d, 6)``.
        self.fruits = np.loadtxt(VALUES_FILE)[first_leaf : first_leaf + leaves]
        self.observation_space = self._observation_box()
        self.action_space = spaces.Discrete(len(self.action_names))
        self.reward_space = self.box(np.zeros(len(NUTRIENTS)), np.full(len(NUTRIENTS), MAX_VALUE))

    def _observation_box(self) -> spaces.Box:
        low = np.concatenate([-np.ones(self.depth), np.zeros(len(NUTRIENTS))])
        return self.box(low, np.ones(len(low)))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the weights."""
        sizes = [-jnp.log1p(-number) for number in self.uniform(key, len(NUTRIENTS))]
        cubes = [size * size * size + TINY for size in sizes]
        other_cubes = reduce(add, cubes[1:])
        share = jnp.minimum(cubes[0] / (cubes[0] + other_cubes), MAX_SHARE)
        first = alternating_bands(share, split, 0.0, 1.0, BANDS).astype(self.dtype)
        scale = (1 - first) / other_cubes
        return self._with_best(self.stack(first, *(scale * cube for cube in cubes[1:])))

    def _with_best(self, weights: jax.Array) -> Params:
        """Return these weights and the value of the best fruit."""
        return Params(weights, jnp.max(self.weighted_values(weights)))

    def weighted_values(self, weights: jax.Array) -> jax.Array:
        """Return the weighted sum of the values of each fruit, ``(2 ** d,)``.

        The terms are added in order, so that each program finds the same bits.
        """
        fruits = self.fruits.astype(self.dtype)
        terms = [weights[j] * fruits[:, j] for j in range(len(NUTRIENTS))]
        return reduce(add, terms)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at the root."""
        return State(jnp.int32(0), jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Go to a child."""
        return State(state.row + 1, 2 * state.index + action.astype(jnp.int32))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the way so far and the weights, ``(d + 6,)``."""
        return jnp.concatenate([self._path(state), params.weights])

    def _path(self, state: State) -> jax.Array:
        """Return -1 for each level where the way goes left, 1 for right, 0 for those to come."""
        levels = np.arange(self.depth, dtype=np.int32)
        levels_below = jnp.maximum(state.row - 1 - levels, 0)
        went_right = (state.index >> levels_below) & 1
        return jnp.where(levels < state.row, 2 * went_right - 1, 0).astype(self.dtype)

    def read_observation(self, observation: jax.Array) -> tuple[State, jax.Array]:
        """Return the node and the weights ``(6,)`` that an observation shows."""
        row = index = jnp.int32(0)
        for step in observation[: self.depth]:
            is_done = jnp.abs(step) > 0.5
            row = row + is_done
            index = jnp.where(is_done, 2 * index + (step > 0), index)
        return State(row, index), self._observed_weights(observation)

    def _observed_weights(self, observation: jax.Array) -> jax.Array:
        return observation[self.depth :]

    def observation_components(self) -> tuple[Component, ...]:
        """List the way, and the weights."""
        path = Component(
            "path", "path so far: -1 left, 1 right, 0 for levels to come", "1", (self.depth,)
        )
        weights = (
            Component(f"{nutrient}_weight", f"weight of {nutrient}", "1") for nutrient in NUTRIENTS
        )
        return (path, *weights)

    def action_components(self) -> tuple[Component, ...]:
        """List the two children."""
        return singles({name: f"go to the {name} child" for name in self.action_names})

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the weighted values of the fruit, ``(6,)``."""
        return params.weights * self._values(next_state)

    def _values(self, state: State) -> jax.Array:
        """Return the values of the fruit at a leaf, else zeros, ``(6,)``."""
        fruits = jnp.asarray(self.fruits, self.dtype)
        return jnp.where(state.row == self.depth, fruits[state.index], 0)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether a leaf is reached."""
        return state.row == self.depth

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: no fruit of the tree has a larger weighted sum."""
        values = self._values(state)
        value = reduce(add, [params.weights[j] * values[j] for j in range(len(NUTRIENTS))])
        return {
            "success": (state.row == self.depth) & (value > params.best_value - ROUNDING),
            "value": value,
            "best_value": params.best_value,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def rules(self) -> str:
        """Tell the tree with all its fruits."""
        lines = [
            f"Go down a binary tree of depth {self.depth}, each time left (L) or right (R), to the "
            f"fruit with the largest weighted sum of its values. The fruits, each after its way, "
            f"with {', '.join(NUTRIENTS)}:",
        ]
        for index, fruit in enumerate(self.fruits):
            path = f"{index:0{self.depth}b}".replace("0", "L").replace("1", "R")
            lines.append(f"{path} {' '.join(f'{value:.2f}' for value in fruit)}")
        return "\n".join(lines)

    def describe(self, state: State, params: Params) -> str:
        """Tell the way so far and the weights."""
        row = int(state.row)
        digits = f"{int(state.index):b}".zfill(row)[:row] if row else ""
        path = ", ".join(self.action_names[int(digit)] for digit in digits)
        lines = [f"You went {path}." if path else "You are at the root of the tree."]
        lines.append(f"Level {row} of {self.depth}.")
        lines.extend(self._terms(params))
        return "\n".join(lines)

    def _terms(self, params: Params) -> list[str]:
        """Return the line that tells the weights."""
        weights = ", ".join(
            f"{nutrient} {float(weight):.4f}"
            for nutrient, weight in zip(NUTRIENTS, params.weights, strict=True)
        )
        return [f"Weights: {weights}."]

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the tree, the way so far in red, and the value of each fruit as a bar.

        The longest bar is that of the best fruit, which is green.
        """
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)

        def place(row: int, index: int) -> tuple[float, float]:
            return (index + 0.5) * width / 2**row, 12 + LEVEL_HEIGHT * row

        state_row, state_index = int(state.row), int(state.index)
        for row in range(self.depth):
            for child in range(2 ** (row + 1)):
                is_passed = row < state_row and state_index >> (state_row - row - 1) == child
                line = (*place(row, child // 2), *place(row + 1, child))
                colour = "firebrick" if is_passed else "silver"
                canvas.line(line, fill=colour, width=3 if is_passed else 1)
        values = self.fruits @ np.asarray(params.weights, np.float64)
        top = place(self.depth, 0)[1] + 8
        for leaf, value in enumerate(values):
            x, _ = place(self.depth, leaf)
            half = max(0.35 * width / len(values), 1.0)
            bottom = top + BAR_HEIGHT * value / values.max()
            colour = "seagreen" if value > values.max() - ROUNDING else "sandybrown"
            canvas.rectangle((x - half, top, x + half, bottom), fill=colour)
        x, y = place(state_row, state_index)
        canvas.ellipse((x - 5, y - 5, x + 5, y + 5), fill="black")
        return np.asarray(image)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say what the fruit is worth, and the best one."""
        return (
            f"a fruit worth {float(info['value']):.3f}; the best one is worth "
            f"{float(params.best_value):.3f}"
        )


class PlainFruitTree(FruitTree):
    """The task without weights."""

    def _observation_box(self) -> spaces.Box:
        return self.box(-np.ones(self.depth), np.ones(self.depth))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context: weights of 1."""
        return self._with_best(jnp.ones(len(NUTRIENTS), self.dtype))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the way so far, ``(d,)``."""
        return self._path(state)

    def _observed_weights(self, observation: jax.Array) -> jax.Array:
        return jnp.asarray(self.card.weights, self.dtype)

    def observation_components(self) -> tuple[Component, ...]:
        """List the way."""
        return super().observation_components()[:1]

    def _terms(self, params: Params) -> list[str]:
        return []

    def pareto_front(self, gamma: float = 1.0) -> np.ndarray:
        """Return the exact front of discounted returns: that of each fruit.

        Args:
            gamma: discount factor in (0, 1].

        Returns:
            float64 ``(2 ** d, 6)``, leaves from the left.

        Raises:
            ValueError: gamma is out of range.
        """
        if not 0 < gamma <= 1:
            raise ValueError(f"A discount factor is in (0, 1], got {gamma!r}.")
        return self.fruits * gamma ** (self.depth - 1)


def make(card: TaskCard, *, difficulty: float | None = None, dtype: str = "float32") -> FruitTree:
    """Make the task of a card: with sampled weights or without weights."""
    task_class = PlainFruitTree if card.settings["preference"] == "none" else FruitTree
    return task_class(card, difficulty=difficulty, dtype=dtype)


class BestFruit(eqx.Module):
    """The optimal player: it goes to the best fruit below the present node."""

    task: FruitTree = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: FruitTree) -> BestFruit:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the next step on the way to the best fruit."""
        state, weights = self.task.read_observation(view.observation)
        leaves = np.arange(2**self.task.depth, dtype=np.int32)
        levels_left = self.task.depth - state.row
        is_below = leaves >> levels_left == state.index
        values = self.task.weighted_values(weights)
        best = jnp.argmax(jnp.where(is_below, values, -1)).astype(jnp.int32)
        return (best >> jnp.maximum(levels_left - 1, 0)) & 1, memory

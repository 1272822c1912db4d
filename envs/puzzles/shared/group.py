"""Puzzles of undoing: generators bring an element of a finite group back to its unit in few steps.

The group is small enough to be listed: breadth-first search numbers its elements from the unit,
which is 0, so every distance is exact.

=============  =====================================================================================
action         a generator, ``Discrete(generators)``; all can always be applied
observation    the puzzle's flags of the element
reward         decrease of the steps that are needed, divided by those needed at first; +1 at the
               unit; in each step -1/2 divided by the steps needed at first
termination    the unit is reached
=============  =====================================================================================

The first part telescopes to 1, so the best return is 3/2.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from . import parsing
from .puzzle_task import Params, PuzzleTask

Element = TypeVar("Element", bound=Hashable)


class Group(Generic[Element]):
    """A group, found by applying generators to its unit.

    Args:
        unit: unit of the group.
        generators: names of the generators.
        after: function of an element and the number of a generator; it returns their product.
    """

    def __init__(
        self, unit: Element, generators: Sequence[str], after: Callable[[Element, int], Element]
    ) -> None:
        self.generators = tuple(generators)
        self.number = {unit: 0}
        """Number of each element, in the order of their distances."""
        self.elements = [unit]
        self.away = [0]
        """Number of steps from each element to the unit, or back.

        Both numbers are equal because generators come with their inverses.
        """
        self.following: list[list[int]] = []
        """Product of each element with each generator."""
        for element in self.elements:
            row = []
            for generator in range(len(self.generators)):
                product = after(element, generator)
                if product not in self.number:
                    self.number[product] = len(self.elements)
                    self.elements.append(product)
                    self.away.append(self.away[len(self.following)] + 1)
                row.append(self.number[product])
            self.following.append(row)

    def moves_to_unit(self, number: int) -> list[int]:
        """Return the fewest generators that bring an element to the unit."""
        moves = []
        while steps_left := self.away[number]:
            generator = next(
                g
                for g, product in enumerate(self.following[number])
                if self.away[product] < steps_left
            )
            number = self.following[number][generator]
            moves.append(generator)
        return moves


class GroupState(NamedTuple):
    """The element that the player has reached."""

    element: jax.Array
    """int32: the number of an element."""


class UndoTask(PuzzleTask[GroupState]):
    """The interactive form.

    An instance has the field ``element``: the number of the element to begin with, not 0.

    Subclasses name the group, and define :meth:`flags`.
    """

    group: Group[Any]
    measures: ClassVar[dict[str, str]] = {"away": "steps that are needed"}

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        group = self.group
        self._following = np.array(group.following, np.int32).ravel()
        self._away = np.array(group.away, np.int32)
        self._flags = self.flags()
        self.action_space = spaces.Discrete(len(group.generators))
        self.observation_space = self.box(0.0, 1.0, self._flags.shape[1:])
        self.reward_space = self.box(-1.5, 2.0)

    @abc.abstractmethod
    def flags(self) -> np.ndarray:
        """Return the observed flags of each element, bool ``(elements, F)``."""

    @abc.abstractmethod
    def observation_components(self) -> tuple[Component, ...]:
        """Describe the flags."""

    def initial(self, key: jax.Array, params: Params) -> GroupState:
        """Begin with the element of the instance."""
        return GroupState(params.instance.element.astype(jnp.int32))

    def transition(
        self, state: GroupState, action: jax.Array, key: jax.Array, params: Params
    ) -> GroupState:
        """Apply a generator."""
        return GroupState(
            jnp.asarray(self._following)[state.element * len(self.group.generators) + action]
        )

    def observation(self, state: GroupState, key: jax.Array, params: Params) -> jax.Array:
        """Return the flags of the element."""
        return jnp.asarray(self._flags)[state.element].astype(self.dtype)

    def reward(
        self,
        state: GroupState,
        action: jax.Array,
        next_state: GroupState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return progress, plus 1 at the unit, minus the price of a step."""
        steps_needed, next_steps_needed = self._steps_needed(state), self._steps_needed(next_state)
        arrived = ((steps_needed > 0) & (next_steps_needed == 0)).astype(self.dtype)
        at_first = self._steps_needed(self.initial(key, params)).astype(self.dtype)
        return ((steps_needed - next_steps_needed).astype(self.dtype) - 0.5) / at_first + arrived

    def terminal(self, state: GroupState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the unit is reached."""
        return state.element == 0

    def info(self, state: GroupState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the unit is reached."""
        return {"success": state.element == 0, "away": self._steps_needed(state)}

    def _steps_needed(self, state: GroupState) -> jax.Array:
        return jnp.asarray(self._away)[state.element]

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return f"Answer with one of {', '.join(self.group.generators)}."

    def parse(self, text: str, state: GroupState, params: Params) -> np.ndarray:
        """Read the name of a generator.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(
            parsing.word(text.strip(), self.group.generators), self.action_space.dtype
        )

    def spell(self, action: np.ndarray, state: GroupState, params: Params) -> str:
        """Return the name of the generator."""
        return self.group.generators[int(action)]

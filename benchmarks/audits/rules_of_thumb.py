"""Cheap policies for tasks whose actions are choices, over which ``yardsticks.py`` searches.

A rule of thumb gives every choice a value, and plays the legal one with the largest. The value is a
sum of

* an entry of a table, one row of which counts at each step, in turn: an order of the choices, or a
  sequence of actions that looks at nothing but the mask;
* weights of up to four entries of the observation;
* a penalty for each time that the choice was played before, so that choices take turns;
* Gumbel noise, so that choices are drawn from the softmax of the rest.

Choices of an action with several parts (``MultiDiscrete``) stand behind each other. Each part takes
its own best one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.episode import action_sizes
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task

ROWS = 8
"""Rows of a table."""
ENTRIES = 4
"""Entries of the observation that a choice looks at."""
PREFERRED_VALUE = 100.0
"""Value of the choice that a sequence names: more than all else."""


class Thumb(NamedTuple):
    """The numbers of a rule of thumb for ``n`` choices."""

    table: Any
    """``(ROWS, n)``"""
    period: Any
    """int32: rows that are used"""
    entries: Any
    """int32 ``(n, ENTRIES)``: indices in the observation"""
    weights: Any
    """``(n, ENTRIES)``"""
    temperature: Any
    """Scale of the noise."""
    again: Any
    """Penalty for each time that the choice was played."""


class ByThumb(eqx.Module):
    """A player that obeys a :class:`Thumb`."""

    rule: Thumb
    sizes: tuple[int, ...] = eqx.field(static=True)
    starts: tuple[int, ...] = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    def initial(self, params: Any) -> tuple[jax.Array, jax.Array]:
        """Return the memory: the number of steps, and how often each choice was played."""
        return jnp.int32(0), jnp.zeros(sum(self.sizes), jnp.float32)

    def act(
        self, memory: tuple[jax.Array, jax.Array], view: View, key: jax.Array
    ) -> tuple[jax.Array, Any]:
        """Return the action of the rule."""
        rule, (step, uses) = self.rule, memory
        observation = view.observation.reshape(-1).astype(jnp.float32)
        value = (
            rule.table[step % rule.period]
            + (rule.weights * observation[rule.entries]).sum(-1)
            - rule.again * uses
        )
        value = value + rule.temperature * jax.random.gumbel(key, value.shape, jnp.float32)
        if view.action_mask is not None:
            value = jnp.where(view.action_mask, value, -jnp.inf)
        ends = np.cumsum(self.sizes)
        best = jnp.stack(
            [
                jnp.argmax(value[end - size : end])
                for end, size in zip(ends, self.sizes, strict=True)
            ]
        )
        choices = best + np.asarray(ends - self.sizes)
        action = (best + np.asarray(self.starts)).reshape(self.shape)
        return action, (step + 1, uses.at[choices].add(1))


class Thumbs:
    """Search over :class:`Thumb`.

    The first candidates are the first legal choice, the last, and the random one.
    """

    def __init__(self, task: Task[Any, Any]) -> None:
        """Look at the spaces of a task.

        Raises:
            ValueError: its observation is no array, its actions are not choices, or it has several
                agents.
        """
        observation_space, space = task.observation_space, task.action_space
        if not isinstance(observation_space, spaces.Box):
            raise ValueError("its observation is no array")
        if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete) or task.card.agents > 1:
            raise ValueError("its actions are not choices of one agent")
        self.sizes = tuple(int(size) for size in action_sizes(space))
        starts = np.atleast_1d(np.asarray(space.start, np.int64))
        self.n, self.entries = sum(self.sizes), math.prod(observation_space.shape)
        self.blocks = self._blocks(task)
        self.tried = 0
        self.player = ByThumb(
            self._zeros(), self.sizes, tuple(map(int, starts.ravel())), space.shape or ()
        )
        self.axes = 0

    def _blocks(self, task: Task[Any, Any]) -> list[int]:
        """Return the starts of the observation's parts that have one entry for each choice."""
        starts, place = [], 0
        components = task.observation_components()
        for component in components if isinstance(components, tuple) else ():
            if component.size == self.n:
                starts.append(place)
            place += component.size
        return starts

    def _zeros(self) -> Thumb:
        return Thumb(
            np.zeros((ROWS, self.n), np.float32),
            np.int32(1),
            np.zeros((self.n, ENTRIES), np.int32),
            np.zeros((self.n, ENTRIES), np.float32),
            np.float32(0),
            np.float32(0),
        )

    def sample(self, rng: np.random.Generator) -> tuple[Thumb, str]:
        """Sample a rule of one of the kinds."""
        self.tried += 1
        order = np.arange(self.n, dtype=np.float32) / self.n
        rule = self._zeros()
        if self.tried <= 3:
            first, last, legal = -order, order, 0 * order
            rule.table[:] = (first, last, legal)[self.tried - 1]
            kind = ("first legal", "last legal", "random legal")[self.tried - 1]
            return rule._replace(temperature=np.float32(self.tried == 3)), kind
        kinds = [
            "constant",
            "sequence",
            "in turn",
            "softmax",
            "linear",
            "linear",
            *["parts"] * (2 * bool(self.blocks)),
        ]
        kind = str(rng.choice(kinds))
        rule.table[:] = rng.permutation(order)
        if kind == "sequence":
            rule = rule._replace(period=np.int32(rng.integers(2, ROWS + 1)))
            for row in rule.table:
                row[self._choices(rng)] = PREFERRED_VALUE
        if kind in ("softmax", "parts") and (kind == "softmax" or rng.random() < 0.3):
            rule.table[:] = rng.normal(size=self.n)
            rule = rule._replace(temperature=np.float32(10 ** rng.uniform(-1, 0.5)))
        if kind == "linear":
            looks = rng.random(self.n) < min(1.0, 3 * 10 ** rng.uniform(-1.5, 0))
            rule.entries[:] = rng.integers(0, self.entries, rule.entries.shape)
            rule.weights[:] = rng.normal(size=rule.weights.shape) * looks[:, None]
        if kind == "parts":
            for place, start in enumerate(rng.permutation(self.blocks)[:ENTRIES]):
                rule.entries[:, place] = start + np.arange(self.n)
                rule.weights[:, place] = rng.choice([-1, 1]) * 10 ** rng.uniform(-1, 1)
        if kind == "in turn" or (kind != "sequence" and rng.random() < 0.3):
            rule = rule._replace(again=np.float32(10 ** rng.uniform(-1, 1)))
        return rule, kind

    def _choices(self, rng: np.random.Generator) -> np.ndarray:
        """Return one random choice of each part."""
        sizes = np.array(self.sizes)
        return np.cumsum(sizes) - sizes + rng.integers(0, sizes)

    def vary(self, numbers: Thumb, rng: np.random.Generator) -> Thumb:
        """Prefer other choices in a row, or change weights, noise and penalty by some 20 %."""
        table, entries, weights = (
            np.array(leaf) for leaf in (numbers.table, numbers.entries, numbers.weights)
        )
        period = int(numbers.period)
        if rng.random() < 0.7:
            row = int(rng.integers(period))
            choice = self._choices(rng)
            if period > 1:
                table[row] = np.minimum(table[row], 1)
                table[row, choice] = PREFERRED_VALUE
            else:
                table[:, choice] += rng.normal()
        if weights.any():
            weights *= np.exp(rng.normal(0, 0.2, weights.shape))
            if rng.random() < 0.5:
                place = rng.integers(self.n), rng.integers(ENTRIES)
                entries[place], weights[place] = rng.integers(self.entries), rng.normal()
        temperature, again = (
            np.float32(number * np.exp(rng.normal(0, 0.2)))
            for number in (numbers.temperature, numbers.again)
        )
        return Thumb(table, numbers.period, entries, weights, temperature, again)

    def players(self, numbers: list[Thumb]) -> ByThumb:
        """Stack rules."""
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *numbers)
        return ByThumb(stacked, self.player.sizes, self.player.starts, self.player.shape)

"""Memories of recurrent PPO: four units that read one observation after another.

========  ==========================================================================================
gru       gated recurrent unit (Cho et al. 2014, arXiv:1406.1078)
lstm      long short-term memory (Hochreiter & Schmidhuber 1997; forget gates of Gers et al. 2000)
mingru    linear recurrence whose gate sees the observation only, so that a whole sequence is
          computed at once by a prefix scan (Feng et al. 2024, arXiv:2410.01201)
gtrxl     a gated transformer block over the last observations (Parisotto et al. 2020,
          arXiv:1910.06764)
========  ==========================================================================================

A memory is a vector, zeros at the start of an episode. A unit returns the next memory; ``read``
returns the part of it that actor and critic read.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FloatArray

from ..networks import Linear, orthogonal

WINDOW = 32
"""Observations that a gated transformer looks back on."""
HEADS = 4


class Unit(Protocol):
    """A memory, as a pytree of weights."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of entries of a memory."""

    @abstractmethod
    def __call__(self, x: jax.Array, memory: jax.Array) -> jax.Array:
        """Return the memory ``(..., size)`` after normalised observations ``(..., features)``.

        Inputs beyond the unit's own are privileged; it ignores them.
        """

    @abstractmethod
    def read(self, memory: jax.Array) -> jax.Array:
        """Return what actor and critic read, ``(..., U)``."""

    @abstractmethod
    def unroll(self, memory: jax.Array, x: jax.Array, over: jax.Array) -> jax.Array:
        """Return what actor and critic read in a rollout, ``(steps, n, U)``.

        Args:
            memory: memories ``(n, size)`` before the first step.
            x: normalised observations ``(steps, n, features)``.
            over: whether the episode ended with the step, bool ``(steps, n)``. The next memory
                begins with zeros.
        """


def reset_memory(memory: jax.Array, over: jax.Array) -> jax.Array:
    """Set the memory to zero where the episode is over."""
    return jnp.where(over[..., None], 0, memory)


def unroll_step_by_step(unit: Unit, memory: jax.Array, x: jax.Array, over: jax.Array) -> jax.Array:
    """Compute :meth:`Unit.unroll` by one call of the unit after another."""

    def step(
        memory: jax.Array, x_and_over: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        x, over = x_and_over
        memory = unit(x, memory)
        return reset_memory(memory, over), unit.read(memory)

    return jax.lax.scan(step, memory, (x, over))[1]


def _apply(x: jax.Array, layer: Linear) -> jax.Array:
    """Apply a layer to the entries of an observation that belong to it."""
    return x[..., : layer.weight.shape[0]] @ layer.weight + layer.bias


def _initial_blocks(
    generator: np.random.Generator, n: int, units: int, bias: list[float]
) -> Linear:
    """Return orthogonal blocks ``(n, U)`` side by side, one for each bias."""
    weight = np.concatenate([orthogonal(generator, n, units) for _ in bias], 1)
    return Linear(weight, np.repeat(np.array(bias, np.float32), units))


class GRU(NamedTuple):
    """A gated recurrent unit with ``U`` units.

    Its weights hold three gates side by side: reset, keep, candidate.
    """

    inputs: Linear
    """``(features, 3 U)``."""
    recurrence: Linear
    """``(U, 3 U)``."""

    @classmethod
    def initial(cls, generator: np.random.Generator, features: int, units: int) -> GRU:
        """Return a unit with orthogonal weights in each gate.

        The bias of the keep gate is positive (Jozefowicz 2015).
        """
        inputs = _initial_blocks(generator, features, units, [0, 1, 0])
        return cls(inputs, _initial_blocks(generator, units, units, [0, 0, 0]))

    @property
    def size(self) -> int:
        """Number of entries of a memory: ``U``."""
        return int(self.recurrence.weight.shape[0])

    def __call__(self, x: jax.Array, memory: jax.Array) -> jax.Array:
        """Return the next memory."""
        of_input = jnp.split(_apply(x, self.inputs), 3, -1)
        of_memory = jnp.split(memory @ self.recurrence.weight + self.recurrence.bias, 3, -1)
        reset = jax.nn.sigmoid(of_input[0] + of_memory[0])
        keep = jax.nn.sigmoid(of_input[1] + of_memory[1])
        return keep * memory + (1 - keep) * jnp.tanh(of_input[2] + reset * of_memory[2])

    def read(self, memory: jax.Array) -> jax.Array:
        """Return the memory itself."""
        return memory

    def unroll(self, memory: jax.Array, x: jax.Array, over: jax.Array) -> jax.Array:
        """Return the readings of a rollout, step by step."""
        return unroll_step_by_step(self, memory, x, over)


class LSTM(NamedTuple):
    """A long short-term memory with ``U`` cells.

    Weights hold input gate, forget gate, candidate, output gate.
    """

    inputs: Linear
    """``(features, 4 U)``."""
    recurrence: Linear
    """``(U, 4 U)``."""

    @classmethod
    def initial(cls, generator: np.random.Generator, features: int, units: int) -> LSTM:
        """Return a unit with orthogonal weights.

        The bias of the forget gate is positive (Jozefowicz 2015).
        """
        inputs = _initial_blocks(generator, features, units, [0, 1, 0, 0])
        return cls(inputs, _initial_blocks(generator, units, units, [0, 0, 0, 0]))

    @property
    def size(self) -> int:
        """Number of entries of a memory, ``2 U``: cells, then outputs."""
        return 2 * int(self.recurrence.weight.shape[0])

    def __call__(self, x: jax.Array, memory: jax.Array) -> jax.Array:
        """Return the next memory."""
        cell, output = jnp.split(memory, 2, -1)
        gates = _apply(x, self.inputs) + output @ self.recurrence.weight + self.recurrence.bias
        write, keep, candidate, show = jnp.split(gates, 4, -1)
        cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(write) * jnp.tanh(candidate)
        return jnp.concatenate([cell, jax.nn.sigmoid(show) * jnp.tanh(cell)], -1)

    def read(self, memory: jax.Array) -> jax.Array:
        """Return the outputs."""
        return memory[..., self.size // 2 :]

    def unroll(self, memory: jax.Array, x: jax.Array, over: jax.Array) -> jax.Array:
        """Return the readings of a rollout, step by step."""
        return unroll_step_by_step(self, memory, x, over)


class MinGRU(NamedTuple):
    """A linear recurrence ``h = (1 - z) h + z c`` of ``U`` units.

    The gate z and the candidate c see the observation only.
    """

    inputs: Linear
    """``(features, 2 U)``: gate, candidate."""

    @classmethod
    def initial(cls, generator: np.random.Generator, features: int, units: int) -> MinGRU:
        """Return a unit whose gates open by half to a thousandth.

        It begins with memories of many lengths.
        """
        inputs = _initial_blocks(generator, features, units, [0, 0])
        inputs.bias[:units] = np.linspace(0, -7, units)
        return cls(inputs)

    @property
    def size(self) -> int:
        """Number of entries of a memory: ``U``."""
        return int(self.inputs.weight.shape[1]) // 2

    def _gates(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the share of the memory that stays, and what is added."""
        gate, candidate = jnp.split(_apply(x, self.inputs), 2, -1)
        return jax.nn.sigmoid(-gate), jax.nn.sigmoid(gate) * candidate

    def __call__(self, x: jax.Array, memory: jax.Array) -> jax.Array:
        """Return the next memory."""
        stays, added = self._gates(x)
        return stays * memory + added

    def read(self, memory: jax.Array) -> jax.Array:
        """Return the memory itself."""
        return memory

    def unroll(self, memory: jax.Array, x: jax.Array, over: jax.Array) -> jax.Array:
        """Return the readings of a rollout by a prefix scan.

        The scan is possible because each step is a linear function of the memory before it.
        """
        stays, added = self._gates(x)
        stays = stays.at[1:].set(reset_memory(stays[1:], over[:-1]))

        def compose(
            first: tuple[jax.Array, jax.Array], second: tuple[jax.Array, jax.Array]
        ) -> tuple[jax.Array, jax.Array]:
            return second[0] * first[0], second[0] * first[1] + second[1]

        factor, offset = jax.lax.associative_scan(compose, (stays, added))
        return factor * memory + offset


class Gate(NamedTuple):
    """The GRU-type gate of a gated transformer.

    It lets a layer's output ``y`` into the stream ``x``.
    """

    of_output: Linear
    """``(U, 3 U)``: reset, update, candidate."""
    of_stream: Linear
    """``(U, 2 U)``: reset, update."""
    of_reset: Linear
    """``(U, U)``."""

    @classmethod
    def initial(cls, generator: np.random.Generator, units: int) -> Gate:
        """Return a gate that is nearly closed.

        The update's bias is -2 (Parisotto et al. 2020, section 3.2).
        """
        return cls(
            _initial_blocks(generator, units, units, [0, -2, 0]),
            _initial_blocks(generator, units, units, [0, 0]),
            _initial_blocks(generator, units, units, [0]),
        )

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Return the new stream."""
        output = jnp.split(_apply(y, self.of_output), 3, -1)
        stream = jnp.split(_apply(x, self.of_stream), 2, -1)
        reset = jax.nn.sigmoid(output[0] + stream[0])
        update = jax.nn.sigmoid(output[1] + stream[1])
        return (1 - update) * x + update * jnp.tanh(output[2] + _apply(reset * x, self.of_reset))


class GTrXL(NamedTuple):
    """One block of a gated transformer with ``U`` units.

    It sees the last :data:`WINDOW` observations and the present one.

    Its memory holds the embedded observations, the newest last, each with a 1 behind it that tells
    it from an empty place, and then the output. Distances to the present enter as a learned bias of
    each head.
    """

    embedding: Linear
    """``(features, U)``."""
    query: Linear
    key: Linear
    """``(U, U)``; that of values is ``value``."""
    value: Linear
    merge: Linear
    distance: FloatArray
    """Bias of each distance, ``(heads, WINDOW + 1)``; the present is the last."""
    attended: Gate
    wide: Linear
    """``(U, 2 U)``."""
    narrow: Linear
    """``(2 U, U)``."""
    passed: Gate

    @classmethod
    def initial(cls, generator: np.random.Generator, features: int, units: int) -> GTrXL:
        """Return a block with orthogonal weights and zero biases of distances.

        Raises:
            ValueError: the units cannot be divided among the heads.
        """
        if units % HEADS:
            raise ValueError(
                f"memory={units} must be a multiple of {HEADS}, the heads of a gated transformer."
            )

        def square() -> Linear:
            return _initial_blocks(generator, units, units, [0])

        return cls(
            embedding=_initial_blocks(generator, features, units, [0]),
            query=square(),
            key=square(),
            value=square(),
            merge=square(),
            distance=np.zeros((HEADS, WINDOW + 1), np.float32),
            attended=Gate.initial(generator, units),
            wide=_initial_blocks(generator, units, 2 * units, [0]),
            narrow=_initial_blocks(generator, 2 * units, units, [0]),
            passed=Gate.initial(generator, units),
        )

    @property
    def _units(self) -> int:
        return int(self.query.weight.shape[0])

    @property
    def size(self) -> int:
        """Number of entries of a memory: the window of embeddings, and the output."""
        return WINDOW * (self._units + 1) + self._units

    def _split(self, memory: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the embedded observations ``(..., WINDOW, U)`` and their occupied places."""
        places = memory[..., : -self._units].reshape(*memory.shape[:-1], WINDOW, self._units + 1)
        return places[..., :-1], places[..., -1] > 0

    def _attend(
        self, queries: jax.Array, places: jax.Array, distance: jax.Array, visible: jax.Array
    ) -> jax.Array:
        """Return the block's outputs ``(..., q, U)`` for ``queries``.

        The queries look over ``places``, ``(..., k, U)``.

        ``distance`` is the bias ``(heads, q, k)``; ``visible`` is bool ``(..., q, k)``.
        """
        query = _heads(_apply(_normalise(queries), self.query))
        normalised = _normalise(places)
        key = _heads(_apply(normalised, self.key))
        value = _heads(_apply(normalised, self.value))
        fits = (
            jnp.einsum("...hqd,...hkd->...hqk", query, key) / np.sqrt(self._units / HEADS)
            + distance
        )
        weight = jax.nn.softmax(jnp.where(visible[..., None, :, :], fits, -jnp.inf))
        attention = jnp.swapaxes(
            jnp.einsum("...hqk,...hkd->...hqd", weight, value), -2, -3
        ).reshape(queries.shape)
        stream = self.attended(queries, jax.nn.relu(_apply(attention, self.merge)))
        inner = jax.nn.relu(_apply(_normalise(stream), self.wide))
        return self.passed(stream, jax.nn.relu(_apply(inner, self.narrow)))

    def __call__(self, x: jax.Array, memory: jax.Array) -> jax.Array:
        """Return the next memory."""
        window, occupied = self._split(memory)
        present = _apply(x, self.embedding)[..., None, :]
        places = jnp.concatenate([window, present], -2)
        occupied = jnp.concatenate([occupied, jnp.ones_like(occupied[..., :1])], -1)
        output = self._attend(present, places, self.distance[:, None], occupied[..., None, :])[
            ..., 0, :
        ]
        next_window = jnp.concatenate([places, occupied[..., None].astype(places.dtype)], -1)[
            ..., 1:, :
        ]
        return jnp.concatenate([next_window.reshape(*output.shape[:-1], -1), output], -1)

    def read(self, memory: jax.Array) -> jax.Array:
        """Return the output."""
        return memory[..., -self._units :]

    def unroll(self, memory: jax.Array, x: jax.Array, over: jax.Array) -> jax.Array:
        """Return the readings of a rollout, all steps at once.

        Each key and value serves every step that sees it.
        """
        window, occupied = self._split(memory)
        observations = jnp.swapaxes(_apply(x, self.embedding), 0, 1)
        places = jnp.concatenate([window, observations], 1)
        steps = x.shape[0]
        age = WINDOW + np.arange(steps)[:, None] - np.arange(WINDOW + steps)
        distance = self.distance[:, np.clip(WINDOW - age, 0, WINDOW)]
        # A step sees the places of its own episode only. Episodes count from that which began
        # before the rollout.
        episode = jnp.pad(jnp.cumsum(over.T, 1)[:, :-1], ((0, 0), (1, 0)))
        episode_of_place = jnp.concatenate([jnp.where(occupied, 0, -1), episode], 1)
        visible = (episode[:, :, None] == episode_of_place[:, None]) & (age >= 0) & (age <= WINDOW)
        return jnp.swapaxes(self._attend(observations, places, distance, visible), 0, 1)


def _normalise(x: jax.Array) -> jax.Array:
    """Return vectors with zero mean and unit variance (layer normalisation)."""
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def _heads(x: jax.Array) -> jax.Array:
    """Divide ``(..., n, U)`` among the heads: ``(..., heads, n, U / heads)``."""
    return jnp.swapaxes(x.reshape(*x.shape[:-1], HEADS, -1), -2, -3)


UNITS: dict[str, Any] = {"gru": GRU, "lstm": LSTM, "mingru": MinGRU, "gtrxl": GTrXL}
"""Units by the name that ``recurrent`` gives them."""

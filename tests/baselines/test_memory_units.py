"""Compare memories of recurrent PPO with their published equations, and train one.

The equations are written out in NumPy.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_tasks import Cue

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.baselines.ppo.memory_units import (
    HEADS,
    LSTM,
    UNITS,
    WINDOW,
    GTrXL,
    MinGRU,
    unroll_step_by_step,
)

UNIT_COUNT = 8
FEATURES = 3


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def with_random_weights(kind: Any, seed: int = 0) -> Any:
    """Return a unit all of whose weights and biases are random.

    None of them can then be left out unseen.
    """
    rng = np.random.default_rng(seed)
    unit = kind.initial(rng, FEATURES, UNIT_COUNT)
    return jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(np.float32) * 0.7, unit)


def apply(layer: Any, x: np.ndarray) -> np.ndarray:
    return x @ layer.weight + layer.bias


def test_lstm_is_the_published_one() -> None:
    unit = with_random_weights(LSTM)
    rng = np.random.default_rng(1)
    x = rng.normal(size=FEATURES)
    cell = rng.normal(size=UNIT_COUNT)
    output = rng.normal(size=UNIT_COUNT)
    write, keep, candidate, show = np.split(
        apply(unit.inputs, x) + apply(unit.recurrence, output), 4
    )
    new = sigmoid(keep) * cell + sigmoid(write) * np.tanh(candidate)
    next_memory = unit(jnp.asarray(x), jnp.concatenate([cell, output]))
    np.testing.assert_allclose(
        next_memory, [*new, *(sigmoid(show) * np.tanh(new))], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(unit.read(next_memory), next_memory[UNIT_COUNT:])


def test_mingru_is_the_published_one() -> None:
    unit = with_random_weights(MinGRU)
    rng = np.random.default_rng(1)
    x = rng.normal(size=FEATURES)
    memory = rng.normal(size=UNIT_COUNT)
    gate, candidate = np.split(apply(unit.inputs, x), 2)
    expected = (1 - sigmoid(gate)) * memory + sigmoid(gate) * candidate
    np.testing.assert_allclose(
        unit(jnp.asarray(x), jnp.asarray(memory)), expected, rtol=1e-4, atol=1e-5
    )


def test_gtrxl_is_the_published_block_over_a_window() -> None:
    """Compute attention head by head and place by place, over the observations so far.

    Old observations leave the window.
    """
    unit = with_random_weights(GTrXL)
    rng = np.random.default_rng(1)
    xs = rng.normal(size=(WINDOW + 4, FEATURES)).astype(np.float32)

    def norm(x: np.ndarray) -> np.ndarray:
        return (x - x.mean()) / np.sqrt(x.var() + 1e-5)

    def gate(weights: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        new = np.split(apply(weights.of_output, y), 3)
        old = np.split(apply(weights.of_stream, x), 2)
        reset = sigmoid(new[0] + old[0])
        update = sigmoid(new[1] + old[1])
        return (1 - update) * x + update * np.tanh(new[2] + apply(weights.of_reset, reset * x))

    memory = jnp.zeros(unit.size)
    size = UNIT_COUNT // HEADS
    for t in range(len(xs)):
        memory = unit(jnp.asarray(xs[t]), memory)
        if t not in (0, 1, 5, WINDOW + 3):
            continue
        embedded = [apply(unit.embedding, x) for x in xs[max(0, t - WINDOW) : t + 1]]
        attention = np.zeros(UNIT_COUNT)
        for head in range(HEADS):
            columns = slice(head * size, (head + 1) * size)
            query = apply(unit.query, norm(embedded[-1]))[columns]
            fits = [
                query @ apply(unit.key, norm(embedding))[columns] / size**0.5
                + unit.distance[head, WINDOW - age]
                for age, embedding in zip(range(len(embedded) - 1, -1, -1), embedded, strict=True)
            ]
            weight = np.exp(fits) / np.exp(fits).sum()
            attention[columns] = sum(
                w * apply(unit.value, norm(embedding))[columns]
                for w, embedding in zip(weight, embedded, strict=True)
            )
        stream = gate(unit.attended, embedded[-1], np.maximum(apply(unit.merge, attention), 0))
        inner = np.maximum(apply(unit.wide, norm(stream)), 0)
        expected = gate(unit.passed, stream, np.maximum(apply(unit.narrow, inner), 0))
        np.testing.assert_allclose(unit.read(memory), expected, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", UNITS)
def test_a_rollout_is_its_steps_and_forgets_at_the_end_of_an_episode(name: str) -> None:
    unit = with_random_weights(UNITS[name])
    rng = np.random.default_rng(2)
    privileged = 2  # features that it must ignore
    x = jnp.asarray(rng.normal(size=(WINDOW + 12, 5, FEATURES + privileged)), jnp.float32)
    over = jnp.asarray(rng.random((WINDOW + 12, 5)) < [0.3, 0.3, 0.1, 0.03, 0])
    first = jnp.asarray(rng.normal(size=(5, unit.size)), jnp.float32)
    readings = unit.unroll(first, x, over)
    np.testing.assert_allclose(
        readings, unroll_step_by_step(unit, first, x, over), rtol=1e-4, atol=1e-5
    )
    t, n = (int(place[0]) for place in np.nonzero(over[:-1]))
    fresh = unit(x[t + 1, n, :FEATURES], jnp.zeros(unit.size))
    np.testing.assert_allclose(readings[t + 1, n], unit.read(fresh), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "steps"), [("lstm", 40_000), ("mingru", 40_000), ("gtrxl", 15_000)]
)
def test_it_remembers_the_cue(name: str, steps: int) -> None:
    """A player without a memory gets half; ``test_recurrent_ppo.py`` tests ``gru``."""
    agent = PPO(num_envs=16, num_steps=32, minibatches=2, hidden=(16,), memory=16, reports=2,
                learning_rate=1e-2, total_steps=steps, recurrent=name)  # fmt: skip
    *_, policy = agent.train(Cue(), seed=0, budget="smoke")
    assert play(Cue(), policy, range(400)).total.mean() > 0.9


def test_heads_must_divide_the_units() -> None:
    with pytest.raises(ValueError, match="memory=6 must be a multiple of 4"):
        GTrXL.initial(np.random.default_rng(0), 3, 6)

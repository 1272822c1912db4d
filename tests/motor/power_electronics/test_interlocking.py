"""Interlocked and delayed converters.

They are compared with diodes by hand, exponentials, Fourier, and the drive without delay.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.machines.dc import Armature
from rlbench_suite.envs.motor.machines.frames import DQ
from rlbench_suite.envs.motor.plants.three_phase import PMSM
from rlbench_suite.envs.motor.power_electronics.interlocking import lost_voltages
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants

TEST = ContextSource(np.int32(1), np.int32(-1))


def begin_episode(task: Any) -> Any:
    with precision(task):
        return jax.jit(partial(begin, task))(seed_key(0), 0, TEST)[0]


@pytest.mark.parametrize("name", ["PermExDcCurrentFinite-v0"])
def test_an_interlocked_bridge_follows_its_diodes(name: str) -> None:
    """Compare all pairs of switch states and both directions of the current.

    They follow the exponentials of R and L.

    A leg that changes its end is at the lower one while current flows out of it and at the upper
    one while it flows into it; then at the new one.
    """
    task: Any = card(name, interlocking="0.03").build(dtype="float64")
    episode = begin_episode(task)
    params, machine = episode.params, episode.params.machine
    ends = {0: (0, 0), 1: (1, 0), 2: (0, 1), 3: (1, 1)}
    with precision(task):
        step = jax.jit(task.advance_period)
        for current in (60.0, -60.0):
            for before in range(4):
                state = episode.state._replace(
                    electrical=Armature(jnp.float64(current)),
                    applied=tuple(map(jnp.float64, ends[before])),
                )
                for after in range(4):
                    # Out of the first leg, into the second.
                    flying = (int(current < 0), int(current > 0))
                    pairs = list(zip(ends[before], ends[after], flying, strict=True))
                    between = [new if old == new else diode for old, new, diode in pairs]
                    truth = current
                    for (left, right), part in ((between, 0.03), (ends[after], 0.97)):
                        steady_current = (
                            60 * (left - right) - machine.magnet_flux * params.speed
                        ) / machine.resistance
                        gone = np.exp(-machine.resistance / machine.inductance * part * task.period)
                        truth = steady_current + (truth - steady_current) * gone
                    got = step(state, jnp.int32(after), params)
                    assert float(got.electrical.armature) == pytest.approx(float(truth), abs=1e-9)
                    assert tuple(map(float, got.applied)) == ends[after]


def test_averaged_interlocking_of_a_bridge_is_a_square_wave_against_the_current() -> None:
    """Over a turn a bridge loses 4/pi t/T U of fundamental along the current.

    That is the first Fourier coefficient.
    """
    plant, share, current = PMSM(), 0.03, DQ(-70.0, 120.0)
    with jax.enable_x64(True):
        angle = jnp.asarray((np.arange(6000) + 0.5) * 2 * np.pi / 6000)
        none = plant.voltage_of_legs((0.0, 0.0, 0.0), current, angle)
        voltage = plant.voltage_of_legs(
            lost_voltages(plant.leg_currents(current, angle), share), current, angle
        )
        total = np.array([jnp.mean(voltage.d - none.d), jnp.mean(voltage.q - none.q)])
    direction = np.array(current) / np.hypot(*current)
    # Edges between samples.
    np.testing.assert_allclose(total, -4 / np.pi * share * plant.link * direction, atol=1e-2)


@pytest.mark.parametrize("name", ["PermExDcSpeed-v0", "PMSMCurrentFinite-v0"])
def test_a_delayed_drive_is_the_other_one_period_later(name: str) -> None:
    """Both drives have the same bits at float64 under the same actions.

    The plain one first applies the action that waited from the start.
    """
    plain, late = (card(name, delay=steps).build(dtype="float64") for steps in ("0", "1"))
    episode, delayed = begin_episode(plain), begin_episode(late)
    params, state = episode.params, delayed.state
    rng = np.random.default_rng(0)
    with precision(plain):
        waited = state.memories.waiting
        actions = rng.integers(0, 8, 20) if plain.finite else rng.uniform(-0.05, 0.05, (20, 1))
        shifted = [waited if plain.finite else np.array(waited), *actions[:-1]]
        now = episode.state
        for plain_action, late_action in zip(shifted, actions, strict=True):
            now = jax.jit(plain.transition)(
                now, jnp.asarray(plain_action), jax.random.key(0), params
            )
            state = jax.jit(late.transition)(
                state, jnp.asarray(late_action), jax.random.key(0), params
            )
            np.testing.assert_allclose(
                jnp.stack(state.electrical), jnp.stack(now.electrical), rtol=1e-12
            )
            np.testing.assert_array_equal(state.applied, now.applied)
        if (
            not plain.finite
        ):  # what waits at the start keeps the currents, but for the machine's tolerances
            fall = state.speed * 0.165 * plain.period / 19e-6
            once = late.transition(delayed.state, jnp.zeros(1), jax.random.key(0), params)
            assert abs(once.electrical.armature) < 0.25 * abs(fall)

"""Converters of one and two quadrants.

Currents are compared with exponentials cut off at zero, diodes by hand, and circuits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card, cards
from rlbench_suite.envs.motor.machines import dc
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants

TEST = ContextSource(np.int32(1), np.int32(-1))
U = 60.0


def start_episode(name: str) -> tuple[Any, Any]:
    """A task at float64 and the state and parameters of an episode."""
    task: Any = card(name).build(dtype="float64")
    with precision(task):
        return task, jax.jit(partial(begin, task))(seed_key(0), 0, TEST)[0]


def relax_current(current: float, volts: float, duration: float, episode: Any) -> float:
    """A, by the exponential of the armature's circuit."""
    machine = episode.params.machine
    steady_current = (volts - machine.magnet_flux * episode.state.speed) / machine.resistance
    return float(
        steady_current
        + (current - steady_current) * np.exp(-machine.resistance / machine.inductance * duration)
    )


@pytest.mark.parametrize(
    "name", ["PermExDcCurrent-v0?converter=1qc", "PermExDcCurrentFinite-v0?converter=1qc"]
)
def test_one_quadrant_is_an_exponential_that_ends_at_zero(name: str) -> None:
    """The diode cuts the current to the larger of the exponential and zero.

    Signs stay constant under constant voltage, so that is exact.
    """
    task, episode = start_episode(name)
    with precision(task):
        step = jax.jit(task.advance_period)
        state, truth, blocked = episode.state, 0.0, 0
        for part in np.random.default_rng(0).integers(0, 2, 300) * (1.0 if task.finite else 0.9):
            truth = max(relax_current(truth, U * part, task.period, episode), 0.0)
            state = step(state, jnp.int32(part) if task.finite else (part,), episode.params)
            # RK4's own error: 1e-6 of it.
            assert float(state.electrical.armature) == pytest.approx(truth, abs=1e-4)
            blocked += truth == 0
    assert 20 < blocked < 280, "it conducts, and it blocks"


def test_one_quadrant_shunt_machines_have_one_circuit_while_the_line_is_blocked() -> None:
    """Armature and field are then in series: (L_a + L_e) di/dt = (L' w - R_a - R_e) i.

    The torque brakes.
    """
    task, episode = start_episode("ShuntDcTorque-v0?converter=1qc")
    machine, speed = episode.params.machine, episode.state.speed
    growth = (
        machine.rotation_inductance * speed - machine.armature_resistance - machine.field_resistance
    )
    growth /= machine.armature_inductance + machine.field_inductance
    with precision(task):
        state = episode.state._replace(electrical=dc.Windings(jnp.float64(-9.0), jnp.float64(9.0)))
        step = jax.jit(task.advance_period)
        for _ in range(300):
            state = step(state, (0.0,), episode.params)
    armature, field = map(float, state.electrical)
    assert armature == pytest.approx(-field, abs=1e-12)
    # Of first order in a step.
    assert field == pytest.approx(9 * np.exp(float(growth) * 300 * task.period), rel=2e-4)
    assert abs(field - 9) > 0.1


def test_two_quadrants_have_no_negative_voltage_but_both_currents() -> None:
    """The duty's voltage, less t/T of the link's against the current, within the link's ends."""
    for share in ("0", "0.03"):
        task, episode = start_episode(f"PermExDcCurrent-v0?converter=2qc&interlocking={share}")
        with precision(task):
            step = jax.jit(task.advance_period)
            for current in (60.0, -60.0):
                for duty in (0.0, 0.01, 0.4, 0.99, 1.0):
                    state = episode.state._replace(electrical=dc.Armature(jnp.float64(current)))
                    volts = U * float(np.clip(duty - np.sign(current) * float(share), 0, 1))
                    after = step(state, (duty,), episode.params).electrical.armature
                    assert float(after) == pytest.approx(
                        relax_current(current, volts, task.period, episode), abs=1e-4
                    )


def test_an_interlocked_half_bridge_follows_its_diodes() -> None:
    """While both switches are off, a current out of the leg takes the lower diode.

    One into it takes the upper diode.
    """
    task, episode = start_episode("PermExDcCurrentFinite-v0?converter=2qc&interlocking=0.03")
    assert task.action_space == gymnasium.spaces.Discrete(2)
    with precision(task):
        step = jax.jit(task.advance_period)
        for current in (60.0, -60.0):
            for before in (0, 1):
                state = episode.state._replace(
                    electrical=dc.Armature(jnp.float64(current)), applied=(jnp.float64(before),)
                )
                for after in (0, 1):
                    diode = after if before == after else int(current < 0)
                    between = relax_current(current, U * diode, 0.03 * task.period, episode)
                    truth = relax_current(between, U * after, 0.97 * task.period, episode)
                    got = step(state, jnp.int32(after), episode.params).electrical.armature
                    assert float(got) == pytest.approx(truth, abs=1e-6)


def test_goals_and_actions_are_within_the_quadrants() -> None:
    """Every choice keeps its quadrants.

    With one quadrant no voltage and no set point is negative, and speeds are forward.
    """
    choices = [
        (drive.id, converter)
        for drive in cards().values()
        for converter in drive.choices.get("converter", ())
        if converter != "4qc"
    ]
    for name, converter in choices:
        task: Any = card(name, converter=converter).build()
        finite = isinstance(task.action_space, gymnasium.spaces.Discrete)
        assert finite or (task.action_space.low.min() == 0 and task.action_space.high.max() == 1)
        assert task.goal.speeds[0] > 0
        assert task.goal.low[0] > 0 or task.kind in ("current", "torque")
        assert converter == "2qc" or min(task.goal.low) >= 0
        assert all(low < high for low, high in zip(task.goal.low, task.goal.high, strict=True))
    assert (
        "number(s) from 0 to 1" in card("PermExDcTorque-v0", converter="2qc").build().how_to_act()
    )


def test_what_no_converter_of_that_kind_does_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"interlocking '0\.01' is not for a converter with one switch and a diode"
    ):
        gymnasium.make("rlsuite/PermExDcCurrent-v0", converter="1qc", interlocking="0.01")
    with pytest.raises(ValueError, match="take solver 'rk4' or 'euler', or converter '2qc'"):
        gymnasium.make("rlsuite/PermExDcCurrent-v0", converter="1qc", solver="exact")
    with pytest.raises(ValueError, match="converter of rlsuite/PermExDcPosition-v0"):
        gymnasium.make("rlsuite/PermExDcPosition-v0", converter="2qc")
    with pytest.raises(
        ValueError, match="rlsuite/PMSMCurrent-v0 got an unexpected keyword argument 'converter'"
    ):
        gymnasium.make("rlsuite/PMSMCurrent-v0", converter="2qc")

"""Supplies: waveforms of rectified mains, and drives on a link of their own.

These are compared with SciPy in volts and amperes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.plants.three_phase import ThreePhase
from rlbench_suite.envs.motor.power_electronics.supply import (
    BRAKING_VOLTAGE,
    SUPPLIES,
    MainsOfThreePhases,
    SinglePhase,
)
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants

TEST = ContextSource(np.int32(1), np.int32(-1))
PEAKS = {"ac1": 1.1, "ac3": np.pi / 3}


def rectify(supply: str, phase: Any) -> Any:
    """Return the highest of the mains' lines less the lowest.

    Their peak to peak voltage is that of ``PEAKS``.
    """
    lines = np.cos(2 * np.pi * (phase - np.arange(3)[:, None] / 3)) / np.sqrt(3)
    if supply == "ac1":
        lines = np.stack([np.sin(2 * np.pi * phase), 0 * phase])
    return PEAKS[supply] * (lines.max(0) - lines.min(0))


def test_rectified_mains() -> None:
    phase = (np.arange(3000) + 0.5) / 3000
    with jax.enable_x64(True):
        single = np.asarray(SinglePhase().source(jnp.asarray(phase)))
        # A pulse begins between lines.
        three = np.asarray(MainsOfThreePhases().source(jnp.asarray(phase + 1 / 12)))
    np.testing.assert_allclose(single, rectify("ac1", phase), atol=1e-14)
    np.testing.assert_allclose(three, rectify("ac3", phase), atol=1e-14)
    assert three.mean() == pytest.approx(1, abs=1e-6), (
        "the mean of six pulses is 3/pi of their peak"
    )


def test_a_link_without_load_charges_as_the_textbook_says() -> None:
    """1 - e^(-t/RC) behind a resistor; behind diodes it stays at the peak that it has reached."""
    with jax.enable_x64(True):
        for name, start, expected in (("rc", 0.3, 1 - 0.7 * np.exp(-2)), ("ac3", 1.1, 1.1)):
            supply = SUPPLIES[name]()

            def rate(t: float, v: Any, supply: Any = supply, name: str = name) -> Any:
                return np.asarray(
                    supply.rate(v, None if name == "rc" else jnp.float64(50 * t), 0.0)
                )

            end = solve_ivp(rate, (0, 8e-3), [start], "DOP853", rtol=1e-10, atol=1e-12).y[0, -1]
            assert end == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    "name", ["PMSMTorque-v0?supply=rc", "PermExDcSpeed-v0?supply=ac1", "SCIMCurrent-v0?supply=ac3"]
)
def test_drives_on_a_link_equal_scipy(name: str) -> None:
    """Compare forty steps at float64, braking among them, with DOP853 of U, i and w.

    C dU/dt is the source's current less the braking resistor's and less P / U, the converters'
    current by the balance of power.
    """
    task: Any = card(name).build(dtype="float64")
    kind = name.partition("=")[2]
    plant = task.plant
    link = plant.link if isinstance(plant, ThreePhase) else plant.unit
    resistance = 0.05 * link**2 / plant.rating
    capacitance = 4e-3 / resistance
    rng = np.random.default_rng(0)
    with precision(task):
        episode = jax.jit(partial(begin, task))(seed_key(0), 0, TEST)[0]
        params, state = episode.params, episode.state
        low = state.memories.link._replace(voltage=jnp.float64(0.9 if kind == "ac1" else 1.152))
        state = state._replace(memories=state.memories._replace(link=low))
        flat, unravel = ravel_pytree((state.electrical, state.speed))

        @jax.jit
        def machine(y: jax.Array, full: Any, volts: jax.Array) -> tuple[jax.Array, jax.Array]:
            electrical, speed = unravel(y)
            voltage = jax.tree.map(lambda u: u * volts / link, full)
            acceleration = params.load.acceleration(
                speed, params.machine.torque(electrical), params.machine.inertia
            )
            derivative = params.machine.derivative(electrical, voltage, speed)
            return ravel_pytree((derivative, acceleration))[0], plant.power(voltage, electrical)

        def rate(t: float, y: np.ndarray, full: Any) -> np.ndarray:
            volts = y[-1]
            moving, power = machine(y[:-1], full, volts)
            braking = 0.0
            if kind == "rc":
                source = (link - volts) / resistance
            else:
                phase = float(state.memories.link.phase) + 50 * t - (1 / 12 if kind == "ac3" else 0)
                source = (
                    max(link * float(rectify(kind, np.array([phase]))[0]) - volts, 0) / resistance
                )
                braking = 10 * max(volts - BRAKING_VOLTAGE * link, 0) / resistance
            return np.append(
                np.asarray(moving), (source - braking - float(power) / volts) / capacitance
            )

        drive_state, y = state, np.append(np.asarray(flat), link * float(low.voltage))
        step = jax.jit(task.transition)
        voltages = []
        for k in range(40):
            action = rng.uniform(-0.05, 0.3, plant.inputs)
            full = plant.voltage(
                plant.limit_action(tuple(action)), drive_state.electrical, drive_state.angle
            )
            full = jax.tree.map(np.float64, full)
            y = solve_ivp(
                partial(rate, full=full),
                (k * task.period, (k + 1) * task.period),
                y,
                "DOP853",
                rtol=1e-10,
                atol=1e-10,
                max_step=0.25 * task.period,
            ).y[:, -1]
            drive_state = step(drive_state, action, jax.random.key(k), params)
            voltages.append(float(drive_state.memories.link.voltage))
        truth, speed = unravel(jnp.asarray(y[:-1]))
        ours = [
            *plant.measure(drive_state.electrical),
            drive_state.speed / plant.speed_limit,
            drive_state.memories.link.voltage,
        ]
        exact = [*plant.measure(truth), speed / plant.speed_limit, y[-1] / link]
    assert np.ptp(voltages) > 1e-3, "the link's voltage moves"
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-5)

"""Drives without sensors of speed and angle: dynamics, what is hidden, and the observer.

The dynamics are computed in the stator's own coordinates.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.control.sensorless_cascade import SensorlessCascade
from rlbench_suite.envs.motor.control.speed_observer import (
    Rotor,
    estimate_from_short_circuit,
    induced_speed,
    track_rotor,
)
from rlbench_suite.envs.motor.machines.dc import Armature
from rlbench_suite.envs.motor.machines.frames import DQ, AlphaBeta, wrap_angle
from rlbench_suite.envs.motor.machines.synchronous import PermanentMagnet
from rlbench_suite.numerics.process import precision

IDS = ("PermExDcSpeedSensorless-v0", "PMSMSpeedSensorless-v0")
PMSM = IDS[1]
each = pytest.mark.parametrize("name", IDS)
three_phase = pytest.mark.parametrize("name", [PMSM])


def begin_episode(task: Any, seed: int = 0) -> Any:
    with precision(task):
        return jax.jit(partial(begin, task))(
            seed_key(seed), 0, ContextSource(np.int32(1), np.int32(-1))
        )[0]


@each
def test_conditions_choose_the_id(name: str) -> None:
    env = gymnasium.make(
        f"rlsuite/{name.replace('Sensorless', '')}", conditions="sensorless"
    ).unwrapped
    assert env.card.id == f"rlsuite/{name}"
    assert env.observation_space.shape == (3 if name.startswith("PermExDc") else 5,)
    with pytest.raises(ValueError, match="Did you mean 'sensorless'"):
        gymnasium.make(f"rlsuite/{name.replace('Sensorless', '')}", conditions="sensorles")


@three_phase
def test_transition_equals_scipy_in_the_stator_s_coordinates(name: str) -> None:
    """Integrate d psi / dt = u - R i, where nothing but the rotor turns.

    Voltages are constant over a step, and angles are not.

    One Runge-Kutta step of 0.1 ms leaves less than 1e-5 of the limits.
    """
    task: Any = card(name).build(dtype="float64")
    episode = begin_episode(task, 3)
    params, state = episode.params, episode.state
    m, load = (jax.tree.map(float, part) for part in (params.machine, params.load))
    angle, speed = float(state.angle), float(state.speed)
    flux = m.magnet_flux * np.exp(1j * angle)
    rng = np.random.default_rng(0)
    step, see = jax.jit(task.transition), jax.jit(task.observation)

    def current(flux: complex, angle: float) -> complex:
        linked = flux * np.exp(-1j * angle)
        return complex(
            (linked.real - m.magnet_flux) / m.inductance_d, linked.imag / m.inductance_q
        ) * np.exp(1j * angle)

    for k in range(30):
        action = rng.uniform(-0.2, 0.2, 2)
        with precision(task):
            state = step(state, action, jax.random.key(k), params)
            observation = np.asarray(see(state, jax.random.key(k), params))
        volts = complex(*action) * 300 / math.sqrt(3)

        def rate(_: float, y: np.ndarray, volts: complex = volts) -> list[float]:
            i = current(complex(*y[:2]), y[3])
            torque = 4.5 * (y[0] * i.imag - y[1] * i.real)
            change = volts - m.resistance * i
            spin = (torque - load.coulomb - load.viscous * y[2]) / (load.inertia + m.inertia)
            return [change.real, change.imag, spin, 3 * y[2]]

        start = [flux.real, flux.imag, speed, angle]
        *parts, speed, angle = solve_ivp(
            rate, (0, 1e-4), start, "DOP853", rtol=1e-11, atol=1e-12
        ).y[:, -1]
        flux = complex(*parts)
    truth = current(flux, angle) / 400
    np.testing.assert_allclose(observation[:2], [truth.real, truth.imag], atol=1e-5)
    np.testing.assert_allclose(observation[3:], action)
    assert float(state.speed) == pytest.approx(speed, rel=1e-7)
    assert np.exp(1j * float(state.angle)) == pytest.approx(np.exp(1j * angle), abs=1e-6)
    assert abs(truth) > 0.02


@three_phase
def test_what_is_hidden_is_not_shown(name: str) -> None:
    """Another angle and speed under the same currents of the phases show nothing different."""
    task: Any = card(name).build(dtype="float64")
    episode = begin_episode(task)
    state, params = episode.state, episode.params
    turned = 50.0 * np.exp(0.9j)
    still_frame = state._replace(electrical=DQ(50.0, 0.0), angle=0.9, speed=60.0)
    turned_frame = state._replace(electrical=DQ(turned.real, turned.imag), angle=0.0, speed=120.0)
    with precision(task):
        views = [
            np.asarray(task.observation(at, None, params)) for at in (still_frame, turned_frame)
        ]
        np.testing.assert_allclose(*views, atol=1e-12)
        assert task.describe(still_frame, params) == task.describe(turned_frame, params)
        np.testing.assert_array_equal(
            task.draw(still_frame, params), task.draw(turned_frame, params)
        )


def test_hidden_speed_of_the_direct_current_machine() -> None:
    task: Any = card(IDS[0]).build()
    episode = begin_episode(task)
    slow, fast = (
        episode.state._replace(electrical=Armature(5.0), speed=speed) for speed in (10.0, 90.0)
    )
    np.testing.assert_array_equal(
        *(task.observation(at, None, episode.params) for at in (slow, fast))
    )
    assert task.describe(slow, episode.params) == task.describe(fast, episode.params)
    np.testing.assert_array_equal(task.draw(slow, episode.params), task.draw(fast, episode.params))


def test_observer_finds_the_rotor() -> None:
    """The observer finds angle and speed from one step without voltage.

    SciPy gives the machine's currents in the stator's coordinates, among them currents that make
    the machine salient. The rotor turns at a constant speed.
    """
    m, speed, period = PermanentMagnet(), 90.0, 1e-4

    def current(flux: complex, angle: float) -> complex:
        linked = flux * np.exp(-1j * angle)
        return complex(
            (linked.real - m.magnet_flux) / m.inductance_d, linked.imag / m.inductance_q
        ) * np.exp(1j * angle)

    angle, before, rotor = 2.5, 0j, Rotor(0.0, 0.0)
    flux = m.magnet_flux * np.exp(1j * angle)
    track = jax.jit(lambda rotor, u, pair: track_rotor(rotor, m, u, pair, period))
    for k in range(600):
        away = 3 * speed * k * period
        # What holds some -60 A along d and 60 A along q, and swings about it.
        volts = (
            0j
            if k == 0
            else (-20 + 5 * math.cos(0.5 * away) + 12j) * np.exp(1j * (2.5 + away + 0.013))
        )

        def rate(
            t: float, y: np.ndarray, volts: complex = volts, start: float = angle
        ) -> list[float]:
            change = volts - m.resistance * current(complex(*y), start + 3 * speed * t)
            return [change.real, change.imag]

        flux = complex(
            *solve_ivp(rate, (0, period), [flux.real, flux.imag], rtol=1e-9, atol=1e-10).y[:, -1]
        )
        angle += 3 * speed * period
        after = current(flux, angle)
        pair = AlphaBeta(before.real, before.imag), AlphaBeta(after.real, after.imag)
        if k == 0:
            rotor = estimate_from_short_circuit(pair[1], m, period)
            assert float(wrap_angle(rotor.angle - angle)) == pytest.approx(0, abs=0.002)
            assert float(rotor.speed) == pytest.approx(speed, rel=0.01)
        else:
            rotor = track(rotor, AlphaBeta(volts.real, volts.imag), pair)
        before = after
    assert abs(before) > 30
    # Trapezoidal means of currents and voltages over a step leave their curvature: a turn of 0.027
    # rad, squared.
    assert float(wrap_angle(rotor.angle - angle)) == pytest.approx(0, abs=0.01)
    assert float(rotor.speed) == pytest.approx(speed, rel=0.005)


def test_induced_speed_in_closed_form() -> None:
    """A current in steady state is the voltage that psi w leaves, by the resistance."""
    machine = card(IDS[0]).build().plant.nominal  # type: ignore[attr-defined]
    speed, volts = 120.0, 21.0
    current = (volts - machine.magnet_flux * speed) / machine.resistance
    assert induced_speed(machine, volts, (current, current), 1e-4) == pytest.approx(speed)


class Blindfolded(SensorlessCascade):
    """The reference player without state and params: it would fail if it looked at them."""

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        return super().act(memory, View(view.observation, None, None, None), key)


@each
def test_the_reference_sees_observations_only_and_succeeds(name: str) -> None:
    task, seeds = card(name).build(), range(256)
    record = play(task, Blindfolded.for_task(task), seeds)
    assert record.info["success"].mean() >= 0.95
    assert not record.terminated.any()
    chance = replay(
        task,
        np.random.default_rng(0).uniform(-1, 1, record.actions.shape).astype(np.float32),
        seeds,
    )
    assert np.quantile(record.total, 0.05) > np.quantile(chance.total, 0.95)

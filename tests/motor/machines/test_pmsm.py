"""The machine's equations against SciPy, closed forms, energy and a peer's recorded run.

All is computed at float64.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import minimize_scalar

from rlbench_suite.envs.motor.machines import pmsm
from rlbench_suite.envs.motor.machines.pmsm import DQ

TAU = 1e-4
MACHINE = pmsm.nominal_machine()


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def run(current: DQ, voltages: np.ndarray, speed: float, substeps: int) -> np.ndarray:
    """Currents after each voltage was held for ``TAU``, shape ``(n, 2)``."""

    def hold_voltage(current: DQ, voltage: jax.Array) -> tuple[DQ, DQ]:
        constant = DQ(*voltage)
        current = jax.lax.fori_loop(
            0,
            substeps,
            lambda _, i: pmsm.step(i, constant, speed, MACHINE, TAU / substeps),
            current,
        )
        return current, current

    program = jax.jit(lambda i, u: jax.lax.scan(hold_voltage, i, u)[1])
    return np.stack(program(jax.tree.map(np.float64, current), np.float64(voltages)), axis=-1)


def matrices(speed: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """dI/dt = A I + B u + c, written as in a textbook's state space."""
    r, ld, lq, psi = MACHINE
    we = pmsm.POLE_PAIRS * speed
    return (
        np.array([[-r / ld, we * lq / ld], [-we * ld / lq, -r / lq]]),
        np.diag([1 / ld, 1 / lq]),
        np.array([0.0, -we * psi / lq]),
    )


def manoeuvre(steps: int) -> np.ndarray:
    """Random voltages up to the limit, redrawn every 20 steps."""
    return np.random.default_rng(0).uniform(-120, 120, (steps // 20, 2)).repeat(20, 0)


@pytest.mark.parametrize("speed", [-150.0, 0.0, 20.0, 150.0])
def test_full_manoeuvre_equals_scipy(speed: float) -> None:
    """Compare 500 steps with DOP853, one Runge-Kutta step a sampling period, and cut finer.

    The task takes one step a period.
    """
    a, b, c = matrices(speed)
    voltages, now, truth = manoeuvre(500), np.array([-30.0, 50.0]), []
    for voltage in voltages:
        now = solve_ivp(
            lambda _, i, u: a @ i + b @ u + c,
            (0, TAU),
            now,
            "DOP853",
            rtol=1e-12,
            atol=1e-9,
            args=(voltage,),
        )
        truth.append(now := now.y[:, -1])
    start = DQ(-30.0, 50.0)
    # Order four leaves (w T)^5 / 5! of the current a step, w the electrical speed: twice that,
    # summed over the run.
    truncation = 2 * 500 * abs(pmsm.POLE_PAIRS * speed * TAU) ** 5 / 120 * np.abs(truth).max()
    assert np.abs(run(start, voltages, speed, 1) - truth).max() < truncation + 1e-6
    assert np.abs(run(start, voltages, speed, 8) - truth).max() < truncation / 8**4 + 1e-6


def test_integrator_is_of_order_four() -> None:
    """Against the matrix exponential; coarse steps, so that truncation stands clear of rounding."""
    speed, voltage, duration = 150.0, np.array([60.0, -80.0]), 4e-3
    a, b, c = matrices(speed)
    augmented = np.zeros((3, 3))
    augmented[:2, :2], augmented[:2, 2] = a, b @ voltage + c
    truth = (expm(augmented * duration) @ [10.0, -20.0, 1.0])[:2]
    errors = []
    for steps in (20, 40, 80, 160):
        now = jax.tree.map(np.float64, DQ(10.0, -20.0))
        for _ in range(steps):
            now = pmsm.step(now, DQ(*voltage), speed, MACHINE, duration / steps)
        errors.append(np.abs(np.array(now) - truth).max())
    orders = np.log2(errors[:-1]) - np.log2(errors[1:])
    assert (np.abs(orders - 4) < 0.15).all(), orders


@pytest.mark.parametrize("speed", [-120.0, 0.0, 75.0])
def test_steady_state(speed: float) -> None:
    current = DQ(-100.0, 150.0)
    voltage = pmsm.steady_voltage(current, speed, MACHINE)
    np.testing.assert_allclose(pmsm.derivative(current, voltage, speed, MACHINE), 0, atol=1e-9)
    # 2 s, 30 of the longest time constant.
    last_current = run(DQ(0.0, 0.0), np.tile(voltage, (20_000, 1)), speed, 1)[-1]
    np.testing.assert_allclose(last_current, current, rtol=1e-6)


def test_torque_is_flux_times_current_and_its_maximum_the_published_one() -> None:
    current = DQ(-80.0, 120.0)
    linked = pmsm.flux(current, MACHINE)
    cross = 1.5 * pmsm.POLE_PAIRS * (linked.d * current.q - linked.q * current.d)
    assert pmsm.torque(current, MACHINE) == pytest.approx(cross, rel=1e-12)

    best = minimize_scalar(
        lambda angle: -pmsm.torque(DQ(-240 * np.sin(angle), 240 * np.cos(angle)), MACHINE),
        bounds=(0, np.pi / 2),
    )
    # gym-electric-motor 3.0.3, Cont-CC-PMSM-v0: the torque limit, reached at nominal current with
    # maximum torque per ampere. The angle is found to 1e-5 at a flat maximum.
    assert -best.fun == pytest.approx(160.6123626293421, rel=1e-9)


def test_power_balance() -> None:
    """Electrical power in = copper losses + mechanical power + what the inductances store."""
    speed, current, voltage = 90.0, DQ(-80.0, 120.0), DQ(-70.0, 40.0)
    rate = pmsm.derivative(current, voltage, speed, MACHINE)
    power = 1.5 * (voltage.d * current.d + voltage.q * current.q)
    copper = 1.5 * MACHINE.resistance * (current.d**2 + current.q**2)
    stored = 1.5 * (
        MACHINE.inductance_d * current.d * rate.d + MACHINE.inductance_q * current.q * rate.q
    )
    assert power == pytest.approx(
        copper + pmsm.torque(current, MACHINE) * speed + stored, rel=1e-12
    )


def test_ten_steps_equal_the_peer_s() -> None:
    """Compare ten steps with gym-electric-motor 3.0.3, Cont-CC-PMSM-v0, at 100 rad/s.

    The phase commands are 0.3 cos(0.2 n + 1.3 k), n = 0..9.

    Its conventions: phase voltages of half the 300 V link, Park's transformation with the angle at
    the start of a step, the voltage then constant in rotor coordinates; currents by their limit. It
    integrates with dopri5 at a relative tolerance of 1e-6, which leaves about 1e-11 here.
    """
    n, k = np.arange(10)[:, None], np.arange(3)
    phases = 0.5 * 300.0 * 0.3 * np.cos(0.2 * n + 1.3 * k)
    alpha = (2 * phases[:, 0] - phases[:, 1] - phases[:, 2]) / 3
    beta = (phases[:, 1] - phases[:, 2]) / np.sqrt(3)
    angle = pmsm.POLE_PAIRS * 100.0 * TAU * np.arange(10)
    voltages = np.stack(
        [
            np.cos(angle) * alpha + np.sin(angle) * beta,
            np.cos(angle) * beta - np.sin(angle) * alpha,
        ],
        axis=-1,
    )
    np.testing.assert_allclose(
        voltages[0] / 150, [0.25893899247443597, 0.19474964194123193], rtol=1e-12
    )
    np.testing.assert_allclose(
        voltages[9] / 150, [0.050158692601332905, -0.13820978665005013], rtol=1e-12
    )
    currents = run(DQ(0.0, 0.0), voltages, 100.0, 16)
    np.testing.assert_allclose(
        currents[0] / 400, [0.026271345672191516, 0.0018380514119272296], rtol=0, atol=1e-11
    )
    np.testing.assert_allclose(
        currents[9] / 400, [0.21511530858472575, -0.04552885652923166], rtol=0, atol=1e-11
    )
    torques = [pmsm.torque(DQ(*currents[i]), MACHINE) / 160.6123626293421 for i in (0, 9)]
    np.testing.assert_allclose(
        torques, [0.0011798814588905695, 0.0027646612034276444], rtol=0, atol=1e-11
    )

"""Iron losses and the thermal network, against closed forms and the matrix exponential."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from scipy.linalg import expm

from rlbench_suite.envs.motor.machines import thermal
from rlbench_suite.envs.motor.machines.frames import DQ
from rlbench_suite.envs.motor.machines.iron_losses import IronLosses
from rlbench_suite.envs.motor.machines.thermal import Network, Temperatures
from rlbench_suite.envs.shared.runge_kutta import rk4


def matrix(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """Return the network by its nodal conductances, in node order.

    dT/dt = A (T - T_coolant) + losses / capacities.
    """
    w, c, m = network.winding_to_iron, network.iron_to_coolant, network.magnets_to_iron
    nodal = np.array([[w, -w, 0], [-w, w + c + m, -m], [0, -m, m]])
    capacities = np.array([network.winding, network.iron, network.magnets])
    return -nodal / capacities[:, None], capacities


def test_steady_temperatures_solve_the_network() -> None:
    network = Network()
    system, capacities = matrix(network)
    losses = np.array([2000.0, 300 * 0.9, 300 * 0.1])
    truth = network.coolant + np.linalg.solve(-system, losses / capacities)
    np.testing.assert_allclose(network.steady(2000.0, 300.0), truth, rtol=1e-12)
    np.testing.assert_allclose(network.rate(Temperatures(*truth), 2000.0, 300.0), 0, atol=1e-12)


def test_transient_equals_the_matrix_exponential() -> None:
    network, losses = Network(), (2000.0, 300.0)
    system, _ = matrix(network)
    start, end = np.array([90.0, 70.0, 65.0]), np.array(network.steady(*losses))
    now = Temperatures(*start)
    for _ in range(1000):
        now = rk4(lambda _, at: network.rate(at, *losses), now, 0.1)
    np.testing.assert_allclose(now, end + expm(system * 100) @ (start - end), rtol=1e-10)


def test_heat_is_conserved() -> None:
    network, now = Network(), Temperatures(130.0, 90.0, 80.0)
    rate = network.rate(now, 1500.0, 400.0)
    stored = (
        network.winding * rate.winding + network.iron * rate.iron + network.magnets * rate.magnets
    )
    assert stored == pytest.approx(
        1500 + 400 - network.iron_to_coolant * (90.0 - network.coolant), rel=1e-12
    )


def test_copper_and_magnets_by_their_published_coefficients() -> None:
    """Copper: R2 / R1 = (234.5 + T2) / (234.5 + T1), IEC 60034-2-1; that constant is rounded."""
    assert thermal.resistance(1.0, 120.0) == pytest.approx((234.5 + 120) / (234.5 + 20), rel=1e-3)
    assert thermal.magnet_flux(1.0, 120.0) == pytest.approx(0.89)


@pytest.mark.parametrize("speed", [5.0, 100.0, -300.0])
def test_iron_losses_by_hand(speed: float) -> None:
    """(k_h w + k_e w^2) psi^2, and a torque against the turning of that power."""
    with jax.enable_x64(True):
        losses, flux, electrical = IronLosses(30.0, 0.05), DQ(0.03, 0.04), 3 * abs(speed)
        power: Any = losses.power(flux, speed, 3)
        assert float(power) == pytest.approx(
            (30 * electrical + 0.05 * electrical**2) * 0.05**2, rel=1e-12
        )
        assert float(losses.torque(flux, speed, 3)) * speed == pytest.approx(
            float(power), rel=1e-12
        )
        assert float(losses.torque(flux, 0.0, 3)) == 0
        np.testing.assert_allclose(losses.torque(flux, -speed, 3), -losses.torque(flux, speed, 3))

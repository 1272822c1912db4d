"""The flux map of a saturated machine.

Its field conserves energy, and has an inverse and a linear limit.
"""

from __future__ import annotations

import numpy as np
import pytest

from rlbench_suite.envs.motor.machines.frames import DQ
from rlbench_suite.envs.motor.machines.saturation import Iron, saturation_of
from rlbench_suite.envs.motor.machines.synchronous import PermanentMagnet

LINEAR = PermanentMagnet()
MAP = saturation_of(LINEAR.inductance_d, LINEAR.inductance_q, LINEAR.magnet_flux, Iron())
CURRENTS = DQ(*np.meshgrid(np.linspace(-400, 400, 41), np.linspace(-400, 400, 41)))
FLUX = MAP.flux(CURRENTS)
STEP = 1e-6
"""V s, of central differences."""


def test_the_currents_are_the_gradient_of_the_energy() -> None:
    along_d = (MAP.energy(DQ(FLUX.d + STEP, FLUX.q)) - MAP.energy(DQ(FLUX.d - STEP, FLUX.q))) / (
        2 * STEP
    )
    along_q = (MAP.energy(DQ(FLUX.d, FLUX.q + STEP)) - MAP.energy(DQ(FLUX.d, FLUX.q - STEP))) / (
        2 * STEP
    )
    np.testing.assert_allclose(along_d, 1.5 * CURRENTS.d, atol=1e-4)
    np.testing.assert_allclose(along_q, 1.5 * CURRENTS.q, atol=1e-4)


def test_reciprocity_and_stiffness_by_differences() -> None:
    ahead, behind = MAP.current(DQ(FLUX.d + STEP, FLUX.q)), MAP.current(DQ(FLUX.d - STEP, FLUX.q))
    dd, qd = (ahead.d - behind.d) / (2 * STEP), (ahead.q - behind.q) / (2 * STEP)
    ahead, behind = MAP.current(DQ(FLUX.d, FLUX.q + STEP)), MAP.current(DQ(FLUX.d, FLUX.q - STEP))
    dq, qq = (ahead.d - behind.d) / (2 * STEP), (ahead.q - behind.q) / (2 * STEP)
    np.testing.assert_allclose(dq, qd, atol=1e-5)
    assert np.abs(dq).max() > 300  # there is cross-saturation to be reciprocal
    for ours, truth in zip(MAP.stiffness(FLUX), (dd, dq, qq), strict=True):
        # Where psi_q is zero, |psi_q| has a corner: it leaves a_dq psi_d^2 STEP / 2, with 0.2 V s
        # at most.
        np.testing.assert_allclose(ours, truth, rtol=1e-8, atol=4e-3)


def test_no_work_around_a_cycle_of_fluxes() -> None:
    """The trapezoidal rule is exact to rounding for a smooth periodic path.

    This one stays clear of the axes.
    """
    turn = np.linspace(0, 2 * np.pi, 4097)
    flux = DQ(0.06 + 0.05 * np.cos(turn), 0.08 + 0.07 * np.sin(turn))
    current = MAP.current(flux)
    power = -current.d * 0.05 * np.sin(turn) + current.q * 0.07 * np.cos(turn)
    assert np.abs(power).max() > 5
    assert np.trapezoid(power, turn) == pytest.approx(0, abs=1e-10)


def test_flux_is_the_inverse_to_the_last_digits() -> None:
    np.testing.assert_allclose(MAP.current(FLUX), CURRENTS, atol=1e-9)
    dd, dq, qq = MAP.inductances(FLUX)
    step = 1e-3
    ahead = MAP.flux(DQ(CURRENTS.d, CURRENTS.q + step))
    behind = MAP.flux(DQ(CURRENTS.d, CURRENTS.q - step))
    np.testing.assert_allclose((ahead.d - behind.d) / (2 * step), dq, atol=1e-11)
    # The corner at psi_q = 0 leaves a_dq psi_d^2 L_q^3 step / 2.
    np.testing.assert_allclose((ahead.q - behind.q) / (2 * step), qq, atol=1e-8)
    assert (dd * qq > dq * dq).all()  # the energy is convex: fluxes and currents are one to one


def test_small_currents_see_the_linear_machine() -> None:
    small = DQ(np.array([-1e-3, 0.0, 2e-3]), np.array([3e-3, -1e-3, 0.0]))
    linear, ours = LINEAR.flux(small), MAP.flux(small)
    # What the next order leaves: a_dd / a_d0 of psi^2 and a_dq x |y|^3, below 1e-5 of the fluxes of
    # these currents.
    np.testing.assert_allclose(
        np.array(ours.d) - LINEAR.magnet_flux, linear.d - LINEAR.magnet_flux, rtol=1e-4
    )
    np.testing.assert_allclose(ours.q, linear.q, rtol=1e-4)


def test_nominal_current_saturates() -> None:
    """L_q falls to two thirds or less, and a tenth of the magnets' flux goes with it.

    The machine's maps are described so.
    """
    flux = MAP.flux(DQ(0.0, 240.0))
    assert 0.5e-3 < flux.q / 240 < 0.8e-3
    assert 0.8 < flux.d / LINEAR.magnet_flux < 0.95
    demagnetised = MAP.with_magnets(0.5 * LINEAR.magnet_flux).flux(DQ(0.0, 0.0))
    np.testing.assert_allclose(demagnetised, [0.5 * LINEAR.magnet_flux, 0], atol=1e-15)

"""Check Dryden turbulence against its spectra, matrix exponentials and long seeded runs.

The spectra are those of the specification, the matrix exponentials SciPy's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, signal
from scipy.linalg import expm, solve_discrete_lyapunov

from rlbench_suite.envs.quadcopter.physics import aerodynamics, wind
from rlbench_suite.envs.quadcopter.physics.rigid_body import RigidBody, rotation_matrix
from rlbench_suite.envs.quadcopter.physics.vehicles import CRAZYFLIE_AIR
from rlbench_suite.envs.quadcopter.physics.wind import Gusts, Wind

SPEED = 4.0
STEADY = Wind(SPEED, 0.0)
NO_TURBULENCE = Gusts(*[0.0] * 5)
STEP = 0.01
FOOT = 0.3048

# The specification at 10 feet above ground, in feet: 20-foot wind by the logarithmic profile, then
# its formulas.
HORIZONTAL_LENGTH = 10 / (0.177 + 0.000823 * 10) ** 1.2 * FOOT
TWENTY_FEET = SPEED * math.log(20 / 0.15) / math.log(10 / 0.15)
VERTICAL_DEVIATION = 0.1 * TWENTY_FEET
DEVIATION = VERTICAL_DEVIATION / (0.177 + 0.000823 * 10) ** 0.4
DEVIATIONS = np.array([DEVIATION, DEVIATION, VERTICAL_DEVIATION])
CONSTANTS = np.array([HORIZONTAL_LENGTH, HORIZONTAL_LENGTH, 10 * FOOT]) / SPEED


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def spectra(omega: np.ndarray) -> list[np.ndarray]:
    """Return one-sided spectral densities (m^2/s by rad) along, across and vertical.

    They are those of MIL-F-8785C, in time instead of space.
    """
    forms = []
    for i, (s, t) in enumerate(zip(DEVIATIONS, CONSTANTS, strict=True)):
        x = (omega * t) ** 2
        forms.append(
            s**2 * (2 * t / np.pi / (1 + x) if i == 0 else t / np.pi * (1 + 3 * x) / (1 + x) ** 2)
        )
    return forms


def autocorrelation(times: np.ndarray) -> np.ndarray:
    """``(3, times)``: the cosine transforms of the spectra."""
    by_constant = times / CONSTANTS[:, None]
    shape = 1 - 0.5 * by_constant * np.array([[0], [1], [1]])
    return DEVIATIONS[:, None] ** 2 * np.exp(-by_constant) * shape


def step_matrices(duration: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a step as matrices.

    They are the next state by state and by noise, and the wind's fluctuation by state.
    """

    steady = Wind(jnp.asarray(SPEED), jnp.asarray(0.0))  # arrays: of the precision that is set

    def outputs(gusts: Any) -> np.ndarray:
        return np.array(wind.air_velocity(gusts, steady), float) - [SPEED, 0, 0]

    zero, rows = jnp.zeros(5), jnp.eye(5)
    states = np.array([wind.blow(Gusts(*row), steady, zero, duration) for row in rows]).T
    noise = np.array([wind.blow(Gusts(*zero), steady, row, duration) for row in rows]).T
    return states, noise, np.array([outputs(Gusts(*row)) for row in rows]).T


def rate_matrices() -> tuple[np.ndarray, np.ndarray]:
    """Return the rates of the filters' states by state, and the intensity of their noise.

    Both follow from the transfer functions.
    """
    rates, noise = np.zeros((5, 5)), np.zeros((5, 5))
    rates[0, 0] = -1 / CONSTANTS[0]
    noise[0, 0] = 2 * DEVIATIONS[0] ** 2 / CONSTANTS[0]
    for place, (s, t) in zip((1, 3), zip(DEVIATIONS[1:], CONSTANTS[1:], strict=True), strict=True):
        rates[place : place + 2, place : place + 2] = np.array([[-1, 0], [1, -1]]) / t
        noise[place, place] = s**2 / t
    return rates, noise


def test_the_spectra_hold_the_variance_and_the_autocorrelation_is_their_transform() -> None:
    """The closed forms that the other tests stand on, against quadrature."""
    for i in range(3):
        total, _ = integrate.quad(lambda w, i=i: spectra(np.float64(w))[i], 0, np.inf)
        assert total == pytest.approx(DEVIATIONS[i] ** 2, rel=1e-6)
        for time in (0.1, 0.7, 3.0):
            lagged, _ = integrate.quad(
                lambda w, i=i: spectra(np.float64(w))[i], 0, np.inf, weight="cos", wvar=time
            )
            assert lagged == pytest.approx(autocorrelation(np.array([time]))[i, 0], abs=1e-6)


def test_the_transfer_functions_are_those_of_the_spectra() -> None:
    """Each output's frequency response times its noise is the specified density."""
    rates, noise = rate_matrices()
    _, _, outputs = step_matrices(STEP)
    for omega in (0.01, 0.3, 2.0, 40.0):
        response = outputs @ np.linalg.inv(1j * omega * np.eye(5) - rates)
        density = np.real(response @ noise @ response.conj().T) / np.pi  # one-sided, by rad/s
        np.testing.assert_allclose(np.diag(density), spectra(np.array(omega)), rtol=1e-12)


@pytest.mark.parametrize("duration", [1e-4, STEP, 0.05, 0.1])
def test_a_step_is_exact_whatever_its_length(duration: float) -> None:
    """Decay and gathered noise, against the matrix exponential (Van Loan 1978)."""
    rates, noise = rate_matrices()
    states, gathered, _ = step_matrices(duration)
    block = expm(np.block([[-rates, noise], [np.zeros((5, 5)), rates.T]]) * duration)
    decay = block[5:, 5:].T
    np.testing.assert_allclose(states, decay, rtol=1e-12, atol=1e-14)
    covariance = decay @ block[:5, 5:]
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))) + 1e-300
    # The exponential's own rounding is what is left: of variances that go with the cube of the
    # step.
    np.testing.assert_allclose(
        gathered @ gathered.T / scale, covariance / scale, atol=1e-12 / duration
    )


def test_the_stationary_law_is_the_specified_one_and_a_start_has_it() -> None:
    states, noise, outputs = step_matrices(STEP)
    stationary = solve_discrete_lyapunov(states, noise @ noise.T)
    start_factor = np.array([wind.stationary_gusts(STEADY, row) for row in jnp.eye(5)]).T
    np.testing.assert_allclose(start_factor @ start_factor.T, stationary, rtol=1e-9, atol=1e-12)
    for steps in (0, 1, 30, 500):
        lagged = outputs @ np.linalg.matrix_power(states, steps) @ stationary @ outputs.T
        np.testing.assert_allclose(
            np.diag(lagged), autocorrelation(np.array([steps * STEP]))[:, 0], rtol=1e-8
        )
        np.testing.assert_allclose(lagged - np.diag(np.diag(lagged)), 0, atol=1e-12)


def test_single_precision_keeps_the_law() -> None:
    """A series keeps the digits of a short step's noise.

    In closed form it is the difference of nearly equal numbers.
    """
    with jax.enable_x64(False):
        _, noise, _ = step_matrices(STEP)
    _, exact, _ = step_matrices(STEP)
    np.testing.assert_allclose(noise, exact, rtol=2e-5, atol=1e-9)


def test_long_seeded_runs_have_the_spectra() -> None:
    """Variance, autocorrelation and Welch's spectrum of 64 runs of 655 s agree.

    Runs have the task's own step and precision.
    """
    runs, steps = 64, 65_536

    def run(key: Any) -> Any:
        def step(gusts: Gusts, t: Any) -> Any:
            normals = jax.random.normal(jax.random.fold_in(key, t), (wind.NORMALS,), np.float32)
            return wind.blow(gusts, STEADY, normals, STEP), jnp.stack(
                wind.air_velocity(gusts, STEADY)
            )

        first = wind.stationary_gusts(
            STEADY, jax.random.normal(jax.random.fold_in(key, steps), (5,), np.float32)
        )
        return jax.lax.scan(step, first, jnp.arange(steps))[1]

    with jax.enable_x64(False):
        velocity = np.asarray(
            jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), runs)), float
        )
    velocity -= [SPEED, 0, 0]
    # A run of 655 s holds some 60 independent gusts of 6 s along, so 64 runs tell a variance to 2.5
    # %.
    np.testing.assert_allclose(velocity.var((0, 1)), DEVIATIONS**2, rtol=0.08)
    for lag in (50, 200):
        lagged = (velocity[:, lag:] * velocity[:, :-lag]).mean((0, 1))
        np.testing.assert_allclose(
            lagged, autocorrelation(np.array([lag * STEP]))[:, 0], atol=0.08 * DEVIATIONS.max() ** 2
        )
    frequency, density = signal.welch(velocity, 1 / STEP, nperseg=8192, axis=1, detrend=False)
    # From 0.1 to 5 Hz: resolved by segments of 82 s, and far below the rate of sampling. Bands of a
    # third of a decade average hundreds of estimates each.
    for low in np.geomspace(0.1, 2.5, 5):
        band = (frequency >= low) & (frequency < 2 * low)
        expected = [2 * np.pi * form[band].mean() for form in spectra(2 * np.pi * frequency)]
        np.testing.assert_allclose(density[:, band].mean((0, 1)), expected, rtol=0.06)


def test_the_wind_blows_where_it_heads_and_gusts_turn_with_it() -> None:
    for heading in (0.0, 0.7, 2.5, -1.0):
        ahead = np.array([np.cos(heading), np.sin(heading), 0])
        left = np.array([-np.sin(heading), np.cos(heading), 0])
        mean = np.array(wind.air_velocity(NO_TURBULENCE, Wind(3.0, heading)))
        np.testing.assert_allclose(mean, 3 * ahead, atol=1e-15)
        along = np.array(wind.air_velocity(NO_TURBULENCE._replace(along=1.0), Wind(3.0, heading)))
        np.testing.assert_allclose(along - mean, ahead, atol=1e-15)
        across = np.array(
            wind.air_velocity(NO_TURBULENCE._replace(across_lagged=1.0), Wind(3.0, heading))
        )
        np.testing.assert_allclose((across - mean) / (1 - math.sqrt(3)), left, atol=1e-15)


def test_without_wind_the_air_is_at_rest() -> None:
    gusts = wind.stationary_gusts(Wind(0.0, 1.0), jnp.ones(5))
    gusts = wind.blow(gusts, Wind(0.0, 1.0), jnp.ones(5), STEP)
    np.testing.assert_array_equal(wind.air_velocity(gusts, Wind(0.0, 1.0)), 0)


def test_drag_is_of_the_velocity_relative_to_the_air() -> None:
    """A body that the wind carries feels nothing.

    At rest it feels what it would feel moving against the wind (Galileo).
    """
    rng = np.random.default_rng(0)
    speeds = (1500.0,) * 4
    for _ in range(5):
        values = rng.normal(size=13)
        values[3:7] /= np.linalg.norm(values[3:7])
        blowing = rng.normal(size=3)
        carried = RigidBody(*values)._replace(vx=blowing[0], vy=blowing[1], vz=blowing[2])
        np.testing.assert_allclose(
            aerodynamics.rotor_drag(carried, speeds, CRAZYFLIE_AIR, tuple(blowing)), 0, atol=1e-18
        )
        rotation = np.array(rotation_matrix(carried)).reshape(3, 3)
        coefficients = np.diag([CRAZYFLIE_AIR.drag_xy, CRAZYFLIE_AIR.drag_xy, CRAZYFLIE_AIR.drag_z])
        resting = carried._replace(vx=0.0, vy=0.0, vz=0.0)
        force = np.array(aerodynamics.rotor_drag(resting, speeds, CRAZYFLIE_AIR, tuple(blowing)))
        np.testing.assert_allclose(
            force, 6000 * rotation @ coefficients @ rotation.T @ blowing, rtol=1e-12
        )

"""Solvers against SciPy's matrix exponential, at float64."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.linalg import expm

from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.machines.solver import SOLVERS
from rlbench_suite.envs.motor.plants.catalogue import PLANTS
from rlbench_suite.envs.motor.setpoints.goals import GOALS
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants


def augmented_matrix(rate: Any, size: int) -> np.ndarray:
    """The matrix of dy/dt = A y + b for (y, 1), by what it does to the axes."""
    offset = np.asarray(rate(np.zeros(size)))
    columns = [np.asarray(rate(axis)) - offset for axis in np.eye(size)]
    return np.block([[np.array(columns).T, offset[:, None]], [np.zeros((1, size + 1))]])


@pytest.mark.parametrize("name", PLANTS)
def test_one_step_of_every_machine(name: str) -> None:
    """The step is exact to 1e-12 of the limits' size, and Euler's to rounding.

    Each machine is at its highest speed under its largest voltage. The matrix is small enough for
    the number of terms.
    """
    plant, goal = PLANTS[name](), GOALS[name, "current"]
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        still = jax.tree.map(np.float64, plant.state_at_rest(plant.nominal))
        flat, unravel = ravel_pytree(still)
        y = np.asarray(flat) + plant.nominal_current * rng.uniform(-0.5, 0.5, len(flat))
        if name == "SCIM":  # two of the four are fluxes
            y[2:] = np.asarray(flat)[2:] + rng.uniform(-0.1, 0.1, 2)
        legs = tuple(np.float64(k % 3 == 0) for k in range(plant.switches))
        voltage = plant.voltage_of_legs(legs, still, 0.7)
        rate = jax.jit(
            lambda at: ravel_pytree(
                plant.nominal.derivative(unravel(at), voltage, np.float64(goal.speeds[1]))
            )[0]
        )
        matrix = augmented_matrix(rate, len(y))
        for period in (goal.period, goal.finite_period):
            assert np.abs(np.linalg.eigvals(matrix * period)).max() < 1
            truth = (expm(matrix * period) @ np.append(y, 1))[:-1]
            exact = np.asarray(
                jax.jit(lambda at, h=period: SOLVERS["exact"](lambda _, x: rate(x), at, h))(y)
            )
            np.testing.assert_allclose(exact, truth, rtol=1e-12, atol=1e-12 * np.abs(y).max())
            euler = np.asarray(SOLVERS["euler"](lambda _, x: rate(x), y, period))
            np.testing.assert_allclose(
                euler, y + period * (matrix @ np.append(y, 1))[:-1], rtol=1e-12, atol=1e-12
            )


def test_a_drive_on_an_rc_link_is_stepped_by_the_exponential_of_both() -> None:
    """Currents and link together, in V and A, after one step of the drive."""
    task: Any = card("PMSMTorque-v0", solver="exact", supply="rc").build(dtype="float64")
    with precision(task):
        episode = jax.jit(partial(begin, task))(
            seed_key(0), 0, ContextSource(np.int32(1), np.int32(-1))
        )[0]
        params, state = episode.params, episode.state
        m, plant = params.machine, task.plant
        action = np.array([-0.3, 0.6])
        full = plant.unit * action
        electric, resistance = m.pole_pairs * params.speed, 0.05 * plant.link**2 / plant.rating

        def rate(y: np.ndarray) -> np.ndarray:
            d, q, volts = y
            source = (plant.link - volts) / resistance
            load_current = 1.5 * (full[0] * d + full[1] * q) / plant.link
            return np.array(
                [
                    (
                        full[0] * volts / plant.link
                        - m.resistance * d
                        + electric * m.inductance_q * q
                    )
                    / m.inductance_d,
                    (
                        full[1] * volts / plant.link
                        - m.resistance * q
                        - electric * (m.inductance_d * d + m.magnet_flux)
                    )
                    / m.inductance_q,
                    (source - load_current) * resistance / 4e-3,
                ]
            )

        truth = np.array([0.0, 0.0, plant.link, 1.0])
        for k in range(3):
            state = task.transition(state, jnp.asarray(action), jax.random.key(k), params)
            truth = expm(augmented_matrix(rate, 3) * task.period) @ truth
        ours = [*state.electrical, plant.link * state.memories.link.voltage]
    np.testing.assert_allclose(ours, truth[:3], rtol=1e-12)


@pytest.mark.parametrize("keywords", [{"supply": "ac1"}, {"load": "profile"}])
def test_exact_is_refused_where_it_would_not_be(keywords: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"'exact' is for linear systems.*'rk4'"):
        card("PMSMTorque-v0", solver="exact", **keywords).build()
    with pytest.raises(ValueError, match="Unknown solver of rlsuite/PermExDcSpeed-v0 'exact'"):
        card("PermExDcSpeed-v0", solver="exact")

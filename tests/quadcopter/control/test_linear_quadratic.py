"""LQR against SciPy's Riccati solver, against derivatives of the flight itself, and in flight."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_discrete_are

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.control import linear_quadratic as lqr
from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.envs.quadcopter.physics.dynamics import Airframe, Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.rigid_body import Inertia, RigidBody

NOMINAL = Airframe(
    Inertia(dynamics.MASS, *dynamics.INERTIA),
    dynamics.THRUST_COEFFICIENT,
    dynamics.TORQUE_COEFFICIENT,
    dynamics.MOTOR_TIME_CONSTANT,
)


def test_the_linear_model_is_the_derivative_of_the_flight() -> None:
    """The model is the derivative of one Runge-Kutta step of the full vehicle, at hover.

    It is taken in forward mode at float64.
    """
    with jax.enable_x64(True):
        hover = dynamics.hover_speed(jax.tree.map(np.float64, NOMINAL))

        def step(deviation: jax.Array, command: jax.Array) -> jax.Array:
            x, y, z, roll, pitch, yaw, vx, vy, vz, wx, wy, wz, *rotors = deviation
            body = RigidBody(
                x, y, z, jnp.ones(()), roll / 2, pitch / 2, yaw / 2, vx, vy, vz, wx, wy, wz
            )
            state = Quadcopter(body, Rotors(*(hover + rotor for rotor in rotors)))
            end = dynamics.step(state, Rotors(*(hover + command)), NOMINAL, lqr.STEP)
            b = end.body
            angles = (2 * b.qx, 2 * b.qy, 2 * b.qz)
            speeds = [rotor - hover for rotor in end.rotors]
            return jnp.stack([b.x, b.y, b.z, *angles, b.vx, b.vy, b.vz, b.wx, b.wy, b.wz, *speeds])

        a, b = jax.jit(jax.jacfwd(step, (0, 1)))(jnp.zeros(16), jnp.zeros(4))
    for matrix, derivative in zip(lqr.linear_model(), (a, b), strict=True):
        # The Runge-Kutta step against the exact exponential: fifth order in 10 ms.
        np.testing.assert_allclose(matrix, derivative, rtol=2e-4, atol=2e-8)


def test_the_gain_is_scipy_s() -> None:
    a, b = lqr.linear_model()
    q, r = np.diag(lqr.ACCEPTABLE**-2.0), np.eye(4) * lqr.ACCEPTABLE_COMMAND**-2.0
    cost = solve_discrete_are(a, b, q, r)
    expected = np.linalg.solve(r + b.T @ cost @ b, b.T @ cost @ a)
    gain = lqr.riccati_gain(a, b, q, r)
    np.testing.assert_allclose(gain, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    assert np.abs(np.linalg.eigvals(a - b @ gain)).max() < 1


def test_it_hovers_from_every_start_of_the_task() -> None:
    """It hovers from up to a right angle off level, far outside its linear model.

    Vehicles are other than the nominal one.
    """
    task: Any = card("QuadcopterHover-v0").build()
    flights = play(task, lqr.LinearQuadraticControl.for_task(task), range(200), split="test")
    assert (~flights.terminated).mean() >= 0.98
    assert flights.info["success"].mean() >= 0.98
    assert flights.total.mean() > 0.99 * task.scores["reference"].mean

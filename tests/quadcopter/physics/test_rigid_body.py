"""The rigid body against closed forms and conservation laws, at float64."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest

from rlbench_suite.envs.quadcopter.physics.rigid_body import (
    GRAVITY,
    Inertia,
    RigidBody,
    Wrench,
    body_z,
    derivative,
    normalise,
    rotation_matrix,
)
from rlbench_suite.envs.shared.runge_kutta import rk4

TUMBLING = Inertia(0.5, 1.0e-3, 2.0e-3, 2.9e-3)
NOTHING = Wrench(*[0.0] * 6)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def body_at_rest(**fields: float) -> RigidBody:
    return RigidBody(*[0.0] * 13)._replace(qw=1.0)._replace(**fields)


def integrate(
    body: RigidBody, wrench: Wrench, inertia: Inertia, duration: float, steps: int
) -> RigidBody:
    def step_body(_: int, body: RigidBody) -> RigidBody:
        return rk4(lambda _, b: derivative(b, wrench, inertia), body, duration / steps)

    body = jax.tree.map(np.float64, body)
    return jax.device_get(jax.jit(lambda b: jax.lax.fori_loop(0, steps, step_body, b))(body))


def invariants(body: RigidBody, inertia: Inertia) -> np.ndarray:
    """Rotational energy (J) and angular momentum in the world frame (N m s)."""
    rate, moments = np.array([body.wx, body.wy, body.wz]), np.array(inertia[1:])
    momentum = np.array(rotation_matrix(body)).reshape(3, 3) @ (moments * rate)
    return np.array([0.5 * moments @ rate**2, *momentum])


def test_free_fall_is_a_parabola() -> None:
    end = integrate(body_at_rest(x=1.0, vx=2.0, vz=3.0), NOTHING, TUMBLING, 1.5, 30)
    assert [end.x, end.z] == pytest.approx(
        [1 + 2 * 1.5, 3 * 1.5 - 0.5 * GRAVITY * 1.5**2], rel=1e-13
    )
    assert [end.vx, end.vz] == pytest.approx([2.0, 3 - GRAVITY * 1.5], rel=1e-13)


def test_constant_force_and_torque_about_a_principal_axis() -> None:
    wrench = Wrench(1.0, -2.0, 3.0, 0.0, 4e-3, 0.0)
    end = integrate(body_at_rest(), wrench, TUMBLING, 0.8, 800)
    angle = 0.5 * 4e-3 / TUMBLING.jy * 0.8**2
    assert [end.vx, end.vy, end.vz] == pytest.approx([1.6, -3.2, 4.8 - 0.8 * GRAVITY], rel=1e-12)
    assert end.wy == pytest.approx(4e-3 / TUMBLING.jy * 0.8, rel=1e-12)
    assert [end.qw, end.qy] == pytest.approx([np.cos(angle / 2), np.sin(angle / 2)], abs=1e-11)


def test_torque_free_precession_of_a_symmetric_body() -> None:
    """A symmetric top's angular velocity turns about its axis at (j_z - j) / j w_z (Goldstein, sec.

    5.6).
    """
    top = Inertia(1.0, 2e-3, 2e-3, 3e-3)
    end = integrate(body_at_rest(wx=5.0, wz=8.0), NOTHING, top, 2.0, 4000)
    angle = (3e-3 - 2e-3) / 2e-3 * 8.0 * 2.0
    assert [end.wx, end.wy, end.wz] == pytest.approx(
        [5 * np.cos(angle), 5 * np.sin(angle), 8.0], abs=1e-10
    )


def test_torque_free_tumbling_conserves_energy_and_angular_momentum_to_the_method_s_order() -> None:
    """Rotation about the unstable middle axis: the hardest torque-free motion."""
    start = body_at_rest(wx=0.3, wy=12.0, wz=0.2)
    truth = invariants(start, TUMBLING)
    errors = []
    for steps in (400, 800, 1600):
        end = integrate(start, NOTHING, TUMBLING, 3.0, steps)
        errors.append(
            np.abs(invariants(normalise(end), TUMBLING) - truth).max() / np.abs(truth).max()
        )
    assert errors[-1] < 1e-8
    orders = np.log2(errors[:-1]) - np.log2(errors[1:])
    assert (orders > 3.9).all(), orders  # energy of a quadratic flow converges at order 5


@pytest.mark.parametrize("drift", [-1e-3, 1e-4, 1e-6])
def test_normalising_squares_the_drift(drift: float) -> None:
    """A squared length of 1 + d becomes (1 + d) (1 - d / 2)^2 = 1 - 3/4 d^2 + d^3 / 4."""
    q = np.array([0.1, -0.7, 0.5, 0.5]) * np.sqrt(1 + drift)
    body = normalise(body_at_rest()._replace(qw=q[0], qx=q[1], qy=q[2], qz=q[3]))
    squared = sum(value**2 for value in (body.qw, body.qx, body.qy, body.qz))
    assert squared == pytest.approx(1 - 0.75 * drift**2 + 0.25 * drift**3, abs=1e-15)


def test_rotation_matrix_is_a_rotation_and_its_last_column_the_body_s_z() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=13)
    values[3:7] /= np.linalg.norm(values[3:7])
    body = RigidBody(*values)
    rotation = np.array(rotation_matrix(body)).reshape(3, 3)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    np.testing.assert_array_equal(rotation[:, 2], body_z(body))

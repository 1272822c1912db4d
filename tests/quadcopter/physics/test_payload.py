"""Check a loaded vehicle against clouds of points, two bodies, and conservation laws.

The two bodies are coupled by their constraint force.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.envs.quadcopter.physics.dynamics import Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.payload import Payload, combine, loaded_derivative
from rlbench_suite.envs.quadcopter.physics.rigid_body import (
    GRAVITY,
    RigidBody,
    Wrench,
    derivative,
    normalise,
    rotation_matrix,
)
from rlbench_suite.envs.quadcopter.physics.vehicles import CRAZYFLIE_AIR
from rlbench_suite.envs.shared.runge_kutta import rk4

VEHICLE = dynamics.NOMINAL.inertia
PAYLOAD = Payload(0.005, 0.011, -0.007, -0.02)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def tumbling_body(seed: int) -> RigidBody:
    values = np.random.default_rng(seed).normal(size=13)
    values[3:7] /= np.linalg.norm(values[3:7])
    values[10:] *= 10
    return RigidBody(*jnp.asarray(values))


def tensor(inertia: object) -> np.ndarray:
    *_, xx, yy, zz, xy, xz, yz = inertia  # type: ignore[misc]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], float)


def test_mass_centre_and_tensor_are_those_of_the_points() -> None:
    """Six points on the axes that have the vehicle's mass and moments, and the payload's."""
    mass, jx, jy, jz = VEHICLE
    # Of the points' distances.
    squares = np.array([jy + jz - jx, jx + jz - jy, jx + jy - jz]) / 2 * 3 / mass
    points = np.vstack([sign * np.diag(np.sqrt(squares)) for sign in (1, -1)] + [[PAYLOAD[1:]]])
    masses = np.array([mass / 6] * 6 + [PAYLOAD.mass])
    combined = combine(VEHICLE, PAYLOAD)
    centre = masses @ points / masses.sum()
    away = points - centre
    expected = np.diag(np.full(3, masses @ (away**2).sum(1))) - (masses[:, None] * away).T @ away
    assert combined.mass == pytest.approx(masses.sum(), rel=1e-14)
    np.testing.assert_allclose(combined[1:4], centre, rtol=1e-12)
    np.testing.assert_allclose(tensor(combined), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_accelerations_are_those_of_two_bodies_that_hold_each_other(seed: int) -> None:
    """Newton's and Euler's laws of vehicle and payload apart give the same accelerations.

    The force between the two is an unknown.
    """
    body, rng = tumbling_body(seed), np.random.default_rng(seed)
    force, torque = rng.normal(size=3), rng.normal(size=3) * 1e-3  # world, body
    rotation = np.array(rotation_matrix(body), float).reshape(3, 3)
    spin, place = np.array(body[10:]), np.array(PAYLOAD[1:])
    mass, moments = VEHICLE.mass, np.diag(VEHICLE[1:])
    # In the body's frame; unknown are both accelerations, the spin's rate and the force that the
    # payload exerts.
    cross = np.array([[0, -place[2], place[1]], [place[2], 0, -place[0]], [-place[1], place[0], 0]])
    identity, zero = np.eye(3), np.zeros((3, 3))
    gravity = rotation.T @ [0, 0, -GRAVITY]
    equations = np.block(
        [
            [mass * identity, zero, zero, -identity],  # vehicle
            [zero, PAYLOAD.mass * identity, zero, identity],  # payload
            [
                zero,
                zero,
                moments,
                -cross,
            ],  # vehicle's spin, turned by the force at the payload's place
            [-identity, identity, cross, zero],  # joined: a_p = a_v + dw x d + w x (w x d)
        ]
    )
    right = np.concatenate(
        [
            rotation.T @ force + mass * gravity,
            PAYLOAD.mass * gravity,
            torque - np.cross(spin, moments @ spin),
            np.cross(spin, np.cross(spin, place)),
        ]
    )
    vehicle, payload, turned, _ = np.linalg.solve(equations, right).reshape(4, 3)
    centre = rotation @ (mass * vehicle + PAYLOAD.mass * payload) / (mass + PAYLOAD.mass)
    moved = loaded_derivative(body, Wrench(*force, *torque), combine(VEHICLE, PAYLOAD))
    np.testing.assert_allclose(moved[7:10], centre, rtol=1e-10)
    np.testing.assert_allclose(moved[10:], turned, rtol=1e-9)


def test_a_free_tumble_keeps_energy_and_angular_momentum() -> None:
    combined = combine(VEHICLE, PAYLOAD)
    inertia, free = tensor(combined), Wrench(*(0.0,) * 6)

    def conserved_quantities(body: RigidBody) -> np.ndarray:
        rotation, spin = np.array(rotation_matrix(body), float).reshape(3, 3), np.array(body[10:])
        return np.array([spin @ inertia @ spin, *(rotation @ inertia @ spin)])

    start = tumbling_body(3)
    step = jax.jit(
        lambda b: normalise(rk4(lambda _, y: loaded_derivative(y, free, combined), b, 1e-3))
    )
    body = start
    for _ in range(1000):
        body = step(body)
    np.testing.assert_allclose(conserved_quantities(body), conserved_quantities(start), rtol=1e-6)
    assert np.abs(np.array(body[10:]) - np.array(start[10:])).max() > 1  # it tumbled


def test_without_mass_it_changes_nothing() -> None:
    body, wrench = tumbling_body(5), Wrench(0.1, -0.2, 0.3, 1e-4, 2e-4, -3e-4)
    bare = derivative(body, wrench, VEHICLE)
    np.testing.assert_allclose(
        loaded_derivative(body, wrench, combine(VEHICLE, Payload(0.0, 0.01, 0.02, -0.03))),
        bare,
        rtol=1e-12,
    )


def test_a_lopsided_vehicle_hovers_on_the_thrusts_that_statics_asks_for() -> None:
    """Each rotor's share: the whole weight, and no moment about the common centre of mass."""
    whole_mass = VEHICLE.mass + PAYLOAD.mass
    centre = np.array(PAYLOAD[1:]) * PAYLOAD.mass / whole_mass
    places = np.stack([dynamics.ROTOR_X, dynamics.ROTOR_Y]) - centre[:2, None]
    reaction = np.array([-1, 1, -1, 1.0])
    balance = np.vstack([np.ones(4), places, reaction])
    forces = np.linalg.solve(balance, [whole_mass * GRAVITY, 0, 0, 0])
    assert np.ptp(forces) > 0.01
    rotors = Rotors(*jnp.sqrt(forces / dynamics.NOMINAL.thrust_coefficient))
    vehicle = Quadcopter(RigidBody(*jnp.zeros(13))._replace(qw=jnp.float64(1)), rotors)
    step = jax.jit(
        lambda v: dynamics.step(v, rotors, dynamics.NOMINAL, 0.01, CRAZYFLIE_AIR, payload=PAYLOAD)
    )
    for _ in range(100):
        vehicle = step(vehicle)
    np.testing.assert_allclose(vehicle.body[:3], 0, atol=1e-8)
    np.testing.assert_allclose(vehicle.body[7:], 0, atol=1e-8)


def test_a_payload_turns_a_vehicle_that_does_not_know_of_it() -> None:
    """With equal rotors the tilt grows by the thrust's moment about the common centre of mass."""
    payload = Payload(0.003, 0.01, 0.0, 0.0)
    rotors = Rotors(*jnp.full(4, float(dynamics.hover_speed(dynamics.NOMINAL))))
    vehicle = Quadcopter(RigidBody(*jnp.zeros(13))._replace(qw=jnp.float64(1)), rotors)
    moved = dynamics.step(vehicle, rotors, dynamics.NOMINAL, 1e-3, payload=payload)
    moment = VEHICLE.mass * GRAVITY * 0.01 * 0.003 / 0.030
    jy = VEHICLE.jy + 0.027 * 0.003 / 0.030 * 0.01**2
    assert float(moved.body.wy) == pytest.approx(moment / jy * 1e-3, rel=1e-5)

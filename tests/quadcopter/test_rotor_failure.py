"""Check RotorFailure against the paper's periodic solution, matrices, and conservation laws.

SciPy solves the equations as matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.physics.dynamics import Airframe, Quadcopter, Rotors, hover_speed
from rlbench_suite.envs.quadcopter.physics.rigid_body import GRAVITY, RigidBody, rotation_matrix
from rlbench_suite.envs.quadcopter.tasks import rotor_failure
from rlbench_suite.envs.quadcopter.tasks.rotor_failure import (
    ALONG_X,
    ALONG_Y,
    ARM,
    NOMINAL,
    PROPELLER,
    REACTION,
    ROTOR_SPEED_LIMIT,
    SPIN_DRAG,
)

CARD = card("QuadcopterRotorFailure-v0")
MASS, JX, _, JZ = NOMINAL.inertia
KF, KT = NOMINAL.thrust_coefficient, NOMINAL.torque_coefficient


@pytest.fixture(autouse=True)
def _float64(request: pytest.FixtureRequest) -> Iterator[None]:
    with jax.enable_x64("task" not in request.fixturenames):
        yield


@pytest.fixture
def task() -> rotor_failure.QuadcopterRotorFailure:
    return CARD.build()


def periodic_solution(ratio: float, gap: float = JZ - JX) -> tuple[float, float, float]:
    """Thrust of the two rotors beside the lost one, angular velocity across and about body z.

    ``ratio``: thrust of the rotor opposite by theirs; ``gap``: difference of the moments of
    inertia. The balances of the paper's eqs. 12, 14, 15 and 18: roll, yaw, axis along the angular
    velocity, weight.
    """
    arm = math.sqrt(2) * ARM

    def balances(unknown: np.ndarray) -> list[float]:
        force, across, about = unknown
        speeds = 2 * math.sqrt(force / KF) - math.sqrt(ratio * force / KF)
        return [
            arm * ratio * force - gap * across * about + PROPELLER * speeds * across,
            KT * (2 - ratio) * force - SPIN_DRAG * about,
            (2 + ratio) * force * about / math.hypot(across, about) - MASS * GRAVITY,
        ]

    force, across, about = fsolve(balances, [2.0, 5.0, 19.0], xtol=1e-13)
    return force, across, about


def test_the_periodic_solution_is_the_published_one() -> None:
    """The solution is f = 2.05, 1.02, 2.05 N for half the thrust on the opposite rotor.

    Its w is (0, 5.69, 18.89) rad/s, its n (0, 0.289, 0.958).

    The published moments of inertia have two digits, so their difference, 2.3e-3 kg m^2, is good to
    0.1e-3; the tilt follows from it alone, and the published one lies between what its ends give.
    """
    tilts = []
    for gap in (2.2e-3, 2.4e-3):
        force, across, about = periodic_solution(0.5, gap)
        assert force == pytest.approx(2.05, abs=0.02)
        assert about == pytest.approx(18.89, rel=0.01)
        tilts.append((across, across / math.hypot(across, about)))
    assert tilts[1][0] < 5.69 < tilts[0][0]
    assert tilts[1][1] < 0.289 <= round(tilts[0][1], 3)


@pytest.mark.parametrize("lost", range(4))
def test_hover_on_three_rotors_repeats_after_a_turn(lost: int) -> None:
    """From the periodic solution the simulated vehicle turns on a circle.

    It turns about a vertical axis, and loses no height.
    """
    force, across, about = periodic_solution(0.5)
    sign = -REACTION[lost]  # the two rotors beside it turn the body
    lean = np.array([-ALONG_X[lost], -ALONG_Y[lost], 0]) / math.sqrt(2)
    spin = np.array([0, 0, sign * about]) + sign * across * lean
    rate = math.hypot(across, about)
    axis = sign * spin / rate
    # The shortest turn that brings the axis upright, as a quaternion.
    half = np.array([1 + axis[2], axis[1], -axis[0], 0.0])
    half /= np.linalg.norm(half)
    rotation = np.array(rotation_matrix(RigidBody(0, 0, 0, *half, *[0] * 6))).reshape(3, 3)
    np.testing.assert_allclose(rotation @ axis, [0, 0, 1], atol=1e-12)
    # Horizontal acceleration turns at that rate, so velocity lags it by a quarter turn, position by
    # half.
    pull = 2.5 * force / MASS * rotation[:, 2] * np.array([1, 1, 0])
    velocity = np.cross(pull, [0, 0, 1]) / (sign * rate)
    body = RigidBody(*(-pull / rate**2), *half, *velocity, *spin)
    opposite = (lost + 2) % 4
    forces = [{lost: 0.0, opposite: 0.5 * force}.get(i, force) for i in range(4)]
    rotors = Rotors(*(jnp.sqrt(jnp.float64(f) / KF) for f in forces))
    start = Quadcopter(jax.tree.map(jnp.float64, body), rotors)
    steps = 256
    turn = 2 * math.pi / rate / steps
    path = jax.jit(
        lambda s: jax.lax.scan(
            lambda v, _: (rotor_failure.step(v, rotors, NOMINAL, SPIN_DRAG, turn),) * 2,
            s,
            length=steps,
        )
    )(start)
    end, (bodies, _) = path
    # RK4: (rate * step)^5 / 120 = 7e-11 a step.
    for name in ("x", "y", "z", "vx", "vy", "vz", "wx", "wy", "wz"):
        assert float(getattr(end.body, name)) == pytest.approx(
            float(getattr(start.body, name)), abs=1e-6
        ), name
    assert abs(
        float(
            end.body.qw * start.body.qw + end.body.qz * start.body.qz + end.body.qx * start.body.qx
        )
        + float(end.body.qy * start.body.qy)
    ) == pytest.approx(1, abs=1e-9)
    radius = np.hypot(np.asarray(bodies.x), np.asarray(bodies.y))
    np.testing.assert_allclose(radius, np.linalg.norm(pull) / rate**2, rtol=1e-5)
    assert 0.001 < radius[0] < 0.02
    np.testing.assert_allclose(np.asarray(bodies.z), 0, atol=1e-6)


def with_matrices(vehicle: np.ndarray, command: np.ndarray, duration: float) -> np.ndarray:
    """Solve the equations in vectors and matrices by DOP853, to the last digits.

    Propellers are flywheels.
    """
    inertia, places = np.diag([JX, JX, JZ]), np.stack([ALONG_X, ALONG_Y, np.zeros(4)], 1) * ARM
    turns = -np.array(REACTION)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        q, v, w, n = y[3:7], y[7:10], y[10:13], y[13:]
        turned = (command - n) / NOMINAL.motor_time_constant
        thrust = KF * n**2
        rotation = np.array(rotation_matrix(RigidBody(*y[:13]))).reshape(3, 3)
        torque = sum(np.cross(place, [0, 0, f]) for place, f in zip(places, thrust, strict=True))
        torque = torque + np.array([0, 0, -KT * turns @ thrust - SPIN_DRAG * w[2]])
        momentum = inertia @ w + [0, 0, PROPELLER * turns @ n]
        gained = np.array([0, 0, PROPELLER * turns @ turned])
        spin = np.linalg.solve(inertia, torque - np.cross(w, momentum) - gained)
        acceleration = rotation @ [0, 0, thrust.sum()] / MASS - [0, 0, GRAVITY]
        product = 0.5 * np.r_[-q[1:] @ w, q[0] * w + np.cross(q[1:], w)]
        return np.r_[v, product, acceleration, spin, turned]

    return solve_ivp(rate, (0, duration), vehicle, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def test_a_flight_is_that_of_the_matrices_to_order_four() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        start = rng.normal(size=17)
        start[3:7] /= np.linalg.norm(start[3:7])
        start[10:13] *= 5
        start[13:], command = rng.uniform(100, 700, (2, 4))
        exact = with_matrices(start, command, 0.04)
        errors = []
        for steps in (4, 8, 16):
            vehicle = Quadcopter(
                RigidBody(*jnp.asarray(start[:13])), Rotors(*jnp.asarray(start[13:]))
            )
            step = jax.jit(
                lambda v, n=steps, c=command: rotor_failure.step(
                    v, Rotors(*c), NOMINAL, SPIN_DRAG, 0.04 / n
                )
            )
            for _ in range(steps):
                vehicle = step(vehicle)
            errors.append(np.abs(np.array([*vehicle.body, *vehicle.rotors]) - exact)[:13].max())
        assert errors[0] < 2e-3  # at the task's own step; of angular velocities of some ten rad/s
        assert 10 < errors[0] / errors[1] < 26
        assert 10 < errors[1] / errors[2] < 26


def test_propellers_take_and_give_angular_momentum() -> None:
    """Without air the angular momentum of body and propellers stays, whatever the motors do.

    It is that in the world frame.
    """
    airless = NOMINAL._replace(thrust_coefficient=0.0, torque_coefficient=0.0)
    rng = np.random.default_rng(1)
    body = RigidBody(0, 0, 0, 0.5, -0.5, 0.5, 0.5, 0, 0, 0, 3.0, -2.0, 4.0)
    vehicle = Quadcopter(jax.tree.map(jnp.float64, body), Rotors(*jnp.full((4,), 400.0)))

    def momentum(vehicle: Quadcopter) -> np.ndarray:
        body = vehicle.body
        rotation = np.array(rotation_matrix(body), float).reshape(3, 3)
        turning = PROPELLER * -np.array(REACTION) @ np.array(vehicle.rotors)
        return rotation @ (np.diag([JX, JX, JZ]) @ np.array(body[10:]) + [0, 0, turning])

    before = momentum(vehicle)
    step = jax.jit(lambda v, c: rotor_failure.step(v, Rotors(*c), airless, 0.0, 0.001))
    spins = []
    for _ in range(10):
        command = rng.uniform(0, ROTOR_SPEED_LIMIT, 4)
        for _ in range(20):
            vehicle = step(vehicle, command)
        np.testing.assert_allclose(momentum(vehicle), before, rtol=1e-6, atol=1e-9)
        spins.append(float(vehicle.body.wz))
    assert np.ptp(spins) > 0.5


def test_a_spin_without_thrust_dies_by_drag_alone() -> None:
    body = RigidBody(*[0.0] * 13)._replace(qw=1.0, wz=20.0)
    still = Rotors(*jnp.zeros(4))
    vehicle = Quadcopter(jax.tree.map(jnp.float64, body), still)
    step = jax.jit(lambda v: rotor_failure.step(v, still, NOMINAL, SPIN_DRAG, 0.01))
    for _ in range(100):
        vehicle = step(vehicle)
    assert float(vehicle.body.wz) == pytest.approx(20 * math.exp(-SPIN_DRAG / JZ), rel=1e-10)
    assert float(vehicle.body.z) == pytest.approx(-GRAVITY / 2, rel=1e-10)


def test_hover_and_full_speed_are_the_paper_s() -> None:
    speed = float(hover_speed(Airframe(*jax.tree.map(np.float64, NOMINAL))))
    assert 2 * speed / ROTOR_SPEED_LIMIT - 1 == pytest.approx(
        CARD.build().sheet.hover_action, abs=5e-4
    )
    full_thrust = KF * ROTOR_SPEED_LIMIT**2
    assert full_thrust == pytest.approx(3.8)


def test_contexts_lose_every_rotor_at_every_moment(
    task: rotor_failure.QuadcopterRotorFailure,
) -> None:
    keys = jax.random.split(jax.random.key(0), 4000)
    for split in (0, 1):
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(split))
        counts = np.bincount(params.rotor, minlength=4)
        np.testing.assert_allclose(counts, 1000, atol=5 * math.sqrt(1000))
        assert set(np.asarray(params.moment)) == set(range(10, 60))
        band = (np.asarray(params.airframe.inertia.mass, float) - 0.4) / 0.005
        assert set(np.floor(band)) == set(range(split, 40, 2))


def test_only_the_failed_rotor_runs_down(task: rotor_failure.QuadcopterRotorFailure) -> None:
    params = task.sample_params(jax.random.key(3), np.int32(0))
    state, action = task.initial(jax.random.key(4), params), jnp.full(4, 0.3)
    step = jax.jit(task.transition)
    for steps in range(int(params.moment) + 8):
        assert all(speed > 350 for speed in state.vehicle.rotors) == (steps <= params.moment)
        state = step(state, action, None, params)
    speeds = np.array(state.vehicle.rotors)
    assert speeds[int(params.rotor)] < 10
    assert (np.delete(speeds, int(params.rotor)) > 350).all()


def test_the_reference_stays_and_nobody_else(task: rotor_failure.QuadcopterRotorFailure) -> None:
    flights = play(task, reference_player(task), range(300), split="test")
    assert flights.info["success"].mean() >= 0.98
    assert not flights.terminated.any()
    assert np.median(flights.info["distance"]) < 0.05
    assert (np.abs(flights.info["spin"]) > 10).all()
    idle = play(task, Constant(task.noop_action()), range(64), split="test")
    assert idle.terminated.all()
    assert idle.total.max() < 0.35 * flights.total.min()

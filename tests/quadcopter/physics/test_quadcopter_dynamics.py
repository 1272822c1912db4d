"""Check the quadcopter against closed forms and SciPy on equations derived anew.

They are in vectors with a rotation matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.envs.quadcopter.physics.dynamics import Airframe, Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.rigid_body import (
    GRAVITY,
    Inertia,
    RigidBody,
    rotation_matrix,
)
from rlbench_suite.envs.quadcopter.physics.vehicles import CRAZYFLIE_AIR

STEP = 0.01
NOMINAL = Airframe(
    Inertia(dynamics.MASS, *dynamics.INERTIA),
    dynamics.THRUST_COEFFICIENT,
    dynamics.TORQUE_COEFFICIENT,
    dynamics.MOTOR_TIME_CONSTANT,
)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def vehicle(rotor_speed: float, **fields: float) -> Quadcopter:
    body = RigidBody(*[0.0] * 13)._replace(qw=1.0)._replace(**fields)
    return jax.tree.map(np.float64, Quadcopter(body, Rotors(*[rotor_speed] * 4)))


def fly(
    start: Quadcopter, commands: np.ndarray, substeps: int, dtype: Any = np.float64
) -> Quadcopter:
    """The vehicle after each command has been held for one step, cut into substeps."""

    def hold_command(state: Quadcopter, command: jax.Array) -> tuple[Quadcopter, None]:
        rotors = Rotors(*command)
        return jax.lax.fori_loop(
            0, substeps, lambda _, s: dynamics.step(s, rotors, airframe, STEP / substeps), state
        ), None

    airframe = jax.tree.map(dtype, NOMINAL)
    start = jax.tree.map(dtype, start)
    return jax.device_get(
        jax.jit(lambda s, c: jax.lax.scan(hold_command, s, c))(start, dtype(commands))[0]
    )


def aggressive_commands(steps: int) -> np.ndarray:
    """Rotor speeds (rad/s) around hover, each rotor on its own, redrawn every 50 ms."""
    rng = np.random.default_rng(3)
    hover = np.sqrt(dynamics.MASS * GRAVITY / (4 * dynamics.THRUST_COEFFICIENT))
    return hover * (1 + 0.02 * rng.uniform(-1, 1, (steps // 5, 4))).repeat(5, 0)


def fly_scipy(start: Quadcopter, commands: np.ndarray) -> np.ndarray:
    """Position, velocity, rotation matrix, angular velocity and rotor speeds by DOP853."""
    positions = dynamics.ROTOR_ARM * np.array([[1, -1, 0], [-1, -1, 0], [-1, 1, 0], [1, 1, 0]])
    spin = np.array([-1, 1, -1, 1])
    inertia = np.diag(dynamics.INERTIA)

    def rate(_: float, y: np.ndarray, command: np.ndarray) -> np.ndarray:
        velocity, rotation, omega, speeds = y[3:6], y[6:15].reshape(3, 3), y[15:18], y[18:]
        forces = dynamics.THRUST_COEFFICIENT * speeds**2
        torque = np.cross(positions, forces[:, None] * [0, 0, 1]).sum(0)
        torque[2] += dynamics.TORQUE_COEFFICIENT * spin @ forces
        acceleration = rotation @ [0, 0, forces.sum()] / dynamics.MASS - [0, 0, GRAVITY]
        wx, wy, wz = omega
        turning = rotation @ np.array([[0, -wz, wy], [wz, 0, -wx], [-wy, wx, 0]])
        spinning = np.linalg.solve(inertia, torque - np.cross(omega, inertia @ omega))
        lag = (command - speeds) / dynamics.MOTOR_TIME_CONSTANT
        return np.concatenate([velocity, acceleration, turning.ravel(), spinning, lag])

    y = flatten_state(start)
    for command in commands:
        y = solve_ivp(rate, (0, STEP), y, "DOP853", rtol=1e-12, atol=1e-12, args=(command,)).y[
            :, -1
        ]
    return y


def flatten_state(state: Quadcopter) -> np.ndarray:
    b = state.body
    return np.array(
        [b.x, b.y, b.z, b.vx, b.vy, b.vz, *rotation_matrix(b), b.wx, b.wy, b.wz, *state.rotors],
        np.float64,
    )


def test_hover_speed_is_an_equilibrium() -> None:
    speed = float(dynamics.hover_speed(jax.tree.map(np.float64, NOMINAL)))
    # sqrt(0.027 * 9.81 / (4 * 3.16e-10)) RPM.
    assert speed / dynamics.RPM == pytest.approx(14475, abs=1)
    end = fly(vehicle(speed), np.full((500, 4), speed), 1)
    np.testing.assert_allclose(
        flatten_state(end), flatten_state(vehicle(speed)), rtol=0, atol=1e-11
    )


def test_free_fall_with_rotors_at_rest() -> None:
    end = fly(vehicle(0.0, vx=1.0), np.zeros((50, 4)), 1)
    assert [end.body.x, end.body.z, end.body.vz] == pytest.approx(
        [0.5, -0.125 * GRAVITY, -0.5 * GRAVITY], rel=1e-13
    )


def test_full_thrust_to_weight_is_the_published_one() -> None:
    full = dynamics.rotor_forces(Rotors(*[dynamics.ROTOR_SPEED_LIMIT] * 4), NOMINAL)
    thrust = dynamics.thrust_and_torques(full, NOMINAL)[0]
    # gym-pybullet-drones, cf2x.urdf.
    assert thrust / (dynamics.MASS * 9.8) == pytest.approx(2.25, abs=1e-3)


def test_motor_lag_is_the_exponential() -> None:
    end = fly(vehicle(1000.0), np.full((7, 4), 2000.0), 1)
    assert end.rotors.r3 == pytest.approx(
        2000 - 1000 * np.exp(-0.07 / dynamics.MOTOR_TIME_CONSTANT), rel=1e-13
    )


def test_rotors_may_slow_down_with_a_time_constant_of_their_own() -> None:
    """Each rotor has the time constant of its own change, 0.25 s down and 0.055 s up.

    They are those of the Crazyflie as rl-tools identified it.
    """
    airframe = NOMINAL._replace(motor_falling_time_constant=0.25)
    command = Rotors(2000.0, 500.0, 1000.0, 500.0)
    end = jax.device_get(
        dynamics.step(vehicle(1000.0), command, jax.tree.map(np.float64, airframe), STEP)
    ).rotors
    rise, fall = np.exp(-STEP / dynamics.MOTOR_TIME_CONSTANT), np.exp(-STEP / 0.25)
    np.testing.assert_allclose(
        end, [2000 - 1000 * rise, 500 + 500 * fall, 1000, 500 + 500 * fall], rtol=1e-13
    )


def test_in_air_it_sinks_and_slides_at_terminal_velocity() -> None:
    """Rotor drag in the Runge-Kutta step leads to terminal velocities.

    A tenth of the weight is missing, against the drag along the rotors' axis.
    """
    airframe = jax.tree.map(np.float64, NOMINAL)
    speed = float(dynamics.hover_speed(airframe)) * np.sqrt(0.9)
    rotors = Rotors(*[np.float64(speed)] * 4)

    def step_vehicle(_: int, state: Quadcopter) -> Quadcopter:
        return dynamics.step(state, rotors, airframe, STEP, CRAZYFLIE_AIR)

    end = jax.device_get(
        jax.jit(lambda s: jax.lax.fori_loop(0, 12_000, step_vehicle, s))(vehicle(speed, vx=1.0))
    )
    assert end.body.vz == pytest.approx(
        -0.1 * dynamics.MASS * GRAVITY / (CRAZYFLIE_AIR.drag_z * 4 * speed), rel=1e-9
    )
    rate = CRAZYFLIE_AIR.drag_xy * 4 * speed / dynamics.MASS
    assert end.body.x == pytest.approx((1 - np.exp(-rate * 120)) / rate, rel=1e-6)


def test_near_the_ground_it_accelerates_upwards_by_the_closed_form() -> None:
    airframe = jax.tree.map(np.float64, NOMINAL)
    speed = dynamics.hover_speed(airframe)
    state = vehicle(float(speed), z=0.06)
    end = dynamics.step(state, state.rotors, airframe, 1e-7, CRAZYFLIE_AIR, ground=True)
    gained = CRAZYFLIE_AIR.ground * (CRAZYFLIE_AIR.propeller_radius / (4 * 0.06)) ** 2
    assert float(end.body.vz) / 1e-7 == pytest.approx(GRAVITY * gained, rel=1e-6)


def test_rotor_thrusts_are_the_inverse_of_the_load() -> None:
    load = np.array([0.25, 1e-4, -2e-4, 3e-5])
    forces = dynamics.allocate(*load, NOMINAL)
    np.testing.assert_allclose(
        dynamics.thrust_and_torques(forces, NOMINAL), load, rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize(
    ("rotors", "axis", "sign"), [("r1r2", "wx", -1), ("r1r4", "wy", -1), ("r1r3", "wz", -1)]
)
def test_faster_rotors_turn_it_the_way_their_places_say(rotors: str, axis: str, sign: int) -> None:
    """More thrust on the right rolls the left side up, in front it lifts the nose.

    More thrust on rotors 1 and 3 yaws right. Roll to the left is negative about x.
    """
    speeds = np.array([1600.0 if f"r{n}" in rotors else 1400.0 for n in (1, 2, 3, 4)])
    end = fly(vehicle(1500.0), speeds[None], 1)
    for name in ("wx", "wy", "wz"):
        assert np.sign(np.round(getattr(end.body, name), 9)) == (sign if name == axis else 0)


def test_full_manoeuvre_equals_scipy() -> None:
    """The task's step follows one second of flips and turns, and converges at order four.

    All axes turn faster than 1 rad/s.
    """
    start = vehicle(1500.0, x=0.1, vz=0.5, wx=1.0, wy=-2.0, wz=3.0)
    commands = aggressive_commands(100)
    truth = fly_scipy(start, commands)
    assert np.abs(truth[15:18]).min() > 1
    errors = [
        np.abs(flatten_state(fly(start, commands, substeps)) - truth).max()
        for substeps in (1, 2, 4, 8, 16)
    ]
    assert errors[0] < 2e-5
    assert errors[-1] < 1e-9
    orders = np.log2(errors[:-1]) - np.log2(errors[1:])
    assert (np.abs(orders[:3] - 4) < 0.5).all(), (errors, orders)


def test_quaternion_stays_at_length_one() -> None:
    """Within 3/8 d^2, d the drift of a squared length in one step: below 1e-6 even at 42 rad/s."""
    end = fly(vehicle(1500.0, wx=30.0, wz=-30.0), aggressive_commands(500), 1)
    length = np.sqrt(end.body.qw**2 + end.body.qx**2 + end.body.qy**2 + end.body.qz**2)
    assert length == pytest.approx(1, abs=3 / 8 * 1e-12)


def test_float32_stays_near_float64() -> None:
    """Over one second of open-loop manoeuvres, single precision costs micrometres."""
    start, commands = vehicle(1500.0, wx=1.0, wy=-2.0, wz=3.0), aggressive_commands(100)
    single, double = (fly(start, commands, 1, dtype) for dtype in (np.float32, np.float64))
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(single))
    assert np.abs(flatten_state(single)[:6] - flatten_state(double)[:6]).max() < 1e-4
    assert jnp.isfinite(flatten_state(single)).all()

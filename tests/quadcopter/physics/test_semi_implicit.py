"""Check the explicit physics against gym-pybullet-drones, closed forms and finite differences.

The peer's numbers were printed by its own code (@90b178a, seed 0) under ``Physics.DYN``,
``Physics.PYB`` and ``Physics.PYB_GND_DRAG_DW``; its hover task pays max(0, 2 - |p - (0, 0, 1)|^4) a
control step of 8 physics steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from control_period import step_period

from rlbench_suite.envs.quadcopter.control import cascaded_pid
from rlbench_suite.envs.quadcopter.physics import semi_implicit, vehicles
from rlbench_suite.envs.quadcopter.physics.rigid_body import (
    Inertia,
    RigidBody,
    Wrench,
    body_z,
    derivative,
    rotation_matrix,
)
from rlbench_suite.envs.quadcopter.physics.semi_implicit import DYN, PYB, Effects
from rlbench_suite.envs.quadcopter.physics.vehicles import CF2P, CF2X, CRAZYFLIE, RACE, RPM, Vehicle

GRAVITY = 9.8
PERIOD = 8
"""Physics steps of a control step, at 30 Hz."""
MAX_PERIODS = 242
"""Control steps of the peer's 8 s, as it counts them."""
START = 0.1125
"""m: the height at which the peer puts the vehicle down."""
HOVER = float(np.sqrt(0.027 * GRAVITY / (4 * 3.16e-10))) * RPM
BULLET = CF2X._replace(
    rotor_x=(0.028, -0.028, -0.028, 0.028), rotor_y=(-0.028, -0.028, 0.028, 0.028)
)
"""The peer's Bullet pushes at the links, 0.028 m from the axes, where DYN has arm / sqrt 2."""


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def body_at_rest(height: float = START, **fields: float) -> RigidBody:
    body = RigidBody(*[0.0] * 13)._replace(z=height, qw=1.0)._replace(**fields)
    return jax.tree.map(np.float64, body)


def fly(
    body: RigidBody,
    commands: np.ndarray,
    vehicle: Vehicle = CF2X,
    effects: Effects = DYN,
    gravity: float = GRAVITY,
    dtype: Any = np.float64,
) -> RigidBody:
    """After each row of rotor speeds has been held for a control step."""

    def hold_speeds(now: RigidBody, row: jax.Array) -> tuple[RigidBody, None]:
        return step_period(now, tuple(row), vehicle, gravity, PERIOD, effects), None

    run = jax.jit(lambda b, c: jax.lax.scan(hold_speeds, b, c)[0])
    return jax.device_get(run(jax.tree.map(dtype, body), np.asarray(commands, dtype)))


def peer_state(body: RigidBody, before: RigidBody) -> np.ndarray:
    """Return position, quaternion (x, y, z, w), velocity and angular velocity in the world.

    They are as the peer reports them.
    """
    # The peer turns angular velocity into the world by the attitude before the last physics step.
    world = np.array(rotation_matrix(before)).reshape(3, 3) @ [body.wx, body.wy, body.wz]
    return np.array(
        [
            body.x,
            body.y,
            body.z,
            body.qx,
            body.qy,
            body.qz,
            body.qw,
            body.vx,
            body.vy,
            body.vz,
            *world,
        ],
        np.float64,
    )


def test_ten_control_steps_equal_the_peer_s_dyn_to_all_printed_digits() -> None:
    speeds = HOVER * (1 + 0.05 * np.array([0.1, 0.2, 0.3, 0.4]))
    states = [body_at_rest()]
    step = jax.jit(lambda body: semi_implicit.step(body, tuple(speeds), CF2X, GRAVITY))
    for _ in range(10 * PERIOD):
        states.append(jax.device_get(step(states[-1])))
    golden = [0.000600, -0.028347, 0.124670, 0.150407, 0.001975, 0.043564, 0.987662]
    golden += [0.010797, -0.330692, 0.052601, 1.787393, 0.050142, 0.525283]
    np.testing.assert_allclose(peer_state(states[-1], states[-2]), golden, atol=1e-6)


BULLET_SEEN = {"place": [0.000563, -0.026713, 0.124756], "speed": [0.010184, -0.314813, 0.054353]}
BULLET_SEEN["turning"] = [1.756848, 0.051484, 0.517802]


def test_ten_control_steps_stay_near_the_peer_s_bullet() -> None:
    """The error of Bullet parity in three dimensions is at most 1.5 mm and 15 mm/s.

    It is that after a third of a second of tilting.
    """
    speeds = HOVER * (1 + 0.05 * np.array([0.1, 0.2, 0.3, 0.4]))
    body = fly(body_at_rest(), np.tile(speeds, (10, 1)), BULLET, PYB)
    np.testing.assert_allclose([body.x, body.y, body.z], BULLET_SEEN["place"], atol=1.5e-3)
    np.testing.assert_allclose([body.vx, body.vy, body.vz], BULLET_SEEN["speed"], atol=15e-3)


def test_the_rest_of_the_distance_to_bullet_is_a_force_one_step_late() -> None:
    """Bullet turns link forces by the attitude of the step before.

    With that, 0.02 mm, 0.3 mm/s and 3 mrad/s are left.
    """
    speeds = tuple(HOVER * (1 + 0.05 * np.array([0.1, 0.2, 0.3, 0.4])))

    def step_late(
        carry: tuple[RigidBody, RigidBody], _: None
    ) -> tuple[tuple[RigidBody, RigidBody], None]:
        before, body = carry
        thrust, *torque = vehicles.thrust_and_torques(vehicles.thrusts(speeds, BULLET), BULLET)
        wrench = Wrench(*(thrust * component for component in body_z(before)), *torque)
        rate = semi_implicit.bullet_damping(body, derivative(body, wrench, BULLET.inertia, GRAVITY))
        return (body, semi_implicit.move_body(body, rate, semi_implicit.STEP)), None

    before, body = jax.device_get(
        jax.lax.scan(step_late, (body_at_rest(), body_at_rest()), length=10 * PERIOD)[0]
    )
    now = peer_state(body, before)
    np.testing.assert_allclose(now[:3], BULLET_SEEN["place"], atol=2e-5)
    np.testing.assert_allclose(now[7:10], BULLET_SEEN["speed"], atol=3e-4)
    np.testing.assert_allclose(now[10:], BULLET_SEEN["turning"], atol=3e-3)


def hover_score(
    player: Callable[[Any, RigidBody], tuple[Any, Any]],
    memory: Any,
    vehicle: Vehicle,
    effects: Effects,
) -> tuple[float, int]:
    """Return and length of the peer's hover task."""

    def step_player(carry: Any, _: None) -> tuple[Any, tuple[jax.Array, jax.Array]]:
        memory, body = carry
        speeds, memory = player(memory, body)
        body = step_period(body, speeds, vehicle, GRAVITY, PERIOD, effects)
        squared = body.x**2 + body.y**2 + (body.z - 1) ** 2
        return (memory, body), (jnp.maximum(0, 2 - squared**2), body.z > 2)

    _, (rewards, over) = jax.jit(lambda c: jax.lax.scan(step_player, c, length=MAX_PERIODS))(
        (memory, body_at_rest())
    )
    ends = np.flatnonzero(over)
    length = int(ends[0]) + 1 if len(ends) else MAX_PERIODS
    return float(np.asarray(rewards)[:length].sum()), length


@pytest.mark.parametrize(
    ("action", "effects", "score", "length"),
    [
        (0.0, DYN, 333.863, 242),
        (1.0, DYN, 103.385, 59),
        (0.2, DYN, 233.022, 132),
        (0.0, PYB, 333.863, 242),
        (1.0, PYB, 105.808, 60),
        (0.2, PYB, 242.802, 137),
        (1.0, PYB._replace(ground=True, drag=True), 110.295, 62),
        (0.2, PYB._replace(ground=True, drag=True), 253.685, 141),
        (0.0, PYB._replace(ground=True, drag=True), 457.021, 242),
    ],
)
def test_one_dimensional_returns_are_the_peer_s(
    action: float, effects: Effects, score: float, length: int
) -> None:
    speeds = (HOVER * (1 + 0.05 * action),) * 4
    result = hover_score(lambda memory, body: (speeds, memory), (), BULLET, effects)
    assert result[1] == length
    assert result[0] == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize(("effects", "score"), [(DYN, 481.184), (PYB, 481.176)])
def test_the_cascaded_pid_scores_on_the_peer_s_hover_what_the_peer_s_scores(
    effects: Effects, score: float
) -> None:
    def player(memory: Any, body: RigidBody) -> Any:
        return cascaded_pid.command(
            memory, body, (0.0, 0.0, 1.0), CF2X, PERIOD * semi_implicit.STEP, GRAVITY
        )

    start = jax.tree.map(np.float64, cascaded_pid.initial_memory())
    total, length = hover_score(player, start, BULLET, effects)
    assert length == MAX_PERIODS
    assert total == pytest.approx(score, rel=1e-3)


def test_bullet_s_damping_of_a_vertical_flight_is_the_peer_s() -> None:
    body = fly(body_at_rest(), np.full((60, 4), 1.05 * HOVER), BULLET, PYB)
    assert [body.z, body.vz] == pytest.approx([2.02465, 1.83756], abs=1e-5)


def test_the_pid_flies_to_a_place_and_stays() -> None:
    def step_player(carry: Any, _: None) -> tuple[Any, None]:
        memory, body = carry
        speeds, memory = cascaded_pid.command(memory, body, (0.5, -0.3, 1.0), CF2X, 1 / 48, GRAVITY)
        return (memory, step_period(body, speeds, CF2X, GRAVITY, 5)), None

    start = jax.tree.map(np.float64, cascaded_pid.initial_memory())
    (_, body), _ = jax.jit(lambda c: jax.lax.scan(step_player, c, length=960))(
        (start, body_at_rest(wz=1.0, qz=0.1, qw=np.sqrt(0.99)))
    )
    assert np.abs([body.x - 0.5, body.y + 0.3, body.z - 1]).max() < 0.03
    assert np.abs([body.vx, body.vy, body.vz]).max() < 0.03
    # Its attitude never comes to rest: the rate gain, 196 / s, is beyond 2 / period, so it switches
    # between its limits.
    assert np.abs([body.wx, body.wy, body.wz]).max() < 1.5


# -- closed forms and invariants -------------------------------------------------------------------


def test_free_fall_is_the_method_s_own_parabola() -> None:
    """Semi-implicit Euler falls by g h^2 n (n + 1) / 2 in n steps.

    It is exact in velocity, and of first order in place.
    """
    body = fly(body_at_rest(10.0, vx=1.0), np.zeros((30, 4)))
    n, h = 240, semi_implicit.STEP
    assert [body.x, body.vz] == pytest.approx([1.0, -GRAVITY], rel=1e-12)
    assert body.z == pytest.approx(10 - GRAVITY * h * h * n * (n + 1) / 2, rel=1e-12)


@pytest.mark.parametrize(
    "vehicle", [CF2X, CF2P, RACE, CRAZYFLIE], ids=["CF2X", "CF2P", "RACE", "CRAZYFLIE"]
)
def test_hover_speed_is_an_equilibrium(vehicle: Vehicle) -> None:
    speed = float(vehicles.hover_speed(vehicle, GRAVITY))
    assert speed < vehicle.speed_limit
    body = fly(body_at_rest(), np.full((30, 4), speed), vehicle)
    np.testing.assert_allclose(np.array(body), np.array(body_at_rest()), atol=1e-9)


def test_constants_derived_are_those_the_sources_print() -> None:
    assert float(vehicles.hover_speed(CF2X, GRAVITY)) / RPM == pytest.approx(14468.4292, abs=1e-3)
    assert CF2X.speed_limit / RPM == pytest.approx(21702.6438, abs=1e-3)
    full = vehicles.thrust_and_torques(vehicles.thrusts((CF2X.speed_limit,) * 4, CF2X), CF2X)[0]
    assert full == pytest.approx(0.59535, abs=1e-5)
    # Torques about x with both rotors of a side at full speed, about z with both of a turning
    # sense.
    side = vehicles.thrusts((0.0, 0.0, CF2X.speed_limit, CF2X.speed_limit), CF2X)
    turn = vehicles.thrusts((0.0, CF2X.speed_limit, 0.0, CF2X.speed_limit), CF2X)
    assert vehicles.thrust_and_torques(side, CF2X)[1] == pytest.approx(8.3564e-3, abs=1e-7)
    assert vehicles.thrust_and_torques(turn, CF2X)[3] == pytest.approx(7.4796e-3, abs=1e-7)


@pytest.mark.parametrize(
    ("vehicle", "signs"), [(CF2X, (-1, -1, -1)), (CF2P, (0, -1, -1)), (RACE, (1, -1, 1))]
)
def test_rotor_1_turns_each_vehicle_the_way_the_peer_s_does(
    vehicle: Vehicle, signs: tuple[int, int, int]
) -> None:
    torques = vehicles.thrust_and_torques((1.0, 0.0, 0.0, 0.0), vehicle)[1:]
    assert tuple(np.sign(torques)) == signs


def test_a_rotor_slows_down_more_slowly_than_it_speeds_up() -> None:
    up = vehicles.lag((0.2,) * 4, (0.7,) * 4, CRAZYFLIE, 0.05545)[0]
    down = vehicles.lag((0.7,) * 4, (0.2,) * 4, CRAZYFLIE, 0.24939)[0]
    assert float(up) == pytest.approx(0.7 - 0.5 / np.e, rel=1e-12)
    assert float(down) == pytest.approx(0.2 + 0.5 / np.e, rel=1e-12)
    assert float(vehicles.lag((1.0,) * 4, (2.0,) * 4, CF2X, 1e-3)[0]) == pytest.approx(2.0)


TUMBLING = CF2X._replace(inertia=Inertia(0.5, 1.0e-3, 2.0e-3, 2.9e-3))


def tumble(steps: int, duration: float = 1.0) -> RigidBody:
    """Torque-free rotation about the unstable middle axis."""

    def step_body(_: int, body: RigidBody) -> RigidBody:
        rate = derivative(body, Wrench(*[0.0] * 6), TUMBLING.inertia, 0.0)
        return semi_implicit.move_body(body, rate, duration / steps)

    start = body_at_rest(0.0, wx=0.3, wy=12.0, wz=0.2)
    return jax.device_get(jax.jit(lambda b: jax.lax.fori_loop(0, steps, step_body, b))(start))


def test_order_one_in_angular_momentum_and_energy() -> None:
    """Quantities that torque-free motion conserves drift in proportion to the step."""

    def invariants(body: RigidBody) -> np.ndarray:
        rate, moments = np.array([body.wx, body.wy, body.wz]), np.array(TUMBLING.inertia[1:])
        momentum = np.array(rotation_matrix(body)).reshape(3, 3) @ (moments * rate)
        return np.array([0.5 * moments @ rate**2, *momentum])

    truth = invariants(body_at_rest(0.0, wx=0.3, wy=12.0, wz=0.2))
    errors = [np.abs(invariants(tumble(steps)) - truth).max() for steps in (4000, 8000, 16000)]
    orders = np.log2(errors[:-1]) - np.log2(errors[1:])
    np.testing.assert_allclose(orders, 1, atol=0.05)


def test_attitude_under_a_constant_rate_is_exact_and_stays_at_length_one() -> None:
    """Rotation about a principal axis: the exponential map makes no error however long the step."""
    body = fly(body_at_rest(wz=7.0), np.zeros((300, 4)))
    angle = 7.0 * 300 * PERIOD * semi_implicit.STEP
    assert [body.qw, body.qz] == pytest.approx([np.cos(angle / 2), np.sin(angle / 2)], abs=1e-10)
    assert float(np.sum(np.square(body[3:7]))) == pytest.approx(1, abs=1e-12)


def test_float32_stays_near_float64() -> None:
    """Single precision costs less than 0.1 mm over two seconds of open-loop flight.

    All axes turn.
    """
    rng = np.random.default_rng(3)
    commands = HOVER * (1 + 0.01 * rng.uniform(-1, 1, (60, 4)))
    single, double = (
        fly(body_at_rest(), commands, dtype=dtype) for dtype in (np.float32, np.float64)
    )
    assert single.x.dtype == np.float32
    assert np.abs([double.wx, double.wy, double.wz]).max() > 0.5
    assert np.abs(np.array(single[:3], np.float64) - np.array(double[:3])).max() < 1e-4


@pytest.mark.parametrize(
    "effects", [DYN, PYB, Effects(True, True, True)], ids=["DYN", "PYB", "all"]
)
def test_gradients_agree_with_finite_differences(effects: Effects) -> None:
    """The gradient of a flight's end by its rotor speeds exists at rest.

    A root or a norm would have none there.
    """

    def end_measure(relative: jax.Array) -> jax.Array:
        body = step_period(body_at_rest(0.05), tuple(HOVER * relative), CF2X, GRAVITY, 20, effects)
        return body.x + 2 * body.y + 3 * body.z + body.qx + body.wz

    at = np.array([1.0, 1.01, 1.02, 0.99])
    gradient = jax.jacfwd(end_measure)(at)
    steps = 1e-6 * np.eye(4)
    slopes = [
        (float(end_measure(at + step)) - float(end_measure(at - step))) / 2e-6 for step in steps
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6)

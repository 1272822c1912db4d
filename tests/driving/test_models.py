"""The models of driving against their published equations, at float64.

The models are IDM, MOBIL, the kinematic bicycle and collisions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from rlbench_suite.envs.driving.traffic import car_following, lane_changing
from rlbench_suite.envs.driving.traffic.car_following import Driver
from rlbench_suite.envs.driving.traffic.lane_changing import Prospect
from rlbench_suite.envs.driving.vehicle import bicycle, collision
from rlbench_suite.envs.driving.vehicle.bicycle import Motion, Pose
from rlbench_suite.envs.driving.vehicle.collision import Sweep

CAR = Driver(desired_speed=120 / 3.6, time_gap=1.5, jam_gap=2.0, acceleration=1.4, deceleration=2.0)
"""Kesting, Treiber & Helbing 2010, table 1."""
DURATION = 1 / 15


@pytest.fixture(autouse=True)
def enable_float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def drivers(rng: np.random.Generator, count: int) -> Driver:
    return Driver(
        rng.uniform(15, 35, count),
        rng.uniform(0.8, 2, count),
        rng.uniform(1, 3, count),
        rng.uniform(0.5, 2.5, count),
        rng.uniform(1, 4, count),
    )


# -- car following ---------------------------------------------------------------------------------


def test_idm_is_the_published_equation() -> None:
    """Compare with Treiber, Hennecke & Helbing 2000, eqs. 2 and 3, where s* >= s0.

    Their s1 is 0, and their delta is 4.
    """
    rng = np.random.default_rng(0)
    who = drivers(rng, 20_000)
    v = rng.uniform(0, 40, 20_000)
    gap = rng.uniform(0.2, 200, 20_000)
    leader = rng.uniform(0, 40, 20_000)
    v0, T, s0, a, b = who
    desired_gap = s0 + T * v + v * (v - leader) / (2 * np.sqrt(a * b))
    published = a * (1 - (v / v0) ** 4 - (desired_gap / gap) ** 2)
    usual = desired_gap >= s0
    computed = np.asarray(car_following.acceleration(who, v, gap, leader))
    np.testing.assert_allclose(computed[usual], published[usual], rtol=1e-12, atol=1e-9)
    # A leader that draws away fast: the wanted gap is s0, and never brakes by its square (Treiber &
    # Kesting 2013).
    assert 1_000 < (~usual).sum() < 10_000
    np.testing.assert_allclose(
        computed[~usual], (a * (1 - (v / v0) ** 4 - (s0 / gap) ** 2))[~usual], rtol=1e-12, atol=1e-9
    )


def test_idm_by_hand() -> None:
    """Compute one acceleration by hand, for v = 20, a leader at 15 and a gap of 30.

    s* = 2 + 30 + 20 * 5 / (2 sqrt(2.8)) = 61.88, and a = 1.4 (1 - .1296 - 2.0627^2).
    """
    assert float(car_following.acceleration(CAR, 20.0, 30.0, 15.0)) == pytest.approx(
        -4.7380, abs=1e-4
    )
    assert float(car_following.acceleration(CAR, 0.0, 1e9, 0.0)) == pytest.approx(1.4)
    assert float(car_following.acceleration(CAR, 0.0, 2.0, 0.0)) == pytest.approx(0.0)


@pytest.mark.parametrize("v", [5.0, 15.0, 25.0, 32.0])
def test_idm_equilibrium(v: float) -> None:
    """Find no acceleration at s_e = (s0 + v T) / sqrt(1 - (v / v0)^4).

    See Treiber et al. 2000, eq. 4.
    """
    gap = (2 + 1.5 * v) / math.sqrt(1 - (v / CAR.desired_speed) ** 4)
    root = brentq(
        lambda s: float(car_following.acceleration(CAR, v, s, v)), 2.0, 1000.0, xtol=1e-12
    )
    assert root == pytest.approx(gap, rel=1e-9)


def test_idm_stops_behind_a_wall_without_touching_it() -> None:
    """Brake from 30 m/s until the gap ends at s0, with braking that stays near b.

    See Treiber et al. 2000, section II.
    """
    x, v, hardest = 0.0, 30.0, 0.0
    for _ in range(15 * 120):
        a = float(car_following.acceleration(CAR, v, 500 - x, 0.0))
        hardest = min(hardest, a)
        motion = bicycle.move(Pose(x, 0.0, 0.0, v), a, 0.0, 5.0, DURATION)
        x, v = float(motion.end.x), float(motion.end.speed)
    assert 500 - x == pytest.approx(2.0, abs=0.15)
    assert v < 0.02
    assert -1.3 * CAR.deceleration < hardest < -0.8 * CAR.deceleration


# -- lane changing ---------------------------------------------------------------------------------


def test_mobil_is_the_published_criterion() -> None:
    """Compare with Kesting, Treiber & Helbing 2007, eqs. 2 and 3, in plain Python."""
    rng = np.random.default_rng(1)
    decisions = []
    for _ in range(3_000):
        ac, ac_, an, an_, ao, ao_ = rng.uniform(-6, 2, 6).tolist()
        p = rng.uniform(0, 1)
        safe = an_ > -4 and ac_ > -4
        worth = ac_ - ac + p * ((an_ - an) + (ao_ - ao)) > 0.1
        decision = lane_changing.wants_to_change(Prospect(ac, ac_, an, an_, ao, ao_), p)
        assert bool(decision) == (safe and worth)
        assert float(
            lane_changing.incentive(Prospect(ac, ac_, an, an_, ao, ao_), p)
        ) == pytest.approx(ac_ - ac + p * (an_ - an + ao_ - ao), abs=1e-12)
        decisions.append(safe and worth)
    assert 300 < sum(decisions) < 2_700


# -- bicycle ---------------------------------------------------------------------------------------


def rates(
    _: float, z: np.ndarray, acceleration: float, steering: float, length: float
) -> list[float]:
    """Return the rates of Polack et al. 2017, eqs. 1 to 5.

    The axles are at equal distances from the centre.
    """
    _, _, heading, v = z
    rear = 0.3 * length
    beta = math.atan(rear / (rear + rear) * math.tan(steering))
    return [
        v * math.cos(heading + beta),
        v * math.sin(heading + beta),
        v / rear * math.sin(beta),
        acceleration,
    ]


def test_bicycle_is_the_published_model() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        start = np.array(
            [rng.uniform(-9, 9), rng.uniform(0, 16), rng.uniform(-1.5, 1.5), rng.uniform(1, 40)]
        )
        acceleration, steering = rng.uniform(-9, 3), rng.uniform(-0.7, 0.7)
        length = rng.choice([5.0, 12.0])
        slip = bicycle.slip_of_steering(steering)
        bound = float(bicycle.slip_bound(start[3], length))
        if (
            abs(float(slip)) > bound
        ):  # all steering stays within the bound; the angle that gives it:
            slip = math.copysign(bound, steering)
            steering = math.atan(2 * math.tan(math.asin(slip)))
        truth = solve_ivp(
            rates,
            (0, DURATION),
            start,
            "DOP853",
            args=(acceleration, steering, length),
            rtol=1e-13,
            atol=1e-13,
        ).y[:, -1]
        motion = bicycle.move(Pose(*start), acceleration, slip, length, DURATION)
        np.testing.assert_allclose(np.array(motion.end, float), truth, rtol=0, atol=1e-9)
        assert float(motion.cosine) == pytest.approx(math.cos((start[2] + truth[2]) / 2), abs=1e-9)


def test_braking_to_a_stop_within_a_step_stays_there() -> None:
    motion = bicycle.move(Pose(0.0, 2.0, 0.0, 0.3), -9.0, 0.0, 5.0, DURATION)
    assert float(motion.end.x) == pytest.approx(0.3**2 / 18)
    assert float(motion.end.speed) == 0
    still = bicycle.move(motion.end, -9.0, 0.0, 5.0, DURATION)
    np.testing.assert_array_equal(np.array(still.end, float), np.array(motion.end, float))


@pytest.mark.parametrize("length", [5.0, 12.0])
@pytest.mark.parametrize("speed", [8.0, 15.0, 25.0, 35.0])
def test_lane_change_takes_seconds_and_never_overshoots(speed: float, length: float) -> None:
    """Keep lateral acceleration within half the grip, and change by 4 m in 2.5 to 5 s.

    Toledo & Zohar 2007 found a mean of 4.6 s.
    """
    pose, done = Pose(0.0, 2.0, 0.0, speed), None
    for i in range(15 * 10):
        slip = bicycle.steer_to(pose, 6.0, length)
        assert abs(speed**2 * float(slip) / (0.3 * length)) <= 0.5 * 9.81 + 1e-9
        pose = bicycle.move(pose, 0.0, slip, length, DURATION).end
        assert 2.0 - 1e-9 <= float(pose.y) <= 6.0 + 0.01
        if done is None and float(pose.y) > 5.8:
            done = (i + 1) * DURATION
    assert 2.5 < done < 5.0
    assert float(pose.y) == pytest.approx(6.0, abs=0.02)
    assert float(pose.heading) == pytest.approx(0.0, abs=1e-3)


# -- collisions ------------------------------------------------------------------------------------


def corners(x: float, y: float, heading: float, length: float, width: float) -> np.ndarray:
    local = 0.5 * np.array([[length, width], [length, -width], [-length, -width], [-length, width]])
    c, s = math.cos(heading), math.sin(heading)
    return local @ np.array([[c, s], [-s, c]]) + [x, y]


def polygon_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the distance of two convex quadrilaterals, 0 if they meet.

    It compares corners with edges, and looks for corners inside.
    """

    def to_edges(points: np.ndarray, polygon: np.ndarray) -> float:
        starts, edges = polygon, np.roll(polygon, -1, 0) - polygon
        along = points[:, None] - starts
        t = np.clip((along * edges).sum(-1) / (edges**2).sum(-1), 0, 1)
        return float(np.linalg.norm(along - t[..., None] * edges, axis=-1).min())

    def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]

    def holds(polygon: np.ndarray, points: np.ndarray) -> bool:
        edges = np.roll(polygon, -1, 0) - polygon
        sides = cross(edges, points[:, None] - polygon)
        return bool(((sides >= 0).all(-1) | (sides <= 0).all(-1)).any())

    def edges_cut() -> bool:
        p, r = first, np.roll(first, -1, 0) - first
        q, s = second, np.roll(second, -1, 0) - second
        d = cross(r[:, None], s[None])
        gap = q[None] - p[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            t, u = cross(gap, s[None]) / d, cross(gap, r[:, None]) / d
        return bool(((t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)).any())

    if holds(first, second) or holds(second, first) or edges_cut():
        return 0.0
    return min(to_edges(first, second), to_edges(second, first))


def test_collision_checker_is_never_late_and_at_most_centimetres_early() -> None:
    """Sample the positions of two vehicles finely during random steps.

    A touch is always reported, and what is reported is nearly a touch.
    """
    rng = np.random.default_rng(3)
    count = 4_000
    speed = rng.uniform(0, 40, (2, count))
    heading = rng.uniform(-0.5, 0.5, (2, count)) * (1 + 2 * (rng.random((2, count)) < 0.3))
    length = rng.choice([5.0, 12.0], (2, count))
    width = np.where(length > 5, 2.5, 2.0)
    x = np.stack([np.zeros(count), rng.uniform(-14, 14, count)])
    y = np.stack([np.full(count, 8.0), 8 + rng.uniform(-5, 5, count)])
    acceleration = rng.uniform(-9, 3, (2, count))
    slip = rng.uniform(-1, 1, (2, count)) * np.asarray(bicycle.slip_bound(speed, length))
    start = Pose(x, y, heading, speed)
    motion = jax.tree.map(np.asarray, bicycle.move(start, acceleration, slip, length, DURATION))
    sweeps = [
        Sweep(
            Pose(*(v[i] for v in start)),
            Motion(Pose(*(v[i] for v in motion.end)), *(m[i] for m in motion[1:])),
            length[i],
            width[i],
        )
        for i in (0, 1)
    ]
    reported = np.asarray(collision.collide(sweeps[0], sweeps[1], DURATION))
    fine = [
        jax.tree.map(np.asarray, bicycle.move(start, acceleration, slip, length, DURATION * t).end)
        for t in np.linspace(0, 1, 17)
    ]
    nearest = np.array(
        [
            min(
                polygon_distance(
                    corners(f.x[0, k], f.y[0, k], f.heading[0, k], length[0, k], width[0, k]),
                    corners(f.x[1, k], f.y[1, k], f.heading[1, k], length[1, k], width[1, k]),
                )
                for f in (fine if abs(x[1, k]) < 16 else fine[:1])
            )
            for k in range(count)
        ]
    )
    touched = nearest == 0
    assert not (touched & ~reported).any()
    assert 0.2 < touched.mean() < 0.9
    # Between samples a step moves 17 cm at most.
    margin = sum(
        np.asarray(collision.turn_margin(sweep)) for sweep in sweeps
    ) + 2 * collision.chord_margin(DURATION)
    assert (nearest < 1.5 * margin + 0.085)[reported].all()
    assert np.median(margin) < 0.06


def test_passing_side_by_side_with_a_hand_between_is_no_collision() -> None:
    def straight(y: float, speed: float) -> Sweep:
        pose = Pose(0.0, y, 0.0, speed)
        return Sweep(pose, bicycle.move(pose, 0.0, 0.0, 5.0, DURATION), 5.0, 2.0)

    assert not collision.collide(straight(2.0, 30.0), straight(4.05, 20.0), DURATION)
    assert collision.collide(straight(2.0, 30.0), straight(3.95, 20.0), DURATION)

"""Lane keeping with obstacles against geometry in the plane, and against cheap players.

The geometry is that of the lidar, the picture and touching.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.roads import winding_lane
from rlbench_suite.envs.driving.tasks import lane_keeping_obstacles
from rlbench_suite.envs.driving.tasks.lane_keeping_obstacles import EDGE, Params, StanleyAround
from rlbench_suite.envs.driving.vehicle import dynamic_bicycle
from rlbench_suite.envs.driving.vehicle.dynamic_bicycle import Car

pytestmark = pytest.mark.of_variants
LANE = dynamic_bicycle.Params(12.0, 1700.0, 0.8, 0.018, 80.0, 0.7)
PARAMS = Params(
    LANE,
    np.array([45.0, 88, 137, 176, 228, 268]),
    np.array([1.2, -0.9, 1, -1.1, 0.8, -1]),
    np.full(6, 1.1),
)
CARS = [
    Car(33.0, 0.4, 0.1, 0, 0),
    Car(80.0, 1.4, -0.25, 0, 0),
    Car(128.0, -1.0, 0.3, 0, 0),
    Car(270.0, 2.5, 0.0, 0, 0),
]


@cache
def task(observation: str = "lidar") -> Any:
    return card("LaneKeepingObstacles-v0", observation=observation).build()


class Plane(NamedTuple):
    """The road in the plane, as the car sees it: x ahead, y to the left."""

    line: np.ndarray
    """``(n, 2)`` m: the lane's centre, every 5 cm"""
    discs: np.ndarray
    """``(6, 2)`` m"""

    def beside(self, points: np.ndarray) -> np.ndarray:
        """Return the distance of points ``(n, 2)`` from the lane's centre."""
        return np.array([np.hypot(*(self.line - point).T).min() for point in points])

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Return how deep points are in the nearest obstacle, negative outside."""
        return (PARAMS.radius - np.hypot(*(points[:, None] - self.discs).transpose(2, 0, 1))).max(1)


def plane(car: Car) -> Plane:
    """Integrate the lane's curvature twice by trapezia of 5 mm, from the start."""
    s = np.arange(-20.0, 340.0, 0.005)
    kappa = LANE.sharpness * np.sin(2 * math.pi * s / LANE.wavelength + LANE.phase)

    def integrate(value: np.ndarray) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(0.0025 * (value[1:] + value[:-1]))])

    angle = integrate(kappa)
    x, y = integrate(np.cos(angle)), integrate(np.sin(angle))

    def place(at: Any, offset: Any) -> np.ndarray:
        psi = np.interp(at, s, angle)
        return np.stack(
            [
                np.interp(at, s, x) - offset * np.sin(psi),
                np.interp(at, s, y) + offset * np.cos(psi),
            ],
            -1,
        )

    heading = np.interp(car.s, s, angle) + car.e
    turn = np.array(
        [[math.cos(heading), -math.sin(heading)], [math.sin(heading), math.cos(heading)]]
    )
    origin = place(car.s, car.d)
    line = place(np.arange(car.s - 20, car.s + 65, 0.05), 0.0)
    return Plane((line - origin) @ turn, (place(PARAMS.s, PARAMS.d) - origin) @ turn)


def test_beams_end_at_the_first_edge_or_obstacle() -> None:
    """Check that a beam ends at an edge or an obstacle, with nothing before it.

    Polylines of 2 m miss an edge by 2 cm.
    """
    measured = jax.jit(lambda car: task().beams(car, PARAMS))
    edges = obstacles = 0
    for car in CARS:
        road, distances = plane(car), np.asarray(measured(jax.tree.map(jnp.float32, car)))
        for distance, angle in zip(
            distances, np.linspace(-math.pi / 2, math.pi / 2, 32), strict=True
        ):
            beam = np.array([math.cos(angle), math.sin(angle)])
            free_points = np.arange(0, distance - 0.3, 0.1)[:, None] * beam
            assert (road.beside(free_points) < EDGE + 0.03).all()
            assert (road.inside(free_points) < 0.01).all()
            end = distance * beam[None]
            at_edge = abs(road.beside(end)[0] - EDGE) < 0.03
            at_disc = abs(road.inside(end)[0]) < 0.01
            assert at_edge or at_disc or distance == 50
            edges, obstacles = edges + at_edge, obstacles + at_disc
    assert edges > 30
    assert obstacles > 6


def test_pixels_show_ground_road_and_obstacles() -> None:
    photograph = jax.jit(lambda car: task("camera").photograph(car, PARAMS))
    counts = np.zeros(3, int)
    for car in CARS[:3]:
        road = plane(car)
        image = np.asarray(photograph(jax.tree.map(jnp.float32, car))).reshape(-1, 3)
        rows, columns = np.indices((48, 24)).reshape(2, -1)
        places = np.stack([43.5 - rows, 11.5 - columns], 1)
        beside, inside = road.beside(places), road.inside(places)
        colours = {
            winding_lane.GROUND_COLOUR: (beside > EDGE + 0.6) & (inside < -0.6),
            winding_lane.ROAD_COLOUR: (beside < EDGE - 0.6) & (inside < -0.6),
            winding_lane.OBSTACLE_COLOUR: inside > 0.5,
        }
        counts += [where.sum() for where in colours.values()]
        for colour, where in colours.items():
            np.testing.assert_allclose(
                image[where], np.broadcast_to(255 * np.array(colour), (where.sum(), 3)), atol=1
            )
    assert (counts > [1000, 500, 2]).all(), counts


def test_clearance_is_that_of_the_rectangle() -> None:
    """Compare with the outline of the car, sampled every centimetre."""
    x, y = np.arange(-2.5, 2.005, 0.01), np.arange(-1, 1.005, 0.01)
    sides = [np.stack([x, np.full_like(x, side)], 1) for side in (-1, 1)]
    ends = [np.stack([np.full_like(y, end), y], 1) for end in (-2.5, 2)]
    outline = np.concatenate([*sides, *ends])
    for car in (
        Car(40.6, -0.9, 0.1, 0, 0),
        Car(87.0, 1.4, -0.2, 0, 0),
        Car(131.5, -2.0, 0.2, 0, 0),
    ):
        truth = -plane(car).inside(outline).max()
        clearance = lane_keeping_obstacles.clearance(jax.tree.map(jnp.float32, car), PARAMS)
        assert float(clearance) == pytest.approx(truth, abs=1e-3)


def test_feedback_is_error_integral_and_change() -> None:
    env = TaskEnv(task(), split="test")
    env.reset(seed=1)
    places = [float(env.episode.state.car.d)]
    for wheel in (0.05, 0.0, -0.1):
        observation, *_ = env.step(np.array([wheel], np.float32))
        places.append(float(env.episode.state.car.d))
    d, integral, change, e, _, u, last = observation[:7]
    assert d == pytest.approx(places[-1] / 3, rel=1e-5)
    assert integral == pytest.approx(0.1 * sum(places[1:]) / 3, rel=1e-5)
    assert change == pytest.approx((places[-1] - places[-2]) / 0.1 / 3, rel=1e-4)
    assert (e, u, last) == pytest.approx(
        (2 * env.episode.state.car.e, env.params.lane.speed / 25, -0.1), rel=1e-5
    )


def test_the_reference_gets_round_and_no_cheap_driver_does() -> None:
    """Held wheels leave the road; Stanley along the middle touches an obstacle.

    Both earn nothing.
    """
    best = play(task(), reference_player(task()), range(200), split="test")
    assert best.info["success"].mean() > 0.97
    assert best.cost.mean() < 1
    cheap = [Constant(jnp.array([wheel], jnp.float32)) for wheel in (-0.1, 0, 0.05)]
    for player in (*cheap, StanleyAround(margin=-5.0)):
        record = play(task(), player, range(60), split="test")
        assert record.info["success"].mean() < 0.05
        assert record.total.mean() < 0.05 * best.total.mean()
        failed = ~record.info["success"]
        # Otherwise a crash in every episode would keep the limit.
        assert (record.cost[failed] >= 10).all()


def test_players_of_numbers_drive_the_same_in_every_setting() -> None:
    """The setting of the observation changes nothing of the episode."""
    totals = [
        play(task(view), StanleyAround(), range(4)).total for view in ("lidar", "state", "camera")
    ]
    np.testing.assert_array_equal(totals[0], totals[1])
    np.testing.assert_array_equal(totals[0], totals[2])

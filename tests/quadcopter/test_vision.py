"""Check Vision against solid geometry, and its pilot and autopilot.

The pilot flies by pictures alone, and the autopilot does as it is told.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.physics.rigid_body import RigidBody
from rlbench_suite.envs.quadcopter.sensing import onboard_camera
from rlbench_suite.envs.quadcopter.sensing.onboard_camera import COLUMNS, PIXEL, ROWS
from rlbench_suite.envs.quadcopter.tasks import vision

AWAY = (0.0, 0.0, -50.0)
"""A place under the floor, where nothing is seen."""
SKY = int(255 * onboard_camera.SKY)


@pytest.fixture(scope="module")
def task() -> Any:
    return card("QuadcopterVision-v0").build()


def body(
    x: float = 0.0, y: float = 0.0, z: float = 1.0, turn: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
) -> RigidBody:
    return RigidBody(*(np.float32(value) for value in (x, y, z, *turn, *(0.0,) * 6)))


def turn_about(axis: int, angle: float) -> tuple[float, ...]:
    """The quaternion of a turn (rad) about x, y or z."""
    turn = [math.cos(angle / 2), 0.0, 0.0, 0.0]
    turn[1 + axis] = math.sin(angle / 2)
    return tuple(turn)


def look(
    of: RigidBody,
    ball: tuple[float, ...] = AWAY,
    radius: float = 0.25,
    pillars: Any = ((0.0, 99.0),),
) -> np.ndarray:
    return np.asarray(onboard_camera.picture(of, ball, radius, pillars, 0.1))


def is_red(image: np.ndarray) -> np.ndarray:
    return np.asarray(vision.is_like(image, onboard_camera.RED))


def is_blue(image: np.ndarray) -> np.ndarray:
    return np.asarray(vision.is_like(image, onboard_camera.BLUE))


def directions() -> np.ndarray:
    """Return unit vectors through the middles of pixels, ``(24, 32, 3)``, body frame.

    They are written out from the field of view.
    """
    rows, columns = np.indices((ROWS, COLUMNS))
    slope = 2 * math.tan(math.radians(45)) / COLUMNS
    ways = np.stack([np.ones(rows.shape), (15.5 - columns) * slope, (11.5 - rows) * slope], -1)
    return ways / np.linalg.norm(ways, axis=-1, keepdims=True)


@pytest.mark.parametrize(
    "place", [(2.0, 0.0, 1.0), (1.2, 0.6, 1.3), (3.0, -1.5, 0.4), (0.9, 0.0, 1.0)]
)
def test_a_ball_covers_the_cone_that_touches_it(place: tuple[float, float, float]) -> None:
    """A ray meets a sphere of radius r at distance d within asin(r / d) of its middle."""
    radius = 0.3
    middle = np.array(place) - (0, 0, 1)
    away = np.linalg.norm(middle)
    angle = np.arccos(np.clip(directions() @ middle / away, -1, 1))
    covered = is_red(look(body(), place, radius))
    np.testing.assert_array_equal(covered, angle < math.asin(radius / away))
    assert covered.any()
    # Straight ahead its outline is a circle, of slope tan(asin(r / d)).
    if place == (0.9, 0.0, 1.0):
        area = math.pi * (math.tan(math.asin(radius / 0.9)) / PIXEL) ** 2
        assert covered.sum() == pytest.approx(area, rel=0.05)


@pytest.mark.parametrize("place", [(1.5, 0.0), (1.0, 0.5), (2.5, -1.0)])
def test_a_pillar_covers_the_wedge_that_touches_it(place: tuple[float, float]) -> None:
    """A level camera shows a pillar in columns within asin(r / d) of its bearing.

    It is seen above the floor it stands on.
    """
    ways = directions()
    bearing = np.abs(np.arctan2(ways[..., 1], ways[..., 0]) - math.atan2(place[1], place[0]))
    away = math.hypot(*place)
    within = bearing < math.asin(0.1 / away)
    level = ways / np.hypot(ways[..., 0], ways[..., 1])[..., None]
    across = away * np.sin(bearing)
    depth = away * np.cos(bearing) - np.sqrt(np.maximum(0.1**2 - across**2, 0))
    standing = 1 + depth * level[..., 2] > 0
    covered = is_blue(look(body(), pillars=(place,)))
    np.testing.assert_array_equal(covered, within & standing)
    assert covered.any()


def test_depths_lie_on_the_surfaces() -> None:
    """A point along each ray at its depth is on the sphere, the cylinder or the floor.

    Nearer points are not.
    """
    of = body(0.3, -0.2, 1.4, turn_about(1, 0.2))
    rays = onboard_camera.rays_of(of)
    here = np.array([0.3, -0.2, 1.4])
    ways = np.stack([np.asarray(component, np.float64) for component in rays], -1)
    middle = np.array([2.3, 0.1, 1.2])
    hits = {
        "ball": (
            onboard_camera.sphere(rays, tuple(middle - here), 0.3).depth,
            lambda at: np.linalg.norm(at - middle, axis=-1) - 0.3,
        ),
        "pillar": (
            onboard_camera.cylinder(rays, tuple(middle[:2] - here[:2]), 0.2).depth,
            lambda at: np.hypot(*(at - middle)[..., :2].T).T - 0.2,
        ),
        "floor": (onboard_camera.floor(rays, of)[0], lambda at: at[..., 2]),
    }
    for depth, beyond in hits.values():
        hit = np.asarray(depth) < 100
        assert hit.any()
        ends = here + np.asarray(depth, np.float64)[..., None] * ways
        np.testing.assert_allclose(beyond(ends)[hit], 0, atol=1e-4)
        assert (beyond(here + 0.98 * (ends - here))[hit] > 0).all()


def test_the_nearer_hides_the_farther() -> None:
    ball, pillar = (2.0, 0.0, 1.0), ((1.0, 0.0),)
    alone = is_red(look(body(), ball))
    assert (
        is_red(look(body(), ball, pillars=pillar))
        == (alone & ~is_blue(look(body(), pillars=pillar)))
    ).all()
    before = is_red(look(body(), (1.0, 0.0, 1.0), pillars=((2.0, 0.0),)))
    np.testing.assert_array_equal(before, is_red(look(body(), (1.0, 0.0, 1.0))))
    assert not is_red(look(body(), (-2.0, 0.0, 1.0))).any()  # behind the camera
    assert not is_red(look(body(), (2.0, 0.0, -1.0))).any()  # under the floor


def test_floor_tiles_are_one_metre_and_the_horizon_is_where_the_pitch_says() -> None:
    """Floor points are light or dark by the parity of their tiles, away from their edges."""
    of = body(0.35, 0.2, 0.8)
    image, ways = look(of)[..., 0], directions()
    down = ways[..., 2] < 0
    with np.errstate(divide="ignore"):
        ends = np.array([0.35, 0.2, 0.8]) + (0.8 / -ways[..., 2])[..., None] * ways
    x, y = ends[..., 0], ends[..., 1]
    inside = (
        down
        & (np.abs(x - np.round(x)) > 0.2)
        & (np.abs(y - np.round(y)) > 0.2)
        & (np.hypot(x, y) < 8)
    )
    light = (np.floor(x) + np.floor(y)) % 2 == 0
    assert inside.sum() > 50
    np.testing.assert_array_equal(image[inside] > 255 * onboard_camera.FLOOR, light[inside])
    # Level: the sky is the upper half. Nose down by 0.2 rad: all whose slope is above tan 0.2.
    np.testing.assert_array_equal(image == SKY, np.indices(image.shape)[0] < ROWS / 2)
    pitched = look(body(turn=turn_about(1, 0.2)))[..., 0]
    slope = (11.5 - np.arange(ROWS)) * PIXEL
    np.testing.assert_array_equal((pitched == SKY).all(1), slope > math.tan(0.2))


@pytest.mark.parametrize(("axis", "angle"), [(2, 0.7), (2, -2.0), (1, 0.3), (0, 0.5)])
def test_a_turn_of_the_vehicle_is_the_opposite_turn_of_the_world(axis: int, angle: float) -> None:
    """A ball carried along with the camera's turn stays in the same pixels."""
    middle = np.array([1.5, 0.3, 0.2])
    cosine, sine = math.cos(angle), math.sin(angle)
    first, second = [i for i in range(3) if i != axis]
    sine = -sine if axis == 1 else sine
    turned_middle = middle.copy()
    turned_middle[first] = cosine * middle[first] - sine * middle[second]
    turned_middle[second] = sine * middle[first] + cosine * middle[second]
    high = np.array([0.0, 0.0, 5.0])
    straight = is_red(look(body(z=5.0), tuple(middle + high)))
    np.testing.assert_array_equal(
        is_red(look(body(z=5.0, turn=turn_about(axis, angle)), tuple(turned_middle + high))),
        straight,
    )
    assert straight.sum() > 10


def test_rings_are_as_described_and_pillars_stand_clear(starts: Any) -> None:
    p = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), starts.params)
    away = np.hypot(p.x, p.y)
    assert 1.5 <= away.min() < 1.52
    assert 2.48 < away.max() < 2.5
    assert p.z.min() >= 1
    assert p.z.max() <= 2
    turn = np.angle(np.exp(1j * np.diff(np.arctan2(p.y, p.x), axis=1)))
    np.testing.assert_allclose(turn, math.pi / 2, atol=1e-5)
    gaps = np.hypot(p.x[:, :, None] - p.pillar_x[:, None], p.y[:, :, None] - p.pillar_y[:, None])
    # A pillar 45 degrees beside a ball 1.5 m out is 1.06 m away where it is nearest.
    assert gaps.min() >= 1.5 * math.sin(math.pi / 4) - 1e-5
    assert np.hypot(p.pillar_x, p.pillar_y).min() >= 1


def test_the_autopilot_flies_as_told_whatever_its_heading(task: Any, starts: Any) -> None:
    """Fly 16 vehicles of different mass and heading for two seconds by one command.

    It pulls at the velocity with gain k = 2 x 1.5/s against the rotors' drag c, in a frame that
    turns at w: the level velocity, as a complex number, settles at k u / (k + c + i w), the climb
    at k u / (k + c).
    """
    some = jax.tree.map(lambda leaf: leaf[:16], starts)
    states, headings = some.state, np.asarray(some.state.heading, np.float64)
    step = jax.jit(
        jax.vmap(lambda s, p: task.transition(s, np.float32([0.6, -0.4, 0.3, 0.25]), None, p))
    )
    for _ in range(50):
        states = step(states, some.params)
    b = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), states.vehicle.body)
    now = headings + 2.0 * 0.25 * 2.0
    np.testing.assert_allclose(np.exp(1j * np.asarray(states.heading)), np.exp(1j * now), atol=1e-4)
    level = (b.vx + 1j * b.vy) * np.exp(-1j * now)
    air, rotors = vision.CRAZYFLIE_AIR, np.sum(jax.tree.leaves(states.vehicle.rotors), 0)
    mass = np.asarray(some.params.airframe.inertia.mass, np.float64)
    steady_velocity = 3 * (0.9 - 0.6j) / (3 + air.drag_xy * rotors / mass + 0.5j)
    # Thrust points where the body did some 2 / 20 s ago, a turn of 0.05 rad: 3 % of what it adds,
    # 0.6 m/s^2 by k.
    np.testing.assert_allclose(level, steady_velocity, atol=0.02)
    np.testing.assert_allclose(b.vz, 3 * 0.3 / (3 + air.drag_z * rotors / mass), atol=0.02)
    facing = 2 * (b.qw + 1j * b.qz) ** 2
    assert (np.abs(np.angle(facing * np.exp(-1j * now))) < 0.25).all()


def move_vehicle(start: Any, place: Any, reached: int = 0) -> Any:
    x, y, z = (np.float32(value) for value in place)
    vehicle = start.state.vehicle
    body = vehicle.body._replace(x=x, y=y, z=z)
    return start.state._replace(vehicle=vehicle._replace(body=body), reached=np.int32(reached))


def test_progress_is_metres_nearer_and_every_crash_costs_the_same(task: Any, start: Any) -> None:
    p, action = start.params, np.zeros(4, np.float32)
    goal = np.array([p.x[0], p.y[0], p.z[0]], np.float64)
    direction = -goal / np.linalg.norm(goal)  # towards the origin: clear of pillars
    stops = [move_vehicle(start, goal + distance * direction) for distance in (1.2, 1.0, 0.5)]
    total = sum(float(task.reward(a, action, b, None, p)) for a, b in pairwise(stops))
    assert total == pytest.approx(0.7, abs=1e-5)
    there = move_vehicle(start, goal + 0.3 * direction, reached=1)
    assert float(task.reward(stops[-1], action, there, None, p)) == pytest.approx(1 + 0.2, abs=1e-5)
    crashes = {
        "pillar": (p.pillar_x[0] + 0.1, p.pillar_y[0] + 0.1, 1.0),
        "floor": (0.0, 0.0, 0.05),
        "lost": (0.0, 6.1, 1.0),
    }
    for place in crashes.values():
        crash = move_vehicle(start, place)
        assert task.terminal(crash, None, p)
        assert float(task.reward(stops[0], action, crash, None, p)) == pytest.approx(
            1.2 - vision.CRASH, abs=1e-5
        )
    assert not task.terminal(
        move_vehicle(start, (p.pillar_x[0] + 0.13, p.pillar_y[0] + 0.13, 1.0)), None, p
    )


def test_the_pilot_sees_only_what_is_observed(task: Any, start: Any) -> None:
    """The same observation of another state leads to the same action.

    A ball on the left makes it turn left, and without a ball it searches.
    """
    pilot = reference_player(task)
    memory, key = pilot.initial(start.params), jax.random.key(0)
    p = start.params

    def action_of(state: Any, observation: Any, params: Any) -> np.ndarray:
        return np.asarray(pilot.act(memory, View(observation, None, state, params), key)[0])

    def observe_ball(bearing: float) -> Any:
        at = (3 * math.cos(bearing), 3 * math.sin(bearing), 1.2)
        params = p._replace(
            **{name: np.full(4, value, np.float32) for name, value in zip("xyz", at, strict=True)},
            pillar_x=np.full(4, -50, np.float32),
        )
        level = start.state.vehicle.body._replace(
            **{
                name: np.float32(value)
                for name, value in zip(RigidBody._fields, body(z=1.2), strict=True)
            }
        )
        state = start.state._replace(vehicle=start.state.vehicle._replace(body=level))
        return task.observation(state, None, params)

    left, right, behind = observe_ball(0.4), observe_ball(-0.4), observe_ball(3.0)
    other_params = p._replace(x=-p.x, pillar_y=p.pillar_y + 1)
    np.testing.assert_array_equal(
        action_of(start.state, left, p),
        action_of(move_vehicle(start, (1, 1, 1), 3), left, other_params),
    )
    assert action_of(start.state, left, p)[3] == pytest.approx(2.5 * 0.4 / 2, abs=2.5 * PIXEL / 2)
    assert action_of(start.state, right, p)[3] == pytest.approx(-2.5 * 0.4 / 2, abs=2.5 * PIXEL / 2)
    assert action_of(start.state, behind, p)[3] == 1


def test_the_reference_needs_its_camera(task: Any) -> None:
    """With its camera nine in ten episodes succeed, and with a black picture none does.

    So nothing else tells the way.
    """
    pilot = reference_player(task)
    flights = play(task, pilot, range(32), split="test")
    assert flights.info["success"].mean() >= 0.9
    assert flights.total.mean() == pytest.approx(task.scores["reference"].mean, rel=0.1)
    blind = play(task, Blindfolded(*pilot), range(32), split="test")
    assert not blind.info["success"].any()
    assert blind.info["reached"].mean() < 0.2


class Blindfolded(vision.VisionPilot):
    """The reference with a cap on the lens."""

    def act(self, memory: Any, view: View, key: jax.Array) -> Any:
        """As the pilot, of a black picture."""
        dark = jax.numpy.zeros_like(view.observation["picture"])
        return super().act(
            memory, view._replace(observation=view.observation | {"picture": dark}), key
        )


def test_words_and_picture(task: Any, start: Any) -> None:
    ahead = start.state._replace(vehicle=start.state.vehicle._replace(body=body(z=1.2)))
    params = start.params._replace(x=np.full(4, 2, np.float32), y=np.full(4, 0, np.float32))
    words = task.describe(ahead, params)
    image = np.asarray(task.camera(ahead, params))
    assert words.count("R") - 1 == is_red(image).sum() > 0  # one R explains the letters
    assert "Height 1.200 m" in words
    picture = task.draw(ahead, params)
    assert picture.shape == task.picture_shape
    # The camera's picture fills the lower right corner, pixel by pixel.
    corner = picture[300 - 135 :, 420:]
    rows, columns = (np.arange(ROWS) * 135 // ROWS + 2, np.arange(COLUMNS) * 180 // COLUMNS + 2)
    np.testing.assert_array_equal(corner[np.ix_(rows, columns)], image)

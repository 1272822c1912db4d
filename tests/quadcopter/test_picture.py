"""Pictures: a pinhole's closed forms, near things before far ones, and vehicles where they are."""

from __future__ import annotations

import math
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest

from rlbench_suite.envs.quadcopter.physics.dynamics import Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.rigid_body import RigidBody
from rlbench_suite.envs.quadcopter.rendering import picture
from rlbench_suite.envs.quadcopter.rendering.camera import Camera
from rlbench_suite.envs.quadcopter.rendering.picture import Shot
from rlbench_suite.envs.quadcopter.rendering.scene import (
    DARK,
    LIGHT,
    SKY,
    Ball,
    Face,
    Floor,
    Line,
    render,
)

LEVEL = Camera((0.0, -5.0, 2.0), (0.0, 0.0, 2.0), math.radians(90))
OBLIQUE = Camera((3.0, -4.0, 6.0), (-1.0, 0.5, 0.2), math.radians(40))
FAR_BELOW = Floor(0.0, 0.0, -100.0, 1.0, 1.0)
"""A floor that no picture here shows."""


def vehicle(**body: float) -> Quadcopter:
    at_rest = RigidBody(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, *(0.0,) * 6)
    return Quadcopter(at_rest._replace(**body), Rotors(0.0, 0.0, 0.0, 0.0))


def square(y: float, half: float, colour: str) -> Face:
    """Upright, across the view of ``LEVEL``."""
    corners = [(-half, y, 2 - half), (half, y, 2 - half), (half, y, 2 + half), (-half, y, 2 + half)]
    return Face(np.array(corners), colour)


def pixels_of_colour(image: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """Rows and columns ``(n, 2)`` of the pixels of just that colour."""
    return np.argwhere((image == colour).all(-1))


@pytest.mark.parametrize(
    "point", [(0.0, 0.0, 2.0), (1.0, 0.0, 2.0), (-2.0, 3.0, 5.0), (0.3, -4.0, 1.5)]
)
def test_a_level_camera_shows_points_where_similar_triangles_say(
    point: tuple[float, float, float],
) -> None:
    """Ninety degrees over 100 rows: one metre is 50 pixels by metre of distance."""
    x, y, z = point
    expected = (100 + 50 * x / (y + 5), 50 - 50 * (z - 2) / (y + 5))
    pixels = LEVEL.pixels(LEVEL.to_camera(np.array([point])), 200, 100)
    np.testing.assert_allclose(pixels, [expected], atol=1e-12)


def test_an_oblique_camera_measures_angles_between_its_axis_and_points() -> None:
    """A pixel's distance from the middle is the focal length times the angle's tangent.

    The angle is that from the axis.
    """
    points = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    offsets = OBLIQUE.pixels(OBLIQUE.to_camera(points), 320, 200) - (160, 100)
    axis, ways = (np.array(end) - OBLIQUE.position for end in (OBLIQUE.target, points))
    cosine = ways @ axis / np.linalg.norm(axis) / np.linalg.norm(ways, axis=1)
    focal_length = 100 / math.tan(math.radians(20))
    np.testing.assert_allclose(
        np.hypot(*offsets.T), focal_length * np.tan(np.arccos(cosine)), rtol=1e-9
    )


@pytest.mark.parametrize("camera", [LEVEL, OBLIQUE, Camera((1.0, 2.0, 9.0), (1.0, 2.0, 0.0), 0.1)])
def test_into_the_camera_and_back(camera: Camera) -> None:
    """Axes are orthonormal, up is upward, and the horizon is level.

    Rays through pixels meet the points seen there.
    """
    axes = camera.axes()
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert axes[0, 2] == pytest.approx(0, abs=1e-12)
    assert axes[1, 2] > 0 or camera.position[:2] == camera.target[:2]
    points = np.random.default_rng(1).normal(size=(20, 3))
    np.testing.assert_allclose(
        camera.to_camera(points) @ axes + camera.position, points, atol=1e-12
    )
    depth = 7.0
    ends = camera.position + depth * camera.rays(60, 40)
    rows, columns = np.indices((40, 60))
    middles = np.stack([columns + 0.5, rows + 0.5], -1)
    np.testing.assert_allclose(camera.pixels(camera.to_camera(ends), 60, 40), middles, atol=1e-9)


def test_the_horizon_is_level_and_where_the_pitch_says() -> None:
    """Distant points at the camera's height lie on one row, in any direction."""
    angles = np.linspace(-0.6, 0.6, 7)
    for pitch in (0.0, 0.3):
        camera = Camera(
            (0.0, 0.0, 2.0), (math.cos(pitch), 0.0, 2 - math.sin(pitch)), math.radians(60)
        )
        distant_points = 1e9 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1)
        rows = camera.pixels(camera.to_camera(distant_points), 400, 200)[:, 1]
        np.testing.assert_allclose(
            rows, 100 - 100 / math.tan(math.radians(30)) * math.tan(pitch), atol=1e-5
        )
    image = np.asarray(render([], [], Floor(0.0, 0.0, 0.0, 1.0, 1e6), LEVEL, 80, 60))
    assert (image[:30] == SKY).all()
    assert (image[31:] != SKY).any(-1).all()


def test_floor_tiles_are_where_they_belong() -> None:
    floor = Floor(0.5, 0.25, 0.0, 0.5, 50.0)
    image = np.asarray(render([], [], floor, OBLIQUE, 320, 200))
    for column, row in ((-2, 0), (-1, 1), (0, 0), (0, 1), (1, -2)):
        middle = (0.5 + (column + 0.5) * 0.5, 0.25 + (row + 0.5) * 0.5, 0.0)
        x, y = OBLIQUE.pixels(OBLIQUE.to_camera(np.array(middle)), 320, 200)
        assert tuple(image[int(y), int(x)]) == (DARK if (column + row) % 2 else LIGHT)


@pytest.mark.parametrize("order", [1, -1])
def test_the_nearer_hides_the_farther(order: int) -> None:
    """Whatever the order in which they are given; from behind it is the other one."""
    near_square, far_square = square(-1.0, 0.5, "#0000ff"), square(1.0, 2.0, "#ff0000")
    front = np.asarray(render([], [near_square, far_square][::order], FAR_BELOW, LEVEL, 100, 100))
    assert tuple(front[50, 50]) == (0, 0, 255)
    # Half a metre at 4 m and 2 m at 6 m, 50 pixels a unit of slope: 13 x 13 and 34 x 34 pixels,
    # less the near ones.
    assert len(pixels_of_colour(front, (0, 0, 255))) == pytest.approx(12.5**2, rel=0.1)
    assert len(pixels_of_colour(front, (255, 0, 0))) == pytest.approx(
        (200 / 6) ** 2 - 12.5**2, rel=0.1
    )
    behind = Camera((0.0, 5.0, 2.0), (0.0, 0.0, 2.0), math.radians(90))
    back = np.asarray(render([], [near_square, far_square][::order], FAR_BELOW, behind, 100, 100))
    assert tuple(back[50, 50]) == (255, 0, 0)
    assert not len(pixels_of_colour(back, (0, 0, 255)))


def test_a_ball_covers_its_disc() -> None:
    ball = Ball(np.array([[0.0, 0.0, 2.0]]), "#ff0000", 1.0)
    image = np.asarray(render([], [ball], FAR_BELOW, LEVEL, 200, 200))
    covered = (image != SKY).any(-1).sum()
    # 1 m at 5 m is 20 pixels; rims are counted whole.
    assert covered == pytest.approx(math.pi * 20**2, rel=0.08)


def test_what_reaches_behind_the_camera_is_cut_off() -> None:
    """The picture shows the part ahead of a face and a line that pass under the camera.

    The part is where it belongs.
    """
    ground = Face(np.array([(-50.0, -50, 0), (50, -50, 0), (50, 50, 0), (-50, 50, 0)]), "#ff0000")
    image = np.asarray(render([], [ground], FAR_BELOW, LEVEL, 100, 100))
    # Its far edge is 55 m away and 2 m lower: 1.8 pixels below the middle.
    assert (image[53:] == (255, 0, 0)).all()
    assert (image[:51] == SKY).all()
    line = Line(np.array([(0.0, -50.0, 1.0), (0.0, 50.0, 1.0)]), "#0000ff")
    image = np.asarray(render([], [line], FAR_BELOW, LEVEL, 100, 100))
    assert (image[53:, 49:51] != SKY).any(-1).any(1).all()
    assert (image[:50] == SKY).all()
    gone = np.asarray(render([], [square(-6.0, 1.0, "red")], FAR_BELOW, LEVEL, 100, 100))
    assert (gone == SKY).all()


@pytest.mark.parametrize(
    "place", [(0.3, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.3), (-0.2, 0.1, -0.3)]
)
def test_small_views_show_the_vehicle_where_it_is(place: tuple[float, float, float]) -> None:
    """Its dark arms lie about x and y from above, about x and z from the side.

    Rotors may hide half of an arm, so that the middle is known to half an arm's length: 3.6 pixels.
    """
    x, y, z = place
    body = picture.draw(Shot(vehicle(x=x, y=y, z=z), 0.6)).max(-1) < 120  # all else is paler
    by_metre = 75 / (1.15 * 0.6)
    for view, across, up, about in ((body[:150, 421:], x, y, -z), (body[151:, 421:], x, z, y)):
        rows, columns = np.nonzero(view)
        scale = by_metre / (1 + about / 24)
        assert (columns.min() + columns.max()) / 2 == pytest.approx(89 + scale * across, abs=3.6)
        assert (rows.min() + rows.max()) / 2 == pytest.approx(74.5 - scale * up, abs=3.6)


def test_thrust_is_drawn_by_its_size() -> None:
    """Red lines above the rotors: twice the speed, four times the thrust, so four times as long."""
    still = vehicle()
    lengths = []
    for speed in (0.5, 1.0):
        spinning = still._replace(rotors=Rotors(*(speed * 1000.0,) * 4))
        side = picture.draw(Shot(spinning, 0.6, full=1000.0))[151:, 421:].astype(int)
        red = np.argwhere((side[..., 0] > 180) & (side[..., 1] < 140) & (side[..., 2] < 140))
        lengths.append(np.ptp(red[:, 0]) + 1)
    arm = (1.6 + 1.3 * 0.6) * 0.028
    full = 2.2 * arm * 75 / (1.15 * 0.6)
    np.testing.assert_allclose(lengths, [full / 4, full], atol=2)


def test_a_trail_leads_through_the_places_of_the_vehicles() -> None:
    """Two trails are level lines in their colours in the view from above.

    They are no longer than ``TRAIL`` pictures.
    """
    vehicles = Quadcopter(
        RigidBody(*(np.stack([value, value]) for value in map(np.float64, vehicle().body))),
        Rotors(*np.zeros((4, 2))),
    )
    shot = Shot(
        vehicles._replace(body=vehicles.body._replace(y=np.array([0.4, -0.4]))),
        0.6,
        colours=("#0000ff", "#ff8800"),
    )
    by_metre, middle = 75 / (1.15 * 0.6), 89.5
    for pictures in (11, picture.TRAIL + 50):
        x = (
            0.02 * (np.arange(pictures) - pictures)
            if pictures == 11
            else np.linspace(-0.5, 0.5, pictures)
        )
        places = [np.array([(at, 0.2, 0.0), (at, -0.1, 0.0)]) for at in x]
        above = picture.draw(shot.with_trails(places))[:150, 421:].astype(int)
        for row, colour in ((0.2, (0, 0, 255)), (-0.1, (255, 136, 0))):
            strip = above[round(74.5 - by_metre * row) - 2 :][:5]
            columns = np.nonzero((np.abs(strip - colour).sum(-1) < 200).any(0))[0]
            trail_start = x[max(pictures - picture.TRAIL, 0)]
            assert columns.min() == pytest.approx(middle + by_metre * trail_start, abs=2)
            assert columns.max() == pytest.approx(middle + by_metre * x[-1], abs=2)
            assert np.diff(columns).max() == 1, "without a gap"


def test_rendered_episodes_have_trails_that_a_reset_takes_away() -> None:
    env: Any = gymnasium.make("rlsuite/QuadcopterHover-v0", render_mode="rgb_array").unwrapped

    def trail() -> int:
        """Pixels that differ from the picture of the state alone, after one more picture."""
        return int((env.render() != env.task.draw(env.episode.state, env.params)).any(-1).sum())

    for _ in range(2):
        env.reset(seed=0)
        assert trail() == 0
        lengths = []
        for _ in range(2):
            for _ in range(12):
                env.step(env.task.noop_action())
            lengths.append(trail())
        assert 10 < lengths[0] < lengths[1]
    env.state = env.state
    assert trail() == 0, "a restored state was reached by no known way"


def test_a_window_shows_the_picture() -> None:
    pygame = pytest.importorskip("pygame")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium says that it wraps the environment
        env: Any = gymnasium.make("rlsuite/QuadcopterHover-v0", render_mode="human")
    env.reset(seed=0)
    screen = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    image = env.unwrapped.task.draw(env.unwrapped.episode.state, env.unwrapped.params)
    env.close()
    np.testing.assert_array_equal(screen, image)

"""A ring of two lanes with two half circles, and the motion of traffic on it.

Two of highway-env's U-turns (Leurent 2018) end to end close on themselves: two straights, joined by
half circles to the left. The road begins half way along a straight. ``traffic.py`` describes
vehicles by x along the road, measured on the line between both lanes, y from the right edge, and a
heading relative to the road. ``routes.py`` has the shape of that line, on which places convert to
those of the plane and back in closed form. Vehicles move in the plane, as kinematic bicycles
(``bicycle.py``), so that a vehicle on the inner lane gets ahead.

Gaps between vehicles are measured along that line too: in a bend, those of the inner lane are 9 %
shorter in truth, and those of the outer lane 9 % longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Scalar
from ..roads import routes
from ..roads.routes import Route
from ..vehicle import bicycle, collision
from ..vehicle.bicycle import Motion, Pose
from ..vehicle.collision import Sweep
from . import traffic
from .traffic import LANE_WIDTH, SUBSTEP, Fleet, Leaders, Traffic, lane_centre

RADII = 20.0, 24.0  # m: of the inner (left) and of the outer lane, as in highway-env
RADIUS = 0.5 * sum(RADII)  # m: of the line between them
BEND_LENGTH = math.pi * RADIUS  # m: its length in a half circle
EDGE_DISTANCE = LANE_WIDTH  # m: from that line to an edge of the road
# m/s: highest speed of the ego in a bend. It needs 65 % of the lateral acceleration that
# ``bicycle.py`` allows.
BEND_SPEED = 8.0
BEND_BRAKING = 2.0  # m/s^2: braking before a bend


def half_straight(circumference: Scalar) -> Scalar:
    """Return half the length of a straight, m."""
    return 0.25 * circumference - 0.5 * BEND_LENGTH


def centre_line(circumference: Scalar) -> Route:
    """Return the line between both lanes.

    The plane's origin is the centre of the ring, and x points along the first straight.
    """
    half = half_straight(circumference)
    # Half circles are cut in two, because a point is found on less than half a circle only.
    zero = 0 * half * np.ones(7)
    return Route(
        start=half * np.array([0, 1, 1, 1, 3, 3, 3])
        + BEND_LENGTH * np.array([0, 0, 0.5, 1, 1, 1.5, 2]),
        x=half * np.array([0, 1, 1, 1, -1, -1, -1]) + RADIUS * np.array([0, 0, 1, 0, 0, -1, 0]),
        y=zero + RADIUS * np.array([-1, -1, 0, 1, 1, 0, -1]),
        heading=zero + math.pi * np.array([0, 0, 0.5, 1, 1, 1.5, 2]),
        curvature=zero + np.array([0, 1, 1, 0, 1, 1, 0]) / RADIUS,
    )


def next_bend(s: Scalar, circumference: Scalar) -> tuple[Scalar, Scalar]:
    """Return the way to the beginning of the next bend (0 in a bend) and to its end, m."""
    half = half_straight(circumference)
    lap = 0.5 * circumference
    place = jnp.mod(s, lap)
    begin = jnp.where(place >= half + BEND_LENGTH, half + lap, half) - place
    return jnp.maximum(begin, 0), begin + BEND_LENGTH


def speed_before(distance: Scalar, bend_speed: Scalar) -> Scalar:
    """Return the speed (m/s) from which gentle braking reaches the bend's speed on this way (m)."""
    return jnp.sqrt(bend_speed * bend_speed + 2 * BEND_BRAKING * distance)


def to_plane(route: Route, s: Scalar, pose: Pose) -> Pose:
    """Return poses in the plane of vehicles at s along the road, ``(vehicles,)``."""
    place = jax.vmap(routes.place_at, (None, 0))(route, s)
    beside = routes.place_beside(place, pose.y - EDGE_DISTANCE)
    return Pose(beside.x, beside.y, place.heading + pose.heading, pose.speed)


def substep(
    road: Traffic,
    fleet: Fleet,
    leaders: Leaders,
    crashed: Scalar,
    travelled: Scalar,
    bend_speed: Scalar,
    control: Callable[[Pose, Scalar], tuple[Scalar, Scalar]],
) -> tuple[Traffic, Scalar]:
    """Move everyone by SUBSTEP and say whether the ego has crashed by then.

    After a crash time stands still.

    Args:
        road: vehicles, relative to the ego at the last look.
        fleet: the drivers.
        leaders: since that look.
        crashed: bool.
        travelled: m, the ego's place along the road at that look.
        bend_speed: m/s of each driver in bends, ``(vehicles,)``.
        control: acceleration (m/s^2) and sine of the slip angle, to which that of the bend is
            added, of the ego, given its pose (the heading is its course) and its highest speed.
    """
    pose = road.pose
    ring = fleet.circumference
    route = centre_line(ring)
    s = jnp.mod(travelled + pose.x, ring)
    limit = speed_before(next_bend(s, ring)[0], bend_speed)
    careful = fleet.driver._replace(desired_speed=jnp.minimum(fleet.driver.desired_speed, limit))
    # A body that follows a bend points outwards by its slip angle: its course is its heading and
    # that angle.
    curvature = jax.vmap(routes.place_at, (None, 0))(route, s).curvature
    bend_slip = (
        bicycle.rear_axle(fleet.length) * curvature / (1 - curvature * (pose.y - EDGE_DISTANCE))
    )
    course = pose._replace(heading=pose.heading + bend_slip)
    own_acceleration, own_slip = control(Pose(*(value[0] for value in course)), limit[0])
    ego = traffic.is_ego(pose.x.shape[0])
    acceleration = jnp.where(
        ego, own_acceleration, traffic.follow(road, fleet._replace(driver=careful), leaders)
    )
    slip = jnp.where(
        ego, own_slip, bicycle.steer_to(course, lane_centre(road.target), fleet.length)
    )
    bound = bicycle.slip_bound(pose.speed, fleet.length)
    slip = jnp.clip(slip + bend_slip, -bound, bound)
    start = to_plane(route, s, pose)
    motion = bicycle.move(start, acceleration, slip, fleet.length, SUBSTEP)
    end, progress = to_road(route, s, motion.end)
    hit = ego_crashes(route, s[0], start, motion, fleet, end.heading[0])
    next_pose = Pose(pose.x + progress, *end[1:])
    next_pose = jax.tree.map(lambda new, old: jnp.where(crashed, old, new), next_pose, pose)
    return road._replace(pose=next_pose), crashed | hit


def to_road(route: Route, s: Scalar, pose: Pose) -> tuple[Pose, Scalar]:
    """Return poses relative to the road (x is s along it), and the way along it since ``s``, m."""
    next_s, d = jax.vmap(routes.project, (None, 0, 0, 0))(route, pose.x, pose.y, s)
    heading = pose.heading - jax.vmap(routes.place_at, (None, 0))(route, next_s).heading
    return Pose(next_s, d + EDGE_DISTANCE, heading, pose.speed), next_s - s


def ego_crashes(
    route: Route, s: Scalar, start: Pose, motion: Motion, fleet: Fleet, heading: Scalar
) -> Scalar:
    """Say whether the ego touched a vehicle or an edge during a sub-step, or turned around."""
    everyone = Sweep(start, motion, fleet.length, fleet.width)
    ego: Sweep = jax.tree.map(lambda value: value[0], everyone)
    hit = (collision.collide(ego, everyone, SUBSTEP) & ~traffic.is_ego(start.x.shape[0])).any()
    d = jnp.abs(corners_beside(route, s, ego))
    return hit | (d > EDGE_DISTANCE).any() | (jnp.abs(heading) > 0.5 * jnp.pi)


def corners_beside(route: Route, s: Scalar, ego: Sweep) -> Scalar:
    """Return how far the ego's corners are from the line between both lanes, ``(4,)`` m.

    The corners are those at the end of the step.
    """
    end: Scalar = ego.motion.end
    c, sine = jnp.cos(end.heading), jnp.sin(end.heading)
    ahead = 0.5 * ego.length * np.array([1, 1, -1, -1], np.float32)
    beside = 0.5 * ego.width * np.array([1, -1, 1, -1], np.float32)
    x, y = end.x + ahead * c - beside * sine, end.y + ahead * sine + beside * c
    return jax.vmap(lambda x, y: routes.project(route, x, y, s)[1])(x, y)

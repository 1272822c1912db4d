"""Traffic at junctions: cars on given routes, who follow, yield and never leave their lines.

A route (``routes.py``) leads from an arm of the junction through it and out of another arm. A car
is a place along its route and a speed; while its acceleration is held, both have a closed form.
Every car has the same body.

Twice a second drivers look around (:func:`look`), as in ``traffic.py``:

* The *leader* is the nearest car ahead whose place lies on the own route, in a part that both
  routes share.
* Two routes that cross or join have a *zone* on each, where bodies on both may touch. Who has to
  *yield* to another car stops at its line, if both would be in their zones at the same time, with a
  margin. The layout says which routes yield to which others, and which yield only to cars that are
  in the junction already or cannot stop before it. Behind its line no car stops for others.

Between looks everybody follows leader and line by the Intelligent Driver Model
(``car_following.py``), and slows down in bends. Car 0 is the ego, driven from outside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Scalar
from ..roads import routes
from ..roads.routes import Route
from ..vehicle import collision
from ..vehicle.bicycle import LATERAL_ACCELERATION, TYRE_BRAKING, Motion, Pose
from ..vehicle.collision import Sweep
from . import car_following
from .car_following import Driver

# m: body of every car.
LENGTH = 5.0
WIDTH = 2.0
HALF_LENGTH = 0.5 * LENGTH  # m
# m: distance of two lines below which bodies on them may touch; 0.7 m for corners in bends.
TOUCH_DISTANCE = WIDTH + 0.7
TIME_MARGIN = 1.5  # s: between two cars in a zone
STARTING_SPEED = 5.0  # m/s: mean speed of a slower car that starts
CRAWL_SPEED = 1.0  # m/s: slower cars are expected to leave a zone at this speed
# m/s^2: braking for which drivers are ready; a car that would need more does not stop.
FIRM_BRAKING = 4.0
BEND_APPROACH = 12.0  # m: way before a bend at which drivers begin to slow down


class Layout(NamedTuple):
    """The routes of a junction; plain NumPy."""

    pieces: Route  # ``(routes, pieces)``
    line: np.ndarray  # m along each route: the line before the junction
    out: np.ndarray  # m along each route: the beginning of the arm by which it leaves
    fastest: np.ndarray  # m/s: speed in its narrowest bend; see :func:`speed_in_bend`
    # ``(routes, routes)``, bool: cars on the first route yield to those on the second one
    yields_to: np.ndarray
    # ``(routes, routes)``, bool: they yield to those that are in the junction already, even if they
    # go first otherwise
    looks_for: np.ndarray
    # ``(routes, routes, parts, 3)``: parts of the second route that lie on the first one, from and
    # to (m along the second), and m to add for the place along the first
    shared: np.ndarray
    # ``(routes, routes, 4)``: where cars of the first route that yield may touch those on the
    # second: from and to, m along the first, and from and to, m along the second; infinitely far
    # for nowhere
    zones: np.ndarray

    def route(self, number: int) -> Route:
        """Return one route; plain NumPy."""
        return Route(*(value[number] for value in self.pieces))


class Cars(NamedTuple):
    """All cars; arrays ``(cars,)``."""

    route: Scalar  # int32
    s: Scalar  # m along the route, of the body's centre
    speed: Scalar  # m/s
    present: Scalar  # bool: others are away


class CarRoutes(NamedTuple):
    """Everybody's route; ``(cars,)`` each."""

    pieces: Route  # ``(cars, pieces)``
    line: Scalar  # m along the route
    out: Scalar  # m along the route
    fastest: Scalar  # m/s: speed in bends


class Ahead(NamedTuple):
    """Leaders and lines that everybody heeds until the next look; ``(cars,)`` each."""

    leader: Scalar  # int32
    # m: with it the leader's place is one along the own route; infinite for no leader
    offset: Scalar
    stop: Scalar  # m: the line at which to stop; infinite for none


def speed_in_bend(radius: np.ndarray) -> np.ndarray:
    """Return the speed (m/s) that needs the lateral acceleration of ``bicycle.py``; plain NumPy.

    It is 100 m/s at most.
    """
    return np.sqrt(np.minimum(LATERAL_ACCELERATION * radius, 1e4))


def find_zones(
    pieces: Route, line: np.ndarray, out: np.ndarray, end: np.ndarray, pairs: np.ndarray
) -> np.ndarray:
    """Return the zones of pairs of routes, from points of their lines every 0.25 m.

    Args:
        pieces: the routes.
        line: m along each, the line before the junction.
        out: m along each, the beginning of the last arm.
        end: m along the first route of each pair, ``(routes, routes)``: where its zone ends at the
            latest.
        pairs: bool ``(routes, routes)``, marks of pairs of which the first may have to yield.
    """
    step = 0.25
    count = len(line)
    ways = [np.arange(line[r] - 5, out[r] + step, step) for r in range(count)]
    xy = [
        routes.points(Route(*(value[r] for value in pieces)), distances)
        for r, distances in enumerate(ways)
    ]
    zones = np.full((count, count, 4), np.inf)
    for r, q in np.argwhere(pairs):
        along = ways[r][ways[r] < end[r, q] + step]
        touching = (
            np.hypot(*(xy[r][: len(along), None, k] - xy[q][None, :, k] for k in (0, 1)))
            < TOUCH_DISTANCE
        )
        if touching.any():
            along, along_crossing = along[touching.any(1)], ways[q][touching.any(0)]
            zones[r, q] = along[0], along[-1], along_crossing[0], along_crossing[-1]
    return zones


def routes_of(cars: Cars, layout: Layout) -> CarRoutes:
    """Return everybody's route."""
    dtype = cars.s.dtype

    def by_car(value: Any) -> Scalar:
        return jnp.asarray(value, dtype)[cars.route]

    pieces = Route(*(by_car(value) for value in layout.pieces))
    return CarRoutes(pieces, by_car(layout.line), by_car(layout.out), by_car(layout.fastest))


# -- looking around --------------------------------------------------------------------------------


def is_committed(cars: Cars, line: Scalar) -> Scalar:
    """Mark cars that are behind their line or cannot stop before it with firm braking."""
    return cars.speed * cars.speed * (0.5 / FIRM_BRAKING) > line - HALF_LENGTH - cars.s


def yields(cars: Cars, car_routes: CarRoutes, layout: Layout) -> Scalar:
    """Mark cars that have to stop at their line, ``(cars,)`` bool.

    A car is expected in a zone from its front's arrival at 5 m/s, or its speed if that is more. The
    own one leaves the zone at the same speed, another one perhaps at 1 m/s.
    """
    dtype = cars.s.dtype
    pair = cars.route[:, None], cars.route
    mine_from, mine_to, its_from, its_to = (
        jnp.asarray(layout.zones[..., k], dtype)[pair] for k in range(4)
    )
    s, its_s = cars.s[:, None], cars.s
    quick_speed = jnp.maximum(cars.speed, STARTING_SPEED)
    slow_speed = jnp.maximum(cars.speed, CRAWL_SPEED)
    first = (mine_from - HALF_LENGTH - s) / quick_speed[:, None]
    last = (mine_to + HALF_LENGTH - s) / quick_speed[:, None]
    its_first = (its_from - HALF_LENGTH - its_s) / quick_speed
    its_last = (its_to + HALF_LENGTH - its_s) / slow_speed
    meets = (
        (mine_from < jnp.inf)
        & (its_last > 0)
        & (its_first < last + TIME_MARGIN)
        & (its_last + TIME_MARGIN > first)
    )
    committed = is_committed(cars, car_routes.line)
    gives_way = jnp.asarray(layout.yields_to)[pair] | (
        jnp.asarray(layout.looks_for)[pair] & committed
    )
    both_present = cars.present & cars.present[:, None]
    return (meets & gives_way & both_present).any(1) & ~committed


def offset_to(cars: Cars, shared: Scalar) -> Scalar:
    """Return what to add to everybody's place to get that along a route, m.

    ``shared`` are the parts that the route shares with theirs, ``(..., cars, parts, 3)``. The
    offset is infinite for cars that are on no shared part.
    """
    on = (cars.s[:, None] >= shared[..., 0]) & (cars.s[:, None] < shared[..., 1])
    return jnp.where(on, shared[..., 2], jnp.inf).min(-1)


def look(cars: Cars, car_routes: CarRoutes, layout: Layout) -> Ahead:
    """Find everybody's leader, and the line at which to stop."""
    dtype = cars.s.dtype
    count = cars.s.shape[0]
    shared = jnp.asarray(layout.shared, dtype)[cars.route[:, None], cars.route]
    offset = offset_to(cars, shared)
    distance = cars.s + offset - cars.s[:, None]
    index = jnp.arange(count)
    ahead = (distance > 0) | ((distance == 0) & (index > index[:, None]))
    distance = jnp.where(ahead & cars.present & (index != index[:, None]), distance, jnp.inf)
    leader = distance.argmin(1).astype(jnp.int32)
    has_leader = distance.min(1) < jnp.inf
    stop = jnp.where(yields(cars, car_routes, layout), car_routes.line, jnp.inf)
    return Ahead(leader, jnp.where(has_leader, offset[index, leader], jnp.inf), stop)


# -- driving ---------------------------------------------------------------------------------------


def bend_speed(cars: Cars, car_routes: CarRoutes) -> Scalar:
    """Return the highest speed at everybody's place, m/s."""
    return jnp.where(
        (cars.s > car_routes.line - BEND_APPROACH) & (cars.s < car_routes.out),
        car_routes.fastest,
        100,
    )


def follow(cars: Cars, ahead: Ahead, driver: Driver, fastest: Scalar) -> Scalar:
    """Return everybody's acceleration by IDM, m/s^2, limited to the hardest braking."""
    gap = cars.s[ahead.leader] + ahead.offset - cars.s - LENGTH
    crowded = jnp.maximum(
        car_following.gap_ratio(driver, cars.speed, gap, cars.speed[ahead.leader]),
        car_following.gap_ratio(driver, cars.speed, ahead.stop - HALF_LENGTH - cars.s, 0),
    )
    slower = driver._replace(desired_speed=jnp.minimum(driver.desired_speed, fastest))
    return jnp.maximum(
        car_following.acceleration_at_ratio(slower, cars.speed, crowded), -TYRE_BRAKING
    )


def roll(s: Scalar, speed: Scalar, acceleration: Scalar, duration: float) -> tuple[Scalar, Scalar]:
    """Return place (m) and speed (m/s) after a step with held acceleration.

    A car that brakes to a stop stays there.
    """
    gained = acceleration * duration
    stops = speed + gained < 0
    braked = speed * speed / (-2 * jnp.where(stops, acceleration, -1))
    return s + jnp.where(stops, braked, duration * (speed + 0.5 * gained)), jnp.maximum(
        speed + gained, 0
    )


def poses(car_routes: CarRoutes, cars: Cars) -> Pose:
    """Return everybody's pose."""
    place = jax.vmap(routes.place_at)(car_routes.pieces, cars.s)
    return Pose(place.x, place.y, place.heading, cars.speed)


def ego_touches(start: Pose, end: Pose, present: Scalar, duration: float) -> Scalar:
    """Say whether the ego touched another car on the way from one pose to the next one."""
    middle = 0.5 * (start.heading + end.heading)
    everyone = Sweep(start, Motion(end, jnp.cos(middle), jnp.sin(middle)), LENGTH, WIDTH)
    ego = jax.tree.map(
        lambda value: value[0],
        everyone._replace(length=start.x * 0 + LENGTH, width=start.x * 0 + WIDTH),
    )
    is_other = present & (jnp.arange(present.shape[0]) != 0)
    return (collision.collide(ego, everyone, duration) & is_other).any()


def would_touch(car_routes: CarRoutes, cars: Cars, horizon: float, step: float) -> Scalar:
    """Say whether the ego would touch another car within ``horizon`` s.

    All cars are taken to keep their speeds on their routes.
    """

    def move(k: Scalar, carry: tuple[Pose, Scalar]) -> tuple[Pose, Scalar]:
        next_pose = poses(car_routes, cars._replace(s=cars.s + cars.speed * ((k + 1) * step)))
        return next_pose, carry[1] | ego_touches(carry[0], next_pose, cars.present, step)

    return jax.lax.fori_loop(
        0, round(horizon / step), move, (poses(car_routes, cars), jnp.bool_(False))
    )[1]

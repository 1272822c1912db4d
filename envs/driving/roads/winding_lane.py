"""A winding lane as a car on it sees it: places in the car's frame, a lidar, a picture from above.

The lane's centre has the curvature of ``dynamic_bicycle.py``, so its direction is a closed form,
and its places are integrals of the direction's cosine and sine, by Gauss-Legendre quadrature with
eight points. Edges of the road are polylines of 2 m, at most 2 cm from the curves; the picture's
lane is one of 4 m.

Frame of the car: x ahead, y to the left, from the centre of gravity (m).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.numerics.bit_exact import computed_once

from ..arrays import Scalar
from ..vehicle.dynamic_bicycle import Car, Params

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
# m along the lane from the car: beginning and end of polylines.
MIN_WAY = -10.0
MAX_WAY = 54.0
PIECE_LENGTH = 2.0  # m, of polylines
WAYS = np.arange(MIN_WAY, MAX_WAY + PIECE_LENGTH, PIECE_LENGTH)
PICTURE_PIECE_FACTOR = 2  # Factor by which pieces are longer in the picture
BEAMS = 32  # Number of the lidar's beams, from 90 degrees to the right to 90 degrees to the left
RANGE = 50.0  # m: range of the beams
ANGLES = np.linspace(-0.5 * math.pi, 0.5 * math.pi, BEAMS)
# Pixels of the picture, 1 m each.
ROWS = 48
COLUMNS = 24
VIEW_BEHIND = 4.0  # m behind the car that the picture shows
# Red, green and blue in [0, 1].
GROUND_COLOUR = (0.35, 0.55, 0.3)
ROAD_COLOUR = (0.45, 0.45, 0.45)
OBSTACLE_COLOUR = (0.9, 0.1, 0.1)


class Discs(NamedTuple):
    """Obstacles in the car's frame."""

    x: jax.Array  # m, as y and radius
    y: jax.Array
    radius: jax.Array


def place(car: Car, lane: Params, distance: Scalar, offset: Scalar) -> tuple[Scalar, Scalar]:
    """Return x and y, in the car's frame, of places beside the lane.

    The places lie ``distance`` m along the lane from the car and ``offset`` m to the left of the
    lane's centre. They are stored, because else each beam and each pixel would compute all of them
    again.
    """
    return computed_once(_place)(car, lane, distance, offset)


def _place(car: Car, lane: Params, distance: Scalar, offset: Scalar) -> tuple[Scalar, Scalar]:
    rate = 2 * math.pi / lane.wavelength
    begin = rate * car.s + lane.phase

    def direction(length: Scalar) -> Scalar:
        """Return the lane's direction there, against that at the car (rad)."""
        return lane.sharpness / rate * (jnp.cos(begin) - jnp.cos(begin + rate * length))

    ahead, aside = 0.0 * distance, 0.0 * distance
    for node, weight in zip(NODES.tolist(), WEIGHTS.tolist(), strict=True):
        angle = direction((0.5 + 0.5 * node) * distance)
        ahead, aside = ahead + 0.5 * weight * jnp.cos(angle), aside + 0.5 * weight * jnp.sin(angle)
    angle = direction(distance)
    x = distance * ahead - offset * jnp.sin(angle)
    y = distance * aside + offset * jnp.cos(angle) - car.d
    cosine, sine = jnp.cos(car.e), jnp.sin(car.e)
    return cosine * x + sine * y, cosine * y - sine * x


def lidar(car: Car, lane: Params, edge: float, discs: Discs) -> jax.Array:
    """Return the distance along each beam to an obstacle or an edge, ``(32,)`` m, at most RANGE.

    Args:
        car: the car.
        lane: the lane.
        edge: distance of the edges from the lane's centre (m).
        discs: the obstacles, ``(n,)``.
    """
    ways, angles = (jnp.asarray(constant, car.s.dtype) for constant in (WAYS, ANGLES))
    cosine, sine = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    reach = jnp.full(BEAMS, RANGE, car.s.dtype)
    for all_x, all_y in zip(
        *place(car, lane, ways, jnp.array([[-edge], [edge]], car.s.dtype)), strict=True
    ):
        x, y = all_x[:-1], all_y[:-1]
        ex, ey = all_x[1:] - x, all_y[1:] - y
        across = cosine * ey - sine * ex
        across = jnp.where(jnp.abs(across) < 1e-9, 1e-9, across)
        distance, share = (x * ey - y * ex) / across, (x * sine - y * cosine) / across
        is_hit = (distance >= 0) & (share >= 0) & (share <= 1)
        reach = jnp.minimum(reach, jnp.where(is_hit, distance, RANGE).min(1))
    along, beside = cosine * discs.x + sine * discs.y, cosine * discs.y - sine * discs.x
    deep = discs.radius * discs.radius - beside * beside
    distance = along - jnp.sqrt(jnp.maximum(deep, 0.0))
    return jnp.minimum(reach, jnp.where((deep > 0) & (distance >= 0), distance, RANGE).min(1))


def picture(car: Car, lane: Params, edge: float, discs: Discs) -> jax.Array:
    """Return the road from above, uint8 ``(48, 24, 3)``; see :func:`lidar` for the arguments.

    The car looks up and is 4 m from the lower edge.

    The edge of a thing is shaded by the part of the pixel that it covers.
    """
    dtype = car.s.dtype
    ahead = jnp.asarray(ROWS - VIEW_BEHIND - 0.5 - np.arange(ROWS), dtype)[:, None]
    aside = jnp.asarray(0.5 * COLUMNS - 0.5 - np.arange(COLUMNS), dtype)
    ways = WAYS[::PICTURE_PIECE_FACTOR]
    x, y = place(car, lane, jnp.asarray(ways, dtype), 0.0)
    nearest = jnp.full((ROWS, COLUMNS), MAX_WAY**2, dtype)
    for i in range(len(ways) - 1):
        ex, ey = x[i + 1] - x[i], y[i + 1] - y[i]
        px, py = ahead - x[i], aside - y[i]
        share = jnp.clip((px * ex + py * ey) / (PICTURE_PIECE_FACTOR * PIECE_LENGTH) ** 2, 0, 1)
        dx, dy = px - share * ex, py - share * ey
        nearest = jnp.minimum(nearest, dx * dx + dy * dy)
    road = jnp.clip(edge + 0.5 - jnp.sqrt(nearest), 0, 1)
    cover = jnp.zeros((ROWS, COLUMNS), dtype)
    for i in range(discs.x.shape[0]):
        dx, dy = ahead - discs.x[i], aside - discs.y[i]
        cover = jnp.maximum(
            cover, jnp.clip(discs.radius[i] + 0.5 - jnp.sqrt(dx * dx + dy * dy), 0, 1)
        )

    def channel(ground: float, road_: float, obstacle: float) -> jax.Array:
        under = ground + (road_ - ground) * road
        return under + (obstacle - under) * cover

    channels = [
        channel(*colours)
        for colours in zip(GROUND_COLOUR, ROAD_COLOUR, OBSTACLE_COLOUR, strict=True)
    ]
    return jnp.floor(255 * jnp.stack(channels, -1) + 0.5).astype(jnp.uint8)

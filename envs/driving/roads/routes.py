"""Centre lines of roads, made of straights and circular arcs that join without a kink.

A point of the road is (s, d): the way along the centre line, and the distance from it to the left.
A piece begins at (x, y) with a heading and keeps one curvature kappa (to the left, 0 of a
straight). On it

    (x, y)(s) = (x, y) + l sinc(kappa l / 2) (cos, sin)(heading + kappa l / 2),
    l the way into the piece,

and, seen from its beginning with (a, b) ahead and to the left, a point has

    l = atan2(kappa a, 1 - kappa b) / kappa,
    d = (2 b - kappa (a^2 + b^2)) / (1 + hypot(kappa a, 1 - kappa b)).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..arrays import Scalar


class Route(NamedTuple):
    """A centre line; arrays ``(pieces,)``."""

    start: Scalar  # m along the route at the beginning of each piece; 0 of the first
    x: Scalar  # m, of the beginning
    y: Scalar
    heading: Scalar  # rad, of the beginning
    curvature: Scalar  # 1/m, to the left


class Place(NamedTuple):
    """A point of a centre line."""

    x: Scalar
    y: Scalar
    heading: Scalar  # rad, not wrapped: it grows by the turns along the route
    curvature: Scalar


def piece_at(route: Route, s: Scalar) -> Route:
    """Return the piece at a place.

    The first piece also counts before the route's beginning, and the last one behind its end.
    """
    index = (s >= route.start[1:]).sum(dtype=jnp.int32)
    return Route(*(jnp.asarray(value, s.dtype)[index] for value in route))


def place_at(route: Route, s: Scalar) -> Place:
    """Return the point of the centre line at ``s``, m."""
    piece = piece_at(route, s)
    into_piece = s - piece.start
    half = 0.5 * piece.curvature * into_piece
    small = jnp.abs(half) < 1e-3
    chord = into_piece * jnp.where(
        small, 1 - half * half * (1 / 6), jnp.sin(half) / jnp.where(small, 1, half)
    )
    middle = piece.heading + half
    return Place(
        piece.x + chord * jnp.cos(middle),
        piece.y + chord * jnp.sin(middle),
        middle + half,
        piece.curvature,
    )


def place_beside(place: Place, d: Scalar) -> Place:
    """Return the point at ``d`` m to the left of a point of the centre line."""
    return place._replace(
        x=place.x - d * jnp.sin(place.heading), y=place.y + d * jnp.cos(place.heading)
    )


def _onto(piece: Route, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    c, s = jnp.cos(piece.heading), jnp.sin(piece.heading)
    dx, dy = x - piece.x, y - piece.y
    ahead, left = c * dx + s * dy, c * dy - s * dx
    kappa = piece.curvature
    straight = kappa == 0
    a, b = kappa * ahead, 1 - kappa * left
    into_piece = jnp.where(straight, ahead, jnp.arctan2(a, b) / jnp.where(straight, 1, kappa))
    return piece.start + into_piece, (2 * left - kappa * (ahead * ahead + left * left)) / (
        1 + jnp.hypot(a, b)
    )


def project(route: Route, x: Scalar, y: Scalar, guess: Scalar) -> tuple[Scalar, Scalar]:
    """Return (s, d) of a point, m.

    The place ``guess`` must lie on the point's piece or on one next to it.
    """
    s, _ = _onto(piece_at(route, guess), x, y)
    return _onto(piece_at(route, s), x, y)


def points(route: Route, s: Any, d: float = 0.0) -> np.ndarray:
    """Return x, y and heading of points beside the centre line, ``(n, 3)``; plain NumPy.

    The points are ``d`` m to the left of it.
    """
    s = np.atleast_1d(np.asarray(s, np.float64))
    index = np.clip(np.searchsorted(route.start, s, "right") - 1, 0, len(route.start) - 1)
    start, x, y, heading, curvature = (np.asarray(value, np.float64)[index] for value in route)
    half = 0.5 * curvature * (s - start)
    chord = (s - start) * np.sinc(half / np.pi)
    end = heading + 2 * half
    x, y = x + chord * np.cos(heading + half), y + chord * np.sin(heading + half)
    return np.stack([x - d * np.sin(end), y + d * np.cos(end), end], 1)

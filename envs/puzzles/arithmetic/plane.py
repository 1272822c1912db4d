"""Constructions of points in the plane, with fractions as coordinates, and questions about points.

Nothing is rounded. Constructions and questions carry their own words for prompts.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from math import gcd
from typing import NamedTuple

Point = tuple[Fraction, Fraction]
Order = tuple[int, ...]


def _minus(p: Point, q: Point) -> Point:
    return p[0] - q[0], p[1] - q[1]


def _dot(p: Point, q: Point) -> Fraction:
    return p[0] * q[0] + p[1] * q[1]


def _cross(p: Point, q: Point) -> Fraction:
    return p[0] * q[1] - p[1] * q[0]


def _point_along(p: Point, direction: Point, share: Fraction) -> Point:
    return p[0] + share * direction[0], p[1] + share * direction[1]


def _squared_distance(p: Point, q: Point) -> Fraction:
    """Return the square of a distance."""
    difference = _minus(p, q)
    return _dot(difference, difference)


def _doubled_area(p: Point, q: Point, r: Point) -> Fraction:
    """Return twice the area of a triangle, negative if its corners run clockwise."""
    return _cross(_minus(q, p), _minus(r, p))


# -- constructions: the new point, or None where there is none -------------------------------------


def mean(*points: Point) -> Point:
    """Return the centre of gravity of some points."""
    return sum((p[0] for p in points), Fraction()) / len(points), sum(
        (p[1] for p in points), Fraction()
    ) / len(points)


def _centroid(p: Point, q: Point, r: Point) -> Point | None:
    return mean(p, q, r) if _doubled_area(p, q, r) else None


def _point_reflection(p: Point, q: Point) -> Point:
    return 2 * q[0] - p[0], 2 * q[1] - p[1]


def _fourth_corner(p: Point, q: Point, r: Point) -> Point | None:
    return (p[0] + r[0] - q[0], p[1] + r[1] - q[1]) if _doubled_area(p, q, r) else None


def _turn_point(p: Point, q: Point) -> Point:
    return q[0] - (p[1] - q[1]), q[1] + (p[0] - q[0])


def _foot(p: Point, q: Point, r: Point) -> Point:
    line = _minus(r, q)
    return _point_along(q, line, _dot(_minus(p, q), line) / _dot(line, line))


def _line_reflection(p: Point, q: Point, r: Point) -> Point:
    return _point_reflection(p, _foot(p, q, r))


def _intersection(p: Point, q: Point, r: Point, s: Point) -> Point | None:
    first, second = _minus(q, p), _minus(s, r)
    if not (sine := _cross(first, second)):
        return None
    return _point_along(p, first, _cross(_minus(r, p), second) / sine)


def _circumcentre(p: Point, q: Point, r: Point) -> Point | None:
    if not (doubled := _doubled_area(p, q, r)):
        return None
    b, c = _minus(q, p), _minus(r, p)
    bb, cc = _dot(b, b), _dot(c, c)
    return p[0] + (c[1] * bb - b[1] * cc) / (2 * doubled), p[1] + (b[0] * cc - c[0] * bb) / (
        2 * doubled
    )


def _orthocentre(p: Point, q: Point, r: Point) -> Point | None:
    """Return the orthocentre of a triangle by Euler's line.

    It is three times as far from the circumcentre as the centroid is.
    """
    centre = _circumcentre(p, q, r)
    return centre and (p[0] + q[0] + r[0] - 2 * centre[0], p[1] + q[1] + r[1] - 2 * centre[1])


class Construction(NamedTuple):
    """A way to construct a point from other points, all different."""

    words: str
    orders: tuple[Order, ...]
    """Orders of its points that do not change the result."""
    level: int
    """Least difficulty at which it is used."""
    construct: Callable[..., Point | None]

    @property
    def uses(self) -> int:
        """Number of points."""
        return len(self.orders[0])


PAIR: tuple[Order, ...] = ((0, 1), (1, 0))
LAST_TWO: tuple[Order, ...] = ((0, 1, 2), (0, 2, 1))
OUTER_TWO: tuple[Order, ...] = ((0, 1, 2), (2, 1, 0))
ALL: tuple[Order, ...] = tuple(permutations(range(3)))
AROUND: tuple[Order, ...] = tuple(
    tuple((start + direction * k) % 4 for k in range(4))
    for start in range(4)
    for direction in (1, -1)
)
LINES: tuple[Order, ...] = tuple(
    order for order in permutations(range(4)) if {*order[:2]} in ({0, 1}, {2, 3})
)

CONSTRUCTIONS = (
    Construction("the midpoint of {0} and {1}", PAIR, 1, mean),
    Construction("the centroid of triangle {0}{1}{2} (the mean of its corners)", ALL, 1, _centroid),
    Construction("the reflection of {0} in the point {1}", ((0, 1),), 1, _point_reflection),
    Construction(
        "the fourth corner of the parallelogram whose other corners are, in order, {0}, {1}, {2}",
        OUTER_TWO,
        1,
        _fourth_corner,
    ),
    Construction("{0} rotated by 90 degrees counterclockwise about {1}", ((0, 1),), 1, _turn_point),
    Construction("the foot of the perpendicular from {0} to the line {1}{2}", LAST_TWO, 2, _foot),
    Construction("the reflection of {0} in the line {1}{2}", LAST_TWO, 2, _line_reflection),
    Construction("the intersection of the lines {0}{1} and {2}{3}", LINES, 2, _intersection),
    Construction("the centre of the circle through {0}, {1} and {2}", ALL, 3, _circumcentre),
    Construction(
        "the orthocentre of triangle {0}{1}{2} (where its altitudes meet)", ALL, 3, _orthocentre
    ),
)
TURN = 4
"""Number of the construction that tells left from right."""


# -- questions: the answer, or None where there is none worth asking for ---------------------------


def _tangent_of_angle(p: Point, q: Point, r: Point) -> Fraction | None:
    first, second = _minus(p, q), _minus(r, q)
    sine, cosine = abs(_cross(first, second)), _dot(first, second)
    return sine / cosine if sine and cosine else None


def _squared_tangent(p: Point, q: Point, r: Point) -> Fraction | None:
    square = _squared_distance(p, q) - _squared_distance(q, r)
    return square if square > 0 else None


def _squared_circumradius(p: Point, q: Point, r: Point) -> Fraction | None:
    centre = _circumcentre(p, q, r)
    return centre and _squared_distance(centre, p)


def _points_inside(p: Point, q: Point, r: Point) -> Fraction | None:
    """Count the lattice points inside a triangle, by Pick's theorem."""
    if not (doubled := _doubled_area(p, q, r)) or any(
        value.denominator > 1 for point in (p, q, r) for value in point
    ):
        return None
    sides = [_minus(*pair) for pair in ((p, q), (q, r), (r, p))]
    border = sum(gcd(x.numerator, y.numerator) for x, y in sides)
    return (abs(doubled) - border + 2) / 2 or None


def _convex_area(p: Point, q: Point, r: Point, s: Point) -> Fraction | None:
    corners = [
        _doubled_area(p, q, r),
        _doubled_area(q, r, s),
        _doubled_area(r, s, p),
        _doubled_area(s, p, q),
    ]
    if not (all(corner > 0 for corner in corners) or all(corner < 0 for corner in corners)):
        return None
    return abs(corners[0] + corners[2]) / 2


class Question(NamedTuple):
    """A question about points, all different."""

    words: str
    orders: tuple[Order, ...]
    """Orders of its points that do not change the answer."""
    answer: Callable[..., Point | Fraction | None]

    @property
    def uses(self) -> int:
        """Number of points."""
        return len(self.orders[0])


QUESTIONS = (
    Question("What are the coordinates of {0}?", ((0,),), lambda p: p),
    Question("What is the square of the distance between {0} and {1}?", PAIR, _squared_distance),
    Question(
        "What is the area of triangle {0}{1}{2}?",
        ALL,
        lambda p, q, r: abs(_doubled_area(p, q, r)) / 2 or None,
    ),
    Question(
        "What is the square of the distance of {0} from the line {1}{2}?",
        LAST_TWO,
        lambda p, q, r: _doubled_area(p, q, r) ** 2 / _squared_distance(q, r) or None,
    ),
    Question(
        "What is the tangent of the angle at {1} in triangle {0}{1}{2}?",
        OUTER_TWO,
        _tangent_of_angle,
    ),
    Question(
        "What is the square of the length of a tangent from {0} to the circle with centre {1} "
        "through {2}, measured from {0} to the point of contact?",
        ((0, 1, 2),),
        _squared_tangent,
    ),
    Question(
        "What is the square of the radius of the circle through {0}, {1} and {2}?",
        ALL,
        _squared_circumradius,
    ),
    Question(
        "How many points with whole coordinates lie inside triangle {0}{1}{2}, not on its sides?",
        ALL,
        _points_inside,
    ),
    Question("What is the area of the convex quadrilateral {0}{1}{2}{3}?", AROUND, _convex_area),
)
COORDINATES = 0

"""Shortest paths of a car that drives forwards and backwards: arcs of radius 1 and straight lines.

A path goes from the origin, heading along x, to a place and heading. Its words are
left-straight-left, left-straight-right and left-right-left, mirrored (left for right), driven
backwards, or both, and the last also read from its end: sixteen in all. Each is a valid path at any
signs of its lengths, which say forwards or backwards, so that one always exists. The longer words
of the source, with four and five pieces, save a little in few cases and are left out.

Source: Reeds & Shepp 1990, Optimal paths for a car that goes both forwards and backwards, Pacific
Journal of Mathematics 145(2), section 8.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..arrays import Scalar

LEFT_TURN, STRAIGHT, RIGHT_TURN = 1, 0, -1
MIN_PIECE = 0.02  # Pieces shorter than this, in radii, are skipped at the beginning
CUSP_LENGTH = 0.5  # Length, in radii, that a change of direction counts for


class Plan(NamedTuple):
    """A path: three pieces."""

    turns: tuple[Scalar, Scalar, Scalar]  # 1 to the left, 0 straight, -1 to the right
    lengths: tuple[Scalar, Scalar, Scalar]  # In radii; negative backwards
    direction: Scalar  # 1 if it begins forwards, -1 backwards
    stretch: Scalar  # Length up to the first change of direction, in radii

    def curvature(self, covered: Scalar) -> Scalar:
        """Return the mean curvature over the next length ``covered``, in radii."""
        first = jnp.clip(jnp.abs(self.lengths[0]), 0, covered)
        second = jnp.clip(jnp.abs(self.lengths[1]), 0, covered - first)
        third = covered - first - second
        return (self.turns[0] * first + self.turns[1] * second + self.turns[2] * third) / covered


def wrap(angle: Scalar) -> Scalar:
    """Return an angle in [-pi, pi)."""
    return angle - 2 * math.pi * jnp.floor((angle + math.pi) * (0.5 / math.pi))


def left_straight_left(x: Scalar, y: Scalar, turn: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the three lengths of a word, and whether it exists."""
    a, b = x - jnp.sin(turn), y - 1 + jnp.cos(turn)
    first = jnp.arctan2(b, a)
    return first, jnp.hypot(a, b), wrap(turn - first), jnp.isfinite(first)


def left_straight_right(
    x: Scalar, y: Scalar, turn: Scalar
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the three lengths of a word, and whether it exists."""
    a, b = x + jnp.sin(turn), y - 1 - jnp.cos(turn)
    square = a * a + b * b
    straight = jnp.sqrt(jnp.maximum(square - 4, 0))
    first = wrap(jnp.arctan2(b, a) + jnp.arctan2(2, straight))
    return first, straight, wrap(first - turn), square >= 4


def left_right_left(x: Scalar, y: Scalar, turn: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the three lengths of a word, and whether it exists.

    The middle arc is driven the other way.
    """
    a, b = x - jnp.sin(turn), y - 1 + jnp.cos(turn)
    distance = jnp.hypot(a, b)
    middle = -2 * jnp.arcsin(jnp.minimum(0.25 * distance, 1))
    first = wrap(jnp.arctan2(b, a) + 0.5 * middle + math.pi)
    return first, middle, wrap(turn - first + middle), distance <= 4


def shortest_path(x: Scalar, y: Scalar, turn: Scalar) -> Plan:
    """Return the shortest of the words to a place and heading, in radii and radians."""
    words = (
        (left_straight_left, (LEFT_TURN, STRAIGHT, LEFT_TURN), False),
        (left_straight_right, (LEFT_TURN, STRAIGHT, RIGHT_TURN), False),
        (left_right_left, (LEFT_TURN, RIGHT_TURN, LEFT_TURN), False),
        (left_right_left, (LEFT_TURN, RIGHT_TURN, LEFT_TURN), True),
    )
    c, s = jnp.cos(turn), jnp.sin(turn)
    lengths, turns, exist = [], [], []
    for word, shape, from_its_end in words:
        px, py = (x * c + y * s, x * s - y * c) if from_its_end else (x, y)
        for back in (1, -1):
            for mirror in (1, -1):
                *pieces, exists = word(back * px, mirror * py, back * mirror * turn)
                if from_its_end:
                    pieces.reverse()
                lengths.append([back * piece for piece in pieces])
                turns.append([mirror * kind for kind in shape])
                exist.append(exists)
    table = [jnp.stack([row[i] for row in lengths]) for i in range(3)]
    ways = [jnp.sign(piece) for piece in table]
    cusps = (ways[0] * ways[1] < 0).astype(jnp.int32) + (ways[1] * ways[2] < 0)
    total = jnp.abs(table[0]) + jnp.abs(table[1]) + jnp.abs(table[2]) + CUSP_LENGTH * cusps
    best = jnp.argmin(jnp.where(jnp.stack(exist), total, jnp.inf))
    first, second, third = (piece[best] for piece in table)
    shapes = np.array(turns, np.float32)
    kinds = [jnp.asarray(shapes[:, i])[best] for i in range(3)]
    for _ in range(2):  # skip what is too short to be driven
        skip = jnp.abs(first) < MIN_PIECE
        shifted = zip((first, second, third), (second, third, 0 * third), strict=True)
        first, second, third = (jnp.where(skip, following, piece) for piece, following in shifted)
        kinds = [jnp.where(skip, b, a) for a, b in zip(kinds, [*kinds[1:], kinds[2]], strict=True)]
    same_direction = jnp.sign(second) * jnp.sign(first) >= 0
    stretch = jnp.abs(first) + jnp.where(same_direction, jnp.abs(second), 0)
    stretch = stretch + jnp.where(
        same_direction & (jnp.sign(third) * jnp.sign(first) >= 0), jnp.abs(third), 0
    )
    return Plan(
        (kinds[0], kinds[1], kinds[2]),
        (first, second, third),
        jnp.where(first < 0, -1.0, 1.0),
        stretch,
    )

"""Collisions of two moving rectangles during a step.

None is missed, and some are reported a few centimetres early.

Over a short step each body keeps its orientation at mid-step, and its centre moves on a chord. Two
rectangles meet on their way if and only if the relative chord, a segment, cuts the Minkowski sum of
both, a convex polygon. A convex polygon and a segment are apart if and only if the normal of an
edge of one of them separates them (separating-axis theorem). There are two normals a rectangle, and
the segment's.

The bodies get a margin for two neglected effects: the turn during the step (half a diagonal times
half the turn, the largest displacement of a corner), and the distance between a path under bounded
acceleration and its chord.

Source: Ericson, Real-Time Collision Detection (2005), sections 4.4, 5.2.1 and 5.5.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..arrays import Scalar
from .bicycle import LATERAL_ACCELERATION, TYRE_BRAKING, Motion, Pose


class Sweep(NamedTuple):
    """One body, or an array of bodies, during a step."""

    start: Pose
    motion: Motion
    length: Scalar  # m
    width: Scalar  # m


def turn_margin(sweep: Sweep) -> Scalar:
    """Bound the distance (m) of a corner from its place at the middle orientation."""
    turn = jnp.abs(sweep.motion.end.heading - sweep.start.heading)
    # More than half the diagonal times half the turn.
    return 0.25 * turn * (sweep.length + sweep.width)


def chord_margin(duration: float) -> float:
    """Bound the distance (m) of a centre from its chord.

    The bound is acceleration duration^2 / 8, along and across.
    """
    return (TYRE_BRAKING + LATERAL_ACCELERATION) * duration * duration / 8


def collide(first: Sweep, second: Sweep, duration: float) -> Scalar:
    """Say whether ``first`` and ``second`` touched within the step of ``duration`` s.

    Broadcasts.
    """
    ax, ay = second.start.x - first.start.x, second.start.y - first.start.y
    bx, by = second.motion.end.x - first.motion.end.x, second.motion.end.y - first.motion.end.y
    margin = turn_margin(first) + turn_margin(second) + 2 * chord_margin(duration)
    length, width = 0.5 * first.length, 0.5 * first.width
    other_length, other_width = 0.5 * second.length, 0.5 * second.width
    c, s = first.motion.cosine, first.motion.sine
    oc, os = second.motion.cosine, second.motion.sine
    across = jnp.abs(c * os - s * oc)
    along = jnp.abs(c * oc + s * os)

    def separates(nx: Scalar, ny: Scalar, reach: Scalar) -> Scalar:
        a, b = nx * ax + ny * ay, nx * bx + ny * by
        return (jnp.minimum(a, b) > reach + margin) | (jnp.maximum(a, b) < -reach - margin)

    dx, dy = bx - ax, by - ay
    side = jnp.abs(dx * ay - dy * ax)
    reach = (
        length * jnp.abs(dx * s - dy * c)
        + width * jnp.abs(dx * c + dy * s)
        + other_length * jnp.abs(dx * os - dy * oc)
        + other_width * jnp.abs(dx * oc + dy * os)
    )
    # |dx| + |dy| is at least the length of the normal, so the margin is never too small.
    passes = side > reach + margin * (jnp.abs(dx) + jnp.abs(dy))
    return ~(
        passes
        | separates(c, s, length + along * other_length + across * other_width)
        | separates(-s, c, width + across * other_length + along * other_width)
        | separates(oc, os, other_length + along * length + across * width)
        | separates(-os, oc, other_width + across * length + along * width)
    )


class Body(NamedTuple):
    """A rectangle at a moment, or an array of them."""

    x: Scalar  # m, of the centre
    y: Scalar
    heading: Scalar  # rad
    length: Scalar  # m
    width: Scalar


def overlap(first: Body, second: Body) -> Scalar:
    """Say whether two rectangles have a common point, by the normals of their edges. Broadcasts."""
    dx, dy = second.x - first.x, second.y - first.y
    c, s = jnp.cos(first.heading), jnp.sin(first.heading)
    oc, os = jnp.cos(second.heading), jnp.sin(second.heading)
    across, along = jnp.abs(c * os - s * oc), jnp.abs(c * oc + s * os)
    length, width = 0.5 * first.length, 0.5 * first.width
    other_length, other_width = 0.5 * second.length, 0.5 * second.width
    return (
        (jnp.abs(c * dx + s * dy) <= length + along * other_length + across * other_width)
        & (jnp.abs(c * dy - s * dx) <= width + across * other_length + along * other_width)
        & (jnp.abs(oc * dx + os * dy) <= other_length + along * length + across * width)
        & (jnp.abs(oc * dy - os * dx) <= other_width + across * length + along * width)
    )

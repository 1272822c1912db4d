"""Collisions of two moving rectangles during a step: none is missed, some are reported a few centimetres early.

Over a short step each body keeps its orientation at mid-step, and its centre moves on a chord. Two rectangles meet on
their way if and only if the relative chord, a segment, cuts the Minkowski sum of both, a convex polygon. A convex
polygon and a segment are apart if and only if the normal of an edge of one of them separates them (separating-axis
theorem). There are two normals a rectangle, and the segment's.

The bodies get a margin for two neglected effects: the turn during the step (half a diagonal times half the turn, the
largest displacement of a corner), and the distance between a path under bounded acceleration and its chord.

Source: Ericson, Real-Time Collision Detection (2005), sections 4.4, 5.2.1 and 5.5.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..arrays import Scalar
from .bicycle import HARDEST_BRAKING, LATERAL_ACCELERATION, Motion, Pose


class Sweep(NamedTuple):
    """One body, or an array of bodies, during a step."""

    start: Pose
    motion: Motion
    length: Scalar
    """m"""
    width: Scalar
    """m"""


def turn_margin(sweep: Sweep) -> Scalar:
    """Bound the distance (m) of a corner from its place at the middle orientation."""
    turn = jnp.abs(sweep.motion.end.heading - sweep.start.heading)
    return 0.25 * turn * (sweep.length + sweep.width)  # more than half the diagonal times half the turn


def chord_margin(duration: float) -> float:
    """Bound the distance (m) of a centre from its chord: acceleration duration^2 / 8, along and across."""
    return (HARDEST_BRAKING + LATERAL_ACCELERATION) * duration * duration / 8


def collided(one: Sweep, other: Sweep, duration: float) -> Scalar:
    """Say whether ``one`` and ``other`` touched within the step of ``duration`` s. Broadcasts."""
    ax, ay = other.start.x - one.start.x, other.start.y - one.start.y
    bx, by = other.motion.end.x - one.motion.end.x, other.motion.end.y - one.motion.end.y
    margin = turn_margin(one) + turn_margin(other) + 2 * chord_margin(duration)
    length, width = 0.5 * one.length, 0.5 * one.width
    other_length, other_width = 0.5 * other.length, 0.5 * other.width
    c, s = one.motion.cosine, one.motion.sine
    oc, os = other.motion.cosine, other.motion.sine
    across = jnp.abs(c * os - s * oc)
    along = jnp.abs(c * oc + s * os)

    def apart(nx: Scalar, ny: Scalar, reach: Scalar) -> Scalar:
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
        | apart(c, s, length + along * other_length + across * other_width)
        | apart(-s, c, width + across * other_length + along * other_width)
        | apart(oc, os, other_length + along * length + across * width)
        | apart(-os, oc, other_width + across * length + along * width)
    )


class Body(NamedTuple):
    """A rectangle at a moment, or an array of them."""

    x: Scalar
    """m, of the centre"""
    y: Scalar
    heading: Scalar
    """rad"""
    length: Scalar
    """m"""
    width: Scalar


def overlap(one: Body, other: Body) -> Scalar:
    """Say whether two rectangles have a common point, by the normals of their edges. Broadcasts."""
    dx, dy = other.x - one.x, other.y - one.y
    c, s = jnp.cos(one.heading), jnp.sin(one.heading)
    oc, os = jnp.cos(other.heading), jnp.sin(other.heading)
    across, along = jnp.abs(c * os - s * oc), jnp.abs(c * oc + s * os)
    length, width = 0.5 * one.length, 0.5 * one.width
    other_length, other_width = 0.5 * other.length, 0.5 * other.width
    return (
        (jnp.abs(c * dx + s * dy) <= length + along * other_length + across * other_width)
        & (jnp.abs(c * dy - s * dx) <= width + across * other_length + along * other_width)
        & (jnp.abs(oc * dx + os * dy) <= other_length + along * length + across * width)
        & (jnp.abs(oc * dy - os * dx) <= other_width + across * length + along * width)
    )

"""Whether two moving rectangles met during a step: never missed, at most reported a few centimetres early.

Over a short step each body keeps the orientation of its middle, and its centre moves on a chord. Two rectangles meet
somewhere on their way if and only if the relative chord, a segment, cuts the Minkowski sum of both: a convex polygon.
A convex polygon and a segment are apart if and only if the normal of an edge of one of them separates them
(separating-axis theorem): two normals a rectangle, and the segment's.

What is neglected is added to the bodies as a margin: half a diagonal times half the turn of each (how far a corner
strays from the middle orientation), and how far a path under bounded acceleration strays from its chord.

Source: Ericson, Real-Time Collision Detection (2005), sections 4.4, 5.2.1 and 5.5.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from .bicycle import LATERAL_ACCELERATION, Motion, Pose
from .car_following import HARDEST_BRAKING, Scalar


class Sweep(NamedTuple):
    """One body, or an array of bodies, during a step."""

    start: Pose
    motion: Motion
    length: Scalar
    """m"""
    width: Scalar
    """m"""


def turn_margin(sweep: Sweep) -> Scalar:
    """How far a corner strays from where the middle orientation has it, m, at most."""
    turn = jnp.abs(sweep.motion.end.heading - sweep.start.heading)
    return 0.25 * turn * (sweep.length + sweep.width)  # more than half the diagonal times half the turn


def bow_margin(duration: float) -> float:
    """How far a centre strays from its chord, m, at most: acceleration duration^2 / 8, along and across."""
    return (HARDEST_BRAKING + LATERAL_ACCELERATION) * duration * duration / 8


def met(one: Sweep, other: Sweep, duration: float) -> Scalar:
    """Whether ``one`` and ``other`` touched within the step of ``duration`` s. Broadcasts."""
    ax, ay = other.start.x - one.start.x, other.start.y - one.start.y
    bx, by = other.motion.end.x - one.motion.end.x, other.motion.end.y - one.motion.end.y
    margin = turn_margin(one) + turn_margin(other) + 2 * bow_margin(duration)
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
    # |dx| + |dy| is no less than the length of the normal: more margin, never less.
    passes = side > reach + margin * (jnp.abs(dx) + jnp.abs(dy))
    return ~(
        passes
        | apart(c, s, length + along * other_length + across * other_width)
        | apart(-s, c, width + across * other_length + along * other_width)
        | apart(oc, os, other_length + along * length + across * width)
        | apart(-os, oc, other_width + across * length + along * width)
    )

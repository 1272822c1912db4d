"""The physics that all particle worlds share: discs that are driven, coast, and repel each other.

The worlds are those of Mordatch & Abbeel 2018 (arXiv:1703.04908) and Lowe et al. 2017
(arXiv:1706.02275), by the rules of MPE2 (github.com/Farama-Foundation/MPE2, version 1.1.1). A step
of 0.1 s moves a body of 1 kg in this order:

    position += 0.1 velocity                     with the velocity of before the step
    velocity  = 0.75 velocity + 0.1 force        then shortened to the body's top speed

The first worlds of OpenAI moved bodies after they had new velocities, which is another task.

Two bodies that collide and overlap repel each other along the line between their centres with 100 N
a metre of overlap. The overlap is smoothed over a millimetre, log(1 + exp(1000 overlap)) / 1000.
Two bodies in one place have no line between them: MPE2 then divides zero by zero, here no force
acts.

There are no walls. Each state is a tuple of bodies, whose numbers are scalars: a batch of worlds
then computes on whole vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import jax.numpy as jnp

from rlbench_suite.core.arrays import Flag, Float

PERIOD = 0.1
"""s"""
COASTING = 0.75
"""Part of its velocity that a body keeps in a step."""
STIFFNESS = 100.0
"""N/m"""
MARGIN = 1e-3
"""m over which the start of a contact is smoothed."""
MIN_DISTANCE = 1e-9
"""m: bodies nearer than this have no direction to each other."""
PUSH = 5.0
"""N with which an agent drives itself, unless its scenario says otherwise."""


class Point(NamedTuple):
    """A place."""

    x: Float
    """m"""
    y: Float
    """m"""


class Body(NamedTuple):
    """Place and velocity of a disc."""

    x: Float
    """m"""
    y: Float
    """m"""
    vx: Float
    """m/s"""
    vy: Float
    """m/s"""


class Kind(NamedTuple):
    """Constants of the bodies of a scenario, as plain numbers."""

    radius: float
    """m"""
    collides: bool
    push: float = PUSH
    """N of a full push"""
    max_speed: float = math.inf
    """m/s"""
    movable: bool = True


Force = tuple[Float, Float]
"""N along x and y."""


def step_bodies(
    bodies: Sequence[Body], kinds: Sequence[Kind], drives: Sequence[Force]
) -> tuple[Body, ...]:
    """Return the bodies one step later.

    Args:
        bodies: all bodies that move or collide, with obstacles.
        kinds: the kind of each body.
        drives: force of each body's own drive; not read where a body cannot move.
    """
    forces = list(drives)
    for i, j in combinations(range(len(bodies)), 2):
        movable = kinds[i].movable or kinds[j].movable
        if not (movable and kinds[i].collides and kinds[j].collides):
            continue
        fx, fy = contact_force(bodies[i], bodies[j], kinds[i].radius + kinds[j].radius)
        forces[i] = (forces[i][0] + fx, forces[i][1] + fy)
        forces[j] = (forces[j][0] - fx, forces[j][1] - fy)
    return tuple(
        step_body(body, kind, force) if kind.movable else body
        for body, kind, force in zip(bodies, kinds, forces, strict=True)
    )


def step_body(body: Body, kind: Kind, force: Force) -> Body:
    """Return a body one step later, under a force."""
    vx = COASTING * body.vx + PERIOD * force[0]
    vy = COASTING * body.vy + PERIOD * force[1]
    if kind.max_speed < math.inf:
        share = kind.max_speed / jnp.maximum(length(vx, vy), kind.max_speed)
        vx = vx * share
        vy = vy * share
    return Body(body.x + PERIOD * body.vx, body.y + PERIOD * body.vy, vx, vy)


def contact_force(body: Body, partner: Body, reach: float) -> Force:
    """Return the force on a body from another one whose radius and its own add up to ``reach``."""
    dx = body.x - partner.x
    dy = body.y - partner.y
    distance = length(dx, dy)
    depth = (reach - distance) * (1 / MARGIN)
    overlap = MARGIN * (jnp.maximum(depth, 0) + jnp.log1p(jnp.exp(-jnp.abs(depth))))
    strength = STIFFNESS * overlap / jnp.maximum(distance, MIN_DISTANCE)
    return strength * dx, strength * dy


def length(x: Float, y: Float) -> Float:
    """Return the length of a vector."""
    return jnp.sqrt(x * x + y * y)


def distance(a: Point | Body, b: Point | Body) -> Float:
    """Return the distance of two places, m."""
    return length(a.x - b.x, a.y - b.y)


def touch(body: Body, partner: Body, reach: float) -> Flag:
    """Return whether two bodies overlap whose radii add up to ``reach``."""
    return distance(body, partner) < reach

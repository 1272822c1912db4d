"""The image of a camera on board, of a ball, pillars and the floor.

One ray for each pixel is intersected in closed form.

The camera is at the vehicle's centre and looks along its x axis; its pixels are square. A ray
through a pixel is ``(1, left, up)`` in the body frame, so its parameter is the depth (m). Each
component of all rays of a picture is one array. Nothing is summed, so a picture is the same to the
bit alone and in a batch.

Light comes from the camera: a surface is darker the more it is turned away. Source of the
intersections: Glassner, An Introduction to Ray Tracing, ch. 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.numerics.bit_exact import computed_once

from ..physics.rigid_body import RigidBody, Scalar, rotation_matrix

ROWS, COLUMNS = 24, 32
FIELD_OF_VIEW = math.radians(90)
"""rad: over the width."""
PIXEL = 2 * math.tan(0.5 * FIELD_OF_VIEW) / COLUMNS
"""Slope spanned by a pixel."""
LEFT = PIXEL * (0.5 * COLUMNS - 0.5 - np.arange(COLUMNS, dtype=np.float32))
"""``(32,)``: slope of a column's rays to the left."""
UP = PIXEL * (0.5 * ROWS - 0.5 - np.arange(ROWS, dtype=np.float32))[:, None]
"""``(24, 1)``: slope of a row's rays upward."""
RED = (0.95, 0.1, 0.1)
"""Colour of the ball."""
BLUE = (0.1, 0.25, 0.9)
"""Colour of the pillars."""
SKY = 0.9
"""Brightness of the sky."""
FLOOR = 0.5
"""Mean brightness of the floor."""
CONTRAST = 0.2
"""Difference of the brightness of the floor's tiles, 1 m wide, from its mean."""
HAZE = 5.0
"""m: depth at which half of the floor's contrast is lost."""
NO_HIT_DEPTH = 1e9
"""m: depth of a ray that meets nothing."""


class Hit(NamedTuple):
    """Intersection of rays with a thing."""

    depth: jax.Array
    """m; NO_HIT_DEPTH for rays that miss."""
    facing: jax.Array
    """Squared cosine of the angle between a ray and the surface's normal."""


def picture(
    body: RigidBody,
    ball: tuple[Scalar, Scalar, Scalar],
    radius: float,
    pillars: Sequence[tuple[Scalar, ...]],
    wide: float,
) -> jax.Array:
    """Return the image in red, green and blue, uint8 ``(24, 32, 3)``.

    It shows a ball of this ``radius`` (m), upright pillars at ``(x, y)`` of radius ``wide``, the
    floor at z = 0, the sky.
    """

    def painted_channels(
        body: RigidBody, ball: tuple[Scalar, ...], pillars: Sequence[tuple[Scalar, ...]]
    ) -> list[jax.Array]:
        return [quantise(channel) for channel in channels(body, ball, radius, pillars, wide)]

    # Without this, XLA would trace everything again for each channel of each pixel.
    return jnp.stack(computed_once(painted_channels)(body, ball, pillars), -1)


def quantise(brightness: Any) -> Any:
    """Round brightness in [0, 1] down to a pixel's whole steps of 1/255."""
    return (255 * brightness).astype(np.uint8)


def channels(
    body: RigidBody,
    ball: tuple[Scalar, ...],
    radius: float,
    pillars: Sequence[tuple[Scalar, ...]],
    wide: float,
) -> list[jax.Array]:
    """Return red, green and blue of a picture, each ``(24, 32)``, in [0, 1]."""
    rays = rays_of(body)
    red = sphere(rays, (ball[0] - body.x, ball[1] - body.y, ball[2] - body.z), radius)
    blue = Hit(
        jnp.full((ROWS, COLUMNS), NO_HIT_DEPTH, rays[0].dtype),
        jnp.zeros((ROWS, COLUMNS), rays[0].dtype),
    )
    for x, y in pillars:
        pillar = cylinder(rays, (x - body.x, y - body.y), wide)
        nearer = pillar.depth < blue.depth
        blue = Hit(
            jnp.where(nearer, pillar.depth, blue.depth),
            jnp.where(nearer, pillar.facing, blue.facing),
        )
    depth, brightness = floor(rays, body)
    is_red = (red.depth < blue.depth) & (red.depth < depth)
    is_blue = ~is_red & (blue.depth < depth)
    light = 0.5 + 0.5 * jnp.where(is_red, red.facing, blue.facing)
    return [
        jnp.where(is_red, r * light, jnp.where(is_blue, b * light, brightness))
        for r, b in zip(RED, BLUE, strict=True)
    ]


def rays_of(body: RigidBody) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the rays in the world frame, each component ``(24, 32)``."""
    rows = rotation_matrix(body)
    x, y, z = (rows[i] + rows[i + 1] * LEFT + rows[i + 2] * UP for i in (0, 3, 6))
    return x, y, z


def sphere(
    rays: tuple[jax.Array, ...], middle: tuple[Scalar, Scalar, Scalar], radius: float
) -> Hit:
    """Intersect rays with a sphere whose centre is given relative to the camera (m).

    The camera is outside.
    """
    (x, y, z), (cx, cy, cz) = rays, middle
    along = x * cx + y * cy + z * cz
    squared_length = 1 + LEFT * LEFT + UP * UP  # a rotation keeps it
    discriminant = along * along - squared_length * (cx * cx + cy * cy + cz * cz - radius * radius)
    meets = (discriminant > 0) & (along > 0)
    depth = (along - jnp.sqrt(jnp.maximum(discriminant, 0))) * (1 / squared_length)
    facing = jnp.clip(discriminant * (1 / (squared_length * (radius * radius))), 0, 1)
    return Hit(jnp.where(meets, depth, NO_HIT_DEPTH), facing)


def cylinder(rays: tuple[jax.Array, ...], middle: tuple[Scalar, Scalar], radius: float) -> Hit:
    """Intersect rays with an endless upright cylinder; its axis is relative to the camera (m).

    The camera is outside.

    ``facing`` uses the horizontal parts alone.
    """
    (x, y, _), (cx, cy) = rays, middle
    along = x * cx + y * cy
    squared_length = jnp.maximum(x * x + y * y, 1e-6)  # straight up or down: it meets nothing
    discriminant = along * along - squared_length * (cx * cx + cy * cy - radius * radius)
    meets = (discriminant > 0) & (along > 0)
    per_length = 1 / squared_length
    depth = (along - jnp.sqrt(jnp.maximum(discriminant, 0))) * per_length
    facing = jnp.clip(discriminant * per_length * (1 / (radius * radius)), 0, 1)
    return Hit(jnp.where(meets, depth, NO_HIT_DEPTH), facing)


def floor(rays: tuple[jax.Array, ...], body: RigidBody) -> tuple[jax.Array, jax.Array]:
    """Return the depth of the floor (m), and the brightness of the floor or the sky.

    The depth is ``NO_HIT_DEPTH`` above the horizon.

    Tiles are light where the whole numbers below x and y are both even or both odd. Their edges are
    soft, or an edge would flicker.
    """
    x, y, z = rays
    below = z < -1e-6
    depth = jnp.where(below, body.z / jnp.where(below, -z, 1), NO_HIT_DEPTH)
    distance = jnp.where(below, depth, 0)
    pattern = jnp.clip(
        4 * triangle_wave(body.x + distance * x) * triangle_wave(body.y + distance * y), -1, 1
    )
    contrast = CONTRAST / (1 + distance * distance * (1 / HAZE**2))
    return depth, jnp.where(below, FLOOR + contrast * pattern, SKY)


def triangle_wave(x: jax.Array) -> jax.Array:
    """Return a triangle wave of period 2: 0 at whole numbers, 1 at a half, -1 at one and a half."""
    turn = 0.5 * x - jnp.floor(0.5 * x)
    return jnp.where(turn < 0.5, 1 - jnp.abs(4 * turn - 1), jnp.abs(4 * turn - 3) - 1)

"""Faces, lines and balls over a chequered floor, drawn from far to near (the painter's algorithm).

Things on the floor are drawn before things above it; the camera is never below the floor. Pictures
are drawn at twice their size and halved, which smooths edges. Source: Foley, van Dam, Feiner &
Hughes, Computer Graphics, sec. 15.5.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from .camera import Camera

MIN_DEPTH = 0.02
"""m: nothing nearer to the camera is drawn."""
LIGHT, DARK, SKY = (236, 238, 240), (212, 217, 222), (250, 251, 253)
"""Colours of the tiles, and of everything beyond the floor."""
SUPERSAMPLING = 2
"""Factor by which a picture is drawn larger than it is shown."""


class Face(NamedTuple):
    """A flat polygon."""

    points: np.ndarray
    """``(n, 3)`` m"""
    fill: str
    outline: str | None = None


class Line(NamedTuple):
    """A line through points."""

    points: np.ndarray
    """``(n, 3)`` m"""
    colour: str
    thickness: float = 0.0
    """m; never thinner than a pixel of the picture."""


class Ball(NamedTuple):
    """A sphere."""

    points: np.ndarray
    """``(1, 3)`` m: its centre."""
    colour: str
    radius: float
    """m"""


Shape = Face | Line | Ball


def prism(x: float, y: float, radius: float, height: float, tones: tuple[str, str]) -> list[Face]:
    """Return a pillar on the floor z = 0 as eight faces in two tones and a lid (m)."""
    angles = np.linspace(0, 2 * math.pi, 9)
    low = np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles), 0 * angles], 1)
    high = low + np.array([0, 0, height])
    sides = [
        Face(np.array([low[i], low[i + 1], high[i + 1], high[i]]), tones[i % 2]) for i in range(8)
    ]
    return [*sides, Face(high[:-1], tones[1])]


class Floor(NamedTuple):
    """A level floor of square tiles that fades away from the middle of the scene."""

    x: float
    """m: the centre."""
    y: float
    z: float
    tile: float
    """m"""
    reach: float
    """m from the centre, beyond which it fades."""


class Projection(NamedTuple):
    """A thing in a camera's view."""

    shape: Shape
    pixels: list[float]
    """x and y of one point after another"""
    depth: float
    """m, mean"""


def render(
    lying: Sequence[Shape],
    standing: Sequence[Shape],
    floor: Floor,
    camera: Camera,
    width: int,
    height: int,
) -> Image.Image:
    """Draw a picture of ``width`` by ``height`` pixels of the things on the floor and above it."""
    image = backdrop(floor, camera, width, height).copy()
    canvas, focal_length = ImageDraw.Draw(image), camera.focal_length(image.height)
    below = project(lying, camera, *image.size)
    above = project(standing, camera, *image.size)
    for shape, pixels, depth in below + sorted(above, key=lambda projection: -projection.depth):
        paint(canvas, shape, pixels, focal_length / depth)
    return image.reduce(SUPERSAMPLING)


def project(things: Sequence[Shape], camera: Camera, width: int, height: int) -> list[Projection]:
    """Project the parts of things that are ahead of the camera, for a picture of this size."""
    if not things:
        return []
    points = camera.to_camera(np.concatenate([shape.points for shape in things]))
    lengths = np.array([len(shape.points) for shape in things])
    starts = np.cumsum(lengths) - lengths
    depths = (np.add.reduceat(points[:, 2], starts) / lengths).tolist()
    in_front = (np.minimum.reduceat(points[:, 2], starts) >= MIN_DEPTH).tolist()
    # All points at once: projecting them one by one would take longer than drawing.
    pixels = (
        camera.pixels(np.maximum(points, [-np.inf, -np.inf, MIN_DEPTH]), width, height)
        .ravel()
        .tolist()
    )
    projections = []
    for shape, start, length, depth, is_in_front in zip(
        things, starts.tolist(), lengths.tolist(), depths, in_front, strict=True
    ):
        if is_in_front:
            projections.append(Projection(shape, pixels[2 * start : 2 * (start + length)], depth))
            continue
        clipped = clip_ahead(points[start : start + length], closed=isinstance(shape, Face))
        if len(clipped):
            projections.append(
                Projection(
                    shape,
                    camera.pixels(clipped, width, height).ravel().tolist(),
                    float(clipped[:, 2].mean()),
                )
            )
    return projections


def paint(canvas: ImageDraw.ImageDraw, shape: Shape, pixels: list[float], scale: float) -> None:
    """Draw a thing at these pixels; ``scale`` is pixels per metre."""
    if isinstance(shape, Face):
        canvas.polygon(pixels, fill=shape.fill, outline=shape.outline)
    elif isinstance(shape, Line):
        canvas.line(
            pixels, fill=shape.colour, width=max(SUPERSAMPLING, round(shape.thickness * scale))
        )
    else:
        (x, y), radius = pixels, max(shape.radius * scale, SUPERSAMPLING)
        canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill=shape.colour)
        # A highlight makes a disc look like a sphere.
        x, y, radius = x - 0.3 * radius, y - 0.3 * radius, 0.25 * radius
        canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill="white")


def clip_ahead(points: np.ndarray, closed: bool) -> np.ndarray:
    """Clip a polygon or line ``(n, 3)`` to the part ahead of the camera.

    Sutherland & Hodgman 1974, for one plane.
    """
    clipped: list[np.ndarray] = []
    for i, (previous, point) in enumerate(zip(np.roll(points, 1, 0), points, strict=True)):
        if (previous[2] < MIN_DEPTH) != (point[2] < MIN_DEPTH) and (closed or i > 0):
            share = (MIN_DEPTH - previous[2]) / (point[2] - previous[2])
            clipped.append(previous + share * (point - previous))
        if point[2] >= MIN_DEPTH:
            clipped.append(point)
    return np.array(clipped)


@lru_cache(maxsize=32)
def backdrop(floor: Floor, camera: Camera, width: int, height: int) -> Image.Image:
    """Draw the floor and the sky by a ray a pixel, ``SUPERSAMPLING`` times as large.

    The picture is the same for every state of a task.
    """
    rays = camera.rays(SUPERSAMPLING * width, SUPERSAMPLING * height)
    x, y, z = camera.position
    down = np.minimum(rays[..., 2], -1e-9)
    x, y = (
        start + (floor.z - z) / down * along
        for start, along in ((x, rays[..., 0]), (y, rays[..., 1]))
    )
    dark = (np.floor((x - floor.x) / floor.tile) + np.floor((y - floor.y) / floor.tile)) % 2
    tiles = np.where(dark[..., None] == 1, DARK, LIGHT)
    away = np.hypot(x - floor.x, y - floor.y) / floor.reach
    share = np.where(rays[..., 2] < 0, np.clip(2 - away, 0, 1), 0)[..., None]
    return Image.fromarray((share * tiles + (1 - share) * SKY).astype(np.uint8))


def tile_length(reach: float) -> float:
    """Return the largest round length (m) up to a third of ``reach``.

    A round length is 1, 2 or 5 times a power of ten.
    """
    power = 10.0 ** math.floor(math.log10(reach / 3))
    return max(step * power for step in (1, 2, 5) if step * power <= reach / 3)

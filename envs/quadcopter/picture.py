"""Pictures of quadcopters in flight: from the side (x right, z up) and from above (x right, y up)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from . import dynamics
from .dynamics import Quadcopter
from .rigid_body import RigidBody, rotation_matrix

SIZE = 300
SHAPE = (SIZE, 2 * SIZE, 3)


class Mark(NamedTuple):
    """A circle at a place."""

    place: Sequence[float]
    """m"""
    colour: str
    radius: float
    """pixels"""


def draw(
    state: Quadcopter,
    reach: float,
    marks: Sequence[Mark] = (),
    paths: Sequence[tuple[np.ndarray, str]] = (),
    centre: Sequence[float] = (0.0, 0.0, 0.0),
    full: float = dynamics.ROTOR_SPEED_LIMIT,
) -> np.ndarray:
    """Box, marks, paths ``((points, 3), colour)``, vehicle and its rotors' thrusts; uint8 of ``SHAPE``.

    The box reaches ``reach`` (m) from its centre along each axis; ``full`` is the rotors' full speed (rad/s).
    """
    image = Image.new("RGB", (2 * SIZE, SIZE), "white")
    canvas = ImageDraw.Draw(image)
    body = RigidBody(*(float(value) for value in state.body))
    rotation = np.array(rotation_matrix(body)).reshape(3, 3)
    hull = np.array([body.x, body.y, body.z])
    # Rotor arms are drawn three times their length and more in a large box, or a vehicle would be a dot.
    larger = max(3.0, 5 * reach)
    arms = larger * dynamics.ROTOR_ARM * np.array([[1, -1, 0], [-1, -1, 0], [-1, 1, 0], [1, 1, 0]])
    tips = hull + arms @ rotation.T
    lengths = np.array([larger / 12 * (float(n) / full) ** 2 for n in state.rotors])
    heads = tips + lengths[:, None] * rotation[:, 2]
    for left, (title, across, up) in zip((0, SIZE), (("side", 0, 2), ("top", 0, 1)), strict=True):

        def pixel(point: Any, left: int = left, across: int = across, up: int = up) -> tuple[float, float]:
            scale = 0.5 * SIZE / (1.1 * reach)
            right, above = point[across] - centre[across], point[up] - centre[up]
            return left + SIZE / 2 + scale * right, SIZE / 2 - scale * above

        low, high = (pixel([value + sign * reach for value in centre]) for sign in (-1, 1))
        canvas.rectangle((low[0], high[1], high[0], low[1]), outline="silver")
        canvas.text((left + 16, 14), title, fill="gray")
        for points, colour in paths:
            canvas.line([pixel(point) for point in points], fill=colour, width=1)
        for mark in marks:
            x, y = pixel(mark.place)
            r = mark.radius
            canvas.ellipse((x - r, y - r, x + r, y + r), outline=mark.colour, width=2)
        for tip, head in zip(tips, heads, strict=True):
            canvas.line((pixel(hull), pixel(tip)), fill="black", width=3)
            canvas.line((pixel(tip), pixel(head)), fill="red", width=2)
    return np.asarray(image)

"""A picture of a drive: the plane of its currents, and a gauge for every controlled quantity.

Some drives have no such plane.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

WIDTH = 300
HEIGHT = 300
PLANE = 180
"""Pixels, of the square plane."""


class Gauge(NamedTuple):
    """One controlled quantity."""

    label: str
    value: float
    setpoint: float
    low: float
    high: float


def picture(
    vector: tuple[float, float] | None,
    share: float,
    over: float,
    gauges: list[Gauge],
    voltages: tuple[float, ...],
    axes: tuple[str, str] = ("i_d", "i_q"),
) -> np.ndarray:
    """Return a picture, uint8 ``(300, 300, 3)``: set points green, values red, limits black.

    Args:
        vector: d and q current, or those of ``axes``, in parts of the limit, or None: then a bar
            for ``share``.
        share: the largest current in parts of the limit.
        over: ends of the plane, in parts of the limit.
        gauges: what is controlled.
        voltages: what the converter gives, in parts of what it can.
        axes: names of the plane's.
    """
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    canvas = ImageDraw.Draw(image)
    _plane(canvas, vector, share, over, axes)
    pitch = min(30, 100 // len(voltages))
    for i, voltage in enumerate(voltages):
        x_offset = PLANE + 20 + i * pitch
        right = x_offset + 2 * pitch // 3
        canvas.rectangle((x_offset, 20, right, 160), outline="black")
        middle = 90 - 70 * max(-1.0, min(1.0, voltage))
        canvas.rectangle(
            (x_offset + 2, min(middle, 90), right - 2, max(middle, 90)), fill="cornflowerblue"
        )
    canvas.text((PLANE + 20, 4), "u", fill="gray")
    height = min(36, 108 // len(gauges))
    for i, gauge in enumerate(gauges):
        top = PLANE + 12 + i * height
        canvas.text(
            (8, top), f"{gauge.label}: {gauge.value:.4g} of {gauge.setpoint:.4g}", fill="black"
        )
        canvas.line((10, top + 22, WIDTH - 10, top + 22), fill="silver", width=3)
        for number, colour, half in ((gauge.setpoint, "green", 8), (gauge.value, "red", 5)):
            fraction = (number - gauge.low) / (gauge.high - gauge.low)
            x = 10 + (WIDTH - 20) * max(0.0, min(1.0, fraction))
            canvas.line((x, top + 22 - half, x, top + 22 + half), fill=colour, width=3)
    return np.asarray(image)


def _plane(
    canvas: ImageDraw.ImageDraw,
    vector: tuple[float, float] | None,
    share: float,
    over: float,
    axes: tuple[str, str],
) -> None:
    middle, scale = PLANE / 2, (PLANE / 2 - 6) / over
    if vector is None:
        canvas.text((8, 4), "i", fill="gray")
        canvas.line((10, middle, PLANE - 10, middle), fill="silver", width=3)
        limit = 10 + (PLANE - 20) / over
        canvas.line((limit, middle - 12, limit, middle + 12), fill="black", width=2)
        canvas.line(
            (10, middle, 10 + (PLANE - 20) * min(share / over, 1.0), middle), fill="red", width=5
        )
        return
    canvas.ellipse(
        (middle - scale, middle - scale, middle + scale, middle + scale), outline="black"
    )
    canvas.line((0, middle, PLANE, middle), fill="silver")
    canvas.line((middle, 0, middle, PLANE), fill="silver")
    canvas.text((PLANE - 8 - 4 * len(axes[0]), middle + 4), axes[0], fill="gray")
    canvas.text((middle + 4, 2), axes[1], fill="gray")
    x, y = middle + scale * vector[0], middle - scale * vector[1]
    canvas.line((middle, middle, x, y), fill="red", width=2)
    canvas.ellipse((x - 3, y - 3, x + 3, y + 3), fill="red")

"""Pictures of roads along routes, from above."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import ImageDraw

from ..roads.routes import Route, points

Pixel = Callable[[float, float], tuple[float, float]]


def vehicle_colour(vehicle: int, crashed: Any) -> str:
    """Return the colour of a vehicle, of which number 0 is the ego."""
    if vehicle > 0:
        return "cornflowerblue"
    return "red" if bool(crashed) else "lime"


def draw_band(
    canvas: ImageDraw.ImageDraw,
    pixel: Pixel,
    route: Route,
    ends: tuple[float, float],
    sides: tuple[float, float],
) -> None:
    """Draw the asphalt beside a centre line.

    ``sides`` are its right and its left edge, in m to the left of the line.
    """
    s = np.arange(ends[0], ends[1] + 1.0, 1.0)
    right_edge, left_edge = (points(route, s, d)[:, :2] for d in sides)
    for i in range(len(s) - 1):
        corners = [right_edge[i], right_edge[i + 1], left_edge[i + 1], left_edge[i]]
        canvas.polygon([pixel(*corner) for corner in corners], fill="dimgray")


def draw_line(
    canvas: ImageDraw.ImageDraw,
    pixel: Pixel,
    route: Route,
    ends: tuple[float, float],
    d: float,
    *,
    dashed: bool = False,
) -> None:
    """Draw a white line beside a centre line."""
    line = [pixel(*point[:2]) for point in points(route, np.arange(ends[0], ends[1] + 1.0, 1.0), d)]
    pieces = [line[i : i + 3] for i in range(0, len(line) - 1, 6)] if dashed else [line]
    for piece in pieces:
        canvas.line(piece, fill="white")


def draw_car(
    canvas: ImageDraw.ImageDraw,
    pixel: Pixel,
    pose: tuple[float, float, float],
    size: tuple[float, float],
    colour: str,
) -> None:
    """Draw a car at (x, y, heading) with a length and a width."""
    x, y, heading = (float(value) for value in pose)
    c, s = 0.5 * math.cos(heading), 0.5 * math.sin(heading)
    length, width = size
    corners = ((length, width), (length, -width), (-length, -width), (-length, width))
    canvas.polygon(
        [pixel(x + a * c - b * s, y + a * s + b * c) for a, b in corners],
        fill=colour,
        outline="black",
    )

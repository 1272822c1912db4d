"""Pictures of a ring road and of distributions on it."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw


def draw_ring(
    image: Image.Image,
    place: np.ndarray,
    commanded: np.ndarray,
    shares: np.ndarray,
    names: tuple[str, ...],
) -> None:
    """Draw both roads and their distribution functions.

    The agents' road is the outer ring, the twin the inner one.

    Args:
        image: twice as wide as high; drawn upon.
        place: share of the ring behind the ego of each car of the twin and of the agents, ``(2,
            cars)``.
        commanded: which cars have commands, ``(cars,)``; they are orange, other agents green, the
            ego red.
        shares: distribution functions of the twin and of the agents, ``(2, quantities, points)``.
        names: name of each quantity.
    """
    canvas = ImageDraw.Draw(image)
    size = image.height
    middle = size / 2
    for world, radius, half in ((1, 0.42 * size, 7.0), (0, 0.3 * size, 4.0)):
        road = "dimgray" if world else "gray"
        edge = radius + 1.6 * half
        box = (middle - edge, middle - edge, middle + edge, middle + edge)
        canvas.ellipse(box, outline=road, width=round(3.2 * half))
        for car, behind in enumerate(place[world]):
            angle = -2 * math.pi * behind - math.pi / 2
            ahead = np.array([-math.sin(angle), math.cos(angle)])
            out = np.array([math.cos(angle), math.sin(angle)])
            centre = middle + radius * out
            corners = [
                centre + a * half * ahead + b * 0.6 * half * out
                for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1))
            ]
            colour = car_colour(is_ego=car == 0, commanded=commanded[car], of_twin=world == 0)
            canvas.polygon([tuple(corner) for corner in corners], fill=colour, outline="black")
    top = 24.0
    high = (size - 24.0) / len(names)
    wide = size - 40.0
    for i, name in enumerate(names):
        y = top + high * i
        canvas.text((size + 20, y - 14), name, fill="black")
        canvas.rectangle(
            (size + 20, y, size + 20 + wide, y + high - 24), fill="white", outline="black"
        )
        for world, colour in ((0, "gray"), (1, "green")):
            count = shares.shape[-1]
            line = [
                (size + 20 + wide * (k + 1) / (count + 1), y + (high - 24) * (1 - share))
                for k, share in enumerate(shares[world, i])
            ]
            canvas.line(line, fill=colour, width=3)


def car_colour(*, is_ego: bool, commanded: bool, of_twin: bool) -> str:
    """Return the colour of a car."""
    if is_ego:
        return "red"
    if commanded:
        return "orange"
    return "lightgray" if of_twin else "lime"

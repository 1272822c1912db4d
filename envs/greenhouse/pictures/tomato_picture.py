"""Picture of a glasshouse with tomatoes, from the side."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from ..physics.glasshouse import House, Outside
from ..physics.tomato_crop import FRESH, leaf_area_index

SHAPE = (240, 320, 3)


def picture(house: House, outside: Outside, vents: float, day: float) -> np.ndarray:
    """Draw the house with its crop, vents, pipes and the sky.

    Plants show their leaves, fruit its amount, vents their opening (0 to 1), pipes their heat, and
    the sky its sun.
    """
    height, width, _ = SHAPE
    air, crop, harvest = house
    light = min(1.0, float(outside.radiation) / 700)
    image = Image.new(
        "RGB",
        (width, height),
        tuple(int(c) for c in (20 + 120 * light, 30 + 160 * light, 80 + 160 * light)),
    )
    canvas = ImageDraw.Draw(image)
    ground, eaves, ridge = height - 40, 110, 50
    canvas.rectangle((0, ground, width, height), fill=(95, 75, 50))
    warm = min(1.0, max(0.0, float(air.temperature) / 40))
    canvas.polygon(
        ((40, ground), (40, eaves), (width / 2, ridge), (width - 40, eaves), (width - 40, ground)),
        fill=(int(120 + 120 * warm), 200, int(240 - 140 * warm)),
        outline="white",
    )
    opening = 40 * vents
    canvas.line((width / 2, ridge, width / 2 + 70, ridge + 30 - opening), fill="white", width=4)
    hot = int(60 + 195 * min(1.0, max(0.0, float(air.pipe) / 90)))
    canvas.line((50, ground - 6, width - 50, ground - 6), fill=(hot, 60, 60), width=5)
    tall = 15 + 70 * min(1.0, float(leaf_area_index(crop)) / 3)
    fruit = int(12 * min(1.0, FRESH * float(crop.fruit) / 5))
    for x in range(64, width - 60, 32):
        canvas.ellipse((x - 9, ground - 10 - tall, x + 9, ground - 10), fill=(40, 140, 50))
        for i in range(fruit):
            y = ground - 14 - (tall - 8) * (i + 0.5) / 12
            canvas.ellipse(
                (x - 7 + 8 * (i % 2), y - 3, x - 1 + 8 * (i % 2), y + 3), fill=(220, 40, 30)
            )
    canvas.text((8, 4), f"day {day:.1f}", fill="white")
    canvas.text(
        (8, 18),
        f"{float(air.temperature):.1f} C in, {float(outside.temperature):.1f} C out",
        fill="white",
    )
    canvas.text((8, height - 16), f"{FRESH * float(harvest):.1f} kg/m2 picked", fill="white")
    return np.asarray(image)

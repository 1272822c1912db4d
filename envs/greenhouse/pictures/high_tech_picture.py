"""Picture of what a high-tech glasshouse has besides: screen, lamps, heat store and root zone."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw


def picture_with_devices(
    image: np.ndarray, screen: float, lamps: float, stored: float, water: float
) -> np.ndarray:
    """Draw devices into the picture of a glasshouse: all parts from 0 to 1."""
    height, width, _ = image.shape
    picture = Image.fromarray(image)
    canvas = ImageDraw.Draw(picture)
    ground, eaves = height - 40, 110
    if lamps > 0:
        shine = int(255 * min(1.0, 0.4 + 0.6 * lamps))
        for x in range(72, width - 60, 44):
            canvas.rectangle(
                (x - 8, eaves + 10, x + 8, eaves + 14), fill=(shine, int(0.6 * shine), shine)
            )
    canvas.line((42, eaves, 42 + screen * (width - 84), eaves), fill=(230, 230, 210), width=3)
    for x, level, colour, name in (
        (8, stored, (220, 60, 40), "heat"),
        (width - 30, water, (60, 130, 230), "water"),
    ):
        canvas.rectangle((x, eaves + 20, x + 22, ground), outline="white")
        full = (ground - eaves - 22) * min(1.0, max(0.0, level))
        canvas.rectangle((x + 2, ground - 1 - full, x + 20, ground - 1), fill=colour)
        canvas.text((x - 2, eaves + 6), name, fill="white")
    return np.asarray(picture)

"""A pinhole camera: where points of the world appear in a picture.

Source: Hartley & Zisserman, Multiple View Geometry, ch. 6 (finite projective camera, square pixels, no skew).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

Point = tuple[float, float, float]
"""m"""


class Camera(NamedTuple):
    """At ``position``, looking at ``target``, its horizon level. World frame: z up."""

    position: Point
    """m"""
    target: Point
    """m"""
    field_of_view: float
    """rad, over the height of the picture"""

    def axes(self) -> np.ndarray:
        """Right, up and forward of the picture, ``(3, 3)``, a unit vector a row; looking up or down, x is right."""
        forward = np.subtract(self.target, self.position)
        forward = forward / np.linalg.norm(forward)
        right = np.array([forward[1], -forward[0], 0.0])
        length = math.hypot(*right)
        right = right / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
        return np.stack([right, np.cross(right, forward), forward])

    def seen(self, points: np.ndarray) -> np.ndarray:
        """Points ``(..., 3)`` in the camera's frame (m): to the right, up, and ahead, which is their depth."""
        seen: np.ndarray = (points - np.array(self.position)) @ self.axes().T
        return seen

    def focal_length(self, height: int) -> float:
        """Of a picture ``height`` pixels high, in pixels: their number by the slope that they show."""
        return 0.5 * height / math.tan(0.5 * self.field_of_view)

    def pixels(self, seen: np.ndarray, width: int, height: int) -> np.ndarray:
        """``(..., 2)`` from the left and from the top, of points ahead of the camera in its own frame."""
        slopes = self.focal_length(height) * seen[..., :2] / seen[..., 2:]
        return np.stack([0.5 * width + slopes[..., 0], 0.5 * height - slopes[..., 1]], -1)

    def rays(self, width: int, height: int) -> np.ndarray:
        """Directions through the middles of the pixels, ``(height, width, 3)``, world frame, one long along depth."""
        right = (np.arange(width) + 0.5 - 0.5 * width) / self.focal_length(height)
        up = (0.5 * height - np.arange(height) - 0.5) / self.focal_length(height)
        ahead = np.stack(np.broadcast_arrays(right, up[:, None], 1.0), -1)
        rays: np.ndarray = ahead @ self.axes()
        return rays

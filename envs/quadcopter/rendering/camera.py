"""A pinhole camera, which projects points of the world into a picture.

Source: Hartley & Zisserman, Multiple View Geometry, ch. 6 (finite projective camera, square pixels,
no skew).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

Point = tuple[float, float, float]
"""m"""


class Camera(NamedTuple):
    """A camera at ``position`` that looks at ``target`` with a level horizon. World frame: z up."""

    position: Point
    """m"""
    target: Point
    """m"""
    field_of_view: float
    """rad, over the height of the picture"""

    def axes(self) -> np.ndarray:
        """Return right, up and forward of the picture, ``(3, 3)``, a unit vector a row.

        For a camera that looks straight up or down, right is x.
        """
        forward = np.subtract(self.target, self.position)
        forward = forward / np.linalg.norm(forward)
        right = np.array([forward[1], -forward[0], 0.0])
        length = math.hypot(*right)
        right = right / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
        return np.stack([right, np.cross(right, forward), forward])

    def to_camera(self, points: np.ndarray) -> np.ndarray:
        """Return points ``(..., 3)`` in the camera's frame (m): right, up and forward.

        Forward is the depth.
        """
        points_in_view: np.ndarray = (points - np.array(self.position)) @ self.axes().T
        return points_in_view

    def focal_length(self, height: int) -> float:
        """Return the focal length of a picture ``height`` pixels high, in pixels."""
        return 0.5 * height / math.tan(0.5 * self.field_of_view)

    def pixels(self, points: np.ndarray, width: int, height: int) -> np.ndarray:
        """Project points ahead of the camera to pixels from the left and from the top.

        Points are in the camera's own frame; pixels are ``(..., 2)``.
        """
        slopes = self.focal_length(height) * points[..., :2] / points[..., 2:]
        return np.stack([0.5 * width + slopes[..., 0], 0.5 * height - slopes[..., 1]], -1)

    def rays(self, width: int, height: int) -> np.ndarray:
        """Return directions through the centres of pixels, ``(height, width, 3)``.

        They are in the world frame and of depth one.
        """
        right = (np.arange(width) + 0.5 - 0.5 * width) / self.focal_length(height)
        up = (0.5 * height - np.arange(height) - 0.5) / self.focal_length(height)
        ahead = np.stack(np.broadcast_arrays(right, up[:, None], 1.0), -1)
        rays: np.ndarray = ahead @ self.axes()
        return rays

"""Landmarks of the particle worlds: places that keep train and test apart."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Int

from ...shared.alternating_bands import alternating_bands
from .particle_physics import Point

LANDMARKS = 3
STRIPES = 20
"""Stripes of the landmarks' x, in turn of train and test."""


def sample_landmarks(
    units: jax.Array, split: jax.Array, count: int = LANDMARKS
) -> tuple[Point, ...]:
    """Map two numbers in [0, 1) a landmark to places in [-1, 1) m, each x in a stripe of the split.

    Along y, and along x but for the stripes, the places are uniform.
    """
    return tuple(
        Point(alternating_bands(units[2 * k], split, -1.0, 1.0, STRIPES), 2 * units[2 * k + 1] - 1)
        for k in range(count)
    )


def select_landmark(landmarks: tuple[Point, ...], number: Int) -> Point:
    """Return the place of the landmark of a number."""
    is_it = [number == index for index in range(len(landmarks))]
    x, y = zip(*landmarks, strict=True)
    return Point(jnp.select(is_it, x), jnp.select(is_it, y))


def landmark_of_word(heard: jax.Array, places: jax.Array) -> Point:
    """Return the place of the landmark that a word names, or the middle of all before any word.

    Args:
        heard: 1 for the landmark of the word, else 0, ``(3,)``.
        places: x and y of each landmark, ``(3, 2)``.
    """
    weights = jnp.where(heard.max() > 0, heard, 1 / LANDMARKS)
    x, y = (
        weights[0] * first + weights[1] * second + weights[2] * third
        for first, second, third in (places[:, 0], places[:, 1])
    )
    return Point(x, y)

"""Pictures of quadcopters in flight.

The large one is in perspective. Small ones are from above (x right, y up) and from the side (x
right, z up).
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from ..physics import dynamics
from ..physics.dynamics import Quadcopter
from ..physics.rigid_body import RigidBody, rotation_matrix
from .camera import Camera
from .scene import SKY, Ball, Face, Floor, Line, Shape, render, tile_length

HEIGHT = 300
"""Pixels: height of a picture."""
WIDTH = 420
"""Pixels: width of the perspective view."""
INSET = 180
"""Pixels: width of the two small views beside it."""
SHAPE = (HEIGHT, WIDTH + INSET, 3)
LENS = math.radians(34)
"""Field of view of the perspective view, rad."""
SMALL_VIEW_DISTANCE = 40.0
"""Distance of the cameras of the small views, by reach: perspective hardly shows."""
SMALL_VIEW_ANGLE = 2 * math.atan(1.15 / SMALL_VIEW_DISTANCE)
"""Field of view of the small views, rad."""
COLOURS = (
    "royalblue",
    "darkorange",
    "seagreen",
    "mediumorchid",
    "goldenrod",
    "teal",
    "indianred",
    "slategray",
)
GOAL = "limegreen"
LATER_GOAL = "darkgray"
PATH = "cornflowerblue"
SHADOW = "#b4bac1"
THRUST = "red"

TRAIL = 120
"""Pictures that a trail reaches back."""
PIECE = 8
"""Pictures that one line of a trail joins.

A trail has several lines, because each may be in front of or behind something else.
"""

ROTOR_PLACES = np.array([[1, -1, 0], [-1, -1, 0], [-1, 1, 0], [1, 1, 0]])
"""Places of the rotors, in units of the arm."""
_CIRCLE = np.linspace(0, 2 * math.pi, 12, endpoint=False)
_DISC = 0.82 * np.stack([np.cos(_CIRCLE), np.sin(_CIRCLE), 0 * _CIRCLE], 1)
ROTOR_DISCS = ROTOR_PLACES[:, None] + _DISC
"""``(4, 12, 3)``: outlines of the rotors' discs, in units of the arm."""
NOSE = np.array([[0.95, 0.0, 0.0], [-0.35, 0.42, 0.0], [-0.35, -0.42, 0.0]])
"""Wedge that points forward, in units of the arm."""


class Shot(NamedTuple):
    """Content of a picture."""

    vehicles: Quadcopter
    """One vehicle, or several in fields of shape ``(n,)``"""
    reach: float
    """m, half the edge of the box that is shown"""
    things: Sequence[Shape] = ()
    """Other things in the air"""
    lying: Sequence[Shape] = ()
    """Things on the floor"""
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """m, centre of the box"""
    colours: Sequence[str] = COLOURS
    """Colours of the vehicles, in turn"""
    full: float = dynamics.ROTOR_SPEED_LIMIT
    """rad/s, the rotors' full speed"""
    larger: float | None = None
    """Scale at which vehicles are drawn; in a large box they would be dots"""
    below: float | None = None
    """m, from the centre down to the floor; by default ``reach``"""
    on_board: np.ndarray | None = None
    """Image of a camera on the vehicle, shown instead of the side view; uint8"""

    def with_trails(self, positions: Sequence[np.ndarray]) -> Shot:
        """Add the vehicles' trails through the last ``TRAIL`` of ``positions``.

        Each of them is ``(n, 3)`` m.
        """
        paths = np.swapaxes(positions[-TRAIL:], 0, 1)
        trails = [
            Line(path[start : start + PIECE + 1], self.colours[i % len(self.colours)])
            for i, path in enumerate(paths)
            for start in range(0, len(path) - 1, PIECE)
        ]
        return self._replace(things=[*self.things, *trails])


class Pictured(abc.ABC):
    """A task whose pictures show a :class:`Shot`."""

    @abc.abstractmethod
    def shot(self, state: Any, params: Any) -> Shot:
        """Return the content of a picture of the state."""

    def draw(self, state: Any, params: Any) -> np.ndarray:
        """Draw the state; see :func:`draw`."""
        return draw(self.shot(state, params))

    def draw_next(self, state: Any, params: Any, trail: list[Any]) -> np.ndarray:
        """Draw the state with the vehicles' trails through the places of earlier pictures."""
        shot = self.shot(state, params)
        trail.append(np.array([np.atleast_1d(value) for value in shot.vehicles.body[:3]], float).T)
        return draw(shot.with_trails(trail))


def draw(shot: Shot) -> np.ndarray:
    """Draw vehicles with their rotors' thrusts and shadows, and things, over a floor.

    The picture is uint8 of ``SHAPE``.
    """
    vehicles, reach, things, lying, centre, colours, full, larger, below, on_board = shot
    larger = 1.6 + 1.3 * reach if larger is None else larger
    floor = Floor(
        centre[0],
        centre[1],
        centre[2] - (reach if below is None else below),
        tile_length(reach),
        2 * reach,
    )
    body = np.array([np.atleast_1d(value) for value in vehicles.body], float)
    arm = larger * dynamics.ROTOR_ARM
    positions, turns = body[:3].T, np.array(rotation_matrix(RigidBody(*body))).reshape(3, 3, -1)
    turns = arm * np.moveaxis(turns, 2, 0)
    discs = positions[:, None, None] + np.einsum("vij,rpj->vrpi", turns, ROTOR_DISCS)
    hubs = positions[:, None] + np.einsum("vij,rj->vri", turns, ROTOR_PLACES)
    noses = positions[:, None] + np.einsum("vij,pj->vpi", turns, NOSE)
    pushes = (np.array([np.atleast_1d(speed) for speed in vehicles.rotors], float).T / full) ** 2
    heads = hubs + 2.2 * pushes[..., None] * turns[:, None, :, 2]

    standing, shadows = list(things), list(lying)
    for i in range(len(positions)):
        colour = colours[i % len(colours)]
        shadows += [Face(shadow_of(disc, floor), SHADOW) for disc in discs[i]]
        shadows += [Line(shadow_of(hubs[i, [k, k + 2]], floor), SHADOW, 0.3 * arm) for k in (0, 1)]
        standing += [Line(hubs[i, [k, k + 2]], "#333333", 0.3 * arm) for k in (0, 1)]
        standing += [
            Face(disc, "white" if k in (1, 2) else colour, colour)
            for k, disc in enumerate(discs[i])
        ]
        standing += [Face(noses[i], colour, "#333333")]
        standing += [
            Line(np.stack(pair), THRUST, 0.12 * arm) for pair in zip(hubs[i], heads[i], strict=True)
        ]
    if len(positions) == 1:  # many plumb lines would only hide what they explain
        standing.append(Line(np.stack([positions[0], shadow_of(positions, floor)[0]]), SHADOW))
    x, y, z = centre
    half = HEIGHT // 2
    oblique = Camera((x - 1.3 * reach, y - 3.6 * reach, z + 1.8 * reach), centre, LENS)
    views = [
        (f"tiles of {floor.tile:g} m", oblique, (0, 0), (WIDTH, HEIGHT)),
        (
            "top",
            Camera((x, y, z + SMALL_VIEW_DISTANCE * reach), centre, SMALL_VIEW_ANGLE),
            (WIDTH, 0),
            (INSET, half),
        ),
    ]
    if on_board is None:
        views.append(
            (
                "side",
                Camera((x, y - SMALL_VIEW_DISTANCE * reach, z), centre, SMALL_VIEW_ANGLE),
                (WIDTH, half),
                (INSET, half),
            )
        )
    image = Image.new("RGB", (WIDTH + INSET, HEIGHT), SKY)
    canvas = ImageDraw.Draw(image)
    for title, camera, (x_offset, y_offset), size in views:
        image.paste(render(shadows, standing, floor, camera, *size), (x_offset, y_offset))
        canvas.text((x_offset + 6, y_offset + 4), title, fill="gray")
    if on_board is not None:
        height = INSET * on_board.shape[0] // on_board.shape[1]
        view = Image.fromarray(on_board).resize((INSET, height), Image.Resampling.NEAREST)
        image.paste(view, (WIDTH, HEIGHT - height))
        canvas.text((WIDTH + 6, half + 2), "camera", fill="gray")
    canvas.line((WIDTH, 0, WIDTH, HEIGHT), fill="silver")
    canvas.line((WIDTH, half, WIDTH + INSET, half), fill="silver")
    return np.asarray(image)


def shadow_of(points: np.ndarray, floor: Floor) -> np.ndarray:
    """Return the shadow of points ``(n, 3)`` under light from above."""
    return np.stack([points[:, 0], points[:, 1], np.full(len(points), floor.z)], 1)


def goal(position: Sequence[float] | np.ndarray, radius: float, now: bool = True) -> Ball:
    """Return a ball that marks a place to fly to (m), now or later."""
    return Ball(np.array([position], float), GOAL if now else LATER_GOAL, radius)


def path(points: np.ndarray) -> list[Line]:
    """Return lines through points ``(n, 3)`` (m), in pieces.

    Each piece may be before or behind something else.
    """
    return [Line(np.stack(ends), PATH) for ends in itertools.pairwise(points)]

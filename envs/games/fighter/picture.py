"""Pictures of a match: two figures, and bars of their health and stamina."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from .rules import (
    BLOCKING,
    DOWN,
    GUARD_HIGH,
    GUARD_LOW,
    HEALTH,
    JAB,
    JUMP,
    MATCH_TICKS,
    OVERHEAD,
    REELING,
    STAMINA,
    SWEEP,
    THROW,
    THRUST,
    Fighter,
    Params,
    State,
    frame_data,
    is_airborne,
    is_attack,
    is_revealed,
)

PICTURE_SHAPE = (200, 400, 3)
COLOURS = ((200, 60, 50), (50, 90, 190))
BODY_UNITS = 8  # that a figure takes beside the units between fighters and walls
GROUND = 175  # pixels from the top
JUMP_PIXELS = 35
LIMB_HEIGHTS = {JAB: 52, SWEEP: 6, OVERHEAD: 72, THRUST: 38, THROW: 45}
"""Pixels above the ground of the fist or foot of each attack."""


class Pose(NamedTuple):
    """A figure on the picture, in pixels."""

    x: float
    feet: float
    facing: int
    """1 to the right, -1 to the left"""
    colour: tuple[int, int, int]


def draw_match(state: State, params: Params, seat: int | None = None) -> np.ndarray:
    """Draw a match as the fighter of a seat sees it, who is red; everything for None."""
    height, width, _ = PICTURE_SHAPE
    image = Image.new("RGB", (width, height), (235, 238, 242))
    canvas = ImageDraw.Draw(image)
    canvas.rectangle((0, GROUND, width, height), fill=(150, 140, 120))
    scale = width / (int(params.width) + 2 * BODY_UNITS)
    for side, fighter in enumerate(state.sides):
        distance_to_edge = (int(fighter.room) + BODY_UNITS / 2) * scale
        x = distance_to_edge if side == 0 else width - distance_to_edge
        feet = GROUND - (JUMP_PIXELS if is_airborne(fighter) else 0)
        colour = COLOURS[side if seat is None else int(side != seat)]
        pose = Pose(x, feet, 1 if side == 0 else -1, colour)
        is_shown = seat in (None, side) or bool(is_revealed(fighter, params))
        draw_figure(canvas, pose, fighter, params, is_shown, scale)
        draw_bars(canvas, side, fighter, colour)
    share = (MATCH_TICKS - int(state.tick)) / MATCH_TICKS
    canvas.rectangle((width / 2 - 10, 8, width / 2 + 10, 8 + 30 * share), fill=(90, 90, 90))
    return np.asarray(image)


def draw_bars(
    canvas: ImageDraw.ImageDraw, side: int, fighter: Fighter, colour: tuple[int, int, int]
) -> None:
    """Draw health and stamina of a fighter in its corner."""
    width = PICTURE_SHAPE[1]
    length = 170
    start = 10 if side == 0 else width - 10 - length
    bars = (
        (8, 14, int(fighter.health) / HEALTH, colour),
        (26, 6, int(fighter.stamina) / STAMINA, (70, 150, 80)),
    )
    for top, thickness, share, fill in bars:
        canvas.rectangle((start, top, start + length, top + thickness), fill=(205, 205, 205))
        filled = length * share
        first = start if side == 0 else start + length - filled
        if filled > 0:
            canvas.rectangle((first, top, first + filled, top + thickness), fill=fill)


def draw_figure(
    canvas: ImageDraw.ImageDraw,
    pose: Pose,
    fighter: Fighter,
    params: Params,
    is_shown: bool,
    scale: float,
) -> None:
    """Draw head, body, legs, and the limb of an attack or the guard."""
    x, feet, facing, colour = pose
    posture = int(fighter.posture) if int(fighter.stun) else 0
    if posture == DOWN:
        canvas.ellipse((x - 34 * facing - 8, feet - 16, x - 34 * facing + 8, feet), fill=colour)
        canvas.line((x - 28 * facing, feet - 7, x + 24 * facing, feet - 7), fill=colour, width=9)
        return
    lean = {REELING: -10, BLOCKING: -4}.get(posture, 0) * facing
    crouch = 14 if int(fighter.guard) == GUARD_LOW else 0
    neck = feet - 62 + crouch
    hip = feet - 30 + crouch / 2
    canvas.ellipse((x + lean - 10, neck - 20, x + lean + 10, neck), fill=colour)
    canvas.line((x + lean, neck, x, hip), fill=colour, width=9)
    canvas.line((x, hip, x - 10, feet), fill=colour, width=6)
    canvas.line((x, hip, x + 10, feet), fill=colour, width=6)
    shoulder = neck + 8
    if int(fighter.guard):
        top = neck - 14 if int(fighter.guard) == GUARD_HIGH else neck + 12
        canvas.line((x + 14 * facing, top, x + 14 * facing, top + 34), fill="black", width=5)
        return
    move = int(fighter.move)
    if not is_attack(move):
        tint = "black" if move < JUMP else "white"
        canvas.line((x + lean, shoulder, x + 12 * facing, shoulder + 14), fill=tint, width=5)
        return
    frames = frame_data(move, params)
    if int(fighter.age) <= int(frames.startup):
        # A raised arm behind the body, the same for all attacks until the attack shows.
        canvas.line((x, shoulder, x - 16 * facing, shoulder - 18), fill="black", width=5)
        if is_shown:
            y = feet - LIMB_HEIGHTS[move]
            canvas.ellipse((x + 10 * facing - 4, y - 4, x + 10 * facing + 4, y + 4), fill="orange")
        return
    is_active = int(fighter.age) <= int(frames.last_active)
    length = int(frames.reach) * scale if is_active else 14
    start = hip if move == SWEEP else shoulder
    y = feet - LIMB_HEIGHTS[move]
    limb_colour = "orange" if move in (OVERHEAD, THRUST) else "black"
    end = x + (10 + length) * facing
    canvas.line((x, start, end, y), fill=limb_colour, width=6)

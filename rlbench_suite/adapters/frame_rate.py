"""Compute the pace at which pictures of a task are shown.

It is the task's own time where a screen can follow, and slow motion elsewhere.
"""

from __future__ import annotations

from typing import Any

MIN_FPS = 1
MAX_FPS = 60
TURN_FPS = 4
"""Pictures a second of a task whose steps have no duration, such as a puzzle."""


def frame_rate(period: float) -> dict[str, Any]:
    """Return the entries of ``metadata`` that say how fast to show one picture a step.

    ``render_fps`` is the number of pictures a second. ``time_scale`` is how many seconds of the
    task pass in a second of such a video: 1 is real time, 0.006 slow motion, and None is for steps
    without a duration.

    Args:
        period: duration of a step in s; 0 where it has none.
    """
    if not period:
        return {"render_fps": TURN_FPS, "time_scale": None}
    pictures = min(max(round(1 / period), MIN_FPS), MAX_FPS)
    return {"render_fps": pictures, "time_scale": float(f"{pictures * period:.3g}")}


def pace_in_words(time_scale: float | None) -> str:
    """Say how fast a video is, compared with the task's own time."""
    if time_scale is None:
        return "steps without a duration"
    if 0.95 < time_scale < 1.05:
        return "real time"
    if time_scale < 1:
        return f"slow motion, {1 / time_scale:.3g} times slower than real time"
    return f"{time_scale:.3g} times faster than real time"

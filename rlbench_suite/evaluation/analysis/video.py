"""Videos of an episode, players side by side: MP4, GIF or WebP."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.adapters.entry_points import make
from rlbench_suite.adapters.frame_rate import frame_rate
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.protocol import evaluate
from rlbench_suite.foundation.atomic_files import replacing, writing
from rlbench_suite.numerics.waiting import compiling

SUFFIXES = (".mp4", ".gif", ".webp")
GIF_FPS = 50
"""Most pictures a second of a GIF: viewers slow down those with more."""
CAPTION = 18
"""Height of the line above each player's pictures, pixels."""
LAST_SECONDS = 1
"""Time for which the last picture stays."""


class Scene(NamedTuple):
    """One player's episode in pictures."""

    pictures: list[np.ndarray]
    """uint8 ``(height, width, 3)``: before the first step, and after every one"""
    total: float
    """Return, reduced to one number"""
    why: str
    """Reason why the episode is over"""


class Video(NamedTuple):
    """Pictures to be shown one after another."""

    pictures: list[Image.Image]
    fps: int
    time_scale: float | None
    """Seconds of the task in a second of the video; None where steps have no duration"""


def actions_of_episode(task: Task[Any, Any], policy: Any, seed: int, split: str) -> np.ndarray:
    """Play a seed's first episode as an evaluation does; return its actions ``(steps, ...)``."""
    with compiling(task.card.id):
        record = evaluate(task, policy, range(seed, seed + 1), split=split)
    return np.asarray(record.actions[0, : int(record.length[0])]).astype(task.action_space.dtype)


def scene(task: Task[Any, Any], actions: Iterable[Any], seed: int, split: str) -> Scene:
    """Play these actions in the first episode of a seed, and draw every step."""
    env = make(
        task.card.id,
        split=split,
        difficulty=task.difficulty,
        dtype=task.dtype.name,
        render_mode="rgb_array",
    )
    env.reset(seed=seed)
    pictures: list[np.ndarray] = [env.render()]
    info: dict[str, Any] = {}
    for action in actions:
        *_, info = env.step(action)
        pictures.append(env.render())
    total = float(scalar_return(task, env.episode.total))
    env.close()
    return Scene(pictures, total, info.get("end_reason", "the time limit is reached"))


def side_by_side(task: Task[Any, Any], scenes: Mapping[str, Scene], max_pictures: int) -> Video:
    """Put the scenes of several players beside each other, each below its name.

    Its last picture stays.

    Args:
        task: the task, whose period sets the pace.
        scenes: scene of each player, by its name.
        max_pictures: most pictures of the video; of a longer episode every second, third ... step
            is shown.
    """
    longest = max(len(scene.pictures) for scene in scenes.values())
    stride = math.ceil(longest / max_pictures)
    steps = [*range(0, longest, stride)]
    if steps[-1] != longest - 1:
        steps.append(longest - 1)
    pace = frame_rate(task.period)
    scale = pace["time_scale"]
    pictures = [_picture(scenes, step) for step in steps]
    return Video(pictures, pace["render_fps"], None if scale is None else scale * stride)


def _picture(scenes: Mapping[str, Scene], step: int) -> Image.Image:
    """Draw all players at a step."""
    panels = [
        Image.fromarray(scene.pictures[min(step, len(scene.pictures) - 1)])
        for scene in scenes.values()
    ]
    width = sum(panel.width for panel in panels)
    height = CAPTION + max(panel.height for panel in panels)
    # Video codecs take even numbers of pixels only.
    image = Image.new("RGB", (width + width % 2, height + height % 2), "white")
    pen, panel_left = ImageDraw.Draw(image), 0
    for panel, (name, player_scene) in zip(panels, scenes.items(), strict=True):
        last = len(player_scene.pictures) - 1
        caption = (
            f"{name}, step {min(step, last)}"
            if step < last
            else f"{name}, return {player_scene.total:.4g}"
        )
        pen.text((panel_left + 4, 3), caption, "black")
        image.paste(panel, (panel_left, CAPTION))
        panel_left += panel.width
    return image


def write(path: Path, video: Video) -> Video:
    """Write a video in the format of the path's suffix, and return it with its pace.

    Raises:
        ValueError: another suffix.
        ImportError: an MP4 needs the extra ``video``.
        CannotWrite: the system refused.
    """
    check_suffix(path)
    if path.suffix == ".gif" and video.fps > GIF_FPS:
        scale = video.time_scale
        video = video._replace(
            fps=GIF_FPS, time_scale=None if scale is None else scale * GIF_FPS / video.fps
        )
    with writing(path), replacing(path) as unfinished:
        if path.suffix == ".mp4":
            _write_mp4(unfinished, video)
        else:
            _write_moving_picture(unfinished, path.suffix, video)
    return video


def check_suffix(path: Path) -> None:
    """Refuse a file that is no video, before an episode is played for it.

    Raises:
        ValueError: the suffix is another.
        ImportError: an MP4 needs the extra ``video``.
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(
            f"A video is a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file, got {path.name!r}."
        )
    if path.suffix == ".mp4":
        try:
            import imageio_ffmpeg  # noqa: F401
        except ImportError as error:
            raise ImportError(
                "An .mp4 file needs ffmpeg: pip install 'rlbench-suite[video]'. A .gif or .webp "
                "file needs nothing."
            ) from error


def _write_moving_picture(path: Path, suffix: str, video: Video) -> None:
    pause = round(1000 / video.fps)
    durations = [pause] * (len(video.pictures) - 1) + [pause + 1000 * LAST_SECONDS]
    frames = video.pictures
    if suffix == ".gif":
        # An octree: a median cut gives all its colours to the background and none to what is small.
        frames = [picture.quantize(128, Image.Quantize.FASTOCTREE) for picture in frames]
    frames[0].save(
        path,
        suffix[1:].upper(),
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
    )


def _write_mp4(path: Path, video: Video) -> None:
    import imageio_ffmpeg

    writer = imageio_ffmpeg.write_frames(
        str(path),
        video.pictures[0].size,
        fps=video.fps,
        macro_block_size=1,
        output_params=["-f", "mp4"],  # the unfinished file has another suffix
    )
    with warnings.catch_warnings():
        # JAX warns of a fork. This one becomes ffmpeg at once, and never runs JAX.
        warnings.simplefilter("ignore", RuntimeWarning)
        writer.send(None)
    for picture in [*video.pictures, *[video.pictures[-1]] * (video.fps * LAST_SECONDS)]:
        writer.send(np.ascontiguousarray(picture))
    writer.close()

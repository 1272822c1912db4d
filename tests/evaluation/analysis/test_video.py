"""Videos: their pace, their pictures, and that they show what a run has trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from PIL import Image
from typer.testing import CliRunner

from rlbench_suite.adapters.frame_rate import frame_rate, pace_in_words
from rlbench_suite.cli.evaluate import app as evaluate
from rlbench_suite.cli.suite import app
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.analysis.video import SUFFIXES, Scene, side_by_side, write

TASK = "DeepSeaTreasure-v0"


@pytest.mark.parametrize(
    ("period", "fps", "scale", "words"),
    [
        (1.0, 1, 1.0, "real time"),
        (2.0, 1, 2.0, "2 times faster"),
        (0.05, 20, 1.0, "real time"),
        (0.01, 60, 0.6, "slow motion, 1.67 times slower"),
        (1e-4, 60, 0.006, "slow motion, 167 times slower"),
        (0.0, 4, None, "without a duration"),
    ],
)
def test_the_pace_follows_the_period(
    period: float, fps: int, scale: float | None, words: str
) -> None:
    assert frame_rate(period) == {"render_fps": fps, "time_scale": scale}
    assert words in pace_in_words(scale)


@pytest.mark.every_id
def test_every_environment_says_its_pace(card: TaskCard) -> None:
    env = gymnasium.make(card.id)
    period = env.unwrapped.task.period
    fps, scale = env.metadata["render_fps"], env.metadata["time_scale"]
    assert 1 <= fps <= 60
    assert scale == (pytest.approx(fps * period, rel=0.01) if period else None)
    if 1 / 60 <= period <= 1:
        assert 0.7 < scale < 1.3
    if card.agents > 1:
        assert pettingzoo.make("parallel", card.id).metadata["render_fps"] == fps
    if not card.host:
        assert gymnasium.make_vec(card.id, 2).metadata["render_fps"] == fps


def two_scenes() -> dict[str, Scene]:
    rng = np.random.default_rng(0)
    short, long = (
        [rng.integers(0, 255, (31, 41, 3), np.uint8) for _ in range(count)] for count in (4, 10)
    )
    return {"mine": Scene(short, 1.5, "fell"), "reference": Scene(long, 2.5, "done")}


def test_players_stand_side_by_side_until_the_longest_is_over() -> None:
    task = find_card("PMSMCurrent-v0").build()
    video = side_by_side(task, two_scenes(), 100)
    assert len(video.pictures) == 10
    # Codecs take even numbers only.
    assert all(picture.size == (82, 50) for picture in video.pictures)
    shortened = side_by_side(task, two_scenes(), 4)
    assert len(shortened.pictures) == 4
    assert video.time_scale
    assert shortened.time_scale == pytest.approx(3 * video.time_scale)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_is_written_whole(tmp_path: Path, suffix: str) -> None:
    if suffix == ".mp4":
        ffmpeg: Any = pytest.importorskip("imageio_ffmpeg")
    video = write(
        tmp_path / f"a{suffix}",
        side_by_side(find_card("PMSMCurrent-v0").build(), two_scenes(), 100),
    )
    assert [file.name for file in tmp_path.iterdir()] == [f"a{suffix}"]
    if suffix == ".mp4":
        frames = ffmpeg.read_frames(str(tmp_path / "a.mp4"))
        header = next(frames)
        assert (header["fps"], header["size"]) == (60, (82, 50))
        assert sum(1 for _ in frames) == 10 + 60  # the last picture stays for a second
        return
    with Image.open(tmp_path / f"a{suffix}") as moving:
        assert moving.n_frames == 10
        assert moving.size == (82, 50)
    assert video.fps == (50 if suffix == ".gif" else 60)  # viewers slow down faster GIFs


def test_the_commands_show_what_a_run_has_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    run = [
        "--agent",
        "noop",
        "--suite",
        TASK,
        "--budget",
        "smoke",
        "--seeds",
        "1",
        "--workers",
        "0",
        "--out",
        "run",
    ]
    assert runner.invoke(evaluate, run).exit_code == 0
    video_run = runner.invoke(app, ["video", "--run", "run", "noop", "--out", "a.gif"])
    assert video_run.exit_code == 0, video_run.output
    assert "noop: " in video_run.output
    assert "reference: " in video_run.output
    assert "steps without a duration" in video_run.output
    with Image.open("a.gif") as moving:
        single = gymnasium.make(f"rlsuite/{TASK}", render_mode="rgb_array")
        single.reset(seed=0)
        assert moving.width == 2 * np.shape(single.render())[1]  # both players
    play_run = runner.invoke(app, ["play", "--run", "run", "noop", "--seed", "1"])
    assert play_run.exit_code == 0, play_run.output
    assert "Over: " in play_run.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Name one player"),
        ([TASK], "Name one player"),
        (["--reference"], "Name a task"),
        ([TASK, "--reference", "--out", "a.avi"], ".mp4, .gif or .webp"),
        ([TASK, "--reference", "--pictures", "1"], "--pictures must be at least 2"),
        (["--run", "nowhere", "ppo"], "nowhere"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["video", *arguments])
    assert sentence in f"{result.exception}"

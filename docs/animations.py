"""Draw an episode of every task's reference player, and keep the pictures in the user's cache.

Several processes draw at once.

The comment of a GIF is the transcript of its episode.

An animation is drawn again when its key changes. The key is a hash of the card, of the source files
that play and draw the task, of the data beside them, and of the versions of the libraries that
compute and draw. The cache lies beside the banks of puzzles (``RLSUITE_CACHE``).
"""

from __future__ import annotations

import ast
import hashlib
import io
import logging
import multiprocessing
import os
import site
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from PIL import Image
from reference_episode import RecordedEpisode, reference_episode

from rlbench_suite.cli import prepare_jax
from rlbench_suite.core import registry
from rlbench_suite.core.task_card import ONE_SHOT_FILE, SCORES_FILE, TaskCard
from rlbench_suite.foundation.atomic_files import replacing
from rlbench_suite.foundation.cache_folder import cache_folder

PACKAGE = "rlbench_suite"
MAX_STEPS = 400
"""Steps of an episode after which it is cut off."""
MAX_FRAMES = 40
"""Pictures of an animation."""
PLAY_MILLISECONDS = 5000
"""Time that an animation plays."""
FIRST_TURNS = 3
"""First turns in a transcript, besides the last one."""
MAX_CHARACTERS = 1500
"""Characters of one text in a transcript."""
MAX_CACHED = 4
"""Animations of one id that stay in the cache.

A change of branch then does not draw all of them again.
"""
SCORES = (SCORES_FILE, ONE_SHOT_FILE)
PLAYING = Path(__file__).with_name("reference_episode.py")
LIBRARIES = ("jaxlib", "numpy", "pillow", "mujoco", "pybullet")
log = logging.getLogger(f"mkdocs.plugins.{__name__}")


def animations(cards: Collection[TaskCard]) -> dict[str, bytes]:
    """Return the GIF of each card by id.

    Those that the cache lacks are drawn, and the log counts them.

    Raises:
        RuntimeError: an animation failed; the message names the id.
    """
    paths = {
        card.id: cache_folder() / "animations" / f"{card.name}-{key(card)}.gif" for card in cards
    }
    gifs = {card.id: path.read_bytes() for card in cards if (path := paths[card.id]).exists()}
    missing = [card.id for card in cards if card.id not in gifs]
    if missing:
        log.info(
            f"Drawing {len(missing)} animations; {len(gifs)} of {len(paths)} are in "
            f"{cache_folder()}"
        )
    start_time = time.monotonic()
    for count, (task_id, gif) in enumerate(_draw_all(missing), start=1):
        gifs[task_id] = gif
        _keep(paths[task_id], gif)
        if len(gifs) % 10 == 0 or count == len(missing):
            left = time_left(time.monotonic() - start_time, count, len(missing))
            log.info(f"{len(gifs)} of {len(paths)} animations are drawn{left}")
    return gifs


def time_left(seconds: float, done: int, count: int) -> str:
    """Say how long the rest takes if it goes on as in these seconds; nothing if all is done."""
    if done == count:
        return ""
    minutes = seconds / done * (count - done) / 60
    return f", about {minutes:.0f} min left" if minutes >= 1 else ", less than a minute left"


def _draw_all(task_ids: list[str]) -> Iterator[tuple[str, bytes]]:
    """Draw animations in as many processes as there are cores, and yield them as they finish."""
    if not task_ids:
        return
    prepare_jax()  # compiled programs are kept in the user's cache, too
    spawn = multiprocessing.get_context("spawn")  # a fork of a process that has run JAX would hang
    here = str(Path(__file__).parent)  # on MkDocs' path only while it imports its hooks
    with ProcessPoolExecutor(
        min(len(task_ids), os.cpu_count() or 1), spawn, site.addsitedir, (here,)
    ) as pool:
        futures = {pool.submit(animation, task_id): task_id for task_id in task_ids}
        for future in as_completed(futures):
            if error := future.exception():
                pool.shutdown(cancel_futures=True)
                raise RuntimeError(f"No animation of {futures[future]}: {error}") from error
            yield futures[future], future.result()


def _keep(path: Path, gif: bytes) -> None:
    """Put an animation into the cache. A cache that cannot be written is no error."""
    try:
        with replacing(path) as unfinished:
            unfinished.write_bytes(gif)
        name = path.name.rpartition("-")[0]
        for old in sorted(path.parent.glob(f"{name}-*.gif"), key=lambda file: file.stat().st_mtime)[
            :-MAX_CACHED
        ]:
            old.unlink()
    except OSError:
        pass


def animation(task_id: str) -> bytes:
    """Return a test episode of the reference player as a GIF of at most ``MAX_FRAMES`` pictures."""
    card = registry.card(task_id)
    episode = reference_episode(card, min(card.horizon, MAX_STEPS))
    params, states, *_ = episode
    task = card.build()
    shown_states = [
        states[i] for i in np.unique(np.linspace(0, len(states) - 1, MAX_FRAMES).astype(int))
    ]
    trail: list[Any] = []
    pictures = (Image.fromarray(task.draw_next(state, params, trail)) for state in shown_states)
    # An octree: a median cut gives all its colours to the background and none to what is small.
    frames = [picture.quantize(128, Image.Quantize.FASTOCTREE) for picture in pictures]
    buffer = io.BytesIO()
    pace = PLAY_MILLISECONDS // len(frames)
    comment = write_transcript(task, episode).encode()
    frames[0].save(
        buffer,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=pace,
        loop=0,
        comment=comment,
    )
    return buffer.getvalue()


def write_transcript(task: Any, episode: RecordedEpisode) -> str:
    """Return the transcript of an episode as a text player meets it: first turns and last."""
    params, states, actions, why = episode

    def shorten(text: str) -> str:
        return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS].rstrip()}\n..."

    lines = [
        shorten(task.rules()),
        task.how_to_act(),
        "",
        shorten(task.describe_turn(None, states[0], params)),
    ]
    turns = [
        *range(min(FIRST_TURNS, len(actions))),
        *range(max(FIRST_TURNS, len(actions) - 1), len(actions)),
    ]
    for turn in turns:
        if turn > FIRST_TURNS:
            lines += ["", f"... ({turn - FIRST_TURNS} turns later)"]
        reply = task.spell(actions[turn], states[turn], params)
        lines += [
            "",
            f"> {reply}",
            "",
            shorten(task.describe_turn(states[turn], states[turn + 1], params)),
        ]
    return "\n".join([*lines, *([f"The episode is over: {why}."] if why else [])])


def transcript(gif: bytes) -> str:
    """Return the transcript in an animation."""
    with Image.open(io.BytesIO(gif)) as moving:
        comment: bytes = moving.info["comment"]
    return comment.decode()


def still(gif: bytes) -> bytes:
    """Return the last picture of an animation as a PNG."""
    with Image.open(io.BytesIO(gif)) as moving:
        moving.seek(moving.n_frames - 1)
        buffer = io.BytesIO()
        moving.convert("RGB").quantize(64, Image.Quantize.FASTOCTREE).save(
            buffer, "PNG", optimize=True
        )
    return buffer.getvalue()


def key(card: TaskCard) -> str:
    """Return a hash of everything that the animation of a card depends on."""
    task = {name.split(":")[0] for name in (card.entry_point, card.reference, card.puzzle) if name}
    engine = _imported_names(PLAYING, "")
    if card.host:  # gymnasium.make loads its environment by a name
        engine |= {str(gymnasium.spec(card.id).entry_point).split(":")[0]}
    files = {Path(__file__), PLAYING}.union(*map(_sources, task | engine))
    for folder in {source.parent for module in task for source in _sources(module)}:
        files |= {
            file
            for file in folder.iterdir()
            if file.suffix not in ("", ".py") and file.name not in SCORES
        }
    hashed = hashlib.sha256(repr((card, _versions())).encode())
    for file in sorted(files):
        hashed.update(file.name.encode() + _digest(file))
    return hashed.hexdigest()[:16]


@cache
def _sources(module: str) -> frozenset[Path]:
    """Find the files of a module and of every module of the suite that it imports, directly or not.

    It runs none.
    """
    files: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in files and (file := _file(name)):
            files[name] = file
            waiting += _imported_names(
                file, name if file.name == "__init__.py" else name.rpartition(".")[0]
            )
    return frozenset(files.values())


@cache
def _imported_names(file: Path, package: str) -> frozenset[str]:
    """Find every name in a file's import statements that may be a module of the suite."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = (
                resolve_name("." * node.level + (node.module or ""), package)
                if node.level
                else node.module or ""
            )
            names = [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
        else:
            continue
        modules |= {name for name in names if name.startswith(PACKAGE)}
    return frozenset(modules)


@cache
def _file(module: str) -> Path | None:
    """Return the file of a module; None if there is no module of that name."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a function or class of a module
        return None
    return Path(spec.origin) if spec and spec.origin else None


@cache
def _digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


@cache
def _versions() -> dict[str, str]:
    """Return the installed version of each library that computes or draws."""
    versions = {}
    for library in LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    return versions

"""Give Gymnasium the entry points of every id.

:func:`make` runs one episode at a time, :func:`make_vec` many.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import gymnasium

from rlbench_suite.adapters.batch import TaskVectorEnv
from rlbench_suite.adapters.host import HostEnv, HostPixelEnv, HostTextEnv, HostVectorEnv
from rlbench_suite.adapters.task_env import PixelEnv, TaskEnv
from rlbench_suite.adapters.text import TextEnv
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.foundation.unknown_names import UnknownKeyword, unexpected, unknown

VIEWS: dict[str, type[TaskEnv]] = {"structured": TaskEnv, "text": TextEnv, "pixels": PixelEnv}
HOST_VIEWS: dict[str, type[TaskEnv]] = {
    "structured": HostEnv,
    "text": HostTextEnv,
    "pixels": HostPixelEnv,
}


def make(
    task_id: str,
    *,
    split: str | int = "train",
    difficulty: str | float | None = None,
    view: str = "structured",
    dtype: str = "float32",
    render_mode: str | None = None,
    weights: Sequence[float] | None = None,
    **settings: Any,
) -> TaskEnv:
    """Make an environment of an id; ``gymnasium.make`` calls this function.

    Args:
        task_id: id of a card.
        split: ``"train"``, ``"test"``, or the number of one training context.
        difficulty: a tier's name or the number that defines it.
        view: ``"structured"``, ``"text"`` or ``"pixels"``; the same instance in each.
        dtype: ``"float32"`` or ``"float64"``.
        render_mode: ``"rgb_array"`` or ``"ansi"`` (Gymnasium makes ``"human"`` of the first).
        weights: one number for each objective of a multi-objective task: rewards are then the
            weighted sum, a float, and ``info["vector_reward"]`` has the vector. ``info["score"]``
            stays that of the card's own weights.
        settings: settings of the card that differ from those of the id, such as
            ``control="finite"`` or ``supply="rc"`` of a drive; ``context``, a mapping or a file of
            constants (:mod:`rlbench_suite.contexts.context`); ``agents``, a number of agents, where
            the card has a range of them; ``objectives="several"``, which shows the reward as
            several objectives (:mod:`rlbench_suite.core.objectives`).

    Raises:
        ValueError: a value is unknown, or has no meaning for this task.
    """
    task = find_card(task_id, **settings).build(difficulty=difficulty, dtype=dtype)
    views = HOST_VIEWS if task.card.host else VIEWS
    if view not in views:
        raise ValueError(unknown("view", view, views))
    return views[view](task, split, render_mode, weights)


make.metadata = TaskEnv.metadata  # type: ignore[attr-defined]  # by which gymnasium.make knows to open a window for "human"


def make_vec(
    task_id: str, num_envs: int = 1, **keywords: Any
) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """Make a vector environment of an id.

    It is a :class:`TaskVectorEnv`, or its counterpart for host simulators.

    ``keywords`` are those of that class, and the settings of the card as ``gymnasium.make`` takes
    them.

    Raises:
        ValueError: no such keyword, or a value that is unknown or out of range.
    """
    card = find_card(task_id)
    view = keywords.pop("view", "structured")
    if view != "structured":
        raise UnknownKeyword(
            f"{card.id} in a batch has the structured view only, got view={view!r}. Make single "
            "environments with gymnasium.make, or put them side by side with make_vec(..., "
            "vectorization_mode='sync')."
        )
    parameters = [*inspect.signature(TaskVectorEnv).parameters]
    settings = [
        *card.settings, "context", "objectives", *(["agents"] if card.agent_range else []),
    ]  # fmt: skip
    for name in keywords:
        if name not in parameters + settings:
            raise unexpected(card.id, name, parameters + settings)
    card = find_card(task_id, **{name: keywords.pop(name) for name in settings if name in keywords})
    return (HostVectorEnv if card.host else TaskVectorEnv)(card.id, num_envs, **keywords)

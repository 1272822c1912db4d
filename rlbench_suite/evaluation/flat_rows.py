"""Spaces of tasks as tables of numbers, as policies of other libraries and machines take them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.component import Signal
from rlbench_suite.core.task import Task


class FlatRows:
    """Observations and actions of a task as tables with a row for each agent of each environment.

    Raises:
        CannotPlay: a space of the task has no place in the signature.
    """

    def __init__(self, task: Task[Any, Any]) -> None:
        self.task_id, self.agents, self.space = task.card.id, task.card.agents, task.action_space
        space = task.observation_space
        boxes: list[Any] = (
            [space[name] for name in sorted(space)] if isinstance(space, spaces.Dict) else [space]
        )
        for box in boxes:
            if not isinstance(box, spaces.Box) or (
                self.agents > 1 and box.shape[:1] != (self.agents,)
            ):
                raise CannotPlay(
                    f"onnx reads a Box or a Dict of Boxes with one row for each agent, not {box}."
                )
        self._names = sorted(space) if isinstance(space, spaces.Dict) else None
        self._shapes = [box.shape for box in boxes]
        self.features = sum(math.prod(box.shape) for box in boxes) // self.agents
        self.choices: tuple[int, ...] = ()
        match self.space:
            case spaces.Discrete(start=0, n=n):
                sizes = [int(n)]
            case spaces.MultiDiscrete(nvec=nvec, start=start) if not np.any(start):
                sizes = np.ravel(nvec).tolist()
            case spaces.Box():
                sizes = []
            case unplayable:
                raise CannotPlay(
                    "onnx plays Box and zero-based Discrete and MultiDiscrete actions, not "
                    f"{unplayable}."
                )
        if sizes:
            by_agent = np.reshape(sizes, (self.agents, -1))
            if not (by_agent == by_agent[0]).all():
                raise CannotPlay(
                    "With onnx all agents share one policy, so they need equal actions, not "
                    f"{self.space}."
                )
            self.choices = tuple(by_agent[0].tolist())
        self.numbers = len(self.choices) or math.prod(self.space.shape or ()) // self.agents
        self.outputs = sum(self.choices)
        self.answers = ("action", "logits") if self.choices else ("action", "mean")

    def zeros(self, count: int) -> Any:
        """Return observations of ``count`` environments, all zeros."""
        if self._names is None:
            return np.zeros((count, *self._shapes[0]), np.float32)
        shapes_by_name = zip(self._names, self._shapes, strict=True)
        return {name: np.zeros((count, *shape), np.float32) for name, shape in shapes_by_name}

    def observe(self, observations: Any) -> np.ndarray:
        """Return observations as a table, float32."""
        parts_of_observation = (
            [observations] if self._names is None else [observations[name] for name in self._names]
        )
        count = len(parts_of_observation[0]) * self.agents
        return np.concatenate(
            [np.asarray(values, np.float32).reshape(count, -1) for values in parts_of_observation],
            -1,
        )

    def mask(self, masks: np.ndarray | None) -> np.ndarray | None:
        """Return the masks of legal actions as a table; None if every action is legal."""
        return None if masks is None else np.asarray(masks, bool).reshape(-1, self.outputs)

    def choose(self, kind: str, answer: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        """Return the actions of all environments that a table of answers means."""
        if kind == "logits":
            legal = answer if mask is None else np.where(mask, answer, -np.inf)
            logits_by_choice = np.split(legal, np.cumsum(self.choices)[:-1], axis=1)
            answer = np.stack([logits.argmax(1) for logits in logits_by_choice], axis=1)
        actions = answer.reshape(-1, *(self.space.shape or ()))
        if isinstance(self.space, spaces.Box):
            actions = np.clip(actions, self.space.low, self.space.high)
        return actions.astype(self.space.dtype)


def entry_scales(task: Task[Any, Any], side: str, count: int) -> np.ndarray:
    """Return the quantity that the value 1 of each entry stands for, ``(count,)``.

    It is one where the task names none.

    Args:
        task: the task.
        side: ``observation`` or ``action``.
        count: number of entries.
    """
    signals = observed_signals(task) if side == "observation" else task.signals.get(side, ())
    scales = [np.full(len(signal.columns()), signal.scale) for signal in signals]
    return np.concatenate(scales) if scales else np.ones(count)


def observed_signals(task: Task[Any, Any]) -> tuple[Signal, ...]:
    """Return the signals of an observation in the order of its row.

    Those of a ``Dict`` follow the names of its spaces.
    """
    signals: tuple[Signal, ...] = task.signals.get("observation", ())
    if isinstance(task.observation_space, spaces.Dict):
        return tuple(sorted(signals, key=lambda signal: signal.name.split(".", 1)[0]))
    return signals

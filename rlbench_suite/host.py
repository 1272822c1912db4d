"""The contract of a task that a simulator of the host computes, where pure functions are out of reach (MuJoCo).

Such a task is a factory of ordinary Gymnasium environments plus what the suite asks of every task: a card, spaces,
words and pictures, and a state that is a value. ``adapters/host.py`` gives it the same face as all others.
"""

from __future__ import annotations

import abc
from typing import Any, Generic, TypeVar

import gymnasium
import numpy as np

from rlbench_suite.episode import Draw
from rlbench_suite.task import Described

State = TypeVar("State")


class HostTask(Described, Generic[State]):
    """A task computed on the host.

    By default episodes are Gymnasium's own: their context is ``()``, and they differ by what the simulator's seed
    draws. A task with contexts has ``begin`` and ``get_params`` of its own.
    """

    @abc.abstractmethod
    def simulator(self) -> gymnasium.Env[Any, Any]:
        """A new simulator without any wrapper: scalar reward, no time limit, seeded by ``reset(seed=...)``.

        Raises:
            ImportError: the simulator's package is not installed; the message names the extra.
        """

    def begin(
        self, simulator: gymnasium.Env[Any, Any], seed: int | None, key: np.ndarray, index: int, draw: Draw
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            simulator: from :meth:`simulator`.
            seed: of a first episode; None for the one that follows in the simulator.
            key: key data of the seed, also where ``seed`` is None.
            index: number of the episode since seeding.
            draw: where its context comes from.

        Returns:
            The first observation, and what :meth:`info` is given.
        """
        return simulator.reset(seed=seed)

    @abc.abstractmethod
    def info(self, simulator: gymnasium.Env[Any, Any], told: dict[str, Any]) -> dict[str, Any]:
        """``success`` (bool) and the task's measures (Python numbers), from what the last step told."""

    @abc.abstractmethod
    def get_state(self, simulator: gymnasium.Env[Any, Any]) -> State:
        """All that the future depends on beside the context, as a value."""

    def get_params(self, simulator: gymnasium.Env[Any, Any]) -> Any:
        """The context of the episode, as a value; ``()`` where there is none."""
        return ()

    @abc.abstractmethod
    def set_state(self, simulator: gymnasium.Env[Any, Any], state: State, params: Any) -> None:
        """Put the simulator into a state and its context."""

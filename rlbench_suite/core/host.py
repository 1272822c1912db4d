"""Define the contract of a task that a simulator of the host computes.

MuJoCo is such a simulator, which pure functions cannot replace.

Such a task makes ordinary Gymnasium environments. Like every task of the suite, it has a card,
spaces, text and pictures, and a state that is a value. ``adapters/host.py`` gives it the same
interfaces as all others.
"""

from __future__ import annotations

import abc
from typing import Any, Generic, TypeVar

import gymnasium
import numpy as np

from rlbench_suite.core.episode import ContextSource
from rlbench_suite.core.task import Described

State = TypeVar("State")


class HostTask(Described, Generic[State]):
    """A task computed on the host.

    By default episodes are Gymnasium's own: their context is ``()``, and the simulator's seed makes
    them differ. A task with contexts overrides ``begin`` and ``get_params``.
    """

    @abc.abstractmethod
    def simulator(self) -> gymnasium.Env[Any, Any]:
        """Make a simulator without any wrapper.

        It has a scalar reward and no time limit, and is seeded by ``reset(seed=...)``.

        Raises:
            ImportError: the simulator's package is not installed; the message names the extra.
        """

    def begin(
        self,
        simulator: gymnasium.Env[Any, Any],
        seed: int | None,
        key: np.ndarray,
        index: int,
        source: ContextSource,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            simulator: from :meth:`simulator`.
            seed: seed of a first episode; None for the next episode of the simulator.
            key: key data of the last seed, also where ``seed`` is None.
            index: number of the episode since seeding.
            source: source of its context.

        Returns:
            The first observation, and the argument ``simulator_info`` of :meth:`info`.
        """
        return simulator.reset(seed=seed)

    @abc.abstractmethod
    def info(
        self, simulator: gymnasium.Env[Any, Any], simulator_info: dict[str, Any]
    ) -> dict[str, Any]:
        """Return ``success`` (bool) and the task's measures (Python numbers).

        They are read from the simulator's last info.
        """

    @abc.abstractmethod
    def get_state(self, simulator: gymnasium.Env[Any, Any]) -> State:
        """Return everything besides the context on which future steps depend, as a value."""

    def get_params(self, simulator: gymnasium.Env[Any, Any]) -> Any:
        """Return the context of the episode, as a value; ``()`` if there is none."""
        return ()

    @abc.abstractmethod
    def set_state(self, simulator: gymnasium.Env[Any, Any], state: State, params: Any) -> None:
        """Put the simulator into a state and its context."""

"""The contract of a task that a simulator of the host computes, where pure functions are out of reach (MuJoCo).

Such a task is a factory of ordinary Gymnasium environments plus what the suite asks of every task: a card, spaces,
words and pictures, and a state that is a value. ``adapters/host.py`` gives it the same face as all others.
"""

from __future__ import annotations

import abc
from typing import Any, Generic, TypeVar

import gymnasium

from rlbench_suite.task import Described

State = TypeVar("State")


class HostTask(Described, Generic[State]):
    """A task computed on the host. Its context is ``()``: an instance differs by its seed only."""

    @abc.abstractmethod
    def simulator(self) -> gymnasium.Env[Any, Any]:
        """A new simulator without any wrapper: scalar reward, no time limit, seeded by ``reset(seed=...)``.

        Raises:
            ImportError: the simulator's package is not installed; the message names the extra.
        """

    @abc.abstractmethod
    def info(self, simulator: gymnasium.Env[Any, Any], told: dict[str, Any]) -> dict[str, Any]:
        """``success`` (bool) and the task's measures (Python numbers), from what the last step told."""

    @abc.abstractmethod
    def get_state(self, simulator: gymnasium.Env[Any, Any]) -> State:
        """All that the future depends on, as a value."""

    @abc.abstractmethod
    def set_state(self, simulator: gymnasium.Env[Any, Any], state: State) -> None:
        """Put the simulator into a state."""

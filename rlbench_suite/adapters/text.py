"""The text view: the same instance as strings, for language models and people."""

from __future__ import annotations

import string
from typing import Any, SupportsFloat

import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.single import TaskEnv
from rlbench_suite.task import Task

LONGEST_OBSERVATION = 20_000
LONGEST_ACTION = 4_000
CHARACTERS = frozenset(string.printable)


class PrintableText(spaces.Text):
    """A ``Text`` space over printable ASCII; its samples are short, and the empty string is in it."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length, min_length=0, charset=CHARACTERS)


class TextEnv(TaskEnv):
    """A task in words. A text that is no action wastes the turn: the state stays, ``info`` and the answer say why.

    The time limit counts wasted turns too. With ``AsyncVectorEnv`` pass ``shared_memory=False``: Gymnasium 1.4
    returns stale strings for ``Text`` spaces in shared memory.
    """

    def __init__(self, task: Task[Any, Any], *args: Any, **keywords: Any) -> None:
        super().__init__(task, *args, **keywords)
        self.observation_space = PrintableText(LONGEST_OBSERVATION)
        self.action_space = PrintableText(LONGEST_ACTION)

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """One turn.

        Raises:
            TypeError: the action is not a string.
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if not isinstance(action, str):
            raise TypeError(f"The text view takes a string, got {type(action).__name__}: {action!r}.")
        try:
            parsed = self.task.parse(action[:LONGEST_ACTION], self.state, self.params)
        except ValueError as error:
            reason = str(error)[:500].encode("ascii", "backslashreplace").decode()
            observation = self.task.describe(self.state, self.params) + f"\nNot understood: {reason}"
            nothing: Any = np.zeros_like(self.reward_space.low) if self.reward_space.shape else 0.0
            info = {"success": False, "invalid_action": True, "invalid_reason": reason}
            return observation, nothing, False, False, info
        observation, reward, terminated, truncated, info = super().step(parsed)
        if "invalid_reason" in info:
            observation += f"\nNot allowed: {info['invalid_reason']}"
        return observation, reward, terminated, truncated, info

    def _show(self) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        _, *rest = super()._show()
        observation = self.task.describe(self.state, self.params) + "\n" + self.task.how_to_act()
        return observation, *rest

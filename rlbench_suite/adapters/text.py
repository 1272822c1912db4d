"""The text view: the same instance as strings, for language models and people."""

from __future__ import annotations

import string
from typing import Any, SupportsFloat

import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.action_check import FEW
from rlbench_suite.adapters.single import TaskEnv
from rlbench_suite.task import Task

LONGEST_OBSERVATION = 20_000
LONGEST_ACTION = 4_000
CHARACTERS = frozenset(string.printable)


class PrintableText(spaces.Text):
    """A ``Text`` space over printable ASCII; its samples are short, and the empty string is in it."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length, min_length=0, charset=CHARACTERS)


def _spelt(action: np.ndarray) -> str:
    """Return an action in brackets, or an empty text if it is long."""
    return f" ({' '.join(map(str, np.ravel(action).tolist()))})" if np.size(action) <= FEW else ""


class TextEnv(TaskEnv):
    """A task with text observations and actions.

    A reply that is no action is played as the task's ``noop_action``: time passes, costs accrue, the world moves. The
    episode is, to the bit, that of the structured view with this action in its place. ``info["invalid_action"]`` is
    then true; ``info["invalid_reason"]`` and the observation say what was not understood.

    With ``AsyncVectorEnv`` pass ``shared_memory=False``: Gymnasium 1.4 returns stale strings for ``Text`` spaces in
    shared memory.
    """

    def __init__(self, task: Task[Any, Any], *args: Any, **keywords: Any) -> None:
        super().__init__(task, *args, **keywords)
        self.observation_space = PrintableText(LONGEST_OBSERVATION)
        self.action_space = PrintableText(LONGEST_ACTION)

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play one turn.

        Raises:
            TypeError: the action is not a string.
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if not isinstance(action, str):
            raise TypeError(f"The text view takes a string, got {type(action).__name__}: {action!r}.")
        refusal = None
        try:
            played = self._read_reply(action)
        except (ValueError, TypeError) as error:
            played = self.task.noop_action()
            refusal = str(error)[:500].encode("ascii", "backslashreplace").decode()
        observation, reward, terminated, truncated, info = super().step(played)
        if refusal is not None:
            info |= {"invalid_action": True, "invalid_reason": refusal}
            observation += f"\nNot understood: {refusal}\nThe no-op action was played instead{_spelt(played)}."
        elif "invalid_reason" in info:
            observation += f"\nNot allowed: {info['invalid_reason']}"
        return observation, reward, terminated, truncated, info

    def _read_reply(self, reply: str) -> np.ndarray:
        """Read an action from a whole reply.

        Raises:
            ValueError, TypeError: the reply is no action, or one outside the action space.
        """
        if len(reply) > LONGEST_ACTION:
            raise ValueError(f"expected at most {LONGEST_ACTION} characters, got {len(reply)}")
        if odd := sorted(set(reply) - CHARACTERS):
            raise ValueError(f"expected printable ASCII characters, got {odd[0]!r}")
        return self._check_action(self.task.parse(reply, self.state, self.params))

    def _show(self) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        _, *rest = super()._show()
        observation = self.task.describe(self.state, self.params) + "\n" + self.task.how_to_act()
        return observation, *rest

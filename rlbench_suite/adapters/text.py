"""The text view: the same instance as strings, for language models and people."""

from __future__ import annotations

import string
from typing import Any, SupportsFloat

import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.task import Task

MAX_OBSERVATION_CHARACTERS = 40_000
MAX_ACTION_CHARACTERS = 4_000
MAX_SPELLED = 8
"""Largest number of values of an action that a remark spells."""
CHARACTERS = frozenset(string.printable)
TAGS = (("<action>", "</action>"), ("<tool_call>", "</tool_call>"))
"""Tags around an action in a longer reply.

The second pair is that of models whose server reads no tool calls.
"""


class PrintableText(spaces.Text):
    """A ``Text`` space over printable ASCII.

    Its samples are short, and the empty string is in it.
    """

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length, min_length=0, charset=CHARACTERS)


def action_in(reply: str) -> str:
    """Return the part of a reply that is its action.

    A language model may think and write freely first: everything up to the last ``</think>`` and
    behind a later ``<think>`` is thought and does not count. Then the last ``<action>...</action>``
    counts, or what follows an ``<action>`` that is never closed. Without such tags, all that is not
    thought is the action.
    """
    answer = reply.rpartition("</think>")[2].partition("<think>")[0]
    for opening, closing in TAGS:
        end = answer.rfind(closing)
        start = answer.rfind(opening, 0, max(end, 0))
        if start < 0:
            start = answer.rfind(opening)
            end = len(answer)
        if start >= 0:
            return answer[start + len(opening) : end].strip()
    return answer


SCALE = "0: the best play without skill; 1: the reference player"
"""The scale of scores, in words."""


def why_over(info: dict[str, Any]) -> str:
    """Return the line that says why an episode is over.

    It gives the score where that is known, and says whether the episode cost too much.
    """
    score = f" Score: {info['score']:.2f} ({SCALE})." if "score" in info else ""
    cost = (
        f" It violates the constraint: its cost is {info['cost_so_far']:.4g}."
        if info.get("violates")
        else ""
    )
    return (
        f"The episode is over: {info.get('end_reason', 'the time limit is reached')}.{score}{cost}"
    )


class TextEnv(TaskEnv):
    """A task with text observations and actions.

    A reply is the action alone, or a longer text with the action in tags (:func:`action_in`). A
    reply that is no action is played as the task's ``noop_action``: time passes, costs accrue, the
    world moves. The episode is, to the bit, that of the structured view with this action in its
    place. ``info["invalid_action"]`` is then true, and otherwise false; ``info["invalid_reason"]``
    and the observation say what was not understood.

    With ``AsyncVectorEnv`` pass ``shared_memory=False``: Gymnasium 1.4 returns stale strings for
    ``Text`` spaces in shared memory.

    Attributes:
        remarks: lines that say what was wrong with the last reply; empty if nothing was.
    """

    def __init__(self, task: Task[Any, Any], *args: Any, **keywords: Any) -> None:
        super().__init__(task, *args, **keywords)
        self.observation_space = PrintableText(MAX_OBSERVATION_CHARACTERS)
        self.action_space = PrintableText(MAX_ACTION_CHARACTERS)
        self.remarks: list[str] = []

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play one turn.

        Raises:
            TypeError: the action is not a string.
            gymnasium.error.ResetNeeded: no episode was begun, or it is over.
            RuntimeError: another thread is in this environment.
        """
        if not isinstance(action, str):
            raise TypeError(
                f"The text view takes a string, got {type(action).__name__}: {action!r}."
            )
        with self._one_thread:
            refusal = None
            try:
                valid_action = self._read_reply(action)
            except (ValueError, TypeError) as error:
                valid_action = self.task.noop_action()
                last_episode = self._readable_episode()
                refusal = str(error)[:500].encode("ascii", "backslashreplace").decode()
            observation, reward, terminated, truncated, info = super().step(valid_action)
            info.setdefault("invalid_action", False)
            self.remarks = []
            if refusal is not None:
                if "invalid_reason" in info:
                    instead = "The no-op action was played instead, which changes nothing here."
                elif np.size(valid_action) <= MAX_SPELLED:
                    reply = self.task.spell(valid_action, last_episode.state, last_episode.params)
                    instead = f"The no-op action was played instead: {reply}."
                else:
                    instead = "The no-op action was played instead."
                info |= {"invalid_action": True, "invalid_reason": refusal}
                self.remarks = [f"Not understood: {refusal}", instead]
            elif "invalid_reason" in info:
                self.remarks = [f"Not allowed: {info['invalid_reason']}"]
            last = why_over(info) if terminated or truncated else self.task.how_to_act()
            return (
                "\n".join((observation, *self.remarks, last)),
                reward,
                terminated,
                truncated,
                info,
            )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see :meth:`TaskEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        info.setdefault("invalid_action", False)
        return f"{observation}\n{self.task.how_to_act()}", info

    def reads(self, reply: str) -> bool:
        """Return True if a reply has an action of the action space."""
        try:
            self._read_reply(reply)
        except (ValueError, TypeError):
            return False
        return True

    def _read_reply(self, reply: str) -> np.ndarray:
        """Read an action from a whole reply.

        Raises:
            ValueError, TypeError: the reply has no action, or one outside the action space.
        """
        action = action_in(reply)
        if len(action) > MAX_ACTION_CHARACTERS:
            raise ValueError(
                f"expected at most {MAX_ACTION_CHARACTERS} characters, got {len(action)}"
            )
        if unprintable := sorted(set(action) - CHARACTERS):
            raise ValueError(f"expected printable ASCII characters, got {unprintable[0]!r}")
        episode = self._readable_episode()
        return self._check_action(self.task.parse(action, episode.state, episode.params))

    def _show(self) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        _, *results = super()._show()
        episode = self._readable_episode()
        return self.task.describe(episode.state, episode.params), *results

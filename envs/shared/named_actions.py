"""Discrete actions that have names: how text players choose one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown


class NamedActions:
    """Words for the actions of a task; a base class that comes before ``Task``."""

    #: Names in the order of the actions.
    action_names: ClassVar[tuple[str, ...]]
    #: End of the sentence that lists them.
    rhythm: ClassVar[str] = ""

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Return the action of this name, in any case.

        Raises:
            ValueError: the text is no name.
        """
        words = [name.lower() for name in self.action_names]
        word = text.strip().lower()
        if word not in words:
            raise ValueError(unknown("action", text, self.action_names))
        return np.array(words.index(word))

    def spell(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Return the name of the action."""
        return self.action_names[int(action)]

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"Answer with one of {', '.join(self.action_names)}{self.rhythm}."


class NamedActionsOfAgents:
    """Words for the joint actions of a task; a base class that comes before ``Task``."""

    card: TaskCard
    #: Names in the order of the actions of an agent.
    action_names: ClassVar[tuple[str, ...]]
    #: Name of the agent whose word comes first.
    first_agent: ClassVar[str] = "agent_0"

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Return the actions of these names.

        Raises:
            ValueError: there are not as many as agents, or one is no action.
        """
        words = text.replace(",", " ").lower().split()
        if len(words) != self.card.agents:
            raise ValueError(
                f"expected {self.card.agents} words, each one of {', '.join(self.action_names)}; "
                f"got {text!r}"
            )
        for word in words:
            if word not in self.action_names:
                raise ValueError(unknown("action", word, self.action_names))
        return np.array([self.action_names.index(word) for word in words], np.int32)

    def spell(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Return the names of the actions."""
        return " ".join(self.action_names[int(choice)] for choice in action)

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with {self.card.agents} words, {self.first_agent} first, each one of: "
            f"{', '.join(self.action_names)}."
        )

"""Discrete actions that have names: how text players choose one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

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

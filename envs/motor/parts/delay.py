"""Computation delay: periods that pass before an action is applied."""

from __future__ import annotations

from typing import Any

from rlbench_suite.core.component import Component

from ..machines.frames import Scalar, Values
from .actuator import Voltages
from .part import Part


class NoDelay(Part):
    """Actions are applied at once."""

    def begin(self, electrical: Any, speed: Scalar) -> Any:
        """Return the memory at the start."""
        return ()

    def exchange(self, memory: Any, choice: Any) -> tuple[Any, Any]:
        """Return the action that is applied in this step, and the next memory."""
        return choice, memory


class Delay(NoDelay):
    """Actions are applied one period late, as by digital control.

    The memory is the waiting action.
    """

    def __init__(self, actuator: Voltages) -> None:
        self.actuator = actuator

    def begin(self, electrical: Any, speed: Scalar) -> Any:
        """Return an action that changes the currents little."""
        return self.actuator.first_choice(electrical, speed)

    def exchange(self, memory: Any, choice: Any) -> tuple[Any, Any]:
        """Apply the waiting action; the action chosen now waits."""
        return memory, choice

    def observe(self, memory: Any) -> Values:
        """Return what waits, in the form of what was applied."""
        return self.actuator.observe(memory)

    def components(self) -> list[Component]:
        """Describe what waits."""
        return self.actuator.components("waiting", "in the next step")

    def words(self, memory: Any) -> str:
        """List what waits."""
        return f" Waiting: {', '.join(f'{float(number):+.3f}' for number in self.observe(memory))}."

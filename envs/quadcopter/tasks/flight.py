"""Base classes of the tasks of one vehicle: its rotor commands, and the dynamics that other conditions may replace.

Unless a task brings its own, the vehicle is that of Eschmann, Albani & Loianno 2024 (Learning to Fly in Seconds,
arXiv:2311.13081), with the constants of ``physics/dynamics.py``.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import numpy as np

from rlbench_suite.card import TaskCard
from rlbench_suite.component import Component, singles
from rlbench_suite.task import Params, State, Task

from ..physics.dynamics import HOVER_ACTION, ROTOR_NAMES, STEP, Airframe, Quadcopter
from ..rendering import picture
from ..rendering.picture import Pictured

COMMANDS = singles(
    {
        f"rotor_{i}": f"commanded speed of rotor {i} ({where}): -1 is standstill, 1 full speed"
        for i, where in enumerate(ROTOR_NAMES, 1)
    }
)


class Flight(Pictured, Task[Params, State]):
    """A task whose actions, ``(4,)`` in [-1, 1], command the rotors of one vehicle."""

    picture_shape: ClassVar[tuple[int, int, int]] = picture.SHAPE
    period = STEP
    hover_action: ClassVar[float] = HOVER_ACTION
    ends_in_failure = True

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box([-1] * 4, [1] * 4)

    def noop_action(self) -> np.ndarray:
        """Return the nominal vehicle's hover command: with rotors at standstill it would fall."""
        return np.full(4, self.hover_action, self.dtype)

    def action_components(self) -> tuple[Component, ...]:
        """List the rotor commands."""
        return COMMANDS

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with four numbers from -1 to 1, the commanded speeds of rotors 1 to 4 (front right, rear right, "
            f"rear left, front left): -1 is standstill, 1 full speed, about {self.hover_action} carries the weight."
        )


class FreeFlight(Flight[Params, State]):
    """A flight whose vehicle moves by the dynamics alone, so that other conditions can replace them."""

    def vehicle(self, state: Any) -> Quadcopter:
        """Return the vehicle in a state."""
        vehicle: Quadcopter = state.vehicle
        return vehicle

    def airframe(self, params: Any) -> Airframe:
        """Return the vehicle's constants in a context."""
        airframe: Airframe = params.airframe
        return airframe

    @abc.abstractmethod
    def moved(self, state: State, vehicle: Quadcopter, params: Params) -> State:
        """Return the next state, given the next vehicle."""

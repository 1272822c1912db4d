"""Base classes of the tasks of one vehicle.

They have its rotor commands, and the dynamics that other conditions may replace.

Unless a task brings its own, the vehicle is that of Eschmann, Albani & Loianno 2024 (Learning to
Fly in Seconds, arXiv:2311.13081), with the constants of ``physics/dynamics.py``. A context
(``physics/data_sheet.py``) may set others, and other weights of the terms of a reward.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import numpy as np

from rlbench_suite.contexts.context import Constant
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task import Params, State, Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.own_constants import OwnConstants
from ..physics import data_sheet, dynamics
from ..physics.data_sheet import SHIPPED, DataSheet
from ..physics.dynamics import ROTOR_NAMES, STEP, Airframe, Quadcopter
from ..physics.rigid_body import Scalar
from ..rendering import picture
from ..rendering.picture import Pictured
from ..sensing import motion

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
    ends_in_failure = True
    shipped: ClassVar[DataSheet] = SHIPPED
    """The task's own vehicle"""
    takes_data_sheet: ClassVar[bool] = True
    """True if a context may set the vehicle's constants and the weights of the reward's terms"""
    terms: ClassVar[tuple[Constant, ...]] = ()
    """Weights of the terms of a reward that is a sum of several"""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.sheet = (
            data_sheet.sheet_of_context(card.context, self.shipped)
            if card.context
            else self.shipped
        )
        self.context_values = OwnConstants(card, (*data_sheet.constants(self.shipped), *self.terms))
        self.action_space = self.box([-1] * 4, [1] * 4)
        self.speed_ratio = (self.sheet.max_acceleration / self.shipped.max_acceleration) ** 0.5
        """Highest speed over a distance, by that of the shipped vehicle"""

    def constants(self) -> tuple[Constant, ...]:
        """Return the constants of the vehicle, and the weights of the reward's terms."""
        return (
            (*data_sheet.constants(self.sheet), *self.context_values.present(self.terms))
            if self.takes_data_sheet
            else ()
        )

    def noop_action(self) -> np.ndarray:
        """Return the nominal vehicle's hover command: with rotors at standstill it would fall."""
        return np.full(4, self.sheet.hover_action, self.dtype)

    def action_components(self) -> tuple[Component, ...]:
        """List the rotor commands."""
        return COMMANDS

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with four numbers from -1 to 1, the commanded speeds of rotors 1 to 4 (front "
            "right, rear right, "
            "rear left, front left): -1 is standstill, 1 full speed, about "
            f"{self.sheet.hover_action:.3g} carries the "
            "weight."
        )

    def make_pilot(self, make: Callable[[Any], Any]) -> Any:
        """Return the pilot that ``make`` makes for a flight.

        Tasks with conditions of their own give it what it needs under them.
        """
        return make(self)

    def vehicle(self, state: Any) -> Quadcopter:
        """Return the vehicle in a state."""
        vehicle: Quadcopter = state.vehicle
        return vehicle

    def airframe(self, params: Any) -> Airframe:
        """Return the vehicle's constants in a context."""
        airframe: Airframe = params.airframe
        return airframe

    def with_vehicle(self, state: Any, vehicle: Quadcopter) -> Any:
        """Return the state with another vehicle."""
        return state._replace(vehicle=vehicle)

    def with_airframe(self, params: Any, airframe: Airframe) -> Any:
        """Return the context as a pilot assumes it.

        It knows the course, and takes this vehicle for its own.
        """
        return params._replace(airframe=airframe)

    def observed_position(
        self, observation: jax.Array, state: Any, params: Any
    ) -> tuple[Scalar, Scalar, Scalar]:
        """Return the vehicle's place (m) that an observation shows.

        ``state`` has its goal's number or time.
        """
        return observation[0], observation[1], observation[2]

    def step_vehicle(
        self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe, **conditions: Any
    ) -> Quadcopter:
        """Return the vehicle one step later under constant commands.

        ``conditions`` are those of ``dynamics.step``.
        """
        command = dynamics.commanded_speeds(action, self.sheet.speed_limit)
        return dynamics.step(vehicle, command, airframe, STEP, **conditions, arm=self.sheet.arm)

    def body_observation(self, vehicle: Quadcopter) -> tuple[Scalar, ...]:
        """Return attitude, velocities and rotor speeds, as observations show them."""
        return motion.attitude_and_rates(vehicle, self.sheet.speed_limit)

    def body_observation_bound(self, velocity: float) -> list[float]:
        """Return the largest absolute value of each of :meth:`body_observation`.

        ``velocity``: that of the shipped vehicle, m/s.
        """
        turning = max(1.0, self.sheet.tilt_acceleration(1) / self.shipped.tilt_acceleration(1))
        return motion.attitude_and_rates_bound(self.speed_ratio * velocity, turning)

    def describe_vehicle(self, vehicle: Quadcopter) -> str:
        """Describe velocity, attitude, angular velocity and rotor speeds, with units."""
        return motion.describe_vehicle(vehicle, self.sheet.speed_limit)


class FreeFlight(Flight[Params, State]):
    """A flight whose vehicle moves by the dynamics alone.

    So other conditions can replace them.
    """

    @abc.abstractmethod
    def next_state(self, state: State, vehicle: Quadcopter, params: Params) -> State:
        """Return the next state, given the next vehicle."""

"""Control the speed with current sensors only: the observation has neither speed nor angle.

The task is that of ``drive.py`` except for this table. Speed and angle must be estimated from the
voltage that turning magnets induce. At standstill there is none, so three-phase speeds stay away
from zero.

======================  ============================================================================
action                  permanently excited direct current: as before. Three-phase: voltages in the
                        stator's coordinates (alpha along phase a, beta across), constant there over
                        a step
observation             currents, by the limit, three-phase in the stator's coordinates; the set
                        point; the voltages of the last step
privileged              the speed and, three-phase, cosine and sine of the angle
angle (three-phase)     any at the start, and turning with the rotor
speed                   direct current: within +-150 rad/s at the start (at more, the first step
                        would trip the drive unseen), set points within +-170 rad/s. Three-phase: 50
                        to 130 rad/s at the start, set points 40 to 140 rad/s
context                 as before, except that the direct-current machine's flux and resistance are
                        within 0.5 and 10 % of the data sheet, as measured at commissioning: without
                        a sensor an error of the flux is an error of the speed
======================  ============================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component, scaled_component
from rlbench_suite.core.task_card import TaskCard

from ...shared.runge_kutta import rk4
from ..machines import dc
from ..machines.frames import DQ, AlphaBeta, Scalar, Values, inverse_park, park, wrap_angle
from ..parts import components
from ..plants.direct_current import PermExDc
from ..plants.plant import Plant
from ..plants.three_phase import PMSM
from ..setpoints.goals import Goal
from . import scope
from .drive import OBSERVATION_BOUND, Drive, Params, State


class CommissionedPermExDc(PermExDc):
    """Measured when it was commissioned."""

    tolerance = dc.PermanentlyExcited(0.1, 0.15, 0.005, 0.0)


class StatorFixedPMSM(PMSM):
    """Its voltage is constant in the stator's coordinates over a step."""

    voltages = ("u_alpha", "u_beta")

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> AlphaBeta:
        """Return the voltage in the stator's coordinates, V."""
        return AlphaBeta(self.unit * applied[0], self.unit * applied[1])


class Sensorless(Drive):
    """The task of this file's docstring, for a direct-current machine."""

    machine: Plant = CommissionedPermExDc()
    axes: tuple[str, ...] = ("i",)
    """Names of the currents that are seen."""
    range: ClassVar[dict[str, Any]] = {
        "low": (-170.0,),
        "high": (170.0,),
        "speeds": (-150.0, 150.0),
    }
    """Ranges of set points and speeds at the start, rad/s."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.privileged_space = self.box(-np.inf, np.inf, (1 + 2 * (len(self.axes) > 1),))

    def chosen_plant(self, plant: Plant) -> Plant:
        """Return a plant that was measured when it was commissioned."""
        return self.machine

    def chosen_goal(self, goal: Goal) -> Goal:
        """Ask for speeds at which it can be observed."""
        return goal._replace(**self.range)

    def measure(self, state: State) -> Values:
        """Return the currents at the terminals, in parts of the limit."""
        return self.plant.measure(state.electrical)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Show currents, set point and voltages; see the table."""
        entries = self.stack(
            *self.measure(state), state.setpoint[0] * (1 / self.goal.scale), *state.applied
        )
        return jnp.clip(entries, -OBSERVATION_BOUND, OBSERVATION_BOUND)

    def observation_components(self) -> tuple[Component, ...]:
        """Describe each entry, in the order of :meth:`observation`."""
        machine, limit = self.design.machine, self.plant.current_limit
        return (
            *(
                scaled_component(name, components.electrical(name, machine), limit, "A")
                for name in self.axes
            ),
            *self._setpoint_components(),
            *self.actuator.components("applied", "in the last step"),
        )

    def privileged(self, state: State, params: Params) -> jax.Array:
        """Show the speed in parts of its limit.

        A three-phase machine also shows cosine and sine of the electrical angle.
        """
        turning = (jnp.cos(state.angle), jnp.sin(state.angle)) if len(self.axes) > 1 else ()
        return self.stack(state.speed * (1 / self.plant.speed_limit), *turning)

    def describe(self, state: State, params: Params) -> str:
        """Describe what is shown, with units."""
        currents = ", ".join(
            f"{name} {float(value) * self.plant.current_limit:+.4g} A"
            for name, value in zip(self.axes, self.measure(state), strict=True)
        )
        applied = ", ".join(f"{float(voltage):+.3f}" for voltage in state.applied)
        setpoint = float(state.setpoint[0])
        return (
            f"Asked for: speed {setpoint:+.4g} rad/s. Measured: {currents}. Last voltage: "
            f"{applied}."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw currents and the requested speed; see ``scope.py``."""
        setpoint, goal = float(state.setpoint[0]), self.goal
        gauge = scope.Gauge(
            "speed asked for (rad/s)", setpoint, setpoint, goal.low[0], goal.high[0]
        )
        currents = tuple(float(value) for value in self.measure(state))
        vector = (currents[0], currents[1]) if len(currents) > 1 else None
        voltages = tuple(float(voltage) for voltage in state.applied)
        share = float(self.plant.length(state.electrical))
        return scope.picture(vector, share, 1.1, [gauge], voltages, ("i_alpha", "i_beta"))


class SensorlessPMSM(Sensorless):
    """The task of this file's docstring, for a three-phase machine."""

    machine = StatorFixedPMSM()
    axes = ("i_alpha", "i_beta")
    range: ClassVar[dict[str, Any]] = {"low": (40.0,), "high": (140.0,), "speeds": (50.0, 130.0)}

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin as any drive, at any angle."""
        unit = self.uniform(jax.random.fold_in(key, 1), 1)[0]
        return super().initial(key, params)._replace(angle=2 * math.pi * (unit - 0.5))

    def measure(self, state: State) -> Values:
        """Return the currents in the stator's coordinates."""
        per = 1 / self.plant.current_limit
        current = inverse_park(DQ(*state.electrical), state.angle)
        return current.alpha * per, current.beta * per

    def integrate(self, state: State, voltage: AlphaBeta, params: Params, duration: float) -> State:
        """Return currents, speed and angle ``duration`` s later.

        The rotor turns under a voltage that does not.
        """
        machine = params.machine

        def rate(_: float, present: tuple[DQ, Scalar, Scalar]) -> tuple[DQ, Scalar, Scalar]:
            current, speed, angle = present
            return (
                machine.derivative(current, park(voltage, angle), speed),
                params.load.acceleration(speed, machine.torque(current), machine.inertia),
                self.plant.pole_pairs * speed,
            )

        current, speed, angle = rk4(rate, (state.electrical, state.speed, state.angle), duration)
        return state._replace(electrical=current, speed=speed, angle=wrap_angle(angle))

"""Actuators: actions drive the converters by voltages or by switch states.

Both may have interlocking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from gymnasium import spaces

from rlbench_suite.core.component import Component

from ..machines.frames import Scalar, Values
from ..power_electronics import interlocking
from . import components
from .part import Design

Integrate = Callable[[Any, Any, float], Any]
"""Function that moves a state under a voltage (V) over a fraction of the period."""


class Voltages:
    """Each action is a vector of voltages, in parts of the largest."""

    noun = "voltage"
    """Name of what is applied, in words"""

    def __init__(self, design: Design, share: float) -> None:
        self.machine, self.plant, self.dtype = design.machine, design.plant, design.dtype
        self.share = share
        """Fraction of a period for which a leg's switches are both off"""

    def space(self, box: Callable[..., spaces.Box]) -> spaces.Space[Any]:
        """Return the action space, from the converters' lowest voltages to their highest.

        ``box`` makes it.
        """
        return box([self.plant.lowest] * self.width, [1] * self.width)

    def choose(self, action: jax.Array) -> Any:
        """Return the voltages that the converters can give."""
        return self.plant.limit_action(tuple(action[i] for i in range(self.width)))

    def first_choice(self, electrical: Any, speed: Scalar) -> Any:
        """Return the voltages applied before a delayed first action takes effect.

        They hold the currents.
        """
        return self.plant.holding_action(electrical, speed)

    def observe(self, choice: Any) -> Values:
        """Return the numbers by which a choice is observed."""
        return tuple(choice)

    def choice(self, observed: Values) -> Any:
        """Invert :meth:`observe`."""
        return observed

    @property
    def width(self) -> int:
        """Length of :meth:`observe`."""
        return self.plant.inputs

    def voltage(self, choice: Any, electrical: Any, angle: Scalar) -> Any:
        """Return the machine's voltage, V, without interlocking; ``angle``: electrical, rad."""
        return self.plant.voltage(choice, electrical, angle)

    def apply(self, choice: Any, state: Any, angle: Scalar, integrate: Integrate) -> Any:
        """Return the state one period later; ``angle``: electrical, rad, at its start."""
        if self.share:
            voltage = self.plant.interlocked_voltage(choice, state.electrical, angle, self.share)
        else:
            voltage = self.voltage(choice, state.electrical, angle)
        return integrate(state, voltage, 1.0)._replace(applied=choice)

    def components(self, name: str, when: str) -> list[Component]:
        """Describe each entry of :meth:`observe`, as it is applied ``when``."""
        voltages = components.voltages(self.plant, self.machine)
        return [
            replace(voltage, name=f"{name}_{voltage.name}", meaning=f"{voltage.meaning}, {when}")
            for voltage in voltages
        ]

    def actions(self) -> tuple[Component, ...]:
        """Describe each part of an action, or each action."""
        return components.voltage_actions(self.plant, self.machine)

    def how_to_act(self) -> str:
        """Tell a text player in one line what an action looks like."""
        voltages = zip(self.plant.voltages, self.plant.units, strict=True)
        axes = ", ".join(f"{name} in parts of {unit:.1f} V" for name, unit in voltages)
        return f"Answer with {self.width} number(s) from {self.plant.lowest:.0f} to 1: {axes}."


class SwitchStates(Voltages):
    """Each action is the number of a switch state."""

    noun = "switches"

    def space(self, box: Callable[..., spaces.Box]) -> spaces.Space[Any]:
        """Return one number for each switch state of all converters together."""
        return spaces.Discrete(self.plant.states)

    def choose(self, action: jax.Array) -> jax.Array:
        """Return the switch state."""
        return action

    def first_choice(self, electrical: Any, speed: Scalar) -> Any:
        """Return the state with all legs low."""
        return jnp.int32(0)

    def observe(self, choice: Any) -> Values:
        """Return 0 or 1 for each leg at the lower or upper end of the link."""
        return self.plant.legs(choice)

    def choice(self, observed: Values) -> jax.Array:
        """Return the switch state of these legs."""
        return sum((jnp.int32(leg) << bit for bit, leg in enumerate(observed)), jnp.int32(0))

    @property
    def width(self) -> int:
        """Number of legs."""
        return self.plant.switches

    def voltage(self, choice: Any, electrical: Any, angle: Scalar) -> Any:
        """Return the voltage that the switch state puts on the machine."""
        return self.plant.switched_voltage(choice, electrical, angle)

    def apply(self, choice: Any, state: Any, angle: Scalar, integrate: Integrate) -> Any:
        """Hold the legs where diodes take them while interlocked, then in the switch state."""
        legs = tuple(leg.astype(self.dtype) for leg in self.plant.legs(choice))
        if self.share:
            currents = self.plant.leg_currents(state.electrical, state.angle)
            between = interlocking.freewheeling_legs(state.applied, legs, currents)
            state = integrate(
                state,
                self.plant.voltage_of_legs(between, state.electrical, state.angle),
                self.share,
            )
        voltage = self.voltage(choice, state.electrical, state.angle)
        return integrate(state, voltage, 1 - self.share)._replace(applied=legs)

    def components(self, name: str, when: str) -> list[Component]:
        """Describe each leg."""
        return [
            Component(f"{name}_{leg}", f"{meaning}, {when}")
            for leg, meaning in components.legs(self.plant)
        ]

    def actions(self) -> tuple[Component, ...]:
        """Describe each switch state."""
        return components.switch_states(tuple(self.plant.converters))

    def how_to_act(self) -> str:
        """Tell how the number is made up of the converters' states."""
        converters = self.plant.converters
        first, *second = (f"0 to {states - 1} of the {fed}" for fed, states in converters)
        sum_of = "".join(
            f": {first} plus {converters[0][1]} times {second_name}" for second_name in second
        )
        return (
            "Answer with the switch state, a whole number from 0 to "
            f"{self.plant.states - 1}{sum_of}."
        )


ACTUATORS: dict[str, type[Voltages]] = {"continuous": Voltages, "finite": SwitchStates}
"""Actuators by their names in ``card.settings``."""

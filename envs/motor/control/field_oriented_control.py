"""The reference player of current tracking: field-oriented control.

Each axis has a PI controller. Feed-forward of the induced voltages decouples the axes, and the
voltage that the inverter really gave prevents windup. It is designed for the data sheet's machine,
as a practitioner would do it: it does not know the tolerances of a context.

Gains by the magnitude optimum (Betragsoptimum): the reset time cancels the axis' time constant, T_n
= L / R, and the gain is K_p = L / (2 T_s) with the sum T_s of small time constants. A sample is
used at once and its voltage is held for one period, which delays by half a period on average: T_s =
STEP / 2. On the machine of the data sheet that is the fastest loop there is without overshoot: an
error is gone one step later, as far as the voltage reaches.

Source: Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015), magnitude optimum
and current control in field coordinates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task

from ..machines import pmsm
from ..machines.pmsm import DQ
from ..tasks.drive import Drive
from ..tasks.pmsm_current import STEP, VOLTAGE_LIMIT, Params, State, shorten_to_unit_circle
from .cascade import Cascade


@privileged_player
class FieldOrientedControl(NamedTuple):
    """Memory: the integral parts of the d and q voltages (V)."""

    small_time_constant: Float = STEP / 2
    """T_s, s: larger is slower and less sensitive to tolerances."""

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> FieldOrientedControl | Cascade:
        """Return the player of any task of this kind.

        A drive with chosen parts gets the player of all drives.
        """
        return Cascade.for_task(task) if isinstance(task, Drive) else cls()

    def initial(self, params: Params) -> DQ:
        """Begin with integrators at zero."""
        zero = jnp.zeros_like(params.speed)
        return DQ(zero, zero)

    def act(self, memory: DQ, view: View, key: jax.Array) -> tuple[jax.Array, DQ]:
        """Return the voltage as an action, shape ``(2,)``."""
        state: State = view.state
        machine = pmsm.nominal_machine()
        doubled = 2 * self.small_time_constant
        gain = DQ(machine.inductance_d / doubled, machine.inductance_q / doubled)
        integral_gain = machine.resistance / doubled  # K_p / T_n, the same on both axes
        error = DQ(state.setpoint.d - state.current.d, state.setpoint.q - state.current.q)
        induced = pmsm.steady_voltage(
            state.current, view.params.speed, machine._replace(resistance=0.0)
        )
        voltages = DQ(
            induced.d + gain.d * error.d + memory.d, induced.q + gain.q * error.q + memory.q
        )
        action = shorten_to_unit_circle(DQ(voltages.d / VOLTAGE_LIMIT, voltages.q / VOLTAGE_LIMIT))
        # Back-calculation: the part that the inverter could not give is subtracted from the
        # integrated error.
        short = DQ(voltages.d - VOLTAGE_LIMIT * action.d, voltages.q - VOLTAGE_LIMIT * action.q)
        memory = DQ(
            memory.d + STEP * integral_gain * (error.d - short.d / gain.d),
            memory.q + STEP * integral_gain * (error.q - short.q / gain.q),
        )
        return jnp.stack(action), memory

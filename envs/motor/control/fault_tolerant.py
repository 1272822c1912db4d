"""The reference player of a machine with a breaking phase.

It controls the currents deadbeat, and once a phase breaks also a neutral current.

* torque: maximum torque per ampere, corrected by the measured torque, as in ``cascade.py``;
* currents: each of d, q and zero reaches its set point in one period, on the machine of the data
  sheet;
* detection by residual: a phase that is asked for more than 15 A and carries less than 3 A for five
  steps is open;
* then the zero current keeps the open phase without current, i_0 = -i_alpha, at the same d and q
  currents: the other two phases carry sqrt(3) times as much, and the torque stays.

Source: Bolognani, Zordan & Zigliotto 2000, Experimental fault-tolerant control of a PMSM drive,
IEEE Transactions on Industrial Electronics 47(5).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task

from ..machines.frames import DQ, Phases, Scalar, inverse_clarke, inverse_park
from ..machines.open_phase import Currents
from ..tasks.faulty import FaultyDrive, phases_of

MIN_REQUESTED_CURRENT = 15.0
"""A: a phase is suspected only while more than this is requested of it."""
MAX_CARRIED_CURRENT = 3.0
"""A: it is suspected if it then carries less than this."""
SUSPICION_STEPS = 5.0
"""Number of consecutive steps of suspicion after which a phase is taken to be open."""


class Suspicion(NamedTuple):
    """Requested currents, A, and the number of steps for which each phase has been suspected."""

    requested: Phases
    steps: Phases


@privileged_player
class FaultTolerant(eqx.Module):
    """The player."""

    task: FaultyDrive = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> FaultTolerant:
        """Return the player of such a drive.

        Raises:
            TypeError: another kind of task.
        """
        if not isinstance(task, FaultyDrive):
            raise TypeError(
                f"FaultTolerant controls drives of which a phase breaks, got {type(task).__name__}."
            )
        return cls(task)

    def initial(self, params: Any) -> Suspicion:
        """Begin with no requested current and no suspected phase."""
        zero = jnp.zeros_like(params.speed)
        return Suspicion(Phases(zero, zero, zero), Phases(zero, zero, zero))

    def count_suspicions(self, memory: Suspicion, carried: Phases) -> Phases:
        """Count the steps for which each phase is suspected.

        A phase that was taken to be open stays so.
        """

        def count_steps(requested: Scalar, carried: Scalar, steps: Scalar) -> Scalar:
            is_silent = (jnp.abs(requested) > MIN_REQUESTED_CURRENT) & (
                jnp.abs(carried) < MAX_CARRIED_CURRENT
            )
            return jnp.where((steps >= SUSPICION_STEPS) | is_silent, steps + 1, 0)

        return Phases(*map(count_steps, memory.requested, carried, memory.steps))

    def act(self, memory: Suspicion, view: View, key: jax.Array) -> tuple[jax.Array, Suspicion]:
        """Return three phase voltages."""
        task, plant, state = self.task, self.task.plant, view.state
        machine, electrical_state = plant.nominal, state.electrical
        steps = self.count_suspicions(
            memory, Phases(electrical_state.a, electrical_state.b, electrical_state.c)
        )
        torque_error = task.controlled_values(state, view.params)[0] - machine.inner_torque(
            electrical_state.currents
        )
        d, q = plant.currents_for(state.setpoint[0] - torque_error, electrical_state)
        electrical = machine.pole_pairs * state.speed
        middle_angle = state.angle + 0.5 * task.period * electrical
        end_angle = state.angle + task.period * electrical
        phases = inverse_clarke(inverse_park(DQ(d, q), end_angle))
        zero: Scalar = 0.0
        for count, phase_current in zip(steps, phases, strict=True):
            zero = jnp.where(count >= SUSPICION_STEPS, -phase_current, zero)
        rate = 1 / task.period
        u_d = (
            machine.resistance * electrical_state.d
            - electrical * machine.inductance_q * electrical_state.q
        )
        u_q = machine.resistance * electrical_state.q + electrical * (
            machine.inductance_d * electrical_state.d + machine.magnet_flux
        )
        u_d = u_d + machine.inductance_d * rate * (d - electrical_state.d)
        u_q = u_q + machine.inductance_q * rate * (q - electrical_state.q)
        u_zero = machine.resistance * electrical_state.zero + machine.inductance_zero * rate * (
            zero - electrical_state.zero
        )
        volts = inverse_clarke(inverse_park(DQ(u_d, u_q), middle_angle))
        action = tuple(jnp.clip((volt + u_zero) * (1 / plant.unit), -1, 1) for volt in volts)
        return jnp.stack(action), Suspicion(phases_of(Currents(d, q, zero), end_angle), steps)

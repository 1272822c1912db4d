"""The reference players without sensors.

They are the cascade of ``cascade.py`` on an observer's speed and angle.

They see the same as an agent, and know the machine of the data sheet. Their speed controller is
slower than that of the cascade with sensors, because the observer needs time: it removes an error
in some 10 ms.

Sources: those of ``cascade.py`` and ``speed_observer.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task

from ..machines.dc import Armature
from ..machines.frames import DQ, AlphaBeta, Scalar, Values, inverse_park, park
from ..tasks.drive import State
from ..tasks.sensorless import Sensorless, SensorlessPMSM
from .cascade import Cascade
from .speed_observer import FILTER, Rotor, estimate_from_short_circuit, induced_speed, track_rotor

SETTLING = 0.01
"""s: time in which the speed loop removes an error, as far as the torque reaches.

Its integrator takes ten times that.
"""


class Memory(NamedTuple):
    """Integrators, and what was observed."""

    voltage: Values
    """V, of each current's loop"""
    torque: Scalar
    """N m"""
    rotor: Rotor
    currents: Values
    """A, of the step before"""
    steps: Scalar
    """Number of steps so far"""


class SensorlessCascade(Cascade):
    """The player of one drive without sensors."""

    privileged = False

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> SensorlessCascade:
        """Return the player of such a drive.

        Raises:
            TypeError: another kind of task.
        """
        if not isinstance(task, Sensorless):
            raise TypeError(
                f"SensorlessCascade controls drives without sensors, got {type(task).__name__}."
            )
        return cls(task)

    def initial(self, params: Any) -> Any:
        """Begin with nothing observed."""
        zero = jnp.zeros((), self.task.dtype)
        currents = len(self.task.plant.currents)
        return Memory((zero,) * currents, zero, Rotor(zero, zero), (zero,) * currents, zero)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return voltages, from the observation alone."""
        task: Any = self.task
        count = len(task.axes)
        entries = [view.observation[i] for i in range(count + 1 + count)]
        currents = tuple(value * task.plant.current_limit for value in entries[:count])
        volts = [voltage * task.plant.unit for voltage in entries[count + 1 :]]
        rotor = self._observe(memory, volts, currents)
        torque, integral = self._torque(
            memory.torque, entries[count] * task.goal.scale, rotor.speed
        )
        electrical: Any = Armature(currents[0])
        if isinstance(task, SensorlessPMSM):
            electrical = park(AlphaBeta(*currents), rotor.angle)
        state = State(electrical, rotor.speed, rotor.angle, (), ())
        action, voltage = self._voltages(
            task.plant.currents_for(torque, electrical), memory.voltage, state, state
        )
        if isinstance(task, SensorlessPMSM):
            middle = rotor.angle + 0.5 * task.period * task.plant.pole_pairs * rotor.speed
            action = tuple(inverse_park(DQ(*action), middle))
        # In the first step there is no voltage, and nothing to integrate.
        started = memory.steps > 0
        action = tuple(jnp.where(started, value, 0.0) for value in action)
        voltage, integral = jax.tree.map(
            lambda new, old: jnp.where(started, new, old),
            (voltage, integral),
            (memory.voltage, memory.torque),
        )
        return jnp.stack(action), Memory(voltage, integral, rotor, currents, memory.steps + 1)

    def _observe(self, memory: Memory, volts: list[Scalar], currents: Values) -> Rotor:
        """Observe angle and speed."""
        task: Any = self.task
        machine, period = task.plant.nominal, task.period
        if not isinstance(task, SensorlessPMSM):
            pair = memory.currents[0], currents[0]
            measured_speed = induced_speed(machine, volts[0], pair, period)
            share = jnp.where(memory.steps > 1, FILTER, 1.0)
            return memory.rotor._replace(
                speed=memory.rotor.speed + share * (measured_speed - memory.rotor.speed)
            )
        current = AlphaBeta(*currents)
        tracked_rotor = track_rotor(
            memory.rotor, machine, AlphaBeta(*volts), (AlphaBeta(*memory.currents), current), period
        )
        first_rotor = estimate_from_short_circuit(current, machine, period)
        return Rotor(
            *(
                jnp.where(memory.steps > 1, later, jnp.where(memory.steps > 0, early, 0.0))
                for later, early in zip(tracked_rotor, first_rotor, strict=True)
            )
        )

    def _torque(self, integral: Scalar, setpoint: Scalar, speed: Scalar) -> tuple[Scalar, Scalar]:
        """Return the torque, N m, and the integrator's next value."""
        task = self.task
        gain = 1.5 * task.plant.nominal.inertia / SETTLING
        bounds = task.goals["torque"]
        request = gain * (setpoint - speed)
        torque = jnp.clip(request + integral, bounds.low[0], bounds.high[0])
        learning = 0.1 * task.period / SETTLING
        return torque, integral + (torque - integral) * learning

"""The reference players of every drive: cascaded control, on the machine of the data sheet.

* currents, continuous: on each axis a proportional controller that would reach the reference in one period (deadbeat, K
  = L / T), feed-forward of resistive and induced voltages, and an integrator against the errors that tolerances leave.
  It waits while the converter gives less than the requested voltage. In field coordinates this is field-oriented
  control;
* currents, finite: the switch state whose currents one period ahead, by the data sheet's machine, are nearest to
  their references (finite-set model-predictive control with a horizon of one);
* torque: the currents of least loss for it, corrected by the difference between the measured torque and that of the
  data sheet's machine at the same currents; an integrator would wind up while currents still rise;
* speed: a proportional-integral controller of the torque, within the range of the torque task; its integrator begins at
  the friction of the data sheet, and waits while the torque is at its bounds;
* position: a proportional controller of the speed, no faster than half of the torque brakes in time; its speed has no
  integrator, so that nothing winds up on the way.

With a dead time it controls the state that the voltages will meet, predicted by the data sheet's machine (Cortes et al.
2012, doi:10.1109/TIE.2011.2157284), and integrates the measured errors. It knows the present voltage of the link.

An induction machine's flux is taken from the simulated machine, as an ideal observer gives it.

Sources: Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015), cascaded and field-oriented control;
Rodriguez et al. 2007, doi:10.1109/TIE.2006.888802, predictive current control.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.policy import View
from rlbench_suite.task import Task

from ..machines.frames import Scalar, Values
from ..tasks.drive import Drive, Params, State

POSITION_PERIODS = 50.0
"""Continuous periods in which the position loop removes an error."""
LEARNING = 0.05
"""Part of an error that the integrators of voltage add in each period."""
SPEED_PERIODS = 10.0
"""Continuous periods in which the speed loop removes an error, as far as the torque reaches; its integrator takes ten
times longer."""
LACKING = 0.01
"""Lack of voltage, in parts of a converter's largest, above which the integrators stop.

The remaining error then says nothing about the machine, and an integrator that added it would wind up.
"""


class Memory(NamedTuple):
    """Integrators."""

    voltage: Values
    """V, of each current's loop"""
    torque: Scalar
    """N m"""


def learn(integrals: Values, changing: Values, lacking: Values) -> Values:
    """Return the next values, V, of the integrators of each current's loop.

    Args:
        integrals: their values, V.
        changing: V, voltages that would remove the errors in a period.
        lacking: difference between requested and given voltage, in parts of the converter's largest voltage.
    """
    return tuple(
        integral + LEARNING * jnp.where(jnp.abs(lack) < LACKING, change, 0.0)
        for integral, change, lack in zip(integrals, changing, lacking, strict=False)
    )


class Cascade(eqx.Module):
    """The player of one drive."""

    task: Drive = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> Cascade:
        """Return the player of any drive.

        Raises:
            TypeError: another kind of task.
        """
        if not isinstance(task, Drive):
            raise TypeError(f"Cascade controls drives, got {type(task).__name__}.")
        return cls(task)

    def initial(self, params: Params) -> Memory:
        """Begin with integrators at zero, but the torque's at the data sheet's friction at this speed."""
        task, zero = self.task, jnp.zeros_like(params.speed)
        friction = zero
        if task.kind == "speed":
            inertia = task.plant.nominal.inertia
            friction = -inertia * task.goal.friction._replace(inertia=0.0).acceleration(params.speed, 0.0, inertia)
        return Memory((zero,) * len(task.plant.currents), friction)

    def act(self, memory: Memory, view: View, key: jax.Array) -> tuple[jax.Array, Memory]:
        """Return voltages, or a switch state."""
        state: State = self._met(view.state)
        wanted, torque = self._currents(memory.torque, state, view.params)
        if self.task.finite:
            return self._switch_state(wanted, state), Memory(memory.voltage, torque)
        action, voltage = self._voltages(wanted, memory.voltage, state, view.state)
        return jnp.stack(action), Memory(voltage, torque)

    def _met(self, state: State) -> State:
        """Return the state that the voltage will meet: with a dead time, one period ahead by the data sheet."""
        task = self.task
        if not task.delayed:
            return state
        waiting = state.parts.waiting
        nominal = Params(task.plant.nominal, None, state.speed, state.speed)
        voltage = task.actuator.voltage(waiting, state.electrical, state.angle)
        ahead = task.machine_after(state.electrical, state.speed, self._from_link(voltage, state), nominal)
        angle = state.angle
        if task.turned and task.kind != "position":
            angle = angle + task.plant.pole_pairs * task.period * state.speed
        return state._replace(electrical=ahead, angle=angle)

    def _from_link(self, voltage: Any, state: State) -> Any:
        """Scale a voltage on a nominal link, V, with the link's own."""
        link = self.task.link
        return link.given(voltage, link.voltage(state.parts.link))

    def _currents(self, integral: Scalar, state: State, params: Params) -> tuple[Values, Scalar]:
        """Return the currents to reach, A, and the integrator's next value."""
        task = self.task
        if task.kind == "current":
            return state.reference, integral
        reference, value = state.reference[0], task.controlled(state, params)[0]
        if task.kind == "torque":
            off = value - task.plant.nominal.torque(state.electrical)
            return self._for_torque(reference - off, state), integral
        inertia = 1.5 * task.plant.nominal.inertia  # a load of half the rotor's inertia
        gain = inertia / (SPEED_PERIODS * task.goal.period)
        learning = 0.1 / SPEED_PERIODS * (task.period / task.goal.period)
        bounds = task.goals["torque"]
        if task.kind == "position":
            away = reference - value
            approach = jnp.abs(away) * (1 / (POSITION_PERIODS * task.goal.period))
            braking = jnp.sqrt(jnp.abs(away) * (bounds.high[0] / inertia))
            speed = jnp.sign(away) * jnp.minimum(approach, braking)
            torque = jnp.clip(gain * (speed - state.speed), bounds.low[0], bounds.high[0])
            return self._for_torque(torque, state), integral
        asked = gain * (reference - value) + integral
        torque = jnp.clip(asked, bounds.low[0], bounds.high[0])
        within = (asked > bounds.low[0]) & (asked < bounds.high[0])
        integral = integral + jnp.where(within, learning * gain * (reference - value), 0.0)
        return self._for_torque(torque, state), integral

    def _for_torque(self, torque: Scalar, state: State) -> Values:
        """Return currents, A, for an inner torque, N m, on the data sheet's machine."""
        return self.task.plant.currents_within(self.task.period, torque, state.electrical)

    def _voltages(self, wanted: Values, integrals: Values, state: State, now: State) -> tuple[Values, Values]:
        """Return the action at a state, and the integrators' next values from the present measurements."""
        plant = self.task.plant
        currents = self._measured(state)
        errors = tuple(w - i for w, i in zip(wanted, currents, strict=False))
        # A voltage without a current of its own has no error and no integral.
        integral = (*integrals, *[0.0] * (plant.inputs - len(integrals)))
        resistive = [resistance * current for resistance, current in zip(plant.resistances(), currents, strict=True)]
        induced = plant.induced(state.electrical, state.speed)
        holding = tuple(r + i + learnt for r, i, learnt in zip(resistive, induced, integral, strict=True))
        wished = plant.changing(errors, self.task.period, state.speed)
        changing = plant.together(wished, holding)
        units = self._from_link(plant.units, state)
        parts = tuple(
            jnp.clip((held + change) * (1 / unit), -3, 3)
            for held, change, unit in zip(holding, changing, units, strict=True)
        )
        action = tuple(jnp.clip(part, -1, 1) for part in plant.within_reach(parts))
        if self.task.delayed:  # a prediction hides the unknown part, which the integrators are to learn
            errors = tuple(w - i for w, i in zip(wanted, self._measured(now), strict=False))
            changing = plant.together(plant.changing(errors, self.task.period, now.speed), holding)
        lacking = tuple(
            (held + wish) * (1 / unit) - part
            for held, wish, unit, part in zip(holding, wished, units, action, strict=True)
        )
        return action, learn(integrals, changing, plant.waiting(lacking))

    def _measured(self, state: State) -> list[Scalar]:
        """Return the currents of the voltages, A."""
        plant = self.task.plant
        return [value * plant.current_limit for value in plant.measured(state.electrical)[: plant.inputs]]

    def _switch_state(self, wanted: Values, state: State) -> jax.Array:
        """Choose the best switch state by simulating one period of the data sheet's machine."""
        task = self.task
        plant, halving = task.plant, task.goals["current"].halving
        nominal = Params(plant.nominal, None, state.speed, state.speed)

        def distance(number: jax.Array) -> Scalar:
            voltage = self._from_link(plant.switched(number, state.electrical, state.angle), state)
            ahead = task.machine_after(state.electrical, state.speed, voltage, nominal)
            total: Scalar = 100.0 * jnp.maximum(plant.length(ahead) - 0.95, 0)
            for value, reference, unit in zip(plant.measured(ahead), wanted, halving, strict=False):
                error = (value * plant.current_limit - reference) * (1 / unit)
                total = total + error * error
            return total

        return jnp.argmin(jax.vmap(distance)(jnp.arange(plant.states)))

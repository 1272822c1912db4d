"""The reference players of every drive: cascaded control, on the machine of the data sheet.

* currents, continuous: on each axis a proportional controller that would reach the set point in one
  period (deadbeat, K = L / T), feed-forward of resistive and induced voltages, and an integrator
  against the errors that tolerances leave. It waits while the converter gives less than the
  requested voltage. In field coordinates this is field-oriented control;
* currents, finite: the switch state whose currents one period ahead, by the data sheet's machine,
  are nearest to their set points (finite-set model-predictive control with a horizon of one);
* torque: the currents of least loss for it, corrected by the difference between the measured torque
  and that of the data sheet's machine at the same currents; an integrator would wind up while
  currents still rise;
* speed: a proportional-integral controller of the torque, within the range of the torque task, or
  (shunt-wound machine) within what the nominal current makes; its integrator begins at the friction
  of the data sheet, and waits while the torque is at its bounds;
* position: a proportional controller of the speed, no faster than half of the torque brakes in
  time; its speed has no integrator, so that nothing winds up on the way.

With a computation delay it controls the state that the voltages will meet, predicted by the data
sheet's machine (Cortes et al. 2012, doi:10.1109/TIE.2011.2157284), and integrates the measured
errors. It knows the present voltage of the link.

An induction machine's flux is taken from the simulated machine, as an ideal observer gives it.

With noisy instruments the player is :class:`ObservingCascade`, which sees the observation only.
Otherwise instruments are exact, and it reads the state.

Sources: Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015), cascaded and
field-oriented control; Rodriguez et al. 2007, doi:10.1109/TIE.2006.888802, predictive current
control.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task

from ..machines.frames import Scalar, Values
from ..parts.instruments import EncoderAndNoise, NoisyInstruments
from ..parts.load_part import Profile
from ..plants.three_phase import Synchronous
from ..tasks.drive import Drive, Params, State

POSITION_PERIODS = 50.0
"""Continuous periods in which the position loop removes an error."""
LEARNING = 0.05
"""Part of an error that the integrators of voltage add in each period."""
SPEED_PERIODS = 10.0
"""Number of continuous periods in which the speed loop removes an error, if the torque suffices.

Its integrator takes ten times as long.
"""
MAX_LACK = 0.01
"""Lack of voltage, in parts of a converter's largest, above which the integrators stop.

The remaining error then says nothing about the machine, and an integrator that added it would wind
up.
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
        lacking: difference between requested and given voltage, in parts of the converter's largest
            voltage.
    """
    return tuple(
        integral + LEARNING * jnp.where(jnp.abs(lack) < MAX_LACK, change, 0.0)
        for integral, change, lack in zip(integrals, changing, lacking, strict=False)
    )


@privileged_player
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
        if isinstance(task.instruments, NoisyInstruments):
            return ObservingCascade(task)
        return cls(task)

    def initial(self, params: Params) -> Any:
        """Begin with the current integrators at zero.

        The torque's begins at the data sheet's friction at this speed.
        """
        task, zero = self.task, jnp.zeros_like(params.speed)
        friction = zero
        if task.kind == "speed":
            inertia = task.plant.nominal.inertia
            friction = -inertia * task.goal.friction._replace(inertia=0.0).acceleration(
                params.speed, 0.0, inertia
            )
        return Memory((zero,) * len(task.plant.currents), friction)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return voltages, or a switch state."""
        state: State = self._state_ahead(view.state, view.state.memories.waiting)
        currents, torque = self._currents(memory.torque, state, view.params)
        if self.task.finite:
            return self._switch_state(currents, state), Memory(memory.voltage, torque)
        action, voltage = self._voltages(currents, memory.voltage, state, view.state)
        return jnp.stack(action), Memory(voltage, torque)

    def _state_ahead(self, state: State, waiting: Any) -> State:
        """Return the state that the voltage will meet.

        With a delay it is one period ahead, as the data sheet predicts it.
        """
        return self._ahead(state, waiting) if self.task.delayed else state

    def _ahead(self, state: State, applied: Any) -> State:
        """Return currents and angle one period later by the data sheet.

        ``applied`` are voltages, or a switch state.
        """
        task = self.task
        nominal = Params(task.plant.nominal, None, state.speed, state.speed)
        voltage = task.actuator.voltage(applied, state.electrical, state.angle)
        next_electrical = task.machine_after(
            state.electrical, state.speed, self._from_link(voltage, state), nominal
        )
        angle = state.angle
        if task.angle.is_shown and task.kind != "position":
            angle = angle + task.plant.pole_pairs * task.period * state.speed
        return state._replace(electrical=next_electrical, angle=angle)

    def _from_link(self, voltage: Any, state: State) -> Any:
        """Scale a voltage on a nominal link, V, with the link's own."""
        link = self.task.link
        return link.machine_voltage(voltage, link.voltage(state.memories.link))

    def _currents(self, integral: Scalar, state: State, params: Params) -> tuple[Values, Scalar]:
        """Return the currents to reach, A, and the integrator's next value."""
        task = self.task
        if task.kind == "current":
            return state.setpoint, integral
        setpoint, value = state.setpoint[0], task.controlled_values(state, params)[0]
        if task.kind == "torque":
            torque_error = value - task.plant.nominal.torque(state.electrical)
            return self._for_torque(setpoint - torque_error, state), integral
        inertia = 1.5 * task.plant.nominal.inertia  # a load of half the rotor's inertia
        gain = inertia / (SPEED_PERIODS * task.goal.period)
        learning = 0.1 / SPEED_PERIODS * (task.period / task.goal.period)
        bounds = task.goals["torque"]
        if task.kind == "position":
            gap = setpoint - value
            approach = jnp.abs(gap) * (1 / (POSITION_PERIODS * task.goal.period))
            braking = jnp.sqrt(jnp.abs(gap) * (bounds.high[0] / inertia))
            speed = jnp.sign(gap) * jnp.minimum(approach, braking)
            torque = jnp.clip(gain * (speed - state.speed), bounds.low[0], bounds.high[0])
            return self._for_torque(torque, state), integral
        requested = gain * (setpoint - value) + integral
        low, high = task.plant.speed_torques(state.electrical) or (bounds.low[0], bounds.high[0])
        torque = jnp.clip(requested, low, high)
        is_within = (requested > low) & (requested < high)
        integral = integral + jnp.where(is_within, learning * gain * (setpoint - value), 0.0)
        return self._for_torque(torque, state), integral

    def _for_torque(self, torque: Scalar, state: State) -> Values:
        """Return currents, A, for an inner torque, N m, on the data sheet's machine."""
        return self.task.plant.currents_within(self.task.period, torque, state.electrical)

    def _voltages(
        self, goal_currents: Values, integrals: Values, state: State, measured_state: State
    ) -> tuple[Values, Values]:
        """Return the action at a state, and the integrators' next values.

        The integrators follow the present measurements.
        """
        plant = self.task.plant
        currents = self._measured_currents(state)
        errors = tuple(w - i for w, i in zip(goal_currents, currents, strict=False))
        # A voltage without a current of its own has no error and no integral.
        integral = (*integrals, *[0.0] * (plant.inputs - len(integrals)))
        resistive = [
            resistance * current
            for resistance, current in zip(plant.resistances(), currents, strict=True)
        ]
        induced = plant.induced_voltages(state.electrical, state.speed)
        holding = tuple(
            r + i + learnt for r, i, learnt in zip(resistive, induced, integral, strict=True)
        )
        changes = plant.changing_voltages(errors, self.task.period, state.speed)
        changing = self._limit_changes(changes, holding)
        units = self._from_link(plant.units, state)
        shares = tuple(
            jnp.clip((holding_voltage + change) * (1 / unit), -3, 3)
            for holding_voltage, change, unit in zip(holding, changing, units, strict=True)
        )
        action = tuple(jnp.clip(share, -1, 1) for share in plant.limit_action(shares))
        if self.task.delayed:
            # A prediction hides the unknown part, which the integrators are to learn.
            present_currents = self._measured_currents(measured_state)
            errors = tuple(
                goal - present
                for goal, present in zip(goal_currents, present_currents, strict=False)
            )
            changing = self._limit_changes(
                plant.changing_voltages(errors, self.task.period, measured_state.speed), holding
            )
        lacking = tuple(
            (holding_voltage + change_voltage) * (1 / unit) - share
            for holding_voltage, change_voltage, unit, share in zip(
                holding, changes, units, action, strict=True
            )
        )
        return action, learn(integrals, changing, plant.lack_per_integrator(lacking))

    def _limit_changes(self, changing: Values, holding: Values) -> Values:
        """Return the changing voltages, V, to request besides those that hold the currents."""
        return self.task.plant.limit_changes(changing, holding)

    def _measured_currents(self, state: State) -> list[Scalar]:
        """Return the currents of the voltages, A."""
        plant = self.task.plant
        return [
            value * plant.current_limit for value in plant.measure(state.electrical)[: plant.inputs]
        ]

    def _switch_state(self, currents: Values, state: State) -> jax.Array:
        """Choose the best switch state by simulating one period of the data sheet's machine."""
        task = self.task
        plant, halving = task.plant, task.goals["current"].halving
        nominal = Params(plant.nominal, None, state.speed, state.speed)

        def distance(number: jax.Array) -> Scalar:
            voltage = self._from_link(
                plant.switched_voltage(number, state.electrical, state.angle), state
            )
            next_electrical = task.machine_after(state.electrical, state.speed, voltage, nominal)
            total: Scalar = 100.0 * jnp.maximum(plant.length(next_electrical) - 0.95, 0)
            for value, setpoint, unit in zip(
                plant.measure(next_electrical), currents, halving, strict=False
            ):
                error = (value * plant.current_limit - setpoint) * (1 / unit)
                total = total + error * error
            return total

        return jnp.argmin(jax.vmap(distance)(jnp.arange(plant.states)))


class Observed(NamedTuple):
    """Memory of the cascade behind an observer."""

    voltage: Values
    """V, of each current's loop: by how much holding a current needs more than the data sheet says
    """
    torque: Scalar
    """N m, of the load"""
    covariance: Values
    """Covariance of the errors of speed and load.

    It holds the variance of the speed, the covariance, and the variance of the load.
    """
    state: State
    """Estimate for the step before"""
    steps: Scalar
    """Number of steps so far"""


class ObservingCascade(Cascade):
    """The cascade on estimates, for noisy instruments: it sees what an agent sees.

    A Kalman filter with a constant gain predicts the currents by the machine and the voltages of
    the last step. It learns the voltages that the data sheet lacks, which tell the torque. A second
    filter predicts the speed by the torque and learns the load. The gains follow from the
    instruments' noise and from how far the machine may be from its data sheet.

    Source: Simon, Optimal State Estimation (2006), sections 5.1 and 7.3 (constant gains).
    """

    privileged = False

    LEARNING = 0.02
    """Part of an unexpected change of a current by which the learnt voltages follow."""
    MISMATCH = 0.1
    """Part of a step's change of a current that the data sheet gets wrong."""
    UNKNOWN_LOAD = 1 / 3
    """Part of a step's change of a speed that the data sheet gets wrong."""
    LOAD = 0.2
    """Standard deviation of the load, in parts of the largest torque.

    Within an episode it may change as much again.
    """
    POSITION = 0.1
    """Part of an unexpected position by which the estimate follows."""
    MIN_TELLING_SPEED = 0.08
    """Speed, in parts of the limit, below which an induced voltage tells little of a flux."""

    def initial(self, params: Params) -> Any:
        """Begin with nothing observed."""
        task, zero = self.task, jnp.zeros((), self.task.dtype)
        # unused; no quotient is infinite.
        state = task.shown_state(jnp.ones(task.observation_space.shape, task.dtype))
        unknown = (
            zero + self._speed_noise**2,
            zero,
            zero + (self.LOAD * task.goals["torque"].high[0]) ** 2,
        )
        return Observed((zero,) * len(task.plant.currents), zero, unknown, state, zero)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return voltages, or a switch state, from the observation alone."""
        task = self.task
        measured, started = task.shown_state(view.observation), memory.steps > 0
        learnt, electrical = self._observe_currents(memory, measured)
        speed, load, covariance = self._observe_speed(memory, measured.speed)
        angle = measured.angle
        if task.kind == "position":
            turned = memory.state.angle + task.period * memory.state.speed
            angle = turned + self.POSITION * (angle - turned)
        observed = (
            learnt,
            load,
            covariance,
            measured._replace(electrical=electrical, speed=speed, angle=angle),
        )
        first_memory = memory.voltage, memory.torque, memory.covariance, measured
        learnt, load, covariance, state = jax.tree.map(
            lambda a, b: jnp.where(started, a, b), observed, first_memory
        )
        nominal = Params(task.plant.nominal, None, state.speed, state.speed)
        state_ahead = self._state_ahead(
            state, self._subtract_learnt(state.memories.waiting, learnt, state)
        )
        if task.kind == "torque":
            state_ahead = state_ahead._replace(
                setpoint=(state_ahead.setpoint[0] - self._unknown_torque(learnt, state),)
            )
        currents, _ = self._currents(load, state_ahead, nominal)
        if task.finite:
            action = self._switch_state(currents, state_ahead)
        else:
            action = jnp.stack(self._voltages(currents, learnt, state_ahead, state)[0])
        return action, Observed(learnt, load, covariance, state, memory.steps + 1)

    def _unknown_torque(self, learnt: Values, state: State) -> Scalar:
        """Return the torque beyond the data sheet's, N m.

        It is the power of the learnt voltages divided by the speed.
        """
        plant = self.task.plant
        if self.task.finite or not isinstance(plant, Synchronous):
            return 0.0 * state.speed
        power = 1.5 * (learnt[0] * state.electrical.d + learnt[1] * state.electrical.q)
        hardly = self.MIN_TELLING_SPEED * plant.speed_limit
        return power * state.speed / (state.speed * state.speed + hardly * hardly)

    def _subtract_learnt(self, applied: Any, learnt: Values, state: State) -> Any:
        """Subtract the learnt voltages from the applied ones.

        They are what holding the currents needs more than the data sheet says.
        """
        if self.task.finite or applied == ():
            return applied
        units = self._from_link(self.task.plant.units, state)
        learnt = (*learnt, *[0.0] * (len(applied) - len(learnt)))
        return tuple(
            share - volts * (1 / unit)
            for share, volts, unit in zip(applied, learnt, units, strict=True)
        )

    @property
    def _current_gain(self) -> float:
        """Part of the error of predicted currents that corrects the prediction."""
        plant = self.task.plant
        current_rate = max(
            unit / inductance
            for unit, inductance in zip(plant.units, plant.inductances(), strict=False)
        )
        return _gain(
            self.MISMATCH * current_rate * self.task.period / plant.current_limit, self._deviation
        )

    @property
    def _speed_noise(self) -> float:
        """Deviation of the shown speed, rad/s.

        An encoder's errors cancel over two steps, and so count for less.
        """
        instruments = self.task.instruments
        if isinstance(instruments, EncoderAndNoise):
            return instruments.quantum / 6
        return self._deviation * self.task.plant.speed_limit

    @property
    def _deviation(self) -> float:
        instruments = self.task.instruments
        assert isinstance(instruments, NoisyInstruments)
        return instruments.deviation

    def _observe_currents(self, memory: Observed, measured_state: State) -> tuple[Values, Any]:
        """Return the learnt voltages, and the electrical state."""
        task, plant, previous, gain = self.task, self.task.plant, memory.state, self._current_gain
        applied = self._subtract_learnt(
            task.actuator.choice(measured_state.applied), memory.voltage, previous
        )
        measured = plant.measure(measured_state.electrical)
        expected = plant.measure(self._ahead(previous, applied).electrical)
        errors = tuple(s - e for s, e in zip(measured, expected, strict=True))
        electrical = plant.electrical_of(
            tuple(e + gain * o for e, o in zip(expected, errors, strict=True)),
            plant.directions(measured_state.electrical, measured_state.angle),
        )
        amperes = tuple(o * plant.current_limit for o in errors[: len(plant.currents)])
        changing = plant.changing_voltages(amperes, task.period, measured_state.speed)
        rate = self.LEARNING * gain
        learnt = tuple(
            volts - rate * change for volts, change in zip(memory.voltage, changing, strict=False)
        )
        return learnt, electrical

    def _observe_speed(self, memory: Observed, measured: Scalar) -> tuple[Scalar, Scalar, Values]:
        """Return speed, load and their covariance, by one step of a Kalman filter."""
        task, plant, previous = self.task, self.task.plant, memory.state
        per = task.period / (1.5 * plant.nominal.inertia) if task.loaded else 0.0
        max_torque = task.goals["torque"].high[0]
        unknown = self.UNKNOWN_LOAD * per * max_torque
        if isinstance(task.load, Profile):
            unknown = task.period * task.design.steady_acceleration
        speed_change = per * (plant.nominal.torque(previous.electrical) - memory.torque)
        speed_variance, cross_variance, load_variance = memory.covariance
        speed_variance = (
            speed_variance - 2 * per * cross_variance + per * per * load_variance + unknown**2
        )
        cross_variance = cross_variance - per * load_variance
        load_variance = load_variance + (self.LOAD * max_torque) ** 2 * (1 / task.card.horizon)
        share = 1 / (speed_variance + self._speed_noise**2)
        speed_error, gain, load_gain = (
            measured - (previous.speed + speed_change),
            speed_variance * share,
            cross_variance * share,
        )
        covariance = (
            (1 - gain) * speed_variance,
            (1 - gain) * cross_variance,
            load_variance - load_gain * cross_variance,
        )
        return (
            previous.speed + speed_change + gain * speed_error,
            memory.torque + load_gain * speed_error,
            covariance,
        )


def _gain(change: float, noise: float) -> float:
    """Return a Kalman filter's constant gain.

    The filtered value moves unpredictably by ``change`` a step.
    """
    ratio = change / noise
    return 0.5 * ratio * (math.sqrt(ratio * ratio + 4) - ratio)

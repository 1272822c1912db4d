"""Control currents, torque, speed or position of an electric drive by the voltages or switch states of its converter.

One task for every machine: ``card.settings`` names the machine (:data:`~.plants.PLANTS`), the goal and the control.
Dynamics: the machine's equations (``dc.py``, ``synchronous.py``, ``induction.py``) by one Runge-Kutta step a step
of the episode. Currents and torque are controlled at a speed that a test bench holds; speed and position with a
load of inertia, Coulomb and viscous friction. Tasks of currents, torque and speed follow gym-electric-motor 3.0.3
(doi:10.21105/joss.02498), with spaces that hold, time limits, seeded references, contexts, and periods in which a
voltage moves a current by less than its limit.

======================  ====================================================================================
action                  continuous: a voltage a converter in [-1, 1] of its largest; three-phase: d and q in field
                        coordinates, shortened to the unit circle. Finite: a switch state, with several converters the
                        first one's plus that of the second times the number of the first one's
observation             currents (by the limit; of an induction machine also the rotor's flux by its nominal value),
                        speed (by the limit), torque where it is controlled, each reference, each error (by ten times
                        the halving error), the voltages or the state applied in the last step; finite and three-phase:
                        cosine and sine of the angles that switches meet. Instruments end at +-1.5
reward                  mean over the controlled quantities of 1 / (1 + |error| / halving error), in (0, 1]: the error
                        at the end of the step against the reference shown at its beginning. Every step pays, so
                        that ending early never does. Halving errors: :class:`Goal`
cost                    by how much the largest current exceeds the nominal one, in parts of it
terminated              over-current or over-speed: beyond the limit
success                 every error below its halving error
reference               a random walk: each moves by N(0, s^2) a step, s of the episode log-uniform in the goal's range,
                        and stays within its bounds
start                   no torque, induction and separately excited machines magnetised; the first reference anywhere
                        within its bounds (speed: near the speed at the start; position: near standstill at zero)
context                 parameters within their tolerance; current and torque: the speed; speed and position: the load's
                        inertia, zero to that of the rotor, and friction. Speed or inertia of train and test in
                        alternating bands
======================  ====================================================================================

That is the task of a plain id. Its parts are data (``card.options``): another choice of them is another task of the
same id, in which a part that is not chosen costs nothing. Kinds of references: ``reference.py``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.card import TaskCard
from rlbench_suite.task import Task

from ..alternating_bands import alternating_bands
from ..runge_kutta import rk4
from . import scope
from .frames import Scalar, wrapped
from .goals import GOALS, Goal
from .load import ConstantSpeed, Polynomial
from .plant import Plant, Values
from .plants import PLANTS
from .reference import REFERENCES, Range
from .three_phase_plants import ThreePhase

ENDS = 1.5
"""Of instruments, in parts of the limit."""
BANDS = 40
STEADY = 0.4
"""Part of the torque that a wave of the speed may take with the largest inertia."""
ERROR_UNIT = 10.0
"""Halving errors that an error of one stands for in the observation."""


class Params(NamedTuple):
    """The context."""

    machine: Any
    load: Any
    speed: Scalar
    """rad/s, at the start"""
    pace: Scalar
    """0..1: how fast references move, from the goal's slowest to its fastest"""


class Parts(NamedTuple):
    """What chosen parts of the drive remember; nothing where they are the usual ones."""

    reference: Any = ()
    """See ``reference.py``"""


class State(NamedTuple):
    """Where the drive is and where it should be."""

    electrical: Any
    speed: Scalar
    """rad/s"""
    angle: Scalar
    """rad: electrical, of the rotor; where position is controlled the shaft's own, full turns counted"""
    reference: Values
    """A, N m, rad/s or rad"""
    applied: Values
    """Of the last step: voltages in parts of the largest, or the state of each switch as 0 or 1"""
    parts: Parts = Parts()


class Drive(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "error": "largest error of a controlled quantity, in halving errors",
        "current": "largest current, in parts of the limit",
        "torque": "N m",
        "speed": "rad/s",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        machine, self.kind = card.settings["machine"], card.settings["goal"]
        self.plant: Plant = PLANTS[machine]()
        self.loaded = self.kind in ("speed", "position")
        """Whether the shaft turns a load; a test bench holds its speed otherwise."""
        self.finite = card.settings["control"] == "finite"
        self.goal: Goal = GOALS[machine, self.kind]
        self.period = self.goal.finite_period if self.finite else self.goal.period
        pace = self.period / self.goal.period  # shorter steps, shorter moves
        self.names = self.plant.currents if self.kind == "current" else (self.kind,)
        self.three_phase = isinstance(self.plant, ThreePhase)
        self.jump = self.goal.jump * (0.5 if self.finite else 1)  # episodes of switch states are shorter, in s
        jump = self.jump if self.loaded else math.inf
        self.ranges = tuple(
            Range(low, high, pace * slowest, math.log(fastest / slowest), pace * self._steepest(fastest), jump)
            for low, high, slowest, fastest in zip(
                self.goal.low, self.goal.high, self.goal.slowest, self.goal.fastest, strict=True
            )
        )
        self.references = REFERENCES[card.option("reference")](card.horizon)
        self.states = self.plant.states
        measured = len(self.plant.measured_names) + 1 + (self.kind == "torque") + 2 * len(self.names)
        self.switches = int(math.log2(self.states))
        applied = self.switches if self.finite else self.plant.inputs
        turning = 2 * self.plant.turning * self.finite
        bound = np.array([ENDS] * (measured + applied + turning))
        self.observation_space = self.box(-bound, bound)
        self.action_space = (
            spaces.Discrete(self.states) if self.finite else self.box([-1] * self.plant.inputs, [1] * self.plant.inputs)
        )
        self.reward_space = self.box(0, 1)

    def _steepest(self, fastest: float) -> float:
        """What a controlled quantity can change in every continuous step, where its fastest move is this."""
        if self.kind == "position":  # a cascade without feed-forward lags behind: here by half a halving error
            return self.goal.halving[0] / 100
        if self.kind == "speed":
            torque = GOALS[self.card.settings["machine"], "torque"]
            mean = 0.5 * (torque.high[0] - torque.low[0])
            return min(fastest, STEADY * self.goal.period * mean / (2 * self.plant.nominal.inertia))
        return fastest

    # -- an episode --------------------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """A machine within its tolerances, at a speed or with a load in the bands of the split."""
        parameters = len(self.plant.nominal)
        u = self.uniform(key, parameters + 4)

        def near(nominal: float, tolerance: float, unit: Scalar) -> Scalar:
            return nominal * (1 - tolerance + 2 * tolerance * unit)

        machine = type(self.plant.nominal)(
            *(near(n, t, u[i]) for i, (n, t) in enumerate(zip(self.plant.nominal, self.plant.tolerance, strict=True)))
        )
        low, high = self.goal.speeds
        load: Any = ConstantSpeed()
        speed = alternating_bands(u[-1], split, low, high, BANDS)
        if self.loaded:
            inertia = alternating_bands(u[-1], split, 0.0, self.plant.nominal.inertia, BANDS)
            friction = self.goal.friction
            load = Polynomial(
                near(friction.coulomb, 0.5, u[-3]),
                near(friction.viscous, 0.5, u[-3]),
                jnp.zeros((), self.dtype),
                inertia,
            )
            speed = low + (high - low) * u[-4]
        return Params(machine, load, speed, u[-2])

    def initial(self, key: jax.Array, params: Params) -> State:
        """No torque; references anywhere, a speed's or position's near the one that there is."""
        u = self.uniform(key, len(self.names) + 1)
        zero = jnp.zeros((), self.dtype)
        reference = tuple(
            low + (high - low) * u[i] for i, (low, high) in enumerate(zip(self.goal.low, self.goal.high, strict=True))
        )
        if self.loaded:
            away = (params.speed if self.kind == "speed" else zero) + self.jump * (2 * u[0] - 1)
            reference = (jnp.clip(away, self.goal.low[0], self.goal.high[0]),)
        angle = 2 * math.pi * (u[-1] - 0.5) if self.finite and self.three_phase else zero
        applied = (zero,) * (self.switches if self.finite else self.plant.inputs)
        still = self.plant.still(params.machine)
        reference = self._attainable(reference)
        parts = Parts(self.references.begin(reference, self.ranges, params.pace, jax.random.fold_in(key, 1)))
        return State(still, params.speed, angle, reference, applied, parts)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """One Runge-Kutta step, then new references."""
        if self.finite:
            voltage = self.plant.switched(action, state.electrical, state.angle)
            applied = tuple((action >> bit & 1).astype(self.dtype) for bit in range(self.switches))
        else:
            applied = self.plant.within_reach(tuple(action[i] for i in range(self.plant.inputs)))
            voltage = self.plant.voltage(applied, state.electrical, state.angle)
        electrical, speed, angle = self.moved(state, voltage, params)
        if self.finite and self.three_phase:
            angle = wrapped(angle + (self.plant.pole_pairs * self.period) * state.speed)
        reference, memory = self.references.step(state.reference, state.parts.reference, self.ranges, params.pace, key)
        return State(electrical, speed, angle, self._attainable(reference), applied, Parts(memory))

    def moved(self, state: State, voltage: Any, params: Params) -> tuple[Any, Scalar, Scalar]:
        """Electrical state, speed (rad/s) and the shaft's angle (rad, where position is controlled) one period later.

        ``voltage``: constant over it, V.
        """
        electrical, speed, angle = state.electrical, state.speed, state.angle
        if not self.loaded:
            return self.machine_after(electrical, speed, voltage, params), speed, angle
        machine = params.machine

        def rate(_: float, now: tuple[Any, ...]) -> tuple[Any, ...]:
            electrical, speed, *angle = now
            acceleration = params.load.acceleration(speed, machine.torque(electrical), machine.inertia)
            return machine.derivative(electrical, voltage, speed), acceleration, *(speed for _ in angle)

        if self.kind == "position":
            electrical, speed, angle = rk4(rate, (electrical, speed, angle), self.period)
        else:
            electrical, speed = rk4(rate, (electrical, speed), self.period)
        return electrical, speed, angle

    def machine_after(self, electrical: Any, speed: Scalar, voltage: Any, params: Params) -> Any:
        """Electrical state one period later at a constant speed."""
        return rk4(lambda _, now: params.machine.derivative(now, voltage, speed), electrical, self.period)

    def _attainable(self, reference: Values) -> Values:
        """References of the stator's d and q current within the nominal circle."""
        if self.kind != "current" or not self.three_phase:
            return reference
        d, q, *others = reference
        most = jnp.sqrt(self.plant.nominal_current**2 - d * d)
        return d, jnp.clip(q, -most, most), *others

    def controlled(self, state: State, params: Params) -> Values:
        """The controlled quantities, A, N m, rad/s or rad."""
        if self.kind == "current":
            measured = self.plant.measured(state.electrical)[: len(self.names)]
            return tuple(value * self.plant.current_limit for value in measured)
        if self.kind == "torque":
            return (params.machine.torque(state.electrical),)
        return (state.angle if self.kind == "position" else state.speed,)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """See the table."""
        measured = [*self.plant.measured(state.electrical), state.speed * (1 / self.plant.speed_limit)]
        controlled = self.controlled(state, params)
        if self.kind == "torque":
            measured.append(controlled[0] * (1 / self.goal.scale))
        references = [reference * (1 / self.goal.scale) for reference in state.reference]
        errors = [
            (reference - value) * (1 / (ERROR_UNIT * halving))
            for reference, value, halving in zip(state.reference, controlled, self.goal.halving, strict=True)
        ]
        turning = self.plant.directions(state.electrical, state.angle) if self.finite else ()
        shown = self.stack(*measured, *references, *errors, *turning, *state.applied)
        return jnp.clip(shown, -ENDS, ENDS)

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """How near the controlled quantities came to the references that the action was chosen for."""
        total: Scalar = 0.0
        values = self.controlled(next_state, params)
        for reference, value, halving in zip(state.reference, values, self.goal.halving, strict=True):
            total = total + halving / (halving + jnp.abs(value - reference))
        return total * (1 / len(values))

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Over-current or over-speed."""
        return (self.plant.length(state.electrical) > 1) | (jnp.abs(state.speed) > self.plant.speed_limit)

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Excess over the nominal current, in parts of it."""
        part = self.plant.current_limit / self.plant.nominal_current
        return jnp.maximum(self.plant.length(next_state.electrical) * part - 1, 0)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """``success`` and the measures."""
        largest: Scalar = 0.0
        values = self.controlled(state, params)
        for reference, value, halving in zip(state.reference, values, self.goal.halving, strict=True):
            largest = jnp.maximum(largest, jnp.abs(value - reference) * (1 / halving))
        return {
            "success": largest < 1,
            "error": largest,
            "current": self.plant.length(state.electrical),
            "torque": params.machine.torque(state.electrical),
            "speed": state.speed,
        }

    # -- text and pixels ---------------------------------------------------------------------------------------

    @property
    def quantity(self) -> str:
        """Unit of what is controlled."""
        return {"current": "A", "torque": "N m", "speed": "rad/s", "position": "rad"}[self.kind]

    def why_over(self, state: State, params: Params) -> str:
        """What tripped it."""
        current = float(self.plant.length(state.electrical)) * self.plant.current_limit
        if current > self.plant.current_limit:
            return f"over-current: {current:.4g} A, the limit is {self.plant.current_limit:.4g} A"
        return f"over-speed: {float(state.speed):.0f} rad/s, the limit is {self.plant.speed_limit:.0f} rad/s"

    def how_to_act(self) -> str:
        """One line for a text player."""
        if self.finite:
            first, *second = (f"0 to {states - 1} of the {fed}" for fed, states in self.plant.converters)
            sum_of = "".join(f": {first} plus {self.plant.converters[0][1]} times {other}" for other in second)
            return f"Answer with the switch state, a whole number from 0 to {self.states - 1}{sum_of}."
        parts = zip(self.plant.voltages, self.plant.units, strict=True)
        axes = ", ".join(f"{name} in parts of {unit:.1f} V" for name, unit in parts)
        return f"Answer with {self.plant.inputs} number(s) from -1 to 1: {axes}."

    def describe(self, state: State, params: Params) -> str:
        """All that is measured, asked for and applied, with units."""
        measured = [float(value) for value in self.plant.measured(state.electrical)]
        names = self.plant.measured_names
        scales = [self.plant.current_limit if name.startswith("i") else 1.0 for name in names]
        shown = ", ".join(
            f"{name} {value * scale:+.4g} {'A' if scale != 1 else 'of nominal'}"
            for name, value, scale in zip(names, measured, scales, strict=True)
        )
        values = [float(value) for value in self.controlled(state, params)]
        asked = "; ".join(
            f"{name} {value:+.4g} {self.quantity}, reference {float(reference):+.4g} {self.quantity}"
            for name, value, reference in zip(self.names, values, state.reference, strict=True)
        )
        applied = ", ".join(f"{float(part):+.3f}" for part in state.applied)
        angle = f" Angle {float(state.angle):+.3f} rad." if self.finite and self.three_phase else ""
        return (
            f"Controlled: {asked}. Measured: {shown}. Speed {float(state.speed):+.4g} rad/s.{angle} "
            f"Last {'switches' if self.finite else 'voltage'}: {applied}."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """See ``scope.py``."""
        measured = [float(value) for value in self.plant.measured(state.electrical)]
        gauges = [
            scope.Gauge(f"{name} ({self.quantity})", float(value), float(reference), low, high)
            for name, value, reference, low, high in zip(
                self.names, self.controlled(state, params), state.reference, self.goal.low, self.goal.high, strict=True
            )
        ]
        vector = (measured[0], measured[1]) if self.three_phase else None
        voltages = tuple(float(part) for part in state.applied)
        return scope.picture(vector, float(self.plant.length(state.electrical)), 1.1, gauges, voltages)

"""Control currents, torque, speed or position of an electric drive by the voltages or switch states of its converter.

One task for every machine: ``card.settings`` names the machine (``plants/catalogue.py``), the goal and the control.
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
success                 every error below its halving error, within the limits
reference               a random walk: each moves by N(0, s^2) a step, s of the episode log-uniform in the goal's range,
                        and stays within its bounds
start                   no torque, induction and separately excited machines magnetised; the first reference anywhere
                        within its bounds (speed: near the speed at the start; position: near standstill at zero)
context                 parameters within their tolerance; current and torque: the speed; speed and position: the load's
                        inertia, zero to that of the rotor, and friction. Speed or inertia of train and test in
                        alternating bands
======================  ====================================================================================

That is the task of a plain id. Its parts are data (``card.choices``): another choice of them is another task of the
same id, in which a part that is not chosen costs nothing. What it remembers is the last field of the state, and what
can be measured of it ends the observation:

======================  ====================================================================================
``reference``           kinds of references: ``reference.py``
``supply``              a link whose voltage varies: ``supply.py``. Actions are parts of what the link gives now;
                        observed is its voltage by the nominal one
``interlocking``        part of a period for which a leg's switches are both off: ``interlocking.py``. Three-phase: the
                        angles that switches meet are observed by continuous control too
``converter``           of direct-current machines, see ``converter.py``: four-quadrant (H bridge); two-quadrant, no
                        voltage below zero: action in [0, 1], speeds from half of the highest (what takes a current
                        down is the voltage that the speed induces); one-quadrant, no current below zero either:
                        currents and torques are positive. Where torque has both signs, no speed is controlled by one
                        quadrant, and a series machine gains nothing from two; positions and field currents need four
``dead_time``           periods after which an action is applied, as digital control has it; observed is the action that
                        waits, in the form of those that were applied. The first to wait keeps the currents, by the
                        data sheet; by switch states all are low
``load``                speed and position: friction; a constant torque instead of it (``HOISTED``); or friction and an
                        Ornstein-Uhlenbeck torque (``ornstein_uhlenbeck.py``). Currents and torque: a bench that holds
                        the speed, or moves it along a sine within the task's speeds, no faster than ``STEADY``
``solver``              ``solver.py``; ``exact`` for currents and torque on a constant or RC link
``noise``               deviation of every instrument in parts of its full scale: a Gaussian error at each step of
                        currents, flux, speed, torque and position. Rewards, words, pictures and the reference player
                        know the truth
======================  ====================================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.card import TaskCard
from rlbench_suite.component import Component
from rlbench_suite.task import Task

from ...alternating_bands import alternating_bands
from ...runge_kutta import rk4
from ..loads import ornstein_uhlenbeck
from ..loads.load import Constant, ConstantSpeed, Polynomial
from ..machines.frames import Scalar, Values, wrapped
from ..machines.solver import SOLVERS
from ..plants.catalogue import plant_of
from ..plants.plant import Plant
from ..plants.three_phase import ThreePhase
from ..power_electronics import interlocking
from ..power_electronics.supply import SUPPLIES, Link, Supply
from ..references.goals import GOALS, Goal
from ..references.reference import REFERENCES, Range
from ..references.wave import SHAPES, through
from . import components, scope

ENDS = 1.5
"""Of instruments, in parts of the limit."""
BANDS = 40
STEADY = 0.4
"""Part of the torque that a wave of the speed may take with the largest inertia."""
HOISTED = 0.3
"""Part of the torque's range, about its middle, that a constant load takes."""
DISTURBANCE, DISTURBED = 0.1, 0.02
"""Of an Ornstein-Uhlenbeck load: deviation in parts of the torque's range to its middle, and time constant, s."""
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
    link: Any = ()
    """A :class:`~.supply.Link`"""
    waiting: Any = ()
    """What was chosen in the last step and is applied in the next one: parts of the voltages, or a switch state"""
    load: Any = ()
    """Of an Ornstein-Uhlenbeck load its torque, N m; of a bench's profile the :class:`~.wave.Wave` of the speed"""


class Moving(NamedTuple):
    """What a step integrates; nothing where it stands still."""

    electrical: Any
    speed: Any = ()
    """rad/s"""
    angle: Any = ()
    """rad, of the shaft"""
    link: Any = ()
    """In parts of the nominal voltage"""


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
        self.kind = card.settings["goal"]
        self.plant: Plant = self.chosen_plant(plant_of(card))
        self.loaded = self.kind in ("speed", "position")
        """Whether the shaft turns a load; a test bench holds its speed otherwise."""
        self.finite = card.settings["control"] == "finite"
        goal = GOALS[card.settings["machine"], self.kind]
        self.goal: Goal = self.chosen_goal(self.plant.attainable(goal, self.kind))
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
        self.states = self.plant.states
        self.references = REFERENCES[card.settings["reference"]](card.horizon)
        self.load_kind = card.settings["load"]
        self.noise = float(card.settings["noise"])
        supply, solver = card.settings["supply"], card.settings["solver"]
        if solver == "exact" and (supply.startswith("ac") or self.load_kind == "profile"):
            raise ValueError(
                f"{card.id}: solver 'exact' is for linear systems, not for supply {supply!r} with load "
                f"{self.load_kind!r}; take supply 'ideal' or 'rc' and load 'bench', or solver 'rk4'."
            )
        self.solve = SOLVERS[solver]
        self.supply: Supply | None = None if supply == "ideal" else SUPPLIES[supply]()
        self.delayed = card.settings["dead_time"] == "1"
        self.interlocking = float(card.settings["interlocking"])
        self.turned = self.three_phase and (self.finite or self.interlocking > 0)
        """Whether it matters where the rotor stands."""
        measured = len(self.plant.measured_names) + 1 + (self.kind == "torque") + 2 * len(self.names)
        applied = self.plant.switches if self.finite else self.plant.inputs
        turning = 2 * self.plant.turning * self.turned
        measured += (self.supply is not None) + applied * self.delayed
        bound = np.array([ENDS] * (measured + applied + turning))
        self.observation_space = self.box(-bound, bound)
        self.action_space = (
            spaces.Discrete(self.states)
            if self.finite
            else self.box([self.plant.lowest] * self.plant.inputs, [1] * self.plant.inputs)
        )
        self.reward_space = self.box(0, 1)

    def chosen_plant(self, plant: Plant) -> Plant:
        """What is controlled: the machine's plant, or another that a subclass puts in its place."""
        return plant

    def chosen_goal(self, goal: Goal) -> Goal:
        """What is asked of it: the machine's goal, or what a subclass makes of it."""
        return goal

    def _steepest(self, fastest: float) -> float:
        """What a controlled quantity can change in every continuous step, where its fastest move is this."""
        if self.kind == "position":  # a cascade without feed-forward lags behind: here by half a halving error
            return self.goal.halving[0] / 100
        return min(fastest, self.goal.period * self._steady_acceleration) if self.kind == "speed" else fastest

    @property
    def _torques(self) -> tuple[float, float]:
        """N m: the middle of the torque's range, and how far its ends are from it."""
        torque = GOALS[self.card.settings["machine"], "torque"]
        return 0.5 * (torque.high[0] + torque.low[0]), 0.5 * (torque.high[0] - torque.low[0])

    @property
    def _steady_acceleration(self) -> float:
        """rad/s^2, that a part of the torque keeps up."""
        return STEADY * self._torques[1] / (2 * self.plant.nominal.inertia)

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
            if self.load_kind == "constant":
                middle, away = self._torques
                load = Constant(middle + HOISTED * away * (2 * u[-3] - 1), inertia)
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
        angle = 2 * math.pi * (u[-1] - 0.5) if self.turned and self.kind != "position" else zero
        applied = (zero,) * (self.plant.switches if self.finite else self.plant.inputs)
        still = self.plant.still(params.machine)
        reference = self._attainable(reference)
        parts = Parts(
            self.references.begin(reference, self.ranges, params.pace, jax.random.fold_in(key, 1)),
            self.supply.begin(jax.random.uniform(jax.random.fold_in(key, 2), (), self.dtype)) if self.supply else (),
            self._first_waiting(still, params.speed) if self.delayed else (),
            self._first_load(params.speed, jax.random.fold_in(key, 3)),
        )
        return State(still, params.speed, angle, reference, applied, parts)

    def _first_waiting(self, still: Any, speed: Scalar) -> Any:
        """Nothing sudden: voltages that keep the currents, or all switches low, which last less."""
        return jnp.int32(0) if self.finite else self.plant.holding(still, speed)

    def _first_load(self, speed: Scalar, key: jax.Array) -> Any:
        """What a load remembers: a torque as after a long time, or a sine of the speed that begins at this one."""
        if self.load_kind == "ornstein-uhlenbeck":
            return DISTURBANCE * self._torques[1] * jax.random.normal(key, (), self.dtype)
        if self.load_kind != "profile":
            return ()
        u = self.uniform(key, 4)
        slope = self.period * self._steady_acceleration * jnp.exp(-math.log(10) * u[0])
        return through("sinus", speed, self.goal.speeds, slope, math.inf, u[1], u[2], u[3])

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """One Runge-Kutta step, then new references."""
        chosen: Any = action
        if not self.finite:
            chosen = self.plant.within_reach(tuple(action[i] for i in range(self.plant.inputs)))
        given, waiting = (state.parts.waiting, chosen) if self.delayed else (chosen, ())
        after = self.driven(state, given, params)
        reference, memory = self.references.step(state.reference, state.parts.reference, self.ranges, params.pace, key)
        parts = after.parts._replace(reference=memory, waiting=waiting)
        if self.load_kind == "ornstein-uhlenbeck":
            normal = jax.random.normal(jax.random.fold_in(key, 1), (), self.dtype)
            deviation = DISTURBANCE * self._torques[1]
            load = ornstein_uhlenbeck.ahead(parts.load, normal, deviation, DISTURBED, self.period)
            parts = parts._replace(load=load)
        return after._replace(reference=self._attainable(reference), parts=parts)

    def driven(self, state: State, given: Any, params: Params) -> State:
        """The drive one period later; ``given``: parts of the voltages that the converter gives, or a switch state."""
        if not self.finite:
            angle = self.electrical_angle(state)
            if self.interlocking:
                voltage = self.plant.interlocked(given, state.electrical, angle, self.interlocking)
            else:
                voltage = self.plant.voltage(given, state.electrical, angle)
            return self.moved(state, voltage, params, self.period)._replace(applied=given)
        legs = tuple(leg.astype(self.dtype) for leg in self.plant.legs(given))
        rest = self.period
        if self.interlocking:
            currents = self.plant.leg_currents(state.electrical, state.angle)
            between = interlocking.freewheeling(state.applied, legs, currents)
            voltage = self.plant.across(between, state.electrical, state.angle)
            state = self.moved(state, voltage, params, self.interlocking * self.period)
            rest = (1 - self.interlocking) * self.period
        voltage = self.plant.switched(given, state.electrical, state.angle)
        return self.moved(state, voltage, params, rest)._replace(applied=legs)

    def moved(self, state: State, voltage: Any, params: Params, duration: float) -> State:
        """The machine, its shaft and its supply ``duration`` s later.

        ``voltage``: V, constant over this time but for the link's voltage, which is nominal in it.
        """
        machine, supply, (_, link, _, load) = params.machine, self.supply, state.parts
        turns, sinus = duration / self.period, SHAPES["sinus"]

        def rate(part: float, now: Moving) -> Moving:
            now = now._replace(electrical=self.plant.conducting(now.electrical, machine))
            speed = now.speed if self.loaded else state.speed
            if self.load_kind == "profile":
                speed = load.ahead(part * turns).at(sinus)
            torque, acceleration = machine.torque(now.electrical), ()
            if self.load_kind == "ornstein-uhlenbeck":
                torque = torque - load
            if self.loaded:
                acceleration = params.load.acceleration(speed, torque, machine.inertia)
            given, charging = voltage, ()
            if supply:
                drawn = self.plant.power(voltage, now.electrical) * (1 / self.plant.rating)
                charging = supply.rate(now.link, supply.ahead(link.phase, part * duration), drawn)
                given = jax.tree.map(lambda volts: now.link * volts, voltage)
            return Moving(
                machine.derivative(now.electrical, given, speed),
                acceleration,
                speed if self.kind == "position" else (),
                charging,
            )

        begun = Moving(
            state.electrical,
            state.speed if self.loaded else (),
            state.angle if self.kind == "position" else (),
            link.voltage if supply else (),
        )
        after = self.solve(rate, begun, duration)
        speed = after.speed if self.loaded else state.speed
        if self.load_kind == "profile":
            load = load.ahead(turns)
            speed = load.at(sinus)
        angle = after.angle
        if self.kind != "position":
            angle = state.angle
            if self.turned:
                angle = wrapped(angle + (self.plant.pole_pairs * duration) * state.speed)
        if supply:
            link = Link(after.link, supply.ahead(link.phase, duration))
        return state._replace(
            electrical=self.plant.conducting(after.electrical, machine),
            speed=speed,
            angle=angle,
            parts=state.parts._replace(link=link, load=load),
        )

    def machine_after(self, electrical: Any, speed: Scalar, voltage: Any, params: Params) -> Any:
        """Electrical state one period later at a constant speed."""
        after = rk4(lambda _, now: params.machine.derivative(now, voltage, speed), electrical, self.period)
        return self.plant.conducting(after, params.machine)

    def electrical_angle(self, state: State) -> Scalar:
        """rad, of the rotor."""
        return self.plant.pole_pairs * state.angle if self.kind == "position" else state.angle

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
        if self.noise:
            measured, controlled = self._noisy(measured, controlled, key)
        references = [reference * (1 / self.goal.scale) for reference in state.reference]
        errors = [
            (reference - value) * (1 / (ERROR_UNIT * halving))
            for reference, value, halving in zip(state.reference, controlled, self.goal.halving, strict=True)
        ]
        turning = self.plant.directions(state.electrical, self.electrical_angle(state)) if self.turned else ()
        shown = self.stack(*measured, *references, *errors, *turning, *state.applied, *self._seen_parts(state))
        return jnp.clip(shown, -ENDS, ENDS)

    def _noisy(self, measured: list[Scalar], controlled: Values, key: jax.Array) -> tuple[list[Scalar], Values]:
        """What instruments show instead: each has one Gaussian error, in what is measured and in what is controlled."""
        errors = self.noise * jax.random.normal(key, (len(measured) + 1,), self.dtype)
        measured = [value + errors[i] for i, value in enumerate(measured)]
        if self.kind == "position":
            return measured, (controlled[0] + errors[-1] * self.goal.scale,)
        first, full = {
            "current": (0, self.plant.current_limit),
            "speed": (len(self.plant.measured_names), self.plant.speed_limit),
            "torque": (len(measured) - 1, self.goal.scale),
        }[self.kind]
        return measured, tuple(value * full for value in measured[first : first + len(controlled)])

    def _seen_parts(self, state: State) -> Values:
        """Of chosen parts: the link's voltage, and what waits to be applied."""
        _, link, waiting, _ = state.parts
        link = (link.voltage,) if self.supply else ()
        if self.delayed and self.finite:
            waiting = self.plant.legs(waiting)
        return (*link, *waiting)

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """How near the controlled quantities came to the references that the action was chosen for."""
        total: Scalar = 0.0
        values = self.controlled(next_state, params)
        for reference, value, halving in zip(state.reference, values, self.goal.halving, strict=True):
            total = total + halving / (halving + jnp.abs(value - reference))
        return total * (1 / len(values))

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Over-current or over-speed."""
        return self.tripped(state)

    def tripped(self, state: State) -> jax.Array:
        """Whether a limit is exceeded, which ends the episode without success."""
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
            "success": (largest < 1) & ~self.tripped(state),
            "error": largest,
            "current": self.plant.length(state.electrical),
            "torque": params.machine.torque(state.electrical),
            "speed": state.speed,
        }

    # -- text and pixels ---------------------------------------------------------------------------------------

    def observation_components(self) -> tuple[Component, ...]:
        """In the order of :meth:`observation`."""
        machine, now = self.card.settings["machine"], "in the last step"
        measured = components.measured(self.plant, machine, self.noise)
        if self.kind == "torque":
            measured.append(Component("torque", "torque of the machine", f"{self.goal.scale:g} N m"))
        waiting = components.applied(self.plant, machine, self.finite, "waiting", "in the next step")
        return (
            *measured,
            *self._asked(),
            *(
                Component(
                    f"error_{name}",
                    f"reference of {name} minus its value",
                    f"{ERROR_UNIT * halving:.4g} {self.quantity}",
                )
                for name, halving in zip(self.names, self.goal.halving, strict=True)
            ),
            *(components.turning(self.plant) if self.turned else ()),
            *components.applied(self.plant, machine, self.finite, "applied", now),
            *([Component("link", "voltage of the link, in parts of the nominal one")] if self.supply else ()),
            *(waiting if self.delayed else ()),
        )

    def _asked(self) -> list[Component]:
        unit = f"{self.goal.scale:.4g} {self.quantity}"
        return [Component(f"reference_{name}", f"what {name} should be now", unit) for name in self.names]

    def action_components(self) -> tuple[Component, ...]:
        """Voltages, or switch states."""
        return components.actions(self.plant, self.card.settings["machine"], self.finite)

    @property
    def quantity(self) -> str:
        """Unit of what is controlled."""
        return {"current": "A", "torque": "N m", "speed": "rad/s", "position": "rad"}[self.kind]

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """What tripped it."""
        current = float(info["current"]) * self.plant.current_limit
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
        return f"Answer with {self.plant.inputs} number(s) from {self.plant.lowest:.0f} to 1: {axes}."

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
        parts = f" Angle {float(self.electrical_angle(state)):+.3f} rad." if self.turned else ""
        if self.supply:
            parts += f" Link {float(state.parts.link.voltage):.4f} of nominal voltage."
        if self.delayed:
            waiting = self.plant.legs(int(state.parts.waiting)) if self.finite else state.parts.waiting
            parts += f" Waiting: {', '.join(f'{float(part):+.3f}' for part in waiting)}."
        return (
            f"Controlled: {asked}. Measured: {shown}. Speed {float(state.speed):+.4g} rad/s.{parts} "
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

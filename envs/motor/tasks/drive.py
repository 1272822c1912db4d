"""Control currents, torque, speed or position of an electric drive.

The actions are voltages or switch states of its converter.

This is the task of every machine: ``card.settings`` names the machine (``plants/catalogue.py``),
the goal and the control. One step of the episode is one Runge-Kutta step of the machine's equations
(``machines/``). A test bench sets the speed while currents or torque are controlled. A load of
inertia, Coulomb and viscous friction turns with the shaft while speed or position is controlled.
Tasks of currents, torque and speed follow gym-electric-motor 3.0.3 (doi:10.21105/joss.02498). In
addition they have spaces that hold, time limits, seeded set points, contexts, and periods in which
a voltage moves a current by less than its limit.

======================  ============================================================================
action                  continuous: the voltage of each converter in [-1, 1] of its largest;
                        three-phase machines take d and q in field coordinates, shortened to the
                        unit circle. Finite: a switch state; with two converters, the first one's
                        state plus the second one's times the number of the first one's
observation             currents (by the limit; an induction machine also shows the rotor's flux by
                        its nominal value), speed (by the limit), torque if it is controlled, each
                        set point, each error (by ten times the halving error), the voltages or the
                        switches of the last step. Finite and three-phase: also cosine and sine of
                        the angles that switches meet. Instruments end at +-1.5
reward                  mean over the controlled quantities of 1 / (1 + |error| / halving error), in
                        (0, 1]. The error at the end of the step is taken against the set point
                        shown at its beginning. Every step pays, so ending early never does. Halving
                        errors: :class:`Goal`. A context may weigh it, and take off a price of the
                        cost (``TERMS``)
cost                    excess of the largest current over the nominal one, in parts of it
terminated              over-current or over-speed: beyond the limit
success                 every error is below its halving error, and no limit is exceeded
set point               a random walk: each set point moves by N(0, s^2) a step and stays within its
                        bounds; s is drawn for the episode, log-uniform in the goal's range
start                   no torque; induction and separately excited machines are magnetised. The
                        first set point lies anywhere within its bounds (speed: near the speed at
                        the start; position: near zero)
context                 parameters within their tolerance; for currents and torque the speed; for
                        speed and position the load's friction, and its inertia from zero to that of
                        the rotor. Train and test take speed or inertia from alternating bands
======================  ============================================================================

A plain id has these parts. Other parts (``card.choices``) make another task of the same id. Each
part is a small class in ``parts/``, which owns its memory and what it shows. A part that is not
chosen costs nothing. Memories are the last field of the state; what can be measured of them ends
the observation.

======================  ============================================================================
``setpoint``            kind of set points: ``parts/setpoint_part.py``
``supply``              supply of a link whose voltage varies: ``power_electronics/supply.py``.
                        Actions are parts of the link's present voltage, which is observed by the
                        nominal one
``interlocking``        fraction of a period for which both switches of a leg are off:
                        ``power_electronics/interlocking.py``. Three-phase machines then show the
                        angles that switches meet under continuous control too
``converter``           converter of a direct-current machine: ``power_electronics/converter.py``.
                        Four-quadrant (H bridge). Two-quadrant: no voltage below zero, so actions
                        lie in [0, 1] and speeds in the upper half, where the induced voltage takes
                        a current down. One-quadrant: no current below zero either, so currents and
                        torques are positive. One quadrant controls no speed where torque has both
                        signs; two bring a series machine no gain; positions and field currents need
                        four
``delay``               periods after which an action is applied, as digital control has it. The
                        action that waits is observed. The first one to wait keeps the currents, by
                        the data sheet, or has all switches low
``load``                for speed and position: friction; a constant torque instead of it
                        (``HOIST_SHARE``); or friction and an Ornstein-Uhlenbeck torque. For
                        currents and torque: a bench that holds the speed, or moves it along a sine
                        within the task's speeds, no faster than ``STEADY_TORQUE_SHARE``:
                        ``parts/load_part.py``
``solver``              integration method: ``machines/solver.py``; ``exact`` serves currents and
                        torque on a constant or RC link
``noise``               deviation of every instrument in parts of its full scale: a Gaussian error
                        at each step of currents, flux, speed and position. The torque is then
                        estimated: that of the data sheet's machine at the measured currents and
                        flux. The reference player sees the observation only; rewards, text and
                        pictures use the true values
``conditions``          industrial: a delay of one period, a noise of 0.01, and an encoder whose
                        counts in the last period are the speed: ``parts/instruments.py``. The
                        field's coordinates are exact
======================  ============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from itertools import chain
from operator import add, or_
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import Constant, weights
from rlbench_suite.contexts.time_series import Column, Series
from rlbench_suite.core.arrays import Float
from rlbench_suite.core.component import Component, KeyFigure, scaled_component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.own_constants import OwnConstants
from ...shared.runge_kutta import rk4
from ..machines.frames import Scalar, Values
from ..parts import components
from ..parts.assembly import DriveSettings, Records, assemble
from ..parts.limit import Limit, OverCurrent, OverSpeed
from ..parts.load_part import within_tolerance
from ..parts.part import Design, Part
from ..parts.quantity import QUANTITIES, range_and_accuracy
from ..parts.setpoint_part import Range
from ..plants import data_sheet
from ..plants.catalogue import plant_of
from ..plants.data_sheet import round_number
from ..plants.plant import Plant
from ..plants.three_phase import ThreePhase
from ..setpoints.goals import GOALS, Goal
from . import scope

OBSERVATION_BOUND = 1.5
"""Ends of instruments, in parts of the limit."""
ERROR_UNIT = 10.0
"""Number of halving errors that an error of one stands for in the observation."""
ROUNDING = 1e-6
"""Relative slack of the reward's least value, for rounding."""
TERMS = weights(
    tracking=(1.0, "1 / (1 + |error| / halving error), mean over the controlled quantities"),
    overload=(
        0.0,
        (
            "the cost, taken off: excess of the current over the nominal one, in parts of it, up "
            "to the limit"
        ),
    ),
)


class Params(NamedTuple):
    """The context."""

    machine: Any
    load: Any
    speed: Scalar
    """rad/s, at the start"""
    pace: Scalar
    """0..1: how fast set points move, from the goal's slowest to its fastest"""


class Memories(NamedTuple):
    """Memories of the parts of a drive; empty if a part is the usual one."""

    setpoint: Any = ()
    """See ``parts/setpoint_part.py``"""
    link: Any = ()
    """A :class:`~..power_electronics.supply.Link`"""
    waiting: Any = ()
    """Voltages or switch state that were chosen in the last step and are applied in the next one"""
    load: Any = ()
    """See ``parts/load_part.py``"""
    instruments: Any = ()
    """See ``parts/instruments.py``"""


class Moving(NamedTuple):
    """Quantities that a step integrates; those that stand still are empty."""

    electrical: Any
    speed: Float = ()
    """rad/s"""
    angle: Float = ()
    """rad, of the shaft"""
    link: Float = ()
    """Voltage in parts of the nominal one"""


class State(NamedTuple):
    """Present state of the drive, and its set points."""

    electrical: Any
    speed: Scalar
    """rad/s"""
    angle: Scalar
    """Electrical angle of the rotor, rad.

    For position control it is the shaft's own, with full turns counted.
    """
    setpoint: Values
    """A, N m, rad/s or rad"""
    applied: Values
    """Choice of the last step: voltages in parts of the largest, or each switch as 0 or 1"""
    memories: Memories = Memories()


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
        self.plant: Plant = self.chosen_plant(plant_of(card))
        settings = DriveSettings.parse(card)
        self.kind, self.finite, self.delayed = settings.goal, settings.finite, settings.delayed
        self.goals = {
            kind: goal for (machine, kind), goal in GOALS.items() if machine == settings.machine
        }
        self.context_values = self._read_data_sheet(card)
        self.goal: Goal = self.chosen_goal(
            self.plant.attainable_goal(self.goals[self.kind], self.kind)
        )
        self.period = self.goal.finite_period if self.finite else self.goal.period
        torque = self.goals["torque"]
        self.design = Design(
            settings.machine, self.plant, self.goal, torque, self.period, self.dtype, self.uniform
        )
        self.quantity = QUANTITIES[self.kind](self.design)
        self.names, self.loaded = self.quantity.names, self.quantity.loaded
        # Episodes of switch states are shorter, in s.
        self.jump = self.goal.jump * (0.5 if self.finite else 1)
        self.ranges = self._ranges()
        memories = assemble(settings, self.design, self._records(), card.horizon)
        self.setpoints = memories.setpoints
        self.load = memories.load
        self.link = memories.link
        self.delay = memories.delay
        self.actuator = memories.actuator
        self.instruments = memories.instruments
        self.angle = memories.angle
        self.solve = memories.solve
        self.limits: tuple[Limit, ...] = OverCurrent(self.plant), OverSpeed(self.plant)
        self.observation_space = self.box(
            -OBSERVATION_BOUND, OBSERVATION_BOUND, (len(self.observation_components()),)
        )
        self.action_space = self.actuator.space(self.box)
        self.max_overload = self.plant.current_limit / self.plant.nominal_current - 1
        penalty = (1 + ROUNDING) * self.context_values.weight("overload") * self.max_overload
        self.reward_space = self.box(0 - penalty, self.context_values.weight("tracking"))

    def _read_data_sheet(self, card: TaskCard) -> OwnConstants:
        """Set the machine and the goals by a context's data sheet, and return its constants."""
        if not card.context:
            return OwnConstants(card, TERMS)
        constants = (*data_sheet.constants(self.plant, self.goals[self.kind].period), *TERMS)
        shipped = self.plant
        self.plant = data_sheet.own_plant(shipped, card.context)
        self.goals = data_sheet.scaled(self.goals, self.kind, shipped, self.plant, card.context)
        return OwnConstants(card, constants)

    def constants(self) -> tuple[Constant, ...]:
        """Return the data sheet, its limits, the period, and the weights of the reward's terms.

        Special drives have none that may be set.
        """
        if type(self) is not Drive or self.card.settings["supply"] != "ideal":
            return ()
        sheet = data_sheet.constants(self.plant, self.goal.period)
        return (*sheet, *self.context_values.present(TERMS)) if sheet else ()

    def series(self) -> tuple[Series, ...]:
        """Return the series of set points and of the load's torque, at the drive's period.

        Set points are within the goal's range.
        """
        if not self.constants():
            return ()
        ends = zip(self.names, self.goal.low, self.goal.high, strict=True)
        columns = tuple(
            Column(name, self.quantity.unit, round_number(low), round_number(high), "")
            for name, low, high in ends
        )
        words = "what is to be followed, in place of drawn set points"
        min_rows = 2 * (self.card.horizon + 1)
        setpoint = Series(
            "setpoint", words, columns, "s", self.period, min_rows, follows_constants=True
        )
        if not self.loaded:
            return (setpoint,)
        torque = self.goals["torque"]
        low, high = round_number(torque.low[0]), round_number(torque.high[0])
        column = Column(
            "load_torque", "N m", low, high, "positive: slows a shaft that turns forwards"
        )
        words = "torque of the load beside friction, in place of a drawn one"
        load = Series("load", words, (column,), "s", self.period, min_rows, follows_constants=True)
        return setpoint, load

    def _records(self) -> Records:
        """Return the records of the context.

        Raises:
            ValueError: they are not equally long, or a setting asks for another kind of what is
                recorded.
        """
        records = Records(self._record("setpoint"), self._record("load"))
        if (
            records.setpoint is None
            or records.load is None
            or len(records.setpoint) == len(records.load)
        ):
            return records
        raise ValueError(
            f"{self.card.id}: a set point and a load run together, so they must be equally long; "
            f"got {len(records.setpoint)} and {len(records.load)} periods of {self.period:g} s."
        )

    def _record(self, name: str) -> np.ndarray | None:
        """Return a record of the context, ``(steps, columns)``, or None.

        Raises:
            ValueError: a setting asks for another kind of what is recorded.
        """
        record = self.card.context.record(name) if self.card.context else None
        if record is None:
            return None
        if self.card.settings[name] != (usual := self.card.choices[name][0]):
            raise ValueError(
                f"{self.card.id}: the context has a record of the {name}, so "
                f"{name}={self.card.settings[name]} has no effect; leave it out ({usual!r})."
            )
        return record.values().astype(self.dtype)

    def chosen_plant(self, plant: Plant) -> Plant:
        """Return the controlled plant: the machine's, or one that a subclass puts in its place."""
        return plant

    def chosen_goal(self, goal: Goal) -> Goal:
        """Return the goal: the machine's, or a subclass's variation of it."""
        return goal

    def _ranges(self) -> tuple[Range, ...]:
        """Return the range of each set point."""
        goal, pace = self.goal, self.period / self.goal.period  # shorter steps, shorter moves
        jump = self.jump if self.loaded else math.inf
        return tuple(
            Range(
                low,
                high,
                pace * slowest,
                math.log(fastest / slowest),
                pace * self.quantity.max_change(fastest),
                jump,
            )
            for low, high, slowest, fastest in zip(
                goal.low, goal.high, goal.slowest, goal.fastest, strict=True
            )
        )

    # -- an episode --------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a machine within its tolerances, and a speed or load in the bands of the split."""
        nominal, tolerance = self.plant.nominal, self.plant.tolerance
        u = self.uniform(key, len(nominal) + 4)
        machine = type(nominal)(
            *(
                within_tolerance(n, t, u[i])
                for i, (n, t) in enumerate(zip(nominal, tolerance, strict=True))
            )
        )
        load, speed = self.load.sample(u, split)
        return Params(machine, load, speed, self.setpoints.pace(u[-2], split))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin without torque.

        Set points begin anywhere, those of speed or position near the present value.
        """
        u = self.uniform(key, len(self.names) + 1)
        zero = jnp.zeros((), self.dtype)
        setpoint: Values = tuple(
            low + (high - low) * u[i]
            for i, (low, high) in enumerate(zip(self.goal.low, self.goal.high, strict=True))
        )
        setpoint = self.quantity.first_setpoint(setpoint, params.speed, self.jump * (2 * u[0] - 1))
        angle = self.angle.begin(u[-1], zero)
        still = self.plant.state_at_rest(params.machine)
        setpoint = self.quantity.limit_jointly(self.setpoints.first_setpoint(setpoint, params.pace))
        memories = Memories(
            self.setpoints.begin(setpoint, self.ranges, params.pace, jax.random.fold_in(key, 1)),
            self.link.begin(jax.random.fold_in(key, 2), self.dtype),
            self.delay.begin(still, params.speed),
            self.load.begin(params.speed, jax.random.fold_in(key, 3)),
            self.instruments.begin(params.speed, jax.random.fold_in(key, 4)),
        )
        return State(still, params.speed, angle, setpoint, (zero,) * self.actuator.width, memories)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the drive by one period; then draw new set points."""
        applied, waiting = self.delay.exchange(state.memories.waiting, self.actuator.choose(action))
        next_state = self.advance_period(state, applied, params)
        setpoint, memory = self.setpoints.step(
            state.setpoint, state.memories.setpoint, self.ranges, params.pace, key
        )
        load = self.load.next_memory(next_state.memories.load, key)
        instrument_memory = self.instruments.next_memory(
            next_state.memories.instruments, state.speed, next_state.speed
        )
        memories = next_state.memories._replace(
            setpoint=memory, waiting=waiting, load=load, instruments=instrument_memory
        )
        return next_state._replace(
            setpoint=self.quantity.limit_jointly(setpoint), memories=memories
        )

    def advance_period(self, state: State, applied: Any, params: Params) -> State:
        """Return the drive one period later.

        ``applied`` are voltages that the converters give, or a switch state.
        """
        return self.actuator.apply(
            applied,
            state,
            self.electrical_angle(state),
            lambda present, voltage, share: self.integrate(
                present, voltage, params, share * self.period
            ),
        )

    def integrate(self, state: State, voltage: Any, params: Params, duration: float) -> State:
        """Return machine, shaft and link ``duration`` s later.

        ``voltage``: V, for a nominal link; it is constant over this time except for the link's
        variation.
        """
        machine = params.machine
        first_speed = state.speed
        link_memory, load_memory = state.memories.link, state.memories.load
        load, link, angle, turns = self.load, self.link, self.angle, duration / self.period

        def rate(share: float, present: Moving) -> Moving:
            electrical = self.plant.conducting_state(present.electrical, machine)
            speed = load.speed(load_memory, first_speed, present.speed, share * turns)
            torque = machine.torque(electrical)
            acceleration = load.acceleration(
                params.load, load_memory, speed, torque, machine.inertia
            )
            charging = link.rate(link_memory, present.link, share * duration, voltage, electrical)
            machine_voltage = link.machine_voltage(voltage, present.link)
            return Moving(
                machine.derivative(electrical, machine_voltage, speed),
                acceleration,
                angle.rate(speed),
                charging,
            )

        start = Moving(
            state.electrical,
            load.integrated_speed(first_speed),
            angle.integrated_angle(state.angle),
            link.voltage(link_memory),
        )
        end = self.solve(rate, start, duration)
        speed = load.speed(load_memory, first_speed, end.speed, turns)
        next_angle = angle.advance(state.angle, end.angle, first_speed, duration)
        memories = state.memories._replace(
            link=link.advance(link_memory, end.link, duration),
            load=load.advance(load_memory, turns),
        )
        electrical = self.plant.conducting_state(end.electrical, machine)
        return state._replace(
            electrical=electrical, speed=speed, angle=next_angle, memories=memories
        )

    def machine_after(self, electrical: Any, speed: Scalar, voltage: Any, params: Params) -> Any:
        """Return the electrical state one period later at a constant speed."""
        end = rk4(
            lambda _, present: params.machine.derivative(present, voltage, speed),
            electrical,
            self.period,
        )
        return self.plant.conducting_state(end, params.machine)

    def electrical_angle(self, state: State) -> Scalar:
        """Return the rotor's electrical angle, rad."""
        return self.angle.electrical(state.angle)

    def controlled_values(self, state: State, params: Params) -> Values:
        """Return the controlled quantities, A, N m, rad/s or rad."""
        return self.quantity.value(params.machine, state.electrical, state.speed, state.angle)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Show measurements, set points, errors and parts; see the table."""
        measured = [
            *self.plant.measure(state.electrical),
            state.speed * (1 / self.plant.speed_limit),
        ]
        controlled = self.controlled_values(state, params)
        measured += self.quantity.instruments(controlled)
        measured, controlled = self.instruments.read(
            measured, controlled, self.quantity, state.memories.instruments, key
        )
        setpoints = [setpoint * (1 / self.goal.scale) for setpoint in state.setpoint]
        errors = [
            (setpoint - value) * (1 / (ERROR_UNIT * halving))
            for setpoint, value, halving in zip(
                state.setpoint, controlled, self.goal.halving, strict=True
            )
        ]
        turning = self.angle.observe(state.electrical, state.angle)
        memory_entries: list[Scalar] = []
        for part, memory in self._parts_with_memories(state.memories):
            memory_entries += part.observe(memory)
        entries = self.stack(
            *measured, *setpoints, *errors, *turning, *state.applied, *memory_entries
        )
        return jnp.clip(entries, -OBSERVATION_BOUND, OBSERVATION_BOUND)

    def _parts_with_memories(self, memories: Memories) -> list[tuple[Part, Any]]:
        """Return each part that remembers, with its memory."""
        remembering: list[Part] = [self.setpoints, self.link, self.delay, self.load]
        return list(zip(remembering, memories, strict=False))

    def shown_state(self, observation: jax.Array) -> State:
        """Return the state as far as an observation shows it.

        An angle that nothing shows is zero.
        """
        entries = iter([observation[i] for i in range(len(self.observation_components()))])

        def take_values(count: int) -> Values:
            return tuple(next(entries) for _ in range(count))

        measured = take_values(len(self.plant.measured_names))
        speed = next(entries) * self.plant.speed_limit
        take_values(len(self.quantity.components()))
        setpoint = tuple(value * self.goal.scale for value in take_values(len(self.names)))
        errors = take_values(len(self.names))
        directions = take_values(len(self.angle.components()))
        applied = take_values(self.actuator.width)
        angle = jnp.arctan2(directions[-1], directions[-2]) if directions else jnp.zeros_like(speed)
        if self.kind == "position":
            angle = setpoint[0] - errors[0] * (ERROR_UNIT * self.goal.halving[0])
        link = self.link.memory(take_values(len(self.link.components())))
        waiting = self.actuator.choice(take_values(self.actuator.width)) if self.delayed else ()
        memories = Memories(link=link, waiting=waiting)
        return State(
            self.plant.electrical_of(measured, directions),
            speed,
            angle,
            setpoint,
            applied,
            memories,
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return a reward for the distance from the set points that the action was chosen for.

        A price of the cost is taken off where a context asks for it.
        """
        total: Scalar = 0.0
        values = self.controlled_values(next_state, params)
        for setpoint, value, halving in zip(state.setpoint, values, self.goal.halving, strict=True):
            total = total + halving / (halving + jnp.abs(value - setpoint))
        tracking = total * (1 / len(values))
        if not self.context_values.reweighted:
            return tracking
        overload = jnp.minimum(self.cost(state, action, next_state, params), self.max_overload)
        return (
            self.context_values.weight("tracking") * tracking
            - self.context_values.weight("overload") * overload
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Tell whether a limit is exceeded."""
        return self.has_tripped(state)

    def has_tripped(self, state: State) -> jax.Array:
        """Tell whether a limit is exceeded, which ends the episode without success."""
        return reduce(or_, (limit.is_exceeded(state) for limit in self.limits))

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return the cost of coming near the limits."""
        return reduce(add, (cost for limit in self.limits for cost in limit.cost(next_state)))

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        max_error: Scalar = 0.0
        values = self.controlled_values(state, params)
        for setpoint, value, halving in zip(state.setpoint, values, self.goal.halving, strict=True):
            max_error = jnp.maximum(max_error, jnp.abs(value - setpoint) * (1 / halving))
        return {
            "success": (max_error < 1) & ~self.has_tripped(state),
            "error": max_error,
            "current": self.plant.length(state.electrical),
            "torque": params.machine.torque(state.electrical),
            "speed": state.speed,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def observation_components(self) -> tuple[Component, ...]:
        """Describe each entry, in the order of :meth:`observation`."""
        return (
            *self.instruments.components(self.quantity),
            *self._setpoint_components(),
            *(
                scaled_component(
                    f"error_{name}",
                    f"set point of {name} minus its value",
                    ERROR_UNIT * halving,
                    self.quantity.unit,
                )
                for name, halving in zip(self.names, self.goal.halving, strict=True)
            ),
            *self.angle.components(),
            *self.actuator.components("applied", "in the last step"),
            *(
                component
                for part, _ in self._parts_with_memories(Memories())
                for component in part.components()
            ),
        )

    def key_figures(self) -> tuple[KeyFigure, ...]:
        """Return the range of each set point and its halving error."""
        ranges = self.setpoints.bounds(self.ranges)
        named_ranges = zip(self.names, ranges, self.goal.halving, strict=True)
        figures = (
            range_and_accuracy(name, self.quantity.unit, *ends, halving)
            for name, ends, halving in named_ranges
        )
        return *chain.from_iterable(figures), *self.quantity.joint_range()

    def energy(self, quantities: Mapping[str, np.ndarray]) -> float | None:
        """Return the electrical energy, J; None where actions are not the machine's voltages."""
        settings = self.card.settings
        if self.finite or settings["supply"] != "ideal" or float(settings["interlocking"]):
            return None
        return components.energy(quantities, self.plant.voltages, self.period)

    def _setpoint_components(self) -> list[Component]:
        return [
            scaled_component(
                f"setpoint_{name}",
                f"what {name} should be now",
                self.goal.scale,
                self.quantity.unit,
            )
            for name in self.names
        ]

    def action_components(self) -> tuple[Component, ...]:
        """Describe voltages, or switch states."""
        return self.actuator.actions()

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name each limit that is exceeded."""
        return "; ".join(words for limit in self.limits if (words := limit.words(state, info)))

    def how_to_act(self) -> str:
        """Tell a text player in one line what an action looks like."""
        return self.actuator.how_to_act()

    def describe(self, state: State, params: Params) -> str:
        """Describe all measured, requested and applied quantities, with units."""
        measured = [float(value) for value in self.plant.measure(state.electrical)]
        names = self.plant.measured_names
        scales = [self.plant.current_limit if name.startswith("i") else 1.0 for name in names]
        measurements = ", ".join(
            f"{name} {value * scale:+.4g} {'A' if scale != 1 else 'of nominal'}"
            for name, value, scale in zip(names, measured, scales, strict=True)
        )
        values = [float(value) for value in self.controlled_values(state, params)]
        unit = self.quantity.unit
        controlled = "; ".join(
            f"{name} {value:+.4g} {unit}, set point {float(setpoint):+.4g} {unit}"
            for name, value, setpoint in zip(self.names, values, state.setpoint, strict=True)
        )
        applied = ", ".join(f"{float(voltage):+.3f}" for voltage in state.applied)
        memory_text = "".join(
            part.words(memory) for part, memory in self._parts_with_memories(state.memories)
        )
        return (
            f"Controlled: {controlled}. Measured: {measurements}. Speed {float(state.speed):+.4g} "
            f"rad/s.{self.angle.words(state.angle)}{memory_text} Last {self.actuator.noun}: "
            f"{applied}."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw currents and gauges; see ``scope.py``."""
        measured = [float(value) for value in self.plant.measure(state.electrical)]
        gauges = [
            scope.Gauge(f"{name} ({self.quantity.unit})", float(value), float(setpoint), low, high)
            for name, value, setpoint, low, high in zip(
                self.names,
                self.controlled_values(state, params),
                state.setpoint,
                self.goal.low,
                self.goal.high,
                strict=True,
            )
        ]
        vector = (measured[0], measured[1]) if isinstance(self.plant, ThreePhase) else None
        voltages = tuple(float(voltage) for voltage in state.applied)
        return scope.picture(
            vector, float(self.plant.length(state.electrical)), 1.1, gauges, voltages
        )

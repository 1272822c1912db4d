"""The sixty environments of gym-electric-motor 3.0.3 as pure functions.

Timing, frames, scales and reward are the peer's.

They are for people who come from there and want its numbers; ``drive.py`` is the task around them.
The tasks of this suite (``tasks/drive.py``) do not keep its defects. These environments keep them:

* the voltage is constant over a step in rotor coordinates (synchronous machines) or in the stator's
  (induction machines, with the rotor's voltage turned by the angles at the start of the step);
* phase currents are shown with the angle at the start of a step, the angle itself at its end;
* every quantity is shown in parts of its limit, and supplies may exceed the limit of the voltage;
* the six-phase machine's axes couple with the mechanical speed, where the electrical one belongs,
  and it makes half the torque that the balance of power asks for.

Its default integrator (dopri5 at a relative tolerance of 1e-6) is replaced by Runge-Kutta steps
fine enough to leave nothing of their own at the precision of the state, float64 (in
``jax.enable_x64``) or float32.

Source: gym-electric-motor 3.0.3, doi:10.21105/joss.02498.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.foundation.unknown_names import unknown

from ...shared.runge_kutta import rk4
from ..loads.load import ConstantSpeed, Polynomial
from ..machines import dc, induction, synchronous
from ..machines.frames import (
    DQ,
    AlphaBeta,
    Phases,
    Scalar,
    clarke,
    inverse_clarke,
    inverse_park,
    park,
    wrap_angle,
)
from ..power_electronics import converter

SUBSTEPS = {"float64": 64, "float32": 8}
"""Substeps of a step; more of them would only add roundings."""
RPM = math.pi / 30

Values = dict[str, Scalar]


class State(NamedTuple):
    """Quantities that the peer integrates."""

    electrical: Any
    speed: Scalar
    """rad/s"""
    angle: Scalar
    """Electrical, rad, within half a turn of zero where a step begins"""


class System(NamedTuple):
    """One kind of machine as the peer drives and shows it."""

    machine: Any
    still: Any
    """The electrical state without currents."""
    pole_pairs: float
    terminals: tuple[str, ...]
    """A converter each: ``bridge`` (three phases) or ``four_quadrant``."""
    currents: tuple[str, ...]
    voltages: tuple[str, ...]
    limits: dict[str, float]
    guarded: tuple[tuple[str, ...], ...]
    """Names whose squares, added up, end an episode above one."""
    controlled: dict[str, float]
    """Currents that current control rewards, with their weights."""
    voltage: Callable[[list[Scalar], State], Any]
    """The machine's voltage from the converters', at the start of a step."""
    observe: Callable[[list[Scalar], Any, State, State], Values]
    """Currents, voltages and angle after a step from the first state to the second."""
    derivative: Callable[[Any, Any, Scalar], Any]
    torque: Callable[[Any], Scalar]


class Environment(NamedTuple):
    """One of the peer's ids."""

    system: System
    tau: float
    """s"""
    supply: float
    """V"""
    load: Polynomial | ConstantSpeed
    speed: float
    """rad/s, at the start"""
    finite: bool
    state_names: tuple[str, ...]
    limits: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    weights: dict[str, float]
    """Weights of the controlled quantities in the reward."""
    violation_reward: float

    def initial(self, dtype: Any = np.float64) -> State:
        """Return the first state: no currents, angle zero."""
        return jax.tree.map(
            lambda value: jnp.asarray(value, dtype), State(self.system.still, self.speed, 0.0)
        )

    def first_observation(self, start: State) -> jax.Array:
        """Return what the peer shows at the start.

        Bridges are at the link's lower end, and other converters at zero.
        """
        terminals: list[Scalar] = []
        for kind in self.system.terminals:
            terminals += [-0.5 * self.supply] * 3 if kind == "bridge" else [0.0]
        return self.observe(terminals, self.system.voltage(terminals, start), start, start)

    def step(self, state: State, action: Any) -> tuple[State, jax.Array]:
        """Return the next state, and all it shows, shape ``(len(state_names),)``.

        What it shows is in parts of the limits.

        ``action``: duties in [-1, 1], or switch states, shape ``(n,)``, in the order of the peer's
        action space.
        """
        terminals, voltage = self.apply_action(state, action)
        count = SUBSTEPS[state.speed.dtype.name]
        next_state = jax.lax.fori_loop(
            0,
            count,
            lambda _, present: rk4(lambda _, at: self.rate(at, voltage), present, self.tau / count),
            state,
        )
        observed = self.observe(terminals, voltage, state, next_state)
        # The peer's episodes are long: digits are kept.
        return next_state._replace(angle=wrap_angle(next_state.angle)), observed

    def apply_action(self, state: State, action: Any) -> tuple[list[Scalar], Any]:
        """Return the voltages of the converters' terminals and of the machine.

        They hold over the step that begins here.
        """
        duties = _terminal_voltages(self.system.terminals, action, self.finite)
        terminals = [self.supply * duty for duty in duties]
        return terminals, self.system.voltage(terminals, state)

    def rate(self, state: State, voltage: Any) -> State:
        """Return d/dt of the state under a voltage of the machine."""
        system = self.system
        return State(
            system.derivative(state.electrical, voltage, state.speed),
            self.load.acceleration(
                state.speed, system.torque(state.electrical), system.machine.inertia
            ),
            system.pole_pairs * state.speed,
        )

    def observe(
        self, terminals: list[Scalar], voltage: Any, state: State, next_state: State
    ) -> jax.Array:
        """Return all that the peer shows after a step from ``state`` to ``next_state``.

        It is in parts of the limits.
        """
        values = self.system.observe(terminals, voltage, state, next_state)
        values |= {
            "omega": next_state.speed,
            "torque": self.system.torque(next_state.electrical),
            "u_sup": self.supply,
        }
        dtype = next_state.speed.dtype
        limits = zip(self.state_names, self.limits, strict=True)
        return jnp.stack([jnp.asarray(values[name], dtype) * (1 / limit) for name, limit in limits])

    def guarded_squares(self, observed: Any) -> list[Scalar]:
        """Return the sum of squares of the quantities of each limit that the peer guards."""
        at = dict(zip(self.state_names, observed, strict=True))
        return [sum(at[name] * at[name] for name in names) for names in self.system.guarded]

    def is_violated(self, observed: jax.Array) -> jax.Array:
        """Tell whether an observation is beyond a limit, which ends the peer's episode."""
        return jnp.stack([squares > 1 for squares in self.guarded_squares(observed)]).any()

    def reward(self, observed: jax.Array, setpoint: dict[str, Scalar]) -> jax.Array:
        """Return minus the weighted errors, or the price of a violation.

        Errors are in parts of each quantity's range.
        """
        error: Scalar = 0.0
        for name, weight in self.weights.items():
            i = self.state_names.index(name)
            error = error + weight * jnp.abs(observed[i] - setpoint[name]) / (
                self.high[i] - self.low[i]
            )
        return jnp.where(self.is_violated(observed), self.violation_reward, -error)


def _terminal_voltages(terminals: tuple[str, ...], action: Any, finite: bool) -> list[Scalar]:
    """Return the voltages of all terminals in parts of the supply, phase by phase."""
    voltages: list[Scalar] = []
    entries = list(action)
    for kind in terminals:
        if kind == "bridge":
            duty = converter.bridge_state(entries.pop(0)) if finite else None
            voltages += duty or converter.bridge(
                Phases(entries.pop(0), entries.pop(0), entries.pop(0))
            )
        else:
            voltages.append(
                converter.four_quadrant_state(entries.pop(0)) if finite else entries.pop(0)
            )
    return voltages


# -- the kinds of machines -------------------------------------------------------------------------

_DC_LIMITS = {"omega": 400.0, "torque": 38.0}
_DC_LIMITS |= dict.fromkeys(("i", "i_a", "i_e", "i_sum"), 210.0) | dict.fromkeys(
    ("u", "u_a", "u_e"), 60.0
)


def _direct_current(
    machine: Any, currents: tuple[str, ...], voltages: tuple[str, ...], controlled: Any
) -> System:
    still: Any = dc.Armature(0.0) if len(currents) == 1 else dc.Windings(0.0, 0.0)
    voltage_kind = dc.Armature if len(voltages) == 1 else dc.Windings
    return System(
        machine,
        still,
        0.0,
        ("four_quadrant",) * len(voltages),
        currents,
        voltages,
        _DC_LIMITS,
        tuple((name,) for name in currents),
        controlled,
        lambda terminals, state: voltage_kind(*terminals),
        lambda terminals, voltage, state, next_state: (
            dict(zip(currents, next_state.electrical, strict=True))
            | dict(zip(voltages, terminals, strict=True))
            | {"i_sum": sum(next_state.electrical)}
        ),
        machine.derivative,
        machine.torque,
    )


def _limits(
    omega: float, torque: float, current: float, voltage: float, names: tuple[str, ...]
) -> dict[str, float]:
    by_name = {name: current if name.startswith("i") else 0.5 * voltage for name in names}
    return by_name | {"omega": omega, "torque": torque, "epsilon": math.pi}


_STATOR = ("i_sd", "i_sq")


def _synchronous(
    machine: Any, omega: float, torque: float, current: float, voltage: float
) -> System:
    excited = isinstance(machine, synchronous.ExternallyExcited)
    field = ("e",) * excited
    currents = tuple(f"i_{k}" for k in ("a", "b", "c", "sd", "sq", *field))
    voltages = tuple(f"u_{k}" for k in ("a", "b", "c", "sd", "sq", *field))

    def vector(terminals: list[Scalar], state: State) -> Any:
        rotating = park(clarke(Phases(*terminals[:3])), state.angle)
        return synchronous.Excited(*rotating, terminals[3]) if excited else rotating

    def observe(terminals: list[Scalar], voltage: Any, state: State, next_state: State) -> Values:
        phases = inverse_clarke(inverse_park(DQ(*next_state.electrical[:2]), state.angle))
        return dict(
            zip(
                currents + voltages,
                (*phases, *next_state.electrical, *terminals[:3], *voltage),
                strict=True,
            )
        ) | {"epsilon": wrap_angle(next_state.angle)}

    return System(
        machine,
        synchronous.Excited(0.0, 0.0, 0.0) if excited else DQ(0.0, 0.0),
        machine.pole_pairs,
        ("bridge", "four_quadrant") if excited else ("bridge",),
        currents,
        voltages,
        _limits(omega, torque, current, voltage, currents + voltages),
        (_STATOR, ("i_e",)) if excited else (_STATOR,),
        dict.fromkeys((*_STATOR, *(("i_e",) * excited)), 1 / 3 if excited else 0.5),
        vector,
        observe,
        machine.derivative,
        machine.torque,
    )


def _induction(
    machine: induction.Induction, omega: float, current: float, voltage: float, fed: bool
) -> System:
    windings = ("s", "r") if fed else ("s",)
    axes = ("a", "b", "c", "d", "q")
    currents = tuple(f"i_{winding}{axis}" for winding in windings for axis in axes)
    voltages = tuple(f"u_{winding}{axis}" for winding in windings for axis in axes)
    still = induction.Electrical(AlphaBeta(0.0, 0.0), AlphaBeta(0.0, 0.0))
    torque = (
        0.75
        * machine.pole_pairs
        * machine.mutual_inductance**2
        / machine.rotor_inductance()
        * current**2
    )

    def field_angle(state: State) -> Scalar:
        return jnp.arctan2(state.electrical.flux.beta, state.electrical.flux.alpha)

    def vectors(terminals: list[Scalar], state: State) -> induction.Voltages:
        stator = clarke(Phases(*terminals[:3]))
        if not fed:
            return induction.Voltages(stator, AlphaBeta(0.0, 0.0))
        rotor = DQ(*clarke(Phases(*terminals[3:])))
        return induction.Voltages(stator, inverse_park(rotor, state.angle))

    def observe(
        terminals: list[Scalar], voltage: induction.Voltages, state: State, next_state: State
    ) -> Values:
        angle = field_angle(state)
        values: Values = {"epsilon": wrap_angle(next_state.angle)}
        rotor = machine.rotor_current(next_state.electrical)
        for i, (winding, winding_current, winding_voltage, winding_angle) in enumerate(
            (
                ("s", next_state.electrical.current, voltage.stator, 0.0),
                ("r", rotor, voltage.rotor, state.angle),
            )[: len(windings)]
        ):
            phases = inverse_clarke(AlphaBeta(*park(winding_current, winding_angle)))
            shown_axes = (
                *phases,
                *park(winding_current, angle),
                *terminals[3 * i : 3 * i + 3],
                *park(winding_voltage, angle),
            )
            names = [f"{kind}_{winding}{axis}" for kind in ("i", "u") for axis in axes]
            values |= dict(zip(names, shown_axes, strict=True))
        return values

    return System(
        machine,
        still,
        machine.pole_pairs,
        ("bridge",) * len(windings),
        currents,
        voltages,
        _limits(omega, torque, current, voltage, currents + voltages),
        (_STATOR,),
        dict.fromkeys(_STATOR, 0.5),
        vectors,
        observe,
        machine.derivative,
        machine.torque,
    )


def _six_phase(machine: synchronous.SixPhase) -> System:
    axes = ("a1", "b1", "c1", "a2", "b2", "c2", "sd", "sq", "sx", "sy")
    currents, voltages = tuple(f"i_{axis}" for axis in axes), tuple(f"u_{axis}" for axis in axes)

    def observe(terminals: list[Scalar], voltage: Any, state: State, next_state: State) -> Values:
        first, second = synchronous.six_phases(next_state.electrical, state.angle)
        values = (*first, *second, *next_state.electrical, *terminals, *voltage)
        return dict(zip(currents + voltages, values, strict=True)) | {
            "epsilon": wrap_angle(next_state.angle)
        }

    return System(
        machine,
        synchronous.DQXY(0.0, 0.0, 0.0, 0.0),
        machine.pole_pairs,
        ("bridge", "bridge"),
        currents,
        voltages,
        _limits(4000 * RPM, 10.0, 400.0, 300.0, currents + voltages),
        (currents[6:],),
        dict.fromkeys(currents[6:], 0.5),
        lambda terminals, state: synchronous.six_phase_vector(
            Phases(*terminals[:3]), Phases(*terminals[3:]), state.angle
        ),
        observe,
        # The peer's defects: the speed is not made electrical, and the torque is a three-phase
        # machine's.
        lambda current, voltage, speed: machine.derivative(
            current, voltage, speed / machine.pole_pairs
        ),
        lambda current: 0.5 * machine.torque(current),
    )


def machines() -> dict[str, System]:
    """Return the peer's ten machines by their part of an id."""
    magnet, excited = synchronous.PermanentMagnet(), synchronous.ExternallyExcited()
    angle = synchronous.max_torque_angle(magnet, 240.0)
    rated_torque = float(magnet.torque(DQ(-240 * math.sin(angle), 240 * math.cos(angle))))
    # The peer's own choice for the excited machine: d and q of its nominal 120 A, with the field's
    # limit.
    saliency = excited.inductance_d - excited.inductance_q
    half = 0.25 * excited.magnetising_inductance() * 120 / saliency
    d = -half + math.sqrt(half**2 + 120**2 / 2)
    max_torque = float(excited.torque(synchronous.Excited(d, math.sqrt(120**2 - d**2), 150.0)))
    windings, winding_voltages = ("i_a", "i_e"), ("u_a", "u_e")
    return {
        "PermExDc": _direct_current(dc.PermanentlyExcited(), ("i",), ("u",), {"i": 1.0}),
        "ExtExDc": _direct_current(
            dc.ExternallyExcited(), windings, winding_voltages, dict.fromkeys(windings, 0.5)
        ),
        "SeriesDc": _direct_current(dc.Series(), ("i",), ("u",), {"i": 1.0}),
        "ShuntDc": _direct_current(dc.Shunt(), windings, ("u",), {"i_a": 1.0}),
        "PMSM": _synchronous(magnet, 4000 * RPM, rated_torque, 400.0, 300.0),
        "SynRM": _synchronous(
            synchronous.Reluctance(),
            4300 * RPM,
            float(synchronous.Reluctance().torque(DQ(1.0, 1.0))) * 162,
            18.0,
            80.0,
        ),
        "EESM": _synchronous(excited, 12000 * RPM, max_torque, 150.0, 320.0),
        "SCIM": _induction(induction.Induction(), 4000 * RPM, 5.5, 560.0, fed=False),
        "DFIM": _induction(
            induction.Induction(*induction.DOUBLY_FED), 1800 * RPM, 9.0, 720.0, fed=True
        ),
        "SIXPMSM": _six_phase(synchronous.SixPhase()),
    }


_LOADS = {
    ("Cont", "PermExDc"): Polynomial(inertia=1e-4),
    ("Finite", "PermExDc"): Polynomial(inertia=1e-3),
    ("Cont", "SeriesDc"): Polynomial(0.01, 0.05, inertia=1e-4),
    ("Finite", "SeriesDc"): Polynomial(0.15, 0.05, inertia=1e-4),
    ("Cont", "ShuntDc"): Polynomial(0.05, 0.01, inertia=1e-4),
    ("Finite", "ShuntDc"): Polynomial(0.05, 0.01, inertia=1e-4),
    ("Cont", "ExtExDc"): Polynomial(inertia=1e-4),
    ("Finite", "ExtExDc"): Polynomial(inertia=1e-4),
    ("Finite", "EESM"): Polynomial(),
}
"""Load of speed control; every other id's is ``Polynomial(0.01, 0.01)``."""

_ONLY_FORWARD = {"SeriesDc": ("omega", "torque"), "ShuntDc": ("omega",)}
"""Quantities whose range the peer starts at zero."""


def _supply(control: str, goal: str, machine: str) -> float:
    if machine.endswith("Dc"):
        return 420.0 if machine == "SeriesDc" and control == "Finite" and goal != "SC" else 60.0
    if machine == "SIXPMSM" or (control == "Cont" and goal == "CC" and machine in ("PMSM", "EESM")):
        return 300.0
    return 420.0


def environment(name: str) -> Environment:
    """Return one of the peer's environments by its id, ``{Cont,Finite}-{CC,TC,SC}-{machine}-v0``.

    Raises:
        ValueError: no such id; the message names the nearest.
    """
    systems = machines()
    parts = product(("Cont", "Finite"), ("CC", "TC", "SC"), systems)
    ids = {f"{'-'.join(part)}-v0": part for part in parts}
    if name not in ids:
        raise ValueError(unknown("environment", name, ids))
    control, goal, machine = ids[name]
    system = systems[machine]
    angle = () if machine.endswith("Dc") else ("epsilon",)
    line = ("i_sum",) if machine == "ShuntDc" else ()  # the current that both windings draw
    names = ("omega", "torque", *system.currents, *system.voltages, *angle, "u_sup", *line)
    supply = _supply(control, goal, machine)
    forward = ("u_sup", *_ONLY_FORWARD.get(machine, ()))
    weights = system.controlled
    if goal != "CC":
        weights = {{"TC": "torque", "SC": "omega"}[goal]: 1.0}
    fixed = 230.0 if name == "Cont-TC-ShuntDc-v0" else 100.0
    return Environment(
        system,
        1e-5 if control == "Finite" and machine != "SIXPMSM" else 1e-4,
        supply,
        _LOADS.get((control, machine), Polynomial(0.01, 0.01)) if goal == "SC" else ConstantSpeed(),
        0.0 if goal == "SC" else fixed,
        control == "Finite",
        names,
        tuple(supply if name == "u_sup" else system.limits[name] for name in names),
        tuple(0.0 if name in forward else -1.0 for name in names),
        (1.0,) * len(names),
        weights,
        -sum(weights.values()) / (1 - 0.9),
    )

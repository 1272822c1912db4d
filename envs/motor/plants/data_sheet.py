"""The data sheet of a drive as constants that a context may set.

The plant and the goals follow from it.

Goals of another machine are those of the shipped one in other units: torques by the torque of the
nominal current, speeds by the speed up to which the voltage holds that current, or by the speed
limit if that is less, moves of a speed by the acceleration. The period scales so that full voltage
moves a current by the same part of the nominal one; a context may also set it. A machine that is
the shipped one in other units therefore plays the same episodes in other units.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import NamedTuple

from rlbench_suite.contexts.context import Constant, Context

from ..setpoints.goals import Goal
from .induction_plant import SCIM
from .plant import Base, Plant
from .three_phase import PMSM, SynRM, ThreePhase

_PARAMETERS = {
    "resistance": ("Ohm", "of a phase, or of the armature"),
    "inductance": ("H", "of the armature"),
    "armature_resistance": ("Ohm", "of the armature"),
    "field_resistance": ("Ohm", "of the field winding"),
    "armature_inductance": ("H", "of the armature"),
    "field_inductance": ("H", "of the field winding"),
    "rotation_inductance": ("H", "voltage that a field current of 1 A induces at 1 rad/s"),
    "inductance_d": ("H", "of a phase, d axis"),
    "inductance_q": ("H", "of a phase, q axis"),
    "magnet_flux": (
        "V s",
        "linked with a phase, amplitude; or the torque constant of a direct-current machine",
    ),
    "stator_resistance": ("Ohm", "of a phase of the stator"),
    "rotor_resistance": ("Ohm", "of the rotor, seen from the stator"),
    "mutual_inductance": ("H", "of stator and rotor"),
    "stator_leakage": ("H", "leakage inductance of the stator"),
    "rotor_leakage": ("H", "leakage inductance of the rotor, seen from the stator"),
    "pole_pairs": ("", "pole pairs, not poles"),
    "inertia": ("kg m^2", "of the rotor; the load's goes from zero to as much again"),
}
"""Unit and meaning of each parameter of a machine."""
_MIN_PERIOD = 1e-6
"""s: shortest period; no controller is faster"""
_MAX_CHANGE = 2.0
"""Largest change of a current in a period by full voltage, in parts of the current limit.

The shipped drives reach 1.5.
"""


def constants(plant: Plant, period: float) -> tuple[Constant, ...]:
    """Return the constants of a plant with their present values; ``period``: s.

    None if it has no base values.
    """
    if plant.base() is None:
        return ()
    machine = []
    for name, nominal, tolerance in zip(
        plant.nominal._fields, plant.nominal, plant.tolerance, strict=True
    ):
        unit, meaning = _PARAMETERS[name]
        low, high = (round_number(nominal * (1 + sign * tolerance)) for sign in (-1, 1))
        if name == "pole_pairs":
            machine.append(
                Constant(
                    name, unit, low, high, meaning, maximum=100, is_integer=True, may_vary=False
                )
            )
            continue
        machine.append(Constant(name, unit, low, high, meaning))
    kind = "amplitude of a phase" if isinstance(plant, ThreePhase) else "of the armature"
    ratings = {
        "nominal_current": ("A", plant.nominal_current, f"what the windings bear for ever, {kind}"),
        "current_limit": ("A", plant.current_limit, f"beyond it the drive trips, {kind}"),
        "speed_limit": ("rad/s", plant.speed_limit, "beyond it the drive trips"),
        "link_voltage": ("V", _link(plant), "of the direct-current link"),
    }
    if isinstance(plant, SCIM):
        ratings["magnetising_current"] = (
            "A",
            plant.magnetising_current,
            "d current while torque is requested",
        )
    fixed = [
        Constant(name, unit, value := round_number(number), value, words, may_vary=False)
        for name, (unit, number, words) in ratings.items()
    ]
    words = "of a step; follows from inductance, voltage and nominal current"
    return (
        *machine,
        *fixed,
        Constant("period", "s", period, period, words, may_vary=False, derived=True),
    )


def round_number(number: float) -> float:
    """Return a number as a data sheet writes it, with six digits."""
    return float(f"{number:.6g}")


def own_plant(shipped: Plant, context: Context) -> Plant:
    """Return the plant with the constants of a context.

    Raises:
        ValueError: no such machine is possible, or the model does not hold for it.
    """
    plant, values = copy.copy(shipped), {name: (low, high) for name, low, high in context.values}
    nominal, tolerance = {}, {}
    for constant in constants(shipped, 1.0):
        low, high = values.get(constant.name, (constant.low, constant.high))
        if (low, high) == (constant.low, constant.high):
            continue  # keeps the bits of the shipped machine
        if constant.name not in plant.nominal._fields:
            if constant.name == "link_voltage":
                plant.unit = low / math.sqrt(3) if isinstance(plant, ThreePhase) else low
            elif constant.name != "period":
                setattr(plant, constant.name, low)
        else:
            nominal[constant.name] = int(low) if constant.is_integer else (low + high) / 2
            tolerance[constant.name] = (high - low) / (low + high)
    plant.nominal = plant.nominal._replace(**nominal)
    plant.tolerance = plant.tolerance._replace(**tolerance)
    if isinstance(plant, ThreePhase):
        plant.pole_pairs = plant.nominal.pole_pairs
    if fault := _fault(plant):
        raise ValueError(f"The machine of context {context.label} cannot be simulated: {fault}.")
    return plant


def scaled(
    goals: Mapping[str, Goal], kind: str, shipped: Plant, plant: Plant, context: Context
) -> dict[str, Goal]:
    """Return the goals of the shipped machine in the base values of another, by kind.

    Args:
        goals: those of the shipped machine, by kind.
        kind: that of the task, whose period a context may set.
        shipped: the shipped machine.
        plant: the machine of the context.
        context: its constants.

    Raises:
        ValueError: full voltage moves a current too far in a period of the context.
    """
    ratios = _ratios(shipped, plant, context, goals[kind].period)
    scaled_goals = {name: _scale_goal(goal, name, ratios) for name, goal in goals.items()}
    period = scaled_goals[kind].period
    change = _base(plant).current_rate * period
    max_change = _MAX_CHANGE * plant.current_limit
    if change > max_change:
        raise ValueError(
            f"The period {period:.3g} s of context {context.label} is too long: full voltage moves "
            f"a current by {change:.3g} A in it, and at most {max_change:.3g} A, twice its limit, "
            "can be controlled."
        )
    if period < _MIN_PERIOD:
        raise ValueError(
            f"The period {period:.3g} s of context {context.label} is too short: at least "
            f"{_MIN_PERIOD:g} s. "
            "It follows from inductance, link_voltage and nominal_current, unless period is given."
        )
    gained = _base(plant).torque / plant.nominal.inertia * scaled_goals[kind].period
    if kind in ("speed", "position") and gained > plant.speed_limit:
        raise ValueError(
            f"The inertia {plant.nominal.inertia:.3g} kg m^2 of context {context.label} is too "
            f"small: the torque of the nominal current changes the speed by {gained:.3g} rad/s in "
            f"a period, and speed_limit is {plant.speed_limit:g} rad/s."
        )
    return scaled_goals


class _Ratios(NamedTuple):
    """Values of a machine by those of the shipped one."""

    current: float
    current_limit: float
    torque: float
    speed: float
    speed_limit: float
    inertia: float
    period: float

    @property
    def step(self) -> float:
        """Change of the speed in a period by the torque."""
        return self.torque / self.inertia * self.period


def _ratios(shipped: Plant, plant: Plant, context: Context, period: float) -> _Ratios:
    usual, base = _base(shipped), _base(plant)
    current = plant.nominal_current / shipped.nominal_current
    limit = plant.speed_limit / shipped.speed_limit
    context_period = context.get("period")
    return _Ratios(
        current,
        plant.current_limit / shipped.current_limit,
        base.torque / usual.torque,
        min(base.speed / usual.speed, limit),
        limit,
        plant.nominal.inertia / shipped.nominal.inertia,
        context_period[0] / period
        if context_period
        else current / (base.current_rate / usual.current_rate),
    )


def _scale_goal(goal: Goal, kind: str, by: _Ratios) -> Goal:
    """Return a goal in other units."""
    angle = by.step * by.period
    quantity = {"current": by.current, "torque": by.torque, "speed": by.speed, "position": angle}[
        kind
    ]
    full = {
        "current": by.current_limit,
        "torque": by.torque,
        "speed": by.speed_limit,
        "position": angle,
    }[kind]
    move = {"speed": min(by.step, by.speed), "position": angle}.get(kind, quantity)

    def times(values: tuple[float, ...], factor: float) -> tuple[float, ...]:
        return tuple(value * factor for value in values)

    return goal._replace(
        low=times(goal.low, quantity),
        high=times(goal.high, quantity),
        slowest=times(goal.slowest, move),
        fastest=times(goal.fastest, move),
        halving=times(goal.halving, quantity),
        scale=goal.scale * full,
        speeds=(goal.speeds[0] * by.speed, goal.speeds[1] * by.speed),
        period=goal.period * by.period,
        finite_period=goal.finite_period * by.period,
        friction=goal.friction._replace(
            coulomb=goal.friction.coulomb * by.torque,
            viscous=goal.friction.viscous * (by.torque / by.speed),
        ),
        jump=goal.jump * move,
    )


def _base(plant: Plant) -> Base:
    base = plant.base()
    assert base is not None
    return base


def _link(plant: Plant) -> float:
    return plant.link if isinstance(plant, ThreePhase) else plant.unit


def _fault(plant: Plant) -> str:
    """Return why a plant cannot be simulated; empty if it can be."""
    machine = plant.nominal
    if plant.nominal_current > plant.current_limit:
        return (
            f"nominal_current {plant.nominal_current:g} A is above current_limit "
            f"{plant.current_limit:g} A"
        )
    if isinstance(plant, PMSM) and machine.inductance_d > machine.inductance_q:
        return (
            "inductance_d is above inductance_q, and magnets lie along the axis of the smaller one"
        )
    if isinstance(plant, SynRM) and machine.inductance_d <= machine.inductance_q:
        return "inductance_d is not above inductance_q, so that it makes no torque"
    if isinstance(plant, SCIM) and plant.magnetising_current >= plant.nominal_current:
        return f"magnetising_current {plant.magnetising_current:g} A leaves no current for torque"
    if _base(plant).speed <= 0:
        return f"link_voltage {_link(plant):g} V does not hold the nominal current at standstill"
    return ""

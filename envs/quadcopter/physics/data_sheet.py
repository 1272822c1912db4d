"""The data sheet of a vehicle.

It has the constants that a context may set and what follows from them, and refuses what cannot fly.

A vehicle is an X of four equal rotors under a rigid body. Each constant has a middle and a relative
spread, within which an episode samples its value; geometry, full rotor speed and air are fixed.
Bounds of observations, the command that hovers, and the gains of reference players follow. Lengths
of the tasks (arenas, gates, waypoints) stay as they are, except that the arena of the hover grows
by the height that a vehicle falls while it turns upright.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rlbench_suite.contexts.context import Constant, Context

from . import dynamics
from .dynamics import HOVER_ACTION, NOMINAL, ROTOR_ARM, ROTOR_SPEED_LIMIT, STEP, Airframe
from .rigid_body import GRAVITY, Inertia
from .vehicles import CRAZYFLIE_AIR, Air

BANDS = 40
"""Bands of the mass, train and test in turn"""
MIN_THRUST_TO_WEIGHT = 1.2
"""Least thrust by weight of the heaviest and weakest vehicle of a data sheet.

Below it no margin is left to turn.
"""
MAX_RATE_CHANGE = 60.0
"""Largest change of angular velocity by full rotors in a step, rad/s.

The gyroscope measures 35 rad/s.
"""
MAX_RIGHTING_TIME = 0.4
"""s: longest time in which full rotors may turn the vehicle by 90 degrees, lag included."""


class DataSheet(NamedTuple):
    """Constants of a vehicle as plain numbers."""

    nominal: Airframe
    """Middles of the ranges of constants"""
    spread: Airframe
    """Relative deviations from the middles, either way"""
    arm: float
    """m: distance of a rotor from the body's x axis, and from its y axis"""
    speed_limit: float
    """rad/s: a rotor's full speed"""
    air: Air
    hover_action: float
    """Command at which the nominal vehicle hovers"""

    @property
    def max_acceleration(self) -> float:
        """Largest acceleration by thrust and gravity (m/s^2).

        It is that of the lightest and strongest vehicle.
        """
        mass = self.nominal.inertia.mass * (1 - self.spread.inertia.mass)
        return self._full_thrust(1) / mass + GRAVITY

    @property
    def thrust_to_weight(self) -> float:
        """Full thrust by weight of the heaviest and weakest vehicle."""
        return self._full_thrust(-1) / (
            self.nominal.inertia.mass * (1 + self.spread.inertia.mass) * GRAVITY
        )

    @property
    def sideways_acceleration(self) -> float:
        """Acceleration (m/s^2) along the ground of the heaviest and weakest vehicle.

        Its height is constant.
        """
        return GRAVITY * math.sqrt(max(self.thrust_to_weight**2 - 1, 0.0))

    def tilt_acceleration(self, side: int = 0) -> float:
        """Return the angular acceleration (rad/s^2) about x or y by two rotors at full speed.

        It is the lesser of the two, and that of the nominal vehicle. With ``side`` 1 or -1 it is
        that of the quickest or the slowest one.
        """
        moments = [
            moment * (1 - side * spread)
            for moment, spread in zip(
                self.nominal.inertia[1:3], self.spread.inertia[1:3], strict=True
            )
        ]
        return 0.5 * self._full_thrust(side) * self.arm / max(moments)

    def yaw_acceleration(self) -> float:
        """Return the angular acceleration (rad/s^2) about z by two rotors at full speed.

        It is that of the nominal vehicle.
        """
        return (
            0.5 * self._full_thrust(0) * self.nominal.torque_coefficient / self.nominal.inertia.jz
        )

    @property
    def righting_time(self) -> float:
        """Time (s) in which the slowest vehicle turns by 90 degrees and stops.

        It is the time to speed up and to brake, and the rotors' lag.
        """
        lag = self.nominal.motor_time_constant * (1 + self.spread.motor_time_constant)
        return lag + 2 * math.sqrt(0.5 * math.pi / self.tilt_acceleration(-1))

    def _full_thrust(self, side: int) -> float:
        coefficient = self.nominal.thrust_coefficient * (1 + side * self.spread.thrust_coefficient)
        return float(4 * coefficient * self.speed_limit**2)


SHIPPED = DataSheet(
    NOMINAL,
    Airframe(Inertia(0.2, 0.2, 0.2, 0.2), 0.1, 0.2, 0.25),
    ROTOR_ARM,
    ROTOR_SPEED_LIMIT,
    CRAZYFLIE_AIR,
    HOVER_ACTION,
)
"""The Crazyflie of ``dynamics.py``."""


def constants(sheet: DataSheet = SHIPPED) -> tuple[Constant, ...]:
    """Return the constants that a context may set, with the values of a data sheet."""

    def sampled_constant(
        name: str, unit: str, middle: float, spread: float, meaning: str, bands: int = 0
    ) -> Constant:
        low, high = (float(f"{middle * (1 + sign * spread):.6g}") for sign in (-1, 1))
        return Constant(name, unit, low, high, meaning, bands=bands)

    def fixed_constant(name: str, unit: str, number: float, meaning: str) -> Constant:
        value = float(f"{number:.6g}")
        return Constant(name, unit, value, value, meaning, may_vary=False)

    (mass, *moments), thrust, torque, lag, _ = sheet.nominal
    (mass_spread, *sides), thrust_spread, torque_spread, lag_spread, _ = sheet.spread
    axes = zip("xyz", ("ahead", "left", "up"), moments, sides, strict=True)
    return (
        sampled_constant("mass", "kg", mass, mass_spread, "of everything that flies", BANDS),
        *(
            sampled_constant(
                f"inertia_{axis}", "kg m^2", moment, side, f"about the body's {axis} axis ({where})"
            )
            for axis, where, moment, side in axes
        ),
        sampled_constant(
            "thrust_coefficient",
            "N s^2",
            thrust,
            thrust_spread,
            "thrust of a rotor by its squared speed (rad/s)",
        ),
        sampled_constant(
            "torque_coefficient",
            "m",
            torque,
            torque_spread,
            "reaction torque of a rotor by its thrust",
        ),
        sampled_constant(
            "motor_time_constant", "s", lag, lag_spread, "lag of a rotor's speed behind its command"
        ),
        fixed_constant(
            "arm_length",
            "m",
            math.sqrt(2) * sheet.arm,
            "from the centre to a rotor; the rotors form an X",
        ),
        fixed_constant(
            "rotor_speed_limit", "rad/s", sheet.speed_limit, "a rotor's full speed, command 1"
        ),
        fixed_constant(
            "drag_xy",
            "kg",
            sheet.air.drag_xy,
            "drag by airspeed and sum of rotor speeds, across the rotor axes",
        ),
        fixed_constant("drag_z", "kg", sheet.air.drag_z, "the same along the rotor axes"),
        fixed_constant(
            "propeller_radius",
            "m",
            sheet.air.propeller_radius,
            "by which the ground's influence reaches up",
        ),
    )


def sheet_of_context(context: Context, shipped: DataSheet = SHIPPED) -> DataSheet:
    """Return the data sheet with the constants of a context.

    Raises:
        ValueError: no such vehicle is possible, it cannot fly, or the model does not hold for it.
    """
    middles: dict[str, float] = {}
    spreads: dict[str, float] = {}
    single: dict[str, Any] = {}
    for constant in constants(shipped):
        low, high = context.get(constant.name) or (constant.low, constant.high)
        if (low, high) == (constant.low, constant.high):
            continue  # keeps the bits of the shipped vehicle
        if constant.may_vary:
            middles[constant.name] = (low + high) / 2
            spreads[constant.name] = (high - low) / (low + high)
        else:
            single[constant.name] = low
    sheet = shipped._replace(
        nominal=_replace_constants(shipped.nominal, middles),
        spread=_replace_constants(shipped.spread, spreads),
        arm=single.pop("arm_length") / math.sqrt(2) if "arm_length" in single else shipped.arm,
        speed_limit=single.pop("rotor_speed_limit", shipped.speed_limit),
        air=shipped.air._replace(**single),
    )
    if fault := _fault(sheet):
        raise ValueError(f"The vehicle of context {context.label} cannot fly here: {fault}.")
    hover = math.sqrt(sheet.nominal.inertia.mass * GRAVITY / (4 * sheet.nominal.thrust_coefficient))
    only_air_differs = sheet._replace(air=shipped.air) == shipped
    return sheet._replace(
        hover_action=shipped.hover_action
        if only_air_differs
        else dynamics.rotor_action(hover, sheet.speed_limit)
    )


def _replace_constants(airframe: Airframe, values: dict[str, float]) -> Airframe:
    """Return an airframe with other values by the names of the constants."""
    names = {"mass": "mass", "inertia_x": "jx", "inertia_y": "jy", "inertia_z": "jz"}
    inertia = airframe.inertia._replace(
        **{names[name]: value for name, value in values.items() if name in names}
    )
    return airframe._replace(
        inertia=inertia, **{name: value for name, value in values.items() if name not in names}
    )


def _fault(sheet: DataSheet) -> str:
    """Return why a vehicle cannot fly; empty if it can."""
    _, jx, jy, jz = sheet.nominal.inertia
    if 2 * max(jx, jy, jz) > 1.001 * (jx + jy + jz):
        return (
            f"no body has the moments of inertia {jx:g}, {jy:g}, {jz:g} kg m^2: one is above the "
            "sum of the others"
        )
    if sheet.thrust_to_weight < MIN_THRUST_TO_WEIGHT:
        return (
            f"its rotors carry {sheet.thrust_to_weight:.2f} times the weight (heaviest mass, least "
            f"thrust), and {MIN_THRUST_TO_WEIGHT:g} times is the least"
        )
    if (change := sheet.tilt_acceleration(1) * STEP) > MAX_RATE_CHANGE:
        return (
            f"full rotors change its angular velocity by {change:.0f} rad/s in a step, above "
            f"{MAX_RATE_CHANGE:g} rad/s"
        )
    if sheet.righting_time > MAX_RIGHTING_TIME:
        return (
            f"it needs {sheet.righting_time:.2f} s to turn by 90 degrees, above "
            f"{MAX_RIGHTING_TIME:g} s"
        )
    return ""

"""The parts of a drive, as the settings of its card choose them.

``tasks/drive.py`` describes each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from rlbench_suite.core.task_card import TaskCard

from ..machines.solver import SOLVERS
from ..plants.three_phase import ThreePhase
from ..power_electronics.supply import SUPPLIES
from .actuator import ACTUATORS, Voltages
from .angle import Angle, RotorAngle, ShaftAngle
from .delay import Delay, NoDelay
from .instruments import EncoderAndNoise, Instruments, NoisyInstruments
from .link import IdealLink, SuppliedLink
from .load_part import LOADS, Bench, RecordedLoad
from .part import Design
from .setpoint_part import SETPOINTS, Recorded, SetPoint


class DriveSettings(NamedTuple):
    """Settings of a drive."""

    machine: str
    goal: str
    control: str
    setpoint: str
    load: str
    supply: str
    solver: str
    interlocking: float
    """Fraction of a period for which both switches of a leg are off"""
    delayed: bool
    noise: float
    """Deviation of every instrument, in parts of its full scale"""
    industrial: bool

    @classmethod
    def parse(cls, card: TaskCard) -> Self:
        """Return the settings of a card.

        Raises:
            ValueError: the solver does not fit supply or load.
        """
        settings = card.settings
        parsed = cls(
            machine=settings["machine"],
            goal=settings["goal"],
            control=settings["control"],
            setpoint=settings["setpoint"],
            load=settings["load"],
            supply=settings["supply"],
            solver=settings["solver"],
            interlocking=float(settings["interlocking"]),
            delayed=settings["delay"] == "1",
            noise=float(settings["noise"]),
            industrial=settings.get("conditions") == "industrial",
        )
        if parsed.solver == "exact" and (
            parsed.supply.startswith("ac") or parsed.load == "profile"
        ):
            raise ValueError(
                f"{card.id}: solver 'exact' is for linear systems, not for supply "
                f"{parsed.supply!r} with load {parsed.load!r}; take supply 'ideal' or 'rc' and "
                "load 'bench', or solver 'rk4'."
            )
        return parsed

    @property
    def finite(self) -> bool:
        """True if actions are switch states."""
        return self.control == "finite"


class Records(NamedTuple):
    """Records of a context, each ``(periods, columns)``."""

    setpoint: np.ndarray | None
    load: np.ndarray | None


class DriveParts(NamedTuple):
    """The parts of one drive."""

    setpoints: SetPoint
    load: Bench
    link: IdealLink
    actuator: Voltages
    delay: NoDelay
    instruments: Instruments
    angle: Angle
    solve: Callable[..., Any]
    """Integration method"""


def assemble(settings: DriveSettings, design: Design, records: Records, horizon: int) -> DriveParts:
    """Return the parts that the settings choose.

    A record takes the place of a sampled set point or load.
    """
    actuator = ACTUATORS[settings.control](design, settings.interlocking)
    return DriveParts(
        setpoints=_setpoints(settings, records, horizon),
        load=_load(settings, design, records, horizon),
        link=_link(settings, design),
        actuator=actuator,
        delay=Delay(actuator) if settings.delayed else NoDelay(),
        instruments=_instruments(settings, design),
        angle=_angle(settings, design),
        solve=SOLVERS[settings.solver],
    )


def _setpoints(settings: DriveSettings, records: Records, horizon: int) -> SetPoint:
    if records.setpoint is not None:
        return Recorded(horizon, records.setpoint)
    return SETPOINTS[settings.setpoint](horizon)


def _load(settings: DriveSettings, design: Design, records: Records, horizon: int) -> Bench:
    if records.load is not None:
        return RecordedLoad(design, records.load[:, 0], horizon)
    return LOADS[settings.load](design)


def _link(settings: DriveSettings, design: Design) -> IdealLink:
    if settings.supply == "ideal":
        return IdealLink()
    return SuppliedLink(SUPPLIES[settings.supply](), design.plant)


def _instruments(settings: DriveSettings, design: Design) -> Instruments:
    if not settings.noise:
        return Instruments(design)
    if settings.industrial:
        return EncoderAndNoise(design, settings.noise)
    return NoisyInstruments(design, settings.noise)


def _angle(settings: DriveSettings, design: Design) -> Angle:
    """Return the angle that the drive tracks.

    It is the shaft's for positions, and otherwise the rotor's if the effect of switches depends on
    it.
    """
    plant = design.plant
    switches_meet_angle = settings.finite or settings.interlocking > 0 or plant.fixed
    matters = isinstance(plant, ThreePhase) and switches_meet_angle
    if settings.goal == "position":
        return ShaftAngle(plant, matters)
    return RotorAngle(plant, matters) if matters else Angle(plant, matters)

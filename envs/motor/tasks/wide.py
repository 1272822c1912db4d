"""Control the speed of a drive far beyond the speed at which its voltage runs out.

An episode has starts, reversals and load steps.

The task is that of ``drive.py`` except for this table. Up to its base speed the voltage holds the
nominal current at maximum torque per ampere (PMSM 253 rad/s, SynRM 142, SCIM 353). Beyond it a
controller must weaken the flux, and has less torque.

======================  ============================================================================
start                   within +-5 rad/s; the set point begins there too
set point               ramps between levels that are held: standstill, or half to all of the
                        largest speed, either way. A level lasts a tenth to half of the time limit.
                        The slope is drawn for the episode, up to the acceleration by the torque
                        task's largest torque with the largest inertia (SynRM: half of it)
speed                   set points reach 93 % of the trip speed (PMSM and SCIM: 390 rad/s). The
                        SynRM's reach 300 of 450 rad/s, 2.1 times its base speed, where it still has
                        a third of its torque
load                    friction, and a torque of either sign that changes at random, on average
                        every 50 ms, within a fifth of the torque task's largest
======================  ============================================================================
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

from ..loads.load import Polynomial
from ..parts.setpoint_part import Range
from ..setpoints.goals import Goal
from .drive import Drive


class Wide(NamedTuple):
    """One machine's task."""

    max_speed: float
    """rad/s, of a set point"""
    friction: Polynomial
    slope: float
    """Steepest slope of a set point, in parts of a steady acceleration.

    That is the acceleration of the largest torque with the largest inertia.
    """


class WideDrive(Drive):
    """The task of this file's docstring."""

    RANGES: ClassVar[dict[str, Wide]] = {
        "PMSM": Wide(390.0, Polynomial(1.0, 0.05), 1.0),
        "SynRM": Wide(300.0, Polynomial(0.01, 0.0002), 0.5),
        "SCIM": Wide(390.0, Polynomial(0.01, 0.0005), 1.0),
    }
    MAX_START_SPEED: ClassVar[float] = 5.0
    """rad/s: fastest rotor at the start."""
    MIN_SLOPE_RATIO: ClassVar[float] = 1 / 3
    """Slowest slope by the fastest."""

    @property
    def wide(self) -> Wide:
        """The machine's task."""
        return self.RANGES[self.card.settings["machine"]]

    def chosen_goal(self, goal: Goal) -> Goal:
        """Ask for more speed, nearly from standstill."""
        wide = self.wide
        return goal._replace(
            low=(-wide.max_speed,),
            high=(wide.max_speed,),
            speeds=(-self.MAX_START_SPEED, self.MAX_START_SPEED),
            friction=wide.friction,
            jump=0.0,
        )

    def _ranges(self) -> tuple[Range, ...]:
        """Return the range of the speed, with the steepest slope in rad/s a step."""
        (low,), (high,) = self.goal.low, self.goal.high
        steepest = (
            self.wide.slope
            * self.period
            * self.design.torques[1]
            / (2 * self.plant.nominal.inertia)
        )
        return (
            Range(
                low,
                high,
                self.MIN_SLOPE_RATIO * steepest,
                -math.log(self.MIN_SLOPE_RATIO),
                steepest,
                0.0,
            ),
        )

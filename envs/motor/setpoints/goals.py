"""Goals by machine: ranges, pace and accuracy of set points, speeds and sampling periods.

Ranges lie within nominal currents, and the converter's voltage can hold them at every speed of the
task. Set points move more slowly than the voltage moves the controlled quantity. The reward is one
half at an error of about 5 % of the nominal current or of the largest requested torque, or of 1 to
2.2 % of the largest requested speed; a switch state is so short that its ripple is no larger. A
position's first step is the distance that half of the torque covers in some 40 ms, and its halving
error is a twentieth of that. Series and shunt machines make torque of one sign only, so they can
hold no position. The tasks of this table do not weaken the flux; those of ``tasks/wide.py`` do.
"""

from __future__ import annotations

from typing import NamedTuple

from ..loads.load import Polynomial


class Goal(NamedTuple):
    """One or more controlled quantities of one machine, in A, N m, rad/s or rad."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    slowest: tuple[float, ...]
    """Standard deviation of a set point's move in a continuous step, at the slowest"""
    fastest: tuple[float, ...]
    halving: tuple[float, ...]
    """Error at which the reward of a quantity is one half"""
    scale: float
    """Full scale of the quantity in the observation"""
    speeds: tuple[float, float]
    """rad/s: speeds of the bench, or at the start"""
    period: float = 1e-4
    """s: period of a continuous step"""
    finite_period: float = 1e-5
    """s: period of a switch state; set points then move less in a step, in proportion"""
    friction: Polynomial = Polynomial()
    """Friction of the load in speed control, at the middle of its tolerance"""
    jump: float = 0.0
    """Largest distance of the first set point of a speed or position, rad/s or rad.

    With switch states it is half of this.
    """


FINITE_ARMATURE_PERIOD = 1e-5
"""s: in this time 60 V change the current of an armature of 19 uH by 32 A."""

GOALS: dict[tuple[str, str], Goal] = {
    ("PermExDc", "current"): Goal(
        (-97.0,),
        (97.0,),
        (0.2,),
        (2.0,),
        (5.0,),
        210.0,
        (-280.0, 280.0),
        FINITE_ARMATURE_PERIOD,
        2e-6,
    ),
    ("PermExDc", "torque"): Goal(
        (-16.0,),
        (16.0,),
        (0.03,),
        (0.3,),
        (0.8,),
        38.0,
        (-280.0, 280.0),
        FINITE_ARMATURE_PERIOD,
        2e-6,
    ),
    ("PermExDc", "speed"): Goal(
        (-280.0,),
        (280.0,),
        (0.01,),
        (0.1,),
        (3.0,),
        400.0,
        (-250.0, 250.0),
        friction=Polynomial(0.2, 0.01),
        jump=15.0,
    ),
    ("ExtExDc", "current"): Goal(
        (-97.0, 40.0),
        (97.0, 97.0),
        (0.2, 0.005),
        (2.0, 0.05),
        (5.0, 5.0),
        210.0,
        (-250.0, 250.0),
        FINITE_ARMATURE_PERIOD,
        2e-6,
    ),
    ("ExtExDc", "torque"): Goal(
        (-12.0,),
        (12.0,),
        (0.03,),
        (0.3,),
        (0.6,),
        38.0,
        (-250.0, 250.0),
        FINITE_ARMATURE_PERIOD,
        2e-6,
    ),
    ("ExtExDc", "speed"): Goal(
        (-250.0,),
        (250.0,),
        (0.01,),
        (0.1,),
        (3.0,),
        400.0,
        (-220.0, 220.0),
        friction=Polynomial(0.1, 0.01),
        jump=30.0,
    ),
    ("SeriesDc", "current"): Goal(
        (-97.0,), (97.0,), (0.05,), (0.5,), (5.0,), 210.0, (0.0, 200.0), finite_period=1e-4
    ),
    ("SeriesDc", "torque"): Goal(
        (0.0,), (14.0,), (0.01,), (0.1,), (0.8,), 38.0, (0.0, 200.0), finite_period=1e-4
    ),
    ("SeriesDc", "speed"): Goal(
        (50.0,),
        (230.0,),
        (0.01,),
        (0.1,),
        (3.0,),
        400.0,
        (50.0, 230.0),
        finite_period=1e-4,
        friction=Polynomial(0.01, 0.05),
        jump=20.0,
    ),
    ("ShuntDc", "current"): Goal(
        (-80.0,), (80.0,), (0.2,), (2.0,), (5.0,), 210.0, (0.0, 220.0), FINITE_ARMATURE_PERIOD, 2e-6
    ),
    ("ShuntDc", "torque"): Goal(
        (0.1,),
        (0.9,),
        (0.001,),
        (0.01,),
        (0.05,),
        2.0,
        (100.0, 200.0),
        FINITE_ARMATURE_PERIOD,
        1e-6,
    ),
    ("ShuntDc", "speed"): Goal(
        (100.0,),
        (200.0,),
        (0.005,),
        (0.05,),
        (3.0,),
        400.0,
        (100.0, 200.0),
        friction=Polynomial(0.15, 0.001),
        jump=5.0,
    ),
    ("PMSM", "current"): Goal(
        (-240.0, -240.0), (0.0, 240.0), (0.4, 0.4), (8.0, 8.0), (12.0, 12.0), 400.0, (-150.0, 150.0)
    ),
    ("PMSM", "torque"): Goal((-120.0,), (120.0,), (0.3,), (4.0,), (6.0,), 160.0, (-150.0, 150.0)),
    ("PMSM", "speed"): Goal(
        (-140.0,),
        (140.0,),
        (0.01,),
        (0.1,),
        (3.0,),
        419.0,
        (-130.0, 130.0),
        finite_period=1e-4,
        friction=Polynomial(1.0, 0.05),
        jump=25.0,
    ),
    ("SynRM", "current"): Goal(
        (-10.0, -10.0),
        (10.0, 10.0),
        (0.02, 0.02),
        (0.2, 0.2),
        (0.5, 0.5),
        18.0,
        (-80.0, 80.0),
        finite_period=2e-5,
    ),
    ("SynRM", "torque"): Goal(
        (-1.6,), (1.6,), (0.005,), (0.05,), (0.08,), 5.8, (-80.0, 80.0), finite_period=2e-5
    ),
    ("SynRM", "speed"): Goal(
        (-90.0,),
        (90.0,),
        (0.005,),
        (0.05,),
        (1.5,),
        450.0,
        (-80.0, 80.0),
        finite_period=1e-4,
        friction=Polynomial(0.01, 0.002),
        jump=15.0,
    ),
    ("EESM", "current"): Goal(
        (-100.0, -110.0, 40.0),
        (0.0, 110.0, 100.0),
        (0.1, 0.1, 0.03),
        (1.5, 1.5, 0.5),
        (6.0, 6.0, 6.0),
        150.0,
        (-250.0, 250.0),
        finite_period=2.5e-6,
    ),
    ("EESM", "torque"): Goal(
        (-50.0,), (50.0,), (0.1,), (1.2,), (2.5,), 129.0, (-200.0, 200.0), finite_period=5e-6
    ),
    ("EESM", "speed"): Goal(
        (-200.0,),
        (200.0,),
        (0.01,),
        (0.1,),
        (3.0,),
        1257.0,
        (-180.0, 180.0),
        finite_period=2e-5,
        friction=Polynomial(0.5, 0.02),
        jump=15.0,
    ),
    ("SixPhasePMSM", "current"): Goal(
        (-150.0, -150.0, -30.0, -30.0),
        (0.0, 150.0, 30.0, 30.0),
        (0.05, 0.05, 0.05, 0.05),
        (0.8, 0.8, 0.5, 0.5),
        (7.5, 7.5, 7.5, 7.5),
        400.0,
        (-150.0, 150.0),
        2e-5,
    ),
    ("SixPhasePMSM", "torque"): Goal(
        (-8.5,), (8.5,), (0.005,), (0.05,), (0.4,), 28.0, (-200.0, 200.0), 2e-5
    ),
    ("SixPhasePMSM", "speed"): Goal(
        (-190.0,),
        (190.0,),
        (0.01,),
        (0.1,),
        (3.0,),
        419.0,
        (-180.0, 180.0),
        finite_period=5e-5,
        friction=Polynomial(0.1, 0.002),
        jump=15.0,
    ),
    ("SCIM", "current"): Goal(
        (1.2, -3.0), (3.0, 3.0), (0.01, 0.01), (0.15, 0.15), (0.2, 0.2), 5.5, (-250.0, 250.0)
    ),
    ("SCIM", "torque"): Goal(
        (-2.4,), (2.4,), (0.01,), (0.1,), (0.12,), 6.3, (-250.0, 250.0), finite_period=5e-6
    ),
    ("SCIM", "speed"): Goal(
        (-230.0,),
        (230.0,),
        (0.01,),
        (0.1,),
        (3.0,),
        419.0,
        (-200.0, 200.0),
        finite_period=5e-5,
        friction=Polynomial(0.01, 0.002),
        jump=25.0,
    ),
    ("DFIM", "current"): Goal(
        (0.6, -5.0, 0.6),
        (1.8, 5.0, 1.8),
        (0.001, 0.005, 0.001),
        (0.01, 0.05, 0.01),
        (0.375, 0.375, 0.375),
        9.0,
        (-130.0, 130.0),
        finite_period=2e-5,
    ),
    ("DFIM", "torque"): Goal(
        (-9.0,), (9.0,), (0.01,), (0.1,), (0.45,), 33.0, (-150.0, 150.0), finite_period=2e-5
    ),
    ("DFIM", "speed"): Goal(
        (-150.0,),
        (150.0,),
        (0.005,),
        (0.05,),
        (1.7,),
        188.0,
        (-140.0, 140.0),
        finite_period=1e-4,
        friction=Polynomial(0.05, 0.003),
        jump=10.0,
    ),
}

_JUMPS = {
    "PermExDc": 0.12,
    "ExtExDc": 0.8,
    "PMSM": 0.6,
    "SynRM": 0.4,
    "EESM": 0.025,
    "SixPhasePMSM": 0.15,
    "SCIM": 0.4,
    "DFIM": 0.12,
}
"""rad: jumps of the first set point of a position."""


def _position(machine: str, jump: float) -> Goal:
    """Return small moves about standstill, with the friction of the speed task."""
    halving, max_angle = jump / 20, 2 * jump
    return Goal(
        (-max_angle,),
        (max_angle,),
        (halving / 200,),
        (halving / 20,),
        (halving,),
        max_angle,
        (0.0, 0.0),
        friction=GOALS[machine, "speed"].friction,
        jump=jump,
    )


GOALS |= {(machine, "position"): _position(machine, jump) for machine, jump in _JUMPS.items()}

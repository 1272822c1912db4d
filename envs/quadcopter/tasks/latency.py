"""Flights as on a real vehicle.

Commands arrive late, sensors are noisy, and the inertia is known within a factor.

Each task is that of its calm file with three differences. Commands arrive 20 ms late (setting
``latency``: 0 to 30 ms), and the observation shows those under way. Sensors have the noise of
Eschmann, Albani & Loianno 2024 (arXiv:2311.13081): 1 mm, 1 mrad, 2 mm/s and 2 mrad/s of standard
deviation, and 0.1 % of full speed for rotors. One measurement of the motion makes all entries of an
observation. The moments of inertia about x and y lie between 3.5e-6 and 24e-6 kg m^2, so that the
range contains the published identifications of a Crazyflie 2.x:

===================  ===============================================================================
J_xx (kg m^2)        source
===================  ===============================================================================
3.85e-6              arXiv:2311.13081, code learning-to-fly@d07592d, the calm tasks' vehicle
9.42e-6              rl-tools, ``l2f/parameters/dynamics/crazyflie.h`` (Crazyflie 2.1)
1.40e-5              gym-pybullet-drones, ``cf2x.urdf``
1.66e-5              Forster 2015, doi:10.3929/ethz-b-000214143, table 3.6
2.40e-5              gym-pybullet-drones, ``cf2p.urdf`` (rotors on the axes)
===================  ===============================================================================

As for every vehicle of a data sheet (``physics/data_sheet.py``), the arena of the hover grows by
the height that the slowest vehicle falls while it turns upright: 1.5 m along each axis instead of
0.6 m.

The reference player uses observations only, knows the course, and learns its vehicle's constants in
flight (``control/predictor.py``).
"""

from __future__ import annotations

from typing import Any, ClassVar

from rlbench_suite.core.task_card import TaskCard

from ..physics.data_sheet import SHIPPED, DataSheet
from ..physics.rigid_body import Inertia
from .flight import Flight
from .gates import QuadcopterGates
from .hover import QuadcopterHover
from .land import QuadcopterLand
from .trajectory import QuadcopterTrajectory
from .with_latency import WithLatency

INERTIA = (3.5e-6, 24e-6)
"""kg m^2: least and largest moment of inertia about x and y"""

_MIDDLE = 0.5 * (INERTIA[1] + INERTIA[0])
_SIDE = (INERTIA[1] - INERTIA[0]) / (INERTIA[1] + INERTIA[0])
_YAW = SHIPPED.nominal.inertia.jz / SHIPPED.nominal.inertia.jx
UNCERTAIN_SHEET = SHIPPED._replace(
    nominal=SHIPPED.nominal._replace(
        inertia=Inertia(SHIPPED.nominal.inertia.mass, _MIDDLE, _MIDDLE, _YAW * _MIDDLE)
    ),
    spread=SHIPPED.spread._replace(
        inertia=Inertia(SHIPPED.spread.inertia.mass, _SIDE, _SIDE, _SIDE)
    ),
)
"""The Crazyflie with the inertia of any of its identifications."""


class UncertainHover(QuadcopterHover):
    """Hover of the uncertain vehicle."""

    shipped: ClassVar[DataSheet] = UNCERTAIN_SHEET


class UncertainTrajectory(QuadcopterTrajectory):
    """Trajectories of the uncertain vehicle."""

    shipped: ClassVar[DataSheet] = UNCERTAIN_SHEET


class UncertainLand(QuadcopterLand):
    """Landing of the uncertain vehicle."""

    shipped: ClassVar[DataSheet] = UNCERTAIN_SHEET


class UncertainGates(QuadcopterGates):
    """Gates for the uncertain vehicle."""

    shipped: ClassVar[DataSheet] = UNCERTAIN_SHEET


class Latency(WithLatency):
    """The flight that a subclass names, with latency and noisy sensors."""

    flight: ClassVar[type[Flight[Any, Any]]]

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(self.flight(card, difficulty=difficulty, dtype=dtype), noisy=True)


class HoverLatency(Latency):
    """Hover (``hover.py``) with latency."""

    flight = UncertainHover


class TrajectoryLatency(Latency):
    """Trajectories (``trajectory.py``) with latency."""

    flight = UncertainTrajectory


class LandLatency(Latency):
    """Landing (``land.py``) with latency."""

    flight = UncertainLand


class GatesLatency(Latency):
    """Gates (``gates.py``) with latency."""

    flight = UncertainGates

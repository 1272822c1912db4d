"""Flights as on a real vehicle: commands arrive late, sensors are noisy, the inertia is known within a factor.

Each task is that of its calm file with three differences. Commands arrive 20 ms late (setting ``latency``: 0 to 30 ms),
and the observation shows those under way. Sensors have the noise of Eschmann, Albani & Loianno 2024
(arXiv:2311.13081): 1 mm, 1 mrad, 2 mm/s and 2 mrad/s of standard deviation, and 0.1 % of full speed for rotors. One
measurement of the motion makes all entries of an observation. The moments of inertia about x and y lie between 3.5e-6
and 24e-6 kg m^2, so that the range contains the published identifications of a Crazyflie 2.x:

===================  ======================================================================================
J_xx (kg m^2)        source
===================  ======================================================================================
3.85e-6              arXiv:2311.13081, code learning-to-fly@d07592d, the calm tasks' vehicle
9.42e-6              rl-tools, ``l2f/parameters/dynamics/crazyflie.h`` (Crazyflie 2.1)
1.40e-5              gym-pybullet-drones, ``cf2x.urdf``
1.66e-5              Forster 2015, doi:10.3929/ethz-b-000214143, table 3.6
2.40e-5              gym-pybullet-drones, ``cf2p.urdf`` (rotors on the axes)
===================  ======================================================================================

As for every vehicle of a data sheet (``physics/data_sheet.py``), the arena of the hover grows by the height that the
slowest vehicle falls while it turns upright: 1.5 m along each axis instead of 0.6 m.

The reference player uses observations only, knows the course, and learns its vehicle's constants in flight
(``control/predictor.py``).
"""

from __future__ import annotations

from typing import ClassVar

from ..physics.data_sheet import SHIPPED, DataSheet
from ..physics.rigid_body import Inertia
from .flight import Late
from .gates import QuadcopterGates
from .hover import QuadcopterHover
from .land import QuadcopterLand
from .trajectory import QuadcopterTrajectory

INERTIA = (3.5e-6, 24e-6)
"""kg m^2: least and largest moment of inertia about x and y"""

_MIDDLE, _SIDE = 0.5 * (INERTIA[1] + INERTIA[0]), (INERTIA[1] - INERTIA[0]) / (INERTIA[1] + INERTIA[0])
_YAW = SHIPPED.nominal.inertia.jz / SHIPPED.nominal.inertia.jx
UNCERTAIN = SHIPPED._replace(
    nominal=SHIPPED.nominal._replace(inertia=Inertia(SHIPPED.nominal.inertia.mass, _MIDDLE, _MIDDLE, _YAW * _MIDDLE)),
    spread=SHIPPED.spread._replace(inertia=Inertia(SHIPPED.spread.inertia.mass, _SIDE, _SIDE, _SIDE)),
)
"""The Crazyflie with the inertia of any of its identifications."""


class Latency(Late):
    """Latency with noisy sensors and an uncertain vehicle."""

    noisy = True
    shipped: ClassVar[DataSheet] = UNCERTAIN


class HoverLatency(Latency, QuadcopterHover):
    """Hover (``hover.py``) with latency."""


class TrajectoryLatency(Latency, QuadcopterTrajectory):
    """Trajectories (``trajectory.py``) with latency."""


class LandLatency(Latency, QuadcopterLand):
    """Landing (``land.py``) with latency."""


class GatesLatency(Latency, QuadcopterGates):
    """Gates (``gates.py``) with latency."""

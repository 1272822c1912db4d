"""Waypoints and trajectories with actions other than four rotor commands: body rates or velocities.

Each task is exactly that of ``waypoints.py`` or ``trajectory.py``, with an action of
``by_command.py``.
"""

from __future__ import annotations

from .. import trajectory, waypoints
from ..trajectory import QuadcopterTrajectory, TrajectoryPilot
from ..waypoints import Pace, QuadcopterWaypoints, Tour, WaypointPilot
from .by_command import ByRates, ByVelocity


class WaypointsRates(ByRates[Tour, waypoints.State], QuadcopterWaypoints):
    """Waypoints by collective thrust and body rates."""

    pace = Pace(speed=5.0, slowest=0.6, braking=4.5)
    pilot = WaypointPilot


class WaypointsVelocity(ByVelocity[Tour, waypoints.State], QuadcopterWaypoints):
    """Waypoints by velocity and yaw rate."""

    pace = Pace(speed=8.0, slowest=1.0, braking=4.0)
    pilot = WaypointPilot


class TrajectoryRates(ByRates[trajectory.Params, trajectory.State], QuadcopterTrajectory):
    """Trajectories by collective thrust and body rates."""

    pilot = TrajectoryPilot


class TrajectoryVelocity(ByVelocity[trajectory.Params, trajectory.State], QuadcopterTrajectory):
    """Trajectories by velocity and yaw rate."""

    pilot = TrajectoryPilot

"""Hover with actions other than four rotor commands.

They are body rates, velocities, places, or one number for all rotors.

Each task is that of ``hover.py``, with the same vehicle, observation, reward, ends, success,
contexts and, but for ``"one"``, starts. ``by_command.py`` describes the actions ``"rates"``,
``"velocity"`` and ``"waypoint"``. The last one is

==============  ====================================================================================
``"one"``       ``(1,)``: the commanded speed of all four rotors: -1 is standstill, +1 is 21,702
                RPM. Start: level and still but for a height within 0.2 m and a vertical velocity
                within 1 m/s, so that flight is vertical (``ActionType.ONE_D_RPM`` of
                gym-pybullet-drones, arXiv:2103.02142)
==============  ====================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player

from ...control.geometric import compensate_lag
from ...physics.dynamics import HOVER_ACTION, Airframe, Quadcopter, Rotors
from ...physics.rigid_body import GRAVITY
from ..hover import QuadcopterHover
from .by_command import ByRates, ByVelocity, ByWaypoint, Commanded

HEIGHT_GAIN = 5.0
"""rad/s: natural frequency of the reference player's height"""


class HoverRates(ByRates[Airframe, Quadcopter], QuadcopterHover):
    """Hover by collective thrust and body rates."""


class HoverVelocity(ByVelocity[Airframe, Quadcopter], QuadcopterHover):
    """Hover by velocity and yaw rate."""

    speed = 1.0


class HoverWaypoint(ByWaypoint[Airframe, Quadcopter], QuadcopterHover):
    """Hover by places, relative to the vehicle."""


class HoverOne(Commanded[Airframe, Quadcopter], QuadcopterHover):
    """Hover with one command for all rotors, so that flight is vertical."""

    action_size = 1
    meaning = (
        "the commanded speed of all four rotors, -1 standstill, 1 full speed, about "
        f"{HOVER_ACTION} carries the weight"
    )

    def initial(self, key: jax.Array, params: Airframe) -> Quadcopter:
        """Return the start of hover, without all but height and vertical velocity."""
        start = super().initial(key, params)
        still = dict.fromkeys(
            ("x", "y", "qx", "qy", "qz", "vx", "vy", "wx", "wy", "wz"), jnp.zeros((), self.dtype)
        )
        return start._replace(body=start.body._replace(qw=jnp.ones((), self.dtype), **still))

    def action_components(self) -> tuple[Component, ...]:
        """List one command for all rotors."""
        return (
            Component(
                "rotors", "commanded speed of all four rotors: -1 is standstill, 1 full speed"
            ),
        )

    def rotors(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """Return the same command for each rotor."""
        return jnp.broadcast_to(action[0], (4,))

    def noop_action(self) -> np.ndarray:
        """Return the nominal vehicle's hover command."""
        return np.full(1, HOVER_ACTION, self.dtype)


@privileged_player
class OnePilot(NamedTuple):
    """The reference player of ``"one"``: a critically damped law on height.

    It knows the vehicle and its motors.
    """

    @classmethod
    def for_task(cls, task: HoverOne) -> OnePilot:
        """Make the player."""
        return cls()

    def initial(self, params: Airframe) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the rotor command for the thrust, compensating the motors' lag."""
        state: Quadcopter = view.state
        body, params = state.body, view.params
        acceleration = GRAVITY - HEIGHT_GAIN * (HEIGHT_GAIN * body.z + 2 * body.vz)
        force = 0.25 * params.inertia.mass * acceleration
        command = compensate_lag(state, params, Rotors(force, force, force, force))[0]
        return jnp.clip(jnp.stack([command]), -1, 1), memory

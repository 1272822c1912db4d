"""Hover, waypoints and trajectories under real conditions.

There are wind and gusts, a payload, and a battery that sags.

Each task has the observation, reward, ends and success of its calm task. The differences are the
air (``wind.py``), the body (``payload.py``) and the rotors' full speed (``battery.py``, all in
``physics``). None of them is shown, so an agent of the calm task can fly here, and an agent with a
memory can learn its conditions. A step of the episode is one Runge-Kutta step of 10 ms with rotor
drag; wind and voltage are held over a step.

======================  ============================================================================
action ``(4,)``         as in the calm task, but +1 is the full speed that the battery's voltage
                        allows: 21,702 RPM down to 3.7 V, and below in proportion to the voltage
observation             as in the calm task: position is that of the common centre of mass
success                 as in the calm task, of the same name without ``Rough``
wind (context)          mean speed 2 to 8 m/s, train and test in alternating bands of 0.25 m/s; any
                        heading; Dryden turbulence at 3 m above ground: 23 % of the mean along and
                        across, 12 % vertical
privileged ``(7,)``     the air's velocity, mass and place of the payload, the rotors' full speed
payload (context)       0 to 4 g (up to 15 % of the nominal mass), within 10 mm of the middle along
                        x and y, 10 to 20 mm below it
battery (context)       half full to full, rested
the rest                vehicle (train and test masses in alternating bands), course and start are
                        those of the calm task for the same seed
======================  ============================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Components
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ..control.disturbance_observer import Observed, Rates, initial_estimate, observe
from ..control.geometric import GeometricControl, rotor_commands
from ..physics import battery, dynamics, wind
from ..physics.battery import Battery
from ..physics.dynamics import STEP
from ..physics.payload import Payload
from ..physics.rigid_body import Scalar, squared_length
from ..physics.vehicles import CRAZYFLIE_AIR
from ..physics.wind import Gusts, Wind
from ..rendering.picture import Shot
from .flight import Flight, FreeFlight
from .hover import QuadcopterHover
from .trajectory import QuadcopterTrajectory, TrajectoryPilot
from .waypoints import Pace, QuadcopterWaypoints, WaypointPilot

WIND_SPEED = (2.0, 8.0)
"""m/s"""
WIND_BANDS = 24
PAYLOAD_MASS = 0.004
"""kg: the heaviest."""
MAX_PAYLOAD_OFFSET = 0.01
"""m: along body x and y, either way."""
PAYLOAD_DEPTH = (0.01, 0.02)
"""m"""
CHARGE = (0.5, 1.0)

MEASURES = {
    "wind_speed": "of the air, gusts included, m/s",
    "battery_voltage": "under load, V",
}


class Conditions(NamedTuple):
    """Conditions that calm tasks do not have."""

    wind: Wind
    payload: Payload
    charge: Scalar
    """Charge of the battery at the start, in [0, 1]."""


class Params(NamedTuple):
    """The context."""

    calm: Any
    """Context of the calm task."""
    conditions: Conditions


class State(NamedTuple):
    """The state."""

    calm: Any
    """State of the calm task."""
    gusts: Gusts
    battery: Battery


class Rough(Flight[Params, State]):
    """The calm task that a subclass names, under the conditions of this file's docstring."""

    task: ClassVar[type[FreeFlight[Any, Any]]]
    pilot: ClassVar[type[GeometricControl | WaypointPilot | TrajectoryPilot]]
    """The reference player of the calm task."""
    takes_data_sheet = False

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.calm = self.task(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.calm.observation_space
        self.reward_space = self.calm.reward_space
        self.privileged_space = self.box(-np.inf, np.inf, (7,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw the calm task's context for this key, and conditions."""
        u = self.uniform(jax.random.fold_in(key, 1), 7)
        shallow, deep = PAYLOAD_DEPTH
        empty, full = CHARGE
        return Params(
            self.calm.sample_params(key, split),
            Conditions(
                Wind(
                    alternating_bands(u[0], split, *WIND_SPEED, bands=WIND_BANDS),
                    2 * math.pi * u[1],
                ),
                Payload(
                    PAYLOAD_MASS * u[2],
                    MAX_PAYLOAD_OFFSET * (2 * u[3] - 1),
                    MAX_PAYLOAD_OFFSET * (2 * u[4] - 1),
                    -(shallow + (deep - shallow) * u[5]),
                ),
                empty + (full - empty) * u[6],
            ),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Return the calm task's start for this key, in gusts of a wind that has blown for long."""
        calm, conditions = params
        gusts = wind.stationary_gusts(conditions.wind, self._normals(jax.random.fold_in(key, 1)))
        return State(
            self.calm.initial(key, calm),
            gusts,
            Battery(conditions.charge, jnp.zeros((), self.dtype)),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the vehicle one step in wind, with its payload, at the battery's voltage.

        Gusts and battery follow.
        """
        conditions, airframe = params.conditions, self.calm.airframe(params.calm)
        vehicle = self.calm.vehicle(state.calm)
        power = battery.rotor_power(vehicle.rotors, airframe)
        limit = battery.full_speed(battery.voltage(state.battery, power))
        air = wind.air_velocity(state.gusts, conditions.wind)
        vehicle = dynamics.step(
            vehicle,
            dynamics.commanded_speeds(action, limit),
            airframe,
            STEP,
            CRAZYFLIE_AIR,
            wind=air,
            payload=conditions.payload,
        )
        return State(
            self.calm.next_state(state.calm, vehicle, params.calm),
            wind.blow(state.gusts, conditions.wind, self._normals(key), STEP),
            battery.discharge(state.battery, power, STEP),
        )

    def _normals(self, key: jax.Array) -> jax.Array:
        return self.normal(key, wind.NORMALS)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return that of the calm task."""
        return self.calm.observation(state.calm, key, params.calm)

    def observation_components(self) -> Components:
        """List the entries of the calm task's observation."""
        return self.calm.observation_components()

    def privileged(self, state: State, params: Params) -> jax.Array:
        """Return the hidden conditions, shape ``(7,)``.

        They are the velocity of the air (3, m/s), the payload's mass and offsets along body x and
        y, relative to their largest values, and the rotors' full speed, relative to that of a full
        battery.
        """
        air = wind.air_velocity(state.gusts, params.conditions.wind)
        payload = params.conditions.payload
        rotors, airframe = self.calm.vehicle(state.calm).rotors, self.calm.airframe(params.calm)
        volts = battery.voltage(state.battery, battery.rotor_power(rotors, airframe))
        load = (
            payload.mass / PAYLOAD_MASS,
            payload.x / MAX_PAYLOAD_OFFSET,
            payload.y / MAX_PAYLOAD_OFFSET,
        )
        return self.stack(*air, *load, battery.full_speed(volts) / dynamics.ROTOR_SPEED_LIMIT)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return that of the calm task."""
        return self.calm.reward(state.calm, action, next_state.calm, key, params.calm)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return that of the calm task."""
        return self.calm.terminal(state.calm, key, params.calm)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures of the calm task, and the present conditions."""
        air = wind.air_velocity(state.gusts, params.conditions.wind)
        rotors, airframe = self.calm.vehicle(state.calm).rotors, self.calm.airframe(params.calm)
        return self.calm.info(state.calm, params.calm) | {
            "wind_speed": jnp.sqrt(squared_length(*air)),
            "battery_voltage": battery.voltage(
                state.battery, battery.rotor_power(rotors, airframe)
            ),
        }

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say which limit of the calm task was passed."""
        return self.calm.why_over(state.calm, params.calm, info)

    def describe(self, state: State, params: Params) -> str:
        """Describe the state as the calm task does."""
        return self.calm.describe(state.calm, params.calm)

    def shot(self, state: State, params: Params) -> Shot:
        """Show the state as the calm task does."""
        return self.calm.shot(state.calm, params.calm)


class RoughHover(Rough):
    """Hover (``hover.py``) in rough conditions."""

    task = QuadcopterHover
    pilot = GeometricControl
    measures: ClassVar[dict[str, str]] = QuadcopterHover.measures | MEASURES
    errors = QuadcopterHover.errors


class SteadyWaypointPilot(WaypointPilot):
    """The reference player of waypoints, slower and less tilted.

    Gusts would carry a faster one past its waypoint.
    """

    @classmethod
    def for_task(cls, task: Any) -> Any:
        """Make the pilot of the calm task's vehicle."""
        return cls.for_vehicle(
            task, Pace(4.8, 1.1, 4.75), position=3.5, tilt=40.0, lean=2.5, least_thrust=0.63
        )


class RoughWaypoints(Rough):
    """Waypoints (``waypoints.py``) in rough conditions."""

    task = QuadcopterWaypoints
    pilot = SteadyWaypointPilot
    measures: ClassVar[dict[str, str]] = QuadcopterWaypoints.measures | MEASURES


class RoughTrajectory(Rough):
    """Trajectories (``trajectory.py``) in rough conditions."""

    task = QuadcopterTrajectory
    pilot = TrajectoryPilot
    measures: ClassVar[dict[str, str]] = QuadcopterTrajectory.measures | MEASURES
    errors = QuadcopterTrajectory.errors


@privileged_player
class RoughPilot(NamedTuple):
    """The reference player: that of the calm task, with a disturbance observer and a voltmeter.

    It knows the vehicle as the calm task's player does, and measures the battery's voltage. It does
    not know wind and payload: it observes their effect and subtracts it from the accelerations that
    it asks for.
    """

    pilot: GeometricControl | WaypointPilot | TrajectoryPilot
    share: Rates = Rates(0.2, 0.2, 0.2, 0.05, 0.05, 0.05)
    """Weight of a new measurement in the observer's estimate: low-pass filters of 0.05 and 0.2 s.
    """

    @classmethod
    def for_task(cls, task: Rough) -> RoughPilot:
        """Make the player of the calm task, and equip it."""
        return cls(task.pilot.for_task(task.calm))

    def initial(self, params: Params) -> Observed:
        """Return an observer that has seen nothing."""
        return initial_estimate()

    def act(self, memory: Observed, view: View, key: jax.Array) -> tuple[jax.Array, Observed]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        state, params = view.state, view.params
        vehicle, airframe, goal = self.pilot.aim(state.calm, params.calm)
        memory = observe(memory, vehicle, airframe, self.share)
        unknown = memory.disturbance
        goal = goal._replace(ax=goal.ax - unknown.x, ay=goal.ay - unknown.y, az=goal.az - unknown.z)
        thrust, tx, ty, tz = self.pilot.control.thrust_and_torques(vehicle, airframe, goal)
        _, jx, jy, jz = airframe.inertia
        tx, ty, tz = tx - jx * unknown.roll, ty - jy * unknown.pitch, tz - jz * unknown.yaw
        volts = battery.voltage(state.battery, battery.rotor_power(vehicle.rotors, airframe))
        # Compute nothing from the stacked commands: it could be compiled twice, and round
        # differently in the commands that fly and in those that are recorded.
        return rotor_commands(
            vehicle, airframe, thrust, tx, ty, tz, battery.full_speed(volts)
        ), memory

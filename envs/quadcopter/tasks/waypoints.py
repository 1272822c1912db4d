"""Fly to one waypoint after another, round and round, as many as time allows.

Dynamics: ``physics/dynamics.py`` with rotor drag, one Runge-Kutta step of 10 ms a step of the
episode. Nothing is random after the start. Source of the task: waypoint flight as in Hwangbo, Sa,
Siegwart & Hutter 2017 (Control of a quadrotor with reinforcement learning),
doi:10.1109/LRA.2017.2720851, with progress as reward after Song, Steinweg, Kaufmann & Scaramuzza
2021 (Autonomous drone racing with deep reinforcement learning), arXiv:2103.08624, eq. 2.

======================  ============================================================================
action ``(4,)``         commanded speed of rotor 1..4: -1 is standstill, +1 is 21,702 RPM, linear
                        between
observation ``(25,)``   vectors to the next waypoint and to the one after it (3 and 3, m, world
                        frame), rotation matrix body to world (9, row by row), velocity in the world
                        frame (3, m/s), angular velocity in the body frame (3, rad/s), rotor speeds
                        (4, on the action's scale)
reward                  metres by which it came nearer to its waypoint, plus 1 for reaching it (0.2
                        m). A crash counts as ending 6 m away from the waypoint: every crash costs
                        as much as flying off, which is more than coming nearer had brought.
                        Hovering earns nothing. A context may weigh progress, prize and loss
                        otherwise (``course.py``)
terminated              a crash: further than 6 m from its waypoint, or an angular velocity beyond
                        2,000 deg/s about an axis
success                 all eight waypoints reached
start                   within 0.1 m of the origin along each axis, tilted by up to 10 degrees, slow
                        (0.1 m/s and 0.1 rad/s an axis), rotors at the speed of hovering
context                 eight waypoints, uniform in a box of 3 x 3 x 2 m about the origin, visited
                        in turn, the first again after the last; the vehicle, as in hover: mass +-20
                        % (train and test in alternating bands of 1 %), inertia +-20 %, thrust
                        coefficient +-10 %, torque coefficient +-20 %, motor time constant +-25 %
======================  ============================================================================
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task_card import TaskCard

from ..control.geometric import GeometricControl, SetPoint, make_pilot
from ..physics import dynamics
from ..physics.data_sheet import SHIPPED
from ..physics.dynamics import Airframe, Quadcopter
from ..physics.rigid_body import Scalar, squared_length
from ..physics.sampling import body_near_rest, sample_airframe
from ..rendering import picture
from ..rendering.picture import Shot
from ..sensing import motion
from . import course
from .course import offset_to_point, progress_reward
from .flight import FreeFlight
from .with_latency import with_latency

COUNT = 8
"""Number of waypoints."""
BOX = (1.5, 1.5, 1.0)
"""m from the origin along each axis"""
REACHED_DISTANCE = 0.2
"""m"""
LOST_DISTANCE = 6.0
"""m from the waypoint"""
# The vehicle stays within 6 m of some waypoint, where 41 m/s^2 at most end below 32 m/s; a step is
# at most 0.35 m.
VELOCITY_BOUND = 35.0
SLACK = 0.4
DISTANCE_BOUND = LOST_DISTANCE + SLACK
NEXT_BOUND = DISTANCE_BOUND + 2 * max(BOX)


class Tour(NamedTuple):
    """The context."""

    airframe: Airframe
    x: jax.Array
    """``(8,)`` m: the waypoints, in the order of visit."""
    y: jax.Array
    z: jax.Array


class State(NamedTuple):
    """The vehicle, and its progress."""

    vehicle: Quadcopter
    reached: jax.Array
    """int32: waypoints reached so far."""


class Pace(NamedTuple):
    """The speeds of a flight from waypoint to waypoint."""

    speed: Float = 5.2
    """m/s: the highest"""
    slowest: Float = 1.7
    """m/s: the speed through a waypoint"""
    braking: Float = 7.5
    """m/s^2"""


class QuadcopterWaypoints(FreeFlight[Tour, State]):
    """The task of this file's docstring."""

    pace: ClassVar[Pace] = Pace()
    """Speeds of the reference player"""
    terms = course.TERMS
    measures: ClassVar[dict[str, str]] = {
        "reached": "waypoints reached so far",
        "distance": "from the waypoint it flies to, m",
        "speed": "m/s",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        more = (self.speed_ratio - 1) * SLACK
        bound = np.array(
            [DISTANCE_BOUND + more] * 3
            + [NEXT_BOUND + more] * 3
            + self.body_observation_bound(VELOCITY_BOUND),
        )
        self.observation_space = self.box(-bound, bound)
        self.reward_space = self.box(
            *course.reward_range(
                self.context_values, nearer=0.5 * self.speed_ratio, lost=LOST_DISTANCE
            ),
            (),
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Tour:
        """Sample a vehicle and its waypoints."""
        u = self.uniform(key, 5 + 3 * COUNT)
        x, y, z = 2 * u[5:].reshape(3, COUNT) - 1
        return Tour(sample_airframe(u[:5], split, self.sheet), BOX[0] * x, BOX[1] * y, BOX[2] * z)

    def initial(self, key: jax.Array, params: Tour) -> State:
        """Start near the origin, nearly at rest."""
        body = body_near_rest(self.uniform(key, 12), 0.1)
        return State(Quadcopter(body, dynamics.hovering_rotors(params.airframe)), jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Tour) -> State:
        """Make one Runge-Kutta step under constant commands, then check the waypoint."""
        vehicle = self.step_vehicle(state.vehicle, action, params.airframe, air=self.sheet.air)
        return self.next_state(state, vehicle, params)

    def next_state(self, state: State, vehicle: Quadcopter, params: Tour) -> State:
        """Return the vehicle, and count the waypoint if it is reached."""
        is_reached = (
            squared_length(*offset_to_point(vehicle, state.reached, params)) < REACHED_DISTANCE**2
        )
        return State(vehicle, state.reached + is_reached)

    def observed_position(
        self, observation: jax.Array, state: Any, params: Any
    ) -> tuple[Scalar, Scalar, Scalar]:
        """Return the place (m) from which the waypoint is seen there."""
        x, y, z = (axis[state.reached % COUNT] for axis in (params.x, params.y, params.z))
        return x - observation[0], y - observation[1], z - observation[2]

    def observation(self, state: State, key: jax.Array, params: Tour) -> jax.Array:
        """Return shape ``(25,)``; see the table."""
        goal = offset_to_point(state.vehicle, state.reached, params)
        following = offset_to_point(state.vehicle, state.reached + 1, params)
        return self.stack(*goal, *following, *self.body_observation(state.vehicle))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        goal = motion.offset("waypoint", "from the vehicle to the waypoint that it flies to")
        return (
            goal,
            motion.offset("next_waypoint", "from the vehicle to the one after it"),
            *motion.ATTITUDE_AND_RATES,
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Tour
    ) -> jax.Array:
        """Return progress, plus a prize for a waypoint, minus the cost of a crash."""
        reached, over = next_state.reached > state.reached, self.terminal(next_state, key, params)
        return progress_reward(
            state.vehicle,
            next_state.vehicle,
            state.reached,
            params,
            reached=reached,
            over=over,
            lost=LOST_DISTANCE,
            context_values=self.context_values,
        )

    def terminal(self, state: State, key: jax.Array, params: Tour) -> jax.Array:
        """Say whether it is lost or spins faster than its gyroscope measures."""
        lost = (
            squared_length(*offset_to_point(state.vehicle, state.reached, params))
            > LOST_DISTANCE**2
        )
        return lost | motion.spins_too_fast(state.vehicle.body)

    def info(self, state: State, params: Tour) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return course.tour_info(state, params, COUNT)

    def why_over(self, state: State, params: Tour, info: dict[str, Any]) -> str:
        """Say which of the limits was passed."""
        if bool(motion.spins_too_fast(state.vehicle.body)):
            return motion.SPINS
        return f"crash: it is lost, more than {LOST_DISTANCE:.0f} m from its waypoint"

    def describe(self, state: State, params: Tour) -> str:
        """Describe the waypoints ahead, attitude, velocities and rotor speeds, with units."""
        goal, following = (
            offset_to_point(state.vehicle, state.reached + index, params) for index in (0, 1)
        )
        return (
            f"{int(state.reached)} waypoints reached. From here the next is at "
            f"{motion.format_point(goal)} m, the one after it at {motion.format_point(following)} "
            f"m. {self.describe_vehicle(state.vehicle)}"
        )

    def shot(self, state: State, params: Tour) -> Shot:
        """Show the vehicle, the waypoints (the next one in green) and the way between them."""
        points = np.stack(
            [np.asarray(coordinate, float) for coordinate in (params.x, params.y, params.z)], 1
        )
        goal = int(state.reached) % COUNT
        balls = [picture.goal(point, 0.1, now=i == goal) for i, point in enumerate(points)]
        return Shot(
            state.vehicle, 1.6, [*balls, *picture.path(np.vstack([points, points[:1]]))], below=1.2
        )


# The task that a card builds.
make = with_latency(QuadcopterWaypoints)


@privileged_player
class WaypointPilot(NamedTuple):
    """The reference player: geometric control holds a velocity towards the waypoint.

    The speed is the highest from which it can brake to ``pace.slowest`` at the waypoint, and at
    most ``pace.speed``. It does not stop at a waypoint.
    """

    control: GeometricControl
    pace: Pace

    @classmethod
    def for_task(cls, task: Any) -> Any:
        """Make geometric control at the task's pace.

        It leans further and brakes harder than in hover.
        """
        return make_pilot(task, lambda flight: cls.for_vehicle(flight, flight.pace))

    @classmethod
    def for_vehicle(cls, task: Any, pace: Pace, **gains: Any) -> WaypointPilot:
        """Make the pilot of the task's vehicle.

        Its pace is that of the shipped vehicle unless its thrust is too low.

        ``gains``: those of its control, where they are not the usual ones.
        """
        usual = {"position": 5.7, "tilt": 35.0, "lean": 6.0, "least_thrust": 0.5}
        control = GeometricControl.for_vehicle(task, **usual | gains)
        share = min(1.0, control.sheet.sideways_acceleration / SHIPPED.sideways_acceleration)
        return cls(
            control, pace._replace(speed=pace.speed * share**0.5, braking=pace.braking * share)
        )

    def initial(self, params: Tour) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        return self.control.command(*self.aim(view.state, view.params)), memory

    def aim(self, state: State, tour: Tour) -> tuple[Quadcopter, Airframe, SetPoint]:
        """Return the vehicle, its constants, and the set point.

        The set point is its own place, with the desired velocity.
        """
        x, y, z = offset_to_point(state.vehicle, state.reached, tour)
        distance = jnp.sqrt(squared_length(x, y, z))
        pace = self.pace
        speed = jnp.clip(
            jnp.sqrt(2 * pace.braking * distance), pace.slowest, pace.speed
        ) / jnp.maximum(distance, 1e-6)
        body = state.vehicle.body
        return (
            state.vehicle,
            tour.airframe,
            SetPoint(body.x, body.y, body.z, speed * x, speed * y, speed * z),
        )

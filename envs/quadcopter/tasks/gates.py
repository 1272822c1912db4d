"""Race through a procedural ring of six square gates.

It goes lap after lap, through as many gates as time allows.

Dynamics: ``physics/dynamics.py`` with rotor drag, one Runge-Kutta step of 10 ms a step of the
episode. Nothing is random after the start. Source of the task and of progress as its reward: Song,
Steinweg, Kaufmann & Scaramuzza 2021 (Autonomous drone racing with deep reinforcement learning),
arXiv:2103.08624, sec. III and eq. 2.

======================  ============================================================================
action ``(4,)``         commanded speed of rotor 1..4: -1 is standstill, +1 is 21,702 RPM, linear
                        between
observation ``(29,)``   of the next gate and the one after it, relative to the vehicle: centre (3,
                        m, world frame) and direction of passage (2: its x and y); rotation matrix
                        body to world (9, row by row), velocity in the world frame (3, m/s), angular
                        velocity in the body frame (3, rad/s), rotor speeds (4, on the action's
                        scale)
reward                  metres by which it came nearer to the gate's centre, plus 1 for passing the
                        gate. A crash counts as ending 5 m away from the gate: every crash costs as
                        much as flying off, which is more than coming nearer had brought. Hovering
                        earns nothing. A context may weigh progress, prize and loss otherwise
                        (``course.py``)
terminated              a crash: into the gate's frame, further than 5 m from the gate, or an
                        angular velocity beyond 2,000 deg/s about an axis
success                 a whole lap, six gates, is passed
start                   1 m before the first gate, within 0.1 m along each axis, tilted by up to 10
                        degrees, slow (0.1 m/s and 0.1 rad/s an axis), rotors at the speed of
                        hovering
context                 gates every 60 degrees around a ring, 1.7 to 2.3 m from its middle, up to
                        0.4 m higher or lower, turned by up to 23 degrees from the ring's direction,
                        the first anywhere; the vehicle, as in hover: mass +-20 % (train and test in
                        alternating bands of 1 %), inertia +-20 %, thrust coefficient +-10 %, torque
                        coefficient +-20 %, motor time constant +-25 %
======================  ============================================================================

A gate is an upright square: an opening 0.6 m wide in a frame 1 m wide. It counts only from front to
back; beside the frame nothing happens, and the way back is open. Only the next gate is solid.
"""

from __future__ import annotations

import math
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
from ..physics.dynamics import Airframe, Quadcopter
from ..physics.rigid_body import GRAVITY, Scalar, speed_of, squared_length
from ..physics.sampling import body_near_rest, sample_airframe
from ..rendering import picture
from ..rendering.picture import Shot
from ..rendering.scene import Face
from ..sensing import motion
from .course import TERMS, distance_to_point, offset_to_point, progress_reward, reward_range
from .flight import Flight
from .with_latency import with_latency

COUNT = 6
"""Gates of a lap."""
OPENING_HALF_WIDTH = 0.3
"""m"""
FRAME_HALF_WIDTH = 0.5
"""m, of the frame around the opening."""
RING_RADIUS = 2.0
"""m"""
MAX_RADIUS_DEVIATION = 0.3
"""m: largest deviation of a gate from the ring's radius, either way."""
MAX_HEIGHT_DEVIATION = 0.4
"""m: largest deviation of a gate from the ring's height, either way."""
MAX_TURN = 0.4
"""rad: largest deviation of a gate from the ring's direction, either way."""
LOST_DISTANCE = 5.0
"""m from the gate"""
# The vehicle stays within 5 m of some gate, where 41 m/s^2 at most end below 29 m/s; a step is at
# most 0.3 m.
VELOCITY_BOUND = 32.0
SLACK = 0.4
DISTANCE_BOUND = LOST_DISTANCE + SLACK
NEXT_BOUND = DISTANCE_BOUND + 2 * (RING_RADIUS + MAX_RADIUS_DEVIATION)


class Track(NamedTuple):
    """The context."""

    airframe: Airframe
    x: jax.Array
    """``(6,)`` m: centres of the gates, in the order of passage."""
    y: jax.Array
    z: jax.Array
    heading: jax.Array
    """``(6,)`` rad: direction of passage, from x counter-clockwise."""


class State(NamedTuple):
    """The vehicle, and its progress."""

    vehicle: Quadcopter
    passed: jax.Array
    """int32: gates passed so far."""
    hit: jax.Array
    """bool: whether it flew into a frame."""


class Crossing(NamedTuple):
    """A vehicle relative to the frame of a gate."""

    along: Scalar
    """m beyond the gate's plane, in the direction of passage"""
    left: Scalar
    """m"""
    up: Scalar
    """m"""


class QuadcopterGates(Flight[Track, State]):
    """The task of this file's docstring."""

    terms = TERMS
    measures: ClassVar[dict[str, str]] = {
        "passed": "gates passed so far",
        "distance": "from the middle of the next gate, m",
        "speed": "m/s",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        gate_bound, next_gate_bound = (
            [bound + (self.speed_ratio - 1) * SLACK] * 3 + [1 + motion.ROUNDING] * 2
            for bound in (DISTANCE_BOUND, NEXT_BOUND)
        )
        bound = np.array(gate_bound + next_gate_bound + self.body_observation_bound(VELOCITY_BOUND))
        self.observation_space = self.box(-bound, bound)
        self.reward_space = self.box(
            *reward_range(self.context_values, nearer=0.5 * self.speed_ratio, lost=LOST_DISTANCE),
            (),
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Track:
        """Sample a vehicle and a ring of gates."""
        u = self.uniform(key, 6 + 3 * COUNT)
        out, up, aside = 2 * u[6:].reshape(3, COUNT) - 1
        around = 2 * math.pi * (u[5] + np.arange(COUNT, dtype=self.dtype) / COUNT)
        radius = RING_RADIUS + MAX_RADIUS_DEVIATION * out
        heading = around + 0.5 * math.pi + MAX_TURN * aside
        airframe = sample_airframe(u[:5], split, self.sheet)
        return Track(
            airframe,
            radius * jnp.cos(around),
            radius * jnp.sin(around),
            MAX_HEIGHT_DEVIATION * up,
            heading,
        )

    def initial(self, key: jax.Array, params: Track) -> State:
        """Start before the first gate, nearly at rest."""
        body = body_near_rest(self.uniform(key, 12), 0.1)
        x = params.x[0] - jnp.cos(params.heading[0]) + body.x
        y = params.y[0] - jnp.sin(params.heading[0]) + body.y
        body = body._replace(x=x, y=y, z=params.z[0] + body.z)
        return State(
            Quadcopter(body, dynamics.hovering_rotors(params.airframe)),
            jnp.int32(0),
            jnp.bool_(False),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Track) -> State:
        """Make a Runge-Kutta step under constant commands, then find crossings of the gate.

        If the vehicle crossed the gate's plane, it is checked where.
        """
        vehicle = self.step_vehicle(state.vehicle, action, params.airframe, air=self.sheet.air)
        previous, current = (
            crossing(moving, state.passed, params) for moving in (state.vehicle, vehicle)
        )
        forwards = (previous.along < 0) & (current.along >= 0)
        backwards = (previous.along >= 0) & (current.along < 0)
        # The point at which the straight line between the two crossed it.
        fraction = previous.along / jnp.where(
            forwards | backwards, previous.along - current.along, 1
        )
        left = previous.left + fraction * (current.left - previous.left)
        up = previous.up + fraction * (current.up - previous.up)
        off = jnp.maximum(jnp.abs(left), jnp.abs(up))
        hit = (forwards | backwards) & (off >= OPENING_HALF_WIDTH) & (off < FRAME_HALF_WIDTH)
        return State(vehicle, state.passed + (forwards & (off < OPENING_HALF_WIDTH)), hit)

    def observed_position(
        self, observation: jax.Array, state: Any, params: Any
    ) -> tuple[Scalar, Scalar, Scalar]:
        """Return the place (m) from which the gate is seen there."""
        x, y, z = (axis[state.passed % COUNT] for axis in (params.x, params.y, params.z))
        return x - observation[0], y - observation[1], z - observation[2]

    def observation(self, state: State, key: jax.Array, params: Track) -> jax.Array:
        """Return shape ``(29,)``; see the table."""
        gates: list[Scalar] = []
        for number in (state.passed, state.passed + 1):
            heading = params.heading[number % COUNT]
            gates += [
                *offset_to_point(state.vehicle, number, params),
                jnp.cos(heading),
                jnp.sin(heading),
            ]
        return self.stack(*gates, *self.body_observation(state.vehicle))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        gates = (
            component
            for name, which in (("gate", "the next gate"), ("next_gate", "the gate after it"))
            for component in (
                motion.offset(name, f"from the vehicle to the middle of {which}"),
                Component(
                    f"{name}_direction",
                    f"direction of passage through {which}, along x and y of the world",
                    "1",
                    (2,),
                ),
            )
        )
        return *gates, *motion.ATTITUDE_AND_RATES

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Track
    ) -> jax.Array:
        """Return progress, plus a prize for a gate, minus the cost of a crash."""
        reached, over = next_state.passed > state.passed, self.terminal(next_state, key, params)
        return progress_reward(
            state.vehicle,
            next_state.vehicle,
            state.passed,
            params,
            reached=reached,
            over=over,
            lost=LOST_DISTANCE,
            context_values=self.context_values,
        )

    def terminal(self, state: State, key: jax.Array, params: Track) -> jax.Array:
        """Say whether it hit a frame, is lost or spins faster than its gyroscope measures."""
        lost = (
            squared_length(*offset_to_point(state.vehicle, state.passed, params)) > LOST_DISTANCE**2
        )
        return state.hit | lost | motion.spins_too_fast(state.vehicle.body)

    def info(self, state: State, params: Track) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": state.passed >= COUNT,
            "passed": state.passed,
            "distance": distance_to_point(state.vehicle, state.passed, params),
            "speed": speed_of(state.vehicle.body),
        }

    def why_over(self, state: State, params: Track, info: dict[str, Any]) -> str:
        """Say which of the three ends it was."""
        if bool(state.hit):
            return "crash: it flew into the frame of a gate"
        if bool(motion.spins_too_fast(state.vehicle.body)):
            return motion.SPINS
        return f"crash: it is lost, more than {LOST_DISTANCE:.0f} m from its gate"

    def describe(self, state: State, params: Track) -> str:
        """Describe the gates ahead, attitude, velocities and rotor speeds, with units."""
        gates = []
        for number in (int(state.passed), int(state.passed) + 1):
            heading = float(params.heading[number % COUNT])
            direction = motion.format_point((math.cos(heading), math.sin(heading), 0.0))
            gates.append(
                f"{motion.format_point(offset_to_point(state.vehicle, number, params))} m, passed "
                f"towards {direction}"
            )
        return (
            f"{int(state.passed)} gates passed. From here the next is at {gates[0]}; the one after "
            f"it at {gates[1]}. {self.describe_vehicle(state.vehicle)}"
        )

    def shot(self, state: State, params: Track) -> Shot:
        """Show the vehicle and the gates, the next one in green."""
        bars = []
        for i in range(COUNT):
            heading = float(params.heading[i])
            middle = np.array([params.x[i], params.y[i], params.z[i]], float)
            left = np.array([-math.sin(heading), math.cos(heading), 0.0])
            up = np.array([0.0, 0.0, 1.0])
            corners = [a * left + b * up for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
            colour = picture.GOAL if i == int(state.passed) % COUNT else picture.LATER_GOAL
            for corner, next_corner in zip(corners, corners[1:] + corners[:1], strict=True):
                bar = [
                    middle + point
                    for point in (
                        OPENING_HALF_WIDTH * corner,
                        FRAME_HALF_WIDTH * corner,
                        FRAME_HALF_WIDTH * next_corner,
                        OPENING_HALF_WIDTH * next_corner,
                    )
                ]
                bars.append(Face(np.array(bar), colour, "gray"))
        return Shot(state.vehicle, 2.5, bars, below=1.1)


# The task that a card builds.
make = with_latency(QuadcopterGates)


def crossing(vehicle: Quadcopter, number: Any, track: Track) -> Crossing:
    """Return the vehicle's place relative to gate ``number``."""
    x, y, z = offset_to_point(vehicle, number, track)
    heading = track.heading[number % COUNT]
    cosine, sine = jnp.cos(heading), jnp.sin(heading)
    return Crossing(-(cosine * x + sine * y), sine * x - cosine * y, -z)


TILT_GAIN = 26.0
"""rad/s: attitude gain of the reference player, if the vehicle allows it."""
FAST_TILT_GAIN = 21.0
"""rad/s: smallest attitude gain with which it flies at full speed."""


@privileged_player
class GatePilot(NamedTuple):
    """The reference player: geometric control holds a velocity towards a point on the gate's axis.

    The point lies a little behind the gate. It moves to the front by as much as the vehicle is off
    the axis, so that the vehicle lines up first. On a circle the speed is the root of radius and
    acceleration; so the desired speed is proportional to the root of the largest acceleration to
    the side by which the rotors still carry the weight. The gains are the best of a random search
    on training seeds. A vehicle that turns more slowly than the shipped one flies more slowly.
    """

    control: GeometricControl
    speed: Float = 0.85
    """m/s, by the root of the largest acceleration to the side (m/s^2)"""
    behind: Float = 0.57
    """m"""
    lining_up: Float = 0.92
    """m by which the point moves back for each metre off the axis."""

    @classmethod
    def for_task(cls, task: Any) -> Any:
        """Make geometric control that leans further and turns more gently than in hover."""

        def make(flight: Any) -> GatePilot:
            control = GeometricControl.for_vehicle(
                flight, position=4.0, tilt=TILT_GAIN, yaw=5.0, lean=2.5, least_thrust=0.5
            )
            slowdown = min(1.0, control.tilt / FAST_TILT_GAIN)
            return cls(control, cls(control).speed * slowdown)

        return make_pilot(task, make)

    def initial(self, params: Track) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        vehicle, track, number = view.state.vehicle, view.params, view.state.passed
        position = crossing(vehicle, number, track)
        off = jnp.sqrt(position.left * position.left + position.up * position.up)
        # Beyond the plane without passing the gate: return to the front first.
        point = jnp.where(
            position.along > 0, -1.2, self.behind - jnp.minimum(self.lining_up * off, 1.2)
        )
        heading = track.heading[number % COUNT]
        x, y, z = offset_to_point(vehicle, number, track)
        x, y = x + point * jnp.cos(heading), y + point * jnp.sin(heading)
        body, airframe = vehicle.body, track.airframe
        full = (
            4
            * airframe.thrust_coefficient
            * self.control.sheet.speed_limit**2
            / airframe.inertia.mass
        )
        fast = self.speed * jnp.sqrt(jnp.sqrt(jnp.maximum(full * full - GRAVITY**2, 1.0)))
        speed = fast / jnp.maximum(jnp.sqrt(squared_length(x, y, z)), 0.1)
        goal = SetPoint(body.x, body.y, body.z, speed * x, speed * y, speed * z)
        return self.control.command(vehicle, airframe, goal), memory

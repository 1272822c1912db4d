"""Track a moving reference with a preview of half a second.

References are Lissajous figures, figures of eight and helices.

Dynamics: ``physics/dynamics.py`` with rotor drag, one Runge-Kutta step of 10 ms a step of the
episode. Nothing is random after the start. Every path is a sum of sinusoids, ``a sin(w t + p)``
along each axis, so that its velocity and acceleration are closed forms; the figure of eight is the
lemniscate of Gerono. Source of the task: Eschmann, Albani & Loianno 2024 (Learning to Fly in
Seconds), arXiv:2311.13081, sec. V (Lissajous tracking); paths as in Mellinger & Kumar 2011,
doi:10.1109/ICRA.2011.5980409.

======================  ============================================================================
action ``(4,)``         commanded speed of rotor 1..4: -1 is standstill, +1 is 21,702 RPM, linear
                        between
observation ``(40,)``   from the vehicle to the reference now and 0.1, 0.2, 0.3, 0.4, 0.5 s later (3
                        each, m, world frame), the reference's velocity minus its own (3, m/s),
                        rotation matrix body to world (9, row by row), velocity in the world frame
                        (3, m/s), angular velocity in the body frame (3, rad/s), rotor speeds (4, on
                        the action's scale)
reward                  1 / (1 + (e / 0.1 m)^2), e the distance from the reference after the step.
                        Never negative, so ending early never pays
terminated              a crash: e beyond 1.5 m, or an angular velocity beyond 2,000 deg/s about an
                        axis
success                 e, averaged over about the last second, below 0.05 m; the average starts at
                        1.5 m
start                   within 0.1 m of the reference along each axis and within 0.1 m/s of its
                        velocity, tilted by up to 10 degrees, angular velocity within 0.1 rad/s
                        about each axis, rotors at the speed of hovering
context                 the shape, each as often: Lissajous figure of frequencies 1 or 2, 2 or 3, 1
                        to 3; figure of eight; helix, up and down in eight turns. Amplitude 0.6 to
                        1.2 m, along z 0.2 to 0.5 m, any phase, top speed 0.8 to 1.8 m/s. The
                        vehicle, as in hover: mass +-20 % (train and test in alternating bands of 1
                        %), inertia +-20 %, thrust coefficient +-10 %, torque coefficient +-20 %,
                        motor time constant +-25 %
======================  ============================================================================
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
from ..physics.aerodynamics import rotor_drag
from ..physics.dynamics import STEP, Airframe, Quadcopter
from ..physics.rigid_body import Scalar, squared_length
from ..physics.sampling import body_near_rest, sample_airframe
from ..rendering import picture
from ..rendering.picture import Shot
from ..sensing import motion
from .flight import FreeFlight
from .with_latency import with_latency

PREVIEW = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""s"""
HALVING_ERROR = 0.1
"""m: distance at which the reward is one half."""
LOST_DISTANCE = 1.5
"""m from the reference"""
MAX_MEAN_ERROR = 0.05
"""m: averaged distance that counts as success."""
MEMORY = 1.0
"""s: time constant of that average."""
TOP_SPEED = 1.8
"""m/s: highest speed of any reference."""
# It stays within 1.5 m of a reference that moves at 1.8 m/s at most; over 3 m, 41 m/s^2 at most end
# at 15.7 m/s.
VELOCITY_BOUND = 20.0
SLACK = 0.3
DISTANCE_BOUND = LOST_DISTANCE + SLACK + TOP_SPEED * PREVIEW[-1]


class Sinusoid(NamedTuple):
    """``amplitude sin(rate t + phase)`` (m) along one axis."""

    amplitude: Scalar
    """m"""
    rate: Scalar
    """rad/s"""
    phase: Scalar
    """rad"""

    def __call__(self, time: Scalar) -> Scalar:
        """Return the place (m)."""
        return self.amplitude * jnp.sin(self.rate * time + self.phase)

    def velocity(self, time: Scalar) -> Scalar:
        """Return the velocity (m/s)."""
        return self.amplitude * self.rate * jnp.cos(self.rate * time + self.phase)

    def acceleration(self, time: Scalar) -> Scalar:
        """Return the acceleration (m/s^2)."""
        return -self.rate * self.rate * self(time)


class Path(NamedTuple):
    """A reference's motion along each axis."""

    x: Sinusoid
    y: Sinusoid
    z: Sinusoid


class Params(NamedTuple):
    """The context."""

    airframe: Airframe
    path: Path


class State(NamedTuple):
    """The vehicle, the time, and how well it tracked lately."""

    vehicle: Quadcopter
    steps: jax.Array
    """int32: steps since the start, of 10 ms each."""
    mean_error: jax.Array
    """m: distance from the reference, averaged with time constant MEMORY.

    It is LOST_DISTANCE at the start.
    """


class QuadcopterTrajectory(FreeFlight[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "error": "distance from the reference, m",
        "mean_error": "the same, averaged over about the last second, m",
    }
    errors = ("reference_0s",)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        bound = np.array(
            [DISTANCE_BOUND + (self.speed_ratio - 1) * SLACK] * 3 * len(PREVIEW)
            + [self.speed_ratio * VELOCITY_BOUND + TOP_SPEED] * 3
            + self.body_observation_bound(VELOCITY_BOUND)
        )
        self.observation_space = self.box(-bound, bound)
        self.reward_space = self.box(0, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a vehicle and a path."""
        u = self.uniform(key, 15)
        shape = u[5]
        fx = jnp.floor(1 + 2 * u[6])
        fy = jnp.floor(2 + 2 * u[7])
        fz = jnp.floor(1 + 3 * u[8])
        eight, helix = (shape >= 1 / 3) & (shape < 2 / 3), shape >= 2 / 3
        across, height = 0.6 + 0.6 * u[9], 0.2 + 0.3 * u[10]
        px, py, pz = (2 * math.pi * unit for unit in u[11:14])

        def select_figure(lissajous: Scalar, eight_: Scalar, helix_: Scalar) -> Scalar:
            return jnp.where(eight, eight_, jnp.where(helix, helix_, lissajous))

        amplitudes = (
            across,
            select_figure(across, 0.5 * across, across),
            select_figure(height, 0.0, height),
        )
        frequencies = (
            select_figure(fx, 1.0, 1.0),
            select_figure(fy, 2.0, 1.0),
            select_figure(fz, 1.0, 0.125),
        )
        phases = px, select_figure(py, 2 * px, px + 0.5 * math.pi), pz
        # The rate at which the speed would be the top speed if all axes were fastest at once.
        fastest = squared_length(*(a * f for a, f in zip(amplitudes, frequencies, strict=True)))
        rate = (0.8 + (TOP_SPEED - 0.8) * u[14]) / jnp.maximum(jnp.sqrt(fastest), 0.1)
        path = Path(
            *(
                Sinusoid(a, rate * f, p)
                for a, f, p in zip(amplitudes, frequencies, phases, strict=True)
            )
        )
        return Params(sample_airframe(u[:5], split, self.sheet), path)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start near the reference and nearly as fast."""
        off, zero = body_near_rest(self.uniform(key, 12), 0.1), jnp.zeros((), self.dtype)
        (x, y, z), (vx, vy, vz) = path_position(params.path, zero), velocity(params.path, zero)
        body = off._replace(
            x=x + off.x, y=y + off.y, z=z + off.z, vx=vx + off.vx, vy=vy + off.vy, vz=vz + off.vz
        )
        vehicle = Quadcopter(body, dynamics.hovering_rotors(params.airframe))
        return State(vehicle, jnp.int32(0), zero + LOST_DISTANCE)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make one Runge-Kutta step under constant commands."""
        vehicle = self.step_vehicle(state.vehicle, action, params.airframe, air=self.sheet.air)
        return self.next_state(state, vehicle, params)

    def next_state(self, state: State, vehicle: Quadcopter, params: Params) -> State:
        """Return the vehicle, the time, and how well it tracked."""
        moved = State(vehicle, state.steps + 1, state.mean_error)
        error = jnp.sqrt(squared_length(*self._ahead(moved, params)))
        return moved._replace(
            mean_error=state.mean_error + STEP / MEMORY * (error - state.mean_error)
        )

    def observed_position(
        self, observation: jax.Array, state: Any, params: Any
    ) -> tuple[Scalar, Scalar, Scalar]:
        """Return the place (m) from which the reference is seen there."""
        x, y, z = path_position(params.path, self._time(state))
        return x - observation[0], y - observation[1], z - observation[2]

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(40,)``; see the table."""
        body = state.vehicle.body
        preview = [
            coordinate for later in PREVIEW for coordinate in self._ahead(state, params, later)
        ]
        vx, vy, vz = velocity(params.path, self._time(state))
        slip = (vx - body.vx, vy - body.vy, vz - body.vz)
        return self.stack(*preview, *slip, *self.body_observation(state.vehicle))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        ahead = (
            motion.offset(
                f"reference_{later:g}s",
                f"from the vehicle to where the reference is {later:g} s later",
            )
            for later in PREVIEW
        )
        slip = Component(
            "slip",
            "velocity of the reference minus the vehicle's, along x, y, z of the world",
            "m/s",
            (3,),
        )
        return *ahead, slip, *motion.ATTITUDE_AND_RATES

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return how near the reference the step leads."""
        return 1 / (1 + squared_length(*self._ahead(next_state, params)) * (1 / HALVING_ERROR**2))

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether it lost the reference or spins faster than its gyroscope measures."""
        return (
            squared_length(*self._ahead(state, params)) > LOST_DISTANCE**2
        ) | motion.spins_too_fast(state.vehicle.body)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": state.mean_error < MAX_MEAN_ERROR,
            "error": jnp.sqrt(squared_length(*self._ahead(state, params))),
            "mean_error": state.mean_error,
        }

    def _time(self, state: State) -> Scalar:
        return jnp.asarray(state.steps, self.dtype) * STEP

    def _ahead(
        self, state: State, params: Params, later: float = 0.0
    ) -> tuple[Scalar, Scalar, Scalar]:
        """Return the vector from the vehicle to the reference's place ``later`` s from now (m)."""
        x, y, z = path_position(params.path, self._time(state) + later)
        body = state.vehicle.body
        return x - body.x, y - body.y, z - body.z

    # -- text and pixels ---------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say which of the limits was passed."""
        if bool(motion.spins_too_fast(state.vehicle.body)):
            return motion.SPINS
        return f"crash: it is more than {LOST_DISTANCE} m from the reference"

    def describe(self, state: State, params: Params) -> str:
        """Describe the reference ahead, attitude, velocities and rotor speeds, with units."""
        ahead = ", ".join(
            f"{later:.1f} s later {motion.format_point(self._ahead(state, params, later))}"
            for later in PREVIEW
        )
        moving = motion.format_point(velocity(params.path, self._time(state)))
        reference = f"From here the reference is at (m): {ahead}; it moves at {moving} m/s."
        return f"{reference} {self.describe_vehicle(state.vehicle)}"

    def shot(self, state: State, params: Params) -> Shot:
        """Show the vehicle, the reference (green) and its path over the next eight seconds."""
        time = float(state.steps) * STEP
        path = jax.tree.map(float, params.path)

        def positions_at(seconds: np.ndarray) -> np.ndarray:
            return np.stack(
                [axis.amplitude * np.sin(axis.rate * seconds + axis.phase) for axis in path], -1
            )

        goal = picture.goal(positions_at(np.array(time)), 0.05)
        return Shot(
            state.vehicle,
            1.3,
            [goal, *picture.path(positions_at(time + np.linspace(0, 8, 120)))],
            below=1.0,
        )


# The task that a card builds.
make = with_latency(QuadcopterTrajectory)


def path_position(path: Path, time: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return the reference's place at a time (s); m."""
    return path.x(time), path.y(time), path.z(time)


def velocity(path: Path, time: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return the reference's velocity at a time (s); m/s."""
    return path.x.velocity(time), path.y.velocity(time), path.z.velocity(time)


@privileged_player
class TrajectoryPilot(NamedTuple):
    """The reference player: geometric tracking control.

    The path's velocity and acceleration are fed forward.

    Acceleration is fed forward ``lead`` s early, because thrust lags behind motors and tilt. The
    rotors' drag is computed and added.
    """

    control: GeometricControl
    lead: Float = 0.05
    """s"""

    @classmethod
    def for_task(cls, task: Any) -> Any:
        """Make geometric control that may lean further than in hover."""

        def make(flight: Any) -> TrajectoryPilot:
            return cls(
                GeometricControl.for_vehicle(flight, position=8.0, lean=1.0, least_thrust=0.5)
            )

        return make_pilot(task, make)

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        vehicle, airframe, goal = self.aim(view.state, view.params)
        mass = airframe.inertia.mass
        dx, dy, dz = rotor_drag(vehicle.body, vehicle.rotors, self.control.sheet.air)
        goal = goal._replace(ax=goal.ax - dx / mass, ay=goal.ay - dy / mass, az=goal.az - dz / mass)
        return self.control.command(vehicle, airframe, goal), memory

    def aim(self, state: State, params: Params) -> tuple[Quadcopter, Airframe, SetPoint]:
        """Return the vehicle, its constants, and the reference as set point.

        Its acceleration is that a little later.
        """
        path, time = params.path, state.steps * STEP
        acceleration = [axis.acceleration(time + self.lead) for axis in path]
        goal = SetPoint(*path_position(path, time), *velocity(path, time), *acceleration)
        return state.vehicle, params.airframe, goal

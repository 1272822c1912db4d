"""Land on a pad through the cushion of air near the ground.

The vehicle should touch down softly, level and near the pad's middle.

Dynamics: ``physics/dynamics.py`` with rotor drag and the ground effect of each rotor, one
Runge-Kutta step of 10 ms a step of the episode. Nothing is random after the start. The problem: Shi
et al. 2019 (Neural Lander: stable drone landing control using learned dynamics), arXiv:1811.08027;
ground effect as in gym-pybullet-drones, arXiv:2103.02142, eq. 5.

======================  ============================================================================
action ``(4,)``         commanded speed of rotor 1..4: -1 is standstill, +1 is 21,702 RPM, linear
                        between
observation ``(22,)``   position from the middle of the pad, where the ground is z = 0 (3, m),
                        rotation matrix body to world (9, row by row), velocity in the world frame
                        (3, m/s), angular velocity in the body frame (3, rad/s), rotor speeds (4, on
                        the action's scale)
reward                  metres by which it came nearer to the pad. The end counts as 3 m away from
                        it, plus 12 exp(-(speed / 0.5 m/s)^2 - (tilt / 20 degrees)^2 - (distance /
                        0.3 m)^2) at touch-down. So a crash costs as much as flying off, which is
                        more than coming nearer had brought. Hovering earns nothing; a soft landing
                        earns about nine and what coming nearer brought. A context may weigh
                        progress, prize and loss otherwise (``course.py``)
terminated              touch-down: a rotor lower than 12.5 mm, the height of the legs. Or lost:
                        more than 2 m from the pad along x or y, or higher than 2.5 m; or an angular
                        velocity beyond 2,000 deg/s
success                 touched down slower than 0.3 m/s, tilted by less than 10 degrees, within
                        0.15 m of the middle
start                   0.8 to 1.4 m high, within 0.5 m of the pad along x and y, tilted by up to 20
                        degrees, velocity within 0.3 m/s along each axis, angular velocity within
                        0.3 rad/s about each, rotors at the speed of hovering
context                 strength of the ground effect +-50 %; the vehicle, as in hover: mass +-20 %
                        (train and test in alternating bands of 1 %), inertia +-20 %, thrust
                        coefficient +-10 %, torque coefficient +-20 %, motor time constant +-25 %
======================  ============================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import weights
from rlbench_suite.core.arrays import Float
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task_card import TaskCard

from ..control.geometric import GeometricControl, SetPoint, make_pilot
from ..physics import dynamics
from ..physics.aerodynamics import ground_effect, rotor_heights
from ..physics.dynamics import STEP, Airframe, Quadcopter, rotor_places
from ..physics.rigid_body import (
    GRAVITY,
    RigidBody,
    Scalar,
    rotation_matrix,
    speed_of,
    squared_length,
)
from ..physics.sampling import random_attitude, sample_airframe
from ..rendering import picture
from ..rendering.picture import Shot
from ..rendering.scene import Face
from ..sensing import motion
from .course import weighted_reward
from .flight import Flight
from .with_latency import with_latency

LEGS = 0.0125
"""m: height of the rotors' plane on the ground."""
REACH = 2.0
"""m from the pad along x and y"""
CEILING = 2.5
"""m"""
LOST_DISTANCE = 3.0
"""m: distance from the pad that any end counts as."""
PRIZE = 12.0
PRIZE_SPEED = 0.5
"""m/s: scale of the prize."""
PRIZE_TILT = math.radians(20)
"""rad: scale of the prize."""
PRIZE_DISTANCE = 0.3
"""m: scale of the prize."""
MAX_LANDING_SPEED = 0.3
"""m/s: limit of success."""
MAX_LANDING_TILT = math.radians(10)
"""rad: limit of success."""
MAX_LANDING_DISTANCE = 0.15
"""m from the pad's middle: limit of success."""
POSITION_BOUND = 3.0
VELOCITY_BOUND = 25.0
"""m/s: 41 m/s^2 at most over a diagonal of 6.2 m would end at 22.6."""


class Params(NamedTuple):
    """The context."""

    airframe: Airframe
    ground: jax.Array
    """Ground effect: relative thrust gained, by (propeller radius / (4 height))^2."""


class QuadcopterLand(Flight[Params, Quadcopter]):
    """The task of this file's docstring. State: :class:`Quadcopter`."""

    measures: ClassVar[dict[str, str]] = {
        "distance": "from the middle of the pad, m",
        "speed": "m/s",
        "tilt": "angle between the body's z axis and the vertical, rad",
    }
    terms = weights(
        progress=(1.0, "metres nearer to the pad, in steps that do not end the episode"),
        prize=(PRIZE, "a touch-down: 1 if it is still, level and in the middle, less otherwise"),
        loss=(
            1.0,
            f"{LOST_DISTANCE:g} m minus the distance from the pad, taken off as the episode ends",
        ),
    )
    ends_in_failure = False

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        bound = np.array(
            [self.speed_ratio * POSITION_BOUND] * 3 + self.body_observation_bound(VELOCITY_BOUND)
        )
        self.observation_space = self.box(-bound, bound)
        weight = self.context_values.weight
        moved = weight("progress") * self.speed_ratio * VELOCITY_BOUND * STEP
        self.reward_space = self.box(
            -max(weight("loss") * LOST_DISTANCE, moved), max(weight("prize"), moved), ()
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a vehicle, and how strongly it feels the ground."""
        u = self.uniform(key, 6)
        return Params(
            sample_airframe(u[:5], split, self.sheet), self.sheet.air.ground * (0.5 + u[5])
        )

    def initial(self, key: jax.Array, params: Params) -> Quadcopter:
        """Start above the pad."""
        u = self.uniform(key, 12)
        x, y = (0.5 * (2 * unit - 1) for unit in u[:2])
        vx, vy, vz, wx, wy, wz = (0.3 * (2 * unit - 1) for unit in u[3:9])
        body = RigidBody(
            x,
            y,
            0.8 + 0.6 * u[2],
            *random_attitude(u[9:], math.radians(20)),
            vx,
            vy,
            vz,
            wx,
            wy,
            wz,
        )
        return Quadcopter(body, dynamics.hovering_rotors(params.airframe))

    def transition(
        self, state: Quadcopter, action: jax.Array, key: jax.Array, params: Params
    ) -> Quadcopter:
        """Make one Runge-Kutta step under constant commands."""
        air = self.sheet.air._replace(ground=params.ground)
        return self.step_vehicle(state, action, params.airframe, air=air, ground=True)

    def vehicle(self, state: Quadcopter) -> Quadcopter:
        """Return the state itself."""
        return state

    def with_vehicle(self, state: Quadcopter, vehicle: Quadcopter) -> Quadcopter:
        """Return the vehicle, which is the whole state."""
        return vehicle

    def with_airframe(self, params: Params, airframe: Airframe) -> Params:
        """Assume the usual ground effect."""
        return Params(airframe, self.sheet.air.ground)

    def observation(self, state: Quadcopter, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(22,)``; see the table."""
        body = state.body
        return self.stack(body.x, body.y, body.z, *self.body_observation(state))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return motion.offset(
            "position", "from the middle of the pad to the vehicle"
        ), *motion.ATTITUDE_AND_RATES

    def reward(
        self,
        state: Quadcopter,
        action: jax.Array,
        next_state: Quadcopter,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return progress, and the value of the end."""
        body = next_state.body
        speed = squared_length(body.vx, body.vy, body.vz)
        tilt = _tilt(body)
        miss = squared_length(body.x, body.y, 0.0)
        cost = (
            speed * (1 / PRIZE_SPEED**2)
            + tilt * tilt * (1 / PRIZE_TILT**2)
            + miss * (1 / PRIZE_DISTANCE**2)
        )
        prize = jnp.where(
            self.touches(body), self.context_values.weight("prize") * jnp.exp(-cost), 0
        )
        over = self.terminal(next_state, key, params)
        if self.context_values.reweighted:
            previous_distance, next_distance = distance(state.body), distance(body)
            return weighted_reward(
                self.context_values,
                previous_distance,
                next_distance,
                prize=prize,
                over=over,
                lost=LOST_DISTANCE,
            )
        return distance(state.body) - jnp.where(over, LOST_DISTANCE, distance(body)) + prize

    def terminal(self, state: Quadcopter, key: jax.Array, params: Params) -> jax.Array:
        """Say whether it is down, left the arena or spins faster than its gyroscope measures."""
        body = state.body
        outside = (jnp.abs(body.x) > REACH) | (jnp.abs(body.y) > REACH) | (body.z > CEILING)
        return self.touches(body) | outside | motion.spins_too_fast(body)

    def info(self, state: Quadcopter, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        body = state.body
        tilt, miss = _tilt(body), squared_length(body.x, body.y, 0.0)
        speed = speed_of(body)
        landed = (
            self.touches(body)
            & (speed < MAX_LANDING_SPEED)
            & (tilt < MAX_LANDING_TILT)
            & (miss < MAX_LANDING_DISTANCE**2)
        )
        return {"success": landed, "distance": distance(body), "speed": speed, "tilt": tilt}

    def touches(self, body: RigidBody) -> Scalar:
        """Say whether a rotor is as low as the legs are high."""
        h1, h2, h3, h4 = rotor_heights(body, *rotor_places(self.sheet.arm))
        return jnp.minimum(jnp.minimum(h1, h2), jnp.minimum(h3, h4)) < LEGS

    def why_over(self, state: Quadcopter, params: Params, info: dict[str, Any]) -> str:
        """Say how hard it touched down, or which of the limits was passed."""
        body = state.body
        if bool(self.touches(body)):
            how = "landed" if info["success"] else "crash"
            speed = math.sqrt(squared_length(body.vx, body.vy, body.vz))
            away = math.hypot(body.x, body.y)
            tilt = math.degrees(float(_tilt(body)))
            return (
                f"{how}: touch-down at {speed:.2f} m/s, tilted by {tilt:.0f} degrees, {away:.2f} m "
                "from the middle"
            )
        if bool(motion.spins_too_fast(body)):
            return motion.SPINS
        return (
            f"crash: it is more than {REACH:.0f} m from the pad along x or y, or above {CEILING} m"
        )

    def describe(self, state: Quadcopter, params: Params) -> str:
        """Describe position, attitude, velocities and rotor speeds, with units."""
        x, y, z = (float(value) for value in state.body[:3])
        position = f"From the pad x {x:+.3f}, y {y:+.3f}, height {z:+.3f} m; land on it softly."
        return f"{position} {self.describe_vehicle(state)}"

    def shot(self, state: Quadcopter, params: Params) -> Shot:
        """Show the vehicle over the ground, and the pad (green)."""
        angles = np.linspace(0, 2 * math.pi, 40)
        pad = np.stack(
            [
                MAX_LANDING_DISTANCE * np.cos(angles),
                MAX_LANDING_DISTANCE * np.sin(angles),
                0 * angles,
            ],
            1,
        )
        return Shot(state, 0.8, lying=[Face(pad, picture.GOAL)], centre=(0.0, 0.0, 0.8))


# The task that a card builds.
make = with_latency(QuadcopterLand)


def distance(body: RigidBody) -> Scalar:
    """Return the distance from the middle of the pad (m)."""
    return jnp.sqrt(squared_length(body.x, body.y, body.z))


def _tilt(body: RigidBody) -> Scalar:
    return jnp.arccos(jnp.clip(rotation_matrix(body)[8], -1, 1))


@privileged_player
class LandingPilot(NamedTuple):
    """The reference player: it flies over the pad first, then down, the slower the lower.

    Geometric control holds the velocity.

    It knows the ground effect and asks for that much less thrust; otherwise it would float on the
    air cushion.
    """

    control: GeometricControl
    approach: Float = 1.6
    """1/s: horizontal speed by distance from the middle."""
    sink: Float = 0.9
    """1/s: sink rate by height."""
    fastest: Float = 0.87
    """m/s"""
    slowest: Float = 0.03
    """m/s: sink rate at touch-down."""

    @classmethod
    def for_task(cls, task: Any) -> Any:
        """Make geometric control that turns more gently than in hover and leans further."""
        gains = {
            "position": 4.6,
            "tilt": 23.0,
            "yaw": 10.0,
            "lean": 1.2,
            "least_thrust": 0.5,
            "height": 12.5,
        }
        return make_pilot(task, lambda flight: cls(GeometricControl.for_vehicle(flight, **gains)))

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        state: Quadcopter = view.state
        body = state.body
        away = jnp.sqrt(squared_length(body.x, body.y, 0.0))
        # The sink rate falls with the distance from the pad's middle, to zero at 0.3 m.
        over = jnp.clip(1 - (away - MAX_LANDING_DISTANCE / 3) / 0.25, 0, 1)
        sinking = over * jnp.clip(self.sink * body.z, self.slowest, self.fastest)
        cushion = ground_effect(body.z, self.control.sheet.air._replace(ground=view.params.ground))
        lift = -GRAVITY * cushion / (1 + cushion)
        vx, vy = -self.approach * body.x, -self.approach * body.y
        goal = SetPoint(body.x, body.y, body.z, vx, vy, -sinking, az=lift)
        return self.control.command(state, view.params.airframe, goal), memory

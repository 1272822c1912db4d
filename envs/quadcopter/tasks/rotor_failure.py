"""Lose a rotor in flight and stay.

The vehicle holds a place with the three rotors that are left, and spins about the thrust.

Without one rotor nothing balances the reaction torque, so the vehicle spins up until air drag does.
It can still fly: it spins about an axis fixed in the body that stays vertical, and over every turn
the three thrusts carry the weight. Yaw is given up; the direction of that axis and the height are
controlled.

Source of the task, the vehicle and the periodic solution: Mueller & D'Andrea 2014 (Stability and
control of a quadrocopter despite the complete loss of one, two, or three propellers),
doi:10.1109/ICRA.2014.6906588; its constants as public re-implementations give them. Their vehicle
has its rotors on the body's axes; here the axes are turned by 45 degrees, to the rotor numbers of
``physics/dynamics.py``. As there: drag of the spinning body about z, gyroscopic torque of the
propellers, no other drag. Added: the reaction to propellers that speed up. One Runge-Kutta step of
10 ms a step of the episode. Nothing is random after the start.

======================  ============================================================================
action ``(4,)``         commanded speed of rotor 1..4: -1 is standstill, +1 is 770 rad/s (3.8 N),
                        linear between. The failed rotor's has no effect
observation ``(22,)``   position (3, m; the goal is the origin), rotation matrix body to world (9,
                        row by row), velocity in the world frame (3, m/s), angular velocity in the
                        body frame (3, rad/s), rotor speeds (4, on the action's scale): a rotor that
                        stands still has failed. The context is not shown
reward                  exp(-cost) in (0, 1], cost = |position|^2 + 0.05 |velocity|^2 + (1 - cos
                        tilt) of the state after the step. Never negative, so ending early never
                        pays
terminated              a crash: further than 3 m from the goal along an axis, or an angular
                        velocity beyond 2,000 deg/s about an axis
success                 distance from the goal, averaged over about the last second, below 0.2 m;
                        the average starts at 3 m
start                   within 0.2 m of the goal along each axis, tilted by up to 10 degrees,
                        velocity within 0.2 m/s along each axis, angular velocity within 0.2 rad/s
                        about each, rotors at the speed of hovering
context                 which rotor fails, and when: 0.1 to 0.6 s after the start. The vehicle: mass
                        +-20 % (train and test in alternating bands of 1 %), inertia +-20 %, thrust
                        coefficient +-10 %, torque coefficient +-20 %, motor time constant +-25 %,
                        drag of the spinning body +-20 %
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
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.runge_kutta import rk4
from ..physics import dynamics
from ..physics.data_sheet import SHIPPED, DataSheet
from ..physics.dynamics import (
    STEP,
    Airframe,
    Quadcopter,
    Rotors,
    allocate,
    lag,
    rotor_forces,
    thrust_and_torques,
)
from ..physics.rigid_body import (
    GRAVITY,
    Inertia,
    RigidBody,
    Scalar,
    Wrench,
    body_z,
    derivative,
    leaves_cube,
    normalise,
    rotation_matrix,
    squared_length,
)
from ..physics.sampling import body_near_rest, sample_airframe
from ..rendering import picture
from ..rendering.picture import Shot
from ..sensing import motion
from .flight import Flight

NOMINAL = Airframe(Inertia(0.5, 3.2e-3, 3.2e-3, 5.5e-3), 6.41e-6, 1.69e-2, 0.015)
"""The vehicle of the paper."""
PROPELLER = 1.5e-5
"""kg m^2: moment of inertia of a propeller about its axis."""
SPIN_DRAG = 2.75e-3
"""N m s: drag torque by angular velocity about z."""
ARM = 0.17 / math.sqrt(2)
"""m: distance of a rotor from the body's x axis, and from its y axis."""
ROTOR_SPEED_LIMIT = math.sqrt(3.8 / 6.41e-6)
"""rad/s"""
SHEET = SHIPPED._replace(
    nominal=NOMINAL, arm=ARM, speed_limit=ROTOR_SPEED_LIMIT, hover_action=0.136
)
REACTION = (-1.0, 1.0, -1.0, 1.0)
"""+1 for a rotor whose torque on the body is about +z; it turns the other way."""
ALONG_X, ALONG_Y = (1.0, -1.0, -1.0, 1.0), (-1.0, -1.0, 1.0, 1.0)
"""Places of the rotors, in units of the arm."""
ARENA = 3.0
"""m along each axis"""
MAX_MEAN_DISTANCE = 0.2
"""m: averaged distance that counts as success."""
MEMORY = 1.0
"""s: time constant of that average."""
# Rotors of the lightest, strongest vehicle accelerate it by at most 42 m/s^2 (52 with gravity);
# over the arena's diagonal of 10.4 m that ends below 33 m/s. One step beyond the limits adds at
# most 0.33 m.
POSITION_BOUND = 3.4
VELOCITY_BOUND = 36.0


class Params(NamedTuple):
    """The context."""

    airframe: Airframe
    spin_drag: jax.Array
    """N m s"""
    rotor: jax.Array
    """int32: the rotor that fails, from 0."""
    moment: jax.Array
    """int32: the step in which it fails."""


class State(NamedTuple):
    """The vehicle, the time, and how well it held its place lately."""

    vehicle: Quadcopter
    steps: jax.Array
    """int32: steps since the start."""
    mean_distance: jax.Array
    """m: distance from the goal, averaged with time constant MEMORY; ARENA at the start."""


class QuadcopterRotorFailure(Flight[Params, State]):
    """The task of this file's docstring."""

    shipped: ClassVar[DataSheet] = SHEET
    takes_data_sheet = False
    measures: ClassVar[dict[str, str]] = {
        "distance": "from the goal, m",
        "mean_distance": "the same, averaged over about the last second, m",
        "spin": "angular velocity about the body's z axis, rad/s",
    }
    errors = ("position",)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        bound = np.array([POSITION_BOUND] * 3 + self.body_observation_bound(VELOCITY_BOUND))
        self.observation_space = self.box(-bound, bound)
        self.reward_space = self.box(0, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a vehicle, and which rotor fails when."""
        u = self.uniform(key, 8)
        return Params(
            sample_airframe(u[:5], split, self.sheet),
            SPIN_DRAG * (0.8 + 0.4 * u[5]),
            jnp.floor(4 * u[6]).astype(jnp.int32),
            jnp.floor(10 + 50 * u[7]).astype(jnp.int32),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start near the goal, nearly at rest."""
        body = body_near_rest(self.uniform(key, 12), 0.2)
        vehicle = Quadcopter(body, dynamics.hovering_rotors(params.airframe))
        return State(vehicle, jnp.int32(0), jnp.full((), ARENA, self.dtype))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make one Runge-Kutta step under constant commands; a failed rotor runs down."""
        failed = state.steps >= params.moment
        command = dynamics.commanded_speeds(action, ROTOR_SPEED_LIMIT)
        command = Rotors(
            *(jnp.where(failed & (params.rotor == i), 0, speed) for i, speed in enumerate(command))
        )
        vehicle = step(state.vehicle, command, params.airframe, params.spin_drag, STEP)
        mean = state.mean_distance
        return State(
            vehicle, state.steps + 1, mean + STEP / MEMORY * (distance(vehicle.body) - mean)
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(22,)``; see the table."""
        body = state.vehicle.body
        return self.stack(body.x, body.y, body.z, *self.body_observation(state.vehicle))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return motion.offset("position", "from the goal to the vehicle"), *motion.ATTITUDE_AND_RATES

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return exp(-cost) of the state after the step."""
        body = next_state.vehicle.body
        away = squared_length(body.x, body.y, body.z)
        speed = squared_length(body.vx, body.vy, body.vz)
        return jnp.exp(-(away + 0.05 * speed + (1 - body_z(body)[2])))

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether it left the arena or spins faster than its gyroscope measures."""
        body = state.vehicle.body
        return leaves_cube(body.x, body.y, body.z, ARENA) | motion.spins_too_fast(body)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": state.mean_distance < MAX_MEAN_DISTANCE,
            "distance": distance(state.vehicle.body),
            "mean_distance": state.mean_distance,
            "spin": state.vehicle.body.wz,
        }

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say which of the two limits was passed."""
        if bool(motion.spins_too_fast(state.vehicle.body)):
            return motion.SPINS
        return f"crash: it is more than {ARENA} m from the goal along an axis"

    def describe(self, state: State, params: Params) -> str:
        """Describe position, attitude, velocities and rotor speeds, with units."""
        x, y, z = (float(value) for value in state.vehicle.body[:3])
        return (
            f"Position x {x:+.3f}, y {y:+.3f}, z {z:+.3f} m; stay at the origin, with the rotors "
            f"that are left. {self.describe_vehicle(state.vehicle)}"
        )

    def shot(self, state: State, params: Params) -> Shot:
        """Show the vehicle in the middle of its arena, and the goal (green)."""
        goal = picture.goal((0.0, 0.0, 0.0), 0.06)
        return Shot(state.vehicle, ARENA / 2, [goal], full=ROTOR_SPEED_LIMIT)


def distance(body: RigidBody) -> Scalar:
    """Return the distance from the goal (m)."""
    return jnp.sqrt(squared_length(body.x, body.y, body.z))


def propeller_momentum(speeds: Rotors) -> Scalar:
    """Return the angular momentum of the propellers about body z (N m s).

    Given the rates of their speeds, it is the rate of the momentum.

    Propellers turn against their torque.
    """
    n1, n2, n3, n4 = speeds
    return PROPELLER * ((n1 + n3) - (n2 + n4))


def step(
    vehicle: Quadcopter, command: Rotors, airframe: Airframe, spin_drag: Scalar, duration: float
) -> Quadcopter:
    """Return the vehicle ``duration`` s later under constant commanded rotor speeds (rad/s)."""
    decay = jnp.exp(-0.5 * duration / airframe.motor_time_constant)
    middle = lag(vehicle.rotors, command, decay, decay)
    end = lag(middle, command, decay, decay)
    speeds = {0.0: vehicle.rotors, 0.5: middle, 1.0: end}
    per_lag = 1 / airframe.motor_time_constant

    def motion(passed: float, body: RigidBody) -> RigidBody:
        rotors = speeds[passed]
        thrust, tx, ty, tz = thrust_and_torques(rotor_forces(rotors, airframe), airframe, ARM)
        zx, zy, zz = body_z(body)
        momentum = propeller_momentum(rotors)
        gained = propeller_momentum(
            Rotors(*((to - n) * per_lag for n, to in zip(rotors, command, strict=True)))
        )
        wrench = Wrench(
            thrust * zx,
            thrust * zy,
            thrust * zz,
            tx - body.wy * momentum,
            ty + body.wx * momentum,
            tz - gained - spin_drag * body.wz,
        )
        return derivative(body, wrench, airframe.inertia)

    return Quadcopter(normalise(rk4(motion, vehicle.body, duration)), end)


@privileged_player
class SpinningControl(NamedTuple):
    """The reference player: it points an axis of the body along the desired force.

    The body spins about this axis.

    With all rotors the axis is body z. With three it leans away from the failed rotor, as in the
    periodic solution of the paper, where gyroscopic torque balances the thrust of the rotor
    opposite. In place of the paper's linear feedback the axis ``a`` follows the direction ``n`` as
    an oscillator, whatever the spin:

        dw/dt = k^2 a x n - 2 k w_across - (w . a) a x w  (+ a part along a)

    The last term keeps a free axis still. Torques about x and y follow from this equation, and the
    torque about z from the condition that the failed rotor gives nothing.
    """

    position: Float = 2.0
    """rad/s: natural frequency of translation."""
    axis: Float = 14.0
    """rad/s: ``k``"""
    yaw: Float = 4.0
    """1/s: damping of yaw while all rotors turn."""
    lean: Float = 0.5
    """Tangent of the largest tilt that it asks for."""
    tilt: Float = 0.1
    """Sine of the angle between the axis and body z.

    The paper's 0.289 flies as safely, and less steadily.
    """

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> SpinningControl:
        """Make the player; it is the same for every task of this kind."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        state, airframe = view.state, view.params.airframe
        body, rotors = state.vehicle
        mass, jx, jy, jz = airframe.inertia
        wx, wy, wz = body.wx, body.wy, body.wz
        r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_matrix(body)
        lost = [(state.steps >= view.params.moment) & (view.params.rotor == i) for i in range(4)]
        failed = lost[0] | lost[1] | lost[2] | lost[3]

        def select_lost(values: Any) -> Scalar:
            return sum(jnp.where(gone, value, 0) for gone, value in zip(lost, values, strict=True))

        # The axis, away from the failed rotor.
        ax, ay = (
            -self.tilt / math.sqrt(2) * select_lost(positions) for positions in (ALONG_X, ALONG_Y)
        )
        az = jnp.sqrt(1 - ax * ax - ay * ay)

        # The force towards the goal, height first, and its direction in the body's frame.
        stiffness, damping = self.position**2, 2 * self.position
        fz = jnp.clip(
            GRAVITY - stiffness * body.z - damping * body.vz, 0.5 * GRAVITY, 1.4 * GRAVITY
        )
        fx, fy = -stiffness * body.x - damping * body.vx, -stiffness * body.y - damping * body.vy
        share = jnp.minimum(1, self.lean * fz / (jnp.sqrt(fx * fx + fy * fy) + 1e-9))
        fx, fy = share * fx, share * fy
        norm = jnp.sqrt(fx * fx + fy * fy + fz * fz)
        nx = (fx * r11 + fy * r21 + fz * r31) / norm
        ny = (fx * r12 + fy * r22 + fz * r32) / norm
        nz = (fx * r13 + fy * r23 + fz * r33) / norm

        # The desired angular acceleration. Its part along the axis gives the acceleration about z
        # that yaw has by itself.
        k, along = self.axis, wx * ax + wy * ay + wz * az
        turn_x = (
            k * k * (ay * nz - az * ny) - 2 * k * (wx - along * ax) - along * (ay * wz - az * wy)
        )
        turn_y = (
            k * k * (az * nx - ax * nz) - 2 * k * (wy - along * ay) - along * (az * wx - ax * wz)
        )
        turn_z = (
            k * k * (ax * ny - ay * nx) - 2 * k * (wz - along * az) - along * (ax * wy - ay * wx)
        )
        yaw = jnp.where(failed, 0, -self.yaw * wz)
        correction = (yaw - turn_z) / az
        momentum = propeller_momentum(rotors)
        tx = jx * (turn_x + correction * ax) + (jz - jy) * wy * wz + wy * momentum
        ty = jy * (turn_y + correction * ay) + (jx - jz) * wz * wx - wx * momentum

        # Over a turn the thrust acts along the axis, by the cosine of its angle with body z.
        upright = (
            fx * (r11 * ax + r12 * ay + r13 * az) + fy * (r21 * ax + r22 * ay + r23 * az)
        ) + fz * (r31 * ax + r32 * ay + r33 * az)
        thrust = mass * jnp.clip(upright / az, 0.5 * GRAVITY, 1.5 * GRAVITY)
        forces = allocate(thrust, tx, ty, jz * yaw, airframe, ARM)
        # A torque about z changes rotors 1, 3 and 2, 4 alike. This one makes the failed rotor's
        # share zero.
        missing, spin = select_lost(forces), select_lost(REACTION)
        decay = jnp.exp(-STEP / airframe.motor_time_constant)

        def command(force: Scalar, reaction: float, speed: Scalar) -> Scalar:
            goal = jnp.sqrt(
                jnp.maximum(force - reaction * spin * missing, 0) / airframe.thrust_coefficient
            )
            return dynamics.rotor_action((goal - speed * decay) / (1 - decay), ROTOR_SPEED_LIMIT)

        commands = [command(*rotor) for rotor in zip(forces, REACTION, rotors, strict=True)]
        return jnp.clip(jnp.stack(commands), -1, 1), memory

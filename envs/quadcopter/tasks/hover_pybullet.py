"""The hover task with Bullet's physics.

It tells whether a policy knows the vehicle, or only one simulator of it.

Everything but the physics comes from ``hover.py``: observation, action, reward, ends, success and
descriptions are its functions. A seed and split begin the same episode in both, with context and
start equal to the bit. So a policy trained there is judged here unchanged, and returns compare
episode by episode.

Bullet moves a free multibody by semi-implicit Euler with an explicit gyroscopic torque, order one;
``physics/dynamics.py`` takes a Runge-Kutta step of order four. Bullet receives the thrust and the
torques of the four rotors. Their speeds follow commands with the same lag, in closed form at the
middle of each of its steps. Bullet's own damping (0.04 by default, see
``physics/semi_implicit.py``) is off, because the hover task has none.

=======  ==================================================
success  within 0.1 m of the origin, slower than 0.1 m/s
=======  ==================================================

Source: Coumans & Bai, PyBullet, pybullet.org; for the task, see ``hover.py``.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from rlbench_suite.adapters.packed_episode import order, programs
from rlbench_suite.contexts.context import Constant
from rlbench_suite.core.component import Component
from rlbench_suite.core.episode import ContextSource
from rlbench_suite.core.host import HostTask
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.compat import calling_thread_device
from rlbench_suite.numerics.process import precision, refuse_after_fork

from ..physics import dynamics
from ..physics.dynamics import ROTOR_ARM, STEP, Airframe, Quadcopter, Rotors
from ..physics.rigid_body import GRAVITY, Inertia, RigidBody, rotation_matrix
from ..rendering.picture import Pictured, Shot
from .hover import QuadcopterHover

BULLET_STEPS = 32
"""Bullet's steps in a step of the episode.

They are the fewest, in powers of two, that stay within a millimetre of Runge-Kutta over half a
second of random commands. Bullet's error halves as they double.
"""


class Bullet:
    """A connection to Bullet and the one vehicle in it, loaded once.

    Args:
        steps: Bullet's steps in a step of the episode.

    Raises:
        ImportError: PyBullet is not installed.
    """

    def __init__(self, steps: int = BULLET_STEPS) -> None:
        try:
            import pybullet
        except ImportError as error:
            message = (
                "rlsuite/QuadcopterHoverPyBullet-v0 needs PyBullet: pip install "
                "'rlbench-suite[pybullet]' with Python 3.11; later ones have no wheel of it, and "
                "pip install pybullet compiles it"
            )
            raise ImportError(message) from error
        self._api, self._lock = pybullet, Lock()
        self._middles = [(number + 0.5) * STEP / steps for number in range(steps)]
        self.client = pybullet.connect(pybullet.DIRECT)
        weakref.finalize(self, pybullet.disconnect, self.client)
        pybullet.setGravity(0, 0, -GRAVITY, physicsClientId=self.client)
        pybullet.setTimeStep(STEP / steps, physicsClientId=self.client)
        self.body = pybullet.createMultiBody(baseMass=dynamics.MASS, physicsClientId=self.client)
        pybullet.changeDynamics(
            self.body, -1, linearDamping=0, angularDamping=0, physicsClientId=self.client
        )

    def fly(
        self, vehicle: Quadcopter, command: Rotors, airframe: Airframe, arm: float = ROTOR_ARM
    ) -> Quadcopter:
        """Return the vehicle one step of the episode later under constant commanded speeds.

        Speeds are in rad/s, and all values are floats.

        Rotors are ``arm`` (m) away from the body's x and y axes.
        """
        time_constant = airframe.motor_time_constant
        # The C library's exponential: NumPy's differs between processors.
        middles = np.array([math.exp(-passed / time_constant) for passed in self._middles])
        end = math.exp(-STEP / time_constant)
        forces = dynamics.rotor_forces(
            dynamics.lag(vehicle.rotors, command, middles, middles), airframe
        )
        with self._lock:
            self._put(vehicle.body, airframe.inertia)
            self._push(
                np.stack(dynamics.thrust_and_torques(forces, airframe, arm), axis=1).tolist()
            )
            body = self._get()
        return Quadcopter(body, dynamics.lag(vehicle.rotors, command, end, end))

    def _put(self, body: RigidBody, inertia: Inertia) -> None:
        api, which, client_arguments = self._api, self.body, {"physicsClientId": self.client}
        mass, *moments = inertia
        r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_matrix(body)
        wx, wy, wz = body.wx, body.wy, body.wz
        spin = (
            r11 * wx + r12 * wy + r13 * wz,
            r21 * wx + r22 * wy + r23 * wz,
            r31 * wx + r32 * wy + r33 * wz,
        )
        api.changeDynamics(which, -1, mass=mass, localInertiaDiagonal=moments, **client_arguments)
        api.resetBasePositionAndOrientation(
            which, body[:3], (body.qx, body.qy, body.qz, body.qw), **client_arguments
        )
        api.resetBaseVelocity(which, (body.vx, body.vy, body.vz), spin, **client_arguments)

    def _push(self, loads: list[list[float]]) -> None:
        """Return the thrust and the torques of each of Bullet's steps, in the frame of the body."""
        api, which, client = self._api, self.body, self.client
        for thrust, *torque in loads:
            api.applyExternalForce(
                which, -1, (0, 0, thrust), (0, 0, 0), api.LINK_FRAME, physicsClientId=client
            )
            api.applyExternalTorque(which, -1, torque, api.LINK_FRAME, physicsClientId=client)
            api.stepSimulation(physicsClientId=client)

    def _get(self) -> RigidBody:
        api, which, client_arguments = self._api, self.body, {"physicsClientId": self.client}
        (x, y, z), (qx, qy, qz, qw) = api.getBasePositionAndOrientation(which, **client_arguments)
        (vx, vy, vz), (wx, wy, wz) = api.getBaseVelocity(which, **client_arguments)
        body = RigidBody(x, y, z, qw, qx, qy, qz, vx, vy, vz, wx, wy, wz)
        r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_matrix(body)
        return body._replace(
            wx=r11 * wx + r21 * wy + r31 * wz,
            wy=r12 * wx + r22 * wy + r32 * wz,
            wz=r13 * wx + r23 * wy + r33 * wz,
        )


_connected: weakref.WeakValueDictionary[int, Bullet] = weakref.WeakValueDictionary()
"""Connection by process."""


def connection() -> Bullet:
    """Return the connection of this process, made for its first simulator and ended with its last.

    A connection takes 30 MB and a tenth of a second, and a process can have 1,024. So all
    simulators share one, and each puts its vehicle in before it flies.
    """
    return _connected.get(os.getpid()) or _connected.setdefault(os.getpid(), Bullet())


class BulletHover(gymnasium.Env[np.ndarray, np.ndarray]):
    """One vehicle in Bullet.

    Its future depends on ``vehicle`` and ``airframe`` only; the task begins the episodes.
    """

    vehicle: Quadcopter
    """State, as floats."""
    airframe: Airframe

    def __init__(self, task: QuadcopterHoverPyBullet) -> None:
        self.task = task
        self.bullet: Bullet | None = connection()

    def put(self, vehicle: Quadcopter, airframe: Airframe) -> None:
        """Continue from a state under a context."""
        self.vehicle, self.airframe = jax.tree.map(float, vehicle), airframe

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Make one step of the episode.

        Raises:
            gymnasium.error.Error: it was closed.
        """
        if self.bullet is None:
            raise gymnasium.error.Error("This simulator was closed; make a new one.")
        vehicle, airframe, sheet = self.vehicle, jax.tree.map(float, self.airframe), self.task.sheet
        command = Rotors(
            *(dynamics.rotor_speed(float(entry), sheet.speed_limit) for entry in action)
        )
        self.vehicle = self.bullet.fly(vehicle, command, airframe, sheet.arm)
        observation, reward, terminated, results = self.task.judge(
            vehicle, action, self.vehicle, airframe
        )
        return observation, reward, terminated, False, results

    def close(self) -> None:
        """Release the connection."""
        self.bullet = None


class QuadcopterHoverPyBullet(Pictured, HostTask[Quadcopter]):
    """The task; see the module's docstring.

    State: :class:`Quadcopter`. Context: :class:`Airframe`.
    """

    measures = QuadcopterHover.measures
    picture_shape = QuadcopterHover.picture_shape
    period = STEP
    errors = QuadcopterHover.errors
    ends_in_failure = True

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.pure = QuadcopterHover(card, difficulty=difficulty, dtype=dtype)
        self.sheet = self.pure.sheet
        self._result_names = ("reward", "over", "success", *self.measures)
        self.observation_space = self.pure.observation_space
        self.action_space = self.pure.action_space
        self.reward_space = self.pure.reward_space

    def constants(self) -> tuple[Constant, ...]:
        """Return those of the pure task."""
        return self.pure.constants()

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of the pure task."""
        return self.pure.observation_components()

    def action_components(self) -> tuple[Component, ...]:
        """List the actions of the pure task."""
        return self.pure.action_components()

    def simulator(self) -> BulletHover:
        """Make a vehicle in Bullet.

        Raises:
            ImportError: PyBullet is not installed.
        """
        return BulletHover(self)

    def begin(
        self, simulator: Any, seed: int | None, key: np.ndarray, index: int, source: ContextSource
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the pure task's context, start and first observation.

        They are those for the same seed, episode and split.
        """
        refuse_after_fork()
        pure_programs = programs(self.pure)
        episode, step = pure_programs.layout.unpack_numpy(
            np.asarray(pure_programs.begin(order(key, index, source)))[0]
        )
        simulator.put(episode.state, episode.params)
        return step.observation, step.info

    def judge(
        self, vehicle: Quadcopter, action: np.ndarray, next_vehicle: Quadcopter, airframe: Airframe
    ) -> tuple[np.ndarray, float, bool, dict[str, Any]]:
        """Return observation, reward, whether the task is over, and measures.

        The pure task's own functions compute them.
        """
        numbers = np.array(jax.tree.leaves((vehicle, next_vehicle, airframe)), self.dtype)
        with precision(self.pure):
            answer = np.asarray(self._judge_program(numbers, action))
        results = dict(zip(self._result_names, answer.tolist(), strict=False))
        return answer[len(self._result_names) :], results["reward"], bool(results["over"]), results

    @cached_property
    def _judge_program(self) -> Callable[[np.ndarray, np.ndarray], jax.Array]:
        """Compute the results of :meth:`judge` from one packed vector into another.

        A value that crosses alone costs more than the arithmetic.
        """
        pure = self.pure
        template = Quadcopter(RigidBody(*[0.0] * 13), Rotors(*[0.0] * 4))
        tree = jax.tree.structure((template, template, dynamics.NOMINAL))

        def judge_step(numbers: jax.Array, action: jax.Array) -> jax.Array:
            vehicle, next_vehicle, airframe = jax.tree.unflatten(tree, list(numbers))
            key: Any = None  # nothing here is random
            results = pure.info(next_vehicle, airframe)
            results["reward"] = pure.reward(vehicle, action, next_vehicle, key, airframe)
            results["over"] = pure.terminal(next_vehicle, key, airframe)
            observation = pure.observation(next_vehicle, key, airframe)
            return jnp.concatenate(
                [pure.stack(*(results[name] for name in self._result_names)), observation]
            )

        return jax.jit(judge_step, out_shardings=SingleDeviceSharding(calling_thread_device()))

    def info(self, simulator: Any, results: dict[str, Any]) -> dict[str, Any]:
        """Return ``success`` and the measures."""
        return {"success": bool(results["success"])} | {
            name: float(results[name]) for name in self.measures
        }

    def get_state(self, simulator: Any) -> Quadcopter:
        """Return the vehicle."""
        state: Quadcopter = simulator.vehicle
        return state

    def get_params(self, simulator: Any) -> Airframe:
        """Return its constants."""
        params: Airframe = simulator.airframe
        return params

    def set_state(self, simulator: Any, state: Quadcopter, params: Airframe) -> None:
        """Set the vehicle; Bullet itself receives it when it next flies."""
        simulator.put(state, params)

    def noop_action(self) -> np.ndarray:
        """Return that of the pure task."""
        return self.pure.noop_action()

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return self.pure.how_to_act()

    def why_over(self, state: Quadcopter, params: Airframe, info: dict[str, Any]) -> str:
        """Say which of the two limits was passed."""
        return self.pure.why_over(state, params, info)

    def describe(self, state: Quadcopter, params: Airframe) -> str:
        """Describe position, attitude, velocities and rotor speeds, with units."""
        return self.pure.describe(state, params)

    def shot(self, state: Quadcopter, params: Airframe) -> Shot:
        """Return the content of the pure task's picture."""
        return self.pure.shot(state, params)

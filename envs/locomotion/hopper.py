"""Hopper: a planar robot of torso, thigh, leg and foot that moves by hopping.

The simulation is Gymnasium's ``Hopper-v5`` on MuJoCo, unchanged: same model, seeds and trajectories. The suite adds its
card, views, time limit as truncation, scores and replay.

| | |
| --- | --- |
| action | torques at hip, knee and ankle, each in [-1, 1] of the motor's full 200 N m; held for 0.008 s |
| observation | height of the torso (m), its angle and those of hip, knee, ankle (rad), then the six velocities (m/s, rad/s; forward speed first), clipped to [-10, 10]; ``(11,)`` |
| reward | 1 while healthy + forward speed (m/s) - 0.001 times the squared norm of the action |
| terminal | unhealthy: torso below 0.7 m, tilted by more than 0.2 rad, or a value of the state beyond 100 |
| success | it has come 8 m far, 1 m/s on average over a whole episode, and has not fallen |
| episode | 1000 steps; starts standing, every coordinate off by up to 0.005 |

Source: Gymnasium 1.x, ``envs/mujoco/hopper_v5.py``; Erez, Tassa & Todorov 2011.
"""  # noqa: E501  (a table)

from __future__ import annotations

import json
import math
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.error import DependencyNotInstalled

from rlbench_suite.core.arrays import FloatArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.host import HostTask
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

DISTANCE = 8.0
"""m; distance that counts as success."""
JOINTS = ("hip", "knee", "ankle")


class MujocoState(NamedTuple):
    """Everything that MuJoCo's next step depends on."""

    time: float
    """s"""
    position: np.ndarray
    """Generalised coordinates: forward and up (m), torso, hip, knee and ankle (rad), ``(6,)``."""
    velocity: np.ndarray
    """Their derivatives, ``(6,)``."""
    warm_start: np.ndarray
    """Accelerations from which the contact solver starts, ``(6,)``."""


class Hopper(HostTask[MujocoState]):
    """The task; see the module's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "distance": "how far forward it has come, m",
        "speed": "forward speed over the last step, m/s",
    }
    ends_in_failure = True

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box(-np.inf, np.inf, (11,))
        self.action_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        self.reward_space = self.box(-np.inf, np.inf, ())

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries as Gymnasium has them."""
        joints, clipped = ("hip", "knee", "ankle"), "clipped to [-10, 10]"
        return (
            Component("height", "height of the torso", "m"),
            Component("torso_angle", "angle of the torso", "rad"),
            *(Component(f"{joint}_angle", f"angle of the {joint}", "rad") for joint in joints),
            Component("forward_velocity", f"velocity of the torso ahead, {clipped}", "m/s"),
            Component("upward_velocity", f"velocity of the torso upward, {clipped}", "m/s"),
            Component("torso_rate", f"angular velocity of the torso, {clipped}", "rad/s"),
            *(
                Component(f"{joint}_rate", f"angular velocity of the {joint}, {clipped}", "rad/s")
                for joint in joints
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List one torque a joint."""
        return tuple(
            Component(f"{joint}_torque", f"torque at the {joint}", "200 N m")
            for joint in ("hip", "knee", "ankle")
        )

    def simulator(self) -> gymnasium.Env[Any, Any]:
        """Make Gymnasium's environment without its wrappers.

        Raises:
            ImportError: MuJoCo is not installed.
        """
        try:
            from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
        except (
            ImportError,
            DependencyNotInstalled,
        ) as error:  # Gymnasium turns the first into the second
            raise ImportError(
                "rlsuite/Hopper-v0 needs MuJoCo: pip install 'rlbench-suite[mujoco]'"
            ) from error
        return HopperEnv()

    def info(self, simulator: Any, simulator_info: dict[str, Any]) -> dict[str, Any]:
        """Return ``success`` and the measures."""
        distance = float(simulator.data.qpos[0])
        return {
            "success": distance >= DISTANCE,
            "distance": distance,
            "speed": float(simulator_info.get("x_velocity", 0.0)),
        }

    def get_state(self, simulator: Any) -> MujocoState:
        """Copy the state out of MuJoCo's data."""
        data = simulator.data
        return MujocoState(
            data.time, data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()
        )

    def set_state(self, simulator: Any, state: MujocoState, params: tuple[()]) -> None:
        """Copy the state into MuJoCo's data, and update everything that follows from it."""
        simulator.set_state(state.position, state.velocity)
        simulator.data.time = state.time
        simulator.data.qacc_warmstart[:] = state.warm_start

    def describe(self, state: MujocoState, params: Any) -> str:
        """Describe position, angles and velocities, with units."""
        (x, z, *angles), (vx, vz, *rates) = state.position, state.velocity
        turned = [
            f"{math.degrees(angle):+.1f} degrees ({rate:+.2f} rad/s)"
            for angle, rate in zip(angles, rates)  # noqa: B905
        ]
        joints = ", ".join(f"{name} {turn}" for name, turn in zip(JOINTS, turned[1:], strict=True))
        return (
            f"Hopper: {x:+.3f} m forward at {vx:+.2f} m/s, torso {z:.3f} m high at {vz:+.2f} m/s, "
            f"tilted {turned[0]}; {joints}."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return "Answer with three numbers from -1 to 1: the torques of hip, knee and ankle."

    def why_over(self, state: MujocoState, params: Any, info: dict[str, Any]) -> str:
        """Say which limit of health was passed."""
        _, z, tilt, *_ = state.position
        if z <= 0.7:
            return f"fall: the torso is {z:.2f} m high, and 0.7 m is the least"
        return f"fall: the torso is tilted by {tilt:+.2f} rad, and 0.2 is the most"

    def draw(self, state: MujocoState, params: Any) -> np.ndarray:
        """Draw from the side: the limbs as capsules, the floor with a mark every half metre."""
        import mujoco
        from PIL import Image, ImageDraw

        size, metre = 300, 150.0
        model, data = self._scratch.model, self._scratch.data
        data.qpos[:] = state.position
        mujoco.mj_kinematics(model, data)
        image = Image.new("RGB", (size, size), "white")
        pen = ImageDraw.Draw(image)
        x0 = float(state.position[0])

        def pixel(x: float, z: float) -> tuple[float, float]:
            return size / 2 + metre * (x - x0), 0.9 * size - metre * z

        pen.line((pixel(x0 - 2, 0), pixel(x0 + 2, 0)), "gray", 2)
        for mark in range(math.floor(2 * x0) - 3, math.ceil(2 * x0) + 4):
            left, floor = pixel(mark / 2, 0)
            pen.line((left, floor, left, floor + (12 if mark % 2 == 0 else 6)), "gray", 2)
            if mark % 2 == 0:
                pen.text((left + 3, floor + 10), f"{mark // 2} m", "gray")
        for geom in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE):
            centre = data.geom_xpos[geom]
            axis = data.geom_xmat[geom].reshape(3, 3)[:, 2] * model.geom_size[geom, 1]
            ends = [pixel(*(centre + sign * axis)[[0, 2]]) for sign in (-1, 1)]
            radius = metre * float(model.geom_size[geom, 0])
            pen.line(ends, "steelblue", max(2, round(2 * radius)))
            for x, z in ends:
                pen.ellipse((x - radius, z - radius, x + radius, z + radius), "steelblue")
        return np.asarray(image)

    @cached_property
    def _scratch(self) -> Any:
        return self.simulator()


class LinearFeedback(NamedTuple):
    """The reference player, a linear policy that augmented random search found.

    Its action is ``clip(gain (observation - mean))``.

    A control engineer would try linear feedback first, and it is enough for this robot (Mania, Guy
    & Recht 2018, arXiv:1803.07055). ``augmented_random_search.py`` finds it again.
    """

    gain: FloatArray
    """``(3, 11)``"""
    mean: FloatArray
    """``(11,)``"""

    @classmethod
    def for_task(cls, task: Hopper) -> LinearFeedback:
        """Load the saved policy."""
        return cls(*(np.asarray(array, task.dtype) for array in _load_policy()))

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the torques."""
        action = jnp.clip(self.gain @ (view.observation - self.mean), -1, 1)
        return action.astype(jnp.float32), memory


@cache
def _load_policy() -> tuple[list[list[float]], list[float]]:
    policy = json.loads(Path(__file__).with_name("hopper_linear_policy.json").read_text())
    return policy["gain"], policy["mean"]

"""Hover by linear-quadratic control.

It is the optimal linear feedback of the vehicle linearised about hover.

There are sixteen states (position, small angles, velocity, angular velocity, rotor speeds minus
those of hover) and four commands. The gain solves the discrete-time Riccati equation at the task's
step. Source: Anderson & Moore 1990, Optimal Control: Linear Quadratic Methods, ch. 2; weights by
Bryson's rule (Bryson & Ho 1975, sec. 5.2): one over the square of the largest acceptable deviation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FloatArray
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task

from ..physics import dynamics
from ..physics.dynamics import STEP, Airframe, Quadcopter, rotor_action
from ..physics.rigid_body import GRAVITY

ACCEPTABLE = np.array(
    [0.1] * 3  # m
    + [0.3, 0.3, 0.6]  # rad
    + [0.5] * 3  # m/s
    + [3.0] * 3  # rad/s
    + [1000.0] * 4  # rad/s, rotors
)
"""Largest acceptable deviation of each state."""
ACCEPTABLE_COMMAND = 500.0
"""rad/s: largest acceptable deviation of each command from hover."""


def linear_model() -> tuple[np.ndarray, np.ndarray]:
    """Return ``A`` ``(16, 16)`` and ``B`` ``(16, 4)`` of ``s[k + 1] = A s[k] + B u[k]``.

    They are exact for commands that are held over a step.
    """
    hover = np.sqrt(dynamics.MASS * GRAVITY / (4 * dynamics.THRUST_COEFFICIENT))
    slope = 2 * dynamics.THRUST_COEFFICIENT * hover  # N per rad/s
    jx, jy, jz = dynamics.INERTIA
    spin = np.array([-1.0, 1.0, -1.0, 1.0])
    rate = np.zeros((20, 20))  # states, then the commands, which are constant
    rate[0:3, 6:9] = rate[3:6, 9:12] = np.eye(3)
    rate[6, 4], rate[7, 3] = GRAVITY, -GRAVITY  # nose down flies forward, left side up flies right
    rate[8, 12:16] = slope / dynamics.MASS
    rate[9, 12:16] = slope * np.array(dynamics.ROTOR_Y) / jx
    rate[10, 12:16] = -slope * np.array(dynamics.ROTOR_X) / jy
    rate[11, 12:16] = slope * dynamics.TORQUE_COEFFICIENT * spin / jz
    rate[12:16, 12:16] = -np.eye(4) / dynamics.MOTOR_TIME_CONSTANT
    rate[12:16, 16:20] = np.eye(4) / dynamics.MOTOR_TIME_CONSTANT
    term = flow = np.eye(20)
    for order in range(1, 16):  # the exponential's series; rate times a step is below 1
        term = term @ rate * (STEP / order)
        flow = flow + term
    return flow[:16, :16], flow[:16, 16:]


def riccati_gain(a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return the gain ``K`` of the optimal ``u = -K s``.

    It iterates the Riccati recursion to its fixed point.
    """
    cost = q
    while True:
        gain = np.linalg.solve(r + b.T @ cost @ b, b.T @ cost @ a)
        next_cost = q + a.T @ cost @ (a - b @ gain)
        if np.abs(next_cost - cost).max() <= 1e-12 * np.abs(next_cost).max():
            return gain
        cost = next_cost


@privileged_player
class LinearQuadraticControl(NamedTuple):
    """Hover at the origin with the body's x axis along the world's."""

    gain: FloatArray
    """``(4, 16)``: commands (rad/s) by state."""

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> LinearQuadraticControl:
        """Make the player with the gain of the nominal vehicle."""
        q, r = np.diag(ACCEPTABLE**-2.0), np.eye(4) * ACCEPTABLE_COMMAND**-2.0
        return cls(riccati_gain(*linear_model(), q, r).astype(task.dtype))

    def initial(self, params: Airframe) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1].

        The player knows its own vehicle's hover speed.
        """
        state: Quadcopter = view.state
        body, hover = state.body, dynamics.hover_speed(view.params)
        angles = (2 * body.qx, 2 * body.qy, 2 * body.qz)
        deviation = jnp.stack(
            [
                *(
                    body.x,
                    body.y,
                    body.z,
                    *angles,
                    body.vx,
                    body.vy,
                    body.vz,
                    body.wx,
                    body.wy,
                    body.wz,
                ),
                *(speed - hover for speed in state.rotors),
            ]
        )
        return jnp.clip(rotor_action(hover - self.gain @ deviation), -1, 1), memory

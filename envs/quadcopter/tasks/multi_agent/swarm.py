"""Cross a swarm: every vehicle flies through the middle to the other side, and none hits another.

Vehicles, wakes, wrecks, observation and cost are those of ``fleet.py``. Nothing is random after the
start. Source of the task: swap places through the middle, as in van den Berg, Guy, Lin & Manocha
2011 (Reciprocal n-body collision avoidance), doi:10.1007/978-3-642-19457-3_1, and with rotor
commands as in Huang et al. 2024 (QuadSwarm), arXiv:2306.09537.

=========================  =========================================================================
reward                     of each vehicle: 1 / (1 + e / 0.5 m), e its distance from its goal after
                           the step; 0 of a wreck. Never negative, and a wreck earns nothing more:
                           no crash ever pays
astray                     a vehicle that is more than 3 m farther from the middle than the goals
                           are
success                    no wreck, and every vehicle within 0.2 m of its goal
start                      on a sphere about the middle, spread evenly and turned at random, each
                           within 0.15 m of its place along each axis, level, slow (0.1 m/s and 0.1
                           rad/s an axis), rotors at the speed of hovering. Nearest starts are about
                           2 m apart for 8 vehicles
goals                      opposite to the starts' places: all straight ways meet in the middle
context                    how the sphere is turned; the vehicle, as in hover and all alike: mass
                           +-20 % (train and test in alternating bands of 1 %), inertia +-20 %,
                           thrust coefficient +-10 %, torque coefficient +-20 %, motor time constant
                           +-25 %
=========================  =========================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...control.geometric import GeometricControl, SetPoint
from ...physics.dynamics import STEP
from ...physics.rigid_body import RigidBody, rotation_matrix, squared_length
from ...physics.sampling import sample_airframe
from .fleet import Fleet, Params, State, distances, goal_offsets, ordered_sum, separations, wakes

ARRIVAL_DISTANCE = 0.2
"""m"""
JITTER = 0.15
"""m along each axis, of starts."""
OUTER_MARGIN = 3.0
"""m: a vehicle this much farther out than the goals is lost."""
MANY_VEHICLES = 24
"""Number of vehicles from which the reference player flies as among many."""
CROWD_VEHICLES = 64
"""Number of vehicles from which the reference player flies as in a crowd."""


class QuadcopterSwarm(Fleet):
    """The task of this file's docstring."""

    halving_error = 0.5
    measures: ClassVar[dict[str, str]] = {
        "wrecks": "vehicles wrecked so far",
        "arrived": "share of the vehicles that fly and are at their goals",
        "distance": "mean distance of the vehicles from their goals, m",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.radius = float(card.settings["radius"])
        self.vertices = self.radius * sphere_points(card.agents)
        self.frame = self.radius + 1
        # Rotors, gravity and wakes accelerate a vehicle by at most 71 m/s^2 over the diameter of
        # the arena. The last step may lead beyond it.
        self.reach = self.radius + OUTER_MARGIN
        speed = math.sqrt(2 * 75 * 2 * self.reach)
        reach = self.reach + speed * STEP
        self.set_spaces(reach, reach + self.radius, speed)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a vehicle and the sphere's rotation."""
        u = self.uniform(key, 8)
        # A uniform rotation: Shoemake 1992, doi:10.1016/B978-0-08-050755-2.50036-1.
        length1 = jnp.sqrt(1 - u[5])
        length2 = jnp.sqrt(u[5])
        angle1 = 2 * math.pi * u[6]
        angle2 = 2 * math.pi * u[7]
        quaternion = (
            length1 * jnp.sin(angle1),
            length1 * jnp.cos(angle1),
            length2 * jnp.sin(angle2),
            length2 * jnp.cos(angle2),
        )
        zero = jnp.zeros((), self.dtype)
        rows = rotation_matrix(RigidBody(zero, zero, zero, *quaternion, *(zero,) * 6))
        x, y, z = self.vertices.T.astype(self.dtype)
        goals = (rows[i] * x + rows[i + 1] * y + rows[i + 2] * z for i in (0, 3, 6))
        return Params(sample_airframe(u[:5], split), *goals)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start every vehicle opposite to its goal, nearly at rest."""
        n = self.card.agents
        u = self.uniform(key, 9 * n).reshape(9, n)
        jitter, slow = JITTER * (2 * u[:3] - 1), 0.1 * (2 * u[3:] - 1)
        x, y, z = (offset - goal for offset, goal in zip(jitter, params[1:], strict=True))
        return self.level_start((x, y, z), slow, params)

    def is_astray(self, body: RigidBody, params: Params) -> jax.Array:
        """Say which vehicles are farther out than they may fly."""
        return squared_length(body.x, body.y, body.z) > self.reach**2

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        n = self.card.agents
        distance = distances(state.vehicles.body, params)
        arrived = (distance < ARRIVAL_DISTANCE) & ~state.wrecked
        return {
            "success": arrived.all(),
            "wrecks": state.wrecked.sum(),
            "arrived": arrived.sum().astype(self.dtype) * (1 / n),
            "distance": ordered_sum(distance) * (1 / n),
        }


def sphere_points(n: int) -> np.ndarray:
    """Return ``(n, 3)`` points on the unit sphere, about equally far from their neighbours.

    They lie on a Fibonacci spiral.
    """
    height = 1 - (2 * np.arange(n) + 1) / n
    longitude = math.pi * (3 - math.sqrt(5)) * np.arange(n)
    across = np.sqrt(1 - height * height)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), height], 1)


@privileged_player
class SwarmPilot(NamedTuple):
    """The reference player: each vehicle flies to its goal and evades those that it would meet.

    If a neighbour would pass nearer than ``clear``, the vehicle evades it by a velocity away from
    the place of the closest approach, after the collision cones of Fiorini & Shiller 1998
    (doi:10.1177/027836499801700706); the neighbour does the same. Two that meet head-on both go to
    the right, about the vertical. Geometric control holds the velocity and balances the push of
    others' wakes, which it knows.
    """

    control: GeometricControl
    speed: Float = 4.0
    """m/s"""
    braking: Float = 4.0
    """m/s^2"""
    clear: Float = 0.6
    """m"""
    horizon: Float = 1.5
    """s"""
    evasion: Float = 1.2
    """Fraction of the velocity that would open the gap in time."""
    sidestep: Float = 0.15
    """m: the player treats a neighbour ahead as this much farther to the left."""

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> SwarmPilot:
        """Make geometric control that leans further than in hover.

        Among many a vehicle that evades one neighbour too hard meets the next, so there it keeps
        more room, evades more gently, and flies more slowly in a crowd.
        """
        if task.card.agents < MANY_VEHICLES:
            return cls(GeometricControl(position=3.0, lean=1.0, least_thrust=0.4))
        many = cls(
            GeometricControl(position=2.5, lean=1.0, least_thrust=0.46),
            braking=3.0,
            clear=0.75,
            sidestep=0.18,
        )
        if task.card.agents < CROWD_VEHICLES:
            return many._replace(horizon=2.2, evasion=0.9)
        gentle = GeometricControl(position=2.8, lean=0.8, least_thrust=0.5)
        return many._replace(control=gentle, speed=2.2, braking=2.0, evasion=0.7)

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the commands of all vehicles, ``(n, 4)``, in [-1, 1]."""
        state, params = view.state, view.params
        body = state.vehicles.body
        gx, gy, gz = goal_offsets(body, params)
        distance = jnp.maximum(jnp.sqrt(squared_length(gx, gy, gz)), 1e-6)
        speed = (
            jnp.minimum(
                jnp.minimum(jnp.sqrt(2 * self.braking * distance), 2 * distance), self.speed
            )
            / distance
        )
        vx, vy, vz = speed * gx, speed * gy, speed * gz

        # The closest approach of every two at their present velocities.
        x, y, z = separations(body)
        ux, uy, uz = (component[:, None] - component for component in (body.vx, body.vy, body.vz))
        neighbour_distance = jnp.maximum(jnp.sqrt(squared_length(x, y, z)), 0.05)
        when = -(x * ux + y * uy + z * uz) / jnp.maximum(squared_length(ux, uy, uz), 1e-4)
        when = jnp.clip(when, 0, self.horizon)
        # A neighbour is displaced to the left, so that two that meet head-on pass on the right.
        mx = x + when * ux - self.sidestep * y / neighbour_distance
        my = y + when * uy + self.sidestep * x / neighbour_distance
        mz = z + when * uz
        miss = jnp.maximum(jnp.sqrt(squared_length(mx, my, mz)), 0.05)
        flying = ~state.wrecked[:, None] & ~np.eye(len(body.x), dtype=bool)
        gap = jnp.where(flying, jnp.maximum(self.clear - miss, 0), 0)
        away = self.evasion * gap / jnp.maximum(when, 0.3) / miss
        ex, ey, ez = (-ordered_sum(away * component) for component in (mx, my, mz))
        evasive = jnp.sqrt(squared_length(ex, ey, ez))
        share = jnp.minimum(1, 1.5 * self.speed / jnp.maximum(evasive, 1e-6))
        goal = SetPoint(body.x, body.y, body.z, vx + share * ex, vy + share * ey, vz + share * ez)
        # The player knows the wakes of others and balances them.
        lift = -wakes(body, state.wrecked, params.airframe) / params.airframe.inertia.mass
        return self.control.command(
            state.vehicles, params.airframe, goal._replace(az=lift)
        ).T, memory

"""Hover one above another.

Each vehicle holds its place, the lower ones in the wakes of the upper ones.

Vehicles, wakes, wrecks, observation and cost are those of ``fleet.py``. Nothing is random after the
start. Source of the task: ``MultiHoverAviary`` of gym-pybullet-drones, Panerati et al. 2021,
arXiv:2103.02142, whose vehicles hover at different heights; here they are stacked so that downwash
matters. A wake is only a few centimetres wide: a vehicle that drifts leaves it or enters it, which
makes this harder than as many single hovers.

=========================  =========================================================================
reward                     of each vehicle: 1 / (1 + e / 0.1 m), e its distance from its goal after
                           the step; 0 of a wreck. Never negative, and a wreck earns nothing more:
                           no crash ever pays
astray                     a vehicle that is more than 0.6 m from its goal along an axis
success                    no wreck, and every vehicle within 0.1 m of its goal and slower than 0.1
                           m/s
start                      each within 0.2 m of its goal, with a velocity within 0.5 m/s and an
                           angular velocity within 0.5 rad/s, along and about each axis; level,
                           rotors at the speed that would carry the weight in still air
goals                      a column about the origin, ``agent_0`` at the bottom: neighbours 0.9 to
                           1.3 m apart, each within 0.04 m of the column's axis along x and y. From
                           that far above a vehicle pushes with 17 to 35 % of the nominal weight
context                    the column; the vehicle, as in hover and all alike: mass +-20 % (train
                           and test in alternating bands of 1 %), inertia +-20 %, thrust coefficient
                           +-10 %, torque coefficient +-20 %, motor time constant +-25 %
=========================  =========================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...control.geometric import GeometricControl, SetPoint
from ...physics.dynamics import STEP
from ...physics.rigid_body import RigidBody, leaves_cube, squared_length
from ...physics.sampling import sample_airframe
from .fleet import Fleet, Params, State, distances, goal_offsets, ordered_sum, wakes

GAP = (0.9, 1.3)
"""m between neighbours of the column"""
MAX_GOAL_OFFSET = 0.04
"""m along x and y, of goals from the column's axis"""
ARENA = 0.6
"""m from the goal along each axis"""
MAX_DISTANCE = 0.1
"""m from the goal: limit of success."""
MAX_SPEED = 0.1
"""m/s: limit of success."""


class QuadcopterMultiHover(Fleet):
    """The task of this file's docstring."""

    halving_error = 0.1
    measures: ClassVar[dict[str, str]] = {
        "wrecks": "vehicles wrecked so far",
        "holding": "share of the vehicles that fly, are near their goals and slow",
        "distance": "mean distance of the vehicles from their goals, m",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        n = card.agents
        self.levels = np.arange(n) - 0.5 * (n - 1)
        highest = self.levels[-1] * GAP[1]
        self.frame = highest + 1
        # Rotors, gravity and wakes accelerate a vehicle by at most 71 m/s^2 over the diagonal of
        # its arena. The last step may lead beyond it.
        corner = math.sqrt(3) * ARENA
        speed = math.sqrt(2 * 75 * 2 * corner)
        beyond = speed * STEP
        self.set_spaces(highest + MAX_GOAL_OFFSET + corner + beyond, ARENA + beyond, speed)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a vehicle and a column."""
        n = self.card.agents
        u = self.uniform(key, 6 + 2 * n)
        x, y = MAX_GOAL_OFFSET * (2 * u[6:].reshape(2, n) - 1)
        gap = GAP[0] + (GAP[1] - GAP[0]) * u[5]
        return Params(sample_airframe(u[:5], split), x, y, gap * self.levels.astype(self.dtype))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start every vehicle near its goal, not yet at rest."""
        n = self.card.agents
        u = 2 * self.uniform(key, 9 * n).reshape(9, n) - 1
        x, y, z = (goal + 0.2 * offset for offset, goal in zip(u[:3], params[1:], strict=True))
        return self.level_start((x, y, z), 0.5 * u[3:], params)

    def is_astray(self, body: RigidBody, params: Params) -> jax.Array:
        """Say which vehicles left the arena about their goals."""
        return leaves_cube(*goal_offsets(body, params), ARENA)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        n, body = self.card.agents, state.vehicles.body
        distance = distances(body, params)
        slow = squared_length(body.vx, body.vy, body.vz) < MAX_SPEED**2
        holding = (distance < MAX_DISTANCE) & slow & ~state.wrecked
        return {
            "success": holding.all(),
            "wrecks": state.wrecked.sum(),
            "holding": holding.sum().astype(self.dtype) * (1 / n),
            "distance": ordered_sum(distance) * (1 / n),
        }


@privileged_player
class MultiHoverPilot(NamedTuple):
    """The reference player: geometric control of each vehicle.

    It knows the wakes and balances them.
    """

    control: GeometricControl

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> MultiHoverPilot:
        """Make geometric control, keener than for hover: the goals are near."""
        return cls(GeometricControl(position=8.0))

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the commands of all vehicles, ``(n, 4)``, in [-1, 1]."""
        state, params = view.state, view.params
        lift = (
            -wakes(state.vehicles.body, state.wrecked, params.airframe)
            / params.airframe.inertia.mass
        )
        goal = SetPoint(params.x, params.y, params.z, az=lift)
        return self.control.command(state.vehicles, params.airframe, goal).T, memory

"""Drive fast on a highway by pedals and steering; ``highway.py`` has the task's table."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from ..arrays import Scalar
from ..traffic import traffic
from ..traffic.traffic import LANE_WIDTH, SUBSTEP, Fleet
from ..vehicle import bicycle
from ..vehicle.bicycle import Pose
from .highway import SECOND, Road, State, ego_pose, lane_of


class HighwayContinuous(Road):
    """Acceleration and steering, five times a second."""

    substeps = SECOND // 5
    own_entries = 5

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box([-1] * 2, [1] * 2)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Fleet) -> State:
        """Drive for a fifth of a second.

        Drivers weigh the left lane at a second's first look, the right one at its third.
        """
        counted_state = self.count_in_its_lane(state, params)
        push = jnp.where(action[0] > 0, self.acceleration, self.braking) * action[0]
        phase = state.steps % 5
        direction = (phase == 0).astype(jnp.int32) - (phase == 2).astype(jnp.int32)

        def control(pose: Pose) -> tuple[Scalar, Scalar]:
            room = (self.top_speed - pose.speed) * (1 / SUBSTEP)
            return jnp.minimum(push, room), action[1] * bicycle.slip_bound(
                pose.speed, params.length[0]
            )

        return self.close_step(
            state, self.drive(counted_state, params, control, direction, self.substeps), params
        )

    def count_in_its_lane(self, state: State, params: Fleet) -> State:
        """Return traffic in which the ego counts in every lane that its body reaches into.

        There are two such lanes at most.
        """
        ego = ego_pose(state)
        half = 0.5 * (
            params.length[0] * jnp.abs(jnp.sin(ego.heading))
            + params.width[0] * jnp.abs(jnp.cos(ego.heading))
        )
        half = jnp.minimum(half, 0.49 * LANE_WIDTH)
        first = traffic.is_ego(self.vehicles)
        road = state.traffic
        return state._replace(
            traffic=road._replace(
                lane=jnp.where(first, lane_of(ego.y - half), road.lane),
                target=jnp.where(first, lane_of(ego.y + half), road.target),
            )
        )

    def observation(self, state: State, key: jax.Array, params: Fleet) -> jax.Array:
        """Return shape ``(50,)``; see the table."""
        lane = lane_of(ego_pose(state).y)
        return self.stack(*self.see_itself(state, lane), *self.see(state, params, lane))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return *self.own_components(), *self.others_components()

    def _pedals(self) -> str:
        return f"1 is +{self.acceleration:g} m/s^2, -1 is -{self.braking:g} m/s^2"

    def action_components(self) -> tuple[Component, ...]:
        """List pedals and wheel."""
        return (
            Component("acceleration", f"{self._pedals()}, linear on either side of 0"),
            Component("steering", "steering angle to the left, in parts of the largest safe one"),
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with two numbers from -1 to 1: acceleration ({self._pedals()}) and steering "
            "to the "
            "left, in parts of the largest safe angle, for the next 0.2 s."
        )

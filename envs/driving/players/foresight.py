"""Reference player of ``OwnRoads``, which goes on only if it foresees that the way is free.

The way is free if the ego can cross, or can still stop, before anybody is there.

It knows where vehicles are, not what they did next: it expects them to keep their velocities. For
each pedal it foresees two ways: after one step it accelerates all the way, or it brakes to a stop.
It takes the strongest pedal of which one way is free, and else brakes.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, no_memory, privileged_player

from ..arrays import Scalar
from ..tasks.own_roads import STEP, OwnRoads, State
from ..traffic import junction
from ..traffic.replay import Vehicles

PEDALS = (1.0, 0.5, 0.0, -0.25, -0.5, -1.0)
MAX_FORESIGHT_STEPS = 60  # Steps of foresight at most


@privileged_player
class Foresight(eqx.Module):
    """Player of :class:`..tasks.own_roads.OwnRoads`."""

    task: OwnRoads = eqx.field(static=True)
    margin: Scalar = 0.7  # m around the ego's body
    growth: Scalar = 0.05  # m that the margin grows in a second
    horizon: Scalar = 9.0  # s of foresight
    brake: Scalar = -0.2  # pedal with which it expects to stop

    @classmethod
    def for_task(cls, task: OwnRoads) -> Foresight:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the pedal, shape ``(1,)``."""
        state: State = view.state
        vehicles = self.task.recorded_vehicles(state, view.params)

        def free(pedal: Scalar) -> Scalar:
            return self.is_free(state, vehicles, pedal, 1.0) | self.is_free(
                state, vehicles, pedal, self.brake
            )

        pedals = jnp.asarray(PEDALS, self.task.dtype)
        is_pedal_free = jax.vmap(free)(pedals)
        return jnp.stack(
            [jnp.where(is_pedal_free.any(), pedals[is_pedal_free.argmax()], -1)]
        ).astype(self.task.dtype), memory

    def is_free(
        self, state: State, vehicles: Vehicles, pedal: Scalar, next_pedal: Scalar
    ) -> Scalar:
        """Say whether nobody is in the way if the ego plays ``pedal`` and then ``next_pedal``.

        It plays ``pedal`` for a step.
        """

        def step(carry: tuple[Scalar, Scalar], k: Scalar) -> tuple[tuple[Scalar, Scalar], Scalar]:
            s, speed = carry
            pull = self.task.control(s, speed, jnp.where(k == 0, pedal, next_pedal))
            s, speed = junction.roll(s, speed, pull, STEP)
            time = (k + 1).astype(s.dtype) * STEP
            ego = self.task.pose(s, speed)
            wider = 2 * (self.margin + self.growth * time)
            hit = self.task.touches(ego, drift(vehicles, time), wider)
            return (s, speed), hit & (time <= self.horizon) & (s < self.task.goal)

        steps = np.arange(MAX_FORESIGHT_STEPS)
        return ~jax.lax.scan(step, (state.s, state.speed), steps)[1].any()


def drift(vehicles: Vehicles, time: Scalar) -> Vehicles:
    """Return the vehicles after a time (s) at their present velocities."""
    pose = vehicles.pose
    distance = pose.speed * time
    drifted_pose = pose._replace(
        x=pose.x + distance * jnp.cos(pose.heading), y=pose.y + distance * jnp.sin(pose.heading)
    )
    return vehicles._replace(pose=drifted_pose)

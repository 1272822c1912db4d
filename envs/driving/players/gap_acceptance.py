"""Reference player of tasks at junctions, which waits at the line for gaps in all streams.

It simulates its own way, and expects the others to keep their speeds. It knows where they are
going, as their turn signals say, but neither the traffic lights up the road nor who comes next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, privileged_player

from ..arrays import Scalar
from ..tasks import crossing_task
from ..tasks.crossing_task import FASTER, IDLE, LEVELS, SLOWER, Crossing, State
from ..traffic import junction
from ..traffic.junction import HALF_LENGTH, Layout

FORESIGHT_STEP = 0.2  # s: step in which the player foresees its own way
FORESIGHT_STEPS = 50
JAM_GAP = 2.0  # m, to a car ahead that stands


@privileged_player
class GapAcceptance(NamedTuple):
    """Player of :class:`..tasks.crossing_task.Crossing`."""

    layout: Layout
    route: Scalar  # the ego's
    time_before: Scalar = 0.3  # s: to leave a zone before another car comes
    time_after: Scalar = 0.1  # s: to enter a zone after another car has left it
    latest_stop: Scalar = 2.5  # m behind the line at which its front stops at the latest
    spare: Scalar = 0.3  # m: to the nearest zone, for a stop behind the line
    headway: Scalar = 1.2  # s: time gap to a car ahead

    @classmethod
    def for_task(cls, task: Crossing) -> GapAcceptance:
        """Make the player for the layout of the task."""
        return cls(task.layout, np.int32(task.ego_route))

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the three actions."""
        state: State = view.state
        paths = jax.vmap(lambda level, change: self.drive_ahead(state, level, change))(
            jnp.stack([jnp.int32(0), jnp.int32(1), jnp.int32(2), state.level + 1]),
            np.array([-1, -1, -1, 1]),
        )
        levels = np.arange(3)
        reachable = jnp.abs(state.level - levels) <= 1
        stop_points = paths[:3, -1] + HALF_LENGTH
        line = jnp.asarray(self.layout.line, paths.dtype)[self.route]
        zone = jnp.asarray(self.layout.zones, paths.dtype)[self.route, :, 0].min()
        # The highest speed from which it can stop before the line; if none can be, before the
        # zones; else it drives on.
        level = jnp.where(reachable & (stop_points < line + self.latest_stop), levels, 0).max()
        cannot_stop = jnp.where(reachable, stop_points, jnp.inf).min() > zone - self.spare
        level = jnp.where(cannot_stop | self.is_free(state, paths[3]), 2, level)
        # Behind a car ahead it drives no faster than its gap and that car's speed allow.
        level = jnp.minimum(level, self.level_behind(state))
        action = jnp.where(
            level > state.level, FASTER, jnp.where(level < state.level, SLOWER, IDLE)
        )
        return action.astype(jnp.int32), memory

    def drive_ahead(self, state: State, level: Scalar, change: Scalar) -> Scalar:
        """Return the ego's places along its route every 0.2 s for 10 s, ``(50,)`` m, if it goes on.

        It starts at the target speed ``level`` and changes it by ``change`` levels each second.
        """
        ego = jax.tree.map(lambda value: value[:1], state.cars)
        car_routes = junction.routes_of(ego, self.layout)

        def step(carry: junction.Cars, k: Scalar) -> tuple[junction.Cars, Scalar]:
            target = jnp.clip(level + change * (k // round(1 / FORESIGHT_STEP)), 0, len(LEVELS) - 1)
            pull = crossing_task.ego_control(
                carry.speed, target, junction.bend_speed(carry, car_routes)
            )
            s, speed = junction.roll(carry.s, carry.speed, pull, FORESIGHT_STEP)
            return carry._replace(s=s, speed=speed), s[0]

        return jax.lax.scan(step, ego, np.arange(FORESIGHT_STEPS))[1]

    def is_free(self, state: State, path: Scalar) -> Scalar:
        """Say whether the ego can cross at once on this path."""
        cars = state.cars
        car_routes = junction.routes_of(cars, self.layout)
        zone = jnp.asarray(self.layout.zones, cars.s.dtype)[self.route, cars.route]
        ego_zone, car_zone = zone[:, :2], zone[:, 2:]
        enters = FORESIGHT_STEP * (path[:, None] < ego_zone[:, 0] - HALF_LENGTH).sum(0)
        leaves = FORESIGHT_STEP * (path[:, None] < ego_zone[:, 1] + HALF_LENGTH).sum(0)
        comes = (car_zone[:, 0] - HALF_LENGTH - cars.s) / jnp.maximum(
            cars.speed, junction.STARTING_SPEED
        )
        goes = (car_zone[:, 1] + HALF_LENGTH - cars.s) / jnp.maximum(
            cars.speed, junction.CRAWL_SPEED
        )
        committed = junction.is_committed(cars, car_routes.line)
        # Who looks for cars in the junction waits for an ego that is behind its line.
        waits = jnp.asarray(self.layout.looks_for)[cars.route, self.route]
        first = (
            jnp.where(
                committed[0], ~waits, jnp.asarray(self.layout.yields_to)[self.route, cars.route]
            )
            | committed
        )
        counts = cars.present & (ego_zone[:, 0] < jnp.inf) & (goes > 0) & first
        separated = (comes > leaves + self.time_before) | (goes + self.time_after < enters)
        return (~counts | separated).all()

    def level_behind(self, state: State) -> Scalar:
        """Return the highest target speed behind the next car ahead, int32."""
        cars = state.cars
        shared = jnp.asarray(self.layout.shared, cars.s.dtype)[self.route, cars.route]
        distance = cars.s + junction.offset_to(cars, shared) - cars.s[0]
        distance = jnp.where(cars.present & (distance > 0), distance, jnp.inf)
        gap = distance.min() - 2 * HALF_LENGTH - JAM_GAP
        speed = jnp.maximum(
            cars.speed[distance.argmin()] + (gap - self.headway * cars.speed[0]) * 0.5, 0
        )
        return jnp.clip(jnp.floor(speed * (1 / LEVELS[1]) + 0.3), 0, len(LEVELS) - 1).astype(
            jnp.int32
        )

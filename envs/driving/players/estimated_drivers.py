"""Reference player of ``TrafficSim``, which drives as the humans did while they were watched.

It is the Intelligent Driver Model with parameters that are estimated from what was watched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View

from ..arrays import Scalar
from ..tasks.traffic_sim import (
    CHANCE_SCALE,
    COMMAND_SCALE,
    GAP_SCALE,
    RANDOM_SCALE,
    SPEED_SCALE,
    Entry,
    TrafficSim,
)
from ..traffic.car_following import Driver, acceleration
from ..traffic.ring_road import BRAKING, safe_acceleration


class EstimatedDrivers(NamedTuple):
    """Each agent by itself drives as the model of its driver would, from its own observation.

    The time gap follows from the mean gap and speed while watched, as if they were those of an
    equilibrium,

        s = (s0 + v T) / sqrt(1 - (v / v0)^4)

    A gap that would need a longer time gap than ``longest`` is that of a driver who drives nearly
    as fast as it desires. Its desired speed follows from the same equation. All drivers share the
    other parameters. Random accelerations are as large as those that were watched. An agent with a
    command follows by the same model, keenly, with the commanded time gap and without randomness,
    and desires to drive so fast that only the gap counts. Like humans, agents keep room to stop.

    Its numbers are the best of a random search on training episodes.
    """

    jam_gap: Scalar = 2.11  # m
    acceleration: Scalar = 1.17  # m/s^2
    deceleration: Scalar = 1.69  # m/s^2
    # by the speed limit, but at least ``faster`` than the mean that was watched
    desired_speed: Scalar = 0.94
    faster: Scalar = 1.0  # m/s
    time_gap: Scalar = 0.97  # by the one in equilibrium
    longest: Scalar = 2.5  # s: no driver keeps a longer time gap
    random: Scalar = (
        0.88  # Random accelerations by those watched, which waves of traffic make larger
    )
    commanded_gap: Scalar = 1.83  # m; this and the next two are those of an agent with a command
    commanded_acceleration: Scalar = 2.13  # m/s^2
    commanded_deceleration: Scalar = 1.85  # m/s^2
    commanded_speed: Scalar = 2.7  # by the speed limit

    @classmethod
    def for_task(cls, task: TrafficSim) -> EstimatedDrivers:
        """Make the player."""
        return cls()

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the acceleration of each car, ``(23, 1)``."""
        observation = view.observation
        v = SPEED_SCALE * observation[:, Entry.SPEED]
        gap = GAP_SCALE * observation[:, Entry.GAP]
        leader = SPEED_SCALE * observation[:, Entry.LEADER_SPEED]
        commanded = observation[:, Entry.COMMANDED] > 0
        command = COMMAND_SCALE * observation[:, Entry.COMMAND]
        mean_v = SPEED_SCALE * observation[:, Entry.WATCHED_SPEED]
        mean_gap = GAP_SCALE * observation[:, Entry.WATCHED_GAP]
        random = RANDOM_SCALE * observation[:, Entry.WATCHED_RANDOM]
        limit = SPEED_SCALE * observation[:, Entry.LIMIT]

        desired = jnp.maximum(self.desired_speed * limit, mean_v + self.faster)
        share = mean_v / desired
        square = share * share
        equilibrium = mean_gap * jnp.sqrt(jnp.maximum(1 - square * square, 0.05))
        time_gap = (
            jnp.maximum(equilibrium - self.jam_gap, 0) / jnp.maximum(mean_v, 1) * self.time_gap
        )
        gap_fraction = (self.jam_gap + mean_v * self.longest) / jnp.maximum(mean_gap, 1)
        desired_at_ease = mean_v / jnp.sqrt(
            jnp.sqrt(jnp.maximum(1 - gap_fraction * gap_fraction, 0.05))
        )
        at_ease = time_gap > self.longest
        desired = jnp.where(at_ease, desired_at_ease, desired)
        time_gap = jnp.where(at_ease, self.longest, time_gap)
        driver = Driver(desired, time_gap, self.jam_gap, self.acceleration, self.deceleration)
        obedient = Driver(
            self.commanded_speed * limit,
            command,
            self.commanded_gap,
            self.commanded_acceleration,
            self.commanded_deceleration,
        )
        pedal = (
            acceleration(driver, v, gap, leader)
            + self.random * random * CHANCE_SCALE * observation[:, Entry.CHANCE]
        )
        pedal = jnp.where(commanded, acceleration(obedient, v, gap, leader), pedal)
        pedal = jnp.minimum(pedal, safe_acceleration(gap, v, leader))
        return jnp.clip(pedal * (1 / BRAKING), -1, 1)[:, None], memory

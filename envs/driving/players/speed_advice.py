"""Reference player of ``EcoDriving``: green-light optimal speed advice that counts the queue.

The advice is known as GLOSA.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View

from ..arrays import Scalar
from ..tasks.eco_driving.eco_driving import (
    DISTANCE_SCALE,
    MAX_EASE,
    PEDAL_SCALE,
    SLOTS,
    SPEED_SCALE,
    TIME_SCALE,
    EcoDriving,
    Entry,
)


class SpeedAdvice(NamedTuple):
    """Each agent by itself eases off so that it reaches the line when the queue before it has left.

    From its own observation it knows when the light turns green and how many cars are before it.
    Each of them needs ``headway`` s after the ``start`` of the queue. If the agent would be there
    earlier even so, it glides at the speed that brings it there in time. If this green ends before,
    it waits for the next one.

    Its numbers are the best of a random search on training episodes
    (``benchmarks/audits/yardsticks.py``).
    """

    headway: Scalar = 1.8  # s
    start: Scalar = 2.0  # s after green begins
    # s: so much later it reaches the line, because a driver brakes for a red light that is about to
    # change
    reserve: Scalar = 2.2
    # s^2/m: time that a speed below the limit costs, by the square of the difference and the limit
    pickup: Scalar = 0.17
    patience: Scalar = 2.6  # s: shorter waits need no gliding
    gain: Scalar = 0.34  # 1/s: acceleration for a speed that is wrong by 1 m/s
    # m/s^2: no glide begins harder; beyond about 0.6 the engine idles and kinetic energy is lost
    braking: Scalar = 0.8
    slowest: Scalar = 1.8  # m/s: no glide is slower
    grace: Scalar = 2.1  # s: so long after the end of green a car still crosses

    @classmethod
    def for_task(cls, task: EcoDriving) -> SpeedAdvice:
        """Make the player."""
        return cls()

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return how much each car eases off, ``(48, 1)``."""
        return self.ease(view.observation)[:, None], memory

    def ease(self, observation: jax.Array) -> jax.Array:
        """Return how much each car eases off that observes a row of ``observation``."""
        speed = SPEED_SCALE * observation[:, Entry.SPEED]
        to_line = DISTANCE_SCALE * observation[:, Entry.TO_LINE]
        driver = PEDAL_SCALE * observation[:, Entry.DRIVER]
        between = SLOTS * observation[:, Entry.BETWEEN]
        to_green = TIME_SCALE * observation[:, Entry.TO_GREEN]
        to_amber = TIME_SCALE * observation[:, Entry.TO_AMBER]
        green = TIME_SCALE * observation[:, Entry.GREEN]
        not_green = TIME_SCALE * observation[:, Entry.NOT_GREEN]
        limit = SPEED_SCALE * observation[:, Entry.LIMIT]

        missing_speed = limit - speed
        fastest = (to_line + self.pickup * missing_speed * missing_speed) / jnp.maximum(limit, 1)
        queue = to_green + jnp.where(to_green > 0, self.start, 0) + self.headway * between
        crossing = jnp.maximum(fastest, queue)
        # Cars before it that this green serves do not wait for the next one.
        served = jnp.minimum(green, to_amber) / self.headway
        next_crossing = (
            to_amber + not_green + self.start + self.headway * jnp.maximum(between - served, 0)
        )
        crossing = jnp.where(crossing > to_amber + self.grace, next_crossing, crossing)

        glide = jnp.maximum(to_line / (crossing + self.reserve), self.slowest)
        acceleration = jnp.maximum(self.gain * (glide - speed), -self.braking)
        waits = (to_line > 0) & (crossing > fastest + self.patience)
        return jnp.where(waits, jnp.clip((driver - acceleration) / MAX_EASE, 0, 1), 0)

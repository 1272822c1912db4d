"""The reference player where sensors fail: a grower who distrusts missing and repeated readings.

An assumed value stands for such a reading. For the temperature it is the mean of about a day, which
has a sensor of its own, and more in the sun: without that the vents stay closed on a hot day, and
the crop burns. For the humidity it is the one above which vents open, so that they close slowly;
for carbon dioxide a usual content. No drift is noticed.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View

from ..tasks.tomato import Params, Tomato
from ..tasks.tomato_faulty import FIRST_FLAG
from ..tasks.tomato_sensors import INSIDE, POSITION, SCALES, Readings
from .tomato_grower import TomatoGrower


class DoubtfulGrower(NamedTuple):
    """Set points and gains, and what is assumed."""

    grower: TomatoGrower = TomatoGrower()
    sunshine: Float = 0.025
    """K/(W/m2): the sun warms the air by so much above the mean of a day"""
    usual_co2: Float = 700.0
    """ppm"""

    @classmethod
    def for_task(cls, task: Tomato) -> DoubtfulGrower:
        """Make the player for the actuators, prices and bounds of a glasshouse."""
        return cls(TomatoGrower.for_task(task))

    def initial(self, params: Params) -> Readings:
        """Return the memory: the last readings, scaled as in observations; none yet."""
        never = jnp.float32(-9)
        return Readings(never, never, never)

    def act(self, memory: Readings, view: View, key: jax.Array) -> tuple[jax.Array, Readings]:
        """Return the setting, shape ``(3,)``, and the readings."""
        observation = view.observation
        now = Readings(*observation[INSIDE : INSIDE + 3])
        # Saturated air reads 100 % again and again.
        damp = (now.humidity == memory.humidity) & (now.humidity < 1)
        stuck = now.temperature == memory.temperature, now.co2 == memory.co2, damp
        mean, sun = POSITION["mean_temperature"], POSITION["radiation"]
        warmth = observation[mean] * SCALES[mean] + self.sunshine * observation[sun] * SCALES[sun]
        assumed = warmth, self.usual_co2, self.grower.damp
        for i in range(3):
            doubtful = (observation[FIRST_FLAG + i] > 0) | stuck[i]
            observation = observation.at[INSIDE + i].set(
                jnp.where(doubtful, assumed[i] / SCALES[INSIDE + i], now[i])
            )
        setting, _ = self.grower.act((), view._replace(observation=observation), key)
        return setting, now

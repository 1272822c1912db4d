"""Fixed-time traffic lights of a junction with two phases.

Times are whole ticks, so that they are exact.

phase 0 green | amber | all red | phase 1 green | amber | all red | phase 0 green ...
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from ..arrays import Scalar

TICK = 0.5  # s
AMBER = 6  # Ticks: 3 s
CLEARANCE = 4  # Ticks: 2 s of all red


class Plan(NamedTuple):
    """A signal plan in ticks, int32."""

    first: Scalar  # Green of phase 0
    second: Scalar  # Green of phase 1
    offset: Scalar  # Ticks into the cycle at the start of the episode

    @property
    def cycle(self) -> Any:
        """Duration of a cycle, ticks."""
        return self.first + self.second + 2 * (AMBER + CLEARANCE)

    def start_at(self, fraction: Any) -> Plan:
        """Return the plan of which ``fraction`` of a cycle is over when the episode starts.

        The fraction is in [0, 1).
        """
        ticks = jnp.floor(self.cycle * fraction).astype(jnp.int32)
        return self._replace(offset=jnp.minimum(ticks, self.cycle - 1))


class Lights(NamedTuple):
    """Lights of both phases, each field ``(2,)``."""

    green: Scalar  # bool
    amber: Scalar  # bool
    to_green: Scalar  # Ticks until the next green begins, 0 at green, int32
    to_amber: Scalar  # Ticks until this green ends, or else the next one, int32


def light_name(lights: Lights, phase: int) -> str:
    """Return what a phase shows: ``green``, ``amber`` or ``red``."""
    if lights.green[phase]:
        return "green"
    return "amber" if lights.amber[phase] else "red"


def lights(plan: Plan, tick: Any) -> Lights:
    """Return the lights at a tick of the episode."""
    length = jnp.stack([plan.first, plan.second])
    begins = jnp.stack([0 * plan.first, plan.first + AMBER + CLEARANCE])
    since = (tick + plan.offset - begins) % plan.cycle
    green = since < length
    to_green = jnp.where(green, 0, plan.cycle - since)
    to_amber = jnp.where(green, length - since, to_green + length)
    return Lights(green, ~green & (since < length + AMBER), to_green, to_amber)

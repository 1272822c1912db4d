"""Set points of gym-electric-motor 3.0.3: random walks with a new deviation for every sub-episode.

Everything is in parts of the limit of the quantity. A walk begins uniformly within its margin: the
nominal value by the limit, on each side that the quantity has. It takes its first step before it is
first shown. Its deviation a step is log-uniform in a range and stays for 500 to 1999 steps; the
next sub-episode begins where the last one ended. Several quantities walk and change their
deviations independently.

Source: gym-electric-motor 3.0.3 (doi:10.21105/joss.02498), WienerProcessReferenceGenerator and what
its ids give it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..machines.frames import Scalar

MIN_STEPS = 500
"""Steps of the shortest sub-episode."""
MAX_STEPS = 2000
"""Steps that a sub-episode stays below."""

_NOMINAL = {
    **dict.fromkeys(("PermExDc", "ExtExDc", "SeriesDc", "ShuntDc"), (300 / 400, 16 / 38, 97 / 210)),
    "PMSM": (3000 / 4000, 1.0, 240 / 400),
    "SynRM": (3000 / 4300, 1.0, 10 / 18),
    "EESM": (4300 / 12000, 1.0, 120 / 150),
    "SCIM": (3000 / 4000, 1.0, 3.9 / 5.5),
    "DFIM": (1650 / 1800, 1.0, 7.5 / 9),
    "SIXPMSM": (3000 / 4000, 1.0, 240 / 400),
}
"""Nominal speed, torque and current, in parts of their limits.

The field current of the EESM is nominal at its limit.
"""

_DEVIATIONS = {
    ("Cont", "CC", "PermExDc"): (1e-2, 1e-1),
    ("Cont", "TC", "PermExDc"): (1e-2, 1e-1),
    ("Cont", "SC", "PermExDc"): (1e-3, 5e-2),
    ("Finite", "CC", "PermExDc"): (1e-2, 1e-1),
    ("Finite", "TC", "PermExDc"): (1e-2, 1e-1),
    ("Finite", "SC", "PermExDc"): (1e-3, 5e-3),
    ("Cont", "SC", "SeriesDc"): (1e-3, 2e-2),
    ("Finite", "SC", "SeriesDc"): (1e-3, 5e-3),
    ("Cont", "SC", "ShuntDc"): (1e-3, 3e-2),
    ("Finite", "SC", "ShuntDc"): (1e-3, 5e-3),
    **{
        (control, "SC", m): (1e-3, 1e-2)
        for control in ("Cont", "Finite")
        for m in ("SynRM", "SCIM", "DFIM")
    },
}
"""Ranges of the deviation a step, where they are not ``(1e-3, 1e-1)``."""

_MARGINS = {("Cont-TC-ShuntDc-v0", "torque"): (0.0, 0.8), ("Cont-CC-EESM-v0", "i_e"): (0.0, 1.0)}
"""Set by the id, not by the nominal value."""


class Walk(NamedTuple):
    """One set point."""

    value: Scalar
    deviation: Scalar
    """Deviation of the moves in this sub-episode"""
    steps_left: Scalar
    """int32: steps that the sub-episode still has"""


class Wiener(NamedTuple):
    """A rule by which the set point of one quantity moves."""

    low: float
    high: float
    slowest: float
    fastest: float

    def start(self, unit: Scalar) -> Walk:
        """Return the walk before the first step; ``unit`` uniform in [0, 1)."""
        return Walk(self.low + (self.high - self.low) * unit, jnp.zeros_like(unit), jnp.int32(0))

    def step(self, walk: Walk, move: Scalar, length: Scalar, pace: Scalar) -> Walk:
        """Make one step; begin a new sub-episode where the last one is over.

        ``move`` is standard normal; ``length`` and ``pace``, of a new sub-episode, uniform in [0,
        1).
        """
        over = walk.steps_left == 0
        sampled = self.slowest * jnp.exp(math.log(self.fastest / self.slowest) * pace)
        deviation = jnp.where(over, sampled, walk.deviation)
        steps = jnp.where(
            over, jnp.int32(MIN_STEPS + (MAX_STEPS - MIN_STEPS) * length), walk.steps_left
        )
        return Walk(
            jnp.clip(walk.value + deviation * move, self.low, self.high), deviation, steps - 1
        )


def begin(wieners: list[Wiener], key: jax.Array, dtype: Any) -> tuple[Walk, ...]:
    """Return the walks as they are first shown."""
    placing, moving = jax.random.split(key)
    units = jax.random.uniform(placing, (len(wieners),), dtype)
    return step(wieners, tuple(wiener.start(units[i]) for i, wiener in enumerate(wieners)), moving)


def step(wieners: list[Wiener], walks: tuple[Walk, ...], key: jax.Array) -> tuple[Walk, ...]:
    """Make one step of all walks."""
    moving, changing = jax.random.split(key)
    dtype = walks[0].value.dtype
    moves = jax.random.normal(moving, (len(walks),), dtype)
    changes = jax.random.uniform(changing, (len(walks), 2), dtype)
    return tuple(
        wiener.step(walk, moves[i], changes[i, 0], changes[i, 1])
        for i, (wiener, walk) in enumerate(zip(wieners, walks, strict=True))
    )


def nominal(machine: str, quantity: str) -> float:
    """Return the nominal value of a quantity in parts of its limit."""
    if (machine, quantity) == ("EESM", "i_e"):
        return 1.0
    speed, torque, current = _NOMINAL[machine]
    return {"omega": speed, "torque": torque}.get(quantity, current)


def setpoint(name: str, quantity: str, low: float) -> Wiener:
    """Return the set point of one quantity of one of the peer's ids.

    Args:
        name: ``{Cont,Finite}-{CC,TC,SC}-{machine}-v0``.
        quantity: name in the peer's state.
        low: -1, or 0 where the peer gives the quantity one sign only.
    """
    control, goal, machine, _ = name.split("-")
    max_value = nominal(machine, quantity)
    ends = _MARGINS.get((name, quantity), (low * max_value, max_value))
    return Wiener(*ends, *_DEVIATIONS.get((control, goal, machine), (1e-3, 1e-1)))

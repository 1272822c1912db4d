"""Interlocking: both switches of a leg are off for a while when it changes its end of the link.

The current goes on through a diode meanwhile: out of the leg through the lower one, into it through
the upper one.

Source: Mohan, Undeland & Robbins, Power Electronics (2003), section 8-5, effect of blanking time.
"""

from __future__ import annotations

import jax.numpy as jnp

from ..machines.frames import Scalar


def lost_voltages(currents: tuple[Scalar, ...], share: float) -> tuple[Scalar, ...]:
    """Return the change of each leg's voltage by interlocking, averaged over a period.

    It is -sign(i) t / T, in parts of the link's voltage.

    Args:
        currents: A, out of the legs.
        share: t / T, of the period; each leg is taken to switch up and down once in it.
    """
    return tuple(-share * jnp.sign(current) for current in currents)


def freewheeling_legs(
    old_legs: tuple[Scalar, ...], new_legs: tuple[Scalar, ...], currents: tuple[Scalar, ...]
) -> tuple[Scalar, ...]:
    """Return the ends (0 or 1) at which interlocked legs are between two switch states."""
    return tuple(
        jnp.where(old == new, new, (current < 0).astype(old.dtype))
        for old, new, current in zip(old_legs, new_legs, currents, strict=True)
    )

"""Openings of chess: a few random half-moves from the first position, apart for both splits."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.arrays import Flag
from rlbench_suite.core.task import Split

from .players import material
from .rules import WORDS, Legal, Position, advance, fingerprint, mix_bits

OPENING_PLIES = 4
START_POSITION = Position(
    np.array([0xFF00, 0x42, 0x24, 0x81, 0x08, 0x10, 0xFFFF], np.uint32),
    np.array(
        [0xFF << 16, 0x42 << 24, 0x24 << 24, 0x81 << 24, 0x08 << 24, 0x10 << 24, 0], np.uint32
    ),
    np.int32(15), np.int32(-1), np.int32(0),
)  # fmt: skip
"""The first position of chess."""


class Params(NamedTuple):
    """The start of the game, seen by the side to move: the agent of a game against an opponent."""

    position: Position
    """The first position."""
    legal: Legal
    """Its legal moves."""
    black: Flag
    """Whether the side to move is Black, bool."""


def any_rank(noise: jax.Array, count: jax.Array) -> jax.Array:
    """Return a random number below a count, int32."""
    return (noise % jnp.maximum(count, 1).astype(jnp.uint32)).astype(jnp.int32)


def choice(condition: jax.Array, value: Any, alternative: Any) -> Any:
    """Return one tree where a condition holds, and another elsewhere."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), value, alternative)


def sample_opening(bits: jax.Array, split: jax.Array) -> Params:
    """Draw colour and opening from two words: random half-moves until one comes out that fits."""
    black = (bits[0] & 1).astype(bool)
    plies = OPENING_PLIES + black.astype(jnp.int32)

    def fits(position: Position, legal: Legal) -> jax.Array:
        test = fingerprint(position)[0] % 4 == 0
        return (
            (test == (split == Split.TEST)) & (material(position) == 0) & (legal.words != 0).any()
        )

    def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        draws, half_moves, position, legal = carry
        again = (half_moves == plies) | ~(legal.words != 0).any()
        position, legal = choice(again, first, (position, legal))
        noise = mix_bits(bits[1] + draws * np.uint32(0x9E3779B9))
        position, legal = advance(position, legal.nth(any_rank(noise, legal.size())))
        return draws + 1, jnp.where(again, 1, half_moves + 1), position, legal

    def unfit(carry: tuple[Any, ...]) -> jax.Array:
        _, half_moves, position, legal = carry
        return (half_moves != plies) | ~fits(position, legal)

    first = jax.tree.map(jnp.asarray, (START_POSITION, Legal(first_moves(), np.bool_(False))))
    _, _, position, legal = lax.while_loop(unfit, step, (jnp.uint32(0), jnp.int32(0), *first))
    return Params(position._replace(clock=jnp.int32(0)), legal, black)


def first_moves() -> np.ndarray:
    """Return the legal moves of the first position.

    Pawns move by one or two squares, and knights jump to two squares each.
    """
    words = np.zeros(WORDS, np.uint32)
    words[[0, 16]] = 0xFF00  # planes 0 and 8
    words[[2 * (56 + jump) for jump in (0, 7)]] = 0x42
    return words

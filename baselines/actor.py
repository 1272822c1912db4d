"""PPO's actor: from a normalised observation, its picture encoded, to a distribution of actions."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .distributions import Categorical, Gaussian
from .networks import CODE, Encoder, Linear, initial_layers, multilayer
from .rows import Rows


class Actor(NamedTuple):
    """The policy's network.

    Where the task has ``action_features`` (actions, F), the network gives F numbers and an action's logit is their
    product with its features, plus a bias of its own: with thousands of actions, each is tried too rarely to be
    learned about alone, but what they are made of is seen all the time. A linear path from the observation to those F
    numbers stands beside the network: what is known of a feature bears on it directly, and that is learned first.
    """

    layers: tuple[Linear, ...]
    log_std: Any
    """``(components,)``; None for discrete actions."""
    action_bias: Any
    """``(actions,)``; None without action features."""
    direct: Any
    """``(features, F)``; None without action features."""
    encoder: Encoder | None
    """Of the picture, shared with the critic; None without pictures."""

    @classmethod
    def initial(
        cls, generator: np.random.Generator, rows: Rows, inputs: int, hidden: tuple[int, ...], log_std: float
    ) -> Actor:
        """Orthogonal weights for ``inputs`` numbers, small at the end; zeros elsewhere."""
        features = rows.action_features
        outputs = rows.outputs if features is None else features.shape[1]
        return cls(
            initial_layers(generator, (inputs, *hidden, outputs), gain=0.01),
            None if rows.choices else np.full(rows.outputs, log_std, np.float32),
            None if features is None else np.zeros(features.shape[0], np.float32),
            None if features is None else np.zeros((inputs, features.shape[1]), np.float32),
            None if rows.picture is None else Encoder.initial(generator, rows.picture),
        )

    def __call__(self, rows: Rows, x: jax.Array, mask: jax.Array | None) -> Categorical | Gaussian:
        """The distribution of actions given normalised observations ``(..., features)``, pictures encoded.

        What lies beyond the network's own inputs is privileged, and not looked at.
        """
        x = x[..., : self.layers[0].weight.shape[0]]
        outputs = multilayer(self.layers, x)
        if not rows.choices:
            return Gaussian(outputs, self.log_std)
        if rows.action_features is not None:
            outputs = (outputs + x @ self.direct) @ rows.action_features.T.astype(np.float32) + self.action_bias
        if mask is not None:
            outputs = jnp.where(mask, outputs, -1e9)  # a probability of exactly 0, and no NaN in the entropy
        return Categorical(tuple(jnp.split(outputs, np.cumsum(rows.choices)[:-1], -1)))


def seen_features(rows: Rows) -> int:
    """Numbers that an actor sees: those of the observation, then what the encoder makes of its picture."""
    return rows.features + (0 if rows.picture is None else CODE)


def code_of(actor: Any, picture: jax.Array | None) -> jax.Array | None:
    """What an actor's encoder makes of a picture; None where there is none."""
    return None if picture is None else actor.encoder(picture)


def encoded(rows: Rows, x: jax.Array, code: jax.Array | None) -> jax.Array:
    """Normalised observations with what the encoder makes of their pictures, before what is privileged."""
    if code is None:
        return x
    return jnp.concatenate([x[..., : rows.features], code, x[..., rows.features :]], -1)
